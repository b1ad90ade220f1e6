/* plan.c - cuts a computation into launches.
 *
 * Every live node that does work belongs to a cluster, which one launch computes, or is inline: computed anew by each
 * cluster that reads it. Views, reshapes, constants and coordinates are inline always. A node whose users read each of its
 * elements about once is inline too; the others join the cluster of what they read where shapes and dependences allow,
 * from the inputs on. What is read outside its cluster, and what is put out, lies in a storage. */
#include "ops/plan.h"

#include "atlas/tables.h"

#include <string.h>

enum { NONE = 0, MOST_INLINE_USES = 4, MOST_NODES = 256 /* of a cluster */ };

typedef struct cluster {
  uint8_t kind;         /* cluster_kind */
  ops_shape space;      /* of its elements */
  uint32_t axes;        /* that its reductions fold */
  uint32_t weight;      /* nodes */
} cluster;

typedef enum cluster_kind { MAP, ROWS, ALONE } cluster_kind;

typedef struct planner {
  const hg_computation *c;
  ops_plan *plan;
  uint32_t flags, node_count;
  uint8_t *live, *is_inline;
  uint8_t *alone;        /* not to be fused: a writer has refused the cluster that it was in */
  uint32_t *stamp, epoch; /* by node: the walk that has been there last */
  uint32_t *uses;        /* by node: how many nodes that do work read it, directly or through views */
  uint64_t *reads;       /* how many of its elements they read in all */
  uint32_t *cluster_of;  /* by node: 1 + number; NONE: inline */
  uint32_t *storage_of;  /* by node: 1 + number */
  hg_array clusters;     /* cluster */
  uint64_t *before;      /* a row of bits a cluster: clusters that must run before it */
  uint32_t row_words;
  uint32_t first_output; /* storage of the first output */
  uint32_t *kept;        /* by input: 1 + storage of another input's value as it was, which this one will hold */
  uint32_t refused;      /* 1 + the cluster that its writer refused */
} planner;

static const ops_node *node_at(const planner *p, uint32_t index) { return (const ops_node *)p->c->nodes.data + index; }

static int is_virtual(const ops_node *node) {
  return node->kind == OPS_VIEW || node->kind == OPS_RESHAPE || node->kind == OPS_CONSTANT ||
         node->kind == OPS_COORDINATE;
}

/* ---- what is there ------------------------------------------------------------------------------------------------ */

static void mark_roots(planner *p) {
  const ops_output *outputs = p->c->outputs.data;
  const ops_input *inputs = p->c->inputs.data;
  for (size_t i = 0; i < p->c->outputs.count; i++) p->live[outputs[i].value - 1] = 1;
  for (size_t i = 0; i < p->c->inputs.count; i++)
    if (inputs[i].update != 0) p->live[inputs[i].update - 1] = 1;
}

/* A use by a node that does work counts for what stands behind views, too, with as many elements as are looked at. */
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
    if (!p->live[i]) continue;
    const ops_node *node = node_at(p, i);
    uint64_t elements = node->kind == OPS_REDUCE ? ops_count(&node_at(p, node->input[0] - 1)->shape) : ops_count(&node->shape);
    for (uint32_t j = 0; j < node->input_count; j++) {
      p->live[node->input[j] - 1] = 1;
      if (!is_virtual(node)) count_use(p, node->input[j], elements);
    }
  }
}

/* ---- inline nodes -------------------------------------------------------------------------------------------------- */

static int is_cheap(atlas_op op) {
  const atlas_op_info *info = atlas_op_lookup(op);
  return info != NULL && (info->flags & ATLAS_FUNC) == 0 && op != ATLAS_OP_div && op != ATLAS_OP_sqrt;
}

static int must_lie_in_storage(const planner *p, uint32_t index);

/* Computed anew costs less than a trip through memory: one use, of each element once; or something cheap of one input. */
static int is_worth_inlining(const planner *p, uint32_t i) {
  const ops_node *node = node_at(p, i);
  if (node->kind != OPS_POINTWISE && node->kind != OPS_GATHER && node->kind != OPS_RANDOM) return 0;
  if (must_lie_in_storage(p, i)) return 0;
  uint64_t own = ops_count(&node->shape);
  if (p->uses[i] <= 1 && p->reads[i] <= own) return 1;
  if (node->kind == OPS_POINTWISE && node->shape.rank == 0 && is_cheap((atlas_op)node->op)) return 1;
  return node->kind == OPS_POINTWISE && node->input_count == 1 && is_cheap((atlas_op)node->op) &&
         p->uses[i] <= MOST_INLINE_USES && p->reads[i] <= MOST_INLINE_USES * own;
}

/* Outputs, and what an operation reads by numbers of its own. */
static int must_lie_in_storage(const planner *p, uint32_t index) {
  const ops_output *outputs = p->c->outputs.data;
  const ops_input *inputs = p->c->inputs.data;
  for (size_t i = 0; i < p->c->outputs.count; i++)
    if (outputs[i].value == index + 1) return 1;
  for (size_t i = 0; i < p->c->inputs.count; i++)
    if (inputs[i].update == index + 1) return 1;
  return p->is_inline[index] == 2; /* the source of a gather, or of what is no expression */
}

static void demand_storage(planner *p) {
  for (uint32_t i = 0; i < p->node_count; i++) {
    const ops_node *node = node_at(p, i);
    if (!p->live[i]) continue;
    if (node->kind == OPS_GATHER || node->kind == OPS_SCATTER || node->kind == OPS_CONCATENATE || node->kind == OPS_PAD)
      p->is_inline[node->input[0] - 1] = 2;
  }
}

static void choose_inline(planner *p) {
  demand_storage(p);
  for (uint32_t i = p->node_count; i-- > 0;) {
    const ops_node *node = node_at(p, i);
    int demanded = must_lie_in_storage(p, i);
    p->is_inline[i] = 0;
    if (!p->live[i] || node->kind == OPS_INPUT) continue;
    if (demanded) p->is_inline[i] = 0;
    else if (is_virtual(node)) p->is_inline[i] = 1;
    else if ((p->flags & HG_NO_FUSION) == 0) p->is_inline[i] = (uint8_t)(!p->alone[i] && is_worth_inlining(p, i));
  }
}

/* ---- clusters ------------------------------------------------------------------------------------------------------ */

static uint64_t *row_of(const planner *p, uint32_t number) { return p->before + (size_t)number * p->row_words; }
static int is_before(const planner *p, uint32_t a, uint32_t b) { return row_of(p, b)[a / 64] >> a % 64 & 1; }

static int same(const ops_shape *a, const ops_shape *b) {
  if (a->rank != b->rank) return 0;
  return memcmp(a->size, b->size, a->rank * sizeof a->size[0]) == 0;
}

/* The clusters that a node reads, directly or by inline nodes. */
typedef struct reading {
  hg_array numbers; /* uint32_t */
  hg_status status;
} reading;

static uint32_t number_at(const reading *r, size_t k) { return ((const uint32_t *)r->numbers.data)[k]; }

static void add_reading(planner *p, value_id value, reading *r) {
  uint32_t i = value - 1;
  const ops_node *node = node_at(p, i);
  if (p->stamp[i] == p->epoch) return;
  p->stamp[i] = p->epoch;
  if (p->cluster_of[i] != NONE) {
    uint32_t number = p->cluster_of[i] - 1;
    for (size_t k = 0; k < r->numbers.count; k++)
      if (number_at(r, k) == number) return;
    if (!hg_array_push(&p->plan->allocator, &r->numbers, number)) r->status = hg_fail_memory("a plan", sizeof number);
    return;
  }
  for (uint32_t j = 0; j < node->input_count; j++) add_reading(p, node->input[j], r);
}

static void reading_of(planner *p, uint32_t index, reading *r) {
  *r = (reading){.numbers = {.element_size = sizeof(uint32_t)}};
  const ops_node *node = node_at(p, index);
  p->epoch++;
  for (uint32_t j = 0; j < node->input_count; j++) add_reading(p, node->input[j], r);
}

/* Whether a node fits what a cluster computes; *wanted is what the cluster then is. */
static int fits(const planner *p, const cluster *to, const ops_node *node, cluster *wanted) {
  *wanted = *to;
  if (to->kind == ALONE || to->weight >= MOST_NODES) return 0;
  if (node->kind == OPS_REDUCE) {
    const ops_shape *from = &node_at(p, node->input[0] - 1)->shape;
    if (!same(from, &to->space)) return 0;
    if (to->kind == ROWS) return to->axes == node->axes;
    wanted->kind = ROWS;
    wanted->axes = node->axes;
    return 1;
  }
  if (node->kind != OPS_POINTWISE && node->kind != OPS_GATHER && node->kind != OPS_RANDOM) return 0;
  if (same(&node->shape, &to->space)) return 1;
  if (to->kind != ROWS) return 0;
  ops_shape outer = {.rank = 0}; /* a row's own values: without the axes, or with 1 in their place */
  ops_shape kept = to->space;
  for (uint32_t d = 0; d < to->space.rank; d++) {
    if ((to->axes >> d & 1) == 0) outer.size[outer.rank++] = to->space.size[d];
    else kept.size[d] = 1;
  }
  return same(&node->shape, &outer) || same(&node->shape, &kept);
}

/* Joining cluster `into` must not make it wait for itself: nothing else that the node reads may come after it. */
static int is_acyclic(const planner *p, const reading *r, uint32_t into) {
  for (size_t k = 0; k < r->numbers.count; k++)
    if (number_at(r, k) != into && is_before(p, into, number_at(r, k))) return 0;
  return 1;
}

/* A cluster that comes to wait for others makes all that wait for it wait for them too. */
static void wait_for(planner *p, uint32_t number, const reading *r) {
  uint64_t *own = row_of(p, number);
  for (size_t k = 0; k < r->numbers.count; k++) {
    uint32_t other = number_at(r, k);
    if (other == number) continue;
    own[other / 64] |= UINT64_C(1) << other % 64;
    const uint64_t *row = row_of(p, other);
    for (uint32_t w = 0; w < p->row_words; w++) own[w] |= row[w];
  }
  for (uint32_t i = 0; i < p->clusters.count; i++) {
    if (i == number || !is_before(p, number, i)) continue;
    uint64_t *row = row_of(p, i);
    for (uint32_t w = 0; w < p->row_words; w++) row[w] |= own[w];
  }
}

/* The cluster that a node joins: of those it reads, the last; UINT32_MAX: none. */
static uint32_t cluster_to_join(const planner *p, const ops_node *node, const reading *r, cluster *wanted) {
  uint32_t into = UINT32_MAX;
  for (size_t k = 0; k < r->numbers.count; k++) {
    cluster candidate;
    uint32_t number = number_at(r, k);
    if (!fits(p, (const cluster *)p->clusters.data + number, node, &candidate) || !is_acyclic(p, r, number)) continue;
    if (into != UINT32_MAX && is_before(p, number, into)) continue;
    into = number;
    *wanted = candidate;
  }
  return into;
}

static cluster cluster_of_one(const planner *p, const ops_node *node) {
  cluster one = {.kind = ALONE, .space = node->shape};
  if (node->kind == OPS_POINTWISE || node->kind == OPS_GATHER || node->kind == OPS_RANDOM || is_virtual(node))
    one.kind = MAP;
  if (node->kind == OPS_REDUCE) {
    one.kind = ROWS;
    one.space = node_at(p, node->input[0] - 1)->shape;
    one.axes = node->axes;
  }
  return one;
}

static hg_status put_in_cluster(planner *p, uint32_t index) {
  const ops_node *node = node_at(p, index);
  reading r;
  reading_of(p, index, &r);
  hg_status status = r.status;
  cluster wanted = cluster_of_one(p, node);
  uint32_t into = UINT32_MAX;
  if ((p->flags & HG_NO_FUSION) == 0 && !p->alone[index]) into = cluster_to_join(p, node, &r, &wanted);
  if (into == UINT32_MAX && status == HG_OK) {
    into = (uint32_t)p->clusters.count;
    if (hg_array_append(&p->plan->allocator, &p->clusters, NULL, 1) == NULL) status = hg_fail_memory("a plan", 1);
  }
  if (status == HG_OK) {
    wanted.weight++;
    if (p->alone[index]) wanted.weight = MOST_NODES;
    ((cluster *)p->clusters.data)[into] = wanted;
    p->cluster_of[index] = into + 1;
    wait_for(p, into, &r);
  }
  hg_array_release(&p->plan->allocator, &r.numbers);
  return status;
}

static hg_status make_clusters(planner *p) {
  for (uint32_t i = 0; i < p->node_count; i++)
    if (p->live[i] && !p->is_inline[i] && node_at(p, i)->kind != OPS_INPUT) HG_TRY(put_in_cluster(p, i));
  return HG_OK;
}

/* ---- storages ------------------------------------------------------------------------------------------------------ */

static void measure(ops_storage *s) {
  int64_t lowest = 0, highest = 0;
  for (uint32_t d = 0; d < s->shape.rank; d++) {
    if (s->shape.size[d] == 0) continue;
    int64_t reach = s->stride[d] * (int64_t)(s->shape.size[d] - 1);
    if (reach < 0) lowest += reach;
    else highest += reach;
  }
  s->lowest = lowest;
  s->extent = ops_count(&s->shape) == 0 ? 0 : highest - lowest + 1;
}

static hg_status add_storage(planner *p, ops_storage storage, uint32_t *number) {
  measure(&storage);
  *number = (uint32_t)p->plan->storages.count;
  if (hg_array_append(&p->plan->allocator, &p->plan->storages, &storage, 1) == NULL)
    return hg_fail_memory("a plan", sizeof storage);
  return HG_OK;
}

static ops_storage of_tensor(const hg_tensor *tensor, int kind, uint32_t index) {
  ops_storage storage;
  memset(&storage, 0, sizeof storage);
  storage.kind = kind == 0 ? OPS_OF_INPUT : OPS_OF_OUTPUT;
  storage.index = index;
  storage.type = (uint8_t)tensor->type;
  storage.shape.rank = tensor->rank;
  memcpy(storage.shape.size, tensor->shape, tensor->rank * sizeof tensor->shape[0]);
  memcpy(storage.stride, tensor->stride, tensor->rank * sizeof tensor->stride[0]);
  return storage;
}

static hg_status give_storage(planner *p, uint32_t index) {
  if (p->storage_of[index] != 0) return HG_OK;
  const ops_node *node = node_at(p, index);
  ops_storage storage;
  memset(&storage, 0, sizeof storage);
  storage.kind = OPS_TEMPORARY;
  storage.type = node->type;
  storage.shape = node->shape;
  int64_t stride = 1;
  for (uint32_t d = node->shape.rank; d-- > 0; stride *= (int64_t)node->shape.size[d]) storage.stride[d] = stride;
  uint32_t number;
  HG_TRY(add_storage(p, storage, &number));
  p->storage_of[index] = number + 1;
  return HG_OK;
}

/* Inputs lie where they are; a value that is put out is written to the first output that it is. */
static hg_status give_tensors(planner *p) {
  const ops_input *inputs = p->c->inputs.data;
  const ops_output *outputs = p->c->outputs.data;
  uint32_t number;
  for (uint32_t i = 0; i < p->c->inputs.count; i++) {
    HG_TRY(add_storage(p, of_tensor(&inputs[i].like, 0, i), &number));
    p->storage_of[inputs[i].value - 1] = number + 1;
  }
  p->first_output = (uint32_t)p->plan->storages.count;
  for (uint32_t i = 0; i < p->c->outputs.count; i++) {
    HG_TRY(add_storage(p, of_tensor(&outputs[i].like, 1, i), &number));
    uint32_t index = outputs[i].value - 1;
    if (p->storage_of[index] == 0) p->storage_of[index] = number + 1;
  }
  return HG_OK;
}

/* ---- updates in place ---------------------------------------------------------------------------------------------- */

/* Whether a node reads an input, itself or through what it has inline or in its cluster. */
static int reads_input(planner *p, value_id value, value_id input, uint32_t number, uint32_t *stamp, uint32_t epoch) {
  uint32_t i = value - 1;
  if (value == input) return 1;
  if (stamp[i] == epoch || (p->cluster_of[i] != NONE && p->cluster_of[i] != number + 1)) return 0;
  stamp[i] = epoch;
  for (uint32_t j = 0; j < node_at(p, i)->input_count; j++)
    if (reads_input(p, node_at(p, i)->input[j], input, number, stamp, epoch)) return 1;
  return 0;
}

/* Whether it does so otherwise than element by element. */
static int reads_elsewhere(planner *p, value_id value, value_id input, uint32_t number) {
  uint32_t i = value - 1;
  if (value == input || p->stamp[i] == p->epoch || (p->cluster_of[i] != NONE && p->cluster_of[i] != number + 1)) return 0;
  p->stamp[i] = p->epoch;
  if (node_at(p, i)->kind != OPS_POINTWISE)
    return reads_input(p, value, input, number, p->stamp + p->node_count, p->epoch);
  for (uint32_t j = 0; j < node_at(p, i)->input_count; j++)
    if (reads_elsewhere(p, node_at(p, i)->input[j], input, number)) return 1;
  return 0;
}

/* An update may be written over its input if its launch goes element by element, and all others that read the input
 * are before it, or can be made to be. */
static hg_status try_in_place(planner *p, const ops_input *input) {
  uint32_t index = input->update - 1;
  if (p->cluster_of[index] == NONE || p->storage_of[index] != 0) return HG_OK;
  uint32_t number = p->cluster_of[index] - 1;
  if (((const cluster *)p->clusters.data)[number].kind != MAP) return HG_OK;
  reading readers = {.numbers = {.element_size = sizeof(uint32_t)}};
  int is_possible = 1;
  for (uint32_t i = 0; i < p->node_count && is_possible; i++) {
    if (p->cluster_of[i] == NONE) continue;
    uint32_t other = p->cluster_of[i] - 1;
    p->epoch++;
    if (other == number) is_possible = !reads_elsewhere(p, i + 1, input->value, other);
    else if (reads_input(p, i + 1, input->value, other, p->stamp, p->epoch)) {
      is_possible = !is_before(p, number, other);
      if (!hg_array_push(&p->plan->allocator, &readers.numbers, other)) readers.status = hg_fail_memory("a plan", 1);
    }
  }
  if (is_possible && readers.status == HG_OK) {
    wait_for(p, number, &readers);
    p->storage_of[index] = p->storage_of[input->value - 1];
  }
  hg_array_release(&p->plan->allocator, &readers.numbers);
  return readers.status;
}

/* What a cluster (1 + its number) reads of another one lies in a storage; inline nodes are looked through. */
static hg_status give_read(planner *p, value_id value, uint32_t reader) {
  uint32_t i = value - 1;
  if (p->stamp[i] == p->epoch) return HG_OK;
  p->stamp[i] = p->epoch;
  if (node_at(p, i)->kind == OPS_INPUT) return HG_OK;
  if (p->cluster_of[i] != NONE) return p->cluster_of[i] == reader ? HG_OK : give_storage(p, i);
  for (uint32_t j = 0; j < node_at(p, i)->input_count; j++) HG_TRY(give_read(p, node_at(p, i)->input[j], reader));
  return HG_OK;
}

static hg_status give_storages(planner *p) {
  HG_TRY(give_tensors(p));
  const ops_input *inputs = p->c->inputs.data;
  for (uint32_t i = 0; i < p->c->inputs.count; i++)
    if (inputs[i].update != 0) HG_TRY(try_in_place(p, &inputs[i]));
  for (uint32_t i = 0; i < p->c->inputs.count; i++)
    if (inputs[i].update != 0) HG_TRY(give_storage(p, inputs[i].update - 1));
  for (uint32_t i = 0; i < p->node_count; i++) {
    if (p->cluster_of[i] == NONE) continue;
    p->epoch++;
    for (uint32_t j = 0; j < node_at(p, i)->input_count; j++)
      HG_TRY(give_read(p, node_at(p, i)->input[j], p->cluster_of[i]));
  }
  return HG_OK;
}

/* ---- steps --------------------------------------------------------------------------------------------------------- */

static hg_status collect(const planner *p, value_id value, uint32_t number, uint8_t *seen, hg_array *nodes) {
  uint32_t i = value - 1;
  if (seen[i]) return HG_OK;
  int is_own = p->cluster_of[i] == number + 1, is_storage = p->storage_of[i] != 0 && !is_own;
  if (node_at(p, i)->kind == OPS_INPUT || is_storage || (p->cluster_of[i] != NONE && !is_own)) return HG_OK;
  seen[i] = 1;
  for (uint32_t j = 0; j < node_at(p, i)->input_count; j++)
    HG_TRY(collect(p, node_at(p, i)->input[j], number, seen, nodes));
  if (hg_array_append(&p->plan->allocator, nodes, &value, 1) == NULL) return hg_fail_memory("a plan", sizeof value);
  return HG_OK;
}

static void sort_values(value_id *values, size_t count) {
  for (size_t i = 1; i < count; i++) {
    value_id value = values[i];
    size_t at = i;
    for (; at > 0 && values[at - 1] > value; at--) values[at] = values[at - 1];
    values[at] = value;
  }
}

static hg_status write_group(const planner *p, const cluster *from, const ops_group *group, ops_step *step) {
  const ops_node *first = ops_at(p->c, group->results[0]);
  if (from->kind == MAP) return ops_write_map(group, step);
  if (from->kind == ROWS) {
    hg_status status = ops_write_rows(group, step);
    return status == HG_UNSUPPORTED ? ops_write_columns(group, step) : status;
  }
  if (first->kind == OPS_CONTRACT) return ops_write_contract(group, step);
  return hg_fail(HG_UNSUPPORTED, "operations of kind %d are not there yet", first->kind);
}

static hg_status write_cluster(planner *p, uint32_t number, uint8_t *seen) {
  const hg_allocator *allocator = &p->plan->allocator;
  hg_array nodes = {.element_size = sizeof(value_id)}, results = {.element_size = sizeof(value_id)};
  hg_status status = HG_OK;
  memset(seen, 0, p->node_count);
  for (uint32_t i = 0; i < p->node_count && status == HG_OK; i++) {
    if (p->cluster_of[i] != number + 1) continue;
    value_id value = i + 1;
    status = collect(p, value, number, seen, &nodes);
    if (status == HG_OK && p->storage_of[i] != 0 && hg_array_append(allocator, &results, &value, 1) == NULL)
      status = hg_fail_memory("a plan", sizeof value);
  }
  sort_values(nodes.data, nodes.count);
  ops_group group = {.computation = p->c, .plan = p->plan, .nodes = nodes.data, .node_count = (uint32_t)nodes.count,
                     .storage_of = p->storage_of, .results = results.data, .result_count = (uint32_t)results.count};
  ops_step step;
  memset(&step, 0, sizeof step);
  if (status == HG_OK && results.count != 0) {
    step.first_value = (uint32_t)p->plan->values.count;
    step.value_count = (uint32_t)nodes.count;
    status = write_group(p, (const cluster *)p->clusters.data + number, &group, &step);
    if (status == HG_OK && (hg_array_append(allocator, &p->plan->values, nodes.data, nodes.count) == NULL ||
                            hg_array_append(allocator, &p->plan->steps, &step, 1) == NULL)) {
      atlas_program_release(step.program);
      hg_release(allocator, step.scalars);
      status = hg_fail_memory("a plan", sizeof step);
    }
  }
  hg_array_release(allocator, &nodes);
  hg_array_release(allocator, &results);
  return status;
}

static uint32_t bits_in(const planner *p, uint32_t number) {
  uint32_t count = 0;
  for (uint32_t w = 0; w < p->row_words; w++)
    for (uint64_t word = row_of(p, number)[w]; word != 0; word &= word - 1) count++;
  return count;
}

/* A cluster that comes after another one has more before it: what that one has, and itself. */
static hg_status write_steps(planner *p) {
  const hg_allocator *allocator = &p->plan->allocator;
  uint32_t count = (uint32_t)p->clusters.count;
  uint8_t *seen = hg_allocate(allocator, p->node_count + 1u, 1);
  uint32_t *order = hg_allocate(allocator, 2 * (uint64_t)count + 2, sizeof *order), *first = order + count;
  hg_status status = seen == NULL || order == NULL ? hg_fail_memory("a plan", p->node_count) : HG_OK;
  if (status == HG_OK) {
    for (uint32_t i = 0; i < count; i++) first[bits_in(p, i) + 1]++;
    for (uint32_t i = 1; i <= count; i++) first[i] += first[i - 1];
    for (uint32_t i = 0; i < count; i++) order[first[bits_in(p, i)]++] = i;
  }
  for (uint32_t i = 0; i < count && status == HG_OK; i++) {
    status = write_cluster(p, order[i], seen);
    if (status == HG_UNSUPPORTED) p->refused = order[i] + 1;
  }
  hg_release(allocator, seen);
  hg_release(allocator, order);
  return status;
}

/* ---- copies: what is put out twice, and inputs that are put out or updated ------------------------------------------ */

static hg_status add_copy(planner *p, uint32_t from, uint32_t to) {
  ops_step step;
  memset(&step, 0, sizeof step);
  HG_TRY(ops_write_copy(p->plan, from, to, &step));
  step.first_value = (uint32_t)p->plan->values.count;
  if (hg_array_append(&p->plan->allocator, &p->plan->steps, &step, 1) != NULL) return HG_OK;
  atlas_program_release(step.program);
  hg_release(&p->plan->allocator, step.scalars);
  return hg_fail_memory("a plan", sizeof step);
}

static int is_input(const planner *p, value_id value) { return node_at(p, value - 1)->kind == OPS_INPUT; }

/* Before all else, while inputs are what they were: those that are put out, and those that others will hold. */
static hg_status copy_inputs(planner *p) {
  const ops_output *outputs = p->c->outputs.data;
  const ops_input *inputs = p->c->inputs.data;
  for (uint32_t i = 0; i < p->c->outputs.count; i++)
    if (is_input(p, outputs[i].value)) HG_TRY(add_copy(p, p->storage_of[outputs[i].value - 1] - 1, p->first_output + i));
  for (uint32_t i = 0; i < p->c->inputs.count; i++) {
    if (inputs[i].update == 0 || !is_input(p, inputs[i].update) || inputs[i].update == inputs[i].value) continue;
    uint32_t own = p->storage_of[inputs[i].update - 1];
    p->storage_of[inputs[i].update - 1] = 0;
    hg_status status = give_storage(p, inputs[i].update - 1);
    p->kept[i] = p->storage_of[inputs[i].update - 1];
    p->storage_of[inputs[i].update - 1] = own;
    HG_TRY(status);
    HG_TRY(add_copy(p, own - 1, p->kept[i] - 1));
  }
  return HG_OK;
}

static hg_status copy_results(planner *p) {
  const ops_output *outputs = p->c->outputs.data;
  const ops_input *inputs = p->c->inputs.data;
  for (uint32_t i = 0; i < p->c->outputs.count; i++) {
    uint32_t lies = p->storage_of[outputs[i].value - 1] - 1;
    if (!is_input(p, outputs[i].value) && lies != p->first_output + i) HG_TRY(add_copy(p, lies, p->first_output + i));
  }
  for (uint32_t i = 0; i < p->c->inputs.count; i++) {
    if (inputs[i].update == 0 || inputs[i].update == inputs[i].value) continue;
    uint32_t lies = p->kept[i] != 0 ? p->kept[i] : p->storage_of[inputs[i].update - 1];
    uint32_t own = p->storage_of[inputs[i].value - 1];
    if (lies != own) HG_TRY(add_copy(p, lies - 1, own - 1));
  }
  return HG_OK;
}

/* ---- the workspace ------------------------------------------------------------------------------------------------- */

enum { ALIGNMENT = 256 };

static void note_use(ops_plan *plan) {
  ops_storage *storages = plan->storages.data;
  for (uint32_t i = 0; i < plan->storages.count; i++) storages[i].first_step = UINT32_MAX;
  const ops_step *steps = plan->steps.data;
  for (uint32_t s = 0; s < plan->steps.count; s++)
    for (uint32_t b = 0; b < steps[s].binding_count; b++) {
      ops_storage *storage = &storages[steps[s].bindings[b].storage];
      if (storage->first_step == UINT32_MAX) storage->first_step = s;
      storage->last_step = s;
    }
}

/* Each temporary lies at the lowest place that no other one takes while it is in use. */
static void lay_out(ops_plan *plan) {
  note_use(plan);
  ops_storage *storages = plan->storages.data;
  for (uint32_t i = 0; i < plan->storages.count; i++) {
    ops_storage *own = &storages[i];
    if (own->kind != OPS_TEMPORARY || own->first_step == UINT32_MAX) continue;
    uint64_t bytes = (uint64_t)own->extent * atlas_bytes((atlas_type)own->type), at = 0;
    for (int moved = 1; moved;) {
      moved = 0;
      for (uint32_t k = 0; k < i; k++) {
        const ops_storage *other = &storages[k];
        if (other->kind != OPS_TEMPORARY || other->first_step == UINT32_MAX) continue;
        if (other->last_step < own->first_step || own->last_step < other->first_step) continue;
        uint64_t end = other->first_byte + (uint64_t)other->extent * atlas_bytes((atlas_type)other->type);
        if (at + bytes <= other->first_byte || end <= at) continue;
        at = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        moved = 1;
      }
    }
    own->first_byte = at;
    if (at + bytes > plan->workspace_bytes) plan->workspace_bytes = at + bytes;
  }
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

static hg_status make_planner(planner *p) {
  const hg_allocator *allocator = &p->plan->allocator;
  uint64_t n = p->node_count + 1u;
  p->row_words = p->node_count / 64 + 1;
  p->live = hg_allocate(allocator, n, 1);
  p->is_inline = hg_allocate(allocator, n, 1);
  p->uses = hg_allocate(allocator, n, sizeof *p->uses);
  p->reads = hg_allocate(allocator, n, sizeof *p->reads);
  p->cluster_of = hg_allocate(allocator, n, sizeof *p->cluster_of);
  p->storage_of = hg_allocate(allocator, n, sizeof *p->storage_of);
  p->before = hg_allocate(allocator, n * p->row_words, sizeof *p->before);
  p->stamp = hg_allocate(allocator, 2 * n, sizeof *p->stamp);
  p->kept = hg_allocate(allocator, p->c->inputs.count, sizeof *p->kept);
  p->clusters.element_size = sizeof(cluster);
  if (p->live == NULL || p->is_inline == NULL || p->uses == NULL || p->reads == NULL || p->cluster_of == NULL ||
      p->storage_of == NULL || p->before == NULL || p->stamp == NULL || p->kept == NULL)
    return hg_fail_memory("a plan", n);
  return HG_OK;
}

static void drop_planner(planner *p) {
  const hg_allocator *allocator = &p->plan->allocator;
  hg_release(allocator, p->live);
  hg_release(allocator, p->is_inline);
  hg_release(allocator, p->uses);
  hg_release(allocator, p->reads);
  hg_release(allocator, p->cluster_of);
  hg_release(allocator, p->storage_of);
  hg_release(allocator, p->before);
  hg_release(allocator, p->stamp);
  hg_release(allocator, p->kept);
  hg_array_release(allocator, &p->clusters);
}

static hg_status plan_all(planner *p) {
  HG_TRY(make_planner(p));
  mark_live(p);
  choose_inline(p);
  HG_TRY(make_clusters(p));
  HG_TRY(give_storages(p));
  HG_TRY(copy_inputs(p));
  HG_TRY(write_steps(p));
  HG_TRY(copy_results(p));
  lay_out(p->plan);
  return HG_OK;
}

/* The nodes of a cluster that was refused, and what they read inline, are launches of their own from now on. 0 where it
 * was one node: nobody can compute it. */
static int take_apart(planner *p, uint32_t number) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->node_count; i++) count += p->cluster_of[i] == number + 1;
  int changes = count > 1;
  for (uint32_t i = p->node_count; i-- > 0;) {
    if (p->cluster_of[i] != number + 1 && !p->alone[i]) continue;
    p->alone[i] = 1;
    for (uint32_t j = 0; j < node_at(p, i)->input_count; j++) {
      uint32_t input = node_at(p, i)->input[j] - 1;
      if (p->cluster_of[input] != NONE || is_input(p, input + 1) || p->alone[input]) continue;
      p->alone[input] = 1;
      changes |= !is_virtual(node_at(p, input));
    }
  }
  return changes;
}

hg_status ops_plan_computation(const hg_allocator *allocator, const hg_computation *computation, uint32_t flags,
                               ops_plan *plan) {
  uint32_t node_count = (uint32_t)computation->nodes.count;
  uint8_t *alone = hg_allocate(allocator, node_count + 1u, 1);
  if (alone == NULL) return hg_fail_memory("a plan", node_count);
  for (;;) {
    memset(plan, 0, sizeof *plan);
    plan->allocator = *allocator;
    plan->storages.element_size = sizeof(ops_storage);
    plan->steps.element_size = sizeof(ops_step);
    plan->values.element_size = sizeof(value_id);
    planner p;
    memset(&p, 0, sizeof p);
    p.c = computation, p.plan = plan, p.flags = flags, p.node_count = node_count, p.alone = alone;
    hg_status status = plan_all(&p);
    int again = status == HG_UNSUPPORTED && p.refused != 0 && take_apart(&p, p.refused - 1);
    drop_planner(&p);
    if (status != HG_OK) ops_plan_release(plan);
    if (again) continue;
    hg_release(allocator, alone);
    return status;
  }
}

void ops_plan_release(ops_plan *plan) {
  ops_step *steps = plan->steps.data;
  for (uint32_t i = 0; i < plan->steps.count; i++) {
    atlas_program_release(steps[i].program);
    hg_release(&plan->allocator, steps[i].scalars);
  }
  hg_array_release(&plan->allocator, &plan->storages);
  hg_array_release(&plan->allocator, &plan->steps);
  hg_array_release(&plan->allocator, &plan->values);
}
