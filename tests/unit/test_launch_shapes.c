/* test_launch_shapes.c - launches: grids, blocks and lanes, which of them are refused, and where each lane is. */
#include "launching.h"

static void test_shapes(void) {
  hg_kernel *kernel = kernel_of(count_text);
  hg_buffer *n = buffer_of(8, NULL);
  hg_binding binding = {.name = "n", .buffer = n};
  static const struct {
    uint64_t lanes;
    uint32_t grid[3], block[3];
    uint64_t ran;         /* where sentence is NULL */
    const char *sentence;
  } cases[] = {
      {0, {0, 0, 0}, {0, 0, 0}, 0, NULL},
      {1, {0, 0, 0}, {0, 0, 0}, 1, NULL},
      {257, {0, 0, 0}, {0, 0, 0}, 257, NULL},
      {0, {3, 0, 0}, {0, 0, 0}, 3, NULL},
      {0, {0, 2, 0}, {0, 5, 0}, 10, NULL},
      {0, {2, 3, 4}, {5, 6, 7}, 5040, NULL},
      {0, {1, 1, 1}, {1024, 0, 0}, 1024, NULL},
      {0, {1, 1, 1}, {4, 16, 16}, 1024, NULL},
      {1, {1, 0, 0}, {0, 0, 0}, 0, "a launch is given by lanes or by grid and block; both are set"},
      {1, {0, 0, 0}, {1, 0, 0}, 0, "a launch with a block size needs a grid size; in a linear launch leave both 0"},
      {0, {0, 0, 0}, {1, 0, 0}, 0, "a launch with a block size needs a grid size; in a linear launch leave both 0"},
      {0, {1, 1, 1}, {1025, 1, 1}, 0, "a block of 1025 x 1 x 1 lanes is too large; a block has at most 1024 lanes"},
      {0,
       {1, 1, 1},
       {65536, 65536, 65536},
       0,
       "a block of 65536 x 65536 x 65536 lanes is too large; a block has at most 1024 lanes"},
      {0, {1, 1, 1}, {2, 0, 513}, 0, "a block of 2 x 1 x 513 lanes is too large; a block has at most 1024 lanes"},
      {0, {0x80000000u, 1, 1}, {1, 1, 1}, 0, "grid dimension x is 2147483648 blocks; at most 2147483647 are possible"},
      {0, {1, 1, UINT32_MAX}, {1, 1, 1}, 0, "grid dimension z is 4294967295 blocks; at most 2147483647 are possible"},
      {0, {0x7fffffff, 512, 1}, {1, 1, 1}, 0, NULL}, /* marked below: fewer than 2^40 lanes, too many to run here */
      {0,
       {0x7fffffff, 513, 1},
       {1, 1, 1},
       0,
       "a grid of 2147483647 x 513 x 1 blocks of 1 x 1 x 1 lanes is too large: a launch has fewer than 2^40 lanes"},
      {0,
       {0x40000000, 1, 1},
       {1024, 1, 1},
       0,
       "a grid of 1073741824 x 1 x 1 blocks of 1024 x 1 x 1 lanes is too large: a launch has fewer than 2^40 lanes"},
      {0,
       {0x7fffffff, 0x7fffffff, 0x7fffffff},
       {1024, 1, 1},
       0,
       "a grid of 2147483647 x 2147483647 x 2147483647 blocks of 1024 x 1 x 1 lanes is too large: a launch has fewer "
       "than 2^40 lanes"},
      {UINT64_C(1) << 40, {0, 0, 0}, {0, 0, 0}, 0, "1099511627776 lanes are too many; a launch has fewer than 2^40"},
      {UINT64_MAX, {0, 0, 0}, {0, 0, 0}, 0, "18446744073709551615 lanes are too many; a launch has fewer than 2^40"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    hg_launch_desc desc = {.lanes = cases[i].lanes, .bindings = &binding, .binding_count = 1};
    memcpy(desc.grid, cases[i].grid, sizeof desc.grid);
    memcpy(desc.block, cases[i].block, sizeof desc.block);
    if (cases[i].sentence != NULL) {
      CHECK_LAUNCH(kernel, &desc, HG_INVALID_ARGUMENT, cases[i].sentence);
      continue;
    }
    if (cases[i].grid[0] == 0x7fffffff) { /* the shape passes: the next check, a missing binding, is what refuses it */
      desc.binding_count = 0;
      CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_BINDING);
      continue;
    }
    uint64_t ran = 0;
    hg_launch_report report = {0};
    CHECK_EQ_U64(hg_buffer_write(n, 0, &ran, 8), HG_OK);
    CHECK_EQ_U64(hg_launch(kernel, &desc, &report), HG_OK);
    CHECK_EQ_U64(hg_buffer_read(n, 0, &ran, 8), HG_OK);
    CHECK_EQ_U64(ran, cases[i].ran);
    CHECK_EQ_U64(report.lanes, cases[i].ran);
  }
  hg_buffer_release(n);
  hg_kernel_release(kernel);
}

/* Where blocks that are lines lie in a grid of three dimensions: programs that ask for x alone, and for all. */
static void test_lines_in_space(void) {
  static const char *const texts[] = {
      ".program line\n.block 4\n.buffer n u32 out\n    mul.u32 r0, r253, #10\n    add.u32 r0, r0, blane\n"
      "    stg.u32 [n + lane], r0\n    exit\n",
      ".program space\n.block 4\n.buffer n u32 out\n    sreg.u32 r0, block.z\n    mul.u32 r0, r0, #10\n"
      "    sreg.u32 r1, block.y\n    add.u32 r0, r0, r1\n    mul.u32 r0, r0, #10\n    add.u32 r0, r0, r253\n"
      "    mul.u32 r0, r0, #10\n    sreg.u32 r1, lane.x\n    add.u32 r0, r0, r1\n"
      "    stg.u32 [n + lane], r0\n    exit\n"};
  enum { X = 3, Y = 2, Z = 5, WIDE = 4 };
  for (unsigned t = 0; t < COUNT(texts); t++) {
    uint32_t n[X * Y * Z * WIDE];
    hg_kernel *kernel = kernel_of(texts[t]);
    hg_buffer *buffer = buffer_of(sizeof n, NULL);
    hg_binding binding = {.name = "n", .buffer = buffer};
    hg_launch_desc desc = {.grid = {X, Y, Z}, .bindings = &binding, .binding_count = 1};
    CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
    CHECK_EQ_U64(hg_buffer_read(buffer, 0, n, sizeof n), HG_OK);
    for (uint32_t i = 0; i < COUNT(n); i++) {
      uint32_t block = i / WIDE, x = block % X, y = block / X % Y, z = block / X / Y;
      CHECK_EQ_U64(n[i], (t > 0 ? z * 1000 + y * 100 : 0) + x * 10 + i % WIDE);
    }
    hg_buffer_release(buffer);
    hg_kernel_release(kernel);
  }
}

static void test_required_block(void) {
  static const char text[] =
      ".program tiles\n.block 4, 2\n.buffer n u64 inout\n    atom.add.u64 _, [n + #0], #1\n    exit\n";
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *n = buffer_of(8, NULL);
  hg_binding binding = {.name = "n", .buffer = n};
  hg_launch_desc desc = {.grid = {3}, .block = {4, 2}, .bindings = &binding, .binding_count = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  memset(desc.block, 0, sizeof desc.block); /* nothing asked for: what the program requires */
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  uint64_t ran = 0;
  CHECK_EQ_U64(hg_buffer_read(n, 0, &ran, 8), HG_OK);
  CHECK_EQ_U64(ran, 48);
  desc.block[0] = 8;
  CHECK_LAUNCH(kernel, &desc, HG_INVALID_ARGUMENT, "program 'tiles' requires blocks of 4 x 2 x 1 lanes, not 8 x 1 x 1");
  desc = (hg_launch_desc){.lanes = 8, .bindings = &binding, .binding_count = 1};
  CHECK_LAUNCH(kernel, &desc, HG_INVALID_ARGUMENT,
               "program 'tiles' requires blocks of 4 x 2 x 1 lanes; launch it with a grid, not with lanes");
  hg_buffer_release(n);
  hg_kernel_release(kernel);
}

/* What a lane sees of its block, its width and how many lanes of it there are, after a launch. */
static void check_widths(hg_kernel *kernel, hg_launch_desc desc, uint64_t lanes, uint32_t width, uint32_t first_block) {
  uint32_t seen[2][1200];
  hg_buffer *w = buffer_of(sizeof seen[0], NULL), *n = buffer_of(sizeof seen[1], NULL);
  hg_binding bindings[] = {{.name = "w", .buffer = w}, {.name = "n", .buffer = n}};
  hg_launch_report report = {.lanes = 0};
  desc.bindings = bindings;
  desc.binding_count = 2;
  CHECK_EQ_U64(hg_launch(kernel, &desc, &report), HG_OK);
  CHECK_EQ_U64(report.lanes, lanes);
  CHECK_EQ_U64(desc.stream != NULL ? hg_stream_wait(desc.stream, NULL) : HG_OK, HG_OK);
  CHECK_EQ_U64(hg_buffer_read(w, 0, seen[0], sizeof seen[0]), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(n, 0, seen[1], sizeof seen[1]), HG_OK);
  CHECK_EQ_U64(seen[0][0], width);
  CHECK_EQ_U64(seen[0][lanes - 1], width);
  CHECK_EQ_U64(seen[0][lanes], 0);
  CHECK_EQ_U64(seen[1][0], first_block);
  hg_buffer_release(w);
  hg_buffer_release(n);
}

/* Programs that differ in their default only are one program to the cache of kernels. */
static void test_default_block(void) {
#define WIDTHS                                                                                                   \
  ".buffer w u32 out\n.buffer n u32 out\n reduce.add.u32 r0, #1\n stg.u32 [n + lane], r0\n stg.u32 [w + lane], r254\n" \
  " exit\n"
  hg_kernel *small = kernel_of(".block 48 default\n" WIDTHS), *large = kernel_of(".block 512 default\n" WIDTHS);
  hg_kernel *flat = kernel_of(".block 8, 4 default\n" WIDTHS), *none = kernel_of(WIDTHS);
  hg_stream *stream = NULL;
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  check_widths(small, (hg_launch_desc){.grid = {3}}, 144, 48, 48);
  check_widths(small, (hg_launch_desc){.grid = {3}, .block = {16, 2}}, 96, 16, 32); /* the launch says another */
  check_widths(small, (hg_launch_desc){.lanes = 100}, 100, 48, 48);
  check_widths(small, (hg_launch_desc){.lanes = 40}, 40, 48, 40);
  check_widths(large, (hg_launch_desc){.lanes = 600}, 600, 512, 512);
  check_widths(large, (hg_launch_desc){.lanes = 600, .stream = stream}, 600, 512, 512);
  check_widths(large, (hg_launch_desc){.grid = {2}}, 1024, 512, 512);
  check_widths(small, (hg_launch_desc){.grid = {3}, .stream = stream}, 144, 48, 48);
  check_widths(flat, (hg_launch_desc){.grid = {3}}, 96, 8, 32);
  check_widths(flat, (hg_launch_desc){.lanes = 600}, 600, 256, 256); /* a linear launch has one dimension */
  check_widths(none, (hg_launch_desc){.lanes = 600}, 600, 256, 256);
  check_widths(none, (hg_launch_desc){.grid = {600}}, 600, 1, 1);
  hg_stream_release(stream);
  hg_kernel_release(small);
  hg_kernel_release(large);
  hg_kernel_release(flat);
  hg_kernel_release(none);
}

static void test_desc_refusals(void) {
  hg_kernel *kernel = kernel_of(count_text);
  hg_launch_desc desc = {.size = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_INVALID_ARGUMENT);
  desc = (hg_launch_desc){.flags = 2};
  CHECK_LAUNCH(kernel, &desc, HG_INVALID_ARGUMENT, "hg_launch_desc.flags 0x2 has a bit that means nothing");
  desc = (hg_launch_desc){.binding_count = 1};
  CHECK_LAUNCH(kernel, &desc, HG_INVALID_ARGUMENT, "hg_launch_desc.bindings is NULL, binding_count is 1");
  desc = (hg_launch_desc){.scalar_count = 2};
  CHECK_LAUNCH(kernel, &desc, HG_INVALID_ARGUMENT, "hg_launch_desc.scalars is NULL, scalar_count is 2");
  CHECK_EQ_U64(hg_launch(NULL, &desc, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_launch(kernel, NULL, NULL), HG_INVALID_ARGUMENT);
  hg_kernel_release(kernel);
}

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  test_shapes();
  test_lines_in_space();
  test_required_block();
  test_default_block();
  test_desc_refusals();
  hg_executor_release(executor);
  return check_report();
}
