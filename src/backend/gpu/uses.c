/* uses.c - what a program uses of a device: tables, local arrays, shared memory, boundary, resonance, phase. */
#include "backend/gpu/plan_passes.h"

#include "compiler/analysis/aliasing.h"

static void note_effect(gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  uint32_t flags = gpu_flags(g, value);
  if (flags & ATLAS_SPACE_CONST) {
    uint32_t symbol = insn->symbol & ~(uint32_t)SSA_LIBRARY;
    (insn->symbol & SSA_LIBRARY ? g->library_used : g->tables_used)[symbol / 64] |= UINT64_C(1) << symbol % 64;
  }
  if (flags & ATLAS_SPACE_LOCAL) g->locals_used[insn->symbol / 64] |= UINT64_C(1) << insn->symbol % 64;
  if (insn->mode == ATLAS_ADDRESS_PHI && flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) g->info.uses_boundary = 1;
  if (insn->op == ATLAS_OP_res_accum) g->info.uses_resonance = 1;
  if (insn->op == ATLAS_OP_phase_adv) g->info.uses_phase_advance = 1;
  g->memory.uses_scratch |= gpu_is_reduction(insn->op) || gpu_is_scan(insn->op);
}

void hg_gpu_find_uses(gpu_plan *g) {
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  hg_alias_groups(g->program, g->unit, group);
  for (uint32_t l = 0; l < hg_location_count(g->program); l++)
    g->read_only[l] = (uint8_t)hg_is_read_only(g->program, group, l);
  g->can_end = g->counts_steps;
  for (uint32_t k = 0; k < g->order.count; k++) {
    const ssa_block *block = ssa_block_at(g->unit, g->order.block[k]);
    g->can_end |= block->end == SSA_TRAP;
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next) note_effect(g, e);
  }
  g->memory.uses_scratch &= !gpu_is_one_warp(g) || g->can_end;
}
