/* alike.h - a quick search for candidates of merging, so that merging passes cost next to nothing where there are none.
 */
#ifndef HG_COMPILER_ALIKE_H
#define HG_COMPILER_ALIKE_H

#include "ir/ssa.h"

typedef enum hg_alike {
  HG_ALIKE_IN_BLOCKS,  /* two phis, or two effects that only read, of one block: the same operation on similar values */
  HG_ALIKE_EVERYWHERE, /* two effects that only read, in any blocks: the same operation on the same values */
} hg_alike;

/* *found is 0 if there is surely no such pair, 1 if there may be one. HG_OUT_OF_MEMORY. */
hg_status hg_find_alike(ssa_unit *unit, hg_alike what, int *found);

#endif
