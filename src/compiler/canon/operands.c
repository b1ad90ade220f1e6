/* operands.c - operands that an instruction takes from a register only are materialised before each use (out_of_ssa.h):
 * indices that are scalars or constants out of range, constants of storage-only types, constant predicates. Each is
 * written right before its use, so that its live range is short. Where predicate registers are short, comparisons are
 * rematerialised before each use as well: their operands live in general registers, of which there are more. */
#include "compiler/canon/out_of_ssa.h"

#include "atlas/value.h"
#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"

typedef struct materialiser {
  const atlas_program *program;
  ssa_unit *unit;
  const ssa_order *order;
  int recompute;
  uint32_t block; /* the block whose list is being rewritten */
} materialiser;

static hg_status out_of_memory(void) { return hg_fail_memory("operands", sizeof(ssa_insn)); }

static int is_recomputed(const materialiser *f, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(f->unit, value);
  return f->recompute && insn->type == SSA_PREDICATE && atlas_is_comparison(insn->op);
}

static uint32_t add_constant(const materialiser *f, uint8_t type, uint64_t bits) {
  const ssa_insn insn = {.op = SSA_CONST, .type = type, .bits = bits, .insn = SSA_NONE};
  return ir_ssa_add(f->unit, &insn, 0);
}

/* Appends a new value with these arguments to the block's list. */
static hg_status append(const materialiser *f, const ssa_insn *insn, const uint32_t *args, uint32_t count,
                        uint32_t *out) {
  for (uint32_t i = 0; i < count; i++)
    if (args[i] == SSA_NONE) return out_of_memory();
  *out = ir_ssa_add(f->unit, insn, count);
  if (*out == SSA_NONE) return out_of_memory();
  for (uint32_t i = 0; i < count; i++) ssa_args_of(f->unit, *out)[i] = args[i];
  ir_ssa_append_effect(f->unit, f->block, *out);
  return HG_OK;
}

/* 0 = 0 is true and 0 < 0 is false: the canonical form folds the comparison to the constant again. */
static hg_status append_predicate(const materialiser *f, uint64_t bits, uint32_t *out) {
  const ssa_insn test = {.op = bits ? ATLAS_OP_set_eq : ATLAS_OP_set_lt,
                         .type = SSA_PREDICATE,
                         .type2 = ATLAS_u32,
                         .insn = SSA_NONE};
  uint32_t zero = add_constant(f, ATLAS_u32, 0);
  return append(f, &test, (uint32_t[]){zero, zero}, 2, out);
}

/* Storage-only types have no immediates: the value is converted from an f32 that is exactly equal. */
static hg_status append_storage_constant(const materialiser *f, uint8_t type, uint64_t bits, uint32_t *out) {
  const ssa_insn convert = {.op = ATLAS_OP_cvt, .type = type, .type2 = ATLAS_f32, .insn = SSA_NONE};
  uint32_t exact = add_constant(f, ATLAS_f32, atlas_convert(ATLAS_f32, (atlas_type)type, bits));
  return append(f, &convert, &exact, 1, out);
}

/* Appends what puts the value into a register. */
static hg_status append_materialised(const materialiser *f, uint32_t value, uint32_t *out) {
  const ssa_insn of = *ssa_insn_at(f->unit, value);
  if (of.op == SSA_CONST && of.type == SSA_PREDICATE) return append_predicate(f, of.bits, out);
  if (of.op == SSA_CONST && atlas_kind((atlas_type)of.type) == ATLAS_KIND_STORAGE)
    return append_storage_constant(f, of.type, of.bits, out);
  const ssa_insn move = {.op = ATLAS_OP_mov, .type = of.type, .insn = SSA_NONE};
  return append(f, &move, &value, 1, out);
}

static hg_status append_recomputed(const materialiser *f, uint32_t value, uint32_t *out) {
  const ssa_insn of = *ssa_insn_at(f->unit, value);
  const uint32_t args[2] = {ssa_args_of(f->unit, value)[0], ssa_args_of(f->unit, value)[1]};
  return append(f, &of, args, 2, out);
}

/* How many of the first arguments are registers of the address. */
static uint32_t address_registers(const ssa_insn *insn) {
  uint32_t flags = insn->op < SSA_DELETED ? atlas_op_lookup(insn->op)->flags : 0;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) return 0;
  return hg_address_args(insn);
}

static int needs_register(const ssa_insn *arg, int is_index) {
  if (arg->op == SSA_SCALAR) return is_index;
  return arg->op == SSA_CONST && (is_index || arg->type == SSA_PREDICATE ||
                                  atlas_kind((atlas_type)arg->type) == ATLAS_KIND_STORAGE);
}

/* A constant index that is known to be out of range cannot be an immediate of the address; from a register it can, and
 * the canonical form folds it into the address again. */
static int is_out_of_range(const materialiser *f, const ssa_insn *insn) {
  uint32_t flags = insn->op < SSA_DELETED ? atlas_op_lookup(insn->op)->flags : 0;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) || insn->mode != ATLAS_ADDRESS_UNIFORM) return 0;
  const atlas_symbol *s = atlas_symbol_at(f->program, insn->symbol);
  return (s->kind == ATLAS_SYMBOL_SHARED || s->kind == ATLAS_SYMBOL_LOCAL || s->kind == ATLAS_SYMBOL_CONST) &&
         insn->bits >= s->count;
}

static hg_status move_index_to_register(const materialiser *f, uint32_t value) {
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
  uint32_t at = add_constant(f, ATLAS_i64, index);
  ssa_args_of(f->unit, value)[0] = at;
  return at != SSA_NONE ? HG_OK : out_of_memory();
}

static hg_status rewrite_insn(const materialiser *f, uint32_t value) {
  if (is_out_of_range(f, ssa_insn_at(f->unit, value))) HG_TRY(move_index_to_register(f, value));
  uint32_t indices = address_registers(ssa_insn_at(f->unit, value));
  for (uint32_t i = 0; i < ssa_insn_at(f->unit, value)->arg_count; i++) {
    uint32_t arg = ssa_args_of(f->unit, value)[i];
    if (is_recomputed(f, arg)) HG_TRY(append_recomputed(f, arg, &arg));
    else if (needs_register(ssa_insn_at(f->unit, arg), i < indices)) HG_TRY(append_materialised(f, arg, &arg));
    ssa_args_of(f->unit, value)[i] = arg;
  }
  ir_ssa_append_effect(f->unit, f->block, value);
  return HG_OK;
}

/* Phi arguments on the block's only edge. Other constants need no register: a move takes an immediate. */
static hg_status rewrite_edge(const materialiser *f, uint32_t successor) {
  uint32_t at = f->order->edge[2 * (size_t)f->block];
  for (uint32_t phi = ssa_block_at(f->unit, successor)->first_phi; phi != SSA_NONE;
       phi = ssa_insn_at(f->unit, phi)->next) {
    uint32_t arg = ssa_args_of(f->unit, phi)[at];
    const ssa_insn *insn = ssa_insn_at(f->unit, arg);
    if (is_recomputed(f, arg)) HG_TRY(append_recomputed(f, arg, &arg));
    else if (hg_is_leaf(insn) && needs_register(insn, 0)) HG_TRY(append_materialised(f, arg, &arg));
    ssa_args_of(f->unit, phi)[at] = arg;
  }
  return HG_OK;
}

static hg_status rewrite_block(materialiser *f, uint32_t b) {
  uint32_t value = ssa_block_at(f->unit, b)->first_effect;
  f->block = b;
  ssa_block_at(f->unit, b)->first_effect = ssa_block_at(f->unit, b)->last_effect = SSA_NONE;
  for (uint32_t next; value != SSA_NONE; value = next) {
    next = ssa_insn_at(f->unit, value)->next;
    if (!is_recomputed(f, value)) HG_TRY(rewrite_insn(f, value));
  }
  uint32_t condition = ssa_block_at(f->unit, b)->condition;
  if (condition != SSA_NONE && is_recomputed(f, condition)) HG_TRY(append_recomputed(f, condition, &condition));
  ssa_block_at(f->unit, b)->condition = condition;
  if (ssa_block_at(f->unit, b)->end == SSA_JUMP) HG_TRY(rewrite_edge(f, ssa_block_at(f->unit, b)->successor[0]));
  return HG_OK;
}

hg_status hg_materialise_operands(const atlas_program *program, ssa_unit *unit, const ssa_order *order, int recompute) {
  materialiser f = {.program = program, .unit = unit, .order = order, .recompute = recompute};
  for (uint32_t k = 0; k < order->count; k++) HG_TRY(rewrite_block(&f, order->block[k]));
  return HG_OK;
}
