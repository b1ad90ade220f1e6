/* fake_gpu.h - what the tests of the CUDA backend share: the double of libcuda, told what to be and asked what it saw.
 * These tests run with LD_LIBRARY_PATH at the double's folder (meson.build). */
#ifndef HG_TESTS_FAKE_GPU_H
#define HG_TESTS_FAKE_GPU_H

#include "base/os.h"
#include "check.h"
#include "../sim/fakecuda.h"

#include "hologram/hologram.h"

#include <stdlib.h>

typedef struct fake_gpu {
  int (*live)(void);
  uint64_t (*mapped)(void);
  unsigned (*calls)(const char *function);
  int (*refusals)(void);
  const char *(*violation)(void);
  void (*forgive)(void);
  unsigned (*loads)(void);
  void (*hold_loads)(int hold);
  unsigned (*held_loads)(void);
  unsigned (*links)(fakecuda_link which);
  void (*hold_links)(int hold);
} fake_gpu;

static fake_gpu gpu;

/* 0 where the library found is no double: it must not be tested with faults. */
static inline int find_fake_gpu(void) {
  void *library = hg_library_open("libcuda.so.1", "");
  if (library == NULL) return 0;
  hg_library_find(library, "fakecuda_live", &gpu.live);
  hg_library_find(library, "fakecuda_mapped", &gpu.mapped);
  hg_library_find(library, "fakecuda_calls", &gpu.calls);
  hg_library_find(library, "fakecuda_refusals", &gpu.refusals);
  hg_library_find(library, "fakecuda_violation", &gpu.violation);
  hg_library_find(library, "fakecuda_forgive", &gpu.forgive);
  hg_library_find(library, "fakecuda_loads", &gpu.loads);
  hg_library_find(library, "fakecuda_hold_loads", &gpu.hold_loads);
  hg_library_find(library, "fakecuda_held_loads", &gpu.held_loads);
  hg_library_find(library, "fakecuda_links", &gpu.links);
  hg_library_find(library, "fakecuda_hold_links", &gpu.hold_links);
  return gpu.live != NULL && gpu.violation != NULL && gpu.refusals != NULL && gpu.forgive != NULL;
}

static inline void set(const char *name, const char *value) {
  if (value != NULL) setenv(name, value, 1);
  else unsetenv(name);
}

/* The first thing of a test's main. 0: there is no double, which is a failure. */
static inline int begin_on_fake_gpu(void) {
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  set("HOLOGRAM_CACHE_DIR", "/dev/null/none"); /* compiled anew each time */
  int is_there = find_fake_gpu();
  if (!check_note(is_there)) printf("the double of libcuda was not found (LD_LIBRARY_PATH)\n");
  return is_there;
}

/* After everything has been released: nothing is left, and nothing was done wrong. */
#define CHECK_CLEAN()                   \
  do {                                  \
    CHECK_EQ_U64(gpu.live(), 0);        \
    CHECK_STR(gpu.violation(), "");     \
    gpu.forgive();                      \
  } while (0)

static inline hg_status open_gpu(hg_executor **out) {
  hg_executor_desc desc = {.backend = HG_BACKEND_CUDA};
  return hg_executor_create(&desc, out);
}

#endif
