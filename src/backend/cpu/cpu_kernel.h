/* cpu_kernel.h - a program made ready for the CPU, and which engine runs it. */
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

/* What compiles the kernels of a device; any number of threads may use it at once. */
typedef struct hg_cpu_compiler {
  hg_allocator allocator;
  hg_cpu_engine engine;
  int is_asked;          /* the engine, by who opened the device; 0: by the environment, or by nobody */
  cpu_isa isa;
  uint32_t most_threads; /* of a launch; 0: no bound */
  const atomic_uint *cancels; /* see atlas_launch */
  uint64_t stream_bytes; /* hg_stream_threshold() */
  hg_functions functions;
  hg_code_pages pages;   /* its kernels must be released before it is closed */
} hg_cpu_compiler;

/* `engine` by name, HG_UNSUPPORTED if there is none such; "": that of HOLOGRAM_CPU_ENGINE. HOLOGRAM_CPU_ISA is read,
 * too; without them the fastest that the machine has. HG_INVALID_ARGUMENT for a name in them that is none.
 * hg_cpu_compiler_choose does no more than that: there is nothing to close. */
hg_status hg_cpu_compiler_choose(const char *engine, hg_cpu_compiler *compiler);
hg_status hg_cpu_compiler_open(const char *engine, hg_cpu_compiler *compiler, const hg_allocator *allocator);
void hg_cpu_compiler_close(hg_cpu_compiler *compiler);
const char *hg_cpu_compiler_engine(const hg_cpu_compiler *compiler); /* a constant: "tile avx2" */

/* Vector code from a canonical unit, which is used up: expansion and optimisation first. `functions` may be NULL. */
hg_status hg_cpu_vectorise(const atlas_program *program, ssa_unit *unit, hg_functions *functions, hg_vector *vector);

typedef struct hg_cpu_kernel hg_cpu_kernel;

/* `input` as in backend.h. */
hg_status hg_cpu_kernel_create(hg_cpu_compiler *compiler, hg_compile_input *input, hg_cpu_kernel **out);
const char *hg_cpu_kernel_engine(const hg_cpu_kernel *kernel);
void hg_cpu_kernel_describe(const hg_cpu_kernel *kernel, hg_kernel_facts *facts);
const char *hg_cpu_kernel_why(const hg_cpu_kernel *kernel); /* hg_compiled.why */
const char *hg_cpu_kernel_notes(const hg_cpu_kernel *kernel);
/* By several threads at once, if need be. HG_CANCELLED where the compiler's *cancels is not launch->cancel_number. */
hg_status hg_cpu_kernel_launch(hg_cpu_kernel *kernel, atlas_launch *launch);
hg_status hg_cpu_fail_cancelled(void);
/* 1 if the launch takes less than handing it to another thread. */
int hg_cpu_kernel_is_small(const hg_cpu_kernel *kernel, const atlas_launch *launch);
void hg_cpu_kernel_release(hg_cpu_kernel *kernel); /* NULL is accepted */

#endif
