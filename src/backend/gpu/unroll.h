/* unroll.h - the inside of unrolling: a loop that may run several iterations at a time, and what stands for it. */
#ifndef HG_GPU_UNROLL_H
#define HG_GPU_UNROLL_H

#include "backend/gpu/plan_passes.h"
#include "ir/loops.h"

enum {
  GPU_MOST_TIMES = 16,
  GPU_MOST_PASSAGES = 32,
  GPU_MOST_LOOP_BLOCKS = 16,
  GPU_MOST_STEP = 1 << 20 /* that an integer grows by in an iteration, where that is a constant; of a displacement */
};

/* The loop at hand, which is left at its head alone. */
typedef struct gpu_loop {
  uint32_t header, latch, body; /* blocks; body: the head's successor in the loop */
  uint32_t entry;               /* the head's other predecessor */
  int side;                     /* of the head's branch that stays in the loop */
  uint32_t block[GPU_MOST_LOOP_BLOCKS], block_count; /* but the head; in the order of the plan */
  uint32_t instructions;        /* of an iteration */
  uint32_t bytes;               /* that an iteration loads from buffers */
  int sweeps;                   /* 1: some of them by an index that grows */
  uint8_t stored[ATLAS_MAX_SYMBOLS + 2]; /* per alias group: the loop writes it */
  uint8_t loaded[ATLAS_MAX_SYMBOLS + 2]; /* per alias group: the loop reads it */
  uint8_t keeps[ATLAS_MAX_SYMBOLS + 2];  /* per alias group: its stores keep their places */
  uint8_t shares[ATLAS_MAX_SYMBOLS + 2]; /* per alias group: iterations may reach the same element of it */
  uint32_t only[ATLAS_MAX_SYMBOLS + 2];  /* per alias group: its first access in an iteration */
} gpu_loop;

/* What a loop goes over. */
typedef struct gpu_passage {
  uint32_t symbol, loop, start, step; /* loop: its number; values */
} gpu_passage;

typedef struct gpu_unroller {
  gpu_plan *g;
  ssa_unit *unit;
  uint32_t values, blocks; /* before anything was added */
  uint32_t *map;           /* GPU_MOST_TIMES times per value: what it is in each copy; SSA_NONE */
  uint32_t *copy_of;       /* per block before, of the copy at hand */
  uint32_t alias[ATLAS_MAX_SYMBOLS + 2];
  ir_loops loops;          /* of the blocks before */
  gpu_loop loop;
  gpu_passage passage[GPU_MOST_PASSAGES];
  uint32_t passages;
  uint32_t times, first;   /* of the copies at hand; the block in which they begin */
  int failed;              /* out of memory */
} gpu_unroller;

static inline const ssa_insn *gpu_unroll_insn(const gpu_unroller *u, uint32_t value) {
  return ssa_insn_at(u->unit, value);
}
static inline uint32_t gpu_unroll_arg(const gpu_unroller *u, uint32_t value, uint32_t i) {
  return ssa_args_of(u->unit, value)[i];
}

/* 1 if the block begins a loop that may run several iterations at a time, which is the loop at hand then. */
int hg_gpu_find_loop(gpu_unroller *u, uint32_t header);
/* 1 if the loop does not change the value. */
int hg_gpu_is_invariant(const gpu_unroller *u, uint32_t value);
/* Which operand of the head's phis comes from the latch. */
uint32_t hg_gpu_latch_side(const gpu_unroller *u);
/* What a phi of the head grows by in an iteration: a constant of at most GPU_MOST_STEP or, if it is unsigned, a value
 * that the loop does not change. SSA_NONE: it does not grow. */
uint32_t hg_gpu_step_of(const gpu_unroller *u, uint32_t phi);
/* The phi of the head that grows and of which the value is a sum with what the loop does not change, or that it is;
 * SSA_NONE: it does not grow. */
uint32_t hg_gpu_root_of(const gpu_unroller *u, uint32_t value);
/* 1 if a load or store is of an element of a buffer the number of which grows. */
int hg_gpu_is_swept(const gpu_unroller *u, uint32_t value);
/* 1 if it is a load that may be done in front of all iterations, where each does it: of memory that the loop does not
 * write, or where an iteration has an element of its own, of which the load comes first. */
int hg_gpu_is_early(const gpu_unroller *u, uint32_t value);
/* 1 if it is a store that may be done behind all iterations: each does it, and no other one loads what it stores. */
int hg_gpu_is_late(const gpu_unroller *u, uint32_t value);
/* The side of the head's comparison that grows and decides whether the loop goes on: it does while x < y or x <= y, or
 * is left once y < x or y <= x. SSA_NONE: it is no such comparison. */
uint32_t hg_gpu_compared(const gpu_unroller *u);

/* Puts in front of the loop what runs many iterations at a time or, where they are not left, a few, as often as that
 * goes; `few` may be as many. Sets u->failed where memory ends. */
void hg_gpu_put_in_front(gpu_unroller *u, uint32_t many, uint32_t few);

#endif
