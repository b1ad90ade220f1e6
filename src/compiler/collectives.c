/* collectives.c - brings collectives together that do not depend on one another, so that an engine can perform them at
 * once.
 *
 * No bit changes: a collective's result depends on its arguments and on which lanes of the block have not ended, and no
 * lane ends within straight-line code; it does not fault. Ranks order memory, which nothing between them accesses. */
#include "compiler/collectives.h"
#include "compiler/compiler_tuning.h"

#include "base/error.h"
#include "compiler/analysis/effects.h"

typedef enum collective_kind { NO_COLLECTIVE, REDUCTION, SCAN, VOTE, RANK } collective_kind;

static collective_kind kind_of(const ssa_insn *insn) {
  switch (insn->op) {
  case ATLAS_OP_reduce_add:
  case ATLAS_OP_reduce_mul:
  case ATLAS_OP_reduce_min:
  case ATLAS_OP_reduce_max: return REDUCTION;
  case ATLAS_OP_scan_incl:
  case ATLAS_OP_scan_excl: return SCAN;
  case ATLAS_OP_vote_any:
  case ATLAS_OP_vote_all: return VOTE;
  case ATLAS_OP_rank: return RANK;
  default: return NO_COLLECTIVE;
  }
}

enum { FREE, BEHIND, MEMBER }; /* the mark of a value, with the stamp of the current row */

typedef struct gatherer {
  ssa_unit *unit;
  uint32_t *mark;   /* per value: 3 * stamp + mark; another stamp: the value stands before the row */
  uint32_t stamp;
  hg_array list;    /* the block's effects */
  hg_array rest;    /* effects that move behind the first of the row */
} gatherer;

static hg_status out_of_memory(void) { return hg_fail_memory("collectives", 0); }

static uint32_t where(const gatherer *m, uint32_t value) {
  return m->mark[value] / 3 == m->stamp ? m->mark[value] % 3 : FREE;
}

static int depends(const gatherer *m, uint32_t value) {
  for (uint32_t i = 0; i < ssa_insn_at(m->unit, value)->arg_count; i++)
    if (where(m, ir_ssa_resolve(m->unit, ssa_args_of(m->unit, value)[i])) != FREE) return 1;
  return 0;
}

/* Marks the effects of the row that begins at list[start]; returns its end. */
static uint32_t find_row(gatherer *m, uint32_t start) {
  const uint32_t *list = m->list.data;
  uint32_t end = start + 1;
  collective_kind kind = kind_of(ssa_insn_at(m->unit, list[start]));
  m->mark[list[start]] = 3 * ++m->stamp + MEMBER;
  for (uint32_t i = start + 1; i < m->list.count && i < end + COMPILER_COLLECTIVE_REACH; i++) {
    const ssa_insn *insn = ssa_insn_at(m->unit, list[i]);
    collective_kind other = kind_of(insn);
    if (other == NO_COLLECTIVE && !hg_is_pure(insn)) break;
    if (kind == RANK && other == RANK && depends(m, list[i])) break; /* later ones write behind it */
    if (depends(m, list[i]) || (other != NO_COLLECTIVE && other != kind)) m->mark[list[i]] = 3 * m->stamp + BEHIND;
    else if (other == kind) {
      m->mark[list[i]] = 3 * m->stamp + MEMBER;
      end = i + 1;
    }
  }
  return end;
}

/* Reorders list[start .. end): what stays before the row, the row, what moves behind it. Returns the end of the row. */
static hg_status bring_together(gatherer *m, uint32_t start, uint32_t end, uint32_t *behind) {
  uint32_t *list = m->list.data, to = start;
  m->rest.count = 0;
  for (uint32_t i = start; i < end; i++) {
    if (where(m, list[i]) == FREE) list[to++] = list[i];
    else if (!hg_array_push(&m->unit->allocator, &m->rest, list[i])) return out_of_memory();
  }
  const uint32_t *rest = m->rest.data;
  for (uint32_t i = 0; i < m->rest.count; i++)
    if (where(m, rest[i]) == MEMBER) list[to++] = rest[i];
  *behind = to;
  for (uint32_t i = 0; i < m->rest.count; i++)
    if (where(m, rest[i]) == BEHIND) list[to++] = rest[i];
  return HG_OK;
}

static hg_status gather_block(gatherer *m, uint32_t number) {
  ssa_block *block = ssa_block_at(m->unit, number);
  uint32_t collectives = 0;
  m->list.count = 0;
  for (uint32_t e = block->first_effect; e != SSA_NONE; e = ssa_insn_at(m->unit, e)->next) {
    collectives += kind_of(ssa_insn_at(m->unit, e)) != NO_COLLECTIVE;
    if (!hg_array_push(&m->unit->allocator, &m->list, e)) return out_of_memory();
  }
  if (collectives < 2) return HG_OK;
  for (uint32_t i = 0, next; i < m->list.count; i = next) {
    next = i + 1;
    if (kind_of(ssa_insn_at(m->unit, ((uint32_t *)m->list.data)[i])) == NO_COLLECTIVE) continue;
    HG_TRY(bring_together(m, i, find_row(m, i), &next));
  }
  block->first_effect = block->last_effect = SSA_NONE;
  for (uint32_t i = 0; i < m->list.count; i++) ir_ssa_append_effect(m->unit, number, ((uint32_t *)m->list.data)[i]);
  return HG_OK;
}

hg_status hg_gather_collectives(ssa_unit *unit) {
  gatherer m = {.unit = unit,
                .list.element_size = sizeof(uint32_t),
                .rest.element_size = sizeof(uint32_t)};
  uint32_t collectives = 0;
  for (uint32_t v = 0; v < unit->insns.count; v++)
    collectives += kind_of(ssa_insn_at(unit, v)) != NO_COLLECTIVE;
  if (collectives < 2) return HG_OK;
  hg_status status = HG_OK;
  m.mark = hg_allocate(&unit->allocator, unit->insns.count, sizeof *m.mark);
  if (m.mark == NULL) return out_of_memory();
  for (uint32_t b = 0; b < unit->blocks.count && status == HG_OK; b++)
    if (!ssa_block_at(unit, b)->dead) status = gather_block(&m, b);
  hg_array_release(&unit->allocator, &m.list);
  hg_array_release(&unit->allocator, &m.rest);
  hg_release(&unit->allocator, m.mark);
  return status;
}
