/* optimise.h - makes programs faster after their identity has been fixed. */
#ifndef HG_COMPILER_OPTIMISE_H
#define HG_COMPILER_OPTIMISE_H

#include "compiler/canon/passes.h"

/* Runs the OPTIMISE and PLACED passes of passes.def on a canonical or expanded unit until none of them changes
 * anything, and schedules it. `hook` may be NULL. HG_OUT_OF_MEMORY. */
hg_status hg_optimise(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook);

#endif
