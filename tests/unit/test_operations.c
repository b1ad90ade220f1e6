/* test_operations.c - the table of operations, what its rows become, and the sentences of what is refused. */
#include "ops/graph/formula.h"

#include "check.h"

#include <stdlib.h>

static hg_computation *c;

static void begin(void) {
  hg_computation_release(c);
  c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
}

static hg_value input(atlas_type type, uint32_t rank, uint64_t a, uint64_t b, uint64_t d) {
  hg_tensor like = hg_tensor_of(NULL, type, rank, (uint64_t[]){a, b, d});
  return hg_computation_input(c, "x", &like);
}

static hg_value call(hg_op op, size_t count, hg_value x, hg_value y, hg_value z) {
  return hg_compute(c, op, (hg_value[]){x, y, z}, count, NULL, 0);
}

static hg_value with(hg_op op, hg_value x, uint32_t count, int64_t a, int64_t b) {
  return hg_compute(c, op, &x, 1, &(hg_argument){.count = count, .integers = {a, b}}, 1);
}

#define IS(value, text) CHECK_STR((value) == 0 ? c->sentence : OPS_TEXT(c, value), text)
#define REFUSED(value, text) \
  do {                       \
    CHECK_EQ_U64(value, 0);  \
    CHECK_STR(c->sentence, text); \
    begin();                 \
  } while (0)

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void test_table(void) {
  for (size_t i = 0; i < ops_row_count(); i++) {
    const ops_row *row = ops_row_at(i);
    CHECK(i == 0 || ops_row_at(i - 1)->op < row->op);
    CHECK(ops_row_of(row->op) == row);
    CHECK(hg_op_by_name(row->name) == (hg_op)row->op);
    if (row->kind == OPS_KIND_pointwise && atlas_op_from_name(row->formula) == ATLAS_OP_none)
      CHECK_STR(row->formula, "an instruction");
    const char *at = row->inputs;
    ops_input_spec spec;
    uint32_t inputs = 0, arguments = 0;
    while (ops_next_input(&at, &spec)) inputs++;
    ops_argument_spec argument;
    for (at = row->arguments; ops_next_argument(&at, &argument); arguments++) {
      ops_item item = ops_preset(argument.preset);
      CHECK(item.kind == OPS_ITEM_ABSENT || ops_fit_argument(argument.preset, &item));
    }
    CHECK(inputs <= HG_MAX_RANK && arguments <= OPS_MAX_ARGUMENTS);
    CHECK(ops_output_count(row) <= OPS_MAX_RESULTS);
  }
  hg_op_info info = {0};
  CHECK_EQ_U64(hg_op_query(0, &info), HG_OK);
  CHECK_STR(info.name, "add");
  CHECK_STR(info.kind, "pointwise");
  CHECK_EQ_U64(hg_op_query(100000, &info), HG_NOT_FOUND);
  CHECK_EQ_U64(hg_op_by_name("addition"), HG_OP_none);
}

/* ---- views of tensors -------------------------------------------------------------------------------------------- */

static void test_tensors(void) {
  hg_tensor x = hg_tensor_of(NULL, ATLAS_f32, 3, (uint64_t[]){2, 3, 4}), y;
  CHECK_EQ_U64(hg_tensor_count(&x), 24);
  CHECK(x.stride[0] == 12 && x.stride[1] == 4 && x.stride[2] == 1);
  CHECK_EQ_U64(hg_tensor_permute(&x, (int64_t[]){2, 0, -2}, &y), HG_OK);
  CHECK(y.shape[0] == 4 && y.shape[1] == 2 && y.shape[2] == 3 && y.stride[0] == 1 && y.stride[1] == 12);
  CHECK_EQ_U64(hg_tensor_permute(&x, (int64_t[]){2, 0, 0}, &y), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_tensor_permute: axes[2] is 0; every axis of [2, 3, 4] must stand there once");
  CHECK_EQ_U64(hg_tensor_slice(&x, -1, 3, -1, -2, &y), HG_OK);
  CHECK(y.shape[2] == 2 && y.stride[2] == -2 && y.offset == 3);
  CHECK_EQ_U64(hg_tensor_slice(&x, 0, 0, 3, 1, &y), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_tensor_slice(&x, 3, 0, 1, 1, &y), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_tensor_broadcast(&x, 4, (uint64_t[]){5, 2, 3, 4}, &y), HG_OK);
  CHECK(y.rank == 4 && y.stride[0] == 0 && y.stride[1] == 12);
  CHECK_EQ_U64(hg_tensor_broadcast(&x, 2, (uint64_t[]){3, 4}, &y), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_tensor_reshape(&x, 2, (uint64_t[]){6, 4}, &y), HG_OK);
  CHECK(y.rank == 2 && y.stride[0] == 4 && y.stride[1] == 1);
  CHECK_EQ_U64(hg_tensor_slice(&x, 2, 0, 4, 2, &y), HG_OK);
  CHECK_EQ_U64(hg_tensor_reshape(&y, 1, (uint64_t[]){12}, &y), HG_OK); /* every second one of all */
  CHECK(y.rank == 1 && y.stride[0] == 2);
  CHECK_EQ_U64(hg_tensor_slice(&x, 1, 0, 2, 1, &y), HG_OK);
  CHECK_EQ_U64(hg_tensor_reshape(&y, 2, (uint64_t[]){2, 8}, &y), HG_OK);
  CHECK(y.stride[0] == 12 && y.stride[1] == 1);
  CHECK_EQ_U64(hg_tensor_reshape(&y, 1, (uint64_t[]){16}, &y), HG_UNSUPPORTED);
  CHECK_EQ_U64(hg_tensor_reshape(&x, 1, (uint64_t[]){23}, &y), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_tensor_reshape: [2, 3, 4] has another number of elements than [23]");
}

/* Shapes and strides that no memory has: no arithmetic on them wraps, and each is refused. */
static void test_impossible_tensors(void) {
  static const struct {
    uint64_t size;
    int64_t stride, offset;
    const char *why;
  } cases[] = {{UINT64_MAX, 1, 0, "a size is below 0"},
               {UINT64_C(1) << 63, 0, 0, "a size is below 0"},
               {(UINT64_C(1) << 40) + 1, 0, 0, "it has more than 2^40 elements"},
               {INT64_MAX, 1, 0, "it has more than 2^40 elements"},
               {2, INT64_C(1) << 62, 0, "its elements lie further apart than in any memory"},
               {5, INT64_C(1) << 62, 0, "its elements lie further apart than in any memory"},
               {2, INT64_MIN, 0, "its elements lie further apart than in any memory"},
               {3, 1, INT64_MAX, "its offset leads beyond any memory"},
               {3, 1, INT64_MIN, "its offset leads beyond any memory"}};
  int64_t lowest;
  uint64_t count;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    hg_tensor x = {.type = ATLAS_f32, .rank = 1, .offset = cases[i].offset, .shape = {cases[i].size},
                   .stride = {cases[i].stride}}, y;
    CHECK_EQ_U64(hg_tensor_extent(&x, &lowest, &count), HG_INVALID_ARGUMENT);
    CHECK(strstr(hg_last_error(), cases[i].why) != NULL && count == 0);
    CHECK_EQ_U64(hg_tensor_permute(&x, (int64_t[]){0}, &y), HG_INVALID_ARGUMENT);
    CHECK_EQ_U64(hg_tensor_slice(&x, 0, 0, 1, 1, &y), HG_INVALID_ARGUMENT);
    CHECK_EQ_U64(hg_tensor_broadcast(&x, 1, x.shape, &y), HG_INVALID_ARGUMENT);
    CHECK_EQ_U64(hg_tensor_reshape(&x, 1, x.shape, &y), HG_INVALID_ARGUMENT);
  }
  hg_tensor x = hg_tensor_of(NULL, ATLAS_f32, 2, (uint64_t[]){UINT64_C(1) << 33, UINT64_C(1) << 33}), y;
  CHECK_EQ_U64(hg_tensor_count(&x), UINT64_MAX);
  CHECK_EQ_U64(hg_tensor_extent(&x, &lowest, &count), HG_INVALID_ARGUMENT);
  x = hg_tensor_of(NULL, ATLAS_f32, 3, (uint64_t[]){UINT64_C(1) << 40, 0, UINT64_C(1) << 40});
  CHECK_EQ_U64(hg_tensor_count(&x), 0);
  CHECK_EQ_U64(hg_tensor_extent(&x, &lowest, &count), HG_OK);
  CHECK(lowest == 0 && count == 0);
  x = (hg_tensor){.type = ATLAS_f32, .rank = 2, .shape = {3, 4}, .stride = {-10, 2}};
  CHECK_EQ_U64(hg_tensor_extent(&x, &lowest, &count), HG_OK);
  CHECK(lowest == -20 && count == 27);
  x = hg_tensor_of(NULL, ATLAS_f32, 2, NULL); /* refused by whatever takes it */
  CHECK_EQ_U64(hg_tensor_count(&x), 0);
  CHECK_EQ_U64(hg_tensor_permute(&x, (int64_t[]){1, 0}, &y), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_apply_shape(HG_OP_neg, &x, 1, NULL, 0, &y, 1), HG_INVALID_ARGUMENT);
  begin();
  CHECK_EQ_U64(hg_computation_input(c, "x", &x), 0);
  CHECK_EQ_U64(hg_computation_status(c), HG_INVALID_ARGUMENT);
}

/* ---- types and shapes -------------------------------------------------------------------------------------------- */

static void test_promotion(void) {
  begin();
  IS(call(HG_OP_add, 2, input(ATLAS_f32, 2, 3, 1, 0), input(ATLAS_f64, 1, 4, 0, 0), 0), "f64[3, 4]");
  IS(call(HG_OP_add, 2, input(ATLAS_f16, 0, 0, 0, 0), input(ATLAS_bf16, 0, 0, 0, 0), 0), "f32[]");
  IS(call(HG_OP_add, 2, input(ATLAS_i8, 1, 2, 0, 0), input(ATLAS_u8, 1, 2, 0, 0), 0), "i16[2]");
  IS(call(HG_OP_add, 2, input(ATLAS_i64, 1, 2, 0, 0), input(ATLAS_u32, 1, 1, 0, 0), 0), "i64[2]");
  IS(call(HG_OP_less, 2, input(ATLAS_i64, 1, 2, 0, 0), input(ATLAS_i32, 1, 1, 0, 0), 0), "bool[2]");
  IS(call(HG_OP_where, 3, input(ATLAS_bool, 1, 2, 0, 0), input(ATLAS_i8, 0, 0, 0, 0), input(ATLAS_i32, 2, 5, 1, 0)),
     "i32[5, 2]");
  IS(call(HG_OP_add, 2, input(ATLAS_f32, 2, 0, 1, 0), input(ATLAS_f32, 1, 4, 0, 0), 0), "f32[0, 4]");
  REFUSED(
      call(HG_OP_add, 2, input(ATLAS_f32, 2, 2, 3, 0), input(ATLAS_f32, 1, 2, 0, 0), 0),
      "add: f32[2, 3] and f32[2] do not broadcast: counted from the last axis, sizes must be equal or one of them 1");
  REFUSED(call(HG_OP_mul, 2, input(ATLAS_u64, 0, 0, 0, 0), input(ATLAS_i8, 0, 0, 0, 0), 0),
          "mul: u64[] and i8[]: no integer type holds both; cast one of them, as in cast(x, i64)");
  REFUSED(call(HG_OP_bitwise_and, 2, input(ATLAS_f32, 1, 3, 0, 0), input(ATLAS_i32, 1, 3, 0, 0), 0),
          "bitwise_and: a is f32[3]; it takes integer bool: cast(a, bool) or cast(a, i32) makes it one");
  REFUSED(call(HG_OP_popcount, 1, input(ATLAS_bool, 1, 3, 0, 0), 0, 0),
          "popcount: x is bool[3]; it takes integer: cast(x, i32) makes it one");
  REFUSED(call(HG_OP_add, 2, input(ATLAS_bool, 0, 0, 0, 0), input(ATLAS_bool, 0, 0, 0, 0), 0),
          "add: a is bool[]; it takes number: cast(a, f32) makes it one");
  REFUSED(call(HG_OP_exp, 1, input(ATLAS_f8e4m3, 0, 0, 0, 0), 0, 0),
          "exp: x is f8e4m3[]; it takes float: cast(x, f32) makes it one");
  REFUSED(call(HG_OP_where, 3, input(ATLAS_bool, 0, 0, 0, 0), input(ATLAS_f8e4m3, 0, 0, 0, 0),
               input(ATLAS_f32, 0, 0, 0, 0)),
          "where: f8e4m3[] and f32[]: 8-bit floats are storage only; cast one of them, as in cast(x, f32)");
  REFUSED(call(HG_OP_add, 1, input(ATLAS_f32, 0, 0, 0, 0), 0, 0), "add: its input 'b' is missing");
  REFUSED(call(HG_OP_exp, 2, input(ATLAS_f32, 0, 0, 0, 0), input(ATLAS_f32, 0, 0, 0, 0), 0),
          "exp: 2 inputs are given, of 1 (x)");
  REFUSED(call(HG_OP_exp, 1, 77, 0, 0), "exp: x: 77 is no value of this computation");
  REFUSED(hg_compute(c, (hg_op)9, NULL, 0, NULL, 0), "hg_compute: there is no operation 0x9");
}

/* Every pair of types, by a table that is written from the rule's words: bool < integers < floats. */
static void test_all_pairs(void) {
  static const atlas_type order[] = {ATLAS_bool, ATLAS_i8,  ATLAS_i16, ATLAS_i32,  ATLAS_i64, ATLAS_u8, ATLAS_u16,
                                     ATLAS_u32,  ATLAS_u64, ATLAS_f16, ATLAS_bf16, ATLAS_f32, ATLAS_f64};
  static const char *const rows[] = {
      "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64", "i8 i8 i16 i32 i64 i16 i32 i64 - f16 bf16 f32 f64",
      "i16 i16 i16 i32 i64 i16 i32 i64 - f16 bf16 f32 f64",  "i32 i32 i32 i32 i64 i32 i32 i64 - f16 bf16 f32 f64",
      "i64 i64 i64 i64 i64 i64 i64 i64 - f16 bf16 f32 f64",  "u8 i16 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64",
      "u16 i32 i32 i32 i64 u16 u16 u32 u64 f16 bf16 f32 f64", "u32 i64 i64 i64 i64 u32 u32 u32 u64 f16 bf16 f32 f64",
      "u64 - - - - u64 u64 u64 u64 f16 bf16 f32 f64",        "f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64",
      "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64",
      "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64", "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64"};
  enum { COUNT = sizeof order / sizeof order[0] };
  for (int a = 0; a < COUNT; a++) {
    const char *at = rows[a];
    for (int b = 0; b < COUNT; b++) {
      size_t length = strcspn(at, " ");
      atlas_type right = atlas_type_lookup_name(at, length);
      at += length + (at[length] == ' ');
      CHECK_EQ_U64(hg_promote_types(order[a], order[b]), right);
      begin();
      hg_value x = input(order[a], 0, 0, 0, 0), y = input(order[b], 0, 0, 0, 0);
      hg_value made = call(HG_OP_where, 3, input(ATLAS_bool, 0, 0, 0, 0), x, y);
      CHECK_EQ_U64(made == 0 ? (unsigned)ATLAS_NONE : ops_at(c, made)->type, right);
      if (a == 0 && b == 0) continue; /* bools are no numbers */
      begin();
      made = call(HG_OP_mul, 2, input(order[a], 0, 0, 0, 0), input(order[b], 0, 0, 0, 0), 0);
      CHECK_EQ_U64(made == 0 ? (unsigned)ATLAS_NONE : ops_at(c, made)->type, right);
    }
  }
  CHECK_EQ_U64(hg_promote_types(ATLAS_f8e5m2, ATLAS_f8e5m2), ATLAS_f8e5m2);
  CHECK_EQ_U64(hg_promote_types(ATLAS_f8e5m2, ATLAS_f32), ATLAS_NONE);
  CHECK_EQ_U64(hg_promote_types((atlas_type)99, ATLAS_f32), ATLAS_NONE);
}

/* What takes floats makes f32 of integers and bools; beside a float they take its type; some take integers as they are.
 */
static void test_functions_of_integers(void) {
  begin();
  IS(call(HG_OP_exp, 1, input(ATLAS_i32, 1, 3, 0, 0), 0, 0), "f32[3]");
  IS(call(HG_OP_sqrt, 1, input(ATLAS_bool, 0, 0, 0, 0), 0, 0), "f32[]");
  IS(call(HG_OP_pow, 2, input(ATLAS_f16, 0, 0, 0, 0), input(ATLAS_u64, 0, 0, 0, 0), 0), "f16[]");
  IS(call(HG_OP_softmax, 1, input(ATLAS_i8, 1, 3, 0, 0), 0, 0), "f32[3]");
  IS(call(HG_OP_mse, 2, input(ATLAS_f64, 1, 3, 0, 0), input(ATLAS_i64, 1, 3, 0, 0), 0), "f64[]");
  IS(call(HG_OP_mean, 1, input(ATLAS_i64, 1, 3, 0, 0), 0, 0), "f32[]");
  IS(call(HG_OP_sum, 1, input(ATLAS_bool, 1, 3, 0, 0), 0, 0), "i64[]");
  IS(call(HG_OP_floor_divide, 2, input(ATLAS_i64, 0, 0, 0, 0), input(ATLAS_f32, 0, 0, 0, 0), 0), "f32[]");
  IS(call(HG_OP_less, 2, input(ATLAS_i64, 2, 2, 1, 0), input(ATLAS_f16, 1, 3, 0, 0), 0), "bool[2, 3]");
  IS(call(HG_OP_equal, 2, input(ATLAS_bool, 0, 0, 0, 0), input(ATLAS_f64, 0, 0, 0, 0), 0), "bool[]");
  IS(call(HG_OP_stack, 3, input(ATLAS_bool, 0, 0, 0, 0), input(ATLAS_i16, 0, 0, 0, 0), input(ATLAS_bf16, 0, 0, 0, 0)),
     "bf16[3]");
  hg_value whole = input(ATLAS_i64, 1, 3, 0, 0);
  CHECK_EQ_U64(call(HG_OP_floor, 1, whole, 0, 0), whole);
  IS(call(HG_OP_fmod, 2, whole, input(ATLAS_i8, 0, 0, 0, 0), 0), "i64[3]");
}

/* hg_compile with HG_STRICT_TYPES refuses the first call in which kinds meet, in a user's formula too. */
static void test_strict_types(void) {
  hg_executor *executor = NULL;
  hg_executable *made = NULL;
  hg_compile_desc desc = {.size = sizeof desc, .flags = HG_STRICT_TYPES};
  CHECK_EQ_U64(hg_executor_create(NULL, &executor), HG_OK);
  for (int i = 0; i < 6; i++) {
    begin();
    hg_value x = input(ATLAS_f32, 1, 3, 0, 0), k = input(ATLAS_i32, 1, 3, 0, 0), m = input(ATLAS_bool, 1, 3, 0, 0),
             y = 0;
    if (i == 0) y = call(HG_OP_mul, 2, x, k, 0);
    if (i == 1) y = call(HG_OP_where, 3, m, x, k);
    if (i == 2) y = call(HG_OP_mse, 2, x, k, 0);
    if (i == 3) y = hg_compute_formula(c, "exp(x) + k", (const char *[]){"x", "k"}, (hg_value[]){x, k}, 2);
    if (i == 4) y = call(HG_OP_exp, 1, k, 0, 0);
    if (i == 5) y = call(HG_OP_where, 3, m, x, x);
    CHECK_EQ_U64(hg_computation_output(c, "y", y, NULL), HG_OK);
    CHECK_EQ_U64(hg_compile(executor, c, &desc, &made), i < 4 ? HG_INVALID_ARGUMENT : HG_OK);
    if (i == 0)
      CHECK_STR(hg_last_error(),
                "mul: i32[3] meets f32[3], which is of another kind; cast it first, as in cast(x, f32)");
    hg_executable_release(made);
    CHECK_EQ_U64(hg_compile(executor, c, NULL, &made), HG_OK);
    hg_executable_release(made);
  }
  hg_executor_release(executor);
}

static void test_first_error_stays(void) {
  begin();
  hg_value x = input(ATLAS_bool, 0, 0, 0, 0), y = call(HG_OP_popcount, 1, x, 0, 0);
  CHECK_EQ_U64(call(HG_OP_add, 2, y, y, 0), 0);
  CHECK_EQ_U64(hg_computation_output(c, "y", y, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_computation_status(c), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "popcount: x is bool[]; it takes integer: cast(x, i32) makes it one");
}

/* ---- views and reductions ---------------------------------------------------------------------------------------- */

static void test_views(void) {
  begin();
  hg_value x = input(ATLAS_f32, 3, 2, 3, 4);
  IS(with(HG_OP_reshape, x, 2, -1, 8), "f32[3, 8]");
  IS(with(HG_OP_permute, x, 0, 0, 0), "f32[4, 3, 2]");
  IS(with(HG_OP_swap, x, 0, 0, 0), "f32[2, 4, 3]");
  IS(with(HG_OP_expand, x, 1, -1, 0), "f32[2, 3, 4, 1]");
  IS(with(HG_OP_squeeze, with(HG_OP_expand, x, 1, 1, 0), 0, 0, 0), "f32[2, 3, 4]");
  CHECK_EQ_U64(with(HG_OP_squeeze, with(HG_OP_expand, x, 1, 1, 0), 0, 0, 0), x);
  CHECK_EQ_U64(with(HG_OP_flip, with(HG_OP_flip, x, 0, 0, 0), 0, 0, 0), x);
  hg_argument cut[4] = {{.count = 1, .integers = {2}}, {0}, {0}, {.count = 1, .integers = {-3}}};
  IS(hg_compute(c, HG_OP_slice, &x, 1, cut, 4), "f32[2, 3, 2]");
  REFUSED(with(HG_OP_reshape, x, 2, -1, 7), "reshape: no size at -1 makes 24 elements");
  x = input(ATLAS_f32, 3, 2, 3, 4);
  REFUSED(with(HG_OP_squeeze, x, 1, 0, 0), "squeeze: x is f32[2, 3, 4]: axis 0 has not one element");
  x = input(ATLAS_f32, 3, 2, 3, 4);
  REFUSED(with(HG_OP_expand, x, 1, 5, 0), "expand: there is no axis 5 of a tensor of rank 4");
  hg_argument named[2] = {{.count = 1, .integers = {8}}, {.count = 1, .integers = {3}}};
  x = input(ATLAS_u16, 2, 2, 3, 0);
  REFUSED(hg_compute(c, HG_OP_axis_numbers, &x, 1, named, 2),
          "axis_numbers: there is no axis of number 8 and length 3");
  x = input(ATLAS_u16, 2, 2, 3, 0);
  named[0].integers[0] = 7;
  IS(hg_compute(c, HG_OP_axis_numbers, &x, 1, named, 2), "u16[2, 3]");
}

static void test_reductions(void) {
  begin();
  hg_value x = input(ATLAS_bf16, 3, 2, 3, 4);
  hg_value sum = with(HG_OP_sum, x, 2, 0, -1);
  IS(sum, "bf16[3]");
  CHECK_EQ_U64(ops_at(c, sum)->op, ATLAS_OP_cvt); /* of an f32 reduction */
  const ops_node *reduce = ops_at(c, ops_at(c, sum)->input[0]);
  CHECK(reduce->kind == OPS_REDUCE && reduce->type == ATLAS_f32 && reduce->axes == 5);
  CHECK_EQ_U64(ops_at(c, with(HG_OP_max, x, 1, 0, 0))->kind, OPS_REDUCE);
  IS(with(HG_OP_argmax, x, 0, 0, 0), "i64[]");
  IS(with(HG_OP_sum, input(ATLAS_u8, 1, 5, 0, 0), 0, 0, 0), "u64[]");
  IS(with(HG_OP_sum, input(ATLAS_bool, 1, 5, 0, 0), 0, 0, 0), "i64[]");
  IS(with(HG_OP_any, input(ATLAS_f32, 1, 5, 0, 0), 0, 0, 0), "bool[]");
  hg_value nothing = input(ATLAS_f32, 2, 3, 0, 0);
  CHECK_EQ_U64(ops_at(c, ops_at(c, with(HG_OP_prod, nothing, 1, 1, 0))->input[0])->bits, 0x3f800000);
  IS(with(HG_OP_max, nothing, 1, 0, 0), "f32[0]");
  REFUSED(with(HG_OP_max, nothing, 1, 1, 0), "max: x is f32[3, 0]: along these axes there is nothing to choose from");
  REFUSED(with(HG_OP_sum, input(ATLAS_f32, 2, 3, 4, 0), 2, 1, -1), "sum: axis 1 is named twice");
}

static void test_scans(void) {
  begin();
  hg_value x = input(ATLAS_bf16, 3, 2, 3, 4), sums = with(HG_OP_cumulative_sum, x, 1, -2, 0);
  IS(sums, "bf16[2, 3, 4]");
  CHECK(ops_at(c, sums)->kind == OPS_SCAN && ops_at(c, sums)->axis == 1 && ops_at(c, sums)->reduce == OPS_SUM);
  CHECK_EQ_U64(with(HG_OP_cumulative_sum, x, 1, 1, 0), sums);
  IS(with(HG_OP_cumulative_sum, input(ATLAS_u16, 1, 5, 0, 0), 0, 0, 0), "u64[5]");
  IS(with(HG_OP_cumulative_sum, input(ATLAS_bool, 2, 3, 5, 0), 1, 0, 0), "i64[3, 5]");
  IS(with(HG_OP_cumulative_sum, input(ATLAS_f32, 2, 3, 0, 0), 1, 0, 0), "f32[3, 0]");
  CHECK_EQ_U64(ops_at(c, with(HG_OP_cumulative_sum, input(ATLAS_f64, 2, 3, 1, 0), 1, 1, 0))->kind, OPS_POINTWISE);
  REFUSED(with(HG_OP_cumulative_sum, x, 1, 3, 0), "cumulative_sum: there is no axis 3 of a tensor of rank 3");
}

static void test_selections(void) {
  begin();
  hg_value x = input(ATLAS_f16, 2, 3, 400, 0), mask = input(ATLAS_bool, 1, 400, 0, 0), both[3] = {x, mask};
  hg_value ends = hg_compute(c, HG_OP_mask_ends, &mask, 1, NULL, 0);
  const hg_argument seven = {.count = 1, .integers = {7}};
  IS(ends, "i64[3]");
  hg_value few = hg_compute(c, HG_OP_take_where, both, 2, &seven, 1);
  IS(few, "f16[7]");
  CHECK(ops_at(c, ops_at(c, few)->input[1])->kind == OPS_SELECT);
  IS(hg_compute(c, HG_OP_take_where, both, 2, NULL, 0), "f16[0]");
  both[2] = ends;
  REFUSED(hg_compute(c, HG_OP_take_where, both, 3, &seven, 1),
          "take_where: ends is i64[3] and not what mask_ends makes of a mask of 1200 elements");
}

/* ---- formulas ---------------------------------------------------------------------------------------------------- */

static hg_value formula(const char *text, hg_value x, hg_value y) {
  return hg_compute_formula(c, text, (const char *[]){"x", "y"}, (hg_value[]){x, y}, 2);
}

static void test_formulas(void) {
  begin();
  hg_value x = input(ATLAS_f32, 2, 3, 4, 0), y = input(ATLAS_f32, 1, 4, 0, 0), n = input(ATLAS_bf16, 2, 3, 4, 0);
  IS(formula("exp(x - max(x, -1))", x, y), "f32[3, 4]");
  IS(formula("m = mean(x, [0, 1]); m", x, y), "f32[1, 1]");
  IS(formula("sum(x, keep=0) + 2 * y", x, y), "f32[4]");
  IS(formula("given(y) ? x < y : nonsense(x)", x, y), "bool[3, 4]");
  IS(formula("count(x, all) == 12 ? rank(x) == 2 ? y : x : x", x, y), "f32[4]");
  IS(formula("index(x, -1) * size(x, 0)", x, y), "i64[3, 4]");
  IS(formula("along(y, x, 1) * x", x, y), "f32[3, 4]");
  IS(formula("reshape(x, [2, -1])", x, y), "f32[2, 6]");
  IS(formula("\n  -x * -1e-3 +\n  .5", x, y), "f32[3, 4]");
  CHECK_EQ_U64(formula("x + y * 2", x, y), formula("a = 1 + 1; x + (y*a)", x, y));
  CHECK_EQ_U64(formula("softmax(x)", x, y), call(HG_OP_softmax, 1, x, 0, 0));
  hg_value narrow = formula("exp(x) + 1", n, 0); /* widened once, rounded once */
  IS(narrow, "bf16[3, 4]");
  const ops_node *rounding = ops_at(c, narrow);
  CHECK(rounding->op == ATLAS_OP_cvt && ops_at(c, rounding->input[0])->op == ATLAS_OP_add);
  CHECK_EQ_U64(ops_at(c, rounding->input[0])->type, ATLAS_f32);
  IS(formula("x as y", n, y), "f32[3, 4]");
  IS(formula("y as f16", n, y), "f16[4]");
}

static void test_formula_errors(void) {
  static const char *const cases[][2] = {
      {"x +", "formula:1:4: a value is expected here, not its end"},
      {"x + )", "formula:1:5: a value is expected here, not ')'"},
      {"x\n  + z", "formula:2:5: there is no 'z' here"},
      {"exp(x", "formula:1:6: ')' is expected here, not its end"},
      {"exq(x)", "formula:1:1: there is no operation 'exq'"},
      {"x x", "formula:1:3: an operator or the end is expected here"},
      {"a = x", "formula:1:6: ';' is expected here, not its end"},
      {"", "formula:1:1: a value is expected here, not its end"},
      {"x ? 1 : 2",
       "formula:1:1: what stands before '?' is decided when the formula is built: a number, not a tensor (see where)"},
      {"i + 5000000000", "formula:1:3: 5e+09 is no i32, which the number meets here"},
      {"popcount(x)", "formula:1:1: popcount: x is f32[3, 4]; it takes integer: cast(x, i32) makes it one"},
      {"softmax(x, axis=2)", "formula:1:1: softmax(f32[3, 4]): max: there is no axis 2 of a tensor of rank 2"},
      {"sum(x, 0, 1, 2)", "formula:1:14: sum takes (x, axes=all, keep=0)"},
      {"sum(x, x)", "formula:1:8: 'axes' of sum takes integers"},
      {"size(x, 3)", "formula:1:1: there is no axis 3 of a tensor of rank 2"},
      {"x, x", "formula:1:1: 2 results where one is wanted"},
      {"none", "formula:1:1: there is no 'none' here"},
      {"x[", "formula:1:2: an operator or the end is expected here"},
      {"[1, 2, 3, 4, 5, 6, 7, 8, 9]", "formula:1:25: a list holds up to 8 integers"},
      {"exp(x, x, x, x, x, x, x, x, x, x, x, x, x)", "formula:1:40: a call has at most 12 parts"},
      {"exp(x, x, x, x, x, x, x, x, x, x, x, x, x", "formula:1:40: a call has at most 12 parts"},
      {"exq(x) + )", "formula:1:10: a value is expected here, not ')'"},
      {"1..2", "formula:1:1: '1..2' is no number"},
      {"exp(none=x)", "formula:1:10: exp takes (x)"},
      {"[1, 2]", "formula:1:1: a result is one tensor"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    begin();
    hg_value values[] = {input(ATLAS_f32, 2, 3, 4, 0), input(ATLAS_i32, 1, 4, 0, 0)};
    CHECK_EQ_U64(hg_compute_formula(c, cases[i][0], (const char *[]){"x", "i"}, values, 2), 0);
    CHECK_STR(c->sentence, cases[i][1]);
    CHECK_EQ_U64(hg_computation_status(c), c->status);
  }
  begin();
  char deep[400] = {0};
  memset(deep, '(', 200);
  hg_value x = input(ATLAS_f32, 0, 0, 0, 0);
  REFUSED(formula(deep, x, x), "formula:1:33: a formula is at most 32 parentheses deep");
}

/* Every row that is a formula, of ordinary inputs, in every float type: the type and shape of its results. */
typedef struct formula_case {
  hg_op op;
  const char *inputs;  /* a letter each: x [6, 5] of the type, v [5], w [6], s [], i [6] integers, k u64 [], - absent */
  const char *results; /* shapes; "?" stands for the type */
} formula_case;

static const formula_case formula_cases[] = {
    {HG_OP_mean, "x", "?[]"}, {HG_OP_var, "x", "?[]"}, {HG_OP_std, "x", "?[]"}, {HG_OP_norm, "x", "?[]"},
    {HG_OP_logsumexp, "x", "?[]"}, {HG_OP_count_nonzero, "x", "i64[]"}, {HG_OP_global_norm, "xvw", "f32[]"},
    {HG_OP_softmax, "x", "?[6, 5]"}, {HG_OP_log_softmax, "x", "?[6, 5]"}, {HG_OP_layer_norm, "xvv", "?[6, 5]"},
    {HG_OP_layer_norm, "x", "?[6, 5]"}, {HG_OP_layer_norm, "x-v", "?[6, 5]"}, {HG_OP_rms_norm, "xv", "?[6, 5]"},
    {HG_OP_group_norm, "xvv", "?[6, 5]"}, {HG_OP_group_norm, "3-w", "?[2, 6, 5]"},
    {HG_OP_instance_norm, "3w", "?[2, 6, 5]"}, {HG_OP_normalize, "x", "?[6, 5]"}, {HG_OP_softmin, "x", "?[6, 5]"},
    {HG_OP_glu, "t", "?[5, 3]"}, {HG_OP_glu, "x", ""}, {HG_OP_prelu, "xv", "?[6, 5]"}, {HG_OP_prelu, "ss", "?[]"},
    {HG_OP_batch_norm, "x", "?[6, 5] ?[5] ?[5]"}, {HG_OP_batch_norm, "xvvvv", "?[6, 5] ?[5] ?[5]"},
    {HG_OP_square, "x", "?[6, 5]"}, {HG_OP_clip, "x", "?[6, 5]"}, {HG_OP_lerp, "xvs", "?[6, 5]"},
    {HG_OP_leaky_relu, "x", "?[6, 5]"}, {HG_OP_elu, "x", "?[6, 5]"}, {HG_OP_silu, "x", "?[6, 5]"},
    {HG_OP_softplus, "x", "?[6, 5]"}, {HG_OP_hardswish, "x", "?[6, 5]"}, {HG_OP_mish, "x", "?[6, 5]"},
    {HG_OP_relu6, "x", "?[6, 5]"}, {HG_OP_hardtanh, "x", "?[6, 5]"}, {HG_OP_hardsigmoid, "i", "f32[6]"},
    {HG_OP_selu, "x", "?[6, 5]"}, {HG_OP_celu, "x", "?[6, 5]"}, {HG_OP_softsign, "x", "?[6, 5]"},
    {HG_OP_logsigmoid, "x", "?[6, 5]"}, {HG_OP_tanhshrink, "x", "?[6, 5]"}, {HG_OP_softshrink, "x", "?[6, 5]"},
    {HG_OP_hardshrink, "x", "?[6, 5]"}, {HG_OP_threshold, "x", "?[6, 5]"}, {HG_OP_at_least, "x", "?[6, 5]"},
    {HG_OP_logit, "x", "?[6, 5]"}, {HG_OP_xlogy, "xv", "?[6, 5]"}, {HG_OP_xlog1py, "xv", "?[6, 5]"},
    {HG_OP_entr, "x", "?[6, 5]"}, {HG_OP_sinc, "x", "?[6, 5]"}, {HG_OP_ndtr, "x", "?[6, 5]"},
    {HG_OP_log_ndtr, "x", "?[6, 5]"}, {HG_OP_ndtr_tail, "x", "?[6, 5]"}, {HG_OP_ndtri_of, "xv", "?[6, 5]"},
    {HG_OP_ndtri, "x", "?[6, 5]"}, {HG_OP_erfinv, "x", "?[6, 5]"}, {HG_OP_lgamma, "x", "?[6, 5]"},
    {HG_OP_digamma, "x", "?[6, 5]"}, {HG_OP_trigamma, "x", "?[6, 5]"}, {HG_OP_tetragamma, "x", "?[6, 5]"},
    {HG_OP_polygamma, "x", "?[6, 5]"}, {HG_OP_i0, "x", "?[6, 5]"}, {HG_OP_i1, "x", "?[6, 5]"},
    {HG_OP_lgamma, "i", "f32[6]"}, {HG_OP_ndtri, "i", "f32[6]"},
    {HG_OP_isnan, "x", "bool[6, 5]"}, {HG_OP_isinf, "x", "bool[6, 5]"}, {HG_OP_isfinite, "x", "bool[6, 5]"},
    {HG_OP_floor_divide, "xv", "?[6, 5]"}, {HG_OP_remainder, "xv", "?[6, 5]"}, {HG_OP_logaddexp, "xv", "?[6, 5]"},
    {HG_OP_floor_divide, "ii", "i32[6]"}, {HG_OP_remainder, "ii", "i32[6]"}, {HG_OP_mean, "i", "f32[]"},
    {HG_OP_mse, "xx", "?[]"}, {HG_OP_l1, "xx", "?[]"}, {HG_OP_huber, "xx", "?[]"}, {HG_OP_nll, "xi", "?[]"},
    {HG_OP_smooth_l1, "xx", "?[]"}, {HG_OP_poisson_nll, "xx", "?[]"}, {HG_OP_gaussian_nll, "xxx", "?[]"},
    {HG_OP_gaussian_nll, "xxw", "?[]"}, {HG_OP_gaussian_nll, "xxv", ""}, {HG_OP_margin_ranking, "xxx", "?[]"},
    {HG_OP_hinge_embedding, "wi", "?[]"}, {HG_OP_multi_margin, "xi", "?[]"}, {HG_OP_multi_margin, "xiv", "?[]"},
    {HG_OP_cosine_similarity, "xv", "?[6]"}, {HG_OP_cosine_embedding, "xxi", "?[]"},
    {HG_OP_pairwise_distance, "xv", "?[6]"}, {HG_OP_triplet_margin, "xxx", "?[]"}, {HG_OP_cdist, "xx", "?[6, 6]"},
    {HG_OP_cdist, "3x", "?[2, 6, 6]"}, {HG_OP_cdist_slope, "xxxx", ""},
    {HG_OP_cdist_slope, "vvss", ""}, {HG_OP_nll, "xiv", "?[]"}, {HG_OP_cross_entropy, "xi", "?[]"},
    {HG_OP_cross_entropy, "xiv", "?[]"},
    {HG_OP_cross_entropy, "xx", "?[]"}, {HG_OP_cross_entropy, "xxv", "?[]"}, {HG_OP_bce, "xx", "?[]"},
    {HG_OP_bce_with_logits, "xx", "?[]"}, {HG_OP_bce_with_logits, "xxvv", "?[]"}, {HG_OP_kl_div, "xx", "?[]"},
    {HG_OP_gemm, "xt", "?[6, 6]"}, {HG_OP_gemm, "xtw", "?[6, 6]"}, {HG_OP_linear, "xx", "?[6, 6]"},
    {HG_OP_linear, "xxw", "?[6, 6]"}, {HG_OP_embedding, "xi", "?[6, 5]"}, {HG_OP_dropout, "xk", "?[6, 5]"},
    {HG_OP_triu, "x", "?[6, 5]"}, {HG_OP_tril, "i", ""}, {HG_OP_sgd, "xxsx", "?[6, 5] ?[6, 5]"},
    {HG_OP_sgd, "xxs", "?[6, 5] ?[6, 5]"}, {HG_OP_adam, "xxxxss", "?[6, 5] ?[6, 5] ?[6, 5]"},
    {HG_OP_adamw, "xxxxss", "?[6, 5] ?[6, 5] ?[6, 5]"}, {HG_OP_clip_norm, "xs", "?[6, 5]"},
    {HG_OP_rmsprop, "xxxsxx", "?[6, 5] ?[6, 5] ?[6, 5] ?[6, 5]"}, {HG_OP_adagrad, "xxxss", "?[6, 5] ?[6, 5]"},
    {HG_OP_rmsprop, "xxxs", "?[6, 5] ?[6, 5] ?[6, 5] ?[6, 5]"}, {HG_OP_lion, "xxxs", "?[6, 5] ?[6, 5]"},
    {HG_OP_adamax, "xxxxss", "?[6, 5] ?[6, 5] ?[6, 5]"}, {HG_OP_nadam, "xxxxsss", "?[6, 5] ?[6, 5] ?[6, 5] ?[]"},
    {HG_OP_amsgrad, "xxxxxss", "?[6, 5] ?[6, 5] ?[6, 5] ?[6, 5]"},
    {HG_OP_dot, "vv", "?[]"}, {HG_OP_matvec, "xv", "?[6]"}, {HG_OP_matmul, "xt", "?[6, 6]"},
    {HG_OP_matmul, "vt", "?[6]"}, {HG_OP_matmul, "wx", "?[5]"}, {HG_OP_matmul, "3t", "?[2, 6, 6]"},
    {HG_OP_matmul, "34", "?[2, 6, 6]"}, {HG_OP_take, "xi", "?[6, 5]"}, {HG_OP_random_bits, "k", "u32[]"},
    {HG_OP_uniform, "kk", "f32[]"}, {HG_OP_normal, "k", "f32[]"}, {HG_OP_integers, "k", "i64[]"},
    {HG_OP_concatenate, "xxx", "?[18, 5]"}, {HG_OP_stack, "xx", "?[2, 6, 5]"}, {HG_OP_pad, "x", "?[6, 5]"},
    {HG_OP_update, "xv", "?[6, 5]"}, {HG_OP_update, "xs", "?[6, 5]"}, {HG_OP_update, "vx", ""},
    {HG_OP_full, "", "f32[]"}, {HG_OP_eye, "", "f32[1, 1]"}, {HG_OP_window_places, "", "f64[0]"},
    {HG_OP_hann, "", "f32[0]"}, {HG_OP_hamming, "", "f32[0]"}, {HG_OP_blackman, "", "f32[0]"},
    {HG_OP_bartlett, "", "f32[0]"}, {HG_OP_uniform_open, "k", "f32[]"}, {HG_OP_exponential, "kk", "f32[]"},
    {HG_OP_gumbel, "k", "f32[]"}, {HG_OP_laplace, "k", "f32[]"},
    {HG_OP_isclose, "xv", "bool[6, 5]"},
    {HG_OP_allclose, "xx", "bool[]"}, {HG_OP_nan_to_num, "x", "?[6, 5]"}, {HG_OP_nan_to_num, "xsvs", "?[6, 5]"},
    {HG_OP_isposinf, "x", "bool[6, 5]"}, {HG_OP_isneginf, "x", "bool[6, 5]"}, {HG_OP_nansum, "x", "?[]"},
    {HG_OP_nanmean, "x", "?[]"}, {HG_OP_nanvar, "x", "?[]"}, {HG_OP_nanmean, "i", "f32[]"}, {HG_OP_nanmin, "x", "?[]"},
    {HG_OP_nanmax, "i", "i32[]"}, {HG_OP_nanargmin, "x", "i64[]"}, {HG_OP_nanargmax, "i", "i64[]"},
    {HG_OP_var_mean, "x", "?[] ?[]"}, {HG_OP_std_mean, "x", "?[] ?[]"}, {HG_OP_degrees, "x", "?[6, 5]"},
    {HG_OP_radians, "x", "?[6, 5]"}, {HG_OP_divmod, "xv", "?[6, 5] ?[6, 5]"}, {HG_OP_fmin, "xv", "?[6, 5]"},
    {HG_OP_fmax, "ii", "i32[6]"}, {HG_OP_euclid, "ii", "i32[6]"}, {HG_OP_gcd, "ii", "i32[6]"},
    {HG_OP_lcm, "ii", "i32[6]"}, {HG_OP_gcd, "xx", ""}, {HG_OP_round_to, "x", "?[6, 5]"},
    {HG_OP_round_to, "i", "i32[6]"}, {HG_OP_outer, "xv", "?[30, 5]"}, {HG_OP_cross, "xx", ""},
    {HG_OP_truncated_normal, "k", "f32[]"}, {HG_OP_kaiser, "", "f32[0]"},
    {HG_OP_segment_sum, "xi", ""}, {HG_OP_segment_prod, "xi", ""}, {HG_OP_segment_max, "xi", ""},
    {HG_OP_segment_min, "xi", ""}, {HG_OP_uneven_bins, "xv", "i64[6, 5]"},
    {HG_OP_segment_mean, "xi", ""}, {HG_OP_bincount, "i", ""},
    {HG_OP_confusion_matrix, "ii", ""}, {HG_OP_even_edges, "x", "?[11]"},
    {HG_OP_even_bins, "xv", "i64[6, 5]"},
};

static hg_value case_input(char letter, atlas_type type) {
  switch (letter) {
    case 'x': return input(type, 2, 6, 5, 0);
    case 't': return input(type, 2, 5, 6, 0);
    case '3': return input(type, 3, 2, 6, 5);
    case '4': return input(type, 3, 1, 5, 6);
    case 'v': return input(type, 1, 5, 0, 0);
    case 'w': return input(type, 1, 6, 0, 0);
    case 's': return input(type, 0, 0, 0, 0);
    case 'i': return input(ATLAS_i32, 1, 6, 0, 0);
    case 'k': return input(ATLAS_u64, 0, 0, 0, 0);
    default: return 0;
  }
}

static void check_results(const formula_case *row, atlas_type type, const hg_value *results, uint32_t count) {
  char wanted[200] = {0}, found[200] = {0};
  for (const char *at = row->results; *at != '\0'; at++) {
    if (*at == '?') strcat(wanted, atlas_type_name(type));
    else strncat(wanted, at, 1);
  }
  for (uint32_t i = 0; i < count; i++) {
    strcat(found, i == 0 ? "" : " ");
    strcat(found, OPS_TEXT(c, results[i]));
  }
  CHECK_STR(found, wanted);
}

static void test_formula_rows(void) {
  static const atlas_type types[] = {ATLAS_f32, ATLAS_f64, ATLAS_f16, ATLAS_bf16};
  for (size_t k = 0; k < 4 * (sizeof formula_cases / sizeof formula_cases[0]); k++) {
    const formula_case *row = &formula_cases[k / 4];
    hg_value inputs[8] = {0}, results[8] = {0};
    begin();
    size_t count = strlen(row->inputs);
    for (size_t i = 0; i < count; i++) inputs[i] = case_input(row->inputs[i], types[k % 4]);
    uint32_t outputs = ops_output_count(ops_row_of((uint32_t)row->op));
    hg_status status = hg_compute_all(c, row->op, inputs, count, NULL, 0, results, outputs);
    if (row->results[0] == '\0') CHECK_EQ_U64(status, HG_INVALID_ARGUMENT);
    else if (status != HG_OK) CHECK_STR(hg_last_error(), "no error");
    else check_results(row, types[k % 4], results, outputs);
  }
}

/* ---- gradients --------------------------------------------------------------------------------------------------- */

static hg_value gradient(hg_value value, hg_value cotangent, hg_value by) {
  hg_value result = 0;
  hg_gradient(c, value, cotangent, &by, 1, &result);
  return result;
}

static int leads_to(hg_value from, ops_kind kind) {
  const ops_node *node = ops_at(c, from);
  if (node->kind == kind) return 1;
  for (uint32_t i = 0; i < node->input_count; i++)
    if (leads_to(node->input[i], kind)) return 1;
  return 0;
}

/* What the build has kept of a text is what its reader makes of it. */
static void check_kept(const ops_row *row, const char *text, ops_parsed kept) {
  hg_allocator allocator;
  ops_syntax_list list = {.nodes = {.count = 0}};
  ops_syntax_error error = {.status = HG_OK};
  CHECK_EQ_U64(hg_allocator_resolve(NULL, &allocator), HG_OK);
  CHECK(ops_read_formula(&allocator, text, &list, &error));
  CHECK_EQ_U64(list.nodes.count, kept.count);
  for (uint32_t i = 0; i < kept.count && i < list.nodes.count; i++) {
    ops_syntax now = ((const ops_syntax *)list.nodes.data)[i], then = kept.nodes[i];
    int is_number = now.kind == OPS_SYNTAX_LARGE || now.kind == OPS_SYNTAX_REAL;
    int is_same = now.kind == then.kind && now.count == then.count && now.at == then.at && now.op == then.op;
    if (is_number) is_same &= ((const uint64_t *)list.numbers.data)[now.size] == kept.numbers[then.size];
    else is_same &= now.size == then.size;
    if (!is_same) fprintf(stderr, "node %u of %s: '%s'\n", (unsigned)i, row->name, text);
    CHECK(is_same);
  }
  ops_syntax_release(&allocator, &list);
}

static void test_kept_formulas(void) {
  for (size_t i = 0; i < ops_row_count(); i++) {
    const ops_row *row = ops_row_at(i);
    int has_rule = row->gradient[0] != '\0' && strcmp(row->gradient, "none") != 0;
    if (row->kind == OPS_KIND_formula) check_kept(row, row->formula, ops_row_formula(row));
    else CHECK_EQ_U64(ops_row_formula(row).count, 0);
    if (has_rule) check_kept(row, row->gradient, ops_row_gradient(row));
    else CHECK_EQ_U64(ops_row_gradient(row).count, 0);
  }
}

static void test_gradients(void) {
  begin();
  hg_value x = input(ATLAS_f32, 2, 3, 4, 0), v = input(ATLAS_f32, 1, 4, 0, 0), n = input(ATLAS_i32, 1, 3, 0, 0);
  hg_value total = formula("sum(x * y, keep=0)", x, v);
  hg_value wide = gradient(total, 0, x), narrow = gradient(total, 0, v);
  IS(wide, "f32[3, 4]");
  IS(narrow, "f32[4]"); /* the sum over the rows that v was repeated along */
  CHECK_EQ_U64(gradient(formula("x + 1", x, v), x, x), x);
  CHECK_EQ_U64(ops_at(c, ops_at(c, gradient(total, 0, n))->input[0])->kind, OPS_CONSTANT); /* zeros */
  hg_value loss = call(HG_OP_cross_entropy, 2, x, n, 0), by = gradient(loss, 0, x);
  IS(by, "f32[3, 4]");
  CHECK(!leads_to(by, OPS_SCATTER)); /* softmax less one where the class is */
  hg_value rows = call(HG_OP_embedding, 2, x, n, 0);
  CHECK(leads_to(gradient(rows, rows, x), OPS_SCATTER));
  hg_value half = input(ATLAS_bf16, 2, 3, 4, 0), norm = call(HG_OP_layer_norm, 1, half, 0, 0);
  IS(gradient(norm, half, half), "bf16[3, 4]");
  hg_value m = call(HG_OP_max, 1, x, 0, 0), inside = formula("exp(x - y)", x, m); /* as softmax has inside */
  hg_value shares = formula("softmax(reshape(x, [12]))", x, 0);
  CHECK(gradient(shares, shares, inside) != 0);
  hg_value twice = gradient(with(HG_OP_sum, gradient(total, 0, x), 0, 0, 0), 0, v);
  IS(twice, "f32[4]");
  hg_value none;
  CHECK_EQ_U64(hg_gradient(c, x, 0, &x, 1, &none), HG_INVALID_ARGUMENT);
  REFUSED(none, "hg_gradient: the value is f32[3, 4]: of more than one element a cotangent is needed");
  n = input(ATLAS_i32, 0, 0, 0, 0);
  CHECK_EQ_U64(hg_gradient(c, n, 0, &n, 1, &none), HG_INVALID_ARGUMENT);
  REFUSED(none, "hg_gradient: the value is i32[]; only floats have gradients");
}

/* Every rule of the table can be built, for inputs of every float type: what is differentiable gives gradients of the
 * inputs' types and shapes. */
static void test_gradient_rows(void) {
  static const atlas_type types[] = {ATLAS_f32, ATLAS_f64, ATLAS_f16, ATLAS_bf16};
  for (size_t k = 0; k < 4 * (ops_row_count() + sizeof formula_cases / sizeof formula_cases[0]); k++) {
    size_t number = k / 4;
    formula_case own = {.results = "?"};
    begin();
    hg_value inputs[8] = {0}, results[8] = {0}, gradients[8];
    if (number < ops_row_count()) { /* pointwise rows of floats */
      const ops_row *row = ops_row_at(number);
      ops_argument_spec argument;
      const char *at = row->arguments;
      if (row->kind != OPS_KIND_pointwise || ops_next_argument(&at, &argument)) continue;
      own.op = (hg_op)row->op;
      own.inputs = strchr(row->inputs, 'c') != NULL ? "xvv" : strchr(row->inputs, 'b') != NULL ? "xv" : "x";
      if (strstr(row->types, "number") == NULL && strstr(row->types, "float") == NULL) continue;
    } else {
      own = formula_cases[number - ops_row_count()];
    }
    size_t count = strlen(own.inputs);
    for (size_t i = 0; i < count; i++) inputs[i] = case_input(own.inputs[i], types[k % 4]);
    if (hg_compute_all(c, own.op, inputs, count, NULL, 0, results, 1) != HG_OK) continue;
    if (!atlas_is_float((atlas_type)ops_at(c, results[0])->type)) continue;
    hg_value by[8];
    size_t asked = 0;
    for (size_t i = 0; i < count; i++)
      if (inputs[i] != 0) by[asked++] = inputs[i];
    int has_none = own.op == HG_OP_tetragamma; /* there is no row for its derivative, and the error says so */
    if (hg_gradient(c, results[0], results[0], by, asked, gradients) != HG_OK && !has_none)
      CHECK_STR(hg_last_error(), "no error");
    CHECK(has_none == (c->status == HG_INVALID_ARGUMENT && strstr(hg_last_error(), "n is 3") != NULL));
    for (size_t i = 0; i < asked && c->status == HG_OK; i++) CHECK_STR(OPS_TEXT(c, gradients[i]), OPS_TEXT(c, by[i]));
  }
}

/* An allocation that fails, whichever it is: no value, no leak (sanitizers look), the status says so. */
static size_t allocations_left;

static void *scarce_allocate(void *user, size_t size) {
  (void)user;
  if (allocations_left == 0) return NULL;
  allocations_left--;
  return malloc(size);
}

static void scarce_release(void *user, void *memory) {
  (void)user;
  free(memory);
}

/* Before the memory lies what is no node: whoever takes a value that is not there for one reads it. */
enum { BEFORE = 1024 };

static void *guarded_allocate(void *user, size_t size) {
  char *memory = scarce_allocate(user, BEFORE + size);
  if (memory == NULL) return NULL;
  memset(memory, 0xff, BEFORE);
  return memory + BEFORE;
}

static void guarded_release(void *user, void *memory) {
  (void)user;
  if (memory != NULL) free((char *)memory - BEFORE);
}

/* The list of nodes grows where `first` constants before move it to: there is no memory for it then. */
static hg_status gradient_without_memory(const char *formula_text, uint32_t first, size_t limit) {
  hg_allocator scarce = {.size = sizeof scarce, .allocate = guarded_allocate, .release = guarded_release};
  hg_computation *computation = NULL;
  allocations_left = SIZE_MAX;
  CHECK_EQ_U64(hg_computation_create(&scarce, &computation), HG_OK);
  hg_tensor matrix = hg_tensor_of(NULL, ATLAS_f32, 2, (uint64_t[]){4, 4});
  hg_tensor numbers = hg_tensor_of(NULL, ATLAS_i64, 2, (uint64_t[]){4, 4});
  hg_value x = hg_computation_input(computation, "x", &matrix), w = hg_computation_input(computation, "w", &matrix);
  hg_value i = hg_computation_input(computation, "i", &numbers), by[2];
  for (uint32_t k = 0; k < first; k++) hg_computation_number(computation, ATLAS_f64, k + 0.5);
  hg_value y = hg_compute_formula(computation, formula_text, (const char *[]){"x", "w", "i"}, (hg_value[]){x, w, i}, 3);
  hg_value sum = hg_compute(computation, HG_OP_sum, &y, 1, NULL, 0);
  CHECK_EQ_U64(hg_computation_status(computation), HG_OK);
  allocations_left = limit;
  hg_status status = hg_gradient(computation, sum, 0, (hg_value[]){x, w}, 2, by);
  hg_computation_release(computation);
  return status;
}

static void test_gradients_without_memory(void) {
  static const char *const formulas[] = {
      "matmul(x * w, w + x)", "linear(x, w)", "matmul(cast(x, f16), cast(w, f16), transpose_b=1)",
      "prod(x * w, -1)", "max(x * w, 0) + min(w, 1)", "pad(x, sum(w, all, keep=0), low=[1, 1], high=[2, 0])",
      "slice(x * w, axis=0, start=3, stop=-1, step=-2)", "concatenate(x, w, axis=0)", "take_along(x * w, i, axis=0)",
      "scatter(x, i, w, axis=0)", "scatter_add(x, i, w, axis=0)", "cumulative_sum(x * w, axis=0)",
      "softmax(x) * layer_norm(w)"};
  for (size_t k = 0; k < sizeof formulas / sizeof formulas[0]; k++) {
    for (uint32_t first = 0; first < 130; first++)
      for (size_t limit = 0; limit < 6; limit++) {
        hg_status status = gradient_without_memory(formulas[k], first, limit);
        CHECK(status == HG_OK || status == HG_OUT_OF_MEMORY);
      }
    CHECK_EQ_U64(gradient_without_memory(formulas[k], 0, SIZE_MAX), HG_OK);
  }
}

static void test_failed_allocations(void) {
  hg_allocator scarce = {.size = sizeof scarce, .allocate = scarce_allocate, .release = scarce_release};
  for (size_t limit = 0, done = 0; !done && limit < 1000; limit++) {
    hg_computation *computation = NULL;
    allocations_left = limit;
    if (hg_computation_create(&scarce, &computation) != HG_OK) continue;
    hg_tensor like = hg_tensor_of(NULL, ATLAS_f32, 2, (uint64_t[]){3, 4});
    hg_value x = hg_computation_input(computation, "x", &like), y = hg_computation_input(computation, "y", &like);
    hg_value norm = hg_compute(computation, HG_OP_global_norm, (hg_value[]){x, y}, 2, NULL, 0);
    hg_value z = hg_compute(computation, HG_OP_layer_norm, (hg_value[]){x}, 1, NULL, 0);
    z = hg_compute(computation, HG_OP_mul, (hg_value[]){z, norm}, 2, NULL, 0);
    hg_value sum = hg_compute(computation, HG_OP_sum, &z, 1, NULL, 0), by[2];
    hg_gradient(computation, sum, 0, (hg_value[]){x, y}, 2, by);
    hg_computation_output(computation, "z", z, NULL);
    hg_status status = hg_computation_status(computation);
    done = status == HG_OK;
    CHECK(done ? z != 0 : status == HG_OUT_OF_MEMORY);
    hg_computation_release(computation);
  }
}

int main(void) {
  test_table();
  test_tensors();
  test_impossible_tensors();
  test_promotion();
  test_all_pairs();
  test_functions_of_integers();
  test_strict_types();
  test_first_error_stays();
  test_views();
  test_reductions();
  test_scans();
  test_selections();
  test_formulas();
  test_formula_errors();
  test_formula_rows();
  test_kept_formulas();
  test_gradients();
  test_gradient_rows();
  test_failed_allocations();
  test_gradients_without_memory();
  hg_computation_release(c);
  return check_report();
}
