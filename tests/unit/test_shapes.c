/* test_shapes.c - launches of many tiles and of parts of tiles, in blocks of any size, by one thread and by several, on
 * the tile and native engines with every instruction set that this machine has, against the reference machine: buffers
 * and faults, bit by bit. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif

#include "backend/cpu/engine/detect.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "environment.h"
#include "launching.h"
#include "shard.h"

#include <stdlib.h>

#if !defined(_WIN32)
#  include <sys/mman.h>
#  include <sys/wait.h>
#  include <unistd.h>
#endif

/* Two buffers x and y of 32-bit elements, y inout. */
typedef struct example {
  const char *name, *text;
  uint32_t grid[3], block[3]; /* 0: launches of many shapes */
  int has_blocks;             /* as the text says: linear launches only */
  uint32_t shorter;           /* elements that the buffers lack at the end */
  int in_place;               /* x and y are one buffer */
} example;

static const example examples[] = {
    {.name = "chain",
     .text = ".program chain\n.buffer x f32 in\n.buffer y f32 inout\n"
             "ldg.f32 r0, [x + lane]\nldg.f32 r1, [y + lane]\nfma.f32 r2, r0, r1, r0\nmul.f32 r2, r2, r1\n"
             "relu.f32 r2, r2\nstg.f32 [y + lane], r2\nexit\n"},
    {.name = "in place",
     .text = ".program in_place\n.buffer x f32 in\n.buffer y f32 inout\n"
             "ldg.f32 r0, [x + lane]\nadd.f32 r1, r0, #1\nstg.f32 [y + lane], r1\nmul.f32 r2, r1, r0\n"
             "stg.f32 [y + lane], r2\nexit\n",
     .in_place = 1},
    {.name = "past the end",
     .text = ".program past\n.buffer x u32 in\n.buffer y u32 inout\n"
             "ldg.u32 r0, [x + lane]\nadd.u32 r0, r0, #1\nstg.u32 [y + lane], r0\nexit\n",
     .shorter = 3},
    {.name = "neighbours under a mask",
     .text = ".program neighbours\n.buffer x u32 in\n.buffer y u32 inout\n"
             "cvt.u32.u64 r0, lane\nand.u32 r1, r0, #5\nset.eq.u32 p0, r1, #0\n@p0 bra done\nxor.u32 r2, r0, #3\n"
             "ldg.u32 r3, [x + r2 + #-1]\nldg.u32 r4, [x + r0]\nadd.u32 r3, r3, r4\nstg.u32 [y + r0], r3\n"
             "done:\nexit\n",
     .shorter = 1},
    {.name = "function",
     .text = ".program function\n.buffer x f32 in\n.buffer y f32 inout\n"
             "ldg.f32 r0, [x + lane]\ngelu.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n"},
    {.name = "loop that lanes leave",
     .text = ".program leave\n.buffer x u32 in\n.buffer y u32 inout\n"
             "ldg.u32 r0, [x + lane]\nand.u32 r0, r0, #31\nmovi.u32 r1, #0\nagain:\nset.ge.u32 p0, r1, r0\n"
             "@p0 bra done\nadd.u32 r1, r1, #3\nbra again\ndone:\nstg.u32 [y + lane], r1\nexit\n"},
    {.name = "loop that lanes leave and that counts",
     .text = ".program counts\n.buffer x u32 in\n.buffer y u32 inout\n"
             "ldg.u32 r0, [x + lane]\nldg.u32 r1, [y + lane]\nmul.u32 r2, r1, #77\nmovi.u32 r3, #0\nmovi.u32 r6, #37\n"
             "again:\nmul.u32 r0, r0, #1664525\nxor.u32 r4, r0, r2\nmul.u32 r5, r4, r4\nadd.u32 r0, r0, r1\n"
             "shr.u32 r4, r4, #27\nset.eq.u32 p0, r4, #7\n@p0 bra done\nxor.u32 r0, r0, r5\nadd.u32 r3, r3, #1\n"
             "loop r6, again\ndone:\nadd.u32 r3, r3, r0\nmovi.u32 r6, #5\nmore:\nadd.u32 r3, r3, r6\n"
             "set.ne.u32 p0, r6, #9\nadd.u32 r6, r6, #1\n@p0 bra more\nstg.u32 [y + lane], r3\nexit\n"},
    {.name = "trap",
     .text = ".program trap\n.buffer x u32 in\n.buffer y u32 inout\n"
             "ldg.u32 r0, [x + lane]\nand.u32 r1, r0, #63\nset.ne.u32 p0, r1, #7\n@p0 bra fine\ntrap #9\nfine:\n"
             "stg.u32 [y + lane], r1\nexit\n"},
    {.name = "blocks that are no whole vectors",
     .has_blocks = 1,
     .text = ".program odd_blocks\n.block 100\n.buffer x u32 in\n.buffer y u32 inout\n"
             "sreg.u32 r0, lane.x\nldg.u32 r1, [x + lane]\nldg.u32 r2, [x + lane + #-1]\nadd.u32 r0, r0, r1\n"
             "add.u32 r0, r0, r2\nstg.u32 [y + lane], r0\nexit\n"},
    {.name = "quotients and remainders",
     .text = ".program quotients\n.buffer x u32 in\n.buffer y i32 inout\n"
             "cvt.u32.u64 r0, lane\nldg.u32 r1, [x + lane]\nshr.u32 r1, r1, #21\nand.u32 r1, r1, #7\n"
             "div.u32 r2, r0, r1\nrem.u32 r3, r0, r1\nldg.i32 r4, [y + lane]\nsub.u32 r5, r1, #4\n"
             "bitcast.i32.u32 r5, r5\ndiv.i32 r6, r4, r5\nrem.i32 r7, r4, r5\nxor.u32 r2, r2, r3\n"
             "bitcast.i32.u32 r2, r2\nadd.i32 r6, r6, r2\nxor.i32 r6, r6, r7\nstg.i32 [y + lane], r6\nexit\n"},
    {.name = "histogram",
     .text = ".program histogram\n.buffer x u32 in\n.buffer y u32 inout\n"
             "ldg.u32 r0, [x + lane]\nand.u32 r0, r0, #31\natom.add.u32 _, [y + r0], #1\n"
             "atom.max.u32 _, [y + #32], r0\nexit\n"},
    {.name = "blocks",
     .has_blocks = 1,
     .text = ".program blocks\n.block 96\n.buffer x f32 in\n.buffer y f32 inout\n.shared s f32 96\n"
             "ldg.f32 r0, [x + lane]\nsts.f32 [s + r252], r0\nbar.sync\nreduce.add.f32 r1, r0\nscan.incl.f32 r2, r0\n"
             "sub.u32 r3, #95, r252\nlds.f32 r4, [s + r3]\nadd.f32 r1, r1, r4\nfma.f32 r1, r1, r2, r4\n"
             "stg.f32 [y + lane], r1\nexit\n"},
    {.name = "blocks of two dimensions",
     .text = ".program planes\n.buffer x f32 in\n.buffer y f32 inout\n"
             "sreg.u32 r0, lane.y\nsreg.u32 r1, block.x\nsreg.u32 r2, global.x\nmad.u32 r3, r0, r1, r2\n"
             "cvt.f32.u32 r4, r3\nldg.f32 r5, [x + lane]\nfma.f32 r4, r5, r4, r5\nreduce.max.f32 r6, r4\n"
             "add.f32 r4, r4, r6\nstg.f32 [y + lane], r4\nexit\n",
     .grid = {7, 5, 2},
     .block = {13, 6, 3}},
};

typedef struct result {
  uint32_t *y;
  hg_launch_report report;
} result;

/* Lanes in blocks of `block`, which divides them; 0: a linear launch. */
typedef struct shape {
  uint64_t lanes;
  uint32_t block;
} shape;

static uint64_t words_of(uint64_t lanes) { return lanes + 64; }

static uint32_t *contents(uint64_t count, uint32_t seed) {
  uint32_t *values = malloc(count * sizeof *values);
  for (uint64_t i = 0; i < count; i++) {
    seed = seed * 1664525 + 1013904223;
    values[i] = (seed >> 9 & 0xbfffff) | 0x3f000000 | (seed & 0x80000000u); /* as f32: 0.5 to 4 */
  }
  return values;
}

static void describe(const example *e, shape s, hg_launch_desc *launch) {
  launch->lanes = e->grid[0] == 0 && s.block == 0 ? s.lanes : 0;
  if (launch->lanes != 0) return;
  memcpy(launch->grid, e->grid, sizeof launch->grid);
  memcpy(launch->block, e->block, sizeof launch->block);
  if (s.block == 0) return;
  launch->grid[0] = (uint32_t)(s.lanes / s.block);
  launch->block[0] = s.block;
}

static result run(const example *e, const char *engine, const char *isa, shape s) {
  result r = {.report = {.size = sizeof r.report}};
  hg_executor_desc desc = {.size = sizeof desc};
  set("HOLOGRAM_CPU_ENGINE", engine);
  set("HOLOGRAM_CPU_ISA", isa);
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  hg_kernel *kernel = kernel_of(e->text);
  uint64_t count = words_of(s.lanes), bound = (s.lanes < 40 ? 40 : s.lanes) - e->shorter;
  uint32_t *x = contents(count, 1);
  r.y = contents(count, 2);
  hg_buffer *buffers[2] = {buffer_of(count * 4, x), buffer_of(count * 4, r.y)};
  hg_binding bindings[2] = {{.name = "x", .buffer = buffers[e->in_place], .byte_count = bound * 4},
                            {.name = "y", .buffer = buffers[1], .byte_count = bound * 4}};
  hg_launch_desc launch = {.size = sizeof launch, .bindings = bindings, .binding_count = 2};
  describe(e, s, &launch);
  hg_status status = hg_launch(kernel, &launch, &r.report);
  CHECK(status == HG_OK || status == HG_FAULT);
  CHECK_EQ_U64(hg_buffer_read(buffers[1], 0, r.y, count * 4), HG_OK);
  free(x);
  hg_buffer_release(buffers[0]);
  hg_buffer_release(buffers[1]);
  hg_kernel_release(kernel);
  hg_executor_release(executor);
  return r;
}

/* Of the fault all but the pointers. */
static void compare(const example *e, const char *engine, const char *isa, shape s, const uint32_t *y,
                    const hg_fault *b) {
  result r = run(e, engine, isa, s);
  const hg_fault *a = &r.report.fault;
  int same = memcmp(r.y, y, words_of(s.lanes) * 4) == 0;
  int same_fault = a->kind == b->kind && a->lane == b->lane && a->instruction == b->instruction &&
                   a->index == b->index && a->extent == b->extent && a->code == b->code &&
                   strcmp(a->buffer, b->buffer) == 0;
  CHECK(strncmp(r.report.engine, engine, strlen(engine)) == 0);
  if (!check_note(same && same_fault))
    printf("%s, %llu lanes in blocks of %u, %s %s: other %s than the reference machine\n", e->name,
           (unsigned long long)s.lanes, s.block, engine, isa, same ? "faults" : "values");
  free(r.y);
}

/* Every engine that there is, with every instruction set; machine code also with stores that pass the caches. */
static void compare_all(const example *e, shape s, const uint32_t *y, const hg_fault *fault) {
  for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++) {
    compare(e, "tile", hg_cpu_isa_name((cpu_isa)isa), s, y, fault);
    if (hg_native_target((cpu_isa)isa) == NULL) continue;
    compare(e, "native", hg_cpu_isa_name((cpu_isa)isa), s, y, fault);
    set("HOLOGRAM_STREAM_BYTES", "0");
    compare(e, "native", hg_cpu_isa_name((cpu_isa)isa), s, y, fault);
    set("HOLOGRAM_STREAM_BYTES", "1000000000000");
  }
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

/* In blocks of any size the same comes out as in a linear launch. */
static void check_lanes(const example *e, uint64_t lanes, const uint32_t *blocks, size_t block_count) {
  if (!in_shard()) return;
  result expected = run(e, "interp", "", (shape){lanes, 0});
  for (size_t i = 0; i < block_count; i++)
    if (lanes % (blocks[i] > 0 ? blocks[i] : 1) == 0)
      compare_all(e, (shape){lanes, blocks[i]}, expected.y, &expected.report.fault);
  free(expected.y);
}

static void test_shapes(void) {
  static const uint32_t blocks[] = {0, 1, 7, 32, 64, 255, 256, 1024};
  static const uint64_t lengths[] = {1, 2, 63, 64, 65, 300, 1023, 1024, 1025, 5000, 60001};
  static const uint64_t multiples[] = {7, 32, 7 * 64, 255 * 7, 3 * 1024, 7 * 1024, 255 * 32};
  for (size_t i = 0; i < COUNT(examples); i++) {
    const example *e = &examples[i];
    uint64_t lanes = 1;
    for (int d = 0; d < 3; d++) lanes *= (uint64_t)e->grid[d] * e->block[d];
    if (lanes > 0) check_lanes(e, lanes, blocks, 1);
    for (size_t n = 0; lanes == 0 && n < COUNT(lengths); n++) check_lanes(e, lengths[n], blocks, 1);
    if (lanes > 0 || e->has_blocks) continue;
    for (size_t n = 0; n < COUNT(multiples); n++) check_lanes(e, multiples[n], blocks, COUNT(blocks));
  }
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

#if !defined(_WIN32)
enum { MANY_LANES = SANITIZED ? 30021 : 600021 }; /* enough to be worth several threads; a multiple of 3 */

/* What one thread did, and how many checks it made; shared by processes. */
typedef struct common {
  unsigned long passed, failed;
  int is_done[COUNT(examples)];
  hg_fault fault[COUNT(examples)];
  uint32_t y[COUNT(examples)][MANY_LANES + 64];
} common;

/* The first process keeps what the tile engine gave. */
static void check_many(common *c) {
  for (size_t i = 0; i < COUNT(examples); i++) {
    const example *e = &examples[i];
    if (e->grid[0] != 0) continue;
    shape s = {MANY_LANES, 0};
    if (!c->is_done[i]) {
      result first = run(e, "tile", "", s);
      memcpy(c->y[i], first.y, words_of(s.lanes) * 4);
      c->fault[i] = first.report.fault;
      c->is_done[i] = 1;
      free(first.y);
    }
    compare_all(e, s, c->y[i], &c->fault[i]);
    s.block = 3;
    if (!e->has_blocks) compare_all(e, s, c->y[i], &c->fault[i]);
  }
}

/* The number of threads is asked for once a process. */
static void test_threads(void) {
  static const char *const threads[] = {"1", "2", "8"};
  common *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(c != MAP_FAILED);
  for (size_t i = 0; c != MAP_FAILED && i < COUNT(threads); i++) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      alarm(600);
      check_passed = check_failed = 0;
      set("HOLOGRAM_NUM_THREADS", threads[i]);
      check_many(c);
      fflush(stdout);
      c->passed += check_passed;
      c->failed += check_failed;
      _exit(0);
    }
    int status = -1;
    while (child > 0 && waitpid(child, &status, 0) < 0) continue;
    CHECK(child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  if (c == MAP_FAILED) return;
  check_passed += c->passed;
  check_failed += c->failed;
  munmap(c, sizeof *c);
}
#else
static void test_threads(void) {}
#endif

int main(void) {
  test_threads(); /* before this process has threads itself */
  set("HOLOGRAM_NUM_THREADS", "4");
  test_shapes();
  return check_report();
}
