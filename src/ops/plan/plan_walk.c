/* plan_walk.c - walks from nodes backwards to their inputs. See planner.h. */
#include "ops/plan/planner.h"

hg_status hg_walk_push(planner *p, uint32_t number) {
  return hg_array_push(&p->plan->allocator, &p->stack, number) ? HG_OK : hg_fail_memory("a plan", p->stack.count);
}

hg_status hg_walk_into(planner *p, uint32_t index) {
  const ops_node *node = node_at(p, index);
  for (uint32_t j = node->input_count; j-- > 0;) HG_TRY(hg_walk_push(p, node->input[j] - 1));
  return HG_OK;
}

int hg_walk_next(planner *p, uint32_t *index) {
  while (p->stack.count > 0) {
    *index = ((const uint32_t *)p->stack.data)[--p->stack.count];
    if (p->stamp[*index] == p->epoch) continue;
    p->stamp[*index] = p->epoch;
    return 1;
  }
  return 0;
}
