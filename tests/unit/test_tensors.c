/* test_tensors.c - tensors with a buffer of their own, and how many threads compute with them. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "check.h"
#include "test_backend.h"

#include "hologram/ops.h"

#if defined(__linux__)
#  include <dirent.h>
#endif

static void test_create(void) {
  hg_executor *executor = NULL;
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  for (int type = ATLAS_NONE + 1; type < ATLAS_TYPE_COUNT; type++) {
    hg_tensor tensor;
    uint64_t shape[3] = {2, 3, 5}, bytes = 30 * atlas_type_bits((atlas_type)type) / 8, ones[30];
    memset(ones, 1, sizeof ones);
    CHECK_EQ_U64(hg_tensor_create(executor, (atlas_type)type, 3, shape, &tensor), HG_OK);
    CHECK_EQ_U64(tensor.type, (uint64_t)type);
    CHECK_EQ_U64(tensor.rank, 3);
    CHECK_EQ_U64(tensor.stride[0], 15);
    CHECK_EQ_U64(tensor.stride[2], 1);
    CHECK_EQ_U64(hg_buffer_size(tensor.buffer), bytes);
    CHECK_EQ_U64(hg_buffer_read(tensor.buffer, 0, ones, bytes), HG_OK);
    for (uint64_t i = 0; i < bytes; i++) CHECK(((const uint8_t *)ones)[i] == 0);
    hg_buffer_release(tensor.buffer);
  }
  hg_tensor one, none;
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f64, 0, NULL, &one), HG_OK);
  CHECK_EQ_U64(hg_buffer_size(one.buffer), 8);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f64, 2, (uint64_t[]){1 << 20, 0}, &none), HG_OK);
  CHECK_EQ_U64(hg_buffer_size(none.buffer), 0);
  hg_buffer_release(one.buffer);
  hg_buffer_release(none.buffer);
  hg_executor_release(executor);
}

static void test_refused(void) {
  hg_executor *executor = NULL;
  hg_tensor tensor;
  uint64_t shape[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, large[2] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  CHECK_EQ_U64(hg_tensor_create(NULL, ATLAS_f32, 1, shape, &tensor), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f32, 1, shape, NULL), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_NONE, 1, shape, &tensor), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_TYPE_COUNT, 1, shape, &tensor), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f32, 1, NULL, &tensor), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f32, 9, shape, &tensor), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f32, 2, large, &tensor), HG_INVALID_ARGUMENT);
  CHECK(tensor.buffer == NULL);
  hg_executor_release(executor);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

/* Of this process; 0: not known. */
static int count_threads(void) {
  int count = 0;
#if defined(__linux__)
  DIR *tasks = opendir("/proc/self/task");
  for (const struct dirent *entry; tasks != NULL && (entry = readdir(tasks)) != NULL;) count += entry->d_name[0] != '.';
  if (tasks != NULL) closedir(tasks);
#endif
  return count;
}

enum { SIDE = 512, COUNT = SIDE * SIDE };
static float numbers[COUNT], results[2][COUNT];

/* exp(x), and x @ x: both a program's launch and the engine's own code for contractions. */
static void compute(uint32_t threads, float *result) {
  hg_executor *executor = NULL;
  hg_executor_desc desc = {.size = sizeof desc, .backend = HG_BACKEND_CPU, .threads = threads};
  hg_executor_info info = {.size = sizeof info};
  hg_tensor x, y, z;
  uint64_t shape[2] = {SIDE, SIDE};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  CHECK_EQ_U64(hg_executor_query(executor, &info), HG_OK);
  CHECK_EQ_U64(info.compute_units, threads > 0 ? threads : 4);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f32, 2, shape, &x), HG_OK);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f32, 2, shape, &y), HG_OK);
  CHECK_EQ_U64(hg_tensor_create(executor, ATLAS_f32, 2, shape, &z), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(x.buffer, 0, numbers, sizeof numbers), HG_OK);
  CHECK_EQ_U64(hg_apply(HG_OP_exp, &x, 1, NULL, 0, &y, 1, NULL), HG_OK);
  CHECK_EQ_U64(hg_apply(HG_OP_matmul, (hg_tensor[]){x, y}, 2, NULL, 0, &z, 1, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(z.buffer, 0, result, sizeof numbers), HG_OK);
  hg_buffer_release(x.buffer);
  hg_buffer_release(y.buffer);
  hg_buffer_release(z.buffer);
  hg_executor_release(executor);
}

static void test_threads(void) {
  hg_executor *executor = NULL;
  hg_executor_desc desc = {.size = sizeof desc, .reserved2 = 1};
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "hg_executor_desc.reserved2 is 1, not 0");
  int before = count_threads();
  for (int i = 0; i < COUNT; i++) numbers[i] = (float)(i % 1013) / 512 - 1;
  compute(1, results[0]);
  CHECK_EQ_U64(count_threads(), before); /* no other took part */
  compute(3, results[1]);
  CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
  CHECK(count_threads() <= before + 2 + SANITIZED); /* ThreadSanitizer starts one of its own with the first */
  compute(0, results[1]);
  CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
}

int main(void) {
#if defined(_WIN32)
  _putenv("HOLOGRAM_NUM_THREADS=4");
#else
  setenv("HOLOGRAM_NUM_THREADS", "4", 1);
#endif
  test_threads();
  test_create();
  test_refused();
  return check_report();
}
