/* test_local_zeros.c - which programs can see that their local arrays begin as zeros; and that all of them get what the
 * reference machine gives, after another program has left its values in the same memory. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "beside_reference.h"
#include "compile.h"

#include "compiler/analysis/local_zeros.h"

enum { LANES = 77, ELEMENTS = 12, TEXT_BYTES = 2048 };

/* The lane's number is in r0, x's element in r1; what is loaded goes to y. */
static const char declarations[] = ".program p\n.buffer x u32 in\n.buffer y u32 out\n.local a u32 12\n.local b u8 3\n"
                                   "mov.u64 r0, lane\nldg.u32 r1, [x + lane]\n";
/* All of a's elements in turn. */
static const char sum[] = "movi.u32 r8, #0\nmovi.u32 r9, #0\nagain:\nldl.u32 r7, [a + r8]\nmad.u32 r9, r9, #31, r7\n"
                          "add.u32 r8, r8, #1\nset.ne.u32 p9, r8, #12\n@p9 bra again\nstg.u32 [y + lane], r9\nexit\n";

#define FILL(first, compare, end) \
  "movi.u32 r2, #" first "\nfill:\nstl.u32 [a + r2], r1\nadd.u32 r2, r2, #1\n" compare " p0, r2, #" end \
  "\n@p0 bra fill\n"

typedef struct trial {
  const char *fill;
  int sees; /* zeros */
} trial;

static const trial trials[] = {
    {FILL("0", "set.lt.u32", "12"), 0},
    {FILL("0", "set.ne.u32", "12"), 0},
    {FILL("0", "set.le.u32", "11"), 0},
    {FILL("1", "set.lt.u32", "12"), 1},
    {FILL("0", "set.lt.u32", "11"), 1},
    {FILL("0", "set.eq.u32", "12"), 1},
    {"stl.u32 [a], r1\n" FILL("1", "set.lt.u32", "12"), 0},
    {FILL("1", "set.lt.u32", "12") "stl.u32 [a], r1\n", 0},
    {FILL("0", "set.lt.u32", "12") "and.u32 r3, r1, #31\nstl.u32 [a + r3], r1\n", 0}, /* some are faults */
    /* tested before the body */
    {"movi.u32 r2, #0\nfill:\nset.lt.u32 p0, r2, #12\n@!p0 bra full\nstl.u32 [a + r2], r1\nadd.u32 r2, r2, #1\n"
     "bra fill\nfull:\n", 0},
    /* downwards, of signed numbers, displaced, two an iteration */
    {"movi.i32 r2, #11\nfill:\nstl.u32 [a + r2], r1\nsub.i32 r2, r2, #1\nset.ge.i32 p0, r2, #0\n@p0 bra fill\n", 0},
    {"movi.i32 r2, #-5\nfill:\nstl.u32 [a + r2 + #5], r1\nadd.i32 r2, r2, #1\nset.lt.i32 p0, r2, #7\n@p0 bra fill\n",
     0},
    {"movi.u32 r2, #0\nfill:\nstl.u32 [a + r2], r1\nstl.u32 [a + r2 + #1], r1\nadd.u32 r2, r2, #2\n"
     "set.lt.u32 p0, r2, #12\n@p0 bra fill\n", 0},
    {"movi.u32 r2, #0\nfill:\nstl.u32 [a + r2], r1\nadd.u32 r2, r2, #2\nset.lt.u32 p0, r2, #12\n@p0 bra fill\n", 1},
    {"movi.u8 r2, #246\nfill:\nstl.u32 [a + r2 + #-246], r1\nadd.u8 r2, r2, #1\nset.ne.u8 p0, r2, #2\n@p0 bra fill\n",
     1}, /* the index wraps to 0 and 1: displaced they are -246 and -245 */
    /* some lanes, some rounds, a loop that is left early, an end that is not known */
    {"set.lt.u32 p1, r1, #100\n@p1 bra full\n" FILL("0", "set.lt.u32", "12") "full:\n", 1},
    {"movi.u32 r2, #0\nfill:\nset.eq.u32 p1, r2, r1\n@p1 bra past\nstl.u32 [a + r2], r1\npast:\nadd.u32 r2, r2, #1\n"
     "set.lt.u32 p0, r2, #12\n@p0 bra fill\n", 1},
    {"movi.u32 r2, #0\nfill:\nstl.u32 [a + r2], r1\nset.eq.u32 p1, r2, r1\n@p1 bra full\nadd.u32 r2, r2, #1\n"
     "set.lt.u32 p0, r2, #12\n@p0 bra fill\nfull:\n", 1},
    {"movi.u32 r2, #0\nand.u32 r3, r1, #7\nadd.u32 r3, r3, #5\nfill:\nstl.u32 [a + r2], r1\nadd.u32 r2, r2, #1\n"
     "set.lt.u32 p0, r2, r3\n@p0 bra fill\n", 1},
    {"and.u32 r2, r1, #1\nfill:\nstl.u32 [a + r2], r1\nadd.u32 r2, r2, #1\nset.lt.u32 p0, r2, #12\n@p0 bra fill\n", 1},
    /* read before, or meanwhile */
    {"and.u32 r3, r1, #7\nldl.u32 r4, [a + r3]\nadd.u32 r1, r1, r4\n" FILL("0", "set.lt.u32", "12"), 1},
    {"movi.u32 r2, #0\nfill:\nldl.u32 r4, [a + r2]\nadd.u32 r4, r4, r1\nstl.u32 [a + r2], r4\nadd.u32 r2, r2, #1\n"
     "set.lt.u32 p0, r2, #12\n@p0 bra fill\n", 1},
    /* within a loop of its own; another array's zeros */
    {"movi.u32 r5, #0\nouter:\n" FILL("0", "set.lt.u32", "12")
     "add.u32 r5, r5, #1\nset.lt.u32 p2, r5, #3\n@p2 bra outer\n", 0},
    {FILL("0", "set.lt.u32", "12") "and.u32 r2, r1, #1\nldl.u8 r3, [b + r2]\ncvt.u32.u8 r3, r3\nstl.u32 [a + r2], r3\n",
     1},
    {FILL("0", "set.lt.u32", "12") "and.u32 r2, r1, #1\nstl.u8 [b + r2], #7\n", 0},
};

static void check_analysis(const trial *t, const char *text) {
  static const hg_shape unknown = {0};
  atlas_program *program = parse(text);
  ssa_unit unit;
  ssa_order order;
  hg_analysis analysis;
  compile(program, OPTIMISED, &unit);
  CHECK_EQ_U64(hg_analyse(program, &unit, &unknown, &analysis), HG_OK);
  CHECK_EQ_U64(ir_ssa_order_build(&unit, &order), HG_OK);
  if (!check_note(hg_sees_local_zeros(program, &unit, &order, &analysis) == t->sees)) printf("%s", text);
  ir_ssa_order_release(&unit, &order);
  hg_analysis_release(&unit, &analysis);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

/* Leaves values in the memory of local arrays. */
static const char leaves_values[] =
    ".program q\n.buffer x u32 in\n.buffer y u32 out\n.local a u32 40\nldg.u32 r1, [x + lane]\nmovi.u32 r2, #0\nfill:\n"
    "not.u32 r3, r2\nstl.u32 [a + r2], r3\nadd.u32 r2, r2, #1\nset.lt.u32 p0, r2, #40\n@p0 bra fill\n"
    "and.u32 r1, r1, #31\nldl.u32 r3, [a + r1]\nstg.u32 [y + lane], r3\nexit\n";

static void check_results(const char *text) {
  uint32_t given[LANES], left[LANES];
  hg_fault fault;
  for (uint32_t i = 0; i < LANES; i++) given[i] = i * 7 % 13 + (i % 5 == 0 ? 1000 * i : 0);
  const beside_buffer buffers[] = {{.name = "x", .contents = given, .size = sizeof given},
                                   {.name = "y", .contents = given, .size = sizeof given, .is_result = 1}};
  const hg_launch_desc desc = {.lanes = LANES};
  CHECK_EQ_U64(launch_beside(tested, leaves_values, desc, buffers, 2, (uint8_t *)left, &fault), HG_OK);
  if (!check_beside(text, &desc, buffers, 2)) printf("%s", text);
}

int main(void) {
  char text[TEXT_BYTES];
  open_both();
  for (size_t i = 0; i < COUNT(trials); i++) {
    CHECK((size_t)snprintf(text, sizeof text, "%s%s%s", declarations, trials[i].fill, sum) < sizeof text);
    check_analysis(&trials[i], text);
    check_results(text);
  }
  close_both();
  return check_report();
}
