/* test_operations.c - the table of operations, what its rows become, and the sentences of what is refused. */
#include "ops/compute.h"

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
  REFUSED(call(HG_OP_add, 2, input(ATLAS_f32, 2, 2, 3, 0), input(ATLAS_i32, 1, 3, 0, 0), 0),
          "add: f32[2, 3] and i32[3]: integers and floats do not mix; cast one of them, as in cast(x, f32)");
  REFUSED(
      call(HG_OP_add, 2, input(ATLAS_f32, 2, 2, 3, 0), input(ATLAS_f32, 1, 2, 0, 0), 0),
      "add: f32[2, 3] and f32[2] do not broadcast: counted from the last axis, sizes must be equal or one of them 1");
  REFUSED(call(HG_OP_mul, 2, input(ATLAS_u64, 0, 0, 0, 0), input(ATLAS_i8, 0, 0, 0, 0), 0),
          "mul: u64[] and i8[]: no integer type holds both; cast one of them, as in cast(x, u64)");
  REFUSED(call(HG_OP_exp, 1, input(ATLAS_i32, 1, 3, 0, 0), 0, 0),
          "exp: x is i32[3]; it takes float: cast(x, f32) makes it one");
  REFUSED(call(HG_OP_add, 1, input(ATLAS_f32, 0, 0, 0, 0), 0, 0), "add: its input 'b' is missing");
  REFUSED(call(HG_OP_exp, 2, input(ATLAS_f32, 0, 0, 0, 0), input(ATLAS_f32, 0, 0, 0, 0), 0),
          "exp: 2 inputs are given, of 1 (x)");
  REFUSED(call(HG_OP_exp, 1, 77, 0, 0), "exp: x: 77 is no value of this computation");
  REFUSED(hg_compute(c, (hg_op)9, NULL, 0, NULL, 0), "hg_compute: there is no operation 0x9");
}

static void test_first_error_stays(void) {
  begin();
  hg_value x = input(ATLAS_i32, 0, 0, 0, 0), y = call(HG_OP_exp, 1, x, 0, 0);
  CHECK_EQ_U64(call(HG_OP_add, 2, y, y, 0), 0);
  CHECK_EQ_U64(hg_computation_output(c, "y", y, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_computation_status(c), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "exp: x is i32[]; it takes float: cast(x, f32) makes it one");
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

int main(void) {
  test_table();
  test_tensors();
  test_promotion();
  test_first_error_stays();
  test_views();
  test_reductions();
  hg_computation_release(c);
  return check_report();
}
