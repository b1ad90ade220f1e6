/* finish_program.c - ends a launch's program. Layers of a network have equal programs, which share a kernel;
 * and so have operations on other shapes, which share code. */
#include "ops/write/launch_plan.h"

#include "atlas/assemble.h"

hg_status ops_begin_program(const ops_plan *plan, const char *name, atlas_builder **builder) {
  HG_TRY(atlas_builder_create(ops_lasting(plan), name, builder));
  atlas_builder_has_many(*builder);
  uint32_t number = (uint32_t)(plan->steps.count + plan->made.count) - 1;
  atlas_program *known = plan->target.expected != NULL ? plan->target.expected(plan->target.like, number) : NULL;
  if (known != NULL) atlas_builder_follow(*builder, known);
  return HG_OK;
}

hg_status ops_finish_program(const ops_plan *plan, atlas_builder *builder, ops_step *step) {
  atlas_program *program;
  HG_TRY(atlas_builder_close(builder, &program));
  uint32_t same = ops_step_of_same(plan, program);
  if (same != UINT32_MAX) {
    step->program = atlas_program_retain(((const ops_step *)plan->steps.data)[same].program);
    step->same = same + 1;
  } else if (atlas_program_is_complete(program)) {
    step->program = atlas_program_retain(program);
  } else if (plan->target.compiled != NULL) {
    step->program = plan->target.compiled(plan->target.executor, program);
  }
  if (step->program == NULL) return atlas_program_trust(program, &step->program);
  atlas_program_release(program);
  return HG_OK;
}
