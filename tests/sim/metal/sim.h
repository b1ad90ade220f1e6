/* sim.h - a double of Metal and its Objective-C runtime, for tests on x86-64 Linux with clang++: found under the
 * runtime's own name by tests whose LD_LIBRARY_PATH begins with this folder of the build.
 *
 * Anything that Metal does not allow, and any message that it does not know, ends the process with a sentence: a use
 * after release, an over-release, an index above 30, setBytes of more than 4096, too much threadgroup memory, a second
 * commit, an encoder left open. The CPU's view of a buffer is taken away while a command buffer may use it, and the
 * GPU's while none has asked for it with useResource. What a kernel does wrong (an access out of bounds, threads that
 * wait at different barriers) is the command buffer's error, as on a GPU.
 *
 *   SIMMETAL_ORDER=forward | reverse | random    in which order threads of a threadgroup run; default: all in turn
 *   SIMMETAL_FLUSH=after                         subnormal results are flushed after rounding, not before
 *   SIMMETAL_FAIL=what:n                         the n-th call for it fails: see sim_failure
 *   SIMMETAL_CACHE=folder                        of compiled kernels, by hash
 *   SIMMETAL_THREADGROUP_BYTES=count             of threadgroup memory, in place of the 32768 of Apple's GPUs
 *   SIMMETAL_SYSTEM=version                      of the system, as Metal says it
 *   SIMMETAL_DUMP=folder                         where the text of each library goes */
#ifndef SIM_METAL_H
#define SIM_METAL_H

#include <stddef.h>
#include <stdint.h>

#define SIM_API __attribute__((visibility("default")))
#define SIM_PRINTF(text, list) __attribute__((__format__(__printf__, text, list)))

typedef const char *sim_selector;
typedef unsigned long sim_unsigned;
typedef struct sim_size { sim_unsigned width, height, depth; } sim_size;

void sim_die(const char *format, ...) SIM_PRINTF(1, 2) __attribute__((noreturn));

/* ---- objects (objects.c) ----------------------------------------------------------------------------------------- */

typedef struct sim_method {
  const char *selector;
  void *function;
  const char *types;
} sim_method;

typedef struct sim_class {
  const struct sim_class *isa; /* of a class that messages are sent to: its own methods */
  const char *name;
  const sim_method *methods;   /* ends with a NULL selector */
} sim_class;

typedef struct sim_object {
  const sim_class *isa;
  struct sim_object *next, *previous;
  void (*dealloc)(void *object);
  int count;
  unsigned state;
} sim_object;

void *sim_make(const sim_class *isa, size_t bytes, void (*dealloc)(void *object));
void *sim_retain(void *object);
void sim_release(void *object);
void *sim_autorelease(void *object);
void *sim_string(const char *format, ...) SIM_PRINTF(1, 2);
const char *sim_text(void *string);
void *sim_error(long code, const char *format, ...) SIM_PRINTF(2, 3); /* autoreleased */
SIM_API void *objc_autoreleasePoolPush(void);
SIM_API void objc_autoreleasePoolPop(void *pool);
SIM_API long metal_sim_live(char *names, size_t size); /* how many objects there are */
SIM_API long metal_sim_sent(const char *selector);     /* how many messages of that name were sent */

void *sim_array_first(void *array); /* NULL of NULL */

extern const sim_class sim_options_class, sim_descriptor_class, sim_archive_descriptor_class; /* pipelines.c */

/* ---- failures (failures.c) --------------------------------------------------------------------------------------- */

typedef enum sim_failure {
  SIM_NO_DEVICE,
  SIM_NO_QUEUE,
  SIM_NO_BUFFER,
  SIM_NO_LIBRARY,  /* a compile error */
  SIM_NO_PIPELINE,
  SIM_NO_COMMANDS, /* no command buffer */
  SIM_REMOVED,     /* the device is removed while a command buffer runs */
  SIM_TIMEOUT,
  SIM_FEW_THREADS, /* a pipeline for 64 threads at most */
  SIM_NO_ARCHIVE,  /* a binary archive is not made, filled or written */
  SIM_NO_OBJECT,   /* of those that are never asked for twice: options, descriptors, functions, strings, encoders */
  SIM_ANYTHING,    /* any call that is one of the above, but for what happens to the GPU */
  SIM_FAILURE_COUNT
} sim_failure;

/* The n-th call from now on fails; 0: none. Gives how many calls were left until the one that was asked for before. */
SIM_API long metal_sim_fail(const char *what, long n);
int sim_fails(sim_failure failure);

/* ---- kernels (library.c, clang.c, fibres.c) ---------------------------------------------------------------------- */

enum {
  SIM_MOST_ARGUMENTS = 31,
  SIM_MOST_THREADS = 1024,
  SIM_WIDTH = 32, /* of a simdgroup */
  SIM_THREADGROUP_BYTES = 32768,
  SIM_SET_BYTES = 4096
};

typedef struct sim_place {
  uint32_t thread, group, position, threads;
} sim_place;

typedef struct sim_kernel {
  char name[128];
  uint8_t uses[SIM_MOST_ARGUMENTS]; /* buffers */
  int has_barriers, may_end;        /* may_end: it says that lanes may end before others of their block */
  void (*run)(void *const *buffers, const sim_place *place); /* NULL: it was made while kernels were deferred */
} sim_kernel;

typedef struct sim_library {
  sim_object object;
  void *code;
  uint64_t hash; /* of its text */
  sim_kernel *kernels;
  size_t kernel_count;
} sim_library;

typedef struct sim_function {
  sim_object object;
  sim_library *library;
  const sim_kernel *kernel;
} sim_function;

typedef struct sim_pipeline {
  sim_object object;
  sim_library *library;
  const sim_kernel *kernel;
  sim_unsigned most_threads;
} sim_pipeline;

/* Messages of the device (pipelines.c). */
void *sim_new_library(void *device, sim_selector s, void *text, void *given, void **error);
void *sim_new_archive(void *device, sim_selector s, void *given, void **error);
void *sim_new_pipeline(void *device, sim_selector s, void *given, sim_unsigned asked, void **reflection,
                       void **error);
SIM_API long metal_sim_compiled(void); /* how many pipelines were compiled, rather than taken from an archive */

/* NULL, and an autoreleased error. */
sim_library *sim_compile(const char *given, void **error);

/* A library as C++: the text, and functions through which its kernels are called. */
typedef struct sim_source {
  char *body, *thunks;
} sim_source;

/* What dlopen gives; NULL with an autoreleased error, or without one while kernels are deferred. */
void *sim_machine_code(const sim_source *source, void **error);

/* 1: until 0 nothing is compiled and launches do nothing; then all kernels that were made meanwhile are compiled
 * together, into the folder, which takes a fraction of the time. For one thread. */
SIM_API void metal_sim_defer(int on);

#define SIM_HASH_OF_NOTHING 0xcbf29ce484222325u
uint64_t sim_hash(uint64_t hash, const char *bytes);

/* Runs all threadgroups; NULL or what went wrong. On the calling thread, which has called sim_fibres_open. */
const char *sim_run(const sim_kernel *kernel, void *const *buffers, uint64_t threads, uint32_t block);
uint32_t sim_threadgroup_bytes(void); /* that there are */
void sim_fibres_open(void);
void sim_fibres_close(void);

#endif
