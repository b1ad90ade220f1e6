/* test_ptx_machine.c - the machine that runs PTX in the double of libcuda: clusters of blocks, the races it finds. */
#include "../sim/ptx_machine.h"
#include "check.h"

enum { THREADS = 32, CLUSTER = 4, BLOCKS = 2 * CLUSTER };

/* %r0: the thread, %r1: the block's rank, %a0: where the thread's result goes, %r2: its place for the block's own word,
 * %r3: the sum, %p0: it is the first thread. Places: a word of each thread of each block of the cluster. */
#define ENTRY(clusters, body)                                                                                       \
  ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry test(.param .b64 out)\n.maxntid 32, 1, 1\n" clusters \
  "{\n.reg .pred %p<2>;\n.reg .b32 %r<12>;\n.reg .b64 %a<3>;\n.shared .align 16 .b8 hg_places[512];\n"              \
  "mov.u32 %r0, %tid.x;\nmov.u32 %r1, %cluster_ctarank;\nsetp.eq.u32 %p0, %r0, 0;\n"                               \
  "ld.param.b64 %a0, [out];\nmov.u32 %r4, %ctaid.x;\nmad.lo.u32 %r5, %r4, 32, %r0;\nmul.wide.u32 %a1, %r5, 4;\n"   \
  "add.u64 %a0, %a0, %a1;\nmad.lo.u32 %r6, %r1, 32, %r0;\nshl.b32 %r6, %r6, 2;\nmov.u32 %r2, hg_places;\n"          \
  "add.u32 %r2, %r2, %r6;\nmov.u32 %r3, 0;\n" body "st.global.u32 [%a0], %r3;\nret;\n}\n"
#define CLUSTERED(body) ENTRY(".reqnctapercluster 4, 1, 1\n", body)
#define ARRIVE "barrier.cluster.arrive.release.aligned;\n"
#define WAIT "barrier.cluster.wait.acquire.aligned;\n"
#define MEET ARRIVE WAIT
#define BEGIN "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
#define SEND_TO(rank) "mapa.shared::cluster.u32 %r7, %r2, " #rank ";\nst.shared::cluster.u32 [%r7], %r5;\n"
#define SEND SEND_TO(0) SEND_TO(1) SEND_TO(2) SEND_TO(3)
#define SUM                                                                                                        \
  "mov.u32 %r8, hg_places;\nmad.lo.u32 %r8, %r0, 4, %r8;\nld.shared.u32 %r9, [%r8];\nadd.u32 %r3, %r3, %r9;\n"     \
  "ld.shared.u32 %r9, [%r8+128];\nadd.u32 %r3, %r3, %r9;\nld.shared.u32 %r9, [%r8+256];\nadd.u32 %r3, %r3, %r9;\n" \
  "ld.shared::cluster.u32 %r9, [%r8+384];\nadd.u32 %r3, %r3, %r9;\n"
/* Reads the word that the next block's thread left in its own memory. */
#define FETCH                                                                                                          \
  "add.u32 %r7, %r1, 1;\nand.b32 %r7, %r7, 3;\nmov.u32 %r8, hg_places;\nmad.lo.u32 %r8, %r7, 128, %r8;\n"             \
  "mad.lo.u32 %r8, %r0, 4, %r8;\nmapa.shared::cluster.u32 %r8, %r8, %r7;\nld.shared::cluster.u32 %r3, [%r8];\n"
#define ONLY(rank, what) "setp.eq.u32 %p1, %r1, " #rank ";\n@%p1 " what

static uint32_t results[BLOCKS * THREADS];

static uint8_t *reach(void *user, uint64_t address, size_t byte_count) {
  (void)user;
  uint64_t first = (uint64_t)(uintptr_t)results;
  return address >= first && address - first + byte_count <= sizeof results ? (uint8_t *)results + (address - first)
                                                                           : NULL;
}

/* What is wrong, or "". */
static const char *run(const char *text, uint32_t grid) {
  static char why[200];
  ptx_module *module = ptx_parse(text, why, sizeof why);
  if (module == NULL) return why;
  uint64_t out = (uint64_t)(uintptr_t)results;
  uint8_t parameters[8];
  memcpy(parameters, &out, sizeof parameters);
  memset(results, 0xff, sizeof results);
  const ptx_launch launch = {.grid = {grid, 1, 1}, .block = {THREADS, 1, 1}, .parameters = parameters, .reach = reach};
  if (ptx_run(module, "test", &launch, why, sizeof why)) why[0] = '\0';
  ptx_release(module);
  return why;
}

static void check_results(uint32_t grid, uint32_t (*expected)(uint32_t block, uint32_t thread)) {
  for (uint32_t i = 0; i < grid * THREADS; i++) CHECK_EQ_U64(results[i], expected(i / THREADS, i % THREADS));
}

static uint32_t sum(uint32_t block, uint32_t thread) {
  uint32_t first = block / CLUSTER * CLUSTER;
  return CLUSTER * thread + THREADS * (4 * first + 6);
}

static uint32_t next(uint32_t block, uint32_t thread) {
  return (block / CLUSTER * CLUSTER + (block + 1) % CLUSTER) * THREADS + thread;
}

static uint32_t place(uint32_t block, uint32_t thread) {
  (void)thread;
  return block / CLUSTER * 16 + block % CLUSTER;
}

static uint32_t no_place(uint32_t block, uint32_t thread) {
  (void)thread;
  return block * 16;
}

/* Where only first threads go so far. */
static uint32_t sum_of_first(uint32_t block, uint32_t thread) { return thread == 0 ? sum(block, 0) : UINT32_MAX; }

static uint32_t block_of_first(uint32_t block, uint32_t thread) { return thread == 0 ? block : 0; }

static uint32_t neighbour(uint32_t block, uint32_t thread) { return block * THREADS + (thread ^ 1); }

#define ALONE "setp.ne.u32 %p1, %r0, 0;\n@%p1 ret;\n"
#define PLACE "mov.u32 %r3, %clusterid.x;\nmad.lo.u32 %r3, %r3, 16, %r1;\n"
#define PAIR                                                                                       \
  "mapa.shared::cluster.u32 %r7, hg_places, %r1;\n@%p0 st.shared::cluster.v2.u32 [%r7+8], {%r5, %r4};\n" \
  "@%p0 ld.shared::cluster.v2.u32 {%r8, %r3}, [%r7+8];\n"
#define NEIGHBOUR(between)                                                                        \
  "st.shared.u32 [%r2], %r5;\n" between "xor.b32 %r2, %r2, 4;\nld.shared.u32 %r3, [%r2];\n"

static void test_runs(void) {
  static const struct {
    const char *text;
    uint32_t (*expected)(uint32_t block, uint32_t thread);
  } cases[] = {
      {CLUSTERED(BEGIN SEND MEET SUM), sum},
      {CLUSTERED(BEGIN SEND ARRIVE "bar.sync 0;\n" WAIT SUM), sum},
      {CLUSTERED(BEGIN SEND MEET SUM MEET SEND MEET), sum}, /* written, read, written */
      {CLUSTERED(ALONE BEGIN SEND MEET SUM), sum_of_first}, /* threads that have ended have arrived */
      {CLUSTERED("st.shared.u32 [%r2], %r5;\n" MEET FETCH MEET), next},
      {CLUSTERED("st.shared::cluster.u32 [%r2], %r5;\n" MEET FETCH MEET), next},
      {CLUSTERED(PAIR), block_of_first},
      {CLUSTERED(PLACE), place},
      {ENTRY(".reqnctapercluster 4\n", PLACE), place},
      {ENTRY("", PLACE MEET), no_place},
      {ENTRY("", NEIGHBOUR("bar.sync 0;\n")), neighbour},
      {ENTRY("", NEIGHBOUR(MEET)), neighbour},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    CHECK_STR(run(cases[i].text, BLOCKS), "");
    check_results(BLOCKS, cases[i].expected);
  }
}

static void test_errors(void) {
  static const struct {
    const char *text, *why;
  } cases[] = {
      {ENTRY("", NEIGHBOUR("")), "a race with thread 0 of block 0"},
      {CLUSTERED(BEGIN SEND SUM MEET), "a race with thread"},
      {CLUSTERED(BEGIN SEND SUM), "block 0 of the cluster: the block has ended"},
      {CLUSTERED(BEGIN SEND "bar.sync 0;\n" SUM MEET), "a race with thread"}, /* a barrier of too few */
      {CLUSTERED(BEGIN SEND MEET SUM SEND MEET), "a race with thread"},       /* read, and written anew */
      {CLUSTERED(BEGIN ARRIVE SEND WAIT SUM MEET), "a race with thread"},     /* written behind the arrival */
      {CLUSTERED(BEGIN SEND "barrier.cluster.arrive.relaxed;\n" WAIT SUM), "releases nothing"},
      {CLUSTERED(SEND MEET SUM), "block 1 of the cluster might not have begun"},
      {CLUSTERED(ARRIVE SEND WAIT), "block 1 of the cluster might not have begun"},
      {CLUSTERED(MEET ONLY(1, "ret;\n") SEND_TO(1) MEET), "block 1 of the cluster ends, and others"},
      {CLUSTERED(MEET ONLY(0, "ret;\n") SEND_TO(0) MEET), "block 0 of the cluster: the block has ended"},
      {CLUSTERED("st.shared.u32 [%r2], %r5;\n" MEET FETCH), "block 1 of the cluster ends, and others"},
      {CLUSTERED(ARRIVE ARRIVE), "arrives twice"},
      {CLUSTERED(WAIT), "where it has not arrived"},
      {CLUSTERED(MEET WAIT), "where it has not arrived"},
      {CLUSTERED("@%p0 bra apart;\n" MEET "apart:\nbar.sync 0;\n"), "waits for threads that never come"},
      {CLUSTERED("mapa.shared::cluster.u32 %r7, %r2, 1;\n" MEET "ld.shared.u32 %r3, [%r7];\n" MEET), "out of reach"},
      {CLUSTERED(MEET "mapa.shared::cluster.u32 %r7, %r2, 4;\nst.shared::cluster.u32 [%r7], %r5;\n" MEET),
       "out of reach"},
      {CLUSTERED(MEET "mapa.shared::cluster.u32 %r7, hg_places, 1;\nst.shared::cluster.u32 [%r7+512], %r5;\n" MEET),
       "out of reach"},
      {CLUSTERED("mapa.shared::cluster.u32 %r7, %r2, 1;\nmapa.shared::cluster.u32 %r7, %r7, 1;\n"),
       "not of the block"},
      {CLUSTERED("barrier.cluster;\n"), ".arrive or .wait"},
      {CLUSTERED("barrier.cluster.arrive.acquire;\n"), "barrier.cluster with .acquire"},
      {CLUSTERED("barrier.cluster.wait.relaxed;\n"), "barrier.cluster with .relaxed"},
      {CLUSTERED("mapa.u32 %r7, %r2, 1;\n"), "mapa that is not"},
      {ENTRY(".reqnctapercluster 9, 1, 1\n", ""), "clusters of that size"},
      {ENTRY(".reqnctapercluster 2, 2, 1\n", ""), "clusters of that size"},
      {".version 8.0\n.target sm_80\n.visible .entry test(.param .b64 out)\n.reqnctapercluster 2\n{\nret;\n}\n",
       "clusters need sm_90"},
      {".version 8.0\n.target sm_80\n.visible .entry test(.param .b64 out)\n{\n.reg .b32 r;\n"
       "mov.u32 r, %cluster_ctarank;\nret;\n}\n", "clusters need sm_90"},
      {".version 8.0\n.target sm_80\n.visible .entry test(.param .b64 out)\n{\nbarrier.cluster.arrive;\nret;\n}\n",
       "clusters need sm_90"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const char *why = run(cases[i].text, BLOCKS);
    if (!check_note(strstr(why, cases[i].why) != NULL)) printf("case %zu: \"%s\" for %s\n", i, why, cases[i].why);
  }
  CHECK_STR(run(CLUSTERED(PLACE), 6), "a grid of 6 blocks is not of clusters of 4");
}

int main(void) {
  test_runs();
  test_errors();
  return check_report();
}
