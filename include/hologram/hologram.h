/* hologram.h - the runtime API: executors, buffers, pools, launches. Start reading here; programs are in atlas.h, and
 * what programs over the 96 classes need besides in classes.h.
 *
 *   hg_executor *executor = NULL;
 *   hg_executor_create(NULL, &executor);                              // picks the best backend
 *   hg_kernel *kernel = NULL;
 *   hg_kernel_create(executor, program, &kernel);                     // program from atlas_parse
 *   hg_buffer *x = NULL;
 *   hg_buffer_create(executor, NULL, count * sizeof(float), &x);
 *   hg_buffer_write(x, 0, host, count * sizeof(float));
 *   hg_binding binding = {0};
 *   binding.name = "x";
 *   binding.buffer = x;
 *   hg_launch_desc launch = {0};
 *   launch.lanes = count;
 *   launch.bindings = &binding;
 *   launch.binding_count = 1;
 *   if (hg_launch(kernel, &launch, NULL) != HG_OK) fprintf(stderr, "%s\n", hg_last_error());
 *   hg_buffer_read(x, 0, host, count * sizeof(float));
 *   hg_buffer_release(x); hg_kernel_release(kernel); hg_executor_release(executor);
 *
 * Threads: executors are independent of each other. An executor and what belongs to it (buffers, pools, kernels,
 * streams) may be used from several threads; calls on one executor run one after the other, except that waits and
 * compilations block no other call.
 * Ownership: buffers, pools, kernels, streams, events and graphs hold a reference to their executor and may be
 * released in any order.
 * Processes: a forked process may make and use executors for the CPU. It may also use those that it inherits, if no
 * other thread was in a call on them, no stream had work left and no kernel was being compiled. Executors for a GPU
 * that it inherits are refused, and so are new ones once the parent has started the driver (docs/cuda.md).
 * Environment, for the CPU: HOLOGRAM_NUM_THREADS, from 1 to 256, is the number of threads that a process uses
 * (default: as many as it may run on). HOLOGRAM_STREAM_BYTES is the number of bytes, written by a copy or fill, or
 * read and written by an element-wise launch, from which stores bypass the caches (default: the size of the last-level
 * cache). For GPUs: HOLOGRAM_LINES=1 tells profilers the program's lines, HOLOGRAM_QUICK=0 compiles all kernels in
 * full at once (docs/cuda.md). A bad value is ignored, and the log says so. */
#ifndef HOLOGRAM_HOLOGRAM_H
#define HOLOGRAM_HOLOGRAM_H

#include "hologram/atlas.h"
#include "hologram/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- executors --------------------------------------------------------------------------------------------------- */

typedef struct hg_executor hg_executor;

typedef enum hg_backend_id {
  HG_BACKEND_AUTO = 0, /* the first of metal, cuda, cpu that works here */
  HG_BACKEND_CPU = 1,
  HG_BACKEND_METAL = 2,
  HG_BACKEND_CUDA = 3
} hg_backend_id;

typedef struct hg_executor_desc {
  size_t size;
  hg_backend_id backend;
  const hg_allocator *allocator; /* copied; also allocates buffers. NULL: malloc and free, and for large buffers pages
                                    of the system, which are kept for later ones */
  hg_log_callback log;           /* NULL: no messages */
  void *log_user;
  uint32_t device;               /* number of the backend's device, from 0: among the GPUs that CUDA_VISIBLE_DEVICES
                                    shows; the CPU is one device */
  uint32_t reserved;             /* 0 */
  const char *engine;            /* "native", "tile" or "interp" for the CPU, "ptx" for an NVIDIA GPU; HG_BACKEND_AUTO
                                    takes the first backend that has it. NULL or "": the backend's fastest (on the CPU
                                    the one that HOLOGRAM_CPU_ENGINE names, if it is set). A slower engine runs programs
                                    that this one cannot (see hg_kernel_info.why) */
  hg_ask_callback ask;           /* asked whether a long call shall go on; NULL: it always does */
  void *ask_user;
  uint32_t threads;              /* CPU: the most threads of a launch, copy or fill, the calling one included, and never
                                    more than HOLOGRAM_NUM_THREADS; 0: that many. GPUs ignore it */
  uint32_t reserved2;            /* 0 */
} hg_executor_desc;

/* desc may be NULL. HG_UNSUPPORTED with a sentence if the requested backend is not built in or has no such device or
 * engine; HG_DEVICE or HG_OUT_OF_MEMORY if its driver fails to start it. HG_BACKEND_AUTO tries the next backend after
 * each of these, and the selection says why; it stops only if an argument is invalid or the host is out of memory. */
HG_API hg_status hg_executor_create(const hg_executor_desc *desc, hg_executor **out);
HG_API hg_executor *hg_executor_retain(hg_executor *executor);
HG_API void hg_executor_release(hg_executor *executor);

/* From any thread: ends the work that the executor was given before and has not done; later work runs. HG_CANCELLED is
 * the status of calls under way (launches, runs and compilations between their launches), and of the next wait for a
 * stream whose work was ended. On the CPU a launch ends within milliseconds, wherever it is, and work that streams have
 * not begun (launches, copies, fills, graphs) is dropped; a copy that has begun is finished. A GPU finishes the work
 * that its driver has been given; waits for it end when it is done. Ended work has done some of its stores and not
 * others: only memory that it was to write has other contents, resonance counters and the phase are unchanged. Events
 * are reached, memory is freed. The call waits for nothing and returns at once. */
HG_API hg_status hg_cancel(hg_executor *executor);

/* The chosen device and its properties. Strings live as long as the executor. */
typedef struct hg_executor_info {
  size_t size;
  hg_backend_id backend;
  const char *backend_name;     /* "cpu" */
  const char *device_name;      /* "AMD EPYC" */
  const char *selection;        /* the reason: "metal: not built in; cuda: not built in; cpu: chosen" */
  const char *engine;           /* "reference" */
  uint32_t compute_units;       /* threads of launches on a CPU, multiprocessors of a GPU; 0: unknown, on Metal */
  uint32_t max_block_lanes;     /* 1024 */
  uint32_t max_shared_bytes;    /* of a block */
  uint64_t memory_bytes;        /* of the device; 0: unknown */
  uint32_t isa_version, numerics_version;
} hg_executor_info;
/* Fill info->size first, or leave it 0. */
HG_API hg_status hg_executor_query(hg_executor *executor, hg_executor_info *info);

/* What an executor has done since it was created. On one machine the same calls in the same order give the same counts,
 * however long they take, so a program's counts can be compared with recorded ones. */
typedef struct hg_counts {
  size_t size;
  uint64_t launches;        /* run, or given to a stream; a graph's again each time it runs */
  uint64_t moved_bytes;     /* read and written by the launches of executables, as in hg_executable_report */
  uint64_t plans;           /* executables made: for computations that equal no earlier one */
  uint64_t compilations;    /* programs turned into code for the device, by the compiler or from the kernel cache */
  uint64_t allocations;     /* buffers with memory of their own, temporaries of executables included */
  uint64_t allocated_bytes; /* of these, as requested */
} hg_counts;
/* Fill counts->size first, or leave it 0. */
HG_API hg_status hg_executor_count(hg_executor *executor, hg_counts *counts);

/* A row for each backend, built in or not: for `hologram info`. To ask a GPU, its driver is started, as by an executor,
 * but no GPU is opened. Processes forked off this one afterwards cannot use GPUs. */
typedef struct hg_backend_info {
  size_t size;
  hg_backend_id id;
  const char *name;
  int available;       /* 1 if it has a usable device, as far as is known without opening it */
  char reason[192];    /* why not, or the device's name */
  uint32_t reserved;
} hg_backend_info;
HG_API hg_status hg_backend_query(size_t index, hg_backend_info *info); /* HG_NOT_FOUND past the last one */

/* The id of "auto", "cpu", "cuda" or "metal", also if the backend is not in this build; starts nothing. HG_NOT_FOUND
 * with a sentence that lists the names. */
HG_API hg_status hg_backend_by_name(const char *name, hg_backend_id *id);

/* ---- buffers -----------------------------------------------------------------------------------------------------
 * A range of device memory, in bytes. A view is a buffer that shares the bytes of another and keeps it alive. */

typedef struct hg_buffer hg_buffer;
typedef struct hg_stream hg_stream;

enum { HG_BUFFER_UNINIT = 1 }; /* contents undefined until written; otherwise a new buffer reads as zero */

typedef struct hg_buffer_desc {
  size_t size;
  uint32_t flags;
  uint32_t alignment; /* of the first byte; a power of two up to 4096; 0: 64 */
  hg_stream *stream;  /* the memory is allocated in this stream's order; NULL: in no stream's. See "memory" below */
} hg_buffer_desc;

HG_API hg_status hg_buffer_create(hg_executor *executor, const hg_buffer_desc *desc, uint64_t byte_count,
                                  hg_buffer **out);
/* Makes a buffer over memory of another owner, without a copy: `byte_count` bytes at any address. On the CPU it is host
 * memory, such as NumPy's. On a GPU it is a device pointer of the same GPU and of its primary context, as PyTorch, CuPy
 * and the CUDA runtime have them; HG_INVALID_ARGUMENT with a sentence if the driver knows that it is not. The memory
 * must outlive the buffer, its views and the work that uses them, and is not freed with them; on a GPU it cannot be
 * mapped. Hologram does not wait for work of others on it: synchronise first. */
HG_API hg_status hg_buffer_import(hg_executor *executor, void *memory, uint64_t byte_count, hg_buffer **out);
HG_API hg_status hg_buffer_view(hg_buffer *parent, uint64_t offset, uint64_t byte_count, hg_buffer **out);
HG_API hg_buffer *hg_buffer_retain(hg_buffer *buffer);
HG_API void hg_buffer_release(hg_buffer *buffer);
HG_API uint64_t hg_buffer_size(const hg_buffer *buffer);
/* A buffer's number in its executor, for programs with baked-in handles. The first call assigns it; 0: out of
 * memory. */
HG_API uint64_t hg_buffer_handle(const hg_buffer *buffer);
/* The address of its first byte while it lives: for a GPU a device pointer, which other libraries import as
 * hg_buffer_import does. Their users order such accesses with the buffer's own work. NULL: the buffer has no bytes. */
HG_API void *hg_buffer_address(const hg_buffer *buffer);

/* Ranges are in bytes and must lie in the buffer (HG_OUT_OF_RANGE; then nothing is copied). The buffers of a copy may
 * belong to two executors: of two GPUs, which copy through their link if they have one, or of a GPU and the CPU. */
HG_API hg_status hg_buffer_write(hg_buffer *buffer, uint64_t offset, const void *source, uint64_t byte_count);
HG_API hg_status hg_buffer_read(hg_buffer *buffer, uint64_t offset, void *destination, uint64_t byte_count);
HG_API hg_status hg_buffer_copy(hg_buffer *destination, uint64_t destination_offset, hg_buffer *source,
                                uint64_t source_offset, uint64_t byte_count); /* ranges may overlap */
/* Repeat a pattern of 1, 2, 4 or 8 bytes over a range whose size is a multiple of it. */
HG_API hg_status hg_buffer_fill(hg_buffer *buffer, uint64_t offset, uint64_t byte_count, const void *pattern,
                                size_t pattern_size);

/* Host access without a copy if the device allows it. While mapped, the buffer, and any other buffer on the same
 * memory, must not be used in a launch (HG_BUSY). Maps nest; each needs its own unmap; releasing the buffer ends them
 * all. hg_buffer_map: HG_UNSUPPORTED for imported memory of a GPU; HG_OUT_OF_MEMORY if the host has no memory for its
 * side, HG_DEVICE: then nothing is mapped, and *memory is NULL. hg_buffer_unmap: HG_INVALID_ARGUMENT for a buffer that
 * is not mapped; after any other error the map has ended all the same, and what the host wrote may not be in the
 * buffer. On the CPU the address is valid as long as the buffer lives, mapped or not: callers that use it beside
 * launches order the two themselves. */
HG_API hg_status hg_buffer_map(hg_buffer *buffer, void **memory);
HG_API hg_status hg_buffer_unmap(hg_buffer *buffer);

/* ---- memory ------------------------------------------------------------------------------------------------------
 * Freed memory is kept for later buffers, because mapping new pages costs several times what a kernel takes over them.
 * A buffer whose first use is work of a stream names that stream (hg_buffer_desc.stream). On a GPU it can then reuse
 * at once what was freed behind the stream's work, while that work runs; without a stream, only memory that no work
 * uses any more. Other streams may use such a buffer, too: at their first use they are ordered behind the present work
 * of its stream, unless they have waited for a later event of it. Calls without a stream wait for it as for any stream
 * that uses the buffer. The stream may be released before the buffer. While the stream captures a graph (a foreign
 * stream: while its owner captures it), and on devices other than NVIDIA's, the buffer is as without a stream. Either
 * way it reads as zero unless HG_BUFFER_UNINIT.
 *
 * Before it returns HG_OUT_OF_MEMORY, an executor has waited for its streams and returned all kept memory to the
 * system. */

typedef struct hg_memory_info {
  size_t size;
  uint64_t in_use;       /* bytes of the executor's buffers and pools */
  uint64_t most_in_use;  /* at any one time */
  uint64_t kept;         /* freed, and kept for later buffers; work of streams may still use some of it */
  uint64_t kept_most;    /* beyond it memory goes back to the system, on a GPU when a stream is waited for */
  uint64_t device_free, device_bytes; /* of the device's memory, for all its users; 0: unknown */
} hg_memory_info;
HG_API hg_status hg_memory_query(hg_executor *executor, hg_memory_info *info);
/* Returns all kept memory to the system, after all streams are done. Other executors of the device keep theirs. */
HG_API hg_status hg_memory_trim(hg_executor *executor);
/* Sets hg_memory_info.kept_most; the default is an eighth of the device's memory. */
HG_API hg_status hg_memory_keep(hg_executor *executor, uint64_t byte_count);

/* ---- streams -----------------------------------------------------------------------------------------------------
 * Work given to a stream (launches, copies, fills, graphs) runs in order, while the caller continues:
 *
 *   hg_stream *stream = NULL;
 *   hg_stream_create(executor, NULL, &stream);
 *   hg_buffer_write_async(x, 0, pinned, byte_count, stream);          // pinned from hg_host_allocate
 *   launch.stream = stream;
 *   hg_launch(kernel, &launch, NULL);                                 // returns before it has run
 *   hg_buffer_read_async(x, 0, pinned, byte_count, stream);
 *   if (hg_stream_wait(stream, NULL) != HG_OK) fprintf(stderr, "%s\n", hg_last_error());
 *
 * Order: streams are not ordered with each other, except by hg_stream_wait_event. A call without a stream waits for
 * the work of all streams on the memory that it touches, and later work of streams comes after it. If such work
 * failed, the call fails as the stream's hg_stream_wait does, until that has reported it, because the memory does not
 * hold what it should. Arguments are checked, and failures of the call reported, when the work is given. Faults of
 * programs are reported by the stream's next hg_stream_wait; work behind a launch that faults runs all the same.
 * Lifetimes: buffers and kernels may be released as soon as the stream has been given the work that uses them. Host
 * memory of copies must stay, and a source unchanged, until the stream has done the copy.
 * Programs that change resonance counters or the phase run in the call, after all earlier work of the stream.
 * Foreign streams: while the owner of one captures it into a graph, whatever needs the stream is HG_BUSY and changes
 * nothing: work for it, events, hg_stream_wait and _query, and calls without a stream on memory for which it has work
 * left. Releases work as always: memory is freed when that work is done; hg_stream_release and hg_host_release wait
 * for it.
 * Devices: on a GPU a stream is one of the driver's. On the CPU it is a queue with a thread of its own, which starts
 * when there is work that is worth a thread; small work is done in the call if nothing is queued before it. */

typedef struct hg_stream_desc {
  size_t size;
  uint32_t flags; /* 0 */
  void *foreign;  /* a stream of the driver to use: a CUstream or cudaStream_t of the same GPU's primary context, as
                     PyTorch and CuPy provide it; (void *)1: CUDA's default stream. It must outlive this one, which does
                     not destroy it. NULL: a new stream */
} hg_stream_desc;

/* desc may be NULL. HG_INVALID_ARGUMENT for a foreign stream of another GPU or context, HG_UNSUPPORTED for one on the
 * CPU; HG_OUT_OF_MEMORY, HG_DEVICE. */
HG_API hg_status hg_stream_create(hg_executor *executor, const hg_stream_desc *desc, hg_stream **out);
HG_API hg_stream *hg_stream_retain(hg_stream *stream);
HG_API void hg_stream_release(hg_stream *stream); /* the last release waits for the stream's work */
/* HG_OK when all work of the stream is done, HG_BUSY before, or while the owner of a foreign stream captures it.
 * Reports neither faults nor captured work. Another status: work of the stream failed, which the next hg_stream_wait
 * will also report. */
HG_API hg_status hg_stream_query(hg_stream *stream);
/* hg_stream_wait: below, with launches. */

/* Page-locked host memory, aligned to 64 bytes: the device copies it by itself, beside all other work. Ordinary memory
 * works as well, but is slower, and the call may take as long as the copy. */
HG_API hg_status hg_host_allocate(hg_executor *executor, uint64_t byte_count, void **memory);
HG_API void hg_host_release(hg_executor *executor, void *memory); /* waits for all streams of the executor */

/* As hg_buffer_write, _read, _copy and _fill, on a stream; without a stream if it is NULL. HG_BUSY for a mapped buffer.
 * On a stream the ranges of a copy must not overlap, and both buffers must belong to its executor. */
HG_API hg_status hg_buffer_write_async(hg_buffer *buffer, uint64_t offset, const void *source, uint64_t byte_count,
                                       hg_stream *stream);
HG_API hg_status hg_buffer_read_async(hg_buffer *buffer, uint64_t offset, void *destination, uint64_t byte_count,
                                      hg_stream *stream);
HG_API hg_status hg_buffer_copy_async(hg_buffer *destination, uint64_t destination_offset, hg_buffer *source,
                                      uint64_t source_offset, uint64_t byte_count, hg_stream *stream);
HG_API hg_status hg_buffer_fill_async(hg_buffer *buffer, uint64_t offset, uint64_t byte_count, const void *pattern,
                                      size_t pattern_size, hg_stream *stream);

/* ---- events ------------------------------------------------------------------------------------------------------
 * A point in a stream: where it was last recorded. An event that was never recorded counts as reached.
 * Or the end of a compilation, if hg_kernel_create_async was given the event last: then hg_event_wait and
 * hg_event_query are about that, hg_stream_wait_event waits for it in the call, hg_event_elapsed treats the event as
 * not recorded, and the event keeps the kernel alive until it is recorded again or released. Whether the kernel is
 * ready or has failed, the kernel says.
 * Errors: HG_INVALID_ARGUMENT if event and stream belong to different executors; HG_BUSY from hg_event_record and
 * hg_stream_wait_event while the stream captures, or its owner captures it: nothing changes. HG_OUT_OF_MEMORY from
 * hg_event_create; HG_DEVICE once the GPU has failed; HG_UNSUPPORTED in a forked process for a GPU, or for a stream
 * that had work left. */

typedef struct hg_event hg_event;

enum { HG_EVENT_TIMED = 1 }; /* records the time at which the stream reaches it, for hg_event_elapsed */

typedef struct hg_event_desc {
  size_t size;
  uint32_t flags;
  uint32_t reserved; /* 0 */
} hg_event_desc;

HG_API hg_status hg_event_create(hg_executor *executor, const hg_event_desc *desc,
                                 hg_event **out); /* desc may be NULL */
HG_API void hg_event_release(hg_event *event); /* at any time */
HG_API hg_status hg_event_record(hg_event *event, hg_stream *stream); /* after all work that the stream has now */
/* Later work of the stream waits until the event, as recorded now, is reached. */
HG_API hg_status hg_stream_wait_event(hg_stream *stream, hg_event *event);
HG_API hg_status hg_event_wait(hg_event *event);  /* reports neither faults nor failures of work */
HG_API hg_status hg_event_query(hg_event *event); /* HG_OK when it is reached, HG_BUSY before */
/* Nanoseconds from one timed event to another, by the device's clock (resolution about half a microsecond on GPUs; wall
 * time on the CPU). HG_BUSY until both are reached; HG_INVALID_ARGUMENT if one is not timed or not recorded, or for
 * events of different executors. */
HG_API hg_status hg_event_elapsed(hg_event *from, hg_event *to, double *nanoseconds);

/* ---- pools -------------------------------------------------------------------------------------------------------
 * One buffer from which the host allocates regions; programs may allocate in a region too (pool.alloc). */

typedef struct hg_pool hg_pool;

HG_API hg_status hg_pool_create(hg_executor *executor, uint64_t byte_count, hg_pool **out); /* reads as zero */
HG_API void hg_pool_release(hg_pool *pool);
/* A region of byte_count bytes, aligned to `alignment` (a power of two up to 4096; 0: 16). HG_OUT_OF_MEMORY with a
 * sentence if no free range is large enough. First fit; neighbouring free ranges are merged. */
HG_API hg_status hg_pool_allocate(hg_pool *pool, uint64_t byte_count, uint64_t alignment, uint64_t *offset);
/* HG_INVALID_ARGUMENT for an offset where no region starts. */
HG_API hg_status hg_pool_free(hg_pool *pool, uint64_t offset);
HG_API uint64_t hg_pool_size(const hg_pool *pool);
HG_API uint64_t hg_pool_used(const hg_pool *pool); /* bytes allocated now, without padding */
/* Explicit copies at any offset inside the pool. */
HG_API hg_status hg_pool_write(hg_pool *pool, uint64_t offset, const void *source, uint64_t byte_count);
HG_API hg_status hg_pool_read(hg_pool *pool, uint64_t offset, void *destination, uint64_t byte_count);
/* Any range of the pool as a buffer (a view): bind it like any other. */
HG_API hg_status hg_pool_buffer(hg_pool *pool, uint64_t offset, uint64_t byte_count, hg_buffer **out);

/* ---- kernels and launches ---------------------------------------------------------------------------------------- */

typedef struct hg_kernel hg_kernel;

/* Compiles a program for an executor. The program may be released afterwards. Libraries are refused (HG_VERIFY). Other
 * threads can use the executor while it compiles. Kernels of one program, or of equal texts, share the compiled code:
 * if threads make the same kernel at the same time, it is compiled once; if that fails, it fails for all of them, with
 * the same sentence, and a later call tries again. HG_UNSUPPORTED if a block needs more shared memory than the device
 * provides: the program's own and, on a GPU, what its collectives exchange. */
HG_API hg_status hg_kernel_create(hg_executor *executor, atlas_program *program, hg_kernel **out);
/* The same, but returns before a thread of the library has compiled the program (the call itself compiles if there is
 * no thread). Wrong arguments, and a library, are errors of this call; a failed compilation is an error of whatever
 * uses the kernel: hg_launch and the queries below wait for it and then fail. `event` may be NULL; else it is reached
 * when the kernel is ready or has failed (see events). hg_kernel_release: the last one waits for a compilation under
 * way, and drops one that has not begun. */
HG_API hg_status hg_kernel_create_async(hg_executor *executor, atlas_program *program, hg_kernel **out,
                                        hg_event *event);
HG_API hg_kernel *hg_kernel_retain(hg_kernel *kernel);
HG_API void hg_kernel_release(hg_kernel *kernel);

/* What a program became on its executor. Strings live as long as the kernel. */
typedef struct hg_kernel_info {
  size_t size;
  const char *name;                /* the program's */
  uint8_t hash[ATLAS_HASH_BYTES];  /* as by atlas_program_hash */
  const char *backend;             /* "cpu" */
  const char *engine;              /* "native avx2" */
  const char *why;                 /* why no faster engine of the backend runs it: a sentence; "": it is the fastest */
  uint32_t parameter_count;
  uint32_t block[3];               /* required of launches; 0, 0, 0: any */
  uint32_t default_block[3];       /* of launches that give none; 0, 0, 0: there is none */
  uint32_t registers;              /* 32-bit registers of a thread on a GPU; 0, as in the next two: none, or unknown */
  uint32_t local_bytes;            /* bytes that a thread spills. All three are of the variant that most launches use */
  uint32_t shared_bytes;           /* shared memory of a block */
  const char *notes;               /* what makes launches slower than expected: `why`; lines of the program that machine
                                      code leaves to calls of C, that access memory lane by lane, or that end a loop
                                      with a check for each access; separated by "; ". "": nothing is known */
} hg_kernel_info;
/* Fill info->size first, or leave it 0. Waits for a compilation under way; if it failed, returns its failure. HG_DEVICE
 * once the GPU has failed, HG_UNSUPPORTED in a forked process. */
HG_API hg_status hg_kernel_query(hg_kernel *kernel, hg_kernel_info *info);

/* A parameter: what a launch must or may provide by hg_binding or hg_scalar. The name lives as long as the kernel. */
typedef struct hg_parameter_info {
  size_t size;
  const char *name;
  uint32_t slot;         /* for hg_binding.slot and hg_scalar.slot */
  uint8_t kind;          /* atlas_symbol_kind: a buffer, scalar, table or pool */
  uint8_t type;          /* atlas_type: of its elements, or of the scalar; u8 for tables and pools */
  uint8_t access;        /* atlas_access; 0 for a scalar */
  uint8_t is_required;   /* 0: a launch may leave it out */
  uint32_t entry_count;  /* of a table; else 0: a launch decides how many elements a buffer has */
  uint32_t alignment;    /* of the first bound byte, in bytes; 0 for a scalar */
} hg_parameter_info;
/* The parameter at an index, in the order of declarations. HG_NOT_FOUND past the last. Otherwise as hg_kernel_query. */
HG_API hg_status hg_kernel_parameter(hg_kernel *kernel, size_t index, hg_parameter_info *info);

/* One buffer, table entry or pool. `name` names a parameter of the program; with name NULL, `slot` is its index among
 * the program's symbols. byte_count 0: to the end of the buffer. The range must start at a multiple of the element size
 * (8 bytes for a table entry, 16 for a pool). A writable range must not overlap another binding of the launch, except
 * identical ranges that are accessed only in element form. A table entry that is not bound has no bytes. */
typedef struct hg_binding {
  const char *name;
  uint32_t slot;
  uint32_t entry;      /* of a .table parameter */
  hg_buffer *buffer;
  uint64_t offset;
  uint64_t byte_count;
  uint64_t reserved[3]; /* 0 */
} hg_binding;

/* One scalar: `bits` holds the value in the low bytes (a float by its bit pattern). */
typedef struct hg_scalar {
  const char *name;
  uint32_t slot;
  uint8_t type;         /* atlas_type; must be the declared one */
  uint8_t reserved[3];  /* 0 */
  uint64_t bits;
  uint64_t reserved2;   /* 0 */
} hg_scalar;

enum {
  HG_LAUNCH_UNITY_NEUTRAL = 1 /* the launch's resonance deltas must sum to zero, else they are undone and it faults */
};

#define HG_DEFAULT_STEP_LIMIT (UINT64_C(1) << 32)

typedef struct hg_launch_desc {
  size_t size;
  uint64_t lanes;          /* a linear launch of exactly this many lanes; else 0 and grid, block are used */
  uint32_t grid[3];        /* in blocks; 0 counts as 1 where another dimension is set; all 0: a linear launch */
  uint32_t block[3];       /* in lanes; product at most 1024; 0 counts as 1; all 0: the program's required size, else
                              its default, else 1 */
  const hg_binding *bindings;
  size_t binding_count;
  size_t binding_size;     /* bytes from one binding to the next: sizeof(hg_binding); 0: that of version 1 */
  const hg_scalar *scalars;
  size_t scalar_count;
  size_t scalar_size;      /* likewise */
  uint64_t step_limit;     /* back edges that a lane may take; 0: HG_DEFAULT_STEP_LIMIT */
  uint32_t flags;
  hg_stream *stream;       /* NULL: the launch is over when hg_launch returns */
} hg_launch_desc;

typedef enum hg_fault_kind {
  HG_FAULT_NONE = 0,
  HG_FAULT_OUT_OF_BOUNDS = 1, /* index, extent: in elements; in bytes for tables and pools; for [phi ...] the part that
                                 is out of range */
  HG_FAULT_MISALIGNED = 2,    /* index: the byte offset; extent: the alignment it needs */
  HG_FAULT_TRAP = 3,          /* code */
  HG_FAULT_STEP_LIMIT = 4,    /* index and extent: the limit */
  HG_FAULT_CLASS = 5,         /* index: the value; extent: the number of valid ones */
  HG_FAULT_POOL = 6,          /* pool.free of unallocated memory; index: the offset; extent: the end of the allocated
                                 memory */
  HG_FAULT_UNITY = 7          /* a unity-neutral launch's deltas do not sum to zero; index: the sum */
} hg_fault_kind;

/* The first fault of the lowest lane that had one, in the canonical program: see docs/isa.md, Faults. An index beyond
 * int64_t is clamped. Reports contain this struct without a size: new fields take its reserved room, or go into the
 * report. */
typedef struct hg_fault {
  hg_fault_kind kind;
  uint32_t instruction;  /* index of the instruction in the program */
  uint32_t line;         /* line of its text; 0: it has no text */
  uint32_t code;         /* of a trap */
  uint64_t lane;         /* number in the launch */
  char buffer[ATLAS_MAX_NAME + 1]; /* the parameter's name, "phi" for the boundary pool, "" if there is none */
  int64_t index;
  int64_t extent;
  int64_t number;        /* if has_number: an operation's index out of range as given, clamped to an i64 */
  uint64_t length;       /* if has_number: the size of the axis */
  uint32_t axis;         /* if has_number: the axis that the index is for */
  uint32_t has_number;   /* 1: hg_run, hg_apply or a wait found that index; 0: the launch was not an operation's, or the
                            index could not be recomputed: its memory has been written since, or was released and is
                            imported or a large part of the device's, or a graph has the launch */
} hg_fault;

/* The result of a launch. Strings live as long as the library, the notes as long as the kernel. */
typedef struct hg_launch_report {
  size_t size;
  hg_fault fault;        /* kind HG_FAULT_NONE if there was none */
  uint64_t lanes;
  uint64_t nanoseconds;  /* of the program alone, by the device's clock; 0 on a stream: see hg_event_elapsed */
  const char *backend;   /* "cpu" */
  const char *engine;    /* "reference" */
  const char *notes;     /* what makes the launch slower than expected: "left to the tile engine: ...", or the notes of
                            the kernel (hg_kernel_info); on some devices "f64 emulated". Several are separated by "; ".
                            "": nothing. On a stream only the kernel's, and "" from hg_stream_wait, because the kernel
                            may be gone by then */
} hg_launch_report;

/* Runs a kernel; a linear launch of 0 lanes runs nothing and succeeds. A program that requires blocks of more than one
 * dimension needs a grid. The launch is checked completely before a lane runs: HG_BINDING names the parameter and what
 * is wrong; HG_INVALID_ARGUMENT for impossible shapes. HG_FAULT: the program ran, and faulted as the report (may be
 * NULL) and hg_last_error() say; its other effects stand and the executor stays usable. On a stream it returns before
 * the program has run, with a report without fault: hg_stream_wait reports faults. */
HG_API hg_status hg_launch(hg_kernel *kernel, const hg_launch_desc *desc, hg_launch_report *report);

/* Waits until all work of the stream is done. HG_FAULT: the first launch since the last wait that faulted did so as the
 * report (may be NULL) and hg_last_error() say, as they would without a stream; the stream stays usable, and the next
 * wait starts afresh. Without a fault the report's kind is HG_FAULT_NONE, it has no lanes, and its backend and engine
 * are those of hg_executor_query. HG_OUT_OF_MEMORY, HG_DEVICE, HG_UNSUPPORTED (in a forked process): work of the stream
 * failed, or cannot be waited for. HG_BUSY while the stream captures, or the owner of a foreign stream captures it: the
 * report is unchanged. */
HG_API hg_status hg_stream_wait(hg_stream *stream, hg_launch_report *report);

/* ---- graphs ------------------------------------------------------------------------------------------------------
 * A sequence of launches, copies and fills, recorded once and given to a stream as a whole, which costs the host little
 * more than one launch:
 *
 *   hg_graph *graph = NULL;
 *   hg_capture_begin(stream);
 *   hg_buffer_copy_async(y, 0, x, 0, byte_count, stream);             // what the stream is given now is checked
 *   hg_launch(kernel, &launch, NULL);                                 // and recorded; nothing runs
 *   hg_capture_end(stream, &graph);
 *   hg_graph_launch(graph, stream);                                   // as often as wanted
 *
 * A graph keeps its buffers and kernels alive, and the captured arguments, including the phase. Host memory of its
 * copies must come from hg_host_allocate and outlive the graph's last run. A capturing stream accepts nothing else:
 * events, graphs and waits are HG_BUSY, programs that change resonance counters or the phase HG_UNSUPPORTED; a failed
 * call adds nothing. Faults of several runs of a graph between two waits count as one: the report is of the graph's
 * first launch with a fault in any of those runs. If runs are on several streams at a time, the first wait that finds
 * a fault reports it for all. */

typedef struct hg_graph hg_graph;

/* HG_BUSY for a stream that already captures; HG_OUT_OF_MEMORY. */
HG_API hg_status hg_capture_begin(hg_stream *stream);
/* Ends the capture whatever the status; without HG_OK there is no graph. HG_INVALID_ARGUMENT for a stream that
 * captures nothing, or if `out` is NULL; HG_UNSUPPORTED if the GPU's driver is too old for graphs; HG_OUT_OF_MEMORY,
 * HG_DEVICE. */
HG_API hg_status hg_capture_end(hg_stream *stream, hg_graph **out);
/* On any stream of the executor; HG_INVALID_ARGUMENT for one of another. HG_BUSY while a buffer of the graph is mapped,
 * while the stream captures, or the owner of a foreign stream captures it. */
HG_API hg_status hg_graph_launch(hg_graph *graph, hg_stream *stream);
HG_API void hg_graph_release(hg_graph *graph); /* at any time after a launch */

/* "out of bounds", "trap", ...; never NULL. */
HG_API const char *hg_fault_kind_name(hg_fault_kind kind);

/* ---- looking inside ----------------------------------------------------------------------------------------------
 * The functions behind `hologram emit` and `hologram cache`. */

/* The outputs that hg_emit can make of a program, by index from 0: HG_NOT_FOUND past the last. */
typedef struct hg_emit_target_info {
  size_t size;
  const char *name;    /* "ptx" */
  const char *machine; /* for machine code: objdump's name of the processor ("aarch64"); NULL: text */
  uint32_t least_capability, most_capability; /* for GPUs: see hg_emit; else 0 */
} hg_emit_target_info;
HG_API hg_status hg_emit_target_query(size_t index, hg_emit_target_info *info);

/* Compiles a program for any target, on any machine: "msl", "ptx" and "vector" (the code of the CPU engines) are text;
 * "x86-avx512", "x86-avx2", "x86-64" (one lane after the other) and "arm64" are machine code. `capability` is for ptx:
 * major * 10 + minor of the GPU, from 75 to 999, or 0 for the oldest. Release the bytes with atlas_memory_release and
 * the same allocator. HG_NOT_FOUND for other targets, HG_INVALID_ARGUMENT for another capability, HG_UNSUPPORTED for a
 * program that the target cannot run, HG_OUT_OF_MEMORY. */
HG_API hg_status hg_emit(const hg_allocator *allocator, const atlas_program *program, const char *target,
                         uint32_t capability, void **bytes, size_t *byte_count);

typedef enum hg_cache_state {
  HG_CACHE_OK,
  HG_CACHE_DAMAGED,    /* removed when it is next looked up */
  HG_CACHE_UNREADABLE,
  HG_CACHE_NO_ENTRY,   /* being written, or abandoned by a process that ended */
  HG_CACHE_REFUSED     /* a link, no regular file, or writable by others: never used */
} hg_cache_state;

/* A file of the kernel cache on disk. `size` is the library's: there are no fields beyond it. */
typedef struct hg_cache_file {
  size_t size;
  const char *name;
  hg_cache_state state;
  uint64_t byte_count;
  int64_t used_ns;                   /* since 1970: last written or used */
  uint8_t program[ATLAS_HASH_BYTES]; /* this and the following: for HG_CACHE_OK only */
  const char *target, *driver;       /* "sm_90", "cuda 12.4" */
  uint32_t compiler_version;
  uint64_t specialisation_bytes, payload_bytes;
} hg_cache_file;

/* The kernel cache on disk that the environment selects. */
typedef struct hg_cache_info {
  size_t size;
  const char *problem; /* why it is not used; NULL: it is used */
  uint64_t byte_cap;
  char folder[4096];   /* "": none */
  const char *remark;  /* a setting that is ignored, and why; NULL: none */
} hg_cache_info;

/* Fill info->size first, or leave it 0. */
HG_API hg_status hg_cache_query(hg_cache_info *info);
/* Calls `visit` for each file, newest first. The struct lives until `visit` returns, which may remove that file. `read`
 * 1 reads the files; 0 reports every entry as HG_CACHE_OK without contents. */
HG_API hg_status hg_cache_visit(int read, void (*visit)(void *user, const hg_cache_file *file), void *user);
/* HG_NOT_FOUND if the cache has no such file, or it cannot be removed. */
HG_API hg_status hg_cache_remove(const char *name);

#ifdef __cplusplus
}
#endif
#endif
