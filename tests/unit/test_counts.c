/* test_counts.c - what an executor counts of its work (hg_executor_count). */
#include "computing.h"

enum { ELEMENTS = 12, BYTES = ELEMENTS * sizeof(float) };

static hg_counts before;

static hg_counts counts(void) {
  hg_counts c = {0};
  CHECK_EQ_U64(hg_executor_count(executor, &c), HG_OK);
  return c;
}

/* Since the last call. */
static void expect(uint64_t launches, uint64_t moved, uint64_t plans, uint64_t compilations, uint64_t allocations) {
  hg_counts now = counts();
  CHECK_EQ_U64(now.launches - before.launches, launches);
  CHECK_EQ_U64(now.moved_bytes - before.moved_bytes, moved);
  CHECK_EQ_U64(now.plans - before.plans, plans);
  CHECK_EQ_U64(now.compilations - before.compilations, compilations);
  CHECK_EQ_U64(now.allocations - before.allocations, allocations);
  before = now;
}

/* Operations at once: those made anew, those that are known, and those on a stream. */
static void test_operations(hg_tensor x, hg_tensor y, hg_stream *stream) {
  for (int i = 0; i < 3; i++) CHECK_EQ_U64(hg_apply(HG_OP_add, (hg_tensor[]){x, x}, 2, NULL, 0, &y, 1, NULL), HG_OK);
  expect(3, 3 * 2 * BYTES, 1, 1, 0);
  for (int i = 0; i < 3; i++) CHECK_EQ_U64(hg_apply(HG_OP_add, (hg_tensor[]){x, x}, 2, NULL, 0, &y, 1, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  expect(3, 3 * 2 * BYTES, 0, 0, 0);
  x = y = (hg_tensor){.type = ATLAS_f32, .rank = 1, .buffer = x.buffer}; /* of no elements: nothing runs */
  CHECK_EQ_U64(hg_apply(HG_OP_add, (hg_tensor[]){x, x}, 2, NULL, 0, &y, 1, NULL), HG_OK);
  expect(0, 0, 1, 0, 0);
}

/* An equal computation has been planned; a graph's launches count when it runs. */
static void test_executables(hg_tensor x, hg_tensor y, hg_stream *stream) {
  hg_executable *first = executable_of(&x, &x, &y), *second = executable_of(&x, &x, &y);
  CHECK(first == second);
  expect(0, 0, 1, 1, 0);
  CHECK_EQ_U64(run3(first, x, x, y, NULL), HG_OK);
  expect(1, 3 * BYTES, 0, 0, 0);
  hg_graph *graph = NULL;
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(run3(first, x, x, y, stream), HG_OK);
  CHECK_EQ_U64(run3(first, x, x, y, stream), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  expect(0, 0, 0, 0, 0);
  for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  expect(4, 4 * 3 * BYTES, 0, 0, 0);
  hg_graph_release(graph);
  hg_executable_release(first);
  hg_executable_release(second);
}

/* A program's launches are counted, their bytes are not known; equal programs share their code. */
static void test_programs(hg_buffer *buffer) {
  const char *text = ".program p\n.buffer y f32 out\n    cvt.f32.u64 r0, lane\n    stg.f32 [y + lane], r0\n    exit\n";
  hg_kernel *first = kernel_of(text), *second = kernel_of(text);
  expect(0, 0, 0, 1, 0);
  hg_binding binding = {.slot = 0, .buffer = buffer};
  hg_launch_desc desc = {.size = sizeof desc, .lanes = ELEMENTS, .bindings = &binding, .binding_count = 1};
  CHECK_EQ_U64(hg_launch(second, &desc, NULL), HG_OK);
  expect(1, 0, 0, 0, 0);
  desc.binding_count = 0;
  CHECK(hg_launch(second, &desc, NULL) != HG_OK);
  expect(0, 0, 0, 0, 0);
  hg_kernel_release(first);
  hg_kernel_release(second);
}

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  before = counts();
  hg_buffer *a = floats(ELEMENTS, 1), *b = floats(ELEMENTS, 2);
  expect(0, 0, 0, 0, 2);
  CHECK_EQ_U64(before.allocated_bytes, 2 * BYTES);
  hg_stream *stream = NULL;
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  test_operations(vector_of(a, ELEMENTS), vector_of(b, ELEMENTS), stream);
  test_executables(vector_of(a, ELEMENTS), vector_of(b, ELEMENTS), stream);
  test_programs(b);
  CHECK_EQ_U64(hg_executor_count(NULL, &before), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_executor_count(executor, NULL), HG_INVALID_ARGUMENT);
  hg_stream_release(stream);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_executor_release(executor);
  return check_report();
}
