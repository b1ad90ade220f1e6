/* value.c - reads operands and stores results: registers, frame, rows, constants, parameters, special registers. */
#include "backend/cpu/x86/x86_arith.h"

#include "base/error.h"

#include <stddef.h>

/* ---- sources ----------------------------------------------------------------------------------------------------- */

static x86_rm special_operand(x86_emit *e, const vector_reg *r, uint32_t copy, uint32_t part, unsigned scratch) {
  uint32_t first = hg_x86_first_lane(e, copy) + part * (e->lanes / 2u);
  if (r->bits == ATLAS_REG_BLOCK_LANE && e->b->slices > 0) /* the block's first lane is its lane 0 */
    return x86_at(X86_POOL, (int32_t)(e->pool.iota_place * 4 + first * 4));
  if (r->bits == ATLAS_REG_LANE) hg_x86_count_up(e, scratch, X86_LANE, first, 1);
  else if (r->bits == ATLAS_REG_BLOCK_LANE) hg_x86_count_up(e, scratch, X86_TILE_LANE, first, 0);
  else return hg_x86_context(e, offsetof(native_context, special) + 8 * (r->bits - ATLAS_REG_BLOCK_LANE), 0, scratch);
  return x86_reg(scratch);
}

static x86_rm row_address(const native_location *location, unsigned log_bytes, uint32_t first) {
  return x86_indexed(X86_ROWS, X86_TILE_LANE, log_bytes, (int32_t)(location->offset + (first << log_bytes)));
}

/* Elements of memory into a register, widened. */
void hg_x86_load_elements(x86_emit *e, uint8_t type, unsigned reg, x86_rm from, unsigned mask) {
  static const uint16_t op[ATLAS_TYPE_COUNT] = {
      [ATLAS_i8] = X86_vpmovsxbd,  [ATLAS_i16] = X86_vpmovsxwd, [ATLAS_u8] = X86_vpmovzxbd,
      [ATLAS_u16] = X86_vpmovzxwd, [ATLAS_f16] = X86_vpmovzxwd, [ATLAS_bf16] = X86_vpmovzxwd,
      [ATLAS_f8e4m3] = X86_vpmovzxbd, [ATLAS_f8e5m2] = X86_vpmovzxbd, [ATLAS_bool] = X86_vpmovzxbd};
  uint32_t bytes = atlas_bytes((atlas_type)type);
  unsigned load = bytes == 8 ? X86_vload64 : bytes == 4 || type >= ATLAS_TYPE_COUNT ? X86_vload : op[type];
  hg_x86_vk(e, load, reg, 0, from, 0, mask, mask != 0);
}

static x86_rm row_operand(x86_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned scratch) {
  uint8_t type = hg_x86_type(e, reg);
  static const uint8_t log_of[9] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3};
  uint32_t first = copy * e->lanes + part * (e->lanes / 2u);
  if (native_location_of(e->b, reg)->is_uniform)
    return x86_at(X86_ROWS, (int32_t)native_location_of(e->b, reg)->offset);
  x86_rm from = row_address(native_location_of(e->b, reg), log_of[atlas_bytes((atlas_type)type)], first);
  if (atlas_bytes((atlas_type)type) >= 4) return from;
  hg_x86_load_elements(e, type, scratch, from, 0);
  return x86_reg(scratch);
}

/* See hg_native_is_operand. */
static x86_rm shared_operand(const x86_emit *e, const vector_reg *r) {
  const vector_insn *load = vector_insn_at(e->b->vector, r->first);
  x86_rm rm = x86_at((unsigned)e->base_of[load->symbol], (int32_t)(load->bits * sizeof(float)));
  rm.broadcast = 1;
  return rm;
}

unsigned hg_x86_row_start(const x86_emit *e, uint32_t number) {
  return hg_x86_base_registers[e->used_bases - e->b->row_start_registers + number];
}

int hg_x86_find_row(const x86_emit *e, uint32_t index, unsigned *lane, int64_t *more) {
  const hg_vector *v = e->b->vector;
  uint32_t added;
  uint64_t constant;
  *lane = X86_TILE_LANE;
  if (!hg_native_find_row(v, index, vector_reg_at(v, index)->first, &added, &constant)) return 0;
  *more = (int64_t)constant;
  uint32_t number = added == VECTOR_NONE ? NATIVE_MOST_ROW_STARTS : hg_native_row_start(e->b, added);
  if (number < NATIVE_MOST_ROW_STARTS) *lane = hg_x86_row_start(e, number);
  return added == VECTOR_NONE || number < NATIVE_MOST_ROW_STARTS;
}

/* See hg_native_is_element. */
static x86_rm element_operand(const x86_emit *e, uint32_t reg) {
  const vector_insn *load = vector_insn_at(e->b->vector, vector_reg_at(e->b->vector, reg)->first);
  unsigned lane;
  int64_t more, slice = load->slice % e->b->slices;
  hg_x86_find_row(e, load->s[0], &lane, &more); /* there is one */
  return x86_indexed((unsigned)e->base_of[load->symbol], lane, 2,
                     (int32_t)(((int64_t)load->bits + more + slice * e->lanes) * (int64_t)sizeof(uint32_t)));
}

x86_rm hg_x86_source(x86_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned scratch) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  if (r->kind == VECTOR_CONSTANT) return hg_x86_register_constant(e, reg);
  if (r->kind == VECTOR_SCALAR)
    return hg_x86_context(e, offsetof(native_context, place) + r->bits * sizeof(native_place) +
                                  offsetof(native_place, scalar), hg_x86_is_64(e, reg), scratch);
  if (r->kind == VECTOR_SPECIAL) return special_operand(e, r, copy, part, scratch);
  if (e->lanes == 1) return hg_x86_lane_source(e, reg, scratch);
  const native_location *location = native_location_of(e->b, reg);
  if (location->kind == NATIVE_ROW) return row_operand(e, reg, copy, part, scratch);
  if (location->kind == NATIVE_NOWHERE && e->b->slices > 0) return shared_operand(e, r);
  if (location->kind == NATIVE_ELEMENTS) return element_operand(e, reg);
  if (e->loop.version == X86_QUICK && e->loop.folded == reg && e->loop.folded_into == e->index) {
    x86_rm at = e->loop.folded_at;
    at.displacement += (int32_t)(copy * e->vector_bytes);
    return at;
  }
  uint32_t piece = (location->copies == 1 ? 0 : copy) * location->parts + (location->parts == 1 ? 0 : part);
  if (location->kind == NATIVE_REGISTERS) return x86_reg(location->reg[piece]);
  return x86_at(X86_FRAME, (int32_t)(location->offset + piece * e->vector_bytes));
}

unsigned hg_x86_rm_reg(x86_emit *e, x86_rm rm, int is_64, unsigned scratch) {
  if (!rm.is_memory) return rm.reg;
  unsigned op = is_64 ? X86_vload64 : X86_vload;
  if (rm.broadcast) op = is_64 ? X86_vpbroadcastq : X86_vpbroadcastd;
  rm.broadcast = 0;
  hg_x86_v(e, op, scratch, 0, rm);
  return scratch;
}

unsigned hg_x86_source_reg(x86_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned scratch) {
  return hg_x86_rm_reg(e, hg_x86_source(e, reg, copy, part, scratch), hg_x86_is_64(e, reg), scratch);
}

int hg_x86_is_in_memory(const x86_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  const native_location *location = native_location_of(e->b, reg);
  if (r->kind == VECTOR_VARIES) return location->kind == NATIVE_ROW && location->is_uniform;
  return !hg_native_is_lane_number(r);
}

void hg_x86_load_block_uniform(x86_emit *e, unsigned reg, uint32_t from) {
  const vector_reg *r = vector_reg_at(e->b->vector, from);
  const native_location *location = native_location_of(e->b, from);
  x86_rm at = x86_at(location->kind == NATIVE_SLOT ? X86_FRAME : X86_ROWS, (int32_t)location->offset);
  if (r->kind == VECTOR_VARIES && location->kind == NATIVE_REGISTERS) {
    hg_x86_x(e, X86_vmovd_to_g, location->reg[0], 0, x86_reg(reg));
    return;
  }
  if (r->kind == VECTOR_CONSTANT) {
    hg_x86_move_imm(&e->a, reg, (uint32_t)r->bits);
    return;
  }
  if (r->kind == VECTOR_SCALAR)
    at = x86_at(X86_CONTEXT, hg_x86_place_offset(r->bits, offsetof(native_place, scalar)));
  if (r->kind == VECTOR_SPECIAL)
    at = x86_at(X86_CONTEXT, (int32_t)(offsetof(native_context, special) + 8 * (r->bits - ATLAS_REG_BLOCK_LANE)));
  hg_x86_load(&e->a, 0, reg, at);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* 1: a general register, or 8 bytes of the frame, as code for one lane has beside its vector registers. */
static int is_of_lane(const x86_emit *e, const native_location *location) {
  return e->lanes == 1 && (location->kind != NATIVE_REGISTERS || location->reg[0] >= e->b->target->vector_count);
}

static uint32_t piece_of(const native_location *location, uint32_t copy, uint32_t part) {
  return (location->copies == 1 ? 0 : copy) * location->parts + part;
}

unsigned hg_x86_result_register(x86_emit *e, uint32_t copy, uint32_t part, unsigned scratch) {
  const native_location *location = native_location_of(e->b, e->insn->d);
  if (is_of_lane(e, location)) return scratch;
  return location->kind == NATIVE_REGISTERS && !hg_x86_merges(e) ? location->reg[piece_of(location, copy, part)]
                                                                 : scratch;
}

void hg_x86_store_elements(x86_emit *e, uint8_t type, x86_rm to, unsigned reg, unsigned mask, unsigned scratch) {
  uint32_t bytes = atlas_bytes((atlas_type)type);
  if (e->width == 2 || bytes >= 4) {
    unsigned op = bytes == 8 ? X86_vstore64 : bytes == 4 ? X86_vstore : bytes == 2 ? X86_vpmovdw : X86_vpmovdb;
    hg_x86_vk(e, op, reg, 0, to, 0, mask, 0);
    return;
  }
  /* AVX2 has no narrowing store: the low 16 or 8 bits are packed within the halves, and the halves are joined. */
  hg_x86_v(e, X86_vpandd, scratch, reg, hg_x86_constant(e, bytes == 2 ? 0xffff : 0xff, 0));
  hg_x86_v(e, X86_vpackusdw, scratch, scratch, x86_reg(scratch));
  hg_x86_vi(e, X86_vpermq_imm, scratch, 0, x86_reg(scratch), 0x08);
  if (bytes == 1) hg_x86_v(e, X86_vpackuswb, scratch, scratch, x86_reg(scratch));
  if (bytes == 2) hg_x86_x(e, X86_vstore, scratch, 0, to);
  else hg_x86_x(e, X86_vmovq_store, scratch, 0, to);
}

/* AVX2, tail: the row continues with another run's lanes. Elements whose store cannot be masked are blended with the
 * old ones. */
static void store_row_tail(x86_emit *e, uint8_t type, x86_rm to, uint32_t part, unsigned reg) {
  uint32_t bytes = atlas_bytes((atlas_type)type);
  unsigned s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  hg_x86_v(e, X86_vload, s2, 0, hg_x86_tail_mask(e));
  if (bytes >= 4) {
    unsigned mask = bytes == 8 ? hg_x86_mask_part(e, s2, part, s2) : s2;
    hg_x86_v(e, bytes == 8 ? X86_vpmaskstore64 : X86_vpmaskstore, reg, mask, to);
    return;
  }
  hg_x86_load_elements(e, type, s1, to, 0);
  hg_x86_vi(e, X86_vblendvps, s1, s1, x86_reg(reg), s2 << 4);
  hg_x86_store_elements(e, type, to, s1, 0, s2);
}

/* The offset at which a new block-uniform value is stored, while other groups still read the old one. */
int32_t hg_x86_pending_block_uniform(const x86_emit *e, const native_location *location) {
  return (int32_t)(location->offset + (e->is_once ? 0 : NATIVE_BLOCK_UNIFORM_BYTES));
}

static void store_row(x86_emit *e, const native_location *location, uint32_t copy, uint32_t part, unsigned reg,
                     unsigned mask) {
  uint8_t type = hg_x86_type(e, e->insn->d);
  if (location->is_uniform) {
    hg_x86_v(e, X86_vstore, reg, 0, x86_at(X86_ROWS, hg_x86_pending_block_uniform(e, location)));
    return;
  }
  static const uint8_t log_of[9] = {[1] = 0, [2] = 1, [4] = 2, [8] = 3};
  uint32_t first = copy * e->lanes + part * (e->lanes / 2u);
  x86_rm to = row_address(location, log_of[atlas_bytes((atlas_type)type)], first);
  if (e->width == 1 && e->is_tail) store_row_tail(e, type, to, part, reg);
  else hg_x86_store_elements(e, type, to, reg, mask, hg_x86_scratch(e, e->width == 1 ? 2 : 3));
}

/* EVEX: the mask of the lanes that are written; 0: all. */
static unsigned writing_mask(x86_emit *e, const native_location *location, uint32_t copy, uint32_t part) {
  int is_row = location->kind == NATIVE_ROW && !location->is_uniform;
  if (!hg_x86_merges(e) && !(is_row && e->is_tail)) return 0;
  int mask = hg_x86_whole_mask(e, copy, 1);
  if (mask < 0) return 0;
  return hg_x86_is_64(e, e->insn->d) ? hg_x86_mask_part(e, (unsigned)mask, part, 1) : (unsigned)mask;
}

/* Without mask registers: blends in the old value in lanes outside the mask. */
static unsigned blend_old(x86_emit *e, const native_location *location, uint32_t copy, uint32_t part, unsigned reg) {
  unsigned mask = (unsigned)hg_x86_whole_mask(e, copy, hg_x86_scratch(e, 2));
  if (hg_x86_is_64(e, e->insn->d)) mask = hg_x86_mask_part(e, mask, part, hg_x86_scratch(e, 2));
  unsigned to =
      location->kind == NATIVE_REGISTERS ? location->reg[piece_of(location, copy, part)] : hg_x86_scratch(e, 3);
  unsigned old = hg_x86_source_reg(e, e->insn->d, copy, part, hg_x86_scratch(e, 3));
  hg_x86_vi(e, X86_vblendvps, to, old, x86_reg(reg), mask << 4);
  return to;
}

/* 1: nothing else needs what the register holds. The result of a move or cast is its source's own register, which
 * another piece of the result, or a later instruction, may read as well. */
static int is_scratch(const x86_emit *e, unsigned reg) { return reg >= hg_x86_scratch(e, 0); }

void hg_x86_set_result(x86_emit *e, uint32_t copy, uint32_t part, unsigned reg) {
  const native_location *location = native_location_of(e->b, e->insn->d);
  int is_64 = hg_x86_is_64(e, e->insn->d);
  unsigned mask = 0;
  if (is_of_lane(e, location)) {
    hg_x86_lane_set_vector(e, reg);
    return;
  }
  if (e->width == 2) mask = writing_mask(e, location, copy, part);
  else if (hg_x86_merges(e)) reg = blend_old(e, location, copy, part, reg);
  uint32_t piece = piece_of(location, copy, part);
  if (location->kind == NATIVE_ROW) store_row(e, location, copy, part, reg, mask);
  else if (location->kind == NATIVE_SLOT)
    hg_x86_vk(e, is_64 ? X86_vstore64 : X86_vstore, reg, 0,
              x86_at(X86_FRAME, (int32_t)(location->offset + piece * e->vector_bytes)), 0, mask, 0);
  else if (location->kind == NATIVE_REGISTERS && mask != 0 && is_scratch(e, reg) &&
           hg_x86_redirect(&e->a, reg, location->reg[piece], mask, is_64))
    return;
  else if (location->kind == NATIVE_REGISTERS && location->reg[piece] != reg)
    hg_x86_vk(e, is_64 ? X86_vmove64 : X86_vmove, location->reg[piece], 0, x86_reg(reg), 0, mask, 0);
}

void hg_x86_with_constant(x86_emit *e, unsigned op32, unsigned op64, uint64_t bits) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, is_64 ? op64 : op32, to, a, hg_x86_constant(e, bits, is_64));
    hg_x86_set_result(e, c, p, to);
  }
}
