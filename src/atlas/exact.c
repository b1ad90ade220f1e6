/* exact.c - a * b + c of f64, rounded once, in integers of 128 bits. */
#include "atlas/exact.h"

#include "atlas/value.h"

#include <math.h>
#include <stdlib.h>

typedef struct wide {
  uint64_t high, low;
} wide;

static wide multiply(uint64_t a, uint64_t b) {
  uint64_t a_low = a & 0xffffffff, a_high = a >> 32, b_low = b & 0xffffffff, b_high = b >> 32;
  uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  uint64_t low_middle = (middle & 0xffffffff) + a_low * b_high;
  return (wide){a_high * b_high + (middle >> 32) + (low_middle >> 32), a * b};
}

static wide shift_left(wide a, int count) {
  if (count == 0) return a;
  if (count >= 64) return (wide){a.low << (count - 64), 0};
  return (wide){a.high << count | a.low >> (64 - count), a.low << count};
}

/* Bits that are shifted out are collected in bit 0. */
static wide shift_right_sticky(wide a, int count) {
  if (count == 0) return a;
  if (count >= 128) return (wide){0, (a.high | a.low) != 0};
  if (count >= 64) {
    uint64_t lost = a.low | (count > 64 ? a.high << (128 - count) : 0);
    return (wide){0, a.high >> (count - 64) | (lost != 0)};
  }
  return (wide){a.high >> count, a.high << (64 - count) | a.low >> count | (a.low << (64 - count) != 0)};
}

static int top_bit(wide a) { return a.high != 0 ? 64 + atlas_highest_bit(a.high) : atlas_highest_bit(a.low); }

static int is_below(wide a, wide b) { return a.high != b.high ? a.high < b.high : a.low < b.low; }

static wide subtract(wide a, wide b) { return (wide){a.high - b.high - (a.low < b.low), a.low - b.low}; }

static wide add(wide a, wide b) { return (wide){a.high + b.high + (a.low + b.low < b.low), a.low + b.low}; }

/* Two numbers that are not zero. Both are shifted left until bit 126 is the top bit of the larger; bits that the
 * smaller loses then are far below the last bit of the result. */
static double sum_of(wide a, int a_exponent, int a_negative, wide b, int b_exponent, int b_negative) {
  int a_shift = 126 - top_bit(a), b_shift = 126 - top_bit(b);
  a = shift_left(a, a_shift);
  b = shift_left(b, b_shift);
  a_exponent -= a_shift;
  b_exponent -= b_shift;
  int b_is_larger = a_exponent < b_exponent || (a_exponent == b_exponent && is_below(a, b));
  int exponent = b_is_larger ? b_exponent : a_exponent, negative = b_is_larger ? b_negative : a_negative;
  wide large = b_is_larger ? b : a;
  wide small = shift_right_sticky(b_is_larger ? a : b, abs(a_exponent - b_exponent));
  wide sum = a_negative == b_negative ? add(large, small) : subtract(large, small);
  if ((sum.high | sum.low) == 0) return 0.0;
  int shift = 127 - top_bit(sum);
  sum = shift_left(sum, shift);
  uint64_t significand = sum.high | (sum.low != 0);
  return atlas_as_f64(atlas_pack(ATLAS_f64, negative, significand, exponent - shift + 64));
}

double atlas_soft_fma_f64(double a, double b, double c) {
  if (!isfinite(a) || !isfinite(b) || !isfinite(c)) return isfinite(a) && isfinite(b) ? c : a * b + c;
  if (a == 0 || b == 0) return a * b + c; /* the product is exact */
  atlas_parts x = atlas_parts_of(a), y = atlas_parts_of(b), z = atlas_parts_of(c);
  wide product = multiply(x.significand, y.significand);
  int exponent = x.exponent + y.exponent, negative = x.negative ^ y.negative;
  if (c != 0) return sum_of(product, exponent, negative, (wide){0, z.significand}, z.exponent, z.negative);
  int shift = 127 - top_bit(product);
  product = shift_left(product, shift);
  return atlas_as_f64(atlas_pack(ATLAS_f64, negative, product.high | (product.low != 0), exponent - shift + 64));
}
