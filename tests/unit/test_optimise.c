/* test_optimise.c - the passes after the hash, one by one: what each does to small programs, and what it must leave
 * alone. That they keep every bit is tested on random programs (tests/random). */
#include "compile.h"

#include <string.h>

/* How often a word stands in the optimised program. */
typedef struct count {
  const char *text, *word;
  unsigned expected;
} count;

static void check_counts(const count *counts, size_t n) {
  for (size_t k = 0; k < n; k++) {
    char *code = compiled_text(counts[k].text, OPTIMISED);
    unsigned found = count_words(code, counts[k].word);
    if (!check_note(found == counts[k].expected))
      printf("'%s' stands there %u times, not %u:\n%s----\n%s", counts[k].word, found, counts[k].expected,
             counts[k].text, code);
    free(code);
  }
}

#define CHECK_COUNTS(counts) check_counts(counts, sizeof(counts) / sizeof(counts)[0])

/* One step on a loaded value. */
#define STEP(type, step)                                                                            \
  ".buffer a " type " in\n.buffer b " type " out\nldg." type " r0, [a + lane]\n" step "\nstg." type \
  " [b + lane], r1\nexit\n"

static void test_strength(void) {
  static const count counts[] = {
      {STEP("u32", "div.u32 r1, r0, #8"), "shr.u32", 1},
      {STEP("u32", "div.u32 r1, r0, #8"), "div", 0},
      {STEP("u8", "div.u8 r1, r0, #128"), "shr.u8", 1},
      {STEP("i32", "div.i32 r1, r0, #8"), "div.i32", 1}, /* rounds toward zero */
      {STEP("u32", "div.u32 r1, r0, #6"), "div.u32", 1},
      {STEP("u32", "div.u32 r1, #8, r0"), "div.u32", 1},
      {STEP("u32", "rem.u32 r1, r0, #8"), "and.u32", 1},
      {STEP("i32", "rem.i32 r1, r0, #8"), "rem.i32", 1},
      {STEP("u32", "rem.u32 r1, r0, #7"), "rem.u32", 1},
      {STEP("u32", "mul.u32 r1, r0, #16"), "shl.u32", 1},
      {STEP("i64", "mul.i64 r1, r0, #16"), "shl.i64", 1},
      {STEP("u32", "mul.u32 r1, r0, #17"), "mul.u32", 1},
      {STEP("u16", "sub.u16 r1, #0, r0"), "neg.u16", 1},
      {STEP("i32", "mul.i32 r1, r0, #-1"), "neg.i32", 1},
      {STEP("u8", "mul.u8 r1, #0xff, r0"), "neg.u8", 1},
      {STEP("i32", "sub.i32 r1, #0, r0\nmul.i32 r2, r0, #-1\nand.i32 r1, r1, r2"), "neg.i32", 1},
      {STEP("i32", "sub.i32 r1, #1, r0"), "neg.i32", 0},
      {STEP("f32", "sub.f32 r1, #0, r0"), "neg.f32", 0}, /* 0 - 0 is +0 */
      {STEP("f32", "div.f32 r1, r0, #8"), "mul.f32", 1},
      {STEP("f32", "div.f32 r1, r0, #-0.5"), "mul.f32", 1},
      {STEP("f64", "div.f64 r1, r0, #0.25"), "mul.f64", 1},
      {STEP("f32", "div.f32 r1, r0, #3"), "div.f32", 1},
      {STEP("f32", "div.f32 r1, r0, #0"), "div.f32", 1},
      {STEP("f32", "div.f32 r1, r0, #0x7f000000"), "div.f32", 1}, /* 2^127: its reciprocal is subnormal */
      {STEP("f32", "div.f32 r1, r0, #0x00400000"), "div.f32", 1}, /* a subnormal power */
      {STEP("f32", "div.f32 r1, r0, #0x7f800000"), "div.f32", 1}, /* infinity */
  };
  CHECK_COUNTS(counts);
  /* several at once, and in their places */
  check_code(
      IO "ldg.f32 r0, [x + lane]\ndiv.f32 r1, r0, #8\ndiv.f32 r1, r1, #3\nstg.f32 [y + lane], r1\n"
         "ldg.u32 r2, [i + lane]\ndiv.u32 r3, r2, #8\nrem.u32 r2, r2, #8\nmul.u32 r3, r3, r2\nstg.u32 [o + lane], "
         "r3\nexit\n",
      OPTIMISED,
      "b0:\n    %1 = ldg.f32 [x + lane]\n    %3 = mul.f32 %1, #0x3e000000\n    %5 = div.f32 %3, #0x40400000\n    "
      "stg.f32 [y + lane], %5\n"
      "    %7 = ldg.u32 [i + lane]\n    %9 = and.u32 %7, #0x7\n    %10 = shr.u32 %7, #0x3\n    %11 = mul.u32 %9, %10\n"
      "    stg.u32 [o + lane], %11\n    exit\n");
}

#define END "stg.f32 [y + lane], r1\nexit\n"

#define LOCAL ".local t f32 16\n.local u f32 16\n" IO "ldg.f32 r0, [x + lane]\nldg.u32 r9, [i + lane]\n"

static void test_arrays(void) {
  static const count counts[] = {
      /* elements are values, on straight ways, over branches and around loops */
      {LOCAL "stl.f32 [t + #3], r0\nstl.f32 [t + #4], #2\nldl.f32 r1, [t + #3]\n" END, "ldl", 0},
      {LOCAL "stl.f32 [t + #3], r0\nstl.f32 [t + #4], #2\nldl.f32 r1, [t + #3]\n" END, "stl", 0},
      {LOCAL "stl.f32 [t + #3], r0\nbar.sync\nmem.fence\nldl.f32 r1, [t + #3]\n" END, "ldl", 0},
      {LOCAL "ldl.f32 r1, [t + #3]\n" END, "stg.f32 [y + lane], #0x0", 1},
      {LOCAL "stl.f32 [t], #1\nset.lt.f32 p0, r0, #0\n@p0 bra low\nsqrt.f32 r1, r0\nstl.f32 [t], r1\nlow:\nldl.f32 r1, "
             "[t]\n" END,
       "phi", 1},
      {LOCAL "set.lt.f32 p0, r0, #0\n@p0 bra low\nsqrt.f32 r1, r0\nstl.f32 [u + #1], r1\nlow:\nldl.f32 r1, [t]\n" END,
       "phi", 0},
      {LOCAL "again:\nldl.f32 r1, [t]\nadd.f32 r1, r1, r0\nstl.f32 [t], r1\nloop r9, again\nldl.f32 r1, [t]\n" END,
       "stl", 0},
      {LOCAL
       "again:\nldl.f32 r1, [t]\nldl.f32 r2, [t + #1]\nstl.f32 [t], r2\nadd.f32 r2, r1, r0\nstl.f32 [t + #1], r2\n"
       "loop r9, again\nldl.f32 r1, [t]\n" END,
       "phi", 3},
      /* where an index is in a register, memory */
      {LOCAL "stl.f32 [t + #3], r0\nldl.f32 r1, [t + r9]\n" END, "stl", 1},
      {LOCAL "stl.f32 [t + r9], r0\nldl.f32 r1, [t + #3]\n" END, "ldl", 1},
      {LOCAL "stl.f32 [t + r9], r0\nstl.f32 [u + #2], r0\nldl.f32 r1, [u + #2]\n" END, "ldl", 0},
  };
  CHECK_COUNTS(counts);
}

/* The first block can be a loop's, and an array can have more elements than there are values to keep them in. */
static void test_arrays_at_the_limits(void) {
  static const count counts[] = {
      {".local t u32 4\n.buffer o u32 out\nagain:\nldl.u32 r1, [t]\nadd.u32 r1, r1, #1\nstl.u32 [t], r1\n"
       "set.lt.u32 p0, r1, blane\n@p0 bra again\nstg.u32 [o + lane], r1\nexit\n",
       "ldl", 0},
  };
  CHECK_COUNTS(counts);
  for (unsigned elements = 128; elements <= 129; elements++) {
    char text[8192] = ".local t u32 129\n.buffer o u32 out\n", line[48];
    for (unsigned k = 0; k < elements; k++) {
      snprintf(line, sizeof line, "stl.u32 [t + #%u], blane\n", k);
      strcat(text, line);
    }
    strcat(text, "ldl.u32 r1, [t]\nstg.u32 [o + lane], r1\nexit\n");
    char *code = compiled_text(text, OPTIMISED);
    CHECK(count_words(code, "stl") == (elements == 128 ? 0 : 129));
    free(code);
  }
}

/* What does not change in a loop is computed before it, what only one side needs on that side. */
static void test_schedule(void) {
  char *code = compiled_text(
      ".scalar a u32\n" IO
      "ldg.u32 r0, [i + lane]\nmovi.u32 r1, #0\nagain:\nmul.u32 r2, a, a\nadd.u32 r1, r1, r2\nxor.u32 r1, r1, r0\n"
      "stg.u32 [o + r1], r0\nloop r0, again\nexit\n",
      OPTIMISED);
  CHECK(strstr(code, "mul.u32") != NULL && strstr(code, "mul.u32") < strstr(code, "b1:"));
  free(code);
  code = compiled_text(IO "ldg.f32 r0, [x + lane]\nsqrt.f32 r1, r0\nset.lt.f32 p0, r0, #0\n@p0 bra end\nstg.f32 [y + "
                          "lane], r1\nend:\nexit\n",
                       OPTIMISED);
  CHECK(strstr(code, "sqrt.f32") != NULL && strstr(code, "sqrt.f32") > strstr(code, "branch"));
  free(code);
}

#define DIAMOND(low, high) \
  IO "ldg.f32 r0, [x + lane]\nmov.f32 r1, r0\nset.lt.f32 p0, r0, #0\n@p0 bra low\n" high "\nbra join\nlow:\n" low \
     "\njoin:\nstg.f32 [y + lane], r1\nexit\n"

static void test_if_convert(void) {
  static const count counts[] = {
      {DIAMOND("mul.f32 r1, r0, #3", "add.f32 r1, r0, #1"), "sel.f32", 1},
      {DIAMOND("mul.f32 r1, r0, #3", "add.f32 r1, r0, #1"), "branch", 0},
      {DIAMOND("mul.f32 r1, r0, #3", ""), "branch", 0},
      {DIAMOND("div.f32 r1, r0, #3", "add.f32 r1, r0, #1"), "branch", 1}, /* dear */
      {DIAMOND("sqrt.f32 r1, r0", "add.f32 r1, r0, #1"), "branch", 1},
      {DIAMOND("ldg.f32 r1, [x + #1]", "add.f32 r1, r0, #1"), "branch", 1}, /* may fault */
      {DIAMOND("stg.f32 [y + #1], r0", "add.f32 r1, r0, #1"), "branch", 1},
      {DIAMOND("add.f32 r1, r0, #1\nmul.f32 r1, r1, r0\nadd.f32 r1, r1, #2\nmul.f32 r1, r1, r0\nadd.f32 r1, r1, "
               "#3\nmul.f32 "
               "r1, r1, r0\nadd.f32 r1, r1, #4\nmul.f32 r1, r1, r0\nadd.f32 r1, r1, #5",
               "add.f32 r1, r0, #7"),
       "branch", 1}, /* long */
      /* one inside the other */
      {IO "ldg.f32 r0, [x + lane]\nmov.f32 r1, r0\nset.lt.f32 p0, r0, #0\n@p0 bra end\nset.lt.f32 p1, r0, #9\n@p1 bra "
          "small\nadd.f32 r1, r0, #1\nbra end\nsmall:\nmul.f32 r1, r0, #3\nend:\nstg.f32 [y + lane], r1\nexit\n",
       "branch", 0},
      /* predicates have no select of their own */
      {IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #9\nset.eq.u32 p1, r0, #3\n@p0 bra low\nset.eq.u32 p1, r0, "
          "#30\nlow:\nsel.u32 r1, p1, #7, #8\nstg.u32 [o + lane], r1\nexit\n",
       "branch", 0},
  };
  CHECK_COUNTS(counts);
}

int main(void) {
  test_strength();
  test_arrays();
  test_arrays_at_the_limits();
  test_schedule();
  test_if_convert();
  return check_report();
}
