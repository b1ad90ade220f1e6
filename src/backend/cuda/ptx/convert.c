/* convert.c - cvt: at most one rounding, ties to even; conversions to integers saturate, and NaN becomes 0.
 *
 * Formats narrower than f32 are reached through f32. If the source does not fit f32, it is first rounded to odd (Boldo
 * and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008): truncated, with the last bit set if anything
 * was lost. f32 has more than two spare bits for each of these formats, so the second rounding is the only one that
 * counts. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/value.h"


static ptx_name f32_bits(uint32_t bits) { return hg_ptx_constant(ATLAS_f32, bits); }

/* ---- narrow formats to f32: exact -------------------------------------------------------------------------------- */

/* Splits an f8e4m3 into sign and magnitude; the magnitude read as an f32 is 2^120 too small. NaN is the largest
 * magnitude. */
static void from_e4m3(ptx *p, ptx_name d, ptx_name a) {
  ptx_name magnitude = hg_ptx_new(p, PTX_32), sign = hg_ptx_new(p, PTX_32), nan = hg_ptx_new(p, PTX_PREDICATE);
  PTX(p, "and.b32", magnitude, a, hg_ptx_number(0x7f));
  PTX(p, "setp.eq.u32", nan, magnitude, hg_ptx_number(0x7f));
  PTX(p, "shl.b32", magnitude, magnitude, hg_ptx_number(20));
  PTX(p, "mul.rn.f32", magnitude, magnitude, f32_bits(0x7b800000));
  PTX(p, "and.b32", sign, a, hg_ptx_number(0x80));
  PTX(p, "shl.b32", sign, sign, hg_ptx_number(24));
  PTX(p, "or.b32", d, magnitude, sign);
  PTX(p, "selp.b32", d, f32_bits(0x7fc00000), d, nan);
}

ptx_name hg_ptx_to_f32(ptx *p, uint8_t type, ptx_name narrow) {
  ptx_name d = hg_ptx_new(p, PTX_32), half = narrow;
  switch (type) {
  case ATLAS_f32: return narrow;
  case ATLAS_bf16: PTX(p, "mov.b32", d, hg_ptx_name("{%%h0, %s}", narrow.text)); break;
  case ATLAS_f8e4m3: from_e4m3(p, d, narrow); break;
  case ATLAS_f8e5m2: { /* the upper half of an f16 */
    ptx_name shifted = hg_ptx_new(p, PTX_32);
    half = hg_ptx_new(p, PTX_16);
    PTX(p, "shl.b32", shifted, narrow, hg_ptx_number(8));
    PTX(p, "cvt.u16.u32", half, shifted);
    PTX(p, "cvt.f32.f16", d, half);
    break;
  }
  default: PTX(p, "cvt.f32.f16", d, half); break;
  }
  return d;
}

/* ---- f32 to narrow formats --------------------------------------------------------------------------------------- */

/* Adds half a unit of the last bit that is kept, less one if that bit is even: cutting off the rest then rounds to
 * even. */
static ptx_name rounded_bits(ptx *p, ptx_name bits, uint32_t cut) {
  ptx_name last = hg_ptx_new(p, PTX_32), sum = hg_ptx_new(p, PTX_32);
  PTX(p, "shr.u32", last, bits, hg_ptx_number(cut));
  PTX(p, "and.b32", last, last, hg_ptx_number(1));
  PTX(p, "add.s32", sum, bits, last);
  PTX(p, "add.s32", sum, sum, hg_ptx_number((1u << (cut - 1)) - 1));
  PTX(p, "shr.u32", sum, sum, hg_ptx_number(cut));
  return sum;
}

static void to_bf16(ptx *p, ptx_name d, ptx_name a) {
  ptx_name nan = hg_ptx_new(p, PTX_PREDICATE), half = hg_ptx_new(p, PTX_16);
  PTX(p, "setp.nan.f32", nan, a, a);
  if (p->options->capability >= 90) PTX(p, "cvt.rn.bf16.f32", half, a);
  else PTX(p, "cvt.u16.u32", half, rounded_bits(p, a, 16));
  PTX(p, "selp.b16", d, hg_ptx_number(0x7fc0), half, nan);
}

static void to_f16(ptx *p, ptx_name d, ptx_name a) {
  ptx_name nan = hg_ptx_new(p, PTX_PREDICATE), half = hg_ptx_new(p, PTX_16);
  PTX(p, "setp.nan.f32", nan, a, a);
  PTX(p, "cvt.rn.f16.f32", half, a);
  PTX(p, "selp.b16", d, hg_ptx_number(0x7e00), half, nan);
}

/* A storage format: below its smallest normal number, adding the right power of two rounds to its spacing; other
 * numbers are rounded in their bits. */
static void to_f8(ptx *p, uint8_t type, ptx_name d, ptx_name a) {
  int is_e4m3 = type == ATLAS_f8e4m3;
  uint32_t fraction = is_e4m3 ? 3 : 2, bias = is_e4m3 ? 7 : 15, largest = is_e4m3 ? 0x7e : 0x7b;
  uint32_t smallest_normal = (128 - bias) << 23, magic = (128 - bias + 23 - fraction) << 23;
  ptx_name magnitude = hg_ptx_new(p, PTX_32), test = hg_ptx_new(p, PTX_PREDICATE), below = hg_ptx_new(p, PTX_32),
           sign = hg_ptx_new(p, PTX_32), signed_number = hg_ptx_new(p, PTX_32);
  PTX(p, "and.b32", magnitude, a, hg_ptx_number(0x7fffffff));
  PTX(p, "add.rn.f32", below, magnitude, f32_bits(magic));
  PTX(p, "sub.s32", below, below, hg_ptx_number(magic));
  ptx_name number = rounded_bits(p, magnitude, 23 - fraction);
  PTX(p, "sub.s32", number, number, hg_ptx_number((127 - bias) << fraction));
  PTX(p, "setp.lt.u32", test, magnitude, hg_ptx_number(smallest_normal));
  PTX(p, "selp.b32", number, below, number, test);
  PTX(p, "shr.u32", sign, a, hg_ptx_number(24));
  PTX(p, "and.b32", sign, sign, hg_ptx_number(0x80));
  PTX(p, "setp.gt.u32", test, number, hg_ptx_number(largest));
  PTX(p, "selp.b32", number, hg_ptx_number(is_e4m3 ? 0x7f : 0x7c), number, test);
  PTX(p, "or.b32", signed_number, number, sign);
  if (is_e4m3) PTX(p, "selp.b32", signed_number, number, signed_number, test); /* its NaN has no sign */
  PTX(p, "setp.nan.f32", test, a, a);
  PTX(p, "selp.b32", d, hg_ptx_number(is_e4m3 ? 0x7f : 0x7e), signed_number, test);
}

void hg_ptx_from_f32(ptx *p, uint8_t type, ptx_name d, ptx_name wide) {
  switch (type) {
  case ATLAS_f16: to_f16(p, d, wide); break;
  case ATLAS_bf16: to_bf16(p, d, wide); break;
  case ATLAS_f32: PTX(p, "mov.b32", d, wide); break;
  default: to_f8(p, type, d, wide); break;
  }
}

/* ---- rounding to odd --------------------------------------------------------------------------------------------- */

/* `source` is ".f64", ".s64", ...: the type of a; `again` reads the f32 back. */
static ptx_name round_to_odd(ptx *p, ptx_name a, const char *source, ptx_class class, const char *again,
                             const char *differs) {
  ptx_name cut = hg_ptx_new(p, PTX_32), back = hg_ptx_new(p, class), lost = hg_ptx_new(p, PTX_PREDICATE),
           last = hg_ptx_new(p, PTX_32), odd = hg_ptx_new(p, PTX_32);
  PTX(p, hg_ptx_join("cvt.rz.f32", source).text, cut, a);
  PTX(p, again, back, cut);
  PTX(p, hg_ptx_join(differs, source).text, lost, back, a);
  PTX(p, "selp.b32", last, hg_ptx_number(1), hg_ptx_number(0), lost);
  PTX(p, "or.b32", odd, cut, last);
  return odd;
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static void integer_to_integer(ptx *p, const ssa_insn *insn, ptx_name d, ptx_name a) {
  ptx_class to = hg_ptx_class_of(insn->type), from = hg_ptx_class_of(insn->type2);
  if (to == PTX_64 && from == PTX_32) PTX(p, gpu_is_signed(insn->type2) ? "cvt.s64.s32" : "cvt.u64.u32", d, a);
  else if (to == PTX_32 && from == PTX_64) PTX(p, "cvt.u32.u64", d, a);
  else PTX(p, to == PTX_64 ? "mov.b64" : "mov.b32", d, a);
  hg_ptx_normalise(p, insn->type, d);
}

/* f16 and f8 overflow far below 2^24, so rounding to f32 first loses nothing that affects them. */
static void integer_to_float(ptx *p, uint8_t to, uint8_t from, ptx_name d, ptx_name a) {
  const char *source = hg_ptx_number_suffix(from);
  int is_wide = hg_ptx_class_of(from) == PTX_64;
  if (to == ATLAS_f32 || to == ATLAS_f64) {
    ptx_name mnemonic = hg_ptx_join(to == ATLAS_f32 ? "cvt.rn.f32" : "cvt.rn.f64", source);
    PTX(p, mnemonic.text, d, a);
    return;
  }
  ptx_name wide = hg_ptx_new(p, PTX_32);
  if (to == ATLAS_bf16 && atlas_type_bits((atlas_type)from) >= 32) {
    ptx_name again = hg_ptx_name("cvt.rzi%s.f32", source);
    wide = round_to_odd(p, a, source, is_wide ? PTX_64 : PTX_32, again.text, "setp.ne");
  } else {
    PTX(p, hg_ptx_join("cvt.rn.f32", source).text, wide, a);
  }
  hg_ptx_from_f32(p, to, d, wide);
}

/* The instruction saturates. It turns NaN into 0 if source and result have 32 bits; otherwise this does. */
static void float_to_integer(ptx *p, uint8_t to, uint8_t from, ptx_name d, ptx_name a) {
  int is_f64 = from == ATLAS_f64, is_wide = hg_ptx_class_of(to) == PTX_64;
  const char *source = is_f64 ? ".f64" : ".f32", *target = hg_ptx_number_suffix(to);
  PTX(p, hg_ptx_name("cvt.rzi%s%s", target, source).text, d, a);
  if (is_f64 || is_wide) {
    ptx_name nan = hg_ptx_new(p, PTX_PREDICATE);
    PTX(p, hg_ptx_join("setp.nan", source).text, nan, a, a);
    PTX(p, is_wide ? "selp.b64" : "selp.b32", d, hg_ptx_number(0), d, nan);
  }
  if (atlas_type_bits((atlas_type)to) >= 32) return;
  int is_signed = gpu_is_signed(to);
  uint64_t highest = atlas_mask((atlas_type)to) >> is_signed;
  PTX(p, is_signed ? "min.s32" : "min.u32", d, d, hg_ptx_number(highest));
  if (is_signed) PTX(p, "max.s32", d, d, hg_ptx_name("-%llu", (unsigned long long)highest + 1));
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static void float_to_float(ptx *p, uint8_t to, uint8_t from, ptx_name d, ptx_name a) {
  if (from == ATLAS_f64 && to == ATLAS_f64) PTX(p, "mov.b64", d, a);
  else if (from == ATLAS_f64 && to == ATLAS_f32) PTX(p, "cvt.rn.f32.f64", d, a);
  else if (from == ATLAS_f64) {
    hg_ptx_from_f32(p, to, d, round_to_odd(p, a, ".f64", PTX_64, "cvt.f64.f32", "setp.neu"));
  } else {
    ptx_name wide = hg_ptx_to_f32(p, from, a);
    if (to == ATLAS_f64) PTX(p, "cvt.f64.f32", d, wide);
    else hg_ptx_from_f32(p, to, d, wide);
  }
}

/* 1 if the source is not zero; a NaN is not. */
static void to_bool(ptx *p, uint8_t from, ptx_name d, ptx_name a) {
  ptx_name test = hg_ptx_new(p, PTX_PREDICATE);
  int is_integer = atlas_is_integer((atlas_type)from) || from == ATLAS_bool;
  if (is_integer) PTX(p, hg_ptx_join("setp.ne", hg_ptx_number_suffix(from)).text, test, a, hg_ptx_number(0));
  else if (from == ATLAS_f64) PTX(p, "setp.neu.f64", test, a, hg_ptx_constant(ATLAS_f64, 0));
  else PTX(p, "setp.neu.f32", test, hg_ptx_to_f32(p, from, a), f32_bits(0));
  PTX(p, "selp.b32", d, hg_ptx_number(1), hg_ptx_number(0), test);
}

void hg_ptx_convert(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint8_t to = insn->type, from = insn->type2;
  ptx_name d = hg_ptx_register(p, value), a = hg_ptx_in_register(p, ptx_arg(p, value, 0));
  if (to == ATLAS_bool) {
    to_bool(p, from, d, a);
    return;
  }
  if (from == ATLAS_bool) {
    ptx_name truth = hg_ptx_new(p, PTX_32);
    to_bool(p, from, truth, a);
    a = truth;
    from = ATLAS_u8;
  }
  ssa_insn plain = {.type = to, .type2 = from};
  int to_integer = atlas_is_integer((atlas_type)to), from_integer = atlas_is_integer((atlas_type)from);
  if (to_integer && from_integer) integer_to_integer(p, &plain, d, a);
  else if (to_integer)
    float_to_integer(p, to, from, d, from == ATLAS_f64 ? a : hg_ptx_to_f32(p, from, a));
  else if (from_integer) integer_to_float(p, to, from, d, a);
  else if (hg_gpu_rounds_loosely(p->plan, value))
    PTX(p, to == ATLAS_f16 ? "cvt.rn.f16.f32" : "cvt.rn.bf16.f32", d, a);
  else float_to_float(p, to, from, d, a);
}
