/* lane_memory.c - code for one lane: loads and stores. */
#include "backend/cpu/x86/one_lane.h"
#include "backend/cpu/x86/x86_memory.h"

/* ---- loops that count up ----------------------------------------------------------------------------------------- */

const vector_insn *hg_x86_lane_writer(const x86_emit *e, uint32_t reg, uint32_t first, uint32_t last) {
  const vector_insn *found = NULL;
  for (uint32_t i = first; i <= last; i++) {
    if (vector_insn_at(e->b->vector, i)->d != reg) continue;
    if (found != NULL) return NULL;
    found = vector_insn_at(e->b->vector, i);
  }
  return found;
}

int hg_x86_lane_is_same(const x86_emit *e, const x86_lane_loop *loop, uint32_t reg) {
  for (uint32_t i = loop->first; i <= loop->back; i++)
    if (vector_insn_at(e->b->vector, i)->d == reg) return 0;
  return 1;
}

/* 1 if it is a load or store whose address is found here. */
static int is_access(x86_emit *e, x86_access *m) {
  const vector_insn *insn = e->insn;
  if (!vector_is_primitive(insn->op) || !(atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE))) return 0;
  if (atlas_op_flags(insn->op) & ATLAS_ATOMIC || insn->symbol & SSA_LIBRARY || insn->type == ATLAS_bool) return 0;
  if (!hg_x86_has_base(insn) || !hg_x86_describe_access(e, m)) return 0;
  return m->index != VECTOR_NONE || m->displacement >= 0;
}

/* 1 if the index of the current access is the loop's counter, plus *added if that is none of VECTOR_NONE. */
static int is_in_order(const x86_emit *e, const x86_access *m, uint32_t *added) {
  const x86_lane_loop *loop = e->uncounted;
  *added = VECTOR_NONE;
  if (loop == NULL || m->index == VECTOR_NONE || m->displacement != 0 || e->index >= loop->grows) return 0;
  if (m->index == loop->counter) return 1;
  const vector_insn *sum = hg_x86_lane_writer(e, m->index, loop->first, loop->back);
  if (sum == NULL || sum >= e->insn || sum->op != ATLAS_OP_add || sum->type != ATLAS_u32) return 0;
  int is_second = sum->s[1] == loop->counter;
  *added = sum->s[!is_second];
  return sum->s[is_second] == loop->counter && hg_x86_lane_is_same(e, loop, *added);
}

void hg_x86_lane_guard(x86_emit *e, uint32_t out) {
  x86_access m;
  uint32_t added;
  if (!is_access(e, &m) || !x86_is_checked(e) || !is_in_order(e, &m, &added)) return;
  hg_x86_lane_read(e, X86_RAX, e->uncounted->bound);
  if (added != VECTOR_NONE)
    hg_x86_alu_rm(&e->a, X86_ADD, 1, X86_RAX, x86_reg(hg_x86_lane_register(e, added, X86_RCX)));
  hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RAX, added == VECTOR_NONE ? m.extent : m.limit); /* no sum wraps below that */
  hg_x86_jump_if(&e->a, X86_ABOVE, out);
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

/* The address of the element. Uses rax for the index and rdx for a base without a register. */
static x86_rm element(x86_emit *e, const x86_access *m, uint32_t slow) {
  x86_asm *a = &e->a;
  unsigned index = X86_RAX, base = hg_x86_base(e);
  uint32_t added;
  int is_checked = x86_is_checked(e) && !is_in_order(e, m, &added);
  if (m->index == VECTOR_NONE) {
    if (is_checked) {
      hg_x86_move_imm(a, X86_RAX, (uint32_t)m->displacement);
      hg_x86_alu_rm(a, X86_CMP, 1, X86_RAX, m->extent);
      hg_x86_jump_if(a, X86_ABOVE_EQUAL, slow);
    }
    return x86_at(base, m->offset);
  }
  uint8_t type = hg_x86_type(e, m->index);
  if (x86_is_signed(type) && !x86_is_wide(type))
    hg_x86_load_sign32(a, X86_RAX, x86_reg(hg_x86_lane_register(e, m->index, X86_RAX)));
  else if (m->displacement != 0) hg_x86_lane_read(e, X86_RAX, m->index);
  else index = hg_x86_lane_register(e, m->index, X86_RAX);
  hg_x86_add_displacement(e, m, slow);
  if (is_checked) {
    hg_x86_alu_rm(a, X86_CMP, 1, index, m->extent);
    hg_x86_jump_if(a, X86_ABOVE_EQUAL, slow);
  }
  return x86_indexed(base, index, m->log_bytes, 0);
}

int hg_x86_lane_access(x86_emit *e) {
  x86_access m;
  unsigned vector;
  const vector_insn *insn = e->insn;
  if (!is_access(e, &m)) return 0;
  uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
  x86_rm at = element(e, &m, slow);
  if (m.is_store) {
    if (hg_x86_lane_vector(e, m.value, &vector))
      hg_x86_x(e, m.bytes == 8 ? X86_vmovq_store : X86_vmovd_to_g, vector, 0, at);
    else if (m.bytes >= 4) hg_x86_store(&e->a, m.bytes == 8, at, hg_x86_lane_register(e, m.value, X86_RCX));
    else {
      hg_x86_lane_read(e, X86_RCX, m.value);
      hg_x86_store_narrow(&e->a, m.bytes, at, X86_RCX);
    }
  } else if (hg_x86_lane_vector(e, insn->d, &vector))
    hg_x86_x(e, m.bytes == 8 ? X86_vmovq_from_g : X86_vmovd_from_g, vector, 0, at);
  else if (native_location_of(e->b, insn->d)->kind != NATIVE_NOWHERE) {
    unsigned to = hg_x86_lane_result(e, VECTOR_NONE);
    if (m.bytes >= 4) hg_x86_load(&e->a, m.bytes == 8, to, at);
    else hg_x86_load_narrow(&e->a, m.bytes, x86_is_signed(insn->type), to, at);
    hg_x86_lane_set(e, to);
  }
  hg_x86_slow_back(e);
  return 1;
}

/* A lane's local arrays lie side by side, in slots of 8 bytes. */
void hg_x86_lane_clear_local(x86_emit *e) {
  x86_asm *a = &e->a;
  const hg_vector *v = e->b->vector;
  uint32_t first = 0, again = hg_x86_new_label(a);
  if (e->b->local_bytes == 0 || !v->sees_local_zeros) return;
  while (!(v->locals[first / 64] >> first % 64 & 1)) first++;
  hg_x86_load(a, 1, X86_RDX, x86_at(X86_CONTEXT, hg_x86_place_offset(first, offsetof(native_place, memory))));
  hg_x86_move_imm(a, X86_RAX, 0);
  hg_x86_move_imm(a, X86_RCX, e->b->local_bytes);
  hg_x86_place(a, again);
  hg_x86_store(a, 1, x86_indexed(X86_RDX, X86_RCX, 0, -8), X86_RAX);
  hg_x86_alu_imm(a, X86_SUB, 0, x86_reg(X86_RCX), 8);
  hg_x86_jump_if(a, X86_NOT_EQUAL, again);
}
