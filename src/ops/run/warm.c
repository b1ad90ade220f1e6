/* warm.c - compiles an executable's kernels in full before it runs: its launches are described to the device as a run
 * would make them, with memory that is never accessed. */
#include "ops/run/executable.h"

/* Such addresses are aligned as those of a later run's tensors are, and far apart from each other. */
static uint8_t *place_of_bind(uint32_t number, const ops_bind *bind) {
  uint64_t first = ((uint64_t)number + 1) << 44, within = bind->place == OPS_WORKSPACE ? bind->first_byte : 0;
  return (uint8_t *)(uintptr_t)(first + within);
}

static void describe_arguments(const ops_launch *launch, atlas_argument *arguments) {
  for (uint32_t s = 0; s < launch->scalar_count; s++) {
    const hg_scalar *scalar = &launch->scalars[s];
    arguments[scalar->slot].bits = scalar->bits & atlas_mask((atlas_type)scalar->type);
  }
  for (uint32_t b = 0; b < launch->bind_count; b++) {
    const ops_bind *bind = &launch->binds[b];
    arguments[bind->slot].span = (atlas_span){place_of_bind(b, bind), bind->byte_count};
  }
}

static hg_status warm_launch(const ops_launch *launch, atlas_argument *arguments) {
  hg_launch_desc desc = {.size = sizeof desc};
  atlas_launch shape;
  uint64_t lanes = 0;
  ops_set_shape(launch, &desc);
  HG_TRY(hg_kernel_ready(launch->kernel));
  HG_TRY(hg_launch_shape(launch->kernel, &desc, &shape, &lanes));
  if (lanes == 0) return HG_OK;
  describe_arguments(launch, arguments);
  shape.arguments = arguments;
  return hg_launch_warm(launch->kernel, &shape);
}

static hg_status warm(const hg_executable *e, const ops_launch *launch) {
  const hg_allocator *allocator = &e->executor->allocator;
  size_t count = launch->kernel->program->symbols.count;
  atlas_argument *arguments = hg_allocate(allocator, count, sizeof *arguments);
  if (arguments == NULL) return hg_fail_memory("the arguments of a launch", count * sizeof *arguments);
  hg_status status = warm_launch(launch, arguments);
  hg_release(allocator, arguments);
  return status;
}

static uint64_t count_kernels(const hg_executable *e) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < e->launch_count; i++) count += e->launches[i].first == i;
  return count;
}

hg_status hg_executable_warm(hg_executable *executable, uint64_t *kernel_count) {
  if (executable == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_executable_warm: the executable is NULL");
  hg_patience patience = ops_patience(executable);
  for (uint32_t i = 0; i < executable->launch_count; i++) {
    HG_TRY(warm(executable, &executable->launches[i]));
    HG_TRY(hg_patience_ask(&patience));
  }
  if (kernel_count != NULL) *kernel_count = count_kernels(executable);
  return HG_OK;
}
