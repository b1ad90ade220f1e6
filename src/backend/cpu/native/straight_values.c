/* straight_values.c - values of straight-line code: registers, known bits, and appending instructions. */
#include "backend/cpu/native/straight.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "vector/lower.h"

uint32_t hg_straight_add_register(straight *w, const vector_reg *reg) {
  if (hg_array_append(&w->to->allocator, &w->to->regs, reg, 1) == NULL) w->no_memory = 1;
  return (uint32_t)w->to->regs.count - 1;
}

uint32_t hg_straight_new_register(straight *w, uint32_t like) {
  const vector_reg reg = *vector_reg_at(w->from, like);
  return hg_straight_add_register(w, &reg);
}

uint32_t hg_straight_find_register(straight *w, uint8_t kind, uint8_t type, uint64_t bits) {
  for (uint32_t r = 0; r < w->to->regs.count; r++) {
    const vector_reg *reg = vector_reg_at(w->to, r);
    if (reg->kind == kind && reg->type == type && reg->bits == bits) return r;
  }
  return hg_straight_add_register(w, &(vector_reg){.kind = kind, .type = type, .bits = bits});
}

uint32_t hg_straight_constant(straight *w, uint8_t type, uint64_t bits) {
  return hg_straight_find_register(w, VECTOR_CONSTANT, type, bits);
}

void hg_straight_set(straight *w, uint32_t r, uint32_t slice, uint32_t reg) {
  *hg_straight_value(w, r, slice) = (straight_value){reg, VECTOR_NONE};
}

int hg_straight_is_effect(const atlas_program *program, const vector_insn *insn) {
  if (!vector_is_primitive(insn->op)) return 0;
  unsigned flags = atlas_op_flags(insn->op);
  if (flags & ATLAS_LOAD) return !(insn->flags & (VECTOR_IN_BOUNDS | VECTOR_LANE)) && !(insn->symbol & SSA_LIBRARY);
  if (!(flags & ATLAS_STORE)) return !(flags & ATLAS_PURE);
  if (insn->mode > ATLAS_ADDRESS_INDEXED || flags & ATLAS_SPACE_POOL || !(insn->flags & VECTOR_IN_BOUNDS)) return 1;
  return atlas_symbol_at(program, insn->symbol)->kind != ATLAS_SYMBOL_SHARED;
}

int hg_straight_may_restart(const atlas_program *program, const hg_vector *v) {
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    unsigned flags = vector_is_primitive(insn->op) ? atlas_op_flags(insn->op) : ATLAS_PURE;
    int is_access = (flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != 0;
    if (!is_access && !(flags & ATLAS_PURE) && insn->op != ATLAS_OP_sreg && !hg_is_block_op(insn->op)) return 0;
    if (!is_access || insn->symbol & SSA_LIBRARY) continue;
    if (flags & (ATLAS_ATOMIC | ATLAS_SPACE_POOL) || insn->mode > ATLAS_ADDRESS_INDEXED) return 0;
    if (atlas_symbol_at(program, insn->symbol)->kind != ATLAS_SYMBOL_BUFFER) return 0;
    if (flags & ATLAS_LOAD && !(insn->flags & VECTOR_READ_ONLY)) return 0;
  }
  return 1;
}

uint32_t hg_straight_append(straight *w, const vector_insn *insn) {
  /* A lane that has run out of steps must not have an effect any more. */
  if (w->has_stepped && hg_straight_is_effect(w->program, insn)) w->has_failed = 1;
  uint32_t at = (uint32_t)w->to->insns.count;
  unsigned flags = vector_is_primitive(insn->op) ? atlas_op_flags(insn->op) : ATLAS_PURE;
  if (flags & (ATLAS_STORE | ATLAS_ATOMIC) || !(flags & (ATLAS_LOAD | ATLAS_PURE))) w->has_stored = 1;
  if (at == (w->has_loops ? CPU_STRAIGHT_INSNS_LOOPS : w->has_rare ? CPU_STRAIGHT_INSNS_RARE : CPU_STRAIGHT_INSNS))
    w->has_failed = 1;
  if (!hg_array_has_room(&w->to->allocator, &w->to->insns)) w->no_memory = 1;
  else *vector_insn_at(w->to, (uint32_t)w->to->insns.count++) = *insn;
  return at;
}

/* Makes a register with known bits: a constant, blane plus a constant, or any bits. */
static uint32_t make_known(straight *w, uint32_t r, uint32_t slice) {
  const vector_reg reg = *vector_reg_at(w->from, r);
  const uint64_t *bits = hg_straight_bits(w, r, slice);
  uint64_t first = bits[0], place = (uint64_t)slice * w->lanes;
  uint32_t same = 0, counted = 0;
  for (uint32_t i = 0; i < w->lanes; i++) {
    same += bits[i] == first;
    counted += (uint32_t)bits[i] == (uint32_t)(first + i);
  }
  if (same == w->lanes && reg.type != SSA_PREDICATE) return hg_straight_constant(w, reg.type, first);
  vector_insn insn = vector_insn_of(NATIVE_CONST_LANES, VECTOR_ALL);
  insn.slice = slice;
  insn.type = reg.type;
  insn.bits = hg_straight_value(w, r, slice)->known;
  if (reg.type == ATLAS_u32 && counted == w->lanes) {
    insn.op = ATLAS_OP_add;
    insn.s[0] = w->blane;
    insn.s[1] = hg_straight_constant(w, ATLAS_u32, (uint32_t)(first - place));
    if (first == place) return w->blane;
  } else if (reg.type != SSA_PREDICATE && atlas_bytes((atlas_type)reg.type) != 4) w->has_failed = 1;
  insn.d = hg_straight_add_register(w, &(vector_reg){.kind = VECTOR_VARIES, .type = reg.type});
  hg_straight_append(w, &insn);
  return insn.d;
}

uint32_t hg_straight_register(straight *w, uint32_t r, uint32_t slice) {
  if (r >= w->from->regs.count || vector_reg_at(w->from, r)->kind != VECTOR_VARIES) return r;
  straight_value *value = hg_straight_value(w, r, slice);
  if (value->reg != VECTOR_NONE) return value->reg;
  if (value->known != VECTOR_NONE) value->reg = make_known(w, r, slice);
  else { /* nothing wrote it: only lanes that do not count read it, unless it comes from the round before */
    if (w->depth > 0) w->has_failed = 1;
    value->reg = hg_straight_new_register(w, r);
    if (!w->no_memory) vector_reg_at(w->to, value->reg)->bits = VECTOR_UNSET;
  }
  return value->reg;
}

uint32_t hg_straight_append_renamed(straight *w, const vector_insn *insn, uint32_t slice) {
  vector_insn now = *insn;
  int is_all = hg_straight_mask(w, insn->mask, slice) == STRAIGHT_ALL;
  now.slice = slice;
  for (int k = 0; k < 4; k++) now.s[k] = hg_straight_register(w, insn->s[k], slice);
  now.mask = is_all ? VECTOR_ALL : hg_straight_register(w, insn->mask, slice);
  if (insn->d == VECTOR_NONE) return hg_straight_append(w, &now);
  now.d = hg_straight_new_register(w, insn->d);
  if (!is_all && (insn->flags & VECTOR_KEEP || insn->op == VECTOR_MOVE)) {
    vector_insn old = vector_insn_of(VECTOR_MOVE, VECTOR_ALL);
    old.type = vector_reg_at(w->from, insn->d)->type;
    old.slice = slice;
    old.s[0] = hg_straight_register(w, insn->d, slice);
    old.d = now.d;
    hg_straight_append(w, &old);
  }
  hg_straight_set(w, insn->d, slice, now.d);
  return hg_straight_append(w, &now);
}
