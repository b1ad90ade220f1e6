/* test_contract.c - the CPU's own kernel for contractions beside their definition: bits, for shapes around the sizes of
 * tiles, chunks and blocks, any strides and types, on every instruction set of this machine and by 1, 2 and 3 threads.
 * test_contract SEED: other cases. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "atlas/arith.h"
#include "atlas/exact.h"
#include "atlas/tables.h"
#include "backend/cpu/contract/contract.h"
#include "check.h"
#include "environment.h"

#include <stdlib.h>

static uint64_t state = 1;

static uint32_t next_random(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(state >> 32);
}

/* ---- the definition ---------------------------------------------------------------------------------------------- */

/* Elements as bits, whatever the type. */
static uint64_t element(const uint8_t *from, uint8_t type, int64_t at) {
  uint64_t bits = 0;
  memcpy(&bits, from + at * (int64_t)atlas_bytes(type), atlas_bytes(type)); /* little-endian */
  return bits;
}

static uint8_t sum_type(const hg_contraction *c) {
  return atlas_is_integer(c->type) ? c->type : c->type == ATLAS_f64 ? ATLAS_f64 : ATLAS_f32;
}

/* a * b + sum of that type. */
static uint64_t multiply_add(uint8_t type, uint64_t a, uint64_t b, uint64_t sum) {
  if (type == ATLAS_f32) return atlas_bits_of_f32(atlas_fma_f32(atlas_as_f32(a), atlas_as_f32(b), atlas_as_f32(sum)));
  if (type == ATLAS_f64) return atlas_bits_of_f64(atlas_fma_f64(atlas_as_f64(a), atlas_as_f64(b), atlas_as_f64(sum)));
  return (a * b + sum) & atlas_mask(type);
}

static uint64_t add(uint8_t type, uint64_t a, uint64_t b) {
  if (type == ATLAS_f32) return atlas_bits_of_f32(atlas_as_f32(a) + atlas_as_f32(b));
  if (type == ATLAS_f64) return atlas_bits_of_f64(atlas_as_f64(a) + atlas_as_f64(b));
  return (a + b) & atlas_mask(type);
}

/* The sum over chunks first .. first + count - 1, by the aligned tree: the left half is the greatest power of two that
 * leaves something for the right one. */
static uint64_t tree(uint8_t type, const uint64_t *chunks, uint64_t count) {
  if (count == 1) return chunks[0];
  uint64_t left = 1;
  while (2 * left < count) left *= 2;
  return add(type, tree(type, chunks, left), tree(type, chunks + left, count - left));
}

static uint64_t defined(const hg_contraction *c, uint64_t item, uint64_t row, uint64_t column) {
  uint64_t chunks[64], count = 0;
  uint8_t type = sum_type(c);
  if (c->k == 0) return 0;
  for (uint64_t first = 0; first < c->k; first += 256, count++) {
    chunks[count] = 0;
    for (uint64_t l = first; l < c->k && l < first + 256; l++) {
      int64_t at_a = (int64_t)item * c->a_stride[0] + (int64_t)row * c->a_stride[1] + (int64_t)l * c->a_stride[2];
      int64_t at_b = (int64_t)item * c->b_stride[0] + (int64_t)l * c->b_stride[1] + (int64_t)column * c->b_stride[2];
      uint64_t a = atlas_convert(type, c->a_type, element(c->a, c->a_type, at_a));
      uint64_t b = atlas_convert(type, c->b_type, element(c->b, c->b_type, at_b));
      chunks[count] = multiply_add(type, a, b, chunks[count]);
    }
  }
  uint64_t sum = tree(type, chunks, count);
  if (!atlas_is_integer(type) && atlas_to_f64(type, sum) != atlas_to_f64(type, sum)) sum = atlas_canonical_nan(type);
  return atlas_convert(c->type, type, sum);
}

/* ---- cases ------------------------------------------------------------------------------------------------------- */

typedef struct memory {
  uint8_t *bytes, *first; /* of element (0, 0, 0) */
  uint64_t byte_count;
} memory;

static uint64_t some_bits(uint8_t type, int any) {
  uint64_t bits = (uint64_t)next_random() << 32 | next_random();
  if (atlas_is_integer(type) || any) return bits;
  double value = ((double)(next_random() % 20001) - 10000.0) / 7919.0;
  return atlas_convert(type, ATLAS_f64, atlas_bits_of_f64(value));
}

/* Strides of a view of `sizes`: its axes in any order in memory, with gaps, backwards, repeated. */
static memory make(uint8_t type, const uint64_t sizes[3], int64_t strides[3], int is_result) {
  static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {0, 1, 2}, {1, 0, 2}, {2, 1, 0}, {1, 2, 0}};
  const int *order = orders[next_random() % 6];
  int64_t span = 1, low = 0, high = 0;
  for (int i = 2; i >= 0; i--) {
    int axis = order[i];
    strides[axis] = span + (next_random() % 4 == 0 ? (int64_t)(next_random() % 5) : 0);
    span = strides[axis] * (int64_t)(sizes[axis] > 0 ? sizes[axis] : 1);
    if (next_random() % 6 == 0) strides[axis] = -strides[axis];
    else if (!is_result && next_random() % 8 == 0) strides[axis] = 0;
    int64_t end = strides[axis] * ((int64_t)sizes[axis] - (sizes[axis] > 0));
    low += end < 0 ? end : 0;
    high += end > 0 ? end : 0;
  }
  memory m = {.byte_count = (uint64_t)(high - low + 1) * atlas_bytes(type)};
  m.bytes = malloc(m.byte_count);
  m.first = m.bytes + -low * (int64_t)atlas_bytes(type);
  int any = next_random() % 16 == 0;
  for (uint64_t i = 0; i < m.byte_count / atlas_bytes(type); i++) {
    uint64_t bits = is_result ? 0xa5a5a5a5a5a5a5a5u : some_bits(type, any);
    memcpy(m.bytes + i * atlas_bytes(type), &bits, atlas_bytes(type));
  }
  return m;
}

/* All of C's memory as it should be: what is between its elements stays. */
static uint8_t *expected(const hg_contraction *c, const memory *m) {
  uint8_t *bytes = malloc(m->byte_count);
  memset(bytes, 0xa5, m->byte_count);
  uint8_t *first = bytes + (m->first - m->bytes);
  for (uint64_t i = 0; i < c->batch; i++)
    for (uint64_t r = 0; r < c->m; r++)
      for (uint64_t s = 0; s < c->n; s++) {
        int64_t at = (int64_t)i * c->c_stride[0] + (int64_t)r * c->c_stride[1] + (int64_t)s * c->c_stride[2];
        uint64_t bits = defined(c, i, r, s);
        memcpy(first + at * (int64_t)atlas_bytes(c->type), &bits, atlas_bytes(c->type));
      }
  return bytes;
}

static void run_on(cpu_isa isa, hg_contraction *c, const memory *m, const uint8_t *wanted) {
  uint64_t bytes = hg_cpu_contract_scratch(isa, c);
  if (bytes == UINT64_MAX) {
    CHECK(isa == CPU_ISA_BASELINE && !atlas_is_integer(c->type));
    return;
  }
  uint8_t *room = malloc(bytes + 128), *aligned = room + 64 - (uintptr_t)room % 64;
  for (uint32_t threads = 1; threads <= 3; threads++) {
    memset(m->bytes, 0xa5, m->byte_count);
    memset(room, 0xff, bytes + 128);
    c->scratch = bytes > 0 ? aligned : NULL;
    hg_cpu_contract(isa, c, threads);
    int is_same = memcmp(m->bytes, wanted, m->byte_count) == 0, is_inside = 1;
    for (uint8_t *b = aligned + bytes; b < room + bytes + 128; b++) is_inside &= *b == 0xff;
    CHECK(is_inside);
    if (!check_note(is_same))
      printf("%s, %u threads: %u x %u -> %u, batch %u, %u x %u x %u: other bits\n", hg_cpu_isa_name(isa), threads,
             (unsigned)c->a_type, (unsigned)c->b_type, (unsigned)c->type, (unsigned)c->batch, (unsigned)c->m,
             (unsigned)c->n, (unsigned)c->k);
  }
  free(room);
}

static void check_case(uint8_t a_type, uint8_t b_type, uint8_t type, uint64_t batch, uint64_t m, uint64_t n,
                       uint64_t k) {
  hg_contraction c = {.a_type = a_type, .b_type = b_type, .type = type, .batch = batch, .m = m, .n = n, .k = k};
  memory a = make(a_type, (uint64_t[]){batch, m, k}, c.a_stride, 0);
  memory b = make(b_type, (uint64_t[]){batch, k, n}, c.b_stride, 0);
  memory out = make(type, (uint64_t[]){batch, m, n}, c.c_stride, 1);
  c.a = a.first;
  c.b = b.first;
  c.c = out.first;
  uint8_t *wanted = expected(&c, &out);
  for (int isa = 0; isa <= (int)hg_cpu_isa_best(); isa++) run_on((cpu_isa)isa, &c, &out, wanted);
  free(wanted);
  free(a.bytes);
  free(b.bytes);
  free(out.bytes);
}

static uint64_t pick(const uint64_t *from, size_t count) { return from[next_random() % count]; }

static void check_cases(int count) {
  static const uint64_t sizes[] = {0, 1, 2, 3, 5, 8, 13, 14, 15, 16, 17, 31, 32, 33, 48, 65, 113, 150};
  static const uint64_t depths[] = {0, 1, 2, 7, 15, 16, 17, 64, 255, 256, 257, 511, 512, 513, 768, 1100, 1792, 2049};
  static const uint8_t types[][3] = {
      {ATLAS_f32, ATLAS_f32, ATLAS_f32},   {ATLAS_f32, ATLAS_f32, ATLAS_f32}, {ATLAS_f64, ATLAS_f64, ATLAS_f64},
      {ATLAS_bf16, ATLAS_bf16, ATLAS_f32}, {ATLAS_f16, ATLAS_f16, ATLAS_f16}, {ATLAS_bf16, ATLAS_f32, ATLAS_bf16},
      {ATLAS_i8, ATLAS_i8, ATLAS_i32},     {ATLAS_i32, ATLAS_i32, ATLAS_i32}, {ATLAS_u8, ATLAS_u8, ATLAS_u8},
      {ATLAS_i16, ATLAS_i16, ATLAS_i16},   {ATLAS_i64, ATLAS_i64, ATLAS_i64}, {ATLAS_i8, ATLAS_u8, ATLAS_u64}};
  for (int i = 0; i < count; i++) {
    const uint8_t *t = types[next_random() % (sizeof types / sizeof *types)];
    uint64_t m = pick(sizes, sizeof sizes / sizeof *sizes), n = pick(sizes, sizeof sizes / sizeof *sizes);
    uint64_t k = pick(depths, sizeof depths / sizeof *depths), batch = next_random() % 3 == 0 ? next_random() % 5 : 1;
    while (batch * m * n * k > 3000000) k /= 2, m -= m / 3;
    check_case(t[0], t[1], t[2], batch, m, n, k);
  }
}

/* Every tail of a tile, and of the unrolled ways to pack. */
static void check_tails(void) {
  for (uint64_t m = 1; m <= 30; m++) check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 1, m, 33, 18);
  for (uint64_t n = 1; n <= 66; n++) check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 1, 15, n, 18);
  for (uint64_t chunks = 1; chunks <= 18; chunks++)
    check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 1, 3, 5, 256 * chunks - chunks % 3);
}

static void check_refusals(void) {
  hg_contraction c = {.a_type = ATLAS_f32, .b_type = ATLAS_f64, .type = ATLAS_f64, .batch = 1, .m = 1, .n = 1, .k = 1};
  CHECK_EQ_U64(hg_cpu_contract_scratch(hg_cpu_isa_best(), &c), UINT64_MAX);
  c.a_type = c.b_type = ATLAS_bool;
  c.type = ATLAS_i32;
  CHECK_EQ_U64(hg_cpu_contract_scratch(hg_cpu_isa_best(), &c), UINT64_MAX);
}

int main(int argc, char **argv) {
  if (argc > 1) state = strtoull(argv[1], NULL, 0);
  set("HOLOGRAM_NUM_THREADS", "3");
  check_refusals();
  check_tails();
  check_cases(argc > 1 ? 3000 : 200);
  return check_report();
}
