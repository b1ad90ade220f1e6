/* each_allocation.h - memory runs out at every place of something, one after another. */
#ifndef HG_TESTS_EACH_ALLOCATION_H
#define HG_TESTS_EACH_ALLOCATION_H

#include "counted.h"
#include "launching.h"
#include "shard.h"

#if defined(__GLIBC__)
#  include <execinfo.h>
#endif

/* What is tried, on a `executor` of its own each time. */
typedef struct attempt {
  void (*prepare)(void *state);                                 /* nothing fails there */
  hg_status (*act)(void *state, const hg_allocator *allocator); /* its allocations fail, one each time */
  void (*check)(void *state, hg_status status); /* HG_OK: the result is there; else everything is as it was */
  void (*end)(void *state);                     /* gives back what prepare made */
} attempt;

/* ---- which allocations ------------------------------------------------------------------------------------------- */

/* Of thousands of allocations most come from where others came from: those with the same 8 callers fail twice in a
 * process, or once where a share of long tests is asked for; on the double of libcuda, where an attempt takes long,
 * those with the same 3 once. Where nobody tells the callers every third allocation fails, of few each one. */
enum { CALLERS = 8, TIMES = 2, CALLERS_ON_GPU = 3, TIMES_ON_GPU = 1, MOST_NOTED = 1 << 15, MOST_PLACES = 1 << 14 };
enum { FEW = 300 }; /* allocations */

static uint64_t noted[MOST_NOTED]; /* of each allocation its place; 0: nobody tells */
static atomic_long noted_count;

static inline uint64_t place_here(void) {
#if defined(__GLIBC__)
  void *at[CALLERS + 2];
  uint64_t place = 0;
  int count = backtrace(at, 2 + (test_backend() == HG_BACKEND_CUDA ? CALLERS_ON_GPU : CALLERS));
  for (int i = 2; i < count; i++) place = (place ^ (uint64_t)(uintptr_t)at[i]) * UINT64_C(0x9e3779b97f4a7c15);
  return place | 1;
#else
  return 0;
#endif
}

static inline void *noting_allocate(void *user, size_t size) {
  uint64_t place = place_here();
  long number = noted_count++;
  if (number < MOST_NOTED) noted[number] = place;
  return counted_allocate(user, size);
}

static inline int most_times(void) {
  if (share_count == 0) choose_share();
  return test_backend() == HG_BACKEND_CUDA ? TIMES_ON_GPU : share_count > 1 ? 1 : TIMES;
}

static inline int is_tried_enough(uint64_t place, long number, long count) {
  if (place == 0) return count > FEW && number % 3 != 0;
  static uint64_t places[MOST_PLACES];
  static uint8_t times[MOST_PLACES];
  uint64_t at = place >> 20 & (MOST_PLACES - 1);
  for (int i = 0; i < 64 && places[at] != 0 && places[at] != place; i++) at = (at + 1) & (MOST_PLACES - 1);
  if (places[at] != place) times[at] = 0;
  places[at] = place;
  return times[at]++ >= most_times();
}

/* ---- attempts ---------------------------------------------------------------------------------------------------- */

/* The n-th allocation fails. Nothing is lost, what failed can be done again, and there is no other error. 1 if it was
 * one without which the whole fails. */
static inline int fails_at(const attempt *what, void *state, long n) {
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  CHECK_EQ_U64(open_test_executor(&allocator, &executor), HG_OK);
  what->prepare(state);
  long number = c.allocations + n;
  c.fail_at = number;
  hg_status status = what->act(state, &allocator);
  int is_reached = c.allocations > number; /* what only keeps something for later may fail unseen */
  c.fail_at = -1;
  if (!check_note(status == HG_OK || (is_reached && status == HG_OUT_OF_MEMORY)))
    printf("allocation %ld: status %d, %s\n", n, (int)status, hg_last_error());
  what->check(state, status);
  if (status != HG_OK) {
    CHECK_EQ_U64(what->act(state, &allocator), HG_OK);
    what->check(state, HG_OK);
  }
  what->end(state);
  hg_executor_release(executor);
  if (!check_note(c.live == 0)) printf("allocation %ld: %ld pieces of memory are lost\n", n, (long)c.live);
  return status != HG_OK;
}

/* Where nothing fails: notes the allocations; how many there are. */
static inline long note_allocations(const attempt *what, void *state) {
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  allocator.allocate = noting_allocate;
  CHECK_EQ_U64(open_test_executor(&allocator, &executor), HG_OK);
  what->prepare(state);
  noted_count = 0;
  CHECK_EQ_U64(what->act(state, &allocator), HG_OK);
  long count = noted_count < MOST_NOTED ? noted_count : MOST_NOTED;
  what->check(state, HG_OK);
  what->end(state);
  hg_executor_release(executor);
  CHECK_EQ_U64(c.live, 0);
  return count;
}

/* Gives how often it failed. */
static inline long each_allocation_fails(const attempt *what, void *state) {
  hg_executor *shared = executor;
  long failures = 0, count = note_allocations(what, state);
  for (long n = 0; n < count; n++)
    if (!is_tried_enough(noted[n], n, count)) failures += fails_at(what, state, n);
  executor = shared;
  return failures;
}

#endif
