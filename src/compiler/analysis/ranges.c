/* ranges.c - ranges of integers, and what comparisons imply for a value. */
#include "compiler/analysis/ranges.h"

#include "atlas/value.h"

#include <math.h>

static int is_integer(uint8_t type) { return type != SSA_PREDICATE && atlas_is_integer((atlas_type)type); }
static int is_float(uint8_t type) { return type != SSA_PREDICATE && atlas_is_wide_float((atlas_type)type); }
static int is_signed(uint8_t type) { return atlas_kind((atlas_type)type) == ATLAS_KIND_SINT; }

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* For u64 as far as an int64_t goes. */
static int64_t greatest_of(uint8_t type) {
  uint64_t mask = atlas_mask((atlas_type)type);
  return (int64_t)(is_signed(type) || type == ATLAS_u64 ? mask >> 1 : mask);
}
static int64_t least_of(uint8_t type) { return is_signed(type) ? -greatest_of(type) - 1 : 0; }

/* ---- ranges ------------------------------------------------------------------------------------------------------ */

hg_range hg_range_of_type(uint8_t type) {
  if (is_float(type)) return hg_range_of_floats(-INFINITY, INFINITY, 1);
  if (!is_integer(type)) return (hg_range){.is_nan = 1};
  return hg_range_between(type, type == ATLAS_u64 ? INT64_MIN : least_of(type), greatest_of(type));
}

hg_range hg_range_between(uint8_t type, int64_t low, int64_t high) {
  unsigned bits = atlas_type_bits((atlas_type)type);
  if (bits == 64) return (hg_range){.low = low, .high = high, .exact = type == ATLAS_i64 || low >= 0};
  uint64_t turn = UINT64_C(1) << bits, size = (uint64_t)high - (uint64_t)low;
  int64_t least = least_of(type);
  if (size >= turn) return (hg_range){.low = least, .high = greatest_of(type), .exact = 1};
  int64_t from = least + (int64_t)(((uint64_t)low - (uint64_t)least) & (turn - 1));
  return (hg_range){.low = from, .high = from + (int64_t)size, .exact = from + (int64_t)size <= greatest_of(type)};
}

hg_range hg_range_of_bits(uint8_t type, uint64_t bits) {
  if (is_float(type)) {
    double value = atlas_to_f64((atlas_type)type, bits);
    return isnan(value) ? hg_range_of_type(type) : hg_range_of_floats(value, value, 0);
  }
  if (!is_integer(type)) return hg_range_of_type(type);
  int64_t number = atlas_to_i64((atlas_type)type, bits);
  return hg_range_between(type, number, number);
}

/* The range of the value as a number, which may be the whole type; for u64 even that may be inexact. */
static hg_range as_number(uint8_t type, hg_range a) { return a.exact ? a : hg_range_of_type(type); }

hg_range hg_range_join(uint8_t type, hg_range a, hg_range b) {
  if (is_float(type))
    return hg_range_of_floats(a.least < b.least ? a.least : b.least, a.greatest > b.greatest ? a.greatest : b.greatest,
                              a.is_nan | b.is_nan);
  if (!is_integer(type) || !a.exact || !b.exact) return hg_range_of_type(type);
  if (a.low > a.high) return b;
  if (b.low > b.high) return a;
  return (hg_range){.low = smaller(a.low, b.low), .high = larger(a.high, b.high), .exact = 1};
}

hg_range hg_range_meet(hg_range a, hg_range b) {
  if (!a.exact && b.exact) return b;
  if (!a.exact || !b.exact || a.low > b.high || b.low > a.high) return a;
  return (hg_range){.low = larger(a.low, b.low), .high = smaller(a.high, b.high), .exact = 1};
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

int hg_add_exact(int64_t a, int64_t b, int64_t *sum) {
  if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)) return 0;
  *sum = a + b;
  return 1;
}

/* 0 where the product is no int64_t. */
static int multiply_exact(int64_t a, int64_t b, int64_t *product) {
  const int64_t half = INT64_C(1) << 31;
  int is_small = a <= half && a >= -half && b <= half && b >= -half;
  if (!is_small && a != 0 && (a == INT64_MIN || b == INT64_MIN || (b < 0 ? -b : b) > INT64_MAX / (a < 0 ? -a : a)))
    return 0;
  *product = a * b;
  return 1;
}

static hg_range sum(uint8_t type, hg_range a, hg_range b) {
  int64_t low, high;
  if (!hg_add_exact(a.low, b.low, &low) || !hg_add_exact(a.high, b.high, &high)) return hg_range_of_type(type);
  return hg_range_between(type, low, high);
}

static hg_range difference(uint8_t type, hg_range a, hg_range b) {
  if (b.low == INT64_MIN || b.high == INT64_MIN) return hg_range_of_type(type);
  return sum(type, a, (hg_range){.low = -b.high, .high = -b.low});
}

static hg_range product(uint8_t type, hg_range a, hg_range b) {
  int64_t corner[4];
  if (!multiply_exact(a.low, b.low, &corner[0]) || !multiply_exact(a.low, b.high, &corner[1]) ||
      !multiply_exact(a.high, b.low, &corner[2]) || !multiply_exact(a.high, b.high, &corner[3]))
    return hg_range_of_type(type);
  return hg_range_between(type, smaller(smaller(corner[0], corner[1]), smaller(corner[2], corner[3])),
                          larger(larger(corner[0], corner[1]), larger(corner[2], corner[3])));
}

static hg_range quotient(uint8_t type, hg_range a, hg_range b) {
  /* where conditions on the way exclude each other, no number is left, and low may be above high */
  if (!a.exact || !b.exact || a.low < 0 || b.low < 1 || b.high < 1) return hg_range_of_type(type);
  return hg_range_between(type, a.low / b.high, a.high / b.low);
}

static hg_range remainder_of(uint8_t type, hg_range a, hg_range b) {
  if (!b.exact || b.low < 1) return hg_range_of_type(type);
  if (a.exact && a.low >= 0) return hg_range_between(type, 0, smaller(a.high, b.high - 1));
  return hg_range_between(type, is_signed(type) ? 1 - b.high : 0, b.high - 1);
}

/* `and`: no greater than an argument that is not negative. */
static hg_range conjunction(uint8_t type, hg_range a, hg_range b) {
  int64_t high = INT64_MAX;
  if (a.exact && a.low >= 0) high = a.high;
  if (b.exact && b.low >= 0) high = smaller(high, b.high);
  return high == INT64_MAX ? hg_range_of_type(type) : hg_range_between(type, 0, high);
}

/* `or` and `xor` of numbers that are not negative: no bit above theirs. */
static hg_range disjunction(uint8_t type, hg_range a, hg_range b) {
  if (!a.exact || !b.exact || a.low < 0 || b.low < 0) return hg_range_of_type(type);
  int bits = atlas_highest_bit((uint64_t)larger(a.high, b.high) | 1) + 1;
  return hg_range_between(type, 0, (int64_t)((UINT64_C(1) << bits) - 1));
}

static hg_range shifted(const ssa_insn *insn, hg_range a, hg_range count) {
  int64_t bits = atlas_type_bits((atlas_type)insn->type);
  if (!count.exact || (count.low != count.high && (count.low < 0 || count.high >= bits)))
    return hg_range_of_type(insn->type);
  int64_t least = count.low & (bits - 1), most = count.high & (bits - 1); /* counts are modulo the width */
  if (insn->op == ATLAS_OP_shl) {
    if (most > 32) return hg_range_of_type(insn->type);
    const hg_range factor = {.low = INT64_C(1) << least, .high = INT64_C(1) << most, .exact = 1};
    return product(insn->type, a, factor);
  }
  a = as_number(insn->type, a);
  if (!a.exact || (a.low < 0 && least != most)) return hg_range_of_type(insn->type);
  /* the rounded-down quotient of a negative number: that is what an arithmetic shift gives */
  int64_t low = a.low < 0 ? -(-(a.low + 1) >> least) - 1 : a.low >> most;
  int64_t high = a.high < 0 ? -(-(a.high + 1) >> least) - 1 : a.high >> least;
  return hg_range_between(insn->type, low, high);
}

/* From an integer: the bits that fit; a wider type holds the number. */
static hg_range converted(const ssa_insn *insn, hg_range a) {
  int is_wider = atlas_type_bits((atlas_type)insn->type) > atlas_type_bits((atlas_type)insn->type2);
  if (!is_integer(insn->type2) || (is_wider && !a.exact)) return hg_range_of_type(insn->type);
  return hg_range_between(insn->type, a.low, a.high);
}

hg_range hg_range_of_integer_op(const ssa_insn *insn, const hg_range *x) {
  uint8_t type = insn->type;
  switch (insn->op) {
  case ATLAS_OP_add: return sum(type, x[0], x[1]);
  case ATLAS_OP_sub: return difference(type, x[0], x[1]);
  case ATLAS_OP_neg: return difference(type, (hg_range){.exact = 1}, x[0]);
  case ATLAS_OP_mul: return product(type, x[0], x[1]);
  case ATLAS_OP_mad: return sum(type, product(type, x[0], x[1]), x[2]);
  case ATLAS_OP_div: return quotient(type, as_number(type, x[0]), x[1]);
  case ATLAS_OP_rem: return remainder_of(type, x[0], x[1]);
  case ATLAS_OP_and: return conjunction(type, x[0], x[1]);
  case ATLAS_OP_or:
  case ATLAS_OP_xor: return disjunction(type, x[0], x[1]);
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: return shifted(insn, x[0], x[1]);
  case ATLAS_OP_cvt:
  case ATLAS_OP_bitcast: return converted(insn, x[0]);
  case ATLAS_OP_sel: return hg_range_join(type, x[1], x[2]);
  default: break;
  }
  if (insn->op != ATLAS_OP_min && insn->op != ATLAS_OP_max) return hg_range_of_type(type);
  hg_range a = as_number(type, x[0]), b = as_number(type, x[1]);
  if (!a.exact || !b.exact) return hg_range_of_type(type);
  int is_min = insn->op == ATLAS_OP_min;
  return hg_range_between(type, is_min ? smaller(a.low, b.low) : larger(a.low, b.low),
                          is_min ? smaller(a.high, b.high) : larger(a.high, b.high));
}

/* ---- what comparisons say ---------------------------------------------------------------------------------------- */

/* a < b, or not. A u64 that may be any number has the least bound 0, and an unknown greatest. */
static hg_range where_less(uint8_t type, hg_range r, int is_left, hg_range other, int holds) {
  int is_below = is_left == holds; /* 1: the value is below the other; 0: it is not above it */
  hg_range n = r.exact ? r : type == ATLAS_u64 ? hg_range_between(type, 0, INT64_MAX) : hg_range_of_type(type);
  other = as_number(type, other);
  if (!other.exact) return r;
  if (is_below) n.high = smaller(n.high, other.high - (holds && other.high > INT64_MIN));
  else n.low = larger(n.low, other.low + (holds && other.low < INT64_MAX));
  return !r.exact && n.high == INT64_MAX ? r : n;
}

static hg_range where_equal(hg_range r, hg_range other, int holds) {
  if (!other.exact || (!holds && !r.exact)) return r;
  if (holds)
    return r.exact ? (hg_range){.low = larger(r.low, other.low), .high = smaller(r.high, other.high), .exact = 1}
                   : other;
  if (other.low != other.high) return r;
  if (r.low == other.low && r.low < INT64_MAX) r.low++;
  else if (r.high == other.low && r.high > INT64_MIN) r.high--;
  return r;
}

/* set.lt or set.le of floats; for numbers only, where it holds. An empty range means that the comparison never has this
 * result, so any answer is right. */
static hg_range where_float(hg_range r, int is_left, hg_range other, int holds) {
  hg_range n = r;
  if (!holds && (r.is_nan || other.is_nan)) return r;
  if (is_left == holds && other.greatest < n.greatest) n.greatest = other.greatest;
  if (is_left != holds && other.least > n.least) n.least = other.least;
  if (holds) n.is_nan = 0;
  return n.least <= n.greatest ? n : r;
}

hg_range hg_range_where(const ssa_unit *unit, const hg_range *of, uint32_t value, hg_range range, uint32_t test,
                        int holds) {
  const ssa_insn *insn = ssa_insn_at(unit, test);
  if (insn->op != ATLAS_OP_set_lt && insn->op != ATLAS_OP_set_le && insn->op != ATLAS_OP_set_eq) return range;
  const uint32_t *args = ssa_args_of(unit, test);
  for (int side = 0; side < 2; side++) {
    hg_range other = of[args[1 - side]];
    if (args[side] != value) continue;
    if (is_float(insn->type2) && insn->op != ATLAS_OP_set_eq) range = where_float(range, side == 0, other, holds);
    if (is_integer(insn->type2) && insn->op == ATLAS_OP_set_lt)
      range = where_less(insn->type2, range, side == 0, other, holds);
    if (is_integer(insn->type2) && insn->op == ATLAS_OP_set_eq) range = where_equal(range, other, holds);
  }
  return range;
}
