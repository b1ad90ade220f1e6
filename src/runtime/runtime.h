/* runtime.h - the objects behind the handles of hologram.h.
 *
 * Locking: an executor's mutex guards the executor and everything that belongs to it. Reference counts are atomic and
 * may change without it. A function whose name ends in _locked is called with the mutex held. The log callback is never
 * called with the mutex held, so that it may call the library. Threads wait for streams and compile without the mutex.
 * Of two executors' mutexes, the one at the lower address is locked first.
 *
 * Circle: compilers event executor graph kernel memory stream: objects hold references to each other, and the release
 * of the last reference releases those that the object held. */
#ifndef HG_RUNTIME_H
#define HG_RUNTIME_H

#include "backend/backend.h"
#include "base/abi.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/os.h"
#include "base/patience.h"
#include "base/sha256.h"
#include "hologram/classes.h"

#include <stdatomic.h>

/* ---- backends ---------------------------------------------------------------------------------------------------- */

typedef struct hg_backend_row {
  hg_backend_id id;
  const char *name;
  const hg_backend *backend; /* NULL: not part of this build */
  const char *absent;        /* the reason */
} hg_backend_row;

const hg_backend_row *hg_backend_at(size_t index); /* NULL past the last */

/* ---- objects ----------------------------------------------------------------------------------------------------- */

/* A set of streams by hg_stream_bit: the 64th stream of an executor and all later ones share a bit. */
typedef uint64_t hg_stream_set;
enum { HG_HOMES = 63 }; /* streams that may be homes (memory.c): the first ones of an executor, by index */

typedef struct hg_storage hg_storage;

struct hg_buffer {
  hg_storage *storage;
  atomic_uint references;
  uint32_t map_count;
  uint64_t offset, byte_count; /* in the storage */
  uint64_t handle;             /* 0: not made yet */
};

/* One allocation of device memory, shared by a buffer and its views. */
struct hg_storage {
  hg_executor *executor; /* referenced */
  atomic_uint references;
  uint32_t map_count;    /* maps of all buffers on it */
  uint8_t foreign;       /* 1: imported: its owner frees it */
  uint8_t *address;      /* device address */
  uint64_t byte_count;
  hg_stream_set used;    /* streams that may have pending work on it */
  uint64_t born;         /* its number among the allocations in the order of streams; 0: it is none */
  uint32_t home;         /* index of its home, which may have been closed since: see memory.c */
  uint64_t written;      /* the executor's `written` when work that writes to it was last submitted */
  hg_buffer first;       /* the buffer of hg_buffer_first: most storages have one buffer */
};

/* A slot of the handle table. A handle is slot number + 1 in the low 32 bits and the slot's generation in the high
 * ones, so a stale handle never finds a newer buffer. */
typedef struct hg_handle_slot {
  hg_buffer *buffer;   /* NULL: free */
  uint32_t generation;
  uint32_t next_free;  /* slot number + 1; 0 ends the list */
} hg_handle_slot;

/* The state of a compilation. */
enum { HG_MAKING, HG_READY, HG_FAILED };

/* What a launch needs of a symbol, computed once for each code. */
typedef struct hg_parameter {
  uint8_t is_memory;     /* a buffer, table or pool */
  uint8_t is_required;   /* has no default, so that a launch must bind it */
  uint8_t is_table;
  uint8_t is_written;
  uint8_t alignment;     /* of the first byte: a power of two */
  uint8_t element_bytes; /* if it is accessed as [x + lane] only; else 0 */
} hg_parameter;

/* What launches must know of a program, from its canonical form: dead code in the text does not count. */
typedef struct hg_needs {
  uint8_t hash[ATLAS_HASH_BYTES];
  uint8_t uses_boundary;
  uint8_t uses_resonance; /* 0: no launch changes a counter */
  uint8_t advances_phase;
  uint8_t has_tables;
  hg_parameter parameters[ATLAS_MAX_SYMBOLS];
} hg_needs;

/* What code is made for beside its text: nothing; contractions of any sizes; a fast contraction of these sizes. */
typedef enum hg_code_kind { HG_CODE_PROGRAM, HG_CODE_CONTRACTION, HG_CODE_FAST, HG_CODE_KINDS } hg_code_kind;

/* Compiled code, which kernels share: see code.c. */
typedef struct hg_code {
  struct hg_code *next, *next_text; /* next in its buckets: by its key, and by the digest of its program */
  uint32_t references;
  uint8_t key[HG_SHA256_BYTES];
  uint64_t digest;
  uint64_t process;             /* the process that compiles it */
  atomic_uint state;            /* once it is HG_READY or HG_FAILED, the fields below are final */
  atlas_program *program;       /* the source, to which the backend's kernel points */
  hg_needs needs;
  hg_compiled compiled;
  hg_code_kind kind;
  uint32_t keepers;             /* kernels of executables that ops keeps for equal computations; of those, the lock's */
  hg_status failure;
  char sentence[512];
} hg_code;

/* A thread that compiles: see compilers.c. */
typedef struct hg_compiler {
  hg_executor *executor;
  hg_thread thread;
  enum { HG_COMPILER_NONE, HG_COMPILER_RUNS, HG_COMPILER_ENDED } state; /* ENDED: still to be joined */
} hg_compiler;

enum { HG_CODE_BUCKETS = 64 };

struct hg_executor {
  atomic_uint references;
  hg_mutex mutex;
  hg_allocator allocator;
  hg_log_callback log;
  void *log_user;
  hg_ask_callback ask;
  void *ask_user;
  atomic_uint cancels; /* number of calls of hg_cancel */

  const hg_backend_row *row;
  const hg_backend *backend;
  void *device;
  hg_device_info info;
  char selection[512];

  hg_array handles; /* hg_handle_slot */
  uint32_t first_free_handle;

  hg_array streams;      /* hg_stream *; NULL: a free index */
  hg_array busy_streams; /* void *, with capacity for all streams: see hg_busy_streams_locked */
  hg_array host_memory;  /* hg_host_block */
  uint64_t written;      /* number of writing work items given to streams */
  uint64_t born;         /* number of allocations in the order of streams */
  uint64_t in_use, most_in_use; /* bytes of storages */
  uint64_t origin_bytes; /* bytes that origins keep */
  hg_counts counts;

  hg_code **codes;         /* all codes that are not HG_FAILED, in code_buckets lists by key and as many by text */
  uint32_t code_buckets, code_count;
  hg_code *few_codes[2 * HG_CODE_BUCKETS]; /* the lists while there are few */
  hg_kernel *first_to_compile, *last_to_compile; /* the queue of the compiler threads, linked by `next` */
  hg_compiler compilers[HG_COMPILERS];
  uint64_t compilers_process;      /* the process of these threads */

  uint8_t *boundary; /* device memory, made at its first use */
  hg_stream_set boundary_used;
  int64_t resonance[ATLAS_CLASS_COUNT];
  uint32_t phase;

  /* Set once by a layer above, with the lock held; `close` is called after the last reference to the executor is gone.
   * The attachment must hold no reference itself: see hg_kernel_lend. */
  void *attachment;
  void (*close_attachment)(hg_executor *executor, void *attachment);
};

/* An allocated range of a pool. */
typedef struct hg_pool_region {
  uint64_t offset, byte_count;
} hg_pool_region;

struct hg_pool {
  hg_storage *storage;
  hg_array regions; /* hg_pool_region, ascending and disjoint; the gaps between them are free */
  uint64_t used;
};

struct hg_kernel {
  hg_executor *executor;
  hg_kernel *next;                          /* in the queue of compilations, or in a list of kernels to destroy */
  atomic_uint references;
  atomic_uint state;                        /* once it is HG_READY, the fields below are final */
  atlas_program *program;
  hg_code *code;
  const hg_needs *needs;                    /* of the code */
  hg_compiled compiled;                     /* of the code */
  hg_contraction *contraction;              /* that of hg_compile_input and of each launch, owned; NULL */
  hg_rows *rows; /* the row moves that each launch stands for, owned; NULL */
  uint8_t is_lent;                          /* 1: it holds no reference to the executor */
  uint8_t is_abandoned;                     /* 1: nobody waits for its compilation; the compiling thread destroys it */
  uint64_t process;                         /* the process that compiles it in the background */
  hg_status failure;                        /* of HG_FAILED */
  char sentence[512];
  char operations[96]; /* "take, 2 x mul": what it computes, for faults on streams; "": a user's program */
  char by_index[96];   /* those of them that mark an index out of range by an address of their own */
};

/* Kept by a layer above for launches of a stream, so that it can say more of their faults than the device does. */
typedef struct hg_origin {
  atomic_uint references;
  struct hg_origin *next; /* next in a list of origins to release */
  /* Without the lock: 1 with a sentence, and with fault->number and its fields. `written`: the executor's when the
   * launch was submitted; memory written since then proves nothing. */
  int (*explain)(struct hg_origin *origin, uint64_t written, hg_fault *fault, char *sentence, size_t sentence_bytes);
  void (*release)(struct hg_origin *origin); /* also without the lock: after the last reference is gone */
} hg_origin;

/* A launch of a stream, of a kernel or a graph, whose fault has not been collected. */
typedef struct hg_flight {
  hg_kernel *kernel;
  hg_graph *graph;
  hg_origin *origin; /* NULL if there is none, or for launches of a graph, whose memory may have changed many times */
  uint64_t lanes, step_limit;
  uint64_t written;  /* the executor's `written` at submission */
} hg_flight;

struct hg_stream {
  hg_executor *executor;
  atomic_uint references;
  uint32_t index;            /* in the executor's table */
  void *device;              /* of the backend */
  uint64_t opened;           /* the executor's `born` when the stream was opened */
  uint64_t behind[HG_HOMES]; /* by index of a home: the stream is behind its allocations up to this number */
  uint64_t given, finished;  /* work items submitted; known to be done */
  uint64_t launched, collected;          /* launches submitted; with their faults collected */
  hg_flight flights[HG_STREAM_LAUNCHES]; /* of launch n: n % HG_STREAM_LAUNCHES */
  hg_graph *capture;         /* the graph being captured; NULL: none */
  hg_status failure;         /* the first failure of its work since the last wait */
  hg_launch_report report;   /* the first launch that faulted since the last wait */
  uint64_t fault_count;      /* of all reported launches */
  hg_origin *origin;         /* the origin of that launch until it has been asked; NULL */
  uint64_t origin_written;   /* `written` of its flight */
  char sentence[512];        /* about `failure` or the fault */
};

struct hg_event {
  hg_executor *executor;
  void *device;
  hg_kernel *kernel; /* referenced: the event stands for this kernel's compilation; NULL: for a point in a stream */
  uint8_t timed, recorded;
  uint32_t index;    /* of the stream that recorded it last */
  uint64_t born;     /* the executor's `born` at that time */
};

/* A launch of a graph, by its number. */
typedef struct hg_captured_launch {
  size_t work; /* index in the graph's work */
  hg_flight flight;
  void *room;
} hg_captured_launch;

struct hg_graph {
  hg_executor *executor;
  atomic_uint references;
  hg_graph *next;     /* next in a list of graphs to destroy */
  void *device;       /* of the backend; NULL while captured, and for an empty graph */
  hg_array work;      /* hg_work */
  hg_array launches;  /* hg_captured_launch */
  hg_array storages;  /* hg_storage *, each referenced */
  uint64_t moved_bytes; /* bytes that its launches move */
  uint8_t uses_boundary;
};

typedef struct hg_host_block {
  uint8_t *memory;
  uint64_t byte_count;
} hg_host_block;

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

static inline void hg_lock(hg_executor *executor) { hg_mutex_lock(&executor->mutex); }
static inline void hg_unlock(hg_executor *executor) { hg_mutex_unlock(&executor->mutex); }

/* Drops a reference; 1 if it was the last. */
static inline int hg_unreference(atomic_uint *references) {
  return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}
static inline void hg_reference(atomic_uint *references) {
  atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/* Sends a message to the log callback, if there is one. */
void hg_log(hg_executor *executor, hg_log_level level, const char *format, ...) HG_PRINTF(3, 4);

/* For a call that begins. */
static inline hg_patience hg_executor_patience(const hg_executor *executor) {
  hg_patience patience = hg_patience_of(executor->ask, executor->ask_user);
  patience.cancels = &executor->cancels;
  patience.cancel_number = atomic_load(&executor->cancels);
  return patience;
}

/* HG_OUT_OF_RANGE unless [offset, offset + byte_count) lies in an object of `size` bytes. */
hg_status hg_check_range(const char *what, uint64_t size, uint64_t offset, uint64_t byte_count);

/* The wishes of hg_buffer_desc. */
typedef struct hg_storage_wish {
  uint32_t alignment, flags;
  hg_stream *stream;
} hg_storage_wish;

/* New device memory. Takes the lock itself. */
hg_status hg_storage_create(hg_executor *executor, uint64_t byte_count, const hg_storage_wish *wish, hg_storage **out);
void hg_storage_release(hg_storage *storage); /* NULL is accepted */

/* A buffer over a range of a storage; takes a reference to it. */
hg_status hg_buffer_over(hg_storage *storage, uint64_t offset, uint64_t byte_count, hg_buffer **out);
/* The storage's first buffer, which is part of it. Takes over the caller's reference to the storage. */
hg_buffer *hg_buffer_first(hg_storage *storage, uint64_t offset, uint64_t byte_count);

/* hg_buffer_copy between two executors; the ranges have been checked. */
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

/* The arguments of a launch: what its parameters are bound to. */
typedef struct hg_bound {
  hg_stream_set used;  /* in: the stream of the launch; out: streams that may have pending work on its memory */
  hg_stream *stream;   /* of the launch; NULL: none */
  hg_graph *keeper;    /* the graph that takes references to the memory; NULL: none */
  atlas_span *tables;  /* memory for the table entries, which the caller releases whatever the result */
  atlas_argument arguments[ATLAS_MAX_SYMBOLS]; /* set for the program's symbols */
} hg_bound;

/* Turns a launch's bindings and scalars into an argument for each symbol. */
hg_status hg_bind_locked(hg_kernel *kernel, const hg_launch_desc *desc, hg_bound *bound);

/* hg_launch for a layer above that describes faults itself: with HG_FAULT, *fault is filled in but no sentence is made.
 * A report would have the time measured. moved_bytes: for hg_counts. origin: of a launch on a stream; NULL.
 * cancel_number: executor->cancels when the enclosing call began. */
hg_status hg_launch_noting(hg_kernel *kernel, const hg_launch_desc *desc, uint64_t moved_bytes, uint32_t cancel_number,
                           hg_launch_report *report, hg_origin *origin, hg_fault *fault);

/* For callers that repeat one launch and check by themselves what may differ. hg_launch_is_plain: the kernel uses
 * nothing but the memory and scalars that it is given. hg_launch_shape sets the shape and the step limit as hg_launch
 * would; *lanes is the number of lanes. hg_launch_plain_locked runs such a launch with arguments as hg_bind_locked
 * makes them, of memory on which no stream has pending work; HG_UNPREPARED: use hg_launch. */
int hg_launch_is_plain(const hg_kernel *kernel);
hg_status hg_launch_shape(const hg_kernel *kernel, const hg_launch_desc *desc, atlas_launch *launch, uint64_t *lanes);
hg_status hg_launch_plain_locked(hg_kernel *kernel, const atlas_launch *shape, const atlas_argument *arguments,
                                 uint32_t cancel_number, hg_fault *fault);
/* Compiles everything that such a launch with these arguments would run. Of addresses, only the alignment matters. */
hg_status hg_launch_warm(hg_kernel *kernel, const atlas_launch *launch);

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static inline hg_stream_set hg_stream_bit(const hg_stream *stream) {
  return UINT64_C(1) << (stream->index < 63 ? stream->index : 63);
}

/* Called before work of a stream uses memory: orders the stream behind the allocation. */
hg_status hg_stream_follow_home_locked(hg_stream *stream, const hg_storage *storage);
static inline hg_status hg_stream_reach_locked(hg_stream *stream, const hg_storage *storage) {
  return storage->born > stream->behind[storage->home] ? hg_stream_follow_home_locked(stream, storage) : HG_OK;
}
/* Notes that the stream is behind all allocations of the home at that index up to this number. */
static inline void hg_stream_note_behind_locked(hg_stream *stream, uint32_t index, uint64_t born) {
  if (index < HG_HOMES && stream->behind[index] < born) stream->behind[index] = born;
}

/* HG_INVALID_ARGUMENT unless the stream is of that executor. */
hg_status hg_check_stream(const char *what, const hg_executor *executor, const hg_stream *stream);

/* Waits, without the lock, until the streams of the set are idle, and removes idle streams from the set. Fails if a
 * stream cannot be waited for now, or if its work failed and no hg_stream_wait has reported that: the memory then lacks
 * what the stream was to write. */
hg_status hg_settle_busy_locked(hg_executor *executor, hg_stream_set *used);
static inline hg_status hg_settle_locked(hg_executor *executor, hg_stream_set *used) {
  return *used != 0 ? hg_settle_busy_locked(executor, used) : HG_OK;
}
/* Waits in the same way for all streams, and ignores failures. */
void hg_settle_at_last_locked(hg_executor *executor);
/* Without the lock: as hg_settle_busy_locked, for one stream. */
hg_status hg_stream_settle(hg_stream *stream);
/* The number of streams of the set with pending work, and a list of the backend's streams, valid until the lock is
 * released. */
size_t hg_busy_streams_locked(hg_executor *executor, hg_stream_set used, void ***devices);

/* Submits work to a stream, or appends it to the graph that the stream captures. For a launch, `kernel` is not NULL and
 * `origin` may be; this sets the launch's number. */
hg_status hg_stream_submit_locked(hg_stream *stream, hg_work *work, hg_kernel *kernel, uint64_t lanes,
                                  hg_origin *origin);
/* Notes that work of a stream will write to the storage. */
static inline void hg_note_write_locked(hg_storage *storage) { storage->written = ++storage->executor->written; }
/* Without the lock: drops a reference. NULL is accepted. */
static inline void hg_origin_release(hg_origin *origin) {
  if (origin != NULL && hg_unreference(&origin->references)) origin->release(origin);
}
/* HG_BUSY if the stream takes no work now: call it before anything is changed for that work. */
hg_status hg_stream_admit_locked(hg_stream *stream);
/* The same, and waits until the stream has room for a launch. May release the lock meanwhile. */
hg_status hg_stream_room_locked(hg_stream *stream);
/* Notes the fault of a launch; 0 if there is an earlier one. */
int hg_stream_note_fault_locked(hg_stream *stream, const hg_kernel *kernel, const hg_fault *fault, uint64_t lanes);

hg_status hg_graph_keep_locked(hg_graph *graph, hg_storage *storage);
/* After a failed call: drops the storages after the first `storage_count`. */
void hg_graph_forget_locked(hg_graph *graph, size_t storage_count);
hg_status hg_graph_add_locked(hg_graph *graph, const hg_work *work, hg_kernel *kernel, uint64_t lanes);
void hg_graph_destroy(hg_graph *graph);

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* The code of a program, referenced. This call compiles it, or waits for another that does. */
hg_status hg_code_of(hg_executor *executor, atlas_program *program, const hg_contraction *contraction, hg_code **out);
/* That code if the text is compiled already, referenced; NULL: it is not, or this is a fast contraction. */
hg_code *hg_code_find(hg_executor *executor, const atlas_program *program, const hg_contraction *contraction);
/* A program with the same text that there is code of any kind of, referenced; NULL: there is none. */
atlas_program *hg_code_program(hg_executor *executor, const atlas_program *program);
void hg_code_release(hg_executor *executor, hg_code *code);
void hg_codes_close(hg_executor *executor); /* once it has no code left */

hg_status hg_kernel_compile(hg_kernel *kernel); /* in the calling thread */
/* hg_kernel_create for a program that stands for a contraction (hg_compile_input); NULL: an ordinary program. */
hg_status hg_kernel_create_contraction(hg_executor *executor, atlas_program *program,
                                       const hg_contraction *contraction, hg_kernel **out);
void hg_kernel_complete(hg_kernel *kernel, hg_status status); /* sets the final state and wakes the threads that wait */
void hg_kernel_destroy(hg_kernel *kernel); /* after the last reference is gone */
/* hg_kernel_release for a kernel whose program is from the executor's allocator: does not wait for the thread that
 * compiles it, which will destroy it. */
void hg_kernel_abandon(hg_kernel *kernel);
/* hg_kernel_ready that calls back while it waits. */
hg_status hg_kernel_ready_asking(hg_kernel *kernel, hg_patience *patience);
/* Both wait for the compilation; hg_kernel_await also returns its failure. Call hg_kernel_ready before reading any
 * field: a single load once the kernel is ready. */
hg_status hg_kernel_settle(hg_kernel *kernel);
hg_status hg_kernel_await(hg_kernel *kernel);
static inline hg_status hg_kernel_ready(hg_kernel *kernel) {
  return atomic_load_explicit(&kernel->state, memory_order_acquire) == HG_READY ? HG_OK : hg_kernel_await(kernel);
}
/* Drops the kernel's reference to its executor, for kernels of an attachment: from now on the owner of the kernel keeps
 * the executor alive. */
void hg_kernel_lend(hg_kernel *kernel);
/* After HG_UNPREPARED; releases the lock meanwhile. */
hg_status hg_kernel_prepare_locked(hg_kernel *kernel);

/* Queues the kernel for a compiler thread. 0: there is no thread, so the caller must compile it. */
int hg_compilers_enqueue_locked(hg_executor *executor, hg_kernel *kernel);
/* 1: removed from the queue; 0: a thread compiles it, or has compiled it. */
int hg_compilers_dequeue(hg_executor *executor, hg_kernel *kernel);
void hg_compilers_close(hg_executor *executor);

/* Makes the event stand for the kernel's compilation (NULL: no longer). Takes over the caller's reference, and returns
 * the event's earlier kernel with its reference. */
hg_kernel *hg_event_note_kernel_locked(hg_event *event, hg_kernel *kernel);

/* The sentence of a fault. */
void hg_fault_describe(const atlas_program *program, const hg_fault *fault, char *text, size_t text_bytes);

#endif
