/* divide.c - quotients and remainders of 32-bit integers with AVX-512; those of 64 bits are in divide_long.c.
 *
 * Both operands are exact in f64, and the quotient q = a / b truncated to an integer is the integer quotient: the
 * rounded quotient is off by at most q / 2^53, and a / b is an integer or at least 1 / b away from one, where q b <
 * 2^53. */
#include "backend/cpu/x86/x86_arith.h"

/* scratch 2 = a / b; may change all other scratch registers. */
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

/* Dividing by a uniform divisor is multiplying by r = (1 / b) (1 + 2^-50), which after all its roundings still exceeds
 * 1 / b a little. So a r is at least a / b, and too large by less than a / b / 2^49, which does not reach the next
 * integer: that is at least 1 / b away. */
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

/* For 16 bits and less, f32 is exact as f64 is for 32. */
void hg_x86_divide_narrow(x86_emit *e) {
  unsigned q = hg_x86_scratch(e, 0), s3 = hg_x86_scratch(e, 3);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, 0, hg_x86_scratch(e, 2));
    unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, 0, hg_x86_scratch(e, 1));
    hg_x86_v(e, X86_vcvtdq2ps, q, 0, x86_reg(a));
    hg_x86_v(e, X86_vcvtdq2ps, s3, 0, x86_reg(b));
    hg_x86_v(e, X86_vdivps, q, q, x86_reg(s3));
    hg_x86_v(e, X86_vcvttps2dq, q, 0, x86_reg(q));
    if (e->insn->op == ATLAS_OP_rem) {
      hg_x86_v(e, X86_vpmulld, q, q, x86_reg(b));
      hg_x86_v(e, X86_vpsubd, q, a, x86_reg(q));
    }
    hg_x86_set_result(e, c, 0, q);
  }
}

void hg_x86_divide(x86_emit *e) {
  int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
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
}
