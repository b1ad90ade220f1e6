/* launch.c - what stands between a caller and a kernel on the CPU: launches of one element, jobs for the worker
 * threads, and memory.
 *
 *   bench_launch [--json]
 *
 * Each row: what, and nanoseconds, the median and the 10th and 90th percentile of many. "empty engine" rows replace the
 * engine by a function that does nothing, so that they show the runtime alone. */
#include "backend/cpu/cpu_memory.h"
#include "base/threads.h"
#include "actions.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MEGABYTE = 1 << 20 };

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct launch_case {
  hg_kernel *kernel;
  hg_launch_desc desc;
  hg_launch_report *report;
} launch_case;

static hg_status launch(void *user) {
  launch_case *c = user;
  return hg_launch(c->kernel, &c->desc, c->report);
}

static hg_status launch_and_wait(void *user) {
  launch_case *c = user;
  HG_TRY(launch(c));
  return hg_stream_wait(c->desc.stream, NULL);
}

static hg_status measure_launches(void) {
  hg_executor *executor = NULL;
  atlas_program *program = NULL;
  hg_buffer *buffers[3];
  hg_binding bindings[3] = {{.name = "x"}, {.name = "y"}, {.name = "z"}};
  hg_launch_report report = {.size = sizeof report};
  hg_executor_desc on_cpu = {.backend = HG_BACKEND_CPU};
  HG_TRY(hg_executor_create(&on_cpu, &executor));
  HG_TRY(atlas_parse(NULL, bench_add_text, strlen(bench_add_text), "add", &program));
  launch_case c = {.desc = {.lanes = 1, .bindings = bindings, .binding_count = 3}};
  HG_TRY(hg_kernel_create(executor, program, &c.kernel));
  for (uint32_t i = 0; i < 3; i++) {
    HG_TRY(hg_buffer_create(executor, NULL, 65536, &buffers[i]));
    bindings[i].buffer = buffers[i];
    bindings[i].slot = i;
  }
  const hg_backend stub = bench_without_engine(executor), *real = executor->backend;
  executor->backend = &stub;
  bench_measure("launch, empty engine, by name", launch, &c, 1000, 0);
  for (int i = 0; i < 3; i++) bindings[i].name = NULL;
  bench_measure("launch, empty engine, by slot", launch, &c, 1000, 0);
  c.report = &report;
  bench_measure("launch, empty engine, by slot, with a report", launch, &c, 1000, 0);
  c.report = NULL;
  executor->backend = real;
  bench_measure("launch of 1 lane", launch, &c, 1000, 0);
  HG_TRY(hg_stream_create(executor, NULL, &c.desc.stream));
  bench_measure("launch of 1 lane on a stream", launch, &c, 1000, 0);
  c.desc.lanes = 5000;
  bench_measure("launch of 5000 lanes on a stream, and the wait", launch_and_wait, &c, 100, 0);
  c.desc.lanes = 1;
  hg_stream_release(c.desc.stream);
  for (int i = 0; i < 3; i++) hg_buffer_release(buffers[i]);
  hg_kernel_release(c.kernel);
  atlas_program_release(program);
  hg_executor_release(executor);
  return HG_OK;
}

/* ---- jobs -------------------------------------------------------------------------------------------------------- */

typedef struct job {
  uint32_t threads;
  uint32_t turns; /* of an empty loop, in each part */
} job;

static void job_part(void *user, uint64_t part, uint32_t worker) {
  (void)part;
  (void)worker;
  for (volatile uint32_t i = 0; i < ((const job *)user)->turns;) i = i + 1;
}

static hg_status run_job(void *user) {
  job *j = user;
  hg_parallel(j->threads, hg_thread_limit(), job_part, j);
  return HG_OK;
}

/* A part for each thread: compare the rows of one thread and of all. */
static void measure_jobs(void) {
  static const uint32_t turns[] = {0, 100, 1000, 10000, 100000};
  uint32_t all = hg_thread_limit();
  for (size_t i = 0; i < sizeof turns / sizeof turns[0]; i++) {
    char name[80];
    job one = {1, turns[i]}, many = {all, turns[i]};
    uint32_t batch = turns[i] < 10000 ? 100 : 1;
    snprintf(name, sizeof name, "%u parts of %u turns, 1 thread", (unsigned)all, (unsigned)turns[i]);
    bench_measure(name, run_job, &one, batch, 0);
    snprintf(name, sizeof name, "%u parts of %u turns, workers awake", (unsigned)all, (unsigned)turns[i]);
    bench_measure(name, run_job, &many, batch, 0);
    snprintf(name, sizeof name, "%u parts of %u turns, workers asleep", (unsigned)all, (unsigned)turns[i]);
    bench_measure(name, run_job, &many, 1, 1000000);
  }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct memory_case {
  hg_cpu_memory memory;
  uint64_t byte_count;
  uint8_t *to, *from;
} memory_case;

static hg_status new_block(void *user) {
  memory_case *m = user;
  uint8_t *address = NULL;
  HG_TRY(hg_cpu_allocate(&m->memory, m->byte_count, 64, 1, &address));
  for (uint64_t i = 0; i < m->byte_count; i += 4096) address[i] = 1;
  hg_cpu_free(&m->memory, address);
  return HG_OK;
}

static hg_status copy_block(void *user) {
  memory_case *m = user;
  hg_cpu_copy(&m->memory, m->to, m->from, m->byte_count);
  return HG_OK;
}

static hg_status fill_block(void *user) {
  memory_case *m = user;
  hg_cpu_fill(&m->memory, m->to, m->byte_count, 0);
  return HG_OK;
}

static void measure_block(memory_case *m, const char *what, hg_status (*action)(void *user)) {
  char name[80];
  snprintf(name, sizeof name, "%s of %u MiB", what, (unsigned)(m->byte_count / MEGABYTE));
  bench_measure(name, action, m, 1, 0);
}

static hg_status measure_memory(void) {
  static const uint64_t sizes[] = {4, 16, 32, 64, 128};
  hg_allocator allocator;
  memory_case m = {.byte_count = 0};
  HG_TRY(hg_allocator_resolve(NULL, &allocator));
  hg_cpu_memory_open(&m.memory, &allocator);
  uint64_t most_kept = m.memory.kept_bytes_most;
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    m.byte_count = sizes[i] * MEGABYTE;
    m.memory.maps_large = 0;
    measure_block(&m, "first touch, allocator's pages,", new_block);
    m.memory.maps_large = 1;
    m.memory.kept_bytes_most = 0;
    measure_block(&m, "first touch, huge pages,", new_block);
    m.memory.kept_bytes_most = most_kept;
    measure_block(&m, "first touch, a kept block, zeroed,", new_block);
    HG_TRY(hg_cpu_allocate(&m.memory, m.byte_count, 64, 1, &m.to));
    HG_TRY(hg_cpu_allocate(&m.memory, m.byte_count, 64, 1, &m.from));
    memset(m.from, 1, m.byte_count);
    for (int streams = 0; streams < 2; streams++) {
      m.memory.stream_bytes = streams ? 0 : UINT64_MAX;
      measure_block(&m, streams ? "copy past the caches" : "copy", copy_block);
      measure_block(&m, streams ? "fill past the caches" : "fill", fill_block);
    }
    hg_cpu_free(&m.memory, m.from);
    hg_cpu_free(&m.memory, m.to);
  }
  hg_cpu_memory_close(&m.memory);
  return HG_OK;
}

int main(int argc, char **argv) {
  char heading[80];
  snprintf(heading, sizeof heading, "%u threads, streaming from %" PRIu64 " bytes on\n", (unsigned)hg_thread_limit(),
           hg_stream_threshold());
  bench_begin("bench_launch", argc, argv, heading);
  hg_status status = measure_launches();
  if (status != HG_OK) return bench_end(status);
  measure_jobs();
  return bench_end(measure_memory());
}
