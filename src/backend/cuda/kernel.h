/* kernel.h - a program compiled for the CUDA device: its variants, and their launches. */
#ifndef HG_CUDA_KERNEL_H
#define HG_CUDA_KERNEL_H

#include "backend/cuda/improve.h"
#include "backend/cuda/cuda_tuning.h"
#include "backend/cuda/ptx/emit_ptx.h"
#include "backend/cuda/vendor.h"
#include "backend/gpu/variants.h"

/* One variant of a program, loaded. */
typedef struct cuda_entry {
  hg_gpu_info info;          /* must be first */
  struct cuda_entry *before; /* the entry that it replaces, which work of the GPU may still run; NULL */
  atomic_uint is_first;      /* the driver compiled it quickly; full code will replace it */
  atomic_uint launches;      /* its launches while it is the first */
  void *module, *function;
} cuda_entry;

#define CUDA_FIRST_CODE "the driver compiled this code quickly, and compiles it in full meanwhile"

/* In the wanted set of a kernel: its code in full. */
#define CUDA_WANTS_ALL (1u << 31)

typedef struct cuda_kernel {
  hg_gpu_kernel gpu;     /* must be first */
  cuda_product *product; /* runs instead of the program; NULL: none */
} cuda_kernel;

hg_status hg_cuda_compile(void *device, hg_compile_input *input, hg_compiled *out);
hg_status hg_cuda_prepare(void *device, void *kernel);
hg_status hg_cuda_describe(void *device, void *kernel, hg_kernel_facts *facts);
void hg_cuda_release(void *device, void *kernel);
hg_status hg_cuda_launch(void *device, void *kernel, atlas_launch *launch);

/* Copies the buffer table of a launch to device memory, on the own stream; NULL if the program has none. HG_UNPREPARED
 * if the usual entry is not compiled yet. */
hg_status hg_cuda_write_table_within(cuda_device *d, cuda_kernel *kernel, const atlas_launch *launch, uint8_t **table);
/* HG_UNPREPARED if the variant that the launch needs is not compiled yet. */
hg_status hg_cuda_check_ready(const cuda_device *d, cuda_kernel *kernel, const atlas_launch *launch);
/* HG_UNPREPARED if that variant is not compiled in full yet: for repeated launches, such as a graph's. */
hg_status hg_cuda_check_final(void *device, void *kernel, const atlas_launch *launch);
/* hg_cuda_check_ready under a profiler only, which would otherwise also show a range for the launch that is
 * repeated. */
static inline hg_status hg_cuda_check_ready_for_range(const cuda_device *d, cuda_kernel *kernel,
                                                      const atlas_launch *launch) {
  return d->tool == NULL ? HG_OK : hg_cuda_check_ready(d, kernel, launch);
}
/* Launches on a stream of the driver; a fault goes to the record of the work's number. */
hg_status hg_cuda_launch_on_within(cuda_device *d, void *stream, const cuda_records *records, const hg_work *work,
                                   const uint8_t *table);

#endif
