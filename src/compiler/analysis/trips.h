/* trips.h - how often a lane can go round the loops of a program. */
#ifndef HG_COMPILER_TRIPS_H
#define HG_COMPILER_TRIPS_H

#include "compiler/analysis/analyse.h"

/* Of the whole program, how many back edges a lane takes at most, loops of the function library not counted.
 * UINT64_MAX: not known, or above the default step limit. `counted`: per block, for how many the back edges of the loop
 * that begins there stand; NULL: for one. */
uint64_t hg_most_steps(const hg_analysis *analysis, const ssa_unit *unit, const ssa_order *order,
                       const uint8_t *counted);

#endif
