/* expand.h - functions into primitives. */
#ifndef HG_COMPILER_EXPAND_H
#define HG_COMPILER_EXPAND_H

#include "compiler/passes.h"
#include "ir/ssa.h"

/* Replaces every function of a canonical unit (exp, sin, gelu, ...) by the instructions of its Atlas text, so that only
 * primitives are left; f16 and bf16 go through f32, and integer divisions are guarded (legalise.h). The result is
 * cleaned up and scheduled. `hook` may be NULL. HG_OUT_OF_MEMORY. */
hg_status hg_expand(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook);

#endif
