/* gather_stores.h - stores that wait for the functions behind them. */
#ifndef HG_COMPILER_GATHER_STORES_H
#define HG_COMPILER_GATHER_STORES_H

#include "ir/ssa.h"

/* In each block of a scheduled unit that calls functions, stores go behind the values without effects that follow them.
 * HG_OUT_OF_MEMORY. */
hg_status hg_gather_stores(ssa_unit *unit);

#endif
