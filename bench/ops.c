/* ops.c - what one instruction costs: nanoseconds a lane of every instruction and type on every CPU engine and
 * instruction set that this machine has. Use: see usage below, and bench/README.md.
 *
 * A program has the loads of what the instruction reads, the instruction, and a store (tests/unit/samples.h); 8192
 * lanes of it stay in the caches, and engines are called without the runtime in between. Each figure is the fastest of
 * several samples. Floats are of all magnitudes from 2^-30 to 2^30 (2^-12 to 2^12 where f16 is one of the types), so
 * that a function's rare ways are taken; integers are random bits. */
#define _POSIX_C_SOURCE 200112L /* setenv */

#include "atlas/value.h"
#include "backend/cpu/native/native.h"
#include "backend/cpu/targets.h"
#include "backend/cpu/tile/tile.h"
#include "base/error.h"
#include "base/os.h"
#include "compiler/canon/canon.h"
#include "compiler/expand.h"
#include "compiler/machine_ops.h"
#include "compiler/optimise.h"
#include "environment.h"
#include "samples.h"

#include <math.h>
#include <stdlib.h>

enum {
  LANES = 8192,
  ELEMENT_BYTES = 16, /* of the pool, which is addressed in steps of 16; other elements are smaller */
  MOST_ENGINES = 8,
  MOST_OPS = 512,
  NAME_BYTES = 64,
  SAMPLES = 7,
  SAMPLE_NS = 100000 /* at least, but for a single launch that takes longer */
};

/* Above this a row is a cliff. */
static const double most_ns = 8, most_function_ns = 25;

static const char usage[] =
    "usage: bench_ops [--ops NAME,...] [--types NAME,...] [--isas NAME,...] [--interp] [--json]\n"
    "\n"
    "  --ops    only these instructions: add,cvt,exp\n"
    "  --types  only these types; of a conversion, either of its two\n"
    "  --isas   only these instruction sets: avx512,avx2\n"
    "  --interp the reference machine, too\n"
    "  --json   one object for all\n";

/* ---- what is asked for ------------------------------------------------------------------------------------------- */

static const char *wanted_ops, *wanted_types, *wanted_isas;
static int with_interp, as_json;

/* 1 if a list of names, separated by commas, has the name; NULL has all. */
static int has_name(const char *list, const char *name) {
  size_t size = strlen(name);
  for (const char *at = list; at != NULL && *at != '\0'; at += *at == ',') {
    size_t length = strcspn(at, ",");
    if (length == size && memcmp(at, name, size) == 0) return 1;
    at += length;
  }
  return list == NULL;
}

static int read_options(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const char **value = strcmp(argv[i], "--ops") == 0     ? &wanted_ops
                         : strcmp(argv[i], "--types") == 0 ? &wanted_types
                         : strcmp(argv[i], "--isas") == 0  ? &wanted_isas
                                                           : NULL;
    if (value != NULL && i + 1 < argc) *value = argv[++i];
    else if (strcmp(argv[i], "--interp") == 0) with_interp = 1;
    else if (strcmp(argv[i], "--json") == 0) as_json = 1;
    else return 0;
  }
  return 1;
}

/* ---- engines ----------------------------------------------------------------------------------------------------- */

typedef struct engine {
  char name[NAME_BYTES];
  const char *isa_name;
  cpu_isa isa;
  const native_target *target; /* NULL: the tile engine */
  int is_reference;
} engine;

static engine engines[MOST_ENGINES];
static size_t engine_count;

/* The native engine, where there is one, stands before the tile engine of the same instruction set. */
static void find_engines(void) {
  for (cpu_isa isa = hg_cpu_isa_best();; isa--) {
    const native_target *target = hg_native_target(isa);
    engine e = {.isa_name = hg_cpu_isa_name(isa), .isa = isa, .target = target};
    if (has_name(wanted_isas, e.isa_name)) {
      snprintf(e.name, sizeof e.name, "native %s", e.isa_name);
      if (target != NULL) engines[engine_count++] = e;
      e.target = NULL;
      snprintf(e.name, sizeof e.name, "tile %s", e.isa_name);
      engines[engine_count++] = e;
    }
    if (isa == CPU_ISA_BASELINE) break;
  }
  if (with_interp) engines[engine_count++] = (engine){.name = "interp", .isa_name = "interp", .is_reference = 1};
}

/* The tile engine beside a native one. */
static const engine *beside(size_t e) {
  return engines[e].target != NULL && e + 1 < engine_count ? &engines[e + 1] : NULL;
}

/* ---- data -------------------------------------------------------------------------------------------------------- */

typedef struct memory {
  uint64_t of[SAMPLE_BUFFERS][LANES];
  uint8_t pool[LANES * ELEMENT_BYTES];
} memory;

static memory data;

static uint64_t next_random(void) { /* splitmix64 */
  static uint64_t state;
  uint64_t x = state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

static uint64_t random_float(atlas_type type, int reach) {
  uint64_t random = next_random();
  int exponent = (int)(random >> 8) % (2 * reach + 1) - reach;
  double magnitude = ldexp(1 + (double)(random >> 40) * 0x1p-24, exponent < -reach ? -reach : exponent);
  return atlas_round_f64(type, random & 1 ? -magnitude : magnitude);
}

static uint64_t random_value(atlas_type type, int reach, int is_class) {
  if (type == ATLAS_bool) return next_random() & 1;
  if (is_class) return next_random() & 3; /* a class, and the number of a neighbour */
  return atlas_is_float(type) ? random_float(type, reach) : next_random() & atlas_mask(type);
}

static void fill_buffer(int buffer, atlas_type type, int reach, int is_class) {
  uint32_t bytes = atlas_bytes(type);
  for (uint32_t k = 0; k < LANES; k++) {
    uint64_t value = random_value(type, reach, is_class);
    memcpy((uint8_t *)data.of[buffer] + (size_t)k * bytes, &value, bytes); /* little-endian, as these machines are */
  }
}

/* The lane's number, or what shared memory and classes have. */
static void fill_index(const sample *s, int is_class) {
  uint32_t limit = is_class ? 4 : s->info->flags & (ATLAS_SPACE_SHARED | ATLAS_SPACE_LOCAL) ? SAMPLE_SHARED : LANES;
  for (uint32_t k = 0; k < LANES; k++) {
    uint32_t value = k % limit;
    memcpy((uint8_t *)data.of[3] + (size_t)k * 4, &value, 4);
  }
}

static void fill(const sample *s) {
  int is_class = hg_machine_kind(s->info->op) == MACHINE_CLASS;
  int reach = s->type == ATLAS_f16 || s->type2 == ATLAS_f16 ? 12 : 30;
  for (int b = 0; b < 3; b++) fill_buffer(b, s->type == ATLAS_NONE ? ATLAS_u32 : s->type, reach, is_class);
  fill_index(s, is_class);
  fill_buffer(4, s->type2 == ATLAS_NONE ? ATLAS_u32 : s->type2, reach, is_class);
  memset(data.of[6], 0, sizeof data.of[6]);
}

/* ---- one program on one engine ----------------------------------------------------------------------------------- */

typedef struct job {
  const atlas_program *program;
  const hg_vector *vector;
  hg_native *native;
  hg_tile *tile;
  atlas_argument arguments[SAMPLE_BUFFERS + 1];
} job;

static hg_status launch(job *j) {
  static atlas_launch l;
  l.lanes = LANES;
  l.arguments = j->arguments;
  l.step_limit = 1 << 20;
  l.fault.kind = HG_FAULT_NONE;
  if (j->native != NULL) HG_TRY(hg_native_launch(j->native, &l));
  else if (j->tile != NULL) HG_TRY(hg_tile_launch(j->tile, &l));
  else HG_TRY(atlas_interpret(&j->program->allocator, j->program, &l));
  return l.fault.kind == HG_FAULT_NONE ? HG_OK : HG_FAULT;
}

static double elapsed(job *j, uint32_t launches) {
  uint64_t start = hg_time_ns();
  for (uint32_t k = 0; k < launches; k++) (void)launch(j);
  return (double)(hg_time_ns() - start);
}

/* Nanoseconds a lane; below 0: it cannot be launched, and says why. */
static double measure(job *j) {
  if (launch(j) != HG_OK) return -1;
  double once = elapsed(j, 1), best = INFINITY;
  uint32_t launches = once < SAMPLE_NS ? (uint32_t)(SAMPLE_NS / (once + 1)) + 1 : 1;
  for (int k = 0; k < (j->native == NULL && j->tile == NULL ? 1 : SAMPLES); k++) {
    double ns = elapsed(j, launches) / launches / LANES;
    if (ns < best) best = ns;
  }
  return best;
}

static hg_status compile(job *j, const engine *e, hg_code_pages *pages) {
  if (e->is_reference) return HG_OK;
  if (e->target == NULL) return hg_tile_compile(&j->program->allocator, j->program, j->vector, e->isa, &j->tile);
  return hg_native_compile(pages, e->target, hg_cpu_kernels(e->isa), UINT64_MAX, j->program, j->vector, &j->native);
}

static double time_on(const engine *e, const atlas_program *program, const hg_vector *vector, hg_code_pages *pages) {
  job j = {.program = program, .vector = vector};
  for (int b = 0; b < SAMPLE_BUFFERS; b++) j.arguments[b].span = (atlas_span){(uint8_t *)data.of[b], sizeof data.of[b]};
  j.arguments[SAMPLE_BUFFERS].span = (atlas_span){data.pool, sizeof data.pool};
  double ns = compile(&j, e, pages) == HG_OK ? measure(&j) : -1;
  hg_native_release(j.native);
  hg_tile_release(j.tile);
  return ns;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

typedef struct row {
  char name[NAME_BYTES];
  double ns[MOST_ENGINES], most;
} row;

static row *rows;
static size_t row_count;

static void print_header(void) {
  printf("%-24s", "ns a lane");
  for (size_t e = 0; e < engine_count; e++) printf("%15s%s", engines[e].name, beside(e) != NULL ? "" : "  ratio");
  printf("\n");
}

static void print_row(const row *r) {
  printf("%-24s", r->name);
  for (size_t e = 0; e < engine_count; e++) {
    if (r->ns[e] < 0) printf("%15s", "-");
    else printf("%15.3f", r->ns[e]);
    if (beside(e) != NULL) continue;
    int has_ratio = e > 0 && beside(e - 1) == &engines[e] && r->ns[e - 1] > 0 && r->ns[e] > 0;
    if (has_ratio) printf("%7.2f", r->ns[e - 1] / r->ns[e]);
    else printf("%7s", "");
  }
  printf("\n");
  fflush(stdout);
}

static void print_json(const row *r) {
  printf("%s\n  {\"instruction\":\"%s\",\"ns\":{", row_count > 1 ? "," : "", r->name);
  for (size_t e = 0, printed = 0; e < engine_count; e++)
    if (r->ns[e] >= 0) printf("%s\"%s\":%.4f", printed++ > 0 ? "," : "", engines[e].name, r->ns[e]);
  printf("}}");
}

static hg_status time_program(const atlas_program *program, row *r) {
  ssa_unit unit;
  hg_vector vector = {0};
  hg_code_pages pages;
  HG_TRY(hg_canonicalise(program, NULL, &unit));
  hg_status status = hg_expand(&unit, NULL);
  if (status == HG_OK) status = hg_optimise(program, &unit, NULL);
  if (status == HG_OK) status = hg_vectorise(program, &unit, &vector);
  if (status == HG_OK) status = hg_code_open(&pages, &program->allocator);
  if (status == HG_OK) {
    for (size_t e = 0; e < engine_count; e++) r->ns[e] = time_on(&engines[e], program, &vector, &pages);
    hg_code_close(&pages);
  }
  hg_vector_release(&vector);
  ir_ssa_release(&unit);
  return status;
}

static int is_wanted(const sample *s) {
  if (wanted_types == NULL) return 1;
  if (s->type != ATLAS_NONE && has_name(wanted_types, atlas_type_name(s->type))) return 1;
  return s->type2 != ATLAS_NONE && has_name(wanted_types, atlas_type_name(s->type2));
}

static void add_row(sample *s, void *user) {
  atlas_program *program = NULL;
  (void)user;
  if (!is_wanted(s)) return;
  row *more = realloc(rows, (row_count + 1) * sizeof *rows);
  if (more == NULL) exit(1);
  rows = more;
  row *r = &rows[row_count++];
  int is_function = s->info->flags & ATLAS_FUNC && s->type == ATLAS_f64;
  *r = (row){.most = is_function ? most_function_ns : most_ns};
  snprintf(r->name, sizeof r->name, "%s%s%s%s%s", s->info->mnemonic, s->type == ATLAS_NONE ? "" : ".",
           s->type == ATLAS_NONE ? "" : atlas_type_name(s->type), s->type2 == ATLAS_NONE ? "" : ".",
           s->type2 == ATLAS_NONE ? "" : atlas_type_name(s->type2));
  sample_write(s);
  fill(s);
  hg_status status = atlas_parse(NULL, s->text, strlen(s->text), "sample", &program);
  if (status == HG_OK) status = time_program(program, r);
  if (status != HG_OK) {
    fprintf(stderr, "bench_ops: %s: %s\n", r->name, hg_last_error());
    exit(1);
  }
  atlas_program_release(program);
  if (as_json) print_json(r);
  else print_row(r);
}

/* ---- what is too slow -------------------------------------------------------------------------------------------- */

/* Two figures that differ by less than a tenth, or by a fiftieth of a nanosecond, do not differ. */
static int is_slower(double ns, double than) { return than > 0 && ns > than * 1.1 && ns > than + 0.02; }

static void list_rows(size_t e, int above, const char *what) {
  size_t count = 0;
  for (size_t k = 0; k < row_count; k++) {
    const row *r = &rows[k];
    int counts = above ? r->ns[e] > r->most : is_slower(r->ns[e], r->ns[e + 1]);
    if (!counts) continue;
    if (count++ == 0) printf("\n%s, %s:\n", engines[e].name, what);
    printf("  %-24s%10.2f%10.2f\n", r->name, r->ns[e], r->ns[e + 1]);
  }
  if (count == 0) printf("\n%s: nothing %s\n", engines[e].name, what);
  else printf("  %zu of %zu\n", count, row_count);
}

static void summarise(void) {
  char above[NAME_BYTES * 2];
  snprintf(above, sizeof above, "above %.0f ns a lane (functions of f64: %.0f)", most_ns, most_function_ns);
  for (size_t e = 0; e < engine_count; e++) {
    if (beside(e) == NULL) continue;
    list_rows(e, 1, above);
    list_rows(e, 0, "slower than the tile engine");
  }
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

static int by_mnemonic(const void *a, const void *b) {
  const atlas_op_info *const *left = a, *const *right = b;
  return strcmp((*left)->mnemonic, (*right)->mnemonic);
}

int main(int argc, char **argv) {
  static const atlas_op_info *ops[MOST_OPS];
  size_t count = 0;
  if (!read_options(argc, argv)) {
    fputs(usage, stderr);
    return 2;
  }
  set("HOLOGRAM_NUM_THREADS", "1"); /* engines would choose their number by different estimates */
  find_engines();
  for (size_t k = 0; k < atlas_op_count() && count < MOST_OPS; k++) {
    const atlas_op_info *info = atlas_op_lookup((uint32_t)atlas_op_at(k));
    if (has_name(wanted_ops, info->mnemonic)) ops[count++] = info;
  }
  qsort(ops, count, sizeof ops[0], by_mnemonic);
  if (as_json) printf("{\"lanes\":%d,\"rows\":[", LANES);
  else print_header();
  for (size_t k = 0; k < count; k++) sample_each_type(ops[k], add_row, NULL);
  if (as_json) printf("\n]}\n");
  else summarise();
  free(rows);
  return 0;
}
