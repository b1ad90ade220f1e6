/* contract_matvec.h - the rows of a matrix times a vector, for one type of sum. Included by contract_loops.h.
 *
 * The order of a sum along K is fixed. So lanes are rows, or chunks of one row, which lie apart in memory. A load takes
 * a piece: 16 bytes of one lane. Registers that hold pieces of several lanes are transposed within each 16 bytes. HALF
 * is a vector of one or two pieces: on x86 of 32 bytes with AVX-512 too, whose transpositions take twice as long. */

enum { NAME_OF(PIECE_) = 16 / sizeof(T), NAME_OF(HALF_) = HALF_BYTES / sizeof(T) };
#define PIECE NAME_OF(PIECE_)
#define HALF_LANES NAME_OF(HALF_)
typedef T NAME_OF(half_) __attribute__((vector_size(HALF_BYTES)));
typedef T NAME_OF(piece_) __attribute__((vector_size(16)));
#define HALF NAME_OF(half_)

static inline ALWAYS_INLINE HALF NAME_OF(pieces_)(const char *low, const char *high) {
  NAME_OF(piece_) a, b;
  memcpy(&a, low, sizeof a);
  memcpy(&b, high, sizeof b);
  return JOINED(a, b);
}

/* Loads PIECE elements of each of HALF_LANES lanes, which begin `lane` bytes apart: turned[i] has element i of each. */
static inline ALWAYS_INLINE void NAME_OF(turn_lanes_)(HALF *turned, const char *from, int64_t lane, int64_t lane_3,
                                                      int64_t lane_5, int64_t lane_7) {
#define PIECES NAME_OF(pieces_)
#if MATVEC_PIECE == 4
  HALF a = PIECES(from, from + 4 * lane), b = PIECES(from + lane, from + lane_5);
  HALF c = PIECES(from + 2 * lane, from + 2 * lane_3), d = PIECES(from + lane_3, from + lane_7);
  HALF e = LOW_32(a, b), f = HIGH_32(a, b), g = LOW_32(c, d), h = HIGH_32(c, d);
  turned[0] = LOW_64_OF_32(e, g), turned[1] = HIGH_64_OF_32(e, g);
  turned[2] = LOW_64_OF_32(f, h), turned[3] = HIGH_64_OF_32(f, h);
#else
  HALF a = PIECES(from, from + 2 * lane), b = PIECES(from + lane, from + lane_3);
  (void)lane_5, (void)lane_7;
  turned[0] = LOW_64(a, b), turned[1] = HIGH_64(a, b);
#endif
#undef PIECES
}

/* Adds `count` products in each lane. `vectors`: all groups of lanes are multiplied by one vector, each by its own, or
 * each lane by its own. `ahead`: the memory that is needed next, in the order of addresses. */
static inline ALWAYS_INLINE void NAME_OF(matvec_run_)(size_t count, const char *const *a, const char *const *x,
                                                    int64_t lane, HALF *sums, uint32_t groups, matvec_vectors vectors,
                                                    const char **ahead) {
  HALF own_sums[MATVEC_GROUPS];
  const char *at[MATVEC_GROUPS], *of[MATVEC_GROUPS], *next = *ahead;
  int64_t lane_3 = 3 * lane, lane_5 = 5 * lane, lane_7 = 7 * lane;
  /* Otherwise the compiler keeps an address for each row, and runs out of registers. */
  KEEP(lane_3);
  KEEP(lane_5);
  KEEP(lane_7);
  UNROLL
  for (uint32_t g = 0; g < groups; g++) at[g] = a[g], of[g] = x[g], own_sums[g] = sums[g];
  for (size_t k = count / PIECE; k > 0; k--) {
    UNROLL
    for (uint32_t g = 0; g < groups; g++) {
      HALF turned[PIECE], factors[PIECE];
      const char *own = of[vectors == MATVEC_ONE ? 0 : g];
      UNROLL
      for (size_t line = 0; line < HALF_LANES * 16; line += 64) {
        __builtin_prefetch(next + line, 0, 2);
        if (vectors == MATVEC_OF_LANE) __builtin_prefetch(next + (x[0] - a[0]) + line, 0, 2);
      }
      next += HALF_LANES * 16;
      NAME_OF(turn_lanes_)(turned, at[g], lane, lane_3, lane_5, lane_7);
      if (vectors == MATVEC_OF_LANE) NAME_OF(turn_lanes_)(factors, own, lane, lane_3, lane_5, lane_7);
      UNROLL
      for (uint32_t i = 0; i < PIECE; i++) {
        if (vectors != MATVEC_OF_LANE) factors[i] = ((const T *)(const void *)own)[i] - (HALF){0};
        own_sums[g] = HALF_FMA(turned[i], factors[i], own_sums[g]);
      }
      at[g] += 16;
      KEEP(at[g]);
    }
    UNROLL
    for (uint32_t g = 0; g < groups; g++) of[g] += 16;
  }
  for (size_t k = 0; k < count % PIECE; k++)
    UNROLL
    for (uint32_t g = 0; g < groups; g++) {
      HALF v;
      for (uint32_t i = 0; i < HALF_LANES; i++) v[i] = ((const T *)(const void *)(at[g] + i * lane))[k];
      own_sums[g] = HALF_FMA(v, ((const T *)(const void *)of[g])[k] - (HALF){0}, own_sums[g]);
    }
  UNROLL
  for (uint32_t g = 0; g < groups; g++) sums[g] = own_sums[g];
  *ahead = next;
}

/* Takes the sums of number `number`, `width` vectors, into a binary counter. */
static void NAME_OF(matvec_count_)(HALF *sums, HALF *levels, uint32_t width, uint64_t number, int is_last) {
  uint64_t carries = number & ~(number + 1), merge = is_last ? number : carries;
  for (; merge != 0; merge &= merge - 1)
    for (uint32_t g = 0; g < width; g++) sums[g] = levels[(uint32_t)__builtin_ctzll(merge) * width + g] + sums[g];
  for (uint32_t g = 0; g < width && !is_last; g++)
    levels[(uint32_t)__builtin_popcountll(carries) * width + g] = sums[g];
}

/* One group of rows, and up to MATVEC_GROUPS of their chunks side by side. The last chunk may be short. */
static void NAME_OF(matvec_chunks_)(const contract_matvec *t, const char *a, const char *x, size_t rest, HALF *sums,
                                  const char **ahead) {
  const char *at[MATVEC_GROUPS], *of[MATVEC_GROUPS];
  uint32_t last = (uint32_t)((rest - 1) / MATVEC_CHUNK);
  if (last >= MATVEC_GROUPS) last = MATVEC_GROUPS - 1;
  size_t count = rest - last * MATVEC_CHUNK;
  if (count > MATVEC_CHUNK) count = MATVEC_CHUNK;
  for (uint32_t g = 0; g < MATVEC_GROUPS; g++) {
    at[g] = a + (g < last ? g : last) * MATVEC_CHUNK * sizeof(T);
    of[g] = x + (g < last ? g : last) * MATVEC_CHUNK * sizeof(T);
  }
  NAME_OF(matvec_run_)(count, at, of, t->row_bytes, sums, MATVEC_GROUPS, MATVEC_OF_GROUP, ahead);
  if (count < MATVEC_CHUNK && last > 0) {
    HALF kept = sums[last];
    for (uint32_t g = 0; g < MATVEC_GROUPS; g++)
      at[g] = (g < last ? at[g] : at[0]) + (g < last ? count * sizeof(T) : 0),
      of[g] = (g < last ? of[g] : of[0]) + (g < last ? count * sizeof(T) : 0);
    NAME_OF(matvec_run_)(MATVEC_CHUNK - count, at, of, t->row_bytes, sums, MATVEC_GROUPS, MATVEC_OF_GROUP, ahead);
    sums[last] = kept;
  }
  if (last > 0) sums[0] = sums[0] + sums[1];
  if (last == 2) sums[0] = sums[0] + sums[2];
  if (last > 2) sums[0] = sums[0] + (sums[2] + sums[3]);
}

static void NAME_OF(matvec_rows_)(const contract_matvec *t, uint64_t first, uint32_t rows, void *out) {
  HALF levels[MATVEC_LEVELS * MATVEC_GROUPS], sums[MATVEC_GROUPS];
  const char *a[MATVEC_GROUPS], *x[MATVEC_GROUPS];
  uint64_t place[MATVEC_GROUPS]; /* the first row of each group, none of which ends behind the last row */
  uint32_t groups = t->by_chunks ? 1 : MATVEC_GROUPS;
  size_t step = t->by_chunks ? MATVEC_GROUPS * MATVEC_CHUNK : MATVEC_CHUNK;
  const char *ahead = (const char *)t->a + (int64_t)(first + groups * HALF_LANES) * t->row_bytes;
  for (uint32_t g = 0; g < groups; g++) {
    place[g] = first + g * HALF_LANES;
    if (place[g] > t->rows - HALF_LANES) place[g] = t->rows - HALF_LANES;
  }
  for (size_t k = 0; k < t->k; k += step) {
    size_t rest = t->k - k;
    for (uint32_t g = 0; g < MATVEC_GROUPS; g++) sums[g] = (HALF){0};
    for (uint32_t g = 0; g < groups; g++) {
      a[g] = (const char *)t->a + (int64_t)place[g] * t->row_bytes + k * sizeof(T);
      x[g] = (const char *)t->x + k * sizeof(T);
    }
    if (t->by_chunks) NAME_OF(matvec_chunks_)(t, a[0], x[0], rest, sums, &ahead);
    else
      NAME_OF(matvec_run_)
      (rest < step ? rest : step, a, x, t->row_bytes, sums, MATVEC_GROUPS, MATVEC_ONE, &ahead);
    NAME_OF(matvec_count_)(sums, levels, groups, k / step, rest <= step);
  }
  for (uint32_t g = 0; g < groups && g * HALF_LANES < rows; g++) {
    V all = {0};
    memcpy(&all, &sums[g], sizeof sums[g]);
    all = CANON(all);
    uint32_t skip = (uint32_t)(first + g * HALF_LANES - place[g]);
    memcpy((T *)out + g * HALF_LANES, (const char *)&all + skip * sizeof(T), (HALF_LANES - skip) * sizeof(T));
  }
}

/* One row, whose chunks are lanes. The last chunks are filled up with +0 and -0, whose product changes no sum. */
static void NAME_OF(matvec_row_)(const contract_matvec *t, uint64_t row, void *out) {
  enum { LANES_OF_ROW = 2 * HALF_LANES, STEP = LANES_OF_ROW * MATVEC_CHUNK };
  T levels[MATVEC_LEVELS], last_a[STEP], last_x[STEP], sum = 0;
  for (size_t k = 0; k < t->k; k += STEP) {
    size_t rest = t->k - k, used = rest < STEP ? rest : STEP;
    const char *a = (const char *)t->a + (int64_t)row * t->row_bytes + k * sizeof(T);
    const char *x = (const char *)t->x + k * sizeof(T);
    if (used < STEP) {
      memcpy(last_a, a, used * sizeof(T));
      memcpy(last_x, x, used * sizeof(T));
      for (size_t i = used; i < STEP; i++) last_a[i] = (T)0, last_x[i] = (T)-0.0;
      a = (const char *)last_a, x = (const char *)last_x;
    }
    size_t group = HALF_LANES * MATVEC_CHUNK * sizeof(T);
    const char *at[] = {a, a + group}, *of[] = {x, x + group}, *ahead = a + STEP * sizeof(T);
    HALF sums[2] = {{0}, {0}};
    T lanes[LANES_OF_ROW];
    NAME_OF(matvec_run_)(MATVEC_CHUNK, at, of, MATVEC_CHUNK * sizeof(T), sums, 2, MATVEC_OF_LANE, &ahead);
    memcpy(lanes, sums, sizeof lanes);
    for (size_t n = (used + MATVEC_CHUNK - 1) / MATVEC_CHUNK; n > 1; n = (n + 1) / 2) {
      for (size_t i = 0; i < n / 2; i++) lanes[i] = lanes[2 * i] + lanes[2 * i + 1];
      if (n % 2 != 0) lanes[n / 2] = lanes[n - 1];
    }
    uint64_t number = k / STEP, carries = number & ~(number + 1);
    sum = lanes[0];
    for (uint64_t merge = rest <= STEP ? number : carries; merge != 0; merge &= merge - 1)
      sum = levels[__builtin_ctzll(merge)] + sum;
    if (rest > STEP) levels[__builtin_popcountll(carries)] = sum;
  }
  V all = CANON(SPLAT(sum));
  memcpy(out, &all, sizeof sum);
}

#undef PIECE
#undef HALF_LANES
#undef HALF
#undef HALF_FMA
#undef MATVEC_PIECE
#undef JOINED
