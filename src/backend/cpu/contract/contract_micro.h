/* contract_micro.h - the inner loops of contractions over panels of B, for one type of sum: T in vectors V of LANES.
 * Included by contract_loops.h.
 *
 * All sums of the tile, rows x vectors, stay in registers throughout the loop over K. */

static inline ALWAYS_INLINE void NAME_OF(micro_)(uint32_t rows, uint32_t vectors, size_t count, const void *panel_a,
                                               const void *panel_b, const contract_tile *tile) {
  enum { COLUMNS = VECTORS * LANES };
  const int64_t row = tile->a_row_bytes, step = tile->a_k_bytes, b_step = tile->b_k_bytes;
  const part_mask part = PART_OF(tile->columns - (vectors - 1) * LANES, LANES); /* lanes of the last vector */
  /* Addresses five rows from one register, by multiples of the row stride that fit an instruction. */
  const char *a[3] = {panel_a, (const char *)panel_a + 5 * row, (const char *)panel_a + 10 * row}, *b = panel_b;
  V sums[MOST_ROWS][VECTORS];
  (void)part;
  UNROLL
  for (uint32_t i = 0; i < rows; i++) {
    UNROLL
    for (uint32_t j = 0; j < vectors; j++) sums[i][j] = (V){0};
  }
  for (size_t k = 0; k < count; k++, b += b_step) {
    V from[VECTORS];
    UNROLL
    for (uint32_t j = 0; j + 1 < vectors; j++) from[j] = LOAD((const T *)(const void *)b + j * LANES);
    from[vectors - 1] = LOAD_PART((const T *)(const void *)b + (vectors - 1) * LANES, part);
    if (rows > 4) __builtin_prefetch(a[0] + 8 * step);
    UNROLL
    for (uint32_t i = 0; i < rows; i++) {
      V x = SPLAT(*(const T *)(const void *)(a[i / 5] + i % 5 * row));
      UNROLL
      for (uint32_t j = 0; j < vectors; j++) sums[i][j] = FMA(x, from[j], sums[i][j]);
    }
    UNROLL
    for (uint32_t i = 0; i < (rows + 4) / 5; i++) a[i] += step;
  }
  for (uint64_t merge = tile->merge; merge != 0; merge &= merge - 1) {
    const T *level = (const T *)tile->levels + (size_t)__builtin_ctzll(merge) * tile->level_pitch;
    UNROLL
    for (uint32_t i = 0; i < rows; i++) {
      UNROLL
      for (uint32_t j = 0; j < vectors; j++) sums[i][j] = LOAD(level + i * COLUMNS + j * LANES) + sums[i][j];
    }
  }
  UNROLL
  for (uint32_t i = 0; i < rows; i++) {
    T *out = (T *)tile->out + i * tile->pitch;
    UNROLL
    for (uint32_t j = 0; j < vectors; j++) {
      V sum = tile->is_last ? CANON(sums[i][j]) : sums[i][j];
      if (j + 1 < vectors) STORE(out + j * LANES, sum);
      else STORE_PART(out + j * LANES, part, sum);
    }
  }
}

#define MICRO_OF(rows)                                                                                                \
  static void NAME_OF(micro_##rows##_)(size_t count, const void *a, const void *b, const contract_tile *tile) {        \
    NAME_OF(micro_)(rows, VECTORS, count, a, b, tile);                                                                \
  }                                                                                                                   \
  static void NAME_OF(narrow_##rows##_)(size_t count, const void *a, const void *b, const contract_tile *tile) {       \
    NAME_OF(micro_)(rows, 1, count, a, b, tile);                                                                      \
  }
MICRO_OF(1)
MICRO_OF(2)
MICRO_OF(4)
#if MOST_ROWS == 6
MICRO_OF(6)
#else
MICRO_OF(8)
#endif
#if MOST_ROWS == 14
MICRO_OF(14)
#endif
#undef MICRO_OF
