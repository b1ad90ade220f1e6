/* test_plan.c - into how many launches a computation is cut, and why: what is computed anew rather than written and
 * read, and what happens where no single launch can hold a group. Their bits are the tests' in tests/ops. */
#include "ops/graph/ops_tuning.h"
#include "ops/plan/plan_computation.h"

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

/* Rows moved to the right by so many places, zeros behind them. */
static hg_value moved(hg_computation *c, hg_value x, uint64_t columns, int64_t by) {
  hg_argument slice[] = {{.count = 1, .integers = {1}},
                         {.count = 1, .integers = {0}},
                         {.count = 1, .integers = {(int64_t)columns - by}},
                         {.count = 1, .integers = {1}}};
  hg_argument pad[] = {{.count = 2, .integers = {0, by}}, {.count = 2, .integers = {0, 0}}};
  hg_value part = hg_compute(c, HG_OP_slice, &x, 1, slice, 4);
  return hg_compute(c, HG_OP_pad, &part, 1, pad, 2);
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

/* ---- what is computed anew --------------------------------------------------------------------------------------- */

/* Running sums by doubling: the first sums are needed at 2^steps places. */
static hg_computation *scan(uint64_t rows, uint32_t steps) {
  hg_computation *c = begin();
  hg_value x = input(c, rows, 256);
  for (uint32_t i = 0; i < steps; i++) x = two(c, HG_OP_add, x, moved(c, x, 256, INT64_C(1) << i));
  put_out(c, x);
  return c;
}

static void test_computed_anew(void) {
  uint32_t notes;
  CHECK_EQ_U64(launches_of(scan(4096, 1), &processor, &notes), 1);
  CHECK_EQ_U64(launches_of(scan(4096, 8), &processor, &notes), 8); /* bytes are cheap in a processor's caches */
  CHECK_EQ_U64(notes, 0);
  CHECK_EQ_U64(launches_of(scan(4096, 8), &gpu, NULL), 2);
  CHECK_EQ_U64(launches_of(scan(1, 8), &processor, NULL), 3); /* a launch costs more than few elements do */
}

/* A function is not computed twice for what it saves; it is where each reads it at its own place. */
static void test_functions(void) {
  for (int is_moved = 0; is_moved < 2; is_moved++) {
    hg_computation *c = begin();
    hg_value x = input(c, 4096, 256), y = hg_compute(c, HG_OP_exp, (hg_value[]){two(c, HG_OP_add, x, x)}, 1, NULL, 0);
    hg_value other = is_moved ? moved(c, y, 256, 3) : two(c, HG_OP_mul, y, x);
    put_out(c, two(c, HG_OP_add, y, other));
    CHECK_EQ_U64(launches_of(c, &processor, NULL), is_moved ? 2 : 1);
  }
}

static hg_value reduced(hg_computation *c, hg_op op, hg_value x, int64_t axis, int is_kept) {
  const hg_argument along[] = {{.count = 1, .integers = {axis}}, {.count = 1, .integers = {is_kept}}};
  return hg_compute(c, op, &x, 1, along, 2);
}

/* Reductions of one value share its launch, if they are along one axis and none needs the other. */
static void test_reductions_beside(void) {
  for (int kind = 0; kind < 4; kind++) {
    hg_computation *c = begin();
    hg_value x = input(c, 4096, 256), most = reduced(c, HG_OP_max, x, 1, 1);
    hg_value of = kind == 0 ? x : kind == 1 ? two(c, HG_OP_mul, x, x) : kind == 2 ? two(c, HG_OP_sub, x, most) : x;
    hg_value other = reduced(c, HG_OP_sum, of, kind == 3 ? 0 : 1, 0);
    put_out(c, most);
    put_out(c, other);
    CHECK_EQ_U64(launches_of(c, &gpu, NULL), kind == 3 ? 2 : 1);
  }
}

/* Rows by their sums, and the sums of those along the other axis: a GPU computes the rows twice rather than store and
 * load them. It stores what is put out anyway, and does not read again what the computation writes over. */
static void test_read_anew(void) {
  enum { AS_IT_IS, PUT_OUT_TOO, UPDATES_INPUT, KINDS };
  for (int kind = 0; kind < KINDS; kind++) {
    hg_computation *c = begin();
    hg_value x = input(c, 4096, 256), rows = two(c, HG_OP_mul, x, reduced(c, HG_OP_sum, x, 1, 1));
    hg_value columns = reduced(c, HG_OP_sum, rows, 0, 0);
    ops_plan plan;
    put_out(c, columns);
    if (kind == PUT_OUT_TOO) put_out(c, rows);
    if (kind == UPDATES_INPUT)
      CHECK_EQ_U64(hg_computation_update(c, x, two(c, HG_OP_add, x, reduced(c, HG_OP_max, rows, 1, 1))), HG_OK);
    CHECK_EQ_U64(ops_plan_computation(&c->allocator, c, 0, &gpu, &plan), HG_OK);
    CHECK((plan.workspace_bytes < sizeof(float) * 4096 * 256) == (kind != UPDATES_INPUT));
    ops_plan_release(&plan);
    hg_computation_release(c);
  }
}

/* A bias of 16 bits is widened by those that read it; one that is computed first is written once. */
static void test_widening(void) {
  for (int is_computed = 0; is_computed < 2; is_computed++) {
    hg_computation *c = begin();
    hg_tensor like[] = {hg_tensor_of(NULL, ATLAS_bf16, 2, (uint64_t[]){4096, 64}),
                        hg_tensor_of(NULL, ATLAS_bf16, 2, (uint64_t[]){256, 64}),
                        hg_tensor_of(NULL, ATLAS_bf16, 1, (uint64_t[]){256})};
    hg_value inputs[3];
    for (int i = 0; i < 3; i++) inputs[i] = hg_computation_input(c, NULL, &like[i]);
    if (is_computed) inputs[2] = hg_compute(c, HG_OP_exp, &inputs[2], 1, NULL, 0);
    put_out(c, hg_compute(c, HG_OP_linear, inputs, 3, NULL, 0));
    CHECK_EQ_U64(launches_of(c, &gpu, NULL), is_computed ? 2 : 1);
  }
}

/* Each reads what is before it twice, by something cheap: it is not computed for each way there, 2^60 of them. */
static void test_ways(void) {
  hg_computation *c = begin();
  hg_value x = input(c, 4096, 256);
  for (uint32_t i = 0; i < 60; i++) {
    x = two(c, HG_OP_add, x, moved(c, x, 256, 1 + i % 3));
    x = hg_compute(c, HG_OP_neg, &x, 1, NULL, 0);
  }
  put_out(c, x);
  uint32_t notes;
  CHECK_EQ_U64(launches_of(c, &processor, &notes), 60);
  CHECK_EQ_U64(notes, 0);
}

/* A row's sum is there for that row alone: that it is read elsewhere is known beforehand, or found by the writer. */
static void test_sums_of_other_rows(void) {
  static const hg_argument along_rows[] = {{.count = 1, .integers = {1}}, {.count = 1, .integers = {1}}};
  static const hg_argument first = {.count = 1, .integers = {0}}, turned = {.count = 2, .integers = {1, 0}};
  for (int is_turned = 0; is_turned < 2; is_turned++) {
    hg_computation *c = begin();
    hg_value x = input(c, 256, 256), sum = hg_compute(c, HG_OP_sum, &x, 1, along_rows, 2);
    hg_value other = hg_compute(c, is_turned ? HG_OP_permute : HG_OP_flip, &sum, 1, is_turned ? &turned : &first, 1);
    put_out(c, two(c, HG_OP_mul, x, two(c, HG_OP_add, x, other)));
    uint32_t notes;
    CHECK_EQ_U64(launches_of(c, &processor, &notes), 2);
    CHECK_EQ_U64(notes, is_turned ? 2 : 0);
  }
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
  uint64_t launches = launches_of(c, &processor, NULL); /* of 64 operations at most: each is on the planner's stack */
  CHECK(launches >= 16 && launches <= 32);
}

/* The sum of `count` values times the largest of them: all of them are kept. */
static hg_computation *sum_times_largest(uint32_t count) {
  enum { INPUTS = 17, MOST = 256 };
  static const hg_op ways[2] = {HG_OP_add, HG_OP_maximum};
  hg_computation *c = begin();
  hg_value of[INPUTS], values[MOST], folded[2][MOST];
  for (uint32_t i = 0; i < INPUTS; i++) of[i] = input(c, 64, 64);
  for (uint32_t i = 0; i < count; i++) values[i] = two(c, HG_OP_sub, of[i % INPUTS], of[(i + 1 + i / INPUTS) % INPUTS]);
  for (uint32_t way = 0; way < 2; way++) {
    memcpy(folded[way], values, sizeof values);
    for (uint32_t left = count; left > 1; left -= left / 2)
      for (uint32_t i = 0; i < left / 2; i++)
        folded[way][i] = two(c, ways[way], folded[way][i], folded[way][left - 1 - i]);
  }
  put_out(c, two(c, HG_OP_mul, folded[0][0], folded[1][0]));
  return c;
}

/* A launch keeps more values than the ISA has registers. */
static void test_many_values(void) {
  CHECK_EQ_U64(launches_of(sum_times_largest(200), &processor, NULL), 1);
  CHECK_EQ_U64(launches_of(sum_times_largest(254), &processor, NULL), 1);
  CHECK_EQ_U64(launches_of(sum_times_largest(254), &gpu, NULL), 1);
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
    hg_argument shape = {.count = 3}, axes = {.count = 3, .integers = {1, 2, 0}};
    memcpy(shape.integers, shapes[i % 5], sizeof shapes[0]);
    x = hg_compute(c, HG_OP_reshape, &x, 1, &shape, 1);
    x = hg_compute(c, HG_OP_permute, &x, 1, &axes, 1);
  }
  put_out(c, hg_compute(c, HG_OP_exp, &x, 1, NULL, 0));
  uint64_t launches = launches_of(c, &processor, NULL);
  CHECK(launches >= 2 && launches <= 8);
}

/* ---- indices ----------------------------------------------------------------------------------------------------- */

/* Divisions of a program: of indices, where nothing else is divided. */
static uint32_t divisions_of(hg_computation *c) {
  ops_plan plan;
  uint32_t divisions = 0;
  CHECK_EQ_U64(ops_plan_computation(&c->allocator, c, 0, &processor, &plan), HG_OK);
  for (uint32_t s = 0; s < plan.steps.count; s++) {
    size_t count;
    const atlas_insn *code = atlas_program_insns(((const ops_step *)plan.steps.data)[s].program, &count);
    for (size_t i = 0; i < count; i++) divisions += code[i].op == ATLAS_OP_div || code[i].op == ATLAS_OP_rem;
  }
  ops_plan_release(&plan);
  hg_computation_release(c);
  return divisions;
}

/* What lies densely has the same numbers under another shape, where it is read and where it is written: under
 * [2, 3, 128] the grid numbers the rows, and nothing is divided. */
static void test_reshapes(void) {
  static const hg_argument shapes[] = {{.count = 3, .integers = {2, 3, 128}}, {.count = 2, .integers = {4, 192}}};
  static const hg_argument second = {.count = 1, .integers = {1}};
  uint32_t divisions[2];
  for (int is_plain = 0; is_plain < 2; is_plain++) {
    hg_computation *c = begin();
    hg_tensor like = hg_tensor_of(NULL, ATLAS_f32, 3, (uint64_t[]){2, 3, 128});
    hg_value x = is_plain ? hg_computation_input(c, NULL, &like) : input(c, 3, 256);
    if (!is_plain) x = hg_compute(c, HG_OP_reshape, &x, 1, &shapes[0], 1);
    hg_value turned = two(c, HG_OP_add, x, hg_compute(c, HG_OP_flip, &x, 1, &second, 1));
    put_out(c, is_plain ? turned : hg_compute(c, HG_OP_reshape, &turned, 1, &shapes[1], 1));
    divisions[is_plain] = divisions_of(c);
  }
  CHECK_EQ_U64(divisions[0], 0);
  CHECK_EQ_U64(divisions[1], 0);
}

/* Rows that are read beside one for all of them, on a processor: blocks of so many lanes are whole rows, or parts of
 * one. 0: rows are no blocks. */
static void test_long_rows(void) {
  static const uint32_t sizes[][2] = {{63, 0},      {64, 64},  {514, 514},  {1000, 1000},
                                      {4098, 683}, {1031, 0}, {4096, 1024}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    hg_computation *c = begin();
    ops_plan plan;
    put_out(c, two(c, HG_OP_add, input(c, 8, sizes[i][0]), input(c, 1, sizes[i][0])));
    CHECK_EQ_U64(ops_plan_computation(&c->allocator, c, 0, &processor, &plan), HG_OK);
    CHECK_EQ_U64(plan.steps.count, 1);
    CHECK_EQ_U64(((const ops_step *)plan.steps.data)->block[0], sizes[i][1]);
    ops_plan_release(&plan);
    hg_computation_release(c);
  }
}

/* ---- the kinds of nodes ------------------------------------------------------------------------------------------ */

/* A kind with several results has a launch for itself, where its writer finds them. */
static void test_kinds(void) {
  enum { NONE = 0, OWN_LAUNCH = 1 };
#define ops_write_none NONE
#define ops_write_factor OWN_LAUNCH
#define ops_write_scan OWN_LAUNCH
#define ops_write_select OWN_LAUNCH
#define ops_write_scatter OWN_LAUNCH
#define ops_write_sort OWN_LAUNCH
#define ops_write_top OWN_LAUNCH
#define ops_write_update OWN_LAUNCH
#define OPS_NODE_KIND(id, name, inputs, results, work, passes, is, has, term, flow, launch, batch) \
  CHECK((results) <= 1 || (ops_write_##launch == OWN_LAUNCH && ((is) & (OPS_ELEMENT_WISE | OPS_VIRTUAL)) == 0));
#include "ops/graph/kinds.def"
#undef OPS_NODE_KIND
#undef ops_write_none
#undef ops_write_factor
#undef ops_write_scan
#undef ops_write_select
#undef ops_write_scatter
#undef ops_write_sort
#undef ops_write_top
#undef ops_write_update
}

static hg_computation *sorted_rows(void) {
  hg_computation *c = begin();
  hg_value x = input(c, 2, 256 * OPS_SORT_BLOCK_ROUNDS + 1), results[2];
  CHECK_EQ_U64(hg_compute_all(c, HG_OP_sort_with_places, &x, 1, NULL, 0, results, 2), HG_OK);
  for (uint32_t k = 0; k < 2; k++) put_out(c, results[k]);
  return c;
}

/* A block has each in its shared memory, or, of 130 rows, in a temporary; a lane each column of the right sides. */
static hg_computation *factored_matrices(void) {
  hg_computation *c = begin();
  hg_value x = input(c, 30, 30), large = input(c, 130, 130);
  put_out(c, hg_compute(c, HG_OP_lu, &x, 1, NULL, 0));
  put_out(c, hg_compute(c, HG_OP_eigh_packed, &large, 1, NULL, 0));
  put_out(c, two(c, HG_OP_lower_solve, x, x));
  return c;
}

static void test_a_launch_for_each_factor(void) {
  static const ops_target *const targets[] = {&processor, &gpu};
  for (uint32_t i = 0; i < 2; i++) CHECK_EQ_U64(launches_of(factored_matrices(), targets[i], NULL), 3);
}

/* ---- several results --------------------------------------------------------------------------------------------- */

/* Rows that one block sorts, whichever of the results is wanted; longer ones take a launch for each of four digits,
 * three where a row has several blocks, four where these form groups. */
static void test_results_of_one_launch(void) {
  static const ops_target *const targets[] = {&processor, &gpu};
  const uint64_t size[] = {UINT64_C(1) << OPS_SORT_NETWORK_BITS, 256 * OPS_SORT_BLOCK_ROUNDS};
  for (uint32_t i = 0; i < 12; i++) {
    hg_computation *c = begin();
    hg_value x = input(c, 3, size[i % 2]), results[2];
    CHECK_EQ_U64(hg_compute_all(c, HG_OP_sort_with_places, &x, 1, NULL, 0, results, 2), HG_OK);
    for (uint32_t k = 0; k < 2; k++)
      if ((i / 2 % 3 + 1) >> k & 1) put_out(c, results[k]);
    CHECK_EQ_U64(launches_of(c, targets[i / 6], NULL), 1);
  }
  for (uint64_t bits = 12, of_digit = 1; bits <= 21; bits += 3, of_digit = bits < 21 ? 3 : 4) {
    hg_computation *c = begin();
    hg_value x = input(c, 1, UINT64_C(1) << bits);
    put_out(c, hg_compute(c, HG_OP_sort_with_places, &x, 1, NULL, 0));
    CHECK_EQ_U64(launches_of(c, &gpu, NULL), 4 * of_digit);
  }
}

/* ---- scans ------------------------------------------------------------------------------------------------------- */

static hg_computation *sums_along(uint64_t rows, uint64_t columns, int64_t axis) {
  hg_computation *c = begin();
  hg_argument along = {.count = 1, .integers = {axis}};
  hg_value x = input(c, rows, columns);
  put_out(c, hg_compute(c, HG_OP_cumulative_sum, (hg_value[]){two(c, HG_OP_add, x, x)}, 1, &along, 1));
  return c;
}

/* One where a block has whole lines; else the totals of chunks, scans of these, and one of everything. */
static void test_scans(void) {
  static const struct {
    uint64_t rows, columns, launches;
    int64_t axis;
  } cases[] = {{1000, 256, 1, 1}, {9, 4096, 1, 1},    {256, 50, 1, 0},    {1 << 20, 3, 1, 1}, {9, 4097, 3, 1},
               {257, 50, 3, 0},   {2, 1 << 20, 3, 1}, {1 << 16, 50, 3, 0}, {1, (1 << 20) + 1, 5, 1},
               {1 << 30, 3, 7, 0}, {1 << 30, 50, 7, 0}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    hg_computation *c = sums_along(cases[i].rows, cases[i].columns, cases[i].axis);
    CHECK_EQ_U64(launches_of(c, &gpu, NULL), cases[i].launches);
  }
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

/* ---- numbers of sources ------------------------------------------------------------------------------------------ */

/* The widest temporary that notes sources by number (an integer's, where elements are f32) of a scatter of so many to
 * one place, and whether all lanes may go as far as they have to. */
static atlas_type noted_as(hg_op op, uint64_t sources, const ops_target *target, uint64_t *step_limit) {
  hg_computation *c = begin();
  hg_value x = input(c, 1, 1), inputs[3] = {x, 0, x};
  hg_tensor like = hg_tensor_of(NULL, ATLAS_i64, 2, (uint64_t[]){1, sources});
  like.stride[1] = 0;
  inputs[1] = hg_computation_input(c, NULL, &like);
  like.type = ATLAS_f32;
  inputs[2] = hg_computation_input(c, NULL, &like);
  put_out(c, hg_compute(c, op, inputs, 3, NULL, 0));
  ops_plan plan;
  CHECK_EQ_U64(ops_plan_computation(&c->allocator, c, 0, target, &plan), HG_OK);
  const ops_storage *storages = plan.storages.data;
  const ops_step *steps = plan.steps.data;
  atlas_type widest = ATLAS_u32;
  for (uint32_t i = 0; i < plan.storages.count; i++)
    if (storages[i].kind == OPS_TEMPORARY && storages[i].type == ATLAS_u64) widest = ATLAS_u64;
  *step_limit = 0;
  for (uint32_t i = 0; i < plan.steps.count; i++)
    if (steps[i].step_limit > *step_limit) *step_limit = steps[i].step_limit;
  ops_plan_release(&plan);
  hg_computation_release(c);
  return widest;
}

/* 32 bits wherever they are enough. */
static void test_numbers_of_sources(void) {
  static const ops_target *const targets[] = {&processor, &gpu};
  const uint64_t many = UINT64_C(1) << 32;
  uint64_t limit;
  for (int t = 0; t < 2; t++) {
    CHECK_EQ_U64(noted_as(HG_OP_scatter, many - 1, targets[t], &limit), ATLAS_u32);
    CHECK_EQ_U64(noted_as(HG_OP_scatter, many, targets[t], &limit), ATLAS_u64);
    CHECK_EQ_U64(noted_as(HG_OP_scatter_add, (UINT64_C(1) << 24) + 1, targets[t], &limit), ATLAS_u32);
    CHECK_EQ_U64(limit, 0);
    CHECK_EQ_U64(noted_as(HG_OP_scatter_add, many / 2, targets[t], &limit), ATLAS_u32);
    CHECK(limit >= 4 * many / 2);
    CHECK_EQ_U64(noted_as(HG_OP_scatter_add, many + 9, targets[t], &limit), ATLAS_u64);
    CHECK_EQ_U64(noted_as(HG_OP_scatter_add, UINT64_C(1) << 38, targets[t], &limit), ATLAS_u64);
    CHECK(limit > UINT64_C(1) << 40);
  }
}

/* ---- products of more than tiles have numbers -------------------------------------------------------------------- */

static hg_value repeated(hg_computation *c, uint64_t batch, uint64_t rows, uint64_t columns) {
  hg_tensor like = hg_tensor_of(NULL, ATLAS_bf16, 3, (uint64_t[]){batch, rows, columns});
  memset(like.stride, 0, sizeof like.stride);
  return hg_computation_input(c, NULL, &like);
}

/* Contractions of the product of [batch, m, k] and [batch, k, n], which is planned if it is of a size to be. */
static uint32_t contractions_of(uint64_t batch, uint64_t m, uint64_t k, uint64_t n) {
  hg_computation *c = begin();
  hg_value a = repeated(c, batch, m, k), b = repeated(c, batch, k, n), product = two(c, HG_OP_matmul, a, b);
  hg_tensor is;
  uint32_t count = 0;
  CHECK_EQ_U64(hg_computation_describe(c, product, &is), HG_OK);
  CHECK(is.type == ATLAS_bf16 && is.rank == 3 && is.shape[0] == batch && is.shape[1] == m && is.shape[2] == n);
  for (uint32_t i = 0; i < c->nodes.count; i++) count += ops_at(c, i + 1)->kind == OPS_CONTRACT;
  put_out(c, two(c, HG_OP_minimum, product, product));
  CHECK(launches_of(c, &processor, NULL) >= count);
  return count;
}

static void test_wide_products(void) {
  const uint64_t most = INT32_MAX, many = UINT64_C(1) << 32;
  CHECK_EQ_U64(contractions_of(1, 2, most, 3), 1);
  CHECK_EQ_U64(contractions_of(1, most, 1, 1), 1);
  CHECK_EQ_U64(contractions_of(1, 2, most + 1, 3), 2);
  CHECK_EQ_U64(contractions_of(1, 1, many + 9, 1), 5); /* four of 2^30, and nine products */
  CHECK_EQ_U64(contractions_of(1, most + 9, 3, 2), 3);
  CHECK_EQ_U64(contractions_of(1, 2, 1, most + 9), 3);
  CHECK_EQ_U64(contractions_of(most + 9, 2, 2, 2), 3);
  CHECK_EQ_U64(contractions_of(most / 2 + 2, 1, 2, 64), 3); /* two tiles each */
  hg_computation *c = begin();
  CHECK_EQ_U64(two(c, HG_OP_matmul, repeated(c, 1, 1 << 21, 1), repeated(c, 1, 1, 1 << 21)), 0);
  CHECK_STR(hg_last_error(), "a product of shape [1, 2097152, 2097152] has more than 2^40 elements");
  hg_computation_release(c);
}

int main(void) {
  test_numbers_of_sources();
  test_wide_products();
  test_computed_anew();
  test_functions();
  test_reductions_beside();
  test_read_anew();
  test_widening();
  test_ways();
  test_sums_of_other_rows();
  test_many_inputs();
  test_long_chains();
  test_many_values();
  test_many_rows();
  test_many_views();
  test_reshapes();
  test_long_rows();
  test_kinds();
  test_a_launch_for_each_factor();
  test_results_of_one_launch();
  test_scans();
  check_failures(sorted_rows(), 20);
  check_failures(factored_matrices(), 20);
  check_failures(sums_along(2, 5000, 1), 20);
  check_failures(sum_of(40), 20);
  check_failures(many_results(), 20);
  return check_report();
}
