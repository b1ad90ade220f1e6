/* ssa_check.c - checks a unit against the invariants of ssa.h, after each pass in tests and debug builds. */
#include "base/error.h"
#include "ir/ssa_walk.h"

typedef struct checker {
  const ssa_unit *unit;
  ssa_order order;
  hg_array values;
  uint32_t *block_of;  /* per value: the earliest block where it can be computed; SSA_NONE: not seen yet */
} checker;

static hg_status fail_broken(const char *what, uint32_t at) {
  return hg_fail(HG_INVALID_ARGUMENT, "internal: the SSA form is broken: %s (%u)", what, (unsigned)at);
}

static size_t edges_from(const checker *c, uint32_t from, uint32_t to) {
  const ssa_block *block = ssa_block_at(c->unit, from);
  return (size_t)(block->successor[0] == to) + (size_t)(block->successor[1] == to);
}

/* Predecessor lists and successors agree. */
static hg_status check_edges(const checker *c, uint32_t b) {
  const ssa_block *block = ssa_block_at(c->unit, b);
  const uint32_t *list = block->predecessors.data;
  size_t wanted = block->end == SSA_BRANCH ? 2 : block->end == SSA_JUMP ? 1 : 0, has = 0;
  for (int s = 0; s < 2; s++) {
    if (block->successor[s] == SSA_NONE) continue;
    has++;
    if (block->successor[s] >= c->unit->blocks.count || ssa_block_at(c->unit, block->successor[s])->dead)
      return fail_broken("a successor does not exist", b);
  }
  if (has != wanted || (wanted > 0 && block->successor[0] == SSA_NONE))
    return fail_broken("the successors do not fit the terminator", b);
  for (size_t i = 0; i < block->predecessors.count; i++) {
    size_t listed = 0;
    for (size_t k = 0; k < block->predecessors.count; k++) listed += list[k] == list[i];
    if (list[i] >= c->unit->blocks.count || edges_from(c, list[i], b) != listed)
      return fail_broken("a predecessor does not lead here", b);
  }
  for (int s = 0; s < 2; s++) {
    if (block->successor[s] == SSA_NONE) continue;
    const hg_array *back = &ssa_block_at(c->unit, block->successor[s])->predecessors;
    size_t k = 0;
    while (k < back->count && ((const uint32_t *)back->data)[k] != b) k++;
    if (k == back->count) return fail_broken("an edge is missing from its target's predecessors", b);
  }
  return HG_OK;
}

static hg_status check_use(const checker *c, uint32_t value, uint32_t block, uint32_t user) {
  if (value >= c->unit->insns.count) return fail_broken("an argument is no value", user);
  if (ssa_insn_at(c->unit, value)->op == SSA_DELETED) return fail_broken("an argument was deleted", user);
  if (c->block_of[value] == SSA_NONE || !ssa_dominates(&c->order, c->block_of[value], block))
    return fail_broken("a use is not dominated by its definition", user);
  return HG_OK;
}

/* Pure values can be computed where the deepest of their arguments is; arguments dominate each other along one path. */
static hg_status check_pure(checker *c, uint32_t value) {
  uint32_t deepest = 0;
  for (uint32_t i = 0; i < ssa_insn_at(c->unit, value)->arg_count; i++) {
    uint32_t arg = ssa_args_of(c->unit, value)[i];
    if (arg >= c->unit->insns.count || c->block_of[arg] == SSA_NONE)
      return fail_broken("a value comes before its argument", value);
    if (ssa_dominates(&c->order, deepest, c->block_of[arg])) deepest = c->block_of[arg];
    else if (!ssa_dominates(&c->order, c->block_of[arg], deepest))
      return fail_broken("the arguments never meet", value);
  }
  c->block_of[value] = deepest;
  return HG_OK;
}

static hg_status check_values(checker *c) {
  for (size_t k = 0; k < c->values.count; k++) {
    uint32_t value = ((const uint32_t *)c->values.data)[k];
    const ssa_insn *insn = ssa_insn_at(c->unit, value);
    if (insn->op == SSA_DELETED) return fail_broken("a deleted value is used", value);
    if (insn->op == SSA_PHI && insn->arg_count != ssa_block_at(c->unit, insn->block)->predecessors.count)
      return fail_broken("a phi has not one argument a predecessor", value);
    if (insn->op == SSA_PHI && insn->type == 0) return fail_broken("a phi has no type", value);
    if (insn->block == SSA_NONE) {
      HG_TRY(check_pure(c, value));
      continue;
    }
    for (uint32_t i = 0; i < insn->arg_count && insn->op != SSA_PHI; i++)
      HG_TRY(check_use(c, ssa_args_of(c->unit, value)[i], insn->block, value));
    c->block_of[value] = insn->block;
  }
  return HG_OK;
}

/* Phi arguments belong to the end of the predecessor they come from. */
static hg_status check_phis(const checker *c, uint32_t b) {
  const ssa_block *block = ssa_block_at(c->unit, b);
  for (uint32_t phi = block->first_phi; phi != SSA_NONE; phi = ssa_insn_at(c->unit, phi)->next)
    for (uint32_t i = 0; i < ssa_insn_at(c->unit, phi)->arg_count; i++) {
      uint32_t arg = ssa_args_of(c->unit, phi)[i];
      HG_TRY(check_use(c, arg, ((const uint32_t *)block->predecessors.data)[i], phi));
      if (ssa_insn_at(c->unit, arg)->type != ssa_insn_at(c->unit, phi)->type)
        return fail_broken("a phi's argument has another type", phi);
    }
  return HG_OK;
}

static hg_status check_branch(const checker *c, uint32_t b) {
  const ssa_block *block = ssa_block_at(c->unit, b);
  if (block->end != SSA_TRAP && block->trap_code != 0)
    return fail_broken("a block that is no trap has a trap's code", b);
  if (block->condition != SSA_NONE) HG_TRY(check_use(c, block->condition, b, b));
  if (block->end != SSA_BRANCH) return HG_OK;
  if (block->condition == SSA_NONE) return fail_broken("a branch has no condition", b);
  return ssa_insn_at(c->unit, block->condition)->type == SSA_PREDICATE
             ? HG_OK
             : fail_broken("a branch is not on a predicate", b);
}

static hg_status check_all(checker *c) {
  HG_TRY(ir_ssa_order_build(c->unit, &c->order));
  for (uint32_t k = 0; k < c->order.count; k++) HG_TRY(check_edges(c, c->order.block[k]));
  HG_TRY(ir_ssa_walk(c->unit, &c->order, &c->values));
  c->block_of = hg_allocate(&c->unit->allocator, c->unit->insns.count, sizeof(uint32_t));
  if (c->block_of == NULL) return hg_fail_memory("the check of the SSA form", c->unit->insns.count * sizeof(uint32_t));
  for (size_t v = 0; v < c->unit->insns.count; v++) c->block_of[v] = SSA_NONE;
  HG_TRY(check_values(c));
  for (uint32_t k = 0; k < c->order.count; k++) {
    HG_TRY(check_phis(c, c->order.block[k]));
    HG_TRY(check_branch(c, c->order.block[k]));
  }
  return HG_OK;
}

hg_status ir_ssa_check(ssa_unit *unit) {
  checker c = {.unit = unit, .values = {.element_size = sizeof(uint32_t)}};
  ir_ssa_resolve_all(unit);
  hg_status status = check_all(&c);
  ir_ssa_order_release(unit, &c.order);
  hg_array_release(&unit->allocator, &c.values);
  hg_release(&unit->allocator, c.block_of);
  return status;
}
