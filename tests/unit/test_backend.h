/* test_backend.h - which backend the tests of launches run on: HOLOGRAM_TEST_BACKEND=cuda or metal, else
 * the CPU. */
#ifndef HG_TESTS_TEST_BACKEND_H
#define HG_TESTS_TEST_BACKEND_H

#include "hologram/hologram.h"

#include <stdlib.h>
#include <string.h>

static inline hg_backend_id test_backend(void) {
  const char *name = getenv("HOLOGRAM_TEST_BACKEND");
  hg_backend_id backend = HG_BACKEND_CPU;
  if (name != NULL && strcmp(name, "cpu") != 0) (void)hg_backend_by_name(name, &backend);
  return backend;
}

static inline const char *test_backend_name(void) {
  return test_backend() == HG_BACKEND_CUDA ? "cuda" : test_backend() == HG_BACKEND_METAL ? "metal" : "cpu";
}

/* Creates the executor of a test, with the caller's allocator or NULL. */
static inline hg_status open_test_executor(const hg_allocator *allocator, hg_executor **out) {
  hg_executor_desc desc = {.backend = test_backend(), .allocator = allocator};
  return hg_executor_create(&desc, out);
}

#endif
