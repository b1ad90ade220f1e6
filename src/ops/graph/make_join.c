/* make_join.c - rows of the kinds join and create: tensors joined along an axis, within a constant, and from
 * nothing. */
#include "ops/graph/compute.h"
#include "ops/graph/ops_tuning.h"

#include "atlas/number.h"
#include "atlas/value.h"

int ops_shape_of(const ops_request *request, const ops_item *sizes, ops_shape *shape) {
  *shape = (ops_shape){.rank = sizes->count};
  for (uint32_t i = 0; i < sizes->count; i++) {
    shape->size[i] = (uint64_t)sizes->integers[i];
    if (sizes->integers[i] < 0)
      return ops_refuse(request, HG_INVALID_ARGUMENT, "a size of %lld", (long long)sizes->integers[i]), 0;
  }
  if (ops_is_countable(shape)) return 1;
  return ops_refuse(request, HG_INVALID_ARGUMENT, "%s has more than 2^40 elements", OPS_SHAPE(shape)), 0;
}

/* ---- joining ----------------------------------------------------------------------------------------------------- */

/* The shape of some of the tensors joined along the axis. */
static ops_shape shape_of_all(const hg_computation *c, const value_id *values, uint32_t count, int axis) {
  ops_shape shape = ops_at(c, values[0])->shape;
  for (uint32_t i = 1; i < count; i++) shape.size[axis] += ops_at(c, values[i])->shape.size[axis];
  return shape;
}

/* Two tensors are one node. Further ones are put in one after another, so that each is written once. */
static value_id join_run(hg_computation *c, const value_id *values, uint32_t count, int axis) {
  if (count == 1) return values[0];
  if (count == 2) return ops_concatenate(c, values[0], values[1], (uint32_t)axis);
  ops_node node = {.kind = OPS_UPDATE, .type = ops_at(c, values[0])->type, .reduce = 1,
                   .shape = shape_of_all(c, values, count, axis)};
  value_id result = ops_full(c, (atlas_type)node.type, 0, &node.shape);
  for (uint32_t d = 0; d < node.shape.rank; d++) node.view.step[d] = 1;
  for (uint32_t i = 0; i < count && result != 0 && ops_count(&node.shape) > 0; i++) {
    node.input[0] = result, node.input[1] = values[i];
    result = ops_add(c, &node);
    node.view.start[axis] += (int64_t)ops_at(c, values[i])->shape.size[axis];
  }
  return result;
}

/* Joins neighbours among the tensors, in place, that one launch would join (plan_boxes.c). Returns how many are left;
 * 0: failed. */
static uint32_t join_small(hg_computation *c, value_id *values, uint32_t count, int axis) {
  uint32_t left = 0;
  for (uint32_t first = 0, end; first < count; first = end) {
    uint64_t elements = ops_count(&ops_at(c, values[first])->shape);
    for (end = first + 1; end < count && end - first < OPS_BOX_UPDATES; end++)
      if ((elements += ops_count(&ops_at(c, values[end])->shape)) > OPS_BOX_ELEMENTS) break;
    values[left] = join_run(c, values + first, end - first, axis);
    if (values[left++] == 0) return 0;
  }
  return left;
}

static value_id join_all(hg_computation *c, value_id *values, uint32_t count, int axis) {
  for (uint32_t before = 0; count > OPS_BOX_UPDATES && count != before;) {
    before = count;
    count = join_small(c, values, count, axis);
  }
  return count != 0 ? join_run(c, values, count, axis) : 0;
}

/* Drops the tensors that have no elements along the axis, in place, except the last one if all are empty. 0:
 * refused. */
static uint32_t fit_together(const ops_request *request, value_id *values, uint32_t count, int axis) {
  hg_computation *c = request->c;
  ops_shape all = ops_at(c, values[0])->shape;
  uint32_t left = 0;
  all.size[axis] = 0;
  for (uint32_t i = 0; i < count; i++) {
    ops_shape next = ops_at(c, values[i])->shape;
    uint64_t size = next.rank == all.rank ? next.size[axis] : 0;
    next.size[axis] = all.size[axis];
    if (!ops_same_shape(&next, &all))
      return ops_refuse(request, HG_INVALID_ARGUMENT,
                        "%s and %s: they need as many axes, of equal sizes but for axis %d", OPS_TEXT(c, values[0]),
                        OPS_TEXT(c, values[i]), axis), 0;
    all.size[axis] += size;
    if (!ops_is_countable(&all))
      return ops_refuse(request, HG_INVALID_ARGUMENT, "%s has more than 2^40 elements", OPS_SHAPE(&all)), 0;
    if (size != 0 || (i + 1 == count && left == 0)) values[left++] = values[i];
  }
  return left;
}

/* Adds an axis of one element. */
static value_id expanded(hg_computation *c, value_id value, int axis) {
  ops_shape shape = ops_at(c, value)->shape;
  for (uint32_t i = shape.rank++; i > (uint32_t)axis; i--) shape.size[i] = shape.size[i - 1];
  shape.size[axis] = 1;
  return ops_reshape(c, value, &shape);
}

static value_id join(const ops_request *request, value_id *values, uint32_t count, int is_stack) {
  hg_computation *c = request->c;
  uint32_t rank = ops_at(c, values[0])->shape.rank;
  if (is_stack && rank == HG_MAX_RANK)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s has %d axes already", OPS_TEXT(c, values[0]), HG_MAX_RANK);
  int axis = ops_axis_of(request, &request->arguments[0], rank + (uint32_t)is_stack);
  if (axis < 0 || !ops_agree_types(request, values, count)) return 0;
  for (uint32_t i = count; is_stack && i-- > 0;) {
    if (!ops_same_shape(&ops_at(c, values[i])->shape, &ops_at(c, request->inputs[0])->shape))
      return ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: they need one shape", OPS_TEXT(c, values[0]),
                        OPS_TEXT(c, values[i]));
    if ((values[i] = expanded(c, values[i], axis)) == 0) return 0;
  }
  count = fit_together(request, values, count, axis);
  return count != 0 ? join_all(c, values, count, axis) : 0;
}

static value_id pad(const ops_request *request) {
  hg_computation *c = request->c;
  value_id x = request->inputs[0];
  ops_node node = {.kind = OPS_PAD, .axis = 0, .shape = ops_at(c, x)->shape};
  const ops_item *low = &request->arguments[0], *high = &request->arguments[1];
  for (uint32_t side = 0; side < 2; side++) {
    const ops_item *list = &request->arguments[side];
    int fits = list->count == node.shape.rank || (list->count == 0 && !list->is_all);
    for (uint32_t i = 0; i < list->count; i++)
      fits &= list->integers[i] >= 0 && list->integers[i] <= (int64_t)OPS_MAX_ELEMENTS;
    if (!fits)
      return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s: 'low' and 'high' name as many sizes, none below 0",
                        OPS_TEXT(c, x));
  }
  for (uint32_t i = 0; i < node.shape.rank; i++) {
    node.view.start[i] = low->count == 0 ? 0 : low->integers[i];
    node.shape.size[i] += (uint64_t)(node.view.start[i] + (high->count == 0 ? 0 : high->integers[i]));
  }
  if (!ops_is_countable(&node.shape))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s has more than 2^40 elements", OPS_SHAPE(&node.shape));
  if (request->inputs[1] != 0 && low->count == 0 && high->count == 0 && node.shape.rank > 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "a value is given, but not how much of it: 'low' and 'high' have a width for each axis");
  value_id pair[2] = {x, request->inputs[1]};
  if (pair[1] == 0) pair[1] = ops_constant(c, (atlas_type)ops_at(c, x)->type, 0);
  if (pair[1] == 0 || !ops_agree_types(request, pair, 2)) return 0;
  if (ops_at(c, pair[1])->shape.rank != 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "value is %s, not one number", OPS_TEXT(c, pair[1]));
  if (ops_same_shape(&node.shape, &ops_at(c, x)->shape)) return pair[0];
  if (ops_count(&ops_at(c, x)->shape) == 0) return ops_broadcast(c, pair[1], &node.shape);
  node.type = ops_at(c, pair[0])->type;
  node.input[0] = pair[0], node.input[1] = pair[1];
  return ops_add(c, &node);
}

/* The box that the lists describe: its shape, start and positive steps; flipped[i]: the steps were negative. */
static int box_of(const ops_request *request, ops_shape *shape, ops_view *box, int *flipped) {
  const ops_shape *own = &ops_at(request->c, request->inputs[0])->shape;
  const ops_item *lists = request->arguments;
  for (uint32_t k = 0; k < 3; k++)
    if (lists[k].count != own->rank && (lists[k].count != 0 || lists[k].is_all))
      return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s: 'start', 'stop' and 'step' name a number for each axis",
                        OPS_TEXT(request->c, request->inputs[0])), 0;
  *shape = *own;
  for (uint32_t i = 0; i < own->rank; i++) {
    int64_t step = lists[2].count == 0 ? 1 : lists[2].integers[i], size = (int64_t)own->size[i];
    int64_t start = lists[0].count != 0 ? lists[0].integers[i] : step < 0 ? size - 1 : 0;
    int64_t stop = lists[1].count != 0 ? lists[1].integers[i] : step < 0 ? -1 : size;
    if (!ops_slice_count(own->size[i], start, stop, step, &shape->size[i]))
      return ops_refuse(
                 request, HG_INVALID_ARGUMENT,
                 "elements %lld to %lld by %lld of axis %u of %s: steps up need 0 <= start <= stop <= size, steps "
                 "down size > start >= stop >= -1",
                 (long long)start, (long long)stop, (long long)step, (unsigned)i,
                 OPS_TEXT(request->c, request->inputs[0])),
             0;
    flipped[i] = step < 0;
    box->step[i] = shape->size[i] <= 1 ? 1 : step < 0 ? -step : step;
    box->start[i] = step < 0 && shape->size[i] > 0 ? start + step * (int64_t)(shape->size[i] - 1) : start;
  }
  return 1;
}

static value_id update(const ops_request *request) {
  hg_computation *c = request->c;
  value_id x = request->inputs[0], source = request->inputs[1];
  ops_shape shape, both;
  ops_view box = {.start = {0}}, turned = {.start = {0}};
  int flipped[HG_MAX_RANK] = {0};
  if (!box_of(request, &shape, &box, flipped)) return 0;
  if (ops_at(c, source)->type != ops_at(c, x)->type)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s and source %s: they need one type, as of cast(source, %s)",
                      OPS_TEXT(c, x), OPS_TEXT(c, source), atlas_type_name((atlas_type)ops_at(c, x)->type));
  if (!ops_broadcast_shapes(&shape, &ops_at(c, source)->shape, &both) || !ops_same_shape(&both, &shape))
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "source is %s and does not broadcast to %s, the shape of what is named of x",
                      OPS_TEXT(c, source), OPS_SHAPE(&shape));
  for (uint32_t i = 0; i < shape.rank; i++) {
    int is_turned = flipped[i] && shape.size[i] > 1;
    turned.axis[i] = (int16_t)i;
    turned.step[i] = is_turned ? -1 : 1;
    turned.start[i] = is_turned ? (int64_t)shape.size[i] - 1 : 0;
  }
  return ops_update_of(c, x, ops_view_of(c, ops_broadcast(c, source, &shape), &turned, &shape), &box);
}

value_id ops_make_join(const ops_request *request) {
  hg_computation *c = request->c;
  if (request->row->op == HG_OP_pad) return pad(request);
  if (request->row->op == HG_OP_update) return update(request);
  value_id *values = hg_allocate(&c->allocator, request->input_count, sizeof *values);
  if (values == NULL)
    return ops_failed(c, HG_OUT_OF_MEMORY, "no memory for %u values", (unsigned)request->input_count);
  memcpy(values, request->inputs, request->input_count * sizeof *values);
  value_id result = join(request, values, request->input_count, request->row->op == HG_OP_stack);
  hg_release(&c->allocator, values);
  return result;
}

/* ---- from nothing ------------------------------------------------------------------------------------------------ */

static uint64_t bits_of(atlas_type type, const ops_item *number) {
  uint64_t bits;
  memcpy(&bits, &number->number, sizeof bits);
  if (number->is_integer) return atlas_convert(type, ATLAS_i64, (uint64_t)number->integers[0]);
  return atlas_convert(type, ATLAS_f64, bits);
}

static value_id full(const ops_request *request) {
  ops_shape shape;
  atlas_type type = (atlas_type)request->arguments[2].integers[0];
  if (!ops_shape_of(request, &request->arguments[0], &shape)) return 0;
  const ops_item *value = &request->arguments[1];
  int is_whole = value->is_integer || ops_is_whole(value->number);
  int64_t whole = value->is_integer ? value->integers[0] : is_whole ? (int64_t)value->number : 0;
  if ((atlas_is_integer(type) || type == ATLAS_bool) && !(is_whole && ops_holds(type, whole)))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s is no %s", OPS_NUMBER(value->number), atlas_type_name(type));
  return ops_full(request->c, type, bits_of(type, value), &shape);
}

static int is_whole_number(double value) {
  return value >= -0x1p53 && value <= 0x1p53 && (double)(int64_t)value == value;
}

/* The number of steps before the stop; 0 and refused if there is none. */
static int count_steps(const ops_request *request, uint64_t *count) {
  double start = request->arguments[0].number, stop = request->arguments[1].number, step = request->arguments[2].number;
  double steps = (stop - start) / step;
  int are_finite = start - start == 0 && stop - stop == 0 && step - step == 0;
  if (!are_finite || !(steps <= (double)OPS_MAX_ELEMENTS) || !(step < 0 || step > 0)) {
    ops_refuse(request, HG_INVALID_ARGUMENT, "from %s to before %s by %s is no number of steps", OPS_NUMBER(start),
               OPS_NUMBER(stop), OPS_NUMBER(step));
    return 0;
  }
  *count = steps <= 0 ? 0 : (uint64_t)steps;
  if (steps > (double)*count) *count += 1;
  return 1;
}

/* 1 if the integer type does not have the first or the last element. */
static int reaches_beyond(atlas_type type, int64_t start, int64_t step, uint64_t count) {
  if (count == 0) return 0;
  if (!ops_holds(type, start)) return 1;
  uint64_t room = step > 0 ? atlas_integer_max(type) : atlas_integer_min(type), each = (uint64_t)step;
  if (atlas_kind(type) == ATLAS_KIND_SINT) room = atlas_convert(ATLAS_i64, type, room);
  room = step > 0 ? room - (uint64_t)start : (uint64_t)start - room;
  if (step < 0) each = 0 - each;
  return count > 1 && each > room / (count - 1);
}

/* start + i * step: for whole numbers in i64, for others in f64, each rounded once. */
static value_id arange(const ops_request *request) {
  hg_computation *c = request->c;
  const ops_item *start = &request->arguments[0], *step = &request->arguments[2];
  atlas_type type = (atlas_type)request->arguments[3].integers[0];
  ops_shape shape = {.rank = 1};
  if (!count_steps(request, &shape.size[0])) return 0;
  int is_whole = is_whole_number(start->number) && is_whole_number(step->number);
  if (!atlas_is_float(type) && (!atlas_is_integer(type) || !is_whole))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "from %s by %s gives no %s", OPS_NUMBER(start->number),
                      OPS_NUMBER(step->number), atlas_type_name(type));
  if (atlas_is_integer(type) && reaches_beyond(type, (int64_t)start->number, (int64_t)step->number, shape.size[0]))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%llu numbers from %s by %s are not all %s",
                      (unsigned long long)shape.size[0], OPS_NUMBER(start->number), OPS_NUMBER(step->number),
                      atlas_type_name(type));
  value_id i = ops_coordinate(c, &shape, 0);
  atlas_type wide = is_whole ? ATLAS_i64 : ATLAS_f64;
  if (is_whole && step->number >= 1 && step->number <= 1 && !(start->number < 0 || start->number > 0))
    return ops_cast(c, i, type);
  value_id parts[3] = {ops_cast(c, i, wide), ops_full(c, wide, bits_of(wide, step), &shape),
                       ops_full(c, wide, bits_of(wide, start), &shape)};
  return ops_cast(c, ops_pointwise(c, is_whole ? ATLAS_OP_mad : ATLAS_OP_fma, parts, 3), type);
}

static value_id eye(const ops_request *request) {
  hg_computation *c = request->c;
  const ops_item *columns = &request->arguments[1];
  ops_item sizes = {.kind = OPS_ITEM_LIST, .count = 2, .integers = {request->arguments[0].integers[0]}};
  sizes.integers[1] = columns->kind == OPS_ITEM_ABSENT ? sizes.integers[0] : columns->integers[0];
  ops_shape shape;
  if (!ops_shape_of(request, &sizes, &shape)) return 0;
  value_id difference = ops_binary(c, ATLAS_OP_sub, ops_coordinate(c, &shape, 1), ops_coordinate(c, &shape, 0));
  value_id k = ops_full(c, ATLAS_i64, (uint64_t)request->arguments[2].integers[0], &shape);
  return ops_cast(c, ops_binary(c, ATLAS_OP_set_eq, difference, k), (atlas_type)request->arguments[3].integers[0]);
}

static value_id one_hot(const ops_request *request) {
  hg_computation *c = request->c;
  ops_shape shape = ops_at(c, request->inputs[0])->shape;
  if (shape.rank == HG_MAX_RANK || request->arguments[0].integers[0] <= 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "index is %s and has %lld classes", OPS_TEXT(c, request->inputs[0]),
                      (long long)request->arguments[0].integers[0]);
  value_id index = expanded(c, ops_cast(c, request->inputs[0], ATLAS_i64), (int)shape.rank);
  shape.size[shape.rank++] = (uint64_t)request->arguments[0].integers[0];
  if (index == 0 || !ops_is_countable(&shape))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "%s has more than 2^40 elements", OPS_SHAPE(&shape));
  value_id is_it = ops_binary(c, ATLAS_OP_set_eq, ops_broadcast(c, index, &shape),
                              ops_coordinate(c, &shape, shape.rank - 1));
  return ops_cast(c, is_it, (atlas_type)request->arguments[1].integers[0]);
}

value_id ops_make_create(const ops_request *request) {
  switch (request->row->op) {
    case HG_OP_full: return full(request);
    case HG_OP_arange: return arange(request);
    case HG_OP_eye: return eye(request);
    default: return one_hot(request);
  }
}
