/* structure.h - structured control flow from any reducible unit: blocks, loops, if and else, for targets without goto.
 *
 * The result is a list, read from start to end like WebAssembly's: constructs open and close, and the number of a BREAK
 * or CONTINUE is that of the constructs between it and the one it refers to. No code is duplicated, so the length of
 * the list is linear in the unit. */
#ifndef HG_IR_STRUCTURE_H
#define HG_IR_STRUCTURE_H

#include "ir/ssa_order.h"

typedef enum ir_shape {
  IR_SHAPE_CODE,     /* block `value`: its effects; a branch is decided by the IF that follows */
  IR_SHAPE_BLOCK,    /* a construct that BREAK leaves: control goes on behind its END */
  IR_SHAPE_LOOP,     /* a construct whose start CONTINUE goes to; control that reaches its END leaves it */
  IR_SHAPE_IF,       /* on the condition of the block before */
  IR_SHAPE_ELSE,
  IR_SHAPE_END,      /* of a BLOCK, LOOP or IF */
  IR_SHAPE_BREAK,    /* `value` constructs out: 0 is the innermost */
  IR_SHAPE_CONTINUE, /* the same */
  IR_SHAPE_RETURN    /* end of the lane (exit, trap) */
} ir_shape;

typedef struct ir_structure_item {
  ir_shape shape;
  uint32_t value;
} ir_structure_item;

/* Fills `items` (ir_structure_item). HG_OUT_OF_MEMORY. */
hg_status ir_structure_build(const ssa_unit *unit, const ssa_order *order, hg_array *items);

/* Follows the list from every block and compares with the unit's edges. HG_INVALID_ARGUMENT where they differ (a bug).
 */
hg_status ir_structure_check(const ssa_unit *unit, const ssa_order *order, const hg_array *items);

#endif
