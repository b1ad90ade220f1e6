/* straight.c - turns a program of blocks with barriers into straight-line code for a whole block, all of whose lanes
 * exist.
 *
 * Between two barriers the code of the block's slices (vectors of lanes) stands one after the other. A barrier then
 * needs no code, and what is live across it stays in registers. A register of the new program has the lanes of one
 * slice, and each instruction names its slice. Whatever follows from the lane's number and constants is folded lane by
 * lane: loops with a known trip count are unrolled, and it is known which slices a branch skips and which elements of
 * shared memory are accessed. What lanes store there and others load behind the barrier becomes a register or a
 * permutation of one (straight_memory.c). A loop that all lanes leave together at an unknown time stays a loop
 * (straight_loop.c).
 *
 * The program stays as it is if lanes diverge on an unknown condition that masks alone cannot handle, if they may run
 * out of steps one by one, or if the code would be too long. Lanes whose accesses race have no single answer, so the
 * order of slices is free. */
#include "backend/cpu/native/straight.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "base/error.h"
#include "vector/lower.h"

#include <string.h>

#define NOT_TOGETHER UINT32_MAX

/* ---- the way of a slice ------------------------------------------------------------------------------------------ */

/* Marks the innermost loop around a jump on an unknown condition that is not marked yet: it is not unrolled. */
static void keep_loop(straight *w, uint32_t i) {
  uint32_t found = VECTOR_NONE;
  for (uint32_t h = 0; h <= i; h++)
    if (w->loop_end[h] >= i && w->loop_end[h] > h && !w->is_kept[h]) found = h;
  if (found != VECTOR_NONE) w->is_kept[found] = w->must_restart = w->has_loops = 1;
  w->has_failed = 1;
}

/* ---- rare cases -------------------------------------------------------------------------------------------------- */

/* 1 if one side of a jump computes nothing and the other does: the side that does is behind a JUMP_ANY, for example
 * what a block does only if its row exists. */
static int is_around_little(const straight *w, uint32_t i) {
  enum { MOST_MOVES = 2 };
  const vector_insn *jump = vector_insn_at(w->from, i);
  for (uint32_t k = i + 1; k <= i + 1 + MOST_MOVES && k < jump->target; k++) {
    const vector_insn *insn = vector_insn_at(w->from, k);
    if (insn->op == VECTOR_JUMP) return insn->target > jump->target;
    if (insn->op != VECTOR_MOVE) return 0;
  }
  return 0;
}

static int has_effects(const straight *w, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) {
    const vector_insn *insn = vector_insn_at(w->from, i);
    if (vector_is_primitive(insn->op) && !(atlas_op_flags(insn->op) & (ATLAS_PURE | ATLAS_LOAD))) return 1;
  }
  return 0;
}

/* Bails out of the block if a predicate holds, or does not hold, in any lane of the slice. */
static void append_rare(straight *w, uint32_t predicate, int holds, uint32_t slice) {
  vector_insn rare = vector_insn_of(NATIVE_BAIL_IF, VECTOR_ALL), not = vector_insn_of(VECTOR_ANDNOT, VECTOR_ALL);
  rare.slice = not.slice = slice;
  rare.s[0] = hg_straight_register(w, predicate, slice);
  if (!holds) {
    not.type = SSA_PREDICATE;
    not.s[0] = VECTOR_ALL;
    not.s[1] = rare.s[0];
    not.d = rare.s[0] = hg_straight_add_register(w, &(vector_reg){.kind = VECTOR_VARIES, .type = SSA_PREDICATE});
    hg_straight_append(w, &not);
  }
  hg_straight_append(w, &rare);
  w->has_rare = 1;
}

/* Where a slice continues after a jump to a function's rare side, or around it; NOT_TOGETHER: it is no such jump. The
 * rare side, which is longer than the usual one, stays in the program for any launch: if a lane takes it, the block
 * bails out, because it has stored nothing yet or may start again. */
static uint32_t leave_where_rare(straight *w, uint32_t i, uint32_t slice, int is_alike) {
  const uint64_t none[STRAIGHT_MOST_LANES] = {0};
  const vector_insn *insn = vector_insn_at(w->from, i);
  if (insn->mask != VECTOR_ALL || insn->s[0] >= VECTOR_ALL) return NOT_TOGETHER;
  if (insn->target <= i || w->depth > 0 || (w->has_stored && !w->may_restart)) return NOT_TOGETHER;
  int is_into = is_alike && is_around_little(w, i), is_any = insn->op == VECTOR_JUMP_ANY;
  if (is_any && !is_into) return NOT_TOGETHER;
  if (!is_into && (insn->target <= i + CPU_MASKED_INSNS || has_effects(w, i, insn->target))) return NOT_TOGETHER;
  if (!is_alike || slice == 0) append_rare(w, insn->s[0], !is_into, slice);
  if (is_into) return is_any ? insn->target : i + 1;
  *hg_straight_value(w, insn->s[0], slice) = (straight_value){VECTOR_NONE, hg_straight_add_bits(w, none)};
  return insn->target;
}

/* ---- jumps ------------------------------------------------------------------------------------------------------- */

/* Where a slice continues after a jump; NOT_TOGETHER: the block decides, for all slices. */
static uint32_t follow_jump(straight *w, uint32_t i, uint32_t slice) {
  const vector_insn *insn = vector_insn_at(w->from, i);
  if (insn->op == VECTOR_JUMP) return insn->target;
  if (insn->flags & VECTOR_LAST) return i + 1; /* lanes do not end one by one */
  int enters = (insn->flags & VECTOR_ENTERS) != 0, any = 0;
  int is_alike = insn->s[0] < VECTOR_ALL && vector_reg_at(w->from, insn->s[0])->uniform;
  const uint64_t *condition = hg_straight_bits(w, insn->s[0], slice), *mask = hg_straight_bits(w, insn->mask, slice);
  if (condition == NULL || mask == NULL) {
    if (is_alike && insn->mask == VECTOR_ALL) {
      if (hg_straight_may_leave_loop(w, i)) return NOT_TOGETHER;
      uint32_t next = leave_where_rare(w, i, slice, 1);
      if (next != NOT_TOGETHER) return next;
      keep_loop(w, i);
    } else if (!enters || insn->target <= i || insn->target > i + CPU_MASKED_INSNS) {
      uint32_t next = enters ? leave_where_rare(w, i, slice, 0) : NOT_TOGETHER;
      if (next != NOT_TOGETHER) return next;
      w->has_failed = 1;
    }
    return i + 1;
  }
  if (!enters && insn->s[0] != VECTOR_ALL && !is_alike) w->has_failed = 1;
  for (uint32_t l = 0; l < w->lanes; l++) any |= condition[l] != 0 && mask[l] != 0;
  return any == (insn->op == VECTOR_JUMP_ANY) ? insn->target : i + 1;
}

/* Block-uniform instructions run once, in slice 0 if it reaches them. 1 if that has happened in this round. */
static int is_done_once(straight *w, uint32_t i, uint32_t slice) {
  const vector_insn *insn = vector_insn_at(w->from, i);
  const straight_once *once = w->once.data;
  if (slice == 0 || insn->d == VECTOR_NONE || !vector_reg_at(w->from, insn->d)->uniform) return 0;
  if (insn->mask != VECTOR_ALL) return 0;
  for (uint32_t k = w->once_seen; k < w->once.count; k++) {
    if (once[k].insn != i || once[k].round != w->round) continue;
    *hg_straight_value(w, insn->d, slice) = once[k].value;
    w->once_seen = k + 1;
    return 1;
  }
  return 0;
}

static void note_once(straight *w, uint32_t i, uint32_t slice) {
  const vector_insn *insn = vector_insn_at(w->from, i);
  if (slice != 0 || insn->d == VECTOR_NONE || insn->mask != VECTOR_ALL) return;
  if (!vector_reg_at(w->from, insn->d)->uniform) return;
  const straight_once once = {i, w->round, *hg_straight_value(w, insn->d, slice)};
  if (hg_array_append(&w->to->allocator, &w->once, &once, 1) == NULL) w->no_memory = 1;
}

/* All slices must take the same back edges, or the program stays as it is. So a round is identified by its number. */
static void count_round(straight *w, uint32_t i, uint32_t slice) {
  if (slice == 0 && !hg_array_push(&w->to->allocator, &w->rounds, i)) w->no_memory = 1;
  if (w->round >= w->rounds.count || ((const uint32_t *)w->rounds.data)[w->round] != i) w->has_failed = 1;
  w->round++;
}

/* Copy propagation: 1 if the result equals a source in all lanes. */
static int propagate_copy(straight *w, const vector_insn *insn, uint32_t slice) {
  int is_and = insn->op == VECTOR_AND && hg_straight_mask(w, insn->s[0], slice) == STRAIGHT_ALL;
  if ((insn->op != VECTOR_MOVE && !is_and) || hg_straight_mask(w, insn->mask, slice) != STRAIGHT_ALL) return 0;
  uint32_t source = insn->s[is_and];
  if (hg_straight_bits(w, source, slice) != NULL) hg_straight_set_known(w, insn->d, source, slice);
  else hg_straight_set(w, insn->d, slice, hg_straight_register(w, source, slice));
  return 1;
}

/* All lanes must take the same steps, or the program stays as it is: then they run out of them together. Steps are
 * counted where the slices meet, if it does no harm that the block runs up to there after its first lane has run
 * out. */
static void note_step(straight *w, uint32_t i, uint32_t slice) {
  const vector_insn *insn = vector_insn_at(w->from, i);
  if (hg_straight_mask(w, insn->mask, slice) == STRAIGHT_UNKNOWN) w->has_failed = 1;
  else hg_straight_set_known(w, insn->d, insn->mask, slice);
  if (!w->counts_steps) return;
  if (insn->mask != VECTOR_ALL) w->has_failed = 1;
  w->steps[slice > 0]++;
  w->has_stepped = 1;
  if (slice == 0 && !hg_array_push(&w->to->allocator, &w->counted, insn->insn)) w->no_memory = 1;
}

/* Writes a lane's coordinate in a grid of several dimensions as the sum of the block's first and the lane's in the
 * block. */
static int write_coordinate(straight *w, const vector_insn *insn, uint32_t slice) {
  const uint32_t *block = w->shape, d = (uint32_t)(insn->bits - ATLAS_COORD_GLOBAL_X);
  if (insn->op != ATLAS_OP_sreg || insn->bits < ATLAS_COORD_GLOBAL_X || block[1] * block[2] == 1) return 0;
  vector_insn lane = *insn, number = *insn, first = vector_insn_of(ATLAS_OP_mul, VECTOR_ALL), sum = first;
  lane.bits = ATLAS_COORD_LANE_X + d;
  number.bits = ATLAS_COORD_BLOCK_X + d;
  number.mask = VECTOR_ALL;
  if (!hg_straight_fold(w, &lane, slice)) w->has_failed = 1;
  sum.op = ATLAS_OP_add;
  sum.s[0] = hg_straight_register(w, insn->d, slice);
  hg_straight_append_renamed(w, &number, slice);
  first.type = sum.type = vector_reg_at(w->from, insn->d)->type;
  first.slice = sum.slice = slice;
  first.s[0] = hg_straight_register(w, insn->d, slice);
  first.s[1] = hg_straight_constant(w, first.type, block[d]);
  first.d = hg_straight_new_register(w, insn->d);
  hg_straight_append(w, &first);
  sum.s[1] = first.d;
  sum.d = hg_straight_new_register(w, insn->d);
  hg_straight_append(w, &sum);
  hg_straight_set(w, insn->d, slice, sum.d);
  return 1;
}

static void write_insn(straight *w, uint32_t i, uint32_t slice) {
  const vector_insn *insn = vector_insn_at(w->from, i);
  if (insn->op == VECTOR_LABEL || insn->op == VECTOR_END) return;
  if (insn->op == VECTOR_STEP) {
    note_step(w, i, slice);
    return;
  }
  if (insn->op == VECTOR_TRAP) w->has_failed = 1;
  if (w->has_failed || hg_straight_mask(w, insn->mask, slice) == STRAIGHT_NO_LANE) return;
  if (propagate_copy(w, insn, slice) || is_done_once(w, i, slice)) return;
  if (hg_straight_fold(w, insn, slice)) {
    note_once(w, i, slice);
    return;
  }
  if (hg_straight_access(w, insn, slice) || write_coordinate(w, insn, slice)) return;
  hg_straight_append_renamed(w, insn, slice);
  note_once(w, i, slice);
}

/* Walks to where the slices meet: a barrier, a reduction, or a point where a loop of the new program begins, ends or
 * may be left. */
static uint32_t walk_slice(straight *w, uint32_t i, uint32_t slice) {
  uint32_t n = (uint32_t)w->from->insns.count, next;
  w->round = w->once_seen = w->steps[slice > 0] = w->has_stepped = 0;
  for (; i < n && !w->has_failed && !w->no_memory; i = next) {
    uint16_t op = vector_insn_at(w->from, i)->op;
    if (hg_is_block_op(op) || (op == VECTOR_LABEL && w->is_kept[i])) return i;
    if (++w->visits > CPU_STRAIGHT_VISITS) w->has_failed = 1;
    next = i + 1;
    if (!vector_is_jump(op)) write_insn(w, i, slice);
    else next = follow_jump(w, i, slice);
    if (next == NOT_TOGETHER) return i;
    if (next <= i) count_round(w, i, slice);
  }
  return i;
}

/* ---- the way of the block ---------------------------------------------------------------------------------------- */

static void count_steps(straight *w) {
  for (size_t k = 0; k < w->counted.count; k++) {
    vector_insn count = vector_insn_of(NATIVE_COUNT, VECTOR_ALL);
    count.insn = ((const uint32_t *)w->counted.data)[k];
    hg_straight_append(w, &count);
  }
  w->counted.count = 0;
}

static uint32_t join_slices(straight *w, uint32_t i) {
  uint32_t n = (uint32_t)w->from->insns.count;
  w->has_stepped = 0;
  count_steps(w);
  if (i >= n) {
    if (w->depth > 0) w->has_failed = 1;
    return n;
  }
  if (hg_is_block_op(vector_insn_at(w->from, i)->op)) {
    if (vector_insn_at(w->from, i)->op != ATLAS_OP_bar_sync && !hg_straight_expand_collective(w, i)) w->has_failed = 1;
    return i + 1;
  }
  return vector_insn_at(w->from, i)->op == VECTOR_LABEL ? hg_straight_at_head(w, i) : hg_straight_leave_loop(w, i);
}

static void walk_block(straight *w) {
  const vector_insn last = vector_insn_of(VECTOR_END, VECTOR_ALL);
  uint32_t n = (uint32_t)w->from->insns.count;
  for (uint32_t i = 0; i < n && !w->has_failed && !w->no_memory;) {
    w->once.count = w->rounds.count = 0;
    uint32_t stop = walk_slice(w, i, 0);
    for (uint32_t slice = 1; slice < w->slices && !w->has_failed && !w->no_memory; slice++)
      if (walk_slice(w, i, slice) != stop || w->round != w->rounds.count || w->steps[0] != w->steps[1])
        w->has_failed = 1;
    if (!w->has_failed && !w->no_memory) i = join_slices(w, stop);
  }
  hg_straight_append(w, &last);
}

static void start_walk(straight *w) {
  hg_vector *v = w->to;
  uint64_t regs = w->from->regs.count;
  w->must_restart = w->has_failed = 0;
  w->visits = 0;
  w->counted.count = w->has_stepped = w->has_stored = 0;
  w->bits.count = w->cells.count = v->insns.count = v->regs.count = 0;
  memset(w->value, 0xff, regs * w->slices * sizeof *w->value);
  if (hg_array_append(&v->allocator, &v->regs, w->from->regs.data, regs) == NULL) w->no_memory = 1;
  w->blane = hg_straight_find_register(w, VECTOR_SPECIAL, ATLAS_u32, ATLAS_REG_BLOCK_LANE);
  hg_straight_begin_known(w);
  hg_straight_begin_memory(w);
}

/* Reserves memory for all slices, given what one has taken. */
static void reserve_memory(straight *w, uint64_t slices) {
  uint64_t insns = slices * w->to->insns.count, most = CPU_STRAIGHT_INSNS + 1;
  if (!hg_array_reserve(&w->to->allocator, &w->to->insns, insns < most ? insns : most) ||
      !hg_array_reserve(&w->to->allocator, &w->bits, slices * w->bits.count))
    w->no_memory = 1;
}

/* Starts again whenever a loop that was to be unrolled turns out to stay a loop. The first slice alone finds that out,
 * since the others take the same way. */
static void walk_until_stable(straight *w) {
  uint32_t slices = w->slices;
  int is_done = 0;
  for (w->slices = 1; !is_done;) {
    start_walk(w);
    walk_block(w);
    hg_straight_end_loops(w);
    is_done = w->no_memory || (!w->must_restart && (w->has_failed || w->slices == slices));
    if (w->must_restart || is_done) continue;
    reserve_memory(w, slices);
    w->slices = slices;
  }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void find_loops(straight *w) {
  for (uint32_t i = 0; i < w->from->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(w->from, i);
    if (vector_is_jump(insn->op) && insn->target <= i) w->loop_end[insn->target] = i;
  }
}

hg_status hg_native_pass_alike(native_build *b, hg_vector *v, uint32_t *fired) {
  uint64_t regs = v->regs.count;
  uint8_t *alike = hg_allocate(&v->allocator, regs, sizeof *alike);
  (void)b;
  if (alike == NULL) return hg_fail_memory("machine code", regs);
  hg_native_find_alike(v, alike);
  for (uint32_t r = 0; r < regs; r++) {
    vector_reg *reg = vector_reg_at(v, r);
    if (!alike[r] || reg->first == VECTOR_NONE) continue;
    *fired += !reg->uniform;
    reg->uniform = 1;
  }
  hg_release(&v->allocator, alike);
  return HG_OK;
}

/* *v = what has been written, HG_UNSUPPORTED if nothing has. */
static hg_status move_program_out(straight *w, hg_vector *v) {
  hg_vector old = *v;
  if (w->no_memory) return hg_fail_memory("machine code", w->to->insns.count * sizeof(vector_insn));
  if (w->has_failed) return HG_UNSUPPORTED;
  *v = *w->to;
  v->has_block_ops = v->loses_lanes = 0;
  *w->to = old;
  return HG_OK;
}

static hg_status write_whole(straight *w, hg_vector *v) {
  uint64_t n = v->insns.count, values = v->regs.count * w->slices;
  const hg_allocator *allocator = &v->allocator;
  w->value = hg_allocate_unset(allocator, values + n, sizeof *w->value); /* unset, since most slices are seldom
                                                                            reached */
  if (w->value == NULL) return hg_fail_memory("machine code", values * sizeof *w->value);
  w->loop_end = (uint32_t *)(w->value + values);
  memset(w->loop_end, 0, n * sizeof *w->value);
  w->is_kept = (uint8_t *)(w->loop_end + n);
  find_loops(w);
  walk_until_stable(w);
  hg_release(allocator, w->value);
  hg_array_release(allocator, &w->once);
  hg_array_release(allocator, &w->rounds);
  hg_array_release(allocator, &w->counted);
  hg_array_release(allocator, &w->cells);
  return move_program_out(w, v);
}

int hg_native_may_be_straight(const native_build *b, const hg_vector *v) {
  if (!v->has_block_ops || !b->target->runs_blocks || v->insns.count > CPU_STRAIGHT_INSNS) return 0;
  return native_block(b->program)[0] % b->target->lanes == 0 && hg_cpu_local_bytes(b->program, v) == 0;
}

hg_status hg_native_pass_straight(native_build *b, hg_vector *v, uint32_t *fired) {
  const uint32_t *block = native_block(b->program), size = block[0] * block[1] * block[2], lanes = b->target->lanes;
  hg_vector to = *v;
  to.insns = (hg_array){.element_size = sizeof(vector_insn)};
  to.regs = (hg_array){.element_size = sizeof(vector_reg)};
  straight w = {.program = b->program, .shape = block, .from = v, .to = &to, .lanes = lanes, .slices = size / lanes};
  w.bits = b->known;
  w.cells.element_size = sizeof(straight_cell);
  w.once.element_size = sizeof(straight_once);
  w.rounds.element_size = w.counted.element_size = sizeof(uint32_t);
  w.may_restart = (uint8_t)hg_straight_may_restart(b->program, v);
  w.counts_steps = (uint8_t)hg_native_counts_steps(v);
  hg_status status = write_whole(&w, v);
  b->known = w.bits;
  hg_vector_release(&to);
  *fired = status == HG_OK;
  return status;
}
