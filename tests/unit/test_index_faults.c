/* test_index_faults.c - what the fault of an operation's index tells: the first index out of range as it was given, its
 * axis, how many elements that has, and the operation as it was called. */
#define _POSIX_C_SOURCE 200112L
#include "computing.h"
#include "each_allocation.h"

enum { ROWS = 3, COLUMNS = 5 };

typedef struct trial {
  hg_op op;
  atlas_type type; /* of the index */
  uint32_t rank;
  uint64_t shape[HG_MAX_RANK];
  int64_t numbers[8];
  int64_t axis, bounds; /* bounds: of the row's choices */
  int has_axis;
  int is_computed; /* the index is an input less 1 */
  const char *sentence;
  int64_t number;
  uint64_t length;
  uint32_t named_axis;
} trial;

static hg_buffer *index_buffer(const trial *t, uint64_t count) {
  uint8_t bytes[8 * sizeof(int64_t)];
  uint32_t size = atlas_bytes(t->type);
  for (uint64_t i = 0; i < count; i++) {
    int64_t number = t->numbers[i] + (t->is_computed ? 1 : 0);
    uint8_t narrow = (uint8_t)number;
    uint16_t half = (uint16_t)number;
    uint32_t single = (uint32_t)number;
    const void *from = size == 1   ? (const void *)&narrow
                       : size == 2 ? (const void *)&half
                       : size == 4 ? (const void *)&single
                                   : (const void *)&number;
    memcpy(bytes + i * size, from, size);
  }
  return buffer_of(count * size, bytes);
}

/* x is [3, 5], and so is what is put into it. */
static hg_value call(hg_computation *c, const trial *t, hg_value x, hg_value index) {
  hg_argument arguments[2] = {{.count = (uint32_t)t->has_axis, .integers = {t->axis}},
                              {.count = 1, .integers = {t->bounds}}};
  hg_value inputs[3] = {x, index, x};
  int is_scatter = t->op == HG_OP_scatter || t->op == HG_OP_scatter_add;
  int is_plain = t->op == HG_OP_embedding || t->op == HG_OP_cross_entropy;
  return hg_compute(c, t->op, inputs, is_scatter ? 3 : 2, is_plain ? NULL : arguments, is_plain ? 0 : 2);
}

static hg_executable *executable_for(const trial *t, const hg_tensor *x, const hg_tensor *index, hg_tensor *result) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value from = hg_computation_input(c, "x", x), at = hg_computation_input(c, "index", index);
  if (t->is_computed) at = two(c, HG_OP_sub, at, hg_computation_integer(c, t->type, 1));
  hg_value made = call(c, t, from, at);
  CHECK_EQ_U64(hg_computation_describe(c, made, result), HG_OK);
  CHECK_EQ_U64(hg_computation_output(c, "y", made, NULL), HG_OK);
  hg_executable *e = compiled(c);
  hg_computation_release(c);
  return e;
}

static void check(const trial *t) {
  hg_buffer *a = floats(ROWS * COLUMNS, 1);
  hg_tensor x = matrix_of(a, ROWS, COLUMNS), index = hg_tensor_of(NULL, t->type, t->rank, t->shape), y;
  index.buffer = index_buffer(t, hg_tensor_count(&index));
  hg_executable *e = executable_for(t, &x, &index, &y);
  y.buffer = buffer_of(hg_tensor_count(&y) * sizeof(float), NULL);
  hg_launch_report report = {0};
  CHECK_EQ_U64(hg_run(e, (hg_tensor[]){x, index}, 2, &y, 1, NULL, &report), HG_FAULT);
  CHECK_STR(hg_last_error(), t->sentence);
  hg_error_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_last_error_info(&info), HG_OK);
  CHECK(info.has_number == 1 && info.number == t->number && info.length == t->length && info.axis == t->named_axis);
  CHECK(report.fault.kind == HG_FAULT_OUT_OF_BOUNDS && report.fault.has_number == 1);
  CHECK(report.fault.number == t->number && report.fault.length == t->length && report.fault.axis == t->named_axis);
  hg_executable_release(e);
  hg_buffer_release(a);
  hg_buffer_release(index.buffer);
  hg_buffer_release(y.buffer);
}

/* ---- trials ------------------------------------------------------------------------------------------------------ */

enum { FAULT, WRAP };

static void test_types(void) {
  static const atlas_type types[] = {ATLAS_i8,  ATLAS_u8,  ATLAS_i16, ATLAS_u16,
                                     ATLAS_i32, ATLAS_u32, ATLAS_i64, ATLAS_u64};
  for (size_t i = 0; i < COUNT(types); i++) {
    trial t = {
        .op = HG_OP_take, .type = types[i], .rank = 1, .shape = {3}, .numbers = {2, 77, 99}, .number = 77, .length = 3};
    t.sentence = "take: index 77 is out of range of axis 0, which has 3 elements";
    check(&t);
    t.is_computed = 1;
    check(&t);
  }
  trial t = {.op = HG_OP_take, .type = ATLAS_u64, .rank = 1, .shape = {2}, .numbers = {0, -3}, .bounds = WRAP};
  t.number = INT64_MAX, t.length = 3;
  t.sentence = "take: index 18446744073709551613 is out of range of axis 0, which has 3 elements";
  check(&t);
}

static void test_bounds(void) {
  trial t = {.op = HG_OP_take,
             .type = ATLAS_i64,
             .rank = 2,
             .shape = {2, 2},
             .numbers = {0, -5, -6, 5},
             .axis = 1,
             .has_axis = 1,
             .bounds = WRAP,
             .number = -6,
             .length = 5,
             .named_axis = 1};
  t.sentence = "take: index -6 is out of range of axis 1, which has 5 elements";
  check(&t);
  t.bounds = FAULT, t.number = -5;
  t.sentence = "take: index -5 is out of range of axis 1, which has 5 elements";
  check(&t);
  t.numbers[1] = 0, t.numbers[2] = (int64_t)1 << 40, t.number = (int64_t)1 << 40;
  t.sentence = "take: index 1099511627776 is out of range of axis 1, which has 5 elements";
  check(&t);
}

static void test_operations(void) {
  trial t = {.op = HG_OP_embedding,
             .type = ATLAS_i32,
             .rank = 1,
             .shape = {2},
             .numbers = {1, 3331},
             .number = 3331,
             .length = 3};
  t.sentence = "embedding: index 3331 is out of range of axis 0, which has 3 elements";
  check(&t);
  t = (trial){.op = HG_OP_cross_entropy,
              .type = ATLAS_i64,
              .rank = 1,
              .shape = {3},
              .numbers = {1, 4, 5519},
              .number = 5519,
              .length = 5,
              .named_axis = 1};
  t.sentence = "cross_entropy: index 5519 is out of range of axis 1, which has 5 elements";
  check(&t);
  t = (trial){.op = HG_OP_take_along,
              .type = ATLAS_i16,
              .rank = 2,
              .shape = {1, 5},
              .numbers = {0, 1, 2, 3, 2},
              .axis = 0,
              .has_axis = 1,
              .bounds = WRAP,
              .number = 3,
              .length = 3};
  t.sentence = "take_along: index 3 is out of range of axis 0, which has 3 elements";
  check(&t);
  t = (trial){.op = HG_OP_scatter,
              .type = ATLAS_i64,
              .rank = 2,
              .shape = {3, 1},
              .numbers = {0, 1, -9},
              .axis = 0,
              .has_axis = 1,
              .number = -9,
              .length = 3};
  t.sentence = "scatter: index -9 is out of range of axis 0, which has 3 elements";
  check(&t);
  t.op = HG_OP_scatter_add;
  t.sentence = "scatter_add: index -9 is out of range of axis 0, which has 3 elements";
  check(&t);
}

/* An index that a wrong index was needed for is not looked at. */
static void test_index_of_an_index(void) {
  int64_t numbers[2][3] = {{0, 1, 7}, {0, 2, 2}};
  hg_buffer *a = floats(3, 1), *table = buffer_of(sizeof numbers[0], numbers[0]),
            *at = buffer_of(sizeof numbers[1], numbers[1]);
  hg_buffer *out = floats(3, 0);
  hg_tensor inputs[3] = {vector_of(a, 3), hg_tensor_of(table, ATLAS_i64, 1, (uint64_t[]){3}),
                         hg_tensor_of(at, ATLAS_i64, 1, (uint64_t[]){3})};
  hg_tensor y = vector_of(out, 3);
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value x = hg_computation_input(c, "x", &inputs[0]), t = hg_computation_input(c, "table", &inputs[1]);
  hg_value i = hg_computation_input(c, "i", &inputs[2]);
  CHECK_EQ_U64(hg_computation_output(c, "y", two(c, HG_OP_embedding, x, two(c, HG_OP_take, t, i)), NULL), HG_OK);
  hg_executable *e = compiled(c);
  hg_computation_release(c);
  REFUSES(hg_run(e, inputs, 3, &y, 1, NULL, NULL), HG_FAULT,
          "embedding: index 7 is out of range of axis 0, which has 3 elements");
  numbers[1][1] = -1;
  CHECK_EQ_U64(hg_buffer_write(at, 0, numbers[1], sizeof numbers[1]), HG_OK);
  REFUSES(hg_run(e, inputs, 3, &y, 1, NULL, NULL), HG_FAULT,
          "take: index -1 is out of range of axis 0, which has 3 elements");
  hg_executable_release(e);
  hg_buffer_release(a);
  hg_buffer_release(table);
  hg_buffer_release(at);
  hg_buffer_release(out);
}

/* What an index is made of is named as the numbers of an axis of the caller's. */
static void test_named_numbers(void) {
  static const struct {
    int64_t i, j;
    const char *sentence;
  } cases[] = {{-3, 4, NULL},
               {2, -5, NULL},
               {3, 0, "take: index 3 is out of range of axis 4, which has 3 elements"},
               {0, -6, "take: index -6 is out of range of axis 6, which has 5 elements"},
               {-9, 99, "take: index -9 is out of range of axis 4, which has 3 elements"}};
  for (size_t k = 0; k < COUNT(cases); k++) {
    hg_buffer *a = floats(ROWS * COLUMNS, 1), *i = buffer_of(8, &cases[k].i), *j = buffer_of(8, &cases[k].j);
    hg_buffer *out = floats(1, 0);
    hg_tensor inputs[3] = {vector_of(a, ROWS * COLUMNS), hg_tensor_of(i, ATLAS_i64, 1, (uint64_t[]){1}),
                           hg_tensor_of(j, ATLAS_i64, 1, (uint64_t[]){1})};
    hg_tensor y = vector_of(out, 1);
    hg_computation *c = NULL;
    static const char *const names[3] = {"x", "i", "j"};
    hg_value values[3];
    CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
    for (int n = 0; n < 3; n++) values[n] = hg_computation_input(c, names[n], &inputs[n]);
    hg_value index = hg_compute_formula(c,
                                        "r = axis_numbers(i, 4, 3); q = axis_numbers(j, number=6, length=5); "
                                        "r = where(r < 0, r + 3, r); q = where(q < 0, q + 5, q); "
                                        "where(r < 0, 99, where(r > 2, 99, where(q < 0, 99, r * 5 + q)))",
                                        names, values, 3);
    CHECK_EQ_U64(hg_computation_output(c, "y", two(c, HG_OP_take, values[0], index), NULL), HG_OK);
    hg_executable *e = compiled(c);
    hg_computation_release(c);
    if (cases[k].sentence == NULL) CHECK_EQ_U64(hg_run(e, inputs, 3, &y, 1, NULL, NULL), HG_OK);
    else REFUSES(hg_run(e, inputs, 3, &y, 1, NULL, NULL), HG_FAULT, cases[k].sentence);
    hg_executable_release(e);
    hg_buffer_release(a);
    hg_buffer_release(i);
    hg_buffer_release(j);
    hg_buffer_release(out);
  }
}

/* The result lies where the index lay: nothing is made up. */
static void test_overwritten_index(void) {
  int32_t numbers[3] = {0, 9, 2};
  hg_buffer *a = buffer_of(sizeof numbers, (int32_t[]){40, 50, 60}), *at = buffer_of(sizeof numbers, numbers);
  hg_tensor inputs[2] = {hg_tensor_of(a, ATLAS_i32, 1, (uint64_t[]){3}),
                         hg_tensor_of(at, ATLAS_i32, 1, (uint64_t[]){3})};
  hg_launch_report report = {0};
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value x = hg_computation_input(c, "x", &inputs[0]), i = hg_computation_input(c, "i", &inputs[1]);
  CHECK_EQ_U64(hg_computation_update(c, i, two(c, HG_OP_take, x, i)), HG_OK);
  hg_executable *e = compiled(c);
  hg_computation_release(c);
  REFUSES(hg_run(e, inputs, 2, NULL, 0, NULL, &report), HG_FAULT, "take: an index is out of range");
  CHECK_EQ_U64(report.fault.has_number, 0);
  hg_executable_release(e);
  hg_buffer_release(a);
  hg_buffer_release(at);
}

/* Calls of other names are other executables, though they are made of the same nodes. */
static void test_names(void) {
  static const hg_op ops[] = {HG_OP_take, HG_OP_embedding};
  int32_t numbers[2] = {0, 4};
  hg_buffer *a = floats(ROWS * COLUMNS, 1), *at = buffer_of(sizeof numbers, numbers), *out = floats(2 * COLUMNS, 0);
  hg_tensor inputs[2] = {matrix_of(a, ROWS, COLUMNS), hg_tensor_of(at, ATLAS_i32, 1, (uint64_t[]){2})};
  hg_tensor y = matrix_of(out, 2, COLUMNS);
  for (int k = 0; k < 4; k++) {
    CHECK_EQ_U64(hg_apply(ops[k % 2], inputs, 2, NULL, 0, &y, 1, NULL), HG_FAULT);
    CHECK_STR(hg_last_error(), k % 2 == 0 ? "take: index 4 is out of range of axis 0, which has 3 elements"
                                          : "embedding: index 4 is out of range of axis 0, which has 3 elements");
  }
  hg_buffer_release(a);
  hg_buffer_release(at);
  hg_buffer_release(out);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static const char *const ROW_4 = "embedding: index 4 is out of range of axis 0, which has 3 elements";
static const char *const SOME_ROW = "embedding: an index is out of range";

/* Rows of x by the numbers in `at`, on a stream. */
typedef struct rows {
  hg_stream *stream;
  hg_buffer *x, *at, *y;
} rows;

static rows rows_begin(const int32_t numbers[2]) {
  rows r = {.x = floats(ROWS * COLUMNS, 1), .at = buffer_of(2 * sizeof *numbers, numbers), .y = floats(2 * COLUMNS, 0)};
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &r.stream), HG_OK);
  return r;
}

static void rows_end(rows *r) {
  hg_stream_release(r->stream);
  hg_buffer_release(r->x);
  hg_buffer_release(r->at);
  hg_buffer_release(r->y);
}

static void rows_take(rows *r) {
  hg_tensor inputs[2] = {matrix_of(r->x, ROWS, COLUMNS), hg_tensor_of(r->at, ATLAS_i32, 1, (uint64_t[]){2})};
  hg_tensor y = matrix_of(r->y, 2, COLUMNS);
  CHECK_EQ_U64(hg_apply(HG_OP_embedding, inputs, 2, NULL, 0, &y, 1, r->stream), HG_OK);
}

static void rows_write(rows *r, const int32_t numbers[2]) {
  CHECK_EQ_U64(hg_buffer_write_async(r->at, 0, numbers, 2 * sizeof *numbers, r->stream), HG_OK);
}

/* The wait reports that index, or with SOME_ROW none. */
static void rows_check(rows *r, const char *sentence, int64_t number) {
  hg_launch_report report = {0};
  hg_error_info info = {.size = sizeof info};
  REFUSES(hg_stream_wait(r->stream, &report), HG_FAULT, sentence);
  CHECK_EQ_U64(hg_last_error_info(&info), HG_OK);
  CHECK(report.fault.kind == HG_FAULT_OUT_OF_BOUNDS && report.fault.has_number == (sentence != SOME_ROW));
  CHECK(info.has_number == report.fault.has_number);
  if (sentence == SOME_ROW) return;
  CHECK(report.fault.number == number && report.fault.length == ROWS && report.fault.axis == 0);
  CHECK(info.number == number && info.length == ROWS && info.axis == 0);
}

static void test_streams(void) {
  rows r = rows_begin((int32_t[]){0, 4});
  for (int i = 0; i < 3; i++) {
    rows_take(&r);
    rows_check(&r, ROW_4, 4);
    CHECK_EQ_U64(hg_stream_wait(r.stream, NULL), HG_OK);
  }
  rows_take(&r); /* reported by the wait, whoever finds it */
  while (hg_stream_query(r.stream) == HG_BUSY) continue;
  rows_check(&r, ROW_4, 4);
  rows_write(&r, (int32_t[]){-9, 1}); /* before it */
  rows_take(&r);
  rows_check(&r, "embedding: index -9 is out of range of axis 0, which has 3 elements", -9);
  rows_take(&r); /* found before the write that waits for it */
  CHECK_EQ_U64(hg_buffer_write(r.at, 0, (int32_t[]){0, 77}, 8), HG_OK);
  rows_check(&r, "embedding: index -9 is out of range of axis 0, which has 3 elements", -9);
  rows_end(&r);
}

/* The first of many faults counts, more than a stream keeps at once. */
static void test_many_launches(void) {
  rows r = rows_begin((int32_t[]){0, 4});
  for (int i = 0; i < HG_STREAM_LAUNCHES + 20; i++) rows_take(&r);
  rows_check(&r, ROW_4, 4);
  CHECK_EQ_U64(hg_stream_wait(r.stream, NULL), HG_OK);
  for (int i = 0; i < 20; i++) rows_take(&r); /* nobody waits for these */
  rows_end(&r);
  CHECK_EQ_U64(executor->origin_bytes, 0);
}

/* Memory that has been written since tells nothing: other numbers would be somebody else's. */
static void test_written_since(void) {
  rows r = rows_begin((int32_t[]){0, 4});
  rows_take(&r);
  rows_write(&r, (int32_t[]){0, 77});
  rows_check(&r, SOME_ROW, 0);
  rows_take(&r);
  int32_t pattern = 88;
  CHECK_EQ_U64(hg_buffer_fill_async(r.at, 0, 8, &pattern, sizeof pattern, r.stream), HG_OK);
  rows_check(&r, SOME_ROW, 0);
  rows_take(&r);
  hg_tensor at = hg_tensor_of(r.at, ATLAS_i32, 1, (uint64_t[]){2});
  CHECK_EQ_U64(hg_apply(HG_OP_add, (hg_tensor[]){at, at}, 2, NULL, 0, &at, 1, r.stream), HG_OK);
  rows_check(&r, SOME_ROW, 0);
  rows_take(&r);
  rows_check(&r, "embedding: index 176 is out of range of axis 0, which has 3 elements", 176);
  rows_end(&r);
}

/* The caller gives up all there is before the stream is waited for. */
static void test_released_since(void) {
  rows r = rows_begin((int32_t[]){0, 4});
  rows_take(&r);
  hg_buffer_release(r.at);
  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK); /* and the executable is nobody's but the launch's */
  CHECK_EQ_U64(hg_executables_limit(executor, UINT64_C(64) << 20), HG_OK);
  r.at = NULL;
  rows_check(&r, ROW_4, 4);
  rows_end(&r);
}

/* What is held is a small part of the device's memory; of more, no index is named. */
static void test_large_memory(void) {
  rows r = rows_begin((int32_t[]){0, 4});
  uint64_t memory_bytes = executor->info.memory_bytes;
  executor->info.memory_bytes = 64 * 8 * 3;
  for (int i = 0; i < 3; i++) rows_take(&r);
  CHECK_EQ_U64(executor->origin_bytes, 24);
  rows_take(&r);
  CHECK_EQ_U64(executor->origin_bytes, 24);
  rows_check(&r, ROW_4, 4);
  executor->info.memory_bytes = 64 * 7;
  rows_take(&r);
  rows_check(&r, SOME_ROW, 0);
  executor->info.memory_bytes = memory_bytes;
  rows_end(&r);
}

/* Imported memory is its owner's once the buffer is released. */
static void test_imported_memory(void) {
  rows r = rows_begin((int32_t[]){0, 4});
  hg_buffer *own = r.at;
  CHECK_EQ_U64(hg_buffer_import(executor, hg_buffer_address(own), 8, &r.at), HG_OK);
  rows_take(&r);
  rows_check(&r, ROW_4, 4);
  rows_take(&r);
  hg_buffer_release(r.at);
  r.at = NULL;
  rows_check(&r, SOME_ROW, 0);
  hg_buffer_release(own);
  rows_end(&r);
}

/* A graph is launched many times over the same memory: its faults name the operation. */
static void test_graph(void) {
  rows r = rows_begin((int32_t[]){0, 4});
  hg_graph *graph = NULL;
  rows_take(&r); /* compiled */
  rows_check(&r, ROW_4, 4);
  CHECK_EQ_U64(hg_capture_begin(r.stream), HG_OK);
  rows_take(&r);
  CHECK_EQ_U64(hg_capture_end(r.stream, &graph), HG_OK);
  for (int i = 0; i < 2; i++) {
    CHECK_EQ_U64(hg_graph_launch(graph, r.stream), HG_OK);
    rows_check(&r, SOME_ROW, 0);
  }
  hg_graph_release(graph);
  rows_end(&r);
}

/* Memory runs out at each allocation: at worst no index is named. */
static void prepare(void *state) { *(rows *)state = rows_begin((int32_t[]){0, 4}); }

static hg_status act(void *state, const hg_allocator *allocator) {
  rows *r = state;
  (void)allocator;
  hg_tensor inputs[2] = {matrix_of(r->x, ROWS, COLUMNS), hg_tensor_of(r->at, ATLAS_i32, 1, (uint64_t[]){2})};
  hg_tensor y = matrix_of(r->y, 2, COLUMNS);
  hg_status status = hg_apply(HG_OP_embedding, inputs, 2, NULL, 0, &y, 1, r->stream), waited = HG_OK;
  waited = hg_stream_wait(r->stream, NULL);
  if (status != HG_OK || waited != HG_FAULT) return status != HG_OK ? status : waited;
  CHECK(strcmp(hg_last_error(), ROW_4) == 0 || strcmp(hg_last_error(), SOME_ROW) == 0);
  return HG_OK;
}

static void check_nothing(void *state, hg_status status) { (void)state, (void)status; }

static void end(void *state) { rows_end(state); }

static void test_out_of_memory(void) {
  static const attempt all = {.prepare = prepare, .act = act, .check = check_nothing, .end = end};
  rows r;
  CHECK(each_allocation_fails(&all, &r) > 0);
}

/* The log has the sentences that callers get. */
static void keep_warning(void *user, hg_log_level level, const char *message) {
  if (level != HG_LOG_WARNING) return;
  char *text = user;
  CHECK(text[0] == '\0'); /* once */
  snprintf(text, 256, "%s", message);
}

static void test_log(void) {
  hg_executor *shared = executor;
  char text[256] = "";
  hg_executor_desc desc = {.size = sizeof desc, .backend = test_backend(), .log = keep_warning, .log_user = text};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  rows r = rows_begin((int32_t[]){0, 4});
  hg_tensor inputs[2] = {matrix_of(r.x, ROWS, COLUMNS), hg_tensor_of(r.at, ATLAS_i32, 1, (uint64_t[]){2})};
  hg_tensor y = matrix_of(r.y, 2, COLUMNS);
  for (int i = 0; i < 2; i++) {
    REFUSES(hg_apply(HG_OP_embedding, inputs, 2, NULL, 0, &y, 1, NULL), HG_FAULT, ROW_4);
    CHECK_STR(text, ROW_4);
    text[0] = '\0';
  }
  rows_take(&r);
  rows_check(&r, ROW_4, 4);
  CHECK_STR(text, "a launch of a stream faulted: embedding: index 4 is out of range of axis 0, which has 3 elements");
  rows_end(&r);
  hg_executor_release(executor);
  executor = shared;
}

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  test_types();
  test_bounds();
  test_operations();
  test_index_of_an_index();
  test_named_numbers();
  test_overwritten_index();
  test_names();
  test_streams();
  test_many_launches();
  test_written_since();
  test_released_since();
  test_large_memory();
  test_imported_memory();
  test_graph();
  test_out_of_memory();
  test_log();
  hg_executor_release(executor);
  return check_report();
}
