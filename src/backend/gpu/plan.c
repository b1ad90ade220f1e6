/* plan.c - what follows from the blocks of a program and from a few numbers of the plan; releasing a plan. */
#include "backend/gpu/plan_passes.h"

enum { LANES_KERNEL_THREADS = 256 }; /* the block size of linear launches; vector-only kernels have smaller blocks:
                                        vectors.c */

uint32_t hg_gpu_most_threads(const atlas_program *program, const hg_gpu_variant *variant) {
  if (variant->flags & HG_GPU_LUT) return HG_GPU_LUT_THREADS;
  if (!program->observes_block) return LANES_KERNEL_THREADS;
  uint64_t product = (uint64_t)program->block[0] * program->block[1] * program->block[2];
  if (product == 0) product = variant->threads;
  return product == 0 || product > ATLAS_MAX_BLOCK_LANES ? ATLAS_MAX_BLOCK_LANES : (uint32_t)product;
}

void hg_gpu_set_tile(hg_gpu_info *info) {
  info->threads = info->observes_block ? 0 : info->max_threads;
  while (1u << info->tile_shift < info->threads * info->lanes_per_thread) info->tile_shift++;
}

void hg_gpu_set_dynamic(hg_gpu_info *info, uint32_t declared_shared) {
  info->dynamic_bytes = info->is_lut                          ? (uint32_t)HG_GPU_LUT_BYTES
                        : info->shared_bytes > declared_shared ? info->shared_bytes
                                                                : 0;
}

void hg_gpu_plan_release(gpu_plan *plan) {
  hg_analysis_release(plan->unit, &plan->analysis);
  ir_ssa_order_release(plan->unit, &plan->order);
  hg_release(plan->allocator, plan->numbers);
  hg_release(plan->allocator, plan->slope[0]);
  hg_release(plan->allocator, plan->vector);
  hg_array_release(plan->allocator, &plan->group);
  hg_array_release(plan->allocator, &plan->exchange);
  hg_array_release(plan->allocator, &plan->hoisted);
  hg_array_release(plan->allocator, &plan->unrolled);
  hg_array_release(plan->allocator, &plan->proven);
  hg_array_release(plan->allocator, &plan->kernel);
  for (int i = 0; i < GPU_VERSION_COUNT; i++) {
    hg_array_release(plan->allocator, &plan->version[i].steps);
    hg_release(plan->allocator, plan->version[i].first);
  }
}
