/* test_large_graphs.c - graphs of a hundred thousand operations: planned, compiled and run on a thread with 128 KiB of
 * stack, in memory that grows as the graph does, and no faster. No times: what takes as long as the square of a graph's
 * size has shown in memory, or makes this test one that nobody waits for. */
#include "ops/plan/plan_computation.h"
#include "ops/run/executable.h"

#include "check.h"
#include "launching.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { STACK_BYTES = 128 * 1024, CHAIN = 100000, LOOP = 20000, MANY = 50000, ELEMENTS = 64 };
enum { MOST_MEGABYTES = 300 };

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Each piece begins with its size. */
enum { HEAD = 16 };
static atomic_llong live, most;

static void *allocate(void *user, size_t size) {
  (void)user;
  char *memory = malloc(size + HEAD);
  if (memory == NULL) return NULL;
  memcpy(memory, &size, sizeof size);
  long long now = atomic_fetch_add(&live, (long long)size) + (long long)size, before = most;
  while (now > before && !atomic_compare_exchange_weak(&most, &before, now)) continue;
  return memory + HEAD;
}

static void release(void *user, void *memory) {
  size_t size;
  (void)user;
  memcpy(&size, (char *)memory - HEAD, sizeof size);
  live -= (long long)size;
  free((char *)memory - HEAD);
}

static const hg_allocator measured = {.size = sizeof(hg_allocator), .allocate = allocate, .release = release};

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static hg_computation *begin(void) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(&measured, &c), HG_OK);
  return c;
}

static hg_value input(hg_computation *c, const char *name) {
  hg_tensor like = hg_tensor_of(NULL, ATLAS_f32, 1, (uint64_t[]){ELEMENTS});
  return hg_computation_input(c, name, &like);
}

static hg_value two(hg_computation *c, hg_op op, hg_value a, hg_value b) {
  return hg_compute(c, op, (hg_value[]){a, b}, 2, NULL, 0);
}

/* Compiles it, and releases it; the executable is in the cache as well, which counts what it holds. */
static hg_executable *compile(hg_computation *c) {
  hg_executable *e = NULL;
  hg_executables_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_computation_status(c), HG_OK);
  CHECK_EQ_U64(hg_compile(executor, c, NULL, &e), HG_OK);
  hg_computation_release(c);
  CHECK(most < (long long)MOST_MEGABYTES << 20);
  CHECK_EQ_U64(hg_executables_query(executor, &info), HG_OK);
  CHECK_EQ_U64(info.count, 1);
  CHECK(info.bytes > (uint64_t)live / 2 && info.bytes < (uint64_t)live * 2);
  return e;
}

static void drop(hg_executable *e) {
  hg_executable_release(e);
  CHECK_EQ_U64(hg_executables_limit(executor, 0), HG_OK);
  CHECK_EQ_U64(hg_executables_limit(executor, UINT64_C(1) << 30), HG_OK);
  most = live;
}

static float constant_of(int i) { return (i % 2 == 0 ? 0.5f : 0.25f) + (float)i / (1 << 20); }

static void run_chain(hg_executable *e) {
  float from[ELEMENTS], to[ELEMENTS], expected[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++) expected[i] = from[i] = (float)i - 10;
  for (int step = 0; step < CHAIN; step++)
    for (int i = 0; i < ELEMENTS; i++)
      expected[i] = step % 2 == 0 ? expected[i] * constant_of(step) : expected[i] + constant_of(step);
  hg_buffer *x = buffer_of(sizeof from, from), *y = buffer_of(sizeof to, to);
  hg_tensor in = hg_tensor_of(x, ATLAS_f32, 1, (uint64_t[]){ELEMENTS}), out = in;
  out.buffer = y;
  CHECK_EQ_U64(hg_run(e, &in, 1, &out, 1, NULL, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, to, sizeof to), HG_OK);
  CHECK(memcmp(to, expected, sizeof to) == 0);
  hg_buffer_release(x);
  hg_buffer_release(y);
}

/* Each operation on the last one's result, with a constant of its own. */
static void try_chain(void) {
  hg_computation *c = begin();
  hg_value x = input(c, "x");
  for (int i = 0; i < CHAIN; i++)
    x = two(c, i % 2 == 0 ? HG_OP_mul : HG_OP_add, x, hg_computation_number(c, ATLAS_f32, (double)constant_of(i)));
  CHECK_EQ_U64(hg_computation_output(c, "y", x, NULL), HG_OK);
  hg_executable *e = compile(c);
  CHECK(e->launch_count < CHAIN / 32); /* cut by halves, as deep as a launch may be */
  run_chain(e);
  drop(e);
}

/* A loop, and the gradient of what it gives. */
static void try_loop(void) {
  hg_computation *c = begin();
  hg_value from[] = {input(c, "x"), input(c, "w")}, x = from[0], by[2] = {0};
  for (int i = 0; i < LOOP; i++) {
    hg_value moved = two(c, HG_OP_mul, x, from[1]);
    x = two(c, HG_OP_add, x, hg_compute(c, HG_OP_tanh, &moved, 1, NULL, 0));
  }
  hg_value sum = hg_compute(c, HG_OP_sum, &x, 1, NULL, 0);
  CHECK_EQ_U64(hg_gradient(c, sum, 0, from, 2, by), HG_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_computation_output(c, i == 0 ? "x'" : "w'", by[i], NULL), HG_OK);
  hg_executable *e = compile(c);
  CHECK(e->launch_count < LOOP);
  drop(e);
}

/* Inputs and outputs side by side; an output over another one is refused, whichever they are. */
static void run_many(hg_executable *e) {
  enum { OF_ALL = MANY * ELEMENTS };
  static float numbers[OF_ALL], expected[OF_ALL];
  static hg_tensor inputs[MANY], outputs[MANY];
  for (int i = 0; i < OF_ALL; i++) numbers[i] = (float)i, expected[i] = 2 * (float)i;
  hg_buffer *x = buffer_of(sizeof numbers, numbers), *y = buffer_of(sizeof numbers, numbers);
  for (int i = 0; i < MANY; i++) {
    inputs[i] = hg_tensor_of(x, ATLAS_f32, 1, (uint64_t[]){ELEMENTS});
    outputs[i] = hg_tensor_of(y, ATLAS_f32, 1, (uint64_t[]){ELEMENTS});
    inputs[i].offset = outputs[i].offset = (int64_t)(MANY - 1 - i) * ELEMENTS;
  }
  CHECK_EQ_U64(hg_run(e, inputs, MANY, outputs, MANY, NULL, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, numbers, sizeof numbers), HG_OK);
  CHECK(memcmp(numbers, expected, sizeof numbers) == 0);
  outputs[7].offset = outputs[MANY - 8].offset + ELEMENTS / 2;
  CHECK_EQ_U64(hg_run(e, inputs, MANY, outputs, MANY, NULL, NULL), HG_BINDING);
  CHECK(strstr(hg_last_error(), "'y7'") != NULL && strstr(hg_last_error(), " overlap") != NULL);
  outputs[7] = inputs[7];
  CHECK_EQ_U64(hg_run(e, inputs, MANY, outputs, MANY, NULL, NULL), HG_OK); /* the very same view */
  outputs[7] = inputs[8];
  CHECK_EQ_U64(hg_run(e, inputs, MANY, outputs, MANY, NULL, NULL), HG_BINDING);
  hg_buffer_release(x);
  hg_buffer_release(y);
}

/* Operations that have nothing to do with each other. */
static void try_many(void) {
  hg_computation *c = begin();
  hg_value by = hg_computation_number(c, ATLAS_f32, 2);
  char name[16];
  for (int i = 0; i < MANY; i++) {
    snprintf(name, sizeof name, "x%d", i);
    hg_value y = two(c, HG_OP_mul, input(c, name), by);
    name[0] = 'y';
    CHECK_EQ_U64(hg_computation_output(c, name, y, NULL), HG_OK);
  }
  uint64_t kernels = 0;
  hg_executable *e = compile(c);
  CHECK_EQ_U64(e->launch_count, MANY);
  CHECK_EQ_U64(hg_executable_warm(e, &kernels), HG_OK);
  CHECK_EQ_U64(kernels, 1);
  run_many(e);
  drop(e);
}

/* Each with a constant of its own, and so with a kernel. */
static void try_kernels(void) {
  enum { KERNELS = 1500 };
  hg_computation *c = begin();
  hg_value x = input(c, "x");
  for (int i = 0; i < KERNELS; i++) {
    hg_value y = two(c, HG_OP_mul, x, hg_computation_number(c, ATLAS_f32, (double)constant_of(i)));
    CHECK_EQ_U64(hg_computation_output(c, NULL, y, NULL), HG_OK);
  }
  uint64_t kernels = 0;
  hg_executable *e = compile(c);
  CHECK_EQ_U64(hg_executable_warm(e, &kernels), HG_OK);
  CHECK_EQ_U64(kernels, KERNELS);
  CHECK_EQ_U64(executor->code_count, KERNELS);
  CHECK(executor->code_buckets >= KERNELS / 4);
  drop(e);
  CHECK_EQ_U64(executor->code_count, 0);
}

/* Two rows of launches, each of which waits for the last one of its own, and both for what comes first: what is before
 * them is every other one of them. As a GPU has it, where launches are joined as well. */
static void try_pairs(void) {
  enum { PAIRS = 6000 };
  static const ops_target targets[] = {{.for_gpu = 0, .compute_units = 2}, {.for_gpu = 1, .compute_units = 132}};
  hg_computation *c = begin();
  hg_tensor like = hg_tensor_of(NULL, ATLAS_f32, 2, (uint64_t[]){ELEMENTS, ELEMENTS});
  hg_value x[] = {hg_computation_input(c, "x", &like), hg_computation_input(c, "w", &like)};
  for (int i = 0; i < PAIRS; i++)
    for (int k = 0; k < 2; k++) {
      hg_argument arguments[] = {{.count = 1, .integers = {i % 2}}, {.count = 1, .integers = {1}}}; /* axes, keep */
      hg_value sum = hg_compute(c, HG_OP_sum, &x[k], 1, arguments, 2);
      x[k] = two(c, HG_OP_sub, x[k], sum);
    }
  for (int k = 0; k < 2; k++) CHECK_EQ_U64(hg_computation_output(c, k == 0 ? "y" : "z", x[k], NULL), HG_OK);
  for (int t = 0; t < 2; t++) {
    ops_plan plan;
    most = live;
    long long before = live;
    hg_status status = ops_plan_computation(&measured, c, 0, &targets[t], &plan);
    CHECK_EQ_U64(status, HG_OK);
    if (status != HG_OK) continue;
    CHECK(plan.steps.count >= PAIRS);
    CHECK((most - before) / (2 * PAIRS) < 8192); /* for each sum and what is taken away */
    ops_plan_release(&plan);
  }
  hg_computation_release(c);
}

static void *work(void *unused) {
  (void)unused;
  CHECK_EQ_U64(hg_executables_limit(executor, UINT64_C(1) << 30), HG_OK);
  try_chain();
  try_loop();
  try_many();
  try_kernels();
  try_pairs();
  return NULL;
}

int main(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK_EQ_U64(open_test_executor(&measured, &executor), HG_OK);
  CHECK_EQ_U64(pthread_attr_init(&attributes), 0);
  CHECK_EQ_U64(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
  CHECK_EQ_U64(pthread_create(&thread, &attributes, work, NULL), 0);
  CHECK_EQ_U64(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(&attributes);
  hg_executor_release(executor);
  CHECK_EQ_U64((uint64_t)live, 0);
  return check_report();
}
