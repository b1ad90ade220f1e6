/* narrow.c - programs whose values all have 8 or 16 bits: vectors with a lane for each element of the widest type,
 * where other code has a lane for each 32 bits. Such groups run first; the code that every program has handles the
 * remaining lanes, with the same registers.
 *
 * A vector's elements have the widest type; narrower integers are extended to it by their sign or by zero. Only
 * straight code with [x + lane] as its memory qualifies. */
#include "backend/cpu/x86/x86_arith.h"

#include <stddef.h>

typedef struct narrow {
  x86_emit *e;
  uint32_t copy;
  unsigned bytes;     /* of an element of a vector: 1 or 2 */
  unsigned to;        /* the result's register, or scratch 0 */
  uint8_t type;       /* of the instruction */
  uint8_t is_signed;  /* 1: it is a signed integer */
  uint8_t is_shorter; /* 1: it has fewer bits than an element */
} narrow;

typedef void writer(const narrow *n);

static unsigned scratch(const narrow *n, unsigned k) { return hg_x86_scratch(n->e, k); }

/* ---- operands ---------------------------------------------------------------------------------------------------- */

/* A constant in all elements. */
static x86_rm number(const narrow *n, uint64_t value) {
  uint32_t bits = n->bytes == 1 ? (uint32_t)(value & 0xff) * 0x01010101u : (uint32_t)(value & 0xffff) * 0x00010001u;
  return hg_x86_constant(n->e, bits, 0);
}

static x86_rm parameter(const narrow *n, const vector_reg *r, unsigned to) {
  x86_rm scalar = hg_x86_context(n->e, (size_t)hg_x86_place_offset(r->bits, offsetof(native_place, scalar)), 0, to);
  const uint64_t first = n->bytes == 1 ? 0 : UINT64_C(0x0100010001000100); /* the lowest element, repeated */
  hg_x86_v(n->e, X86_vpshufb, to, hg_x86_rm_reg(n->e, scalar, 0, to), hg_x86_bytes_constant(n->e, first, first));
  return x86_reg(to);
}

/* The last operand of a bit operation: may be a broadcast of 32 bits. */
static x86_rm bits_of(const narrow *n, int which, unsigned to) {
  uint32_t reg = n->e->insn->s[which];
  const vector_reg *r = vector_reg_at(n->e->b->vector, reg);
  if (r->kind == VECTOR_CONSTANT) return number(n, hg_native_widen(r->type, r->bits));
  if (r->kind == VECTOR_SCALAR) return parameter(n, r, to);
  return hg_x86_source(n->e, reg, n->copy, 0, to);
}

/* The last operand of other instructions. */
static x86_rm element(const narrow *n, x86_rm rm, unsigned to) {
  return rm.broadcast ? x86_reg(hg_x86_rm_reg(n->e, rm, 0, to)) : rm;
}
static x86_rm operand(const narrow *n, int which, unsigned to) { return element(n, bits_of(n, which, to), to); }
static unsigned source(const narrow *n, int which, unsigned to) {
  return hg_x86_rm_reg(n->e, bits_of(n, which, to), 0, to);
}

static void v(const narrow *n, unsigned op, unsigned to, unsigned a, x86_rm b) { hg_x86_v(n->e, op, to, a, b); }
static void shift(const narrow *n, unsigned op, unsigned to, unsigned from, unsigned count) {
  hg_x86_vi(n->e, op, 0, to, x86_reg(from), count);
}

/* The row of x86_asm.def for elements of 16 bits follows that for 8. */
static unsigned sized(const narrow *n, unsigned op) { return op + (n->bytes == 2); }

static void set(const narrow *n, unsigned reg) { hg_x86_set_result(n->e, n->copy, 0, reg); }

/* Extends a result whose type is shorter than an element. */
static void set_extended(const narrow *n, unsigned reg) {
  if (n->is_shorter && atlas_is_integer((atlas_type)n->type)) {
    if (!n->is_signed) v(n, X86_vpandd, n->to, reg, number(n, 0xff));
    else {
      shift(n, X86_vpsllw_imm, n->to, reg, 8);
      shift(n, X86_vpsraw_imm, n->to, n->to, 8);
    }
    reg = n->to;
  }
  set(n, reg);
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static unsigned plain_op(const narrow *n) {
  switch (n->e->insn->op) {
  case ATLAS_OP_add: return sized(n, X86_vpaddb);
  case ATLAS_OP_sub: return sized(n, X86_vpsubb);
  case ATLAS_OP_min: return sized(n, n->is_signed ? X86_vpminsb : X86_vpminub);
  case ATLAS_OP_max: return sized(n, n->is_signed ? X86_vpmaxsb : X86_vpmaxub);
  case ATLAS_OP_and: return X86_vpandd;
  case ATLAS_OP_or: return X86_vpord;
  default: return X86_vpxord;
  }
}

static void write_bits(const narrow *n) {
  v(n, plain_op(n), n->to, source(n, 0, scratch(n, 0)), bits_of(n, 1, scratch(n, 1)));
  set(n, n->to);
}

static void write_plain(const narrow *n) {
  v(n, plain_op(n), n->to, source(n, 0, scratch(n, 0)), operand(n, 1, scratch(n, 1)));
  set_extended(n, n->to);
}

static void write_not(const narrow *n) {
  v(n, X86_vpxord, n->to, source(n, 0, scratch(n, 0)), number(n, n->is_shorter && !n->is_signed ? 0xff : UINT64_MAX));
  set(n, n->to);
}

static void write_negate(const narrow *n) {
  unsigned zero = scratch(n, 2);
  v(n, X86_vpxord, zero, zero, x86_reg(zero));
  v(n, sized(n, X86_vpsubb), n->to, zero, operand(n, 0, scratch(n, 1)));
  set_extended(n, n->to);
}

static void write_absolute(const narrow *n) {
  v(n, sized(n, X86_vpabsb), n->to, 0, operand(n, 0, scratch(n, 1)));
  set_extended(n, n->to);
}

static void write_sign(const narrow *n) {
  v(n, sized(n, X86_vpmaxsb), n->to, source(n, 0, scratch(n, 1)), element(n, number(n, UINT64_MAX), scratch(n, 2)));
  v(n, sized(n, X86_vpminsb), n->to, n->to, element(n, number(n, 1), scratch(n, 2)));
  set(n, n->to);
}

/* Floats of 16 bits, as bits. */
static void write_flip_sign(const narrow *n) {
  v(n, X86_vpxord, n->to, source(n, 0, scratch(n, 0)), number(n, 0x8000));
  set(n, n->to);
}

static void write_clear_sign(const narrow *n) {
  v(n, X86_vpandd, n->to, source(n, 0, scratch(n, 0)), number(n, 0x7fff));
  set(n, n->to);
}

static void write_copy_sign(const narrow *n) {
  v(n, X86_vpandd, scratch(n, 2), source(n, 0, scratch(n, 0)), number(n, 0x7fff));
  v(n, X86_vpandd, n->to, source(n, 1, scratch(n, 1)), number(n, 0x8000));
  v(n, X86_vpord, n->to, n->to, x86_reg(scratch(n, 2)));
  set(n, n->to);
}

/* scratch 0 = the lowest bits of the elements' products. Bytes are multiplied as words: the lower one of each word and,
 * with the byte below it cleared in one factor, the upper one. Changes scratch 1 to 3. */
static unsigned product(const narrow *n) {
  unsigned s0 = scratch(n, 0), s2 = scratch(n, 2), s3 = scratch(n, 3);
  unsigned a = source(n, 0, s0), b = source(n, 1, scratch(n, 1));
  if (n->bytes == 2) {
    v(n, X86_vpmullw, s0, a, x86_reg(b));
    return s0;
  }
  shift(n, X86_vpsrlw_imm, s2, a, 8);
  v(n, X86_vpandd, s3, b, hg_x86_constant(n->e, 0xff00ff00u, 0));
  v(n, X86_vpmullw, s2, s2, x86_reg(s3));
  v(n, X86_vpmullw, s0, a, x86_reg(b));
  v(n, X86_vpandd, s0, s0, hg_x86_constant(n->e, 0x00ff00ffu, 0));
  v(n, X86_vpord, s0, s0, x86_reg(s2));
  return s0;
}

static void write_multiply(const narrow *n) { set_extended(n, product(n)); }

static void write_multiply_add(const narrow *n) {
  unsigned s0 = product(n);
  v(n, sized(n, X86_vpaddb), n->to, s0, operand(n, 2, scratch(n, 1)));
  set_extended(n, n->to);
}

/* `to` = the lower byte of each word as a word. */
static void lower_bytes(const narrow *n, unsigned to, unsigned from) {
  if (!n->is_signed) {
    v(n, X86_vpandd, to, from, hg_x86_constant(n->e, 0x00ff00ffu, 0));
    return;
  }
  shift(n, X86_vpsllw_imm, to, from, 8);
  shift(n, X86_vpsraw_imm, to, to, 8);
}

/* High halves of products of bytes, as words as above. */
static void high_of_bytes(const narrow *n) {
  unsigned s0 = scratch(n, 0), s1 = scratch(n, 1), s2 = scratch(n, 2), s3 = scratch(n, 3);
  unsigned a = source(n, 0, s0), b = source(n, 1, s1), upper = n->is_signed ? X86_vpsraw_imm : X86_vpsrlw_imm;
  lower_bytes(n, s2, a);
  lower_bytes(n, s3, b);
  v(n, X86_vpmullw, s2, s2, x86_reg(s3));
  shift(n, X86_vpsrlw_imm, s2, s2, 8);
  shift(n, upper, s0, a, 8);
  shift(n, upper, s1, b, 8);
  v(n, X86_vpmullw, s0, s0, x86_reg(s1));
  v(n, X86_vpandd, s0, s0, hg_x86_constant(n->e, 0xff00ff00u, 0));
  v(n, X86_vpord, n->to, s0, x86_reg(s2));
  set(n, n->to);
}

static void write_multiply_high(const narrow *n) {
  unsigned op = n->is_shorter ? X86_vpmullw : n->is_signed ? X86_vpmulhw : X86_vpmulhuw;
  if (n->bytes == 1) {
    high_of_bytes(n);
    return;
  }
  v(n, op, n->to, source(n, 0, scratch(n, 0)), operand(n, 1, scratch(n, 1)));
  if (n->is_shorter) shift(n, n->is_signed ? X86_vpsraw_imm : X86_vpsrlw_imm, n->to, n->to, 8);
  set(n, n->to);
}

/* Shifts by a constant. Bytes are shifted as words, and the bits that come from their neighbours are cleared; the sign
 * bit moves along as m, and (a ^ m) - m puts it into all bits above. */
static void write_shift(const narrow *n) {
  uint64_t count = 0;
  (void)hg_x86_constant_bits(n->e, n->e->insn->s[1], &count);
  count &= atlas_type_bits((atlas_type)n->type) - 1u;
  int is_left = n->e->insn->op == ATLAS_OP_shl, has_sign = n->is_signed && !is_left;
  unsigned op = is_left ? X86_vpsllw_imm : has_sign && n->bytes == 2 ? X86_vpsraw_imm : X86_vpsrlw_imm;
  shift(n, op, n->to, source(n, 0, scratch(n, 0)), (unsigned)count);
  if (n->bytes == 1) {
    v(n, X86_vpandd, n->to, n->to, number(n, is_left ? UINT64_C(0xff) << count : 0xffu >> count));
    if (has_sign) {
      x86_rm sign = element(n, number(n, 0x80u >> count), scratch(n, 1));
      v(n, X86_vpxord, n->to, n->to, sign);
      v(n, X86_vpsubb, n->to, n->to, sign);
    }
  }
  if (is_left) set_extended(n, n->to);
  else set(n, n->to);
}

/* Between types with the same bits in an element, once they are extended. */
static void write_same(const narrow *n) { set_extended(n, source(n, 0, n->to)); }

static void write_to_bool(const narrow *n) {
  v(n, sized(n, X86_vpminub), n->to, source(n, 0, scratch(n, 0)), element(n, number(n, 1), scratch(n, 1)));
  set(n, n->to);
}

/* ---- counts of bits ---------------------------------------------------------------------------------------------- */

/* `to` = entries of a table of 16 bytes, selected by the upper or the lower half of each byte. */
static void look_up(const narrow *n, unsigned to, unsigned from, int is_upper, uint64_t low, uint64_t high) {
  unsigned table = scratch(n, 0);
  if (is_upper) shift(n, X86_vpsrlw_imm, to, from, 4);
  v(n, X86_vpandd, to, is_upper ? to : from, hg_x86_constant(n->e, 0x0f0f0f0fu, 0));
  v(n, X86_vload, table, 0, hg_x86_bytes_constant(n->e, low, high));
  v(n, X86_vpshufb, to, table, x86_reg(to));
}

static void write_population(const narrow *n) {
  const uint64_t low = UINT64_C(0x0302020102010100), high = UINT64_C(0x0403030203020201);
  const uint64_t ones = UINT64_C(0x0101010101010101);
  unsigned s2 = scratch(n, 2), s3 = scratch(n, 3), from = source(n, 0, scratch(n, 1));
  look_up(n, s2, from, 0, low, high);
  look_up(n, s3, from, 1, low, high);
  v(n, X86_vpaddb, n->to, s2, x86_reg(s3));
  if (n->bytes == 2) v(n, X86_vpmaddubsw, n->to, n->to, hg_x86_bytes_constant(n->e, ones, ones));
  set(n, n->to);
}

/* Counts the zeros above the highest set bit, or below the lowest. For each byte: the minimum of what its halves give,
 * where 0 gives 16, or 8 for elements of one byte; then for both bytes of a word, with 8 added for the farther one. */
static void write_zeros(const narrow *n) {
  int is_clz = n->e->insn->op == ATLAS_OP_clz;
  uint64_t none = n->bytes == 1 ? 8 : 16;
  const uint64_t near_low = is_clz ? UINT64_C(0x0101010102020300) : UINT64_C(0x0001000200010000);
  const uint64_t near_high = is_clz ? 0 : UINT64_C(0x0001000200010003);
  const uint64_t far = UINT64_C(0x0404040404040404); /* added to what the farther half gives */
  unsigned s2 = scratch(n, 2), s3 = scratch(n, 3), from = source(n, 0, scratch(n, 1));
  look_up(n, s2, from, is_clz, near_low | none, near_high);
  look_up(n, s3, from, !is_clz, ((near_low + far) & ~UINT64_C(0xff)) | none, near_high + far);
  v(n, X86_vpminub, s2, s2, x86_reg(s3));
  if (n->bytes == 2) {
    unsigned farther = is_clz ? s2 : s3;
    shift(n, X86_vpsrlw_imm, s3, s2, 8);
    v(n, X86_vpandd, s2, s2, hg_x86_constant(n->e, 0x00ff00ffu, 0));
    v(n, X86_vpaddw, farther, farther, element(n, number(n, 8), scratch(n, 0)));
    v(n, X86_vpminuw, s2, s2, x86_reg(s3));
  }
  set(n, s2);
}

static void write_reverse(const narrow *n) {
  unsigned s2 = scratch(n, 2), s3 = scratch(n, 3), from = source(n, 0, scratch(n, 1));
  look_up(n, s2, from, 0, UINT64_C(0xe060a020c0408000), UINT64_C(0xf070b030d0509010));
  look_up(n, s3, from, 1, UINT64_C(0x0e060a020c040800), UINT64_C(0x0f070b030d050901));
  v(n, X86_vpord, n->to, s2, x86_reg(s3));
  if (n->bytes == 2)
    v(n, X86_vpshufb, n->to, n->to,
      hg_x86_bytes_constant(n->e, UINT64_C(0x0607040502030001), UINT64_C(0x0e0f0c0d0a0b0809)));
  set(n, n->to);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static x86_rm place_of(const narrow *n) {
  const vector_insn *insn = n->e->insn;
  unsigned bytes = atlas_bytes((atlas_type)n->type);
  uint32_t lanes = n->e->vector_bytes / n->bytes;
  return x86_indexed(hg_x86_base(n->e), X86_LANE, bytes - 1,
                     (int32_t)(((int64_t)insn->bits + n->copy * lanes) * bytes));
}

static void write_load(const narrow *n) {
  unsigned op = !n->is_shorter ? X86_vload : n->is_signed ? X86_vpmovsxbw : X86_vpmovzxbw;
  v(n, op, n->to, 0, place_of(n));
  if (n->type == ATLAS_bool)
    v(n, sized(n, X86_vpminub), n->to, n->to, element(n, number(n, 1), scratch(n, 1)));
  set(n, n->to);
}

static void write_store(const narrow *n) {
  enum { FIRST_AND_THIRD = 0x08 }; /* of four */
  const vector_insn *insn = n->e->insn;
  unsigned s1 = scratch(n, 1), from = source(n, insn->mode == ATLAS_ADDRESS_INDEXED, scratch(n, 0));
  if (!n->is_shorter) v(n, X86_vstore, from, 0, place_of(n));
  else if (n->e->width == 2) v(n, X86_vpmovwb, from, 0, place_of(n));
  else {
    v(n, X86_vpandd, s1, from, number(n, 0xff));
    v(n, X86_vpackuswb, s1, s1, x86_reg(s1));
    hg_x86_vi(n->e, X86_vpermq_imm, s1, 0, x86_reg(s1), FIRST_AND_THIRD);
    hg_x86_x(n->e, X86_vstore, s1, 0, place_of(n));
  }
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

static int is_narrow_type(uint8_t type) {
  return type < ATLAS_TYPE_COUNT && atlas_bytes((atlas_type)type) <= 2;
}

static int is_narrow_integer(uint8_t type) { return is_narrow_type(type) && atlas_is_integer((atlas_type)type); }

static writer *writer_of_memory(const vector_insn *insn) {
  int64_t displacement = (int64_t)insn->bits;
  if (!(insn->flags & VECTOR_LANE)) return NULL;
  if (displacement > NATIVE_GREATEST_DISPLACEMENT || displacement < -NATIVE_GREATEST_DISPLACEMENT) return NULL;
  return atlas_op_flags(insn->op) & ATLAS_STORE ? write_store : write_load;
}

static writer *writer_of_convert(const vector_insn *insn) {
  uint8_t to = insn->type, from = insn->type2;
  if (from != ATLAS_bool && !is_narrow_integer(from)) return NULL;
  if (to == ATLAS_bool) return write_to_bool;
  return is_narrow_integer(to) ? write_same : NULL;
}

static writer *writer_of_float(const vector_insn *insn) {
  switch (insn->op) {
  case ATLAS_OP_neg: return write_flip_sign;
  case ATLAS_OP_abs: return write_clear_sign;
  case ATLAS_OP_copysign: return write_copy_sign;
  default: return NULL;
  }
}

static writer *writer_of_integer(const x86_emit *e, const vector_insn *insn, int is_shorter) {
  uint64_t count;
  switch (insn->op) {
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_min:
  case ATLAS_OP_max: return write_plain;
  case ATLAS_OP_and:
  case ATLAS_OP_or:
  case ATLAS_OP_xor: return write_bits;
  case ATLAS_OP_not: return write_not;
  case ATLAS_OP_neg: return write_negate;
  case ATLAS_OP_abs: return write_absolute;
  case ATLAS_OP_sign: return write_sign;
  case ATLAS_OP_mul: return write_multiply;
  case ATLAS_OP_mad: return write_multiply_add;
  case ATLAS_OP_mulhi: return write_multiply_high;
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: return hg_x86_constant_bits(e, insn->s[1], &count) ? write_shift : NULL;
  case ATLAS_OP_popc: return is_shorter ? NULL : write_population;
  case ATLAS_OP_clz:
  case ATLAS_OP_ctz: return is_shorter ? NULL : write_zeros;
  case ATLAS_OP_brev: return is_shorter ? NULL : write_reverse;
  default: return NULL;
  }
}

static writer *writer_of(const x86_emit *e, const vector_insn *insn, unsigned bytes) {
  if (insn->mask != VECTOR_ALL || !vector_is_primitive(insn->op) || !is_narrow_type(insn->type)) return NULL;
  if (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) return writer_of_memory(insn);
  if (insn->op == ATLAS_OP_cvt) return writer_of_convert(insn);
  if (insn->op == ATLAS_OP_bitcast) return write_same;
  if (atlas_is_integer((atlas_type)insn->type))
    return writer_of_integer(e, insn, atlas_bytes((atlas_type)insn->type) < bytes);
  return writer_of_float(insn);
}

unsigned hg_x86_narrow_bytes(const x86_emit *e) {
  const hg_vector *vector = e->b->vector;
  unsigned bytes = 1;
  if (e->b->steps.count > 1 || e->b->slices > 0 || vector->loses_lanes) return 0;
  for (uint32_t i = 0; i < vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(vector, i);
    if (insn->op == VECTOR_LABEL || insn->op == VECTOR_END) continue;
    if (!is_narrow_type(insn->type)) return 0;
    if (atlas_bytes((atlas_type)insn->type) == 2) bytes = 2;
    if (insn->op == ATLAS_OP_cvt && is_narrow_type(insn->type2) && atlas_bytes((atlas_type)insn->type2) == 2) bytes = 2;
  }
  for (uint32_t i = 0; i < vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(vector, i);
    if (insn->op != VECTOR_LABEL && insn->op != VECTOR_END && writer_of(e, insn, bytes) == NULL) return 0;
  }
  return bytes;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static void write_body(x86_emit *e, unsigned bytes) {
  const hg_vector *vector = e->b->vector;
  for (uint32_t i = 0; i < vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(vector, i);
    if (insn->op == VECTOR_LABEL || insn->op == VECTOR_END) continue;
    e->insn = insn;
    e->index = i;
    narrow n = {.e = e, .bytes = bytes, .type = insn->type};
    n.is_signed = atlas_kind((atlas_type)insn->type) == ATLAS_KIND_SINT;
    n.is_shorter = atlas_bytes((atlas_type)insn->type) < bytes;
    uint32_t copies = insn->d == VECTOR_NONE ? e->copies : hg_x86_copies(e, insn->d);
    for (n.copy = 0; n.copy < copies; n.copy++) {
      n.to = insn->d == VECTOR_NONE ? scratch(&n, 0) : hg_x86_result_register(e, n.copy, 0, scratch(&n, 0));
      writer_of(e, insn, bytes)(&n);
    }
  }
}

/* rcx: the last lane that such a group can begin with; nothing else uses rcx here. */
void hg_x86_write_narrow(x86_emit *e, unsigned bytes, uint32_t tail) {
  x86_asm *a = &e->a;
  uint32_t top = hg_x86_new_label(a), done = hg_x86_new_label(a);
  uint32_t lanes = e->copies * (e->vector_bytes / bytes);
  hg_x86_load(a, 1, X86_RCX, hg_x86_frame(X86_LAST_GROUP));
  hg_x86_alu_imm(a, X86_SUB, 1, x86_reg(X86_RCX), (int32_t)(lanes - e->copies * e->lanes));
  hg_x86_alu_rm(a, X86_CMP, 1, X86_LANE, x86_reg(X86_RCX));
  hg_x86_jump_if(a, X86_GREATER, done);
  hg_x86_align(a, X86_LOOP_ALIGNMENT, X86_NOP);
  hg_x86_place(a, top);
  write_body(e, bytes);
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_LANE), (int32_t)lanes);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_LANE, x86_reg(X86_RCX));
  hg_x86_jump_if(a, X86_LESS_EQUAL, top);
  hg_x86_place(a, done);
  hg_x86_alu_rm(a, X86_CMP, 1, X86_LANE, hg_x86_frame(X86_LAST_GROUP));
  hg_x86_jump_if(a, X86_GREATER, tail);
}
