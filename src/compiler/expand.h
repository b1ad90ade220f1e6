/* expand.h - replaces function instructions (exp, sin, ...) by primitives. */
#ifndef HG_COMPILER_EXPAND_H
#define HG_COMPILER_EXPAND_H

#include "ir/ssa.h"

#include <stdatomic.h>

/* A cache of functions that are ready for inlining, filled as programs need them. All compilations of a device share
 * one, on any thread: an entry never changes and stays until the cache is closed. */
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
/* The same without a schedule, for callers that then run hg_optimise, which schedules the unit itself. */
hg_status hg_expand_unplaced(ssa_unit *unit, hg_functions *functions);

#endif
