/* test_function_rows.c - functions of one block that share a test for their rare cases (expand_row.h): which do, which
 * arguments pass the test, and that the unit gives the bits of the reference machine either way. */
#include "compile.h"

#include "atlas/insn.h"
#include "atlas/interp.h"
#include "atlas/tables.h"
#include "compiler/ssa_interp.h"
#include "ir/ssa_order.h"

#include <math.h>

enum { LANES = 8, VALUES = 3 };

static int calls_two(const atlas_op_info *info) { return atlas_argument_count(info) == 2; }

static void expand(atlas_program *program, ssa_unit *unit) {
  compile(program, CANONICAL, unit);
  unit->joins_functions = 1;
  compile_further(program, EXPANDED, unit);
}

static uint32_t count_tests(const ssa_unit *unit) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < unit->blocks.count; b++) count += ssa_block_at(unit, b)->usual != 0;
  return count;
}

/* ---- which ------------------------------------------------------------------------------------------------------- */

#define HEAD                                                                                                           \
  ".program p\n.block 64\n.buffer x f32 in\n.buffer y f32 inout\n"                                                     \
  "ldg.f32 r0, [x + blane]\nldg.f32 r1, [x + blane + #64]\nldg.f32 r2, [x + blane + #128]\n"
#define TAIL "stg.f32 [y + blane], r3\nexit\n"

/* Rounds of rare cases are no steps: no loop of the unit counts any. */
static void check_loops(ssa_unit *unit) {
  ssa_order order;
  CHECK(ir_ssa_order_build(unit, &order) == HG_OK);
  for (uint32_t k = 0; k < order.count; k++) {
    const ssa_block *block = ssa_block_at(unit, order.block[k]);
    for (int s = 0; s < 2; s++) {
      uint32_t to = block->successor[s];
      if (to != SSA_NONE && ssa_dominates(&order, to, order.block[k])) CHECK(ssa_block_at(unit, to)->library);
    }
  }
  ir_ssa_order_release(unit, &order);
}

static void check_tests(const char *text, uint32_t tests, uint32_t branches) {
  atlas_program *program = parse(text);
  ssa_unit unit;
  uint32_t found = 0;
  expand(program, &unit);
  CHECK_EQ_U64(count_tests(&unit), tests);
  compile_further(program, OPTIMISED, &unit);
  for (uint32_t b = 0; b < unit.blocks.count; b++)
    found += !ssa_block_at(&unit, b)->dead && ssa_block_at(&unit, b)->end == SSA_BRANCH;
  CHECK_EQ_U64(found, branches);
  check_loops(&unit);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

/* Branches: of a test, of the loop, and of the function in it. */
static void test_which(void) {
  enum { OF_EXP = 2, OF_LOG2 = 2 };
  check_tests(HEAD "exp.f32 r3, r0\nexp.f32 r4, r1\nadd.f32 r3, r3, r4\n" TAIL, 1, 2 + OF_EXP);
  check_tests(HEAD "exp.f32 r3, r0\nexp.f32 r4, r1\nexp.f32 r5, r2\nadd.f32 r3, r3, r4\nadd.f32 r3, r3, r5\n" TAIL, 1,
              2 + OF_EXP);
  /* each function of a row has its own loop; one call needs none */
  check_tests(HEAD "exp.f32 r3, r0\nlog2.f32 r4, r1\nexp.f32 r5, r2\nadd.f32 r3, r3, r4\nadd.f32 r3, r3, r5\n" TAIL, 1,
              2 + OF_EXP + OF_LOG2);
  /* one needs what the other one gives; then a row of those that wait */
  check_tests(HEAD "exp.f32 r3, r0\nadd.f32 r3, r3, r1\nexp.f32 r3, r3\n" TAIL, 0, 2 * OF_EXP);
  check_tests(HEAD "exp.f32 r3, r0\nexp.f32 r4, r1\nlog2.f32 r3, r3\nlog2.f32 r4, r4\nadd.f32 r3, r3, r4\n" TAIL, 2,
              4 + OF_EXP + OF_LOG2);
  /* something with an effect stands between */
  check_tests(HEAD "exp.f32 r3, r0\nstg.f32 [y + blane], r3\nldg.f32 r1, [y + blane + #1]\nexp.f32 r3, r1\n" TAIL, 0,
              2 * OF_EXP);
  /* no branch; a load on the way */
  check_tests(HEAD "tanh.f32 r3, r0\ntanh.f32 r4, r1\nadd.f32 r3, r3, r4\n" TAIL, 0, 0);
  check_tests(HEAD "gelu.f32 r3, r0\ngelu.f32 r4, r1\nadd.f32 r3, r3, r4\n" TAIL, 0, 2);
}

/* ---- what passes, and bits --------------------------------------------------------------------------------------- */

typedef struct watcher {
  const ssa_unit *unit;
  uint32_t rounds; /* of loops over rare cases, by all lanes */
} watcher;

/* A round is counted in a phi of a loop; the functions have none of its kind on a way of their own there. */
static void saw(void *user, uint32_t of, uint32_t value, uint64_t bits, const uint64_t *args) {
  watcher *w = user;
  const ssa_insn *insn = ssa_insn_at(w->unit, value);
  (void)of;
  (void)args;
  (void)bits;
  if (insn->op != SSA_PHI || insn->insn != SSA_NONE || insn->type != ATLAS_u32) return;
  w->rounds++;
}

/* Returns the rounds of rare loops. Results of both machines have the same bits. */
static uint32_t run_both(const atlas_program *program, const ssa_unit *unit, const void *x, uint64_t size) {
  uint64_t y[2][LANES] = {{0}};
  watcher w = {.unit = unit};
  const hg_ssa_watch watch = {saw, &w};
  for (int k = 0; k < 2; k++) {
    const atlas_argument arguments[] = {{.span = {(void *)(uintptr_t)x, size}}, {.span = {(void *)y[k], sizeof y[k]}}};
    static atlas_launch launch;
    launch = (atlas_launch){.grid = {1, 1, 1}, .block = {LANES, 1, 1}, .arguments = arguments, .step_limit = 100};
    CHECK_EQ_U64(k == 0 ? atlas_interpret(&program->allocator, program, &launch)
                        : hg_ssa_interpret_watched(&program->allocator, program, unit, &watch, &launch),
                 HG_OK);
    CHECK_EQ_U64(launch.fault.kind, HG_FAULT_NONE);
  }
  CHECK(memcmp(y[0], y[1], sizeof y[0]) == 0);
  return w.rounds;
}

static void try_function(const atlas_op_info *info, const char *type) {
  static const double ordinary[] = {0.25, 0.875, 1.5, 2.5};
  static const double any[] = {-0.0, 1e30, -1e30, 1e-42, (double)NAN, (double)INFINITY, -(double)INFINITY, -3};
  char text[1024];
  int is_wide = strcmp(type, "f64") == 0;
  union {
    float narrow[LANES * VALUES];
    double wide[LANES * VALUES];
  } x;
  size_t used = (size_t)snprintf(text, sizeof text, ".program p\n.block %d\n.buffer x %s in\n.buffer y %s out\n", LANES,
                                 type, type);
  for (int i = 0; i < VALUES; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "ldg.%s r%d, [x + blane + #%d]\n", type, i, i * LANES);
  for (int i = 0; i < VALUES; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s.%s r%d, r%d%s\n", info->mnemonic, type, 10 + i, i,
                             !calls_two(info) ? "" : i == 2 ? ", r0" : ", r2");
  snprintf(text + used, sizeof text - used,
           "add.%s r10, r10, r11\nadd.%s r10, r10, r12\nstg.%s [y + blane], r10\nexit\n", type, type, type);
  atlas_program *program = parse(text);
  ssa_unit unit;
  expand(program, &unit);
  for (int rare = 0; rare < 2; rare++) {
    for (int i = 0; i < LANES * VALUES; i++) {
      double value = rare && i % 3 == 0 ? any[i / 3 % 8] : ordinary[i % 4];
      if (is_wide) x.wide[i] = value;
      else x.narrow[i] = (float)value;
    }
    uint32_t rounds = run_both(program, &unit, &x, is_wide ? sizeof x.wide : sizeof x.narrow);
    if (!check_note(rare || count_tests(&unit) == 0 || rounds == 0))
      printf("%s.%s: %u rounds for ordinary arguments\n", info->mnemonic, type, rounds);
  }
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

int main(void) {
  test_which();
  for (size_t k = 0; k < atlas_op_count(); k++) {
    const atlas_op_info *info = atlas_op_lookup((uint32_t)atlas_op_at(k));
    if (!(info->flags & ATLAS_FUNC)) continue;
    try_function(info, "f32");
    try_function(info, "f64");
  }
  return check_report();
}
