/* test_canon_text.c - the canonical form as a program: its text parses, has the hash of the program it came from, and
 * gives itself when it is made canonical again. Where the text is short enough to read, it is compared. That it
 * computes the same is tested on random programs (tests/random). */
#include "compile.h"
#include "counted.h"

static char *print(const atlas_program *program) {
  char *text = NULL;
  CHECK_EQ_U64(atlas_print(NULL, program, &text, NULL), HG_OK);
  return text;
}

static atlas_program *canonical(const atlas_program *program) {
  atlas_program *out = NULL;
  if (!check_note(atlas_canonicalise(NULL, program, &out) == HG_OK)) {
    char *text = print(program);
    printf("%s\n%s", hg_last_error(), text);
    exit(check_report());
  }
  return out;
}

static void check_same_hash(const atlas_program *a, const atlas_program *b) {
  uint8_t x[ATLAS_HASH_BYTES], y[ATLAS_HASH_BYTES];
  CHECK_EQ_U64(atlas_program_hash(a, x), HG_OK);
  CHECK_EQ_U64(atlas_program_hash(b, y), HG_OK);
  CHECK(memcmp(x, y, sizeof x) == 0);
}

/* The canonical text, which must hold. Release it. */
static char *canonical_text(const char *text) {
  atlas_program *program = parse(text), *first = canonical(program);
  char *printed = print(first);
  atlas_program *read = parse(printed), *second = canonical(read);
  char *again = print(second);
  check_same_hash(program, first);
  check_same_hash(program, read);
  CHECK_STR(again, printed);
  atlas_memory_release(NULL, again);
  atlas_program *all[] = {program, first, read, second};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) atlas_program_release(all[i]);
  return printed;
}

static void check_holds(const char *text) { atlas_memory_release(NULL, canonical_text(text)); }

/* The instructions alone. */
static void check_text(const char *text, const char *expected) {
  char *printed = canonical_text(text);
  const char *code = strstr(printed, "\n\n");
  CHECK(code != NULL);
  if (code != NULL) CHECK_STR(code + 2, expected);
  atlas_memory_release(NULL, printed);
}

/* ---- straight code ----------------------------------------------------------------------------------------------- */

static void test_declarations(void) {
  char *text = canonical_text(".program kept\n.block 8, 4\n.buffer b f32 inout handle 7\n.scalar s f64\n"
                              ".shared tile u16 100\n.const c i8 { #-1, #2 }\n.table t 9 in\n.pool p\nexit\n");
  CHECK_STR(text, ".program kept\n.block 8, 4\n.buffer b f32 inout handle 7\n.scalar s f64\n"
                  ".shared tile u16 100\n.const c i8 { #-1, #2 }\n.table t 9 in\n.pool p\n\n    exit\n");
  atlas_memory_release(NULL, text);
  text = canonical_text(".block 16, 2 default\ntrap #1\n");
  CHECK_STR(text, ".program program\n.block 16, 2 default\n\n    trap #1\n");
  atlas_memory_release(NULL, text);
}

static void test_straight_code(void) {
  check_text(IO "ldg.f32 r9, [x + lane]\nmovi.f32 r7, #2\nmov.f32 r3, r9\nmul.f32 r4, r7, r3\nrelu.f32 r4, r4\n"
                "recip.f32 r5, r4\nmad.f32 r5, r5, r9, #1\nstg.f32 [y + lane], r5\nexit\n",
             "    ldg.f32 r0, [x + lane]\n    mul.f32 r1, r0, #2\n    max.f32 r1, r1, #0\n    div.f32 r1, #1, r1\n"
             "    fma.f32 r0, r0, r1, #1\n    stg.f32 [y + lane], r0\n    exit\n");
  /* every comparison becomes one of four */
  check_holds(IO "ldg.u32 r0, [i + lane]\nset.gt.u32 p0, r0, #3\nset.ge.u32 p1, r0, #9\npxor p2, p0, p1\n"
                 "set.ne.u32 p3, r0, #5\nset.le.u32 p4, r0, #77\npand p5, p3, p4\npor p6, p5, p2\npnot p7, p6\n"
                 "sel.u32 r1, p7, r0, #1\nstg.u32 [o + lane], r1\nexit\n");
  check_holds(IO "ldg.f32 r0, [x + lane]\nset.nan.f32 p0, r0, r0\nset.ge.f32 p1, r0, #1\npand p0, p0, p1\n"
                 "sel.f32 r1, p0, r0, #0x7fc00001\nstg.f32 [y + lane], r1\nexit\n");
  /* what is unused goes, but for what can be seen */
  check_text(".buffer o u32 inout\n.pool p\natom.add.u32 r0, [o + #1], #1\natom.add.u32 r1, [o + #0], #1\n"
             "stg.u32 [o + #2], r1\npool.alloc.u64 r2, p, #16\nexit\n",
             "    atom.add.u32 _, [o + #1], #1\n    pool.alloc.u64 r0, p, #16\n    atom.add.u32 r0, [o + #0], #1\n"
             "    stg.u32 [o + #2], r0\n    exit\n");
  check_holds("trap #77\n");
}

/* Loads come down to their stores, past all that cannot be their memory. */
static void test_order(void) {
  char text[40000];
  int length = snprintf(text, sizeof text, ".buffer x f32 in\n.buffer y f32 out\n");
  for (int k = 0; k < 300; k++)
    length += snprintf(text + length, sizeof text - (size_t)length,
                       "ldg.f32 r0, [x + lane + #%d]\nstg.f32 [y + lane + #%d], r0\n", k + 1, k + 1);
  snprintf(text + length, sizeof text - (size_t)length, "exit\n");
  char *printed = canonical_text(text);
  CHECK_EQ_U64(count_words(printed, "ldg.f32 r0"), 300);
  atlas_memory_release(NULL, printed);
  /* but not past a write that may be to it, nor past a barrier if anything writes it */
  check_text(".buffer x u32 inout\nldg.u32 r0, [x + lane + #1]\nstg.u32 [x + lane + #2], #7\nbar.sync\n"
             "stg.u32 [x + lane + #3], r0\nexit\n",
             "    ldg.u32 r0, [x + lane + #1]\n    stg.u32 [x + lane + #2], #7\n    bar.sync\n"
             "    stg.u32 [x + lane + #3], r0\n    exit\n");
}

/* ---- addresses and operands -------------------------------------------------------------------------------------- */

static void test_addresses(void) {
  check_text(".buffer x f32 inout\n.scalar s u32\n.shared t u8 4\n.const c u16 { #1, #2 }\n"
             "mov.u32 r0, s\nldg.f32 r1, [x + r0 + #-3]\nldg.f32 r2, [x + blane]\nadd.f32 r1, r1, r2\n"
             "stg.f32 [x + r254 + #1], r1\nexit\n",
             "    ldg.f32 r0, [x + blane]\n    mov.u32 r1, s\n    ldg.f32 r1, [x + r1 + #-3]\n    add.f32 r0, r0, r1\n"
             "    sreg.u32 r1, block_size.x\n    stg.f32 [x + r1 + #1], r0\n    exit\n");
  check_holds(".buffer x f32 out\nldg.f32 r0, [phi 3, 4, 16]\nldg.f32 r1, [phi r253, 4, lane]\n"
              "ldg.f32 r2, [phi 95, blane, 0]\nadd.f32 r0, r0, r1\nadd.f32 r0, r0, r2\n"
              "stg.f32 [phi blane, blane, blane], r0\nstg.f32 [x + #0], r0\nexit\n");
  /* parts that are constant, in range and out of it */
  check_holds(".buffer x f32 out\nmovi.u32 r0, #95\nmovi.u32 r1, #48\nmovi.u64 r2, #255\n"
              "ldg.f32 r3, [phi r0, r1, r2]\nstg.f32 [x + lane], r3\nexit\n");
  check_holds(".table t 4 inout\n.scalar s u64\nmov.u64 r0, s\nmovi.u32 r1, #3\nldg.f64 r2, [lane : r0]\n"
              "stg.f64 [r1 : lane], r2\nexit\n");
  check_holds(".pool p\npool.alloc.u64 r0, p, #64\npool.load.u8 r1, [p + r0 + #3]\npool.store.u8 [p + r0], r1\n"
              "pool.store.bf16 [p + lane + #2], #1\npool.free.u64 p, r0\nexit\n");
}

/* A constant index out of range is refused in an address, and so is a sum that overflows there. */
static void test_indices_out_of_range(void) {
  check_text(".buffer y u16 out\n.const c u16 { #1, #2 }\nmovi.u32 r0, #1\nldc.u16 r1, [c + r0 + #1]\n"
             "stg.u16 [y + lane], r1\nexit\n",
             "    movi.i64 r0, #2\n    ldc.u16 r0, [c + r0]\n    stg.u16 [y + lane], r0\n    exit\n");
  check_holds(".shared t u32 8\n.buffer y u32 out\nmovi.i64 r0, #-1\nsts.u32 [t + r0], #1\nlds.u32 r1, [t + r0]\n"
              "atom.cas.u32 r2, [t + r0], r1, #3\nstg.u32 [y + lane], r2\nexit\n");
  check_holds(".buffer y u32 out\nmovi.u64 r0, #0xffffffffffffffff\nstg.u32 [y + r0 + #4], #1\nexit\n");
}

static void test_storage_types(void) {
  static const char *const types[] = {"f8e4m3", "f8e5m2", "bool"};
  for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
    for (int n = 0; n < 256; n++) {
      char text[400];
      snprintf(text, sizeof text,
               ".buffer x %s in\n.buffer y %s out\nmovi.u32 r9, #%d\nbitcast.f32.u32 r9, r9\ncvt.%s.f32 r0, r9\n"
               "ldg.%s r1, [x + lane]\nset.lt.u64 p0, lane, #9\nsel.%s r2, p0, r0, r1\nstg.%s [y + lane], r2\nexit\n",
               types[t], types[t], n << 23 | n * 77777, types[t], types[t], types[t], types[t]);
      check_holds(text);
    }
  check_text(".buffer y bool out\nset.lt.u64 p0, lane, #9\ncvt.bool.u32 r0, #7\ncvt.bool.u32 r1, #0\n@p0 bra l\n"
             "mov.bool r0, r1\nl:\nstg.bool [y + lane], r0\nexit\n",
             "    set.lt.u64 p0, lane, #9\n    @!p0 bra l1\n    cvt.bool.f32 r0, #1\n    bra l2\nl1:\n"
             "    cvt.bool.f32 r0, #0\nl2:\n    stg.bool [y + lane], r0\n    exit\n");
}

static void test_all_sorts_of_instructions(void) {
  check_holds(".block 32\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\nreduce.add.f32 r1, r0\n"
              "scan.incl.f32 r2, r0\nset.lt.f32 p0, r1, r2\nvote.any p1, p0\nvote.all p2, p0\npand p3, p1, p2\n"
              "sel.f32 r3, p3, r1, r2\nbar.sync\nmem.fence\nmem.fence.grid\nstg.f32 [y + lane], r3\nexit\n");
  /* a vote about a constant */
  check_holds(".buffer y u32 out\nset.eq.u32 p0, #1, #1\nvote.all p1, p0\npnot p0, p0\nvote.any p2, p0\n"
              "pxor p1, p1, p2\nsel.u32 r0, p1, #1, #2\nstg.u32 [y + lane], r0\nexit\n");
  check_holds(".buffer y u32 out\ncls.get.u32 r0\nmirror.u32 r1, r0\nunity.test.u32 p0, r1\nnbr.count.u32 r2, r0\n"
              "nbr.get.u32 r3, r0, #1\nres.accum.i64 r0, #1\nphase.get.u32 r4\nphase.adv.u32 #3\n"
              "bound.map.u64 r5, #5, r2, #200\nadd.u32 r1, r1, r3\nadd.u32 r1, r1, r4\ncvt.u32.u64 r6, r5\n"
              "sel.u32 r1, p0, r1, r6\nstg.u32 [y + r2], r1\nexit\n");
  check_holds(".buffer x f64 inout\nldg.f64 r0, [x + lane]\nexp.f64 r1, r0\npow.f64 r1, r1, r0\ngelu.f64 r1, r1\n"
              "stg.f64 [x + lane], r1\nexit\n");
  /* calls are inlined, with what each of them writes */
  check_holds(".buffer x u32 inout\nldg.u32 r0, [x + lane]\ncall square\nadd.u32 r0, r0, #1\ncall square\n"
              "stg.u32 [x + lane], r0\nexit\nsquare:\nset.lt.u32 p0, r0, #5\n@p0 bra small\nmul.u32 r0, r0, r0\n"
              "small:\nret\n");
}

/* ---- phis -------------------------------------------------------------------------------------------------------- */

static void test_phis(void) {
  /* two values change places in each round: a move takes a register more */
  check_text(IO "ldg.u32 r0, [i + #0]\nldg.u32 r1, [i + #1]\nldg.u32 r2, [i + #2]\nl:\nmov.u32 r3, r0\nmov.u32 r0, "
                "r1\nmov.u32 r1, r3\nloop r2, l\nstg.u32 [o + #0], r0\nstg.u32 [o + #1], r1\nexit\n",
             "    ldg.u32 r0, [i + #0]\n    ldg.u32 r1, [i + #1]\n    ldg.u32 r2, [i + #2]\nl1:\n"
             "    add.u32 r2, r2, #4294967295\n    set.eq.u32 p0, r2, #0\n    @!p0 bra l2\n"
             "    stg.u32 [o + #0], r1\n    stg.u32 [o + #1], r0\n    exit\nl2:\n"
             "    mov.u32 r3, r1\n    mov.u32 r1, r0\n    mov.u32 r0, r3\n    bra l1\n");
  /* three in a ring, and one that is copied too */
  check_holds(IO "ldg.u32 r0, [i + #0]\nldg.u32 r1, [i + #1]\nldg.u32 r2, [i + #2]\nldg.u32 r4, [i + #3]\nmovi.u32 r5, "
                 "#0\nl:\nmov.u32 r5, r1\nmov.u32 r3, r0\nmov.u32 r0, r1\nmov.u32 r1, r2\nmov.u32 r2, r3\nloop r4, l\n"
                 "stg.u32 [o + #0], r0\nstg.u32 [o + #1], r1\nstg.u32 [o + #2], r2\nstg.u32 [o + #3], r5\nexit\n");
  /* the value of the round before is used behind the loop (the lost copy) */
  check_holds(IO "ldg.u32 r0, [i + #0]\nl:\nmov.u32 r1, r0\nadd.u32 r0, r0, #3\nset.lt.u32 p0, r0, #100\n@p0 bra l\n"
                 "stg.u32 [o + #0], r1\nstg.u32 [o + #1], r0\nexit\n");
  /* different types through one register */
  check_holds(".buffer x u32 in\n.buffer y f32 out\nldg.u32 r0, [x + lane]\nset.lt.u32 p0, r0, #4\n@p0 bra a\n"
              "cvt.f32.u32 r0, r0\nbra b\na:\nmovi.f32 r0, #0.5\nb:\nstg.f32 [y + lane], r0\nexit\n");
  /* parameters and special registers flow in */
  check_holds(".buffer y u64 out\n.scalar s u64\nset.lt.u64 p0, lane, #5\nmov.u64 r0, lane\n@p0 bra l\nmov.u64 r0, s\n"
              "l:\nstg.u64 [y + lane], r0\nexit\n");
}

static void test_predicate_phis(void) {
  check_text(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #9\nset.eq.u32 p1, r0, #0\n@p0 bra l\nset.eq.u32 p1, #0, "
                "#1\nl:\nstg.u32 [o + lane + #1], r0\nsel.u32 r1, p1, #1, #2\nstg.u32 [o + lane], r1\nexit\n",
             "    ldg.u32 r0, [i + lane]\n    set.lt.u32 p0, r0, #9\n    @!p0 bra l1\n    set.eq.u32 p0, r0, #0\n"
             "    bra l2\nl1:\n    set.lt.u32 p0, #0, #0\nl2:\n    stg.u32 [o + lane + #1], r0\n"
             "    sel.u32 r0, p0, #1, #2\n    stg.u32 [o + lane], r0\n    exit\n");
  /* they change places too, and are constants at first */
  check_holds(IO
              "ldg.u32 r0, [i + #0]\nset.eq.u32 p0, #0, #0\nset.lt.u32 p1, r0, #5\nl:\npand p2, p0, p0\npand p0, p1, "
              "p1\npand p1, p2, p2\nloop r0, l\nsel.u32 r1, p0, #1, #2\nsel.u32 r2, p1, r1, #7\n"
              "stg.u32 [o + #0], r2\nexit\n");
}

/* ---- control flow ------------------------------------------------------------------------------------------------ */

static void test_flow(void) {
  check_text("l:\nbra l\n", "l1:\n    bra l1\n");
  check_text(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #1\n@p0 bra l\ntrap #3\nl:\nexit\n",
             "    ldg.u32 r0, [i + lane]\n    set.lt.u32 p0, r0, #1\n    @!p0 bra l1\n    exit\nl1:\n    trap #3\n");
  /* like a switch: many edges into one join, each with its value, and the same value from two */
  check_holds(IO "ldg.u32 r0, [i + lane]\nmovi.u32 r1, #50\nset.eq.u32 p0, r0, #0\n@p0 bra end\nmovi.u32 r1, #51\n"
                 "set.eq.u32 p0, r0, #1\n@p0 bra end\nmovi.u32 r1, #52\nset.eq.u32 p0, r0, #2\n@p0 bra end\n"
                 "set.eq.u32 p0, r0, #3\n@p0 bra end\nldg.u32 r1, [i + #9]\nend:\nstg.u32 [o + lane], r1\nexit\n");
  /* both sides of a branch meet at once with different values */
  check_holds(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #3\n@p0 bra a\nmovi.u32 r1, #1\nbra b\na:\nmovi.u32 r1, "
                 "#2\nb:\nstg.u32 [o + lane], r1\nexit\n");
  /* a loop whose first block has no instruction before another loop begins: two loops still */
  check_text(
      ".buffer x u32 inout\n.scalar n u32\nmovi.u32 r1, #0\nouter:\nadd.u32 r1, r1, #1\ninner:\nbar.sync\n"
      "set.gt.u32 p3, n, #4\n@p3 bra inner\nset.lt.u32 p3, r1, #5\n@p3 bra outer\nstg.u32 [x + lane], #0\n"
      "exit\n",
      "    set.lt.u32 p0, #4, n\n    movi.u32 r0, #0\nl1:\n    bra l2\nl2:\n    bar.sync\n    @p0 bra l2\n"
      "    add.u32 r0, r0, #1\n    set.lt.u32 p1, r0, #5\n    @p1 bra l1\n    stg.u32 [x + lane], #0\n    exit\n");
  /* loops in loops with several ways back and out */
  check_holds(IO
              "movi.u32 r0, #0\nouter:\nmovi.u32 r1, #0\ninner:\nadd.u32 r1, r1, #1\nldg.u32 r2, [i + r1]\nset.lt.u32 "
              "p0, r2, #7\n@p0 bra inner\nset.lt.u32 p0, r2, #9\n@p0 bra past\nadd.u32 r0, r0, r2\nset.lt.u32 p1, r0, "
              "#99\n@p1 bra inner\nset.lt.u32 p1, r0, #200\n@p1 bra outer\nmovi.u32 r0, #5\npast:\n"
              "stg.u32 [o + r1], r0\nexit\n");
  /* a loop entered from two places with different values */
  check_holds(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #9\n@p0 bra a\nmovi.u32 r1, #3\nstg.u32 [o + #5], r0\nbra "
                 "l\na:\nmovi.u32 r1, #4\nl:\nadd.u32 r0, r0, r1\nset.lt.u32 p0, r0, #1000\n@p0 bra l\n"
                 "stg.u32 [o + lane], r0\nexit\n");
}

/* Control that is uniform stays so in the text: the verifier accepts it. */
/* An edge that gets a block of its own leads to a trap, whose code is not the block's. */
static void test_split_edge(void) {
  check_holds(".program p\n.buffer x f32 in\n.buffer y u32 out\nldg.f32 r1, [x + lane]\nldg.f32 r2, [x + lane + #1]\n"
              "movi.f32 r3, #1\nset.num.f32 p0, r2, r2\n@!p0 bra L0\nabs.f32 r3, r1\nL0:\n"
              "sel.f32 r4, p0, r3, #2\nbitcast.u32.f32 r5, r4\nstg.u32 [y + lane], r5\ntrap #46\n");
}

static void test_uniform_control(void) {
  /* a counter behind a divergent side: both sides close the loop */
  check_holds(IO "movi.u32 r1, #0\nl:\nset.lt.u32 p0, r1, #10\n@!p0 bra end\nbar.sync\nldg.u32 r0, [i + lane]\nmul.u32 "
                 "r3, r1, #4\nadd.u32 r1, r1, #1\nset.lt.u32 p1, r0, #5\n@!p1 bra next\nstg.u32 [o + r3], r0\nnext:\n"
                 "bra l\nend:\nexit\n");
  /* a divergent side before a loop that all enter together */
  check_holds(IO "movi.u32 r1, #10\nldg.u32 r0, [i + lane]\nset.lt.u32 p1, r0, #5\n@p1 bra l\nstg.u32 [o + lane], r0\n"
                 "l:\nbar.sync\nloop r1, l\nexit\n");
  /* a uniform choice with a divergent side in one of its arms, and a barrier that depends on it */
  check_holds(IO ".scalar s u32\nldg.u32 r0, [i + lane]\nmovi.u32 r1, #1\nset.lt.u32 p0, s, #3\n@p0 bra two\n"
                 "set.lt.u32 p1, r0, #5\n@!p1 bra meet\nstg.u32 [o + lane], r0\nbra meet\ntwo:\nmovi.u32 r1, #2\n"
                 "meet:\nset.eq.u32 p2, r1, #1\n@!p2 bra end\nbar.sync\nend:\nexit\n");
  /* the same with a value that lives on */
  check_holds(IO ".scalar s u32\nldg.u32 r0, [i + lane]\nldg.u32 r4, [i + #0]\nmov.u32 r1, r4\nset.lt.u32 p0, s, #3\n"
                 "@p0 bra two\nset.lt.u32 p1, r0, #5\n@!p1 bra meet\nstg.u32 [o + lane], r0\nbra meet\ntwo:\nmovi.u32 "
                 "r1, #2\nmeet:\nset.eq.u32 p2, r1, #1\n@!p2 bra end\nbar.sync\nend:\nstg.u32 [o + #9], r4\nexit\n");
  /* a loop that lanes leave at different times in one arm, by two ways */
  check_holds(IO ".scalar s u32\nldg.u32 r0, [i + lane]\nmovi.u32 r1, #1\nset.lt.u32 p0, s, #3\n@p0 bra two\nl:\n"
                 "stg.u32 [o + r0], r0\nset.lt.u32 p1, r0, #5\n@p1 bra meet\nadd.u32 r0, r0, #3\nset.lt.u32 p1, r0, "
                 "#500\n@p1 bra l\nbra meet\ntwo:\nmovi.u32 r1, #2\nmeet:\nset.eq.u32 p2, r1, #1\n@!p2 bra end\n"
                 "reduce.add.u32 r2, r0\nstg.u32 [o + #7], r2\nend:\nexit\n");
}

/* A load in a loop that lanes leave at different times, and again behind it, where it decides about a barrier. */
static const char uniform_load[] =
    IO "ldg.u32 r0, [i + lane]\nl:\nldg.u32 r1, [i + #0]\nadd.u32 r0, r0, r1\nset.lt.u32 p0, r0, #100\n@p0 bra l\n"
       "ldg.u32 r2, [i + #0]\nset.lt.u32 p1, r2, #7\n@!p1 bra end\nbar.sync\nend:\nexit\n";

static void test_uniform_loads(void) {
  check_text(uniform_load,
             "    ldg.u32 r0, [i + lane]\nl1:\n    ldg.u32 r1, [i + #0]\n    add.u32 r0, r0, r1\n"
             "    set.lt.u32 p0, r0, #100\n    @p0 bra l1\n    ldg.u32 r0, [i + #0]\n    set.lt.u32 p0, r0, #7\n"
             "    @!p0 bra l2\n    bar.sync\n    exit\nl2:\n    exit\n");
  /* with what is computed from it, through another load, and a table */
  check_holds(IO ".const c u32 { #3, #4, #5, #6 }\n.buffer q u32 inout\nldg.u32 r0, [i + lane]\nl:\nldg.u32 r1, [i + "
                 "#0]\nand.u32 r2, r1, #3\nldc.u32 r3, [c + r2]\nmul.u32 r4, r3, r1\nadd.u32 r0, r0, r4\n"
                 "set.lt.u32 p0, r0, #100\n@p0 bra l\nldg.u32 r1, [i + #0]\nand.u32 r2, r1, #3\nldc.u32 r3, [c + "
                 "r2]\nmul.u32 r4, r3, r1\nadd.u32 r7, r4, r1\nagain:\nbar.sync\nstg.u32 [q + lane], r0\n"
                 "loop r7, again\nstg.u32 [q + r4], r7\nexit\n");
}

/* ---- too many ---------------------------------------------------------------------------------------------------- */

static void check_refused(const char *text, const char *sentence) {
  atlas_program *program = parse(text), *out = program;
  CHECK_EQ_U64(atlas_canonicalise(NULL, program, &out), HG_UNSUPPORTED);
  CHECK(out == NULL);
  CHECK_STR(hg_last_error(), sentence);
  atlas_program_release(program);
}

/* `count` values that are all needed before the first is stored, and `products` of them that are stored twice. */
static void write_pressure(char *text, size_t bytes, int count, int products) {
  int length = snprintf(text, bytes, ".buffer x u32 inout\n");
  for (int k = 0; k < count; k++)
    length += snprintf(text + length, bytes - (size_t)length, "ldg.u32 r%d, [x + lane + #%d]\n", k, k + 1);
  for (int k = 0; k < 2 * products; k++)
    length += snprintf(text + length, bytes - (size_t)length,
                       "mul.u32 r251, r%d, r%d\nstg.u32 [x + lane + #%d], r251\n", k % products, k % products + 1,
                       k + 500);
  for (int k = 0; k < count; k++)
    length += snprintf(text + length, bytes - (size_t)length, "stg.u32 [x + lane + #%d], r%d\n", count - k, k);
  snprintf(text + length, bytes - (size_t)length, "exit\n");
}

static void test_registers(void) {
  static char text[60000];
  write_pressure(text, sizeof text, 252, 0);
  check_holds(text);
  write_pressure(text, sizeof text, 250, 2);
  check_holds(text);
  write_pressure(text, sizeof text, 250, 3); /* the repeated products are one, and wait */
  check_refused(text, "the canonical form needs 253 registers at once and the ISA has 252: it cannot be written as a "
                      "program; `hologram emit --target ssa` shows it");
  /* 300 products that do not change in a loop: they are computed in it where there is no room before it */
  int length = snprintf(text, sizeof text, IO "ldg.u32 r0, [i + lane]\nldg.u32 r9, [i + #0]\nl:\n");
  for (int k = 0; k < 300; k++)
    length += snprintf(text + length, sizeof text - (size_t)length,
                       "mul.u32 r1, r0, #%d\nstg.u32 [o + r9 + #%d], r1\n", k + 3, k);
  snprintf(text + length, sizeof text - (size_t)length, "loop r9, l\nexit\n");
  check_holds(text);
}

/* All registers are alive where two change places: a move needs one more. */
static void test_no_room_for_a_swap(void) {
  static char text[60000];
  for (int count = 249; count < 251; count++) {
    int length = snprintf(text, sizeof text, ".buffer x u32 inout\n");
    for (int k = 0; k < count; k++)
      length += snprintf(text + length, sizeof text - (size_t)length, "ldg.u32 r%d, [x + lane + #%d]\n", k, k + 1);
    length += snprintf(text + length, sizeof text - (size_t)length,
                       "ldg.u32 r250, [x + #0]\nl:\nxor.u32 r0, r0, r1\nxor.u32 r1, r0, r1\nxor.u32 r0, r0, r1\n"
                       "stg.u32 [x + r0], r1\nmov.u32 r251, r0\nmov.u32 r0, r1\nmov.u32 r1, r251\nloop r250, l\n");
    for (int k = 0; k < count; k++)
      length += snprintf(text + length, sizeof text - (size_t)length, "stg.u32 [x + lane + #%d], r%d\n", 900 - k, k);
    snprintf(text + length, sizeof text - (size_t)length, "exit\n");
    check_holds(text);
  }
}

/* Comparisons are repeated where all sixteen predicates would be taken. */
static void write_predicates(char *text, size_t bytes, int count, const char *compare) {
  int length = snprintf(text, bytes, IO "ldg.u32 r0, [i + lane]\nldg.u32 r9, [i + #0]\n");
  for (int k = 0; k < count; k++) length += snprintf(text + length, bytes - (size_t)length, compare, k % 16, k + 1);
  for (int k = 0; k < count && k < 16; k++)
    length += snprintf(text + length, bytes - (size_t)length,
                       "sel.u32 r1, p%d, r0, r9\nstg.u32 [o + lane + #%d], r1\n", k, k + 1);
  snprintf(text + length, bytes - (size_t)length, "exit\n");
}

static void test_predicates(void) {
  static char text[40000];
  write_predicates(text, sizeof text, 16, "set.lt.u32 p%d, r0, #%d\n");
  check_holds(text);
  /* thirty comparisons of which each is used in a loop: too many at once, and repeated there */
  int length =
      snprintf(text, sizeof text, IO "ldg.u32 r0, [i + lane]\nldg.u32 r9, [i + #0]\nldg.u32 r8, [i + #1]\nl:\n");
  for (int k = 0; k < 30; k++)
    length += snprintf(text + length, sizeof text - (size_t)length,
                       "set.lt.u32 p1, r0, #%d\nsel.u32 r1, p1, r9, r8\nstg.u32 [o + r8 + #%d], r1\n", k + 2, k);
  snprintf(text + length, sizeof text - (size_t)length, "loop r8, l\nexit\n");
  char *printed = canonical_text(text);
  CHECK_EQ_U64(count_words(printed, "set.lt.u32 p"), 30);
  atlas_memory_release(NULL, printed);
  /* results of a vote are not repeated */
  length = snprintf(text, sizeof text, IO "ldg.u32 r0, [i + lane]\nldg.u32 r9, [i + #0]\nldg.u32 r8, [i + #1]\n");
  for (int k = 0; k < 17; k++)
    length += snprintf(text + length, sizeof text - (size_t)length,
                       "set.lt.u32 p0, r0, #%d\nvote.any p0, p0\nsel.u32 r%d, p0, r9, r8\n", k + 2, k + 20);
  for (int k = 0; k < 17; k++)
    length += snprintf(text + length, sizeof text - (size_t)length, "stg.u32 [o + lane + #%d], r%d\n", k, k + 20);
  snprintf(text + length, sizeof text - (size_t)length, "exit\n");
  check_refused(text, "the canonical form needs 17 predicates at once and the ISA has 16: it cannot be written as a "
                      "program; `hologram emit --target ssa` shows it");
}

/* ---- accesses that are gone -------------------------------------------------------------------------------------- */

static const char recalled[] =
    ".buffer x u8 in\n.buffer y u32 inout\n.buffer w f16 in\n.buffer p u8 inout\nldg.u8 r0, [x + #5]\n"
    "stg.u8 [p + #1], #1\nldg.u8 r1, [x + #5]\nset.eq.u8 p1, r0, r1\nmovi.u32 r2, #4\n@p1 bra l\n"
    "ldg.f16 r3, [w + #1]\nldg.u32 r2, [y + #3]\ncvt.u32.f16 r3, r3\nadd.u32 r2, r2, r3\nl:\nstg.u32 [y + lane], r2\n"
    "exit\n";

/* The two loads merge when it is known that p and x are not one memory, and with them goes what said so. */
static void test_recalled(void) {
  check_text(".buffer x u8 in\n.buffer y u32 inout\n.buffer p u8 inout\nldg.u8 r0, [x + #5]\nstg.u8 [p + #1], #1\n"
             "ldg.u8 r1, [x + #5]\nset.eq.u8 p1, r0, r1\nsel.u32 r2, p1, #4, #3\nstg.u32 [y + lane], r2\nexit\n",
             "    ldg.u8 r0, [x + #0]\n    stg.u8 [p + #1], #1\n    ldg.u8 r1, [x + #0]\n    set.eq.u8 p0, r0, r1\n"
             "    @!p0 bra l1\n    stg.u32 [y + lane], #4\n    exit\nl1:\n    trap #0\n");
  check_holds(recalled); /* with other buffers on the side that is gone */
  static const char *const types[] = {"f8e4m3", "bool", "f16", "bf16", "f32", "f64", "i64"};
  for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
    char text[600];
    snprintf(text, sizeof text,
             ".buffer x %s in\n.buffer z %s inout\n.buffer y u32 inout\nldg.%s r0, [x + #5]\nldg.%s r9, [z + #1]\n"
             "stg.%s [z + #0], r9\nldg.%s r1, [x + #5]\ncvt.u32.%s r0, r0\ncvt.u32.%s r1, r1\n"
             "xor.u32 r2, r0, r1\nset.eq.u32 p0, r2, #0\n@p0 bra l\nldg.u32 r2, [y + #9]\n"
             "l:\nstg.u32 [y + lane], r2\nexit\n",
             types[t], types[t], types[t], types[t], types[t], types[t], types[t], types[t]);
    check_holds(text);
  }
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static const char everything[] =
    IO ".shared t u32 4\nmovi.u32 r1, #0\nset.eq.u32 p0, #1, #1\nl:\nldg.u32 r0, [i + lane]\nset.lt.u32 p1, r0, #5\n"
       "@!p1 bra next\nstg.u32 [o + r1], r0\npand p0, p1, p1\nnext:\nmov.u32 r2, r1\nadd.u32 r1, r1, #1\nbar.sync\n"
       "set.lt.u32 p2, r1, #10\n@p2 bra l\nsel.u32 r2, p0, r2, #3\nmovi.u32 r5, #3\nsts.u32 [t + r5 + #1], r2\n"
       "stg.u32 [o + lane], r2\nexit\n";

static void check_out_of_memory(const char *text) {
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  long total = 0;
  atlas_program *program = NULL, *out = NULL;
  CHECK_EQ_U64(atlas_parse(&allocator, text, strlen(text), "test", &program), HG_OK);
  long parsed = c.live;
  for (long fail_at = -1; fail_at < total; fail_at++) {
    c.allocations = 0;
    c.fail_at = fail_at;
    hg_status status = atlas_canonicalise(&allocator, program, &out);
    CHECK_EQ_U64(status, fail_at < 0 ? HG_OK : HG_OUT_OF_MEMORY);
    if (fail_at < 0) total = c.allocations;
    atlas_program_release(out);
    CHECK_EQ_U64(c.live, parsed);
  }
  CHECK(total > 50);
  c.fail_at = -1;
  atlas_program_release(program);
}

static void test_out_of_memory(void) {
  check_out_of_memory(everything);
  check_out_of_memory(uniform_load);
  check_out_of_memory(recalled);
}

static void test_misuse(void) {
  atlas_program *program = parse(".entry exp f32 f\nf:\nret\n"), *out = program;
  CHECK_EQ_U64(atlas_canonicalise(NULL, NULL, &out), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(atlas_canonicalise(NULL, program, NULL), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "atlas_canonicalise needs a program and an `out`");
  CHECK_EQ_U64(atlas_canonicalise(NULL, program, &out), HG_INVALID_ARGUMENT);
  CHECK(out == NULL);
  atlas_program_release(program);
}

int main(void) {
  test_declarations();
  test_straight_code();
  test_order();
  test_addresses();
  test_indices_out_of_range();
  test_storage_types();
  test_all_sorts_of_instructions();
  test_phis();
  test_predicate_phis();
  test_flow();
  test_split_edge();
  test_uniform_control();
  test_uniform_loads();
  test_registers();
  test_no_room_for_a_swap();
  test_predicates();
  test_recalled();
  test_out_of_memory();
  test_misuse();
  return check_report();
}
