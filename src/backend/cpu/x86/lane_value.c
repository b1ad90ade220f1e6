/* lane_value.c - code for one lane: operands and results.
 *
 * f32 and f64 are in the lowest element of vector registers, all else in general registers, and what has no register in
 * slots of 8 bytes. native_location.reg numbers the vector registers first. */
#include "backend/cpu/x86/one_lane.h"

const uint8_t hg_x86_lane_registers[X86_LANE_REGISTERS] = {X86_RBP, X86_RSI, X86_RDI, X86_R8,  X86_R9,
                                                           X86_R10, X86_R11, X86_R12, X86_R13, X86_POOL};

/* ---- operands ---------------------------------------------------------------------------------------------------- */

x86_rm hg_x86_lane_place(const x86_emit *e, const native_location *location) {
  if (location->kind != NATIVE_REGISTERS) return hg_x86_frame(location->offset);
  return x86_reg(hg_x86_lane_registers[location->reg[0] - e->b->target->vector_count]);
}

int hg_x86_lane_vector(const x86_emit *e, uint32_t r, unsigned *reg) {
  const native_location *location = native_location_of(e->b, r);
  if (vector_reg_at(e->b->vector, r)->kind != VECTOR_VARIES || location->kind != NATIVE_REGISTERS) return 0;
  *reg = location->reg[0];
  return *reg < e->b->target->vector_count;
}

int hg_x86_lane_operand(const x86_emit *e, uint32_t r, x86_rm *rm) {
  const vector_reg *reg = vector_reg_at(e->b->vector, r);
  unsigned vector;
  if (reg->kind == VECTOR_SCALAR && e->scalar_of[reg->bits] != 0) *rm = x86_reg(e->scalar_of[reg->bits]);
  else if (reg->kind == VECTOR_SCALAR)
    *rm = x86_at(X86_CONTEXT, hg_x86_place_offset(reg->bits, offsetof(native_place, scalar)));
  else if (reg->kind == VECTOR_SPECIAL) *rm = x86_reg(X86_LANE);
  else if (reg->kind != VECTOR_VARIES || native_location_of(e->b, r)->kind == NATIVE_NOWHERE ||
           hg_x86_lane_vector(e, r, &vector))
    return 0;
  else *rm = hg_x86_lane_place(e, native_location_of(e->b, r));
  return 1;
}

/* A constant; 0 stands for a value that nothing writes. */
static uint64_t constant_of(const x86_emit *e, uint32_t r) {
  const vector_reg *reg = vector_reg_at(e->b->vector, r);
  if (reg->kind != VECTOR_CONSTANT) return 0;
  return reg->type == SSA_PREDICATE ? reg->bits & 1 : hg_native_widen(reg->type, reg->bits);
}

int hg_x86_lane_immediate(const x86_emit *e, uint32_t r, int w, int32_t *immediate) {
  x86_rm rm;
  uint64_t bits;
  if (hg_x86_lane_operand(e, r, &rm)) return 0;
  bits = constant_of(e, r);
  *immediate = (int32_t)(uint32_t)bits;
  return !w || (uint64_t)(int64_t)*immediate == bits;
}

void hg_x86_lane_read(x86_emit *e, unsigned to, uint32_t r) {
  x86_rm rm;
  unsigned vector;
  int w = x86_is_wide(hg_x86_type(e, r));
  if (hg_x86_lane_operand(e, r, &rm)) {
    if (rm.is_memory || rm.reg != to) hg_x86_load(&e->a, w, to, rm);
    return;
  }
  uint64_t bits = constant_of(e, r);
  if (hg_x86_lane_vector(e, r, &vector)) hg_x86_x(e, w ? X86_vmovq_to_g : X86_vmovd_to_g, vector, 0, x86_reg(to));
  else if (bits <= UINT32_MAX) hg_x86_move_imm(&e->a, to, (uint32_t)bits);
  else hg_x86_move_imm64(&e->a, to, bits);
}

unsigned hg_x86_lane_register(x86_emit *e, uint32_t r, unsigned scratch) {
  x86_rm rm;
  if (hg_x86_lane_operand(e, r, &rm) && !rm.is_memory) return rm.reg;
  hg_x86_lane_read(e, scratch, r);
  return scratch;
}

x86_rm hg_x86_lane_source(x86_emit *e, uint32_t r, unsigned scratch) {
  x86_rm rm;
  unsigned vector;
  if (hg_x86_lane_vector(e, r, &vector)) return x86_reg(vector);
  if (!hg_x86_lane_operand(e, r, &rm)) rm = x86_reg(hg_x86_lane_register(e, r, X86_RAX));
  hg_x86_x(e, hg_x86_is_64(e, r) ? X86_vmovq_from_g : X86_vmovd_from_g, scratch, 0, rm);
  return x86_reg(scratch);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

unsigned hg_x86_lane_result(const x86_emit *e, uint32_t s) {
  const native_location *d = native_location_of(e->b, e->insn->d);
  x86_rm rm;
  if (d->kind != NATIVE_REGISTERS) return X86_RAX;
  unsigned to = hg_x86_lane_place(e, d).reg;
  int is_read = s != VECTOR_NONE && hg_x86_lane_operand(e, s, &rm) && !rm.is_memory && rm.reg == to;
  return is_read ? X86_RAX : to;
}

void hg_x86_lane_set(x86_emit *e, unsigned from) {
  const native_location *d = native_location_of(e->b, e->insn->d);
  int w = x86_is_wide(hg_x86_type(e, e->insn->d));
  if (d->kind == NATIVE_NOWHERE) return;
  x86_rm to = hg_x86_lane_place(e, d);
  if (to.is_memory) hg_x86_store(&e->a, w, to, from);
  else if (to.reg != from) hg_x86_load(&e->a, w, to.reg, x86_reg(from));
}

void hg_x86_lane_set_vector(x86_emit *e, unsigned from) {
  const native_location *d = native_location_of(e->b, e->insn->d);
  int w = x86_is_wide(hg_x86_type(e, e->insn->d));
  if (d->kind != NATIVE_NOWHERE)
    hg_x86_x(e, w ? X86_vmovq_to_g : X86_vmovd_to_g, from, 0, hg_x86_lane_place(e, d));
}

void hg_x86_lane_extend(x86_emit *e, uint8_t type, unsigned reg) {
  unsigned bits = 8 * atlas_bytes((atlas_type)type);
  if (bits >= 32) return;
  if (!x86_is_signed(type)) hg_x86_alu_imm(&e->a, X86_AND, 0, x86_reg(reg), (int32_t)((1u << bits) - 1));
  else {
    hg_x86_shift_imm(&e->a, 0, X86_SHL, reg, 32 - bits);
    hg_x86_shift_imm(&e->a, 0, X86_SAR, reg, 32 - bits);
  }
}

/* ---- predicates -------------------------------------------------------------------------------------------------- */

x86_rm hg_x86_lane_predicate(x86_emit *e, uint32_t r) {
  x86_rm rm;
  if (r == VECTOR_ALL) return hg_x86_lane_place(e, native_location_of(e->b, (uint32_t)e->b->vector->regs.count));
  if (hg_x86_lane_operand(e, r, &rm)) return rm;
  hg_x86_lane_read(e, X86_RAX, r);
  return x86_reg(X86_RAX);
}

void hg_x86_lane_test(x86_emit *e, uint32_t r) {
  x86_rm rm = hg_x86_lane_predicate(e, r);
  if (rm.is_memory) hg_x86_alu_imm(&e->a, X86_CMP, 0, rm, 0);
  else hg_x86_test(&e->a, 0, rm.reg, rm.reg);
}

/* Moves leave the flags alone. */
void hg_x86_lane_condition(x86_emit *e, x86_condition condition) {
  hg_x86_move_imm(&e->a, X86_RAX, 0);
  hg_x86_move_imm(&e->a, X86_RCX, 1);
  hg_x86_move_if(&e->a, condition, 0, X86_RAX, x86_reg(X86_RCX));
  hg_x86_lane_set(e, X86_RAX);
}
