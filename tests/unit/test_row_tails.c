/* test_row_tails.c - the last columns of a row, of which a block has fewer than lanes: u + min(blane, s) in lanes below
 * t, in straight-line code one load or store of neighbours under a mask. With t that is not s + 1, or larger than the
 * block, indices that wrap, rows partly out of bounds, several rows of a block, lanes beyond t that are seen and lanes
 * that are not. They leave the memory and the fault of the interpreter, on every instruction set of this machine. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "backend/cpu/engine/detect.h"
#include "beside_reference.h"
#include "native_passes.h"

enum { BLOCKS = 6, ELEMENTS = 3400, NOT_STRAIGHT = 99 };

typedef struct trial {
  const char *text;
  uint32_t first, last, end;   /* first: added to every index */
  uint64_t extent, out_extent; /* of x and y, in elements */
} trial;

#define HEAD_OF(lanes, type, stride)                                                                                 \
  ".program p\n.block " lanes "\n.buffer x " type " in\n.buffer y " type " inout\n.scalar first u32\n"               \
  ".scalar last u32\n.scalar end u32\nmul.u32 r1, r253, #" stride "\nadd.u32 r1, r1, first\nadd.u32 r2, blane, r1\n" \
  "min.u32 r10, blane, last\nadd.u32 r12, r1, r10\nset.lt.u32 p0, blane, end\n"
#define HEAD(lanes, type) HEAD_OF(lanes, type, "200")
#define LOADS(type) "ldg." type " r3, [x + r2]\nldg." type " r4, [x + r12 + #64]\n"
#define STORES(type) "stg." type " [y + r2], r3\n@!p0 bra done\nstg." type " [y + r12 + #64], r4\ndone:\nexit\n"

/* Lanes from t on count nowhere. */
static const char sums[] =
    HEAD("64", "u32") LOADS("u32") "sel.u32 r5, p0, r4, #0\nadd.u32 r5, r5, r3\nreduce.add.u32 r6, r5\nxor.u32 r3, r3, "
                                   "r6\nmul.u32 r4, r4, r6\n" STORES("u32");
/* They do. */
static const char seen[] =
    HEAD("64", "u32") LOADS("u32") "max.u32 r5, r4, r3\nreduce.max.u32 r6, r5\nsel.u32 r5, p0, r4, #5\nreduce.add.u32 "
                                   "r7, r5\nadd.u32 r3, r3, r6\nsub.u32 r4, r4, r7\n" STORES("u32");
static const char seen_sel[] =
    HEAD("64", "u32") LOADS("u32") "sel.u32 r5, p0, r3, r4\nreduce.add.u32 r6, r5\nadd.u32 r3, r3, r6\n" STORES("u32");
/* Rows that nothing but a tail is; what all of them read; the index itself. */
static const char two[] = HEAD(
    "64",
    "f32") "add.u32 r13, r1, #100\nadd.u32 r13, r13, r10\nldg.f32 r3, [x + r12]\nldg.f32 r4, [x + r13]\nldg.f32 r7, [x "
           "+ r10 + "
           "#9]\nsel.f32 r5, p0, r3, #-0\nreduce.add.f32 r5, r5\nsel.f32 r6, p0, r4, #-inf\nreduce.max.f32 r6, r6\n"
           "fma.f32 r3, r3, r5, r7\nfma.f32 r4, r4, r6, r7\nset.lt.u32 p1, r253, #4\nmov.f32 r8, r3\nmov.f32 r9, r4\n"
           "@!p0 bra done\nstg.f32 [y + r12], r8\n@!p1 bra done\nstg.f32 [y + r13], r9\ndone:\nexit\n";
/* What is read may have been written: the block must not begin again. */
static const char in_place[] =
    HEAD("64", "u32") "ldg.u32 r3, [y + r2]\nldg.u32 r4, [y + r12 + #64]\nsel.u32 r5, p0, r4, #7\nreduce.add.u32 r6, "
                      "r5\nxor.u32 r3, r3, r6\nadd.u32 r4, r4, r6\n" STORES("u32");
/* The index is known behind a store. */
static const char behind[] =
    HEAD("64", "u32") "ldg.u32 r3, [y + r2]\nreduce.add.u32 r6, r3\nstg.u32 [y + r2], r6\nand.u32 r6, r6, #31\nadd.u32 "
                      "r6, r6, r1\nadd.u32 r13, r6, r10\nldg.u32 r4, [y + r13 + #80]\nreduce.add.u32 r7, r4\n@!p0 bra "
                      "done\nstg.u32 [y + r13 + #80], r7\ndone:\nexit\n";
/* A mask that says nothing of t; two ends. */
static const char other_mask[] =
    HEAD("64", "u32") LOADS("u32") "sel.u32 r5, p0, r4, #3\nreduce.max.u32 r6, r5\nand.u32 r7, r3, #1\nset.eq.u32 p1, "
                                   "r7, #1\n@!p1 bra done\nstg.u32 [y + r12], r6\ndone:\nexit\n";
static const char two_ends[] =
    HEAD("64", "u32") LOADS("u32") "set.lt.u32 p1, blane, last\nsel.u32 r5, p1, r4, #3\nreduce.add.u32 r6, r5\nxor.u32 "
                                   "r3, r3, r6\nadd.u32 r4, r4, r6\n" STORES("u32");
/* A second row of the block, which some blocks do not have; a block that has stored something before may not begin
 * again where others read it. */
#define MAY_BE(symbol)                                                                                        \
  "add.u32 r14, r2, #130\nldg.u32 r3, [" symbol " + r2]\nldg.u32 r4, [x + r12 + #64]\nldg.u32 r7, [" symbol   \
  " + r14]\n"                                                                                                 \
  "add.u32 r5, r3, r7\nreduce.add.u32 r6, r5\nxor.u32 r3, r3, r6\nxor.u32 r7, r7, r6\nstg.u32 [y + r2], r3\n" \
  "set.lt.u32 p1, r253, #4\n@!p1 bra none\nmul.u32 r7, r7, r6\nstg.u32 [y + r14], r7\nnone:\n@!p0 bra done\n" \
  "stg.u32 [y + r12 + #64], r4\ndone:\nexit\n"
static const char may_be[] = HEAD("64", "u32") MAY_BE("x");
static const char may_be_in_place[] = HEAD("64", "u32") MAY_BE("y");
/* More masks than there are registers, and functions with rare cases. */
#define WIDE "ldg.f32 r3, [x + r2]\nldg.f32 r4, [x + r12 + #256]\n"
static const char crowded[] = HEAD_OF("256", "f32", "520") WIDE
    "sel.f32 r5, p0, r4, #-0\nadd.f32 r5, r5, r3\nreduce.add.f32 r6, r5\nsub.f32 r3, r3, "
    "r6\nsub.f32 r4, r4, r6\nmul.f32 r7, r4, r4\nsel.f32 r7, p0, r7, #-0\nreduce.add.f32 r7, "
    "r7\ndiv.f32 r3, r3, r7\ndiv.f32 r4, r4, r7\nstg.f32 [y + r2], r3\n@!p0 bra done\nstg.f32 [y + "
    "r12 + #256], r4\ndone:\nexit\n";
static const char rare[] =
    HEAD("64", "f32") LOADS("f32") "exp.f32 r3, r3\nexp.f32 r4, r4\nsel.f32 r5, p0, r4, #-0\nadd.f32 r5, r5, "
                                   "r3\nreduce.add.f32 r6, r5\ndiv.f32 r3, r3, r6\ndiv.f32 r4, r4, r6\n" STORES("f32");
static const char narrow[] = HEAD("64", "f16")
    LOADS("f16") "sel.f16 r5, p0, r4, #-0\nadd.f16 r5, r5, r3\nreduce.add.f16 r6, r5\nadd.f16 r3, r3, "
                 "r6\nadd.f16 r4, r4, r6\n" STORES("f16");
static const char bytes[] = HEAD("64", "u8")
    LOADS("u8") "max.u8 r5, r4, r3\nreduce.max.u8 r6, r5\nsub.u8 r3, r6, r3\nsub.u8 r4, r6, r4\n" STORES("u8");
static const char longs[] =
    HEAD("64", "u64") LOADS("u64") "sel.u64 r5, p0, r4, #1\nreduce.add.u64 r6, r5\nadd.u64 r3, r3, r6\nmul.u64 r4, r4, "
                                   "r6\n" STORES("u64");

/* Tails of rows in a loop, and what the next round reads of lanes beyond. */
static const char rounds[] = HEAD(
    "64", "u32") "movi.u32 r8, #0\nmovi.u32 r7, #0\nand.u32 r9, last, #3\nadd.u32 r9, r9, #1\ntop:\nadd.u32 r2, blane, "
                 "r1\nadd.u32 r12, r1, r10\n" LOADS("u32") "sel.u32 r5, p0, r4, r7\nmov.u32 r7, r4\nadd.u32 r5, r5, "
                                                           "r3\nreduce.add.u32 r6, r5\nadd.u32 r8, r8, r6\nadd.u32 r1, "
                                                           "r1, #9\nloop r9, top\nadd.u32 r3, r3, "
                                                           "r8\nxor.u32 r4, r4, r8\n" STORES("u32");

static const struct {
  const char *text;
  uint32_t tails; /* accesses that become NATIVE_TAILs, before lanes become vectors; NOT_STRAIGHT: it is not */
} texts[] = {{sums, 2},   {seen, 2},       {seen_sel, 2}, {two, 5},     {in_place, 2},
             {behind, 0}, {other_mask, 1}, {two_ends, 0}, {crowded, 2}, {rare, 2},
             {narrow, 2}, {bytes, 2},      {longs, 2},    {may_be, 2},  {may_be_in_place, NOT_STRAIGHT}, {rounds, 2}};

static void check(const trial *t) {
  static uint32_t words[2 * ELEMENTS];
  for (uint32_t i = 0; i < COUNT(words); i++) words[i] = i * 2654435761u >> 7;
  uint64_t bytes_of = strstr(t->text, "x f16") ? 2 : strstr(t->text, "x u8") ? 1 : strstr(t->text, "x u64") ? 8 : 4;
  const beside_buffer buffers[] = {
      {.name = "x", .contents = words, .size = sizeof words, .byte_count = bytes_of * t->extent},
      {.name = "y", .contents = words, .size = sizeof words, .byte_count = bytes_of * t->out_extent, .is_result = 1}};
  hg_scalar scalars[] = {{.name = "first", .type = ATLAS_u32, .bits = t->first},
                         {.name = "last", .type = ATLAS_u32, .bits = t->last},
                         {.name = "end", .type = ATLAS_u32, .bits = t->end}};
  const hg_launch_desc desc = {.grid = {BLOCKS, 1, 1}, .scalars = scalars, .scalar_count = 3};
  (void)check_beside(t->text, &desc, buffers, COUNT(buffers));
}

static void check_text(const char *text) {
  static const uint32_t firsts[] = {0, 5, 0u - 1, 0u - 70, 0u - 120, 0u - 700, 1u << 31};
  static const uint32_t ends[][2] = {{20, 21}, {0, 1},   {15, 16}, {16, 17},   {62, 63},  {63, 64}, {100, 101}, {19, 0},
                                     {20, 20}, {20, 30}, {30, 20}, {300, 301}, {0u - 1, 0}, {0u - 1, 64}, {200, 201}};
  trial t = {.text = text, .extent = ELEMENTS, .out_extent = ELEMENTS};
  for (size_t e = 0; e < COUNT(ends); e++)
    for (size_t k = 0; k < COUNT(firsts); k++) {
      t.last = ends[e][0];
      t.end = ends[e][1];
      t.first = firsts[k];
      check(&t);
    }
  t.first = 3;
  t.last = 40;
  t.end = 41;
  for (t.extent = 1; t.extent < 1300; t.extent += 37) check(&t);
  for (t.extent = 1100; t.extent < 1116; t.extent++) check(&t);
  t.extent = ELEMENTS;
  for (t.out_extent = 1; t.out_extent < 1300; t.out_extent += 41) check(&t);
}

/* That straight-line code has them, which nobody sees by its results. */
static void check_tails(const char *text, uint32_t expected, const native_target *target) {
  pass_counts counts = count_passes(text, target);
  CHECK_EQ_U64(counts.fired[NATIVE_BLOCK_straight] == 0, expected == NOT_STRAIGHT);
  if (expected != NOT_STRAIGHT) CHECK_EQ_U64(counts.fired[NATIVE_BLOCK_masked_tail], expected);
}

int main(void) {
  for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++) {
    const native_target *target = hg_native_target((cpu_isa)isa);
    set("HOLOGRAM_CPU_ISA", hg_cpu_isa_name((cpu_isa)isa));
    open_both();
    for (size_t k = 0; k < COUNT(texts); k++) {
      check_text(texts[k].text);
      if (target != NULL && target->runs_blocks) check_tails(texts[k].text, texts[k].tails, target);
    }
    close_both();
  }
  set("HOLOGRAM_CPU_ISA", "");
  return check_report();
}
