/* effects.h - what an instruction does apart from producing its result, by its operation alone. */
#ifndef HG_COMPILER_EFFECTS_H
#define HG_COMPILER_EFFECTS_H

#include "atlas/tables.h"
#include "ir/ssa.h"

/* 1 for values that are operands rather than work. Inline, because every pass asks it of every value. */
static inline int hg_is_leaf(const ssa_insn *insn) {
  return insn->op == SSA_CONST || insn->op == SSA_SCALAR || insn->op == SSA_SPECIAL || insn->op == SSA_ARGUMENT;
}

/* 1 if the value can be computed wherever its arguments are available: no memory, no fault, the same result everywhere.
 * Inline, because every pass asks it of every value. */
static inline int hg_is_pure(const ssa_insn *insn) {
  if (insn->op == SSA_CONST || insn->op == SSA_SCALAR || insn->op == SSA_SPECIAL || insn->op == SSA_ARGUMENT) return 1;
  if (insn->op == ATLAS_OP_phase_get) return 1; /* the phase when the launch began */
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  /* A constant-table load may fault, so it stays where it is. */
  return info != NULL && info->flags & ATLAS_PURE && !(info->flags & ATLAS_LOAD);
}

/* Reductions, scans and votes: what the block computes together from its lanes' values. Not rank: it writes memory. */
int hg_is_collective(const ssa_insn *insn);

/* Class instructions without side effects: their results depend only on their operands. They may fault. */
int hg_is_class_query(const ssa_insn *insn);

/* Instructions without an effect other than their result: they can be removed if that is not used. */
int hg_is_removable(const ssa_insn *insn);

/* 1 for effects without side effects (loads, class queries, collectives): two that see the same state can be merged. */
int hg_only_reads(const ssa_insn *insn);

#endif
