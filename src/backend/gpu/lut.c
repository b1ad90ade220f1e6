/* lut.c - the table variant of a program that maps each 16-bit element to another 16-bit element.
 *
 * There are only 65,536 elements. Each block computes the results for all of them into 128 KiB of shared memory, and
 * then only looks up: about four instructions an element whatever the program is, so it becomes bound by memory. For
 * large launches only.
 *
 * A multiprocessor has room for one such block. Bandwidth is best if blocks take the next piece in the order in which
 * they finish (on an H200 4.15 TB/s for the look-ups, 3.8 with fixed strides), so pieces are drawn with an atomic
 * counter: a word of the launch's fault record, which is otherwise unused because nothing here can fault. It is 0
 * before the launch, and the last draw sets it back to 0. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

_Static_assert(GPU_PIECE_LANES == 1 << GPU_PIECE_BITS, "the lanes of a piece");

uint32_t hg_gpu_only_access(const gpu_plan *g, uint32_t flag) {
  uint32_t found = SSA_NONE;
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t e = ssa_block_at(g->unit, g->order.block[k])->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next) {
      if (g->access[e] != GPU_VECTOR || !(gpu_flags(g, e) & flag)) continue;
      if (found != SSA_NONE || gpu_bytes(g, e) != 2) return SSA_NONE;
      found = e;
    }
  return found;
}

uint64_t hg_gpu_lut_lanes(const gpu_plan *g, uint32_t instructions) {
  if (!g->info.vector_only || hg_gpu_only_access(g, ATLAS_LOAD) == SSA_NONE ||
      hg_gpu_only_access(g, ATLAS_STORE) == SSA_NONE || g->needs_lane)
    return 0;
  return instructions > GPU_LOOK_UP_COST ? (uint64_t)GPU_LUT_COST / (instructions - GPU_LOOK_UP_COST) : 0;
}

uint32_t hg_gpu_lut_blocks(uint64_t lanes, uint32_t multiprocessors) {
  uint64_t pieces = (lanes + GPU_PIECE_LANES - 1) / GPU_PIECE_LANES;
  return pieces < multiprocessors ? (uint32_t)pieces : multiprocessors;
}
