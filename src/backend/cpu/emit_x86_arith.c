/* emit_x86_arith.c - arithmetic, comparisons, selection. What is missing here (some operations of narrow or 64-bit
 * integers, of AVX2) is left to hg_native_help.
 *
 * A NaN may have any payload here: VECTOR_CANON stands wherever that can be seen. */
#include "backend/cpu/emit_x86.h"

#include "atlas/value.h"

/* ---- rows: one instruction --------------------------------------------------------------------------------------- */

enum { NOT_THERE = 0xffff, COMMUTES = 1, NEEDS_EVEX_64 = 2 };

typedef struct binary_row {
  uint16_t op;
  uint16_t f32, f64, i32, i64, u32, u64;
  uint8_t flags;
} binary_row;

static const binary_row binary_rows[] = {
    {ATLAS_OP_add, X86_vaddps, X86_vaddpd, X86_vpaddd, X86_vpaddq, X86_vpaddd, X86_vpaddq, COMMUTES},
    {ATLAS_OP_sub, X86_vsubps, X86_vsubpd, X86_vpsubd, X86_vpsubq, X86_vpsubd, X86_vpsubq, 0},
    {ATLAS_OP_mul, X86_vmulps, X86_vmulpd, X86_vpmulld, X86_vpmullq, X86_vpmulld, X86_vpmullq, COMMUTES},
    {ATLAS_OP_div, X86_vdivps, X86_vdivpd, NOT_THERE, NOT_THERE, NOT_THERE, NOT_THERE, 0},
    {ATLAS_OP_min, NOT_THERE, NOT_THERE, X86_vpminsd, X86_vpminsq, X86_vpminud, X86_vpminuq, COMMUTES},
    {ATLAS_OP_max, NOT_THERE, NOT_THERE, X86_vpmaxsd, X86_vpmaxsq, X86_vpmaxud, X86_vpmaxuq, COMMUTES},
    {VECTOR_LESSER, X86_vminps, X86_vminpd, NOT_THERE, NOT_THERE, NOT_THERE, NOT_THERE, 0}, /* for NaN and for equal */
    {VECTOR_GREATER, X86_vmaxps, X86_vmaxpd, NOT_THERE, NOT_THERE, NOT_THERE, NOT_THERE, 0},/* values: the second */
    {ATLAS_OP_and, NOT_THERE, NOT_THERE, X86_vpandd, X86_vpandq, X86_vpandd, X86_vpandq, COMMUTES},
    {ATLAS_OP_or, NOT_THERE, NOT_THERE, X86_vpord, X86_vporq, X86_vpord, X86_vporq, COMMUTES},
    {ATLAS_OP_xor, NOT_THERE, NOT_THERE, X86_vpxord, X86_vpxorq, X86_vpxord, X86_vpxorq, COMMUTES},
};

static int is_narrow(uint8_t type) { return atlas_bytes((atlas_type)type) < 4; }

static int can_write(const x86_emit *e, unsigned op) {
  return op != NOT_THERE && (e->width == 2 || hg_x86_rows[op].has & X86_HAS_V);
}

static unsigned column(const binary_row *row, uint8_t type) {
  int is_64 = atlas_bytes((atlas_type)type) == 8;
  switch (atlas_kind((atlas_type)type)) {
  case ATLAS_KIND_FLOAT: return type == ATLAS_f32 ? row->f32 : type == ATLAS_f64 ? row->f64 : NOT_THERE;
  case ATLAS_KIND_SINT: return is_64 ? row->i64 : row->i32;
  case ATLAS_KIND_UINT: return is_64 ? row->u64 : row->u32;
  default: return NOT_THERE;
  }
}

/* Narrow integers are kept extended; an operation that can leave their range is followed by this. */
static void extend(x86_emit *e, uint8_t type, unsigned reg) {
  if (!is_narrow(type) || !atlas_is_integer((atlas_type)type)) return;
  unsigned bits = atlas_type_bits((atlas_type)type);
  if (atlas_kind((atlas_type)type) == ATLAS_KIND_UINT) {
    hg_x86_v(e, X86_vpandd, reg, reg, hg_x86_constant(e, atlas_mask((atlas_type)type), 0));
    return;
  }
  hg_x86_vi(e, X86_vpslld_imm, 0, reg, x86_reg(reg), 32 - bits);
  hg_x86_vi(e, X86_vpsrad_imm, 0, reg, x86_reg(reg), 32 - bits);
}

/* Calls `one` for every vector of the result. */
#define EACH(e, c, p)                                             \
  for (uint32_t c = 0; c < hg_x86_copies(e, (e)->insn->d); c++)   \
    for (uint32_t p = 0; p < hg_x86_parts(e, (e)->insn->d); p++)

static void binary(x86_emit *e, unsigned op, int commutes) {
  const vector_insn *insn = e->insn;
  int is_64 = hg_x86_is_64(e, insn->d);
  EACH(e, c, p) {
    x86_rm a = hg_x86_source(e, insn->s[0], c, p, hg_x86_scratch(e, 0));
    x86_rm b = hg_x86_source(e, insn->s[1], c, p, hg_x86_scratch(e, 1));
    if (commutes && a.is_memory) {
      x86_rm other = a;
      a = b;
      b = other;
    }
    unsigned left = hg_x86_rm_reg(e, a, is_64, hg_x86_scratch(e, 0));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, op, to, left, b);
    extend(e, insn->type, to);
    hg_x86_done(e, c, p, to);
  }
}

static int binary_op(x86_emit *e) {
  for (size_t i = 0; i < sizeof binary_rows / sizeof binary_rows[0]; i++) {
    const binary_row *row = &binary_rows[i];
    if (row->op != e->insn->op) continue;
    unsigned op = column(row, e->insn->type);
    if (!can_write(e, op)) return 0;
    binary(e, op, row->flags & COMMUTES);
    return 1;
  }
  return 0;
}

/* ---- floating point ---------------------------------------------------------------------------------------------- */

static unsigned ps(x86_emit *e, unsigned op_ps) { return op_ps + (e->insn->type == ATLAS_f64); } /* rows go ps, pd */

static uint64_t float_bits(const x86_emit *e, double value) {
  return e->insn->type == ATLAS_f64 ? atlas_bits_of_f64(value) : atlas_bits_of_f32((float)value);
}

static x86_rm float_constant(x86_emit *e, double value) {
  return hg_x86_constant(e, float_bits(e, value), e->insn->type == ATLAS_f64);
}

/* A constant, else a factor that is in memory, or any: what it is copied from is not waited for. */
static int source_to_copy(const x86_emit *e, const x86_rm v[3]) {
  static const uint8_t order[3] = {1, 0, 2};
  uint64_t bits;
  for (int k = 0; k < 3; k++)
    if (!v[order[k]].is_memory && hg_x86_constant_bits(e, e->insn->s[order[k]], &bits)) return order[k];
  return v[1].is_memory && !v[0].is_memory ? 1 : 0;
}

/* a * b + c: the form whose overwritten operand is already in place. */
static void fma_one(x86_emit *e, uint32_t c, uint32_t p) {
  const uint32_t *s = e->insn->s;
  int is_64 = e->insn->type == ATLAS_f64;
  unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
  x86_rm v[3];
  for (unsigned i = 0; i < 3; i++) v[i] = hg_x86_source(e, s[i], c, p, hg_x86_scratch(e, 1 + i));
  int place = -1; /* the source that is in the result's register */
  for (int i = 0; i < 3; i++)
    if (!v[i].is_memory && v[i].reg == to) place = i;
  if (place < 0) { /* else one that is known before the others */
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
  hg_x86_done(e, c, p, to);
}

static void fma_op(x86_emit *e) { EACH(e, c, p) fma_one(e, c, p); }

static void unary(x86_emit *e, unsigned op, int immediate) {
  EACH(e, c, p) {
    x86_rm a = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_vi(e, op, to, 0, a, (unsigned)immediate);
    hg_x86_done(e, c, p, to);
  }
}

static void reciprocal(x86_emit *e) {
  EACH(e, c, p) {
    unsigned one = hg_x86_rm_reg(e, float_constant(e, 1), e->insn->type == ATLAS_f64, hg_x86_scratch(e, 2));
    x86_rm a = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, ps(e, X86_vdivps), to, one, a);
    hg_x86_done(e, c, p, to);
  }
}

/* The instruction returns its second operand for zeros and for NaNs, so both orders together hold the NaN or the two
 * zeros: or of both gives a NaN, and -0 if there is one. For the maximum the and gives +0, but may lose a NaN: the mask
 * of unordered lanes is put in. */
static void minimum_or_maximum(x86_emit *e) {
  int is_max = e->insn->op == ATLAS_OP_max, is_64 = e->insn->type == ATLAS_f64;
  unsigned op = ps(e, is_max ? X86_vmaxps : X86_vminps);
  EACH(e, c, p) {
    unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, s1);
    hg_x86_v(e, op, s2, a, x86_reg(b));
    if (is_max && e->width == 2) hg_x86_vi(e, ps(e, X86_vcmpps), 1, a, x86_reg(b), 3);
    else if (is_max) hg_x86_vi(e, ps(e, X86_vcmpps), hg_x86_scratch(e, 3), a, x86_reg(b), 3);
    unsigned to = hg_x86_result(e, c, p, s0);
    hg_x86_v(e, op, to, b, x86_reg(a));
    hg_x86_v(e, is_max ? X86_vpandd : X86_vpord, to, to, x86_reg(s2));
    if (is_max && e->width == 2)
      hg_x86_vk(e, is_64 ? X86_vpternlogq : X86_vpternlogd, to, to, x86_reg(to), 0xff, 1, 0); /* all ones: a NaN */
    else if (is_max) hg_x86_v(e, X86_vpord, to, to, x86_reg(hg_x86_scratch(e, 3)));
    hg_x86_done(e, c, p, to);
  }
}

/* With a constant that is a number and not zero one instruction will do: of equal values either, of NaN the other. */
static int is_bound(const x86_emit *e, uint32_t reg) {
  uint64_t bits;
  if (!hg_x86_constant_bits(e, reg, &bits)) return 0;
  double value = atlas_to_f64((atlas_type)e->insn->type, bits);
  return value < 0 || value > 0;
}

static void bound(x86_emit *e, uint32_t number, uint32_t other) {
  unsigned op = ps(e, e->insn->op == ATLAS_OP_max ? X86_vmaxps : X86_vminps);
  EACH(e, c, p) {
    unsigned left = hg_x86_source_reg(e, number, c, p, hg_x86_scratch(e, 0));
    x86_rm right = hg_x86_source(e, other, c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, op, to, left, right);
    hg_x86_done(e, c, p, to);
  }
}

/* Responses of vfixupimm by class of the operand: quiet NaN, signalling NaN, zero, one, -inf, +inf, negative, positive.
 * 1 takes the operand, 8 is +0, 9 is -1, 10 is +1. */
static uint32_t fix_table(const uint8_t response[8]) {
  uint32_t table = 0;
  for (unsigned i = 0; i < 8; i++) table |= (uint32_t)response[i] << (4 * i);
  return table;
}

static void fix_up(x86_emit *e, const uint8_t response[8], uint32_t source) {
  int is_64 = e->insn->type == ATLAS_f64;
  EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, source, c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_vi(e, ps(e, X86_vfixupimmps), to, a, hg_x86_constant(e, fix_table(response), is_64), 0);
    hg_x86_done(e, c, p, to);
  }
}

/* max(+0, a) takes the second operand for NaN and for zeros; adding +0 makes -0 positive. */
static void relu(x86_emit *e, uint32_t source) {
  static const uint8_t response[8] = {1, 1, 8, 1, 8, 1, 8, 1};
  if (e->width == 2) {
    fix_up(e, response, source);
    return;
  }
  unsigned zero = hg_x86_scratch(e, 2);
  EACH(e, c, p) {
    hg_x86_v(e, X86_vpxord, zero, zero, x86_reg(zero));
    x86_rm a = hg_x86_source(e, source, c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, ps(e, X86_vmaxps), to, zero, a);
    hg_x86_v(e, ps(e, X86_vaddps), to, to, x86_reg(zero));
    hg_x86_done(e, c, p, to);
  }
}

static int is_plus_zero(const x86_emit *e, uint32_t reg) {
  uint64_t bits;
  return hg_x86_constant_bits(e, reg, &bits) && bits == 0;
}

static void least_or_greatest(x86_emit *e) {
  const uint32_t *s = e->insn->s;
  int is_max = e->insn->op == ATLAS_OP_max;
  if (is_bound(e, s[0])) bound(e, s[0], s[1]);
  else if (is_bound(e, s[1])) bound(e, s[1], s[0]);
  else if (is_max && is_plus_zero(e, s[0])) relu(e, s[1]);
  else if (is_max && is_plus_zero(e, s[1])) relu(e, s[0]);
  else minimum_or_maximum(e);
}

/* A bit operation with one constant. */
static void with_constant(x86_emit *e, unsigned op32, unsigned op64, uint64_t bits) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, is_64 ? op64 : op32, to, a, hg_x86_constant(e, bits, is_64));
    hg_x86_done(e, c, p, to);
  }
}

static uint64_t sign_bit(uint8_t type) { return UINT64_C(1) << (atlas_type_bits((atlas_type)type) - 1); }

static void copy_sign(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  uint64_t sign = sign_bit(e->insn->type);
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1);
  EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    hg_x86_v(e, is_64 ? X86_vpandq : X86_vpandd, s0, a,
             hg_x86_constant(e, atlas_mask((atlas_type)e->insn->type) & ~sign, is_64));
    unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, s1);
    hg_x86_v(e, is_64 ? X86_vpandq : X86_vpandd, s1, b, hg_x86_constant(e, sign, is_64));
    unsigned to = hg_x86_result(e, c, p, s0);
    hg_x86_v(e, X86_vpord, to, s0, x86_reg(s1));
    hg_x86_done(e, c, p, to);
  }
}

/* In the lanes of k1. */
static void put_constant(x86_emit *e, x86_rm constant, int is_64, unsigned to) {
  unsigned op = is_64 ? X86_vmove64 : X86_vmove;
  if (constant.is_memory) op = is_64 ? X86_vpbroadcastq : X86_vpbroadcastd;
  constant.broadcast = 0;
  hg_x86_vk(e, op, to, 0, constant, 0, 1, 0);
}

/* With AVX-512: the canonical NaN where the operand is one, else the operand. A comparison and a masked move take twice
 * as long. */
static void canonical_by_class(x86_emit *e) {
  static const uint8_t response[8] = {0, 0, 1, 1, 1, 1, 1, 1}; /* 0 leaves what is there */
  int is_64 = e->insn->type == ATLAS_f64;
  EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    if (to == a) to = hg_x86_scratch(e, 0);
    x86_rm nan = hg_x86_constant(e, atlas_canonical_nan((atlas_type)e->insn->type), is_64);
    unsigned there = hg_x86_rm_reg(e, nan, is_64, to);
    if (there != to) hg_x86_v(e, is_64 ? X86_vmove64 : X86_vmove, to, 0, x86_reg(there));
    hg_x86_vi(e, ps(e, X86_vfixupimmps), to, a, hg_x86_constant(e, fix_table(response), is_64), 0);
    hg_x86_done(e, c, p, to);
  }
}

/* f32 and f64; also f16 and bf16 as bits. */
static void canonical(x86_emit *e) {
  if (e->width == 2 && !is_narrow(e->insn->type)) {
    canonical_by_class(e);
    return;
  }
  int is_64 = e->insn->type == ATLAS_f64, is_16 = is_narrow(e->insn->type);
  uint64_t infinity = e->insn->type == ATLAS_f16 ? 0x7c00 : 0x7f80;
  x86_rm nan = hg_x86_constant(e, atlas_canonical_nan((atlas_type)e->insn->type), is_64);
  EACH(e, c, p) {
    unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    if (is_16) hg_x86_v(e, X86_vpandd, s1, a, hg_x86_constant(e, 0x7fff, 0));
    unsigned to = hg_x86_result(e, c, p, s0);
    if (e->width == 2) {
      hg_x86_vi(e, X86_vpcmpud, 1, s1, hg_x86_constant(e, infinity, 0), 6);
      if (to != a) hg_x86_v(e, X86_vmove, to, 0, x86_reg(a));
      put_constant(e, nan, is_64, to);
    } else {
      if (is_16) hg_x86_v(e, X86_vpcmpgtd, s1, s1, hg_x86_constant(e, infinity, 0));
      else hg_x86_vi(e, ps(e, X86_vcmpps), s1, a, x86_reg(a), 3);
      s2 = hg_x86_rm_reg(e, nan, is_64, s2);
      hg_x86_vi(e, X86_vblendvps, to, a, x86_reg(s2), s1 << 4);
    }
    hg_x86_done(e, c, p, to);
  }
}

static int sign_op(x86_emit *e) {
  static const uint8_t response[8] = {1, 1, 8, 10, 9, 10, 9, 10};
  if (e->width != 2) return 0;
  fix_up(e, response, e->insn->s[0]);
  return 1;
}

static int float_op(x86_emit *e) {
  uint8_t type = e->insn->type;
  int is_arithmetic = type == ATLAS_f32 || type == ATLAS_f64;
  uint64_t sign = sign_bit(type);
  switch (e->insn->op) {
  case VECTOR_CANON: canonical(e); return 1;
  case ATLAS_OP_neg: with_constant(e, X86_vpxord, X86_vpxorq, sign); return 1;
  case ATLAS_OP_abs: with_constant(e, X86_vpandd, X86_vpandq, atlas_mask((atlas_type)type) & ~sign); return 1;
  case ATLAS_OP_copysign: copy_sign(e); return 1;
  default: break;
  }
  if (!is_arithmetic) return 0;
  switch (e->insn->op) {
  case ATLAS_OP_fma:
  case ATLAS_OP_mad: fma_op(e); return 1;
  case ATLAS_OP_sqrt: unary(e, ps(e, X86_vsqrtps), 0); return 1;
  case ATLAS_OP_recip: reciprocal(e); return 1;
  case ATLAS_OP_round: unary(e, ps(e, X86_vrndscaleps), 8); return 1;
  case ATLAS_OP_floor: unary(e, ps(e, X86_vrndscaleps), 9); return 1;
  case ATLAS_OP_ceil: unary(e, ps(e, X86_vrndscaleps), 10); return 1;
  case ATLAS_OP_trunc: unary(e, ps(e, X86_vrndscaleps), 11); return 1;
  case ATLAS_OP_min:
  case ATLAS_OP_max: least_or_greatest(e); return 1;
  case ATLAS_OP_relu: relu(e, e->insn->s[0]); return 1;
  case ATLAS_OP_sign: return sign_op(e);
  default: return 0;
  }
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

/* The count of a shift, u32 in all lanes, as the vector's elements. */
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

static int shift(x86_emit *e) {
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
  if (!can_write(e, is_constant ? by_constant : by_vector)) return 0;
  EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned by = is_constant ? 0 : shift_count(e, e->insn->s[1], c, p, bits, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    if (is_constant) hg_x86_vi(e, by_constant, 0, to, x86_reg(a), (unsigned)(count & (bits - 1)));
    else hg_x86_v(e, by_vector, to, a, x86_reg(by));
    if (is_left) extend(e, type, to);
    hg_x86_done(e, c, p, to);
  }
  return 1;
}

/* Products of 64 bits from those of 32, and of mad the sum. */
static void multiply_long_avx2(x86_emit *e) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  EACH(e, c, p) {
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
    hg_x86_done(e, c, p, s0);
  }
}

static void multiply_add(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  unsigned s0 = hg_x86_scratch(e, 0);
  EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    x86_rm b = hg_x86_source(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
    hg_x86_v(e, is_64 ? X86_vpmullq : X86_vpmulld, s0, a, b);
    x86_rm addend = hg_x86_source(e, e->insn->s[2], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, s0);
    hg_x86_v(e, is_64 ? X86_vpaddq : X86_vpaddd, to, s0, addend);
    extend(e, e->insn->type, to);
    hg_x86_done(e, c, p, to);
  }
}

/* 32 bits: products of the even elements and of the odd ones, whose high halves are put together again. */
static void multiply_high(x86_emit *e, int is_signed) {
  unsigned op = is_signed ? X86_vpmuldq : X86_vpmuludq;
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0);
    unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, s1);
    hg_x86_v(e, op, s2, a, x86_reg(b));
    hg_x86_vi(e, X86_vpsrlq_imm, 0, s3, x86_reg(a), 32);
    hg_x86_vi(e, X86_vpsrlq_imm, 0, s0, x86_reg(b), 32);
    hg_x86_v(e, op, s3, s3, x86_reg(s0));
    hg_x86_vi(e, X86_vpsrlq_imm, 0, s2, x86_reg(s2), 32);
    unsigned to = hg_x86_result(e, c, p, s0);
    x86_rm high = hg_x86_constant(e, UINT64_C(0xffffffff00000000), 1);
    hg_x86_v(e, X86_vpandq, s3, s3, high);
    hg_x86_v(e, X86_vporq, to, s2, x86_reg(s3));
    hg_x86_done(e, c, p, to);
  }
}

static void narrow_multiply_high(x86_emit *e, int is_signed) {
  unsigned bits = atlas_type_bits((atlas_type)e->insn->type);
  EACH(e, c, p) {
    unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    x86_rm b = hg_x86_source(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, X86_vpmulld, to, a, b);
    hg_x86_vi(e, is_signed ? X86_vpsrad_imm : X86_vpsrld_imm, 0, to, x86_reg(to), bits);
    hg_x86_done(e, c, p, to);
  }
}

static void negate(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  unsigned zero = hg_x86_scratch(e, 2);
  EACH(e, c, p) {
    hg_x86_v(e, X86_vpxord, zero, zero, x86_reg(zero));
    x86_rm a = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, is_64 ? X86_vpsubq : X86_vpsubd, to, zero, a);
    extend(e, e->insn->type, to);
    hg_x86_done(e, c, p, to);
  }
}

static int absolute(x86_emit *e) {
  unsigned op = hg_x86_is_64(e, e->insn->d) ? X86_vpabsq : X86_vpabsd;
  if (!can_write(e, op)) return 0;
  EACH(e, c, p) {
    x86_rm a = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, op, to, 0, a);
    extend(e, e->insn->type, to);
    hg_x86_done(e, c, p, to);
  }
  return 1;
}

/* Leading zeros of a narrow value are those of 32 bits less what the extension added; population counts do not mind. */
static int count_bits(x86_emit *e) {
  uint8_t type = e->insn->type;
  int is_64 = hg_x86_is_64(e, e->insn->d), is_signed = atlas_kind((atlas_type)type) == ATLAS_KIND_SINT;
  int is_population = e->insn->op == ATLAS_OP_popc;
  if (e->width != 2 || (is_population && !e->has_popcount) || (is_narrow(type) && is_signed)) return 0;
  unsigned op = is_population ? (is_64 ? X86_vpopcntq : X86_vpopcntd) : is_64 ? X86_vplzcntq : X86_vplzcntd;
  unsigned bits = atlas_type_bits((atlas_type)type);
  EACH(e, c, p) {
    x86_rm a = hg_x86_source(e, e->insn->s[0], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, op, to, 0, a);
    if (!is_population && bits < 32) hg_x86_v(e, X86_vpsubd, to, to, hg_x86_constant(e, 32 - bits, 0));
    hg_x86_done(e, c, p, to);
  }
  return 1;
}

static int integer_op(x86_emit *e) {
  uint8_t type = e->insn->type;
  int is_signed = atlas_kind((atlas_type)type) == ATLAS_KIND_SINT;
  switch (e->insn->op) {
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: return shift(e);
  case ATLAS_OP_mul: /* what has no instruction */
    multiply_long_avx2(e);
    return 1;
  case ATLAS_OP_mad:
    if (e->width != 2 && hg_x86_is_64(e, e->insn->d)) multiply_long_avx2(e);
    else multiply_add(e);
    return 1;
  case ATLAS_OP_div:
  case ATLAS_OP_rem: return hg_x86_divide(e) || hg_x86_divide_avx2(e);
  case ATLAS_OP_neg: negate(e); return 1;
  case ATLAS_OP_abs: return absolute(e);
  case ATLAS_OP_not:
    with_constant(e, X86_vpxord, X86_vpxorq, is_signed ? UINT64_MAX : atlas_mask((atlas_type)type));
    return 1;
  case ATLAS_OP_popc:
  case ATLAS_OP_clz: return count_bits(e);
  case ATLAS_OP_mulhi:
    if (hg_x86_is_64(e, e->insn->d)) return 0;
    if (is_narrow(type)) narrow_multiply_high(e, is_signed);
    else multiply_high(e, is_signed);
    return 1;
  default: return 0;
  }
}

/* ---- selection, moves -------------------------------------------------------------------------------------------- */

static void select_op(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  EACH(e, c, p) {
    unsigned mask_scratch = e->width == 2 ? 1 : hg_x86_scratch(e, 2);
    unsigned mask = hg_x86_predicate(e, e->insn->s[0], c, mask_scratch);
    if (is_64) mask = hg_x86_mask_part(e, mask, p, mask_scratch);
    unsigned no = hg_x86_source_reg(e, e->insn->s[2], c, p, hg_x86_scratch(e, 0));
    x86_rm yes = hg_x86_source(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    if (e->width == 2) hg_x86_vk(e, is_64 ? X86_vpblendmq : X86_vpblendmd, to, no, yes, 0, mask, 0);
    else hg_x86_vi(e, X86_vblendvps, to, no, yes, mask << 4);
    hg_x86_done(e, c, p, to);
  }
}

static void select_predicate(x86_emit *e) {
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    if (e->width == 2) {
      unsigned p = hg_x86_predicate(e, e->insn->s[0], c, 1);
      hg_x86_k(e, X86_kandnw, 2, p, hg_x86_predicate(e, e->insn->s[2], c, 2));
      hg_x86_k(e, X86_kandw, 1, p, hg_x86_predicate(e, e->insn->s[1], c, 0));
      unsigned to = hg_x86_predicate_result(e, c, 2);
      hg_x86_k(e, X86_korw, to, 1, 2);
      hg_x86_predicate_done(e, c, to);
      continue;
    }
    unsigned p = hg_x86_predicate(e, e->insn->s[0], c, hg_x86_scratch(e, 2));
    unsigned no = hg_x86_predicate(e, e->insn->s[2], c, hg_x86_scratch(e, 0));
    unsigned yes = hg_x86_predicate(e, e->insn->s[1], c, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_predicate_result(e, c, hg_x86_scratch(e, 0));
    hg_x86_vi(e, X86_vblendvps, to, no, x86_reg(yes), p << 4);
    hg_x86_predicate_done(e, c, to);
  }
}

static void move(x86_emit *e) {
  EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_result(e, c, p, hg_x86_scratch(e, 0)));
    hg_x86_done(e, c, p, from);
  }
}

/* The same bits under another type: only narrow integers are kept otherwise. */
static int bit_cast(x86_emit *e) {
  EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned to = from;
    if (is_narrow(e->insn->type)) {
      to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
      unsigned bits = atlas_type_bits((atlas_type)e->insn->type);
      int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
      hg_x86_vi(e, X86_vpslld_imm, 0, to, x86_reg(from), 32 - bits);
      hg_x86_vi(e, is_signed ? X86_vpsrad_imm : X86_vpsrld_imm, 0, to, x86_reg(to), 32 - bits);
    }
    hg_x86_done(e, c, p, to);
  }
  return 1;
}

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

/* Immediates of vcmpps and vpcmpd, in the order eq ne lt le gt ge num nan. */
static int relation_of(uint16_t op) {
  switch (op) {
  case ATLAS_OP_set_eq: return 0;
  case ATLAS_OP_set_ne: return 1;
  case ATLAS_OP_set_lt: return 2;
  case ATLAS_OP_set_le: return 3;
  case ATLAS_OP_set_gt: return 4;
  case ATLAS_OP_set_ge: return 5;
  case ATLAS_OP_set_num: return 6;
  case ATLAS_OP_set_nan: return 7;
  default: return -1;
  }
}

static const uint8_t float_immediate[8] = {0x00, 0x04, 0x11, 0x12, 0x1e, 0x1d, 0x07, 0x03};
static const uint8_t integer_immediate[8] = {0, 4, 1, 2, 6, 5};

/* Under the mask of the next instruction, which is done with it. */
static int compare_masked(x86_emit *e, unsigned op, uint32_t left, uint32_t right, unsigned immediate) {
  enum { OPPOSITE = 4 }; /* the bit of a relation that stands for not */
  const vector_insn *use = hg_native_masked_use(e->b, e->index);
  if (use == NULL) return 0;
  if (use->op == VECTOR_ANDNOT) immediate ^= OPPOSITE;
  e->insn = use;
  for (uint32_t c = 0; c < hg_x86_copies(e, use->d); c++) {
    unsigned mask = hg_x86_predicate(e, use->s[0], c, 1), to = hg_x86_predicate_result(e, c, 2);
    unsigned a = hg_x86_source_reg(e, left, c, 0, hg_x86_scratch(e, 0));
    x86_rm b = hg_x86_source(e, right, c, 0, hg_x86_scratch(e, 1));
    hg_x86_vk(e, op, to, a, b, immediate, mask, 0);
    hg_x86_predicate_done(e, c, to);
  }
  e->joined = e->index + 1;
  return 1;
}

static void compare_evex(x86_emit *e, unsigned op, uint32_t left, uint32_t right, unsigned immediate) {
  if (compare_masked(e, op, left, right, immediate)) return;
  int is_64 = hg_x86_is_64(e, left);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    unsigned to = hg_x86_predicate_result(e, c, 2);
    for (uint32_t p = 0; p < (is_64 ? 2u : 1u); p++) {
      unsigned a = hg_x86_source_reg(e, left, c, p, hg_x86_scratch(e, 0));
      x86_rm b = hg_x86_source(e, right, c, p, hg_x86_scratch(e, 1));
      hg_x86_vi(e, op, is_64 ? p : to, a, b, immediate);
    }
    if (is_64) hg_x86_k(e, X86_kunpckbw, to, 1, 0);
    hg_x86_predicate_done(e, c, to);
  }
}

/* AVX2 has equal and signed greater only: the others by exchange, by inversion, and with the sign bits flipped. */
static void compare_integers(x86_emit *e, int relation, int is_64, int is_unsigned, unsigned to, unsigned a,
                             unsigned b) {
  unsigned s3 = hg_x86_scratch(e, 3);
  int is_equality = relation < 2, swap = relation == 2 || relation == 5,
      invert = relation == 1 || relation == 3 || relation == 5;
  if (is_unsigned && !is_equality) {
    x86_rm sign = hg_x86_constant(e, is_64 ? UINT64_C(1) << 63 : UINT64_C(1) << 31, is_64);
    hg_x86_v(e, X86_vpxord, hg_x86_scratch(e, 0), a, sign);
    hg_x86_v(e, X86_vpxord, hg_x86_scratch(e, 1), b, sign);
    a = hg_x86_scratch(e, 0);
    b = hg_x86_scratch(e, 1);
  }
  unsigned op = is_equality ? (is_64 ? X86_vpcmpeqq : X86_vpcmpeqd) : is_64 ? X86_vpcmpgtq : X86_vpcmpgtd;
  hg_x86_v(e, op, to, swap ? b : a, x86_reg(swap ? a : b));
  if (!invert) return;
  hg_x86_v(e, X86_vpcmpeqd, s3, s3, x86_reg(s3));
  hg_x86_v(e, X86_vpxord, to, to, x86_reg(s3));
}

static void compare_vex(x86_emit *e, int relation, int is_float) {
  uint8_t type = hg_x86_type(e, e->insn->s[0]);
  int is_64 = hg_x86_is_64(e, e->insn->s[0]), is_unsigned = atlas_kind((atlas_type)type) == ATLAS_KIND_UINT;
  int is_uniform = hg_x86_parts(e, e->insn->s[0]) == 1 && hg_x86_parts(e, e->insn->s[1]) == 1;
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    for (uint32_t p = 0; p < (is_64 && !is_uniform ? 2u : 1u); p++) {
      unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
      unsigned b = hg_x86_source_reg(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
      unsigned part = p == 0 ? s2 : hg_x86_scratch(e, 0);
      if (is_float) hg_x86_vi(e, is_64 ? X86_vcmppd : X86_vcmpps, part, a, x86_reg(b), float_immediate[relation]);
      else compare_integers(e, relation, is_64, is_unsigned && !is_narrow(type), part, a, b);
    }
    unsigned to = hg_x86_predicate_result(e, c, hg_x86_scratch(e, 0));
    if (is_64 && !is_uniform) { /* 64-bit elements to 32-bit ones: of each pair the low half */
      hg_x86_vi(e, X86_vshufps, s3, s2, x86_reg(hg_x86_scratch(e, 0)), 0x88);
      hg_x86_vi(e, X86_vpermq_imm, to, 0, x86_reg(s3), 0xd8);
    } else if (to != s2) hg_x86_v(e, X86_vmove, to, 0, x86_reg(s2));
    hg_x86_predicate_done(e, c, to);
  }
}

static int compare(x86_emit *e) {
  int relation = relation_of(e->insn->op);
  if (relation < 0) return 0;
  uint8_t type = hg_x86_type(e, e->insn->s[0]);
  int is_float = type == ATLAS_f32 || type == ATLAS_f64, is_64 = hg_x86_is_64(e, e->insn->s[0]);
  if (!is_float && !atlas_is_integer((atlas_type)type)) return 0;
  if (!is_float && relation > 5) return 0;
  if (e->width != 2) {
    compare_vex(e, relation, is_float);
    return 1;
  }
  static const uint8_t mirrored[8] = {0, 1, 4, 5, 2, 3, 6, 7};
  uint32_t left = e->insn->s[0], right = e->insn->s[1];
  if (vector_reg_at(e->b->vector, left)->kind == VECTOR_CONSTANT) { /* which can be the last operand, from memory */
    left = e->insn->s[1];
    right = e->insn->s[0];
    relation = mirrored[relation];
  }
  int is_unsigned = atlas_kind((atlas_type)type) == ATLAS_KIND_UINT;
  unsigned op = is_64 ? (is_unsigned ? X86_vpcmpuq : X86_vpcmpq) : is_unsigned ? X86_vpcmpud : X86_vpcmpd;
  if (is_float) op = is_64 ? X86_vcmppd : X86_vcmpps;
  compare_evex(e, op, left, right, is_float ? float_immediate[relation] : integer_immediate[relation]);
  return 1;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

int hg_x86_arith(x86_emit *e) {
  switch (e->insn->op) {
  case ATLAS_OP_sel:
    if (e->insn->type == SSA_PREDICATE || hg_x86_type(e, e->insn->d) == SSA_PREDICATE) select_predicate(e);
    else select_op(e);
    return 1;
  case VECTOR_MOVE:
  case ATLAS_OP_mov:
  case ATLAS_OP_movi: move(e); return 1;
  case ATLAS_OP_bitcast: return bit_cast(e);
  default: break;
  }
  if (compare(e)) return 1;
  if (e->insn->d == VECTOR_NONE || hg_x86_type(e, e->insn->d) == SSA_PREDICATE) return 0;
  if (binary_op(e)) return 1;
  return atlas_is_integer((atlas_type)e->insn->type) ? integer_op(e) : float_op(e);
}
