/* runtime.h - the objects behind the handles of hologram.h.
 *
 * Locking: an executor's mutex guards the executor and everything that belongs to it. Reference counts are atomic and
 * may change without it. A function whose name ends in _locked is called with the mutex held. The log callback is never
 * called with the mutex held, so that it may call the library. Waiting for a stream happens without the mutex, and so
 * does compiling. Who needs two executors' mutexes takes that at the lower address first.
 *
 * Circle: between buffer compilers event executor graph kernel stream: objects hold references to each other, and
 * whoever gives up the last one releases what that object held. */
#ifndef HG_RUNTIME_H
#define HG_RUNTIME_H

#include "backend/backend.h"
#include "base/abi.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/os.h"
#include "base/sha256.h"
#include "hologram/classes.h"

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

/* Streams by their bits (hg_stream_bit): those of an executor from the 64th on share the last one. */
typedef uint64_t hg_stream_set;

/* One allocation of device memory, shared by a buffer and its views. */
typedef struct hg_storage {
  hg_executor *executor; /* holds a reference */
  atomic_uint references;
  uint32_t map_count;    /* of all buffers on it */
  uint8_t foreign;       /* 1: imported, and not ours to free */
  uint8_t *address;      /* of the device */
  uint64_t byte_count;
  hg_stream_set used;    /* streams that may have work left for it */
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

/* How far something is that is compiled. */
enum { HG_MAKING, HG_READY, HG_FAILED };

/* Compiled code, which kernels share: see code.c. */
typedef struct hg_code {
  struct hg_code *next;         /* in its bucket */
  uint32_t references;
  uint8_t key[HG_SHA256_BYTES];
  uint64_t process;             /* that compiles it */
  atomic_uint state;            /* once it is ready or has failed, what follows does not change */
  atlas_program *program;       /* that it was compiled from, to which the backend's kernel points */
  hg_compiled compiled;
  hg_status failure;
  char sentence[512];
} hg_code;

/* A thread that compiles: see compilers.c. */
typedef struct hg_compiler {
  hg_executor *executor;
  hg_thread thread;
  enum { HG_COMPILER_NONE, HG_COMPILER_RUNS, HG_COMPILER_ENDED } state; /* ENDED: to be joined */
} hg_compiler;

enum { HG_CODE_BUCKETS = 64, HG_COMPILERS = 8 };

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

  hg_array streams;      /* hg_stream *; NULL: a free place */
  hg_array busy_streams; /* void *, room for as many: see hg_busy_streams_locked */
  hg_array host_memory;  /* hg_host_block */

  hg_code *codes[HG_CODE_BUCKETS]; /* those that are compiled now, or have been and did not fail */
  hg_kernel *first_to_compile, *last_to_compile; /* a list by `next` */
  hg_compiler compilers[HG_COMPILERS];
  uint64_t compilers_process;      /* in which they run */

  uint8_t *boundary; /* device memory; made at its first use */
  hg_stream_set boundary_used;
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

/* What a launch asks of a symbol, found out once. */
typedef struct hg_parameter {
  uint8_t is_memory;     /* a buffer, table or pool */
  uint8_t is_required;   /* the launch must say what it is */
  uint8_t is_table;
  uint8_t is_written;
  uint8_t alignment;     /* of the first byte: a power of two */
  uint8_t element_bytes; /* where it is accessed as [x + lane] only, else 0 */
} hg_parameter;

struct hg_kernel {
  hg_executor *executor;
  hg_kernel *next;                          /* in a list: of those to be compiled, or that nobody holds any more */
  atomic_uint references;
  atomic_uint state;                        /* HG_READY: what follows is there, and does not change */
  atlas_program *program;
  uint8_t hash[ATLAS_HASH_BYTES];
  hg_code *code;
  hg_compiled compiled;                     /* the code's */
  uint8_t uses_boundary;
  uint8_t uses_resonance;                   /* 0: no launch changes a counter */
  uint8_t advances_phase;
  uint8_t has_tables;
  hg_parameter parameters[ATLAS_MAX_SYMBOLS];
  uint64_t process;                         /* in which it is compiled, where nobody waits for it */
  hg_status failure;                        /* of HG_FAILED */
  char sentence[512];
};

/* A launch that a stream was given and whose fault has not been asked for: of a kernel, or of a graph. */
typedef struct hg_flight {
  hg_kernel *kernel;
  hg_graph *graph;
  uint64_t lanes, step_limit;
} hg_flight;

struct hg_stream {
  hg_executor *executor;
  atomic_uint references;
  uint32_t place;            /* in the executor's table */
  void *device;              /* the backend's */
  uint64_t given, finished;  /* pieces of work, and how many of them are known to be done */
  uint64_t launched, collected;          /* launches, and of how many the faults are known */
  hg_flight flights[HG_STREAM_LAUNCHES]; /* of launch n: n % HG_STREAM_LAUNCHES */
  hg_graph *capture;         /* NULL: does not capture */
  hg_status failure;         /* since the last wait: of work that could not be done */
  hg_launch_report report;   /* and of the first launch that faulted */
  char sentence[512];        /* of either */
};

struct hg_event {
  hg_executor *executor;
  void *device;
  hg_kernel *kernel; /* whose compilation it stands for, with a reference; NULL: it stands for a place in a stream */
  uint8_t timed, recorded;
};

/* A launch of a graph, by its number. */
typedef struct hg_captured_launch {
  size_t work; /* its index in the graph's */
  hg_flight flight;
  void *room;
} hg_captured_launch;

struct hg_graph {
  hg_executor *executor;
  atomic_uint references;
  hg_graph *next;     /* in a list of those that nobody holds any more */
  void *device;       /* the backend's; NULL while captured */
  hg_array work;      /* hg_work */
  hg_array launches;  /* hg_captured_launch */
  hg_array storages;  /* hg_storage *, each with a reference */
  uint8_t uses_boundary;
};

typedef struct hg_host_block {
  uint8_t *memory;
  uint64_t byte_count;
} hg_host_block;

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

/* Copies between host memory and a range of a storage; stream NULL: at once. */
hg_status hg_storage_write(hg_storage *storage, uint64_t offset, const void *source, uint64_t byte_count,
                           hg_stream *stream);
hg_status hg_storage_read(hg_storage *storage, uint64_t offset, void *destination, uint64_t byte_count,
                          hg_stream *stream);

/* What stands behind the parameters of a launch. */
typedef struct hg_bound {
  hg_stream_set used;  /* in: the stream of the launch; out: those that may have work left for its memory */
  hg_graph *keeper;    /* takes references to the memory; NULL: nobody */
  atlas_span *tables;  /* memory for the table entries, to be released by the caller whatever the result */
  atlas_argument arguments[ATLAS_MAX_SYMBOLS]; /* those that the program has are set */
} hg_bound;

/* Turns a launch's bindings and scalars into one argument a symbol. */
hg_status hg_bind_locked(hg_kernel *kernel, const hg_launch_desc *desc, hg_bound *bound);

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static inline hg_stream_set hg_stream_bit(const hg_stream *stream) {
  return UINT64_C(1) << (stream->place < 63 ? stream->place : 63);
}

/* HG_INVALID_ARGUMENT unless the stream is of that executor. */
hg_status hg_check_stream(const char *what, const hg_executor *executor, const hg_stream *stream);

/* Waits until streams of the set have done what they were given, with the lock released meanwhile; takes those out of
 * the set that have nothing left. An error of one that cannot be waited for now, or whose work could not be done, until
 * its hg_stream_wait has told of that, too: what it was to write is not there. */
hg_status hg_settle_slowly_locked(hg_executor *executor, hg_stream_set *used);
static inline hg_status hg_settle_locked(hg_executor *executor, hg_stream_set *used) {
  return *used != 0 ? hg_settle_slowly_locked(executor, used) : HG_OK;
}
/* Waits likewise for all that any stream was given, whatever comes of it. */
void hg_settle_at_last_locked(hg_executor *executor);
/* Without the lock: as hg_settle_locked, for one stream. */
hg_status hg_stream_settle(hg_stream *stream);
/* How many streams of a set have work left, and which, as the backend knows them: a list that holds until the lock is
 * released. */
size_t hg_busy_streams_locked(hg_executor *executor, hg_stream_set used, void ***devices);

/* Gives a stream work: a launch of `kernel`, or NULL; its number is set here. A stream that captures keeps it. */
hg_status hg_stream_give_locked(hg_stream *stream, hg_work *work, hg_kernel *kernel, uint64_t lanes);
/* HG_BUSY while the stream takes no work; to be asked before anything is changed for the sake of it. */
hg_status hg_stream_admit_locked(hg_stream *stream);
/* Likewise, and there is room for one more launch, or the stream captures. May release the lock meanwhile. */
hg_status hg_stream_room_locked(hg_stream *stream);
/* A fault of a launch that ran at once. */
void hg_stream_note_fault_locked(hg_stream *stream, const hg_kernel *kernel, const hg_fault *fault, uint64_t lanes);

hg_status hg_graph_keep_locked(hg_graph *graph, hg_storage *storage);
/* Of a call that failed: what it kept beyond the first `storage_count`. */
void hg_graph_forget_locked(hg_graph *graph, size_t storage_count);
hg_status hg_graph_add_locked(hg_graph *graph, const hg_work *work, hg_kernel *kernel, uint64_t lanes);
void hg_graph_destroy(hg_graph *graph);

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The code of a canonical program, with a reference: compiled by this call, or by another one, for which it waits. */
hg_status hg_code_of(hg_executor *executor, atlas_program *program, hg_compile_input *input, hg_code **out);
void hg_code_release(hg_executor *executor, hg_code *code);

hg_status hg_kernel_make(hg_kernel *kernel); /* the work of creating one */
void hg_kernel_finish(hg_kernel *kernel, hg_status status); /* after it, where others may wait for it */
void hg_kernel_destroy(hg_kernel *kernel); /* nobody holds it */
/* Waits until it is ready or has failed. hg_kernel_await gives the failure, and is to be called before anything else is
 * read; where it is ready that is one load. */
hg_status hg_kernel_settle(hg_kernel *kernel);
hg_status hg_kernel_await(hg_kernel *kernel);
static inline hg_status hg_kernel_ready(hg_kernel *kernel) {
  return atomic_load_explicit(&kernel->state, memory_order_acquire) == HG_READY ? HG_OK : hg_kernel_await(kernel);
}
/* After HG_UNPREPARED; releases the lock meanwhile. */
hg_status hg_kernel_prepare_locked(hg_kernel *kernel);

/* Has a thread make the kernel. 0: there is none; the caller must. */
int hg_compilers_give_locked(hg_executor *executor, hg_kernel *kernel);
/* 1: no thread had begun with it, and none will. */
int hg_compilers_take_back(hg_executor *executor, hg_kernel *kernel);
void hg_compilers_close(hg_executor *executor);

/* Has the event stand for the kernel's compilation; takes the reference, and gives that of an earlier one. */
hg_kernel *hg_event_note_kernel_locked(hg_event *event, hg_kernel *kernel);

/* The sentence of a fault. */
void hg_fault_describe(const atlas_program *program, const hg_fault *fault, char *text, size_t text_bytes);

#endif
