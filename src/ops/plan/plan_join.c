/* plan_join.c - small maps that do not wait for each other become one launch, whatever their shapes: an optimiser's
 * step of many tensors is bound by launches otherwise. As many as the buffers of a program allow. See plan.c. */
#include "ops/plan/planner.h"

enum {
  MOST_ELEMENTS = 1 << 22, /* of a map that joins; what is larger fills a GPU for long enough by itself */
  MOST_LAUNCHES = 64       /* to which a map may still be added */
};

/* A launch to which maps may be added. */
typedef struct open_launch {
  uint32_t number, weight; /* of its first cluster; nodes */
  uint32_t storage[OPS_MAX_BINDINGS], storage_count;
} open_launch;

static int add_storage(open_launch *l, uint32_t storage) {
  for (uint32_t i = 0; i < l->storage_count; i++)
    if (l->storage[i] == storage) return 1;
  if (l->storage_count == OPS_MAX_BINDINGS) return 0;
  l->storage[l->storage_count++] = storage;
  return 1;
}

/* The storages that the value takes a cluster to touch; 0: too many, or a lane may have a fault of its own there. */
static int add_value(planner *p, uint32_t i, uint32_t number, open_launch *l) {
  const ops_node *node = node_at(p, i);
  if (p->stamp[i] == p->epoch) return 1;
  p->stamp[i] = p->epoch;
  int is_own = p->cluster_of[i] == number + 1;
  if (p->storage_of[i] != 0 && !add_storage(l, p->storage_of[i] - 1)) return 0;
  if (node->kind == OPS_INPUT || (p->storage_of[i] != 0 && !is_own)) return 1;
  if (node->kind == OPS_GATHER) return 0;
  for (uint32_t j = 0; j < node->input_count; j++)
    if (!add_value(p, node->input[j] - 1, number, l)) return 0;
  return 1;
}

/* The cluster as a launch of its own; 0: it is to stay one. */
static int may_join(planner *p, uint32_t number, open_launch *own) {
  const cluster *c = (const cluster *)p->clusters.data + number;
  uint64_t elements = ops_count(&c->space);
  *own = (open_launch){.number = number, .weight = c->weight};
  if (c->kind != MAP || c->weight >= MOST_NODES || elements == 0 || elements > MOST_ELEMENTS) return 0;
  p->epoch++;
  for (uint32_t i = 0; i < p->node_count; i++)
    if (p->cluster_of[i] == number + 1 && !add_value(p, i, number, own)) return 0;
  return own->storage_count > 0;
}

static int is_member(const planner *p, uint32_t number, uint32_t launch) { return p->launch_of[number] == launch; }

/* Its storages fit, and nobody in the launch waits for it or the other way round. */
static int can_take(const planner *p, open_launch *l, const open_launch *own) {
  if (l->weight + own->weight > MOST_NODES) return 0;
  for (uint32_t i = 0; i < p->clusters.count; i++)
    if (is_member(p, i, l->number) && (is_before(p, i, own->number) || is_before(p, own->number, i))) return 0;
  uint32_t count = l->storage_count;
  for (uint32_t i = 0; i < own->storage_count; i++)
    if (!add_storage(l, own->storage[i])) {
      l->storage_count = count;
      return 0;
    }
  l->weight += own->weight;
  return 1;
}

/* All of a launch wait for what one of them waits for, and who waits for one waits for all. `members`: room for a row
 * of bits. */
static void take(planner *p, uint32_t launch, uint32_t number, uint64_t *members) {
  uint64_t *all = row_of(p, launch);
  p->launch_of[number] = launch;
  memset(members, 0, p->row_words * sizeof *members);
  for (uint32_t i = 0; i < p->clusters.count; i++) members[i / 64] |= (uint64_t)is_member(p, i, launch) << i % 64;
  for (uint32_t w = 0; w < p->row_words; w++) all[w] |= row_of(p, number)[w];
  for (uint32_t i = 0; i < p->clusters.count; i++) {
    uint64_t *row = row_of(p, i), common = 0;
    int is_own = is_member(p, i, launch);
    for (uint32_t w = 0; w < p->row_words && !is_own; w++) common |= row[w] & members[w];
    for (uint32_t w = 0; w < p->row_words && is_own; w++) row[w] |= all[w];
    for (uint32_t w = 0; w < p->row_words && common != 0; w++) row[w] |= all[w] | members[w];
  }
}

static hg_status join_all(planner *p, open_launch *open, uint64_t *members) {
  uint32_t open_count = 0;
  open_launch own;
  for (uint32_t i = 0; i < p->clusters.count; i++) {
    HG_TRY(hg_patience_ask(p->plan->target.patience));
    if (!may_join(p, i, &own)) continue;
    uint32_t k = 0;
    while (k < open_count && !can_take(p, &open[k], &own)) k++;
    if (k < open_count) take(p, open[k].number, i, members);
    else if (open_count < MOST_LAUNCHES) open[open_count++] = own;
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
  open_launch *open = hg_allocate(allocator, MOST_LAUNCHES, sizeof *open);
  uint64_t *members = hg_allocate(allocator, p->row_words, sizeof *members);
  hg_status status =
      open != NULL && members != NULL ? join_all(p, open, members) : hg_fail_memory("a plan", MOST_LAUNCHES);
  hg_release(allocator, members);
  hg_release(allocator, open);
  return status;
}
