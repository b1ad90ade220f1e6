/* plan_storages.c - where values lie: inputs and outputs in their tensors, updates over their inputs where that is
 * safe, the rest in a workspace. See plan.c. */
#include "ops/planner.h"

#include "atlas/tables.h"

/* ---- storages ---------------------------------------------------------------------------------------------------- */

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

hg_status hg_plan_give_storage(planner *p, uint32_t index) {
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

/* ---- updates in place -------------------------------------------------------------------------------------------- */

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
  if (value == input || p->stamp[i] == p->epoch || (p->cluster_of[i] != NONE && p->cluster_of[i] != number + 1))
    return 0;
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
    hg_plan_wait_for(p, number, &readers);
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
  for (uint32_t i = 0; i < p->node_count; i++) {
    if (p->cluster_of[i] == NONE) continue;
    p->epoch++;
    for (uint32_t j = 0; j < node_at(p, i)->input_count; j++)
      HG_TRY(give_read(p, node_at(p, i)->input[j], p->cluster_of[i]));
  }
  return HG_OK;
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

/* Each temporary lies at the lowest place that no other one takes while it is in use. */
void hg_plan_workspace(ops_plan *plan) {
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
