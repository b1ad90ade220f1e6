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
 * Threads: executors are independent of each other. One executor, and what belongs to it (buffers, pools, kernels,
 * streams), may be used from several threads; calls that touch the same executor run one after the other, but for those
 * that wait and those that compile: these stop nobody.
 * Ownership: buffers, pools, kernels, streams, events and graphs hold a reference to their executor and may be released
 * in any order.
 * Processes: one that is forked off may make executors and use them; those it inherits too, if no other thread was in a
 * call on them, no stream had work left and no kernel was being compiled. That is about the CPU: a GPU's that it
 * inherits are refused, and so are new ones once the parent has started the driver (docs/cuda.md).
 * Environment, for the CPU: HOLOGRAM_NUM_THREADS, from 1 to 256, is how many threads a process uses (otherwise as many
 * as it may run on); HOLOGRAM_STREAM_BYTES is from how many bytes written by a copy or fill, or read and written by an
 * element-wise launch, what is written goes past the caches (otherwise the size of the last-level cache). For GPUs:
 * HOLOGRAM_LINES=1 tells profilers the program's lines, HOLOGRAM_QUICK=0 has all kernels compiled in full at once
 * (docs/cuda.md). A bad value is ignored, and the log says so. */
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
  const hg_allocator *allocator; /* copied; buffers' memory comes from it too. NULL: malloc and free, and for large
                                    buffers pages of the system, which are kept for the next one */
  hg_log_callback log;           /* NULL: no messages */
  void *log_user;
  uint32_t device;               /* which of the backend's devices, from 0: of the GPUs that CUDA_VISIBLE_DEVICES shows;
                                    the CPU is one device */
  uint32_t reserved;             /* 0 */
  const char *engine;            /* "native", "tile" or "interp" of the CPU, "ptx" of an NVIDIA GPU; HG_BACKEND_AUTO
                                    takes the first backend that has it. NULL or "": the fastest that the backend has
                                    (on the CPU: the one that HOLOGRAM_CPU_ENGINE names, if it is set). Programs that
                                    an engine cannot run are left to a slower one (see hg_kernel_info.why) */
  hg_ask_callback ask;           /* whether a long call is to go on; NULL: each is */
  void *ask_user;
  uint32_t threads;              /* of the CPU: a launch, copy or fill uses at most so many, the one that does the work
                                    included, and never more than HOLOGRAM_NUM_THREADS; 0: as many as that. GPUs do not
                                    look at it */
  uint32_t reserved2;            /* 0 */
} hg_executor_desc;

/* desc may be NULL. HG_UNSUPPORTED with a sentence when the backend asked for is not built in or has no such device or
 * engine; HG_DEVICE or HG_OUT_OF_MEMORY when its driver fails to start it. HG_BACKEND_AUTO goes on to the next backend
 * after each of these, and the selection says why; it stops only where an argument is not valid or the host's memory is
 * out. */
HG_API hg_status hg_executor_create(const hg_executor_desc *desc, hg_executor **out);
HG_API hg_executor *hg_executor_retain(hg_executor *executor);
HG_API void hg_executor_release(hg_executor *executor);

/* From any thread: ends what the executor was given before and has not done; what it is given later runs. HG_CANCELLED
 * is the status of calls under way (launches, runs and compilations between their launches), and of the next wait of a
 * stream whose work was ended. On the CPU a launch ends within milliseconds, wherever it is, and what streams have in
 * front of them (launches, copies, fills, graphs) is left out; a copy that has begun is finished. A GPU finishes what
 * its driver has been given, and waits for that end with it. Of what was ended some stores are done and others are not:
 * only memory that it was to write holds other contents, resonance counters and the phase stay as they were. Events are
 * reached, memory is freed, and no call waits for this one: it returns at once. */
HG_API hg_status hg_cancel(hg_executor *executor);

/* What was chosen, what it can do. Strings live as long as the executor. */
typedef struct hg_executor_info {
  size_t size;
  hg_backend_id backend;
  const char *backend_name;     /* "cpu" */
  const char *device_name;      /* "AMD EPYC" */
  const char *selection;        /* why: "metal: not built in; cuda: not built in; cpu: chosen" */
  const char *engine;           /* "reference" */
  uint32_t compute_units;       /* threads that launches use on a CPU, multiprocessors on a GPU; 0: unknown, on Metal */
  uint32_t max_block_lanes;     /* 1024 */
  uint32_t max_shared_bytes;    /* that the device gives a block */
  uint64_t memory_bytes;        /* of the device; 0 if not known */
  uint32_t isa_version, numerics_version;
} hg_executor_info;
/* Fill info->size first, or leave it 0. */
HG_API hg_status hg_executor_query(hg_executor *executor, hg_executor_info *info);

/* What an executor has done since it was created. On one machine the same calls in the same order give the same counts,
 * whatever the time they take: what they say of a program can be held to a recorded number. */
typedef struct hg_counts {
  size_t size;
  uint64_t launches;        /* made, or given to a stream; a graph's again each time it runs */
  uint64_t moved_bytes;     /* read and written by those of executables, as hg_executable_report has it */
  uint64_t plans;           /* executables made: computations that no earlier one was equal to */
  uint64_t compilations;    /* programs made code for the device, by the compiler or from the kernel cache */
  uint64_t allocations;     /* buffers with memory of their own, temporaries of executables too */
  uint64_t allocated_bytes; /* of these, as they were asked for */
} hg_counts;
/* Fill counts->size first, or leave it 0. */
HG_API hg_status hg_executor_count(hg_executor *executor, hg_counts *counts);

/* One row a backend, whether or not it is built in: for `hologram info`. A GPU's driver is started to ask it, as an
 * executor would, but no GPU is opened. After that no process forked off this one can use GPUs. */
typedef struct hg_backend_info {
  size_t size;
  hg_backend_id id;
  const char *name;
  int available;       /* 1 if it has a device that can be used, as far as can be told without opening it */
  char reason[192];    /* why not, or the device's name */
  uint32_t reserved;
} hg_backend_info;
HG_API hg_status hg_backend_query(size_t index, hg_backend_info *info); /* HG_NOT_FOUND past the last one */

/* "auto", "cpu", "cuda", "metal" as an id, also of a backend that is not in this build; starts nothing. HG_NOT_FOUND
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
  hg_stream *stream;  /* the memory is taken in this stream's order; NULL: in nobody's. See "memory" below */
} hg_buffer_desc;

HG_API hg_status hg_buffer_create(hg_executor *executor, const hg_buffer_desc *desc, uint64_t byte_count,
                                  hg_buffer **out);
/* Memory that somebody else owns as a buffer, without a copy: `byte_count` bytes at any address. On the CPU it is host
 * memory, of NumPy say. On a GPU it is a device pointer of the same GPU and of its primary context, as PyTorch, CuPy
 * and the CUDA runtime have them; HG_INVALID_ARGUMENT with a sentence where the driver knows better. The memory must
 * outlive the buffer, its views and the work that was given with them, and is not freed with them; on a GPU it cannot
 * be mapped. Work of others on it is not waited for: synchronise with it first. */
HG_API hg_status hg_buffer_import(hg_executor *executor, void *memory, uint64_t byte_count, hg_buffer **out);
HG_API hg_status hg_buffer_view(hg_buffer *parent, uint64_t offset, uint64_t byte_count, hg_buffer **out);
HG_API hg_buffer *hg_buffer_retain(hg_buffer *buffer);
HG_API void hg_buffer_release(hg_buffer *buffer);
HG_API uint64_t hg_buffer_size(const hg_buffer *buffer);
/* A buffer's number in its executor, for programs with baked-in handles. It is given when it is first asked for; 0:
 * there is no memory to note it. */
HG_API uint64_t hg_buffer_handle(const hg_buffer *buffer);
/* Where its first byte lies, as long as it lives: a device pointer of a GPU's, which other libraries take as
 * hg_buffer_import takes theirs. Who uses it there sees to the order beside the buffer's own work. NULL: there are no
 * bytes. */
HG_API void *hg_buffer_address(const hg_buffer *buffer);

/* Ranges are in bytes and must lie in the buffer (HG_OUT_OF_RANGE; nothing is copied then). The buffers of a copy may
 * be of two executors: of two GPUs, which copy through their link where they have one, or of a GPU and the CPU. */
HG_API hg_status hg_buffer_write(hg_buffer *buffer, uint64_t offset, const void *source, uint64_t byte_count);
HG_API hg_status hg_buffer_read(hg_buffer *buffer, uint64_t offset, void *destination, uint64_t byte_count);
HG_API hg_status hg_buffer_copy(hg_buffer *destination, uint64_t destination_offset, hg_buffer *source,
                                uint64_t source_offset, uint64_t byte_count); /* ranges may overlap */
/* Repeat a pattern of 1, 2, 4 or 8 bytes over a range whose size is a multiple of it. */
HG_API hg_status hg_buffer_fill(hg_buffer *buffer, uint64_t offset, uint64_t byte_count, const void *pattern,
                                size_t pattern_size);

/* Host access without a copy where the device allows it. While mapped, the buffer must not be launched on
 * (HG_BUSY); that goes for all buffers on the same memory. Maps nest; each needs its own unmap; releasing the buffer
 * ends them all. hg_buffer_map: HG_UNSUPPORTED for imported memory of a GPU; HG_OUT_OF_MEMORY where the host has none
 * for its side, and HG_DEVICE: nothing is mapped then, and *memory is NULL. hg_buffer_unmap: HG_INVALID_ARGUMENT for a
 * buffer that is not mapped; after any other error the map is over all the same, and what the host wrote may not be in
 * the buffer. On the CPU the address is the buffer's as long as it lives, also when it is not mapped any more: who
 * reads or writes there beside launches sees to their order. */
HG_API hg_status hg_buffer_map(hg_buffer *buffer, void **memory);
HG_API hg_status hg_buffer_unmap(hg_buffer *buffer);

/* ---- memory ------------------------------------------------------------------------------------------------------
 * Freed memory is kept for the next buffers: pages that are mapped anew cost several times what a kernel takes over
 * them. A buffer whose first use is work of a stream names the stream (hg_buffer_desc.stream). On a GPU it then gets at
 * once what was freed behind the stream's work, while that runs; without, only what no work uses any more. Other
 * streams may use such a buffer, too: the first time they come behind what the stream has been given by then, unless
 * they have waited for an event that it recorded since. Calls without a stream wait for it as for any stream that uses
 * the buffer. The stream may be released before the buffer. Where it captures a graph (of a foreign one: where its
 * owner does), and on other devices than NVIDIA's, the buffer is as without it. Either way it reads as zero unless
 * HG_BUFFER_UNINIT.
 *
 * Before HG_OUT_OF_MEMORY is said, what the executor keeps has been given back, and its streams have been waited for.
 */

typedef struct hg_memory_info {
  size_t size;
  uint64_t in_use;       /* bytes of the executor's buffers and pools */
  uint64_t most_in_use;  /* at any one time */
  uint64_t kept;         /* freed, and kept for the next buffers; work of streams may still use some of it */
  uint64_t kept_most;    /* more goes back to the system, on a GPU when a stream is waited for */
  uint64_t device_free, device_bytes; /* of the device's memory, whoever uses it; 0: not known */
} hg_memory_info;
HG_API hg_status hg_memory_query(hg_executor *executor, hg_memory_info *info);
/* Gives back what is kept, when all streams are done. Other executors of the device keep theirs. */
HG_API hg_status hg_memory_trim(hg_executor *executor);
/* Sets hg_memory_info.kept_most, which is an eighth of the device's memory if nobody does. */
HG_API hg_status hg_memory_keep(hg_executor *executor, uint64_t byte_count);

/* ---- streams -----------------------------------------------------------------------------------------------------
 * What a stream is given (launches, copies, fills, graphs) is done in order, while the caller goes on:
 *
 *   hg_stream *stream = NULL;
 *   hg_stream_create(executor, NULL, &stream);
 *   hg_buffer_write_async(x, 0, pinned, byte_count, stream);          // pinned from hg_host_allocate
 *   launch.stream = stream;
 *   hg_launch(kernel, &launch, NULL);                                 // returns before it has run
 *   hg_buffer_read_async(x, 0, pinned, byte_count, stream);
 *   if (hg_stream_wait(stream, NULL) != HG_OK) fprintf(stderr, "%s\n", hg_last_error());
 *
 * Order: between streams there is none, except where hg_stream_wait_event makes one. A call without a stream comes
 * after all that streams were given before it for the memory it touches, which it waits for, and before all that they
 * are given after it. Where work of such a stream could not be done it fails as the stream's hg_stream_wait does, until
 * that has told of it: the memory does not hold what it asks for. Arguments are checked, and failures of the call
 * reported, when the work is given. Faults of programs are reported by the stream's next hg_stream_wait; what comes
 * behind a launch that faults runs all the same.
 * Lifetimes: buffers and kernels may be released as soon as the stream has been given the work that uses them. Host
 * memory of copies must stay, and a source unchanged, until the stream has got there.
 * Programs that change resonance counters or the phase are run at once, after all that the stream was given before.
 * Foreign streams: while the owner of one captures it into a graph of its own, whatever needs the stream is HG_BUSY and
 * changes nothing: work for it, events, hg_stream_wait and _query, and calls without a stream on memory for which it
 * has work left. Releases work as ever: memory is freed when that work is done; hg_stream_release and hg_host_release
 * wait for it.
 * Devices: on a GPU a stream is one of the driver's. On the CPU it is a queue with a thread of its own, which is
 * started when there is work that is worth one; what is small is done in the call where nothing stands before it. */

typedef struct hg_stream_desc {
  size_t size;
  uint32_t flags; /* 0 */
  void *foreign;  /* a stream of the driver's to use: a CUstream or cudaStream_t of the same GPU's primary context, as
                     PyTorch and CuPy give it; (void *)1 for CUDA's default stream. It must outlive this one and is not
                     destroyed with it. NULL: a new stream */
} hg_stream_desc;

/* desc may be NULL. HG_INVALID_ARGUMENT for a foreign stream of another GPU or context, HG_UNSUPPORTED for one on the
 * CPU; HG_OUT_OF_MEMORY, HG_DEVICE. */
HG_API hg_status hg_stream_create(hg_executor *executor, const hg_stream_desc *desc, hg_stream **out);
HG_API hg_stream *hg_stream_retain(hg_stream *stream);
HG_API void hg_stream_release(hg_stream *stream); /* the last release waits for the stream's work */
/* HG_OK when all that the stream was given is done, HG_BUSY while it is not, or while the owner of a foreign stream
 * captures it. Says nothing about faults, nor of what a stream has captured. Another status: work of the stream could
 * not be done, as the next hg_stream_wait says, too. */
HG_API hg_status hg_stream_query(hg_stream *stream);
/* hg_stream_wait: below, with launches. */

/* Page-locked host memory, at a multiple of 64 bytes: the device copies it by itself, beside all else. Ordinary memory
 * in its place is right too, but slower, and the call may take as long as the copy. */
HG_API hg_status hg_host_allocate(hg_executor *executor, uint64_t byte_count, void **memory);
HG_API void hg_host_release(hg_executor *executor, void *memory); /* waits for all streams of the executor */

/* As hg_buffer_write, _read, _copy and _fill, on a stream; the same where it is NULL. A mapped buffer is HG_BUSY. On
 * a stream the ranges of a copy must not overlap, and both buffers be of its executor. */
HG_API hg_status hg_buffer_write_async(hg_buffer *buffer, uint64_t offset, const void *source, uint64_t byte_count,
                                       hg_stream *stream);
HG_API hg_status hg_buffer_read_async(hg_buffer *buffer, uint64_t offset, void *destination, uint64_t byte_count,
                                      hg_stream *stream);
HG_API hg_status hg_buffer_copy_async(hg_buffer *destination, uint64_t destination_offset, hg_buffer *source,
                                      uint64_t source_offset, uint64_t byte_count, hg_stream *stream);
HG_API hg_status hg_buffer_fill_async(hg_buffer *buffer, uint64_t offset, uint64_t byte_count, const void *pattern,
                                      size_t pattern_size, hg_stream *stream);

/* ---- events ------------------------------------------------------------------------------------------------------
 * A place in a stream: where it was recorded last. One that was never recorded counts as reached.
 * Or the end of a compilation, where hg_kernel_create_async had it last: then hg_event_wait waits and hg_event_query
 * asks for that, hg_stream_wait_event waits for it before it returns, hg_event_elapsed takes it for not recorded, and
 * the event keeps the kernel until it is recorded anew or released. Whether the kernel is ready or has failed, the
 * kernel says.
 * Errors: HG_INVALID_ARGUMENT where event and stream are of different executors; HG_BUSY from hg_event_record and
 * hg_stream_wait_event while the stream captures, or its owner captures it: nothing is changed. HG_OUT_OF_MEMORY from
 * hg_event_create; HG_DEVICE once the GPU has failed; HG_UNSUPPORTED in a process that was forked off, of a GPU, or of
 * a stream that had work left. */

typedef struct hg_event hg_event;

enum { HG_EVENT_TIMED = 1 }; /* keeps the time at which the stream got there, for hg_event_elapsed */

typedef struct hg_event_desc {
  size_t size;
  uint32_t flags;
  uint32_t reserved; /* 0 */
} hg_event_desc;

HG_API hg_status hg_event_create(hg_executor *executor, const hg_event_desc *desc,
                                 hg_event **out); /* desc may be NULL */
HG_API void hg_event_release(hg_event *event); /* at any time */
HG_API hg_status hg_event_record(hg_event *event, hg_stream *stream); /* behind all that the stream was given so far */
/* All that the stream is given from now on waits until the event, as it is recorded now, is reached. */
HG_API hg_status hg_stream_wait_event(hg_stream *stream, hg_event *event);
HG_API hg_status hg_event_wait(hg_event *event);  /* says nothing about faults, nor whether work could be done */
HG_API hg_status hg_event_query(hg_event *event); /* HG_OK when it is reached, HG_BUSY before */
/* Nanoseconds from one timed event to another, as the device's clock has it (about half a microsecond fine on GPUs;
 * wall time on the CPU). HG_BUSY while one is not reached; HG_INVALID_ARGUMENT for one that is not timed or not
 * recorded, or for two of different executors. */
HG_API hg_status hg_event_elapsed(hg_event *from, hg_event *to, double *nanoseconds);

/* ---- pools -------------------------------------------------------------------------------------------------------
 * One buffer from which the host allocates regions; programs may allocate in a region too (pool.alloc). */

typedef struct hg_pool hg_pool;

HG_API hg_status hg_pool_create(hg_executor *executor, uint64_t byte_count, hg_pool **out); /* reads as zero */
HG_API void hg_pool_release(hg_pool *pool);
/* A region of byte_count bytes at a multiple of alignment (a power of two up to 4096; 0: 16). HG_OUT_OF_MEMORY with a
 * sentence when no free range is large enough. First fit; neighbouring free ranges are merged. */
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

/* A program made ready for an executor. The program may be released afterwards. Libraries are refused (HG_VERIFY).
 * Other threads go on with the executor while it compiles. Kernels of one program, or of equal texts of it, share what
 * was compiled, so that threads that make the same kernel at the same time have it compiled once; where that fails it
 * fails for all of them, with the same sentence, and a later call tries anew. HG_UNSUPPORTED where a block needs more
 * shared memory than the device gives one: what the program declares and, on a GPU, what its collectives exchange. */
HG_API hg_status hg_kernel_create(hg_executor *executor, atlas_program *program, hg_kernel **out);
/* Likewise, but it returns before the program is compiled, by a thread of the library's own (by the call itself where
 * there is no thread to be had). What is wrong with the arguments, and a library, is an error of the call; how the
 * compilation went, whoever uses the kernel is told: hg_launch and the questions below wait for it, and fail as it did.
 * `event` may be NULL; otherwise it is reached when the kernel is ready or has failed (see events). hg_kernel_release:
 * the last one waits for a compilation under way; one that has not begun is left undone. */
HG_API hg_status hg_kernel_create_async(hg_executor *executor, atlas_program *program, hg_kernel **out,
                                        hg_event *event);
HG_API hg_kernel *hg_kernel_retain(hg_kernel *kernel);
HG_API void hg_kernel_release(hg_kernel *kernel);

/* What became of a program on its executor. Strings live as long as the kernel. */
typedef struct hg_kernel_info {
  size_t size;
  const char *name;                /* the program's */
  uint8_t hash[ATLAS_HASH_BYTES];  /* as atlas_program_hash has it */
  const char *backend;             /* "cpu" */
  const char *engine;              /* "native avx2" */
  const char *why;                 /* no faster engine of the backend runs it: a sentence; "": it is the fastest */
  uint32_t parameter_count;
  uint32_t block[3];               /* that launches must have; 0, 0, 0: any */
  uint32_t default_block[3];       /* of launches that say none; 0, 0, 0: there is none */
  uint32_t registers;              /* of 32 bits, a thread has on a GPU. This and what follows are 0 where there are */
  uint32_t local_bytes;            /* none, or it is not known; on a GPU they are of the form that most launches use. */
  uint32_t shared_bytes;           /* Bytes a thread spills to; bytes that a block's lanes share */
  const char *notes;               /* what makes launches slower than one would expect: `why`, or lines of the program
                                      that machine code leaves to calls of C, that access memory lane by lane, or that
                                      end a loop which checks each access; separated by "; ". "": nothing is known */
} hg_kernel_info;
/* Fill info->size first, or leave it 0. A kernel that is being compiled is waited for; of one that failed it is the
 * failure. HG_DEVICE once the GPU has failed, HG_UNSUPPORTED in a process that was forked off. */
HG_API hg_status hg_kernel_query(hg_kernel *kernel, hg_kernel_info *info);

/* A parameter: what a launch must or may give by hg_binding or hg_scalar. The name lives as long as the kernel. */
typedef struct hg_parameter_info {
  size_t size;
  const char *name;
  uint32_t slot;         /* for hg_binding.slot and hg_scalar.slot */
  uint8_t kind;          /* atlas_symbol_kind: a buffer, scalar, table or pool */
  uint8_t type;          /* atlas_type: of its elements, or of the scalar; u8 for tables and pools */
  uint8_t access;        /* atlas_access; 0 of a scalar */
  uint8_t is_required;   /* 0: a launch may leave it out */
  uint32_t entry_count;  /* of a table; otherwise 0: a buffer's elements are the launch's to say */
  uint32_t alignment;    /* of the first byte that is bound, in bytes; 0 of a scalar */
} hg_parameter_info;
/* By its index among the parameters, in the order of their declarations. HG_NOT_FOUND past the last. Otherwise as
 * hg_kernel_query. */
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
  uint32_t block[3];       /* in lanes; product at most 1024; 0 counts as 1; all 0: what the program requires, else its
                              default, else 1 */
  const hg_binding *bindings;
  size_t binding_count;
  size_t binding_size;     /* bytes from one binding to the next: sizeof(hg_binding); 0: of version 1 */
  const hg_scalar *scalars;
  size_t scalar_count;
  size_t scalar_size;      /* likewise */
  uint64_t step_limit;     /* back-edges a lane may take; 0: HG_DEFAULT_STEP_LIMIT */
  uint32_t flags;
  hg_stream *stream;       /* NULL: the launch is over when hg_launch returns */
} hg_launch_desc;

typedef enum hg_fault_kind {
  HG_FAULT_NONE = 0,
  HG_FAULT_OUT_OF_BOUNDS = 1, /* index, extent: elements; bytes for tables and pools; the wrong part of [phi ...] */
  HG_FAULT_MISALIGNED = 2,    /* index: the byte offset; extent: the alignment it needs */
  HG_FAULT_TRAP = 3,          /* code */
  HG_FAULT_STEP_LIMIT = 4,    /* index and extent: the limit */
  HG_FAULT_CLASS = 5,         /* index: the value; extent: how many there are */
  HG_FAULT_POOL = 6,          /* pool.free of what is not held; index: the offset; extent: the end of what is held */
  HG_FAULT_UNITY = 7          /* a unity-neutral launch's deltas do not sum to zero; index: the sum */
} hg_fault_kind;

/* The fault of the lowest lane that had one, and that lane's first, in the canonical program: see docs/isa.md, Faults.
 * An index beyond int64_t is given as the nearest one. It stands in a report as it is: its room is what it can grow by;
 * what needs more will be a field of the report. */
typedef struct hg_fault {
  hg_fault_kind kind;
  uint32_t instruction;  /* index in the program */
  uint32_t line;         /* of its text; 0 if there is none */
  uint32_t code;         /* of a trap */
  uint64_t lane;         /* global */
  char buffer[ATLAS_MAX_NAME + 1]; /* the parameter's name, "phi" for the boundary pool, "" where there is none */
  int64_t index;
  int64_t extent;
  int64_t number;        /* where has_number: an operation's index out of range, as it was given, or the nearest i64 */
  uint64_t length;       /* likewise: how many elements the axis has */
  uint32_t axis;         /* likewise: of the tensor that it is an index of */
  uint32_t has_number;   /* 1: hg_run, hg_apply or a wait found that index; 0: the launch was no operation's, or the
                            index could not be computed again: its memory has been written meanwhile, or was given
                            up and imported or a large part of the device's, or a graph has the launch */
} hg_fault;

/* What ran. Strings live as long as the library, the notes as long as the kernel. */
typedef struct hg_launch_report {
  size_t size;
  hg_fault fault;        /* kind HG_FAULT_NONE when all went well */
  uint64_t lanes;
  uint64_t nanoseconds;  /* of the program itself, on the device's clock; 0 on a stream: see hg_event_elapsed */
  const char *backend;   /* "cpu" */
  const char *engine;    /* "reference" */
  const char *notes;     /* what makes the launch slower than one would expect: "left to the tile engine: ...", or of
                            all launches of the kernel its notes (hg_kernel_info); on some devices "f64 emulated".
                            Several are separated by "; ". "": nothing. On a stream only the kernel's, and "" from
                            hg_stream_wait, which may come after the kernel's end */
} hg_launch_report;

/* Run a kernel; a linear launch of 0 lanes runs nothing and succeeds. A program that requires blocks of more than one
 * dimension needs a grid. Everything about the launch is checked before a lane runs: HG_BINDING names the parameter and
 * what is wrong; HG_INVALID_ARGUMENT for impossible shapes. HG_FAULT: the program ran, and faulted as the report (may
 * be NULL) and hg_last_error() say; its other effects stand and the executor stays usable. On a stream it returns
 * before the program has run, with a report of no fault: hg_stream_wait tells of it. */
HG_API hg_status hg_launch(hg_kernel *kernel, const hg_launch_desc *desc, hg_launch_report *report);

/* Waits until all that the stream was given is done. HG_FAULT: of the launches since the last wait, the first that
 * faulted did so as its report (may be NULL) and hg_last_error() say, the same as if it had been launched without a
 * stream; the stream stays usable, and the next wait starts afresh. Without a fault the report's kind is HG_FAULT_NONE,
 * it has no lanes, and its backend and engine are those of hg_executor_query. HG_OUT_OF_MEMORY, HG_DEVICE,
 * HG_UNSUPPORTED (in a process that was forked off): work of the stream could not be done, or not be waited for.
 * HG_BUSY while the stream captures, or the owner of a foreign stream captures it: the report is left as it was. */
HG_API hg_status hg_stream_wait(hg_stream *stream, hg_launch_report *report);

/* ---- graphs ------------------------------------------------------------------------------------------------------
 * A sequence of launches, copies and fills, put together once and given to a stream as a whole, which costs the host
 * little more than one launch:
 *
 *   hg_graph *graph = NULL;
 *   hg_capture_begin(stream);
 *   hg_buffer_copy_async(y, 0, x, 0, byte_count, stream);             // what the stream is given now is checked as
 *   hg_launch(kernel, &launch, NULL);                                 // ever and kept; nothing is run
 *   hg_capture_end(stream, &graph);
 *   hg_graph_launch(graph, stream);                                   // as often as wanted
 *
 * A graph keeps the buffers and kernels that it uses alive, and the arguments that it was captured with, the phase
 * included. Host memory of its copies must be from hg_host_allocate and outlive the graph's last run. A capturing
 * stream takes nothing but that: events, graphs and waits are HG_BUSY, programs that change resonance counters or the
 * phase HG_UNSUPPORTED; a call that fails adds nothing. Of several runs of a graph between two waits, whichever faulted
 * counts as one launch: the report is of the graph's first launch with a fault, in one of those runs. So it may be with
 * runs on several streams at a time: the first wait that finds a fault of them tells it for all. */

typedef struct hg_graph hg_graph;

/* HG_BUSY for a stream that captures already; HG_OUT_OF_MEMORY. */
HG_API hg_status hg_capture_begin(hg_stream *stream);
/* The capture is over whatever the status; without HG_OK there is no graph. HG_INVALID_ARGUMENT for a stream that
 * captures nothing, or where `out` is NULL; HG_UNSUPPORTED where the GPU's driver is too old for graphs;
 * HG_OUT_OF_MEMORY, HG_DEVICE. */
HG_API hg_status hg_capture_end(hg_stream *stream, hg_graph **out);
/* On any stream of the executor; HG_INVALID_ARGUMENT for one of another. HG_BUSY while a buffer of the graph is mapped,
 * while the stream captures, or the owner of a foreign stream captures it. */
HG_API hg_status hg_graph_launch(hg_graph *graph, hg_stream *stream);
HG_API void hg_graph_release(hg_graph *graph); /* as soon as it has been launched */

/* "out of bounds", "trap", ...; never NULL. */
HG_API const char *hg_fault_kind_name(hg_fault_kind kind);

/* ---- looking inside ----------------------------------------------------------------------------------------------
 * What `hologram emit` and `hologram cache` show. */

/* Something that the compiler can make of a program, one after the other from index 0: HG_NOT_FOUND past the last. */
typedef struct hg_emit_target_info {
  size_t size;
  const char *name;    /* "ptx" */
  const char *machine; /* of machine code: what objdump calls the processor ("aarch64"); NULL: text */
  uint32_t least_capability, most_capability; /* of GPUs: see hg_emit; else 0 */
} hg_emit_target_info;
HG_API hg_status hg_emit_target_query(size_t index, hg_emit_target_info *info);

/* What the compiler makes of a program, on whatever machine: "msl", "ptx" and "vector" (what the CPU engines run) are
 * text; "x86-avx512", "x86-avx2" and "arm64" are machine code. `capability` is for ptx: major * 10 + minor of the GPU,
 * from 75 to 999, or 0 for the oldest. Release the bytes with atlas_memory_release and the same allocator. HG_NOT_FOUND
 * for other targets, HG_INVALID_ARGUMENT for another capability, HG_UNSUPPORTED for a program that machine code is not
 * written for, HG_OUT_OF_MEMORY. */
HG_API hg_status hg_emit(const hg_allocator *allocator, const atlas_program *program, const char *target,
                         uint32_t capability, void **bytes, size_t *byte_count);

typedef enum hg_cache_state {
  HG_CACHE_OK,
  HG_CACHE_DAMAGED,    /* it will be removed by whoever wants it */
  HG_CACHE_UNREADABLE,
  HG_CACHE_NO_ENTRY,   /* still being written, or left behind by a process that ended meanwhile */
  HG_CACHE_REFUSED     /* a link, no regular file, or one that others may have written: it is never used */
} hg_cache_state;

/* A file of the kernel cache on disk. `size` is the library's: what lies beyond it is not there. */
typedef struct hg_cache_file {
  size_t size;
  const char *name;
  hg_cache_state state;
  uint64_t byte_count;
  int64_t used_ns;                   /* since 1970: when it was written or used last */
  uint8_t program[ATLAS_HASH_BYTES]; /* this and the rest: of HG_CACHE_OK alone */
  const char *target, *driver;       /* "sm_90", "cuda 12.4" */
  uint32_t compiler_version;
  uint64_t specialisation_bytes, payload_bytes;
} hg_cache_file;

/* The kernel cache on disk, as the environment names it. */
typedef struct hg_cache_info {
  size_t size;
  const char *problem; /* why it is not used; NULL if it is */
  uint64_t byte_cap;
  char folder[4096];   /* "": none */
  const char *remark;  /* which setting is ignored; NULL: none */
} hg_cache_info;

/* Fill info->size first, or leave it 0. */
HG_API hg_status hg_cache_query(hg_cache_info *info);
/* Calls `visit` for each file, newest first; what it is given lives until it returns, and it may remove that file.
 * `read`: 1 reads the files; 0 takes every entry for HG_CACHE_OK and says nothing of what it holds. */
HG_API hg_status hg_cache_visit(int read, void (*visit)(void *user, const hg_cache_file *file), void *user);
/* HG_NOT_FOUND where the cache has no such file, or it cannot be removed. */
HG_API hg_status hg_cache_remove(const char *name);

#ifdef __cplusplus
}
#endif
#endif
