/* ssa.c - the container of SSA programs: making, replacing and unlinking values. */
#include "ir/ssa.h"

#include "base/error.h"

void ir_ssa_init(ssa_unit *unit, const hg_allocator *allocator) {
  *unit = (ssa_unit){.allocator = *allocator};
  unit->insns.element_size = sizeof(ssa_insn);
  unit->args.element_size = sizeof(uint32_t);
  unit->blocks.element_size = sizeof(ssa_block);
  unit->forward.element_size = sizeof(uint32_t);
}

hg_status ir_ssa_reserve(ssa_unit *unit, uint64_t values, uint64_t args, uint64_t blocks) {
  const hg_allocator *allocator = &unit->allocator;
  int reserved =
      hg_array_reserve(allocator, &unit->insns, values) && hg_array_reserve(allocator, &unit->forward, values) &&
      hg_array_reserve(allocator, &unit->args, args) && hg_array_reserve(allocator, &unit->blocks, blocks);
  return reserved ? HG_OK : hg_fail_memory("the SSA form of a program", values * sizeof(ssa_insn));
}

void ir_ssa_release(ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    hg_array_release(&unit->allocator, &ssa_block_at(unit, b)->predecessors);
  hg_array_release(&unit->allocator, &unit->insns);
  hg_array_release(&unit->allocator, &unit->args);
  hg_array_release(&unit->allocator, &unit->blocks);
  hg_array_release(&unit->allocator, &unit->forward);
}

uint32_t ir_ssa_add(ssa_unit *unit, const ssa_insn *insn, uint32_t arg_count) {
  uint32_t value = (uint32_t)unit->insns.count;
  size_t first_arg = unit->args.count;
  if (unit->args.data == NULL && hg_array_append(&unit->allocator, &unit->args, NULL, 0) == NULL)
    return SSA_NONE; /* ssa_args_of must not add to a null pointer, even for a value without arguments */
  if (!hg_array_has_room(&unit->allocator, &unit->insns)) return SSA_NONE;
  for (uint32_t i = 0; i < arg_count; i++)
    if (!hg_array_push(&unit->allocator, &unit->args, SSA_NONE)) return SSA_NONE;
  if (!hg_array_push(&unit->allocator, &unit->forward, value)) return SSA_NONE;
  ssa_insn *added = ssa_insn_at(unit, value);
  unit->insns.count++;
  *added = *insn;
  added->args = (uint32_t)first_arg;
  added->arg_count = arg_count;
  added->block = added->next = SSA_NONE;
  return value;
}

uint32_t ir_ssa_add_block(ssa_unit *unit) {
  ssa_block block = {.end = SSA_EXIT,
                     .condition = SSA_NONE,
                     .successor = {SSA_NONE, SSA_NONE},
                     .insn = SSA_NONE,
                     .loop_insn = SSA_NONE,
                     .first_phi = SSA_NONE,
                     .first_effect = SSA_NONE,
                     .last_effect = SSA_NONE,
                     .predecessors = {.element_size = sizeof(uint32_t)}};
  uint32_t number = (uint32_t)unit->blocks.count;
  return hg_array_append(&unit->allocator, &unit->blocks, &block, 1) != NULL ? number : SSA_NONE;
}

void ir_ssa_append_phi(ssa_unit *unit, uint32_t block, uint32_t value) {
  ssa_insn *insn = ssa_insn_at(unit, value);
  insn->block = block;
  insn->next = ssa_block_at(unit, block)->first_phi;
  ssa_block_at(unit, block)->first_phi = value;
}

void ir_ssa_append_effect(ssa_unit *unit, uint32_t block, uint32_t value) {
  ssa_block *b = ssa_block_at(unit, block);
  ssa_insn_at(unit, value)->block = block;
  ssa_insn_at(unit, value)->next = SSA_NONE;
  if (b->last_effect == SSA_NONE) b->first_effect = value;
  else ssa_insn_at(unit, b->last_effect)->next = value;
  b->last_effect = value;
}

uint32_t ir_ssa_resolve_far(ssa_unit *unit, uint32_t value) {
  uint32_t *forward = unit->forward.data;
  while (forward[value] != value) {
    forward[value] = forward[forward[value]]; /* halve the path for the next time */
    value = forward[value];
  }
  return value;
}

void ir_ssa_replace(ssa_unit *unit, uint32_t value, uint32_t by) {
  uint32_t from = ir_ssa_resolve(unit, value), to = ir_ssa_resolve(unit, by);
  if (from == to) return;
  ((uint32_t *)unit->forward.data)[from] = to;
  unit->replaced = 1;
}

void ir_ssa_remove_edge(ssa_unit *unit, uint32_t from, uint32_t to) {
  hg_array *predecessors = &ssa_block_at(unit, to)->predecessors;
  uint32_t *list = predecessors->data;
  uint32_t at = 0;
  while (at < predecessors->count && list[at] != from) at++;
  if (at == predecessors->count) return;
  for (size_t i = at + 1; i < predecessors->count; i++) list[i - 1] = list[i];
  predecessors->count--;
  for (uint32_t phi = ssa_block_at(unit, to)->first_phi; phi != SSA_NONE; phi = ssa_insn_at(unit, phi)->next) {
    ssa_insn *insn = ssa_insn_at(unit, phi);
    uint32_t *args = ssa_args_of(unit, phi);
    for (uint32_t i = at + 1; i < insn->arg_count; i++) args[i - 1] = args[i];
    insn->arg_count--;
  }
}

void ir_ssa_pass_by(ssa_unit *unit, uint32_t block) {
  const ssa_block *between = ssa_block_at(unit, block);
  ssa_block *next = ssa_block_at(unit, between->successor[0]);
  next->library &= between->library; /* a loop may begin there now */
  if (next->loop_insn == SSA_NONE) next->loop_insn = between->loop_insn;
}

void ir_ssa_take_jump(ssa_unit *unit, uint32_t from, uint32_t block) {
  uint32_t insn = ssa_block_at(unit, block)->insn;
  if (ssa_block_at(unit, from)->end == SSA_JUMP && insn != SSA_NONE) ssa_block_at(unit, from)->insn = insn;
}

uint32_t ir_ssa_split_block(ssa_unit *unit, uint32_t number, uint32_t previous) {
  uint32_t rest = ir_ssa_add_block(unit);
  if (rest == SSA_NONE) return SSA_NONE;
  ssa_block *before = ssa_block_at(unit, number), *after = ssa_block_at(unit, rest);
  after->library = before->library;
  after->end = before->end;
  after->condition = before->condition;
  after->insn = before->insn;
  after->trap_code = before->trap_code;
  for (int s = 0; s < 2; s++) {
    uint32_t successor = after->successor[s] = before->successor[s];
    if (successor == SSA_NONE) continue;
    hg_array *list = &ssa_block_at(unit, successor)->predecessors;
    for (size_t i = 0; i < list->count; i++)
      if (((uint32_t *)list->data)[i] == number) ((uint32_t *)list->data)[i] = rest;
  }
  after->first_effect = previous == SSA_NONE ? before->first_effect : ssa_insn_at(unit, previous)->next;
  after->last_effect = after->first_effect == SSA_NONE ? SSA_NONE : before->last_effect;
  for (uint32_t e = after->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next)
    ssa_insn_at(unit, e)->block = rest;
  before->last_effect = previous;
  if (previous == SSA_NONE) before->first_effect = SSA_NONE;
  else ssa_insn_at(unit, previous)->next = SSA_NONE;
  before->end = SSA_JUMP;
  before->trap_code = 0;
  before->condition = SSA_NONE;
  before->successor[0] = before->successor[1] = SSA_NONE;
  return rest;
}
