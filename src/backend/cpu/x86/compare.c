/* compare.c - comparisons. */
#include "backend/cpu/x86/x86_arith.h"

/* Immediates of vcmpps and vpcmpd, in the order eq ne lt le gt ge num. gt and ge are lt and le with exchanged operands;
 * only straight-line code has `ne`, for votes. */
enum { EQ, NE, LT, LE, GT, GE, NUM };
static const uint8_t float_immediate[7] = {0x00, 0x04, 0x11, 0x12, 0x1e, 0x1d, 0x07};
static const uint8_t integer_immediate[7] = {0, 4, 1, 2, 6, 5};

static int relation_of(uint16_t op) {
  if (op == ATLAS_OP_set_ne) return NE;
  switch ((machine_compare)hg_machine_op(op)) {
  case COMPARE_set_eq: return EQ;
  case COMPARE_set_lt: return LT;
  case COMPARE_set_le: return LE;
  case COMPARE_set_num: return NUM;
  }
  return NUM;
}

/* Compares under the mask of the next instruction, an `and`, which then needs no code; or performs the next `or` as
 * well. */
static int compare_masked(x86_emit *e, unsigned op, uint32_t left, uint32_t right, unsigned immediate) {
  enum { OPPOSITE = 4 }; /* the bit of a relation that negates it */
  const vector_insn *use = hg_native_masked_use(e->b, e->index);
  if (use == NULL) return 0;
  if (use->op == VECTOR_ANDNOT) immediate ^= OPPOSITE;
  uint32_t other = use->s[use->s[0] == e->insn->d];
  if (hg_x86_has_all(e) && e->loop.roles[e->index + 1] & NATIVE_FIRST_ALL) other = VECTOR_ALL;
  int is_or = use->op == ATLAS_OP_por, is_all = other == VECTOR_ALL && !e->is_tail && !hg_x86_loses_lanes(e);
  e->insn = use;
  for (uint32_t c = 0; c < hg_x86_copies(e, use->d); c++) {
    unsigned mask = is_or || is_all ? 0 : hg_x86_predicate(e, other, c, 1), to = hg_x86_predicate_result(e, c, 2);
    unsigned a = hg_x86_source_reg(e, left, c, 0, hg_x86_scratch(e, 0));
    x86_rm b = hg_x86_source(e, right, c, 0, hg_x86_scratch(e, 1));
    hg_x86_vk(e, op, is_or ? 2 : to, a, b, immediate, mask, 0);
    if (is_or) hg_x86_k(e, X86_korw, to, hg_x86_predicate(e, other, c, 1), 2);
    hg_x86_set_predicate_result(e, c, to);
  }
  e->joined = e->index + 1;
  return 1;
}

static void compare_evex(x86_emit *e, unsigned op, uint32_t left, uint32_t right, unsigned immediate) {
  if (compare_masked(e, op, left, right, immediate)) return;
  int is_64 = hg_x86_is_64(e, left);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    unsigned to = hg_x86_predicate_result(e, c, 2);
    for (uint32_t p = 0; p < (is_64 ? 2u : 1u); p++) {
      unsigned a = hg_x86_source_reg(e, left, c, p, hg_x86_scratch(e, 0));
      x86_rm b = hg_x86_source(e, right, c, p, hg_x86_scratch(e, 1));
      hg_x86_vi(e, op, is_64 ? p : to, a, b, immediate);
    }
    if (is_64) hg_x86_k(e, X86_kunpckbw, to, 1, 0);
    hg_x86_set_predicate_result(e, c, to);
  }
}

/* AVX2 has only equal and signed greater: less exchanges the operands, not equal inverts the result, and unsigned ones
 * flip the sign bits. */
static void compare_integers(x86_emit *e, int relation, int is_64, int is_unsigned, unsigned to, unsigned a,
                             unsigned b) {
  unsigned s3 = hg_x86_scratch(e, 3);
  int is_equality = relation != LT;
  if (is_unsigned && !is_equality) {
    x86_rm sign = hg_x86_constant(e, is_64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31, is_64);
    hg_x86_v(e, X86_vpxord, hg_x86_scratch(e, 0), a, sign);
    hg_x86_v(e, X86_vpxord, hg_x86_scratch(e, 1), b, sign);
    a = hg_x86_scratch(e, 0);
    b = hg_x86_scratch(e, 1);
  }
  unsigned op = is_equality ? (is_64 ? X86_vpcmpeqq : X86_vpcmpeqd) : is_64 ? X86_vpcmpgtq : X86_vpcmpgtd;
  hg_x86_v(e, op, to, is_equality ? a : b, x86_reg(is_equality ? b : a));
  if (relation != NE) return;
  hg_x86_v(e, X86_vpcmpeqd, s3, s3, x86_reg(s3));
  hg_x86_v(e, X86_vpxord, to, to, x86_reg(s3));
}

static void compare_vex(x86_emit *e, int relation, int is_float) {
  uint8_t type = hg_x86_type(e, e->insn->s[0]);
  int is_64 = hg_x86_is_64(e, e->insn->s[0]), is_unsigned = atlas_kind((atlas_type)type) == ATLAS_KIND_UINT;
  int is_uniform = hg_x86_parts(e, e->insn->s[0]) == 1 && hg_x86_parts(e, e->insn->s[1]) == 1;
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    for (uint32_t p = 0; p < (is_64 && !is_uniform ? 2u : 1u); p++) {
      unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
      unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
      unsigned part = p == 0 ? s2 : hg_x86_scratch(e, 0);
      if (is_float) hg_x86_vi(e, is_64 ? X86_vcmppd : X86_vcmpps, part, a, x86_reg(b), float_immediate[relation]);
      else compare_integers(e, relation, is_64, is_unsigned && !x86_is_narrow(type), part, a, b);
    }
    unsigned to = hg_x86_predicate_result(e, c, hg_x86_scratch(e, 0));
    if (is_64 && !is_uniform) { /* 64-bit elements to 32-bit ones: the low half of each pair */
      hg_x86_vi(e, X86_vshufps, s3, s2, x86_reg(hg_x86_scratch(e, 0)), 0x88);
      hg_x86_vi(e, X86_vpermq_imm, to, 0, x86_reg(s3), 0xd8);
    } else if (to != s2) hg_x86_v(e, X86_vmove, to, 0, x86_reg(s2));
    hg_x86_set_predicate_result(e, c, to);
  }
}

int hg_x86_compare(x86_emit *e) {
  int relation = relation_of(e->insn->op);
  uint8_t type = hg_x86_type(e, e->insn->s[0]);
  int is_float = type == ATLAS_f32 || type == ATLAS_f64, is_64 = hg_x86_is_64(e, e->insn->s[0]);
  if (e->width != 2) {
    compare_vex(e, relation, is_float);
    return 1;
  }
  static const uint8_t mirrored[7] = {EQ, NE, GT, GE, LT, LE, NUM};
  uint32_t left = e->insn->s[0], right = e->insn->s[1];
  if (vector_reg_at(e->b->vector, left)->kind == VECTOR_CONSTANT) { /* a constant can be the last operand, which may be
                                                                       in memory */
    left = e->insn->s[1];
    right = e->insn->s[0];
    relation = mirrored[relation];
  }
  int is_unsigned = atlas_kind((atlas_type)type) == ATLAS_KIND_UINT;
  unsigned op = is_64 ? (is_unsigned ? X86_vpcmpuq : X86_vpcmpq) : is_unsigned ? X86_vpcmpud : X86_vpcmpd;
  if (is_float) op = is_64 ? X86_vcmppd : X86_vcmpps;
  compare_evex(e, op, left, right, is_float ? float_immediate[relation] : integer_immediate[relation]);
  return 1;
}
