/* local_zeros.h - whether a lane can observe that its local arrays begin as zeros. */
#ifndef HG_COMPILER_LOCAL_ZEROS_H
#define HG_COMPILER_LOCAL_ZEROS_H

#include "compiler/analysis/analyse.h"

/* 0 if a lane that loads from a local array has stored to all its elements before: then no engine needs to clear it. */
int hg_sees_local_zeros(const atlas_program *program, const ssa_unit *unit, const ssa_order *order,
                        const hg_analysis *analysis);

#endif
