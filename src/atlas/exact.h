/* exact.h - fma and rounding to integers, bit for bit as the ISA defines them: some C libraries have an fma that rounds
 * twice. Of their floating-point functions only sqrt and sqrtf may be called (see docs/numerics.md). */
#ifndef HG_ATLAS_EXACT_H
#define HG_ATLAS_EXACT_H

#include <stdint.h>
#include <string.h>

/* ---- a * b + c, rounded once ------------------------------------------------------------------------------------- */

/* For machines without the instruction. The product of two f32 is exact in f64. The sum with c is rounded to odd there
 * (the last bit set where it is not exact), so that rounding it once more, to f32, is right: 53 >= 2 * 24 + 2 (Boldo
 * and Melquiond 2008). */
static inline float atlas_soft_fma_f32(float a, float b, float c) {
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

double atlas_soft_fma_f64(double a, double b, double c);

#if defined __GNUC__ && (defined __FMA__ || defined __aarch64__) /* compilers write the instruction */
static inline float atlas_fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double atlas_fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
static inline float atlas_fma_f32(float a, float b, float c) { return atlas_soft_fma_f32(a, b, c); }
static inline double atlas_fma_f64(double a, double b, double c) { return atlas_soft_fma_f64(a, b, c); }
#endif

/* ---- rounding to integers ------------------------------------------------------------------------------------------
 * Free of branches, so that compilers turn it into vector code. Adding 2^23 (2^52) rounds a smaller magnitude to an
 * integer, ties to even; larger ones are integers already. */

#define ATLAS_ROUNDING(t, C, U, sign_bit, limit)                                  \
  static inline U atlas_raw_##t(C value) {                                        \
    U bits;                                                                       \
    memcpy(&bits, &value, sizeof bits);                                           \
    return bits;                                                                  \
  }                                                                               \
  static inline C atlas_from_raw_##t(U bits) {                                    \
    C value;                                                                      \
    memcpy(&value, &bits, sizeof value);                                          \
    return value;                                                                 \
  }                                                                               \
  static inline C atlas_rint_##t(C a) {                                           \
    U sign = atlas_raw_##t(a) & (sign_bit);                                       \
    C magnitude = atlas_from_raw_##t(atlas_raw_##t(a) ^ sign);                    \
    C rounded = (magnitude + (limit)) - (limit);                                  \
    return magnitude < (limit) ? atlas_from_raw_##t(atlas_raw_##t(rounded) | sign) : a; \
  }                                                                               \
  static inline C atlas_floor_##t(C a) {                                          \
    C rounded = atlas_rint_##t(a);                                                \
    return rounded > a ? rounded - 1 : rounded;                                   \
  }                                                                               \
  static inline C atlas_ceil_##t(C a) { /* of (-1, 0): -0 */                      \
    C rounded = atlas_rint_##t(a);                                                \
    C up = atlas_from_raw_##t(atlas_raw_##t(rounded + 1) | (atlas_raw_##t(a) & (sign_bit))); \
    return rounded < a ? up : rounded;                                            \
  }                                                                               \
  static inline C atlas_trunc_##t(C a) {                                          \
    U sign = atlas_raw_##t(a) & (sign_bit);                                       \
    C magnitude = atlas_floor_##t(atlas_from_raw_##t(atlas_raw_##t(a) ^ sign));   \
    return atlas_from_raw_##t(atlas_raw_##t(magnitude) | sign);                   \
  }
ATLAS_ROUNDING(f32, float, uint32_t, 0x80000000u, 0x1p23f)
ATLAS_ROUNDING(f64, double, uint64_t, UINT64_C(0x8000000000000000), 0x1p52)
#undef ATLAS_ROUNDING

#endif
