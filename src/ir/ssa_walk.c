/* ssa_walk.c - one canonical walk over a unit. */
#include "ir/ssa_walk.h"

#include "base/error.h"

typedef struct walker {
  const ssa_unit *unit;
  hg_array *values;
  hg_array stack;  /* pairs: value, next argument */
  uint8_t *seen;   /* per value */
} walker;

static hg_status out_of_memory(void) { return hg_fail_memory("a walk over the program", 0); }

static hg_status emit(walker *w, uint32_t value) {
  w->seen[value] = 1;
  return hg_array_push(&w->unit->allocator, w->values, value) ? HG_OK : out_of_memory();
}

static hg_status push(walker *w, uint32_t value) {
  const hg_allocator *allocator = &w->unit->allocator;
  if (w->seen[value]) return HG_OK;
  if (ssa_insn_at(w->unit, value)->arg_count == 0) return emit(w, value);
  w->seen[value] = 1;
  return hg_array_push(allocator, &w->stack, value) && hg_array_push(allocator, &w->stack, 0) ? HG_OK : out_of_memory();
}

/* Emits a pure value and the pure values it depends on, arguments first. Phis and effects are emitted by walk_block. */
static hg_status visit_value(walker *w, uint32_t value) {
  if (ssa_insn_at(w->unit, value)->block != SSA_NONE) return HG_OK;
  HG_TRY(push(w, value));
  while (w->stack.count > 0) {
    uint32_t *frame = (uint32_t *)w->stack.data + w->stack.count - 2;
    const ssa_insn *insn = ssa_insn_at(w->unit, frame[0]);
    if (frame[1] == insn->arg_count) {
      uint32_t done = frame[0];
      w->stack.count -= 2;
      HG_TRY(emit(w, done));
      continue;
    }
    uint32_t arg = ssa_args_of(w->unit, frame[0])[frame[1]++];
    if (ssa_insn_at(w->unit, arg)->block == SSA_NONE) HG_TRY(push(w, arg));
  }
  return HG_OK;
}

static hg_status visit_args(walker *w, uint32_t value) {
  for (uint32_t i = 0; i < ssa_insn_at(w->unit, value)->arg_count; i++)
    HG_TRY(visit_value(w, ssa_args_of(w->unit, value)[i]));
  return HG_OK;
}

/* The arguments of a successor's phis for this edge. */
static hg_status visit_edge(walker *w, uint32_t edge, uint32_t successor) {
  for (uint32_t phi = ssa_block_at(w->unit, successor)->first_phi; phi != SSA_NONE;
       phi = ssa_insn_at(w->unit, phi)->next)
    HG_TRY(visit_value(w, ssa_args_of(w->unit, phi)[edge]));
  return HG_OK;
}

static hg_status walk_block(walker *w, const ssa_order *order, uint32_t b) {
  const ssa_block *block = ssa_block_at(w->unit, b);
  for (uint32_t phi = block->first_phi; phi != SSA_NONE; phi = ssa_insn_at(w->unit, phi)->next) HG_TRY(emit(w, phi));
  for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(w->unit, e)->next) {
    HG_TRY(visit_args(w, e));
    HG_TRY(emit(w, e));
  }
  if (block->condition != SSA_NONE) HG_TRY(visit_value(w, block->condition));
  for (int s = 0; s < 2; s++)
    if (block->successor[s] != SSA_NONE)
      HG_TRY(visit_edge(w, order->edge[2 * (size_t)b + (unsigned)s], block->successor[s]));
  return HG_OK;
}

hg_status ir_ssa_walk(const ssa_unit *unit, const ssa_order *order, hg_array *values) {
  return ir_ssa_walk_blocks(unit, order, values, NULL);
}

hg_status ir_ssa_walk_blocks(const ssa_unit *unit, const ssa_order *order, hg_array *values, uint32_t *ends) {
  walker w = {.unit = unit, .values = values, .stack = {.element_size = sizeof(uint32_t)}};
  hg_status status = HG_OK;
  w.seen = hg_allocate(&unit->allocator, unit->insns.count, 1);
  if (w.seen == NULL || !hg_array_reserve(&unit->allocator, values, values->count + unit->insns.count)) {
    hg_release(&unit->allocator, w.seen);
    return out_of_memory();
  }
  for (uint32_t k = 0; k < order->count && status == HG_OK; k++) {
    status = walk_block(&w, order, order->block[k]);
    if (ends != NULL) ends[k] = (uint32_t)values->count;
  }
  hg_release(&unit->allocator, w.seen);
  hg_array_release(&unit->allocator, &w.stack);
  return status;
}

void ir_ssa_resolve_all(ssa_unit *unit) {
  if (!unit->replaced) return;
  unit->replaced = 0;
  const uint32_t *forward = unit->forward.data;
  uint32_t *args = unit->args.data; /* of all values, deleted ones too */
  for (size_t i = 0; i < unit->args.count; i++)
    if (args[i] != SSA_NONE && forward[args[i]] != args[i]) args[i] = ir_ssa_resolve_far(unit, args[i]);
  for (uint32_t b = 0; b < unit->blocks.count; b++) {
    ssa_block *block = ssa_block_at(unit, b);
    if (!block->dead && block->condition != SSA_NONE) block->condition = ir_ssa_resolve(unit, block->condition);
  }
}
