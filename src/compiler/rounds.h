/* rounds.h - a loop that does the same for one value after another, instead of copies of what is done. */
#ifndef HG_COMPILER_ROUNDS_H
#define HG_COMPILER_ROUNDS_H

#include "ir/ssa.h"

enum { HG_MOST_ROUNDS = 16 };

/* for (k = 0; k < count; k++) found[k] = like[k];
 *
 * The values `like` are instructions that differ in operands alone, which have the type of the result. Block `loop`
 * becomes the loop: its first predecessor leads there, its second one is itself, and it goes on to `next`. The result
 * is the one instruction, which is in no list. SSA_NONE: out of memory. */
uint32_t hg_repeat(ssa_unit *unit, uint32_t loop, uint32_t next, const uint32_t *like, uint32_t count, uint32_t *found);

#endif
