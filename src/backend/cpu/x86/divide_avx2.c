/* divide_avx2.c - quotients and remainders of 32-bit integers with AVX2: in f64, as in divide.c, half of the elements
 * at a time. Signed ones are halves of the vector; unsigned ones, which no instruction converts, are even and odd
 * elements. */
#include "backend/cpu/x86/x86_arith.h"

enum { TO_ZERO = 0x0b };

/* `to` = a half of a vector of signed integers, as f64. */
static void half_to_f64(x86_emit *e, unsigned to, unsigned from, uint32_t part) {
  if (part == 1) {
    hg_x86_vi(e, X86_vextracti128, from, 0, x86_reg(to), 1);
    from = to;
  }
  hg_x86_v(e, X86_vcvtdq2pd, to, 0, x86_reg(from));
}

/* scratch 0 = a / b; may change scratch 1 and 2. */
static void signed_quotient(x86_emit *e, uint32_t copy) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  for (uint32_t p = 0; p < 2; p++) {
    half_to_f64(e, s0, hg_x86_source_reg(e, e->insn->s[0], copy, 0, s0), p);
    half_to_f64(e, s1, hg_x86_source_reg(e, e->insn->s[1], copy, 0, s1), p);
    hg_x86_v(e, X86_vdivpd, s0, s0, x86_reg(s1));
    hg_x86_v(e, X86_vcvttpd2dq, p == 0 ? s2 : s0, 0, x86_reg(s0));
  }
  hg_x86_vi(e, X86_vinserti128, s0, s2, x86_reg(s0), 1);
}

/* `to` = even or odd elements as f64: mantissa bits under the exponent of 2^52, which is subtracted. */
static void elements_to_f64(x86_emit *e, unsigned to, unsigned from, int is_odd) {
  if (is_odd) hg_x86_vi(e, X86_vpsrlq_imm, 0, to, x86_reg(from), 32);
  else hg_x86_v(e, X86_vpandq, to, from, hg_x86_constant(e, UINT32_MAX, 1));
  hg_x86_v(e, X86_vporq, to, to, hg_x86_constant(e, X86_TWO_52, 1));
  hg_x86_v(e, X86_vsubpd, to, to, hg_x86_constant(e, X86_TWO_52, 1));
}

/* Truncates a quotient to an integer in the lower half of each 64-bit element. */
static void cut(x86_emit *e, unsigned reg) {
  hg_x86_vi(e, X86_vrndscalepd, reg, 0, x86_reg(reg), TO_ZERO);
  hg_x86_v(e, X86_vaddpd, reg, reg, hg_x86_constant(e, X86_TWO_52, 1));
}

/* scratch 0 = a / b; may change all other scratch registers. */
static void unsigned_quotient(x86_emit *e, uint32_t copy) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned a = hg_x86_source_reg(e, e->insn->s[0], copy, 0, s0), b = hg_x86_source_reg(e, e->insn->s[1], copy, 0, s1);
  elements_to_f64(e, s2, a, 0);
  elements_to_f64(e, s3, b, 0);
  hg_x86_v(e, X86_vdivpd, s2, s2, x86_reg(s3));
  elements_to_f64(e, s0, a, 1);
  elements_to_f64(e, s1, b, 1);
  hg_x86_v(e, X86_vdivpd, s0, s0, x86_reg(s1));
  cut(e, s2);
  cut(e, s0);
  hg_x86_vi(e, X86_vpsllq_imm, 0, s0, x86_reg(s0), 32);
  hg_x86_v(e, X86_vpandq, s2, s2, hg_x86_constant(e, UINT32_MAX, 1));
  hg_x86_v(e, X86_vporq, s0, s0, x86_reg(s2));
}

void hg_x86_divide_avx2(x86_emit *e) {
  int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    unsigned q = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1);
    if (is_signed) signed_quotient(e, c);
    else unsigned_quotient(e, c);
    if (e->insn->op == ATLAS_OP_rem) {
      hg_x86_v(e, X86_vpmulld, q, q, hg_x86_source(e, e->insn->s[1], c, 0, s1));
      hg_x86_v(e, X86_vpsubd, q, hg_x86_source_reg(e, e->insn->s[0], c, 0, s1), x86_reg(q));
    }
    hg_x86_set_result(e, c, 0, q);
  }
}
