/* lazy_index.c - slow paths, which stand behind the code that jumps to them; and indices blane + u that only slow paths
 * compute, because only C code reads them as vectors, when an access is out of bounds. */
#include "backend/cpu/x86/x86_memory.h"
#include "backend/cpu/engine/cpu_tuning.h"

/* 1 if the current instruction is an access that takes its index as a number in a general register and has a slow
 * path. */
static int takes_number(const x86_emit *e, uint32_t index) {
  const vector_insn *insn = e->insn;
  unsigned flags = vector_is_primitive(insn->op) ? atlas_op_flags(insn->op) : 0;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || flags & (ATLAS_ATOMIC | ATLAS_SPACE_POOL | ATLAS_SPACE_LOCAL)) return 0;
  if (insn->mode != ATLAS_ADDRESS_INDEXED || insn->s[0] != index || insn->symbol & SSA_LIBRARY) return 0;
  if (insn->flags & (VECTOR_LANE | VECTOR_SAME) || atlas_bytes((atlas_type)insn->type) < 4) return 0;
  if (!(flags & ATLAS_STORE) && native_location_of(e->b, insn->d)->is_uniform) return 0;
  return hg_x86_is_by_tile_lane(e) && hg_x86_added_to_tile_lane(e, index) != VECTOR_NONE;
}

static int reads_as_vector(const vector_insn *insn, uint32_t reg) {
  return insn->s[1] == reg || insn->s[2] == reg || insn->s[3] == reg || insn->mask == reg;
}

int hg_x86_is_lazy_index(x86_emit *e) {
  const hg_vector *v = e->b->vector;
  const vector_insn *made = e->insn;
  uint32_t d = made->d, at = e->index;
  e->is_late[at] = 0;
  if (made->op != ATLAS_OP_add || made->mask != VECTOR_ALL || e->loop.version != X86_NO_LOOP) return 0;
  if (hg_native_added_to_lane(v, made) == VECTOR_NONE || v->loses_lanes) return 0;
  const vector_reg *reg = vector_reg_at(v, d);
  const native_location *location = native_location_of(e->b, d);
  if (location->kind != NATIVE_REGISTERS || location->is_uniform || reg->last > at + CPU_LATE_INDEX_LIFE) return 0;
  if (e->b->slices == 0 && reg->first != at) return 0;
  int is = reg->last > at;
  for (uint32_t i = at + 1; is && i <= reg->last; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    e->insn = insn;
    e->index = i;
    if (insn->op == VECTOR_LABEL || vector_is_jump(insn->op) || insn->d == d || reads_as_vector(insn, d)) is = 0;
    else if (insn->s[0] == d) is = takes_number(e, d);
  }
  e->insn = made;
  e->index = at;
  e->is_late[at] = (uint8_t)is;
  return is;
}

static void make_late(x86_emit *e, uint32_t made) {
  uint32_t index = e->index;
  if (made == VECTOR_NONE) return;
  e->index = made;
  e->insn = vector_insn_at(e->b->vector, made);
  hg_x86_operation(e);
  e->index = index;
  e->insn = vector_insn_at(e->b->vector, index);
}

/* In bounds may still be all lanes that take part. */
static void look_for_lanes(x86_emit *e, const x86_slow *slow) {
  x86_access m;
  int is_one = slow->copy != X86_ALL_COPIES;
  if (hg_x86_describe_access(e, &m))
    hg_x86_access_vectors(e, &m, is_one ? slow->copy : 0, is_one ? slow->copy + 1 : slow->copies);
}

static void write_slow_access(x86_emit *e, const x86_slow *slow) {
  uint32_t note = hg_x86_new_label(&e->a);
  make_late(e, slow->made);
  if (e->repeated[slow->insn] && hg_x86_leave_out_faults(e, slow->copy, note, slow->back))
    hg_x86_jump(&e->a, slow->back);
  hg_x86_place(&e->a, note);
  hg_x86_help(e, slow->copy);
}

void hg_x86_write_slow_paths(x86_emit *e) {
  e->is_slow = 1;
  for (size_t i = 0; i < e->slow.count && !e->a.no_memory; i++) {
    const x86_slow slow = ((x86_slow *)e->slow.data)[i]; /* a copy: the list may grow */
    if (!hg_x86_is_jumped_to(&e->a, slow.from)) continue;
    hg_x86_place(&e->a, slow.from);
    e->index = slow.insn;
    e->insn = vector_insn_at(e->b->vector, slow.insn);
    e->copies = slow.copies;
    e->is_tail = slow.is_tail;
    if (slow.divides) hg_x86_divide_canonically(e, slow.to, slow.from_reg, slow.by);
    else if (slow.looks_for_lanes) look_for_lanes(e, &slow);
    else write_slow_access(e, &slow);
    hg_x86_jump(&e->a, slow.back);
  }
  e->slow.count = 0;
  e->is_slow = 0;
}
