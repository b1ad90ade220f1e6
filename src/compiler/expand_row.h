/* expand_row.h - functions of one block that share a test for their rare cases. */
#ifndef HG_COMPILER_EXPAND_ROW_H
#define HG_COMPILER_EXPAND_ROW_H

#include "compiler/compiler_tuning.h"
#include "ir/ssa.h"

/* Finds the usual way through a scheduled function: the blocks that ordinary arguments take (ssa_block.usual). There is
 * none if that way contains a load or a loop, or no branch. HG_OUT_OF_MEMORY. */
hg_status hg_find_usual_way(ssa_unit *function);

/* Calls in one block, in its order, of functions with a usual way. None of them depends on another one's result, and
 * nothing with an effect stands between them. */
typedef struct hg_row {
  uint32_t call[COMPILER_GATHERED], count;
  const ssa_unit *function[COMPILER_GATHERED];
} hg_row;

/* Replaces the calls of a scheduled block by the values of their usual ways behind `previous`, one branch, and a side
 * that calls the functions again. The new values are not scheduled. *rest: the block that holds what follows.
 * HG_OUT_OF_MEMORY. */
hg_status hg_expand_row(ssa_unit *unit, const hg_row *row, uint32_t previous, uint32_t *rest);

#endif
