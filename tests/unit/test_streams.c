/* test_streams.c - streams and events: the order of what they do, faults at the wait, what may be released meanwhile,
 * threads and forks. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "streams.h"

#if !defined(_WIN32)
#  include <pthread.h>
#  include <sys/wait.h>
#  include <unistd.h>
#endif

/* ---- order ------------------------------------------------------------------------------------------------------- */

/* Launches, fills and copies of all sizes, as they would go without a stream. */
static void test_order(void) {
  hg_stream *stream = stream_of();
  hg_kernel *step = kernel_of(step_text);
  const uint64_t bytes = many() * 4;
  hg_buffer *x = buffer_of(bytes, NULL), *y = buffer_of(bytes, NULL);
  uint32_t value = 7, expected = 0, host = 0;
  uint64_t wide = UINT64_C(0x0000000900000009);
  for (uint32_t i = 0; i < 40; i++) {
    uint64_t lanes = i % 3 == 0 ? 1 : many();
    CHECK_EQ_U64(give(step, x, "c", i, lanes, stream), HG_OK);
    expected = 3 * expected + i;
    if (i == 20) {
      CHECK_EQ_U64(hg_buffer_fill_async(x, 0, bytes, &value, 4, stream), HG_OK);
      expected = 7;
    }
    if (i == 30) {
      CHECK_EQ_U64(hg_buffer_fill_async(x, 0, bytes, &wide, 8, stream), HG_OK);
      expected = 9;
    }
  }
  CHECK_EQ_U64(hg_buffer_copy_async(y, 0, x, 0, bytes, stream), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 1, many(), stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_read_async(x, 0, &host, 4, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_stream_query(stream), HG_OK);
  CHECK_EQ_U64(host, 3 * expected + 1);
  CHECK_EQ_U64(first_word(y), expected);
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_kernel_release(step);
  hg_stream_release(stream);
}

/* What a call without a stream gave is seen by streams, and the other way round, without a wait. */
static void test_calls_without_stream(void) {
  hg_stream *stream = stream_of();
  hg_kernel *step = kernel_of(step_text);
  const uint64_t bytes = many() * 4;
  for (uint32_t round = 0; round < 5; round++) {
    hg_buffer *x = buffer_of(bytes, NULL), *y = NULL;
    uint32_t value = round;
    CHECK_EQ_U64(give(step, x, "c", 2, many(), stream), HG_OK); /* a new buffer is zero */
    check_all_words(x, 2);
    CHECK_EQ_U64(hg_buffer_fill(x, 0, bytes, &value, 4), HG_OK);
    CHECK_EQ_U64(give(step, x, "c", 1, many(), stream), HG_OK);
    CHECK_EQ_U64(give(step, x, "c", 4, many(), NULL), HG_OK);
    check_all_words(x, 9 * round + 7);
    CHECK_EQ_U64(give(step, x, "c", 1, many(), stream), HG_OK);
    CHECK_EQ_U64(hg_buffer_create(executor, NULL, bytes, &y), HG_OK);
    CHECK_EQ_U64(hg_buffer_copy(y, 0, x, 0, bytes), HG_OK);
    check_all_words(y, 27 * round + 22);
    CHECK_EQ_U64(give(step, y, "c", 0, many(), stream), HG_OK);
    CHECK_EQ_U64(hg_buffer_write(y, 0, &value, 4), HG_OK);
    CHECK_EQ_U64(first_word(y), round);
    CHECK_EQ_U64(give(step, y, "c", 0, many(), stream), HG_OK);
    void *memory = NULL;
    CHECK_EQ_U64(hg_buffer_map(y, &memory), HG_OK);
    CHECK_EQ_U64(*(const uint32_t *)memory, 3 * round);
    hg_buffer_release(x);
    hg_buffer_release(y);
  }
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  hg_kernel_release(step);
  hg_stream_release(stream);
}

/* Everything may be released once it is given; new memory takes the place of the old. */
static void test_release_while_queued(void) {
  hg_stream *first = stream_of(), *second = stream_of();
  hg_event *event = event_of(0);
  const uint64_t bytes = many() * 4;
  hg_buffer *result = buffer_of(bytes, NULL);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < 10; i++) {
    hg_kernel *step = kernel_of(step_text);
    hg_buffer *x = buffer_of(bytes, NULL);
    CHECK_EQ_U64(hg_stream_wait_event(first, event), HG_OK);
    for (uint32_t k = 0; k < 5; k++) CHECK_EQ_U64(give(step, x, "c", i + k, many(), first), HG_OK);
    CHECK_EQ_U64(hg_event_record(event, first), HG_OK);
    CHECK_EQ_U64(hg_stream_wait_event(second, event), HG_OK);
    CHECK_EQ_U64(give(step, x, "c", 0, many(), second), HG_OK);
    CHECK_EQ_U64(hg_buffer_copy_async(result, 0, x, 0, bytes, second), HG_OK);
    CHECK_EQ_U64(hg_event_record(event, second), HG_OK);
    hg_buffer_release(x); /* both streams use it */
    hg_kernel_release(step);
    expected = 0;
    for (uint32_t k = 0; k < 5; k++) expected = 3 * expected + i + k;
  }
  CHECK_EQ_U64(hg_event_wait(event), HG_OK);
  check_all_words(result, 3 * expected);
  hg_stream_release(second);
  hg_stream_release(first);
  hg_event_release(event);
  hg_buffer_release(result);
}

/* A stream may be released with work left, and more launches given than are remembered at once. */
static void test_many_launches(void) {
  hg_stream *stream = stream_of();
  hg_kernel *step = kernel_of(step_text);
  hg_buffer *x = buffer_of(4, NULL);
  uint32_t expected = 0;
  CHECK_EQ_U64(give(step, x, "c", 0, 2, stream), HG_OK); /* the second lane faults */
  for (uint32_t i = 0; i < 1300; i++) {
    CHECK_EQ_U64(give(step, x, "c", i, 1, stream), HG_OK);
    expected = 3 * expected + i;
  }
  hg_launch_report report = {0};
  CHECK_EQ_U64(hg_stream_wait(stream, &report), HG_FAULT);
  CHECK_EQ_U64(report.lanes, 2);
  CHECK_STR(hg_last_error(), "line 4 (ldg): lane 1 read past 'x': index 1, extent 1");
  CHECK_EQ_U64(first_word(x), expected);
  hg_buffer *large = buffer_of(many() * 4, NULL);
  CHECK_EQ_U64(give(step, large, "c", 3, many(), stream), HG_OK);
  hg_stream *same = hg_stream_retain(stream);
  hg_stream_release(stream);
  hg_stream_release(same);
  check_all_words(large, 3);
  hg_buffer_release(large);
  hg_buffer_release(x);
  hg_kernel_release(step);
}

static void test_many_streams(void) {
  enum { STREAMS = 70 };
  hg_stream *streams[STREAMS];
  hg_kernel *step = kernel_of(step_text);
  hg_buffer *x = buffer_of(STREAMS * 4, NULL);
  uint32_t words[STREAMS];
  for (uint32_t i = 0; i < STREAMS; i++) streams[i] = stream_of();
  for (uint32_t i = 0; i < STREAMS; i++) {
    hg_buffer *view = NULL;
    CHECK_EQ_U64(hg_buffer_view(x, 4 * (uint64_t)i, 4, &view), HG_OK);
    CHECK_EQ_U64(give(step, view, "c", i + 1, 1, streams[i]), HG_OK);
    hg_buffer_release(view);
  }
  CHECK_EQ_U64(hg_buffer_read(x, 0, words, sizeof words), HG_OK);
  for (uint32_t i = 0; i < STREAMS; i++) CHECK_EQ_U64(words[i], i + 1);
  for (uint32_t i = 0; i < STREAMS; i++) hg_stream_release(streams[i]);
  hg_buffer_release(x);
  hg_kernel_release(step);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void test_faults(void) {
  hg_stream *stream = stream_of(), *other = stream_of();
  hg_kernel *step = kernel_of(step_text), *slow = kernel_of(slow_text);
  hg_buffer *x = buffer_of(many() * 4, NULL), *half = NULL;
  CHECK_EQ_U64(hg_buffer_view(x, 0, many() * 2, &half), HG_OK);
  hg_launch_report report = {0}, direct = {0};
  CHECK_EQ_U64(hg_stream_wait(stream, &report), HG_OK);
  CHECK_EQ_U64(report.fault.kind, HG_FAULT_NONE);
  CHECK_EQ_U64(report.lanes, 0);
  hg_executor_info info = {0};
  CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
  CHECK_STR(report.backend, info.backend_name); /* of no launch: the executor's */
  CHECK_STR(report.engine, info.engine);
  for (int round = 0; round < 3; round++) {
    hg_binding binding = {.name = "x", .buffer = half};
    hg_scalar c = {.name = "c", .type = ATLAS_u32, .bits = 1};
    hg_launch_desc desc = {
        .lanes = many(), .bindings = &binding, .binding_count = 1, .scalars = &c, .scalar_count = 1, .stream = stream};
    CHECK_EQ_U64(give(step, x, "c", 1, many(), stream), HG_OK);
    CHECK_EQ_U64(hg_launch(step, &desc, &report), HG_OK); /* the first to fault */
    CHECK_EQ_U64(report.fault.kind, HG_FAULT_NONE);
    CHECK_EQ_U64(give(slow, half, "rounds", 2, many(), stream), HG_OK);
    CHECK_EQ_U64(give(step, half, "c", 1, many() / 2 + 1, stream), HG_OK);
    CHECK_EQ_U64(give(step, x, "c", 1, many(), other), HG_OK);
    CHECK_EQ_U64(hg_stream_wait(other, NULL), HG_OK); /* faults are the stream's own */
    CHECK_EQ_U64(hg_stream_wait(stream, &report), HG_FAULT);
    desc.stream = NULL;
    char sentence[300];
    snprintf(sentence, sizeof sentence, "%s", hg_last_error());
    CHECK_EQ_U64(hg_launch(step, &desc, &direct), HG_FAULT);
    CHECK_STR(sentence, hg_last_error());
    CHECK_EQ_U64(report.fault.kind, direct.fault.kind);
    CHECK_EQ_U64(report.fault.instruction, direct.fault.instruction);
    CHECK_EQ_U64(report.fault.line, direct.fault.line);
    CHECK_EQ_U64(report.fault.lane, direct.fault.lane);
    CHECK_STR(report.fault.buffer, direct.fault.buffer);
    CHECK_EQ_U64(report.fault.index, direct.fault.index);
    CHECK_EQ_U64(report.fault.extent, direct.fault.extent);
    CHECK_EQ_U64(report.lanes, direct.lanes);
    CHECK_STR(report.backend, direct.backend);
    CHECK_STR(report.engine, direct.engine);
    CHECK_EQ_U64(hg_stream_wait(stream, &report), HG_OK); /* told once */
    CHECK_EQ_U64(report.fault.kind, HG_FAULT_NONE);
  }
  hg_binding binding = {.name = "x", .buffer = x};
  hg_scalar rounds = {.name = "rounds", .type = ATLAS_u32, .bits = 1000};
  hg_launch_desc desc = {.lanes = 3, .bindings = &binding, .binding_count = 1, .scalars = &rounds, .scalar_count = 1,
                         .step_limit = 100, .stream = stream};
  CHECK_EQ_U64(hg_launch(slow, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(x, 0, &rounds.bits, 4), HG_OK); /* waits, and leaves the fault */
  hg_kernel_release(slow);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_FAULT);
  CHECK_STR(hg_last_error(),
            "line 9 (loop): lane 0 took more than 100 backward branches, the step limit of the launch");
  hg_stream_release(stream);
  hg_stream_release(other);
  hg_buffer_release(half);
  hg_buffer_release(x);
  hg_kernel_release(step);
}

/* Programs that change what is the executor's run in their place too. */
static void test_class_programs(void) {
  hg_stream *stream = stream_of();
  hg_kernel *step = kernel_of(step_text), *class = kernel_of(class_text);
  hg_buffer *x = buffer_of(many() * 4, NULL);
  int64_t counters[ATLAS_CLASS_COUNT];
  uint32_t phase = 0;
  CHECK_EQ_U64(hg_executor_resonance_reset(executor), HG_OK);
  CHECK_EQ_U64(hg_executor_set_phase(executor, 0), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 5, many(), stream), HG_OK);
  CHECK_EQ_U64(give(class, x, NULL, 0, many(), stream), HG_OK);
  CHECK_EQ_U64(give(step, x, "c", 0, many(), stream), HG_OK);
  hg_binding binding = {.name = "x", .buffer = x};
  hg_launch_desc desc = {.lanes = many() + 1, .bindings = &binding, .binding_count = 1, .stream = stream};
  hg_launch_report report = {0};
  CHECK_EQ_U64(hg_launch(class, &desc, &report), HG_OK);
  CHECK_EQ_U64(report.fault.kind, HG_FAULT_NONE);
  CHECK(report.fault.buffer[0] == '\0' && report.fault.line == 0 && report.fault.extent == 0);
  CHECK_EQ_U64(hg_executor_resonance(executor, counters), HG_OK);
  CHECK_EQ_U64(hg_executor_phase(executor, &phase), HG_OK);
  CHECK_EQ_U64(counters[5], 2 * many() + 1);
  CHECK_EQ_U64(phase, 2);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_FAULT);
  CHECK(strncmp(hg_last_error(), "line 3 (ldg): lane ", 19) == 0);
  check_all_words(x, 19);
  CHECK_EQ_U64(hg_capture_begin(stream), HG_OK);
  hg_graph *graph = NULL;
  CHECK_EQ_U64(give(class, x, NULL, 0, many(), stream), HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(),
            "program 'class' changes resonance counters or the phase, which a graph cannot; launch it by itself");
  CHECK_EQ_U64(hg_capture_end(stream, &graph), HG_OK);
  CHECK_EQ_U64(hg_graph_launch(graph, stream), HG_OK); /* empty */
  hg_graph_release(graph);
  hg_stream_release(stream);
  hg_buffer_release(x);
  hg_kernel_release(step);
  hg_kernel_release(class);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static void test_events(void) {
  hg_stream *first = stream_of(), *second = stream_of();
  hg_kernel *slow = kernel_of(slow_text), *step = kernel_of(step_text);
  const uint64_t bytes = many() * 4;
  hg_buffer *x = buffer_of(bytes, NULL), *y = buffer_of(bytes, NULL);
  hg_event *written = event_of(0), *times[3];
  double forth = -1, back = -1, nothing = -1;
  for (int i = 0; i < 3; i++) times[i] = event_of(HG_EVENT_TIMED);
  CHECK_EQ_U64(hg_event_wait(written), HG_OK); /* never recorded */
  CHECK_EQ_U64(hg_event_query(written), HG_OK);
  CHECK_EQ_U64(hg_stream_wait_event(second, written), HG_OK);
  CHECK_EQ_U64(hg_event_elapsed(times[0], times[1], &forth), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_event_elapsed: the first event has not been recorded");
  CHECK_EQ_U64(hg_event_elapsed(times[0], written, &forth), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_event_elapsed: the second event is not timed; create it with HG_EVENT_TIMED");
  uint32_t value = 0;
  for (uint32_t round = 0; round < 4; round++) {
    CHECK_EQ_U64(hg_event_record(times[0], first), HG_OK);
    CHECK_EQ_U64(give(slow, x, "rounds", 50, many(), first), HG_OK);
    CHECK_EQ_U64(hg_event_record(times[1], first), HG_OK);
    CHECK_EQ_U64(hg_event_record(written, first), HG_OK);
    CHECK_EQ_U64(hg_stream_wait_event(second, written), HG_OK);
    CHECK_EQ_U64(hg_buffer_copy_async(y, 0, x, 0, bytes, second), HG_OK);
    CHECK_EQ_U64(give(step, y, "c", round, many(), second), HG_OK);
    CHECK_EQ_U64(hg_event_record(times[2], second), HG_OK);
    CHECK_EQ_U64(hg_event_record(written, second), HG_OK); /* again, elsewhere */
    CHECK_EQ_U64(hg_stream_wait_event(first, written), HG_OK);
    for (int i = 0; i < 50; i++) value = 5 * value + 1;
  }
  CHECK_EQ_U64(hg_event_wait(written), HG_OK);
  CHECK_EQ_U64(hg_event_query(written), HG_OK);
  check_all_words(y, 3 * value + 3);
  CHECK_EQ_U64(hg_event_elapsed(times[0], times[1], &forth), HG_OK);
  CHECK_EQ_U64(hg_event_elapsed(times[1], times[0], &back), HG_OK);
  CHECK_EQ_U64(hg_event_elapsed(times[1], times[1], &nothing), HG_OK);
  CHECK(forth >= 0 && back == -forth && nothing == 0);
  CHECK_EQ_U64(hg_event_elapsed(times[1], times[2], &forth), HG_OK);
  CHECK(forth >= 0);
  for (int i = 0; i < 3; i++) hg_event_release(times[i]);
  CHECK_EQ_U64(give(slow, x, "rounds", 50, many(), first), HG_OK);
  CHECK_EQ_U64(hg_event_record(written, first), HG_OK);
  hg_event_release(written); /* before it is reached */
  hg_event_release(NULL);
  hg_stream_release(first);
  hg_stream_release(second);
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_kernel_release(slow);
  hg_kernel_release(step);
}

/* Busy is seen while work is left. */
static void test_queries(void) {
  hg_stream *stream = stream_of();
  hg_kernel *slow = kernel_of(slow_text);
  hg_buffer *x = buffer_of(many() * 4, NULL);
  hg_event *event = event_of(0), *start = event_of(HG_EVENT_TIMED), *end = event_of(HG_EVENT_TIMED);
  double elapsed = 0;
  uint32_t rounds = test_backend() == HG_BACKEND_CUDA ? 100 : 1000;
  CHECK_EQ_U64(hg_event_record(start, stream), HG_OK);
  CHECK_EQ_U64(give(slow, x, "rounds", rounds, many(), stream), HG_OK);
  CHECK_EQ_U64(hg_event_record(event, stream), HG_OK);
  CHECK_EQ_U64(hg_event_record(end, stream), HG_OK);
  hg_status seen = hg_stream_query(stream); /* a fast device may be done */
  CHECK(seen == HG_BUSY || seen == HG_OK);
  if (seen == HG_BUSY) CHECK_STR(hg_last_error(), "work of the stream is not done yet");
  seen = hg_event_query(event);
  CHECK(seen == HG_BUSY || seen == HG_OK);
  seen = hg_event_elapsed(start, end, &elapsed);
  CHECK(seen == HG_BUSY || (seen == HG_OK && elapsed > 0));
  CHECK_EQ_U64(hg_event_wait(event), HG_OK);
  CHECK_EQ_U64(hg_event_query(event), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_stream_query(stream), HG_OK);
  CHECK_EQ_U64(hg_event_elapsed(start, end, &elapsed), HG_OK);
  CHECK(elapsed > 0);
  hg_event_release(event);
  hg_event_release(start);
  hg_event_release(end);
  hg_stream_release(stream);
  hg_buffer_release(x);
  hg_kernel_release(slow);
}

/* ---- copies ------------------------------------------------------------------------------------------------------ */

/* Copies and fills of few bytes from anywhere to anywhere, a cell for each. */
static void test_alignments(void) {
  enum { CELL = 64, CELLS = 9 * 9 * 18, BYTES = CELL * CELLS };
  static uint8_t source[BYTES], expected[BYTES], got[BYTES];
  static const uint8_t pattern[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  hg_stream *stream = stream_of();
  for (uint32_t i = 0; i < BYTES; i++) source[i] = (uint8_t)(i * 2654435761u >> 24);
  hg_buffer *x = buffer_of(BYTES, source), *copies = buffer_of(BYTES, expected), *fills = buffer_of(BYTES, expected);
  for (uint32_t cell = 0; cell < CELLS; cell++) {
    uint32_t to = cell * CELL + cell % 9, from = cell * CELL + cell / 9 % 9, count = 1 + 2 * (cell / 81);
    CHECK_EQ_U64(hg_buffer_copy_async(copies, to, x, from, count, stream), HG_OK);
    memcpy(expected + to, source + from, count);
  }
  CHECK_EQ_U64(hg_buffer_read_async(copies, 0, got, BYTES, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK(memcmp(got, expected, BYTES) == 0);
  memset(expected, 0, BYTES);
  for (uint32_t cell = 0; cell < CELLS; cell++) {
    uint32_t to = cell * CELL + cell % 9, width = 1u << cell / 9 % 4, count = width * (1 + cell / 36 % (40 / width));
    CHECK_EQ_U64(hg_buffer_fill_async(fills, to, count, pattern, width, stream), HG_OK);
    for (uint32_t i = 0; i < count; i++) expected[to + i] = pattern[i % width];
  }
  CHECK_EQ_U64(hg_buffer_read_async(fills, 0, got, BYTES, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  CHECK(memcmp(got, expected, BYTES) == 0);
  hg_buffer_release(x);
  hg_buffer_release(copies);
  hg_buffer_release(fills);
  hg_stream_release(stream);
}

static void test_copies(void) {
  enum { BYTES = 3 << 20 };
  hg_stream *stream = stream_of();
  hg_buffer *x = buffer_of(BYTES, NULL), *y = buffer_of(BYTES, NULL);
  void *pinned = NULL, *back = NULL;
  uint8_t *ordinary = malloc(BYTES), three[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  CHECK_EQ_U64(hg_host_allocate(executor, BYTES, &pinned), HG_OK);
  CHECK_EQ_U64(hg_host_allocate(executor, BYTES, &back), HG_OK);
  CHECK_EQ_U64((uintptr_t)pinned % 64, 0);
  for (uint32_t i = 0; i < BYTES; i++) ((uint8_t *)pinned)[i] = ordinary[i] = (uint8_t)(i * 2654435761u >> 24);
  CHECK_EQ_U64(hg_buffer_write_async(x, 0, pinned, BYTES, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(y, 0, x, 0, BYTES, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(y, 0, x, 1, 1000, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(y, 1 << 20, y, 0, 1000, stream), HG_OK);
  for (uint64_t width = 1; width <= 8; width *= 2) /* any pattern anywhere */
    CHECK_EQ_U64(hg_buffer_fill_async(y, 5000 + 4001 * width, 128 * width, three, width, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_fill_async(y, (2 << 20) + 2, 600000, three, 8, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_read_async(y, 0, back, BYTES, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_write_async(x, 100, ordinary, BYTES - 100, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_read_async(x, 0, pinned, BYTES, stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  uint8_t *expected = malloc(BYTES);
  memcpy(expected, ordinary, BYTES);
  memcpy(expected, ordinary + 1, 1000);
  memcpy(expected + (1 << 20), expected, 1000);
  for (uint64_t width = 1; width <= 8; width *= 2)
    for (uint64_t i = 0; i < 128 * width; i++) expected[5000 + 4001 * width + i] = three[i % width];
  for (uint64_t i = 0; i < 600000; i++) expected[(2 << 20) + 2 + i] = three[i % 8];
  CHECK(memcmp(back, expected, BYTES) == 0);
  memcpy(expected, ordinary, 100);
  memcpy(expected + 100, ordinary, BYTES - 100);
  CHECK(memcmp(pinned, expected, BYTES) == 0);
  CHECK_EQ_U64(hg_buffer_copy_async(x, 0, x, 50, 51, stream), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(),
            "the ranges of a copy of 51 bytes on a stream overlap; copy them without a stream, or in parts");
  CHECK_EQ_U64(hg_buffer_copy_async(x, 0, x, 50, 0, stream), HG_OK);
  CHECK_EQ_U64(hg_buffer_read_async(x, BYTES, back, 1, stream), HG_OUT_OF_RANGE);
  CHECK_EQ_U64(hg_buffer_read_async(x, 0, back, 16, NULL), HG_OK); /* no stream: at once */
  CHECK(memcmp(back, ordinary, 16) == 0);
  CHECK_EQ_U64(hg_buffer_write_async(x, 0, pinned, BYTES, stream), HG_OK);
  hg_host_release(executor, pinned); /* waits */
  hg_host_release(executor, back);
  hg_host_release(executor, NULL);
  free(expected);
  free(ordinary);
  hg_stream_release(stream);
  hg_buffer_release(x);
  hg_buffer_release(y);
}

/* ---- threads and forks ------------------------------------------------------------------------------------------- */

#if !defined(_WIN32)
enum { THREADS = 8, ROUNDS = 30 };

typedef struct worker {
  pthread_t thread;
  hg_kernel *step;
  hg_buffer *shared;
  uint32_t number;
  int failures;
} worker;

#define EXPECT(condition) (w->failures += !(condition))

static void *work(void *argument) {
  worker *w = argument;
  hg_stream *stream = NULL;
  hg_event *event = NULL;
  EXPECT(hg_stream_create(executor, NULL, &stream) == HG_OK);
  EXPECT(hg_event_create(executor, NULL, &event) == HG_OK);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    hg_buffer *own = NULL;
    uint32_t words[8] = {0};
    uint64_t lanes = round % 2 == 0 ? many() / 4 : 8;
    EXPECT(hg_buffer_create(executor, NULL, many(), &own) == HG_OK);
    for (uint32_t i = 0; i < 4; i++) EXPECT(give(w->step, own, "c", w->number + 1, lanes, stream) == HG_OK);
    EXPECT(hg_buffer_read_async(own, 0, words, sizeof words, stream) == HG_OK);
    EXPECT(hg_event_record(event, stream) == HG_OK);
    if (round % 3 == 0) EXPECT(hg_event_wait(event) == HG_OK);
    EXPECT(hg_stream_wait(stream, NULL) == HG_OK);
    for (int i = 0; i < 8; i++) EXPECT(words[i] == 40 * (w->number + 1));
    EXPECT(give(w->step, own, "c", 0, many() / 4 + 1 + w->number, stream) == HG_OK);
    hg_launch_report report = {0};
    EXPECT(hg_buffer_write_async(w->shared, 4 * w->number, &round, 4, stream) == HG_OK);
    hg_buffer_release(own);
    EXPECT(hg_stream_wait(stream, &report) == HG_FAULT);
    EXPECT(report.fault.lane == many() / 4 && report.lanes == many() / 4 + 1 + w->number);
    EXPECT(hg_buffer_read(w->shared, 4 * w->number, words, 4) == HG_OK); /* waits for others' streams too */
    EXPECT(words[0] == round);
  }
  hg_event_release(event);
  hg_stream_release(stream);
  return NULL;
}

static void test_threads(void) {
  worker workers[THREADS];
  hg_kernel *step = kernel_of(step_text);
  hg_buffer *shared = buffer_of(THREADS * 4, NULL);
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i] = (worker){.step = step, .shared = shared, .number = i};
    CHECK_EQ_U64(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  }
  for (uint32_t i = 0; i < THREADS; i++) {
    CHECK_EQ_U64(pthread_join(workers[i].thread, NULL), 0);
    CHECK_EQ_U64(workers[i].failures, 0);
  }
  hg_buffer_release(shared);
  hg_kernel_release(step);
}

/* In the child: an empty stream works on, and one with work left says what is the matter. */
static int child(hg_stream *idle, hg_stream *busy, hg_kernel *step, hg_buffer *x, hg_buffer *y) {
  uint32_t word = 0;
  if (give(step, x, "c", 5, many(), idle) != HG_OK || hg_stream_wait(idle, NULL) != HG_OK) return 1;
  if (hg_buffer_read(x, 0, &word, 4) != HG_OK || word != 3 * 8 + 5) return 2;
  if (hg_buffer_read(y, 0, &word, 4) != HG_UNSUPPORTED) return 8; /* who knows what is in it */
  if (hg_stream_wait(busy, NULL) != HG_UNSUPPORTED) return 3;
  if (strstr(hg_last_error(), "when the process forked") == NULL) return 4;
  if (give(step, x, "c", 5, many(), busy) != HG_UNSUPPORTED) return 5;
  hg_stream_release(busy);
  hg_stream *fresh = NULL;
  if (hg_stream_create(executor, NULL, &fresh) != HG_OK || give(step, x, "c", 0, many(), fresh) != HG_OK) return 6;
  if (hg_buffer_read(x, 0, &word, 4) != HG_OK || word != 3 * (3 * 8 + 5)) return 7;
  hg_stream_release(fresh);
  hg_stream_release(idle);
  return 0;
}

/* Work for a second, however fast the engine is: this thread may not be run for a while. */
static void keep_busy(hg_stream *stream, hg_kernel *slow, hg_buffer *y) {
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  CHECK_EQ_U64(give(slow, y, "rounds", 100, many(), stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  clock_gettime(CLOCK_MONOTONIC, &end);
  int64_t took = (end.tv_sec - begin.tv_sec) * INT64_C(1000000000) + (end.tv_nsec - begin.tv_nsec);
  for (int64_t sum = 0; sum < 1000000000; sum += took + 1000)
    CHECK_EQ_U64(give(slow, y, "rounds", 100, many(), stream), HG_OK);
}

static void test_fork(void) {
  hg_stream *idle = stream_of(), *busy = stream_of();
  hg_kernel *step = kernel_of(step_text), *slow = kernel_of(slow_text);
  hg_buffer *x = buffer_of(many() * 4, NULL), *y = buffer_of(many() * 4, NULL);
  CHECK_EQ_U64(give(step, x, "c", 8, many(), idle), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(idle, NULL), HG_OK);
  keep_busy(busy, slow, y);
  CHECK_EQ_U64(hg_stream_query(busy), HG_BUSY);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(child(idle, busy, step, x, y));
  }
  int status = -1;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  CHECK_EQ_U64(status, 0);
  CHECK_EQ_U64(hg_stream_wait(busy, NULL), HG_OK);
  CHECK_EQ_U64(first_word(x), 8);
  hg_stream_release(idle);
  hg_stream_release(busy);
  hg_buffer_release(x);
  hg_buffer_release(y);
  hg_kernel_release(step);
  hg_kernel_release(slow);
}
#endif

static void run_all(void) {
  test_order();
  test_calls_without_stream();
  test_release_while_queued();
  test_many_launches();
  test_many_streams();
  test_faults();
  test_class_programs();
  test_events();
  test_queries();
  test_alignments();
  test_copies();
#if !defined(_WIN32)
  test_threads();
  if (test_backend() == HG_BACKEND_CPU) test_fork(); /* the CUDA driver does not live on in a child */
#endif
}

int main(void) { return run_stream_tests(run_all); }
