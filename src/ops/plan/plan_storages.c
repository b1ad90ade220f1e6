/* plan_storages.c - where values lie: inputs and outputs in their tensors, updates over their inputs where that is
 * safe, the rest in a workspace. See plan.c. */
#include "ops/plan/planner.h"

#include "atlas/tables.h"
#include "ops/graph/infer.h"

/* ---- storages ---------------------------------------------------------------------------------------------------- */

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

hg_status hg_plan_give_storage(planner *p, uint32_t index) {
  if (p->storage_of[index] != 0) return HG_OK;
  const ops_node *node = node_at(p, index);
  uint32_t number;
  HG_TRY(ops_add_temporary_of(p->plan, node->type, &node->shape, &number));
  p->storage_of[index] = number + 1;
  return HG_OK;
}

/* Inputs lie where they are; a value that is put out is written to the first output that it is. */
static hg_status give_tensors(planner *p) {
  const ops_input *inputs = p->c->inputs.data;
  const ops_output *outputs = p->c->outputs.data;
  uint32_t number;
  for (uint32_t i = 0; i < p->c->inputs.count; i++) {
    HG_TRY(ops_add_storage(p->plan, of_tensor(&inputs[i].like, 0, i), &number));
    p->storage_of[inputs[i].value - 1] = number + 1;
  }
  p->first_output = (uint32_t)p->plan->storages.count;
  for (uint32_t i = 0; i < p->c->outputs.count; i++) {
    HG_TRY(ops_add_storage(p->plan, of_tensor(&outputs[i].like, 1, i), &number));
    uint32_t index = outputs[i].value - 1;
    if (p->storage_of[index] == 0) p->storage_of[index] = number + 1;
  }
  return HG_OK;
}

/* ---- updates in place -------------------------------------------------------------------------------------------- */

/* Who reads an input, from which an update is computed. */
typedef struct tracing {
  uint32_t own;       /* 1 + the update's cluster */
  uint8_t is_possible;
  reading others;     /* clusters that read it */
} tracing;

/* Of a way from an input: not element by element; by a value of the update's cluster, which others read where it is
 * stored. */
enum { ELSEWHERE = 1, COMPUTED = 2 };

/* What reads a value through inline nodes and those of the update's cluster. */
static void trace(planner *p, tracing *t, uint32_t index, uint32_t way) {
  for (uint32_t u = p->first_user[index]; u < p->first_user[index + 1] && t->is_possible; u++) {
    uint32_t user = p->users[u], in = p->cluster_of[user];
    uint32_t on = way | (node_at(p, user)->kind == OPS_POINTWISE ? 0 : ELSEWHERE) | (in == t->own ? COMPUTED : 0);
    uint32_t *stamp = &p->stamp[(size_t)on * p->node_count + user];
    if (*stamp == p->epoch) continue;
    *stamp = p->epoch;
    if (in == NONE || in == t->own) {
      if (in == t->own && (on & ELSEWHERE) != 0) t->is_possible = 0;
      else trace(p, t, user, on);
    } else if ((on & COMPUTED) == 0) {
      t->is_possible = !is_before(p, t->own - 1, in - 1);
      if (!hg_array_push(&p->plan->allocator, &t->others.numbers, in - 1))
        t->others.status = hg_fail_memory("a plan", sizeof in);
    }
  }
}

/* An update may be written over its input if its launch goes element by element, or does so with what it has computed,
 * and all others that read the input are before it, or can be made to be. */
static hg_status try_in_place(planner *p, const ops_input *input) {
  uint32_t index = input->update - 1, number = p->cluster_of[index] - 1;
  if (p->cluster_of[index] == NONE || p->storage_of[index] != 0) return HG_OK;
  if (((const cluster *)p->clusters.data)[number].kind == ALONE) return HG_OK;
  tracing t = {.own = number + 1, .is_possible = 1, .others = {.numbers = {.element_size = sizeof(uint32_t)}}};
  p->epoch++;
  trace(p, &t, input->value - 1, 0);
  if (t.is_possible && t.others.status == HG_OK) {
    hg_plan_wait_for(p, number, &t.others);
    p->storage_of[index] = p->storage_of[input->value - 1];
  }
  hg_array_release(&p->plan->allocator, &t.others.numbers);
  return t.others.status;
}

/* What a cluster (1 + its number) reads of another one lies in a storage; inline nodes are looked through. */
static hg_status give_read(planner *p, value_id value, uint32_t reader) {
  uint32_t i = value - 1;
  if (p->stamp[i] == p->epoch) return HG_OK;
  p->stamp[i] = p->epoch;
  if (node_at(p, i)->kind == OPS_INPUT) return HG_OK;
  if (p->cluster_of[i] != NONE) return p->cluster_of[i] == reader ? HG_OK : hg_plan_give_storage(p, i);
  for (uint32_t j = 0; j < node_at(p, i)->input_count; j++) HG_TRY(give_read(p, node_at(p, i)->input[j], reader));
  return HG_OK;
}

hg_status hg_plan_storages(planner *p) {
  HG_TRY(give_tensors(p));
  const ops_input *inputs = p->c->inputs.data;
  for (uint32_t i = 0; i < p->c->inputs.count; i++)
    if (inputs[i].update != 0) HG_TRY(try_in_place(p, &inputs[i]));
  for (uint32_t i = 0; i < p->c->inputs.count; i++)
    if (inputs[i].update != 0) HG_TRY(hg_plan_give_storage(p, inputs[i].update - 1));
  HG_TRY(hg_plan_place_boxes(p));
  for (uint32_t i = 0; i < p->node_count; i++)
    if ((p->ends[i] & CHECKS) != 0) HG_TRY(hg_plan_give_storage(p, i));
  for (uint32_t i = 0; i < p->node_count; i++) {
    if (p->cluster_of[i] == NONE) continue;
    p->epoch++;
    for (uint32_t j = 0; j < node_at(p, i)->input_count; j++)
      HG_TRY(give_read(p, node_at(p, i)->input[j], p->cluster_of[i]));
  }
  return HG_OK;
}

/* ---- sorting ----------------------------------------------------------------------------------------------------- */

void hg_plan_sort(const uint32_t *keys, uint32_t count, uint32_t key_count, plan_listing *out) {
  uint32_t *first = out->first;
  for (uint32_t i = 0; i < count; i++) first[keys[i] + 1]++;
  for (uint32_t k = 0; k < key_count; k++) first[k + 1] += first[k];
  for (uint32_t i = 0; i < count; i++) out->sorted[first[keys[i]]++] = i;
  for (uint32_t k = key_count; k > 0; k--) first[k] = first[k - 1];
  first[0] = 0;
}

/* ---- the workspace ----------------------------------------------------------------------------------------------- */

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

static uint64_t bytes_of(const ops_storage *storage) {
  return (uint64_t)storage->extent * atlas_bytes((atlas_type)storage->type);
}

/* The lowest place that none of those in use takes, which are in order of their places; it becomes one of them. */
static void place(ops_storage *storages, uint32_t number, uint32_t *used, uint32_t used_count) {
  ops_storage *own = &storages[number];
  uint64_t bytes = bytes_of(own), at = 0;
  uint32_t k = 0;
  for (; k < used_count && at + bytes > storages[used[k]].first_byte; k++) {
    uint64_t end = storages[used[k]].first_byte + bytes_of(&storages[used[k]]);
    if (end > at) at = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  }
  memmove(&used[k + 1], &used[k], (used_count - k) * sizeof *used);
  used[k] = number;
  own->first_byte = at;
}

static void place_all(ops_plan *plan, uint32_t *keys, uint32_t *used, plan_listing *by_step) {
  ops_storage *storages = plan->storages.data;
  uint32_t count = (uint32_t)plan->storages.count, steps = (uint32_t)plan->steps.count, used_count = 0;
  for (uint32_t i = 0; i < count; i++) {
    int is_needed = storages[i].kind == OPS_TEMPORARY && storages[i].first_step != UINT32_MAX;
    keys[i] = is_needed ? storages[i].first_step : steps;
  }
  hg_plan_sort(keys, count, steps + 1, by_step);
  for (uint32_t i = 0; i < by_step->first[steps]; i++) {
    uint32_t number = by_step->sorted[i], still = 0;
    for (uint32_t k = 0; k < used_count; k++)
      if (storages[used[k]].last_step >= storages[number].first_step) used[still++] = used[k];
    place(storages, number, used, still);
    used_count = still + 1;
    uint64_t end = storages[number].first_byte + bytes_of(&storages[number]);
    if (end > plan->workspace_bytes) plan->workspace_bytes = end;
  }
}

hg_status hg_plan_workspace(ops_plan *plan) {
  uint64_t count = plan->storages.count;
  uint32_t *keys = hg_allocate(&plan->allocator, 3 * count + plan->steps.count + 2, sizeof *keys);
  if (keys == NULL) return hg_fail_memory("a plan", count);
  plan_listing by_step = {.sorted = keys + 2 * count, .first = keys + 3 * count};
  note_use(plan);
  place_all(plan, keys, keys + count, &by_step);
  hg_release(&plan->allocator, keys);
  return HG_OK;
}
