/* draft.h - a program as data that tests may change, and a launch of it.
 *
 * A draft becomes an atlas_program through the builder; whether it verifies is seen then. All memory a launch binds
 * lies in one arena, so that "every output bit" is one comparison. */
#ifndef HG_TESTS_DRAFT_H
#define HG_TESTS_DRAFT_H

#include "atlas/interp.h"

enum { DRAFT_SYMBOLS = 64, DRAFT_CONST_BYTES = 4096, DRAFT_TABLE_ENTRIES = 4 };

/* ---- random numbers: splitmix64 (Steele, Lea, Flood 2014) -------------------------------------------------------- */

typedef struct rng {
  uint64_t state;
  uint8_t generation; /* see rng_op */
} rng;

static inline uint64_t rng_next(rng *r) {
  uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline uint32_t rng_below(rng *r, uint32_t count) { return (uint32_t)((rng_next(r) >> 32) * count >> 32); }
static inline int rng_chance(rng *r, uint32_t percent) { return rng_below(r, 100) < percent; }

/* A value of a type: often one that is special. */
uint64_t rng_value(rng *r, atlas_type type);

/* Any operation of this generation or an older one. Programs are remembered by their seeds, and what an older
 * generation draws stays what it was: an operation that comes later belongs to a new generation, which is drawn from
 * seed SEEDS_OF_ALL_OPERATIONS on. */
#define SEEDS_OF_ALL_OPERATIONS UINT64_C(100000000)
enum { FIRST_GENERATION, WITH_CBRT, WITH_LEN, WITH_DOT4, WITH_LOCAL_ARRAYS, WITH_COLLECTIVES_IN_A_ROW, WITH_SHAPES,
       WITH_EDGES, WITH_RANK, WITH_HALF_TURNS, ALL_OPERATIONS = WITH_HALF_TURNS };
atlas_op rng_op(rng *r);

/* ---- programs ---------------------------------------------------------------------------------------------------- */

typedef struct draft {
  atlas_symbol symbols[DRAFT_SYMBOLS];
  uint32_t symbol_count;
  uint8_t constants[DRAFT_CONST_BYTES]; /* in the machine's byte order; const_offset of the symbols points here */
  uint32_t constant_bytes;
  uint32_t block[3];
  atlas_insn *insns;
  uint32_t insn_count, insn_capacity;
  uint32_t *labels; /* targets: instruction indices */
  uint32_t label_count, label_capacity;
  int other_names;  /* name things differently */
  uint64_t shapes;  /* bits of shapes.h: what it was made to hold */
} draft;

void draft_release(draft *d);
void draft_copy(draft *to, const draft *from);
void draft_append(draft *d, const atlas_insn *insn);
void draft_insert(draft *d, uint32_t at, const atlas_insn *insn); /* labels at `at` stand before it */
void draft_delete(draft *d, uint32_t at, uint32_t count);
uint32_t draft_label(draft *d); /* not placed: target UINT32_MAX */
static inline void draft_place(draft *d, uint32_t label) { d->labels[label] = d->insn_count; }
int draft_is_target(const draft *d, uint32_t insn); /* 1 if a label stands before the instruction */

/* The other way around. */
void draft_from_program(draft *d, const atlas_program *program);

/* NULL if it does not verify (the reason is the last error). */
atlas_program *draft_build(const draft *d);

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct test_launch {
  uint64_t lanes;      /* as in atlas_launch */
  uint32_t grid[3], block[3];
  uint32_t lane_count; /* of the whole launch */
  uint64_t step_limit;
  uint32_t phase;
  uint64_t bytes[DRAFT_SYMBOLS];                           /* of buffers and pools */
  uint64_t entry_bytes[DRAFT_SYMBOLS][DRAFT_TABLE_ENTRIES]; /* of tables; UINT64_MAX: nothing bound */
  uint64_t scalar[DRAFT_SYMBOLS];
  uint32_t same_as[DRAFT_SYMBOLS];                         /* 1 + another buffer: bound to the same range; 0: its own */
  uint64_t seed;                                           /* of the contents */
  int uses_boundary;
  uint8_t generation;                                      /* whose values the contents are */

  uint8_t *initial;    /* the arena before a run */
  uint64_t arena_bytes;
  uint64_t offset[DRAFT_SYMBOLS];
  uint64_t entry_offset[DRAFT_SYMBOLS][DRAFT_TABLE_ENTRIES];
} test_launch;

/* What a run left behind. */
typedef struct outcome {
  uint8_t *memory;   /* the arena's, which begins at a multiple of 64 within it */
  uint8_t *arena;
  uint8_t *boundary; /* NULL where the program does not use it */
  atlas_launch launch;
} outcome;

void test_launch_prepare(test_launch *l, const draft *d); /* lays out and fills the arena */
void test_launch_release(test_launch *l);

typedef hg_status (*run_function)(const void *context, atlas_launch *launch);
hg_status test_launch_run(const test_launch *l, const draft *d, run_function run, const void *context, outcome *out);
void outcome_release(outcome *out);

/* Where two outcomes differ in memory or counters; 0: nowhere. `text` says it. */
int outcome_differs(const test_launch *l, const draft *d, const outcome *a, const outcome *b, char *text,
                    size_t text_bytes);

#endif
