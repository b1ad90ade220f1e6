/* emit_ptx.h - PTX text from a compiled program. Pure: no driver, no I/O. How such a kernel is launched: gpu.h.
 *
 *   ssa_unit unit;                        // hg_canonicalise -> hg_ptx_expand -> hg_optimise
 *   hg_array text = {.element_size = 1};
 *   hg_ptx_options options = {.capability = 90, .name = "hg_add"};
 *   hg_gpu_info info;
 *   HG_TRY(hg_ptx_module(&allocator, options.capability, &text));     // once a module
 *   HG_TRY(hg_ptx_emit(&allocator, program, &unit, &options, &text, &info)); // one entry; may be repeated
 *   // terminate with a NUL byte for the driver: hg_array_append(&allocator, &text, NULL, 1)
 *
 * hg_gpu_pack makes the argument block of a launch, which then is
 *
 *   void *parameters[] = {block};
 *   cuLaunchKernel(function, shape.blocks, 1, 1, shape.threads, 1, 1, 0, stream, parameters, NULL);
 *
 * An entry of the variant HG_GPU_LUT needs cuFuncSetAttribute for its dynamic shared memory. The fault flag lies in
 * pinned host memory mapped into the device (cuMemHostAlloc, DEVICEMAP). Registers are shared out for blocks of
 * info.max_threads lanes.
 */
#ifndef HG_EMIT_PTX_H
#define HG_EMIT_PTX_H

#include "backend/gpu/gpu.h"
#include "compiler/expand.h"
#include "ir/ssa.h"

typedef struct hg_ptx_options {
  uint32_t capability;     /* of the device, major * 10 + minor; 0 or below 80: text for sm_75; 90 or above: the driver
                              takes PTX 8.0, the version of CUDA 12.0 */
  hg_gpu_variant variant;
  const char *name;        /* of the entry: a C identifier, for example "hg_" and the program's name */
  const uint32_t *lines;   /* by instruction number, its line in NAME.atlas for profilers, or 0; NULL: none. With lines
                              the text is a module of one entry */
} hg_ptx_options;

enum {
  HG_PTX_MOST_RANKS = 8,            /* ranks that share barriers */
  HG_PTX_MOST_SUB_BLOCKS = 8,       /* blocks of a cluster, on every device that has clusters */
  HG_PTX_DECLARED_SHARED = 48 << 10 /* bytes of shared memory that a text may declare */
};

/* The target for such a device, whose blocks may have that many bytes of shared memory. */
hg_gpu_target hg_ptx_target(uint32_t capability, uint32_t shared_bytes);
/* Writes what begins a module, before its entries: version and target. */
hg_status hg_ptx_module(const hg_allocator *allocator, uint32_t capability, hg_array *text);
/* Expands a canonical unit for hg_optimise, whose result hg_ptx_emit takes; see compiler/expand.h. */
hg_status hg_ptx_expand(const atlas_program *program, ssa_unit *unit, hg_functions *functions, uint32_t capability);
hg_status hg_ptx_emit(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                      const hg_ptx_options *options, hg_array *text, hg_gpu_info *info);

/* Compiles a canonical unit, which is used up: expansion, optimisation, module and one entry; the text ends in a
 * NUL. */
hg_status hg_ptx_write(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                       hg_functions *functions, const hg_ptx_options *options, hg_array *text, hg_gpu_info *info);
/* The same from a program. */
hg_status hg_ptx_compile(const hg_allocator *allocator, const atlas_program *program, const hg_ptx_options *options,
                         hg_array *text, hg_gpu_info *info);

#endif
