/* moves.c - phi elimination: moves on the edges into a phi's block. All phis of a block change in parallel: if a move
 * changes a phi that another one reads, the other reads a copy made before. */
#include "vector/lower.h"

static void emit_move(vector_lowering *l, uint32_t d, uint32_t from, uint8_t type, uint32_t mask) {
  vector_insn insn = vector_insn_of(VECTOR_MOVE, mask);
  insn.type = type;
  insn.d = d;
  insn.s[0] = from;
  hg_vector_emit(l, &insn);
}

static int is_moved(vector_lowering *l, uint32_t phi, uint32_t arg) {
  return arg != phi && hg_vector_reg_of(l, arg) != hg_vector_reg_of(l, phi);
}

/* Copies the phis of this block that are read after they change: those whose reader comes later in the list. */
static void copy_changed(vector_lowering *l, uint32_t to, uint32_t edge) {
  for (uint32_t phi = ssa_block_at(l->unit, to)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(l->unit, phi)->next) {
    uint32_t arg = ssa_args_of(l->unit, phi)[edge];
    if (is_moved(l, phi, arg) && l->mark[arg] == 1) {
      l->mark[arg] = 2;
      l->copy[arg] = hg_vector_new_reg(l, ssa_insn_at(l->unit, arg)->type);
      emit_move(l, l->copy[arg], hg_vector_reg_of(l, arg), ssa_insn_at(l->unit, arg)->type, VECTOR_ALL);
    }
    l->mark[phi] = 1;
  }
}

static uint32_t edge_of(const vector_lowering *l, uint32_t from, uint32_t side) {
  return l->dominance.edge[2 * (size_t)from + side];
}

int hg_vector_has_moves(vector_lowering *l, uint32_t from, uint32_t side) {
  uint32_t to = ssa_block_at(l->unit, from)->successor[side], edge = edge_of(l, from, side);
  for (uint32_t phi = ssa_block_at(l->unit, to)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(l->unit, phi)->next)
    if (is_moved(l, phi, ssa_args_of(l->unit, phi)[edge])) return 1;
  return 0;
}

/* On the back edge from the only latch all lanes of the loop take part, and no other lane needs its phis, except those
 * that are read after the loop. */
static uint32_t moving_mask(const vector_lowering *l, uint32_t phi, uint32_t from, uint32_t to, uint32_t mask) {
  return l->latch[to] == from && !(l->uses[phi] & VALUE_IS_KEPT) ? VECTOR_ALL : mask;
}

void hg_vector_moves(vector_lowering *l, uint32_t from, uint32_t side, uint32_t mask) {
  uint32_t to = ssa_block_at(l->unit, from)->successor[side], edge = edge_of(l, from, side);
  uint32_t first = ssa_block_at(l->unit, to)->first_phi;
  copy_changed(l, to, edge);
  for (uint32_t phi = first; phi != SSA_NONE; phi = ssa_insn_at(l->unit, phi)->next) {
    uint32_t arg = ssa_args_of(l->unit, phi)[edge];
    uint32_t source = l->mark[arg] == 2 ? l->copy[arg] : hg_vector_reg_of(l, arg);
    if (is_moved(l, phi, arg))
      emit_move(l, hg_vector_reg_of(l, phi), source, ssa_insn_at(l->unit, phi)->type,
                moving_mask(l, phi, from, to, mask));
  }
  for (uint32_t phi = first; phi != SSA_NONE; phi = ssa_insn_at(l->unit, phi)->next) l->mark[phi] = 0;
}
