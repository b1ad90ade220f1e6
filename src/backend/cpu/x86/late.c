/* late.c - indices blane + u that nothing reads as vectors but C code, where an access is out of bounds: slow paths
 * make them. */
#include "backend/cpu/x86/x86_memory.h"

enum { MOST_LIFE = 512 }; /* instructions that are searched for readers */

/* 1 if the current instruction, an access, takes its index as a number in a general register, and has a slow path. */
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

int hg_x86_is_made_late(x86_emit *e) {
  const hg_vector *v = e->b->vector;
  const vector_insn *made = e->insn;
  uint32_t d = made->d, at = e->index;
  e->is_late[at] = 0;
  if (made->op != ATLAS_OP_add || made->mask != VECTOR_ALL || e->loop.version != X86_NO_LOOP) return 0;
  if (hg_native_added_to_lane(v, made) == VECTOR_NONE || v->loses_lanes) return 0;
  const vector_reg *reg = vector_reg_at(v, d);
  const native_location *location = native_location_of(e->b, d);
  if (location->kind != NATIVE_REGISTERS || location->is_uniform || reg->last > at + MOST_LIFE) return 0;
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

void hg_x86_note_late(x86_emit *e, uint32_t index) {
  uint32_t at = e->index;
  if (e->b->slices > 0) at = vector_reg_at(e->b->vector, index)->first;
  else
    while (at > e->region_first && vector_insn_at(e->b->vector, at)->d != index) at--;
  if (e->a.no_memory || vector_insn_at(e->b->vector, at)->d != index || !e->is_late[at]) return;
  ((x86_slow *)e->slow.data)[e->slow.count - 1].made = at;
}

void hg_x86_make_late(x86_emit *e, uint32_t made) {
  uint32_t index = e->index;
  if (made == VECTOR_NONE) return;
  e->index = made;
  e->insn = vector_insn_at(e->b->vector, made);
  hg_x86_operation(e);
  e->index = index;
  e->insn = vector_insn_at(e->b->vector, index);
}
