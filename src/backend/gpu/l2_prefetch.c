/* l2_prefetch.c - what a block that is still to come will load is asked for, to come to the cache of all
 * multiprocessors.
 *
 * A block that holds a row in its registers loads, exchanges and stores, one after the other, and few such blocks have
 * room in a multiprocessor: at times memory has nothing to do. So the first lane of each block, behind its loads, asks
 * for what a later block's loads at the same place get; the order in which a device begins its blocks is theirs.
 * Figures: GPU_PREFETCH_BYTES, tuning.def.
 *
 * It is for loads outside of loops whose index grows by the same from block to block, and whose elements lie close
 * together in each, in blocks that store about as much: those that only read never wait for so long, and sums of rows
 * took 263 us instead of 238. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

/* The bytes from the first to the last that a block loads by the run; 0: not known, or they do not lie together. */
static uint32_t range_of(const gpu_plan *g, const gpu_group *group, const gpu_run *run, uint32_t index) {
  uint64_t lanes[] = {g->program->block[0] / g->info.parts, g->program->block[1]};
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

/* Fills in the bytes of a run, and what its index is greater by in the next block. */
static void find_range(const gpu_plan *g, const gpu_group *group, gpu_run *run) {
  uint32_t first = group->value[run->first], index = gpu_arg(g, first, 0);
  const ssa_insn *insn = gpu_insn(g, first);
  if (run->is_shared || !run->is_read_only || insn->symbol & SSA_LIBRARY || g->in_loop[insn->block]) return;
  hg_slope slope = g->slope[HG_ALONG_BLOCKS][index];
  if (slope.certainty < HG_LIKELY || slope.factor == 0) return;
  run->prefetch_bytes = range_of(g, group, run, index);
  run->prefetch_by = slope.factor;
  run->prefetch_scalar = slope.by;
}

/* Where a run of loads is asked for ahead, its elements are loads; of stores, stores. */
static void count(const gpu_group *group, uint32_t *loads, uint32_t *stores) {
  for (uint32_t r = 0; r < group->run_count; r++) {
    const gpu_run *run = &group->run[r];
    if (group->is_store && !run->is_shared) *stores += run->count;
    else if (run->prefetch_bytes > 0) *loads += run->count;
  }
}

void hg_gpu_plan_l2_prefetch(gpu_plan *g) {
  uint64_t bytes = 0;
  uint32_t loads = 0, stores = 0;
  if (!g->target.can_prefetch_l2 || g->form.flags != 0 || !g->program->observes_block || g->program->block[2] != 1)
    return;
  for (uint32_t k = 0; k < g->groups_outside; k++) {
    gpu_group *group = (gpu_group *)g->group.data + k;
    for (uint32_t r = 0; r < group->run_count && !group->is_store; r++) {
      find_range(g, group, &group->run[r]);
      bytes += (uint64_t)group->run[r].prefetch_bytes * g->info.parts;
    }
    count(group, &loads, &stores);
  }
  uint64_t blocks = bytes >= GPU_PREFETCH_LEAST_BYTES && 2 * stores >= loads ? GPU_PREFETCH_BYTES / bytes : 0;
  for (uint32_t k = 0; k < g->groups_outside; k++)
    for (uint32_t r = 0; r < gpu_group_at(g, k)->run_count; r++) {
      gpu_run *run = &((gpu_group *)g->group.data + k)->run[r];
      if (blocks == 0) run->prefetch_bytes = 0;
      run->prefetch_by *= blocks;
    }
}
