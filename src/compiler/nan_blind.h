/* nan_blind.h - where the bits of a float are looked at, but nothing that can be seen depends on which NaN it is. */
#ifndef HG_COMPILER_NAN_BLIND_H
#define HG_COMPILER_NAN_BLIND_H

#include "ir/ssa_order.h"

/* `unit` is scheduled; blind[value] becomes 1 for each bitcast from f32 or f64 of that kind, 0 for all other values.
 * HG_OUT_OF_MEMORY. */
hg_status hg_find_nan_blind(const ssa_unit *unit, const ssa_order *order, uint8_t *blind);

#endif
