/* compile.c - how long the compiler takes and how much memory, on programs of 10 to 100,000 instructions of several
 * kinds.
 *
 *   bench_compile [--json] [--kernels] [FILE...]
 *
 * Each row: the kind, the instructions, microseconds for verification (parse included in none), for the canonical form,
 * for canonical form, hash and expansion together, and with the optimisation; nanoseconds an instruction of the
 * canonical form; peak bytes an instruction. Growth is close to linear when the last two columns stay level down a
 * kind.
 *
 * Then what a new kernel of the CPU backend costs, for a few small programs or those of the files; --kernels: only
 * that. */
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "compiler/canon/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- an allocator that counts ------------------------------------------------------------------------------------ */

typedef struct meter {
  size_t now, peak;
} meter;

static void *metered_allocate(void *user, size_t size) {
  meter *m = user;
  size_t *memory = malloc(size + 16);
  if (memory == NULL) return NULL;
  *memory = size;
  m->now += size;
  if (m->now > m->peak) m->peak = m->now;
  return memory + 2;
}

static void metered_release(void *user, void *memory) {
  meter *m = user;
  size_t *start = (size_t *)memory - 2;
  m->now -= *start;
  free(start);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static uint16_t declare(atlas_builder *b) { return atlas_builder_buffer(b, "y", ATLAS_u32, ATLAS_INOUT); }

/* Ten instructions in all: what a small kernel is. */
static void write_small(atlas_builder *b) {
  uint16_t y = declare(b);
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(0), atlas_mem(y, 0));
  atlas_emit(b, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(1), atlas_mem(y, 1));
  for (uint32_t i = 0; i < 6; i++)
    atlas_emit(b, i % 2 ? ATLAS_OP_mul : ATLAS_OP_xor, ATLAS_u32, 3, atlas_reg(i + 2), atlas_reg(i), atlas_reg(i + 1));
  atlas_emit(b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem(y, 2), atlas_reg(7));
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
}

static uint16_t start_program(atlas_builder *b) {
  uint16_t y = declare(b);
  for (uint32_t r = 0; r < 32; r++) atlas_emit(b, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(r), atlas_mem(y, r));
  return y;
}

static void finish_program(atlas_builder *b, uint16_t y) {
  for (uint32_t r = 0; r < 32; r++) atlas_emit(b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem(y, r), atlas_reg(r));
  atlas_emit(b, ATLAS_OP_exit, ATLAS_NONE, 0);
}

static uint32_t spread(uint32_t i) { return i * 2654435761u >> 16; }

static void step(atlas_builder *b, uint32_t i) {
  static const atlas_op ops[] = {ATLAS_OP_add, ATLAS_OP_mul, ATLAS_OP_xor, ATLAS_OP_sub};
  atlas_emit(b, ops[spread(i) % 4], ATLAS_u32, 3, atlas_reg(spread(i + 1) % 32), atlas_reg(spread(i + 2) % 32),
             atlas_reg(spread(i + 3) % 32));
}

static void straight(atlas_builder *b, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) step(b, i);
}

/* if (r != 0) one step: three instructions */
static void branches(atlas_builder *b, uint32_t count) {
  for (uint32_t i = 0; i + 2 < count; i += 3) {
    uint32_t over = atlas_builder_label(b, NULL);
    atlas_emit(b, ATLAS_OP_set_ne, ATLAS_u32, 3, atlas_pred(0), atlas_reg(spread(i) % 32), atlas_bits(0));
    atlas_emit_branch(b, 0, 1, over);
    step(b, i);
    atlas_builder_place(b, over);
  }
}

/* one loop after another: three instructions each */
static void loops(atlas_builder *b, uint32_t count) {
  for (uint32_t i = 0; i + 2 < count; i += 3) {
    uint32_t again = atlas_builder_label(b, NULL);
    atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(40), atlas_bits(3));
    atlas_builder_place(b, again);
    step(b, i);
    atlas_emit(b, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(40), atlas_label_ref(again));
  }
}

/* loads and stores of one buffer, all in order */
static void memory(atlas_builder *b, uint32_t count) {
  for (uint32_t i = 0; i + 1 < count; i += 2) {
    atlas_emit(b, ATLAS_OP_ldg, ATLAS_u32, 2, atlas_reg(spread(i) % 32), atlas_mem(0, spread(i + 5)));
    atlas_emit(b, ATLAS_OP_stg, ATLAS_u32, 2, atlas_mem(0, spread(i + 7)), atlas_reg(spread(i + 9) % 32));
  }
}

typedef struct kind {
  const char *name;
  void (*write)(atlas_builder *b, uint32_t count);
} kind;

static const kind small = {"small", NULL};
static const kind kinds[] = {{"straight", straight}, {"branches", branches}, {"loops", loops}, {"memory", memory}};

/* ---- measuring --------------------------------------------------------------------------------------------------- */

typedef struct row {
  const char *kind;
  uint32_t instructions;
  double verify_us, canon_us, expand_us, all_us;
  double peak_bytes;
} row;

static atlas_program *build(const kind *k, uint32_t count, const hg_allocator *allocator) {
  atlas_builder *b = NULL;
  atlas_program *program = NULL;
  if (atlas_builder_create(allocator, k->name, &b) != HG_OK) return NULL;
  if (k->write != NULL) {
    uint16_t y = start_program(b);
    k->write(b, count);
    finish_program(b, y);
  } else {
    write_small(b);
  }
  return atlas_builder_finish(b, &program) == HG_OK ? program : NULL;
}

static double smaller(double a, double b) { return a < b ? a : b; }

static int measure(const kind *k, uint32_t count, row *r) {
  meter m = {0};
  hg_allocator allocator = {
      .size = sizeof allocator, .user = &m, .allocate = metered_allocate, .release = metered_release};
  atlas_program *program = build(k, count, &allocator);
  if (program == NULL) return 0;
  size_t held = m.now, repeat = count >= 100000 ? 3 : count >= 10000 ? 5 : 50;
  *r = (row){k->name, (uint32_t)program->insns.count, 1e30, 1e30, 1e30, 1e30, 0};
  for (size_t i = 0; i < repeat; i++) {
    ssa_unit unit;
    hg_array bytes = {.element_size = 1};
    uint64_t t0 = hg_time_ns();
    int ok = atlas_verify(program, NULL) == HG_OK;
    uint64_t t1 = hg_time_ns();
    m.peak = m.now;
    ok = ok && hg_canonicalise(program, NULL, &unit) == HG_OK;
    uint64_t t2 = hg_time_ns();
    ok = ok && hg_canon_bytes(program, &unit, &bytes) == HG_OK;
    hg_sha256 hash;
    uint8_t digest[HG_SHA256_BYTES];
    hg_sha256_begin(&hash);
    hg_sha256_add(&hash, bytes.data, bytes.count);
    hg_sha256_end(&hash, digest);
    ok = ok && hg_expand(&unit, NULL) == HG_OK;
    uint64_t t3 = hg_time_ns();
    ok = ok && hg_optimise(program, &unit, NULL) == HG_OK;
    uint64_t t4 = hg_time_ns();
    hg_array_release(&unit.allocator, &bytes);
    ir_ssa_release(&unit);
    if (!ok) return 0;
    r->verify_us = smaller(r->verify_us, (double)(t1 - t0) / 1000);
    r->canon_us = smaller(r->canon_us, (double)(t2 - t1) / 1000);
    r->expand_us = smaller(r->expand_us, (double)(t3 - t1) / 1000);
    r->all_us = smaller(r->all_us, (double)(t4 - t1) / 1000);
  }
  r->peak_bytes = (double)(m.peak - held);
  atlas_program_release(program);
  return 1;
}

static void print_row(const row *r, int json, int first) {
  double per = r->canon_us * 1000 / r->instructions, bytes = r->peak_bytes / r->instructions;
  if (json)
    printf("%s\n{\"kind\":\"%s\",\"instructions\":%" PRIu32
           ",\"verify_us\":%.1f,\"canon_us\":%.1f,\"expand_us\":%.1f,\"all_us\":%.1f,\"peak_bytes\":%.0f}",
           first ? "" : ",", r->kind, r->instructions, r->verify_us, r->canon_us, r->expand_us, r->all_us,
           r->peak_bytes);
  else
    printf("%-9s %12" PRIu32 " %12.1f %12.1f %14.1f %10.1f %10.0f %12.0f\n", r->kind, r->instructions, r->verify_us,
           r->canon_us, r->expand_us, r->all_us, per, bytes);
  fflush(stdout);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

typedef enum stage { CANON, EXPAND, OPTIMISE, VECTORISE, CODE, STAGES } stage;

static const char *const stage_names[STAGES] = {"canon_hash", "expand", "optimise", "vectorise", "code"};

#define FUNCTION(name) \
  ".buffer a f32 in\n.buffer y f32 out\nldg.f32 r0, [a + lane]\n" name ".f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n"
static const struct {
  const char *name, *text;
} functions_of_one[] = {{"sqrt", FUNCTION("sqrt")},
                        {"exp", FUNCTION("exp")},
                        {"gelu", FUNCTION("gelu")},
                        {"gelu_tanh", FUNCTION("gelu.tanh")},
                        {"sin", FUNCTION("sin")}};

/* One kernel, as hg_kernel_create makes it; `ns` has when each stage was over. */
static hg_status make_kernel(const atlas_program *program, hg_functions *functions, hg_code_pages *pages,
                             cpu_isa isa, ssa_unit *unit, hg_vector *vector, uint64_t ns[STAGES]) {
  uint8_t digest[HG_SHA256_BYTES];
  hg_native *native = NULL;
  HG_TRY(hg_canonicalise(program, NULL, unit));
  HG_TRY(hg_canon_hash(program, unit, digest));
  ns[CANON] = hg_time_ns();
  HG_TRY(hg_expand_unplaced(unit, functions));
  ns[EXPAND] = hg_time_ns();
  HG_TRY(hg_optimise(program, unit, NULL));
  ns[OPTIMISE] = hg_time_ns();
  HG_TRY(hg_vectorise(program, unit, vector));
  ns[VECTORISE] = hg_time_ns();
  HG_TRY(hg_native_compile(pages, hg_native_target(isa), hg_cpu_kernels(isa), 1 << 25, program, vector,
                           &native));
  ns[CODE] = hg_time_ns();
  hg_native_release(native);
  return HG_OK;
}

/* The shortest of many; the functions' texts have been read before, as in an executor that has made a kernel. */
static hg_status measure_kernel(const char *text, size_t size, cpu_isa isa, double us[STAGES], double *all_us) {
  enum { REPEAT = 4000 };
  atlas_program *program = NULL;
  hg_functions functions;
  hg_allocator allocator;
  hg_code_pages pages;
  HG_TRY(hg_allocator_resolve(NULL, &allocator));
  HG_TRY(hg_code_open(&pages, &allocator));
  HG_TRY(atlas_parse(NULL, text, size, "bench", &program));
  hg_functions_open(&functions, &allocator);
  hg_status status = HG_OK;
  for (int i = 0; i < REPEAT && status == HG_OK; i++) {
    ssa_unit unit;
    hg_vector vector = {.allocator = allocator};
    uint64_t ns[STAGES] = {0}, start = hg_time_ns();
    status = make_kernel(program, &functions, &pages, isa, &unit, &vector, ns);
    for (int s = 0; s < STAGES; s++) us[s] = smaller(us[s], (double)(ns[s] - (s > 0 ? ns[s - 1] : start)) / 1000);
    *all_us = smaller(*all_us, (double)(ns[CODE] - ns[CANON]) / 1000);
    hg_vector_release(&vector);
    ir_ssa_release(&unit);
  }
  hg_functions_close(&functions);
  hg_code_close(&pages);
  atlas_program_release(program);
  return status;
}

static hg_status print_kernel(const char *name, const char *text, size_t size, cpu_isa isa, int json, int first) {
  double us[STAGES] = {1e30, 1e30, 1e30, 1e30, 1e30}, all_us = 1e30;
  HG_TRY(measure_kernel(text, size, isa, us, &all_us));
  if (json) printf("%s\n{\"kernel\":\"%s\",\"all_us\":%.1f", first ? "" : ",", name, all_us);
  else printf("%-12s %8.1f", name, all_us);
  for (int s = EXPAND; s < STAGES; s++)
    if (json) printf(",\"%s_us\":%.1f", stage_names[s], us[s]);
    else printf(" %10.1f", us[s]);
  if (json) printf(",\"%s_us\":%.1f}", stage_names[CANON], us[CANON]);
  else printf("   %.1f\n", us[CANON]);
  fflush(stdout);
  return HG_OK;
}

static hg_status print_file(const char *path, cpu_isa isa, int json, int first) {
  hg_allocator allocator;
  uint8_t *bytes = NULL;
  size_t count = 0;
  HG_TRY(hg_allocator_resolve(NULL, &allocator));
  if (hg_file_read(&allocator, path, 1 << 20, &bytes, &count) != HG_READ_OK)
    return hg_fail(HG_INVALID_ARGUMENT, "%s cannot be read", path);
  hg_status status = print_kernel(path, (const char *)bytes, count, isa, json, first);
  allocator.release(allocator.user, bytes);
  return status;
}

static hg_status print_kernels(char *const *files, int file_count, int json, int first) {
  const cpu_isa isa = hg_cpu_isa_best(); /* asked once: a virtual machine takes its time to answer */
  const native_target *target = hg_native_target(isa);
  if (target == NULL) return HG_OK;
  if (!json) {
    printf("\nkernels, %s: us from canonical SSA to machine code, and the parts of it\n%-12s %8s", target->engine,
           "program", "all");
    for (int s = EXPAND; s < STAGES; s++) printf(" %10s", stage_names[s]);
    printf("   (before: %s)\n", stage_names[CANON]);
  }
  for (int f = 0; f < file_count; f++) HG_TRY(print_file(files[f], isa, json, first && f == 0));
  if (file_count > 0) return HG_OK;
  for (size_t p = 0; p < sizeof functions_of_one / sizeof *functions_of_one; p++)
    HG_TRY(print_kernel(functions_of_one[p].name, functions_of_one[p].text, strlen(functions_of_one[p].text), isa, json,
                        first && p == 0));
  return HG_OK;
}

static int run(const kind *k, uint32_t count, int json, int first) {
  row r;
  if (!measure(k, count, &r)) {
    fprintf(stderr, "bench_compile: %s\n", hg_last_error());
    return 0;
  }
  print_row(&r, json, first);
  return 1;
}

static int print_sizes(int json) {
  if (!json)
    printf("%-9s %12s %12s %12s %14s %10s %10s %12s\n", "kind", "instructions", "verify us", "canon us",
           "+hash+expand", "+optimise", "ns/insn", "bytes/insn");
  if (!run(&small, 10, json, 1)) return 0;
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
    for (uint32_t count = 10; count <= 100000; count *= 10)
      if (!run(&kinds[k], count, json, 0)) return 0;
  return 1;
}

int main(int argc, char **argv) {
  int json = 0, only_kernels = 0, options = 1;
  for (; options < argc && argv[options][0] == '-'; options++)
    if (strcmp(argv[options], "--json") == 0) json = 1;
    else if (strcmp(argv[options], "--kernels") == 0) only_kernels = 1;
    else {
      fprintf(stderr, "usage: bench_compile [--json] [--kernels] [FILE...]\n");
      return 2;
    }
  if (json) printf("[");
  if (!only_kernels && !print_sizes(json)) return 1;
  if (print_kernels(argv + options, argc - options, json, only_kernels) != HG_OK) {
    fprintf(stderr, "bench_compile: %s\n", hg_last_error());
    return 1;
  }
  if (json) printf("\n]\n");
  return 0;
}
