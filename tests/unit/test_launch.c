/* test_launch.c - launches: what is bound to them, and each refusal with its sentence. Shapes: test_launch_shapes.c. */
#include "launching.h"

#if defined(__x86_64__) && !defined(_WIN32)
#  include <xmmintrin.h>
#endif

static const char saxpy_text[] =
    ".program saxpy\n"
    ".buffer x f32 in\n"
    ".buffer y f32 inout\n"
    ".scalar a f32\n"
    "    ldg.f32 r0, [x + lane]\n"
    "    ldg.f32 r1, [y + lane]\n"
    "    mov.f32 r2, a\n"
    "    fma.f32 r3, r2, r0, r1\n"
    "    stg.f32 [y + lane], r3\n"
    "    exit\n";

/* ---- a launch that works ----------------------------------------------------------------------------------------- */

static void test_saxpy(void) {
  const float x[5] = {0, 1, 2, 3, 4}, y[5] = {10, 10, 10, 10, 10};
  float result[5];
  hg_kernel *kernel = kernel_of(saxpy_text);
  hg_buffer *bx = buffer_of(sizeof x, x), *by = buffer_of(sizeof y, y);
  hg_binding by_name[] = {{.name = "y", .buffer = by}, {.name = "x", .buffer = bx}};
  hg_binding by_slot[] = {{.slot = 0, .buffer = bx}, {.slot = 1, .buffer = by, .offset = 4, .byte_count = 12}};
  hg_scalar a = {.name = "a", .type = ATLAS_f32, .bits = bits_of(2)};
  hg_launch_desc desc = {
      .size = sizeof desc, .lanes = 5, .bindings = by_name, .binding_count = 2, .scalars = &a, .scalar_count = 1};
  hg_launch_report report = {0};
  CHECK_EQ_U64(hg_launch(kernel, &desc, &report), HG_OK);
  CHECK_EQ_U64(report.fault.kind, HG_FAULT_NONE);
  CHECK_EQ_U64(report.lanes, 5);
  CHECK_STR(report.backend, test_backend_name());
  CHECK(strcmp(report.engine, "reference") == 0 || strncmp(report.engine, "tile ", 5) == 0 ||
        strncmp(report.engine, "native ", 7) == 0 || strcmp(report.engine, "ptx") == 0 ||
        strcmp(report.engine, "msl") == 0);
  CHECK_EQ_U64(hg_buffer_read(by, 0, result, sizeof result), HG_OK);
  for (int i = 0; i < 5; i++) CHECK(result[i] == 10 + 2 * (float)i);

  desc.bindings = by_slot; /* part of y, and a scalar by slot, which is the index among all symbols */
  desc.lanes = 3;
  hg_scalar by_slot_scalar = {
      .slot = 2, .type = ATLAS_f32, .bits = bits_of(1) | UINT64_C(0xffffffff) << 32}; /* high bits are ignored */
  desc.scalars = &by_slot_scalar;
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(by, 0, result, sizeof result), HG_OK);
  const float expected[5] = {10, 12, 15, 18, 18};
  for (int i = 0; i < 5; i++) CHECK(result[i] == expected[i]);

  CHECK(hg_kernel_retain(kernel) == kernel);
  hg_kernel_release(kernel);
  hg_buffer_release(bx);
  hg_buffer_release(by);
  hg_kernel_release(kernel);
  hg_kernel_release(NULL);
}

/* ---- bindings that do not fit ------------------------------------------------------------------------------------ */

static void test_binding_refusals(void) {
  hg_kernel *kernel = kernel_of(saxpy_text);
  hg_buffer *x = buffer_of(64, NULL), *y = buffer_of(64, NULL), *odd = NULL;
  CHECK_EQ_U64(hg_buffer_view(x, 2, 32, &odd), HG_OK);
  hg_executor *other = NULL;
  hg_buffer *foreign = NULL;
  CHECK_EQ_U64(open_test_executor(NULL, &other), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(other, NULL, 64, &foreign), HG_OK);
  hg_binding good_x = {.name = "x", .buffer = x}, good_y = {.name = "y", .buffer = y};
  hg_scalar good_a = {.name = "a", .type = ATLAS_f32};

  struct {
    hg_binding binding; /* in the place of x's */
    hg_status status;
    const char *sentence;
  } cases[] = {
      {{.name = "z", .buffer = x}, HG_BINDING, "program 'saxpy' has no parameter 'z'; its buffers are: x, y"},
      {{.slot = 9, .buffer = x}, HG_BINDING, "there is no slot 9: program 'saxpy' has 3 symbols"},
      {{.name = "a", .buffer = x}, HG_BINDING, "'a' is a scalar and cannot be given a buffer"},
      {{.slot = 2, .buffer = x}, HG_BINDING, "'a' is a scalar and cannot be given a buffer"},
      {{.name = "x"}, HG_BINDING, "the binding of 'x' has no buffer"},
      {{.name = "x", .buffer = x, .entry = 1}, HG_BINDING, "'x' is a buffer, not a table, and has no entry 1"},
      {{.name = "x", .buffer = foreign}, HG_BINDING, "the buffer for 'x' belongs to another executor than the kernel"},
      {{.name = "x", .buffer = x, .offset = 68},
       HG_BINDING,
       "the range for 'x' (0 bytes at offset 68) does not lie in its buffer of 64 bytes"},
      {{.name = "x", .buffer = x, .offset = 60, .byte_count = 8},
       HG_BINDING,
       "the range for 'x' (8 bytes at offset 60) does not lie in its buffer of 64 bytes"},
      {{.name = "x", .buffer = x, .offset = UINT64_MAX, .byte_count = 8},
       HG_BINDING,
       "the range for 'x' (8 bytes at offset 18446744073709551615) does not lie in its buffer of 64 bytes"},
      {{.name = "x", .buffer = x, .offset = 6},
       HG_BINDING,
       "the range for 'x' starts at byte 6 of its memory; it must be a multiple of 4 (f32)"},
      {{.name = "x", .buffer = odd},
       HG_BINDING,
       "the range for 'x' starts at byte 2 of its memory; it must be a multiple of 4 (f32)"},
      {{.name = "y", .buffer = x}, HG_BINDING, "'y' is bound twice"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    hg_binding bindings[] = {cases[i].binding, good_y};
    hg_launch_desc desc = {.lanes = 1, .bindings = bindings, .binding_count = 2, .scalars = &good_a, .scalar_count = 1};
    CHECK_LAUNCH(kernel, &desc, cases[i].status, cases[i].sentence);
  }
  hg_binding aligned_again = {.name = "x", .buffer = odd, .offset = 2};
  hg_binding bindings[] = {aligned_again, good_y};
  hg_launch_desc desc = {.lanes = 1, .bindings = bindings, .binding_count = 2, .scalars = &good_a, .scalar_count = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);

  desc.bindings = &good_x;
  desc.binding_count = 1;
  CHECK_LAUNCH(kernel, &desc, HG_BINDING, "'y' is not bound: the program needs a buffer of f32 (inout) for it");
  desc.binding_count = 0;
  CHECK_LAUNCH(kernel, &desc, HG_BINDING, "'x' is not bound: the program needs a buffer of f32 (in) for it");
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_buffer_release(odd);
  hg_buffer_release(foreign);
  hg_executor_release(other);
  hg_kernel_release(kernel);
}

/* A message with more in it than fits says so. */
static void test_long_words(void) {
  hg_kernel *kernel = kernel_of(".buffer a1234567890123456789b1234567890123456789c1234567890123456789 f32 in\n"
                                ".buffer d1234567890123456789b1234567890123456789c1234567890123456789 f32 in\n"
                                ".buffer e1234567890123456789b1234567890123456789c1234567890123456789 f32 in\n"
                                ".buffer f1234567890123456789b1234567890123456789c1234567890123456789 f32 in\n"
                                ".buffer g1234567890123456789b1234567890123456789c1234567890123456789 f32 in\n"
                                ".buffer h1234567890123456789b1234567890123456789c1234567890123456789 f32 in\n"
                                ".buffer i1234567890123456789b1234567890123456789c1234567890123456789 f32 in\nexit\n");
  hg_binding binding = {.name = "x1234567890123456789b1234567890123456789c1234567890123456789d12345678901234567891234"};
  hg_launch_desc desc = {.lanes = 1, .bindings = &binding, .binding_count = 1};
  CHECK_LAUNCH(kernel, &desc, HG_BINDING,
               "program 'program' has no parameter 'x1234567890123456789b1234567890123456789c1234567890123456789d"
               "1234567890123456789...'; its buffers are: "
               "a1234567890123456789b1234567890123456789c1234567890123456789, "
               "d1234567890123456789b1234567890123456789c1234567890123456789, "
               "e1234567890123456789b1234567890123456789c1234567890123456789, "
               "f1234567890123456789b1234567890123456789c1234567890123456789, "
               "g1234567890123456789b1234567890123456789c1234567890123456789, "
               "h1234567890123456789b1234567890123456789c1234567890123456789, ...");
  hg_kernel_release(kernel);
}

static void test_scalar_refusals(void) {
  hg_kernel *kernel = kernel_of(saxpy_text);
  hg_buffer *x = buffer_of(64, NULL), *y = buffer_of(64, NULL);
  hg_binding bindings[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
  hg_launch_desc desc = {.lanes = 1, .bindings = bindings, .binding_count = 2};
  CHECK_LAUNCH(kernel, &desc, HG_BINDING, "scalar 'a' is not given: the program needs a value of f32 for it");
  static const struct {
    hg_scalar scalar;
    const char *sentence;
  } cases[] = {
      {{.name = "a", .type = ATLAS_f64}, "scalar 'a' is f32, but the value given is f64"},
      {{.name = "a"}, "scalar 'a' is f32, but the value given has no type"},
      {{.name = "a", .type = 99}, "scalar 'a' is f32, but the value given is of type code 99, which is unknown"},
      {{.name = "b", .type = ATLAS_f32}, "program 'saxpy' has no parameter 'b'; its scalars are: a"},
      {{.name = "x", .type = ATLAS_f32}, "'x' is a buffer and cannot be given a value"},
      {{.slot = 3, .type = ATLAS_f32}, "there is no slot 3: program 'saxpy' has 3 symbols"},
  };
  for (size_t i = 0; i < COUNT(cases); i++) {
    desc.scalars = &cases[i].scalar;
    desc.scalar_count = 1;
    CHECK_LAUNCH(kernel, &desc, HG_BINDING, cases[i].sentence);
  }
  hg_scalar twice[] = {{.name = "a", .type = ATLAS_f32}, {.slot = 2, .type = ATLAS_f32}};
  desc.scalars = twice;
  desc.scalar_count = 2;
  CHECK_LAUNCH(kernel, &desc, HG_BINDING, "scalar 'a' is given twice");
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

static void test_mapped(void) {
  hg_kernel *kernel = kernel_of(saxpy_text);
  hg_buffer *x = buffer_of(64, NULL), *y = buffer_of(64, NULL), *view = NULL;
  CHECK_EQ_U64(hg_buffer_view(x, 32, 16, &view), HG_OK);
  hg_binding bindings[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
  hg_scalar a = {.name = "a", .type = ATLAS_f32};
  hg_launch_desc desc = {.lanes = 1, .bindings = bindings, .binding_count = 2, .scalars = &a, .scalar_count = 1};
  void *memory = NULL;
  CHECK_EQ_U64(hg_buffer_map(view, &memory), HG_OK); /* a view maps the memory under it */
  CHECK_EQ_U64(hg_buffer_map(view, &memory), HG_OK);
  CHECK_LAUNCH(kernel, &desc, HG_BUSY, "the buffer for 'x' is mapped; unmap it before the launch");
  CHECK_EQ_U64(hg_buffer_unmap(view), HG_OK);
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_BUSY);
  CHECK_EQ_U64(hg_buffer_unmap(view), HG_OK);
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_map(view, &memory), HG_OK);
  hg_buffer_release(view); /* and with it its map */
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

/* ---- overlap ----------------------------------------------------------------------------------------------------- */

/* Three buffers: i is read, o and p are written; only p is not accessed as [p + lane] alone. */
static const char overlap_text[] =
    ".program overlap\n"
    ".buffer i f32 in\n"
    ".buffer o f32 out\n"
    ".buffer p f32 inout\n"
    ".buffer h f16 in\n"
    "    ldg.f32 r0, [i + lane]\n"
    "    ldg.f32 r1, [p + lane + #1]\n"
    "    ldg.f16 r2, [h + lane]\n"
    "    stg.f32 [o + lane], r0\n"
    "    stg.f32 [p + lane], r1\n"
    "    exit\n";

typedef struct overlap_case {
  uint64_t i_offset, i_bytes, o_offset, o_bytes, p_offset, p_bytes, h_offset, h_bytes;
  const char *sentence; /* NULL: allowed */
} overlap_case;

static void test_overlap(void) {
#define SENTENCE(a, b, w) \
  "the ranges for '" a "' and '" b "' overlap and '" w "' is written; only identical ranges accessed as [x + lane] may"
  static const overlap_case cases[] = {
      {0, 64, 64, 64, 128, 64, 192, 64, NULL},                    /* neighbours */
      {0, 64, 0, 64, 128, 64, 192, 64, NULL},                     /* in place */
      {0, 64, 0, 60, 128, 64, 192, 64, SENTENCE("o", "i", "o")},  /* nearly in place */
      {0, 64, 4, 64, 128, 64, 192, 64, SENTENCE("i", "o", "o")},
      {4, 64, 0, 64, 128, 64, 192, 64, SENTENCE("o", "i", "o")},
      {0, 256, 64, 4, 128, 4, 192, 64, SENTENCE("i", "o", "o")},  /* inside */
      {128, 64, 0, 64, 128, 64, 192, 64, SENTENCE("i", "p", "p")},/* identical, but p is not in element form */
      {64, 64, 128, 64, 128, 64, 192, 64, SENTENCE("p", "o", "p")},
      {64, 64, 0, 64, 128, 64, 64, 64, NULL},                     /* both only read */
      {0, 64, 64, 64, 128, 64, 64, 64, SENTENCE("h", "o", "o")},  /* identical, element form, another element size */
      {0, 64, 0, 64, 128, 64, 0, 64, SENTENCE("h", "o", "o")},
      {0, 4, 128, 64, 0, 200, 192, 8, SENTENCE("i", "p", "p")},
  };
#undef SENTENCE
  hg_kernel *kernel = kernel_of(overlap_text);
  hg_buffer *memory = buffer_of(256, NULL);
  for (size_t c = 0; c < COUNT(cases); c++) {
    const overlap_case *k = &cases[c];
    hg_binding bindings[] = {{.name = "i", .buffer = memory, .offset = k->i_offset, .byte_count = k->i_bytes},
                             {.name = "o", .buffer = memory, .offset = k->o_offset, .byte_count = k->o_bytes},
                             {.name = "p", .buffer = memory, .offset = k->p_offset, .byte_count = k->p_bytes},
                             {.name = "h", .buffer = memory, .offset = k->h_offset, .byte_count = k->h_bytes}};
    hg_launch_desc desc = {.lanes = 1, .bindings = bindings, .binding_count = 4};
    hg_status status = hg_launch(kernel, &desc, NULL);
    CHECK_EQ_U64(status, k->sentence == NULL ? HG_OK : HG_BINDING);
    if (status != HG_OK && k->sentence != NULL) CHECK_STR(hg_last_error(), k->sentence);
  }
  hg_buffer *empty = NULL; /* ranges without bytes overlap nothing */
  CHECK_EQ_U64(hg_buffer_view(memory, 64, 0, &empty), HG_OK);
  hg_binding bindings[] = {{.name = "i", .buffer = memory},
                           {.name = "o", .buffer = empty},
                           {.name = "p", .buffer = empty},
                           {.name = "h", .buffer = memory}};
  hg_launch_desc desc = {.lanes = 0, .bindings = bindings, .binding_count = 4};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  hg_buffer_release(empty);
  hg_buffer_release(memory);
  hg_kernel_release(kernel);
}

/* The same rule said in the plainest way, against random ranges. */
typedef struct plain_range {
  uint64_t first, end;
  int writable, element_bytes;
} plain_range;

static int plain_conflict(const plain_range *r, size_t count) {
  for (size_t a = 0; a < count; a++)
    for (size_t b = a + 1; b < count; b++) {
      int overlap = r[a].first < r[b].end && r[b].first < r[a].end;
      int identical = r[a].first == r[b].first && r[a].end == r[b].end;
      if (overlap && (r[a].writable || r[b].writable) &&
          !(identical && r[a].element_bytes != 0 && r[a].element_bytes == r[b].element_bytes))
        return 1;
    }
  return 0;
}

static void test_overlap_random(void) {
  static const char text[] =
      ".buffer a u8 in\n.buffer b u8 out\n.buffer c u8 inout\n.buffer d u8 in\n.buffer e u16 inout\n.buffer f u8 out\n"
      "ldg.u8 r0, [a + lane]\nstg.u8 [b + lane], r0\nstg.u8 [c + #0], r0\nldg.u8 r0, [d + #0]\nldg.u16 r1, [e + lane]\n"
      "stg.u8 [f + lane], r0\nexit\n";
  static const plain_range kinds[] = {{0, 0, 0, 1}, {0, 0, 1, 1}, {0, 0, 1, 0},
                                      {0, 0, 0, 0}, {0, 0, 1, 2}, {0, 0, 1, 1}};
  enum { N = COUNT(kinds) };
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *memory = buffer_of(64, NULL);
  uint32_t state = 1;
  int conflicts = 0, fine = 0;
  for (int round = 0; round < 4000; round++) {
    plain_range ranges[N];
    hg_binding bindings[N] = {{0}};
    uint32_t spread = round % 2 ? 16 : 3, sizes = round % 3 ? 2 : 6;
    for (size_t i = 0; i < N; i++) {
      ranges[i] = kinds[i];
      state = state * 1664525u + 1013904223u;
      ranges[i].first = 2 * ((state >> 16) % spread);
      state = state * 1664525u + 1013904223u;
      ranges[i].end = ranges[i].first + 2 + 2 * ((state >> 16) % sizes);
      bindings[i] = (hg_binding){.slot = (uint32_t)i,
                                 .buffer = memory,
                                 .offset = ranges[i].first,
                                 .byte_count = ranges[i].end - ranges[i].first};
    }
    hg_launch_desc desc = {.bindings = bindings, .binding_count = N}; /* no lanes: only the checks run */
    int conflict = plain_conflict(ranges, N);
    CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), conflict ? HG_BINDING : HG_OK);
    conflicts += conflict;
    fine += !conflict;
  }
  CHECK(conflicts > 100 && fine > 100); /* the cases are not all alike */
  hg_buffer_release(memory);
  hg_kernel_release(kernel);
}

/* ---- default handles, tables, pools ------------------------------------------------------------------------------ */

static void test_handles(void) {
  uint32_t seven = 7, result = 0;
  hg_buffer *in = buffer_of(4, &seven), *out = buffer_of(4, NULL);
  atlas_builder *b = NULL;
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  CHECK_EQ_U64(atlas_builder_create(NULL, "handles", &b), HG_OK);
  uint16_t x = atlas_builder_handle(b, hg_buffer_handle(in), ATLAS_u32, ATLAS_IN);
  uint16_t y = atlas_builder_handle(b, hg_buffer_handle(out), ATLAS_u32, ATLAS_OUT);
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(0), atlas_mem_lane(x, 0));
  atlas_emit(b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_lane(y, 0), atlas_reg(0));
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  CHECK_EQ_U64(atlas_builder_finish(b, &program), HG_OK);
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
  hg_launch_desc desc = {.lanes = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(out, 0, &result, 4), HG_OK);
  CHECK_EQ_U64(result, 7);
  uint32_t nine = 9; /* a binding of the launch goes before the default */
  hg_buffer *instead = buffer_of(4, &nine);
  hg_binding binding = {.slot = x, .buffer = instead};
  desc.bindings = &binding;
  desc.binding_count = 1;
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(out, 0, &result, 4), HG_OK);
  CHECK_EQ_U64(result, 9);
  char sentence[200];
  snprintf(sentence, sizeof sentence,
           "'h%llu' is not bound, and its default, buffer handle %llu, is no buffer of this executor",
           (unsigned long long)hg_buffer_handle(in), (unsigned long long)hg_buffer_handle(in));
  desc.binding_count = 0;
  hg_buffer_release(in);
  CHECK_LAUNCH(kernel, &desc, HG_BINDING, sentence);
  in = buffer_of(4, &seven); /* takes the free place in the table, not the handle */
  CHECK_LAUNCH(kernel, &desc, HG_BINDING, sentence);
  hg_buffer_release(in);
  hg_buffer_release(out);
  hg_buffer_release(instead);
  hg_kernel_release(kernel);
  atlas_program_release(program);
}

static void test_table(void) {
  static const char text[] =
      ".program pick\n"
      ".table t 300 in\n"
      ".buffer result u32 out\n"
      "    movi.u64 r1, #4\n"
      "    cvt.u32.u64 r0, lane\n"
      "    ldg.u32 r2, [r0 : r1]\n"
      "    stg.u32 [result + lane], r2\n"
      "    exit\n";
  hg_kernel *kernel = kernel_of(text);
  enum { ENTRIES = 300 };
  hg_buffer *data = buffer_of(8 * ENTRIES, NULL), *out = buffer_of(4 * (ENTRIES + 1), NULL);
  hg_binding bindings[ENTRIES + 2] = {{0}};
  for (uint32_t i = 0; i < ENTRIES; i++) {
    uint32_t value = 1000 + i;
    CHECK_EQ_U64(hg_buffer_write(data, 8 * i + 4, &value, 4), HG_OK);
    bindings[i] = (hg_binding){.name = "t", .entry = i, .buffer = data, .offset = 8 * i, .byte_count = 8};
  }
  bindings[ENTRIES] = (hg_binding){.name = "result", .buffer = out};
  hg_launch_desc desc = {.lanes = ENTRIES, .bindings = bindings, .binding_count = ENTRIES + 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  uint32_t result[ENTRIES];
  CHECK_EQ_U64(hg_buffer_read(out, 0, result, sizeof result), HG_OK);
  for (uint32_t i = 0; i < ENTRIES; i++) CHECK_EQ_U64(result[i], 1000 + i);

  hg_launch_report report = {0};
  desc.lanes = ENTRIES + 1;
  CHECK_EQ_U64(hg_launch(kernel, &desc, &report), HG_FAULT);
  CHECK_STR(hg_last_error(), "line 6 (ldg): lane 300 read past 't': index 300, extent 300");
  bindings[0] = bindings[ENTRIES]; /* entry 0 stays unbound: it has no bytes */
  desc.binding_count = ENTRIES;
  desc.lanes = ENTRIES;
  CHECK_EQ_U64(hg_launch(kernel, &desc, &report), HG_FAULT);
  CHECK_STR(hg_last_error(), "line 6 (ldg): lane 0 read past 't': index 4, extent 0");
  bindings[ENTRIES] = (hg_binding){.name = "t", .entry = 3, .buffer = data};
  desc.binding_count = ENTRIES + 1;
  CHECK_LAUNCH(kernel, &desc, HG_BINDING, "entry 3 of 't' is bound twice");
  bindings[ENTRIES].entry = 300;
  CHECK_LAUNCH(kernel, &desc, HG_BINDING, "table 't' has no entry 300: it has 300");
  bindings[ENTRIES] = (hg_binding){.name = "t", .entry = 0, .buffer = data, .offset = 4};
  CHECK_LAUNCH(kernel, &desc, HG_BINDING,
               "the range for 't' starts at byte 4 of its memory; it must be a multiple of 8 (a buffer table)");
  bindings[0] = (hg_binding){.name = "result", .buffer = data, .byte_count = 16};
  desc.binding_count = ENTRIES;
  CHECK_LAUNCH(kernel, &desc, HG_BINDING,
               "the ranges for 'result' and 't' (entry 1) overlap and 'result' is written; only identical ranges "
               "accessed as [x + lane] may");
  hg_buffer_release(data);
  hg_buffer_release(out);
  hg_kernel_release(kernel);
}

static void test_pool_binding(void) {
  static const char text[] =
      ".program pooled\n"
      ".pool heap\n"
      ".buffer result u32 out\n"
      "    pool.alloc.u64 r0, heap, #16\n"
      "    movi.u32 r1, #5\n"
      "    pool.store.u32 [heap + r0], r1\n"
      "    pool.load.u32 r2, [heap + r0]\n"
      "    stg.u32 [result + lane], r2\n"
      "    exit\n";
  hg_kernel *kernel = kernel_of(text);
  hg_pool *pool = NULL;
  hg_buffer *region = NULL, *out = buffer_of(4, NULL);
  uint64_t offset = 0;
  CHECK_EQ_U64(hg_pool_create(executor, 4096, &pool), HG_OK);
  CHECK_EQ_U64(hg_pool_allocate(pool, 8, 0, &offset), HG_OK);
  CHECK_EQ_U64(hg_pool_allocate(pool, 64, 0, &offset), HG_OK);
  CHECK_EQ_U64(offset, 16);
  CHECK_EQ_U64(hg_pool_buffer(pool, offset, 64, &region), HG_OK);
  hg_binding bindings[] = {{.name = "heap", .buffer = region}, {.name = "result", .buffer = out}};
  hg_launch_desc desc = {.lanes = 1, .bindings = bindings, .binding_count = 2};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  uint32_t value = 0;
  CHECK_EQ_U64(hg_buffer_read(out, 0, &value, 4), HG_OK);
  CHECK_EQ_U64(value, 5);
  value = 0;
  CHECK_EQ_U64(hg_pool_read(pool, 16, &value, 4), HG_OK);
  CHECK_EQ_U64(value, 5);
  bindings[0].offset = 8;
  CHECK_LAUNCH(kernel, &desc, HG_BINDING,
               "the range for 'heap' starts at byte 24 of its memory; it must be a multiple of 16 (a pool)");
  desc.bindings = &bindings[1];
  desc.binding_count = 1;
  CHECK_LAUNCH(kernel, &desc, HG_BINDING, "'heap' is not bound: the program needs a pool for it");
  hg_buffer_release(region);
  hg_buffer_release(out);
  hg_pool_release(pool);
  hg_kernel_release(kernel);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static void test_library(void) {
  static const char text[] = ".program lib\n.entry exp f32 f\nf:\n    ret\n";
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  hg_status status = atlas_parse(NULL, text, strlen(text), "lib", &program);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) {
    printf("  %s\n", hg_last_error());
    return;
  }
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_VERIFY);
  CHECK_STR(hg_last_error(), "program 'lib' is a library of functions (.entry) and cannot be launched");
  CHECK_EQ_U64(hg_kernel_create(executor, NULL, &kernel), HG_INVALID_ARGUMENT);
  atlas_program_release(program);
}

static void test_in_place(void) { /* one buffer as input and output of an element-wise program */
  hg_kernel *kernel = kernel_of(saxpy_text);
  const float x[4] = {1, 2, 3, 4};
  float result[4];
  hg_buffer *b = buffer_of(sizeof x, x);
  hg_binding bindings[] = {{.name = "x", .buffer = b}, {.name = "y", .buffer = b}};
  hg_scalar a = {.name = "a", .type = ATLAS_f32, .bits = bits_of(2)};
  hg_launch_desc desc = {.lanes = 4, .bindings = bindings, .binding_count = 2, .scalars = &a, .scalar_count = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(b, 0, result, sizeof result), HG_OK);
  for (int i = 0; i < 4; i++) CHECK(result[i] == 3 * x[i]);
  hg_buffer_release(b);
  hg_kernel_release(kernel);
}

/* ---- ends -------------------------------------------------------------------------------------------------------- */

/* Lanes may end by step limit in two places, among others that fold a value. */
static void test_two_ends(void) {
  hg_kernel *kernel = kernel_of(".program ends\n"
                                ".block 32\n"
                                ".scalar n u32\n"
                                ".buffer y u32 out\n"
                                "    mov.u32 r0, n\n"
                                "first:\n"
                                "    sub.u32 r0, r0, #1\n"
                                "    set.ne.u32 p0, r0, #0\n"
                                "    @p0 bra first\n"
                                "    mul.u32 r1, n, blane\n"
                                "second:\n"
                                "    sub.u32 r1, r1, blane\n"
                                "    set.ne.u32 p0, r1, #0\n"
                                "    @p0 bra second\n"
                                "    reduce.add.u32 r2, blane\n"
                                "    stg.u32 [y + lane], r2\n"
                                "    exit\n");
  uint32_t sums[32];
  hg_buffer *y = buffer_of(sizeof sums, NULL);
  hg_binding binding = {.name = "y", .buffer = y};
  hg_scalar scalar = {.name = "n", .type = ATLAS_u32, .bits = 9};
  hg_launch_desc desc = {.grid = {1}, .bindings = &binding, .binding_count = 1, .scalars = &scalar, .scalar_count = 1};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, sums, sizeof sums), HG_OK);
  for (int i = 0; i < 32; i++) CHECK_EQ_U64(sums[i], 31 * 32 / 2);
  desc.step_limit = 10; /* 8 of the first loop */
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_FAULT);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

/* Constants are folded when a form of the program is compiled, some of them at a launch: with subnormals, whatever the
 * caller's thread makes of them. */
static void test_callers_environment(void) {
#if defined(__x86_64__) && !defined(_WIN32)
  enum { FLUSH = 0x8040, SMALL = 0x00400000, LANES = 512 };
  hg_kernel *kernel = kernel_of(".program p\n.buffer y f32 out\n"
                                "    mov.f32 r0, #0x1p-127\n    mov.f32 r1, #0.5\n    mul.f32 r2, r0, r1\n"
                                "    stg.f32 [y + lane], r2\n    exit\n");
  hg_buffer *y = buffer_of(LANES * sizeof(uint32_t), NULL);
  hg_binding binding = {.slot = 0, .buffer = y};
  for (uint32_t block = 64; block <= LANES; block *= 8) {
    hg_launch_desc desc = {
        .size = sizeof desc, .grid = {1, 1, 1}, .block = {block, 1, 1}, .bindings = &binding, .binding_count = 1};
    uint32_t found = 0, before = _mm_getcsr();
    _mm_setcsr(before | FLUSH);
    hg_status status = hg_launch(kernel, &desc, NULL);
    _mm_setcsr(before);
    CHECK_EQ_U64(status, HG_OK);
    CHECK_EQ_U64(hg_buffer_read(y, 0, &found, sizeof found), HG_OK);
    CHECK_EQ_U64(found, SMALL / 2);
  }
  hg_buffer_release(y);
  hg_kernel_release(kernel);
#else
  CHECK(1);
#endif
}

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  test_saxpy();
  test_binding_refusals();
  test_long_words();
  test_scalar_refusals();
  test_mapped();
  test_overlap();
  test_overlap_random();
  test_handles();
  test_table();
  test_pool_binding();
  test_library();
  test_in_place();
  test_two_ends();
  test_callers_environment();
  hg_executor_release(executor);
  return check_report();
}
