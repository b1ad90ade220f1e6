/* aliasing.c - aliasing by declaration: what the launch's overlap rule allows, and nothing finer. */
#include "compiler/analysis/aliasing.h"

#include "atlas/insn.h"

uint32_t hg_location_of(const atlas_program *program, const ssa_insn *insn) {
  if (insn->symbol & SSA_LIBRARY) return (uint32_t)program->symbols.count + 1;
  return insn->mode == ATLAS_ADDRESS_PHI ? (uint32_t)program->symbols.count : insn->symbol;
}

uint32_t hg_address_args(const ssa_insn *insn) {
  switch (insn->mode) {
  case ATLAS_ADDRESS_INDEXED: return 1;
  case ATLAS_ADDRESS_TABLE: return 2;
  case ATLAS_ADDRESS_PHI:
    return (insn->phi_registers & 1u) + (insn->phi_registers >> 1 & 1u) + (insn->phi_registers >> 2 & 1u);
  default: return 0;
  }
}

int hg_orders_all(const ssa_insn *insn) {
  return insn->op == ATLAS_OP_bar_sync || insn->op == ATLAS_OP_rank || insn->op == ATLAS_OP_mem_fence ||
         insn->op == ATLAS_OP_mem_fence_grid;
}

int hg_is_private(const atlas_program *program, uint32_t location) {
  return location < program->symbols.count && atlas_symbol_at(program, location)->kind == ATLAS_SYMBOL_LOCAL;
}

static int is_lane(const ssa_unit *unit, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  return insn->op == SSA_SPECIAL && insn->bits == ATLAS_REG_LANE;
}

void hg_classify_buffers(ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++) {
    const ssa_block *block = ssa_block_at(unit, b);
    for (uint32_t e = block->first_effect; e != SSA_NONE && !block->dead; e = ssa_insn_at(unit, e)->next) {
      const ssa_insn *insn = ssa_insn_at(unit, e);
      uint32_t flags = atlas_op_flags(insn->op);
      if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) || flags & ATLAS_SPACE_LOCAL ||
          insn->mode == ATLAS_ADDRESS_PHI || insn->symbol & SSA_LIBRARY)
        continue;
      if (insn->mode == ATLAS_ADDRESS_INDEXED && insn->bits == 0 &&
          is_lane(unit, ir_ssa_resolve(unit, ssa_args_of(unit, e)[0])))
        continue;
      unit->other_forms[insn->symbol / 64] |= UINT64_C(1) << insn->symbol % 64;
    }
  }
  unit->classified = 1;
}

void hg_alias_groups(const atlas_program *program, const ssa_unit *unit, uint32_t *group) {
  uint32_t count = hg_location_count(program), first_of_size[9] = {0};
  for (uint32_t l = 0; l < count; l++) {
    group[l] = l;
    if (l >= program->symbols.count || atlas_symbol_at(program, l)->kind != ATLAS_SYMBOL_BUFFER) continue;
    if (unit->other_forms[l / 64] >> l % 64 & 1) continue;
    uint32_t bytes = atlas_bytes((atlas_type)atlas_symbol_at(program, l)->type);
    if (first_of_size[bytes] == 0) first_of_size[bytes] = l + 1;
    group[l] = first_of_size[bytes] - 1;
  }
}

int hg_is_read_only(const atlas_program *program, const uint32_t *group, uint32_t location) {
  for (uint32_t l = 0; l < hg_location_count(program); l++) {
    if (group[l] != group[location]) continue;
    if (l >= program->symbols.count)
      return l > program->symbols.count; /* the boundary pool is written, library tables are not */
    const atlas_symbol *symbol = atlas_symbol_at(program, l);
    int writable = symbol->kind == ATLAS_SYMBOL_SHARED || symbol->kind == ATLAS_SYMBOL_LOCAL ||
                   (symbol->kind != ATLAS_SYMBOL_CONST && symbol->access != ATLAS_IN);
    if (writable) return 0;
  }
  return 1;
}
