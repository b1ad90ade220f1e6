/* ranges.h - the range of a value in every lane, given the ranges of its arguments.
 *
 * Integers are numbers modulo 2^bits, because that is how they are computed: a range may begin near the type's greatest
 * number and end beyond it. So the core of an exponential function, which builds a power of two from the bits of a sum,
 * can be followed, and so can x - 1 + 1. Rounding is monotonic, so operations on bounds bound floating-point results as
 * well. */
#ifndef HG_COMPILER_RANGES_H
#define HG_COMPILER_RANGES_H

#include "ir/ssa.h"

typedef struct hg_range {
  union {
    struct {
      int64_t low, high; /* integers: the value is congruent, modulo 2^bits, to a number between them. For up to 32
                            bits, low is a number of the type, and high may exceed the greatest one. low > high: no lane
                            ever has the value */
    };
    struct {
      double least, greatest; /* floats: bounds of all values other than NaN, infinities included */
    };
  };
  uint8_t exact;  /* integers: 1: the value itself, as a number, lies between low and high */
  uint8_t is_nan; /* f32, f64: 1: it may be NaN */
} hg_range;

/* The range of the whole type. For types other than integers, f32 and f64 nothing is ever known. */
hg_range hg_range_of_type(uint8_t type);
hg_range hg_range_of_bits(uint8_t type, uint64_t bits);
/* The range of an integer that is congruent to a number between these. */
hg_range hg_range_between(uint8_t type, int64_t low, int64_t high);
/* The join, and the intersection; if that is unknown or empty, `a`. */
hg_range hg_range_join(uint8_t type, hg_range a, hg_range b);
hg_range hg_range_meet(hg_range a, hg_range b);

/* The range of a float that may be NaN or lies between these. */
static inline hg_range hg_range_of_floats(double least, double greatest, int is_nan) {
  return (hg_range){.least = least, .greatest = greatest, .is_nan = (uint8_t)(is_nan != 0)};
}

/* 0 if the sum is not an int64_t. */
int hg_add_exact(int64_t a, int64_t b, int64_t *sum);

/* An operation with an integer result; x: the ranges of its arguments, for a conversion in the source's type. */
hg_range hg_range_of_integer_op(const ssa_insn *insn, const hg_range *x);

/* A value other than a phi; of[v] is the range of each value v that it depends on. Effects, and operations that nothing
 * is known of, have the range of their type. */
hg_range hg_range_of(const ssa_unit *unit, const hg_range *of, uint32_t value);

/* `range` of `value`, narrowed to what is possible where the comparison `test` has the result `holds`. */
hg_range hg_range_where(const ssa_unit *unit, const hg_range *of, uint32_t value, hg_range range, uint32_t test,
                        int holds);

#endif
