/* gather_stores.c - delays stores until after the functions behind them.
 *
 * A function keeps its rare cases behind a branch, so a store between two functions would be in a block of its own:
 * then neither the functions could share a test (expand_row.c), nor the stores an access. So a store moves behind the
 * values that are computed after it. No bit changes: values without effects neither read what is stored nor fault, and
 * stores keep their order. */
#include "compiler/gather_stores.h"
#include "compiler/compiler_tuning.h"

#include "base/error.h"
#include "compiler/analysis/effects.h"

#include "atlas/tables.h"

typedef struct gatherer {
  ssa_unit *unit;
  hg_array list; /* the block's effects before the change */
  uint32_t block, waiting[COMPILER_GATHERED], count, functions;
} gatherer;

static void let_go(gatherer *m) {
  for (uint32_t i = 0; i < m->count; i++) ir_ssa_append_effect(m->unit, m->block, m->waiting[i]);
  m->count = m->functions = 0;
}

static void place(gatherer *m, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(m->unit, value);
  uint32_t flags = atlas_op_flags(insn->op);
  if ((flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) == ATLAS_STORE) {
    if (m->count == COMPILER_GATHERED) let_go(m);
    m->waiting[m->count++] = value;
    return;
  }
  m->functions += (flags & ATLAS_FUNC) != 0;
  if (!hg_is_pure(insn) || m->functions > COMPILER_GATHERED) let_go(m);
  ir_ssa_append_effect(m->unit, m->block, value);
}

static hg_status gather_block(gatherer *m, uint32_t number) {
  ssa_block *block = ssa_block_at(m->unit, number);
  uint32_t stores = 0, functions = 0;
  m->list.count = 0;
  for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(m->unit, e)->next) {
    uint32_t flags = atlas_op_flags(ssa_insn_at(m->unit, e)->op);
    stores += (flags & ATLAS_STORE) != 0;
    functions += (flags & ATLAS_FUNC) != 0;
    if (!hg_array_push(&m->unit->allocator, &m->list, e)) return hg_fail_memory("stores", 0);
  }
  if (stores < 2 || functions < 2) return HG_OK;
  m->block = number;
  block->first_effect = block->last_effect = SSA_NONE;
  for (uint32_t i = 0; i < m->list.count; i++) place(m, ((const uint32_t *)m->list.data)[i]);
  let_go(m);
  return HG_OK;
}

hg_status hg_gather_stores(ssa_unit *unit) {
  gatherer m = {.unit = unit, .list.element_size = sizeof(uint32_t)};
  hg_status status = HG_OK;
  for (uint32_t b = 0; b < unit->blocks.count && status == HG_OK; b++)
    if (!ssa_block_at(unit, b)->dead) status = gather_block(&m, b);
  hg_array_release(&unit->allocator, &m.list);
  return status;
}
