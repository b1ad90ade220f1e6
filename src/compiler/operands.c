/* operands.c - what the text takes from registers only gets a value of its own before each use (out_of_ssa.h): indices
 * that are scalars or constants out of range, constants of storage-only types, constant predicates. They are written
 * where they are used, so that they take a register for no longer than that. The same is done to comparisons where
 * predicates are short: then a comparison is repeated before each use, from values that have registers enough. */
#include "compiler/out_of_ssa.h"

#include "atlas/value.h"
#include "base/error.h"
#include "compiler/aliasing.h"
#include "compiler/schedule.h"

typedef struct filler {
  const atlas_program *program;
  ssa_unit *unit;
  const ssa_order *order;
  int recompute;
  uint32_t block; /* whose list is being written anew */
} filler;

static hg_status out_of_memory(void) { return hg_fail_memory("operands", sizeof(ssa_insn)); }

static int is_recomputed(const filler *f, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(f->unit, value);
  return f->recompute && insn->type == SSA_PREDICATE && atlas_is_comparison(insn->op);
}

static uint32_t constant(const filler *f, uint8_t type, uint64_t bits) {
  const ssa_insn insn = {.op = SSA_CONST, .type = type, .bits = bits, .insn = SSA_NONE};
  return ir_ssa_add(f->unit, &insn, 0);
}

/* A new value at the end of the list, with these arguments. */
static hg_status append(const filler *f, const ssa_insn *insn, const uint32_t *args, uint32_t count, uint32_t *out) {
  for (uint32_t i = 0; i < count; i++)
    if (args[i] == SSA_NONE) return out_of_memory();
  *out = ir_ssa_add(f->unit, insn, count);
  if (*out == SSA_NONE) return out_of_memory();
  for (uint32_t i = 0; i < count; i++) ssa_args_of(f->unit, *out)[i] = args[i];
  ir_ssa_append_effect(f->unit, f->block, *out);
  return HG_OK;
}

/* 0 = 0 is true and 0 < 0 is false: the canonical form finds the constant again. */
static hg_status append_predicate(const filler *f, uint64_t bits, uint32_t *out) {
  const ssa_insn test = {.op = bits ? ATLAS_OP_set_eq : ATLAS_OP_set_lt,
                         .type = SSA_PREDICATE,
                         .type2 = ATLAS_u32,
                         .insn = SSA_NONE};
  uint32_t zero = constant(f, ATLAS_u32, 0);
  return append(f, &test, (uint32_t[]){zero, zero}, 2, out);
}

/* Storage-only types have no constants: it is converted from one that is exactly that value. */
static hg_status append_storage(const filler *f, uint8_t type, uint64_t bits, uint32_t *out) {
  const ssa_insn convert = {.op = ATLAS_OP_cvt, .type = type, .type2 = ATLAS_f32, .insn = SSA_NONE};
  uint32_t exact = constant(f, ATLAS_f32, atlas_convert(ATLAS_f32, (atlas_type)type, bits));
  return append(f, &convert, &exact, 1, out);
}

/* The value in a register. */
static hg_status append_copy(const filler *f, uint32_t value, uint32_t *out) {
  const ssa_insn of = *ssa_insn_at(f->unit, value);
  if (of.op == SSA_CONST && of.type == SSA_PREDICATE) return append_predicate(f, of.bits, out);
  if (of.op == SSA_CONST && atlas_kind((atlas_type)of.type) == ATLAS_KIND_STORAGE)
    return append_storage(f, of.type, of.bits, out);
  const ssa_insn move = {.op = ATLAS_OP_mov, .type = of.type, .insn = SSA_NONE};
  return append(f, &move, &value, 1, out);
}

static hg_status append_again(const filler *f, uint32_t value, uint32_t *out) {
  const ssa_insn of = *ssa_insn_at(f->unit, value);
  const uint32_t args[2] = {ssa_args_of(f->unit, value)[0], ssa_args_of(f->unit, value)[1]};
  return append(f, &of, args, 2, out);
}

/* How many of the arguments are registers of the address. */
static uint32_t index_count(const ssa_insn *insn) {
  uint32_t flags = insn->op < SSA_DELETED ? atlas_op_lookup(insn->op)->flags : 0;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return 0;
  return hg_address_args(insn);
}

static int takes_register(const ssa_insn *arg, int is_index) {
  if (arg->op == SSA_SCALAR) return is_index;
  return arg->op == SSA_CONST && (is_index || arg->type == SSA_PREDICATE ||
                                  atlas_kind((atlas_type)arg->type) == ATLAS_KIND_STORAGE);
}

/* A constant index that is known to be out of range cannot be written in the address; the canonical form takes it there
 * from a register. */
static int is_out_of_range(const filler *f, const ssa_insn *insn) {
  uint32_t flags = insn->op < SSA_DELETED ? atlas_op_lookup(insn->op)->flags : 0;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) || insn->mode != ATLAS_ADDRESS_UNIFORM) return 0;
  const atlas_symbol *s = atlas_symbol_at(f->program, insn->symbol);
  return (s->kind == ATLAS_SYMBOL_SHARED || s->kind == ATLAS_SYMBOL_CONST) && insn->bits >= s->count;
}

static hg_status index_by_register(const filler *f, uint32_t value) {
  ssa_insn *insn = ssa_insn_at(f->unit, value);
  uint32_t first = (uint32_t)f->unit->args.count, count = insn->arg_count;
  uint64_t index = insn->bits;
  if (hg_array_append(&f->unit->allocator, &f->unit->args, NULL, count + 1) == NULL) return out_of_memory();
  for (uint32_t i = 0; i < count; i++)
    ((uint32_t *)f->unit->args.data)[first + 1 + i] = ssa_args_of(f->unit, value)[i];
  insn->args = first;
  insn->arg_count = count + 1;
  insn->mode = ATLAS_ADDRESS_INDEXED;
  insn->bits = 0;
  uint32_t at = constant(f, ATLAS_i64, index);
  ssa_args_of(f->unit, value)[0] = at;
  return at != SSA_NONE ? HG_OK : out_of_memory();
}

static hg_status fill_insn(const filler *f, uint32_t value) {
  if (is_out_of_range(f, ssa_insn_at(f->unit, value))) HG_TRY(index_by_register(f, value));
  uint32_t indices = index_count(ssa_insn_at(f->unit, value));
  for (uint32_t i = 0; i < ssa_insn_at(f->unit, value)->arg_count; i++) {
    uint32_t arg = ssa_args_of(f->unit, value)[i];
    if (is_recomputed(f, arg)) HG_TRY(append_again(f, arg, &arg));
    else if (takes_register(ssa_insn_at(f->unit, arg), i < indices)) HG_TRY(append_copy(f, arg, &arg));
    ssa_args_of(f->unit, value)[i] = arg;
  }
  ir_ssa_append_effect(f->unit, f->block, value);
  return HG_OK;
}

/* What phis get along the edge from this block, which leads nowhere else. Constants are moved by the move itself. */
static hg_status fill_edge(const filler *f, uint32_t successor) {
  uint32_t at = f->order->edge[2 * (size_t)f->block];
  for (uint32_t phi = ssa_block_at(f->unit, successor)->first_phi; phi != SSA_NONE;
       phi = ssa_insn_at(f->unit, phi)->next) {
    uint32_t arg = ssa_args_of(f->unit, phi)[at];
    const ssa_insn *insn = ssa_insn_at(f->unit, arg);
    if (is_recomputed(f, arg)) HG_TRY(append_again(f, arg, &arg));
    else if (hg_is_leaf(insn) && takes_register(insn, 0)) HG_TRY(append_copy(f, arg, &arg));
    ssa_args_of(f->unit, phi)[at] = arg;
  }
  return HG_OK;
}

static hg_status fill_block(filler *f, uint32_t b) {
  uint32_t value = ssa_block_at(f->unit, b)->first_effect;
  f->block = b;
  ssa_block_at(f->unit, b)->first_effect = ssa_block_at(f->unit, b)->last_effect = SSA_NONE;
  for (uint32_t next; value != SSA_NONE; value = next) {
    next = ssa_insn_at(f->unit, value)->next;
    if (!is_recomputed(f, value)) HG_TRY(fill_insn(f, value));
  }
  uint32_t condition = ssa_block_at(f->unit, b)->condition;
  if (condition != SSA_NONE && is_recomputed(f, condition)) HG_TRY(append_again(f, condition, &condition));
  ssa_block_at(f->unit, b)->condition = condition;
  if (ssa_block_at(f->unit, b)->end == SSA_JUMP) HG_TRY(fill_edge(f, ssa_block_at(f->unit, b)->successor[0]));
  return HG_OK;
}

hg_status hg_fill_operands(const atlas_program *program, ssa_unit *unit, const ssa_order *order, int recompute) {
  filler f = {.program = program, .unit = unit, .order = order, .recompute = recompute};
  for (uint32_t k = 0; k < order->count; k++) HG_TRY(fill_block(&f, order->block[k]));
  return HG_OK;
}
