/* rank.c - rank: how many lanes of the block before this one have the same low bits. As in cuda/ptx/rank.c: ballots
 * find the lanes of the warp that agree, and the lowest of them adds their number to the count of their value, warp
 * after warp. */
#include "backend/metal/msl/msl.h"

void hg_msl_rank(msl *m, uint32_t value) {
  const ssa_insn *insn = msl_insn(m, value);
  unsigned bits = ssa_window_bits(insn);
  unsigned counts = m->plan->memory.shared_offset[insn->symbol] + ssa_window_first(insn) * 4;
  /* where lanes may have ended each warp clears all counts */
  const char *first = m->plan->can_end ? "popcount(there & lower)" : "block_lane";
  const char *step = m->plan->can_end ? "popcount(there)" : "block_lanes";
  hg_msl_scope(m);
  hg_msl_line(m, "uint own = %s & %u;", hg_msl_argument(m, value, 0).text, (1u << bits) - 1);
  hg_msl_line(m, "uint there = uint(simd_vote::vote_t(simd_ballot(true))), alike = there;");
  hg_msl_open(m, "for (uint b = 0; b < %u; b++)", bits);
  hg_msl_line(m, "bool is_set = (own >> b & 1) != 0;");
  hg_msl_line(m, "uint votes = uint(simd_vote::vote_t(simd_ballot(is_set)));");
  hg_msl_line(m, "alike &= is_set ? votes : ~votes;");
  hg_msl_close(m, "");
  hg_msl_line(m, "uint lower = (1u << (block_lane %% 32)) - 1, below = alike & lower, before = 0;");
  hg_msl_line(m, "threadgroup atomic_uint *counts = (threadgroup atomic_uint *)(shared + %u);", counts);
  hg_msl_barrier(m);
  hg_msl_open(m, "for (uint i = %s; i < %u; i += %s)", first, 1u << bits, step);
  hg_msl_line(m, "atomic_store_explicit(counts + i, 0u, memory_order_relaxed);");
  hg_msl_close(m, "");
  hg_msl_barrier(m);
  hg_msl_open(m, "for (uint w = 0; w < (block_lanes + 31) / 32; w++)");
  hg_msl_open(m, "if (w == block_lane / 32 && below == 0)");
  hg_msl_line(m, "before = atomic_fetch_add_explicit(counts + own, popcount(alike), memory_order_relaxed);");
  hg_msl_close(m, "");
  hg_msl_barrier(m);
  hg_msl_close(m, "");
  hg_msl_line(m, "v%u = simd_shuffle(before, ushort(ctz(alike))) + popcount(below);", (unsigned)value);
  hg_msl_close(m, "");
}
