/* beside_reference.h - trials that run twice: on the reference machine and on the backend under test. The executors are
 * made once, since on a GPU each costs a context. _POSIX_C_SOURCE comes before the first header, for setenv. */
#ifndef HG_TESTS_BESIDE_REFERENCE_H
#define HG_TESTS_BESIDE_REFERENCE_H

#include "environment.h"
#include "launching.h"

static hg_executor *reference, *tested; /* `executor` is one of them at a time */

static inline void open_both(void) {
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  set("HOLOGRAM_CPU_ENGINE", "interp");
  CHECK_EQ_U64(hg_executor_create(&desc, &reference), HG_OK);
  set("HOLOGRAM_CPU_ENGINE", "");
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

#endif
