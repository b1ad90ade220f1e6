/* emit_x86_divide.c - quotients and remainders of 32-bit integers, with AVX-512.
 *
 * In f64 both are exact, and a quotient q = a / b cut to an integer is that of the integers: the rounded one is off by
 * at most q / 2^53, and a / b is at least 1 / b away from the next integer that it is not, where q b < 2^53. */
#include "backend/cpu/emit_x86.h"

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

int hg_x86_divide(x86_emit *e) {
  int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
  if (e->width != 2 || hg_x86_is_64(e, e->insn->d)) return 0;
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    unsigned q = hg_x86_scratch(e, 2);
    quotient(e, c, is_signed);
    if (e->insn->op == ATLAS_OP_rem) {
      hg_x86_v(e, X86_vpmulld, q, q, hg_x86_source(e, e->insn->s[1], c, 0, hg_x86_scratch(e, 1)));
      hg_x86_v(e, X86_vpsubd, q, hg_x86_source_reg(e, e->insn->s[0], c, 0, hg_x86_scratch(e, 0)), x86_reg(q));
    }
    hg_x86_done(e, c, 0, q);
  }
  return 1;
}
