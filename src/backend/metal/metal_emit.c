/* metal_emit.c - the MSL text of a program, for `hologram emit`. */
#include "backend/metal/metal_device.h"
#include "backend/metal/msl/emit_msl.h"

#include <stdio.h>

static hg_status emit(const hg_emit_target *target, const hg_allocator *allocator, const atlas_program *program,
                      uint32_t capability, hg_array *bytes) {
  hg_gpu_info info;
  char name[ATLAS_MAX_NAME + 4];
  (void)target;
  (void)capability;
  snprintf(name, sizeof name, "hg_%s", program->name);
  const hg_msl_options options = {.variant.threads = ATLAS_LINEAR_BLOCK_LANES, .name = name};
  return hg_msl_compile(allocator, program, &options, bytes, &info);
}

const hg_emit_target hg_metal_emit_targets[] = {{.name = "msl", .emit = emit}, {.name = NULL}};
