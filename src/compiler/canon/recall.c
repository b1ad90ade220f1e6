/* recall.c - accesses that the canonical form remembers but no longer contains (out_of_ssa.h).
 *
 * Which buffers are accessed otherwise than as [x + lane] is found once, is part of the canonical form, and decides
 * which buffers may alias from then on (aliasing.h). Loads that can be merged only after that may include the last
 * access that made the difference. A program with this canonical form must have such an access when they are found, and
 * lose it afterwards. So the text loads an element of a buffer before and after a store to another buffer that may
 * alias until then. If the two loads differ, it branches to the missing accesses and a trap. Once the buffers do
 * not alias, the loads are merged, the branch is constant and all of this is dead. */
#include "compiler/canon/out_of_ssa.h"

#include "base/error.h"
#include "compiler/analysis/aliasing.h"

#include <string.h>

typedef struct recaller {
  const atlas_program *program;
  ssa_unit *unit;
} recaller;

static hg_status out_of_memory(void) { return hg_fail_memory("the text of a program", sizeof(ssa_insn)); }

static int contains(const uint64_t *set, uint32_t symbol) { return (int)(set[symbol / 64] >> symbol % 64 & 1); }

/* The buffers marked in other_forms without an access that explains it; 1 if there are any. */
static int find_missing(ssa_unit *unit, uint64_t missing[4]) {
  uint64_t flags[4], any = 0;
  memcpy(flags, unit->other_forms, sizeof flags);
  memset(unit->other_forms, 0, sizeof unit->other_forms);
  hg_classify_buffers(unit);
  for (int i = 0; i < 4; i++) any |= missing[i] = flags[i] & ~unit->other_forms[i];
  memcpy(unit->other_forms, flags, sizeof flags);
  return any != 0;
}

/* A write to another buffer with elements of the same size. */
static uint32_t find_write(const recaller *r, uint32_t buffer) {
  const atlas_symbol *s = atlas_symbol_at(r->program, buffer);
  for (uint32_t b = 0; b < r->unit->blocks.count; b++)
    for (uint32_t e = ssa_block_at(r->unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(r->unit, e)->next) {
      const ssa_insn *insn = ssa_insn_at(r->unit, e);
      if (!(atlas_op_lookup(insn->op)->flags & (ATLAS_STORE | ATLAS_ATOMIC)) || insn->mode == ATLAS_ADDRESS_PHI ||
          insn->symbol == buffer)
        continue;
      const atlas_symbol *other = atlas_symbol_at(r->program, insn->symbol);
      if (other->kind == ATLAS_SYMBOL_BUFFER &&
          atlas_bytes((atlas_type)other->type) == atlas_bytes((atlas_type)s->type))
        return e;
    }
  return SSA_NONE;
}

/* A buffer of the set that can be read, and a write that may alias it until all accesses are classified. */
static uint32_t find_pair(const recaller *r, const uint64_t set[4], uint32_t *write) {
  for (uint32_t s = 0; s < r->program->symbols.count; s++)
    if (contains(set, s) && atlas_symbol_at(r->program, s)->access & ATLAS_IN &&
        (*write = find_write(r, s)) != SSA_NONE)
      return s;
  return SSA_NONE;
}

static hg_status add_value(const recaller *r, const ssa_insn *insn, uint32_t a, uint32_t b, uint32_t *out) {
  const uint32_t args[2] = {a, b};
  uint32_t count = a == SSA_NONE ? 0 : b == SSA_NONE ? 1 : 2;
  *out = ir_ssa_add(r->unit, insn, count);
  if (*out == SSA_NONE) return out_of_memory();
  for (uint32_t i = 0; i < count; i++) ssa_args_of(r->unit, *out)[i] = args[i];
  return HG_OK;
}

/* An element that no other load of the buffer has as its displacement, so that the two loads merge with each other
 * only. */
static uint64_t unused_element(const recaller *r, uint32_t buffer) {
  uint64_t element = 0;
  for (uint32_t v = 0; v < r->unit->insns.count; v++) {
    const ssa_insn *insn = ssa_insn_at(r->unit, v);
    if (insn->op == ATLAS_OP_ldg && insn->symbol == buffer && insn->mode == ATLAS_ADDRESS_UNIFORM &&
        insn->bits >= element && insn->bits < UINT32_MAX)
      element = insn->bits + 1;
  }
  return element;
}

/* A load of one element; *bits is its value as an integer. */
static hg_status add_load(const recaller *r, uint32_t buffer, uint64_t element, uint32_t *load, uint32_t *bits) {
  static const uint8_t integers[9] = {[1] = ATLAS_u8, [2] = ATLAS_u16, [4] = ATLAS_u32, [8] = ATLAS_u64};
  uint8_t type = atlas_symbol_at(r->program, buffer)->type;
  ssa_insn insn = {.op = ATLAS_OP_ldg,
                   .type = type,
                   .mode = ATLAS_ADDRESS_UNIFORM,
                   .symbol = (uint16_t)buffer,
                   .bits = element,
                   .insn = SSA_NONE};
  HG_TRY(add_value(r, &insn, SSA_NONE, SSA_NONE, load));
  *bits = *load;
  if (atlas_kind((atlas_type)type) == ATLAS_KIND_STORAGE) {
    insn = (ssa_insn){.op = ATLAS_OP_cvt, .type = ATLAS_f32, .type2 = type, .insn = SSA_NONE};
    HG_TRY(add_value(r, &insn, *bits, SSA_NONE, bits));
    type = ATLAS_f32;
  }
  if (atlas_is_integer((atlas_type)type)) return HG_OK;
  insn = (ssa_insn){
      .op = ATLAS_OP_bitcast, .type = integers[atlas_bytes((atlas_type)type)], .type2 = type, .insn = SSA_NONE};
  return add_value(r, &insn, *bits, SSA_NONE, bits);
}

static void rename_predecessor(const recaller *r, uint32_t block, uint32_t from, uint32_t to) {
  if (block == SSA_NONE) return;
  hg_array *list = &ssa_block_at(r->unit, block)->predecessors;
  for (size_t i = 0; i < list->count; i++)
    if (((uint32_t *)list->data)[i] == from) ((uint32_t *)list->data)[i] = to;
}

/* Splits the block of `effect` behind it: the rest becomes a block of its own, reached if the condition holds; else the
 * lane ends in a trap. */
static hg_status branch_behind(const recaller *r, uint32_t effect, uint32_t condition) {
  uint32_t block = ssa_insn_at(r->unit, effect)->block, rest = ir_ssa_add_block(r->unit),
           trap = ir_ssa_add_block(r->unit);
  if (rest == SSA_NONE || trap == SSA_NONE ||
      !hg_array_push(&r->unit->allocator, &ssa_block_at(r->unit, rest)->predecessors, block) ||
      !hg_array_push(&r->unit->allocator, &ssa_block_at(r->unit, trap)->predecessors, block))
    return out_of_memory();
  ssa_block *from = ssa_block_at(r->unit, block), *to = ssa_block_at(r->unit, rest);
  for (uint32_t e = ssa_insn_at(r->unit, effect)->next, next; e != SSA_NONE; e = next) {
    next = ssa_insn_at(r->unit, e)->next;
    ir_ssa_append_effect(r->unit, rest, e);
  }
  ssa_insn_at(r->unit, effect)->next = SSA_NONE;
  from->last_effect = effect;
  to->end = from->end;
  to->condition = from->condition;
  to->trap_code = from->trap_code;
  for (int s = 0; s < 2; s++) {
    to->successor[s] = from->successor[s];
    rename_predecessor(r, to->successor[s], block, rest);
  }
  ssa_block_at(r->unit, trap)->end = SSA_TRAP;
  from->end = SSA_BRANCH;
  from->trap_code = 0;
  from->condition = condition;
  from->successor[0] = rest;
  from->successor[1] = trap;
  return HG_OK;
}

/* Links `load` into a list before or behind an effect. */
static void link_load(const recaller *r, uint32_t load, uint32_t effect, int behind) {
  uint32_t b = ssa_insn_at(r->unit, effect)->block, e = ssa_block_at(r->unit, b)->first_effect;
  ssa_block_at(r->unit, b)->first_effect = ssa_block_at(r->unit, b)->last_effect = SSA_NONE;
  for (uint32_t next; e != SSA_NONE; e = next) {
    next = ssa_insn_at(r->unit, e)->next;
    if (e == effect && !behind) ir_ssa_append_effect(r->unit, b, load);
    ir_ssa_append_effect(r->unit, b, e);
    if (e == effect && behind) ir_ssa_append_effect(r->unit, b, load);
  }
}

/* The trap block becomes a branch to two traps; *trap is the first of them. */
static hg_status branch_to_traps(const recaller *r, uint32_t *trap, uint32_t condition) {
  uint32_t from = *trap;
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t to = ir_ssa_add_block(r->unit);
    if (to == SSA_NONE || !hg_array_push(&r->unit->allocator, &ssa_block_at(r->unit, to)->predecessors, from))
      return out_of_memory();
    ssa_block_at(r->unit, to)->end = SSA_TRAP;
    ssa_block_at(r->unit, to)->trap_code = side;
    ssa_block_at(r->unit, from)->successor[side] = to;
  }
  *trap = ssa_block_at(r->unit, from)->successor[0];
  ssa_block_at(r->unit, from)->end = SSA_BRANCH;
  ssa_block_at(r->unit, from)->condition = condition;
  return HG_OK;
}

/* Adds an access other than [x + lane] to the trap block: a store, or a load that a branch depends on. */
static hg_status add_access(const recaller *r, uint32_t buffer, uint32_t *trap) {
  const atlas_symbol *s = atlas_symbol_at(r->program, buffer);
  uint32_t zero, load, bits, test;
  ssa_insn constant = {.op = SSA_CONST, .type = s->type, .insn = SSA_NONE};
  if (s->access & ATLAS_OUT) {
    const ssa_insn store = {.op = ATLAS_OP_stg,
                            .type = s->type,
                            .mode = ATLAS_ADDRESS_UNIFORM,
                            .symbol = (uint16_t)buffer,
                            .insn = SSA_NONE};
    HG_TRY(add_value(r, &constant, SSA_NONE, SSA_NONE, &zero));
    HG_TRY(add_value(r, &store, zero, SSA_NONE, &load));
    ir_ssa_append_effect(r->unit, *trap, load);
    return HG_OK;
  }
  HG_TRY(add_load(r, buffer, 0, &load, &bits));
  ir_ssa_append_effect(r->unit, *trap, load);
  constant.type = ssa_insn_at(r->unit, bits)->type;
  HG_TRY(add_value(r, &constant, SSA_NONE, SSA_NONE, &zero));
  const ssa_insn compare = {
      .op = ATLAS_OP_set_eq, .type = SSA_PREDICATE, .type2 = constant.type, .insn = SSA_NONE};
  HG_TRY(add_value(r, &compare, bits, zero, &test));
  return branch_to_traps(r, trap, test);
}

/* Adds a trap block that is reachable as long as `buffer` may alias what `write` writes: if two loads of it differ. */
static hg_status add_trap_path(const recaller *r, uint32_t buffer, uint32_t write, uint32_t *trap) {
  uint32_t before, after, first, second, same;
  uint64_t element = unused_element(r, buffer);
  HG_TRY(add_load(r, buffer, element, &before, &first));
  HG_TRY(add_load(r, buffer, element, &after, &second));
  const ssa_insn test = {
      .op = ATLAS_OP_set_eq, .type = SSA_PREDICATE, .type2 = ssa_insn_at(r->unit, first)->type, .insn = SSA_NONE};
  HG_TRY(add_value(r, &test, first, second, &same));
  link_load(r, before, write, 0);
  link_load(r, after, write, 1);
  HG_TRY(branch_behind(r, after, same));
  *trap = ssa_block_at(r->unit, ssa_insn_at(r->unit, after)->block)->successor[1];
  return HG_OK;
}

hg_status hg_recall_accesses(const atlas_program *program, ssa_unit *unit) {
  const recaller r = {program, unit};
  uint64_t missing[4];
  uint32_t write = SSA_NONE, trap;
  if (!find_missing(unit, missing)) return HG_OK;
  uint32_t observed = find_pair(&r, missing, &write);
  if (observed == SSA_NONE) observed = find_pair(&r, unit->other_forms, &write);
  if (observed == SSA_NONE)
    return hg_fail(HG_UNSUPPORTED,
                   "the canonical form remembers accesses that no text can have and lose again: it cannot be written "
                   "as a program; `hologram emit --target ssa` shows it");
  HG_TRY(add_trap_path(&r, observed, write, &trap));
  for (uint32_t symbol = 0; symbol < program->symbols.count; symbol++)
    if (contains(missing, symbol) && symbol != observed) HG_TRY(add_access(&r, symbol, &trap));
  memset(unit->other_forms, 0,
         sizeof unit->other_forms); /* assume that all buffers may alias, so that the loads stay in place */
  return HG_OK;
}
