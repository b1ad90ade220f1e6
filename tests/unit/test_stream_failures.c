/* test_stream_failures.c - streams, events and graphs: misuse, and memory that runs out. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "counted_by_threads.h"
#include "streams.h"

/* ---- misuse ------------------------------------------------------------------------------------------------------ */

#define CHECK_REFUSED(call, status, sentence) \
  do {                                        \
    CHECK_EQ_U64(call, status);               \
    CHECK_STR(hg_last_error(), sentence);     \
  } while (0)

static void test_other_executor(void) {
  hg_executor *mine = executor, *other = NULL;
  CHECK_EQ_U64(open_test_executor(NULL, &other), HG_OK);
  executor = other;
  hg_stream *foreign = stream_of();
  hg_event *event = event_of(0);
  hg_buffer *elsewhere = buffer_of(many() * 4, NULL);
  executor = mine;
  hg_kernel *step = kernel_of(step_text);
  hg_buffer *x = buffer_of(many() * 4, NULL);
  hg_stream *stream = stream_of();
  hg_graph *graph = NULL;
  uint32_t word = 0;
  CHECK_REFUSED(give(step, x, "c", 1, 1, foreign), HG_INVALID_ARGUMENT,
                "hg_launch_desc.stream belongs to another executor");
  CHECK_REFUSED(hg_buffer_write_async(x, 0, &word, 4, foreign), HG_INVALID_ARGUMENT,
                "the stream belongs to another executor");
  CHECK_REFUSED(hg_buffer_copy_async(elsewhere, 0, x, 0, 4, stream), HG_INVALID_ARGUMENT,
                "the two buffers belong to different executors; copy them without a stream");
  CHECK_EQ_U64(give(step, x, "c", 6, many(), stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy(elsewhere, 0, x, 0, many() * 4), HG_OK); /* waits for both */
  check_all_words(elsewhere, 6);
  hg_buffer_release(elsewhere);
  CHECK_REFUSED(hg_event_record(event, stream), HG_INVALID_ARGUMENT, "the stream belongs to another executor");
  CHECK_REFUSED(hg_stream_wait_event(stream, event), HG_INVALID_ARGUMENT, "the stream belongs to another executor");
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  CHECK_REFUSED(hg_graph_launch(graph, foreign), HG_INVALID_ARGUMENT,
                "hg_graph_launch: the stream belongs to another executor");
  hg_graph_release(graph);
  hg_event_release(event);
  hg_stream_release(stream);
  hg_executor_release(other);
  hg_stream_release(foreign);
  hg_buffer_release(x);
  hg_kernel_release(step);
}

static void test_misuse(void) {
  hg_stream *stream = stream_of();
  hg_event *event = event_of(0);
  hg_kernel *step = kernel_of(step_text);
  hg_buffer *x = buffer_of(64, NULL), *y = buffer_of(64, NULL);
  hg_graph *graph = NULL, *again = NULL;
  uint32_t word = 3;
  void *memory = NULL;
  hg_stream_desc bad_stream = {.flags = 1};
  hg_event_desc bad_event = {.flags = 4};
  hg_stream *no_stream = NULL;
  hg_event *no_event = NULL;
  CHECK_REFUSED(hg_stream_create(executor, &bad_stream, &no_stream), HG_INVALID_ARGUMENT,
                "hg_stream_desc.flags 0x1 has a bit that means nothing");
  CHECK_REFUSED(hg_event_create(executor, &bad_event, &no_event), HG_INVALID_ARGUMENT,
                "hg_event_desc.flags 0x4 has a bit that means nothing");
  CHECK_REFUSED(hg_capture_end(stream, &graph), HG_INVALID_ARGUMENT,
                "hg_capture_end: the stream captures nothing; hg_capture_begin comes first");
  CHECK_EQ_U64(hg_buffer_map(x, &memory), HG_OK);
  CHECK_REFUSED(hg_buffer_write_async(x, 0, &word, 4, stream), HG_BUSY,
                "the buffer is mapped; unmap it before a stream is given work for it");
  CHECK_REFUSED(give(step, x, "c", 1, 1, stream), HG_BUSY, "the buffer for 'x' is mapped; unmap it before the launch");
  CHECK_EQ_U64(hg_buffer_unmap(x), HG_OK);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_REFUSED(hg_capture_begin(stream), HG_BUSY,
                "hg_capture_begin: the stream captures a graph already; end that capture first");
  CHECK_REFUSED(hg_stream_wait(stream, NULL), HG_BUSY,
                "the stream captures a graph; end the capture before you wait for it");
  CHECK_REFUSED(hg_event_record(event, stream), HG_BUSY,
                "the stream captures a graph, which takes no events; end the capture first");
  CHECK_EQ_U64(hg_stream_wait_event(stream, event), HG_BUSY);
  CHECK_REFUSED(hg_buffer_write_async(y, 0, &word, 4, stream), HG_UNSUPPORTED,
                "a graph copies to and from memory of hg_host_allocate only, because other memory cannot be copied "
                "without the caller");
  CHECK_REFUSED(give(step, y, "d", 1, 1, stream), HG_BINDING,
                "program 'step' has no parameter 'd'; its scalars are: c");
  CHECK_EQ_U64(give(step, x, "c", 4, 16, stream), HG_OK); /* all that counts */
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_REFUSED(hg_graph_launch(graph, stream), HG_BUSY,
                "hg_graph_launch: the stream captures a graph, which takes no other graphs");
  CHECK_EQ_U64(hg_capture_end(stream, &again), HG_OK);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_REFUSED(hg_graph_launch(again, stream), HG_BUSY, /* though there is nothing in it */
                "hg_graph_launch: the stream captures a graph, which takes no other graphs");
  CHECK_REFUSED(hg_capture_end(stream, NULL), HG_INVALID_ARGUMENT,
                "hg_capture_end: there is no place for the graph, which is given up");
  CHECK_EQ_U64(hg_graph_launch(again, stream), HG_OK); /* and the capture is over */
  CHECK_EQ_U64(hg_buffer_map(x, &memory), HG_OK);
  CHECK_REFUSED(hg_graph_launch(graph, stream), HG_BUSY,
                "hg_graph_launch: a buffer of the graph is mapped; unmap it before the launch");
  CHECK_EQ_U64(hg_buffer_unmap(x), HG_OK);
  CHECK_EQ_U64(hg_buffer_map(y, &memory), HG_OK); /* it was in calls that failed, and is not the graph's */
  CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_unmap(y), HG_OK);
  check_all_words(x, 4);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 4, 16, stream), HG_OK);
  hg_stream_release(stream); /* with its capture */
  hg_graph_release(again);
  hg_graph_release(graph);
  hg_event_release(event);
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_kernel_release(step);
  CHECK_EQ_U64(hg_stream_wait(NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_event_wait(NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_graph_launch(NULL, NULL), HG_INVALID_ARGUMENT);
  memory = executor;
  CHECK_REFUSED(hg_host_allocate(executor, UINT64_MAX, &memory), HG_OUT_OF_MEMORY,
                test_backend() == HG_BACKEND_CUDA
                    ? "could not allocate 18446744073709551615 bytes for page-locked memory"
                    : "could not allocate 18446744073709551615 bytes for host memory");
  CHECK(memory == NULL);
  hg_stream_release(NULL);
  hg_graph_release(NULL);
}

/* ---- memory that runs out ---------------------------------------------------------------------------------------- */

typedef struct scene {
  hg_stream *stream, *other;
  hg_event *event;
  hg_kernel *step;
  hg_buffer *x, *y;
  hg_graph *graph;
  void *host;
} scene;

#define STEP(expression)                          \
  do {                                            \
    hg_status step_status = (expression);         \
    if (step_status != HG_OK) return step_status; \
  } while (0)

static hg_status play(scene *s, const hg_allocator *allocator, atlas_program *program) {
  hg_event_desc timed = {.flags = HG_EVENT_TIMED};
  uint32_t word = 0;
  STEP(open_test_executor(allocator, &executor));
  STEP(hg_kernel_create(executor, program, &s->step));
  STEP(hg_buffer_create(executor, NULL, many() * 4, &s->x));
  STEP(hg_buffer_create(executor, NULL, many() * 4, &s->y));
  STEP(hg_stream_create(executor, NULL, &s->stream));
  STEP(hg_stream_create(executor, NULL, &s->other));
  STEP(hg_event_create(executor, &timed, &s->event));
  STEP(hg_host_allocate(executor, 64, &s->host));
  for (uint32_t i = 0; i < 3; i++) STEP(give(s->step, s->x, "c", 1, many(), s->stream));
  STEP(hg_event_record(s->event, s->stream));
  STEP(hg_stream_wait_event(s->other, s->event));
  STEP(hg_buffer_copy_async(s->y, 0, s->x, 0, many() * 4, s->other));
  STEP(hg_capture_begin(s->stream));
  STEP(give(s->step, s->x, "c", 2, many(), s->stream));
  STEP(hg_buffer_read_async(s->x, 0, s->host, 64, s->stream));
  STEP(hg_capture_end(s->stream, &s->graph));
  STEP(hg_event_record(s->event, s->other));
  STEP(hg_stream_wait_event(s->stream, s->event));
  STEP(hg_graph_launch(s->graph, s->stream));
  STEP(hg_stream_wait(s->stream, NULL));
  CHECK_EQ_U64(((const uint32_t *)s->host)[15], 41);
  STEP(hg_stream_wait(s->other, NULL));
  STEP(hg_buffer_read(s->y, 0, &word, 4));
  CHECK_EQ_U64(word, 13);
  STEP(give(s->step, s->y, "c", 1, many(), s->stream));
  STEP(give(s->step, s->x, "c", 1, many(), s->stream));
  return HG_OK;
}

static void let_go(scene *s) {
  hg_buffer_release(s->x);
  hg_buffer_release(s->y);
  hg_host_release(executor, s->host);
  hg_executor_release(executor);
  hg_kernel_release(s->step);
  hg_graph_release(s->graph);
  hg_stream_release(s->stream);
  hg_event_release(s->event);
  hg_stream_release(s->other);
}

static void test_allocation_failures(void) {
  hg_executor *mine = executor;
  counter c = {.fail_at = -1};
  hg_allocator allocator = {.user = &c, .allocate = counted_allocate, .release = counted_release};
  atlas_program *program = NULL;
  long total = 0, failed = 0;
  CHECK_EQ_U64(atlas_parse(NULL, step_text, sizeof step_text - 1, NULL, &program), HG_OK);
  for (long fail_at = -1; fail_at < total; fail_at++) {
    scene s = {0};
    atomic_store(&c.allocations, 0);
    atomic_store(&c.live, 0);
    c.fail_at = fail_at;
    executor = NULL;
    hg_status status = play(&s, &allocator, program);
    if (fail_at == -1) total = atomic_load(&c.allocations);
    if (fail_at == -1) CHECK_EQ_U64(status, HG_OK);
    CHECK(status == HG_OK || status == HG_OUT_OF_MEMORY); /* what needs no memory is done without */
    failed += status != HG_OK;
    let_go(&s);
    CHECK_EQ_U64(atomic_load(&c.live), 0);
    if (atomic_load(&c.live) != 0) printf("  after allocation %ld failed\n", fail_at);
  }
  CHECK(total > 30 && failed > 20);
  atlas_program_release(program);
  executor = mine;
}

/* ---- work that could not be done --------------------------------------------------------------------------------- */

static _Thread_local int is_the_tests; /* 1: this thread is given memory */

static void *allocate_for_the_test(void *user, size_t size) {
  (void)user;
  return is_the_tests ? malloc(size) : NULL;
}

static void release_for_all(void *user, void *memory) {
  (void)user;
  free(memory);
}

/* A block needs more than a thread has for it. */
static const char large_text[] =
    ".program large\n"
    ".buffer x u32 inout\n"
    ".shared s u32 8192\n"
    "    ldg.u32 r0, [x + lane]\n"
    "    sts.u32 [s + blane], r0\n"
    "    bar.sync\n"
    "    lds.u32 r1, [s + #0]\n"
    "    stg.u32 [x + lane], r1\n"
    "    exit\n";

/* What was there before work that could not be done is not taken for what it was to write, until somebody knows. */
static void check_unsettled(hg_buffer *x) {
  uint32_t word = 77;
  void *mapped = NULL;
  CHECK_EQ_U64(hg_buffer_read(x, 0, &word, 4), HG_OUT_OF_MEMORY);
  CHECK(strncmp(hg_last_error(), "could not allocate ", 19) == 0);
  CHECK_EQ_U64(word, 77);
  CHECK_EQ_U64(hg_buffer_map(x, &mapped), HG_OUT_OF_MEMORY);
}

/* Who asks first whether it is done still hears of it at the wait, once. */
static void test_asked_before_the_wait(void) {
  if (test_backend() != HG_BACKEND_CPU) return; /* a GPU needs no memory of the host then */
  enum { BLOCKS = 512, LANES = 256 };
  hg_executor *mine = executor;
  hg_allocator allocator = {.allocate = allocate_for_the_test, .release = release_for_all};
  is_the_tests = 1;
  CHECK_EQ_U64(open_test_executor(&allocator, &executor), HG_OK);
  hg_stream *stream = stream_of();
  hg_kernel *large = kernel_of(large_text);
  hg_buffer *x = buffer_of(BLOCKS * LANES * 4, NULL);
  hg_binding binding = {.name = "x", .buffer = x};
  hg_launch_desc desc = {
      .grid = {BLOCKS}, .block = {LANES}, .bindings = &binding, .binding_count = 1, .stream = stream};
  CHECK_EQ_U64(hg_launch(large, &desc, NULL), HG_OK);
  hg_status status = HG_BUSY;
  while (status == HG_BUSY) status = hg_stream_query(stream);
  CHECK_EQ_U64(status, HG_OUT_OF_MEMORY);
  check_unsettled(x);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OUT_OF_MEMORY);
  CHECK(strncmp(hg_last_error(), "could not allocate ", 19) == 0);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK_EQ_U64(first_word(x), 0);
  CHECK_EQ_U64(hg_launch(large, &desc, NULL), HG_OK);
  check_unsettled(x); /* waits by itself */
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OUT_OF_MEMORY);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  hg_stream_release(stream);
  hg_buffer_release(x);
  hg_kernel_release(large);
  hg_executor_release(executor);
  executor = mine;
}

static void run_all(void) {
  test_other_executor();
  test_misuse();
  test_allocation_failures();
  test_asked_before_the_wait();
}

int main(void) { return run_stream_tests(run_all); }
