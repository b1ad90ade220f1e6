/* ptx_value.c - what PTX computes: integers, floats as the hardware does them (a NaN result is 0x7fffffff, not the one
 * that the ISA asks for), conversions. */
#include "ptx_value.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide_u;
__extension__ typedef __int128 wide_s;

/* ---- floats ------------------------------------------------------------------------------------------------------ */

static uint64_t nan_of(ptx_type type) {
  return type == T_f64 ? UINT64_C(0xfff8000000000000) : type == T_f32 ? 0x7fffffff : 0x7fff;
}

static void shape_of(ptx_type type, int *exponent_bits, int *fraction_bits) {
  *exponent_bits = type == T_f16 ? 5 : type == T_f64 ? 11 : 8;
  *fraction_bits = type == T_f16 ? 10 : type == T_bf16 ? 7 : type == T_f32 ? 23 : 52;
}

/* Exact: every value of these types is one of long double. */
static long double decode(ptx_type type, uint64_t bits) {
  int exponent_bits, fraction_bits;
  shape_of(type, &exponent_bits, &fraction_bits);
  uint64_t fraction = ptx_low(bits, (unsigned)fraction_bits);
  int exponent = (int)ptx_low(bits >> fraction_bits, (unsigned)exponent_bits), most = (1 << exponent_bits) - 1;
  int bias = most / 2;
  long double value;
  if (exponent == most) value = fraction != 0 ? (long double)NAN : (long double)INFINITY;
  else if (exponent == 0) value = ldexpl((long double)fraction, 1 - bias - fraction_bits);
  else
    value = ldexpl((long double)(fraction | UINT64_C(1) << fraction_bits), exponent - bias - fraction_bits);
  return bits >> (exponent_bits + fraction_bits) & 1 ? -value : value;
}

/* Rounds once; `round` is rn, rz, rm or rp. */
static uint64_t encode(ptx_type type, long double value, const char *round) {
  int exponent_bits, fraction_bits, exponent;
  shape_of(type, &exponent_bits, &fraction_bits);
  if (isnan(value)) return nan_of(type);
  int most = (1 << exponent_bits) - 1, bias = most / 2, negative = signbit(value) != 0;
  uint64_t sign = (uint64_t)negative << (exponent_bits + fraction_bits);
  if (isinf(value)) return sign | (uint64_t)most << fraction_bits;
  if (value == 0) return sign;
  (void)frexpl(value, &exponent);
  int unit = exponent - 1 - fraction_bits, least = 1 - bias - fraction_bits;
  if (unit < least) unit = least;
  long double scaled = ldexpl(fabsl(value), -unit), whole = floorl(scaled), rest = scaled - whole;
  int up = strcmp(round, "rz") == 0   ? 0
           : strcmp(round, "rm") == 0 ? negative && rest > 0
           : strcmp(round, "rp") == 0 ? !negative && rest > 0
                                      : rest > 0.5L || (rest == 0.5L && fmodl(whole, 2) == 1);
  uint64_t digits = (uint64_t)whole + (uint64_t)up;
  if (digits >> (fraction_bits + 1) != 0) {
    digits >>= 1;
    unit++;
  }
  if (digits >> fraction_bits == 0) return sign | digits; /* subnormal */
  int biased = unit - least + 1;
  if (biased >= most)
    return sign | (strcmp(round, "rz") == 0 ? ((uint64_t)most << fraction_bits) - 1 : (uint64_t)most << fraction_bits);
  return sign | (uint64_t)biased << fraction_bits | ptx_low(digits, (unsigned)fraction_bits);
}

static float as_f32(uint64_t bits) {
  uint32_t word = (uint32_t)bits;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

static double as_f64(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t of_f32(float value) {
  uint32_t word;
  memcpy(&word, &value, sizeof word);
  return isnan(value) ? nan_of(T_f32) : word;
}

static uint64_t of_f64(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return isnan(value) ? nan_of(T_f64) : bits;
}

static int is_nan(ptx_type type, uint64_t bits) { return isnan(decode(type, bits)); }

static uint64_t sign_bit(ptx_type type) { return UINT64_C(1) << (ptx_types[type].bits - 1); }

static uint64_t float_extreme(const ptx_insn *i, ptx_type type, uint64_t a, uint64_t b) {
  int nan_a = is_nan(type, a), nan_b = is_nan(type, b);
  uint64_t sign = i->words.by_size ? (a ^ b) & sign_bit(type) : 0;
  if ((nan_a && nan_b) || (i->words.nan && (nan_a || nan_b))) return nan_of(type) | sign;
  if (nan_a || nan_b) return nan_a ? b : a;
  if (i->words.by_size) a &= ~sign_bit(type), b &= ~sign_bit(type);
  long double x = decode(type, a), y = decode(type, b);
  int a_is_less = x < y || (x == y && (a & sign_bit(type)) != 0);
  return (a_is_less == (i->op == OP_min) ? a : b) | sign;
}

static const char *compute_float(const ptx_insn *i, const uint64_t a[4], uint64_t *result) {
  int is_f32 = i->type == T_f32;
  if (i->op == OP_min || i->op == OP_max) {
    *result = float_extreme(i, i->type, a[0], a[1]);
    return NULL;
  }
  if (i->op == OP_neg) *result = a[0] ^ sign_bit(i->type);
  else if (i->op == OP_abs) *result = a[0] & ~sign_bit(i->type);
  else if (i->op == OP_copysign) *result = (a[1] & ~sign_bit(i->type)) | (a[0] & sign_bit(i->type));
  else if (i->type != T_f32 && i->type != T_f64) return "arithmetic of a narrow float";
  else if (strcmp(i->words.round, "rn") != 0) return "float arithmetic that does not say .rn";
  else {
    float x = as_f32(a[0]), y = as_f32(a[1]), z = as_f32(a[2]);
    double dx = as_f64(a[0]), dy = as_f64(a[1]), dz = as_f64(a[2]);
    switch (i->op) {
    case OP_add: *result = is_f32 ? of_f32(x + y) : of_f64(dx + dy); break;
    case OP_sub: *result = is_f32 ? of_f32(x - y) : of_f64(dx - dy); break;
    case OP_mul: *result = is_f32 ? of_f32(x * y) : of_f64(dx * dy); break;
    case OP_div: *result = is_f32 ? of_f32(x / y) : of_f64(dx / dy); break;
    case OP_mad:
    case OP_fma: *result = is_f32 ? of_f32(fmaf(x, y, z)) : of_f64(fma(dx, dy, dz)); break;
    case OP_sqrt: *result = is_f32 ? of_f32(sqrtf(x)) : of_f64(sqrt(dx)); break;
    case OP_rcp: *result = is_f32 ? of_f32(1 / x) : of_f64(1 / dx); break;
    default: return "no such instruction on floats";
    }
  }
  return NULL;
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static uint64_t high_product(uint64_t a, uint64_t b, unsigned width, int is_signed) {
  wide_u product =
      is_signed ? (wide_u)((wide_s)ptx_signed(a, width) * ptx_signed(b, width)) : (wide_u)a * b;
  return (uint64_t)(product >> width);
}

static uint64_t multiply(const ptx_insn *i, uint64_t a, uint64_t b, unsigned *width) {
  int is_signed = ptx_types[i->type].kind == 's';
  unsigned bits = *width;
  if (i->words.wide) {
    *width = 2 * bits;
    return is_signed ? (uint64_t)(ptx_signed(a, bits) * ptx_signed(b, bits)) : a * b;
  }
  return i->words.high ? high_product(a, b, bits, is_signed) : a * b;
}

/* Division as the hardware does it where the divisor is 0 or the quotient too large: not to be relied on. */
static uint64_t divide(const ptx_insn *i, uint64_t a, uint64_t b, unsigned width) {
  int is_rem = i->op == OP_rem;
  if (b == 0) return UINT64_C(0xdeaddeaddeaddead);
  if (ptx_types[i->type].kind != 's') return is_rem ? a % b : a / b;
  int64_t x = ptx_signed(a, width), y = ptx_signed(b, width);
  if (y == -1) return is_rem ? 0 : 0 - (uint64_t)x;
  return (uint64_t)(is_rem ? x % y : x / y);
}

static uint64_t shift(const ptx_insn *i, uint64_t a, uint64_t count, unsigned width) {
  if (i->op == OP_shl) return count >= width ? 0 : a << count;
  if (ptx_types[i->type].kind == 's') return (uint64_t)(ptx_signed(a, width) >> (count >= width ? width - 1 : count));
  return count >= width ? 0 : a >> count;
}

static uint64_t count_bits(const ptx_insn *i, uint64_t a, unsigned width) {
  uint64_t count = 0;
  for (unsigned k = 0; k < width; k++) {
    if (i->op == OP_popc) count += a >> k & 1;
    else if (i->op == OP_brev) count |= (a >> k & 1) << (width - 1 - k);
    else if (a >> (width - 1 - k) & 1) break;
    else count++;
  }
  return count;
}

static uint64_t funnel(const ptx_insn *i, const uint64_t a[4]) {
  uint64_t both = a[1] << 32 | a[0], count = i->words.wrap ? a[2] & 31 : a[2] > 32 ? 32 : a[2];
  return i->words.mode[0] == 'l' ? both << count >> 32 : both >> count;
}

static uint64_t permute(const uint64_t a[4]) {
  uint64_t both = a[1] << 32 | a[0], result = 0;
  for (unsigned k = 0; k < 4; k++) {
    uint64_t selector = a[2] >> (4 * k) & 15, byte = both >> (8 * (selector & 7)) & 0xff;
    if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * k);
  }
  return result;
}

static uint64_t extract(const ptx_insn *i, const uint64_t a[4], unsigned width) {
  uint64_t from = a[1] & 0xff, length = a[2] & 0xff;
  if (length == 0) return 0;
  int is_signed = ptx_types[i->type].kind == 's';
  uint64_t moved = from >= width ? (is_signed && a[0] >> (width - 1) & 1 ? UINT64_MAX : 0)
                   : is_signed   ? (uint64_t)(ptx_signed(a[0], width) >> from)
                                 : a[0] >> from;
  if (length >= width) return moved;
  return is_signed ? (uint64_t)ptx_signed(moved, (unsigned)length) : ptx_low(moved, (unsigned)length);
}

static uint64_t insert(const uint64_t a[4], unsigned width) {
  uint64_t from = a[2] & 0xff, length = a[3] & 0xff;
  if (from >= width || length == 0) return a[1];
  uint64_t mask = ptx_low(UINT64_MAX, (unsigned)(length > 64 ? 64 : length)) << from;
  return (a[1] & ~mask) | (a[0] << from & mask);
}

/* Bytes of the first word with the sign of the first type, of the second with that of the second. */
static uint64_t dot_product(const ptx_insn *i, const uint64_t a[4]) {
  uint64_t sum = a[2];
  for (unsigned k = 0; k < 32; k += 8) {
    uint64_t x = a[0] >> k & 0xff, y = a[1] >> k & 0xff;
    if (ptx_types[i->type].kind == 's') x = (uint64_t)ptx_signed(x, 8);
    if (ptx_types[i->type2].kind == 's') y = (uint64_t)ptx_signed(y, 8);
    sum += x * y;
  }
  return sum;
}

static uint64_t three_input_logic(const ptx_insn *i, const uint64_t a[4]) {
  uint64_t table = i->operand[4].bits, result = 0;
  for (unsigned k = 0; k < 32; k++) {
    unsigned row = (unsigned)((a[0] >> k & 1) << 2 | (a[1] >> k & 1) << 1 | (a[2] >> k & 1));
    result |= (table >> row & 1) << k;
  }
  return result;
}

static uint64_t add_with_carry(const ptx_insn *i, const uint64_t a[4], unsigned width, uint8_t *carry) {
  int takes = i->op == OP_addc || i->op == OP_subc, subtracts = i->op == OP_sub || i->op == OP_subc;
  wide_u b = subtracts ? ptx_low(~a[1], width) : a[1];
  wide_u in = (wide_u)(takes ? (subtracts ? !*carry : *carry) : subtracts);
  wide_u sum = (wide_u)a[0] + b + in;
  unsigned out = (unsigned)(sum >> width & 1);
  if (i->words.carry) *carry = (uint8_t)(subtracts ? !out : out);
  return (uint64_t)sum;
}

static const char *compute_integer(const ptx_insn *i, const uint64_t a[4], uint8_t *carry, uint64_t *result,
                                   unsigned *width) {
  int is_signed = ptx_types[i->type].kind == 's';
  unsigned bits = *width;
  int64_t x = ptx_signed(a[0], bits), y = ptx_signed(a[1], bits);
  int less = is_signed ? x < y : a[0] < a[1];
  if (i->words.saturate) return "integer saturation";
  switch (i->op) {
  case OP_add:
  case OP_addc:
  case OP_sub:
  case OP_subc: *result = add_with_carry(i, a, bits, carry); break;
  case OP_mul: *result = multiply(i, a[0], a[1], width); break;
  case OP_mad: *result = multiply(i, a[0], a[1], width) + a[2]; break;
  case OP_div:
  case OP_rem: *result = divide(i, a[0], a[1], bits); break;
  case OP_min: *result = less ? a[0] : a[1]; break;
  case OP_max: *result = less ? a[1] : a[0]; break;
  case OP_neg: *result = 0 - a[0]; break;
  case OP_abs: *result = x < 0 ? 0 - (uint64_t)x : (uint64_t)x; break;
  case OP_and: *result = a[0] & a[1]; break;
  case OP_or: *result = a[0] | a[1]; break;
  case OP_xor: *result = a[0] ^ a[1]; break;
  case OP_not: *result = ~a[0]; break;
  case OP_shl:
  case OP_shr: *result = shift(i, a[0], a[1], bits); break;
  case OP_popc:
  case OP_clz: *width = 32; *result = count_bits(i, a[0], bits); break;
  case OP_brev: *result = count_bits(i, a[0], bits); break;
  case OP_shf: *result = funnel(i, a); break;
  case OP_prmt: *result = permute(a); break;
  case OP_bfe: *result = extract(i, a, bits); break;
  case OP_bfi: *result = insert(a, bits); break;
  case OP_lop3: *result = three_input_logic(i, a); break;
  case OP_dp4a: *result = dot_product(i, a); break;
  default: return "no such instruction on integers";
  }
  return NULL;
}

/* ---- conversions ------------------------------------------------------------------------------------------------- */

static long double whole_number(long double value, const char *round) {
  if (strcmp(round, "rzi") == 0) return truncl(value);
  if (strcmp(round, "rmi") == 0) return floorl(value);
  if (strcmp(round, "rpi") == 0) return ceill(value);
  long double down = floorl(value), rest = value - down;
  long double even = fmodl(down, 2) == 0 ? down : down + 1;
  return copysignl(rest < 0.5L ? down : rest > 0.5L ? down + 1 : even, value);
}

/* Saturates; NaN gives 0 in 32 bits and fewer, the highest bit alone in 64, as the hardware does. */
static uint64_t float_to_integer(long double value, ptx_type type) {
  unsigned width = ptx_types[type].bits;
  int is_signed = ptx_types[type].kind == 's';
  if (isnan(value)) return width == 64 ? UINT64_C(1) << 63 : 0;
  long double end = ldexpl(1, (int)width - is_signed), start = is_signed ? -end : 0;
  if (value >= end) return is_signed ? (UINT64_C(1) << (width - 1)) - 1 : UINT64_MAX;
  if (value <= start) return is_signed ? UINT64_C(1) << (width - 1) : 0;
  return is_signed ? (uint64_t)(int64_t)value : (uint64_t)value;
}

static ptx_type half_of(ptx_type pair) { return pair == T_f16x2 ? T_f16 : T_bf16; }

/* The first operand becomes the upper half. */
static const char *convert_pair(const ptx_insn *i, const uint64_t a[2], uint64_t *result) {
  ptx_type half = half_of(i->type);
  if (i->type2 != T_f32 || strcmp(i->words.round, "rn") != 0) return "cvt to a pair of that kind";
  *result = encode(half, decode(T_f32, a[0]), "rn") << 16 | encode(half, decode(T_f32, a[1]), "rn");
  return NULL;
}

static uint64_t extreme_pair(const ptx_insn *i, uint64_t a, uint64_t b) {
  ptx_type half = half_of(i->type);
  return float_extreme(i, half, a >> 16, b >> 16) << 16 | float_extreme(i, half, ptx_low(a, 16), ptx_low(b, 16));
}

static uint64_t integer_extreme_pair(const ptx_insn *i, uint64_t a, uint64_t b) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 32; k += 16) {
    int64_t x = ptx_signed(ptx_low(a >> k, 16), 16), y = ptx_signed(ptx_low(b >> k, 16), 16);
    result |= ptx_low((uint64_t)((x < y) == (i->op == OP_min) ? x : y), 16) << k;
  }
  return result;
}

/* A mask of 16 bits a half. */
static const char *compare_pair(const ptx_insn *i, const uint64_t a[2], uint64_t *result) {
  if (i->type != T_u32 || ptx_types[i->type2].kind != 'x') return "set of that type";
  *result = 0;
  for (unsigned k = 0; k < 32; k += 16) {
    int holds = ptx_compare(i->words.compare, half_of(i->type2), ptx_low(a[0] >> k, 16), ptx_low(a[1] >> k, 16));
    if (holds < 0) return "set with that comparison";
    if (holds) *result |= UINT64_C(0xffff) << k;
  }
  return NULL;
}

static const char *convert(const ptx_insn *i, uint64_t a, uint64_t *result) {
  ptx_type to = i->type, from = i->type2;
  const char *round = i->words.round;
  unsigned width = ptx_types[from].bits;
  int to_float = ptx_types[to].kind == 'f', from_float = ptx_types[from].kind == 'f';
  if (i->words.saturate && (to_float || from_float)) return "cvt.sat of floats";
  if (from == T_NONE) return "cvt needs two types";
  if (!to_float && !from_float) {
    if (i->words.saturate) return "cvt.sat of integers";
    *result = ptx_types[from].kind == 's' ? (uint64_t)ptx_signed(a, width) : a;
  } else if (!from_float) {
    if (round[0] == '\0') return "cvt to a float needs a rounding";
    *result = encode(to, ptx_types[from].kind == 's' ? (long double)ptx_signed(a, width) : (long double)a, round);
  } else {
    long double value = decode(from, a);
    int to_whole = strlen(round) == 3;
    if (!to_float && !to_whole) return "cvt to an integer needs a rounding";
    if (to_float && round[0] == '\0' && ptx_types[to].bits <= width) return "cvt to a narrower float needs a rounding";
    if (to_float && to_whole && to != from) return "cvt to a whole number of another type";
    if (to_whole && !isnan(value) && !isinf(value)) value = whole_number(value, round);
    *result = to_float ? encode(to, value, to_whole || round[0] == '\0' ? "rn" : round) : float_to_integer(value, to);
  }
  return NULL;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

ptx_type ptx_wider(ptx_type type) {
  switch (type) {
  case T_u16: return T_u32;
  case T_s16: return T_s32;
  case T_s32: return T_s64;
  default: return T_u64;
  }
}

const char *ptx_compute(const ptx_insn *i, const uint64_t a[4], uint8_t *carry, uint64_t *result, unsigned *width) {
  *width = ptx_types[i->type].bits;
  if (i->op == OP_cvt && ptx_types[i->type].kind == 'x') return convert_pair(i, a, result);
  if ((i->op == OP_min || i->op == OP_max) && ptx_types[i->type].kind == 'i') {
    *result = integer_extreme_pair(i, a[0], a[1]);
    return NULL;
  }
  if ((i->op == OP_min || i->op == OP_max) && ptx_types[i->type].kind == 'x') {
    *result = extreme_pair(i, a[0], a[1]);
    return NULL;
  }
  if (i->op == OP_cvt) return convert(i, a[0], result);
  if (i->op == OP_set) return compare_pair(i, a, result);
  if (i->op == OP_selp) {
    *result = a[2] & 1 ? a[0] : a[1];
    return NULL;
  }
  if (i->op == OP_testp) {
    long double value = decode(i->type, a[0]);
    if (strcmp(i->words.mode, "notanum") != 0 && strcmp(i->words.mode, "infinit") != 0) return "testp";
    *result = (uint64_t)((i->words.mode[0] == 'n' ? isnan(value) : isinf(value)) != 0);
    *width = 1;
    return NULL;
  }
  if (ptx_types[i->type].kind == 'f') return compute_float(i, a, result);
  return compute_integer(i, a, carry, result, width);
}

int ptx_compare(const char *compare, ptx_type type, uint64_t a, uint64_t b) {
  char kind = ptx_types[type].kind;
  int less, equal, unordered = 0;
  if (kind == 'f') {
    long double x = decode(type, a), y = decode(type, b);
    less = x < y;
    equal = x == y;
    unordered = isnan(x) || isnan(y);
    if (strcmp(compare, "num") == 0) return !unordered;
    if (strcmp(compare, "nan") == 0) return unordered;
    if (compare[2] == 'u' && unordered) return 1;
    if (unordered) return 0; /* ne too: an ordered comparison */
  } else {
    less = kind == 's' ? ptx_signed(a, ptx_types[type].bits) < ptx_signed(b, ptx_types[type].bits) : a < b;
    equal = a == b;
  }
  switch (compare[0] << 8 | compare[1]) {
  case 'e' << 8 | 'q': return equal;
  case 'n' << 8 | 'e': return !equal;
  case 'l' << 8 | 't': return less;
  case 'l' << 8 | 'e': return less || equal;
  case 'g' << 8 | 't': return !less && !equal;
  case 'g' << 8 | 'e': return !less;
  case 'l' << 8 | 'o': return less;
  case 'l' << 8 | 's': return less || equal;
  case 'h' << 8 | 'i': return !less && !equal;
  case 'h' << 8 | 's': return !less;
  default: return -1;
  }
}
