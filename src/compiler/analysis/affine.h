/* affine.h - integers as sums: value = rest + factor * by * (number along an axis) is a slope, which says how a value
 * changes from one point to the next; value = rest + term + ... + term splits off terms that a loop, or anybody, may
 * compute ahead.
 *
 * The unit is scheduled. Sums, products and slopes are modulo 2^bits, as integers are. */
#ifndef HG_COMPILER_AFFINE_H
#define HG_COMPILER_AFFINE_H

#include "compiler/analysis/effects.h"
#include "ir/loops.h"

/* From a lane to the next along x and along y of its block; from a block to the next along x. */
typedef enum hg_axis { HG_ALONG_BLOCKS, HG_ALONG_X, HG_ALONG_Y, HG_AXES } hg_axis;

typedef enum hg_certainty {
  HG_UNKNOWN,
  HG_CLAMPED, /* the slope up to some unknown bound, and 0 behind it */
  HG_LIKELY,  /* the slope, unless a sum wraps before it is widened */
  HG_EXACT
} hg_certainty;

typedef struct hg_slope {
  uint32_t factor, by; /* by: a scalar parameter; SSA_NONE: 1 */
  uint8_t certainty;   /* hg_certainty */
} hg_slope;

/* Computes the slope of each value; block: the size of a block, 0: unknown. */
void hg_find_slopes(const ssa_unit *unit, const ssa_order *order, const uint32_t block[3], hg_axis along, hg_slope *of);

/* 1 if the value is loop-invariant. */
static inline int hg_is_invariant(const ssa_unit *unit, const ir_loops *loops, uint32_t header, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  return hg_is_leaf(insn) || (insn->block != SSA_NONE && !ir_in_loop(loops, header, insn->block));
}

enum { HG_MOST_TERMS = 6 };

typedef struct hg_terms {
  uint32_t value[HG_MOST_TERMS], count;
  uint32_t products; /* terms beyond these that are no values: a * b of a mad */
} hg_terms;

/* Splits terms off a sum while the rest is a sum and `is_term` accepts what is split off; returns the rest. */
uint32_t hg_take_terms(const ssa_unit *unit, uint32_t sum, int (*is_term)(const void *context, uint32_t value),
                       const void *context, hg_terms *terms);

#endif
