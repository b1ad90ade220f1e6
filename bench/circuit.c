/* circuit.c - circuits over the 96 classes: how long 10,000 steps take to be read and brought to canonical form, and 48
 * swaps over all classes beside a program that reads and writes the boundary pool in place.
 *
 *   bench_circuit [cpu|cuda|metal]
 *
 * The two programs run in turns. Each figure is the shortest of many, and the median. */
#include "base/os.h"
#include "hologram/circuit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 10000, READS = 100, RUNS = 2000, MOST_STEP = 32 };

static const char in_place[] = ".program in_place\n.buffer pool u64 inout\n  ldg.u64 r0, [pool + lane]\n"
                               "  xor.u64 r0, r0, #1\n  stg.u64 [pool + lane], r0\n  exit\n";

typedef struct row {
  uint64_t times[RUNS];
  uint32_t count;
  double shortest, median;
} row;

static int by_size(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void print_row(const char *name, row *r) {
  qsort(r->times, r->count, sizeof *r->times, by_size);
  r->shortest = (double)r->times[0];
  uint32_t middle = r->count / 2;
  r->median = (double)r->times[middle];
  printf("%-44s %10.1f %10.1f\n", name, r->shortest / 1000, r->median / 1000);
}

/* Steps of every generator, by a linear congruential generator. */
static void write_steps(char *text) {
  static const char *const forms[] = {"mark@c%u", "copy@c%u->c%u", "swap@c%u<->c%u", "merge:mul@c%u[c%u,c%u]",
                                      "split@c%u[c%u,c%u]"};
  uint32_t state = 1;
  for (int i = 0; i < STEPS; i++) {
    uint32_t drawn[4];
    for (int k = 0; k < 4; k++) drawn[k] = (state = state * 1664525u + 1013904223u) >> 8;
    if (i > 0) text += sprintf(text, " . ");
    text += snprintf(text, MOST_STEP, forms[drawn[0] % 5], drawn[1] % 96, drawn[2] % 96, drawn[3] % 96);
  }
}

static hg_status measure_reading(void) {
  static char text[STEPS * (MOST_STEP + 3)];
  static row reading;
  write_steps(text);
  for (reading.count = 0; reading.count < READS; reading.count++) {
    hg_circuit *circuit = NULL;
    uint64_t begun = hg_time_ns();
    hg_status status = hg_circuit_parse(NULL, text, strlen(text), NULL, &circuit);
    reading.times[reading.count] = hg_time_ns() - begun;
    hg_circuit_release(circuit);
    if (status != HG_OK) return status;
  }
  print_row("10,000 steps, read and canonical", &reading);
  return HG_OK;
}

static hg_status run(hg_kernel *kernel, hg_buffer *pool, uint64_t lanes, row *r) {
  hg_binding binding = {.name = "pool", .buffer = pool};
  hg_launch_desc desc = {.size = sizeof desc, .lanes = lanes, .bindings = &binding, .binding_count = 1};
  hg_launch_report report = {.size = sizeof report};
  hg_status status = hg_launch(kernel, &desc, &report);
  r->times[r->count++] = report.nanoseconds;
  return status;
}

static hg_status measure_swaps(hg_executor *executor) {
  static row swaps, place;
  char text[48 * MOST_STEP] = "", *end = text;
  hg_circuit *circuit = NULL;
  atlas_program *programs[2] = {NULL, NULL};
  hg_kernel *kernels[2] = {NULL, NULL};
  hg_buffer *pool = NULL;
  hg_circuit_report report = {.size = sizeof report};
  for (int c = 0; c < 96; c += 2) end += sprintf(end, "%sswap@c%d<->c%d", c > 0 ? "." : "", c, c + 1);
  hg_status status = hg_circuit_parse(NULL, text, strlen(text), NULL, &circuit);
  if (status == HG_OK) status = hg_circuit_query(circuit, &report);
  if (status == HG_OK) status = hg_circuit_compile(NULL, circuit, &programs[0]);
  if (status == HG_OK) status = atlas_parse(NULL, in_place, strlen(in_place), NULL, &programs[1]);
  for (int i = 0; i < 2 && status == HG_OK; i++) status = hg_kernel_create(executor, programs[i], &kernels[i]);
  if (status == HG_OK) status = hg_boundary_buffer(executor, 0, ATLAS_BOUNDARY_POOL_BYTES, &pool);
  for (int i = 0; i < RUNS && status == HG_OK; i++) {
    status = run(kernels[0], pool, report.lanes, &swaps);
    if (status == HG_OK) status = run(kernels[1], pool, ATLAS_BOUNDARY_POOL_BYTES / sizeof(uint64_t), &place);
  }
  if (status == HG_OK) {
    print_row("48 swaps over all classes", &swaps);
    print_row("the pool read and written in place", &place);
    printf("%-44s %10.2f %10.2f\n", "ratio", swaps.shortest / place.shortest, swaps.median / place.median);
  }
  hg_buffer_release(pool);
  for (int i = 0; i < 2; i++) hg_kernel_release(kernels[i]), atlas_program_release(programs[i]);
  hg_circuit_release(circuit);
  return status;
}

int main(int argc, char **argv) {
  hg_executor_desc desc = {.size = sizeof desc, .backend = HG_BACKEND_CPU};
  hg_executor *executor = NULL;
  hg_status status = argc > 1 ? hg_backend_by_name(argv[1], &desc.backend) : HG_OK;
  printf("%-44s %10s %10s\n", "microseconds", "shortest", "median");
  if (status == HG_OK) status = measure_reading();
  if (status == HG_OK) status = hg_executor_create(&desc, &executor);
  if (status == HG_OK) status = measure_swaps(executor);
  if (status != HG_OK) fprintf(stderr, "%s\n", hg_last_error());
  hg_executor_release(executor);
  return status != HG_OK;
}
