/* contract_kernels.c - the inner loops of contractions. meson.build compiles this file once for each instruction set,
 * with KERNELS as the name of the resulting table.
 *
 * The tile of sums is as large as registers allow: 14 rows of 2 vectors of the 32 registers of AVX-512, 6 of 2 of the
 * 16 of AVX2, 8 of 3 of the 32 of NEON. The remaining registers hold a row of B, and a broadcast element of A. */
#include "backend/cpu/contract/contract_kernels.h"

#include "backend/cpu/engine/kernel_values.h"
#include "backend/cpu/engine/vectors.h"

#if defined __AVX2__
#  include <immintrin.h>
#elif defined __aarch64__
#  include <arm_neon.h>
#endif

#if defined __AVX512F__
#  define VECTORS 2
#  define MOST_ROWS 14
#  define MICROS 5
#  define FMA_f32(a, b, c) (V_f32) _mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c))
#  define FMA_f64(a, b, c) (V_f64) _mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c))
#elif defined __AVX2__
#  define VECTORS 2
#  define MOST_ROWS 6
#  define MICROS 4
#  define FMA_f32(a, b, c) (V_f32) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#  define FMA_f64(a, b, c) (V_f64) _mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#elif defined __aarch64__
#  define VECTORS 3
#  define MOST_ROWS 8
#  define MICROS 4
#  define FMA_f32(a, b, c) (V_f32) vfmaq_f32((float32x4_t)(c), (float32x4_t)(a), (float32x4_t)(b))
#  define FMA_f64(a, b, c) (V_f64) vfmaq_f64((float64x2_t)(c), (float64x2_t)(a), (float64x2_t)(b))
#else /* no fused multiply-add: integers only */
#  define VECTORS 2
#  define MOST_ROWS 6
#  define MICROS 4
#endif
#if defined __AVX2__
#  define HALF_BYTES 32
#  define HALF_FMA_f32(a, b, c) (half_f32) _mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c))
#  define HALF_FMA_f64(a, b, c) (half_f64) _mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c))
#  define JOINED_4(a, b) (half_f32) _mm256_insertf128_ps(_mm256_castps128_ps256((__m128)(a)), (__m128)(b), 1)
#  define JOINED_2(a, b) (half_f64) _mm256_insertf128_pd(_mm256_castpd128_pd256((__m128d)(a)), (__m128d)(b), 1)
#  define LOW_32(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#  define HIGH_32(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#  define LOW_64_OF_32(a, b) __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#  define HIGH_64_OF_32(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#  define LOW_64(a, b) __builtin_shufflevector(a, b, 0, 4, 2, 6)
#  define HIGH_64(a, b) __builtin_shufflevector(a, b, 1, 5, 3, 7)
#else
#  define HALF_BYTES 16
#  define HALF_FMA_f32 FMA_f32
#  define HALF_FMA_f64 FMA_f64
#  define JOINED_4(a, b) (a)
#  define JOINED_2(a, b) (a)
#  define LOW_32(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#  define HIGH_32(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#  define LOW_64_OF_32(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#  define HIGH_64_OF_32(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)
#  define LOW_64(a, b) __builtin_shufflevector(a, b, 0, 2)
#  define HIGH_64(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif
#ifdef __clang__
#  define UNROLL _Pragma("unroll")
#else
#  define UNROLL _Pragma("GCC unroll 16")
#endif
/* A vector of which only so many lanes are in memory, where the instruction set has masks. */
#if defined __AVX512F__
#  define MASKS 1
typedef __mmask16 part_mask;
#  define PART_OF(left, lanes) (part_mask)((left) < (lanes) ? (1u << (left)) - 1 : 0xffff)
#  define LOAD_PART(from, mask) \
    (V)(sizeof *(from) == 4 ? _mm512_maskz_loadu_epi32(mask, from) : _mm512_maskz_loadu_epi64((__mmask8)(mask), from))
#  define STORE_PART(to, mask, v)                                                      \
    do {                                                                              \
      if (sizeof *(to) == 4) _mm512_mask_storeu_epi32(to, mask, (__m512i)(v));        \
      else _mm512_mask_storeu_epi64(to, (__mmask8)(mask), (__m512i)(v));              \
    } while (0)
#else
#  define MASKS 0
typedef uint32_t part_mask;
#  define PART_OF(left, lanes) 0
#  define LOAD_PART(from, mask) LOAD(from)
#  define STORE_PART(to, mask, v) STORE(to, v)
#endif
#define ALWAYS_INLINE __attribute__((always_inline))
enum { STRIP_ROWS = MOST_ROWS == 6 ? 2 : 4, STRIP_DEPTH = 4 }; /* their products' factors fill half of the registers */
#define KEEP(value) __asm__("" : "+r"(value)) /* the compiler does not know what it is */
enum { MATVEC_GROUPS = 4, MATVEC_CHUNK = 256, MATVEC_LEVELS = 56 };
typedef enum matvec_vectors { MATVEC_ONE, MATVEC_OF_GROUP, MATVEC_OF_LANE } matvec_vectors;
#define WRAPPING(a, b, c) ((a) * (b) + (c))
#define SAME(v) (v)

#define S i32
#define T uint32_t
#define V V_i32
#define LANES (VECTOR_BYTES / 4)
#define FMA WRAPPING
#define CANON SAME
#include "backend/cpu/contract/contract_loops.h"

#define S i64
#define T uint64_t
#define V V_i64
#define LANES (VECTOR_BYTES / 8)
#define FMA WRAPPING
#define CANON SAME
#include "backend/cpu/contract/contract_loops.h"

#ifdef FMA_f32
#  define S f32
#  define T float
#  define V V_f32
#  define LANES (VECTOR_BYTES / 4)
#  define FMA FMA_f32
#  define CANON canon_f32
#  define HALF_FMA HALF_FMA_f32
#  define MATVEC_PIECE 4
#  define JOINED JOINED_4
#  include "backend/cpu/contract/contract_loops.h"

#  define S f64
#  define T double
#  define V V_f64
#  define LANES (VECTOR_BYTES / 8)
#  define FMA FMA_f64
#  define CANON canon_f64
#  define HALF_FMA HALF_FMA_f64
#  define MATVEC_PIECE 2
#  define JOINED JOINED_2
#  include "backend/cpu/contract/contract_loops.h"
#endif

/* ---- packing ----------------------------------------------------------------------------------------------------- */

enum { RUN = 16 }; /* elements of a lane that are converted at once, if they are consecutive */

/* READ_t(from, i): element i of memory, converted to the type of sums. */
#define READ(from, i, t) (((const T_##t *)(const void *)(from))[i])
#define WIDEN_f32(x) (x)
#define WIDEN_f64(x) (x)
#define WIDEN_f16(x) cvt_f32_f16(x)
#define WIDEN_bf16(x) cvt_f32_bf16(x)

/* Interleaves the first halves of two vectors, and the second halves: a transposition is log2(n) rounds of this. */
#if VECTOR_BYTES == 64
#  define TURNED 16
#  define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#  define INTERLEAVE_HIGH(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#  define EACH_PAIR(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#elif VECTOR_BYTES == 32
#  define TURNED 8
#  define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#  define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#  define EACH_PAIR(X) X(0) X(1) X(2) X(3)
#else
#  define TURNED 4
#  define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#  define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#  define EACH_PAIR(X) X(0) X(1)
#endif
/* Unrolled, so that everything stays in registers. */
#define TURN_PAIR(to, from, i)                                    \
  to[2 * i] = INTERLEAVE_LOW(from[i], from[i + TURNED / 2]);      \
  to[2 * i + 1] = INTERLEAVE_HIGH(from[i], from[i + TURNED / 2]);
#define TURN_THERE(i) TURN_PAIR(b, a, i)
#define TURN_BACK(i) TURN_PAIR(a, b, i)

/* Element k of lane i is from[i * pitch + k]. Transposes TURNED lanes of TURNED elements, `used` lanes of which exist,
 * into rows of `width`, of which `lanes` elements are written. */
static inline void turn_block(uint32_t *panel, int64_t width, uint32_t lanes, const uint32_t *from, int64_t pitch,
                              uint32_t used) {
  V_i32 a[TURNED], b[TURNED];
#define TAKE(i) a[i] = load_i32(from + (i) * pitch);
#define TAKE_USED(i) a[i] = (i) < used ? load_i32(from + (i) * pitch) : (V_i32){0};
#define TAKE_PAIR(i) TAKE(2 * i) TAKE(2 * i + 1)
#define TAKE_USED_PAIR(i) TAKE_USED(2u * i) TAKE_USED(2u * i + 1)
  if (used == TURNED) {
    EACH_PAIR(TAKE_PAIR)
  } else {
    EACH_PAIR(TAKE_USED_PAIR)
  }
  EACH_PAIR(TURN_THERE)
  EACH_PAIR(TURN_BACK)
#if TURNED > 4
  EACH_PAIR(TURN_THERE)
#endif
#if TURNED == 8
#  define PUT_ROW(k, bytes) memcpy(panel + (k) * width, &b[k], bytes);
#else
#  define PUT_ROW(k, bytes) memcpy(panel + (k) * width, &a[k], bytes);
#endif
#if TURNED == 16
  EACH_PAIR(TURN_BACK)
#endif
#define PUT_PAIR(k) PUT_ROW(2 * k, sizeof(V_i32)) PUT_ROW(2 * k + 1, sizeof(V_i32))
#define PUT_LEFT_PAIR(k) \
  PUT_ROW(2 * k, MOST_ROWS % TURNED * sizeof(uint32_t)) PUT_ROW(2 * k + 1, MOST_ROWS % TURNED * sizeof(uint32_t))
#define PUT_SOME_PAIR(k) PUT_ROW(2 * k, lanes * sizeof(uint32_t)) PUT_ROW(2 * k + 1, lanes * sizeof(uint32_t))
  if (lanes == TURNED) {
    EACH_PAIR(PUT_PAIR)
  } else if (lanes == MOST_ROWS % TURNED) {
    EACH_PAIR(PUT_LEFT_PAIR)
  } else {
    EACH_PAIR(PUT_SOME_PAIR)
  }
#undef PUT_ROW
}

/* So many elements of each lane, a multiple of TURNED. */
static void turn_4(void *panel, uint32_t width, uint32_t used, size_t count, const void *from, int64_t pitch) {
  for (size_t k = 0; k < count; k += TURNED)
    for (uint32_t i = 0; i < width; i += TURNED) {
      uint32_t lanes = width - i < TURNED ? width - i : TURNED, there = used > i ? used - i : 0;
      turn_block((uint32_t *)panel + k * width + i, width, lanes,
                 (const uint32_t *)from + (int64_t)(there > 0 ? i : 0) * pitch + (int64_t)k, pitch,
                 there < TURNED ? there : TURNED);
    }
}

/* Makes the panel from run[i * RUN + k] of each lane. */
#define TURN(T, W)                                                                                              \
  static void turn_##W(T *restrict panel, uint32_t width, uint32_t used, size_t count, const T *restrict run) { \
    if (sizeof(T) == 4 && count == RUN) {                                                                       \
      turn_4(panel, width, used, RUN, run, RUN);                                                                \
      return;                                                                                                   \
    }                                                                                                           \
    for (size_t k = 0; k < count; k++)                                                                          \
      for (uint32_t i = 0; i < width; i++) panel[k * width + i] = run[i * RUN + k];                             \
  }
TURN(float, f32)
TURN(double, f64)
TURN(uint32_t, i32)
TURN(uint64_t, i64)

/* So many elements of 4 bytes. */
static inline void copy_4(uint32_t *to, const uint32_t *from, uint32_t count) {
  enum { LANES = VECTOR_BYTES / 4 };
#if MASKS
  for (uint32_t i = 0; i < count; i += LANES) {
    part_mask part = PART_OF(count - i, LANES);
    _mm512_mask_storeu_epi32(to + i, part, _mm512_maskz_loadu_epi32(part, from + i));
  }
#else
  uint32_t i = 0;
  for (; i + LANES <= count; i += LANES) memcpy(to + i, from + i, VECTOR_BYTES);
  if (i == count) return;
  if (count >= LANES) memcpy(to + count - LANES, from + count - LANES, VECTOR_BYTES);
  else
    for (; i < count; i++) to[i] = from[i];
#endif
}

/* Nearly all panels have one of two widths, and code that knows the width copies them. Elements as wide as a sum are
 * copied as such. */
#define PACK_WIDTH(n, WIDEN)                                              \
  if (used == (n)) {                                                      \
    for (size_t k = 0; k < count; k++, panel += (n), from += step)        \
      if (sizeof *from == sizeof *panel) memcpy(panel, from, (n) * sizeof *panel); \
      else                                                                \
        for (uint32_t i = 0; i < (n); i++) panel[i] = WIDEN(from[i]);     \
    return;                                                               \
  }

#define PACK(t, W, T, WIDEN)                                                                        \
  static void pack_##W##_##t(T *restrict panel, uint32_t width, uint32_t used, size_t count,        \
                             const contract_source *source) {                                       \
    const T_##t *from = (const T_##t *)(const void *)source->from;                                  \
    int64_t lane = source->lane_stride, step = source->k_stride;                                    \
    if (source->runs != NULL) {                                                                     \
      for (size_t k = 0; k < count; k++, panel += width) {                                          \
        for (const contract_run *r = source->runs; r < source->runs + source->run_count; r++) {     \
          const T_##t *at = from + r->at + source->places[k];                                       \
          T *to = panel + r->lane;                                                                  \
          if (lane == 1 && sizeof(T_##t) == 4 && sizeof(T) == 4)                                    \
            copy_4((void *)to, (const void *)at, r->count);                                         \
          else                                                                                      \
            for (uint32_t i = 0; i < r->count; i++) to[i] = (T)WIDEN(at[i * lane]);                 \
        }                                                                                           \
        for (uint32_t i = used; i < width; i++) panel[i] = 0;                                       \
      }                                                                                             \
      return;                                                                                       \
    }                                                                                               \
    if (lane == 1 && used == width) {                                                               \
      PACK_WIDTH(VECTORS * VECTOR_BYTES / sizeof(T), (T)WIDEN)                                      \
      PACK_WIDTH(MOST_ROWS, (T)WIDEN)                                                               \
    }                                                                                               \
    if (lane == 1) {                                                                                \
      for (size_t k = 0; k < count; k++, panel += width, from += step) {                            \
        for (uint32_t i = 0; i < used; i++) panel[i] = (T)WIDEN(from[i]);                           \
        for (uint32_t i = used; i < width; i++) panel[i] = 0;                                       \
      }                                                                                             \
      return;                                                                                       \
    }                                                                                               \
    if (step == 1 && sizeof(T_##t) == 4 && sizeof(T) == 4) {                                        \
      size_t turned = count / TURNED * TURNED;                                                      \
      turn_4(panel, width, used, turned, from, lane);                                               \
      panel += turned * width, from += turned, count -= turned;                                     \
    }                                                                                               \
    T run[CONTRACT_MAX_COLUMNS * RUN];                                                              \
    for (uint32_t i = used; i < width; i++)                                                         \
      for (size_t k = 0; k < RUN; k++) run[i * RUN + k] = 0;                                        \
    for (size_t first = 0; first < count; first += RUN, panel += RUN * width, from += RUN * step) { \
      size_t some = count - first < RUN ? count - first : RUN;                                      \
      for (uint32_t i = 0; i < used; i++) {                                                         \
        const T_##t *at = from + i * lane;                                                          \
        if (step == 1 && some == RUN)                                                               \
          for (size_t k = 0; k < RUN; k++) run[i * RUN + k] = (T)WIDEN(at[k]);                      \
        else                                                                                        \
          for (size_t k = 0; k < some; k++) run[i * RUN + k] = (T)WIDEN(at[(int64_t)k * step]);     \
      }                                                                                             \
      turn_##W(panel, width, used, some, run);                                                      \
    }                                                                                               \
  }

#define SIGNED(x) (int64_t)(x)
#define UNSIGNED(x) (x)
PACK(f32, f32, float, WIDEN_f32)
PACK(f16, f32, float, WIDEN_f16)
PACK(bf16, f32, float, WIDEN_bf16)
PACK(f64, f64, double, WIDEN_f64)
#define PACK_INTEGER(W, T)                                                                           \
  PACK(i8, W, T, SIGNED)                                                                             \
  PACK(i16, W, T, SIGNED)                                                                            \
  PACK(i32, W, T, SIGNED) PACK(i64, W, T, SIGNED) PACK(u8, W, T, UNSIGNED) PACK(u16, W, T, UNSIGNED) \
      PACK(u32, W, T, UNSIGNED) PACK(u64, W, T, UNSIGNED)
PACK_INTEGER(i32, uint32_t)
PACK_INTEGER(i64, uint64_t)

#define CASE(t, W) \
  case ATLAS_##t: pack_##W##_##t(panel, width, used, count, source); return;
static void pack_f32(void *panel, uint32_t width, uint32_t used, size_t count, const contract_source *source) {
  switch (source->type) {
    CASE(f16, f32)
    CASE(bf16, f32)
  default: pack_f32_f32(panel, width, used, count, source); return;
  }
}
static void pack_f64(void *panel, uint32_t width, uint32_t used, size_t count, const contract_source *source) {
  pack_f64_f64(panel, width, used, count, source);
}
#define PACKS_OF_INTEGERS(W)                                                                                      \
  static void pack_##W(void *panel, uint32_t width, uint32_t used, size_t count, const contract_source *source) { \
    switch (source->type) {                                                                                       \
      CASE(i8, W)                                                                                                 \
      CASE(i16, W)                                                                                                \
      CASE(i32, W) CASE(i64, W) CASE(u8, W) CASE(u16, W) CASE(u32, W) default                                     \
          : pack_##W##_u64(panel, width, used, count, source);                                                    \
      return;                                                                                                     \
    }                                                                                                             \
  }
PACKS_OF_INTEGERS(i32)
PACKS_OF_INTEGERS(i64)

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Transposes a tile: columns become rows, in whole vectors; returns how many. */
static uint32_t turn_tile(uint32_t *to, int64_t column_stride, const uint32_t *sums, size_t pitch, uint32_t rows,
                          uint32_t columns) {
  uint32_t whole = columns / TURNED * TURNED;
  for (uint32_t j = 0; j < whole; j += TURNED)
    for (uint32_t i = 0; i < rows; i += TURNED) {
      uint32_t lanes = rows - i < TURNED ? rows - i : TURNED;
      turn_block(to + i + j * column_stride, column_stride, lanes, sums + i * pitch + j, (int64_t)pitch, lanes);
    }
  return whole;
}

#define FINISH(t, T, NARROW)                                                                                 \
  static void finish_##t##_##T(const void *tile, size_t pitch, uint32_t rows, uint32_t columns, uint8_t *to, \
                               int64_t row_stride, int64_t column_stride) {                                  \
    const T *sums = tile;                                                                                    \
    uint32_t done = 0;                                                                                       \
    if (row_stride == 1 && column_stride != 1 && sizeof(T) == 4 && sizeof(T_##t) == 4)                       \
      done = turn_tile((void *)to, column_stride, tile, pitch, rows, columns);                               \
    for (uint32_t i = 0; i < rows; i++, sums += pitch) {                                                     \
      T_##t *row = (T_##t *)(void *)to + i * row_stride;                                                     \
      if (column_stride == 1)                                                                                \
        for (uint32_t j = 0; j < columns; j++) row[j] = (T_##t)NARROW(sums[j]);                              \
      else                                                                                                   \
        for (uint32_t j = done; j < columns; j++) row[j * column_stride] = (T_##t)NARROW(sums[j]);           \
    }                                                                                                        \
  }
FINISH(f32, float, )
FINISH(f16, float, cvt_f16_f32)
FINISH(bf16, float, cvt_bf16_f32)
FINISH(f64, double, )
FINISH(u8, uint32_t, )
FINISH(u16, uint32_t, )
FINISH(u32, uint32_t, )
FINISH(u64, uint64_t, )

#define FINISHES(name, body)                                                                                         \
  static void name(const void *tile, size_t pitch, uint32_t rows, uint32_t columns, uint8_t *to, int64_t row_stride, \
                   int64_t column_stride, uint8_t type) {                                                            \
    body                                                                                                             \
  }
#define WITH(t, T) finish_##t##_##T(tile, pitch, rows, columns, to, row_stride, column_stride)
FINISHES(finish_f32, if (type == ATLAS_f16) WITH(f16, float); else if (type == ATLAS_bf16) WITH(bf16, float);
         else WITH(f32, float);)
FINISHES(finish_f64, (void)type; WITH(f64, double);)
FINISHES(finish_i32, if (type == ATLAS_i8 || type == ATLAS_u8) WITH(u8, uint32_t);
         else if (type == ATLAS_i16 || type == ATLAS_u16) WITH(u16, uint32_t); else WITH(u32, uint32_t);)
FINISHES(finish_i64, (void)type; WITH(u64, uint64_t);)

/* ---- the table --------------------------------------------------------------------------------------------------- */

#if MOST_ROWS == 14
#  define ROW_COUNTS \
    { 1, 2, 4, 8, 14 }
#  define MICROS_OF(w, s) \
    { w##_1_##s, w##_2_##s, w##_4_##s, w##_8_##s, w##_14_##s }
#elif MOST_ROWS == 8
#  define ROW_COUNTS \
    { 1, 2, 4, 8 }
#  define MICROS_OF(w, s) \
    { w##_1_##s, w##_2_##s, w##_4_##s, w##_8_##s }
#else
#  define ROW_COUNTS \
    { 1, 2, 4, 6 }
#  define MICROS_OF(w, s) \
    { w##_1_##s, w##_2_##s, w##_4_##s, w##_6_##s }
#endif
#define LOOPS(s, bytes) \
  { .count = MICROS, .rows = ROW_COUNTS, .columns = VECTORS * VECTOR_BYTES / (bytes), .masks = MASKS, \
    .micro = {MICROS_OF(narrow, s), MICROS_OF(micro, s)}, \
    .lanes = VECTOR_BYTES / (bytes), .strip_rows = {1, 2, STRIP_ROWS - 1, STRIP_ROWS}, \
    .strip = {strip_1_##s, strip_2_##s, strip_3_##s, strip_4_##s} }

#define TABLE_OF(isa) hg_contract_##isa
#define TABLE(isa) TABLE_OF(isa)
const contract_kernels TABLE(KERNELS) = {
    .loops = {[CONTRACT_I32] = LOOPS(i32, 4),
              [CONTRACT_I64] = LOOPS(i64, 8),
#ifdef FMA_f32
              [CONTRACT_F32] = LOOPS(f32, 4),
              [CONTRACT_F64] = LOOPS(f64, 8)
#endif
    },
    .pack = {pack_f32, pack_f64, pack_i32, pack_i64},
    .finish = {finish_f32, finish_f64, finish_i32, finish_i64},
#ifdef FMA_f32
    .matvec = {[CONTRACT_F32] = {HALF_BYTES / 4, MATVEC_GROUPS, matvec_rows_f32, matvec_row_f32},
             [CONTRACT_F64] = {HALF_BYTES / 8, MATVEC_GROUPS, matvec_rows_f64, matvec_row_f64}},
#endif
};
