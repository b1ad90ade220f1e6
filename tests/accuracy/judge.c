/* judge.c - judges every function of the ISA, as the reference machine computes it, by MPFR.
 *
 *   judge [--samples N] [--op NAME] [--type f32|f64] [--processes P] [--markdown]
 *
 * Each function gets N inputs spread evenly over every exponent and both signs, N/2 more where functions bend
 * (exponents around 0) and every special value (in each slot). A result must be within the function's bound of the
 * exact value in ulp (units in the last place of the type at the exact value; 2^-149 or 2^-1074 below the normal
 * range), and special values must agree bit for bit. One line a function; the last line is `N passed, N failed`. */
#include "atlas/interp.h"
#include "atlas/value.h"

#include <mpfr.h>

#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PRECISION = 192 };

/* ---- references -------------------------------------------------------------------------------------------------- */

typedef struct scratch {
  mpfr_t a, b, result, t, error, unit;
} scratch;

typedef void (*reference)(scratch *s); /* result = f(a, b), at PRECISION bits */

#define UNARY(name, call) \
  static void ref_##name(scratch *s) { call(s->result, s->a, MPFR_RNDN); }
UNARY(cbrt, mpfr_cbrt)
UNARY(exp, mpfr_exp)
UNARY(exp2, mpfr_exp2)
UNARY(expm1, mpfr_expm1)
UNARY(log, mpfr_log)
UNARY(log2, mpfr_log2)
UNARY(log10, mpfr_log10)
UNARY(log1p, mpfr_log1p)
UNARY(sin, mpfr_sin)
UNARY(cos, mpfr_cos)
UNARY(tan, mpfr_tan)
UNARY(sinpi, mpfr_sinpi)
UNARY(cospi, mpfr_cospi)
UNARY(asin, mpfr_asin)
UNARY(acos, mpfr_acos)
UNARY(atan, mpfr_atan)
UNARY(sinh, mpfr_sinh)
UNARY(cosh, mpfr_cosh)
UNARY(tanh, mpfr_tanh)
UNARY(erf, mpfr_erf)
UNARY(erfc, mpfr_erfc)
#undef UNARY

/* IEEE 754-2019 rSqrt(-0) is -infinity, where MPFR has +infinity. */
static void ref_rsqrt(scratch *s) {
  if (mpfr_zero_p(s->a)) mpfr_set_inf(s->result, mpfr_signbit(s->a) ? -1 : 1);
  else mpfr_rec_sqrt(s->result, s->a, MPFR_RNDN);
}

static void ref_pow(scratch *s) { mpfr_pow(s->result, s->a, s->b, MPFR_RNDN); }
static void ref_atan2(scratch *s) { mpfr_atan2(s->result, s->a, s->b, MPFR_RNDN); }
static void ref_fmod(scratch *s) { mpfr_fmod(s->result, s->a, s->b, MPFR_RNDN); }

/* t = 1 / (1 + e^-t) */
static void logistic(scratch *s) {
  mpfr_neg(s->t, s->t, MPFR_RNDN);
  mpfr_exp(s->t, s->t, MPFR_RNDN);
  mpfr_add_ui(s->t, s->t, 1, MPFR_RNDN);
  mpfr_ui_div(s->t, 1, s->t, MPFR_RNDN);
}

static void ref_sigmoid(scratch *s) {
  mpfr_set(s->t, s->a, MPFR_RNDN);
  logistic(s);
  mpfr_set(s->result, s->t, MPFR_RNDN);
}

/* At -inf silu and both forms of gelu approach zero from below. */
static int silu_special(scratch *s) {
  if (mpfr_nan_p(s->a) || mpfr_zero_p(s->a)) mpfr_set(s->result, s->a, MPFR_RNDN);
  else if (mpfr_inf_p(s->a) && mpfr_signbit(s->a)) mpfr_set_zero(s->result, -1);
  else return 0;
  return 1;
}

static void ref_silu(scratch *s) {
  if (silu_special(s)) return;
  mpfr_set(s->t, s->a, MPFR_RNDN);
  logistic(s);
  mpfr_mul(s->result, s->a, s->t, MPFR_RNDN);
}

/* a/2 erfc(-a / sqrt 2): no cancellation on either side */
static void ref_gelu(scratch *s) {
  if (silu_special(s)) return;
  mpfr_set_ui(s->t, 2, MPFR_RNDN);
  mpfr_sqrt(s->t, s->t, MPFR_RNDN);
  mpfr_div(s->t, s->a, s->t, MPFR_RNDN);
  mpfr_neg(s->t, s->t, MPFR_RNDN);
  mpfr_erfc(s->t, s->t, MPFR_RNDN);
  mpfr_mul(s->result, s->a, s->t, MPFR_RNDN);
  mpfr_div_2ui(s->result, s->result, 1, MPFR_RNDN);
}

/* a/2 (1 + tanh u) = a / (1 + e^-2u) */
static void ref_gelu_tanh(scratch *s) {
  if (silu_special(s)) return;
  mpfr_const_pi(s->unit, MPFR_RNDN);
  mpfr_ui_div(s->unit, 2, s->unit, MPFR_RNDN);
  mpfr_sqrt(s->unit, s->unit, MPFR_RNDN);
  mpfr_pow_ui(s->t, s->a, 3, MPFR_RNDN);
  mpfr_mul_ui(s->t, s->t, 44715, MPFR_RNDN);
  mpfr_div_ui(s->t, s->t, 1000000, MPFR_RNDN);
  mpfr_add(s->t, s->t, s->a, MPFR_RNDN);
  mpfr_mul(s->t, s->t, s->unit, MPFR_RNDN);
  mpfr_mul_2ui(s->t, s->t, 1, MPFR_RNDN);
  logistic(s);
  mpfr_mul(s->result, s->a, s->t, MPFR_RNDN);
}

typedef struct judged {
  const char *name; /* mnemonic */
  atlas_op op;
  reference reference;
  int arguments;
  double bound[2]; /* f32, f64: the largest error the documentation promises, in ulp */
} judged;

#include "bounds.h"
enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static uint64_t random_state;

static uint64_t random64(void) { /* splitmix64 (Steele, Lea, Flood 2014) */
  uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

typedef struct shape {
  int fraction_bits, bias;
} shape;

static shape shape_of(atlas_type type) { return type == ATLAS_f32 ? (shape){23, 127} : (shape){52, 1023}; }

static uint64_t random_fraction(shape f) {
  uint64_t mask = (UINT64_C(1) << f.fraction_bits) - 1, r = random64();
  switch (r & 15) {
  case 0: return random64() & 7;                 /* just above a power of two */
  case 1: return mask - (random64() & 7);        /* just below one */
  case 2: return random64() & mask & ~(mask >> (random64() % 16)); /* few leading bits */
  default: return random64() & mask;
  }
}

static uint64_t with_exponent(shape f, int biased) {
  uint64_t sign = (random64() & 1) << (f.fraction_bits == 23 ? 31 : 63);
  return sign | (uint64_t)biased << f.fraction_bits | random_fraction(f);
}

static uint64_t spread_input(shape f, uint64_t i) { return with_exponent(f, (int)(i % (uint64_t)(2 * f.bias + 1))); }

static uint64_t bend_input(shape f, uint64_t i) { return with_exponent(f, f.bias - 30 + (int)(i % 42)); }

static const double special_values[] = {
    0.0,   0.25,  0.5,   1.0,   1.5,    2.0,    3.0,    4.0,    10.0,       88.5,       127.0,
    128.0, 149.0, 150.0, 709.5, 1023.0, 1024.0, 1074.0, 1075.0, 16777216.0, 16777217.0, 9007199254740993.0};
enum { SPECIAL_NUMBERS = sizeof special_values / sizeof special_values[0], SPECIAL_COUNT = 2 * SPECIAL_NUMBERS + 12 };

static uint64_t special_input(atlas_type type, int k) {
  shape f = shape_of(type);
  uint64_t sign = UINT64_C(1) << (type == ATLAS_f32 ? 31 : 63), infinity = (uint64_t)(2 * f.bias + 1)
                                                                           << f.fraction_bits;
  uint64_t normal = UINT64_C(1) << f.fraction_bits;
  if (k < 2 * SPECIAL_NUMBERS) return atlas_round_f64(type, special_values[k / 2]) | (k & 1 ? sign : 0);
  const uint64_t edges[6] = {infinity, infinity + normal / 2, 1, normal - 1, normal, infinity - 1};
  k -= 2 * SPECIAL_NUMBERS;
  return edges[k / 2] | (k & 1 ? sign : 0);
}

/* A second argument that gives the first an interesting partner. */
static uint64_t partner(const judged *j, atlas_type type, uint64_t a, uint64_t i) {
  shape f = shape_of(type);
  if (i % 3 == 0) return spread_input(f, random64());
  if (j->op == ATLAS_OP_pow) { /* results over the whole range, and near 1 */
    double x = fabs(atlas_to_f64(type, a)), scale = i % 3 == 1 ? (type == ATLAS_f32 ? 110.0 : 760.0) : 2.0;
    double target = scale * (2.0 * (double)(random64() >> 11) / 9007199254740992.0 - 1.0);
    double y = target / log(x);
    return i % 7 == 0 ? atlas_round_f64(type, rint(y)) : atlas_round_f64(type, y);
  }
  int exponent = (int)(a >> f.fraction_bits) & (2 * f.bias + 1), shifted = exponent + (int)(random64() % 9) - 4;
  if (shifted < 0) shifted = 0;
  if (shifted > 2 * f.bias) shifted = 2 * f.bias;
  return with_exponent(f, shifted);
}

/* ---- judging ----------------------------------------------------------------------------------------------------- */

typedef struct verdict {
  double worst;
  uint64_t worst_a, worst_b, count, wrong, wrong_a, wrong_b, wrong_got;
} verdict;

static void set_mpfr(mpfr_t out, atlas_type type, uint64_t bits) {
  if (type == ATLAS_f32) mpfr_set_flt(out, atlas_as_f32(bits), MPFR_RNDN);
  else mpfr_set_d(out, atlas_as_f64(bits), MPFR_RNDN);
}

/* |got - exact| in ulp; infinity counts as the power of two above the largest number. */
static double error_in_ulp(scratch *s, atlas_type type, uint64_t got) {
  shape f = shape_of(type);
  long exponent = (long)mpfr_get_exp(s->result) - 1, lowest = 1 - f.bias;
  if (exponent < lowest) exponent = lowest;
  if (exponent > f.bias) exponent = f.bias;
  set_mpfr(s->t, type, got);
  if (mpfr_inf_p(s->t)) mpfr_set_si_2exp(s->t, mpfr_signbit(s->t) ? -1 : 1, f.bias + 1, MPFR_RNDN);
  if (mpfr_inf_p(s->result) || mpfr_cmpabs_ui(s->result, 0) == 0) return HUGE_VAL;
  mpfr_sub(s->error, s->t, s->result, MPFR_RNDN);
  mpfr_mul_2si(s->error, s->error, f.fraction_bits - exponent, MPFR_RNDN);
  double error = fabs(mpfr_get_d(s->error, MPFR_RNDU));
  /* Beyond the largest number by half a unit and more, infinity is the rounded result, however far. */
  return mpfr_get_exp(s->result) - 1 > f.bias && error > 1 && isinf(atlas_to_f64(type, got)) ? 0 : error;
}

static void judge_one(const judged *j, atlas_type type, uint64_t a, uint64_t b, scratch *s, verdict *v) {
  uint64_t got = atlas_function(j->op, type, a, b);
  set_mpfr(s->a, type, a);
  set_mpfr(s->b, type, b);
  j->reference(s);
  v->count++;
  double error = 0;
  int ok;
  uint64_t sign = type == ATLAS_f32 ? UINT64_C(1) << 31 : UINT64_C(1) << 63;
  if (mpfr_nan_p(s->result)) ok = got == atlas_canonical_nan(type);
  else if (mpfr_inf_p(s->result)) ok = got == (atlas_round_f64(type, HUGE_VAL) | (mpfr_signbit(s->result) ? sign : 0));
  else if (mpfr_zero_p(s->result)) ok = got == (mpfr_signbit(s->result) ? sign : 0);
  else {
    double value = atlas_to_f64(type, got);
    ok = value == value && (got & sign) == (mpfr_signbit(s->result) ? sign : 0);
    if (ok) error = error_in_ulp(s, type, got);
  }
  if (!ok) {
    if (v->wrong++ == 0) {
      v->wrong_a = a;
      v->wrong_b = b;
      v->wrong_got = got;
    }
  } else if (error > v->worst) {
    v->worst = error;
    v->worst_a = a;
    v->worst_b = b;
  }
}

static verdict judge(const judged *j, atlas_type type, uint64_t samples) {
  verdict v = {0};
  scratch s;
  mpfr_inits2(PRECISION, s.a, s.b, s.result, s.t, s.error, s.unit, (mpfr_ptr)0);
  shape f = shape_of(type);
  random_state = 0x5eed0000u + (uint64_t)j->op * 2 + (type == ATLAS_f64);
  for (int k = 0; k < SPECIAL_COUNT; k++)
    for (int n = 0; n < (j->arguments == 2 ? SPECIAL_COUNT : 1); n++)
      judge_one(j, type, special_input(type, k), special_input(type, n), &s, &v);
  for (uint64_t i = 0; i < samples + samples / 2; i++) {
    uint64_t a = i < samples ? spread_input(f, i) : bend_input(f, i);
    judge_one(j, type, a, j->arguments == 2 ? partner(j, type, a, i) : 0, &s, &v);
  }
  mpfr_clears(s.a, s.b, s.result, s.t, s.error, s.unit, (mpfr_ptr)0);
  return v;
}

/* ---- the command ------------------------------------------------------------------------------------------------- */

static int report(const judged *j, int t, const verdict *v, int markdown) {
  int width = t == 0 ? 8 : 16, failed = v->wrong > 0 || !(v->worst <= j->bound[t]);
  if (markdown) {
    printf("| %s.%s | %.3f | %.2f | `%0*llx`", j->name, t == 0 ? "f32" : "f64", v->worst, j->bound[t], width,
           (unsigned long long)v->worst_a);
    if (j->arguments == 2) printf(", `%0*llx`", width, (unsigned long long)v->worst_b);
    printf(" | %llu |\n", (unsigned long long)v->count);
  } else {
    printf("%-4s %-9s %s  worst %.4f ulp (bound %.2f) at %0*llx", failed ? "FAIL" : "ok", j->name,
           t == 0 ? "f32" : "f64", v->worst, j->bound[t], width, (unsigned long long)v->worst_a);
    if (j->arguments == 2) printf(" %0*llx", width, (unsigned long long)v->worst_b);
    printf(", %llu inputs", (unsigned long long)v->count);
    if (v->wrong > 0)
      printf(", %llu wrong special results, first f(%0*llx, %0*llx) = %0*llx", (unsigned long long)v->wrong, width,
             (unsigned long long)v->wrong_a, width, (unsigned long long)v->wrong_b, width,
             (unsigned long long)v->wrong_got);
    printf("\n");
  }
  fflush(stdout);
  return failed;
}

int main(int argc, char **argv) {
  uint64_t samples = 20000;
  const char *only_op = NULL, *only_type = NULL;
  int markdown = 0, processes = 1;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--markdown") == 0) markdown = 1;
    else if (i + 1 < argc && strcmp(argv[i], "--samples") == 0) samples = strtoull(argv[++i], NULL, 10);
    else if (i + 1 < argc && strcmp(argv[i], "--op") == 0) only_op = argv[++i];
    else if (i + 1 < argc && strcmp(argv[i], "--type") == 0) only_type = argv[++i];
    else if (i + 1 < argc && strcmp(argv[i], "--processes") == 0) processes = atoi(argv[++i]);
    else {
      fprintf(stderr, "usage: judge [--samples N] [--op NAME] [--type f32|f64] [--processes P] [--markdown]\n");
      return 2;
    }
  }
  if (processes < 1 || processes > 64) processes = 1;
  int passed = 0, failed = 0, pipes[64][2];
  for (int p = 0; p < processes; p++) { /* each child takes every P-th function and sends its verdicts */
    if (pipe(pipes[p]) != 0) return 1;
    pid_t child = fork();
    if (child < 0) return 1;
    if (child > 0) {
      close(pipes[p][1]);
      continue;
    }
    for (int k = p; k < 2 * FUNCTION_COUNT; k += processes) {
      const judged *j = &functions[k / 2];
      if ((only_op != NULL && strcmp(only_op, j->name) != 0) ||
          (only_type != NULL && strcmp(only_type, k % 2 ? "f64" : "f32") != 0))
        continue;
      verdict v = judge(j, k % 2 ? ATLAS_f64 : ATLAS_f32, samples);
      if (write(pipes[p][1], &k, sizeof k) != sizeof k || write(pipes[p][1], &v, sizeof v) != sizeof v) _exit(1);
    }
    _exit(0);
  }
  if (markdown) printf("| function | worst, ulp | bound | at | inputs |\n| --- | --- | --- | --- | --- |\n");
  for (int k = 0; k < 2 * FUNCTION_COUNT; k++) { /* children work in this order, so the pipes are read in turn */
    const judged *j = &functions[k / 2];
    if ((only_op != NULL && strcmp(only_op, j->name) != 0) ||
        (only_type != NULL && strcmp(only_type, k % 2 ? "f64" : "f32") != 0))
      continue;
    int got = -1;
    verdict v = {0};
    if (read(pipes[k % processes][0], &got, sizeof got) != sizeof got || got != k ||
        read(pipes[k % processes][0], &v, sizeof v) != sizeof v) {
      fprintf(stderr, "judge: a process ended early\n");
      return 1;
    }
    if (report(j, k % 2, &v, markdown)) failed++;
    else passed++;
  }
  for (int p = 0; p < processes; p++) wait(NULL);
  if (!markdown) printf("%d passed, %d failed\n", passed, failed);
  return failed > 0;
}
