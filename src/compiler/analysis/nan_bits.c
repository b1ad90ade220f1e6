/* nan_bits.c - what each operation does with the bits of a NaN, and therefore in which values they are observable. */
#include "compiler/analysis/nan_bits.h"

#include "base/error.h"

#include <string.h>

int hg_makes_other_nan(uint16_t op, uint8_t type, uint8_t type2) {
  const atlas_op_info *info = atlas_op_lookup(op);
  if (info == NULL || !atlas_is_float((atlas_type)type) || !(info->flags & ATLAS_PURE)) return 0;
  if (info->flags & (ATLAS_BITS | ATLAS_LOAD)) return 0;
  return op != ATLAS_OP_cvt || atlas_is_float((atlas_type)type2) || type2 == ATLAS_f8e4m3 || type2 == ATLAS_f8e5m2;
}

enum { MOST_DEEP = 16 }; /* comparisons in one condition */

/* 1 if the condition compares `value`, or its magnitude, and is false for a NaN. */
static int is_compared(const ssa_unit *unit, uint32_t condition, uint32_t value, int depth) {
  const ssa_insn *test = ssa_insn_at(unit, condition);
  const uint32_t *args = ssa_args_of(unit, condition);
  if (test->op == ATLAS_OP_pand)
    return depth > 0 && (is_compared(unit, args[1], value, 0) || is_compared(unit, args[0], value, depth - 1));
  int is_false_for_nan = test->op == ATLAS_OP_set_lt || test->op == ATLAS_OP_set_le || test->op == ATLAS_OP_set_eq;
  for (uint32_t i = 0; i < test->arg_count && is_false_for_nan; i++) {
    uint32_t by = args[i];
    if (ssa_insn_at(unit, by)->op == ATLAS_OP_abs) by = ssa_args_of(unit, by)[0];
    if (by == value) return 1;
  }
  return 0;
}

/* The condition under which the edge is taken: its branch's, or that of the branch that leads to its block, which has
 * no other way in. SSA_NONE: the edge is taken if a condition is false, or always. */
static uint32_t condition_of_edge(const ssa_unit *unit, uint32_t from, uint32_t to) {
  const ssa_block *block = ssa_block_at(unit, from);
  if (block->end == SSA_JUMP && block->predecessors.count == 1) {
    to = from;
    block = ssa_block_at(unit, ((const uint32_t *)block->predecessors.data)[0]);
  }
  int is_true = block->end == SSA_BRANCH && block->successor[0] == to && block->successor[1] != to;
  return is_true ? block->condition : SSA_NONE;
}

int hg_comes_as_number(const ssa_unit *unit, uint32_t phi, uint32_t i) {
  const ssa_insn *insn = ssa_insn_at(unit, phi);
  if (!atlas_is_wide_float((atlas_type)insn->type)) return 0;
  uint32_t from = ((const uint32_t *)ssa_block_at(unit, insn->block)->predecessors.data)[i];
  uint32_t condition = condition_of_edge(unit, from, insn->block);
  return condition != SSA_NONE && is_compared(unit, condition, ssa_args_of(unit, phi)[i], MOST_DEEP);
}

/* ---- where they are seen ----------------------------------------------------------------------------------------- */

typedef struct finder {
  const ssa_unit *unit;
  const uint8_t *blind;
  hg_nan_rule *rule;
  const void *engine;
  uint8_t *seen;
  uint32_t *todo; /* worklist of values whose bits are observable; marks pass on to their arguments */
  uint32_t count;
} finder;

/* Marks the arguments of `value` whose bits it uses in this way. */
static void mark_arguments(finder *f, uint32_t value, hg_nan_use use) {
  const ssa_insn *insn = ssa_insn_at(f->unit, value);
  const uint32_t *args = ssa_args_of(f->unit, value);
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    if (f->seen[args[i]] || !atlas_is_float((atlas_type)ssa_insn_at(f->unit, args[i])->type)) continue;
    hg_nan_use does = f->rule != NULL ? f->rule(f->engine, value, i) : hg_nan_use_of(insn->op, i);
    if (does != use || (insn->op == SSA_PHI && hg_comes_as_number(f->unit, value, i))) continue;
    f->seen[args[i]] = 1;
    f->todo[f->count++] = args[i];
  }
}

hg_status hg_find_nan_seen(const ssa_unit *unit, const ssa_order *order, const uint8_t *blind, hg_nan_rule *rule,
                           const void *engine, uint8_t *seen) {
  uint64_t values = unit->insns.count;
  finder f = {.unit = unit, .blind = blind, .rule = rule, .engine = engine, .seen = seen};
  f.todo = hg_allocate_unset(&unit->allocator, values, sizeof *f.todo);
  if (f.todo == NULL) return hg_fail_memory("values whose bits are seen", values * sizeof *f.todo);
  memset(seen, 0, values);
  for (uint32_t k = 0; k < order->count; k++) {
    const ssa_block *block = ssa_block_at(unit, order->block[k]);
    for (int list = 0; list < 2; list++)
      for (uint32_t v = list == 0 ? block->first_phi : block->first_effect; v != SSA_NONE;
           v = ssa_insn_at(unit, v)->next)
        if (!blind[v]) mark_arguments(&f, v, HG_NAN_SHOWN);
  }
  while (f.count > 0) mark_arguments(&f, f.todo[--f.count], HG_NAN_PASSED);
  hg_release(&unit->allocator, f.todo);
  return HG_OK;
}
