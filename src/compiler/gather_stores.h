/* gather_stores.h - delays stores until after the functions behind them. */
#ifndef HG_COMPILER_GATHER_STORES_H
#define HG_COMPILER_GATHER_STORES_H

#include "ir/ssa.h"

/* In each block of a scheduled unit that calls functions, moves stores behind the values without effects that follow
 * them. HG_OUT_OF_MEMORY. */
hg_status hg_gather_stores(ssa_unit *unit);

#endif
