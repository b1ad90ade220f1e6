/* ssa_walk.h - all live values of a unit in an order where pure values come after their arguments. */
#ifndef HG_IR_SSA_WALK_H
#define HG_IR_SSA_WALK_H

#include "ir/ssa_order.h"

/* Fills `values` (uint32_t) with every value that effects, phis and branches of reachable blocks depend on: block by
 * block in order, first its phis, then for each effect its operands and itself, then the operands of the branch and of
 * the successors' phis. Phi arguments of back edges may come after the phi. All arguments must be resolved. */
hg_status ir_ssa_walk(const ssa_unit *unit, const ssa_order *order, hg_array *values);

/* The same, and ends[k] is how many values there are when block order->block[k] is done. */
hg_status ir_ssa_walk_blocks(const ssa_unit *unit, const ssa_order *order, hg_array *values, uint32_t *ends);

/* Resolves every argument and condition of the unit. */
void ir_ssa_resolve_all(ssa_unit *unit);

#endif
