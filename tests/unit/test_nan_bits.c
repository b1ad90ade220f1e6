/* test_nan_bits.c - the bits of NaNs (nan_bits.h): where what is made of them can be seen they are those of
 * the canonical NaN, and where it cannot the result is right all the same, in every engine as on the reference machine.
 */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "launching.h"

#include <stdlib.h>

#ifdef _WIN32
#  define setenv(name, value, overwrite) _putenv_s(name, value)
#endif

enum { LANES = 4096 };

/* r0: a number or any NaN, as it comes; r1: arithmetic on it, so that a NaN's payload is the machine's; r2: r1's bits.
 * Left in r3. */
#define BITS_OF(lines) lines "bitcast.u32.f32 r3, r5"
/* r4: r0, or a NaN of it behind bounds, whose sign cards leave open. */
#define CHOSEN                                                                                                   \
  "max.f32 r4, r0, #-2\nmin.f32 r4, r4, #2\nbitcast.u32.f32 r5, r0\nand.u32 r5, r5, #1\nset.eq.u32 p0, r5, #0\n" \
  "sel.f32 r4, p0, r0, r4\n"
#define AS_FLOAT "shl.u32 r4, r2, #7\nbitcast.f32.u32 r4, r4\n"
#define ZERO_OR_NAN "mul.f32 r4, r0, #-0\nabs.f32 r4, r4\n"

/* A side of a branch that stays one. p0: the magnitude is below a bound. */
#define SIDE "movi.u32 r6, #9\nstg.u32 [y + lane], r6\n"
#define BRANCH(value, bound, lines) \
  "abs.f32 r5, " value "\nset.le.f32 p0, r5, #" bound "\n" lines "done:\nadd.u32 r3, r3, #1"

static const char *const bodies[] = {
    /* seen */
    "mov.u32 r3, r2",
    "shl.u32 r3, r2, #7\nxor.u32 r3, r3, r2",
    BITS_OF("shr.u32 r3, r2, #16\ncvt.f32.u32 r5, r3\n"),
    "set.lt.u32 p0, r2, #0x7fc00001\nsel.u32 r3, p0, #1, #2",
    BITS_OF("set.lt.u32 p0, r2, #0x7fc00001\nsel.f32 r5, p0, r1, #2\n"),
    "set.ne.u32 p0, r2, #0x7fc00000\nmovi.u32 r3, #1\n@!p0 bra done\nmovi.u32 r3, #2\ndone:\nadd.u32 r3, r3, #1",
    BITS_OF("shl.u32 r4, r2, #9\nbitcast.f32.u32 r5, r4\ncopysign.f32 r5, r0, r5\n"),
    BITS_OF("bitcast.f32.u32 r4, r2\nneg.f32 r5, r4\n"),
    "sub.u32 r4, r2, #0x7fc00000\nset.num.f32 p0, r1, r1\nsel.u32 r4, p0, #0, r4\nldc.f32 r5, [t + r4]\n"
    "mul.f32 r5, r5, r1\nbitcast.u32.f32 r3, r5",
    /* the sign of a NaN becomes a number's */
    BITS_OF(CHOSEN "movi.f32 r5, #1\ncopysign.f32 r5, r5, r4\nmul.f32 r5, r5, #3\n"),
    BITS_OF("cvt.f64.f32 r4, r0\nmul.f64 r4, r4, #1.25\nneg.f64 r4, r4\nmovi.f64 r5, #1\ncopysign.f64 r5, r5, r4\n"
            "mul.f64 r5, r5, #3\ncvt.f32.f64 r5, r5\n"),
    "movi.u32 r3, #0\nmovi.u32 r5, #3\nagain:\nadd.u32 r3, r3, r2\nshl.u32 r2, r2, #1\nloop r5, again",
    "shl.u32 r4, r2, #1\nbitcast.f32.u32 r4, r4\nset.lt.f32 p0, r4, #1\nsel.u32 r3, p0, #1, #2",
    /* behind a branch that leaves numbers on one side, where the sum is; and a cast on the other side, which shows it
     */
    BRANCH("r0", "64", "add.u32 r3, r2, #3\n@p0 bra done\n" SIDE "shl.u32 r3, r2, #1\n"),
    BRANCH("r0", "64",
           "add.u32 r3, r2, #3\n@p0 bra done\n" SIDE
           "bitcast.i32.f32 r6, r1\nshr.i32 r6, r6, #1\ncvt.u32.i32 r3, r6\n"),
    BRANCH("r0", "64",
           "add.u32 r3, r2, #3\n@p0 bra done\n" SIDE "bitcast.i32.f32 r6, r1\nbitcast.f32.i32 r7, r6\nneg.f32 r7, r7\n"
           "bitcast.u32.f32 r3, r7\n"),
    /* the sum is on the side of the NaNs, on both, or of infinities that make NaNs */
    BRANCH("r0", "64", "add.u32 r3, r2, #3\n@!p0 bra done\n" SIDE "movi.u32 r3, #7\n"),
    BRANCH("r0", "64", "add.u32 r3, r2, #3\n@p0 bra done\n" SIDE "add.u32 r3, r3, #5\n"),
    /* one value comes to a phi as a number, and by another way as what may be a NaN; one lane a thread */
    "reduce.min.u32 r8, r2\nadd.f32 r5, r0, #0.5\nmin.f32 r6, r0, #1\nset.ne.f32 p0, r6, #0.25\n@!p0 bra other\n"
    "abs.f32 r4, r5\nset.ge.f32 p0, r4, #0\n@p0 bra done\n" SIDE "bra done\nother:\nmax.f32 r5, r0, r0\ndone:\n"
    "bitcast.u32.f32 r3, r5\nxor.u32 r3, r3, r8",
    BRANCH("r0", "inf",
           "sub.f32 r1, r0, r0\nbitcast.u32.f32 r2, r1\nadd.u32 r3, r2, #3\n@p0 bra done\n" SIDE "movi.u32 r3, #7\n"),
    BRANCH(
        "r0", "64",
        "mul.f32 r1, r0, #0x1p127\nsub.f32 r1, r1, r1\nbitcast.u32.f32 r2, r1\nadd.u32 r3, r2, #3\n@p0 bra done\n" SIDE
        "movi.u32 r3, #7\n"),
    /* not seen: arithmetic on the NaN comes between */
    BITS_OF(AS_FLOAT "mul.f32 r5, r4, r1\n"),
    BITS_OF("sub.u32 r4, #0x7ef33400, r2\nbitcast.f32.u32 r4, r4\nfma.f32 r5, r4, #0.5, r1\nmul.f32 r5, r5, r4\n"),
    BITS_OF(AS_FLOAT "min.f32 r4, r1, r4\nmax.f32 r5, r4, r1\n"),
    AS_FLOAT "set.lt.f32 p0, r4, r1\nsel.u32 r3, p0, #1, #2",
    BITS_OF("set.lt.u32 p0, r2, #99\nadd.f32 r5, r1, #1\nmul.f32 r6, r1, #3\nsel.f32 r5, p0, r5, r6\n"),
    /* half of it */
    BITS_OF("set.lt.u32 p0, r2, #99\nadd.f32 r5, r1, #1\nsel.f32 r5, p0, r5, #1.5\n"),
    AS_FLOAT "mul.f32 r5, r4, r1\nbitcast.u32.f32 r5, r5\nbitcast.u32.f32 r4, r4\nxor.u32 r3, r5, r4",
    /* comparisons that hold for all numbers, of what is NaN or of one sign, or zero alone: no reason to forget NaNs */
    ZERO_OR_NAN "neg.f32 r4, r4\nset.lt.f32 p0, r4, #700\nsel.u32 r3, p0, #1, #2",
    ZERO_OR_NAN "set.le.f32 p0, #0, r4\nsel.u32 r3, p0, #1, #2",
    "abs.f32 r4, r0\nneg.f32 r4, r4\nset.le.f32 p0, r4, #0\nsel.u32 r3, p0, #1, #2",
    "abs.f32 r4, r0\nset.lt.f32 p0, #-700, r4\nsel.u32 r3, p0, #1, #2",
    "mul.f32 r4, r0, r0\nset.le.f32 p0, #0, r4\nsel.u32 r3, p0, #1, #2",
};

static uint32_t argument[LANES], expected[LANES], got[LANES];

static void make_arguments(void) {
  uint32_t state = 12345;
  for (unsigned i = 0; i < LANES; i++) {
    state = state * 1664525 + 1013904223;
    argument[i] = state;
    if (i % 16 == 1) argument[i] = (argument[i] & 0x80000000) | 0x7f800000;
    if (i % 2 == 0) argument[i] |= 0x7f800000; /* NaNs with every payload, quiet and signalling, of both signs */
  }
}

static void run(hg_backend_id backend, const char *engine, const char *body, uint32_t *out) {
  char text[1024];
  hg_executor_desc executor_desc = {.backend = backend};
  setenv("HOLOGRAM_CPU_ENGINE", engine, 1);
  CHECK_EQ_U64(hg_executor_create(&executor_desc, &executor), HG_OK);
  snprintf(text, sizeof text,
           ".program p\n.buffer a f32 in\n.buffer y u32 out\n.const t f32 { #1, #2 }\n"
           "ldg.f32 r0, [a + lane]\nmul.f32 r1, r0, #1.25\nbitcast.u32.f32 r2, r1\n%s\nstg.u32 [y + lane], r3\nexit\n",
           body);
  run_on_array(text, LANES, sizeof argument, argument, out);
  hg_executor_release(executor);
}

static void check_body(const char *engine, const char *body) {
  unsigned differ = 0;
  run(test_backend(), engine, body, got);
  for (unsigned i = 0; i < LANES; i++) {
    if (got[i] == expected[i] || differ++ > 0) continue;
    printf("%s, %08x: %08x, expected %08x:\n%s\n", engine, (unsigned)argument[i], (unsigned)got[i],
           (unsigned)expected[i], body);
  }
  CHECK_EQ_U64(differ, 0);
}

int main(void) {
  static const char *const engines[] = {"tile", "native"};
  make_arguments();
  for (size_t b = 0; b < COUNT(bodies); b++) {
    run(HG_BACKEND_CPU, "interp", bodies[b], expected);
    for (size_t e = 0; e < (test_backend() == HG_BACKEND_CPU ? COUNT(engines) : 1); e++)
      check_body(engines[e], bodies[b]);
  }
  return check_report();
}
