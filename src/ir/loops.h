/* loops.h - the natural loops of a unit and how they are nested. A loop is known by the block that is its header. */
#ifndef HG_IR_LOOPS_H
#define HG_IR_LOOPS_H

#include "ir/ssa_order.h"

typedef struct ir_loops {
  uint32_t *loop;   /* per block: header of the innermost loop around it; a header's is itself; SSA_NONE: none */
  uint32_t *parent; /* per header: of the next loop out; SSA_NONE */
  uint32_t count;
} ir_loops;

/* HG_OUT_OF_MEMORY; release it whatever the result. */
hg_status ir_loops_build(const ssa_unit *unit, const ssa_order *order, ir_loops *out);
void ir_loops_release(const ssa_unit *unit, ir_loops *loops);

/* 1 if the block lies in the loop. */
static inline int ir_in_loop(const ir_loops *l, uint32_t header, uint32_t block) {
  uint32_t h = l->loop[block];
  while (h != SSA_NONE && h != header) h = l->parent[h];
  return h == header;
}

#endif
