/* make_reduce.c - rows of the kinds reduce and scan: sums and products accumulate in a type that holds them, a sequence
 * of one or no values needs no reduction, and a NaN is made canonical. */
#include "ops/graph/gradient.h"

#include "atlas/value.h"

#include <math.h>

static atlas_type type_of(const hg_computation *c, value_id value) { return (atlas_type)ops_at(c, value)->type; }

/* The type in which a sum or product accumulates. */
static atlas_type wide_type(atlas_type type) {
  if (type == ATLAS_bool || atlas_kind(type) == ATLAS_KIND_SINT) return ATLAS_i64;
  if (atlas_kind(type) == ATLAS_KIND_UINT) return ATLAS_u64;
  return type == ATLAS_f64 ? ATLAS_f64 : ATLAS_f32;
}

static ops_shape without(const ops_shape *shape, uint32_t axes, int keep) {
  ops_shape result = {.rank = 0};
  for (uint32_t i = 0; i < shape->rank; i++) {
    if ((axes >> i & 1) == 0) result.size[result.rank++] = shape->size[i];
    else if (keep) result.size[result.rank++] = 1;
  }
  return result;
}

static uint64_t count_over(const ops_shape *shape, uint32_t axes) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < shape->rank; i++)
    if ((axes >> i & 1) != 0) count *= shape->size[i];
  return count;
}

static uint64_t number_of(atlas_type type, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return atlas_convert(type, ATLAS_f64, bits);
}

/* The value with canonical NaNs. */
static value_id canonical(hg_computation *c, value_id value) {
  atlas_type type = type_of(c, value);
  if (!atlas_is_float(type)) return value;
  return ops_binary(c, ATLAS_OP_mul, value, ops_full(c, type, number_of(type, 1), &ops_at(c, value)->shape));
}

static value_id of_nothing(const ops_request *request, ops_reduce reduce, atlas_type type, const ops_shape *shape) {
  hg_computation *c = request->c;
  if (reduce == OPS_SUM) return ops_full(c, type, 0, shape);
  if (reduce == OPS_PRODUCT) return ops_full(c, type, number_of(type, 1), shape);
  return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s: along these axes there is nothing to choose from",
                    OPS_TEXT(c, request->inputs[0]));
}

/* Reduces a value of a type that the reduction is defined for. */
static value_id reduced(const ops_request *request, ops_reduce reduce, value_id x, uint32_t axes, int keep) {
  hg_computation *c = request->c;
  if (x == 0) return 0;
  ops_shape shape = ops_at(c, x)->shape, result = without(&shape, axes, keep);
  uint64_t count = count_over(&shape, axes);
  int is_index = reduce == OPS_ARGMIN || reduce == OPS_ARGMAX;
  if (count == 0 && ops_count(&result) > 0)
    return of_nothing(request, reduce, type_of(c, x), &result);
  if (count <= 1 || ops_count(&result) == 0) {
    if (is_index || count != 1) return ops_full(c, is_index ? ATLAS_i64 : type_of(c, x), 0, &result);
    return ops_reshape(c, canonical(c, x), &result);
  }
  return ops_reduce_over(c, reduce, x, axes, keep);
}

value_id ops_sum(hg_computation *c, value_id value, uint32_t axes, int keep) {
  if (value == 0) return 0;
  ops_request request = {.c = c, .row = ops_row_of(HG_OP_sum), .inputs = &value, .input_count = 1};
  atlas_type type = type_of(c, value);
  return ops_cast(c, reduced(&request, OPS_SUM, ops_cast(c, value, wide_type(type)), axes, keep), type);
}

static value_id any_or_all(const ops_request *request, uint32_t axes, int keep) {
  hg_computation *c = request->c;
  value_id x = ops_cast(c, request->inputs[0], ATLAS_bool);
  ops_shape shape = ops_at(c, x)->shape, result = without(&shape, axes, keep);
  int is_all = request->row->op == HG_OP_all;
  if (count_over(&shape, axes) == 0) return ops_full(c, ATLAS_bool, (uint64_t)is_all, &result);
  value_id number = reduced(request, is_all ? OPS_MIN : OPS_MAX, ops_cast(c, x, ATLAS_u32), axes, keep);
  return ops_cast(c, number, ATLAS_bool);
}

value_id ops_make_reduce(const ops_request *request) {
  hg_computation *c = request->c;
  value_id x = request->inputs[0];
  uint32_t axes;
  int keep = request->arguments[1].integers[0] != 0;
  if (!ops_axes_of(request, &request->arguments[0], ops_at(c, x)->shape.rank, &axes)) return 0;
  atlas_type type = type_of(c, x);
  switch (request->row->op) {
    case HG_OP_sum:
    case HG_OP_prod: {
      ops_reduce reduce = request->row->op == HG_OP_sum ? OPS_SUM : OPS_PRODUCT;
      value_id result = reduced(request, reduce, ops_cast(c, x, wide_type(type)), axes, keep);
      return atlas_is_float(type) ? ops_cast(c, result, type) : result;
    }
    case HG_OP_min: return reduced(request, OPS_MIN, x, axes, keep);
    case HG_OP_max: return reduced(request, OPS_MAX, x, axes, keep);
    case HG_OP_argmin: return reduced(request, OPS_ARGMIN, x, axes, keep);
    case HG_OP_argmax: return reduced(request, OPS_ARGMAX, x, axes, keep);
    default: return any_or_all(request, axes, keep);
  }
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

/* The operator of a row. */
static ops_reduce scan_by(const ops_request *request) {
  static const ops_reduce words[] = {OPS_SUM, OPS_PRODUCT, OPS_MAX, OPS_MIN, OPS_LOGSUMEXP};
  switch (request->row->op) {
  case HG_OP_segmented_scan: return words[request->arguments[1].integers[0]];
  case HG_OP_cumulative_sum: return OPS_SUM;
  case HG_OP_cumulative_prod: return OPS_PRODUCT;
  case HG_OP_cumulative_min: return OPS_MIN;
  case HG_OP_cumulative_max: return OPS_MAX;
  default: return OPS_LOGSUMEXP;
  }
}

/* The identity: infinities stand for a type's least and greatest number. */
static double identity_of(ops_reduce reduce) {
  if (reduce == OPS_SUM) return 0;
  if (reduce == OPS_PRODUCT) return 1;
  return reduce == OPS_MIN ? HUGE_VAL : -HUGE_VAL;
}

/* The identity and all elements but the last along the axis; or all but the first and the identity. */
static value_id pushed(hg_computation *c, value_id x, uint32_t axis, int is_reversed, double identity) {
  ops_node node = {.kind = OPS_PAD, .type = (uint8_t)type_of(c, x), .shape = ops_at(c, x)->shape};
  uint64_t bits = number_of(type_of(c, x), identity);
  ops_shape part = node.shape;
  int64_t low[HG_MAX_RANK] = {0};
  if (--part.size[axis] == 0) return ops_full(c, type_of(c, x), bits, &node.shape);
  low[axis] = is_reversed, node.view.start[axis] = !is_reversed;
  node.input[0] = ops_part_of(c, x, low, &part);
  node.input[1] = ops_constant(c, type_of(c, x), bits);
  return ops_add(c, &node);
}

/* x, but the identity where a segment begins. */
static value_id begun_anew(hg_computation *c, value_id x, value_id places, double identity) {
  if (x == 0) return 0;
  atlas_type type = type_of(c, x);
  ops_shape shape = ops_at(c, x)->shape;
  value_id begins = ops_binary(c, ATLAS_OP_set_eq, places, ops_full(c, ATLAS_i64, 0, &shape));
  value_id first = ops_full(c, type, number_of(type, identity), &shape);
  return ops_pointwise(c, ATLAS_OP_sel, (value_id[]){begins, first, x}, 3);
}

value_id ops_make_scan(const ops_request *request) {
  hg_computation *c = request->c;
  value_id x = request->inputs[0], places = 0;
  int has_segments = request->row->op == HG_OP_segmented_scan;
  const ops_item *how = request->arguments + 1 + has_segments;
  ops_reduce reduce = scan_by(request);
  double identity = identity_of(reduce);
  if (has_segments) {
    int is_float = atlas_is_float(type_of(c, x)), is_bool = type_of(c, x) == ATLAS_bool;
    if (!is_float && (reduce == OPS_LOGSUMEXP || (is_bool && reduce > OPS_PRODUCT)))
      return ops_refuse(request, HG_INVALID_ARGUMENT, "%s has no such scan: cast it", OPS_TEXT(c, x));
    value_id pair[2] = {x, ops_cast(c, request->inputs[1], ATLAS_i64)};
    if (pair[1] == 0 || !ops_agree_shapes(request, pair, 2)) return 0;
    x = pair[0], places = pair[1];
  }
  ops_node node = {.kind = OPS_SCAN, .bits = request->row->op, .shape = ops_at(c, x)->shape};
  int axis = ops_axis_of(request, &request->arguments[0], node.shape.rank);
  if (axis < 0) return 0;
  int is_wide = !atlas_is_float(type_of(c, x)) && (reduce == OPS_SUM || reduce == OPS_PRODUCT);
  if (is_wide) x = ops_cast(c, x, wide_type(type_of(c, x)));
  if (x == 0 || ops_count(&node.shape) == 0) return x;
  node.index = how[1].integers[0] != 0;
  if (how[0].integers[0] != 0) {
    x = pushed(c, x, (uint32_t)axis, (int)node.index, identity);
    if (has_segments) x = begun_anew(c, x, places, identity);
  }
  if (x == 0 || (node.shape.size[axis] == 1 && reduce != OPS_LOGSUMEXP)) return x == 0 ? 0 : canonical(c, x);
  node.reduce = (uint8_t)reduce, node.type = (uint8_t)type_of(c, x), node.axis = (uint8_t)axis, node.input[0] = x;
  node.input[1] = places, node.input_count = (uint8_t)(1 + has_segments);
  return ops_add(c, &node);
}
