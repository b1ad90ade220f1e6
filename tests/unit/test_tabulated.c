/* test_tabulated.c - programs that turn an element of 16 bits into one of 16 bits, which the CUDA backend may do by a
 * table of all results: on every input, at sizes around those of a table's pieces, in place, on streams and in graphs
 * they give what the interpreter gives. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "streams.h"

#include <stdlib.h>

#if defined(_WIN32)
#  define setenv(name, value, overwrite) _putenv_s(name, value)
#else
#  include <unistd.h>
#endif

enum { VALUES = 1 << 16, PIECE = 32768, LARGEST = 6 * PIECE + 13, SHOWN = 5 };

static uint16_t input[LARGEST], expected[LARGEST], got[LARGEST];

static const char gelu[] = ".program gelu\n.buffer a f16 in\n.buffer y f16 out\n"
                           "ldg.f16 r0, [a + lane]\ngelu.f16 r0, r0\nstg.f16 [y + lane + #8], r0\nexit\n";

/* A scalar, a choice, another type to store, and a loop. */
static const char mixed[] = ".program mixed\n.buffer a bf16 in\n.buffer y f16 out\n.scalar c f32\n"
                            "ldg.bf16 r0, [a + lane]\ncvt.f32.bf16 r1, r0\nmov.f32 r2, c\nmovi.u32 r5, #5\n"
                            "again:\nfma.f32 r1, r1, r2, #0x1.8p-3\nset.lt.f32 p0, r1, #2\n"
                            "sel.f32 r1, p0, r1, #-1.5\nloop r5, again\n"
                            "tanh.f32 r3, r1\nmul.f32 r1, r1, r3\nexp.f32 r1, r1\ncvt.f16.f32 r4, r1\n"
                            "stg.f16 [y + lane], r4\nexit\n";

/* Whole numbers, with a branch in which lanes part. */
static const char whole[] = ".program whole\n.buffer a i16 in\n.buffer y u16 out\n"
                            "ldg.i16 r0, [a + lane]\ncvt.i32.i16 r1, r0\nset.lt.i32 p0, r1, #100\n@p0 bra low\n"
                            "mul.i32 r1, r1, r1\nshr.i32 r1, r1, #3\nlow:\nmul.i32 r1, r1, #77\nadd.i32 r1, r1, #5\n"
                            "xor.i32 r2, r1, #1234\nshl.i32 r3, r2, #3\nadd.i32 r1, r3, r1\nshr.i32 r2, r1, #7\n"
                            "xor.i32 r1, r1, r2\nmul.i32 r1, r1, #19\nadd.i32 r1, r1, #3\nshr.i32 r2, r1, #5\n"
                            "xor.i32 r1, r1, r2\nmul.i32 r1, r1, #21\nshr.i32 r2, r1, #11\nadd.i32 r1, r1, r2\n"
                            "xor.i32 r2, r1, #4321\nshl.i32 r3, r2, #5\nadd.i32 r1, r3, r1\nshr.i32 r2, r1, #9\n"
                            "xor.i32 r1, r1, r2\nmul.i32 r1, r1, #23\nadd.i32 r1, r1, #7\nshr.i32 r2, r1, #4\n"
                            "xor.i32 r1, r1, r2\nmul.i32 r1, r1, #25\nshr.i32 r2, r1, #13\nadd.i32 r1, r1, r2\n"
                            "cvt.u16.i32 r4, r1\nstg.u16 [y + lane], r4\nexit\n";

/* They know which lane they are, or have two inputs: no tables. */
static const char placed[] = ".program placed\n.buffer a f16 in\n.buffer y f16 out\n"
                             "ldg.f16 r0, [a + lane]\ngelu.f16 r0, r0\ncvt.u32.u64 r1, lane\nand.u32 r1, r1, #7\n"
                             "cvt.f16.u32 r2, r1\nadd.f16 r0, r0, r2\nstg.f16 [y + lane], r0\nexit\n";
static const char placed_again[] = ".program placed\n.buffer a f16 in\n.buffer y f16 out\n"
                                   "ldg.f16 r0, [a + lane]\ngelu.f16 r0, r0\nsreg.u32 r1, global.x\n"
                                   "and.u32 r1, r1, #7\ncvt.f16.u32 r2, r1\nadd.f16 r0, r0, r2\n"
                                   "stg.f16 [y + lane], r0\nexit\n";

typedef struct trial {
  const char *text;
  uint64_t lanes, extra; /* elements of y behind the last lane's */
  uint64_t offset;       /* of a and y in their buffers, in elements */
  int in_place, has_scalar;
} trial;

static hg_launch_desc desc_of(const trial *t, hg_binding bindings[2], hg_scalar *c, hg_buffer *a, hg_buffer *y) {
  bindings[0] = (hg_binding){.name = "a", .buffer = a, .offset = 2 * t->offset, .byte_count = 2 * t->lanes};
  bindings[1] = (hg_binding){.name = "y", .buffer = y, .offset = 2 * t->offset,
                             .byte_count = 2 * (t->lanes + t->extra)};
  *c = (hg_scalar){.name = "c", .type = ATLAS_f32, .bits = bits_of(0.625f)};
  return (hg_launch_desc){.lanes = t->lanes, .bindings = bindings, .binding_count = 2, .scalars = c,
                          .scalar_count = t->has_scalar != 0};
}

/* How it is launched: alone, twice on a stream, or twice by a graph. */
typedef enum way { ALONE, STREAM, GRAPH } way;

static void launch_by(way w, hg_kernel *kernel, hg_launch_desc desc) {
  if (w == ALONE) {
    CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
    return;
  }
  hg_stream *stream = stream_of();
  hg_graph *graph = NULL;
  desc.stream = stream;
  if (w == GRAPH) CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  if (w == GRAPH) {
    CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
    CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  }
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  hg_graph_release(graph);
  hg_stream_release(stream);
}

static void run(const trial *t, way w, uint16_t *result) {
  uint64_t before = t->offset, bytes = 2 * (before + t->lanes + t->extra);
  hg_binding bindings[2];
  hg_scalar c;
  hg_kernel *kernel = kernel_of(t->text);
  hg_buffer *a = buffer_of(bytes, NULL), *y = t->in_place ? a : buffer_of(bytes, NULL);
  const uint16_t mark = 0x1234;
  CHECK_EQ_U64(hg_buffer_fill(y, 0, bytes, &mark, 2), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(a, 2 * before, input, 2 * t->lanes), HG_OK);
  launch_by(w, kernel, desc_of(t, bindings, &c, a, y));
  CHECK_EQ_U64(hg_buffer_read(y, 0, result, bytes), HG_OK);
  hg_buffer_release(a);
  if (!t->in_place) hg_buffer_release(y);
  hg_kernel_release(kernel);
}

static void check(const trial *t, way w) {
  uint64_t count = t->offset + t->lanes + t->extra, differ = 0;
  setenv("HOLOGRAM_CPU_ENGINE", "interp", 1);
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  run(t, ALONE, expected);
  hg_executor_release(executor);
  setenv("HOLOGRAM_CPU_ENGINE", "", 1);
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  run(t, w, got);
  hg_executor_release(executor);
  for (uint64_t i = 0; i < count; i++) {
    if (got[i] == expected[i] || ++differ > SHOWN) continue;
    printf("%.14s of %llu lanes: element %llu is %04x, expected %04x\n", t->text, (unsigned long long)t->lanes,
           (unsigned long long)i, got[i], expected[i]);
  }
  CHECK_EQ_U64(differ, 0);
}

/* On the double: what it is given to compile, and whether the table is among it. */
#if !defined(_WIN32)
static void check_form(const char *text, const char *shared, int is_table) {
  char path[] = "/tmp/test_tabulated_XXXXXX";
  int file = mkstemp(path);
  if (test_backend() != HG_BACKEND_CUDA || !find_fake_gpu()) return;
  CHECK(file >= 0);
  set("FAKECUDA_DUMP", path);
  set("FAKECUDA_SHARED", shared);
  check(&(trial){.text = text, .lanes = 40}, ALONE);
  set("FAKECUDA_SHARED", NULL);
  set("FAKECUDA_DUMP", NULL);
  char *dumped = calloc(1, 1 << 20);
  CHECK(dumped != NULL && read(file, dumped, (1 << 20) - 1) > 0);
  CHECK_EQ_U64(strstr(dumped, "hg_table") != NULL, is_table);
  free(dumped);
  close(file);
  unlink(path);
}

/* The driver refuses the shared memory: a sentence, and the usual form still runs. */
static void check_refusal(void) {
  if (test_backend() != HG_BACKEND_CUDA || !find_fake_gpu()) return;
  const trial t = {.text = gelu, .lanes = 40, .extra = 8};
  hg_binding bindings[2];
  hg_scalar c;
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  hg_kernel *kernel = kernel_of(gelu);
  hg_buffer *a = buffer_of(96, NULL), *y = buffer_of(96, NULL);
  hg_launch_desc desc = desc_of(&t, bindings, &c, a, y);
  set("FAKECUDA_FAIL", "cuFuncSetAttribute:0=1");
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_DEVICE);
  CHECK_STR(hg_last_error(), "the driver did not give a kernel its shared memory: the driver refused an argument "
                             "(CUDA_ERROR_INVALID_VALUE, 1)");
  set("FAKECUDA_FAIL", NULL);
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  hg_buffer_release(a);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
  CHECK_CLEAN();
}
#else
static void check_refusal(void) {}
static void check_form(const char *text, const char *shared, int is_table) { (void)text, (void)shared, (void)is_table; }
#endif

int main(void) {
  setenv("HOLOGRAM_TABLE_LANES", "1", 1);
  for (uint32_t i = 0; i < LARGEST; i++) input[i] = (uint16_t)(i < VALUES ? i : i * 40503u >> 3);
  check(&(trial){.text = mixed, .lanes = VALUES, .has_scalar = 1}, ALONE);
  check(&(trial){.text = whole, .lanes = VALUES}, STREAM);
  check(&(trial){.text = gelu, .lanes = VALUES, .extra = 8}, GRAPH);
  check(&(trial){.text = whole, .lanes = LARGEST, .in_place = 1}, ALONE); /* more pieces than the double has blocks */
  check(&(trial){.text = gelu, .lanes = 1, .extra = 8}, STREAM);
  check(&(trial){.text = mixed, .lanes = 7, .has_scalar = 1}, ALONE);
  check(&(trial){.text = whole, .lanes = PIECE - 1}, ALONE);
  check(&(trial){.text = whole, .lanes = PIECE, .offset = 8}, ALONE);
  check(&(trial){.text = whole, .lanes = PIECE + 9, .offset = 3}, ALONE); /* not at 16 bytes */
  check(&(trial){.text = placed, .lanes = 1000}, ALONE);
  check(&(trial){.text = placed_again, .lanes = 1000}, ALONE);
  check_form(whole, NULL, 1);
  check_form(whole, "101376", 0); /* a card whose blocks have 99 KiB at most */
  check_form(placed, NULL, 0);
  check_form(placed_again, NULL, 0);
  check_refusal();
  return check_report();
}
