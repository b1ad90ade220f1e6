/* warm.c - when the driver's compiler first compiles it touches some 10 MB of fresh heap, which is a quarter of a small
 * program's first compilation. A thread can see to that while the driver makes the context, which takes a hundred
 * milliseconds.
 *
 * The thread calls nothing that takes a lock, the loader's above all: whoever waits for it may hold that one. So it
 * does not load the compiler's library, which takes another 2 ms. */
#include "backend/cuda/warm.h"

#include "base/os.h"

#include <stdlib.h>

/* Below what allocators map by itself and unmap when it is freed: these come from the heap, and go back to it. */
enum { CHUNK_BYTES = 96 << 10, CHUNK_COUNT = 128, PAGE_BYTES = 4096 };

/* The process's own, like the heap that it is about. */
static struct {
  atomic_flag was_begun;
  hg_thread thread;
  atomic_uint is_running;    /* nobody has waited for the thread yet */
  size_t chunk_count;
  char *chunks[CHUNK_COUNT]; /* from malloc, which the driver uses */
  char *top;                 /* allocated behind them: while it is there the heap does not shrink when they go */
} warmth = {.was_begun = ATOMIC_FLAG_INIT};

static void touch(void *unused) {
  (void)unused;
  for (size_t i = 0; i < warmth.chunk_count; i++)
    for (size_t at = 0; at < CHUNK_BYTES; at += PAGE_BYTES) ((volatile char *)warmth.chunks[i])[at] = 0;
}

static void wait_for_thread(void) {
  if (atomic_exchange(&warmth.is_running, 0) != 0) hg_thread_join(&warmth.thread);
}

static void forget_thread(void) { atomic_store(&warmth.is_running, 0); }

int hg_cuda_warm_begin(void) {
  if (atomic_flag_test_and_set(&warmth.was_begun)) return 0;
  if (hg_on_fork_and_exit(forget_thread, wait_for_thread) != 0) return 0;
  for (char *chunk; warmth.chunk_count < CHUNK_COUNT && (chunk = malloc(CHUNK_BYTES)) != NULL;)
    warmth.chunks[warmth.chunk_count++] = chunk;
  warmth.top = malloc(CHUNK_BYTES);
  atomic_store(&warmth.is_running, hg_thread_start(&warmth.thread, touch, NULL) == 0);
  return 1;
}

void hg_cuda_warm_finish(void) {
  wait_for_thread();
  while (warmth.chunk_count > 0) free(warmth.chunks[--warmth.chunk_count]);
}

void hg_cuda_warm_release(void) {
  hg_cuda_warm_finish();
  free(warmth.top);
  warmth.top = NULL;
}
