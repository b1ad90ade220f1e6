/* ssa_order.h - the order of a unit's blocks: reverse postorder and dominators, as of now. */
#ifndef HG_IR_SSA_ORDER_H
#define HG_IR_SSA_ORDER_H

#include "ir/ssa.h"

typedef struct ssa_order {
  uint32_t count;      /* reachable blocks */
  uint32_t *block;     /* in reverse postorder, the true side of a branch first; block[0] is the entry */
  uint32_t *position;  /* per block; SSA_NONE: not reachable */
  uint32_t *edge;      /* two a block: for each successor, which of its predecessors this edge is */
  uint32_t *dominator; /* per block: immediate; the entry's is itself */
  uint32_t *open, *close; /* per block: dominator-tree intervals */
} ssa_order;

/* HG_OUT_OF_MEMORY; release it whatever the result. */
hg_status ir_ssa_order_build(const ssa_unit *unit, ssa_order *order);
/* Without dominators, for walks that do not need them: half the time. */
hg_status ir_ssa_order_number(const ssa_unit *unit, ssa_order *order);
void ir_ssa_order_release(const ssa_unit *unit, ssa_order *order);

/* 1 if block a dominates block b (a block dominates itself). */
static inline int ssa_dominates(const ssa_order *o, uint32_t a, uint32_t b) {
  return o->open[a] <= o->open[b] && o->close[b] <= o->close[a];
}

#endif
