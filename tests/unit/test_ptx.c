/* test_ptx.c - the PTX emitter as a function: what it decides about a program, the argument block and grid of launches,
 * what fault records say, the same text every time, and memory that runs out. The text itself: tests/ptx. */
#include "check.h"
#include "counted.h"

#include "atlas/program.h"
#include "backend/cuda/ptx/emit_ptx.h"

#include <stdlib.h>

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static const char saxpy[] = ".program saxpy\n.buffer x f32 in\n.buffer y f32 inout\n.scalar a f32\n"
                            "ldg.f32 r0, [x + lane]\nldg.f32 r1, [y + lane]\nfma.f32 r0, r0, a, r1\n"
                            "stg.f32 [y + lane], r0\nexit\n";

/* Reads 3 elements further than its lane, and one wherever the index says. */
static const char reaching[] = ".program reaching\n.buffer x f16 in\n.buffer y f16 out\n.buffer i u32 in\n"
                               "ldg.f16 r0, [x + lane + #8]\nldg.u32 r2, [i + lane]\nldg.f16 r1, [x + r2]\n"
                               "add.f16 r0, r0, r1\nstg.f16 [y + lane], r0\nexit\n";

static const char counted[] = ".program counted\n.buffer y u32 out\nmovi.u32 r0, #0\nmovi.u32 r1, #100\nagain:\n"
                              "mul.u32 r0, r0, #5\nadd.u32 r0, r0, #3\nloop r1, again\nstg.u32 [y + lane], r0\nexit\n";

static const char everything[] =
    ".program everything\n.block 64\n.buffer x f32 in\n.buffer y f32 out\n.scalar a f32\n.shared tile f32 64\n"
    ".const c f32 { #1.5, #0x1.8p3, #1e-7 }\n.table t 70 in\n.pool heap\n"
    "ldg.f32 r0, [x + lane]\nsts.f32 [tile + blane], r0\nbar.sync\ncvt.u32.f32 r1, r0\nagain:\n"
    "mul.f32 r0, r0, a\nloop r1, again\nexp.f32 r0, r0\nldc.f32 r2, [c + r1]\nadd.f32 r0, r0, r2\n"
    "reduce.add.f32 r3, r0\nscan.excl.f32 r3, r3\npool.alloc.u64 r4, heap, #16\nmovi.u32 r5, #1\n"
    "pool.store.f32 [heap + r4], r3\nldg.u8 r7, [r5 : r1]\ncvt.f32.u8 r8, r7\nadd.f32 r0, r0, r8\n"
    "res.accum.i64 r5, #1\nphase.adv.u32 #3\nstg.f32 [y + lane], r0\nexit\n";

typedef struct entry {
  atlas_program *program;
  hg_array text;
  hg_gpu_info info;
} entry;

static entry emit_for(uint32_t capability, const char *source, uint32_t flags) {
  entry e = {.text = {.element_size = 1}};
  hg_allocator allocator;
  const hg_ptx_options options = {.capability = capability, .variant.flags = flags, .name = "test",
                                  .variant.threads = 256};
  hg_allocator_resolve(NULL, &allocator);
  if (!check_note(atlas_parse(NULL, source, strlen(source), "test", &e.program) == HG_OK &&
                  hg_ptx_compile(&allocator, e.program, &options, &e.text, &e.info) == HG_OK)) {
    printf("%s\n%s", hg_last_error(), source);
    exit(check_report());
  }
  return e;
}

static entry emit(const char *source, uint32_t flags) { return emit_for(0, source, flags); }

static void release(entry *e) {
  hg_allocator allocator;
  hg_allocator_resolve(NULL, &allocator);
  hg_array_release(&allocator, &e->text);
  atlas_program_release(e->program);
}

static int says(const entry *e, const char *part) { return strstr(e->text.data, part) != NULL; }

/* ---- decisions --------------------------------------------------------------------------------------------------- */

static void test_vector_only(void) {
  entry e = emit(saxpy, 0), checked = emit(saxpy, HG_GPU_CHECKED);
  CHECK_EQ_U64(e.info.vector_only, 1);
  CHECK_EQ_U64(e.info.lanes_per_thread, 4);
  CHECK(says(&e, "ld.global.v4.b32") && says(&e, "st.global.v4.b32") && !says(&e, "call"));
  CHECK_EQ_U64(checked.info.vector_only, 0);
  CHECK_EQ_U64(checked.info.lanes_per_thread, 1);
  CHECK(!says(&checked, ".v4") && says(&checked, "test_sites"));
  release(&e);
  release(&checked);
}

static void test_mixed(void) {
  entry e = emit(reaching, 0);
  CHECK_EQ_U64(e.info.vector_only, 0);
  CHECK(e.info.lanes_per_thread > 1);
  CHECK_EQ_U64(e.info.parameter[0].reach, 9);
  CHECK_EQ_U64(e.info.parameter[1].reach, 1);
  CHECK(says(&e, "ld.global.nc.v2.b32") || says(&e, "ld.global.nc.v4.b32"));
  release(&e);
}

static unsigned count_of(const entry *e, const char *part) {
  unsigned n = 0;
  for (const char *at = e->text.data; (at = strstr(at, part)) != NULL; at++) n++;
  return n;
}

/* Four rows of eight neighbours, in whatever order the canonical form has them. */
static void test_many_neighbours(void) {
  char source[2048];
  size_t used = (size_t)snprintf(source, sizeof source,
                                 ".program many\n.block 32\n.buffer x f16 in\n.buffer y f16 out\n"
                                 "shl.u32 r0, blane, #3\nmovi.f16 r1, #0\n");
  for (int i = 0; i < 32; i++)
    used += (size_t)snprintf(source + used, sizeof source - used, "ldg.f16 r2, [x + r0 + #%d]\nmax.f16 r1, r1, r2\n",
                             i % 8 + i / 8 * 256);
  snprintf(source + used, sizeof source - used, "stg.f16 [y + blane], r1\nexit\n");
  entry e = emit(source, 0);
  CHECK_EQ_U64(count_of(&e, "ld.global.nc.v4.b32"), 4);
  release(&e);
}

/* A store rounds what it alone asks for; what is also computed with is rounded where it stands. */
static void test_late_rounding(void) {
  static const char source[] = ".program late\n.buffer x f16 in\n.buffer y f16 out\n.buffer z f16 out\n"
                               "ldg.f16 r0, [x + lane]\nadd.f16 r0, r0, r0\nmul.f16 r1, r0, r0\n"
                               "stg.f16 [y + lane], r0\nstg.f16 [z + lane], r1\nexit\n";
  entry old = emit_for(75, source, 0), now = emit_for(80, source, 0);
  CHECK(!says(&old, "cvt.rn.f16x2.f32"));
  unsigned lanes = now.info.lanes_per_thread;
  CHECK_EQ_U64(count_of(&now, "cvt.rn.f16x2.f32"), lanes); /* of two stores */
  CHECK_EQ_U64(count_of(&now, "cvt.rn.f16.f32"), lanes);   /* r0 for r1 */
  release(&old);
  release(&now);
}

/* What is widened only to be kept between bounds is kept before, two by two, if the bounds are numbers of its type. */
static void test_kept(void) {
#define KEPT(low, high, more)                                                                                  \
  ".program kept\n.buffer x f16 in\n.buffer y f32 out\nldg.f16 r0, [x + lane]\ncvt.f32.f16 r1, r0\n"          \
  "max.f32 r2, r1, #" low "\nmin.f32 r2, r2, #" high "\n" more "mul.f32 r2, r2, #3\nstg.f32 [y + lane], r2\nexit\n"
  static const struct {
    uint32_t capability;
    const char *text, *has, *lacks;
  } cases[] = {
      {90, KEPT("-0.5", "2", ""), "min.NaN.f16x2", "xorsign"},
      {90, KEPT("-2", "2", ""), "min.NaN.xorsign.abs.f16x2", "min.NaN.f16x2"},
      {90, KEPT("-0.1", "2", ""), "max.NaN.f32", "f16x2"},
      {90, KEPT("-0.5", "2", "add.f32 r2, r2, r1\n"), "max.NaN.f32", "f16x2"},
      {80, KEPT("-0.5", "2", ""), "max.NaN.f32", "f16x2"},
  };
#undef KEPT
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    entry e = emit_for(cases[i].capability, cases[i].text, 0);
    if (!check_note(says(&e, cases[i].has) && !says(&e, cases[i].lacks))) printf("case %u\n", (unsigned)i);
    release(&e);
  }
}

/* A NaN's bits that nothing depends on need not be those of the canonical one. */
static void test_nan_bits(void) {
  entry blind = emit(".program p\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\nadd.f32 r0, r0, #1\n"
                     "bitcast.u32.f32 r1, r0\nshl.u32 r1, r1, #9\nbitcast.f32.u32 r1, r1\nmul.f32 r0, r0, r1\n"
                     "add.f32 r0, r0, #1\nset.lt.f32 p0, r0, #3\nsel.f32 r0, p0, r0, #4\n"
                     "stg.f32 [y + lane], r0\nexit\n", 0);
  entry seen = emit(".program p\n.buffer x f32 in\n.buffer y u32 out\nldg.f32 r0, [x + lane]\nadd.f32 r0, r0, #1\n"
                    "bitcast.u32.f32 r1, r0\nshl.u32 r1, r1, #9\nstg.u32 [y + lane], r1\nexit\n", 0);
  CHECK(!says(&blind, "min.s32") && says(&seen, "min.s32"));
  release(&blind);
  release(&seen);
}

/* min, max and relu of f16 and bf16 where the machine has them: nothing is converted, and the store makes NaNs
 * canonical two by two. */
static void test_narrow_extremes(void) {
  static const char source[] = ".program extremes\n.buffer x f16 in\n.buffer y f16 out\nldg.f16 r0, [x + lane]\n"
                               "max.f16 r1, r0, #1.0\nmin.f16 r1, r0, r1\nrelu.f16 r1, r1\nstg.f16 [y + lane], r1\n"
                               "exit\n";
  entry old = emit_for(75, source, 0), now = emit_for(80, source, 0);
  CHECK(!says(&old, "max.NaN") && says(&old, "cvt.f32.f16") && says(&old, "cvt.rn.f16.f32"));
  CHECK(says(&now, "max.NaN.f16") && says(&now, "min.NaN.f16") && !says(&now, "cvt.f32") && !says(&now, "cvt.rn"));
  CHECK(says(&now, "set.nan.u32.f16x2") && !says(&now, "setp.nan"));
  release(&old);
  release(&now);
}

/* ptxas takes what holds for all numbers of a sign for true, of NaNs, too. */
static void test_comparisons_with_constants(void) {
#define COMPARE(body) ".program compare\n.buffer x f32 in\n.buffer y u32 out\nldg.f32 r0, [x + lane]\n" body \
                      "sel.u32 r1, p0, #1, #2\nstg.u32 [y + lane], r1\nexit\n"
  entry of_abs = emit(COMPARE("abs.f32 r0, r0\nset.ge.f32 p0, r0, #0\n"), 0);
  entry above = emit(COMPARE("abs.f32 r0, r0\nset.gt.f32 p0, r0, #-1\n"), 0);
  entry below = emit(COMPARE("abs.f32 r0, r0\nneg.f32 r0, r0\nset.lt.f32 p0, r0, #1\n"), 0);
  entry between = emit(COMPARE("abs.f32 r0, r0\nset.le.f32 p0, r0, #1\n"), 0);
  CHECK(says(&of_abs, "setp.gtu.f32") && !says(&of_abs, "setp.le.f32"));
  CHECK(says(&above, "setp.geu.f32") && !says(&above, "setp.lt.f32"));
  CHECK(says(&below, "setp.geu.f32") && !says(&below, "setp.lt.f32"));
  CHECK(says(&between, "setp.le.f32"));
  release(&of_abs);
  release(&above);
  release(&below);
  release(&between);
#undef COMPARE
}

static void test_everything(void) {
  entry e = emit(everything, 0), again = emit(everything, 0);
  CHECK_EQ_U64(e.info.observes_block, 1);
  CHECK_EQ_U64(e.info.max_threads, 64);
  CHECK_EQ_U64(e.info.steps, UINT32_MAX); /* a counter of 32 bits, from wherever */
  CHECK_EQ_U64(e.info.table_symbol, 5);
  CHECK_EQ_U64(e.info.uses_resonance, 1);
  CHECK_EQ_U64(e.info.uses_phase_advance, 1);
  CHECK(e.info.shared_bytes >= 64 * 4);
  CHECK(e.info.argument_bytes <= HG_GPU_ARGUMENT_BYTES);
  CHECK_STR((const char *)again.text.data, (const char *)e.text.data);
  CHECK(memcmp(&e.info, &again.info, sizeof e.info) == 0);
  release(&e);
  release(&again);
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct packed {
  uint64_t words[HG_GPU_ARGUMENT_BYTES / 8];
  hg_gpu_launch shape;
  uint32_t missing;
} packed;

static atlas_span span_at(uintptr_t address, uint64_t bytes) { return (atlas_span){(uint8_t *)address, bytes}; }

static packed pack(const entry *e, atlas_launch launch, const atlas_argument *arguments) {
  const hg_gpu_places places = {.fault_record = 0x111, .fault_flag = 0x222};
  packed p = {.missing = 0};
  if (launch.step_limit == 0) launch.step_limit = HG_DEFAULT_STEP_LIMIT;
  launch.arguments = arguments;
  p.missing = hg_gpu_pack(e->program, &e->info, &launch, &places, p.words, &p.shape);
  return p;
}

static uint64_t word_at(const packed *p, uint32_t offset) { return p->words[offset / 8]; }

static void test_pack(void) {
  entry e = emit(saxpy, 0);
  atlas_argument arguments[3] = {
      {.span = span_at(0x1000, 4000)}, {.span = span_at(0x2000, 4004)}, {.bits = 0x40490fdb}};
  packed p = pack(&e, (atlas_launch){.lanes = 1000}, arguments);
  const hg_gpu_header *header = (const hg_gpu_header *)(const void *)p.words;
  CHECK_EQ_U64(p.missing, 0);
  CHECK_EQ_U64(p.shape.blocks, 2);
  CHECK_EQ_U64(p.shape.threads, 128);
  CHECK_EQ_U64(header->block_lanes, 512);
  CHECK_EQ_U64(header->lanes, 1000);
  CHECK_EQ_U64(header->fault_record, 0x111);
  CHECK_EQ_U64(word_at(&p, e.info.parameter[0].offset), 0x1000);
  CHECK_EQ_U64(word_at(&p, e.info.parameter[1].offset + 8), 1001);
  CHECK_EQ_U64(word_at(&p, e.info.parameter[2].offset), 0x40490fdb);
  CHECK_EQ_U64(pack(&e, (atlas_launch){.lanes = 1001}, arguments).missing, HG_GPU_CHECKED); /* x is too short */
  CHECK_EQ_U64(pack(&e, (atlas_launch){.grid = {5, 2, 1}, .block = {100, 1, 1}}, arguments).missing, 0);
  CHECK_EQ_U64(pack(&e, (atlas_launch){.lanes = 1025}, arguments).shape.blocks, 3); /* the last lane has its own */
  arguments[0].span = span_at(0x1004, 4000);
  CHECK_EQ_U64(pack(&e, (atlas_launch){.lanes = 1000}, arguments).missing, HG_GPU_CHECKED); /* not at 16 bytes */
  release(&e);
}

/* Blocks whose part of a buffer two loops go over: no more at a time than find it in half of the cache. */
static void test_blocks_at_a_time(void) {
#define TWO_LOOPS(second)                                                                                      \
  ".program two\n.block 256\n.buffer x f32 in\n.buffer y f32 out\n.scalar n u32\nmul.u32 r0, r253, n\n"         \
  "add.u32 r1, r0, n\nadd.u32 r0, r0, blane\nmovi.f32 r2, #0\nmov.u32 r3, r0\n"                               \
  "a:\nset.ge.u32 p0, r3, r1\n@p0 bra b\nldg.f32 r4, [x + r3]\nadd.f32 r2, r2, r4\nadd.u32 r3, r3, #256\n"    \
  "bra a\nb:\n" second "\nc:\nset.ge.u32 p0, r3, r1\n@p0 bra d\nldg.f32 r4, [x + r3]\nmul.f32 r4, r4, r2\n" \
  "stg.f32 [y + r3], r4\nadd.u32 r3, r3, #256\nbra c\nd:\nexit\n"
  const uint64_t bytes = UINT64_C(1) << 30;
  entry e = emit_for(90, TWO_LOOPS("mov.u32 r3, r0"), 0), other = emit_for(90, TWO_LOOPS("add.u32 r3, r0, n"), 0);
  atlas_argument arguments[3] = {{.span = span_at(1 << 20, bytes)}, {.span = span_at(UINT64_C(1) << 40, bytes)}};
  CHECK(e.info.parameter[0].again && !e.info.parameter[1].again && !other.info.parameter[0].again);
  e.info.multiprocessor_shared_bytes = 228 << 10;
  e.info.block_shared_bytes = 227 << 10;
  const struct {
    uint32_t rows, multiprocessors, cache_megabytes, blocks; /* at a time; 0: as many as there is room for */
  } cases[] = {{16384, 132, 50, 3}, {16384, 0, 50, 0}, {16384, 132, 0, 0}, {4096, 132, 50, 0}, {65536, 132, 50, 0},
               {16384, 128, 64, 4}, {16384, 64, 32, 4}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    e.info.multiprocessors = cases[i].multiprocessors;
    e.info.cache_bytes = (uint64_t)cases[i].cache_megabytes << 20;
    packed p = pack(&e, (atlas_launch){.grid = {cases[i].rows, 1, 1}, .block = {256, 1, 1}}, arguments);
    uint32_t each = e.info.shared_bytes + p.shape.idle_bytes + 1024;
    CHECK_EQ_U64(p.shape.idle_bytes > 0 ? (228 << 10) / each : 0, cases[i].blocks);
  }
  release(&e);
  release(&other);
}

/* Stores wait for the functions behind them: neighbours are one access, and a test for rare cases serves all. */
static void test_waiting_stores(void) {
  static const char source[] = ".program waits\n.block 64\n.buffer x f32 in\n.buffer y f32 out\nmul.u32 r0, blane, #4\n"
                               "ldg.f32 r1, [x + r0]\nldg.f32 r2, [x + r0 + #1]\nldg.f32 r3, [x + r0 + #2]\n"
                               "ldg.f32 r4, [x + r0 + #3]\nexp.f32 r1, r1\nstg.f32 [y + r0], r1\nexp.f32 r2, r2\n"
                               "stg.f32 [y + r0 + #1], r2\nexp.f32 r3, r3\nstg.f32 [y + r0 + #2], r3\n"
                               "exp.f32 r4, r4\nstg.f32 [y + r0 + #3], r4\nexit\n";
  entry e = emit_for(90, source, 0);
  CHECK_EQ_U64(count_of(&e, "st.global.v4.b32"), 1);
  CHECK_EQ_U64(count_of(&e, "0f4265521E"), 4 + 1); /* where exp's rare cases begin: in front of all, and in the loop */
  release(&e);
}

/* Long programs have several packs a thread, where the device has enough to do all the same. */
static void test_packs(void) {
  static const char source[] = ".program long\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\n"
                               "gelu.f32 r0, r0\ngelu.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n";
  const uint64_t most = UINT64_C(1) << 30, turn = UINT64_C(100) * 2048 * 4; /* a pack for each thread of 100 */
  static const char middle[] = ".program middle\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\n"
                               "gelu.tanh.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n";
  static const char brisk[] = ".program brisk\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\n"
                              "tanh.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n";
  static const char at_once[] = "setp.gt.and.u32"; /* of two packs, loaded at once, whether there is the second */
  entry e = emit_for(90, source, 0), brief = emit_for(90, saxpy, 0), two = emit_for(90, middle, 0),
        shorter = emit_for(90, brisk, 0);
  atlas_argument arguments[2] = {{.span = span_at(1 << 20, most)}, {.span = span_at(UINT64_C(1) << 40, most)}};
  CHECK_EQ_U64(e.info.packs, 8);
  CHECK_EQ_U64(brief.info.packs, 1);
  CHECK_EQ_U64(two.info.packs, 2);
  CHECK_EQ_U64(shorter.info.packs, 2);
  CHECK(says(&shorter, at_once) && !says(&two, at_once) && !says(&brief, at_once)); /* `middle` has long rare ways */
  CHECK(says(&e, ".maxntid 128, 1, 1\n.maxnreg 32\n") && says(&brief, ".maxnreg 32\n"));
  const struct {
    uint32_t multiprocessors;
    uint64_t lanes, block_lanes, blocks;
  } cases[] = {{0, 8 * 512, 8 * 512, 1},         {0, 8 * 512 + 1, 8 * 512, 2},
               {0, 8 * 512 + 4, 8 * 512, 2},     {100, 8 * 512, 512, 8},
               {100, 12 * turn, 3 * 512, turn / 512 * 4}, {100, 12 * turn - 512, 2 * 512, turn / 512 * 6},
               {100, 99 * turn, 8 * 512, (turn / 512 * 99 + 7) / 8}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    e.info.multiprocessors = cases[i].multiprocessors;
    packed p = pack(&e, (atlas_launch){.lanes = cases[i].lanes}, arguments);
    CHECK_EQ_U64(p.missing, 0);
    CHECK_EQ_U64(((const hg_gpu_header *)(const void *)p.words)->block_lanes, cases[i].block_lanes);
    CHECK_EQ_U64(p.shape.blocks, cases[i].blocks);
  }
  release(&e);
  release(&brief);
  release(&two);
  release(&shorter);
}

static void test_steps(void) {
  entry e = emit(counted, 0), counts = emit(counted, HG_GPU_COUNT_STEPS);
  atlas_argument argument = {.span = span_at(0x1000, 4000)};
  CHECK_EQ_U64(e.info.steps, 99);
  CHECK_EQ_U64(counts.info.steps, UINT64_MAX);
  CHECK_EQ_U64(pack(&e, (atlas_launch){.lanes = 10, .step_limit = 98}, &argument).missing, HG_GPU_COUNT_STEPS);
  CHECK_EQ_U64(pack(&e, (atlas_launch){.lanes = 10, .step_limit = 99}, &argument).missing, 0);
  CHECK_EQ_U64(pack(&counts, (atlas_launch){.lanes = 10, .step_limit = 1}, &argument).missing, 0);
  release(&e);
  release(&counts);
}

static void test_large_grids(void) {
  static const char source[] = ".program blocks\n.buffer y u32 out\nmov.u32 r0, r253\nstg.u32 [y + #0], r0\nexit\n";
  entry e = emit(source, 0);
  atlas_argument argument = {.span = span_at(0x1000, 4000)};
  packed p = pack(&e, (atlas_launch){.grid = {INT32_MAX, 3, 1}, .block = {2, 1, 1}}, &argument);
  const hg_gpu_header *header = (const hg_gpu_header *)(const void *)p.words;
  uint64_t blocks = p.shape.blocks;
  while (p.shape.left > 0) {
    hg_gpu_next(p.words, &p.shape);
    CHECK_EQ_U64(header->first, blocks);
    blocks += p.shape.blocks;
  }
  CHECK_EQ_U64(blocks, UINT64_C(3) * INT32_MAX);
  CHECK_EQ_U64(header->is_flat, 0);
  p.shape.left = 7;
  ((hg_gpu_header *)(void *)p.words)->block_lanes = 4096;
  hg_gpu_next(p.words, &p.shape);
  CHECK_EQ_U64(header->first_lane, blocks * 4096);
  p = pack(&e, (atlas_launch){.grid = {1, 1, 1}, .block = {16, 32, 1}}, &argument);
  CHECK_EQ_U64(p.missing, HG_GPU_LARGER_BLOCKS);
  CHECK_EQ_U64(p.shape.threads, 512);
  release(&e);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

static void test_faults(void) {
  entry e = emit(saxpy, 0);
  const atlas_launch launch = {.step_limit = 77};
  hg_gpu_fault record = hg_gpu_fault_none();
  hg_fault fault;
  hg_gpu_fault_read(e.program, &launch, &record, &fault);
  CHECK_EQ_U64(fault.kind, HG_FAULT_NONE);
  record = (hg_gpu_fault){.lane = 5, .kind = HG_FAULT_OUT_OF_BOUNDS, .instruction = 1, .symbol = 1,
                          .index_type = ATLAS_u64, .index = UINT64_MAX, .displacement = 2, .extent = 9};
  hg_gpu_fault_read(e.program, &launch, &record, &fault);
  CHECK_EQ_U64(fault.lane, 5);
  CHECK_EQ_U64(fault.line, 6);
  CHECK_STR(fault.buffer, "y");
  CHECK_EQ_U64(fault.index, INT64_MAX); /* the sum is beyond */
  CHECK_EQ_U64(fault.extent, 9);
  record = (hg_gpu_fault){.kind = HG_FAULT_OUT_OF_BOUNDS, .symbol = HG_GPU_NO_SYMBOL - 1, .index_type = ATLAS_i16,
                          .index = 0xffff, .displacement = -2};
  hg_gpu_fault_read(e.program, &launch, &record, &fault);
  CHECK_STR(fault.buffer, "phi");
  CHECK(fault.index == -3);
  record = (hg_gpu_fault){.kind = HG_FAULT_STEP_LIMIT, .symbol = HG_GPU_NO_SYMBOL, .index_type = ATLAS_i64};
  hg_gpu_fault_read(e.program, &launch, &record, &fault);
  CHECK_STR(fault.buffer, "");
  CHECK_EQ_U64(fault.index, 77);
  release(&e);
}

/* ---- memory that runs out ---------------------------------------------------------------------------------------- */

/* The program with its own allocator: the compiler takes memory from there too. */
static hg_status emit_with(counter *c) {
  const hg_allocator allocator = counting(c);
  const hg_ptx_options options = {.name = "test"};
  hg_array text = {.element_size = 1};
  hg_gpu_info info;
  atlas_program *program = NULL;
  hg_status status = atlas_parse(&allocator, everything, sizeof everything - 1, "test", &program);
  if (status == HG_OK) status = hg_ptx_compile(&allocator, program, &options, &text, &info);
  hg_array_release(&allocator, &text);
  atlas_program_release(program);
  return status;
}

static void test_out_of_memory(void) {
  counter all = {.fail_at = -1};
  CHECK_EQ_U64(emit_with(&all), HG_OK);
  CHECK_EQ_U64(all.live, 0);
  for (long n = 0; n < all.allocations; n++) {
    counter c = {.fail_at = n};
    hg_status status = emit_with(&c);
    CHECK(status == HG_OUT_OF_MEMORY || status == HG_OK); /* nothing was lost where the array was an empty one */
    CHECK_EQ_U64(c.live, 0);
  }
}

int main(void) {
  test_vector_only();
  test_mixed();
  test_many_neighbours();
  test_late_rounding();
  test_kept();
  test_nan_bits();
  test_narrow_extremes();
  test_comparisons_with_constants();
  test_everything();
  test_pack();
  test_blocks_at_a_time();
  test_waiting_stores();
  test_packs();
  test_steps();
  test_large_grids();
  test_faults();
  test_out_of_memory();
  return check_report();
}
