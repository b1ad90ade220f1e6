/* test_gpu_plan.c - what holds of every plan of a GPU kernel: its steps are a tree, each access is done once, every
 * fault of an access left out is noted, in time; and what a target can do shows where it should, nowhere else. What
 * plans look like: tests/gpu_plan. */
#include "backend/gpu/build.h"
#include "compile.h"

#include "../gpu_plan/targets.h"

enum { STAYS, OPENS, TURNS, CLOSES };
static const int nests[] = {
#define STEP(id, of, nest) nest,
#include "backend/gpu/steps.def"
#undef STEP
};

static const hg_gpu_target branching = {.vector_bytes = 16,
                                        .warp_lanes = 32,
                                        .declared_shared = 32 << 10,
                                        .branches = 1,
                                        .exact_nans = 1};

#define BUFFERS ".buffer x f32 in\n.buffer y f32 inout\n"

static const char saxpy[] = BUFFERS ".scalar a f32\nldg.f32 r0, [x + lane]\nldg.f32 r1, [y + lane]\n"
                                    "fma.f32 r0, r0, a, r1\nstg.f32 [y + lane], r0\nexit\n";
static const char clamp[] = ".buffer x f16 in\n.buffer y f16 out\nldg.f16 r0, [x + lane]\ncvt.f32.f16 r1, r0\n"
                            "max.f32 r1, r1, #-1\nmin.f32 r1, r1, #1\ncvt.f16.f32 r0, r1\nstg.f16 [y + lane], r0\n"
                            "exit\n";
static const char gather[] = BUFFERS ".buffer i u32 in\nldg.u32 r0, [i + lane]\nldg.f32 r1, [x + r0]\n"
                                     "stg.f32 [y + lane], r1\nexit\n";
/* More accesses that are left out than may wait. */
static const char scattered[] =
    BUFFERS ".buffer i u32 in\nldg.u32 r0, [i + lane]\nldg.u32 r1, [i + lane + #70000]\nldg.f32 r2, [x + r0]\n"
            "ldg.f32 r3, [x + r1]\nadd.f32 r2, r2, r3\nldg.f32 r3, [x + r0 + #200000]\nadd.f32 r2, r2, r3\n"
            "ldg.f32 r3, [x + r1 + #200000]\nadd.f32 r2, r2, r3\nldg.f32 r3, [x + r0 + #400000]\nadd.f32 r2, r2, r3\n"
            "ldg.f32 r3, [x + r1 + #400000]\nadd.f32 r2, r2, r3\nldg.f32 r3, [x + r0 + #600000]\nadd.f32 r2, r2, r3\n"
            "ldg.f32 r3, [x + r1 + #600000]\nadd.f32 r2, r2, r3\nstg.f32 [y + lane], r2\nexit\n";
/* Of both kinds: four elements an access, and one behind. */
static const char neighbours[] =
    BUFFERS ".buffer i u32 in\nldg.u32 r0, [i + lane]\nldg.f32 r1, [x + r0]\nldg.f32 r2, [x + r0 + #1]\n"
            "add.f32 r1, r1, r2\nldg.f32 r2, [x + r0 + #2]\nadd.f32 r1, r1, r2\nldg.f32 r2, [x + r0 + #3]\n"
            "add.f32 r1, r1, r2\nldg.f32 r2, [x + r0 + #9]\nadd.f32 r1, r1, r2\nstg.f32 [y + lane], r1\nexit\n";
/* Three functions and a divisor, in a loop whose iterations run several at a time. */
static const char shared[] =
    ".block 64\n" BUFFERS
    "mov.u32 r0, blane\nmovi.f32 r9, #1\nround:\nldg.f32 r1, [x + r0]\nldg.f32 r2, [x + r0 + #64]\n"
    "ldg.f32 r3, [x + r0 + #128]\nexp.f32 r1, r1\nexp.f32 r2, r2\nexp.f32 r3, r3\nadd.f32 r4, r1, r2\nadd.f32 r4, r4, "
    "r3\n"
    "div.f32 r1, r1, r4\ndiv.f32 r2, r2, r4\ndiv.f32 r3, r3, r4\nadd.f32 r1, r1, r2\nadd.f32 r1, r1, r3\n"
    "add.f32 r9, r9, r1\nadd.u32 r0, r0, #64\nset.lt.u32 p0, r0, #4096\n@p0 bra round\nreduce.add.f32 r9, r9\n"
    "stg.f32 [y + blane], r9\nexit\n";
static const char reduction[] = ".block 96\n" BUFFERS "ldg.f32 r0, [x + lane]\nset.gt.f32 p0, r0, #0\n@p0 bra wrong\n"
                                "reduce.max.f32 r1, r0\nscan.excl.f32 r2, r1\nstg.f32 [y + lane], r2\nexit\n"
                                "wrong:\ntrap #1\n";
static const char atomic[] = ".buffer x u32 in\n.buffer y u32 inout\nldg.u32 r0, [x + lane]\n"
                             "atom.add.u32 r1, [y + r0], #1\nexit\n";
static const char pool[] = ".block 32\n.pool heap\n.buffer x u64 inout\npool.alloc.u64 r0, heap, #256\n"
                           "ldg.u64 r1, [x + lane]\npool.store.u64 [heap + r0], r1\nbar.sync\n"
                           "pool.load.u64 r2, [heap + r0]\nstg.u64 [x + lane], r2\npool.free.u64 heap, r0\nexit\n";

/* Loads of two buffers in turns; a product of two vectors out of shared memory, step by step. */
static const char tile[] =
    ".block 64\n" BUFFERS ".buffer z f32 in\n.scalar n u32\n.shared s f32 1024\nmul.u32 r0, r253, n\n"
    "ldg.f32 r10, [x + r0]\nldg.f32 r20, [z + r0]\nldg.f32 r11, [x + r0 + #1]\nldg.f32 r21, [z + r0 + #1]\n"
    "shl.u32 r1, blane, #1\nsts.f32 [s + r1], r10\nsts.f32 [s + r1 + #1], r11\nsts.f32 [s + r1 + #128], r20\n"
    "sts.f32 [s + r1 + #129], r21\nbar.sync\nlds.f32 r2, [s + r1]\nlds.f32 r3, [s + r1 + #1]\nmul.f32 r4, r2, r2\n"
    "mul.f32 r5, r2, r3\nmul.f32 r6, r3, r3\nlds.f32 r2, [s + r1 + #128]\nlds.f32 r3, [s + r1 + #129]\n"
    "fma.f32 r4, r2, r2, r4\nfma.f32 r5, r2, r3, r5\nfma.f32 r6, r3, r3, r6\nlds.f32 r2, [s + r1 + #256]\n"
    "lds.f32 r3, [s + r1 + #257]\nfma.f32 r4, r2, r2, r4\nfma.f32 r5, r2, r3, r5\nfma.f32 r6, r3, r3, r6\n"
    "shl.u64 r7, lane, #2\nstg.f32 [y + r7], r4\nstg.f32 [y + r7 + #1], r5\nstg.f32 [y + r7 + #2], r6\nexit\n";

/* A sum of a lane's columns, 32 apart, of a row whose chunks lie x by x; each column with it. */
static const char *along_y(char *text, size_t size, const char *block, const char *index, int columns,
                           const char *more) {
  int used = snprintf(text, size, ".block %s\n" BUFFERS "sreg.u32 r0, lane.x\nsreg.u32 r1, lane.y\n%s\n", block, index);
  for (int i = 0; i < columns; i++)
    used += snprintf(text + used, size - (size_t)used, "ldg.f32 r%d, [x + r2 + #%d]\n", 10 + i, 32 * i);
  used += snprintf(text + used, size - (size_t)used, "mov.f32 r3, r10\n");
  for (int i = 1; i < columns; i++)
    used += snprintf(text + used, size - (size_t)used, "add.f32 r3, r3, r%d\n", 10 + i);
  used += snprintf(text + used, size - (size_t)used, "reduce.add.f32 r4, r3\n%s", more);
  for (int i = 0; i < columns; i++)
    used += snprintf(text + used, size - (size_t)used, "mul.f32 r%d, r%d, r4\nstg.f32 [y + r2 + #%d], r%d\n", 10 + i,
                     10 + i, 32 * i, 10 + i);
  snprintf(text + used, size - (size_t)used, "exit\n");
  return text;
}

/* ---- what holds of every plan ------------------------------------------------------------------------------------ */

static void check_tree(const gpu_step *steps, size_t count) {
  int depth = 0, well = 1;
  for (size_t i = 0; i < count; i++) {
    if (nests[steps[i].op] == CLOSES) depth--;
    well &= depth >= 0 && (nests[steps[i].op] != TURNS || depth > 0);
    if (nests[steps[i].op] == OPENS) depth++;
  }
  CHECK(well);
  CHECK_EQ_U64(depth, 0);
}

static int is_access(uint8_t op) { return op == GPU_LOAD || op == GPU_STORE || op == GPU_ATOMIC; }

/* Follows how many faults wait; done[value] counts how often an access is done. */
static void follow(const gpu_plan *g, gpu_version_kind version, const gpu_step *step, uint32_t *pending,
                   uint8_t *done) {
  if (step->op == GPU_NOTE_FAULTS) {
    CHECK_EQ_U64(step->number, *pending);
    *pending = 0;
  } else if (is_access(step->op) || step->op == GPU_GROUP) {
    int is_group = step->op == GPU_GROUP;
    const gpu_access_group *group = is_group ? gpu_group_at(g, step->number) : NULL;
    gpu_check check = !is_group          ? (gpu_check)hg_gpu_place(g, version, step->value).check
                      : group->is_tested ? GPU_BRANCH
                                         : GPU_PROVEN;
    if (step->notes > 0) CHECK_EQ_U64(step->notes, *pending);
    if (step->notes > 0) *pending = 0;
    if (check == GPU_BRANCH) CHECK_EQ_U64(*pending, 0);
    *pending += check == GPU_LEAVE_OUT;
    if (!is_group) done[step->value]++;
    else if (!group->is_tested) /* else its accesses are steps, too */
      for (uint32_t i = 0; i < group->count; i++) done[group->in_order[i]]++;
  } else if (step->op == GPU_TAKE || step->op == GPU_GIVE) {
    done[step->value]++;
  } else if (step->op == GPU_SYNC || step->op == GPU_EXCHANGE || step->op == GPU_VOTE || step->op == GPU_POOL_FREE) {
    CHECK_EQ_U64(*pending, 0);
  }
  CHECK(*pending <= GPU_PENDING);
}

static void check_version(const gpu_plan *g, gpu_version_kind kind) {
  const gpu_version *version = &g->version[kind];
  const gpu_step *steps = version->steps.data;
  uint8_t *done = calloc(g->unit->insns.count, 1);
  uint32_t pending = 0;
  for (uint32_t k = 0; k < g->order.count; k++) {
    check_tree(steps + version->first[k], version->first[k + 1] - version->first[k]);
    for (uint32_t i = version->first[k]; i < version->first[k + 1]; i++) follow(g, kind, &steps[i], &pending, done);
    CHECK_EQ_U64(pending, 0); /* the block ends */
  }
  for (size_t i = version->first[g->order.count]; i < version->steps.count; i++)
    follow(g, kind, &steps[i], &pending, done);
  CHECK_EQ_U64(pending, 0); /* the last group ends */
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t e = ssa_block_at(g->unit, g->order.block[k])->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next)
      if (gpu_flags(g, e) & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) CHECK_EQ_U64(done[e], 1);
  free(done);
}

static void check_plan(const gpu_plan *g) {
  check_tree(g->kernel.data, g->kernel.count);
  for (int kind = 0; kind < GPU_VERSION_COUNT; kind++)
    if (g->version[kind].first != NULL) check_version(g, (gpu_version_kind)kind);
  CHECK(g->version[GPU_OUTSIDE].first != NULL || g->info.vector_only);
  CHECK_EQ_U64(g->version[GPU_VECTOR_VERSION].first != NULL, g->info.lanes_per_thread > 1);
}

/* ---- plans ------------------------------------------------------------------------------------------------------- */

typedef struct made {
  atlas_program *program;
  ssa_unit unit;
  gpu_plan plan;
} made;

static uint32_t count_listed(const ssa_unit *unit) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    for (uint32_t e = ssa_block_at(unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next) count++;
  return count;
}

static void make(const char *text, const hg_gpu_target *target, uint32_t flags, made *m) {
  const hg_gpu_variant variant = {.flags = flags, .threads = 256};
  m->program = parse(text);
  compile(m->program, CANONICAL, &m->unit);
  m->unit.joins_functions = m->program->observes_block != 0;
  compile_further(m->program, EXPANDED, &m->unit);
  compile_further(m->program, OPTIMISED, &m->unit);
  uint32_t listed = count_listed(&m->unit);
  CHECK_EQ_U64(hg_gpu_plan(m->program, &m->unit, target, &variant, &m->plan), HG_OK);
  if (!m->plan.shares_work) CHECK(count_listed(&m->unit) >= listed); /* in another order; loops may have grown */
  CHECK(m->plan.unrolled.count > 0 || m->plan.shares_work || count_listed(&m->unit) == listed);
  CHECK_EQ_U64(ir_ssa_check(&m->unit), HG_OK);
  check_plan(&m->plan);
}

static void release(made *m) {
  hg_gpu_plan_release(&m->plan);
  ir_ssa_release(&m->unit);
  atlas_program_release(m->program);
}

static uint32_t count_of(const gpu_plan *g, gpu_op op) {
  uint32_t count = 0;
  for (int kind = 0; kind < GPU_VERSION_COUNT; kind++)
    for (size_t i = 0; i < g->version[kind].steps.count; i++)
      count += ((const gpu_step *)g->version[kind].steps.data)[i].op == op;
  return count;
}

static void test_all(void) {
  static const char *const texts[] = {saxpy,  clamp,     gather, scattered, neighbours,
                                      shared, reduction, atomic, pool,      tile};
  static const uint32_t flags[] = {0, HG_GPU_CHECKED, HG_GPU_COUNT_STEPS, HG_GPU_LUT};
  static const hg_gpu_target *const targets[] = {&plain, &branching, &rich};
  for (size_t t = 0; t < sizeof texts / sizeof *texts; t++)
    for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
      for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        made m;
        make(texts[t], targets[i], flags[f], &m);
        if (targets[i] == &branching)
          CHECK(count_of(&m.plan, GPU_NOTE_FAULTS) + count_of(&m.plan, GPU_MAKE_EXACT) == 0);
        release(&m);
      }
}

/* What two elements at once can be made by, only a target that has it is asked for. */
static void test_targets(void) {
  made m;
  make(clamp, &plain, 0, &m);
  CHECK_EQ_U64(m.plan.vector_count, 2);
  CHECK(m.plan.vector[0].clamped == SSA_NONE && !m.plan.vector[1].rounds && !m.plan.vector[1].mends);
  CHECK_EQ_U64(m.plan.most_registers, 0);
  release(&m);
  make(clamp, &rich, 0, &m);
  CHECK(m.plan.vector[0].clamped != SSA_NONE && m.plan.vector[1].rounds);
  CHECK_EQ_U64(m.plan.most_registers, 32);
  release(&m);
  for (int is_rich = 0; is_rich < 2; is_rich++) {
    make(saxpy, is_rich ? &rich : &plain, 0, &m);
    uint32_t sum = m.plan.vector[2].given;
    CHECK_EQ_U64(m.plan.nan[sum], is_rich ? GPU_NAN_POSITIVE : GPU_NAN_LOOSE);
    CHECK(m.plan.vector[2].gives_exact);
    release(&m);
  }
  make(saxpy, &branching, 0, &m);
  CHECK_EQ_U64(m.plan.nan[m.plan.vector[2].given], GPU_NAN_CANONICAL);
  release(&m);
}

static void test_groups(void) {
  made m;
  make(neighbours, &plain, HG_GPU_CHECKED, &m);
  CHECK_EQ_U64(count_of(&m.plan, GPU_GROUP), 1);
  const gpu_access_group *group = gpu_group_at(&m.plan, 0);
  CHECK_EQ_U64(group->count, 5);
  CHECK_EQ_U64(group->run_count, 1);
  CHECK_EQ_U64(group->run[0].width, 4);
  CHECK_EQ_U64(group->joined[0], 4);
  CHECK_EQ_U64(group->joined[4], 1);
  CHECK(!group->run[0].checks_least && group->is_tested);
  release(&m);
}

/* Where the order is free: one test for both buffers' loads; in shared memory no test, each pair near its use. */
/* What the loads of a block's row are asked for ahead, `columns` a lane, by an index that code makes of the block's
 * number, r0. Some of the columns are stored. */
static gpu_access_run ahead_of(const char *index, int columns, int stored, int in_loop) {
  static char text[8192];
  int used =
      snprintf(text, sizeof text, ".block 512\n.scalar n u32\n" BUFFERS "mov.u32 r0, r253\n%smovi.f32 r9, #0\n%s",
               index, in_loop ? "movi.u32 r3, #0\nround:\n" : "");
  for (int i = 0; i < columns; i++)
    used += snprintf(text + used, sizeof text - (size_t)used, "ldg.f32 r%d, [x + r2 + #%d]\n", 10 + i, 512 * i);
  for (int i = 0; i < columns; i++)
    used += snprintf(text + used, sizeof text - (size_t)used, "add.f32 r9, r9, r%d\n", 10 + i);
  for (int i = 0; i < stored; i++)
    used += snprintf(text + used, sizeof text - (size_t)used, "stg.f32 [y + r2 + #%d], r9\n", 512 * i);
  snprintf(text + used, sizeof text - (size_t)used, "%sexit\n",
           in_loop ? "add.u32 r2, r2, n\nadd.u32 r3, r3, #1\nset.lt.u32 p0, r3, n\n@p0 bra round\n" : "");
  made m;
  make(text, &rich, 0, &m);
  gpu_access_run found = {0};
  int groups = 0;
  for (uint32_t k = 0; k < m.plan.groups_outside; k++) {
    const gpu_access_group *group = gpu_group_at(&m.plan, k);
    if (group->is_store) continue;
    groups++;
    if (found.prefetch_bytes == 0) found = group->run[0];
  }
  CHECK(groups > 0);
  release(&m);
  return found;
}

static void test_ahead(void) {
  const char *const row = "mul.u32 r1, r0, n\nadd.u32 r2, r1, blane\n";
  gpu_access_run run = ahead_of(row, 8, 8, 0);
  CHECK_EQ_U64(run.prefetch_bytes, 512 * 8 * 4);
  CHECK_EQ_U64(run.prefetch_by, (4 << 20) / run.prefetch_bytes);
  CHECK(run.prefetch_scalar != SSA_NONE);
  run = ahead_of("mul.u32 r1, r0, #8192\nshl.u32 r2, blane, #1\nadd.u32 r2, r2, r1\n", 8, 8, 0); /* every other one */
  CHECK_EQ_U64(run.prefetch_bytes, (512 * 7 + 2 * 511 + 1) * 4);
  CHECK_EQ_U64(run.prefetch_by, 8192 * ((4 << 20) / run.prefetch_bytes));
  CHECK_EQ_U64(run.prefetch_scalar, SSA_NONE);
  CHECK_EQ_U64(ahead_of(row, 8, 1, 0).prefetch_bytes, 0); /* blocks that hardly store */
  CHECK_EQ_U64(ahead_of(row, 3, 3, 0).prefetch_bytes, 0); /* that are short */
  CHECK_EQ_U64(ahead_of(row, 8, 8, 1).prefetch_bytes, 0); /* a loop's */
  CHECK_EQ_U64(ahead_of("add.u32 r2, blane, n\n", 8, 8, 0).prefetch_bytes, 0); /* all blocks read the same */
  CHECK_EQ_U64(ahead_of("mul.u32 r1, blane, #64\nadd.u32 r2, r1, r0\n", 8, 8, 0).prefetch_bytes,
               0); /* lanes far apart */
  CHECK_EQ_U64(ahead_of("xor.u32 r1, r0, #1\nadd.u32 r2, r1, blane\n", 8, 8, 0).prefetch_bytes, 0);  /* to and fro */
  const char *const end = "mul.u32 r1, r0, n\nmin.u32 r2, blane, #300\nadd.u32 r2, r2, r1\n"; /* as far as it goes */
  CHECK_EQ_U64(ahead_of(end, 8, 8, 0).prefetch_bytes, 0);
}

static void test_order(void) {
  made m;
  make(tile, &plain, 0, &m);
  const gpu_version *version = &m.plan.version[GPU_OUTSIDE];
  uint32_t pairs = 0, products = 0;
  for (uint32_t i = 0; i < version->first[m.plan.order.count]; i++) {
    const gpu_step *step = (const gpu_step *)version->steps.data + i;
    if (step->op == GPU_COMPUTE && gpu_insn(&m.plan, step->value)->type == ATLAS_f32) products++;
    if (step->op != GPU_GROUP) continue;
    const gpu_access_group *group = gpu_group_at(&m.plan, step->number);
    if (group->run_count == 2) CHECK(group->is_tested && !group->is_store && products == 0);
    if (group->is_store || group->is_tested) continue;
    CHECK_EQ_U64(group->run[0].width, 2);
    CHECK(products + 3 > 3 * pairs++); /* most of what uses the pair before stands between */
  }
  CHECK_EQ_U64(pairs, 3);
  CHECK_EQ_U64(products, 9);
  release(&m);
}

/* Two steps of 8 x 8 multiply-adds, which the program has in no good order. */
static void write_product(char *text, size_t size) {
  size_t at = (size_t)snprintf(text, size, ".block 64\n.shared s f32 1024\n.buffer y f32 out\nand.u32 r90, blane, #31\n"
                                           "shl.u32 r90, r90, #2\nmad.u32 r91, r253, #4096, r90\n");
  for (int i = 0; i < 64; i++) at += (size_t)snprintf(text + at, size - at, "movi.f32 r%d, #0\n", i);
  for (int step = 0; step < 2; step++) {
    for (int i = 0; i < 16; i++)
      at += (size_t)snprintf(text + at, size - at, "lds.f32 r%d, [s + r90 + #%d]\n", 64 + i, 64 * i + 4 * step + i % 4);
    for (int k = 0; k < 64; k++) {
      int i = k * 29 % 64;
      at += (size_t)snprintf(text + at, size - at, "fma.f32 r%d, r%d, r%d, r%d\n", i, 64 + i / 8, 72 + i % 8, i);
    }
  }
  for (int i = 0; i < 64; i++) at += (size_t)snprintf(text + at, size - at, "stg.f32 [y + r91 + #%d], r%d\n", i, i);
  snprintf(text + at, size - at, "exit\n");
}

/* Each shares a factor with the one before it, but the first of a step, which stands behind all of the step before. */
static void test_products(void) {
  static char text[16384];
  made m;
  write_product(text, sizeof text);
  make(text, &rich, 0, &m);
  uint32_t last = SSA_NONE, seen = 0, alone = 0;
  for (uint32_t e = ssa_block_at(&m.unit, m.plan.order.block[0])->first_effect; e != SSA_NONE;
       e = gpu_insn(&m.plan, e)->next) {
    if (gpu_insn(&m.plan, e)->op != ATLAS_OP_fma) continue;
    int is_second = gpu_insn(&m.plan, gpu_arg(&m.plan, e, 2))->op == ATLAS_OP_fma, shares = 0;
    CHECK_EQ_U64(is_second, seen >= 64);
    for (uint32_t i = 0; i < 4 && last != SSA_NONE; i++)
      shares |= gpu_arg(&m.plan, e, i / 2) == gpu_arg(&m.plan, last, i % 2);
    alone += !shares;
    last = e;
    seen++;
  }
  CHECK_EQ_U64(seen, 128);
  CHECK_EQ_U64(alone, 2);
  release(&m);
}

/* Loops that run several iterations at a time, and such that may not. */
static void test_loops(void) {
  static const struct {
    const char *body;
    uint32_t loops;
  } cases[] = {{"ldg.f32 r2, [x + r0]\nadd.f32 r1, r1, r2\n", 1},
               {"add.u32 r3, r0, #7\nldg.f32 r2, [x + r3 + #4]\nadd.f32 r1, r1, r2\nstg.f32 [y + r0], r1\n", 1},
               {"ldg.f32 r2, [x + r0]\nset.lt.f32 p1, r2, r1\n@p1 bra skip\nstg.f32 [y + r0], r2\nskip:\nldg.f32 r2, "
                "[x + r0 + #9]\nadd.f32 r1, r1, r2\n",
                1},
               {"add.f32 r1, r1, #1\n", 0},                                           /* no load */
               {"xor.u32 r3, r0, #1\nldg.f32 r2, [x + r3]\nadd.f32 r1, r1, r2\n", 0}, /* an index that does not grow */
               {"ldg.f32 r2, [x + r0 + #-1]\nadd.f32 r1, r1, r2\n", 0},               /* below the tested one */
               {"ldg.f32 r2, [x + r0]\nset.lt.f32 p1, r2, r1\n@p1 bra done\n", 0}};   /* another way out */
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    char text[1024];
    made m;
    snprintf(text, sizeof text,
             ".block 64\n" BUFFERS ".scalar n u32\nmov.u32 r0, blane\nmovi.f32 r1, #0\ntop:\nset.ge.u32 p0, r0, n\n"
             "@p0 bra done\n%sadd.u32 r0, r0, #64\nbra top\ndone:\nstg.f32 [y + lane], r1\nexit\n",
             cases[c].body);
    make(text, &plain, 0, &m);
    CHECK_EQ_U64(m.plan.unrolled.count > 0, cases[c].loops);
    CHECK(cases[c].loops == 0 || m.plan.counts_steps);
    release(&m);
  }
}

/* A lane holds so many values over a barrier: registers are limited where that gives a multiprocessor more blocks and
 * the values leave room, on a device that says how many it has. */
static void test_registers(void) {
  static const struct {
    uint32_t values, lanes, limit;
  } cases[] = {{9, 512, 32}, {12, 512, 64}, {36, 512, 64}, {60, 512, 0}, {36, 256, 64}, {80, 256, 128}};
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int is_rich = 0; is_rich < 2; is_rich++) {
      static char text[16384];
      size_t used =
          (size_t)snprintf(text, sizeof text, ".block %u\n" BUFFERS "mov.u32 r0, blane\n", (unsigned)cases[c].lanes);
      for (unsigned i = 0; i < cases[c].values; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "ldg.f32 r%u, [x + r0 + #%u]\n", 1 + i, 512 * i);
      used += (size_t)snprintf(text + used, sizeof text - used, "bar.sync\n");
      for (unsigned i = 0; i < cases[c].values; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "stg.f32 [y + r0 + #%u], r%u\n", 512 * i, 1 + i);
      snprintf(text + used, sizeof text - used, "exit\n");
      made m;
      make(text, is_rich ? &rich : &plain, 0, &m);
      CHECK_EQ_U64(m.plan.most_registers, is_rich ? cases[c].limit : 0);
      release(&m);
    }
}

/* How many instructions stand in blocks. */
static uint32_t count_op(const ssa_unit *unit, uint16_t op) {
  uint32_t count = 0;
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    for (uint32_t e = ssa_block_at(unit, b)->first_effect; e != SSA_NONE && !ssa_block_at(unit, b)->dead;
         e = ssa_insn_at(unit, e)->next)
      count += ssa_insn_at(unit, e)->op == op;
  return count;
}

/* What is rare of several values of a lane is there once, in a loop for each function. */
static void test_rare_rounds(void) {
  static const char *const last[] = {"exp.f32 r%d, r%d\n", "expm1.f32 r%d, r%d\n"};
  uint32_t roundings[2], divisions = 0, selections = 0;
  for (int c = 0; c < 2; c++) {
    char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   ".program p\n.block 64\n.buffer x f32 in\n.buffer y f32 out\n"
                                   "mad.u32 r0, r253, #64, blane\nldg.f32 r1, [x + r0]\n");
    for (int i = 10; i < 18; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "ldg.f32 r%d, [x + r0 + #%d]\n", i, 64 * i);
    for (int i = 10; i < 18; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, i % 4 == 3 ? last[c] : last[0], i, i);
    for (int i = 10; i < 18; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "div.f32 r%d, r%d, r1\n", i, i);
    for (int i = 11; i < 18; i++) /* what is stored first needs all of them */
      used += (size_t)snprintf(text + used, sizeof text - used, "add.f32 r10, r10, r%d\n", i);
    for (int i = 10; i < 18; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "stg.f32 [y + r0 + #%d], r%d\n", 64 * i, i);
    snprintf(text + used, sizeof text - used, "exit\n");
    made m;
    make(text, &rich, 0, &m);
    roundings[c] = count_op(&m.unit, ATLAS_OP_cvt);
    if (c == 0) selections = count_op(&m.unit, ATLAS_OP_sel);
    divisions = count_op(&m.unit, ATLAS_OP_div);
    release(&m);
  }
  CHECK_EQ_U64(divisions, 1); /* for all that the reciprocal does not do for, which takes none */
  CHECK_EQ_U64(roundings[0], 1);
  CHECK_EQ_U64(selections, 2 * (7 + 8) + 4); /* a round is given one of eight numbers, and keeps one; exp's own */
  CHECK_EQ_U64(roundings[1], 2); /* far from 0, expm1 is exp */
}

/* The loop over rare sides is given what is tested, and does not make it anew of what may be needed no more. */
static void test_rare_given(void) {
  enum { EACH = 32 };
  uint32_t subtractions[2];
  for (int subtracts = 0; subtracts < 2; subtracts++) {
    static char text[8192];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   ".program p\n.block 128\n.buffer x f32 in\n.buffer y f32 out\n"
                                   "mul.u32 r100, blane, #4\n");
    for (int i = 0; i < EACH; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "ldg.f32 r%d, [x + r100 + #%d]\n", i,
                               i / 4 * 512 + i % 4);
    used += (size_t)snprintf(text + used, sizeof text - used, "reduce.max.f32 r101, r0\n");
    for (int i = 0; i < EACH && subtracts; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "sub.f32 r%d, r%d, r101\n", i, i);
    for (int i = 0; i < EACH; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "exp.f32 r%d, r%d\n", i, i);
    for (int i = 1; i < EACH; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "add.f32 r0, r0, r%d\n", i);
    snprintf(text + used, sizeof text - used, "stg.f32 [y + blane], r0\nexit\n");
    made m;
    make(text, &rich, 0, &m);
    subtractions[subtracts] = count_op(&m.unit, ATLAS_OP_sub);
    release(&m);
  }
  CHECK_EQ_U64(subtractions[1] - subtractions[0], EACH);
}

/* The greatest of elements of bf16 is one instruction of all words, where all are halves of words that are loaded. */
static void test_words(void) {
  for (int c = 0; c < 4;
       c++) { /* as it should be; seven elements; a device without pairs; another use of one maximum */
    char text[2048];
    size_t used = (size_t)snprintf(text, sizeof text,
                                   ".program p\n.block 64\n.buffer x bf16 in\n.buffer y f32 out\n"
                                   "mul.u32 r0, blane, #8\n");
    int elements = c == 1 ? 7 : 8;
    for (int i = 0; i < 8; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "ldg.bf16 r%d, [x + r0 + #%d]\ncvt.f32.bf16 r%d, r%d\n",
                               10 + i, i, 10 + i, 10 + i);
    for (int i = 1; i < elements; i++)
      used += (size_t)snprintf(text + used, sizeof text - used, "max.f32 r%d, r%d, r%d\n", 20 + i, i == 1 ? 10 : 19 + i,
                               10 + i);
    used += (size_t)snprintf(text + used, sizeof text - used, "stg.f32 [y + blane + #64], r%d\n", c == 3 ? 22 : 17);
    snprintf(text + used, sizeof text - used, "stg.f32 [y + blane], r%d\nexit\n", 19 + elements);
    made m;
    make(text, c == 2 ? &plain : &rich, 0, &m);
    CHECK_EQ_U64(count_op(&m.unit, ATLAS_OP_max), c == 0 ? 1 : c == 1 ? 6 : c == 2 ? 7 : 7);
    CHECK_EQ_U64(count_op(&m.unit, ATLAS_OP_cvt), c == 0 ? 1 : 8); /* the last element is stored, too */
    release(&m);
  }
}

/* The fold of 96 lanes: three rows, then five exchanges; and one lane's way where lanes may have ended. */
static void test_reduction(void) {
  made m;
  make(reduction, &plain, 0, &m);
  CHECK(m.plan.can_end && m.plan.memory.uses_scratch);
  CHECK_EQ_U64(count_of(&m.plan, GPU_FOLD_ROW), 3);
  CHECK_EQ_U64(count_of(&m.plan, GPU_FOLD_ROWS), 2);
  CHECK_EQ_U64(count_of(&m.plan, GPU_FOLD_LANES_BY), 5);
  CHECK_EQ_U64(count_of(&m.plan, GPU_ELECT), 1); /* of the scan */
  CHECK_EQ_U64(count_of(&m.plan, GPU_FOLD_PRESENT), 1);
  CHECK_EQ_U64(m.plan.info.shared_bytes, 16 + 96 + 64 + 4 * 96 + 4 * 96);
  CHECK_EQ_U64(m.plan.info.dynamic_bytes, 0);
  release(&m);
  make(reduction, &(hg_gpu_target){.vector_bytes = 16, .warp_lanes = 32}, 0, &m);
  CHECK_EQ_U64(m.plan.info.dynamic_bytes, m.plan.info.shared_bytes);
  release(&m);
}

/* Barriers of the common case. */
static uint32_t barriers_of(const gpu_plan *g) {
  const gpu_step *steps = g->version[GPU_OUTSIDE].steps.data;
  uint32_t count = 0;
  int is_careful = 0;
  for (size_t i = 0; i < g->version[GPU_OUTSIDE].steps.count; i++) {
    if (steps[i].op == GPU_CAREFULLY) is_careful = 1;
    if (steps[i].op == GPU_END_EXCHANGE) is_careful = 0;
    count += steps[i].op == GPU_SYNC && !is_careful;
  }
  return count;
}

/* What stands between the reductions is computed before them: a function with branches, too. */
#define FOUR_SUMS                                                                                                      \
  BUFFERS "ldg.f32 r0, [x + lane]\nreduce.max.f32 r1, r0\nsub.f32 r0, r0, r1\nexp.f32 r2, r0\n"                       \
          "reduce.add.f32 r10, r2\nadd.f32 r3, r0, r0\nexp.f32 r3, r3\nreduce.add.f32 r11, r3\n"                      \
          "mul.f32 r4, r0, r2\nexp.f32 r4, r4\nreduce.add.f32 r12, r4\nneg.f32 r5, r0\n"                              \
          "reduce.add.f32 r13, r5\nadd.f32 r10, r10, r11\nadd.f32 r12, r12, r13\nadd.f32 r10, r10, r12\n"             \
          "stg.f32 [y + lane], r10\nexit\n"

#define OF_TWO_SIZES                                                                                                   \
  ".buffer x f64 inout\nldg.f64 r0, [x + lane]\nsts.f32 [s + blane], #1\nreduce.add.f64 r1, r0\n"                     \
  "scan.incl.u32 r2, blane\ncvt.f64.u32 r2, r2\nadd.f64 r1, r1, r2\nstg.f64 [x + lane], r1\nexit\n"

/* A second reduction that depends on the first is another exchange, and so is one behind a store; a load stands in
 * nobody's way. Few values of few warps are folded by each warp, for one barrier. */
static void test_exchanges(void) {
  static const struct {
    const char *text;
    uint32_t exchanges, barriers, bytes;
  } cases[] = {
      {".block 256\n" FOUR_SUMS, 2, 3, 64 + 4 * 256 * 4 + 2 * 256 * 4},
      {".block 512\n" FOUR_SUMS, 2, 4, 64 + 4 * 512 * 4},
      {".block 32\n" FOUR_SUMS, 2, 0, 0},
      {".block 20\n" FOUR_SUMS, 2, 0, 0},
      {".block 33\n" FOUR_SUMS, 2, 4, 64 + 4 * 64 * 4},
      {FOUR_SUMS, 2, 4, 64 + 4 * 256 * 4},
      {".block 64\n" BUFFERS "ldg.f32 r0, [x + lane]\nreduce.add.f32 r1, r0\nreduce.add.f32 r2, r1\n"
       "stg.f32 [y + lane], r2\nexit\n", 2, 2, 64 + 2 * 64 * 4},
      {".block 64\n" BUFFERS "ldg.f32 r0, [x + lane]\nreduce.add.f32 r1, r0\nldg.f32 r2, [x + lane + #1]\n"
       "reduce.max.f32 r2, r2\nadd.f32 r2, r1, r2\nstg.f32 [y + lane], r2\nexit\n", 1, 1, 64 + 2 * 2 * 64 * 4},
      {".block 64\n" BUFFERS "ldg.f32 r0, [x + lane]\nreduce.add.f32 r1, r0\nstg.f32 [y + lane], r1\n"
       "ldg.f32 r2, [y + lane + #1]\nreduce.max.f32 r2, r2\nstg.f32 [y + lane + #2], r2\nexit\n", 2, 2,
       64 + 2 * 64 * 4},
      {".block 64\n" BUFFERS "ldg.f32 r0, [x + lane]\nscan.incl.f32 r1, r0\nscan.excl.f32 r2, r0\n"
       "add.f32 r2, r1, r2\nstg.f32 [y + lane], r2\nexit\n", 1, 2, 64 + 4 * 64 * 4},
      {".block 1024\n.shared s f32 8192\n.buffer x f64 inout\nldg.f64 r0, [x + lane]\nsts.f32 [s + blane], #1\n"
       "scan.incl.f64 r1, r0\nstg.f64 [x + lane], r1\nexit\n", 1, 4, 32768 + 64 + 8 * 1024},
      {".block 1024\n.shared s f32 8192\n" OF_TWO_SIZES, 2, 4, 32768 + 64 + 8 * 1024 + 4 * 1024},
      {".block 1024\n.shared s f32 12000\n" OF_TWO_SIZES, 2, 6, 48000 + 64 + 8 * 1024},
      /* Just no room for windows beside places. */
      {".block 1024\n.shared s f32 10240\n" BUFFERS "ldg.f32 r0, [x + lane]\nsts.f32 [s + blane], r0\n"
       "reduce.add.f32 r1, r0\nscan.incl.f32 r2, r0\nadd.f32 r2, r1, r2\nstg.f32 [y + lane], r2\nexit\n", 2, 6,
       40960 + 64 + 4 * 1024},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    made m;
    make(cases[i].text, &rich, 0, &m);
    CHECK_EQ_U64(count_of(&m.plan, GPU_EXCHANGE), cases[i].exchanges);
    CHECK_EQ_U64(barriers_of(&m.plan), cases[i].barriers);
    CHECK_EQ_U64(m.plan.info.shared_bytes, cases[i].bytes);
    release(&m);
  }
}

/* Warps lie along y where neighbours do, and where lanes have nothing in common but reductions; a block that needs more
 * registers than a multiprocessor has is spread. */
static void test_along_y(void) {
  static const char *const by_x = "mad.u32 r2, r1, #4096, r0", *const by_y = "mad.u32 r2, r0, #4096, r1";
  static const struct {
    const char *block, *index, *more;
    int columns;
    uint32_t flags;
    int is_transposed;
    uint32_t sub_blocks;
  } cases[] = {
      {"32, 32", by_y, "", 3, 0, 1, 1},
      {"32, 32", by_y, "", 128, 0, 1, 8},
      {"16, 32", by_y, "", 128, 0, 1, 4},
      {"8, 32", by_y, "", 128, 0, 1, 1},
      {"32, 32", by_x, "", 3, 0, 0, 1},
      {"32, 32", "min.u32 r1, r1, #20\nmad.u32 r2, r0, #4096, r1", "", 3, 0, 1, 1},
      {"32, 32", "min.u32 r0, r0, #20\nadd.u32 r2, r0, r1", "", 3, 0, 0, 1},
      {"32, 32", "shl.u32 r0, r0, r0\nmad.u32 r2, r0, #4096, r1", "", 3, 0, 1, 1},
      {"24, 32", by_y, "", 3, 0, 0, 1},
      {"32, 16", by_y, "", 3, 0, 0, 1},
      {"16, 32, 2", by_y, "", 3, 0, 0, 1},
      {"32, 32", by_y, "bar.sync\n", 3, 0, 0, 1},
      {"32, 32", by_y, "scan.incl.f32 r4, r4\n", 3, 0, 0, 1},
      {"32, 32", by_y, "set.gt.f32 p0, r4, #0\nvote.any p0, p0\nsel.f32 r4, p0, r4, #2\n", 3, 0, 0, 1},
  };
  static char text[20000];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int is_rich = 0; is_rich < 2; is_rich++) {
      made m;
      along_y(text, sizeof text, cases[i].block, cases[i].index, cases[i].columns, cases[i].more);
      make(text, is_rich ? &rich : &plain, cases[i].flags, &m);
      int is_transposed = is_rich && cases[i].is_transposed;
      CHECK_EQ_U64((uint64_t)m.plan.is_transposed, (uint64_t)is_transposed);
      CHECK_EQ_U64(m.plan.info.sub_blocks, is_rich ? cases[i].sub_blocks : 1);
      CHECK_EQ_U64(count_of(&m.plan, GPU_SYNC_SUB_BLOCKS), (uint64_t)is_transposed);
      CHECK_EQ_U64(count_of(&m.plan, GPU_MEET_SUB_BLOCKS), (uint64_t)is_transposed);
      release(&m);
    }
}

/* Nine accesses that may fail, of which eight may wait. */
static void test_pending(void) {
  made m;
  make(scattered, &plain, HG_GPU_CHECKED, &m);
  uint32_t early = 0;
  for (size_t i = 0; i < m.plan.version[GPU_OUTSIDE].steps.count; i++)
    early += ((const gpu_step *)m.plan.version[GPU_OUTSIDE].steps.data)[i].notes == GPU_PENDING;
  CHECK_EQ_U64(early, 1);
  release(&m);
}

/* A loop of few trips is known to end; one of up to 2^32 ends as well and counts no steps, but its lanes do not wait
 * for each other in one thread. */
static void test_long_loops(void) {
  static const struct {
    const char *count;
    uint64_t steps;
    uint32_t vectors;
  } cases[] = {{"movi.u32 r0, #100", 99, 1}, {"mov.u32 r0, n", UINT32_MAX, 0}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    char text[400];
    made m;
    snprintf(text, sizeof text,
             ".buffer x f32 in\n.buffer y f32 out\n.scalar n u32\nmovi.f32 r1, #0\n%s\nagain:\nldg.f32 r2, [x + r0]\n"
             "add.f32 r1, r1, r2\nloop r0, again\nstg.f32 [y + lane], r1\nexit\n",
             cases[k].count);
    make(text, &rich, 0, &m);
    CHECK(!m.plan.counts_steps && !m.plan.can_end);
    CHECK_EQ_U64(m.plan.info.steps, cases[k].steps);
    CHECK_EQ_U64(m.plan.vector_count, cases[k].vectors);
    release(&m);
  }
}

int main(void) {
  test_all();
  test_targets();
  test_groups();
  test_ahead();
  test_order();
  test_products();
  test_registers();
  test_loops();
  test_reduction();
  test_rare_rounds();
  test_rare_given();
  test_words();
  test_exchanges();
  test_along_y();
  test_pending();
  test_long_loops();
  return check_report();
}
