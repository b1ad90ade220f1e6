/* dominance.h - immediate dominators of any flow graph, in nearly linear time. */
#ifndef HG_IR_DOMINANCE_H
#define HG_IR_DOMINANCE_H

#include <stdint.h>

/* The edges of a graph, one way: those of node v are list[start[v]] .. list[start[v + 1] - 1]. */
typedef struct ir_edges {
  const uint32_t *start, *list;
} ir_edges;

enum { IR_DOMINANCE_SCRATCH = 7 }; /* words of scratch a node */

/* Fills `dominator` (the root's is itself; UINT32_MAX where the root does not reach) and `preorder`, the nodes the root
 * reaches, dominators before what they dominate; returns how many those are. `in` holds the edges of `out` the other
 * way round. */
uint32_t ir_dominators(uint32_t count, uint32_t root, ir_edges out, ir_edges in, uint32_t *scratch, uint32_t *dominator,
                       uint32_t *preorder);

#endif
