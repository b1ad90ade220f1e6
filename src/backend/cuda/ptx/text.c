/* text.c - lines of PTX, registers and operands. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/value.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- lines ------------------------------------------------------------------------------------------------------- */

enum { LINE_BYTES = 512 };

static void append(ptx *p, hg_array *to, const char *format, va_list arguments) {
  if (!p->failed && !hg_array_print(p->allocator, to, format, arguments)) p->failed = 1;
}

void hg_ptx_append(ptx *p, hg_array *to, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append(p, to, format, arguments);
  va_end(arguments);
}

void hg_ptx_put(ptx *p, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  append(p, p->out, format, arguments);
  va_end(arguments);
}

void hg_ptx_ins(ptx *p, const char *mnemonic, const ptx_name *operand, size_t count) {
  char line[LINE_BYTES];
  size_t used = (size_t)snprintf(line, sizeof line, "\t%s", mnemonic);
  for (size_t i = 0; i < count; i++)
    used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", i == 0 ? " " : ", ", operand[i].text);
  hg_ptx_put(p, "%s;\n", line);
}

ptx_name hg_ptx_name(const char *format, ...) {
  ptx_name name;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(name.text, sizeof name.text, format, arguments);
  va_end(arguments);
  return name;
}

ptx_name hg_ptx_number(uint64_t number) {
  return number <= INT32_MAX ? hg_ptx_name("%u", (unsigned)number)
                             : hg_ptx_name("0x%llx", (unsigned long long)number);
}

ptx_name hg_ptx_join(const char *mnemonic, const char *suffix) { return hg_ptx_name("%s%s", mnemonic, suffix); }

ptx_name hg_ptx_label(ptx *p) { return hg_ptx_name("$L%u", (unsigned)p->labels++); }

void hg_ptx_place(ptx *p, ptx_name label) { hg_ptx_put(p, "%s:\n", label.text); }

/* ---- registers --------------------------------------------------------------------------------------------------- */

ptx_class hg_ptx_class_of(uint8_t type) {
  if (type == SSA_PREDICATE) return PTX_PREDICATE;
  if (type == ATLAS_f16 || type == ATLAS_bf16) return PTX_16;
  return atlas_type_bits((atlas_type)type) == 64 ? PTX_64 : PTX_32;
}

const char *hg_ptx_bits_suffix(ptx_class class) {
  static const char *const suffix[] = {".pred", ".b16", ".b32", ".b64"};
  return suffix[class];
}

const char *hg_ptx_number_suffix(uint8_t type) {
  if (type == ATLAS_f16) return ".f16";
  if (type == ATLAS_bf16) return ".bf16";
  if (type == ATLAS_f32) return ".f32";
  if (type == ATLAS_f64) return ".f64";
  if (hg_ptx_class_of(type) == PTX_64) return gpu_is_signed(type) ? ".s64" : ".u64";
  return gpu_is_signed(type) ? ".s32" : ".u32";
}

static ptx_name register_name(ptx_class class, uint32_t number) {
  return hg_ptx_name("%%%c%u", "phrd"[class], (unsigned)number);
}

ptx_name hg_ptx_new(ptx *p, ptx_class class) { return register_name(class, p->next[class]++); }

static ptx_name special(const ptx *p, const ssa_insn *insn) {
  switch (insn->bits) {
  case ATLAS_REG_LANE: return p->lane;
  case ATLAS_REG_BLOCK_LANE: return p->block_lane;
  case ATLAS_REG_BLOCK_INDEX: return p->block_index;
  default: return p->block_size;
  }
}

/* Scalars and special registers are loaded into registers before the first copy of the body. */
ptx_name hg_ptx_register(ptx *p, uint32_t value) {
  value = p->plan->home[value];
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_class class = hg_ptx_class_of(insn->type);
  if (insn->op == SSA_SPECIAL) return special(p, insn);
  uint32_t copy = insn->op == SSA_SCALAR ? 0 : p->copy;
  if (p->reg[value] == 0 || p->reg_copy[value] != copy) {
    p->reg[value] = 1 + p->next[class]++;
    if (insn->op == SSA_PHI) p->next[class]++; /* where its next value waits (flow.c) */
    p->reg_copy[value] = copy;
  }
  return register_name(class, p->reg[value] - 1);
}

void hg_ptx_lies_in(ptx *p, uint32_t value, ptx_name reg) {
  p->reg[value] = 1 + (uint32_t)strtoul(reg.text + 2, NULL, 10);
  p->reg_copy[value] = p->copy;
}

ptx_name hg_ptx_constant(uint8_t type, uint64_t bits) {
  switch (type) {
  case ATLAS_f32: return hg_ptx_name("0f%08X", (unsigned)bits);
  case ATLAS_f64: return hg_ptx_name("0d%016llX", (unsigned long long)bits);
  case ATLAS_i8:
  case ATLAS_i16:
  case ATLAS_i32: return hg_ptx_name("%d", (int)atlas_to_i64((atlas_type)type, bits));
  default: return hg_ptx_number(bits);
  }
}

ptx_name hg_ptx_kept(ptx *p, ptx_class class, ptx_name name) {
  if (name.text[0] == '%') return name;
  ptx_name d = hg_ptx_new(p, class);
  PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(class)).text, d, name);
  return d;
}

ptx_name hg_ptx_in_register(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (insn->op != SSA_CONST) return hg_ptx_register(p, value);
  return hg_ptx_kept(p, hg_ptx_class_of(insn->type), hg_ptx_constant(insn->type, insn->bits));
}

ptx_name hg_ptx_value(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (insn->op == SSA_CONST && insn->type != SSA_PREDICATE) return hg_ptx_constant(insn->type, insn->bits);
  return hg_ptx_in_register(p, value);
}

ptx_name hg_ptx_make_exact(ptx *p, uint8_t type, ptx_name value) {
  ptx_class class = hg_ptx_class_of(type);
  ptx_name nan = hg_ptx_new(p, PTX_PREDICATE), d = hg_ptx_new(p, class);
  ptx_name number = class == PTX_16 ? hg_ptx_to_f32(p, type, value) : value;
  PTX(p, class == PTX_64 ? "setp.nan.f64" : "setp.nan.f32", nan, number, number);
  PTX(p, hg_ptx_join("selp", hg_ptx_bits_suffix(class)).text, d,
      hg_ptx_constant(type, atlas_canonical_nan((atlas_type)type)), value, nan);
  return d;
}

/* Read as a signed integer, the bits of a positive NaN in f32 exceed those of every number, so one minimum suffices. */
ptx_name hg_ptx_exact(ptx *p, uint32_t value) {
  ptx_name name = hg_ptx_value(p, value);
  if (p->plan->nan[value] == GPU_NAN_LOOSE) return hg_ptx_make_exact(p, ptx_insn(p, value)->type, name);
  if (p->plan->nan[value] != GPU_NAN_POSITIVE) return name;
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "min.s32", d, name, hg_ptx_number(0x7fc00000));
  return d;
}

ptx_name hg_ptx_argument(ptx *p, uint32_t user, uint32_t i) {
  uint32_t value = ptx_arg(p, user, i);
  return hg_gpu_asks_exact(p->plan, user, i) ? hg_ptx_exact(p, value) : hg_ptx_value(p, value);
}

ptx_name hg_ptx_wide(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (insn->op == SSA_CONST) return hg_ptx_number((uint64_t)atlas_to_i64((atlas_type)insn->type, insn->bits));
  ptx_name reg = hg_ptx_register(p, value);
  if (hg_ptx_class_of(insn->type) == PTX_64) return reg;
  ptx_name d = hg_ptx_new(p, PTX_64);
  PTX(p, gpu_is_signed(insn->type) ? "cvt.s64.s32" : "cvt.u64.u32", d, reg);
  return d;
}

ptx_name hg_ptx_low(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (insn->op == SSA_CONST) return hg_ptx_number((uint32_t)atlas_to_i64((atlas_type)insn->type, insn->bits));
  ptx_name reg = hg_ptx_register(p, value);
  if (hg_ptx_class_of(insn->type) == PTX_32) return reg;
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "cvt.u32.u64", d, reg);
  return d;
}

void hg_ptx_normalise(ptx *p, uint8_t type, ptx_name reg) {
  if (type == ATLAS_i8) PTX(p, "cvt.s32.s8", reg, reg);
  if (type == ATLAS_i16) PTX(p, "cvt.s32.s16", reg, reg);
  if (type == ATLAS_u8) PTX(p, "and.b32", reg, reg, hg_ptx_number(0xff));
  if (type == ATLAS_u16) PTX(p, "and.b32", reg, reg, hg_ptx_number(0xffff));
}

ptx_name hg_ptx_field(ptx *p, ptx_class class, size_t offset) {
  ptx_name d = hg_ptx_new(p, class);
  hg_ptx_put(p, "\tld.param%s %s, [arguments+%u];\n", hg_ptx_bits_suffix(class), d.text, (unsigned)offset);
  return d;
}

ptx_name hg_ptx_special(ptx *p, const char *name) {
  ptx_name d = hg_ptx_new(p, PTX_32);
  hg_ptx_put(p, "\tmov.u32 %s, %%%s;\n", d.text, name);
  return d;
}

ptx_name hg_ptx_widened(ptx *p, ptx_name narrow) {
  ptx_name d = hg_ptx_new(p, PTX_64);
  PTX(p, "cvt.u64.u32", d, narrow);
  return d;
}
