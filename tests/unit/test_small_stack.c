/* test_small_stack.c - threads with half of the 256 KiB of stack that ops.h asks for: formulas as deep and as long as
 * they may be; plans of computations whose values are made one of the other, of every kind of node. What they have
 * planned runs with all of it: machine code keeps there what is live in a block. */
#include "hologram/ops.h"

#include "launching.h"

#include <pthread.h>

enum { OF_PLANS = 128 * 1024, OF_LAUNCHES = 256 * 1024, STEPS = 150, SIDE = 8 };

static void nest(char *text, size_t bytes, const char *before, const char *after, int times) {
  size_t used = 0;
  for (int i = 0; i < times; i++) used += (size_t)snprintf(text + used, bytes - used, "%s", before);
  used += (size_t)snprintf(text + used, bytes - used, "x");
  for (int i = 0; i < times; i++) used += (size_t)snprintf(text + used, bytes - used, "%s", after);
}

static void *write_deep_formulas(void *unused) {
  static const char *const parts[][2] = {{"(", ")"}, {"-(", ")"}, {"clip(", ", low=0)"}, {"layer_norm(", ")"},
                                         {"matmul(", ", w)"}};
  char text[2000];
  (void)unused;
  for (size_t i = 0; i < COUNT(parts); i++) {
    hg_computation *c = NULL;
    hg_tensor matrix = hg_tensor_of(NULL, ATLAS_f32, 2, (uint64_t[]){SIDE, SIDE});
    nest(text, sizeof text, parts[i][0], parts[i][1], i == 1 ? 20 : 30); /* a sign is a step of its own */
    CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
    hg_value values[] = {hg_computation_input(c, "x", &matrix), hg_computation_input(c, "w", &matrix)};
    CHECK(hg_compute_formula(c, text, (const char *[]){"x", "w"}, values, 2) != 0);
    CHECK_EQ_U64(hg_computation_status(c), HG_OK);
    hg_computation_release(c);
  }
  return NULL;
}

/* x + x + x ..., and the same of products. */
static void *write_long_formulas(void *unused) {
  static const char operators[] = {'+', '*'};
  enum { TERMS = 20000 };
  static char text[2 * TERMS];
  (void)unused;
  for (uint32_t i = 0; i < COUNT(operators); i++) {
    hg_computation *c = NULL;
    hg_tensor matrix = hg_tensor_of(NULL, ATLAS_f32, 2, (uint64_t[]){SIDE, SIDE});
    for (uint32_t k = 0; k < TERMS; k++) text[2 * k] = 'x', text[2 * k + 1] = k + 1 < TERMS ? operators[i] : '\0';
    CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
    hg_value x = hg_computation_input(c, "x", &matrix);
    CHECK(hg_compute_formula(c, text, (const char *[]){"x"}, &x, 1) != 0);
    CHECK_EQ_U64(hg_computation_status(c), HG_OK);
    hg_computation_release(c);
  }
  return NULL;
}

/* STEPS times the formula of what it gave before, and the gradient of the sum. */
static hg_executable *compile_long_chain(const char *formula, const hg_tensor *x, const hg_tensor *w) {
  hg_computation *c = NULL;
  hg_executable *e = NULL;
  hg_value by = 0;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value values[] = {hg_computation_input(c, "x", x), hg_computation_input(c, "w", w)}, y[] = {values[0], values[1]};
  for (int i = 0; i < STEPS; i++) y[0] = hg_compute_formula(c, formula, (const char *[]){"x", "w"}, y, 2);
  hg_value sum = hg_compute(c, HG_OP_sum, y, 1, NULL, 0);
  hg_gradient(c, sum, 0, values, 1, &by);
  hg_computation_update(c, values[0], by);
  hg_status status = hg_compile(executor, c, NULL, &e);
  hg_computation_release(c);
  if (!check_note(status == HG_OK)) printf("%s: %s\n", formula, hg_last_error());
  return e;
}

static const char *const formulas[] = {
    "sin(x * w) + x", "sin(pad(slice(x, axis=0, start=1, stop=7), low=[1, 0], high=[1, 0]))",
    "sin(concatenate(slice(x, axis=0, start=4, stop=8), slice(x, axis=0, start=0, stop=4), axis=0))",
    "sin(reshape(permute(x, [1, 0]), shape=[8, 8]))", "tanh(matmul(x, w))", "softmax(x + w, -1)",
    "x - max(x, 0)", "update(x, sin(slice(x, axis=0, start=0, stop=2)), start=[3, 0], stop=[5, 8])"};
static hg_executable *executables[COUNT(formulas)];

static void *plan_long_chains(void *unused) {
  hg_tensor matrix = hg_tensor_of(NULL, ATLAS_f32, 2, (uint64_t[]){SIDE, SIDE});
  (void)unused;
  for (size_t i = 0; i < COUNT(formulas); i++) executables[i] = compile_long_chain(formulas[i], &matrix, &matrix);
  return NULL;
}

static void *run_long_chains(void *unused) {
  static float numbers[SIDE * SIDE];
  (void)unused;
  hg_buffer *buffers[] = {buffer_of(sizeof numbers, numbers), buffer_of(sizeof numbers, numbers)};
  hg_tensor x = hg_tensor_of(buffers[0], ATLAS_f32, 2, (uint64_t[]){SIDE, SIDE});
  hg_tensor w = hg_tensor_of(buffers[1], ATLAS_f32, 2, (uint64_t[]){SIDE, SIDE});
  for (size_t i = 0; i < COUNT(formulas); i++) {
    CHECK_EQ_U64(hg_run(executables[i], (hg_tensor[]){x, w}, 2, NULL, 0, NULL, NULL), HG_OK);
    hg_executable_release(executables[i]);
  }
  hg_buffer_release(buffers[0]);
  hg_buffer_release(buffers[1]);
  return NULL;
}

/* The largest stack last: it is kept for threads that ask for less. */
static void run_on(size_t stack_bytes, void *(*work_of)(void *)) {
  pthread_attr_t attributes;
  pthread_t thread;
  CHECK_EQ_U64(pthread_attr_init(&attributes), 0);
  CHECK_EQ_U64(pthread_attr_setstacksize(&attributes, stack_bytes), 0);
  CHECK_EQ_U64(pthread_create(&thread, &attributes, work_of, NULL), 0);
  CHECK_EQ_U64(pthread_join(thread, NULL), 0);
  pthread_attr_destroy(&attributes);
}

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  run_on(OF_PLANS, write_deep_formulas);
  run_on(OF_PLANS, write_long_formulas);
  run_on(OF_PLANS, plan_long_chains);
  run_on(OF_LAUNCHES, run_long_chains);
  hg_executor_release(executor);
  return check_report();
}
