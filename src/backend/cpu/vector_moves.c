/* vector_moves.c - phis as moves on the edges into their block. All of them take their new values at once: where a move
 * has already changed a phi that another reads, the other reads a copy made before. */
#include "backend/cpu/vector_lower.h"

static void move(vector_lowering *l, uint32_t d, uint32_t from, uint8_t type, uint32_t mask) {
  vector_insn insn = vector_insn_of(VECTOR_MOVE, mask);
  insn.type = type;
  insn.d = d;
  insn.s[0] = from;
  hg_vector_emit(l, &insn);
}

/* Copies the phis of this block that are read after they change: those that come earlier in the list than a reader. */
static void copy_changed(vector_lowering *l, uint32_t to, uint32_t edge) {
  for (uint32_t phi = ssa_block_at(l->unit, to)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(l->unit, phi)->next) {
    uint32_t arg = ssa_args_of(l->unit, phi)[edge];
    if (arg != phi && l->mark[arg] == 1) {
      l->mark[arg] = 2;
      l->copy[arg] = hg_vector_new_reg(l, ssa_insn_at(l->unit, arg)->type);
      move(l, l->copy[arg], hg_vector_reg_of(l, arg), ssa_insn_at(l->unit, arg)->type, VECTOR_ALL);
    }
    l->mark[phi] = 1;
  }
}

void hg_vector_moves(vector_lowering *l, uint32_t to, uint32_t edge, uint32_t mask) {
  uint32_t first = ssa_block_at(l->unit, to)->first_phi;
  copy_changed(l, to, edge);
  for (uint32_t phi = first; phi != SSA_NONE; phi = ssa_insn_at(l->unit, phi)->next) {
    uint32_t arg = ssa_args_of(l->unit, phi)[edge];
    uint32_t from = l->mark[arg] == 2 ? l->copy[arg] : hg_vector_reg_of(l, arg);
    if (arg != phi) move(l, hg_vector_reg_of(l, phi), from, ssa_insn_at(l->unit, phi)->type, mask);
  }
  for (uint32_t phi = first; phi != SSA_NONE; phi = ssa_insn_at(l->unit, phi)->next) l->mark[phi] = 0;
}
