/* test_held_rows.c - blocks that load a row, fold it and store what they make of it: accesses [x + blane + u] in
 * several regions and in straight-line code, of which the native x86 engine checks a group's at once; with parts out of
 * bounds, indices that wrap, u that changes from round to round, and indices that the block folds. They leave the
 * memory and the fault of the interpreter, on every instruction set of this machine. */
#define _POSIX_C_SOURCE 200112L /* setenv */
#include "backend/cpu/engine/detect.h"
#include "beside_reference.h"
#include "native_passes.h"

#include <stdlib.h>

enum { BLOCKS = 6, ELEMENTS = 2600 };

typedef struct trial {
  const char *text;
  uint32_t first;              /* added to every index */
  uint64_t extent, out_extent; /* of x and y */
} trial;

#define HEAD(lanes)                                                                                          \
  ".program p\n.block " lanes "\n.buffer x u32 in\n.buffer y u32 inout\n.scalar first u32\n.scalar seven u32\n" \
  "mul.u32 r1, r253, #320\nadd.u32 r1, r1, first\nadd.u32 r2, blane, r1\n"
#define LOADS "ldg.u32 r3, [x + r2]\nldg.u32 r4, [x + r2 + #80]\nldg.u32 r5, [x + r2 + #160]\n"
#define STORES "stg.u32 [y + r2], r3\nstg.u32 [y + r2 + #80], r4\nstg.u32 [y + r2 + #160], r5\nexit\n"
#define EACH(op, other) op " r3, r3, " other "\n" op " r4, r4, " other "\n" op " r5, r5, " other "\n"

static const char held[] =
    HEAD("64") LOADS "add.u32 r6, r3, r4\nadd.u32 r6, r6, r5\nreduce.add.u32 r6, r6\n" EACH("sub.u32", "r6") STORES;
/* Not a whole number of vectors. */
static const char odd[] = HEAD("72") LOADS "reduce.max.u32 r6, r3\n" EACH("xor.u32", "r6") STORES;
/* Lanes that diverge have no straight-line code. */
static const char diverging[] =
    HEAD("64") LOADS "reduce.add.u32 r6, r3\nand.u32 r7, r3, #1\nset.eq.u32 p0, r7, #0\n@p0 bra even\n"
                     "top:\nshr.u32 r3, r3, #1\nset.ne.u32 p0, r3, #0\n@p0 bra top\nbra both\neven:\nmul.u32 r3, r3, "
                     "#5\nstg.u32 [y + r2 + #80], r3\n"
                     "both:\nreduce.min.u32 r8, r3\n" EACH("add.u32", "r8") STORES;
/* What is added changes in each round. */
static const char rounds[] = HEAD(
    "64") "movi.u32 r9, #0\nmovi.u32 r10, #0\ntop:\nmul.u32 r11, r9, seven\nadd.u32 r11, r11, r1\nadd.u32 r2, blane, "
          "r11\n"
          "ldg.u32 r3, [x + r2]\nreduce.add.u32 r4, r3\nadd.u32 r10, r10, r4\nldg.u32 r5, [x + r2 + #1]\nadd.u32 r3, "
          "r3, r5\n"
          "reduce.max.u32 r6, r3\nadd.u32 r10, r10, r6\nadd.u32 r9, r9, #1\nset.lt.u32 p0, r9, seven\n@p0 bra top\n"
          "stg.u32 [y + r2], r10\nexit\n";
/* The block folds indices, too. */
static const char folded[] =
    HEAD("64") LOADS "reduce.max.u32 r6, r2\nreduce.add.u32 r7, r3\nscan.incl.u32 r8, r2\n" EACH("add.u32", "r6")
        EACH("xor.u32", "r7") EACH("add.u32", "r8") STORES;
/* A register that u was in has another value when the row is stored. */
static const char many[] = HEAD("64") LOADS
    "reduce.add.u32 r6, r3\nmul.u32 r12, r6, #3\nmul.u32 r13, r6, #5\nmul.u32 r14, r6, #7\nmul.u32 r15, r6, r12\n"
    "mul.u32 r16, r13, r14\n" EACH("add.u32", "r12") EACH("xor.u32", "r13") EACH("add.u32", "r14")
        EACH("xor.u32", "r15") EACH("sub.u32", "r16") STORES;

/* Accesses behind sides of a branch, of two buffers in turn, and by another u between: an index once found is not
 * theirs. */
static const char turns[] =
    HEAD("64") "add.u32 r11, r1, #7\nadd.u32 r12, blane, r11\nldg.u32 r3, [x + r2]\nldg.u32 r4, [y + r2 + #80]\n"
               "ldg.u32 r5, [x + r12 + #16]\nldg.u32 r6, [x + r2 + #32]\nreduce.add.u32 r7, r3\nshr.u32 r8, blane, #5\n"
               "xor.u32 r8, r8, seven\nand.u32 r8, r8, #1\nset.eq.u32 p0, r8, #0\n@p0 bra even\nstg.u32 [y + r12], r5\n"
               "ldg.u32 r5, [x + r12 + #48]\neven:\nadd.u32 r3, r7, r5\n@!p0 bra odd\nldg.u32 r9, [x + r2 + #64]\n"
               "add.u32 r3, r3, r9\nstg.u32 [y + r2 + #256], r9\nodd:\nldg.u32 r4, [x + r2 + #96]\nxor.u32 r4, r4, r3\n"
               "add.u32 r5, r5, r6\nreduce.max.u32 r8, r4\n" EACH("add.u32", "r8") STORES;

/* Between folds much is computed, and asks for the next block's rows meanwhile. */
#define FEW EACH("mul.u32", "r6") EACH("xor.u32", "seven") EACH("add.u32", "r6") EACH("sub.u32", "first")
static const char busy[] =
    HEAD("64") LOADS "reduce.max.u32 r6, r3\n" FEW FEW FEW FEW FEW
                     "shr.u32 r7, r3, #3\nand.u32 r7, r7, r4\nreduce.add.u32 r7, r7\n" EACH("xor.u32", "r7") STORES;
static const char busy_odd[] =
    HEAD("72") LOADS "reduce.max.u32 r6, r3\n" FEW FEW FEW FEW FEW
                     "shr.u32 r7, r3, #3\nand.u32 r7, r7, r4\nreduce.add.u32 r7, r7\n" EACH("xor.u32", "r7") STORES;

/* What follows from a reduction is the same in all lanes, until it is something else. */
static const char alike[] = HEAD("64") LOADS
    "reduce.add.u32 r6, r3\nmul.u32 r7, r6, #3\nadd.u32 r7, r7, first\nmov.u32 r8, r7\nmovi.u32 r9, #3\n"
    "top:\nadd.u32 r3, r3, r8\nadd.u32 r10, r8, #1\nxor.u32 r4, r4, r10\nxor.u32 r8, r8, r3\n"
    "loop r9, top\nadd.u32 r5, r5, r7\n" EACH("xor.u32", "r8") STORES;

/* What a row has one of: lane 0 stores it, or the first lanes do; and all load what follows from the block's number. */
static const char single[] =
    HEAD("64") LOADS "reduce.max.u32 r6, r3\nldg.u32 r7, [x + r1 + #5]\nadd.u32 r6, r6, r7\nset.ne.u32 p0, blane, #0\n"
                     "@p0 bra done\nstg.u32 [y + r1], r6\ndone:\nexit\n";
static const char several[] =
    HEAD("64") LOADS "reduce.max.u32 r6, r3\nreduce.min.u32 r7, r4\nset.eq.u32 p1, blane, #1\nsel.u32 r6, p1, r7, r6\n"
                     "set.ge.u32 p0, blane, #3\n@p0 bra done\nstg.u32 [y + r2 + #3], r6\ndone:\nexit\n";

/* Rows that are read in the order of addresses, since little is done with them; a multiply-add finds where they begin.
 * `kept`: what a lane has is read again, and an element of another row. */
#define LONG_HEAD(type) \
  ".program p\n.block 1024\n.buffer x " type " in\n.buffer y " type " inout\n.scalar first u32\n.scalar seven u32\n"
#define LONG_ROW(type) \
  "mad.u32 r2, r253, seven, blane\nadd.u32 r2, r2, first\nldg." type " r3, [x + r2]\nldg." type \
  " r4, [x + r2 + #1024]\n"
#define LONG_END(type) "set.ne.u32 p0, blane, #0\n@p0 bra done\nstg." type " [y + r253], r6\ndone:\nexit\n"
static const char long_sum[] =
    LONG_HEAD("f32") LONG_ROW("f32") "add.f32 r6, r3, r4\nreduce.add.f32 r6, r6\n" LONG_END("f32");
static const char long_extreme[] =
    LONG_HEAD("f32") LONG_ROW("f32") "max.f32 r6, r4, r3\nreduce.max.f32 r6, r6\n" LONG_END("f32");
static const char long_kept[] =
    LONG_HEAD("u32") LONG_ROW("u32") "xor.u32 r5, r3, r4\nreduce.add.u32 r6, r5\nldg.u32 r7, [x + r253 + #3]\n"
                                     "add.u32 r6, r6, r7\n" LONG_END("u32");
static const char long_twice[] =
    LONG_HEAD("u32") LONG_ROW("u32") "mul.u32 r5, r3, #3\nadd.u32 r5, r5, r4\nreduce.add.u32 r6, r5\n"
                                     "reduce.max.u32 r7, r4\nadd.u32 r6, r6, r7\n" LONG_END("u32");

/* More vectors than there are registers, of rows that begin at several places and of what all blocks read; C code asks
 * for what lies in memory still, where an index is out of bounds. */
#define WIDE_HEAD \
  ".program p\n.block 256\n.buffer x u32 in\n.buffer y u32 inout\n.scalar first u32\n.scalar seven u32\n" \
  "mul.u32 r1, r253, #800\nadd.u32 r1, r1, first\nadd.u32 r2, blane, r1\n" \
  "ldg.u32 r3, [x + r2]\nldg.u32 r4, [x + r2 + #256]\nldg.u32 r5, [x + r2 + #512]\nldg.u32 r10, [x + blane + #512]\n"
#define WIDE_STORES "stg.u32 [y + r2], r3\nstg.u32 [y + r2 + #256], r4\nstg.u32 [y + r2 + #512], r5\nexit\n"
static const char crowded[] = WIDE_HEAD
    "ldg.u32 r9, [x + blane]\nadd.u32 r11, r1, #7\nadd.u32 r12, blane, r11\nldg.u32 r13, [x + r12]\n"
    "ldg.u32 r14, [x + r12 + #9]\nadd.u32 r6, r3, r4\nadd.u32 r6, r6, r5\nreduce.add.u32 r6, r6\n" EACH("sub.u32", "r6")
        EACH("xor.u32", "r13") "reduce.max.u32 r7, r3\n" EACH("xor.u32", "r7") EACH("add.u32", "r9")
            "shr.u32 r15, r10, #14\nldg.u32 r16, [x + r15]\nmul.u32 r7, r7, #3\n" EACH("xor.u32", "r16")
                EACH("add.u32", "r14") EACH("mul.u32", "r10") EACH("add.u32", "r7") WIDE_STORES;
static const char crowded_gather[] = WIDE_HEAD
    "add.u32 r6, r3, r4\nadd.u32 r6, r6, r5\nreduce.add.u32 r6, r6\n" EACH("xor.u32", "r6") EACH("mul.u32", "r10")
        "reduce.max.u32 r7, r3\nldg.u32 r16, [x + r10]\n" EACH("add.u32", "r16") EACH("add.u32", "r7") WIDE_STORES;

/* Rows in loops over their parts: one folds, and one stores in each round, so that a later round may be out of bounds
 * behind stores. `again`: the second loop reads what it has stored. */
#define OVER_PARTS(name, body)                                                                                         \
  "movi.u32 r9, #0\nsub.u32 r10, seven, #3\n" name ":\nadd.u32 r11, blane, r9\nadd.u32 r2, r1, r11\nldg.u32 r3, [x " \
  "+ r2]\n" body "add.u32 r9, r9, #64\nloop r10, " name "\n"
#define BETWEEN "xor.u32 r13, r8, blane\nreduce.max.u32 r8, r13\n"
#define ADDED "reduce.add.u32 r6, r3\nadd.u32 r8, r8, r6\n"
static const char parts[] = HEAD("64") "movi.u32 r8, #0\n" OVER_PARTS("fold", ADDED) BETWEEN OVER_PARTS(
    "store", "ldg.u32 r12, [x + r11]\nxor.u32 r3, r3, r8\nadd.u32 r3, r3, r12\nstg.u32 [y + r2], r3\n") "exit\n";
static const char again[] = HEAD("64") "movi.u32 r8, #0\n" OVER_PARTS("fold", ADDED) BETWEEN OVER_PARTS(
    "store", "ldg.u32 r12, [y + r2]\nxor.u32 r3, r3, r8\nadd.u32 r3, r3, r12\nstg.u32 [y + r2], r3\n") "exit\n";

/* Functions whose rare cases are come to from the fourth block on, some behind stores, some where the block reads what
 * it stores. */
#define NUMBER(r) "and.u32 " r ", " r ", #15\ncvt.f32.u32 " r ", " r "\nmul.f32 " r ", " r ", r20\n"
#define SCALE "movi.u32 r20, #1\nshl.u32 r20, r20, r253\ncvt.f32.u32 r20, r20\n"
#define EXP(r) "exp.f32 " r ", " r "\n"
#define BITS(r) "bitcast.u32.f32 " r ", " r "\n"
#define SUM "add.f32 r6, r3, r4\nadd.f32 r6, r6, r5\nreduce.add.f32 r6, r6\n"
#define LOG SUM "log.f32 r7, r6\nadd.f32 r3, r3, r7\n" BITS("r3") "stg.u32 [y + r2], r3\n"
#define NUMBERS SCALE LOADS NUMBER("r3") NUMBER("r4") NUMBER("r5")
static const char rare[] =
    HEAD("64") NUMBERS EXP("r3") EXP("r4") EXP("r5") SUM "div.f32 r3, r3, r6\n" BITS("r3") BITS("r4") BITS("r5") STORES;
static const char rare_behind[] = HEAD("64") NUMBERS EXP("r3") LOG EXP("r5") "log.f32 r4, r4\n" BITS("r4") BITS("r5")
    "stg.u32 [y + r2 + #80], r4\nstg.u32 [y + r2 + #160], r5\nexit\n";
static const char rare_again[] =
    HEAD("64") NUMBERS EXP("r3") LOG "ldg.u32 r8, [y + r2 + #240]\n" EXP("r5") "log.f32 r4, r4\n" BITS("r4") BITS("r5")
        "add.u32 r5, r5, r8\nstg.u32 [y + r2 + #80], r4\nstg.u32 [y + r2 + #160], r5\nexit\n";

/* Elements less what is the same in the row, more than registers hold, and read twice; of the row's mean and of its
 * sum.
 */
#define LESS(of_sum) \
  ".program p\n.block 256\n.buffer x f32 in\n.buffer y f32 inout\n.scalar first u32\n.scalar seven u32\n" \
  "mul.u32 r1, r253, #800\nadd.u32 r1, r1, first\nadd.u32 r2, blane, r1\nldg.f32 r3, [x + r2]\n" \
  "ldg.f32 r4, [x + r2 + #256]\nldg.f32 r5, [x + r2 + #512]\n" SUM of_sum \
  "sub.f32 r3, r3, r6\nsub.f32 r4, r6, r4\nmul.f32 r5, r5, r6\nmul.f32 r7, r3, r3\nmul.f32 r8, r4, r4\n" \
  "add.f32 r7, r7, r8\nadd.f32 r7, r7, r5\nreduce.add.f32 r7, r7\ndiv.f32 r3, r3, r7\nadd.f32 r4, r4, r7\n" \
  "sub.f32 r5, r5, r7\nstg.f32 [y + r2], r3\nstg.f32 [y + r2 + #256], r4\nstg.f32 [y + r2 + #512], r5\nexit\n"
static const char less[] = LESS("movi.f32 r9, #0x1p-8\nmul.f32 r6, r6, r9\n"), less_sum[] = LESS("");

static void check(const trial *t) {
  static uint32_t words[ELEMENTS];
  for (uint32_t i = 0; i < ELEMENTS; i++) words[i] = i * 2654435761u >> 7;
  const beside_buffer buffers[] = {
      {.name = "x", .contents = words, .size = sizeof words, .byte_count = 4 * t->extent},
      {.name = "y", .contents = words, .size = sizeof words, .byte_count = 4 * t->out_extent, .is_result = 1}};
  hg_scalar scalars[] = {{.name = "first", .type = ATLAS_u32, .bits = t->first},
                         {.name = "seven", .type = ATLAS_u32, .bits = 7}};
  const hg_launch_desc desc = {.grid = {BLOCKS, 1, 1}, .scalars = scalars, .scalar_count = 2};
  (void)check_beside(t->text, &desc, buffers, COUNT(buffers));
}

/* One buffer is read as x and written as y, which a lane may do with its own element: where the block finds a rare case
 * behind that, it must not begin again. */
static const char in_place[] =
    ".program p\n.block 64\n.buffer x u32 in\n.buffer y u32 out\n.buffer z u32 out\nldg.u32 r3, [x + lane]\n" SCALE
    NUMBER("r3") "reduce.max.f32 r6, r3\nadd.f32 r4, r3, r6\n" BITS("r4") "stg.u32 [y + lane], r4\n" EXP("r3")
    BITS("r3") "stg.u32 [z + lane], r3\nexit\n";

static void run_in_place(hg_executor *on, uint32_t *results) {
  enum { LANES = BLOCKS * 64 };
  uint32_t words[LANES];
  for (uint32_t i = 0; i < LANES; i++) words[i] = i * 2654435761u >> 7;
  executor = on;
  hg_kernel *kernel = kernel_of(in_place);
  hg_buffer *own = buffer_of(sizeof words, words), *other = buffer_of(sizeof words, NULL);
  const hg_binding bindings[] = {
      {.name = "x", .buffer = own}, {.name = "y", .buffer = own}, {.name = "z", .buffer = other}};
  const hg_launch_desc desc = {.lanes = LANES, .bindings = bindings, .binding_count = 3};
  CHECK_EQ_U64(hg_launch(kernel, &desc, NULL), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(own, 0, results, sizeof words), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(other, 0, results + LANES, sizeof words), HG_OK);
  hg_buffer_release(own);
  hg_buffer_release(other);
  hg_kernel_release(kernel);
}

static void check_in_place(void) {
  static uint32_t expected[2 * BLOCKS * 64], got[2 * BLOCKS * 64];
  run_in_place(reference, expected);
  run_in_place(tested, got);
  CHECK(memcmp(expected, got, sizeof got) == 0);
}

static void check_text(const char *text) {
  static const uint32_t firsts[] = {0, 5, 0u - 1, 0u - 70, 0u - 200, 0u - 700, 1u << 30, 1u << 31};
  trial t = {.text = text, .extent = ELEMENTS, .out_extent = ELEMENTS};
  for (size_t k = 0; k < COUNT(firsts); k++) {
    t.first = firsts[k];
    check(&t);
  }
  t.first = 3;
  for (t.extent = 1; t.extent < 900; t.extent += 61) check(&t);
  t.extent = ELEMENTS;
  for (t.out_extent = 1; t.out_extent < 900; t.out_extent += 67) check(&t);
}

/* Rows whose bounds a group compares at once, and long ones, which are read in the order of addresses. */
static void check_passes(void) {
  static const char *const at_once[] = {held,    rounds,  folded,         many,  turns, busy,        alike, single,
                                        several, crowded, crowded_gather, parts, rare,  rare_behind, less};
  static const char *const of_long[] = {long_sum, long_extreme, long_kept, long_twice};
  for (size_t k = 0; k < COUNT(at_once); k++) check_fires(at_once[k], NATIVE_PLACED_range_guards);
  for (size_t k = 0; k < COUNT(of_long); k++) {
    check_fires(of_long[k], NATIVE_PLACED_range_guards);
    check_fires(of_long[k], NATIVE_PLACED_address_order);
    check_fires(of_long[k], NATIVE_BLOCK_reassociate_index);
    check_fires(of_long[k], NATIVE_BLOCK_dead_code);
  }
  check_fires(alike, NATIVE_REGIONS_unroll);
  check_fires(held, NATIVE_BLOCK_alike);
  check_fires(less, NATIVE_BLOCK_rematerialise);
  check_fires(less_sum, NATIVE_BLOCK_rematerialise);
  CHECK_EQ_U64(count_passes(held, &hg_native_avx512).fired[NATIVE_BLOCK_rematerialise],
               0); /* registers hold all of it */
}

int main(void) {
  static const char *const texts[] = {held, odd,      diverging, rounds, folded,  many,    turns,
                                      busy, busy_odd, alike,     single, several, crowded, crowded_gather,
                                      parts, again, rare, rare_behind, rare_again, less, less_sum,
                                      long_sum, long_extreme, long_kept, long_twice};
  check_passes();
  for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++) {
    set("HOLOGRAM_CPU_ISA", hg_cpu_isa_name((cpu_isa)isa));
    open_both();
    for (size_t k = 0; k < COUNT(texts); k++) check_text(texts[k]);
    check_in_place();
    close_both();
  }
  set("HOLOGRAM_CPU_ISA", "");
  return check_report();
}
