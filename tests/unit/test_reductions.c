/* test_reductions.c - folds of many elements, and collectives of blocks of any size, on the backend under test against
 * the reference machine, bit by bit.
 *
 *   test_reductions [--all]   also every block size there is, and folds of 2^28 elements against machine code of
 *                             the CPU: for GPUs, and minutes on a CPU
 *   test_reductions --shard 1/4   a quarter of the folds, blocks and collectives in a row. Of the latter each two of a
 *                             type, a size below 300 and a way come together in each quarter, but for partial blocks
 *                             of no required size, which all have 256 lanes */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif

#include "environment.h"
#include "launching.h"
#include "shard.h"

#include <stdio.h>
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

/* Of counts around powers of two. The reference machine takes 0.1 s for 2^20 elements, so of those beyond 2^12 each
 * fold has one, the next fold another. */
static void test_folds(int all) {
  static const uint32_t grids[] = {1, 7, 256};
  for (uint32_t i = 0; i < COUNT(folds); i++)
    for (uint32_t k = 1; k <= 3 * 20 + 2; k++) {
      uint64_t count = (UINT64_C(1) << k / 3) + k % 3 - 1;
      int is_small = count < 5000 || (k % 3 == i % 3 && k / 3 == 20 - i % 8);
      if (all || (is_small && is_in_shard(i + k)))
        check_fold(&folds[i], count, grids[(i + k / 3 + k % 3) % COUNT(grids)]);
    }
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
  static const uint32_t sizes[] = {1,  2,  3,  4,  5,   7,   8,   9,   15,  16,  17,  31,  32,  33,  47,   63,
                                   64, 65, 96, 100, 127, 128, 129, 255, 256, 257, 511, 512, 513, 767, 1023, 1024};
  for (size_t i = 0; i < COUNT(folds); i++)
    for (size_t k = 0; k < COUNT(sizes); k++)
      if (all || is_in_shard((unsigned)(i + k))) check_block(&folds[i], sizes[k]); /* every size of some folds */
  for (uint32_t size = 1; all && size <= 1024; size++)
    check_block(&folds[size % 7 == 0 ? size % COUNT(folds) : 0], size);
}

/* ---- several in a row -------------------------------------------------------------------------------------------- */

enum { ROW_VALUES = 16, ROW_BLOCKS = 3 };

/* H is the header's rest, T the type, U what a lane does before. Of one kind, of several, with others between, of other
 * types, of what the first ones gave, and around a loop. */
static const char row_text[] = ".program row\n"
                               "H"
                               ".buffer a T in\n"
                               ".buffer y T inout\n"
                               ".buffer z u64 inout\n"
                               "    cvt.u32.u64 r60, lane\n"
                               "    shl.u32 r60, r60, #4\n"
                               "    ldg.T r0, [a + lane]\n"
                               "    ldg.T r1, [a + lane + #1]\n"
                               "    ldg.T r2, [a + lane + #2]\n"
                               "    ldg.T r3, [a + lane + #3]\n"
                               "U"
                               "    reduce.add.T r10, r0\n"
                               "    reduce.add.T r11, r1\n"
                               "    reduce.max.T r12, r2\n"
                               "    add.T r4, r1, r2\n"
                               "    reduce.add.T r13, r4\n"
                               "    scan.incl.T r14, r0\n"
                               "    reduce.min.T r15, r3\n"
                               "    add.T r5, r10, r3\n"
                               "    reduce.mul.T r16, r5\n"
                               "    ldg.T r6, [a + lane + #4]\n"
                               "    reduce.add.T r17, r6\n"
                               "    scan.excl.T r18, r1\n"
                               "    scan.incl.T r19, r17\n"
                               "    reduce.add.u32 r30, blane\n"
                               "    reduce.max.u8 r31, #7\n"
                               "    reduce.min.u64 r32, lane\n"
                               "    scan.incl.u64 r33, lane\n"
                               "    set.gt.T p0, r0, r12\n"
                               "    set.le.T p1, r0, r12\n"
                               "    vote.any p2, p0\n"
                               "    vote.all p3, p1\n"
                               "    sel.u64 r34, p2, #1, #0\n"
                               "    sel.u64 r35, p3, #2, #0\n"
                               "    add.u64 r34, r34, r35\n"
                               "    mov.T r7, r0\n"
                               "    mov.T r8, r2\n"
                               "    movi.u32 r61, #3\n"
                               "again:\n"
                               "    reduce.add.T r7, r7\n"
                               "    scan.incl.T r8, r8\n"
                               "    add.T r7, r7, r0\n"
                               "    reduce.max.T r9, r8\n"
                               "    sub.T r8, r8, r9\n"
                               "    loop r61, again\n"
                               "    cvt.u64.u8 r31, r31\n"
                               "    cvt.u64.u32 r30, r30\n"
                               "    stg.T [y + r60], r10\n"
                               "    stg.T [y + r60 + #1], r11\n"
                               "    stg.T [y + r60 + #2], r12\n"
                               "    stg.T [y + r60 + #3], r13\n"
                               "    stg.T [y + r60 + #4], r14\n"
                               "    stg.T [y + r60 + #5], r15\n"
                               "    stg.T [y + r60 + #6], r16\n"
                               "    stg.T [y + r60 + #7], r17\n"
                               "    stg.T [y + r60 + #8], r18\n"
                               "    stg.T [y + r60 + #9], r19\n"
                               "    stg.T [y + r60 + #10], r7\n"
                               "    stg.T [y + r60 + #11], r8\n"
                               "    stg.u64 [z + r60], r30\n"
                               "    stg.u64 [z + r60 + #1], r31\n"
                               "    stg.u64 [z + r60 + #2], r32\n"
                               "    stg.u64 [z + r60 + #3], r33\n"
                               "    stg.u64 [z + r60 + #4], r34\n"
                               "    exit\n";

/* Lanes end before, in one warp and in all. */
static const char some_end[] = "    rem.u64 r50, lane, #41\n"
                               "    set.ne.u64 p0, r50, #3\n"
                               "    @p0 bra go\n"
                               "    trap #3\n"
                               "go:\n";

static const struct {
  const char *name;
  uint32_t bytes;
} row_types[] = {{"f32", 4}, {"f64", 8}, {"f16", 2}, {"bf16", 2}, {"i32", 4}, {"u8", 1}, {"i64", 8}};

/* The first block's are small numbers, among the next ones' are NaNs, the last ones' are any bits. */
static uint8_t *row_contents(uint32_t bytes, uint64_t count) {
  uint8_t *values = malloc((size_t)(count * bytes));
  uint64_t state = 11;
  for (uint64_t i = 0; i < count; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t bits = state ^ state >> 29, top = UINT64_C(1) << (8 * bytes - 2);
    int any = i > 2 * count / 3 || (i > count / 3 && state >> 40 % 61 == 0);
    if (!any) bits = (bits & ~(top | top / 8)) | top / 2 | top / 4;
    memcpy(values + i * bytes, &bits, bytes);
  }
  return values;
}

typedef struct row_case {
  uint32_t type, size;
  int is_required, ends, is_partial, is_full; /* the block's size is the program's; lanes end; the last block lacks
                                                 lanes; the program's own shared memory leaves no room */
} row_case;

/* Of f32: all but what collectives cannot do without, where a block has no more than 32 KiB. */
static unsigned filling(void) {
  hg_executor_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_executor_query(tested, &info), HG_OK);
  return info.max_shared_bytes > 32768 ? 8192 : 5632;
}

static void run_row(hg_executor *on, const row_case *r, void *y_out, uint64_t *z_out, hg_fault *fault) {
  char text[4096], header[128] = "";
  const char *words[] = {header, row_types[r->type].name, r->ends ? some_end : ""};
  uint32_t bytes = row_types[r->type].bytes;
  if (r->is_required) snprintf(header, sizeof header, ".block %u\n", r->size);
  if (r->is_full) snprintf(header + strlen(header), sizeof header - strlen(header), ".shared full f32 %u\n", filling());
  fill_in(row_text, "HTU", words, text, sizeof text);
  executor = on;
  hg_kernel *kernel = kernel_of(text);
  uint64_t lanes = (uint64_t)r->size * ROW_BLOCKS, y_bytes = lanes * ROW_VALUES * bytes;
  uint8_t *values = row_contents(bytes, lanes + 4);
  memset(y_out, 0, y_bytes);
  memset(z_out, 0, lanes * ROW_VALUES * 8);
  hg_buffer *a = buffer_of((lanes + 4) * bytes, values), *y = buffer_of(y_bytes, y_out),
            *z = buffer_of(lanes * ROW_VALUES * 8, z_out);
  hg_binding bindings[] = {{.name = "a", .buffer = a}, {.name = "y", .buffer = y}, {.name = "z", .buffer = z}};
  hg_launch_desc desc = {.bindings = bindings, .binding_count = COUNT(bindings)};
  hg_launch_report report = {.size = sizeof report};
  if (r->is_partial) desc.lanes = lanes - (r->size + 2) / 3;
  else {
    desc.grid[0] = ROW_BLOCKS;
    desc.block[0] = r->size;
  }
  CHECK_EQ_U64(hg_launch(kernel, &desc, &report), r->ends && lanes > 3 ? HG_FAULT : HG_OK);
  *fault = report.fault;
  CHECK_EQ_U64(hg_buffer_read(y, 0, y_out, y_bytes), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(z, 0, z_out, lanes * ROW_VALUES * 8), HG_OK);
  free(values);
  hg_buffer_release(a);
  hg_buffer_release(y);
  hg_buffer_release(z);
  hg_kernel_release(kernel);
}

static void check_row(const row_case *r) {
  enum { MOST = 1024 * ROW_BLOCKS * ROW_VALUES };
  static uint64_t want[MOST], got[MOST], want_z[MOST], got_z[MOST];
  hg_fault want_fault, got_fault;
  uint32_t count = r->size * ROW_BLOCKS * ROW_VALUES;
  run_row(reference, r, want, want_z, &want_fault);
  run_row(tested, r, got, got_z, &got_fault);
  int same = memcmp(want, got, (size_t)count * row_types[r->type].bytes) == 0 &&
             memcmp(want_z, got_z, (size_t)count * 8) == 0 && want_fault.kind == got_fault.kind &&
             want_fault.lane == got_fault.lane;
  if (!check_note(same))
    printf("collectives in a row, %s in blocks of %u%s%s%s%s: other results\n", row_types[r->type].name, r->size,
           r->is_required ? ", required" : "", r->ends ? ", lanes end" : "", r->is_partial ? ", a partial block" : "",
           r->is_full ? ", little room" : "");
}

static void test_rows(int all) {
  static const uint32_t sizes[] = {1, 2, 3, 7, 16, 31, 32, 33, 63, 64, 65, 96, 100, 128, 255, 256, 257, 1000, 1024};
  for (uint32_t t = 0; t < COUNT(row_types); t++)
    for (uint32_t k = 0; k < COUNT(sizes); k++)
      for (uint32_t way = 0; way < 8; way++) {
        row_case r = {.type = t, .size = sizes[k]};
        r.is_required = (way & 1) != 0;
        r.ends = (way & 2) != 0;
        r.is_partial = (way & 4) != 0;
        r.is_full = (t + k + way) % 3 == 0;
        if (r.is_partial && !r.is_required && r.size != 256) continue; /* such launches have blocks of 256 */
        int is_small = r.size < 300;
        if (all || (is_small && is_in_shard(t + k + way)) || (!is_small && way == (t + k) % 8 && is_in_shard(t + k)))
          check_row(&r);
      }
}

/* ---- alone, of every type ---------------------------------------------------------------------------------------- */

enum { ALONE_BLOCKS = 3, ALONE_LANES = ALONE_BLOCKS * 256 + 100, ALONE_BYTES = ALONE_LANES * 8 };

/* H is the header's rest, C the collective, T the type: short enough to be written out for a whole block. */
static const char alone_text[] = ".program alone\n"
                                 "H"
                                 ".buffer a T in\n"
                                 ".buffer y T out\n"
                                 "    ldg.T r0, [a + lane]\n"
                                 "    C.T r1, r0\n"
                                 "    stg.T [y + lane], r1\n"
                                 "    exit\n";

static void run_alone(hg_executor *on, const char *const *words, uint32_t bytes, uint8_t *out) {
  char text[512];
  fill_in(alone_text, "HCT", words, text, sizeof text);
  executor = on;
  hg_kernel *kernel = kernel_of(text);
  uint8_t *values = row_contents(bytes, ALONE_LANES);
  for (uint32_t first = 256; first < ALONE_LANES && bytes > 1; first += 256) /* NaNs that are not canonical */
    memcpy(values + (first + 1) * bytes - 2, "\xf5\xff", 2);
  hg_buffer *a = buffer_of((uint64_t)ALONE_LANES * bytes, values), *y = buffer_of((uint64_t)ALONE_LANES * bytes, NULL);
  hg_binding bindings[] = {{.name = "a", .buffer = a}, {.name = "y", .buffer = y}};
  hg_launch_desc desc = {.lanes = ALONE_LANES, .bindings = bindings, .binding_count = COUNT(bindings)};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, out, (uint64_t)ALONE_LANES * bytes), HG_OK);
  free(values);
  hg_buffer_release(a);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

/* A linear launch, whose last block lacks lanes; without a required size its blocks have 256. */
static void test_alone(void) {
  static const char *const types[] = {"i8",  "i16", "i32", "i64",  "u8",  "u16",
                                      "u32", "u64", "f16", "bf16", "f32", "f64"};
  static const char *const collectives[] = {"reduce.add", "reduce.mul", "reduce.min",
                                            "reduce.max", "scan.incl",  "scan.excl"};
  static const char *const headers[] = {"", ".block 64\n", ".block 48\n"};
  static uint8_t want[ALONE_BYTES], got[ALONE_BYTES];
  for (size_t t = 0; t < COUNT(types); t++)
    for (size_t c = 0; c < COUNT(collectives); c++)
      for (size_t h = 0; h < COUNT(headers); h++) {
        const char *words[] = {headers[h], collectives[c], types[t]};
        uint32_t bits = (uint32_t)strtoul(types[t] + strcspn(types[t], "0123456789"), NULL, 10);
        run_alone(reference, words, bits / 8, want);
        run_alone(tested, words, bits / 8, got);
        if (!check_note(memcmp(want, got, (size_t)ALONE_LANES * bits / 8) == 0))
          printf("%s.%s alone differs, %s\n", collectives[c], types[t], headers[h]);
      }
}

int main(int argc, char **argv) {
  int all = argc > 1 && strcmp(argv[1], "--all") == 0;
  if (!all && !choose_shard(argc, argv)) return 2;
  CHECK_EQ_U64(open_test_executor(NULL, &tested), HG_OK);
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  set("HOLOGRAM_CPU_ENGINE", "interp");
  CHECK_EQ_U64(hg_executor_create(&desc, &reference), HG_OK);
  test_folds(all);
  test_blocks(all);
  test_rows(all);
  test_alone();
  hg_executor_release(reference);
  set("HOLOGRAM_CPU_ENGINE", "native");
  CHECK_EQ_U64(hg_executor_create(&desc, &reference), HG_OK);
  for (size_t i = 0; all && i < COUNT(folds); i++) check_fold(&folds[i], UINT64_C(1) << 28, 4096);
  hg_executor_release(reference);
  hg_executor_release(tested);
  return check_report();
}
