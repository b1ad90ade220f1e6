/* stores.c - store-to-load forwarding and removal of stores that are overwritten, within a block.
 *
 * After the hash. Both need proof that the access is in bounds: an out-of-bounds store is dropped and a load of the
 * same place reads 0, and both are faults that must be reported. Between two accesses there must be no barrier or
 * fence, and no atomic or store that may alias them (aliasing.h). Accesses of other lanes between them would
 * be a race, about which nothing is promised. */
#include "compiler/optimise.h"

#include "atlas/tables.h"
#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/analyse.h"
#include "ir/ssa_walk.h"

typedef struct stores {
  const atlas_program *program;
  ssa_unit *unit;
  hg_analysis analysis;
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  uint32_t last[ATLAS_MAX_SYMBOLS + 2]; /* per alias class: the latest store; SSA_NONE: none that may be used */
} stores;

static void forget(stores *s) {
  for (uint32_t l = 0; l < hg_location_count(s->program); l++) s->last[l] = SSA_NONE;
}

/* At a barrier or fence: forgets all stores that other lanes may see. */
static void forget_shared(stores *s) {
  for (uint32_t l = 0; l < hg_location_count(s->program); l++)
    if (!hg_is_private(s->program, l)) s->last[l] = SSA_NONE;
}

/* Forgets all stores to memory that may alias this location. */
static void forget_group(stores *s, uint32_t location) {
  for (uint32_t l = 0; l < hg_location_count(s->program); l++)
    if (s->group[l] == s->group[location]) s->last[l] = SSA_NONE;
}

static int same_place(const stores *s, uint32_t a, uint32_t b) { /* of resolved arguments */
  const ssa_insn *x = ssa_insn_at(s->unit, a), *y = ssa_insn_at(s->unit, b);
  if (x->symbol != y->symbol || x->mode != y->mode || x->type != y->type || x->bits != y->bits ||
      x->phi_registers != y->phi_registers)
    return 0;
  for (uint32_t i = 0; i < hg_address_args(x); i++)
    if (ssa_args_of(s->unit, a)[i] != ssa_args_of(s->unit, b)[i]) return 0;
  return 1;
}

static void forward_stores(stores *s, uint32_t block, int *changed) {
  forget(s);
  for (uint32_t e = ssa_block_at(s->unit, block)->first_effect; e != SSA_NONE; e = ssa_insn_at(s->unit, e)->next) {
    uint32_t flags = atlas_op_flags(ssa_insn_at(s->unit, e)->op);
    if (hg_orders_all(ssa_insn_at(s->unit, e))) forget_shared(s);
    if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) continue;
    uint32_t *last = &s->last[hg_location_of(s->program, ssa_insn_at(s->unit, e))];
    if (flags & ATLAS_LOAD) {
      if (*last == SSA_NONE || !same_place(s, *last, e)) continue;
      ir_ssa_replace(s->unit, e, ssa_args_of(s->unit, *last)[hg_address_args(ssa_insn_at(s->unit, *last))]);
      *changed = 1;
      continue;
    }
    forget_group(s, hg_location_of(s->program, ssa_insn_at(s->unit, e)));
    if (flags & ATLAS_STORE && s->analysis.in_bounds[e] == HG_BELOW_EXTENT) *last = e;
  }
}

/* 1 if in some block an access of this kind follows a store to the same place, with no other store to that location in
 * between; otherwise there is nothing to do, and the analysis would waste its time. */
static int follows_store(stores *s, uint32_t kind) {
  for (uint32_t b = 0; b < s->unit->blocks.count; b++) {
    if (ssa_block_at(s->unit, b)->dead) continue;
    forget(s);
    for (uint32_t e = ssa_block_at(s->unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(s->unit, e)->next) {
      uint32_t flags = atlas_op_flags(ssa_insn_at(s->unit, e)->op);
      if (!(flags & (ATLAS_LOAD | ATLAS_STORE))) continue;
      uint32_t location = hg_location_of(s->program, ssa_insn_at(s->unit, e));
      if (flags & kind && s->last[location] != SSA_NONE && same_place(s, s->last[location], e)) return 1;
      if (flags & ATLAS_STORE) s->last[location] = e;
    }
  }
  return 0;
}

static hg_status analyse_stores(stores *s, const atlas_program *program, ssa_unit *unit) {
  static const hg_shape unknown = {0};
  hg_alias_groups(program, unit, s->group);
  return hg_analyse(program, unit, &unknown, &s->analysis);
}

hg_status hg_pass_forward_stores(const atlas_program *program, ssa_unit *unit, int *changed) {
  stores s = {.program = program, .unit = unit};
  ir_ssa_resolve_all(unit);
  if (!follows_store(&s, ATLAS_LOAD)) return HG_OK;
  hg_status status = analyse_stores(&s, program, unit);
  for (uint32_t b = 0; b < unit->blocks.count && status == HG_OK; b++)
    if (!ssa_block_at(unit, b)->dead) forward_stores(&s, b, changed);
  hg_analysis_release(unit, &s.analysis);
  ir_ssa_resolve_all(unit);
  return status;
}

/* Removes stores that a later one overwrites before anything can have read them. The walk keeps the latest store of
 * each location until a load, barrier or atomic that may alias it makes the store needed. */
static void remove_overwritten(stores *s, uint32_t block, int *changed) {
  ssa_block *b = ssa_block_at(s->unit, block);
  uint32_t before = SSA_NONE;
  forget(s);
  for (uint32_t e = b->first_effect; e != SSA_NONE; e = ssa_insn_at(s->unit, e)->next) {
    uint32_t flags = atlas_op_flags(ssa_insn_at(s->unit, e)->op);
    if (hg_orders_all(ssa_insn_at(s->unit, e))) forget_shared(s);
    if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) continue;
    uint32_t location = hg_location_of(s->program, ssa_insn_at(s->unit, e)), earlier = s->last[location];
    int overwrites = flags & ATLAS_STORE && earlier != SSA_NONE && same_place(s, earlier, e) &&
                     s->analysis.in_bounds[e] == HG_BELOW_EXTENT;
    if (overwrites) { /* the list is cleaned below */
      ssa_insn_at(s->unit, earlier)->op = SSA_DELETED;
      ssa_insn_at(s->unit, earlier)->arg_count = 0;
      *changed = 1;
    }
    forget_group(s, location);
    if (flags & ATLAS_STORE) s->last[location] = e;
  }
  b->last_effect = SSA_NONE;
  for (uint32_t e = b->first_effect; e != SSA_NONE; e = ssa_insn_at(s->unit, e)->next) {
    if (ssa_insn_at(s->unit, e)->op == SSA_DELETED) {
      if (before == SSA_NONE) b->first_effect = ssa_insn_at(s->unit, e)->next;
      else ssa_insn_at(s->unit, before)->next = ssa_insn_at(s->unit, e)->next;
      continue;
    }
    before = e;
    b->last_effect = e;
  }
}

hg_status hg_pass_remove_stores(const atlas_program *program, ssa_unit *unit, int *changed) {
  stores s = {.program = program, .unit = unit};
  ir_ssa_resolve_all(unit);
  if (!follows_store(&s, ATLAS_STORE)) return HG_OK;
  hg_status status = analyse_stores(&s, program, unit);
  for (uint32_t b = 0; b < unit->blocks.count && status == HG_OK; b++)
    if (!ssa_block_at(unit, b)->dead) remove_overwritten(&s, b, changed);
  hg_analysis_release(unit, &s.analysis);
  return status;
}
