/* plan_split.c - splits clusters that their writers have refused: too many values, tensors or indices for one launch.
 * Other clusters, written or not, are unaffected: what changes is where values lie. See plan.c. */
#include "ops/plan/planner.h"

#include "ops/graph/infer.h"

/* The places where a cluster could be cut: between its own nodes or, if it has only one, before a node that this has
 * inline. */
typedef struct cuts {
  uint32_t number;        /* of the cluster */
  hg_array nodes;         /* uint32_t, ascending */
  uint32_t *place;        /* by node: its position in `nodes` */
  uint32_t *last_reader;  /* by position: the last node that reads it */
  hg_array work;          /* uint32_t, by position: how many nodes it takes along, itself included */
} cuts;

static uint32_t node_of(const cuts *s, uint32_t place) { return ((const uint32_t *)s->nodes.data)[place]; }
static uint32_t *work_of(const cuts *s, uint32_t place) { return (uint32_t *)s->work.data + place; }
static uint32_t count_of(const cuts *s) { return (uint32_t)s->nodes.count; }

static uint64_t bytes_of(const planner *p, uint32_t index) {
  const ops_node *node = node_at(p, index);
  return ops_count(&node->shape) * atlas_bytes((atlas_type)node->type);
}

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* ---- a cluster's own nodes --------------------------------------------------------------------------------------- */

/* What the node at a position reads of the others, through inline nodes. */
static hg_status look_back(planner *p, cuts *s, uint32_t place) {
  uint32_t i;
  hg_walk_begin(p);
  HG_TRY(hg_walk_into(p, node_of(s, place)));
  while (hg_walk_next(p, &i)) {
    if (p->cluster_of[i] == s->number + 1) s->last_reader[s->place[i]] = place;
    if (p->cluster_of[i] != NONE || is_input(p, i + 1)) continue;
    ++*work_of(s, place);
    HG_TRY(hg_walk_into(p, i));
  }
  return HG_OK;
}

static hg_status find_readers(planner *p, cuts *s) {
  for (uint32_t k = 0; k < count_of(s); k++) {
    s->place[node_of(s, k)] = k;
    *work_of(s, k) = 1;
    HG_TRY(look_back(p, s, k));
  }
  return HG_OK;
}

/* Best cut: where the second half begins, with at least a quarter of the work on either side if possible, such that the
 * fewest bytes cross; among equals, nearest to the middle. */
static uint32_t best_cut(const planner *p, const cuts *s) {
  uint64_t all = 0, before = 0, least = UINT64_MAX, nearest = UINT64_MAX;
  uint32_t best = 1;
  for (uint32_t k = 0; k < count_of(s); k++) all += *work_of(s, k);
  for (uint32_t k = 1; k < count_of(s); k++) {
    uint64_t bytes = 0;
    before += *work_of(s, k - 1);
    for (uint32_t q = 0; q < k; q++) /* it is written, unless it is anyway, and read */
      if (s->last_reader[q] >= k) bytes += bytes_of(p, node_of(s, q)) * (p->storage_of[node_of(s, q)] != 0 ? 1 : 2);
    uint64_t off = distance(2 * before, all);
    if (2 * off > all) bytes = UINT64_MAX;
    if (bytes > least || (bytes == least && off >= nearest)) continue;
    least = bytes, nearest = off, best = k;
  }
  return best;
}

/* 1 for a node that makes a cluster more than a map. */
static int is_fold(const planner *p, const cuts *s, uint32_t k) {
  return ops_kind_is(node_at(p, node_of(s, k)), OPS_FOLD);
}

/* Where a part that begins at `first`, in the half that ends at `end`, has to end: elements of several shapes do not
 * form a map. */
static uint32_t end_of_part(const planner *p, const cuts *s, uint32_t first, uint32_t end) {
  for (uint32_t k = first; k < end; k++)
    if (is_fold(p, s, k)) return end;
  const ops_shape *shape = &node_at(p, node_of(s, first))->shape;
  uint32_t k = first + 1;
  while (k < end && ops_same_shape(&node_at(p, node_of(s, k))->shape, shape)) k++;
  return k;
}

static hg_status add_cluster(planner *p, const cluster *part, uint32_t *number) {
  *number = (uint32_t)p->clusters.count;
  if (hg_array_append(&p->plan->allocator, &p->clusters, part, 1) == NULL) return hg_fail_memory("a plan", 1);
  return HG_OK;
}

/* Values that later parts read get a storage. So does a value that would overwrite an input which they may read. */
static hg_status set_part(planner *p, const cuts *s, uint32_t first, uint32_t end, uint32_t *numbers) {
  cluster part = {.kind = MAP, .space = node_at(p, node_of(s, first))->shape};
  uint32_t number;
  for (uint32_t k = first; k < end; k++)
    if (is_fold(p, s, k)) part = ((const cluster *)p->clusters.data)[s->number];
  HG_TRY(add_cluster(p, &part, &number));
  for (uint32_t k = first; k < end; k++) {
    uint32_t *storage = &p->storage_of[node_of(s, k)];
    if (*storage != 0 && end < count_of(s) && ops_is_over_input(p->plan, *storage - 1)) *storage = 0;
    int is_update = (p->ends[node_of(s, k)] & UPDATES) != 0;
    if (is_update || s->last_reader[k] >= end) HG_TRY(hg_plan_give_storage(p, node_of(s, k)));
    p->cluster_of[node_of(s, k)] = number + 1;
    numbers[k] = number;
  }
  return HG_OK;
}

static hg_status halve(planner *p, const cuts *s, uint32_t *numbers) {
  uint32_t cut = best_cut(p, s);
  for (uint32_t first = 0, end; first < count_of(s); first = end) {
    end = end_of_part(p, s, first, first < cut ? cut : count_of(s));
    HG_TRY(set_part(p, s, first, end, numbers));
  }
  return HG_OK;
}

/* ---- what one node has inline ------------------------------------------------------------------------------------ */

/* Everything that a node has inline: its work is one more than its inputs'. */
static hg_status add_inline(planner *p, cuts *s, uint32_t index) {
  const hg_allocator *allocator = &p->plan->allocator;
  const ops_node *node = node_at(p, index);
  uint32_t work = 1;
  for (uint32_t j = 0; j < node->input_count; j++) {
    uint32_t from = node->input[j] - 1;
    if (p->cluster_of[from] == NONE && !is_input(p, from + 1)) work += *work_of(s, s->place[from]);
  }
  s->place[index] = count_of(s);
  if (hg_array_push(allocator, &s->nodes, index) && hg_array_push(allocator, &s->work, work)) return HG_OK;
  return hg_fail_memory("a plan", s->nodes.count);
}

/* Lists what a node has inline, inputs first. A node waits on the stack, as its number + 1, until its inputs are
 * listed. */
static hg_status list_inline(planner *p, cuts *s, uint32_t index) {
  enum { WAITS = 1 };
  HG_TRY(hg_walk_push(p, index << 1));
  while (p->stack.count > 0) {
    uint32_t top = ((const uint32_t *)p->stack.data)[--p->stack.count], i = top >> 1;
    if ((top & WAITS) != 0) {
      HG_TRY(add_inline(p, s, i));
      continue;
    }
    const ops_node *node = node_at(p, i);
    if (p->cluster_of[i] != NONE || is_input(p, i + 1) || p->stamp[i] == p->epoch) continue;
    p->stamp[i] = p->epoch;
    HG_TRY(hg_walk_push(p, top | WAITS));
    for (uint32_t j = node->input_count; j-- > 0;) HG_TRY(hg_walk_push(p, (node->input[j] - 1) << 1));
  }
  return HG_OK;
}

/* Best cut: the node with the fewest bytes, among those that do work or else among views, that leaves at least a
 * quarter of all nodes on either side if possible. UINT32_MAX: there is none. */
static uint32_t best_inline(const planner *p, const cuts *s, uint32_t all) {
  uint64_t least = UINT64_MAX, nearest = UINT64_MAX;
  uint32_t best = UINT32_MAX;
  int is_work = 0;
  for (uint32_t k = 0; k < count_of(s); k++) {
    const ops_node *node = node_at(p, node_of(s, k));
    if (node->input_count == 0 || (is_work && is_virtual(node))) continue;
    uint64_t bytes = bytes_of(p, node_of(s, k)), off = distance(UINT64_C(2) * *work_of(s, k), all);
    if (2 * off > all) bytes = UINT64_MAX;
    int is_first = !is_work && !is_virtual(node);
    if (!is_first && (bytes > least || (bytes == least && off >= nearest))) continue;
    is_work |= is_first, least = bytes, nearest = off, best = node_of(s, k);
  }
  return best;
}

/* The node becomes a cluster of its own, which later launches read; launches that are written have computed it
 * themselves. Further results of a node stay with it. */
static hg_status take_out(planner *p, cuts *s, plan_parts *out) {
  const ops_node *node = node_at(p, out->nodes[0]);
  uint32_t all = 1;
  s->nodes.count = s->work.count = 0;
  hg_walk_begin(p);
  for (uint32_t j = 0; j < node->input_count; j++) {
    uint32_t from = node->input[j] - 1;
    HG_TRY(list_inline(p, s, from));
    if (p->cluster_of[from] == NONE && !is_input(p, from + 1)) all += *work_of(s, s->place[from]);
  }
  uint32_t best = best_inline(p, s, all), number;
  if (best == UINT32_MAX) return HG_UNSUPPORTED; /* with the sentence of the writer that refused it */
  HG_TRY(add_cluster(p, &(cluster){.kind = MAP, .space = node_at(p, best)->shape}, &number));
  p->cluster_of[best] = number + 1;
  memmove(out->nodes + 1, out->nodes, out->count * sizeof *out->nodes);
  for (uint32_t k = 1; k <= out->count; k++) out->numbers[k] = s->number;
  out->nodes[0] = best, out->numbers[0] = number;
  out->count++;
  return hg_plan_give_storage(p, best);
}

static hg_status begin_cuts(planner *p, cuts *s, const uint32_t *nodes, uint32_t count, plan_parts *out) {
  const hg_allocator *allocator = &p->plan->allocator;
  s->nodes.element_size = s->work.element_size = sizeof(uint32_t);
  s->last_reader = hg_allocate(allocator, count, sizeof *s->last_reader);
  if (p->place == NULL) p->place = hg_allocate_unset(allocator, p->node_count, sizeof *p->place);
  s->place = p->place;
  out->nodes = hg_allocate(allocator, 2 * (count + UINT64_C(1)), sizeof *out->nodes); /* one node may be added */
  if (s->last_reader == NULL || s->place == NULL || out->nodes == NULL ||
      hg_array_append(allocator, &s->nodes, nodes, count) == NULL ||
      hg_array_append(allocator, &s->work, NULL, count) == NULL)
    return hg_fail_memory("a plan", count);
  out->count = count;
  out->numbers = out->nodes + count + 1;
  memcpy(out->nodes, nodes, count * sizeof *nodes);
  return HG_OK;
}

hg_status hg_plan_split(planner *p, uint32_t number, const uint32_t *nodes, uint32_t count, plan_parts *out) {
  const hg_allocator *allocator = &p->plan->allocator;
  cuts s = {.number = number};
  hg_status status = begin_cuts(p, &s, nodes, count, out);
  int is_one = count == 1 || cluster_at(p, number)->kind == ALONE;
  if (status == HG_OK && !is_one) status = find_readers(p, &s);
  if (status == HG_OK) status = is_one ? take_out(p, &s, out) : halve(p, &s, out->numbers);
  hg_array_release(allocator, &s.nodes);
  hg_array_release(allocator, &s.work);
  hg_release(allocator, s.last_reader);
  return status;
}
