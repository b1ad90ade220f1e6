/* call_help.c - calls of hg_native_help, and slow paths, both out of line. */
#include "backend/cpu/x86/emit_x86.h"

#include <stddef.h>

const uint8_t hg_x86_base_registers[X86_MOST_BASES] = {X86_RBP, X86_RSI, X86_RDI, X86_R8, X86_R9, X86_R10, X86_R11};

/* Stores the group's lanes in the frame for C code. In the tail their count is there already. */
static void store_group_in_frame(x86_emit *e) {
  hg_x86_move_imm(&e->a, X86_RAX, e->copies);
  hg_x86_store(&e->a, 1, hg_x86_frame(offsetof(native_frame, copies)), X86_RAX);
  if (e->is_tail) return;
  uint32_t vectors = e->b->slices > 0 ? e->b->slices : e->copies;
  hg_x86_move_imm(&e->a, X86_RAX, vectors * e->lanes);
  hg_x86_store(&e->a, 1, hg_x86_frame(offsetof(native_frame, count)), X86_RAX);
}

void hg_x86_help(x86_emit *e, uint32_t copy) {
  store_group_in_frame(e);
  hg_x86_move_imm(&e->a, X86_RAX, e->index);
  uint32_t slice = vector_insn_at(e->b->vector, e->index)->slice, is_wide = e->b->slices > 0;
  hg_x86_move_imm(&e->a, X86_RCX, copy == X86_ALL_COPIES ? is_wide * (slice + 1) : slice + copy + 1);
  hg_x86_call(&e->a, e->help);
}

uint32_t hg_x86_slow_path(x86_emit *e, uint32_t copy) {
  x86_slow slow = {.insn = e->index,
                   .copy = copy,
                   .made = VECTOR_NONE,
                   .from = hg_x86_new_label(&e->a),
                   .back = hg_x86_new_label(&e->a),
                   .copies = e->copies,
                   .is_tail = e->is_tail};
  if (hg_array_append(&e->a.allocator, &e->slow, &slow, 1) == NULL) e->a.no_memory = 1;
  return slow.from;
}

uint32_t hg_x86_rare_division(x86_emit *e, unsigned to, unsigned from, x86_rm by) {
  uint32_t label = hg_x86_slow_path(e, X86_ALL_COPIES);
  if (e->a.no_memory) return label;
  x86_slow *slow = (x86_slow *)e->slow.data + e->slow.count - 1;
  slow->divides = 1;
  slow->to = (uint8_t)to;
  slow->from_reg = (uint8_t)from;
  slow->by = by;
  return label;
}

void hg_x86_note_late(x86_emit *e, uint32_t index) {
  uint32_t at = e->index;
  if (e->b->slices > 0) at = vector_reg_at(e->b->vector, index)->first;
  else
    while (at > e->region_first && vector_insn_at(e->b->vector, at)->d != index) at--;
  if (e->a.no_memory || vector_insn_at(e->b->vector, at)->d != index || !e->is_late[at]) return;
  ((x86_slow *)e->slow.data)[e->slow.count - 1].made = at;
}

void hg_x86_slow_back(x86_emit *e) {
  if (e->a.no_memory) return;
  hg_x86_place(&e->a, ((x86_slow *)e->slow.data)[e->slow.count - 1].back);
}

/* Moves all registers that may hold values to or from the frame, whose address is in rdx. */
static void transfer_registers(x86_emit *e, int is_load) {
  for (unsigned r = 0; r < e->b->target->vector_count; r++)
    hg_x86_v(e, is_load ? X86_vload : X86_vstore, r, 0,
             x86_at(X86_RDX, (int32_t)(offsetof(native_frame, vectors) + r * e->vector_bytes)));
  for (unsigned k = e->b->target->mask_first; e->width == 2 && k < 8; k++)
    hg_x86_kmem(e, is_load ? X86_kmovw : X86_kmovw_store, k,
                x86_at(X86_RDX, (int32_t)(offsetof(native_frame, predicates) + 8 * k)));
}

/* Called with the instruction in eax and the copy in ecx. */
void hg_x86_write_help(x86_emit *e) {
  x86_asm *a = &e->a;
  hg_x86_place(a, e->help);
  hg_x86_lea(a, X86_RDX, hg_x86_frame(8)); /* after the return address */
  hg_x86_store(a, 1, x86_at(X86_RDX, offsetof(native_frame, lane)), X86_LANE);
  transfer_registers(e, 0);
  for (unsigned i = 1; i < X86_MOST_BASES; i++)
    hg_x86_push(a, hg_x86_base_registers[i]); /* rbp is saved by the callee */
  hg_x86_alu_imm(a, X86_SUB, 1, x86_reg(X86_RSP), 8);
  hg_x86_load(a, 1, X86_RDI, x86_reg(X86_RDX));
  hg_x86_load(a, 0, X86_RSI, x86_reg(X86_RAX));
  hg_x86_shift_imm(a, 1, X86_SHL, X86_RCX, 32);
  hg_x86_alu_rm(a, X86_OR, 1, X86_RSI, x86_reg(X86_RCX));
  hg_x86_vzeroupper(a);
  hg_x86_call_rm(a, x86_at(X86_CONTEXT, offsetof(native_context, help)));
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_RSP), 8);
  for (unsigned i = X86_MOST_BASES; i-- > 1;) hg_x86_pop(a, hg_x86_base_registers[i]);
  hg_x86_lea(a, X86_RDX, hg_x86_frame(8));
  transfer_registers(e, 1);
  hg_x86_return(a);
}
