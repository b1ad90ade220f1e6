/* test_vector.c - vector code of small programs: which masks, selections and canonicalisations it needs, and which not.
 * That it means the same is tested on random programs (tests/random). */
#include "compile.h"

#include "vector/vector.h"

static char *vector_text(const char *text) {
  atlas_program *program = parse(text);
  ssa_unit unit;
  hg_vector vector;
  hg_array printed = {.element_size = 1};
  compile(program, OPTIMISED, &unit);
  CHECK_EQ_U64(hg_vectorise(program, &unit, &vector), HG_OK);
  CHECK_EQ_U64(hg_vector_print(program, &vector, &printed), HG_OK);
  char *copy = calloc(printed.count + 1, 1);
  memcpy(copy, printed.data, printed.count);
  hg_array_release(&vector.allocator, &printed);
  hg_vector_release(&vector);
  ir_ssa_release(&unit);
  atlas_program_release(program);
  return copy;
}

typedef struct count {
  const char *text, *word;
  unsigned expected;
} count;

static void check_counts(const count *counts, size_t n) {
  for (size_t k = 0; k < n; k++) {
    char *code = vector_text(counts[k].text);
    unsigned found = count_words(code, counts[k].word);
    if (!check_note(found == counts[k].expected))
      printf("'%s' stands there %u times, not %u:\n%s----\n%s", counts[k].word, found, counts[k].expected,
             counts[k].text, code);
    free(code);
  }
}

#define CHECK_COUNTS(counts) check_counts(counts, sizeof(counts) / sizeof(counts)[0])

/* From r0 and r1 to r2. */
#define F32(steps)                                                                                    \
  ".buffer a f32 in\n.buffer b f32 in\n.buffer c f32 out\nldg.f32 r0, [a + lane]\nldg.f32 r1, [b + lane]\n" steps \
  "\nstg.f32 [c + lane], r2\nexit\n"

static void test_selections(void) {
  static const count counts[] = {
      {F32("set.lt.f32 p0, r0, r1\nsel.f32 r2, p0, r0, r1"), "= lesser", 1},
      {F32("set.lt.f32 p0, r0, r1\nsel.f32 r2, p0, r0, r1"), "set.", 0},
      {F32("set.lt.f32 p0, r0, r1\nsel.f32 r2, p0, r1, r0"), "= greater", 1},
      {F32("set.gt.f32 p0, r0, r1\nsel.f32 r2, p0, r0, r1"), "= greater", 1},
      {F32("set.gt.f32 p0, r0, #0\nsel.f32 r2, p0, r0, #0"), "= greater", 1},
      {F32("set.le.f32 p0, r0, #2\nsel.f32 r2, p0, r0, #2"), "= lesser", 1},
      {F32("set.ge.f32 p0, r0, #-2\nsel.f32 r2, p0, r0, #-2"), "= greater", 1},
      {F32("set.le.f32 p0, r0, r1\nsel.f32 r2, p0, r0, r1"), "= sel", 1}, /* which zero? */
      {F32("set.le.f32 p0, r0, #0\nsel.f32 r2, p0, r0, #0"), "= sel", 1},
      {F32("set.lt.f32 p0, r0, #2\nsel.f32 r2, p0, r0, #3"), "= sel", 1},
      {F32("set.lt.f32 p0, r0, r1\nsel.f32 r2, p0, r0, r1\nsel.f32 r1, p0, r2, #1\nadd.f32 r2, r2, r1"), "= lesser", 1},
      {F32("set.lt.f32 p0, r0, r1\nsel.f32 r2, p0, r0, r1\nsel.f32 r1, p0, r2, #1\nadd.f32 r2, r2, r1"), "set.lt", 1},
  };
  CHECK_COUNTS(counts);
}

/* r0 is at most 30, at least -30, or both, and a number. */
#define BELOW "set.lt.f32 p0, r0, #30\nsel.f32 r0, p0, r0, #30\n"
#define ABOVE "set.gt.f32 p0, r0, #-30\nsel.f32 r0, p0, r0, #-30\n"

/* n = the nearest integer to r0 / ln 2 by the bits of a sum; r3 = r0 - n ln 2; r5 = 2^n; r2 = 2^n (1 + r3). */
#define EXPONENTIAL                                                                                      \
  "fma.f32 r2, r0, #0x1.715476p0, #0x1.8p23\nbitcast.u32.f32 r5, r2\nshl.u32 r5, r5, #23\n"              \
  "sub.f32 r2, r2, #0x1.8p23\nfma.f32 r3, r2, #-0x1.62e43p-1, r0\nadd.u32 r5, r5, #0x3f800000\n"         \
  "bitcast.f32.u32 r5, r5\nfma.f32 r2, r3, r5, r5"

/* r3 = w in [-0.3, 0.3], r4 = s in [1, 31]: w s + s is at least 0.7 */
#define SCALED "mul.f32 r3, r0, #0.01\nabs.f32 r4, r0\nadd.f32 r4, r4, #1\n"
/* r2 = the root of what r2 has from 30 down */
#define SQUARED "set.lt.f32 p0, r2, #30\nsel.f32 r2, p0, r2, #30\nsqrt.f32 r2, r2"

static void test_never_nan(void) {
  static const count counts[] = {
      {F32("add.f32 r2, r0, r1"), "canon", 1},
      {F32("mov.f32 r2, r0"), "canon", 0},
      {F32(BELOW "add.f32 r2, r0, #1"), "canon", 0}, /* -inf at the least */
      {F32(BELOW "add.f32 r2, r0, r1"), "canon", 1},
      {F32(BELOW "sub.f32 r2, r0, r0"), "canon", 1}, /* -inf - -inf */
      {F32(BELOW "mul.f32 r2, r0, #0"), "canon", 1},
      {F32(BELOW "sqrt.f32 r2, r0"), "canon", 1},
      {F32(BELOW "abs.f32 r2, r0\nsqrt.f32 r2, r2"), "canon", 0},
      {F32(BELOW ABOVE "sub.f32 r2, r0, r0"), "canon", 0},
      {F32(BELOW ABOVE "mul.f32 r2, r0, #0"), "canon", 0},
      {F32(BELOW ABOVE "mul.f32 r2, r0, #3e38\nmul.f32 r2, r2, #0"), "canon", 1}, /* inf */
      {F32(BELOW ABOVE "mul.f32 r2, r0, #1e36\nadd.f32 r2, r2, r2\nmul.f32 r2, r2, #0"), "canon", 0},
      {F32("mul.f32 r2, r0, r0\n" SQUARED), "canon", 0},
      {F32("mul.f32 r2, r0, r1\n" SQUARED), "canon", 1}, /* may be below 0 */
      {F32(BELOW "fma.f32 r2, r0, r0, #1\nsqrt.f32 r2, r2"), "canon", 0},
      {F32(BELOW "sub.f32 r1, r0, r0\nfma.f32 r2, r1, r1, #1"), "canon", 1},
      {F32(BELOW ABOVE "div.f32 r2, r0, r0"), "canon", 1},
      {F32("bitcast.u32.f32 r2, r0\nadd.u32 r2, r2, #1\nbitcast.f32.u32 r2, r2\nadd.f32 r2, r2, #1"), "canon", 1},
      {F32("set.lt.f32 p0, r0, #30\nsel.f32 r2, p0, #30, r0\nadd.f32 r2, r2, #1"), "canon", 1}, /* NaN stays */
      {F32("cvt.u32.f32 r2, r0\ncvt.f32.u32 r2, r2\nadd.f32 r2, r2, #1"), "canon", 0},
      {F32(BELOW ABOVE SCALED "fma.f32 r2, r3, r4, r4\nsqrt.f32 r2, r2"), "canon", 0},
      {F32(BELOW ABOVE SCALED "sub.f32 r5, r4, #0.5\nfma.f32 r2, r4, r3, r5\nsqrt.f32 r2, r2"), "canon", 0},
      {F32(BELOW ABOVE SCALED "sub.f32 r5, r4, #0.75\nfma.f32 r2, r4, r3, r5\nsqrt.f32 r2, r2"), "canon", 1},
      {F32(BELOW ABOVE EXPONENTIAL), "canon", 0},
      {F32(BELOW EXPONENTIAL), "canon", 1},
      {F32(EXPONENTIAL), "canon", 1}, /* the power of two that is made of a NaN is multiplied with one */
      {F32(EXPONENTIAL "\nbitcast.u32.f32 r5, r5\nshr.u32 r5, r5, #9\ncvt.f32.u32 r5, r5\nmul.f32 r2, r2, r5"),
       "canon", 1},
      {F32(EXPONENTIAL "\nadd.f32 r2, r5, #1"), "canon", 2}, /* here it can be seen */
      {F32(BELOW ABOVE "movi.u32 r9, #5\nmovi.f32 r2, #0\nagain: add.f32 r2, r2, r0\nloop r9, again"), "canon", 1},
  };
  CHECK_COUNTS(counts);
}

/* A rare case in a rare case; and a block that two rare ones lead to. */
#define RARE(name, at) name ":\nldg.f32 r1, [b + lane + #" at "]\nadd.f32 r2, r2, r1\n"
#define NESTED                                                                                      \
  F32("set.lt.f32 p0, r0, #0\nset.lt.f32 p1, r0, #-9\nmov.f32 r2, r0\n@!p0 bra done\n"              \
      RARE("once", "1") "@!p1 bra done\n" RARE("twice", "2") "done:")
#define SHARED                                                                                      \
  F32("set.lt.f32 p0, r0, #0\nset.lt.f32 p1, r0, #-9\nset.gt.f32 p2, r1, #7\nmov.f32 r2, r0\n"      \
      "@!p0 bra done\n@p1 bra second\n" RARE("first", "1") "@!p2 bra done\n" RARE("second", "2") "done:")

static void test_masks(void) {
  static const count counts[] = {
      {NESTED, "clear", 0},
      {NESTED, "jump.none", 2},
      {SHARED, "clear", 1}, /* of the block that two lead to, where the first lanes part */
      {SHARED, " or ", 2},
      {F32("set.lt.f32 p0, r0, #0\nset.lt.f32 p1, r1, #0\npnot p1, p1\npand p0, p0, p1\nsel.f32 r2, p0, r0, r1"),
       "andnot", 1},
      {F32("set.lt.f32 p0, r0, #0\nset.lt.f32 p1, r1, #0\npnot p1, p1\npand p0, p0, p1\nsel.f32 r2, p0, r0, r1"),
       "pnot", 0},
  };
  CHECK_COUNTS(counts);
  char *code = vector_text(NESTED);
  const char *first = strstr(code, "jump.none"), *second = strstr(first + 1, "jump.none");
  CHECK_STR(strtok(strstr(first, "->"), "\n"), strtok(strstr(second, "->"), "\n")); /* the first skips both */
  free(code);
}

/* 1 if the only canonicalisation stands behind the last jump. */
static int cleans_behind_loop(const char *text) {
  char *code = vector_text(text);
  const char *jump = NULL, *canon = strstr(code, "canon");
  for (const char *at = strstr(code, "jump"); at != NULL; at = strstr(at + 1, "jump")) jump = at;
  int is_behind = jump != NULL && canon != NULL && canon > jump && strstr(canon + 1, "canon") == NULL;
  free(code);
  return is_behind;
}

/* Lanes leave one by one; r3 goes up by 64 from the lane's number on. */
#define LEAVING(behind)                                                                              \
  F32("cvt.u32.u64 r3, lane\nagain: set.ge.f32 p0, r0, #100\n@p0 bra left\nldg.f32 r1, [b + r3]\n"    \
      "add.f32 r0, r0, r1\nadd.u32 r3, r3, #64\nbra again\nleft: " behind)

static void test_loops(void) {
  static const count counts[] = {
      {LEAVING("mov.f32 r2, r0"), "contiguous", 1},
      {LEAVING("ldg.f32 r2, [b + r3]"), "contiguous", 0}, /* each lane has left with its own */
  };
  CHECK_COUNTS(counts);
  CHECK(cleans_behind_loop(F32("movi.u32 r9, #5\nmovi.f32 r2, #0\nagain: add.f32 r2, r2, r1\nloop r9, again")));
  CHECK(!cleans_behind_loop(F32("movi.u32 r9, #5\nmov.f32 r2, r0\nagain: add.f32 r2, r2, r1\nloop r9, again\n"
                                "set.lt.f32 p0, r1, #0\nsel.f32 r2, p0, r0, r2"))); /* r0 may be another NaN */
}

int main(void) {
  test_loops();
  test_selections();
  test_never_nan();
  test_masks();
  return check_report();
}
