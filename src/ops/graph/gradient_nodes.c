/* gradient_nodes.c - passes a cotangent on through each kind of node. */
#include "ops/graph/gradient.h"

/* The row of an instruction; its gradient column is the rule. */
static const ops_row *row_of_instruction(uint16_t op) {
  const char *name = atlas_op_name((atlas_op)op);
  for (size_t i = 0; i < ops_row_count(); i++) {
    const ops_row *row = ops_row_at(i);
    if (row->kind == OPS_KIND_pointwise && strcmp(row->formula, name) == 0) return row;
  }
  return NULL;
}

static void flow_pointwise(ops_gradient *g, const ops_node *node, value_id amount) {
  if (node->op == ATLAS_OP_cvt) {
    ops_flow(g, node->input[0], amount);
    return;
  }
  const ops_row *row = row_of_instruction(node->op);
  if (row == NULL) return;
  uint32_t wanted = 0;
  for (uint32_t i = 0; i < node->input_count; i++) wanted |= (uint32_t)(g->depends[node->input[i]] != 0) << i;
  value_id results[OPS_MAX_RESULTS];
  ops_rule rule = {.row = row, .text = row->gradient, .parsed = ops_row_gradient(row), .inputs = node->input,
                   .input_count = node->input_count, .y = g->at, .g = amount, .axes = {.kind = OPS_ITEM_LIST}};
  if (!ops_apply_rule(g, &rule, wanted, results)) return;
  for (uint32_t i = 0; i < node->input_count; i++) ops_flow(g, node->input[i], results[i]);
}

static void flow_reduce(ops_gradient *g, const ops_node *node, value_id amount) {
  static const char *const rules[] = {
      [OPS_SUM] = "", /* below */
      /* p is the product of the nonzero elements, q of the zeros, by sums of their powers, and r of the other zeros: so
       * their derivatives are right, too; beyond three zeros they are 0, as they are up to the third order. */
      [OPS_PRODUCT] =
          ("z = x == 0; n = sum(where(z, 1, 0), axes); w = where(z, 1, x); p = prod(w, axes); t = where(z, x, 0); "
           "s = sum(t, axes); u = 0.5 * (s * s - sum(t * t, axes)); v = (s * s * s - 3 * s * sum(t * t, axes) + "
           "2 * sum(t * t * t, axes)) / 6; "
           "q = where(n == 1, s, where(n == 2, u, where(n == 3, v, 0))); "
           "r = where(n == 1, 1, where(n == 2, s - t, where(n == 3, u - t * (s - t), 0))); "
           "where(n == 0, g * (y / w), g * where(z, p * r, p * q / w))"),
      [OPS_MIN] = "where(x == y, g / sum(where(x == y, 1, 0), axes), where(y == y, 0, y))",
      [OPS_MAX] = "where(x == y, g / sum(where(x == y, 1, 0), axes), where(y == y, 0, y))"};
  if (node->reduce >= sizeof rules / sizeof rules[0]) return;
  hg_computation *c = g->c;
  ops_shape shape = ops_at(c, node->input[0])->shape, kept = shape;
  ops_rule rule = {.text = rules[node->reduce], .inputs = node->input, .input_count = 1};
  rule.axes = (ops_item){.kind = OPS_ITEM_LIST};
  for (uint32_t i = 0; i < shape.rank; i++) {
    if ((node->axes >> i & 1) == 0) continue;
    kept.size[i] = 1;
    rule.axes.integers[rule.axes.count++] = (int64_t)i;
  }
  rule.y = ops_reshape(c, g->at, &kept);
  rule.g = ops_reshape(c, amount, &kept);
  if (node->reduce == OPS_SUM) {
    ops_flow(g, node->input[0], ops_broadcast(c, rule.g, &shape));
    return;
  }
  value_id results[OPS_MAX_RESULTS];
  if (ops_apply_rule(g, &rule, 1, results)) ops_flow(g, node->input[0], results[0]);
}

/* By the gradient column of the row in `bits`. */
static void flow_by_row(ops_gradient *g, const ops_node *node, const ops_item *arguments, value_id amount) {
  const ops_row *row = ops_row_of((uint32_t)node->bits);
  if (strcmp(row->gradient, "none") == 0) {
    ops_failed(g->c, HG_UNSUPPORTED, "hg_gradient: %s has no gradient", row->name);
    return;
  }
  uint32_t wanted = 0;
  for (uint32_t i = 0; i < node->input_count; i++) wanted |= (uint32_t)(g->depends[node->input[i]] != 0) << i;
  value_id results[OPS_MAX_RESULTS];
  ops_node own = *node; /* which moves when one is added */
  ops_rule rule = {.row = row, .text = row->gradient, .parsed = ops_row_gradient(row), .inputs = own.input,
                   .input_count = own.input_count, .arguments = arguments, .y = g->at, .g = amount};
  if (!ops_apply_rule(g, &rule, wanted, results)) return;
  for (uint32_t i = 0; i < own.input_count; i++) ops_flow(g, own.input[i], results[i]);
}

static void flow_factor(ops_gradient *g, const ops_node *node, value_id amount) {
  ops_item unit = ops_integer_item(node->reduce);
  flow_by_row(g, node, &unit, amount);
}

static void flow_scan(ops_gradient *g, const ops_node *node, value_id amount) {
  static const int64_t words[] = {[OPS_PRODUCT] = 1, [OPS_MAX] = 2, [OPS_MIN] = 3, [OPS_LOGSUMEXP] = 4};
  ops_item own[] = {ops_integer_item(node->axis), ops_integer_item(words[node->reduce]), ops_integer_item(0),
                    ops_integer_item(node->index)};
  if (node->input_count == 1) own[1] = own[0];
  flow_by_row(g, node, own + (node->input_count == 1), amount);
}

static void flow_select(ops_gradient *g, const ops_node *node, value_id amount) {
  ops_item size = ops_integer_item((int64_t)node->shape.size[node->shape.rank - 1]);
  flow_by_row(g, node, &size, amount);
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Pads with zeros: `low` elements before, along each axis, to a shape. */
static value_id amid_zeros(hg_computation *c, value_id value, const int64_t *low, const ops_shape *shape) {
  if (value == 0 || ops_same_shape(&ops_at(c, value)->shape, shape)) return value;
  ops_node node = {.kind = OPS_PAD, .type = ops_at(c, value)->type, .shape = *shape};
  if (ops_count(&ops_at(c, value)->shape) == 0) return ops_full(c, (atlas_type)node.type, 0, shape);
  memcpy(node.view.start, low, sizeof node.view.start);
  node.input[0] = value;
  node.input[1] = ops_constant(c, (atlas_type)node.type, 0);
  return ops_add(c, &node);
}

/* Inserts step - 1 zeros behind each element along an axis except the last. */
static value_id dilated(hg_computation *c, value_id value, uint32_t axis, uint64_t step) {
  if (value == 0) return 0;
  ops_shape shape = ops_at(c, value)->shape, wide = shape, tall = shape;
  if (shape.rank == HG_MAX_RANK)
    return ops_failed(c, HG_UNSUPPORTED,
                      "hg_gradient: through a slice with steps of a tensor of rank %d no gradient flows; reshape it to "
                      "fewer axes before",
                      HG_MAX_RANK);
  for (uint32_t i = wide.rank++; i > axis + 1; i--) wide.size[i] = wide.size[i - 1];
  wide.size[axis + 1] = 1;
  value = ops_reshape(c, value, &wide);
  wide.size[axis + 1] = step;
  value = amid_zeros(c, value, (int64_t[HG_MAX_RANK]){0}, &wide);
  tall.size[axis] = shape.size[axis] * step;
  value = ops_reshape(c, value, &tall);
  tall.size[axis] -= step - 1;
  ops_view view = {.start = {0}};
  for (uint32_t i = 0; i < tall.rank; i++) view.axis[i] = (int16_t)i, view.step[i] = 1;
  return ops_view_of(c, value, &view, &tall);
}

/* Brings the axes of a view into the order of the input's. Axes that repeat are summed; those that the view leaves out
 * get one element. step[d], size[d]: of the view along input axis d. */
static value_id back_to_axes(hg_computation *c, const ops_node *node, value_id amount, uint32_t rank, int64_t *step) {
  uint32_t summed = 0, place[HG_MAX_RANK], left = 0;
  int position[HG_MAX_RANK];
  ops_shape shape = {.rank = rank}, own = {.rank = 0};
  ops_view kept = {.start = {0}};
  for (uint32_t j = 0; j < node->shape.rank; j++) { /* along one element there is nothing to sum */
    if (node->view.axis[j] < 0 && node->shape.size[j] != 1) summed |= 1u << j;
    else place[j] = left++;
  }
  if (summed != 0) amount = ops_sum(c, amount, summed, 0);
  for (uint32_t d = 0; d < rank; d++) position[d] = -1, step[d] = 1, shape.size[d] = 1;
  for (uint32_t j = 0; j < node->shape.rank; j++) {
    if (node->view.axis[j] < 0) continue;
    int d = node->view.axis[j];
    if (position[d] >= 0)
      return ops_failed(c, HG_UNSUPPORTED, "hg_gradient: through a view that crosses an axis twice no gradient flows");
    position[d] = (int)place[j];
    step[d] = node->view.step[j];
    shape.size[d] = node->shape.size[j];
  }
  for (uint32_t d = 0; d < rank; d++) {
    if (position[d] < 0) continue;
    kept.axis[own.rank] = (int16_t)position[d];
    kept.step[own.rank] = 1;
    own.size[own.rank++] = shape.size[d];
  }
  return ops_reshape(c, ops_view_of(c, amount, &kept, &own), &shape);
}

static void flow_reshape(ops_gradient *g, const ops_node *node, value_id amount) {
  ops_shape shape = ops_at(g->c, node->input[0])->shape;
  ops_flow(g, node->input[0], ops_reshape(g->c, amount, &shape));
}

static value_id flipped(hg_computation *c, value_id value, uint32_t axis) {
  if (value == 0 || ops_at(c, value)->shape.size[axis] < 2) return value;
  ops_shape shape = ops_at(c, value)->shape;
  ops_view flip = {.start = {0}};
  for (uint32_t i = 0; i < shape.rank; i++) flip.axis[i] = (int16_t)i, flip.step[i] = 1;
  flip.step[axis] = -1;
  flip.start[axis] = (int64_t)shape.size[axis] - 1;
  return ops_view_of(c, value, &flip, &shape);
}

static void flow_view(ops_gradient *g, const ops_node *node, value_id amount) {
  hg_computation *c = g->c;
  ops_shape shape = ops_at(c, node->input[0])->shape;
  int64_t step[HG_MAX_RANK], low[HG_MAX_RANK] = {0};
  amount = back_to_axes(c, node, amount, shape.rank, step);
  for (uint32_t d = 0; amount != 0 && d < shape.rank; d++) {
    int64_t count = (int64_t)ops_at(c, amount)->shape.size[d];
    low[d] = node->view.start[d];
    if (step[d] < 0) {
      amount = flipped(c, amount, d);
      low[d] += (count - 1) * step[d];
      step[d] = -step[d];
    }
    if (step[d] > 1 && count > 1) amount = dilated(c, amount, d, (uint64_t)step[d]);
  }
  ops_flow(g, node->input[0], amid_zeros(c, amount, low, &shape));
}

static void flow_concatenate(ops_gradient *g, const ops_node *node, value_id amount) {
  int64_t low[HG_MAX_RANK] = {0};
  for (uint32_t i = 0; i < 2; i++) {
    ops_shape shape = ops_at(g->c, node->input[i])->shape;
    ops_flow(g, node->input[i], ops_part_of(g->c, amount, low, &shape));
    low[node->axis] = (int64_t)shape.size[node->axis];
  }
}

static void flow_pad(ops_gradient *g, const ops_node *node, value_id amount) {
  hg_computation *c = g->c;
  ops_shape shape = ops_at(c, node->input[0])->shape;
  ops_flow(g, node->input[0], ops_part_of(c, amount, node->view.start, &shape));
  if (g->depends[node->input[1]] == 0) return;
  ops_node mask = *node; /* a mask: false where the view has its elements */
  mask.type = ATLAS_bool;
  mask.input[0] = ops_full(c, ATLAS_bool, 0, &shape);
  mask.input[1] = ops_constant(c, ATLAS_bool, 1);
  value_id zeros = ops_full(c, (atlas_type)node->type, 0, &node->shape);
  value_id around = ops_pointwise(c, ATLAS_OP_sel, (value_id[]){ops_add(c, &mask), amount, zeros}, 3);
  ops_flow(g, node->input[1], ops_sum(c, around, (1u << node->shape.rank) - 1, 0));
}

/* What was overwritten is not visible, so the base's cotangent is 0 there. The source's cotangent is computed first, so
 * that the base's can be written in place. */
static void flow_update(ops_gradient *g, const ops_node *node, value_id amount) {
  hg_computation *c = g->c;
  ops_shape box = ops_at(c, node->input[1])->shape;
  ops_view view = ops_box_view(&node->view, box.rank);
  if (g->depends[node->input[1]] != 0) ops_flow(g, node->input[1], ops_view_of(c, amount, &view, &box));
  if (g->depends[node->input[0]] == 0) return;
  value_id zeros = ops_is_fresh(node) ? 0 : ops_full(c, (atlas_type)node->type, 0, &box);
  ops_flow(g, node->input[0], ops_is_fresh(node) ? amount : ops_update_of(c, amount, zeros, &node->view));
}

/* ---- contractions ------------------------------------------------------------------------------------------------ */

static value_id turned(hg_computation *c, value_id value) { return ops_permute(c, value, (uint32_t[]){0, 2, 1}); }

/* a b in the node's type; 16-bit operands are used directly if both have one type. */
static value_id contract(hg_computation *c, const ops_node *node, value_id a, value_id b) {
  atlas_type type = (atlas_type)node->type;
  if (a == 0 || b == 0) return 0;
  value_id left = ops_before_widening(c, a), right = ops_before_widening(c, b);
  if (ops_at(c, left)->type != ops_at(c, right)->type) left = ops_cast(c, a, type), right = ops_cast(c, b, type);
  if (left == 0 || right == 0) return 0;
  const ops_shape *m = &ops_at(c, left)->shape, *n = &ops_at(c, right)->shape;
  ops_shape shape = {.rank = 3, .size = {m->size[0], m->size[1], n->size[2]}};
  if (m->size[2] == 0 || ops_count(&shape) == 0) return ops_full(c, type, 0, &shape);
  return ops_contract(c, left, right, type);
}

/* 1 if the matrices are a view that reads the columns of other matrices as their rows, as the transposed weight of a
 * layer does. */
static int reads_turned(const hg_computation *c, value_id value) {
  const ops_node *node = ops_at(c, value);
  return node->kind == OPS_VIEW && node->view.axis[2] >= 0 && node->view.axis[1] > node->view.axis[2];
}

/* a b; if it flows back to a transposed view, as the transposed (b' a'), whose elements are the same sums of the same
 * products: the matrix behind the view is then written in its own layout. */
static value_id contract_for(hg_computation *c, const ops_node *node, value_id to, value_id a, value_id b) {
  if (!reads_turned(c, to)) return contract(c, node, a, b);
  return turned(c, contract(c, node, turned(c, b), turned(c, a)));
}

static void flow_contract(ops_gradient *g, const ops_node *node, value_id amount) {
  hg_computation *c = g->c;
  value_id a = node->input[0], b = node->input[1], narrow = ops_before_widening(c, amount);
  c->numerics = node->numerics;
  if (g->depends[a] != 0) ops_flow(g, a, contract_for(c, node, a, narrow, turned(c, b)));
  if (g->depends[b] != 0 && c->status == HG_OK) ops_flow(g, b, contract_for(c, node, b, turned(c, a), narrow));
}

/* ---- by number --------------------------------------------------------------------------------------------------- */

static value_id gather(hg_computation *c, const ops_node *like, value_id x, value_id index) {
  if (x == 0) return 0;
  return ops_add(c, &(ops_node){.kind = OPS_GATHER,
                                .type = ops_at(c, x)->type,
                                .bounds = like->bounds,
                                .axis = like->axis,
                                .input = {x, index},
                                .shape = ops_at(c, index)->shape});
}

static value_id scatter(hg_computation *c, const ops_node *like, int is_sum, value_id x, value_id index,
                        value_id source) {
  if (x == 0) return 0;
  return ops_scatter(c, &(ops_node){.kind = OPS_SCATTER, .type = ops_at(c, x)->type, .reduce = (uint8_t)is_sum,
                                    .bounds = like->bounds, .axis = like->axis,
                                    .input = {x, index, source}, .shape = ops_at(c, x)->shape});
}

/* Indices with negative ones, which count from the end, replaced by the same counted from the start. */
static value_id from_start(hg_computation *c, value_id number, uint64_t size) {
  if (number == 0) return 0;
  ops_shape shape = ops_at(c, number)->shape;
  value_id is_below = ops_binary(c, ATLAS_OP_set_lt, number, ops_full(c, ATLAS_i64, 0, &shape));
  value_id sum = ops_binary(c, ATLAS_OP_add, number, ops_full(c, ATLAS_i64, size, &shape));
  return ops_pointwise(c, ATLAS_OP_sel, (value_id[]){is_below, sum, number}, 3);
}

/* If one element is taken along the axis, a comparison with the index finds it: no scatter. Otherwise a scatter-add, in
 * f32 for 16-bit floats. */
static void flow_gather(ops_gradient *g, const ops_node *node, value_id amount) {
  hg_computation *c = g->c;
  value_id index = node->input[1];
  ops_shape shape = ops_at(c, node->input[0])->shape;
  atlas_type type = (atlas_type)node->type, wide = type == ATLAS_f64 ? ATLAS_f64 : ATLAS_f32;
  if (node->shape.size[node->axis] == 1 && node->bounds != OPS_CLAMP) {
    value_id number = ops_cast(c, ops_broadcast(c, index, &shape), ATLAS_i64);
    if (node->bounds == OPS_WRAP) number = from_start(c, number, shape.size[node->axis]);
    value_id is_there = ops_binary(c, ATLAS_OP_set_eq, ops_coordinate(c, &shape, node->axis), number);
    value_id sides[] = {is_there, ops_broadcast(c, amount, &shape), ops_full(c, type, 0, &shape)};
    ops_flow(g, node->input[0], ops_pointwise(c, ATLAS_OP_sel, sides, 3));
    return;
  }
  value_id zeros = ops_full(c, wide, 0, &shape);
  ops_flow(g, node->input[0], scatter(c, node, 1, zeros, index, ops_cast(c, amount, wide)));
}

/* Each cotangent goes back to its element's old index; the indices are distinct. The axes before and behind are merged,
 * since a scatter takes no tensor with the greatest number of axes. */
static void flow_sort(ops_gradient *g, const ops_node *node, value_id amount) {
  hg_computation *c = g->c;
  value_id x = node->input[0];
  ops_shape shape = ops_at(c, x)->shape, joined = {.rank = 3, .size = {1, node->shape.size[node->axis], 1}};
  for (uint32_t i = 0; i < shape.rank; i++)
    if (i != node->axis) joined.size[i < node->axis ? 0 : 2] *= shape.size[i];
  value_id places = ops_reshape(c, ops_result_of(c, g->at, 1, ATLAS_i64), &joined);
  value_id own = ops_reshape(c, amount, &joined);
  joined.size[1] = shape.size[node->axis];
  value_id zeros = ops_full(c, (atlas_type)node->type, 0, &joined);
  ops_node like = {.bounds = OPS_CLAMP, .axis = 1};
  ops_flow(g, x, ops_reshape(c, scatter(c, &like, 0, zeros, places, own), &shape));
}

static void flow_scatter(ops_gradient *g, const ops_node *node, value_id amount) {
  hg_computation *c = g->c;
  if (node->reduce > 1 + OPS_SUM) {
    ops_node combined = *node;
    combined.bits = ops_scatter_op(node);
    flow_by_row(g, &combined, (ops_item[]){ops_integer_item(node->axis), ops_integer_item(node->bounds)}, amount);
    return;
  }
  value_id index = node->input[1], taken = gather(c, node, amount, index);
  ops_shape places = ops_at(c, index)->shape;
  if (node->reduce == 1) {
    ops_flow(g, node->input[0], amount);
    ops_flow(g, node->input[2], taken);
    return;
  }
  value_id zeros = ops_full(c, (atlas_type)node->type, 0, &places);
  ops_flow(g, node->input[0], scatter(c, node, 0, amount, index, zeros));
  /* If several sources have one destination the last one counts: the one whose number is found there again. */
  value_id own = ops_coordinate(c, &places, node->axis);
  value_id last = scatter(c, node, 0, ops_full(c, ATLAS_i64, UINT64_MAX, &node->shape), index, own);
  value_id stays = ops_binary(c, ATLAS_OP_set_eq, gather(c, node, last, index), own);
  ops_flow(g, node->input[2], ops_pointwise(c, ATLAS_OP_sel, (value_id[]){stays, taken, zeros}, 3));
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

#define flow_none NULL
static void (*const flows[OPS_NODE_KINDS])(ops_gradient *g, const ops_node *node, value_id amount) = {
#define OPS_NODE_KIND(id, name, inputs, results, work, passes, is, has, term, flow, launch, batch) \
  [OPS_##id] = flow_##flow,
#include "ops/graph/kinds.def"
#undef OPS_NODE_KIND
};
#undef flow_none

void ops_flow_through(ops_gradient *g, value_id of, value_id amount) {
  ops_node node = *ops_at(g->c, of); /* a copy, since nodes move when others are added */
  g->at = of;
  if (flows[node.kind] != NULL) flows[node.kind](g, &node, amount);
}
