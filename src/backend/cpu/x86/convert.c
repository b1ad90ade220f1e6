/* convert.c - cvt. Conversions to integers truncate, saturate and turn NaN into 0. The instructions do not, so operands
 * are clamped before and results corrected after. Small floats are converted from and to f32 only (hg_vector_value). */
#include "backend/cpu/x86/x86_convert.h"

enum { TWO_16 = 0x47800000, TWO_23 = 0x4b000000, TWO_31 = 0x4f000000, TWO_32 = 0x4f800000,
       TWO_63 = 0x5f000000 }; /* powers as f32 */

typedef struct pair {
  uint8_t to, from;
  int to_64, from_64, to_signed, from_signed;
} pair;

static int is_int(uint8_t type) { return atlas_is_integer((atlas_type)type); }
static int bytes_of(uint8_t type) { return (int)atlas_bytes((atlas_type)type); }

/* ---- elements of one size ---------------------------------------------------------------------------------------- */

/* Narrow integers are represented by their 32-bit values already. */
static void narrow_to(x86_emit *e, uint8_t type, unsigned to, unsigned from) {
  unsigned bits = atlas_type_bits((atlas_type)type);
  if (bits >= 32) {
    if (to != from) hg_x86_v(e, X86_vmove, to, 0, x86_reg(from));
  } else if (atlas_kind((atlas_type)type) == ATLAS_KIND_UINT) {
    hg_x86_v(e, X86_vpandd, to, from, hg_x86_constant(e, atlas_mask((atlas_type)type), 0));
  } else {
    hg_x86_vi(e, X86_vpslld_imm, 0, to, x86_reg(from), 32 - bits);
    hg_x86_vi(e, X86_vpsrad_imm, 0, to, x86_reg(to), 32 - bits);
  }
}

static void integer_32(x86_emit *e, const pair *t) {
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    narrow_to(e, t->to, to, from);
    hg_x86_set_result(e, c, p, to);
  }
}

/* Puts both 16-bit halves as mantissa bits under a fixed exponent, whose value is then subtracted exactly; their sum is
 * rounded once. */
static void u32_to_f32_avx2(x86_emit *e) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, s1);
    hg_x86_vi(e, X86_vpsrld_imm, 0, s2, x86_reg(from), 16);
    hg_x86_v(e, X86_vpandd, s0, from, hg_x86_constant(e, 0xffff, 0));
    hg_x86_v(e, X86_vpord, s2, s2, hg_x86_constant(e, 0x53000000, 0)); /* 2^39, a unit of the last place is 2^16 */
    hg_x86_v(e, X86_vpord, s0, s0, hg_x86_constant(e, TWO_23, 0));
    hg_x86_v(e, X86_vsubps, s2, s2, hg_x86_constant(e, 0x53000080, 0)); /* 2^39 + 2^23 */
    hg_x86_v(e, X86_vaddps, s0, s2, x86_reg(s0));
    hg_x86_set_result(e, c, p, s0);
  }
}

static void integer_to_f32(x86_emit *e, const pair *t) {
  int is_u32 = t->from == ATLAS_u32;
  if (is_u32 && e->width != 2) {
    u32_to_f32_avx2(e);
    return;
  }
  X86_EACH(e, c, p) {
    x86_rm from = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, is_u32 ? X86_vcvtudq2ps : X86_vcvtdq2ps, to, 0, from);
    hg_x86_set_result(e, c, p, to);
  }
}

static void clamp_narrow(x86_emit *e, uint8_t type, unsigned reg) {
  if (bytes_of(type) == 4) return;
  uint64_t mask = atlas_mask((atlas_type)type);
  int is_signed = atlas_kind((atlas_type)type) == ATLAS_KIND_SINT;
  hg_x86_v(e, is_signed ? X86_vpminsd : X86_vpminud, reg, reg, hg_x86_constant(e, is_signed ? mask >> 1 : mask, 0));
  if (is_signed) hg_x86_v(e, X86_vpmaxsd, reg, reg, hg_x86_constant(e, (uint32_t)~(mask >> 1), 0));
}

/* An out-of-range operand gives 0x80000000, which is right below the range; above it and for NaN the result is
 * replaced. */
static void f32_to_signed(x86_emit *e, const pair *t) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, s1);
    x86_rm bound = hg_x86_constant(e, TWO_31, 0), greatest = hg_x86_constant(e, 0x7fffffff, 0);
    if (e->width == 2) {
      hg_x86_vi(e, X86_vcmpps, 1, from, x86_reg(from), X86_ORDERED);
      hg_x86_vi(e, X86_vcmpps, 2, from, bound, X86_AT_LEAST);
      hg_x86_vk(e, X86_vcvttps2dq, s0, 0, x86_reg(from), 0, 1, 1);
      greatest.broadcast = 0;
      hg_x86_vk(e, X86_vpbroadcastd, s0, 0, greatest, 0, 2, 0);
    } else {
      hg_x86_vi(e, X86_vcmpps, s2, from, bound, X86_AT_LEAST);
      hg_x86_v(e, X86_vcvttps2dq, s0, 0, x86_reg(from));
      hg_x86_v(e, X86_vpxord, s0, s0, x86_reg(s2)); /* 0x80000000 becomes 0x7fffffff */
      hg_x86_vi(e, X86_vcmpps, s2, from, x86_reg(from), X86_ORDERED);
      hg_x86_v(e, X86_vpandd, s0, s0, x86_reg(s2));
    }
    clamp_narrow(e, t->to, s0);
    hg_x86_set_result(e, c, p, s0);
  }
}

/* f32 to u32 for numbers from 0 on, in scratch 0: 2^31 is subtracted from those that are not below it and set again as
 * a bit. */
static void cut_u32_avx2(x86_emit *e) {
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  x86_rm two_31 = hg_x86_constant(e, TWO_31, 0);
  hg_x86_vi(e, X86_vcmpps, s2, s0, two_31, X86_AT_LEAST);
  hg_x86_v(e, X86_vpandd, s3, s2, two_31);
  hg_x86_v(e, X86_vsubps, s3, s0, x86_reg(s3));
  hg_x86_v(e, X86_vcvttps2dq, s3, 0, x86_reg(s3));
  hg_x86_vi(e, X86_vpslld_imm, 0, s2, x86_reg(s2), 31);
  hg_x86_v(e, X86_vpxord, s3, s3, x86_reg(s2));
  hg_x86_vi(e, X86_vcmpps, s2, s0, hg_x86_constant(e, TWO_32, 0), X86_AT_LEAST); /* all ones */
  hg_x86_v(e, X86_vpord, s0, s3, x86_reg(s2));
}

/* max(a, 0) turns NaN and negative numbers into 0; numbers that are too large give all ones. */
static void f32_to_unsigned(x86_emit *e, const pair *t) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  X86_EACH(e, c, p) {
    hg_x86_v(e, X86_vpxord, s2, s2, x86_reg(s2));
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, s1);
    hg_x86_v(e, X86_vmaxps, s0, from, x86_reg(s2));
    if (e->width == 2) hg_x86_v(e, X86_vcvttps2udq, s0, 0, x86_reg(s0));
    else if (bytes_of(t->to) == 4) cut_u32_avx2(e);
    else {
      hg_x86_v(e, X86_vminps, s0, s0, hg_x86_constant(e, TWO_16, 0));
      hg_x86_v(e, X86_vcvttps2dq, s0, 0, x86_reg(s0));
    }
    clamp_narrow(e, t->to, s0);
    hg_x86_set_result(e, c, p, s0);
  }
}

/* ---- 32 bits to 64 and back -------------------------------------------------------------------------------------- */

/* Computes each 64-bit part from its half of the source. A uniform value, source or result, is one vector. */
static void widen(x86_emit *e, unsigned op) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    for (uint32_t p = 0; p < hg_x86_parts(e, e->insn->d); p++) {
      unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, 0, s1);
      hg_x86_v(e, op, s0, 0, x86_reg(x86_half(e, from, p, s1)));
      hg_x86_set_result(e, c, p, s0);
    }
  }
}

/* Computes each half of the result from its 64-bit part; `op` 0: the low halves of the elements. */
static void shorten_part(x86_emit *e, unsigned op, unsigned to, unsigned from) {
  if (op != 0) hg_x86_v(e, op, to, 0, x86_reg(from));
  else if (e->width == 2) hg_x86_v(e, X86_vpmovqd, from, 0, x86_reg(to));
  else {
    hg_x86_vi(e, X86_vpshufd, to, 0, x86_reg(from), 0x88); /* elements 0 and 2 of each 128 bits */
    hg_x86_vi(e, X86_vpermq_imm, to, 0, x86_reg(to), 0x08);
  }
}

static int is_lane_number(const x86_emit *e, uint32_t reg) {
  const vector_reg *r = vector_reg_at(e->b->vector, reg);
  return r->kind == VECTOR_SPECIAL && r->bits == ATLAS_REG_LANE;
}

/* The lane's number is computed in 32 bits directly. */
static void shorten(x86_emit *e, unsigned op) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    if (op == 0 && is_lane_number(e, e->insn->s[0])) hg_x86_count_up(e, s0, X86_LANE, hg_x86_first_lane(e, c), 0);
    else {
      shorten_part(e, op, s0, hg_x86_source_reg(e, e->insn->s[0], c, 0, s1));
      shorten_part(e, op, s2, hg_x86_source_reg(e, e->insn->s[0], c, 1, s1));
      x86_join(e, s0, s0, s2);
    }
    if (is_int(e->insn->type)) narrow_to(e, e->insn->type, s0, s0);
    hg_x86_set_result(e, c, 0, s0);
  }
}

/* Puts the bits under the exponent of 2^52, which is then subtracted. */
static void u32_to_f64_avx2(x86_emit *e) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1);
  x86_rm two_52 = hg_x86_constant(e, X86_TWO_52, 1);
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, 0, s1);
    hg_x86_v(e, X86_vpmovzxdq, s0, 0, x86_reg(x86_half(e, from, p, s1)));
    hg_x86_v(e, X86_vpord, s0, s0, two_52);
    hg_x86_v(e, X86_vsubpd, s0, s0, two_52);
    hg_x86_set_result(e, c, p, s0);
  }
}

static void integer_to_f64(x86_emit *e, const pair *t) {
  if (t->from_64) {
    X86_EACH(e, c, p) {
      unsigned s0 = hg_x86_scratch(e, 0);
      if (e->width == 2) {
        x86_rm from = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
        s0 = hg_x86_result_register(e, c, p, s0);
        hg_x86_v(e, t->from_signed ? X86_vcvtqq2pd : X86_vcvtuqq2pd, s0, 0, from);
      } else {
        unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
        hg_x86_long_to_f64(e, t->from_signed, s0, from, hg_x86_scratch(e, 2));
      }
      hg_x86_set_result(e, c, p, s0);
    }
  } else if (t->from == ATLAS_u32 && e->width != 2) u32_to_f64_avx2(e);
  else widen(e, t->from == ATLAS_u32 ? X86_vcvtudq2pd : X86_vcvtdq2pd);
}

/* `to` = 64-bit integers of f64, or of half a vector of f32: AVX-512. */
static void float_to_long(x86_emit *e, const pair *t, unsigned to, unsigned from) {
  int is_64 = t->from_64;
  unsigned s0 = hg_x86_scratch(e, 0);
  if (!t->to_signed) {
    hg_x86_v(e, is_64 ? X86_vmaxpd : X86_vmaxps, s0, from, hg_x86_constant(e, 0, is_64));
    hg_x86_v(e, is_64 ? X86_vcvttpd2uqq : X86_vcvttps2uqq, to, 0, x86_reg(s0));
    return;
  }
  x86_rm greatest = hg_x86_constant(e, INT64_MAX, 1);
  x86_rm bound = hg_x86_constant(e, is_64 ? UINT64_C(0x43e0000000000000) : TWO_63, is_64);
  greatest.broadcast = 0;
  hg_x86_vi(e, is_64 ? X86_vcmppd : X86_vcmpps, 1, from, x86_reg(from), X86_ORDERED);
  hg_x86_vi(e, is_64 ? X86_vcmppd : X86_vcmpps, 2, from, bound, X86_AT_LEAST);
  hg_x86_vk(e, is_64 ? X86_vcvttpd2qq : X86_vcvttps2qq, to, 0, x86_reg(from), 0, 1, 1);
  hg_x86_vk(e, X86_vpbroadcastq, to, 0, greatest, 0, 2, 0);
}

/* 64-bit integers; with AVX2 from f32 through f64, which is exact. */
static void float_to_64(x86_emit *e, const pair *t) {
  unsigned s1 = hg_x86_scratch(e, 1);
  X86_EACH(e, c, p) {
    unsigned to = hg_x86_scratch(e, 0), from = hg_x86_source_reg(e, e->insn->s[0], c, t->from_64 ? p : 0, s1);
    if (!t->from_64) from = x86_half(e, from, p, s1);
    if (!t->from_64 && e->width != 2) {
      hg_x86_v(e, X86_vcvtps2pd, s1, 0, x86_reg(from));
      from = s1;
    }
    if (e->width == 2) float_to_long(e, t, to = hg_x86_result_register(e, c, p, to), from);
    else hg_x86_f64_to_long(e, t->to_signed, from);
    hg_x86_set_result(e, c, p, to);
  }
}

/* f64 to integers of 32 bits or less: clamped as f64, where the bounds are exact. */
static void f64_to_32(x86_emit *e, const pair *t) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  unsigned bits = atlas_type_bits((atlas_type)t->to);
  double greatest = t->to_signed ? (double)(atlas_mask((atlas_type)t->to) >> 1) : (double)atlas_mask((atlas_type)t->to);
  double least = t->to_signed ? -(double)(UINT64_C(1) << (bits - 1)) : 0.0;
  unsigned op = !t->to_signed && bits == 32 ? X86_vcvttpd2udq : X86_vcvttpd2dq;
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    for (uint32_t p = 0; p < 2; p++) {
      unsigned to = p == 0 ? s0 : s2, s3 = hg_x86_scratch(e, 3);
      unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, s1);
      hg_x86_vi(e, X86_vcmppd, e->width == 2 ? 1 : s3, from, x86_reg(from), X86_ORDERED);
      if (e->width == 2) hg_x86_vk(e, X86_vmove64, to, 0, x86_reg(from), 0, 1, 1);
      else hg_x86_v(e, X86_vpandq, to, from, x86_reg(s3)); /* NaN becomes 0 */
      hg_x86_v(e, X86_vminpd, to, to, hg_x86_constant(e, atlas_bits_of_f64(greatest), 1));
      hg_x86_v(e, X86_vmaxpd, to, to, hg_x86_constant(e, atlas_bits_of_f64(least), 1));
      if (op == X86_vcvttpd2udq && e->width != 2) {
        hg_x86_vi(e, X86_vrndscalepd, to, 0, x86_reg(to), X86_TO_ZERO);
        hg_x86_v(e, X86_vaddpd, to, to, hg_x86_constant(e, X86_TWO_52, 1));
        shorten_part(e, 0, to, to); /* integer bits under the exponent of 2^52 */
      } else hg_x86_v(e, op, to, 0, x86_reg(to));
    }
    x86_join(e, s0, s0, s2);
    hg_x86_set_result(e, c, 0, s0);
  }
}

/* ---- to bool ----------------------------------------------------------------------------------------------------- */

/* Compares part p of the source with zero; `mask`, a k register or a vector, gets the elements that are equal or, with
 * AVX-512, those that are not. A NaN is not equal. */
static void compare_with_zero(x86_emit *e, const pair *t, uint32_t copy, uint32_t part, unsigned mask) {
  unsigned s1 = hg_x86_scratch(e, 1), from = hg_x86_source_reg(e, e->insn->s[0], copy, part, s1);
  x86_rm zero = hg_x86_constant(e, 0, t->from_64);
  if (!is_int(t->from))
    hg_x86_vi(e, t->from_64 ? X86_vcmppd : X86_vcmpps, mask, from, zero,
              e->width == 2 ? X86_NOT_EQUAL_TO : X86_EQUAL_TO);
  else if (e->width == 2) hg_x86_v(e, t->from_64 ? X86_vptestmq : X86_vptestmd, mask, from, x86_reg(from));
  else hg_x86_v(e, t->from_64 ? X86_vpcmpeqq : X86_vpcmpeqd, mask, from, zero);
}

static void to_bool(x86_emit *e, const pair *t) {
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    x86_rm one = hg_x86_constant(e, 1, 0);
    if (e->width == 2) {
      compare_with_zero(e, t, c, 0, 1);
      if (t->from_64) compare_with_zero(e, t, c, 1, 2);
      if (t->from_64) hg_x86_k(e, X86_kunpckbw, 1, 2, 1);
      one.broadcast = 0;
      hg_x86_vk(e, X86_vpbroadcastd, s0, 0, one, 0, 1, 1);
    } else {
      compare_with_zero(e, t, c, 0, s2);
      if (t->from_64) { /* the low half of each pair */
        compare_with_zero(e, t, c, 1, s3);
        hg_x86_vi(e, X86_vshufps, s2, s2, x86_reg(s3), 0x88);
        hg_x86_vi(e, X86_vpermq_imm, s2, 0, x86_reg(s2), 0xd8);
      }
      hg_x86_v(e, X86_vpandnd, s0, s2, one);
    }
    hg_x86_set_result(e, c, 0, s0);
  }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void copy_bits(x86_emit *e) {
  X86_EACH(e, c, p) hg_x86_set_result(e, c, p, hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0)));
}

static void integer_to_integer(x86_emit *e, const pair *t) {
  if (t->to_64 && t->from_64) copy_bits(e);
  else if (t->to_64) widen(e, t->from_signed ? X86_vpmovsxdq : X86_vpmovzxdq);
  else if (t->from_64) shorten(e, 0);
  else integer_32(e, t);
}

static void float_to_integer(x86_emit *e, const pair *t) {
  if (t->to_64) float_to_64(e, t);
  else if (t->from_64) f64_to_32(e, t);
  else if (t->to_signed) f32_to_signed(e, t);
  else f32_to_unsigned(e, t);
}

static void to_f32(x86_emit *e, const pair *t) {
  if (t->from == ATLAS_f32) copy_bits(e);
  else if (t->from == ATLAS_f64) shorten(e, X86_vcvtpd2ps);
  else if (!is_int(t->from)) hg_x86_small_to_f32(e, t->from);
  else if (!t->from_64) integer_to_f32(e, t);
  else if (e->width == 2) shorten(e, t->from_signed ? X86_vcvtqq2ps : X86_vcvtuqq2ps);
  else hg_x86_wide_to_small(e, ATLAS_f32, t->from);
}

static void to_f64(x86_emit *e, const pair *t) {
  if (is_int(t->from)) integer_to_f64(e, t);
  else if (t->from_64) copy_bits(e);
  else widen(e, X86_vcvtps2pd);
}

int hg_x86_convert(x86_emit *e) {
  const vector_insn *insn = e->insn;
  pair t = {.to = insn->type, .from = insn->type2};
  if (t.from == ATLAS_bool) t.from = ATLAS_u8; /* a byte of 0 or 1 */
  t.to_64 = bytes_of(t.to) == 8;
  t.from_64 = bytes_of(t.from) == 8;
  t.to_signed = atlas_kind((atlas_type)t.to) == ATLAS_KIND_SINT;
  t.from_signed = atlas_kind((atlas_type)t.from) == ATLAS_KIND_SINT;
  if (t.to == ATLAS_bool) to_bool(e, &t);
  else if (is_int(t.to) && is_int(t.from)) integer_to_integer(e, &t);
  else if (is_int(t.to)) float_to_integer(e, &t);
  else if (t.to == ATLAS_f32) to_f32(e, &t);
  else if (t.to == ATLAS_f64) to_f64(e, &t);
  else if (t.from == ATLAS_f32) hg_x86_f32_to_small(e, t.to);
  else hg_x86_wide_to_small(e, t.to, t.from);
  return 1;
}
