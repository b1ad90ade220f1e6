/* bits.c - bit counts and bit reversal.
 *
 * On processors without an instruction for it, the bits of a byte are counted or reversed by looking up its two halves
 * in a table of 16 entries (W. Mula, "SSSE3: fast popcount", 2008). Leading zeros are the exponent of a conversion to
 * f32. */
#include "backend/cpu/x86/x86_arith.h"

typedef struct piece {
  unsigned to, from; /* registers; `to` may be scratch 0, `from` scratch 1 */
  unsigned bits;     /* of the type */
  int is_64;
} piece;

/* scratch 2 and 3 = the lower and the upper half of each byte. */
static void halves(x86_emit *e, unsigned from) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  hg_x86_vi(e, X86_vpsrld_imm, 0, s3, x86_reg(from), 4);
  hg_x86_v(e, X86_vpandd, s2, from, hg_x86_constant(e, 0x0f0f0f0f, 0));
  hg_x86_v(e, X86_vpandd, s3, s3, hg_x86_constant(e, 0x0f0f0f0f, 0));
}

/* half = the table entries that its elements select; changes scratch 0. */
static void look_up(x86_emit *e, unsigned half, uint64_t low, uint64_t high) {
  unsigned s0 = hg_x86_scratch(e, 0);
  hg_x86_v(e, X86_vload, s0, 0, hg_x86_bytes_constant(e, low, high));
  hg_x86_v(e, X86_vpshufb, half, s0, x86_reg(half));
}

/* Population count. */
static void count(x86_emit *e, const piece *p, unsigned from) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  const uint64_t low = UINT64_C(0x0302020102010100), high = UINT64_C(0x0403030203020201);
  const uint64_t bytes_of_1 = UINT64_C(0x0101010101010101), words_of_1 = UINT64_C(0x0001000100010001);
  if (e->has_popcount) {
    hg_x86_v(e, p->is_64 ? X86_vpopcntq : X86_vpopcntd, p->to, 0, x86_reg(from));
    return;
  }
  halves(e, from);
  look_up(e, s2, low, high);
  look_up(e, s3, low, high);
  hg_x86_v(e, X86_vpaddd, s2, s2, x86_reg(s3)); /* no byte overflows */
  hg_x86_v(e, X86_vpmaddubsw, s2, s2, hg_x86_bytes_constant(e, bytes_of_1, bytes_of_1)); /* adds neighbours */
  hg_x86_v(e, X86_vpmaddwd, p->to, s2, hg_x86_bytes_constant(e, words_of_1, words_of_1));
  if (!p->is_64) return;
  hg_x86_vi(e, X86_vpsrlq_imm, 0, s2, x86_reg(p->to), 32);
  hg_x86_v(e, X86_vpaddd, p->to, p->to, x86_reg(s2));
  hg_x86_v(e, X86_vpandq, p->to, p->to, hg_x86_constant(e, UINT32_MAX, 1));
}

/* Clears the bits that sign extension has added to a narrow type; in `to` if there are any. */
static unsigned without_sign(x86_emit *e, const piece *p, unsigned to) {
  if (p->bits >= 32 || atlas_kind((atlas_type)e->insn->type) != ATLAS_KIND_SINT) return p->from;
  hg_x86_v(e, X86_vpandd, to, p->from, hg_x86_constant(e, atlas_mask((atlas_type)e->insn->type), 0));
  return to;
}

static void population(x86_emit *e, const piece *p) { count(e, p, without_sign(e, p, hg_x86_scratch(e, 2))); }

/* The bits below the lowest set bit are those of ~a & (a - 1). For a narrow type, a bit set above the type's own ends
 * the count. */
static void trailing_zeros(x86_emit *e, const piece *p) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3), from = p->from;
  if (p->bits < 32) {
    hg_x86_v(e, X86_vpord, s3, from, hg_x86_constant(e, UINT64_C(1) << p->bits, 0));
    from = s3;
  }
  hg_x86_v(e, p->is_64 ? X86_vpaddq : X86_vpaddd, s2, from,
           hg_x86_constant(e, p->is_64 ? UINT64_MAX : UINT32_MAX, p->is_64));
  hg_x86_v(e, p->is_64 ? X86_vpandnq : X86_vpandnd, s2, from, x86_reg(s2));
  count(e, p, s2);
}

/* Leading zeros of each 32-bit element. Clearing the second bit where the first is set keeps the conversion to f32 from
 * rounding up to the next power of two. A number from 2^31 on is negative there, and 0 has exponent 0: both are
 * clamped. */
static void exponents(x86_emit *e, unsigned to, unsigned from) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  hg_x86_vi(e, X86_vpsrld_imm, 0, s2, x86_reg(from), 1);
  hg_x86_v(e, X86_vpandnd, s2, s2, x86_reg(from));
  hg_x86_v(e, X86_vcvtdq2ps, s2, 0, x86_reg(s2));
  hg_x86_vi(e, X86_vpsrld_imm, 0, s2, x86_reg(s2), 23);
  hg_x86_v(e, X86_vpsubd, s2, hg_x86_rm_reg(e, hg_x86_constant(e, 127 + 31, 0), 0, s3), x86_reg(s2));
  hg_x86_v(e, X86_vpmaxsd, s2, s2, hg_x86_constant(e, 0, 0));
  hg_x86_v(e, X86_vpminsd, to, s2, hg_x86_constant(e, 32, 0));
}

static void leading_zeros(x86_emit *e, const piece *p) {
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned from = without_sign(e, p, s3);
  if (e->width == 2) hg_x86_v(e, p->is_64 ? X86_vplzcntq : X86_vplzcntd, p->to, 0, x86_reg(from));
  else if (!p->is_64) exponents(e, p->to, from);
  else { /* those of the upper half or, if these are 32, 32 plus those of the lower */
    exponents(e, s0, from);
    hg_x86_vi(e, X86_vpsrlq_imm, 0, s2, x86_reg(s0), 32);
    hg_x86_v(e, X86_vpandq, s0, s0, hg_x86_constant(e, UINT32_MAX, 1));
    hg_x86_v(e, X86_vpcmpeqq, s3, s2, hg_x86_constant(e, 32, 1));
    hg_x86_v(e, X86_vpandq, s0, s0, x86_reg(s3));
    hg_x86_v(e, X86_vpaddq, p->to, s0, x86_reg(s2));
  }
  if (p->bits < 32) hg_x86_v(e, X86_vpsubd, p->to, p->to, hg_x86_constant(e, 32 - p->bits, 0));
}

/* Reverses the bits of each byte, then the bytes of each element. Narrow types keep the upper bytes. */
static void reverse(x86_emit *e, const piece *p) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
  x86_rm bytes = p->is_64 ? hg_x86_bytes_constant(e, UINT64_C(0x0001020304050607), UINT64_C(0x08090a0b0c0d0e0f))
                          : hg_x86_bytes_constant(e, UINT64_C(0x0405060700010203), UINT64_C(0x0c0d0e0f08090a0b));
  halves(e, p->from);
  look_up(e, s2, UINT64_C(0xe060a020c0408000), UINT64_C(0xf070b030d0509010));
  look_up(e, s3, UINT64_C(0x0e060a020c040800), UINT64_C(0x0f070b030d050901));
  if (p->bits == 8) { /* the lowest byte stays; the bytes above it become zeros or copies of the sign */
    hg_x86_v(e, X86_vpord, p->to, s2, x86_reg(s3));
    if (is_signed) hg_x86_extend(e, e->insn->type, p->to);
    return;
  }
  hg_x86_v(e, X86_vpord, s2, s2, x86_reg(s3));
  hg_x86_v(e, X86_vpshufb, p->to, s2, bytes);
  if (p->bits < 32)
    hg_x86_vi(e, is_signed ? X86_vpsrad_imm : X86_vpsrld_imm, 0, p->to, x86_reg(p->to), 32 - p->bits);
}

int hg_x86_bits(x86_emit *e) {
  machine_arith op = (machine_arith)hg_machine_op(e->insn->op);
  X86_EACH(e, c, part) {
    piece p = {.from = hg_x86_source_reg(e, e->insn->s[0], c, part, hg_x86_scratch(e, 1)),
               .to = hg_x86_result_register(e, c, part, hg_x86_scratch(e, 0)),
               .bits = atlas_type_bits((atlas_type)e->insn->type),
               .is_64 = hg_x86_is_64(e, e->insn->d)};
    if (op == ARITH_popc) population(e, &p);
    else if (op == ARITH_clz) leading_zeros(e, &p);
    else if (op == ARITH_ctz) trailing_zeros(e, &p);
    else reverse(e, &p); /* brev */
    hg_x86_set_result(e, c, part, p.to);
  }
  return 1;
}
