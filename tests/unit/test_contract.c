/* test_contract.c - the CPU's own kernel for contractions beside their definition: bits, for shapes around the sizes of
 * tiles, chunks and blocks, any strides and types, on every instruction set of this machine and by 1, 2 and 3 threads.
 * test_contract SEED: other cases. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "backend/cpu/contract/contract.h"
#include "check.h"
#include "contraction.h"
#include "environment.h"
#include "shard.h"

/* ---- cases ----------------------------------------------------------------------------------------------------- */

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
    hg_cpu_contract(isa, c, threads, NULL);
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

/* Makes a list of two axes of an axis, whose elements stay within its own: windows, or turned. */
static void split(hg_axis *axis, uint64_t size, int64_t *stride) {
  uint64_t inner = 2 + next_random() % 6;
  if (size % inner != 0 || size == inner || size == 0) return;
  int is_turned = next_random() % 2 == 0;
  *axis = (hg_axis){.count = 2, .size = {inner, size / inner}, .stride = {*stride, *stride}};
  if (is_turned) axis->stride[0] *= (int64_t)(size / inner);
  *stride = axis->stride[0];
}

static int with_lists; /* 1: axes of factors may be lists */

static void split_axes(hg_contraction *c) {
  const uint64_t a[3] = {c->batch, c->m, c->k}, b[3] = {c->batch, c->k, c->n};
  for (int i = 0; i < 3; i++) {
    if (next_random() % 2 == 0) split(&c->a_axis[i], a[i], &c->a_stride[i]);
    if (next_random() % 2 == 0) split(&c->b_axis[i], b[i], &c->b_stride[i]);
  }
}

static void check_case(uint8_t a_type, uint8_t b_type, uint8_t type, uint64_t batch, uint64_t m, uint64_t n,
                       uint64_t k) {
  if (!in_shard()) return;
  hg_contraction c = {.a_type = a_type, .b_type = b_type, .type = type, .batch = batch, .m = m, .n = n, .k = k};
  memory a = make(a_type, (uint64_t[]){batch, m, k}, c.a_stride, 0);
  memory b = make(b_type, (uint64_t[]){batch, k, n}, c.b_stride, 0);
  memory out = make(type, (uint64_t[]){batch, m, n}, c.c_stride, 1);
  c.a = a.first;
  c.b = b.first;
  c.c = out.first;
  if (with_lists) split_axes(&c);
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

/* Matrices times vectors, and vectors times vectors. */
static void check_vectors(void) {
  static const uint64_t rows[] = {1, 2, 7, 8, 9, 31, 33, 70};
  static const uint64_t depths[] = {1, 3, 255, 258, 513, 600, 1024, 1500, 2048, 4100, 9000};
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
    for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
      check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 1, rows[r], 1, depths[d]);
      check_case(ATLAS_f32, ATLAS_bf16, ATLAS_f16, 2, 1, rows[r], depths[d] - depths[d] / 5);
      check_case(ATLAS_f64, ATLAS_f64, ATLAS_f64, 1, 1, rows[r], depths[d]);
    }
}

/* Batches whose matrices lie one behind the other: a panel of few columns reads on into the next ones. */
static void check_small(void) {
  static const uint64_t sizes[] = {3, 4, 5, 7, 8, 12, 15, 16, 17, 24, 33};
  is_dense = 1;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (uint64_t batch = 1; batch <= 6; batch += batch > 1 ? 3 : 1) {
      check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, batch, sizes[i], sizes[i], sizes[i]);
      check_case(ATLAS_f64, ATLAS_f64, ATLAS_f64, batch, 2 + i, sizes[i], 1);
      check_case(ATLAS_i32, ATLAS_i32, ATLAS_i32, batch, 30, sizes[i], 257);
      check_case(ATLAS_bf16, ATLAS_bf16, ATLAS_bf16, batch, sizes[i], sizes[i], 9);
    }
  is_dense = 0;
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
  check_vectors();
  check_small();
  check_cases(argc > 1 ? 3000 : 200);
  with_lists = 1;
  check_cases(argc > 1 ? 3000 : 100);
  return check_report();
}
