/* webs.c - coalesces induction variables: one register for a header's phi, its value in the next round (if the phi is
 * dead by then), and the phis after the loop that take either, depending on where a lane left. A lane's register then
 * changes only while the lane is in the loop. */
#include "compiler/analysis/effects.h"
#include "vector/lower.h"

/* Places are numbered in the order of the code: instructions, then the end of their block, with its branch and the
 * moves of its edges. l->copy: where a value is computed. */
static void note_reads(vector_lowering *l, const uint32_t *values, uint32_t count, uint32_t place) {
  for (uint32_t i = 0; i < count; i++) l->last[values[i]] = place;
}

static void note_edge(vector_lowering *l, uint32_t from, uint32_t side, uint32_t place) {
  uint32_t to = ssa_block_at(l->unit, from)->successor[side];
  if (to == SSA_NONE) return;
  for (uint32_t phi = ssa_block_at(l->unit, to)->first_phi; phi != SSA_NONE; phi = vector_ssa_insn(l, phi)->next)
    note_reads(l, ssa_args_of(l->unit, phi) + l->dominance.edge[2 * (size_t)from + side], 1, place);
}

static void find_places(vector_lowering *l) {
  uint32_t place = 0;
  for (uint32_t k = 0; k < l->order.count; k++) {
    uint32_t b = l->order.block[k];
    const ssa_block *block = ssa_block_at(l->unit, b);
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = vector_ssa_insn(l, e)->next) {
      l->copy[e] = ++place;
      note_reads(l, ssa_args_of(l->unit, e), vector_ssa_insn(l, e)->arg_count, place);
    }
    place++;
    if (block->condition != SSA_NONE) note_reads(l, &block->condition, 1, place);
    for (uint32_t side = 0; side < 2; side++) note_edge(l, b, side, place);
  }
}

/* 1 if `next` may be computed in the phi's register: in each round the phi is dead by then. */
static int can_replace(const vector_lowering *l, uint32_t header, uint32_t phi, uint32_t next) {
  const ssa_insn *insn = vector_ssa_insn(l, next);
  if (hg_is_leaf(insn) || insn->op == SSA_PHI || !hg_is_pure(insn) || l->same[next] != SSA_NONE) return 0;
  return l->order.loop[insn->block] == header && vector_is_on_way(l, insn->block) && l->last[phi] <= l->copy[next];
}

static void coalesce_next(vector_lowering *l, uint32_t header) {
  uint32_t latch = l->latch[header];
  for (uint32_t side = 0; side < 2; side++) {
    if (ssa_block_at(l->unit, latch)->successor[side] != header) continue;
    uint32_t edge = l->dominance.edge[2 * (size_t)latch + side];
    for (uint32_t phi = ssa_block_at(l->unit, header)->first_phi; phi != SSA_NONE;
         phi = vector_ssa_insn(l, phi)->next) {
      uint32_t next = ssa_args_of(l->unit, phi)[edge];
      if (!can_replace(l, header, phi, next)) continue;
      l->same[next] = phi;
      l->uses[phi] |= l->uses[next] & VALUE_IS_KEPT;
    }
  }
}

/* The header's phi with which all arguments are coalesced, outside its loop; SSA_NONE. */
static uint32_t common_phi(const vector_lowering *l, uint32_t phi) {
  uint32_t found = SSA_NONE;
  for (uint32_t i = 0; i < vector_ssa_insn(l, phi)->arg_count; i++) {
    uint32_t arg = ssa_args_of(l->unit, phi)[i], now = l->same[arg] != SSA_NONE ? l->same[arg] : arg;
    if (found != SSA_NONE && now != found) return SSA_NONE;
    found = now;
  }
  if (found == SSA_NONE || vector_ssa_insn(l, found)->op != SSA_PHI) return SSA_NONE;
  uint32_t header = vector_ssa_insn(l, found)->block;
  if (l->order.loop[header] != header || l->latch[header] == SSA_NONE) return SSA_NONE;
  return vector_in_loop(&l->order, header, vector_ssa_insn(l, phi)->block) ? SSA_NONE : found;
}

static void coalesce_exit_phis(vector_lowering *l, uint32_t block) {
  if (l->order.loop[block] == block) return;
  for (uint32_t phi = ssa_block_at(l->unit, block)->first_phi; phi != SSA_NONE; phi = vector_ssa_insn(l, phi)->next) {
    uint32_t found = common_phi(l, phi);
    if (found == SSA_NONE) continue;
    l->same[phi] = found;
    l->uses[found] |= VALUE_IS_KEPT;
  }
}

void hg_vector_find_webs(vector_lowering *l) {
  find_places(l);
  for (uint32_t k = 0; k < l->order.count; k++)
    if (l->order.loop[l->order.block[k]] == l->order.block[k] && l->latch[l->order.block[k]] != SSA_NONE)
      coalesce_next(l, l->order.block[k]);
  for (uint32_t k = 0; k < l->order.count; k++) coalesce_exit_phis(l, l->order.block[k]);
}
