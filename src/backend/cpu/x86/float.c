/* float.c - floating-point arithmetic, and bit operations on floats. */
#include "backend/cpu/x86/x86_arith.h"
#include "compiler/clamp.h"

static unsigned ps(x86_emit *e, unsigned op_ps) { return op_ps + (e->insn->type == ATLAS_f64); } /* in the table, the
                                                                                                    row of pd follows
                                                                                                    that of ps */

/* Which source of an fma is copied to the result's register: a constant, else a factor in memory, else any. A source
 * that is known early does not delay the copy. */
static int source_to_copy(const x86_emit *e, const x86_rm v[3]) {
  static const uint8_t order[3] = {1, 0, 2};
  uint64_t bits;
  for (int k = 0; k < 3; k++)
    if (!v[order[k]].is_memory && hg_x86_constant_bits(e, e->insn->s[order[k]], &bits)) return order[k];
  return v[1].is_memory && !v[0].is_memory ? 1 : 0;
}

/* a * b + c, in the form that overwrites the operand that is already in the result's register. */
static void write_fma(x86_emit *e, uint32_t c, uint32_t p) {
  const uint32_t *s = e->insn->s;
  int is_64 = e->insn->type == ATLAS_f64;
  unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
  x86_rm v[3];
  for (unsigned i = 0; i < 3; i++) v[i] = hg_x86_source(e, s[i], c, p, hg_x86_scratch(e, 1 + i));
  int place = -1; /* the source that is in the result's register */
  for (int i = 0; i < 3; i++)
    if (!v[i].is_memory && v[i].reg == to) place = i;
  if (place < 0) { /* else one that is available early */
    place = source_to_copy(e, v);
    unsigned from = hg_x86_rm_reg(e, v[place], is_64, to);
    if (from != to) hg_x86_v(e, is_64 ? X86_vmove64 : X86_vmove, to, 0, x86_reg(from));
  }
  int first = place == 0 ? 1 : 0, second = place == 2 ? 1 : 2; /* the other two, in order */
  if (place == 2) { /* 231: to = first * second + to */
    if (v[first].is_memory) {
      first = 1;
      second = 0;
    }
    unsigned left = hg_x86_rm_reg(e, v[first], is_64, hg_x86_scratch(e, 1u + (unsigned)first));
    hg_x86_v(e, ps(e, X86_vfmadd231ps), to, left, v[second]);
  } else if (v[first].is_memory && !v[second].is_memory) { /* 132: to = to * memory + addend */
    hg_x86_v(e, ps(e, X86_vfmadd132ps), to, v[second].reg, v[first]);
  } else { /* 213: to = factor * to + addend */
    unsigned left = hg_x86_rm_reg(e, v[first], is_64, hg_x86_scratch(e, 1u + (unsigned)first));
    hg_x86_v(e, ps(e, X86_vfmadd213ps), to, left, v[second]);
  }
  hg_x86_set_result(e, c, p, to);
}

int hg_x86_fma(x86_emit *e) {
  X86_EACH(e, c, p) write_fma(e, c, p);
  return 1;
}

static int unary(x86_emit *e, unsigned op, unsigned immediate) {
  X86_EACH(e, c, p) {
    x86_rm a = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_vi(e, op, to, 0, a, immediate);
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

int hg_x86_square_root(x86_emit *e) { return unary(e, ps(e, X86_vsqrtps), 0); }

int hg_x86_round(x86_emit *e) {
  enum { QUIET = 8 }; /* and in the lower bits: to nearest, down, up, toward zero */
  uint16_t op = e->insn->op;
  unsigned way = op == ATLAS_OP_floor ? 1 : op == ATLAS_OP_ceil ? 2 : op == ATLAS_OP_trunc ? 3 : 0;
  return unary(e, ps(e, X86_vrndscaleps), QUIET | way);
}

/* The instruction returns its second operand for two zeros and for NaNs, so the results for both orders of the operands
 * contain the NaN or the two zeros: their or is a NaN, or -0 if there is one. For the maximum, their and is +0 but may
 * lose a NaN, so the mask of unordered lanes is put in, as in the form for which AVX-512 has an instruction that orders
 * zeros. */
static void greatest_avx512(x86_emit *e) {
  enum { UNORDERED = 3, GREATER_WITH_ITS_SIGN = 5 };
  int is_64 = e->insn->type == ATLAS_f64;
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
    hg_x86_vi(e, ps(e, X86_vcmpps), 1, a, x86_reg(b), UNORDERED);
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_vi(e, ps(e, X86_vrangeps), to, a, x86_reg(b), GREATER_WITH_ITS_SIGN);
    hg_x86_vk(e, is_64 ? X86_vpternlogq : X86_vpternlogd, to, to, x86_reg(to), 0xff, 1, 0); /* all ones: a NaN */
    hg_x86_set_result(e, c, p, to);
  }
}

static void minimum_or_maximum(x86_emit *e) {
  int is_max = e->insn->op == ATLAS_OP_max;
  unsigned op = ps(e, is_max ? X86_vmaxps : X86_vminps);
  if (is_max && e->width == 2) {
    greatest_avx512(e);
    return;
  }
  X86_EACH(e, c, p) {
    unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, s1);
    hg_x86_v(e, op, s2, a, x86_reg(b));
    if (is_max) hg_x86_vi(e, ps(e, X86_vcmpps), hg_x86_scratch(e, 3), a, x86_reg(b), 3);
    unsigned to = hg_x86_result_register(e, c, p, s0);
    hg_x86_v(e, op, to, b, x86_reg(a));
    hg_x86_v(e, is_max ? X86_vpandd : X86_vpord, to, to, x86_reg(s2));
    if (is_max) hg_x86_v(e, X86_vpord, to, to, x86_reg(hg_x86_scratch(e, 3)));
    hg_x86_set_result(e, c, p, to);
  }
}

/* 1 if one instruction computes min or max with this register as its bound: it returns either of equal values, and the
 * other operand for NaN. */
static int is_bound(const x86_emit *e, uint32_t reg) {
  uint64_t bits;
  return hg_x86_constant_bits(e, reg, &bits) && hg_is_bound(e->insn->type, bits);
}

static void write_bound(x86_emit *e, uint32_t number, uint32_t other) {
  unsigned op = ps(e, e->insn->op == ATLAS_OP_max ? X86_vmaxps : X86_vminps);
  X86_EACH(e, c, p) {
    unsigned left = hg_x86_source_reg(e, number, c, p, hg_x86_scratch(e, 0));
    x86_rm right = hg_x86_source(e, other, c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, op, to, left, right);
    hg_x86_set_result(e, c, p, to);
  }
}

/* Responses of vfixupimm by the class of its operand: quiet NaN, signalling NaN, zero, one, -inf, +inf, negative,
 * positive. 1 returns the operand, 8 is +0, 9 is -1, 10 is +1. */
static uint32_t fix_table(const uint8_t response[8]) {
  uint32_t table = 0;
  for (unsigned i = 0; i < 8; i++) table |= (uint32_t)response[i] << (4 * i);
  return table;
}

static void write_fixup(x86_emit *e, const uint8_t response[8], uint32_t source) {
  int is_64 = e->insn->type == ATLAS_f64;
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, source, c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_vi(e, ps(e, X86_vfixupimmps), to, a, hg_x86_constant(e, fix_table(response), is_64), 0);
    hg_x86_set_result(e, c, p, to);
  }
}

/* max(+0, a) returns its second operand for NaN and for zeros; adding +0 turns -0 into +0. */
static void write_relu(x86_emit *e, uint32_t source) {
  static const uint8_t response[8] = {1, 1, 8, 1, 8, 1, 8, 1};
  if (e->width == 2) {
    write_fixup(e, response, source);
    return;
  }
  unsigned zero = hg_x86_scratch(e, 2);
  X86_EACH(e, c, p) {
    hg_x86_v(e, X86_vpxord, zero, zero, x86_reg(zero));
    x86_rm a = hg_x86_source(e, source, c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, ps(e, X86_vmaxps), to, zero, a);
    hg_x86_v(e, ps(e, X86_vaddps), to, to, x86_reg(zero));
    hg_x86_set_result(e, c, p, to);
  }
}

static int is_plus_zero(const x86_emit *e, uint32_t reg) {
  uint64_t bits;
  return hg_x86_constant_bits(e, reg, &bits) && bits == 0;
}

int hg_x86_extreme(x86_emit *e) {
  const uint32_t *s = e->insn->s;
  int is_max = e->insn->op == ATLAS_OP_max;
  if (is_bound(e, s[0])) write_bound(e, s[0], s[1]);
  else if (is_bound(e, s[1])) write_bound(e, s[1], s[0]);
  else if (is_max && is_plus_zero(e, s[0])) write_relu(e, s[1]);
  else if (is_max && is_plus_zero(e, s[1])) write_relu(e, s[0]);
  else minimum_or_maximum(e);
  return 1;
}

static uint64_t sign_bit(uint8_t type) { return UINT64_C(1) << (atlas_type_bits((atlas_type)type) - 1); }

int hg_x86_flip_sign(x86_emit *e) {
  hg_x86_with_constant(e, X86_vpxord, X86_vpxorq, sign_bit(e->insn->type));
  return 1;
}

int hg_x86_clear_sign(x86_emit *e) {
  uint8_t type = e->insn->type;
  hg_x86_with_constant(e, X86_vpandd, X86_vpandq, atlas_mask((atlas_type)type) & ~sign_bit(type));
  return 1;
}

int hg_x86_copy_sign(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  uint64_t sign = sign_bit(e->insn->type);
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1);
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    hg_x86_v(e, is_64 ? X86_vpandq : X86_vpandd, s0, a,
             hg_x86_constant(e, atlas_mask((atlas_type)e->insn->type) & ~sign, is_64));
    unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, s1);
    hg_x86_v(e, is_64 ? X86_vpandq : X86_vpandd, s1, b, hg_x86_constant(e, sign, is_64));
    unsigned to = hg_x86_result_register(e, c, p, s0);
    hg_x86_v(e, X86_vpord, to, s0, x86_reg(s1));
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

/* Blends a constant into the lanes of k1. */
static void blend_constant(x86_emit *e, x86_rm constant, int is_64, unsigned to) {
  unsigned op = is_64 ? X86_vmove64 : X86_vmove;
  if (constant.is_memory) op = is_64 ? X86_vpbroadcastq : X86_vpbroadcastd;
  constant.broadcast = 0;
  hg_x86_vk(e, op, to, 0, constant, 0, 1, 0);
}

/* AVX-512: the canonical NaN if the operand is a NaN, else the operand. A comparison and a masked move take twice as
 * long. */
static void canonical_by_class(x86_emit *e) {
  static const uint8_t response[8] = {0, 0, 1, 1, 1, 1, 1, 1}; /* 0 keeps the destination */
  int is_64 = e->insn->type == ATLAS_f64;
  X86_EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result_register(e, c, p, hg_x86_scratch(e, 0));
    if (to == a) to = hg_x86_scratch(e, 0);
    x86_rm nan = hg_x86_constant(e, atlas_canonical_nan((atlas_type)e->insn->type), is_64);
    unsigned there = hg_x86_rm_reg(e, nan, is_64, to);
    if (there != to) hg_x86_v(e, is_64 ? X86_vmove64 : X86_vmove, to, 0, x86_reg(there));
    hg_x86_vi(e, ps(e, X86_vfixupimmps), to, a, hg_x86_constant(e, fix_table(response), is_64), 0);
    hg_x86_set_result(e, c, p, to);
  }
}

void hg_x86_divide_canonically(x86_emit *e, unsigned to, unsigned from, x86_rm by) {
  enum { UNORDERED = 3 };
  unsigned nan = hg_x86_scratch(e, 1), is_nan = hg_x86_scratch(e, 3);
  x86_rm canonical = hg_x86_constant(e, atlas_canonical_nan(ATLAS_f32), 0);
  hg_x86_v(e, X86_vdivps, to, from, by);
  if (e->width == 2) {
    hg_x86_vi(e, X86_vcmpps, 1, to, x86_reg(to), UNORDERED);
    blend_constant(e, canonical, 0, to);
    return;
  }
  hg_x86_vi(e, X86_vcmpps, is_nan, to, x86_reg(to), UNORDERED);
  hg_x86_vi(e, X86_vblendvps, to, to, x86_reg(hg_x86_rm_reg(e, canonical, 0, nan)), is_nan << 4);
}

/* f32 and f64; f16 and bf16 by their bits. */
int hg_x86_canonical(x86_emit *e) {
  if (e->width == 2 && !x86_is_narrow(e->insn->type)) {
    canonical_by_class(e);
    return 1;
  }
  int is_64 = e->insn->type == ATLAS_f64, is_16 = x86_is_narrow(e->insn->type);
  uint64_t infinity = e->insn->type == ATLAS_f16 ? 0x7c00 : 0x7f80;
  x86_rm nan = hg_x86_constant(e, atlas_canonical_nan((atlas_type)e->insn->type), is_64);
  X86_EACH(e, c, p) {
    unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    if (is_16) hg_x86_v(e, X86_vpandd, s1, a, hg_x86_constant(e, 0x7fff, 0));
    unsigned to = hg_x86_result_register(e, c, p, s0);
    if (e->width == 2) {
      hg_x86_vi(e, X86_vpcmpud, 1, s1, hg_x86_constant(e, infinity, 0), 6);
      if (to != a) hg_x86_v(e, X86_vmove, to, 0, x86_reg(a));
      blend_constant(e, nan, is_64, to);
    } else {
      if (is_16) hg_x86_v(e, X86_vpcmpgtd, s1, s1, hg_x86_constant(e, infinity, 0));
      else hg_x86_vi(e, ps(e, X86_vcmpps), s1, a, x86_reg(a), 3);
      s2 = hg_x86_rm_reg(e, nan, is_64, s2);
      hg_x86_vi(e, X86_vblendvps, to, a, x86_reg(s2), s1 << 4);
    }
    hg_x86_set_result(e, c, p, to);
  }
  return 1;
}

/* AVX2: 1 or -1 if the operand is above or below 0, and all ones, which is a NaN, if it is a NaN. */
static void sign_avx2(x86_emit *e) {
  int is_64 = e->insn->type == ATLAS_f64;
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2);
  uint64_t one = atlas_round_f64((atlas_type)e->insn->type, 1);
  X86_EACH(e, c, p) {
    enum { UNORDERED = 3, LESS_THAN = 0x11, GREATER_THAN = 0x1e };
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    x86_rm zero = hg_x86_constant(e, 0, is_64);
    hg_x86_vi(e, ps(e, X86_vcmpps), s0, a, zero, GREATER_THAN);
    hg_x86_v(e, X86_vpandd, s0, s0, hg_x86_constant(e, one, is_64));
    hg_x86_vi(e, ps(e, X86_vcmpps), s2, a, zero, LESS_THAN);
    hg_x86_v(e, X86_vpandd, s2, s2, hg_x86_constant(e, one | sign_bit(e->insn->type), is_64));
    hg_x86_v(e, X86_vpord, s0, s0, x86_reg(s2));
    hg_x86_vi(e, ps(e, X86_vcmpps), s2, a, x86_reg(a), UNORDERED);
    hg_x86_v(e, X86_vpord, s0, s0, x86_reg(s2));
    hg_x86_set_result(e, c, p, s0);
  }
}

int hg_x86_sign(x86_emit *e) {
  static const uint8_t response[8] = {1, 1, 8, 10, 9, 10, 9, 10};
  if (e->width == 2) write_fixup(e, response, e->insn->s[0]);
  else sign_avx2(e);
  return 1;
}
