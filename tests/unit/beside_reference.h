/* beside_reference.h - trials that run twice: on the reference machine and on the backend under test. The executors are
 * made once, since on a GPU each costs a context. _POSIX_C_SOURCE comes before the first header, for setenv. The engine
 * that HOLOGRAM_CPU_ENGINE names is the one under test. */
#ifndef HG_TESTS_BESIDE_REFERENCE_H
#define HG_TESTS_BESIDE_REFERENCE_H

#include "environment.h"
#include "launching.h"
#include "shard.h"

#include <stdlib.h>

static hg_executor *reference, *tested; /* `executor` is one of them at a time */

static inline void open_both(void) {
  hg_executor_desc desc = {.size = sizeof desc, .backend = HG_BACKEND_CPU, .engine = "interp"};
  CHECK_EQ_U64(hg_executor_create(&desc, &reference), HG_OK);
  CHECK_EQ_U64(open_test_executor(NULL, &tested), HG_OK);
}

static inline void close_both(void) {
  hg_executor_release(reference);
  hg_executor_release(tested);
}

static inline void check_same_fault(const hg_fault *got, const hg_fault *expected) {
  CHECK_EQ_U64(got->kind, expected->kind);
  CHECK_EQ_U64(got->lane, expected->lane);
  CHECK_EQ_U64(got->instruction, expected->instruction);
  CHECK_EQ_U64((uint64_t)got->index, (uint64_t)expected->index);
}

typedef struct beside_buffer {
  const char *name;
  const void *contents;        /* NULL: zeros */
  uint64_t size;               /* bytes */
  uint64_t offset, byte_count; /* as in hg_binding */
  int is_result;               /* 1: what is in it after the launch is compared, beyond what is bound, too */
} beside_buffer;

enum { BESIDE_MOST_BUFFERS = 4 };

/* `results`: the buffers that are results, one after the other. */
static inline hg_status launch_beside(hg_executor *on, const char *text, hg_launch_desc desc,
                                      const beside_buffer *buffers, size_t count, uint8_t *results, hg_fault *fault) {
  hg_buffer *made[BESIDE_MOST_BUFFERS];
  hg_binding bindings[BESIDE_MOST_BUFFERS];
  hg_launch_report report = {0};
  executor = on;
  hg_kernel *kernel = kernel_of(text);
  for (size_t i = 0; i < count; i++) {
    made[i] = buffer_of(buffers[i].size, buffers[i].contents);
    bindings[i] = (hg_binding){.name = buffers[i].name, .buffer = made[i], .offset = buffers[i].offset,
                               .byte_count = buffers[i].byte_count};
  }
  desc.bindings = bindings;
  desc.binding_count = (uint32_t)count;
  hg_status status = hg_launch(kernel, &desc, &report);
  *fault = report.fault;
  for (size_t i = 0; i < count; i++) {
    if (buffers[i].is_result) {
      CHECK_EQ_U64(hg_buffer_read(made[i], 0, results, buffers[i].size), HG_OK);
      results += buffers[i].size;
    }
    hg_buffer_release(made[i]);
  }
  hg_kernel_release(kernel);
  return status;
}

/* Launches a program on both and checks that they leave the same status, fault and memory; 0 if it is other memory. A
 * piece of a long test. */
static inline int check_beside(const char *text, const hg_launch_desc *desc, const beside_buffer *buffers,
                               size_t count) {
  if (!in_shard()) return 1;
  hg_fault expected, got;
  uint64_t size = 0;
  for (size_t i = 0; i < count; i++) size += buffers[i].is_result ? buffers[i].size : 0;
  uint8_t *results = malloc((size_t)(2 * size));
  hg_status should = launch_beside(reference, text, *desc, buffers, count, results, &expected);
  CHECK_EQ_U64(launch_beside(tested, text, *desc, buffers, count, results + size, &got), should);
  check_same_fault(&got, &expected);
  int is_same = memcmp(results, results + size, (size_t)size) == 0;
  CHECK(is_same);
  free(results);
  return is_same;
}

#endif
