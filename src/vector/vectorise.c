/* vectorise.c - control flow of a unit as masks and jumps.
 *
 * A basic block is uniform if all lanes of the tile reach it together; real jumps lead to it. Any other block is
 * masked: its lanes wait in a mask until the code, which visits the blocks in one order, gets there. (uniform_flow.c
 * ensures that no uniform block stands between a divergent branch and the block where its lanes reconverge.) A loop
 * that lanes leave one by one runs again while a lane waits for its header. */
#include "vector/vector.h"
#include "compiler/compiler_tuning.h"

#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "compiler/analysis/local_zeros.h"
#include "compiler/analysis/trips.h"
#include "compiler/machine_ops.h"
#include "ir/ssa_walk.h"
#include "vector/check.h"
#include "vector/lower.h"

#include <string.h>

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

static void emit_logic(vector_lowering *l, uint16_t op, uint32_t d, uint32_t a, uint32_t b) {
  vector_insn insn = vector_insn_of(op, VECTOR_ALL);
  insn.type = SSA_PREDICATE;
  insn.d = d;
  insn.s[0] = a;
  insn.s[1] = b;
  hg_vector_emit(l, &insn);
}

/* Jumps name their label by its index in l->label until all labels are placed. */
static void emit_jump(vector_lowering *l, uint16_t op, uint32_t condition, uint32_t label) {
  vector_insn insn = vector_insn_of(op, VECTOR_ALL);
  insn.type = SSA_PREDICATE;
  insn.s[0] = condition;
  insn.target = label;
  hg_vector_emit(l, &insn);
}

static void emit_label(vector_lowering *l, uint32_t label, uint32_t block) {
  vector_insn insn = vector_insn_of(VECTOR_LABEL, VECTOR_ALL);
  insn.bits = block;
  l->label[label] = hg_vector_emit(l, &insn);
}

/* ---- where control continues ------------------------------------------------------------------------------------- */

static uint32_t block_count(const vector_lowering *l) { return (uint32_t)l->unit->blocks.count; }
static uint32_t after_loop(const vector_lowering *l, uint32_t header) { return block_count(l) + header; }
static uint32_t exit_of_loop(const vector_lowering *l, uint32_t header) { return 2 * block_count(l) + header; }
static uint32_t end_label(const vector_lowering *l) { return 3 * block_count(l); }

/* The label of the code after the block at `place`; `loop` is the innermost loop that may end there. */
static uint32_t following(const vector_lowering *l, uint32_t place, uint32_t loop) {
  if (loop != SSA_NONE && l->order.end[loop] == place) return after_loop(l, loop);
  return place + 1 < l->order.count ? l->order.block[place + 1] : end_label(l);
}

static uint32_t following_block(const vector_lowering *l, uint32_t block) {
  return following(l, l->order.place[block], l->order.loop[block]);
}

static void end_if_none(vector_lowering *l, uint32_t lanes) {
  emit_jump(l, VECTOR_JUMP_NONE, lanes, end_label(l));
  if (l->status == HG_OK) vector_insn_at(l->out, (uint32_t)l->out->insns.count - 1)->flags = VECTOR_LAST;
}

static void end_if_none_left(vector_lowering *l) { end_if_none(l, VECTOR_ALL); }

/* ---- edges ------------------------------------------------------------------------------------------------------- */

static int is_back_edge(const vector_lowering *l, uint32_t from, uint32_t to) {
  return l->order.place[to] <= l->order.place[from];
}

static int is_counted(const vector_lowering *l, uint32_t from, uint32_t to) {
  return is_back_edge(l, from, to) && !ssa_block_at(l->unit, to)->library;
}

/* The lanes of `mask` that may take a back edge: in `into`, or in a new register. */
static uint32_t count_step(vector_lowering *l, uint32_t from, uint32_t to, uint32_t mask, uint32_t into) {
  if (!is_counted(l, from, to)) return mask;
  vector_insn insn = vector_insn_of(VECTOR_STEP, mask);
  insn.type = SSA_PREDICATE;
  insn.d = into != SSA_NONE ? into : hg_vector_new_reg(l, SSA_PREDICATE);
  insn.s[0] = l->counted[0];
  insn.s[1] = l->counted[1];
  insn.insn = ssa_step_insn(l->unit, from, to);
  hg_vector_emit(l, &insn);
  return insn.d;
}

/* 1 if lanes reach `to` only from here, and all at once: in each round of a loop, if it is the loop's header. */
static int is_only_arrival(const vector_lowering *l, uint32_t from, uint32_t to) {
  if (l->latch[to] == from) return 1;
  if (ssa_block_at(l->unit, to)->predecessors.count != 1) return 0;
  for (uint32_t h = l->order.loop[from]; h != SSA_NONE && !vector_in_loop(&l->order, h, to); h = l->order.parent[h])
    if (!l->uniform[h]) return 0;
  return 1;
}

/* The mask that an edge into a block overwrites; SSA_NONE if lanes may be waiting already. */
static uint32_t written_mask(const vector_lowering *l, uint32_t from, uint32_t to) {
  int is_written = is_only_arrival(l, from, to) || vector_is_entered_once(l, to);
  return !l->uniform[to] && is_written ? l->waiting[to] : SSA_NONE;
}

/* The lanes of `mask` take an edge to a masked block, where they wait, or to a uniform one, where they reconverge. */
static void arrive(vector_lowering *l, uint32_t from, uint32_t side, uint32_t mask) {
  uint32_t to = ssa_block_at(l->unit, from)->successor[side], written = written_mask(l, from, to);
  uint32_t counted = count_step(l, from, to, mask, written);
  hg_vector_moves(l, from, side, counted);
  if (l->uniform[to]) {
    if (counted != mask) end_if_none_left(l);
  } else if (vector_shares_join(l, to)) return; /* they are in its mask already */
  else if (written == SSA_NONE) emit_logic(l, VECTOR_OR, l->waiting[to], l->waiting[to], counted);
  else if (written != counted) emit_logic(l, VECTOR_AND, written, counted, counted);
}

/* 0 if nothing has to be done for the lanes that take that edge. */
static int needs_mask(vector_lowering *l, uint32_t from, uint32_t side) {
  uint32_t to = ssa_block_at(l->unit, from)->successor[side];
  int joins = l->uniform[to] || vector_shares_join(l, to);
  return !joins || is_counted(l, from, to) || hg_vector_has_moves(l, from, side);
}

/* All lanes take one edge. */
static void go_to(vector_lowering *l, uint32_t from, uint32_t side, int at_end) {
  uint32_t to = ssa_block_at(l->unit, from)->successor[side];
  if (l->uniform[to]) {
    uint32_t mask = count_step(l, from, to, VECTOR_ALL, SSA_NONE);
    if (mask != VECTOR_ALL) end_if_none(l, mask);
    hg_vector_moves(l, from, side, VECTOR_ALL);
  } else {
    arrive(l, from, side, VECTOR_ALL);
  }
  if (!at_end || following_block(l, from) != to) emit_jump(l, VECTOR_JUMP, VECTOR_NONE, to);
}

/* Places a local label, to which the jump `at` leads lanes whose condition is false, behind the code for the others. If
 * that code only jumps, the condition's own jump takes its place. */
static void emit_other_side(vector_lowering *l, uint32_t at) {
  if (l->status != HG_OK) return;
  if (l->out->insns.count == at + 2) {
    vector_insn *jump = vector_insn_at(l->out, at);
    jump->op = jump->op == VECTOR_JUMP_NONE ? VECTOR_JUMP_ANY : VECTOR_JUMP_NONE;
    jump->target = vector_insn_at(l->out, at + 1)->target;
    l->out->insns.count--;
  } else {
    vector_insn label = vector_insn_of(VECTOR_LABEL, VECTOR_ALL);
    label.bits = SSA_NONE;
    uint32_t local = hg_vector_emit(l, &label);
    if (l->status == HG_OK) vector_insn_at(l->out, at)->bits = local;
  }
}

/* A uniform branch: all lanes take the same side. */
static void branch_uniformly(vector_lowering *l, uint32_t b, uint32_t condition) {
  uint32_t at = (uint32_t)l->out->insns.count;
  emit_jump(l, VECTOR_JUMP_NONE, condition, VECTOR_NONE); /* to the local label below */
  go_to(l, b, 0, 0);
  emit_other_side(l, at);
  go_to(l, b, 1, 1);
}

/* The side on which a branch leaves its loop for good, if all lanes of the loop reach it and agree; else 2. */
static uint32_t leaving_side(const vector_lowering *l, uint32_t b) {
  const ssa_block *block = ssa_block_at(l->unit, b);
  uint32_t header = l->order.loop[b];
  if (!vector_is_on_masked_way(l, b) || !(l->uses[block->condition] & VALUE_IS_UNIFORM)) return 2;
  int leaves[2] = {!vector_in_loop(&l->order, header, block->successor[0]),
                   !vector_in_loop(&l->order, header, block->successor[1])};
  return leaves[0] == leaves[1] ? 2 : (uint32_t)leaves[1];
}

/* All lanes that remain in a loop leave it together, or go on together. */
static void branch_out_of_loop(vector_lowering *l, uint32_t b, uint32_t condition, uint32_t side) {
  uint32_t at = (uint32_t)l->out->insns.count;
  emit_jump(l, side == 0 ? VECTOR_JUMP_NONE : VECTOR_JUMP_ANY, condition, VECTOR_NONE);
  if (l->status != HG_OK) return;
  vector_insn_at(l->out, at)->mask = l->mask;
  vector_insn_at(l->out, at)->flags = VECTOR_AGREE;
  arrive(l, b, side, l->mask);
  emit_jump(l, VECTOR_JUMP, VECTOR_NONE, exit_of_loop(l, l->order.loop[b]));
  emit_other_side(l, at);
  arrive(l, b, 1 - side, l->mask);
}

/* A divergent branch: each side waits in its mask. Both masks are written before the first side's moves can change the
 * condition; the one that replaces the block's own is written last. Lanes that leave a loop move before the others,
 * whose moves may be for all lanes. */
static void branch_divergently(vector_lowering *l, uint32_t b, uint32_t condition) {
  uint32_t masks[2] = {SSA_NONE, SSA_NONE};
  for (uint32_t side = 0; side < 2; side++) {
    if (!needs_mask(l, b, side)) continue;
    masks[side] = written_mask(l, b, ssa_block_at(l->unit, b)->successor[side]);
    if (masks[side] == SSA_NONE) masks[side] = hg_vector_new_reg(l, SSA_PREDICATE);
  }
  uint32_t last = masks[0] == l->mask ? 0 : 1;
  for (uint32_t n = 0; n < 2; n++) {
    uint32_t side = n == 0 ? 1 - last : last;
    if (masks[side] != SSA_NONE)
      emit_logic(l, side == 0 ? VECTOR_AND : VECTOR_ANDNOT, masks[side], l->mask, condition);
  }
  uint32_t first = l->latch[ssa_block_at(l->unit, b)->successor[0]] == b;
  if (masks[first] != SSA_NONE) arrive(l, b, first, masks[first]);
  if (masks[1 - first] != SSA_NONE) arrive(l, b, 1 - first, masks[1 - first]);
}

static void emit_trap(vector_lowering *l, const ssa_block *block) {
  vector_insn insn = vector_insn_of(VECTOR_TRAP, l->mask);
  insn.insn = block->insn;
  insn.bits = block->trap_code;
  hg_vector_emit(l, &insn);
  l->out->loses_lanes = 1;
  end_if_none_left(l);
}

/* Clears the masks that this block owns, but not those that it overwrites. */
static void clear_owned(vector_lowering *l, uint32_t b) {
  for (uint32_t x = l->first_owned[b]; x != SSA_NONE; x = l->next_owned[x]) {
    const hg_array *from = &ssa_block_at(l->unit, x)->predecessors;
    if ((from->count == 1 && *(const uint32_t *)from->data == b) || vector_shares_mask(l, x)) continue;
    if (vector_is_entered_once(l, x)) continue;
    emit_logic(l, VECTOR_CLEAR, l->waiting[x], VECTOR_NONE, VECTOR_NONE);
  }
}

static void end_block(vector_lowering *l, uint32_t b) {
  const ssa_block *block = ssa_block_at(l->unit, b);
  clear_owned(l, b);
  switch (block->end) {
  case SSA_TRAP: emit_trap(l, block); break;
  case SSA_JUMP:
    if (l->uniform[b]) go_to(l, b, 0, 1);
    else arrive(l, b, 0, l->mask);
    break;
  case SSA_BRANCH:
    if (l->uniform[b] && !hg_vector_diverges(l, b)) branch_uniformly(l, b, hg_vector_reg_of(l, block->condition));
    else if (!l->uniform[b] && leaving_side(l, b) != 2)
      branch_out_of_loop(l, b, hg_vector_reg_of(l, block->condition), leaving_side(l, b));
    else branch_divergently(l, b, hg_vector_reg_of(l, block->condition));
    break;
  default: /* exit */
    if (l->uniform[b] && following_block(l, b) != end_label(l)) emit_jump(l, VECTOR_JUMP, VECTOR_NONE, end_label(l));
    break;
  }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* After a block has run, the bits of its lanes are still set in its waiting mask. So the masks of a loop's blocks (not
 * of its inner loops, which clear their own) are cleared when an iteration begins. If a block is reached only from the
 * loop's header, the header may overwrite the mask instead. */
static void clear_masks(vector_lowering *l, uint32_t loop) {
  uint32_t start = loop == SSA_NONE ? l->order.block[0] : loop;
  uint32_t last = loop == SSA_NONE ? l->order.count - 1 : l->order.end[loop];
  int start_writes = !l->uniform[start] || hg_vector_diverges(l, start); /* else it may not write */
  for (uint32_t k = l->order.place[start] + 1; k <= last; k++) {
    uint32_t b = l->order.block[k];
    const hg_array *from = &ssa_block_at(l->unit, b)->predecessors;
    int is_written = start_writes && from->count == 1 && *(const uint32_t *)from->data == start;
    is_written |= vector_is_entered_once(l, b);
    if (!l->uniform[b] && !is_written && l->owner[b] == SSA_NONE && !vector_shares_mask(l, b))
      emit_logic(l, VECTOR_CLEAR, l->waiting[b], VECTOR_NONE, VECTOR_NONE);
    if (l->order.loop[b] == b) k = l->order.end[b];
  }
}

/* 1 if a block computes few values and does nothing else. */
static int is_short(const vector_lowering *l, uint32_t b, uint32_t most) {
  uint32_t count = 0;
  for (uint32_t e = ssa_block_at(l->unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(l->unit, e)->next)
    if (!hg_is_pure(ssa_insn_at(l->unit, e)) || ++count > most) return 0;
  return 1;
}

/* 1 if a block costs less than testing its mask: it computes a few values and jumps. */
static int is_cheap(const vector_lowering *l, uint32_t b) {
  const ssa_block *block = ssa_block_at(l->unit, b);
  if (block->end != SSA_JUMP || l->skip[b] != l->order.place[b] || l->first_owned[b] != SSA_NONE) return 0;
  return !is_back_edge(l, b, block->successor[0]) && is_short(l, b, COMPILER_CHEAP_VALUES);
}

/* If all lanes of a loop reach a block and none is left, the loop is over. A header's mask fills up again while the
 * loop runs; unless that happens at one place, as the last thing of a round, its lanes are removed here. */
static void enter_masked(vector_lowering *l, uint32_t b) {
  int is_header = l->order.loop[b] == b, is_on_way = vector_is_on_masked_way(l, b);
  l->mask = l->waiting[b];
  if (!is_header && is_cheap(l, b)) return;
  uint32_t next = following(l, l->skip[b], is_header ? l->order.parent[b] : l->order.loop[b]);
  if (is_on_way && !is_header) next = exit_of_loop(l, l->order.loop[b]);
  emit_jump(l, VECTOR_JUMP_NONE, l->waiting[b], next);
  if (l->status != HG_OK) return;
  vector_insn *entry = vector_insn_at(l->out, (uint32_t)l->out->insns.count - 1);
  entry->flags = VECTOR_ENTERS;
  if (vector_shares_mask(l, b) && is_short(l, b, COMPILER_SHORT_VALUES)) entry->flags |= VECTOR_SHORT;
  if (!is_header || l->latch[b] != SSA_NONE) return;
  l->mask = hg_vector_new_reg(l, SSA_PREDICATE);
  emit_logic(l, VECTOR_AND, l->mask, l->waiting[b], l->waiting[b]);
  emit_logic(l, VECTOR_CLEAR, l->waiting[b], VECTOR_NONE, VECTOR_NONE);
}

/* The registers in which STEP counts, if it must count. */
static void begin_counting(vector_lowering *l) {
  l->counted[0] = l->counted[1] = VECTOR_NONE;
  if (l->out->most_steps != UINT64_MAX) return;
  uint32_t zero = hg_vector_new_reg(l, ATLAS_u32);
  if (l->status == HG_OK) vector_reg_at(l->out, zero)->kind = VECTOR_CONSTANT;
  for (int i = 0; i < 2; i++) {
    vector_insn move = vector_insn_of(VECTOR_MOVE, VECTOR_ALL);
    move.type = ATLAS_u32;
    move.d = l->counted[i] = hg_vector_new_reg(l, ATLAS_u32);
    move.s[0] = zero;
    if (l->status == HG_OK) vector_reg_at(l->out, move.d)->uniform = i == 1;
    hg_vector_emit(l, &move);
  }
}

/* A register in which no STEP counts is the constant 0. */
static void end_counting(vector_lowering *l) {
  uint32_t zero = VECTOR_NONE, counts[2] = {0, 0};
  for (uint32_t i = 0; i < l->out->insns.count && l->counted[0] != VECTOR_NONE; i++) {
    const vector_insn *insn = vector_insn_at(l->out, i);
    if (insn->op == VECTOR_STEP) counts[insn->mask == VECTOR_ALL]++;
    if (insn->op == VECTOR_MOVE && insn->d == l->counted[0] && zero == VECTOR_NONE) zero = insn->s[0];
  }
  for (uint32_t i = 0; i < l->out->insns.count && zero != VECTOR_NONE; i++) {
    vector_insn *insn = vector_insn_at(l->out, i);
    for (int k = 0; k < 2 && insn->op == VECTOR_STEP; k++)
      if (counts[k] == 0) insn->s[k] = zero;
  }
}

static void lower_block(vector_lowering *l, uint32_t b) {
  const ssa_block *block = ssa_block_at(l->unit, b);
  emit_label(l, b, b);
  l->mask = VECTOR_ALL;
  if (!l->uniform[b]) enter_masked(l, b);
  if (l->order.place[b] == 0) {
    clear_masks(l, SSA_NONE);
    begin_counting(l);
  }
  if (l->order.loop[b] == b) clear_masks(l, b);
  for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(l->unit, e)->next) hg_vector_value(l, e);
  end_block(l, b);
}

/* After the last block of a divergent loop: another round while lanes remain. After a loop that all lanes leave
 * together, all of them have come back to its header. */
static void end_loops(vector_lowering *l, uint32_t b) {
  uint32_t place = l->order.place[b];
  int comes_here = !l->uniform[b] || hg_vector_diverges(l, b);
  for (uint32_t h = l->order.loop[b]; h != SSA_NONE && l->order.end[h] == place; h = l->order.parent[h]) {
    emit_label(l, after_loop(l, h), SSA_NONE);
    if (l->uniform[h] && comes_here) emit_jump(l, VECTOR_JUMP, VECTOR_NONE, h);
    if (l->uniform[h]) continue;
    emit_jump(l, VECTOR_JUMP_ANY, l->waiting[h], h);
    emit_label(l, exit_of_loop(l, h), SSA_NONE);
    if (l->latch[h] != SSA_NONE && !vector_is_entered_once(l, h))
      emit_logic(l, VECTOR_CLEAR, l->waiting[h], VECTOR_NONE, VECTOR_NONE);
    if (!ssa_block_at(l->unit, h)->library) end_if_none_left(l);
  }
}

static void patch_jumps(vector_lowering *l) {
  for (uint32_t i = 0; i < l->out->insns.count; i++) {
    vector_insn *insn = vector_insn_at(l->out, i);
    if (insn->op != VECTOR_JUMP && insn->op != VECTOR_JUMP_NONE && insn->op != VECTOR_JUMP_ANY) continue;
    insn->target = insn->target == VECTOR_NONE ? (uint32_t)insn->bits : l->label[insn->target];
    insn->bits = 0;
  }
}

/* ---- all stages -------------------------------------------------------------------------------------------------- */

static hg_status allocate(vector_lowering *l) {
  uint64_t blocks = l->unit->blocks.count, values = l->unit->insns.count;
  uint64_t words = 7 * blocks + (3 * blocks + 1) + 4 * values, bytes = 2 * blocks + 5 * values;
  l->waiting = hg_allocate(&l->unit->allocator, words * sizeof(uint32_t) + bytes, 1);
  if (l->waiting == NULL) return hg_fail_memory("vector code", words * sizeof(uint32_t) + bytes);
  l->reconvergence = l->waiting + blocks;
  l->skip = l->reconvergence + blocks;
  l->owner = l->skip + blocks;
  l->first_owned = l->owner + blocks;
  l->next_owned = l->first_owned + blocks;
  l->latch = l->next_owned + blocks;
  l->label = l->latch + blocks;
  l->reg = l->label + 3 * blocks + 1;
  l->same = l->reg + values;
  l->last = l->same + values;
  l->copy = l->last + values;
  l->level = (uint8_t *)(l->copy + values);
  l->uniform = l->level + blocks;
  l->bits_seen = l->uniform + blocks;
  l->nan_blind = l->bits_seen + values;
  l->uses = l->nan_blind + values;
  l->stride = l->uses + values;
  l->mark = l->stride + values;
  memset(l->reg, 0xff, 2 * values * sizeof(uint32_t)); /* and l->same, which follows it */
  memset(l->waiting, 0xff, 7 * blocks * sizeof(uint32_t));
  return HG_OK;
}

static hg_status study_control(vector_lowering *l) {
  static const hg_shape unknown = {0};
  ir_ssa_resolve_all(l->unit);
  HG_TRY(ir_ssa_order_build(l->unit, &l->dominance));
  HG_TRY(hg_control_build(l->unit, &l->dominance, &l->control));
  HG_TRY(hg_analyse_with(l->program, l->unit, &unknown, &l->dominance, &l->control, &l->analysis));
  if (l->is_one_lane) {
    memset(l->analysis.control, IR_GRID, l->unit->blocks.count);
    for (uint32_t v = 0; v < l->unit->insns.count; v++) l->analysis.fact[v].level = IR_GRID;
  }
  memcpy(l->level, l->analysis.control, l->unit->blocks.count);
  return hg_vector_order_build(l->unit, &l->dominance, &l->analysis.loops, &l->order);
}

static hg_status lower(vector_lowering *l) {
  HG_TRY(hg_check_machine_ops(l->unit));
  HG_TRY(allocate(l));
  HG_TRY(study_control(l));
  hg_vector_find_uniform_flow(l);
  hg_vector_find_skips(l);
  HG_TRY(hg_vector_study(l));
  l->out->most_steps = hg_most_steps(&l->analysis, l->unit, &l->dominance, NULL);
  if (l->out->most_steps == UINT64_MAX) l->out->loses_lanes = 1;
  l->out->needs_blocks = l->has_loops;
  l->out->sees_local_zeros = (uint8_t)hg_sees_local_zeros(l->program, l->unit, &l->dominance, &l->analysis);
  for (uint32_t k = 0; k < l->order.count; k++) {
    lower_block(l, l->order.block[k]);
    end_loops(l, l->order.block[k]);
  }
  emit_label(l, end_label(l), SSA_NONE);
  vector_insn end = vector_insn_of(VECTOR_END, VECTOR_ALL);
  hg_vector_emit(l, &end);
  HG_TRY(l->status);
  for (uint32_t r = 0; r < l->out->regs.count && l->is_one_lane; r++)
    vector_reg_at(l->out, r)->uniform |= vector_reg_at(l->out, r)->kind == VECTOR_VARIES;
  end_counting(l);
  patch_jumps(l);
  HG_TRY(hg_vector_lifetimes(l->out));
  HG_TRY(hg_vector_tidy(l->out));
  HG_TRY(hg_vector_lifetimes(l->out));
  if (!l->has_loops || l->out->has_block_ops) return HG_OK;
  HG_TRY(hg_vector_advance(l->out));
  return hg_vector_lifetimes(l->out);
}

static hg_status vectorise(const atlas_program *program, ssa_unit *unit, int is_one_lane, hg_vector *out) {
  vector_lowering l = {.program = program, .unit = unit, .out = out, .is_one_lane = (uint8_t)is_one_lane};
  *out = (hg_vector){.allocator = unit->allocator,
                     .insns = {.element_size = sizeof(vector_insn)},
                     .regs = {.element_size = sizeof(vector_reg)}};
  hg_status status = lower(&l);
#ifdef HG_CHECK_PASSES
  if (status == HG_OK) status = hg_vector_check(program, out, NULL, 1);
#endif
  hg_release(&unit->allocator, l.waiting);
  hg_control_release(unit, &l.control);
  hg_vector_order_release(unit, &l.order);
  ir_ssa_order_release(unit, &l.dominance);
  hg_analysis_release(unit, &l.analysis);
  return status;
}

hg_status hg_vectorise(const atlas_program *program, ssa_unit *unit, hg_vector *out) {
  return vectorise(program, unit, 0, out);
}

hg_status hg_vectorise_lane(const atlas_program *program, ssa_unit *unit, hg_vector *out) {
  return vectorise(program, unit, 1, out);
}

void hg_vector_release(hg_vector *v) {
  hg_array_release(&v->allocator, &v->insns);
  hg_array_release(&v->allocator, &v->regs);
}
