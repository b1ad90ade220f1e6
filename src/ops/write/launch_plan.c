/* launch_plan.c - storages and steps of a plan: adding them, finding equal ones, releasing them. */
#include "ops/write/launch_plan.h"

#include "atlas/program.h"
#include "ops/graph/infer.h"

#include <string.h>

/* For a tensor that has been measured before, or a temporary. */
static void measure(ops_storage *s) {
  uint64_t extent = 0;
  (void)ops_measure(s->shape.rank, s->shape.size, s->stride, &s->lowest, &extent);
  s->extent = (int64_t)extent;
}

hg_status ops_add_storage(ops_plan *plan, ops_storage storage, uint32_t *number) {
  measure(&storage);
  *number = (uint32_t)plan->storages.count;
  if (hg_array_append(&plan->allocator, &plan->storages, &storage, 1) == NULL)
    return hg_fail_memory("a plan", sizeof storage);
  return HG_OK;
}

hg_status ops_add_temporary_of(ops_plan *plan, uint8_t type, const ops_shape *shape, uint32_t *number) {
  ops_storage storage;
  memset(&storage, 0, sizeof storage);
  storage.kind = OPS_TEMPORARY;
  storage.type = type;
  storage.shape = *shape;
  int64_t stride = 1;
  for (uint32_t d = shape->rank; d-- > 0; stride *= (int64_t)shape->size[d]) storage.stride[d] = stride;
  return ops_add_storage(plan, storage, number);
}

hg_status ops_add_temporary(ops_plan *plan, uint8_t type, uint64_t count, uint32_t *storage) {
  return ops_add_temporary_of(plan, type, &(ops_shape){.rank = 1, .size = {count}}, storage);
}

/* A plan has at least as many storages as launches, and every launch calls this: only new ones are examined. */
const ops_plan *ops_look_at_storages(ops_plan *plan) {
  const ops_storage *storages = plan->storages.data;
  for (; plan->looked_at < plan->storages.count; plan->looked_at++) {
    const ops_storage *storage = &storages[plan->looked_at];
    plan->has_large |= storage->extent >= INT64_C(1) << 31;
    for (uint32_t d = 0; d < storage->shape.rank; d++) plan->has_negative |= storage->stride[d] < 0;
  }
  return plan;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

ops_step *ops_new_step(ops_plan *plan) {
  ops_step *step = hg_array_append(&plan->allocator, &plan->made, NULL, 1);
  if (step == NULL) (void)hg_fail_memory("the launches of a plan", plan->made.count);
  return step;
}

void ops_drop_steps(ops_plan *plan, size_t first) {
  while (plan->made.count > first) ops_step_release(plan, (ops_step *)plan->made.data + --plan->made.count);
}

static uint32_t first_place(const hg_array *programs, uint64_t digest) {
  return (uint32_t)(digest ^ digest >> 32) & ((uint32_t)programs->count - 1);
}

uint32_t ops_step_of_same(const ops_plan *plan, const atlas_program *program) {
  const ops_step *steps = plan->steps.data;
  const uint32_t *places = plan->programs.data;
  uint32_t mask = (uint32_t)plan->programs.count - 1;
  if (places == NULL) return UINT32_MAX;
  uint64_t digest = atlas_program_digest(program);
  for (uint32_t at = first_place(&plan->programs, digest); places[at] != 0; at = (at + 1) & mask) {
    const atlas_program *other = steps[places[at] - 1].program;
    if (atlas_program_digest(other) == digest && atlas_program_same(other, program)) return places[at] - 1;
  }
  return UINT32_MAX;
}

static void put_step(ops_plan *plan, uint32_t number) {
  uint32_t *places = plan->programs.data, mask = (uint32_t)plan->programs.count - 1;
  const ops_step *step = (const ops_step *)plan->steps.data + number;
  if (step->program == NULL || step->same != 0) return;
  uint32_t at = first_place(&plan->programs, atlas_program_digest(step->program));
  while (places[at] != 0) at = (at + 1) & mask;
  places[at] = number + 1;
}

/* The table has twice as many entries as there are steps. */
static int grow_programs(ops_plan *plan) {
  uint64_t count = plan->programs.count == 0 ? 32 : 2 * (uint64_t)plan->programs.count;
  hg_array larger = {.element_size = sizeof(uint32_t)};
  if (hg_array_append(&plan->allocator, &larger, NULL, count) == NULL) return 0;
  hg_array_release(&plan->allocator, &plan->programs);
  plan->programs = larger;
  for (uint32_t i = 0; i < plan->steps.count; i++) put_step(plan, i);
  return 1;
}

hg_status ops_add_step(ops_plan *plan, const ops_step *step) {
  if ((2 * (plan->steps.count + 1) > plan->programs.count && !grow_programs(plan)) ||
      hg_array_append(&plan->allocator, &plan->steps, step, 1) == NULL)
    return hg_fail_memory("a plan", sizeof *step);
  put_step(plan, (uint32_t)plan->steps.count - 1);
  return HG_OK;
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void ops_plan_release(ops_plan *plan) {
  ops_step *steps = plan->steps.data;
  for (uint32_t i = 0; i < plan->steps.count; i++) ops_step_release(plan, &steps[i]);
  hg_array_release(&plan->allocator, &plan->storages);
  hg_array_release(&plan->allocator, &plan->steps);
  hg_array_release(&plan->allocator, &plan->values);
  hg_array_release(&plan->allocator, &plan->programs);
}
