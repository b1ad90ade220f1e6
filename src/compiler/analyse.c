/* analyse.c - one walk over a unit that finds level, bounds and stride of every value, then the accesses that are in
 * bounds.
 *
 * Bounds are intervals of exact integers. Where an operation could wrap, the result has the bounds of its type and no
 * stride. A phi has the union of its arguments' bounds; with an argument from a back edge, which is not known yet, it
 * has the bounds of its type. Dominating branches narrow bounds: in code that runs only where `i < n` held, i is
 * below n. */
#include "compiler/analyse.h"

#include "atlas/arith.h"
#include "atlas/functions.h"
#include "base/error.h"
#include "compiler/aliasing.h"
#include "compiler/block_levels.h"
#include "ir/ssa_walk.h"

#include <string.h>

typedef struct analyst {
  const atlas_program *program;
  ssa_unit *unit;
  const hg_shape *shape;
  const ssa_order *order;
  hg_array values;
  hg_analysis *out;
  uint8_t *control; /* per block: ir_level; those of `out` */
  uint8_t *known;   /* per value: 0 until its fact has been found in this round, then FACT_AS_BEFORE or FACT_NEW */
  uint8_t read_only[ATLAS_MAX_SYMBOLS + 2]; /* per location (compiler/aliasing.h) */
} analyst;

static const ssa_insn *insn_at(const analyst *a, uint32_t value) { return ssa_insn_at(a->unit, value); }
static const hg_fact *arg_fact(const analyst *a, uint32_t value, unsigned i) {
  return &a->out->fact[ssa_args_of(a->unit, value)[i]];
}

/* ---- intervals --------------------------------------------------------------------------------------------------- */

static hg_fact of_type(uint8_t type) {
  hg_fact f = {.level = IR_GRID, .alignment = 1};
  if (type == SSA_PREDICATE || !atlas_is_integer((atlas_type)type) || type == ATLAS_u64) return f;
  int is_signed = atlas_kind((atlas_type)type) == ATLAS_KIND_SINT;
  f.exact = 1;
  f.high = (int64_t)(is_signed ? atlas_mask((atlas_type)type) >> 1 : atlas_mask((atlas_type)type));
  f.low = is_signed ? -f.high - 1 : 0;
  return f;
}

static int fits(uint8_t type, int64_t low, int64_t high) {
  if (type == ATLAS_u64) return low >= 0;
  hg_fact t = of_type(type);
  return t.exact && low >= t.low && high <= t.high;
}

static int add_exact(int64_t a, int64_t b, int64_t *sum) {
  if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)) return 0;
  *sum = a + b;
  return 1;
}

static int multiply_exact(int64_t a, int64_t b, int64_t *product) {
  const int64_t half = INT64_C(1) << 31; /* enough for addresses; anything larger counts as not known */
  if ((a > half || a < -half || b > half || b < -half) && a != 0 && b != 0) {
    int64_t other = a > half || a < -half ? b : a, large = other == b ? a : b;
    if (other != 1 && other != 0) return 0;
    *product = other == 1 ? large : 0;
    return 1;
  }
  *product = a * b;
  return 1;
}

static void set_bounds(hg_fact *f, uint8_t type, int64_t low, int64_t high) {
  if (!fits(type, low, high)) return;
  f->low = low;
  f->high = high;
  f->exact = 1;
}

/* 1 and the bounds, when the sum cannot wrap. */
static int bounded_sum(const hg_fact *a, const hg_fact *b, uint8_t type, hg_fact *f) {
  int64_t low, high;
  if (!a->exact || !b->exact || !add_exact(a->low, b->low, &low) || !add_exact(a->high, b->high, &high) ||
      !fits(type, low, high))
    return 0;
  set_bounds(f, type, low, high);
  return 1;
}

/* The value does not change along these axes: its stride there is 0. */
static void set_invariant(hg_fact *f, unsigned axes) {
  f->stride_known |= (uint8_t)axes;
  for (unsigned d = 0; d < 4; d++)
    if (axes >> d & 1) f->stride[d] = 0;
}

static void set_stride(hg_fact *f, hg_axis axis, uint64_t stride) {
  if (stride > INT32_MAX) return;
  f->stride_known |= (uint8_t)(1u << axis);
  f->stride[axis] = (int64_t)stride;
}

/* The axes along which a value of this level cannot change. */
static unsigned invariant_axes(uint8_t level) {
  return level == IR_GRID ? HG_ALL_AXES : level == IR_BLOCK ? 1u << HG_AXIS_LANE : 0;
}

static uint32_t alignment_of(uint64_t number) {
  uint32_t alignment = 1;
  while (alignment < HG_MAX_ALIGNMENT && number % (2 * (uint64_t)alignment) == 0) alignment *= 2;
  return alignment;
}

static uint32_t lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

static hg_fact negated(const hg_fact *a) {
  hg_fact n = *a;
  n.exact = a->exact && a->low != INT64_MIN && a->high != INT64_MIN;
  n.low = n.exact ? -a->high : 0;
  n.high = n.exact ? -a->low : 0;
  for (unsigned d = 0; d < 4; d++) n.stride[d] = -a->stride[d]; /* strides are far from INT64_MIN */
  return n;
}

static int bounded_product(const hg_fact *a, const hg_fact *b, uint8_t type, hg_fact *f) {
  int64_t corner[4];
  if (!a->exact || !b->exact) return 0;
  if (!multiply_exact(a->low, b->low, &corner[0]) || !multiply_exact(a->low, b->high, &corner[1]) ||
      !multiply_exact(a->high, b->low, &corner[2]) || !multiply_exact(a->high, b->high, &corner[3]))
    return 0;
  int64_t low = corner[0], high = corner[0];
  for (int i = 1; i < 4; i++) {
    if (corner[i] < low) low = corner[i];
    if (corner[i] > high) high = corner[i];
  }
  if (!fits(type, low, high)) return 0;
  set_bounds(f, type, low, high);
  return 1;
}

/* ---- where a lane is --------------------------------------------------------------------------------------------- */

static uint64_t all_lanes(const analyst *a) {
  const hg_shape *s = a->shape;
  if (s->lanes != 0) return s->lanes;
  uint64_t count = 1;
  for (int d = 0; d < 3; d++) {
    if (s->grid[d] == 0 || s->block[d] == 0) return 0;
    count *= s->grid[d] * s->block[d];
  }
  return count;
}

static uint64_t block_lanes(const analyst *a) {
  uint64_t count = 1;
  for (int d = 0; d < 3; d++) count *= a->shape->block[d] != 0 ? a->shape->block[d] : ATLAS_MAX_BLOCK_LANES;
  return count < ATLAS_MAX_BLOCK_LANES ? count : ATLAS_MAX_BLOCK_LANES;
}

static void set_bounds_below(hg_fact *f, uint8_t type, uint64_t count) {
  if (count > 0 && count <= INT64_MAX) set_bounds(f, type, 0, (int64_t)count - 1);
}

static int is_one_dimensional(const analyst *a) {
  const hg_shape *s = a->shape;
  return s->lanes != 0 || (s->block[1] == 1 && s->block[2] == 1);
}

static void coordinate_fact(const analyst *a, const ssa_insn *insn, hg_fact *f) {
  const hg_shape *s = a->shape;
  unsigned d = (unsigned)insn->bits % 3;
  switch (insn->bits / 3) {
  case ATLAS_COORD_LANE_X / 3:
    f->level = IR_LANE;
    set_invariant(f, HG_ALL_AXES ^ 1u << HG_AXIS_LANE);
    if (is_one_dimensional(a)) set_stride(f, HG_AXIS_LANE, d == 0);
    set_bounds_below(f, insn->type, s->block[d] != 0 ? s->block[d] : ATLAS_MAX_BLOCK_LANES);
    break;
  case ATLAS_COORD_BLOCK_X / 3:
    f->level = IR_BLOCK;
    set_invariant(f, HG_ALL_AXES);
    set_stride(f, (hg_axis)(HG_AXIS_BLOCK_X + d), 1);
    set_bounds_below(f, insn->type, s->grid[d]);
    break;
  case ATLAS_COORD_BLOCK_SIZE_X / 3:
    if (s->block[d] != 0) set_bounds(f, insn->type, (int64_t)s->block[d], (int64_t)s->block[d]);
    else set_bounds(f, insn->type, 1, ATLAS_MAX_BLOCK_LANES);
    break;
  case ATLAS_COORD_GRID_SIZE_X / 3:
    if (s->grid[d] != 0) set_bounds(f, insn->type, (int64_t)s->grid[d], (int64_t)s->grid[d]);
    break;
  default:
    f->level = IR_LANE;
    set_invariant(f, HG_ALL_AXES ^ (1u << HG_AXIS_LANE | 1u << (HG_AXIS_BLOCK_X + d)));
    if (is_one_dimensional(a)) set_stride(f, HG_AXIS_LANE, d == 0);
    if (s->block[d] != 0) set_stride(f, (hg_axis)(HG_AXIS_BLOCK_X + d), s->block[d]);
    if (d == 0 && s->lanes != 0) set_bounds_below(f, insn->type, s->lanes);
    else if (s->grid[d] != 0 && s->block[d] != 0) set_bounds_below(f, insn->type, s->grid[d] * s->block[d]);
    break;
  }
}

/* blane is the lane's number in its block. lane counts rows of the whole grid, so it is affine in one dimension only.
 */
static void special_fact(const analyst *a, const ssa_insn *insn, hg_fact *f) {
  f->level = IR_LANE;
  if (insn->bits != ATLAS_REG_LANE) {
    set_invariant(f, HG_ALL_AXES);
    set_stride(f, HG_AXIS_LANE, 1);
    set_bounds_below(f, insn->type, block_lanes(a));
    return;
  }
  set_bounds_below(f, insn->type, all_lanes(a));
  if (!is_one_dimensional(a)) return;
  set_invariant(f, 1u << HG_AXIS_BLOCK_Y | 1u << HG_AXIS_BLOCK_Z);
  set_stride(f, HG_AXIS_LANE, 1);
  if (a->shape->block[0] != 0) set_stride(f, HG_AXIS_BLOCK_X, a->shape->block[0]);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static void combine_stride(hg_fact *f, const hg_fact *a, const hg_fact *b) {
  for (unsigned d = 0; d < 4; d++)
    if (a->stride_known >> d & b->stride_known >> d & 1 && add_exact(a->stride[d], b->stride[d], &f->stride[d]))
      f->stride_known |= (uint8_t)(1u << d);
}

/* a * b, when one of them is known as a number. */
static void scale_stride(hg_fact *f, const hg_fact *a, const hg_fact *b) {
  const hg_fact *scale = b->exact && b->low == b->high ? b : a, *varies = scale == b ? a : b;
  if (!scale->exact || scale->low != scale->high) return;
  for (unsigned d = 0; d < 4; d++)
    if (varies->stride_known >> d & 1 && multiply_exact(varies->stride[d], scale->low, &f->stride[d]))
      f->stride_known |= (uint8_t)(1u << d);
}

/* Alignment survives wrapping, because the modulus is a power of two. */
static uint32_t alignment_of_product(uint32_t a, uint32_t b) {
  uint64_t product = (uint64_t)a * b;
  return product < HG_MAX_ALIGNMENT ? (uint32_t)product : HG_MAX_ALIGNMENT;
}

static uint32_t alignment_of_value(const analyst *a, uint32_t value) {
  const ssa_insn *insn = insn_at(a, value);
  const hg_fact *x = arg_fact(a, value, 0), *y = insn->arg_count > 1 ? arg_fact(a, value, 1) : x;
  switch (insn->op) {
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_or:
  case ATLAS_OP_xor:
  case ATLAS_OP_min:
  case ATLAS_OP_max: return lesser(x->alignment, y->alignment);
  case ATLAS_OP_sel: return lesser(y->alignment, arg_fact(a, value, 2)->alignment);
  case ATLAS_OP_and: return x->alignment > y->alignment ? x->alignment : y->alignment;
  case ATLAS_OP_mul: return alignment_of_product(x->alignment, y->alignment);
  case ATLAS_OP_mad:
    return lesser(alignment_of_product(x->alignment, y->alignment), arg_fact(a, value, 2)->alignment);
  case ATLAS_OP_shl:
    if (!y->exact || y->low != y->high || y->low < 0 || y->low > 12) return x->alignment;
    return alignment_of_product(x->alignment, 1u << y->low);
  case ATLAS_OP_cvt: return atlas_is_integer((atlas_type)insn->type2) ? x->alignment : 1;
  default: return 1;
  }
}

static void multiply_add(const hg_fact *a, const hg_fact *b, const hg_fact *c, uint8_t type, hg_fact *f) {
  hg_fact product = *f;
  if (!bounded_product(a, b, type, &product)) return;
  scale_stride(&product, a, b);
  if (!bounded_sum(&product, c, type, f)) return;
  combine_stride(f, &product, c);
}

static void divide_fact(const hg_fact *a, const hg_fact *b, uint8_t type, hg_fact *f) {
  if (!a->exact || !b->exact || a->low < 0 || b->low < 1) return;
  set_bounds(f, type, a->low / b->high, a->high / b->low);
}

static void remainder_fact(const hg_fact *a, const hg_fact *b, uint8_t type, hg_fact *f) {
  if (!b->exact || b->low < 1) return;
  if (a->exact && a->low >= 0) set_bounds(f, type, 0, a->high < b->high - 1 ? a->high : b->high - 1);
  else if (atlas_kind((atlas_type)type) == ATLAS_KIND_UINT) set_bounds(f, type, 0, b->high - 1);
  else set_bounds(f, type, 1 - b->high, b->high - 1);
}

static void and_fact(const hg_fact *a, const hg_fact *b, uint8_t type, hg_fact *f) {
  int64_t high = INT64_MAX;
  if (a->exact && a->low >= 0) high = a->high;
  if (b->exact && b->low >= 0 && b->high < high) high = b->high;
  if (high != INT64_MAX) set_bounds(f, type, 0, high);
}

static void shift_fact(const ssa_insn *insn, const hg_fact *a, const hg_fact *count, hg_fact *f) {
  if (!a->exact || !count->exact || count->low != count->high) return;
  int64_t by = count->low % (int64_t)atlas_type_bits((atlas_type)insn->type);
  if (insn->op == ATLAS_OP_shr) {
    if (a->low >= 0) set_bounds(f, insn->type, a->low >> by, a->high >> by);
    return;
  }
  if (by > 31) return;
  hg_fact factor = {.exact = 1, .low = INT64_C(1) << by, .high = INT64_C(1) << by};
  if (bounded_product(a, &factor, insn->type, f)) scale_stride(f, a, &factor);
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static void arithmetic_fact(const analyst *a, uint32_t value, hg_fact *f) {
  const ssa_insn *insn = insn_at(a, value);
  const hg_fact *x = arg_fact(a, value, 0), *y = insn->arg_count > 1 ? arg_fact(a, value, 1) : x;
  hg_fact minus;
  switch (insn->op) {
  case ATLAS_OP_add:
    if (bounded_sum(x, y, insn->type, f)) combine_stride(f, x, y);
    break;
  case ATLAS_OP_sub:
    minus = negated(y);
    if (bounded_sum(x, &minus, insn->type, f)) combine_stride(f, x, &minus);
    break;
  case ATLAS_OP_mul:
    if (bounded_product(x, y, insn->type, f)) scale_stride(f, x, y);
    break;
  case ATLAS_OP_mad: multiply_add(x, y, arg_fact(a, value, 2), insn->type, f); break;
  case ATLAS_OP_div: divide_fact(x, y, insn->type, f); break;
  case ATLAS_OP_rem: remainder_fact(x, y, insn->type, f); break;
  case ATLAS_OP_and: and_fact(x, y, insn->type, f); break;
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: shift_fact(insn, x, y, f); break;
  case ATLAS_OP_min:
    if (x->exact && y->exact) set_bounds(f, insn->type, smaller(x->low, y->low), smaller(x->high, y->high));
    break;
  case ATLAS_OP_max:
    if (x->exact && y->exact) set_bounds(f, insn->type, larger(x->low, y->low), larger(x->high, y->high));
    break;
  case ATLAS_OP_cvt: /* between integers: the number stays where the new type holds it */
    if (!x->exact || !fits(insn->type, x->low, x->high)) break;
    set_bounds(f, insn->type, x->low, x->high);
    f->stride_known |= x->stride_known;
    memcpy(f->stride, x->stride, sizeof f->stride);
    break;
  case ATLAS_OP_sel:
    y = arg_fact(a, value, 1);
    x = arg_fact(a, value, 2);
    if (x->exact && y->exact) set_bounds(f, insn->type, smaller(x->low, y->low), larger(x->high, y->high));
    break;
  default: break;
  }
}

/* ---- one value --------------------------------------------------------------------------------------------------- */

static void find_read_only(analyst *a) {
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  hg_alias_groups(a->program, a->unit, group);
  for (uint32_t l = 0; l < hg_location_count(a->program); l++)
    a->read_only[l] = (uint8_t)hg_is_read_only(a->program, group, l);
}

static uint8_t effect_level(const analyst *a, const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info->flags & ATLAS_LOAD) return a->read_only[hg_location_of(a->program, insn)] ? IR_GRID : IR_LANE;
  if (info->flags & ATLAS_ATOMIC || insn->op == ATLAS_OP_scan_incl || insn->op == ATLAS_OP_scan_excl) return IR_LANE;
  return info->flags & ATLAS_BLOCK || insn->op == ATLAS_OP_cls_get ? IR_BLOCK : IR_GRID;
}

static void phi_fact(const analyst *a, uint32_t value, hg_fact *f) {
  const ssa_insn *insn = insn_at(a, value);
  const hg_array *predecessors = &ssa_block_at(a->unit, insn->block)->predecessors;
  int all = 1;
  int64_t low = INT64_MAX, high = INT64_MIN;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    const hg_fact *x = arg_fact(a, value, i);
    if (!a->known[ssa_args_of(a->unit, value)[i]] || !x->exact) all = 0;
    else {
      low = smaller(low, x->low);
      high = larger(high, x->high);
    }
    if (x->level > f->level) f->level = x->level;
  }
  if (all && insn->arg_count > 0) set_bounds(f, insn->type, low, high);
  for (size_t i = 0; i < predecessors->count; i++) { /* the branches that decide which argument a lane gets */
    uint32_t from = ((const uint32_t *)predecessors->data)[i], condition = ssa_block_at(a->unit, from)->condition;
    if (a->control[from] > f->level) f->level = a->control[from];
    if (condition != SSA_NONE && a->out->fact[condition].level > f->level) f->level = a->out->fact[condition].level;
  }
}

enum { FACT_AS_BEFORE = 1, FACT_NEW = 2 };

/* 1 if this round may find another fact than the last: for a phi, whose back edges were not known; and where the level
 * of the block's control or the fact of an argument has changed. */
static int may_change(const analyst *a, uint32_t value) {
  const ssa_insn *insn = insn_at(a, value);
  if (insn->op == SSA_PHI) return 1;
  if (insn->block != SSA_NONE && a->control[insn->block] > a->out->fact[value].level) return 1;
  for (uint32_t i = 0; i < insn->arg_count; i++)
    if (a->known[ssa_args_of(a->unit, value)[i]] == FACT_NEW) return 1;
  return 0;
}

/* 1 if the value's level rose. */
static int find_fact(analyst *a, uint32_t value) {
  const ssa_insn *insn = insn_at(a, value);
  uint8_t level_before = a->out->fact[value].level;
  hg_fact f = of_type(insn->type);
  switch (insn->op) {
  case SSA_CONST:
    f.alignment = alignment_of(insn->bits);
    if (f.exact || insn->type == ATLAS_u64)
      set_bounds(&f, insn->type, atlas_to_i64((atlas_type)insn->type, insn->bits),
                 atlas_to_i64((atlas_type)insn->type, insn->bits));
    break;
  case SSA_SCALAR:
    if (a->shape->scalar != NULL && (f.exact || insn->type == ATLAS_u64)) {
      int64_t number = atlas_to_i64((atlas_type)insn->type, a->shape->scalar[insn->symbol]);
      set_bounds(&f, insn->type, number, number);
      f.alignment = alignment_of(a->shape->scalar[insn->symbol]);
    }
    break;
  case SSA_SPECIAL: special_fact(a, insn, &f); break;
  case SSA_PHI: phi_fact(a, value, &f); break;
  case ATLAS_OP_sreg: coordinate_fact(a, insn, &f); break;
  case ATLAS_OP_cls_get:
    f.level = IR_BLOCK;
    set_bounds(&f, insn->type, 0, ATLAS_CLASS_COUNT - 1);
    break;
  default:
    f.level = effect_level(a, insn);
    if (!(atlas_op_flags(insn->op) & ATLAS_BLOCK))
      for (uint32_t i = 0; i < insn->arg_count; i++)
        if (arg_fact(a, value, i)->level > f.level) f.level = arg_fact(a, value, i)->level;
    if (insn->block != SSA_NONE && a->control[insn->block] > f.level) f.level = a->control[insn->block];
    if (insn->arg_count > 0 && insn->type != SSA_PREDICATE && atlas_is_integer((atlas_type)insn->type)) {
      arithmetic_fact(a, value, &f);
      f.alignment = alignment_of_value(a, value);
    }
    break;
  }
  set_invariant(&f, invariant_axes(f.level));
  a->out->fact[value] = f;
  /* only the level of a phi can change from one round to the next */
  a->known[value] = insn->op == SSA_PHI && f.level == level_before ? FACT_AS_BEFORE : FACT_NEW;
  return f.level > level_before;
}

/* ---- bounds from branches ---------------------------------------------------------------------------------------- */

typedef struct bounds {
  uint32_t value;
  int64_t low, high;
} bounds;

enum { CONDITIONS_SEEN = 32 }; /* of one branch: a graph of `and` and `or` may have exponentially many paths */

/* Narrows the bounds by a comparison that is known to hold (or not to). */
static void narrow_bounds(const analyst *a, uint32_t condition, int holds, bounds *b, int *seen) {
  const ssa_insn *insn = insn_at(a, condition);
  const uint32_t *args = ssa_args_of(a->unit, condition);
  if (++*seen > CONDITIONS_SEEN) return;
  if (insn->op == (holds ? ATLAS_OP_pand : ATLAS_OP_por)) { /* both hold; neither holds */
    narrow_bounds(a, args[0], holds, b, seen);
    narrow_bounds(a, args[1], holds, b, seen);
    return;
  }
  if (insn->op == ATLAS_OP_pnot) {
    narrow_bounds(a, args[0], !holds, b, seen);
    return;
  }
  if (insn->op != ATLAS_OP_set_lt || !atlas_is_integer((atlas_type)insn->type2)) return;
  const hg_fact *x = arg_fact(a, condition, 0), *y = arg_fact(a, condition, 1);
  int left = args[0] == b->value, right = args[1] == b->value;
  if (left && y->exact && holds) b->high = smaller(b->high, y->high - (y->high > INT64_MIN));
  if (left && y->exact && !holds) b->low = larger(b->low, y->low);
  if (right && x->exact && holds) b->low = larger(b->low, x->low + (x->low < INT64_MAX));
  if (right && x->exact && !holds) b->high = smaller(b->high, x->high);
}

enum { GUARDS_SEEN = 64 }; /* dominating branches looked at for one access */

/* Bounds of a value in a block: its own, narrowed by the branches on the way there. */
static int bounds_in(const analyst *a, uint32_t value, uint32_t block, int64_t *low, int64_t *high) {
  const hg_fact *f = &a->out->fact[value];
  int is_u64 = insn_at(a, value)->type == ATLAS_u64;
  if (!f->exact && !is_u64) return 0;
  bounds known = {value, f->exact ? f->low : 0, f->exact ? f->high : INT64_MAX};
  for (int guards = 0; block != 0 && guards < GUARDS_SEEN; guards++) {
    uint32_t parent = a->order->dominator[block];
    const ssa_block *branch = ssa_block_at(a->unit, parent);
    int seen = 0;
    if (branch->end == SSA_BRANCH)
      for (int s = 0; s < 2; s++) /* only where the side is entered from the branch alone */
        if (branch->successor[s] == block && ssa_block_at(a->unit, block)->predecessors.count == 1)
          narrow_bounds(a, branch->condition, s == 0, &known, &seen);
    block = parent;
  }
  *low = known.low;
  *high = known.high;
  return f->exact || known.high < INT64_MAX;
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

static uint64_t extent_of(const analyst *a, const ssa_insn *insn) {
  if (insn->mode > ATLAS_ADDRESS_INDEXED) return 0;
  if (insn->symbol & SSA_LIBRARY)
    return atlas_symbol_at(&atlas_functions, insn->symbol & ~(unsigned)SSA_LIBRARY)->count;
  const atlas_symbol *symbol = atlas_symbol_at(a->program, insn->symbol);
  if (symbol->kind == ATLAS_SYMBOL_SHARED || symbol->kind == ATLAS_SYMBOL_CONST) return symbol->count;
  if (symbol->kind != ATLAS_SYMBOL_BUFFER || a->shape->extent == NULL) return 0;
  return a->shape->extent[insn->symbol];
}

static int is_in_bounds(const analyst *a, uint32_t value) {
  const ssa_insn *insn = insn_at(a, value);
  uint64_t extent = extent_of(a, insn);
  int64_t low = 0, high = 0, displacement = (int64_t)insn->bits;
  if (extent == 0 || extent > INT64_MAX) return 0;
  if (insn->mode == ATLAS_ADDRESS_INDEXED && !bounds_in(a, ssa_args_of(a->unit, value)[0], insn->block, &low, &high))
    return 0;
  if (low > high) return 1; /* no lane gets there */
  return add_exact(low, displacement, &low) && add_exact(high, displacement, &high) && low >= 0 &&
         (uint64_t)high < extent;
}

static int is_access(const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  return info != NULL && (info->flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != 0;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

enum { LEVEL_ROUNDS = 16 }; /* after so many, all control counts as divergent */

static hg_status find_facts(analyst *a, hg_control *c) {
  const hg_allocator *allocator = &a->unit->allocator;
  uint64_t values = a->unit->insns.count, blocks = a->unit->blocks.count;
  HG_TRY(ir_ssa_walk(a->unit, a->order, &a->values));
  a->out->fact = hg_allocate(allocator, values * (sizeof(hg_fact) + 2) + blocks, 1);
  if (a->out->fact == NULL) return hg_fail_memory("the analysis of a program", values * sizeof(hg_fact));
  a->out->in_bounds = (uint8_t *)(a->out->fact + values);
  a->known = a->out->in_bounds + values;
  a->control = a->out->control = a->known + values;
  find_read_only(a);
  for (int round = 0, raised = 1; raised; round++) { /* levels only rise, so this ends; most programs need two rounds */
    raised = 0;
    memset(a->known, 0, values);
    for (size_t k = 0; k < a->values.count; k++) {
      uint32_t value = ((const uint32_t *)a->values.data)[k];
      if (round == 0 || may_change(a, value)) raised |= find_fact(a, value);
      else a->known[value] = FACT_AS_BEFORE;
    }
    if (round == LEVEL_ROUNDS) hg_control_set_divergent(c);
    raised |= hg_control_spread(c, a->unit, a->order, a->out->fact, a->control);
  }
  for (size_t k = 0; k < a->values.count; k++) {
    uint32_t value = ((const uint32_t *)a->values.data)[k];
    if (is_access(insn_at(a, value))) a->out->in_bounds[value] = (uint8_t)is_in_bounds(a, value);
  }
  return HG_OK;
}

hg_status hg_analyse_with(const atlas_program *program, ssa_unit *unit, const hg_shape *shape, const ssa_order *order,
                          hg_control *control, hg_analysis *out) {
  analyst a = {.program = program, .unit = unit, .shape = shape, .order = order,
               .values = {.element_size = sizeof(uint32_t)}, .out = out};
  *out = (hg_analysis){0};
  hg_status status = find_facts(&a, control);
  hg_array_release(&unit->allocator, &a.values);
  return status;
}

hg_status hg_analyse(const atlas_program *program, ssa_unit *unit, const hg_shape *shape, hg_analysis *out) {
  ssa_order order;
  hg_control control = {0};
  *out = (hg_analysis){0};
  ir_ssa_resolve_all(unit);
  hg_status status = ir_ssa_order_build(unit, &order);
  if (status == HG_OK) status = hg_control_build(unit, &order, &control);
  if (status == HG_OK) status = hg_analyse_with(program, unit, shape, &order, &control, out);
  hg_control_release(unit, &control);
  ir_ssa_order_release(unit, &order);
  return status;
}

void hg_analysis_release(const ssa_unit *unit, hg_analysis *analysis) {
  hg_release(&unit->allocator, analysis->fact);
  *analysis = (hg_analysis){0};
}

/* ---- summary ----------------------------------------------------------------------------------------------------- */

static void count_memory(const ssa_insn *insn, uint32_t flags, hg_summary *out) {
  uint32_t bytes = flags & ATLAS_SPACE_GLOBAL || flags & ATLAS_ATOMIC ? atlas_bytes((atlas_type)insn->type) : 0;
  if (flags & ATLAS_LOAD) out->loads++;
  if (flags & ATLAS_STORE) out->stores++;
  if (flags & ATLAS_ATOMIC) out->atomics++;
  if (flags & (ATLAS_LOAD | ATLAS_ATOMIC)) out->bytes_read += bytes;
  if (flags & (ATLAS_STORE | ATLAS_ATOMIC)) out->bytes_written += bytes;
}

static void count_value(const ssa_insn *insn, hg_summary *out) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info == NULL) return; /* constants, parameters, phis */
  if (info->flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) count_memory(insn, info->flags, out);
  else if (info->flags & ATLAS_BLOCK) *(insn->op == ATLAS_OP_bar_sync ? &out->barriers : &out->collectives) += 1;
  else if (info->flags & ATLAS_FUNC) out->functions++;
  else if (insn->op == ATLAS_OP_div || insn->op == ATLAS_OP_rem || insn->op == ATLAS_OP_sqrt) out->divisions++;
  else if (insn->type != SSA_PREDICATE && atlas_kind((atlas_type)insn->type) == ATLAS_KIND_FLOAT) out->float_ops++;
  else out->integer_ops++;
}

hg_status hg_summarise(const atlas_program *program, ssa_unit *unit, hg_summary *out) {
  ssa_order order;
  hg_array values = {.element_size = sizeof(uint32_t)};
  (void)program;
  *out = (hg_summary){0};
  ir_ssa_resolve_all(unit);
  hg_status status = ir_ssa_order_build(unit, &order);
  if (status == HG_OK) status = ir_ssa_walk(unit, &order, &values);
  for (size_t k = 0; k < values.count && status == HG_OK; k++)
    count_value(ssa_insn_at(unit, ((const uint32_t *)values.data)[k]), out);
  for (uint32_t k = 0; k < order.count && status == HG_OK; k++) {
    const ssa_block *block = ssa_block_at(unit, order.block[k]);
    out->branches += block->end == SSA_BRANCH;
    for (size_t i = 0; i < block->predecessors.count; i++)
      if (ssa_dominates(&order, order.block[k], ((const uint32_t *)block->predecessors.data)[i])) {
        out->loops++;
        break;
      }
  }
  ir_ssa_order_release(unit, &order);
  hg_array_release(&unit->allocator, &values);
  return status;
}
