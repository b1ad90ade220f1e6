/* row_kernels.h - the inner loops of row moves, compiled once for each instruction set (row_kernels.c). */
#ifndef HG_ROW_KERNELS_H
#define HG_ROW_KERNELS_H

#include "backend/cpu/engine/cpu_tuning.h"

#include <stddef.h>
#include <stdint.h>

/* Copies `count` rows of `bytes` from the addresses in `from` to `to`, to_step apart. The streaming variant wants `to`,
 * the step and the bytes to be multiples of ROWS_LINE; the caller ends with a fence. */
typedef void rows_copy(uint8_t *to, size_t to_step, const uint8_t *const *from, uint32_t count, size_t bytes);

/* Copies `count` elements of `size` bytes, which lie so many elements apart. */
typedef void rows_spread(uint8_t *to, uint64_t to_step, const uint8_t *from, uint64_t from_step, uint64_t count,
                         uint32_t size);

/* The greatest of some bytes, or the least. */
typedef uint8_t rows_extreme(const uint8_t *from, uint64_t count);

/* y = base + F of rows of x, `length` elements of each. The numbers are in increasing order of their sources. */
typedef struct rows_sum {
  uint8_t *y;
  const uint8_t *base, *x;
  size_t base_step;        /* bytes to the base's next element if they are consecutive; 0: all are equal */
  size_t x_step;           /* bytes from row to row */
  size_t length;           /* elements */
  const uint32_t *numbers; /* rows of x */
  uint32_t count;          /* how many, 1 to ROWS_MOST */
} rows_sum;

typedef void rows_add(const rows_sum *sum);

/* The same of single elements, for places from `first` to before `end`; a place without a list keeps its base. */
typedef struct rows_each {
  uint8_t *y;
  const uint8_t *base, *x;
  size_t y_step, base_step, x_step; /* bytes from element to element; base_step 0: all are equal */
  const uint32_t *counted, *begun, *listed; /* of a place; lists begin at begun - 1 */
  uint64_t first, end, sources;
} rows_each;

typedef int rows_add_each(const rows_each *each); /* 0: the lists are none */

/* The type of sums. Integers wrap. */
typedef enum rows_type { ROWS_F32, ROWS_F64, ROWS_I8, ROWS_I16, ROWS_I32, ROWS_I64, ROWS_TYPES } rows_type;

enum { ROWS_LINE = 64, ROWS_MOST = 1 << 24 /* most rows of a sum: chunks of chunks */ };

/* Prefetches the head of a row; the hardware prefetches the rest. */
static inline void rows_ask_for(const uint8_t *row, size_t bytes) {
  for (size_t at = 0; at < bytes && at < CPU_ROW_AHEAD_BYTES; at += ROWS_LINE) __builtin_prefetch(row + at);
}

typedef struct row_kernels {
  rows_copy *copy, *copy_past_caches;
  rows_spread *spread;
  rows_extreme *greatest, *least;
  rows_add *add[ROWS_TYPES];
  rows_add_each *add_each[ROWS_TYPES];
} row_kernels;

extern const row_kernels hg_rows_baseline, hg_rows_avx2, hg_rows_avx512;

#endif
