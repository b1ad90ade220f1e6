/* late.c - roundings to f16 or bf16 that a group of stores performs when it builds its words, two by one instruction.
 * Separate roundings would each be extracted from a word and then put together again.
 *
 * Such a rounding has one use, the store, in the same basic block. Nothing in between may write the register of its
 * operand, which has to stay live longer than phi_coalesce.c knows. */
#include "backend/gpu/plan_passes.h"

/* 1 if the element shares a word with another one. */
static int is_paired(const gpu_plan *g, uint32_t store) {
  const gpu_access_group *group = gpu_group_at(g, g->group_of[store] - 1);
  uint32_t at = 0;
  while (group->value[at] != store) at++;
  while (group->joined[at] == 0) at--;
  return group->joined[at] > 1;
}

static int keeps_register(const gpu_plan *g, uint32_t rounding) {
  uint32_t home = g->home[gpu_arg(g, rounding, 0)];
  for (uint32_t v = gpu_insn(g, rounding)->next; v != SSA_NONE; v = gpu_insn(g, v)->next)
    if (g->home[v] == home) return 0;
  return 1;
}

static int may_be_late(const gpu_plan *g, uint32_t store) {
  uint32_t rounding = gpu_arg(g, store, gpu_insn(g, store)->arg_count - 1u);
  return hg_gpu_rounds_loosely(g, rounding) && gpu_insn(g, rounding)->block == gpu_insn(g, store)->block &&
         gpu_insn(g, gpu_arg(g, rounding, 0))->op != SSA_CONST && is_paired(g, store) && keeps_register(g, rounding);
}

static uint8_t next_of(uint8_t uses) { return uses < 2 ? (uint8_t)(uses + 1) : uses; }

static void count_uses(gpu_plan *g, uint32_t block) {
  const ssa_block *b = ssa_block_at(g->unit, block);
  for (int list = 0; list < 2; list++)
    for (uint32_t v = list == 0 ? b->first_phi : b->first_effect; v != SSA_NONE; v = gpu_insn(g, v)->next)
      for (uint32_t i = 0; i < gpu_insn(g, v)->arg_count; i++)
        g->is_late[gpu_arg(g, v, i)] = next_of(g->is_late[gpu_arg(g, v, i)]);
}

/* `is_late` first holds the number of a value's uses, then whether the value is late. */
void hg_gpu_find_late(gpu_plan *g) {
  for (uint32_t k = 0; k < g->order.count; k++) count_uses(g, g->order.block[k]);
  for (uint32_t v = 0; v < g->unit->insns.count; v++) g->is_late[v] = g->is_late[v] == 1 ? 2 : 0;
  for (size_t i = 0; i < g->groups_outside; i++) {
    const gpu_access_group *group = gpu_group_at(g, (uint32_t)i);
    for (uint32_t at = 0; at < group->count && group->is_store; at++) {
      uint32_t store = group->value[at], value = gpu_arg(g, store, gpu_insn(g, store)->arg_count - 1u);
      if (g->is_late[value] == 2) g->is_late[value] = (uint8_t)may_be_late(g, store);
    }
  }
  for (uint32_t v = 0; v < g->unit->insns.count; v++) g->is_late[v] &= 1;
}
