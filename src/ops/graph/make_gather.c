/* make_gather.c - rows of the kind gather: elements by index, and scattered back. */
#include "ops/graph/compute.h"

static atlas_type type_of(const hg_computation *c, value_id value) { return (atlas_type)ops_at(c, value)->type; }

/* An unsigned index never counts from the end. */
static uint8_t bounds_of(const ops_request *request, value_id index) {
  uint8_t bounds = (uint8_t)request->arguments[1].integers[0];
  return bounds == OPS_WRAP && type_of(request->c, index) > ATLAS_i64 ? OPS_FAULT : bounds;
}

static value_id gather(const ops_request *request, value_id x, value_id index, int axis) {
  hg_computation *c = request->c;
  if (x == 0 || index == 0) return 0;
  value_id narrow = ops_before_widening(c, x);
  if (narrow != x) return ops_cast(c, gather(request, narrow, index, axis), ATLAS_f32);
  const ops_node *from = ops_at(c, x);
  if (from->shape.size[axis] == 0 && ops_count(&ops_at(c, index)->shape) > 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s: along axis %d there is nothing to take", OPS_TEXT(c, x),
                      axis);
  return ops_add(c, &(ops_node){.kind = OPS_GATHER, .type = from->type, .bounds = bounds_of(request, index),
                                .axis = (uint8_t)axis, .input = {x, index},
                                .shape = ops_at(c, index)->shape});
}

/* x[..., index, ...]: the index has any shape, which replaces the axis. */
static value_id take(const ops_request *request) {
  hg_computation *c = request->c;
  ops_shape x = ops_at(c, request->inputs[0])->shape, index = ops_at(c, request->inputs[1])->shape;
  int axis = ops_axis_of(request, &request->arguments[0], x.rank);
  if (axis < 0) return 0;
  if (x.rank - 1 + index.rank > HG_MAX_RANK)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s by %s: the result would have more than %d axes",
                      OPS_TEXT(c, request->inputs[0]), OPS_TEXT(c, request->inputs[1]), HG_MAX_RANK);
  ops_shape flat = {.rank = 1, .size = {ops_count(&index)}}, shape = x, result = {.rank = 0};
  ops_view view = {.start = {0}};
  shape.size[axis] = flat.size[0];
  for (uint32_t i = 0; i < x.rank; i++)
    view.axis[i] = (int16_t)((int)i == axis ? 0 : -1), view.step[i] = (int)i == axis;
  for (uint32_t i = 0; i < x.rank; i++) {
    if ((int)i != axis) result.size[result.rank++] = x.size[i];
    for (uint32_t k = 0; (int)i == axis && k < index.rank; k++) result.size[result.rank++] = index.size[k];
  }
  if (!ops_is_countable(&shape))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "a result of shape %s has more than 2^40 elements",
                      OPS_SHAPE(&shape));
  value_id numbers = ops_view_of(c, ops_reshape(c, request->inputs[1], &flat), &view, &shape);
  return ops_reshape(c, gather(request, request->inputs[0], numbers, axis), &result);
}

/* Broadcasts values to one shape, except along an axis, where each keeps its own size. */
static int agree_around(const ops_request *request, value_id *values, uint32_t count, int axis) {
  hg_computation *c = request->c;
  ops_shape around = ops_at(c, values[0])->shape;
  around.size[axis] = 1;
  for (uint32_t i = 1; i < count; i++) {
    ops_shape next = ops_at(c, values[i])->shape;
    if (next.rank == around.rank) next.size[axis] = 1;
    if (next.rank == around.rank && ops_broadcast_shapes(&around, &next, &around)) continue;
    ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: they need as many axes, equal but for axis %d",
               OPS_TEXT(c, values[0]), OPS_TEXT(c, values[i]), axis);
    return 0;
  }
  for (uint32_t i = 0; i < count; i++) {
    ops_shape own = around;
    own.size[axis] = ops_at(c, values[i])->shape.size[axis];
    if (!ops_is_countable(&own))
      return ops_refuse(request, HG_INVALID_ARGUMENT, "%s has more than 2^40 elements", OPS_SHAPE(&own)), 0;
    if ((values[i] = ops_broadcast(c, values[i], &own)) == 0) return 0;
  }
  return 1;
}

static value_id take_along(const ops_request *request) {
  hg_computation *c = request->c;
  value_id values[2] = {request->inputs[0], request->inputs[1]};
  int axis = ops_axis_of(request, &request->arguments[0], ops_at(c, values[0])->shape.rank);
  if (axis < 0 || !agree_around(request, values, 2, axis)) return 0;
  return gather(request, values[0], values[1], axis);
}

/* The type in which sources are combined: a float or a word. */
static atlas_type wide_type(atlas_type type, uint8_t reduce) {
  int is_extreme = reduce > 1 + OPS_PRODUCT, is_narrow = atlas_bytes(type) < 4;
  if (reduce == 0 || !is_narrow) return type;
  if (atlas_is_float(type)) return ATLAS_f32;
  if (!is_extreme) return type;
  return atlas_kind(type) == ATLAS_KIND_UINT ? ATLAS_u32 : ATLAS_i32;
}

static value_id scatter(const ops_request *request, uint8_t reduce) {
  hg_computation *c = request->c;
  value_id pair[2] = {request->inputs[0], request->inputs[2]};
  int axis = ops_axis_of(request, &request->arguments[0], ops_at(c, pair[0])->shape.rank);
  if (axis < 0 || !ops_agree_types(request, pair, 2)) return 0;
  atlas_type type = type_of(c, pair[0]);
  atlas_type wide = wide_type(type, reduce);
  ops_shape shape = ops_at(c, pair[0])->shape;
  value_id values[3] = {ops_cast(c, pair[0], wide), request->inputs[1], ops_cast(c, pair[1], wide)};
  if (values[0] == 0 || values[2] == 0 || !agree_around(request, values, 3, axis)) return 0;
  if (!ops_same_shape(&shape, &ops_at(c, values[0])->shape))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s and too small for what is put there",
                      OPS_TEXT(c, request->inputs[0]));
  if (ops_at(c, values[1])->shape.size[axis] != ops_at(c, values[2])->shape.size[axis] &&
      !ops_agree_shapes(request, values + 1, 2))
    return 0;
  if (ops_count(&ops_at(c, values[1])->shape) == 0) return ops_cast(c, values[0], type);
  if (ops_count(&shape) == 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s: there is no place to put anything",
                      OPS_TEXT(c, values[0]));
  ops_node node = {.kind = OPS_SCATTER,
                   .type = (uint8_t)wide,
                   .reduce = reduce,
                   .bounds = bounds_of(request, values[1]),
                   .axis = (uint8_t)axis,
                   .input = {values[0], values[1], values[2]},
                   .shape = shape};
  return ops_cast(c, ops_scatter(c, &node), type);
}

value_id ops_make_gather(const ops_request *request) {
  switch (request->row->op) {
    case HG_OP_take: return take(request);
    case HG_OP_take_along: return take_along(request);
    case HG_OP_scatter_add: return scatter(request, 1 + OPS_SUM);
    case HG_OP_scatter_multiply: return scatter(request, 1 + OPS_PRODUCT);
    case HG_OP_scatter_min: return scatter(request, 1 + OPS_MIN);
    case HG_OP_scatter_max: return scatter(request, 1 + OPS_MAX);
    default: return scatter(request, 0);
  }
}
