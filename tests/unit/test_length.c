/* test_length.c - `len`: the whole elements of the range that a launch binds, which a fault record names as the extent;
 * of two buffers, two lengths; of a graph, those of the launches in it. */
#include "launching.h"

/* The lengths of x, y and z in out[0], out[1], out[2], by one lane. */
static const char lengths_text[] =
    ".program lengths\n"
    ".buffer x f32 in\n"
    ".buffer y u64 inout\n"
    ".buffer z f16 out\n"
    ".buffer o u64 out\n"
    "    len.u64 r0, x\n"
    "    len.u64 r1, y\n"
    "    len.u64 r2, z\n"
    "    stg.u64 [o], r0\n"
    "    stg.u64 [o + #1], r1\n"
    "    stg.u64 [o + #2], r2\n"
    "    exit\n";

enum { BYTES = 4096 };

static void check_words(hg_buffer *buffer, uint32_t count, const uint64_t *expected) {
  uint64_t words[8] = {0};
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, words, count * sizeof *words), HG_OK);
  for (uint32_t i = 0; i < count; i++) CHECK_EQ_U64(words[i], expected[i]);
}

static void test_ranges(void) {
  hg_kernel *kernel = kernel_of(lengths_text);
  hg_buffer *x = buffer_of(BYTES, NULL), *y = buffer_of(BYTES, NULL), *z = buffer_of(BYTES, NULL), *part = NULL;
  hg_buffer *out = buffer_of(3 * 8, NULL), *small = buffer_of(8, NULL);
  CHECK_EQ_U64(hg_buffer_view(y, 64, 512, &part), HG_OK);
  const struct {
    hg_binding x, y, z; /* without their names */
    uint64_t expected[3];
  } cases[] = {
      {{.buffer = x}, {.buffer = y}, {.buffer = z}, {1024, 512, 2048}},
      {{.buffer = x, .offset = 8}, {.buffer = part}, {.buffer = small}, {1022, 64, 4}},
      {{.buffer = x, .byte_count = 11}, {.buffer = y, .offset = 4088}, {.buffer = z, .byte_count = 1}, {2, 1, 0}},
      {{.buffer = x, .offset = 4092}, {.buffer = part, .offset = 8, .byte_count = 12}, {.buffer = z, .offset = 4094},
       {1, 1, 1}}, /* whole elements */
  };
  for (size_t k = 0; k < COUNT(cases); k++) {
    hg_binding bindings[] = {cases[k].x, cases[k].y, cases[k].z, {.name = "o", .buffer = out}};
    bindings[0].name = "x";
    bindings[1].name = "y";
    bindings[2].name = "z";
    hg_launch_desc desc = {.size = sizeof desc, .lanes = 1, .bindings = bindings, .binding_count = 4};
    CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
    check_words(out, 3, cases[k].expected);
  }
  hg_buffer *all[] = {x, y, z, part, small, out};
  for (size_t i = 0; i < COUNT(all); i++) hg_buffer_release(all[i]);
  hg_kernel_release(kernel);
}

/* An access at the length is the first that faults, and the record's extent is the length. */
static void test_extent(void) {
  hg_kernel *kernel = kernel_of(".program past\n.buffer x u32 inout\n.buffer n u64 out\n.scalar more u64\n"
                                "    len.u64 r0, x\n    stg.u64 [n], r0\n    add.u64 r0, r0, more\n"
                                "    stg.u32 [x + r0], #7\n    exit\n");
  hg_buffer *x = buffer_of(BYTES, NULL), *n = buffer_of(8, NULL);
  for (int before = 0; before < 2; before++) {
    hg_binding bindings[] = {{.name = "x", .buffer = x, .offset = 16, .byte_count = 403}, {.name = "n", .buffer = n}};
    hg_scalar more = {.name = "more", .type = ATLAS_u64, .bits = before ? UINT64_MAX : 0};
    hg_launch_desc desc = {
        .size = sizeof desc, .lanes = 1, .bindings = bindings, .binding_count = 2, .scalars = &more, .scalar_count = 1};
    hg_launch_report report = {0};
    uint32_t last = 0;
    CHECK_EQ_U64(hg_launch(kernel, &desc, &report), before ? HG_OK : HG_FAULT);
    check_words(n, 1, (uint64_t[]){100});
    CHECK_EQ_U64(report.fault.kind, before ? HG_FAULT_NONE : HG_FAULT_OUT_OF_BOUNDS);
    CHECK(report.fault.extent == (before ? 0 : 100) && report.fault.index == (before ? 0 : 100));
    CHECK_EQ_U64(hg_buffer_read(x, 16 + 99 * 4, &last, 4), HG_OK);
    CHECK_EQ_U64(last, before ? 7 : 0);
  }
  hg_buffer_release(x);
  hg_buffer_release(n);
  hg_kernel_release(kernel);
}

/* Two ranges of one buffer, loops that end at lengths, in blocks; bound alike the lengths are equal, and stay two. */
static const char strided_text[] =
    ".program strided\n"
    ".block 64\n"
    ".buffer x u32 in\n"
    ".buffer y u32 in\n"
    ".buffer sum u32 out\n"
    "    movi.u32 r0, #0\n"
    "    len.u64 r1, x\n"
    "    len.u64 r2, y\n"
    "    cvt.u64.u32 r3, blane\n"
    "    cvt.u64.u32 r4, blane\n"
    "xs: set.ge.u64 p0, r3, r1\n"
    "    @p0 bra ys\n"
    "    ldg.u32 r5, [x + r3]\n"
    "    add.u32 r0, r0, r5\n"
    "    add.u64 r3, r3, #64\n"
    "    bra xs\n"
    "ys: set.ge.u64 p0, r4, r2\n"
    "    @p0 bra done\n"
    "    ldg.u32 r5, [y + r4]\n"
    "    mad.u32 r0, r5, #1000, r0\n"
    "    add.u64 r4, r4, #64\n"
    "    bra ys\n"
    "done: reduce.add.u32 r0, r0\n"
    "    stg.u32 [sum + lane], r0\n"
    "    exit\n";

static void test_loops(void) {
  static const struct {
    uint64_t offset, byte_count;
  } ranges[] = {{0, 4096}, {4, 400}, {2048, 4 * 63}, {2048, 4 * 64}, {1024, 4 * 65}, {4092, 4}, {0, 3}};
  hg_kernel *kernel = kernel_of(strided_text);
  uint32_t values[BYTES / 4], sums[128];
  for (uint32_t i = 0; i < COUNT(values); i++) values[i] = i * i;
  hg_buffer *memory = buffer_of(BYTES, values), *sum = buffer_of(sizeof sums, NULL);
  for (size_t k = 0; k < COUNT(ranges) * COUNT(ranges); k++) {
    size_t of[2] = {k % COUNT(ranges), k / COUNT(ranges)};
    uint32_t expected = 0;
    for (int side = 0; side < 2; side++)
      for (uint64_t i = 0; i < ranges[of[side]].byte_count / 4; i++)
        expected += values[ranges[of[side]].offset / 4 + i] * (side == 0 ? 1 : 1000);
    hg_binding bindings[] = {
        {.name = "x", .buffer = memory, .offset = ranges[of[0]].offset, .byte_count = ranges[of[0]].byte_count},
        {.name = "y", .buffer = memory, .offset = ranges[of[1]].offset, .byte_count = ranges[of[1]].byte_count},
        {.name = "sum", .buffer = sum}};
    hg_launch_desc desc = {.size = sizeof desc, .lanes = 128, .bindings = bindings, .binding_count = 3};
    CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
    CHECK_EQ_U64(hg_buffer_read(sum, 0, sums, sizeof sums), HG_OK);
    CHECK_EQ_U64(sums[0], expected);
    CHECK_EQ_U64(sums[127], expected);
  }
  hg_buffer_release(memory);
  hg_buffer_release(sum);
  hg_kernel_release(kernel);
}

static void hash_of(const char *text, uint8_t hash[ATLAS_HASH_BYTES]) {
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, text, strlen(text), "test", &program), HG_OK);
  CHECK_EQ_U64(atlas_program_hash(program, hash), HG_OK);
  atlas_program_release(program);
}

#define TWO ".buffer x u32 in\n.buffer y u32 in\n.buffer o u64 out\n"

/* The instruction is hashed; what is asked twice is asked once; other buffers are other values. */
static void test_identity(void) {
  static const char *const texts[] = {
      TWO "len.u64 r0, x\nlen.u64 r1, x\nadd.u64 r0, r0, r1\nstg.u64 [o + lane], r0\nexit\n",
      TWO "len.u64 r0, x\nadd.u64 r0, r0, r0\nstg.u64 [o + lane], r0\nlen.u64 r0, y\nexit\n",
      TWO "len.u64 r0, x\nlen.u64 r1, y\nadd.u64 r0, r0, r1\nstg.u64 [o + lane], r0\nexit\n",
      TWO "len.u64 r0, y\nadd.u64 r0, r0, r0\nstg.u64 [o + lane], r0\nexit\n",
      TWO "len.u64 r0, x\nstg.u64 [o + lane], r0\nexit\n"};
  uint8_t hash[COUNT(texts)][ATLAS_HASH_BYTES];
  for (size_t i = 0; i < COUNT(texts); i++) hash_of(texts[i], hash[i]);
  for (size_t i = 0; i < COUNT(texts); i++)
    for (size_t k = 0; k < i; k++)
      CHECK((memcmp(hash[i], hash[k], ATLAS_HASH_BYTES) == 0) == (i == 1 && k == 0));
}

/* A graph keeps the ranges that its launches were given. */
static void test_graph(void) {
  hg_kernel *kernel = kernel_of(lengths_text);
  hg_buffer *memory = buffer_of(BYTES, NULL), *y = buffer_of(BYTES, NULL), *z = buffer_of(BYTES, NULL);
  hg_buffer *first = buffer_of(24, NULL), *second = buffer_of(24, NULL);
  hg_stream *stream = NULL;
  hg_graph *graph = NULL;
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  hg_binding bindings[] = {{.name = "x", .buffer = memory, .byte_count = 40},
                           {.name = "y", .buffer = y},
                           {.name = "z", .buffer = z, .offset = 4000},
                           {.name = "o", .buffer = first}};
  hg_launch_desc desc = {
      .size = sizeof desc, .lanes = 1, .bindings = bindings, .binding_count = 4, .stream = stream};
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  bindings[0].byte_count = 8;
  bindings[3].buffer = second;
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  for (int round = 0; round < 3; round++) {
    const uint64_t zeros[3] = {0};
    CHECK_EQ_U64(hg_buffer_write(first, 0, zeros, sizeof zeros), HG_OK);
    CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
    CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
    check_words(first, 3, (uint64_t[]){10, 512, 48});
    check_words(second, 3, (uint64_t[]){2, 512, 48});
  }
  hg_graph_release(graph);
  hg_stream_release(stream);
  hg_buffer *all[] = {memory, y, z, first, second};
  for (size_t i = 0; i < COUNT(all); i++) hg_buffer_release(all[i]);
  hg_kernel_release(kernel);
}

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  test_ranges();
  test_extent();
  test_loops();
  test_identity();
  test_graph();
  hg_executor_release(executor);
  return check_report();
}
