/* interp_block.c - what the lanes of a block do together: barriers, collectives, pool allocation, the phase. A lane
 * that ended by a trap or the step limit is absent: it takes no part, and a value whose partner is absent stays as it
 * is.
 */
#include "atlas/arith.h"
#include "atlas/machine.h"
#include "base/bytes.h"

#include <stdio.h>

static int takes_part(const machine *m, uint32_t i) { return m->lanes[i].status == LANE_WAITS; }

static void gather(machine *m, const atlas_operand *operand) {
  for (uint32_t i = 0; i < m->lane_count; i++) {
    m->present[i] = (uint8_t)takes_part(m, i);
    m->scratch[i] = m->present[i] ? atlas_machine_source(m, &m->lanes[i], operand) : 0;
  }
}

static void set_register(lane *l, const atlas_insn *insn, uint64_t value) {
  l->r[insn->operand[0].reg] = value;
  l->type[insn->operand[0].reg] = insn->type;
}

/* scratch[into] = left op right; where one side is absent, the other. */
static void combine(machine *m, uint32_t op, atlas_type type, uint32_t into, uint64_t left, int has_left,
                    uint64_t right, int has_right) {
  if (has_left && has_right) m->scratch[into] = atlas_arith(op, type, left, right, 0);
  else m->scratch[into] = has_left ? left : right;
  m->present[into] = (uint8_t)(has_left || has_right);
}

static uint32_t power_of_two_from(uint32_t count) {
  uint32_t power = 1;
  while (power < count) power *= 2;
  return power;
}

/* The canonical fold: by halves, from the power of two at or above the lane count. */
static void reduce(machine *m, const atlas_insn *insn) {
  uint32_t op = atlas_combining_op(insn->op);
  gather(m, &insn->operand[1]);
  for (uint32_t h = power_of_two_from(m->lane_count) / 2; h >= 1; h /= 2)
    for (uint32_t i = 0; i < h && i + h < m->lane_count; i++)
      combine(m, op, (atlas_type)insn->type, i, m->scratch[i], m->present[i], m->scratch[i + h], m->present[i + h]);
  for (uint32_t i = 0; i < m->lane_count; i++)
    if (takes_part(m, i)) set_register(&m->lanes[i], insn, m->scratch[0]);
}

/* Hillis and Steele, "Data Parallel Algorithms" (1986): strides 1, 2, 4, ... Going down keeps the left neighbour old.
 */
static void scan(machine *m, const atlas_insn *insn) {
  gather(m, &insn->operand[1]);
  for (uint32_t stride = 1; stride < m->lane_count; stride *= 2)
    for (uint32_t i = m->lane_count; i-- > stride;)
      combine(m, ATLAS_OP_add, (atlas_type)insn->type, i, m->scratch[i - stride], m->present[i - stride], m->scratch[i],
              m->present[i]);
  int exclusive = insn->op == ATLAS_OP_scan_excl;
  for (uint32_t i = 0; i < m->lane_count; i++) {
    if (!takes_part(m, i)) continue;
    uint64_t value = !exclusive ? m->scratch[i] : i > 0 && m->present[i - 1] ? m->scratch[i - 1] : 0;
    set_register(&m->lanes[i], insn, value);
  }
}

/* Counts as it goes, in the elements of the shared array that the totals are for. */
static void rank(machine *m, const atlas_insn *insn) {
  const atlas_operand *counts = &insn->operand[2];
  uint32_t values = 1u << insn->operand[3].bits;
  uint8_t *count = m->shared + m->shared_offset[counts->symbol] + counts->bits * sizeof(uint32_t);
  memset(count, 0, values * sizeof(uint32_t));
  gather(m, &insn->operand[1]);
  for (uint32_t i = 0; i < m->lane_count; i++) {
    if (!m->present[i]) continue;
    uint8_t *of = count + (m->scratch[i] & (values - 1)) * sizeof(uint32_t);
    uint64_t before = hg_load_le(of, sizeof(uint32_t));
    hg_store_le(of, sizeof(uint32_t), before + 1);
    set_register(&m->lanes[i], insn, before);
  }
}

static void vote(machine *m, const atlas_insn *insn) {
  uint32_t yes = 0, voters = 0;
  for (uint32_t i = 0; i < m->lane_count; i++) {
    if (!takes_part(m, i)) continue;
    voters++;
    yes += m->lanes[i].predicates >> insn->operand[1].reg & 1;
  }
  uint32_t result = insn->op == ATLAS_OP_vote_any ? yes > 0 : yes == voters;
  uint32_t bit = 1u << insn->operand[0].reg;
  for (uint32_t i = 0; i < m->lane_count; i++)
    if (takes_part(m, i)) m->lanes[i].predicates = (m->lanes[i].predicates & ~bit) | (result ? bit : 0);
}

static lane *lowest_lane(machine *m) {
  for (uint32_t i = 0; i < m->lane_count; i++)
    if (takes_part(m, i)) return &m->lanes[i];
  return NULL;
}

static uint64_t pool_share(const machine *m, uint32_t pool) {
  return m->launch->arguments[pool].span.byte_count / m->block_count / 16 * 16;
}

static void pool_allocate(machine *m, const atlas_insn *insn) {
  uint32_t pool = insn->operand[1].symbol;
  uint64_t size = atlas_machine_source(m, lowest_lane(m), &insn->operand[2]);
  uint64_t end = (m->block_index + 1) * pool_share(m, pool), room = end - m->pool_top[pool], offset = UINT64_MAX;
  if (size <= room) { /* room is a multiple of 16, so the rounded size fits too */
    offset = m->pool_top[pool];
    m->pool_top[pool] += (size + 15) / 16 * 16;
  }
  for (uint32_t i = 0; i < m->lane_count; i++)
    if (takes_part(m, i)) set_register(&m->lanes[i], insn, offset);
}

static void pool_free(machine *m, const atlas_insn *insn) {
  uint32_t pool = insn->operand[0].symbol;
  uint64_t offset = atlas_machine_source(m, lowest_lane(m), &insn->operand[1]);
  uint64_t start = m->block_index * pool_share(m, pool);
  if (offset >= start && offset < m->pool_top[pool] && offset % 16 == 0) {
    m->pool_top[pool] = offset;
    return;
  }
  hg_fault fault = {.kind = HG_FAULT_POOL, .index = (int64_t)offset, .extent = (int64_t)m->pool_top[pool]};
  snprintf(fault.buffer, sizeof fault.buffer, "%s", atlas_symbol_at(m->program, pool)->name);
  for (uint32_t i = 0; i < m->lane_count; i++)
    if (takes_part(m, i)) atlas_machine_fault(m, &m->lanes[i], fault);
}

void atlas_machine_block(machine *m, const atlas_insn *insn) {
  switch (insn->op) {
  case ATLAS_OP_scan_incl:
  case ATLAS_OP_scan_excl: scan(m, insn); break;
  case ATLAS_OP_vote_any:
  case ATLAS_OP_vote_all: vote(m, insn); break;
  case ATLAS_OP_rank: rank(m, insn); break;
  case ATLAS_OP_pool_alloc: pool_allocate(m, insn); break;
  case ATLAS_OP_pool_free: pool_free(m, insn); break;
  case ATLAS_OP_bar_sync: break; /* lanes run one at a time: memory is in order already */
  default: reduce(m, insn); break;
  }
}
