/* warm.c - the driver's compiler is a library of 39 MB, which the driver loads when it first compiles, and it touches
 * some 10 MB of fresh heap then: a third of a small program's first compilation. A thread can see to both while the
 * driver makes the context, which takes a hundred milliseconds. */
#include "backend/cuda/warm.h"

#include "base/os.h"

#include <stdlib.h>

/* Below what allocators map by itself and unmap when it is freed: these come from the heap, and go back to it. */
enum { CHUNK_BYTES = 96 << 10, CHUNK_COUNT = 128, PAGE_BYTES = 4096 };

struct hg_cuda_warmth {
  hg_thread thread;
  int is_running;
  size_t chunk_count;
  char *chunks[CHUNK_COUNT]; /* from malloc, which the driver uses */
  char *top;                 /* allocated behind them: while it is there the heap does not shrink when they go */
};

static atomic_flag was_begun = ATOMIC_FLAG_INIT;

static void fetch(void *user) {
  hg_cuda_warmth *warmth = user;
  /* Where it is missing the driver will say so. */
  (void)hg_library_open("libnvidia-ptxjitcompiler.so.1", "nvptxJITCompiler64.dll");
  for (size_t i = 0; i < warmth->chunk_count; i++)
    for (size_t at = 0; at < CHUNK_BYTES; at += PAGE_BYTES) ((volatile char *)warmth->chunks[i])[at] = 0;
}

hg_cuda_warmth *hg_cuda_warm_begin(const hg_allocator *allocator) {
  if (atomic_flag_test_and_set(&was_begun)) return NULL;
  hg_cuda_warmth *warmth = hg_allocate(allocator, 1, sizeof *warmth);
  if (warmth == NULL) return NULL;
  while (warmth->chunk_count < CHUNK_COUNT && (warmth->top = malloc(CHUNK_BYTES)) != NULL)
    warmth->chunks[warmth->chunk_count++] = warmth->top;
  warmth->top = malloc(CHUNK_BYTES);
  warmth->is_running = hg_thread_start(&warmth->thread, fetch, warmth) == 0;
  return warmth;
}

void hg_cuda_warm_finish(hg_cuda_warmth *warmth) {
  if (warmth == NULL) return;
  if (warmth->is_running) hg_thread_join(&warmth->thread);
  warmth->is_running = 0;
  while (warmth->chunk_count > 0) free(warmth->chunks[--warmth->chunk_count]);
}

void hg_cuda_warm_release(const hg_allocator *allocator, hg_cuda_warmth *warmth, int is_child) {
  if (warmth == NULL) return;
  if (is_child) warmth->is_running = 0;
  hg_cuda_warm_finish(warmth);
  free(warmth->top);
  hg_release(allocator, warmth);
}
