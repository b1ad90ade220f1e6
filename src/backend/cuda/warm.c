/* warm.c - the driver's compiler touches some 10 MB of fresh heap in its first compilation: page faults are a quarter
 * of a small program's first compilation. A thread takes them while the driver makes the context, for a hundred
 * milliseconds. From the text of `a + b` to the end of its first launch: 13.7 ms, without the thread 15.3 (driver 580,
 * three runs of each in turn).
 *
 * The thread calls nothing that takes a lock, in particular not the loader's, which a thread that waits for it may
 * hold. So it does not load the compiler's library, which would save another 2 ms. */
#include "backend/cuda/warm.h"
#include "backend/cuda/cuda_tuning.h"

#include "base/os.h"

#include <stdlib.h>

/* Chunks are smaller than what allocators map and unmap separately, so they come from the heap and return to it. */
enum { PAGE_BYTES = 4096 };

/* Of the process, like its heap. */
static struct {
  atomic_flag was_begun;
  hg_thread thread;
  atomic_uint is_running;    /* the thread has not been joined */
  size_t chunk_count;
  char *chunks[CUDA_WARM_CHUNKS]; /* from malloc, which the driver uses */
  char *top;                 /* allocated after the chunks: keeps the heap from shrinking when these are freed */
} warmth = {.was_begun = ATOMIC_FLAG_INIT};

static void touch(void *unused) {
  (void)unused;
  for (size_t i = 0; i < warmth.chunk_count; i++)
    for (size_t at = 0; at < CUDA_WARM_CHUNK_BYTES; at += PAGE_BYTES) ((volatile char *)warmth.chunks[i])[at] = 0;
}

static void wait_for_thread(void) {
  if (atomic_exchange(&warmth.is_running, 0) != 0) hg_thread_join(&warmth.thread);
}

static void forget_thread(void) { atomic_store(&warmth.is_running, 0); }

int hg_cuda_warm_begin(void) {
  if (atomic_flag_test_and_set(&warmth.was_begun)) return 0;
  if (hg_on_fork_and_exit(forget_thread, wait_for_thread) != 0) return 0;
  for (char *chunk; warmth.chunk_count < CUDA_WARM_CHUNKS && (chunk = malloc(CUDA_WARM_CHUNK_BYTES)) != NULL;)
    warmth.chunks[warmth.chunk_count++] = chunk;
  warmth.top = malloc(CUDA_WARM_CHUNK_BYTES);
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
