/* loops.c - the benchmark programs as loops in C, as gcc -O3 makes them: what a careful programmer would write by hand.
 *
 * Each computes the bits of its Atlas program: the same operations in the same order, NaN made canonical where a NaN
 * can leave the loop. functions.h is made by translate.py of src/functions. OpenMP spreads them over threads. */
#include "functions.h"

#include "loops.h"

#include <stddef.h>
#include <time.h>

/* ---- threads ----------------------------------------------------------------------------------------------------- */

typedef void range(const loop_args *args, uint64_t begin, uint64_t end);

/* Cuts units 0 to `units` into equal ranges, one a thread, that start at multiples of `grain`: what one thread does in
 * the time that it takes to call another. */
static void spread(range *f, const loop_args *args, uint64_t units, uint64_t grain, int threads) {
  if (threads <= 1 || units <= grain) {
    f(args, 0, units);
    return;
  }
  uint64_t part = (units / grain + (uint64_t)threads) / (uint64_t)threads * grain;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; t++) {
    uint64_t begin = (uint64_t)t * part, end = begin + part;
    if (begin < units) f(args, begin, end < units ? end : units);
  }
}

enum { GRAIN = 32768, FUNCTION_GRAIN = 8192 };

/* ---- one element after another ----------------------------------------------------------------------------------- */

#define FLOATS const float *restrict a = x->a, *restrict b = x->b, *restrict c = x->c; float *restrict y = x->out

#define ELEMENTS(name, ...)                                                                 \
  static void range_##name(const loop_args *x, uint64_t begin, uint64_t end) {              \
    FLOATS;                                                                                 \
    (void)b, (void)c;                                                                       \
    for (uint64_t i = begin; i < end; i++) y[i] = canon_f32(__VA_ARGS__);                   \
  }                                                                                         \
  void loop_##name(const loop_args *x, int threads) { spread(range_##name, x, x->count, GRAIN, threads); }

/* The larger and the smaller of x and a constant that is not zero; NaN stays. */
FI float at_least(float x, float low) { return x < low ? low : x; }
FI float at_most(float x, float high) { return x > high ? high : x; }
FI float positive(float x) { return x <= 0 ? 0 : x; }

ELEMENTS(add, a[i] + b[i])
ELEMENTS(relu, positive(__builtin_fmaf(a[i], b[i], c[i])))
ELEMENTS(chain, at_most(at_least((a[i] * b[i] + a[i]) * 1.1f - b[i], -2), 3) * a[i] + 0.5f)
ELEMENTS(stencil, __builtin_fmaf(a[i + 1], 0.5f, (a[i] + a[i + 2]) * 0.25f))

/* ---- functions: a chunk by the straight line, and again in full if any argument was rare ------------------------- */

enum { CHUNK = 256 };

#define FUNCTION(name)                                                                      \
  static void range_##name(const loop_args *x, uint64_t begin, uint64_t end) {              \
    const float *restrict a = x->a;                                                         \
    float *restrict y = x->out;                                                             \
    for (uint64_t first = begin; first < end; first += CHUNK) {                             \
      uint64_t last = end - first < CHUNK ? end : first + CHUNK;                            \
      unsigned any = 0;                                                                     \
      for (uint64_t i = first; i < last; i++) {                                             \
        _Bool rare = 0;                                                                     \
        y[i] = main_##name##_f32(a[i], &rare);                                              \
        any |= rare;                                                                        \
      }                                                                                     \
      if (any)                                                                              \
        for (uint64_t i = first; i < last; i++) y[i] = fn_##name##_f32(a[i]);               \
    }                                                                                       \
  }                                                                                         \
  void loop_##name(const loop_args *x, int threads) { spread(range_##name, x, x->count, FUNCTION_GRAIN, threads); }

FUNCTION(exp)
FUNCTION(sigmoid)
FUNCTION(gelu)
FUNCTION(gelu_tanh)

/* ---- rows and blocks of 256 lanes -------------------------------------------------------------------------------- */

enum { LANES = 256 };

static float sum_by_halves(float *lanes) {
  for (int h = LANES / 2; h > 0; h /= 2)
    for (int i = 0; i < h; i++) lanes[i] += lanes[i + h];
  return canon_f32(lanes[0]);
}

static float largest_of(const float *row, uint64_t columns) {
  float lanes[LANES];
  for (int i = 0; i < LANES; i++) lanes[i] = -INFINITY;
  for (uint64_t first = 0; first < columns; first += LANES)
    for (int i = 0; i < LANES; i++) {
      float v = row[first + (uint64_t)i];
      lanes[i] = v > lanes[i] || v != v ? v : lanes[i];
    }
  for (int h = LANES / 2; h > 0; h /= 2)
    for (int i = 0; i < h; i++)
      lanes[i] = lanes[i + h] > lanes[i] || lanes[i + h] != lanes[i + h] ? lanes[i + h] : lanes[i];
  return lanes[0];
}

/* Columns: a multiple of 256. */
static void range_softmax(const loop_args *x, uint64_t begin, uint64_t end) {
  uint64_t columns = x->size;
  for (uint64_t r = begin; r < end; r++) {
    const float *restrict row = (const float *)x->a + r * columns;
    float *restrict y = (float *)x->out + r * columns;
    float largest = largest_of(row, columns), lanes[LANES] = {0};
    for (uint64_t first = 0; first < columns; first += LANES) {
      unsigned any = 0;
      for (uint64_t i = first; i < first + LANES; i++) {
        _Bool rare = 0;
        y[i] = main_exp_f32(row[i] - largest, &rare);
        any |= rare;
      }
      if (any)
        for (uint64_t i = first; i < first + LANES; i++) y[i] = fn_exp_f32(row[i] - largest);
      for (uint64_t i = 0; i < LANES; i++) lanes[i] += y[first + i];
    }
    float sum = sum_by_halves(lanes);
    for (uint64_t i = 0; i < columns; i++) y[i] = canon_f32(y[i] / sum);
  }
}
void loop_softmax(const loop_args *x, int threads) { spread(range_softmax, x, x->count / x->size, 4, threads); }

/* ---- rows of 1024 whose sums fold by halves over all their columns ----------------------------------------------- */

enum { COLUMNS = 1024 };
#define EPSILON 1e-5f

static float fold(const float *restrict row) {
  float part[COLUMNS / 2];
  for (int i = 0; i < COLUMNS / 2; i++) part[i] = row[i] + row[i + COLUMNS / 2];
  for (int half = COLUMNS / 4; half > 0; half /= 2)
    for (int i = 0; i < half; i++) part[i] += part[i + half];
  return canon_f32(part[0]);
}

/* y = e^(row - largest). */
static void powers(const float *restrict row, float largest, float *restrict y) {
  for (uint64_t first = 0; first < COLUMNS; first += CHUNK) {
    unsigned any = 0;
    for (uint64_t i = first; i < first + CHUNK; i++) {
      _Bool rare = 0;
      y[i] = main_exp_f32(row[i] - largest, &rare);
      any |= rare;
    }
    if (any)
      for (uint64_t i = first; i < first + CHUNK; i++) y[i] = fn_exp_f32(row[i] - largest);
  }
}

static void range_softmax_held(const loop_args *x, uint64_t begin, uint64_t end) {
  for (uint64_t r = begin; r < end; r++) {
    const float *restrict row = (const float *)x->a + r * COLUMNS;
    float *restrict y = (float *)x->out + r * COLUMNS;
    powers(row, largest_of(row, COLUMNS), y);
    float sum = fold(y);
    for (uint64_t i = 0; i < COLUMNS; i++) y[i] = canon_f32(y[i] / sum);
  }
}

static void range_layer_norm(const loop_args *x, uint64_t begin, uint64_t end) {
  for (uint64_t r = begin; r < end; r++) {
    const float *restrict row = (const float *)x->a + r * COLUMNS;
    float *restrict y = (float *)x->out + r * COLUMNS, square[COLUMNS];
    float mean = fold(row) / COLUMNS;
    for (uint64_t i = 0; i < COLUMNS; i++) {
      y[i] = row[i] - mean;
      square[i] = y[i] * y[i];
    }
    float scale = 1 / __builtin_sqrtf(fold(square) / COLUMNS + EPSILON);
    for (uint64_t i = 0; i < COLUMNS; i++) y[i] = canon_f32(y[i] * scale);
  }
}

static void range_cross_entropy(const loop_args *x, uint64_t begin, uint64_t end) {
  for (uint64_t r = begin; r < end; r++) {
    const float *restrict row = (const float *)x->a + r * COLUMNS;
    float largest = largest_of(row, COLUMNS), power[COLUMNS];
    powers(row, largest, power);
    ((float *)x->out)[r] = canon_f32(fn_log_f32(fold(power)) - (row[((const uint32_t *)x->b)[r]] - largest));
  }
}

static void range_row_sum(const loop_args *x, uint64_t begin, uint64_t end) {
  for (uint64_t r = begin; r < end; r++) ((float *)x->out)[r] = fold((const float *)x->a + r * COLUMNS);
}

#define ROWS(name) \
  void loop_##name(const loop_args *x, int threads) { spread(range_##name, x, x->count / COLUMNS, 4, threads); }
ROWS(softmax_held)
ROWS(layer_norm)
ROWS(cross_entropy)
ROWS(row_sum)

/* A strip of 64 columns: rows come in bit-reversed order of their number, so that a binary counter folds them. */
enum { STRIP = 64, MOST_LEVELS = 12 };

static void range_column_sum(const loop_args *x, uint64_t begin, uint64_t end) {
  uint64_t columns = x->size, rows = x->count / columns;
  int levels = __builtin_ctzll(rows);
  for (uint64_t strip = begin; strip < end; strip++) {
    float counter[MOST_LEVELS + 1][STRIP], value[STRIP];
    for (uint64_t n = 0; n < rows; n++) {
      uint64_t row = 0;
      for (int bit = 0; bit < levels; bit++) row |= (n >> bit & 1) << (levels - 1 - bit);
      memcpy(value, (const float *)x->a + row * columns + strip * STRIP, sizeof value);
      int level = 0;
      for (; n >> level & 1; level++)
        for (int i = 0; i < STRIP; i++) value[i] = counter[level][i] + value[i];
      memcpy(counter[level], value, sizeof value);
    }
    for (int i = 0; i < STRIP; i++) ((float *)x->out)[strip * STRIP + (uint64_t)i] = canon_f32(value[i]);
  }
}
void loop_column_sum(const loop_args *x, int threads) { spread(range_column_sum, x, x->size / STRIP, 1, threads); }

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

static void range_block_sum(const loop_args *x, uint64_t begin, uint64_t end) {
  for (uint64_t block = begin; block < end; block++) {
    float lanes[LANES];
    memcpy(lanes, (const float *)x->a + block * LANES, sizeof lanes);
    ((float *)x->out)[block] = sum_by_halves(lanes);
  }
}
void loop_block_sum(const loop_args *x, int threads) { spread(range_block_sum, x, x->count / LANES, 128, threads); }

static void range_histogram(const loop_args *x, uint64_t begin, uint64_t end) {
  const uint8_t *samples = x->a;
  uint32_t bins[256] = {0}, *out = x->out;
  for (uint64_t i = begin; i < end; i++) bins[samples[i]]++;
  for (int i = 0; i < 256; i++) __atomic_fetch_add(&out[i], bins[i], __ATOMIC_RELAXED);
}
void loop_histogram(const loop_args *x, int threads) { spread(range_histogram, x, x->count, GRAIN, threads); }

/* ---- the product of square matrices: a row of the result at a time ----------------------------------------------- */

static void range_matmul(const loop_args *x, uint64_t begin, uint64_t end) {
  uint64_t size = x->size;
  for (uint64_t r = begin; r < end; r++) {
    const float *restrict a = (const float *)x->a + r * size;
    float *restrict y = (float *)x->out + r * size;
    for (uint64_t i = 0; i < size; i++) y[i] = 0;
    for (uint64_t k = 0; k < size; k++) {
      const float *restrict b = (const float *)x->b + k * size;
      for (uint64_t i = 0; i < size; i++) y[i] = __builtin_fmaf(a[k], b[i], y[i]);
    }
    for (uint64_t i = 0; i < size; i++) y[i] = canon_f32(y[i]);
  }
}
void loop_matmul(const loop_args *x, int threads) { spread(range_matmul, x, x->size, 4, threads); }

/* ---- Mandelbrot -------------------------------------------------------------------------------------------------- */

enum { LIMIT = 256 };
#define LEFT -2.0f
#define TOP -1.25f
#define SIDE 2.5f

static void range_mandelbrot(const loop_args *x, uint64_t begin, uint64_t end) {
  uint32_t *steps = x->out, width = (uint32_t)x->size;
  float pixel = SIDE / (float)width;
  for (uint64_t i = begin; i < end; i++) {
    float cr = (float)(uint32_t)(i % width) * pixel + LEFT, ci = (float)(uint32_t)(i / width) * pixel + TOP;
    float zr = 0, zi = 0;
    uint32_t n = 0;
    for (; n < LIMIT; n++) {
      float zr2 = zr * zr, zi2 = zi * zi, cross = zr * zi;
      if (zr2 + zi2 > 4) break;
      zi = cross + cross + ci;
      zr = zr2 - zi2 + cr;
    }
    steps[i] = n;
  }
}
void loop_mandelbrot(const loop_args *x, int threads) { spread(range_mandelbrot, x, x->count, x->size, threads); }

#ifdef __AVX512F__
#include <immintrin.h>

enum { VECTORS = 4, STRIDE = 16 * VECTORS };

/* 64 pixels of one row. A pixel that has left keeps computing; its mask bit keeps it from counting. */
static void mandelbrot_64(uint32_t *steps, float x0, float ci_, float pixel) {
  __m512 cr[VECTORS], zr[VECTORS], zi[VECTORS], ci = _mm512_set1_ps(ci_), four = _mm512_set1_ps(4);
  __m512i n[VECTORS], one = _mm512_set1_epi32(1);
  __mmask16 alive[VECTORS];
  const __m512 iota = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  for (int k = 0; k < VECTORS; k++) {
    __m512 column = _mm512_add_ps(iota, _mm512_set1_ps(x0 + (float)(16 * k)));
    cr[k] = _mm512_add_ps(_mm512_mul_ps(column, _mm512_set1_ps(pixel)), _mm512_set1_ps(LEFT));
    zr[k] = zi[k] = _mm512_setzero_ps();
    n[k] = _mm512_setzero_si512();
    alive[k] = 0xffff;
  }
  for (int step = 0; step < LIMIT; step++) {
    unsigned any = 0;
#pragma GCC unroll 4
    for (int k = 0; k < VECTORS; k++) {
      __m512 zr2 = _mm512_mul_ps(zr[k], zr[k]), zi2 = _mm512_mul_ps(zi[k], zi[k]), cross = _mm512_mul_ps(zr[k], zi[k]);
      alive[k] = _mm512_mask_cmp_ps_mask(alive[k], _mm512_add_ps(zr2, zi2), four, _CMP_LE_OQ);
      n[k] = _mm512_mask_add_epi32(n[k], alive[k], n[k], one);
      zi[k] = _mm512_add_ps(_mm512_add_ps(cross, cross), ci);
      zr[k] = _mm512_add_ps(_mm512_sub_ps(zr2, zi2), cr[k]);
      any |= alive[k];
    }
    if (any == 0) break;
  }
  for (int k = 0; k < VECTORS; k++) _mm512_storeu_si512(steps + 16 * k, n[k]);
}

static void range_hand(const loop_args *x, uint64_t begin, uint64_t end) {
  uint64_t width = x->size;
  float pixel = SIDE / (float)width;
  for (uint64_t i = begin; i + STRIDE <= end; i += STRIDE) {
    uint64_t row = i / width;
    mandelbrot_64((uint32_t *)x->out + i, (float)(i % width), (float)row * pixel + TOP, pixel);
  }
}
void hand_mandelbrot(const loop_args *x, int threads) { spread(range_hand, x, x->count, x->size, threads); }
int hand_available(void) { return 1; }
#else
void hand_mandelbrot(const loop_args *x, int threads) { (void)x, (void)threads; }
int hand_available(void) { return 0; }
#endif

/* ---- loops that leave early, and three dimensions ---------------------------------------------------------------- */

enum { PATTERN = 64 };

static void range_search(const loop_args *x, uint64_t begin, uint64_t end) {
  const uint8_t *restrict text = x->a, *restrict pattern = x->b;
  for (uint64_t i = begin; i < end; i++) {
    uint32_t n = 0;
    while (n < PATTERN && text[i + n] == pattern[n]) n++;
    ((uint32_t *)x->out)[i] = n;
  }
}
void loop_search(const loop_args *x, int threads) { spread(range_search, x, x->count, GRAIN, threads); }

static void range_row_search(const loop_args *x, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin; i < end; i++) {
    const uint8_t *restrict row = (const uint8_t *)x->a + i * PATTERN;
    uint32_t n = 0;
    while (n < PATTERN && row[n] != 0) n++;
    ((uint32_t *)x->out)[i] = n;
  }
}
void loop_row_search(const loop_args *x, int threads) { spread(range_row_search, x, x->count, GRAIN, threads); }

static void range_sparse(const loop_args *x, uint64_t begin, uint64_t end) {
  const uint32_t *restrict start = x->a, *restrict column = x->b;
  const float *restrict from = x->c;
  for (uint64_t i = begin; i < end; i++) {
    float sum = 0;
    for (uint32_t k = start[i]; k < start[i + 1]; k++) sum = __builtin_fmaf(from[column[k]], 1.5f, sum);
    ((float *)x->out)[i] = canon_f32(sum);
  }
}
void loop_sparse(const loop_args *x, int threads) { spread(range_sparse, x, x->count, GRAIN, threads); }

enum { BOARD = 12, FIRST_ROWS = 3 };

static uint32_t queens_below(uint32_t row, uint32_t column, uint32_t fall, uint32_t rise) {
  uint32_t left[BOARD], columns[BOARD], falling[BOARD], rising[BOARD], solutions = 0;
  for (;;) {
    columns[row] = column, falling[row] = fall, rising[row] = rise;
    left[row] = ~(column | fall | rise) & ((1u << BOARD) - 1);
    for (;;) {
      if (left[row] == 0) {
        if (row == FIRST_ROWS) return solutions;
        row--;
        continue;
      }
      uint32_t place = left[row] & -left[row];
      left[row] ^= place;
      if (row == BOARD - 1) {
        solutions++;
        continue;
      }
      column = columns[row] | place, fall = (falling[row] | place) << 1, rise = (rising[row] | place) >> 1;
      row++;
      break;
    }
  }
}

static void range_queens(const loop_args *x, uint64_t begin, uint64_t end) {
  for (uint64_t i = begin; i < end; i++) {
    uint32_t column = 0, fall = 0, rise = 0, row = 0, *solutions = (uint32_t *)x->out + i;
    for (uint64_t n = i; row < FIRST_ROWS; n /= BOARD, row++) {
      uint32_t place = 1u << n % BOARD;
      if ((column | fall | rise) & place) break;
      column |= place, fall = (fall | place) << 1, rise = (rise | place) >> 1;
    }
    *solutions = row < FIRST_ROWS ? 0 : queens_below(row, column, fall, rise);
  }
}
void loop_queens(const loop_args *x, int threads) {
  spread(range_queens, x, BOARD * BOARD * BOARD, 1, threads);
}

enum { LAYERS = 16 };
#define RATE 0.125f

static void range_stencil7(const loop_args *x, uint64_t begin, uint64_t end) {
  uint64_t width = x->size, layer = x->count / LAYERS, height = layer / width;
  for (uint64_t z = begin; z < end; z++)
    for (uint64_t r = 0; r < height; r++) {
      const float *restrict a = (const float *)x->a + z * layer + r * width;
      float *restrict y = (float *)x->out + z * layer + r * width;
      if (z == 0 || z == LAYERS - 1 || r == 0 || r == height - 1) {
        memcpy(y, a, width * sizeof *y);
        continue;
      }
      y[0] = a[0], y[width - 1] = a[width - 1];
      for (uint64_t i = 1; i < width - 1; i++) {
        float sum = a[i - 1] + a[i + 1] + a[i - width] + a[i + width] + a[i - layer] + a[i + layer];
        y[i] = canon_f32(__builtin_fmaf(sum - a[i] * 6, RATE, a[i]));
      }
    }
}
void loop_stencil7(const loop_args *x, int threads) { spread(range_stencil7, x, LAYERS, 1, threads); }

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t time_loops(loop *f, const loop_args *args, int threads, uint64_t repeat) {
  uint64_t start = now();
  for (uint64_t i = 0; i < repeat; i++) f(args, threads);
  return now() - start;
}

uint64_t time_launches(int (*launch)(void *, const void *, void *), void *kernel, const void *desc, uint64_t repeat,
                       int *status) {
  uint64_t start = now();
  *status = 0;
  for (uint64_t i = 0; i < repeat && *status == 0; i++) *status = launch(kernel, desc, NULL);
  return now() - start;
}
