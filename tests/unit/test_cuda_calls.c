/* test_cuda_calls.c - every call of the driver fails in turn, on a double of libcuda: an error that says so, or none,
 * and nothing lost. */
#define _GNU_SOURCE
#include "counted.h"
#include "driver_functions.h"
#include "fake_gpu.h"
#include "shard.h"

typedef struct scene {
  hg_executor *executor;
  atlas_program *program, *side_program;
  hg_kernel *kernel, *side;
  hg_buffer *x, *y, *z;
  hg_stream *stream, *other;
  hg_event *start, *end;
  hg_graph *graph;
  void *host;
} scene;

static const char scene_text[] =
    ".program scene\n"
    ".buffer x u32 in\n"
    ".buffer y u32 out\n"
    ".table t 3 in\n"
    "    ldg.u32 r0, [x + lane]\n"
    "    movi.u32 r1, #1\n"
    "    movi.u32 r2, #4\n"
    "    ldg.u32 r3, [r1 : r2]\n"
    "    add.u32 r0, r0, r3\n"
    "    stg.u32 [y + lane], r0\n"
    "    res.accum.i64 #5, #1\n"
    "    phase.adv.u32 #1\n"
    "    exit\n";

/* For streams: without what the host keeps. */
static const char side_text[] =
    ".program side\n"
    ".buffer x u32 inout\n"
    ".table t 2 in\n"
    "    ldg.u32 r0, [x + lane]\n"
    "    movi.u32 r1, #1\n"
    "    movi.u32 r2, #4\n"
    "    ldg.u32 r3, [r1 : r2]\n"
    "    add.u32 r0, r0, r3\n"
    "    stg.u32 [x + lane], r0\n"
    "    exit\n";

#define STEP(expression)                          \
  do {                                            \
    hg_status step_status = (expression);         \
    if (step_status != HG_OK) return step_status; \
  } while (0)

/* What a stream was given may fail as late as the wait for it, or for the memory. */
static hg_status play_streams(scene *s) {
  const hg_event_desc timed = {.flags = HG_EVENT_TIMED};
  const uint8_t pattern[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  double elapsed = 0;
  STEP(hg_kernel_create(s->executor, s->side_program, &s->side));
  STEP(hg_buffer_create(s->executor, NULL, 4096, &s->z));
  STEP(hg_host_allocate(s->executor, 64, &s->host));
  STEP(hg_stream_create(s->executor, NULL, &s->stream));
  STEP(hg_stream_create(s->executor, NULL, &s->other));
  STEP(hg_event_create(s->executor, &timed, &s->start));
  STEP(hg_event_create(s->executor, &timed, &s->end));
  STEP(hg_event_record(s->start, s->stream));
  hg_binding bindings[] = {{.name = "x", .buffer = s->z}, {.name = "t", .entry = 1, .buffer = s->x}};
  hg_launch_desc desc = {.lanes = 1024, .bindings = bindings, .binding_count = 2, .stream = s->stream};
  STEP(hg_launch(s->side, &desc, NULL));
  desc.lanes = 1025; /* the last one faults */
  STEP(hg_launch(s->side, &desc, NULL));
  STEP(hg_buffer_fill_async(s->z, 1, 64, pattern, 8, s->stream));
  STEP(hg_buffer_fill_async(s->z, 2, 64, pattern, 8, s->stream));
  STEP(hg_buffer_fill_async(s->z, 4, 64, pattern, 8, s->stream));
  STEP(hg_event_record(s->end, s->stream));
  STEP(hg_stream_wait_event(s->other, s->end));
  STEP(hg_buffer_copy_async(s->y, 0, s->z, 0, 4096, s->other));
  STEP(hg_capture_begin(s->stream));
  desc.lanes = 1026; /* and here the last two, later */
  STEP(hg_launch(s->side, &desc, NULL));
  STEP(hg_buffer_read_async(s->z, 0, s->host, 64, s->stream));
  STEP(hg_capture_end(s->stream, &s->graph));
  STEP(hg_graph_launch(s->graph, s->stream));
  hg_status status = hg_stream_query(s->stream);
  if (status != HG_OK && status != HG_BUSY) return status;
  STEP(hg_event_wait(s->end));
  STEP(hg_event_query(s->end));
  STEP(hg_event_elapsed(s->start, s->end, &elapsed));
  CHECK(elapsed > 0);
  status = hg_stream_wait(s->stream, NULL);
  if (status != HG_FAULT) return status != HG_OK ? status : HG_INVALID_ARGUMENT;
  CHECK_STR(hg_last_error(), "line 4 (ldg): lane 1024 read past 'x': index 1024, extent 1024");
  desc.lanes = 4;
  STEP(hg_launch(s->side, &desc, NULL));
  hg_buffer_release(s->z);
  s->z = NULL;
  hg_launch_report report = {0};
  bindings[0].buffer = s->y;
  desc.stream = NULL;
  STEP(hg_launch(s->side, &desc, &report));
  CHECK(report.nanoseconds == 1000000); /* the double's clock goes on by a millisecond an event */
  STEP(hg_stream_wait(s->stream, NULL));
  return hg_stream_wait(s->other, NULL);
}

static hg_status play(scene *s) {
  enum { LANES = 300000 };
  static uint32_t host[LANES];
  void *memory = NULL;
  uint64_t pattern = 0x0123456789abcdef;
  STEP(open_gpu(&s->executor));
  STEP(hg_kernel_create(s->executor, s->program, &s->kernel));
  STEP(hg_buffer_create(s->executor, NULL, sizeof host, &s->x));
  STEP(hg_buffer_create(s->executor, NULL, sizeof host, &s->y));
  STEP(hg_buffer_write(s->x, 0, host, sizeof host));
  STEP(hg_buffer_fill(s->x, 2, 64, &pattern, 4));
  STEP(hg_buffer_fill(s->x, 0, 1 << 20, &pattern, 8));
  STEP(hg_buffer_fill(s->x, 0, 64, &pattern, 2));
  STEP(hg_buffer_fill(s->x, 0, 64, &pattern, 4));
  STEP(hg_buffer_copy(s->x, 4, s->x, 0, 1000));
  hg_binding bindings[] = {
      {.name = "x", .buffer = s->x}, {.name = "y", .buffer = s->y}, {.name = "t", .entry = 1, .buffer = s->x}};
  hg_launch_desc desc = {.lanes = 100, .bindings = bindings, .binding_count = 3};
  STEP(hg_launch(s->kernel, &desc, NULL));
  bindings[1].byte_count = 4 * 99; /* the last lane faults */
  hg_status status = hg_launch(s->kernel, &desc, NULL);
  if (status != HG_FAULT) return status != HG_OK ? status : HG_INVALID_ARGUMENT;
  STEP(hg_buffer_map(s->y, &memory));
  STEP(hg_buffer_unmap(s->y));
  STEP(play_streams(s));
  return hg_buffer_read(s->y, 0, host, sizeof host);
}

static void let_go(scene *s) {
  hg_graph_release(s->graph);
  hg_stream_release(s->stream);
  hg_stream_release(s->other);
  hg_event_release(s->start);
  hg_event_release(s->end);
  hg_host_release(s->executor, s->host);
  hg_kernel_release(s->side);
  hg_buffer_release(s->z);
  hg_buffer_release(s->x);
  hg_kernel_release(s->kernel);
  hg_buffer_release(s->y);
  hg_executor_release(s->executor);
}

/* What may fail without anybody noticing: giving back, asking for facts, and what has another way. */
static int may_fail(const char *name, int error) {
  static const char *const names[] = {"Free",         "Destroy",           "Unload", "Ctx", "cuPointerGetAttributes",
                                      "cuDeviceGet", "cuDeviceTotalMem_v2", "Trim",   "cuMemGetInfo_v2"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    if (strstr(name, names[i]) != NULL) return 1;
  return error == 2 && (strstr(name, "Alloc") != NULL || strstr(name, "Event") != NULL ||
                        strstr(name, "toHAsync") != NULL || strstr(name, "HtoDAsync") != NULL ||
                        strcmp(name, "cuModuleLoadData") == 0);
}

/* 1: refused argument; 2: out of memory; 719: the context is lost. */
static void fail_everywhere(atlas_program *program, atlas_program *side, int error, const char *pools) {
  set("FAKECUDA_POOLS", pools);
  for (size_t f = 0; f < sizeof functions / sizeof functions[0]; f++) {
    if (strcmp(functions[f], "cuDevicePrimaryCtxRelease_v2") == 0 || strcmp(functions[f], "cuCtxPopCurrent_v2") == 0)
      continue; /* nobody could do anything about it */
    for (unsigned call = 1; call <= 40; call++) {
      scene s = {.program = program, .side_program = side};
      char demand[120];
      snprintf(demand, sizeof demand, "%s:%u=%d", functions[f], call, error);
      set("FAKECUDA_FAIL", demand);
      hg_status status = play(&s);
      int refusals = gpu.refusals();
      CHECK(refusals == 0 || status != HG_OK || may_fail(functions[f], error));
      if (refusals > 0 && status == HG_OK && !may_fail(functions[f], error)) printf("  %s\n", demand);
      if (status != HG_OK) CHECK(hg_last_error()[0] != '\0');
      if (status == HG_FAULT) printf("  %s: a fault\n", demand);
      let_go(&s);
      set("FAKECUDA_FAIL", NULL);
      if (gpu.live() != 0 || gpu.violation()[0] != '\0') printf("  after %s\n", demand);
      CHECK_CLEAN();
      if (refusals == 0) break; /* that was beyond its last call */
    }
  }
  set("FAKECUDA_POOLS", NULL);
  scene s = {.program = program, .side_program = side};
  CHECK_EQ_U64(play(&s), HG_OK); /* nothing of it remains */
  let_go(&s);
  CHECK_CLEAN();
}

static void test_failures(void) {
  atlas_program *program = NULL, *side = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, scene_text, sizeof scene_text - 1, NULL, &program), HG_OK);
  CHECK_EQ_U64(atlas_parse(NULL, side_text, sizeof side_text - 1, NULL, &side), HG_OK);
  if (in_shard()) fail_everywhere(program, side, 1, NULL);
  if (in_shard()) fail_everywhere(program, side, 2, NULL);
  if (in_shard()) fail_everywhere(program, side, 719, NULL);
  if (in_shard()) fail_everywhere(program, side, 2, "0");
  atlas_program_release(program);
  atlas_program_release(side);
}

int main(int word_count, char **words) {
  if (!choose_shard(word_count, words)) return 1;
  if (!begin_on_fake_gpu()) return check_report();
  test_failures();
  return check_report();
}
