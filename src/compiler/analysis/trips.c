/* trips.c - bounds on trip counts: from the range that a phi of the header keeps (guards.h), or because on every way
 * through the loop a phi is compared with a loop-invariant value and one result leaves the loop. The start of such a
 * phi and what it is compared with may be unknown: a 32-bit counter that changes by one has 2^32 values. */
#include "compiler/analysis/trips.h"

#include "atlas/arith.h"
#include "compiler/analysis/affine.h"
#include "compiler/analysis/guards.h"
#include "hologram/hologram.h"

typedef struct loop {
  const hg_analysis *analysis;
  const ssa_unit *unit;
  const ssa_order *order;
  uint32_t header;
} loop;

static const ssa_insn *insn_at(const loop *l, uint32_t value) { return ssa_insn_at(l->unit, value); }

/* The phi of the header that this value equals, or becomes in the next iteration; SSA_NONE. */
static uint32_t phi_of(const loop *l, uint32_t value) {
  const ssa_insn *insn = insn_at(l, value);
  uint32_t phi = insn->op == SSA_PHI ? value : insn->arg_count == 0 ? SSA_NONE : ssa_args_of(l->unit, value)[0];
  if (phi == SSA_NONE || insn_at(l, phi)->op != SSA_PHI || insn_at(l, phi)->block != l->header) return SSA_NONE;
  for (uint32_t i = 0; i < insn_at(l, phi)->arg_count && phi != value; i++)
    if (ssa_args_of(l->unit, phi)[i] == value) return phi;
  return phi == value ? phi : SSA_NONE;
}

/* Each iteration adds or subtracts 1: the phi takes every number of the type before one repeats. */
static uint64_t trips_to_number(const loop *l, uint32_t phi) {
  hg_induction i;
  uint32_t bits = atlas_type_bits((atlas_type)insn_at(l, phi)->type);
  if (!hg_read_induction(l->unit, l->order, l->analysis->range, phi, &i) || bits > 62) return UINT64_MAX;
  return i.step.low == i.step.high && (i.step.low == 1 || i.step.low == -1) ? UINT64_C(1) << bits : UINT64_MAX;
}

/* Each iteration shifts in zeros from above: the phi reaches 0 and stays there. */
static uint64_t trips_to_zero(const loop *l, uint32_t phi, const ssa_insn *compare, const uint64_t ends[2],
                              int leaves_when) {
  uint8_t type = insn_at(l, phi)->type;
  uint32_t bits = atlas_type_bits((atlas_type)type), fewest = 0, from, side;
  for (uint32_t i = 0; i < insn_at(l, phi)->arg_count; i++) {
    uint32_t next = ssa_args_of(l->unit, phi)[i];
    if (hg_edge_of(l->unit, l->order, phi, i, &from, &side) != HG_EDGE_COMES_BACK) continue;
    const uint32_t *args = ssa_args_of(l->unit, next);
    if (insn_at(l, next)->op != ATLAS_OP_shr || args[0] != phi || insn_at(l, args[1])->op != SSA_CONST)
      return UINT64_MAX;
    uint32_t by = (uint32_t)insn_at(l, args[1])->bits & (bits - 1);
    if (fewest == 0 || by < fewest) fewest = by;
  }
  int comes_to_zero = fewest > 0 && atlas_kind((atlas_type)type) == ATLAS_KIND_UINT;
  int leaves = comes_to_zero && atlas_compare(compare->op, (atlas_type)type, ends[0], ends[1]) == leaves_when;
  return leaves ? bits / fewest + 2 : UINT64_MAX;
}

/* The trip count bounded by the branch of a block that lies on every way through the loop. */
static uint64_t trips_of_branch(const loop *l, uint32_t b) {
  const ssa_block *block = ssa_block_at(l->unit, b);
  int inside[2];
  if (block->end != SSA_BRANCH) return UINT64_MAX;
  for (int s = 0; s < 2; s++) inside[s] = ir_in_loop(&l->analysis->loops, l->header, block->successor[s]);
  const ssa_insn *compare = insn_at(l, block->condition);
  if (inside[0] == inside[1] || !atlas_is_comparison(compare->op)) return UINT64_MAX;
  for (uint32_t side = 0; side < 2; side++) {
    uint32_t phi = phi_of(l, ssa_args_of(l->unit, block->condition)[side]);
    uint32_t end = ssa_args_of(l->unit, block->condition)[1 - side];
    if (phi == SSA_NONE || insn_at(l, phi)->type != compare->type2) continue;
    if (!hg_is_invariant(l->unit, &l->analysis->loops, l->header, end)) continue;
    uint64_t ends[2] = {0, 0}, trips = UINT64_MAX;
    ends[1 - side] = insn_at(l, end)->bits;
    if (insn_at(l, end)->op == SSA_CONST) trips = trips_to_zero(l, phi, compare, ends, inside[1]);
    if (trips == UINT64_MAX && compare->op == ATLAS_OP_set_eq && inside[1]) trips = trips_to_number(l, phi);
    return trips;
  }
  return UINT64_MAX;
}

/* The greatest trip count of a loop for each entry into it: how often its header is reached. UINT64_MAX: unknown. */
static uint64_t most_trips(const hg_analysis *analysis, const ssa_unit *unit, const ssa_order *order, uint32_t header) {
  const loop l = {analysis, unit, order, header};
  uint64_t rounds = analysis->guarded[header].most_rounds, fewest = rounds == UINT64_MAX ? rounds : rounds + 1;
  uint32_t latch = SSA_NONE;
  const hg_array *from = &ssa_block_at(unit, header)->predecessors;
  for (size_t i = 0; i < from->count; i++) {
    uint32_t p = ((const uint32_t *)from->data)[i];
    if (order->position[p] == SSA_NONE || !ssa_dominates(order, header, p)) continue;
    if (latch != SSA_NONE) return fewest;
    latch = p;
  }
  for (uint32_t b = latch;; b = order->dominator[b]) {
    uint64_t found = analysis->loops.loop[b] == header ? trips_of_branch(&l, b) : UINT64_MAX;
    if (found < fewest) fewest = found;
    if (b == header) return fewest;
  }
}

/* The back edges of each loop, as often as the loop is entered. */
uint64_t hg_most_steps(const hg_analysis *analysis, const ssa_unit *unit, const ssa_order *order,
                       const uint8_t *counted) {
  uint64_t sum = 0;
  for (uint32_t k = 0; k < order->count; k++) {
    uint32_t b = order->block[k];
    if (analysis->loops.loop[b] != b || ssa_block_at(unit, b)->library) continue;
    uint64_t product = most_trips(analysis, unit, order, b) - 1, each = counted != NULL ? counted[b] : 1;
    product = product > HG_DEFAULT_STEP_LIMIT / each ? UINT64_MAX : product * each;
    for (uint32_t h = analysis->loops.parent[b]; h != SSA_NONE && product > 0; h = analysis->loops.parent[h]) {
      uint64_t trips = most_trips(analysis, unit, order, h);
      if (trips > HG_DEFAULT_STEP_LIMIT / product) return UINT64_MAX;
      product *= trips;
    }
    if (product > HG_DEFAULT_STEP_LIMIT - sum) return UINT64_MAX;
    sum += product;
  }
  return sum;
}
