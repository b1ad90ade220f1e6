/* convert.c - cvt: at most one rounding, ties to even, float to integer saturating with NaN as 0. */
#include "backend/metal/msl/msl.h"

/* The arguments of the prelude's templates: significant bits and width. */
static const char *format_of(uint8_t type) {
  switch (type) {
  case ATLAS_f8e4m3: return "4, 8";
  case ATLAS_f8e5m2: return "3, 8";
  case ATLAS_f16: return "11, 16";
  case ATLAS_bf16: return "8, 16";
  case ATLAS_f32: return "24, 32";
  default: return "53, 64";
  }
}

static int is_integer(uint8_t type) { return atlas_is_integer((atlas_type)type) || type == ATLAS_bool; }

/* 1 if it is not zero; a NaN is not zero. */
static void to_bool(msl *m, uint32_t value, uint8_t from, const char *a) {
  if (is_integer(from)) hg_msl_set(m, value, "uint(%s != 0)", a);
  else
    hg_msl_set(m, value, "uint((%s & %s) != 0)", a,
               hg_msl_constant(from, (UINT64_C(1) << (atlas_type_bits((atlas_type)from) - 1)) - 1).text);
}

static void between_floats(msl *m, uint32_t value, uint8_t to, uint8_t from, const char *a) {
  const char *cast = hg_msl_variable_type(to);
  if (to == ATLAS_f32 && from == ATLAS_bf16) hg_msl_set(m, value, "bf16_to_f32(%s)", a);
  else if (to == ATLAS_f32 && from == ATLAS_f16) hg_msl_set(m, value, "f16_to_f32(%s)", a);
  else if (to == ATLAS_bf16 && from == ATLAS_f32) hg_msl_set(m, value, "f32_to_bf16(%s)", a);
  else if (to == ATLAS_f16 && from == ATLAS_f32) hg_msl_set(m, value, "f32_to_f16(%s)", a);
  else hg_msl_set(m, value, "%s(converted<%s, %s>(%s))", cast, format_of(from), format_of(to), a);
}

void hg_msl_convert(msl *m, uint32_t value) {
  const ssa_insn *insn = msl_insn(m, value);
  uint8_t to = insn->type, from = insn->type2;
  const char *cast = hg_msl_variable_type(to);
  msl_name a = hg_msl_argument(m, value, 0), wide = hg_msl_long(m, msl_arg(m, value, 0));
  if (to == ATLAS_bool) to_bool(m, value, from, a.text);
  else if (is_integer(to) && is_integer(from))
    hg_msl_set(m, value, "%s(%s)", cast, msl_is_wide(to) ? wide.text : a.text);
  else if (is_integer(to))
    hg_msl_set(m, value, "%s(to_integer<%s>(%s, %u, %s))", cast, format_of(from), a.text,
               (unsigned)atlas_type_bits((atlas_type)to), gpu_is_signed(to) ? "true" : "false");
  else if (is_integer(from))
    hg_msl_set(m, value, "%s(from_integer<%s>(%s, %s))", cast, format_of(to), wide.text,
               gpu_is_signed(from) ? "true" : "false");
  else between_floats(m, value, to, from, a.text);
}
