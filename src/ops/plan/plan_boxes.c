/* plan_boxes.c - updates in place: a launch writes only the elements of the box into the base's memory, so that a loop
 * which fills an array element by element costs only what it assigns. See plan.c.
 *
 * This requires that the base lies in the computation's own memory and that all other readers of it can run before. A
 * part of it that is read later is copied out before. The first updates of a small value are computed together with
 * what surrounds them, as element-wise operations: a launch would cost more. Without fusion all are, except what is
 * assembled from many parts (ops_is_fresh): that is one operation, which would write the whole for each part. */
#include "ops/plan/planner.h"
#include "ops/graph/ops_tuning.h"

#include "ops/graph/infer.h"

static uint64_t count_of(const planner *p, uint32_t index) { return ops_count(&node_at(p, index)->shape); }

/* ---- which could be ---------------------------------------------------------------------------------------------- */

/* 1 if the node may be inline. */
static int may_be_inline(const planner *p, uint32_t i) {
  return is_virtual(node_at(p, i)) || (is_element_wise(node_at(p, i)) && p->uses[i] <= 1);
}

/* By node: the last node that reads it, directly or through inline nodes. */
static void find_last_readers(const planner *p, uint32_t *last) {
  for (uint32_t i = p->node_count; i-- > 0;)
    for (uint32_t u = p->first_user[i]; u < p->first_user[i + 1]; u++) {
      uint32_t user = p->users[u], reader = may_be_inline(p, user) && last[user] > user ? last[user] : user;
      if (p->live[user] && reader > last[i]) last[i] = reader;
    }
}

/* 1 if the source reads the base through nodes that its launch would compute. */
static int source_reads(planner *p, uint32_t update, uint32_t base) {
  uint32_t source = node_at(p, update)->input[1] - 1;
  if (source < base) return 0;
  if (update - base > OPS_BOX_BETWEEN) return 1;
  p->epoch++;
  p->stamp[base] = p->epoch;
  for (uint32_t i = base + 1; i <= source; i++) {
    const ops_node *node = node_at(p, i);
    if (!is_virtual(node) && !is_element_wise(node)) continue;
    for (uint32_t j = 0; j < node->input_count; j++)
      if (p->stamp[node->input[j] - 1] == p->epoch) p->stamp[i] = p->epoch;
  }
  return p->stamp[source] == p->epoch;
}

static int may_be_box(const planner *p, uint32_t update, uint32_t length) {
  const ops_node *node = node_at(p, update);
  uint32_t base = node->input[0] - 1, source = node->input[1] - 1;
  int is_fused = (p->flags & HG_NO_FUSION) == 0;
  if (!is_fused && !ops_is_fresh(node)) return 0;
  if (p->ends[base] != 0 || (!ops_is_fresh(node) && count_of(p, source) > count_of(p, update) / 2)) return 0;
  if (!ops_is_blank(p->c, node) && !ops_kind_is(node_at(p, base), OPS_IN_MEMORY)) return 0;
  return !is_fused || length > OPS_BOX_UPDATES || count_of(p, update) > OPS_BOX_ELEMENTS;
}

/* A node that reads a part of the base, and may itself be read after the update, is written before. */
static void demand_parts(const planner *p, uint32_t update, uint32_t base, const uint32_t *last) {
  for (uint32_t u = p->first_user[base]; u < p->first_user[base + 1]; u++) {
    uint32_t user = p->users[u];
    int is_part = may_be_inline(p, user) && count_of(p, user) <= count_of(p, base) / OPS_BOX_PARTS;
    if (user != update && p->live[user] && is_part && last[user] > update) p->is_inline[user] = PLAN_DEMANDED;
  }
}

hg_status hg_plan_choose_boxes(planner *p) {
  const hg_allocator *allocator = &p->plan->allocator;
  uint32_t *last = hg_allocate(allocator, 2 * (uint64_t)p->node_count + 2, sizeof *last);
  if (last == NULL) return hg_fail_memory("a plan", p->node_count);
  uint32_t *length = last + p->node_count + 1; /* the length of the row of updates that a node ends */
  find_last_readers(p, last);
  for (uint32_t i = 0; i < p->node_count; i++) {
    if (!p->live[i] || node_at(p, i)->kind != OPS_UPDATE) continue;
    uint32_t base = node_at(p, i)->input[0] - 1, source = node_at(p, i)->input[1] - 1;
    length[i] = length[base] + 1;
    if (!may_be_box(p, i, length[i])) continue;
    p->boxes[i] |= PLAN_BOX;
    p->is_inline[i] = PLAN_DEMANDED;
    if (ops_is_blank(p->c, node_at(p, i))) continue;
    p->boxes[base] |= PLAN_BASE;
    p->is_inline[base] = PLAN_DEMANDED;
    if (count_of(p, source) > 1 && source_reads(p, i, base)) p->is_inline[source] = PLAN_DEMANDED;
    demand_parts(p, i, base, last);
  }
  hg_release(allocator, last);
  return HG_OK;
}

/* ---- which are --------------------------------------------------------------------------------------------------- */

/* Finds the clusters that read the base, other than the update's. *is_possible 0: one of them cannot run before it. */
static hg_status find_others(planner *p, uint32_t update, reading *others, int *is_possible) {
  const ops_node *node = node_at(p, update);
  uint32_t own = p->cluster_of[update], base = node->input[0] - 1;
  int is_one = count_of(p, node->input[1] - 1) == 1; /* an update may read its own base before it writes */
  *is_possible = 1;
  if (ops_is_blank(p->c, node)) return HG_OK;
  hg_walk_begin(p);
  HG_TRY(hg_walk_push(p, base));
  while (p->stack.count > 0 && *is_possible) {
    uint32_t at = ((const uint32_t *)p->stack.data)[--p->stack.count];
    for (uint32_t u = p->first_user[at]; u < p->first_user[at + 1]; u++) {
      uint32_t user = p->users[u], in = p->cluster_of[user];
      if (!p->live[user] || p->stamp[user] == p->epoch || (user == update && at == base)) continue;
      p->stamp[user] = p->epoch;
      if (own == NONE && user >= update) continue; /* not in a cluster yet */
      if (in == own && own != NONE && !is_one) *is_possible = 0;
      if (in == own && own != NONE) continue;
      if (in != NONE && own != NONE && is_before(p, own - 1, in - 1)) *is_possible = 0;
      if (in == NONE) HG_TRY(hg_walk_push(p, user));
      else if (!hg_array_push(&p->plan->allocator, &others->numbers, in - 1))
        return hg_fail_memory("a plan", sizeof user);
    }
  }
  return HG_OK;
}

hg_status hg_plan_read_before(planner *p, uint32_t update, reading *r) {
  int is_possible;
  return find_others(p, update, r, &is_possible);
}

hg_status hg_plan_come_before(planner *p, uint32_t index) {
  const ops_node *node = node_at(p, index);
  uint32_t own = p->cluster_of[index] - 1;
  for (uint32_t j = 0; j < node->input_count; j++) {
    uint32_t base = node->input[j] - 1;
    if ((p->boxes[base] & PLAN_BASE) == 0) continue;
    for (uint32_t u = p->first_user[base]; u < p->first_user[base + 1]; u++) {
      uint32_t update = p->users[u], in = p->cluster_of[update];
      int is_later = (p->boxes[update] & PLAN_BOX) != 0 && update != index && in != NONE &&
                     node_at(p, update)->input[0] == base + 1;
      if (!is_later || in == own + 1 || is_before(p, in - 1, own) || is_before(p, own, in - 1)) continue;
      reading r = {.numbers = {.element_size = sizeof(uint32_t)}};
      if (!hg_array_push(&p->plan->allocator, &r.numbers, own)) return hg_fail_memory("a plan", sizeof own);
      hg_status status = hg_plan_wait_for(p, in - 1, &r);
      hg_array_release(&p->plan->allocator, &r.numbers);
      HG_TRY(status);
    }
  }
  return HG_OK;
}

/* From the last update to the first, so that all updates of a row lie where the last one's output is. */
hg_status hg_plan_place_boxes(planner *p) {
  for (uint32_t i = p->node_count; i-- > 0;) {
    if ((p->boxes[i] & PLAN_BOX) == 0) continue;
    uint32_t number = p->cluster_of[i] - 1, base = node_at(p, i)->input[0] - 1;
    reading others = {.numbers = {.element_size = sizeof(uint32_t)}};
    int is_possible;
    hg_status status = find_others(p, i, &others, &is_possible);
    int is_blank = ops_is_blank(p->c, node_at(p, i));
    is_possible = is_possible && (is_blank || p->storage_of[base] == 0);
    if (status == HG_OK && is_possible) status = hg_plan_wait_for(p, number, &others);
    hg_array_release(&p->plan->allocator, &others.numbers);
    HG_TRY(status);
    if (!is_possible) continue;
    HG_TRY(hg_plan_give_storage(p, i));
    if (!is_blank) p->storage_of[base] = p->storage_of[i];
  }
  return HG_OK;
}
