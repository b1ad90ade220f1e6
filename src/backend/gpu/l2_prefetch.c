/* l2_prefetch.c - prefetches what a later block will load into the cache that all multiprocessors share.
 *
 * A block that holds a row in its registers loads, exchanges and stores one after the other, and few such blocks fit on
 * a multiprocessor, so memory is idle at times. So the first lane of each block, behind its loads, prefetches what the
 * same loads of a later block read, in the order in which the device begins its blocks. Figures: GPU_PREFETCH_BYTES,
 * tuning.def.
 *
 * This is done for loads outside of loops whose index grows by a constant amount from block to block and whose elements
 * lie close together in each block, and only in blocks that store about as much as they load. Blocks that only read
 * never wait that long: sums of rows took 263 us instead of 238 with prefetches. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

/* The bytes between the first and the last that a block loads with the run; 0: unknown, or they do not lie together. */
static uint32_t range_of(const gpu_plan *g, const gpu_access_group *group, const gpu_access_run *run, uint32_t index) {
  uint64_t lanes[] = {g->program->block[0] / g->info.sub_blocks, g->program->block[1]};
  uint64_t least = gpu_insn(g, group->value[run->first])->bits,
           most = gpu_insn(g, group->value[run->first + run->count - 1])->bits, range = most - least + 1;
  for (hg_axis along = HG_ALONG_X; along <= HG_ALONG_Y; along++) {
    hg_slope slope = g->slope[along][index];
    if (slope.certainty < HG_LIKELY || (slope.factor > 0 && slope.by != SSA_NONE)) return 0;
    range += slope.factor * (lanes[along - HG_ALONG_X] - 1);
  }
  int is_close = range <= 2 * lanes[0] * lanes[1] * run->count && range * run->element_bytes <= GPU_PREFETCH_BYTES;
  return is_close ? (uint32_t)range * run->element_bytes : 0;
}

/* Fills in the bytes of a run and the growth of its index from block to block. */
static void find_range(const gpu_plan *g, const gpu_access_group *group, gpu_access_run *run) {
  uint32_t first = group->value[run->first], index = gpu_arg(g, first, 0);
  const ssa_insn *insn = gpu_insn(g, first);
  if (run->is_shared || !run->is_read_only || insn->symbol & SSA_LIBRARY || g->in_loop[insn->block]) return;
  hg_slope slope = g->slope[HG_ALONG_BLOCKS][index];
  if (slope.certainty < HG_LIKELY || slope.factor == 0) return;
  run->prefetch_bytes = range_of(g, group, run, index);
  run->prefetch_by = slope.factor;
  run->prefetch_scalar = slope.by;
}

/* Counts elements: loads if they are prefetched, and stores. */
static void count(const gpu_access_group *group, uint32_t *loads, uint32_t *stores) {
  for (uint32_t r = 0; r < group->run_count; r++) {
    const gpu_access_run *run = &group->run[r];
    if (group->is_store && !run->is_shared) *stores += run->count;
    else if (run->prefetch_bytes > 0) *loads += run->count;
  }
}

void hg_gpu_plan_l2_prefetch(gpu_plan *g) {
  uint64_t bytes = 0;
  uint32_t loads = 0, stores = 0;
  if (!g->target.can_prefetch_l2 || g->variant.flags != 0 || !g->program->observes_block || g->program->block[2] != 1)
    return;
  for (uint32_t k = 0; k < g->groups_outside; k++) {
    gpu_access_group *group = (gpu_access_group *)g->group.data + k;
    for (uint32_t r = 0; r < group->run_count && !group->is_store; r++) {
      find_range(g, group, &group->run[r]);
      bytes += (uint64_t)group->run[r].prefetch_bytes * g->info.sub_blocks;
    }
    count(group, &loads, &stores);
  }
  uint64_t blocks = bytes >= GPU_PREFETCH_LEAST_BYTES && 2 * stores >= loads ? GPU_PREFETCH_BYTES / bytes : 0;
  for (uint32_t k = 0; k < g->groups_outside; k++)
    for (uint32_t r = 0; r < gpu_group_at(g, k)->run_count; r++) {
      gpu_access_run *run = &((gpu_access_group *)g->group.data + k)->run[r];
      if (blocks == 0) run->prefetch_bytes = 0;
      run->prefetch_by *= blocks;
    }
}
