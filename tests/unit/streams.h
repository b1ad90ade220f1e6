/* streams.h - what the tests of streams share: programs, short ways to streams, events and launches on them, and the
 * frame in which they run. On any backend: see test_backend.h. */
#ifndef HG_TESTS_STREAMS_H
#define HG_TESTS_STREAMS_H

#if !defined(_WIN32)
#  include "fake_gpu.h"
#endif
#include "launching.h"

/* More lanes than the CPU runs in the caller's thread; fewer where a kernel is interpreted. */
static inline uint64_t many(void) { return test_backend() == HG_BACKEND_CUDA ? 600 : 100000; }

/* x = 3 * x + c, so that the order of launches shows. */
static const char step_text[] =
    ".program step\n"
    ".buffer x u32 inout\n"
    ".scalar c u32\n"
    "    ldg.u32 r0, [x + lane]\n"
    "    mul.u32 r0, r0, #3\n"
    "    add.u32 r0, r0, c\n"
    "    stg.u32 [x + lane], r0\n"
    "    exit\n";

/* Takes a while: `rounds` turns a lane. */
static const char slow_text[] =
    ".program slow\n"
    ".buffer x u32 inout\n"
    ".scalar rounds u32\n"
    "    ldg.u32 r0, [x + lane]\n"
    "    mov.u32 r1, rounds\n"
    "again:\n"
    "    mul.u32 r0, r0, #5\n"
    "    add.u32 r0, r0, #1\n"
    "    loop r1, again\n"
    "    stg.u32 [x + lane], r0\n"
    "    exit\n";

static const char class_text[] =
    ".program class\n"
    ".buffer x u32 inout\n"
    "    ldg.u32 r0, [x + lane]\n"
    "    add.u32 r0, r0, #1\n"
    "    stg.u32 [x + lane], r0\n"
    "    res.accum.i64 #5, #1\n"
    "    phase.adv.u32 #1\n"
    "    exit\n";

static inline hg_stream *stream_of(void) {
  hg_stream *stream = NULL;
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  return stream;
}

static inline hg_event *event_of(uint32_t flags) {
  hg_event *event = NULL;
  hg_event_desc desc = {.flags = flags};
  CHECK_EQ_U64(hg_event_create(executor, &desc, &event), HG_OK);
  return event;
}

/* Launches a kernel of one buffer 'x' and one scalar on a stream. */
static inline hg_status give(hg_kernel *kernel, hg_buffer *x, const char *scalar, uint32_t value, uint64_t lanes,
                      hg_stream *stream) {
  hg_binding binding = {.name = "x", .buffer = x};
  hg_scalar c = {.name = scalar, .type = ATLAS_u32, .bits = value};
  hg_launch_desc desc = {.lanes = lanes, .bindings = &binding, .binding_count = 1, .scalars = &c,
                         .scalar_count = scalar != NULL, .stream = stream};
  return hg_launch(kernel, &desc, NULL);
}

static inline uint32_t first_word(hg_buffer *buffer) {
  uint32_t word = 0;
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, &word, 4), HG_OK);
  return word;
}

static inline void check_all_words(hg_buffer *buffer, uint32_t expected) {
  uint32_t wrong = 0, host[4096];
  for (uint64_t at = 0; at < hg_buffer_size(buffer); at += sizeof host) {
    uint64_t bytes = hg_buffer_size(buffer) - at < sizeof host ? hg_buffer_size(buffer) - at : sizeof host;
    CHECK_EQ_U64(hg_buffer_read(buffer, at, host, bytes), HG_OK);
    for (uint64_t i = 0; i < bytes / 4; i++) wrong += host[i] != expected;
  }
  CHECK_EQ_U64(wrong, 0);
}

/* With an executor; afterwards the double of libcuda, if it is there, has seen nothing wrong. */
static inline int run_stream_tests(void (*tests)(void)) {
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  if (executor == NULL) return check_report();
  tests();
  hg_executor_release(executor);
#if !defined(_WIN32)
  if (test_backend() == HG_BACKEND_CUDA && find_fake_gpu()) CHECK_CLEAN();
#endif
  return check_report();
}

#endif
