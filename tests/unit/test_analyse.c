/* test_analyse.c - what the analysis proves of accesses and finds out about values, and that it is true: each program
 * runs, and every value that a lane computes is held against its range (tests/random/check_ranges.h, which does the
 * same on random programs). */
#include "../random/check_ranges.h"
#include "compile.h"
#include "shard.h"

#include "compiler/analysis/trips.h"

#include <stdarg.h>

/* ---- analysis ---------------------------------------------------------------------------------------------------- */

enum { ELEMENTS = 1000 };

/* Runs the unit in blocks of 64 lanes, or as it says, on buffers of 1000 elements, and holds the analysis against it.
 */
static void check_by_running(const atlas_program *program, ssa_unit *unit, const char *text) {
  static uint32_t memory[ATLAS_MAX_SYMBOLS][ELEMENTS];
  static uint8_t boundary[ATLAS_BOUNDARY_POOL_BYTES];
  for (int knows = 0; knows < 4; knows++) {
    atlas_argument arguments[ATLAS_MAX_SYMBOLS] = {{.bits = 0}};
    atlas_launch launch = {
        .grid = {2, 1, 1}, .block = {64, 1, 1}, .arguments = arguments, .boundary = boundary, .step_limit = 300};
    for (uint32_t s = 0; s < program->symbols.count && s < 8; s++) {
      uint32_t size = atlas_bytes((atlas_type)atlas_symbol_at(program, s)->type);
      arguments[s].bits = (knows < 2 ? 37 : 1000) & atlas_mask((atlas_type)atlas_symbol_at(program, s)->type);
      arguments[s].span = (atlas_span){(uint8_t *)memory[s], ELEMENTS * (uint64_t)size};
      for (uint32_t i = 0; i < ELEMENTS; i++) memory[s][i] = i * 7 % 40;
    }
    for (int d = 0; d < 3 && program->block[0] != 0; d++) launch.block[d] = program->block[d];
    const ranges_run run = {program, unit, knows % 2};
    if (!check_note(check_ranges(&run, &launch) == HG_OK)) printf("%s\n%s", hg_last_error(), text);
  }
}

/* How many accesses of the program are in bounds, and how many there are. */
static void count_proven(const char *text, const hg_shape *shape, unsigned *proven, unsigned *all) {
  atlas_program *program = parse(text);
  ssa_unit unit;
  hg_analysis analysis;
  *proven = *all = 0;
  compile(program, CANONICAL, &unit);
  CHECK_EQ_U64(hg_analyse(program, &unit, shape, &analysis), HG_OK);
  for (uint32_t b = 0; b < unit.blocks.count; b++)
    for (uint32_t e = ssa_block_at(&unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(&unit, e)->next) {
      const atlas_op_info *info = atlas_op_lookup(ssa_insn_at(&unit, e)->op);
      if (!(info->flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC))) continue;
      *all += 1;
      *proven += analysis.in_bounds[e] != HG_NOT_PROVEN;
    }
  hg_analysis_release(&unit, &analysis);
  if (shape->lanes == 0) check_by_running(program, &unit, text);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

static void check_proven(const char *text, const hg_shape *shape, unsigned expected_proven, unsigned expected_all) {
  unsigned proven, all;
  count_proven(text, shape, &proven, &all);
  if (!check_note(proven == expected_proven && all == expected_all))
    printf("%u of %u accesses proven, expected %u of %u:\n%s", proven, all, expected_proven, expected_all, text);
}

static void test_bounds(void) {
  const uint64_t extents[8] = {1000, 1000, 1000, 1000, 0, 0, 0, 0};
  const hg_shape unknown = {0}, linear = {.lanes = 1000, .grid = {4, 1, 1}, .block = {256, 1, 1}, .extent = extents};
  const hg_shape too_many = {.lanes = 1001, .grid = {4, 1, 1}, .block = {256, 1, 1}, .extent = extents};
  const char *copy = IO "ldg.f32 r0, [x + lane]\nstg.f32 [y + lane], r0\nexit\n";
  check_proven(copy, &linear, 2, 2);
  check_proven(copy, &too_many, 0, 2);
  check_proven(copy, &unknown, 0, 2);
  /* displaced: the last lane is out */
  check_proven(IO "ldg.f32 r0, [x + lane + #1]\nstg.f32 [y + lane], r0\nexit\n", &linear, 1, 2);
  /* guarded by a comparison, of any sign */
  const char *guarded =
      IO "set.lt.u64 p0, lane, #999\n@!p0 bra past\nldg.f32 r0, [x + lane + #1]\nstg.f32 [y + lane], r0\npast:\nexit\n";
  check_proven(guarded, &too_many, 2, 2);
  /* reversed: the sum is in bounds, although the conversion of a lane's number to i32 and its negative may wrap */
  check_proven(IO "cvt.i32.u64 r0, lane\nneg.i32 r1, r0\nadd.i32 r1, r1, #999\nldg.f32 r2, [x + r1]\nstg.f32 [y + "
                  "lane], r2\nexit\n",
               &linear, 2, 2);
  check_proven(IO "cvt.i32.u64 r0, lane\nsub.i32 r1, #999, r0\nldg.f32 r2, [x + r1]\nstg.f32 [y + lane], r2\nexit\n",
               &linear, 2, 2);
  check_proven(IO "cvt.u32.u64 r0, lane\nrem.u32 r1, r0, #7\nldg.f32 r2, [x + r1]\nstg.f32 [y + lane], r2\nexit\n",
               &too_many, 1, 2);
  /* u32 arithmetic that could wrap proves nothing */
  check_proven(
      IO "cvt.u32.u64 r0, lane\nadd.u32 r1, r0, #0xffffffff\nldg.f32 r2, [x + r1]\nstg.f32 [y + lane], r2\nexit\n",
      &linear, 1, 2);
  /* a value that was loaded is anything */
  check_proven(IO "ldg.u32 r0, [i + lane]\nldg.f32 r2, [x + r0]\nstg.f32 [y + lane], r2\nexit\n", &linear, 2, 3);
  /* shared memory, with the block's size known */
  check_proven(".block 64\n.shared t f32 64\n" IO
               "sts.f32 [t + blane], #1\nbar.sync\nxor.u32 r0, blane, #1\nlds.f32 r1, [t + r0]\nexit\n",
               &(hg_shape){.block = {64, 1, 1}}, 1, 1);
  /* no lane comes to the loop, as conditions exclude each other: of its divisor no number is left */
  check_proven(".buffer o u64 inout\nand.u64 r6, lane, #4\nset.ge.u64 p6, r6, #4\n@p6 bra on\ntrap #34\non:\n"
               "div.u64 r1, #1, r6\nmovi.u32 r2, #2\nagain:\nstg.u64 [o + #1], r1\nmul.u64 r1, r1, r1\n"
               "loop r2, again\nexit\n",
               &(hg_shape){.lanes = 1, .grid = {1, 1, 1}, .block = {256, 1, 1}, .extent = extents}, 1, 1);
  /* a loop counter behind its own test */
  check_proven(IO "movi.u32 r0, #0\nagain:\nset.lt.u32 p0, r0, #1000\n@!p0 bra done\nstg.u32 [o + r0], r0\nadd.u32 r0, "
                  "r0, #1\nbra again\ndone:\nexit\n",
               &linear, 1, 1);
}

/* A condition made of conditions that share theirs, as Fibonacci's numbers do: looking at them all would take for ever.
 */
static void test_shared_conditions(void) {
  enum { LEVELS = 80 };
  const uint64_t extents[4] = {1000, 1000, 1000, 1000};
  const hg_shape linear = {.lanes = 1000, .grid = {4, 1, 1}, .block = {256, 1, 1}, .extent = extents};
  char text[128 * LEVELS];
  unsigned proven = 0, all = 0;
  int used =
      snprintf(text, sizeof text,
               IO "ldg.u32 r0, [i + lane]\nldg.u32 r1, [i + #1]\nset.lt.u32 p0, r1, #5\nset.lt.u32 p1, r1, #6\n");
  for (int k = 0; k < LEVELS; k++)
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "set.lt.u32 p3, r1, #%d\npand p2, p0, p1\npand p1, p0, p3\npand p0, p2, p2\n", 10 + k);
  snprintf(text + used, sizeof text - (size_t)used,
           "@!p0 bra end\nldg.u32 r2, [i + r0]\nstg.u32 [o + lane], r2\nend:\nexit\n");
  count_proven(text, &linear, &proven, &all);
  CHECK_EQ_U64(all, 4);
  CHECK_EQ_U64(proven, 3);
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* Nothing is known of the launch: a program with as many elements of shared memory as it needs is proven, one with an
 * element less is not. */
static void check_loop(unsigned elements, const char *body) {
  char text[1024];
  for (unsigned less = 0; less < 2; less++) {
    snprintf(text, sizeof text, ".block 64\n.scalar n u32\n.shared t u32 %u\n" IO "%s\nexit\n", elements - less, body);
    check_proven(text, &(hg_shape){0}, 1 - less, 1);
  }
}

/* Not proven, however much there is. */
static void check_unknown_loop(const char *body) {
  char text[1024];
  snprintf(text, sizeof text, ".block 64\n.scalar n u32\n.shared t u32 8192\n" IO "%s\nexit\n", body);
  check_proven(text, &(hg_shape){0}, 0, 1);
}

#define STORE "sts.u32 [t + r0], r0\n"

static void test_counted_loops(void) {
  /* while (r0 < 16), and the same with the test at the end, up and down */
  check_loop(16, "movi.u32 r0, #0\nagain:\nset.ge.u32 p0, r0, #16\n@p0 bra done\n" STORE "add.u32 r0, r0, #1\nbra "
                 "again\ndone:");
  check_loop(16, "movi.u32 r0, #0\nagain:\n" STORE "add.u32 r0, r0, #1\nset.lt.u32 p0, r0, #16\n@p0 bra again");
  check_loop(16, "movi.i32 r0, #15\nagain:\nset.lt.i32 p0, r0, #0\n@p0 bra done\nsts.u32 [t + r0], #1\nsub.i32 r0, r0, "
                 "#1\nbra again\ndone:");
  check_loop(17, "movi.u32 r0, #16\nagain:\n" STORE "loop r0, again");
  check_loop(16, "movi.u32 r0, #16\nagain:\nsts.u32 [t + r0 + #-1], r0\nloop r0, again");
  check_loop(16, "movi.u64 r0, #0\nagain:\nset.ge.u64 p0, r0, #16\n@p0 bra done\nsts.u32 [t + r0], #1\nadd.u64 r0, r0, "
                 "#1\nbra again\ndone:");
  check_loop(16,
             "movi.u64 r0, #15\nmovi.u32 r1, #16\nagain:\nsts.u32 [t + r0], #1\nsub.u64 r0, r0, #1\nloop r1, again");
  /* where it ends */
  check_loop(
      17,
      "movi.u32 r0, #0\nagain:\nset.ge.u32 p0, r0, #16\n@p0 bra done\nadd.u32 r0, r0, #1\nbra again\ndone:\n" STORE);
  /* from the lane on, by a step that is known, or between 1 and 1024, or anything */
  check_loop(256, "mov.u32 r0, blane\nagain:\nset.ge.u32 p0, r0, #256\n@p0 bra done\n" STORE
                  "add.u32 r0, r0, #64\nbra again\ndone:");
  check_loop(256, "mov.u32 r0, blane\nsreg.u32 r1, grid_size.x\nagain:\nset.ge.u32 p0, r0, #256\n@p0 bra done\n" STORE
                  "add.u32 r0, r0, r1\nbra again\ndone:");
  /* a way around for each of two steps */
  check_loop(32, "movi.u32 r0, #0\nagain:\nset.ge.u32 p0, r0, #32\n@p0 bra done\n" STORE
                 "and.u32 r1, r0, #1\nset.eq.u32 p1, r1, #0\n@p1 bra odd\nadd.u32 r0, r0, #2\nbra again\nodd:\nadd.u32 "
                 "r0, r0, #1\nbra again\ndone:");
  check_unknown_loop("add.u32 r1, n, #1\nmovi.u32 r0, #0\nagain:\n" STORE "add.u32 r0, r0, #1\nloop r1, again");
  check_unknown_loop("movi.u32 r0, #5\nmovi.u32 r1, #9\nagain:\n" STORE "sub.u32 r0, r0, #1\nloop r1, again");
}

static void test_loops_of_several_values(void) {
  /* as often as another value says; also where the test comes before the access */
  check_loop(64 + 15 * 64, "mov.u32 r0, blane\nmovi.u32 r1, #16\nagain:\n" STORE "add.u32 r0, r0, #64\nloop r1, again");
  check_loop(64 + 15 * 64, "mov.u32 r0, blane\nmovi.u32 r1, #0\nagain:\nset.ge.u32 p0, r1, #16\n@p0 bra done\n" STORE
                           "add.u32 r0, r0, #64\nadd.u32 r1, r1, #1\nbra again\ndone:");
  check_loop(16, "min.u32 r1, n, #15\nadd.u32 r1, r1, #1\nmovi.u32 r0, #0\nagain:\n" STORE
                 "add.u32 r0, r0, #1\nloop r1, again");
  /* a row, a column and an element, of which the loops say nothing when they have ended */
  check_loop(4096, "movi.u32 r1, #0\nrow:\nset.ge.u32 p0, r1, #4\n@p0 bra done\nmovi.u32 r2, #16\nmovi.u32 r3, "
                   "#0\ncolumn:\nshl.u32 r4, r1, #4\nmad.u32 r4, blane, #64, r4\nadd.u32 r0, r4, r3\n" STORE
                   "add.u32 r3, r3, #1\nloop r2, column\nadd.u32 r1, r1, #1\nbra row\ndone:");
  /* what one of two loops around it moves */
  check_loop(64, "movi.u32 r1, #4\nmovi.u32 r0, #0\nouter:\nmovi.u32 r2, #9\ninner:\n" STORE
                 "loop r2, inner\nadd.u32 r0, r0, #21\nloop r1, outer");
  check_loop(64, "xor.u32 r0, blane, #32\n" STORE);
}

/* ---- random loops ------------------------------------------------------------------------------------------------ */

typedef struct writer {
  char text[4096];
  size_t used;
  uint32_t state;
  const char *type;
  int asks_length; /* r22 is the length of the buffer o, which loops read; type u64 */
} writer;

static uint32_t any_below(writer *w, uint32_t count) {
  w->state = w->state * 1664525 + 1013904223;
  return (w->state >> 8) % count;
}

static void write(writer *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  w->used += (size_t)vsnprintf(w->text + w->used, sizeof w->text - w->used, format, args);
  va_end(args);
}

/* A number, a lane's or the launch's: r20 and r21; small ones more often. */
static void write_operand(writer *w) {
  static const int numbers[] = {0, 1, 2, 3, 7, 16, 31, 64, 100, 127, -1, -2, -8, -16, -128};
  enum { SMALL = 9, ALL = sizeof numbers / sizeof numbers[0] };
  if (w->asks_length && any_below(w, 3) == 0) {
    write(w, "r22");
    return;
  }
  uint32_t k = any_below(w, any_below(w, 3) == 0 ? ALL + 2 : SMALL), bits = (uint32_t)atoi(w->type + 1);
  if (k >= ALL) write(w, "r%u", 20 + k - ALL);
  else if (numbers[k] >= 0 || w->type[0] == 'i') write(w, "#%d", numbers[k]);
  else write(w, "#0x%llx", (unsigned long long)(int64_t)numbers[k] & (UINT64_MAX >> (64 - bits)));
}

static void write_change(writer *w, uint32_t r) {
  static const char *const ops[] = {"add", "sub", "add", "mul", "max", "min", "and", "shr", "xor", "rem"};
  uint32_t op = any_below(w, 4) == 0 ? any_below(w, 10) : any_below(w, 2);
  if (op == 7) write(w, "shr.%s r%u, r%u, #%u\n", w->type, r, r, any_below(w, 40));
  else {
    write(w, "%s.%s r%u, r%u, ", ops[op], w->type, r, r);
    write_operand(w);
    write(w, "\n");
  }
}

static void write_test(writer *w, uint32_t p, uint32_t r) {
  static const char *const tests[] = {"lt", "le", "gt", "ge", "eq", "ne"};
  write(w, "set.%s.%s p%u, r%u, ", tests[any_below(w, 6)], w->type, p, r);
  write_operand(w);
  write(w, "\n");
}

/* r0 to r2 change in a loop, which ends by a test of one of them, before or after; in it there may be another loop. */
static void write_loop(writer *w, uint32_t number, uint32_t depth) {
  int tests_first = any_below(w, 2) == 0;
  if (depth == 0 || any_below(w, 2) == 0) {
    write(w, "mov.%s r%u, ", w->type, number);
    write_operand(w);
    write(w, "\n");
  }
  write(w, "again%u:\n", number);
  write_test(w, number, any_below(w, 3));
  if (tests_first) write(w, "@%sp%u bra done%u\n", any_below(w, 2) == 0 ? "!" : "", number, number);
  write(w, "add.%s r4, r4, r%u\n", w->type, any_below(w, 3));
  if (w->asks_length) {
    uint32_t index = any_below(w, 3);
    write(w, "ldg.u64 r23, [o + r%u]\nadd.u64 r4, r4, r23\n", index);
  }
  if (depth > 0 && any_below(w, 2) == 0) write_loop(w, number + 4, depth - 1);
  for (uint32_t r = 0; r < 3; r++)
    if (any_below(w, 3) > 0) write_change(w, r);
  if (any_below(w, 4) == 0) {
    write_test(w, 9, any_below(w, 3));
    write(w, "@p9 bra over%u\n", number);
    if (any_below(w, 2) == 0) write(w, "stg.%s [o + lane], r4\n", w->type); /* else both sides are one block */
    write_change(w, any_below(w, 3));
    write(w, "over%u:\n", number);
  }
  if (!tests_first) write_test(w, number, any_below(w, 3));
  if (tests_first) write(w, "bra again%u\n", number);
  else write(w, "@%sp%u bra again%u\n", any_below(w, 2) == 0 ? "!" : "", number, number);
  write(w, "done%u:\nadd.%s r4, r4, r%u\n", number, w->type, any_below(w, 3));
}

/* Whatever is claimed of such loops holds. */
static void test_random_loops(void) {
  static const char *const types[] = {"u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"};
  enum { PROGRAMS = 4000, OF_LENGTHS = 3000 }; /* the first of the last ones */
  for (uint32_t k = 0; k < PROGRAMS; k++) {
    if (!is_in_shard(k / 8)) continue;
    writer w = {.state = k * 7919 + 1, .type = k < OF_LENGTHS ? types[k % 8] : "u64", .asks_length = k >= OF_LENGTHS};
    write(&w, ".block 8\n.scalar n %s\n.buffer o %s inout\nldg.%s r20, [o + lane]\nand.%s r20, r20, #15\n", w.type,
          w.type, w.type, w.type);
    write(&w, "mov.%s r21, n\nmov.%s r4, #0\n", w.type, w.type);
    if (w.asks_length) write(&w, "len.u64 r22, o\n");
    for (uint32_t r = 0; r < 3; r++) {
      write(&w, "mov.%s r%u, ", w.type, r);
      write_operand(&w);
      write(&w, "\n");
    }
    write_loop(&w, 0, 2);
    write(&w, "stg.%s [o + lane], r4\nexit\n", w.type);
    atlas_program *program = parse(w.text);
    ssa_unit unit;
    compile(program, CANONICAL, &unit);
    check_by_running(program, &unit, w.text);
    ir_ssa_release(&unit);
    atlas_program_release(program);
  }
}

/* Of buffers, where the launch is known. */
static void test_loops_of_launches(void) {
  const uint64_t extents[8] = {1000, 1000, 1000, 1000, 1000}, scalars[8] = {1000, 1000, 1000, 1000, 1000};
  const hg_shape all = {.lanes = 1024, .grid = {4, 1, 1}, .block = {256, 1, 1}, .extent = extents, .scalar = scalars};
  const char *strided = IO ".scalar n u32\nmov.u32 r0, blane\nagain:\nset.ge.u32 p0, r0, n\n@p0 bra done\n"
                           "ldg.f32 r1, [x + r0]\nstg.f32 [y + r0], r1\nadd.u32 r0, r0, #256\nbra again\ndone:\nexit\n";
  check_proven(strided, &all, 2, 2);
  check_proven(strided, &(hg_shape){0}, 0, 2);
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

static void check_steps(const char *body, uint64_t expected) {
  char text[1024];
  ssa_unit unit;
  ssa_order order;
  hg_analysis analysis;
  snprintf(text, sizeof text, ".scalar n u32\n.buffer c u32 inout\n%s%s\nexit\n", IO, body);
  atlas_program *program = parse(text);
  compile(program, CANONICAL, &unit);
  CHECK_EQ_U64(hg_analyse(program, &unit, &(hg_shape){0}, &analysis), HG_OK);
  CHECK_EQ_U64(ir_ssa_order_build(&unit, &order), HG_OK);
  uint64_t found = hg_most_steps(&analysis, &unit, &order, NULL);
  if (!check_note(found == expected)) printf("%llu steps:\n%s", (unsigned long long)found, text);
  ir_ssa_order_release(&unit, &order);
  hg_analysis_release(&unit, &analysis);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

#define COUNT "atom.add.u32 _, [c + #0], #1\n"

static void test_steps(void) {
  check_steps("stg.u32 [o + lane], #1", 0);
  check_steps("movi.u32 r0, #10\nagain:\n" COUNT "loop r0, again", 9);
  check_steps("movi.i32 r0, #0\nagain:\n" COUNT "add.i32 r0, r0, #3\nset.lt.i32 p0, r0, #10\n@p0 bra again", 3);
  check_steps("movi.i32 r0, #0\nagain:\nset.ge.i32 p0, r0, #10\n@p0 bra done\n" COUNT "add.i32 r0, r0, #3\nbra again\n"
              "done:",
              4);
  check_steps("and.u32 r0, n, #15\nagain:\nset.eq.u32 p0, r0, #0\n@p0 bra done\n" COUNT
              "sub.u32 r0, r0, #1\nbra again\n"
              "done:",
              15);
  check_steps("mov.u32 r0, n\nagain:\n" COUNT "loop r0, again", UINT32_MAX);
  check_steps("movi.u32 r0, #0\nagain:\nset.ge.u32 p0, r0, n\n@p0 bra done\n" COUNT
              "add.u32 r0, r0, #1\nbra again\ndone:",
              UINT32_MAX);
  check_steps("movi.u32 r0, #0\nagain:\nset.ge.u32 p0, r0, n\n@p0 bra done\n" COUNT
              "add.u32 r0, r0, #2\nbra again\ndone:",
              UINT64_MAX); /* may pass by n and wrap */
  check_steps("mov.u32 r0, n\nagain:\n" COUNT "shr.u32 r0, r0, #4\nset.ne.u32 p0, r0, #0\n@p0 bra again", 9);
  check_steps("movi.u32 r0, #10\nrow:\nmovi.u32 r1, #5\ncolumn:\n" COUNT "loop r1, column\nloop r0, row", 9 + 10 * 4);
  check_steps("mov.u32 r0, n\nrow:\nmovi.u32 r1, #5\ncolumn:\n" COUNT "loop r1, column\nloop r0, row", UINT64_MAX);
  /* two ways back */
  check_steps(
      "movi.u32 r0, #0\nagain:\nldg.u32 r1, [i + r0]\nset.eq.u32 p0, r1, #0\n@p0 bra zero\nadd.u32 r0, r0, #2\n"
      "set.lt.u32 p1, r0, #32\n@p1 bra again\nbra done\nzero:\nadd.u32 r0, r0, #1\nset.lt.u32 p1, r0, #32\n@p1 bra "
      "again\ndone:",
      31);
}

/* ---- levels, alignment ------------------------------------------------------------------------------------------- */

static hg_fact fact_of_store(const char *text, const hg_shape *shape) {
  atlas_program *program = parse(text);
  ssa_unit unit;
  hg_analysis analysis;
  hg_fact fact = {0};
  compile(program, CANONICAL, &unit);
  CHECK_EQ_U64(hg_analyse(program, &unit, shape, &analysis), HG_OK);
  for (uint32_t v = 0; v < unit.insns.count; v++)
    if (ssa_insn_at(&unit, v)->op == ATLAS_OP_stg) fact = analysis.fact[ssa_args_of(&unit, v)[1]];
  hg_analysis_release(&unit, &analysis);
  ir_ssa_release(&unit);
  atlas_program_release(program);
  return fact;
}

static void check_fact(const char *body, uint8_t level, uint32_t alignment) {
  const hg_shape shape = {.grid = {4, 5, 1}, .block = {16, 8, 1}};
  char text[1024];
  snprintf(text, sizeof text, "%s%s\nstg.u32 [o + lane], r9\nexit\n", IO, body);
  hg_fact fact = fact_of_store(text, &shape);
  if (!check_note(fact.level == level && fact.alignment == alignment))
    printf("level %u, alignment %u: %s\n", fact.level, fact.alignment, body);
}

#define LENGTHS ".buffer x u32 in\n.buffer y u32 inout\n.scalar n u64\nlen.u64 r0, x\nlen.u64 r1, y\n"

/* Below the length of the buffer that is accessed, whatever the launch. */
static void test_lengths(void) {
  const hg_shape unknown = {0};
  check_proven(LENGTHS "set.lt.u64 p0, lane, r0\n@!p0 bra done\nldg.u32 r2, [x + lane]\nstg.u32 [y + lane], r2\ndone:\n"
                       "exit\n",
               &unknown, 1, 2);
  check_proven(LENGTHS
               "min.u64 r3, r0, n\nmin.u64 r3, r1, r3\nmul.u64 r4, lane, #3\nagain:\nset.ge.u64 p0, r4, r3\n"
               "@p0 bra done\nldg.u32 r2, [x + r4]\nstg.u32 [y + r4], r2\nadd.u64 r4, r4, #5\nbra again\ndone:\n"
               "exit\n",
               &unknown, 2, 2);
  /* of an index in 32 bits that the comparison has widened */
  check_proven(LENGTHS
               "cvt.u32.u64 r4, lane\nmul.u32 r4, r4, #77\ncvt.u64.u32 r5, r4\nset.lt.u64 p0, r5, r0\n"
               "set.lt.u64 p1, r5, r1\npand p0, p0, p1\n@!p0 bra done\nldg.u32 r2, [x + r4]\nstg.u32 [y + r4], r2\n"
               "done:\nexit\n",
               &unknown, 2, 2);
  /* one further, on the other side, with only one of two conditions, and where the sign counts */
  check_proven(LENGTHS "set.lt.u64 p0, lane, r0\n@!p0 bra done\nldg.u32 r2, [x + lane + #1]\nstg.u32 [y + lane], r2\n"
                       "done:\nexit\n",
               &unknown, 0, 2);
  check_proven(LENGTHS "set.lt.u64 p0, lane, r0\n@p0 bra done\nldg.u32 r2, [x + lane]\nstg.u32 [y + lane], r2\ndone:\n"
                       "exit\n",
               &unknown, 0, 2);
  check_proven(LENGTHS "set.lt.u64 p0, lane, r0\nset.lt.u64 p1, lane, n\npor p0, p0, p1\n@!p0 bra done\n"
                       "ldg.u32 r2, [x + lane]\nstg.u32 [y + #3], r2\ndone:\nexit\n",
               &unknown, 0, 2);
  check_proven(LENGTHS "cvt.i32.u64 r4, lane\nsub.i32 r4, r4, #5\ncvt.u64.i32 r5, r4\nset.lt.u64 p0, r5, r0\n"
                       "@!p0 bra done\nldg.u32 r2, [x + r4]\nstg.u32 [y + #3], r2\ndone:\nexit\n",
               &unknown, 0, 2);
  /* the next one, which nobody has compared */
  check_proven(LENGTHS "mul.u64 r4, lane, #3\nagain:\nset.ge.u64 p0, r4, r0\n@p0 bra done\nadd.u64 r4, r4, #5\n"
                       "ldg.u32 r2, [x + r4]\nstg.u32 [y + #3], r2\nbra again\ndone:\nexit\n",
               &unknown, 0, 2);
}

/* The same of indices in several forms, and by several comparisons. */
static void test_indices_below_lengths(void) {
  static const struct {
    const char *text;
    unsigned proven, all;
  } cases[] = {
      {"len.u64 r1, x\nset.ge.u64 p0, lane, r1\n@p0 bra done\nldg.f32 r2, [x + lane]\nstg.f32 [y + lane], r2\ndone:", 1,
       2},
      {"cvt.u64.u32 r0, blane\nlen.u64 r1, x\nagain:\nset.ge.u64 p0, r0, r1\n@p0 bra done\nldg.f32 r2, [x + r0]\n"
       "stg.f32 [y + r0], r2\nadd.u64 r0, r0, #64\nbra again\ndone:",
       1, 2},
      /* an index of 32 bits, compared as one of 64, and the elements beside it */
      {"cvt.u32.u64 r0, lane\nlen.u64 r1, x\ncvt.u64.u32 r2, r0\nset.ge.u64 p0, r2, r1\n@p0 bra done\n"
       "ldg.f32 r3, [x + r0]\nldg.f32 r4, [x + r0 + #1]\nadd.f32 r3, r3, r4\nstg.f32 [y + lane], r3\ndone:",
       1, 3},
      {"mov.u32 r0, blane\nlen.u64 r1, x\nadd.u32 r2, r0, #3\ncvt.u64.u32 r2, r2\nset.ge.u64 p0, r2, r1\n@p0 bra done\n"
       "ldg.f32 r3, [x + r0 + #1]\nldg.f32 r4, [x + r0 + #3]\nldg.f32 r5, [x + r0 + #4]\nldg.f32 r6, [x + r0 + #-1]\n"
       "add.f32 r3, r3, r4\nadd.f32 r5, r5, r6\nadd.f32 r3, r3, r5\nstg.f32 [y + lane], r3\ndone:",
       2, 5},
      /* the lesser of a scalar and the length; a scalar that the length is not below */
      {"cvt.u64.u32 r5, n\nlen.u64 r1, x\nmin.u64 r1, r1, r5\nset.ge.u64 p0, lane, r1\n@p0 bra done\n"
       "ldg.f32 r2, [x + lane]\nstg.f32 [y + lane], r2\ndone:",
       1, 2},
      {"cvt.u64.u32 r5, n\nlen.u64 r1, x\nset.lt.u64 p0, r1, r5\n@p0 bra done\nset.ge.u64 p0, lane, r5\n@p0 bra done\n"
       "ldg.f32 r2, [x + lane]\nstg.f32 [y + lane], r2\ndone:",
       1, 2},
      {"cvt.u64.u32 r5, n\nlen.u64 r1, x\nset.lt.u64 p0, r5, r1\n@p0 bra done\nset.ge.u64 p0, lane, r5\n@p0 bra done\n"
       "ldg.f32 r2, [x + lane]\nstg.f32 [y + lane], r2\ndone:",
       0, 2},
      /* what says nothing: at most the length; another buffer's; a number below 0; a sum that wraps */
      {"len.u64 r1, x\nset.gt.u64 p0, lane, r1\n@p0 bra done\nldg.f32 r2, [x + lane]\nstg.f32 [y + lane], r2\ndone:", 0,
       2},
      {"len.u64 r1, y\nset.ge.u64 p0, lane, r1\n@p0 bra done\nldg.f32 r2, [x + lane]\nstg.f32 [y + lane], r2\ndone:", 1,
       2},
      {"ldg.i32 r0, [s + lane]\nlen.u64 r1, x\ncvt.i64.i32 r2, r0\ncvt.i64.u64 r1, r1\nset.ge.i64 p0, r2, r1\n@p0 bra "
       "done\n"
       "ldg.f32 r3, [x + r0]\nstg.f32 [y + lane], r3\ndone:",
       0, 3},
      {"cvt.u32.u64 r0, lane\nlen.u64 r1, x\nadd.u32 r2, r0, #3\ncvt.u64.u32 r2, r2\nset.ge.u64 p0, r2, r1\n@p0 bra "
       "done\n"
       "ldg.f32 r3, [x + r0]\nstg.f32 [y + lane], r3\ndone:",
       0, 2},
  };
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    char text[1024];
    snprintf(text, sizeof text, ".scalar n u32\n.buffer s i32 in\n" IO "%s\nexit\n", cases[k].text);
    check_proven(text, &(hg_shape){0}, cases[k].proven, cases[k].all);
  }
}

static void test_levels_and_alignment(void) {
  check_fact("movi.u32 r9, #48", IR_GRID, 16);
  check_fact("sreg.u32 r9, block_size.x", IR_GRID, 1);
  check_fact("sreg.u32 r9, block.x", IR_BLOCK, 1);
  check_fact("sreg.u32 r0, block.x\nsreg.u32 r1, block.y\nshl.u32 r0, r0, #4\nmad.u32 r9, r1, #320, r0", IR_BLOCK, 16);
  check_fact("mov.u32 r9, blane", IR_LANE, 1);
  check_fact("mad.u32 r9, blane, #8, #4", IR_LANE, 4);
  check_fact("sreg.u32 r0, global.y\nmul.u32 r9, r0, #64", IR_LANE, 64);
  check_fact("ldg.u32 r9, [i + #4]", IR_GRID, 1);
  check_fact("ldg.u32 r9, [i + r253]", IR_BLOCK, 1);
  check_fact("ldg.u32 r0, [i + lane]\nand.u32 r9, r0, #0xfffffff0", IR_LANE, 16);
  check_fact("ldg.u32 r0, [i + lane]\nreduce.max.u32 r9, r0", IR_BLOCK, 1);
  /* written under divergent control, and under uniform control */
  check_fact("movi.u32 r9, #1\nset.lt.u32 p0, blane, #7\n@p0 bra on\nmovi.u32 r9, #2\non:", IR_LANE, 1);
  check_fact("movi.u32 r9, #1\nset.lt.u32 p0, r253, #7\n@p0 bra on\nmovi.u32 r9, #2\non:", IR_BLOCK, 1);
}

int main(void) {
  test_bounds();
  test_shared_conditions();
  test_counted_loops();
  test_loops_of_several_values();
  test_loops_of_launches();
  test_random_loops();
  test_lengths();
  test_indices_below_lengths();
  test_steps();
  test_levels_and_alignment();
  return check_report();
}
