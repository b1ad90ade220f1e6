/* metal_device.h - the Metal device, shared by its files.
 *
 * CPU and GPU share all memory, so an address of the backend is the host's; kernels get the GPU's address, which
 * `hg_metal_gpu_address` finds. One command queue does all work in the order of submission, so streams need no other
 * order. Copies and fills of streams are work of the queue; a copy by the CPU waits for all work submitted before.
 *
 * Functions of the backend run in an autorelease pool of their own (METAL_RUN). The first command buffer that fails
 * poisons the device: every later call fails with its sentence. */
#ifndef HG_METAL_METAL_DEVICE_H
#define HG_METAL_METAL_DEVICE_H

#include "backend/backend.h"
#include "backend/gpu/gpu.h"
#include "backend/metal/objc.h"
#include "base/error.h"
#include "base/kernel_cache.h"
#include "base/os.h"
#include "compiler/expand.h"

#include <stdatomic.h>

/* The memory of one Metal buffer. */
typedef struct metal_allocation {
  uint8_t *memory;   /* the aligned address that callers have */
  uint64_t byte_count;
  uint64_t address;  /* the GPU's address of the same byte */
  metal_id buffer;
  uint64_t length;   /* length of the buffer */
  uint32_t options;
  uint8_t is_wrapped; /* wraps memory of another library or the host */
} metal_allocation;

/* A freed buffer, which the next allocation of about its length may take once earlier work is done. */
typedef struct metal_spare {
  metal_id buffer;
  uint64_t length;
  uint32_t options;
  metal_id behind; /* the last command buffer that may use it, retained; NULL: none */
} metal_spare;

/* A command buffer and its only encoder. */
typedef struct metal_encoding {
  metal_id commands, encoder; /* NULL: not begun */
} metal_encoding;

/* Results of launches that are not in buffers, in shared memory. */
typedef struct metal_record {
  hg_gpu_fault fault;
  uint64_t flag;
} metal_record;

typedef struct metal_results {
  metal_record record;
  int64_t resonance[ATLAS_CLASS_COUNT];
  uint64_t phase_advance;
} metal_results;

typedef struct metal_device {
  hg_allocator allocator;
  metal_runtime objc;
  metal_id device, queue;
  metal_id mover;         /* the pipeline for copies and fills; NULL: not made yet */
  uint32_t shared_bytes;
  uint64_t process;       /* the process that opened it: a child of fork has no GPU */
  hg_mutex mutex;         /* guards `last`, that of streams and events, in_flight: read without the runtime's lock */
  metal_id last;          /* the last command buffer; NULL: none yet */
  hg_array in_flight;     /* metal_id, retained: command buffers whose failure has not been looked for, oldest first */
  hg_array allocations;   /* metal_allocation, in ascending order of memory */
  hg_array spares;        /* metal_spare, oldest first */
  uint64_t spare_bytes, most_spare_bytes;
  metal_results *results; /* of launches that are waited for; NULL: none yet */
  hg_functions functions;
  hg_kernel_cache *cache; /* NULL: no cache */
  char name[128], system[128]; /* of the device; of the operating system */
  atomic_uint poisoned;
  char poison[300];
} metal_device;

/* ---- device.c ---------------------------------------------------------------------------------------------------- */

hg_status hg_metal_query(const hg_device_choice *choice, hg_device_info *info);
hg_status hg_metal_open(const hg_allocator *allocator, const hg_device_choice *choice, void **device,
                        int *host_is_full);
void hg_metal_close(void *device);

#define METAL_RUN(d, call)                                   \
  do {                                                       \
    const metal_device *device_ = (d);                       \
    HG_TRY(hg_metal_check(device_));                         \
    void *pool_ = device_->objc.pool_push();                 \
    hg_status status_ = (call);                              \
    device_->objc.pool_pop(pool_);                           \
    return status_;                                          \
  } while (0)

/* ---- commands.c: command buffers --------------------------------------------------------------------------------- */

/* `commit` submits the command buffer and makes it *last (NULL: the device's only) in place of the one there. Submits
 * nothing if nothing is begun. */
hg_status hg_metal_begin_within(metal_device *d, metal_encoding *e);
void hg_metal_commit_within(metal_device *d, metal_encoding *e, metal_id *last);
/* The command buffer in *last, retained (the caller releases it), or NULL. */
metal_id hg_metal_take_last(metal_device *d, metal_id *last);
void hg_metal_set_last(metal_device *d, metal_id *last, metal_id commands);
/* Waits for a command buffer, or for none if it is NULL. Poisons the device if that one or an earlier one failed. */
hg_status hg_metal_wait_for(metal_device *d, metal_id commands);
int hg_metal_is_idle(metal_device *d); /* 1 if all work is done */
/* Waits for all work. */
hg_status hg_metal_settle(metal_device *d);
/* HG_DEVICE if a command buffer has failed, or in a child of fork. */
hg_status hg_metal_check(const metal_device *d);

/* ---- spares.c ---------------------------------------------------------------------------------------------------- */

/* A spare of at least that length, which becomes the spare's length; NULL: there is none. */
metal_id hg_metal_take_spare_within(metal_device *d, uint64_t *length, uint32_t options);
/* Takes over the reference to the buffer, but not the one to `behind`. */
void hg_metal_keep_spare_within(metal_device *d, const metal_spare *spare);
/* Waits for all work and returns all spares to the system. 0 if there were none. */
int hg_metal_trim_within(metal_device *d);

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

hg_status hg_metal_allocate_within(metal_device *d, uint64_t byte_count, uint32_t alignment, int zeroed,
                                   uint8_t **memory);
/* In memory whose flags the CPU may read while the GPU works. */
hg_status hg_metal_allocate_records_within(metal_device *d, uint64_t count, metal_record **records);
/* Memory of the host: the CPU may use one part while the GPU copies another. */
hg_status hg_metal_allocate_host_within(metal_device *d, uint64_t byte_count, uint8_t **memory);
/* 1 if the range lies in one buffer that wraps nothing. */
int hg_metal_is_own(const metal_device *d, const uint8_t *memory, uint64_t byte_count);
/* Frees after all work submitted until now and, unless it is NULL, after a command buffer that is still being
 * encoded. */
void hg_metal_free_within(metal_device *d, uint8_t *memory, metal_id commands);
/* The GPU's address, 0 for NULL. The encoder's command buffer keeps the memory resident. */
uint64_t hg_metal_gpu_address(metal_device *d, metal_id encoder, const uint8_t *memory);
hg_status hg_metal_allocate(void *device, uint64_t byte_count, uint32_t alignment, int zeroed, uint8_t **memory);
void hg_metal_free(void *device, uint8_t *memory);
void hg_metal_memory(void *device, hg_device_memory *memory);
void hg_metal_keep(void *device, uint64_t byte_count);
void hg_metal_trim(void *device);
hg_status hg_metal_adopt(void *device, const uint8_t *memory, uint64_t byte_count);
hg_status hg_metal_copy_in(void *device, uint8_t *destination, const void *source, uint64_t byte_count);
hg_status hg_metal_copy_out(void *device, void *destination, const uint8_t *source, uint64_t byte_count);
hg_status hg_metal_copy_within(void *device, uint8_t *destination, const uint8_t *source, uint64_t byte_count);
hg_status hg_metal_fill(void *device, uint8_t *destination, uint64_t byte_count, const void *pattern,
                        size_t pattern_size);
hg_status hg_metal_map(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count, void **memory);
hg_status hg_metal_unmap(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count);
void hg_metal_memory_close(metal_device *d);

extern const hg_stream_functions hg_metal_streams; /* stream.c */
extern const hg_emit_target hg_metal_emit_targets[]; /* metal_emit.c */

#endif
