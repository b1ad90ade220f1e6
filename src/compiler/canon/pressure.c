/* pressure.c - reorders each block for low register pressure (out_of_ssa.h).
 *
 * The canonical form sorts every effect as early as it may come: of a hundred pairs of a load and a store, all loads
 * come first if they may. Here the effects that write keep their order, and everything else sinks to its first use: a
 * load sinks past all stores but those that may alias it (as canon_order.c sees it, so that the canonical form is
 * the same again). Of several arguments the one that needs most registers is computed first (Sethi and Ullman, "The
 * Generation of Optimal Code for Arithmetic Expressions", 1970). */
#include "compiler/canon/out_of_ssa.h"

#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"

enum { MAX_ARGS = 8 }; /* of an instruction */

typedef struct reorderer {
  const atlas_program *program;
  ssa_unit *unit;
  uint32_t block;
  uint32_t *weight;  /* per value: its Sethi-Ullman number, the registers it takes to compute it in this block */
  uint8_t *pending;  /* per value: of this block, and not in the new list yet */
  uint32_t *next_of; /* per value: the next pending load of its group */
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  uint8_t read_only[ATLAS_MAX_SYMBOLS + 2];
  uint32_t first[ATLAS_MAX_SYMBOLS + 2], last[ATLAS_MAX_SYMBOLS + 2]; /* per group: list of pending loads */
  hg_array items;    /* uint32_t: the old list */
  hg_array stack;    /* uint32_t */
} reorderer;

static hg_status out_of_memory(void) { return hg_fail_memory("the order of a block", sizeof(uint32_t)); }

static const ssa_insn *insn_at(const reorderer *p, uint32_t value) { return ssa_insn_at(p->unit, value); }

static int is_predicate(const reorderer *p, uint32_t value) { return insn_at(p, value)->type == SSA_PREDICATE; }

/* Pure values and effects without side effects. Collectives stay in place: every lane of the block takes part. */
static int is_movable(const ssa_insn *insn) {
  return hg_is_pure(insn) || (hg_only_reads(insn) && !hg_is_collective(insn));
}

/* ---- one value and what it needs --------------------------------------------------------------------------------- */

/* Predicates last, because there are few registers for them; of the others the heaviest first. */
static uint32_t urgency(const reorderer *p, uint32_t value) { return is_predicate(p, value) ? 0 : p->weight[value]; }

static uint32_t most_urgent(const reorderer *p, uint32_t value) {
  uint32_t found = SSA_NONE;
  for (uint32_t i = 0; i < insn_at(p, value)->arg_count; i++) {
    uint32_t arg = ssa_args_of(p->unit, value)[i];
    if (p->pending[arg] && (found == SSA_NONE || urgency(p, arg) > urgency(p, found))) found = arg;
  }
  return found;
}

static hg_status emit(reorderer *p, uint32_t value) {
  const hg_allocator *allocator = &p->unit->allocator;
  p->stack.count = 0;
  if (p->pending[value] && !hg_array_push(allocator, &p->stack, value)) return out_of_memory();
  while (p->stack.count > 0) {
    uint32_t top = ((uint32_t *)p->stack.data)[p->stack.count - 1], arg = most_urgent(p, top);
    if (arg != SSA_NONE) {
      if (!hg_array_push(allocator, &p->stack, arg)) return out_of_memory();
      continue;
    }
    p->stack.count--;
    p->pending[top] = 0;
    ir_ssa_append_effect(p->unit, p->block, top);
  }
  return HG_OK;
}

/* The i-th argument is computed while the i before it are kept in registers. */
static void find_weight(const reorderer *p, uint32_t value) {
  uint32_t arg_weights[MAX_ARGS], count = 0;
  for (uint32_t i = 0; i < insn_at(p, value)->arg_count && count < MAX_ARGS; i++) {
    uint32_t arg = ssa_args_of(p->unit, value)[i], at = count++;
    uint32_t weight = p->pending[arg] ? p->weight[arg] : 0;
    for (; at > 0 && arg_weights[at - 1] < weight; at--) arg_weights[at] = arg_weights[at - 1];
    arg_weights[at] = weight;
  }
  p->weight[value] = 1;
  for (uint32_t i = 0; i < count; i++)
    if (arg_weights[i] > 0 && arg_weights[i] + i > p->weight[value]) p->weight[value] = arg_weights[i] + i;
}

/* ---- loads that wait --------------------------------------------------------------------------------------------- */

static void delay_load(reorderer *p, uint32_t value) {
  uint32_t location = hg_location_of(p->program, insn_at(p, value)), group = p->group[location];
  if (p->read_only[location]) return;
  p->next_of[value] = SSA_NONE;
  if (p->first[group] == SSA_NONE) p->first[group] = value;
  else p->next_of[p->last[group]] = value;
  p->last[group] = value;
}

static hg_status emit_group(reorderer *p, uint32_t group) {
  for (uint32_t load = p->first[group]; load != SSA_NONE; load = p->next_of[load]) HG_TRY(emit(p, load));
  p->first[group] = SSA_NONE;
  return HG_OK;
}

/* The pending loads that must come before a write, a barrier or a fence. */
static hg_status emit_loads_before(reorderer *p, uint32_t value) {
  const ssa_insn *insn = insn_at(p, value);
  if (hg_orders_all(insn)) {
    for (uint32_t g = 0; g < hg_location_count(p->program); g++)
      if (!hg_is_private(p->program, g)) HG_TRY(emit_group(p, g));
  } else if (atlas_op_lookup(insn->op)->flags & (ATLAS_STORE | ATLAS_ATOMIC)) {
    return emit_group(p, p->group[hg_location_of(p->program, insn)]);
  }
  return HG_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static hg_status empty_list(reorderer *p) {
  ssa_block *block = ssa_block_at(p->unit, p->block);
  p->items.count = 0;
  for (uint32_t v = block->first_effect; v != SSA_NONE; v = insn_at(p, v)->next) {
    find_weight(p, v);
    p->pending[v] = 1;
    if (!hg_array_push(&p->unit->allocator, &p->items, v)) return out_of_memory();
  }
  block->first_effect = block->last_effect = SSA_NONE;
  return HG_OK;
}

static hg_status reorder_block(reorderer *p, uint32_t b) {
  p->block = b;
  HG_TRY(empty_list(p));
  const uint32_t *items = p->items.data;
  for (uint32_t l = 0; l < hg_location_count(p->program); l++) p->first[l] = SSA_NONE;
  for (size_t i = 0; i < p->items.count; i++) {
    const ssa_insn *insn = insn_at(p, items[i]);
    if (is_movable(insn)) {
      if (atlas_op_lookup(insn->op)->flags & ATLAS_LOAD) delay_load(p, items[i]);
      continue;
    }
    HG_TRY(emit_loads_before(p, items[i]));
    HG_TRY(emit(p, items[i]));
  }
  for (size_t i = p->items.count; i-- > 0;) /* what only other blocks use: users before arguments */
    if (!is_predicate(p, items[i])) HG_TRY(emit(p, items[i]));
  for (size_t i = p->items.count; i-- > 0;) HG_TRY(emit(p, items[i]));
  return HG_OK;
}

hg_status hg_lower_pressure(const atlas_program *program, ssa_unit *unit, const ssa_order *order) {
  uint64_t n = unit->insns.count;
  reorderer p = {.program = program, .unit = unit};
  p.items.element_size = p.stack.element_size = sizeof(uint32_t);
  p.weight = hg_allocate(&unit->allocator, n, 2 * sizeof(uint32_t) + 1);
  if (p.weight == NULL) return out_of_memory();
  p.next_of = p.weight + n;
  p.pending = (uint8_t *)(p.next_of + n);
  hg_alias_groups(program, unit, p.group);
  for (uint32_t l = 0; l < hg_location_count(program); l++)
    p.read_only[l] = (uint8_t)hg_is_read_only(program, p.group, l);
  hg_status status = HG_OK;
  for (uint32_t k = 0; k < order->count && status == HG_OK; k++) status = reorder_block(&p, order->block[k]);
  hg_release(&unit->allocator, p.weight);
  hg_array_release(&unit->allocator, &p.items);
  hg_array_release(&unit->allocator, &p.stack);
  return status;
}
