/* engine.h - what the CPU engines share: the launch they run, the part of it that a worker runs now, and one
 * instruction on given rows (hg_cpu_insn).
 *
 * A row holds one value a lane, in elements of the type's size (1, 2, 4 or 8 bytes; predicates: bytes 0 or 1). Rows
 * that are written, and rows that are read with step 1, have room up to the next multiple of CPU_CHUNK lanes: kernels
 * work on whole chunks. What they leave after the last lane means nothing.
 *
 * Local arrays are rows as well: element i of all lanes lies side by side, then element i + 1 of all lanes, so that an
 * index which is the same in all lanes is a row, and one that is not a gather. A lane has a slot in each of these rows;
 * the engine says how many slots there are (cpu_body.local_lanes), and clears the memory when lanes begin. */
#ifndef HG_ENGINE_H
#define HG_ENGINE_H

#include "atlas/interp.h"
#include "backend/cpu/engine/kernels.h"
#include "vector/vector.h"

enum {
  CPU_CHUNK = KERNEL_CHUNK, /* lanes; also the length of a short row, which repeats one value */
  CPU_TILE_LANES = 1024,    /* most lanes of a block; of a row in the tile engine */
  CPU_SHARED_ALIGNMENT = 16 /* bytes: of shared arrays, and of what pools give */
};

/* A symbol as a launch sees it. */
typedef struct cpu_place {
  uint8_t *memory;         /* of .shared and .local: set per worker */
  uint64_t extent;         /* elements of a buffer, constant table, shared or local array; bytes of a pool; entries of
                              a table */
  const atlas_span *table;
} cpu_place;

typedef struct cpu_tally cpu_tally; /* tally.h */

/* One launch: shared by all workers, none of which writes it. */
typedef struct cpu_launch {
  const atlas_program *program;
  const hg_vector *vector;
  atlas_launch *launch;
  void *kernel;             /* the engine's own */
  const cpu_kernels *kernels; /* for the instruction set in use */
  int is_block_tile;        /* 1: tiles are blocks; 0: lanes counted through, whatever the launch's blocks are */
  int is_shared;            /* 1: several workers run at once */
  const cpu_tally *tallies; /* per symbol: whether each worker has one of its own; NULL: none */
  int counts_steps;         /* 1: STEP counts */
  uint64_t lanes;           /* of the whole launch */
  uint32_t block[3];        /* lanes; the last block of a linear launch may have fewer */
  uint64_t grid[3];         /* blocks */
  uint64_t blocks;
  uint32_t shared_bytes;    /* of a block */
  uint32_t stacked[2];      /* see cpu_body; 1, 1: blocks run one by one */
  uint32_t local_bytes;     /* of a lane: of the local arrays that vector->locals names */
  uint32_t local_lanes;     /* slots of a local array */
} cpu_launch;

/* A worker and the tile that it runs. */
typedef struct cpu_worker {
  const cpu_launch *run;
  const hg_vector *vector;  /* the program that instructions given to hg_cpu_insn belong to: run->vector, or a form
                               of it */
  uint8_t *scratch;         /* the engine's own: cpu_body.scratch_bytes of it, at a multiple of 64; it is not cleared */
  uint8_t *shared;          /* the block's shared memory */

  /* The tile that runs: a block, or a range of lanes. */
  uint64_t first;           /* global number of its lane 0 */
  uint64_t block_at[3], block_index; /* of a block */
  uint8_t *alive;           /* where vector->loses_lanes: of lane i at [i], 1 until it ends by TRAP or STEP, 0 after the
                               tile's end; the engine's own. hg_cpu_insn clears bytes and counts `lost` */
  uint32_t lost;            /* lanes of the tile that have ended: set to 0 with each tile */
  uint64_t *steps;          /* where the launch counts: steps left, of the tile's lane i at [i]; the engine's own */

  /* Local arrays. */
  uint8_t *local;           /* local_bytes for each of local_lanes slots: array after array, row after row */
  uint64_t slot;            /* lane i of the tile has slot i + slot, modulo 2^64 */

  hg_fault fault;           /* of the lowest lane so far */
  int64_t resonance[ATLAS_CLASS_COUNT]; /* set up where the program counts it */
  uint32_t phase_advance;
  uint64_t pool_top[ATLAS_MAX_SYMBOLS]; /* of each .pool symbol. This array and those below have as many elements as
                                           there are symbols */
  cpu_place place[ATLAS_MAX_SYMBOLS];
  uint8_t is_own[ATLAS_MAX_SYMBOLS]; /* 1: no other worker sees the memory: atomics need not be atomic */
} cpu_worker;

/* ---- the driver (run.c) -------------------------------------------------------------------------------------- */

typedef struct cpu_body {
  uint32_t tile_lanes;      /* where tiles are not blocks: most lanes of a tile; 0: a whole part is one tile */
  uint32_t lane_ps;         /* about how long a lane takes one thread, in picoseconds: decides about threads */
  uint8_t clears_shared;    /* 1: `tile` clears a block's shared memory, where that is needed */
  uint32_t local_lanes;     /* slots that a worker needs at once, where the program accesses local arrays */
  size_t scratch_bytes;     /* of each worker; small launches of one worker run on the stack, so keep it small */
  uint32_t stacked[2];      /* not 1, 1: `stack` is for so many blocks that are neighbours along x and y */
  void (*begin)(cpu_worker *w);                /* once a worker, before its first tile; may be NULL */
  void (*tile)(cpu_worker *w, uint64_t lanes); /* runs the current tile; w->run->kernel is the kernel */
  uint64_t (*many)(cpu_worker *w, uint64_t lanes, uint64_t count); /* runs up to so many blocks, all of whose lanes
                                                  exist, from the current one on along x; how many; may be NULL */
  void (*end)(cpu_worker *w); /* after the last tile of each part of the launch; may be NULL */
  int (*stack)(cpu_worker *w, uint64_t lanes); /* runs blocks, of which the current one is the first, with shared memory
                                                  one after the other, along x first; 0: it cannot, and has done
                                                  nothing */
} cpu_body;

/* Cuts the launch into tiles, hands them out, and merges faults, resonance and phase into `launch`.
 * HG_OUT_OF_MEMORY before any lane has run. */
hg_status hg_cpu_run(const cpu_body *body, void *kernel, const cpu_kernels *kernels, const hg_allocator *allocator,
                     const atlas_program *program, const hg_vector *vector, atlas_launch *launch);

/* What a block's shared memory takes. */
uint32_t hg_cpu_shared_bytes(const atlas_program *program);

/* What a lane's local arrays take, of those that are accessed; arrays begin at multiples of 16 times the slots. */
uint32_t hg_cpu_local_bytes(const atlas_program *program, const hg_vector *v);

/* 1: tiles are blocks; 0: lanes counted through, whatever the launch's blocks are. */
int hg_cpu_is_block_tile(const hg_vector *v, const atlas_launch *launch);

static inline uint64_t hg_cpu_round_up(uint64_t bytes) {
  return (bytes + CPU_SHARED_ALIGNMENT - 1) / CPU_SHARED_ALIGNMENT * CPU_SHARED_ALIGNMENT;
}

/* Bytes of a .pool symbol that each block has. */
static inline uint64_t hg_cpu_pool_share(const cpu_worker *w, uint32_t pool) {
  return w->place[pool].extent / w->run->blocks / CPU_SHARED_ALIGNMENT * CPU_SHARED_ALIGNMENT;
}

/* Global number of a lane of the current tile. */
uint64_t hg_cpu_lane(const cpu_worker *w, uint64_t lane_in_tile);

/* A tile consists of runs of lanes with consecutive global numbers: how many lanes each run has. */
static inline uint64_t hg_cpu_run_length(const cpu_launch *run) {
  return run->is_block_tile && (run->block[1] > 1 || run->block[2] > 1) ? run->block[0] : UINT64_MAX;
}

/* ---- one instruction (insn.c) -------------------------------------------------------------------------------- */

typedef struct cpu_operands {
  void *d;               /* row of results; NULL where there is none or none is wanted */
  const void *s[4]; /* in the order of vector_insn.s. An index register is read as its vector_reg's type says; of an
                       address with VECTOR_LANE it is not read and may be NULL */
  uint8_t step[4];       /* 1: a row; 0: one value: CPU_CHUNK equal elements */
  const uint8_t *mask;   /* a byte a lane, 0 or 1; NULL: all of `count`. Of VECTOR_ALL: NULL while none is lost, then
                            w->alive */
  uint32_t count;        /* lanes of the rows */
  uint64_t first;        /* element i of the rows is lane first + i of the current tile */
} cpu_operands;

/* Does `insn` (anything but LABEL, JUMP*, END; CLEAR, AND, ANDNOT, OR and MOVE included) as vector.h says: with
 * VECTOR_KEEP lanes outside the mask keep d, else they may get anything. d may be a source's own row if the elements
 * have one size. Instructions of the whole block (hg_is_block_op) want the rows of the whole block, first = 0.
 * A source that is VECTOR_ALL: a row that is 1 in the lanes that exist and have not ended. */
void hg_cpu_insn(cpu_worker *w, const vector_insn *insn, const cpu_operands *o);

/* Notes a fault of lane `lane_in_tile` unless a lower lane, or this one, has had one before. */
void hg_cpu_fault(cpu_worker *w, uint64_t lane_in_tile, const vector_insn *insn, hg_fault fault);
/* The first lane of the current tile with no fault left to note, since it or a lower one has had one. */
uint64_t hg_cpu_noted(const cpu_worker *w);
void hg_cpu_step_fault(cpu_worker *w, const vector_insn *insn, uint64_t lane_in_tile);
void hg_cpu_memory_fault(cpu_worker *w, uint64_t lane_in_tile, const vector_insn *insn, hg_fault_kind kind,
                         int64_t index, uint64_t extent);

#endif
