/* test_quotients.c - divisions by one divisor, which the native x86 engine does by its reciprocal: quotients next to
 * the middle between two floats, exponents next to where that may not be done, and every kind of number, on every
 * instruction set of this machine. test_quotients SEED: others. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif
#include "backend/cpu/engine/detect.h"
#include "environment.h"
#include "launching.h"
#include "native_passes.h"

#include <stdlib.h>

enum { BLOCKS = 4096, LANES = 64, VALUES = 4, ROW = LANES * VALUES, ELEMENTS = BLOCKS * ROW, MOST_DISTANCE = 16 };

static uint32_t dividends[ELEMENTS], divisors[BLOCKS], quotients[ELEMENTS];
static uint64_t state = 1;

/* A row is held in registers. The reduction makes the divisor known to be the same in all lanes. */
static const char held[] =
    ".program held\n.block 64\n.buffer x f32 in\n.buffer u f32 in\n.buffer y f32 out\n"
    "ldg.f32 r0, [u + r253]\nreduce.max.f32 r0, r0\n"
    "mul.u32 r1, r253, #256\nadd.u32 r1, r1, blane\n"
    "ldg.f32 r2, [x + r1]\nldg.f32 r3, [x + r1 + #64]\nldg.f32 r4, [x + r1 + #128]\nldg.f32 r5, [x + r1 + #192]\n"
    "div.f32 r2, r2, r0\ndiv.f32 r3, r3, r0\ndiv.f32 r4, r4, r0\ndiv.f32 r5, r5, r0\n"
    "stg.f32 [y + r1], r2\nstg.f32 [y + r1 + #64], r3\nstg.f32 [y + r1 + #128], r4\nstg.f32 [y + r1 + #192], "
    "r5\nexit\n";

static const char loop[] =
    ".program loop\n.block 64\n.buffer x f32 in\n.buffer u f32 in\n.buffer y f32 out\n"
    "ldg.f32 r0, [u + r253]\nreduce.max.f32 r0, r0\n"
    "mul.u32 r1, r253, #256\nadd.u32 r3, r1, #256\nadd.u32 r1, r1, blane\n"
    "top:\nset.ge.u32 p0, r1, r3\n@p0 bra done\nldg.f32 r2, [x + r1]\ndiv.f32 r2, r2, r0\nstg.f32 [y + r1], r2\n"
    "add.u32 r1, r1, #64\nbra top\ndone:\nexit\n";

/* Whose bits are seen at once, under a mask, and beside what takes the other side. */
static const char masked[] =
    ".program masked\n.block 64\n.buffer x f32 in\n.buffer u f32 in\n.buffer y f32 out\n"
    "ldg.f32 r0, [u + r253]\nreduce.max.f32 r0, r0\n"
    "mul.u32 r1, r253, #256\nadd.u32 r3, r1, #256\nadd.u32 r1, r1, blane\n"
    "top:\nset.ge.u32 p0, r1, r3\n@p0 bra done\nldg.f32 r2, [x + r1]\nbitcast.u32.f32 r4, r2\nand.u32 r4, r4, #1\n"
    "set.eq.u32 p1, r4, #0\n@p1 bra even\ndiv.f32 r2, r2, r0\nbra both\neven:\ndiv.f32 r2, r2, r0\n"
    "bitcast.u32.f32 r4, r2\nxor.u32 r4, r4, #0\nbitcast.f32.u32 r2, r4\nboth:\nstg.f32 [y + r1], r2\n"
    "add.u32 r1, r1, #64\nbra top\ndone:\nexit\n";

static uint32_t next_random(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)(state >> 32);
}

static float float_of(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* The inverse of an odd number modulo 2^64. */
static uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;
  for (int i = 0; i < 6; i++) x *= 2 - odd * x;
  return x;
}

/* A significand X of 24 bits with X 2^shift = middle Y + distance, where `middle` / 2^shift lies between two floats; 0:
 * there is none. */
static uint32_t next_to_middle(uint32_t y, int64_t distance, unsigned shift) {
  const uint64_t least = UINT64_C(1) << 24, all = (UINT64_C(1) << shift) - 1;
  unsigned zeros = 0;
  while (!(y >> zeros & 1)) zeros++;
  if (distance % (INT64_C(1) << zeros) != 0 || zeros >= shift) return 0;
  uint64_t part = (uint64_t)(-distance / (INT64_C(1) << zeros)) * inverse(y >> zeros) & all >> zeros;
  uint64_t middle = part + (next_random() % (1u << zeros) << (shift - zeros) & (least - 1));
  while (middle < least) middle += all / (UINT64_C(1) << zeros) + 1;
  uint64_t product = middle * y + (uint64_t)distance, x = product >> shift;
  if (!(middle & 1) || middle >= 2 * least || product & all) return 0;
  int is_above = x >= y; /* then quotients are 1 and more, and the floats twice as far apart */
  return x >> 23 == 1 && is_above == (shift == 24) ? (uint32_t)x : 0;
}

static uint32_t with_exponent(uint32_t significand, uint32_t exponent) {
  return (significand & 0x7fffff) | (exponent & 255) << 23 | (next_random() & 1) << 31;
}

/* What reciprocals are good for, next to its ends, or anywhere. */
static uint32_t divisor_exponent(void) {
  static const uint32_t ends[] = {127 - 40, 127 + 125, 1, 254};
  uint32_t kind = next_random() % 4;
  if (kind == 0) return ends[next_random() % 4] + next_random() % 3 - 1;
  return kind == 1 ? next_random() : 127 + next_random() % 20;
}

static uint32_t dividend_exponent(uint32_t of_divisor) {
  static const uint32_t ends[] = {0 - 63u, 64, 0 - 126u, 127, 0 - 149u};
  uint32_t kind = next_random() % 16;
  if (kind == 0) return next_random();
  uint32_t exponent =
      of_divisor + (kind == 1 ? ends[next_random() % 5] + next_random() % 3 - 1 : next_random() % 40 - 20);
  return exponent > 254 ? 127 : exponent;
}

static void fill(void) {
  static const uint32_t special[] = {0,          1,          0x7fffff,   0x800000,  0x7f7fffff,
                                     0x7f800000, 0x7fc00000, 0x7f800001, 0x3f800000};
  for (uint32_t b = 0; b < BLOCKS; b++) {
    uint32_t y = 1u << 23 | (b % 64 < 2 ? 0x7fffff - b / 64 : b % 64 < 4 ? b / 64 : next_random() >> 9);
    uint32_t exponent = divisor_exponent() & 255, is_special = b % 16 == 5;
    divisors[b] = with_exponent(y, exponent);
    if (b % 32 == 7) divisors[b] = special[b / 32 % 9] | (next_random() & 1) << 31;
    for (uint32_t i = 0; i < ROW; i++) {
      int64_t distance = (int64_t)(i / 4 % MOST_DISTANCE) + 1;
      uint32_t x = next_to_middle(y, i & 1 ? distance : -distance, 24 + (i >> 1 & 1));
      if (x == 0) x = next_random();
      dividends[b * ROW + i] = with_exponent(x, b % 3 == 0 ? dividend_exponent(exponent) : exponent);
      if (is_special && next_random() % 4 == 0)
        dividends[b * ROW + i] = special[next_random() % 9] | (next_random() & 1) << 31;
    }
  }
}

static void compare(const char *isa, const char *text) {
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    uint32_t expected = bits_of(float_of(dividends[i]) / float_of(divisors[i / ROW]));
    if ((expected & INT32_MAX) > 0x7f800000) expected = 0x7fc00000;
    if (quotients[i] == expected) continue;
    printf("%s, %.15s: %08x / %08x gives %08x, expected %08x\n", isa, text, dividends[i], divisors[i / ROW],
           quotients[i], expected);
    check_note(0);
    return;
  }
  check_note(1);
}

static void run(const char *isa, const char *text) {
  hg_executor_desc desc = {.backend = HG_BACKEND_CPU};
  set("HOLOGRAM_CPU_ISA", isa);
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *x = buffer_of(sizeof dividends, dividends), *u = buffer_of(sizeof divisors, divisors);
  hg_buffer *y = buffer_of(sizeof quotients, NULL);
  hg_binding bindings[] = {{.name = "x", .buffer = x}, {.name = "u", .buffer = u}, {.name = "y", .buffer = y}};
  hg_launch_desc launch = {.grid = {BLOCKS, 1, 1}, .bindings = bindings, .binding_count = 3};
  CHECK_EQ_U64(hg_launch(kernel, &launch, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(y, 0, quotients, sizeof quotients), HG_OK);
  compare(isa, text);
  hg_buffer_release(x);
  hg_buffer_release(u);
  hg_buffer_release(y);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
}

int main(int argc, char **argv) {
  static const char *const texts[] = {held, loop, masked};
  if (argc > 1) state = strtoull(argv[1], NULL, 10);
  fill();
  for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++)
    for (size_t k = 0; k < COUNT(texts); k++) run(hg_cpu_isa_name((cpu_isa)isa), texts[k]);
  set("HOLOGRAM_CPU_ISA", "");
  for (size_t k = 0; k < COUNT(texts); k++) check_fires(texts[k], NATIVE_GIVEN_quotients);
  return check_report();
}
