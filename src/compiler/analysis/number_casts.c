/* number_casts.c - bitcasts that read a number, never a NaN, because of the branch that leads to them.
 *
 * The exponential function builds its result from the bits of numbers that are NaN if its argument is; but then it
 * takes its rare side. Here the range of what is cast is computed again from the range that the compared argument has
 * where the comparison holds. */
#include "compiler/analysis/nan_bits.h"

#include "compiler/analysis/effects.h"

enum {
  MOST_TESTS = 32, /* comparisons in one branch */
  MOST_CONE = 48   /* values between what is cast and what is compared */
};

typedef struct narrowing {
  const ssa_unit *unit;
  hg_range *range;
  uint32_t compared[MOST_TESTS]; /* values that a comparison bounds, */
  hg_range bound[MOST_TESTS];    /* and the bound of each */
  uint32_t count;
  uint32_t cone[MOST_CONE]; /* values that depend on them, arguments first */
  hg_range saved[MOST_CONE];
  uint32_t size, found; /* of `cone`; how many of `compared` it reaches */
} narrowing;

static const ssa_insn *insn_at(const narrowing *n, uint32_t value) { return ssa_insn_at(n->unit, value); }
static uint32_t arg_of(const narrowing *n, uint32_t value, unsigned i) { return ssa_args_of(n->unit, value)[i]; }

/* ---- what is compared -------------------------------------------------------------------------------------------- */

static void bound_value(narrowing *n, uint32_t test, uint32_t value) {
  hg_range range = hg_range_where(n->unit, n->range, value, n->range[value], test, 1);
  if (n->count == MOST_TESTS || range.is_nan) return;
  if (insn_at(n, value)->op == ATLAS_OP_abs) {
    range = hg_range_of_floats(-range.greatest, range.greatest, 0);
    value = arg_of(n, value, 0);
  }
  if (insn_at(n, value)->op == SSA_CONST) return;
  n->compared[n->count] = value;
  n->bound[n->count++] = range;
}

static void find_bounds(narrowing *n, uint32_t condition, int depth) {
  const ssa_insn *test = insn_at(n, condition);
  if (test->op == ATLAS_OP_pand && depth > 0)
    for (unsigned i = 0; i < 2; i++) find_bounds(n, arg_of(n, condition, i), depth - 1);
  if ((test->op == ATLAS_OP_set_le || test->op == ATLAS_OP_set_lt) && test->type2 == ATLAS_f32)
    for (unsigned i = 0; i < 2; i++) bound_value(n, condition, arg_of(n, condition, i));
}

/* ---- what is cast ------------------------------------------------------------------------------------------------ */

static uint32_t bound_of(const narrowing *n, uint32_t value) {
  for (uint32_t i = 0; i < n->count; i++)
    if (n->compared[i] == value) return i;
  return SSA_NONE;
}

static int is_in_cone(const narrowing *n, uint32_t value) {
  for (uint32_t i = 0; i < n->size; i++)
    if (n->cone[i] == value) return 1;
  return 0;
}

/* Collects values whose range may be narrower; 0: there are too many. */
static int collect_cone(narrowing *n, uint32_t value, int depth) {
  const ssa_insn *insn = insn_at(n, value);
  int is_bound = bound_of(n, value) != SSA_NONE;
  if (is_in_cone(n, value)) return 1;
  if (!is_bound && (insn->arg_count == 0 || insn->op == SSA_PHI || !hg_is_pure(insn))) return 1;
  for (uint32_t i = 0; i < insn->arg_count && !is_bound; i++)
    if (depth == 0 || !collect_cone(n, arg_of(n, value, i), depth - 1)) return 0;
  if (n->size == MOST_CONE) return 0;
  n->found += is_bound != 0;
  n->cone[n->size++] = value;
  return 1;
}

static int is_number(narrowing *n, uint32_t value) {
  n->size = n->found = 0;
  if (!collect_cone(n, value, MOST_CONE) || n->found == 0) return 0;
  for (uint32_t i = 0; i < n->size; i++) {
    uint32_t at = n->cone[i], bound = bound_of(n, at);
    n->saved[i] = n->range[at];
    n->range[at] = bound != SSA_NONE ? n->bound[bound] : hg_range_of(n->unit, n->range, at);
  }
  int is = !n->range[value].is_nan;
  for (uint32_t i = 0; i < n->size; i++) n->range[n->cone[i]] = n->saved[i];
  return is;
}

int hg_is_number_where(const ssa_unit *unit, hg_range *range, uint32_t condition, uint32_t value) {
  narrowing n = {.unit = unit, .range = range};
  find_bounds(&n, condition, MOST_TESTS);
  return n.count > 0 && is_number(&n, value);
}

/* The condition that holds when the block is entered; SSA_NONE. */
static uint32_t condition_of(const ssa_unit *unit, uint32_t number) {
  const ssa_block *block = ssa_block_at(unit, number);
  if (block->predecessors.count != 1) return SSA_NONE;
  const ssa_block *before = ssa_block_at(unit, ((const uint32_t *)block->predecessors.data)[0]);
  int is_true = before->end == SSA_BRANCH && before->successor[0] == number && before->successor[1] != number;
  return is_true ? before->condition : SSA_NONE;
}

void hg_find_number_casts(const ssa_unit *unit, const ssa_order *order, hg_range *range, uint8_t *blind) {
  for (uint32_t k = 0; k < order->count; k++) {
    narrowing n = {.unit = unit, .range = range};
    uint32_t condition = condition_of(unit, order->block[k]);
    if (condition == SSA_NONE) continue;
    find_bounds(&n, condition, MOST_TESTS);
    for (uint32_t e = ssa_block_at(unit, order->block[k])->first_effect; e != SSA_NONE && n.count > 0;
         e = insn_at(&n, e)->next)
      if (insn_at(&n, e)->op == ATLAS_OP_bitcast && insn_at(&n, e)->type2 == ATLAS_f32 && !blind[e])
        blind[e] = (uint8_t)is_number(&n, arg_of(&n, e, 0));
  }
}
