/* order.h - an order of a unit's blocks in which predecessors come first (back edges apart) and every loop is
 * contiguous. Code in this order needs only jumps over blocks and back to a loop's start. */
#ifndef HG_VECTOR_ORDER_H
#define HG_VECTOR_ORDER_H

#include "ir/loops.h"

/* Places in the order are numbered from 0. A loop is known by its header. */
typedef struct vector_order {
  uint32_t count;
  uint32_t *block;               /* per place */
  uint32_t *place;               /* per block; SSA_NONE: unreachable */
  const uint32_t *loop, *parent; /* those of ir_loops */
  uint32_t *end;                 /* per header: place of the loop's last block */
} vector_order;

/* `loops` must outlive it. HG_OUT_OF_MEMORY. Release it whatever the result. */
hg_status hg_vector_order_build(const ssa_unit *unit, const ssa_order *order, const ir_loops *loops, vector_order *out);
void hg_vector_order_release(const ssa_unit *unit, vector_order *out);

/* 1 if the block lies in the loop. */
static inline int vector_in_loop(const vector_order *o, uint32_t header, uint32_t block) {
  return o->place[block] >= o->place[header] && o->place[block] <= o->end[header];
}

#endif
