/* backend.h - what a device must be able to do: one const struct of functions. The runtime checks every argument before
 * it calls one of them, and makes one call at a time to each device. Functions marked "not locked" are the exception:
 * several threads may be in them, and in one other function of the device, at the same time; the backend guards what
 * they share with other functions.
 *
 * To add a backend: one such struct in src/backend/<name>/, and its line in src/runtime/backends.def. */
#ifndef HG_BACKEND_H
#define HG_BACKEND_H

#include "atlas/interp.h"
#include "base/memory.h"
#include "base/base_tuning.h"
#include "hologram/hologram.h"
#include "ir/ssa.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
  HG_BACKEND_MIN_ALIGNMENT = 64,  /* of every allocation, so that an offset in an allocation decides about alignment in
                                     memory */
  HG_BACKEND_MAX_ALIGNMENT = 4096
};

/* Properties of a device, filled in by `query`, which opens nothing. */
typedef struct hg_device_info {
  char name[128];          /* "AMD EPYC" */
  const char *engine;      /* a constant: "reference" */
  uint32_t compute_units;
  uint32_t subgroup_lanes; /* lanes that execute together: a GPU's warp; 0: none */
  uint32_t max_shared_bytes;
  uint32_t spreads_blocks; /* 1: a block whose lanes need many registers may be spread over several multiprocessors */
  uint64_t memory_bytes;   /* 0: unknown */
  char remarks[512];       /* for the log: ignored settings; "": none */
} hg_device_info;

/* Which device to open, and how. */
typedef struct hg_device_choice {
  uint32_t number;    /* from 0 */
  const char *engine; /* by name; "": the environment's choice, or the fastest */
  uint32_t threads;   /* CPU: most threads of one launch, copy or fill; 0: all that the process may use */
  const atomic_uint *cancels; /* `open`: when this counter changes, earlier work ends with HG_CANCELLED; outlives the
                                 device. Devices that ignore it do their work all the same. */
} hg_device_choice;

/* Appends the remark "<about><words>", after "; " if there is an earlier one; words NULL: appends nothing. */
static inline void hg_add_remark(hg_device_info *info, const char *about, const char *words) {
  size_t used = strlen(info->remarks);
  if (words == NULL) return;
  snprintf(info->remarks + used, sizeof info->remarks - used, "%s%s%s", used > 0 ? "; " : "", about, words);
}

enum { HG_WITH_BIAS = 1, HG_WITH_RELU = 2, HG_WITH_GELU_TANH = 4 };

/* Elements along an axis that is a list of axes, in C order: parts[0] is the fastest. An element is at the sum of its
 * parts' numbers times their strides. */
enum { HG_AXIS_PARTS = 4 };
typedef struct hg_axis {
  uint64_t count; /* of the parts; 0: the axis has a stride of its own */
  uint64_t size[HG_AXIS_PARTS];
  int64_t stride[HG_AXIS_PARTS]; /* in elements */
} hg_axis;

/* c[i, r, j] = the sum over l < k of a[i, r, l] * b[i, l, j], for i < batch, r < m, j < n, in the one order that
 * contractions have: K in chunks of 256, each one chain of fused multiply-adds from +0 in increasing l; chunks by the
 * aligned binary tree over their number. Sums of f16, bf16 and f32 are f32, those of f64 f64, integers wrap at `type`;
 * results are rounded once, and a NaN is canonical. Everything lies within its buffer, and c overlaps neither a nor b.
 * A fast contraction may have other bits, and an epilogue, computed before the rounding: adds bias[j] of c's type, then
 * applies relu or gelu_tanh. */
typedef struct hg_contraction {
  uint8_t a_type, b_type, type; /* atlas_type; `type` is c's */
  uint8_t is_fast;  /* the caller allows other bits: vendor libraries, tensor cores */
  uint8_t is_tf32;  /* the caller also allows f32 factors rounded to 11 bits */
  uint8_t epilogue; /* HG_WITH_..., of a fast contraction */
  uint8_t reserved[2];
  uint64_t batch, m, n, k;
  const uint8_t *a, *b; /* addresses of elements (0, 0, 0) */
  uint8_t *c;
  int64_t a_stride[3], b_stride[3], c_stride[3]; /* in elements: of the batch, rows, columns; c has no stride 0 */
  hg_axis a_axis[3], b_axis[3]; /* lists in place of these strides, of windows of an image; an axis' stride is then that
                                   of its first part */
  uint8_t *scratch; /* scratch of as many bytes as contract_scratch says, with any contents, aligned to 64 */
  uint64_t first[4]; /* in a kernel, which has no addresses: bytes from what is bound to a, b, c and the bias */
} hg_contraction;

/* The location of rows of consecutive elements, in elements from what is bound to a symbol of the program. */
typedef struct hg_rows_of {
  uint64_t slot, first, stride; /* the symbol; the offset of row 0; from row to row */
  uint64_t outer;             /* stride from one group of rows to the next */
  uint64_t gap;               /* elements between neighbours of a row: HG_ROWS_COPIED; else 0 */
} hg_rows_of;

enum { HG_MOST_COPIES = 32 }; /* of rows, in a launch */

typedef enum hg_rows_kind {
  HG_ROWS_COPIED, /* y[i] = x[i] */
  HG_ROWS_EXTREME, /* y[i], of index_type, is the greatest element of x[i], or the least; bytes: u8 or bool */
  HG_ROWS_TAKEN,  /* y[i] = x[i] displaced by index[i] strides */
  HG_ROWS_LISTED, /* for each number p, the increasing list of i with index[i] = p; `counted`, `begun` start as 0 */
  HG_ROWS_ADDED   /* y[p] = base[p] + F of x[l] for l in p's list, in its order; y[p] = base[p] if the list is empty */
} hg_rows_kind;

/* What a launch does to rows (atlas_launch.rows). A device may do it by a native kernel, with the same bits,
 * unless a number is out of range: then it runs the program, which reports which. */
typedef struct hg_rows {
  uint8_t kind, type, index_type;
  uint8_t wraps, clamps; /* wraps: negative numbers count from the end; clamps: out-of-range numbers become the nearest;
                            neither: they fault */
  uint8_t is_least;
  uint32_t more;             /* of HG_ROWS_COPIED: so many others follow in memory, which the launch copies too */
  uint64_t count, length;    /* rows of y, or of the index for lists; elements of a row */
  uint64_t groups;           /* groups of rows, each of which takes all numbers; else 1 */
  uint64_t extent, stride;   /* exclusive bound of numbers; elements of x from number to number, for HG_ROWS_TAKEN */
  hg_rows_of y, x, index;
  hg_rows_of base;           /* slot UINT64_MAX: all elements are these bits */
  uint64_t base_bits;
  uint64_t counted, begun, listed; /* slots of u32: p's list is counted[p] numbers at listed[begun[p] - 1] */
} hg_rows;

/* A device's cache of freed memory. */
typedef struct hg_device_memory {
  uint64_t kept, kept_most;
  uint64_t free_bytes, all_bytes; /* of the device, for all its users; 0: unknown */
} hg_device_memory;

/* A program on its way to a device. */
typedef struct hg_compile_input {
  const atlas_program *program; /* outlives the kernel */
  ssa_unit *unit; /* its canonical unit: the backend may change it, or move it out and leave an empty one */
  /* NULL, or what the kernel shall compute in each launch instead of running the program: its symbols 0, 1 and 2 are
   * bound to a, b and c, the next to the scratch if it needs any, and the last to the bias if there is one. Only
   * contractions that contract_scratch accepts. A kernel for one that is not fast serves all that are not fast and
   * have the same program: each launch says which (atlas_launch.contraction). */
  const hg_contraction *contraction;
  uint8_t hash[ATLAS_HASH_BYTES];
} hg_compile_input;

typedef struct hg_compiled {
  void *kernel;
  const char *engine; /* a constant: the engine's name */
  const char *why;    /* why no faster engine runs it: a sentence that lives as long as the kernel; "" or NULL: it is
                         the fastest. hg_kernel_info and launch reports show it */
  const char *notes;  /* what makes launches slower than expected, why included; lives as long. NULL: `why` */
} hg_compiled;

/* What hg_kernel_query reports beside hg_compiled; 0: unknown. */
typedef struct hg_kernel_facts {
  uint32_t registers, local_bytes, shared_bytes;
  const char *why; /* as hg_compiled.why, for its present code; NULL: that holds */
} hg_kernel_facts;

/* Returned without any effect by `launch`, `submit` and `graph_open` if code must be compiled first: the runtime calls
 * `prepare` and repeats the call. Not a status of the public API. */
#define HG_UNPREPARED ((hg_status)1000)

/* A work item for a stream. */
typedef enum hg_work_kind {
  HG_WORK_LAUNCH,
  HG_WORK_COPY_IN,    /* from the host */
  HG_WORK_COPY_OUT,   /* to the host */
  HG_WORK_COPY_WITHIN, /* ranges do not overlap */
  HG_WORK_FILL
} hg_work_kind;

typedef struct hg_work {
  hg_work_kind kind;
  void *kernel;                /* kernel of a launch */
  const atlas_program *program;
  const atlas_launch *launch;  /* its results are not used */
  uint64_t number;             /* number of the launch in its stream or graph, which identifies its fault */
  uint8_t *to;                 /* of a copy or fill of at least 1 byte */
  const uint8_t *from;
  uint64_t byte_count;
  uint8_t pattern[8];
  size_t pattern_size;         /* 1, 2, 4 or 8, and divides byte_count */
} hg_work;

/* A deep copy, which may outlive the original: launch, arguments and tables are in `room`, hg_work_room bytes aligned
 * as by malloc. */
uint64_t hg_work_room(const hg_work *work);
void hg_work_copy(hg_work *copy, const hg_work *work, void *room);

/* The point at which an event was last recorded. */
typedef struct hg_event_place {
  void *where;
  uint64_t number;
} hg_event_place;

/* Streams, events and graphs. Functions that return int return the backend's own result code, which `outcome`
 * translates into a status; 0: success. */
typedef struct hg_stream_functions {
  hg_status (*open)(void *device, void *foreign, void **stream);
  void (*close)(void *device, void *stream);             /* after its work is done or lost */
  /* HG_BUSY while the stream accepts no work. NULL: it always does. */
  hg_status (*admit)(void *device, void *stream);
  /* The work runs after all work that other functions gave the device before. The call copies what the work points to,
   * except host memory and the kernel. */
  hg_status (*submit)(void *device, void *stream, const hg_work *work); /* after `admit` */
  int (*wait)(void *device, void *stream);               /* not locked */
  /* Not locked. Before a stream or memory is released: waits for all its work, also if `wait` gives HG_BUSY. */
  int (*wait_at_last)(void *device, void *stream);
  int (*query)(void *device, void *stream);
  /* The stream may be NULL. After the result 0 the work has ended, successfully or not. HG_BUSY: not known yet. */
  hg_status (*outcome)(void *device, void *stream, int result);

  /* For a launch that is done: 1 if it faulted. `graph` is NULL, or the graph launched under that number: then *index
   * is the number, within the graph, of the first launch that faulted. take_fault reads the record and resets it. */
  int (*faulted)(void *stream, void *graph, uint64_t number, uint64_t *index);
  hg_status (*take_fault)(void *device, void *stream, void *graph, uint64_t number, const hg_work *work,
                          hg_fault *fault);

  hg_status (*event_open)(void *device, int timed, void **event);
  void (*event_close)(void *device, void *event);
  hg_status (*event_record)(void *device, void *event, void *stream);
  hg_status (*event_await)(void *device, void *stream, void *event);
  hg_event_place (*event_place)(void *device, void *event);
  int (*event_wait)(void *device, const hg_event_place *place); /* not locked */
  int (*event_query)(void *device, void *event);
  hg_status (*event_elapsed)(void *device, void *from, void *to, double *nanoseconds);

  /* `work` outlives the graph. */
  hg_status (*graph_open)(void *device, const hg_work *work, size_t count, void **graph);
  void (*graph_close)(void *device, void *graph);        /* after all its launches are done */
  hg_status (*graph_submit)(void *device, void *stream, void *graph, uint64_t number); /* after `admit` */

  /* As hg_backend.allocate, in the order of a stream: later work of the stream may use the memory at once, anything
   * else only after the work that the stream has now (`follow`, `wait`). Frees are in the same order, so the stream can
   * reuse at once what it freed before. NULL: memory may be used by everyone at once. */
  hg_status (*allocate)(void *device, void *stream, uint64_t byte_count, uint32_t alignment, int zeroed,
                        uint8_t **address);
  /* Orders later work of the stream after the present work of `other`. */
  hg_status (*follow)(void *device, void *stream, void *other);
  /* Frees memory after the present work of these streams. */
  void (*free)(void *device, uint8_t *address, void *const *streams, size_t count);
  hg_status (*host_allocate)(void *device, uint64_t byte_count, void **memory);
  void (*host_free)(void *device, void *memory);
} hg_stream_functions;

/* One of the texts or codes that `hologram emit` shows of a program, on any machine. */
typedef struct hg_emit_target {
  const char *name;    /* "ptx"; NULL ends the table of a backend */
  const char *machine; /* for machine code: objdump's name of the processor; NULL: text */
  uint32_t least_capability, most_capability; /* the accepted range; 0, 0: there is only one */
  const void *own;     /* the backend's */
  /* The capability is in the range. Text is not NUL-terminated. */
  hg_status (*emit)(const struct hg_emit_target *target, const hg_allocator *allocator, const atlas_program *program,
                    uint32_t capability, hg_array *bytes);
} hg_emit_target;

typedef struct hg_backend {
  const char *name; /* "cpu" */
  const hg_emit_target *emit_targets;

  /* HG_UNSUPPORTED with a sentence if there is no device of that number, or no such engine. After a failure of `query`
   * or `open`, HG_BACKEND_AUTO tries the next backend, except after HG_INVALID_ARGUMENT and if `open` sets
   * *host_is_full (0 before the call): the host is out of memory, which the next backend needs as well. The allocator
   * is copied. */
  hg_status (*query)(const hg_device_choice *choice, hg_device_info *info);
  hg_status (*open)(const hg_allocator *allocator, const hg_device_choice *choice, void **device, int *host_is_full);
  void (*close)(void *device);

  /* byte_count bytes, zero if `zeroed`, else with any contents; alignment is a power of two within the bounds above. It
   * is a device address: the host does not dereference it unless memory_is_host. */
  hg_status (*allocate)(void *device, uint64_t byte_count, uint32_t alignment, int zeroed, uint8_t **address);
  void (*free)(void *device, uint8_t *address);
  void (*memory)(void *device, hg_device_memory *memory);
  void (*keep)(void *device, uint64_t byte_count); /* sets kept_most */
  void (*trim)(void *device);                      /* returns all cached memory to the system */
  /* HG_INVALID_ARGUMENT with a sentence if the device cannot use this memory, which another library owns. */
  hg_status (*adopt)(void *device, const uint8_t *memory, uint64_t byte_count);

  hg_status (*copy_in)(void *device, uint8_t *destination, const void *source, uint64_t byte_count);
  hg_status (*copy_out)(void *device, void *destination, const uint8_t *source, uint64_t byte_count);
  hg_status (*copy_within)(void *device, uint8_t *destination, const uint8_t *source,
                           uint64_t byte_count); /* may overlap */
  uint8_t memory_is_host; /* 1: addresses are host addresses */
  /* Copies from memory of another device of this backend, which the caller has locked too. NULL if memory_is_host. */
  hg_status (*copy_from)(void *device, uint8_t *destination, void *source_device, const uint8_t *source,
                         uint64_t byte_count);
  /* pattern_size is 1, 2, 4 or 8 and divides byte_count. */
  hg_status (*fill)(void *device, uint8_t *destination, uint64_t byte_count, const void *pattern, size_t pattern_size);
  /* Maps a range of the allocation at that address; adopted memory only if memory_is_host. */
  hg_status (*map)(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count, void **memory);
  hg_status (*unmap)(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count);

  /* Compiles a program. HG_UNSUPPORTED with a sentence for what the device cannot do. Not locked. */
  hg_status (*compile)(void *device, hg_compile_input *input, hg_compiled *out);
  /* Compiles the code for which launches of this kernel gave HG_UNPREPARED. NULL: none ever does. Not locked. */
  hg_status (*prepare)(void *device, void *kernel);
  /* HG_UNPREPARED if the code for a launch is not compiled, or will be replaced by faster code: `prepare` then makes
   * it. Of addresses only the alignment counts. NULL: `compile` makes everything. */
  hg_status (*check_final)(void *device, void *kernel, const atlas_launch *launch);
  hg_status (*describe)(void *device, void *kernel, hg_kernel_facts *facts);
  void (*release)(void *device, void *kernel);

  /* Runs a launch that has passed every check; its spans hold addresses of this device. HG_OK also if lanes faulted
   * (launch->fault). */
  hg_status (*launch)(void *device, void *kernel, atlas_launch *launch);

  /* The bytes of scratch that a native kernel for the contraction needs, 0 for small ones: a kernel with the bits of
   * the Atlas program that defines it (hg_compile_input), or with any bits if it is fast. UINT64_MAX if there is none
   * for these types; then for a fast contraction *why says why. Ignores addresses. NULL: the backend has none at all.
   * Not locked. */
  uint64_t (*contract_scratch)(void *device, const hg_contraction *contraction, const char **why);

  const hg_stream_functions *streams;
} hg_backend;

#endif
