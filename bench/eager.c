/* eager.c - what a call of one operation costs on the CPU, and where the time goes.
 *
 *   bench_eager [--json]
 *
 * Each row: what, and nanoseconds, the median and the 10th and 90th percentile of many. */
#include "hologram/ops.h"

#include "actions.h"

#include <stdio.h>
#include <string.h>

enum {
  CALLS = 1000, /* a sample */
  LARGE = 1000  /* operations, a multiple of 20 */
};

typedef struct setting {
  hg_executor *executor;
  hg_tensor inputs[2], out;
  hg_executable *executable;
  hg_kernel *kernel;
  hg_binding bindings[3];
  uint64_t count;
} setting;

static hg_status apply(void *user) {
  setting *s = user;
  return hg_apply(HG_OP_add, s->inputs, 2, NULL, 0, &s->out, 1, NULL);
}

static hg_status apply_in_place(void *user) {
  setting *s = user;
  return hg_apply(HG_OP_add, s->inputs, 2, NULL, 0, s->inputs, 1, NULL);
}

static hg_status run(void *user) {
  setting *s = user;
  return hg_run(s->executable, s->inputs, 2, &s->out, 1, NULL, NULL);
}

static hg_status launch(void *user) {
  setting *s = user;
  hg_launch_desc desc = {.lanes = s->count, .bindings = s->bindings, .binding_count = 3};
  return hg_launch(s->kernel, &desc, NULL);
}

static hg_status find(void *user) {
  setting *s = user;
  hg_computation *c = NULL;
  hg_executable *e = NULL;
  HG_TRY(hg_computation_create(NULL, &c));
  hg_value in[2] = {hg_computation_input(c, "a", &s->inputs[0]), hg_computation_input(c, "b", &s->inputs[1])};
  HG_TRY(hg_computation_output(c, "out", hg_compute(c, HG_OP_add, in, 2, NULL, 0), NULL));
  HG_TRY(hg_compile(s->executor, c, NULL, &e));
  hg_computation_release(c);
  if (s->executable == NULL) s->executable = e;
  else hg_executable_release(e);
  return HG_OK;
}

static hg_status measure_size(hg_executor *executor, uint64_t count) {
  setting s = {.executor = executor, .count = count};
  atlas_program *program = NULL;
  hg_buffer *buffers[3];
  char name[80];
  for (uint32_t i = 0; i < 3; i++) {
    HG_TRY(hg_buffer_create(executor, NULL, count * sizeof(float), &buffers[i]));
    s.bindings[i] = (hg_binding){.slot = i, .buffer = buffers[i]};
    *(i < 2 ? &s.inputs[i] : &s.out) = hg_tensor_of(buffers[i], ATLAS_f32, 1, &count);
  }
  HG_TRY(atlas_parse(NULL, bench_add_text, strlen(bench_add_text), "add", &program));
  HG_TRY(hg_kernel_create(executor, program, &s.kernel));
  atlas_program_release(program);
  HG_TRY(find(&s));
  const hg_backend stub = bench_without_engine(executor), *real = executor->backend;
#define ROW(format, action)                                               \
  do {                                                                    \
    snprintf(name, sizeof name, format, (unsigned long long)count);       \
    bench_measure(name, action, &s, CALLS, 0);                                            \
  } while (0)
  ROW("hg_launch of an add of %llu", launch);
  ROW("hg_run of an add of %llu", run);
  ROW("hg_apply of an add of %llu", apply);
  ROW("hg_apply of an add of %llu, in place", apply_in_place);
  executor->backend = &stub;
  ROW("hg_launch of an add of %llu, empty engine", launch);
  ROW("hg_run of an add of %llu, empty engine", run);
  ROW("hg_apply of an add of %llu, empty engine", apply);
  executor->backend = real;
  ROW("building and finding an add of %llu", find);
  hg_executable_release(s.executable);
  hg_kernel_release(s.kernel);
  for (uint32_t i = 0; i < 3; i++) hg_buffer_release(buffers[i]);
  return HG_OK;
}

/* ---- large computations ------------------------------------------------------------------------------------------ */

typedef struct large {
  const hg_executor_desc *desc;
  hg_executor *executor;
  hg_computation *computation;
  int is_chain;
} large;

static hg_value of_two(hg_computation *c, hg_op op, hg_value a, hg_value b) {
  return hg_compute(c, op, (hg_value[]){a, b}, 2, NULL, 0);
}

/* What every number of makes another program of. */
static hg_value write_chain(hg_computation *c, hg_value x) {
  hg_value value = x;
  for (uint32_t i = 0; i < LARGE / 4; i++) {
    value = of_two(c, HG_OP_mul, value, hg_computation_number(c, ATLAS_f32, 0.5 + i));
    value = hg_compute(c, HG_OP_abs, (hg_value[]){of_two(c, HG_OP_add, value, x)}, 1, NULL, 0);
    value = of_two(c, HG_OP_minimum, value, x);
  }
  return value;
}

/* Layers of ten operations each, as networks have them: all alike. */
static hg_value write_layers(hg_computation *c, hg_value x) {
  static const hg_argument along_rows[] = {{.count = 1, .integers = {1}}, {.count = 1, .integers = {1}}};
  hg_value value = x;
  for (uint32_t i = 0; i < LARGE / 10; i++) {
    hg_value less = of_two(c, HG_OP_sub, value, hg_compute(c, HG_OP_max, &value, 1, along_rows, 2));
    hg_value e = hg_compute(c, HG_OP_exp, &less, 1, NULL, 0);
    hg_value share = of_two(c, HG_OP_div, e, hg_compute(c, HG_OP_sum, &e, 1, along_rows, 2));
    hg_value half = of_two(c, HG_OP_mul, share, hg_computation_number(c, ATLAS_f32, 0.5));
    value = hg_compute(c, HG_OP_abs, (hg_value[]){of_two(c, HG_OP_sub, half, x)}, 1, NULL, 0);
    value = of_two(c, HG_OP_minimum, of_two(c, HG_OP_add, value, x), x);
  }
  return value;
}

static hg_status build(void *user) {
  large *l = user;
  hg_tensor x = hg_tensor_of(NULL, ATLAS_f32, 2, (uint64_t[]){64, 256});
  HG_TRY(hg_computation_create(NULL, &l->computation));
  hg_value in = hg_computation_input(l->computation, "x", &x);
  return hg_computation_output(l->computation, "y", (l->is_chain ? write_chain : write_layers)(l->computation, in),
                               NULL);
}

static hg_status find_large(void *user) {
  large *l = user;
  hg_executable *e = NULL;
  HG_TRY(hg_compile(l->executor, l->computation, NULL, &e));
  hg_executable_release(e);
  return HG_OK;
}

/* By a new executor, which keeps nothing of the last one. */
static hg_status build_and_compile(void *user) {
  large *l = user;
  HG_TRY(hg_executor_create(l->desc, &l->executor));
  hg_status status = build(l);
  if (status == HG_OK) status = find_large(l);
  hg_computation_release(l->computation);
  hg_executor_release(l->executor);
  return status;
}

static hg_status measure_large(const hg_executor_desc *desc, int is_chain) {
  large l = {.desc = desc, .is_chain = is_chain};
  const char *what = is_chain ? "a chain" : "layers";
  char name[80];
  snprintf(name, sizeof name, "building and compiling %d operations, %s", LARGE, what);
  bench_measure(name, build_and_compile, &l, 1, 0);
  HG_TRY(hg_executor_create(desc, &l.executor));
  HG_TRY(build(&l));
  snprintf(name, sizeof name, "finding %d operations again, %s", LARGE, what);
  bench_measure(name, find_large, &l, 1, 0);
  hg_computation_release(l.computation);
  hg_executor_release(l.executor);
  return HG_OK;
}

int main(int argc, char **argv) {
  hg_executor *executor = NULL;
  hg_executor_desc on_cpu = {.backend = HG_BACKEND_CPU};
  bench_begin("bench_eager", argc, argv, "");
  hg_status status = hg_executor_create(&on_cpu, &executor);
  if (status == HG_OK) status = measure_size(executor, 1);
  if (status == HG_OK) status = measure_size(executor, 1024);
  hg_executor_release(executor);
  for (int is_chain = 1; is_chain >= 0 && status == HG_OK; is_chain--) status = measure_large(&on_cpu, is_chain);
  return bench_end(status);
}
