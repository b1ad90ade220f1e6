/* unroll.h - what the files of unrolling share: a loop that may run several iterations at a time, and what replaces
 * it. */
#ifndef HG_GPU_UNROLL_H
#define HG_GPU_UNROLL_H

#include "backend/gpu/plan_passes.h"
#include "ir/loops.h"

enum {
  GPU_MOST_TIMES = 16,
  GPU_MOST_PASSAGES = 32,
  GPU_MOST_LOOP_BLOCKS = 16,
  GPU_MOST_STEP = 1 << 20 /* the largest constant that an integer grows by in an iteration, and the largest
                             displacement */
};

/* The current loop, which is left only at its header. */
typedef struct gpu_loop {
  uint32_t header, latch, body; /* blocks; body: the header's successor in the loop */
  uint32_t entry;               /* the header's other predecessor */
  int side;                     /* which side of the header's branch stays in the loop */
  uint32_t block[GPU_MOST_LOOP_BLOCKS], block_count; /* its blocks without the header, in the order of the plan */
  uint32_t instructions;        /* of an iteration */
  uint32_t bytes;               /* bytes that an iteration loads from buffers */
  int sweeps;                   /* 1: some of these by an index that grows */
  uint8_t stored[ATLAS_MAX_SYMBOLS + 2]; /* per alias class: 1: the loop writes it */
  uint8_t loaded[ATLAS_MAX_SYMBOLS + 2]; /* per alias class: 1: the loop reads it */
  uint8_t keeps[ATLAS_MAX_SYMBOLS + 2];  /* per alias class: 1: its stores keep their places */
  uint8_t shares[ATLAS_MAX_SYMBOLS + 2]; /* per alias class: 1: different iterations may access the same element */
  uint32_t only[ATLAS_MAX_SYMBOLS + 2];  /* per alias class: its first access in an iteration */
} gpu_loop;

/* A stretch of a buffer that a loop goes over. */
typedef struct gpu_passage {
  uint32_t symbol, loop, start, step; /* loop: its number; values */
} gpu_passage;

typedef struct gpu_unroller {
  gpu_plan *g;
  ssa_unit *unit;
  uint32_t values, blocks; /* their number before anything was added */
  uint32_t *map;           /* GPU_MOST_TIMES entries per value: its counterpart in each copy; SSA_NONE */
  uint32_t *copy_of;       /* per original block: its counterpart in the current copy */
  uint32_t alias[ATLAS_MAX_SYMBOLS + 2];
  ir_loops loops;          /* of the original blocks */
  gpu_loop loop;
  gpu_passage passage[GPU_MOST_PASSAGES];
  uint32_t passages;
  uint32_t times, first;   /* of the current copies: how many; the block in which they begin */
  int failed;              /* 1: out of memory */
} gpu_unroller;

static inline const ssa_insn *gpu_unroll_insn(const gpu_unroller *u, uint32_t value) {
  return ssa_insn_at(u->unit, value);
}
static inline uint32_t gpu_unroll_arg(const gpu_unroller *u, uint32_t value, uint32_t i) {
  return ssa_args_of(u->unit, value)[i];
}

/* 1 if the block begins a loop that may run several iterations at a time; it becomes the current loop. */
int hg_gpu_find_loop(gpu_unroller *u, uint32_t header);
/* 1 if the value is loop-invariant. */
int hg_gpu_is_invariant(const gpu_unroller *u, uint32_t value);
/* Which operand of the header's phis comes from the latch. */
uint32_t hg_gpu_latch_side(const gpu_unroller *u);
/* What a phi of the header grows by in an iteration: a constant of at most GPU_MOST_STEP or, if it is unsigned, a
 * loop-invariant value. SSA_NONE: it does not grow. */
uint32_t hg_gpu_step_of(const gpu_unroller *u, uint32_t phi);
/* The growing phi of the header that the value equals, or is the sum of and loop-invariant values; SSA_NONE: it does
 * not grow. */
uint32_t hg_gpu_root_of(const gpu_unroller *u, uint32_t value);
/* 1 if a load or store accesses an element of a buffer whose number grows. */
int hg_gpu_is_swept(const gpu_unroller *u, uint32_t value);
/* 1 if it is a load that every iteration performs and that may move before all iterations: of memory that the loop does
 * not write, or where each iteration has an element of its own and loads it first. */
int hg_gpu_is_early(const gpu_unroller *u, uint32_t value);
/* 1 if it is a store that every iteration performs and that may move behind all iterations, because no other iteration
 * loads what it stores. */
int hg_gpu_is_late(const gpu_unroller *u, uint32_t value);
/* The side of the header's comparison that grows and decides whether the loop continues: while x < y or x <= y, or
 * until y < x or y <= x. SSA_NONE: it is no such comparison. */
uint32_t hg_gpu_compared(const gpu_unroller *u);

/* Inserts before the loop the code that runs `many` iterations at a time or, if fewer are left, `few`, as often as
 * possible; `few` may equal `many`. Sets u->failed when memory runs out. */
void hg_gpu_put_in_front(gpu_unroller *u, uint32_t many, uint32_t few);

#endif
