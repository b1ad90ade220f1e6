/* rematerialise.c - loads of read-only memory, loaded again where they are used (out_of_ssa.h).
 *
 * The canonical form merges a load in a loop with an equal one behind it. If lanes leave the loop at different times,
 * the value loaded in the loop is not uniform for the verifier (docs/uniformity.md), while that of the second load was.
 * So a load that nothing aliases a write to, and what is computed from it, is rematerialised in each block that uses
 * it. The canonical form merges all copies into the first again, provided that the first is needed in its own block: if
 * not, it would be dead and another would stand first. */
#include "compiler/canon/out_of_ssa.h"

#include "base/error.h"
#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"

typedef struct rematerialiser {
  const atlas_program *program;
  ssa_unit *unit;
  const ssa_order *order;
  uint32_t count;    /* of values before any was copied */
  uint8_t *needed;   /* per value: an effect, branch or edge of its own block depends on it */
  uint8_t *repeated; /* per value: a load of read-only memory, or computed from one */
  uint32_t *copy;    /* per value: its copy in the block `copied_in` */
  uint32_t *copied_in;
  uint32_t block;
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  hg_array items, stack;
} rematerialiser;

static hg_status out_of_memory(void) { return hg_fail_memory("repeated loads", sizeof(ssa_insn)); }

static const ssa_insn *insn_at(const rematerialiser *r, uint32_t value) { return ssa_insn_at(r->unit, value); }
static uint32_t arg(const rematerialiser *r, uint32_t value, uint32_t i) { return ssa_args_of(r->unit, value)[i]; }

static int is_repeatable_load(const rematerialiser *r, const ssa_insn *insn) {
  return insn->op != SSA_PHI && !hg_is_pure(insn) && atlas_op_lookup(insn->op)->flags & ATLAS_LOAD &&
         hg_is_read_only(r->program, r->group, hg_location_of(r->program, insn));
}

static hg_status list_items(rematerialiser *r, uint32_t b) {
  r->items.count = 0;
  for (uint32_t v = ssa_block_at(r->unit, b)->first_effect; v != SSA_NONE; v = insn_at(r, v)->next)
    if (!hg_array_push(&r->unit->allocator, &r->items, v)) return out_of_memory();
  return HG_OK;
}

/* The argument of a phi for the edge from b, which ends in a jump. */
static uint32_t *edge_arg(const rematerialiser *r, uint32_t b, uint32_t phi) {
  return &ssa_args_of(r->unit, phi)[r->order->edge[2 * (size_t)b]];
}

static uint32_t first_edge_phi(const rematerialiser *r, uint32_t b) {
  const ssa_block *block = ssa_block_at(r->unit, b);
  return block->end == SSA_JUMP ? ssa_block_at(r->unit, block->successor[0])->first_phi : SSA_NONE;
}

/* ---- which values are repeated ----------------------------------------------------------------------------------- */

static void mark_needed(const rematerialiser *r, uint32_t value, uint32_t b) {
  if (insn_at(r, value)->block == b) r->needed[value] = 1;
}

static hg_status find_needed(rematerialiser *r, uint32_t b) {
  HG_TRY(list_items(r, b));
  const uint32_t *items = r->items.data, condition = ssa_block_at(r->unit, b)->condition;
  if (condition != SSA_NONE) mark_needed(r, condition, b);
  for (uint32_t phi = first_edge_phi(r, b); phi != SSA_NONE; phi = insn_at(r, phi)->next)
    mark_needed(r, *edge_arg(r, b, phi), b);
  for (size_t i = r->items.count; i-- > 0;) {
    const ssa_insn *insn = insn_at(r, items[i]);
    if ((hg_is_pure(insn) || is_repeatable_load(r, insn)) && !r->needed[items[i]]) continue;
    for (uint32_t k = 0; k < insn->arg_count; k++) mark_needed(r, arg(r, items[i], k), b);
  }
  return HG_OK;
}

static void find_repeated(const rematerialiser *r, uint32_t b) {
  for (uint32_t v = ssa_block_at(r->unit, b)->first_effect; v != SSA_NONE; v = insn_at(r, v)->next) {
    const ssa_insn *insn = insn_at(r, v);
    r->repeated[v] = (uint8_t)(r->needed[v] && is_repeatable_load(r, insn));
    for (uint32_t k = 0; k < insn->arg_count && hg_is_pure(insn); k++) r->repeated[v] |= r->repeated[arg(r, v, k)];
  }
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* 1 if the value is rematerialised in this block and has no copy there yet. */
static int needs_copy(const rematerialiser *r, uint32_t value) {
  return value < r->count && r->repeated[value] && insn_at(r, value)->block != r->block &&
         r->copied_in[value] != r->block;
}

/* The value or its copy in this block. */
static uint32_t local_value(const rematerialiser *r, uint32_t value) {
  return value < r->count && r->repeated[value] && insn_at(r, value)->block != r->block ? r->copy[value] : value;
}

static hg_status append_copy(const rematerialiser *r, uint32_t value) {
  const ssa_insn of = *insn_at(r, value);
  uint32_t copy = ir_ssa_add(r->unit, &of, of.arg_count);
  if (copy == SSA_NONE) return out_of_memory();
  for (uint32_t k = 0; k < of.arg_count; k++) ssa_args_of(r->unit, copy)[k] = local_value(r, arg(r, value, k));
  ir_ssa_append_effect(r->unit, r->block, copy);
  r->copy[value] = copy;
  r->copied_in[value] = r->block;
  return HG_OK;
}

/* Copies the value and what it is computed from into this block, arguments first. */
static hg_status rematerialise(rematerialiser *r, uint32_t value, uint32_t *out) {
  const hg_allocator *allocator = &r->unit->allocator;
  r->stack.count = 0;
  if (needs_copy(r, value) && !hg_array_push(allocator, &r->stack, value)) return out_of_memory();
  while (r->stack.count > 0) {
    uint32_t top = ((uint32_t *)r->stack.data)[r->stack.count - 1], k = 0, count = insn_at(r, top)->arg_count;
    while (k < count && !needs_copy(r, arg(r, top, k))) k++;
    if (k < count) {
      if (!hg_array_push(allocator, &r->stack, arg(r, top, k))) return out_of_memory();
      continue;
    }
    r->stack.count--;
    if (needs_copy(r, top)) HG_TRY(append_copy(r, top));
  }
  *out = local_value(r, value);
  return HG_OK;
}

/* 1 for the argument of a back edge: it is as uniform as the iteration it comes from. */
static int closes_loop_of(const rematerialiser *r, uint32_t header, uint32_t value) {
  uint32_t block = insn_at(r, value)->block;
  return block != SSA_NONE && ssa_dominates(r->order, header, block);
}

static hg_status rematerialise_in(rematerialiser *r, uint32_t b) {
  HG_TRY(list_items(r, b));
  ssa_block *block = ssa_block_at(r->unit, b);
  uint32_t value = SSA_NONE;
  r->block = b;
  block->first_effect = block->last_effect = SSA_NONE;
  for (size_t i = 0; i < r->items.count; i++) {
    uint32_t item = ((const uint32_t *)r->items.data)[i];
    for (uint32_t k = 0; k < insn_at(r, item)->arg_count; k++) {
      HG_TRY(rematerialise(r, arg(r, item, k), &value));
      ssa_args_of(r->unit, item)[k] = value;
    }
    ir_ssa_append_effect(r->unit, b, item);
  }
  if (block->condition != SSA_NONE) HG_TRY(rematerialise(r, block->condition, &block->condition));
  for (uint32_t phi = first_edge_phi(r, b); phi != SSA_NONE; phi = insn_at(r, phi)->next) {
    if (closes_loop_of(r, block->successor[0], *edge_arg(r, b, phi))) continue;
    HG_TRY(rematerialise(r, *edge_arg(r, b, phi), &value));
    *edge_arg(r, b, phi) = value;
  }
  return HG_OK;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static hg_status rematerialise_all(rematerialiser *r) {
  for (uint32_t k = 0; k < r->order->count; k++) HG_TRY(find_needed(r, r->order->block[k]));
  for (uint32_t k = 0; k < r->order->count; k++) find_repeated(r, r->order->block[k]);
  for (uint32_t k = 0; k < r->order->count; k++) HG_TRY(rematerialise_in(r, r->order->block[k]));
  return HG_OK;
}

hg_status hg_rematerialise_loads(const atlas_program *program, ssa_unit *unit, const ssa_order *order) {
  rematerialiser r = {.program = program, .unit = unit, .order = order, .count = (uint32_t)unit->insns.count};
  r.items.element_size = r.stack.element_size = sizeof(uint32_t);
  r.copy = hg_allocate(&unit->allocator, r.count, 2 * sizeof(uint32_t) + 2);
  if (r.copy == NULL) return out_of_memory();
  r.copied_in = r.copy + r.count;
  r.needed = (uint8_t *)(r.copied_in + r.count);
  r.repeated = r.needed + r.count;
  for (uint32_t v = 0; v < r.count; v++) r.copied_in[v] = SSA_NONE;
  hg_alias_groups(program, unit, r.group);
  hg_status status = rematerialise_all(&r);
  hg_release(&unit->allocator, r.copy);
  hg_array_release(&unit->allocator, &r.items);
  hg_array_release(&unit->allocator, &r.stack);
  return status;
}
