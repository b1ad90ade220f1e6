/* test_shared_work.c - what the values of a row have in common, computed once on GPUs: the reciprocal of a divisor
 * (share_divisor.h), the test for rare cases of functions (expand_row.h). Their results have the bits of the
 * reference machine for the special values of every operand, in every place of a group, and for what lies on both sides
 * of each bound of a test. And the quotient by a reciprocal is a / b wherever a / b is hard to round. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

#include <math.h>
#include <stdlib.h>

/* ---- quotients that are hard to round ---------------------------------------------------------------------------- */

/* x y + z, rounded once: the product is exact in f64, and so is the sum where its last bit says that something was cut
 * off (rounded to odd). */
static float fused(float x, float y, float z) {
  double p = (double)x * y, s = p + z, t = s - p, lost = (p - (s - t)) + (z - t);
  uint64_t bits;
  memcpy(&bits, &s, sizeof bits);
  if (lost == 0 || bits & 1) return (float)s;
  bits += (lost > 0) == (s > 0) ? 1 : UINT64_MAX;
  memcpy(&s, &bits, sizeof s);
  return (float)s;
}

/* As share_divisor.c finds it. */
static float reciprocal_of(float b) {
  uint32_t bits = 0x7ef311c3 - bits_of(b);
  float y, e;
  memcpy(&y, &bits, sizeof y);
  e = fused(-b, y, 1);
  y = fused(y, fused(e, e, e), y);
  y = fused(y, fused(-b, y, 1), y);
  return fused(y, fused(-b, y, 1), y);
}

/* For a fraction of ones it is not, and share_divisor.c does not use it. */
static void test_reciprocals(void) {
  uint64_t wrong = 0;
  for (uint32_t b = 1u << 23; b < (1u << 24) - 1; b++) wrong += reciprocal_of((float)b) != 1 / (float)b;
  CHECK_EQ_U64(wrong, 0);
}

static float quotient_by(float a, float b, float y) {
  float q = a * y;
  return fused(fused(-q, b, a), y, q);
}

typedef struct tally {
  uint64_t tried, wrong;
} tally;

/* As ptx/divide.c divides without a call. */
static float wide_quotient(float a, float b) {
  double x = a, by = b, y, e, q;
  uint64_t bits;
  memcpy(&bits, &by, sizeof bits);
  bits = UINT64_C(0x7fde6238502484ba) - bits;
  memcpy(&y, &bits, sizeof y);
  for (int i = 0; i < 2; i++) {
    e = fma(-by, y, 1);
    y = fma(y, fma(e, e, e), y);
  }
  q = x * y;
  return (float)fma(fma(-by, q, x), y, q);
}

/* The pairs of 24-bit integers with A 2^m - B N = k and an odd N of 25 bits: N is twice the middle of two f32, and A /
 * B lies k / B of the least distance from it. */
static void try_distance(uint32_t b, uint32_t inverse, unsigned even, unsigned m, int64_t k, tally *t) {
  uint32_t step = 1u << (m - even), n = ((uint32_t)(-k >> even) * inverse) & (step - 1);
  float divisor = (float)b, reciprocal = 1 / divisor;
  for (; n < 1u << 25; n += step) {
    int64_t a = ((int64_t)b * n + k) >> m;
    int is_below = m == 25;
    if (n < 1u << 24 || !(n & 1) || a < 1 << 23 || a >= 1 << 24 || (a < (int64_t)b) != is_below) continue;
    t->tried++;
    t->wrong += quotient_by((float)a, divisor, reciprocal) != (float)a / divisor;
    if (a % 8 == 0) t->wrong += wide_quotient((float)a, divisor) != (float)a / divisor;
  }
}

/* More than share_divisor.c says can go wrong. */
static void test_hard_quotients(void) {
  tally t = {0};
  enum { MOST_DISTANCE = 7 };
  for (uint32_t b = 1u << 23; b < 1u << 24; b++) {
    unsigned even = 0;
    while (!(b >> even & 1)) even++;
    if (even > 2) continue; /* k would be a multiple of 8 */
    uint32_t odd = b >> even, inverse = odd;
    for (int i = 0; i < 4; i++) inverse *= 2 - odd * inverse;
    for (int64_t k = -MOST_DISTANCE; k <= MOST_DISTANCE; k++)
      if (k != 0 && k % (1 << even) == 0)
        for (unsigned m = 24; m <= 25; m++) try_distance(b, inverse, even, m, k, &t);
  }
  CHECK(t.tried > 1 << 23);
  CHECK_EQ_U64(t.wrong, 0);
}

/* Subnormal quotients, of which half are in the middle of two or next to it. */
static void test_subnormal_quotients(void) {
  uint64_t wrong = 0;
  for (uint32_t i = 0; i < 1u << 20; i++) {
    uint32_t n = 2 * (i % 2039) + 1, by = 4096 + i / 2039, off = i % 4 / 3;
    float a = ldexpf((float)(n * by + off), -80), b = ldexpf((float)by, 149 - 79 - (int)(i % 3));
    wrong += wide_quotient(a, b) != a / b;
  }
  CHECK_EQ_U64(wrong, 0);
}

/* ---- quotients that are rounded to bf16 -------------------------------------------------------------------------- */

static uint32_t rounded(float a) { return (bits_of(a) + 0x7fff + (bits_of(a) >> 16 & 1)) >> 16; }

/* 1 if share_divisor.c takes the product: its low bits are not those from a middle on. */
static int is_far(float q) { return bits_of(q) % 0x10000 < 0x8000 || bits_of(q) % 0x10000 > 0x8002; }

/* Dividends around the middles of two bf16 times a divisor, and divided by 2^`cut`. */
static void try_middles(float divisor, int cut, tally *near, tally *far) {
  float reciprocal = 1 / divisor, unit = ldexpf(1, -23 - cut);
  if (fused(reciprocal, -divisor, 1) > 0) reciprocal = nextafterf(reciprocal, 1);
  for (uint32_t middle = 257; middle < 512; middle += 2) {
    uint64_t product = (uint64_t)middle * (uint64_t)divisor;
    int shift = product >> 32 != 0 ? 9 : 8; /* of 24 bits */
    for (int64_t off = -5; off <= 3; off++) {
      float a = ldexpf((float)((int64_t)(product >> shift) + off), shift) * unit, q = a * reciprocal;
      tally *t = is_far(q) ? far : near;
      t->tried++;
      t->wrong += rounded(q) != rounded(a / divisor);
    }
  }
}

/* The quotients are normal, then subnormal. */
static void test_rounded_quotients(void) {
  tally near = {0}, far = {0};
  for (int cut = 0; cut <= 134; cut += 67)
    for (uint32_t b = 1u << 23; b < 1u << 24; b += 2039) try_middles((float)b, cut, &near, &far);
  CHECK(near.tried > 1 << 18);
  CHECK(near.wrong > 0);
  CHECK(far.tried > 1 << 20);
  CHECK_EQ_U64(far.wrong, 0);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

enum { EACH = 17, LANES = 64, BLOCKS = 64, COUNT_OF_VALUES = EACH * LANES * BLOCKS };

static uint32_t values[COUNT_OF_VALUES], divisors[LANES * BLOCKS];
static uint32_t results[2][COUNT_OF_VALUES];

static uint64_t next_random(void) {
  static uint64_t state = 17;
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return state >> 32;
}

/* Around these the tests change their minds: zeros, subnormal, the bounds of divisor and quotient, of exp, NaN. */
static const uint32_t edges[] = {0,          1,          0x007fffff, 0x00800000, 0x14800000, 0x37800000, 0x3f800000,
                                 0x42aeac4f, 0x42b17217, 0x42cff1b4, 0x5f800000, 0x7f7fffff, 0x7f800000, 0x7fc00000,
                                 0x7f800001, 0x1f800000, 0x3fffffff, 0x40c00000, 0x4265521f, 0x428147df};

/* Of ten: seven usual ones, a neighbour of an edge, what lies above one, one of any bits. */
static uint32_t draw(int usual_only) {
  uint64_t kind = usual_only ? 0 : next_random() % 10, random = next_random();
  if (kind < 7) return (uint32_t)(0x3d000000 + random % 0x04000000) | (uint32_t)(random & 1) << 31;
  if (kind == 9) return (uint32_t)random;
  uint32_t near = kind == 7 ? (uint32_t)(random >> 8) % 3 - 1 : (uint32_t)(random >> 8) & 0x3fffff;
  return (edges[random % COUNT(edges)] + near) ^ (uint32_t)(random >> 7 & 1) << 31;
}

/* Near the greatest numbers, or around the least quotient. */
static uint32_t draw_far(int is_large) {
  return (uint32_t)((is_large ? 0x7e000000 : 0x12000000) + next_random() % 0x01800000);
}

/* What a lane divides so that all its quotients lie around the middle of two bf16; or around zero. */
static void draw_near_middles(uint32_t lane) {
  float divisor = ldexpf((float)(next_random() % (1 << 24) + (1 << 23)), -20), quotient;
  divisors[lane] = bits_of(divisor);
  for (uint32_t i = 0; i < EACH; i++) {
    uint32_t bits = draw(1) | 0xffff, product;
    bits -= 0x7fff;
    memcpy(&quotient, &bits, sizeof quotient);
    product = bits_of(quotient * divisor) + (uint32_t)(next_random() % 5) - 2;
    values[lane * EACH + i] = lane % 64 == 14 && i == lane / 64 % EACH ? draw_far(0) : product;
  }
}

/* Lanes with usual values alone, with one other in each place, with any, and with extreme ones alone. */
static void draw_all(void) {
  for (uint32_t lane = 0; lane < LANES * BLOCKS; lane++) {
    divisors[lane] = draw(lane % 4 != 3);
    for (uint32_t i = 0; i < EACH; i++)
      values[lane * EACH + i] = draw(lane % 4 == 0 || (lane % 4 == 1 && i != lane / 4 % EACH));
  }
  for (uint32_t lane = 7; lane < LANES * BLOCKS; lane += 16) {
    for (uint32_t i = 0; i < EACH; i++) values[lane * EACH + i] = draw_far(lane & 16);
    if (lane & 16) divisors[lane] = draw_far(1);
  }
  for (uint32_t lane = 14; lane < LANES * BLOCKS; lane += 32) draw_near_middles(lane);
  for (uint32_t i = 0; i < COUNT(edges) * COUNT(edges); i++) { /* and each edge with each */
    divisors[4 * i] = edges[i / COUNT(edges)];
    values[4 * i * EACH + i % EACH] = edges[i % COUNT(edges)];
  }
}

static void run(const char *text, hg_executor *on, uint32_t *y) {
  executor = on;
  hg_kernel *kernel = kernel_of(text);
  hg_buffer *buffer[3] = {buffer_of(sizeof values, values), buffer_of(sizeof divisors, divisors),
                          buffer_of(sizeof values, NULL)};
  hg_binding bindings[] = {
      {.name = "x", .buffer = buffer[0]}, {.name = "s", .buffer = buffer[1]}, {.name = "y", .buffer = buffer[2]}};
  hg_launch_desc desc = {.size = sizeof desc, .grid = {BLOCKS, 1, 1}, .bindings = bindings, .binding_count = 3};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(buffer[2], 0, y, sizeof values), HG_OK);
  for (int i = 0; i < 3; i++) hg_buffer_release(buffer[i]);
  hg_kernel_release(kernel);
}

/* Each of a lane's values, by an instruction that writes `$` of it. Results are kept as numbers, as bits and as bf16,
 * which look at a NaN in three ways. */
static void check_each(const char *insn, const char *stored) {
  char text[8192];
  size_t used = (size_t)snprintf(text, sizeof text,
                                 ".program p\n.block %d\n.buffer x f32 in\n.buffer s f32 in\n.buffer y u32 out\n"
                                 "mad.u32 r0, r253, #%d, blane\nldg.f32 r1, [s + r0]\nmul.u32 r0, r0, #%d\n",
                                 LANES, LANES, EACH);
  for (int i = 0; i < EACH; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "ldg.f32 r%d, [x + r0 + #%d]\n", 10 + i, i);
  for (int i = 0; i < EACH; i++) {
    char with[16];
    snprintf(with, sizeof with, "r%d", 10 + i);
    for (const char *c = insn; *c != '\0'; c++)
      used += (size_t)(*c == '$' ? snprintf(text + used, sizeof text - used, "%s", with)
                                 : snprintf(text + used, sizeof text - used, "%c", *c));
    used += (size_t)snprintf(text + used, sizeof text - used, "\n");
  }
  for (int i = 0; i < EACH; i++)
    used += strcmp(stored, "bf16") == 0
                ? (size_t)snprintf(text + used, sizeof text - used,
                                   "cvt.bf16.f32 r%d, r%d\nbitcast.u16.bf16 r%d, r%d\ncvt.u32.u16 r%d, r%d\n", 10 + i,
                                   10 + i, 10 + i, 10 + i, 10 + i, 10 + i)
                : (size_t)snprintf(text + used, sizeof text - used, "bitcast.u32.f32 r%d, r%d\n", 10 + i, 10 + i);
  for (int i = 1; i < EACH; i++) /* what is stored first needs all of them: so no store comes between */
    used += (size_t)snprintf(text + used, sizeof text - used, "xor.u32 r10, r10, r%d\n", 10 + i);
  for (int i = 0; i < EACH; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "stg.u32 [y + r0 + #%d], r%d\n", i, 10 + i);
  snprintf(text + used, sizeof text - used, "exit\n");
  run(text, reference, results[0]);
  run(text, tested, results[1]);
  uint64_t wrong = 0;
  for (uint32_t i = 0; i < COUNT_OF_VALUES; i++) {
    if (results[0][i] == results[1][i]) continue;
    if (wrong++ < 5)
      printf("%s: x %08x s %08x: %08x, not %08x\n", insn, (unsigned)values[i], (unsigned)divisors[i / EACH],
             (unsigned)results[1][i], (unsigned)results[0][i]);
  }
  CHECK_EQ_U64(wrong, 0);
}

/* One division and one root of a lane, of all kinds of numbers. */
static void test_alone(void) {
  static const char text[] =
      ".program p\n.block 64\n.buffer x f32 in\n.buffer s f32 in\n.buffer y u32 out\n"
      "mad.u32 r0, r253, #64, blane\nmul.u32 r3, r0, #9\nldg.f32 r1, [x + r3]\nldg.f32 r2, [s + r0]\n"
      "div.f32 r4, r1, r2\nbitcast.u32.f32 r5, r4\nstg.u32 [y + r3], r5\n"
      "sqrt.f32 r4, r1\nbitcast.u32.f32 r5, r4\nstg.u32 [y + r3 + #1], r5\nmovi.f32 r4, #1\n"
                             "div.f32 r4, r4, r2\nbitcast.u32.f32 r5, r4\nstg.u32 [y + r3 + #2], r5\nexit\n";
  run(text, reference, results[0]);
  run(text, tested, results[1]);
  CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
}

/* Behind a comparison bits may still be those of a NaN, which must be the ISA's: x / x for x < 1. */
static void test_cast_behind_branch(void) {
  static const char text[] = ".program p\n.block 64\n.buffer x f32 in\n.buffer s f32 in\n.buffer y u32 out\n"
                             "mad.u32 r0, r253, #64, blane\nldg.f32 r1, [x + r0]\nset.lt.f32 p0, r1, #1\n@p0 bra less\n"
                             "bitcast.u32.f32 r2, r1\nbra done\nless:\ndiv.f32 r1, r1, r1\nbitcast.u32.f32 r2, r1\n"
                             "done:\nstg.u32 [y + r0], r2\nexit\n";
  run(text, reference, results[0]);
  run(text, tested, results[1]);
  CHECK(memcmp(results[0], results[1], sizeof results[0]) == 0);
}

int main(void) {
  static const char *const insns[] = {"div.f32 $, $, r1",
                                      "exp.f32 $, $",
                                      "sub.f32 $, $, r1\nexp.f32 $, $\ndiv.f32 $, $, r1",
                                      "log.f32 $, $",
                                      "log1p.f32 $, $",
                                      "exp.f32 r2, $\nlog2.f32 $, $\nadd.f32 $, $, r2",
                                      "tanh.f32 $, $",
                                      "div.f32 $, r1, $",
                                      "sqrt.f32 $, $",
                                      "exp.f32 $, $\ndiv.f32 r1, r1, $"};
  open_both();
  test_reciprocals();
  test_hard_quotients();
  test_subnormal_quotients();
  test_rounded_quotients();
  draw_all();
  for (size_t i = 0; i < COUNT(insns); i++) {
    check_each(insns[i], "f32");
    check_each(insns[i], "bf16");
  }
  test_alone();
  test_cast_behind_branch();
  close_both();
  return check_report();
}
