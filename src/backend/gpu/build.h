/* build.h - makes the plan of a kernel. */
#ifndef HG_GPU_BUILD_H
#define HG_GPU_BUILD_H

#include "backend/gpu/plan.h"
#include "compiler/expand.h"

/* Expands a canonical unit for hg_optimise, whose result hg_gpu_plan takes; see compiler/expand.h. */
hg_status hg_gpu_expand(const atlas_program *program, ssa_unit *unit, hg_functions *functions,
                        const hg_gpu_target *target);
/* `unit` is optimised; its blocks may be reordered. Fails with HG_OUT_OF_MEMORY only. Release the plan whatever the
 * result is; it refers to the arguments, which must outlive it. */
hg_status hg_gpu_plan(const atlas_program *program, ssa_unit *unit, const hg_gpu_target *target,
                      const hg_gpu_variant *variant, gpu_plan *plan);

#endif
