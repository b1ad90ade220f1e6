/* collectives.h - collectives that do not depend on one another, brought together. */
#ifndef HG_COMPILER_COLLECTIVES_H
#define HG_COMPILER_COLLECTIVES_H

#include "ir/ssa.h"

/* In each block of a scheduled unit, collectives of one kind that do not depend on one another come to stand in a row,
 * where nothing but values without effects and other collectives was between them, or with past_loads loads: what does
 * not depend on them goes before, the rest behind. HG_OUT_OF_MEMORY. */
hg_status hg_gather_collectives(ssa_unit *unit, int past_loads);

#endif
