/* test_choices.c - the greater and the lesser of values, where a choice, a maximum and a negation are easily taken for
 * one another. */
#include "launching.h"

#include <math.h>

/* y from x, both of so many bytes. */
static void run(const char *text, const void *x, void *y, uint64_t byte_count, uint64_t lanes) {
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *bx = buffer_of(byte_count, x), *by = buffer_of(byte_count, NULL);
  hg_binding bindings[] = {{.name = "x", .buffer = bx}, {.name = "y", .buffer = by}};
  hg_launch_desc desc = {.lanes = lanes, .bindings = bindings, .binding_count = 2};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(by, 0, y, byte_count), HG_OK);
  hg_buffer_release(bx);
  hg_buffer_release(by);
  hg_kernel_release(kernel);
}

/* ---- choices ----------------------------------------------------------------------------------------------------- */

static int holds(const char *comparison, float a, float b) {
  if (strcmp(comparison, "lt") == 0) return a < b;
  if (strcmp(comparison, "le") == 0) return a <= b;
  if (strcmp(comparison, "gt") == 0) return a > b;
  return a >= b;
}

/* The greater or the lesser of a value and a constant is still a choice: a NaN keeps its payload, a zero its sign. */
static void test_choice(const char *comparison, float constant, uint32_t chosen, int value_if_true) {
  const uint32_t x[] = {0x7fc00001, 0xffc12345, 0x7f800001, 0x80000000, 0,
                        0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fffffff};
  uint32_t y[COUNT(x)] = {0};
  char text[320];
  snprintf(text, sizeof text,
           ".buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\nset.%s.f32 p0, r0, #%g\n"
           "sel.f32 r1, p0, %s#0x%08x%s\nstg.f32 [y + lane], r1\nexit\n",
           comparison, (double)constant, value_if_true ? "r0, " : "", (unsigned)chosen, value_if_true ? "" : ", r0");
  run(text, x, y, sizeof x, COUNT(x));
  for (size_t i = 0; i < COUNT(x); i++) {
    float value;
    memcpy(&value, &x[i], sizeof value);
    CHECK_EQ_U64(y[i], holds(comparison, value, constant) == value_if_true ? x[i] : chosen);
  }
}

static void test_choices(void) {
  static const char *const comparisons[] = {"lt", "le", "gt", "ge"};
  static const float constants[] = {0, -0.0f, 1};
  static const uint32_t chosen[] = {0, 0x80000000, 0x3f800000};
  for (size_t c = 0; c < COUNT(comparisons); c++)
    for (size_t i = 0; i < COUNT(constants); i++)
      for (size_t k = 0; k < COUNT(chosen); k++)
        for (int order = 0; order < 2; order++) test_choice(comparisons[c], constants[i], chosen[k], order);
}

/* ---- negations --------------------------------------------------------------------------------------------------- */

/* max(b, max(c, -a)), which ptxas makes one instruction of, and all the ways to say -a. */
static void test_negation(const char *negation, const char *fold, int is_unsigned) {
  static const int32_t x[] = {0, 1, -1, 5, -5, 0x200000, -0x200001, INT32_MAX, INT32_MIN + 1, INT32_MIN};
  enum { N = COUNT(x), LANES = N * N };
  static uint32_t a[LANES], b[LANES], got[LANES];
  const char *type = is_unsigned ? "u32" : "i32", *template = ".program negations\n"
                                                              ".buffer a T in\n"
                                                              ".buffer b T in\n"
                                                              ".buffer y T out\n"
                                                              "    ldg.T r0, [a + lane]\n"
                                                              "    ldg.T r1, [b + lane]\n"
                                                              "    N\n"
                                                              "    F.T r3, r0, r2\n"
                                                              "    F.T r4, r1, r3\n"
                                                              "    stg.T [y + lane], r4\n"
                                                              "    exit\n";
  const char *words[] = {type, negation, fold};
  char text[1024];
  fill_in(template, "TNF", words, text, sizeof text);
  for (size_t i = 0; i < LANES; i++) a[i] = (uint32_t)x[i % N], b[i] = (uint32_t)x[i / N];
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *in_a = buffer_of(sizeof a, a), *in_b = buffer_of(sizeof b, b), *y = buffer_of(sizeof got, NULL);
  hg_binding bindings[] = {{.name = "a", .buffer = in_a}, {.name = "b", .buffer = in_b}, {.name = "y", .buffer = y}};
  hg_launch_desc desc = {.lanes = LANES, .bindings = bindings, .binding_count = COUNT(bindings)};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, got, sizeof got), HG_OK);
  for (size_t i = 0; i < LANES; i++) {
    uint32_t minus = strncmp(negation, "abs", 3) == 0 && a[i] >> 31 == 0 ? a[i] : 0 - a[i];
    int64_t best = 0,
            three[] = {is_unsigned ? (int64_t)a[i] : (int32_t)a[i], is_unsigned ? (int64_t)b[i] : (int32_t)b[i],
                       is_unsigned ? (int64_t)minus : (int32_t)minus};
    for (int k = 0; k < 3; k++)
      if (k == 0 || (strcmp(fold, "max") == 0 ? three[k] > best : three[k] < best)) best = three[k];
    CHECK_EQ_U64(got[i], (uint32_t)best);
  }
  hg_buffer_release(in_a);
  hg_buffer_release(in_b);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
}

static void test_negations(void) {
  for (int i = 0; i < 2; i++) {
    const char *fold = i == 0 ? "max" : "min";
    test_negation("neg.i32 r2, r0", fold, 0);
    test_negation("abs.i32 r2, r0", fold, 0);
    test_negation("sub.i32 r2, #0, r0", fold, 0);
    test_negation("mul.i32 r2, r0, #-1", fold, 0);
    test_negation("sub.u32 r2, #0, r0", fold, 1);
    test_negation("mul.u32 r2, r0, #0xffffffff", fold, 1);
  }
}

/* ---- clamps ------------------------------------------------------------------------------------------------------ */

typedef struct clamp {
  const char *lines; /* from r0 to r1 */
  float low, high;
  int min_first;     /* where high is below low */
} clamp;

static uint32_t clamped(const clamp *c, uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  if (x != x) return 0x7fc00000;
  if (!c->min_first && x < c->low) x = c->low;
  if (x > c->high) x = c->high;
  if (c->min_first && x < c->low) x = c->low;
  return bits_of(x);
}

/* The same instructions keep other values between bounds that are not each other's opposite. */
static void test_clamp(const clamp *c, const char *store, uint32_t flipped) {
  const uint32_t x[] = {0,          0x80000000, 1,          0x80000001, 0x3f800000, 0xbf800000, 0x40000000, 0xc0000000,
                        0x3fffffff, 0xbfffffff, 0x40000001, 0xc0000001, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000,
                        0x7f800001, 0xff800001, 0x7fffffff, 0xffffffff};
  uint32_t y[COUNT(x)] = {0};
  char text[400];
  snprintf(text, sizeof text,
           ".buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\n%s\n%sstg.f32 [y + lane], r1\nexit\n",
           c->lines, store);
  run(text, x, y, sizeof x, COUNT(x));
  for (size_t i = 0; i < COUNT(x); i++) CHECK_EQ_U64(y[i], clamped(c, x[i]) ^ flipped);
}

static void test_clamps(void) {
  static const clamp clamps[] = {
      {"max.f32 r1, r0, #-2\nmin.f32 r1, r1, #2", -2, 2, 0},
      {"min.f32 r1, r0, #2\nmax.f32 r1, r1, #-2", -2, 2, 1},
      {"max.f32 r1, #-2, r0\nmin.f32 r1, #2, r1", -2, 2, 0},
      {"max.f32 r1, r0, #-2\nmin.f32 r1, r1, #1", -2, 1, 0},
      {"max.f32 r1, r0, #2\nmin.f32 r1, r1, #-2", 2, -2, 0},
      {"min.f32 r1, r0, #-2\nmax.f32 r1, r1, #2", 2, -2, 1},
      {"max.f32 r1, r0, #-inf\nmin.f32 r1, r1, #inf", -INFINITY, INFINITY, 0},
  };
  for (size_t i = 0; i < COUNT(clamps); i++) {
    test_clamp(&clamps[i], "", 0);
    test_clamp(&clamps[i], "bitcast.u32.f32 r2, r1\nxor.u32 r2, r2, #1\nbitcast.f32.u32 r1, r2\n", 1);
  }
}

/* On all elements of a type of 16 bits, rounded after they are kept between -size and size. */
static void test_rounded_clamp(const char *type, const char *size, uint16_t rounded, uint16_t infinity, uint16_t nan) {
  enum { VALUES = 1 << 16 };
  static uint16_t x[VALUES], y[VALUES];
  static const char template[] = ".program clamps\n.buffer x T in\n.buffer y T out\nldg.T r0, [x + lane]\n"
                                 "cvt.f32.T r1, r0\nmax.f32 r1, r1, #-S\nmin.f32 r1, r1, #S\ncvt.T.f32 r2, r1\n"
                                 "stg.T [y + lane], r2\nexit\n";
  const char *words[] = {type, size};
  char text[400];
  uint64_t differ = 0;
  fill_in(template, "TS", words, text, sizeof text);
  for (size_t i = 0; i < VALUES; i++) x[i] = (uint16_t)i;
  run(text, x, y, sizeof x, VALUES);
  for (size_t i = 0; i < VALUES; i++) {
    uint16_t magnitude = i & 0x7fff, sign = i & 0x8000;
    differ += y[i] != (magnitude > infinity ? nan : magnitude > rounded ? rounded | sign : i);
  }
  CHECK_EQ_U64(differ, 0);
}

static void test_rounded_clamps(void) {
  test_rounded_clamp("f16", "1", 0x3c00, 0x7c00, 0x7e00);
  test_rounded_clamp("f16", "1.0003", 0x3c00, 0x7c00, 0x7e00); /* no f16 */
  test_rounded_clamp("f16", "0x1p-24", 1, 0x7c00, 0x7e00);
  test_rounded_clamp("f16", "0x1p-30", 0, 0x7c00, 0x7e00); /* rounds to 0 */
  test_rounded_clamp("f16", "65504", 0x7bff, 0x7c00, 0x7e00);
  test_rounded_clamp("f16", "1e6", 0x7c00, 0x7c00, 0x7e00); /* rounds to infinity */
  test_rounded_clamp("bf16", "1", 0x3f80, 0x7f80, 0x7fc0);
  test_rounded_clamp("bf16", "1.001", 0x3f80, 0x7f80, 0x7fc0);
}

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  test_choices();
  test_negations();
  test_clamps();
  test_rounded_clamps();
  hg_executor_release(executor);
  return check_report();
}
