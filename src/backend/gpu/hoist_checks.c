/* hoist_checks.c - hoists the tests of access groups out of loops: tests that, once they hold before the loop, hold in
 * every iteration.
 *
 * In `index = start; count = rounds; do { ... x[index + offset] ...; index += step; } while (--count != 0);` no index
 * exceeds start + (rounds - 1) * step + offset as an exact number; one that wraps is smaller. If that number is below
 * the extent and the accesses of the first iteration are aligned, no iteration needs a test: right behind a barrier all
 * threads would wait for its result. Otherwise each iteration makes its own test as before.
 *
 * A group qualifies if its loop has one entry and one back edge, which is taken only if a counter that decreases by one
 * is not 0; and if the index of each of its runs is the sum of a phi of the loop's header and of loop-invariant values,
 * as is the phi's next value. A group behind a test that skips the round in which such a counter is 1 runs one round
 * less: for example, what loads the next tile of a product is not checked for the tile behind the last one. */
#include "backend/gpu/plan_passes.h"

typedef struct hoister {
  gpu_plan *g;
  uint32_t header, latch, entry; /* blocks */
  uint32_t side;                 /* which operand of the header's phis comes from the latch */
} hoister;

static int is_phi_of_head(const hoister *f, uint32_t value) {
  return gpu_insn(f->g, value)->op == SSA_PHI && gpu_insn(f->g, value)->block == f->header;
}

/* The loop around a block, if it has one entry and one back edge. */
static int find_loop(hoister *f, uint32_t block) {
  f->header = f->g->analysis.loops.loop[block];
  if (f->header == SSA_NONE || ssa_block_at(f->g->unit, f->header)->library) return 0;
  const hg_array *from = &ssa_block_at(f->g->unit, f->header)->predecessors;
  if (from->count != 2) return 0;
  const uint32_t *block_at = from->data;
  f->side = ir_in_loop(&f->g->analysis.loops, f->header, block_at[1]) ? 1 : 0;
  f->latch = block_at[f->side];
  f->entry = block_at[1 - f->side];
  return ir_in_loop(&f->g->analysis.loops, f->header, f->latch) &&
         !ir_in_loop(&f->g->analysis.loops, f->header, f->entry);
}

static int is_constant(const hoister *f, uint32_t value, uint64_t bits) {
  return gpu_insn(f->g, value)->op == SSA_CONST && gpu_insn(f->g, value)->bits == bits;
}

/* 1 for a phi of the header that decreases by one. */
static int is_counter(const hoister *f, uint32_t value) {
  if (!is_phi_of_head(f, value) || gpu_insn(f->g, value)->type != ATLAS_u32) return 0;
  uint32_t next = gpu_arg(f->g, value, f->side);
  return gpu_insn(f->g, next)->op == ATLAS_OP_add && gpu_arg(f->g, next, 0) == value &&
         is_constant(f, gpu_arg(f->g, next, 1), UINT32_MAX);
}

static uint32_t start_of(const hoister *f, uint32_t counter) { return gpu_arg(f->g, counter, 1 - f->side); }

/* What a branch compares with a number, if it goes to block `to` exactly when the two differ. SSA_NONE: it is no such
 * branch. */
static uint32_t compared_with(const hoister *f, uint32_t block, uint64_t bits, uint32_t to) {
  const ssa_block *from = ssa_block_at(f->g->unit, block);
  if (from->end != SSA_BRANCH || from->successor[0] == from->successor[1]) return SSA_NONE;
  const ssa_insn *test = gpu_insn(f->g, from->condition);
  if ((test->op != ATLAS_OP_set_eq && test->op != ATLAS_OP_set_ne) || test->type2 != ATLAS_u32) return SSA_NONE;
  int is_equal = (test->op == ATLAS_OP_set_eq) == (from->successor[0] == to);
  if (is_equal || !is_constant(f, gpu_arg(f->g, from->condition, 1), bits)) return SSA_NONE;
  return gpu_arg(f->g, from->condition, 0);
}

/* A counter whose next value decides the back edge: it is taken only if that is not 0. SSA_NONE: there is none. */
static uint32_t find_counter(const hoister *f) {
  uint32_t next = compared_with(f, f->latch, 0, f->header);
  if (next == SSA_NONE || gpu_insn(f->g, next)->arg_count == 0) return SSA_NONE;
  uint32_t phi = gpu_arg(f->g, next, 0);
  return is_counter(f, phi) && gpu_arg(f->g, phi, f->side) == next ? phi : SSA_NONE;
}

static int leaves_loop(const hoister *f, uint32_t block, uint32_t not_to) {
  const uint32_t *to = ssa_block_at(f->g->unit, block)->successor;
  return !ir_in_loop(&f->g->analysis.loops, f->header, to[to[0] == not_to]);
}

/* A counter that exceeds 1 where the block runs: if it is 1 the loop ends, perhaps later, or is left. SSA_NONE: none is
 * known. */
static uint32_t find_last(const hoister *f, uint32_t block, uint32_t counter) {
  while (block != f->header) {
    const hg_array *from = &ssa_block_at(f->g->unit, block)->predecessors;
    const uint32_t *before = from->data;
    uint32_t of = from->count == 1 ? compared_with(f, before[0], 1, block) : SSA_NONE;
    if (of != SSA_NONE && is_counter(f, of) && (of == counter || leaves_loop(f, before[0], block))) return of;
    block = f->g->order.dominator[block];
  }
  return SSA_NONE;
}

static int is_invariant(const void *foreseer_at, uint32_t value) {
  const hoister *f = foreseer_at;
  return hg_is_invariant(f->g->unit, &f->g->analysis.loops, f->header, value);
}

/* 1 if the value is a phi of the header plus `terms`, all of 32 bits. The phi must be the given one unless that is
 * SSA_NONE. */
static int take_sum_apart(const hoister *f, uint32_t value, uint32_t *phi, hg_terms *terms) {
  uint32_t rest = hg_take_terms(f->g->unit, value, is_invariant, f, terms);
  if (*phi == SSA_NONE && is_phi_of_head(f, rest)) *phi = rest;
  return rest == *phi && terms->products == 0 && gpu_insn(f->g, value)->type == ATLAS_u32;
}

static int are_aligned(const hoister *f, const hg_terms *terms, uint32_t width) {
  for (uint32_t i = 0; i < terms->count; i++)
    if (f->g->analysis.fact[terms->value[i]].alignment % width != 0) return 0;
  return 1;
}

static int hoist_run(const hoister *f, const gpu_access_group *group, const gpu_access_run *run, gpu_sweep *sweep) {
  uint32_t phi = SSA_NONE;
  *sweep = (gpu_sweep){.step = {.count = 0}};
  if (run->checks_least ||
      !take_sum_apart(f, gpu_arg(f->g, group->value[run->first], 0), &phi, &sweep->offset))
    return 0;
  sweep->start = gpu_arg(f->g, phi, 1 - f->side);
  return take_sum_apart(f, gpu_arg(f->g, phi, f->side), &phi, &sweep->step) &&
         are_aligned(f, &sweep->offset, run->width) && are_aligned(f, &sweep->step, run->width);
}

static hg_status hoist(hoister *f, uint32_t number) {
  gpu_access_group *group = (gpu_access_group *)f->g->group.data + number;
  gpu_hoisted seen = {.group = number};
  if (!group->is_tested || group->run_count > GPU_MOST_SWEEPS || f->g->hoisted.count == GPU_MOST_HOISTED ||
      !find_loop(f, gpu_insn(f->g, group->in_order[0])->block))
    return HG_OK;
  uint32_t counter = find_counter(f);
  if (counter == SSA_NONE) return HG_OK;
  uint32_t last = find_last(f, gpu_insn(f->g, group->in_order[0])->block, counter);
  seen.block = f->entry;
  seen.rounds = start_of(f, counter);
  seen.before = last != SSA_NONE ? start_of(f, last) : SSA_NONE;
  for (uint32_t r = 0; r < group->run_count; r++)
    if (!hoist_run(f, group, &group->run[r], &seen.sweep[r])) return HG_OK;
  if (hg_array_append(f->g->allocator, &f->g->hoisted, &seen, 1) == NULL)
    return hg_fail_memory("the plan of a kernel", sizeof seen);
  group->hoisted = (uint32_t)f->g->hoisted.count;
  return HG_OK;
}

hg_status hg_gpu_hoist_checks(gpu_plan *g) {
  hoister f = {.g = g};
  for (uint32_t i = 0; i < g->groups_outside; i++) HG_TRY(hoist(&f, i));
  return HG_OK;
}
