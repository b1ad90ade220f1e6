/* native.c - judges one Atlas function at native speed: the worst error, wrong special values, dependence on
 * flush-to-zero. The functions come from atlas2c.py:
 *
 *     atlas2c.py functions.c FILE.atlas...
 *     cc -O2 -march=native -ffp-contract=off -fno-math-errno -fno-trapping-math -DFUNCTIONS='"functions.c"' \
 *        -o native native.c -lmpfr -lgmp -lm
 *     ./native exp f32
 *
 * A unary f32 function is judged on all its inputs against glibc's double functions, which are wrong by less than
 * 2^-28 ulp of f32; the worst input is judged again by MPFR. Everything else is judged by MPFR on random inputs over
 * every exponent. An ulp is the spacing of the type at the true value, with the subnormal spacing below the smallest
 * normal number. To add a function: one row in `references`. */
#define _GNU_SOURCE
#include FUNCTIONS
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

enum { PRECISION = 200, BATCH = 4096, SHOWN = 10 };

/* ---- references -------------------------------------------------------------------------------------------------- */

static double ref_rsqrt(double x) { return x == 0 ? copysign(INFINITY, x) : 1 / sqrt(x); }
static double ref_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double ref_silu(double x) { return x == -INFINITY ? -0.0 : x / (1 + exp(-x)); }
static double ref_gelu(double x) { return x == -INFINITY ? -0.0 : x / 2 * erfc(-x * M_SQRT1_2); }
static double ref_gelu_tanh(double x)
{
    double u = 2 * sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
    return x == -INFINITY ? -0.0 : x / (1 + exp(-u));
}

/* Whole numbers are taken off before pi multiplies; an even one changes nothing. */
static double ref_sinpi(double x)
{
    double whole = nearbyint(x), y = sin(M_PI * (x - whole));
    return x == whole ? copysign(0, x) : fmod(whole, 2) != 0 ? -y : y;
}
static double ref_cospi(double x) { x = fabs(x - 2 * nearbyint(x / 2)); return sin(M_PI * (0.5 - x)); }

static void mp_rsqrt(mpfr_t r, const mpfr_t x)
{
    if (mpfr_zero_p(x)) mpfr_set_inf(r, mpfr_signbit(x) ? -1 : 1);
    else mpfr_rec_sqrt(r, x, MPFR_RNDN);
}
static void mp_sigmoid(mpfr_t r, const mpfr_t x)
{
    mpfr_neg(r, x, MPFR_RNDN);
    mpfr_exp(r, r, MPFR_RNDN);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}
static void mp_silu(mpfr_t r, const mpfr_t x)
{
    if (mpfr_inf_p(x) && mpfr_signbit(x)) { mpfr_set_zero(r, -1); return; }
    mp_sigmoid(r, x);
    mpfr_mul(r, r, x, MPFR_RNDN);
}
static void mp_gelu(mpfr_t r, const mpfr_t x)
{
    if (mpfr_inf_p(x) && mpfr_signbit(x)) { mpfr_set_zero(r, -1); return; }
    mpfr_sqrt_ui(r, 2, MPFR_RNDN);
    mpfr_div(r, x, r, MPFR_RNDN);
    mpfr_neg(r, r, MPFR_RNDN);
    mpfr_erfc(r, r, MPFR_RNDN);
    mpfr_mul(r, r, x, MPFR_RNDN);
    mpfr_div_2ui(r, r, 1, MPFR_RNDN);
}
static void mp_gelu_tanh(mpfr_t r, const mpfr_t x)
{
    if (mpfr_inf_p(x) && mpfr_signbit(x)) { mpfr_set_zero(r, -1); return; }
    mpfr_t t;
    mpfr_init2(t, PRECISION);
    mpfr_pow_ui(r, x, 3, MPFR_RNDN);
    mpfr_mul_ui(r, r, 44715, MPFR_RNDN);
    mpfr_div_ui(r, r, 1000000, MPFR_RNDN);
    mpfr_add(r, r, x, MPFR_RNDN);
    mpfr_const_pi(t, MPFR_RNDN);
    mpfr_ui_div(t, 8, t, MPFR_RNDN);
    mpfr_sqrt(t, t, MPFR_RNDN);
    mpfr_mul(r, r, t, MPFR_RNDN);
    mp_sigmoid(r, r);
    mpfr_mul(r, r, x, MPFR_RNDN);
    mpfr_clear(t);
}
#define MP1(f) static void mp_##f(mpfr_t r, const mpfr_t x) { mpfr_##f(r, x, MPFR_RNDN); }
#define MP2(f) static void mp_##f(mpfr_t r, const mpfr_t x, const mpfr_t y) { mpfr_##f(r, x, y, MPFR_RNDN); }
MP1(exp) MP1(exp2) MP1(expm1) MP1(log) MP1(log2) MP1(log10) MP1(log1p) MP1(sin) MP1(cos) MP1(tan) MP1(asin) MP1(acos)
MP1(sinpi) MP1(cospi) MP1(cbrt) MP1(atan) MP1(sinh) MP1(cosh) MP1(tanh) MP1(erf) MP1(erfc) MP2(pow) MP2(atan2) MP2(fmod)

static const struct reference {
    const char *op;
    double (*libm)(double);
    void (*mp1)(mpfr_t, const mpfr_t);
    void (*mp2)(mpfr_t, const mpfr_t, const mpfr_t);
} references[] = {
    { "rsqrt", ref_rsqrt, mp_rsqrt, 0 }, { "sigmoid", ref_sigmoid, mp_sigmoid, 0 },
    { "silu", ref_silu, mp_silu, 0 }, { "gelu", ref_gelu, mp_gelu, 0 }, { "gelu.tanh", ref_gelu_tanh, mp_gelu_tanh, 0 },
#define ROW(f) { #f, f, mp_##f, 0 }
    ROW(exp), ROW(exp2), ROW(expm1), ROW(log), ROW(log2), ROW(log10), ROW(log1p), ROW(sin), ROW(cos), ROW(tan),
    ROW(cbrt), ROW(asin), ROW(acos), ROW(atan), ROW(sinh), ROW(cosh), ROW(tanh), ROW(erf), ROW(erfc),
    { "sinpi", ref_sinpi, mp_sinpi, 0 }, { "cospi", ref_cospi, mp_cospi, 0 },
    { "pow", 0, 0, mp_pow }, { "atan2", 0, 0, mp_atan2 }, { "fmod", 0, 0, mp_fmod },
};

/* ---- judging ----------------------------------------------------------------------------------------------------- */

struct tally {
  uint64_t tried, wrong, flush,
      misses; /* wrong: special values and signs; misses: a result that could be exact and is not */
  double worst;
  double worst_input[2];
};

static struct format { int precision, least; double limit; } /* bits, exponent of the last subnormal bit, 2^emax+1 */
    const f32 = { 24, -149, 0x1p128 }, f64 = { 53, -1074, INFINITY };

static uint64_t bits_of(double x, int is_f32)
{
    return is_f32 ? BITCAST(uint32_t, float, (float)x) : BITCAST(uint64_t, double, x);
}

static void complain(struct tally *t, const char *what, const double *x, int arguments, double got, double want,
                     int is_f32) {
  if (t->wrong++ >= SHOWN) return;
  printf("  %s: (%a", what, x[0]);
  if (arguments == 2) printf(", %a", x[1]);
  printf(") gives %a [%#llx], should be %a\n", got, (unsigned long long)bits_of(got, is_f32), want);
}

/* The error in ulp where both are finite; a special value that is wrong is counted and has no error. want is the true
 * value rounded to double, or to the f64 format. */
static double judge_f32(struct tally *t, double x, float got, double want)
{
    if (want != want) {
        if (BITCAST(uint32_t, float, got) != 0x7fc00000u) complain(t, "not the canonical NaN", &x, 1, got, want, 1);
        return 0;
    }
    if (got != got || (isinf(want) && got != want) || ((want == 0 || got == 0) && !signbit(got) != !signbit(want)) ||
        (want == 0 && got != 0)) {
        complain(t, "wrong special value", &x, 1, got, want, 1);
        return 0;
    }
    if (isinf(want)) return 0;
    int e = ilogb(want);
    if (e > 127) e = 127; /* beyond the range: spacing of the last binade, infinity counts as 2^128 */
    double unit = ldexp(1, (want == 0 || e < -126 ? -126 : e) - 23);
    double g = isinf(got) ? copysign(0x1p128, got) : got;
    if (isinf(got) && fabs(want) >= 0x1p128 - 0x1p103) return 0;
    return fabs(g - want) / unit;
}

static double judge_mpfr(struct tally *t, const double *x, int arguments, double got, const mpfr_t want,
                         const struct format *f) {
  int is_f32 = f == &f32;
  double near = mpfr_get_d(want, MPFR_RNDN);
  if (mpfr_nan_p(want)) {
    if (bits_of(got, is_f32) != (is_f32 ? 0x7fc00000u : 0x7ff8000000000000u))
      complain(t, "not the canonical NaN", x, arguments, got, near, is_f32);
    return 0;
  }
  if (got != got || (mpfr_inf_p(want) && got != near) || (mpfr_zero_p(want) && got != 0) ||
      ((mpfr_zero_p(want) || got == 0) && !signbit(got) != !mpfr_signbit(want))) {
    complain(t, "wrong special value", x, arguments, got, near, is_f32);
    return 0;
  }
  if (mpfr_inf_p(want) || mpfr_zero_p(want)) return 0;
  long top = is_f32 ? 127 : 1023, e = mpfr_get_exp(want) - 1;
  if (e > top) e = top;
  if (e < f->least + f->precision - 1) e = f->least + f->precision - 1;
  mpfr_t d, limit;
  mpfr_inits2(PRECISION, d, limit, (mpfr_ptr)0);
  double error;
  mpfr_set_ui_2exp(limit, 1, top + 1, MPFR_RNDN);
  if (isinf(got)) { /* right from half a unit below 2^(top+1) */
    mpfr_abs(d, want, MPFR_RNDN);
    mpfr_sub(d, limit, d, MPFR_RNDN);
    if (signbit(got) != !!mpfr_signbit(want)) {
      complain(t, "wrong infinity", x, arguments, got, near, is_f32);
      mpfr_set_zero(d, 1);
    }
    mpfr_mul_2si(d, d, f->precision - 1 - e, MPFR_RNDN);
    error = mpfr_cmp_d(d, 0.5) <= 0 ? 0 : mpfr_get_d(d, MPFR_RNDN);
  } else {
    mpfr_sub_d(d, want, got, MPFR_RNDN);
    mpfr_mul_2si(d, d, f->precision - 1 - e, MPFR_RNDN);
    error = fabs(mpfr_get_d(d, MPFR_RNDN));
  }
  mpfr_clears(d, limit, (mpfr_ptr)0);
  return error;
}

static void note(struct tally *t, double error, const double *x, int arguments)
{
    t->tried++;
    if (error > t->worst) {
        t->worst = error;
        memcpy(t->worst_input, x, sizeof(double) * arguments);
    }
}

static unsigned flush_on(void)
{
#if defined(__x86_64__)
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040); /* FTZ, DAZ */
    return before;
#else
    return 0;
#endif
}

static void flush_restore(unsigned before)
{
#if defined(__x86_64__)
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

static uint64_t seed = 0x9e3779b97f4a7c15u;

static uint64_t next(void) /* splitmix64 */
{
    uint64_t z = seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(double low, double high) { return low + (high - low) * ((double)(next() >> 11) * 0x1p-53); }

/* Any bits, or an exponent near 0, or few significant bits there. */
static double any(int is_f32)
{
    uint64_t b = next(), kind = next() % 4;
    if (kind == 0) return is_f32 ? BITCAST(float, uint32_t, (uint32_t)b) : BITCAST(double, uint64_t, b);
    double x = ldexp(1 + (double)(b >> 12) * 0x1p-52, (int)(next() % 64) - 48 + 8 * (kind == 1));
    if (kind == 3) x = ldexp(floor(ldexp(x, (int)(next() % 12))), -(int)(next() % 8));
    x = b & 1 ? -x : x;
    return is_f32 ? (float)x : x;
}

static double low = 1, high = 0; /* --range */

static void draw(const char *op, int arguments, int is_f32, double *x)
{
    x[0] = low < high ? uniform(low, high) : any(is_f32);
    x[1] = any(is_f32);
    if (arguments == 2 && strcmp(op, "pow") == 0 && next() % 4 != 0) { /* results within the range, mostly */
        double l = log2(fabs(x[0])), reach = is_f32 ? 155 : 1080;
        if (next() % 4 == 0) x[0] = 1 + ldexp(uniform(-1, 1), -(int)(next() % 24)), l = log2(fabs(x[0]));
        if (x[0] < 0 && next() % 8) x[0] = -x[0];
        if (l != 0 && isfinite(l)) x[1] = uniform(-reach, reach) / l;
        if (x[0] < 0) x[1] = rint(x[1]);
    }
    if (arguments == 2 && strcmp(op, "pow") != 0 && next() % 2)
      x[1] = x[0] * ldexp(uniform(1, 2), (int)(next() % 24) - 12); /* near each other */
    if (is_f32) x[0] = (float)x[0], x[1] = (float)x[1];
}

static const double specials[] = {0.0,
                                  0x1p-149,
                                  0x1p-127,
                                  0x1p-126,
                                  0x1p-1074,
                                  0x1p-1022,
                                  0.5,
                                  1,
                                  1.5,
                                  2,
                                  3,
                                  4,
                                  5,
                                  10,
                                  88.72284,
                                  709.782712893384,
                                  745.1332191019412,
                                  0x1p23,
                                  0x1.000001p24,
                                  0x1p31,
                                  0x1p52,
                                  0x1.0000000000001p53,
                                  0x1p63,
                                  0x1.fffffep127,
                                  0x1.fffffffffffffp1023,
                                  0x1.fffffep-1,
                                  0x1.fffffffffffffp-1,
                                  0x1.000002p0,
                                  0x1.0000000000001p0,
                                  INFINITY,
                                  NAN};
enum { SPECIALS = sizeof specials / sizeof *specials };

static double special(uint64_t k) { return k & 1 ? -specials[k / 2 % SPECIALS] : specials[k / 2 % SPECIALS]; }

/* ---- the two ways ------------------------------------------------------------------------------------------------ */

static void exhaustive(struct tally *t, float (*f)(float), double (*libm)(double), uint64_t first, uint64_t end,
                       uint64_t step, int ftz) {
  static float x[BATCH], y[BATCH], z[BATCH];
  for (uint64_t start = first; start < end; start += step * BATCH) {
    int n = 0;
    for (uint64_t b = start; n < BATCH && b < end; b += step) x[n++] = BITCAST(float, uint32_t, (uint32_t)b);
    for (int i = 0; i < n; i++) y[i] = f(x[i]);
    if (ftz) {
      unsigned before = flush_on();
      for (int i = 0; i < n; i++) z[i] = f(x[i]);
      flush_restore(before);
      for (int i = 0; i < n; i++)
        if (memcmp(&y[i], &z[i], 4) != 0 && t->flush++ < SHOWN)
          printf("  flush-to-zero: %a gives %a, else %a\n", x[i], z[i], y[i]);
    }
    for (int i = 0; i < n; i++) {
      double want = libm((double)x[i]), d = x[i];
      note(t, judge_f32(t, d, y[i], want), &d, 1);
      if ((double)(float)want == want && y[i] != (float)want) t->misses++;
    }
  }
}

static void sampled(struct tally *t, size_t which, const struct reference *r, uint64_t count, int is_f32, int ftz)
{
    int arguments = atlas_functions[which].arguments;
    uint64_t fixed = arguments == 2 ? 4 * SPECIALS * SPECIALS : 2 * SPECIALS;
    mpfr_t a, b, want;
    mpfr_inits2(PRECISION, a, b, want, (mpfr_ptr)0);
    for (uint64_t k = 0; k < fixed + count; k++) {
        double x[2];
        if (k < fixed) x[0] = special(k % (2 * SPECIALS)), x[1] = special(k / (2 * SPECIALS));
        else draw(r->op, arguments, is_f32, x);
        if (is_f32) x[0] = (float)x[0], x[1] = (float)x[1];
        mpfr_set_d(a, x[0], MPFR_RNDN);
        mpfr_set_d(b, x[1], MPFR_RNDN);
        if (arguments == 2) r->mp2(want, a, b);
        else r->mp1(want, a);
#define CALL                                                                                  \
  (is_f32           ? arguments == 2 ? atlas_functions[which].f32_2((float)x[0], (float)x[1]) \
                                     : atlas_functions[which].f32((float)x[0])                \
             : arguments == 2 ? atlas_functions[which].f64_2(x[0], x[1])                      \
                    : atlas_functions[which].f64(x[0]))
        double got = CALL;
        if (ftz) {
            unsigned before = flush_on();
            volatile float flushed = is_f32 ? arguments == 2 ? atlas_functions[which].f32_2((float)x[0], (float)x[1])
                                                             : atlas_functions[which].f32((float)x[0])
                                            : 0;
            flush_restore(before);
            float plain = (float)got, other = flushed;
            if (is_f32 && memcmp(&plain, &other, 4) != 0 && t->flush++ < SHOWN)
                printf("  flush-to-zero: (%a, %a) gives %a, else %a\n", x[0], x[1], other, plain);
        }
        note(t, judge_mpfr(t, x, arguments, got, want, is_f32 ? &f32 : &f64), x, arguments);
        if (mpfr_cmp_d(want, mpfr_get_d(want, MPFR_RNDN)) == 0 &&
            (!is_f32 || mpfr_get_d(want, MPFR_RNDN) == mpfr_get_flt(want, MPFR_RNDN)) && mpfr_number_p(want) &&
            mpfr_cmp_d(want, got) != 0 && got == got) {
          if (t->misses++ < SHOWN)
            printf("  not exact: (%a, %a) gives %a, should be %a\n", x[0], arguments == 2 ? x[1] : 0, got,
                   mpfr_get_d(want, MPFR_RNDN));
        }
    }
    mpfr_clears(a, b, want, (mpfr_ptr)0);
}

static void usage(void)
{
  puts("usage: native OP TYPE [options]      judges one function, for example: native exp f32\n"
       "  --step N        every N-th of the 2^32 inputs of a unary f32 function (default 1)\n"
       "  --bits A B      only the inputs whose bits are in A..B-1\n"
       "  --count N       random inputs of the others, or with --mpfr (default 1000000)\n"
       "  --mpfr          judge a unary f32 function by MPFR on random inputs\n"
       "  --range A B     draw the first argument from A..B\n"
       "  --ftz           also compare with flush-to-zero and denormals-are-zero set (f32)\n"
       "  --seed N        of the random inputs\n"
       "  --limit ULP     fail above this error (default 1e9)\n"
       "  --eval X [Y]    print one value and its error, nothing else\n"
       "Exits with 1 for a wrong special value, a difference under --ftz, a table index out of bounds, or above the "
       "limit.");
}

int main(int argc, char **argv)
{
    uint64_t step = 1, count = 1000000, first = 0, end_bits = (uint64_t)1 << 32;
    int ftz = 0, by_mpfr = 0, eval = 0;
    double limit = 1e9, at[2] = { 0, 0 };
    if (argc < 3) { usage(); return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2; }
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "--ftz") == 0) ftz = 1;
        else if (strcmp(argv[i], "--mpfr") == 0) by_mpfr = 1;
        else if (strcmp(argv[i], "--step") == 0 && i + 1 < argc) step = strtoull(argv[++i], 0, 0);
        else if (strcmp(argv[i], "--count") == 0 && i + 1 < argc) count = strtoull(argv[++i], 0, 0);
        else if (strcmp(argv[i], "--bits") == 0 && i + 2 < argc)
          first = strtoull(argv[i + 1], 0, 0), end_bits = strtoull(argv[i + 2], 0, 0), i += 2;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
          seed ^= strtoull(argv[++i], 0, 0) * 0xd1342543de82ef95u;
        else if (strcmp(argv[i], "--limit") == 0 && i + 1 < argc) limit = atof(argv[++i]);
        else if (strcmp(argv[i], "--range") == 0 && i + 2 < argc)
          low = atof(argv[i + 1]), high = atof(argv[i + 2]), i += 2;
        else if (strcmp(argv[i], "--eval") == 0 && i + 1 < argc) {
            eval = 1, at[0] = atof(argv[++i]);
            if (i + 1 < argc) at[1] = atof(argv[++i]);
        } else { usage(); return 2; }
    }
    int is_f32 = strcmp(argv[2], "f32") == 0;
    size_t which = 0, functions = sizeof atlas_functions / sizeof *atlas_functions;
    while (which < functions &&
           (strcmp(atlas_functions[which].op, argv[1]) != 0 || strcmp(atlas_functions[which].type, argv[2]) != 0))
      which++;
    const struct reference *r = references, *end = references + sizeof references / sizeof *references;
    while (r < end && strcmp(r->op, argv[1]) != 0) r++;
    if (which == functions || r == end) {
      fprintf(stderr, "native: no function '%s.%s' or no reference for it\n", argv[1], argv[2]);
      return 2;
    }

    struct tally t = { 0 };
    int arguments = atlas_functions[which].arguments;
    mpfr_t a, b, want;
    mpfr_inits2(PRECISION, a, b, want, (mpfr_ptr)0);
    double *x = eval ? at : t.worst_input;
    if (!eval) {
      if (is_f32 && arguments == 1 && !by_mpfr)
        exhaustive(&t, atlas_functions[which].f32, r->libm, first, end_bits, step, ftz);
      else sampled(&t, which, r, count, is_f32, ftz);
    } else if (is_f32) x[0] = (float)x[0], x[1] = (float)x[1];
    mpfr_set_d(a, x[0], MPFR_RNDN);
    mpfr_set_d(b, x[1], MPFR_RNDN);
    if (arguments == 2) r->mp2(want, a, b);
    else r->mp1(want, a);
    double got = CALL;
    struct tally scratch = { 0 };
    double error = judge_mpfr(eval ? &t : &scratch, x, arguments, got, want, is_f32 ? &f32 : &f64);
    printf("%s.%s: %llu inputs, worst %.6f ulp at (%a", argv[1], argv[2], (unsigned long long)t.tried, error, x[0]);
    if (arguments == 2) printf(", %a", x[1]);
    printf(") = (%.9g", x[0]);
    if (arguments == 2) printf(", %.9g", x[1]);
    mpfr_printf("): gives %a [%#llx], true %.25Rg\n", got, (unsigned long long)bits_of(got, is_f32), want);
    printf("  wrong special values %llu, inexact where exact is possible %llu, flush-to-zero differences %llu%s, "
           "indices out of bounds %lu\n",
           (unsigned long long)t.wrong, (unsigned long long)t.misses, (unsigned long long)t.flush,
           ftz ? "" : " (not tried)", atlas_faults);
    mpfr_clears(a, b, want, (mpfr_ptr)0);
    return t.wrong || t.flush || atlas_faults || error > limit;
}
