/* fake_metal.h - what the tests of the Metal backend share: the simulated Metal, asked what it saw and told what to
 * fail, and a program on an executor. On a Mac they run on Apple's Metal, and leave out what only the simulation can
 * show. */
#ifndef HG_TESTS_FAKE_METAL_H
#define HG_TESTS_FAKE_METAL_H

#include "check.h"

#include "base/error.h"
#include "base/os.h"
#include "hologram/hologram.h"

#include <string.h>

typedef struct fake_metal {
  long (*fail)(const char *what, long n); /* gives how many calls were left until the last one that was asked for */
  long (*live)(char *names, size_t size);
  long (*sent)(const char *selector);
  long (*compiled)(void);
  void (*defer)(int on);
} fake_metal;

static fake_metal sim; /* functions are NULL on Apple's */

static inline int find_simulation(void) {
  void *library = hg_library_open("libobjc.A.dylib", "");
  if (library == NULL) return 0;
  hg_library_find(library, "metal_sim_fail", &sim.fail);
  hg_library_find(library, "metal_sim_live", &sim.live);
  hg_library_find(library, "metal_sim_sent", &sim.sent);
  hg_library_find(library, "metal_sim_compiled", &sim.compiled);
  hg_library_find(library, "metal_sim_defer", &sim.defer);
  return sim.fail != NULL && sim.live != NULL && sim.sent != NULL && sim.compiled != NULL && sim.defer != NULL;
}

/* The first thing of a test's main that is about the simulation itself; 0: there is none, which is a failure here. */
static inline int begin_on_fake_metal(void) {
  int is_there = find_simulation();
  if (!check_note(is_there)) printf("simulated Metal was not found (LD_LIBRARY_PATH)\n");
  return is_there;
}

/* A queue's thread lets go of its last command buffer a moment after that is done. */
static inline void check_clean(void) {
  char names[400] = "";
  if (sim.live == NULL) return;
  for (uint64_t end = hg_time_ns() + 2000000000u; sim.live(NULL, 0) > 0 && hg_time_ns() < end;) hg_spin_pause();
  if (!check_note(sim.live(names, sizeof names) == 0)) printf("left: %s\n", names);
}

/* ---- running a program on a backend ------------------------------------------------------------------------------ */

typedef struct run {
  hg_executor *executor;
  hg_kernel *kernel;
  hg_buffer *buffers[4];
  hg_stream *stream;
} run;

static inline void close_run(run *r) {
  hg_stream_release(r->stream);
  for (int i = 0; i < 4; i++) hg_buffer_release(r->buffers[i]);
  hg_kernel_release(r->kernel);
  hg_executor_release(r->executor);
  *r = (run){.executor = NULL};
}

static inline hg_status open_run(run *r, hg_backend_id backend, const char *text) {
  atlas_program *program = NULL;
  hg_executor_desc desc = {.size = sizeof desc, .backend = backend};
  hg_status status = hg_executor_create(&desc, &r->executor);
  if (status == HG_OK) status = atlas_parse(NULL, text, strlen(text), "test", &program);
  if (status == HG_OK) status = hg_kernel_create(r->executor, program, &r->kernel);
  atlas_program_release(program);
  return status;
}

#endif
