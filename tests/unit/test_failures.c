/* test_failures.c - what goes wrong around the library: memory that runs out at every single allocation, several
 * threads at once (run it under ThreadSanitizer too), and forks among them. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "check.h"
#include "counted.h"
#include "test_backend.h"

#include "hologram/classes.h"

#include <stdlib.h>
#if !defined(_WIN32)
#  include <pthread.h>
#  include <sys/wait.h>
#  include <unistd.h>
#endif

/* ---- every allocation fails in turn ------------------------------------------------------------------------------ */

/* A program with something of everything. */
static const char text[] =
    ".program everything\n"
    ".block 64\n"
    ".buffer x f32 in\n"
    ".buffer y f32 out\n"
    ".scalar a f32\n"
    ".shared tile f32 64\n"
    ".const c f32 { #1.5, #0x1.8p3, #1e-7 }\n"
    ".table t 70 in\n"
    ".pool heap\n"
    "    ldg.f32 r0, [x + lane]\n"
    "    sts.f32 [tile + blane], r0\n"
    "    bar.sync\n"
    "    movi.u32 r1, #3\n"
    "again:\n"
    "    mul.f32 r0, r0, a\n"
    "    call half\n"
    "    loop r1, again\n"
    "    ldc.f32 r2, [c + #1]\n"
    "    add.f32 r0, r0, r2\n"
    "    reduce.add.f32 r3, r0\n"
    "    pool.alloc.u64 r4, heap, #16\n"
    "    movi.u32 r5, #1\n"
    "    movi.u32 r6, #0\n"
    "    ldg.u8 r7, [r5 : r6]\n"
    "    ldg.u8 r8, [phi 1, 2, 3]\n"
    "    set.lt.f32 p0, r0, r3\n"
    "    @p0 bra done\n"
    "    mov.f32 r0, r3\n"
    "done:\n"
    "    stg.f32 [y + lane], r0\n"
    "    exit\n"
    "half:\n"
    "    mul.f32 r0, r0, #0.5\n"
    "    ret\n";

static hg_status build(const hg_allocator *allocator, atlas_program **out) {
  atlas_builder *b = NULL;
  hg_status status = atlas_builder_create(allocator, "built", &b);
  if (status != HG_OK) return status;
  uint16_t n = atlas_builder_buffer(b, "n", ATLAS_u32, ATLAS_INOUT);
  const uint32_t values[2] = {5, 6};
  uint16_t c = atlas_builder_const(b, "c", ATLAS_u32, 2, values);
  uint32_t top = atlas_builder_label(b, NULL), out_of = atlas_builder_label(b, "end");
  atlas_emit(b, ATLAS_OP_ldc, ATLAS_u32, 2, atlas_reg(0), atlas_mem(c, 1));
  atlas_builder_place(b, top);
  atlas_emit(b, ATLAS_OP_atom_add, ATLAS_u32, 3, atlas_discard(), atlas_mem(n, 0), atlas_reg(0));
  atlas_emit(b, ATLAS_OP_sub, ATLAS_u32, 3, atlas_reg(0), atlas_reg(0), atlas_bits(1));
  atlas_emit(b, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(0), atlas_reg(0), atlas_bits(0));
  atlas_emit_branch(b, 0, 0, out_of);
  atlas_emit_branch(b, -1, 0, top);
  atlas_builder_place(b, out_of);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  return atlas_builder_finish(b, out);
}

/* Everything that the scenario holds, so that it can stop anywhere and let go of all of it. */
typedef struct scene {
  atlas_program *parsed, *decoded, *built;
  char *printed;
  void *encoded;
  hg_executor *executor;
  hg_buffer *x, *y, *n, *view;
  hg_pool *pool;
  hg_kernel *kernel, *built_kernel;
} scene;

#define STEP(expression)                          \
  do {                                            \
    hg_status step_status = (expression);         \
    if (step_status != HG_OK) return step_status; \
  } while (0)

static hg_status run_programs(const hg_allocator *allocator, scene *s) {
  size_t length = 0;
  STEP(atlas_parse(allocator, text, sizeof text - 1, "everything", &s->parsed));
  STEP(atlas_print(allocator, s->parsed, &s->printed, &length));
  STEP(atlas_encode(allocator, s->parsed, &s->encoded, &length));
  STEP(atlas_decode(allocator, s->encoded, length, &s->decoded));
  return build(allocator, &s->built);
}

static hg_status run_launches(const hg_allocator *allocator, scene *s) {
  enum { LANES = 200, ENTRIES = 70 };
  STEP(open_test_executor(allocator, &s->executor));
  STEP(hg_kernel_create(s->executor, s->decoded, &s->kernel));
  STEP(hg_kernel_create(s->executor, s->built, &s->built_kernel));
  STEP(hg_buffer_create(s->executor, NULL, LANES * 4, &s->x));
  STEP(hg_buffer_create(s->executor, NULL, LANES * 4, &s->y));
  STEP(hg_buffer_create(s->executor, NULL, 4, &s->n));
  STEP(hg_pool_create(s->executor, 4096, &s->pool));
  uint64_t offset = 0;
  for (int i = 0; i < 40; i++) STEP(hg_pool_allocate(s->pool, 16, 0, &offset));
  STEP(hg_pool_buffer(s->pool, 0, 4096, &s->view));
  hg_binding bindings[3 + ENTRIES] = {
      {.name = "x", .buffer = s->x}, {.name = "y", .buffer = s->y}, {.name = "heap", .buffer = s->view}};
  for (uint32_t i = 0; i < ENTRIES; i++) bindings[3 + i] = (hg_binding){.name = "t", .entry = i, .buffer = s->x};
  hg_scalar a = {.name = "a", .type = ATLAS_f32, .bits = 0x3f800000};
  hg_launch_desc desc = {
      .lanes = LANES, .bindings = bindings, .binding_count = 3 + ENTRIES, .scalars = &a, .scalar_count = 1};
  STEP(hg_launch(s->kernel, &desc, NULL));
  hg_binding n = {.name = "n", .buffer = s->n};
  hg_launch_desc second = {.lanes = 3, .bindings = &n, .binding_count = 1};
  STEP(hg_launch(s->built_kernel, &second, NULL));
  uint32_t sum = 0;
  STEP(hg_buffer_read(s->n, 0, &sum, 4));
  CHECK_EQ_U64(sum, 3 * (6 + 5 + 4 + 3 + 2 + 1));
  return HG_OK;
}

static void let_go(const hg_allocator *allocator, scene *s) {
  hg_executor_release(s->executor); /* before what belongs to it: the order is free */
  hg_kernel_release(s->kernel);
  hg_buffer_release(s->x);
  hg_buffer_release(s->y);
  hg_pool_release(s->pool);
  hg_buffer_release(s->n);
  hg_buffer_release(s->view);
  atlas_program_release(s->parsed);
  atlas_program_release(s->decoded);
  atlas_program_release(s->built);
  hg_kernel_release(s->built_kernel);
  atlas_memory_release(allocator, s->printed);
  atlas_memory_release(allocator, s->encoded);
}

static void test_allocation_failures(void) {
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  long total = 0;
  for (long fail_at = -1; fail_at < total; fail_at++) {
    scene s = {0};
    c = (counter){.fail_at = fail_at};
    hg_status status = run_programs(&allocator, &s);
    if (status == HG_OK) status = run_launches(&allocator, &s);
    if (fail_at == -1) total = c.allocations; /* the first round shows how many there are */
    hg_status expected = fail_at == -1 ? HG_OK : HG_OUT_OF_MEMORY;
    if (status == HG_OK && test_backend() != HG_BACKEND_CPU) expected = HG_OK; /* it was to keep something for later */
    CHECK_EQ_U64(status, expected);
    if (status != expected)
      printf("  allocation %ld: %s\n", fail_at, hg_last_error());
    let_go(&allocator, &s);
    CHECK_EQ_U64(c.live, 0);
    if (c.live != 0) printf("  after allocation %ld failed\n", fail_at);
  }
  CHECK(total > 50);
}

/* An executor that was out of memory goes on once there is some again. */
static void test_recovery(void) {
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  scene s = {0};
  CHECK_EQ_U64(run_programs(&allocator, &s), HG_OK);
  CHECK_EQ_U64(run_launches(&allocator, &s), HG_OK);
  hg_binding n = {.name = "n", .buffer = s.n};
  hg_launch_desc desc = {.lanes = 3, .bindings = &n, .binding_count = 1};
  hg_kernel *another = NULL;
  c.fail_at = c.allocations;
  CHECK_EQ_U64(hg_kernel_create(s.executor, s.built, &another), HG_OUT_OF_MEMORY); /* a kernel's first allocation */
  CHECK_EQ_U64(hg_kernel_create(s.executor, s.built, &another), HG_OK);
  CHECK_EQ_U64(hg_launch(another, &desc, NULL), HG_OK);
  uint32_t sum = 0;
  CHECK_EQ_U64(hg_buffer_read(s.n, 0, &sum, 4), HG_OK);
  CHECK_EQ_U64(sum, 2 * 63);
  hg_kernel_release(another);
  let_go(&allocator, &s);
  CHECK_EQ_U64(c.live, 0);
}

/* An executor keeps the functions it has expanded, and none that memory ran out on half way. */
static void test_functions_are_whole(void) {
  static const char exp_text[] =
      ".buffer x f32 inout\nldg.f32 r0, [x + lane]\nexp.f32 r0, r0\nstg.f32 [x + lane], r0\nexit\n";
  for (long n = 0, failed = 1; failed; n++) {
    counter c = {.fail_at = -1};
    hg_allocator allocator = counting(&c);
    hg_executor_desc desc = {.backend = HG_BACKEND_CPU, .allocator = &allocator};
    hg_executor *executor = NULL;
    atlas_program *program = NULL;
    hg_kernel *kernel = NULL;
    hg_buffer *x = NULL;
    float one = 1;
    CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
    CHECK_EQ_U64(atlas_parse(&allocator, exp_text, sizeof exp_text - 1, NULL, &program), HG_OK);
    CHECK_EQ_U64(hg_buffer_create(executor, NULL, sizeof one, &x), HG_OK);
    CHECK_EQ_U64(hg_buffer_write(x, 0, &one, sizeof one), HG_OK);
    c.fail_at = c.allocations + n;
    hg_status status = hg_kernel_create(executor, program, &kernel);
    failed = status != HG_OK;
    CHECK(status == HG_OK || status == HG_OUT_OF_MEMORY);
    c.fail_at = -1;
    if (failed) CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
    hg_binding binding = {.name = "x", .buffer = x};
    hg_launch_desc launch = {.lanes = 1, .bindings = &binding, .binding_count = 1};
    CHECK_EQ_U64(hg_launch(kernel, &launch, NULL), HG_OK);
    CHECK_EQ_U64(hg_buffer_read(x, 0, &one, sizeof one), HG_OK);
    CHECK(one == 0x1.5bf0a8p+1f);
    hg_kernel_release(kernel);
    hg_buffer_release(x);
    atlas_program_release(program);
    hg_executor_release(executor);
    CHECK_EQ_U64(c.live, 0);
  }
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

#if !defined(_WIN32)
enum { THREADS = 8, ROUNDS = 60, LANES = 40, FORKS = 8 };

typedef struct worker {
  pthread_t thread;
  hg_executor *executor; /* shared, or NULL: one of its own */
  atlas_program *program;
  hg_kernel *kernel;     /* shared, or NULL */
  hg_buffer *total;      /* shared */
  unsigned number;
  int failures;
} worker;

#define EXPECT(condition) (w->failures += !(condition))

/* Makes buffers, launches, faults, and reads back; counts what is not as it should be. */
static void work(worker *w, hg_executor *executor, hg_kernel *kernel, hg_buffer *total) {
  for (int round = 0; round < ROUNDS; round++) {
    hg_buffer *own = NULL, *view = NULL;
    uint32_t values[LANES];
    EXPECT(hg_buffer_create(executor, NULL, sizeof values, &own) == HG_OK);
    EXPECT(hg_buffer_view(own, 0, sizeof values, &view) == HG_OK);
    hg_binding bindings[] = {{.name = "own", .buffer = view}, {.name = "total", .buffer = total}};
    hg_scalar start = {.name = "start", .type = ATLAS_u32, .bits = w->number * 1000};
    hg_launch_desc desc = {
        .lanes = LANES, .bindings = bindings, .binding_count = 2, .scalars = &start, .scalar_count = 1};
    hg_launch_report report = {0};
    EXPECT(hg_launch(kernel, &desc, &report) == HG_OK);
    EXPECT(hg_buffer_read(own, 0, values, sizeof values) == HG_OK);
    for (uint32_t i = 0; i < LANES; i++) EXPECT(values[i] == w->number * 1000 + i);
    desc.lanes = LANES + 1 + w->number; /* each thread's last error is its own */
    EXPECT(hg_launch(kernel, &desc, &report) == HG_FAULT);
    EXPECT(report.fault.lane == LANES && report.lanes == LANES + 1 + w->number);
    EXPECT(strcmp(hg_last_error(), "line 7 (stg): lane 40 wrote past 'own': index 40, extent 40") == 0);
    hg_buffer_release(own);
    hg_buffer_release(view);
  }
}

static void *work_thread(void *argument) {
  worker *w = argument;
  hg_executor *executor = hg_executor_retain(w->executor);
  hg_kernel *kernel = hg_kernel_retain(w->kernel);
  hg_buffer *total = hg_buffer_retain(w->total);
  if (executor == NULL) EXPECT(open_test_executor(NULL, &executor) == HG_OK);
  if (kernel == NULL) EXPECT(hg_kernel_create(executor, w->program, &kernel) == HG_OK);
  if (total == NULL) EXPECT(hg_buffer_create(executor, NULL, 8, &total) == HG_OK);
  work(w, executor, kernel, total);
  hg_executor_release(executor);
  hg_kernel_release(kernel);
  hg_buffer_release(total);
  return NULL;
}

static const char program_text[] =
    ".buffer own u32 out\n"
    ".buffer total u64 inout\n"
    ".scalar start u32\n"
    "    cvt.u32.u64 r0, lane\n"
    "    add.u32 r0, r0, start\n"
    "    atom.add.u64 _, [total + #0], #1\n"
    "    stg.u32 [own + lane], r0\n"
    "    res.accum.i64 #5, #1\n"
    "    phase.adv.u32 #1\n"
    "    exit\n";

static void test_threads(int shared) {
  atlas_program *program = NULL;
  hg_executor *executor = NULL;
  hg_kernel *kernel = NULL;
  hg_buffer *total = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, program_text, sizeof program_text - 1, NULL, &program), HG_OK);
  if (shared) {
    CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
    CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
    CHECK_EQ_U64(hg_buffer_create(executor, NULL, 8, &total), HG_OK);
  }
  worker workers[THREADS];
  for (unsigned i = 0; i < THREADS; i++) {
    workers[i] = (worker){.executor = executor, .program = program, .kernel = kernel, .total = total, .number = i};
    CHECK_EQ_U64(pthread_create(&workers[i].thread, NULL, work_thread, &workers[i]), 0);
  }
  for (unsigned i = 0; i < THREADS; i++) {
    CHECK_EQ_U64(pthread_join(workers[i].thread, NULL), 0);
    CHECK_EQ_U64(workers[i].failures, 0);
  }
  if (shared) {
    uint64_t ran = 0, expected = 0;
    int64_t counters[ATLAS_CLASS_COUNT];
    uint32_t phase = 0;
    for (unsigned i = 0; i < THREADS; i++) expected += ROUNDS * (2 * LANES + 1 + i);
    CHECK_EQ_U64(hg_buffer_read(total, 0, &ran, 8), HG_OK);
    CHECK_EQ_U64(ran, expected);
    CHECK_EQ_U64(hg_executor_resonance(executor, counters), HG_OK);
    CHECK_EQ_U64(counters[5], expected);
    CHECK_EQ_U64(hg_executor_phase(executor, &phase), HG_OK);
    CHECK_EQ_U64(phase, 2 * ROUNDS * THREADS % 768);
  }
  hg_buffer_release(total);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
  atlas_program_release(program);
}

/* ---- forks ------------------------------------------------------------------------------------------------------- */

/* What a process just forked off does: an executor of its own, threads to clear a large buffer, and launches. */
static int use_in_child(atlas_program *program) {
  worker w = {.program = program, .number = 3};
  hg_executor *executor = NULL;
  hg_buffer *large = NULL;
  uint64_t word = 1;
  if (hg_executor_create(NULL, &executor) != HG_OK) return 1;
  if (hg_buffer_create(executor, NULL, 8 << 20, &large) != HG_OK) return 2;
  if (hg_buffer_fill(large, 0, 8 << 20, &word, sizeof word) != HG_OK) return 3;
  if (hg_buffer_read(large, (8 << 20) - 8, &word, sizeof word) != HG_OK || word != 1) return 4;
  hg_buffer_release(large);
  hg_executor_release(executor);
  work_thread(&w);
  return w.failures == 0 ? 0 : 5;
}

static void test_forks(void) {
  atlas_program *program = NULL;
  worker workers[2];
  CHECK_EQ_U64(atlas_parse(NULL, program_text, sizeof program_text - 1, NULL, &program), HG_OK);
  for (unsigned i = 0; i < 2; i++) {
    workers[i] = (worker){.program = program, .number = i};
    CHECK_EQ_U64(pthread_create(&workers[i].thread, NULL, work_thread, &workers[i]), 0);
  }
  fflush(stdout);
  for (int i = 0; i < FORKS; i++) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      alarm(60); /* a child that waits for a thread which did not come along */
      _exit(use_in_child(program));
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0) continue;
    CHECK(WIFEXITED(status));
    CHECK_EQ_U64(WEXITSTATUS(status), 0);
  }
  for (unsigned i = 0; i < 2; i++) {
    CHECK_EQ_U64(pthread_join(workers[i].thread, NULL), 0);
    CHECK_EQ_U64(workers[i].failures, 0);
  }
  atlas_program_release(program);
}
#endif

int main(void) {
  test_allocation_failures();
  test_recovery();
  test_functions_are_whole();
#if !defined(_WIN32)
  test_threads(1);
  test_threads(0);
  if (test_backend() == HG_BACKEND_CPU) test_forks(); /* the CUDA driver does not live on in a child */
#endif
  return check_report();
}
