/* test_cuda_memory.c - the CUDA backend's memory on a double of libcuda: copies, fills and maps against a model, what
 * the driver is asked for by loops whose results are in the order of a stream, and memory that runs out. */
#define _GNU_SOURCE
#include "fake_gpu.h"

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

/* ---- loops ------------------------------------------------------------------------------------------------------- */

enum { RESULT_BYTES = 1 << 20 };

static hg_buffer *result_on(hg_executor *executor, hg_stream *stream, uint64_t byte_count) {
  hg_buffer *buffer = NULL;
  uint32_t value = 1;
  hg_buffer_desc desc = {.size = sizeof desc, .flags = HG_BUFFER_UNINIT, .stream = stream};
  CHECK_EQ_U64(hg_buffer_create(executor, &desc, byte_count, &buffer), HG_OK);
  if (stream != NULL) CHECK_EQ_U64(hg_buffer_fill_async(buffer, 0, byte_count, &value, 4, stream), HG_OK);
  return buffer;
}

typedef struct asked {
  uint64_t mapped;
  unsigned allocations, frees, records, waits;
} asked;

static asked asked_until_now(void) {
  return (asked){gpu.mapped(), gpu.calls("cuMemAllocFromPoolAsync"), gpu.calls("cuMemFreeAsync"),
                 gpu.calls("cuEventRecord"), gpu.calls("cuStreamWaitEvent")};
}

/* Results that are dropped at once, replaced by the next, or the last `held` of which are kept: as many are mapped as
 * are there at once, and a call of the loop costs no more of the driver than to allocate and to free. */
static void test_loop(uint32_t held, uint64_t blocks) {
  enum { CALLS = 50 };
  hg_executor *executor = NULL;
  hg_stream *stream = NULL;
  hg_buffer *results[4] = {NULL};
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  hg_buffer_release(result_on(executor, stream, 64)); /* the first work makes events */
  const asked before = asked_until_now();
  for (uint32_t i = 0; i < CALLS; i++) { /* nobody waits */
    hg_buffer *result = result_on(executor, stream, RESULT_BYTES), **place = &results[held > 0 ? i % held : 0];
    hg_buffer_release(held > 0 ? *place : result);
    if (held > 0) *place = result;
  }
  const asked after = asked_until_now();
  CHECK((after.mapped - before.mapped + RESULT_BYTES / 2) / RESULT_BYTES == blocks);
  CHECK_EQ_U64(after.allocations - before.allocations, CALLS);
  CHECK_EQ_U64(after.frees - before.frees, CALLS - held);
  CHECK_EQ_U64(after.records - before.records, 0);
  CHECK_EQ_U64(after.waits - before.waits, 0);
  for (uint32_t i = 0; i < 4; i++) hg_buffer_release(results[i]);
  hg_stream_release(stream);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* Blocks of other sizes are split and joined. */
static void test_sizes(void) {
  hg_executor *executor = NULL;
  hg_stream *stream = NULL;
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  hg_buffer_release(result_on(executor, stream, 3 * RESULT_BYTES));
  uint64_t before = gpu.mapped();
  for (uint64_t i = 0; i < 30; i++) {
    hg_buffer *one = result_on(executor, stream, (i % 2 + 1) * RESULT_BYTES);
    hg_buffer *other = result_on(executor, stream, (2 - i % 2) * RESULT_BYTES);
    hg_buffer_release(i % 3 == 0 ? one : other);
    hg_buffer_release(i % 3 == 0 ? other : one);
  }
  CHECK_EQ_U64(gpu.mapped(), before);
  hg_stream_release(stream);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* Another stream waits for the home once, for all that it took until then; not where an event has said so before. */
static void test_following(void) {
  hg_executor *executor = NULL;
  hg_stream *home = NULL, *other = NULL;
  hg_event *event = NULL;
  hg_buffer *buffers[6];
  uint32_t value = 1;
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &home), HG_OK);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &other), HG_OK);
  CHECK_EQ_U64(hg_event_create(executor, NULL, &event), HG_OK);
  hg_buffer_release(result_on(executor, other, 64));
  for (int i = 0; i < 3; i++) buffers[i] = result_on(executor, home, 1024);
  asked before = asked_until_now();
  for (int i = 0; i < 9; i++)
    CHECK_EQ_U64(hg_buffer_fill_async(buffers[i % 3], 0, 1024, &value, 4, other), HG_OK);
  CHECK_EQ_U64(asked_until_now().waits - before.waits, 1);
  for (int i = 3; i < 6; i++) buffers[i] = result_on(executor, home, 1024);
  CHECK_EQ_U64(hg_event_record(event, home), HG_OK);
  CHECK_EQ_U64(hg_stream_wait_event(other, event), HG_OK);
  before = asked_until_now();
  for (int i = 3; i < 6; i++) CHECK_EQ_U64(hg_buffer_fill_async(buffers[i], 0, 1024, &value, 4, other), HG_OK);
  CHECK_EQ_U64(asked_until_now().waits, before.waits);
  for (int i = 0; i < 6; i++) hg_buffer_release(buffers[i]);
  hg_event_release(event);
  hg_stream_release(home);
  hg_stream_release(other);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

/* What is in use does not count against what is kept: a wait unmaps nothing that the next result needs. */
static void test_kept_beside_use(void) {
  hg_executor *executor = NULL;
  hg_stream *stream = NULL;
  set("FAKECUDA_MEMORY", "67108864"); /* of which an eighth is kept */
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  hg_buffer *held = result_on(executor, NULL, 32 << 20);
  hg_buffer_release(result_on(executor, stream, 4 * RESULT_BYTES));
  uint64_t before = gpu.mapped();
  for (int i = 0; i < 10; i++) {
    hg_buffer_release(result_on(executor, stream, 4 * RESULT_BYTES));
    CHECK_EQ_U64(hg_stream_wait(stream, NULL), HG_OK);
  }
  CHECK_EQ_U64(gpu.mapped(), before);
  hg_buffer *last = result_on(executor, NULL, 64);
  uint32_t word = 0;
  hg_buffer_release(held);
  CHECK_EQ_U64(hg_buffer_read(last, 0, &word, 4), HG_OK); /* it was freed in the order of calls without a stream */
  hg_buffer_release(last);
  hg_memory_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_memory_query(executor, &info), HG_OK);
  CHECK_EQ_U64(info.in_use, 0);
  CHECK(info.kept >= 4 * RESULT_BYTES && info.kept <= 8 << 20);
  CHECK_EQ_U64(info.kept_most, 8 << 20);
  CHECK_EQ_U64(info.device_bytes, 64 << 20);
  hg_stream_release(stream);
  hg_executor_release(executor);
  set("FAKECUDA_MEMORY", NULL);
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

/* Freed behind work of two streams that nobody has waited for: too much is kept for other streams, until it is tried
 * again behind that work. */
static void test_recovery(const char *pools) {
  hg_executor *executor = NULL;
  hg_stream *streams[2] = {NULL};
  hg_buffer *buffer = NULL;
  set("FAKECUDA_POOLS", pools);
  set("FAKECUDA_MEMORY", "16777216");
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ_U64(hg_stream_create(executor, NULL, &streams[i]), HG_OK);
  for (int i = 0; i < 6; i++) {
    hg_buffer_release(result_on(executor, streams[i % 2], 7 << 20));
    hg_buffer_release(result_on(executor, streams[i % 2], 6 << 20));
    buffer = result_on(executor, i < 3 ? streams[0] : NULL, 12 << 20);
    hg_buffer_release(buffer);
  }
  hg_buffer_desc desc = {.size = sizeof desc, .stream = streams[0]};
  CHECK_EQ_U64(hg_buffer_create(executor, &desc, 32 << 20, &buffer), HG_OUT_OF_MEMORY);
  CHECK(buffer == NULL);
  CHECK(strncmp(hg_last_error(), "a buffer of 33554432 bytes does not fit into the GPU's memory: ", 63) == 0);
  for (int i = 0; i < 2; i++) hg_stream_release(streams[i]);
  hg_executor_release(executor);
  set("FAKECUDA_MEMORY", NULL);
  set("FAKECUDA_POOLS", NULL);
  CHECK_CLEAN();
}

/* The driver refuses once, or always. */
static void test_refusals(void) {
  hg_executor *executor = NULL;
  hg_stream *stream = NULL;
  hg_buffer *buffer = NULL;
  CHECK_EQ_U64(open_gpu(&executor), HG_OK);
  CHECK_EQ_U64(hg_stream_create(executor, NULL, &stream), HG_OK);
  hg_buffer_desc desc = {.size = sizeof desc, .stream = stream};
  set("FAKECUDA_FAIL", "cuMemAllocFromPoolAsync:1=2");
  hg_buffer_release(result_on(executor, stream, RESULT_BYTES));
  set("FAKECUDA_FAIL", "cuMemAllocFromPoolAsync:0=2");
  CHECK_EQ_U64(hg_buffer_create(executor, &desc, RESULT_BYTES, &buffer), HG_OUT_OF_MEMORY);
  set("FAKECUDA_FAIL", "cuMemsetD8Async:1=2"); /* of what has been taken already */
  CHECK_EQ_U64(hg_buffer_create(executor, &desc, RESULT_BYTES, &buffer), HG_OUT_OF_MEMORY);
  set("FAKECUDA_FAIL", NULL);
  CHECK(gpu.refusals() > 0);
  hg_buffer_release(result_on(executor, stream, RESULT_BYTES));
  hg_memory_info info = {.size = sizeof info};
  CHECK_EQ_U64(hg_memory_query(executor, &info), HG_OK);
  CHECK_EQ_U64(info.in_use, 0);
  hg_stream_release(stream);
  hg_executor_release(executor);
  CHECK_CLEAN();
}

int main(void) {
  if (!begin_on_fake_gpu()) return check_report();
  test_loop(0, 1);
  test_loop(1, 2);
  test_loop(4, 5);
  test_sizes();
  test_following();
  test_kept_beside_use();
  test_recovery("1");
  test_recovery("0");
  test_refusals();
  test_copies("1");
  test_copies("0");
  test_maps();
  test_out_of_memory("1");
  test_out_of_memory("0");
  return check_report();
}
