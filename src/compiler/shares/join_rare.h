/* join_rare.h - one test in front of several functions, for their rare cases. */
#ifndef HG_COMPILER_JOIN_RARE_H
#define HG_COMPILER_JOIN_RARE_H

#include "ir/ssa.h"

/* `unit` is scheduled, and is again. Sets *changed when it did something. HG_OUT_OF_MEMORY. */
hg_status hg_join_rare(ssa_unit *unit, int *changed);

#endif
