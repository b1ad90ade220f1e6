/* stream.h - copies and fills with non-temporal (streaming) stores, for ranges so large that ordinary stores would
 * evict everything else from the caches before anything reads the range. Machines without such stores use plain ones.
 * Streaming stores are only fast with prefetched loads. */
#ifndef HG_CPU_STREAM_H
#define HG_CPU_STREAM_H

#include "backend/cpu/engine/cpu_tuning.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Repeats the 8 bytes of `pattern`; a shorter range gets the first bytes of it. */
static inline void fill_plain(uint8_t *destination, size_t byte_count, uint64_t pattern) {
  size_t done = 0;
  for (; done + sizeof pattern <= byte_count; done += sizeof pattern)
    memcpy(destination + done, &pattern, sizeof pattern);
  memcpy(destination + done, &pattern, byte_count - done);
}

#if defined(__SSE2__)
#  include <emmintrin.h>

enum { STREAM_ALIGNMENT = 16, STREAM_STEP = 64 };

/* The number of bytes before the first aligned one. */
static inline size_t stream_head(const uint8_t *destination, size_t byte_count) {
  size_t head = (size_t)(-(uintptr_t)destination & (STREAM_ALIGNMENT - 1));
  return head < byte_count ? head : byte_count;
}

static inline void stream_copy(uint8_t *destination, const uint8_t *source, size_t byte_count) {
  size_t done = stream_head(destination, byte_count);
  memcpy(destination, source, done);
  for (; done + STREAM_STEP <= byte_count; done += STREAM_STEP) {
    const __m128i *from = (const __m128i *)(const void *)(source + done);
    __m128i *to = (__m128i *)(void *)(destination + done);
    _mm_prefetch((const char *)from + CPU_STREAM_AHEAD, _MM_HINT_T0); /* harmless past the end */
    __m128i a = _mm_loadu_si128(from), b = _mm_loadu_si128(from + 1);
    __m128i c = _mm_loadu_si128(from + 2), d = _mm_loadu_si128(from + 3);
    _mm_stream_si128(to, a);
    _mm_stream_si128(to + 1, b);
    _mm_stream_si128(to + 2, c);
    _mm_stream_si128(to + 3, d);
  }
  _mm_sfence(); /* streaming stores need it to be ordered with other stores */
  memcpy(destination + done, source + done, byte_count - done);
}

static inline void stream_fill(uint8_t *destination, size_t byte_count, uint64_t pattern) {
  size_t done = stream_head(destination, byte_count);
  unsigned turn = 8 * (unsigned)(done % sizeof pattern); /* the next byte is the lowest: little-endian */
  fill_plain(destination, done, pattern);
  if (turn > 0) pattern = pattern >> turn | pattern << (64 - turn);
  const __m128i row = _mm_set1_epi64x((long long)pattern);
  for (; done + STREAM_STEP <= byte_count; done += STREAM_STEP) {
    __m128i *to = (__m128i *)(void *)(destination + done);
    for (int i = 0; i < STREAM_STEP / STREAM_ALIGNMENT; i++) _mm_stream_si128(to + i, row);
  }
  _mm_sfence();
  fill_plain(destination + done, byte_count - done, pattern);
}

#else

static inline void stream_copy(uint8_t *destination, const uint8_t *source, size_t byte_count) {
  memcpy(destination, source, byte_count);
}

static inline void stream_fill(uint8_t *destination, size_t byte_count, uint64_t pattern) {
  fill_plain(destination, byte_count, pattern);
}

#endif
#endif
