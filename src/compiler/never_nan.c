/* never_nan.c - interval analysis of f32, f64 and 32-bit integer values, in one walk; a phi with a back edge may be
 * anything.
 *
 * An interval contains all values that are not NaN, infinities included; is_nan says whether the value may be NaN as
 * well. Rounding is monotonic, so operations on the bounds bound the results. Integers are modulo 2^32: an interval
 * starts below 2^32 and may end above. So the core of an exponential function can be followed, which takes the integer
 * part of its argument from the bits of a sum and builds a power of two from it. */
#include "compiler/never_nan.h"

#include "atlas/exact.h"
#include "atlas/functions.h"
#include "atlas/value.h"
#include "base/bytes.h"
#include "base/error.h"

#include <float.h>
#include <math.h>

typedef struct interval {
  double low, high;
  uint8_t is_nan;
} interval;

typedef struct finder {
  const ssa_unit *unit;
  interval *of; /* per value */
} finder;

#define TWO_32 4294967296.0

static const ssa_insn *insn_at(const finder *f, uint32_t value) { return ssa_insn_at(f->unit, value); }
static uint32_t arg(const finder *f, uint32_t value, unsigned i) { return ssa_args_of(f->unit, value)[i]; }
static int is_integer(uint8_t type) { return type == ATLAS_u32 || type == ATLAS_i32; }

static interval anything(uint8_t type) {
  if (is_integer(type)) return (interval){0, TWO_32 - 1, 0};
  return (interval){-INFINITY, INFINITY, 1};
}

static double absolute(double a) { return a < 0 ? -a : a; }
static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }
static double size_of(interval a) { return most(-a.low, a.high); } /* the greatest magnitude */
static int has_infinity(interval a) { return a.low == -INFINITY || a.high == INFINITY; }
static int has_zero(interval a) { return a.low <= 0 && a.high >= 0; }

static interval join(interval a, interval b) {
  return (interval){least(a.low, b.low), most(a.high, b.high), a.is_nan | b.is_nan};
}

/* ---- floating point ---------------------------------------------------------------------------------------------- */

/* Rounds a bound that was computed from operands of size `scale` outwards (towards is -1 or 1): first moved by more
 * than the error of this computation, so that it bounds the exact results, then rounded to the type as these are. */
static double rounded_outwards(uint8_t type, double bound, double scale, int towards) {
  if (scale == INFINITY) return bound;
  bound += towards * (scale * 0x1p-51 + 0x1p-1060);
  if (towards * bound > (type == ATLAS_f32 ? FLT_MAX : DBL_MAX)) return towards > 0 ? INFINITY : -INFINITY;
  return type == ATLAS_f32 && absolute(bound) <= FLT_MAX ? (float)bound : bound;
}

static interval rounded(uint8_t type, interval a) {
  return (interval){rounded_outwards(type, a.low, absolute(a.low), -1),
                    rounded_outwards(type, a.high, absolute(a.high), 1), a.is_nan};
}

static interval sum(uint8_t type, interval a, interval b) {
  interval s = {-INFINITY, INFINITY, a.is_nan | b.is_nan};
  if (a.low > -INFINITY && b.low > -INFINITY)
    s.low = rounded_outwards(type, a.low + b.low, most(absolute(a.low), absolute(b.low)), -1);
  if (a.high < INFINITY && b.high < INFINITY)
    s.high = rounded_outwards(type, a.high + b.high, most(absolute(a.high), absolute(b.high)), 1);
  s.is_nan |= (a.low == -INFINITY && b.high == INFINITY) || (a.high == INFINITY && b.low == -INFINITY);
  return s;
}

static double product_of(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

static interval product(interval a, interval b) {
  double p[4] = {product_of(a.low, b.low), product_of(a.low, b.high), product_of(a.high, b.low),
                 product_of(a.high, b.high)};
  interval r = {least(least(p[0], p[1]), least(p[2], p[3])), most(most(p[0], p[1]), most(p[2], p[3])),
                a.is_nan | b.is_nan};
  r.is_nan |= (has_zero(a) && has_infinity(b)) || (has_infinity(a) && has_zero(b));
  return r;
}

static interval negative(interval a) { return (interval){-a.high, -a.low, a.is_nan}; }

static interval magnitude(interval a) {
  return (interval){has_zero(a) ? 0 : most(a.low, -a.high), size_of(a), a.is_nan};
}

static interval square(interval a) {
  interval size = magnitude(a);
  return (interval){product_of(size.low, size.low), product_of(size.high, size.high), a.is_nan};
}

static interval quotient(interval a, interval b) {
  interval q = {-INFINITY, INFINITY, a.is_nan | b.is_nan};
  q.is_nan |= (has_zero(a) && has_zero(b)) || (has_infinity(a) && has_infinity(b));
  return q;
}

/* Of the value's first two arguments. */
static interval product_in(const finder *f, uint32_t value) {
  uint32_t a = arg(f, value, 0), b = arg(f, value, 1);
  return a == b ? square(f->of[a]) : product(f->of[a], f->of[b]);
}

/* 1 if the value is the reduced argument x - n c', with its greatest magnitude: n is the integer nearest to x c, found
 * by adding and subtracting 1.5 2^23 (f64: 1.5 2^52), and c' is near 1 / c. */
static int is_argument_reduction(const finder *f, uint32_t value, double *greatest) {
  const ssa_insn *insn = insn_at(f, value);
  double magic = insn->type == ATLAS_f32 ? 0x1.8p23 : 0x1.8p52;
  uint32_t x = arg(f, value, 2);
  for (unsigned i = 0; i < 2; i++) {
    uint32_t n = arg(f, value, i), part = arg(f, value, 1 - i);
    if (insn_at(f, part)->op != SSA_CONST || insn_at(f, n)->op != ATLAS_OP_sub) continue;
    uint32_t shifted = arg(f, n, 0), m = arg(f, n, 1);
    const ssa_insn *shift = insn_at(f, shifted);
    if (shift->op != ATLAS_OP_fma || arg(f, shifted, 2) != m || f->of[m].low != magic || f->of[m].high != magic)
      continue;
    for (unsigned k = 0; k < 2; k++) {
      uint32_t c = arg(f, shifted, k);
      if (arg(f, shifted, 1 - k) != x || insn_at(f, c)->op != SSA_CONST) continue;
      double size = size_of(f->of[x]), factor = f->of[c].low, back = f->of[part].low, off = 1 + factor * back;
      if (!(size * absolute(factor) < magic / 4)) continue;
      *greatest = absolute(back) * 0.51 + size * (absolute(off) + 0x1p-22);
      return 1;
    }
  }
  return 0;
}

/* w s + s, or w s + (s - k) with a constant k, is s (w + 1) - k, which has tighter bounds than the sum of w s and s.
 * The difference s - k has been rounded; that moves the result by less than if w + 1 and k were moved by 2^-23. */
static int is_scaled(const finder *f, uint32_t value, interval *result) {
  uint32_t c = arg(f, value, 2), s = c;
  double k = 0;
  if (insn_at(f, c)->op == ATLAS_OP_sub && insn_at(f, arg(f, c, 1))->op == SSA_CONST && !f->of[arg(f, c, 1)].is_nan) {
    s = arg(f, c, 0);
    k = f->of[arg(f, c, 1)].low;
  }
  for (unsigned i = 0; i < 2; i++) {
    interval w = f->of[arg(f, value, 1 - i)], off = {-absolute(k) * 0x1p-23, absolute(k) * 0x1p-23, 0};
    if (arg(f, value, i) != s) continue;
    uint8_t type = insn_at(f, value)->type;
    w = (interval){w.low + 1 - 0x1p-23, w.high + 1 + 0x1p-23, w.is_nan};
    *result = sum(type, product(f->of[s], w), (interval){off.low - k, off.high - k, 0});
    return 1;
  }
  return 0;
}

static interval fused(const finder *f, uint32_t value) {
  interval r = sum(insn_at(f, value)->type, product_in(f, value), f->of[arg(f, value, 2)]), scaled;
  if (!r.is_nan && is_scaled(f, value, &scaled) && !scaled.is_nan)
    r = (interval){most(r.low, scaled.low), least(r.high, scaled.high), 0};
  double greatest;
  if (r.is_nan || !is_argument_reduction(f, value, &greatest) || !(greatest < size_of(r))) return r;
  return (interval){-greatest, greatest, 0};
}

/* ---- selection --------------------------------------------------------------------------------------------------- */

/* The interval of `value` where the result of set.lt or set.le of a and b is `holds`. */
static interval narrowed(const finder *f, uint32_t value, uint32_t a, uint32_t b, int holds) {
  interval r = f->of[value];
  const interval *x = &f->of[a], *y = &f->of[b];
  if (!holds && (x->is_nan || y->is_nan)) return r;
  if (value == (holds ? a : b)) r.high = least(r.high, holds ? y->high : x->high);
  if (value == (holds ? b : a)) r.low = most(r.low, holds ? x->low : y->low);
  if (holds && (value == a || value == b)) r.is_nan = 0;
  return r.low <= r.high ? r : f->of[value]; /* empty: the comparison never has this result, and any answer is right */
}

static interval selected(const finder *f, uint32_t value) {
  uint32_t by = arg(f, value, 0), yes = arg(f, value, 1), no = arg(f, value, 2);
  const ssa_insn *test = insn_at(f, by);
  int compares =
      (test->op == ATLAS_OP_set_lt || test->op == ATLAS_OP_set_le) && atlas_is_wide_float((atlas_type)test->type2);
  if (!compares) return join(f->of[yes], f->of[no]);
  uint32_t a = arg(f, by, 0), b = arg(f, by, 1);
  return join(narrowed(f, yes, a, b, 1), narrowed(f, no, a, b, 0));
}

/* ---- 32-bit integers --------------------------------------------------------------------------------------------- */

/* The interval modulo 2^32, with a low bound below 2^32; anything where it covers all integers. */
static interval wrapped(double low, double high) {
  if (high - low >= TWO_32) return anything(ATLAS_u32);
  double turns = atlas_floor_f64(low / TWO_32);
  return (interval){low - turns * TWO_32, high - turns * TWO_32, 0};
}

static interval bits_of(interval a) {
  if (a.is_nan || (a.low <= 0 && a.high >= 0)) return anything(ATLAS_u32);
  double low = (double)(uint32_t)atlas_bits_of_f32((float)a.low); /* a bound that is none rounds to one, or outwards */
  double high = (double)(uint32_t)atlas_bits_of_f32((float)a.high);
  return wrapped(least(low, high), most(low, high));
}

static interval float_of(interval a) {
  const double infinity = 0x7f800000, sign = 0x80000000;
  double offset = a.low >= sign ? sign : 0;
  if (a.high > infinity + offset) return anything(ATLAS_f32);
  interval r = {atlas_as_f32((uint64_t)a.low), atlas_as_f32((uint64_t)a.high), 0};
  return offset > 0 ? (interval){r.high, r.low, 0} : r;
}

static interval bit_cast(const finder *f, uint32_t value) {
  const ssa_insn *insn = insn_at(f, value);
  interval a = f->of[arg(f, value, 0)];
  if (is_integer(insn->type) && is_integer(insn->type2)) return a;
  if (is_integer(insn->type) && insn->type2 == ATLAS_f32) return bits_of(a);
  if (insn->type == ATLAS_f32 && is_integer(insn->type2)) return float_of(a);
  return anything(insn->type);
}

static interval integer_op(const finder *f, uint32_t value) {
  const ssa_insn *insn = insn_at(f, value);
  interval a = f->of[arg(f, value, 0)], b = insn->arg_count > 1 ? f->of[arg(f, value, 1)] : a;
  switch (insn->op) {
  case ATLAS_OP_add: return wrapped(a.low + b.low, a.high + b.high);
  case ATLAS_OP_sub: return wrapped(a.low - b.high, a.high - b.low);
  case ATLAS_OP_shl:
    if (b.low != b.high || b.low > 31) break;
    return wrapped(a.low * (double)(UINT32_C(1) << (int)b.low), a.high * (double)(UINT32_C(1) << (int)b.low));
  case ATLAS_OP_max: /* of a number that is not negative */
    if (insn->type != ATLAS_i32 || b.low != b.high || b.low > INT32_MAX) break;
    return (interval){most(b.low, a.high <= INT32_MAX ? a.low : 0),
                      a.high <= INT32_MAX ? most(a.high, b.low) : INT32_MAX, 0};
  default: break;
  }
  return anything(insn->type);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static interval float_op(const finder *f, uint32_t value) {
  const ssa_insn *insn = insn_at(f, value);
  interval a = f->of[arg(f, value, 0)], b = insn->arg_count > 1 ? f->of[arg(f, value, 1)] : a;
  switch (insn->op) {
  case ATLAS_OP_neg: return negative(a);
  case ATLAS_OP_abs: return magnitude(a);
  case ATLAS_OP_copysign: return (interval){-size_of(a), size_of(a), a.is_nan};
  case ATLAS_OP_add: return sum(insn->type, a, b);
  case ATLAS_OP_sub: return sum(insn->type, a, negative(b));
  case ATLAS_OP_mul: return rounded(insn->type, product_in(f, value));
  case ATLAS_OP_fma: return fused(f, value);
  case ATLAS_OP_div: return quotient(a, b);
  case ATLAS_OP_sqrt: return (interval){-0.0, INFINITY, a.is_nan | (a.low < 0)};
  case ATLAS_OP_min: return (interval){least(a.low, b.low), least(a.high, b.high), a.is_nan | b.is_nan};
  case ATLAS_OP_max: return (interval){most(a.low, b.low), most(a.high, b.high), a.is_nan | b.is_nan};
  case ATLAS_OP_round:
  case ATLAS_OP_floor:
  case ATLAS_OP_ceil:
  case ATLAS_OP_trunc: return (interval){a.low - 1, a.high + 1, a.is_nan};
  default: return anything(insn->type);
  }
}

static interval constant(const ssa_insn *insn) {
  if (is_integer(insn->type)) return (interval){(double)(uint32_t)insn->bits, (double)(uint32_t)insn->bits, 0};
  double value = atlas_to_f64((atlas_type)insn->type, insn->bits);
  return isnan(value) ? anything(insn->type) : (interval){value, value, 0};
}

/* The interval of all entries of a table of the function library. */
static interval entries_of(const ssa_insn *load) {
  const atlas_symbol *table = atlas_symbol_at(&atlas_functions, load->symbol & ~(uint32_t)SSA_LIBRARY);
  const uint8_t *entry = (const uint8_t *)atlas_functions.constants.data + table->const_offset;
  uint32_t size = atlas_bytes((atlas_type)load->type);
  interval all = {INFINITY, -INFINITY, 0};
  for (uint32_t i = 0; i < table->count; i++) {
    double value = atlas_to_f64((atlas_type)load->type, hg_load_le(entry + (size_t)i * size, size));
    if (isnan(value)) return anything(load->type);
    all = join(all, (interval){value, value, 0});
  }
  return all;
}

static interval interval_of(const finder *f, uint32_t value) {
  const ssa_insn *insn = insn_at(f, value);
  if (!atlas_is_wide_float((atlas_type)insn->type) && !is_integer(insn->type)) return anything(ATLAS_f64);
  if (insn->op == ATLAS_OP_ldc && insn->symbol & SSA_LIBRARY && atlas_is_wide_float((atlas_type)insn->type))
    return entries_of(insn);
  if (insn->arg_count == 0) return anything(insn->type);
  if (insn->op == ATLAS_OP_bitcast) return bit_cast(f, value);
  if (insn->op == ATLAS_OP_sel && atlas_is_wide_float((atlas_type)insn->type)) return selected(f, value);
  if (insn->op == ATLAS_OP_cvt && atlas_is_wide_float((atlas_type)insn->type)) {
    if (atlas_is_wide_float((atlas_type)insn->type2)) return rounded(insn->type, f->of[arg(f, value, 0)]);
    if (!atlas_is_integer((atlas_type)insn->type2)) return anything(insn->type); /* infinities stay what they are */
    return (interval){-0x1p64, 0x1p64, 0};
  }
  if (!(atlas_op_flags(insn->op) & ATLAS_PURE) || insn->op == ATLAS_OP_cvt) return anything(insn->type);
  return atlas_is_wide_float((atlas_type)insn->type) ? float_op(f, value) : integer_op(f, value);
}

static interval phi_of(const finder *f, const ssa_order *order, uint32_t phi) {
  const ssa_insn *insn = insn_at(f, phi);
  const uint32_t *from = ssa_block_at(f->unit, insn->block)->predecessors.data;
  interval all = anything(insn->type);
  if (!atlas_is_wide_float((atlas_type)insn->type)) return all;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    if (order->position[from[i]] >= order->position[insn->block]) return anything(insn->type);
    all = i == 0 ? f->of[arg(f, phi, i)] : join(all, f->of[arg(f, phi, i)]);
  }
  return all;
}

static void find_all(const finder *f, const ssa_order *order) {
  for (uint32_t v = 0; v < f->unit->insns.count; v++) {
    const ssa_insn *insn = insn_at(f, v);
    int is_number = atlas_is_wide_float((atlas_type)insn->type) || is_integer(insn->type);
    f->of[v] = insn->op == SSA_CONST && is_number ? constant(insn) : anything(insn->type);
  }
  for (uint32_t k = 0; k < order->count; k++) {
    const ssa_block *block = ssa_block_at(f->unit, order->block[k]);
    for (uint32_t v = block->first_phi; v != SSA_NONE; v = insn_at(f, v)->next) f->of[v] = phi_of(f, order, v);
    for (uint32_t v = block->first_effect; v != SSA_NONE; v = insn_at(f, v)->next) f->of[v] = interval_of(f, v);
  }
}

hg_status hg_find_never_nan(const ssa_unit *unit, const ssa_order *order, uint8_t *never_nan) {
  uint64_t count = unit->insns.count;
  finder f = {.unit = unit, .of = hg_allocate(&unit->allocator, count, sizeof(interval))};
  if (f.of == NULL) return hg_fail_memory("bounds of values", count * sizeof(interval));
  find_all(&f, order);
  for (uint32_t v = 0; v < count; v++)
    never_nan[v] = atlas_is_wide_float((atlas_type)insn_at(&f, v)->type) && !f.of[v].is_nan;
  hg_release(&unit->allocator, f.of);
  return HG_OK;
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

/* 1 if the condition compares `value`, or its magnitude, and is false for NaN. */
static int is_compared(const ssa_unit *unit, uint32_t condition, uint32_t value) {
  const ssa_insn *test = ssa_insn_at(unit, condition);
  int is_false_for_nan = test->op == ATLAS_OP_set_lt || test->op == ATLAS_OP_set_le || test->op == ATLAS_OP_set_eq;
  for (uint32_t i = 0; i < test->arg_count && is_false_for_nan; i++) {
    uint32_t by = ssa_args_of(unit, condition)[i];
    if (ssa_insn_at(unit, by)->op == ATLAS_OP_abs) by = ssa_args_of(unit, by)[0];
    if (by == value) return 1;
  }
  return 0;
}

int hg_comes_as_number(const ssa_unit *unit, uint32_t phi, uint32_t i) {
  const ssa_insn *insn = ssa_insn_at(unit, phi);
  uint32_t from = ((const uint32_t *)ssa_block_at(unit, insn->block)->predecessors.data)[i];
  const ssa_block *block = ssa_block_at(unit, from);
  if (block->end != SSA_BRANCH || block->successor[0] != insn->block || block->successor[1] == insn->block) return 0;
  return atlas_is_wide_float((atlas_type)insn->type) && is_compared(unit, block->condition, ssa_args_of(unit, phi)[i]);
}
