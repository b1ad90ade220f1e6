/* engine.h - what the CPU engines share: the launch that they run, the part of it that a worker runs now, and one
 * instruction on given rows (hg_cpu_insn).
 *
 * A row holds one value a lane, in elements of the type's size (1, 2, 4 or 8 bytes; predicates: bytes 0 or 1). Written
 * rows, and rows read with step 1, have room up to the next multiple of CPU_CHUNK lanes, because kernels work on whole
 * chunks. The elements after the last lane mean nothing.
 *
 * Local arrays are rows as well: element i of all lanes, then element i + 1 of all lanes. So an index that is the same
 * in all lanes names a row, any other index is a gather. A lane has a slot in each of these rows; the engine says how
 * many slots there are (cpu_body.local_lanes), and clears the memory when lanes begin. */
#ifndef HG_ENGINE_H
#define HG_ENGINE_H

#include "atlas/interp.h"
#include "backend/cpu/engine/kernels.h"
#include "vector/vector.h"

enum {
  CPU_CHUNK = KERNEL_CHUNK, /* lanes; also the length of a short row, which repeats one value */
  CPU_TILE_LANES = 1024,    /* most lanes of a block, and of a row in the tile engine */
  CPU_SHARED_ALIGNMENT = 16 /* bytes: alignment of shared arrays and of pool allocations */
};

/* A symbol as a launch sees it. */
typedef struct cpu_binding {
  uint8_t *memory;         /* of .shared and .local: set per worker */
  uint64_t extent;         /* elements of a buffer, constant table, shared or local array; bytes of a pool; entries of
                              a table */
  const atlas_span *table;
} cpu_binding;

typedef struct cpu_tally cpu_tally; /* tally.h */

/* One launch, which all workers share and none writes. */
typedef struct cpu_launch {
  const atlas_program *program;
  const hg_vector *vector;
  atlas_launch *launch;
  void *kernel;             /* the engine's kernel */
  const cpu_kernels *kernels; /* the kernels for the instruction set in use */
  int is_block_tile;        /* 1: a tile is a block; 0: a range of lanes, whatever the launch's blocks are */
  int is_shared;            /* 1: several workers run at once */
  const cpu_tally *tallies; /* per symbol: whether each worker has a copy; NULL: no symbol has */
  int counts_steps;         /* 1: STEPs are counted */
  uint64_t lanes;           /* lanes of the launch */
  uint32_t block[3];        /* lanes; the last block of a linear launch may have fewer */
  uint64_t grid[3];         /* blocks */
  uint64_t blocks;
  uint32_t shared_bytes;    /* bytes of a block */
  uint32_t stacked[2];      /* as in cpu_body; 1, 1: blocks run one by one */
  uint32_t local_bytes;     /* bytes of a lane: of the local arrays that vector->locals names */
  uint32_t local_lanes;     /* slots of a local array */
} cpu_launch;

/* A worker and its current tile. */
typedef struct cpu_worker {
  const cpu_launch *run;
  const hg_vector *vector;  /* the program of the instructions given to hg_cpu_insn: run->vector, or a version of it */
  uint8_t *scratch;         /* the engine's scratch: cpu_body.scratch_bytes at a multiple of 64, not cleared */
  uint8_t *shared;          /* the block's shared memory */

  /* The current tile: a block, or a range of lanes. */
  uint64_t first;           /* global number of the tile's lane 0 */
  uint64_t block_at[3], block_index; /* coordinates and number of its block */
  uint8_t *alive;           /* if vector->loses_lanes: byte i is 1 until lane i ends by TRAP or STEP, and 0 after the
                               tile's end. Belongs to the engine; hg_cpu_insn clears bytes and counts `lost` */
  uint32_t lost;            /* lanes of the tile that have ended; 0 when a tile begins */
  uint64_t *steps;          /* if the launch counts: steps left of the tile's lane i at [i]; belongs to the engine */

  /* Local arrays. */
  uint8_t *local;           /* local_bytes for each of local_lanes slots: array after array, row after row */
  uint64_t slot;            /* lane i of the tile has slot i + slot, modulo 2^64 */

  hg_fault fault;           /* the fault of the lowest lane so far */
  int64_t resonance[ATLAS_CLASS_COUNT]; /* valid if the program counts it */
  uint32_t phase_advance;
  uint64_t pool_top[ATLAS_MAX_SYMBOLS]; /* of .pool symbols; like `is_own` indexed by symbol */
  cpu_binding binding[ATLAS_MAX_SYMBOLS];
  uint8_t is_own[ATLAS_MAX_SYMBOLS]; /* 1: no other worker sees the memory, so atomics need not be atomic */
} cpu_worker;

/* ---- the driver (run.c) -------------------------------------------------------------------------------------- */

typedef struct cpu_body {
  uint32_t tile_lanes;      /* if tiles are not blocks: most lanes of a tile; 0: a whole part is one tile */
  uint32_t lane_ps;         /* estimated picoseconds of a lane on one thread: decides how many threads run */
  uint8_t takes_rows;       /* 1: tiles may be lanes along the rows of a grid: see hg_cpu_is_block_tile */
  uint8_t clears_shared;    /* 1: `tile` clears a block's shared memory, where that is needed */
  uint32_t local_lanes;     /* slots that a worker needs at once, if the program accesses local arrays */
  size_t scratch_bytes;     /* of each worker. Small launches of one worker run on the stack, so it should be small */
  uint32_t stacked[2];      /* if not 1, 1: `stack` runs so many blocks that are neighbours along x and y */
  void (*begin)(cpu_worker *w);                /* runs once a worker, before its first tile; may be NULL */
  void (*tile)(cpu_worker *w, uint64_t lanes); /* runs the current tile; w->run->kernel is the kernel */
  uint64_t (*many)(cpu_worker *w, uint64_t lanes, uint64_t count); /* runs up to `count` full blocks along x from the
                                                                      current one; how many; may be NULL */
  void (*end)(cpu_worker *w); /* runs after the last tile of each part of the launch; may be NULL */
  int (*stack)(cpu_worker *w, uint64_t lanes); /* runs the blocks from the current one on, along x first, whose shared
                                                  memory lies one after the other; 0: it cannot, and has done nothing */
} cpu_body;

/* Cuts the launch into tiles, distributes them, and merges faults, resonance and phase into `launch`. HG_OUT_OF_MEMORY
 * before any lane has run. */
hg_status hg_cpu_run(const cpu_body *body, void *kernel, const cpu_kernels *kernels, const hg_allocator *allocator,
                     const atlas_program *program, const hg_vector *vector, atlas_launch *launch);

/* Bytes of a block's shared memory. */
uint32_t hg_cpu_shared_bytes(const atlas_program *program);

/* Bytes of a lane's accessed local arrays. Arrays begin at multiples of 16 times the slots. */
uint32_t hg_cpu_local_bytes(const atlas_program *program, const hg_vector *v);

/* 1: a tile is a block; 0: a range of lanes, whatever the launch's blocks are. takes_rows: the engine knows that
 * coordinates in a grid change at the end of a row. */
int hg_cpu_is_block_tile(const hg_vector *v, const atlas_launch *launch, int takes_rows);

static inline uint64_t hg_cpu_round_up(uint64_t bytes) {
  return (bytes + CPU_SHARED_ALIGNMENT - 1) / CPU_SHARED_ALIGNMENT * CPU_SHARED_ALIGNMENT;
}

/* Bytes of a .pool symbol that each block gets. */
static inline uint64_t hg_cpu_pool_share(const cpu_worker *w, uint32_t pool) {
  return w->binding[pool].extent / w->run->blocks / CPU_SHARED_ALIGNMENT * CPU_SHARED_ALIGNMENT;
}

/* Global number of a lane of the current tile. */
uint64_t hg_cpu_lane(const cpu_worker *w, uint64_t lane_in_tile);

/* A tile consists of runs of consecutive lanes: the length of a run. */
static inline uint64_t hg_cpu_run_length(const cpu_launch *run) {
  return run->is_block_tile && (run->block[1] > 1 || run->block[2] > 1) ? run->block[0] : UINT64_MAX;
}

/* ---- one instruction (insn.c) -------------------------------------------------------------------------------- */

typedef struct cpu_operands {
  void *d;               /* row of results; NULL: no result, or it is not wanted */
  const void *s[4]; /* in the order of vector_insn.s. An index register has the type of its vector_reg. With VECTOR_LANE
                       it is not read and may be NULL */
  uint8_t step[4];       /* 1: a row; 0: one value, repeated CPU_CHUNK times */
  const uint8_t *mask;   /* a byte a lane, 0 or 1; NULL: all `count` lanes. For VECTOR_ALL: NULL until a lane is lost,
                            then w->alive */
  uint32_t count;        /* lanes of the rows */
  uint64_t first;        /* element i of the rows is lane first + i of the current tile */
} cpu_operands;

/* Runs `insn` as vector.h defines it, CLEAR, AND, ANDNOT, OR and MOVE included, but not LABEL, JUMP*, END. With
 * VECTOR_KEEP, lanes outside the mask keep d; else they may get anything. d may be the row of a source with elements of
 * the same size. Instructions of the whole block (hg_is_block_op) take the rows of the whole block, first = 0. A source
 * that is VECTOR_ALL is a row with 1 in the lanes that exist and have not ended. */
void hg_cpu_insn(cpu_worker *w, const vector_insn *insn, const cpu_operands *o);

/* Notes a fault of lane `lane_in_tile`, unless that lane or a lower one has one already. */
void hg_cpu_fault(cpu_worker *w, uint64_t lane_in_tile, const vector_insn *insn, hg_fault fault);
/* The first lane of the current tile that has a fault, or follows a lane that has: its faults need not be noted. */
uint64_t hg_cpu_noted(const cpu_worker *w);
void hg_cpu_step_fault(cpu_worker *w, const vector_insn *insn, uint64_t lane_in_tile);
void hg_cpu_memory_fault(cpu_worker *w, uint64_t lane_in_tile, const vector_insn *insn, hg_fault_kind kind,
                         int64_t index, uint64_t extent);

#endif
