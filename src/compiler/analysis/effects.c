/* effects.c - what an instruction does apart from producing its result. */
#include "compiler/analysis/effects.h"

int hg_is_collective(const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info == NULL || !(info->flags & ATLAS_BLOCK)) return 0;
  return insn->op != ATLAS_OP_bar_sync && insn->op != ATLAS_OP_rank && insn->op != ATLAS_OP_pool_alloc &&
         insn->op != ATLAS_OP_pool_free;
}

int hg_is_class_query(const ssa_insn *insn) {
  switch (insn->op) {
  case ATLAS_OP_mirror:
  case ATLAS_OP_unity_test:
  case ATLAS_OP_nbr_count:
  case ATLAS_OP_nbr_get:
  case ATLAS_OP_bound_map: return 1;
  default: return 0;
  }
}

int hg_is_removable(const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info == NULL || info->flags & ATLAS_PURE || info->flags & ATLAS_LOAD) return 1;
  /* class queries may fault, as loads may, and are removed as loads are */
  return hg_is_collective(insn) || hg_is_class_query(insn) || insn->op == ATLAS_OP_phase_get;
}

int hg_only_reads(const ssa_insn *insn) { return hg_is_removable(insn) && !hg_is_pure(insn); }
