/* faults.c - slow paths of accesses in loops, which may fault again and again: the lanes that are out of bounds get 0
 * or store nothing, and the others access memory. C code runs such an access only if it has to note the fault: if no
 * lane of the tile up to the lowest one out of bounds has noted a fault yet (native_context.noted).
 *
 * While the access is written, the frame holds a mask of the lanes in bounds for each copy. */
#include "backend/cpu/x86/x86_memory.h"

#include <stddef.h>

/* ---- which lanes are out of bounds ------------------------------------------------------------------------------- */

/* Jumps to `note` if the fault of the lane whose global number is in rcx has to be noted. */
static void compare_with_noted(x86_emit *e, uint32_t note) {
  hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RCX, x86_at(X86_CONTEXT, offsetof(native_context, noted)));
  hg_x86_jump_if(&e->a, X86_BELOW, note);
}

/* The same for the lowest lane of eax, the faulting lanes of a copy. */
static void compare_lowest(x86_emit *e, uint32_t copy, uint32_t note) {
  hg_x86_tzcnt(&e->a, 0, X86_RCX, x86_reg(X86_RAX));
  hg_x86_lea(&e->a, X86_RCX, x86_indexed(X86_LANE, X86_RCX, 0, (int32_t)hg_x86_first_lane(e, copy)));
  compare_with_noted(e, note);
}

/* eax = the bound that indices are compared with, after `added` has been added to them. A positive displacement of an
 * unsigned index is subtracted from the limit instead, since the sum could wrap back into range. */
static x86_bound load_bound(x86_emit *e, const x86_access *m) {
  uint32_t some = hg_x86_new_label(&e->a);
  int subtracts = m->displacement > 0 && atlas_kind((atlas_type)hg_x86_type(e, m->index)) == ATLAS_KIND_UINT;
  if (hg_x86_load_limit(e, X86_RAX, m->limit, subtracts ? (int32_t)m->displacement : 0)) {
    hg_x86_jump_if(&e->a, X86_ABOVE, some);
    hg_x86_move_imm(&e->a, X86_RAX, 0);
  }
  hg_x86_place(&e->a, some);
  return (x86_bound){.index = m->index, .limit = X86_RAX, .added = subtracts ? 0 : m->displacement};
}

/* k2 = the lanes in bounds; eax = those out of bounds, of all that take part. */
static void split_evex(x86_emit *e, const x86_access *m, uint32_t copy) {
  x86_bound bound = load_bound(e, m);
  hg_x86_compare_evex(e, &bound, copy, 2, X86_IS_BELOW);
  int mask = hg_x86_mask(e, copy, 1);
  if (mask < 0) hg_x86_k(e, X86_knotw, 0, 0, 2);
  else {
    hg_x86_k(e, X86_kandnw, 0, 2, (unsigned)mask);
    hg_x86_k(e, X86_kandw, 2, 2, (unsigned)mask);
  }
  hg_x86_k(e, X86_kmovw_to_g, X86_RAX, 0, 0);
}

/* Without mask registers: the sign bits of scratch 2 are the lanes out of bounds. */
static void split_vex(x86_emit *e, const x86_access *m, uint32_t copy) {
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2);
  x86_bound bound = load_bound(e, m);
  hg_x86_compare_vex(e, &bound, copy);
  int mask = hg_x86_mask(e, copy, s0);
  if (mask >= 0) hg_x86_v(e, X86_vpandd, s0, s2, x86_reg((unsigned)mask));
  hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(mask >= 0 ? s0 : s2));
}

/* The same for any target. Jumps to `note` if a fault has to be noted. */
static void split_copy(x86_emit *e, const x86_access *m, uint32_t copy, uint32_t note) {
  if (e->width == 2) split_evex(e, m, copy);
  else split_vex(e, m, copy);
  compare_lowest(e, copy, note);
}

/* Stores the mask of a copy's lanes in bounds in the frame, after the copy is split, and sets the zero flag if it is
 * empty. */
static void store_inside(x86_emit *e, uint32_t copy) {
  enum { SIGN = 31 };
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2);
  if (e->width == 2) {
    hg_x86_kmem(e, X86_kmovw_store, 2, hg_x86_inside(e, copy));
    hg_x86_k(e, X86_kortestw, 2, 0, 2);
    return;
  }
  int mask = hg_x86_mask(e, copy, s0);
  if (mask < 0) hg_x86_v(e, X86_vpcmpeqd, (unsigned)(mask = (int)s0), s0, x86_reg(s0));
  hg_x86_vi(e, X86_vpsrad_imm, 0, s2, x86_reg(s2), SIGN);
  hg_x86_v(e, X86_vpandnd, s2, s2, x86_reg((unsigned)mask));
  hg_x86_v(e, X86_vstore, s2, 0, hg_x86_inside(e, copy));
  hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(s2));
  hg_x86_test(&e->a, 0, X86_RAX, X86_RAX);
}

/* ---- the access -------------------------------------------------------------------------------------------------- */

static void clear_result(x86_emit *e, uint32_t copy) {
  unsigned zero = hg_x86_scratch(e, 0);
  if (e->insn->d == VECTOR_NONE) return;
  hg_x86_v(e, X86_vpxord, zero, zero, x86_reg(zero));
  for (uint32_t p = 0; p < hg_x86_parts(e, e->insn->d); p++) hg_x86_set_result(e, copy, p, zero);
}

static void access_inside(x86_emit *e, const x86_access *m, uint32_t copy) {
  e->leaves_out = 1;
  if (atlas_op_flags(e->insn->op) & ATLAS_LOAD || (m->is_store && x86_can_scatter(e, m)))
    hg_x86_gather_lanes(e, m, copy);
  else (void)hg_x86_lanes_of(e, copy);
  e->leaves_out = 0;
}

/* [x + lane]: jumps to `none` if the first lane, and so every lane, is behind the end. */
static void leave_if_behind(x86_emit *e, const x86_access *m, uint32_t copy, uint32_t note, uint32_t none) {
  uint32_t some = hg_x86_new_label(&e->a);
  int32_t first = (int32_t)hg_x86_first_lane(e, copy);
  if (!(e->insn->flags & VECTOR_LANE) || m->displacement < 0) return;
  if (e->insn->mask != VECTOR_ALL || hg_x86_loses_lanes(e)) return;
  hg_x86_lea(&e->a, X86_RCX, x86_at(X86_LANE, first + (int32_t)m->displacement));
  hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RCX, m->extent);
  hg_x86_jump_if(&e->a, X86_BELOW, some);
  hg_x86_lea(&e->a, X86_RCX, x86_at(X86_LANE, first));
  compare_with_noted(e, note);
  hg_x86_jump(&e->a, none);
  hg_x86_place(&e->a, some);
}

/* If one lane is out of bounds, nearly always all are: that way takes as few jumps as possible. */
static void access_copy(x86_emit *e, const x86_access *m, uint32_t copy, uint32_t note, uint32_t back) {
  x86_asm *a = &e->a;
  uint32_t none = hg_x86_new_label(a), some = hg_x86_new_label(a);
  leave_if_behind(e, m, copy, note, none);
  split_copy(e, m, copy, note);
  int has_mask = e->insn->mask != VECTOR_ALL || e->is_tail || hg_x86_loses_lanes(e); /* before hg_x86_mask, which writes
                                                                                        code */
  if (has_mask) store_inside(e, copy);
  else hg_x86_alu_imm(a, X86_CMP, 0, x86_reg(X86_RAX), (1 << e->lanes) - 1);
  hg_x86_jump_if(a, X86_NOT_EQUAL, some);
  hg_x86_place(a, none);
  clear_result(e, copy);
  hg_x86_jump(a, back);
  hg_x86_place(a, some);
  if (!has_mask) store_inside(e, copy);
  access_inside(e, m, copy);
}

/* All faults are noted before anything is done. */
static void access_copies(x86_emit *e, const x86_access *m, uint32_t note) {
  for (uint32_t c = 0; c < e->copies; c++) {
    split_copy(e, m, c, note);
    store_inside(e, c);
  }
  for (uint32_t c = 0; c < e->copies; c++) access_inside(e, m, c);
}

/* One index for all lanes: jumps to `note` if it is in bounds after all, or if a fault has to be noted. */
static void leave_out_all(x86_emit *e, const x86_access *m, uint32_t first, uint32_t end, uint32_t note) {
  x86_asm *a = &e->a;
  uint32_t outside = hg_x86_new_label(a), noted = hg_x86_new_label(a);
  if (m->index != VECTOR_NONE) {
    hg_x86_first_index(e, m->index, 0);
    hg_x86_add_displacement(e, m, outside);
  } else hg_x86_move_imm(a, X86_RAX, (uint32_t)m->displacement);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_RAX, m->extent);
  hg_x86_jump_if(a, X86_BELOW, note);
  hg_x86_place(a, outside);
  for (uint32_t c = first; c < end; c++) {
    uint32_t next = hg_x86_new_label(a);
    int mask = hg_x86_mask(e, c, (unsigned)x86_mask_scratch(e));
    if (mask < 0) hg_x86_move_imm(a, X86_RAX, 1);
    else {
      if (e->width == 2) hg_x86_k(e, X86_kmovw_to_g, X86_RAX, 0, (unsigned)mask);
      else hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg((unsigned)mask));
      hg_x86_test(a, 0, X86_RAX, X86_RAX);
      hg_x86_jump_if(a, X86_EQUAL, next);
    }
    compare_lowest(e, c, note);
    if (c + 1 < end) hg_x86_jump(a, noted);
    hg_x86_place(a, next);
  }
  hg_x86_place(a, noted);
  if (e->insn->d == VECTOR_NONE) return;
  uint32_t copies = hg_x86_copies(e, e->insn->d);
  for (uint32_t c = first; c < end; c++)
    if (c < copies) clear_result(e, c);
}

/* Computes all of an index sum, of which accesses otherwise add up only the first lane (hg_native_is_index_sum), into
 * the frame for as long as the access is written. */
static void make_index(x86_emit *e, uint32_t index) {
  enum { SUM = 6 }; /* index among the vectors there, behind those of lanes.c */
  const vector_reg *reg = vector_reg_at(e->b->vector, index);
  const uint32_t *s = vector_insn_at(e->b->vector, reg->first)->s;
  unsigned s1 = hg_x86_scratch(e, 1), first = hg_x86_source_reg(e, s[0], 0, 0, s1);
  uint32_t offset = (uint32_t)(offsetof(native_frame, vectors) + (size_t)SUM * e->vector_bytes);
  hg_x86_v(e, X86_vpaddd, s1, first, hg_x86_source(e, s[1], 0, 0, hg_x86_scratch(e, 2)));
  hg_x86_v(e, X86_vstore, s1, 0, hg_x86_frame(offset));
  e->b->locations[index] = (native_location){.kind = NATIVE_SLOT, .copies = 1, .parts = 1, .offset = offset};
}

static void leave_out(x86_emit *e, const x86_access *m, uint32_t copy, uint32_t note, uint32_t back) {
  int is_all = copy == X86_ALL_COPIES;
  if (m->index == VECTOR_NONE || hg_x86_is_uniform(e, m->index))
    leave_out_all(e, m, is_all ? 0 : copy, is_all ? e->copies : copy + 1, note);
  else if (is_all) access_copies(e, m, note);
  else access_copy(e, m, copy, note, back);
}

int hg_x86_leave_out_faults(x86_emit *e, uint32_t copy, uint32_t note, uint32_t back) {
  x86_access m;
  const vector_insn *insn = e->insn;
  vector_insn inside = *insn;
  if (!vector_is_primitive(insn->op) || insn->symbol & SSA_LIBRARY || !hg_x86_describe_access(e, &m)) return 0;
  if (insn->d != VECTOR_NONE && native_location_of(e->b, insn->d)->is_uniform &&
      !(m.index == VECTOR_NONE || hg_x86_is_uniform(e, m.index)))
    return 0;
  inside.flags |= VECTOR_IN_BOUNDS;
  e->insn = &inside;
  if (m.index != VECTOR_NONE && hg_native_is_index_sum(e->b->vector, m.index)) {
    native_location kept = *native_location_of(e->b, m.index);
    make_index(e, m.index);
    leave_out(e, &m, copy, note, back);
    e->b->locations[m.index] = kept;
  } else leave_out(e, &m, copy, note, back);
  e->insn = insn;
  return 1;
}
