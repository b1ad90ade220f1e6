/* plan_storages.c - where values lie: inputs and outputs in their tensors, updates over their inputs where that is
 * safe, all others in a workspace. See plan.c. */
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

/* Inputs lie in their tensors; a value that is an output is written to the first of its tensors. */
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

/* What is on the path from an input to a node: a step that is not element by element; a value that the update's cluster
 * computes and that others read from its storage. */
enum { ELSEWHERE = 1, COMPUTED = 2 };

/* Finds what reads an input through inline nodes and through nodes of the update's cluster (1 + its number); `others`:
 * other clusters that do. *is_possible 0: the input cannot be updated in place. */
static hg_status trace(planner *p, uint32_t input, uint32_t own, reading *others, int *is_possible) {
  uint32_t at = input;
  hg_walk_begin(p);
  do {
    uint32_t way = at / p->node_count, index = at % p->node_count;
    for (uint32_t u = p->first_user[index]; u < p->first_user[index + 1] && *is_possible; u++) {
      uint32_t user = p->users[u], in = p->cluster_of[user];
      uint32_t on = way | (node_at(p, user)->kind == OPS_POINTWISE ? 0 : ELSEWHERE) | (in == own ? COMPUTED : 0);
      uint32_t *stamp = &p->stamp[(size_t)on * p->node_count + user];
      if (*stamp == p->epoch) continue;
      if (in == own && (on & ELSEWHERE) != 0) *is_possible = 0;
      if (in == NONE || in == own) {
        HG_TRY(hg_walk_push(p, on * p->node_count + user));
        continue;
      }
      *stamp = p->epoch;
      if ((on & COMPUTED) != 0) continue;
      *is_possible = !is_before(p, own - 1, in - 1);
      if (!hg_array_push(&p->plan->allocator, &others->numbers, in - 1)) return hg_fail_memory("a plan", sizeof in);
    }
  } while (*is_possible && hg_walk_next(p, &at));
  return HG_OK;
}

/* An update may be written over its input if its launch goes element by element, or reads by element what it has
 * computed, and all other readers of the input run before it or can be made to. */
static hg_status try_in_place(planner *p, const ops_input *input) {
  uint32_t index = input->update - 1, number = p->cluster_of[index] - 1;
  if (p->cluster_of[index] == NONE || p->storage_of[index] != 0) return HG_OK;
  if (cluster_at(p, number)->kind == ALONE) return HG_OK;
  int is_possible = 1;
  reading others = {.numbers = {.element_size = sizeof(uint32_t)}};
  hg_status status = trace(p, input->value - 1, number + 1, &others, &is_possible);
  if (status == HG_OK && is_possible) {
    status = hg_plan_wait_for(p, number, &others);
    p->storage_of[index] = p->storage_of[input->value - 1];
  }
  hg_array_release(&p->plan->allocator, &others.numbers);
  return status;
}

/* What a node reads from other clusters lies in a storage, unless it computes that again; inline nodes are looked
 * through. */
static hg_status give_read(planner *p, uint32_t index) {
  uint32_t i, own = p->cluster_of[index];
  int may_compute = cluster_at(p, own - 1)->kind == MAP || cluster_at(p, own - 1)->kind == ROWS;
  hg_walk_begin(p);
  HG_TRY(hg_walk_into(p, index));
  while (hg_walk_next(p, &i)) {
    uint32_t in = p->cluster_of[i];
    int is_anew = may_compute && p->is_inline[i] == PLAN_ANEW && p->storage_of[i] == 0;
    if (in == NONE || (in != own && is_anew)) HG_TRY(hg_walk_into(p, i));
    else if (in != own) HG_TRY(hg_plan_give_storage(p, i));
  }
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
  HG_TRY(hg_plan_choose_anew(p));
  for (uint32_t i = 0; i < p->node_count; i++)
    if (p->cluster_of[i] != NONE) HG_TRY(give_read(p, i));
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

/* Free memory between storages, or behind the last one. */
typedef struct gap {
  uint64_t first, end;
} gap;

/* Storages in the order in which their use begins and in which it ends. */
typedef struct workspace {
  ops_storage *storages;
  plan_listing begin, end; /* by step; storages that need no memory are listed for the step behind the last */
  hg_array gaps;           /* ascending */
  uint32_t still_used;     /* index in end.sorted of the first storage that still has its memory */
} workspace;

/* The bytes that it occupies in the workspace. */
static uint64_t room_of(const ops_storage *storage) {
  return (bytes_of(storage) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* The first gap that ends at an offset or behind it. */
static size_t gap_before(const workspace *w, uint64_t place) {
  const gap *gaps = w->gaps.data;
  size_t first = 0, count = w->gaps.count;
  while (count > 0) {
    size_t half = count / 2;
    if (gaps[first + half].end < place) first += half + 1, count -= half + 1;
    else count = half;
  }
  return first;
}

/* Frees a storage's memory: it becomes a gap, or extends the gaps beside it. */
static hg_status give_back(const hg_allocator *allocator, workspace *w, const ops_storage *storage) {
  gap own = {storage->first_byte, storage->first_byte + room_of(storage)};
  if (own.first == own.end) return HG_OK;
  if (hg_array_append(allocator, &w->gaps, NULL, 1) == NULL) return hg_fail_memory("a plan", sizeof own);
  gap *gaps = w->gaps.data;
  size_t last = --w->gaps.count, first = gap_before(w, own.first), end = first; /* there is room for one more gap */
  while (end < last && gaps[end].first <= own.end) {
    if (gaps[end].first < own.first) own.first = gaps[end].first;
    if (gaps[end].end > own.end) own.end = gaps[end].end;
    end++;
  }
  memmove(&gaps[first + 1], &gaps[end], (last - end) * sizeof *gaps);
  gaps[first] = own;
  w->gaps.count = last + 1 - (end - first);
  return HG_OK;
}

/* Places a storage in the lowest gap that is large enough. */
static void place(workspace *w, ops_storage *storage) {
  gap *gaps = w->gaps.data;
  uint64_t room = room_of(storage);
  size_t k = 0;
  storage->first_byte = 0;
  if (room == 0) return;
  while (gaps[k].end - gaps[k].first < room) k++; /* the last gap has no end */
  storage->first_byte = gaps[k].first;
  gaps[k].first += room;
  if (gaps[k].first < gaps[k].end) return;
  memmove(&gaps[k], &gaps[k + 1], (w->gaps.count - k - 1) * sizeof *gaps);
  w->gaps.count--;
}

static hg_status place_all(ops_plan *plan, workspace *w) {
  uint32_t steps = (uint32_t)plan->steps.count;
  for (uint32_t i = 0; i < w->begin.first[steps]; i++) {
    ops_storage *storage = &w->storages[w->begin.sorted[i]];
    for (; w->still_used < w->end.first[storage->first_step]; w->still_used++)
      HG_TRY(give_back(&plan->allocator, w, &w->storages[w->end.sorted[w->still_used]]));
    place(w, storage);
    uint64_t end = storage->first_byte + bytes_of(storage);
    if (end > plan->workspace_bytes) plan->workspace_bytes = end;
  }
  return HG_OK;
}

static int needs_place(const ops_storage *storage) {
  return storage->kind == OPS_TEMPORARY && storage->first_step != UINT32_MAX;
}

hg_status hg_plan_workspace(ops_plan *plan) {
  uint32_t count = (uint32_t)plan->storages.count, steps = (uint32_t)plan->steps.count;
  workspace w = {.storages = plan->storages.data, .gaps = {.element_size = sizeof(gap)}};
  uint32_t *keys = hg_allocate(&plan->allocator, 3 * (uint64_t)count + 2 * (steps + UINT64_C(2)), sizeof *keys);
  hg_status status = keys != NULL && hg_array_append(&plan->allocator, &w.gaps, &(gap){0, UINT64_MAX}, 1) != NULL
                         ? HG_OK
                         : hg_fail_memory("a plan", count);
  if (status == HG_OK) {
    w.begin = (plan_listing){.sorted = keys + count, .first = keys + 3 * (uint64_t)count};
    w.end = (plan_listing){.sorted = keys + 2 * (uint64_t)count, .first = w.begin.first + steps + 2};
    note_use(plan);
    for (uint32_t i = 0; i < count; i++) keys[i] = needs_place(&w.storages[i]) ? w.storages[i].first_step : steps;
    hg_plan_sort(keys, count, steps + 1, &w.begin);
    for (uint32_t i = 0; i < count; i++) keys[i] = needs_place(&w.storages[i]) ? w.storages[i].last_step : steps;
    hg_plan_sort(keys, count, steps + 1, &w.end);
    status = place_all(plan, &w);
  }
  hg_array_release(&plan->allocator, &w.gaps);
  hg_release(&plan->allocator, keys);
  return status;
}
