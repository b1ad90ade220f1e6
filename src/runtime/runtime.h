/* runtime.h - the objects behind the handles of hologram.h.
 *
 * Locking: an executor's mutex guards the executor and everything that belongs to it. Reference counts are atomic and
 * may change without it. A function whose name ends in _locked is called with the mutex held. The log callback is never
 * called with the mutex held, so that it may call the library. Who needs two executors' mutexes takes that at the lower
 * address first. */
#ifndef HG_RUNTIME_H
#define HG_RUNTIME_H

#include "backend/backend.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/os.h"
#include "hologram/hologram.h"

#include <stdatomic.h>

/* ---- backends ---------------------------------------------------------------------------------------------------- */

typedef struct hg_backend_row {
  hg_backend_id id;
  const char *name;
  const hg_backend *backend; /* NULL: not part of this build */
  const char *absent;        /* and why */
} hg_backend_row;

const hg_backend_row *hg_backend_at(size_t index); /* NULL past the last */

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* One allocation of device memory, shared by a buffer and its views. */
typedef struct hg_storage {
  hg_executor *executor; /* holds a reference */
  atomic_uint references;
  uint32_t map_count;    /* of all buffers on it */
  uint8_t foreign;       /* 1: imported, and not ours to free */
  uint8_t *address;      /* of the device */
  uint64_t byte_count;
} hg_storage;

struct hg_buffer {
  hg_storage *storage;
  atomic_uint references;
  uint32_t map_count;
  uint64_t offset, byte_count; /* in the storage */
  uint64_t handle;
};

/* A slot of the handle table. A handle is slot number + 1 in the low 32 bits and the slot's generation above, so that a
 * stale handle is never taken for a newer buffer. */
typedef struct hg_handle_slot {
  hg_buffer *buffer;   /* NULL: free */
  uint32_t generation;
  uint32_t next_free;  /* slot number + 1; 0 ends the list */
} hg_handle_slot;

struct hg_executor {
  atomic_uint references;
  hg_mutex mutex;
  hg_allocator allocator;
  hg_log_callback log;
  void *log_user;

  const hg_backend_row *row;
  const hg_backend *backend;
  void *device;
  hg_device_info info;
  char selection[512];

  hg_array handles; /* hg_handle_slot */
  uint32_t first_free_handle;

  uint8_t *boundary; /* device memory; made at its first use */
  int64_t resonance[ATLAS_CLASS_COUNT];
  uint32_t phase;
};

/* An allocated range of a pool. */
typedef struct hg_region {
  uint64_t offset, byte_count;
} hg_region;

struct hg_pool {
  hg_storage *storage;
  hg_array regions; /* hg_region, ascending and disjoint: what lies between them is free, so free ranges merge by
                       themselves */
  uint64_t used;
};

struct hg_kernel {
  hg_executor *executor;
  atomic_uint references;
  atlas_program *program;
  hg_compiled compiled;
  uint8_t uses_boundary;
  uint8_t uses_resonance;                   /* 0: no launch changes a counter */
  uint8_t only_elements[ATLAS_MAX_SYMBOLS]; /* 1: the symbol is accessed as [x + lane] only */
};

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static inline void hg_lock(hg_executor *executor) { hg_mutex_lock(&executor->mutex); }
static inline void hg_unlock(hg_executor *executor) { hg_mutex_unlock(&executor->mutex); }

/* One reference fewer; 1 if it was the last. */
static inline int hg_unreference(atomic_uint *references) {
  return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}
static inline void hg_reference(atomic_uint *references) {
  atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/* A message for the log callback, if there is one. */
void hg_log(hg_executor *executor, hg_log_level level, const char *format, ...) HG_PRINTF(3, 4);

/* HG_INVALID_ARGUMENT where a descriptor's size is neither 0 nor what this version of the library knows. */
hg_status hg_check_size(const char *what, size_t given, size_t known);

/* Copies a result struct to the caller, no more of it than the caller's version has room for. */
void hg_copy_result(void *destination, const void *source, size_t size);

/* HG_OUT_OF_RANGE unless [offset, offset + byte_count) lies in an object of `size` bytes. */
hg_status hg_check_range(const char *what, uint64_t size, uint64_t offset, uint64_t byte_count);

/* New device memory, zeroed unless `flags` has HG_BUFFER_UNINIT. Takes the lock itself. */
hg_status hg_storage_create(hg_executor *executor, uint64_t byte_count, uint32_t alignment, uint32_t flags,
                            hg_storage **out);
void hg_storage_release(hg_storage *storage); /* NULL is accepted */

/* A buffer over a range of a storage; takes a reference to it. */
hg_status hg_buffer_over(hg_storage *storage, uint64_t offset, uint64_t byte_count, hg_buffer **out);

/* hg_buffer_copy of two executors; what is an error of one executor's has been checked. */
hg_status hg_copy_between(hg_storage *destination, uint64_t destination_offset, hg_storage *source,
                          uint64_t source_offset, uint64_t byte_count);

/* The live buffer with that handle, or NULL. */
hg_buffer *hg_handle_find_locked(hg_executor *executor, uint64_t handle);

/* The boundary pool, made and zeroed at its first use. */
hg_status hg_boundary_locked(hg_executor *executor, uint8_t **address);

/* Copies between host memory and a range of a storage. */
hg_status hg_storage_write(hg_storage *storage, uint64_t offset, const void *source, uint64_t byte_count);
hg_status hg_storage_read(hg_storage *storage, uint64_t offset, void *destination, uint64_t byte_count);

/* Turns a launch's bindings and scalars into one argument a symbol: those that the program has of
 * arguments[ATLAS_MAX_SYMBOLS] are set. *tables is memory for the table entries, to be released by the caller whatever
 * the result. */
hg_status hg_bind_locked(hg_kernel *kernel, const hg_launch_desc *desc, atlas_argument *arguments, atlas_span **tables);

/* The sentence of a fault. */
void hg_fault_describe(const atlas_program *program, const hg_fault *fault, char *text, size_t text_bytes);

#endif
