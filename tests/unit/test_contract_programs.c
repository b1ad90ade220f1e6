/* test_contract_programs.c - contractions as Atlas programs beside their definition: bits, for shapes around the sizes
 * of tiles, chains and parts of K, any strides and types, with and without what follows. test_contract_programs SEED:
 * other cases. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "ops/run/executable.h"

#include "contraction.h"
#include "environment.h"
#include "launching.h"
#include "shard.h"

static hg_tensor tensor_of(const memory *m, hg_buffer *buffer, uint8_t type, const uint64_t sizes[3],
                           const int64_t strides[3]) {
  hg_tensor t = hg_tensor_of(buffer, (atlas_type)type, 3, sizes);
  memcpy(t.stride, strides, 3 * sizeof *strides);
  t.offset = (m->first - m->bytes) / (int64_t)atlas_bytes((atlas_type)type);
  return t;
}

/* relu(x + bias of the column), rounded to bf16 */
static hg_value followed(hg_computation *c, hg_value x, hg_value bias) {
  ops_shape shape = ops_at(c, x)->shape;
  hg_value sum = ops_pointwise(c, ATLAS_OP_add, (value_id[]){x, ops_broadcast(c, bias, &shape)}, 2);
  hg_value zero = ops_broadcast(c, ops_number(c, ATLAS_f32, 0), &shape);
  return ops_cast(c, ops_pointwise(c, ATLAS_OP_max, (value_id[]){sum, zero}, 2), ATLAS_bf16);
}

static float bias_of(uint64_t column) { return (float)column * 0.25f - 2.0f; }

/* What should be in `wanted` is C; makes it what follows. */
static void follow(const hg_contraction *c, const memory *plain, const uint8_t *wanted, uint8_t *out) {
  const uint8_t *first = wanted + (plain->first - plain->bytes);
  for (uint64_t i = 0; i < c->batch; i++)
    for (uint64_t r = 0; r < c->m; r++)
      for (uint64_t s = 0; s < c->n; s++) {
        int64_t at = (int64_t)i * c->c_stride[0] + (int64_t)r * c->c_stride[1] + (int64_t)s * c->c_stride[2];
        uint64_t x = element(first, ATLAS_f32, at);
        x = add(ATLAS_f32, x, atlas_bits_of_f32(bias_of(s)));
        x = atlas_arith(ATLAS_OP_max, ATLAS_f32, x, 0, 0);
        x = atlas_convert(ATLAS_bf16, ATLAS_f32, x);
        memcpy(out + ((i * c->m + r) * c->n + s) * 2, &x, 2);
      }
}

static void check_case(uint8_t a_type, uint8_t b_type, uint8_t type, uint64_t batch, uint64_t m, uint64_t n, uint64_t k,
                       int follows) {
  if (!in_shard()) return;
  hg_contraction c = {.a_type = a_type, .b_type = b_type, .type = type, .batch = batch, .m = m, .n = n, .k = k};
  const uint64_t sizes_a[3] = {batch, m, k}, sizes_b[3] = {batch, k, n}, sizes_c[3] = {batch, m, n};
  memory a = make(a_type, sizes_a, c.a_stride, 0), b = make(b_type, sizes_b, c.b_stride, 0);
  memory out = make(type, sizes_c, c.c_stride, 1);
  c.a = a.first, c.b = b.first, c.c = out.first;
  uint8_t *wanted = expected(&c, &out);
  hg_buffer *buffers[4] = {buffer_of(a.byte_count, a.bytes), buffer_of(b.byte_count, b.bytes), NULL, NULL};
  float *bias = malloc(n * sizeof *bias);
  for (uint64_t i = 0; i < n; i++) bias[i] = bias_of(i);
  buffers[2] = buffer_of(n * sizeof *bias, bias);
  uint64_t byte_count = follows ? batch * m * n * 2 : out.byte_count;
  uint8_t *result = malloc(byte_count), *followed_bits = malloc(batch * m * n * 2);
  memset(result, 0xa5, byte_count);
  buffers[3] = buffer_of(byte_count, result);
  hg_computation *computation = NULL;
  CHECK_EQ_U64(hg_computation_create(NULL, &computation), HG_OK);
  hg_tensor inputs[3] = {tensor_of(&a, buffers[0], a_type, sizes_a, c.a_stride),
                         tensor_of(&b, buffers[1], b_type, sizes_b, c.b_stride),
                         hg_tensor_of(buffers[2], ATLAS_f32, 1, &n)};
  hg_value x = hg_computation_input(computation, "a", &inputs[0]),
           y = hg_computation_input(computation, "b", &inputs[1]);
  hg_value bias_value = follows ? hg_computation_input(computation, "bias", &inputs[2]) : 0;
  hg_value value = ops_contract(computation, x, y, (atlas_type)type);
  if (follows) value = followed(computation, value, bias_value);
  hg_tensor output = follows ? hg_tensor_of(buffers[3], ATLAS_bf16, 3, sizes_c)
                             : tensor_of(&out, buffers[3], type, sizes_c, c.c_stride);
  CHECK_EQ_U64(hg_computation_output(computation, "c", value, &output), HG_OK);
  hg_executable *e = NULL;
  hg_status status = hg_compile(executor, computation, NULL, &e);
  if (status == HG_OK) status = hg_run(e, inputs, follows ? 3 : 2, &output, 1, NULL, NULL);
  if (!check_note(status == HG_OK)) printf("%s\n", hg_last_error());
  CHECK_EQ_U64(hg_buffer_read(buffers[3], 0, result, byte_count), HG_OK);
  if (follows) follow(&c, &out, wanted, followed_bits);
  if (status == HG_OK && !check_note(memcmp(result, follows ? followed_bits : wanted, byte_count) == 0))
    printf("%u x %u -> %u, batch %u, %u x %u x %u%s: other bits\n", a_type, b_type, type, (unsigned)batch, (unsigned)m,
           (unsigned)n, (unsigned)k, follows ? ", with what follows" : "");
  hg_executable_release(e);
  hg_computation_release(computation);
  for (int i = 0; i < 4; i++) hg_buffer_release(buffers[i]);
  free(wanted), free(result), free(followed_bits), free(bias);
  free(a.bytes), free(b.bytes), free(out.bytes);
}

static uint64_t pick(const uint64_t *from, size_t count) { return from[next_random() % count]; }

static void check_cases(int count) {
  static const uint64_t sizes[] = {1, 2, 4, 7, 16, 31, 32, 33, 60, 64, 65, 100, 127, 128, 129, 132, 192};
  static const uint64_t depths[] = {1, 2, 8, 15, 16, 17, 32, 64, 255, 256, 257, 272, 512, 513, 784, 1100, 1792, 2049};
  static const uint8_t types[][3] = {{ATLAS_f32, ATLAS_f32, ATLAS_f32},   {ATLAS_f32, ATLAS_f32, ATLAS_f32},
                                     {ATLAS_f32, ATLAS_f32, ATLAS_f32},   {ATLAS_f64, ATLAS_f64, ATLAS_f64},
                                     {ATLAS_bf16, ATLAS_bf16, ATLAS_f32}, {ATLAS_f16, ATLAS_f16, ATLAS_f32},
                                     {ATLAS_i8, ATLAS_i8, ATLAS_i32},     {ATLAS_i32, ATLAS_i32, ATLAS_i32},
                                     {ATLAS_u8, ATLAS_u8, ATLAS_u8},      {ATLAS_i64, ATLAS_i64, ATLAS_i64}};
  for (int i = 0; i < count; i++) {
    const uint8_t *t = types[next_random() % (sizeof types / sizeof *types)];
    uint64_t m = pick(sizes, sizeof sizes / sizeof *sizes), n = pick(sizes, sizeof sizes / sizeof *sizes);
    uint64_t k = pick(depths, sizeof depths / sizeof *depths),
             batch = next_random() % 4 == 0 ? 1 + next_random() % 4 : 1;
    while (batch * m * n * k > 2000000) k /= 2, m -= m / 4, n -= n / 4;
    check_case(t[0], t[1], t[2], batch, m, n, k, t[2] == ATLAS_f32 && next_random() % 3 == 0);
  }
}

/* Products with a vector. */
static void check_thin(int count) {
  static const uint64_t sizes[] = {256, 257, 260, 511, 512, 1024, 1100},
                        depths[] = {1, 5, 31, 32, 33, 64, 240, 256, 272, 288, 300, 512, 1040};
  for (int i = 0; i < count; i++) {
    uint64_t size = pick(sizes, sizeof sizes / sizeof *sizes), k = pick(depths, sizeof depths / sizeof *depths);
    uint8_t type = next_random() % 4 == 0 ? ATLAS_f64 : ATLAS_f32;
    uint8_t given = type == ATLAS_f32 && next_random() % 3 == 0 ? ATLAS_bf16 : type;
    int is_row = (int)(next_random() % 2);
    check_case(given, given, type, 1 + next_random() % 2, is_row ? 1 : size, is_row ? size : 1, k,
               type == ATLAS_f32 && next_random() % 3 == 0);
  }
}

/* More chains than one step folds: 65, and 64 + 64 + 2, the last a short one. */
static void check_many_parts(void) {
  check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 1, 1, 257, 64 * 256 + 3, 0);
  check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 1, 260, 1, 129 * 256 + 40, 1);
}

/* Few results, each of which has many chains. */
static void check_chains(void) {
  check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 1, 1, 1, 64 * 256, 0);
  check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 2, 3, 2, 70 * 256 + 37, 1);
  check_case(ATLAS_bf16, ATLAS_bf16, ATLAS_f32, 1, 1, 4, 65 * 256 + 255, 0);
  check_case(ATLAS_f64, ATLAS_f64, ATLAS_f64, 1, 16, 1, 64 * 256 + 16, 0);
}

/* More tiles along a grid's y or z than devices have blocks there: matrices, and rows. What interprets programs would
 * take minutes. */
static void check_many_tiles(void) {
  const char *engine = getenv("HOLOGRAM_CPU_ENGINE");
  if (test_backend() != HG_BACKEND_CPU || (engine != NULL && strcmp(engine, "interp") == 0)) return;
  check_case(ATLAS_u8, ATLAS_u8, ATLAS_u8, 65536, 2, 3, 1, 0);
  check_case(ATLAS_u8, ATLAS_u8, ATLAS_u8, 1, 65535 * 32 + 1, 2, 1, 0);
}

int main(int argc, char **argv) {
  if (argc > 1) state = strtoull(argv[1], NULL, 0);
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 1, 128, 128, 32, 0);
  check_case(ATLAS_f32, ATLAS_f32, ATLAS_f32, 1, 128, 128, 32, 1);
  check_cases(argc > 1 ? 1000 : 40);
  check_thin(argc > 1 ? 300 : 24);
  check_many_parts();
  check_chains();
  check_many_tiles();
  hg_executor_release(executor);
  return check_report();
}
