/* loop.h - innermost loops over memory whose indices have stride 0 or 1 across lanes. */
#ifndef HG_NATIVE_LOOP_H
#define HG_NATIVE_LOOP_H

#include "backend/cpu/native/native.h"

enum {
  NATIVE_MOST_SCALARS = 32,
  NATIVE_MOST_LOOP = 256,                  /* instructions */
  NATIVE_GREATEST_DISPLACEMENT = 1 << 24   /* elements */
};

/* Fills `guesses`: for each load and store the stride (vector_stride) that its index is likely to have, OTHER for other
 * instructions. `strides`: scratch, a byte for each register. */
void hg_native_guess(const native_build *b, uint8_t *strides, uint8_t *guesses);

/* A register of the vector program that one number can stand for in a loop: lane 0's, from which the other lanes'
 * follow. */
typedef struct native_scalar {
  uint32_t reg;
  uint8_t stride;   /* vector_stride, but OTHER */
  uint8_t enters;   /* 1: it is live into the loop, where its stride has to be checked */
  uint8_t changes;  /* 1: the loop writes it, and it is dead after the loop */
} native_scalar;

typedef struct native_loop {
  uint32_t head, end; /* instructions: the label, the only latch */
  uint32_t count;
  native_scalar scalar[NATIVE_MOST_SCALARS];
} native_loop;

/* 1 if the loop that starts with the label `head` has accesses that may be quick: their index is a scalar, provided
 * that all live-in scalars have the strides that they are guessed to have. `strides`: scratch, a byte for each
 * register. */
int hg_native_find_loop(const native_build *b, uint32_t head, uint8_t *strides, native_loop *loop);
/* NULL: none. */
const native_scalar *hg_native_scalar_of(const native_loop *loop, uint32_t reg);
/* 1 if a load or store whose index has this stride is one access to consecutive elements, or to one element. */
int hg_native_is_quick(const native_build *b, const vector_insn *insn, uint8_t stride);
/* 1 if a quick load of one element for all lanes needs only one register: all that read it can take a single copy. */
int hg_native_keeps_one(const native_build *b, const native_loop *loop, uint32_t insn);

#endif
