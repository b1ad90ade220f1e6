/* contract_micro.h - one inner loop of contractions: sums of type T in vectors V of LANES; MICRO is its name, and
 * EACH_ROW(X) says X(i) for each row of the panel of A. contract_kernels.c includes it once for each number of rows.
 *
 * All sums of the tile, rows x VECTORS vectors, stay in registers throughout the loop over K. */

#if VECTORS == 3
#  define EACH_VECTOR(X, i) X(i, 0) X(i, 1) X(i, 2)
#else
#  define EACH_VECTOR(X, i) X(i, 0) X(i, 1)
#endif

static void MICRO(size_t count, const void *panel_a, const void *panel_b, const contract_tile *tile) {
  enum { COLUMNS = VECTORS * LANES };
  /* Addresses five rows from one register, by multiples of the row stride that fit an instruction. */
  const int64_t row = tile->a_row_bytes, step = tile->a_k_bytes, b_step = tile->b_k_bytes;
  const char *a0 = panel_a;
#if ROWS > 5
  const char *a1 = a0 + 5 * row;
#endif
#if ROWS > 10
  const char *a2 = a0 + 10 * row;
#endif
  const char *b = panel_b;
  (void)row; /* unused with one row */
#define ZERO(i, j) V sum##i##_##j = {0};
#define ZERO_ROW(i) EACH_VECTOR(ZERO, i)
  EACH_ROW(ZERO_ROW)
  for (size_t k = 0; k < count; k++, b += b_step) {
    V b0 = LOAD((const T *)(const void *)b), b1 = LOAD((const T *)(const void *)b + LANES);
#if VECTORS == 3
    V b2 = LOAD((const T *)(const void *)b + 2 * LANES);
#endif
#if ROWS > 4
    __builtin_prefetch(a0 + 8 * step);
#endif
#define MULTIPLY_ADD(i, j) sum##i##_##j = FMA(x, b##j, sum##i##_##j);
#define MULTIPLY_ADD_ROW(i)      \
  {                              \
    V x = SPLAT(*(const T *)(const void *)(ROW_##i)); \
    EACH_VECTOR(MULTIPLY_ADD, i) \
  }
    EACH_ROW(MULTIPLY_ADD_ROW)
    a0 += step;
#if ROWS > 5
    a1 += step;
#endif
#if ROWS > 10
    a2 += step;
#endif
  }
  for (uint64_t merge = tile->merge; merge != 0; merge &= merge - 1) {
    const T *level = (const T *)tile->levels + (size_t)__builtin_ctzll(merge) * tile->level_pitch;
#define ADD(i, j) sum##i##_##j = LOAD(level + i * COLUMNS + j * LANES) + sum##i##_##j;
#define ADD_ROW(i) EACH_VECTOR(ADD, i)
    EACH_ROW(ADD_ROW)
  }
  if (tile->is_last) {
#define CANONICAL(i, j) sum##i##_##j = CANON(sum##i##_##j);
#define CANONICAL_ROW(i) EACH_VECTOR(CANONICAL, i)
    EACH_ROW(CANONICAL_ROW)
  }
  T *out = tile->out;
  size_t pitch = tile->pitch;
#define PUT(i, j) STORE(out + i * pitch + j * LANES, sum##i##_##j);
#define PUT_ROW(i) EACH_VECTOR(PUT, i)
  EACH_ROW(PUT_ROW)
}

#undef EACH_VECTOR
#undef ZERO
#undef ZERO_ROW
#undef MULTIPLY_ADD
#undef MULTIPLY_ADD_ROW
#undef ADD
#undef ADD_ROW
#undef CANONICAL
#undef CANONICAL_ROW
#undef PUT
#undef PUT_ROW
#undef MICRO
#undef EACH_ROW
#undef ROWS
