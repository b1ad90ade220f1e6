/* expand.h - functions into primitives. */
#ifndef HG_COMPILER_EXPAND_H
#define HG_COMPILER_EXPAND_H

#include "compiler/passes.h"
#include "ir/ssa.h"

#include <stdatomic.h>

/* The functions that have been needed so far, ready to be inlined. Whoever compiles more than one program keeps one,
 * for all threads: a function, once it is there, does not change and stays. */
typedef struct hg_functions {
  hg_allocator allocator;
  _Atomic(struct hg_function *) newest;
} hg_functions;

void hg_functions_open(hg_functions *functions, const hg_allocator *allocator);
void hg_functions_close(hg_functions *functions);

/* Replaces every function of a canonical unit (exp, sin, gelu, ...) by the instructions of its Atlas text, so that only
 * primitives are left; f16 and bf16 go through f32, and integer divisions are guarded (legalise.h). The result is
 * scheduled; hg_optimise cleans it up. `functions` may be NULL. HG_OUT_OF_MEMORY. */
hg_status hg_expand(ssa_unit *unit, hg_functions *functions);
/* The same but for the schedule: where hg_optimise comes next, which makes its own. */
hg_status hg_expand_unplaced(ssa_unit *unit, hg_functions *functions);

#endif
