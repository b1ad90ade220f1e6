/* control.h - how divergent the control is under which each block runs: levels, propagated along control dependence.
 *
 * A block depends on a branch when it lies between one of the branch's successors and the branch's immediate
 * post-dominator in the post-dominator tree (Ferrante, Ottenstein, Warren, "The Program Dependence Graph and Its Use in
 * Optimization", 1987). */
#ifndef HG_IR_CONTROL_H
#define HG_IR_CONTROL_H

#include "ir/graph.h"

enum { IR_LEVELS = 3 };

typedef struct ir_control {
  const ir_graph *graph;
  uint8_t *level;              /* per block, below IR_LEVELS; only rises */
  uint32_t
      *climb[IR_LEVELS]; /* per level and block: upwards in the post-dominator tree, past what has the level already */
} ir_control;

/* Called for each block whose level rises. */
typedef void (*ir_control_raised)(void *user, uint32_t block);

/* Begins at level 0 everywhere, in memory of the caller: `words` has IR_LEVELS x block_count, `bytes` block_count
 * elements. */
void ir_control_begin(ir_control *control, const ir_graph *graph, uint32_t *words, uint8_t *bytes);

/* The branch at the end of `block` has this level: raises all blocks that depend on it. Of a doomed side only the first
 * block is raised; the caller passes the level on from there, by a call for that block. */
void ir_control_branch(ir_control *control, uint32_t block, uint8_t level, ir_control_raised raised, void *user);

#endif
