/* span.c - range guards: one comparison for the loads of a buffer by index sums (NATIVE_GUARD_LOOP,
 * native/straight_indices.c), and one for all accesses to a row (NATIVE_GUARD_RANGE, native/range_guards.c). */
#include "backend/cpu/x86/x86_memory.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include <stddef.h>

/* The instruction behind the last load that a span covers. */
static uint32_t end_of_spans(const x86_emit *e, uint32_t i) {
  const hg_vector *v = e->b->vector;
  uint32_t end = i;
  for (; i < v->insns.count && !vector_is_jump(vector_insn_at(v, i)->op); i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (hg_x86_has_base(insn) && insn->mode == ATLAS_ADDRESS_INDEXED && hg_native_is_index_sum(v, insn->s[0]))
      end = i + 1;
  }
  return end;
}

/* Jumps to `out` unless all loads of the span are in bounds; else computes their base. The 32-bit sums do not wrap if
 * the 64-bit ones are below the limit. */
static void write_span(x86_emit *e, uint32_t out) {
  const vector_insn *insn = e->insn;
  x86_asm *a = &e->a;
  uint32_t bytes = atlas_bytes((atlas_type)atlas_symbol_at(e->b->program, insn->symbol)->type), log_bytes = 0;
  x86_rm limit = x86_at(X86_CONTEXT, hg_x86_place_offset(insn->symbol, offsetof(native_place, limit)));
  while (UINT32_C(1) << log_bytes < bytes) log_bytes++;
  hg_x86_first_index(e, insn->s[0], 0);
  hg_x86_load_block_uniform(e, X86_RCX, insn->s[1]);
  hg_x86_lea(a, X86_RAX, x86_indexed(X86_RAX, X86_RCX, 0, (int32_t)insn->bits + e->lanes - 1));
  hg_x86_alu_rm(a, X86_CMP, 1, X86_RAX, limit);
  hg_x86_jump_if(a, X86_ABOVE_EQUAL, out);
  uint32_t place = e->used_bases + e->spans.count;
  x86_span span = {.symbol = insn->symbol, .added = insn->s[1], .log_bytes = (uint8_t)log_bytes, .base = X86_RDX};
  if (place < X86_MOST_BASES) {
    span.base = hg_x86_base_registers[place];
    hg_x86_lea(a, span.base, x86_indexed(hg_x86_base(e), X86_RCX, log_bytes, 0));
  }
  e->spans.held[e->spans.count++] = span;
}

const x86_span *hg_x86_span_of(const x86_emit *e, const vector_insn *made) {
  for (uint32_t k = 0; k < e->spans.count; k++)
    if (e->spans.held[k].symbol == e->insn->symbol && e->spans.held[k].added == made->s[1]) return &e->spans.held[k];
  return NULL;
}

uint32_t hg_x86_begin_spans(x86_emit *e, uint32_t i) {
  x86_cold cold = {.label = hg_x86_new_label(&e->a), .back = hg_x86_new_label(&e->a)};
  e->spans.count = 0;
  e->kept.since = VECTOR_NONE;
  for (; vector_insn_at(e->b->vector, i)->op == NATIVE_GUARD_LOOP; i++) {
    e->insn = vector_insn_at(e->b->vector, i);
    e->index = i;
    write_span(e, cold.label);
  }
  cold.first = i;
  e->spans.end = end_of_spans(e, i);
  e->to_come.copies.count = e->to_come.prefetches.count = e->to_come.first_copy = e->to_come.first_prefetch = 0;
  e->spans.back = cold.back;
  if (hg_array_append(&e->a.allocator, &e->cold, &cold, 1) == NULL) e->a.no_memory = 1;
  return i;
}

void hg_x86_end_spans(x86_emit *e, uint32_t i) {
  hg_x86_place(&e->a, e->spans.back);
  e->spans.count = 0;
  e->kept.since = VECTOR_NONE;
  if (!e->a.no_memory) ((x86_cold *)e->cold.data)[e->cold.count - 1].end = i;
}

/* 1 if the vector before, in the same row of lanes, has probably prefetched the same line. */
static int is_line_asked_for(const x86_emit *e) {
  uint32_t vectors = X86_LINE_BYTES / e->vector_bytes, in_row = native_block(e->b->program)[0] / e->lanes;
  return in_row % vectors == 0 && vector_insn_at(e->b->vector, e->index)->slice % vectors != 0;
}

void hg_x86_prefetch_later(x86_emit *e) {
  if (is_line_asked_for(e)) return;
  if (!hg_array_push(&e->a.allocator, &e->to_come.prefetches, e->index)) e->a.no_memory = 1;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

uint32_t hg_x86_leave_label(x86_emit *e, uint32_t why) {
  if (e->leave[why] == 0) e->leave[why] = hg_x86_new_label(&e->a) + 1;
  return e->leave[why] - 1;
}

/* rcx: the last lane of a NATIVE_TAIL; 64 bits do not wrap. */
static void write_last_lane(x86_emit *e) {
  hg_x86_load_block_uniform(e, X86_RCX, e->insn->s[1]);
  hg_x86_load_block_uniform(e, X86_RDX, e->insn->s[2]);
  hg_x86_alu_imm(&e->a, X86_SUB, 1, x86_reg(X86_RDX), 1);
  hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RDX, x86_reg(X86_RCX));
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, hg_x86_leave_label(e, NATIVE_OUT_OF_BOUNDS));
}

/* Row starts are loaded into their registers at the first comparison. The 32-bit sums do not wrap if the 64-bit ones
 * are below the limit. */
int hg_x86_within(x86_emit *e) {
  const vector_insn *insn = e->insn;
  x86_asm *a = &e->a;
  uint32_t number = insn->s[0] == VECTOR_NONE ? NATIVE_MOST_ROW_STARTS : hg_native_row_start(e->b, insn->s[0]);
  unsigned first = X86_TILE_LANE;
  if (insn->s[0] != VECTOR_NONE) {
    first = number < NATIVE_MOST_ROW_STARTS ? hg_x86_row_start(e, number) : X86_RAX;
    hg_x86_load_block_uniform(e, first, insn->s[0]);
    hg_x86_alu_rm(a, X86_ADD, 1, first, x86_reg(X86_TILE_LANE));
  }
  if (insn->s[1] != VECTOR_NONE) write_last_lane(e);
  hg_x86_lea(a, X86_RCX,
             insn->s[1] != VECTOR_NONE ? x86_indexed(first, X86_RCX, 0, (int32_t)insn->bits)
                                       : x86_at(first, (int32_t)insn->bits));
  hg_x86_alu_rm(a, X86_CMP, 1, X86_RCX,
                x86_at(X86_CONTEXT, hg_x86_place_offset(insn->symbol, offsetof(native_place, limit))));
  hg_x86_jump_if(a, X86_ABOVE_EQUAL, hg_x86_leave_label(e, NATIVE_OUT_OF_BOUNDS));
  return 1;
}

/* The number of elements in the row of the current NATIVE_TOUCH. */
static uint64_t row_of_fetch(const x86_emit *e) {
  uint32_t i = e->index;
  while (vector_insn_at(e->b->vector, i)->op != NATIVE_GUARD_RANGE) i--;
  return vector_insn_at(e->b->vector, i)->bits + 1;
}

/* Loads whole vectors side by side: on Zen 4 the hardware prefetcher follows those, but neither software prefetches nor
 * loads of a part of a line. */
static void fetch(x86_emit *e, unsigned lane, uint32_t log_bytes, uint64_t from, uint64_t to) {
  for (uint64_t at = from << log_bytes; at < to << log_bytes; at += e->vector_bytes)
    hg_x86_v(e, X86_vload, hg_x86_scratch(e, 0), 0, x86_indexed(hg_x86_base(e), lane, log_bytes, (int32_t)at));
}

/* Jumps if the row's buffer is larger than the caches (X86_ABOVE_EQUAL), or if it is not (X86_BELOW). */
static uint32_t jump_by_size(x86_emit *e, x86_rm limit, uint32_t log_bytes, x86_condition when) {
  uint32_t to = hg_x86_new_label(&e->a);
  hg_x86_alu_imm(&e->a, X86_CMP, 1, limit, CPU_LARGE_BUFFER >> log_bytes);
  hg_x86_jump_if(&e->a, when, to);
  return to;
}

/* Touches the next row, if it exists and what its last whole vector reads behind it does as well. Only for a large
 * buffer, whose elements come from memory. Sums of rows of 1024, Zen 4: from memory 123 ps an element instead of 165,
 * but from the second-level cache 47 instead of 41. */
static void fetch_next(x86_emit *e, unsigned lane, uint32_t log_bytes, x86_rm limit) {
  uint64_t row = row_of_fetch(e), of_vector = e->vector_bytes >> log_bytes;
  uint64_t end = row + (row + of_vector - 1) / of_vector * of_vector;
  uint32_t none = jump_by_size(e, limit, log_bytes, X86_BELOW);
  hg_x86_lea(&e->a, X86_RCX, x86_at(lane, (int32_t)end - 1));
  hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RCX, limit);
  hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, none);
  fetch(e, lane, log_bytes, row, end);
  hg_x86_place(&e->a, none);
}

int hg_x86_fetch(x86_emit *e) {
  const vector_insn *insn = e->insn;
  uint32_t bytes = atlas_bytes((atlas_type)atlas_symbol_at(e->b->program, insn->symbol)->type), log_bytes = 0;
  while (UINT32_C(1) << log_bytes < bytes) log_bytes++;
  unsigned lane = hg_x86_row_start(e, hg_native_row_start(e->b, insn->s[0]));
  x86_rm limit = x86_at(X86_CONTEXT, hg_x86_place_offset(insn->symbol, offsetof(native_place, limit)));
  if (insn->slice == VECTOR_NONE) {
    fetch_next(e, lane, log_bytes, limit);
    return 1;
  }
  uint32_t has_come = insn->slice > 0 ? jump_by_size(e, limit, log_bytes, X86_ABOVE_EQUAL) : hg_x86_new_label(&e->a);
  fetch(e, lane, log_bytes, (uint64_t)insn->slice * e->lanes, insn->bits);
  hg_x86_place(&e->a, has_come);
  return 1;
}

void hg_x86_write_leave(x86_emit *e) {
  for (uint32_t why = NATIVE_OUT_OF_BOUNDS; why <= NATIVE_IS_RARE; why++) {
    if (e->leave[why] == 0) continue;
    hg_x86_place(&e->a, hg_x86_leave_label(e, why));
    hg_x86_move_imm(&e->a, X86_RAX, why);
    hg_x86_store(&e->a, 1, x86_at(X86_CONTEXT, offsetof(native_context, has_left)), X86_RAX);
    hg_x86_jump(&e->a, e->block_end);
  }
}
