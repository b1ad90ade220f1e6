/* loop.h - innermost loops over memory whose indices have stride 0 or 1 across lanes. */
#ifndef HG_NATIVE_LOOP_H
#define HG_NATIVE_LOOP_H

#include "backend/cpu/native/native.h"

enum {
  NATIVE_MOST_SCALARS = 32,
  NATIVE_GREATEST_DISPLACEMENT = 1 << 24   /* elements */
};

/* Fills `guesses`: for each load and store the stride (vector_stride) that its index probably has, OTHER for other
 * instructions. `strides`: scratch, a byte for each register. */
void hg_native_guess(const native_build *b, uint8_t *strides, uint8_t *guesses);

/* A register of the vector program that one number can stand for in a loop: the value of lane 0, from which the values
 * of the other lanes follow. */
typedef struct native_scalar {
  uint32_t reg;
  uint8_t stride;   /* vector_stride, but OTHER */
  uint8_t enters;   /* 1: it is live into the loop, where its stride is checked */
  uint8_t changes;  /* 1: the loop writes it, and it is dead after the loop */
  uint8_t is_uniform; /* 1: other scalars are computed from it and its stride needs no check */
} native_scalar;

/* What is known of an instruction of a loop while all lanes of the group are in the loop (loop_masks.c). */
enum {
  NATIVE_TAKES_ALL = 1, /* its mask is all lanes */
  NATIVE_NO_CHANGE = 2, /* it writes a mask that was and remains all lanes; or it is a jump that is not taken */
  NATIVE_ALWAYS = 4,    /* it is a jump that is taken */
  NATIVE_LEAVES = 8,    /* a comparison by which lanes leave the loop; the next instruction removes them from the loop's
                           mask: see native_leaving */
  NATIVE_FIRST_ALL = 16, NATIVE_SECOND_ALL = 32 /* its first, or second, source is a mask that is all lanes */
};

typedef struct native_loop {
  uint32_t head, end; /* instructions: the label, the last latch */
  uint32_t lanes;     /* the mask of the lanes in the loop; VECTOR_ALL */
  uint8_t has_all;    /* 1: its quick version is for groups whose lanes are all in the loop */
  uint8_t has_begun;  /* 1: its mask excludes lanes that have ended */
  uint32_t count;
  native_scalar scalar[NATIVE_MOST_SCALARS];
} native_loop;

/* A comparison by which lanes leave a loop. */
typedef struct native_leaving {
  uint32_t counter, limit; /* registers: of stride 1, of stride 0 */
  uint8_t type;            /* u32, i32, u64 */
  uint8_t reaches_limit;   /* 1: a lane stays while its counter <= limit; 0: while counter < limit */
} native_leaving;

/* 1 if the loop that starts with the label `head` has accesses that may be quick: their index is a scalar, provided
 * that all live-in scalars have the guessed strides. `strides`: scratch, a byte for each register. `roles`:
 * NATIVE_TAKES_ALL, ... for each instruction of a loop with has_all; NULL: has_all is not wanted. */
int hg_native_find_loop(const native_build *b, uint32_t head, uint8_t *strides, uint8_t *roles, native_loop *loop);
/* 1 if has_all may hold for the loop; then it fills `roles`. */
int hg_native_find_masks(const native_build *b, native_loop *loop, const uint8_t *strides, uint8_t *roles);
/* 1 if comparison i and the instruction after it are a NATIVE_LEAVES. */
int hg_native_leaving(const native_build *b, const uint8_t *strides, uint32_t i, native_leaving *out);

/* vector_stride */
static inline uint8_t hg_native_stride_of(const native_build *b, const uint8_t *strides, uint32_t r) {
  if (r >= b->vector->regs.count) return VECTOR_STRIDE_OTHER;
  const vector_reg *reg = vector_reg_at(b->vector, r);
  if (hg_native_is_lane_number(reg)) return VECTOR_STRIDE_1;
  if (reg->kind != VECTOR_VARIES || b->locations[r].is_uniform) return VECTOR_STRIDE_0;
  return strides[r];
}

/* vectors_per_iteration.c: raises build->copies of a program whose only loop reads rows of a matrix. Values that only
 * some rounds use are then in the frame and cost nothing to spill. `shared`: per instruction, the change in the number
 * of registers that hold one value for all copies; `spill_cost`: per register. */
hg_status hg_native_vectors_per_iteration(native_build *build, const int32_t *shared, uint32_t *spill_cost);

/* NULL: none. */
const native_scalar *hg_native_scalar_of(const native_loop *loop, uint32_t reg);
/* 1 if a load or store whose index has this stride is one access to consecutive elements, or to one element. `role`:
 * NATIVE_TAKES_ALL, or 0. */
int hg_native_is_quick(const native_build *b, const vector_insn *insn, uint8_t role, uint8_t stride);
/* 1 if a quick load of one element for all lanes needs only one register, because everything that reads it can use a
 * single copy. */
int hg_native_keeps_one(const native_build *b, const native_loop *loop, uint32_t insn);

#endif
