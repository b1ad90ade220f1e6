/* sweep.h - the systematic sweep of memory safety. A program is a row of forms.def with its letters filled in; a
 * launch is how many lanes it has, what its scalars are, and where its memory begins and ends. A case is a launch of a
 * program, and a number: number / SWEEP_LAUNCHES is the program, the rest the launch. With the seed it says all. */
#ifndef HG_TESTS_SWEEP_H
#define HG_TESTS_SWEEP_H

#include "hologram/hologram.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
  SWEEP_LAUNCHES = 256, /* of a program */
  MOST_RANGES = 8,
  MOST_SCALARS = 8,
  MOST_TEXT = 4096,
  MOST_BLOCK = 1024
};

/* ---- random numbers ---------------------------------------------------------------------------------------------- */

typedef struct random_state {
  uint64_t state;
} random_state;

random_state random_of(uint64_t seed, uint64_t number);
uint64_t random_next(random_state *r);
uint64_t random_below(random_state *r, uint64_t end);

/* ---- programs (programs.c) --------------------------------------------------------------------------------------- */

/* What forms.def says of a row, by the name behind FORM_. */
enum {
  FORM_OWN = 1,           /* route: no two lanes may reach one element */
  FORM_SAME = 2,          /* address: two lanes may */
  FORM_INDEX = 4,         /* address: it has an index of type I */
  FORM_SHIFT = 8,         /* address: a displacement may stand behind it */
  FORM_OF_BLOCK = 16,     /* route: of memory that a block or a lane has for itself: lanes count in the block */
  FORM_GUARD = 32,        /* route: the body may stand under a branch that lanes take */
  FORM_GRID = 64,         /* launched by blocks in one dimension, */
  FORM_PLANE = 128,       /* or in two */
  FORM_LANE = 256,        /* address: only for memory that all lanes share */
  FORM_REGISTER = 512,    /* address: a register; route: it needs one */
  FORM_ARITHMETIC = 1024, /* for types that have sums */
  FORM_LARGE = 2048       /* of more memory than caches have */
};

typedef struct sweep_program {
  uint32_t number;
  const char *route, *address; /* their names in forms.def; "": a whole program has no address */
  uint32_t flags;              /* of both */
  atlas_type type, index;      /* of elements; of the index, ATLAS_NONE: there is none of a type of its own */
  int64_t shift;               /* the displacement */
  uint32_t block;              /* that its text says; 0: none */
  uint32_t part;               /* some lanes of it */
  int is_brief;                /* 1: it runs where a million lanes take a minute */
  char text[MOST_TEXT];
} sweep_program;

uint32_t sweep_program_count(void);
void sweep_program_make(uint64_t seed, uint32_t number, int is_brief, sweep_program *out);

/* ---- launches (launches.c) --------------------------------------------------------------------------------------- */

typedef enum sweep_place { PLACE_END, PLACE_START, PLACE_INSIDE } sweep_place;
typedef enum sweep_room { ROOM_SMALL, ROOM_MIDDLE, ROOM_LONG, ROOM_LARGE, ROOM_COUNT } sweep_room;

/* Memory that is bound: bytes of a room, which lies between pages that nobody may read. */
typedef struct sweep_range {
  char name[ATLAS_MAX_NAME + 1];
  uint32_t entry; /* of a table */
  uint32_t slot;  /* which room; two ranges with one slot are the same memory */
  sweep_room room;
  sweep_place place;
  int is_written;
  uint64_t offset, byte_count;
} sweep_range;

typedef struct sweep_launch {
  uint64_t lanes;
  uint32_t grid[3], block[3];
  sweep_range ranges[MOST_RANGES];
  uint32_t range_count;
  hg_scalar scalars[MOST_SCALARS];
  uint32_t scalar_count;
  uint64_t contents;    /* from what the memory's contents are made */
  uint64_t first, step; /* of the index, by lanes */
} sweep_launch;

void sweep_launch_make(uint64_t seed, const sweep_program *p, const atlas_program *compiled, uint32_t number,
                       sweep_launch *out);

/* ---- memory (memory.c) ------------------------------------------------------------------------------------------- */

uint64_t sweep_room_bytes(sweep_room room);
/* Memory of so many bytes between pages that nobody may read; NULL: the system has none. */
uint8_t *sweep_room_map(sweep_room room);
/* From now on nobody may write there. */
void sweep_room_close(sweep_room room, uint8_t *memory);
/* What a room of the launch holds before it: the same each time. */
void sweep_room_fill(const sweep_program *p, const sweep_launch *l, const sweep_range *range, uint8_t *bytes);

/* ---- engines (engines.c) ----------------------------------------------------------------------------------------- */

enum { MOST_ENGINES = 16 };

typedef struct sweep_engine sweep_engine;

typedef struct sweep_result {
  hg_status status;
  hg_fault fault;
  char engine[32];              /* which ran */
  uint8_t *memory[MOST_RANGES]; /* by slot */
} sweep_result;

/* By name: interp, tile or native with :ISA, and +stream for native code that passes the caches; cuda, metal. NULL: the
 * machine has none such. */
sweep_engine *sweep_engine_open(const char *name);
void sweep_engine_close(sweep_engine *engine);
const char *sweep_engine_name(const sweep_engine *engine);
/* HG_OK with a kernel, or as hg_kernel_create. */
hg_status sweep_engine_compile(sweep_engine *engine, atlas_program *program, hg_kernel **out);
void sweep_engine_run(sweep_engine *engine, hg_kernel *kernel, const sweep_program *p, const sweep_launch *l,
                      sweep_result *result);

/* ---- what differs (differences.c) -------------------------------------------------------------------------------- */

/* 1 if both left the same; otherwise what differs is written to `what`. */
int sweep_same(const sweep_launch *l, const sweep_result *expected, const sweep_result *got, char *what, size_t size);
void sweep_print(const sweep_program *p, const sweep_launch *l);

#endif
