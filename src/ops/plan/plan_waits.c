/* plan_waits.c - which clusters wait for which. Each cluster has the set of all clusters that must run before it,
 * directly or not, and the list of those that wait for it directly: what it comes to wait for is passed on along these.
 * See plan.c. */
#include "ops/plan/planner.h"

/* An entry in a cluster's list: an edge to a cluster that waits for it. */
typedef struct edge {
  uint32_t to, next; /* 1 + the number of the list's next edge; 0: it is the last */
} edge;

static const edge *edge_at(const planner *p, uint32_t number) { return (const edge *)p->edges.data + (number - 1); }

static hg_status add_edge(planner *p, uint32_t from, uint32_t to) {
  edge added = {.to = to, .next = cluster_at(p, from)->first_edge};
  if (hg_array_append(&p->plan->allocator, &p->edges, &added, 1) == NULL) return hg_fail_memory("a plan", sizeof added);
  cluster_at(p, from)->first_edge = (uint32_t)p->edges.count;
  return HG_OK;
}

static hg_status check_memory(const planner *p) {
  return p->sets.is_out_of_memory ? hg_fail_memory("a plan", p->sets.nodes.count) : HG_OK;
}

static uint32_t next_of_launch(const planner *p, uint32_t number) {
  return p->next_member != NULL ? p->next_member[number] : number;
}

/* All clusters of a launch wait for what one of them waits for. 1: the set has grown. What comes back to the cluster
 * that passes it on, by way of a cluster that it has taken in, is in the set already, except for that cluster
 * itself. */
static int add_before(planner *p, uint32_t number, plan_set more) {
  int is_new = 0;
  uint32_t member = number;
  if (hg_set_has(&p->sets, more, number)) return 0;
  do {
    plan_set *before = &cluster_at(p, member)->before, all = hg_set_union(&p->sets, *before, more);
    is_new |= all != *before;
    *before = all;
    member = next_of_launch(p, member);
  } while (member != number);
  return is_new;
}

/* The clusters that wait for this cluster, or for one of its launch, come to wait for `more`. */
static hg_status pass_on(planner *p, uint32_t number, plan_set more) {
  p->stack.count = 0;
  HG_TRY(hg_walk_push(p, number));
  while (p->stack.count > 0) {
    uint32_t first = ((const uint32_t *)p->stack.data)[--p->stack.count], from = first;
    do {
      for (uint32_t e = cluster_at(p, from)->first_edge; e != 0; e = edge_at(p, e)->next)
        if (add_before(p, edge_at(p, e)->to, more)) HG_TRY(hg_walk_push(p, edge_at(p, e)->to));
      from = next_of_launch(p, from);
    } while (from != first);
  }
  return check_memory(p);
}

hg_status hg_plan_wait_for(planner *p, uint32_t number, const reading *r) {
  plan_set more = 0;
  for (size_t k = 0; k < r->numbers.count; k++) {
    uint32_t other = number_at(r, k);
    if (other == number || is_before(p, other, number)) continue; /* then everything before that is included already */
    HG_TRY(add_edge(p, other, number));
    more = hg_set_union(&p->sets, more, hg_set_with(&p->sets, cluster_at(p, other)->before, other));
  }
  if (more == 0 || !add_before(p, number, more)) return check_memory(p);
  return pass_on(p, number, more);
}

/* A cluster that was taken in remains between what it waits for and what waits for it, except for the cluster that took
 * it in. */
hg_status hg_plan_take_in(planner *p, uint32_t into, uint32_t other) {
  cluster *to = cluster_at(p, into), *from = cluster_at(p, other);
  plan_set own = hg_set_union(&p->sets, to->before, from->before);
  own = to->before = hg_set_without(&p->sets, own, into);
  plan_set more = hg_set_with(&p->sets, own, into);
  HG_TRY(pass_on(p, other, more));
  HG_TRY(pass_on(p, into, more));
  for (uint32_t e = from->first_edge; e != 0; e = edge_at(p, e)->next)
    if (edge_at(p, e)->to != into) HG_TRY(add_edge(p, into, edge_at(p, e)->to));
  return add_edge(p, other, into);
}

hg_status hg_plan_is_between(planner *p, uint32_t first, uint32_t last, int *is_between) {
  hg_walk_begin(p);
  *is_between = 0;
  HG_TRY(hg_walk_push(p, first));
  while (p->stack.count > 0) {
    uint32_t from = ((const uint32_t *)p->stack.data)[--p->stack.count];
    for (uint32_t e = cluster_at(p, from)->first_edge; e != 0; e = edge_at(p, e)->next) {
      uint32_t to = edge_at(p, e)->to;
      if (to == last || cluster_at(p, to)->stamp == p->epoch) continue;
      cluster_at(p, to)->stamp = p->epoch;
      *is_between |= is_before(p, first, to) && is_before(p, to, last);
      if (*is_between) return HG_OK;
      if (cluster_at(p, to)->is_taken) HG_TRY(hg_walk_push(p, to)); /* its path continues through the cluster that took
                                                                       it in */
    }
  }
  return HG_OK;
}

hg_status hg_plan_join_launch(planner *p, uint32_t launch, uint32_t number) {
  plan_set own = hg_set_union(&p->sets, cluster_at(p, launch)->before, cluster_at(p, number)->before);
  uint32_t next = p->next_member[launch];
  p->next_member[launch] = number;
  p->next_member[number] = next;
  (void)add_before(p, launch, own);
  uint32_t member = launch;
  do {
    own = hg_set_with(&p->sets, own, member);
    member = p->next_member[member];
  } while (member != launch);
  return pass_on(p, launch, own);
}
