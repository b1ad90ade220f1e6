/* test_reductions.c - folds of many elements, and collectives of blocks of any size, on the backend under test against
 * the reference machine, bit by bit.
 *
 *   test_reductions [--all]   also every block size there is, and folds of 2^28 elements against machine code of
 *                             the CPU: for GPUs, and minutes on a CPU */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif

#include "environment.h"
#include "launching.h"

#include <stdlib.h>

static hg_executor *tested, *reference;

typedef struct fold {
  const char *type, *op, *first;
  uint32_t bytes;
} fold;

static const fold folds[] = {{"f32", "add", "0", 4},    {"f32", "max", "-inf", 4},  {"f16", "add", "0", 2},
                             {"f16", "max", "-inf", 2}, {"bf16", "max", "-inf", 2}, {"i32", "min", "0x7fffffff", 4}};

/* T, F and I are the type, the operation and the value to start from. */
static const char fold_text[] = ".program fold\n"
                                ".block 256\n"
                                ".buffer a T in\n"
                                ".buffer y T out\n"
                                ".scalar count u32\n"
                                "    sreg.u32 r1, grid_size.x\n"
                                "    shl.u32 r1, r1, #8\n"
                                "    shl.u32 r0, r253, #8\n"
                                "    add.u32 r0, r0, blane\n"
                                "    mov.u32 r2, count\n"
                                "    movi.T r3, #I\n"
                                "next:\n"
                                "    set.ge.u32 p0, r0, r2\n"
                                "    @p0 bra all\n"
                                "    ldg.T r4, [a + r0]\n"
                                "    F.T r3, r3, r4\n"
                                "    add.u32 r0, r0, r1\n"
                                "    bra next\n"
                                "all:\n"
                                "    reduce.F.T r3, r3\n"
                                "    set.ne.u32 p0, blane, #0\n"
                                "    @p0 bra done\n"
                                "    stg.T [y + r253], r3\n"
                                "done:\n"
                                "    exit\n";

/* Of blocks: a fold, what is before each lane, and votes. */
static const char block_text[] = ".program block\n"
                                 ".buffer a T in\n"
                                 ".buffer y T out\n"
                                 ".buffer z u32 out\n"
                                 "    ldg.T r0, [a + lane]\n"
                                 "    reduce.F.T r1, r0\n"
                                 "    scan.incl.T r2, r0\n"
                                 "    F.T r3, r1, r2\n"
                                 "    stg.T [y + lane], r3\n"
                                 "    set.gt.T p0, r0, r1\n"
                                 "    vote.any p1, p0\n"
                                 "    vote.all p2, p0\n"
                                 "    sel.u32 r4, p1, #1, #0\n"
                                 "    sel.u32 r5, p2, #2, #0\n"
                                 "    add.u32 r4, r4, r5\n"
                                 "    stg.u32 [z + lane], r4\n"
                                 "    exit\n";

static void write_text(const char *template, const fold *f, char *out, size_t room) {
  const char *words[] = {f->type, f->op, f->first};
  fill_in(template, "TFI", words, out, room);
}

/* Finite, of both signs. */
static void *contents(const fold *f, uint64_t count) {
  uint32_t *words = malloc((size_t)(count * f->bytes + 3) / 4 * 4), seed = 7;
  for (uint64_t i = 0; i < (count * f->bytes + 3) / 4; i++) {
    seed = seed * 1664525 + 1013904223;
    uint32_t high = seed ^ seed >> 15;
    words[i] = f->bytes == 2 ? high & 0xbfffbfffu : (high >> 9 & 0xbfffff) | 0x3f000000 | (seed & 0x80000000u);
  }
  return words;
}

/* ---- folds ------------------------------------------------------------------------------------------------------- */

/* The shares of `grid` blocks, then that of all of them. */
static void run_fold(hg_executor *on, const fold *f, const void *values, uint64_t count, uint32_t grid, void *shares) {
  char text[2048];
  write_text(fold_text, f, text, sizeof text);
  executor = on;
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *a = buffer_of(count * f->bytes, values), *y = buffer_of((uint64_t)grid * f->bytes, NULL),
            *whole = buffer_of(f->bytes, NULL);
  hg_binding bindings[] = {{.name = "a", .buffer = a}, {.name = "y", .buffer = y}};
  hg_scalar scalar = {.name = "count", .type = ATLAS_u32, .bits = count};
  hg_launch_desc desc = {
      .grid = {grid}, .bindings = bindings, .binding_count = 2, .scalars = &scalar, .scalar_count = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  bindings[0].buffer = y;
  bindings[1].buffer = whole;
  scalar.bits = grid;
  desc.grid[0] = 1;
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, shares, (uint64_t)grid * f->bytes), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(whole, 0, (uint8_t *)shares + (size_t)grid * f->bytes, f->bytes), HG_OK);
  hg_buffer_release(a);
  hg_buffer_release(y);
  hg_buffer_release(whole);
  hg_kernel_release(kernel);
}

static void check_fold(const fold *f, uint64_t count, uint32_t grid) {
  void *values = contents(f, count);
  size_t bytes = ((size_t)grid + 1) * f->bytes;
  uint8_t *want = malloc(bytes), *got = malloc(bytes);
  run_fold(reference, f, values, count, grid, want);
  run_fold(tested, f, values, count, grid, got);
  if (!check_note(memcmp(want, got, bytes) == 0))
    printf("%s.%s of %llu elements in %u blocks differs\n", f->op, f->type, (unsigned long long)count, grid);
  free(values);
  free(want);
  free(got);
}

static void test_folds(int all) {
  static const uint64_t counts[] = {1, 255, 256, 257, 4095, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1};
  static const uint32_t grids[] = {1, 7, 256};
  for (size_t i = 0; i < COUNT(folds); i++)
    for (size_t k = 0; k < COUNT(counts); k++)
      if (all || counts[k] < 5000 || k % 3 == i % 3) /* the reference machine takes 0.1 s for 2^20 elements */
        check_fold(&folds[i], counts[k], grids[(i + k) % COUNT(grids)]);
}

/* ---- blocks of any size ------------------------------------------------------------------------------------------ */

static void run_block(hg_executor *on, const fold *f, uint32_t size, void *y_out, uint32_t *z_out) {
  enum { BLOCKS = 3 };
  char text[2048];
  write_text(block_text, f, text, sizeof text);
  executor = on;
  hg_kernel *kernel = kernel_of(text);
  uint64_t lanes = (uint64_t)size * BLOCKS;
  void *values = contents(f, lanes);
  hg_buffer *a = buffer_of(lanes * f->bytes, values), *y = buffer_of(lanes * f->bytes, NULL),
            *z = buffer_of(lanes * 4, NULL);
  hg_binding bindings[] = {{.name = "a", .buffer = a}, {.name = "y", .buffer = y}, {.name = "z", .buffer = z}};
  hg_launch_desc desc = {.grid = {BLOCKS}, .block = {size}, .bindings = bindings, .binding_count = COUNT(bindings)};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, y_out, lanes * f->bytes), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(z, 0, z_out, lanes * 4), HG_OK);
  free(values);
  hg_buffer_release(a);
  hg_buffer_release(y);
  hg_buffer_release(z);
  hg_kernel_release(kernel);
}

static void check_block(const fold *f, uint32_t size) {
  static uint32_t want[3072], got[3072], want_votes[3072], got_votes[3072];
  run_block(reference, f, size, want, want_votes);
  run_block(tested, f, size, got, got_votes);
  int same =
      memcmp(want, got, (size_t)size * 3 * f->bytes) == 0 && memcmp(want_votes, got_votes, (size_t)size * 12) == 0;
  if (!check_note(same)) printf("%s.%s in blocks of %u differs\n", f->op, f->type, size);
}

static void test_blocks(int all) {
  static const uint32_t sizes[] = {1,  2,  3,   5,   15,  16,  17,  31,  32,  33,  47,  63,   64,
                                   65, 96, 100, 127, 128, 129, 255, 256, 257, 513, 767, 1023, 1024};
  for (size_t i = 0; i < COUNT(folds); i++)
    for (size_t k = 0; k < COUNT(sizes); k++) check_block(&folds[i], sizes[k]);
  for (uint32_t size = 1; all && size <= 1024; size++)
    check_block(&folds[size % 7 == 0 ? size % COUNT(folds) : 0], size);
}

int main(int argc, char **argv) {
  int all = argc > 1 && strcmp(argv[1], "--all") == 0;
  CHECK_EQ_U64(open_test_executor(NULL, &tested), HG_OK);
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  set("HOLOGRAM_CPU_ENGINE", "interp");
  CHECK_EQ_U64(hg_executor_create(&desc, &reference), HG_OK);
  test_folds(all);
  test_blocks(all);
  hg_executor_release(reference);
  set("HOLOGRAM_CPU_ENGINE", "native");
  CHECK_EQ_U64(hg_executor_create(&desc, &reference), HG_OK);
  for (size_t i = 0; all && i < COUNT(folds); i++) check_fold(&folds[i], UINT64_C(1) << 28, 4096);
  hg_executor_release(reference);
  hg_executor_release(tested);
  return check_report();
}
