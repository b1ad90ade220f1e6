/* divide_long.c - quotients and remainders of 64-bit integers.
 *
 * AVX-512, operands below 2^53: as in divide.c. Otherwise with y, which is below 1 / b by at most 2^-49 of it: q1 = a y
 * truncated to an integer is at most a / b, and a - q1 b is below b + a / 2^49. q2, computed in the same way from that
 * rest, leaves less than 2 b, so q1 + q2 is the quotient or one less. Signed operands are divided as magnitudes.
 *
 * AVX2 has neither the products nor the conversions for this, so the processor's own division runs lane by lane. */
#include "backend/cpu/x86/x86_arith.h"

enum { DIVIDEND, DIVISOR }; /* places in the frame where calls save registers, for a vector each */

/* y = (1 - 2^-50) / b: after all roundings of operands, quotient and product, a y is below a / b. */
#define A_LITTLE_LESS (1 - 0x1p-50)

static x86_rm in_frame(const x86_emit *e, int place) {
  return hg_x86_frame(offsetof(native_frame, vectors) + (size_t)place * e->vector_bytes);
}

static unsigned source(x86_emit *e, int which, uint32_t copy, uint32_t part) {
  return hg_x86_source_reg(e, e->insn->s[which], copy, part, hg_x86_scratch(e, (unsigned)which));
}

/* ---- AVX-512 ----------------------------------------------------------------------------------------------------- */

/* Jumps to `label` if an operand of a part, or its negation, is 2^53 or more. */
static void jump_if_long(x86_emit *e, unsigned a, unsigned b, int is_signed, uint32_t label) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  if (is_signed) {
    hg_x86_v(e, X86_vpabsq, s2, 0, x86_reg(a));
    hg_x86_v(e, X86_vpabsq, s3, 0, x86_reg(b));
    hg_x86_v(e, X86_vporq, s2, s2, x86_reg(s3));
  } else hg_x86_v(e, X86_vporq, s2, a, x86_reg(b));
  hg_x86_v(e, X86_vptestmq, 1, s2, hg_x86_constant(e, ~((UINT64_C(1) << 53) - 1), 1));
  hg_x86_k(e, X86_kortestw, 1, 0, 1);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, label);
}

/* scratch 2 = the result below 2^53; changes scratch 3, and 1 only if that is b. */
static void divide_short(x86_emit *e, unsigned a, unsigned b, int is_signed) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned widen = is_signed ? X86_vcvtqq2pd : X86_vcvtuqq2pd, cut = is_signed ? X86_vcvttpd2qq : X86_vcvttpd2uqq;
  hg_x86_v(e, widen, s2, 0, x86_reg(a));
  hg_x86_v(e, widen, s3, 0, x86_reg(b));
  hg_x86_v(e, X86_vdivpd, s2, s2, x86_reg(s3));
  hg_x86_v(e, cut, s2, 0, x86_reg(s2));
  if (e->insn->op != ATLAS_OP_rem) return;
  hg_x86_v(e, X86_vpmullq, s2, s2, x86_reg(b));
  hg_x86_v(e, X86_vpsubq, s2, a, x86_reg(s2));
}

/* scratch 0 = scratch 1 / b as exactly as f64 gives it, never more, and scratch 1 = what is left; scratch 3 is y. */
static void estimate(x86_emit *e) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s3 = hg_x86_scratch(e, 3);
  hg_x86_v(e, X86_vcvtuqq2pd, s0, 0, x86_reg(s1));
  hg_x86_v(e, X86_vmulpd, s0, s0, x86_reg(s3));
  hg_x86_v(e, X86_vcvttpd2uqq, s0, 0, x86_reg(s0));
}

static void subtract_multiple(x86_emit *e, unsigned quotient, unsigned other) {
  unsigned s1 = hg_x86_scratch(e, 1);
  hg_x86_v(e, X86_vpmullq, other, quotient, in_frame(e, DIVISOR));
  hg_x86_v(e, X86_vpsubq, s1, s1, x86_reg(other));
}

/* Negates a result if the operands' signs say so. */
static void put_sign_back(x86_emit *e, unsigned result, uint32_t copy, uint32_t part) {
  unsigned s0 = hg_x86_scratch(e, 0), s3 = hg_x86_scratch(e, 3);
  unsigned sign = hg_x86_source_reg(e, e->insn->s[0], copy, part, s3);
  if (e->insn->op != ATLAS_OP_rem) {
    hg_x86_v(e, X86_vpxorq, s3, sign, hg_x86_source(e, e->insn->s[1], copy, part, s0));
    sign = s3;
  }
  hg_x86_v(e, X86_vptestmq, 1, sign, hg_x86_constant(e, UINT64_C(1) << 63, 1));
  hg_x86_v(e, X86_vpxorq, s0, s0, x86_reg(s0));
  hg_x86_vk(e, X86_vpsubq, result, s0, x86_reg(result), 0, 1, 0);
}

/* scratch 2 = the result. */
static void divide_any(x86_emit *e, uint32_t copy, uint32_t part, int is_signed) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned a = source(e, 0, copy, part), b = source(e, 1, copy, part);
  if (is_signed) hg_x86_v(e, X86_vpabsq, b = s1, 0, x86_reg(source(e, 1, copy, part)));
  hg_x86_v(e, X86_vstore64, b, 0, in_frame(e, DIVISOR));
  hg_x86_v(e, X86_vcvtuqq2pd, s3, 0, x86_reg(b));
  unsigned one = hg_x86_rm_reg(e, hg_x86_constant(e, atlas_bits_of_f64(A_LITTLE_LESS), 1), 1, s2);
  hg_x86_v(e, X86_vdivpd, s3, one, x86_reg(s3));
  hg_x86_v(e, is_signed ? X86_vpabsq : X86_vmove64, s1, 0, x86_reg(a));
  estimate(e);
  hg_x86_v(e, X86_vmove64, s2, 0, x86_reg(s0));
  subtract_multiple(e, s2, s0);
  estimate(e);
  hg_x86_v(e, X86_vpaddq, s2, s2, x86_reg(s0));
  subtract_multiple(e, s0, s0);
  enum { NOT_LESS = 5 };
  hg_x86_vi(e, X86_vpcmpuq, 1, s1, in_frame(e, DIVISOR), NOT_LESS);
  if (e->insn->op == ATLAS_OP_rem) {
    hg_x86_v(e, X86_vmove64, s2, 0, x86_reg(s1));
    hg_x86_vk(e, X86_vpsubq, s2, s1, in_frame(e, DIVISOR), 0, 1, 0);
  } else hg_x86_vk(e, X86_vpaddq, s2, s2, hg_x86_constant(e, 1, 1), 0, 1, 0);
  if (is_signed) put_sign_back(e, s2, copy, part);
}

static void divide_avx512(x86_emit *e, uint32_t copy, uint32_t part, int is_signed) {
  uint32_t any = hg_x86_new_label(&e->a), done = hg_x86_new_label(&e->a);
  unsigned a = source(e, 0, copy, part), b = source(e, 1, copy, part);
  jump_if_long(e, a, b, is_signed, any);
  divide_short(e, a, b, is_signed);
  hg_x86_jump(&e->a, done);
  hg_x86_place(&e->a, any);
  divide_any(e, copy, part, is_signed);
  hg_x86_place(&e->a, done);
}

/* ---- AVX2 -------------------------------------------------------------------------------------------------------- */

/* `to` = (a ^ m) - m with m all ones where `sign` is negative; changes `other`. */
static void negate_if(x86_emit *e, unsigned to, unsigned a, unsigned sign, unsigned other) {
  hg_x86_v(e, X86_vpxord, other, other, x86_reg(other));
  hg_x86_v(e, X86_vpcmpgtq, other, other, x86_reg(sign));
  hg_x86_v(e, X86_vpxorq, to, a, x86_reg(other));
  hg_x86_v(e, X86_vpsubq, to, to, x86_reg(other));
}

/* scratch 0 = the result. A divisor of 0, in a lane that does not take part, is replaced by 1. */
static void divide_lanes(x86_emit *e, uint32_t copy, uint32_t part, int is_signed) {
  x86_asm *a = &e->a;
  int is_rem = e->insn->op == ATLAS_OP_rem;
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned dividend = source(e, 0, copy, part), divisor = source(e, 1, copy, part);
  if (is_signed) negate_if(e, s2, dividend, dividend, s3);
  hg_x86_v(e, X86_vstore, is_signed ? s2 : dividend, 0, in_frame(e, DIVIDEND));
  if (is_signed) negate_if(e, s2, divisor, divisor, s3);
  hg_x86_v(e, X86_vpcmpeqq, s3, divisor, hg_x86_constant(e, 0, 1));
  hg_x86_v(e, X86_vpsubq, s2, is_signed ? s2 : divisor, x86_reg(s3));
  hg_x86_v(e, X86_vstore, s2, 0, in_frame(e, DIVISOR));
  for (int32_t lane = 0; lane < e->vector_bytes / 8; lane++) {
    x86_rm above = in_frame(e, DIVIDEND), below = in_frame(e, DIVISOR);
    above.displacement += 8 * lane;
    below.displacement += 8 * lane;
    hg_x86_load(a, 1, X86_RAX, above);
    hg_x86_alu_rm(a, X86_XOR, 0, X86_RDX, x86_reg(X86_RDX));
    hg_x86_divide_by(a, 1, below);
    hg_x86_store(a, 1, above, is_rem ? X86_RDX : X86_RAX);
  }
  hg_x86_v(e, X86_vload, is_signed ? s2 : s0, 0, in_frame(e, DIVIDEND));
  if (!is_signed) return;
  dividend = source(e, 0, copy, part);
  if (!is_rem) {
    divisor = source(e, 1, copy, part);
    hg_x86_v(e, X86_vpxorq, s0, dividend, x86_reg(divisor));
    dividend = s0;
  }
  negate_if(e, s0, s2, dividend, s3);
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

void hg_x86_divide_long(x86_emit *e) {
  int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
  X86_EACH(e, c, p) {
    if (e->width == 2) divide_avx512(e, c, p, is_signed);
    else divide_lanes(e, c, p, is_signed);
    hg_x86_set_result(e, c, p, hg_x86_scratch(e, e->width == 2 ? 2 : 0));
  }
}
