/* test_scatter.c - elements put in at numbers, and added there, beside plain loops. */
#include "hologram/ops.h"

#include "launching.h"

enum { PLACES = 7, ROWS = 3, MOST = 9001 };

static float values[ROWS * MOST];
static int32_t numbers[ROWS * MOST];

/* F of operations.md, by its words; the list is used up. */
static float fold(float *list, uint32_t count) {
  while (count > 4096) {
    uint32_t chunks = 0;
    for (uint32_t at = 0; at < count; at += 4096)
      list[chunks++] = fold(list + at, count - at < 4096 ? count - at : 4096);
    count = chunks;
  }
  uint32_t half = 1;
  while (half < count) half *= 2;
  for (half /= 2; half > 0; half /= 2)
    for (uint32_t i = 0; i < half && i + half < count; i++) list[i] = list[i] + list[i + half];
  return list[0];
}

/* Row by row; an index of one row is all rows'. */
static void expect(const float *base, uint32_t count, int is_shared, int is_sum, float *result) {
  static float list[MOST];
  for (uint32_t row = 0; row < ROWS; row++)
    for (int32_t place = 0; place < PLACES; place++) {
      uint32_t found = 0;
      for (uint32_t i = 0; i < count; i++)
        if (numbers[(is_shared ? 0 : row * count) + i] == place) list[found++] = values[row * count + i];
      float *to = &result[row * PLACES + (uint32_t)place], old = base[row * PLACES + (uint32_t)place];
      *to = found == 0 ? old : is_sum ? old + fold(list, found) : list[found - 1];
    }
}

/* Numbers are below `spread`: of 1, one place gets all of them, in chunks. */
static void check(uint32_t count, uint32_t spread, int is_shared, int is_sum) {
  float base[ROWS * PLACES], expected[ROWS * PLACES], found[ROWS * PLACES];
  for (uint32_t i = 0; i < ROWS * PLACES; i++) base[i] = (float)i * 0.37f - 2;
  for (uint32_t i = 0; i < ROWS * count; i++) {
    values[i] = (float)(int32_t)(i * 2654435761u) * 0x1p-20f;
    numbers[i] = (int32_t)((i * 40503u >> 3) % spread);
  }
  expect(base, count, is_shared, is_sum, expected);
  uint64_t shape[2] = {ROWS, count}, index_shape[2] = {is_shared ? 1 : ROWS, count}, to[2] = {ROWS, PLACES};
  hg_tensor x[3] = {hg_tensor_of(buffer_of(sizeof base, base), ATLAS_f32, 2, to),
                    hg_tensor_of(buffer_of(index_shape[0] * count * 4, numbers), ATLAS_i32, 2, index_shape),
                    hg_tensor_of(buffer_of(ROWS * (uint64_t)count * 4, values), ATLAS_f32, 2, shape)};
  hg_tensor y = hg_tensor_of(buffer_of(sizeof found, base), ATLAS_f32, 2, to);
  hg_computation *c = NULL;
  hg_executable *e = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value inputs[3];
  for (int i = 0; i < 3; i++) inputs[i] = hg_computation_input(c, "x", &x[i]);
  hg_computation_output(c, "y", hg_compute(c, is_sum ? HG_OP_scatter_add : HG_OP_scatter, inputs, 3, NULL, 0), NULL);
  hg_status status = hg_compile(executor, c, NULL, &e);
  if (status == HG_OK) status = hg_run(e, x, 3, &y, 1, NULL, NULL);
  if (status != HG_OK) CHECK_STR(hg_last_error(), "no error");
  CHECK_EQ_U64(hg_buffer_read(y.buffer, 0, found, sizeof found), HG_OK);
  for (uint32_t i = 0; i < ROWS * PLACES; i++) CHECK(memcmp(&found[i], &expected[i], sizeof *found) == 0);
  hg_executable_release(e);
  hg_computation_release(c);
  for (int i = 0; i < 3; i++) hg_buffer_release(x[i].buffer);
  hg_buffer_release(y.buffer);
}

int main(void) {
  static const uint32_t counts[] = {1, 2, 5, 64, 300, MOST};
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
    for (int k = 0; k < 4; k++) check(counts[i], PLACES, k & 1, k >> 1);
  check(MOST, 1, 0, 1);
  check(MOST, 1, 1, 1);
  hg_executor_release(executor);
  return check_report();
}
