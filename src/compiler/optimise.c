/* optimise.c - the order of the optimisation passes. */
#include "compiler/optimise.h"
#include "compiler/compiler_tuning.h"

#include "base/error.h"
#include "compiler/canon/schedule.h"

/* CANON passes clean up after OPTIMISE and PLACED passes. There are few rounds, for the sake of compile time: a further
 * round seldom finds anything. */

/* The passes after the hash; canon.c has the others. */
static const hg_pass passes[] = {
#define ROW_CANON(id)
#define ROW_SETTLE(id)
#define ROW_ORDER(id)
#define ROW_OPTIMISE(id) {#id, hg_pass_##id, HG_STAGE_OPTIMISE},
#define ROW_PLACED(id) {#id, hg_pass_##id, HG_STAGE_PLACED},
#define PASS(id, stage, purpose) ROW_##stage(id)
#include "compiler/canon/passes.def"
#undef PASS
};
enum { PASS_COUNT = sizeof passes / sizeof passes[0] };

static hg_status run_stage(const atlas_program *program, ssa_unit *unit, hg_stage stage, const hg_pass_hook *hook,
                           int *changed) {
  for (int i = 0; i < PASS_COUNT; i++)
    if (passes[i].stage == stage) HG_TRY(hg_run_pass(&passes[i], program, unit, hook, changed));
  return HG_OK;
}

static hg_status optimise_values(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook) {
  for (int round = 0, changed = 1; changed && round < COMPILER_OPTIMISE_ROUNDS; round++) {
    int ignored = changed = 0;
    HG_TRY(run_stage(program, unit, HG_STAGE_OPTIMISE, hook, &changed));
    HG_TRY(hg_run_stage(program, unit, HG_STAGE_CANON, hook, round == 0 ? &ignored : &changed));
  }
  return HG_OK;
}

hg_status hg_optimise(const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook) {
  hg_unschedule(unit);
  for (int round = 0, changed = 1; round < COMPILER_OPTIMISE_ROUNDS; round++) {
    if (changed) HG_TRY(optimise_values(program, unit, hook));
    HG_TRY(hg_schedule(unit));
    changed = 0;
    if (round + 1 < COMPILER_OPTIMISE_ROUNDS) HG_TRY(run_stage(program, unit, HG_STAGE_PLACED, hook, &changed));
    if (!changed) break;
    hg_unschedule(unit);
  }
  return HG_OK;
}
