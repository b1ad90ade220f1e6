/* extremes.c - the greatest or least of many elements of f16 or bf16, which are loaded in words of two: by instructions
 * on words, and of both halves of the last one at the end.
 *
 * max.f32 of numbers that have been f16 or bf16 is one of them, so that the order of the maxima does not matter, nor
 * whether the elements are widened before or behind them. Of zeros +0 is the greater one in either type, and where any
 * is NaN so is the result. So a tree of maxima becomes its root alone, with the elements as arguments: both halves of
 * each word, one after the other. What widens an element for nothing else is left out. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

#include <string.h>

enum { MOST_LEAVES = 128 };

typedef struct finder {
  gpu_plan *g;
  uint32_t *uses, *user;       /* per value: the number of its users, and one of them */
  uint8_t *is_gone;            /* per value: 1: its block does not compute it */
  uint32_t leaf[MOST_LEAVES];  /* the widened elements of the current tree */
  uint32_t inner[MOST_LEAVES]; /* the tree's maxima except the root, and the widenings */
  uint32_t leaf_count, inner_count;
} finder;

/* ---- the words --------------------------------------------------------------------------------------------------- */

/* The other half of the word that the element is loaded in; SSA_NONE: there is none. */
static uint32_t other_half(const gpu_plan *g, uint32_t load, int *is_low) {
  if (g->group_of[load] == 0) return SSA_NONE;
  const gpu_access_group *group = gpu_group_at(g, g->group_of[load] - 1);
  uint32_t at = 0, begin;
  while (group->value[at] != load) at++;
  for (begin = at; group->joined[begin] == 0;) begin--;
  *is_low = (at - begin) % 2 == 0;
  return group->joined[begin] < 2 || group->is_store ? SSA_NONE : group->value[*is_low ? at + 1 : at - 1];
}

static int has_leaf(const finder *f, uint32_t load) {
  for (uint32_t i = 0; i < f->leaf_count; i++)
    if (f->leaf[i] == load) return 1;
  return 0;
}

static int are_words(const finder *f) {
  for (uint32_t i = 0; i < f->leaf_count; i++) {
    int is_low = 0;
    uint32_t other = other_half(f->g, f->leaf[i], &is_low);
    if (other == SSA_NONE || !has_leaf(f, other)) return 0;
  }
  return 1;
}

/* ---- the tree ---------------------------------------------------------------------------------------------------- */

static int is_extreme(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  return (insn->op == ATLAS_OP_min || insn->op == ATLAS_OP_max) && insn->type == ATLAS_f32 && insn->arg_count == 2;
}

static int is_leaf(const finder *f, uint32_t value) {
  const ssa_insn *insn = gpu_insn(f->g, value);
  if (insn->op != ATLAS_OP_cvt || insn->type != ATLAS_f32 || !gpu_has_pairs(f->g, insn->type2)) return 0;
  uint32_t load = gpu_arg(f->g, value, 0);
  return f->leaf_count == 0 || gpu_insn(f->g, load)->type == gpu_insn(f->g, f->leaf[0])->type;
}

/* Collects what the root is computed from, down to the elements; 0: they differ in type, or there are too many. */
static int collect(finder *f, uint32_t root, uint32_t value) {
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t arg = gpu_arg(f->g, value, i);
    int is_inner = is_extreme(f->g, arg) && gpu_insn(f->g, arg)->op == gpu_insn(f->g, root)->op && f->uses[arg] == 1 &&
                   gpu_insn(f->g, arg)->block == gpu_insn(f->g, root)->block;
    if (f->leaf_count == MOST_LEAVES || f->inner_count == MOST_LEAVES || (!is_inner && !is_leaf(f, arg))) return 0;
    if (!is_inner) f->leaf[f->leaf_count++] = gpu_arg(f->g, arg, 0);
    if (is_inner || f->uses[arg] == 1) f->inner[f->inner_count++] = arg;
    if (is_inner && !collect(f, root, arg)) return 0;
  }
  return 1;
}

static hg_status rewrite(const finder *f, uint32_t root) {
  hg_array *args = &f->g->unit->args;
  uint32_t first = (uint32_t)args->count;
  for (uint32_t i = 0; i < f->leaf_count; i++) {
    int is_low = 0;
    uint32_t other = other_half(f->g, f->leaf[i], &is_low);
    if (is_low && (!hg_array_push(&f->g->unit->allocator, args, f->leaf[i]) ||
                   !hg_array_push(&f->g->unit->allocator, args, other)))
      return hg_fail_memory("the greatest of many", args->count * sizeof(uint32_t));
  }
  ssa_insn *insn = ssa_insn_at(f->g->unit, root);
  insn->args = first;
  insn->arg_count = (uint32_t)args->count - first;
  for (uint32_t i = 0; i < f->inner_count; i++) f->is_gone[f->inner[i]] = 1;
  return HG_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int is_root(const finder *f, uint32_t value) {
  uint32_t user = f->user[value];
  return is_extreme(f->g, value) &&
         !(f->uses[value] == 1 && is_extreme(f->g, user) && gpu_insn(f->g, user)->op == gpu_insn(f->g, value)->op &&
           gpu_insn(f->g, user)->block == gpu_insn(f->g, value)->block);
}

static hg_status find_in(finder *f, uint32_t block, int *found) {
  for (uint32_t e = ssa_block_at(f->g->unit, block)->first_effect; e != SSA_NONE; e = gpu_insn(f->g, e)->next) {
    if (!is_root(f, e)) continue;
    f->leaf_count = f->inner_count = 0;
    if (!collect(f, e, e) || f->leaf_count < GPU_LEAST_LEAVES || !are_words(f)) continue;
    HG_TRY(rewrite(f, e));
    *found = 1;
  }
  return HG_OK;
}

static void list_again(const finder *f, uint32_t number) {
  ssa_block *block = ssa_block_at(f->g->unit, number);
  uint32_t e = block->first_effect, next;
  block->first_effect = block->last_effect = SSA_NONE;
  for (; e != SSA_NONE; e = next) {
    next = gpu_insn(f->g, e)->next;
    if (!f->is_gone[e]) ir_ssa_append_effect(f->g->unit, number, e);
  }
}

static void count_uses(const finder *f, uint32_t number) {
  const ssa_block *block = ssa_block_at(f->g->unit, number);
  for (int list = 0; list < 2; list++)
    for (uint32_t v = list == 0 ? block->first_phi : block->first_effect; v != SSA_NONE; v = gpu_insn(f->g, v)->next)
      for (uint32_t i = 0; i < gpu_insn(f->g, v)->arg_count; i++) {
        f->uses[gpu_arg(f->g, v, i)]++;
        f->user[gpu_arg(f->g, v, i)] = v;
      }
}

hg_status hg_gpu_find_extremes(gpu_plan *g) {
  finder f = {.g = g};
  uint64_t values = g->unit->insns.count;
  f.uses = hg_allocate(g->allocator, values, 2 * sizeof *f.uses + 1);
  if (f.uses == NULL) return hg_fail_memory("the greatest of many", values);
  f.user = f.uses + values;
  f.is_gone = (uint8_t *)(f.user + values);
  hg_status status = HG_OK;
  for (uint32_t k = 0; k < g->order.count; k++) count_uses(&f, g->order.block[k]);
  for (uint32_t k = 0; k < g->order.count && status == HG_OK; k++) {
    int found = 0;
    status = find_in(&f, g->order.block[k], &found);
    if (found) list_again(&f, g->order.block[k]);
    g->shares_work |= found;
  }
  hg_release(g->allocator, f.uses);
  return status;
}
