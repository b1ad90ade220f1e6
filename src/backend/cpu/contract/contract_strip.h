/* contract_strip.h - a few rows of A times a strip of columns of B that lie side by side, for one type of sum. Included
 * by contract_loops.h.
 *
 * The sums lie in memory, in the first cache. STRIP_DEPTH rows of B are added at once, from end to end of the strip, so
 * that B is read in the order of addresses. The last vector ends where the strip does; its sums lie apart, since it may
 * share columns with the vector before it. */

static inline ALWAYS_INLINE void NAME_OF(strip_add_)(uint32_t rows, uint32_t depth, const V *x, const char *b,
                                                   int64_t b_step, T *sums, size_t pitch) {
  V from[STRIP_DEPTH];
  UNROLL
  for (uint32_t k = 0; k < depth; k++) from[k] = LOAD((const T *)(const void *)(b + k * b_step));
  UNROLL
  for (uint32_t i = 0; i < rows; i++) {
    V sum = LOAD(sums + i * pitch);
    UNROLL
    for (uint32_t k = 0; k < depth; k++) sum = FMA(x[i * depth + k], from[k], sum);
    STORE(sums + i * pitch, sum);
  }
}

static inline ALWAYS_INLINE void NAME_OF(strip_rows_)(uint32_t rows, uint32_t depth, const char *a, const char *b,
                                                    const contract_tile *tile, T *last) {
  const int64_t step = tile->b_k_bytes;
  V x[STRIP_ROWS * STRIP_DEPTH];
  UNROLL
  for (uint32_t i = 0; i < rows; i++) {
    UNROLL
    for (uint32_t k = 0; k < depth; k++)
      x[i * depth + k] = SPLAT(*(const T *)(const void *)(a + i * tile->a_row_bytes + k * tile->a_k_bytes));
  }
  size_t j = 0;
  for (; j + LANES <= tile->columns; j += LANES)
    NAME_OF(strip_add_)(rows, depth, x, b + j * sizeof(T), step, (T *)tile->out + j, tile->pitch);
  b += (tile->columns - LANES) * sizeof(T);
  if (j < tile->columns) NAME_OF(strip_add_)(rows, depth, x, b, step, last, LANES);
}

/* Takes the sums of one vector into the tile's counter, and stores them. */
static inline ALWAYS_INLINE void NAME_OF(strip_end_)(const contract_tile *tile, size_t i, size_t j, const T *sums) {
  V sum = LOAD(sums);
  const T *levels = (const T *)tile->levels + i * tile->columns + j;
  for (uint64_t merge = tile->merge; merge != 0; merge &= merge - 1)
    sum = LOAD(levels + (size_t)__builtin_ctzll(merge) * tile->level_pitch) + sum;
  STORE((T *)tile->out + i * tile->pitch + j, tile->is_last ? CANON(sum) : sum);
}

static inline ALWAYS_INLINE void NAME_OF(strip_)(uint32_t rows, size_t count, const void *from_a, const void *from_b,
                                               const contract_tile *tile) {
  const char *a = from_a, *b = from_b;
  T last[STRIP_ROWS * LANES] = {0};
  for (uint32_t i = 0; i < rows; i++) memset((T *)tile->out + i * tile->pitch, 0, tile->columns * sizeof(T));
  for (; count >= STRIP_DEPTH; count -= STRIP_DEPTH) {
    NAME_OF(strip_rows_)(rows, STRIP_DEPTH, a, b, tile, last);
    a += STRIP_DEPTH * tile->a_k_bytes, b += STRIP_DEPTH * tile->b_k_bytes;
  }
  for (; count > 0; count--, a += tile->a_k_bytes, b += tile->b_k_bytes)
    NAME_OF(strip_rows_)(rows, 1, a, b, tile, last);
  for (uint32_t i = 0; i < rows; i++) {
    size_t j = 0;
    for (; j + LANES <= tile->columns; j += LANES)
      NAME_OF(strip_end_)(tile, i, j, (const T *)tile->out + i * tile->pitch + j);
    if (j < tile->columns) NAME_OF(strip_end_)(tile, i, tile->columns - LANES, last + i * LANES);
  }
}

#define STRIP_OF(name, rows)                                                                                 \
  static void NAME_OF(name)(size_t count, const void *a, const void *b, const contract_tile *tile) {         \
    NAME_OF(strip_)(rows, count, a, b, tile);                                                                \
  }
STRIP_OF(strip_1_, 1)
STRIP_OF(strip_2_, 2)
STRIP_OF(strip_3_, STRIP_ROWS - 1)
STRIP_OF(strip_4_, STRIP_ROWS)
#undef STRIP_OF
