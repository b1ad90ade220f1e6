/* value.c - reading operands and storing results: registers, frame, rows, constants, parameters, special registers. */
#include "atlas/value.h"
#include "backend/cpu/arm64/emit_neon.h"

#include <stddef.h>

/* ---- what is known of a value ------------------------------------------------------------------------------------ */

uint8_t hg_neon_type(const neon_emit *e, uint32_t reg) { return vector_reg_at(e->b->vector, reg)->type; }

int hg_neon_is_64(const neon_emit *e, uint32_t reg) {
  uint8_t type = hg_neon_type(e, reg);
  return type != SSA_PREDICATE && atlas_bytes((atlas_type)type) == 8;
}

unsigned hg_neon_size(const neon_emit *e, uint32_t reg) { return hg_neon_is_64(e, reg) ? A64_64B : A64_32B; }

uint32_t hg_neon_copies(const neon_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  if (r->kind == VECTOR_VARIES) return e->b->locations[reg].copies == 1 ? 1 : e->copies;
  return hg_native_is_lane_number(r) ? e->copies : 1;
}

uint32_t hg_neon_parts(const neon_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  if (r->kind == VECTOR_VARIES) return e->b->locations[reg].parts;
  return hg_native_is_lane_number(r) && hg_neon_is_64(e, reg) ? 2 : 1;
}

int hg_neon_constant_bits(const neon_emit *e, uint32_t reg, uint64_t *bits) {
  if (reg >= e->b->vector->regs.count || vector_reg_at(e->b->vector, reg)->kind != VECTOR_CONSTANT) return 0;
  *bits = vector_reg_at(e->b->vector, reg)->bits;
  return 1;
}

unsigned hg_neon_log_bytes(uint8_t type) {
  static const uint8_t log_of[9] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3};
  return type == SSA_PREDICATE ? 0 : log_of[atlas_bytes((atlas_type)type)];
}

static int is_signed(uint8_t type) {
  return type != SSA_PREDICATE && atlas_kind((atlas_type)type) == ATLAS_KIND_SINT;
}

void hg_neon_narrow(neon_emit *e, uint8_t type, unsigned reg) {
  unsigned bytes = atlas_bytes((atlas_type)type);
  if (bytes >= 4) return;
  hg_a64_shift(&e->a, A64_shl, A64_32B, reg, reg, 32 - 8 * bytes);
  hg_a64_shift(&e->a, is_signed(type) ? A64_sshr : A64_ushr, A64_32B, reg, reg, 32 - 8 * bytes);
}

/* ---- sources ----------------------------------------------------------------------------------------------------- */

size_t hg_neon_place_offset(uint32_t symbol, size_t member) {
  return offsetof(native_context, place) + symbol * sizeof(native_place) + member;
}

void hg_neon_context(neon_emit *e, size_t offset, int is_64, unsigned to) {
  hg_a64_add_imm(&e->a, 0, NEON_CONTEXT, (int64_t)offset);
  hg_a64_load_all(&e->a, is_64 ? A64_64B : A64_32B, to, 0);
}

/* Parameters of narrow types are extended as in registers. */
static void load_scalar(neon_emit *e, const vector_reg *r, unsigned to) {
  size_t offset = hg_neon_place_offset((uint32_t)r->bits, offsetof(native_place, scalar));
  hg_neon_context(e, offset, r->type != SSA_PREDICATE && atlas_bytes((atlas_type)r->type) == 8, to);
  if (r->type != SSA_PREDICATE) hg_neon_narrow(e, r->type, to);
}

void hg_neon_invariant(neon_emit *e, uint32_t reg, unsigned to) {
  const hg_vector *v = e->b->vector;
  if (reg >= v->regs.count) {
    atlas_type type = reg == hg_neon_nan(v, ATLAS_f64) ? ATLAS_f64 : ATLAS_f32;
    hg_a64_constant(&e->a, type == ATLAS_f64 ? A64_64B : A64_32B, to, atlas_canonical_nan(type));
    return;
  }
  const vector_reg *r = vector_reg_at(v, reg);
  uint64_t bits = r->bits;
  if (r->kind == VECTOR_SCALAR) {
    load_scalar(e, r, to);
    return;
  }
  if (is_signed(r->type)) bits = (uint64_t)atlas_to_i64((atlas_type)r->type, bits);
  hg_a64_constant(&e->a, hg_neon_size(e, reg), to, bits);
}

void hg_neon_count_up(neon_emit *e, unsigned to, unsigned from, int is_64, uint32_t copy, uint32_t part,
                      unsigned scratch) {
  uint64_t first = copy * NEON_LANES + (is_64 ? part * 2 : 0);
  uint64_t wide[2] = {first, first + 1};
  uint64_t narrow[2] = {first | (first + 1) << 32, (first + 2) | (first + 3) << 32};
  unsigned size = is_64 ? A64_64B : A64_32B;
  hg_a64_constant_vector(&e->a, scratch, is_64 ? wide : narrow);
  hg_a64_dup(&e->a, size, to, from);
  hg_a64(&e->a, A64_add, size, to, to, scratch);
}

static void special(neon_emit *e, const vector_reg *r, uint32_t copy, uint32_t part, unsigned to) {
  unsigned step = hg_neon_scratch(e, to == hg_neon_scratch(e, 5) ? 0 : 5); /* a scratch register other than `to` */
  if (r->bits == ATLAS_REG_LANE) hg_neon_count_up(e, to, NEON_LANE, 1, copy, part, step);
  else if (r->bits == ATLAS_REG_BLOCK_LANE) hg_neon_count_up(e, to, NEON_TILE_LANE, 0, copy, part, step);
  else hg_neon_context(e, offsetof(native_context, special) + 8 * (r->bits - ATLAS_REG_BLOCK_LANE), 0, to);
}

void hg_neon_load_elements(neon_emit *e, uint8_t type, unsigned to, unsigned base, int64_t offset) {
  static const a64_memory_op load[4] = {A64_ldr_s, A64_ldr_d, A64_ldr_q, A64_ldr_q};
  unsigned log = hg_neon_log_bytes(type);
  a64_op widen = is_signed(type) ? A64_sshll : A64_ushll;
  hg_a64_memory(&e->a, load[log], to, base, offset);
  for (; log < 2; log++) hg_a64_shift(&e->a, widen, log, to, to, 0);
}

void hg_neon_store_elements(neon_emit *e, uint8_t type, unsigned from, unsigned base, int64_t offset,
                            unsigned scratch) {
  static const a64_memory_op store[4] = {A64_str_s, A64_str_d, A64_str_q, A64_str_q};
  unsigned log = hg_neon_log_bytes(type);
  for (unsigned k = 2; k > log; k--) {
    hg_a64(&e->a, A64_xtn, k - 1, scratch, from, 0);
    from = scratch;
  }
  hg_a64_memory(&e->a, store[log], from, base, offset);
}

/* x0 + the result is the address of the row's element for the group's first lane. */
static int64_t row_address(neon_emit *e, const native_location *location, unsigned log, uint32_t copy, uint32_t part) {
  hg_a64_add_shifted(&e->a, 0, NEON_ROWS, NEON_TILE_LANE, log);
  return (int64_t)location->offset + ((int64_t)(copy * NEON_LANES + (location->parts == 2 ? part * 2 : 0)) << log);
}

static uint32_t piece_of(const native_location *location, uint32_t copy, uint32_t part) {
  return (location->copies == 1 ? 0 : copy) * location->parts + (location->parts == 1 ? 0 : part);
}

/* Predicates are bytes 0 or 1 in rows, all zeros or ones in registers. */
static unsigned load_location(neon_emit *e, const native_location *location, uint8_t type, uint32_t copy, uint32_t part,
                          unsigned scratch) {
  uint32_t piece = piece_of(location, copy, part);
  if (location->kind == NATIVE_REGISTERS) return location->reg[piece];
  if (location->kind == NATIVE_SLOT) {
    hg_a64_memory(&e->a, A64_ldr_q, scratch, A64_SP, location->offset + piece * NEON_VECTOR_BYTES);
    return scratch;
  }
  if (location->is_uniform) {
    hg_a64_memory(&e->a, A64_ldr_q, scratch, NEON_ROWS, location->offset);
    return scratch;
  }
  int64_t offset = row_address(e, location, hg_neon_log_bytes(type), copy, part);
  hg_neon_load_elements(e, type == SSA_PREDICATE ? ATLAS_u8 : type, scratch, 0, offset);
  if (type == SSA_PREDICATE) hg_a64(&e->a, A64_neg, A64_32B, scratch, scratch, 0);
  return scratch;
}

unsigned hg_neon_source(neon_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned scratch) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  if (r->kind == VECTOR_VARIES) return load_location(e, native_location_of(e->b, reg), r->type, copy, part, scratch);
  if (e->kept_in[reg] != 0) return e->kept_in[reg] - 1u;
  if (r->kind == VECTOR_SPECIAL) special(e, r, copy, part, scratch);
  else hg_neon_invariant(e, reg, scratch);
  return scratch;
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* 1 if lanes outside the mask keep their value. (Lanes that have ended have none.) */
static int merges(const neon_emit *e) {
  const vector_insn *insn = e->insn;
  return insn->mask != VECTOR_ALL && ((insn->flags & VECTOR_KEEP) != 0 || insn->op == VECTOR_MOVE);
}

unsigned hg_neon_result_register(neon_emit *e, uint32_t copy, uint32_t part) {
  const native_location *location = native_location_of(e->b, e->insn->d);
  return location->kind == NATIVE_REGISTERS && !merges(e) ? location->reg[piece_of(location, copy, part)]
                                                          : hg_neon_scratch(e, 3);
}

/* Blends in the old value of lanes outside the mask. */
static unsigned merge(neon_emit *e, const native_location *location, uint32_t copy, uint32_t part, unsigned reg,
                      int mask) {
  unsigned old = load_location(e, location, hg_neon_type(e, e->insn->d), copy, part, hg_neon_scratch(e, 4));
  if (hg_neon_is_64(e, e->insn->d)) mask = (int)hg_neon_mask_part(e, (unsigned)mask, part, hg_neon_scratch(e, 5));
  hg_a64(&e->a, A64_bit, 0, old, reg, (unsigned)mask);
  return old;
}

/* All ones if the mask has a lane in any copy: a uniform value changes if any lane participates. */
static unsigned mask_of_group(neon_emit *e) {
  unsigned sum = hg_neon_scratch(e, 4), all = hg_neon_scratch(e, 5);
  for (uint32_t c = 0; c < e->copies; c++) {
    unsigned mask = (unsigned)hg_neon_mask(e, c, all);
    if (c == 0) hg_a64_move_vector(&e->a, sum, mask);
    else hg_a64(&e->a, A64_orr, 0, sum, sum, mask);
  }
  hg_a64(&e->a, A64_umaxv, A64_32B, all, sum, 0);
  hg_a64_dup_lane(&e->a, A64_32B, all, all, 0);
  return all;
}

/* The lanes that change. A row continues with the lanes of another run. */
static int merging_mask(neon_emit *e, const native_location *location, uint32_t copy) {
  if (merges(e)) return location->is_uniform ? (int)mask_of_group(e) : hg_neon_mask(e, copy, hg_neon_scratch(e, 5));
  return location->kind == NATIVE_ROW && !location->is_uniform && e->is_tail ? NEON_TAIL_MASK : -1;
}

void hg_neon_set_result(neon_emit *e, uint32_t copy, uint32_t part, unsigned reg) {
  const native_location *location = native_location_of(e->b, e->insn->d);
  uint8_t type = hg_neon_type(e, e->insn->d);
  uint32_t piece = piece_of(location, copy, part);
  int mask = merging_mask(e, location, copy);
  if (mask >= 0) reg = merge(e, location, copy, part, reg, mask);
  if (location->kind == NATIVE_REGISTERS) hg_a64_move_vector(&e->a, location->reg[piece], reg);
  else if (location->kind == NATIVE_SLOT)
    hg_a64_memory(&e->a, A64_str_q, reg, A64_SP, location->offset + piece * NEON_VECTOR_BYTES);
  else if (location->kind == NATIVE_ROW && location->is_uniform) /* other groups still read the old value */
    hg_a64_memory(&e->a, A64_str_q, reg, NEON_ROWS, location->offset + (e->is_once ? 0 : NATIVE_BLOCK_UNIFORM_BYTES));
  else if (location->kind == NATIVE_ROW) {
    int64_t offset = row_address(e, location, hg_neon_log_bytes(type), copy, part);
    unsigned scratch = hg_neon_scratch(e, 5);
    if (type == SSA_PREDICATE) {
      hg_a64_shift(&e->a, A64_ushr, A64_32B, scratch, reg, 31);
      reg = scratch;
      type = ATLAS_u8;
    }
    hg_neon_store_elements(e, type, reg, 0, offset, scratch);
  }
}

/* ---- predicates -------------------------------------------------------------------------------------------------- */

unsigned hg_neon_predicate(neon_emit *e, uint32_t reg, uint32_t copy, unsigned scratch) {
  uint64_t bits;
  const hg_vector *v = e->b->vector;
  if (reg == VECTOR_ALL && v->loses_lanes)
    return load_location(e, native_location_of(e->b, (uint32_t)v->regs.count), SSA_PREDICATE, copy, 0, scratch);
  if (reg == VECTOR_ALL && e->is_tail) return NEON_TAIL_MASK;
  if (reg == VECTOR_ALL) bits = 1;
  else if (!hg_neon_constant_bits(e, reg, &bits))
    return load_location(e, native_location_of(e->b, reg), SSA_PREDICATE, copy, 0, scratch);
  hg_a64_constant(&e->a, A64_64B, scratch, bits ? UINT64_MAX : 0);
  return scratch;
}

int hg_neon_mask(neon_emit *e, uint32_t copy, unsigned scratch) {
  uint32_t mask = e->insn->mask;
  if (mask == VECTOR_ALL && !e->is_tail && !e->b->vector->loses_lanes) return -1;
  unsigned reg = hg_neon_predicate(e, mask, copy, scratch);
  if (!e->is_tail || reg == NEON_TAIL_MASK) return (int)reg;
  hg_a64(&e->a, A64_and, 0, scratch, reg, NEON_TAIL_MASK);
  return (int)scratch;
}

unsigned hg_neon_mask_part(neon_emit *e, unsigned mask, uint32_t part, unsigned scratch) {
  hg_a64(&e->a, part == 0 ? A64_zip1 : A64_zip2, A64_32B, scratch, mask, mask);
  return scratch;
}

/* At the start of a group: the lanes that have not ended: all that exist, or those that earlier regions have left. */
void hg_neon_begin_alive(neon_emit *e) {
  uint32_t alive = (uint32_t)e->b->vector->regs.count;
  const native_location *location = native_location_of(e->b, alive);
  const native_location row = {.kind = NATIVE_ROW, .parts = 1, .copies = 2, .offset = e->b->alive_offset};
  if (!e->b->vector->loses_lanes) return;
  for (uint32_t c = 0; c < e->copies; c++) {
    unsigned to = location->kind == NATIVE_REGISTERS ? location->reg[c] : hg_neon_scratch(e, 0);
    if (e->b->steps.count > 1) load_location(e, &row, SSA_PREDICATE, c, 0, to);
    else if (e->is_tail) hg_a64_move_vector(&e->a, to, NEON_TAIL_MASK);
    else hg_a64_constant(&e->a, A64_64B, to, UINT64_MAX);
    if (location->kind == NATIVE_SLOT)
      hg_a64_memory(&e->a, A64_str_q, to, A64_SP, location->offset + c * NEON_VECTOR_BYTES);
  }
}
