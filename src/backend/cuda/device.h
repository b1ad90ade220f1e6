/* device.h - the inside of the CUDA device, shared by the files of this folder.
 *
 * Memory is allocated and freed in the order of a stream (its home): the own stream if the caller names none. A stream
 * can reuse what it has freed without a wait, and without mapping new pages, which costs several times what a kernel
 * takes over them.
 *
 * All work except that of callers' streams goes to the device's own stream, in order. Before new work, a caller's
 * stream waits for the own stream, if that has had work since the last such wait (hg_cuda_order_within). In the other
 * direction the runtime waits on the host; only frees and the closing of a stream make the own stream wait. The runtime
 * calls a device from any thread, one call at a time, except calls that wait and that compile: data shared with these
 * is marked below.
 *
 * Functions whose name ends in _within expect the device's context to be current: see hg_cuda_enter.
 *
 * Circle: copy device foreign graph improve launch map memory staging stream vendor: memory is freed behind the work of
 * streams, whose records and staging are memory; and closing a device closes all of them. */
#ifndef HG_CUDA_DEVICE_H
#define HG_CUDA_DEVICE_H

#include "backend/backend.h"
#include "backend/cuda/cuda_tuning.h"
#include "backend/cuda/driver.h"
#include "backend/cuda/nvtx.h"
#include "backend/cuda/vendor_library.h"
#include "backend/cuda/warm.h"
#include "base/kernel_cache.h"
#include "compiler/expand.h"

/* An allocation of device memory, by its address. */
typedef struct cuda_allocation {
  uint8_t *address;     /* aligned as requested */
  cuda_address base;    /* as returned by the driver */
  uint64_t byte_count;  /* from the address on */
  uint64_t taken;       /* bytes from the base on */
  struct cuda_stream *home; /* the stream in whose order it is allocated and freed; NULL: the own stream */
  uint8_t *mirror;      /* while any range is mapped: host memory of byte_count bytes, with the same alignment */
  void *mirror_block;   /* the allocation that contains the mirror */
  uint32_t map_count;
} cuda_allocation;

/* A mapped range. */
typedef struct cuda_map {
  uint8_t *address;
  uint64_t byte_count;
} cuda_map;

/* Freed memory that the next allocation of the same size takes, if the driver has no pools. */
typedef struct cuda_spare {
  cuda_address base;
  uint64_t taken;
} cuda_spare;

/* Pinned host memory that transfers pass through. */
typedef struct cuda_slot {
  uint8_t *memory; /* NULL: not yet allocated */
  void *done;      /* event: the device no longer uses the memory */
  uint8_t busy;    /* the event has been recorded but not waited for */
} cuda_slot;

/* The faults of launches: for each launch a record in device memory, and a flag in memory that the host reads. */
typedef struct cuda_records {
  uint64_t count;
  uint8_t *faults;                 /* hg_gpu_fault, in device memory */
  volatile uint32_t *flags;        /* pinned; NULL: not yet made */
  cuda_address flags_address;
} cuda_records;

/* A stream of the caller's: created by the runtime, or foreign. */
typedef struct cuda_stream {
  cuda_records records; /* must be first, as in cuda_graph; of launch n: n % count */
  void *stream;
  uint8_t is_foreign;
  void *done;           /* of a foreign stream: event behind its last work, valid also while its owner captures it */
  uint64_t seen;        /* own_work of the device at the stream's last wait for it */
} cuda_stream;

/* The work that a stream captured. */
typedef struct cuda_graph {
  cuda_records records; /* of each launch */
  void *executable;
  void *done;           /* event behind its latest launch; the driver runs launches of one graph in order */
  hg_array tables;      /* uint8_t *: device memory of its launches' tables, by launch; NULL where there is none */
} cuda_graph;

/* The first sticky error of the context, of any thread. */
enum { CUDA_POISON_NONE, CUDA_POISON_WRITTEN, CUDA_POISON_KNOWN };

/* The threads that compile kernels in full: see improve.h. */
typedef struct cuda_improvement cuda_improvement;
typedef struct cuda_improver {
  struct cuda_device *device;
  cuda_improvement *at; /* what the thread compiles; NULL: nothing */
  hg_thread thread;
  enum { CUDA_IMPROVER_NONE, CUDA_IMPROVER_RUNS, CUDA_IMPROVER_ENDED } state; /* ENDED: still to be joined */
} cuda_improver;

typedef struct cuda_improvers {
  hg_mutex mutex;          /* guards the queue and the threads */
  cuda_improvement *first; /* the queue */
  cuda_improver each[CUDA_IMPROVERS];
  atomic_uint made;        /* counts compilations of these threads */
  atomic_uint callers;     /* threads whose callers wait for a compilation */
  _Atomic(uint64_t) quiet_since; /* when the last of these ended */
} cuda_improvers;

typedef struct cuda_device {
  hg_allocator allocator;
  cuda_driver driver;
  const hg_nvtx *tool;   /* the profiler that gets ranges; NULL: none */
  int ordinal;
  uint64_t peers;        /* by ordinal: GPUs for which peer access has been tried */
  int capability;        /* 10 * major + minor */
  uint32_t multiprocessors;
  uint32_t shared_bytes, multiprocessor_shared_bytes; /* most bytes of a block; bytes of a multiprocessor */
  uint64_t cache_bytes;  /* of the last-level cache */
  uint64_t lut_lanes;  /* HOLOGRAM_TABLE_LANES: smaller launches do not use the table variant (gpu/lut.c) */
  uint8_t lut_lanes_given; /* 1: launches from that size on use it, whatever hg_gpu_info.lut_lanes is */
  uint64_t process;      /* the process that opened it: a child of fork must not call the driver */
  void *context, *stream;
  uint64_t own_work;     /* counts work of the own stream that the host has not waited for */
  uint64_t own_recorded; /* own_work when own_event was last recorded */
  void *own_event,
      *stream_event;     /* by which streams wait for the own one, and for each other; NULL: not made yet */
  void *timer[2];        /* events around timed launches; NULL: not made yet */
  void *pool;            /* NULL: the driver has none */
  hg_array allocations;  /* cuda_allocation, ascending by address */
  hg_array maps;         /* cuda_map */
  hg_mutex mutex;        /* guards the spares, and the heap's warming: compilations use both */
  hg_array spares;       /* cuda_spare */
  uint64_t spare_bytes;  /* of spares */
  uint64_t in_use;       /* bytes of the allocations */
  uint64_t kept_most;    /* of freed memory */
  uint64_t bounded_use;  /* bytes of allocations when the pool's bound was last set */
  cuda_slot slots[CUDA_SLOT_COUNT];
  uint32_t next_slot;
  hg_functions functions; /* library functions that programs have needed so far; for all threads */
  int warms;              /* 1: the process's first device, which warms the heap: see warm.h */
  hg_kernel_cache *cache; /* NULL: out of memory, keeps nothing; for all threads */
  cuda_vendor vendor;     /* cuBLASLt; the mutex guards it */
  uint8_t has_vendor;     /* 0: not found yet, or unusable */
  uint8_t is_quick;       /* 1: long texts are compiled quickly at first */
  cuda_improvers improvers;
  uint8_t writes_lines;   /* HOLOGRAM_LINES: kernels say the program's line of each instruction */
  uint8_t *record;       /* results of kernels that are not in buffers: see launch.c; NULL before the first launch */
  void *host_record;
  cuda_address host_record_address;
  atomic_uint poisoned;  /* CUDA_POISON_KNOWN: every call fails with `poison` */
  char poison[400];
} cuda_device;

/* ---- device.c ---------------------------------------------------------------------------------------------------- */

hg_status hg_cuda_query(const hg_device_choice *choice, hg_device_info *info);
hg_status hg_cuda_open(const hg_allocator *allocator, const hg_device_choice *choice, void **device,
                       int *host_is_full);
void hg_cuda_close(void *device);

/* Makes the device's context current until hg_cuda_leave, which takes *pushed. Fails in a child of fork and on a
 * poisoned device. */
hg_status hg_cuda_enter(cuda_device *d, int *pushed);
hg_status hg_cuda_fail_forked(void);
/* HG_DEVICE on a poisoned device. */
hg_status hg_cuda_check_poison(cuda_device *d);
void hg_cuda_leave(cuda_device *d, int pushed);

/* As hg_cuda_driver_check; a sticky error of the context poisons the device. */
hg_status hg_cuda_check(cuda_device *d, int result, const char *what);

/* The value of an expression of hg_status, with the context current. */
#define CUDA_RUN(device, expression)                    \
  do {                                                  \
    int cuda_pushed = 0;                                \
    HG_TRY(hg_cuda_enter(device, &cuda_pushed));           \
    hg_status cuda_status = (expression);               \
    hg_cuda_leave(device, cuda_pushed);                    \
    return cuda_status;                                 \
  } while (0)

static inline void hg_cuda_range_begin(const cuda_device *d, const char *verb, const char *name, uint64_t amount) {
  if (d->tool != NULL) hg_nvtx_push(d->tool, verb, name, amount);
}
static inline hg_status hg_cuda_range_end(const cuda_device *d, hg_status status) {
  if (d->tool != NULL) hg_nvtx_pop(d->tool);
  return status;
}

/* The value of an expression of hg_status, shown as a range by profilers: see hg_nvtx_push. */
#define CUDA_RANGE(device, verb, name, amount, expression) \
  (hg_cuda_range_begin(device, verb, name, amount), hg_cuda_range_end(device, expression))

/* HG_TRY of a driver call. */
#define CUDA_TRY(device, call, what) HG_TRY(hg_cuda_check(device, (device)->driver.call, what))

static inline cuda_address cuda_address_of(const uint8_t *address) { return (cuda_address)(uintptr_t)address; }

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

hg_status hg_cuda_allocate(void *device, uint64_t byte_count, uint32_t alignment, int zeroed, uint8_t **address);
void hg_cuda_free(void *device, uint8_t *address);
hg_status hg_cuda_allocate_on(void *device, void *stream, uint64_t byte_count, uint32_t alignment, int zeroed,
                              uint8_t **address);
void hg_cuda_memory(void *device, hg_device_memory *memory);
void hg_cuda_keep(void *device, uint64_t byte_count);
void hg_cuda_trim(void *device);
/* The stream ends: memory in its order is in the own stream's order from now on. */
void hg_cuda_leave_home(cuda_device *d, const cuda_stream *stream);
/* Orders later work of `stream` behind the present work of `other`. */
void hg_cuda_wait_behind_within(cuda_device *d, void *stream, const cuda_stream *other);
/* Frees memory behind the present work of these streams and of its home. */
void hg_cuda_free_behind_within(cuda_device *d, uint8_t *address, void *const *streams, size_t count);
hg_status hg_cuda_allocate_within(cuda_device *d, uint64_t byte_count, uint32_t alignment, uint8_t **address);
void hg_cuda_free_within(cuda_device *d, uint8_t *address);
/* Returns all spare memory to the driver. May run while another thread is in a call of the device. */
void hg_cuda_trim_within(cuda_device *d);
/* The allocation that contains the byte at an address, and the one that begins there; NULL: there is none. */
cuda_allocation *hg_cuda_allocation_of(cuda_device *d, const uint8_t *address);
cuda_allocation *hg_cuda_allocation_at(cuda_device *d, const uint8_t *address);
hg_status hg_cuda_memory_open_within(cuda_device *d);
void hg_cuda_memory_close_within(cuda_device *d);

/* ---- copy.c ------------------------------------------------------------------------------------------------------ */

hg_status hg_cuda_copy_in(void *device, uint8_t *destination, const void *source, uint64_t byte_count);
hg_status hg_cuda_copy_out(void *device, void *destination, const uint8_t *source, uint64_t byte_count);
hg_status hg_cuda_copy_within(void *device, uint8_t *destination, const uint8_t *source, uint64_t byte_count);
hg_status hg_cuda_fill(void *device, uint8_t *destination, uint64_t byte_count, const void *pattern,
                       size_t pattern_size);
hg_status hg_cuda_move_within(cuda_device *d, uint8_t *destination, const uint8_t *source, uint64_t byte_count);
/* `stream`: any stream of the driver. */
hg_status hg_cuda_fill_within(cuda_device *d, void *stream, uint8_t *destination, uint64_t byte_count,
                              const void *pattern, size_t pattern_size);
hg_status hg_cuda_copy_in_within(cuda_device *d, uint8_t *destination, const void *source, uint64_t byte_count);
hg_status hg_cuda_copy_out_within(cuda_device *d, void *destination, const uint8_t *source, uint64_t byte_count);

/* ---- map.c ------------------------------------------------------------------------------------------------------- */

hg_status hg_cuda_map_memory(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count, void **memory);
hg_status hg_cuda_unmap_memory(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count);
/* Mapped device memory has a mirror in host memory: push copies it to the device before the device reads or writes
 * memory at `address`, pull copies it back after the device has written. */
hg_status hg_cuda_maps_push(cuda_device *d, const uint8_t *address);
hg_status hg_cuda_maps_pull(cuda_device *d, const uint8_t *address);

/* ---- foreign.c --------------------------------------------------------------------------------------------------- */

/* An attribute of a pointer, as the driver knows it; returns 0 if it has none. The memory type of memory that is not
 * CUDA's is 0. */
int hg_cuda_pointer_attribute(const cuda_device *d, int attribute, cuda_address address, void *value);
hg_status hg_cuda_adopt(void *device, const uint8_t *memory, uint64_t byte_count);
hg_status hg_cuda_copy_from(void *device, uint8_t *destination, void *source_device, const uint8_t *source,
                            uint64_t byte_count);

/* ---- launch.c ---------------------------------------------------------------------------------------------------- */

void hg_cuda_records_close_within(cuda_device *d);

/* ---- vendor.c ---------------------------------------------------------------------------------------------------- */

void hg_cuda_vendor_close_within(cuda_device *d);

/* ---- stream.c, graph.c ------------------------------------------------------------------------------------------- */

extern const hg_stream_functions hg_cuda_streams;

hg_status hg_cuda_fault_records_open_within(cuda_device *d, cuda_records *records, uint64_t count);
void hg_cuda_fault_records_close_within(cuda_device *d, cuda_records *records);
/* Gives work to a stream of the driver, which may be capturing. `table`: of a launch, from
 * hg_cuda_write_table_within. */
hg_status hg_cuda_submit_within(cuda_device *d, void *stream, const cuda_records *records, const hg_work *work,
                                const uint8_t *table);
/* Orders later work of the stream behind the present work of the own stream. */
hg_status hg_cuda_order_within(cuda_device *d, cuda_stream *stream);
/* Returns a result: not CUDA_OK while another library captures its foreign stream into a graph. */
int hg_cuda_check_capture_within(const cuda_device *d, const cuda_stream *stream);
/* Called after each work item: records cuda_stream.done. */
hg_status hg_cuda_mark_within(cuda_device *d, const cuda_stream *stream);
/* Waits for all work of the stream, even while it is captured; returns a result. */
int hg_cuda_wait_at_last_within(const cuda_device *d, const cuda_stream *stream);
void hg_cuda_events_close_within(cuda_device *d);

hg_status hg_cuda_graph_open(void *device, const hg_work *work, size_t count, void **graph);
void hg_cuda_graph_close(void *device, void *graph);
hg_status hg_cuda_graph_submit(void *device, void *stream, void *graph, uint64_t number);

/* ---- staging.c --------------------------------------------------------------------------------------------------- */

void hg_cuda_slots_close_within(cuda_device *d);
/* Transfers through the slots while the host copies the next batch. */
hg_status hg_cuda_stage_in(cuda_device *d, uint8_t *destination, const uint8_t *source, uint64_t byte_count);
hg_status hg_cuda_stage_out(cuda_device *d, uint8_t *destination, const uint8_t *source, uint64_t byte_count);

#endif
