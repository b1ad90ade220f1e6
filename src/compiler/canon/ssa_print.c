/* ssa_print.c - a unit as text, values in the order in which they are needed.
 *
 *   b1:                                   ; from b0 b2
 *       %4 = phi.u32 b0 %1, b2 %9
 *       %5 = set.lt.u32 %4, #10
 *       branch %5, b2, b3 */
#include "compiler/canon/ssa_print.h"

#include "base/bytes.h"
#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "ir/ssa_walk.h"

#include <stdarg.h>

typedef struct printer {
  const atlas_program *program;
  const ssa_unit *unit;
  hg_array *text;
  int names;
  hg_status status;
} printer;

static void out(printer *p, const char *format, ...) HG_PRINTF(2, 3);

static void out(printer *p, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (p->status == HG_OK && !hg_array_print(&p->unit->allocator, p->text, format, arguments))
    p->status = hg_fail_memory("a text", p->text->count);
  va_end(arguments);
}

static void symbol(printer *p, uint32_t index) {
  static const char *const kinds[] = {"?", "buffer", "scalar", "shared", "const", "table", "pool"};
  if (index & SSA_LIBRARY) {
    out(p, "library%u", (unsigned)(index & ~(uint32_t)SSA_LIBRARY));
    return;
  }
  const atlas_symbol *s = atlas_symbol_at(p->program, index);
  if (p->names) out(p, "%s", s->name);
  else out(p, "%s%u", kinds[s->kind], (unsigned)index);
}

static const char *type_name(uint8_t type) {
  return type == SSA_PREDICATE ? "pred" : atlas_type_name((atlas_type)type);
}

static void value(printer *p, uint32_t number) {
  const ssa_insn *insn = ssa_insn_at(p->unit, number);
  switch (insn->op) {
  case SSA_CONST: out(p, "#0x%llx", (unsigned long long)insn->bits); break;
  case SSA_SCALAR: symbol(p, insn->symbol); break;
  case SSA_ARGUMENT: out(p, "argument%llu", (unsigned long long)insn->bits); break;
  case SSA_SPECIAL: out(p, "%s", insn->bits == ATLAS_REG_LANE ? "lane" : "blane"); break;
  default: out(p, "%%%u", (unsigned)number); break;
  }
}

static uint32_t address(printer *p, const ssa_insn *insn, const uint32_t *args) {
  uint32_t used = 0;
  if (insn->mode == ATLAS_ADDRESS_PHI) {
    out(p, "[phi ");
    for (unsigned i = 0; i < 3; i++) {
      if (i > 0) out(p, ", ");
      if (insn->phi_registers >> i & 1) value(p, args[used++]);
      else out(p, "%llu", (unsigned long long)(i < 2 ? insn->bits >> 16 * i & 0xffff : insn->bits >> 32));
    }
    out(p, "]");
    return used;
  }
  out(p, "[");
  symbol(p, insn->symbol);
  if (insn->mode != ATLAS_ADDRESS_UNIFORM) {
    out(p, " + ");
    value(p, args[used++]);
  }
  if (insn->mode == ATLAS_ADDRESS_TABLE) {
    out(p, " : ");
    value(p, args[used++]);
  } else if (insn->bits != 0 || insn->mode == ATLAS_ADDRESS_UNIFORM) {
    out(p, " + #%lld", (long long)(int64_t)insn->bits);
  }
  out(p, "]");
  return used;
}

static void window(printer *p, const ssa_insn *insn) {
  out(p, "[");
  symbol(p, insn->symbol);
  out(p, " + #%u]", (unsigned)ssa_window_first(insn));
}

static void phi(printer *p, uint32_t number) {
  const ssa_insn *insn = ssa_insn_at(p->unit, number);
  const hg_array *predecessors = &ssa_block_at(p->unit, insn->block)->predecessors;
  out(p, "    %%%u = phi.%s", (unsigned)number, type_name(insn->type));
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    out(p, "%s b%u ", i > 0 ? "," : "", (unsigned)((const uint32_t *)predecessors->data)[i]);
    value(p, ssa_args_of(p->unit, number)[i]);
  }
  out(p, "\n");
}

static void mnemonic(printer *p, const ssa_insn *insn) {
  out(p, "%s", atlas_op_name((atlas_op)insn->op));
  if (insn->type == SSA_PREDICATE) {
    if (insn->type2 != ATLAS_NONE) out(p, ".%s", type_name(insn->type2));
    return;
  }
  if (insn->type != ATLAS_NONE) out(p, ".%s", type_name(insn->type));
  if (insn->type2 != ATLAS_NONE) out(p, ".%s", type_name(insn->type2));
}

static int has_result(const ssa_insn *insn) {
  const char *letters = atlas_op_lookup(insn->op)->operands;
  return letters[0] == 'd' || letters[0] == 'o' || letters[0] == 'p';
}

static void instruction(printer *p, uint32_t number) {
  const ssa_insn *insn = ssa_insn_at(p->unit, number);
  const uint32_t *args = ssa_args_of(p->unit, number);
  const char *separator = " ";
  uint32_t used = 0;
  if (hg_is_leaf(insn)) return; /* printed where they are used */
  if (insn->op == SSA_PHI) {
    phi(p, number);
    return;
  }
  out(p, "    ");
  if (has_result(insn)) out(p, "%%%u = ", (unsigned)number);
  mnemonic(p, insn);
  for (const char *letter = atlas_op_lookup(insn->op)->operands; *letter != '\0'; letter++) {
    if (*letter == 'd' || *letter == 'o' || *letter == 'p') continue;
    out(p, "%s", separator);
    separator = ", ";
    if (*letter == 'm') used += address(p, insn, args);
    else if (*letter == 'w') window(p, insn);
    else if (*letter == 'k') out(p, "#%u", (unsigned)ssa_window_bits(insn));
    else if (*letter == 'x') out(p, "%s", atlas_coord_name((uint32_t)insn->bits));
    else if (*letter == 'h' || *letter == 'b') symbol(p, insn->symbol);
    else value(p, args[used++]);
  }
  out(p, "\n");
}

static void end(printer *p, const ssa_block *block) {
  switch (block->end) {
  case SSA_JUMP: out(p, "    jump b%u\n", (unsigned)block->successor[0]); break;
  case SSA_BRANCH:
    out(p, "    branch ");
    value(p, block->condition);
    out(p, ", b%u, b%u\n", (unsigned)block->successor[0], (unsigned)block->successor[1]);
    break;
  case SSA_TRAP: out(p, "    trap #%u\n", (unsigned)block->trap_code); break;
  default: out(p, "    exit\n"); break;
  }
}

static void constants(printer *p, const atlas_symbol *s) {
  uint32_t size = atlas_bytes((atlas_type)s->type);
  const uint8_t *data = (const uint8_t *)p->program->constants.data + s->const_offset;
  out(p, " {");
  for (uint32_t i = 0; i < s->count; i++)
    out(p, "%s #0x%llx", i > 0 ? "," : "", (unsigned long long)hg_load_le(data + (size_t)i * size, size));
  out(p, " }");
}

static void parameters(printer *p) {
  if (p->program->block[0] != 0)
    out(p, ".block %u, %u, %u\n", (unsigned)p->program->block[0], (unsigned)p->program->block[1],
        (unsigned)p->program->block[2]);
  for (uint32_t i = 0; i < p->program->symbols.count; i++) {
    static const char *const kinds[] = {"?", ".buffer", ".scalar", ".shared", ".const", ".table", ".pool", ".local"};
    const atlas_symbol *s = atlas_symbol_at(p->program, i);
    const char *access = atlas_access_name(s->access);
    out(p, "%-8s ", kinds[s->kind]);
    symbol(p, i);
    out(p, " %s", atlas_type_name((atlas_type)s->type));
    if (access != NULL) out(p, " %s", access);
    if (s->count > 0) out(p, " %u", (unsigned)s->count);
    if (s->kind == ATLAS_SYMBOL_CONST) constants(p, s);
    out(p, "\n");
  }
}

static void print_block(printer *p, uint32_t b, const hg_array *values, uint32_t first, uint32_t end_value) {
  const ssa_block *block = ssa_block_at(p->unit, b);
  out(p, "b%u:", (unsigned)b);
  for (size_t i = 0; i < block->predecessors.count; i++)
    out(p, "%s b%u", i == 0 ? "    ; from" : "", (unsigned)((const uint32_t *)block->predecessors.data)[i]);
  out(p, "\n");
  for (uint32_t k = first; k < end_value; k++) instruction(p, ((const uint32_t *)values->data)[k]);
  end(p, block);
}

/* A pure value is printed in the block in which the walk first reaches it. */
static hg_status print_all(printer *p, const ssa_order *order) {
  const hg_allocator *allocator = &p->unit->allocator;
  hg_array values = {.element_size = sizeof(uint32_t)};
  uint32_t *ends = hg_allocate(allocator, order->count, sizeof *ends), first = 0;
  if (ends == NULL) return hg_fail_memory("a text", order->count * sizeof *ends);
  hg_status status = ir_ssa_walk_blocks(p->unit, order, &values, ends);
  parameters(p);
  for (uint32_t k = 0; k < order->count && status == HG_OK; first = ends[k++])
    print_block(p, order->block[k], &values, first, ends[k]);
  hg_array_release(allocator, &values);
  hg_release(allocator, ends);
  return status == HG_OK ? p->status : status;
}

hg_status hg_ssa_print(const atlas_program *program, const ssa_unit *unit, int names, hg_array *text) {
  printer p = {.program = program, .unit = unit, .text = text, .names = names};
  ssa_order order;
  hg_status status = ir_ssa_order_build(unit, &order);
  if (status == HG_OK) status = print_all(&p, &order);
  ir_ssa_order_release(unit, &order);
  return status;
}
