/* backend.h - what a device must be able to do: one const struct of functions. The runtime checks every argument before
 * it calls one of them, and calls them for one device one at a time, but for those that are marked "not locked": these
 * may run at the same time as any other function of the device, and as themselves. What they share with the others the
 * backend guards itself.
 *
 * To add a backend: one such struct in src/backend/<name>/, and its line in src/runtime/backends.def. */
#ifndef HG_BACKEND_H
#define HG_BACKEND_H

#include "atlas/interp.h"
#include "base/memory.h"
#include "hologram/hologram.h"
#include "ir/ssa.h"

#include <stdio.h>
#include <string.h>

enum {
  HG_BACKEND_MIN_ALIGNMENT = 64,  /* every allocation starts at a multiple of it, so that alignment within an allocation
                                     decides about alignment in memory */
  HG_BACKEND_MAX_ALIGNMENT = 4096
};

/* What a device is. Filled in by `query`, which opens nothing. */
typedef struct hg_device_info {
  char name[128];          /* "AMD EPYC" */
  const char *engine;      /* a constant: "reference" */
  uint32_t compute_units;
  uint32_t max_shared_bytes;
  uint64_t memory_bytes;   /* 0 if not known */
  char remarks[512];       /* for the log: which settings are ignored; "": none */
} hg_device_info;

/* Adds a remark, in which `about` comes before the words; NULL as words: there is none. */
static inline void hg_add_remark(hg_device_info *info, const char *about, const char *words) {
  size_t used = strlen(info->remarks);
  if (words == NULL) return;
  snprintf(info->remarks + used, sizeof info->remarks - used, "%s%s%s", used > 0 ? "; " : "", about, words);
}

/* A program on its way to a device. */
typedef struct hg_compile_input {
  const atlas_program *program; /* outlives the kernel */
  ssa_unit *unit;               /* its canonical unit: the backend may change it, or take it and leave an empty one */
  uint8_t hash[ATLAS_HASH_BYTES];
} hg_compile_input;

typedef struct hg_compiled {
  void *kernel;
  const char *engine; /* a constant: what runs it */
  const char *why;    /* no faster engine runs it: a sentence, which lives as long as the kernel; "" or NULL: it is the
                         fastest. hg_kernel_info and launch reports show it */
} hg_compiled;

/* What hg_kernel_query reports beside hg_compiled; 0: not known. */
typedef struct hg_kernel_facts {
  uint32_t registers, local_bytes, shared_bytes;
} hg_kernel_facts;

/* What `launch`, `submit` and `graph_open` give where something must be compiled first, which they leave to `prepare`:
 * nothing has been done. No status of the public API. */
#define HG_UNPREPARED ((hg_status)1000)

/* One thing that a stream is given. */
typedef enum hg_work_kind {
  HG_WORK_LAUNCH,
  HG_WORK_COPY_IN,    /* from the host */
  HG_WORK_COPY_OUT,   /* to the host */
  HG_WORK_COPY_WITHIN, /* ranges do not overlap */
  HG_WORK_FILL
} hg_work_kind;

typedef struct hg_work {
  hg_work_kind kind;
  void *kernel;                /* of a launch */
  const atlas_program *program;
  const atlas_launch *launch;  /* its results are not used */
  uint64_t number;             /* of the launch in its stream or graph: its fault is found under it */
  uint8_t *to;                 /* of a copy or a fill of at least 1 byte */
  const uint8_t *from;
  uint64_t byte_count;
  uint8_t pattern[8];
  size_t pattern_size;         /* 1, 2, 4 or 8, and divides byte_count */
} hg_work;

/* A copy of work that may stay: launch, arguments and tables lie in `room`, of hg_work_room bytes, aligned as malloc
 * does. */
uint64_t hg_work_room(const hg_work *work);
void hg_work_copy(hg_work *copy, const hg_work *work, void *room);

/* How many launches of a stream may be under way: the runtime asks for their faults before it gives it more. */
enum { HG_STREAM_LAUNCHES = 512 };

/* Where an event was recorded last. */
typedef struct hg_event_place {
  void *where;
  uint64_t number;
} hg_event_place;

/* Streams, events and graphs. The functions marked "not locked" wait or look, and give a number that `outcome` makes a
 * status of; 0: all is well. */
typedef struct hg_stream_functions {
  hg_status (*open)(void *device, void *foreign, void **stream);
  void (*close)(void *device, void *stream);             /* its work is done, or lost */
  /* HG_BUSY while nothing may be given to it. NULL: that is never so. */
  hg_status (*admit)(void *device, void *stream);
  /* Work of a stream comes after all that the device was given before by other functions. What the work points to is
   * not used after the call, except host memory and the kernel. */
  hg_status (*submit)(void *device, void *stream, const hg_work *work); /* admitted */
  int (*wait)(void *device, void *stream);               /* not locked */
  /* Not locked; for what is released: waits for the work given, also where the others can only say HG_BUSY. */
  int (*wait_at_last)(void *device, void *stream);
  int (*query)(void *device, void *stream);
  /* The stream may be NULL. With 0 the work is over, if not all of it well. HG_BUSY: it cannot be said now. */
  hg_status (*outcome)(void *device, void *stream, int result);

  /* Of a launch that is done: 1 if it faulted. `graph` is NULL, or what was given to the stream under that number:
   * then *index is the number of its first launch that faulted. take_fault reads the record and makes it new. */
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

  /* `work` stays until the graph is closed. */
  hg_status (*graph_open)(void *device, const hg_work *work, size_t count, void **graph);
  void (*graph_close)(void *device, void *graph);        /* no run of it is left */
  hg_status (*graph_submit)(void *device, void *stream, void *graph, uint64_t number); /* admitted */

  /* Frees memory once these streams have done what they were given. */
  void (*free)(void *device, uint8_t *address, void *const *streams, size_t count);
  hg_status (*host_allocate)(void *device, uint64_t byte_count, void **memory);
  void (*host_free)(void *device, void *memory);
} hg_stream_functions;

/* Something that the compiler makes of a program on its way to the device, for people to look at: on any machine. */
typedef struct hg_emit_target {
  const char *name;    /* "ptx"; NULL ends the table of a backend */
  const char *machine; /* of machine code: what objdump calls the processor; NULL: text */
  uint32_t least_capability, most_capability; /* that it takes; 0, 0: there is only one */
  const void *own;     /* the backend's */
  /* capability lies in the range. Of text without a NUL. */
  hg_status (*emit)(const struct hg_emit_target *target, const hg_allocator *allocator, const atlas_program *program,
                    uint32_t capability, hg_array *bytes);
} hg_emit_target;

typedef struct hg_backend {
  const char *name; /* "cpu" */
  const hg_emit_target *emit_targets;

  /* HG_UNSUPPORTED with a sentence when there is no device of that number, from 0. After any failure of `query` or
   * `open` HG_BACKEND_AUTO tries the next backend, unless it is HG_INVALID_ARGUMENT or *host_is_full, which is 0
   * before: 1 where the host's memory did not suffice, which the next one needs as well. The allocator is copied. */
  hg_status (*query)(uint32_t number, hg_device_info *info);
  hg_status (*open)(const hg_allocator *allocator, uint32_t number, void **device, int *host_is_full);
  void (*close)(void *device);

  /* byte_count bytes, which read as zero if `zeroed`, and otherwise may hold what an earlier allocation of the device
   * left; alignment is a power of two within the bounds above. The address is the device's: only it reads it. */
  hg_status (*allocate)(void *device, uint64_t byte_count, uint32_t alignment, int zeroed, uint8_t **address);
  void (*free)(void *device, uint8_t *address);
  /* Whether the device can use memory that somebody else owns: HG_INVALID_ARGUMENT with a sentence. */
  hg_status (*adopt)(void *device, const uint8_t *memory, uint64_t byte_count);

  hg_status (*copy_in)(void *device, uint8_t *destination, const void *source, uint64_t byte_count);
  hg_status (*copy_out)(void *device, void *destination, const uint8_t *source, uint64_t byte_count);
  hg_status (*copy_within)(void *device, uint8_t *destination, const uint8_t *source,
                           uint64_t byte_count); /* may overlap */
  uint8_t memory_is_host; /* 1: addresses are the host's, and it may use them */
  /* From memory of another device of this backend, which the caller has locked too. NULL where memory_is_host. */
  hg_status (*copy_from)(void *device, uint8_t *destination, void *source_device, const uint8_t *source,
                         uint64_t byte_count);
  /* pattern_size is 1, 2, 4 or 8 and divides byte_count. */
  hg_status (*fill)(void *device, uint8_t *destination, uint64_t byte_count, const void *pattern, size_t pattern_size);
  /* A range of an allocation, which is known by its address; of memory that was adopted only where memory_is_host. */
  hg_status (*map)(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count, void **memory);
  hg_status (*unmap)(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count);

  /* Makes a program ready to run. HG_UNSUPPORTED with a sentence for what the device cannot do. Not locked. */
  hg_status (*compile)(void *device, hg_compile_input *input, hg_compiled *out);
  /* Compiles what launches of this kernel have found missing. NULL: nothing ever is. Not locked. */
  hg_status (*prepare)(void *device, void *kernel);
  hg_status (*describe)(void *device, void *kernel, hg_kernel_facts *facts);
  void (*release)(void *device, void *kernel);

  /* Runs a launch that has passed every check; its spans hold addresses of this device. HG_OK also when lanes faulted
   * (launch->fault). */
  hg_status (*launch)(void *device, void *kernel, atlas_launch *launch);

  const hg_stream_functions *streams;
} hg_backend;

#endif
