/* optimise.c - the order of the optimisation passes, and what is known of loops. */
#include "compiler/optimise.h"

#include "atlas/arith.h"
#include "base/error.h"
#include "compiler/schedule.h"
#include "ir/ssa_order.h"

/* CANON passes clean up behind OPTIMISE and PLACED passes. Rounds are few, for the sake of compile time: a further
 * round seldom finds anything. */
enum { ROUNDS = 2 };

static hg_status optimise_values(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook) {
  for (int round = 0, changed = 1; changed && round < ROUNDS; round++) {
    int ignored = changed = 0;
    HG_TRY(hg_run_stage(program, unit, HG_STAGE_OPTIMISE, hook, &changed));
    HG_TRY(hg_run_stage(program, unit, HG_STAGE_CANON, hook, round == 0 ? &ignored : &changed));
  }
  return HG_OK;
}

hg_status hg_optimise(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook) {
  hg_unschedule(unit);
  for (int round = 0, changed = 1; round < ROUNDS; round++) {
    if (changed) HG_TRY(optimise_values(program, unit, hook));
    HG_TRY(hg_schedule(unit));
    changed = 0;
    if (round + 1 < ROUNDS) HG_TRY(hg_run_stage(program, unit, HG_STAGE_PLACED, hook, &changed));
    if (!changed) break;
    hg_unschedule(unit);
  }
  return HG_OK;
}

/* ---- trip counts ------------------------------------------------------------------------------------------------- */

static int is_constant(const ssa_unit *unit, uint32_t value) { return ssa_insn_at(unit, value)->op == SSA_CONST; }

/* The step of an induction variable (a phi that starts at a constant, to which each iteration adds a constant), else 0.
 */
static uint64_t step_of(const ssa_unit *unit, uint32_t phi, uint64_t *start) {
  const ssa_insn *insn = ssa_insn_at(unit, phi);
  uint64_t step = 0;
  if (insn->arg_count != 2 || !atlas_is_integer((atlas_type)insn->type)) return 0;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t arg = ssa_args_of(unit, phi)[i];
    const ssa_insn *next = ssa_insn_at(unit, arg);
    if (next->op == SSA_CONST) *start = next->bits;
    else if (next->op == ATLAS_OP_add && ssa_args_of(unit, arg)[0] == phi &&
             is_constant(unit, ssa_args_of(unit, arg)[1]))
      step = ssa_insn_at(unit, ssa_args_of(unit, arg)[1])->bits;
    else return 0;
  }
  return is_constant(unit, ssa_args_of(unit, phi)[0]) != is_constant(unit, ssa_args_of(unit, phi)[1]) ? step : 0;
}

enum { MAX_TRIPS = 65536 };

/* Counts iterations until the comparison leaves the loop. `at_next`: it compares the induction variable after the step.
 */
static uint64_t count_trips(const ssa_insn *compare, const uint64_t sides[2], int counter_side, int at_next,
                            int leaves_when, uint64_t start, uint64_t step) {
  atlas_type type = (atlas_type)compare->type2;
  uint64_t counter = start;
  for (uint64_t trips = 1; trips <= MAX_TRIPS; trips++) {
    uint64_t next = atlas_arith(ATLAS_OP_add, type, counter, step, 0), seen = at_next ? next : counter;
    uint64_t a = counter_side == 0 ? seen : sides[0], b = counter_side == 1 ? seen : sides[1];
    if (atlas_compare(compare->op, type, a, b) == leaves_when) return trips;
    counter = next;
  }
  return 0;
}

uint64_t hg_trip_count(const ssa_unit *unit, uint32_t header) {
  const ssa_block *block = ssa_block_at(unit, header);
  if (block->predecessors.count != 2) return 0;
  for (int p = 0; p < 2; p++) { /* the latch, if it is the only exiting block too */
    uint32_t latch = ((const uint32_t *)block->predecessors.data)[p];
    const ssa_block *end = ssa_block_at(unit, latch);
    if (end->end != SSA_BRANCH || (end->successor[0] == header) == (end->successor[1] == header)) continue;
    if (latch != header) continue; /* a loop of several blocks may have other exits */
    const ssa_insn *compare = ssa_insn_at(unit, end->condition);
    if (!atlas_is_comparison(compare->op) || !atlas_is_integer((atlas_type)compare->type2)) continue;
    for (int side = 0; side < 2; side++) {
      uint32_t tested = ssa_args_of(unit, end->condition)[side], other = ssa_args_of(unit, end->condition)[1 - side];
      if (!is_constant(unit, other)) continue;
      const ssa_insn *insn = ssa_insn_at(unit, tested);
      int at_next = insn->op == ATLAS_OP_add;
      uint32_t phi = at_next ? ssa_args_of(unit, tested)[0] : tested;
      uint64_t start = 0, sides[2] = {0, 0};
      if (ssa_insn_at(unit, phi)->op != SSA_PHI || ssa_insn_at(unit, phi)->block != header) continue;
      uint64_t step = step_of(unit, phi, &start);
      int is_own_step = ssa_args_of(unit, phi)[0] == tested || ssa_args_of(unit, phi)[1] == tested;
      if (step == 0 || (at_next && !is_own_step)) continue;
      sides[1 - side] = ssa_insn_at(unit, other)->bits;
      return count_trips(compare, sides, side, at_next, end->successor[1] == header, start, step);
    }
  }
  return 0;
}
