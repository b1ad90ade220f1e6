/* test_cancel.c - hg_cancel: work that is under way or queued ends, what is given later runs. `--times` prints how long
 * after the call each piece of work ended. */
#include "check.h"
#include "test_backend.h"

#include "base/os.h"
#include "hologram/ops.h"

#include <limits.h>
#include <stdatomic.h>

enum { COUNT = 1024, SIDE = 512, LARGE_SIDE = 4096, LAYERS = 200 };

static hg_executor *executor;
static int prints_times;

/* ---- who cancels ------------------------------------------------------------------------------------------------- */

static _Atomic uint64_t called_ns; /* when hg_cancel was called last */

static void cancel_soon(void *user) {
  hg_sleep(30000000);
  atomic_store(&called_ns, hg_time_ns());
  (void)hg_cancel(user);
}

/* Work that another thread cancels while it goes on: ends in time, with that status. */
static void check_ended(const char *what, hg_status (*work)(void *), void *user) {
  hg_thread thread;
  CHECK_EQ_U64((uint64_t)hg_thread_start(&thread, cancel_soon, executor), 0);
  hg_status status = work(user);
  uint64_t end = hg_time_ns();
  CHECK_EQ_U64(status, HG_CANCELLED);
  CHECK(strstr(hg_last_error(), "hg_cancel has ended") != NULL);
  hg_thread_join(&thread);
  uint64_t called = atomic_load(&called_ns), late = end > called ? end - called : 0;
  if (prints_times) printf("%-40s %8.3f ms\n", what, (double)late / 1e6);
  CHECK(late < UINT64_C(2000000000)); /* where threads wait for a processor; the work would take longer by far */
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct work {
  hg_kernel *kernel;
  hg_buffer *buffer;
  uint64_t lanes;
  uint32_t grid;
  hg_stream *stream;
  hg_status status; /* of another thread's launch */
} work;

static hg_status launch(const work *w, uint32_t rounds) {
  hg_binding binding = {.name = "x", .buffer = w->buffer};
  hg_scalar n = {.name = "n", .type = ATLAS_u32, .bits = rounds};
  hg_launch_desc desc = {.lanes = w->lanes, .grid = {w->grid, 0, 0}, .bindings = &binding, .binding_count = 1,
                         .scalars = &n, .scalar_count = 1, .stream = w->stream};
  return hg_launch(w->kernel, &desc, NULL);
}

static hg_status launch_long(void *user) { return launch(user, UINT32_MAX); }

#define HEAD ".program p\n.buffer x u32 inout\n.scalar n u32\n"
static const char *const programs[][2] = {
    {"a count that is known",
     HEAD "movi.u32 r0, #4000000000\nmov.u32 r2, n\ntop:\nmad.u32 r2, r2, #1664525, #1013904223\nloop r0, top\n"
          "stg.u32 [x + lane], r2\nexit\n"},
    {"a count that a scalar gives",
     HEAD "mov.u32 r0, n\nmov.u32 r2, n\ntop:\nmad.u32 r2, r2, #1664525, #1013904223\nloop r0, top\n"
          "stg.u32 [x + lane], r2\nexit\n"},
    {"loads in a loop",
     HEAD "mov.u32 r0, n\nmov.u32 r2, #0\nmov.u32 r3, #0\ntop:\nldg.u32 r1, [x + r3]\nadd.u32 r2, r2, r1\n"
          "add.u32 r3, r3, #1\n"
          "and.u32 r3, r3, #1023\nloop r0, top\nset.eq.u32 p0, r2, #7\n@p0 bra none\n"
          "stg.u32 [x + lane], r2\nnone:\nexit\n"},
    {"no end",
     HEAD "mov.u32 r2, n\nadd.u32 r2, r2, #6\ntop:\nmad.u32 r2, r2, #4, #3\nset.ne.u32 p0, r2, #0\n@p0 bra top\n"
          "stg.u32 [x + lane], r2\nexit\n"},
    {"lanes that take different ways",
     HEAD "mov.u32 r0, n\nmov.u32 r2, r252\ntop:\nand.u32 r3, r2, #1\nset.eq.u32 p0, r3, #0\n@p0 bra even\n"
          "mad.u32 r2, r2, #3, #1\nbra next\neven:\nshr.u32 r2, r2, #1\nnext:\nloop r0, top\n"
          "stg.u32 [x + lane], r2\nexit\n"},
    {"lanes that leave when they are done",
     HEAD "mov.u32 r0, n\nmov.u32 r2, r252\ntop:\nmad.u32 r2, r2, #4, #3\nset.eq.u32 p0, r2, r0\n@p0 bra done\n"
          "loop r0, top\ndone:\nstg.u32 [x + lane], r2\nexit\n"},
    {"a barrier in a loop",
     ".program p\n.block 256\n.buffer x u32 inout\n.scalar n u32\n.shared s u32 256\n"
     "mov.u32 r0, n\nmov.u32 r2, r252\ntop:\nsts.u32 [s + r252], r2\nbar.sync\n"
     "add.u32 r3, r252, #1\nand.u32 r3, r3, #255\n"
     "lds.u32 r4, [s + r3]\nadd.u32 r2, r2, r4\nbar.sync\nloop r0, top\nstg.u32 [x + lane], r2\nexit\n"},
    {"many lanes",
     HEAD "cvt.u32.u64 r0, lane\nand.u32 r0, r0, #1023\nmov.u32 r1, n\nstg.u32 [x + r0], r1\nexit\n"},
};
enum { PROGRAMS = sizeof programs / sizeof programs[0], BARRIERS = 6, LANES = 7 };

static void open_work(work *w, int p) {
  atlas_program *program = NULL;
  *w = (work){.lanes = p == LANES ? UINT64_C(1) << 39 : p == BARRIERS ? 0 : COUNT, .grid = p == BARRIERS ? 4 : 0};
  hg_status status = atlas_parse(NULL, programs[p][1], strlen(programs[p][1]), "p", &program);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) printf("%s\n", hg_last_error());
  CHECK_EQ_U64(hg_kernel_create(executor, program, &w->kernel), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, COUNT * sizeof(uint32_t), &w->buffer), HG_OK);
  atlas_program_release(program);
}

static void close_work(work *w) {
  hg_kernel_release(w->kernel);
  hg_buffer_release(w->buffer);
  hg_stream_release(w->stream);
}

static void test_launches(void) {
  for (int p = 0; p < PROGRAMS; p++) {
    work w;
    open_work(&w, p);
    check_ended(programs[p][0], launch_long, &w);
    if (p != LANES && p != 0 && p != 3) CHECK_EQ_U64(launch(&w, 3), HG_OK); /* of the same kernel, later */
    close_work(&w);
  }
}

static void launch_beside(void *user) {
  work *w = user;
  w->status = launch_long(w);
}

/* A call that waits for another one to end has been given as well. */
static void test_waiting_call(void) {
  work w;
  hg_thread thread;
  open_work(&w, 1);
  CHECK_EQ_U64((uint64_t)hg_thread_start(&thread, launch_beside, &w), 0);
  check_ended("a launch beside another one", launch_long, &w);
  hg_thread_join(&thread);
  CHECK_EQ_U64(w.status, HG_CANCELLED);
  CHECK_EQ_U64(launch(&w, 3), HG_OK);
  close_work(&w);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static hg_status wait_for(void *user) { return hg_stream_wait(((const work *)user)->stream, NULL); }

/* Behind the launch that runs others wait, a fill and an event. */
static void test_stream(void) {
  work w;
  uint32_t before[2] = {1, 2}, pattern = 77, after[2];
  hg_buffer *other = NULL;
  hg_event *event = NULL;
  open_work(&w, 1);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &w.stream), HG_OK);
  CHECK_EQ_U64(hg_event_create(executor, NULL, &event), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, sizeof before, &other), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(other, 0, before, sizeof before), HG_OK);
  for (int i = 0; i < 3; i++) CHECK_EQ_U64(launch_long(&w), HG_OK);
  CHECK_EQ_U64(hg_buffer_fill_async(other, 0, sizeof before, &pattern, sizeof pattern, w.stream), HG_OK);
  CHECK_EQ_U64(hg_event_record(event, w.stream), HG_OK);
  check_ended("a stream", wait_for, &w);
  CHECK_EQ_U64(hg_event_query(event), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(other, 0, after, sizeof after), HG_OK);
  CHECK(memcmp(before, after, sizeof before) == 0);
  CHECK_EQ_U64(hg_stream_wait(w.stream, NULL), HG_OK); /* it has been told */
  CHECK_EQ_U64(hg_buffer_fill_async(other, 0, sizeof before, &pattern, sizeof pattern, w.stream), HG_OK);
  CHECK_EQ_U64(launch(&w, 3), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(w.stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(other, 0, after, sizeof after), HG_OK);
  CHECK(after[0] == pattern && after[1] == pattern);
  hg_event_release(event);
  hg_buffer_release(other);
  close_work(&w);
}

static void test_graph(void) {
  work w;
  hg_graph *graph = NULL;
  open_work(&w, 1);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &w.stream), HG_OK);
  CHECK_EQ_U64(hg_capture_begin(w.stream), HG_OK);
  for (int i = 0; i < 3; i++) CHECK_EQ_U64(launch_long(&w), HG_OK);
  CHECK_EQ_U64(hg_capture_end(w.stream, &graph), HG_OK);
  for (int i = 0; i < 2; i++) {
    CHECK_EQ_U64(hg_graph_launch(graph, w.stream), HG_OK);
    check_ended("a graph", wait_for, &w);
  }
  hg_graph_release(graph);
  close_work(&w);
}

/* ---- computations ------------------------------------------------------------------------------------------------ */

static hg_tensor tensors[2];

static hg_status multiply(void *user) {
  (void)user;
  return hg_apply(HG_OP_matmul, (hg_tensor[]){tensors[0], tensors[0]}, 2, NULL, 0, &tensors[1], 1, NULL);
}

static hg_status run(void *user) {
  for (int i = 0; i < 1000; i++) {
    hg_status status = hg_run(user, &tensors[0], 1, &tensors[1], 1, NULL, NULL);
    if (status != HG_OK) return status;
  }
  return HG_OK;
}

static hg_executable *layers(void) {
  hg_computation *c = NULL;
  hg_executable *e = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value value = hg_computation_input(c, "x", &tensors[0]);
  for (uint32_t i = 0; i < LAYERS; i++) value = hg_compute(c, HG_OP_tanh, &value, 1, NULL, 0);
  CHECK_EQ_U64(hg_computation_output(c, "y", value, NULL), HG_OK);
  CHECK_EQ_U64(hg_compile(executor, c, &(hg_compile_desc){.flags = HG_NO_FUSION}, &e), HG_OK);
  hg_computation_release(c);
  return e;
}

static void open_tensors(uint64_t side) {
  for (int i = 0; i < 2; i++)
    CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f32, 2, (uint64_t[]){side, side}, &tensors[i]), HG_OK);
}

static void close_tensors(void) {
  for (int i = 0; i < 2; i++) hg_buffer_release(tensors[i].buffer);
}

static void test_executables(uint64_t side) {
  open_tensors(side);
  hg_executable *e = layers();
  check_ended("an executable of many launches", run, e);
  CHECK_EQ_U64(hg_run(e, &tensors[0], 1, &tensors[1], 1, NULL, NULL), HG_OK);
  hg_executable_release(e);
  close_tensors();
  if (side != SIDE) return; /* a launch of a slow machine */
  open_tensors(LARGE_SIDE);
  check_ended("a product of matrices", multiply, NULL);
  close_tensors();
}

/* ---- calls that have begun --------------------------------------------------------------------------------------- */

static atomic_int to_cancel; /* so many allocations from here on cancel `executor`: another thread could be as quick */

static void *cancelling_allocate(void *user, size_t size) {
  (void)user;
  if (atomic_load(&to_cancel) > 0 && atomic_fetch_sub(&to_cancel, 1) > 0) (void)hg_cancel(executor);
  return malloc(size);
}

static void plain_release(void *user, void *memory) {
  (void)user;
  free(memory);
}

/* A call that was cancelled while it planned, compiled or looked for room was given before. */
static void test_begun(void) {
  const hg_allocator allocator = {
      .size = sizeof allocator, .allocate = cancelling_allocate, .release = plain_release};
  hg_executor *others = executor;
  work w;
  CHECK_EQ_U64(open_test_executor(&allocator, &executor), HG_OK);
  open_tensors(64);
  atomic_store(&to_cancel, 1); /* before it compiles */
  CHECK_EQ_U64(multiply(NULL), HG_CANCELLED);
  CHECK_EQ_U64(multiply(NULL), HG_OK);
  close_tensors();
  open_work(&w, 1);
  w.lanes = 1 << 20; /* too many for the call itself */
  hg_buffer_release(w.buffer);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, w.lanes * sizeof(uint32_t), &w.buffer), HG_OK);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &w.stream), HG_OK);
  CHECK_EQ_U64(launch(&w, 3), HG_OK); /* compiled, if it was not yet */
  CHECK_EQ_U64(hg_stream_wait(w.stream, NULL), HG_OK);
  atomic_store(&to_cancel, INT_MAX);
  hg_status status = launch(&w, 3);
  atomic_store(&to_cancel, 0);
  hg_status end = hg_stream_wait(w.stream, NULL);
  if (test_backend() == HG_BACKEND_CPU) CHECK(status == HG_CANCELLED || end == HG_CANCELLED);
  else CHECK(status == HG_OK || status == HG_CANCELLED); /* the driver has been given it, or not */
  CHECK_EQ_U64(launch(&w, 3), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(w.stream, NULL), HG_OK);
  close_work(&w);
  hg_executor_release(executor);
  executor = others;
}

/* Where nothing is under way it ends nothing. */
static void test_idle(void) {
  work w;
  CHECK_EQ_U64(hg_cancel(NULL), HG_INVALID_ARGUMENT);
  open_work(&w, 1);
  CHECK_EQ_U64(hg_cancel(executor), HG_OK);
  CHECK_EQ_U64(launch(&w, 3), HG_OK);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &w.stream), HG_OK);
  CHECK_EQ_U64(launch(&w, 3), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(w.stream, NULL), HG_OK);
  CHECK_EQ_U64(hg_cancel(executor), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(w.stream, NULL), HG_OK);
  close_work(&w);
}

int main(int argc, char **argv) {
  prints_times = argc > 1 && strcmp(argv[1], "--times") == 0;
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  hg_executor_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
  int is_machine = test_backend() == HG_BACKEND_CPU;
  test_idle();
  test_begun();
  if (is_machine) {
    test_launches();
    test_waiting_call();
    test_stream();
    test_graph();
  }
  test_executables(!is_machine || strcmp(info.engine, "reference") == 0 ? 64 : SIDE);
  hg_executor_release(executor);
  return check_report();
}
