/* metal_kernel.h - a program compiled for the Metal device: its variants, and their launches. */
#ifndef HG_METAL_METAL_KERNEL_H
#define HG_METAL_METAL_KERNEL_H

#include "backend/gpu/variants.h"
#include "backend/metal/metal_device.h"
#include "backend/metal/metal_tuning.h"

/* One variant of a program. */
typedef struct metal_entry {
  hg_gpu_info info; /* must be first */
  metal_id pipeline;
} metal_entry;

/* ---- pipeline.c -------------------------------------------------------------------------------------------------- */

typedef struct metal_source {
  const char *program, *text, *name; /* the program's name for errors; the library's text; the kernel's name in it */
  uint32_t threads;                  /* threads of the largest block */
} metal_source;

/* `path`: a binary archive, from which machine code is read (is_there), or which is written; NULL: none. */
hg_status hg_metal_pipeline(const metal_device *d, const metal_source *source, const char *path, int is_there,
                            metal_id *pipeline);

/* ---- move.c ------------------------------------------------------------------------------------------------------ */

/* Whether the GPU can do that copy or fill of a stream: it does not see the memory of the host that was not allocated
 * here. */
int hg_metal_can_move(const metal_device *d, const hg_work *work);
hg_status hg_metal_open_mover(metal_device *d);
/* Encodes it after the encoder's other work. The mover must be open. */
void hg_metal_encode_move_within(metal_device *d, const metal_encoding *e, const hg_work *work);
/* The same in a command buffer of its own. */
hg_status hg_metal_move_within(metal_device *d, const hg_work *work, metal_id *last);

/* ---- kernel.c ---------------------------------------------------------------------------------------------------- */

hg_status hg_metal_compile(void *device, hg_compile_input *input, hg_compiled *out);
hg_status hg_metal_prepare(void *device, void *kernel);
hg_status hg_metal_describe(void *device, void *kernel, hg_kernel_facts *facts);
void hg_metal_release(void *device, void *kernel);

/* ---- launch.c ---------------------------------------------------------------------------------------------------- */

hg_status hg_metal_launch(void *device, void *kernel, atlas_launch *launch);
/* HG_UNPREPARED if the variant that the launch needs is not compiled yet. */
hg_status hg_metal_check_ready(void *device, void *kernel, const atlas_launch *launch);
/* Encodes a launch whose variant is compiled, after the encoder's other work, or in a command buffer of its own, which
 * it submits. A fault goes to that record, which lies in memory of the device. `results`: for programs that change
 * counters or the phase; else NULL. */
hg_status hg_metal_encode_within(metal_device *d, const metal_encoding *e, hg_gpu_kernel *kernel,
                                 const atlas_launch *launch, metal_record *record, metal_results *results);
hg_status hg_metal_launch_within(metal_device *d, hg_gpu_kernel *kernel, const atlas_launch *launch,
                                 metal_record *record, metal_results *results, metal_id *last);
/* After the launch is done: takes the fault from its record, and resets the record. */
void hg_metal_take_record(const hg_gpu_kernel *kernel, const atlas_launch *launch, metal_record *record,
                          hg_fault *fault);

#endif
