/* test_runtime.c - executors, buffers, views, mapping, pools and the state kept for class programs. */
#include "check.h"
#include "test_backend.h"

#include "hologram/classes.h"


static hg_executor *open_executor(void) {
  hg_executor *executor = NULL;
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  return executor;
}

/* ---- executors --------------------------------------------------------------------------------------------------- */

static int messages;
static void count_message(void *user, hg_log_level level, const char *message) {
  (void)level;
  if (user == &messages && message[0] != '\0') messages++;
}

static void test_executor(void) {
  hg_executor *executor = NULL;
  hg_executor_desc logged = {
      .size = sizeof logged, .backend = test_backend(), .log = count_message, .log_user = &messages};
  CHECK_EQ_U64(hg_executor_create(&logged, &executor), HG_OK);
  CHECK(messages > 0);
  hg_executor_info info = {0};
  CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
  CHECK_EQ_U64(info.backend, test_backend());
  CHECK_STR(info.backend_name, test_backend_name());
  CHECK(strlen(info.engine) > 0);
  CHECK(strlen(info.device_name) > 0);
  char selection[32];
  snprintf(selection, sizeof selection, "%s: asked for", test_backend_name());
  CHECK_STR(info.selection, selection);
  CHECK_EQ_U64(info.max_block_lanes, 1024);
  CHECK_EQ_U64(info.max_shared_bytes, test_backend() == HG_BACKEND_METAL ? 32768 : ATLAS_MAX_SHARED_BYTES);
  CHECK_EQ_U64(info.isa_version, ATLAS_ISA_VERSION);
  CHECK(info.compute_units >= 1 || test_backend() == HG_BACKEND_METAL); /* which does not say */

  CHECK(hg_executor_retain(executor) == executor);
  hg_executor_release(executor);
  CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
  hg_executor_release(executor);
  hg_executor_release(NULL);
  CHECK(hg_executor_retain(NULL) == NULL);
  CHECK_STR(hg_version(), "0.1.0");
  CHECK_EQ_U64(hg_version_number(), 1000);
}

static void test_backends(void) {
  hg_executor *executor = NULL;
  hg_executor_desc desc = {.backend = HG_BACKEND_METAL};
#ifndef __APPLE__
  if (test_backend() != HG_BACKEND_METAL) { /* there is no simulated one */
    CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_UNSUPPORTED);
    CHECK_STR(hg_last_error(), "the metal backend is not available: Metal is Apple's: this system has no Objective-C "
                               "runtime with Metal");
    CHECK(executor == NULL);
  }
#endif
  desc.backend = (hg_backend_id)77;
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "there is no backend with the number 77");
  desc = (hg_executor_desc){.size = 3};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_executor_create(NULL, NULL), HG_INVALID_ARGUMENT);
  hg_allocator half = {.allocate = NULL};
  desc = (hg_executor_desc){.allocator = &half};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_INVALID_ARGUMENT);

  static const char *const names[] = {"metal", "cuda", "cpu"};
  size_t count = 0;
  hg_backend_info info = {0};
  for (; hg_backend_query(count, &info) == HG_OK; count++) {
    if (count < 3) CHECK_STR(info.name, names[count]);
    if (count == 2) CHECK(info.available); /* a GPU may be there or not */
    CHECK(info.reason[0] != '\0');
  }
  CHECK_EQ_U64(count, 3);
  CHECK_EQ_U64(hg_backend_query(count, &info), HG_NOT_FOUND);
  CHECK_EQ_U64(hg_backend_query(0, NULL), HG_INVALID_ARGUMENT);
}

static void test_class_state(void) {
  hg_executor *executor = open_executor();
  int64_t counters[ATLAS_CLASS_COUNT];
  memset(counters, 1, sizeof counters);
  CHECK_EQ_U64(hg_executor_resonance(executor, counters), HG_OK);
  for (int i = 0; i < ATLAS_CLASS_COUNT; i++) CHECK_EQ_U64(counters[i], 0);
  CHECK_EQ_U64(hg_executor_resonance_reset(executor), HG_OK);
  uint32_t phase = 9;
  CHECK_EQ_U64(hg_executor_phase(executor, &phase), HG_OK);
  CHECK_EQ_U64(phase, 0);
  CHECK_EQ_U64(hg_executor_set_phase(executor, 767), HG_OK);
  CHECK_EQ_U64(hg_executor_set_phase(executor, 768), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "phase 768 is not below 768");
  CHECK_EQ_U64(hg_executor_phase(executor, &phase), HG_OK);
  CHECK_EQ_U64(phase, 767);

  uint8_t bytes[4] = {1, 2, 3, 4}, back[4] = {9, 9, 9, 9};
  CHECK_EQ_U64(hg_boundary_read(executor, ATLAS_BOUNDARY_POOL_BYTES - 4, back, 4), HG_OK);
  CHECK(memcmp(back, "\0\0\0\0", 4) == 0);
  CHECK_EQ_U64(hg_boundary_write(executor, ATLAS_BOUNDARY_POOL_BYTES - 4, bytes, 4), HG_OK);
  CHECK_EQ_U64(hg_boundary_read(executor, ATLAS_BOUNDARY_POOL_BYTES - 4, back, 4), HG_OK);
  CHECK(memcmp(back, bytes, 4) == 0);
  CHECK_EQ_U64(hg_boundary_write(executor, ATLAS_BOUNDARY_POOL_BYTES - 3, bytes, 4), HG_OUT_OF_RANGE);
  CHECK_STR(hg_last_error(), "4 bytes at offset 1179645 do not lie in the boundary pool of 1179648 bytes");
  CHECK_EQ_U64(hg_boundary_read(executor, UINT64_MAX, back, 2), HG_OUT_OF_RANGE);
  hg_buffer *view = NULL; /* the same bytes */
  CHECK_EQ_U64(hg_boundary_buffer(executor, ATLAS_BOUNDARY_POOL_BYTES - 3, 4, &view), HG_OUT_OF_RANGE);
  CHECK(view == NULL);
  CHECK_EQ_U64(hg_boundary_buffer(executor, ATLAS_BOUNDARY_POOL_BYTES - 4, 4, &view), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(view, 1, "\x11\x22", 2), HG_OK);
  CHECK_EQ_U64(hg_boundary_read(executor, ATLAS_BOUNDARY_POOL_BYTES - 4, back, 4), HG_OK);
  CHECK(back[1] == 0x11 && back[2] == 0x22);
  hg_buffer_release(view);
  CHECK_EQ_U64(hg_boundary_write(executor, 0, NULL, 2), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_boundary_write(executor, 0, NULL, 0), HG_OK);
  hg_executor_release(executor);
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static void test_buffer(void) {
  hg_executor *executor = open_executor();
  hg_buffer *buffer = NULL;
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 100, &buffer), HG_OK);
  CHECK_EQ_U64(hg_buffer_size(buffer), 100);
  CHECK(hg_buffer_handle(buffer) != 0);
  uint8_t host[100], back[100];
  memset(back, 7, sizeof back);
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, back, 100), HG_OK);
  for (int i = 0; i < 100; i++) CHECK_EQ_U64(back[i], 0);
  for (int i = 0; i < 100; i++) host[i] = (uint8_t)(i + 1);
  CHECK_EQ_U64(hg_buffer_write(buffer, 0, host, 100), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(buffer, 10, back, 90), HG_OK);
  CHECK(memcmp(back, host + 10, 90) == 0);

  CHECK_EQ_U64(hg_buffer_write(buffer, 99, host, 2), HG_OUT_OF_RANGE);
  CHECK_STR(hg_last_error(), "2 bytes at offset 99 do not lie in a buffer of 100 bytes");
  CHECK_EQ_U64(hg_buffer_read(buffer, 101, back, 0), HG_OUT_OF_RANGE);
  CHECK_EQ_U64(hg_buffer_read(buffer, UINT64_MAX, back, 2), HG_OUT_OF_RANGE);
  CHECK_EQ_U64(hg_buffer_read(buffer, 100, NULL, 0), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(buffer, 0, NULL, 1), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, NULL, 1), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_buffer_read(NULL, 0, back, 1), HG_INVALID_ARGUMENT);
  hg_buffer *none = buffer;
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, UINT64_MAX, &none), HG_OUT_OF_MEMORY);
  CHECK(none == NULL);
  CHECK(hg_buffer_retain(buffer) == buffer);
  hg_buffer_release(buffer);
  hg_buffer_release(NULL);
  CHECK(hg_buffer_retain(NULL) == NULL);
  CHECK_EQ_U64(hg_buffer_size(NULL), 0);
  hg_executor_release(executor); /* the buffer keeps its executor */
  CHECK_EQ_U64(hg_buffer_read(buffer, 10, back, 90), HG_OK);
  hg_buffer_release(buffer);
}

static void test_create_arguments(void) {
  hg_executor *executor = open_executor();
  hg_buffer *buffer = NULL;
  for (uint32_t alignment = 1; alignment <= 4096; alignment *= 2) {
    hg_buffer_desc desc = {.size = sizeof desc, .flags = HG_BUFFER_UNINIT, .alignment = alignment};
    void *memory = NULL;
    CHECK_EQ_U64(hg_buffer_create(executor, &desc, 1, &buffer), HG_OK);
    CHECK_EQ_U64(hg_buffer_map(buffer, &memory), HG_OK);
    CHECK_EQ_U64((uintptr_t)memory % (alignment > 64 ? alignment : 64), 0);
    hg_buffer_release(buffer); /* mapped or not */
  }
  static const uint32_t wrong[] = {3, 8192, 48, UINT32_MAX};
  for (int i = 0; i < 4; i++) {
    hg_buffer_desc desc = {.alignment = wrong[i]};
    CHECK_EQ_U64(hg_buffer_create(executor, &desc, 1, &buffer), HG_INVALID_ARGUMENT);
  }
  CHECK_STR(hg_last_error(), "a buffer's alignment must be a power of two up to 4096, not 4294967295");
  hg_buffer_desc flags = {.flags = 4};
  CHECK_EQ_U64(hg_buffer_create(executor, &flags, 1, &buffer), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_buffer_create(NULL, NULL, 1, &buffer), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 1, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 0, &buffer), HG_OK); /* an empty buffer is a buffer */
  CHECK_EQ_U64(hg_buffer_size(buffer), 0);
  CHECK_EQ_U64(hg_buffer_fill(buffer, 0, 0, "x", 1), HG_OK);
  hg_buffer_release(buffer);
  hg_executor_release(executor);
}

static void test_copy_and_fill(void) {
  hg_executor *executor = open_executor(), *other = open_executor();
  hg_buffer *a = NULL, *b = NULL, *foreign = NULL;
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 64, &a), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 32, &b), HG_OK);
  CHECK_EQ_U64(hg_buffer_create(other, NULL, 32, &foreign), HG_OK);
  uint8_t expected[64], back[64];
  for (uint64_t size = 1; size <= 8; size *= 2) {
    const uint8_t pattern[8] = {1, 2, 3, 4, 5, 6, 7, 8}, zero = 0;
    CHECK_EQ_U64(hg_buffer_fill(a, 0, 64, &zero, 1), HG_OK);
    CHECK_EQ_U64(hg_buffer_fill(a, 8, 24 + size, pattern, size), HG_OK);
    memset(expected, 0, sizeof expected);
    for (uint64_t i = 0; i < 24 + size; i++) expected[8 + i] = pattern[i % size];
    CHECK_EQ_U64(hg_buffer_read(a, 0, back, 64), HG_OK);
    CHECK(memcmp(back, expected, 64) == 0);
  }
  CHECK_EQ_U64(hg_buffer_fill(a, 0, 9, "12345678", 8), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "a fill of 9 bytes is not a multiple of its pattern's 8");
  CHECK_EQ_U64(hg_buffer_fill(a, 0, 9, "12345678", 3), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "a fill pattern has 1, 2, 4 or 8 bytes, not 3");
  CHECK_EQ_U64(hg_buffer_fill(a, 60, 8, "12345678", 8), HG_OUT_OF_RANGE);

  for (int i = 0; i < 64; i++) expected[i] = (uint8_t)i;
  CHECK_EQ_U64(hg_buffer_write(a, 0, expected, 64), HG_OK);
  CHECK_EQ_U64(hg_buffer_copy(b, 4, a, 30, 28), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(b, 0, back, 32), HG_OK);
  CHECK(memcmp(back + 4, expected + 30, 28) == 0 && back[3] == 0);
  CHECK_EQ_U64(hg_buffer_copy(a, 3, a, 0, 40), HG_OK); /* overlapping, upwards */
  memmove(expected + 3, expected, 40);
  CHECK_EQ_U64(hg_buffer_copy(a, 10, a, 20, 40), HG_OK); /* and downwards */
  memmove(expected + 10, expected + 20, 40);
  CHECK_EQ_U64(hg_buffer_read(a, 0, back, 64), HG_OK);
  CHECK(memcmp(back, expected, 64) == 0);
  CHECK_EQ_U64(hg_buffer_copy(b, 5, a, 0, 28), HG_OUT_OF_RANGE);
  CHECK_STR(hg_last_error(), "28 bytes at offset 5 do not lie in the destination buffer of 32 bytes");
  CHECK_EQ_U64(hg_buffer_copy(b, 0, a, 60, 5), HG_OUT_OF_RANGE);
  CHECK_EQ_U64(hg_buffer_copy(foreign, 3, a, 5, 13), HG_OK); /* of another executor */
  CHECK_EQ_U64(hg_buffer_read(foreign, 3, back, 13), HG_OK);
  CHECK(memcmp(back, expected + 5, 13) == 0);
  CHECK_EQ_U64(hg_buffer_copy(foreign, 0, a, 60, 5), HG_OUT_OF_RANGE);
  hg_buffer_release(a);
  hg_buffer_release(b);
  hg_buffer_release(foreign);
  hg_executor_release(executor);
  hg_executor_release(other);
}

static void test_views(void) {
  hg_executor *executor = open_executor();
  hg_buffer *parent = NULL, *view = NULL, *inner = NULL, *none = NULL;
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 100, &parent), HG_OK);
  CHECK_EQ_U64(hg_buffer_view(parent, 20, 60, &view), HG_OK);
  CHECK_EQ_U64(hg_buffer_view(view, 10, 50, &inner), HG_OK);
  CHECK_EQ_U64(hg_buffer_view(view, 11, 50, &none), HG_OUT_OF_RANGE); /* of the view, not of its parent */
  CHECK_EQ_U64(hg_buffer_view(view, 60, 0, &none), HG_OK);
  hg_buffer_release(none);
  CHECK_EQ_U64(hg_buffer_size(inner), 50);
  CHECK((uint8_t *)hg_buffer_address(view) > (uint8_t *)hg_buffer_address(parent) && hg_buffer_address(NULL) == NULL);
  CHECK(hg_buffer_handle(inner) != hg_buffer_handle(view) && hg_buffer_handle(view) != hg_buffer_handle(parent));
  uint8_t byte = 42, back = 0;
  CHECK_EQ_U64(hg_buffer_write(inner, 5, &byte, 1), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(parent, 35, &back, 1), HG_OK);
  CHECK_EQ_U64(back, 42);
  CHECK_EQ_U64(hg_buffer_write(inner, 50, &byte, 1), HG_OUT_OF_RANGE);
  hg_buffer_release(parent); /* the views keep the bytes */
  hg_buffer_release(view);
  back = 0;
  CHECK_EQ_U64(hg_buffer_read(inner, 5, &back, 1), HG_OK);
  CHECK_EQ_U64(back, 42);
  hg_executor_release(executor);
  CHECK_EQ_U64(hg_buffer_read(inner, 5, &back, 1), HG_OK);
  hg_buffer_release(inner);
}

static void test_handles(void) {
  hg_executor *executor = open_executor();
  hg_buffer *buffers[5] = {NULL};
  uint64_t handles[5];
  for (int i = 0; i < 5; i++) {
    CHECK_EQ_U64(hg_buffer_create(executor, NULL, 8, &buffers[i]), HG_OK);
    handles[i] = hg_buffer_handle(buffers[i]);
    CHECK_EQ_U64(handles[i], i + 1); /* small numbers, in order, while none is released */
  }
  hg_buffer_release(buffers[2]);
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 8, &buffers[2]), HG_OK);
  for (int i = 0; i < 5; i++) CHECK(hg_buffer_handle(buffers[2]) != handles[i]); /* a handle is never used again */
  for (int i = 0; i < 5; i++) hg_buffer_release(buffers[i]);
  hg_executor_release(executor);
}

static void test_map(void) {
  hg_executor *executor = open_executor();
  hg_buffer *buffer = NULL, *view = NULL;
  CHECK_EQ_U64(hg_buffer_create(executor, NULL, 16, &buffer), HG_OK);
  CHECK_EQ_U64(hg_buffer_view(buffer, 4, 8, &view), HG_OK);
  void *memory = NULL, *part = NULL;
  CHECK_EQ_U64(hg_buffer_map(buffer, &memory), HG_OK);
  CHECK_EQ_U64(hg_buffer_map(view, &part), HG_OK);
  CHECK((uint8_t *)part == (uint8_t *)memory + 4);
  ((uint8_t *)memory)[5] = 77;
  uint8_t back = 0;
  CHECK_EQ_U64(hg_buffer_read(view, 1, &back, 1), HG_OK);
  CHECK_EQ_U64(back, 77);
  CHECK_EQ_U64(hg_buffer_unmap(view), HG_OK);
  CHECK_EQ_U64(hg_buffer_unmap(view), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_buffer_unmap: the buffer is not mapped");
  CHECK_EQ_U64(hg_buffer_unmap(buffer), HG_OK);
  CHECK_EQ_U64(hg_buffer_unmap(NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_buffer_map(buffer, NULL), HG_INVALID_ARGUMENT);
  hg_buffer_release(buffer);
  hg_buffer_release(view);
  hg_executor_release(executor);
}

/* ---- pools ------------------------------------------------------------------------------------------------------- */

static void test_pool(void) {
  hg_executor *executor = open_executor();
  hg_pool *pool = NULL;
  CHECK_EQ_U64(hg_pool_create(executor, 1024, &pool), HG_OK);
  CHECK_EQ_U64(hg_pool_size(pool), 1024);
  uint64_t a = 9, b = 9, c = 9, d = 9;
  CHECK_EQ_U64(hg_pool_allocate(pool, 10, 0, &a), HG_OK);
  CHECK_EQ_U64(hg_pool_allocate(pool, 10, 0, &b), HG_OK);
  CHECK_EQ_U64(hg_pool_allocate(pool, 100, 256, &c), HG_OK);
  CHECK_EQ_U64(a, 0);
  CHECK_EQ_U64(b, 16);
  CHECK_EQ_U64(c, 256);
  CHECK_EQ_U64(hg_pool_allocate(pool, 200, 1, &d), HG_OK); /* first fit: the hole before c */
  CHECK_EQ_U64(d, 26);
  CHECK_EQ_U64(hg_pool_used(pool), 320);
  CHECK_EQ_U64(hg_pool_allocate(pool, 700, 1, &d), HG_OUT_OF_MEMORY);
  CHECK_STR(hg_last_error(),
            "no free range of the pool holds 700 bytes at a multiple of 1: 320 of its 1024 bytes are in use");
  CHECK_EQ_U64(d, 26); /* untouched */
  CHECK_EQ_U64(hg_pool_free(pool, 17), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "no region of the pool starts at offset 17");
  CHECK_EQ_U64(hg_pool_free(pool, b), HG_OK);
  CHECK_EQ_U64(hg_pool_free(pool, b), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_pool_free(pool, a), HG_OK);
  CHECK_EQ_U64(hg_pool_allocate(pool, 26, 1, &a), HG_OK); /* a's and b's ranges are one again */
  CHECK_EQ_U64(a, 0);
  CHECK_EQ_U64(hg_pool_allocate(pool, 0, 0, &a), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_pool_allocate(pool, 1, 24, &a), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_pool_allocate(pool, 1, 8192, &a), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_pool_allocate(pool, UINT64_MAX, 4096, &a), HG_OUT_OF_MEMORY);
  hg_pool_release(pool);
  hg_pool_release(NULL);
  hg_executor_release(executor);
}

static void test_pool_copies(void) {
  hg_executor *executor = open_executor();
  hg_pool *pool = NULL;
  hg_buffer *region = NULL, *none = NULL;
  uint8_t host[32], back[32];
  for (int i = 0; i < 32; i++) host[i] = (uint8_t)(200 - i);
  CHECK_EQ_U64(hg_pool_create(executor, 128, &pool), HG_OK);
  CHECK_EQ_U64(hg_pool_read(pool, 96, back, 32), HG_OK);
  for (int i = 0; i < 32; i++) CHECK_EQ_U64(back[i], 0);
  CHECK_EQ_U64(hg_pool_write(pool, 77, host, 32), HG_OK); /* any offset */
  CHECK_EQ_U64(hg_pool_read(pool, 77, back, 32), HG_OK);
  CHECK(memcmp(back, host, 32) == 0);
  CHECK_EQ_U64(hg_pool_write(pool, 97, host, 32), HG_OUT_OF_RANGE);
  CHECK_STR(hg_last_error(), "32 bytes at offset 97 do not lie in a pool of 128 bytes");
  CHECK_EQ_U64(hg_pool_buffer(pool, 80, 48, &region), HG_OK);
  CHECK_EQ_U64(hg_pool_buffer(pool, 81, 48, &none), HG_OUT_OF_RANGE);
  hg_pool_release(pool); /* the buffer keeps the bytes */
  CHECK_EQ_U64(hg_buffer_read(region, 0, back, 29), HG_OK);
  CHECK(memcmp(back, host + 3, 29) == 0);
  hg_buffer_release(region);
  hg_executor_release(executor);
}

/* A pool of bytes, each owned by nobody (0) or by a region: the plainest first fit. */
enum { MODEL_BYTES = 4096, MODEL_REGIONS = 64 };

static int model_allocate(uint8_t *owner, uint64_t byte_count, uint64_t alignment, uint64_t *offset) {
  for (uint64_t o = 0; o + byte_count <= MODEL_BYTES; o += alignment) {
    uint64_t i = 0;
    while (i < byte_count && owner[o + i] == 0) i++;
    if (i < byte_count) continue;
    memset(owner + o, 1, byte_count);
    *offset = o;
    return 1;
  }
  return 0;
}

static uint64_t random_state = 0x9e3779b97f4a7c15u;
static uint64_t random_below(uint64_t limit) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state % limit;
}

static void test_pool_model(void) {
  hg_executor *executor = open_executor();
  hg_pool *pool = NULL;
  static uint8_t owner[MODEL_BYTES];
  uint64_t offsets[MODEL_REGIONS], sizes[MODEL_REGIONS] = {0}, used = 0;
  CHECK_EQ_U64(hg_pool_create(executor, MODEL_BYTES, &pool), HG_OK);
  for (int step = 0; step < 20000; step++) {
    size_t k = random_below(MODEL_REGIONS);
    if (sizes[k] == 0) {
      uint64_t size = 1 + random_below(step % 3 == 0 ? 400 : 60), alignment = UINT64_C(1) << random_below(9),
               expected = 0, got = 0;
      int fits = model_allocate(owner, size, alignment, &expected);
      hg_status status = hg_pool_allocate(pool, size, alignment, &got);
      CHECK_EQ_U64(status, fits ? HG_OK : HG_OUT_OF_MEMORY);
      if (!fits) continue;
      CHECK_EQ_U64(got, expected);
      offsets[k] = got;
      sizes[k] = size;
      used += size;
    } else {
      CHECK_EQ_U64(hg_pool_free(pool, offsets[k]), HG_OK);
      memset(owner + offsets[k], 0, sizes[k]);
      used -= sizes[k];
      sizes[k] = 0;
    }
    if (step % 64 == 0) CHECK_EQ_U64(hg_pool_used(pool), used);
  }
  for (int k = 0; k < MODEL_REGIONS; k++)
    if (sizes[k] > 0) CHECK_EQ_U64(hg_pool_free(pool, offsets[k]), HG_OK);
  uint64_t offset = 1;
  CHECK_EQ_U64(hg_pool_allocate(pool, MODEL_BYTES, 4096, &offset), HG_OK); /* all of it is one free range again */
  CHECK_EQ_U64(offset, 0);
  hg_pool_release(pool);
  hg_executor_release(executor);
}

int main(void) {
  test_executor();
  test_backends();
  test_class_state();
  test_buffer();
  test_create_arguments();
  test_copy_and_fill();
  test_views();
  test_handles();
  test_map();
  test_pool();
  test_pool_copies();
  test_pool_model();
  return check_report();
}
