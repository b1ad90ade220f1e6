/* faults.c - what accesses that fault cost beside those that do not: loops whose every access is out of bounds, beside
 * the same kernels with the same accesses in bounds, on the native engine and the tile engine, on one thread. WORD:
 * only loops with it in their names.
 *
 *   bench_faults [WORD]
 *
 * Each row: engine, loop, microseconds in bounds, microseconds out of bounds, how many times as much. Both are the
 * shortest of several launches. */
#include "base/os.h"
#include "fault_loops.h"
#include "hologram/hologram.h"

#include <stdio.h>
#include <string.h>

enum { LANES = 4096, ROUNDS = 2000, LAUNCHES = 15, ELEMENT_BYTES = 8, NEAR = 2, FAR_AWAY = 1 << 29, FEW_ELEMENTS = 1 };

typedef struct measured {
  hg_executor *executor;
  hg_kernel *kernel;
  hg_buffer *x, *y;
  const fault_loop *loop;
} measured;

/* Microseconds, the least of several; negative if a launch ends in another way than it should. */
static double shortest(const measured *m, int faults) {
  int is_short = faults && m->loop->is_by_lane;
  hg_binding bindings[] = {{.name = "x", .buffer = m->x, .byte_count = is_short ? FEW_ELEMENTS * ELEMENT_BYTES : 0},
                           {.name = "y", .buffer = m->y}};
  hg_scalar scalars[] = {{.name = "first", .bits = faults && !is_short ? FAR_AWAY : NEAR},
                         {.name = "rounds", .type = ATLAS_u32, .bits = ROUNDS}};
  scalars[0].type = m->loop->index[0] == 'i' ? (m->loop->index[1] == '3' ? ATLAS_i32 : ATLAS_i64)
                                        : (m->loop->index[1] == '3' ? ATLAS_u32 : ATLAS_u64);
  hg_launch_desc desc = {.size = sizeof desc,
                         .lanes = LANES,
                         .bindings = bindings,
                         .binding_count = 2,
                         .scalars = scalars,
                         .scalar_count = fault_loop_is_open(m->loop) ? 2 : 1};
  double least = 0;
  for (int i = 0; i < LAUNCHES; i++) {
    uint64_t begin = hg_time_ns();
    hg_status status = hg_launch(m->kernel, &desc, NULL);
    double took = (double)(hg_time_ns() - begin) / 1000;
    if (status != (faults ? HG_FAULT : HG_OK)) return -1;
    if (i == 0 || took < least) least = took;
  }
  return least;
}

static hg_status measure_loop(measured *m) {
  char text[FAULT_LOOP_TEXT_BYTES];
  atlas_program *program = NULL;
  hg_kernel_info info = {.size = sizeof info};
  fault_loop_text(m->loop, ROUNDS, text);
  hg_status status = atlas_parse(NULL, text, strlen(text), "fault loop", &program);
  if (status == HG_OK) status = hg_kernel_create(m->executor, program, &m->kernel);
  if (status == HG_OK) status = hg_kernel_query(m->kernel, &info);
  if (status == HG_OK) {
    double in = shortest(m, 0), out = shortest(m, 1);
    printf("%-14s %-36s %10.0f %10.0f %8.1f\n", info.engine, m->loop->name, in, out, out / in);
    fflush(stdout);
  }
  hg_kernel_release(m->kernel);
  atlas_program_release(program);
  m->kernel = NULL;
  return status;
}

static hg_status measure_engine(const char *engine, const char *word) {
  measured m = {.executor = NULL};
  hg_executor_desc desc = {.size = sizeof desc, .backend = HG_BACKEND_CPU, .engine = engine, .threads = 1};
  hg_status status = hg_executor_create(&desc, &m.executor);
  if (status == HG_OK)
    status = hg_buffer_create(m.executor, NULL, (uint64_t)FAULT_LOOP_ELEMENTS * ELEMENT_BYTES, &m.x);
  if (status == HG_OK) status = hg_buffer_create(m.executor, NULL, (uint64_t)LANES * ELEMENT_BYTES, &m.y);
  for (size_t i = 0; i < sizeof fault_loops / sizeof fault_loops[0] && status == HG_OK; i++) {
    m.loop = &fault_loops[i];
    if (strstr(m.loop->name, word) != NULL) status = measure_loop(&m);
  }
  hg_buffer_release(m.x);
  hg_buffer_release(m.y);
  hg_executor_release(m.executor);
  return status;
}

int main(int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  printf("%-14s %-36s %10s %10s %8s\n", "", "", "in, us", "out, us", "ratio");
  hg_status status = measure_engine("native", word);
  if (status == HG_OK) status = measure_engine("tile", word);
  if (status != HG_OK) fprintf(stderr, "bench_faults: %s\n", hg_last_error());
  return status != HG_OK;
}
