/* compare.c - exact comparisons of integers with floats: neither is rounded.
 *
 * Integers of up to 32 bits fit a float type. A 64-bit integer i is compared with the float rounded to an integer t: i
 * < f is i < ceil(f), i <= f is i <= floor(f), and i == f is i == t if t equals f. The conversion to t saturates; if
 * that, a NaN or a fraction makes t wrong, 0 replaces i, which is on the same side of f. */
#include "ops/graph/compute.h"

#include "atlas/value.h"

static atlas_type type_of(const hg_computation *c, value_id value) { return (atlas_type)ops_at(c, value)->type; }

static atlas_op with_sides_changed(atlas_op op) {
  switch (op) {
    case ATLAS_OP_set_lt: return ATLAS_OP_set_gt;
    case ATLAS_OP_set_le: return ATLAS_OP_set_ge;
    case ATLAS_OP_set_gt: return ATLAS_OP_set_lt;
    case ATLAS_OP_set_ge: return ATLAS_OP_set_le;
    default: return op;
  }
}

/* The limits beyond which the saturating conversion does not give f: below `low`, or from 2^63 or 2^64 on. */
typedef struct limits {
  double low, high;
} limits;

static value_id is_within(hg_computation *c, atlas_op op, value_id f, value_id t, const limits *l) {
  ops_shape shape = ops_at(c, f)->shape;
  value_id low = ops_broadcast(c, ops_number(c, ATLAS_f64, l->low), &shape);
  value_id high = ops_broadcast(c, ops_number(c, ATLAS_f64, l->high), &shape);
  value_id is_below = ops_binary(c, ATLAS_OP_set_lt, f, high);
  if (op == ATLAS_OP_set_lt || op == ATLAS_OP_set_ge) return is_below;
  if (op == ATLAS_OP_set_le || op == ATLAS_OP_set_gt) return ops_binary(c, ATLAS_OP_set_ge, f, low);
  return ops_binary(c, ATLAS_OP_pand, is_below, ops_binary(c, ATLAS_OP_set_eq, ops_cast(c, t, ATLAS_f64), f));
}

static value_id compare_wide(hg_computation *c, atlas_op op, value_id i, value_id f) {
  atlas_type type = type_of(c, i);
  limits l = type == ATLAS_u64 ? (limits){0, 0x1p64} : (limits){-0x1p63, 0x1p63};
  value_id whole = f;
  if (op == ATLAS_OP_set_lt || op == ATLAS_OP_set_ge) whole = ops_unary(c, ATLAS_OP_ceil, f);
  if (op == ATLAS_OP_set_le || op == ATLAS_OP_set_gt) whole = ops_unary(c, ATLAS_OP_floor, f);
  value_id t = ops_cast(c, whole, type);
  if (t == 0) return 0;
  ops_shape shape = ops_at(c, f)->shape;
  value_id zero = ops_full(c, ATLAS_f64, 0, &shape);
  value_id sides[3] = {is_within(c, op, f, t, &l), ops_binary(c, op, i, t), ops_binary(c, op, zero, f)};
  return ops_pointwise(c, ATLAS_OP_sel, sides, 3);
}

value_id ops_compare_kinds(hg_computation *c, atlas_op op, value_id a, value_id b) {
  if (atlas_is_float(type_of(c, a))) return ops_compare_kinds(c, with_sides_changed(op), b, a);
  uint32_t bytes = atlas_bytes(type_of(c, a));
  atlas_type type = bytes <= 2 && type_of(c, b) != ATLAS_f64 ? ATLAS_f32 : ATLAS_f64;
  value_id f = ops_cast(c, b, type);
  if (f == 0) return 0;
  return bytes == 8 ? compare_wide(c, op, a, f) : ops_binary(c, op, ops_cast(c, a, type), f);
}
