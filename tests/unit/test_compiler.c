/* test_compiler.c - the canonical form pass by pass: what each does to small programs (printed SSA against what is
 * expected), the checker after every pass, and SHA-256 on the vectors of FIPS 180-4. That
 * passes keep every bit is tested on random programs (tests/random). */
#include "compile.h"
#include "counted.h"

#include "atlas/assemble.h"
#include "atlas/insn.h"
#include "base/sha256.h"
#include "compiler/analysis/analyse.h"
#include "ir/ssa_order.h"

/* ---- SHA-256 ----------------------------------------------------------------------------------------------------- */

static void check_sha256(const char *piece, int repeat, const char *expected) {
  hg_sha256 hash;
  uint8_t digest[HG_SHA256_BYTES];
  char text[HG_SHA256_HEX];
  hg_sha256_begin(&hash);
  for (int i = 0; i < repeat; i++) hg_sha256_add(&hash, piece, strlen(piece));
  hg_sha256_end(&hash, digest);
  hg_sha256_hex(digest, text);
  CHECK_STR(text, expected);
}

static void test_sha256(void) {
  check_sha256("", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  check_sha256("abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  check_sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
               "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  check_sha256("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrs"
               "tnopqrstu",
               1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  /* as long as a block less its length, one more, and around whole blocks */
  check_sha256("a", 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318");
  check_sha256("a", 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34");
  check_sha256("a", 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb");
  check_sha256("a", 65, "635361c48bb9eab14198e76ea8ab7f1a41685d6ad62aa9146d301d4f17eb0ae0");
  check_sha256("a", 119, "31eba51c313a5c08226adf18d4a359cfdfd8d2e816b13f4af952f7ea6584dcfb");
  check_sha256("a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_canonical(void) {
  /* constants fold, dead code and dead loads go, a repeated load and product are one */
  check_code(
      IO
      "ldg.f32 r0, [x + lane]\nldg.f32 r1, [x + lane]\nldg.u32 r9, [i + #3]\nmul.f32 r2, r0, r1\nmul.f32 r3, r1, r0\n"
      "movi.f32 r4, #2\nadd.f32 r4, r4, #1\nadd.f32 r5, r2, r3\nmul.f32 r5, r5, r4\nstg.f32 [y + lane], r5\nexit\n",
      CANONICAL,
      "b0:\n    %1 = ldg.f32 [x + lane]\n    %2 = mul.f32 %1, %1\n    %3 = add.f32 %2, %2\n"
      "    %5 = mul.f32 %3, #0x40400000\n    stg.f32 [y + lane], %5\n    exit\n");
  /* x - 0 is x where x is arithmetic, x * 1 keeps making a NaN canonical where x is loaded */
  check_code(
      IO "ldg.f32 r0, [x + lane]\nsub.f32 r1, r0, #0\nmul.f32 r1, r1, #1\nstg.f32 [y + lane], r1\nexit\n", CANONICAL,
      "b0:\n    %1 = ldg.f32 [x + lane]\n    %3 = mul.f32 %1, #0x3f800000\n    stg.f32 [y + lane], %3\n    exit\n");
  /* a branch on a negated condition, with a jump to the next line on the way */
  check_code(IO "ldg.u32 r0, [i + lane]\nset.ne.u32 p0, r0, #0\n@!p0 bra zero\nbra next\nnext:\nstg.u32 [o + lane], "
                "r0\nzero:\nexit\n",
             CANONICAL,
             "b0:\n    %1 = ldg.u32 [i + lane]\n    %3 = set.eq.u32 %1, #0x0\n    branch %3, b1, b2\n"
             "b1:    ; from b0\n    exit\nb2:    ; from b0\n    stg.u32 [o + lane], %1\n    exit\n");
  /* two counters that always agree become one */
  check_code(IO "movi.u32 r0, #0\nmovi.u32 r1, #0\nmovi.u32 r2, #9\nagain:\nadd.u32 r0, r0, #2\nadd.u32 r1, r1, "
                "#2\nloop r2, again\n"
                "add.u32 r3, r0, r1\nstg.u32 [o + lane], r3\nexit\n",
             CANONICAL,
             "b0:\n    jump b1\nb1:    ; from b0 b1\n    %2 = phi.u32 b0 #0x0, b1 %8\n    %3 = phi.u32 b0 #0x9, b1 %5\n"
             "    %5 = add.u32 %3, #0xffffffff\n    %6 = set.eq.u32 %5, #0x0\n    %8 = add.u32 %2, #0x2\n    branch "
             "%6, b2, b1\n"
             "b2:    ; from b1\n    %10 = add.u32 %8, %8\n    stg.u32 [o + lane], %10\n    exit\n");
}

/* Where edges meet in blocks that compute nothing. */
static void test_joins(void) {
  /* the inner join goes: its edges lead to the outer one */
  check_code(IO "ldg.u32 r0, [i + lane]\nmovi.u32 r1, #1\nset.lt.u32 p0, r0, #100\n@!p0 bra end\nset.lt.u32 p1, r0, "
                "#10\n@p1 bra small\nldg.u32 r1, [i + #1]\nbra inner\nsmall:\nldg.u32 r1, [i + #2]\ninner:\nbra "
                "end\nend:\nstg.u32 [o + lane], r1\nexit\n",
             CANONICAL,
             "b0:\n    %1 = ldg.u32 [i + lane]\n    %3 = set.lt.u32 %1, #0x64\n    branch %3, b1, b4\n"
             "b1:    ; from b0\n    %6 = set.lt.u32 %1, #0xa\n    branch %6, b2, b3\n"
             "b2:    ; from b1\n    %7 = ldg.u32 [i + #2]\n    jump b4\n"
             "b3:    ; from b1\n    %8 = ldg.u32 [i + #1]\n    jump b4\n"
             "b4:    ; from b0 b2 b3\n    %9 = phi.u32 b0 #0x1, b2 %7, b3 %8\n    stg.u32 [o + lane], %9\n    exit\n");
  /* what is chosen before a loop is chosen in a block of its own */
  const char *entry =
      "b0:\n    %1 = ldg.u32 [i + lane]\n    %3 = set.lt.u32 %1, #0x7\n    branch %3, b2, b1\n"
      "b1:    ; from b0\n    %5 = ldg.u32 [i + #1]\n    jump b2\n"
      "b2:    ; from b0 b1\n    %6 = phi.u32 b0 #0x3, b1 %5\n    jump b3\n"
      "b3:    ; from b2 b3\n    %7 = phi.u32 b2 %1, b3 %10\n    stg.u32 [o + %7], %6\n    %10 = add.u32 %7, "
      "#0xffffffff\n    %12 = set.eq.u32 %10, #0x0\n    branch %12, b4, b3\nb4:    ; from b3\n    exit\n";
  check_code(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #7\nmovi.u32 r1, #3\n@p0 bra again\nldg.u32 r1, [i + "
                "#1]\nagain:\nstg.u32 [o + r0], r1\nloop r0, again\nexit\n",
             CANONICAL, entry);
  check_code(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #7\nmovi.u32 r1, #3\n@p0 bra on\nldg.u32 r1, [i + "
                "#1]\non:\nbra again\nagain:\nstg.u32 [o + r0], r1\nloop r0, again\nexit\n",
             CANONICAL, entry);
  /* a value computed from the inner choice keeps its block */
  char *code = compiled_text(IO "ldg.u32 r0, [i + lane]\nmovi.u32 r1, #1\nset.lt.u32 p0, r0, #100\n@!p0 bra end\n"
                                "ldg.u32 r1, [i + #1]\nset.lt.u32 p1, r0, #10\n@p1 bra inner\nldg.u32 r1, [i + #2]\n"
                                "inner:\nadd.u32 r1, r1, #1\nend:\nstg.u32 [o + lane], r1\nexit\n",
                             CANONICAL);
  CHECK(strstr(code, "phi.u32") != NULL && strstr(strstr(code, "phi.u32") + 1, "phi.u32") != NULL);
  free(code);
}

static void check_loads(const char *body, unsigned expected) {
  char text[1024];
  snprintf(text, sizeof text, ".buffer w u32 inout\n" IO "%s\nstg.u32 [o + lane], r9\nexit\n", body);
  char *code = compiled_text(text, CANONICAL);
  if (!check_note(count_words(code, "ldg") == expected)) printf("%u loads expected:\n%s%s", expected, body, code);
  free(code);
}

/* Which loads are one: with nothing between that may write the memory, and the first before the second on every path.
 */
static void test_loads(void) {
  check_loads("ldg.u32 r0, [i + lane]\nldg.u32 r1, [i + lane]\nmul.u32 r9, r0, r1", 1);
  check_loads("ldg.u32 r0, [i + #1]\nldg.u32 r1, [i + #2]\nmul.u32 r9, r0, r1", 2);
  check_loads("ldg.u32 r0, [w + #1]\nldg.u32 r1, [w + #1]\nmul.u32 r9, r0, r1", 1);
  check_loads("ldg.u32 r0, [w + #1]\nstg.u32 [w + #2], r0\nldg.u32 r1, [w + #1]\nmul.u32 r9, r0, r1", 2);
  check_loads("ldg.u32 r0, [w + #1]\nstg.u32 [o + #2], r0\nldg.u32 r1, [w + #1]\nmul.u32 r9, r0, r1", 1);
  check_loads("ldg.u32 r0, [w + #1]\natom.add.u32 _, [w + #2], r0\nldg.u32 r1, [w + #1]\nmul.u32 r9, r0, r1", 2);
  check_loads("ldg.u32 r0, [w + #1]\nmem.fence\nldg.u32 r1, [w + #1]\nmul.u32 r9, r0, r1", 2);
  check_loads("ldg.u32 r0, [w + #1]\nbar.sync\nldg.u32 r1, [w + #1]\nmul.u32 r9, r0, r1", 2);
  check_loads("ldg.u32 r0, [i + #1]\nbar.sync\nldg.u32 r1, [i + #1]\nmul.u32 r9, r0, r1", 1); /* nothing writes i */
  /* what is loaded from equal places is equal too */
  check_loads("ldg.u32 r0, [i + lane]\nldg.u32 r1, [i + lane]\nadd.u32 r0, r0, #4\nadd.u32 r1, r1, #4\n"
              "ldg.u32 r2, [i + r0]\nldg.u32 r3, [i + r1]\nmul.u32 r9, r2, r3",
              2);
  /* across blocks: from before into both arms and behind them, but not from arm to arm, nor from an arm to behind it */
  const char *across = "ldg.u32 r0, [w + lane]\nset.lt.u32 p0, r0, #9\n%s\n@p0 bra on\n%s\nadd.u32 r9, r2, #1\nbra "
                       "end\non:\n%s\nadd.u32 r9, r2, #2\nend:\n%s\nxor.u32 r9, r9, r3\nxor.u32 r9, r9, r4";
  const char *load2 = "ldg.u32 r2, [i + #3]", *load3 = "ldg.u32 r3, [i + #3]", *load4 = "ldg.u32 r4, [i + #3]";
  const char *move2 = "mov.u32 r2, r0", *move3 = "mov.u32 r3, r0", *move4 = "mov.u32 r4, r0";
  const struct {
    const char *before, *arm, *other, *behind;
    unsigned loads; /* that of r0 among them */
  } cases[] = {
      {load4, load2, load2, load3, 2}, {load4, move2, move2, load3, 2}, {load4, move2, load2, move3, 2},
      {move4, load2, load2, move3, 3}, {move4, load2, move2, load3, 3}, {move4, load2, load2, load3, 4},
  };
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    char body[512];
    snprintf(body, sizeof body, across, cases[k].before, cases[k].arm, cases[k].other, cases[k].behind);
    check_loads(body, cases[k].loads);
  }
  /* a load that is dead does not hold the place of a later one */
  check_code(IO "ldg.u32 r0, [i + lane]\nldg.f32 r5, [x + lane]\nset.lt.u32 p0, r0, #7\n@p0 bra end\nldg.f32 r1, [x + "
                "lane]\nstg.f32 [y + lane], r1\nend:\nexit\n",
             CANONICAL,
             "b0:\n    %1 = ldg.u32 [i + lane]\n    %3 = set.lt.u32 %1, #0x7\n    branch %3, b1, b2\n"
             "b1:    ; from b0\n    exit\n"
             "b2:    ; from b0\n    %4 = ldg.f32 [x + lane]\n    stg.f32 [y + lane], %4\n    exit\n");
}

static void test_dead(void) {
  check_loads("ldg.u32 r0, [i + lane]\nmovi.u32 r9, #1", 0);
  check_loads("ldg.u32 r0, [i + lane]\nldg.u32 r1, [i + r0]\nmovi.u32 r9, #1", 0);
  /* values that go around a loop and nowhere else; the loop stays */
  char *code = compiled_text(IO "movi.u32 r0, #9\nmovi.u32 r1, #0\nagain:\nmad.u32 r1, r1, r1, #1\nldg.u32 r2, "
                                "[i + r1]\nreduce.add.u32 r3, r0\nloop r0, again\nexit\n",
                             CANONICAL);
  CHECK_EQ_U64(count_words(code, "phi"), 1);
  CHECK_EQ_U64(count_words(code, "ldg") + count_words(code, "reduce") + count_words(code, "mad"), 0);
  CHECK_EQ_U64(count_words(code, "branch"), 1);
  free(code);
  /* what others see stays, its result or not */
  code =
      compiled_text(".buffer w u32 inout\n" IO "atom.add.u32 _, [w + #0], #1\nbar.sync\nmem.fence\nexit\n", CANONICAL);
  CHECK(strstr(code, "atom.add") != NULL && strstr(code, "bar.sync") != NULL && strstr(code, "mem.fence") != NULL);
  free(code);
}

/* Control flow in its plainest form. */
static void test_clean_flow(void) {
  /* a branch on a constant, what nothing reaches, jumps to jumps and a jump to an end */
  check_code(IO "movi.u32 r0, #4\nset.lt.u32 p0, r0, #5\n@p0 bra yes\nstg.u32 [o + lane], r0\nbra end\n"
                "yes:\nbra on\non:\nstg.u32 [o + lane], #7\nend:\nexit\n",
             CANONICAL, "b0:\n    stg.u32 [o + lane], #0x7\n    exit\n");
  /* both sides bring one value: no branch; different ones: a block each, whichever the program wrote */
  check_code(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #5\nmovi.u32 r1, #3\n@p0 bra on\nmovi.u32 r1, #3\non:\n"
                "stg.u32 [o + lane], r1\nexit\n",
             CANONICAL, "b0:\n    stg.u32 [o + lane], #0x3\n    exit\n");
  const char *apart = "b0:\n    %1 = ldg.u32 [i + lane]\n    %3 = set.lt.u32 %1, #0x5\n    branch %3, b1, b2\n"
                      "b1:    ; from b0\n    jump b3\nb2:    ; from b0\n    jump b3\n"
                      "b3:    ; from b1 b2\n    %6 = phi.u32 b1 #0x3, b2 #0x4\n    stg.u32 [o + lane], %6\n    exit\n";
  check_code(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #5\nmovi.u32 r1, #3\n@p0 bra on\nmovi.u32 r1, #4\non:\n"
                "stg.u32 [o + lane], r1\nexit\n",
             CANONICAL, apart);
  check_code(IO "ldg.u32 r0, [i + lane]\nset.ge.u32 p0, r0, #5\nmovi.u32 r1, #4\n@p0 bra on\nmovi.u32 r1, #3\non:\n"
                "stg.u32 [o + lane], r1\nexit\n",
             CANONICAL, apart);
  /* a branch ends where it led to an end; both to the same end: no branch */
  check_code(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #5\n@p0 bra a\nbra b\na:\ntrap #3\nb:\ntrap #3\n",
             CANONICAL, "b0:\n    trap #3\n");
  check_code(IO "ldg.u32 r0, [i + lane]\nset.lt.u32 p0, r0, #5\n@p0 bra a\ntrap #3\na:\ntrap #4\n", CANONICAL,
             "b0:\n    %1 = ldg.u32 [i + lane]\n    %3 = set.lt.u32 %1, #0x5\n    branch %3, b1, b2\n"
             "b1:    ; from b0\n    trap #4\nb2:    ; from b0\n    trap #3\n");
  /* a loop that never ends stays */
  check_code(IO "again:\nbra again\n", CANONICAL, "b0:\n    jump b1\nb1:    ; from b0 b1\n    jump b1\n");
}

/* How many phis are left of three counters, the third of which only runs down. */
static void check_phis(const char *first, const char *second, unsigned expected) {
  char text[1024];
  snprintf(text, sizeof text,
           IO
           "ldg.u32 r8, [i + lane]\nldg.u32 r9, [i + #1]\nmovi.u32 r0, #1\nmovi.u32 r1, #1\nmovi.u32 r2, #9\nagain:\n"
           "%s\n%s\nloop r2, again\nstg.u32 [o + lane], r0\nstg.u32 [o + r8], r1\nexit\n",
           first, second);
  char *code = compiled_text(text, CANONICAL);
  unsigned found = count_words(code, "phi.u32");
  if (!check_note(found == expected)) printf("%u phis, not %u:\n%s", found, expected, code);
  free(code);
}

static void test_merge_phis(void) {
  check_phis("mul.u32 r0, r0, r9", "mul.u32 r1, r1, r9", 2);
  check_phis("mul.u32 r0, r0, r9", "mul.u32 r1, r9, r1", 2); /* whichever way the factors stand */
  check_phis("mul.u32 r0, r0, r9", "mul.u32 r1, r1, r8", 3);
  check_phis("sub.u32 r0, r0, r9", "sub.u32 r1, r9, r1", 3);
  check_phis("mov.u32 r7, r0\nmul.u32 r0, r0, r1", "mul.u32 r1, r1, r7", 2); /* through each other */
  /* what differs only far below */
  check_phis("mad.u32 r0, r0, r9, #1\nxor.u32 r0, r0, r8\nadd.u32 r0, r0, #2",
             "mad.u32 r1, r1, r9, #3\nxor.u32 r1, r1, r8\nadd.u32 r1, r1, #2", 3);
  check_phis("mad.u32 r0, r0, r9, #1\nxor.u32 r0, r0, r8\nadd.u32 r0, r0, #2",
             "mad.u32 r1, r1, r9, #1\nxor.u32 r1, r8, r1\nadd.u32 r1, r1, #2", 2);
}

static hg_status count_rounds(void *user, const char *pass, const atlas_program *program, ssa_unit *unit) {
  (void)program;
  (void)unit;
  *(unsigned *)user += strcmp(pass, "value_number") == 0;
  return HG_OK;
}

/* What loops hand through to the inner ones is found at once, however deep they are. */
static void test_nested_loops(void) {
  enum { DEPTH = 60 };
  char text[64 * DEPTH];
  unsigned rounds = 0;
  const hg_pass_hook counting_rounds = {count_rounds, &rounds};
  int used = snprintf(text, sizeof text, IO "ldg.u32 r0, [i + lane]\n");
  for (int k = 1; k <= DEPTH; k++)
    used += snprintf(text + used, sizeof text - (size_t)used, "movi.u32 r%d, #3\na%d:\n", k, k);
  used += snprintf(text + used, sizeof text - (size_t)used, "add.u32 r0, r0, #0\n");
  for (int k = DEPTH; k > 0; k--) used += snprintf(text + used, sizeof text - (size_t)used, "loop r%d, a%d\n", k, k);
  snprintf(text + used, sizeof text - (size_t)used, "stg.u32 [o + lane], r0\nexit\n");
  atlas_program *program = parse(text);
  ssa_unit unit;
  CHECK_EQ_U64(hg_canonicalise(program, &counting_rounds, &unit), HG_OK);
  CHECK(rounds <= 3);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

/* Loops of the program and of the library: only the first count as steps. */
static void check_headers(const char *text, compile_stage stage, unsigned program_loops, unsigned library_loops) {
  atlas_program *program = parse(text);
  ssa_unit unit;
  ssa_order order;
  unsigned found[2] = {0, 0};
  compile(program, stage, &unit);
  CHECK_EQ_U64(ir_ssa_order_build(&unit, &order), HG_OK);
  for (uint32_t k = 0; k < order.count; k++) {
    const ssa_block *block = ssa_block_at(&unit, order.block[k]);
    int closes = 0;
    for (size_t i = 0; i < block->predecessors.count; i++)
      closes |= ssa_dominates(&order, order.block[k], ((const uint32_t *)block->predecessors.data)[i]);
    found[block->library] += closes ? 1u : 0u;
  }
  CHECK_EQ_U64(found[0], program_loops);
  CHECK_EQ_U64(found[1], library_loops);
  ir_ssa_order_release(&unit, &order);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

static void test_library_loops(void) {
  const char *function = IO "ldg.f32 r0, [x + lane]\nfmod.f32 r0, r0, #3\nstg.f32 [y + lane], r0\nexit\n";
  check_headers(function, CANONICAL, 0, 0);
  check_headers(function, EXPANDED, 0, 2);
  check_headers(function, OPTIMISED, 0, 2);
  const char *in_loop =
      IO "ldg.f32 r0, [x + lane]\nldg.f32 r1, [x + #0]\nagain:\nfmod.f32 r0, r0, r1\nset.lt.f32 p0, r0, "
         "#1\nmul.f32 r0, r0, #9\n@!p0 bra again\nstg.f32 [y + lane], r0\nexit\n";
  check_headers(in_loop, EXPANDED, 1, 2);
  check_headers(in_loop, OPTIMISED, 1, 2);
}

static void test_expanded(void) {
  char *code = compiled_text(
      ".buffer x f16 in\n.buffer y f16 out\nldg.f16 r0, [x + lane]\nexp.f16 r0, r0\nstg.f16 [y + lane], r0\nexit\n",
      EXPANDED);
  CHECK(strstr(code, "exp") == NULL);
  CHECK(strstr(code, "cvt.f32.f16") != NULL);
  CHECK(strstr(code, "cvt.f16.f32") != NULL);
  CHECK(strstr(code, "fma.f32") != NULL);
  free(code);
  /* f16 arithmetic is f32 arithmetic rounded once; a division is guarded, but not by a constant */
  code = compiled_text(
      ".buffer x f16 in\n.buffer y f16 out\nldg.f16 r0, [x + lane]\nadd.f16 r0, r0, r0\nset.lt.f16 p0, r0, #1\n"
      "sel.f16 r0, p0, r0, #2\nstg.f16 [y + lane], r0\nexit\n",
      EXPANDED);
  CHECK(strstr(code, "add.f32") != NULL && strstr(code, "add.f16") == NULL);
  CHECK(strstr(code, "set.lt.f32") != NULL && strstr(code, "sel.f16") != NULL);
  free(code);
  code = compiled_text(IO "ldg.u32 r0, [i + lane]\ndiv.u32 r1, r0, #7\nstg.u32 [o + lane], r1\nexit\n", EXPANDED);
  CHECK(strstr(code, "div.u32") != NULL && strstr(code, "sel.u32") == NULL);
  free(code);
  code = compiled_text(IO "ldg.u32 r0, [i + lane]\ndiv.u32 r1, #7, r0\nstg.u32 [o + lane], r1\nexit\n", EXPANDED);
  CHECK(strstr(code, "div.u32") != NULL && strstr(code, "sel.u32") != NULL);
  free(code);
  /* every function expands to primitives in every type */
  for (size_t k = 0; k < atlas_op_count(); k++) {
    const atlas_op_info *info = atlas_op_lookup((uint32_t)atlas_op_at(k));
    if (!(info->flags & ATLAS_FUNC)) continue;
    const char *types[] = {"f16", "bf16", "f32", "f64"};
    for (int t = 0; t < 4; t++) {
      char text[512], call[64];
      int arguments = info->operands[2] != '\0' ? 2 : 1;
      snprintf(
          text, sizeof text,
          ".buffer x %s in\n.buffer y %s out\nldg.%s r0, [x + lane]\n%s.%s r0, r0%s\nstg.%s [y + lane], r0\nexit\n",
          types[t], types[t], types[t], info->mnemonic, types[t], arguments == 2 ? ", r0" : "", types[t]);
      snprintf(call, sizeof call, " %s.%s ", info->mnemonic, types[t]);
      code = compiled_text(text, OPTIMISED);
      CHECK(strstr(code, call) == NULL);
      free(code);
    }
  }
}

/* ---- summaries --------------------------------------------------------------------------------------------------- */

static void test_summary(void) {
  atlas_program *program = parse(
      IO "ldg.f32 r0, [x + lane]\nldg.u32 r1, [i + lane]\nexp.f32 r0, r0\nfma.f32 r0, r0, r0, r0\nadd.u32 r1, r1, #1\n"
         "stg.f32 [y + lane], r0\nstg.u32 [o + lane], r1\nexit\n");
  ssa_unit unit;
  hg_summary summary;
  compile(program, CANONICAL, &unit);
  CHECK_EQ_U64(hg_summarise(program, &unit, &summary), HG_OK);
  CHECK_EQ_U64(summary.bytes_read, 8);
  CHECK_EQ_U64(summary.bytes_written, 8);
  CHECK_EQ_U64(summary.functions, 1);
  CHECK_EQ_U64(summary.float_ops, 1);
  CHECK_EQ_U64(summary.integer_ops, 1);
  CHECK_EQ_U64(summary.loads, 2);
  CHECK_EQ_U64(summary.stores, 2);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

/* ---- out of memory ----------------------------------------------------------------------------------------------- */

/* Something for every pass to do. */
static const char rich[] =
    ".buffer h f16 inout\n.shared t f32 16\n" IO
    "ldg.f32 r0, [x + lane]\nldg.u32 r1, [i + lane]\nldg.u32 r2, [i + lane]\nldg.f16 r3, [h + lane]\nmovi.u32 r4, #1\n"
    "set.lt.u32 p0, r1, #100\n@!p0 bra end\nset.lt.u32 p1, r1, #10\n@p1 bra small\nldg.u32 r4, [i + #1]\nbra inner\n"
    "small:\nldg.u32 r4, [i + #2]\ninner:\nbra end\nend:\nadd.u32 r1, r1, r2\nmovi.u32 r5, #0\nmovi.u32 r6, #0\n@p0 "
    "bra "
    "again\nldg.u32 r4, [i + r4]\nagain:\nadd.u32 r5, r5, r4\nadd.u32 r6, r6, r4\nloop r1, again\nadd.u32 r5, r5, r6\n"
    "bar.sync\nreduce.add.f32 r7, r0\nsts.f32 [t + #3], r7\nsts.f32 [t + #3], r0\nlds.f32 r8, [t + #3]\n"
    "exp.f32 r9, r8\nexp.f32 r10, r7\nlog.f32 r11, r0\nadd.f32 r9, r9, r10\nadd.f32 r8, r9, r11\n"
    "pow.f32 r8, r8, r7\nfmod.f16 r3, r3, #3\ndiv.u32 r5, r5, r2\ndiv.u32 r5, r5, #8\n"
    "set.lt.f32 p2, r8, #0\n@p2 bra low\nadd.f32 r8, r8, #1\nlow:\nstg.f32 [y + lane], r8\n"
    "stg.u32 [o + lane], r5\nstg.f16 [h + lane], r3\nexit\n";

static hg_status compile_all(const atlas_program *program) {
  static const hg_shape shape = {.lanes = 100, .grid = {1, 1, 1}, .block = {100, 1, 1}};
  ssa_unit unit;
  hg_array bytes = {.element_size = 1};
  hg_analysis analysis = {0};
  hg_summary summary;
  hg_status status = hg_canonicalise(program, NULL, &unit);
  if (status == HG_OK) status = hg_canon_bytes(program, &unit, &bytes);
  if (status == HG_OK) status = hg_ssa_print(program, &unit, 0, &bytes);
  if (status == HG_OK) status = hg_summarise(program, &unit, &summary);
  unit.joins_functions = 1;
  if (status == HG_OK) status = hg_expand(&unit, NULL);
  if (status == HG_OK) status = hg_optimise(program, &unit, NULL);
  if (status == HG_OK) {
    status = hg_analyse(program, &unit, &shape, &analysis);
    hg_analysis_release(&unit, &analysis);
  }
  hg_array_release(&unit.allocator, &bytes);
  ir_ssa_release(&unit);
  return status;
}

/* ---- registers that no text has ---------------------------------------------------------------------------------- */

/* x[lane + i] + i for 0 and 1, in a loop, all registers from `first` on. */
static hg_status loop_in_registers(uint32_t first, int defines, atlas_program **out) {
  atlas_builder *b = NULL;
  CHECK_EQ_U64(atlas_builder_create(NULL, "loop", &b), HG_OK);
  atlas_builder_has_many(b);
  uint16_t x = atlas_builder_buffer(b, "x", ATLAS_u32, ATLAS_INOUT);
  uint32_t top = atlas_builder_label(b, "top");
  atlas_operand turns = atlas_reg(first), sum = atlas_reg(first + 1), at = atlas_reg(first + 2);
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, turns, atlas_bits(2));
  if (defines) atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, sum, atlas_bits(0));
  atlas_builder_place(b, top);
  atlas_emit2(b, ATLAS_OP_cvt, ATLAS_u32, ATLAS_u64, at, atlas_reg(ATLAS_REG_LANE));
  atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, at, at, turns);
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_u32, 2, at, atlas_mem_reg(x, first + 2, 3));
  atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, sum, sum, at);
  atlas_emit(b, ATLAS_OP_loop, ATLAS_NONE, 2, turns, atlas_label_ref(top));
  atlas_emit(b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem_lane(x, 0), sum);
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_builder_close(b, &program), HG_OK);
  return atlas_program_trust(program, out);
}

static void test_many_registers(void) {
  static const uint32_t firsts[] = {0, 249, 256, 506, 508, ATLAS_MOST_REGISTERS - 3};
  uint8_t digest[sizeof firsts / sizeof firsts[0]][ATLAS_HASH_BYTES];
  atlas_program *program = NULL;
  for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
    CHECK_EQ_U64(loop_in_registers(firsts[i], 1, &program), HG_OK);
    CHECK_EQ_U64(atlas_verify(program, NULL), HG_OK);
    CHECK_EQ_U64(atlas_program_hash(program, digest[i]), HG_OK);
    CHECK(memcmp(digest[i], digest[0], ATLAS_HASH_BYTES) == 0);
    atlas_program_release(program);
  }
  hg_status status = loop_in_registers(300, 0, &program); /* verified in debug builds alone, but never compiled */
  if (status == HG_OK) {
    status = atlas_program_hash(program, digest[0]);
    CHECK_STR(hg_last_error(), "program 'loop': r301 may be read before it is written");
    atlas_program_release(program);
  }
  CHECK_EQ_U64(status, HG_VERIFY);
}

/* What is public of it: nothing is made of no arguments, and the text of a failure is NULL. */
static void test_arguments(void) {
  atlas_program *program = NULL;
  uint8_t digest[ATLAS_HASH_BYTES];
  char *text = NULL, *again = (char *)digest;
  CHECK_EQ_U64(atlas_parse(NULL, "exit", 4, NULL, &program), HG_OK);
  CHECK_EQ_U64(atlas_program_hash(NULL, digest), HG_INVALID_ARGUMENT);
  CHECK_EQ_U64(atlas_program_hash(program, NULL), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "atlas_program_hash needs a program and a place for its hash");
  CHECK_EQ_U64(atlas_print_canonical(NULL, NULL, &text, NULL), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "atlas_print_canonical needs a program and a place for its text");
  CHECK_EQ_U64(atlas_print_ssa(NULL, program, NULL, NULL), HG_INVALID_ARGUMENT);
  CHECK_STR(hg_last_error(), "atlas_print_ssa needs a program and a place for its text");
  CHECK_EQ_U64(atlas_print_ssa(&(hg_allocator){0}, program, &again, NULL), HG_INVALID_ARGUMENT);
  CHECK(again == NULL);
  CHECK_EQ_U64(atlas_print_canonical(NULL, program, &text, NULL), HG_OK); /* its length may go without saying */
  CHECK_EQ_U64(atlas_print_ssa(NULL, program, &again, NULL), HG_OK);
  CHECK(text != NULL && again != NULL);
  atlas_memory_release(NULL, text);
  atlas_memory_release(NULL, again);
  atlas_program_release(program);
}

static void test_out_of_memory(void) {
  counter c = {.fail_at = -1};
  hg_allocator allocator = counting(&c);
  atlas_program *program = NULL;
  CHECK_EQ_U64(atlas_parse(&allocator, rich, sizeof rich - 1, "rich", &program), HG_OK);
  if (program == NULL) return;
  long held = c.live, before = c.allocations;
  CHECK_EQ_U64(compile_all(program), HG_OK);
  long total = c.allocations - before;
  long unnoticed = 0; /* room for no elements at all may be refused */
  for (long k = 0; k < total; k += k < 200 ? 1 : 7) {
    c.allocations = 0;
    c.fail_at = k;
    hg_status status = compile_all(program);
    unnoticed += status == HG_OK;
    if (!check_note((status == HG_OUT_OF_MEMORY || status == HG_OK) && c.live == held))
      printf("allocation %ld of %ld: status %d, %ld not released\n", k, total, (int)status, c.live - held);
  }
  CHECK(unnoticed <= 4);
  CHECK(total > 400);
  atlas_program_release(program);
  CHECK_EQ_U64(c.live, 0);
}

int main(void) {
  test_sha256();
  test_canonical();
  test_clean_flow();
  test_joins();
  test_loads();
  test_dead();
  test_expanded();
  test_library_loops();
  test_merge_phis();
  test_nested_loops();
  test_summary();
  test_many_registers();
  test_arguments();
  test_out_of_memory();
  return check_report();
}
