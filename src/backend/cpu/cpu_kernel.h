/* cpu_kernel.h - a program compiled for the CPU, and the engine that runs it. */
#ifndef HG_CPU_KERNEL_H
#define HG_CPU_KERNEL_H

#include "backend/backend.h"
#include "backend/cpu/engine/detect.h"
#include "backend/cpu/native/code_pages.h"
#include "compiler/expand.h"
#include "vector/vector.h"

typedef enum hg_cpu_engine {
  HG_CPU_REFERENCE, /* the canonical program, lane by lane */
  HG_CPU_TILE,      /* instruction by instruction over rows of lanes */
  HG_CPU_NATIVE,    /* machine code; the tile engine where there is none */
  HG_CPU_ENGINE_COUNT
} hg_cpu_engine;

/* Compiles the kernels of a device. Any number of threads may use it at once. */
typedef struct hg_cpu_compiler {
  hg_allocator allocator;
  hg_cpu_engine engine;
  int is_asked;          /* 1: the caller chose the engine; 0: the environment or the default did */
  cpu_isa isa;
  uint32_t most_threads; /* of a launch; 0: no bound */
  const atomic_uint *cancels; /* see atlas_launch */
  uint64_t stream_bytes; /* hg_stream_threshold() */
  hg_functions functions;
  hg_code_pages pages;   /* release the kernels before closing it */
} hg_cpu_compiler;

/* `engine` by name, HG_UNSUPPORTED for an unknown one; "": that of HOLOGRAM_CPU_ENGINE. Also reads HOLOGRAM_CPU_ISA.
 * Without them, the fastest that the machine has. HG_INVALID_ARGUMENT for unknown names in the environment.
 * hg_cpu_compiler_choose only chooses: there is nothing to close. */
hg_status hg_cpu_compiler_choose(const char *engine, hg_cpu_compiler *compiler);
hg_status hg_cpu_compiler_open(const char *engine, hg_cpu_compiler *compiler, const hg_allocator *allocator);
void hg_cpu_compiler_close(hg_cpu_compiler *compiler);
const char *hg_cpu_compiler_engine(const hg_cpu_compiler *compiler); /* a constant: "tile avx2" */

/* Vector code from a canonical unit, which it modifies: expands and optimises first. `functions` may be NULL. */
hg_status hg_cpu_vectorise(const atlas_program *program, ssa_unit *unit, hg_functions *functions, hg_vector *vector);

typedef struct hg_cpu_kernel hg_cpu_kernel;

/* `input` as in backend.h. */
hg_status hg_cpu_kernel_create(hg_cpu_compiler *compiler, hg_compile_input *input, hg_cpu_kernel **out);
const char *hg_cpu_kernel_engine(const hg_cpu_kernel *kernel);
void hg_cpu_kernel_describe(const hg_cpu_kernel *kernel, hg_kernel_facts *facts);
const char *hg_cpu_kernel_why(const hg_cpu_kernel *kernel); /* hg_compiled.why */
const char *hg_cpu_kernel_notes(const hg_cpu_kernel *kernel);
/* Several threads may call it at once. HG_CANCELLED if the compiler's *cancels is not launch->cancel_number. */
hg_status hg_cpu_kernel_launch(hg_cpu_kernel *kernel, atlas_launch *launch);
hg_status hg_cpu_fail_cancelled(void);
/* 1 if running the launch takes less time than handing it to another thread. */
int hg_cpu_kernel_is_small(const hg_cpu_kernel *kernel, const atlas_launch *launch);
void hg_cpu_kernel_release(hg_cpu_kernel *kernel); /* NULL is accepted */

#endif
