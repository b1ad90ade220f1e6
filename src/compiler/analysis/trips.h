/* trips.h - how often a lane can go round the loops of a program. */
#ifndef HG_COMPILER_TRIPS_H
#define HG_COMPILER_TRIPS_H

#include "compiler/analysis/analyse.h"

/* The most back edges that a lane takes in the whole program, not counting loops of the function library. UINT64_MAX:
 * unknown, or above the default step limit. `counted`: per block, how many back edges one of the loop that begins there
 * stands for; NULL: one. */
uint64_t hg_most_steps(const hg_analysis *analysis, const ssa_unit *unit, const ssa_order *order,
                       const uint8_t *counted);

#endif
