/* share_divisor.h - several divisions by one number, by one reciprocal. */
#ifndef HG_COMPILER_SHARE_DIVISOR_H
#define HG_COMPILER_SHARE_DIVISOR_H

#include "ir/ssa.h"

/* `unit` is scheduled, and is again. Sets *changed when it did something. HG_OUT_OF_MEMORY. */
hg_status hg_share_divisors(ssa_unit *unit, int *changed);

#endif
