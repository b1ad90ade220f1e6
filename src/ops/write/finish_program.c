/* finish_program.c - ends a launch's program. Layers of a network have equal programs, which share a kernel. */
#include "ops/write/launch_plan.h"

#include "atlas/assemble.h"

hg_status ops_finish_program(const ops_plan *plan, atlas_builder *builder, ops_step *step) {
  atlas_program *program;
  HG_TRY(atlas_builder_close(builder, &program));
  step->digest = atlas_program_digest(program);
  uint32_t same = ops_step_of_same(plan, program, step->digest);
  if (same == UINT32_MAX) return atlas_program_trust(program, &step->program);
  atlas_program_release(program);
  step->program = atlas_program_retain(((const ops_step *)plan->steps.data)[same].program);
  step->same = same + 1;
  return HG_OK;
}
