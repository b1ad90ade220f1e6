/* finish_program.c - the end of a launch's program. Layers of a network have the same ones, and to verify a program
 * takes longer than to write it. */
#include "ops/write/launch_plan.h"

#include "atlas/assemble.h"

static atlas_program *find_same(const ops_plan *plan, const atlas_program *program, uint64_t digest) {
  const ops_step *steps = plan->steps.data;
  for (size_t i = 0; i < plan->steps.count; i++)
    if (steps[i].digest == digest && steps[i].program != NULL && atlas_program_same(steps[i].program, program))
      return steps[i].program;
  return NULL;
}

hg_status ops_finish_program(const ops_plan *plan, atlas_builder *builder, ops_step *step) {
  atlas_program *program;
  HG_TRY(atlas_builder_close(builder, &program));
  step->digest = atlas_program_digest(program);
  atlas_program *same = find_same(plan, program, step->digest);
  if (same == NULL) return atlas_program_complete(program, NULL, &step->program);
  atlas_program_release(program);
  step->program = atlas_program_retain(same);
  return HG_OK;
}
