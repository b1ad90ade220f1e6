/* call_help.c - calls of hg_native_help, and the entry and return labels of slow paths. */
#include "backend/cpu/arm64/emit_neon.h"

#include <stddef.h>

enum { CALL_BYTES = 64 }; /* x9 to x15 and x30 during a call of C code */

static const uint8_t call_saved[] = {9, 10, 11, 12, 13, 14, 15, A64_LR};

static int64_t saved_at(unsigned vector) {
  return (int64_t)offsetof(native_frame, vectors) + (int64_t)vector * NEON_VECTOR_BYTES;
}

void hg_neon_help(neon_emit *e, uint32_t copy) {
  uint64_t which = copy == NEON_ALL_COPIES ? 0 : (uint64_t)copy + 1;
  hg_a64_move_imm(&e->a, 1, which << 32 | e->index);
  hg_a64_call(&e->a, e->help);
}

uint32_t hg_neon_slow_path(neon_emit *e, uint32_t copy) {
  neon_slow slow = {.insn = e->index,
                    .copy = copy,
                    .from = hg_a64_new_label(&e->a),
                    .back = hg_a64_new_label(&e->a),
                    .copies = e->copies,
                    .is_tail = e->is_tail};
  if (hg_array_append(&e->a.allocator, &e->slow, &slow, 1) == NULL) e->a.no_memory = 1;
  return slow.from;
}

void hg_neon_slow_back(neon_emit *e) {
  if (e->a.no_memory) return;
  hg_a64_place(&e->a, ((neon_slow *)e->slow.data)[e->slow.count - 1].back);
}

/* Saves or restores all registers that values may live in, and the tail mask, in the frame. */
static void move_vectors(neon_emit *e, a64_memory_op op) {
  for (unsigned r = 0; r < e->b->target->vector_count; r++) hg_a64_memory(&e->a, op, r, A64_SP, saved_at(r));
  hg_a64_memory(&e->a, op, NEON_TAIL_MASK, A64_SP, saved_at(NEON_TAIL_MASK));
}

void hg_neon_move_pairs(neon_emit *e, int is_load, const uint8_t *registers, size_t count) {
  for (size_t i = 0; i < count; i += 2)
    if (is_load) hg_a64_load_pair(&e->a, 0, registers[i], registers[i + 1], A64_SP, (int)(8 * i));
    else hg_a64_store_pair(&e->a, 0, registers[i], registers[i + 1], A64_SP, (int)(8 * i));
}

/* Called with the request in x1. */
void hg_neon_write_help(neon_emit *e) {
  a64_asm *a = &e->a;
  hg_a64_place(a, e->help);
  hg_a64_memory(a, A64_str_x, NEON_LANE, A64_SP, offsetof(native_frame, lane));
  move_vectors(e, A64_str_q);
  hg_a64_add_imm(a, 0, A64_SP, 0);
  hg_a64_add_imm(a, A64_SP, A64_SP, -CALL_BYTES);
  hg_neon_move_pairs(e, 0, call_saved, sizeof call_saved);
  hg_a64_memory(a, A64_ldr_x, 2, NEON_CONTEXT, offsetof(native_context, help));
  hg_a64_call_register(a, 2);
  hg_neon_move_pairs(e, 1, call_saved, sizeof call_saved);
  hg_a64_add_imm(a, A64_SP, A64_SP, CALL_BYTES);
  move_vectors(e, A64_ldr_q);
  hg_a64_return(a);
}
