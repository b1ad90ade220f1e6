/* plan_split.c - clusters that their writers have refused, in two: too many values, tensors or indices for one launch.
 * Others have been written already, or will be, and do not notice: what is new is where values lie. See plan.c. */
#include "ops/plan/planner.h"

#include "ops/graph/infer.h"

/* Where a cluster could be cut: at its own nodes, or at those that its only one has inline. */
typedef struct cuts {
  uint32_t number;        /* of the cluster */
  uint32_t *nodes, count; /* ascending */
  uint32_t *place;        /* by node: its place among them */
  uint32_t *last_reader;  /* by place: the last one that reads it */
  uint32_t *work;         /* by place: nodes that it takes along, itself included */
} cuts;

static uint64_t bytes_of(const planner *p, uint32_t index) {
  const ops_node *node = node_at(p, index);
  return ops_count(&node->shape) * atlas_bytes((atlas_type)node->type);
}

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* ---- a cluster's own nodes --------------------------------------------------------------------------------------- */

/* What the node at a place reads of the others, through inline nodes. */
static void look_back(planner *p, cuts *s, uint32_t place, value_id value) {
  uint32_t i = value - 1;
  if (p->stamp[i] == p->epoch) return;
  p->stamp[i] = p->epoch;
  if (p->cluster_of[i] == s->number + 1) s->last_reader[s->place[i]] = place;
  if (p->cluster_of[i] != NONE || is_input(p, value)) return;
  s->work[place]++;
  for (uint32_t j = 0; j < node_at(p, i)->input_count; j++) look_back(p, s, place, node_at(p, i)->input[j]);
}

static void find_readers(planner *p, cuts *s) {
  for (uint32_t k = 0; k < s->count; k++) {
    const ops_node *node = node_at(p, s->nodes[k]);
    s->place[s->nodes[k]] = k;
    s->work[k] = 1;
    p->epoch++;
    for (uint32_t j = 0; j < node->input_count; j++) look_back(p, s, k, node->input[j]);
  }
}

/* Where the second half begins: with a quarter of the work or more on either side, where that can be, the fewest bytes
 * go from one to the other; of equals the one nearest to the middle. */
static uint32_t best_cut(const planner *p, const cuts *s) {
  uint64_t all = 0, before = 0, least = UINT64_MAX, nearest = UINT64_MAX;
  uint32_t best = 1;
  for (uint32_t k = 0; k < s->count; k++) all += s->work[k];
  for (uint32_t k = 1; k < s->count; k++) {
    uint64_t bytes = 0;
    before += s->work[k - 1];
    for (uint32_t q = 0; q < k; q++) /* written, unless it is in any case, and read */
      if (s->last_reader[q] >= k) bytes += bytes_of(p, s->nodes[q]) * (p->storage_of[s->nodes[q]] != 0 ? 1 : 2);
    uint64_t off = distance(2 * before, all);
    if (2 * off > all) bytes = UINT64_MAX;
    if (bytes > least || (bytes == least && off >= nearest)) continue;
    least = bytes, nearest = off, best = k;
  }
  return best;
}

/* What makes a cluster more than a map. */
static int is_of_kind(const ops_node *node) { return node->kind == OPS_REDUCE || node->kind == OPS_CONTRACT; }

/* Where a part that begins at a place, in the half that ends at another one, has to end: elements of several shapes are
 * no map. */
static uint32_t end_of_part(const planner *p, const cuts *s, uint32_t first, uint32_t end) {
  for (uint32_t k = first; k < end; k++)
    if (is_of_kind(node_at(p, s->nodes[k]))) return end;
  const ops_shape *shape = &node_at(p, s->nodes[first])->shape;
  uint32_t k = first + 1;
  while (k < end && ops_same_shape(&node_at(p, s->nodes[k])->shape, shape)) k++;
  return k;
}

static hg_status add_cluster(planner *p, const cluster *part, uint32_t *number) {
  *number = (uint32_t)p->clusters.count;
  if (hg_array_append(&p->plan->allocator, &p->clusters, part, 1) == NULL) return hg_fail_memory("a plan", 1);
  return HG_OK;
}

/* Values that later parts read lie in a storage. So does what would be put over an input that they may read. */
static hg_status set_part(planner *p, const cuts *s, uint32_t first, uint32_t end, uint32_t *numbers) {
  cluster part = {.kind = MAP, .space = node_at(p, s->nodes[first])->shape};
  uint32_t number;
  for (uint32_t k = first; k < end; k++)
    if (is_of_kind(node_at(p, s->nodes[k]))) part = ((const cluster *)p->clusters.data)[s->number];
  HG_TRY(add_cluster(p, &part, &number));
  for (uint32_t k = first; k < end; k++) {
    uint32_t *storage = &p->storage_of[s->nodes[k]];
    if (*storage != 0 && end < s->count && ops_is_over_input(p->plan, *storage - 1)) *storage = 0;
    int is_update = (p->ends[s->nodes[k]] & UPDATES) != 0;
    if (is_update || s->last_reader[k] >= end) HG_TRY(hg_plan_give_storage(p, s->nodes[k]));
    p->cluster_of[s->nodes[k]] = number + 1;
    numbers[k] = number;
  }
  return HG_OK;
}

static hg_status halve(planner *p, const cuts *s, uint32_t *numbers) {
  uint32_t cut = best_cut(p, s);
  for (uint32_t first = 0, end; first < s->count; first = end) {
    end = end_of_part(p, s, first, first < cut ? cut : s->count);
    HG_TRY(set_part(p, s, first, end, numbers));
  }
  return HG_OK;
}

/* ---- what one node has inline ------------------------------------------------------------------------------------ */

/* Inputs first; work: with all that a node has inline itself. */
static uint32_t list_inline(planner *p, cuts *s, value_id value) {
  uint32_t i = value - 1, work = 1;
  if (p->cluster_of[i] != NONE || is_input(p, value)) return 0;
  if (p->stamp[i] == p->epoch) return s->work[s->place[i]];
  p->stamp[i] = p->epoch;
  for (uint32_t j = 0; j < node_at(p, i)->input_count; j++) work += list_inline(p, s, node_at(p, i)->input[j]);
  s->place[i] = s->count;
  s->nodes[s->count] = i;
  s->work[s->count++] = work;
  return work;
}

/* The node that is to be computed before: of those that do work, or else of views, the one with the fewest bytes that
 * has a quarter of all before it and behind it, where that can be. UINT32_MAX: there is none. */
static uint32_t best_inline(const planner *p, const cuts *s, uint32_t all) {
  uint64_t least = UINT64_MAX, nearest = UINT64_MAX;
  uint32_t best = UINT32_MAX;
  int is_work = 0;
  for (uint32_t k = 0; k < s->count; k++) {
    const ops_node *node = node_at(p, s->nodes[k]);
    if (node->input_count == 0 || (is_work && is_virtual(node))) continue;
    uint64_t bytes = bytes_of(p, s->nodes[k]), off = distance(UINT64_C(2) * s->work[k], all);
    if (2 * off > all) bytes = UINT64_MAX;
    int is_first = !is_work && !is_virtual(node);
    if (!is_first && (bytes > least || (bytes == least && off >= nearest))) continue;
    is_work |= is_first, least = bytes, nearest = off, best = s->nodes[k];
  }
  return best;
}

/* It is a cluster, and what comes after reads it; what has been written has computed it anew. */
static hg_status take_out(planner *p, cuts *s, plan_parts *out) {
  const ops_node *node = node_at(p, out->nodes[0]);
  uint32_t all = 1;
  s->count = 0;
  p->epoch++;
  for (uint32_t j = 0; j < node->input_count; j++) all += list_inline(p, s, node->input[j]);
  uint32_t best = best_inline(p, s, all), number;
  if (best == UINT32_MAX) return HG_UNSUPPORTED; /* with the sentence of who refused it */
  HG_TRY(add_cluster(p, &(cluster){.kind = MAP, .space = node_at(p, best)->shape}, &number));
  p->cluster_of[best] = number + 1;
  out->nodes[1] = out->nodes[0], out->numbers[1] = s->number;
  out->nodes[0] = best, out->numbers[0] = number;
  out->count = 2;
  return hg_plan_give_storage(p, best);
}

hg_status hg_plan_split(planner *p, uint32_t number, const uint32_t *nodes, uint32_t count, plan_parts *out) {
  const hg_allocator *allocator = &p->plan->allocator;
  uint64_t n = p->node_count;
  uint32_t *room = hg_allocate(allocator, 4 * n, sizeof *room);
  out->nodes = hg_allocate(allocator, 2 * (count + UINT64_C(1)), sizeof *out->nodes); /* one may come to it */
  hg_status status = room == NULL || out->nodes == NULL ? hg_fail_memory("a plan", n) : HG_OK;
  if (status == HG_OK) {
    cuts s = {.number = number, .nodes = room, .place = room + n, .last_reader = room + 2 * n, .work = room + 3 * n};
    s.count = out->count = count;
    out->numbers = out->nodes + count + 1;
    memcpy(out->nodes, nodes, count * sizeof *nodes);
    memcpy(s.nodes, nodes, count * sizeof *nodes);
    if (count > 1) find_readers(p, &s);
    status = count > 1 ? halve(p, &s, out->numbers) : take_out(p, &s, out);
  }
  hg_release(allocator, room);
  return status;
}
