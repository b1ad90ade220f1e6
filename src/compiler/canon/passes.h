/* passes.h - the passes of the compiler (passes.def). Each keeps every bit of every result. */
#ifndef HG_COMPILER_PASSES_H
#define HG_COMPILER_PASSES_H

#include "atlas/program.h"
#include "ir/ssa.h"

/* hg_pass_value_number and so on: sets *changed when it did something. HG_OUT_OF_MEMORY. */
#define PASS(id, stage, purpose) hg_status hg_pass_##id(const atlas_program *program, ssa_unit *unit, int *changed);
#include "compiler/canon/passes.def"
#undef PASS

/* Called after each pass, with its name; a failure ends the compilation. Tests check the unit here, `hologram emit`
 * prints it. */
typedef struct hg_pass_hook {
  hg_status (*after)(void *user, const char *pass, const atlas_program *program, ssa_unit *unit);
  void *user;
} hg_pass_hook;

typedef enum hg_stage { HG_STAGE_CANON, HG_STAGE_SETTLE, HG_STAGE_ORDER, HG_STAGE_OPTIMISE, HG_STAGE_PLACED } hg_stage;

typedef struct hg_pass {
  const char *name;
  hg_status (*run)(const atlas_program *program, ssa_unit *unit, int *changed);
  hg_stage stage;
} hg_pass;

/* One pass and what looks at its result. */
hg_status hg_run_pass(const hg_pass *pass, const atlas_program *program, ssa_unit *unit, const hg_pass_hook *hook,
                      int *changed);

/* The passes of one stage of the canonical form, once each; of SETTLE, up to the first that changes something. */
hg_status hg_run_stage(const atlas_program *program, ssa_unit *unit, hg_stage stage, const hg_pass_hook *hook,
                       int *changed);

#endif
