/* collectives.h - brings collectives together that do not depend on one another. */
#ifndef HG_COMPILER_COLLECTIVES_H
#define HG_COMPILER_COLLECTIVES_H

#include "ir/ssa.h"

/* In each block of a scheduled unit, collectives of one kind become neighbours if they do not depend on one another and
 * only values without effects and other collectives stand between them: what does not depend on them moves before them,
 * the rest behind. HG_OUT_OF_MEMORY. */
hg_status hg_gather_collectives(ssa_unit *unit);

#endif
