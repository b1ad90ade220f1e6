/* eager.c - what a call of one operation costs on the CPU, and where the time goes.
 *
 *   bench_eager [--json]
 *
 * Each row: what, and nanoseconds, the median and the 10th and 90th percentile of many. */
#include "hologram/ops.h"

#include "base/os.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 301, BATCH = 1000 };

static int json, rows_printed;

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_row(const char *name, double *samples, size_t count) {
  qsort(samples, count, sizeof samples[0], ascending);
  double low = samples[count / 10], median = samples[count / 2], high = samples[count * 9 / 10];
  if (json)
    printf("%s\n{\"name\":\"%s\",\"p10_ns\":%.1f,\"median_ns\":%.1f,\"p90_ns\":%.1f}", rows_printed++ ? "," : "", name,
           low, median, high);
  else printf("%-52s %14.1f %14.1f %14.1f\n", name, low, median, high);
  fflush(stdout);
}

static void measure(const char *name, hg_status (*action)(void *user), void *user) {
  static double samples[MOST_SAMPLES];
  for (size_t count = 0; count < MOST_SAMPLES; count++) {
    uint64_t start = hg_time_ns();
    for (uint32_t k = 0; k < BATCH; k++)
      if (action(user) != HG_OK) {
        fprintf(stderr, "bench_eager: %s: %s\n", name, hg_last_error());
        exit(1);
      }
    samples[count] = (double)(hg_time_ns() - start) / BATCH;
  }
  print_row(name, samples, MOST_SAMPLES);
}

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

static const char add_text[] =
    ".program add\n"
    ".buffer x f32 in\n"
    ".buffer y f32 in\n"
    ".buffer z f32 out\n"
    "    ldg.f32 r0, [x + lane]\n"
    "    ldg.f32 r1, [y + lane]\n"
    "    add.f32 r2, r0, r1\n"
    "    stg.f32 [z + lane], r2\n"
    "    exit\n";

static hg_status no_engine(void *device, void *kernel, atlas_launch *launch) {
  (void)device;
  (void)kernel;
  (void)launch;
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
  HG_TRY(atlas_parse(NULL, add_text, sizeof add_text - 1, "add", &program));
  HG_TRY(hg_kernel_create(executor, program, &s.kernel));
  atlas_program_release(program);
  HG_TRY(find(&s));
  hg_backend stub = *executor->backend;
  const hg_backend *real = executor->backend;
  stub.launch = no_engine;
#define ROW(format, action)                                               \
  do {                                                                    \
    snprintf(name, sizeof name, format, (unsigned long long)count);       \
    measure(name, action, &s);                                            \
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

int main(int argc, char **argv) {
  hg_executor *executor = NULL;
  hg_executor_desc on_cpu = {.backend = HG_BACKEND_CPU};
  json = argc > 1 && strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    fprintf(stderr, "usage: bench_eager [--json]\n");
    return 2;
  }
  if (json) printf("[");
  else printf("%-52s %14s %14s %14s\n", "", "p10 ns", "median ns", "p90 ns");
  hg_status status = hg_executor_create(&on_cpu, &executor);
  if (status == HG_OK) status = measure_size(executor, 1);
  if (status == HG_OK) status = measure_size(executor, 1024);
  if (status != HG_OK) fprintf(stderr, "bench_eager: %s\n", hg_last_error());
  hg_executor_release(executor);
  if (json) printf("\n]\n");
  return status != HG_OK;
}
