/* rare_side.h - a side of a branch on which values are computed again that are seldom needed. */
#ifndef HG_COMPILER_RARE_SIDE_H
#define HG_COMPILER_RARE_SIDE_H

#include "ir/ssa.h"

enum { HG_MOST_ROUNDS = 16 };

/* Ends a block: in a branch to `rest`, where the test holds, or to a new block, which has no end yet. SSA_NONE: out of
 * memory. */
uint32_t hg_add_rare_side(ssa_unit *unit, uint32_t block, uint32_t test, uint32_t rest);

/* found[k] = like[k], from a block that has no end yet: the last block of these, which has none either.
 *
 * The values `like` are pure instructions that differ in operands alone, which have the type of the result. More than
 * `copies` of them, which is 1 at least, are one instruction in a loop over them. SSA_NONE: out of memory. */
uint32_t hg_compute_again(ssa_unit *unit, uint32_t block, const uint32_t *like, uint32_t count, uint32_t copies,
                          uint32_t *found);

/* Ends a block in a jump. 0: out of memory. */
int hg_end_side(ssa_unit *unit, uint32_t block, uint32_t rest);

/* The value is replaced by a phi of `rest`: from[0] of its first predecessor, and so on. 0: out of memory. */
int hg_choose_side(ssa_unit *unit, uint32_t rest, uint32_t value, const uint32_t *from, uint32_t sides);

#endif
