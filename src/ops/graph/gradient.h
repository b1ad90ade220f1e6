/* gradient.h - reverse mode: gradient.c walks the nodes backwards from the value, gradient_nodes.c has the rule for
 * each kind of node. A call of a formula with a gradient of its own is a single step.
 *
 * Circle: gradient fence: a fence has values computed again, whose gradients are asked for. */
#ifndef HG_OPS_GRADIENT_H
#define HG_OPS_GRADIENT_H

#include "ops/graph/formula.h"

typedef struct ops_gradient {
  hg_computation *c;
  value_id value;      /* the last one: nodes up to this one take part */
  value_id at;         /* the node whose cotangent is flowing to its inputs */
  value_id *adjoint;   /* by value: its gradient so far; 0: none yet */
  uint8_t *depends;    /* by value: 1: it depends on a requested value, 2: it is one */
  uint32_t *call;      /* by value: 1 + the call that it is the result of; 0: there is none */
  uint32_t *walked;    /* by value: the last walk through a call that came by */
  value_id *queue;     /* of a walk */
  uint32_t walks;
} ops_gradient;

/* Adds to a value's gradient, summed over the axes that were broadcast, and cast. 0 adds nothing. */
void ops_flow(ops_gradient *g, value_id to, value_id amount);
/* Passes the complete gradient of a node on to its inputs. */
void ops_flow_through(ops_gradient *g, value_id of, value_id amount);

/* Evaluates formulas (as in a gradient column) with names; results[i] is 0 if `wanted` has no bit i, or if the result
 * is `0`. */
typedef struct ops_rule {
  const ops_row *row;          /* the row whose input names `inputs` have; NULL: x, y and z */
  const char *text;
  ops_parsed parsed;           /* of the table's texts; empty for others */
  const value_id *inputs;
  uint32_t input_count;
  const ops_item *arguments;   /* of the row; or NULL, and then: */
  ops_item axes;               /* `axes` and `axis` of a text that belongs to no row */
  value_id y, g;
} ops_rule;
int ops_apply_rule(ops_gradient *g, const ops_rule *rule, uint32_t wanted, value_id *results);

/* Adds to the gradients those of sum(values * cotangents) by each of `wrt`; 0: none so far. */
void ops_gradients(hg_computation *c, const value_id *values, const value_id *cotangents, size_t value_count,
                   const value_id *wrt, size_t count, value_id *gradients);

/* fence.c: 1 if the value is a fence's, whose cotangents then go on where they are complete. */
int ops_flow_fence(ops_gradient *g, value_id value);
/* Whether a fence's gradient goes to what is asked for, although its value may not be computed from it. */
int ops_fence_depends(const ops_gradient *g, const ops_node *node);

/* The sum over axes (bits), also of one or no elements. */
value_id ops_sum(hg_computation *c, value_id value, uint32_t axes, int keep);

#endif
