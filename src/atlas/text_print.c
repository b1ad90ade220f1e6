/* text_print.c - the canonical text of a program. */
#include "atlas/number.h"
#include "atlas/program.h"
#include "base/bytes.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

enum { LINE_WIDTH = 100 };

/* A growing text. After a failed allocation nothing more is appended, and the failure is reported once, at the end. */
typedef struct writer {
  const hg_allocator *allocator;
  const atlas_program *program;
  hg_array text;
  int failed;
} writer;

static void append(writer *w, const char *text, size_t length) {
  if (!w->failed && hg_array_append(w->allocator, &w->text, text, length) == NULL) w->failed = 1;
}

static void print_text(writer *w, const char *text) { append(w, text, strlen(text)); }

static void print_number(writer *w, uint64_t value) {
  char text[ATLAS_NUMBER_CHARS];
  append(w, text, atlas_number_print(ATLAS_u64, value, text));
}

static void print_constant(writer *w, atlas_type type, uint64_t bits) {
  char text[ATLAS_NUMBER_CHARS];
  print_text(w, "#");
  append(w, text, atlas_number_print(type, bits, text));
}

static void print_type(writer *w, uint32_t type) { print_text(w, atlas_type_name((atlas_type)type)); }

static void print_register(writer *w, uint32_t reg) {
  if (reg == ATLAS_REG_LANE || reg == ATLAS_REG_BLOCK_LANE) {
    print_text(w, reg == ATLAS_REG_LANE ? "lane" : "blane");
    return;
  }
  print_text(w, "r");
  print_number(w, reg);
}

static const char *symbol_name(const writer *w, uint32_t symbol) { return atlas_symbol_at(w->program, symbol)->name; }

/* ---- declarations ------------------------------------------------------------------------------------------- */

/* On one line where it fits, else as many values a line as fit. */
static void print_values(writer *w, const atlas_symbol *symbol) {
  atlas_type type = (atlas_type)symbol->type;
  const uint8_t *bytes = (const uint8_t *)w->program->constants.data + symbol->const_offset;
  uint32_t width = atlas_bytes(type);
  size_t total = 0, column = 0;
  char text[ATLAS_NUMBER_CHARS];
  for (uint32_t i = 0; i < symbol->count; i++)
    total += atlas_number_print(type, hg_load_le(bytes + i * width, width), text) + 3;
  int wrap = total + 24 > LINE_WIDTH;
  print_text(w, "{");
  for (uint32_t i = 0; i < symbol->count; i++) {
    size_t length = atlas_number_print(type, hg_load_le(bytes + i * width, width), text);
    if (wrap && (i == 0 || column + length + 3 > LINE_WIDTH)) {
      print_text(w, "\n   ");
      column = 3;
    }
    print_text(w, " #");
    append(w, text, length);
    if (i + 1 < symbol->count) print_text(w, ",");
    column += length + 3;
  }
  print_text(w, wrap ? "\n}" : " }");
}

static void print_symbol(writer *w, const atlas_symbol *symbol) {
  static const char *const directives[] = {"", ".buffer ", ".scalar ", ".shared ", ".const ", ".table ", ".pool ",
                                           ".local "};
  print_text(w, directives[symbol->kind]);
  print_text(w, symbol->name);
  if (symbol->kind != ATLAS_SYMBOL_TABLE && symbol->kind != ATLAS_SYMBOL_POOL) {
    print_text(w, " ");
    print_type(w, symbol->type);
  }
  if (symbol->kind == ATLAS_SYMBOL_SHARED || symbol->kind == ATLAS_SYMBOL_LOCAL ||
      symbol->kind == ATLAS_SYMBOL_TABLE) {
    print_text(w, " ");
    print_number(w, symbol->count);
  }
  if (symbol->kind == ATLAS_SYMBOL_BUFFER || symbol->kind == ATLAS_SYMBOL_TABLE) {
    print_text(w, " ");
    print_text(w, atlas_access_name(symbol->access));
  }
  if (symbol->kind == ATLAS_SYMBOL_CONST) {
    print_text(w, " ");
    print_values(w, symbol);
  }
  if (symbol->handle != 0) {
    print_text(w, " handle ");
    print_number(w, symbol->handle);
  }
  print_text(w, "\n");
}

static void print_block(writer *w, const uint32_t block[3], const char *end) {
  int dimensions = block[2] != 1 ? 3 : block[1] != 1 ? 2 : 1;
  for (int i = 0; i < dimensions; i++) {
    print_text(w, i == 0 ? ".block " : ", ");
    print_number(w, block[i]);
  }
  print_text(w, end);
}

static void print_declarations(writer *w) {
  const atlas_program *p = w->program;
  print_text(w, ".program ");
  print_text(w, p->name);
  print_text(w, "\n");
  if (p->block[0] != 0) print_block(w, p->block, "\n");
  if (p->default_block[0] != 0) print_block(w, p->default_block, " default\n");
  for (size_t i = 0; i < p->symbols.count; i++) print_symbol(w, atlas_symbol_at(p, i));
  for (size_t i = 0; i < p->entries.count; i++) {
    const atlas_entry *entry = atlas_entry_at(p, i);
    print_text(w, ".entry ");
    print_text(w, atlas_op_name((atlas_op)entry->op));
    print_text(w, " ");
    print_type(w, entry->type);
    print_text(w, " ");
    print_text(w, atlas_label_at(p, entry->label)->name);
    print_text(w, "\n");
  }
}

/* ---- instructions ------------------------------------------------------------------------------------------- */

static void print_phi(writer *w, const atlas_operand *o) {
  const uint8_t registers[3] = {o->reg, o->reg2, o->reg3};
  const uint64_t values[3] = {o->bits & 0xffff, o->bits >> 16 & 0xffff, o->bits >> 32};
  print_text(w, "phi ");
  for (int i = 0; i < 3; i++) {
    if (i > 0) print_text(w, ", ");
    if (o->phi_registers >> i & 1) print_register(w, registers[i]);
    else print_number(w, values[i]);
  }
}

static void print_address(writer *w, const atlas_operand *o) {
  print_text(w, "[");
  switch (o->mode) {
  case ATLAS_ADDRESS_PHI: print_phi(w, o); break;
  case ATLAS_ADDRESS_TABLE:
    print_register(w, o->reg);
    print_text(w, " : ");
    print_register(w, o->reg2);
    break;
  default:
    print_text(w, symbol_name(w, o->symbol));
    if (o->mode == ATLAS_ADDRESS_INDEXED) {
      print_text(w, " + ");
      print_register(w, o->reg);
    }
    if (o->mode == ATLAS_ADDRESS_UNIFORM || o->bits != 0) {
      print_text(w, " + ");
      print_constant(w, ATLAS_i64, o->bits);
    }
  }
  print_text(w, "]");
}

/* Type of a constant in a slot, after its letter in forms.def. */
static atlas_type constant_type(const atlas_insn *insn, char letter) {
  if (letter == 'c' || letter == 'k') return ATLAS_u32;
  return (atlas_type)(letter == 't' ? insn->type2 : insn->type);
}

static void print_operand(writer *w, const atlas_insn *insn, unsigned slot, char letter) {
  const atlas_operand *o = &insn->operand[slot];
  switch (o->kind) {
  case ATLAS_OPERAND_REG: print_register(w, o->reg); break;
  case ATLAS_OPERAND_PRED:
    print_text(w, "p");
    print_number(w, o->reg);
    break;
  case ATLAS_OPERAND_IMM: print_constant(w, constant_type(insn, letter), o->bits); break;
  case ATLAS_OPERAND_SCALAR:
  case ATLAS_OPERAND_POOL:
  case ATLAS_OPERAND_BUFFER: print_text(w, symbol_name(w, o->symbol)); break;
  case ATLAS_OPERAND_LABEL: print_text(w, atlas_label_at(w->program, (size_t)o->bits)->name); break;
  case ATLAS_OPERAND_COORD: print_text(w, atlas_coord_name((uint32_t)o->bits)); break;
  case ATLAS_OPERAND_MEM: print_address(w, o); break;
  default: print_text(w, "_"); break;
  }
}

static void print_insn(writer *w, const atlas_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  print_text(w, "    ");
  if (insn->guard != 0) {
    print_text(w, insn->guard & ATLAS_GUARD_NEGATED ? "@!p" : "@p");
    print_number(w, (insn->guard & (uint32_t)ATLAS_GUARD_PREDICATE) - 1);
    print_text(w, " ");
  }
  print_text(w, info->mnemonic);
  const uint8_t types[2] = {insn->type, insn->type2};
  for (int i = 0; i < 2 && types[i] != ATLAS_NONE; i++) {
    print_text(w, ".");
    print_type(w, types[i]);
  }
  for (unsigned i = 0; i < insn->operand_count; i++) {
    print_text(w, i == 0 ? " " : ", ");
    print_operand(w, insn, i, info->operands[i]);
  }
  print_text(w, "\n");
}

/* Labels are in the order of their targets (see assemble.h), so that one walk meets them all. */
static void print_code(writer *w) {
  const atlas_program *p = w->program;
  size_t label = 0;
  for (size_t i = 0; i <= p->insns.count; i++) {
    for (; label < p->labels.count && atlas_label_at(p, label)->target == i; label++) {
      print_text(w, atlas_label_at(p, label)->name);
      print_text(w, ":\n");
    }
    if (i < p->insns.count) print_insn(w, atlas_insn_at(p, i));
  }
}

hg_status atlas_print(const hg_allocator *allocator, const atlas_program *program, char **text, size_t *length) {
  if (program == NULL || text == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "atlas_print needs a program and a place for its text");
  hg_allocator resolved;
  *text = NULL;
  HG_TRY(hg_allocator_resolve(allocator, &resolved));
  writer w = {.allocator = &resolved, .program = program, .text = {.element_size = 1}};
  print_declarations(&w);
  print_text(&w, "\n");
  print_code(&w);
  append(&w, "", 1); /* the NUL */
  if (w.failed) {
    hg_status status = hg_fail_memory("a program's text", w.text.count);
    hg_array_release(&resolved, &w.text);
    return status;
  }
  *text = w.text.data;
  if (length != NULL) *length = w.text.count - 1;
  return HG_OK;
}
