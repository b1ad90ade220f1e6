/* finish_program.c - ends a launch's program. Layers of a network have equal programs, which share a kernel;
 * and so have operations on other shapes, which share code. */
#include "ops/write/launch_plan.h"

#include "atlas/assemble.h"

hg_status ops_finish_program(const ops_plan *plan, atlas_builder *builder, ops_step *step) {
  atlas_program *program;
  HG_TRY(atlas_builder_close(builder, &program));
  uint32_t same = ops_step_of_same(plan, program);
  if (same != UINT32_MAX) {
    step->program = atlas_program_retain(((const ops_step *)plan->steps.data)[same].program);
    step->same = same + 1;
  } else if (plan->target.compiled != NULL) {
    step->program = plan->target.compiled(plan->target.executor, program);
  }
  if (step->program == NULL) return atlas_program_trust(program, &step->program);
  atlas_program_release(program);
  return HG_OK;
}
