/* alike.h - a quick look at what might be merged, so that passes which find nothing cost next to nothing. */
#ifndef HG_COMPILER_ALIKE_H
#define HG_COMPILER_ALIKE_H

#include "ir/ssa.h"

typedef enum hg_alike {
  HG_ALIKE_IN_BLOCKS,  /* two phis, or two effects that only ask, of one block, that do the same with similar values */
  HG_ALIKE_EVERYWHERE, /* two effects that only ask, wherever they stand, that do the same with the same values */
} hg_alike;

/* *found is 0 if there is surely no such pair, 1 if there may be one. HG_OUT_OF_MEMORY. */
hg_status hg_find_alike(ssa_unit *unit, hg_alike what, int *found);

/* Effects of which two may be one: they change nothing, and are the same in all that they see. */
int hg_only_asks(const ssa_insn *insn);

#endif
