/* test_operation_failures.c - memory runs out at every allocation of a computation that is built, compiled and run, of
 * every kind of launch, of gradients, and of single operations: nothing is lost, what is updated in place is as it was,
 * and the next attempt has the right bits. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "hologram/ops.h"

#include "each_allocation.h"
#include "environment.h"

enum { INPUTS = 3, MOST = 1 << 18, MOST_OF_X = 81000 };

typedef struct shape {
  uint32_t rank;
  uint64_t size[3];
} shape;

/* x is put over with a formula of itself, w, and i, whole numbers below `limit`. */
typedef struct scene {
  const char *name, *formula;
  shape x, w, i;
  int64_t limit;
  int is_gradient; /* x less the gradient of the formula's sum by x */
  uint32_t flags;
  int is_crowded; /* there is room for hardly one executable */
} scene;

static const scene scenes[] = {
    {.name = "map", .formula = "x + exp(w)", .x = {2, {30, 40}}, .w = {1, {40}}},
    {.name = "map, others pushed out", .formula = "x * w", .x = {2, {30, 40}}, .w = {1, {40}}, .is_crowded = 1},
    {.name = "rows that are held", .formula = "softmax(x, -1) + w", .x = {2, {5, 300}}, .w = {1, {300}}},
    {.name = "rows, one by one",
     .formula = "softmax(x, -1) + w",
     .x = {2, {5, 30}},
     .w = {1, {30}},
     .flags = HG_NO_FUSION},
    {.name = "rows in a loop", .formula = "x - logsumexp(x * w, -1)", .x = {2, {9, 9000}}, .w = {1, {9000}}},
    {.name = "few long rows", .formula = "x - logsumexp(x * w, -1)", .x = {2, {2, 9000}}, .w = {1, {9000}}},
    {.name = "rows in parts", .formula = "x + sum(w, all, keep=0)", .x = {1, {4}}, .w = {1, {MOST}}},
    {.name = "columns", .formula = "x + sum(w, 0, keep=0)", .x = {1, {40}}, .w = {2, {700, 40}}},
    {.name = "columns beyond the caches",
     .formula = "x + sum(x * w, 0, keep=1)",
     .x = {3, {1, 17, 1000}},
     .w = {3, {128, 1, 1000}}},
    {.name = "a join of many",
     .formula = "x - sum(concatenate(w, w + 1, w, exp(w), w, w * w, w, w, w, w + 2), 0, keep=0)",
     .x = {1, {40}},
     .w = {2, {70, 40}}},
    {.name = "gradient of a join",
     .formula = "concatenate(x, w, x * x, w * x, x)",
     .x = {2, {30, 40}},
     .w = {2, {30, 40}},
     .is_gradient = 1},
    {.name = "contraction",
     .formula = "x + relu(matmul(w, w, transpose_b=1))",
     .x = {2, {40, 40}},
     .w = {2, {40, 300}}},
    {.name = "batched contraction",
     .formula = "x + matmul(w, w, transpose_b=1)",
     .x = {2, {6, 6}},
     .w = {3, {3, 6, 5}},
     .flags = HG_NO_FUSION},
    {.name = "fast contraction with what follows",
     .formula = "relu(matmul(x, w) + max(w, 0))",
     .x = {2, {40, 40}},
     .w = {2, {40, 40}},
     .flags = HG_NUMERICS_FAST},
    {.name = "fast contraction, then another launch",
     .formula = "tanh(matmul(x, w) + max(w, 0))",
     .x = {2, {40, 40}},
     .w = {2, {40, 40}},
     .flags = HG_NUMERICS_FAST},
    {.name = "thin contraction", .formula = "matmul(w, x)", .x = {1, {300}}, .w = {2, {300, 300}}},
    {.name = "few results, long sums",
     .formula = "x + matmul(w, w, transpose_b=1)",
     .x = {2, {2, 2}},
     .w = {2, {2, 5000}}},
    {.name = "gather", .formula = "x + take(w, i)", .x = {2, {9, 4}}, .w = {2, {20, 4}}, .i = {1, {9}}, .limit = 20},
    {.name = "scatter",
     .formula = "scatter_add(x, i, w, axis=0)",
     .x = {2, {7, 4}},
     .w = {2, {50, 4}},
     .i = {2, {50, 4}},
     .limit = 7},
    {.name = "random", .formula = "dropout(x, i) + w", .x = {1, {300}}, .w = {0}, .i = {0}, .limit = 7},
    {.name = "joins", .formula = "x + pad(w, low=[1, 0], high=[2, 1])", .x = {2, {9, 4}}, .w = {2, {6, 3}}},
    {.name = "gradient of rows",
     .formula = "layer_norm(x) * w",
     .x = {2, {5, 30}},
     .w = {2, {5, 30}},
     .is_gradient = 1},
    {.name = "gradient of products",
     .formula = "mse(gelu(linear(w, x)), w)",
     .x = {2, {20, 20}},
     .w = {2, {9, 20}},
     .is_gradient = 1},
    {.name = "gradient of a gather",
     .formula = "cross_entropy(take(x, i), i)",
     .x = {2, {6, 8}},
     .w = {0},
     .i = {1, {9}},
     .limit = 6,
     .is_gradient = 1},
};

static uint64_t count_of(const shape *s) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < s->rank; i++) count *= s->size[i];
  return count;
}

typedef struct stage {
  const scene *scene;
  hg_buffer *buffers[INPUTS];
  hg_tensor tensors[INPUTS];
  int is_eager;
  hg_op op;
  float expected[MOST_OF_X], found[MOST_OF_X];
} stage;

static float numbers[MOST];

static uint64_t bytes_of_x(const stage *s) { return count_of(&s->scene->x) * sizeof(float); }

static void prepare(void *state) {
  stage *s = state;
  const shape *shapes[INPUTS] = {&s->scene->x, &s->scene->w, &s->scene->i};
  int64_t places[256];
  for (int64_t k = 0; k < 256; k++) places[k] = s->scene->limit > 0 ? k * 5 % s->scene->limit : 0;
  for (int k = 0; k < INPUTS; k++) {
    uint64_t count = count_of(shapes[k]);
    s->buffers[k] = k < 2 ? buffer_of(count * 4, numbers) : buffer_of(count * 8, places);
    s->tensors[k] = hg_tensor_of(s->buffers[k], k < 2 ? ATLAS_f32 : ATLAS_i64, shapes[k]->rank, shapes[k]->size);
  }
  if (!s->scene->is_crowded) return;
  CHECK_EQ_U64(hg_executables_limit(executor, 4000), HG_OK);
  CHECK_EQ_U64(hg_apply(HG_OP_neg, &s->tensors[1], 1, NULL, 0, &s->tensors[1], 1, NULL), HG_OK);
  CHECK_EQ_U64(hg_apply(HG_OP_neg, &s->tensors[1], 1, NULL, 0, &s->tensors[1], 1, NULL), HG_OK);
}

static hg_status build(const stage *s, hg_computation *c) {
  static const char *const names[INPUTS] = {"x", "w", "i"};
  hg_value values[INPUTS], gradient = 0;
  for (int k = 0; k < INPUTS; k++) values[k] = hg_computation_input(c, names[k], &s->tensors[k]);
  hg_value y = hg_compute_formula(c, s->scene->formula, names, values, INPUTS);
  if (s->scene->is_gradient) {
    hg_value sum = hg_compute(c, HG_OP_sum, &y, 1, NULL, 0);
    hg_gradient(c, sum, 0, values, 1, &gradient);
    y = hg_compute(c, HG_OP_sub, (hg_value[]){values[0], gradient}, 2, NULL, 0);
  } else if (s->tensors[0].rank == 2 && s->tensors[1].rank == 3) { /* the batches' first */
    hg_argument axis = {.count = 1, .integers = {0}};
    y = hg_compute(c, HG_OP_max, &y, 1, &axis, 1);
  }
  hg_computation_update(c, values[0], y);
  return hg_computation_status(c);
}

static hg_status act(void *state, const hg_allocator *allocator) {
  stage *s = state;
  if (s->is_eager) return hg_apply(s->op, s->tensors, s->op == HG_OP_softmax ? 1 : 2, NULL, 0, s->tensors, 1, NULL);
  hg_computation *c = NULL;
  hg_executable *e = NULL;
  hg_compile_desc desc = {.flags = s->scene->flags};
  hg_status status = hg_computation_create(allocator, &c);
  if (status == HG_OK) status = build(s, c);
  if (status == HG_OK) status = hg_compile(executor, c, &desc, &e);
  hg_computation_release(c);
  if (status == HG_OK) status = hg_run(e, s->tensors, INPUTS, NULL, 0, NULL, NULL);
  hg_executable_release(e);
  return status;
}

/* x as it was, or with the bits that it had where nothing failed. */
static void check(void *state, hg_status status) {
  stage *s = state;
  CHECK_EQ_U64(hg_buffer_read(s->buffers[0], 0, s->found, bytes_of_x(s)), HG_OK);
  int is_right = memcmp(s->found, status == HG_OK ? s->expected : numbers, bytes_of_x(s)) == 0;
  if (!check_note(is_right)) printf("  %s: %s\n", s->scene->name, status == HG_OK ? "other bits" : "x has changed");
}

static void end(void *state) {
  stage *s = state;
  for (int k = 0; k < INPUTS; k++) hg_buffer_release(s->buffers[k]);
}

static long all_failures;

static void try_all(stage *s) {
  static const attempt all = {.prepare = prepare, .act = act, .check = check, .end = end};
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  prepare(s);
  hg_status status = act(s, NULL);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) printf("  %s: %s\n", s->scene->name, hg_last_error());
  CHECK_EQ_U64(hg_buffer_read(s->buffers[0], 0, s->expected, bytes_of_x(s)), HG_OK);
  CHECK(memcmp(s->expected, numbers, bytes_of_x(s)) != 0);
  end(s);
  hg_executor_release(executor);
  long failures = each_allocation_fails(&all, s);
  /* where a place is tried once a stage may have none of its own */
  if (!check_note(failures > 0 || most_times() == 1)) printf("  %s: nothing failed\n", s->scene->name);
  all_failures += failures;
}

int main(void) {
  static const hg_op eager[] = {HG_OP_add, HG_OP_softmax, HG_OP_matmul};
  static const scene square = {.name = "single operation", .x = {2, {40, 40}}, .w = {2, {40, 40}}};
  static stage s;
  set("HOLOGRAM_NUM_THREADS", "1"); /* so that allocations have one order */
  for (uint64_t k = 0; k < MOST; k++) numbers[k] = (float)((k * 7919) % 1024) / 512 - 1;
  for (size_t k = 0; k < COUNT(scenes); k++) {
    s = (stage){.scene = &scenes[k]};
    try_all(&s);
  }
  for (size_t k = 0; k < COUNT(eager); k++) {
    s = (stage){.scene = &square, .is_eager = 1, .op = eager[k]};
    try_all(&s);
  }
  CHECK(all_failures > 500);
  return check_report();
}
