/* gradient.h - reverse mode: gradient.c walks the nodes from the value back, gradient_nodes.c has the rule of each kind
 * of node. A call of a formula that has a gradient of its own is one step. */
#ifndef HG_OPS_GRADIENT_H
#define HG_OPS_GRADIENT_H

#include "ops/graph/formula.h"

typedef struct ops_gradient {
  hg_computation *c;
  value_id value;      /* nodes up to here take part */
  value_id at;         /* the node whose cotangent flows along its inputs */
  value_id *adjoint;   /* by value: its gradient so far; 0: none yet */
  uint8_t *depends;    /* by value: 1 on one of those that are asked for, 2 it is one */
  uint32_t *call;      /* by value: 1 + the call that it is the result of; 0: no such call */
} ops_gradient;

/* Adds to a value's gradient: it is summed over what was broadcast, and cast. 0 adds nothing. */
void ops_flow(ops_gradient *g, value_id to, value_id amount);
/* Along the inputs of a node whose gradient is complete. */
void ops_flow_through(ops_gradient *g, value_id of, value_id amount);

/* Evaluates formulas (as in a gradient column) with names; results[i] is 0 where `wanted` has no bit i, or it is none.
 */
typedef struct ops_rule {
  const ops_row *row;          /* whose inputs' names `inputs` have; NULL: x, y and z */
  const char *text;
  ops_parsed parsed;           /* of the table's texts; of others it is empty */
  const value_id *inputs;
  uint32_t input_count;
  const ops_item *arguments;   /* of the row; or NULL and */
  ops_item axes;               /* `axes` and `axis` of a text without a row */
  value_id y, g;
} ops_rule;
int ops_apply_rule(ops_gradient *g, const ops_rule *rule, uint32_t wanted, value_id *results);

/* Sum over axes (bits); also of one or no elements. */
value_id ops_sum(hg_computation *c, value_id value, uint32_t axes, int keep);

#endif
