/* test_executables.c - compiled computations: running them, what a run refuses, reports. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "computing.h"
#include "each_allocation.h"

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

/* What a run allocates. */
typedef struct failing_run {
  int on_stream;
  hg_executable *e;
  hg_stream *stream;
  hg_buffer *a;
} failing_run;

static void prepare_run(void *state) {
  failing_run *f = state;
  f->e = softmax(1);
  f->stream = NULL;
  if (f->on_stream) CHECK_EQ_U64(hg_stream_create(executor, NULL, &f->stream), HG_OK);
  f->a = floats(12, 1);
}

static hg_status run_it(void *state, const hg_allocator *allocator) {
  failing_run *f = state;
  (void)allocator;
  hg_tensor x = matrix_of(f->a, 3, 4);
  hg_status status = hg_run(f->e, &x, 1, NULL, 0, f->stream, NULL);
  if (f->on_stream) CHECK_EQ_U64(hg_stream_wait(f->stream, NULL), HG_OK);
  return status;
}

static void check_run(void *state, hg_status status) {
  failing_run *f = state;
  if (status != HG_OK) check_floats(f->a, 12, from_one);
  else CHECK(is_softmax(f->a));
}

static void end_run(void *state) {
  failing_run *f = state;
  hg_stream_release(f->stream);
  hg_buffer_release(f->a);
  hg_executable_release(f->e);
}

/* On a stream or not: the input that a run updates is as it was. */
static void test_failed_runs(int on_stream) {
  static const attempt run = {.prepare = prepare_run, .act = run_it, .check = check_run, .end = end_run};
  failing_run f = {.on_stream = on_stream};
  CHECK(each_allocation_fails(&run, &f) > 0);
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
  CHECK(report.fault.has_number == 1 && report.fault.number == 12 && report.fault.length == 12);
  CHECK_STR(hg_last_error(), "take: index 12 is out of range of axis 0, which has 12 elements");
  float values[6];
  CHECK_EQ_U64(hg_buffer_read(out, 0, values, sizeof values), HG_OK);
  CHECK(values[0] == 1 && values[4] == 6); /* the other lanes, and the launch behind it, ran */
  hg_executable_release(e);
  hg_buffer_release(a);
  hg_buffer_release(out);
  hg_buffer_release(index);
}

/* ---- compiling in full beforehand -------------------------------------------------------------------------------- */

/* Two kernels: sums of rows and columns. Nothing is written, and nothing is left to be done by the run. */
static void test_warm(void) {
  uint64_t kernels = 7;
  hg_buffer *a = floats(12, 1), *sums = floats(8, -1);
  hg_tensor x = matrix_of(a, 3, 4), rows = vector_of(sums, 3), columns = vector_of(sums, 4);
  columns.offset = 4;
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value of = hg_computation_input(c, "x", &x);
  for (int axis = 1; axis >= 0; axis--) {
    hg_argument along = {.count = 1, .integers = {axis}};
    CHECK_EQ_U64(hg_computation_output(c, NULL, hg_compute(c, HG_OP_sum, &of, 1, &along, 1), NULL), HG_OK);
  }
  hg_executable *e = compiled(c);
  REFUSES(hg_executable_warm(NULL, &kernels), HG_INVALID_ARGUMENT, "hg_executable_warm: the executable is NULL");
  CHECK_EQ_U64(kernels, 7);
  CHECK_EQ_U64(hg_executable_warm(e, NULL), HG_OK);
  CHECK_EQ_U64(hg_executable_warm(e, &kernels), HG_OK);
  CHECK_EQ_U64(kernels, 2);
  float values[8];
  CHECK_EQ_U64(hg_buffer_read(sums, 0, values, sizeof values), HG_OK);
  for (int i = 0; i < 8; i++) CHECK(values[i] == (float)(i - 1));
  CHECK_EQ_U64(hg_run(e, &x, 1, (hg_tensor[]){rows, columns}, 2, NULL, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(sums, 0, values, sizeof values), HG_OK);
  CHECK(values[0] == 10 && values[2] == 42 && values[4] == 15 && values[7] == 24);
  hg_executable_release(e);
  hg_computation_release(c);
  hg_buffer_release(a);
  hg_buffer_release(sums);
}

static hg_tensor warmed[2];

static void prepare_warm(void *state) {
  (void)state;
  for (int i = 0; i < 2; i++) warmed[i] = vector_of(NULL, 1 << 20);
}

static hg_status act_warm(void *state, const hg_allocator *allocator) {
  hg_executable **e = state;
  (void)allocator;
  if (*e == NULL) {
    hg_computation *c = sum_times(&warmed[0], &warmed[1], NULL);
    hg_status status = hg_compile(executor, c, NULL, e);
    hg_computation_release(c);
    if (status != HG_OK) return status;
  }
  return hg_executable_warm(*e, NULL);
}

static void check_warm(void *state, hg_status status) {
  if (status == HG_OK) CHECK(*(hg_executable **)state != NULL);
}

static void end_warm(void *state) {
  hg_executable **e = state;
  hg_executable_release(*e);
  *e = NULL;
}

static void test_warm_without_memory(void) {
  hg_executable *e = NULL;
  const attempt what = {prepare_warm, act_warm, check_warm, end_warm};
  CHECK(each_allocation_fails(&what, &e) > 0);
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
  const char *hash = strstr(text, "\"hash\": \"");
  CHECK(hash != NULL && strspn(hash + strlen("\"hash\": \""), "0123456789abcdef") == 2 * (size_t)ATLAS_HASH_BYTES);
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

/* Layers alike have kernels in common; the last operation of one, which differs in a constant, has its own. */
static void test_layers(void) {
  enum { LAYERS = 4 };
  hg_buffer *in = floats(12, 1), *out = floats(12, 0);
  hg_tensor x = matrix_of(in, 3, 4), y = matrix_of(out, 3, 4);
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value value = hg_computation_input(c, "x", &x);
  for (uint32_t i = 0; i < LAYERS; i++) {
    value = hg_compute(c, HG_OP_softmax, &value, 1, NULL, 0);
    hg_value share = hg_computation_number(c, ATLAS_f32, i == 2 ? 3 : 2);
    value = hg_compute(c, HG_OP_mul, (hg_value[]){value, share}, 2, NULL, 0);
  }
  CHECK_EQ_U64(hg_computation_output(c, "y", value, NULL), HG_OK);
  hg_executable *e = NULL;
  CHECK_EQ_U64(hg_compile(executor, c, &(hg_compile_desc){.flags = HG_NO_FUSION}, &e), HG_OK);
  uint32_t each = e->launch_count / LAYERS;
  CHECK(each > 1 && e->launch_count == LAYERS * each);
  for (uint32_t i = 0; i < e->launch_count; i++)
    for (uint32_t k = i % each; k < i; k += each) {
      int is_other = i % each == each - 1 && (i / each == 2 || k / each == 2);
      CHECK((e->launches[i].kernel == e->launches[k].kernel) == !is_other);
    }
  CHECK_EQ_U64(hg_run(e, &x, 1, &y, 1, NULL, NULL), HG_OK);
  float rows[12];
  CHECK_EQ_U64(hg_buffer_read(out, 0, rows, sizeof rows), HG_OK);
  for (uint32_t r = 0; r < 3; r++) {
    float sum = rows[4 * r] + rows[4 * r + 1] + rows[4 * r + 2] + rows[4 * r + 3];
    CHECK(sum > 1.999f && sum < 2.001f);
  }
  hg_executable_release(e);
  hg_computation_release(c);
  hg_buffer_release(in);
  hg_buffer_release(out);
}

enum { EDGE = 8 };

static float moved_by_two(uint64_t i) { return (float)(i / EDGE * EDGE + (i + EDGE - 2) % EDGE); }

/* Products alike have a kernel in common; one with other strides has its own where that is the backend's. */
static void test_products_in_layers(void) {
  enum { LAYERS = 4, TURNED = 2 };
  float step[EDGE * EDGE] = {0}; /* moves a row's elements on by one place; transposed, back */
  for (uint32_t i = 0; i < EDGE; i++) step[i * EDGE + (i + 1) % EDGE] = 1;
  hg_buffer *in = floats(EDGE * EDGE, 0), *by = buffer_of(sizeof step, step), *out = floats(EDGE * EDGE, 0);
  hg_tensor x = matrix_of(in, EDGE, EDGE), w = matrix_of(by, EDGE, EDGE), y = matrix_of(out, EDGE, EDGE);
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value value = hg_computation_input(c, "x", &x), weight = hg_computation_input(c, "w", &w);
  for (uint32_t i = 0; i < LAYERS; i++) {
    hg_argument turned[2] = {{.count = 1}, {.count = 1, .integers = {i == TURNED}}};
    value = hg_compute(c, HG_OP_matmul, (hg_value[]){value, weight}, 2, turned, 2);
  }
  CHECK_EQ_U64(hg_computation_output(c, "y", value, NULL), HG_OK);
  hg_executable *e = compiled(c);
  CHECK_EQ_U64(e->launch_count, LAYERS);
  for (uint32_t i = 1; i < e->launch_count; i++)
    if (i != TURNED) CHECK(e->launches[i].kernel == e->launches[0].kernel);
  if (test_backend() == HG_BACKEND_CPU) CHECK(e->launches[TURNED].kernel != e->launches[0].kernel);
  CHECK_EQ_U64(hg_run(e, (hg_tensor[]){x, w}, 2, &y, 1, NULL, NULL), HG_OK);
  check_floats(out, EDGE * EDGE, moved_by_two);
  hg_executable_release(e);
  hg_computation_release(c);
  hg_buffer_release(in);
  hg_buffer_release(by);
  hg_buffer_release(out);
}

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
  test_warm();
  test_warm_without_memory();
  test_report();
  test_row_gradient();
  test_layers();
  test_products_in_layers();
  hg_executor_release(executor);
  return check_report();
}
