/* block_levels.h - how uniform the control is that leads to each block of a unit. */
#ifndef HG_COMPILER_BLOCK_LEVELS_H
#define HG_COMPILER_BLOCK_LEVELS_H

#include "compiler/analysis/analyse.h"
#include "ir/control.h"
#include "ir/ssa_order.h"

/* Blocks as a graph with post-dominators, in which a straight line of blocks is one node (a group). */
typedef struct hg_control {
  ir_node *nodes;
  ir_graph graph;
  uint32_t *group_of; /* per block of the unit */
  ir_control control; /* per group */
} hg_control;

/* `c` must be zeroed. HG_OUT_OF_MEMORY. Release it whatever the result. */
hg_status hg_control_build(const ssa_unit *unit, const ssa_order *order, hg_control *c);
void hg_control_release(const ssa_unit *unit, hg_control *c);

/* One round of propagation: the levels of branch conditions raise the blocks that depend on the branch. Fills
 * `control`, an ir_level for each block. 1 if the level of any block rose. */
int hg_control_spread(hg_control *c, const ssa_unit *unit, const ssa_order *order, const hg_fact *fact,
                      uint8_t *control);

/* Gives up precision: from now on all control counts as divergent. */
void hg_control_set_divergent(hg_control *c);

/* hg_analyse for a resolved unit whose order and control graph the caller has built. Afterwards the levels of `control`
 * are final. */
hg_status hg_analyse_with(const atlas_program *program, ssa_unit *unit, const hg_shape *shape, const ssa_order *order,
                          hg_control *control, hg_analysis *out);

#endif
