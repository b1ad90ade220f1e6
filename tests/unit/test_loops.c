/* test_loops.c - loops over memory of which the CUDA backend runs several iterations at a time: of every length, with
 * accesses out of bounds in any iteration, indices that wrap, a branch in the body, stores that later loads may read,
 * values that go round, and step limits that end them anywhere. They leave the memory and the fault of the interpreter.
 */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"

#include <stdlib.h>

enum { LANES = 32, ELEMENTS = 1024 };

typedef struct trial {
  const char *text;
  uint64_t first, end; /* of the index */
  uint64_t extent;     /* of x */
  uint64_t step_limit;
} trial;

#define HEAD_WITH(more, type)                                                                                    \
  ".program p\n.block 32\n.buffer x u32 in\n.buffer y u32 inout\n.buffer z u32 out\n" more ".scalar first " type \
  "\n.scalar end " type "\ncvt." type ".u32 r0, blane\nadd." type " r0, r0, first\nmovi.u32 r2, #0\n"
#define HEAD(type) HEAD_WITH("", type)
#define TAIL "done:\nstg.u32 [z + lane], r2\nexit\n"

static const char sum[] = HEAD("u32") "top:\nset.ge.u32 p0, r0, end\n@p0 bra done\nldg.u32 r4, [x + r0]\n"
                                      "mad.u32 r2, r2, #5, r4\nadd.u32 r0, r0, #32\nbra top\n" TAIL;
static const char wide[] =
    HEAD("u64") "add.u64 r7, r0, #3\ntop:\nset.gt.u64 p0, r0, end\n@p0 bra done\n"
                "ldg.u32 r4, [x + r0 + #5]\nldg.u32 r5, [x + r7]\nadd.u32 r4, r4, r5\n"
                "mad.u32 r2, r2, #5, r4\nadd.u64 r0, r0, #32\nadd.u64 r7, r7, #64\nbra top\n" TAIL;
/* What it stores it may read in a later iteration. */
static const char in_place[] = HEAD("u32") "top:\nset.ge.u32 p0, r0, end\n@p0 bra done\nldg.u32 r4, [y + r0]\n"
                                           "ldg.u32 r5, [x + r0]\nadd.u32 r4, r4, r5\nadd.u32 r2, r2, r4\n"
                                           "stg.u32 [y + r0 + #32], r4\nadd.u32 r0, r0, #32\nbra top\n" TAIL;
static const char own_place[] = HEAD("u32") "top:\nset.ge.u32 p0, r0, end\n@p0 bra done\nldg.u32 r4, [y + r0]\n"
                                            "mul.u32 r4, r4, #7\nadd.u32 r2, r2, r4\nstg.u32 [y + r0], r4\n"
                                            "add.u32 r0, r0, #32\nbra top\n" TAIL;
static const char branch[] =
    HEAD("u32") "top:\nset.ge.u32 p0, r0, end\n@p0 bra done\nldg.u32 r4, [x + r0 + #1]\n"
                "and.u32 r5, r4, #3\nset.eq.u32 p1, r5, #0\n@p1 bra other\n"
                "mul.u32 r4, r4, #3\nstg.u32 [y + r0], r4\nbra both\nother:\n"
                "div.u32 r4, r2, r4\nboth:\nxor.u32 r2, r2, r4\nadd.u32 r0, r0, #32\nbra top\n" TAIL;

/* A step that is known before the loop, and may be most of all numbers; atomics, which may fault, and memory that they
 * count in; a load whose index does not grow. */
#define COUNTING(type, bins)                                                                         \
  HEAD_WITH(".shared s u32 32\n", type)                                                              \
  "or." type " r8, first, #1\ntop:\nset.ge." type " p0, r0, end\n@p0 bra done\n"                     \
  "ldg.u32 r4, [x + r0]\nand.u32 r5, r4, #" bins "\natom.add.u32 _, [s + r5], r4\n"                  \
  "and.u32 r6, r4, #1535\nldg.u32 r6, [x + r6]\nmad.u32 r2, r2, #5, r6\n"                            \
  "add." type " r0, r0, r8\nbra top\ndone:\nbar.sync\nlds.u32 r6, [s + blane]\nadd.u32 r2, r2, r6\n" \
  "stg.u32 [z + lane], r2\nexit\n"
static const char counting[] = COUNTING("u32", "31"), counting_wide[] = COUNTING("u64", "31");
static const char counting_beyond[] = COUNTING("u32", "63");
/* Bytes one after the other: neighbours of several iterations are one access, at any alignment. */
static const char bytes[] = HEAD_WITH(
    ".buffer b u8 in\n", "u32") "mul.u32 r5, blane, #13\nadd.u32 r0, r5, first\nadd.u32 r5, r5, end\n"
                                "top:\nset.ge.u32 p0, r0, r5\n@p0 bra done\nldg.u8 r4, [b + r0]\n"
                                "cvt.u32.u8 r4, r4\nmad.u32 r2, r2, #5, r4\nadd.u32 r0, r0, #1\nbra top\n" TAIL;
/* A sum of a product; and what is compared is signed, and not the index. */
static const char row[] = HEAD("u32") "bitcast.i32.u32 r9, r0\nbitcast.i32.u32 r10, end\ntop:\nset.ge.i32 p0, r9, r10\n"
                                      "@p0 bra done\nmad.u32 r7, first, #3, r0\nldg.u32 r4, [x + r7]\n"
                                      "mad.u32 r2, r2, #5, r4\nstg.u32 [y + r0], r2\nadd.u32 r0, r0, #32\n"
                                      "add.i32 r9, r9, #32\nbra top\n" TAIL;

/* What it stores it reads in the same iteration. */
static const char reread[] =
    HEAD("u32") "top:\nset.ge.u32 p0, r0, end\n@p0 bra done\nldg.u32 r4, [x + r0]\nmul.u32 r4, r4, #3\n"
                "stg.u32 [y + r0], r4\nldg.u32 r5, [y + r0]\nmad.u32 r2, r2, #5, r5\nadd.u32 r0, r0, #32\n"
                "bra top\n" TAIL;
/* Divisions by what the loop does not change, in place: several iterations share a reciprocal. */
static const char divides[] =
    HEAD("u32") "cvt.f32.u32 r6, end\ntop:\nset.ge.u32 p0, r0, end\n@p0 bra done\nldg.u32 r4, [y + r0]\n"
                "cvt.f32.u32 r4, r4\ndiv.f32 r4, r4, r6\nbitcast.u32.f32 r4, r4\nmad.u32 r2, r2, #5, r4\n"
                "stg.u32 [y + r0], r4\nadd.u32 r0, r0, #32\nbra top\n" TAIL;
/* Twice over the same, by blocks that are kept from running side by side. */
static const char again[] =
    HEAD("u32") "mov.u32 r3, r0\ntop:\nset.ge.u32 p0, r3, end\n@p0 bra next\nldg.u32 r4, [x + r3]\n"
                "mad.u32 r2, r2, #5, r4\nadd.u32 r3, r3, #32\nbra top\nnext:\n"
                "set.ge.u32 p0, r0, end\n@p0 bra done\nldg.u32 r4, [x + r0]\nxor.u32 r4, r4, r2\n"
                "stg.u32 [y + r0], r4\nadd.u32 r0, r0, #32\nbra next\n" TAIL;

/* How often it runs is known. */
static const char fixed[] =
    HEAD("u32") "mov.u32 r0, blane\ntop:\nset.ge.u32 p0, r0, #400\n@p0 bra done\n"
                "ldg.u32 r4, [x + r0]\nmad.u32 r2, r2, #5, r4\nadd.u32 r0, r0, #32\nbra top\n" TAIL;

/* Values that go round, of which each is another one's next; one that is needed behind what takes its place, in the
 * loop and behind it; a sum that two ways lead out of the loop with. */
static const char rotate[] =
    HEAD("u32") "movi.u32 r3, #7\nmovi.u32 r5, #11\ntop:\nset.ge.u32 p0, r0, end\n@p0 bra out\n"
                "ldg.u32 r4, [x + r0]\nxor.u32 r6, r4, r2\nmov.u32 r2, r3\nmov.u32 r3, r5\nmul.u32 r5, r6, #3\n"
                "add.u32 r0, r0, #32\nbra top\nout:\nmad.u32 r2, r2, #5, r3\nmad.u32 r2, r2, #5, r5\n" TAIL;
static const char kept[] =
    HEAD("u32") "movi.u32 r3, #7\nmovi.u32 r6, #0\ntop:\nset.ge.u32 p0, r0, end\n@p0 bra out\n"
                "ldg.u32 r4, [x + r0]\nmov.u32 r6, r3\nmad.u32 r3, r3, #5, r4\nxor.u32 r7, r3, r6\n"
                "sub.u32 r2, r2, r7\nadd.u32 r0, r0, #32\nbra top\n"
                "out:\nmad.u32 r2, r2, #5, r3\nmad.u32 r2, r2, #5, r6\n" TAIL;
static const char middle[] =
    HEAD("u32") "movi.u32 r3, #1\ntop:\nset.ge.u32 p0, r0, end\n@p0 bra done\nldg.u32 r4, [x + r0]\n"
                "mad.u32 r3, r3, #3, r4\nadd.u32 r2, r2, r3\nand.u32 r5, r3, #12\nset.eq.u32 p1, r5, #4\n"
                "@p1 bra done\nmad.u32 r2, r2, r3, r4\nadd.u32 r0, r0, #32\nbra top\n" TAIL;

/* Of `end` rounds, 0: 2^32; by fours of x and, so many further each time, of y: what is tested before the loop begins.
 * The others leave y out in the last round, leave the loop when another counter is 1, or leave y out in that round
 * alone.
 */
#define COUNTED(before_y, behind_y)                                                                               \
  HEAD("u32") "shl.u32 r9, blane, #2\nshl.u32 r10, first, #2\nmov.u32 r8, end\nshr.u32 r11, end, #1\n"             \
              "add.u32 r11, r11, #2\ntop:\nldg.u32 r4, [x + r0]\n"                                                \
              "ldg.u32 r5, [x + r0 + #1]\nldg.u32 r6, [x + r0 + #2]\nldg.u32 r7, [x + r0 + #3]\n"                 \
              "mad.u32 r2, r2, #5, r4\nmad.u32 r2, r2, #5, r5\nmad.u32 r2, r2, #5, r6\n"                          \
              "mad.u32 r2, r2, #5, r7\n" before_y                                                                 \
              "ldg.u32 r4, [y + r9]\nldg.u32 r5, [y + r9 + #1]\nldg.u32 r6, [y + r9 + #2]\n"                      \
              "ldg.u32 r7, [y + r9 + #3]\nmad.u32 r2, r2, #5, r4\nmad.u32 r2, r2, #5, r5\n"                       \
              "mad.u32 r2, r2, #5, r6\nmad.u32 r2, r2, #5, r7\n" behind_y                                          \
              "add.u32 r0, r0, #4\nadd.u32 r9, r9, r10\nsub.u32 r11, r11, #1\nloop r8, top\n" TAIL
static const char counted[] = COUNTED("", "");
static const char but_last[] = COUNTED("set.eq.u32 p0, r8, #1\n@p0 bra done\n", "");
static const char left[] = COUNTED("set.eq.u32 p0, r11, #1\n@p0 bra done\n", "");
static const char but_one[] = COUNTED("set.eq.u32 p0, r11, #1\n@p0 bra skip\n", "skip:\n");

static void check(const trial *t) {
  static uint32_t words[ELEMENTS];
  for (uint32_t i = 0; i < ELEMENTS; i++) words[i] = i * 2654435761u >> 3;
  /* Other lanes may write all of y. */
  const beside_buffer buffers[] = {
      {.name = "x", .contents = words, .size = sizeof words, .byte_count = 4 * t->extent},
      {.name = "y", .contents = words, .size = sizeof words, .is_result = 1},
      {.name = "z", .size = LANES * sizeof(uint32_t), .is_result = 1},
      {.name = "b", .contents = words, .size = sizeof words, .byte_count = t->extent}};
  uint8_t type = strstr(t->text, "first u64") != NULL ? ATLAS_u64 : ATLAS_u32;
  hg_scalar scalars[] = {{.name = "first", .type = type, .bits = t->first},
                         {.name = "end", .type = type, .bits = t->end}};
  const hg_launch_desc desc = {.grid = {1, 1, 1}, .block = {LANES, 1, 1}, .scalars = scalars, .scalar_count = 2,
                               .step_limit = t->step_limit};
  (void)check_beside(t->text, &desc, buffers, strstr(t->text, ".buffer b") != NULL ? 4 : 3);
}

static void check_counted(const char *text) {
  static const uint64_t first[] = {0, 1, 2, 4, 12, 100, 1 << 29, 1 << 30, UINT32_MAX - 40, UINT32_MAX - 3};
  static const uint64_t rounds[] = {1, 2, 9, 25, 200}, extent[] = {3, 35, 64, 132, 159, 160, 161, 400, ELEMENTS};
  for (size_t f = 0; f < COUNT(first); f += text == counted ? 1 : 2)
    for (size_t e = 0; e < COUNT(extent); e += text == counted ? 1 : 2) {
      trial t = {.text = text, .first = first[f], .extent = extent[e]};
      for (size_t r = 0; r < COUNT(rounds); r++) {
        t.end = rounds[r];
        check(&t);
      }
      t.end = 0;
      t.step_limit = 30;
      check(&t);
    }
}

int main(void) {
  static const char *const texts[] = {sum, wide, in_place, own_place, branch, fixed, counting, counting_wide,
                                       counting_beyond, bytes, row, rotate, kept, middle, again, reread, divides};
  static const char *const with_counters[] = {counted, but_last, left, but_one};
  static const uint64_t limits[] = {0, 3, 4, 5, 9, 11, 12, 13};
  open_both();
  for (size_t k = 0; k < COUNT(texts); k++)
    for (size_t limit = 0; limit < COUNT(limits); limit += SANITIZED ? 3 : 1) {
      trial t = {.text = texts[k], .extent = ELEMENTS, .step_limit = limits[limit]};
      for (t.end = 0; t.end < 420; t.end += 37) check(&t); /* of up to thirteen iterations, lanes end apart */
      t.end = 400;
      for (t.extent = 20; t.extent < 420; t.extent += 41) check(&t); /* faults in any of them */
      t.extent = ELEMENTS;
      t.step_limit = limits[limit] == 0 ? 40 : limits[limit];
      t.first = UINT32_MAX - 70; /* wraps */
      t.end = UINT32_MAX - 5;
      check(&t);
      t.first = 30;
      check(&t);
      if (strstr(t.text, "first u64") == NULL) continue;
      t.first = UINT64_MAX - 70;
      t.end = UINT64_MAX - 5;
      check(&t);
    }
  for (size_t k = 0; k < COUNT(with_counters); k++) check_counted(with_counters[k]);
  close_both();
  return check_report();
}
