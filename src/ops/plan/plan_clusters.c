/* plan_clusters.c - which nodes are computed together, and which are computed again wherever they are read. See
 * plan.c. */
#include "ops/plan/planner.h"
#include "ops/graph/ops_tuning.h"

#include "atlas/tables.h"

/* ---- what is there ----------------------------------------------------------------------------------------------- */

static void mark_roots(planner *p) {
  const ops_output *outputs = p->c->outputs.data;
  const ops_input *inputs = p->c->inputs.data;
  for (size_t i = 0; i < p->c->outputs.count; i++) p->ends[outputs[i].value - 1] |= PUT_OUT;
  for (size_t i = 0; i < p->c->inputs.count; i++)
    if (inputs[i].update != 0) p->ends[inputs[i].update - 1] |= UPDATES;
  for (size_t i = 0; i < p->c->checks.count; i++) p->ends[((const value_id *)p->c->checks.data)[i] - 1] |= CHECKS;
  for (uint32_t i = 0; i < p->node_count; i++) p->live[i] = (p->ends[i] & ~CHECKS) != 0;
}

/* A use by a node that does work also counts for what is behind views, with as many elements as are read. */
static void count_use(planner *p, value_id value, uint64_t elements) {
  for (;;) {
    uint32_t i = value - 1;
    p->uses[i]++;
    p->reads[i] += elements;
    if (!is_virtual(node_at(p, i)) || node_at(p, i)->input_count == 0) return;
    value = node_at(p, i)->input[0];
  }
}

static void mark_live(planner *p) {
  mark_roots(p);
  for (uint32_t i = p->node_count; i-- > 0;) {
    if (p->live[i]) p->ends[i] &= (uint8_t)~CHECKS; /* whoever reads its value has the fault */
    else if ((p->ends[i] & CHECKS) != 0) p->live[i] = 1;
    if (!p->live[i]) continue;
    const ops_node *node = node_at(p, i);
    uint64_t elements = ops_count(&node->shape), passes = ops_kind_of(node)->passes;
    for (uint32_t j = 0; j < node->input_count; j++) {
      p->live[node->input[j] - 1] = 1;
      if (is_virtual(node)) continue;
      uint64_t own = ops_count(&node_at(p, node->input[j] - 1)->shape);
      count_use(p, node->input[j], passes != 0 ? passes * own : elements);
    }
  }
}

/* ---- inline nodes ------------------------------------------------------------------------------------------------ */

static int is_cheap(atlas_op op) {
  const atlas_op_info *info = atlas_op_lookup(op);
  return info != NULL && (info->flags & ATLAS_FUNC) == 0 && op != ATLAS_OP_div && op != ATLAS_OP_sqrt;
}

/* Outputs, and what an operation reads by indices of its own. */
static int must_lie_in_storage(const planner *p, uint32_t index) {
  return p->ends[index] != 0 || p->is_inline[index] == PLAN_DEMANDED;
}

static int is_widening(const planner *p, const ops_node *node) {
  if (node->kind != OPS_POINTWISE || node->op != ATLAS_OP_cvt || node->type != ATLAS_f32) return 0;
  atlas_type from = (atlas_type)node_at(p, node->input[0] - 1)->type;
  return atlas_bytes(from) == 2 && atlas_is_float(from);
}

/* 1 for a widening of numbers that lie in a storage: each read of it reads half the bytes of a stored result. */
static int widens_stored(const planner *p, const ops_node *node) {
  if (!is_widening(p, node)) return 0;
  uint32_t from = node->input[0] - 1;
  while (is_virtual(node_at(p, from)) && node_at(p, from)->input_count > 0) from = node_at(p, from)->input[0] - 1;
  return node_at(p, from)->kind == OPS_INPUT || must_lie_in_storage(p, from);
}

/* 1 if computing the node again costs less than storing and loading it: it has one use, which reads each element once;
 * or it is cheap and has one input. */
static int is_worth_inlining(const planner *p, uint32_t i) {
  const ops_node *node = node_at(p, i);
  if (!is_element_wise(node)) return 0;
  if (must_lie_in_storage(p, i)) return 0;
  if (widens_stored(p, node)) return 1;
  uint64_t own = ops_count(&node->shape);
  if (p->uses[i] <= 1 && p->reads[i] <= own) return 1;
  if (node->kind == OPS_POINTWISE && node->shape.rank == 0 && is_cheap((atlas_op)node->op)) return 1;
  return node->kind == OPS_POINTWISE && node->input_count == 1 && is_cheap((atlas_op)node->op) &&
         p->uses[i] <= OPS_INLINE_USES && p->reads[i] <= OPS_INLINE_USES * own;
}

/* An operand of a contraction is read in place, through views and conversions from 16 bits to f32. */
static void demand_operand(planner *p, value_id value) {
  for (;;) {
    const ops_node *node = node_at(p, value - 1);
    if (node->kind != OPS_VIEW && node->kind != OPS_RESHAPE && !is_widening(p, node)) break;
    value = node->input[0];
  }
  p->is_inline[value - 1] = PLAN_DEMANDED;
}

static void demand_storage(planner *p) {
  for (uint32_t i = 0; i < p->node_count; i++) {
    const ops_node *node = node_at(p, i);
    if (!p->live[i]) continue;
    if (node->kind == OPS_CONTRACT)
      for (uint32_t j = 0; j < 2; j++) demand_operand(p, node->input[j]);
    if (ops_kind_is(node, OPS_TAKES)) p->is_inline[ops_taken_from(p->c, node) - 1] = PLAN_DEMANDED;
  }
}

/* A node that is computed again by each of its readers takes its inputs along: they are read as often. So, for example,
 * a power of a step's number behind a cheap operation that everybody reads is worth a launch of its own; and a chain in
 * which each node is read twice is not computed once for each path through it. */
static void take_along(planner *p, uint32_t i) {
  const ops_node *node = node_at(p, i);
  uint64_t own = ops_count(&node->shape);
  if (is_virtual(node) || p->reads[i] <= own) return;
  for (uint32_t j = 0; j < node->input_count; j++) {
    uint32_t from = node->input[j] - 1;
    while (is_virtual(node_at(p, from)) && node_at(p, from)->input_count > 0) from = node_at(p, from)->input[0] - 1;
    p->reads[from] += p->reads[i] - own;
  }
}

static int is_scalar_work(const ops_node *node) {
  return node->kind == OPS_POINTWISE && node->shape.rank == 0 && is_cheap((atlas_op)node->op);
}

/* Finds numbers that depend on each other and that others read, too: a recurrence. Some of them get a storage, so that
 * not every reader computes the whole chain again. */
static hg_status cut_scalars(planner *p) {
  uint8_t *behind = hg_allocate(&p->plan->allocator, p->node_count + 1u, 1); /* by node: the number of scalar nodes that
                                                                                it depends on */
  if (behind == NULL) return hg_fail_memory("a plan", p->node_count);
  for (uint32_t i = 0; i < p->node_count; i++) {
    const ops_node *node = node_at(p, i);
    uint32_t sum = is_scalar_work(node) ? 1 : 0;
    if (!p->live[i] || (!sum && (!is_virtual(node) || node->input_count == 0))) continue;
    for (uint32_t j = 0; j < node->input_count; j++) sum += behind[node->input[j] - 1];
    behind[i] = (uint8_t)(sum > OPS_ANEW_SCALARS ? OPS_ANEW_SCALARS + 1 : sum);
    if (sum <= OPS_ANEW_SCALARS || p->uses[i] <= 1 || is_virtual(node)) continue;
    p->is_inline[i] = PLAN_DEMANDED;
    behind[i] = 0;
  }
  hg_release(&p->plan->allocator, behind);
  return HG_OK;
}

hg_status hg_plan_choose_inline(planner *p) {
  mark_live(p);
  for (uint32_t i = 0; i < p->node_count; i++)
    if (p->live[i] && node_at(p, i)->kind == OPS_EXAMPLE)
      return hg_fail(HG_INVALID_ARGUMENT, "an example, of vmap or of a custom gradient, is read outside of it");
  demand_storage(p);
  HG_TRY(cut_scalars(p));
  HG_TRY(hg_plan_choose_boxes(p));
  for (uint32_t i = p->node_count; i-- > 0;) {
    const ops_node *node = node_at(p, i);
    int demanded = must_lie_in_storage(p, i);
    p->is_inline[i] = 0;
    if (!p->live[i] || node->kind == OPS_INPUT) continue;
    if (demanded) p->boxes[i] |= PLAN_STORED;
    else if (is_virtual(node)) p->is_inline[i] = 1;
    else if ((p->flags & HG_NO_FUSION) == 0) p->is_inline[i] = (uint8_t)is_worth_inlining(p, i);
    if (p->is_inline[i]) take_along(p, i);
  }
  return HG_OK;
}

/* ---- clusters ---------------------------------------------------------------------------------------------------- */

static int same(const ops_shape *a, const ops_shape *b) {
  if (a->rank != b->rank) return 0;
  return memcmp(a->size, b->size, a->rank * sizeof a->size[0]) == 0;
}

/* The clusters that a node reads, directly or through inline nodes, each once. */
static hg_status reading_of(planner *p, uint32_t index, reading *r) {
  uint32_t i;
  *r = (reading){.numbers = {.element_size = sizeof(uint32_t)}};
  hg_walk_begin(p);
  HG_TRY(hg_walk_into(p, index));
  while (hg_walk_next(p, &i)) {
    if (p->cluster_of[i] == NONE) {
      HG_TRY(hg_walk_into(p, i));
      continue;
    }
    uint32_t number = p->cluster_of[i] - 1;
    if (cluster_at(p, number)->stamp == p->epoch) continue;
    cluster_at(p, number)->stamp = p->epoch;
    if (!hg_array_push(&p->plan->allocator, &r->numbers, number)) return hg_fail_memory("a plan", sizeof number);
  }
  return HG_OK;
}

/* 1 if both have the same elements in the same order, except for axes of one element: [m, n] and [1, m, n]. */
static int same_but_ones(const ops_shape *a, const ops_shape *b) {
  uint32_t i = 0, j = 0;
  for (;; i++, j++) {
    while (i < a->rank && a->size[i] == 1) i++;
    while (j < b->rank && b->size[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->size[i] != b->size[j]) return 0;
  }
}

/* 1 if each axis of `whole` is the product of neighbouring axes of the other shape. */
static int is_cut(const ops_shape *shape, const ops_shape *whole) {
  uint32_t i = 0;
  for (uint32_t j = 0; j < whole->rank; j++) {
    uint64_t product = 1;
    while (product != whole->size[j] && i < shape->rank) product *= shape->size[i++];
    if (product != whole->size[j]) return 0;
  }
  return ops_count(shape) == ops_count(whole);
}

/* 1 for a view that only adds or drops axes of one element. */
static int is_in_order(const ops_node *node) {
  int last = -1;
  for (uint32_t j = 0; j < node->shape.rank; j++) {
    if (node->shape.size[j] == 1) continue;
    if (node->view.axis[j] <= last || node->view.step[j] != 1) return 0;
    last = node->view.axis[j];
  }
  return 1;
}

/* 1 if the node has the same elements in the same order, in another shape. */
static int only_renames(const ops_node *node) {
  return node->kind == OPS_RESHAPE || (node->kind == OPS_VIEW && is_in_order(node));
}

/* 1 for a cluster's value in another shape, or an operation with that as its only operand. */
static int is_renaming(const planner *p, uint32_t index) {
  for (; p->cluster_of[index] == NONE; index = node_at(p, index)->input[0] - 1) {
    const ops_node *node = node_at(p, index);
    int is_of_one = node->kind == OPS_POINTWISE && node->input_count == 1;
    if (!only_renames(node) && !is_of_one) return 0;
  }
  return 1;
}

static const ops_node *renamed(const planner *p, const ops_node *node) {
  while (only_renames(node)) node = node_at(p, node->input[0] - 1);
  return node;
}

/* 1 if a node fits what a cluster computes; *wanted is what the cluster becomes. */
static int fits(const planner *p, const cluster *to, uint32_t index, cluster *wanted) {
  const ops_node *node = node_at(p, index);
  *wanted = *to;
  if (to->kind == ALONE || to->weight >= OPS_CLUSTER_NODES) return 0;
  if (node->kind == OPS_CONTRACT) return 0;
  if (node->kind == OPS_REDUCE) {
    if (to->kind == CONTRACTION || to->updates) return 0;
    const ops_shape *from = &node_at(p, node->input[0] - 1)->shape;
    if (!same(from, &to->space)) return 0;
    if (to->kind == ROWS) return to->axes == node->axes;
    wanted->kind = ROWS;
    wanted->axes = node->axes;
    return 1;
  }
  if (to->kind == ROWS) {
    const ops_node *own = renamed(p, node);
    if ((!is_element_wise(own) && own->kind != OPS_REDUCE) || !same_but_ones(&own->shape, &node->shape))
      return 0;
  } else if (!is_element_wise(node) && (to->kind != CONTRACTION || !is_renaming(p, index))) return 0;
  if (to->kind == CONTRACTION) return same_but_ones(&node->shape, &to->space) || is_cut(&node->shape, &to->space);
  if (same(&node->shape, &to->space)) return to->kind == MAP || (p->ends[index] & UPDATES) == 0;
  if (to->kind != ROWS) return 0;
  ops_shape outer = {.rank = 0}; /* values of a row: without the reduced axes, or with 1 in their place */
  ops_shape kept = to->space;
  for (uint32_t d = 0; d < to->space.rank; d++) {
    if ((to->axes >> d & 1) == 0) outer.size[outer.rank++] = to->space.size[d];
    else kept.size[d] = 1;
  }
  return same(&node->shape, &outer) || same(&node->shape, &kept);
}

/* Joining cluster `into` must not create a cycle: nothing else that the node reads may run after it. */
static int is_acyclic(const planner *p, const reading *r, uint32_t into) {
  for (size_t k = 0; k < r->numbers.count; k++)
    if (number_at(r, k) != into && is_before(p, into, number_at(r, k))) return 0;
  return 1;
}

/* 1 if a node, or what it has inline, gathers from what this cluster computes: that is complete only after the
 * launch. */
static hg_status takes_from(planner *p, uint32_t index, uint32_t number, int *is_taking) {
  uint32_t i = index;
  *is_taking = 0;
  hg_walk_begin(p);
  do {
    const ops_node *node = node_at(p, i);
    if (i != index && p->cluster_of[i] != NONE) continue;
    if (ops_kind_is(node, OPS_TAKES))
      *is_taking |= p->cluster_of[node->input[0] - 1] == number + 1 ||
                    p->cluster_of[ops_taken_from(p->c, node) - 1] == number + 1;
    HG_TRY(hg_walk_into(p, i));
  } while (!*is_taking && hg_walk_next(p, &i));
  return HG_OK;
}

/* 1 if a node may be computed in a cluster that it reads. */
static hg_status may_be_in(planner *p, uint32_t index, uint32_t number, int *may_be) {
  int is_taking;
  HG_TRY(takes_from(p, index, number, &is_taking));
  *may_be = 0;
  return is_taking ? HG_OK : hg_plan_is_worth_anew(p, index, number, may_be);
}

/* 1 if a node that reads a small and a large cluster had better not join: joining would make the small cluster wait,
 * which may later be read by what would join the large one; the extra pass over many elements costs more than a
 * launch. */
static int waits_for_larger(const planner *p, const reading *r, uint32_t into) {
  const cluster *clusters = p->clusters.data;
  for (size_t k = 0; k < r->numbers.count; k++) {
    uint32_t other = number_at(r, k);
    if (other == into || is_before(p, other, into) || clusters[other].kind == CONTRACTION) continue;
    if (ops_count(&clusters[other].space) / OPS_MUCH_LARGER >= ops_count(&clusters[into].space)) return 1;
  }
  return 0;
}

/* The cluster that a node joins: the last one of those it reads; UINT32_MAX: none. */
static hg_status cluster_to_join(planner *p, uint32_t index, const reading *r, cluster *wanted, uint32_t *into) {
  cluster alone = *wanted;
  *into = UINT32_MAX;
  for (size_t k = 0; k < r->numbers.count; k++) {
    cluster candidate;
    int may_be;
    uint32_t number = number_at(r, k);
    if (!fits(p, cluster_at(p, number), index, &candidate) || !is_acyclic(p, r, number)) continue;
    if (*into != UINT32_MAX && is_before(p, number, *into)) continue;
    HG_TRY(may_be_in(p, index, number, &may_be));
    if (!may_be) continue;
    if (waits_for_larger(p, r, number)) {
      alone.beside = number + 1;
      continue;
    }
    *into = number;
    *wanted = candidate;
  }
  if (*into != UINT32_MAX) return hg_plan_note_places(p, index, *into);
  *wanted = alone;
  return HG_OK;
}

static void add_node(planner *p, uint32_t number, uint32_t index) {
  cluster *to = cluster_at(p, number);
  *(to->last_node != 0 ? &p->next_node[to->last_node - 1] : &to->first_node) = index + 1;
  to->last_node = index + 1;
  p->cluster_of[index] = number + 1;
}

/* The cluster that reads a node, through what it has inline; NONE: none yet, or several. */
static uint32_t reader_of(const planner *p, uint32_t user, uint32_t before) {
  while (user < before && p->live[user] && p->cluster_of[user] == NONE && p->uses[user] == 1)
    user = p->users[p->first_user[user]];
  return user < before && p->live[user] ? p->cluster_of[user] : NONE;
}

/* A reduction joins another one along the same axes that reads one of its operands: that is then read once. */
static hg_status reduction_beside(planner *p, uint32_t index, const reading *r, cluster *wanted, uint32_t *into) {
  const cluster alone = *wanted;
  uint32_t i;
  hg_walk_begin(p);
  HG_TRY(hg_walk_into(p, index));
  while (*into == UINT32_MAX && hg_walk_next(p, &i)) {
    if (p->cluster_of[i] == NONE) HG_TRY(hg_walk_into(p, i));
    if (p->is_inline[i] || !same(&node_at(p, i)->shape, &alone.space)) continue;
    uint32_t first = p->first_user[i], end = p->first_user[i + 1];
    if (end - first > OPS_BESIDE_READERS) end = first + OPS_BESIDE_READERS;
    for (uint32_t u = first; u < end && *into == UINT32_MAX; u++) {
      uint32_t in = reader_of(p, p->users[u], index);
      if (in == NONE || cluster_at(p, in - 1)->kind != ROWS || !fits(p, cluster_at(p, in - 1), index, wanted)) continue;
      if (is_acyclic(p, r, in - 1)) *into = in - 1;
    }
  }
  if (*into == UINT32_MAX) *wanted = alone;
  return HG_OK;
}

/* Merges maps over one shape that a node reads, if neither waits for the other: what they read is then read once. */
static hg_status take_in(planner *p, uint32_t number, uint32_t other) {
  cluster *into = cluster_at(p, number), *from = cluster_at(p, other);
  for (uint32_t i = from->first_node; i != 0; i = p->next_node[i - 1]) p->cluster_of[i - 1] = number + 1;
  *(into->last_node != 0 ? &p->next_node[into->last_node - 1] : &into->first_node) = from->first_node;
  into->last_node = from->last_node;
  into->weight += from->weight;
  into->updates |= from->updates;
  from->first_node = from->last_node = 0;
  from->weight = OPS_CLUSTER_NODES;
  from->is_taken = 1;
  return hg_plan_take_in(p, number, other);
}

static hg_status join_maps(planner *p, uint32_t index, uint32_t into, const reading *r) {
  const cluster *own = cluster_at(p, into);
  for (size_t k = 0; k < r->numbers.count; k++) {
    uint32_t other = number_at(r, k);
    const cluster *from = cluster_at(p, other);
    int may_be;
    if (other == into || own->kind != MAP || from->kind != MAP) continue;
    if (!same(&from->space, &own->space) || own->weight + from->weight >= OPS_CLUSTER_NODES) continue;
    if (is_before(p, into, other) || !is_acyclic(p, r, other)) continue;
    HG_TRY(may_be_in(p, index, other, &may_be));
    if (!may_be) continue;
    HG_TRY(hg_plan_note_places(p, index, other));
    HG_TRY(take_in(p, into, other));
  }
  return HG_OK;
}

static cluster cluster_of_one(const planner *p, uint32_t index) {
  const ops_node *node = node_at(p, index);
  cluster one = {.kind = ALONE, .space = node->shape};
  if ((p->boxes[index] & PLAN_BOX) != 0) return one;
  if (is_element_wise(node) || is_virtual(node)) one.kind = MAP;
  if (node->kind == OPS_CONTRACT) one.kind = CONTRACTION;
  if (node->kind == OPS_REDUCE) {
    one.kind = ROWS;
    one.space = node_at(p, node->input[0] - 1)->shape;
    one.axes = node->axes;
  }
  return one;
}

/* The cluster that the node is put into: one that it reads, or a new one. */
static hg_status choose_cluster(planner *p, uint32_t index, const reading *r, int may_join, uint32_t *into) {
  cluster wanted = cluster_of_one(p, index);
  *into = UINT32_MAX;
  if (may_join) HG_TRY(cluster_to_join(p, index, r, &wanted, into));
  if (may_join && *into == UINT32_MAX && wanted.kind == ROWS) HG_TRY(reduction_beside(p, index, r, &wanted, into));
  if (*into == UINT32_MAX) {
    *into = (uint32_t)p->clusters.count;
    if (hg_array_append(&p->plan->allocator, &p->clusters, NULL, 1) == NULL) return hg_fail_memory("a plan", 1);
  }
  wanted.weight++;
  wanted.updates |= (p->ends[index] & UPDATES) != 0;
  *cluster_at(p, *into) = wanted;
  add_node(p, *into, index);
  return HG_OK;
}

/* A further result is written by the first result's launch. */
static void put_beside_first(planner *p, uint32_t index) {
  uint32_t number = p->cluster_of[node_at(p, index)->input[0] - 1] - 1;
  cluster_at(p, number)->updates |= (p->ends[index] & UPDATES) != 0;
  add_node(p, number, index);
}

static hg_status put_in_cluster(planner *p, uint32_t index) {
  int is_box = (p->boxes[index] & PLAN_BOX) != 0, may_join = (p->flags & HG_NO_FUSION) == 0 && !is_box;
  uint32_t into = 0;
  reading r;
  hg_status status = reading_of(p, index, &r);
  if (status == HG_OK && is_box) status = hg_plan_read_before(p, index, &r);
  if (status == HG_OK) status = choose_cluster(p, index, &r, may_join, &into);
  if (status == HG_OK && may_join) status = join_maps(p, index, into, &r);
  if (status == HG_OK) status = hg_plan_wait_for(p, into, &r);
  hg_array_release(&p->plan->allocator, &r.numbers);
  return status;
}

/* A node that kept away from a cluster joins it after all if nothing has come to stand between them. */
static hg_status join_beside(planner *p) {
  for (uint32_t i = 0; i < p->clusters.count; i++) {
    const cluster *own = cluster_at(p, i);
    int is_between;
    if (own->beside == 0) continue;
    const cluster *other = cluster_at(p, own->beside - 1);
    if (own->kind != other->kind || own->axes != other->axes || !same(&own->space, &other->space) ||
        is_before(p, i, own->beside - 1) || own->updates || other->updates ||
        own->weight + other->weight >= OPS_CLUSTER_NODES)
      continue;
    HG_TRY(hg_plan_is_between(p, own->beside - 1, i, &is_between));
    if (!is_between) HG_TRY(take_in(p, own->beside - 1, i));
  }
  return HG_OK;
}

hg_status hg_plan_clusters(planner *p) {
  for (uint32_t i = 0; i < p->node_count; i++) {
    if (!p->live[i] || p->is_inline[i] || node_at(p, i)->kind == OPS_INPUT) continue;
    if (ops_kind_is(node_at(p, i), OPS_OF_ANOTHER)) put_beside_first(p, i);
    else HG_TRY(put_in_cluster(p, i));
    HG_TRY(hg_plan_come_before(p, i));
    HG_TRY(hg_patience_ask(p->plan->target.patience));
  }
  return join_beside(p);
}
