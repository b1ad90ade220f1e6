/* rare_side.h - a side of a branch that computes values again which are seldom needed. */
#ifndef HG_COMPILER_RARE_SIDE_H
#define HG_COMPILER_RARE_SIDE_H

#include "ir/ssa.h"

enum { HG_MOST_ROUNDS = 16 };

/* Ends a block with a branch: to `rest` if the test holds, else to a new block, which has no end yet. Returns that
 * block; SSA_NONE: out of memory. */
uint32_t hg_add_rare_side(ssa_unit *unit, uint32_t block, uint32_t test, uint32_t rest);

/* Computes found[k] = like[k] from a block that has no end yet; returns the last block of the computation, which has
 * none either.
 *
 * The values `like` are pure instructions that differ only in operands of the result's type. If there are more than
 * `copies` (at least 1), one instruction in a loop computes them. SSA_NONE: out of memory. */
uint32_t hg_compute_again(ssa_unit *unit, uint32_t block, const uint32_t *like, uint32_t count, uint32_t copies,
                          uint32_t *found);

/* Ends a block with a jump. 0: out of memory. */
int hg_end_side(ssa_unit *unit, uint32_t block, uint32_t rest);

/* Replaces the value by a phi of `rest` with from[0] for its first predecessor, and so on. 0: out of memory. */
int hg_choose_side(ssa_unit *unit, uint32_t rest, uint32_t value, const uint32_t *from, uint32_t sides);

#endif
