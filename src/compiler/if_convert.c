/* if_convert.c - if-conversion: if the sides of a branch are small and pure, all lanes compute both, and `sel` chooses
 * a result.
 *
 * Runs after the hash, on a scheduled unit. Pure values cannot fault, so computing both sides changes no bit and saves
 * a divergent branch. A side with a division, a root or more than a few instructions keeps its branch. */
#include "compiler/optimise.h"
#include "compiler/compiler_tuning.h"

#include "atlas/tables.h"
#include "base/error.h"
#include "compiler/analysis/effects.h"
#include "ir/ssa_walk.h"

static int is_cheap(const ssa_insn *insn) {
  switch (insn->op) {
  case ATLAS_OP_div:
  case ATLAS_OP_rem:
  case ATLAS_OP_sqrt: return 0;
  default: return hg_is_pure(insn) && !(atlas_op_flags(insn->op) & ATLAS_FUNC);
  }
}

/* 1 for a block that only its branch leads to, that contains a few cheap pure values and continues to `join`. */
static int is_small_side(const ssa_unit *unit, uint32_t b, uint32_t join) {
  const ssa_block *block = ssa_block_at(unit, b);
  int count = 0;
  if (block->predecessors.count != 1 || block->end != SSA_JUMP || block->successor[0] != join ||
      block->first_phi != SSA_NONE)
    return 0;
  for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next)
    if (!is_cheap(ssa_insn_at(unit, e)) || ++count > COMPILER_SIDE_VALUES) return 0;
  return 1;
}

static uint32_t position_in(const ssa_unit *unit, uint32_t join, uint32_t from) {
  const hg_array *list = &ssa_block_at(unit, join)->predecessors;
  for (uint32_t i = 0; i < list->count; i++)
    if (((const uint32_t *)list->data)[i] == from) return i;
  return SSA_NONE;
}

static uint32_t add_in(ssa_unit *unit, uint32_t block, uint16_t op, uint8_t type, const uint32_t *args, uint32_t count,
                       uint32_t insn) {
  ssa_insn made = {.op = op, .type = type, .insn = insn};
  uint32_t value = ir_ssa_add(unit, &made, count);
  if (value == SSA_NONE) return SSA_NONE;
  for (uint32_t i = 0; i < count; i++) ssa_args_of(unit, value)[i] = args[i];
  ir_ssa_append_effect(unit, block, value);
  return value;
}

/* condition ? a : b at the end of a block; there is no `sel` of predicates, so those are (c and a) or (not c and b). */
static uint32_t select_in(ssa_unit *unit, uint32_t block, uint32_t condition, uint32_t a, uint32_t b, uint32_t insn) {
  uint8_t type = ssa_insn_at(unit, a)->type;
  if (type != SSA_PREDICATE) return add_in(unit, block, ATLAS_OP_sel, type, (uint32_t[]){condition, a, b}, 3, insn);
  uint32_t not_condition = add_in(unit, block, ATLAS_OP_pnot, type, &condition, 1, insn);
  uint32_t first = not_condition == SSA_NONE
                       ? SSA_NONE
                       : add_in(unit, block, ATLAS_OP_pand, type, (uint32_t[]){condition, a}, 2, insn);
  uint32_t second =
      first == SSA_NONE ? SSA_NONE : add_in(unit, block, ATLAS_OP_pand, type, (uint32_t[]){not_condition, b}, 2, insn);
  return second == SSA_NONE ? SSA_NONE : add_in(unit, block, ATLAS_OP_por, type, (uint32_t[]){first, second}, 2, insn);
}

static void move_effects(ssa_unit *unit, uint32_t from, uint32_t to) {
  uint32_t e = ssa_block_at(unit, from)->first_effect;
  ssa_block_at(unit, from)->first_effect = ssa_block_at(unit, from)->last_effect = SSA_NONE;
  for (uint32_t next; e != SSA_NONE; e = next) {
    next = ssa_insn_at(unit, e)->next;
    ir_ssa_append_effect(unit, to, e);
  }
}

/* `from[s]` is the predecessor of `join` on side s: the block of that side, or b itself where the side is empty. */
static hg_status convert(ssa_unit *unit, uint32_t b, uint32_t join, const uint32_t from[2]) {
  uint32_t condition = ssa_block_at(unit, b)->condition;
  for (int s = 0; s < 2; s++)
    if (from[s] != b) move_effects(unit, from[s], b);
  uint32_t at[2] = {position_in(unit, join, from[0]), position_in(unit, join, from[1])};
  for (uint32_t phi = ssa_block_at(unit, join)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(unit, phi)->next) {
    uint32_t sides[2] = {ssa_args_of(unit, phi)[at[0]], ssa_args_of(unit, phi)[at[1]]}, chosen = sides[0];
    if (sides[0] != sides[1]) chosen = select_in(unit, b, condition, sides[0], sides[1], ssa_insn_at(unit, phi)->insn);
    if (chosen == SSA_NONE) return hg_fail_memory("if-conversion", sizeof(ssa_insn));
    ssa_args_of(unit, phi)[at[0]] = chosen;
  }
  ir_ssa_remove_edge(unit, from[1], join); /* the edge of side 0 remains, and comes from b now */
  ((uint32_t *)ssa_block_at(unit, join)->predecessors.data)[position_in(unit, join, from[0])] = b;
  for (int s = 0; s < 2; s++)
    if (from[s] != b) {
      ssa_block_at(unit, from[s])->dead = 1;
      ssa_block_at(unit, from[s])->predecessors.count = 0;
      ssa_block_at(unit, from[s])->successor[0] = SSA_NONE;
    }
  ssa_block *block = ssa_block_at(unit, b);
  block->end = SSA_JUMP;
  block->condition = SSA_NONE;
  block->successor[0] = join;
  block->successor[1] = SSA_NONE;
  return HG_OK;
}

static hg_status convert_block(ssa_unit *unit, uint32_t b, int *changed) {
  const ssa_block *block = ssa_block_at(unit, b);
  if (block->dead || block->end != SSA_BRANCH) return HG_OK;
  uint32_t t = block->successor[0], f = block->successor[1];
  if (t == f || t == b || f == b) return HG_OK;
  uint32_t join = SSA_NONE, from[2] = {t, f};
  if (ssa_block_at(unit, t)->end == SSA_JUMP && is_small_side(unit, t, ssa_block_at(unit, t)->successor[0])) {
    uint32_t after = ssa_block_at(unit, t)->successor[0];
    if (after == f) join = f, from[1] = b;
    else if (is_small_side(unit, f, after)) join = after;
  }
  if (join == SSA_NONE && is_small_side(unit, f, t)) join = t, from[0] = b;
  if (join == SSA_NONE || join == b) return HG_OK;
  *changed = 1;
  return convert(unit, b, join, from);
}

hg_status hg_pass_if_convert(const atlas_program *program, ssa_unit *unit, int *changed) {
  (void)program;
  ir_ssa_resolve_all(unit);
  for (uint32_t b = (uint32_t)unit->blocks.count; b-- > 0;)
    HG_TRY(convert_block(unit, b, changed)); /* inner ones first, mostly */
  return HG_OK;
}
