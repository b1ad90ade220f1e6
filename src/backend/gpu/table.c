/* table.c - the form of a program that turns each element of 16 bits into another of 16 bits: a table.
 *
 * There are only 65,536 elements. Each block computes what becomes of all of them, keeps that in 128 KiB of shared
 * memory, and then does nothing but look up: some four instructions an element whatever the program does, so that
 * memory sets the pace. For large launches only.
 *
 * The device runs one such block a multiprocessor. Memory likes it best when blocks take the next piece in the order in
 * which they finish (on an H200: 4.15 TB/s for the look-ups, 3.8 with fixed strides), so a piece is drawn by an atomic
 * counter. That is a word of the launch's fault record, which belongs to this launch alone and which it does not need
 * otherwise, since nothing here can fault; it is 0 before, and whoever draws last makes it 0 again. */
#include "backend/gpu/plan.h"

enum { LOOK_UP_COST = 26 /* in instructions of the program */ };

_Static_assert(GPU_PIECE_LANES == 1 << GPU_PIECE_BITS, "the lanes of a piece");

/* SSA_NONE if there are others, or if its elements have not 16 bits. */
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

/* What it gains a lane has to make up for 10 us in which the table is computed. Measured on an H200: from 175 to 220
 * million lanes on for a sigmoid of 29 instructions, 64 for gelu.tanh (33), 42 for gelu (37); not for shorter ones. */
uint64_t hg_gpu_table_lanes(const gpu_plan *g, uint32_t instructions) {
  if (!g->info.vector_only || hg_gpu_only_access(g, ATLAS_LOAD) == SSA_NONE ||
      hg_gpu_only_access(g, ATLAS_STORE) == SSA_NONE || g->needs_lane)
    return 0;
  return instructions > LOOK_UP_COST ? (UINT64_C(1) << 29) / (instructions - LOOK_UP_COST) : 0;
}

uint32_t hg_gpu_table_blocks(uint64_t lanes, uint32_t units) {
  uint64_t pieces = (lanes + GPU_PIECE_LANES - 1) / GPU_PIECE_LANES;
  return pieces < units ? (uint32_t)pieces : units;
}
