/* plan_places.c - how often a launch computes a node. A node of the cluster that is read at other elements than the
 * reader's own (through a slice, for example, or within a padding) is computed again for each such place, with
 * everything that it depends on. The alternative is a launch of its own that writes it, and a load. See plan.c. */
#include "ops/plan/planner.h"
#include "ops/graph/ops_tuning.h"

#include "atlas/tables.h"

enum { OWN_PLACE = 1 /* the set that only contains the reader's own element */ };

/* 1 if element i is element i of the node's input, or the input's only one along an axis. */
static int stays(const ops_node *node) {
  int last = -1;
  if (node->kind != OPS_VIEW) return !ops_kind_is(node, OPS_MOVES);
  for (uint32_t j = 0; j < node->shape.rank; j++) {
    if (node->shape.size[j] == 1 || node->view.axis[j] < 0) continue;
    if (node->view.axis[j] <= last || node->view.step[j] != 1 || node->view.start[node->view.axis[j]] != 0) return 0;
    last = node->view.axis[j];
  }
  return 1;
}

/* 1 if the node is computed where it is read: it is inline, or in the cluster. */
static int is_inside(const planner *p, uint32_t i, uint32_t number) {
  return p->cluster_of[i] == number + 1 || (p->cluster_of[i] == NONE && node_at(p, i)->kind != OPS_INPUT);
}

/* Instructions for one element; if the node reads a storage, those of the address and the load. */
static uint32_t work_of(const planner *p, uint32_t index, uint32_t number) {
  const ops_node *node = node_at(p, index);
  uint32_t work = ops_kind_of(node)->work;
  if (node->kind == OPS_POINTWISE) work = ops_work_of((atlas_op)node->op);
  if (ops_kind_is(node, OPS_AROUND)) {
    const ops_shape *inside = &node_at(p, node->input[node->kind == OPS_PAD ? 0 : 1] - 1)->shape;
    for (uint32_t d = 0; d < node->shape.rank; d++)
      work += node->shape.size[d] != inside->size[d] ? OPS_WORK_OF_EDGE : 0;
  }
  for (uint32_t j = 0; j < node->input_count; j++)
    work += is_inside(p, node->input[j] - 1, number) ? 0 : OPS_WORK_OF_LOAD;
  return work;
}

/* 1: the node, through what it has inline, reads an element of the cluster other than its own. A walk reaches a node by
 * two kinds of paths; those that are not element by element count with different numbers. */
static hg_status reads_elsewhere(planner *p, uint32_t index, uint32_t number, int *is_elsewhere) {
  uint32_t at = index;
  *is_elsewhere = 0;
  hg_walk_begin(p);
  do {
    uint32_t way = at >= p->node_count ? p->node_count : 0;
    const ops_node *node = node_at(p, at - way);
    if (!stays(node)) way = p->node_count;
    for (uint32_t j = 0; j < node->input_count; j++) {
      uint32_t from = node->input[j] - 1;
      *is_elsewhere |= p->cluster_of[from] == number + 1 && way != 0;
      if (p->cluster_of[from] == NONE) HG_TRY(hg_walk_push(p, way + from));
    }
  } while (!*is_elsewhere && hg_walk_next(p, &at));
  return HG_OK;
}

static uint32_t places_of(const plan_places *own) {
  uint64_t places = (uint64_t)own->count + own->elsewhere;
  return places < OPS_WORK_OF_ELEMENT ? (uint32_t)places : OPS_WORK_OF_ELEMENT;
}

/* The set of places that a node passes on to its input: its own unless it is read elsewhere; then a new one that no
 * node before it has passed on. */
static uint32_t set_of(const planner *p, uint32_t i) { return p->places[i].elsewhere == 0 ? p->places[i].set : i + 2; }
static uint32_t set_for_input(const planner *p, uint32_t i) {
  return stays(node_at(p, i)) ? set_of(p, i) : p->node_count + i + 2;
}

/* The input is needed at these places, too. 1: it was not needed anywhere before. */
static int pass_on(planner *p, uint32_t i, uint32_t input, uint32_t number) {
  plan_places *own = &p->places[i], *to = &p->places[input];
  uint32_t set = set_for_input(p, i), is_new = to->set == 0;
  if (is_new) {
    to->set = set;
    to->count = places_of(own);
  } else if (set != to->set && set != to->last) {
    to->last = set;
    to->elsewhere = places_of(to) + places_of(own) - to->count;
  }
  if (own->is_above && p->cluster_of[input] == number + 1) to->is_read = 1;
  if (own->is_above && p->cluster_of[input] == NONE) to->is_above = 1;
  return is_new != 0;
}

/* Counts at how many places a node of the cluster, and what is inline there, is needed for one element of the node
 * `index`, if that joins: for nodes from the result on. The counts of all others are 0, as all are before and after
 * forget_places. */
static uint32_t count_places(planner *p, uint32_t index, uint32_t number) {
  uint32_t i = index;
  p->places[index] = (plan_places){.set = OWN_PLACE, .count = 1, .is_above = 1};
  for (uint32_t left = 1;; i--) {
    if (p->places[i].set == 0) continue;
    left--;
    for (uint32_t j = 0; j < node_at(p, i)->input_count; j++) {
      uint32_t from = node_at(p, i)->input[j] - 1;
      if (is_inside(p, from, number)) left += (uint32_t)pass_on(p, i, from, number);
    }
    if (left == 0) return i;
  }
}

static void forget_places(planner *p, uint32_t first, uint32_t index) {
  memset(p->places + first, 0, (index + 1u - first) * sizeof *p->places);
}

/* 1 for a row's reduction, which is available for that row only, and a product, available for its own element only. */
static int is_out_of_reach(const planner *p, uint32_t i, uint32_t number) {
  const ops_node *node = node_at(p, i);
  return ops_kind_is(node, OPS_FOLD) && p->cluster_of[i] == number + 1 && p->places[i].set != 0 &&
         set_of(p, i) != OWN_PLACE;
}

hg_status hg_plan_is_worth_anew(planner *p, uint32_t index, uint32_t number, int *is_worth) {
  int is_elsewhere;
  HG_TRY(reads_elsewhere(p, index, number, &is_elsewhere));
  *is_worth = !is_elsewhere;
  if (!is_elsewhere) return HG_OK;
  uint64_t work = 0, bytes = 0, count = ops_count(&cluster_at(p, number)->space);
  uint32_t first = count_places(p, index, number);
  for (uint32_t i = first; i < index; i++) {
    const ops_node *node = node_at(p, i);
    uint32_t places = places_of(&p->places[i]), had = p->copies[i] > 1 ? p->copies[i] : 1;
    if (is_out_of_reach(p, i, number)) work = OPS_WORK_OF_ELEMENT + 1;
    if (places > had) work += (uint64_t)(places - had) * work_of(p, i, number);
    if (p->places[i].is_read) /* it is written, unless it is anyway, and read */
      bytes += ops_count(&node->shape) * atlas_bytes((atlas_type)node->type) * ((p->ends[i] & PUT_OUT) != 0 ? 1 : 2);
  }
  forget_places(p, first, index);
  uint64_t launch = p->plan->for_gpu ? OPS_WORK_OF_LAUNCH_ON_GPU : OPS_WORK_OF_LAUNCH;
  *is_worth = work <= OPS_WORK_OF_ELEMENT &&
              work * count <= launch + bytes * (p->plan->for_gpu ? OPS_WORK_OF_BYTE_ON_GPU : OPS_WORK_OF_BYTE);
  return HG_OK;
}

hg_status hg_plan_note_places(planner *p, uint32_t index, uint32_t number) {
  int is_elsewhere;
  HG_TRY(reads_elsewhere(p, index, number, &is_elsewhere));
  if (!is_elsewhere) return HG_OK;
  uint32_t first = count_places(p, index, number);
  for (uint32_t i = first; i < index; i++)
    if (places_of(&p->places[i]) > p->copies[i]) p->copies[i] = places_of(&p->places[i]);
  forget_places(p, first, index);
  return HG_OK;
}
