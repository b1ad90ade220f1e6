/* launch.c - what stands between a caller and a kernel on the CPU: launches of one element, jobs for the worker
 * threads, and memory.
 *
 *   bench_launch [--json]
 *
 * Each row: what, and nanoseconds, the median and the 10th and 90th percentile of many. "empty engine" rows replace the
 * engine by a function that does nothing, so that they show the runtime alone. */
#include "backend/cpu/cpu_memory.h"
#include "base/threads.h"
#include "runtime/runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_SAMPLES = 301,
  FEWEST_SAMPLES = 15,
  ROW_NS = 300000000, /* enough time for a row */
  MEGABYTE = 1 << 20
};

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

/* A measured action, `batch` times a sample, with a pause of pause_ns before each sample. */
static void measure(const char *name, void (*action)(void *user), void *user, uint32_t batch, uint64_t pause_ns) {
  static double samples[MOST_SAMPLES];
  size_t count = 0;
  action(user);
  for (uint64_t begin = hg_time_ns(); count < MOST_SAMPLES;) {
    if (count >= FEWEST_SAMPLES && hg_time_ns() - begin > ROW_NS) break;
    uint64_t end = hg_time_ns() + pause_ns;
    while (hg_time_ns() < end) hg_spin_pause();
    uint64_t start = hg_time_ns();
    for (uint32_t k = 0; k < batch; k++) action(user);
    samples[count++] = (double)(hg_time_ns() - start) / batch;
  }
  print_row(name, samples, count);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

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

typedef struct launch_case {
  hg_kernel *kernel;
  hg_launch_desc desc;
  hg_launch_report *report;
} launch_case;

static hg_status no_engine(void *device, void *kernel, atlas_launch *launch) {
  (void)device;
  (void)kernel;
  (void)launch;
  return HG_OK;
}

static void launch(void *user) {
  launch_case *c = user;
  if (hg_launch(c->kernel, &c->desc, c->report) != HG_OK) {
    fprintf(stderr, "bench_launch: %s\n", hg_last_error());
    exit(1);
  }
}

static void launch_and_wait(void *user) {
  launch_case *c = user;
  launch(c);
  if (hg_stream_wait(c->desc.stream, NULL) != HG_OK) exit(1);
}

static hg_status measure_launches(void) {
  hg_executor *executor = NULL;
  atlas_program *program = NULL;
  hg_buffer *buffers[3];
  hg_binding bindings[3] = {{.name = "x"}, {.name = "y"}, {.name = "z"}};
  hg_launch_report report = {.size = sizeof report};
  hg_executor_desc on_cpu = {.backend = HG_BACKEND_CPU};
  HG_TRY(hg_executor_create(&on_cpu, &executor));
  HG_TRY(atlas_parse(NULL, add_text, sizeof add_text - 1, "add", &program));
  launch_case c = {.desc = {.lanes = 1, .bindings = bindings, .binding_count = 3}};
  HG_TRY(hg_kernel_create(executor, program, &c.kernel));
  for (uint32_t i = 0; i < 3; i++) {
    HG_TRY(hg_buffer_create(executor, NULL, 65536, &buffers[i]));
    bindings[i].buffer = buffers[i];
    bindings[i].slot = i;
  }
  hg_backend stub = *executor->backend;
  stub.launch = no_engine;
  const hg_backend *real = executor->backend;
  executor->backend = &stub;
  measure("launch, empty engine, by name", launch, &c, 1000, 0);
  for (int i = 0; i < 3; i++) bindings[i].name = NULL;
  measure("launch, empty engine, by slot", launch, &c, 1000, 0);
  c.report = &report;
  measure("launch, empty engine, by slot, with a report", launch, &c, 1000, 0);
  c.report = NULL;
  executor->backend = real;
  measure("launch of 1 lane", launch, &c, 1000, 0);
  HG_TRY(hg_stream_create(executor, NULL, &c.desc.stream));
  measure("launch of 1 lane on a stream", launch, &c, 1000, 0);
  c.desc.lanes = 5000;
  measure("launch of 5000 lanes on a stream, and the wait", launch_and_wait, &c, 100, 0);
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

static void run_job(void *user) {
  job *j = user;
  hg_parallel(j->threads, hg_thread_limit(), job_part, j);
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
    measure(name, run_job, &one, batch, 0);
    snprintf(name, sizeof name, "%u parts of %u turns, workers awake", (unsigned)all, (unsigned)turns[i]);
    measure(name, run_job, &many, batch, 0);
    snprintf(name, sizeof name, "%u parts of %u turns, workers asleep", (unsigned)all, (unsigned)turns[i]);
    measure(name, run_job, &many, 1, 1000000);
  }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct memory_case {
  hg_cpu_memory memory;
  uint64_t byte_count;
  uint8_t *to, *from;
} memory_case;

static void new_block(void *user) {
  memory_case *m = user;
  uint8_t *address = NULL;
  if (hg_cpu_allocate(&m->memory, m->byte_count, 64, 1, &address) != HG_OK) exit(1);
  for (uint64_t i = 0; i < m->byte_count; i += 4096) address[i] = 1;
  hg_cpu_free(&m->memory, address);
}

static void copy_block(void *user) {
  memory_case *m = user;
  hg_cpu_copy(&m->memory, m->to, m->from, m->byte_count);
}

static void fill_block(void *user) {
  memory_case *m = user;
  hg_cpu_fill(&m->memory, m->to, m->byte_count, 0);
}

static void measure_block(memory_case *m, const char *what, void (*action)(void *user)) {
  char name[80];
  snprintf(name, sizeof name, "%s of %u MiB", what, (unsigned)(m->byte_count / MEGABYTE));
  measure(name, action, m, 1, 0);
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
  json = argc > 1 && strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    fprintf(stderr, "usage: bench_launch [--json]\n");
    return 2;
  }
  if (json) printf("[");
  else
    printf("%u threads, streaming from %" PRIu64 " bytes on\n%-52s %14s %14s %14s\n", (unsigned)hg_thread_limit(),
           hg_stream_threshold(), "", "p10 ns", "median ns", "p90 ns");
  if (measure_launches() != HG_OK) {
    fprintf(stderr, "bench_launch: %s\n", hg_last_error());
    return 1;
  }
  measure_jobs();
  if (measure_memory() != HG_OK) {
    fprintf(stderr, "bench_launch: %s\n", hg_last_error());
    return 1;
  }
  if (json) printf("\n]\n");
  return 0;
}
