/* nodes.c - nodes of a computation: adding one, finding an equal one, and short forms of the common ones. */
#include "ops/graph/nodes.h"

#include "atlas/tables.h"
#include "atlas/value.h"
#include "base/bytes.h"
#include "ops/graph/table.h"

#include <stdarg.h>

value_id ops_failed(hg_computation *c, hg_status status, const char *format, ...) {
  if (c->status != HG_OK) return 0;
  char sentence[sizeof c->sentence];
  va_list arguments;
  va_start(arguments, format);
  hg_fail_at_v(status, &(hg_place){.instruction = -1}, format, arguments);
  va_end(arguments);
  hg_clip(hg_last_error(), strlen(hg_last_error()), sentence, sizeof sentence);
  memcpy(c->sentence, sentence, sizeof sentence);
  c->status = status;
  return 0;
}

/* ---- kinds ------------------------------------------------------------------------------------------------------- */

const ops_kind_row ops_kinds[OPS_NODE_KINDS] = {
#define OPS_NODE_KIND(id, called, takes, gives, costs, reads, properties, lists, term, flow, launch, batch)         \
  [OPS_##id] = {.name = called, .inputs = takes, .results = gives, .work = costs, .passes = reads, .is = properties, \
                .has = lists},
#include "ops/graph/kinds.def"
#undef OPS_NODE_KIND
};

/* ---- equal nodes are one ----------------------------------------------------------------------------------------- */

/* Hashes the words of a node. All are set, padding included, because ops_add copies field by field. */
static uint32_t hash_of(const ops_node *node) {
  return (uint32_t)hg_hash_words(node, sizeof *node / sizeof(uint64_t));
}
_Static_assert(sizeof(ops_node) % sizeof(uint64_t) == 0, "a node is whole words");

/* A table with twice as many entries as nodes; an entry is 1 + the index of a node; 0: free. */
static int grow_buckets(hg_computation *c) {
  uint64_t count = c->buckets.count == 0 ? 64 : 2 * (uint64_t)c->buckets.count;
  hg_array larger = {.element_size = sizeof(uint32_t)};
  uint32_t *places = hg_array_append(&c->allocator, &larger, NULL, count);
  if (places == NULL) return 0;
  for (uint32_t i = 0; i < c->nodes.count; i++) {
    uint64_t at = hash_of((const ops_node *)c->nodes.data + i) & (count - 1);
    while (places[at] != 0) at = (at + 1) & (count - 1);
    places[at] = i + 1;
  }
  hg_array_release(&c->allocator, &c->buckets);
  c->buckets = larger;
  return 1;
}

/* A fence may have one more, which it waits for. */
static uint32_t inputs_of(const ops_node *node) {
  const ops_kind_row *kind = ops_kind_of(node);
  if (ops_is_fence(node) && node->input[1] != 0) return 2;
  return kind->inputs == OPS_ANY ? node->input_count : kind->inputs;
}

/* A copy in which everything that the kind does not use is zero: dimensions beyond the rank, absent inputs. */
static ops_node clean(const hg_computation *c, const ops_node *node) {
  ops_node copy;
  const ops_kind_row *kind = ops_kind_of(node);
  memset(&copy, 0, sizeof copy);
  copy.kind = node->kind, copy.type = node->type, copy.reduce = node->reduce;
  copy.input_count = (uint8_t)inputs_of(node);
  copy.op = node->op, copy.bounds = node->bounds, copy.axis = node->axis, copy.axes = node->axes;
  copy.index = node->index, copy.bits = node->bits;
  for (uint32_t i = 0; i < copy.input_count; i++) copy.input[i] = node->input[i];
  copy.shape.rank = node->shape.rank;
  for (uint32_t i = 0; i < node->shape.rank; i++) {
    copy.shape.size[i] = node->shape.size[i];
    if ((kind->has & OPS_AXES) != 0) copy.view.axis[i] = node->view.axis[i];
    if ((kind->has & OPS_STEPS) != 0) copy.view.step[i] = node->view.step[i];
  }
  uint32_t starts = (kind->has & OPS_STARTS) != 0 ? ops_at(c, node->input[0])->shape.rank : 0;
  for (uint32_t i = 0; i < starts; i++) copy.view.start[i] = node->view.start[i];
  return copy;
}

value_id ops_add(hg_computation *c, const ops_node *node) {
  uint32_t inputs = inputs_of(node);
  if (c->status != HG_OK) return 0;
  for (uint32_t i = 0; i < inputs; i++)
    if (node->input[i] == 0) return 0;
  if (2 * (c->nodes.count + 1) > c->buckets.count && !grow_buckets(c))
    return ops_failed(c, HG_OUT_OF_MEMORY, "no memory for a computation of %zu nodes", c->nodes.count);
  ops_node copy = clean(c, node);
  uint32_t *places = c->buckets.data, mask = (uint32_t)c->buckets.count - 1, at = hash_of(&copy) & mask;
  for (; places[at] != 0; at = (at + 1) & mask)
    if (memcmp((const uint8_t *)c->nodes.data + (places[at] - 1) * sizeof copy, (const void *)&copy, sizeof copy) == 0)
      return places[at];
  if (hg_array_append(&c->allocator, &c->nodes, &copy, 1) == NULL)
    return ops_failed(c, HG_OUT_OF_MEMORY, "no memory for a computation of %zu nodes", c->nodes.count);
  places[at] = (uint32_t)c->nodes.count;
  return places[at];
}

value_id ops_result_of(hg_computation *c, value_id first, uint32_t index, atlas_type type) {
  if (first == 0) return 0;
  const ops_kind_row *kind = ops_kind_of(ops_at(c, first));
  if (index == 0 || index >= kind->results)
    return ops_failed(c, HG_UNSUPPORTED, "%s has no result %u", kind->name, (unsigned)index);
  return ops_add(c, &(ops_node){.kind = OPS_RESULT, .type = (uint8_t)type, .index = index, .input = {first},
                                .shape = ops_at(c, first)->shape});
}

/* ---- gathers ----------------------------------------------------------------------------------------------------- */

/* 1 if the view has all elements of its input in their order, some of them repeated. */
static int only_repeats(const ops_node *view, const ops_shape *input) {
  uint64_t count = 1;
  int last = -1;
  for (uint32_t d = 0; d < input->rank; d++)
    if (view->view.start[d] != 0) return 0;
  for (uint32_t j = 0; j < view->shape.rank; j++) {
    if (view->view.axis[j] < 0) continue;
    if (view->view.axis[j] <= last || view->view.step[j] != 1) return 0;
    last = view->view.axis[j];
    count *= view->shape.size[j];
  }
  return count == ops_count(input);
}

value_id ops_taken_from(const hg_computation *c, const ops_node *gather) {
  const ops_node *from = ops_at(c, gather->input[0]);
  if (from->kind != OPS_VIEW || ops_kind_is(ops_at(c, from->input[0]), OPS_VIRTUAL)) return gather->input[0];
  return only_repeats(from, &ops_at(c, from->input[0])->shape) ? from->input[0] : gather->input[0];
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

/* Calls are sorted by their ends: a call comes behind the calls that its formula consists of. */
const ops_call *ops_call_of(const hg_computation *c, value_id value) {
  const ops_call *calls = c->calls.data;
  size_t first = 0, count = c->calls.count;
  while (count > 0) { /* finds the first one that ends behind the node */
    size_t half = count / 2;
    if (calls[first + half].end_node < value) first += half + 1, count -= half + 1;
    else count = half;
  }
  while (first < c->calls.count && calls[first].depth > 0) first++;
  return first < c->calls.count && calls[first].first_node < value ? &calls[first] : NULL;
}

/* ---- short ways to say it ---------------------------------------------------------------------------------------- */

value_id ops_constant(hg_computation *c, atlas_type type, uint64_t bits) {
  return ops_add(c, &(ops_node){.kind = OPS_CONSTANT, .type = (uint8_t)type, .bits = bits & atlas_mask(type)});
}

value_id ops_number(hg_computation *c, atlas_type type, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return ops_constant(c, type, atlas_convert(type, ATLAS_f64, bits));
}

value_id ops_coordinate(hg_computation *c, const ops_shape *shape, uint32_t axis) {
  return ops_add(c, &(ops_node){.kind = OPS_COORDINATE, .type = ATLAS_i64, .axis = (uint8_t)axis, .shape = *shape});
}

/* The type of a pointwise result: bool if the instruction's destination is a predicate, else the last operand's. */
static atlas_type result_type(const hg_computation *c, atlas_op op, const value_id *inputs, uint32_t count) {
  const atlas_op_info *info = atlas_op_lookup(op);
  if (info != NULL && info->operands[0] == 'p') return ATLAS_bool;
  if (op == ATLAS_OP_shl || op == ATLAS_OP_shr) return (atlas_type)ops_at(c, inputs[0])->type;
  return (atlas_type)ops_at(c, inputs[count - 1])->type;
}

value_id ops_pointwise(hg_computation *c, atlas_op op, const value_id *inputs, uint32_t count) {
  ops_node node = {.kind = OPS_POINTWISE, .op = (uint16_t)op, .input_count = (uint8_t)count};
  for (uint32_t i = 0; i < count; i++) {
    if (inputs[i] == 0) return 0;
    node.input[i] = inputs[i];
  }
  node.shape = ops_at(c, inputs[0])->shape;
  node.type = (uint8_t)result_type(c, op, inputs, count);
  return ops_add(c, &node);
}

value_id ops_cast(hg_computation *c, value_id value, atlas_type type) {
  if (value == 0) return 0;
  const ops_node *input = ops_at(c, value);
  if (input->type == type) return value;
  if (input->kind == OPS_CONSTANT)
    return ops_constant(c, type, atlas_convert(type, (atlas_type)input->type, input->bits));
  if (type == ATLAS_bool && atlas_kind((atlas_type)input->type) == ATLAS_KIND_STORAGE) /* these types have no
                                                                                          comparisons */
    return ops_cast(c, ops_cast(c, value, ATLAS_f32), type);
  return ops_add(c, &(ops_node){.kind = OPS_POINTWISE, .op = ATLAS_OP_cvt, .type = (uint8_t)type, .input_count = 1,
                                .input = {value}, .shape = input->shape});
}

static int same_shape(const ops_shape *a, const ops_shape *b) {
  if (a->rank != b->rank) return 0;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->size[i] != b->size[i]) return 0;
  return 1;
}

/* The view of a view as one view of the inner one's input. */
static ops_view through(const ops_view *outer, const ops_node *inner, uint32_t rank) {
  ops_view view = {.start = {0}};
  memcpy(view.start, inner->view.start, sizeof view.start);
  for (uint32_t j = 0; j < inner->shape.rank; j++)
    if (inner->view.axis[j] >= 0) view.start[inner->view.axis[j]] += inner->view.step[j] * outer->start[j];
  for (uint32_t j = 0; j < rank; j++) {
    int middle = outer->axis[j];
    view.axis[j] = middle < 0 ? -1 : inner->view.axis[middle];
    view.step[j] = middle < 0 || view.axis[j] < 0 ? 0 : outer->step[j] * inner->view.step[middle];
  }
  return view;
}

static int changes_nothing(const ops_view *view, const ops_shape *from, const ops_shape *to) {
  if (!same_shape(from, to)) return 0;
  for (uint32_t j = 0; j < to->rank; j++)
    if (view->axis[j] != (int)j || view->step[j] != 1 || view->start[j] != 0) return 0;
  return 1;
}

/* The numbers start + step * k, k < count. */
typedef struct progression {
  int64_t start, step;
  uint64_t count;
} progression;

enum { OUTSIDE, ACROSS, INSIDE };

static int64_t common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    int64_t rest = a % b;
    a = b, b = rest;
  }
  return a < 0 ? -a : a;
}

/* Whether all of `own` are in `box`, or certainly none is, or neither. */
static int place_in(progression own, progression box) {
  int64_t first = own.start, last = own.start + own.step * (int64_t)(own.count - 1), off = first - box.start;
  int64_t end = box.start + box.step * (int64_t)(box.count - 1);
  int64_t low = first < last ? first : last, high = first < last ? last : first;
  if (high < box.start || low > end || off % common_divisor(box.step, own.count == 1 ? 0 : own.step) != 0)
    return OUTSIDE;
  int is_within = low >= box.start && high <= end && off % box.step == 0;
  return is_within && (own.count == 1 || own.step % box.step == 0) ? INSIDE : ACROSS;
}

/* The elements along an axis of the input that a view reads; 0: the axis is along two of the view's axes. */
static int looks_at(const ops_node *node, uint32_t axis, progression *out) {
  int is_met = 0;
  *out = (progression){.start = node->view.start[axis], .step = 1, .count = 1};
  for (uint32_t j = 0; j < node->shape.rank; j++) {
    if (node->view.axis[j] != (int)axis) continue;
    if (is_met) return 0;
    is_met = 1;
    out->step = node->view.step[j];
    out->count = node->shape.size[j];
  }
  return 1;
}

/* A view of an updated value may read only elements outside the update, or only elements of its source: then the other
 * value, and its memory, is not needed. 1: the view has been changed so. */
static int look_through(const hg_computation *c, ops_node *node, const ops_node *update) {
  const ops_shape *size = &ops_at(c, update->input[1])->shape;
  progression own;
  int is_inside = 1;
  for (uint32_t d = 0; d < size->rank; d++) {
    if (!looks_at(node, d, &own)) return 0;
    int place = place_in(own, (progression){update->view.start[d], update->view.step[d], size->size[d]});
    if (place == OUTSIDE) {
      node->input[0] = update->input[0];
      return 1;
    }
    is_inside &= place == INSIDE;
  }
  if (!is_inside) return 0;
  for (uint32_t d = 0; d < size->rank; d++)
    node->view.start[d] = (node->view.start[d] - update->view.start[d]) / update->view.step[d];
  for (uint32_t j = 0; j < node->shape.rank; j++)
    if (node->view.axis[j] >= 0) node->view.step[j] /= update->view.step[node->view.axis[j]];
  node->input[0] = update->input[1];
  return 1;
}

static int has_elements(const ops_shape *shape) {
  for (uint32_t i = 0; i < shape->rank; i++)
    if (shape->size[i] == 0) return 0;
  return 1;
}

value_id ops_view_of(hg_computation *c, value_id value, const ops_view *view, const ops_shape *shape) {
  if (value == 0) return 0;
  const ops_node *input = ops_at(c, value);
  ops_node node = {.kind = OPS_VIEW, .type = input->type, .input = {value}, .shape = *shape};
  node.view = *view;
  for (uint32_t j = 0; j < shape->rank; j++) /* an axis of one element has no steps */
    if (shape->size[j] == 1) node.view.axis[j] = -1, node.view.step[j] = 0;
    else if (node.view.axis[j] < 0) node.view.step[j] = 0;
  for (;; input = ops_at(c, node.input[0])) {
    if (input->kind == OPS_VIEW) {
      node.view = through(&node.view, input, shape->rank);
      node.input[0] = input->input[0];
    } else if (input->kind != OPS_UPDATE || !has_elements(shape) || !look_through(c, &node, input)) break;
  }
  for (uint32_t j = 0; j < shape->rank && j < HG_MAX_RANK;
       j++) /* if the input has one element there too, it is the same axis */
    if (shape->size[j] == 1 && j < input->shape.rank && input->shape.size[j] == 1)
      node.view.axis[j] = (int16_t)j, node.view.step[j] = 1;
  if (changes_nothing(&node.view, &input->shape, shape)) return node.input[0];
  return ops_add(c, &node);
}

value_id ops_broadcast(hg_computation *c, value_id value, const ops_shape *shape) {
  if (value == 0) return 0;
  const ops_shape *own = &ops_at(c, value)->shape;
  uint32_t missing = shape->rank - own->rank;
  ops_view view = {.start = {0}};
  for (uint32_t j = 0; j < shape->rank; j++) {
    int kept = j >= missing && own->size[j - missing] == shape->size[j];
    view.axis[j] = (int16_t)(kept ? (int)(j - missing) : -1);
    view.step[j] = kept;
  }
  return ops_view_of(c, value, &view, shape);
}

value_id ops_permute(hg_computation *c, value_id value, const uint32_t *axes) {
  if (value == 0) return 0;
  const ops_shape *own = &ops_at(c, value)->shape;
  ops_shape shape = {.rank = own->rank};
  ops_view view = {.start = {0}};
  for (uint32_t j = 0; j < own->rank; j++) {
    shape.size[j] = own->size[axes[j]];
    view.axis[j] = (int16_t)axes[j];
    view.step[j] = 1;
  }
  return ops_view_of(c, value, &view, &shape);
}

value_id ops_reshape(hg_computation *c, value_id value, const ops_shape *shape) {
  if (value == 0) return 0;
  const ops_node *input = ops_at(c, value);
  if (same_shape(&input->shape, shape)) return value;
  if (input->kind == OPS_RESHAPE && input->axes == 0) return ops_reshape(c, input->input[0], shape);
  return ops_add(c, &(ops_node){.kind = OPS_RESHAPE, .type = input->type, .input = {value},
                                .shape = *shape});
}

value_id ops_add_fence(hg_computation *c, value_id value, value_id after, uint32_t id, uint32_t index) {
  if (value == 0) return 0;
  const ops_node *input = ops_at(c, value);
  return ops_add(c, &(ops_node){.kind = OPS_RESHAPE, .type = input->type, .axes = OPS_FENCE, .index = index, .bits = id,
                                .input = {value, after}, .shape = input->shape});
}

value_id ops_reduce_over(hg_computation *c, ops_reduce reduce, value_id value, uint32_t axes, int keep) {
  if (value == 0) return 0;
  const ops_node *input = ops_at(c, value);
  ops_node node = {.kind = OPS_REDUCE, .type = input->type, .reduce = (uint8_t)reduce, .axes = axes,
                   .input = {value}};
  if (reduce == OPS_ARGMIN || reduce == OPS_ARGMAX) node.type = ATLAS_i64;
  ops_shape kept = input->shape;
  for (uint32_t i = 0; i < input->shape.rank; i++) {
    if ((axes >> i & 1) == 0) node.shape.size[node.shape.rank++] = input->shape.size[i];
    else kept.size[i] = 1;
  }
  value_id result = ops_add(c, &node);
  return keep ? ops_reshape(c, result, &kept) : result;
}

value_id ops_concatenate(hg_computation *c, value_id a, value_id b, uint32_t axis) {
  if (a == 0 || b == 0) return 0;
  ops_node node = {.kind = OPS_CONCATENATE, .type = ops_at(c, a)->type, .axis = (uint8_t)axis, .input = {a, b},
                   .shape = ops_at(c, a)->shape};
  node.shape.size[axis] += ops_at(c, b)->shape.size[axis];
  return ops_add(c, &node);
}

uint8_t ops_numerics_for(atlas_type type, uint32_t numerics) {
  uint32_t known = type == ATLAS_f32 ? HG_NUMERICS_FAST | HG_NUMERICS_TF32 : HG_NUMERICS_FAST;
  return (uint8_t)(numerics & known);
}

ops_view ops_box_view(const ops_view *box, uint32_t rank) {
  ops_view view = *box;
  for (uint32_t i = 0; i < rank; i++) view.axis[i] = (int16_t)i;
  return view;
}

value_id ops_part_of(hg_computation *c, value_id value, const int64_t *low, const ops_shape *shape) {
  ops_view view = {.start = {0}};
  for (uint32_t i = 0; i < shape->rank; i++) {
    view.axis[i] = (int16_t)i;
    view.step[i] = 1;
    view.start[i] = low[i];
  }
  return ops_view_of(c, value, &view, shape);
}

static int is_same_box(const hg_computation *c, const ops_node *update, const ops_node *other) {
  uint32_t rank = update->shape.rank;
  return same_shape(&ops_at(c, update->input[1])->shape, &ops_at(c, other->input[1])->shape) &&
         memcmp(update->view.start, other->view.start, rank * sizeof update->view.start[0]) == 0 &&
         memcmp(update->view.step, other->view.step, rank * sizeof update->view.step[0]) == 0;
}

value_id ops_update_of(hg_computation *c, value_id x, value_id source, const ops_view *box) {
  if (x == 0 || source == 0) return 0;
  const ops_node *base = ops_at(c, x), *part = ops_at(c, source);
  if (!has_elements(&part->shape)) return x;
  if (same_shape(&base->shape, &part->shape)) return source; /* steps of 1 from 0 on */
  ops_node node = {
      .kind = OPS_UPDATE, .type = base->type, .input = {x, source}, .shape = base->shape};
  memcpy(node.view.start, box->start, sizeof box->start);
  memcpy(node.view.step, box->step, sizeof box->step);
  for (uint32_t i = 0; i < part->shape.rank; i++)
    if (part->shape.size[i] == 1) node.view.step[i] = 1;
  for (; base->kind == OPS_UPDATE && is_same_box(c, &node, base); base = ops_at(c, node.input[0]))
    node.input[0] = base->input[0]; /* nothing of what the update covers is visible */
  return ops_add(c, &node);
}

hg_op ops_scatter_op(const ops_node *node) {
  switch (node->reduce) {
  case 0: return HG_OP_scatter;
  case 1 + OPS_SUM: return HG_OP_scatter_add;
  case 1 + OPS_PRODUCT: return HG_OP_scatter_multiply;
  case 1 + OPS_MIN: return HG_OP_scatter_min;
  default: return HG_OP_scatter_max;
  }
}

/* Has one more axis than the tensor: the numbers of the sources. */
value_id ops_scatter(hg_computation *c, const ops_node *node) {
  if (node->shape.rank == HG_MAX_RANK)
    return ops_failed(c, HG_UNSUPPORTED, "%s into a tensor of %d axes; it takes at most %d: join two by a reshape",
                      ops_row_of(ops_scatter_op(node))->name, HG_MAX_RANK, HG_MAX_RANK - 1);
  return ops_add(c, node);
}

uint32_t ops_work_of(atlas_op op) {
  const atlas_op_info *info = atlas_op_lookup(op);
  if (op == ATLAS_OP_div || op == ATLAS_OP_sqrt) return 8;
  return info != NULL && (info->flags & ATLAS_FUNC) != 0 ? 20 : 1;
}
