/* counted_by_threads.h - as counted.h, for allocators that several threads use at once. */
#ifndef HG_TESTS_COUNTED_BY_THREADS_H
#define HG_TESTS_COUNTED_BY_THREADS_H

#include <stdatomic.h>
#include <stdlib.h>

typedef struct counter {
  atomic_long allocations, live;
  long fail_at; /* number of the one that fails; -1: none */
} counter;

static inline void *counted_allocate(void *user, size_t size) {
  counter *c = user;
  if (atomic_fetch_add(&c->allocations, 1) == c->fail_at) return NULL;
  atomic_fetch_add(&c->live, 1);
  return malloc(size);
}

static inline void counted_release(void *user, void *memory) {
  atomic_fetch_sub(&((counter *)user)->live, 1);
  free(memory);
}

#endif
