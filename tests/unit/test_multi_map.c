/* test_multi_map.c - maps that a plan for a GPU puts into one launch: which, how many, what they read for all lanes at
 * once, and that nothing is lost where memory runs out. Their bits are the tests' in tests/ops/test_optimisers.py. */
#include "ops/plan/plan_computation.h"

#include "computing.h"
#include "counted.h"

static const ops_target gpu = {.for_gpu = 1};

static hg_value input(hg_computation *c, uint64_t count) {
  hg_tensor like = {.type = ATLAS_f32, .rank = 1, .shape = {count}, .stride = {1}};
  return hg_computation_input(c, NULL, &like);
}

/* Updates x[i] of count + i elements by x[i] - rate * y[i]. */
static hg_computation *steps_of(uint32_t tensors, uint64_t count) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  for (uint32_t i = 0; i < tensors; i++) {
    hg_value x = input(c, count + i), rate = hg_computation_number(c, ATLAS_f32, -0.5), y = input(c, count + i);
    hg_value step = hg_compute(c, HG_OP_mul, (hg_value[]){y, rate}, 2, NULL, 0);
    CHECK_EQ_U64(hg_computation_update(c, x, hg_compute(c, HG_OP_add, (hg_value[]){x, step}, 2, NULL, 0)), HG_OK);
  }
  CHECK_EQ_U64(hg_computation_status(c), HG_OK);
  return c;
}

static uint64_t launches_of(const hg_computation *c, uint32_t flags, const ops_target *target, uint64_t *lanes) {
  ops_plan plan;
  hg_status status = ops_plan_computation(&c->allocator, c, flags, target, &plan);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) return 0;
  uint64_t launches = plan.steps.count;
  *lanes = 0;
  for (uint32_t i = 0; i < launches; i++) {
    *lanes += ((const ops_step *)plan.steps.data)[i].lanes;
    CHECK(((const ops_step *)plan.steps.data)[i].binding_count <= OPS_MAX_BINDINGS);
  }
  ops_plan_release(&plan);
  return launches;
}

/* Two buffers a tensor, so twelve tensors a launch; four elements a lane, and one for each that is left over. */
static void test_launches(void) {
  uint64_t lanes = 0;
  hg_computation *c = steps_of(25, 1000);
  CHECK_EQ_U64(launches_of(c, 0, &gpu, &lanes), 3);
  uint64_t expected = 1024; /* of the last one, which is alone */
  for (uint64_t n = 1000; n < 1024; n++) expected += n / 4 + n % 4;
  CHECK_EQ_U64(lanes, expected);
  CHECK_EQ_U64(launches_of(c, HG_NO_FUSION, &gpu, &lanes), 50);
  CHECK_EQ_U64(launches_of(c, 0, &(ops_target){.for_gpu = 0}, &lanes), 25);
  hg_computation_release(c);
  c = steps_of(3, UINT64_C(1) << 23);
  CHECK_EQ_U64(launches_of(c, 0, &gpu, &lanes), 3);
  hg_computation_release(c);
}

/* What reads an element by a number of its own may have a fault, whose record says where: a launch of its own. */
static void test_faults_keep_their_launch(void) {
  uint64_t lanes;
  hg_computation *c = steps_of(2, 100);
  hg_tensor like = {.type = ATLAS_i32, .rank = 1, .shape = {7}, .stride = {1}};
  hg_value numbers = hg_computation_input(c, NULL, &like);
  hg_value taken = hg_compute(c, HG_OP_take, (hg_value[]){input(c, 9), numbers}, 2, NULL, 0);
  CHECK_EQ_U64(hg_computation_output(c, NULL, taken, NULL), HG_OK);
  CHECK_EQ_U64(launches_of(c, 0, &gpu, &lanes), 2);
  hg_computation_release(c);
}

/* A row's value that is put out under another shape is a result of the rows' launch. */
static void test_renamed_results(void) {
  uint64_t lanes;
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value x = input(c, 1000);
  CHECK_EQ_U64(hg_computation_output(c, NULL, hg_compute(c, HG_OP_var, &x, 1, NULL, 0), NULL), HG_OK);
  CHECK_EQ_U64(launches_of(c, 0, &gpu, &lanes), 1);
  CHECK_EQ_U64(launches_of(c, 0, &(ops_target){.for_gpu = 0}, &lanes), 1);
  hg_computation_release(c);
}

static hg_value cut(hg_computation *c, hg_value x, int64_t start, int64_t stop) {
  hg_argument bounds[] = {{1, 0, {0}, 0}, {1, 0, {start}, 0}, {1, 0, {stop}, 0}};
  return hg_compute(c, HG_OP_slice, &x, 1, bounds, 3);
}

static hg_value pad(hg_computation *c, hg_value x, int64_t low, int64_t high) {
  hg_argument sizes[] = {{1, 0, {low}, 0}, {1, 0, {high}, 0}};
  return hg_compute(c, HG_OP_pad, (hg_value[]){x, 0}, 2, sizes, 2);
}

/* All lanes of the second map read the same two elements, whose indices differ only by what a padding's edge makes of
 * a number that is known: y[1], and y[4] as the nearest one to what lies beside it. */
static void test_elements_that_all_lanes_read(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  hg_buffer *one = floats(1, 3), *five = floats(5, 10), *first = floats(1, 0), *second = floats(5, 0);
  hg_computation *c = NULL;
  hg_executable *e = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value x = input(c, 1), padded = pad(c, cut(c, input(c, 5), 1, 5), 0, 1);
  hg_value edges = two(c, HG_OP_add, pad(c, cut(c, padded, 0, 1), 4, 0), cut(c, padded, 4, 5));
  CHECK_EQ_U64(hg_computation_output(c, NULL, two(c, HG_OP_add, x, x), NULL), HG_OK);
  CHECK_EQ_U64(hg_computation_output(c, NULL, edges, NULL), HG_OK);
  e = compiled(c);
  CHECK_EQ_U64(hg_run(e, (hg_tensor[]){vector_of(one, 1), vector_of(five, 5)}, 2,
                      (hg_tensor[]){vector_of(first, 1), vector_of(second, 5)}, 2, NULL, NULL), HG_OK);
  float sum, ends[5];
  CHECK_EQ_U64(hg_buffer_read(first, 0, &sum, sizeof sum), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(second, 0, ends, sizeof ends), HG_OK);
  CHECK(sum == 6 && ends[0] == 0 && ends[3] == 0 && ends[4] == 11);
  hg_executable_release(e);
  hg_computation_release(c);
  hg_buffer_release(one);
  hg_buffer_release(five);
  hg_buffer_release(first);
  hg_buffer_release(second);
  hg_executor_release(executor);
}

static void test_failures(void) {
  hg_computation *made = steps_of(14, 30);
  long failures = 0;
  for (long n = 0, failed = 1; failed; n++) {
    counter count = {.fail_at = n};
    hg_allocator allocator = counting(&count);
    ops_plan plan;
    hg_status status = ops_plan_computation(&allocator, made, 0, &gpu, &plan);
    failed = status != HG_OK;
    failures += failed;
    CHECK_EQ_U64(status, failed ? HG_OUT_OF_MEMORY : HG_OK);
    if (!failed) ops_plan_release(&plan);
    CHECK_EQ_U64((uint64_t)count.live, 0);
  }
  CHECK(failures > 20);
  hg_computation_release(made);
}

int main(void) {
  test_launches();
  test_faults_keep_their_launch();
  test_renamed_results();
  test_elements_that_all_lanes_read();
  test_failures();
  return check_report();
}
