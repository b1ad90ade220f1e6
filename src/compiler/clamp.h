/* clamp.h - recognises minimum and maximum written as a choice, `a < b ? a : b`, and with constants, for which machines
 * have instructions. */
#ifndef HG_COMPILER_CLAMP_H
#define HG_COMPILER_CLAMP_H

#include "atlas/value.h"

typedef enum hg_choice { HG_CHOICE_OTHER, HG_CHOICE_LESSER, HG_CHOICE_GREATER } hg_choice;

/* Whether `test(a, b) ? yes : no` is the minimum or the maximum of a and b, which are values or registers. If the test
 * is set.le, or a and b are exchanged, equal numbers with different bits (zeros) make a difference: see hg_is_bound. */
static inline hg_choice hg_choice_of(uint16_t test, uint32_t a, uint32_t b, uint32_t yes, uint32_t no) {
  if (test != ATLAS_OP_set_lt && test != ATLAS_OP_set_le) return HG_CHOICE_OTHER;
  if (yes == a && no == b) return HG_CHOICE_LESSER;
  return yes == b && no == a ? HG_CHOICE_GREATER : HG_CHOICE_OTHER;
}

/* 1 if a constant is a number other than zero: whatever equals it has its bits. */
static inline int hg_is_bound(uint8_t type, uint64_t bits) {
  double value = atlas_to_f64((atlas_type)type, bits);
  return value < 0 || value > 0;
}

#endif
