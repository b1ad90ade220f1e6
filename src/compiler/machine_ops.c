/* machine_ops.c - which operations machines have, and the check that a program has no others. */
#include "compiler/machine_ops.h"

#include "base/error.h"

const machine_row hg_machine_rows[MACHINE_OP_COUNT] = {
#define MACHINE(id, kind, types, narrow) [MACHINE_##id] = {MACHINE_##kind, SET_##types, SET_##narrow},
#include "compiler/machine_ops.def"
};

/* A row that stands twice does not compile: its entry would be initialised twice. */
const uint8_t hg_machine_op_of[ATLAS_OP_PAGES][ATLAS_OP_PAGE_CODES] = {
#define MACHINE(id, kind, types, narrow) [ATLAS_OP_##id >> 8][ATLAS_OP_##id & 0xff] = MACHINE_##id,
#include "compiler/machine_ops.def"
};

static int is_in(uint32_t types, uint32_t type) { return type < ATLAS_TYPE_COUNT && types >> type & 1; }

static int has_machine(const ssa_unit *unit, const ssa_insn *insn) {
  const machine_row *row = &hg_machine_rows[hg_machine_op(insn->op)];
  uint32_t types = unit->narrow_extremes ? row->types | row->narrow : row->types;
  if (row->kind == MACHINE_NO_KIND) return 0;
  if (types == 0) return 1;
  if (row->kind == MACHINE_CONVERT || row->kind == MACHINE_CAST)
    return is_in(types, insn->type) && is_in(types, insn->type2);
  return is_in(types, insn->type == SSA_PREDICATE ? insn->type2 : insn->type);
}

static hg_status refuse(const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  uint8_t type = insn->type == SSA_PREDICATE ? insn->type2 : insn->type;
  if (info == NULL) return hg_fail(HG_UNSUPPORTED, "no machine has operation 0x%04x", (unsigned)insn->op);
  if (type == ATLAS_NONE) return hg_fail(HG_UNSUPPORTED, "no machine has '%s'", info->mnemonic);
  return hg_fail(HG_UNSUPPORTED, "no machine has '%s.%s'", info->mnemonic, atlas_type_name((atlas_type)type));
}

hg_status hg_check_machine_ops(const ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++) {
    const ssa_block *block = ssa_block_at(unit, b);
    if (block->dead) continue;
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next)
      if (!has_machine(unit, ssa_insn_at(unit, e))) return refuse(ssa_insn_at(unit, e));
  }
  return HG_OK;
}
