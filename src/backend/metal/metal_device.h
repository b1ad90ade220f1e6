/* metal_device.h - the Metal device, shared by its files.
 *
 * All memory is shared between CPU and GPU, so an address of the backend is the host's; kernels get the GPU's, which
 * `hg_metal_gpu_address` finds. There is one command queue, in which all work is done in the order in which it was
 * given: streams need no other order. Their copies and fills are work of the queue; a copy by the CPU waits for what
 * was given before.
 *
 * Functions of the backend run in an autorelease pool of their own (METAL_RUN). The first command buffer that fails
 * poisons the device: every call then fails with its sentence. */
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

/* Memory of a buffer of Metal's. */
typedef struct metal_allocation {
  uint8_t *memory;   /* that callers have: aligned */
  uint64_t byte_count;
  uint64_t address;  /* the GPU's, of the same byte */
  metal_id buffer;
  uint64_t length;   /* the buffer's */
  uint32_t options;
  uint8_t is_wrapped; /* another library's memory, or the host's */
} metal_allocation;

/* A buffer that was freed, for the next one of about its length when the work before it is done. */
typedef struct metal_spare {
  metal_id buffer;
  uint64_t length;
  uint32_t options;
  metal_id behind; /* the command buffer that may use it last, retained; NULL: none does */
} metal_spare;

/* A command buffer and its only encoder. */
typedef struct metal_encoding {
  metal_id commands, encoder; /* NULL: it is not begun */
} metal_encoding;

/* The results of launches beside their buffers, in shared memory. */
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
  metal_id mover;         /* the pipeline of copies and fills; NULL: none yet */
  uint32_t shared_bytes;
  uint64_t process;       /* that opened it: a child of fork has no GPU */
  hg_mutex mutex;         /* guards what waits without the runtime's lock share: `last`, those of streams, in_flight */
  metal_id last;          /* the last command buffer; NULL: none yet */
  hg_array in_flight;     /* metal_id, retained: command buffers of which no failure was looked for, the oldest first */
  hg_array allocations;   /* metal_allocation, ascending by memory */
  hg_array spares;        /* metal_spare, the oldest first */
  uint64_t spare_bytes, most_spare_bytes;
  metal_results *results; /* of launches that are waited for; NULL: none yet */
  hg_functions functions;
  hg_kernel_cache *cache; /* NULL: nothing is kept */
  char name[128], system[128]; /* of the device; the version of the system */
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

/* `commit` gives the command buffer to the queue and keeps it as *last (NULL: only as the device's), in place of what
 * was there. What is not begun is not committed. */
hg_status hg_metal_begin_within(metal_device *d, metal_encoding *e);
void hg_metal_commit_within(metal_device *d, metal_encoding *e, metal_id *last);
/* A command buffer that is somebody's `last`, retained, or NULL; to be released. */
metal_id hg_metal_take_last(metal_device *d, metal_id *last);
void hg_metal_set_last(metal_device *d, metal_id *last, metal_id commands);
/* Waits for a command buffer, which may be NULL. If it or one before it failed the device is poisoned. */
hg_status hg_metal_wait_for(metal_device *d, metal_id commands);
int hg_metal_is_idle(metal_device *d); /* all work is done */
/* Waits for all work. */
hg_status hg_metal_settle(metal_device *d);
/* HG_DEVICE if a command buffer has failed, or in a child of fork. */
hg_status hg_metal_check(const metal_device *d);

/* ---- spares.c ---------------------------------------------------------------------------------------------------- */

/* A buffer of at least that length, which it changes to the buffer's own; NULL: there is none. */
metal_id hg_metal_take_spare_within(metal_device *d, uint64_t *length, uint32_t options);
/* Takes over the reference to its buffer, not that to what it is behind. */
void hg_metal_keep_spare_within(metal_device *d, const metal_spare *spare);
/* Gives all of them back to the system, when all work is done. 0: there were none. */
int hg_metal_trim_within(metal_device *d);

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

hg_status hg_metal_allocate_within(metal_device *d, uint64_t byte_count, uint32_t alignment, int zeroed,
                                   uint8_t **memory);
/* In memory whose flags the CPU may read while the GPU works. */
hg_status hg_metal_allocate_records_within(metal_device *d, uint64_t count, metal_record **records);
/* Of the host: as any other, but that the CPU may use the rest while the GPU copies a part. */
hg_status hg_metal_allocate_host_within(metal_device *d, uint64_t byte_count, uint8_t **memory);
/* Whether all of it is in one buffer that wraps nothing. */
int hg_metal_is_own(const metal_device *d, const uint8_t *memory, uint64_t byte_count);
/* Behind the work that was given until now and, unless it is NULL, behind a command buffer that is still encoded. */
void hg_metal_free_within(metal_device *d, uint8_t *memory, metal_id commands);
/* Where the GPU has it, 0 for NULL; the encoder's command buffer keeps it there. */
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
