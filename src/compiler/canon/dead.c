/* dead.c - dead code removal: everything is dead until something that can be seen depends on it. */
#include "compiler/canon/passes.h"

#include "atlas/tables.h"
#include "base/error.h"
#include "compiler/analysis/effects.h"

/* Loads and class queries. After the hash, their faults are part of the program's behaviour. */
static int may_fault(const ssa_insn *insn) {
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info == NULL || insn->symbol & SSA_LIBRARY) return 0;
  return (info->flags & ATLAS_LOAD) != 0 || hg_is_class_query(insn);
}

static int is_root(const ssa_unit *unit, const ssa_insn *insn) {
  return !hg_is_removable(insn) || (unit->faults_stay && may_fault(insn));
}

typedef struct marker {
  ssa_unit *unit;
  uint8_t *live;   /* per value */
  uint32_t *stack;
  uint32_t depth;
} marker;

static void mark(marker *m, uint32_t value) {
  value = ir_ssa_resolve(m->unit, value);
  if (m->live[value]) return;
  m->live[value] = 1;
  m->stack[m->depth++] = value;
}

static void mark_all(marker *m) {
  for (uint32_t b = 0; b < m->unit->blocks.count; b++) {
    ssa_block *block = ssa_block_at(m->unit, b);
    if (block->dead) continue;
    if (block->condition != SSA_NONE) mark(m, block->condition);
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(m->unit, e)->next)
      if (is_root(m->unit, ssa_insn_at(m->unit, e))) mark(m, e);
  }
  while (m->depth > 0) {
    uint32_t value = m->stack[--m->depth];
    for (uint32_t i = 0; i < ssa_insn_at(m->unit, value)->arg_count; i++) mark(m, ssa_args_of(m->unit, value)[i]);
  }
}

/* Unlinks unmarked values from a list; returns its new first and sets its last. */
static uint32_t sweep(const marker *m, uint32_t first, uint32_t *last, int *changed) {
  uint32_t kept = SSA_NONE, tail = SSA_NONE;
  for (uint32_t v = first, next; v != SSA_NONE; v = next) {
    next = ssa_insn_at(m->unit, v)->next;
    if (!m->live[v]) {
      ssa_insn_at(m->unit, v)->op = SSA_DELETED;
      *changed = 1;
      continue;
    }
    if (tail == SSA_NONE) kept = v;
    else ssa_insn_at(m->unit, tail)->next = v;
    tail = v;
  }
  if (tail != SSA_NONE) ssa_insn_at(m->unit, tail)->next = SSA_NONE;
  *last = tail;
  return kept;
}

hg_status hg_pass_remove_dead(const atlas_program *program, ssa_unit *unit, int *changed) {
  (void)program;
  uint64_t n = unit->insns.count;
  marker m = {.unit = unit, .stack = hg_allocate(&unit->allocator, n * (sizeof(uint32_t) + 1), 1)};
  if (m.stack == NULL) return hg_fail_memory("dead code removal", n * (sizeof(uint32_t) + 1));
  m.live = (uint8_t *)(m.stack + n);
  mark_all(&m);
  for (uint32_t b = 0; b < unit->blocks.count; b++) {
    ssa_block *block = ssa_block_at(unit, b);
    uint32_t last_phi;
    if (block->dead) continue;
    block->first_phi = sweep(&m, block->first_phi, &last_phi, changed);
    block->first_effect = sweep(&m, block->first_effect, &block->last_effect, changed);
  }
  hg_release(&unit->allocator, m.stack);
  return HG_OK;
}
