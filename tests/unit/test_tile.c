/* test_tile.c - launches of many tiles and of parts of tiles, by several threads and with every instruction set that
 * this machine has, against the reference machine: buffers and faults, bit by bit. */
#if !defined(_WIN32)
#  define _DEFAULT_SOURCE 1 /* setenv */
#endif

#include "backend/cpu/detect.h"
#include "launching.h"

#include <stdlib.h>

/* Two buffers x and y of 32-bit elements, y inout. */
typedef struct example {
  const char *name, *text;
  uint32_t grid[3], block[3]; /* 0: linear launches of many lengths */
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
    {.name = "trap",
     .text = ".program trap\n.buffer x u32 in\n.buffer y u32 inout\n"
             "ldg.u32 r0, [x + lane]\nand.u32 r1, r0, #63\nset.ne.u32 p0, r1, #7\n@p0 bra fine\ntrap #9\nfine:\n"
             "stg.u32 [y + lane], r1\nexit\n"},
    {.name = "histogram",
     .text = ".program histogram\n.buffer x u32 in\n.buffer y u32 inout\n"
             "ldg.u32 r0, [x + lane]\nand.u32 r0, r0, #31\natom.add.u32 _, [y + r0], #1\n"
             "atom.max.u32 _, [y + #32], r0\nexit\n"},
    {.name = "blocks",
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

static uint32_t *contents(uint64_t count, uint32_t seed) {
  uint32_t *values = malloc((count + 64) * sizeof *values);
  for (uint64_t i = 0; i < count + 64; i++) {
    seed = seed * 1664525 + 1013904223;
    values[i] = (seed >> 9 & 0xbfffff) | 0x3f000000 | (seed & 0x80000000u); /* as f32: 0.5 to 4 */
  }
  return values;
}

static void set(const char *name, const char *value) {
#if defined(_WIN32)
  _putenv_s(name, value);
#else
  setenv(name, value, 1);
#endif
}

static result run(const example *e, const char *engine, const char *isa, uint64_t lanes) {
  result r = {.report = {.size = sizeof r.report}};
  hg_executor_desc desc = {.size = sizeof desc};
  set("HOLOGRAM_CPU_ENGINE", engine);
  if (isa != NULL) set("HOLOGRAM_CPU_ISA", isa);
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  hg_kernel *kernel = kernel_of(e->text);
  uint64_t count = lanes + 64, bound = (lanes < 40 ? 40 : lanes) - e->shorter;
  uint32_t *x = contents(count, 1);
  r.y = contents(count, 2);
  hg_buffer *buffers[2] = {buffer_of(count * 4, x), buffer_of(count * 4, r.y)};
  hg_binding bindings[2] = {{.name = "x", .buffer = buffers[e->in_place], .byte_count = bound * 4},
                            {.name = "y", .buffer = buffers[1], .byte_count = bound * 4}};
  hg_launch_desc launch = {.size = sizeof launch, .bindings = bindings, .binding_count = 2};
  memcpy(launch.grid, e->grid, sizeof launch.grid);
  memcpy(launch.block, e->block, sizeof launch.block);
  if (e->grid[0] == 0) launch.lanes = lanes;
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

static void compare(const example *e, const char *isa, uint64_t lanes, const result *expected) {
  result r = run(e, "tile", isa, lanes);
  const hg_fault *a = &r.report.fault, *b = &expected->report.fault;
  int same = memcmp(r.y, expected->y, (lanes + 64) * 4) == 0;
  int same_fault = a->kind == b->kind && a->lane == b->lane && a->instruction == b->instruction &&
                   a->index == b->index && a->extent == b->extent && a->code == b->code &&
                   strcmp(a->buffer, b->buffer) == 0;
  if (!check_note(same && same_fault))
    printf("%s, %llu lanes, %s: other %s than the reference machine\n", e->name, (unsigned long long)lanes, isa,
           same ? "faults" : "values");
  free(r.y);
}

static void check_example(const example *e, uint64_t lanes) {
  result expected = run(e, "interp", NULL, lanes);
  for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++)
    compare(e, hg_cpu_isa_name((cpu_isa)isa), lanes, &expected);
  free(expected.y);
}

int main(void) {
  static const uint64_t lengths[] = {1, 2, 63, 64, 65, 300, 1023, 1024, 1025, 5000, 60001};
  set("HOLOGRAM_NUM_THREADS", "4");
  for (size_t i = 0; i < COUNT(examples); i++) {
    const example *e = &examples[i];
    uint64_t lanes = 1;
    for (int d = 0; d < 3; d++) lanes *= (uint64_t)e->grid[d] * e->block[d];
    if (lanes > 0) check_example(e, lanes);
    for (size_t n = 0; lanes == 0 && n < COUNT(lengths); n++) check_example(e, lengths[n]);
  }
  return check_report();
}
