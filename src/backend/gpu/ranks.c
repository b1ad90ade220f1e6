/* ranks.c - adjacent ranks, which are done at once and so share barriers.
 *
 * Where no lane of the block may have ended and it has whole warps, RANK_WARPS at most, each warp notes how many of its
 * lanes have a value: a byte for each warp, so that one word of 64 bits has the counts of a value. These words lie
 * behind all other shared memory, 2^bits for each rank. */
#include "backend/gpu/plan_passes.h"

enum { RANK_WARPS = 8, MOST_BITS = 8 };

static uint32_t bytes_of(const gpu_plan *g, uint32_t value) {
  return (uint32_t)RANK_WARPS << ssa_window_bits(gpu_insn(g, value));
}

static uint32_t window_first(const gpu_plan *g, uint32_t value) { return ssa_window_first(gpu_insn(g, value)); }

static int is_independent(const gpu_plan *g, uint32_t first, uint32_t value) {
  uint32_t size = 1u << ssa_window_bits(gpu_insn(g, first));
  if (gpu_insn(g, value)->op != ATLAS_OP_rank || bytes_of(g, value) != bytes_of(g, first)) return 0;
  for (uint32_t e = first; e != value; e = gpu_insn(g, e)->next)
    if (gpu_arg(g, value, 0) == e ||
        (gpu_insn(g, e)->symbol == gpu_insn(g, value)->symbol &&
         window_first(g, e) < window_first(g, value) + size && window_first(g, value) < window_first(g, e) + size))
      return 0;
  return 1;
}

static int may_share(const gpu_plan *g) {
  uint32_t lanes = gpu_block_lanes(g);
  return g->target.ranks > 1 && lanes != 0 && lanes % GPU_FOLD_LANES == 0 && lanes <= RANK_WARPS * GPU_FOLD_LANES &&
         !g->can_end && g->info.sub_blocks <= 1;
}

uint32_t hg_gpu_ranks_at(const gpu_plan *g, uint32_t value) {
  uint32_t count = 1, most = g->target.ranks, room = g->target.declared_shared - g->memory.rank_counts;
  if (g->memory.rank_counts == 0) return 1;
  if (most > room / bytes_of(g, value)) most = room / bytes_of(g, value);
  for (uint32_t e = gpu_insn(g, value)->next; e != SSA_NONE && count < most && is_independent(g, value, e);
       e = gpu_insn(g, e)->next)
    count++;
  return count;
}

/* Within what any device has: the text is every device's. */
void hg_gpu_lay_out_ranks(gpu_plan *g) {
  uint32_t at = (g->info.shared_bytes + 15) / 16 * 16, most = 0;
  if (!may_share(g) || at + (RANK_WARPS << MOST_BITS) > g->target.declared_shared) return;
  g->memory.rank_counts = at;
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t e = ssa_block_at(g->unit, g->order.block[k])->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next) {
      if (gpu_insn(g, e)->op != ATLAS_OP_rank) continue;
      uint32_t bytes = hg_gpu_ranks_at(g, e) * bytes_of(g, e);
      if (bytes > most) most = bytes;
    }
  if (most == 0) g->memory.rank_counts = 0;
  else g->info.shared_bytes = at + most;
}
