/* test_small_stack.c - a thread with 256 KiB of stack, which is all that ops.h asks for, for formulas as deep as they
 * may be; half of it for computations whose values are made one of the other, of every kind of node. */
#include "hologram/ops.h"

#include "launching.h"

#include <pthread.h>

enum { OF_FORMULAS = 256 * 1024, OF_GRAPHS = 128 * 1024, STEPS = 150, SIDE = 8 };

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

/* STEPS times the formula of what it gave before, and the gradient of the sum. */
static void run_long_chain(const char *formula, const hg_tensor *x, const hg_tensor *w) {
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
  if (status == HG_OK) CHECK_EQ_U64(hg_run(e, (hg_tensor[]){*x, *w}, 2, NULL, 0, NULL, NULL), HG_OK);
  hg_executable_release(e);
}

static void *work(void *unused) {
  static const char *const formulas[] = {
      "sin(x * w) + x", "sin(pad(slice(x, axis=0, start=1, stop=7), low=[1, 0], high=[1, 0]))",
      "sin(concatenate(slice(x, axis=0, start=4, stop=8), slice(x, axis=0, start=0, stop=4), axis=0))",
      "sin(reshape(permute(x, [1, 0]), shape=[8, 8]))", "tanh(matmul(x, w))", "softmax(x + w, -1)",
      "x - max(x, 0)", "update(x, sin(slice(x, axis=0, start=0, stop=2)), start=[3, 0], stop=[5, 8])"};
  static float numbers[SIDE * SIDE];
  (void)unused;
  hg_buffer *buffers[] = {buffer_of(sizeof numbers, numbers), buffer_of(sizeof numbers, numbers)};
  hg_tensor x = hg_tensor_of(buffers[0], ATLAS_f32, 2, (uint64_t[]){SIDE, SIDE});
  hg_tensor w = hg_tensor_of(buffers[1], ATLAS_f32, 2, (uint64_t[]){SIDE, SIDE});
  for (size_t i = 0; i < COUNT(formulas); i++) run_long_chain(formulas[i], &x, &w);
  hg_buffer_release(buffers[0]);
  hg_buffer_release(buffers[1]);
  return NULL;
}

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
  run_on(OF_FORMULAS, write_deep_formulas);
  run_on(OF_GRAPHS, work);
  hg_executor_release(executor);
  return check_report();
}
