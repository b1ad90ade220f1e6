/* straight_loop.c - loops in straight-line code (straight.c) that the whole block leaves together.
 *
 * A loop-carried value has one register for the whole loop in each slice, which is written before the loop and again at
 * the latch. Nothing is known of shared memory when a round begins. The loop has one exit; the code behind the exit
 * follows the loop. */
#include "backend/cpu/native/straight.h"
#include "vector/lower.h"

#include <string.h>

static uint64_t value_count(const straight *w) { return w->from->regs.count * w->slices; }

static straight_loop *innermost(straight *w) { return &w->loops[w->depth - 1]; }

int hg_straight_is_loop_carried(const hg_vector *v, uint32_t reg) {
  if (reg >= VECTOR_ALL) return 0;
  const vector_reg *r = vector_reg_at(v, reg);
  return r->kind == VECTOR_VARIES && r->bits == STRAIGHT_LOOP_CARRIED;
}

static void append_move(straight *w, uint32_t d, uint32_t from, uint32_t slice) {
  vector_insn move = vector_insn_of(VECTOR_MOVE, VECTOR_ALL);
  move.type = vector_reg_at(w->to, d)->type;
  move.slice = slice;
  move.d = d;
  move.s[0] = from;
  hg_straight_append(w, &move);
}

static int is_written(const straight *w, uint32_t r, uint32_t head) {
  for (uint32_t i = head; i <= w->loop_end[head]; i++)
    if (vector_insn_at(w->from, i)->d == r) return 1;
  return 0;
}

/* A block-uniform value has one register for all slices. */
static void carry_register(straight *w, straight_loop *loop, uint32_t r) {
  int is_alike = vector_reg_at(w->from, r)->uniform;
  for (uint32_t slice = 0; slice < w->slices && !w->has_failed && !w->no_memory; slice++) {
    const straight_value *value = hg_straight_value(w, r, slice);
    if (value->reg == VECTOR_NONE && value->known == VECTOR_NONE) continue;
    uint32_t at = r * w->slices + slice;
    if (is_alike && slice > 0) loop->carried[at] = loop->carried[r * w->slices];
    else {
      uint32_t from = hg_straight_register(w, r, slice);
      loop->carried[at] = hg_straight_new_register(w, r);
      if (w->no_memory) return;
      vector_reg_at(w->to, loop->carried[at])->bits = STRAIGHT_LOOP_CARRIED;
      append_move(w, loop->carried[at], from, slice);
    }
    if (loop->carried[at] == VECTOR_NONE) w->has_failed = 1; /* other slices have a value, the first has none */
    else hg_straight_set(w, r, slice, loop->carried[at]);
  }
}

static void begin_loop(straight *w, uint32_t head) {
  uint64_t count = value_count(w);
  if (w->depth == STRAIGHT_MOST_DEPTH) {
    w->has_failed = 1;
    return;
  }
  straight_loop *loop = &w->loops[w->depth++];
  *loop = (straight_loop){.head = head, .exit = VECTOR_NONE};
  loop->carried = hg_allocate(&w->to->allocator, count, sizeof *loop->carried);
  if (loop->carried == NULL) {
    w->no_memory = 1;
    return;
  }
  memset(loop->carried, 0xff, count * sizeof *loop->carried);
  for (uint32_t r = 0; r < w->from->regs.count; r++) {
    const vector_reg *reg = vector_reg_at(w->from, r);
    if (reg->kind == VECTOR_VARIES && reg->last >= head && is_written(w, r, head)) carry_register(w, loop, r);
  }
  hg_straight_forget(w);
  const vector_insn label = vector_insn_of(VECTOR_LABEL, VECTOR_ALL);
  loop->label = hg_straight_append(w, &label);
}

/* Appends the moves at the latch, after copies of the values that other moves would overwrite. */
static void append_latch_moves(straight *w, const straight_loop *loop) {
  for (int last = 0; last < 2; last++)
    for (uint32_t r = 0; r < w->from->regs.count; r++) {
      int is_alike = vector_reg_at(w->from, r)->uniform;
      for (uint32_t slice = 0; slice < (is_alike ? 1 : w->slices) && !w->has_failed && !w->no_memory; slice++) {
        uint32_t carried = loop->carried[r * w->slices + slice];
        if (carried == VECTOR_NONE) continue;
        uint32_t now = hg_straight_register(w, r, slice);
        if (now == carried) continue;
        if (last) append_move(w, carried, now, slice);
        else if (hg_straight_is_loop_carried(w->to, now)) {
          uint32_t kept = hg_straight_new_register(w, r);
          append_move(w, kept, now, slice);
          hg_straight_set(w, r, slice, kept);
        }
      }
    }
}

static void release_loop(straight *w, straight_loop *loop) {
  hg_release(&w->to->allocator, loop->carried);
  hg_release(&w->to->allocator, loop->values);
  hg_array_release(&w->to->allocator, &loop->cells);
}

/* Writes the back edge. The block continues behind the loop with the state that it had at the exit. */
static uint32_t end_loop(straight *w) {
  straight_loop *loop = innermost(w);
  vector_insn back = vector_insn_of(VECTOR_JUMP, VECTOR_ALL);
  const vector_insn label = vector_insn_of(VECTOR_LABEL, VECTOR_ALL);
  if (loop->exit == VECTOR_NONE) w->has_failed = 1;
  append_latch_moves(w, loop);
  hg_straight_forget(w);
  back.target = loop->label;
  hg_straight_append(w, &back);
  uint32_t after = hg_straight_append(w, &label), exit = loop->exit;
  if (w->has_failed || w->no_memory) return exit;
  vector_insn_at(w->to, loop->jump)->target = after;
  memcpy(w->value, loop->values, value_count(w) * sizeof *w->value);
  if (w->cells.count > 0) memcpy(w->cells.data, loop->cells.data, w->cells.count * sizeof(straight_cell));
  release_loop(w, loop);
  w->depth--;
  return exit;
}

uint32_t hg_straight_at_head(straight *w, uint32_t head) {
  if (w->depth > 0 && innermost(w)->head == head) return end_loop(w);
  begin_loop(w, head);
  return head + 1;
}

int hg_straight_may_leave_loop(const straight *w, uint32_t jump) {
  if (w->depth == 0) return 0;
  const straight_loop *loop = &w->loops[w->depth - 1];
  return loop->exit == VECTOR_NONE && vector_insn_at(w->from, jump)->target > w->loop_end[loop->head];
}

uint32_t hg_straight_leave_loop(straight *w, uint32_t jump) {
  const vector_insn *insn = vector_insn_at(w->from, jump);
  straight_loop *loop = innermost(w);
  vector_insn leaving = *insn;
  leaving.s[0] = hg_straight_register(w, insn->s[0], 0);
  leaving.flags |= VECTOR_AGREE;
  loop->jump = hg_straight_append(w, &leaving);
  loop->exit = insn->target;
  loop->values = hg_allocate(&w->to->allocator, value_count(w), sizeof *loop->values);
  loop->cells.element_size = sizeof(straight_cell);
  if (loop->values == NULL ||
      hg_array_append(&w->to->allocator, &loop->cells, w->cells.data, w->cells.count) == NULL) {
    w->no_memory = 1;
    return jump + 1;
  }
  memcpy(loop->values, w->value, value_count(w) * sizeof *w->value);
  return jump + 1;
}

void hg_straight_end_loops(straight *w) {
  for (; w->depth > 0; w->depth--) release_loop(w, innermost(w));
}
