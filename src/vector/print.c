/* print.c - vector code as text.
 *
 *     7  label                              ; block 2
 *     8  v3.u32 = add v1, #0x1              under v9, keeping the rest */
#include "vector/vector.h"

#include "base/error.h"

#include <stdarg.h>

typedef struct printer {
  const atlas_program *program;
  const hg_vector *v;
  hg_array *text;
  hg_status status;
} printer;

static void out(printer *p, const char *format, ...) HG_PRINTF(2, 3);

static void out(printer *p, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (p->status == HG_OK && !hg_array_print(&p->v->allocator, p->text, format, arguments))
    p->status = hg_fail_memory("a text", p->text->count);
  va_end(arguments);
}

static const char *op_name(uint16_t op) {
  static const char *const names[] = {
      [VECTOR_LABEL] = "label", [VECTOR_MOVE] = "move",           [VECTOR_CLEAR] = "clear",
      [VECTOR_AND] = "and",     [VECTOR_ANDNOT] = "andnot",       [VECTOR_OR] = "or",
      [VECTOR_CANON] = "canon", [VECTOR_LESSER] = "lesser",       [VECTOR_GREATER] = "greater",
      [VECTOR_JUMP] = "jump",   [VECTOR_JUMP_NONE] = "jump.none", [VECTOR_JUMP_ANY] = "jump.any",
      [VECTOR_STEP] = "step",   [VECTOR_TRAP] = "trap",           [VECTOR_END] = "end"};
  return op <= VECTOR_END ? names[op] : atlas_op_name((atlas_op)op);
}

static const char *type_name(uint8_t type) {
  return type == SSA_PREDICATE ? "pred" : type == ATLAS_NONE ? "" : atlas_type_name((atlas_type)type);
}

static void reg(printer *p, uint32_t r) {
  if (r == VECTOR_ALL) {
    out(p, "all");
    return;
  }
  const vector_reg *info = vector_reg_at(p->v, r);
  switch (info->kind) {
  case VECTOR_CONSTANT: out(p, "#0x%llx", (unsigned long long)info->bits); break;
  case VECTOR_SCALAR: out(p, "%s", atlas_symbol_at(p->program, (size_t)info->bits)->name); break;
  case VECTOR_SPECIAL: out(p, "r%u", (unsigned)info->bits); break;
  default: out(p, "v%u", (unsigned)r); break;
  }
}

static void address(printer *p, const vector_insn *insn) {
  static const struct {
    uint32_t flag;
    const char *name;
  } flags[] = {{VECTOR_CONTIGUOUS, "contiguous"}, {VECTOR_SAME, "same"}, {VECTOR_LANE, "lane"},
               {VECTOR_READ_ONLY, "read-only"}, {VECTOR_IN_BOUNDS, "in-bounds"}};
  if (insn->mode == ATLAS_ADDRESS_PHI) out(p, " [phi");
  else if (insn->symbol & SSA_LIBRARY) out(p, " [library%u", (unsigned)(insn->symbol & ~(unsigned)SSA_LIBRARY));
  else out(p, " [%s", atlas_symbol_at(p->program, insn->symbol)->name);
  out(p, " #0x%llx", (unsigned long long)insn->bits);
  for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
    if (insn->flags & flags[i].flag) out(p, " %s", flags[i].name);
  out(p, "]");
}

static void print_insn(printer *p, uint32_t i) {
  const vector_insn *insn = vector_insn_at(p->v, i);
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  out(p, "%5u  ", (unsigned)i);
  if (insn->d != VECTOR_NONE) {
    reg(p, insn->d);
    out(p, ".%s = ", type_name(insn->type));
  }
  out(p, "%s", op_name(insn->op));
  if (info != NULL && insn->d == VECTOR_NONE && insn->type != ATLAS_NONE) out(p, ".%s", type_name(insn->type));
  if (insn->type2 != ATLAS_NONE) out(p, ".%s", type_name(insn->type2));
  if (info != NULL && info->flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) address(p, insn);
  if (insn->op == ATLAS_OP_len) out(p, " %s", atlas_symbol_at(p->program, insn->symbol)->name);
  for (int s = 0; s < 4; s++)
    if (insn->s[s] != VECTOR_NONE) {
      out(p, " ");
      reg(p, insn->s[s]);
    }
  if (insn->target != VECTOR_NONE) out(p, " -> %u", (unsigned)insn->target);
  if (insn->mask != VECTOR_ALL) {
    out(p, "  under ");
    reg(p, insn->mask);
  }
  if (insn->flags & VECTOR_KEEP) out(p, ", keeping the rest");
  if (insn->op == VECTOR_LABEL && insn->bits != SSA_NONE) out(p, "  ; block %u", (unsigned)insn->bits);
  out(p, "\n");
}

hg_status hg_vector_print(const atlas_program *program, const hg_vector *v, hg_array *text) {
  printer p = {.program = program, .v = v, .text = text};
  for (uint32_t i = 0; i < v->insns.count; i++) print_insn(&p, i);
  return p.status;
}
