/* test_metal_failures.c - whatever Metal may fail at fails once, at each of its calls: a sentence, nothing is left, and
 * the next executor works. On simulated Metal. */
#define _GNU_SOURCE
#include "cache_folder.h"
#include "fake_metal.h"

#include <stdlib.h>

enum { LANES = 256, BYTES = LANES * 4 };

static const char sums[] =
    ".program sums\n.block 64\n.buffer x f32 in\n.buffer y f32 out\n.table t 2 in\n"
    "    ldg.f32 r0, [x + lane]\n    movi.u32 r1, #0\n    movi.u32 r2, #4\n    ldg.f32 r3, [r1 : r2]\n"
    "    add.f32 r0, r0, r3\n    reduce.add.f32 r1, r0\n    stg.f32 [y + lane], r1\n    exit\n";

static _Alignas(16384) float page[16384 / sizeof(float)];

/* ---- everything once --------------------------------------------------------------------------------------------- */

typedef struct scene {
  run r;
  hg_pool *pool;
  hg_graph *graph;
  hg_event *from, *to;
  float *host;
} scene;

static void close_scene(scene *s) {
  hg_event_release(s->from);
  hg_event_release(s->to);
  hg_graph_release(s->graph);
  if (s->host != NULL) hg_host_release(s->r.executor, s->host);
  hg_pool_release(s->pool);
  close_run(&s->r);
  *s = (scene){.pool = NULL};
}

/* Of two buffers of the executor, a view of a pool, and memory of the program's own. */
static hg_status open_scene(scene *s) {
  const float one = 1;
  void *memory = NULL;
  uint64_t offset = 0;
  HG_TRY(open_run(&s->r, HG_BACKEND_METAL, sums));
  for (int i = 0; i < 2; i++) HG_TRY(hg_buffer_create(s->r.executor, NULL, BYTES, &s->r.buffers[i]));
  HG_TRY(hg_pool_create(s->r.executor, 8192, &s->pool));
  HG_TRY(hg_pool_allocate(s->pool, BYTES, 64, &offset));
  HG_TRY(hg_pool_buffer(s->pool, offset, BYTES, &s->r.buffers[2]));
  HG_TRY(hg_buffer_import(s->r.executor, page, sizeof page, &s->r.buffers[3]));
  HG_TRY(hg_buffer_fill(s->r.buffers[0], 0, BYTES, &one, sizeof one));
  HG_TRY(hg_buffer_map(s->r.buffers[2], &memory));
  for (int i = 0; i < LANES; i++) ((float *)memory)[i] = 2;
  HG_TRY(hg_buffer_unmap(s->r.buffers[2]));
  HG_TRY(hg_stream_create(s->r.executor, NULL, &s->r.stream));
  HG_TRY(hg_host_allocate(s->r.executor, BYTES, &memory));
  s->host = memory;
  const hg_event_desc timed = {.size = sizeof timed, .flags = HG_EVENT_TIMED};
  HG_TRY(hg_event_create(s->r.executor, &timed, &s->from));
  return hg_event_create(s->r.executor, &timed, &s->to);
}

static hg_status launch(const scene *s, uint32_t block, hg_stream *stream) {
  hg_buffer *const *b = s->r.buffers;
  const hg_binding bindings[] = {{.name = "x", .buffer = b[0]}, {.name = "y", .buffer = b[3]},
                                 {.name = "t", .buffer = b[2]}, {.name = "t", .entry = 1, .buffer = b[1]}};
  hg_launch_desc desc = {.size = sizeof desc, .grid = {LANES / block, 1, 1}, .block = {block, 1, 1},
                         .bindings = bindings, .binding_count = 4, .stream = stream};
  return hg_launch(s->r.kernel, &desc, NULL);
}

static hg_status use_streams(scene *s) {
  double nanoseconds = 0;
  hg_stream *stream = s->r.stream;
  HG_TRY(hg_event_record(s->from, stream));
  HG_TRY(launch(s, 64, stream));
  HG_TRY(hg_buffer_copy_async(s->r.buffers[1], 0, s->r.buffers[3], 0, BYTES, stream));
  HG_TRY(hg_capture_begin(stream));
  hg_status status = launch(s, 64, stream);
  if (status == HG_OK) status = launch(s, 64, stream);
  if (status == HG_OK) status = hg_buffer_read_async(s->r.buffers[3], 0, s->host, BYTES, stream);
  hg_status ended = hg_capture_end(stream, &s->graph);
  HG_TRY(status != HG_OK ? status : ended);
  HG_TRY(hg_stream_wait(stream, NULL)); /* so that how many buffers the graph's launch finds is no matter of time */
  HG_TRY(hg_graph_launch(s->graph, stream));
  HG_TRY(hg_event_record(s->to, stream));
  HG_TRY(hg_stream_wait(stream, NULL));
  HG_TRY(hg_event_elapsed(s->from, s->to, &nanoseconds));
  return HG_OK;
}

static hg_status use_everything(scene *s) {
  float read[LANES] = {0};
  memset(page, 0, sizeof page);
  HG_TRY(open_scene(s));
  HG_TRY(launch(s, 64, NULL));
  HG_TRY(use_streams(s));
  HG_TRY(hg_buffer_read(s->r.buffers[1], 0, read, sizeof read));
  CHECK(read[0] == 64 * 3 && read[255] == 64 * 3 && s->host[128] == 64 * 3 && page[200] == 64 * 3);
  return HG_OK;
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

static void check_next_executor(void) {
  scene s = {.pool = NULL};
  CHECK_EQ_U64(use_everything(&s), HG_OK);
  close_scene(&s);
  check_clean();
}

/* The GPU fails: nothing of the executor works any more, and says why. */
static void check_lost(const scene *s) {
  float word = 0;
  char sentence[300];
  snprintf(sentence, sizeof sentence, "%s", hg_last_error());
  CHECK(strstr(sentence, "the executor is lost") != NULL);
  CHECK_EQ_U64(hg_buffer_read(s->r.buffers[0], 0, &word, sizeof word), HG_DEVICE);
  CHECK_STR(hg_last_error(), sentence);
}

/* Gives how many calls there are; those of which a failure is told are at least `told`. */
static long check_each(const char *what, long told) {
  long n = 1, count = 0;
  for (int is_reached = 1; is_reached && n < 1000; n++) {
    scene s = {.pool = NULL};
    sim.fail(what, n);
    hg_status status = use_everything(&s);
    is_reached = sim.fail(what, 0) <= 0;
    CHECK(status == HG_OK || (is_reached && strlen(hg_last_error()) > 10));
    count += status != HG_OK;
    if (status != HG_OK && (strcmp(what, "removed") == 0 || strcmp(what, "timeout") == 0)) check_lost(&s);
    close_scene(&s);
    check_clean();
    check_next_executor();
  }
  if (!check_note(count >= told)) printf("%ld of %ld failures of '%s' are told\n", count, n - 2, what);
  return n - 2;
}

/* What the cache has is compiled anew where it cannot be loaded. */
static void test_failures(int is_kept) {
  const struct {
    const char *what;
    long calls, told; /* at least */
  } cases[] = {{"device", 1, 1},
               {"queue", 1, 1},
               {"buffer", 6, 6},
               {"library", 1, !is_kept},
               {"pipeline", 1, !is_kept},
               {"commands", 5, 5},
               {"threads", 1, 0},
               {"archive", is_kept, 0},
               {"object", 10, 5},
               {"removed", 5, 5},
               {"timeout", 5, 5}};
  long count = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    long calls = check_each(cases[i].what, cases[i].told);
    CHECK(calls >= cases[i].calls);
    if (strcmp(cases[i].what, "removed") != 0 && strcmp(cases[i].what, "timeout") != 0) count += calls;
  }
  CHECK_EQ_U64(check_each("anything", 20), count);
}

/* Work of a stream that fails is told of although what comes behind it is done. */
static void test_early_failure(void) {
  scene s = {.pool = NULL};
  CHECK_EQ_U64(open_scene(&s), HG_OK);
  CHECK_EQ_U64(launch(&s, 64, s.r.stream), HG_OK);
  CHECK_EQ_U64(hg_stream_wait(s.r.stream, NULL), HG_OK);
  sim.fail("timeout", 1);
  for (int i = 0; i < 3; i++) (void)launch(&s, 64, s.r.stream);
  CHECK_EQ_U64(hg_stream_wait(s.r.stream, NULL), HG_DEVICE);
  CHECK(sim.fail("timeout", 0) <= 0);
  check_lost(&s);
  close_scene(&s);
  check_clean();
}

/* Blocks for which the GPU has too few registers are refused, by name. */
static void test_few_threads(void) {
  scene s = {.pool = NULL};
  sim.fail("threads", 1);
  CHECK_EQ_U64(open_run(&s.r, HG_BACKEND_METAL, ".program wide\n.block 256\n.buffer x f32 inout\n"
                                                "    ldg.f32 r0, [x + lane]\n    reduce.add.f32 r0, r0\n"
                                                "    stg.f32 [x + lane], r0\n    exit\n"),
               HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(), "program 'wide' needs blocks of 256 lanes; this GPU has registers for 64 of them");
  close_scene(&s);
  check_clean();
}

int main(void) {
  char folder[FOLDER_BYTES];
  if (!begin_on_fake_metal()) return check_report();
  make_folder(folder, "metal-failures");
  check_next_executor(); /* the cache has it now */
  test_failures(1);
  set_variable("HOLOGRAM_CACHE", "0");
  test_failures(0);
  test_few_threads();
  test_early_failure();
  delete_folder(folder);
  return check_report();
}
