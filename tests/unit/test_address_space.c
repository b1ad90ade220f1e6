/* test_address_space.c - what the CPU engines do when the process may have no more address space (RLIMIT_AS): the same
 * work again and again with a little more of it each time, from none to enough, each time in a process that has no
 * threads and no kept memory yet. Whatever fails says so, nothing crashes, and with more space the work succeeds
 * afterwards, bit for bit. */
#define _GNU_SOURCE
#include "launching.h"

#if defined(__linux__)
#  include <sys/mman.h>
#  include <sys/resource.h>
#  include <sys/wait.h>
#  include <unistd.h>
#endif

#if defined(__linux__) && !SANITIZED

enum {
  LANES = 600000, /* large buffers are pages of the system, and worker threads have work */
  REFERENCE_LANES = 2000,
  STACK_BYTES =
      256 << 10, /* that the work may need: touched before the limit, since a stack that cannot grow is a crash */
  FINE_STEP = 64 << 10,
  FINE_END = 2 << 20,
  COARSE_STEP = 1 << 20,
  MOST = 64 << 20,
  DONE = 0,
  REFUSED = 1,
  WRONG = 2
};

static const char *const texts[] = {
    ".program loops\n.buffer x u32 in\n.buffer y u32 inout\nldg.u32 r0, [x + lane]\nand.u32 r1, r0, #15\n"
    "add.u32 r1, r1, #1\nagain:\nmad.u32 r0, r0, #1664525, #1013904223\nloop r1, again\nstg.u32 [y + lane], r0\nexit\n",
    ".program function\n.buffer x f32 in\n.buffer y f32 inout\nldg.f32 r0, [x + lane]\ngelu.f32 r0, r0\nsin.f32 r1, "
    "r0\n"
    "fma.f32 r0, r0, r1, r1\nstg.f32 [y + lane], r0\nexit\n",
    ".program blocks\n.block 256\n.buffer x f32 in\n.buffer y f32 inout\n.shared part f32 256\n"
    "ldg.f32 r0, [x + lane]\nsts.f32 [part + blane], r0\nbar.sync\nscan.incl.f32 r1, r0\nxor.u32 r2, blane, #85\n"
    "lds.f32 r2, [part + r2]\nfma.f32 r1, r1, r2, r0\nstg.f32 [y + lane], r1\nexit\n",
};
enum { TEXTS = COUNT(texts) };

/* Shared by all processes: what comes out when there is space enough. */
typedef struct results {
  uint32_t x[LANES], y[TEXTS][LANES], graph[LANES];
} results;

typedef struct work {
  hg_executor *executor;
  atlas_program *program;
  hg_kernel *kernels[TEXTS];
  hg_buffer *x, *y[TEXTS], *z, *huge;
  hg_stream *stream;
  hg_event *event;
  hg_graph *graph;
  hg_pool *pool;
} work;

#define STEP(expression)                          \
  do {                                            \
    hg_status step_status = (expression);         \
    if (step_status != HG_OK) return step_status; \
  } while (0)

static hg_status launch(work *w, int which, hg_buffer *y, uint64_t lanes, hg_stream *stream) {
  hg_binding bindings[] = {{.name = "x", .buffer = w->x}, {.name = "y", .buffer = y}};
  hg_launch_desc desc = {.lanes = lanes, .bindings = bindings, .binding_count = 2, .stream = stream};
  return hg_launch(w->kernels[which], &desc, NULL);
}

static hg_status open(work *w, const results *r, uint64_t lanes) {
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  STEP(hg_executor_create(&desc, &w->executor));
  for (int i = 0; i < TEXTS; i++) {
    STEP(atlas_parse(NULL, texts[i], strlen(texts[i]), NULL, &w->program));
    STEP(hg_kernel_create(w->executor, w->program, &w->kernels[i]));
    atlas_program_release(w->program);
    w->program = NULL;
  }
  STEP(hg_buffer_create(w->executor, NULL, lanes * 4, &w->x));
  return hg_buffer_write(w->x, 0, r->x, lanes * 4);
}

/* All that takes memory: kernels, buffers, worker threads, a stream's thread, a graph, a pool, and a buffer for which
 * there is never room, which leaves all as it was. */
static hg_status run(work *w, const results *r, uint64_t lanes) {
  STEP(open(w, r, lanes));
  for (int i = 0; i < TEXTS; i++) {
    STEP(hg_buffer_create(w->executor, NULL, lanes * 4, &w->y[i]));
    STEP(launch(w, i, w->y[i], lanes, NULL));
  }
  hg_status status = hg_buffer_create(w->executor, NULL, UINT64_C(1) << 46, &w->huge);
  CHECK(status == HG_OUT_OF_MEMORY && w->huge == NULL && hg_last_error()[0] != '\0');
  STEP(hg_buffer_create(w->executor, NULL, lanes * 4, &w->z));
  STEP(hg_stream_create(w->executor, NULL, &w->stream));
  STEP(hg_event_create(w->executor, NULL, &w->event));
  STEP(hg_capture_begin(w->stream));
  STEP(launch(w, 0, w->z, lanes, w->stream));
  STEP(hg_capture_end(w->stream, &w->graph));
  STEP(launch(w, 1, w->z, lanes, w->stream));
  STEP(hg_graph_launch(w->graph, w->stream));
  STEP(hg_event_record(w->event, w->stream));
  STEP(hg_pool_create(w->executor, lanes, &w->pool));
  STEP(hg_event_wait(w->event));
  return hg_stream_wait(w->stream, NULL);
}

static void compare(hg_buffer *buffer, const uint32_t *expected, uint64_t lanes) {
  static uint32_t found[LANES];
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, found, lanes * 4), HG_OK);
  CHECK(memcmp(found, expected, lanes * 4) == 0);
}

static void let_go(work *w) {
  atlas_program_release(w->program);
  for (int i = 0; i < TEXTS; i++) hg_kernel_release(w->kernels[i]);
  for (int i = 0; i < TEXTS; i++) hg_buffer_release(w->y[i]);
  hg_buffer_release(w->x);
  hg_buffer_release(w->z);
  hg_graph_release(w->graph);
  hg_stream_release(w->stream);
  hg_event_release(w->event);
  hg_pool_release(w->pool);
  hg_executor_release(w->executor);
}

/* All the work and a look at what came out. */
static int attempt(const results *r, uint64_t lanes) {
  work w = {0};
  unsigned long before = check_failed;
  hg_status status = run(&w, r, lanes);
  if (status == HG_OK) {
    for (int i = 0; i < TEXTS; i++) compare(w.y[i], r->y[i], lanes);
    compare(w.z, r->graph, lanes);
  } else {
    int told = status == HG_OUT_OF_MEMORY && hg_last_error()[0] != '\0';
    CHECK(told);
    if (!told) printf("  status %d: %s\n", (int)status, hg_last_error());
  }
  let_go(&w);
  return check_failed != before ? WRONG : status == HG_OK ? DONE : REFUSED;
}

static uint64_t lanes_of(const char *engine) { return strcmp(engine, "interp") == 0 ? REFERENCE_LANES : LANES; }

/* ---- processes --------------------------------------------------------------------------------------------------- */

typedef struct trial {
  results *r;
  uint64_t lanes;
  rlim_t more; /* bytes above what the process has when it starts */
} trial;

static rlim_t bytes_now(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
  if (file != NULL) fclose(file);
  return pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void touch_stack(void) {
  volatile uint8_t room[STACK_BYTES];
  for (size_t i = 0; i < sizeof room; i += 4096) room[i] = 0;
}

static int try_with(const trial *t) {
  struct rlimit limit;
  touch_stack();
  if (getrlimit(RLIMIT_AS, &limit) != 0) return WRONG;
  rlim_t all = limit.rlim_cur;
  limit.rlim_cur = bytes_now() + t->more;
  if (setrlimit(RLIMIT_AS, &limit) != 0) return WRONG;
  int outcome = attempt(t->r, t->lanes);
  limit.rlim_cur = all;
  if (setrlimit(RLIMIT_AS, &limit) != 0) return WRONG;
  return outcome == REFUSED && attempt(t->r, t->lanes) != DONE ? WRONG : outcome;
}

/* What must come out, by the same work without a limit: on the reference machine for as many lanes as it can do in a
 * moment, which is compared with the engine's. */
static int make_results(const trial *t) {
  work w = {0};
  results *r = t->r;
  if (run(&w, r, t->lanes) != HG_OK) return WRONG;
  for (int i = 0; i < TEXTS; i++)
    if (hg_buffer_read(w.y[i], 0, r->y[i], t->lanes * 4) != HG_OK) return WRONG;
  if (hg_buffer_read(w.z, 0, r->graph, t->lanes * 4) != HG_OK) return WRONG;
  let_go(&w);
  return check_failed != 0 ? WRONG : DONE;
}

/* `body` in a process of its own; -1 if that crashed or hung. */
static int in_child(int (*body)(const trial *t), const trial *t) {
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    alarm(60);
    int outcome = body(t);
    fflush(stdout);
    _exit(outcome);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) continue;
  if (!WIFEXITED(status))
    printf("ended by signal %d with %llu bytes more\n", WTERMSIG(status), (unsigned long long)t->more);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* An emulator may not care about the limit of what it runs. */
static int limit_holds(const trial *t) {
  (void)t;
  struct rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) != 0) return 0;
  limit.rlim_cur = bytes_now();
  if (setrlimit(RLIMIT_AS, &limit) != 0) return 0;
  return mmap(NULL, (size_t)1 << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
}

static void test_engine(const char *engine, results *r) {
  static results reference;
  int refused = 0, done = 0;
  trial t = {.r = r, .lanes = REFERENCE_LANES};
  setenv("HOLOGRAM_CPU_ENGINE", "interp", 1);
  CHECK_EQ_U64(in_child(make_results, &t), DONE);
  memcpy(&reference, r, sizeof reference);
  t.lanes = lanes_of(engine);
  setenv("HOLOGRAM_CPU_ENGINE", engine, 1);
  CHECK_EQ_U64(in_child(make_results, &t), DONE);
  for (int i = 0; i < TEXTS; i++) CHECK(memcmp(r->y[i], reference.y[i], REFERENCE_LANES / 256 * 256 * 4) == 0);
  CHECK(memcmp(r->graph, reference.graph, REFERENCE_LANES * 4) == 0);
  while (done < 3 && t.more < MOST) {
    int outcome = in_child(try_with, &t);
    CHECK(outcome == DONE || outcome == REFUSED);
    refused += outcome == REFUSED;
    done += outcome == DONE;
    t.more += t.more < FINE_END ? FINE_STEP : COARSE_STEP;
  }
  CHECK(refused > 0 && done == 3);
  printf("%s: refused %d times, done with %llu KiB\n", engine, refused, (unsigned long long)t.more >> 10);
}

static void test_address_space(void) {
  const trial none = {0};
  if (!in_child(limit_holds, &none)) {
    printf("left out: the address space has no limit here\n");
    return;
  }
  results *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(r != MAP_FAILED);
  if (r == MAP_FAILED) return;
  for (uint32_t i = 0; i < LANES; i++) {
    uint32_t bits = i * 2654435761u;
    r->x[i] = (bits >> 9 & 0xbfffff) | 0x3f000000 | (bits & 0x80000000u); /* as f32: 0.5 to 4 */
  }
  setenv("HOLOGRAM_NUM_THREADS", "4", 1);
  test_engine("native", r);
  test_engine("tile", r);
  test_engine("interp", r);
  munmap(r, sizeof *r);
}

#else
static void test_address_space(void) {
  printf("left out: the system has no RLIMIT_AS, or a sanitizer takes more address space than a limit leaves\n");
}
#endif

int main(void) {
  test_address_space();
  return check_report();
}
