/* limits.c - how fast this machine copies and adds memory, with plain and with streaming stores: what no engine can
 * beat. */
#define _GNU_SOURCE
#include "loops.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#define STREAMING 1
#else
#define STREAMING 0
#endif

enum { FLOATS_A_LINE = 16, AHEAD = 512 /* floats: streaming stores lose without a prefetch of what they wait for */ };

static void copy(float *restrict y, const float *restrict a, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] = a[i];
}

static void triad(float *restrict y, const float *restrict a, const float *restrict b, size_t count) {
  for (size_t i = 0; i < count; i++) y[i] = a[i] + 3.0f * b[i];
}

#if STREAMING
#if defined(__AVX512F__)
#define WIDTH 16
#define VECTOR __m512
#define LOAD _mm512_load_ps
#define STREAM _mm512_stream_ps
#elif defined(__AVX__)
#define WIDTH 8
#define VECTOR __m256
#define LOAD _mm256_load_ps
#define STREAM _mm256_stream_ps
#else
#define WIDTH 4
#define VECTOR __m128
#define LOAD _mm_load_ps
#define STREAM _mm_stream_ps
#endif

static void stream(float *restrict y, const float *restrict a, const float *restrict b, size_t count) {
  for (size_t i = 0; i < count; i += FLOATS_A_LINE) {
    __builtin_prefetch(a + i + AHEAD);
    if (b != NULL) __builtin_prefetch(b + i + AHEAD);
    for (size_t k = 0; k < FLOATS_A_LINE; k += WIDTH) {
      VECTOR v = LOAD(a + i + k);
      if (b != NULL) v = v + 3.0f * LOAD(b + i + k);
      STREAM(y + i + k, v);
    }
  }
  _mm_sfence();
}
#else
static void stream(float *restrict y, const float *restrict a, const float *restrict b, size_t count) {
  (void)y, (void)a, (void)b, (void)count;
}
#endif

static void pass(int is_triad, int streaming, float *y, const float *a, const float *b, size_t count) {
  if (streaming) stream(y, a, is_triad ? b : NULL, count);
  else if (is_triad) triad(y, a, b, count);
  else copy(y, a, count);
  __asm__ volatile("" : : "r"(y) : "memory");
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double memory_rate(int is_triad, int streaming, uint64_t bytes, int threads) {
  if (streaming && !STREAMING) return 0;
  size_t arrays = is_triad ? 3 : 2, count = (size_t)bytes / arrays / sizeof(float) / FLOATS_A_LINE * FLOATS_A_LINE;
  /* A line and a page more between the arrays, so that they do not meet in the same sets of a cache. */
  size_t stride = count + 5 * 1024 + FLOATS_A_LINE, huge = (size_t)2 << 20, failed = 0;
  size_t room = (arrays * stride * sizeof(float) + huge - 1) / huge * huge;
  uint64_t repeat = 1 + ((uint64_t)1 << 26) / (count * arrays * sizeof(float));
  double best = 0;
#pragma omp parallel num_threads(threads)
  {
    float *memory = aligned_alloc(huge, room);
    if (memory == NULL) {
#pragma omp atomic
      failed++;
    } else {
      madvise(memory, room, MADV_HUGEPAGE);
      memset(memory, 0, room);
    }
#pragma omp barrier
    for (int run = 0; run < 7 && failed == 0; run++) {
      double start = seconds();
      for (uint64_t i = 0; i < repeat; i++)
        pass(is_triad, streaming, memory, memory + stride, memory + (arrays - 1) * stride, count);
#pragma omp barrier
      double took = seconds() - start;
#pragma omp master
      {
        double rate = (double)(count * arrays * sizeof(float) * repeat) * threads / took;
        if (rate > best) best = rate;
      }
#pragma omp barrier
    }
    free(memory);
  }
  return best;
}
