/* text.c - lines of text, and values as expressions. */
#include "backend/metal/msl/msl.h"

#include "atlas/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- text -------------------------------------------------------------------------------------------------------- */

enum { MOST_OF_LINE = 512 };

static void append(msl *m, hg_array *to, const char *text, size_t length) {
  if (hg_array_append(m->allocator, to, text, length) == NULL) m->failed = 1;
}

static void append_list(msl *m, hg_array *to, const char *format, va_list list) {
  char line[MOST_OF_LINE];
  int length = vsnprintf(line, sizeof line, format, list);
  if (length < 0 || (size_t)length >= sizeof line) m->failed = 1;
  else append(m, to, line, (size_t)length);
}

static void indent(msl *m) {
  static const char spaces[] = "                                ";
  size_t count = 2 * (size_t)m->depth;
  append(m, &m->body, spaces, count < sizeof spaces ? count : sizeof spaces - 1);
}

#define APPEND(m, to, format)            \
  do {                                   \
    va_list list;                        \
    va_start(list, format);              \
    append_list(m, to, format, list);    \
    va_end(list);                        \
  } while (0)

void hg_msl_put(msl *m, const char *format, ...) { APPEND(m, &m->body, format); }

void hg_msl_head(msl *m, const char *format, ...) { APPEND(m, &m->head, format); }

void hg_msl_line(msl *m, const char *format, ...) {
  indent(m);
  APPEND(m, &m->body, format);
  append(m, &m->body, "\n", 1);
}

void hg_msl_open(msl *m, const char *format, ...) {
  indent(m);
  APPEND(m, &m->body, format);
  append(m, &m->body, " {\n", 3);
  m->depth++;
}

void hg_msl_scope(msl *m) {
  hg_msl_line(m, "{");
  m->depth++;
}

void hg_msl_close(msl *m, const char *tail) {
  m->depth--;
  hg_msl_line(m, "}%s", tail);
}

msl_name hg_msl_name(const char *format, ...) {
  msl_name name;
  va_list list;
  va_start(list, format);
  vsnprintf(name.text, sizeof name.text, format, list);
  va_end(list);
  return name;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

const char *hg_msl_variable_type(uint8_t type) {
  return type == SSA_PREDICATE ? "bool" : msl_is_wide(type) ? "ulong" : "uint";
}

const char *hg_msl_suffix(uint8_t type) {
  switch (type) {
  case ATLAS_f32: return "f32";
  case ATLAS_f64: return "f64";
  case ATLAS_i64: return "i64";
  case ATLAS_u64: return "u64";
  default: return gpu_is_signed(type) ? "i32" : "u32";
  }
}

static msl_name decimal_or_hexadecimal(uint64_t bits, const char *suffix) {
  return hg_msl_name(bits < 4096 ? "%llu%s" : "0x%llx%s", (unsigned long long)bits, suffix);
}

msl_name hg_msl_constant(uint8_t type, uint64_t bits) {
  if (type == SSA_PREDICATE) return hg_msl_name(bits ? "true" : "false");
  if (msl_is_wide(type)) return decimal_or_hexadecimal(bits, "ul");
  if (gpu_is_signed(type)) bits = (uint32_t)atlas_to_i64((atlas_type)type, bits);
  return decimal_or_hexadecimal(bits, "u");
}

static msl_name special(const ssa_insn *insn) {
  switch (insn->bits) {
  case ATLAS_REG_LANE: return hg_msl_name("lane");
  case ATLAS_REG_BLOCK_LANE: return hg_msl_name("block_lane");
  case ATLAS_REG_BLOCK_INDEX: return hg_msl_name("uint(block_x)");
  default: return hg_msl_name("a.block_size_x");
  }
}

msl_name hg_msl_value(const msl *m, uint32_t value) {
  const ssa_insn *insn = msl_insn(m, value);
  if (insn->op == SSA_CONST) return hg_msl_constant(insn->type, insn->bits);
  if (insn->op == SSA_SPECIAL) return special(insn);
  if (insn->op == SSA_SCALAR) return hg_msl_name("s%u", (unsigned)insn->symbol);
  return hg_msl_name("v%u", (unsigned)value);
}

msl_name hg_msl_argument(const msl *m, uint32_t user, unsigned i) { return hg_msl_value(m, msl_arg(m, user, i)); }

msl_name hg_msl_signed(const msl *m, uint32_t value) {
  uint8_t type = msl_insn(m, value)->type;
  msl_name name = hg_msl_value(m, value);
  if (!gpu_is_signed(type)) return name;
  return hg_msl_name(msl_is_wide(type) ? "long(%s)" : "int(%s)", name.text);
}

msl_name hg_msl_long(const msl *m, uint32_t value) {
  const ssa_insn *insn = msl_insn(m, value);
  if (insn->op == SSA_CONST)
    return hg_msl_constant(ATLAS_u64, (uint64_t)atlas_to_i64((atlas_type)insn->type, insn->bits));
  if (msl_is_wide(insn->type)) return hg_msl_value(m, value);
  return hg_msl_name(gpu_is_signed(insn->type) ? "ulong(long(int(%s)))" : "ulong(%s)", hg_msl_value(m, value).text);
}

static const char *range_of(uint8_t type) {
  switch (type) {
  case ATLAS_i8: return "as_i8(";
  case ATLAS_i16: return "as_i16(";
  case ATLAS_u8: return "as_u8(";
  case ATLAS_u16: return "as_u16(";
  default: return "";
  }
}

void hg_msl_set(msl *m, uint32_t value, const char *format, ...) {
  const char *range = range_of(msl_insn(m, value)->type);
  indent(m);
  hg_msl_put(m, "v%u = %s", (unsigned)value, range);
  APPEND(m, &m->body, format);
  hg_msl_put(m, range[0] != '\0' ? ");\n" : ";\n");
}
