/* computing.h - what the tests of computations share: short ways to tensors, buffers of numbers and executables. */
#ifndef HG_TESTS_COMPUTING_H
#define HG_TESTS_COMPUTING_H

#include "ops/run/executable.h"

#include "launching.h"

enum { MOST = 64 };

static inline hg_tensor vector_of(hg_buffer *buffer, uint64_t count) {
  return hg_tensor_of(buffer, ATLAS_f32, 1, (uint64_t[]){count});
}

static inline hg_tensor matrix_of(hg_buffer *buffer, uint64_t rows, uint64_t columns) {
  return hg_tensor_of(buffer, ATLAS_f32, 2, (uint64_t[]){rows, columns});
}

static inline hg_buffer *floats(uint64_t count, float first) {
  float values[MOST];
  for (uint64_t i = 0; i < count; i++) values[i] = first + (float)i;
  return buffer_of(count * sizeof(float), values);
}

static inline void check_floats(hg_buffer *buffer, uint64_t count, float (*expected)(uint64_t i)) {
  float values[MOST];
  CHECK_EQ_U64(hg_buffer_read(buffer, 0, values, count * sizeof(float)), HG_OK);
  for (uint64_t i = 0; i < count; i++)
    if (values[i] != expected(i)) {
      CHECK_EQ_U64(bits_of(values[i]), bits_of(expected(i)));
      return;
    }
  CHECK(1);
}

static inline hg_value two(hg_computation *c, hg_op op, hg_value a, hg_value b) {
  return hg_compute(c, op, (hg_value[]){a, b}, 2, NULL, 0);
}

/* out = (a + b) * a, from tensors like these. */
static inline hg_computation *sum_times(const hg_tensor *a, const hg_tensor *b, const hg_tensor *out) {
  hg_computation *c = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &c), HG_OK);
  hg_value x = hg_computation_input(c, "a", a), y = hg_computation_input(c, "b", b);
  CHECK_EQ_U64(hg_computation_output(c, "out", two(c, HG_OP_mul, two(c, HG_OP_add, x, y), x), out), HG_OK);
  return c;
}

static inline hg_executable *compiled(hg_computation *c) {
  hg_executable *e = NULL;
  hg_status status = hg_compile(executor, c, NULL, &e);
  CHECK_EQ_U64(status, HG_OK);
  if (status != HG_OK) printf("  %s\n", hg_last_error());
  return e;
}

static inline hg_executable *executable_of(const hg_tensor *a, const hg_tensor *b, const hg_tensor *out) {
  hg_computation *c = sum_times(a, b, out);
  hg_executable *e = compiled(c);
  hg_computation_release(c);
  return e;
}

static inline hg_status run3(hg_executable *e, hg_tensor a, hg_tensor b, hg_tensor out, hg_stream *stream) {
  return hg_run(e, (hg_tensor[]){a, b}, 2, &out, 1, stream, NULL);
}

static inline float from_one(uint64_t i) { return (float)(i + 1); }

/* a counts from 1, b from 10. */
static inline float expected(uint64_t i) { return ((float)(1 + i) + (float)(10 + i)) * (float)(1 + i); }

#define REFUSES(call, status, sentence)         \
  do {                                          \
    CHECK_EQ_U64(call, status);                 \
    CHECK_STR(hg_last_error(), sentence);       \
  } while (0)

static inline hg_executables_info cache_info(void) {
  hg_executables_info info = {0};
  CHECK_EQ_U64(hg_executables_query(executor, &info), HG_OK);
  return info;
}

#endif
