/* faults.c - slow paths, out of line: calls of C, and accesses in loops, which may fault in every round. Those give 0
 * to the lanes that are out of bounds, or store nothing for them, and access memory for the other lanes one by one. C
 * does such an access only if it has to note the fault: if no lane of the tile up to the lowest one out of bounds has
 * faulted before (native_context.noted). */
#include "backend/cpu/arm64/neon_memory.h"

#include <stddef.h>

/* Jumps to `note` if the fault of the global lane x1 is to be noted. */
static void compare_with_noted(neon_emit *e, uint32_t note) {
  hg_a64_memory(&e->a, A64_ldr_x, 3, NEON_CONTEXT, offsetof(native_context, noted));
  hg_a64(&e->a, A64_subs_x, 0, A64_ZR, 1, 3);
  hg_a64_jump_if(&e->a, A64_LO, note);
}

static void clear_result(neon_emit *e, uint32_t copy) {
  unsigned zero = hg_neon_scratch(e, 0);
  if (e->insn->d == VECTOR_NONE) return;
  hg_a64_constant(&e->a, A64_32B, zero, 0);
  for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++) hg_neon_set_result(e, copy, p, zero);
}

/* [x + lane]: jumps to `back`, with the result 0, if the first lane is past the end, and so all are. */
static void leave_if_behind(neon_emit *e, const neon_access *m, uint32_t copy, uint32_t note, uint32_t back) {
  uint32_t some = hg_a64_new_label(&e->a);
  if (!(e->insn->flags & VECTOR_LANE) || m->displacement < 0) return;
  if (e->insn->mask != VECTOR_ALL || e->b->vector->loses_lanes) return;
  hg_neon_load_extent(e);
  hg_a64_add_imm(&e->a, 1, NEON_LANE, copy * NEON_LANES);
  hg_a64_add_imm(&e->a, 0, 1, m->displacement);
  hg_a64(&e->a, A64_subs_x, 0, A64_ZR, 0, 2);
  hg_a64_jump_if(&e->a, A64_LO, some);
  compare_with_noted(e, note);
  clear_result(e, copy);
  hg_a64_jump(&e->a, back);
  hg_a64_place(&e->a, some);
}

/* ---- lane by lane ------------------------------------------------------------------------------------------------ */

/* Vectors in the frame, where a call would save registers: two each, then the copy's first lane in the group. */
enum { INDICES = 0, VALUES = 2, COMPARANDS = 4, RESULTS = 6, FIRST_LANE = 8 };

/* x registers. The participating lanes, 16 bits each, and the copy's first lane in the group are inputs. */
enum { BITS = 6, LANE = 8, FIRST = 8, VECTORS = 17 };

static int64_t in_frame(int vector) { return (int64_t)vector * NEON_VECTOR_BYTES; }
static int64_t from_stack(int vector) { return (int64_t)offsetof(native_frame, vectors) + in_frame(vector); }

static void spill(neon_emit *e, int vector, uint32_t reg, uint32_t copy) {
  if (reg == VECTOR_NONE) return;
  for (uint32_t p = 0; p < (hg_neon_is_64(e, reg) ? 2u : 1u); p++)
    hg_a64_memory(&e->a, A64_str_q, hg_neon_source(e, reg, copy, p, hg_neon_scratch(e, 0)), A64_SP,
                  from_stack(vector + (int)p));
}

/* Moves the current lane's element between a vector in the frame and a register. Changes x1. */
static void move_element(neon_emit *e, a64_memory_op op, unsigned x, int vector) {
  if (vector != 0) hg_a64_add_imm(&e->a, 1, VECTORS, in_frame(vector));
  hg_a64_indexed(&e->a, op, x, vector != 0 ? 1 : VECTORS, LANE, 1);
}

/* `to` = the current lane's number in the group. */
static void find_lane(neon_emit *e, unsigned to) {
  hg_a64_memory(&e->a, A64_ldr_x, to, VECTORS, in_frame(FIRST_LANE));
  hg_a64(&e->a, A64_add_x, 0, to, to, LANE);
}

/* One part of the indices, widened to 64 bits, plus the displacement. */
static unsigned load_indices(neon_emit *e, const neon_access *m, int part) {
  int is_64 = m->index != VECTOR_NONE && hg_neon_is_64(e, m->index);
  int is_signed = m->index != VECTOR_NONE && atlas_kind((atlas_type)hg_neon_type(e, m->index)) == ATLAS_KIND_SINT;
  unsigned to = hg_neon_scratch(e, (unsigned)part);
  if (m->index == VECTOR_NONE) hg_a64_constant(&e->a, A64_64B, to, 0);
  else if (is_64) hg_a64_memory(&e->a, A64_ldr_q, to, VECTORS, in_frame(INDICES + part));
  else {
    hg_a64_memory(&e->a, A64_ldr_d, to, VECTORS, in_frame(INDICES) + 8 * part);
    hg_a64_shift(&e->a, is_signed ? A64_sshll : A64_ushll, A64_32B, to, to, 0);
  }
  return to;
}

/* Splits the participating lanes: x BITS keeps those in bounds, x3 gets the others. A sum wraps only for an index that
 * is negative as a signed number, and no array has so many elements. */
static void find_faults(neon_emit *e, const neon_access *m) {
  a64_asm *a = &e->a;
  int may_wrap = m->displacement > 0 && m->index != VECTOR_NONE && hg_neon_type(e, m->index) == ATLAS_u64;
  unsigned added = hg_neon_scratch(e, 3), extent = hg_neon_scratch(e, 4), above = hg_neon_scratch(e, 5);
  if (m->displacement != 0) hg_a64_constant(a, A64_64B, added, (uint64_t)m->displacement);
  hg_a64_dup(a, A64_64B, extent, 2);
  for (int part = 0; part < 2; part++) {
    unsigned index = load_indices(e, m, part);
    if (may_wrap) hg_a64(a, A64_cmlt0, A64_64B, above, index, 0);
    if (m->displacement != 0) hg_a64(a, A64_add, A64_64B, index, index, added);
    hg_a64(a, A64_cmhs, A64_64B, index, index, extent);
    if (may_wrap) hg_a64(a, A64_orr, 0, index, index, above);
  }
  hg_a64(a, A64_uzp1, A64_32B, hg_neon_scratch(e, 0), hg_neon_scratch(e, 0), hg_neon_scratch(e, 1));
  hg_neon_mask_to_general(e, 3, hg_neon_scratch(e, 0));
  hg_a64(a, A64_and_x, 0, 3, 3, BITS);
  hg_a64(a, A64_eor_x, 0, BITS, BITS, 3);
}

/* x `to` = the number in the copy of the lowest lane in x `bits`. */
static void lowest_lane(neon_emit *e, unsigned to, unsigned bits) {
  hg_a64(&e->a, A64_rbit_x, 0, to, bits, 0);
  hg_a64(&e->a, A64_clz_x, 0, to, to, 0);
  hg_a64_lsr(&e->a, to, to, 4);
}

/* x0 = the element of the current lane. */
static void find_element(neon_emit *e, const neon_access *m) {
  int is_signed = m->index != VECTOR_NONE && atlas_kind((atlas_type)hg_neon_type(e, m->index)) == ATLAS_KIND_SINT;
  if (m->index == VECTOR_NONE) hg_a64_move_imm(&e->a, 0, 0);
  else move_element(e, hg_neon_is_64(e, m->index) ? A64_ldr_x : is_signed ? A64_ldrsw_x : A64_ldr_w, 0, INDICES);
  if (m->displacement != 0) hg_a64_add_imm(&e->a, 0, 0, m->displacement);
}

/* The current lane's access to element x0. */
static void access_lane(neon_emit *e, const neon_access *m) {
  a64_asm *a = &e->a;
  static const a64_memory_op zero[4] = {A64_ldrb_w, A64_ldrh_w, A64_ldr_w, A64_ldr_x};
  static const a64_memory_op sign[4] = {A64_ldrsb_x, A64_ldrsh_x, A64_ldr_w, A64_ldr_x};
  static const a64_memory_op store[4] = {A64_strb_w, A64_strh_w, A64_str_w, A64_str_x};
  int is_signed = atlas_kind((atlas_type)m->type) == ATLAS_KIND_SINT;
  a64_memory_op from_frame = m->log == 3 ? A64_ldr_x : A64_ldr_w, to_frame = m->log == 3 ? A64_str_x : A64_str_w;
  if (m->is_local) {
    find_lane(e, 3);
    if (hg_native_has_tile_slots(e->b)) hg_a64(a, A64_add_x, 0, 3, 3, NEON_TILE_LANE);
    hg_a64_madd(a, 0, 0, NEON_SLOTS, 3);
  }
  if (m->value != VECTOR_NONE) move_element(e, from_frame, 3, VALUES);
  if (m->is_store) hg_a64_indexed(a, store[m->log], 3, m->base, 0, m->log > 0);
  else if (!m->is_atomic) hg_a64_indexed(a, (is_signed ? sign : zero)[m->log], 0, m->base, 0, m->log > 0);
  else {
    if (m->compared != VECTOR_NONE) move_element(e, from_frame, 5, COMPARANDS);
    hg_a64_add_shifted(a, 1, m->base, 0, m->log);
    hg_neon_update(e);
  }
  if (e->insn->d != VECTOR_NONE) move_element(e, to_frame, 0, RESULTS);
}

/* A function that is called for a copy whose operands are in the frame. It returns x0 = 1, having done nothing, if a
 * fault is to be noted; else 0, with the results in the frame, 0 in lanes that fault. */
static void write_lanes(neon_emit *e) {
  a64_asm *a = &e->a;
  neon_access m;
  uint32_t noted = hg_a64_new_label(a), note = hg_a64_new_label(a), top = hg_a64_new_label(a);
  uint32_t next = hg_a64_new_label(a), done = hg_a64_new_label(a);
  (void)hg_neon_describe_access(e, &m);
  hg_a64_add_imm(a, VECTORS, A64_SP, from_stack(0));
  hg_a64_memory(a, A64_str_x, FIRST, VECTORS, in_frame(FIRST_LANE));
  hg_neon_load_extent(e);
  for (int p = 0; p < (m.log == 3 ? 2 : 1) && e->insn->d != VECTOR_NONE; p++)
    hg_a64_store_pair(a, 0, A64_ZR, A64_ZR, VECTORS, (int)in_frame(RESULTS + p));
  find_faults(e, &m);
  hg_a64_jump_zero(a, 3, noted);
  lowest_lane(e, LANE, 3);
  find_lane(e, 1);
  hg_a64(a, A64_add_x, 0, 1, 1, NEON_LANE);
  compare_with_noted(e, note);
  hg_a64_place(a, noted);
  hg_a64_jump_zero(a, BITS, done);
  hg_neon_find_base(e, &m);
  if (m.is_local) hg_a64_move_imm(a, NEON_SLOTS, e->b->local_lanes);
  hg_a64_move_imm(a, LANE, 0);
  hg_a64_place(a, top);
  hg_a64_jump_bit(a, 0, BITS, 0, next);
  find_element(e, &m);
  access_lane(e, &m);
  hg_a64_place(a, next);
  hg_a64_add_imm(a, LANE, LANE, 1);
  hg_a64_lsr(a, BITS, BITS, 16);
  hg_a64_jump_not_zero(a, BITS, top);
  hg_a64_place(a, done);
  hg_a64_move_imm(a, 0, 0);
  hg_a64_return(a);
  hg_a64_place(a, note);
  hg_a64_move_imm(a, 0, 1);
  hg_a64_return(a);
}

static void access_copy(neon_emit *e, const neon_access *m, uint32_t copy, uint32_t note, uint32_t back) {
  leave_if_behind(e, m, copy, note, back);
  spill(e, INDICES, m->index, copy);
  spill(e, VALUES, m->value, copy);
  spill(e, COMPARANDS, m->compared, copy);
  int mask = hg_neon_mask(e, copy, hg_neon_scratch(e, 4));
  if (mask >= 0) hg_neon_mask_to_general(e, BITS, (unsigned)mask);
  else hg_a64_move_imm(&e->a, BITS, UINT64_MAX);
  hg_a64_move_imm(&e->a, FIRST, copy * NEON_LANES);
  hg_a64_call(&e->a, e->lanes_of[e->index]);
  hg_a64_jump_not_zero(&e->a, 0, note);
  for (uint32_t p = 0; p < (m->log == 3 ? 2u : 1u) && e->insn->d != VECTOR_NONE; p++) {
    unsigned d = hg_neon_result_register(e, copy, p);
    hg_a64_memory(&e->a, A64_ldr_q, d, A64_SP, from_stack(RESULTS + (int)p));
    hg_neon_normalise_bool(e, m, d);
    hg_neon_set_result(e, copy, p, d);
  }
}

/* ---- writing slow paths ------------------------------------------------------------------------------------------ */

/* For one index of all lanes, which is out of bounds: nothing is accessed. */
static void leave_out_all(neon_emit *e, uint32_t note) {
  a64_asm *a = &e->a;
  uint32_t noted = hg_a64_new_label(a);
  for (uint32_t c = 0; c < e->copies; c++) {
    uint32_t next = hg_a64_new_label(a);
    int mask = hg_neon_mask(e, c, hg_neon_scratch(e, 4));
    hg_a64_add_imm(a, 1, NEON_LANE, c * NEON_LANES);
    if (mask >= 0) {
      hg_neon_mask_to_general(e, BITS, (unsigned)mask);
      hg_a64_jump_zero(a, BITS, next);
      lowest_lane(e, 0, BITS);
      hg_a64(a, A64_add_x, 0, 1, 1, 0);
    }
    compare_with_noted(e, note);
    if (mask < 0) break; /* some lane participates */
    hg_a64_jump(a, noted);
    hg_a64_place(a, next);
  }
  hg_a64_place(a, noted);
  if (e->insn->d == VECTOR_NONE) return;
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++) clear_result(e, c);
}

/* 1 if the current access, in a copy or NEON_ALL_COPIES, gets code that leaves out faulting lanes. */
static int can_leave_out(const neon_emit *e, uint32_t copy) {
  neon_access m;
  const vector_insn *insn = e->insn;
  if (!e->repeated[e->index] || !vector_is_primitive(insn->op) || insn->symbol & SSA_LIBRARY) return 0;
  if (!hg_neon_describe_access(e, &m)) return 0;
  return copy == NEON_ALL_COPIES || insn->d == VECTOR_NONE || !native_location_of(e->b, insn->d)->is_uniform;
}

/* Writes that code. It jumps to `note`, having stored nothing, if C has to note a fault; to `back`, or nowhere, when
 * done. */
static void leave_out_faults(neon_emit *e, uint32_t copy, uint32_t note, uint32_t back) {
  neon_access m;
  (void)hg_neon_describe_access(e, &m);
  if (copy == NEON_ALL_COPIES) leave_out_all(e, note);
  else access_copy(e, &m, copy, note, back);
}

/* Restores the state in which the code that jumps to a slow path was written. */
static void return_to(neon_emit *e, const neon_slow *slow) {
  e->index = slow->insn;
  e->insn = vector_insn_at(e->b->vector, slow->insn);
  e->copies = slow->copies;
  e->is_tail = slow->is_tail;
}

static void call_and_return(neon_emit *e, const neon_slow *slow) {
  hg_neon_help(e, slow->copy);
  hg_a64_jump(&e->a, slow->back);
}

static void write_without_faults(neon_emit *e, const neon_slow *slow) {
  uint32_t note = hg_a64_new_label(&e->a), *lanes = &e->lanes_of[slow->insn];
  if (*lanes == UINT32_MAX && slow->copy != NEON_ALL_COPIES) {
    hg_a64_place(&e->a, *lanes = hg_a64_new_label(&e->a));
    write_lanes(e);
  }
  hg_a64_place(&e->a, slow->leaves_out);
  leave_out_faults(e, slow->copy, note, slow->back);
  hg_a64_jump(&e->a, slow->back);
  hg_a64_place(&e->a, note);
  call_and_return(e, slow);
}

/* Writes the jump targets first, because tests of a bit do not reach far. */
void hg_neon_write_slow_paths(neon_emit *e) {
  neon_slow *slow = e->slow.data;
  for (size_t i = 0; i < e->slow.count && !e->a.no_memory; i++) {
    return_to(e, &slow[i]);
    hg_a64_place(&e->a, slow[i].from);
    slow[i].leaves_out = can_leave_out(e, slow[i].copy) ? hg_a64_new_label(&e->a) : UINT32_MAX;
    if (slow[i].leaves_out != UINT32_MAX) hg_a64_jump(&e->a, slow[i].leaves_out);
    else call_and_return(e, &slow[i]);
  }
  for (size_t i = 0; i < e->slow.count && !e->a.no_memory; i++) {
    if (slow[i].leaves_out == UINT32_MAX) continue;
    return_to(e, &slow[i]);
    write_without_faults(e, &slow[i]);
  }
  e->slow.count = 0;
}
