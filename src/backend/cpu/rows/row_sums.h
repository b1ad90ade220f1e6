/* row_sums.h - sums of rows in order F, for one type. row_kernels.c includes it with S (the type's name: f32), T, V (a
 * vector of T) and CANON, which makes a NaN canonical.
 *
 * F of n <= 4096 values adds value i + h to value i, for h from half the power of two at or above n down to 1. So
 * values i and i + h, with the first h, are a pair, whose second may be missing; a binary counter over pairs in
 * bit-reversed order of i gives F: level l holds the sum of 2^l pairs. Chunks of 4096 are added up in the same way. */
#define NAME3(a, b) a##b
#define NAME2(a, b) NAME3(a, b)
#define NAME_OF(what) NAME2(what, S)
#define STRIP (CPU_STRIP_BYTES / sizeof(T))
#define LANES (sizeof(V) / sizeof(T))

static inline V NAME_OF(load_)(const T *from) {
  V v;
  memcpy(&v, from, sizeof v);
  return v;
}
static inline void NAME_OF(store_)(T *to, V v) { memcpy(to, &v, sizeof v); }

/* to = a + b, or a if b is NULL. */
static inline void NAME_OF(add_)(T *to, const T *a, const T *b, size_t width) {
  size_t i = 0;
  if (b == NULL) {
    for (; i + LANES <= width; i += LANES) NAME_OF(store_)(to + i, NAME_OF(load_)(a + i));
    for (; i < width; i++) to[i] = a[i];
    return;
  }
  for (; i + LANES <= width; i += LANES) NAME_OF(store_)(to + i, NAME_OF(load_)(a + i) + NAME_OF(load_)(b + i));
  for (; i < width; i++) to[i] = (T)(a[i] + b[i]);
}

/* y = base + (a + b), or base + a. */
static inline void NAME_OF(finish_)(T *y, const T *base, const T *a, const T *b, size_t width) {
  size_t i = 0;
  T last[3][LANES] = {{0}};
  for (; i + LANES <= width; i += LANES) {
    V sum = NAME_OF(load_)(a + i);
    if (b != NULL) sum += NAME_OF(load_)(b + i);
    NAME_OF(store_)(y + i, CANON(NAME_OF(load_)(base + i) + sum));
  }
  if (i == width) return;
  memcpy(last[0], base + i, (width - i) * sizeof(T));
  memcpy(last[1], a + i, (width - i) * sizeof(T));
  V sum = NAME_OF(load_)(last[1]);
  if (b != NULL) memcpy(last[2], b + i, (width - i) * sizeof(T)), sum += NAME_OF(load_)(last[2]);
  NAME_OF(store_)(last[0], CANON(NAME_OF(load_)(last[0]) + sum));
  memcpy(y + i, last[0], (width - i) * sizeof(T));
}

/* F of a chunk's rows, `width` elements of each from x on. */
static void NAME_OF(fold_)(T *to, const rows_sum *r, const uint8_t *x, const uint32_t *numbers, uint32_t count,
                           size_t width) {
  T levels[CHUNK_BITS][STRIP];
  uint32_t bits = count > 1 ? log2_up(count) - 1 : 0, half = 1u << bits;
  uint32_t ahead = 1 + CPU_PAIRS_AHEAD_BYTES / CPU_STRIP_BYTES * (uint32_t)(STRIP / width);
  for (uint32_t turn = 0; turn < half; turn++) {
    if (turn + ahead < half) {
      uint32_t next = reversed(turn + ahead, bits);
      rows_ask_for(x + numbers[next] * r->x_step, width * sizeof(T));
      if (next + half < count) rows_ask_for(x + numbers[next + half] * r->x_step, width * sizeof(T));
    }
    uint32_t i = reversed(turn, bits), level = 0;
    T *sum = turn + 1 == half ? to : levels[ones_below(turn)];
    const T *first = (const T *)(const void *)(x + numbers[i] * r->x_step);
    const T *second = i + half < count ? (const T *)(const void *)(x + numbers[i + half] * r->x_step) : NULL;
    NAME_OF(add_)(sum, first, second, width);
    for (; turn >> level & 1; level++) NAME_OF(add_)(sum, levels[level], sum, width);
  }
}

/* F of all chunks. A missing chunk leaves its neighbour's sum unchanged. */
static void NAME_OF(fold_chunks_)(T *to, const rows_sum *r, const uint8_t *x, size_t width) {
  T levels[CHUNK_BITS][STRIP];
  uint32_t chunks = (r->count + CHUNK - 1) / CHUNK, bits = log2_up(chunks);
  for (uint32_t turn = 0; turn < 1u << bits; turn++) {
    uint32_t i = reversed(turn, bits), level = 0;
    T *sum = turn + 1 == 1u << bits ? to : levels[ones_below(turn)];
    if (i < chunks) {
      uint32_t left = r->count - i * CHUNK;
      NAME_OF(fold_)(sum, r, x, r->numbers + i * CHUNK, left < CHUNK ? left : CHUNK, width);
    } else NAME_OF(add_)(sum, levels[level++], NULL, width);
    for (; turn >> level & 1; level++) NAME_OF(add_)(sum, levels[level], sum, width);
  }
}

static void NAME_OF(sum_)(const rows_sum *r) {
  T folded[STRIP];
  const uint8_t *x = r->x, *base = r->base;
  T *y = (T *)(void *)r->y;
  for (size_t done = 0; done < r->length; done += STRIP, x += CPU_STRIP_BYTES, base += r->base_step) {
    size_t width = r->length - done < STRIP ? r->length - done : STRIP;
    const T *first = folded, *second = NULL;
    if (r->count <= 2) {
      first = (const T *)(const void *)(x + r->numbers[0] * r->x_step);
      if (r->count == 2) second = (const T *)(const void *)(x + r->numbers[1] * r->x_step);
    } else if (r->count <= CHUNK) NAME_OF(fold_)(folded, r, x, r->numbers, r->count, width);
    else NAME_OF(fold_chunks_)(folded, r, x, width);
    NAME_OF(finish_)(y + done, (const T *)(const void *)base, first, second, width);
  }
}

/* F of numbers in a line, which is used up. */
static T NAME_OF(line_)(T *v, uint32_t count) {
  for (uint32_t half = count > 1 ? 1u << (log2_up(count) - 1) : 0; half > 0; count = half, half /= 2) {
    uint32_t pairs = count - half, i = 0;
    for (; i + LANES <= pairs; i += LANES)
      NAME_OF(store_)(v + i, NAME_OF(load_)(v + i) + NAME_OF(load_)(v + half + i));
    for (; i < pairs; i++) v[i] = (T)(v[i] + v[half + i]);
  }
  return v[0];
}

static inline int NAME_OF(differ_)(T a, T b) { return a != b; }

static inline T NAME_OF(canon_of_)(T value) {
  T lanes[LANES] = {value};
  if (!NAME_OF(differ_)(value, value)) return value;
  NAME_OF(store_)(lanes, CANON(NAME_OF(load_)(lanes)));
  return lanes[0];
}

/* F of a list's elements; *is_wrong: there is no such one. */
static T NAME_OF(list_)(const rows_each *r, const uint32_t *listed, uint32_t count, int *is_wrong) {
  T values[CHUNK], sums[CHUNK];
  uint32_t chunks = 0;
  for (uint32_t done = 0; done < count; done += CHUNK) {
    uint32_t own = count - done < CHUNK ? count - done : CHUNK, wrong = 0;
    for (uint32_t i = 0; i < own; i++) wrong |= listed[done + i] >= r->sources;
    if ((*is_wrong |= (int)wrong) != 0) return 0;
    for (uint32_t i = 0; i < own; i++) memcpy(&values[i], r->x + listed[done + i] * r->x_step, sizeof(T));
    sums[chunks++] = NAME_OF(line_)(values, own);
  }
  return NAME_OF(line_)(sums, chunks);
}

/* Up to two elements are added without a branch, which nobody could foresee: those of a place that has fewer are the
 * next one's. */
static int NAME_OF(each_)(const rows_each *r) {
  int is_wrong = 0;
  for (uint64_t p = r->first; p < r->end && !is_wrong; p++) {
    uint32_t count = r->counted[p], begun = r->begun[p] - 1;
    const uint32_t *listed = r->listed + begun;
    T result[2], sum, next[2] = {-(T)0};
    memcpy(&result[0], r->base + p * r->base_step, sizeof sum);
    if (count <= 2 && begun < r->sources && begun + CPU_SINGLES_AHEAD < r->sources) {
      if (listed[0] >= r->sources || listed[1] >= r->sources) return 0;
      __builtin_prefetch(r->x + listed[CPU_SINGLES_AHEAD] * r->x_step);
      memcpy(&sum, r->x + listed[0] * r->x_step, sizeof sum);
      memcpy(&next[1], r->x + listed[1] * r->x_step, sizeof sum);
      sum = (T)(sum + next[count == 2]);
    } else if (count != 0) {
      if (begun > r->sources || count > r->sources - begun) return 0;
      sum = NAME_OF(list_)(r, listed, count, &is_wrong);
    } else sum = 0;
    result[1] = NAME_OF(canon_of_)((T)(result[0] + sum));
    memcpy(r->y + p * r->y_step, &result[count != 0], sizeof sum);
  }
  return !is_wrong;
}

#undef NAME3
#undef NAME2
#undef NAME_OF
#undef STRIP
#undef LANES
#undef S
#undef T
#undef V
#undef CANON
