/* arith.c - arithmetic of the ISA, one C expression an instruction. It is compiled without contraction of a*b+c and
 * runs in the default floating-point environment, so that C's float and double are binary32 and binary64 exactly. */
#include "atlas/arith.h"

#include "atlas/exact.h"

#include <assert.h>
#include <float.h>
#include <math.h>

static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must be done in float: 32-bit x86 needs -msse2 -mfpmath=sse");

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static uint64_t multiply_high(atlas_type type, uint64_t a, uint64_t b) {
  unsigned bits = atlas_type_bits(type);
  if (bits < 64) {
    if (atlas_kind(type) == ATLAS_KIND_UINT) return a * b >> bits;
    return (uint64_t)((atlas_to_i64(type, a) * atlas_to_i64(type, b)) >> bits);
  }
  uint64_t a_low = a & 0xffffffff, a_high = a >> 32, b_low = b & 0xffffffff, b_high = b >> 32;
  uint64_t middle = a_high * b_low + (a_low * b_low >> 32);
  uint64_t low_middle = (middle & 0xffffffff) + a_low * b_high;
  uint64_t high = a_high * b_high + (middle >> 32) + (low_middle >> 32);
  if (atlas_kind(type) == ATLAS_KIND_SINT) { /* as unsigned, a negative factor counts 2^64 too much */
    if (a >> 63) high -= b;
    if (b >> 63) high -= a;
  }
  return high;
}

static uint64_t divide(atlas_type type, uint64_t a, uint64_t b) {
  if (b == 0) return 0;
  if (atlas_kind(type) == ATLAS_KIND_UINT) return a / b;
  int64_t divisor = atlas_to_i64(type, b);
  if (divisor == -1) return 0 - a; /* MIN / -1 = MIN, without the trap of C */
  return (uint64_t)(atlas_to_i64(type, a) / divisor);
}

static uint64_t remainder_of(atlas_type type, uint64_t a, uint64_t b) {
  if (b == 0) return a;
  if (atlas_kind(type) == ATLAS_KIND_UINT) return a % b;
  int64_t divisor = atlas_to_i64(type, b);
  return divisor == -1 ? 0 : (uint64_t)(atlas_to_i64(type, a) % divisor);
}

static int less(atlas_type type, uint64_t a, uint64_t b) {
  return atlas_kind(type) == ATLAS_KIND_UINT ? a < b : atlas_to_i64(type, a) < atlas_to_i64(type, b);
}

static uint64_t shift_right(atlas_type type, uint64_t a, unsigned count) {
  if (atlas_kind(type) == ATLAS_KIND_UINT) return a >> count;
  int64_t value = atlas_to_i64(type, a); /* C leaves >> of a negative number to the compiler */
  return value < 0 ? ~(~(uint64_t)value >> count) : (uint64_t)value >> count;
}

static unsigned population(uint64_t a) {
  unsigned count = 0;
  for (; a != 0; a &= a - 1) count++;
  return count;
}

static unsigned leading_zeros(uint64_t a, unsigned bits) {
  unsigned count = 0;
  while (count < bits && !(a >> (bits - 1 - count) & 1)) count++;
  return count;
}

static unsigned trailing_zeros(uint64_t a, unsigned bits) {
  unsigned count = 0;
  while (count < bits && !(a >> count & 1)) count++;
  return count;
}

static uint64_t reverse_bits(uint64_t a, unsigned bits) {
  uint64_t reversed = 0;
  for (unsigned i = 0; i < bits; i++) reversed |= (a >> i & 1) << (bits - 1 - i);
  return reversed;
}

/* Dot product of the four bytes of two words. */
static uint64_t dot_product(uint64_t a, atlas_type of_a, uint64_t b, atlas_type of_b) {
  int64_t sum = 0;
  for (unsigned k = 0; k < 32; k += 8) sum += atlas_to_i64(of_a, a >> k & 0xff) * atlas_to_i64(of_b, b >> k & 0xff);
  return (uint64_t)sum;
}

static uint64_t integer_arith(uint32_t op, atlas_type type, uint64_t a, uint64_t b, uint64_t c) {
  unsigned bits = atlas_type_bits(type);
  switch (op) {
  case ATLAS_OP_add: return a + b;
  case ATLAS_OP_sub: return a - b;
  case ATLAS_OP_mul: return a * b;
  case ATLAS_OP_mulhi: return multiply_high(type, a, b);
  case ATLAS_OP_div: return divide(type, a, b);
  case ATLAS_OP_rem: return remainder_of(type, a, b);
  case ATLAS_OP_mad: return a * b + c;
  case ATLAS_OP_min: return less(type, a, b) ? a : b;
  case ATLAS_OP_max: return less(type, a, b) ? b : a;
  case ATLAS_OP_abs: return atlas_to_i64(type, a) < 0 ? 0 - a : a;
  case ATLAS_OP_neg: return 0 - a;
  case ATLAS_OP_sign: return less(type, a, 0) ? UINT64_MAX : a != 0;
  case ATLAS_OP_and: return a & b;
  case ATLAS_OP_or: return a | b;
  case ATLAS_OP_xor: return a ^ b;
  case ATLAS_OP_not: return ~a;
  case ATLAS_OP_shl: return a << (b & (bits - 1));
  case ATLAS_OP_shr: return shift_right(type, a, (unsigned)(b & (bits - 1)));
  case ATLAS_OP_popc: return population(a);
  case ATLAS_OP_clz: return leading_zeros(a, bits);
  case ATLAS_OP_ctz: return trailing_zeros(a, bits);
  case ATLAS_OP_brev: return reverse_bits(a, bits);
  case ATLAS_OP_dot4_ss: return c + dot_product(a, ATLAS_i8, b, ATLAS_i8);
  case ATLAS_OP_dot4_uu: return c + dot_product(a, ATLAS_u8, b, ATLAS_u8);
  case ATLAS_OP_dot4_us: return c + dot_product(a, ATLAS_u8, b, ATLAS_i8);
  default: return 0; /* the verifier lets nothing else through */
  }
}

/* ---- floating point -------------------------------------------------------------------------------------------------
 * f32 and f64 in their own arithmetic; f16 and bf16 in that of f32, rounded once more to the type. */

static float minimum_f32(float a, float b) {
  if (a != a || b != b) return NAN;
  if (a == b) return signbit(a) ? a : b; /* -0 < +0 */
  return a < b ? a : b;
}

static double minimum_f64(double a, double b) {
  if (a != a || b != b) return NAN;
  if (a == b) return signbit(a) ? a : b;
  return a < b ? a : b;
}

static float f32_arith(uint32_t op, float a, float b, float c) {
  switch (op) {
  case ATLAS_OP_add: return a + b;
  case ATLAS_OP_sub: return a - b;
  case ATLAS_OP_mul: return a * b;
  case ATLAS_OP_div: return a / b;
  case ATLAS_OP_mad:
  case ATLAS_OP_fma: return atlas_fma_f32(a, b, c);
  case ATLAS_OP_min: return minimum_f32(a, b);
  case ATLAS_OP_max: return -minimum_f32(-a, -b);
  case ATLAS_OP_relu: return -minimum_f32(-a, -0.0f);
  case ATLAS_OP_sign: return a != a ? a : (float)((a > 0) - (a < 0));
  case ATLAS_OP_sqrt: return sqrtf(a);
  case ATLAS_OP_recip: return 1.0f / a;
  case ATLAS_OP_floor: return atlas_floor_f32(a);
  case ATLAS_OP_ceil: return atlas_ceil_f32(a);
  case ATLAS_OP_trunc: return atlas_trunc_f32(a);
  case ATLAS_OP_round: return atlas_rint_f32(a);
  default: return 0;
  }
}

static double f64_arith(uint32_t op, double a, double b, double c) {
  switch (op) {
  case ATLAS_OP_add: return a + b;
  case ATLAS_OP_sub: return a - b;
  case ATLAS_OP_mul: return a * b;
  case ATLAS_OP_div: return a / b;
  case ATLAS_OP_mad:
  case ATLAS_OP_fma: return atlas_fma_f64(a, b, c);
  case ATLAS_OP_min: return minimum_f64(a, b);
  case ATLAS_OP_max: return -minimum_f64(-a, -b);
  case ATLAS_OP_relu: return -minimum_f64(-a, -0.0);
  case ATLAS_OP_sign: return a != a ? a : (double)((a > 0) - (a < 0));
  case ATLAS_OP_sqrt: return sqrt(a);
  case ATLAS_OP_recip: return 1.0 / a;
  case ATLAS_OP_floor: return atlas_floor_f64(a);
  case ATLAS_OP_ceil: return atlas_ceil_f64(a);
  case ATLAS_OP_trunc: return atlas_trunc_f64(a);
  case ATLAS_OP_round: return atlas_rint_f64(a);
  default: return 0;
  }
}

static float f16_to_f32(atlas_type type, uint64_t bits) { return (float)atlas_to_f64(type, bits); }

static uint64_t float_arith(uint32_t op, atlas_type type, uint64_t a, uint64_t b, uint64_t c) {
  if (type == ATLAS_f32) return atlas_bits_of_f32(f32_arith(op, atlas_as_f32(a), atlas_as_f32(b), atlas_as_f32(c)));
  if (type == ATLAS_f64) return atlas_bits_of_f64(f64_arith(op, atlas_as_f64(a), atlas_as_f64(b), atlas_as_f64(c)));
  float result = f32_arith(op, f16_to_f32(type, a), f16_to_f32(type, b), f16_to_f32(type, c));
  return atlas_round_f64(type, (double)result);
}

/* abs, neg and copysign touch the sign bit only, so that NaN payloads survive. */
static uint64_t sign_bit_op(uint32_t op, atlas_type type, uint64_t a, uint64_t b) {
  uint64_t sign = UINT64_C(1) << (atlas_type_bits(type) - 1);
  switch (op) {
  case ATLAS_OP_abs: return a & ~sign;
  case ATLAS_OP_neg: return a ^ sign;
  default: return (a & ~sign) | (b & sign);
  }
}

uint64_t atlas_arith(uint32_t op, atlas_type type, uint64_t a, uint64_t b, uint64_t c) {
  if (atlas_is_integer(type)) return integer_arith(op, type, a, b, c) & atlas_mask(type);
  if (op == ATLAS_OP_abs || op == ATLAS_OP_neg || op == ATLAS_OP_copysign) return sign_bit_op(op, type, a, b);
  return float_arith(op, type, a, b, c);
}

uint64_t atlas_update(uint32_t op, atlas_type type, uint64_t old, uint64_t a, uint64_t b) {
  switch (op) {
  case ATLAS_OP_atom_add: return atlas_arith(ATLAS_OP_add, type, old, a, 0);
  case ATLAS_OP_atom_min: return atlas_arith(ATLAS_OP_min, type, old, a, 0);
  case ATLAS_OP_atom_max: return atlas_arith(ATLAS_OP_max, type, old, a, 0);
  case ATLAS_OP_atom_and: return old & a;
  case ATLAS_OP_atom_or: return old | a;
  case ATLAS_OP_atom_xor: return old ^ a;
  case ATLAS_OP_atom_cas: return old == a ? b : old;
  default: return a; /* exch */
  }
}

static int compare_numbers(uint32_t op, int is_less, int is_equal, int is_greater) {
  switch (op) {
  case ATLAS_OP_set_eq: return is_equal;
  case ATLAS_OP_set_ne: return !is_equal;
  case ATLAS_OP_set_lt: return is_less;
  case ATLAS_OP_set_le: return is_less || is_equal;
  case ATLAS_OP_set_gt: return is_greater;
  case ATLAS_OP_set_ge: return is_greater || is_equal;
  case ATLAS_OP_set_num: return is_less || is_equal || is_greater; /* NaN is none of the three */
  default: return !(is_less || is_equal || is_greater);
  }
}

uint16_t atlas_combining_op(uint32_t op) {
  switch (op) {
  case ATLAS_OP_reduce_mul: return ATLAS_OP_mul;
  case ATLAS_OP_reduce_min: return ATLAS_OP_min;
  case ATLAS_OP_reduce_max: return ATLAS_OP_max;
  default: return ATLAS_OP_add;
  }
}

int atlas_compare(uint32_t op, atlas_type type, uint64_t a, uint64_t b) {
  if (atlas_is_integer(type)) return compare_numbers(op, less(type, a, b), a == b, less(type, b, a));
  double x = atlas_to_f64(type, a), y = atlas_to_f64(type, b);
  return compare_numbers(op, x < y, x == y, x > y);
}

int64_t atlas_index_sum(atlas_type type, uint64_t index, int64_t displacement) {
  int is_huge = type == ATLAS_u64 && index > INT64_MAX; /* 2^63 and more: out of bounds unless brought back below */
  if (is_huge) {
    uint64_t sum = index + (uint64_t)displacement;
    return displacement < 0 && sum <= INT64_MAX ? (int64_t)sum : INT64_MAX;
  }
  int64_t value = atlas_to_i64(type, index);
  if (displacement > 0 && value > INT64_MAX - displacement) return INT64_MAX;
  if (displacement < 0 && value < INT64_MIN - displacement) return INT64_MIN;
  return value + displacement;
}
