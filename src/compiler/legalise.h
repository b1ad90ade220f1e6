/* legalise.h - reduces arithmetic to what every machine has. */
#ifndef HG_COMPILER_LEGALISE_H
#define HG_COMPILER_LEGALISE_H

#include "ir/ssa.h"

/* On a unit whose pure values are not scheduled: f16 and bf16 arithmetic becomes f32 arithmetic and conversions, except
 * as unit->narrow_extremes says; integer divisions get divisors that are neither 0 nor (signed) -1. Run it once: a
 * second run would guard the divisions again. HG_OUT_OF_MEMORY. */
hg_status hg_legalise(ssa_unit *unit);

#endif
