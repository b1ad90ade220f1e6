/* divide_avx2.c - quotients and remainders of 32-bit integers, with AVX2: in f64, as divide.c says, a
 * half vector at a time. */
#include "backend/cpu/x86/x86_arith.h"

enum { TO_ZERO = 0x0b, LOW_HALVES = 0x88, FIRST_TWO = 0x08 };

/* `to` = half `part` of a vector of integers, as f64. Unsigned ones are mantissa bits under the exponent of 2^52. */
static void half_to_f64(x86_emit *e, unsigned to, unsigned from, uint32_t part, int is_signed) {
  x86_rm two_52 = hg_x86_constant(e, X86_TWO_52, 1);
  if (part == 1) {
    hg_x86_vi(e, X86_vextracti128, from, 0, x86_reg(to), 1);
    from = to;
  }
  if (is_signed) {
    hg_x86_v(e, X86_vcvtdq2pd, to, 0, x86_reg(from));
    return;
  }
  hg_x86_v(e, X86_vpmovzxdq, to, 0, x86_reg(from));
  hg_x86_v(e, X86_vpord, to, to, two_52);
  hg_x86_v(e, X86_vsubpd, to, to, two_52);
}

/* f64 truncated to integers in half a vector. */
static void cut(x86_emit *e, unsigned to, unsigned from, int is_signed) {
  if (is_signed) {
    hg_x86_v(e, X86_vcvttpd2dq, to, 0, x86_reg(from));
    return;
  }
  hg_x86_vi(e, X86_vrndscalepd, to, 0, x86_reg(from), TO_ZERO);
  hg_x86_v(e, X86_vaddpd, to, to, hg_x86_constant(e, X86_TWO_52, 1));
  hg_x86_vi(e, X86_vpshufd, to, 0, x86_reg(to), LOW_HALVES);
  hg_x86_vi(e, X86_vpermq_imm, to, 0, x86_reg(to), FIRST_TWO);
}

/* scratch 0 = a / b; may change 1 and 2. */
static void quotient(x86_emit *e, uint32_t copy, int is_signed) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  for (uint32_t p = 0; p < 2; p++) {
    half_to_f64(e, s0, hg_x86_source_reg(e, e->insn->s[0], copy, 0, s0), p, is_signed);
    half_to_f64(e, s1, hg_x86_source_reg(e, e->insn->s[1], copy, 0, s1), p, is_signed);
    hg_x86_v(e, X86_vdivpd, s0, s0, x86_reg(s1));
    cut(e, p == 0 ? s2 : s0, s0, is_signed);
  }
  hg_x86_vi(e, X86_vinserti128, s0, s2, x86_reg(s0), 1);
}

void hg_x86_divide_avx2(x86_emit *e) {
  int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    unsigned q = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1);
    quotient(e, c, is_signed);
    if (e->insn->op == ATLAS_OP_rem) {
      hg_x86_v(e, X86_vpmulld, q, q, hg_x86_source(e, e->insn->s[1], c, 0, s1));
      hg_x86_v(e, X86_vpsubd, q, hg_x86_source_reg(e, e->insn->s[0], c, 0, s1), x86_reg(q));
    }
    hg_x86_set_result(e, c, 0, q);
  }
}
