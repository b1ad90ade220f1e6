/* test_eager.c - one operation at once: results, views that are the same, what is refused, the table of known calls.
 * Memory that runs out: test_operation_failures.c. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "computing.h"

#if !defined(_WIN32)
#  include <pthread.h>
#endif

static hg_status apply2(hg_op op, hg_tensor a, hg_tensor b, hg_tensor out) {
  return hg_apply(op, (hg_tensor[]){a, b}, 2, NULL, 0, &out, 1, NULL);
}

/* factor * i + first, for i < count */
static void check_line(hg_buffer *buffer, uint64_t count, float first, float factor) {
  float values[MOST];
  int is_same = 1;
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, values, count * sizeof(float)), HG_OK);
  for (uint64_t i = 0; i < count; i++) is_same &= values[i] == first + factor * (float)i;
  CHECK(is_same);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static void test_results(void) {
  hg_buffer *a = floats(12, 1), *b = floats(12, 10), *out = floats(12, 0);
  hg_tensor x = vector_of(a, 12), y = vector_of(b, 12), z = vector_of(out, 12);
  for (int i = 0; i < 3; i++) { /* the first is compiled, the others are found */
    float zero = 0;
    CHECK_EQ_U64(hg_buffer_fill(out, 0, 48, &zero, sizeof zero), HG_OK);
    CHECK_EQ_U64(apply2(HG_OP_add, x, y, z), HG_OK);
    check_line(out, 12, 11, 2);
  }
  CHECK_EQ_U64(apply2(HG_OP_sub, y, x, z), HG_OK);
  check_line(out, 12, 9, 0);
  /* another offset is the same call; another stride is not */
  x.shape[0] = y.shape[0] = z.shape[0] = 6;
  for (int i = 0; i < 3; i++) {
    x.offset = i, z.offset = 2 * i;
    uint64_t misses = cache_info().misses;
    CHECK_EQ_U64(apply2(HG_OP_add, x, y, z), HG_OK);
    CHECK_EQ_U64(cache_info().misses, misses + (i == 0));
    float first = 0;
    CHECK_EQ_U64(hg_buffer_read(out, (uint64_t)(8 * i), &first, 4), HG_OK);
    CHECK(first == 11 + (float)i);
  }
  x.offset = 11, x.stride[0] = -2, z.offset = 0; /* 12, 10, 8, ... */
  CHECK_EQ_U64(apply2(HG_OP_add, x, y, z), HG_OK);
  check_line(out, 6, 22, -1);
  CHECK_EQ_U64(apply2(HG_OP_add, x, y, z), HG_OK);
  x.offset = 2, x.stride[0] = 0; /* one number */
  CHECK_EQ_U64(apply2(HG_OP_add, x, y, z), HG_OK);
  check_line(out, 6, 13, 1);
  hg_tensor one = hg_tensor_of(a, ATLAS_f32, 0, NULL); /* rank 0, which is broadcast */
  CHECK_EQ_U64(apply2(HG_OP_mul, one, y, z), HG_OK);
  check_line(out, 6, 10, 1);
  /* arguments are a part of the call */
  hg_tensor m = matrix_of(a, 3, 4), rows = vector_of(out, 3), columns = vector_of(out, 4);
  for (int i = 0; i < 2; i++) {
    CHECK_EQ_U64(hg_apply(HG_OP_max, &m, 1, &(hg_argument){.count = 1, .integers = {1}}, 1, &rows, 1, NULL), HG_OK);
    check_line(out, 3, 4, 4);
    CHECK_EQ_U64(hg_apply(HG_OP_max, &m, 1, &(hg_argument){.count = 1, .integers = {0}}, 1, &columns, 1, NULL), HG_OK);
    check_line(out, 4, 9, 1);
  }
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(out);
}

static void test_same_views(void) {
  hg_buffer *a = floats(12, 1), *b = floats(12, 10);
  hg_tensor x = vector_of(a, 12), y = vector_of(b, 12), part = x;
  for (int i = 1; i < 3; i++) { /* in place, again and again */
    CHECK_EQ_U64(apply2(HG_OP_add, x, y, x), HG_OK);
    check_line(a, 12, 1 + 10 * (float)i, 1 + (float)i);
  }
  CHECK_EQ_U64(apply2(HG_OP_sub, y, x, x), HG_OK); /* the second input */
  check_line(a, 12, -11, -2);
  CHECK_EQ_U64(apply2(HG_OP_add, x, x, y), HG_OK);
  check_line(b, 12, -22, -4);
  CHECK_EQ_U64(apply2(HG_OP_sub, x, x, x), HG_OK); /* all three */
  check_line(a, 12, 0, 0);
  /* every second element, backwards: no program has that in element form */
  CHECK_EQ_U64(apply2(HG_OP_add, x, y, x), HG_OK);
  CHECK_EQ_U64(hg_tensor_slice(&x, 0, 11, -1, -2, &part), HG_OK);
  CHECK_EQ_U64(apply2(HG_OP_add, part, part, part), HG_OK);
  float values[12];
  CHECK_EQ_U64(hg_buffer_read(a, 0, values, sizeof values), HG_OK);
  for (int i = 0; i < 12; i++) CHECK(values[i] == (float)(-22 - 4 * i) * (i % 2 ? 2 : 1));
  /* one buffer by two handles */
  hg_buffer *view = NULL;
  CHECK_EQ_U64(hg_buffer_view(b, 16, 32, &view), HG_OK);
  hg_tensor other = vector_of(view, 8), own = vector_of(b, 8);
  own.offset = 4;
  CHECK_EQ_U64(apply2(HG_OP_sub, own, other, other), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(b, 0, values, sizeof values), HG_OK);
  for (int i = 0; i < 12; i++) CHECK(values[i] == (i < 4 ? (float)(-22 - 4 * i) : 0));
  own.offset = 3;
  REFUSES(apply2(HG_OP_sub, own, own, other), HG_BINDING,
          "output 'out' and input 'a' overlap: 'out' is written, and only the very same view may, of an input that is "
          "read element by element");
  hg_buffer_release(view);
  hg_buffer_release(a);
  hg_buffer_release(b);
}

/* What reads other elements than the one it writes: the result is as if it had memory of its own. */
static void test_other_elements(void) {
  static const struct {
    hg_op op;
    int inputs;
  } cases[] = {{HG_OP_permute, 1}, {HG_OP_flip, 1}, {HG_OP_matmul, 2}, {HG_OP_softmax, 1}, {HG_OP_sub, 2}};
  for (size_t k = 0; k < COUNT(cases); k++)
    for (int second = 0; second < cases[k].inputs; second++) { /* which input is written over */
      float results[2][16];
      for (int in_place = 0; in_place < 3; in_place++) { /* the last time it is known */
        hg_buffer *a = floats(16, 1), *b = floats(16, -3), *out = floats(16, 0);
        hg_tensor in[2] = {matrix_of(a, 4, 4), matrix_of(b, 4, 4)}, z = matrix_of(out, 4, 4);
        if (in_place) z = in[second];
        hg_status status = hg_apply(cases[k].op, in, (size_t)cases[k].inputs, NULL, 0, &z, 1, NULL);
        CHECK_EQ_U64(status, HG_OK);
        if (status != HG_OK) printf("  %s\n", hg_last_error());
        CHECK_EQ_U64(hg_buffer_read(z.buffer, 0, results[in_place != 0], sizeof results[0]), HG_OK);
        if (in_place) CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
        hg_buffer_release(a);
        hg_buffer_release(b);
        hg_buffer_release(out);
      }
    }
}

static void test_empty(void) {
  hg_tensor none = vector_of(NULL, 0);
  hg_buffer *a = floats(1, 3);
  hg_tensor some = vector_of(a, 0), one = vector_of(a, 1);
  REFUSES(apply2(HG_OP_add, none, none, none), HG_INVALID_ARGUMENT, "hg_apply: no tensor has a buffer");
  for (int i = 0; i < 2; i++) {
    CHECK_EQ_U64(apply2(HG_OP_add, none, some, some), HG_OK);
    CHECK_EQ_U64(apply2(HG_OP_add, one, none, none), HG_OK);
    hg_tensor sum = hg_tensor_of(a, ATLAS_f32, 0, NULL);
    CHECK_EQ_U64(hg_apply(HG_OP_sum, &none, 1, NULL, 0, &sum, 1, NULL), HG_OK);
    check_line(a, 1, 0, 0);
  }
  hg_buffer_release(a);
}

static void test_streams(void) {
  hg_buffer *a = floats(12, 1), *out = floats(12, 0);
  hg_tensor x = vector_of(a, 12), z = vector_of(out, 12);
  hg_stream *stream = NULL;
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  for (int i = 0; i < 8; i++) /* the second waits for the first, whose memory it reads */
    for (int on = 0; on < 2; on++)
      CHECK_EQ_U64(hg_apply(HG_OP_add, (hg_tensor[]){x, on ? z : x}, 2, NULL, 0, on ? &x : &z, 1, on ? stream : NULL),
                   HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  float expected = 1;
  for (int i = 0; i < 8; i++) expected = expected + (expected + expected);
  check_line(a, 12, expected, expected);
  hg_stream_release(stream);
  hg_buffer_release(a);
  hg_buffer_release(out);
}

/* ---- faults and refusals ----------------------------------------------------------------------------------------- */

static void test_faults(void) {
  hg_buffer *a = floats(12, 1), *out = floats(12, 0);
  int64_t numbers[3] = {0, 12, 5};
  hg_buffer *index = buffer_of(sizeof numbers, numbers);
  hg_tensor inputs[2] = {vector_of(a, 12), hg_tensor_of(index, ATLAS_i64, 1, (uint64_t[]){3})}, z = vector_of(out, 3);
  for (int i = 0; i < 2; i++) {
    CHECK_EQ_U64(hg_apply(HG_OP_take, inputs, 2, NULL, 0, &z, 1, NULL), HG_FAULT);
    CHECK_STR(hg_last_error(), "take: index 12 is out of range of axis 0, which has 12 elements");
  }
  numbers[1] = 11;
  CHECK_EQ_U64(hg_buffer_write(index, 0, numbers, sizeof numbers), HG_OK);
  CHECK_EQ_U64(hg_apply(HG_OP_take, inputs, 2, NULL, 0, &z, 1, NULL), HG_OK);
  float values[3];
  CHECK_EQ_U64(hg_buffer_read(out, 0, values, sizeof values), HG_OK);
  CHECK(values[0] == 1 && values[1] == 12 && values[2] == 6);
  hg_buffer_release(a);
  hg_buffer_release(out);
  hg_buffer_release(index);
}

/* Each once as a new call and once as a known one. */
static void test_refusals(void) {
  hg_buffer *a = floats(12, 1), *b = floats(12, 10), *out = floats(12, 0);
  hg_tensor x = vector_of(a, 12), y = vector_of(b, 12), z = vector_of(out, 12), wrong = x;
  for (int i = 0; i < 2; i++) {
    REFUSES(apply2(HG_OP_add, x, y, vector_of(out, 11)), HG_INVALID_ARGUMENT,
            "add: the result is f32[12]; output 'out' is f32[11]");
    REFUSES(apply2(HG_OP_add, x, y, vector_of(NULL, 12)), HG_INVALID_ARGUMENT,
            "hg_apply: output 'out' has no buffer");
    CHECK_EQ_U64(apply2(HG_OP_add, x, vector_of(b, 11), z), HG_INVALID_ARGUMENT);
    CHECK_EQ_U64(apply2((hg_op)60000, x, y, z), HG_INVALID_ARGUMENT);
    CHECK_EQ_U64(apply2(HG_OP_add, x, vector_of(NULL, 12), z), HG_INVALID_ARGUMENT);
    CHECK_EQ_U64(apply2(HG_OP_add, x, y, z), HG_OK);
    wrong.offset = 1;
    REFUSES(apply2(HG_OP_add, wrong, y, z), HG_BINDING,
            "input 'a' begins at element 1 and reaches from 0 to 11 elements beside it, which is not all in its buffer "
            "of 48 bytes (12 of f32)");
    wrong.offset = INT64_MIN;
    CHECK_EQ_U64(apply2(HG_OP_add, wrong, y, z), HG_BINDING);
    wrong.offset = INT64_MAX;
    CHECK_EQ_U64(apply2(HG_OP_add, wrong, y, z), HG_BINDING);
    void *memory = NULL;
    CHECK_EQ_U64(hg_buffer_map(b, &memory), HG_OK);
    REFUSES(apply2(HG_OP_add, x, y, z), HG_BUSY, "the buffer of input 'b' is mapped; unmap it before the run");
    CHECK_EQ_U64(hg_buffer_unmap(b), HG_OK);
  }
  wrong = x, wrong.rank = 9;
  REFUSES(apply2(HG_OP_add, x, wrong, z), HG_INVALID_ARGUMENT, "hg_apply: a tensor has rank 9; the highest is 8");
  CHECK_EQ_U64(hg_apply(HG_OP_add, NULL, 2, NULL, 0, &z, 1, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_apply(HG_OP_add, (hg_tensor[]){x, x, x}, 3, NULL, 0, &z, 1, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_apply(HG_OP_add, &x, 1, NULL, 300, &z, 1, NULL), HG_INVALID_ARGUMENT);
  hg_executor *another = NULL;
  hg_buffer *strange = NULL;
  CHECK_EQ_U64(open_test_executor(NULL, &another), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(another, NULL, 48, &strange), HG_OK);
  REFUSES(apply2(HG_OP_add, x, vector_of(strange, 12), z), HG_BINDING,
          "the buffer of input 'b' belongs to another executor");
  hg_buffer_release(strange);
  hg_executor_release(another);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(out);
}

static void test_shapes(void) {
  hg_tensor in[2] = {matrix_of(NULL, 3, 1), vector_of(NULL, 4)}, out;
  CHECK_EQ_U64(hg_apply_shape(HG_OP_add, in, 2, NULL, 0, &out, 1), HG_OK);
  CHECK(out.type == ATLAS_f32 && out.rank == 2 && out.shape[0] == 3 && out.shape[1] == 4 && out.stride[0] == 4);
  in[1].shape[0] = 0;
  CHECK_EQ_U64(hg_apply_shape(HG_OP_less, in, 2, NULL, 0, &out, 1), HG_OK);
  CHECK(out.type == ATLAS_bool && out.shape[1] == 0);
  in[0].shape[1] = 5;
  CHECK_EQ_U64(hg_apply_shape(HG_OP_add, in, 2, NULL, 0, &out, 1), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_apply_shape(HG_OP_add, in, 2, NULL, 0, NULL, 1), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_apply_shape(HG_OP_add, NULL, 2, NULL, 0, &out, 1), HG_INVALID_ARGUMENT);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void test_table(void) {
  enum { LIMIT = 200000 }; /* of few executables: one takes some 26 KB, most of it its kernel's */
  hg_buffer *a = floats(MOST, 1), *out = floats(MOST, 0);
  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK);
  for (int i = 0; i < 2; i++) { /* nothing is kept, and all goes on */
    CHECK_EQ_U64(apply2(HG_OP_add, vector_of(a, 5), vector_of(a, 5), vector_of(out, 5)), HG_OK);
    check_line(out, 5, 2, 2);
  }
  CHECK_EQ_U64(cache_info().count, 0);
  CHECK_EQ_U64(hg_executables_limit(executor, LIMIT), HG_OK);
  for (int round = 0; round < 3; round++) /* more than there is room for */
    for (uint64_t n = 1; n < MOST; n++) {
      CHECK_EQ_U64(apply2(HG_OP_add, vector_of(a, n), vector_of(a, n), vector_of(out, n)), HG_OK);
      check_line(out, n, 2, 2);
      CHECK(cache_info().bytes <= LIMIT);
    }
  CHECK(cache_info().evictions > MOST && cache_info().count > 2);
  /* strides of single elements: many calls of one executable are bounded, too */
  hg_tensor x = matrix_of(a, 1, 4), z = matrix_of(out, 1, 4);
  for (int64_t i = 0; i < 300; i++) {
    x.stride[0] = i;
    CHECK_EQ_U64(apply2(HG_OP_add, x, x, z), HG_OK);
    CHECK(cache_info().bytes <= LIMIT);
  }
  check_line(out, 4, 2, 2);
  CHECK_EQ_U64(hg_executables_limit(executor, 64 << 20), HG_OK);
  hg_buffer_release(a);
  hg_buffer_release(out);
}

/* More tensors than a call has room for by itself. */
/* The same tensors come again and again, which are one input each. */
static void test_many(void) {
  enum { MANY = 1500, DIFFERENT = 40 };
  hg_tensor parts[MANY], shape;
  float values[MANY] = {0};
  hg_buffer *a = floats(DIFFERENT, 0), *out = buffer_of(sizeof values, values);
  for (int64_t i = 0; i < MANY; i++) {
    parts[i] = vector_of(a, 1);
    parts[i].offset = i % DIFFERENT;
  }
  for (uint64_t count = DIFFERENT; count <= MANY; count += MANY - DIFFERENT)
    for (int i = 0; i < 2; i++) {
      hg_tensor z = vector_of(out, count);
      int is_right = 1;
      CHECK_EQ_U64(hg_apply(HG_OP_concatenate, parts, count, NULL, 0, &z, 1, NULL), HG_OK);
      CHECK_EQ_U64(hg_buffer_read(out, 0, values, count * sizeof *values), HG_OK);
      for (uint64_t k = 0; k < count; k++) is_right &= values[k] == (float)(k % DIFFERENT);
      CHECK(is_right);
    }
  CHECK_EQ_U64(hg_apply_shape(HG_OP_stack, parts, MANY, NULL, 0, &shape, 1), HG_OK);
  CHECK(shape.rank == 2 && shape.shape[0] == MANY && shape.shape[1] == 1);
  hg_buffer_release(a);
  hg_buffer_release(out);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

#if !defined(_WIN32)
enum { THREADS = 6, ROUNDS = 300 };

typedef struct worker {
  pthread_t thread;
  unsigned number;
  int failures;
} worker;

/* The same few calls from all, while one of them changes how many are kept. */
static void *work(void *argument) {
  worker *w = argument;
  hg_buffer *a = NULL, *out = NULL;
  float values[MOST];
  for (int i = 0; i < MOST; i++) values[i] = (float)w->number;
  w->failures += hg_buffer_create(executor, NULL, sizeof values, &a) != HG_OK;
  w->failures += hg_buffer_create(executor, NULL, sizeof values, &out) != HG_OK;
  w->failures += hg_buffer_write(a, 0, values, sizeof values) != HG_OK;
  for (unsigned round = 0; round < ROUNDS; round++) {
    uint64_t n = 1 + round % 7;
    if (w->number == 0) w->failures += hg_executables_limit(executor, round % 3 * 15000) != HG_OK;
    w->failures +=
        apply2(round % 2 ? HG_OP_add : HG_OP_mul, vector_of(a, n), vector_of(a, n), vector_of(out, n)) != HG_OK;
    w->failures += hg_buffer_read(out, 0, values, n * 4) != HG_OK;
    float expected = round % 2 ? 2 * (float)w->number : (float)w->number * (float)w->number;
    for (uint64_t i = 0; i < n; i++) w->failures += values[i] != expected;
  }
  hg_buffer_release(a);
  hg_buffer_release(out);
  return NULL;
}

static void test_threads(void) {
  worker workers[THREADS];
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (worker){.number = i};
    CHECK_EQ_U64(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    CHECK_EQ_U64(pthread_join(workers[i].thread, NULL), 0);
    CHECK_EQ_U64(workers[i].failures, 0);
  }
}
#endif

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  test_results();
  test_same_views();
  test_other_elements();
  test_empty();
  test_streams();
  test_faults();
  test_refusals();
  test_shapes();
  test_table();
  test_many();
#if !defined(_WIN32)
  test_threads();
#endif
  hg_executor_release(executor);
  return check_report();
}
