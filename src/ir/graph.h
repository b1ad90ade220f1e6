/* graph.h - control flow of inlined code: basic blocks, orders, dominators, post-dominators, reducibility.
 *
 * It knows nothing of instructions: code is a list of nodes with up to two successors. Nodes are reachable from node 0
 * and a run of straight-line code has consecutive numbers. */
#ifndef HG_IR_GRAPH_H
#define HG_IR_GRAPH_H

#include "base/memory.h"
#include "hologram/base.h"

#define IR_NONE UINT32_MAX

enum {
  IR_NODE_BACK_NEXT = 1,  /* the edge to `next` closes a loop: its target dominates the node */
  IR_NODE_BACK_TAKEN = 2, /* so does the edge to `taken` */
  IR_NODE_ABORT = 4 /* the lane ends here with a fault, and is absent from barriers and collectives from then on */
};

typedef struct ir_node {
  uint32_t insn;  /* for the caller; not read here */
  uint32_t next;  /* the fall-through successor; IR_NONE at an end and after an unconditional branch */
  uint32_t taken; /* target of a branch, else IR_NONE */
  uint32_t flags; /* IR_NODE_*; the BACK bits are set by ir_graph_build */
} ir_node;

typedef struct ir_graph {
  uint32_t block_count;
  uint32_t *first, *size;      /* nodes first[b] .. first[b] + size[b] - 1 */
  uint32_t *next, *taken;      /* successor blocks or IR_NONE */
  uint32_t *predecessor_start; /* block_count + 1 entries into predecessors */
  uint32_t *predecessors;
  uint32_t *order;             /* blocks in reverse postorder; order[0] is the entry */
  uint32_t *position;          /* of a block in order */
  uint32_t *dominator;         /* immediate; of the entry: itself */
  uint32_t *post_dominator;    /* immediate; block_count (the virtual exit) where there is none */
  uint32_t *post_depth;        /* depth in the post-dominator tree; of the virtual exit: 0. block_count + 1 entries */
  uint8_t *doomed;             /* every path from the block ends in an abort: left out of the post-dominator tree */
  uint32_t irreducible_node;   /* IR_NONE, or the last node of a block that jumps into the middle of a loop */
  void *memory;
} ir_graph;

/* Builds the graph of nodes[0..count) and marks their back edges. Where irreducible_node is set, nothing after
 * `dominator` is computed. HG_OUT_OF_MEMORY. Release it whatever the result. */
hg_status ir_graph_build(const hg_allocator *allocator, ir_node *nodes, uint32_t count, ir_graph *graph);
void ir_graph_release(const hg_allocator *allocator, ir_graph *graph);

#endif
