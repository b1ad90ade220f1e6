/* launch_plan.c - storages of a plan: adding one, what all of them are like, and the end of them. */
#include "ops/write/launch_plan.h"

#include "ops/graph/infer.h"

#include <string.h>

/* Of a tensor that was measured before, or of a temporary. */
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

/* A plan has as many storages as launches, or more, and every launch asks: those that are new are looked at. */
const ops_plan *ops_look_at_storages(ops_plan *plan) {
  const ops_storage *storages = plan->storages.data;
  for (; plan->looked_at < plan->storages.count; plan->looked_at++) {
    const ops_storage *storage = &storages[plan->looked_at];
    plan->has_large |= storage->extent >= INT64_C(1) << 31;
    for (uint32_t d = 0; d < storage->shape.rank; d++) plan->has_negative |= storage->stride[d] < 0;
  }
  return plan;
}

void ops_plan_release(ops_plan *plan) {
  ops_step *steps = plan->steps.data;
  for (uint32_t i = 0; i < plan->steps.count; i++) ops_step_release(&plan->allocator, &steps[i]);
  hg_array_release(&plan->allocator, &plan->storages);
  hg_array_release(&plan->allocator, &plan->steps);
  hg_array_release(&plan->allocator, &plan->values);
}
