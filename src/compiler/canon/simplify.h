/* simplify.h - constant folding and identities on one value. Part of the canonical form: frozen. */
#ifndef HG_COMPILER_SIMPLIFY_H
#define HG_COMPILER_SIMPLIFY_H

#include "atlas/tables.h"
#include "ir/ssa.h"

/* Rewrites a value whose arguments are resolved, in place or by replacing it, until nothing applies. Every rule keeps
 * every bit of the result for every input. *changed is set when something was done. HG_OUT_OF_MEMORY. */
hg_status hg_simplify(ssa_unit *unit, uint32_t value, int *changed);

/* The result of a pure instruction for these arguments; surplus ones are ignored. */
uint64_t hg_fold(const ssa_insn *insn, uint64_t a, uint64_t b, uint64_t c);

/* 1 if the first two arguments may be exchanged. */
int hg_commutes(const ssa_insn *insn);

#endif
