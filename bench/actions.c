/* actions.c - see actions.h. */
#include "actions.h"

#include "base/os.h"
#include "base/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_SAMPLES = 301,
  FEWEST_SAMPLES = 15,
  ROW_NS = 300000000 /* enough time for a row */
};

static const char *program;
static int json, rows_printed;

const char bench_add_text[] =
    ".program add\n"
    ".buffer x f32 in\n"
    ".buffer y f32 in\n"
    ".buffer z f32 out\n"
    "    ldg.f32 r0, [x + lane]\n"
    "    ldg.f32 r1, [y + lane]\n"
    "    add.f32 r2, r0, r1\n"
    "    stg.f32 [z + lane], r2\n"
    "    exit\n";

void bench_begin(const char *name, int argc, char **argv, const char *heading) {
  program = name;
  json = argc > 1 && strcmp(argv[1], "--json") == 0;
  if (argc > 1 + json) {
    fprintf(stderr, "usage: %s [--json]\n", name);
    exit(2);
  }
  if (json) printf("[");
  else printf("%s%-52s %14s %14s %14s\n", heading, "", "p10 ns", "median ns", "p90 ns");
}

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

static void run_batch(hg_status (*action)(void *user), void *user, uint32_t batch) {
  for (uint32_t k = 0; k < batch; k++) {
    hg_status status = action(user);
    if (status != HG_OK) exit(bench_end(status));
  }
}

void bench_measure(const char *row, hg_status (*action)(void *user), void *user, uint32_t batch, uint64_t pause_ns) {
  static double samples[MOST_SAMPLES];
  size_t count = 0;
  run_batch(action, user, 1);
  for (uint64_t begin = hg_time_ns(); count < MOST_SAMPLES;) {
    if (count >= FEWEST_SAMPLES && hg_time_ns() - begin > ROW_NS) break;
    uint64_t end = hg_time_ns() + pause_ns;
    while (hg_time_ns() < end) hg_spin_pause();
    uint64_t start = hg_time_ns();
    run_batch(action, user, batch);
    samples[count++] = (double)(hg_time_ns() - start) / batch;
  }
  print_row(row, samples, count);
}

int bench_end(hg_status status) {
  if (status != HG_OK) fprintf(stderr, "%s: %s\n", program, hg_last_error());
  else if (json) printf("\n]\n");
  return status != HG_OK;
}

static hg_status no_engine(void *device, void *kernel, atlas_launch *launch) {
  (void)device;
  (void)kernel;
  (void)launch;
  return HG_OK;
}

hg_backend bench_without_engine(const hg_executor *executor) {
  hg_backend stub = *executor->backend;
  stub.launch = no_engine;
  return stub;
}
