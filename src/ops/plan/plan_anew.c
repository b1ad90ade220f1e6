/* plan_anew.c - values that their readers compute again, in place of one launch that stores them and others that load
 * them: a normalised row, for example, is two operations from the row, which lies in memory, and from its statistics,
 * which are few. See plan.c. */
#include "ops/plan/planner.h"
#include "ops/graph/ops_tuning.h"

#include "atlas/tables.h"

static uint64_t bytes_of(const planner *p, uint32_t i) {
  const ops_node *node = node_at(p, i);
  return ops_count(&node->shape) * atlas_bytes((atlas_type)node->type);
}

/* 1 for what some launch writes over. */
static int changes(const planner *p, uint32_t i) {
  const ops_node *node = node_at(p, i);
  if ((p->boxes[i] & (PLAN_BOX | PLAN_BASE)) != 0 || (p->ends[i] & UPDATES) != 0) return 1;
  return node->kind == OPS_INPUT && ((const ops_input *)p->c->inputs.data)[node->index].update != 0;
}

/* What one more reader of a value computes and loads. */
typedef struct anew {
  uint32_t cluster;     /* of the value: 1 + number */
  uint64_t few, most;   /* bytes up to which a load counts as an instruction only, and bytes of the value itself */
  uint32_t work, large; /* instructions for an element; 1 + the only load of more than a few bytes, 0: there is none */
} anew;

/* 1 for what the reader computes; 0 for what it loads: another launch has stored it, or stores it for this reader. */
static int is_computed(const planner *p, const anew *of, uint32_t i) {
  const ops_node *node = node_at(p, i);
  uint32_t in = p->cluster_of[i];
  if (node->kind == OPS_INPUT || p->storage_of[i] != 0) return 0;
  if (in == NONE) return 1;
  if (p->ends[i] != 0 || p->boxes[i] != 0) return 0;
  return in == of->cluster ? bytes_of(p, i) > of->few : p->is_inline[i] == PLAN_ANEW;
}

/* *is_possible 0: nothing else is to be computed or loaded twice. */
static void add(const planner *p, uint32_t i, anew *of, int *is_possible) {
  const ops_node *node = node_at(p, i);
  if (is_computed(p, of, i)) {
    of->work += is_virtual(node) ? 0 : ops_work_of((atlas_op)node->op);
    *is_possible &= is_virtual(node) || node->kind == OPS_POINTWISE;
    return;
  }
  of->work += OPS_WORK_OF_LOAD;
  *is_possible &= !changes(p, i);
  if (bytes_of(p, i) <= of->few) return;
  *is_possible &= bytes_of(p, i) <= of->most && (of->large == 0 || of->large == i + 1);
  of->large = i + 1;
}

/* How often launches that read a node, through what they have inline, would compute each of its elements. */
static hg_status count_anew(planner *p, uint32_t index, uint64_t *times) {
  uint64_t count = ops_count(&node_at(p, index)->shape);
  uint32_t i;
  *times = 0;
  hg_walk_begin(p);
  HG_TRY(hg_walk_push(p, index));
  while (hg_walk_next(p, &i))
    for (uint32_t u = p->first_user[i]; u < p->first_user[i + 1]; u++) {
      uint32_t user = p->users[u], in = p->cluster_of[user];
      if (!p->live[user] || in == p->cluster_of[index]) continue;
      if (in == NONE) HG_TRY(hg_walk_push(p, user));
      else if (cluster_at(p, in - 1)->stamp != p->epoch) {
        cluster_at(p, in - 1)->stamp = p->epoch;
        *times += (ops_count(&cluster_at(p, in - 1)->space) + count - 1) / count;
      }
    }
  return HG_OK;
}

/* 1 if computing the node in each launch that reads it costs less than storing it. */
static hg_status is_cheaper_anew(planner *p, uint32_t index, anew *of, int *is_cheaper) {
  uint64_t times = 0;
  uint32_t i;
  if (of->most > 0 && is_computed(p, of, index)) HG_TRY(count_anew(p, index, &times));
  *is_cheaper = times > 0;
  hg_walk_begin(p);
  HG_TRY(hg_walk_push(p, index));
  while (*is_cheaper && hg_walk_next(p, &i)) {
    add(p, i, of, is_cheaper);
    if (is_computed(p, of, i)) HG_TRY(hg_walk_into(p, i));
  }
  uint32_t worth = (p->plan->for_gpu ? OPS_WORK_OF_BYTE_ON_GPU : OPS_WORK_OF_BYTE) *
                   atlas_bytes((atlas_type)node_at(p, index)->type);
  *is_cheaper = *is_cheaper && of->work * times <= worth;
  return HG_OK;
}

/* The node is computed again with what it takes along of its own launch. */
static hg_status mark(planner *p, uint32_t index, const anew *of) {
  uint32_t i;
  hg_walk_begin(p);
  HG_TRY(hg_walk_push(p, index));
  while (hg_walk_next(p, &i)) {
    if (!is_computed(p, of, i)) continue;
    if (p->cluster_of[i] == of->cluster) p->is_inline[i] = PLAN_ANEW;
    HG_TRY(hg_walk_into(p, i));
  }
  return HG_OK;
}

hg_status hg_plan_choose_anew(planner *p) {
  if (p->clusters.count < 2 || (p->flags & HG_NO_FUSION) != 0) return HG_OK;
  for (uint32_t i = 0; i < p->node_count; i++) {
    int is_cheaper;
    uint64_t bytes = bytes_of(p, i);
    anew of = {.cluster = p->cluster_of[i], .few = bytes / OPS_ANEW_FEW, .most = bytes};
    if (!p->live[i] || p->cluster_of[i] == NONE || node_at(p, i)->kind != OPS_POINTWISE) continue;
    HG_TRY(is_cheaper_anew(p, i, &of, &is_cheaper));
    if (is_cheaper) HG_TRY(mark(p, i, &of));
  }
  return HG_OK;
}
