/* each_allocation.h - memory runs out at every place of something, one after another. */
#ifndef HG_TESTS_EACH_ALLOCATION_H
#define HG_TESTS_EACH_ALLOCATION_H

#include "counted.h"
#include "launching.h"

/* What is tried, on a `executor` of its own each time. */
typedef struct attempt {
  void (*prepare)(void *state); /* nothing fails there */
  hg_status (*act)(void *state, const hg_allocator *allocator); /* each of its allocations fails once */
  void (*check)(void *state, hg_status status); /* HG_OK: the result is there; else everything is as it was */
  void (*end)(void *state); /* gives back what prepare made */
} attempt;

/* Nothing is lost, what failed can be done again, and there is no other error. Gives how often it failed. */
static inline long each_allocation_fails(const attempt *what, void *state) {
  hg_executor *shared = executor;
  long failures = 0, is_reached = 1;
  long step = test_backend() == HG_BACKEND_CUDA ? 29 : SANITIZED ? 5 : 1; /* where all of them would be slow */
  for (long n = 0; is_reached; n += step) {
    counter c = {.fail_at = -1};
    hg_allocator allocator = counting(&c);
    CHECK_EQ_U64(open_test_executor(&allocator, &executor), HG_OK);
    what->prepare(state);
    long number = c.allocations + n;
    c.fail_at = number;
    hg_status status = what->act(state, &allocator);
    is_reached = c.allocations > number; /* what only keeps something for later may fail unseen */
    c.fail_at = -1;
    if (!check_note(status == HG_OK || (is_reached && status == HG_OUT_OF_MEMORY)))
      printf("allocation %ld: status %d, %s\n", n, (int)status, hg_last_error());
    what->check(state, status);
    if (status != HG_OK) {
      failures++;
      CHECK_EQ_U64(what->act(state, &allocator), HG_OK);
      what->check(state, HG_OK);
    }
    what->end(state);
    hg_executor_release(executor);
    if (!check_note(c.live == 0)) printf("allocation %ld: %ld pieces of memory are lost\n", n, (long)c.live);
  }
  executor = shared;
  return failures;
}

#endif
