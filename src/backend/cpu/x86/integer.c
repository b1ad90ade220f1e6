/* integer.c - integers: shifts, products, minima and maxima, signs. Divisions are in divide.c, bit counts in bits.c. */
#include "backend/cpu/x86/x86_arith.h"

/* The count of a shift, u32 in all lanes, widened to the vector's elements. */
static unsigned shift_count(x86_emit *e, uint32_t reg, uint32_t copy, uint32_t part, unsigned bits, unsigned scratch) {
  int is_64 = bits == 64;
  unsigned count = hg_x86_source_reg(e, reg, copy, 0, scratch);
  if (is_64 && hg_x86_is_64(e, reg)) count = hg_x86_source_reg(e, reg, copy, part, scratch);
  else if (is_64) {
    if (part == 1) {
      hg_x86_vi(e, e->width == 2 ? X86_vextracti64x4 : X86_vextracti128, count, 0, x86_reg(scratch), 1);
      count = scratch;
    }
    hg_x86_v(e, X86_vpmovzxdq, scratch, 0, x86_reg(count));
    count = scratch;
  }
  hg_x86_v(e, is_64 ? X86_vpandq : X86_vpandd, scratch, count, hg_x86_constant(e, bits - 1, is_64));
  return scratch;
}

/* AVX2, arithmetic right shift of 64-bit elements: shifts in zeros, the sign bit moving along as m, then (a ^ m) -
 * m. */
static void shift_sign_avx2(x86_emit *e) {
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2), s1 = hg_x86_scratch(e, 1);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    unsigned by = shift_count(e, e->insn->s[1], c, p, 64, s1);
    unsigned sign = hg_x86_rm_reg(e, hg_x86_constant(e, UINT64_C(1) << 63, 1), 1, s2);
    hg_x86_v(e, X86_vpsrlvq, s2, sign, x86_reg(by));
    hg_x86_v(e, X86_vpsrlvq, s0, a, x86_reg(by));
    hg_x86_v(e, X86_vpxorq, s0, s0, x86_reg(s2));
    hg_x86_v(e, X86_vpsubq, s0, s0, x86_reg(s2));
    hg_x86_set_result(e, c, p, s0);
  }
}

int hg_x86_shift(x86_emit *e) {
  uint8_t type = e->insn->type;
  unsigned bits = atlas_type_bits((atlas_type)type);
  int is_64 = bits == 64, is_left = e->insn->op == ATLAS_OP_shl,
      is_signed = atlas_kind((atlas_type)type) == ATLAS_KIND_SINT;
  unsigned by_constant = is_64 ? X86_vpsllq_imm : X86_vpslld_imm, by_vector = is_64 ? X86_vpsllvq : X86_vpsllvd;
  if (!is_left) {
    by_constant = is_64 ? X86_vpsrlq_imm : X86_vpsrld_imm;
    by_vector = is_64 ? X86_vpsrlvq : X86_vpsrlvd;
    if (is_signed) by_constant = is_64 ? X86_vpsraq_imm : X86_vpsrad_imm;
    if (is_signed) by_vector = is_64 ? X86_vpsravq : X86_vpsravd;
  }
  uint64_t count;
  int is_constant = hg_x86_constant_bits(e, e->insn->s[1], &count);
  if (!x86_can_write(e, is_constant ? by_constant : by_vector)) {
    shift_sign_avx2(e);
    return 1;
  }
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned by = is_constant ? 0 : shift_count(e, e->insn->s[1], c, p, bits, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    if (is_constant) hg_x86_vi(e, by_constant, 0, to, x86_reg(a), (unsigned)(count & (bits - 1)));
    else hg_x86_v(e, by_vector, to, a, x86_reg(by));
    if (is_left) hg_x86_extend(e, type, to);
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

/* 64-bit products from 32-bit ones, and the sum of mad. */
int hg_x86_multiply_long(x86_emit *e) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0), b = hg_x86_source_reg(e, e->insn->s[1], c, p, s1);
    hg_x86_vi(e, X86_vpsrlq_imm, 0, s2, x86_reg(a), 32);
    hg_x86_vi(e, X86_vpsrlq_imm, 0, s3, x86_reg(b), 32);
    hg_x86_v(e, X86_vpmuludq, s2, s2, x86_reg(b));
    hg_x86_v(e, X86_vpmuludq, s3, s3, x86_reg(a));
    hg_x86_v(e, X86_vpaddq, s2, s2, x86_reg(s3));
    hg_x86_vi(e, X86_vpsllq_imm, 0, s2, x86_reg(s2), 32);
    hg_x86_v(e, X86_vpmuludq, s0, a, x86_reg(b));
    hg_x86_v(e, X86_vpaddq, s0, s0, x86_reg(s2));
    if (e->insn->op == ATLAS_OP_mad)
      hg_x86_v(e, X86_vpaddq, s0, s0, hg_x86_source(e, e->insn->s[2], c, p, s1));
    hg_x86_set_result(e, c, p, s0);
  }
  return 1;
}

int hg_x86_multiply_add(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  if (e->width != 2 && is_64) return hg_x86_multiply_long(e);
  unsigned s0 = hg_x86_scratch(e, 0);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    x86_rm b = hg_x86_source(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
    hg_x86_v(e, is_64 ? X86_vpmullq : X86_vpmulld, s0, a, b);
    x86_rm addend = hg_x86_source(e, e->insn->s[2], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, s0);
    hg_x86_v(e, is_64 ? X86_vpaddq : X86_vpaddd, to, s0, addend);
    hg_x86_extend(e, e->insn->type, to);
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

/* 32 bits: the products of even and of odd elements, whose high halves are merged. */
static void multiply_high(x86_emit *e, int is_signed) {
  unsigned op = is_signed ? X86_vpmuldq : X86_vpmuludq;
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, s1);
    hg_x86_v(e, op, s2, a, x86_reg(b));
    hg_x86_vi(e, X86_vpsrlq_imm, 0, s3, x86_reg(a), 32);
    hg_x86_vi(e, X86_vpsrlq_imm, 0, s0, x86_reg(b), 32);
    hg_x86_v(e, op, s3, s3, x86_reg(s0));
    hg_x86_vi(e, X86_vpsrlq_imm, 0, s2, x86_reg(s2), 32);
    unsigned to = hg_x86_result_register(e, c, p, s0);
    x86_rm high = hg_x86_constant(e, UINT64_C(0xffffffff00000000), 1);
    hg_x86_v(e, X86_vpandq, s3, s3, high);
    hg_x86_v(e, X86_vporq, to, s2, x86_reg(s3));
    hg_x86_set_result(e, c, p, to);
  }
}

static void narrow_multiply_high(x86_emit *e, int is_signed) {
  unsigned bits = atlas_type_bits((atlas_type)e->insn->type);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    x86_rm b = hg_x86_source(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, X86_vpmulld, to, a, b);
    hg_x86_vi(e, is_signed ? X86_vpsrad_imm : X86_vpsrld_imm, 0, to, x86_reg(to), bits);
    hg_x86_set_result(e, c, p, to);
  }
}

int hg_x86_negate(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  unsigned zero = hg_x86_scratch(e, 2);
  X86_EACH(e, c, p) {
    hg_x86_v(e, X86_vpxord, zero, zero, x86_reg(zero));
    x86_rm a = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, is_64 ? X86_vpsubq : X86_vpsubd, to, zero, a);
    hg_x86_extend(e, e->insn->type, to);
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

/* AVX2, 64 bits: (a ^ m) - m with m all ones where a is negative. */
static void absolute_avx2(x86_emit *e) {
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    hg_x86_v(e, X86_vpxord, s2, s2, x86_reg(s2));
    hg_x86_v(e, X86_vpcmpgtq, s2, s2, x86_reg(a));
    hg_x86_v(e, X86_vpxorq, s0, a, x86_reg(s2));
    hg_x86_v(e, X86_vpsubq, s0, s0, x86_reg(s2));
    hg_x86_set_result(e, c, p, s0);
  }
}

int hg_x86_absolute(x86_emit *e) {
  unsigned op = hg_x86_is_64(e, e->insn->d) ? X86_vpabsq : X86_vpabsd;
  if (!x86_can_write(e, op)) {
    absolute_avx2(e);
    return 1;
  }
  X86_EACH(e, c, p) {
    x86_rm a = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, op, to, 0, a);
    hg_x86_extend(e, e->insn->type, to);
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

/* scratch 0 = the upper half of the product of unsigned 64-bit elements, from four products of halves. */
static void multiply_high_long(x86_emit *e, unsigned a, unsigned b) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  hg_x86_v(e, X86_vpmuludq, s2, a, x86_reg(b));
  hg_x86_vi(e, X86_vpsrlq_imm, 0, s2, x86_reg(s2), 32);
  hg_x86_vi(e, X86_vpsrlq_imm, 0, s3, x86_reg(a), 32);
  hg_x86_v(e, X86_vpmuludq, s3, s3, x86_reg(b));
  hg_x86_v(e, X86_vpaddq, s2, s2, x86_reg(s3)); /* high a * low b, and the carry */
  hg_x86_vi(e, X86_vpsrlq_imm, 0, s1, x86_reg(b), 32);
  hg_x86_v(e, X86_vpmuludq, s3, s1, x86_reg(a));
  hg_x86_vi(e, X86_vpsrlq_imm, 0, s0, x86_reg(a), 32);
  hg_x86_v(e, X86_vpmuludq, s0, s0, x86_reg(s1));
  hg_x86_v(e, X86_vpandq, s1, s2, hg_x86_constant(e, UINT32_MAX, 1));
  hg_x86_v(e, X86_vpaddq, s3, s3, x86_reg(s1)); /* low a * high b, and the lower half of that */
  hg_x86_vi(e, X86_vpsrlq_imm, 0, s2, x86_reg(s2), 32);
  hg_x86_vi(e, X86_vpsrlq_imm, 0, s3, x86_reg(s3), 32);
  hg_x86_v(e, X86_vpaddq, s0, s0, x86_reg(s2));
  hg_x86_v(e, X86_vpaddq, s0, s0, x86_reg(s3));
}

/* Subtracts `factor` from scratch 0 where `sign` is negative: as an unsigned number the factor is 2^64 too large
 * there. */
static void subtract_if_negative(x86_emit *e, unsigned sign, unsigned factor) {
  unsigned s0 = hg_x86_scratch(e, 0), s3 = hg_x86_scratch(e, 3);
  if (e->width == 2) hg_x86_vi(e, X86_vpsraq_imm, 0, s3, x86_reg(sign), 63);
  else {
    hg_x86_v(e, X86_vpxord, s3, s3, x86_reg(s3));
    hg_x86_v(e, X86_vpcmpgtq, s3, s3, x86_reg(sign));
  }
  hg_x86_v(e, X86_vpandq, s3, s3, x86_reg(factor));
  hg_x86_v(e, X86_vpsubq, s0, s0, x86_reg(s3));
}

static void long_multiply_high(x86_emit *e, int is_signed) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0), b = hg_x86_source_reg(e, e->insn->s[1], c, p, s1);
    multiply_high_long(e, a, b);
    if (is_signed) {
      a = hg_x86_source_reg(e, e->insn->s[0], c, p, s1);
      b = hg_x86_source_reg(e, e->insn->s[1], c, p, s2);
      subtract_if_negative(e, a, b);
      subtract_if_negative(e, b, a);
    }
    hg_x86_set_result(e, c, p, s0);
  }
}

int hg_x86_multiply_high(x86_emit *e) {
  int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
  if (hg_x86_is_64(e, e->insn->d)) long_multiply_high(e, is_signed);
  else if (x86_is_narrow(e->insn->type)) narrow_multiply_high(e, is_signed);
  else multiply_high(e, is_signed);
  return 1;
}

/* AVX2 can only compare signed 64-bit elements. */
int hg_x86_long_extreme(x86_emit *e) {
  int is_unsigned = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_UINT, is_max = e->insn->op == ATLAS_OP_max;
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1)), left = a, right = b;
    if (is_unsigned) {
      x86_rm sign = hg_x86_constant(e, UINT64_C(1) << 63, 1);
      hg_x86_v(e, X86_vpxorq, left = s2, a, sign);
      hg_x86_v(e, X86_vpxorq, right = s3, b, sign);
    }
    hg_x86_v(e, X86_vpcmpgtq, s2, left, x86_reg(right));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_vi(e, X86_vblendvps, to, is_max ? b : a, x86_reg(is_max ? a : b), s2 << 4);
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

/* Integers: clamped to -1 to 1; with AVX2 and 64 bits, (below 0) less (above 0), each -1 if true. */
int hg_x86_integer_sign(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    if (is_64 && e->width != 2) {
      hg_x86_v(e, X86_vpxord, s2, s2, x86_reg(s2));
      hg_x86_v(e, X86_vpcmpgtq, s3, a, x86_reg(s2));
      hg_x86_v(e, X86_vpcmpgtq, s2, s2, x86_reg(a));
      hg_x86_v(e, X86_vpsubq, to, s2, x86_reg(s3));
    } else {
      hg_x86_v(e, is_64 ? X86_vpmaxsq : X86_vpmaxsd, to, a, hg_x86_constant(e, is_64 ? UINT64_MAX : UINT32_MAX, is_64));
      hg_x86_v(e, is_64 ? X86_vpminsq : X86_vpminsd, to, to, hg_x86_constant(e, 1, is_64));
    }
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

int hg_x86_not(x86_emit *e) {
  uint8_t type = e->insn->type;
  int is_signed = atlas_kind((atlas_type)type) == ATLAS_KIND_SINT;
  hg_x86_with_constant(e, X86_vpxord, X86_vpxorq, is_signed ? UINT64_MAX : atlas_mask((atlas_type)type));
  return 1;
}
