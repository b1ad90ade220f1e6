/* divide.c - quotients and remainders of 32-bit integers, and of 64-bit ones below 2^53, with AVX-512.
 *
 * In f64 both operands are exact, and a quotient q = a / b truncated to an integer is the integer quotient: the rounded
 * one is off by at most q / 2^53, and a / b is at least 1 / b away from the next integer unless it is one, where q b <
 * 2^53. */
#include "backend/cpu/x86/emit_x86.h"

#include "atlas/value.h"

/* scratch 2 = a / b; may change all others. */
static void quotient(x86_emit *e, uint32_t copy, int is_signed) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned widen = is_signed ? X86_vcvtdq2pd : X86_vcvtudq2pd, cut = is_signed ? X86_vcvttpd2dq : X86_vcvttpd2udq;
  unsigned a = hg_x86_source_reg(e, e->insn->s[0], copy, 0, s0), b = hg_x86_source_reg(e, e->insn->s[1], copy, 0, s1);
  hg_x86_v(e, widen, s2, 0, x86_reg(a));
  hg_x86_v(e, widen, s3, 0, x86_reg(b));
  hg_x86_v(e, X86_vdivpd, s2, s2, x86_reg(s3));
  hg_x86_vi(e, X86_vextracti64x4, b, 0, x86_reg(s3), 1); /* the upper halves */
  hg_x86_v(e, widen, s1, 0, x86_reg(s3));
  hg_x86_vi(e, X86_vextracti64x4, a, 0, x86_reg(s3), 1);
  hg_x86_v(e, widen, s3, 0, x86_reg(s3));
  hg_x86_v(e, X86_vdivpd, s3, s3, x86_reg(s1));
  hg_x86_v(e, cut, s2, 0, x86_reg(s2));
  hg_x86_v(e, cut, s3, 0, x86_reg(s3));
  hg_x86_vi(e, X86_vinserti64x4, s2, s2, x86_reg(s3), 1);
}

/* Jumps to `slow` if an operand of a part, or its negation, is 2^53 or more. */
static void check_long(x86_emit *e, uint32_t copy, uint32_t part, int is_signed, uint32_t slow) {
  unsigned a = hg_x86_source_reg(e, e->insn->s[0], copy, part, hg_x86_scratch(e, 0));
  unsigned b = hg_x86_source_reg(e, e->insn->s[1], copy, part, hg_x86_scratch(e, 1));
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  if (is_signed) {
    hg_x86_v(e, X86_vpabsq, s2, 0, x86_reg(a));
    hg_x86_v(e, X86_vpabsq, s3, 0, x86_reg(b));
    hg_x86_v(e, X86_vporq, s2, s2, x86_reg(s3));
  } else hg_x86_v(e, X86_vporq, s2, a, x86_reg(b));
  hg_x86_v(e, X86_vptestmq, 1, s2, hg_x86_constant(e, ~((UINT64_C(1) << 53) - 1), 1));
  hg_x86_k(e, X86_kortestw, 1, 0, 1);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, slow);
}

/* scratch 2 = a / b of a part. */
static void long_quotient(x86_emit *e, uint32_t copy, uint32_t part, int is_signed) {
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned widen = is_signed ? X86_vcvtqq2pd : X86_vcvtuqq2pd, cut = is_signed ? X86_vcvttpd2qq : X86_vcvttpd2uqq;
  hg_x86_v(e, widen, s2, 0, x86_reg(hg_x86_source_reg(e, e->insn->s[0], copy, part, s0)));
  hg_x86_v(e, widen, s3, 0, x86_reg(hg_x86_source_reg(e, e->insn->s[1], copy, part, s0)));
  hg_x86_v(e, X86_vdivpd, s2, s2, x86_reg(s3));
  hg_x86_v(e, cut, s2, 0, x86_reg(s2));
}

/* All parts are checked before one is written: C code does the whole copy again. */
static void divide_long(x86_emit *e, int is_signed) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), q = hg_x86_scratch(e, 2);
  uint32_t copies = hg_x86_copies(e, e->insn->d), parts = hg_x86_parts(e, e->insn->d);
  for (uint32_t c = 0; c < copies; c++) {
    uint32_t slow = hg_x86_slow_path(e, copies < e->copies ? X86_ALL_COPIES : c);
    for (uint32_t p = 0; p < parts; p++) check_long(e, c, p, is_signed, slow);
    for (uint32_t p = 0; p < parts; p++) {
      long_quotient(e, c, p, is_signed);
      if (e->insn->op == ATLAS_OP_rem) {
        hg_x86_v(e, X86_vpmullq, q, q, hg_x86_source(e, e->insn->s[1], c, p, s1));
        hg_x86_v(e, X86_vpsubq, q, hg_x86_source_reg(e, e->insn->s[0], c, p, s0), x86_reg(q));
      }
      hg_x86_set_result(e, c, p, q);
    }
    hg_x86_slow_back(e);
  }
}

/* Division by a uniform divisor is a product with r = (1 / b) (1 + 2^-50), which is a little more than 1 / b with all
 * of its roundings. So a r is at least a / b, and too large by less than a / b / 2^49, which does not reach the next
 * integer: that is 1 / b away or more. */
#define A_LITTLE_MORE (1 + 0x1p-50)

/* r: in memory for a constant, else computed in scratch 1. */
static x86_rm reciprocal_of(x86_emit *e, int is_signed) {
  unsigned s1 = hg_x86_scratch(e, 1), s3 = hg_x86_scratch(e, 3);
  uint64_t bits;
  if (hg_x86_constant_bits(e, e->insn->s[1], &bits)) {
    double b = is_signed ? (double)atlas_to_i64((atlas_type)e->insn->type, bits) : (double)bits;
    return hg_x86_constant(e, atlas_bits_of_f64(b == 0 ? 0 : 1 / b * A_LITTLE_MORE), 1);
  }
  unsigned b = hg_x86_source_reg(e, e->insn->s[1], 0, 0, s1);
  hg_x86_v(e, is_signed ? X86_vcvtdq2pd : X86_vcvtudq2pd, s1, 0, x86_reg(b));
  hg_x86_v(e, X86_vdivpd, s1, hg_x86_rm_reg(e, hg_x86_constant(e, atlas_bits_of_f64(1), 1), 1, s3), x86_reg(s1));
  hg_x86_v(e, X86_vmulpd, s1, s1, hg_x86_constant(e, atlas_bits_of_f64(A_LITTLE_MORE), 1));
  return x86_reg(s1);
}

/* scratch 2 = a r; changes scratch 0 and 3. */
static void product(x86_emit *e, uint32_t copy, int is_signed, x86_rm r) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned widen = is_signed ? X86_vcvtdq2pd : X86_vcvtudq2pd, cut = is_signed ? X86_vcvttpd2dq : X86_vcvttpd2udq;
  unsigned a = hg_x86_source_reg(e, e->insn->s[0], copy, 0, hg_x86_scratch(e, 0));
  hg_x86_v(e, widen, s2, 0, x86_reg(a));
  hg_x86_vi(e, X86_vextracti64x4, a, 0, x86_reg(s3), 1);
  hg_x86_v(e, widen, s3, 0, x86_reg(s3));
  hg_x86_v(e, X86_vmulpd, s2, s2, r);
  hg_x86_v(e, X86_vmulpd, s3, s3, r);
  hg_x86_v(e, cut, s2, 0, x86_reg(s2));
  hg_x86_v(e, cut, s3, 0, x86_reg(s3));
  hg_x86_vi(e, X86_vinserti64x4, s2, s2, x86_reg(s3), 1);
}

int hg_x86_divide(x86_emit *e) {
  int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
  if (e->width != 2) return 0;
  if (hg_x86_is_64(e, e->insn->d)) {
    divide_long(e, is_signed);
    return 1;
  }
  int has_one = hg_x86_is_uniform(e, e->insn->s[1]);
  x86_rm r = has_one ? reciprocal_of(e, is_signed) : x86_reg(0);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    unsigned q = hg_x86_scratch(e, 2);
    if (has_one) product(e, c, is_signed, r);
    else quotient(e, c, is_signed);
    if (e->insn->op == ATLAS_OP_rem) {
      hg_x86_v(e, X86_vpmulld, q, q, hg_x86_source(e, e->insn->s[1], c, 0, hg_x86_scratch(e, 3)));
      hg_x86_v(e, X86_vpsubd, q, hg_x86_source_reg(e, e->insn->s[0], c, 0, hg_x86_scratch(e, 0)), x86_reg(q));
    }
    hg_x86_set_result(e, c, 0, q);
  }
  return 1;
}
