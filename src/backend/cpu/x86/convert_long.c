/* convert_long.c - cvt between 64-bit integers and floats without an instruction for it. AVX2 has none.
 *
 * The integer's halves become mantissa bits under fixed exponents, whose values are then subtracted; only the last
 * addition rounds. */
#include "backend/cpu/x86/x86_convert.h"

#define TWO_84 UINT64_C(0x4530000000000000) /* a unit of the last place is 2^32 */
#define TWO_31 UINT64_C(0x80000000)
#define F64(value) hg_x86_constant(e, atlas_bits_of_f64(value), 1)

void hg_x86_long_to_f64(x86_emit *e, int is_signed, unsigned to, unsigned from, unsigned other) {
  if (e->width == 2) {
    hg_x86_v(e, is_signed ? X86_vcvtqq2pd : X86_vcvtuqq2pd, to, 0, x86_reg(from));
    return;
  }
  hg_x86_vi(e, X86_vpsrlq_imm, 0, other, x86_reg(from), 32);
  hg_x86_v(e, X86_vpandq, to, from, hg_x86_constant(e, UINT32_MAX, 1));
  hg_x86_v(e, X86_vporq, to, to, hg_x86_constant(e, X86_TWO_52, 1));
  if (is_signed) hg_x86_v(e, X86_vpxorq, other, other, hg_x86_constant(e, TWO_84 | TWO_31, 1)); /* 2^63 more */
  else hg_x86_v(e, X86_vporq, other, other, hg_x86_constant(e, TWO_84, 1));
  hg_x86_v(e, X86_vsubpd, other, other, F64(is_signed ? 0x1p84 + 0x1p63 + 0x1p52 : 0x1p84 + 0x1p52));
  hg_x86_v(e, X86_vaddpd, to, to, x86_reg(other));
}

/* From 2^53 on the lowest 11 bits are rounded to odd: they are cut off, and bit 11 is set if one of them was (Boldo and
 * Melquiond, IEEE ToC 57(4), 2008). */
void hg_x86_long_to_odd(x86_emit *e, int is_signed, unsigned to, unsigned from, unsigned other) {
  x86_rm low = hg_x86_constant(e, 0x7ff, 1);
  hg_x86_v(e, X86_vpandq, to, from, low);
  hg_x86_v(e, X86_vpaddq, to, to, low);
  hg_x86_v(e, X86_vporq, to, to, x86_reg(from));
  hg_x86_v(e, X86_vpandq, to, to, hg_x86_constant(e, ~UINT64_C(0x7ff), 1));
  if (is_signed) hg_x86_v(e, X86_vpaddq, other, from, hg_x86_constant(e, UINT64_C(1) << 53, 1));
  hg_x86_vi(e, X86_vpsrlq_imm, 0, other, x86_reg(is_signed ? other : from), is_signed ? 54 : 53);
  if (e->width == 2) { /* leaves smaller integers as they are */
    hg_x86_v(e, X86_vptestnmq, 1, other, x86_reg(other));
    hg_x86_vk(e, X86_vmove64, to, 0, x86_reg(from), 0, 1, 0);
  } else {
    hg_x86_v(e, X86_vpcmpeqq, other, other, hg_x86_constant(e, 0, 1));
    hg_x86_vi(e, X86_vblendvps, to, to, x86_reg(from), other << 4);
  }
}

/* Splits the integer part into high 2^32 + low; each is added to a power of two that puts it into the lowest bits. */
void hg_x86_f64_to_long(x86_emit *e, int is_signed, unsigned from) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  if (is_signed) {
    hg_x86_vi(e, X86_vcmppd, s2, from, x86_reg(from), X86_ORDERED);
    hg_x86_v(e, X86_vpandq, s1, from, x86_reg(s2)); /* 0 for NaN */
    hg_x86_v(e, X86_vmaxpd, s1, s1, F64(-0x1p63));
  } else hg_x86_v(e, X86_vmaxpd, s1, from, hg_x86_constant(e, 0, 1)); /* 0 for NaN, too */
  hg_x86_vi(e, X86_vrndscalepd, s0, 0, x86_reg(s1), X86_TO_ZERO);
  hg_x86_v(e, X86_vmulpd, s2, s0, F64(0x1p-32));
  hg_x86_vi(e, X86_vrndscalepd, s2, 0, x86_reg(s2), X86_DOWN);
  hg_x86_v(e, X86_vmulpd, s3, s2, F64(0x1p32));
  hg_x86_v(e, X86_vsubpd, s0, s0, x86_reg(s3)); /* the low half, exact */
  hg_x86_v(e, X86_vaddpd, s0, s0, hg_x86_constant(e, X86_TWO_52, 1));
  hg_x86_v(e, X86_vpxorq, s0, s0, hg_x86_constant(e, X86_TWO_52, 1));
  hg_x86_v(e, X86_vaddpd, s2, s2, F64(0x1.8p52));
  hg_x86_vi(e, X86_vpsllq_imm, 0, s2, x86_reg(s2), 32);
  hg_x86_v(e, X86_vporq, s0, s0, x86_reg(s2));
  hg_x86_vi(e, X86_vcmppd, s2, s1, F64(is_signed ? 0x1p63 : 0x1p64), X86_AT_LEAST);
  if (is_signed) hg_x86_vi(e, X86_vblendvps, s0, s0, hg_x86_constant(e, INT64_MAX, 1), s2 << 4);
  else hg_x86_v(e, X86_vporq, s0, s0, x86_reg(s2));
}
