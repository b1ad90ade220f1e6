/* convert.c - conversions, bit casts, coordinates.
 *
 * Small floats are converted from and to f32 only (hg_vector_value). f64 and integers of 32 and 64 bits go to small
 * floats through an f32 that is rounded to odd, which makes the second rounding exact (Boldo and Melquiond, IEEE ToC
 * 57(4), 2008). FCVTZS and FCVTZU saturate and turn NaN into 0, as the ISA defines. */
#include "atlas/tables.h"
#include "atlas/value.h"
#include "backend/cpu/arm64/emit_neon.h"
#include "compiler/machine_ops.h"

#include <stddef.h>

static int is_signed(uint8_t type) { return atlas_kind((atlas_type)type) == ATLAS_KIND_SINT; }
static unsigned bytes_of(uint8_t type) { return atlas_bytes((atlas_type)type); }

/* ---- between the vectors of a value: s[0], s[1] its parts -------------------------------------------------------- */

typedef struct vectors {
  unsigned part[2]; /* machine registers; one for 32-bit elements */
} vectors;

static vectors source_vectors(neon_emit *e, uint32_t copy) {
  uint32_t from = e->insn->s[0];
  vectors v = {{hg_neon_source(e, from, copy, 0, hg_neon_scratch(e, 0)), 0}};
  if (hg_neon_is_64(e, from)) v.part[1] = hg_neon_source(e, from, copy, 1, hg_neon_scratch(e, 1));
  return v;
}

/* Widens an f16 or bf16 to f32. */
static unsigned widen_half(neon_emit *e, uint8_t type, unsigned from, unsigned to) {
  if (type == ATLAS_bf16) hg_a64_shift(&e->a, A64_shl, A64_32B, to, from, 16);
  else {
    hg_a64(&e->a, A64_xtn, A64_16B, to, from, 0);
    hg_a64_fcvtl(&e->a, A64_32B, 0, to, to);
  }
  return to;
}

/* f32 to bf16, ties to even: adds just under one half, or one half if the last bit is odd. A NaN becomes the canonical
 * one. */
static void round_bf16(neon_emit *e, unsigned d, unsigned from) {
  unsigned odd = hg_neon_scratch(e, 4), constant = hg_neon_scratch(e, 5);
  hg_a64_shift(&e->a, A64_shl, A64_32B, odd, from, 15);
  hg_a64_shift(&e->a, A64_ushr, A64_32B, odd, odd, 31);
  hg_a64(&e->a, A64_add, A64_32B, odd, odd, from);
  hg_a64_constant(&e->a, A64_32B, constant, 0x7fff);
  hg_a64(&e->a, A64_add, A64_32B, odd, odd, constant);
  hg_a64_shift(&e->a, A64_ushr, A64_32B, odd, odd, 16);
  hg_a64_constant(&e->a, A64_32B, constant, 0x7fc0);
  hg_a64(&e->a, A64_fcmeq, A64_32B, d, from, from);
  hg_a64(&e->a, A64_bsl, 0, d, odd, constant);
}

static void narrow_half(neon_emit *e, uint8_t type, unsigned d, unsigned from) {
  if (type == ATLAS_bf16) {
    unsigned result = d == from ? hg_neon_scratch(e, 2) : d;
    round_bf16(e, result, from);
    hg_a64_move_vector(&e->a, d, result);
    return;
  }
  hg_a64_fcvtn(&e->a, A64_16B, 0, d, from);
  hg_a64_shift(&e->a, A64_ushll, A64_16B, d, d, 0);
}

/* Two vectors of f64 to one of f32, ties to even or to odd. */
static void narrow_f64(neon_emit *e, int to_odd, unsigned d, vectors v) {
  unsigned to = hg_neon_scratch(e, 3);
  for (int upper = 0; upper < 2; upper++)
    if (to_odd) hg_a64_fcvtxn(&e->a, upper, to, v.part[upper]);
    else hg_a64_fcvtn(&e->a, A64_32B, upper, to, v.part[upper]);
  hg_a64_move_vector(&e->a, d, to);
}

/* Widens the elements of one part to twice their size. */
static void widen_f32(neon_emit *e, uint32_t part, unsigned d, unsigned from) {
  hg_a64_fcvtl(&e->a, A64_64B, part == 1, d, from);
}

static void widen_integer(neon_emit *e, int sign, uint32_t part, unsigned d, unsigned from) {
  a64_op op = sign ? (part == 0 ? A64_sshll : A64_sshll2) : (part == 0 ? A64_ushll : A64_ushll2);
  hg_a64_shift(&e->a, op, A64_32B, d, from, 0);
}

/* ---- integers from integers -------------------------------------------------------------------------------------- */

static void integer_to_integer(neon_emit *e, uint32_t c, vectors v) {
  uint8_t to = e->insn->type, from = e->insn->type2;
  unsigned d;
  if (bytes_of(to) == 8) {
    for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++) {
      d = hg_neon_result_register(e, c, p);
      if (bytes_of(from) == 8) d = v.part[p];
      else widen_integer(e, is_signed(from), p, d, v.part[0]);
      hg_neon_set_result(e, c, p, d);
    }
    return;
  }
  d = hg_neon_result_register(e, c, 0);
  if (bytes_of(from) == 8) hg_a64(&e->a, A64_uzp1, A64_32B, d, v.part[0], v.part[1]); /* the low halves */
  else hg_a64_move_vector(&e->a, d, v.part[0]);
  if (bytes_of(from) > bytes_of(to) || is_signed(from) != is_signed(to)) hg_neon_narrow(e, to, d);
  hg_neon_set_result(e, c, 0, d);
}

/* ---- floats from integers ---------------------------------------------------------------------------------------- */

/* 64-bit integers to f32, element by element: only the scalar instruction rounds once. */
static void wide_integer_to_f32(neon_emit *e, vectors v, unsigned d) {
  unsigned sum = hg_neon_scratch(e, 3), one = hg_neon_scratch(e, 4);
  for (unsigned i = 0; i < NEON_LANES; i++) {
    hg_a64_extract(&e->a, A64_64B, 0, v.part[i / 2], i % 2);
    hg_a64_to_float(&e->a, is_signed(e->insn->type2), one, 0);
    hg_a64_insert_lane(&e->a, A64_32B, sum, i, one, 0);
  }
  hg_a64_move_vector(&e->a, d, sum);
}

/* Rounds the lowest 11 bits to odd from 2^53 on; smaller integers stay. The result is exact in f64. */
static void long_to_odd(neon_emit *e, int sign, unsigned d, unsigned from) {
  unsigned other = hg_neon_scratch(e, 5);
  hg_a64_constant(&e->a, A64_64B, other, 0x7ff);
  hg_a64(&e->a, A64_and, 0, d, from, other);
  hg_a64(&e->a, A64_add, A64_64B, d, d, other);
  hg_a64(&e->a, A64_orr, 0, d, d, from);
  hg_a64(&e->a, A64_bic, 0, d, d, other);
  if (sign) {
    hg_a64_constant(&e->a, A64_64B, other, UINT64_C(1) << 53);
    hg_a64(&e->a, A64_add, A64_64B, other, other, from);
  }
  hg_a64_shift(&e->a, A64_ushr, A64_64B, other, sign ? other : from, sign ? 54 : 53);
  hg_a64(&e->a, A64_cmeq0, A64_64B, other, other, 0);
  hg_a64(&e->a, A64_bit, 0, d, from, other);
}

/* Rounds f64, or an integer of 32 or 64 bits, to odd as f32, in scratch 3. */
static unsigned odd_f32(neon_emit *e, vectors v) {
  uint8_t from = e->insn->type2;
  int sign = is_signed(from);
  a64_op op = sign ? A64_scvtf : A64_ucvtf;
  vectors wide = {{hg_neon_scratch(e, 2), hg_neon_scratch(e, 0)}}; /* the second part reuses them after the first */
  if (from == ATLAS_f64) wide = v;
  else
    for (uint32_t p = 0; p < 2; p++) {
      if (bytes_of(from) == 8) long_to_odd(e, sign, wide.part[p], v.part[p]);
      else widen_integer(e, sign, p, wide.part[p], v.part[0]);
      hg_a64(&e->a, op, A64_64B, wide.part[p], wide.part[p], 0);
    }
  narrow_f64(e, 1, hg_neon_scratch(e, 3), wide);
  return hg_neon_scratch(e, 3);
}

static void integer_to_float(neon_emit *e, uint32_t c, vectors v) {
  uint8_t to = e->insn->type, from = e->insn->type2;
  a64_op op = is_signed(from) ? A64_scvtf : A64_ucvtf;
  if (to == ATLAS_f64) {
    for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++) {
      unsigned d = hg_neon_result_register(e, c, p), wide = v.part[p];
      if (bytes_of(from) < 8) widen_integer(e, is_signed(from), p, wide = d, v.part[0]);
      hg_a64(&e->a, op, A64_64B, d, wide, 0);
      hg_neon_set_result(e, c, p, d);
    }
    return;
  }
  unsigned d = hg_neon_result_register(e, c, 0);
  if (bytes_of(from) == 8) wide_integer_to_f32(e, v, d);
  else hg_a64(&e->a, op, A64_32B, d, v.part[0], 0);
  hg_neon_set_result(e, c, 0, d);
}

/* ---- integers from floats ---------------------------------------------------------------------------------------- */

/* Saturates 32-bit results of FCVTZS or FCVTZU to fewer bits. */
static void clamp(neon_emit *e, uint8_t type, unsigned d) {
  unsigned bits = atlas_type_bits((atlas_type)type), limit = hg_neon_scratch(e, 4);
  if (bits == 32) return;
  uint64_t highest = (UINT64_C(1) << (bits - (unsigned)is_signed(type))) - 1;
  hg_a64_constant(&e->a, A64_32B, limit, highest);
  hg_a64(&e->a, is_signed(type) ? A64_smin : A64_umin, A64_32B, d, d, limit);
  if (!is_signed(type)) return;
  hg_a64_constant(&e->a, A64_32B, limit, ~highest);
  hg_a64(&e->a, A64_smax, A64_32B, d, d, limit);
}

static void float_to_wide(neon_emit *e, uint32_t c, vectors v) {
  a64_op op = is_signed(e->insn->type) ? A64_fcvtzs : A64_fcvtzu;
  uint8_t from = e->insn->type2;
  for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++) {
    unsigned d = hg_neon_result_register(e, c, p), wide = v.part[p];
    if (from != ATLAS_f64) widen_f32(e, p, wide = d, v.part[0]);
    hg_a64(&e->a, op, A64_64B, d, wide, 0);
    hg_neon_set_result(e, c, p, d);
  }
}

static void float_to_integer(neon_emit *e, uint32_t c, vectors v) {
  uint8_t to = e->insn->type, from = e->insn->type2;
  int sign = is_signed(to);
  unsigned d = hg_neon_result_register(e, c, 0), work = hg_neon_scratch(e, 3);
  a64_op op = sign ? A64_fcvtzs : A64_fcvtzu;
  if (from == ATLAS_f64) {
    for (unsigned p = 0; p < 2; p++) {
      hg_a64(&e->a, op, A64_64B, hg_neon_scratch(e, 4), v.part[p], 0);
      a64_op narrow = sign ? (p == 0 ? A64_sqxtn : A64_sqxtn2) : (p == 0 ? A64_uqxtn : A64_uqxtn2);
      hg_a64(&e->a, narrow, A64_32B, work, hg_neon_scratch(e, 4), 0);
    }
    hg_a64_move_vector(&e->a, d, work);
  } else hg_a64(&e->a, op, A64_32B, d, v.part[0], 0);
  clamp(e, to, d);
  hg_neon_set_result(e, c, 0, d);
}

/* ---- floats from floats ------------------------------------------------------------------------------------------ */

static uint64_t f32_bits(double value) { return atlas_round_f64(ATLAS_f32, value); }

static unsigned constant(neon_emit *e, uint64_t bits) {
  hg_a64_constant(&e->a, A64_32B, hg_neon_scratch(e, 5), bits);
  return hg_neon_scratch(e, 5);
}

/* Rounds f32 (`from`: scratch 0, 3 or a register of a value) to f8. Adding and subtracting a number whose last place is
 * the last place of the result, or of the smallest subnormal, rounds the magnitude. The result is then exact in f16:
 * f8e5m2 is its upper half; f8e4m3 is the f16 of the value times 2^-8, shifted right by 7. Infinity and what rounds
 * above 448 become NaN in f8e4m3. The sign is restored unless the result is NaN. */
static void narrow_f8(neon_emit *e, uint8_t type, unsigned d, unsigned from) {
  int is_e4m3 = type == ATLAS_f8e4m3;
  unsigned magnitude = hg_neon_scratch(e, 1), adder = hg_neon_scratch(e, 2), is_number = hg_neon_scratch(e, 4);
  hg_a64(&e->a, A64_and, 0, magnitude, from, constant(e, 0x7fffffff));
  hg_a64(&e->a, A64_and, 0, adder, from, constant(e, 0x7f800000));
  hg_a64(&e->a, A64_fmax, A64_32B, adder, adder, constant(e, f32_bits(is_e4m3 ? 0x1p-6 : 0x1p-14)));
  hg_a64(&e->a, A64_fmin, A64_32B, adder, adder, constant(e, f32_bits(0x1p20)));
  hg_a64(&e->a, A64_fmul, A64_32B, adder, adder, constant(e, f32_bits(is_e4m3 ? 0x1.8p20 : 0x1.8p21)));
  hg_a64(&e->a, A64_fadd, A64_32B, magnitude, magnitude, adder);
  hg_a64(&e->a, A64_fsub, A64_32B, magnitude, magnitude, adder);
  if (is_e4m3) {
    hg_a64(&e->a, A64_fcmge, A64_32B, is_number, constant(e, f32_bits(448)), magnitude);
    hg_a64(&e->a, A64_fmul, A64_32B, magnitude, magnitude, constant(e, f32_bits(0x1p-8)));
  } else hg_a64(&e->a, A64_fcmeq, A64_32B, is_number, magnitude, magnitude);
  narrow_half(e, ATLAS_f16, magnitude, magnitude);
  hg_a64_shift(&e->a, A64_ushr, A64_32B, magnitude, magnitude, is_e4m3 ? 7 : 8);
  hg_a64_shift(&e->a, A64_ushr, A64_32B, adder, from, 24);
  hg_a64(&e->a, A64_and, 0, adder, adder, constant(e, 0x80));
  hg_a64(&e->a, A64_orr, 0, magnitude, magnitude, adder);
  hg_a64(&e->a, A64_bsl, 0, is_number, magnitude, constant(e, is_e4m3 ? 0x7f : 0x7e));
  hg_a64_move_vector(&e->a, d, is_number);
}

static void to_small(neon_emit *e, uint32_t c, vectors v) {
  uint8_t to = e->insn->type;
  unsigned d = hg_neon_result_register(e, c, 0), f32 = e->insn->type2 == ATLAS_f32 ? v.part[0] : odd_f32(e, v);
  if (bytes_of(to) == 2) narrow_half(e, to, d, f32);
  else narrow_f8(e, to, d, f32);
  hg_neon_set_result(e, c, 0, d);
}

/* 0x7f, which would be 480, is NaN. */
static void widen_f8e4m3(neon_emit *e, unsigned d, unsigned from) {
  unsigned value = hg_neon_scratch(e, 4), is_nan = hg_neon_scratch(e, 2), sign = hg_neon_scratch(e, 1);
  hg_a64(&e->a, A64_and, 0, value, from, constant(e, 0x7f));
  hg_a64(&e->a, A64_cmeq, A64_32B, is_nan, value, hg_neon_scratch(e, 5));
  hg_a64_shift(&e->a, A64_ushr, A64_32B, sign, from, 7);
  hg_a64_shift(&e->a, A64_shl, A64_32B, sign, sign, 31);
  hg_a64_shift(&e->a, A64_shl, A64_32B, value, value, 7);
  widen_half(e, ATLAS_f16, value, value);
  hg_a64(&e->a, A64_fmul, A64_32B, value, value, constant(e, f32_bits(0x1p8)));
  hg_a64(&e->a, A64_orr, 0, value, value, sign);
  hg_a64(&e->a, A64_bsl, 0, is_nan, constant(e, atlas_canonical_nan(ATLAS_f32)), value);
  hg_a64_move_vector(&e->a, d, is_nan);
}

static void to_f32(neon_emit *e, uint32_t c, vectors v) {
  unsigned d = hg_neon_result_register(e, c, 0);
  switch (e->insn->type2) {
  case ATLAS_f64: narrow_f64(e, 0, d, v); break;
  case ATLAS_f8e4m3: widen_f8e4m3(e, d, v.part[0]); break;
  case ATLAS_f8e5m2:
    hg_a64_shift(&e->a, A64_shl, A64_32B, hg_neon_scratch(e, 4), v.part[0], 8);
    widen_half(e, ATLAS_f16, hg_neon_scratch(e, 4), d);
    break;
  case ATLAS_f32: hg_a64_move_vector(&e->a, d, v.part[0]); break;
  default: widen_half(e, e->insn->type2, v.part[0], d); break;
  }
  hg_neon_set_result(e, c, 0, d);
}

static void to_f64(neon_emit *e, uint32_t c, vectors v) {
  int is_same = e->insn->type2 == ATLAS_f64;
  for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++) {
    unsigned d = is_same ? v.part[p] : hg_neon_result_register(e, c, p);
    if (!is_same) widen_f32(e, p, d, v.part[0]);
    hg_neon_set_result(e, c, p, d);
  }
}

/* ---- bool -------------------------------------------------------------------------------------------------------- */

/* 1 for numbers other than 0; 0 for NaN. */
static void to_bool(neon_emit *e, uint32_t c, vectors v) {
  uint8_t from = e->insn->type2;
  unsigned size = bytes_of(from) == 8 ? A64_64B : A64_32B, d = hg_neon_result_register(e, c, 0);
  unsigned is_zero[2] = {hg_neon_scratch(e, 2), hg_neon_scratch(e, 4)};
  for (unsigned p = 0; p < (size == A64_64B ? 2 : 1); p++)
    hg_a64(&e->a, atlas_is_float((atlas_type)from) ? A64_fcmeq0 : A64_cmeq0, size, is_zero[p], v.part[p], 0);
  if (size == A64_64B) hg_a64(&e->a, A64_uzp1, A64_32B, is_zero[0], is_zero[0], is_zero[1]);
  hg_a64(&e->a, A64_bic, 0, d, constant(e, 1), is_zero[0]);
  hg_neon_set_result(e, c, 0, d);
}

/* ---- bit casts --------------------------------------------------------------------------------------------------- */

static void bitcast(neon_emit *e, uint32_t c, vectors v) {
  for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++) {
    unsigned d = hg_neon_result_register(e, c, p);
    hg_a64_move_vector(&e->a, d, v.part[p]);
    if (is_signed(e->insn->type) != is_signed(e->insn->type2)) hg_neon_narrow(e, e->insn->type, d);
    hg_neon_set_result(e, c, p, d);
  }
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

static int is_small_float(uint8_t type) {
  return type == ATLAS_f16 || type == ATLAS_bf16 || type == ATLAS_f8e4m3 || type == ATLAS_f8e5m2;
}

/* A bool converts like a u8. */
static void convert(neon_emit *e, uint32_t c, vectors v) {
  uint8_t to = e->insn->type, from = e->insn->type2;
  int from_float = atlas_is_float((atlas_type)from) || is_small_float(from);
  if (to == ATLAS_bool) to_bool(e, c, v);
  else if (is_small_float(to)) to_small(e, c, v);
  else if (atlas_is_integer((atlas_type)to) && !from_float) integer_to_integer(e, c, v);
  else if (atlas_is_integer((atlas_type)to) && bytes_of(to) == 8) float_to_wide(e, c, v);
  else if (atlas_is_integer((atlas_type)to)) float_to_integer(e, c, v);
  else if (!from_float) integer_to_float(e, c, v);
  else if (to == ATLAS_f64) to_f64(e, c, v);
  else to_f32(e, c, v);
}

/* Writes a word of the context that is the same in a run of lanes: a buffer's length, the class of the block, the
 * phase, any coordinate but x. */
static void word_of_context(neon_emit *e, size_t offset) {
  int is_64 = hg_neon_is_64(e, e->insn->d);
  hg_neon_context(e, offset, is_64, hg_neon_scratch(e, 0));
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++)
    for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++) hg_neon_set_result(e, c, p, hg_neon_scratch(e, 0));
}

static size_t coordinate(unsigned which) { return offsetof(native_context, coordinate) + 8 * which; }

/* lane.x and global.x increase with the lane. */
static void x_coordinate(neon_emit *e) {
  int is_64 = hg_neon_is_64(e, e->insn->d);
  hg_a64_memory(&e->a, A64_ldr_x, 1, NEON_CONTEXT, (int64_t)coordinate((unsigned)e->insn->bits));
  hg_a64(&e->a, A64_add_x, 0, 1, 1, NEON_LANE);
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++)
    for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++) {
      unsigned d = hg_neon_result_register(e, c, p);
      hg_neon_count_up(e, d, 1, is_64, c, p, hg_neon_scratch(e, 4));
      hg_neon_set_result(e, c, p, d);
    }
}

int hg_neon_coordinate(neon_emit *e) {
  uint64_t which = e->insn->bits;
  switch ((machine_place)hg_machine_op(e->insn->op)) {
  case PLACE_len: word_of_context(e, hg_neon_place_offset(e->insn->symbol, offsetof(native_place, extent))); break;
  case PLACE_cls_get: word_of_context(e, offsetof(native_context, block_class)); break;
  case PLACE_phase_get: word_of_context(e, offsetof(native_context, phase)); break;
  case PLACE_sreg:
    if (which == ATLAS_COORD_LANE_X || which == ATLAS_COORD_GLOBAL_X) x_coordinate(e);
    else word_of_context(e, coordinate((unsigned)which));
    break;
  }
  return 1;
}

int hg_neon_bitcast(neon_emit *e) {
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++) bitcast(e, c, source_vectors(e, c));
  return 1;
}

int hg_neon_convert(neon_emit *e) {
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++) convert(e, c, source_vectors(e, c));
  return 1;
}
