/* lane_arith.c - code for one lane: arithmetic, comparisons, selection, conversions. Integers are computed in general
 * registers. Floats, and what converts from or to them, are written as for vectors (arith.c), of which the lane is the
 * lowest element: arithmetic in its scalar forms, so that the other elements cost no time whatever they hold. */
#include "backend/cpu/x86/one_lane.h"

/* ---- integers ---------------------------------------------------------------------------------------------------- */

/* 1 if a sum of two registers, or of one and a constant, in a third is one instruction. */
static int write_sum(x86_emit *e, uint32_t a, uint32_t b, int w) {
  unsigned to = hg_x86_lane_result(e, VECTOR_NONE);
  int32_t immediate;
  x86_rm left, right;
  if (!hg_x86_lane_operand(e, a, &left) || left.is_memory || left.reg == to) return 0;
  if (hg_x86_lane_immediate(e, b, w, &immediate)) left = x86_at(left.reg, immediate);
  else if (!hg_x86_lane_operand(e, b, &right) || right.is_memory || right.reg == to) return 0;
  else left = x86_indexed(left.reg, right.reg, 0, 0);
  if (w) hg_x86_lea(&e->a, to, left);
  else hg_x86_lea32(&e->a, to, left);
  hg_x86_lane_extend(e, e->insn->type, to);
  hg_x86_lane_set(e, to);
  return 1;
}

static void write_alu(x86_emit *e, x86_alu op, uint32_t a, uint32_t b, int w) {
  unsigned to = hg_x86_lane_result(e, VECTOR_NONE);
  int32_t immediate;
  x86_rm rm;
  if (op == X86_ADD && write_sum(e, a, b, w)) return;
  if (op != X86_SUB && hg_x86_lane_operand(e, b, &rm) && !rm.is_memory && rm.reg == to) {
    uint32_t other = a;
    a = b;
    b = other;
  }
  to = hg_x86_lane_result(e, b);
  hg_x86_lane_read(e, to, a);
  if (hg_x86_lane_immediate(e, b, w, &immediate)) hg_x86_alu_imm(&e->a, op, w, x86_reg(to), immediate);
  else if (hg_x86_lane_operand(e, b, &rm)) hg_x86_alu_rm(&e->a, op, w, to, rm);
  else {
    hg_x86_lane_read(e, X86_RCX, b);
    hg_x86_alu_rm(&e->a, op, w, to, x86_reg(X86_RCX));
  }
  if (e->insn->type != SSA_PREDICATE && x86_is_integer(e->insn->type)) hg_x86_lane_extend(e, e->insn->type, to);
  hg_x86_lane_set(e, to);
}

/* a b, or a b + c */
static void write_product(x86_emit *e, int w) {
  const uint32_t *s = e->insn->s;
  hg_x86_lane_read(e, X86_RAX, s[0]);
  hg_x86_multiply(&e->a, w, X86_RAX, x86_reg(hg_x86_lane_register(e, s[1], X86_RCX)));
  if (e->insn->op == ATLAS_OP_mad)
    hg_x86_alu_rm(&e->a, X86_ADD, w, X86_RAX, x86_reg(hg_x86_lane_register(e, s[2], X86_RCX)));
  hg_x86_lane_extend(e, e->insn->type, X86_RAX);
  hg_x86_lane_set(e, X86_RAX);
}

static void write_shift(x86_emit *e, int w) {
  uint8_t type = e->insn->type;
  unsigned bits = 8 * atlas_bytes((atlas_type)type), to = hg_x86_lane_result(e, e->insn->s[1]);
  x86_shift op = e->insn->op == ATLAS_OP_shl ? X86_SHL : x86_is_signed(type) ? X86_SAR : X86_SHR;
  uint64_t count;
  if (hg_x86_constant_bits(e, e->insn->s[1], &count)) {
    hg_x86_lane_read(e, to, e->insn->s[0]);
    hg_x86_shift_imm(&e->a, w, op, to, (unsigned)count & (bits - 1));
  } else {
    hg_x86_lane_read(e, X86_RCX, e->insn->s[1]);
    if (bits < 32) hg_x86_alu_imm(&e->a, X86_AND, 0, x86_reg(X86_RCX), (int32_t)bits - 1);
    hg_x86_lane_read(e, to, e->insn->s[0]);
    hg_x86_shift_cl(&e->a, w, op, to);
  }
  hg_x86_lane_extend(e, type, to);
  hg_x86_lane_set(e, to);
}

/* Unsigned; C code divides by 0. */
static void write_division(x86_emit *e, int w) {
  uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
  hg_x86_lane_read(e, X86_RCX, e->insn->s[1]);
  hg_x86_test(&e->a, w, X86_RCX, X86_RCX);
  hg_x86_jump_if(&e->a, X86_EQUAL, slow);
  hg_x86_lane_read(e, X86_RAX, e->insn->s[0]);
  hg_x86_move_imm(&e->a, X86_RDX, 0);
  hg_x86_divide_by(&e->a, w, x86_reg(X86_RCX));
  hg_x86_lane_set(e, e->insn->op == ATLAS_OP_div ? X86_RAX : X86_RDX);
  hg_x86_slow_back(e);
}

static void write_extreme(x86_emit *e, int w) {
  const uint32_t *s = e->insn->s;
  int is_min = e->insn->op == ATLAS_OP_min, is_less = x86_is_signed(e->insn->type);
  hg_x86_lane_read(e, X86_RAX, s[0]);
  hg_x86_lane_read(e, X86_RCX, s[1]);
  hg_x86_alu_rm(&e->a, X86_CMP, w, X86_RCX, x86_reg(X86_RAX));
  x86_condition lower = is_less ? X86_LESS : X86_BELOW, higher = is_less ? X86_GREATER : X86_ABOVE;
  hg_x86_move_if(&e->a, is_min ? lower : higher, w, X86_RAX, x86_reg(X86_RCX));
  hg_x86_lane_set(e, X86_RAX);
}

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

/* `mask` = all ones if the current comparison, of floats, holds. */
static void write_mask(x86_emit *e, unsigned mask) {
  enum { EQUAL = 0, LESS = 0x11, LESS_EQUAL = 0x12, ORDERED = 7 };
  const vector_insn *insn = e->insn;
  unsigned relation = insn->op == ATLAS_OP_set_eq   ? EQUAL
                      : insn->op == ATLAS_OP_set_lt ? LESS
                      : insn->op == ATLAS_OP_set_le ? LESS_EQUAL
                                                    : ORDERED;
  unsigned left = hg_x86_source_reg(e, insn->s[0], 0, 0, hg_x86_scratch(e, 0));
  x86_rm right = hg_x86_source(e, insn->s[1], 0, 0, hg_x86_scratch(e, 1));
  hg_x86_vi(e, insn->type2 == ATLAS_f64 ? X86_vcmppd : X86_vcmpps, mask, left, right, relation);
}

/* The flags of an unordered comparison are those of "below" and "equal". */
static x86_condition compare_real(x86_emit *e) {
  const vector_insn *insn = e->insn;
  int is_exchanged = insn->op == ATLAS_OP_set_lt || insn->op == ATLAS_OP_set_le;
  if (insn->op == ATLAS_OP_set_eq) {
    write_mask(e, hg_x86_scratch(e, 2));
    hg_x86_x(e, X86_vmovd_to_g, hg_x86_scratch(e, 2), 0, x86_reg(X86_RAX));
    hg_x86_test(&e->a, 0, X86_RAX, X86_RAX);
    return X86_NOT_EQUAL;
  }
  unsigned left = hg_x86_source_reg(e, insn->s[is_exchanged], 0, 0, hg_x86_scratch(e, 0));
  x86_rm right = hg_x86_source(e, insn->s[!is_exchanged], 0, 0, hg_x86_scratch(e, 1));
  hg_x86_x(e, insn->type2 == ATLAS_f64 ? X86_vucomisd : X86_vucomiss, left, 0, right);
  return insn->op == ATLAS_OP_set_lt ? X86_ABOVE : insn->op == ATLAS_OP_set_le ? X86_ABOVE_EQUAL : X86_NO_PARITY;
}

static void compare(x86_emit *e, uint32_t a, uint32_t b, int w) {
  unsigned left = hg_x86_lane_register(e, a, X86_RAX);
  int32_t immediate;
  x86_rm rm;
  if (hg_x86_lane_immediate(e, b, w, &immediate)) {
    if (immediate == 0) hg_x86_test(&e->a, w, left, left);
    else hg_x86_alu_imm(&e->a, X86_CMP, w, x86_reg(left), immediate);
  } else {
    if (!hg_x86_lane_operand(e, b, &rm)) rm = x86_reg(hg_x86_lane_register(e, b, X86_RCX));
    hg_x86_alu_rm(&e->a, X86_CMP, w, left, rm);
  }
}

x86_condition hg_x86_lane_compare(x86_emit *e) {
  const vector_insn *insn = e->insn;
  if (x86_is_real(insn->type2)) return compare_real(e);
  compare(e, insn->s[0], insn->s[1], x86_is_wide(insn->type2));
  if (insn->op == ATLAS_OP_set_eq) return X86_EQUAL;
  return x86_is_signed(insn->type2) ? X86_LESS : X86_BELOW; /* after a test with itself a value is below 0 as after a
                                                               comparison: never, if it is unsigned */
}

/* ---- selection, moves, conversions ------------------------------------------------------------------------------- */

/* The result, of f32 or f64: `other` where the mask is set, else `value`. */
static void blend(x86_emit *e, uint32_t other, uint32_t value, unsigned mask) {
  unsigned from = hg_x86_source_reg(e, value, 0, 0, hg_x86_scratch(e, 0));
  x86_rm instead = hg_x86_source(e, other, 0, 0, hg_x86_scratch(e, 1));
  unsigned to = hg_x86_result_register(e, 0, 0, hg_x86_scratch(e, 0));
  hg_x86_vi(e, X86_vblendvps, to, from, instead, mask << 4);
  hg_x86_set_result(e, 0, 0, to);
}

/* The flags of a predicate's comparison with 1 become the mask that it is false. */
static void select_real(x86_emit *e) {
  unsigned mask = hg_x86_scratch(e, 2);
  hg_x86_alu_imm(&e->a, X86_CMP, 0, hg_x86_lane_predicate(e, e->insn->s[0]), 1);
  hg_x86_alu_rm(&e->a, X86_SBB, 1, X86_RAX, x86_reg(X86_RAX));
  hg_x86_x(e, X86_vmovq_from_g, mask, 0, x86_reg(X86_RAX));
  blend(e, e->insn->s[2], e->insn->s[1], mask);
}

static void write_select(x86_emit *e) {
  const uint32_t *s = e->insn->s;
  if (x86_is_real(e->insn->type)) {
    select_real(e);
    return;
  }
  int w = x86_is_wide(e->insn->type);
  hg_x86_lane_read(e, X86_RDX, s[1]);
  hg_x86_lane_read(e, X86_RCX, s[2]);
  hg_x86_lane_test(e, s[0]);
  hg_x86_move_if(&e->a, X86_NOT_EQUAL, w, X86_RCX, x86_reg(X86_RDX));
  hg_x86_lane_set(e, X86_RCX);
}

uint32_t hg_x86_lane_selections(const x86_emit *e) {
  const vector_reg *d = vector_reg_at(e->b->vector, e->insn->d);
  if (d->first != e->index || d->last == d->first || d->last >= e->region_end) return 0;
  for (uint32_t i = d->first + 1; i <= d->last; i++) {
    const vector_insn *insn = vector_insn_at(e->b->vector, i);
    int is_mixed = x86_is_real(insn->type) && insn->type != e->insn->type2;
    if (insn->op != ATLAS_OP_sel || insn->s[0] != e->insn->d || is_mixed) return 0;
  }
  return d->last - d->first;
}

/* Scratch 3: the mask of a comparison of floats, for selections of their type. Those of others take the flags, which
 * the former leave alone. */
void hg_x86_lane_select_by_flags(x86_emit *e, uint32_t count) {
  const vector_insn *compared = e->insn;
  if (x86_is_real(compared->type2)) write_mask(e, hg_x86_scratch(e, 3));
  x86_condition holds = hg_x86_lane_compare(e);
  for (e->insn++; e->insn <= compared + count; e->insn++) {
    const uint32_t *s = e->insn->s;
    if (x86_is_real(e->insn->type)) {
      blend(e, s[1], s[2], hg_x86_scratch(e, 3));
      continue;
    }
    unsigned yes = hg_x86_lane_register(e, s[1], X86_RDX);
    hg_x86_lane_read(e, X86_RCX, s[2]);
    hg_x86_move_if(&e->a, holds, x86_is_wide(e->insn->type), X86_RCX, x86_reg(yes));
    hg_x86_lane_set(e, X86_RCX);
  }
}

static void write_move(x86_emit *e) {
  unsigned to = hg_x86_lane_result(e, VECTOR_NONE);
  if (to == X86_RAX) {
    hg_x86_lane_set(e, hg_x86_lane_register(e, e->insn->s[0], X86_RAX));
    return;
  }
  hg_x86_lane_read(e, to, e->insn->s[0]);
  hg_x86_lane_set(e, to);
}

/* Between integers: truncates, or extends by the sign of the source. */
static void write_conversion(x86_emit *e) {
  uint8_t type = e->insn->type, from = e->insn->type2;
  unsigned to = hg_x86_lane_result(e, VECTOR_NONE);
  if (x86_is_wide(type) && !x86_is_wide(from) && x86_is_signed(from))
    hg_x86_load_sign32(&e->a, to, x86_reg(hg_x86_lane_register(e, e->insn->s[0], X86_RAX)));
  else if (x86_is_wide(type) || !x86_is_wide(from)) hg_x86_lane_read(e, to, e->insn->s[0]);
  else hg_x86_load(&e->a, 0, to, x86_reg(hg_x86_lane_register(e, e->insn->s[0], X86_RAX)));
  hg_x86_lane_extend(e, type, to);
  hg_x86_lane_set(e, to);
}

/* Predicates: a and b, a or b; X86_CMP: a and not b. */
static int write_logic(x86_emit *e, x86_alu op) {
  const uint32_t *s = e->insn->s;
  if (s[0] == VECTOR_ALL || s[1] == VECTOR_ALL) return 0;
  if (op != X86_CMP) write_alu(e, op, s[0], s[1], 0);
  else {
    hg_x86_lane_read(e, X86_RDX, s[0]);
    hg_x86_lane_test(e, s[1]);
    hg_x86_move_imm(&e->a, X86_RCX, 0);
    hg_x86_move_if(&e->a, X86_NOT_EQUAL, 0, X86_RDX, x86_reg(X86_RCX));
    hg_x86_lane_set(e, X86_RDX);
  }
  return 1;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Of integers. */
static int write_integer(x86_emit *e) {
  const vector_insn *insn = e->insn;
  const uint32_t *s = insn->s;
  int w = x86_is_wide(insn->type);
  switch (insn->op) {
  case ATLAS_OP_add: write_alu(e, X86_ADD, s[0], s[1], w); return 1;
  case ATLAS_OP_sub: write_alu(e, X86_SUB, s[0], s[1], w); return 1;
  case ATLAS_OP_and: write_alu(e, X86_AND, s[0], s[1], w); return 1;
  case ATLAS_OP_or: write_alu(e, X86_OR, s[0], s[1], w); return 1;
  case ATLAS_OP_xor: write_alu(e, X86_XOR, s[0], s[1], w); return 1;
  case ATLAS_OP_mul:
  case ATLAS_OP_mad: write_product(e, w); return 1;
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: write_shift(e, w); return 1;
  case ATLAS_OP_min:
  case ATLAS_OP_max: write_extreme(e, w); return 1;
  case ATLAS_OP_div:
  case ATLAS_OP_rem:
    if (x86_is_signed(insn->type)) return 0;
    write_division(e, w);
    return 1;
  case ATLAS_OP_not:
    hg_x86_lane_read(e, X86_RAX, s[0]);
    hg_x86_alu_imm(&e->a, X86_XOR, w, x86_reg(X86_RAX), -1);
    hg_x86_lane_extend(e, insn->type, X86_RAX);
    hg_x86_lane_set(e, X86_RAX);
    return 1;
  case ATLAS_OP_cvt:
  case ATLAS_OP_bitcast:
    if (!x86_is_integer(insn->type2)) return 0;
    write_conversion(e);
    return 1;
  default: return 0;
  }
}

/* As for vectors: arithmetic of floats, and all that reads or gives one. */
static int write_as_vector(x86_emit *e) {
  const vector_insn *insn = e->insn;
  if (!e->b->keeps_pool || insn->d == VECTOR_NONE || hg_x86_type(e, insn->d) == SSA_PREDICATE) return 0;
  if (!vector_is_primitive(insn->op)) return hg_x86_vector_operation(e);
  int is_converted = insn->op == ATLAS_OP_cvt || insn->op == ATLAS_OP_bitcast;
  int is_float = atlas_kind((atlas_type)insn->type) == ATLAS_KIND_FLOAT;
  if (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) return 0;
  return (is_converted || is_float) && hg_x86_operation(e);
}

int hg_x86_lane_arithmetic(x86_emit *e) {
  const vector_insn *insn = e->insn;
  unsigned vector;
  switch (insn->op) {
  case VECTOR_MOVE:
    if (hg_x86_lane_vector(e, insn->d, &vector)) return hg_x86_vector_operation(e);
    write_move(e);
    return 1;
  case ATLAS_OP_sel: write_select(e); return 1;
  case ATLAS_OP_pand:
  case VECTOR_AND: return write_logic(e, X86_AND);
  case ATLAS_OP_por:
  case VECTOR_OR: return write_logic(e, X86_OR);
  case VECTOR_ANDNOT: return write_logic(e, X86_CMP);
  case ATLAS_OP_pnot:
    hg_x86_lane_test(e, insn->s[0]);
    hg_x86_lane_condition(e, X86_EQUAL);
    return 1;
  default: break;
  }
  return (x86_is_integer(insn->type) && write_integer(e)) || write_as_vector(e);
}
