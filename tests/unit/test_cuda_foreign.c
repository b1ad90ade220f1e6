/* test_cuda_foreign.c - streams that another library owns, in the same context of a double of libcuda: adopted, and
 * captured by their owner; and waits that fail. */
#define _GNU_SOURCE
#include "fake_gpu.h"

static struct {
  int (*push)(void *), (*pop)(void **), (*retain)(void **, int), (*release)(int), (*create)(void **, unsigned),
      (*destroy)(void *), (*begin)(void *, int), (*end)(void *, void **), (*destroy_graph)(void *);
} driver;

static void find_driver(void) {
  void *library = hg_library_open("libcuda.so.1", "");
  hg_library_find(library, "cuCtxPushCurrent_v2", &driver.push);
  hg_library_find(library, "cuCtxPopCurrent_v2", &driver.pop);
  hg_library_find(library, "cuDevicePrimaryCtxRetain", &driver.retain);
  hg_library_find(library, "cuDevicePrimaryCtxRelease_v2", &driver.release);
  hg_library_find(library, "cuStreamCreate", &driver.create);
  hg_library_find(library, "cuStreamDestroy_v2", &driver.destroy);
  hg_library_find(library, "cuStreamBeginCapture_v2", &driver.begin);
  hg_library_find(library, "cuStreamEndCapture", &driver.end);
  hg_library_find(library, "cuGraphDestroy", &driver.destroy_graph);
}

/* Another library with a stream of its own in the GPU's primary context, which the executor uses too. */
typedef struct guest {
  hg_executor *executor;
  hg_stream *stream;
  hg_buffer *buffer; /* of 64 bytes */
  void *context, *foreign;
} guest;

static void open_guest(guest *g) {
  *g = (guest){.executor = NULL};
  find_driver();
  CHECK_EQ_U64(open_gpu(&g->executor), HG_OK);
  CHECK_EQ_U64(driver.retain(&g->context, 0), 0);
  CHECK_EQ_U64(driver.push(g->context), 0);
  CHECK_EQ_U64(driver.create(&g->foreign, 1), 0);
  hg_stream_desc desc = {.foreign = g->foreign};
  CHECK_EQ_U64(hg_stream_create(g->executor, &desc, &g->stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(g->executor, NULL, 64, &g->buffer), HG_OK);
}

static void close_guest(guest *g) {
  hg_stream_release(g->stream);
  CHECK_EQ_U64(driver.destroy(g->foreign), 0); /* still there */
  hg_buffer_release(g->buffer);
  hg_executor_release(g->executor);
  CHECK_EQ_U64(driver.pop(&g->context), 0);
  CHECK_EQ_U64(driver.release(0), 0);
  CHECK_CLEAN();
}

static hg_status fill_word(hg_buffer *buffer, uint32_t value, hg_stream *stream) {
  return hg_buffer_fill_async(buffer, 0, 64, &value, 4, stream);
}

static void check_word(hg_buffer *buffer, uint32_t expected) {
  uint32_t word = 0;
  CHECK_EQ_U64(hg_buffer_read(buffer, 60, &word, 4), HG_OK);
  CHECK_EQ_U64(word, expected);
}

static hg_kernel *kernel_of(hg_executor *executor, const char *text) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, text, strlen(text), NULL, &program), HG_OK);
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
  atlas_program_release(program);
  return kernel;
}

static hg_status launch_on(hg_kernel *kernel, hg_buffer *x, uint64_t lanes, hg_stream *stream) {
  hg_binding binding = {.name = "x", .buffer = x};
  hg_launch_desc desc = {.lanes = lanes, .bindings = &binding, .binding_count = 1, .stream = stream};
  return hg_launch(kernel, &desc, NULL);
}

static const char plus_text[] =
    ".program plus\n"
    ".buffer x u32 inout\n"
    "    ldg.u32 r0, [x + lane]\n"
    "    add.u32 r0, r0, #1\n"
    "    stg.u32 [x + lane], r0\n"
    "    exit\n";

static const char counting_text[] =
    ".program counting\n"
    ".buffer x u32 inout\n"
    "    movi.u32 r0, #9\n"
    "    stg.u32 [x + lane], r0\n"
    "    res.accum.i64 #5, #1\n"
    "    exit\n";

static void end_capture(const guest *g) {
  void *graph = NULL;
  CHECK_EQ_U64(driver.end(g->foreign, &graph), 0);
  CHECK_EQ_U64(driver.destroy_graph(graph), 0);
}

/* Used, not waited for more than asked, not destroyed. */
static void test_foreign_stream(void) {
  guest g;
  hg_event *event = NULL;
  open_guest(&g);
  CHECK_EQ_U64(hg_event_create(g.executor, NULL, &event), HG_OK);
  CHECK_EQ_U64(fill_word(g.buffer, 7, g.stream), HG_OK);
  check_word(g.buffer, 7);
  CHECK_EQ_U64(driver.begin(g.foreign, 2), 0);
  CHECK_EQ_U64(fill_word(g.buffer, 8, g.stream), HG_BUSY);
  CHECK_EQ_U64(hg_stream_wait_event(g.stream, event), HG_OK); /* it counts as reached: nothing to wait for */
  check_word(g.buffer, 7); /* the stream has nothing left to do for it */
  end_capture(&g);
  set("FAKECUDA_FAIL", "cuStreamIsCapturing:1=906"); /* the default stream, while one that waits for it is captured */
  CHECK_EQ_U64(fill_word(g.buffer, 8, g.stream), HG_BUSY);
  set("FAKECUDA_FAIL", NULL);
  CHECK_EQ_U64(fill_word(g.buffer, 8, g.stream), HG_OK);
  hg_event_release(event);
  close_guest(&g);
}

#define CHECK_CAPTURED(call)                                                                         \
  do {                                                                                               \
    CHECK_EQ_U64(call, HG_BUSY);                                                                     \
    CHECK_STR(hg_last_error(), "the foreign stream is captured into a graph by another library");    \
  } while (0)

/* Every call that needs what the stream was given before its owner captured it. */
static void check_captured(const guest *g, hg_kernel *plus, hg_kernel *counting, hg_graph *graph, hg_event *event) {
  hg_executor *cpu = NULL;
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  hg_buffer *other = NULL, *elsewhere = NULL;
  hg_launch_report report = {.lanes = 5};
  uint32_t word = 77;
  void *mapped = NULL;
  CHECK_EQ_U64(hg_executor_create(&desc, &cpu), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(cpu, NULL, 64, &elsewhere), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(g->executor, NULL, 64, &other), HG_OK);
  CHECK_CAPTURED(hg_stream_wait(g->stream, &report));
  CHECK_EQ_U64(report.lanes, 5);
  CHECK_CAPTURED(hg_stream_query(g->stream));
  CHECK_CAPTURED(hg_buffer_read(g->buffer, 0, &word, 4));
  CHECK_EQ_U64(word, 77);
  CHECK_CAPTURED(hg_buffer_write(g->buffer, 0, &word, 4));
  CHECK_CAPTURED(hg_buffer_fill(g->buffer, 0, 4, &word, 4));
  CHECK_CAPTURED(hg_buffer_copy(g->buffer, 0, other, 0, 4));
  CHECK_CAPTURED(hg_buffer_copy(other, 0, g->buffer, 0, 4));
  CHECK_CAPTURED(hg_buffer_copy(elsewhere, 0, g->buffer, 0, 4));
  CHECK_CAPTURED(hg_buffer_copy(g->buffer, 0, elsewhere, 0, 4));
  CHECK_CAPTURED(hg_buffer_map(g->buffer, &mapped));
  CHECK_CAPTURED(launch_on(plus, g->buffer, 16, NULL));
  CHECK_CAPTURED(launch_on(plus, g->buffer, 16, g->stream));
  CHECK_CAPTURED(launch_on(counting, other, 16, g->stream));
  CHECK_CAPTURED(launch_on(plus, other, 16, g->stream));
  CHECK_CAPTURED(fill_word(other, 9, g->stream));
  CHECK_CAPTURED(hg_graph_launch(graph, g->stream));
  CHECK_CAPTURED(hg_event_record(event, g->stream));
  CHECK_CAPTURED(hg_stream_wait_event(g->stream, event));
  check_word(other, 0); /* all else goes on, and refused work leaves nothing behind */
  hg_buffer_release(other);
  hg_buffer_release(elsewhere);
  hg_executor_release(cpu);
}

static hg_graph *graph_of(hg_executor *executor, hg_kernel *kernel, hg_buffer *x) {
  hg_stream *stream = NULL;
  hg_graph *graph = NULL;
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(launch_on(kernel, x, 16, stream), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  hg_stream_release(stream);
  return graph;
}

/* While the owner captures the stream nothing is lost: work that it was given stays, and its faults; memory is freed
 * behind it. */
static void test_captured_stream(const char *pools) {
  guest g;
  hg_buffer *freed = NULL;
  hg_event *event = NULL;
  void *memory = NULL;
  set("FAKECUDA_POOLS", pools);
  open_guest(&g);
  hg_kernel *plus = kernel_of(g.executor, plus_text), *counting = kernel_of(g.executor, counting_text);
  hg_graph *graph = graph_of(g.executor, plus, g.buffer);
  CHECK_EQ_U64(hg_event_create(g.executor, NULL, &event), HG_OK);
  CHECK_EQ_U64(hg_event_record(event, g.stream), HG_OK);
  CHECK_EQ_U64(hg_host_allocate(g.executor, 64, &memory), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(g.executor, NULL, 64, &freed), HG_OK);
  CHECK_EQ_U64(fill_word(freed, 3, g.stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(g.buffer, 0, freed, 0, 64, g.stream), HG_OK);
  CHECK_EQ_U64(launch_on(plus, g.buffer, 17, g.stream), HG_OK); /* the last lane faults */
  CHECK_EQ_U64(hg_graph_launch(graph, g.stream), HG_OK);
  CHECK_EQ_U64(driver.begin(g.foreign, 2), 0);
  check_captured(&g, plus, counting, graph, event);
  hg_buffer_release(freed);
  CHECK_EQ_U64(hg_buffer_create(g.executor, NULL, 64, &freed), HG_OK); /* which may be the same memory */
  CHECK_EQ_U64(fill_word(freed, 100, NULL), HG_OK);
  check_word(freed, 100);
  end_capture(&g);
  CHECK_EQ_U64(hg_stream_wait(g.stream, NULL), HG_FAULT);
  check_word(g.buffer, 5);
  CHECK_EQ_U64(hg_buffer_read_async(g.buffer, 0, memory, 64, g.stream), HG_OK);
  CHECK_EQ_U64(launch_on(plus, g.buffer, 16, g.stream), HG_OK);
  CHECK_EQ_U64(driver.begin(g.foreign, 2), 0);
  hg_host_release(g.executor, memory); /* waits, as the last release of the stream does */
  CHECK_EQ_U64(fill_word(g.buffer, 8, NULL), HG_OK);
  end_capture(&g);
  CHECK_EQ_U64(launch_on(plus, g.buffer, 16, g.stream), HG_OK);
  CHECK_EQ_U64(driver.begin(g.foreign, 2), 0);
  hg_stream_release(g.stream);
  g.stream = NULL;
  check_word(g.buffer, 9);
  end_capture(&g);
  hg_buffer_release(freed);
  hg_event_release(event);
  hg_graph_release(graph);
  hg_kernel_release(counting);
  hg_kernel_release(plus);
  close_guest(&g);
  set("FAKECUDA_POOLS", NULL);
}

/* There is no room for one more launch, and none can be made. */
/* Memory in the order of a foreign stream: taken, used and freed there, and freed elsewhere while its owner captures
 * it.
 */
static void test_memory(const char *pools) {
  guest g;
  uint32_t value = 0;
  hg_buffer *buffers[3];
  set("FAKECUDA_POOLS", pools);
  open_guest(&g);
  hg_buffer_desc desc = {.size = sizeof desc, .stream = g.stream};
  uint64_t mapped = 0;
  for (uint32_t i = 0; i < 20; i++) { /* nobody waits */
    if (i == 2) mapped = gpu.mapped();
    CHECK_EQ_U64(hg_buffer_create(g.executor, &desc, 1 << 20, &buffers[0]), HG_OK);
    CHECK_EQ_U64(fill_word(buffers[0], i, g.stream), HG_OK);
    hg_buffer_release(buffers[0]);
  }
  CHECK_EQ_U64(gpu.mapped(), mapped);
  CHECK_EQ_U64(hg_buffer_create(g.executor, &desc, 4096, &buffers[0]), HG_OK);
  CHECK_EQ_U64(fill_word(buffers[0], 7, g.stream), HG_OK);
  desc.flags = HG_BUFFER_UNINIT;
  for (int i = 1; i < 3; i++) CHECK_EQ_U64(hg_buffer_create(g.executor, &desc, 4096, &buffers[i]), HG_OK);
  desc.flags = 0;
  CHECK_EQ_U64(driver.begin(g.foreign, 2), 0);
  hg_buffer_release(buffers[1]); /* never used */
  hg_buffer *meanwhile = NULL;
  CHECK_EQ_U64(hg_buffer_create(g.executor, &desc, 4096, &meanwhile), HG_OK);
  check_word(meanwhile, 0); /* which has waited for the free */
  CHECK_EQ_U64(hg_buffer_read(buffers[2], 0, &value, 4), HG_BUSY);
  hg_buffer_release(buffers[2]);
  end_capture(&g);
  check_word(buffers[0], 7);
  hg_buffer_release(buffers[0]);
  hg_buffer_release(meanwhile);
  close_guest(&g);
  set("FAKECUDA_POOLS", NULL);
  CHECK_CLEAN();
}

static void test_captured_full_stream(void) {
  enum { LAUNCHES = 512 };
  guest g;
  open_guest(&g);
  hg_kernel *plus = kernel_of(g.executor, plus_text);
  for (int i = 0; i < LAUNCHES; i++) CHECK_EQ_U64(launch_on(plus, g.buffer, 16, g.stream), HG_OK);
  CHECK_EQ_U64(driver.begin(g.foreign, 2), 0);
  CHECK_CAPTURED(launch_on(plus, g.buffer, 16, g.stream));
  end_capture(&g);
  CHECK_EQ_U64(launch_on(plus, g.buffer, 16, g.stream), HG_OK);
  check_word(g.buffer, LAUNCHES + 1);
  hg_kernel_release(plus);
  close_guest(&g);
}

/* ---- waits that fail --------------------------------------------------------------------------------------------- */

/* Work is done when the driver says so, and not because it said something else: nobody is given what was there before
 * it. The failure is told by the stream's wait, too, and until then by whoever needs what the stream was given. */
static void test_failing_wait(void) {
  guest g;
  hg_stream *stream = NULL;
  uint32_t word = 77;
  open_guest(&g);
  CHECK_EQ_U64(hg_stream_create(g.executor, NULL, &stream), HG_OK);
  CHECK_EQ_U64(fill_word(g.buffer, 7, stream), HG_OK);
  set("FAKECUDA_FAIL", "cuStreamSynchronize:1=1");
  CHECK_EQ_U64(hg_buffer_read(g.buffer, 0, &word, 4), HG_DEVICE);
  CHECK_STR(hg_last_error(), "work of a stream failed: the driver refused an argument (CUDA_ERROR_INVALID_VALUE, 1)");
  CHECK_EQ_U64(word, 77);
  set("FAKECUDA_FAIL", NULL);
  CHECK_EQ_U64(hg_buffer_read(g.buffer, 0, &word, 4), HG_DEVICE);
  CHECK_STR(hg_last_error(), "work of a stream failed: the driver refused an argument (CUDA_ERROR_INVALID_VALUE, 1)");
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_DEVICE);
  check_word(g.buffer, 7);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK_EQ_U64(fill_word(g.buffer, 8, stream), HG_OK);
  set("FAKECUDA_FAIL", "cuStreamSynchronize:1=1");
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_DEVICE);
  set("FAKECUDA_FAIL", NULL);
  check_word(g.buffer, 8);
  CHECK_EQ_U64(fill_word(g.buffer, 9, g.stream), HG_OK);
  set("FAKECUDA_FAIL", "cuEventSynchronize:1=1 cuStreamSynchronize:1=1");
  hg_stream_release(g.stream);
  g.stream = NULL;
  set("FAKECUDA_FAIL", NULL);
  check_word(g.buffer, 9);
  hg_stream_release(stream);
  close_guest(&g);
}

int main(void) {
  if (!begin_on_fake_gpu()) return check_report();
  test_foreign_stream();
  test_memory("1");
  test_memory("0");
  test_captured_stream(NULL);
  test_captured_stream("0");
  test_captured_full_stream();
  test_failing_wait();
  return check_report();
}
