/* test_patience.c - calls that ask their caller whether they are to go on (hg_executor_desc.ask). */
#include "computing.h"
#include "counted.h"

enum { SIDE = 16, LAYERS = 160, MOST_COUNT = 1 << 23, LAUNCHES = 200 };

/* Ends the call that asks for the `end`th time; 0: none. */
typedef struct asked {
  uint32_t count, end;
  hg_tensor x; /* what it computes with before it answers; no buffer: nothing */
  int is_answering;
} asked;

static int answer(void *user) {
  asked *a = user;
  if (a->is_answering) return 0;
  a->is_answering = 1;
  if (a->x.buffer != NULL)
    CHECK_EQ_U64(hg_apply(HG_OP_mul, (hg_tensor[]){a->x, a->x}, 2, NULL, 0, &a->x, 1, NULL), HG_OK);
  a->is_answering = 0;
  return ++a->count == a->end;
}

static void open_asking(asked *a, const hg_allocator *allocator) {
  hg_executor_desc desc = {
      .size = sizeof desc, .backend = test_backend(), .allocator = allocator, .ask = answer, .ask_user = a};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
}

/* ---- compiling --------------------------------------------------------------------------------------------------- */

/* Layers that each have kernels of their own. */
static hg_computation *layers(const hg_tensor *x) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value in = hg_computation_input(c, "x", x), value = in;
  for (uint32_t i = 0; i < LAYERS; i++) {
    value = two(c, HG_OP_matmul, value, in);
    value = two(c, HG_OP_mul, value, hg_computation_number(c, ATLAS_f32, 1.0 / (i + 2)));
    value = hg_compute(c, HG_OP_softmax, &value, 1, NULL, 0);
  }
  CHECK_EQ_U64(hg_computation_output(c, "y", value, NULL), HG_OK);
  return c;
}

/* Ended at its first question, its second, its fourth and so on, until it has no more. Nothing is left of it: some of
 * its kernels are being compiled then, and others are queued. */
static void test_compile(void) {
  counter memory = {.fail_at = -1};
  const hg_allocator allocator = counting(&memory);
  asked a = {.count = 0};
  open_asking(&a, &allocator);
  hg_buffer *buffer = buffer_of(SIDE * SIDE * sizeof(float), NULL);
  hg_tensor x = matrix_of(buffer, SIDE, SIDE);
  hg_computation *c = layers(&x);
  hg_executable *e = NULL;
  hg_status status = HG_CANCELLED;
  uint32_t ended = 0;
  for (uint32_t end = 1; status == HG_CANCELLED; end *= 2) {
    a.count = 0, a.end = end;
    a.x = end == 1 ? vector_of(buffer, 4) : (hg_tensor){.type = ATLAS_NONE};
    status = hg_compile(executor, c, &(hg_compile_desc){.flags = HG_NO_FUSION}, &e);
    if (status == HG_CANCELLED) CHECK(e == NULL && a.count == end && ++ended > 0);
    else CHECK(status == HG_OK && a.count < end);
  }
  CHECK(ended > 0);
  hg_executable_release(e);
  hg_computation_release(c);
  hg_buffer_release(buffer);
  hg_executor_release(executor);
  CHECK_EQ_U64((uint64_t)memory.live, 0);
}

/* Compiling in full asks as well: between kernels, where one has taken long. */
static void test_warm(void) {
  asked a = {.count = 0};
  open_asking(&a, NULL);
  hg_tensor x = matrix_of(NULL, SIDE, SIDE);
  hg_computation *c = layers(&x);
  hg_executable *e = NULL;
  uint64_t kernels = 0;
  CHECK_EQ_U64(hg_compile(executor, c, &(hg_compile_desc){.flags = HG_NO_FUSION}, &e), HG_OK);
  a = (asked){.end = 1};
  hg_status status = hg_executable_warm(e, &kernels);
  CHECK_EQ_U64(status, a.count > 0 ? HG_CANCELLED : HG_OK);
  CHECK(status == HG_OK || kernels == 0);
  a = (asked){.end = 0};
  CHECK_EQ_U64(hg_executable_warm(e, &kernels), HG_OK);
  CHECK(kernels >= 2 && kernels <= e->launch_count);
  hg_executable_release(e);
  hg_computation_release(c);
  hg_executor_release(executor);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

/* So many launches, one after the other. */
static hg_executable *chain(const hg_tensor *x, uint32_t launches) {
  hg_computation *c = NULL;
  hg_executable *e = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value value = hg_computation_input(c, "x", x);
  for (uint32_t i = 0; i < launches; i++) value = hg_compute(c, HG_OP_tanh, &value, 1, NULL, 0);
  CHECK_EQ_U64(hg_computation_output(c, "y", value, NULL), HG_OK);
  CHECK_EQ_U64(hg_compile(executor, c, &(hg_compile_desc){.flags = HG_NO_FUSION}, &e), HG_OK);
  hg_computation_release(c);
  return e;
}

/* Calls `run` with more and more elements, until its work takes long enough for a question. How long a launch takes
 * says little about the next one's time on a machine that does other things as well. */
static hg_status until_asked(hg_status (*run)(hg_executable *, const hg_tensor *, const hg_tensor *), asked *a,
                             uint32_t launches, hg_buffer *in, hg_buffer *out) {
  uint32_t end = a->end;
  hg_status status = HG_OK;
  for (uint64_t count = 64; count <= MOST_COUNT && status == HG_OK && a->count == 0; count *= 2) {
    hg_tensor x = vector_of(in, count), y = vector_of(out, count);
    *a = (asked){.end = 0};
    hg_executable *e = chain(&x, launches);
    *a = (asked){.end = end};
    status = run(e, &x, &y);
    hg_executable_release(e);
  }
  return status;
}

static hg_stream *stream;
static uint32_t streamed; /* launches that it was given */

static hg_status fill_stream(hg_executable *e, const hg_tensor *x, const hg_tensor *y) {
  hg_status status = HG_OK;
  uint32_t given = 0;
  while (status == HG_OK && given < 8 * HG_STREAM_LAUNCHES) {
    status = hg_run(e, x, 1, y, 1, stream, NULL);
    given += status == HG_OK;
  }
  streamed += given;
  CHECK(streamed >= HG_STREAM_LAUNCHES); /* those that it still has when it is filled again, too */
  return status;
}

/* Where a stream has no room: the call that waits for it is ended, and the stream does what it had been given. */
static void test_room(asked *a, hg_buffer *in, hg_buffer *out) {
  hg_tensor x = vector_of(in, 4), y = vector_of(out, 4);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  streamed = 0;
  *a = (asked){.end = 1};
  CHECK_EQ_U64(until_asked(fill_stream, a, 1, in, out), HG_CANCELLED);
  CHECK_EQ_U64(a->count, 1);
  hg_executable *e = chain(&x, 1);
  *a = (asked){.x = x}; /* which the stream's work reads: it is waited for */
  CHECK_EQ_U64(hg_run(e, &x, 1, &y, 1, stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  hg_executable_release(e);
  hg_stream_release(stream);
}

static const float NOTHING = -2;

static hg_status run_all(hg_executable *e, const hg_tensor *x, const hg_tensor *y) {
  CHECK_EQ_U64(e->launch_count, LAUNCHES);
  CHECK_EQ_U64(hg_buffer_write(y->buffer, 0, &NOTHING, sizeof NOTHING), HG_OK);
  return hg_run(e, x, 1, y, 1, NULL, NULL);
}

/* Between the launches of a run without a stream: the rest is never done. */
static void test_run(asked *a, hg_buffer *in, hg_buffer *out) {
  float value = 0;
  *a = (asked){.end = 1};
  CHECK_EQ_U64(until_asked(run_all, a, LAUNCHES, in, out), HG_CANCELLED);
  CHECK_EQ_U64(a->count, 1);
  CHECK_EQ_U64(hg_buffer_read(out, 0, &value, sizeof value), HG_OK);
  CHECK_EQ_U64(bits_of(value), bits_of(NOTHING));
  *a = (asked){.end = 0};
  CHECK_EQ_U64(until_asked(run_all, a, LAUNCHES, in, out), HG_OK);
  CHECK(a->count > 0);
}

int main(void) {
  asked a = {.count = 0};
  test_compile();
  test_warm();
  open_asking(&a, NULL);
  hg_buffer *in = buffer_of(MOST_COUNT * sizeof(float), NULL), *out = buffer_of(MOST_COUNT * sizeof(float), NULL);
  test_room(&a, in, out);
  test_run(&a, in, out);
  hg_buffer_release(in);
  hg_buffer_release(out);
  hg_executor_release(executor);
  return check_report();
}
