/* emit_msl.h - text in the Metal Shading Language from a compiled program. Pure: no device, no I/O.
 *
 *   ssa_unit unit;                        // hg_canonicalise
 *   hg_msl_options options = {.name = "hg_add"};
 *   hg_gpu_info info;
 *   HG_TRY(hg_msl_prelude(&allocator, &text));                        // once a library
 *   HG_TRY(hg_msl_write(&allocator, program, &unit, &functions, &options, &text, &info)); // one kernel
 *
 * A kernel has one parameter, buffer 0: the argument block that hg_gpu_pack makes (backend/gpu/gpu.h). It is launched
 * with dispatchThreads, so that a linear launch's last block has the lanes that are left, and needs what the text
 * declares of threadgroup memory, info.shared_bytes. */
#ifndef HG_EMIT_MSL_H
#define HG_EMIT_MSL_H

#include "backend/gpu/gpu.h"
#include "compiler/expand.h"
#include "ir/ssa.h"

enum { HG_MSL_DECLARED_SHARED = 32 << 10 }; /* bytes of threadgroup memory, which every Apple GPU has */

typedef struct hg_msl_options {
  hg_gpu_variant variant;
  const char *name;  /* of the kernel: a C identifier */
} hg_msl_options;

/* A GPU whose threadgroups have up to so many bytes of memory. */
hg_gpu_target hg_msl_target(uint32_t shared_bytes);
hg_status hg_msl_prelude(const hg_allocator *allocator, hg_array *text);

/* 1 if the program does more with f64 than move it. MSL has no f64, so that is done in integers. */
int hg_msl_computes_f64(const atlas_program *program);

/* From a canonical unit, which it modifies: expansion, optimisation, one kernel. HG_UNSUPPORTED with a sentence for
 * 64-bit atomics that Metal lacks. */
hg_status hg_msl_write(const hg_allocator *allocator, const atlas_program *program, ssa_unit *unit,
                       hg_functions *functions, const hg_msl_options *options, hg_array *text, hg_gpu_info *info);
/* The same from a program, with the prelude before it. */
hg_status hg_msl_compile(const hg_allocator *allocator, const atlas_program *program, const hg_msl_options *options,
                         hg_array *text, hg_gpu_info *info);

#endif
