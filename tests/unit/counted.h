/* counted.h - an allocator that counts, and fails where a test wants it to. Threads of the library's own call it, too.
 */
#ifndef HG_TESTS_COUNTED_H
#define HG_TESTS_COUNTED_H

#include "hologram/base.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef struct counter {
  atomic_long allocations, live;
  atomic_long fail_at;  /* number of the one that fails; -1: none */
  int fail_rest; /* 1: all after it fail too */
} counter;

static inline void *counted_allocate(void *user, size_t size) {
  counter *c = user;
  long number = c->allocations++;
  if (c->fail_at >= 0 && (number == c->fail_at || (c->fail_rest && number > c->fail_at))) return NULL;
  c->live++;
  return malloc(size);
}

static inline void counted_release(void *user, void *memory) {
  ((counter *)user)->live--;
  free(memory);
}

static inline hg_allocator counting(counter *c) {
  return (hg_allocator){
      .size = sizeof(hg_allocator), .user = c, .allocate = counted_allocate, .release = counted_release};
}

#endif
