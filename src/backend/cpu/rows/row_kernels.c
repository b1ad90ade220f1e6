/* row_kernels.c - the inner loops of row moves. meson.build compiles this file once for each instruction set, with
 * KERNELS as the name of the resulting table. */
#include "backend/cpu/rows/row_kernels.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "backend/cpu/engine/vectors.h"

#include <string.h>
#if defined __SSE2__
#  include <immintrin.h>
#endif

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* Prefetches rows while it copies those before them: hardware prefetchers cannot predict their addresses. */

/* Copies pieces of `size`; the last may overlap the one before it. */
#define COPY(size)                                                            \
  for (; at + (size) <= bytes; at += (size)) memcpy(to + at, from + at, size); \
  if (at > 0 && at < bytes) {                                                 \
    memcpy(to + bytes - (size), from + bytes - (size), size);                 \
    return;                                                                   \
  }

static inline void copy_row(uint8_t *to, const uint8_t *from, size_t bytes) {
  size_t at = 0;
  COPY(VECTOR_BYTES)
  if (at == bytes) return;
#if VECTOR_BYTES > 32
  COPY(32)
  if (at == bytes) return;
#endif
#if VECTOR_BYTES > 16
  COPY(16)
  if (at == bytes) return;
#endif
  COPY(8)
  for (; at < bytes; at++) to[at] = from[at];
}

static void copy(uint8_t *to, size_t to_step, const uint8_t *const *from, uint32_t count, size_t bytes) {
  for (uint32_t i = 0; i < count && bytes % VECTOR_BYTES == 0; i++) {
    if (i + CPU_ROWS_AHEAD < count) rows_ask_for(from[i + CPU_ROWS_AHEAD], bytes);
    for (size_t at = 0; at < bytes; at += VECTOR_BYTES) memcpy(to + i * to_step + at, from[i] + at, VECTOR_BYTES);
  }
  for (uint32_t i = 0; i < count && bytes % VECTOR_BYTES != 0; i++) {
    if (i + CPU_ROWS_AHEAD < count) rows_ask_for(from[i + CPU_ROWS_AHEAD], bytes);
    copy_row(to + i * to_step, from[i], bytes);
  }
}

#if defined __AVX512F__
#  define STREAM(to, v) _mm512_stream_si512((void *)(to), (__m512i)(v))
#elif defined __AVX2__
#  define STREAM(to, v) _mm256_stream_si256((void *)(to), (__m256i)(v))
#elif defined __SSE2__
#  define STREAM(to, v) _mm_stream_si128((void *)(to), (__m128i)(v))
#else
#  define STREAM(to, v) memcpy(to, &(v), sizeof(v))
#endif

static void copy_past_caches(uint8_t *to, size_t to_step, const uint8_t *const *from, uint32_t count, size_t bytes) {
  for (uint32_t i = 0; i < count; i++) {
    if (i + CPU_ROWS_AHEAD < count) rows_ask_for(from[i + CPU_ROWS_AHEAD], bytes);
    for (size_t at = 0; at < bytes; at += VECTOR_BYTES) {
      V_i64 v;
      memcpy(&v, from[i] + at, sizeof v);
      STREAM(to + i * to_step + at, v);
    }
  }
}

#define SPREAD(T)                                                                     \
  case sizeof(T):                                                                     \
    for (; count > 0; count--, to += to_step * sizeof(T), from += from_step * sizeof(T)) \
      memcpy(to, from, sizeof(T));                                                    \
    break;

static void spread(uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step, uint64_t count,
                   uint32_t size) {
  switch (size) {
    SPREAD(uint8_t)
    SPREAD(uint16_t)
    SPREAD(uint32_t)
    SPREAD(uint64_t)
  default: break;
  }
}

static uint8_t greatest(const uint8_t *from, uint64_t count) {
  uint8_t most = 0;
  for (uint64_t i = 0; i < count; i++) most = from[i] > most ? from[i] : most;
  return most;
}

static uint8_t least(const uint8_t *from, uint64_t count) {
  uint8_t found = UINT8_MAX;
  for (uint64_t i = 0; i < count; i++) found = from[i] < found ? from[i] : found;
  return found;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

enum { CHUNK_BITS = 12, CHUNK = 1 << CHUNK_BITS };

static inline uint32_t log2_up(uint32_t n) { return n <= 1 ? 0 : 32 - (uint32_t)__builtin_clz(n - 1); }

/* The number of trailing ones, for n below 2^32 - 1. */
static inline uint32_t ones_below(uint32_t n) { return (uint32_t)__builtin_ctz(~n); }

/* Reverses the low `bits` bits. */
static inline uint32_t reversed(uint32_t n, uint32_t bits) {
  n = (n >> 1 & 0x5555) | (n & 0x5555) << 1;
  n = (n >> 2 & 0x3333) | (n & 0x3333) << 2;
  n = (n >> 4 & 0x0f0f) | (n & 0x0f0f) << 4;
  return ((n >> 8 & 0x00ff) | (n & 0x00ff) << 8) >> (16 - bits);
}

#define SAME(v) (v)

#define S f32
#define T float
#define V V_f32
#define CANON canon_f32
#include "backend/cpu/rows/row_sums.h"

#define S f64
#define T double
#define V V_f64
#define CANON canon_f64
#include "backend/cpu/rows/row_sums.h"

#define S i8
#define T uint8_t
#define V V_i8
#define CANON SAME
#include "backend/cpu/rows/row_sums.h"

#define S i16
#define T uint16_t
#define V V_i16
#define CANON SAME
#include "backend/cpu/rows/row_sums.h"

#define S i32
#define T uint32_t
#define V V_i32
#define CANON SAME
#include "backend/cpu/rows/row_sums.h"

#define S i64
#define T uint64_t
#define V V_i64
#define CANON SAME
#include "backend/cpu/rows/row_sums.h"

#define TABLE_OF(isa) hg_rows_##isa
#define TABLE(isa) TABLE_OF(isa)
const row_kernels TABLE(KERNELS) = {.copy = copy, .copy_past_caches = copy_past_caches, .spread = spread,
                                    .greatest = greatest, .least = least,
                                    .add = {sum_f32, sum_f64, sum_i8, sum_i16, sum_i32, sum_i64},
                                    .add_each = {each_f32, each_f64, each_i8, each_i16, each_i32, each_i64}};
