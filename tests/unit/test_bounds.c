/* test_bounds.c - bindings of no elements, of a part of one, and of about a vector, and indices near 0, the end, 2^31,
 * 2^32, 2^63 and 2^64, on all engines and instruction sets: status, fault and every byte as on the reference machine.
 * On a processor the bound memory ends at, or begins behind, a page that nobody may access. */
#define _GNU_SOURCE
#include "backend/cpu/engine/detect.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "environment.h"
#include "launching.h"
#include "shard.h"

#include <stdlib.h>
#if !defined(_WIN32)
#  include <pthread.h>
#  include <sys/mman.h>
#  include <unistd.h>
#endif

enum { MOST_ENGINES = 10, MOST_LANES = 150, MARK = 0xa5, ONE_IN = 41 /* programs runs on a GPU */ };

typedef struct engine {
  char name[32];
  hg_executor *executor;
  hg_kernel *kernel; /* of the current program */
  hg_buffer *x, *w;  /* what is accessed; what lanes have loaded */
} engine;

static engine engines[MOST_ENGINES]; /* the reference machine is the first */
static size_t engine_count;
static uint8_t *memory; /* of x, on a processor; else NULL */
static uint64_t page = 4096;
static unsigned tried; /* so many places: each has every third scalar */

/* ---- engines ----------------------------------------------------------------------------------------------------- */

/* A page between two that nobody may access. */
static void map_memory(void) {
#if !defined(_WIN32)
  page = (uint64_t)sysconf(_SC_PAGESIZE);
  uint8_t *all = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(all != MAP_FAILED && mprotect(all, page, PROT_NONE) == 0 && mprotect(all + 2 * page, page, PROT_NONE) == 0);
  memory = all + page;
#endif
}

static void add_engine(const char *name, const char *isa, hg_backend_id backend) {
  engine *e = &engines[engine_count++];
  hg_executor_desc desc = {.backend = backend};
  set("HOLOGRAM_CPU_ENGINE", name);
  set("HOLOGRAM_CPU_ISA", isa);
  snprintf(e->name, sizeof e->name, "%s %s", backend == HG_BACKEND_CPU ? name : test_backend_name(), isa);
  CHECK_EQ_U64(hg_executor_create(&desc, &e->executor), HG_OK);
  executor = e->executor;
  e->w = buffer_of(MOST_LANES * sizeof(uint64_t), NULL);
  if (memory == NULL || backend != HG_BACKEND_CPU) e->x = buffer_of(page, NULL);
  else CHECK_EQ_U64(hg_buffer_import(executor, memory, page, &e->x), HG_OK);
}

static void open_engines(void) {
  if (test_backend() == HG_BACKEND_CPU) map_memory();
  add_engine("interp", "", HG_BACKEND_CPU);
  if (test_backend() != HG_BACKEND_CPU) {
    add_engine("", "", test_backend());
    return;
  }
  for (int isa = CPU_ISA_BASELINE; isa <= (int)hg_cpu_isa_best(); isa++) {
    add_engine("tile", hg_cpu_isa_name((cpu_isa)isa), HG_BACKEND_CPU);
    if (hg_native_target((cpu_isa)isa) == NULL) continue;
    add_engine("native", hg_cpu_isa_name((cpu_isa)isa), HG_BACKEND_CPU);
    set("HOLOGRAM_STREAM_BYTES", "0");
    add_engine("native", hg_cpu_isa_name((cpu_isa)isa), HG_BACKEND_CPU);
    set("HOLOGRAM_STREAM_BYTES", "");
  }
}

static void close_engines(void) {
  for (size_t i = 0; i < engine_count; i++) {
    hg_buffer_release(engines[i].x);
    hg_buffer_release(engines[i].w);
    hg_executor_release(engines[i].executor);
  }
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

typedef struct trial {
  uint64_t offset, byte_count; /* of x; 0 bytes: up to the end */
  uint64_t scalar;
  hg_launch_desc shape;
  atlas_type index;
  uint8_t has_no_x;
} trial;

typedef struct result {
  hg_status status;
  hg_fault fault;
  uint8_t x[65536], w[MOST_LANES * sizeof(uint64_t)];
} result;

static void run(engine *e, const trial *t, result *r) {
  memset(r->x, MARK, page);
  memset(r->w, 0, sizeof r->w);
  CHECK_EQ_U64(hg_buffer_write(e->x, 0, r->x, page), HG_OK);
  CHECK_EQ_U64(hg_buffer_write(e->w, 0, r->w, sizeof r->w), HG_OK);
  hg_binding bindings[] = {{.name = "w", .buffer = e->w},
                           {.name = "x", .buffer = e->x, .offset = t->offset, .byte_count = t->byte_count}};
  hg_scalar scalar = {.name = "s", .type = (uint8_t)t->index, .bits = t->scalar};
  hg_launch_desc desc = t->shape;
  hg_launch_report report = {0};
  desc.bindings = bindings;
  desc.binding_count = t->has_no_x ? 1 : 2;
  desc.scalars = &scalar;
  desc.scalar_count = 1;
  r->status = hg_launch(e->kernel, &desc, &report);
  r->fault = report.fault;
  CHECK_EQ_U64(hg_buffer_read(e->x, 0, r->x, page), HG_OK);
  CHECK_EQ_U64(hg_buffer_read(e->w, 0, r->w, sizeof r->w), HG_OK);
}

static int is_same(const result *a, const result *b) {
  const hg_fault *f = &a->fault, *g = &b->fault;
  int same_fault = f->kind == g->kind && f->lane == g->lane && f->instruction == g->instruction &&
                   f->index == g->index && f->extent == g->extent && strcmp(f->buffer, g->buffer) == 0;
  return a->status == b->status && same_fault && memcmp(a->x, b->x, page) == 0 &&
         memcmp(a->w, b->w, sizeof a->w) == 0;
}

static void check_trial(const char *text, const trial *t) {
  static result right, got;
  run(&engines[0], t, &right);
  CHECK(right.status == HG_OK || right.status == HG_FAULT);
  for (size_t i = 1; i < engine_count; i++) {
    run(&engines[i], t, &got);
    if (check_note(is_same(&right, &got))) continue;
    printf("%s: %u bytes at %u, s = %llu, fault %d of lane %llu, index %lld, not %d of lane %llu, index %lld, in\n%s\n",
           engines[i].name, (unsigned)t->byte_count, (unsigned)t->offset, (unsigned long long)t->scalar,
           (int)got.fault.kind, (unsigned long long)got.fault.lane, (long long)got.fault.index, (int)right.fault.kind,
           (unsigned long long)right.fault.lane, (long long)right.fault.index, text);
  }
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

/* I: the type of an index, made of s and the lane's number; T: of an element; D: a displacement; A: an access. */
typedef struct form {
  const char *index;   /* gives r1 */
  const char *address; /* in x */
  atlas_type type;     /* of s; 0: every type of index */
} form;

static const form forms[] = {
    {"cvt.I.u64 r0, lane\nadd.I r1, r0, s\n", "r1D", ATLAS_NONE},
    {"cvt.I.u64 r0, lane\nmul.I r0, r0, #3\nadd.I r1, r0, s\n", "r1D", ATLAS_NONE},
    {"cvt.I.u64 r0, lane\nsub.I r1, s, r0\n", "r1D", ATLAS_NONE},
    {"cvt.I.u64 r0, lane\nand.I r0, r0, #3\nadd.I r1, r0, s\n", "r1D", ATLAS_NONE},
    {"mov.I r1, s\n", "r1D", ATLAS_NONE},
    {"mov.I r1, s\n", "laneD", ATLAS_u64},
    /* Numbers of 32 bits that begin anew between two lanes, and then get 64. */
    {"cvt.u32.u64 r0, lane\ncvt.u32.u64 r1, s\nadd.u32 r0, r0, r1\ncvt.u64.u32 r1, r0\n", "r1D", ATLAS_u64},
    {"cvt.i32.u64 r0, lane\ncvt.i32.u64 r1, s\nadd.i32 r0, r0, r1\ncvt.i64.i32 r0, r0\nshr.u64 r1, s, #32\n"
     "cvt.i64.u64 r1, r1\nadd.i64 r1, r0, r1\n", "r1D", ATLAS_u64},
    {"cvt.u32.u64 r0, lane\ncvt.u32.u64 r1, s\nadd.u32 r0, r0, r1\ncvt.u64.u32 r0, r0\nsub.u64 r1, r0, s\n", "r1D",
     ATLAS_u64},
};

static const char *const accesses[] = {
    "ldg.T r4, [x + A]\nstg.T [w + lane], r4\n",
    "stg.T [x + A], r3\n",
    "atom.add.T _, [x + A], r3\n",
    "atom.max.T r4, [x + A], r3\nstg.T [w + lane], r4\n",
    "set.ge.u64 p0, lane, #3\n@p0 bra L\nstg.T [x + A], r3\nL:\n",
    "set.ge.u64 p0, lane, #21\n@!p0 bra L\nldg.T r4, [x + A]\nstg.T [w + lane], r4\nL:\n",
    "pool.load.T r4, [x + A]\nstg.T [w + lane], r4\n",
    "pool.store.T [x + A], r3\n"};
enum { ATOMICS = 2, ORDERED = 3 /* sees the order of lanes */, BRANCHES = 4, POOLS = 6 };

static int is_chosen(void) {
  static unsigned number;
  return test_backend() == HG_BACKEND_CPU || number++ % ONE_IN == 0;
}

static void create_kernels(const char *text) {
  for (size_t i = 0; i < engine_count; i++) {
    executor = engines[i].executor;
    engines[i].kernel = kernel_of(text);
  }
}

static void release_kernels(void) {
  for (size_t i = 0; i < engine_count; i++) hg_kernel_release(engines[i].kernel);
}

/* The bytes from the last multiple of `alignment` on from which they fit before the end, or from the beginning on. */
static void place(trial *t, uint64_t byte_count, uint64_t alignment, int at_end) {
  t->byte_count = byte_count;
  t->offset = at_end ? (page - byte_count) / alignment * alignment : 0;
  if (byte_count == 0) t->offset = page;
}

static void try_scalars(const char *text, trial *t, uint64_t extent, int is_wide) {
  tried++;
  const uint64_t bases[] = {0, extent, UINT64_C(1) << 31, UINT64_C(1) << 32, UINT64_C(1) << 63};
  static const int64_t deltas[] = {0, -1, 5, -4, -17, -100};
  static const uint64_t lanes[] = {40, 9, MOST_LANES};
  for (size_t b = 0; b < COUNT(bases); b++)
    for (size_t d = 0; d < COUNT(deltas); d++) {
      if ((!is_wide && b > 3) || (b + d + tried) % 3 != 0) continue;
      t->scalar = bases[b] + (uint64_t)deltas[d];
      if (!is_wide) t->scalar &= UINT32_MAX;
      if (t->shape.grid[0] == 0) t->shape.lanes = lanes[(b + d) / 3 % COUNT(lanes)];
      check_trial(text, t);
    }
}

static void try_program(const char *text, atlas_type index, uint64_t size, int is_pool) {
  const uint64_t lengths[] = {0, size - 1, size, 8 * size - 1, 16 * size, 131 * size + size / 2};
  trial t = {.index = index};
  create_kernels(text);
  for (size_t i = 0; i < COUNT(lengths); i++)
    for (int at_end = 0; at_end < 2; at_end++) {
      if (lengths[i] == 0 && at_end) continue;
      place(&t, lengths[i], is_pool ? 16 : size, at_end);
      try_scalars(text, &t, is_pool ? lengths[i] : lengths[i] / size, atlas_bytes(index) == 8);
    }
  release_kernels();
}

static void try_form(const form *f, atlas_type index, atlas_type element, size_t access, const char *displacement) {
  const char *type = atlas_type_name(element), *name = atlas_type_name(index);
  char body[512], head[512], text[1024];
  int is_pool = access >= POOLS, is_atomic = access >= ATOMICS && access < BRANCHES;
  if (is_atomic && atlas_bytes(element) < 4) return;
  if (access == ORDERED && test_backend() != HG_BACKEND_CPU) return;
  snprintf(head, sizeof head, ".program p\n%s\n.buffer w T inout\n.scalar s I\nmovi.T r3, #7\n%s",
           is_pool ? ".pool x" : ".buffer x T inout", f->index);
  fill_in(accesses[access], "A", &f->address, body, sizeof body);
  strcat(head, body);
  strcat(head, "exit\n");
  fill_in(head, "TID", (const char *const[]){type, name, displacement}, text, sizeof text);
  try_program(text, index, atlas_bytes(element), is_pool);
}

static void accesses_of_memory(void) {
  static const atlas_type elements[] = {ATLAS_u8, ATLAS_i16, ATLAS_u32, ATLAS_i64};
  static const atlas_type indices[] = {ATLAS_u32, ATLAS_i32, ATLAS_u64, ATLAS_i64};
  static const char *const displacements[] = {"", " + #8", " + #-8"}; /* a multiple of an element, for pools */
  for (size_t f = 0; f < COUNT(forms); f++)
    for (size_t i = 0; i < COUNT(indices); i++)
      for (size_t e = 0; e < COUNT(elements); e++)
        for (size_t d = 0; d < COUNT(displacements); d++)
          for (size_t a = 0; a < COUNT(accesses); a++) {
            if (forms[f].type != ATLAS_NONE && forms[f].type != indices[i]) continue;
            if (is_chosen() && in_shard()) try_form(&forms[f], indices[i], elements[e], a, displacements[d]);
          }
}

/* ---- what is no buffer, loops, and blocks ------------------------------------------------------------------------ */

#define MAKE_INDEX "movi.T r3, #7\ncvt.I.u64 r0, lane\nmul.I r0, r0, #N\nadd.I r1, r0, s\n"
#define LOAD_INTO_W "r4, [m + r1D]\nstg.T [w + lane], r4\n"
enum { EXTENT = 23 };

static const struct {
  const char *text;
  uint64_t extent;
  uint8_t has_x; /* 1: of so many elements, at the end of the page */
  uint8_t is_grid;
} others[] = {
    {".shared m T 23\n" MAKE_INDEX "sts.T [m + r1D], r3\nbar.sync\nlds.T " LOAD_INTO_W, EXTENT, 0, 0},
    {".shared m T 23\n" MAKE_INDEX "set.ge.u64 p0, lane, #7\n@!p0 bra L\nsts.T [m + r1D], r3\nL:\nbar.sync\n"
     "lds.T " LOAD_INTO_W,
     EXTENT, 0, 0},
    {".const m T { #1, #2, #3, #4, #5, #6, #7, #8, #9, #10, #11, #12, #13, #14, #15, #16, #17, #18, #19, #20, #21, "
     "#22, "
     "#23 }\n" MAKE_INDEX "ldc.T " LOAD_INTO_W,
     EXTENT, 0, 0},
    {".local m T 23\n" MAKE_INDEX "stl.T [m + r1D], r3\nadd.I r2, r1, #1\nldl.T " LOAD_INTO_W, EXTENT, 0, 0},
    {".table m 2 inout\n" MAKE_INDEX "and.I r2, r1, #1\nldg.T r4, [r2 : r1]\nstg.T [w + lane], r4\n"
     "stg.T [r1 : r0], r3\n",
     2, 0, 0},
    {".buffer x T inout\n" MAKE_INDEX "movi.u32 r9, #3\nmovi.T r5, #0\nL:\nldg.T r4, [x + r1D]\nadd.T r5, r5, r4\n"
     "add.I r1, r1, #13\nloop r9, L\nstg.T [w + lane], r5\n",
     2 * EXTENT, 1, 0},
    {".buffer x T inout\n" MAKE_INDEX "movi.u32 r9, #3\nL:\nstg.T [x + r1D], r3\nadd.I r1, r1, #13\nloop r9, L\n",
     2 * EXTENT, 1, 0},
    /* Blocks of 8 by 4: runs of lanes are shorter than a vector, or as long. */
    {".buffer x T inout\nsreg.u32 r0, global.x\ncvt.I.u32 r0, r0\nadd.I r1, r0, s\nldg.T r4, [x + r1D]\n"
     "stg.T [w + lane], r4\n", 19, 1, 1},
    {".buffer x T inout\nmovi.T r3, #7\nsreg.u32 r0, global.x\ncvt.I.u32 r0, r0\nadd.I r1, r0, s\n"
     "stg.T [x + r1D], r3\n", 19, 1, 1},
    {".buffer x T inout\ncvt.I.u32 r0, blane\nadd.I r1, r0, s\nldg.T r4, [x + r1D]\nbar.sync\n"
     "stg.T [w + lane], r4\n", 31, 1, 1},
    {".buffer x T inout\nmovi.T r3, #7\ncvt.u32.I r1, s\nadd.u32 r1, r1, blane\nbar.sync\nstg.T [x + r1D], r3\n", 31,
     1, 1},
    {".buffer x T inout\ncvt.u32.I r1, s\nadd.u32 r1, r1, blane\nldg.T r4, [x + r1D]\nbar.sync\n"
     "stg.T [w + lane], r4\n", 31, 1, 1},
};

static void try_other(size_t which, atlas_type index, atlas_type element, const char *displacement, const char *step) {
  char head[1024], text[2048];
  trial t = {.index = index, .has_no_x = !others[which].has_x};
  snprintf(head, sizeof head, ".program p\n%s.buffer w T inout\n.scalar s I\n%sexit\n",
           others[which].is_grid ? ".block 8, 4\n" : "", others[which].text);
  fill_in(head, "TIDN", (const char *const[]){atlas_type_name(element), atlas_type_name(index), displacement, step},
          text, sizeof text);
  if (others[which].is_grid) t.shape = (hg_launch_desc){.grid = {2, 1, 1}, .block = {8, 4, 1}};
  if (others[which].has_x) place(&t, others[which].extent * atlas_bytes(element), atlas_bytes(element), 1);
  create_kernels(text);
  try_scalars(text, &t, others[which].extent, atlas_bytes(index) == 8);
  release_kernels();
}

static void other_accesses(void) {
  static const atlas_type elements[] = {ATLAS_u8, ATLAS_u32, ATLAS_i64};
  static const atlas_type indices[] = {ATLAS_u32, ATLAS_i32, ATLAS_u64, ATLAS_i64};
  static const char *const displacements[] = {"", " + #8", " + #-8"}, *const steps[] = {"1", "0", "3"};
  for (size_t o = 0; o < COUNT(others); o++)
    for (size_t i = 0; i < COUNT(indices); i++)
      for (size_t e = 0; e < COUNT(elements); e++)
        for (size_t d = 0; d < COUNT(displacements); d++)
          for (size_t n = 0; n < COUNT(steps) && (n == 0 || !others[o].is_grid); n++)
            if (is_chosen() && in_shard()) try_other(o, indices[i], elements[e], displacements[d], steps[n]);
}

/* ---- indices that change meanwhile ------------------------------------------------------------------------------- */

#if !defined(_WIN32)
enum { SAMPLES = 1 << 14, LAUNCHES = 100, BINS = 16 };

static uint8_t samples[SAMPLES];
static volatile int has_ended;

static void *change_samples(void *unused) {
  for (unsigned round = 0; !has_ended; round++)
    for (unsigned i = 0; i < SAMPLES; i++) ((volatile uint8_t *)samples)[i] = round % 2 ? 250 : 3;
  return unused;
}

/* An index is in bounds as it was compared, whatever lies there by then. */
static void changing_indices(engine *e) {
  static const char text[] =
      ".program p\n.block 256\n.buffer a u8 in\n.buffer x u32 inout\n.scalar n u64\nmov.u64 r0, lane\n"
      "sreg.u64 r1, grid_size.x\nshl.u64 r1, r1, #8\nL:\nset.ge.u64 p0, r0, n\n@p0 bra M\nldg.u8 r2, [a + r0]\n"
      "atom.add.u32 _, [x + r2], #1\nadd.u64 r0, r0, r1\nbra L\nM:\nexit\n";
  hg_buffer *a = NULL;
  executor = e->executor;
  hg_kernel *kernel = kernel_of(text);
  CHECK_EQ_U64(hg_buffer_import(executor, samples, SAMPLES, &a), HG_OK);
  memset(memory, MARK, page);
  hg_binding bindings[] = {{.name = "a", .buffer = a},
                           {.name = "x", .buffer = e->x, .offset = page - BINS * sizeof(uint32_t)}};
  hg_scalar n = {.name = "n", .type = ATLAS_u64, .bits = SAMPLES};
  hg_launch_desc desc = {.grid = {2, 1, 1}, .block = {256, 1, 1}, .bindings = bindings, .binding_count = 2,
                         .scalars = &n, .scalar_count = 1};
  for (int i = 0; i < LAUNCHES; i++) {
    hg_status status = hg_launch(kernel, &desc, NULL);
    CHECK(status == HG_OK || status == HG_FAULT);
  }
  for (uint64_t i = 0; i < page - BINS * sizeof(uint32_t); i++) CHECK_EQ_U64(memory[i], MARK);
  hg_buffer_release(a);
  hg_kernel_release(kernel);
}

static void change_meanwhile(void) {
  pthread_t other;
  if (memory == NULL || shard_number > 1) return; /* in every share */
  has_ended = 0;
  CHECK_EQ_U64(pthread_create(&other, NULL, change_samples, NULL), 0);
  for (size_t i = 1; i < engine_count; i++) changing_indices(&engines[i]);
  has_ended = 1;
  CHECK_EQ_U64(pthread_join(other, NULL), 0);
}
#endif

int main(int argc, char **argv) {
  if (!choose_shard(argc, argv)) return 2;
  set("HOLOGRAM_NUM_THREADS", "1");
  open_engines();
  accesses_of_memory();
  other_accesses();
#if !defined(_WIN32)
  change_meanwhile();
#endif
  close_engines();
  return check_report();
}
