/* loop.h - innermost loops over memory, whose addresses differ from lane to lane by nothing or by one. */
#ifndef HG_NATIVE_LOOP_H
#define HG_NATIVE_LOOP_H

#include "backend/cpu/native/native.h"

enum {
  NATIVE_MOST_SCALARS = 32,
  NATIVE_MOST_LOOP = 256,                  /* instructions */
  NATIVE_GREATEST_DISPLACEMENT = 1 << 24   /* elements */
};

/* What strides the indices of accesses are likely to have: a vector_stride for each instruction, OTHER for all but
 * loads and stores. `strides`: scratch, a byte for each register. */
void hg_native_guess(const native_build *b, uint8_t *strides, uint8_t *guesses);

/* A register of the vector program that one number stands for in a loop: lane 0's. */
typedef struct native_scalar {
  uint32_t reg;
  uint8_t stride;   /* vector_stride, but OTHER */
  uint8_t enters;   /* 1: it comes from before the loop: that it has this stride is to be asked there */
  uint8_t changes;  /* 1: the loop writes it, and nobody needs it behind the loop */
} native_scalar;

typedef struct native_loop {
  uint32_t head, end; /* instructions: the label, the only jump back to it */
  uint32_t count;
  native_scalar scalar[NATIVE_MOST_SCALARS];
} native_loop;

/* 1 if the loop that starts with the label `head` has accesses that may be quick: those whose index is a scalar, if all
 * that enter have the strides that they are guessed to have. `strides`: scratch, a byte for each register. */
int hg_native_find_loop(const native_build *b, uint32_t head, uint8_t *strides, native_loop *loop);
/* NULL: none. */
const native_scalar *hg_native_scalar_of(const native_loop *loop, uint32_t reg);
/* 1 if a load or store with such an index is one of a run of elements, or of one element. */
int hg_native_is_quick(const native_build *b, const vector_insn *insn, uint8_t stride);
/* 1 if a quick load of one element for all lanes may keep it once: all that read it take it so. */
int hg_native_keeps_one(const native_build *b, const native_loop *loop, uint32_t insn);

#endif
