/* uniform_flow.c - which blocks all lanes of a tile reach together.
 *
 * The analysis of control gives a first answer. But after a divergent branch, code continues with the next block in
 * order. So everything between the branch and the block where its lanes reconverge is masked, and so is every block of
 * a divergent loop. */
#include "vector/lower.h"

#include <string.h>

int hg_vector_diverges(const vector_lowering *l, uint32_t block) {
  const ssa_block *b = ssa_block_at(l->unit, block);
  return b->end == SSA_BRANCH && l->analysis.fact[b->condition].level == IR_LANE;
}

static int is_doomed(const vector_lowering *l, uint32_t block) {
  return l->control.graph.doomed[l->control.group_of[l->dominance.position[block]]];
}

/* The immediate post-dominator, with a run of blocks as one node; SSA_NONE: none. A block that can only end in a trap
 * counts as the branch that leads to it. */
static uint32_t step_up(const vector_lowering *l, uint32_t block) {
  const ir_graph *g = &l->control.graph;
  while (is_doomed(l, block) && l->dominance.dominator[block] != block) block = l->dominance.dominator[block];
  if (is_doomed(l, block)) return SSA_NONE;
  uint32_t k = l->dominance.position[block], group = l->control.group_of[k];
  if (k + 1 < g->first[group] + g->size[group]) return l->dominance.block[k + 1];
  group = g->post_dominator[group];
  return group == g->block_count ? SSA_NONE : l->dominance.block[g->first[group]];
}

#define UNKNOWN (SSA_NONE - 1)

/* The nearest uniform post-dominator: where the lanes that were in `block` together reconverge. Answers are cached. */
static uint32_t reconvergence_of(vector_lowering *l, uint32_t block) {
  uint32_t at = step_up(l, block), met;
  while (at != SSA_NONE && !l->uniform[at] && l->reconvergence[at] == UNKNOWN) at = step_up(l, at);
  met = at == SSA_NONE || l->uniform[at] ? at : l->reconvergence[at];
  for (uint32_t b = step_up(l, block); b != at; b = step_up(l, b)) l->reconvergence[b] = met;
  return met;
}

/* Masks a range. Places below *done, from the last call's start on, are masked already: ranges come in order and
 * overlap. */
static int mask_range(vector_lowering *l, uint32_t first, uint32_t end, uint32_t *done) {
  int changed = 0;
  if (first < *done) first = *done;
  for (uint32_t k = first; k < end; k++) {
    changed |= l->uniform[l->order.block[k]];
    l->uniform[l->order.block[k]] = 0;
  }
  if (end > *done) *done = end;
  return changed;
}

/* The block at place k is masked or ends in a divergent branch: masks the blocks up to reconvergence. */
static int mask_until_reconvergence(vector_lowering *l, uint32_t k, uint32_t *done) {
  uint32_t met = reconvergence_of(l, l->order.block[k]);
  if (met == SSA_NONE) return mask_range(l, k + 1, l->order.count, done);
  if (l->order.place[met] > k) return mask_range(l, k + 1, l->order.place[met], done);
  return mask_range(l, k + 1, l->order.end[met] + 1, done); /* of the loop whose header it is */
}

/* The analysis of control treats lanes that will trap as gone. Until the code reaches the trap they wait in its mask,
 * so if the block at place k, which leads to it, diverges or is masked, nothing in between is uniform. */
static int allow_for_traps(vector_lowering *l, uint32_t k) {
  uint32_t b = l->order.block[k];
  const ssa_block *block = ssa_block_at(l->unit, b);
  int changed = 0, ways = block->end == SSA_BRANCH ? 2 : block->end == SSA_JUMP ? 1 : 0;
  for (int s = 0; s < ways; s++) {
    uint32_t to = block->successor[s], from = k + 1;
    if (!is_doomed(l, to)) continue;
    for (uint32_t loop = l->order.loop[b]; loop != SSA_NONE; loop = l->order.parent[loop])
      if (!vector_in_loop(&l->order, loop, to)) from = l->order.place[loop];
    uint32_t done = 0;
    changed |= mask_range(l, from, l->order.place[to] + 1, &done);
  }
  return changed;
}

/* If all lanes of a masked block may leave a loop from there, no lane comes back to its header. */
static int mask_left_loops(vector_lowering *l, uint32_t b) {
  const ssa_block *block = ssa_block_at(l->unit, b);
  int changed = 0, ways = block->end == SSA_BRANCH ? 2 : 1;
  for (int s = 0; s < ways && block->end != SSA_TRAP; s++)
    for (uint32_t h = l->order.loop[b]; h != SSA_NONE; h = l->order.parent[h]) {
      uint32_t done = 0;
      int is_exit = block->end != SSA_BRANCH && block->end != SSA_JUMP;
      if (!is_exit && vector_in_loop(&l->order, h, block->successor[s])) break;
      if (l->uniform[h]) changed |= mask_range(l, l->order.place[h], l->order.end[h] + 1, &done);
    }
  return changed;
}

static void find_latch(vector_lowering *l, uint32_t header) {
  const hg_array *from = &ssa_block_at(l->unit, header)->predecessors;
  uint32_t edges = 0;
  l->latch[header] = SSA_NONE;
  for (size_t i = 0; i < from->count && l->order.loop[header] == header; i++) {
    uint32_t p = ((const uint32_t *)from->data)[i];
    if (!vector_in_loop(&l->order, header, p)) continue;
    if (l->order.loop[p] == header) l->latch[header] = p;
    edges++;
  }
  if (edges != 1) l->latch[header] = SSA_NONE;
}

/* 1 if all lanes in `before` reach `block` in the same round of their loop, on whatever path. */
static int is_whole_join(const vector_lowering *l, uint32_t before, uint32_t block) {
  for (uint32_t k = l->order.place[before]; k < l->order.place[block]; k++) {
    uint32_t b = l->order.block[k];
    const ssa_block *between = ssa_block_at(l->unit, b);
    if (l->order.loop[b] != l->order.loop[block] || !ssa_dominates(&l->dominance, before, b)) return 0;
    if (between->end != SSA_JUMP && between->end != SSA_BRANCH) return 0;
    for (int side = 0; side < (between->end == SSA_BRANCH ? 2 : 1); side++)
      if (!vector_in_loop(&l->order, l->order.loop[block], between->successor[side])) return 0;
  }
  return 1;
}

/* A new mask register, or that of the block before it on the way around a loop: with the lanes that the branch there
 * leaves, or all of them if the sides of a branch meet here. */
static uint32_t mask_of(vector_lowering *l, uint32_t block) {
  uint32_t before = l->dominance.dominator[block];
  int is_only_way = ssa_block_at(l->unit, block)->predecessors.count == 1;
  int shares = before != block && l->order.loop[before] == l->order.loop[block] &&
               vector_is_on_masked_way(l, block) && (is_only_way || is_whole_join(l, before, block));
  return shares ? l->waiting[before] : hg_vector_new_reg(l, SSA_PREDICATE);
}

void hg_vector_find_uniform_flow(vector_lowering *l) {
  uint32_t count = l->order.count;
  for (uint32_t k = 0; k < count; k++) l->uniform[l->order.block[k]] = l->level[l->order.block[k]] < IR_LANE;
  for (int changed = 1; changed;) {
    uint32_t done = 0;
    changed = 0;
    for (uint32_t b = 0; b < l->unit->blocks.count; b++) l->reconvergence[b] = UNKNOWN;
    for (uint32_t k = 0; k < count; k++) {
      uint32_t b = l->order.block[k];
      if (!l->uniform[b] && l->order.loop[b] == b) changed |= mask_range(l, k, l->order.end[b] + 1, &done);
      if (!l->uniform[b] || hg_vector_diverges(l, b)) {
        changed |= mask_until_reconvergence(l, k, &done);
        changed |= allow_for_traps(l, k);
      }
      if (!l->uniform[b]) changed |= mask_left_loops(l, b);
    }
  }
  for (uint32_t k = 0; k < count; k++) find_latch(l, l->order.block[k]);
  for (uint32_t k = 0; k < count; k++)
    if (!l->uniform[l->order.block[k]]) l->waiting[l->order.block[k]] = mask_of(l, l->order.block[k]);
}
