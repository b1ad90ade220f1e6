/* test_cuda_quick.c - kernels that the driver compiles quickly at first, and in full on a thread of the device: the
 * same results and faults before and after, whoever launches, captures or releases meanwhile, and whatever fails. On
 * the double of libcuda, which holds the second compilation back where a test wants it to. */
#define _GNU_SOURCE
#include "cache_folder.h"
#include "computing.h"
#include "counted.h"
#include "streams.h"

#include <limits.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS = 1024, LANES = 64, STEPS = 60 };

static char long_text[16 << 10];
static uint32_t words[WORDS];

/* A lane sums up its elements in a loop, which runs several iterations at a time; many functions follow. */
static void write_long_text(void) {
  size_t at = (size_t)sprintf(long_text, ".program long\n.block %d\n"
                              ".buffer x f32 in\n.buffer y f32 out\n.scalar n u32\n"
                              "    mov.u32 r0, blane\n    movi.f32 r1, #0\nagain:\n    set.ge.u32 p0, r0, n\n"
                              "    @p0 bra summed\n    ldg.f32 r2, [x + r0]\n    add.f32 r1, r1, r2\n"
                              "    add.u32 r0, r0, #%d\n    bra again\nsummed:\n", LANES, LANES);
  for (int i = 0; i < STEPS; i++)
    at += (size_t)sprintf(long_text + at, "    tanh.f32 r1, r1\n    add.f32 r1, r1, r1\n");
  at += (size_t)sprintf(long_text + at, "    stg.f32 [y + lane], r1\n    exit\n");
  CHECK(at < sizeof long_text);
}

/* ---- one scene --------------------------------------------------------------------------------------------------- */

static unsigned quick_before, full_before;

/* What the driver has compiled since. */
static void check_links(unsigned quick, unsigned full) {
  CHECK_EQ_U64(gpu.links(FAKECUDA_QUICK) - quick_before, quick);
  CHECK_EQ_U64(gpu.links(FAKECUDA_FULL) - full_before, full);
}

static void open_scene(void) {
  quick_before = gpu.links(FAKECUDA_QUICK);
  full_before = gpu.links(FAKECUDA_FULL);
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
}

static void close_scene(void) {
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* Launches one block over `count` elements of x, of which there are WORDS. */
static hg_status launch_long(hg_kernel *kernel, uint32_t count, uint32_t *out, hg_launch_report *report) {
  hg_executor *own = executor;
  hg_buffer *x = NULL, *y = NULL;
  hg_status status = hg_buffer_create(own, NULL, sizeof words, &x);
  if (status == HG_OK) status = hg_buffer_write(x, 0, words, sizeof words);
  if (status == HG_OK) status = hg_buffer_create(own, NULL, LANES * sizeof *out, &y);
  hg_binding bindings[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
  hg_scalar n = {.name = "n", .type = ATLAS_u32, .bits = count};
  hg_launch_desc desc = {.grid = {1, 1, 1}, .block = {LANES, 1, 1}, .bindings = bindings, .binding_count = 2,
                         .scalars = &n, .scalar_count = 1};
  if (status == HG_OK) status = hg_launch(kernel, &desc, report);
  if (status == HG_OK) status = hg_buffer_read(y, 0, out, LANES * sizeof *out);
  hg_buffer_release(x);
  hg_buffer_release(y);
  return status;
}

static int is_first(hg_kernel *kernel) {
  hg_kernel_info info = {0};
  CHECK_EQ_U64(hg_kernel_query(kernel, &info), HG_OK);
  return info.why[0] != '\0';
}

static void wait_until_full(hg_kernel *kernel) {
  while (is_first(kernel)) usleep(100);
}

static void check_launches(hg_kernel *kernel, const uint32_t *expected, int first) {
  uint32_t out[LANES];
  hg_launch_report report = {0};
  CHECK_EQ_U64(launch_long(kernel, WORDS, out, &report), HG_OK);
  CHECK(memcmp(out, expected, sizeof out) == 0);
  CHECK((strncmp(report.notes, "the driver compiled this code quickly", 37) == 0) == first);
  CHECK_EQ_U64(launch_long(kernel, WORDS + 2 * LANES, out, &report), HG_FAULT);
  CHECK_STR(hg_last_error(), "line 11 (ldg): lane 0 read past 'x': index 1024, extent 1024");
  CHECK_EQ_U64(report.fault.index, WORDS);
  CHECK_EQ_U64(report.fault.lane, 0);
}

static void find_expected(uint32_t *expected) {
  set("HOLOGRAM_QUICK", "0");
  open_scene();
  hg_kernel *kernel = kernel_of(long_text);
  check_links(0, 1);
  CHECK(!is_first(kernel));
  CHECK_EQ_U64(launch_long(kernel, WORDS, expected, NULL), HG_OK);
  check_launches(kernel, expected, 0);
  hg_kernel_release(kernel);
  close_scene();
  set("HOLOGRAM_QUICK", NULL);
}

/* ---- before and after -------------------------------------------------------------------------------------------- */

static void test_before_and_after(const uint32_t *expected) {
  open_scene();
  gpu.hold_links(1);
  hg_kernel *kernel = kernel_of(long_text);
  check_links(1, 0);
  CHECK(is_first(kernel));
  check_launches(kernel, expected, 1);
  gpu.hold_links(0);
  wait_until_full(kernel);
  check_links(1, 1);
  check_launches(kernel, expected, 0);
  hg_kernel_release(kernel);
  close_scene();
}

static void test_short_texts(void) {
  open_scene();
  hg_kernel *kernel = kernel_of(step_text);
  CHECK(!is_first(kernel));
  check_links(0, 1);
  hg_kernel_release(kernel);
  close_scene();
}

/* A kernel's end does not wait for the driver, nor does that of one whose turn may not have come. */
static void test_released_early(void) {
  open_scene();
  gpu.hold_links(1);
  hg_kernel *kernel = kernel_of(long_text);
  while (gpu.links(FAKECUDA_HELD) == 0) usleep(100);
  char *other = strdup(long_text);
  memcpy(strstr(other, "#0"), "#1", 2);
  hg_kernel *second = kernel_of(other);
  check_links(2, 0);
  hg_kernel_release(second);
  hg_kernel_release(kernel);
  gpu.hold_links(0);
  free(other);
  close_scene();
  unsigned full = gpu.links(FAKECUDA_FULL) - full_before;
  check_links(2, full);
  CHECK(full == 1 || full == 2);
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static void let_links_go(void *unused) {
  (void)unused;
  while (gpu.links(FAKECUDA_HELD) == 0) usleep(100);
  usleep(2000);
  gpu.hold_links(0);
}

/* A graph keeps the code that it is made with, so it waits for that in full. */
static void test_graph(const uint32_t *expected) {
  open_scene();
  gpu.hold_links(1);
  hg_kernel *kernel = kernel_of(long_text);
  hg_stream *stream = stream_of();
  hg_buffer *x = buffer_of(sizeof words, words), *y = buffer_of(LANES * sizeof *expected, NULL);
  hg_binding bindings[] = {{.name = "x", .buffer = x}, {.name = "y", .buffer = y}};
  hg_scalar n = {.name = "n", .type = ATLAS_u32, .bits = WORDS};
  hg_launch_desc desc = {.grid = {1, 1, 1}, .block = {LANES, 1, 1}, .bindings = bindings, .binding_count = 2,
                         .scalars = &n, .scalar_count = 1, .stream = stream};
  hg_graph *graph = NULL;
  hg_thread thread;
  uint32_t out[LANES];
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_thread_start(&thread, let_links_go, NULL), 0);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  hg_thread_join(&thread);
  CHECK(!is_first(kernel));
  check_links(1, 1);
  CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, out, sizeof out), HG_OK);
  CHECK(memcmp(out, expected, sizeof out) == 0);
  hg_graph_release(graph);
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_stream_release(stream);
  hg_kernel_release(kernel);
  close_scene();
}

/* ---- warm -------------------------------------------------------------------------------------------------------- */

enum { ROWS = 4, COLUMNS = 4096 };

static hg_executable *softmax_of(hg_tensor x) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value of = hg_computation_input(c, "x", &x);
  CHECK_EQ_U64(hg_computation_output(c, "out", hg_compute(c, HG_OP_softmax, &of, 1, NULL, 0), NULL), HG_OK);
  hg_executable *e = compiled(c);
  hg_computation_release(c);
  return e;
}

/* What a run would run at first is waited for in full; the run, and an equal executable, compile nothing. */
static void test_warm(void) {
  uint64_t kernels = 0;
  hg_thread thread;
  hg_launch_report report = {0};
  open_scene();
  gpu.hold_links(1);
  hg_tensor x = matrix_of(NULL, ROWS, COLUMNS);
  hg_executable *e = softmax_of(x);
  check_links(1, 0);
  CHECK(is_first(e->launches[0].kernel));
  CHECK_EQ_U64(hg_thread_start(&thread, let_links_go, NULL), 0);
  CHECK_EQ_U64(hg_executable_warm(e, &kernels), HG_OK);
  hg_thread_join(&thread);
  CHECK(kernels == 1 && !is_first(e->launches[0].kernel));
  check_links(1, 1);
  x.buffer = buffer_of(ROWS * COLUMNS * sizeof(float), NULL);
  hg_tensor out = x;
  out.buffer = buffer_of(ROWS * COLUMNS * sizeof(float), NULL);
  hg_executable *same = softmax_of(x);
  CHECK(same == e);
  CHECK_EQ_U64(hg_run(same, &x, 1, &out, 1, NULL, &report), HG_OK);
  CHECK_STR(report.notes, "");
  check_links(1, 1);
  hg_buffer_release(x.buffer);
  hg_buffer_release(out.buffer);
  hg_executable_release(same);
  hg_executable_release(e);
  close_scene();
}

/* Of long rows, which are several launches. */
static void test_warm_forms(void) {
  open_scene();
  hg_tensor x = matrix_of(NULL, 2, 1 << 16);
  hg_executable *e = softmax_of(x);
  CHECK_EQ_U64(hg_executable_warm(e, NULL), HG_OK);
  unsigned quick = gpu.links(FAKECUDA_QUICK), full = gpu.links(FAKECUDA_FULL);
  x.buffer = buffer_of((2 << 16) * sizeof(float), NULL);
  hg_tensor out = x;
  out.buffer = buffer_of((2 << 16) * sizeof(float), NULL);
  CHECK_EQ_U64(hg_run(e, &x, 1, &out, 1, NULL, NULL), HG_OK);
  CHECK_EQ_U64(gpu.links(FAKECUDA_QUICK), quick);
  CHECK_EQ_U64(gpu.links(FAKECUDA_FULL), full);
  hg_buffer_release(x.buffer);
  hg_buffer_release(out.buffer);
  hg_executable_release(e);
  close_scene();
}

/* ---- the cache --------------------------------------------------------------------------------------------------- */

static void test_cache(void) {
  char folder[FOLDER_BYTES];
  make_folder(folder, "quick");
  set("HOLOGRAM_CACHE_DIR", folder);
  open_scene();
  gpu.hold_links(1);
  hg_kernel *kernel = kernel_of(long_text);
  CHECK_EQ_U64(count_files(folder), 0); /* code made quickly is not kept */
  gpu.hold_links(0);
  wait_until_full(kernel);
  hg_kernel_release(kernel);
  close_scene();
  CHECK_EQ_U64(count_files(folder), 1);
  open_scene();
  kernel = kernel_of(long_text);
  CHECK(!is_first(kernel));
  check_links(0, 0);
  hg_kernel_release(kernel);
  close_scene();
  set("HOLOGRAM_CACHE_DIR", "/dev/null/none");
  empty_folder(folder);
  remove_folder(folder);
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* Calls of the driver: where the quick one fails the text is compiled in full, and after that there is an error; where
 * the one in full fails behind the launches' back, the first code stays. */
static void test_driver_fails(const uint32_t *expected) {
  static const struct {
    const char *demand;
    hg_status status;
    unsigned quick, full;
  } cases[] = {{"cuLinkComplete:1=2", HG_OK, 0, 1},
               {"cuLinkComplete:0=218", HG_DEVICE, 0, 0},
               {"cuLinkComplete:2=218", HG_OK, 1, 0},
               {"cuModuleLoadData:2=200", HG_OK, 1, 1},
               {"cuModuleGetFunction:2=500", HG_OK, 1, 1},
               {"cuLinkCreate_v2:2=2", HG_OK, 1, 0}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    hg_kernel *kernel = NULL;
    atlas_program *program = NULL;
    open_scene();
    CHECK_EQ_U64(atlas_parse(NULL, long_text, strlen(long_text), "test", &program), HG_OK);
    set("FAKECUDA_FAIL", cases[i].demand);
    CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), cases[i].status);
    if (kernel != NULL) wait_until_full(kernel);
    set("FAKECUDA_FAIL", NULL);
    if (kernel != NULL) check_launches(kernel, expected, 0);
    hg_kernel_release(kernel);
    atlas_program_release(program);
    close_scene();
  }
}

/* Every allocation in turn: the kernel is there and right, or there is no memory. */
static void test_memory_fails(const uint32_t *expected) {
  counter count = {.fail_at = -1};
  hg_allocator allocator = counting(&count);
  long made = LONG_MAX, failed = 0;
  for (; failed < made; failed++) {
    hg_kernel *kernel = NULL;
    atlas_program *program = NULL;
    uint32_t out[LANES];
    CHECK_EQ_U64(open_test_executor(&allocator, &executor), HG_OK);
    CHECK_EQ_U64(atlas_parse(NULL, long_text, strlen(long_text), "test", &program), HG_OK);
    long before = count.allocations;
    count.fail_at = before + failed;
    hg_status status = hg_kernel_create(executor, program, &kernel);
    CHECK(status == HG_OK || status == HG_OUT_OF_MEMORY);
    if (kernel != NULL) wait_until_full(kernel);
    if (count.allocations <= count.fail_at) made = count.allocations - before;
    count.fail_at = -1;
    if (kernel != NULL) {
      CHECK_EQ_U64(launch_long(kernel, WORDS, out, NULL), HG_OK);
      CHECK(memcmp(out, expected, sizeof out) == 0);
    }
    hg_kernel_release(kernel);
    atlas_program_release(program);
    hg_executor_release(executor);
    CHECK_EQ_U64(count.live, 0);
  }
  CHECK(failed > 50);
  CHECK_CLEAN();
}

/* ---- several threads, and processes ------------------------------------------------------------------------------ */

enum { THREADS = 3, ROUNDS = 6 };

static uint32_t expected_by_threads[LANES];
static atomic_uint wrong;

static void use_kernels(void *unused) {
  (void)unused;
  for (int i = 0; i < ROUNDS; i++) {
    uint32_t out[LANES];
    atlas_program *program = NULL;
    hg_kernel *kernel = NULL;
    if (atlas_parse(NULL, long_text, strlen(long_text), "test", &program) != HG_OK ||
        hg_kernel_create(executor, program, &kernel) != HG_OK)
      atomic_fetch_add(&wrong, 1);
    for (int n = 0; kernel != NULL && n < i % 3; n++)
      if (launch_long(kernel, WORDS, out, NULL) != HG_OK || memcmp(out, expected_by_threads, sizeof out) != 0)
        atomic_fetch_add(&wrong, 1);
    hg_kernel_release(kernel);
    atlas_program_release(program);
  }
}

static void test_threads(const uint32_t *expected) {
  hg_thread threads[THREADS];
  memcpy(expected_by_threads, expected, sizeof expected_by_threads);
  open_scene();
  for (int i = 0; i < THREADS; i++) CHECK_EQ_U64(hg_thread_start(&threads[i], use_kernels, NULL), 0);
  for (int i = 0; i < THREADS; i++) hg_thread_join(&threads[i]);
  CHECK_EQ_U64(atomic_load(&wrong), 0);
  close_scene();
}

/* A process ends while the thread is at work, with nothing released. */
static void test_exit(void) {
  int status = -1;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    open_scene();
    (void)kernel_of(long_text);
    exit(check_failed != 0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_EQ_U64(status, 0);
}

int main(void) {
  uint32_t expected[LANES];
  if (!begin_on_fake_gpu()) return check_report();
  set("HOLOGRAM_NUM_THREADS", "4");
  set("HOLOGRAM_QUICK", NULL);
  write_long_text();
  for (uint32_t i = 0; i < WORDS; i++) words[i] = 0x3a000000 + (i << 10);
  if (!SANITIZED) test_exit(); /* leaves all of it to the process's end; before anything has started the driver */
  find_expected(expected);
  test_before_and_after(expected);
  test_short_texts();
  test_released_early();
  test_graph(expected);
  test_warm();
  test_warm_forms();
  test_cache();
  test_driver_fails(expected);
  test_memory_fails(expected);
  test_threads(expected);
  return check_report();
}
