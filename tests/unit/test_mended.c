/* test_mended.c - small programs that an engine once got wrong, on each engine with every instruction set that this
 * machine has, against the reference machine: all buffers and the fault, bit by bit. What they have in common is that
 * they are odd: longer programs of their kind come up once in many thousand random ones. */
#if !defined(_WIN32)
#  define _GNU_SOURCE
#endif

#include "backend/cpu/engine/detect.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "environment.h"
#include "launching.h"

#include <stdlib.h>
#if !defined(_WIN32)
#  include <unistd.h>
#endif

enum { WORDS = 256, MOST_SYMBOLS = 8 };

typedef struct example {
  const char *wrong; /* what an engine did */
  const char *text;
} example;

static const example examples[] = {
    {"never ended: a loop that all lanes leave while they wait at a block inside it",
     ".program whole\n.buffer y u16 inout\nset.ge.i64 p10, #1, #2\nvote.all p0, p10\nvote.all p13, p0\n"
     "add.u32 r67, #1, #1\nL5:\n@p13 bra L0\n@!p13 bra L1\nbra L2\nL1:\nexit\nL2:\nbra L3\nL0:\n"
     "set.ne.u64 p8, lane, #1\n@p8 bra L4\nstg.u16 [y + #1], #1\nL3:\nL4:\nloop r67, L5\nexit\n"},
    {"dropped the load of a table that faults, because nobody reads what was loaded",
     ".program table\n.buffer y u32 inout\n.const c f32 { #0, #-846, #7 }\nset.eq.f32 p3, #1, #1\nadd.u32 r63, #1, #1\n"
     "L2:\nmovi.i32 r21, #16\nand.i32 r20, r21, #3\nldc.f32 r2, [c + r20 + #-1]\nset.ne.f32 p12, r2, #-1894\n"
     "@p12 bra L0\n@p3 bra L0\nbra L1\nL0:\nset.le.f32 p6, #1, #-0\npor p3, p6, p6\nL1:\nloop r63, L2\nexit\n"},
    {"wrote a row with a gather where there is one value for all lanes, and a neighbour with it",
     ".program gather\n.buffer x i64 in\n.buffer y i64 inout\n.buffer z u64 inout\n.scalar s f32\nmul.f32 r5, #1, s\n"
     "cvt.u64.f32 r10, r5\nand.u64 r12, r10, #3\nldg.i64 r1, [x + r12]\nstg.i64 [y + lane], r1\nbar.sync\n"
     "stg.u64 [z + lane], r12\nexit\n"},
    {"never ended: the row was written over the count of rounds",
     ".program loops\n.buffer x f64 in\n.buffer y f64 inout\n.buffer z u32 inout\nadd.u32 r60, #1, #1\nL0:\n"
     "and.u32 r13, r60, #3\nldg.f64 r11, [x + r13]\nloop r60, L0\nstg.f64 [y + lane], r11\nbar.sync\n"
     "shr.u32 r35, #77, r13\nstg.u32 [z + lane + #6], r35\nexit\n"},
    {"asked lanes that do not exist about a value that is one for all lanes, and came from a row",
     ".program absent\n.buffer x f32 in\n.buffer y f32 inout\n.shared s f32 64\nldg.f32 r13, [x + lane]\n"
     "movi.u32 r33, #2\nand.u32 r24, r33, #3\nldg.f32 r2, [x + r24]\nmovi.u32 r62, #5\nL3:\n"
     "set.nan.f32 p12, #1, r2\nset.eq.f32 p15, r13, #1\n@!p12 bra L0\nbra L1\nL0:\nfloor.f32 r13, #2\n"
     "@p15 bra L2\nbra L1\nL2:\nloop r62, L3\nL1:\nsts.f32 [s + blane], r13\nbar.sync\nlds.f32 r22, [s + #0]\n"
     "stg.f32 [y + lane + #1], r2\nstg.f32 [y + lane], r22\nexit\n"},
    {"asked all lanes about a value that is one for all, where a mask said which of them are still there",
     ".program masked\n.buffer y u64 inout\n.scalar s f32\nset.eq.u64 p8, lane, #0\n@!p8 bra L0\ntrap #48\nL0:\n"
     "set.gt.f32 p6, s, #0\n@!p6 bra L1\nbra L2\nL1:\nexit\nL2:\nstg.u64 [y + lane], #1\nexit\n"},
    {"ended the process: what lies behind the list of all arguments was taken for one of an instruction without any",
     ".program classes\n.buffer y u32 inout\n.shared s u32 4\nmovi.u32 r10, #7\nmovi.u64 r61, #0\nL3:\n"
     "set.ge.u64 p1, r61, #3\n@p1 bra L2\natom.min.u32 r2, [s + blane], r10\ncls.get.u32 r10\n"
     "add.u64 r61, r61, #1\nbra L3\nL2:\nexit\n"},
    {"took the mask of a row's last lanes for their remainders",
     ".program remainders\n.buffer x i8 in\n.buffer y i8 inout\n.buffer z i64 inout\nldg.i8 r9, [x + lane]\n"
     "rem.i8 r0, r9, #82\ncvt.i64.i8 r1, r9\ndiv.i64 r2, r1, #-3\nreduce.min.i8 r14, r0\nreduce.max.i64 r15, r2\n"
     "stg.i8 [y + lane], r14\nstg.i64 [z + lane], r15\nexit\n"},
    {"took for one what lanes bring from different rounds of a loop",
     ".program rounds\n.buffer y u32 inout\ncvt.u32.u64 r0, lane\nand.u32 r3, r0, #7\nmovi.u32 r2, #0\nL1:\n"
     "set.ge.u32 p4, r2, r3\n@p4 bra L0\nadd.u32 r2, r2, #1\nbra L1\nL0:\nand.u32 r5, r2, #1\nadd.u32 r4, r5, #1\n"
     "L2:\nrem.u32 r5, r4, #97\nmirror.u32 r5, r5\nloop r4, L2\nstg.u32 [y + lane], r5\nexit\n"},
    {"took for a run of elements what lanes bring from different rounds of a loop",
     ".program runs\n.buffer x u32 in\n.buffer y u32 inout\ncvt.u32.u64 r0, lane\nand.u32 r1, r0, #7\nmov.u32 r2, r0\n"
     "movi.u32 r3, #0\nL1:\nadd.u32 r4, r2, #9\nset.ge.u32 p0, r3, r1\n@p0 bra L0\nadd.u32 r3, r3, #1\n"
     "add.u32 r2, r2, #16\nbra L1\nL0:\nadd.u32 r5, r1, #1\nmovi.u32 r7, #0\nL2:\nldg.u32 r6, [x + r4]\n"
     "add.u32 r7, r7, r6\nadd.u32 r4, r4, #1\nloop r5, L2\nstg.u32 [y + lane], r7\nexit\n"},
    {"ended the process: an index below 0 that a displacement brings into range, in a vector with two rows",
     ".program rows\n.buffer y u32 inout\n.shared s u32 128\nsts.u32 [s + blane], blane\nbar.sync\n"
     "shr.u32 r2, blane, #3\ncvt.i32.u32 r2, r2\nsub.i32 r2, r2, #7\nlds.u32 r3, [s + r2 + #7]\n"
     "stg.u32 [y + lane], r3\nexit\n"},
    {"ended the process: the same in a loop, where the index is a number",
     ".program numbers\n.buffer x u32 in\n.buffer y u32 inout\n.scalar n u32\n.shared s u32 64\n"
     "sts.u32 [s + blane], blane\nbar.sync\nshr.u32 r2, blane, #4\ncvt.i32.u32 r2, r2\nsub.i32 r2, r2, #7\n"
     "movi.u32 r9, #0\nand.u32 r4, n, #3\nadd.u32 r4, r4, #2\nL0:\nldg.u32 r8, [x + r4]\nlds.u32 r3, [s + r2 + #7]\n"
     "add.u32 r9, r9, r3\nadd.u32 r9, r9, r8\nloop r4, L0\nstg.u32 [y + lane], r9\nexit\n"},
    {"ended the process: a store by one lane of [s + blane - 3] went 16 GB too far, in the straight code of a block",
     ".program below\n.block 16\n.buffer y u32 inout\n.shared s u32 16\nsub.u32 r2, blane, #3\n"
     "set.ne.u32 p0, blane, #5\n@p0 bra L0\nsts.u32 [s + r2], blane\nL0:\nbar.sync\nlds.u32 r3, [s + #2]\n"
     "stg.u32 [y + lane], r3\nexit\n"},
    {"took an index of 2^64 - 1 and a displacement of 1 for element 0, in the straight code of a block",
     ".program wrapped\n.block 16\n.buffer y u32 inout\n.shared s u32 16\nsts.u32 [s + blane], #7\nbar.sync\n"
     "movi.u64 r2, #0xffffffffffffffff\nlds.u32 r3, [s + r2 + #1]\nstg.u32 [y + lane], r3\nexit\n"},
    {"ended the process: a load of one element for all lanes of a block that none of them comes to",
     ".program none\n.block 64\n.buffer y f32 inout\n.scalar n u32\n.shared t f32 16\nset.lt.u32 p0, blane, #16\n@!p0 "
     "bra L0\n"
     "sts.f32 [t + blane], #1\nL0:\nbar.sync\nmovi.f32 r1, #2\nldg.f32 r3, [y + lane]\nset.ne.f32 p0, r3, #1\n"
     "@!p0 bra L1\nmov.u32 r4, n\nset.lt.u32 p1, r4, #16\n@!p1 bra L1\nlds.f32 r1, [t + r4]\nL1:\n"
     "stg.f32 [y + lane], r1\nexit\n"},
    {"took an infinity that had been widened from 16 bits for a number, and the NaN of its difference for none",
     ".program widened\n.buffer x u16 in\n.buffer y f32 inout\nldg.u16 r0, [x + lane]\nand.u16 r0, r0, #0x8000\n"
     "or.u16 r0, r0, #0x7f80\nbitcast.bf16.u16 r1, r0\ncvt.f32.bf16 r2, r1\nset.lt.f32 p0, r2, #0\n"
     "sel.f32 r3, p0, r2, #1\nmul.f32 r4, r3, #2\nsub.f32 r5, r4, r3\nstg.f32 [y + lane], r5\nexit\n"},
    {"gathered nothing: a mask that came from a row was subtracted from itself",
     ".program gathered\n.buffer x f32 in\n.buffer y f32 inout\n.buffer z f32 inout\n.shared s f32 64\n"
     "ldg.f32 r2, [x + lane]\nset.ge.f32 p0, #1, r2\nldg.f32 r10, [y + lane]\nset.eq.u32 p5, r254, #2\n@!p5 bra L0\n"
     "@!p0 bra L2\nldg.f32 r10, [y + #3]\nbra L2\nL0:\nsts.f32 [s + blane], #3\nbar.sync\nadd.u32 r7, blane, #2\n"
     "rem.u32 r7, r7, #4\nlds.f32 r10, [s + r7]\nbar.sync\nL2:\nstg.f32 [z + lane], r10\nexit\n"},
    {"divided straight into the first piece of a result, where the other pieces were to have the quotient too",
     ".program pieces\n.buffer x u32 in\n.buffer y u64 inout\nldg.u32 r7, [x + lane]\nand.u32 r6, r7, #1\n"
     "mul.f64 r5, #0x0000000000000001, #0.5\nadd.u32 r6, r6, #1\nL1:\nabs.f64 r0, r5\n"
     "set.eq.f64 p0, r0, #0xa67e8f9d43e85039\n@p0 bra L0\ndiv.f64 r5, r5, #0x0000000000000001\n"
     "stg.u64 [y + lane + #50], #1\nL0:\nbitcast.u64.f64 r1, r5\nsub.u64 r2, r1, #1\n"
     "add.f64 r5, #0x0000000000000001, #0x0000000000000001\nloop r6, L1\nstg.u64 [y + lane + #100], r2\nexit\n"},
    {"went on with lanes that wait for their trap, as the branch there stood between others whose lanes differ",
     ".program waits\n.buffer y u32 inout\n.scalar n u32\n.shared s u32 2\nset.ge.u32 p1, n, #76\n@p1 bra L0\n"
     "and.u64 r9, lane, #1\nset.lt.u64 p0, r9, #1\n@p0 bra L1\natom.and.u32 _, [s + #1], #1\nL1:\nbra L2\nL0:\n"
     "@!p1 bra L3\ntrap #66\nL2:\nL3:\nstg.u32 [y + lane], #1\nexit\n"},
    {"sent all lanes through a loop that those were never to come to who wait for their trap behind it",
     ".program beside\n.buffer y u32 inout\n.scalar n u32\nset.lt.u32 p5, n, #3163235722\n@p5 bra L0\n"
     "movi.u32 r1, #3\nL1:\nstg.u32 [y + lane + #60], r1\nloop r1, L1\nbra L2\nL0:\nset.ne.u64 p3, lane, #7\n"
     "@p3 bra L3\nstg.u32 [y + #7], #1\nL2:\nL3:\nstg.u32 [y + lane + #118], #1\ntrap #17\n"},
    {"never ended: of a loop that leads only to another loop and a trap it took one block for an end",
     ".program ends\n.buffer x u32 in\n.buffer y u32 inout\nmul.u64 r1, lane, #3\nmovi.u32 r2, #1\nL1:\n"
     "set.ge.u64 p0, r1, #20\n@p0 bra L0\nldg.u32 r3, [x + r1]\nmax.u32 r2, r2, r3\nadd.u64 r1, r1, #7\nbra L1\n"
     "L0:\nmovi.u32 r4, #3\nL2:\natom.add.u32 _, [y + lane], r2\nloop r4, L2\ntrap #5\n"},
    {"compared memory with half of every second lane's number, whose register also held what was added to the first's",
     ".program numbered\n.buffer y u64 inout\nstg.u64 [y + lane], lane\natom.cas.u64 r1, [y + lane], lane, #77\n"
     "stg.u64 [y + lane + #64], r1\natom.cas.u64 r2, [y + lane], #77, lane\nstg.u64 [y + lane + #128], r2\nexit\n"},
    {"ran nothing: lanes waited where the program begins, in a mask that nothing had written",
     ".program rotate\n.buffer x u32 in\n.buffer y u32 out\n.scalar s u32\nldg.u32 r0, [x + lane]\n"
     "and.u32 r9, s, #3\nadd.u32 r9, r9, #1\nmovi.u32 r10, #0\nmovi.u32 r11, #0\nmovi.u32 r12, #0\n"
     "movi.u32 r13, #0\nmovi.u32 r14, #0\nmovi.u32 r15, #0\nmovi.u32 r16, #0\nmovi.u32 r17, #0\nmovi.u32 r18, #0\n"
     "movi.u32 r19, #0\nmovi.u32 r20, #0\nmovi.u32 r21, #0\nmovi.u32 r22, #0\nmovi.u32 r23, #0\nmovi.u32 r24, #0\n"
     "movi.u32 r25, #0\nmovi.u32 r26, #0\nmovi.u32 r27, #0\nmovi.u32 r28, #0\nmovi.u32 r29, #0\nmovi.u32 r30, #0\n"
     "movi.u32 r31, #0\nmovi.u32 r32, #0\nmovi.u32 r33, #0\nmovi.u32 r34, #0\nmovi.u32 r35, #0\nmovi.u32 r36, #0\n"
     "movi.u32 r37, #0\nmovi.u32 r38, #0\nmovi.u32 r39, #0\nmovi.u32 r40, #0\nmovi.u32 r41, #0\nmovi.u32 r42, #0\n"
     "movi.u32 r43, #0\nmovi.u32 r44, #0\nmovi.u32 r45, #0\nmovi.u32 r46, #0\nmovi.u32 r47, #0\nmovi.u32 r48, #0\n"
     "movi.u32 r49, #0\nL0:\nmov.u32 r10, r11\nmov.u32 r11, r12\nmov.u32 r12, r13\nmov.u32 r13, r14\n"
     "mov.u32 r14, r15\nmov.u32 r15, r16\nmov.u32 r16, r17\nmov.u32 r17, r18\nmov.u32 r18, r19\nmov.u32 r19, r20\n"
     "mov.u32 r20, r21\nmov.u32 r21, r22\nmov.u32 r22, r23\nmov.u32 r23, r24\nmov.u32 r24, r25\nmov.u32 r25, r26\n"
     "mov.u32 r26, r27\nmov.u32 r27, r28\nmov.u32 r28, r29\nmov.u32 r29, r30\nmov.u32 r30, r31\nmov.u32 r31, r32\n"
     "mov.u32 r32, r33\nmov.u32 r33, r34\nmov.u32 r34, r35\nmov.u32 r35, r36\nmov.u32 r36, r37\nmov.u32 r37, r38\n"
     "mov.u32 r38, r39\nmov.u32 r39, r40\nmov.u32 r40, r41\nmov.u32 r41, r42\nmov.u32 r42, r43\nmov.u32 r43, r44\n"
     "mov.u32 r44, r45\nmov.u32 r45, r46\nmov.u32 r46, r47\nmov.u32 r47, r48\nmov.u32 r48, r49\nmov.u32 r49, r0\n"
     "loop r9, L0\nmovi.u32 r1, #7\nmad.u32 r1, r1, #31, r10\nmad.u32 r1, r1, #31, r13\nmad.u32 r1, r1, #31, r16\n"
     "mad.u32 r1, r1, #31, r19\nmad.u32 r1, r1, #31, r22\nmad.u32 r1, r1, #31, r25\nmad.u32 r1, r1, #31, r28\n"
     "mad.u32 r1, r1, #31, r31\nmad.u32 r1, r1, #31, r34\nmad.u32 r1, r1, #31, r37\nmad.u32 r1, r1, #31, r40\n"
     "mad.u32 r1, r1, #31, r43\nmad.u32 r1, r1, #31, r46\nmad.u32 r1, r1, #31, r49\nmad.u32 r1, r1, #31, r49\n"
     "stg.u32 [y + lane], r1\nexit\n"},
    {"took whatever was in a register for an index: it had forgotten that only slow paths make it",
     ".program late\n.block 64\n.buffer x u32 in\n.buffer y u64 inout\n.buffer z u32 inout\n"
     ".shared s u32 64\nmul.u32 r1, r253, #64\nadd.u32 r1, r1, #5\nldg.u32 r6, [x + lane]\nsts.u32 [s + blane], r6\n"
     "min.u32 r1, r1, #9000\nmax.u32 r1, r1, #0\nbar.sync\nadd.u32 r2, blane, r1\nlds.u32 r3, [s + blane]\n"
     "and.u32 r3, r3, #255\nldg.u32 r7, [z + r2]\nldg.u32 r4, [x + r3]\nadd.u32 r4, r4, r7\n"
     "cvt.u64.u32 r5, r4\nstg.u64 [y + r2], r5\nbar.sync\nstg.u32 [z + lane], r4\nexit\n"},
};

/* New memory, and some behind it, is full of ones, so that whoever reads what was never written shows it. */
static void *allocate_ones(void *user, size_t size) {
  enum { BEHIND = 64 };
  (void)user;
  void *memory = malloc(size + BEHIND);
  if (memory != NULL) memset(memory, 0xff, size + BEHIND);
  return memory;
}

static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}

static const hg_allocator allocator = {.size = sizeof allocator, .allocate = allocate_ones, .release = release};

/* Buffers of WORDS 64-bit words, one after the other, and the fault. */
typedef struct result {
  uint64_t words[MOST_SYMBOLS][WORDS];
  hg_fault fault;
} result;

static void fill(result *r) {
  uint64_t random = 1;
  memset(r, 0, sizeof *r);
  for (size_t i = 0; i < (size_t)MOST_SYMBOLS * WORDS; i++) {
    random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    r->words[i / WORDS][i % WORDS] = random;
  }
  r->words[0][1] = UINT64_C(0x7fc000007fc00000); /* as f32, elements 2 and 3 are no numbers */
}

/* Every buffer of the program is bound, and every scalar is 5. */
static hg_status launch(hg_kernel *kernel, const atlas_program *program, hg_launch_desc desc, result *r) {
  hg_binding bindings[MOST_SYMBOLS];
  hg_scalar scalars[MOST_SYMBOLS];
  size_t count = 0;
  const atlas_symbol *symbols = atlas_program_symbols(program, &count);
  hg_launch_report report = {.size = sizeof report};
  for (uint32_t i = 0; i < count; i++) {
    if (symbols[i].kind == ATLAS_SYMBOL_BUFFER)
      bindings[desc.binding_count++] = (hg_binding){.slot = i, .buffer = buffer_of(sizeof r->words[i], r->words[i])};
    if (symbols[i].kind == ATLAS_SYMBOL_SCALAR)
      scalars[desc.scalar_count++] = (hg_scalar){.slot = i, .type = symbols[i].type, .bits = bits_of(5)};
  }
  desc.bindings = bindings;
  desc.scalars = scalars;
  hg_status status = hg_launch(kernel, &desc, &report);
  r->fault = report.fault;
  for (size_t i = 0; i < desc.binding_count; i++) {
    uint32_t slot = bindings[i].slot;
    CHECK_EQ_U64(hg_buffer_read(bindings[i].buffer, 0, r->words[slot], sizeof r->words[slot]), HG_OK);
    hg_buffer_release(bindings[i].buffer);
  }
  return status;
}

static void run(const example *e, const char *engine, const char *isa, const hg_launch_desc *shape, result *r) {
  hg_executor_desc desc = {.size = sizeof desc, .allocator = &allocator};
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  fill(r);
  set("HOLOGRAM_CPU_ENGINE", engine);
  set("HOLOGRAM_CPU_ISA", isa);
  CHECK_EQ_U64(hg_executor_create(&desc, &executor), HG_OK);
  hg_status status = atlas_parse(&allocator, e->text, strlen(e->text), NULL, &program);
  if (status == HG_OK) status = hg_kernel_create(executor, program, &kernel);
  if (status == HG_OK) status = launch(kernel, program, *shape, r);
  if (!check_note(status == HG_OK || status == HG_FAULT)) printf("%s\n", hg_last_error());
  hg_kernel_release(kernel);
  atlas_program_release(program);
  hg_executor_release(executor);
}

static void compare(const example *e, const char *engine, cpu_isa isa, const hg_launch_desc *shape,
                    const result *right) {
  static result r;
  run(e, engine, hg_cpu_isa_name(isa), shape, &r);
  const hg_fault *a = &r.fault, *b = &right->fault;
  int same_fault = a->kind == b->kind && a->lane == b->lane && a->instruction == b->instruction &&
                   a->index == b->index && a->extent == b->extent;
  int same = memcmp(r.words, right->words, sizeof r.words) == 0;
  if (!check_note(same && same_fault))
    printf("%s %s, %u blocks of %u, other %s: an engine once %s\n", engine, hg_cpu_isa_name(isa), shape->grid[0],
           shape->block[0], same ? "faults" : "values", e->wrong);
}

/* The lanes of a block that the text says, or so many. */
static uint32_t block_of(const example *e, uint32_t lanes) {
  const char *said = strstr(e->text, ".block ");
  return said == NULL ? lanes : (uint32_t)strtoul(said + 7, NULL, 10);
}

int main(void) {
  static const uint32_t shapes[][2] = {{1, 1}, {3, 1}, {1, 20}, {5, 9}, {2, 16}}; /* blocks, lanes of each */
  static result right;
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  set("HOLOGRAM_NUM_THREADS", "1");
#if !defined(_WIN32)
  alarm(60); /* where a program does not end */
#endif
  for (size_t i = 0; i < COUNT(examples) * COUNT(shapes); i++) {
    const example *e = &examples[i / COUNT(shapes)];
    const uint32_t *shape = shapes[i % COUNT(shapes)];
    hg_launch_desc desc = {.grid = {shape[0]}, .block = {block_of(e, shape[1])}};
    run(e, "interp", "", &desc, &right);
    for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++) {
      compare(e, "tile", (cpu_isa)isa, &desc, &right);
      if (hg_native_target((cpu_isa)isa) != NULL) compare(e, "native", (cpu_isa)isa, &desc, &right);
    }
  }
  return check_report();
}
