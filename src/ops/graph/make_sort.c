/* make_sort.c - the row of the kind sort: sorted elements, and their old indices.
 *
 * A node sorts by u32 keys of so many bits, which are monotone in the numbers: for floats their bits, with negative
 * ones reversed. 64-bit numbers have two keys and are sorted twice, stably: by the lower half, then by the upper one,
 * which decides. */
#include "ops/graph/compute.h"

static atlas_type type_of(const hg_computation *c, value_id value) { return (atlas_type)ops_at(c, value)->type; }

static value_id constant_like(hg_computation *c, value_id value, uint64_t bits) {
  return value != 0 ? ops_full(c, type_of(c, value), bits, &ops_at(c, value)->shape) : 0;
}

static value_id with_constant(hg_computation *c, atlas_op op, value_id value, uint64_t bits) {
  return ops_binary(c, op, value, constant_like(c, value, bits));
}

static atlas_type unsigned_of(atlas_type type) {
  static const atlas_type types[] = {ATLAS_u8, ATLAS_u16, ATLAS_u32, ATLAS_u64};
  unsigned k = 0;
  while (8u << k < atlas_type_bits(type)) k++;
  return types[k];
}

/* Unsigned keys with as many bits, in the order of floats, for which both zeros are equal and all NaNs are. */
static value_id key_of_floats(hg_computation *c, value_id x) {
  atlas_type key = unsigned_of(type_of(c, x));
  uint64_t top = UINT64_C(1) << (atlas_type_bits(key) - 1);
  value_id number = with_constant(c, ATLAS_OP_add, x, 0);
  value_id bits = number != 0 ? ops_read_as(c, number, key) : 0;
  value_id is_negative = with_constant(c, ATLAS_OP_set_ge, bits, top);
  value_id sides[3] = {is_negative, ops_unary(c, ATLAS_OP_not, bits), with_constant(c, ATLAS_OP_or, bits, top)};
  return ops_pointwise(c, ATLAS_OP_sel, sides, 3);
}

/* Unsigned keys with as many bits, in the order of x. */
static value_id key_of(hg_computation *c, value_id x) {
  atlas_type type = type_of(c, x), key = unsigned_of(type);
  if (atlas_is_float(type)) return key_of_floats(c, x);
  if (type == ATLAS_bool || atlas_kind(type) == ATLAS_KIND_UINT) return ops_cast(c, x, key);
  return with_constant(c, ATLAS_OP_xor, ops_read_as(c, x, key), UINT64_C(1) << (atlas_type_bits(key) - 1));
}

static value_id sort_by(hg_computation *c, value_id key, value_id x, uint32_t axis) {
  if (key == 0 || x == 0) return 0;
  uint64_t bits = atlas_type_bits(type_of(c, key));
  key = ops_cast(c, key, ATLAS_u32);
  if (key == 0) return 0;
  return ops_add(c, &(ops_node){.kind = OPS_SORT, .type = ops_at(c, x)->type, .axis = (uint8_t)axis, .bits = bits,
                                .input = {key, x}, .shape = ops_at(c, x)->shape});
}

/* Sorts values and indices by 64-bit keys. */
static void sort_by_halves(hg_computation *c, value_id key, value_id x, uint32_t axis, value_id *results) {
  ops_shape shape = ops_at(c, key)->shape;
  value_id count = ops_full(c, ATLAS_u32, 32, &shape);
  value_id upper = ops_cast(c, ops_pointwise(c, ATLAS_OP_shr, (value_id[]){key, count}, 2), ATLAS_u32);
  value_id lower = ops_cast(c, with_constant(c, ATLAS_OP_and, key, UINT32_MAX), ATLAS_u32);
  value_id first = sort_by(c, lower, upper, axis);
  results[1] = sort_by(c, first, ops_result_of(c, first, 1, ATLAS_i64), axis);
  results[0] = ops_add(c, &(ops_node){.kind = OPS_GATHER, .type = ops_at(c, x)->type, .bounds = OPS_CLAMP,
                                      .axis = (uint8_t)axis, .input = {x, results[1]}, .shape = shape});
}

uint32_t ops_make_sort(const ops_request *request, value_id *results) {
  enum { MOST_BITS = 31 };
  hg_computation *c = request->c;
  value_id x = request->inputs[0];
  ops_shape shape = ops_at(c, x)->shape;
  int axis = ops_axis_of(request, &request->arguments[0], shape.rank);
  if (axis < 0) return 0;
  if (shape.size[axis] > UINT64_C(1) << MOST_BITS)
    return ops_refuse(request, HG_UNSUPPORTED, "x is %s: along an axis it takes at most 2^%d elements; sort parts",
                      OPS_TEXT(c, x), MOST_BITS);
  if (shape.size[axis] < 2 || ops_count(&shape) == 0) {
    results[0] = x, results[1] = ops_full(c, ATLAS_i64, 0, &shape);
    return results[1] != 0 ? 2 : 0;
  }
  value_id key = key_of(c, x);
  if (request->arguments[1].integers[0] != 0) key = ops_unary(c, ATLAS_OP_not, key);
  if (key == 0) return 0;
  if (type_of(c, key) == ATLAS_u64) {
    sort_by_halves(c, key, x, (uint32_t)axis, results);
  } else {
    results[0] = sort_by(c, key, x, (uint32_t)axis);
    results[1] = ops_result_of(c, results[0], 1, ATLAS_i64);
  }
  return results[0] != 0 && results[1] != 0 ? 2 : 0;
}
