/* body.c - the code of a group: instructions, jumps, loops with a quick version, cold code. */
#include "backend/cpu/x86/emit_x86.h"

#include "compiler/machine_ops.h"

#include <stddef.h>
#include <string.h>

static void write_jump(x86_emit *e) {
  uint8_t role = hg_x86_role(e);
  if (e->insn->flags & VECTOR_SHORT || role & NATIVE_NO_CHANGE) return;
  int is_last = e->insn->flags & VECTOR_LAST && e->insn->target >= e->region_end;
  uint32_t label = is_last ? e->group_end : hg_x86_label_of(e, hg_native_target_of(e->b->vector, e->insn));
  if (e->insn->op == VECTOR_JUMP || role & NATIVE_ALWAYS) {
    hg_x86_jump(&e->a, label);
    return;
  }
  x86_condition taken = e->insn->op == VECTOR_JUMP_NONE ? X86_EQUAL : X86_NOT_EQUAL;
  if (!hg_x86_compare_for_jump(e, &taken)) hg_x86_test_any(e);
  hg_x86_jump_if(&e->a, taken, label);
}

void hg_x86_write_poll(x86_emit *e) {
  if (e->stop == 0) e->stop = hg_x86_new_label(&e->a);
  hg_x86_load(&e->a, 1, X86_RAX, x86_at(X86_CONTEXT, offsetof(native_context, cancels)));
  hg_x86_load(&e->a, 0, X86_RAX, x86_at(X86_RAX, 0));
  hg_x86_alu_rm(&e->a, X86_CMP, 0, X86_RAX, x86_at(X86_CONTEXT, offsetof(native_context, cancel_number)));
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, e->stop);
}

/* 1: a load that the instruction which reads it performs as its operand. */
static int is_operand(const x86_emit *e) {
  uint32_t d = e->insn->d;
  if (e->b->slices == 0 || d >= VECTOR_ALL || native_location_of(e->b, d)->kind != NATIVE_NOWHERE) return 0;
  return hg_native_is_operand(e->b, d);
}

static void write_insn(x86_emit *e, uint32_t i) {
  if (i == e->joined ||
      (hg_native_needs_no_code(e->b->vector, i) && vector_insn_at(e->b->vector, i)->op != VECTOR_LABEL))
    return;
  e->insn = vector_insn_at(e->b->vector, i);
  e->index = i;
  if (e->loop.version == X86_SLOW && e->loop.resume[i] != UINT32_MAX) hg_x86_place(&e->a, e->loop.resume[i]);
  if (e->insn->op == VECTOR_LABEL || vector_is_jump(e->insn->op)) e->kept.since = VECTOR_NONE;
  if (hg_x86_quick_insn(e)) return;
  switch (e->insn->op) {
  case VECTOR_LABEL:
    if (e->loop.version != X86_SLOW || i != e->loop.found.head) hg_x86_place(&e->a, hg_x86_label_of(e, i));
    if (e->polls[i]) hg_x86_write_poll(e);
    return;
  case VECTOR_JUMP:
  case VECTOR_JUMP_NONE:
  case VECTOR_JUMP_ANY:
    write_jump(e);
    if (e->insn->flags & VECTOR_ENTERS) hg_x86_place(&e->a, hg_x86_label_of(e, i));
    if (e->polls[i]) hg_x86_write_poll(e);
    return;
  case VECTOR_END: return;
  default: break;
  }
  if (e->insn->op == ATLAS_OP_add && native_location_of(e->b, e->insn->d)->kind == NATIVE_NOWHERE)
    return; /* folded into the address */
  if (e->insn->op == ATLAS_OP_add && hg_x86_is_lazy_index(e)) return;
  if (is_operand(e)) return;
  if (hg_x86_leaves_to_jump(e)) return;
  int is_written = hg_machine_op(e->insn->op) != MACHINE_NO_OP
                       ? hg_x86_operation(e)
                       : hg_x86_masks(e) || hg_x86_vector_operation(e) || hg_x86_straight(e);
  if (is_written) return;
  hg_native_note_call(e->b, i);
  hg_x86_help(e, X86_ALL_COPIES);
}

/* Writes the loop that starts here if it has a quick version; *last is the loop's last instruction. */
static int write_loop(x86_emit *e, uint32_t head, uint32_t *last) {
  if (e->b->slices > 0 || (e->has_full && !e->is_full) || !hg_x86_find_loop(e, head)) return 0;
  uint32_t end = e->loop.found.end, after = hg_x86_new_label(&e->a);
  hg_x86_place(&e->a, hg_x86_label_of(e, head));
  hg_x86_begin_quick(e);
  for (uint32_t i = head; i <= end; i++) write_insn(e, i);
  hg_x86_jump(&e->a, after);
  hg_x86_end_quick(e);
  for (uint32_t i = head; i <= end; i++) write_insn(e, i);
  e->loop.version = X86_NO_LOOP;
  hg_x86_place(&e->a, after);
  *last = end;
  return 1;
}

/* Instructions `first` to `end`; cold code is deferred: see hg_x86_write_cold. */
static void write_range(x86_emit *e, uint32_t first, uint32_t end) {
  for (uint32_t i = first; i < end; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    if (e->loop_end[i] > e->loops_until) e->loops_until = e->loop_end[i];
    if (e->spans.count > 0 && hg_x86_postpone(e, i)) continue;
    if (e->spans.count > 0 && i >= e->spans.end && !hg_x86_has_copies(e)) hg_x86_end_spans(e, i);
    if (insn->op == NATIVE_GUARD_LOOP) {
      i = hg_x86_begin_spans(e, i) - 1;
      continue;
    }
    if (write_loop(e, i, &i)) continue;
    hg_x86_prefetch_between(e);
    hg_x86_prefetch_rows(e, i);
    if (!x86_is_cold(e, i, end)) {
      write_insn(e, i);
      continue;
    }
    x86_cold cold = {.label = hg_x86_new_label(&e->a), .first = i + 1, .end = insn->target};
    if (hg_array_append(&e->a.allocator, &e->cold, &cold, 1) == NULL) e->a.no_memory = 1;
    e->insn = insn;
    e->index = i;
    hg_x86_test_any(e);
    hg_x86_jump_if(&e->a, X86_NOT_EQUAL, cold.label);
    i = insn->target - 1;
  }
}

/* Writes deferred cold code behind code that does not fall through to it. */
void hg_x86_write_cold(x86_emit *e) {
  e->is_cold = 1;
  for (size_t i = 0; i < e->cold.count && !e->a.no_memory; i++) {
    x86_cold cold = ((const x86_cold *)e->cold.data)[i]; /* a copy: the list grows */
    hg_x86_place(&e->a, cold.label);
    e->kept.since = VECTOR_NONE;
    for (uint32_t k = cold.first; k < cold.end; k++) write_insn(e, k);
    hg_x86_jump(&e->a, cold.back != 0 ? cold.back : hg_x86_label_of(e, cold.end));
  }
  e->is_cold = 0;
  e->cold.count = 0;
}

/* Skips the region if all lanes of the group have ended in an earlier region. */
static void leave_if_none_left(x86_emit *e) {
  static const vector_insn leave = {
      .op = VECTOR_JUMP_NONE, .flags = VECTOR_LAST, .s = {VECTOR_ALL}, .mask = VECTOR_ALL, .target = VECTOR_NONE};
  e->insn = &leave;
  write_jump(e);
}

/* Constants are read from the pool here: those that are resident are loaded later. */
void hg_x86_write_invariants(x86_emit *e) {
  e->is_tail = 0;
  e->is_slow = 1;
  e->joined = UINT32_MAX;
  memset(e->label_of, 0xff, e->b->vector->insns.count * sizeof *e->label_of);
  for (uint32_t i = 1; i <= e->b->invariants; i++) write_insn(e, i);
  e->is_slow = 0;
}

void hg_x86_write_body(x86_emit *e, const native_step *step) {
  memset(e->label_of, 0xff, e->b->vector->insns.count * sizeof *e->label_of);
  e->joined = UINT32_MAX;
  if (e->uses_tile_lane) {
    hg_x86_load(&e->a, 1, X86_TILE_LANE, x86_at(X86_CONTEXT, offsetof(native_context, lane_in_tile)));
    hg_x86_alu_rm(&e->a, X86_ADD, 1, X86_TILE_LANE, x86_reg(X86_LANE));
  }
  e->region_first = step->first;
  e->region_end = step->end;
  e->loops_until = 0;
  e->group_end = hg_x86_new_label(&e->a);
  int loses_lanes = e->b->vector->loses_lanes && !step->is_once;
  hg_x86_clear_local(e);
  if (loses_lanes) hg_x86_begin_alive(e);
  if (loses_lanes && e->b->steps.count > 1) leave_if_none_left(e);
  hg_x86_begin_prefetches(e);
  e->kept.since = VECTOR_NONE;
  write_range(e, step->first + (e->b->invariants > 0 ? 1 + e->b->invariants : 0), step->end);
  hg_x86_place(&e->a, e->group_end);
  if (loses_lanes) hg_x86_end_alive(e);
}
