/* optimise.c - the order of the optimisation passes. */
#include "compiler/optimise.h"

#include "base/error.h"
#include "compiler/schedule.h"

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
