/* test_memory.c - memory in the order of streams, and what is kept of it: right values wherever a buffer was taken,
 * used and let go, counts, and loops that leave nothing behind. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "streams.h"

#include "base/os.h"

enum { THREADS = 2, ROUNDS = 100, BETWEEN_WAITS = 50 };

/* More than the CPU computes in the caller's thread. */
static uint64_t most_bytes(void) { return 4 * many(); }

static hg_buffer *buffer_on(hg_stream *stream, uint64_t byte_count, uint32_t flags) {
  hg_buffer *buffer = NULL;
  hg_buffer_desc desc = {.size = sizeof desc, .flags = flags, .stream = stream};
  CHECK_EQ_U64(hg_buffer_create(executor, &desc, byte_count, &buffer), HG_OK);
  return buffer;
}

static void fill(hg_buffer *buffer, uint32_t value, hg_stream *stream) {
  CHECK_EQ_U64(hg_buffer_fill_async(buffer, 0, hg_buffer_size(buffer), &value, 4, stream), HG_OK);
}

static hg_memory_info memory(void) {
  hg_memory_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_memory_query(executor, &info), HG_OK);
  return info;
}

/* A driver maps memory in pieces of its own. */
static uint64_t slack(void) { return test_backend() == HG_BACKEND_CUDA ? 64 << 20 : 0; }

/* ---- counts ------------------------------------------------------------------------------------------------------ */

static void test_counts(void) {
  const hg_memory_info before = memory();
  hg_stream *stream = stream_of();
  hg_buffer *large = buffer_of(8 << 20, NULL), *small = buffer_on(stream, 100, 0), *view = NULL;
  CHECK_EQ_U64(memory().in_use, before.in_use + (8 << 20) + 100);
  CHECK_EQ_U64(hg_buffer_view(large, 4096, 4096, &view), HG_OK);
  hg_buffer_release(large); /* the view holds it */
  hg_buffer_release(small);
  CHECK_EQ_U64(memory().in_use, before.in_use + (8 << 20));
  hg_buffer_release(view);
  hg_memory_info after = memory();
  CHECK_EQ_U64(after.in_use, before.in_use);
  CHECK(after.most_in_use >= before.in_use + (8 << 20) + 100);
  CHECK(after.kept >= 8 << 20 && after.kept <= after.kept_most);
  CHECK(after.device_free <= after.device_bytes);
  CHECK_EQ_U64(hg_memory_trim(executor), HG_OK);
  CHECK(memory().kept <= slack());
  hg_stream_release(stream);
}

/* Memory goes back in its stream's order: a trim waits for that, also where the stream was waited for before. */
static void test_trim_behind_a_free(void) {
  const uint64_t most = memory().kept_most;
  hg_stream *home = stream_of(), *other = stream_of();
  CHECK_EQ_U64(hg_memory_keep(executor, UINT64_MAX), HG_OK);
  for (int i = 0; i < 2; i++) {
    hg_buffer *buffer = buffer_on(home, 128 << 20, HG_BUFFER_UNINIT);
    CHECK_EQ_U64(hg_stream_wait(home, NULL), HG_OK);
    if (i == 1) fill(buffer, 3, other);
    hg_buffer_release(buffer);
    CHECK_EQ_U64(hg_memory_trim(executor), HG_OK);
    CHECK(memory().kept <= slack());
  }
  CHECK_EQ_U64(hg_memory_keep(executor, most), HG_OK);
  hg_stream_release(home);
  hg_stream_release(other);
}

static void test_bound(void) {
  const uint64_t most = memory().kept_most;
  hg_stream *stream = stream_of();
  CHECK_EQ_U64(hg_memory_keep(executor, 5 << 20), HG_OK);
  CHECK_EQ_U64(memory().kept_most, 5 << 20);
  for (int i = 0; i < 4; i++) {
    hg_buffer *buffers[4];
    for (int k = 0; k < 4; k++) buffers[k] = buffer_on(stream, (uint64_t)(k + 1) << 20, 0);
    for (int k = 0; k < 4; k++) hg_buffer_release(buffers[k]);
    CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
    CHECK(memory().kept <= (5 << 20) + slack());
  }
  CHECK_EQ_U64(hg_memory_keep(executor, UINT64_MAX), HG_OK);
  for (int k = 0; k < 3; k++) hg_buffer_release(buffer_of(40 << 20, NULL));
  CHECK_EQ_U64(hg_memory_keep(executor, 0), HG_OK);
  hg_buffer_release(buffer_on(stream, 64, 0));
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK); /* what is above a new bound goes by then */
  CHECK(memory().kept <= slack());
  CHECK_EQ_U64(hg_memory_trim(executor), HG_OK);
  hg_buffer_release(buffer_of(4 << 20, NULL));
  CHECK_EQ_U64(hg_memory_trim(executor), HG_OK);
  CHECK(memory().kept <= slack());
  CHECK_EQ_U64(hg_memory_keep(executor, UINT64_MAX), HG_OK);
  hg_buffer_release(buffer_of(4 << 20, NULL));
  CHECK(memory().kept >= 4 << 20);
  CHECK_EQ_U64(hg_memory_keep(executor, most), HG_OK);
  hg_stream_release(stream);
}

static void test_arguments(void) {
  hg_memory_info info = {.size = 3};
  hg_executor *other = NULL;
  hg_stream *stream = NULL;
  hg_buffer *buffer = NULL;
  CHECK_EQ_U64(hg_memory_query(executor, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_memory_query(NULL, &info), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_memory_query(executor, &info), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_memory_trim(NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_memory_keep(NULL, 1), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(open_test_executor(NULL, &other), HG_OK);
  CHECK_EQ_U64(hg_stream_create(other, NULL, &stream), HG_OK);
  hg_buffer_desc desc = {.size = sizeof desc, .stream = stream};
  CHECK_EQ_U64(hg_buffer_create(executor, &desc, 64, &buffer), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_buffer_desc.stream belongs to another executor");
  hg_stream_release(stream);
  hg_executor_release(other);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* What was freed behind work is somebody else's next, who finds zeros. */
static void test_zeros(void) {
  hg_stream *stream = stream_of();
  for (uint32_t i = 0; i < 20; i++) {
    hg_buffer *dirty = buffer_on(stream, most_bytes(), HG_BUFFER_UNINIT);
    fill(dirty, 0x1234567 + i, stream);
    hg_buffer_release(dirty);
    hg_buffer *clean = buffer_on(i % 3 == 0 ? NULL : stream, most_bytes(), 0);
    check_all_words(clean, 0);
    hg_buffer_release(clean);
  }
  hg_stream_release(stream);
}

/* The host reads and writes what it is given while the stream still has to make it. */
static void test_host(hg_kernel *step) {
  hg_stream *stream = stream_of();
  uint32_t word = 7;
  for (uint32_t i = 0; i < 20; i++) {
    CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK); /* it is idle when the memory is taken */
    hg_buffer *read = buffer_on(stream, most_bytes(), 0), *written = buffer_on(stream, most_bytes(), 0);
    CHECK_EQ_U64(hg_buffer_write(written, 0, &word, 4), HG_OK);
    CHECK_EQ_U64(first_word(read), 0);
    CHECK_EQ_U64(give(step, written, "c", i, many(), stream), HG_OK);
    CHECK_EQ_U64(give(step, read, "c", i, many(), NULL), HG_OK); /* in the call */
    CHECK_EQ_U64(first_word(written), 21 + i);
    check_all_words(read, i);
    hg_buffer_release(read);
    hg_buffer_release(written);
    hg_buffer *unused = buffer_on(stream, most_bytes(), HG_BUFFER_UNINIT);
    CHECK_EQ_U64(hg_buffer_write(unused, 0, &word, 4), HG_OK);
    hg_buffer_release(unused); /* behind the write */
  }
  hg_stream_release(stream);
}

/* A buffer goes from the stream that it was taken on to another, which may be the first to use it. */
static void test_two_streams(hg_kernel *step) {
  hg_stream *home = stream_of(), *other = stream_of();
  hg_event *event = event_of(0);
  for (uint32_t i = 0; i < 30; i++) {
    hg_buffer *x = buffer_on(home, most_bytes(), 0), *y = buffer_on(home, most_bytes(), 0);
    hg_buffer *z = buffer_on(home, most_bytes(), 0), *filled = buffer_on(home, most_bytes(), 0);
    fill(x, i, home);
    if (i % 2 == 0) { /* the first to come from another stream, which is waited for first */
      fill(filled, i, other);
      CHECK_EQ_U64(hg_stream_wait(other, NULL), HG_OK);
    }
    CHECK_EQ_U64(give(step, y, "c", 5, many(), other), HG_OK); /* no event: nobody else has used it */
    CHECK_EQ_U64(hg_event_record(event, home), HG_OK);
    CHECK_EQ_U64(hg_stream_wait_event(other, event), HG_OK);
    CHECK_EQ_U64(give(step, x, "c", 1, many(), other), HG_OK);
    CHECK_EQ_U64(hg_buffer_copy_async(z, 0, x, 0, most_bytes(), other), HG_OK);
    hg_buffer_release(x);
    check_all_words(z, 3 * i + 1);
    check_all_words(y, 5);
    check_all_words(filled, i % 2 == 0 ? i : 0);
    hg_buffer_release(filled);
    hg_buffer_release(y);
    hg_buffer_release(z);
  }
  hg_event_release(event);
  hg_stream_release(home);
  hg_stream_release(other);
}

/* Buffers outlive the stream that they were taken on, and another stream takes its place. */
static void test_closed_stream(hg_kernel *step) {
  hg_stream *other = stream_of();
  for (uint32_t i = 0; i < 10; i++) {
    hg_stream *home = stream_of();
    hg_buffer *x = buffer_on(home, most_bytes(), 0), *y = buffer_on(home, most_bytes(), 0);
    hg_buffer *z = buffer_on(home, most_bytes(), 0);
    fill(x, i, home);
    hg_stream_release(home);
    home = stream_of();
    hg_buffer *later = buffer_on(home, most_bytes(), 0);
    CHECK_EQ_U64(give(step, x, "c", 1, many(), other), HG_OK);
    CHECK_EQ_U64(give(step, y, "c", 2, many(), home), HG_OK);
    CHECK_EQ_U64(give(step, later, "c", 3, many(), other), HG_OK);
    hg_buffer_release(z);
    check_all_words(x, 3 * i + 1);
    check_all_words(y, 2);
    check_all_words(later, 3);
    hg_stream_release(home);
    hg_buffer_release(x);
    hg_buffer_release(y);
    hg_buffer_release(later);
  }
  hg_stream_release(other);
}

/* A graph's buffers: taken on a stream, on one that captures, and on one that is closed when the graph is launched. */
static void test_graph(hg_kernel *step) {
  hg_stream *home = stream_of(), *captures = stream_of(), *runs = stream_of();
  hg_buffer *x = buffer_on(home, most_bytes(), 0), *total = buffer_on(runs, most_bytes(), 0);
  hg_graph *graph = NULL;
  CHECK_EQ_U64(hg_capture_begin(captures), HG_OK);
  hg_buffer *inside = buffer_on(captures, most_bytes(), 0);
  CHECK_EQ_U64(give(step, x, "c", 1, many(), captures), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(inside, 0, x, 0, most_bytes(), captures), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy_async(total, 0, inside, 0, most_bytes(), captures), HG_OK);
  CHECK_EQ_U64(hg_capture_end(captures, &graph), HG_OK);
  hg_buffer_release(inside); /* the graph's alone */
  CHECK_EQ_U64(hg_graph_launch(graph, runs), HG_OK); /* while the home still has to take x */
  CHECK_EQ_U64(hg_stream_wait(runs, NULL), HG_OK);
  hg_stream_release(home);
  hg_stream_release(captures);
  CHECK_EQ_U64(hg_graph_launch(graph, runs), HG_OK);
  hg_buffer_release(x);
  check_all_words(total, 3 * 1 + 1);
  hg_graph_release(graph);
  hg_buffer_release(total);
  hg_stream_release(runs);
}

/* More streams than memory is taken in the order of. */
static void test_many_streams(hg_kernel *step) {
  enum { STREAMS = 70 };
  hg_stream *streams[STREAMS];
  hg_buffer *buffers[STREAMS];
  for (uint32_t i = 0; i < STREAMS; i++) streams[i] = stream_of();
  for (uint32_t i = 0; i < STREAMS; i++) buffers[i] = buffer_on(streams[i], 64, 0);
  for (uint32_t i = 0; i < STREAMS; i++)
    CHECK_EQ_U64(give(step, buffers[i], "c", i, 16, streams[STREAMS - 1 - i]), HG_OK);
  for (uint32_t i = 0; i < STREAMS; i++) {
    check_all_words(buffers[i], i);
    hg_buffer_release(buffers[i]);
  }
  for (uint32_t i = 0; i < STREAMS; i++) hg_stream_release(streams[i]);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

typedef struct worker {
  hg_thread thread;
  hg_kernel *step;
  uint32_t number, wrong;
} worker;

/* Takes, uses and lets go, on a stream of its own. */
static void work(void *user) {
  worker *w = user;
  hg_stream *stream = NULL;
  w->wrong += hg_stream_create(executor, NULL, &stream) != HG_OK;
  hg_buffer_desc desc = {.size = sizeof desc, .stream = stream};
  for (uint32_t i = 0; i < ROUNDS; i++) {
    hg_buffer *buffer = NULL;
    uint32_t value = w->number * 1000 + i, word = 0;
    w->wrong += hg_buffer_create(executor, &desc, 1024, &buffer) != HG_OK;
    w->wrong += hg_buffer_fill_async(buffer, 0, 1024, &value, 4, stream) != HG_OK;
    w->wrong += give(w->step, buffer, "c", 1, 256, stream) != HG_OK;
    if (i % 7 == 0) {
      w->wrong += hg_buffer_read(buffer, 1020, &word, 4) != HG_OK;
      w->wrong += word != 3 * value + 1;
    }
    hg_buffer_release(buffer);
  }
  hg_stream_release(stream);
}

static void test_threads(hg_kernel *step) {
  worker workers[THREADS];
  uint64_t before = memory().in_use;
  for (uint32_t i = 0; i < THREADS; i++) {
    workers[i] = (worker){.step = step, .number = i + 1};
    CHECK_EQ_U64(hg_thread_start(&workers[i].thread, work, &workers[i]), 0);
  }
  for (uint32_t i = 0; i < THREADS; i++) {
    hg_thread_join(&workers[i].thread);
    CHECK_EQ_U64(workers[i].wrong, 0);
  }
  CHECK_EQ_U64(memory().in_use, before);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* A result a call: dropped at once, replaced by the next, or one of the last four that are kept. */
static void run_loop(uint64_t calls, uint32_t held, uint64_t byte_count, hg_stream *stream) {
  hg_buffer *results[4] = {NULL};
  hg_memory_info before = memory();
  for (uint64_t i = 0; i < calls; i++) {
    hg_buffer *result = buffer_on(stream, byte_count, HG_BUFFER_UNINIT);
    fill(result, (uint32_t)i, stream);
    hg_buffer **place = &results[i % (held > 0 ? held : 1)];
    hg_buffer_release(held > 0 ? *place : result);
    if (held > 0) *place = result;
    if (i % BETWEEN_WAITS == 0 && stream != NULL) CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  }
  hg_memory_info after = memory();
  CHECK_EQ_U64(after.in_use, before.in_use + held * byte_count);
  CHECK(after.kept <= before.kept + 2 * BETWEEN_WAITS * byte_count + (1 << 20) + slack());
  for (uint32_t i = 0; i < 4; i++) hg_buffer_release(results[i]);
  CHECK_EQ_U64(memory().in_use, before.in_use);
}

static void test_loops(void) {
  uint64_t calls = test_backend() == HG_BACKEND_CPU ? 100000 : 3000;
  hg_stream *stream = stream_of();
  for (uint32_t held = 0; held <= 4; held += held == 0 ? 1 : 3) {
    run_loop(calls, held, 256, NULL);
    run_loop(calls, held, 256, stream);
    run_loop(100, held, 1 << 20, stream);
  }
  hg_stream_release(stream);
}

/* Nobody waits: a GPU's stream takes again what it has still to free. Mapped anew each time it would be twenty. */
static void test_large_loops(void) {
  enum { LARGE_BYTES = 16 << 20 };
  hg_stream *own = stream_of(), *stream = test_backend() == HG_BACKEND_CUDA ? own : NULL;
  for (uint32_t held = 0; held <= 4; held += held == 0 ? 1 : 3) {
    hg_buffer *results[4] = {NULL};
    CHECK_EQ_U64(hg_memory_trim(executor), HG_OK);
    uint64_t before = memory().kept;
    for (uint32_t i = 0; i < 20; i++) {
      hg_buffer *result = buffer_on(stream, LARGE_BYTES, HG_BUFFER_UNINIT), **place = &results[held > 0 ? i % held : 0];
      fill(result, i, stream);
      hg_buffer_release(held > 0 ? *place : result);
      if (held > 0) *place = result;
    }
    CHECK(memory().kept <= before + 3 * LARGE_BYTES + slack());
    for (uint32_t i = 0; i < 4; i++) hg_buffer_release(results[i]);
  }
  hg_stream_release(own);
}

static void tests(void) {
  hg_kernel *step = kernel_of(step_text);
  test_counts();
  test_trim_behind_a_free();
  test_bound();
  test_arguments();
  test_zeros();
  test_host(step);
  test_two_streams(step);
  test_closed_stream(step);
  test_graph(step);
  test_many_streams(step);
  test_threads(step);
  test_loops();
  test_large_loops();
  hg_kernel_release(step);
}

int main(void) { return run_stream_tests(tests); }
