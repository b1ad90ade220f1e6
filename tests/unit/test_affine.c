/* test_affine.c - what the slopes of values are along lanes and blocks, and what terms a sum has. */
#include "compile.h"

#include "compiler/analysis/affine.h"

typedef struct compiled {
  atlas_program *program;
  ssa_unit unit;
  ssa_order order;
  uint32_t stored; /* the value that the last store of u32 stores */
} compiled;

/* Code that leaves a value in r9, which is stored; its instructions are in blocks. */
static void begin(const char *block, const char *body, compiled *c) {
  char text[1024];
  snprintf(text, sizeof text, ".block %s\n.scalar n u32\n.scalar m u32\n%s%s\nstg.u32 [o + blane], r9\nexit\n", block,
           IO, body);
  c->program = parse(text);
  compile(c->program, OPTIMISED, &c->unit);
  CHECK_EQ_U64(ir_ssa_order_build(&c->unit, &c->order), HG_OK);
  for (uint32_t v = 0; v < c->unit.insns.count; v++)
    if (ssa_insn_at(&c->unit, v)->op == ATLAS_OP_stg) c->stored = ssa_args_of(&c->unit, v)[1];
}

static void end(compiled *c) {
  ir_ssa_order_release(&c->unit, &c->order);
  ir_ssa_release(&c->unit);
  atlas_program_release(c->program);
}

/* ---- slopes ------------------------------------------------------------------------------------------------------ */

static hg_slope slope_of(const char *block, const char *body, hg_axis along) {
  compiled c;
  begin(block, body, &c);
  hg_slope *all = malloc(c.unit.insns.count * sizeof *all);
  hg_find_slopes(&c.unit, &c.order, c.program->block, along, all);
  hg_slope slope = all[c.stored];
  CHECK(slope.by == SSA_NONE || ssa_insn_at(&c.unit, slope.by)->op == SSA_SCALAR);
  free(all);
  end(&c);
  return slope;
}

typedef struct expected {
  uint32_t factor;
  int by_scalar;
  uint8_t certainty;
} expected;

static void check(const char *block, const char *body, hg_axis along, expected e) {
  hg_slope s = slope_of(block, body, along);
  if (!check_note(s.certainty == e.certainty &&
                  (e.certainty == HG_UNKNOWN || (s.factor == e.factor && (s.by != SSA_NONE) == e.by_scalar))))
    printf("axis %d: %u * %s, certainty %u: %s\n", (int)along, s.factor, s.by == SSA_NONE ? "1" : "scalar", s.certainty,
           body);
}

static void check_all(const char *block, const char *body, expected blocks, expected x, expected y) {
  check(block, body, HG_ALONG_BLOCKS, blocks);
  check(block, body, HG_ALONG_X, x);
  check(block, body, HG_ALONG_Y, y);
}

#define STAYS {0, 0, HG_EXACT}
#define BY(n) {n, 0, HG_EXACT}
#define TIMES_SCALAR(n) {n, 1, HG_EXACT}
#define NOT_KNOWN {0, 0, HG_UNKNOWN}
#define TILE "sreg.u32 r0, lane.x\nsreg.u32 r1, lane.y\nsreg.u32 r2, block.x\n"

static void test_slopes(void) {
  static const struct {
    const char *body;
    expected blocks, x, y;
  } cases[] = {
      {"movi.u32 r9, #7", STAYS, STAYS, STAYS},
      {"mul.u32 r9, n, m", STAYS, STAYS, STAYS},
      {TILE "mad.u32 r9, r1, #32, r0", STAYS, BY(1), BY(32)},
      {TILE "mad.u32 r3, r2, n, r0\nadd.u32 r9, r3, r1", TIMES_SCALAR(1), BY(1), BY(1)},
      {TILE "mul.u32 r3, r0, #3\nmad.u32 r9, r3, n, r2", BY(1), TIMES_SCALAR(3), STAYS},
      {TILE "shl.u32 r3, r2, #4\nadd.u32 r3, r3, r2\nadd.u32 r9, r3, n", BY(17), STAYS, STAYS},
      /* up to a bound; before it gets more bits; with fewer */
      {TILE "min.u32 r3, r0, n\nmad.u32 r9, r3, #2, r1", STAYS, {2, 0, HG_CLAMPED}, BY(1)},
      {TILE "mul.u32 r3, r0, n\ncvt.u64.u32 r4, r3\nadd.u64 r4, r4, #5\nmul.u64 r4, r4, #3\ncvt.u32.u64 r9, r4", STAYS,
       {3, 1, HG_LIKELY}, STAYS},
      /* a product with a scalar of one with another; two slopes that are no one number; an operation that is none */
      {TILE "mul.u32 r3, r0, n\nmul.u32 r9, r3, m", STAYS, NOT_KNOWN, STAYS},
      {TILE "mad.u32 r9, r0, n, r0", STAYS, NOT_KNOWN, STAYS},
      {TILE "xor.u32 r9, r0, #3", STAYS, NOT_KNOWN, STAYS},
      {TILE "mul.u32 r9, r0, #0x2000000", STAYS, NOT_KNOWN, STAYS},
      /* what memory holds, and what a loop makes */
      {"ldg.u32 r9, [i + #3]", NOT_KNOWN, NOT_KNOWN, NOT_KNOWN},
      {"mov.u32 r9, n\nagain:\nadd.u32 r9, r9, m\nset.lt.u32 p0, r9, #1000\n@p0 bra again", NOT_KNOWN, NOT_KNOWN,
       NOT_KNOWN},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    check_all("16, 8", cases[i].body, cases[i].blocks, cases[i].x, cases[i].y);
  check_all("64", "mad.u32 r9, r253, #64, blane", (expected)BY(64), (expected)BY(1), (expected)STAYS);
  check_all("8, 8", "mad.u32 r9, r253, #64, blane", (expected)BY(64), (expected)NOT_KNOWN, (expected)NOT_KNOWN);
  check_all("64", "cvt.u32.u64 r9, lane", (expected)NOT_KNOWN, (expected)NOT_KNOWN, (expected)NOT_KNOWN);
}

/* ---- terms ------------------------------------------------------------------------------------------------------- */

static int is_scalar(const void *unit, uint32_t value) {
  uint16_t op = ssa_insn_at(unit, value)->op;
  return op == SSA_SCALAR || op == SSA_CONST;
}

static void check_terms(const char *body, uint32_t count, uint32_t products, uint16_t rest_op) {
  compiled c;
  hg_terms terms;
  begin("64", body, &c);
  uint32_t rest = hg_take_terms(&c.unit, c.stored, is_scalar, &c.unit, &terms);
  uint16_t op = ssa_insn_at(&c.unit, rest)->op;
  if (!check_note(terms.count == count && terms.products == products && op == rest_op))
    printf("%u terms, %u products, the rest is %#x: %s\n", terms.count, terms.products, op, body);
  for (uint32_t i = 0; i < terms.count; i++) CHECK(is_scalar(&c.unit, terms.value[i]));
  end(&c);
}

static void test_terms(void) {
  check_terms("add.u32 r9, blane, n", 1, 0, SSA_SPECIAL);
  check_terms("add.u32 r0, blane, n\nadd.u32 r1, r0, m\nadd.u32 r9, r1, #5", 3, 0, SSA_SPECIAL);
  check_terms("mad.u32 r0, n, m, blane\nadd.u32 r9, r0, n", 1, 1, SSA_SPECIAL);
  check_terms("mad.u32 r0, n, blane, m\nadd.u32 r9, r0, n", 1, 0, ATLAS_OP_mad);
  check_terms("sub.u32 r0, n, blane\nadd.u32 r9, r0, m", 1, 0, ATLAS_OP_sub);
  check_terms("xor.u32 r9, blane, n", 0, 0, ATLAS_OP_xor);
  /* no more than there is room for */
  char body[512];
  int used = snprintf(body, sizeof body, "mov.u32 r9, blane\n");
  for (int i = 0; i < HG_MOST_TERMS + 1; i++)
    used += snprintf(body + used, sizeof body - (size_t)used, "mad.u32 r9, n, m, r9\n");
  check_terms(body, 0, HG_MOST_TERMS, ATLAS_OP_mad);
}

int main(void) {
  test_slopes();
  test_terms();
  return check_report();
}
