/* machine.c - what all instructions of the reference machine need: operands, faults. */
#include "atlas/machine.h"

#include "atlas/insn.h"

uint64_t atlas_machine_register(const machine *m, const lane *l, uint32_t reg, atlas_type *type) {
  *type = reg < ATLAS_GENERAL_REGISTERS ? (atlas_type)l->type[reg] : atlas_special_type(reg);
  switch (reg) {
  case ATLAS_REG_BLOCK_LANE: return l->in_block;
  case ATLAS_REG_BLOCK_INDEX: return (uint32_t)m->block_at[0];
  case ATLAS_REG_BLOCK_SIZE: return m->block_size[0];
  case ATLAS_REG_LANE: return l->id;
  default: return l->r[reg];
  }
}

uint64_t atlas_machine_source(const machine *m, const lane *l, const atlas_operand *operand) {
  atlas_type type;
  switch (operand->kind) {
  case ATLAS_OPERAND_REG: return atlas_machine_register(m, l, operand->reg, &type);
  case ATLAS_OPERAND_SCALAR: return m->launch->arguments[operand->symbol].bits;
  default: return operand->bits;
  }
}

void atlas_machine_fault(machine *m, lane *l, hg_fault fault) {
  if (l->faulted) return;
  l->faulted = 1;
  hg_fault *lowest = &m->launch->fault;
  if (lowest->kind != HG_FAULT_NONE && lowest->lane <= l->id) return;
  fault.instruction = atlas_node_at(m->program, l->node)->insn;
  fault.line = atlas_insn_at(m->program, fault.instruction)->line;
  fault.lane = l->id;
  *lowest = fault;
}
