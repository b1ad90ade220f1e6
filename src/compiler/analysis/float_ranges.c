/* float_ranges.c - ranges of f32 and f64 and, with those of integers (ranges.c), the range of any value.
 *
 * A range contains all values that are not NaN, infinities included; is_nan says whether the value may be NaN as
 * well. */
#include "compiler/analysis/ranges.h"

#include "atlas/functions.h"
#include "atlas/value.h"
#include "base/bytes.h"

#include <float.h>
#include <math.h>

typedef struct source {
  const ssa_unit *unit;
  const hg_range *of;
} source;

static const ssa_insn *insn_at(const source *f, uint32_t value) { return ssa_insn_at(f->unit, value); }
static uint32_t arg(const source *f, uint32_t value, unsigned i) { return ssa_args_of(f->unit, value)[i]; }

#define RANGE hg_range_of_floats
static double absolute(double a) { return a < 0 ? -a : a; }
static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }
static double size_of(hg_range a) { return most(-a.least, a.greatest); } /* the greatest magnitude */
static int has_infinity(hg_range a) { return a.least == -INFINITY || a.greatest == INFINITY; }
static int has_zero(hg_range a) { return a.least <= 0 && a.greatest >= 0; }

/* ---- floating point ---------------------------------------------------------------------------------------------- */

/* Rounds a bound that was computed from operands of magnitude `scale` outwards (`towards` is -1 or 1): it is first
 * moved by more than the error of this computation, so that it bounds the exact results, then rounded to the type as
 * these are. */
static double rounded_outwards(uint8_t type, double bound, double scale, int towards) {
  if (scale == INFINITY) return bound;
  bound += towards * (scale * 0x1p-51 + 0x1p-1060);
  if (towards * bound > (type == ATLAS_f32 ? FLT_MAX : DBL_MAX)) return towards > 0 ? INFINITY : -INFINITY;
  return type == ATLAS_f32 && absolute(bound) <= FLT_MAX ? (float)bound : bound;
}

static hg_range rounded(uint8_t type, hg_range a) {
  return RANGE(rounded_outwards(type, a.least, absolute(a.least), -1),
               rounded_outwards(type, a.greatest, absolute(a.greatest), 1), a.is_nan);
}

static hg_range sum(uint8_t type, hg_range a, hg_range b) {
  hg_range s = RANGE(-INFINITY, INFINITY, a.is_nan | b.is_nan);
  if (a.least > -INFINITY && b.least > -INFINITY)
    s.least = rounded_outwards(type, a.least + b.least, most(absolute(a.least), absolute(b.least)), -1);
  if (a.greatest < INFINITY && b.greatest < INFINITY)
    s.greatest = rounded_outwards(type, a.greatest + b.greatest, most(absolute(a.greatest), absolute(b.greatest)), 1);
  s.is_nan |= (a.least == -INFINITY && b.greatest == INFINITY) || (a.greatest == INFINITY && b.least == -INFINITY);
  return s;
}

static double product_of(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

static hg_range product(hg_range a, hg_range b) {
  double p[4] = {product_of(a.least, b.least), product_of(a.least, b.greatest), product_of(a.greatest, b.least),
                 product_of(a.greatest, b.greatest)};
  hg_range r =
      RANGE(least(least(p[0], p[1]), least(p[2], p[3])), most(most(p[0], p[1]), most(p[2], p[3])), a.is_nan | b.is_nan);
  r.is_nan |= (has_zero(a) && has_infinity(b)) || (has_infinity(a) && has_zero(b));
  return r;
}

static hg_range negative(hg_range a) { return RANGE(-a.greatest, -a.least, a.is_nan); }

static hg_range magnitude(hg_range a) {
  return RANGE(has_zero(a) ? 0 : most(a.least, -a.greatest), size_of(a), a.is_nan);
}

static hg_range square(hg_range a) {
  hg_range size = magnitude(a);
  return RANGE(product_of(size.least, size.least), product_of(size.greatest, size.greatest), a.is_nan);
}

static hg_range quotient(hg_range a, hg_range b) {
  hg_range q = RANGE(-INFINITY, INFINITY, a.is_nan | b.is_nan);
  q.is_nan |= (has_zero(a) && has_zero(b)) || (has_infinity(a) && has_infinity(b));
  return q;
}

/* The product of the value's first two arguments. */
static hg_range product_in(const source *f, uint32_t value) {
  uint32_t a = arg(f, value, 0), b = arg(f, value, 1);
  return a == b ? square(f->of[a]) : product(f->of[a], f->of[b]);
}

/* 1 if the value is a reduced argument x - n c'; *greatest: its greatest magnitude. n is the integer nearest to x c,
 * found by adding and subtracting 1.5 2^23 (f64: 1.5 2^52), and c' is near 1 / c. */
static int is_argument_reduction(const source *f, uint32_t value, double *greatest) {
  const ssa_insn *insn = insn_at(f, value);
  double magic = insn->type == ATLAS_f32 ? 0x1.8p23 : 0x1.8p52;
  uint32_t x = arg(f, value, 2);
  for (unsigned i = 0; i < 2; i++) {
    uint32_t n = arg(f, value, i), part = arg(f, value, 1 - i);
    if (insn_at(f, part)->op != SSA_CONST || insn_at(f, n)->op != ATLAS_OP_sub) continue;
    uint32_t shifted = arg(f, n, 0), m = arg(f, n, 1);
    const ssa_insn *shift = insn_at(f, shifted);
    if (shift->op != ATLAS_OP_fma || arg(f, shifted, 2) != m || f->of[m].least != magic || f->of[m].greatest != magic)
      continue;
    for (unsigned k = 0; k < 2; k++) {
      uint32_t c = arg(f, shifted, k);
      if (arg(f, shifted, 1 - k) != x || insn_at(f, c)->op != SSA_CONST) continue;
      double size = size_of(f->of[x]), factor = f->of[c].least, back = f->of[part].least, off = 1 + factor * back;
      if (!(size * absolute(factor) < magic / 4)) continue;
      *greatest = absolute(back) * 0.51 + size * (absolute(off) + 0x1p-22);
      return 1;
    }
  }
  return 0;
}

/* w s + s, or w s + (s - k) with a constant k, is s (w + 1) - k, which has tighter bounds than the sum of w s and s.
 * The difference s - k has been rounded; that moves the result by less than moving w + 1 and k by 2^-23 would. */
static int is_scaled(const source *f, uint32_t value, hg_range *result) {
  uint32_t c = arg(f, value, 2), s = c;
  double k = 0;
  if (insn_at(f, c)->op == ATLAS_OP_sub && insn_at(f, arg(f, c, 1))->op == SSA_CONST && !f->of[arg(f, c, 1)].is_nan) {
    s = arg(f, c, 0);
    k = f->of[arg(f, c, 1)].least;
  }
  for (unsigned i = 0; i < 2; i++) {
    hg_range w = f->of[arg(f, value, 1 - i)], off = RANGE(-absolute(k) * 0x1p-23, absolute(k) * 0x1p-23, 0);
    if (arg(f, value, i) != s) continue;
    uint8_t type = insn_at(f, value)->type;
    w = RANGE(w.least + 1 - 0x1p-23, w.greatest + 1 + 0x1p-23, w.is_nan);
    *result = sum(type, product(f->of[s], w), RANGE(off.least - k, off.greatest - k, 0));
    return 1;
  }
  return 0;
}

static hg_range fused(const source *f, uint32_t value) {
  hg_range r = sum(insn_at(f, value)->type, product_in(f, value), f->of[arg(f, value, 2)]), scaled;
  if (!r.is_nan && is_scaled(f, value, &scaled) && !scaled.is_nan)
    r = RANGE(most(r.least, scaled.least), least(r.greatest, scaled.greatest), 0);
  double greatest;
  if (r.is_nan || !is_argument_reduction(f, value, &greatest) || !(greatest < size_of(r))) return r;
  return RANGE(-greatest, greatest, 0);
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static hg_range bits_of(uint8_t type, hg_range a) {
  if (a.is_nan || (a.least <= 0 && a.greatest >= 0)) return hg_range_of_type(type);
  int64_t low = (uint32_t)atlas_bits_of_f32((float)a.least); /* an unbounded side rounds to no bound, other bounds
                                                                outwards */
  int64_t high = (uint32_t)atlas_bits_of_f32((float)a.greatest);
  return hg_range_between(type, low < high ? low : high, low < high ? high : low);
}

static hg_range float_of(hg_range bits) {
  const int64_t infinity = 0x7f800000, sign = 0x80000000;
  int64_t turn = bits.low < 0 ? 2 * sign : 0, offset = bits.low + turn >= sign ? sign : 0;
  if (bits.high + turn > infinity + offset) return hg_range_of_type(ATLAS_f32);
  double one = atlas_as_f32((uint64_t)(bits.low + turn)), other = atlas_as_f32((uint64_t)(bits.high + turn));
  return offset > 0 ? RANGE(other, one, 0) : RANGE(one, other, 0);
}

/* Between f32 and integers. */
static hg_range bit_cast(const ssa_insn *insn, hg_range a) {
  int is_from_integer = insn->type2 == ATLAS_u32 || insn->type2 == ATLAS_i32;
  if (insn->type2 == ATLAS_f32 && atlas_is_integer((atlas_type)insn->type)) return bits_of(insn->type, a);
  return insn->type == ATLAS_f32 && is_from_integer ? float_of(a) : hg_range_of_type(insn->type);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static hg_range float_op(const source *f, uint32_t value) {
  const ssa_insn *insn = insn_at(f, value);
  hg_range a = f->of[arg(f, value, 0)], b = insn->arg_count > 1 ? f->of[arg(f, value, 1)] : a;
  switch (insn->op) {
  case ATLAS_OP_neg: return negative(a);
  case ATLAS_OP_abs: return magnitude(a);
  case ATLAS_OP_copysign: return RANGE(-size_of(a), size_of(a), a.is_nan);
  case ATLAS_OP_add: return sum(insn->type, a, b);
  case ATLAS_OP_sub: return sum(insn->type, a, negative(b));
  case ATLAS_OP_mul: return rounded(insn->type, product_in(f, value));
  case ATLAS_OP_fma: return fused(f, value);
  case ATLAS_OP_div: return quotient(a, b);
  case ATLAS_OP_sqrt: return RANGE(-0.0, INFINITY, a.is_nan | (a.least < 0));
  case ATLAS_OP_min: return RANGE(least(a.least, b.least), least(a.greatest, b.greatest), a.is_nan | b.is_nan);
  case ATLAS_OP_max: return RANGE(most(a.least, b.least), most(a.greatest, b.greatest), a.is_nan | b.is_nan);
  case ATLAS_OP_round:
  case ATLAS_OP_floor:
  case ATLAS_OP_ceil:
  case ATLAS_OP_trunc: return RANGE(a.least - 1, a.greatest + 1, a.is_nan);
  default: return hg_range_of_type(insn->type);
  }
}

/* The range of all entries of a table of the function library. */
static hg_range entries_of(const ssa_insn *load) {
  const atlas_symbol *table = atlas_symbol_at(&atlas_functions, load->symbol & ~(uint32_t)SSA_LIBRARY);
  const uint8_t *entry = (const uint8_t *)atlas_functions.constants.data + table->const_offset;
  uint32_t size = atlas_bytes((atlas_type)load->type);
  hg_range all = RANGE(INFINITY, -INFINITY, 0);
  for (uint32_t i = 0; i < table->count; i++) {
    double value = atlas_to_f64((atlas_type)load->type, hg_load_le(entry + (size_t)i * size, size));
    if (isnan(value)) return hg_range_of_type(load->type);
    all = RANGE(least(all.least, value), most(all.greatest, value), 0);
  }
  return all;
}

static hg_range converted(const ssa_insn *insn, hg_range a) {
  if (atlas_is_wide_float((atlas_type)insn->type2)) return rounded(insn->type, a);
  if (!atlas_is_integer((atlas_type)insn->type2))
    return hg_range_of_type(insn->type); /* infinities remain */
  return a.exact ? rounded(insn->type, RANGE((double)a.low, (double)a.high, 0)) : RANGE(-0x1p64, 0x1p64, 0);
}

/* A value of type f32 or f64, or an integer that is cast from one. */
static hg_range float_value(const source *f, uint32_t value) {
  const ssa_insn *insn = insn_at(f, value);
  uint32_t flags = atlas_op_flags(insn->op);
  if (insn->op == ATLAS_OP_ldc && insn->symbol & SSA_LIBRARY) return entries_of(insn);
  if (insn->arg_count == 0 || !(flags & ATLAS_PURE) || flags & ATLAS_LOAD) return hg_range_of_type(insn->type);
  if (insn->op == ATLAS_OP_bitcast) return bit_cast(insn, f->of[arg(f, value, 0)]);
  if (insn->op == ATLAS_OP_cvt) return converted(insn, f->of[arg(f, value, 0)]);
  return float_op(f, value);
}

/* ---- all values -------------------------------------------------------------------------------------------------- */

/* The range of each alternative where it is chosen. */
static hg_range selected(const source *f, uint32_t value) {
  uint32_t test = arg(f, value, 0), yes = arg(f, value, 1), no = arg(f, value, 2);
  return hg_range_join(insn_at(f, value)->type, hg_range_where(f->unit, f->of, yes, f->of[yes], test, 1),
                       hg_range_where(f->unit, f->of, no, f->of[no], test, 0));
}

static int is_float(uint8_t type) { return type != SSA_PREDICATE && atlas_is_wide_float((atlas_type)type); }

hg_range hg_range_of(const ssa_unit *unit, const hg_range *of, uint32_t value) {
  const source f = {unit, of};
  const ssa_insn *insn = insn_at(&f, value);
  hg_range args[3];
  if (insn->op == SSA_CONST) return hg_range_of_bits(insn->type, insn->bits);
  if (insn->op == ATLAS_OP_sel) return selected(&f, value);
  if (is_float(insn->type) || (insn->op == ATLAS_OP_bitcast && is_float(insn->type2))) return float_value(&f, value);
  if (insn->type == SSA_PREDICATE || !atlas_is_integer((atlas_type)insn->type)) return hg_range_of_type(insn->type);
  if (!(atlas_op_flags(insn->op) & ATLAS_PURE) || atlas_op_flags(insn->op) & ATLAS_LOAD)
    return hg_range_of_type(insn->type);
  for (uint32_t i = 0; i < insn->arg_count && i < 3; i++) args[i] = of[arg(&f, value, i)];
  return hg_range_of_integer_op(insn, args);
}
