/* never_nan.h - which floating-point values are a number in every lane of every launch. All others must be
 * canonicalised where their bits are seen, because machines disagree about the bits of a NaN. */
#ifndef HG_COMPILER_NEVER_NAN_H
#define HG_COMPILER_NEVER_NAN_H

#include "ir/ssa_order.h"

/* `unit` is scheduled; never_nan[value] becomes 1 for such values of type f32 and f64, 0 for all others.
 * HG_OUT_OF_MEMORY. */
hg_status hg_find_never_nan(const ssa_unit *unit, const ssa_order *order, uint8_t *never_nan);

/* 1 if argument i of a phi comes along an edge that is taken only where the argument is a number. */
int hg_comes_as_number(const ssa_unit *unit, uint32_t phi, uint32_t i);

#endif
