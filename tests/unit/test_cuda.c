/* test_cuda.c - the CUDA backend's driver side on a double of libcuda: refusals, memory, copies, maps, and every driver
 * call failing in turn. */
#define _GNU_SOURCE
#include "counted.h"
#include "fake_gpu.h"

#include "backend/cuda/driver.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- what it refuses --------------------------------------------------------------------------------------------- */

/* What starts without a GPU goes on to the CPU, and says why; where CUDA is asked for its status is as listed. */
static void test_refusals(void) {
  static const struct {
    hg_status status;
    const char *name, *value, *sentence;
  } cases[] = {
      {HG_UNSUPPORTED, "FAKECUDA_DEVICES", "0",
       "the CUDA driver did not start: the driver finds no GPU; CUDA_VISIBLE_DEVICES may hide it "
       "(CUDA_ERROR_NO_DEVICE, 100)"},
      {HG_UNSUPPORTED, "FAKECUDA_DRIVER", "10020",
       "the NVIDIA driver is too old: it is for CUDA 10.2; install one for CUDA 11.0 or later"},
      {HG_UNSUPPORTED, "FAKECUDA_CAPABILITY", "61",
       "the GPU (Fake GPU 0) is too old: it has compute capability 6.1, and 7.5 is needed"},
      {HG_UNSUPPORTED, "FAKECUDA_MODE", "2",
       "the GPU (Fake GPU 0) is set to compute mode 'prohibited'; nvidia-smi -c changes it"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuInit:0=803",
       "the CUDA driver did not start: libcuda and the kernel's driver have different versions; restart the machine "
       "after an update of the driver (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuDevicePrimaryCtxRetain:0=46",
       "the GPU cannot be used now: the GPU is in use by another process in exclusive mode, or its compute mode "
       "forbids use; nvidia-smi shows the mode and the processes (CUDA_ERROR_DEVICE_UNAVAILABLE, 46)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuDevicePrimaryCtxRetain:0=2",
       "the GPU cannot be used now: the GPU's memory is full; release buffers, or free memory that other programs hold "
       "(CUDA_ERROR_OUT_OF_MEMORY, 2)"},
      {HG_DEVICE, "FAKECUDA_FAIL", "cuInit:0=999",
       "the CUDA driver did not start: the driver failed and does not know why; nvidia-smi and the system's log may "
       "say more (CUDA_ERROR_UNKNOWN, 999)"},
      {HG_OUT_OF_MEMORY, "FAKECUDA_FAIL", "cuInit:0=2",
       "the CUDA driver did not start: the GPU's memory is full; release buffers, or free memory that other programs "
       "hold (CUDA_ERROR_OUT_OF_MEMORY, 2)"},
      {HG_DEVICE, "FAKECUDA_FAIL", "cuInit:0=1",
       "the CUDA driver did not start: the driver refused an argument (CUDA_ERROR_INVALID_VALUE, 1)"},
      {HG_DEVICE, "FAKECUDA_FAIL", "cuInit:0=12345",
       "the CUDA driver did not start: the CUDA driver failed (unknown error, 12345)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuInit:0=36",
       "the CUDA driver did not start: the driver is too old for this call; install a newer one "
       "(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuInit:0=805",
       "the CUDA driver did not start: MPS cannot be reached; is nvidia-cuda-mps-control running, with the same "
       "CUDA_MPS_PIPE_DIRECTORY? (CUDA_ERROR_MPS_CONNECTION_FAILED, 805)"},
      {HG_UNSUPPORTED, "FAKECUDA_FAIL", "cuDevicePrimaryCtxRetain:0=808",
       "the GPU cannot be used now: the GPU is busy: through MPS it takes no more programs; wait until one ends "
       "(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED, 808)"},
      {HG_DEVICE, "FAKECUDA_FAIL", "cuDeviceGetCount:0=999",
       "could not count the GPUs: the driver failed and does not know why; nvidia-smi and the system's log may say "
       "more (CUDA_ERROR_UNKNOWN, 999)"},
      {HG_OUT_OF_MEMORY, "FAKECUDA_FAIL", "cuStreamCreate:0=2",
       "could not make a stream on the GPU: the GPU's memory is full; release buffers, or free memory that other "
       "programs hold (CUDA_ERROR_OUT_OF_MEMORY, 2)"},
      {HG_OUT_OF_MEMORY, "FAKECUDA_FAIL", "cuMemPoolCreate:0=2",
       "could not make a pool of memory on the GPU: the GPU's memory is full; release buffers, or free memory that "
       "other programs hold (CUDA_ERROR_OUT_OF_MEMORY, 2)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char expected[512], story[600];
    const char *missing = cases[i].status == HG_UNSUPPORTED ? "the cuda backend is not available: " : "";
    hg_executor *executor = NULL;
    set(cases[i].name, cases[i].value);
    CHECK_EQ_U64(open_gpu(&executor), cases[i].status);
    snprintf(expected, sizeof expected, "%s%s", missing, cases[i].sentence);
    CHECK_STR(hg_last_error(), expected);
    set(cases[i].name, NULL); /* a demand is counted anew */
    set(cases[i].name, cases[i].value);
    hg_executor_info info = {0};
    CHECK_EQ_U64(hg_executor_create(NULL, &executor), HG_OK); /* goes on to the CPU, and says why */
    CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
    CHECK_EQ_U64(info.backend, HG_BACKEND_CPU);
    snprintf(story, sizeof story, "metal: not built in to this build; cuda: %s; cpu: chosen", cases[i].sentence);
    CHECK_STR(info.selection, story);
    hg_executor_release(executor);
    set(cases[i].name, NULL);
    CHECK_CLEAN();
  }
}

/* Errors that users meet have a name; after some a context is of no use. */
static void test_errors(void) {
  static const struct {
    int number, poisons;
  } known[] = {{36, 0},  {226, 1}, {704, 0}, {705, 0}, {805, 0}, {806, 0}, {807, 0},
               {808, 0}, {809, 0}, {810, 1}, {900, 0}, {901, 0}, {902, 0}, {903, 0},
               {904, 0}, {905, 0}, {906, 0}, {907, 0}, {908, 0}, {909, 0}, {911, 1}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    cuda_error error = hg_cuda_error_of(known[i].number);
    CHECK(strncmp(error.name, "CUDA_ERROR_", 11) == 0);
    CHECK_EQ_U64(error.poisons, known[i].poisons);
  }
  CHECK_STR(hg_cuda_error_of(12345).name, "unknown error");
}

static const char *const functions[] = {
#define SYMBOL(name, parameters) #name,
#define SYMBOL_OPTIONAL SYMBOL
#include "backend/cuda/symbols.def"
};

/* Whatever the driver refuses, an executor is made. */
static void test_every_refusal(void) {
  static const int errors[] = {1, 2, 36, 999};
  for (size_t i = 0; i < 4 * (sizeof functions / sizeof functions[0]); i++) {
    char demand[120];
    hg_executor *executor = NULL;
    const char *name = functions[i / 4];
    if (strcmp(name, "cuDevicePrimaryCtxRelease_v2") == 0 || strcmp(name, "cuCtxPopCurrent_v2") == 0) continue;
    snprintf(demand, sizeof demand, "%s:0=%d", name, errors[i % 4]);
    set("FAKECUDA_FAIL", demand);
    CHECK_EQ_U64(hg_executor_create(NULL, &executor), HG_OK);
    hg_executor_release(executor);
    set("FAKECUDA_FAIL", NULL);
    CHECK_CLEAN();
  }
}

/* The host's memory is nothing that another backend would have more of. */
static void test_host_memory(void) {
  counter count = {.fail_at = 1};
  hg_allocator allocator = counting(&count);
  hg_executor_desc desc = {.allocator = &allocator};
  hg_executor *executor = NULL;
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OUT_OF_MEMORY);
  CHECK(strstr(hg_last_error(), " bytes for the CUDA device") != NULL);
  CHECK(executor == NULL && count.live == 0);
  CHECK_CLEAN();
}

static void test_device(void) {
  hg_executor *executor = NULL;
  hg_executor_info info = {0};
  hg_backend_info row = {0};
  CHECK_EQ_U64(hg_backend_query(1, &row), HG_OK);
  CHECK_EQ_U64(row.available, 1);
  CHECK_STR(row.reason, "Fake GPU 0 (compute capability 9.0, driver for CUDA 13.0)");
  CHECK_EQ_U64(gpu.live(), 0); /* asking opens nothing */
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
  CHECK_STR(info.backend_name, "cuda");
  CHECK_STR(info.device_name, "Fake GPU 0 (compute capability 9.0, driver for CUDA 13.0)");
  CHECK_EQ_U64(info.memory_bytes, 1 << 30);
  CHECK_EQ_U64(info.compute_units, 4);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

static void note_message(void *user, hg_log_level level, const char *message) {
  (void)level;
  if (strncmp(message, "cuda: ", 6) == 0) snprintf(user, 600, "%s", message);
}

/* What the log says of an executor's settings. */
static void check_remarks(const char *expected) {
  char message[600] = "";
  hg_executor_desc desc = {.backend = HG_BACKEND_CUDA, .log = note_message, .log_user = message};
  hg_executor *executor = NULL;
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  CHECK_STR(message, expected);
  hg_executor_release(executor);
}

static void test_remarks(void) {
  check_remarks("cuda: kernel cache on disk: its folder cannot be made");
  set("HOLOGRAM_CACHE", "0");
  check_remarks("cuda: kernel cache on disk: HOLOGRAM_CACHE=0 turns it off");
  set("HOLOGRAM_CACHE", NULL);
  set("HOLOGRAM_LINES", "7");
  set("HOLOGRAM_TABLE_LANES", "z");
  set("HOLOGRAM_CACHE_SIZE", "abc");
  set("HOLOGRAM_CACHE_DIR", "/tmp");
  check_remarks("cuda: HOLOGRAM_LINES is neither 0 nor 1 and is ignored; "
                "HOLOGRAM_TABLE_LANES is no number from 1 and is ignored; "
                "HOLOGRAM_CACHE_SIZE is not a number of bytes and is ignored; kernel cache on disk: its folder belongs "
                "to another user or everybody may write to it, so that kernels in it are not safe to run");
  set("HOLOGRAM_LINES", NULL);
  set("HOLOGRAM_TABLE_LANES", NULL);
  set("HOLOGRAM_CACHE_SIZE", NULL);
  set("HOLOGRAM_CACHE_DIR", "here");
  check_remarks("");
  set("HOLOGRAM_CACHE_DIR", "/dev/null/none");
  CHECK_CLEAN();
}

/* ---- copies and fills, against a model of the memory ------------------------------------------------------------- */

enum { MODEL_BYTES = 40 << 20 }; /* several rounds through the ring of slots, and through the scratch of a move */

static uint64_t random_state = 88172645463325252u;
static uint64_t random_below(uint64_t end) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return end > 0 ? random_state % end : 0;
}

static uint64_t random_size(uint64_t end) {
  uint64_t bits = random_below(27);
  uint64_t size = random_below((UINT64_C(1) << bits) + 1);
  return size < end ? size : end;
}

static void one_change(hg_buffer *buffer, uint8_t *model, uint8_t *host) {
  uint64_t offset = random_below(MODEL_BYTES), size = random_size(MODEL_BYTES - offset), pattern = random_state;
  switch (random_below(4)) {
  case 0:
    memcpy(host, model + random_below(MODEL_BYTES - size + 1), size);
    for (uint64_t i = 0; i < size; i += 4099) host[i] = (uint8_t)random_state;
    CHECK_EQ_U64(hg_buffer_write(buffer, offset, host, size), HG_OK);
    memcpy(model + offset, host, size);
    memset(host, 0, size); /* the caller's memory is its own again */
    break;
  case 1: {
    uint64_t from = random_below(3) == 0 ? random_below(MODEL_BYTES - size + 1)
                                         : offset + random_below(100) - (offset > 50 ? 50 : 0);
    if (from + size > MODEL_BYTES) from = MODEL_BYTES - size;
    CHECK_EQ_U64(hg_buffer_copy(buffer, offset, buffer, from, size), HG_OK);
    memmove(model + offset, model + from, size);
    break;
  }
  case 2: {
    size_t width = (size_t)1 << random_below(4);
    if (random_below(2) == 0) pattern = 0x0101010101010101u * (pattern & 0xff); /* a byte in disguise */
    size -= size % width;
    CHECK_EQ_U64(hg_buffer_fill(buffer, offset, size, &pattern, width), HG_OK);
    for (uint64_t i = 0; i < size; i++) model[offset + i] = ((uint8_t *)&pattern)[i % width];
    break;
  }
  default:
    CHECK_EQ_U64(hg_buffer_read(buffer, offset, host, size), HG_OK);
    CHECK(memcmp(host, model + offset, size) == 0);
    break;
  }
}

static void test_copies(const char *pools) {
  hg_executor *executor = NULL;
  hg_buffer *buffer = NULL;
  uint8_t *model = calloc(MODEL_BYTES, 1), *host = malloc(MODEL_BYTES);
  set("FAKECUDA_POOLS", pools);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  hg_buffer_desc desc = {.alignment = 4096};
  CHECK_EQ_U64(hg_buffer_create(executor, &desc, MODEL_BYTES, &buffer), HG_OK);
  for (int i = 0; i < 300; i++) one_change(buffer, model, host);
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, host, MODEL_BYTES), HG_OK);
  CHECK(memcmp(host, model, MODEL_BYTES) == 0);
  hg_buffer_release(buffer);
  hg_executor_release(executor);
  CHECK_CLEAN();
  set("FAKECUDA_POOLS", NULL);
  free(model);
  free(host);
}

/* ---- maps -------------------------------------------------------------------------------------------------------- */

/* Views of one memory, mapped, written and copied in all ways: they show one and the same memory, as on the CPU. */
static void run_maps(hg_executor *executor, uint8_t result[256]) {
  hg_buffer *whole = NULL, *low = NULL, *high = NULL;
  void *memory = NULL, *low_memory = NULL, *high_memory = NULL;
  uint8_t bytes[256], zero = 0;
  for (int i = 0; i < 256; i++) bytes[i] = (uint8_t)i;
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 256, &whole), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(whole, 0, bytes, 256), HG_OK);
  CHECK_EQ_U64(hg_buffer_view(whole, 0, 160, &low), HG_OK);
  CHECK_EQ_U64(hg_buffer_view(whole, 96, 160, &high), HG_OK);
  CHECK_EQ_U64(hg_buffer_map(low, &low_memory), HG_OK);
  ((uint8_t *)low_memory)[100] = 201;
  CHECK_EQ_U64(hg_buffer_map(high, &high_memory), HG_OK);
  CHECK((uint8_t *)high_memory == (uint8_t *)low_memory + 96);
  CHECK_EQ_U64(((uint8_t *)high_memory)[4], 201);
  ((uint8_t *)high_memory)[5] = 202;
  CHECK_EQ_U64(hg_buffer_map(low, &memory), HG_OK); /* maps nest */
  CHECK(memory == low_memory);
  CHECK_EQ_U64(((uint8_t *)low_memory)[101], 202);
  CHECK_EQ_U64(hg_buffer_fill(whole, 102, 1, &zero, 1), HG_OK);
  CHECK_EQ_U64(((uint8_t *)high_memory)[6], 0);
  CHECK_EQ_U64(hg_buffer_copy(whole, 8, whole, 100, 3), HG_OK);
  CHECK_EQ_U64(((uint8_t *)low_memory)[8], 201);
  CHECK_EQ_U64(hg_buffer_unmap(low), HG_OK);
  CHECK_EQ_U64(hg_buffer_unmap(low), HG_OK);
  CHECK_EQ_U64(hg_buffer_unmap(low), HG_INVALID_ARGUMENT);
  ((uint8_t *)high_memory)[159] = 203;
  hg_buffer_release(high); /* ends its map */
  hg_buffer_release(low);
  CHECK_EQ_U64(hg_buffer_read(whole, 0, result, 256), HG_OK);
  hg_buffer_release(whole);
}

static void test_maps(void) {
  hg_executor *executor = NULL, *cpu = NULL;
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  uint8_t result[256], expected[256];
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_executor_create(&desc, &cpu), HG_OK);
  run_maps(executor, result);
  run_maps(cpu, expected);
  CHECK(memcmp(result, expected, sizeof result) == 0);
  hg_executor_release(cpu);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* ---- memory that runs out ---------------------------------------------------------------------------------------- */

static void test_out_of_memory(const char *pools) {
  hg_executor *executor = NULL;
  hg_buffer *kept = NULL, *more = NULL, *again = NULL;
  uint32_t value = 0x12345678, back = 0;
  set("FAKECUDA_POOLS", pools);
  set("FAKECUDA_MEMORY", "16777216");
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 8 << 20, &kept), HG_OK);
  CHECK_EQ_U64(hg_buffer_fill(kept, 0, 8 << 20, &value, 4), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 32 << 20, &more), HG_OUT_OF_MEMORY);
  CHECK(strncmp(hg_last_error(), "a buffer of 33554432 bytes does not fit into the GPU's memory: ", 63) == 0);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, UINT64_MAX, &more), HG_OUT_OF_MEMORY);
  CHECK(more == NULL);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 4 << 20, &more), HG_OK);
  hg_buffer_release(more); /* kept for later, and given up for a larger one */
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 6 << 20, &again), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(kept, (8 << 20) - 4, &back, 4), HG_OK);
  CHECK_EQ_U64(back, value);
  hg_buffer_release(again);
  hg_buffer_release(kept);
  hg_executor_release(executor);
  set("FAKECUDA_MEMORY", NULL);
  set("FAKECUDA_POOLS", NULL);
  CHECK_CLEAN();
}

/* ---- every driver call fails in turn ----------------------------------------------------------------------------- */

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
  fail_everywhere(program, side, 1, NULL);
  fail_everywhere(program, side, 2, NULL);
  fail_everywhere(program, side, 719, NULL);
  fail_everywhere(program, side, 2, "0");
  atlas_program_release(program);
  atlas_program_release(side);
}

/* ---- streams of others ------------------------------------------------------------------------------------------- */

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

static void test_compiler_message(void) {
  hg_executor *executor = NULL;
  hg_kernel *kernel = NULL;
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_parse(NULL, scene_text, sizeof scene_text - 1, NULL, &program), HG_OK);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  set("FAKECUDA_FAIL", "cuLinkAddData_v2:1=218");
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_DEVICE);
  CHECK_STR(hg_last_error(), "the driver did not compile program 'scene' (its log: line 7: a fault on demand): the "
                             "driver's compiler refused the kernel (CUDA_ERROR_INVALID_PTX, 218)");
  CHECK(kernel == NULL);
  set("FAKECUDA_FAIL", NULL);
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
  hg_kernel_release(kernel);
  atlas_program_release(program);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* What a file has in it; the caller frees it. */
static char *contents_of(const char *path) {
  char *text = calloc(1, 1 << 16);
  FILE *file = fopen(path, "r");
  if (file != NULL) {
    CHECK(fread(text, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
  }
  return text;
}

/* The text that the driver gets names the kernel after program and hash, and its lines if they are wanted. */
static void test_kernel_text(const char *lines) {
  char path[] = "/tmp/test_cuda_XXXXXX", name[40];
  uint8_t hash[ATLAS_HASH_BYTES];
  atlas_program *program = NULL;
  hg_executor *executor = NULL;
  hg_kernel *kernel = NULL;
  int file = mkstemp(path);
  CHECK(file >= 0 && close(file) == 0);
  CHECK_EQ_U64(atlas_parse(NULL, scene_text, sizeof scene_text - 1, NULL, &program), HG_OK);
  CHECK_EQ_U64(atlas_program_hash(program, hash), HG_OK);
  set("HOLOGRAM_LINES", lines);
  set("FAKECUDA_DUMP", path);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_OK);
  set("FAKECUDA_DUMP", NULL);
  set("HOLOGRAM_LINES", NULL);
  char *text = contents_of(path);
  snprintf(name, sizeof name, ".entry hg_scene_%02x%02x%02x%02x(", hash[0], hash[1], hash[2], hash[3]);
  CHECK(strstr(text, name) != NULL);
  CHECK((strstr(text, "\n.file 1 \"scene.atlas\"\n") != NULL) == (lines != NULL));
  CHECK((strstr(text, "\t.loc 1 11 0\n") != NULL) == (lines != NULL)); /* res.accum */
  free(text);
  unlink(path);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
  atlas_program_release(program);
  CHECK_CLEAN();
}

/* ---- the two ends of a device ------------------------------------------------------------------------------------ */

static void test_lost_context(void) {
  hg_executor *executor = NULL, *cpu = NULL, *fresh = NULL;
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  hg_buffer *buffer = NULL, *other = NULL;
  uint32_t value = 7;
  CHECK_EQ_U64(hg_executor_create(&desc, &cpu), HG_OK);
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 64, &buffer), HG_OK);
  set("FAKECUDA_FAIL", "cuEventSynchronize:1=719");
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, &value, 4), HG_DEVICE);
  CHECK_STR(hg_last_error(), "a transfer, or a kernel before it, failed: a kernel failed while it ran "
                             "(CUDA_ERROR_LAUNCH_FAILED, 719)");
  set("FAKECUDA_FAIL", NULL);
  CHECK_EQ_U64(hg_buffer_write(buffer, 0, &value, 4), HG_DEVICE);
  CHECK_STR(hg_last_error(),
            "the GPU failed earlier, and this executor's memory on it is lost (a transfer, or a kernel before it, "
            "failed: a kernel failed while it ran (CUDA_ERROR_LAUNCH_FAILED, 719)); release all executors of this GPU, "
            "then make a new one, or a new process where another library has used the GPU");
  CHECK_EQ_U64(hg_buffer_create(cpu, NULL, 64, &other), HG_OK); /* the others live on */
  CHECK_EQ_U64(hg_buffer_write(other, 0, &value, 4), HG_OK);
  hg_buffer_release(other);
  hg_executor_release(cpu);
  hg_buffer_release(buffer);
  hg_executor_release(executor);
  CHECK_CLEAN();
  CHECK_EQ_U64(open_gpu(&fresh), HG_OK); /* and a new one works */
  CHECK_EQ_U64(hg_buffer_create(fresh, NULL, 64, &buffer), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(buffer, 0, &value, 4), HG_OK);
  hg_buffer_release(buffer);
  hg_executor_release(fresh);
  CHECK_CLEAN();
}

#define FORKED                                                                                                \
  "the CUDA driver did not start: this process was forked off one that had started the driver, if only by " \
  "hg_backend_query; fork before that, or exec (CUDA_ERROR_NOT_INITIALIZED, 3)"

static int succeeds_in_child(int (*run)(void)) {
  int status = -1;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) _exit(run());
  return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static int use_gpu(void) {
  hg_executor *executor = NULL;
  int wrong = open_gpu(&executor) != HG_OK;
  hg_executor_release(executor);
  return wrong;
}

/* CUDA is refused, and nothing but the CPU is left. */
static int find_no_gpu(void) {
  hg_executor *executor = NULL;
  hg_executor_info info = {0};
  hg_backend_info row = {0};
  int wrong = open_gpu(&executor) != HG_UNSUPPORTED;
  wrong += strcmp(hg_last_error(), "the cuda backend is not available: " FORKED) != 0;
  wrong += hg_backend_query(1, &row) != HG_OK || row.available || strcmp(row.reason, FORKED) != 0;
  wrong += hg_executor_create(NULL, &executor) != HG_OK || hg_executor_query(executor, &info) != HG_OK;
  wrong += info.backend != HG_BACKEND_CPU || strstr(info.selection, "; cuda: " FORKED "; cpu: chosen") == NULL;
  hg_executor_release(executor);
  return wrong;
}

/* The first test: the driver has not been started yet. */
static void test_fork_and_query(void) {
  hg_backend_info row = {0};
  CHECK(succeeds_in_child(use_gpu));
  CHECK(hg_backend_query(1, &row) == HG_OK && row.available);
  CHECK(succeeds_in_child(find_no_gpu));
  CHECK(use_gpu() == 0);
  CHECK_CLEAN();
}

/* In the child: everything is refused, nothing is touched, releasing works. */
static int child(hg_executor *executor, hg_buffer *buffer) {
  uint32_t value = 0;
  hg_executor *fresh = NULL;
  int wrong = hg_buffer_read(buffer, 0, &value, 4) != HG_UNSUPPORTED;
  wrong += strncmp(hg_last_error(), "this CUDA executor was made before the process forked", 53) != 0;
  wrong += open_gpu(&fresh) != HG_UNSUPPORTED;
  wrong += strcmp(hg_last_error(), "the cuda backend is not available: " FORKED) != 0;
  hg_buffer_release(buffer);
  hg_executor_release(executor);
  return wrong + (gpu.violation()[0] != '\0');
}

static void test_fork(void) {
  hg_executor *executor = NULL;
  hg_buffer *buffer = NULL;
  uint32_t value = 5, back = 0;
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 64, &buffer), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(buffer, 0, &value, 4), HG_OK);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) _exit(child(executor, buffer));
  int status = -1;
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  CHECK_EQ_U64(status, 0);
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, &back, 4), HG_OK);
  CHECK_EQ_U64(back, value);
  hg_buffer_release(buffer);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  set("HOLOGRAM_CACHE_DIR", "/dev/null/none"); /* compiled anew each time */
  if (!find_fake_gpu()) {
    printf("the double of libcuda was not found (LD_LIBRARY_PATH)\n");
    CHECK(0);
    return check_report();
  }
  test_fork_and_query();
  test_refusals();
  test_errors();
  test_every_refusal();
  test_host_memory();
  test_device();
  test_remarks();
  test_copies("1");
  test_copies("0");
  test_maps();
  test_out_of_memory("1");
  test_out_of_memory("0");
  test_compiler_message();
  test_kernel_text(NULL);
  test_kernel_text("1");
  test_lost_context();
  test_foreign_stream();
  test_captured_stream(NULL);
  test_captured_stream("0");
  test_captured_full_stream();
  test_failing_wait();
  test_fork();
  test_failures();
  return check_report();
}
