/* lower.c - appending to a vector program: instructions, registers. */
#include "vector/lower.h"

#include "base/error.h"

uint32_t hg_vector_emit(vector_lowering *l, const vector_insn *insn) {
  uint32_t at = (uint32_t)l->out->insns.count;
  if (l->status != HG_OK) return at;
  if (hg_array_has_room(&l->out->allocator, &l->out->insns))
    *vector_insn_at(l->out, (uint32_t)l->out->insns.count++) = *insn;
  else l->status = hg_fail_memory("vector code", sizeof *insn);
  return at;
}

uint32_t hg_vector_new_reg(vector_lowering *l, uint8_t type) {
  uint32_t at = (uint32_t)l->out->regs.count;
  if (l->status != HG_OK) return at;
  if (hg_array_has_room(&l->out->allocator, &l->out->regs))
    *vector_reg_at(l->out, (uint32_t)l->out->regs.count++) = (vector_reg){.type = type, .kind = VECTOR_VARIES};
  else l->status = hg_fail_memory("vector registers", sizeof(vector_reg));
  return at;
}

static vector_reg leaf(const ssa_insn *insn) {
  switch (insn->op) {
  case SSA_CONST: return (vector_reg){.kind = VECTOR_CONSTANT, .bits = insn->bits};
  case SSA_SCALAR: return (vector_reg){.kind = VECTOR_SCALAR, .bits = insn->symbol};
  case SSA_SPECIAL: return (vector_reg){.kind = VECTOR_SPECIAL, .bits = insn->bits};
  default: return (vector_reg){.kind = VECTOR_VARIES};
  }
}

uint32_t hg_vector_reg_of(vector_lowering *l, uint32_t value) {
  if (l->same[value] != SSA_NONE) value = l->same[value];
  if (l->reg[value] != SSA_NONE || l->status != HG_OK) return l->reg[value];
  const ssa_insn *insn = ssa_insn_at(l->unit, value);
  l->reg[value] = hg_vector_new_reg(l, insn->type);
  if (l->status != HG_OK) return l->reg[value];
  vector_reg *reg = vector_reg_at(l->out, l->reg[value]);
  *reg = leaf(insn);
  reg->type = insn->type;
  l->out->sees_blocks |= reg->kind == VECTOR_SPECIAL && reg->bits != ATLAS_REG_LANE;
  reg->uniform = reg->kind == VECTOR_VARIES ? (l->uses[value] & VALUE_IS_UNIFORM) != 0 : reg->kind != VECTOR_SPECIAL;
  return l->reg[value];
}
