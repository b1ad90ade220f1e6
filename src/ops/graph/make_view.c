/* make_view.c - rows of the kind view: the same elements in another order or shape. */
#include "ops/graph/compute.h"

static const ops_shape *shape_of(const ops_request *request) { return &ops_at(request->c, request->inputs[0])->shape; }

static ops_view same_view(uint32_t rank) {
  ops_view view = {.start = {0}};
  for (uint32_t i = 0; i < rank; i++) view.axis[i] = (int16_t)i, view.step[i] = 1;
  return view;
}

/* The sizes of an argument; one may be -1: whatever makes `count` elements. */
static int sizes_of(const ops_request *request, const ops_item *sizes, uint64_t count, ops_shape *shape) {
  int open = -1;
  uint64_t rest = 1;
  *shape = (ops_shape){.rank = sizes->count};
  for (uint32_t i = 0; i < sizes->count; i++) {
    int64_t size = sizes->integers[i];
    if (size == -1 && open < 0) {
      open = (int)i;
    } else if (size < 0) {
      return ops_refuse(request, HG_INVALID_ARGUMENT, "there is no shape with a size of %lld", (long long)size), 0;
    } else {
      shape->size[i] = (uint64_t)size;
      if (size > 0 && rest > OPS_MAX_ELEMENTS / (uint64_t)size) rest = OPS_MAX_ELEMENTS + 1;
      else rest *= (uint64_t)size;
    }
  }
  if (open >= 0 && (rest == 0 || count % rest != 0))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "no size at -1 makes %llu elements", (unsigned long long)count), 0;
  if (open >= 0) shape->size[open] = count / rest;
  return 1;
}

static value_id reshape(const ops_request *request) {
  hg_computation *c = request->c;
  ops_shape shape;
  if (!sizes_of(request, &request->arguments[0], ops_count(shape_of(request)), &shape)) return 0;
  if (!ops_is_countable(&shape) || ops_count(&shape) != ops_count(shape_of(request)))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s, which has another number of elements than %s",
                      OPS_TEXT(c, request->inputs[0]), OPS_SHAPE(&shape));
  return ops_reshape(c, request->inputs[0], &shape);
}

static value_id permute(const ops_request *request) {
  uint32_t rank = shape_of(request)->rank, axes[HG_MAX_RANK] = {0}, bits;
  const ops_item *list = &request->arguments[0];
  if (!ops_axes_of(request, list, rank, &bits)) return 0;
  if (!list->is_all && list->count != rank)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%u axes are named, of %u", (unsigned)list->count, (unsigned)rank);
  for (uint32_t i = 0; i < rank; i++) /* all: in reverse order */
    axes[i] = list->is_all ? rank - 1 - i : (uint32_t)ops_axis(list->integers[i], rank);
  return ops_permute(request->c, request->inputs[0], axes);
}

static value_id swap(const ops_request *request) {
  uint32_t rank = shape_of(request)->rank, axes[HG_MAX_RANK] = {0};
  int a = ops_axis_of(request, &request->arguments[0], rank),
      b = a < 0 ? -1 : ops_axis_of(request, &request->arguments[1], rank);
  if (b < 0) return 0;
  for (uint32_t i = 0; i < rank; i++) axes[i] = (int)i == a ? (uint32_t)b : (int)i == b ? (uint32_t)a : i;
  return ops_permute(request->c, request->inputs[0], axes);
}

static value_id slice(const ops_request *request) {
  hg_computation *c = request->c;
  ops_shape shape = *shape_of(request);
  int axis = ops_axis_of(request, &request->arguments[0], shape.rank);
  if (axis < 0) return 0;
  int64_t step = request->arguments[3].integers[0], size = (int64_t)shape.size[axis];
  const ops_item *first = &request->arguments[1], *last = &request->arguments[2];
  int64_t start = first->kind == OPS_ITEM_ABSENT ? (step < 0 ? size - 1 : 0) : first->integers[0];
  int64_t stop = last->kind == OPS_ITEM_ABSENT ? (step < 0 ? -1 : size) : last->integers[0];
  uint64_t count;
  if (!ops_slice_count(shape.size[axis], start, stop, step, &count))
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "elements %lld to %lld by %lld of axis %d of %s: steps up need 0 <= start <= stop <= size, steps "
                      "down -1 <= stop <= start < size, and 0 is no step",
                      (long long)start, (long long)stop, (long long)step, axis, OPS_TEXT(c, request->inputs[0]));
  ops_view view = same_view(shape.rank);
  view.start[axis] = count == 0 ? 0 : start;
  view.step[axis] = count <= 1 ? 1 : step;
  shape.size[axis] = count;
  return ops_view_of(c, request->inputs[0], &view, &shape);
}

static value_id flip(const ops_request *request) {
  ops_shape shape = *shape_of(request);
  uint32_t axes;
  if (!ops_axes_of(request, &request->arguments[0], shape.rank, &axes)) return 0;
  ops_view view = same_view(shape.rank);
  for (uint32_t i = 0; i < shape.rank; i++)
    if ((axes >> i & 1) != 0 && shape.size[i] > 1) view.start[i] = (int64_t)shape.size[i] - 1, view.step[i] = -1;
  return ops_view_of(request->c, request->inputs[0], &view, &shape);
}

static value_id broadcast(const ops_request *request) {
  hg_computation *c = request->c;
  ops_shape shape, both;
  if (!ops_shape_of(request, &request->arguments[0], &shape)) return 0;
  if (!ops_broadcast_shapes(&shape, shape_of(request), &both) || !ops_same_shape(&both, &shape))
    return ops_refuse(
        request, HG_INVALID_ARGUMENT,
        "x is %s and does not broadcast to %s: counted from the last axis, its sizes must be the same or 1",
        OPS_TEXT(c, request->inputs[0]), OPS_SHAPE(&shape));
  return ops_broadcast(c, request->inputs[0], &shape);
}

static value_id expand(const ops_request *request) {
  ops_shape shape = *shape_of(request);
  if (shape.rank == HG_MAX_RANK)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "x has rank %d already", HG_MAX_RANK);
  int axis = ops_axis_of(request, &request->arguments[0], shape.rank + 1);
  if (axis < 0) return 0;
  for (uint32_t i = shape.rank++; i > (uint32_t)axis; i--) shape.size[i] = shape.size[i - 1];
  shape.size[axis] = 1;
  return ops_reshape(request->c, request->inputs[0], &shape);
}

/* `all`: drops every axis of one element. */
static value_id squeeze(const ops_request *request) {
  hg_computation *c = request->c;
  ops_shape shape = *shape_of(request), result = {.rank = 0};
  uint32_t axes;
  if (!ops_axes_of(request, &request->arguments[0], shape.rank, &axes)) return 0;
  for (uint32_t i = 0; i < shape.rank; i++) {
    int is_named = (axes >> i & 1) != 0;
    if (is_named && shape.size[i] != 1 && !request->arguments[0].is_all)
      return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s: axis %u has not one element",
                        OPS_TEXT(c, request->inputs[0]), (unsigned)i);
    if (!is_named || shape.size[i] != 1) result.size[result.rank++] = shape.size[i];
  }
  return ops_reshape(c, request->inputs[0], &result);
}

/* A node of its own, so that it can be recognised in what an index is computed from. */
static value_id axis_numbers(const ops_request *request) {
  int64_t number = request->arguments[0].integers[0], length = request->arguments[1].integers[0];
  const ops_node *x = ops_at(request->c, request->inputs[0]);
  if (number < 0 || number >= HG_MAX_RANK || length < 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "there is no axis of number %lld and length %lld",
                      (long long)number, (long long)length);
  return ops_add(request->c, &(ops_node){.kind = OPS_RESHAPE, .type = x->type, .axes = UINT32_C(1) << number,
                                         .bits = (uint64_t)length, .input = {request->inputs[0]},
                                         .shape = x->shape});
}

value_id ops_make_view(const ops_request *request) {
  switch (request->row->op) {
    case HG_OP_reshape: return reshape(request);
    case HG_OP_permute: return permute(request);
    case HG_OP_swap: return swap(request);
    case HG_OP_slice: return slice(request);
    case HG_OP_flip: return flip(request);
    case HG_OP_broadcast: return broadcast(request);
    case HG_OP_expand: return expand(request);
    case HG_OP_axis_numbers: return axis_numbers(request);
    default: return squeeze(request);
  }
}
