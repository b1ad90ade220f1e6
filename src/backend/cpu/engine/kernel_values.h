/* kernel_values.h - what one lane of a kernel computes, where that is more than an operator of C. Everything is free of
 * branches, traps and undefined behaviour for any bits, so that compilers turn it into vector code.
 *
 * A NaN that arithmetic makes may have any payload here: see VECTOR_CANON. */
#ifndef HG_ENGINE_KERNEL_VALUES_H
#define HG_ENGINE_KERNEL_VALUES_H

#include "atlas/exact.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The C type of elements, and a wider one in which C's integer promotions are harmless. */
typedef int8_t T_i8;
typedef int16_t T_i16;
typedef int32_t T_i32;
typedef int64_t T_i64;
typedef uint8_t T_u8, T_bool, T_f8e4m3, T_f8e5m2;
typedef uint16_t T_u16, T_f16, T_bf16;
typedef uint32_t T_u32;
typedef uint64_t T_u64;
typedef float T_f32;
typedef double T_f64;
typedef uint32_t W_u8, W_u16, W_u32;
typedef uint64_t W_u64;
typedef float W_f32;
typedef double W_f64;

static inline uint32_t bits_f32(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline float from_bits_f32(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
static inline uint64_t bits_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
static inline double from_bits_f64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

#define MULHI_NARROW(t, wide, bits) \
  static inline T_##t mulhi_##t(T_##t a, T_##t b) { return (T_##t)((wide)((wide)a * (wide)b) >> (bits)); }
MULHI_NARROW(u8, uint32_t, 8)
MULHI_NARROW(i8, int32_t, 8)
MULHI_NARROW(u16, uint32_t, 16)
MULHI_NARROW(i16, int32_t, 16)
MULHI_NARROW(u32, uint64_t, 32)
MULHI_NARROW(i32, int64_t, 32)

static inline uint64_t mulhi_u64(uint64_t a, uint64_t b) {
  uint64_t a_low = a & 0xffffffff, a_high = a >> 32, b_low = b & 0xffffffff, b_high = b >> 32;
  uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  uint64_t low_middle = (middle & 0xffffffff) + a_low * b_high;
  return a_high * b_high + (middle >> 32) + (low_middle >> 32);
}
static inline int64_t mulhi_i64(int64_t a, int64_t b) { /* read as unsigned, a negative factor is 2^64 too large */
  uint64_t high = mulhi_u64((uint64_t)a, (uint64_t)b);
  return (int64_t)(high - (a < 0 ? (uint64_t)b : 0) - (b < 0 ? (uint64_t)a : 0));
}

/* Quotients by a float division. a / b differs from the nearest other integer by at least 1/b, a fraction 1/a of it, so
 * a format with twice as many bits as a never rounds across an integer. (f32 has 24, f64 has 53.) */
#define DIVIDE_UNSIGNED(t, quotient_type, F)                 \
  static inline T_##t div_##t(T_##t a, T_##t b) {            \
    F divisor = b == 0 ? (F)1 : (F)b;                        \
    T_##t quotient = (T_##t)(quotient_type)((F)a / divisor); \
    return b == 0 ? 0 : quotient;                            \
  }                                                          \
  static inline T_##t rem_##t(T_##t a, T_##t b) { return (T_##t)(a - (T_##t)((quotient_type)div_##t(a, b) * b)); }
DIVIDE_UNSIGNED(u8, uint32_t, float)
DIVIDE_UNSIGNED(u16, uint32_t, float)
DIVIDE_UNSIGNED(u32, uint32_t, double)

/* By -1: 0 - a, because MIN / -1 does not fit. */
#define DIVIDE_SIGNED(t, U, F)                                                     \
  static inline T_##t div_##t(T_##t a, T_##t b) {                                  \
    F divisor = b == 0 || b == -1 ? (F)1 : (F)b;                                   \
    T_##t quotient = (T_##t)(int32_t)((F)a / divisor);                             \
    T_##t negated = (T_##t)(U)(0 - (uint32_t)a);                                   \
    return b == 0 ? 0 : b == -1 ? negated : quotient;                              \
  }                                                                                \
  static inline T_##t rem_##t(T_##t a, T_##t b) {                                  \
    return (T_##t)(U)((uint32_t)a - (uint32_t)div_##t(a, b) * (uint32_t)b);        \
  }
DIVIDE_SIGNED(i8, uint8_t, float)
DIVIDE_SIGNED(i16, uint16_t, float)
DIVIDE_SIGNED(i32, uint32_t, double)

static inline uint64_t div_u64(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
static inline uint64_t rem_u64(uint64_t a, uint64_t b) { return b == 0 ? a : a % b; }
static inline int64_t div_i64(int64_t a, int64_t b) {
  return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}
static inline int64_t rem_i64(int64_t a, int64_t b) { return b == 0 ? a : b == -1 ? 0 : a % b; }

static inline int32_t signed_byte(uint32_t word, unsigned k) { return (int32_t)(word << (24 - 8 * k)) >> 24; }
static inline int32_t unsigned_byte(uint32_t word, unsigned k) { return (int32_t)(word >> 8 * k & 0xff); }

/* Counts bits by adding neighbours, which vectorises without an instruction for it. */
#define BIT_COUNTS(t, bits)                                                        \
  static inline T_##t popc_##t(T_##t a) {                                          \
    W_##t x = a, ones = (W_##t)(T_##t)UINT64_MAX;                                  \
    x = x - (x >> 1 & ones / 3);                                                   \
    x = (x & ones / 5) + (x >> 2 & ones / 5);                                      \
    x = (x + (x >> 4)) & ones / 17;                                                \
    return (T_##t)((T_##t)(x * (ones / 255)) >> ((bits) - 8));                     \
  }                                                                                \
  static inline T_##t clz_##t(T_##t a) {                                           \
    W_##t x = a;                                                                   \
    x |= x >> 1;                                                                   \
    x |= x >> 2;                                                                   \
    x |= x >> 4;                                                                   \
    if ((bits) > 8) x |= x >> ((bits) / 8 > 1 ? 8 : 0);                            \
    if ((bits) > 16) x |= x >> ((bits) > 16 ? 16 : 0);                             \
    if ((bits) > 32) x |= x >> ((bits) > 32 ? 32 : 0);                             \
    return popc_##t((T_##t)~x);                                                    \
  }                                                                                \
  static inline T_##t ctz_##t(T_##t a) {                                           \
    W_##t x = a;                                                                   \
    return popc_##t((T_##t)(~x & (x - 1)));                                        \
  }                                                                                \
  static inline T_##t brev_##t(T_##t a) {                                          \
    W_##t x = a, ones = (W_##t)(T_##t)UINT64_MAX;                                  \
    x = (x >> 1 & ones / 3) | (x & ones / 3) << 1;                                 \
    x = (x >> 2 & ones / 5) | (x & ones / 5) << 2;                                 \
    x = (x >> 4 & ones / 17) | (x & ones / 17) << 4;                               \
    if ((bits) > 8) x = (x >> ((bits) > 8 ? 8 : 0) & ones / 257) | (x & ones / 257) << ((bits) > 8 ? 8 : 0);          \
    if ((bits) > 16) x = (x >> ((bits) > 16 ? 16 : 0) & ones / 65537) | (x & ones / 65537) << ((bits) > 16 ? 16 : 0); \
    if ((bits) > 32) x = x >> ((bits) > 32 ? 32 : 0) | x << ((bits) > 32 ? 32 : 0); \
    return (T_##t)x;                                                               \
  }
BIT_COUNTS(u8, 8)
BIT_COUNTS(u16, 16)
BIT_COUNTS(u32, 32)
BIT_COUNTS(u64, 64)

/* ---- floating point ---------------------------------------------------------------------------------------------- */

static inline float minimum_f32(float a, float b) {
  float zeros = from_bits_f32(bits_f32(a) | bits_f32(b)); /* equal values differ in bits only if they are zeros */
  float smaller = a < b ? a : b;
  float number = a == b ? zeros : smaller;
  return a != a || b != b ? a + b : number;
}
static inline double minimum_f64(double a, double b) {
  double zeros = from_bits_f64(bits_f64(a) | bits_f64(b));
  double smaller = a < b ? a : b;
  double number = a == b ? zeros : smaller;
  return a != a || b != b ? a + b : number;
}
static inline float maximum_f32(float a, float b) {
  float zeros = from_bits_f32(bits_f32(a) & bits_f32(b));
  float larger = a > b ? a : b;
  float number = a == b ? zeros : larger;
  return a != a || b != b ? a + b : number;
}
static inline double maximum_f64(double a, double b) {
  double zeros = from_bits_f64(bits_f64(a) & bits_f64(b));
  double larger = a > b ? a : b;
  double number = a == b ? zeros : larger;
  return a != a || b != b ? a + b : number;
}

static inline float sign_f32(float a) {
  float sign = a > 0 ? 1.0f : a < 0 ? -1.0f : 0.0f;
  return a != a ? a : sign;
}
static inline double sign_f64(double a) {
  double sign = a > 0 ? 1.0 : a < 0 ? -1.0 : 0.0;
  return a != a ? a : sign;
}

#if defined __SSE4_1__ || defined __aarch64__
#define ROUNDING(t, suffix)                                              \
  static inline T_##t floor_##t(T_##t a) { return floor##suffix(a); }    \
  static inline T_##t ceil_##t(T_##t a) { return ceil##suffix(a); }      \
  static inline T_##t trunc_##t(T_##t a) { return trunc##suffix(a); }    \
  static inline T_##t round_##t(T_##t a) { return rint##suffix(a); }
#else
#define ROUNDING(t, suffix)                                                 \
  static inline T_##t floor_##t(T_##t a) { return atlas_floor_##t(a); }     \
  static inline T_##t ceil_##t(T_##t a) { return atlas_ceil_##t(a); }       \
  static inline T_##t trunc_##t(T_##t a) { return atlas_trunc_##t(a); }     \
  static inline T_##t round_##t(T_##t a) { return atlas_rint_##t(a); }
#endif
ROUNDING(f32, f)
ROUNDING(f64, )

/* ---- conversions ------------------------------------------------------------------------------------------------- */

/* Toward zero, saturating, NaN to 0. `low` and `high` are powers of two, exact in F. Values outside are replaced before
 * the conversion, which C does not define for them. */
#define TO_INTEGER(t, F, low, high, minimum, maximum)                      \
  static inline T_##t cvt_##t##_##F(T_##F a) {                             \
    T_##F inside = a >= (T_##F)(low) && a < (T_##F)(high) ? a : (T_##F)0;  \
    T_##t value = (T_##t)inside;                                           \
    value = a >= (T_##F)(high) ? (maximum) : value;                        \
    return a < (T_##F)(low) ? (minimum) : value;                           \
  }
#define TO_INTEGERS(F)                                              \
  TO_INTEGER(i8, F, -0x1p7, 0x1p7, INT8_MIN, INT8_MAX)              \
  TO_INTEGER(i16, F, -0x1p15, 0x1p15, INT16_MIN, INT16_MAX)         \
  TO_INTEGER(i32, F, -0x1p31, 0x1p31, INT32_MIN, INT32_MAX)         \
  TO_INTEGER(i64, F, -0x1p63, 0x1p63, INT64_MIN, INT64_MAX)         \
  TO_INTEGER(u8, F, 0, 0x1p8, 0, UINT8_MAX)                         \
  TO_INTEGER(u16, F, 0, 0x1p16, 0, UINT16_MAX)                      \
  TO_INTEGER(u32, F, 0, 0x1p32, 0, UINT32_MAX)                      \
  TO_INTEGER(u64, F, 0, 0x1p64, 0, UINT64_MAX)
TO_INTEGERS(f32)
TO_INTEGERS(f64)

/* Converts a format of at most 16 bits, with f bits of fraction and a bias, to f32. One exact multiplication corrects
 * the exponent, subnormals included. Magnitudes from `infinity` on get the greatest exponent: infinity has no other
 * bits set; a NaN, which is all that e4m3 has there, has some. */
static inline float widen(uint32_t bits, int width, int f, int bias, uint32_t infinity) {
  uint32_t sign = bits >> (width - 1) << 31, magnitude = bits & ((1u << (width - 1)) - 1);
  float scaled = from_bits_f32(magnitude << (23 - f)) * from_bits_f32((uint32_t)(254 - bias) << 23);
  return from_bits_f32(bits_f32(scaled) | (magnitude >= infinity ? 0x7f800000u : 0) | sign);
}
static inline float cvt_f32_f8e4m3(uint8_t a) { return widen(a, 8, 3, 7, 0x7f); }
static inline float cvt_f32_f8e5m2(uint8_t a) { return widen(a, 8, 2, 15, 0x7c); }
static inline float cvt_f32_bf16(uint16_t a) { return from_bits_f32((uint32_t)a << 16); }
static inline float cvt_f32_f16(uint16_t a) { return widen(a, 16, 10, 15, 0x7c00); }

/* f32 to such a format, rounded once, ties to even. For normal results rounds the bits in place and adjusts the
 * exponent. For subnormal ones adds the power of two whose last place is the format's smallest value. */
static inline uint32_t narrow(float value, int width, int f, int bias, uint32_t overflow, uint32_t nan) {
  uint32_t bits = bits_f32(value), sign = bits >> 31 << (width - 1), magnitude = bits & 0x7fffffff;
  uint32_t rebias = (uint32_t)(127 - bias) << 23, smallest_normal = (uint32_t)(128 - bias) << 23;
  uint32_t half = (1u << (22 - f)) - 1 + (magnitude >> (23 - f) & 1);
  uint32_t normal = (magnitude - rebias + half) >> (23 - f);
  uint32_t aligner = (uint32_t)(127 - bias + 1 + 23 - f) << 23;
  uint32_t tiny =
      bits_f32(from_bits_f32(magnitude < smallest_normal ? magnitude : 0) + from_bits_f32(aligner)) - aligner;
  uint32_t rounded = magnitude < smallest_normal ? tiny : normal;
  rounded = magnitude >= 0x7f800000u || rounded >= overflow ? overflow : rounded;
  rounded = overflow == nan && rounded == nan ? nan : rounded | sign; /* a NaN has no sign */
  return magnitude > 0x7f800000u ? nan : rounded;
}
static inline uint8_t cvt_f8e4m3_f32(float a) { return (uint8_t)narrow(a, 8, 3, 7, 0x7f, 0x7f); }
static inline uint8_t cvt_f8e5m2_f32(float a) { return (uint8_t)narrow(a, 8, 2, 15, 0x7c, 0x7e); }
static inline uint16_t cvt_f16_f32(float a) { return (uint16_t)narrow(a, 16, 10, 15, 0x7c00, 0x7e00); }
static inline uint16_t cvt_bf16_f32(float a) {
  uint32_t bits = bits_f32(a);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return (uint16_t)(a != a ? 0x7fc0 : rounded);
}

/* f64 to such a format: rounds in f64 to the format's precision, or to its smallest value, by adding a number whose
 * last place is that. The remaining conversion is exact, or overflows. */
static inline float round_to(double a, int f, int smallest, int largest) {
  uint64_t sign = bits_f64(a) & UINT64_C(1) << 63, exponent = bits_f64(a) & UINT64_C(0x7ff0000000000000);
  uint64_t least = (uint64_t)(1023 + smallest) << 52, most = (uint64_t)(1023 + largest) << 52;
  exponent = exponent < least ? least : exponent > most ? most : exponent;
  double adder = from_bits_f64(exponent) * (1.5 * (double)(UINT64_C(1) << (52 - f)));
  return (float)from_bits_f64(bits_f64((a + adder) - adder) | sign);
}
/* 64-bit integers as f64, rounded to odd if inexact, so that a later rounding to fewer bits is right. */
static inline double odd_u64(uint64_t a) {
  uint64_t odd = (((a & 2047) + 2047) | a) & ~UINT64_C(2047);
  return (double)(a >> 53 != 0 ? odd : a);
}
static inline double odd_i64(int64_t a) {
  uint64_t bits = (uint64_t)a, odd = (((bits & 2047) + 2047) | bits) & ~UINT64_C(2047);
  return (double)(int64_t)((bits + (UINT64_C(1) << 53)) >> 54 != 0 ? odd : bits);
}
#define TO_SMALL_FROM(t, wide)                                                                                       \
  static inline uint16_t cvt_f16_##t(T_##t a) { return cvt_f16_f32(round_to(wide, 10, -14, 20)); }                   \
  static inline uint16_t cvt_bf16_##t(T_##t a) { return cvt_bf16_f32(round_to(wide, 7, -126, 200)); }                \
  static inline uint8_t cvt_f8e4m3_##t(T_##t a) { return cvt_f8e4m3_f32(round_to(wide, 3, -6, 20)); }                \
  static inline uint8_t cvt_f8e5m2_##t(T_##t a) { return cvt_f8e5m2_f32(round_to(wide, 2, -14, 20)); }
TO_SMALL_FROM(f64, a)
TO_SMALL_FROM(i32, (double)a)
TO_SMALL_FROM(u32, (double)a)
TO_SMALL_FROM(i64, odd_i64(a))
TO_SMALL_FROM(u64, odd_u64(a))

/* Any of these types as a type that C converts. */
#define PLAIN(t) \
  static inline T_##t plain_##t(T_##t a) { return a; }
PLAIN(i8)
PLAIN(i16)
PLAIN(i32)
PLAIN(i64)
PLAIN(u8)
PLAIN(u16)
PLAIN(u32)
PLAIN(u64)
PLAIN(f32)
PLAIN(f64)
static inline uint8_t plain_bool(uint8_t a) { return a != 0; }
#define FROM_PLAIN(t) \
  static inline float cvt_f32_##t(T_##t a) { return (float)plain_##t(a); }    \
  static inline double cvt_f64_##t(T_##t a) { return (double)plain_##t(a); }  \
  static inline uint8_t cvt_bool_##t(T_##t a) { return plain_##t(a) != 0; }
FROM_PLAIN(i8)
FROM_PLAIN(i16)
FROM_PLAIN(i32)
FROM_PLAIN(i64)
FROM_PLAIN(u8)
FROM_PLAIN(u16)
FROM_PLAIN(u32)
FROM_PLAIN(u64)
FROM_PLAIN(f32)
FROM_PLAIN(f64)
FROM_PLAIN(bool)

#endif
