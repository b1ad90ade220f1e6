/* step_list.c - appends to a list of steps. */
#include "backend/gpu/plan_passes.h"

hg_status hg_gpu_add_step(const gpu_plan *g, hg_array *steps, gpu_step step) {
  return hg_array_append(g->allocator, steps, &step, 1) != NULL ? HG_OK
                                                                : hg_fail_memory("the plan of a kernel", steps->count);
}

hg_status hg_gpu_add_steps(const gpu_plan *g, hg_array *steps, uint32_t value, const uint8_t *ops, size_t count) {
  for (size_t i = 0; i < count; i++)
    HG_TRY(hg_gpu_add_step(g, steps, (gpu_step){.op = ops[i], .value = value, .number = value}));
  return HG_OK;
}
