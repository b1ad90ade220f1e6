/* test_compiling.c - compiling beside everything else: whom it stops (nobody), how often it is done (once), in the
 * background, and what becomes of it when it fails, is given up, or the process forks or ends. The executor's compiler
 * is held at a gate while others are looked at, so nothing depends on who is quicker. On any backend. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "base/threads.h"
#include "runtime/runtime.h"

#include "counted_by_threads.h"
#include "streams.h"

#include <stdatomic.h>
#if !defined(_WIN32)
#  include <sys/wait.h>
#  include <unistd.h>
#endif

enum { THREADS = 8 };

/* ---- a compiler with a gate -------------------------------------------------------------------------------------- */

static struct {
  const hg_backend *real;
  hg_backend gated;
  atomic_uint closed, waiting, compiled, fails;
} compiler;

static hg_status compile_behind_gate(void *device, hg_compile_input *input, hg_compiled *out) {
  atomic_fetch_add(&compiler.waiting, 1);
  while (atomic_load(&compiler.closed)) hg_wait(&compiler.closed, 1);
  atomic_fetch_sub(&compiler.waiting, 1);
  unsigned number = atomic_fetch_add(&compiler.compiled, 1);
  if (atomic_load(&compiler.fails)) return hg_fail(HG_DEVICE, "compilation %u broke down", number);
  return compiler.real->compile(device, input, out);
}

static void hold(int closed) {
  atomic_store(&compiler.closed, closed != 0);
  hg_wake(&compiler.closed);
}

static void open_executor(const hg_allocator *allocator) {
  CHECK_EQ_U64(open_test_executor(allocator, &executor), HG_OK);
  compiler.real = executor->backend;
  compiler.gated = *compiler.real;
  compiler.gated.compile = compile_behind_gate;
  executor->backend = &compiler.gated;
  atomic_store(&compiler.compiled, 0);
  atomic_store(&compiler.fails, 0);
}

#define UNTIL(condition)                 \
  do {                                   \
    while (!(condition)) hg_spin_pause(); \
  } while (0)

static atlas_program *program_of(const char *text) {
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, text, strlen(text), "test", &program), HG_OK);
  return program;
}

/* ---- threads that make kernels ----------------------------------------------------------------------------------- */

typedef struct maker {
  hg_thread thread;
  atlas_program *program;
  hg_kernel *kernel;
  hg_status status;
  char sentence[256];
} maker;

static void make(void *user) {
  maker *m = user;
  m->status = hg_kernel_create(executor, m->program, &m->kernel);
  if (m->status != HG_OK) snprintf(m->sentence, sizeof m->sentence, "%s", hg_last_error());
}

static void start(maker *m, atlas_program *program) {
  *m = (maker){.program = program};
  CHECK_EQ_U64(hg_thread_start(&m->thread, make, m), 0);
}

static void stop(maker *m) {
  hg_thread_join(&m->thread);
  atlas_program_release(m->program);
}

/* Who is at work on any code, those that wait for it too. */
static uint32_t references_of_codes(void) {
  uint32_t count = 0;
  hg_lock(executor);
  for (int b = 0; b < HG_CODE_BUCKETS; b++)
    for (const hg_code *code = executor->codes[b]; code != NULL; code = code->next) count += code->references;
  hg_unlock(executor);
  return count;
}

/* ---- whom it stops ----------------------------------------------------------------------------------------------- */

static const char other_text[] =
    ".program other\n.buffer x u32 inout\nldg.u32 r0, [x + lane]\nadd.u32 r0, r0, #7\nstg.u32 [x + lane], r0\nexit\n";

/* Likewise, but adds another number: another kernel. */
static const char *text_that_adds(int number) {
  static char text[sizeof other_text + 16];
  size_t before = (size_t)(strchr(other_text, '7') - other_text);
  snprintf(text, sizeof text, "%.*s%d%s", (int)before, other_text, number, other_text + before + 1);
  return text;
}

/* Launches, copies, streams, buffers, and another kernel that is there already. */
static void use_executor(hg_kernel *step) {
  hg_buffer *x = buffer_of(many() * 4, NULL), *y = buffer_of(many() * 4, NULL);
  hg_stream *stream = stream_of();
  hg_event *event = event_of(0);
  CHECK_EQ_U64(give(step, x, "c", 5, many(), NULL), HG_OK);
  check_all_words(x, 5);
  CHECK_EQ_U64(give(step, x, "c", 5, many(), stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(y, 0, x, 0, many() * 4, stream), HG_OK);
  CHECK_EQ_U64(hg_event_record(event, stream), HG_OK);
  CHECK_EQ_U64(hg_event_wait(event), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  check_all_words(y, 20);
  hg_kernel *again = kernel_of(step_text);
  CHECK_EQ_U64(give(again, y, "c", 1, many(), NULL), HG_OK);
  check_all_words(y, 61);
  hg_kernel_release(again);
  hg_event_release(event);
  hg_stream_release(stream);
  hg_buffer_release(y);
  hg_buffer_release(x);
}

static void test_stops_nobody(void) {
  maker m;
  open_executor(NULL);
  hg_kernel *step = kernel_of(step_text);
  hold(1);
  start(&m, program_of(other_text));
  UNTIL(atomic_load(&compiler.waiting) == 1);
  use_executor(step);
  CHECK_EQ_U64(atomic_load(&compiler.waiting), 1);
  hold(0);
  stop(&m);
  CHECK_EQ_U64(m.status, HG_OK);
  hg_kernel_release(m.kernel);
  hg_kernel_release(step);
  hg_executor_release(executor);
}

/* ---- how often --------------------------------------------------------------------------------------------------- */

/* The number of a fault's line in a text of its own. */
static uint32_t line_of_fault(hg_kernel *kernel) {
  hg_buffer *x = buffer_of(64, NULL);
  hg_binding binding = {.name = "x", .buffer = x};
  hg_launch_desc desc = {.lanes = 17, .bindings = &binding, .binding_count = 1};
  hg_launch_report report = {0};
  CHECK_EQ_U64(hg_launch(kernel, &desc, &report), HG_FAULT);
  CHECK_EQ_U64(report.fault.lane, 16);
  hg_buffer_release(x);
  return report.fault.line;
}

static void test_compiled_once(void) {
  maker makers[THREADS];
  open_executor(NULL);
  hold(1);
  for (int i = 0; i < THREADS; i++) start(&makers[i], program_of(other_text)); /* each has a text of its own */
  UNTIL(references_of_codes() == THREADS);
  hold(0);
  for (int i = 0; i < THREADS; i++) {
    stop(&makers[i]);
    CHECK_EQ_U64(makers[i].status, HG_OK);
  }
  CHECK_EQ_U64(atomic_load(&compiler.compiled), 1);
  hg_kernel *later = kernel_of(other_text);
  CHECK_EQ_U64(atomic_load(&compiler.compiled), 1);
  for (int i = 0; i < THREADS; i++) {
    CHECK_EQ_U64(line_of_fault(makers[i].kernel), 3);
    hg_kernel_release(makers[i].kernel);
  }
  CHECK_EQ_U64(line_of_fault(later), 3);
  hg_kernel_release(later);
  CHECK_EQ_U64(references_of_codes(), 0);
  hg_kernel_release(kernel_of(other_text)); /* nothing was kept */
  CHECK_EQ_U64(atomic_load(&compiler.compiled), 2);
  hg_executor_release(executor);
}

/* One program by its hash, in texts of different lines and names: each kernel's faults are in terms of its own. */
static void test_texts(void) {
  static const char lower[] =
      ".program other\n\n\n.buffer x u32 inout\n; later\nldg.u32 r5, [x + lane]\nadd.u32 r5, #7, r5\n"
      "stg.u32 [x + lane], r5\nexit\n";
  static const char named[] =
      ".program other\n.buffer y u32 inout\nldg.u32 r0, [y + lane]\nadd.u32 r0, r0, #7\nstg.u32 [y + lane], r0\nexit\n";
  static const char same[] =
      ".program other\n.buffer x u32 inout\nldg.u32 r9, [x + lane] ; says\nadd.u32 r8, #7, r9\nstg.u32 [x + lane], r8\n"
      "exit\n";
  open_executor(NULL);
  hg_kernel *first = kernel_of(other_text), *second = kernel_of(lower), *third = kernel_of(named);
  hg_kernel *fourth = kernel_of(same);
  CHECK(memcmp(first->needs->hash, second->needs->hash, sizeof first->needs->hash) == 0);
  CHECK(memcmp(first->needs->hash, third->needs->hash, sizeof first->needs->hash) == 0);
  CHECK_EQ_U64(atomic_load(&compiler.compiled), 3);
  CHECK(first->code == fourth->code);
  hg_kernel *fifth = NULL; /* the same text: there is nothing to wait for */
  atlas_program *program = program_of(other_text);
  hold(1);
  CHECK_EQ_U64(hg_kernel_create_async(executor, program, &fifth, NULL), HG_OK);
  CHECK_EQ_U64(atomic_load(&fifth->state), HG_READY);
  CHECK(first->code == fifth->code);
  hold(0);
  hg_kernel_release(fifth);
  atlas_program_release(program);
  CHECK_EQ_U64(line_of_fault(first), 3);
  CHECK_EQ_U64(line_of_fault(second), 6);
  CHECK_EQ_U64(line_of_fault(fourth), 3);
  hg_buffer *y = buffer_of(64, NULL);
  hg_binding binding = {.name = "y", .buffer = y};
  hg_launch_desc desc = {.lanes = 17, .bindings = &binding, .binding_count = 1};
  CHECK_LAUNCH(third, &desc, HG_FAULT, "line 3 (ldg): lane 16 read past 'y': index 16, extent 16");
  hg_buffer_release(y);
  hg_kernel_release(first); /* the text that was compiled goes before the kernel that shares it */
  CHECK_EQ_U64(line_of_fault(fourth), 3);
  hg_kernel_release(second);
  hg_kernel_release(third);
  hg_kernel_release(fourth);
  hg_executor_release(executor);
}

static void test_failure_is_shared(void) {
  maker makers[THREADS];
  open_executor(NULL);
  hold(1);
  atomic_store(&compiler.fails, 1);
  for (int i = 0; i < THREADS; i++) start(&makers[i], program_of(other_text));
  UNTIL(references_of_codes() == THREADS);
  hold(0);
  for (int i = 0; i < THREADS; i++) {
    stop(&makers[i]);
    CHECK_EQ_U64(makers[i].status, HG_DEVICE);
    CHECK(makers[i].kernel == NULL);
    CHECK_STR(makers[i].sentence, "compilation 0 broke down");
  }
  atomic_store(&compiler.fails, 0);
  hg_kernel_release(kernel_of(other_text)); /* anew */
  CHECK_EQ_U64(atomic_load(&compiler.compiled), 2);
  hg_executor_release(executor);
}

/* ---- the driver's own compiler ----------------------------------------------------------------------------------- */

#if !defined(_WIN32)
static hg_status launch_blocks(hg_kernel *kernel, hg_buffer *x, uint32_t lanes, hg_stream *stream) {
  hg_binding binding = {.name = "x", .buffer = x};
  hg_scalar c = {.name = "c", .type = ATLAS_u32, .bits = 1};
  hg_launch_desc desc = {.grid = {1, 1, 1}, .block = {lanes, 1, 1}, .bindings = &binding, .binding_count = 1,
                         .scalars = &c, .scalar_count = 1, .stream = stream};
  return hg_launch(kernel, &desc, NULL);
}

typedef struct launcher {
  hg_thread thread;
  hg_kernel *kernel;
  hg_buffer *x;
  hg_stream *stream;
  hg_status status;
} launcher;

static void launch_large(void *user) {
  launcher *l = user;
  l->status = launch_blocks(l->kernel, l->x, 512, l->stream);
}

/* A launch that needs another form of its kernel: others go on, those with the same kernel too, and of four that need
 * the same form one has it made. */
static void test_forms(void) {
  launcher launchers[4];
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  hg_kernel *step = kernel_of(step_text), *again = kernel_of(step_text);
  hg_stream *stream = stream_of();
  unsigned before = gpu.loads();
  gpu.hold_loads(1);
  for (int i = 0; i < 4; i++) {
    launchers[i] = (launcher){
        .kernel = i < 2 ? step : again, .x = buffer_of(2048, NULL), .stream = i % 2 ? stream : NULL};
    CHECK_EQ_U64(hg_thread_start(&launchers[i].thread, launch_large, &launchers[i]), 0);
  }
  UNTIL(gpu.held_loads() == 1);
  use_executor(step);
  CHECK_EQ_U64(gpu.held_loads(), 1);
  CHECK_EQ_U64(gpu.loads(), before);
  gpu.hold_loads(0);
  for (int i = 0; i < 4; i++) {
    hg_thread_join(&launchers[i].thread);
    CHECK_EQ_U64(launchers[i].status, HG_OK);
    check_all_words(launchers[i].x, 1);
    hg_buffer_release(launchers[i].x);
  }
  CHECK_EQ_U64(gpu.loads(), before + 1);
  hg_stream_release(stream);
  hg_kernel_release(step);
  hg_kernel_release(again);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* The graph's capture finds that a form is missing. */
static void test_forms_of_graphs(void) {
  hg_graph *graph = NULL;
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  hg_kernel *step = kernel_of(step_text);
  hg_stream *stream = stream_of();
  hg_buffer *x = buffer_of(2048, NULL);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(launch_blocks(step, x, 512, stream), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  check_all_words(x, 1);
  set("FAKECUDA_FAIL", "cuLinkComplete:0=2"); /* forms that cannot be made are the launch's failure */
  CHECK_EQ_U64(give(step, x, "c", 1, 513, NULL), HG_OUT_OF_MEMORY);
  CHECK_EQ_U64(give(step, x, "c", 1, 513, stream), HG_OUT_OF_MEMORY);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 1, 513, stream), HG_OK);
  hg_graph *none = NULL;
  CHECK_EQ_U64(hg_capture_end(stream, &none), HG_OUT_OF_MEMORY);
  CHECK(none == NULL);
  set("FAKECUDA_FAIL", NULL);
  CHECK_EQ_U64(give(step, x, "c", 1, 513, NULL), HG_FAULT);
  hg_graph_release(graph);
  hg_buffer_release(x);
  hg_stream_release(stream);
  hg_kernel_release(step);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* Held in the driver. */
static void test_driver_stops_nobody(void) {
  maker makers[THREADS];
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  hg_kernel *step = kernel_of(step_text);
  unsigned before = gpu.loads();
  gpu.hold_loads(1);
  for (int i = 0; i < THREADS; i++) start(&makers[i], program_of(other_text));
  UNTIL(gpu.held_loads() == 1 && references_of_codes() == THREADS + 1);
  use_executor(step);
  gpu.hold_loads(0);
  for (int i = 0; i < THREADS; i++) {
    stop(&makers[i]);
    CHECK_EQ_U64(makers[i].status, HG_OK);
    hg_kernel_release(makers[i].kernel);
  }
  CHECK_EQ_U64(gpu.loads(), before + 1);
  hg_kernel_release(step);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* Several compile at a time while memory is short, with and without pools of memory. */
static void test_short_memory(const char *pools) {
  maker makers[THREADS];
  set("FAKECUDA_POOLS", pools);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  hg_kernel *step = kernel_of(step_text);
  set("FAKECUDA_FAIL", "cuModuleLoadData:1=2 cuModuleLoadData:2=2"); /* tried again */
  for (int i = 0; i < THREADS; i++) {
    start(&makers[i], program_of(text_that_adds(i)));
  }
  for (int i = 0; i < 20; i++) use_executor(step);
  for (int i = 0; i < THREADS; i++) {
    stop(&makers[i]);
    CHECK(makers[i].status == HG_OK || makers[i].status == HG_OUT_OF_MEMORY);
    hg_kernel_release(makers[i].kernel);
  }
  set("FAKECUDA_FAIL", NULL);
  set("FAKECUDA_POOLS", NULL);
  hg_kernel_release(step);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

static void test_on_double(void) {
  if (test_backend() != HG_BACKEND_CUDA || !find_fake_gpu()) return;
  test_driver_stops_nobody();
  test_forms();
  test_forms_of_graphs();
  test_short_memory("1");
  test_short_memory("0");
}
#else
static void test_on_double(void) {}
#endif

/* ---- in the background ------------------------------------------------------------------------------------------- */

static hg_kernel *kernel_in_background(const char *text, hg_event *event) {
  atlas_program *program = program_of(text);
  hg_kernel *kernel = NULL;
  CHECK_EQ_U64(hg_kernel_create_async(executor, program, &kernel, event), HG_OK);
  atlas_program_release(program);
  return kernel;
}

static void open_gate(void *unused) {
  (void)unused;
  UNTIL(atomic_load(&compiler.waiting) > 0);
  hold(0);
}

static void test_background(void) {
  hg_thread opener;
  open_executor(NULL);
  hg_event *event = event_of(HG_EVENT_TIMED), *other = event_of(HG_EVENT_TIMED);
  hg_stream *stream = stream_of();
  hg_buffer *x = buffer_of(many() * 4, NULL);
  double nanoseconds = 0;
  for (int i = 0; i < 4; i++) {
    uint32_t sum = (uint32_t)i;
    hold(1);
    hg_kernel *kernel = kernel_in_background(text_that_adds(i + 1), event); /* it holds the one before until now */
    CHECK_EQ_U64(hg_event_query(event), HG_BUSY);
    CHECK_STR(hg_last_error(), "the kernel is still being compiled");
    CHECK_EQ_U64(hg_event_elapsed(event, other, &nanoseconds), HG_INVALID_ARGUMENT);
    CHECK_EQ_U64(hg_buffer_fill(x, 0, many() * 4, &sum, 4), HG_OK); /* nobody is stopped */
    CHECK_EQ_U64(hg_thread_start(&opener, open_gate, NULL), 0);
    if (i == 0) CHECK_EQ_U64(hg_event_wait(event), HG_OK);
    if (i == 1) CHECK_EQ_U64(hg_stream_wait_event(stream, event), HG_OK);
    if (i < 2) CHECK_EQ_U64(hg_event_query(event), HG_OK);
    if (i == 3) { /* it is a place in a stream again, and lets the kernel go */
      CHECK_EQ_U64(hg_event_record(event, stream), HG_OK);
      CHECK_EQ_U64(hg_event_wait(event), HG_OK);
    }
    CHECK_EQ_U64(give(kernel, x, NULL, 0, many(), i % 2 ? stream : NULL), HG_OK);
    check_all_words(x, 2 * sum + 1);
    CHECK_EQ_U64(hg_event_query(event), HG_OK);
    hg_thread_join(&opener);
    hg_kernel_release(kernel);
  }
  hg_event_release(other);
  hg_buffer_release(x);
  hg_stream_release(stream);
  hg_event_release(event);
  hg_executor_release(executor);
}

static void test_background_failures(void) {
  atlas_program *program = program_of(other_text), *library = program_of(".entry exp f32 half\nhalf:\nret\n");
  hg_executor *stranger = NULL;
  open_executor(NULL);
  hg_executor *mine = executor;
  CHECK_EQ_U64(open_test_executor(NULL, &stranger), HG_OK);
  executor = stranger;
  hg_event *foreign = event_of(0);
  executor = mine;
  hg_event *event = event_of(0);
  hg_kernel *kernel = (hg_kernel *)(void *)program;
  CHECK_EQ_U64(hg_kernel_create_async(NULL, program, &kernel, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_kernel_create_async(executor, NULL, &kernel, NULL), HG_INVALID_ARGUMENT);
  CHECK(kernel != NULL);
  CHECK_EQ_U64(hg_kernel_create_async(executor, program, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_kernel_create_async: an argument is NULL");
  CHECK_EQ_U64(hg_kernel_create_async(executor, program, &kernel, foreign), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_kernel_create_async: the event belongs to another executor");
  CHECK(kernel == NULL);
  if (library != NULL) {
    CHECK_EQ_U64(hg_kernel_create_async(executor, library, &kernel, event), HG_VERIFY);
    CHECK(kernel == NULL);
  }
  CHECK_EQ_U64(hg_event_query(event), HG_OK);
  atomic_store(&compiler.fails, 1);
  CHECK_EQ_U64(hg_kernel_create_async(executor, program, &kernel, event), HG_OK);
  hg_buffer *x = buffer_of(64, NULL);
  for (int i = 0; i < 2; i++) {
    CHECK_EQ_U64(give(kernel, x, NULL, 0, 16, NULL), HG_DEVICE);
    CHECK_STR(hg_last_error(), "compilation 0 broke down");
  }
  CHECK_EQ_U64(hg_event_wait(event), HG_OK); /* it is reached, that is all */
  hg_kernel_release(kernel);
  hg_buffer_release(x);
  hg_event_release(event);
  hg_event_release(foreign);
  atlas_program_release(program);
  atlas_program_release(library);
  hg_executor_release(executor);
  hg_executor_release(stranger);
}

/* More than there are threads: those not begun are never compiled, and releasing those that are waits. */
static void test_given_up(void) {
  enum { KERNELS = 3 * HG_COMPILERS };
  hg_kernel *kernels[KERNELS];
  hg_thread opener;
  open_executor(NULL);
  hg_event *event = event_of(0);
  hold(1);
  for (int i = 0; i < KERNELS; i++) {
    kernels[i] = kernel_in_background(text_that_adds(i), i == KERNELS - 1 ? event : NULL);
  }
  uint32_t limit = hg_thread_limit() < HG_COMPILERS ? hg_thread_limit() : HG_COMPILERS;
  UNTIL(atomic_load(&compiler.waiting) == limit);
  for (int i = KERNELS - 2; i >= HG_COMPILERS; i--) hg_kernel_release(kernels[i]); /* from the end, and the middle */
  hg_executor_release(executor); /* the kernels keep it */
  hg_kernel_release(kernels[KERNELS - 1]); /* the event keeps it */
  CHECK_EQ_U64(hg_event_query(event), HG_BUSY);
  CHECK_EQ_U64(hg_thread_start(&opener, open_gate, NULL), 0);
  for (int i = 0; i < HG_COMPILERS; i++) hg_kernel_release(kernels[i]);
  hg_thread_join(&opener);
  CHECK_EQ_U64(hg_event_wait(event), HG_OK);
  CHECK(atomic_load(&compiler.compiled) <= HG_COMPILERS + 1);
  hg_event_release(event);
}

/* Threads end when there is nothing to do, and are started anew. */
static void test_again_and_again(void) {
  open_executor(NULL);
  hg_buffer *x = buffer_of(64, NULL);
  for (uint32_t i = 0; i < 200; i++) {
    hg_kernel *first = kernel_in_background(other_text, NULL), *second = kernel_in_background(other_text, NULL);
    hg_kernel *third = kernel_in_background(step_text, NULL);
    if (i % 3 == 0) CHECK_EQ_U64(give(second, x, NULL, 0, 16, NULL), HG_OK);
    if (i % 5 == 0) CHECK_EQ_U64(give(third, x, "c", 1, 16, NULL), HG_OK);
    hg_kernel_release(third);
    hg_kernel_release(first);
    hg_kernel_release(second);
  }
  hg_buffer_release(x);
  hg_executor_release(executor);
}

/* ---- memory that runs out ---------------------------------------------------------------------------------------- */

/* A kernel in the background and one like it, at once. */
static hg_status make_both(atlas_program *program, hg_buffer *x, hg_event *event) {
  hg_kernel *kernel = NULL, *second = NULL;
  hg_status status = hg_kernel_create_async(executor, program, &kernel, event);
  CHECK((status == HG_OK) == (kernel != NULL));
  if (status == HG_OK) status = hg_kernel_create(executor, program, &second);
  if (status == HG_OK) status = give(second, x, NULL, 0, 16, NULL);
  if (status == HG_OK) status = give(kernel, x, NULL, 0, 16, NULL);
  hg_kernel_release(second);
  hg_kernel_release(kernel);
  return status;
}

static void test_allocation_failures(void) {
  static counter c;
  const hg_allocator allocator = {.size = sizeof allocator, .user = &c, .allocate = counted_allocate,
                                  .release = counted_release};
  for (long n = -1, left = 1; left > 0; n++) {
    atlas_program *program = NULL;
    atomic_store(&c.allocations, 0);
    c.fail_at = -1;
    open_executor(&allocator);
    CHECK_EQ_U64(atlas_parse(&allocator, other_text, sizeof other_text - 1, NULL, &program), HG_OK);
    hg_buffer *x = buffer_of(64, NULL);
    hg_event *event = event_of(0);
    CHECK_EQ_U64(hg_kernel_create(NULL, program, &(hg_kernel *){NULL}), HG_INVALID_ARGUMENT);
    long first = atomic_load(&c.allocations);
    c.fail_at = n < 0 ? -1 : first + n;
    hg_status status = make_both(program, x, event);
    CHECK(status == HG_OK || (n >= 0 && status == HG_OUT_OF_MEMORY));
    CHECK_EQ_U64(hg_event_wait(event), HG_OK); /* it may be under way still, where another call failed */
    if (n >= 0) left = atomic_load(&c.allocations) - c.fail_at;
    c.fail_at = -1;
    CHECK_EQ_U64(make_both(program, x, event), HG_OK);
    hg_event_release(event);
    hg_buffer_release(x);
    atlas_program_release(program);
    hg_executor_release(executor);
    CHECK_EQ_U64(atomic_load(&c.live), 0);
  }
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

#if !defined(_WIN32)
/* In the child there is nobody who compiles. */
static int use_in_child(hg_kernel *kernel, hg_event *event, hg_buffer *x) {
  static const char expected[] = "a kernel was being compiled when the process forked, and what did it is not there in "
                                 "the child; wait for kernels before a fork, or make new ones after it";
  hg_kernel *again = NULL;
  hold(0);
  if (give(kernel, x, NULL, 0, 16, NULL) != HG_UNSUPPORTED || strcmp(hg_last_error(), expected) != 0) return 1;
  if (hg_event_wait(event) != HG_UNSUPPORTED || hg_event_query(event) != HG_UNSUPPORTED) return 2;
  if (test_backend() == HG_BACKEND_CPU) {
    atlas_program *program = NULL;
    if (atlas_parse(NULL, other_text, sizeof other_text - 1, NULL, &program) != HG_OK) return 3;
    if (hg_kernel_create_async(executor, program, &again, event) != HG_OK) return 4;
    if (give(again, x, NULL, 0, 16, NULL) != HG_OK || hg_event_wait(event) != HG_OK) return 5;
    atlas_program_release(program);
  }
  hg_kernel_release(again);
  hg_kernel_release(kernel);
  hg_event_release(event);
  hg_buffer_release(x);
  hg_executor_release(executor);
  return 0;
}

static void test_fork(void) {
  int status = -1;
  open_executor(NULL);
  hg_event *event = event_of(0);
  hg_buffer *x = buffer_of(64, NULL);
  hold(1);
  hg_kernel *kernel = kernel_in_background(other_text, event);
  UNTIL(atomic_load(&compiler.waiting) == 1);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(use_in_child(kernel, event, x));
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_EQ_U64(status, 0);
  hold(0);
  CHECK_EQ_U64(give(kernel, x, NULL, 0, 16, NULL), HG_OK);
  hg_kernel_release(kernel);
  hg_buffer_release(x);
  hg_event_release(event);
  hg_executor_release(executor);
}

static int ends_of_pipe[2];

static hg_status compile_late(void *device, hg_compile_input *input, hg_compiled *out) {
  usleep(100000);
  hg_status status = compiler.real->compile(device, input, out);
  return write(ends_of_pipe[1], "c", 1) == 1 ? status : HG_DEVICE;
}

static void note_exit(void) { (void)!write(ends_of_pipe[1], "e", 1); }

/* exit() waits for a compilation under way before the handlers that were set earlier run. */
static void test_exit(void) {
  char order[4] = "";
  int status = -1;
  CHECK_EQ_U64(pipe(ends_of_pipe), 0);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    atexit(note_exit);
    open_executor(NULL);
    compiler.gated.compile = compile_late;
    (void)kernel_in_background(other_text, NULL);
    while (references_of_codes() == 0) usleep(1000);
    exit(0);
  }
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_EQ_U64(read(ends_of_pipe[0], order, 2), 2);
  CHECK_STR(order, "ce");
  close(ends_of_pipe[0]);
  close(ends_of_pipe[1]);
}

/* A GPU's driver is not for children; the exit's handlers are set by the process that first has something compiled. */
static void test_processes(void) {
  if (test_backend() == HG_BACKEND_CPU && !SANITIZED) test_exit();
  test_fork();
}
#else
static void test_processes(void) {}
#endif

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  test_processes();
  test_stops_nobody();
  test_compiled_once();
  test_texts();
  test_failure_is_shared();
  test_background();
  test_background_failures();
  test_given_up();
  test_again_and_again();
  test_allocation_failures();
  test_on_double();
  return check_report();
}
