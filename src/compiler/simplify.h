/* simplify.h - constant folding and identities on one value. Part of the canonical form: frozen. */
#ifndef HG_COMPILER_SIMPLIFY_H
#define HG_COMPILER_SIMPLIFY_H

#include "atlas/tables.h"
#include "ir/ssa.h"

/* Rewrites a value whose arguments are resolved, in place or by replacing it, until nothing applies. Every rule keeps
 * every bit of the result for every input. *changed is set when something was done. HG_OUT_OF_MEMORY. */
hg_status hg_simplify(ssa_unit *unit, uint32_t value, int *changed);

/* 1 if the value can be computed anywhere its arguments are: no memory, no fault, the same in every place. Inline,
 * because every pass asks it of every value. */
static inline int hg_is_pure(const ssa_insn *insn) {
  if (insn->op == SSA_CONST || insn->op == SSA_SCALAR || insn->op == SSA_SPECIAL || insn->op == SSA_ARGUMENT) return 1;
  if (insn->op == ATLAS_OP_phase_get) return 1; /* as of launch */
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  /* A constant-table load may fault, so it stays where it is. */
  return info != NULL && info->flags & ATLAS_PURE && !(info->flags & ATLAS_LOAD);
}

/* 1 if the first two arguments may be exchanged. */
int hg_commutes(const ssa_insn *insn);

#endif
