/* test_moved_rows.c - what the CPU does to whole rows by number beside plain statements of it: rows that are taken,
 * copies, extremes, lists of sources, and sums in order F; on every instruction set of this machine and by 1, 2 and
 * 3 threads, with stores through the caches and past them. Bytes between rows must stay. test_moved_rows SEED: other
 * cases. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "atlas/arith.h"
#include "atlas/tables.h"
#include "backend/cpu/rows/move_rows.h"
#include "check.h"
#include "environment.h"

#include <stdlib.h>

enum { X, Y, INDEX, BASE, COUNTED, BEGUN, LISTED, SLOTS, CHUNK = 4096, SPARE = 0xa5 };

static uint64_t state = 1;

static uint32_t next_random(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(state >> 32);
}

static uint64_t get(const uint8_t *from, uint8_t type, uint64_t at) {
  uint64_t bits = 0;
  memcpy(&bits, from + at * atlas_bytes(type), atlas_bytes(type)); /* little-endian */
  return bits;
}

static void put(uint8_t *to, uint8_t type, uint64_t at, uint64_t bits) {
  memcpy(to + at * atlas_bytes(type), &bits, atlas_bytes(type));
}

/* A number, now and then -0, an infinity or a NaN of some payload. */
static uint64_t any_value(uint8_t type) {
  static const uint32_t singles[] = {0x80000000, 0x7f800000, 0xff800000, 0x7fc12345, 0xffa00001};
  uint32_t word = next_random();
  if (!atlas_is_float((atlas_type)type)) return ((uint64_t)word << 32 | next_random()) & atlas_mask((atlas_type)type);
  float value = (float)((int)(word % 20001) - 10000) / 7919.0f;
  if ((word >> 16 & 127) == 0) value = atlas_as_f32(singles[word % 5]);
  return type == ATLAS_f32 ? atlas_bits_of_f32(value) : atlas_bits_of_f64((double)value / 3);
}

/* ---- what is bound ----------------------------------------------------------------------------------------------- */

typedef struct bound {
  hg_rows rows;
  atlas_argument arguments[SLOTS];
  uint8_t *wanted; /* in Y's memory */
} bound;

static uint8_t *memory_of(const bound *b, uint32_t slot) { return b->arguments[slot].span.memory; }

static uint8_t *bind_bytes(bound *b, uint32_t slot, uint64_t byte_count) {
  atlas_span *span = &b->arguments[slot].span;
  span->memory = malloc(byte_count + 1); /* of nothing, too, so that a sanitizer sees its end */
  span->byte_count = byte_count;
  memset(span->memory, SPARE, byte_count);
  return span->memory;
}

static void unbind(bound *b) {
  for (uint32_t slot = 0; slot < SLOTS; slot++) free(memory_of(b, slot));
  free(b->wanted);
}

/* So many rows, with a gap between them or not. */
static hg_rows_of bind_rows(bound *b, uint32_t slot, uint64_t count, int has_gap) {
  const hg_rows *r = &b->rows;
  hg_rows_of of = {.slot = slot, .first = has_gap ? 3 : 0, .stride = r->length + (has_gap ? 5 : 0)};
  of.outer = r->groups > 1 ? count * of.stride + (has_gap ? 7 : 0) : 0;
  uint64_t elements = of.first + (count > 0 ? (r->groups - 1) * of.outer + (count - 1) * of.stride + r->length : 0);
  uint8_t *memory = bind_bytes(b, slot, elements * atlas_bytes((atlas_type)r->type));
  for (uint64_t i = 0; i < elements && slot != Y; i++) put(memory, r->type, i, any_value(r->type));
  return of;
}

static int run_on(bound *b, cpu_isa isa, uint32_t threads, uint64_t stream_bytes) {
  const atlas_launch launch = {.lanes = 1, .arguments = b->arguments, .rows = &b->rows};
  return hg_cpu_move_rows(isa, &launch, stream_bytes, threads);
}

/* Every way to do it makes what is wanted. */
static void check_all(bound *b, const char *what) {
  atlas_span *y = &b->arguments[Y].span;
  for (int isa = 0; isa <= (int)hg_cpu_isa_best(); isa++)
    for (uint32_t way = 0; way < 6; way++) {
      memset(y->memory, SPARE, y->byte_count);
      int is_done = run_on(b, (cpu_isa)isa, 1 + way / 2, way % 2 != 0 ? 0 : UINT64_MAX);
      if (!check_note(is_done && memcmp(y->memory, b->wanted, y->byte_count) == 0))
        printf("%s, %s, %u threads: type %u, %u rows of %u: other bits\n", what, hg_cpu_isa_name((cpu_isa)isa),
               1 + way / 2, b->rows.type, (unsigned)b->rows.count, (unsigned)b->rows.length);
    }
}

static void begin_wanted(bound *b) {
  b->wanted = malloc(b->arguments[Y].span.byte_count + 1);
  memset(b->wanted, SPARE, b->arguments[Y].span.byte_count);
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

/* Numbers below the extent; most of them 0 where that one is hot. */
static void bind_index(bound *b, uint64_t count, int is_hot) {
  hg_rows *r = &b->rows;
  r->index = (hg_rows_of){.slot = INDEX, .first = 2, .stride = 1 + next_random() % 2};
  r->index.outer = r->groups > 1 && next_random() % 2 == 0 ? count * r->index.stride + 1 : 0;
  uint64_t elements = 2 + r->groups * r->index.outer + count * r->index.stride;
  bind_bytes(b, INDEX, elements * atlas_bytes((atlas_type)r->index_type));
  for (uint64_t i = 0; i < elements; i++)
    put(memory_of(b, INDEX), r->index_type, i, is_hot && next_random() % 4 != 0 ? 0 : next_random() % r->extent);
}

static uint64_t number_at(const bound *b, uint64_t group, uint64_t i) {
  const hg_rows *r = &b->rows;
  uint64_t bits =
      get(memory_of(b, INDEX), r->index_type, r->index.first + group * r->index.outer + i * r->index.stride);
  unsigned shift = 64 - 8 * atlas_bytes((atlas_type)r->index_type);
  int64_t number = r->index_type <= ATLAS_i64 ? (int64_t)(bits << shift) >> shift : (int64_t)bits;
  if (r->wraps && number < 0) number += (int64_t)r->extent;
  if (r->clamps && number < 0) number = 0;
  if (r->clamps && (uint64_t)number >= r->extent) number = (int64_t)r->extent - 1;
  return (uint64_t)number;
}

static void spoil(bound *b, uint64_t at, int64_t number) {
  put(memory_of(b, INDEX), b->rows.index_type, b->rows.index.first + at * b->rows.index.stride, (uint64_t)number);
}

/* ---- taken ------------------------------------------------------------------------------------------------------- */

static void check_taken(uint8_t type, uint8_t index_type, uint64_t count, uint64_t length, int has_gap) {
  bound b = {.rows = {.kind = HG_ROWS_TAKEN, .type = type, .index_type = index_type, .count = count, .length = length,
                      .groups = next_random() % 2 == 0 ? 1 : next_random() % 5, .extent = 1 + next_random() % 100}};
  hg_rows *r = &b.rows;
  uint64_t each = next_random() % 2; /* row i takes rows from its own on */
  r->x = bind_rows(&b, X, r->extent + count * each, has_gap);
  r->stride = r->x.stride;
  r->x.stride *= each;
  r->y = bind_rows(&b, Y, count, has_gap);
  bind_index(&b, count, 0);
  int way = (int)(next_random() % 3), is_signed = index_type <= ATLAS_i64;
  r->wraps = way == 1, r->clamps = way == 2;
  if (way != 0 && is_signed && count > 1) spoil(&b, 1, -1);
  if (way == 2 && count > 2) spoil(&b, 2, 127);
  begin_wanted(&b);
  for (uint64_t i = 0; i < r->groups * count; i++)
    for (uint64_t k = 0, g = i / count, row = i % count; k < length; k++)
      put(b.wanted, type, r->y.first + g * r->y.outer + row * r->y.stride + k,
          get(memory_of(&b, X), type,
              r->x.first + g * r->x.outer + row * r->x.stride + number_at(&b, g, row) * r->stride + k));
  check_all(&b, "taken");
  if (count > 0 && r->groups > 0 && way != 2) { /* a number out of range: at the end, or before the first one */
    spoil(&b, next_random() % count,
          is_signed && next_random() % 2 == 0 ? -1 - (int64_t)r->extent : (int64_t)r->extent);
    CHECK(!run_on(&b, hg_cpu_isa_best(), 1, UINT64_MAX));
    CHECK(!run_on(&b, hg_cpu_isa_best(), 3, UINT64_MAX));
  }
  unbind(&b);
}

/* ---- copied ------------------------------------------------------------------------------------------------------ */

/* Rows of X side by side, and again as many of them, or fewer, with their elements apart in both. */
static void check_copied(uint8_t type, uint64_t count, uint64_t length, int has_gap) {
  hg_rows rows[2] = {{.kind = HG_ROWS_COPIED, .type = type, .count = count, .length = length,
                      .groups = 1 + next_random() % 3, .more = 1}};
  bound b = {.rows = rows[0]};
  b.rows.length = 5 * length;
  rows[0].x = bind_rows(&b, X, count, has_gap), rows[0].y = bind_rows(&b, Y, count, has_gap);
  rows[1] = rows[0];
  rows[1].more = 0, rows[1].count -= next_random() % 2 != 0 && count > 1;
  rows[1].x.gap = next_random() % 4, rows[1].y.gap = next_random() % 4, rows[1].y.first += length;
  begin_wanted(&b);
  for (int which = 0; which < 2; which++)
    for (uint64_t g = 0; g < rows[which].groups; g++)
      for (uint64_t i = 0; i < rows[which].count; i++)
        for (uint64_t k = 0; k < length; k++) {
          const hg_rows_of *x = &rows[which].x, *y = &rows[which].y;
          uint64_t from = x->first + g * x->outer + i * x->stride + k * (x->gap + 1);
          uint64_t to = y->first + g * y->outer + i * y->stride + k * (y->gap + 1);
          put(b.wanted, type, to, get(memory_of(&b, X), type, from));
        }
  const atlas_launch launch = {.lanes = 1, .arguments = b.arguments, .rows = rows};
  atlas_span *y = &b.arguments[Y].span, kept = *y;
  for (int isa = 0; isa <= (int)hg_cpu_isa_best(); isa++)
    for (uint32_t way = 0; way < 6; way++) {
      memset(y->memory, SPARE, y->byte_count);
      CHECK(hg_cpu_move_rows((cpu_isa)isa, &launch, way % 2 != 0 ? 0 : UINT64_MAX, 1 + way / 2));
      CHECK(memcmp(y->memory, b.wanted, y->byte_count) == 0);
    }
  *y = b.arguments[X].span; /* over what it reads */
  CHECK(!hg_cpu_move_rows(hg_cpu_isa_best(), &launch, UINT64_MAX, 1));
  *y = kept;
  rows[1].x.gap = UINT64_C(1) << 63; /* twice that is nothing */
  CHECK(length < 2 || !hg_cpu_move_rows(hg_cpu_isa_best(), &launch, UINT64_MAX, 1));
  unbind(&b);
}

/* ---- extremes ---------------------------------------------------------------------------------------------------- */

static void check_extremes(uint64_t count, uint64_t length, int has_gap) {
  static const uint8_t types[] = {ATLAS_bool, ATLAS_u8, ATLAS_u32, ATLAS_i64};
  bound b = {.rows = {.kind = HG_ROWS_EXTREME, .type = next_random() % 2 != 0 ? ATLAS_bool : ATLAS_u8, .count = count,
                      .length = length, .groups = 1 + next_random() % 3, .is_least = next_random() % 2}};
  hg_rows *r = &b.rows;
  r->x = bind_rows(&b, X, count, has_gap);
  r->index_type = r->type == ATLAS_bool ? types[next_random() % sizeof types] : ATLAS_u8;
  uint64_t size = atlas_bytes((atlas_type)r->index_type);
  r->y = (hg_rows_of){.slot = Y, .first = 2, .stride = 2, .outer = 2 * count + 1};
  bind_bytes(&b, Y, (2 + r->groups * r->y.outer) * size);
  uint8_t *x = memory_of(&b, X), odd = r->is_least ? 0 : 1;
  for (uint64_t i = 0; i < b.arguments[X].span.byte_count && r->type == ATLAS_bool; i++)
    x[i] = next_random() % length == 0 ? odd : !odd;
  begin_wanted(&b);
  for (uint64_t g = 0; g < r->groups; g++)
    for (uint64_t i = 0; i < count; i++) {
      uint64_t found = r->is_least ? UINT8_MAX : 0;
      for (uint64_t k = 0; k < length; k++) {
        uint64_t value = x[r->x.first + g * r->x.outer + i * r->x.stride + k];
        if (r->is_least ? value < found : value > found) found = value;
      }
      put(b.wanted, r->index_type, r->y.first + g * r->y.outer + i * r->y.stride, found);
    }
  check_all(&b, "extremes");
  b.arguments[X].span.byte_count--; /* of the last row */
  CHECK(!run_on(&b, hg_cpu_isa_best(), 1, UINT64_MAX));
  unbind(&b);
}

/* Rows that lie within what is bound only modulo 2^64. */
static void check_far(void) {
  enum { ROWS = 3, LENGTH = 8 };
  const uint64_t half = UINT64_C(1) << 63; /* twice that is nothing */
  for (int which = 0; which < 8; which++) {
    bound b = {.rows = {.kind = HG_ROWS_TAKEN, .type = ATLAS_u32, .index_type = ATLAS_i32, .count = ROWS,
                        .length = LENGTH, .groups = ROWS, .extent = ROWS}};
    hg_rows *r = &b.rows;
    r->x = bind_rows(&b, X, ROWS, 0);
    r->stride = r->x.stride;
    r->x.stride = 0;
    r->y = bind_rows(&b, Y, ROWS, 0);
    bind_index(&b, ROWS, 0);
    CHECK(run_on(&b, hg_cpu_isa_best(), 1, UINT64_MAX));
    uint64_t *const far[] = {&r->x.outer, &r->x.stride, &r->stride, &r->y.outer, &r->y.stride, &r->index.outer,
                             &r->index.stride};
    if (which < 7) *far[which] += half;
    else r->y.first -= LENGTH;
    CHECK(!run_on(&b, hg_cpu_isa_best(), 1, UINT64_MAX));
    b.wanted = NULL;
    unbind(&b);
  }
}

/* ---- listed, and added ------------------------------------------------------------------------------------------- */

static uint64_t sum_of_two(uint8_t type, uint64_t a, uint64_t b) {
  if (type == ATLAS_f32) return atlas_bits_of_f32(atlas_as_f32(a) + atlas_as_f32(b));
  if (type == ATLAS_f64) return atlas_bits_of_f64(atlas_as_f64(a) + atlas_as_f64(b));
  return (a + b) & atlas_mask((atlas_type)type);
}

static uint64_t canonical(uint8_t type, uint64_t bits) {
  if (type == ATLAS_f32 && atlas_as_f32(bits) != atlas_as_f32(bits)) return 0x7fc00000;
  if (type == ATLAS_f64 && atlas_as_f64(bits) != atlas_as_f64(bits)) return UINT64_C(0x7ff8000000000000);
  return bits;
}

/* F, in place. */
static uint64_t fold(uint8_t type, uint64_t *values, uint64_t count) {
  uint64_t chunks = 0, half = CHUNK;
  for (uint64_t first = 0; first < count && count > CHUNK; first += CHUNK)
    values[chunks++] = fold(type, values + first, count - first < CHUNK ? count - first : CHUNK);
  if (chunks > 0) return fold(type, values, chunks);
  while ((half /= 2) > 0)
    for (uint64_t i = 0; i + half < count && i < half; i++)
      values[i] = sum_of_two(type, values[i], values[i + half]);
  return values[0];
}

static void clear_lists(bound *b) {
  memset(memory_of(b, COUNTED), 0, b->arguments[COUNTED].span.byte_count);
  memset(memory_of(b, BEGUN), 0, b->arguments[BEGUN].span.byte_count);
}

/* Makes the lists, which must be what they should, or nothing where a number is out of range. */
static void make_lists(bound *b, uint64_t places, uint64_t sources) {
  hg_rows added = b->rows;
  b->rows = (hg_rows){.kind = HG_ROWS_LISTED, .type = ATLAS_u32, .index_type = added.index_type, .groups = 1,
                      .count = sources,
                      .extent = places, .index = added.index, .counted = COUNTED, .begun = BEGUN, .listed = LISTED};
  bind_bytes(b, COUNTED, places * 4);
  bind_bytes(b, BEGUN, places * 4);
  bind_bytes(b, LISTED, sources * 4);
  uint64_t at = next_random() % sources, kept = number_at(b, 0, at), left = 0;
  spoil(b, at, (int64_t)places);
  clear_lists(b);
  CHECK(!run_on(b, hg_cpu_isa_best(), 1, UINT64_MAX));
  for (uint64_t p = 0; p < places; p++)
    left |= get(memory_of(b, COUNTED), ATLAS_u32, p) | get(memory_of(b, BEGUN), ATLAS_u32, p);
  CHECK_EQ_U64(left, 0);
  spoil(b, at, (int64_t)kept);
  CHECK(run_on(b, hg_cpu_isa_best(), 1, UINT64_MAX));
  uint32_t *seen = calloc(places, sizeof *seen), is_wrong = 0;
  for (uint64_t i = 0; i < sources; i++) {
    uint64_t p = number_at(b, 0, i), first = get(memory_of(b, BEGUN), ATLAS_u32, p) - 1;
    is_wrong |= first + seen[p] >= sources || get(memory_of(b, LISTED), ATLAS_u32, first + seen[p]) != i;
    seen[p]++;
  }
  for (uint64_t p = 0; p < places; p++) is_wrong |= get(memory_of(b, COUNTED), ATLAS_u32, p) != seen[p];
  CHECK(!is_wrong);
  free(seen);
  b->rows = added;
}

static void want_sums(bound *b, uint64_t sources) {
  const hg_rows *r = &b->rows;
  uint64_t *values = malloc(sources * sizeof *values);
  begin_wanted(b);
  for (uint64_t p = 0; p < r->count; p++) {
    uint64_t count = get(memory_of(b, COUNTED), ATLAS_u32, p), first = get(memory_of(b, BEGUN), ATLAS_u32, p) - 1;
    for (uint64_t k = 0; k < r->length; k++) {
      uint64_t base = r->base_bits;
      if (r->base.slot == BASE) base = get(memory_of(b, BASE), r->type, r->base.first + p * r->base.stride + k);
      for (uint64_t i = 0; i < count; i++) {
        uint64_t row = get(memory_of(b, LISTED), ATLAS_u32, first + i);
        values[i] = get(memory_of(b, X), r->type, r->x.first + row * r->x.stride + k);
      }
      if (count > 0) base = canonical(r->type, sum_of_two(r->type, base, fold(r->type, values, count)));
      put(b->wanted, r->type, r->y.first + p * r->y.stride + k, base);
    }
  }
  free(values);
}

static void check_added(uint8_t type, uint64_t places, uint64_t sources, uint64_t length, int has_gap) {
  bound b = {.rows = {.kind = HG_ROWS_ADDED, .type = type, .index_type = ATLAS_i32, .count = places, .length = length,
                      .groups = 1, .extent = places, .base = {.slot = UINT64_MAX}, .counted = COUNTED, .begun = BEGUN,
                      .listed = LISTED}};
  hg_rows *r = &b.rows;
  bind_index(&b, sources, next_random() % 2 == 0);
  r->extent = sources;
  r->x = bind_rows(&b, X, sources, has_gap);
  r->y = bind_rows(&b, Y, places, has_gap);
  switch (next_random() % 3) {
  case 0: r->base = bind_rows(&b, BASE, places, has_gap); break;
  case 1: r->base_bits = any_value(type); break;
  default: break;
  }
  make_lists(&b, places, sources);
  want_sums(&b, sources);
  check_all(&b, "added");
  put(memory_of(&b, LISTED), ATLAS_u32, next_random() % sources, sources); /* of a launch that has faulted */
  CHECK(!run_on(&b, hg_cpu_isa_best(), 1, UINT64_MAX));
  unbind(&b);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

static uint64_t pick(const uint64_t *from, size_t count) { return from[next_random() % count]; }

static void check_cases(int count) {
  static const uint8_t types[] = {ATLAS_f32, ATLAS_f64, ATLAS_i8, ATLAS_u8, ATLAS_i16, ATLAS_i32, ATLAS_u64};
  static const uint8_t indices[] = {ATLAS_i8, ATLAS_i16, ATLAS_i32, ATLAS_i64, ATLAS_u8, ATLAS_u16, ATLAS_u32};
  static const uint64_t lengths[] = {1,  2,  3,  5,  8,   13,  15,  16,  17,  31, 32,
                                     33, 48, 64, 65, 127, 128, 129, 256, 300, 513};
  static const uint64_t rows[] = {1, 2, 3, 4, 5, 7, 8, 9, 50, 127, 128, 129, 300};
  for (int i = 0; i < count; i++) {
    uint8_t type = types[next_random() % sizeof types];
    uint64_t length = pick(lengths, sizeof lengths / sizeof *lengths), n = pick(rows, sizeof rows / sizeof *rows);
    int has_gap = (int)(next_random() % 2);
    check_taken(type, indices[next_random() % sizeof indices], next_random() % 20 == 0 ? 0 : n, length, has_gap);
    check_added(type, 1 + next_random() % 40, n, length, has_gap);
    check_copied(type, n, length, has_gap);
    check_extremes(n, length, has_gap);
  }
}

/* Every number of sources of one place that a chunk's first levels tell apart, and several chunks. */
static void check_counts(void) {
  for (uint64_t n = 1; n <= 70; n++) check_added(ATLAS_f32, 1, n, 17, 0);
  static const uint64_t many[] = {4095, 4096, 4097, 8192, 8193, 12288, 12289, 20481, 40000};
  for (size_t i = 0; i < sizeof many / sizeof *many; i++) check_added(ATLAS_f32, 1 + i % 2, many[i], 3, 0);
}

int main(int argc, char **argv) {
  if (argc > 1) state = strtoull(argv[1], NULL, 0);
  set("HOLOGRAM_NUM_THREADS", "3");
  check_counts();
  check_far();
  check_cases(argc > 1 ? 3000 : 150);
  return check_report();
}
