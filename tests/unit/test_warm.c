/* test_warm.c - what is fetched for the first compilation: the heap has its pages before the compiler asks for them.
 * That a device compiles, closes and forks with it is for test_cuda to say. */
#include "backend/cuda/warm.h"
#include "check.h"

#include <stdlib.h>
#include <sys/resource.h>

/* The C library's own, which gives what was freed last to whom asks next. */
#if defined(__GLIBC__)
#  define HAS_USUAL_HEAP (!SANITIZED)
#else
#  define HAS_USUAL_HEAP 0
#endif

enum { BLOCK_BYTES = 32 << 10, BLOCK_COUNT = 256, PAGE_BYTES = 4096 }; /* 8 MiB, as a compiler asks for it */

static uint64_t page_faults(void) {
  struct rusage usage;
  CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
  return (uint64_t)usage.ru_minflt;
}

/* Pages that came when the heap's blocks were written. */
static uint64_t write_heap(void) {
  static char *blocks[BLOCK_COUNT];
  uint64_t before = page_faults();
  for (int i = 0; i < BLOCK_COUNT; i++) {
    blocks[i] = malloc(BLOCK_BYTES);
    CHECK(blocks[i] != NULL);
    for (int at = 0; blocks[i] != NULL && at < BLOCK_BYTES; at += PAGE_BYTES) ((volatile char *)blocks[i])[at] = 1;
  }
  uint64_t after = page_faults();
  for (int i = 0; i < BLOCK_COUNT; i++) free(blocks[i]);
  return after - before;
}

int main(void) {
  CHECK(hg_cuda_warm_begin());
  CHECK(!hg_cuda_warm_begin()); /* once a process */
  hg_cuda_warm_finish();
  hg_cuda_warm_finish();
  uint64_t pages = (uint64_t)BLOCK_COUNT * BLOCK_BYTES / PAGE_BYTES, came = write_heap();
  if (HAS_USUAL_HEAP && came > pages / 8)
    printf("%llu of %llu pages were missing\n", (unsigned long long)came, (unsigned long long)pages);
  CHECK(!HAS_USUAL_HEAP || came <= pages / 8);
  hg_cuda_warm_release();
  hg_cuda_warm_release();
  return check_report();
}
