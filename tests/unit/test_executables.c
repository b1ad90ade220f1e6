/* test_executables.c - compiled computations: running them, what a run refuses, the cache, and memory that runs out. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "ops/executable.h"

#include "counted_by_threads.h"
#include "launching.h"

#if !defined(_WIN32)
#  include <pthread.h>
#endif

enum { MOST = 64 };

static hg_allocator counting(counter *c) { /* kernels are compiled side by side */
  return (hg_allocator){
      .size = sizeof(hg_allocator), .user = c, .allocate = counted_allocate, .release = counted_release};
}

/* ---- short ways -------------------------------------------------------------------------------------------------- */

static hg_tensor vector_of(hg_buffer *buffer, uint64_t count) {
  return hg_tensor_of(buffer, ATLAS_f32, 1, (uint64_t[]){count});
}

static hg_tensor matrix_of(hg_buffer *buffer, uint64_t rows, uint64_t columns) {
  return hg_tensor_of(buffer, ATLAS_f32, 2, (uint64_t[]){rows, columns});
}

static hg_buffer *floats(uint64_t count, float first) {
  float values[MOST];
  for (uint64_t i = 0; i < count; i++) values[i] = first + (float)i;
  return buffer_of(count * sizeof(float), values);
}

static void check_floats(hg_buffer *buffer, uint64_t count, float (*expected)(uint64_t i)) {
  float values[MOST];
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, values, count * sizeof(float)), HG_OK);
  for (uint64_t i = 0; i < count; i++)
    if (values[i] != expected(i)) {
      CHECK_EQ_U64(bits_of(values[i]), bits_of(expected(i)));
      return;
    }
  CHECK(1);
}

static hg_value two(hg_computation *c, hg_op op, hg_value a, hg_value b) {
  return hg_compute(c, op, (hg_value[]){a, b}, 2, NULL, 0);
}

/* out = (a + b) * a, from tensors like these. */
static hg_computation *sum_times(const hg_tensor *a, const hg_tensor *b, const hg_tensor *out) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value x = hg_computation_input(c, "a", a), y = hg_computation_input(c, "b", b);
  CHECK_EQ_U64(hg_computation_output(c, "out", two(c, HG_OP_mul, two(c, HG_OP_add, x, y), x), out), HG_OK);
  return c;
}

static hg_executable *compiled(hg_computation *c) {
  hg_executable *e = NULL;
  hg_status status = hg_compile(executor, c, NULL, &e);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) printf("  %s\n", hg_last_error());
  return e;
}

static hg_executable *executable_of(const hg_tensor *a, const hg_tensor *b, const hg_tensor *out) {
  hg_computation *c = sum_times(a, b, out);
  hg_executable *e = compiled(c);
  hg_computation_release(c);
  return e;
}

static hg_status run3(hg_executable *e, hg_tensor a, hg_tensor b, hg_tensor out, hg_stream *stream) {
  return hg_run(e, (hg_tensor[]){a, b}, 2, &out, 1, stream, NULL);
}

static float from_one(uint64_t i) { return (float)(i + 1); }

/* a counts from 1, b from 10. */
static float expected(uint64_t i) { return ((float)(1 + i) + (float)(10 + i)) * (float)(1 + i); }

#define REFUSES(call, status, sentence)         \
  do {                                          \
    CHECK_EQ_U64(call, status);                 \
    CHECK_STR(hg_last_error(), sentence);       \
  } while (0)

/* ---- running ----------------------------------------------------------------------------------------------------- */

static void test_run(void) {
  hg_buffer *a = floats(12, 1), *b = floats(12, 10), *out = floats(12, 0);
  hg_tensor x = matrix_of(a, 3, 4), y = matrix_of(b, 3, 4), z = matrix_of(out, 3, 4);
  hg_executable *e = executable_of(&x, &y, NULL);
  hg_launch_report report = {0};
  CHECK_EQ_U64(hg_run(e, (hg_tensor[]){x, y}, 2, &z, 1, NULL, &report), HG_OK);
  CHECK_EQ_U64(report.fault.kind, HG_FAULT_NONE);
  CHECK_EQ_U64(report.lanes, 12);
  CHECK_STR(report.backend, test_backend_name());
  check_floats(out, 12, expected);
  hg_executable_release(e);

  /* other strides: columns first, and backwards */
  hg_buffer *other = buffer_of(12 * sizeof(float), NULL);
  hg_tensor turned = hg_tensor_of(other, ATLAS_f32, 2, (uint64_t[]){4, 3});
  CHECK_EQ_U64(hg_tensor_permute(&turned, (int64_t[]){1, 0}, &turned), HG_OK);
  CHECK_EQ_U64(hg_tensor_slice(&turned, 0, 2, -1, -1, &turned), HG_OK);
  e = executable_of(&x, &y, &turned);
  CHECK_EQ_U64(run3(e, x, y, turned, NULL), HG_OK);
  float values[12];
  CHECK_EQ_U64(hg_buffer_read(other, 0, values, sizeof values), HG_OK);
  for (uint64_t i = 0; i < 3; i++)
    for (uint64_t j = 0; j < 4; j++) CHECK(values[j * 3 + 2 - i] == expected(4 * i + j));
  hg_executable_release(e);
  hg_buffer_release(other);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(out);
}

static float product(uint64_t i) { return 64 * (float)(i % 64 + 1); }

/* A backend's own kernel for products leaves a launch without a fault, whatever was in its memory. */
static void test_products_on_stream(void) {
  enum { SIDE = 64 };
  static float left[SIDE * SIDE], right[SIDE * SIDE];
  for (uint32_t i = 0; i < SIDE * SIDE; i++) left[i] = 1, right[i] = (float)(i % SIDE + 1);
  hg_buffer *a = buffer_of(sizeof left, left), *b = buffer_of(sizeof right, right), *out = buffer_of(sizeof left, left);
  hg_tensor x = matrix_of(a, SIDE, SIDE), y = matrix_of(b, SIDE, SIDE), z = matrix_of(out, SIDE, SIDE);
  hg_computation *c = NULL;
  hg_stream *stream = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value of[2] = {hg_computation_input(c, "a", &x), hg_computation_input(c, "b", &y)};
  CHECK_EQ_U64(hg_computation_output(c, "out", hg_compute(c, HG_OP_matmul, of, 2, NULL, 0), NULL), HG_OK);
  hg_executable *e = compiled(c);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  for (int i = 0; i < 8; i++) CHECK_EQ_U64(run3(e, x, y, z, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  check_floats(out, SIDE, product);
  hg_stream_release(stream);
  hg_executable_release(e);
  hg_computation_release(c);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(out);
}

static void test_stream(void) {
  hg_buffer *a = floats(12, 1), *b = floats(12, 10), *out = floats(12, 0);
  hg_tensor x = vector_of(a, 12), y = vector_of(b, 12), z = vector_of(out, 12);
  hg_executable *e = executable_of(&x, &y, NULL);
  hg_stream *stream = NULL;
  hg_graph *graph = NULL;
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  CHECK_EQ_U64(run3(e, x, y, z, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  check_floats(out, 12, expected);
  /* a graph of runs: the executable may be gone when it is launched */
  float zero = 0;
  CHECK_EQ_U64(hg_buffer_fill(out, 0, 48, &zero, sizeof zero), HG_OK);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(run3(e, x, y, z, stream), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  hg_executable_release(e);
  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK);
  CHECK_EQ_U64(hg_executables_limit(executor, UINT64_MAX), HG_OK);
  CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  check_floats(out, 12, expected);
  hg_graph_release(graph);
  hg_executor *another = NULL;
  hg_stream *foreign = NULL;
  CHECK_EQ_U64(open_test_executor(NULL, &another), HG_OK);
  CHECK_EQ_U64(hg_stream_create(another, NULL, &foreign), HG_OK);
  e = executable_of(&x, &y, NULL);
  REFUSES(run3(e, x, y, z, foreign), HG_INVALID_ARGUMENT, "the stream of a run belongs to another executor");
  hg_buffer *strange = NULL;
  CHECK_EQ_U64(hg_buffer_create(another, NULL, 48, &strange), HG_OK);
  REFUSES(run3(e, x, vector_of(strange, 12), z, NULL), HG_BINDING,
          "the buffer of input 'b' belongs to another executor");
  hg_executable_release(e);
  hg_buffer_release(strange);
  hg_stream_release(foreign);
  hg_executor_release(another);
  hg_stream_release(stream);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(out);
}

/* ---- what is refused --------------------------------------------------------------------------------------------- */

static void test_refusals(void) {
  hg_buffer *a = floats(12, 1), *b = floats(12, 10), *out = floats(12, 0);
  hg_tensor x = matrix_of(a, 3, 4), y = matrix_of(b, 3, 4), z = matrix_of(out, 3, 4), wrong;
  hg_executable *e = executable_of(&x, &y, NULL);
  REFUSES(hg_run(e, &x, 1, &z, 1, NULL, NULL), HG_INVALID_ARGUMENT,
          "hg_run: 1 inputs and 1 outputs are given; the computation has 2 and 1");
  REFUSES(hg_run(e, NULL, 2, &z, 1, NULL, NULL), HG_INVALID_ARGUMENT, "hg_run: 'inputs' is NULL");
  REFUSES(hg_run(NULL, NULL, 0, NULL, 0, NULL, NULL), HG_INVALID_ARGUMENT, "hg_run: the executable is NULL");
  REFUSES(run3(e, x, matrix_of(b, 4, 3), z, NULL), HG_BINDING,
          "input 'b' is f32[4, 3]; it was declared as f32[3, 4]");
  wrong = y, wrong.type = ATLAS_i32;
  REFUSES(run3(e, x, wrong, z, NULL), HG_BINDING, "input 'b' is i32[3, 4]; it was declared as f32[3, 4]");
  wrong = y, wrong.rank = 99;
  REFUSES(run3(e, x, wrong, z, NULL), HG_BINDING, "input 'b' has rank 99; the highest is 8");
  wrong = z, wrong.stride[0] = 1, wrong.stride[1] = 3;
  REFUSES(run3(e, x, y, wrong, NULL), HG_BINDING, "output 'out' has strides (1, 3); it was declared with (4, 1)");
  wrong = z, wrong.offset = 1;
  REFUSES(
      run3(e, x, y, wrong, NULL), HG_BINDING,
      "output 'out' begins at element 1 and reaches from 0 to 11 elements beside it, which is not all in its buffer "
      "of 48 bytes (12 of f32)");
  wrong.offset = -1;
  CHECK_EQ_U64(run3(e, x, y, wrong, NULL), HG_BINDING);
  wrong.offset = INT64_MAX;
  CHECK_EQ_U64(run3(e, x, y, wrong, NULL), HG_BINDING);
  wrong.offset = INT64_MIN;
  CHECK_EQ_U64(run3(e, x, y, wrong, NULL), HG_BINDING);
  wrong = z, wrong.buffer = NULL;
  REFUSES(run3(e, x, y, wrong, NULL), HG_BINDING, "output 'out' has no buffer");
  hg_buffer *large = buffer_of(100, NULL), *odd = NULL;
  CHECK_EQ_U64(hg_buffer_view(large, 2, 98, &odd), HG_OK);
  wrong = z, wrong.buffer = odd;
  REFUSES(run3(e, x, y, wrong, NULL), HG_BINDING,
          "the buffer of output 'out' starts at byte 2 of its memory; it must be a multiple of 4 (f32)");
  void *memory = NULL;
  CHECK_EQ_U64(hg_buffer_map(b, &memory), HG_OK);
  REFUSES(run3(e, x, y, z, NULL), HG_BUSY, "the buffer of input 'b' is mapped; unmap it before the run");
  CHECK_EQ_U64(hg_buffer_unmap(b), HG_OK);
  hg_launch_report small = {.size = 3};
  CHECK_EQ_U64(hg_run(e, (hg_tensor[]){x, y}, 2, &z, 1, NULL, &small), HG_INVALID_ARGUMENT);
  float values[12];
  CHECK_EQ_U64(hg_buffer_read(out, 0, values, sizeof values), HG_OK);
  for (int i = 0; i < 12; i++) CHECK(values[i] == (float)i); /* nothing ran */
  CHECK_EQ_U64(run3(e, x, y, z, NULL), HG_OK);
  check_floats(out, 12, expected);
  hg_executable_release(e);
  hg_buffer_release(odd);
  hg_buffer_release(large);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(out);
}

/* In place: b's sum and product go where a lies. */
static void test_overlaps(void) {
  hg_buffer *a = floats(24, 1), *b = floats(12, 10);
  hg_tensor x = vector_of(a, 12), y = vector_of(b, 12), later = x;
  hg_executable *e = executable_of(&x, &y, NULL);
  later.offset = 1;
  REFUSES(run3(e, x, y, later, NULL), HG_BINDING,
          "output 'out' and input 'a' overlap: 'out' is written, and only the very same view may, of an input that is "
          "read element by element");
  later.offset = 12; /* beside it */
  CHECK_EQ_U64(run3(e, x, y, later, NULL), HG_OK);
  CHECK_EQ_U64(run3(e, x, y, x, NULL), HG_OK);
  check_floats(a, 12, expected);
  hg_executable_release(e);

  /* the second output is computed from the same input as the first */
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value p = hg_computation_input(c, "p", &x);
  CHECK_EQ_U64(hg_computation_output(c, "first", two(c, HG_OP_add, p, p), NULL), HG_OK);
  CHECK_EQ_U64(hg_computation_output(c, "second", two(c, HG_OP_mul, p, p), NULL), HG_OK);
  e = compiled(c);
  hg_tensor outputs[2] = {y, y};
  REFUSES(hg_run(e, &x, 1, outputs, 2, NULL, NULL), HG_BINDING,
          "output 'second' and output 'first' are the same view: 'second' is written, and so is the other; give one of "
          "them memory of its own");
  hg_executable_release(e);
  hg_computation_release(c);

  /* backwards: no element by itself */
  hg_tensor reversed = x;
  CHECK_EQ_U64(hg_tensor_slice(&x, 0, 11, -1, -1, &reversed), HG_OK);
  e = executable_of(&reversed, &y, NULL);
  CHECK_EQ_U64(run3(e, reversed, y, x, NULL), HG_BINDING);
  hg_executable_release(e);
  e = executable_of(&reversed, &y, &reversed);
  REFUSES(run3(e, reversed, y, reversed, NULL), HG_BINDING,
          "output 'out' and input 'a' are the same view: 'out' is written, and the other is not read element by "
          "element before that; give one of them memory of its own");
  hg_executable_release(e);

  /* an output whose elements lie in one place */
  hg_tensor repeated = matrix_of(NULL, 3, 4);
  repeated.stride[0] = 3;
  hg_tensor m = matrix_of(a, 3, 4);
  c = sum_times(&m, &m, &repeated);
  REFUSES(hg_compile(executor, c, NULL, &e), HG_INVALID_ARGUMENT,
          "output 'out' is written, and its strides put several of its elements in one place");
  CHECK(e == NULL);
  hg_computation_release(c);
  repeated = m, repeated.stride[0] = INT64_MAX;
  c = sum_times(&repeated, &m, NULL);
  REFUSES(hg_compile(executor, c, NULL, &e), HG_INVALID_ARGUMENT,
          "input 'a' has strides with which its elements lie further apart than any memory");
  hg_computation_release(c);
  hg_buffer_release(a);
  hg_buffer_release(b);
}

static void test_empty(void) {
  hg_buffer *a = floats(12, 1);
  hg_tensor x = matrix_of(a, 0, 4), none = matrix_of(NULL, 0, 4);
  hg_executable *e = executable_of(&x, &x, NULL);
  CHECK_EQ_U64(run3(e, x, x, x, NULL), HG_OK);
  CHECK_EQ_U64(run3(e, none, none, none, NULL), HG_OK);
  hg_executable_release(e);
  hg_tensor one = hg_tensor_of(a, ATLAS_f32, 0, NULL); /* rank 0 */
  e = executable_of(&one, &one, NULL);
  hg_tensor out = one;
  out.offset = 5;
  CHECK_EQ_U64(run3(e, one, one, out, NULL), HG_OK);
  float value = 0;
  CHECK_EQ_U64(hg_buffer_read(a, 20, &value, sizeof value), HG_OK);
  CHECK(value == 2);
  hg_executable_release(e);
  hg_buffer_release(a);
}

static void test_compile_errors(void) {
  hg_computation *c = NULL;
  hg_executable *e = NULL;
  hg_compile_desc desc = {.flags = 64};
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_tensor x = vector_of(NULL, 4);
  hg_value a = hg_computation_input(c, "a", &x);
  REFUSES(hg_compile(executor, c, NULL, &e), HG_INVALID_ARGUMENT,
          "hg_compile: the computation has no output and updates nothing");
  CHECK_EQ_U64(hg_computation_output(c, NULL, two(c, HG_OP_add, a, a), NULL), HG_OK);
  CHECK_EQ_U64(hg_compile(executor, c, &desc, &e), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_compile(NULL, c, NULL, &e), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_compile(executor, NULL, NULL, &e), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_compile(executor, c, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_compute(c, (hg_op)60000, &a, 1, NULL, 0), 0);
  REFUSES(hg_compile(executor, c, NULL, &e), HG_INVALID_ARGUMENT, "hg_compute: there is no operation 0xea60");
  hg_computation_release(c);
  hg_executable_release(NULL);
  CHECK(hg_executable_retain(NULL) == NULL);
}

/* ---- several launches -------------------------------------------------------------------------------------------- */

/* Row i of 3 x 4 has the numbers 4 i + 1 and so on: their softmax is the same in each. */
static int is_softmax(hg_buffer *buffer) {
  static const float expected_values[4] = {0.0320586f, 0.0871443f, 0.2368828f, 0.6439143f};
  float values[12];
  int is_near = 1;
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, values, sizeof values), HG_OK);
  for (int i = 0; i < 12; i++) {
    float difference = values[i] - expected_values[i % 4];
    is_near &= difference < 1e-6f && difference > -1e-6f;
  }
  return is_near;
}

/* softmax into an output, or over its input; each operation by itself, so that there are temporaries. */
static hg_executable *softmax(int in_place) {
  hg_computation *c = NULL;
  hg_executable *e = NULL;
  hg_compile_desc desc = {.flags = HG_NO_FUSION};
  hg_tensor like = matrix_of(NULL, 3, 4);
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value x = hg_computation_input(c, "x", &like), y = hg_compute(c, HG_OP_softmax, &x, 1, NULL, 0);
  CHECK_EQ_U64(in_place ? hg_computation_update(c, x, y) : hg_computation_output(c, "y", y, NULL), HG_OK);
  hg_status status = hg_compile(executor, c, &desc, &e);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) printf("  %s\n", hg_last_error());
  hg_computation_release(c);
  return e;
}

static void test_several(void) {
  hg_buffer *a = floats(12, 1), *out = floats(12, 0);
  hg_tensor x = matrix_of(a, 3, 4), y = matrix_of(out, 3, 4);
  hg_stream *stream = NULL;
  hg_graph *graph = NULL;
  hg_launch_report report = {0};
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  hg_executable *e = softmax(0), *in_place = softmax(1);
  CHECK(e->launch_count > 2 && e->workspace_bytes > 0);
  CHECK_EQ_U64(hg_run(e, &x, 1, &y, 1, NULL, &report), HG_OK);
  CHECK(report.lanes >= 12 && is_softmax(out));
  float zero = 0;
  CHECK_EQ_U64(hg_buffer_fill(out, 0, 48, &zero, sizeof zero), HG_OK);
  for (int i = 0; i < 20; i++) CHECK_EQ_U64(hg_run(e, &x, 1, &y, 1, stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK(is_softmax(out));
  CHECK_EQ_U64(hg_buffer_fill(out, 0, 48, &zero, sizeof zero), HG_OK);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK); /* the graph keeps the workspace */
  CHECK_EQ_U64(hg_run(e, &x, 1, &y, 1, stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK(is_softmax(out));
  hg_graph_release(graph);
  CHECK_EQ_U64(hg_run(in_place, &x, 1, NULL, 0, NULL, NULL), HG_OK);
  CHECK(is_softmax(a));
  hg_executable_release(e);
  hg_executable_release(in_place);
  hg_stream_release(stream);
  hg_buffer_release(a);
  hg_buffer_release(out);
}

/* Whatever a run allocates, on a stream or not: the input that it updates is as it was. */
static void test_failed_runs(int on_stream) {
  hg_executor *shared = executor;
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  CHECK_EQ_U64(open_test_executor(&allocator, &executor), HG_OK);
  hg_executable *e = softmax(1);
  hg_stream *stream = NULL;
  if (on_stream) CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  hg_buffer *a = floats(12, 1);
  hg_tensor x = matrix_of(a, 3, 4);
  CHECK_EQ_U64(hg_run(e, &x, 1, NULL, 0, stream, NULL), HG_OK);
  if (on_stream) CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  long failures = 0;
  for (long n = 0, failed = 1; failed; n++) {
    float values[12];
    for (int i = 0; i < 12; i++) values[i] = (float)(i + 1);
    CHECK_EQ_U64(hg_buffer_write(a, 0, values, sizeof values), HG_OK);
    c.fail_at = c.allocations + n;
    hg_status status = hg_run(e, &x, 1, NULL, 0, stream, NULL);
    c.fail_at = -1;
    failed = status != HG_OK;
    failures += failed;
    CHECK(status == HG_OK || status == HG_OUT_OF_MEMORY);
    if (stream != NULL) CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
    if (failed) check_floats(a, 12, from_one);
    else CHECK(is_softmax(a));
  }
  CHECK(failures > 0);
  hg_stream_release(stream);
  hg_buffer_release(a);
  hg_executable_release(e);
  hg_executor_release(executor);
  CHECK_EQ_U64(c.live, 0);
  executor = shared;
}

/* Two takes, of which the second and, behind it, the first fault: the report is of what ran first. */
static void test_faults(void) {
  int64_t numbers[4] = {0, 12, 5, -20};
  hg_buffer *a = floats(12, 1), *out = floats(12, 0), *index = buffer_of(sizeof numbers, numbers);
  hg_tensor x = vector_of(a, 12), at = hg_tensor_of(index, ATLAS_i64, 1, (uint64_t[]){2}), later = at;
  hg_tensor y = vector_of(out, 2), z = y;
  later.offset = 2, z.offset = 4;
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value in = hg_computation_input(c, "table", &x), i = hg_computation_input(c, "first", &at),
           j = hg_computation_input(c, "second", &at);
  CHECK_EQ_U64(hg_computation_output(c, "y", two(c, HG_OP_take, in, i), NULL), HG_OK);
  CHECK_EQ_U64(hg_computation_output(c, "z", two(c, HG_OP_take, in, j), NULL), HG_OK);
  hg_compile_desc desc = {.flags = HG_NO_FUSION};
  hg_executable *e = NULL;
  CHECK_EQ_U64(hg_compile(executor, c, &desc, &e), HG_OK);
  hg_computation_release(c);
  hg_launch_report report = {0};
  hg_tensor inputs[3] = {x, at, later}, outputs[2] = {y, z};
  CHECK_EQ_U64(hg_run(e, inputs, 3, outputs, 2, NULL, &report), HG_FAULT);
  CHECK(report.fault.kind == HG_FAULT_OUT_OF_BOUNDS && report.fault.lane == 1);
  CHECK_STR(report.fault.buffer, "table");
  CHECK(strncmp(hg_last_error(), "in take: ", 9) == 0 && strstr(hg_last_error(), "past 'table'") != NULL);
  float values[6];
  CHECK_EQ_U64(hg_buffer_read(out, 0, values, sizeof values), HG_OK);
  CHECK(values[0] == 1 && values[4] == 6); /* the other lanes, and the launch behind it, ran */
  hg_executable_release(e);
  hg_buffer_release(a);
  hg_buffer_release(out);
  hg_buffer_release(index);
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static hg_executables_info cache_info(void) {
  hg_executables_info info = {0};
  CHECK_EQ_U64(hg_executables_query(executor, &info), HG_OK);
  return info;
}

static void test_cache(void) {
  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK);
  CHECK_EQ_U64(cache_info().count, 0);
  CHECK_EQ_U64(cache_info().bytes, 0);
  CHECK_EQ_U64(hg_executables_limit(executor, 1 << 20), HG_OK);
  hg_tensor x = vector_of(NULL, 12), y = vector_of(NULL, 13), s = x;
  s.stride[0] = 2;
  hg_executables_info before = cache_info();
  hg_executable *first = executable_of(&x, &x, NULL), *second = executable_of(&x, &x, NULL);
  CHECK(first == second);
  hg_executable *larger = executable_of(&y, &y, NULL), *strided = executable_of(&s, &x, NULL);
  CHECK(larger != first && strided != first && strided != larger);
  hg_executables_info info = cache_info();
  CHECK_EQ_U64(info.hits - before.hits, 1);
  CHECK_EQ_U64(info.misses - before.misses, 3);
  CHECK_EQ_U64(info.count, 3);
  CHECK(info.bytes > 1000 && info.byte_cap == 1 << 20);

  /* what nobody needs, and the order in which it was built, do not count */
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value a = hg_computation_input(c, "a", &x), b = hg_computation_input(c, "b", &x);
  (void)two(c, HG_OP_sub, b, a);
  hg_value sum = two(c, HG_OP_add, a, b);
  (void)two(c, HG_OP_div, sum, b);
  CHECK_EQ_U64(hg_computation_output(c, "out", two(c, HG_OP_mul, sum, a), NULL), HG_OK);
  hg_executable *third = compiled(c);
  CHECK(third == first);
  hg_compile_desc desc = {.flags = HG_NO_FUSION};
  hg_executable *apart = NULL;
  CHECK_EQ_U64(hg_compile(executor, c, &desc, &apart), HG_OK);
  CHECK(apart != first);
  hg_computation_release(c);
  hg_executable_release(apart);
  hg_executable_release(third);
  hg_executable_release(second);
  hg_executable_release(strided);

  /* room for one: the least recently used go first, and what is held goes on */
  hg_executable_release(larger);
  larger = executable_of(&y, &y, NULL);
  CHECK_EQ_U64(hg_executables_limit(executor, larger->byte_count + 8), HG_OK);
  info = cache_info();
  CHECK_EQ_U64(info.count, 1);
  CHECK(info.bytes <= info.byte_cap && info.evictions >= before.evictions + 3);
  hg_buffer *p = floats(12, 1), *q = floats(12, 10), *out = floats(12, 0);
  CHECK_EQ_U64(run3(first, vector_of(p, 12), vector_of(q, 12), vector_of(out, 12), NULL), HG_OK);
  check_floats(out, 12, expected);
  second = executable_of(&y, &y, NULL);
  CHECK(second == larger);
  hg_executable_release(second);
  second = executable_of(&x, &x, NULL); /* another one now: it takes the place of `larger` */
  CHECK(second != first);
  hg_executable_release(second);
  hg_executable_release(first);
  hg_executable_release(larger);

  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK); /* keeps none */
  first = executable_of(&x, &x, NULL), second = executable_of(&x, &x, NULL);
  CHECK(first != second);
  CHECK_EQ_U64(cache_info().count, 0);
  hg_executable_release(first);
  hg_executable_release(second);
  CHECK_EQ_U64(hg_executables_limit(executor, 64 << 20), HG_OK);
  CHECK_EQ_U64(hg_executables_query(NULL, &info), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_executables_limit(NULL, 0), HG_INVALID_ARGUMENT);
  hg_buffer_release(p);
  hg_buffer_release(q);
  hg_buffer_release(out);
}

/* An executable holds its executor; the cache does not. */
static void test_lifetime(void) {
  hg_executor *own = NULL, *shared = executor;
  hg_executable *e = NULL;
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  CHECK_EQ_U64(open_test_executor(&allocator, &own), HG_OK);
  executor = own;
  hg_buffer *a = floats(12, 1), *b = floats(12, 10), *out = floats(12, 0);
  hg_tensor x = vector_of(a, 12);
  e = executable_of(&x, &x, NULL);
  hg_executable_release(e);
  e = executable_of(&x, &x, NULL);
  hg_executor_release(own);
  CHECK_EQ_U64(run3(e, x, vector_of(b, 12), vector_of(out, 12), NULL), HG_OK);
  check_floats(out, 12, expected);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(out);
  hg_executable_release(e);
  CHECK_EQ_U64(c.live, 0);
  executor = shared;
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static void test_report(void) {
  hg_tensor x = vector_of(NULL, 12);
  hg_executable *e = executable_of(&x, &x, NULL);
  char *text = NULL;
  size_t length = 0;
  CHECK_EQ_U64(hg_executable_report(e, NULL, 0, &text, &length), HG_OK);
  CHECK(length == strlen(text) && strstr(text, "2 inputs, 1 outputs: 1 launches") == text);
  CHECK(strstr(text, "1. map, 12 lanes") != NULL && strstr(text, "add, mul") != NULL);
  atlas_memory_release(NULL, text);
  CHECK_EQ_U64(hg_executable_report(e, NULL, 1, &text, NULL), HG_OK);
  CHECK(text[0] == '{' && strstr(text, "\"operations\": [\"add\", \"mul\"]") != NULL);
  atlas_memory_release(NULL, text);
  for (long n = 0, failed = 1; failed; n++) {
    counter c = {.fail_at = n};
    hg_allocator allocator = counting(&c);
    hg_status status = hg_executable_report(e, &allocator, 1, &text, NULL);
    failed = status != HG_OK;
    CHECK(status == HG_OK || (status == HG_OUT_OF_MEMORY && text == NULL));
    atlas_memory_release(&allocator, text);
    CHECK_EQ_U64(c.live, 0);
  }
  CHECK_EQ_U64(hg_executable_report(NULL, NULL, 0, &text, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_executable_report(e, NULL, 0, NULL, NULL), HG_INVALID_ARGUMENT);
  hg_executable_release(e);
}

/* What a loss needs of all rows does not keep its gradient from being computed where the rows are: the launch of the
 * rows reads them once and has both; where there is no gradient, what is behind the rows is one launch. */
static void test_row_gradient(void) {
  for (int has_gradient = 0; has_gradient < 2; has_gradient++) {
    hg_tensor x = matrix_of(NULL, 64, 512), target = hg_tensor_of(NULL, ATLAS_i64, 1, (uint64_t[]){64});
    hg_computation *c = NULL;
    char *text = NULL;
    CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
    hg_value of[2] = {hg_computation_input(c, "x", &x), hg_computation_input(c, "target", &target)}, gradient;
    hg_value loss = hg_compute(c, HG_OP_cross_entropy, of, 2, NULL, 0);
    CHECK_EQ_U64(hg_computation_output(c, "loss", loss, NULL), HG_OK);
    if (has_gradient) {
      CHECK_EQ_U64(hg_gradient(c, loss, 0, of, 1, &gradient), HG_OK);
      CHECK_EQ_U64(hg_computation_output(c, "gradient", gradient, NULL), HG_OK);
    }
    hg_executable *e = compiled(c);
    CHECK_EQ_U64(hg_executable_report(e, NULL, 0, &text, NULL), HG_OK);
    CHECK(strstr(text, has_gradient ? ": 3 launches on" : ": 2 launches on") != NULL);
    if (has_gradient) CHECK(strstr(text, "2. rows, ") != NULL && strstr(text, "3. map") == NULL);
    atlas_memory_release(NULL, text);
    hg_executable_release(e);
    hg_computation_release(c);
  }
}

/* ---- memory that runs out ---------------------------------------------------------------------------------------- */

/* Each allocation of a compilation and of a run fails once; nothing is lost, and the next attempt succeeds. */
static void test_failures(void) {
  hg_executor *shared = executor;
  long failures = 0;
  for (long n = 0, failed = 1; failed; n++) {
    counter c = {.fail_at = -1};
    hg_allocator allocator = counting(&c);
    CHECK_EQ_U64(open_test_executor(&allocator, &executor), HG_OK);
    hg_buffer *a = floats(12, 1), *b = floats(12, 10), *out = floats(12, 0);
    hg_tensor x = vector_of(a, 12), y = vector_of(b, 12), z = vector_of(out, 12);
    hg_computation *computation = sum_times(&x, &y, NULL);
    hg_executable *e = NULL;
    c.fail_at = c.allocations + n;
    hg_status status = hg_compile(executor, computation, NULL, &e);
    if (status == HG_OK) status = run3(e, x, y, z, NULL);
    failed = status != HG_OK;
    failures += failed;
    CHECK(status == HG_OK || status == HG_OUT_OF_MEMORY);
    c.fail_at = -1;
    if (e == NULL) CHECK_EQ_U64(hg_compile(executor, computation, NULL, &e), HG_OK);
    if (failed) CHECK_EQ_U64(run3(e, x, y, z, NULL), HG_OK);
    check_floats(out, 12, expected);
    hg_executable_release(e);
    hg_computation_release(computation);
    hg_buffer_release(a);
    hg_buffer_release(b);
    hg_buffer_release(out);
    hg_executor_release(executor);
    CHECK_EQ_U64(c.live, 0);
  }
  if (test_backend() == HG_BACKEND_CPU) CHECK(failures > 20);
  executor = shared;
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

#if !defined(_WIN32)
enum { THREADS = 6, ROUNDS = 40 };

typedef struct worker {
  pthread_t thread;
  hg_executable *shared;
  unsigned number;
  int failures;
} worker;

/* Runs what all share, and compiles the same few computations as the others, which push each other out. */
static void *work(void *argument) {
  worker *w = argument;
  for (unsigned round = 0; round < ROUNDS; round++) {
    hg_buffer *a = NULL, *out = NULL;
    float values[12], ones[12];
    for (int i = 0; i < 12; i++) ones[i] = (float)w->number;
    w->failures += hg_buffer_create(executor, NULL, sizeof values, &a) != HG_OK;
    w->failures += hg_buffer_create(executor, NULL, sizeof values, &out) != HG_OK;
    w->failures += hg_buffer_write(a, 0, ones, sizeof ones) != HG_OK;
    hg_tensor x = vector_of(a, 12), z = vector_of(out, 12), part = vector_of(a, 1 + round % 5),
              to = vector_of(out, part.shape[0]);
    w->failures += run3(w->shared, x, x, z, NULL) != HG_OK;
    w->failures += hg_buffer_read(out, 0, values, sizeof values) != HG_OK;
    for (int i = 0; i < 12; i++) w->failures += values[i] != 2 * ones[i] * ones[i];
    hg_computation *c = NULL;
    hg_executable *e = NULL;
    w->failures += hg_computation_create(NULL, &c) != HG_OK;
    hg_value p = hg_computation_input(c, "p", &part);
    w->failures += hg_computation_output(c, "q", two(c, HG_OP_add, p, p), NULL) != HG_OK;
    w->failures += hg_compile(executor, c, NULL, &e) != HG_OK;
    w->failures += hg_run(e, &part, 1, &to, 1, NULL, NULL) != HG_OK;
    w->failures += hg_buffer_read(out, 0, values, 4) != HG_OK;
    w->failures += values[0] != 2 * ones[0];
    hg_executable_release(e);
    hg_computation_release(c);
    hg_buffer_release(a);
    hg_buffer_release(out);
  }
  return NULL;
}

static void test_threads(void) {
  worker workers[THREADS];
  hg_tensor x = vector_of(NULL, 12);
  hg_executable *e = executable_of(&x, &x, NULL);
  CHECK_EQ_U64(hg_executables_limit(executor, 3 * e->byte_count), HG_OK);
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (worker){.shared = e, .number = i};
    CHECK_EQ_U64(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    CHECK_EQ_U64(pthread_join(workers[i].thread, NULL), 0);
    CHECK_EQ_U64(workers[i].failures, 0);
  }
  hg_executable_release(e);
  CHECK_EQ_U64(hg_executables_limit(executor, 64 << 20), HG_OK);
}
#endif

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  test_run();
  test_stream();
  test_products_on_stream();
  test_refusals();
  test_overlaps();
  test_empty();
  test_compile_errors();
  test_several();
  if (test_backend() == HG_BACKEND_CPU) {
    test_failed_runs(0);
    test_failed_runs(1);
  }
  test_faults();
  test_cache();
  test_lifetime();
  test_report();
  test_row_gradient();
  test_failures();
#if !defined(_WIN32)
  test_threads();
#endif
  hg_executor_release(executor);
  return check_report();
}
