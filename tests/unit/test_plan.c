/* test_plan.c - into how many launches a computation is cut where no single one can hold a group. Their bits are the tests'
 * in tests/ops. */
#include "ops/launch_plan.h"

#include "check.h"
#include "counted.h"

#include <string.h>

static const ops_target processor = {.for_gpu = 0}, gpu = {.for_gpu = 1};

static hg_computation *begin(void) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  return c;
}

static hg_value input(hg_computation *c, uint64_t rows, uint64_t columns) {
  hg_tensor like = hg_tensor_of(NULL, ATLAS_f32, 2, (uint64_t[]){rows, columns});
  return hg_computation_input(c, NULL, &like);
}

static hg_value two(hg_computation *c, hg_op op, hg_value a, hg_value b) {
  return hg_compute(c, op, (hg_value[]){a, b}, 2, NULL, 0);
}

static void put_out(hg_computation *c, hg_value value) {
  CHECK_EQ_U64(hg_computation_output(c, NULL, value, NULL), HG_OK);
}

/* Launches of a plan, releasing the computation; *notes: how many say why they are not one with others. */
static uint64_t launches_of(hg_computation *c, const ops_target *target, uint32_t *notes) {
  ops_plan plan;
  CHECK_EQ_U64(hg_computation_status(c), HG_OK);
  hg_status status = ops_plan_computation(&c->allocator, c, 0, target, &plan);
  CHECK_EQ_U64(status, HG_OK);
  uint64_t launches = status == HG_OK ? plan.steps.count : 0;
  const ops_step *steps = plan.steps.data;
  if (notes != NULL) *notes = 0;
  for (uint32_t i = 0; notes != NULL && i < launches; i++) *notes += strncmp(steps[i].note, "a part: ", 8) == 0;
  if (status == HG_OK) ops_plan_release(&plan);
  hg_computation_release(c);
  return launches;
}

/* ---- what no launch can hold ------------------------------------------------------------------------------------- */

/* The sum of so many inputs: a launch has 24 tensors. */
static hg_computation *sum_of(uint32_t count) {
  hg_computation *c = begin();
  hg_value sum = input(c, 64, 64);
  for (uint32_t i = 1; i < count; i++) sum = two(c, HG_OP_add, sum, input(c, 64, 64));
  put_out(c, sum);
  return c;
}

static void test_many_inputs(void) {
  uint32_t notes;
  CHECK_EQ_U64(launches_of(sum_of(23), &processor, &notes), 1);
  CHECK_EQ_U64(notes, 0);
  CHECK_EQ_U64(launches_of(sum_of(40), &processor, &notes), 2);
  CHECK_EQ_U64(notes, 2);
  CHECK_EQ_U64(launches_of(sum_of(80), &gpu, NULL), 4);
}

/* Results that each the next one reads: of 40 put out, a launch has 24 tensors. */
static hg_computation *many_results(void) {
  hg_computation *c = begin();
  hg_value x = input(c, 64, 64), value = x;
  for (uint32_t i = 0; i < 40; i++) put_out(c, value = two(c, HG_OP_mul, value, x));
  return c;
}

/* 1000 operations in one chain make more values than a launch has. */
static void test_long_chains(void) {
  CHECK_EQ_U64(launches_of(many_results(), &processor, NULL), 2);
  hg_computation *c = begin();
  hg_value x = input(c, 64, 64), value = x;
  for (uint32_t i = 0; i < 500; i++) {
    value = two(c, HG_OP_mul, value, hg_computation_number(c, ATLAS_f32, 0.5 + i));
    value = two(c, HG_OP_sub, value, x);
  }
  put_out(c, value);
  CHECK_EQ_U64(launches_of(c, &processor, NULL), 2);
}

/* Softmax after softmax along rows: more reductions than a launch has. */
static void test_many_rows(void) {
  hg_computation *c = begin();
  hg_value x = input(c, 64, 256);
  hg_argument last = {.count = 1, .integers = {1}};
  for (uint32_t i = 0; i < 40; i++) x = hg_compute(c, HG_OP_softmax, &x, 1, &last, 1);
  put_out(c, x);
  uint64_t launches = launches_of(c, &processor, NULL);
  CHECK(launches >= 2 && launches <= 20);
}

/* Views whose indices need more variables than a launch has are copied on the way, where nothing else could be cut. */
static void test_many_views(void) {
  hg_computation *c = begin();
  hg_tensor like = hg_tensor_of(NULL, ATLAS_f32, 1, (uint64_t[]){210 * 210});
  hg_value x = hg_computation_input(c, NULL, &like);
  static const int64_t shapes[][3] = {{6, 35, 210}, {10, 21, 210}, {14, 15, 210}, {30, 7, 210}, {42, 5, 210}};
  for (uint32_t i = 0; i < 20; i++) {
    hg_argument shape = {.count = 3}, axes = {.count = 3, .integers = {2, 0, 1}};
    memcpy(shape.integers, shapes[i % 5], sizeof shapes[0]);
    x = hg_compute(c, HG_OP_reshape, &x, 1, &shape, 1);
    x = hg_compute(c, HG_OP_permute, &x, 1, &axes, 1);
  }
  put_out(c, hg_compute(c, HG_OP_exp, &x, 1, NULL, 0));
  uint64_t launches = launches_of(c, &processor, NULL);
  CHECK(launches >= 2 && launches <= 8);
}

/* ---- memory runs out --------------------------------------------------------------------------------------------- */

static void check_failures(hg_computation *made, long least) {
  long failures = 0;
  for (long n = 0, failed = 1; failed; n++) {
    counter count = {.fail_at = n};
    hg_allocator allocator = counting(&count);
    ops_plan plan;
    hg_status status = ops_plan_computation(&allocator, made, 0, &processor, &plan);
    failed = status != HG_OK;
    failures += failed;
    CHECK_EQ_U64(status, failed ? HG_OUT_OF_MEMORY : HG_OK);
    if (!failed) ops_plan_release(&plan);
    CHECK_EQ_U64((uint64_t)count.live, 0);
  }
  CHECK(failures > least);
  hg_computation_release(made);
}

int main(void) {
  test_many_inputs();
  test_long_chains();
  test_many_rows();
  test_many_views();
  check_failures(sum_of(40), 20);
  check_failures(many_results(), 20);
  return check_report();
}
