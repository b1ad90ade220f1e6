/* soft_fma.h - a * b + c rounded once, for processors that have no instruction for it. */
#ifndef HG_ENGINE_SOFT_FMA_H
#define HG_ENGINE_SOFT_FMA_H

#include <stdint.h>
#include <string.h>

/* The product of two f32 is exact in f64. The sum with c is rounded to odd there (the last bit set where it is not
 * exact), so that rounding it once more, to f32, is right: 53 >= 2 * 24 + 2 (Boldo and Melquiond 2008). */
static inline float hg_soft_fmaf(float a, float b, float c) {
  double product = (double)a * (double)b, sum = product + (double)c;
  double part = sum - product;
  double error = (product - (sum - part)) + ((double)c - part); /* exact: Knuth's TwoSum */
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  uint64_t is_inexact = (uint64_t)(error > 0 || error < 0); /* of a NaN error, sum is infinite or NaN, neither */
  uint64_t is_even = ~bits & 1;
  uint64_t away = (error > 0) == (sum > 0) ? 1 : UINT64_MAX; /* 1: the exact sum is farther from zero than `sum` */
  bits += (is_inexact & is_even) * away;
  memcpy(&sum, &bits, sizeof sum);
  return (float)sum;
}

double hg_soft_fma(double a, double b, double c);

#endif
