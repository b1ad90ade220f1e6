/* cuda_emit.c - the PTX text of a program, for `hologram emit`. */
#include "backend/cuda/cuda_emit.h"

#include "backend/cuda/driver.h"
#include "backend/cuda/ptx/emit_ptx.h"

#include <stdio.h>

enum { NEWEST_CAPABILITY = 999 };

static hg_status emit(const hg_emit_target *target, const hg_allocator *allocator, const atlas_program *program,
                      uint32_t capability, hg_array *bytes) {
  hg_gpu_info info;
  char name[ATLAS_MAX_NAME + 4];
  (void)target;
  snprintf(name, sizeof name, "hg_%s", program->name);
  hg_ptx_options options = {.capability = capability, .variant.threads = ATLAS_LINEAR_BLOCK_LANES, .name = name};
  HG_TRY(hg_ptx_compile(allocator, program, &options, bytes, &info));
  bytes->count--; /* without the NUL */
  return HG_OK;
}

const hg_emit_target hg_cuda_emit_targets[] = {{.name = "ptx",
                                                .least_capability = CUDA_MIN_CAPABILITY,
                                                .most_capability = NEWEST_CAPABILITY,
                                                .emit = emit},
                                               {.name = NULL}};
