/* gelu_tanh.c - moves the constants of gelu.tanh in src/functions/exp.atlas, which begin as those of exp.sollya, by
 * units in the last place until the worst error is least. In rounds: the arguments with large errors are collected,
 * and then changes are kept that do not make the worst of them worse. About a minute:
 *
 *     cc -O2 -march=native -ffp-contract=off -o gelu_tanh gelu_tanh.c -lm && ./gelu_tanh */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9, TRIES = 1500, MOST = 1 << 20, CONSTANTS = 7 };

/* Of e^-kr, the highest first; then what ln 2 / k lacks in 15 bits, over these. */
static float constant[CONSTANTS] = {0x1.9629fp-33f, -0x1.0a5092p-26f, 0x1.21f0cp-20f,  -0x1.fbecd6p-15f,
                                    0x1.4dad5ep-9f, -0x1.2444f4p-4f,  -0x1.187b66p-19f};
static const int reach[CONSTANTS] = {200, 200, 50, 4, 2, 2, 20};
static float worst_at[MOST];
static int kept;

static float as_float(uint32_t bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return bits;
}

/* gelu.tanh of -t, as the text has it. */
static float function(float t) {
  const float *c = constant;
  float y = fmaf(t, t, 0x1.65d26p4f), rest = fmaf(t, t, 0x1.65d26p4f - y) - 0x1.226128p-20f;
  float m = fmaf(t * y, -0x1.a5a7dp-4f, 0x1.8p23f), n = fmaf(m, 0x1.36dap3f, -0x1.d247p26f);
  float r = fmaf(n, c[6], fmaf(t, rest, fmaf(t, y, n))), s = as_float((bits_of(m) << 23) + 0xcd800000u);
  float w = fmaf(c[0], r, c[1]);
  for (int i = 2; i < 6; i++) w = fmaf(w, r, c[i]);
  w *= r;
  float one = s - 0x1p28f, d = fmaf(s, w, one), seed = as_float(0xfef33400u - bits_of(d));
  seed *= fmaf(d, seed, 0x1.0029f2p1f);
  float q = fmaf(t, w, t) * seed, recip = fmaf(seed, fmaf(d, seed, 1), seed);
  q = fmaf(fmaf(fmaf(q, s, t), w, fmaf(q, one, t)), recip, q);
  return fmaf(q, s, -0x1p-126f);
}

static double error_at(float t) {
  double x = -(double)t, exact = x / (1 + exp(-2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  return fabs(function(t) - exact) / ldexp(1, ilogb(exact) - 23);
}

static double collect(uint32_t step) {
  double worst = 0;
  for (uint32_t k = bits_of(0.01f); k < bits_of(8.8f); k += step) { /* further out results come from integers */
    double error = error_at(as_float(k));
    if (error > worst) worst = error;
    if (error > 1.35 && kept < MOST) worst_at[kept++] = as_float(k);
  }
  return worst;
}

static double worst_kept(double enough) {
  double worst = 0;
  for (int i = 0; i < kept && worst <= enough; i++) {
    double error = error_at(worst_at[i]);
    if (error > worst) worst = error;
  }
  return worst;
}

int main(void) {
  float best[CONSTANTS];
  for (int round = 0; round < ROUNDS; round++) {
    printf("worst %.3f ulp:", collect(5 + (uint32_t)round % 3));
    for (int i = 0; i < CONSTANTS; i++) printf(" %a", constant[i]);
    printf("\n");
    double least = worst_kept(INFINITY);
    for (int k = 0; k < TRIES; k++) {
      memcpy(best, constant, sizeof best);
      for (int changes = 1 + rand() % 3; changes > 0; changes--) {
        int i = rand() % CONSTANTS;
        constant[i] = as_float(bits_of(constant[i]) + (uint32_t)(rand() % (2 * reach[i] + 1) - reach[i]));
      }
      double now = worst_kept(least);
      if (now <= least) least = now;
      else memcpy(constant, best, sizeof best);
    }
  }
  return 0;
}
