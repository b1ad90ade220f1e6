/* test_nvtx.c - ranges for profilers, on the double of libcuda: what the double of a profiler hears, and that nothing
 * is lost without one. A process has one profiler for life, so each case is a child. */
#define _GNU_SOURCE
#include "fake_gpu.h"
#include "streams.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define VARIABLE (sizeof(void *) == 8 ? "NVTX_INJECTION64_PATH" : "NVTX_INJECTION32_PATH")
#define PROFILER "libfakenvtx.so"

static int (*starts)(void);
static const char *(*heard)(void); /* by this thread since it last asked */

static void find_profiler(void) {
  void *library = hg_library_open(PROFILER, "");
  CHECK(library != NULL);
  if (library == NULL) exit(1);
  hg_library_find(library, "fakenvtx_starts", &starts);
  hg_library_find(library, "fakenvtx_take", &heard);
}

/* Runs a case with that path and that mode of the profiler; NULL: not set. */
static void in_child(const char *path, const char *mode, void (*run)(void)) {
  int status = -1;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    check_failed = 0;
    set(VARIABLE, path);
    set("FAKENVTX", mode);
    find_profiler();
    run();
    CHECK_CLEAN();
    exit(check_failed != 0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_EQ_U64(status, 0);
}

#define CHECK_HEARD(expected) CHECK_STR(heard(), expected)

/* ---- every range ------------------------------------------------------------------------------------------------- */

static hg_status launch_blocks(hg_kernel *kernel, hg_buffer *x, uint32_t lanes) {
  hg_binding binding = {.name = "x", .buffer = x};
  hg_scalar c = {.name = "c", .type = ATLAS_u32, .bits = 1};
  hg_launch_desc desc = {.grid = {1, 1, 1}, .block = {lanes, 1, 1}, .bindings = &binding, .binding_count = 1,
                         .scalars = &c, .scalar_count = 1};
  return hg_launch(kernel, &desc, NULL);
}

static void hear_launches(hg_buffer *x) {
  hg_kernel *step = kernel_of(step_text);
  CHECK_HEARD("compile step()");
  hg_kernel *again = kernel_of(step_text); /* it is the same */
  CHECK_HEARD("");
  CHECK_EQ_U64(give(step, x, "c", 1, 16, NULL), HG_OK);
  CHECK_HEARD("launch step=16()");
  CHECK_EQ_U64(launch_blocks(step, x, 512), HG_OK);
  CHECK_HEARD("compile step()launch step()");
  CHECK_EQ_U64(launch_blocks(again, x, 512), HG_OK);
  CHECK_HEARD("launch step()");
  CHECK_EQ_U64(give(step, x, "c", 1, 5000, NULL), HG_FAULT); /* by the form that looks at each access */
  CHECK_HEARD("compile step()launch step=5000()");
  CHECK_EQ_U64(give(step, x, "c", 1, 5000, NULL), HG_FAULT);
  CHECK_HEARD("launch step=5000()");
  CHECK_EQ_U64(give(step, x, "d", 1, 16, NULL), HG_BINDING); /* no launch */
  CHECK_HEARD("");
  hg_kernel_release(step);
  hg_kernel_release(again);
}

static void hear_copies(hg_buffer *x) {
  uint32_t words[4] = {0};
  void *mapped = NULL;
  hg_executor *other = NULL;
  hg_buffer *y = NULL;
  CHECK_EQ_U64(hg_buffer_write(x, 0, words, sizeof words), HG_OK);
  CHECK_HEARD("write=16()");
  CHECK_EQ_U64(hg_buffer_read(x, 8, words, 4), HG_OK);
  CHECK_HEARD("read=4()");
  CHECK_EQ_U64(hg_buffer_copy(x, 0, x, 8, 100), HG_OK);
  CHECK_HEARD("copy=100()");
  CHECK_EQ_U64(hg_buffer_fill(x, 0, 32, words, 2), HG_OK);
  CHECK_HEARD("fill=32()");
  CHECK_EQ_U64(hg_buffer_map(x, &mapped), HG_OK);
  CHECK_HEARD("map=2048()");
  CHECK_EQ_U64(hg_buffer_unmap(x), HG_OK);
  CHECK_HEARD("unmap=2048()");
  CHECK_EQ_U64(open_gpu(&other), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(other, NULL, 64, &y), HG_OK);
  CHECK_HEARD("");
  CHECK_EQ_U64(hg_buffer_copy(y, 0, x, 0, 64), HG_OK);
  CHECK_HEARD("copy=64()");
  hg_buffer_release(y);
  hg_executor_release(other);
}

static void hear_streams(hg_buffer *x) {
  hg_kernel *step = kernel_of(step_text);
  hg_stream *stream = stream_of();
  hg_graph *graph = NULL;
  uint32_t words[4] = {0};
  CHECK_HEARD("load step()");
  CHECK_EQ_U64(give(step, x, "c", 1, 16, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_write_async(x, 0, words, 16, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_read_async(x, 0, words, 12, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(x, 0, x, 64, 8, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_fill_async(x, 0, 4, words, 1, stream), HG_OK);
  CHECK_HEARD("launch step=16()write=16()read=12()copy=8()fill=4()");
  CHECK_EQ_U64(give(step, x, "c", 1, 5000, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_FAULT);
  CHECK_HEARD("load step()launch step=5000()");
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 1, 16, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_fill_async(x, 0, 4, words, 1, stream), HG_OK);
  CHECK_HEARD("");
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  CHECK_HEARD("make graph()");
  for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK_HEARD("replay graph()replay graph()");
  hg_graph_release(graph);
  hg_stream_release(stream);
  hg_kernel_release(step);
}

static void hear_all(void) {
  CHECK_EQ_U64(starts(), 0);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(starts(), 1);
  CHECK_HEARD("");
  hg_buffer *x = buffer_of(2048, NULL);
  hear_launches(x);
  hear_copies(x);
  hear_streams(x);
  hg_buffer_release(x);
  hg_executor_release(executor);
  CHECK_HEARD("");
  CHECK_EQ_U64(starts(), 1);
}

static hg_status make_step(hg_executor *from, hg_kernel **kernel) {
  atlas_program *program = NULL;
  hg_status status = atlas_parse(NULL, step_text, sizeof step_text - 1, NULL, &program);
  if (status == HG_OK) status = hg_kernel_create(from, program, kernel);
  atlas_program_release(program);
  return status;
}

/* Ranges end when the driver fails, and a lost executor begins none. */
static void hear_failures(void) {
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  hg_buffer *x = buffer_of(2048, NULL);
  set("FAKECUDA_FAIL", "cuLinkComplete:0=218");
  hg_kernel *kernel = NULL;
  CHECK(make_step(executor, &kernel) != HG_OK);
  CHECK_HEARD("compile step()");
  set("FAKECUDA_FAIL", NULL);
  kernel = kernel_of(step_text);
  (void)heard();
  set("FAKECUDA_FAIL", "cuLaunchKernel:0=719");
  CHECK_EQ_U64(give(kernel, x, "c", 1, 16, NULL), HG_DEVICE);
  CHECK_HEARD("launch step=16()");
  CHECK_EQ_U64(give(kernel, x, "c", 1, 16, NULL), HG_DEVICE);
  CHECK_HEARD("");
  set("FAKECUDA_FAIL", NULL);
  hg_kernel_release(kernel);
  hg_buffer_release(x);
  hg_executor_release(executor);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

enum { THREADS = 2, LAUNCHES = 50 };

/* CHECK is not for threads: the number of what was wrong. */
static void *launch_often(void *user) {
  hg_executor *shared = user, *own = NULL;
  hg_kernel *kernel = NULL;
  hg_buffer *x = NULL;
  uintptr_t wrong = shared == NULL && open_gpu(&own) != HG_OK;
  if (shared == NULL) shared = own;
  wrong += make_step(shared, &kernel) != HG_OK;
  wrong += hg_buffer_create(shared, NULL, 64, &x) != HG_OK;
  (void)heard();
  for (uint64_t i = 1; i <= LAUNCHES; i++) {
    char expected[64];
    snprintf(expected, sizeof expected, "launch step=%u()", (unsigned)(i % 16 + 1));
    wrong += give(kernel, x, "c", 1, i % 16 + 1, NULL) != HG_OK;
    wrong += strcmp(heard(), expected) != 0;
  }
  hg_buffer_release(x);
  hg_kernel_release(kernel);
  hg_executor_release(own);
  return (void *)wrong;
}

static void launch_in_threads(hg_executor *shared) {
  pthread_t threads[THREADS];
  void *wrong = NULL;
  for (int i = 0; i < THREADS; i++) CHECK_EQ_U64(pthread_create(&threads[i], NULL, launch_often, shared), 0);
  for (int i = 0; i < THREADS; i++) {
    CHECK_EQ_U64(pthread_join(threads[i], &wrong), 0);
    CHECK(wrong == NULL);
  }
  CHECK_EQ_U64(starts(), 1);
  CHECK_HEARD("");
}

static void hear_threads(void) {
  launch_in_threads(NULL);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  launch_in_threads(executor);
  hg_executor_release(executor);
}

/* ---- without a profiler ------------------------------------------------------------------------------------------ */

static void launch_once(void) {
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  hg_kernel *step = kernel_of(step_text);
  hg_buffer *x = buffer_of(64, NULL);
  CHECK_EQ_U64(give(step, x, "c", 1, 16, NULL), HG_OK);
  hg_buffer_release(x);
  hg_kernel_release(step);
  hg_executor_release(executor);
}

static void hear_nothing(void) {
  launch_once();
  CHECK_EQ_U64(starts(), 0);
  CHECK_HEARD("");
  set(VARIABLE, PROFILER); /* too late: the process has none */
  launch_once();
  CHECK_EQ_U64(starts(), 0);
  CHECK_HEARD("");
}

/* Started once, whatever it says. */
static void hear_started(void) {
  launch_once();
  launch_once();
  CHECK_EQ_U64(starts(), 1);
  CHECK_HEARD("");
}

static void hear_without_domain(void) {
  launch_once();
  CHECK_HEARD("compile step()launch step=16()");
}

int main(void) {
  static const char *const not_profilers[] = {NULL, "", "/no/such/library.so", "libcuda.so.1", "/dev/null"};
  if (!begin_on_fake_gpu()) return check_report();
  for (size_t i = 0; i < COUNT(not_profilers); i++) in_child(not_profilers[i], NULL, hear_nothing);
  in_child(PROFILER, NULL, hear_all);
  in_child(PROFILER, NULL, hear_failures);
  in_child(PROFILER, NULL, hear_threads);
  in_child(PROFILER, "refuse", hear_started);
  in_child(PROFILER, "deaf", hear_started);
  in_child(PROFILER, "no-domain", hear_without_domain);
  return check_report();
}
