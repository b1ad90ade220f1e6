/* value.c - the conversions of the ISA. All parameters of a floating-point format are in one row of `format_of`. */
#include "atlas/value.h"

#include <math.h>

typedef struct format {
  int fraction_bits, bias;
  uint64_t overflow; /* what a magnitude too large becomes: infinity, or NaN where the format has no infinity */
  uint64_t nan;
} format;

static format format_of(atlas_type type) {
  switch (type) {
  case ATLAS_f8e4m3: return (format){3, 7, 0x7f, 0x7f};
  case ATLAS_f8e5m2: return (format){2, 15, 0x7c, 0x7e};
  case ATLAS_f16: return (format){10, 15, 0x7c00, 0x7e00};
  case ATLAS_bf16: return (format){7, 127, 0x7f80, 0x7fc0};
  case ATLAS_f32: return (format){23, 127, 0x7f800000, 0x7fc00000};
  default: return (format){52, 1023, UINT64_C(0x7ff0000000000000), UINT64_C(0x7ff8000000000000)};
  }
}

uint64_t atlas_canonical_nan(atlas_type type) { return format_of(type).nan; }

uint64_t atlas_bits_of_f32(float value) {
  uint32_t bits;
  if (value != value) return 0x7fc00000u;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

uint64_t atlas_bits_of_f64(double value) {
  uint64_t bits;
  if (value != value) return UINT64_C(0x7ff8000000000000);
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* 2^exponent, of the exponents of normal numbers. */
static double power_of_two(int exponent) { return atlas_as_f64((uint64_t)(exponent + 1023) << 52); }

atlas_parts atlas_parts_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  int field = (int)(bits >> 52 & 0x7ff);
  uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
  if (field == 0) return (atlas_parts){(int)(bits >> 63), -1074, fraction};
  return (atlas_parts){(int)(bits >> 63), field - 1075, fraction | UINT64_C(1) << 52};
}

/* value / 2^shift to an integer, ties to even. */
static uint64_t shift_round(uint64_t value, int shift) {
  if (shift <= 0) return value << -shift;
  if (shift > 64) return 0;
  uint64_t quotient = shift == 64 ? 0 : value >> shift;
  uint64_t rest = shift == 64 ? value : value & ((UINT64_C(1) << shift) - 1);
  uint64_t half = UINT64_C(1) << (shift - 1);
  if (rest > half || (rest == half && quotient & 1)) quotient++;
  return quotient;
}

uint64_t atlas_pack(atlas_type type, int negative, uint64_t significand, int exponent) {
  format f = format_of(type);
  uint64_t sign = negative ? UINT64_C(1) << (atlas_type_bits(type) - 1) : 0;
  if (significand == 0) return sign;
  int top = exponent + atlas_highest_bit(significand), lowest = 1 - f.bias;
  int normal = top > lowest ? top : lowest; /* below the lowest exponent the spacing stays: gradual underflow */
  uint64_t too_large = f.overflow == f.nan ? f.nan : sign | f.overflow; /* the canonical NaN has no sign */
  if (normal > f.bias + 1) return too_large;
  uint64_t rounded = shift_round(significand, normal - f.fraction_bits - exponent);
  /* The leading bit, where there is one, adds 1 to the exponent field; so does a carry out of the fraction. */
  uint64_t bits = ((uint64_t)(normal + f.bias - 1) << f.fraction_bits) + rounded;
  return bits >= f.overflow ? too_large : sign | bits;
}

/* A storage or 16-bit format has at most 11 significant bits, so a double holds every one of its values. */
static double unpack(atlas_type type, uint64_t bits) {
  format f = format_of(type);
  int width = (int)atlas_type_bits(type);
  uint64_t magnitude = bits & ((UINT64_C(1) << (width - 1)) - 1);
  double sign = bits >> (width - 1) & 1 ? -1.0 : 1.0;
  if (magnitude > f.overflow || magnitude == f.nan) return NAN;
  if (magnitude == f.overflow) return sign * INFINITY;
  int exponent = (int)(magnitude >> f.fraction_bits);
  uint64_t fraction = magnitude & ((UINT64_C(1) << f.fraction_bits) - 1);
  if (exponent > 0) fraction |= UINT64_C(1) << f.fraction_bits;
  else exponent = 1;
  return sign * (double)fraction * power_of_two(exponent - f.bias - f.fraction_bits);
}

int64_t atlas_to_i64(atlas_type type, uint64_t bits) {
  switch (type) {
  case ATLAS_i8: return (int8_t)bits;
  case ATLAS_i16: return (int16_t)bits;
  case ATLAS_i32: return (int32_t)bits;
  default: return (int64_t)bits;
  }
}

double atlas_to_f64(atlas_type type, uint64_t bits) {
  switch (type) {
  case ATLAS_f64: return atlas_as_f64(bits);
  case ATLAS_f32: return (double)atlas_as_f32(bits);
  case ATLAS_f16:
  case ATLAS_bf16:
  case ATLAS_f8e4m3:
  case ATLAS_f8e5m2: return unpack(type, bits);
  case ATLAS_bool: return bits != 0 ? 1.0 : 0.0;
  case ATLAS_u64: return (double)bits;
  default: return (double)atlas_to_i64(type, bits);
  }
}

uint64_t atlas_round_f64(atlas_type type, double value) {
  if (value != value) return atlas_canonical_nan(type);
  if (type == ATLAS_f64) return atlas_bits_of_f64(value);
  if (type == ATLAS_f32) return atlas_bits_of_f32((float)value);
  atlas_parts parts = atlas_parts_of(value); /* of infinity: 2^1024, which is infinite in every smaller format */
  return atlas_pack(type, parts.negative, parts.significand, parts.exponent);
}

/* Truncates toward zero, saturates, NaN gives 0. */
static uint64_t f64_to_integer(atlas_type to, double value) {
  int bits = (int)atlas_type_bits(to);
  if (value != value) return 0;
  if (atlas_kind(to) == ATLAS_KIND_UINT) {
    if (value <= 0) return 0;
    if (value >= power_of_two(bits)) return atlas_mask(to);
    return (uint64_t)value;
  }
  if (value >= power_of_two(bits - 1)) return atlas_mask(to) >> 1;
  if (value <= -power_of_two(bits - 1)) return UINT64_C(1) << (bits - 1);
  return (uint64_t)(int64_t)value & atlas_mask(to);
}

/* Integers go to every floating-point type directly, so that they are rounded once. */
static uint64_t integer_to_float(atlas_type to, atlas_type from, uint64_t bits) {
  int64_t value = atlas_to_i64(from, bits);
  int negative = atlas_kind(from) == ATLAS_KIND_SINT && value < 0;
  uint64_t magnitude = negative ? 0 - (uint64_t)value : (uint64_t)value;
  return atlas_pack(to, negative, magnitude, 0);
}

uint64_t atlas_convert(atlas_type to, atlas_type from, uint64_t bits) {
  int to_float = !atlas_is_integer(to) && to != ATLAS_bool;
  if (to == ATLAS_bool) { /* different from zero, which a NaN is */
    if (atlas_is_integer(from) || from == ATLAS_bool) return bits != 0;
    return !(atlas_to_f64(from, bits) == 0.0);
  }
  if (from == ATLAS_bool) {
    bits = bits != 0;
    from = ATLAS_u8;
  }
  if (atlas_is_integer(from)) {
    if (to_float) return integer_to_float(to, from, bits);
    return (uint64_t)atlas_to_i64(from, bits) & atlas_mask(to);
  }
  double value = atlas_to_f64(from, bits);
  return to_float ? atlas_round_f64(to, value) : f64_to_integer(to, value);
}
