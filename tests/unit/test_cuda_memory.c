/* test_cuda_memory.c - the CUDA backend's memory on a double of libcuda: copies, fills and maps against a model, and
 * memory that runs out. */
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

int main(void) {
  if (!begin_on_fake_gpu()) return check_report();
  test_copies("1");
  test_copies("0");
  test_maps();
  test_out_of_memory("1");
  test_out_of_memory("0");
  return check_report();
}
