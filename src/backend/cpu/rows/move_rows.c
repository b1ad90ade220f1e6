/* move_rows.c - rows by number: looks up what is bound, checks the numbers, and cuts the work into pieces for
 * threads. */
#include "backend/cpu/rows/move_rows.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include "atlas/tables.h"
#include "backend/cpu/engine/stream.h"
#include "backend/cpu/rows/row_kernels.h"
#include "base/threads.h"

#include <stdatomic.h>
#include <stdint.h>

typedef struct job {
  const atlas_launch *launch;
  const hg_rows *of;
  const row_kernels *kernels;
  rows_type sum;
  uint32_t size; /* bytes of an element */
  uint32_t copies; /* of HG_ROWS_COPIED with as many rows that are made together; else 1 */
  uint8_t *y[HG_MOST_COPIES];
  const uint8_t *x[HG_MOST_COPIES], *index, *base; /* row 0 */
  uint32_t *counted, *begun, *listed;
  uint64_t rows, rows_a_part; /* rows of all groups; of a part */
  int streams;     /* stores to y bypass the caches */
  int is_constant; /* all elements of the base are equal */
  uint64_t constant[CPU_STRIP_BYTES / sizeof(uint64_t)]; /* to this */
  _Atomic int is_wrong; /* 1: a number is out of range */
} job;

static const row_kernels *kernels_of(cpu_isa isa) {
#if defined __x86_64__ || defined __i386__
  if (isa == CPU_ISA_AVX512) return &hg_rows_avx512;
  if (isa == CPU_ISA_AVX2) return &hg_rows_avx2;
#endif
  (void)isa;
  return &hg_rows_baseline;
}

/* ROWS_TYPES if sums have no such type. */
static rows_type sum_of(uint8_t type) {
  if (type == ATLAS_f32) return ROWS_F32;
  if (type == ATLAS_f64) return ROWS_F64;
  if (!atlas_is_integer((atlas_type)type)) return ROWS_TYPES;
  switch (atlas_bytes((atlas_type)type)) {
  case 1: return ROWS_I8;
  case 2: return ROWS_I16;
  case 4: return ROWS_I32;
  default: return ROWS_I64;
  }
}

/* ---- bound memory ------------------------------------------------------------------------------------------------ */

/* Adds (count - 1) steps to an element's number. 0 if the result is not below the end. */
static int go_on(uint64_t *at, uint64_t count, uint64_t step, uint64_t end) {
  if (*at >= end || (step > 0 && count - 1 > (end - 1 - *at) / step)) return 0;
  *at += (count - 1) * step;
  return 1;
}

/* Row 0 of groups of `count` rows of `length` elements; NULL if they do not lie within the bound memory. */
static uint8_t *find_rows(const job *j, const atlas_launch *launch, const hg_rows_of *rows, uint64_t count,
                          uint64_t length, uint64_t size) {
  const atlas_span *span = &launch->arguments[rows->slot].span;
  uint64_t last = rows->first, end = span->byte_count / size;
  if (count == 0 || j->of->groups == 0 || length == 0) return span->memory; /* nothing is read */
  if (!go_on(&last, j->of->groups, rows->outer, end) || !go_on(&last, count, rows->stride, end)) return NULL;
  return go_on(&last, length, rows->gap + 1, end) ? span->memory + rows->first * size : NULL;
}

static uint32_t *find_list(const job *j, const atlas_launch *launch, uint64_t slot, uint64_t count) {
  hg_rows_of rows = {.slot = slot, .stride = 1};
  return (uint32_t *)(void *)find_rows(j, launch, &rows, count, 1, sizeof(uint32_t));
}

static int finds_lists(job *j, const atlas_launch *launch, uint64_t places, uint64_t sources) {
  j->counted = find_list(j, launch, j->of->counted, places);
  j->begun = find_list(j, launch, j->of->begun, places);
  j->listed = find_list(j, launch, j->of->listed, sources);
  return j->counted != NULL && j->begun != NULL && j->listed != NULL;
}

static int finds_index(job *j, const atlas_launch *launch) {
  const hg_rows *r = j->of;
  j->index = find_rows(j, launch, &r->index, r->count, 1, atlas_bytes((atlas_type)r->index_type));
  return j->index != NULL;
}

static uint8_t *find_y(const job *j, const atlas_launch *launch) {
  return find_rows(j, launch, &j->of->y, j->of->count, j->of->length, j->size);
}

static void fill_constant(job *j) {
  uint64_t bits = j->of->base_bits;
  for (uint32_t width = j->size; width < sizeof bits; width *= 2) bits |= bits << 8 * width;
  for (size_t i = 0; i < sizeof j->constant / sizeof *j->constant; i++) j->constant[i] = bits;
}

static int finds_taken(job *j, const atlas_launch *launch) {
  const hg_rows *r = j->of;
  hg_rows_of all = r->x; /* the rows that numbers select; each row of y is a stride on */
  if (r->count > 0 && !go_on(&all.first, r->count, r->x.stride, UINT64_MAX)) return 0;
  all.stride = r->stride;
  if (find_rows(j, launch, &all, r->extent, r->length, j->size) == NULL) return 0;
  j->x[0] = find_rows(j, launch, &r->x, 1, r->length, j->size);
  j->y[0] = find_y(j, launch);
  return finds_index(j, launch) && j->x[0] != NULL && j->y[0] != NULL;
}

/* Not over what is read, where the program reads an element before it writes there. */
static int finds_copied(job *j, const atlas_launch *launch) {
  for (uint32_t i = 0; i < j->copies; i++) {
    const hg_rows *r = j->of + i;
    j->x[i] = find_rows(j, launch, &r->x, r->count, r->length, j->size);
    j->y[i] = find_rows(j, launch, &r->y, r->count, r->length, j->size);
    if (j->x[i] == NULL || j->y[i] == NULL) return 0;
    if (launch->arguments[r->x.slot].span.memory == launch->arguments[r->y.slot].span.memory) return 0;
  }
  return 1;
}

/* 1 if some list is longer than sums support. */
static int has_long_list(const job *j) {
  uint64_t place = 0;
  if (j->of->extent <= ROWS_MOST) return 0;
  while (place < j->of->count && j->counted[place] <= ROWS_MOST) place++;
  return place < j->of->count;
}

static int finds_added(job *j, const atlas_launch *launch) {
  const hg_rows *r = j->of;
  j->x[0] = find_rows(j, launch, &r->x, r->extent, r->length, j->size);
  j->y[0] = find_y(j, launch);
  j->sum = sum_of(r->type);
  if (r->base.slot == UINT64_MAX) {
    j->is_constant = 1;
    fill_constant(j);
    j->base = (const uint8_t *)j->constant;
  } else j->base = find_rows(j, launch, &r->base, r->count, r->length, j->size);
  return r->length > 0 && j->sum != ROWS_TYPES && j->x[0] != NULL && j->y[0] != NULL && j->base != NULL &&
         finds_lists(j, launch, r->count, r->extent) && !has_long_list(j);
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

#define NUMBERS(t, T)                                                                              \
  case ATLAS_##t:                                                                                  \
    for (uint32_t i = 0; i < count; i++) {                                                         \
      T number;                                                                                    \
      memcpy(&number, index + i * step * sizeof number, sizeof number);                            \
      to[i] = (int64_t)number;                                                                     \
    }                                                                                              \
    break;

/* Reads numbers from `index` on. 0 if there is no loop for the type. */
static int read_numbers(const uint8_t *index, atlas_type type, uint64_t step, uint32_t count, int64_t *to) {
  if (type == ATLAS_i64 && step == 1) {
    memcpy(to, index, count * sizeof *to);
    return 1;
  }
  switch (type) {
    NUMBERS(i8, int8_t)
    NUMBERS(i16, int16_t)
    NUMBERS(i32, int32_t)
    NUMBERS(i64, int64_t)
    NUMBERS(u8, uint8_t)
    NUMBERS(u16, uint16_t)
    NUMBERS(u32, uint32_t)
  default: return 0;
  }
  return 1;
}

static int are_numbers(const int64_t *numbers, uint32_t count, int64_t extent) {
  uint64_t wrong = 0; /* its sign bit is set if a number is below 0 or past the end */
  for (uint32_t i = 0; i < count; i++) wrong |= (uint64_t)numbers[i] | ((uint64_t)extent - 1 - (uint64_t)numbers[i]);
  return wrong >> 63 == 0;
}

/* Resolves negative numbers. 0 if one is out of range. */
static int settle_numbers(const hg_rows *r, int64_t *numbers, uint32_t count) {
  const int64_t extent = (int64_t)r->extent;
  if (are_numbers(numbers, count, extent)) return 1;
  for (uint32_t i = 0; i < count && r->wraps; i++) numbers[i] += numbers[i] < 0 ? extent : 0;
  for (uint32_t i = 0; i < count && r->clamps; i++) {
    int64_t below = numbers[i] < extent ? numbers[i] : extent - 1;
    numbers[i] = below > 0 ? below : 0;
  }
  return are_numbers(numbers, count, extent);
}

/* The numbers of a group's rows from `first` on; 0 if one is out of range. */
static int find_numbers(const job *j, uint64_t group, uint64_t first, uint32_t count, int64_t *numbers) {
  atlas_type type = (atlas_type)j->of->index_type;
  uint64_t step = j->of->index.stride, at = group * j->of->index.outer + first * step;
  return read_numbers(j->index + at * atlas_bytes(type), type, step, count, numbers) &&
         settle_numbers(j->of, numbers, count);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

static uint32_t piece(uint64_t first, uint64_t end) {
  return (uint32_t)(end - first < CPU_ROWS_CHECKED ? end - first : CPU_ROWS_CHECKED);
}

/* Of the copy with that number. */
static int take_piece(const job *j, uint32_t copy, uint64_t group, uint64_t first, uint32_t count) {
  const hg_rows *r = j->of + copy;
  int64_t numbers[CPU_ROWS_CHECKED];
  const uint8_t *rows[CPU_ROWS_CHECKED];
  if (r->kind == HG_ROWS_COPIED) memset(numbers, 0, count * sizeof *numbers);
  else if (!find_numbers(j, group, first, count, numbers)) return 0;
  for (uint32_t i = 0; i < count; i++)
    rows[i] =
        j->x[copy] + (group * r->x.outer + (first + i) * r->x.stride + (uint64_t)numbers[i] * r->stride) * j->size;
  uint8_t *y = j->y[copy] + (group * r->y.outer + first * r->y.stride) * j->size;
  uint64_t step = r->y.stride * j->size, bytes = r->length * j->size;
  int is_spread = (r->x.gap | r->y.gap) != 0;
  for (uint32_t i = 0; i < count && is_spread; i++)
    j->kernels->spread(y + i * step, r->y.gap + 1, rows[i], r->x.gap + 1, r->length, j->size);
  if (is_spread) return 1;
  int streams = j->streams && (((uintptr_t)y | step | bytes) & (ROWS_LINE - 1)) == 0;
  (streams ? j->kernels->copy_past_caches : j->kernels->copy)(y, step, rows, count, bytes);
  return 1;
}

/* Copies rows of all groups. What is copied together lies near in y: a few rows of each in turn. A long row alone is
 * not asked for ahead, since the processor foresees it. */
static int take(const job *j, uint64_t first, uint64_t end) {
  uint64_t group = first / j->of->count, row = first % j->of->count;
  uint64_t most = UINT64_MAX, bytes = j->of->length * j->size;
  if (j->of->kind == HG_ROWS_COPIED && bytes > CPU_COPIED_ALONE) most = 1;
  while (first < end) {
    uint64_t left = j->of->count - row;
    if (left > most) left = most;
    uint32_t count = piece(first, left < end - first ? first + left : end);
    for (uint32_t i = 0; i < j->copies; i++)
      if (!take_piece(j, i, group, row, count)) return 0;
    first += count;
    row += count;
    if (row == j->of->count) group++, row = 0;
  }
  return 1;
}

/* ---- lists ------------------------------------------------------------------------------------------------------- */

static void count_piece(const job *j, const int64_t *numbers, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) j->counted[numbers[i]]++;
}

/* Lists lie in the order of places; `begun` becomes the seat of each one's next source, from 1 on. 0 if the numbers are
 * not those that were counted, because another thread has changed them. */
static int list_piece(const job *j, uint64_t first, const int64_t *numbers, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t seat = j->begun[numbers[i]]++ - 1;
    if (seat >= j->of->count) return 0;
    j->listed[seat] = (uint32_t)(first + i);
  }
  return 1;
}

static int list_all(const job *j) {
  int64_t numbers[CPU_ROWS_CHECKED];
  uint64_t end = j->of->count, places = j->of->extent;
  uint32_t next = 1;
  int is_well = 1;
  for (uint64_t first = 0; first < end; first += CPU_ROWS_CHECKED) {
    if (!find_numbers(j, 0, first, piece(first, end), numbers)) return 0;
    count_piece(j, numbers, piece(first, end));
  }
  for (uint64_t p = 0; p < places; next += j->counted[p++]) j->begun[p] = next;
  for (uint64_t first = 0; first < end && is_well; first += CPU_ROWS_CHECKED)
    is_well = find_numbers(j, 0, first, piece(first, end), numbers) &&
              list_piece(j, first, numbers, piece(first, end));
  for (uint64_t p = 0; p < places; p++) j->begun[p] -= j->counted[p];
  return is_well;
}

static int list(const job *j) {
  if (list_all(j)) return 1;
  memset(j->counted, 0, j->of->extent * sizeof *j->counted);
  memset(j->begun, 0, j->of->extent * sizeof *j->begun);
  return 0;
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

/* The list comes from an earlier launch, which may have faulted. */
static int is_sound(const job *j, uint32_t first, uint32_t count) {
  uint32_t is_wrong = 0;
  if (first > j->of->extent || count > j->of->extent - first) return 0;
  for (uint32_t i = 0; i < count; i++) is_wrong |= j->listed[first + i] >= j->of->extent;
  return !is_wrong;
}

/* Prefetches the rows of a place a little further on. */
static void ask_ahead(const job *j, uint64_t place) {
  uint64_t bytes = j->of->length * j->size, first = j->begun[place] - UINT64_C(1);
  for (uint64_t i = 0; i < j->counted[place] && i <= CPU_PLACE_AHEAD_BYTES / bytes && first + i < j->of->extent; i++)
    if (j->listed[first + i] < j->of->extent)
      rows_ask_for(j->x[0] + j->listed[first + i] * j->of->x.stride * j->size, bytes);
}

/* Fills places without sources. */
static void put_base(const job *j, uint64_t first, uint64_t end) {
  const hg_rows *r = j->of;
  uint64_t bytes = r->length * j->size, step = r->y.stride * j->size, rows = end - first;
  if (step == bytes && (j->is_constant || r->base.stride == r->length)) bytes *= rows, rows = 1;
  for (uint64_t i = 0; i < rows; i++) {
    uint8_t *y = j->y[0] + first * step + i * step;
    const uint8_t *base = j->base + (first + i) * r->base.stride * j->size;
    if (j->is_constant && r->base_bits == 0 && !j->streams) memset(y, 0, bytes);
    else if (j->is_constant) (j->streams ? stream_fill : fill_plain)(y, bytes, j->constant[0]);
    else if (j->streams) stream_copy(y, base, bytes);
    else memcpy(y, base, bytes);
  }
}

static int add(const job *j, uint64_t first, uint64_t end) {
  const hg_rows *r = j->of;
  rows_sum sum = {.x = j->x[0],
                  .base_step = j->is_constant ? 0 : CPU_STRIP_BYTES,
                  .x_step = r->x.stride * j->size,
                  .length = r->length};
  if (r->length == 1) {
    rows_each each = {.y = j->y[0], .base = j->base, .x = j->x[0], .y_step = r->y.stride * j->size,
                      .base_step = j->is_constant ? 0 : r->base.stride * j->size, .x_step = sum.x_step,
                      .counted = j->counted, .begun = j->begun, .listed = j->listed,
                      .first = first, .end = end, .sources = r->extent};
    return j->kernels->add_each[j->sum](&each);
  }
  for (uint64_t p = first; p < end; p++) {
    uint64_t empty = p;
    while (p < end && j->counted[p] == 0) p++;
    if (p > empty) put_base(j, empty, p);
    if (p == end) break;
    if (p + CPU_PLACES_AHEAD < end) ask_ahead(j, p + CPU_PLACES_AHEAD);
    uint32_t begun = j->begun[p] - 1;
    sum.count = j->counted[p];
    if (!is_sound(j, begun, sum.count)) return 0;
    sum.numbers = j->listed + begun;
    sum.y = j->y[0] + p * r->y.stride * j->size;
    sum.base = j->is_constant ? j->base : j->base + p * r->base.stride * j->size;
    j->kernels->add[j->sum](&sum);
  }
  return 1;
}

/* ---- extremes ---------------------------------------------------------------------------------------------------- */

static int finds_extremes(job *j, const atlas_launch *launch) {
  const hg_rows *r = j->of;
  j->x[0] = find_rows(j, launch, &r->x, r->count, r->length, j->size);
  j->y[0] = find_rows(j, launch, &r->y, r->count, 1, atlas_bytes((atlas_type)r->index_type));
  return j->x[0] != NULL && j->y[0] != NULL;
}

static int find_extremes(const job *j, uint64_t first, uint64_t end) {
  const hg_rows *r = j->of;
  rows_extreme *extreme = r->is_least ? j->kernels->least : j->kernels->greatest;
  uint64_t size = atlas_bytes((atlas_type)r->index_type);
  for (uint64_t i = first; i < end; i++) {
    uint64_t group = i / r->count, row = i % r->count;
    uint64_t value = extreme(j->x[0] + group * r->x.outer + row * r->x.stride, r->length);
    if (r->type == ATLAS_bool) value = value != 0;
    memcpy(j->y[0] + (group * r->y.outer + row * r->y.stride) * size, &value, size); /* little-endian */
  }
  return 1;
}

/* ---- the launch -------------------------------------------------------------------------------------------------- */

static void do_part(void *user, uint64_t part, uint32_t worker) {
  job *j = user;
  uint64_t first = part * j->rows_a_part, end = first + j->rows_a_part;
  (void)worker;
  if (end > j->rows) end = j->rows;
  if (atlas_is_cancelled(j->launch)) return;
  int is_done = j->of->kind == HG_ROWS_ADDED     ? add(j, first, end)
                : j->of->kind == HG_ROWS_EXTREME ? find_extremes(j, first, end)
                                                 : take(j, first, end);
#if defined __SSE2__
  if (j->streams) _mm_sfence(); /* streaming stores need it to be ordered with other stores */
#endif
  if (!is_done) atomic_store_explicit(&j->is_wrong, 1, memory_order_relaxed);
}

static uint32_t useful_threads(const job *j, uint32_t most) {
  const hg_rows *r = j->of;
  uint64_t rows = j->rows + (r->kind == HG_ROWS_ADDED ? r->extent : 0);
  return hg_parallel_threads(rows * (CPU_NS_A_ROW + r->length * j->size / CPU_ROWS_BYTES_PER_NS), most);
}

static int finds_all(job *j, const atlas_launch *launch) {
  switch ((hg_rows_kind)j->of->kind) {
  case HG_ROWS_COPIED: return finds_copied(j, launch);
  case HG_ROWS_EXTREME: return finds_extremes(j, launch);
  case HG_ROWS_TAKEN: return finds_taken(j, launch);
  case HG_ROWS_LISTED: return finds_index(j, launch) && finds_lists(j, launch, j->of->extent, j->of->count);
  default: return finds_added(j, launch);
  }
}

static int move_rows(cpu_isa isa, const atlas_launch *launch, const hg_rows *rows, uint32_t copies,
                     uint64_t stream_bytes, uint32_t threads) {
  job j = {.launch = launch, .of = rows, .kernels = kernels_of(isa), .size = atlas_bytes((atlas_type)rows->type)};
  j.copies = copies;
  if (!finds_all(&j, launch)) return 0;
  if (rows->kind == HG_ROWS_LISTED) return list(&j);
  j.rows = rows->groups * rows->count;
  j.streams = rows->kind != HG_ROWS_EXTREME && j.rows * rows->length * j.size >= stream_bytes;
  if (threads == 0) threads = useful_threads(&j, launch->most_threads);
  uint64_t parts = (uint64_t)threads * CPU_PARTS_A_THREAD,
           pieces = j.rows * rows->length * j.size / CPU_ROWS_PART_BYTES;
  if (threads == 1) parts = 1;
  if (pieces > parts) parts = pieces; /* a launch can be cancelled between pieces */
  j.rows_a_part = (j.rows + parts - 1) / parts;
  if (j.rows > 0) hg_parallel(threads, (j.rows + j.rows_a_part - 1) / j.rows_a_part, do_part, &j);
  return !atomic_load_explicit(&j.is_wrong, memory_order_relaxed);
}

int hg_cpu_move_rows(cpu_isa isa, const atlas_launch *launch, uint64_t stream_bytes, uint32_t threads) {
  const hg_rows *rows = launch->rows, *end = rows + rows->more + 1;
  while (rows < end) {
    uint32_t copies = 1;
    while (rows + copies < end && rows[copies].groups == rows->groups && rows[copies].count == rows->count) copies++;
    if (!move_rows(isa, launch, rows, copies, stream_bytes, threads)) return 0;
    rows += copies;
  }
  return 1;
}
