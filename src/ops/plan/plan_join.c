/* plan_join.c - merges small maps that do not wait for each other into one launch, whatever their shapes, as many as a
 * program's buffers allow: launches would otherwise bound, for example, an optimiser's step over many tensors. See
 * plan.c. */
#include "ops/plan/planner.h"
#include "ops/graph/ops_tuning.h"

/* A launch that maps may be added to. */
typedef struct open_launch {
  uint32_t number, weight; /* number of its first cluster; nodes */
  uint32_t storage[OPS_MAX_BINDINGS], storage_count;
} open_launch;

static int add_storage(open_launch *l, uint32_t storage) {
  for (uint32_t i = 0; i < l->storage_count; i++)
    if (l->storage[i] == storage) return 1;
  if (l->storage_count == OPS_MAX_BINDINGS) return 0;
  l->storage[l->storage_count++] = storage;
  return 1;
}

/* Adds the storages that the cluster's nodes touch; *is_possible 0: they are too many, or a lane may have a fault of
 * its own there. */
static hg_status add_storages(planner *p, uint32_t number, open_launch *l, int *is_possible) {
  uint32_t i;
  hg_walk_begin(p);
  for (i = cluster_at(p, number)->first_node; i != 0; i = p->next_node[i - 1]) HG_TRY(hg_walk_push(p, i - 1));
  while (*is_possible && hg_walk_next(p, &i)) {
    const ops_node *node = node_at(p, i);
    int is_stored = p->storage_of[i] != 0, is_own = p->cluster_of[i] == number + 1;
    if (is_stored && !add_storage(l, p->storage_of[i] - 1)) *is_possible = 0;
    if (node->kind == OPS_INPUT || (is_stored && !is_own)) continue;
    if (ops_kind_is(node, OPS_BY_NUMBER)) *is_possible = 0;
    HG_TRY(hg_walk_into(p, i));
  }
  *is_possible &= l->storage_count > 0;
  return HG_OK;
}

/* Begins a launch with the cluster; *is_possible 0: no other map may join it. */
static hg_status may_join(planner *p, uint32_t number, open_launch *own, int *is_possible) {
  const cluster *c = cluster_at(p, number);
  uint64_t elements = ops_count(&c->space);
  *own = (open_launch){.number = number, .weight = c->weight};
  *is_possible = c->kind == MAP && c->weight < OPS_CLUSTER_NODES && elements > 0 && elements <= OPS_JOINED_ELEMENTS;
  return *is_possible ? add_storages(p, number, own, is_possible) : HG_OK;
}

/* 1 if its storages fit and neither side waits for the other: what holds for one of a launch's clusters holds for
 * all. */
static int can_take(const planner *p, open_launch *l, const open_launch *own) {
  if (l->weight + own->weight > OPS_CLUSTER_NODES) return 0;
  if (is_before(p, l->number, own->number) || is_before(p, own->number, l->number)) return 0;
  uint32_t count = l->storage_count;
  for (uint32_t i = 0; i < own->storage_count; i++)
    if (!add_storage(l, own->storage[i])) {
      l->storage_count = count;
      return 0;
    }
  l->weight += own->weight;
  return 1;
}

static hg_status join_all(planner *p, open_launch *open) {
  uint32_t open_count = 0;
  open_launch own;
  for (uint32_t i = 0; i < p->clusters.count; i++) {
    int is_possible;
    HG_TRY(hg_patience_ask(p->plan->target.patience));
    HG_TRY(may_join(p, i, &own, &is_possible));
    if (!is_possible) continue;
    uint32_t k = 0;
    while (k < open_count && !can_take(p, &open[k], &own)) k++;
    if (k < open_count) {
      p->launch_of[i] = open[k].number;
      HG_TRY(hg_plan_join_launch(p, open[k].number, i));
    } else if (open_count < OPS_JOINED_LAUNCHES) open[open_count++] = own;
  }
  return HG_OK;
}

hg_status hg_plan_join(planner *p) {
  const hg_allocator *allocator = &p->plan->allocator;
  uint32_t count = (uint32_t)p->clusters.count;
  p->launch_of = hg_allocate(allocator, count + 1u, sizeof *p->launch_of);
  if (p->launch_of == NULL) return hg_fail_memory("a plan", count);
  for (uint32_t i = 0; i < count; i++) p->launch_of[i] = i;
  if (!p->plan->for_gpu || (p->flags & HG_NO_FUSION) != 0) return HG_OK;
  p->next_member = hg_allocate(allocator, count + 1u, sizeof *p->next_member);
  open_launch *open = hg_allocate(allocator, OPS_JOINED_LAUNCHES, sizeof *open);
  hg_status status = open != NULL && p->next_member != NULL ? HG_OK : hg_fail_memory("a plan", OPS_JOINED_LAUNCHES);
  for (uint32_t i = 0; i < count && status == HG_OK; i++) p->next_member[i] = i;
  if (status == HG_OK) status = join_all(p, open);
  hg_release(allocator, open);
  return status;
}
