/* test_graphs.c - graphs: what was captured does the same as often as it is launched, and its faults come at the wait.
 */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "streams.h"

static void test_graphs(void) {
  hg_stream *stream = stream_of(), *other = stream_of();
  hg_kernel *step = kernel_of(step_text);
  const uint64_t bytes = many() * 4;
  hg_buffer *x = buffer_of(bytes, NULL), *y = buffer_of(bytes, NULL), *sum = buffer_of(bytes, NULL);
  hg_graph *graph = NULL;
  uint32_t *host = NULL, value = 2, expected = 2;
  CHECK_EQ_U64(hg_host_allocate(executor, 64, (void **)&host), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 1, many(), stream), HG_OK);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_fill_async(y, 0, bytes, &value, 4, stream), HG_OK);
  for (uint32_t i = 0; i < 8; i++) {
    CHECK_EQ_U64(give(step, y, "c", i, many(), stream), HG_OK);
    expected = 3 * expected + i;
  }
  CHECK_EQ_U64(give(step, sum, "c", 1, many(), stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(x, 0, y, 0, bytes, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_write_async(x, 0, host, 4, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_read_async(x, 4, host + 1, 4, stream), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  check_all_words(x, 1); /* nothing of it has run */
  uint32_t total = 0;
  for (uint32_t round = 0; round < 5; round++) {
    host[0] = 77 + round;
    CHECK_EQ_U64(hg_graph_launch(graph, round % 2 == 0 ? stream : other), HG_OK);
    CHECK_EQ_U64(hg_stream_wait(round % 2 == 0 ? stream : other, NULL), HG_OK);
    CHECK_EQ_U64(host[1], expected);
    CHECK_EQ_U64(first_word(x), 77 + round);
    check_all_words(y, expected);
    total = 3 * total + 1;
    check_all_words(sum, total);
  }
  hg_kernel_release(step); /* the graph keeps them */
  hg_buffer_release(y);
  for (int round = 0; round < 3; round++) {
    CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
    total = 3 * total + 1;
  }
  hg_graph_release(graph); /* while it runs */
  check_all_words(sum, total);
  CHECK_EQ_U64(host[1], expected);
  hg_stream_release(stream);
  hg_stream_release(other);
  hg_buffer_release(x);
  hg_buffer_release(sum);
  hg_host_release(executor, host);
}

static const char table_text[] =
    ".program table\n"
    ".buffer x u32 out\n"
    ".table t 70 in\n"
    "    cvt.u32.u64 r0, lane\n"
    "    movi.u32 r1, #0\n"
    "    ldg.u32 r2, [r0 : r1]\n"
    "    ldg.u32 r3, [phi 0, 0, 0]\n"
    "    add.u32 r2, r2, r3\n"
    "    stg.u32 [x + lane], r2\n"
    "    exit\n";

/* Tables are the launch's own copy, and the boundary pool is waited for. */
static void test_tables(void) {
  enum { ENTRIES = 70 };
  hg_stream *stream = stream_of();
  hg_kernel *kernel = kernel_of(table_text);
  hg_buffer *x = buffer_of(ENTRIES * 4, NULL), *source = buffer_of(ENTRIES * 8, NULL);
  hg_binding bindings[1 + ENTRIES] = {{.name = "x", .buffer = x}};
  uint32_t words[2 * ENTRIES], got[ENTRIES];
  for (uint32_t i = 0; i < 2 * ENTRIES; i++) words[i] = i * i;
  CHECK_EQ_U64(hg_buffer_write(source, 0, words, sizeof words), HG_OK);
  hg_launch_desc desc = {.lanes = ENTRIES, .bindings = bindings, .binding_count = 1 + ENTRIES, .stream = stream};
  hg_graph *graph = NULL;
  for (uint32_t round = 0; round < 3; round++) {
    for (uint32_t i = 0; i < ENTRIES; i++)
      bindings[1 + i] = (hg_binding){
          .name = "t", .entry = i, .buffer = source, .offset = 8 * ((i + round) % ENTRIES), .byte_count = 8};
    if (round == 2) CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
    CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
    memset(bindings + 1, 0, sizeof bindings - sizeof bindings[0]);
    if (round == 2) {
      CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
      CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
    }
    uint32_t base = 1000 + round;
    CHECK_EQ_U64(hg_buffer_read(x, 0, got, sizeof got), HG_OK);
    for (uint32_t i = 0; i < ENTRIES; i++)
      CHECK_EQ_U64(got[i], words[2 * ((i + round) % ENTRIES)] + (round > 0 ? base - 1 : 0));
    CHECK_EQ_U64(hg_boundary_write(executor, 0, &base, 4), HG_OK);
  }
  uint32_t zero = 0;
  CHECK_EQ_U64(hg_boundary_write(executor, 0, &zero, 4), HG_OK);
  hg_graph_release(graph);
  hg_stream_release(stream);
  hg_kernel_release(kernel);
  hg_buffer_release(x);
  hg_buffer_release(source);
}

static void test_graph_faults(void) {
  hg_stream *stream = stream_of();
  hg_kernel *step = kernel_of(step_text), *slow = kernel_of(slow_text);
  hg_buffer *x = buffer_of(many() * 4, NULL), *small = NULL;
  CHECK_EQ_U64(hg_buffer_view(x, 0, 16, &small), HG_OK);
  hg_graph *graph = NULL;
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 1, many(), stream), HG_OK);
  CHECK_EQ_U64(give(slow, small, "rounds", 3, 7, stream), HG_OK); /* faults */
  CHECK_EQ_U64(give(step, small, "c", 1, 5, stream), HG_OK);      /* too */
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  for (int round = 0; round < 3; round++) {
    hg_launch_report report = {0};
    CHECK_EQ_U64(give(step, x, "c", 1, many(), stream), HG_OK);
    CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
    CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
    CHECK_EQ_U64(give(step, small, "c", 1, 9, stream), HG_OK);
    CHECK_EQ_U64(hg_stream_wait(stream, &report), HG_FAULT);
    CHECK_STR(hg_last_error(), "line 4 (ldg): lane 4 read past 'x': index 4, extent 4");
    CHECK_EQ_U64(report.lanes, 7);
    CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  }
  hg_stream *other = stream_of();
  hg_event *between = NULL; /* both runs write the same memory */
  CHECK_EQ_U64(hg_event_create(executor, NULL, &between), HG_OK);
  CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  CHECK_EQ_U64(hg_event_record(between, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait_event(other, between), HG_OK);
  CHECK_EQ_U64(hg_graph_launch(graph, other), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_FAULT);
  CHECK_EQ_U64(hg_stream_wait(other, NULL), test_backend() != HG_BACKEND_CPU ? HG_OK : HG_FAULT); /* told by both */
  CHECK_EQ_U64(hg_graph_launch(graph, other), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(other, NULL), HG_FAULT);
  hg_event_release(between);
  hg_stream_release(other);
  hg_graph_release(graph);
  hg_stream_release(stream);
  hg_buffer_release(small);
  hg_buffer_release(x);
  hg_kernel_release(step);
  hg_kernel_release(slow);
}

/* A capture ends, and what it kept is released, where there is no place for its graph. */
static void test_ends_without_a_place(void) {
  hg_stream *stream = stream_of();
  hg_kernel *step = kernel_of(step_text);
  hg_buffer *x = buffer_of(64, NULL);
  hg_graph *graph = NULL;
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 1, 16, stream), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, NULL), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_capture_end: there is no place for the graph, which is given up");
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 5, 16, stream), HG_OK);
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK);
  check_all_words(x, 5);
  hg_graph_release(graph);
  CHECK_EQ_U64(hg_capture_end(NULL, &graph), HG_INVALID_ARGUMENT);
  CHECK(graph == NULL);
  hg_stream_release(stream);
  hg_buffer_release(x);
  hg_kernel_release(step);
}

static void run_all(void) {
  test_graphs();
  test_ends_without_a_place();
  test_tables();
  test_graph_faults();
}

int main(void) { return run_stream_tests(run_all); }
