/* convert_small.c - cvt from and to floats of 16 and 8 bits.
 *
 * An instruction converts f32 to f16 and back; it rounds once and keeps subnormals. bf16 is the upper half of f32,
 * f8e5m2 that of f16; f8e4m3 is an f16 that is 2^8 times smaller, shifted by 7 bits. Where these conversions do not
 * round, the value is rounded before: a number is added whose last bit has the weight of the last bit to keep, but
 * no less than the format's smallest number; the sum is rounded there, ties to even, and the number is subtracted
 * again. */
#include "backend/cpu/x86/x86_convert.h"

enum { BF16_NAN = 0x7fc0, F8E4M3_NAN = 0x7f, F8E5M2_NAN = 0x7e };

typedef struct format {
  uint8_t fraction;  /* bits */
  int8_t smallest;   /* exponent of the smallest normal number */
  double largest;    /* a bound for rounding: greater numbers overflow all the same */
} format;

static format format_of(uint8_t type) {
  switch (type) {
  case ATLAS_f16: return (format){10, -14, 0x1p20};
  case ATLAS_bf16: return (format){7, -126, 0x1p200};
  case ATLAS_f8e4m3: return (format){3, -6, 0x1p20};
  default: return (format){2, -14, 0x1p20};
  }
}

static uint64_t f32_bits(double value) { return atlas_round_f64(ATLAS_f32, value); }

/* ---- f32 to small ------------------------------------------------------------------------------------------------ */

/* Writes a constant into the lanes of a mask: k1 with AVX-512, else scratch 3. */
static void blend(x86_emit *e, unsigned to, x86_rm constant) {
  if (e->width == 2) {
    unsigned op = constant.is_memory ? X86_vpbroadcastd : X86_vmove;
    constant.broadcast = 0;
    hg_x86_vk(e, op, to, 0, constant, 0, 1, 0);
  } else hg_x86_vi(e, X86_vblendvps, to, to, constant, hg_x86_scratch(e, 3) << 4);
}

static void compare(x86_emit *e, unsigned a, x86_rm b, unsigned relation) {
  hg_x86_vi(e, X86_vcmpps, e->width == 2 ? 1 : hg_x86_scratch(e, 3), a, b, relation);
}

static unsigned to_f16(x86_emit *e, unsigned to, unsigned from) {
  hg_x86_vi(e, X86_vcvtps2ph, from, 0, x86_reg(hg_x86_scratch(e, 1)), 0); /* to nearest, ties to even */
  hg_x86_v(e, X86_vpmovzxwd, to, 0, x86_reg(hg_x86_scratch(e, 1)));
  return to;
}

/* Adds half a unit of the last bit that is kept, less one if that bit is even. A NaN is replaced, since it could lose
 * its payload. */
static unsigned to_bf16(x86_emit *e, unsigned from) {
  unsigned s0 = hg_x86_scratch(e, 0);
  hg_x86_vi(e, X86_vpsrld_imm, 0, s0, x86_reg(from), 16);
  hg_x86_v(e, X86_vpandd, s0, s0, hg_x86_constant(e, 1, 0));
  hg_x86_v(e, X86_vpaddd, s0, s0, x86_reg(from));
  hg_x86_v(e, X86_vpaddd, s0, s0, hg_x86_constant(e, 0x7fff, 0));
  hg_x86_vi(e, X86_vpsrld_imm, 0, s0, x86_reg(s0), 16);
  compare(e, from, x86_reg(from), X86_UNORDERED);
  blend(e, s0, hg_x86_constant(e, BF16_NAN, 0));
  return s0;
}

/* scratch 2 = an f32 magnitude rounded to the format's number of bits; changes scratch 3. */
static void round_f32(x86_emit *e, uint8_t type, unsigned from) {
  format f = format_of(type);
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  double last_place = 1.5 * (double)(1 << (23 - f.fraction));
  hg_x86_v(e, X86_vpandd, s3, from, hg_x86_constant(e, 0x7f800000, 0));
  hg_x86_v(e, X86_vmaxps, s3, s3, hg_x86_constant(e, atlas_pack(ATLAS_f32, 0, 1, f.smallest), 0));
  hg_x86_v(e, X86_vminps, s3, s3, hg_x86_constant(e, f32_bits(f.largest), 0));
  hg_x86_v(e, X86_vmulps, s3, s3, hg_x86_constant(e, f32_bits(last_place), 0));
  hg_x86_v(e, X86_vaddps, s2, s2, x86_reg(s3));
  hg_x86_v(e, X86_vsubps, s2, s2, x86_reg(s3));
}

/* Converts the magnitude through f16 and puts the sign back, unless the result is NaN, which in f8e4m3 an infinity and
 * whatever rounds above the largest number are. */
static unsigned to_f8(x86_emit *e, uint8_t type, unsigned from, int is_rounded) {
  int is_e4m3 = type == ATLAS_f8e4m3;
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2);
  hg_x86_v(e, X86_vpandd, s2, from, hg_x86_constant(e, 0x7fffffff, 0));
  if (!is_rounded) round_f32(e, type, from);
  if (is_e4m3) compare(e, s2, hg_x86_constant(e, f32_bits(448), 0), X86_NOT_LESS_EQUAL);
  else compare(e, s2, x86_reg(s2), X86_UNORDERED);
  if (is_e4m3) hg_x86_v(e, X86_vmulps, s2, s2, hg_x86_constant(e, f32_bits(0x1p-8), 0));
  hg_x86_vi(e, X86_vcvtps2ph, s2, 0, x86_reg(s2), 0);
  hg_x86_v(e, X86_vpmovzxwd, s2, 0, x86_reg(s2));
  hg_x86_vi(e, X86_vpsrld_imm, 0, s2, x86_reg(s2), is_e4m3 ? 7 : 8);
  hg_x86_vi(e, X86_vpsrld_imm, 0, s0, x86_reg(from), 24);
  hg_x86_v(e, X86_vpandd, s0, s0, hg_x86_constant(e, 0x80, 0));
  hg_x86_v(e, X86_vpord, s0, s0, x86_reg(s2));
  blend(e, s0, hg_x86_constant(e, is_e4m3 ? F8E4M3_NAN : F8E5M2_NAN, 0));
  return s0;
}

/* `is_rounded`: the source has no more bits than the format already. */
static unsigned narrow(x86_emit *e, uint8_t type, unsigned to, unsigned from, int is_rounded) {
  if (type == ATLAS_f16) return to_f16(e, to, from);
  if (type != ATLAS_bf16) return to_f8(e, type, from, is_rounded);
  if (!is_rounded) return to_bf16(e, from);
  hg_x86_vi(e, X86_vpsrld_imm, 0, to, x86_reg(from), 16);
  return to;
}

void hg_x86_f32_to_small(x86_emit *e, uint8_t type) {
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_set_result(e, c, p, narrow(e, type, to, from, 0));
  }
}

/* ---- small to f32 ------------------------------------------------------------------------------------------------ */

/* Widens f16 to 32-bit elements, through half a vector of 16-bit ones in scratch 1. */
static void from_f16(x86_emit *e, unsigned to, unsigned from) {
  unsigned s1 = hg_x86_scratch(e, 1);
  if (e->width == 2) hg_x86_v(e, X86_vpmovdw, from, 0, x86_reg(s1));
  else {
    hg_x86_v(e, X86_vpackusdw, s1, from, x86_reg(from));
    hg_x86_vi(e, X86_vpermq_imm, s1, 0, x86_reg(s1), 0x08);
  }
  hg_x86_v(e, X86_vcvtph2ps, to, 0, x86_reg(s1));
}

/* What is 480 now represents NaN. */
static void from_f8e4m3(x86_emit *e, unsigned to, unsigned from) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  hg_x86_v(e, X86_vpandd, s2, from, hg_x86_constant(e, 0x7f, 0));
  hg_x86_vi(e, X86_vpslld_imm, 0, s2, x86_reg(s2), 7);
  hg_x86_vi(e, X86_vpsrld_imm, 0, s3, x86_reg(from), 7);
  hg_x86_vi(e, X86_vpslld_imm, 0, s3, x86_reg(s3), 31);
  from_f16(e, s2, s2);
  hg_x86_v(e, X86_vmulps, s2, s2, hg_x86_constant(e, f32_bits(0x1p8), 0));
  hg_x86_v(e, X86_vpord, to, s2, x86_reg(s3));
  compare(e, s2, hg_x86_constant(e, f32_bits(480), 0), X86_EQUAL_TO);
  blend(e, to, hg_x86_constant(e, atlas_canonical_nan(ATLAS_f32), 0));
}

void hg_x86_small_to_f32(x86_emit *e, uint8_t type) {
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    if (type == ATLAS_f16) from_f16(e, to, from);
    else if (type == ATLAS_bf16) hg_x86_vi(e, X86_vpslld_imm, 0, to, x86_reg(from), 16);
    else if (type == ATLAS_f8e4m3) from_f8e4m3(e, to, from);
    else {
      hg_x86_vi(e, X86_vpslld_imm, 0, hg_x86_scratch(e, 1), x86_reg(from), 8);
      from_f16(e, to, hg_x86_scratch(e, 1));
    }
    hg_x86_set_result(e, c, p, to);
  }
}

/* As to_bf16, but the upper half stays in place. A NaN has the payload of a bf16 or none, so there is no carry. */
static void round_to_bf16(x86_emit *e, unsigned to, unsigned from) {
  unsigned s2 = hg_x86_scratch(e, 2);
  hg_x86_vi(e, X86_vpsrld_imm, 0, s2, x86_reg(from), 16);
  hg_x86_v(e, X86_vpandd, s2, s2, hg_x86_constant(e, 1, 0));
  hg_x86_v(e, X86_vpaddd, s2, s2, x86_reg(from));
  hg_x86_v(e, X86_vpaddd, s2, s2, hg_x86_constant(e, 0x7fff, 0));
  hg_x86_v(e, X86_vpandd, to, s2, hg_x86_constant(e, 0xffff0000, 0));
}

void hg_x86_round_to_small(x86_emit *e, uint8_t type) {
  X86_EACH(e, c, p) {
    unsigned s1 = hg_x86_scratch(e, 1), from = hg_x86_source_reg(e, e->insn->s[0], c, p, s1);
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    if (type == ATLAS_f16) {
      hg_x86_vi(e, X86_vcvtps2ph, from, 0, x86_reg(s1), 0);
      hg_x86_v(e, X86_vcvtph2ps, to, 0, x86_reg(s1));
    } else round_to_bf16(e, to, from);
    hg_x86_set_result(e, c, p, to);
  }
}

/* ---- what f32 does not hold, to small ---------------------------------------------------------------------------- */

/* scratch 3 = scratch 1, or another register, as f64 rounded to the format's number of bits. */
static void round_f64(x86_emit *e, uint8_t type, unsigned from) {
  format f = format_of(type);
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  hg_x86_v(e, X86_vpandq, s2, from, hg_x86_constant(e, UINT64_C(0x7ff0000000000000), 1));
  hg_x86_v(e, X86_vmaxpd, s2, s2, hg_x86_constant(e, atlas_pack(ATLAS_f64, 0, 1, f.smallest), 1));
  hg_x86_v(e, X86_vminpd, s2, s2, hg_x86_constant(e, atlas_bits_of_f64(f.largest), 1));
  double last_place = 1.5 * (double)(UINT64_C(1) << (52 - f.fraction));
  hg_x86_v(e, X86_vmulpd, s2, s2, hg_x86_constant(e, atlas_bits_of_f64(last_place), 1));
  hg_x86_v(e, X86_vaddpd, s3, from, x86_reg(s2));
  hg_x86_v(e, X86_vsubpd, s3, s3, x86_reg(s2));
  hg_x86_v(e, X86_vpandq, s2, from, hg_x86_constant(e, UINT64_C(1) << 63, 1)); /* also of zeros */
  hg_x86_v(e, X86_vporq, s3, s3, x86_reg(s2));
}

/* scratch 2 = 64-bit integers that f64 can hold and that convert to the same result: rounded to odd or, with AVX-512,
 * those that overflow cut off (none overflow bf16). */
static void shorten_long(x86_emit *e, uint8_t type, int is_signed, unsigned from) {
  unsigned s2 = hg_x86_scratch(e, 2);
  uint64_t bound = UINT64_C(1) << 20;
  if (e->width != 2 || type == ATLAS_bf16 || type == ATLAS_f32) {
    hg_x86_long_to_odd(e, is_signed, s2, from, hg_x86_scratch(e, 3));
    return;
  }
  hg_x86_v(e, is_signed ? X86_vpminsq : X86_vpminuq, s2, from, hg_x86_constant(e, bound, 1));
  if (is_signed) hg_x86_v(e, X86_vpmaxsq, s2, s2, hg_x86_constant(e, 0 - bound, 1));
}

/* Part p of the source as f64 that rounds to the same result: its register. May change scratch 1 to 3. */
static unsigned part_as_f64(x86_emit *e, uint8_t type, uint8_t from, uint32_t copy, uint32_t part) {
  unsigned s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  int is_long = atlas_bytes((atlas_type)from) == 8, is_signed = atlas_kind((atlas_type)from) == ATLAS_KIND_SINT;
  unsigned source = hg_x86_source_reg(e, e->insn->s[0], copy, is_long ? part : 0, s1);
  if (from == ATLAS_f64) return source;
  if (is_long) {
    shorten_long(e, type, is_signed, source);
    hg_x86_long_to_f64(e, is_signed, s1, s2, s3);
    return s1;
  }
  source = x86_half(e, source, part, s1);
  if (is_signed) hg_x86_v(e, X86_vcvtdq2pd, s1, 0, x86_reg(source));
  else if (e->width == 2) hg_x86_v(e, X86_vcvtudq2pd, s1, 0, x86_reg(source));
  else {
    hg_x86_v(e, X86_vpmovzxdq, s1, 0, x86_reg(source));
    hg_x86_v(e, X86_vpord, s1, s1, hg_x86_constant(e, X86_TWO_52, 1));
    hg_x86_v(e, X86_vsubpd, s1, s1, hg_x86_constant(e, X86_TWO_52, 1));
  }
  return s1;
}

/* A uniform value has one vector with equal halves. */
void hg_x86_wide_to_small(x86_emit *e, uint8_t type, uint8_t from) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s3 = hg_x86_scratch(e, 3);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    for (uint32_t p = 0; p < 2; p++) {
      unsigned source = part_as_f64(e, type, from, c, p);
      if (type != ATLAS_f32) {
        round_f64(e, type, source);
        source = s3;
      }
      hg_x86_v(e, X86_vcvtpd2ps, p == 0 ? s0 : s3, 0, x86_reg(source));
    }
    unsigned to = type == ATLAS_f32 ? s0 : s1;
    x86_join(e, to, s0, s3);
    if (type != ATLAS_f32) to = narrow(e, type, hg_x86_result_register(e, c, 0, s0), s1, 1);
    hg_x86_set_result(e, c, 0, to);
  }
}
