/* local_zeros.c - the zeros of a local array are not observable if on every way to its first load, stores write all of
 * its elements: by constant indices, and in counted loops on that way. A loop is followed round by round, since arrays
 * are small. */
#include "compiler/analysis/local_zeros.h"

#include "atlas/arith.h"
#include "atlas/tables.h"
#include "compiler/analysis/induction.h"

#include <string.h>

typedef struct array_walk {
  const ssa_unit *unit;
  const ssa_order *order;
  const hg_analysis *analysis;
  uint32_t symbol, count;
  uint32_t loads; /* the innermost block on all ways to a load; SSA_NONE: there is none */
  uint32_t stored;
  uint8_t is_stored[ATLAS_MAX_LOCAL_BYTES]; /* per element */
} array_walk;

static const ssa_insn *insn_at(const array_walk *a, uint32_t value) { return ssa_insn_at(a->unit, value); }

static int is_access(const array_walk *a, const ssa_insn *insn, uint32_t kind) {
  uint32_t flags = atlas_op_flags(insn->op);
  return flags & ATLAS_SPACE_LOCAL && flags & kind && insn->symbol == a->symbol;
}

static void find_loads(array_walk *a) {
  a->loads = SSA_NONE;
  for (uint32_t k = 0; k < a->order->count; k++) {
    uint32_t b = a->order->block[k], e = ssa_block_at(a->unit, b)->first_effect;
    while (e != SSA_NONE && !is_access(a, insn_at(a, e), ATLAS_LOAD)) e = insn_at(a, e)->next;
    if (e == SSA_NONE) continue;
    if (a->loads == SSA_NONE) a->loads = b;
    while (!ssa_dominates(a->order, a->loads, b)) a->loads = a->order->dominator[a->loads];
  }
}

static void note_store(array_walk *a, int64_t index) {
  if (index < 0 || index >= (int64_t)a->count || a->is_stored[index]) return;
  a->is_stored[index] = 1;
  a->stored++;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* The only block that a loop is left from; SSA_NONE. */
static uint32_t exit_of(const array_walk *a, uint32_t header) {
  const ir_loops *loops = &a->analysis->loops;
  uint32_t found = SSA_NONE;
  for (uint32_t k = a->order->position[header]; k < a->order->count; k++) {
    uint32_t b = a->order->block[k];
    const ssa_block *block = ssa_block_at(a->unit, b);
    if (!ir_in_loop(loops, header, b)) continue;
    for (int s = 0; s < 2; s++) {
      if (block->successor[s] == SSA_NONE || ir_in_loop(loops, header, block->successor[s])) continue;
      if (found != SSA_NONE) return SSA_NONE;
      found = b;
    }
  }
  return found;
}

static int is_in_every_round(const array_walk *a, uint32_t header, uint32_t block) {
  const hg_array *from = &ssa_block_at(a->unit, header)->predecessors;
  for (size_t i = 0; i < from->count; i++) {
    uint32_t p = ((const uint32_t *)from->data)[i];
    if (a->order->position[p] == SSA_NONE || !ssa_dominates(a->order, header, p)) continue;
    if (!ssa_dominates(a->order, block, p)) return 0;
  }
  return 1;
}

/* A loop whose phi is known in each round, and whose end is. */
typedef struct counted_loop {
  uint8_t type;
  uint64_t value, step;
  const ssa_insn *compare;
  uint32_t side;     /* which side of the comparison is the phi, or its next value */
  uint8_t is_next;   /* 1: the next value is compared */
  uint64_t end;      /* the number it is compared with */
  uint8_t leaves;    /* the result of the comparison that leaves the loop */
} counted_loop;

static int read_comparison(const array_walk *a, uint32_t exit, uint32_t header, uint32_t phi, counted_loop *l) {
  const ssa_block *block = ssa_block_at(a->unit, exit);
  if (block->end != SSA_BRANCH) return 0;
  l->compare = insn_at(a, block->condition);
  if (!atlas_is_comparison(l->compare->op) || l->compare->type2 != l->type) return 0;
  const uint32_t *args = ssa_args_of(a->unit, block->condition);
  l->leaves = (uint8_t)ir_in_loop(&a->analysis->loops, header, block->successor[1]);
  for (l->side = 0; l->side < 2; l->side++) {
    uint32_t value = args[l->side], end = args[1 - l->side];
    if (insn_at(a, end)->op != SSA_CONST) continue;
    l->end = insn_at(a, end)->bits;
    l->is_next = value != phi;
    for (uint32_t i = 0, from, side; l->is_next && i < insn_at(a, phi)->arg_count; i++)
      if (hg_edge_of(a->unit, a->order, phi, i, &from, &side) == HG_EDGE_COMES_BACK &&
          ssa_args_of(a->unit, phi)[i] != value)
        return 0;
    return 1;
  }
  return 0;
}

static int leaves(const counted_loop *l) {
  uint64_t ends[2], value = l->value + (l->is_next ? l->step : 0), mask = atlas_mask((atlas_type)l->type);
  ends[l->side] = value & mask;
  ends[1 - l->side] = l->end;
  return atlas_compare(l->compare->op, (atlas_type)l->type, ends[0], ends[1]) == l->leaves;
}

/* Notes a store whose index is a phi of the loop around it, if no way to the loads bypasses the loop. */
static void note_loop(array_walk *a, const ssa_insn *store) {
  uint32_t phi = ((const uint32_t *)a->unit->args.data)[store->args], header = a->analysis->loops.loop[store->block];
  if (header == SSA_NONE || insn_at(a, phi)->op != SSA_PHI || insn_at(a, phi)->block != header) return;
  hg_induction i;
  uint32_t exit = exit_of(a, header);
  counted_loop l = {.type = insn_at(a, phi)->type};
  if (exit == SSA_NONE || !ssa_dominates(a->order, exit, a->loads) ||
      ir_in_loop(&a->analysis->loops, header, a->loads) || !is_in_every_round(a, header, store->block) ||
      !hg_read_induction(a->unit, a->order, a->analysis->range, phi, &i) || i.start.low != i.start.high ||
      i.step.low != i.step.high || !read_comparison(a, exit, header, phi, &l))
    return;
  l.value = (uint64_t)i.start.low;
  l.step = (uint64_t)i.step.low;
  for (uint32_t round = 0; round <= a->count; round++, l.value += l.step) {
    int is_last = leaves(&l);
    if (!is_last || ssa_dominates(a->order, store->block, exit))
      note_store(a, atlas_index_sum((atlas_type)l.type, l.value & atlas_mask((atlas_type)l.type),
                                    (int64_t)store->bits));
    if (is_last) return;
  }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* Notes the stores of a block that comes before every load, or that contains the first one. */
static void note_stores(array_walk *a, uint32_t block) {
  int is_before = ssa_dominates(a->order, block, a->loads);
  for (uint32_t e = ssa_block_at(a->unit, block)->first_effect; e != SSA_NONE; e = insn_at(a, e)->next) {
    const ssa_insn *insn = insn_at(a, e);
    if (block == a->loads && is_access(a, insn, ATLAS_LOAD)) return;
    if (!is_access(a, insn, ATLAS_STORE)) continue;
    if (insn->mode != ATLAS_ADDRESS_UNIFORM) note_loop(a, insn);
    else if (is_before) note_store(a, (int64_t)insn->bits);
  }
}

static int sees_zeros(array_walk *a) {
  find_loads(a);
  if (a->loads == SSA_NONE) return 0;
  a->stored = 0;
  memset(a->is_stored, 0, a->count);
  for (uint32_t k = 0; k < a->order->count && a->stored < a->count; k++) note_stores(a, a->order->block[k]);
  return a->stored < a->count;
}

int hg_sees_local_zeros(const atlas_program *program, const ssa_unit *unit, const ssa_order *order,
                        const hg_analysis *analysis) {
  array_walk a = {.unit = unit, .order = order, .analysis = analysis};
  for (a.symbol = 0; a.symbol < program->symbols.count; a.symbol++) {
    const atlas_symbol *symbol = atlas_symbol_at(program, a.symbol);
    a.count = symbol->count;
    if (symbol->kind == ATLAS_SYMBOL_LOCAL && sees_zeros(&a)) return 1;
  }
  return 0;
}
