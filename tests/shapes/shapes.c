/* shapes.c - counts that decide speed, of the code that operations and programs become for each target, on one fixed
 * description of a machine: nothing of the machine that runs this is asked.
 *
 *   shapes [FILE.atlas]...    a line of JSON a piece of code: of the operations of cases.def, then of the files
 *
 * shapes.py compares them with those that are recorded. */
#include "code.h"

#include "backend/cpu/targets.h"
#include "backend/cuda/ptx/emit_ptx.h"
#include "backend/metal/msl/emit_msl.h"
#include "base/error.h"
#include "compiler/canon/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"
#include "ops/plan/plan_computation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the machine ------------------------------------------------------------------------------------------------- */

/* A processor has kernels of its own for contractions with canonical bits. */
static uint64_t contract_on_cpu(void *device, const hg_contraction *contraction, const char **why) {
  enum { SCRATCH_BYTES = 64 };
  (void)device;
  *why = "";
  return contraction->is_fast ? UINT64_MAX : SCRATCH_BYTES;
}

enum { CAPABILITY = 90 };
static const ops_target cpu = {.compute_units = 8, .shared_bytes = ATLAS_MAX_SHARED_BYTES,
                               .contract_scratch = contract_on_cpu};
static const ops_target nvidia = {.for_gpu = 1, .compute_units = 132, .shared_bytes = 227 << 10, .spreads_blocks = 1};
static const ops_target apple = {.for_gpu = 1, .shared_bytes = 32 << 10};

typedef struct target target;

/* A launch whose code is counted. */
typedef struct piece {
  const char *of, *launch; /* the case; "" or the launch's number and kind */
  const atlas_program *program;
  uint32_t threads; /* of a block */
  const target *target;
} piece;

struct target {
  const char *name;
  const ops_target *plans_for;
  hg_status (*count)(const piece *p);
  const native_target *native;
  int (*read)(const code_bytes *from, code *c);
  uint32_t insn_bytes; /* of each instruction; 0: they differ */
};

static hg_status count_native(const piece *p);
static hg_status count_ptx(const piece *p);
static hg_status count_msl(const piece *p);
/* The processor's targets without what some of its processors have: hg_native_avx512 asks this machine for that. */
static const target targets[] = {{"avx512", &cpu, count_native, &hg_native_least_avx512, code_read_x86, 0},
                                 {"avx2", &cpu, count_native, &hg_native_least_avx2, code_read_x86, 0},
                                 {"neon", &cpu, count_native, &hg_native_least_neon, code_read_arm64, 4},
                                 {"ptx", &nvidia, count_ptx, NULL, NULL, 0},
                                 {"msl", &apple, count_msl, NULL, NULL, 0}};
/* Programs that run one lane after the other have a row for that, too. */
static const target one_lane = {"x86-64", &cpu, NULL, &hg_native_x86_lanes, code_read_x86, 0};
enum { TARGETS = sizeof targets / sizeof *targets };

/* ---- rows of counts ---------------------------------------------------------------------------------------------- */

static void begin_row(const piece *p, const char *version) {
  printf("{\"name\": \"%s | %s%s%s%s%s\"", p->of, p->target->name, p->launch[0] != '\0' ? " | " : "", p->launch,
         version[0] != '\0' ? " | " : "", version);
}

static void print_number(const char *name, uint64_t number) {
  printf(", \"%s\": %llu", name, (unsigned long long)number);
}

static void print_counts(const char *name, const code_counts *counts) {
  const char *comma = "";
  if (counts->of[CODE_insns] == 0) return;
  printf(", \"%s\": {", name);
  for (int k = 0; k < CODE_KIND_COUNT; k++) {
    if (counts->of[k] == 0) continue;
    printf("%s\"%s\": %u", comma, code_kind_names[k], counts->of[k]);
    comma = ", ";
  }
  printf("}");
}

static void print_shape(const code *c) {
  code_shape shape;
  code_count(c, &shape);
  print_counts("hot", &shape.hot);
  if (c->in_line != UINT32_MAX || shape.loops == 0) print_counts("straight", &shape.straight);
  print_counts("all", &shape.all);
  print_number("loops", shape.loops);
  printf(", \"insns_by_depth\": [");
  for (uint32_t d = 0; d <= shape.deepest; d++) printf("%s%u", d > 0 ? ", " : "", shape.depth[d]);
  printf("]}\n");
}

/* ---- targets ----------------------------------------------------------------------------------------------------- */

/* Values that registers are allocated for, and those that got none. */
static void print_values(const native_build *b) {
  uint32_t values = 0, spilled = 0;
  for (uint32_t r = 0; r <= b->vector->regs.count; r++) {
    uint8_t kind = native_location_of(b, r)->kind;
    values += kind == NATIVE_REGISTERS || kind == NATIVE_SLOT;
    spilled += kind == NATIVE_SLOT;
  }
  print_number("vector_insns", b->vector->insns.count);
  print_number("registers", values);
  print_number("spilled", spilled);
}

enum { MOST_ENTRIES = 256 };

static hg_status list_entries(const native_build *b, uint32_t entries[MOST_ENTRIES], size_t *entry_count) {
  size_t count = 0;
  entries[count++] = b->block_entry;
  entries[count++] = b->full_entry;
  for (size_t i = 0; i < b->steps.count; i++) {
    const native_step *step = (const native_step *)b->steps.data + i;
    if (step->kind != NATIVE_REGION) continue;
    if (count + 2 > MOST_ENTRIES) return hg_fail(HG_UNSUPPORTED, "more than %d entries of regions", MOST_ENTRIES);
    entries[count++] = step->entry;
    entries[count++] = step->stream_entry;
  }
  *entry_count = count;
  return HG_OK;
}

static hg_status visit_version(void *context, const char *version, const native_build *b) {
  const piece *p = context;
  uint32_t entries[MOST_ENTRIES];
  if (b->calls_in_loops) return HG_OK; /* such programs run in vectors */
  code_bytes from = {.bytes = b->code, .count = b->insn_bytes, .entries = entries};
  code c;
  HG_TRY(list_entries(b, entries, &from.entry_count));
  code_begin(&c);
  int is_known = p->target->read(&from, &c);
  if (is_known) {
    begin_row(p, version);
    print_number("bytes", p->target->insn_bytes > 0 ? c.count * p->target->insn_bytes : b->insn_bytes);
    print_values(b);
    print_number("copies", b->copies);
    print_shape(&c);
  }
  code_release(&c);
  return is_known ? HG_OK : hg_fail(HG_FORMAT, "%s: code for %s cannot be read", p->of, p->target->name);
}

static hg_status vectorise(const atlas_program *program, ssa_unit *unit, hg_vector *vector) {
  HG_TRY(hg_canonicalise(program, NULL, unit));
  HG_TRY(hg_expand_unplaced(unit, NULL));
  HG_TRY(hg_optimise(program, unit, NULL));
  return hg_vectorise(program, unit, vector);
}

static hg_status count_native(const piece *p) {
  hg_allocator allocator;
  HG_TRY(hg_allocator_resolve(NULL, &allocator));
  ssa_unit unit;
  hg_vector vector = {.allocator = allocator};
  piece given = *p;
  const native_visitor visitor = {.visit = visit_version, .context = &given};
  ir_ssa_init(&unit, &allocator);
  hg_status status = vectorise(p->program, &unit, &vector);
  if (status == HG_OK) status = hg_native_versions(&allocator, p->target->native, p->program, &vector, &visitor);
  int prefers_lanes = 0;
  if (status == HG_OK && p->target == &targets[0]) status = hg_native_prefers_lanes(&vector, &prefers_lanes);
  if (prefers_lanes) {
    given.target = &one_lane;
    hg_vector_release(&vector);
    status = hg_vectorise_lane(p->program, &unit, &vector);
    if (status == HG_OK) status = hg_native_versions(&allocator, one_lane.native, p->program, &vector, &visitor);
  }
  hg_vector_release(&vector);
  ir_ssa_release(&unit);
  return status;
}

static hg_status count_text(const piece *p, hg_array *text, const hg_gpu_info *info, uint64_t before,
                            int (*read)(const char *text, code *c, uint32_t *registers)) {
  uint32_t registers = 0;
  code c;
  code_begin(&c);
  int is_known = read(text->data, &c, &registers);
  if (is_known) {
    begin_row(p, "");
    print_number("bytes", text->count - before);
    print_number("registers", registers);
    print_number("shared_bytes", info->shared_bytes);
    print_number("lanes_per_thread", info->lanes_per_thread);
    print_number("parts", info->sub_blocks);
    print_shape(&c);
  }
  code_release(&c);
  return is_known ? HG_OK : hg_fail(HG_FORMAT, "%s: text for %s cannot be read", p->of, p->target->name);
}

static hg_status count_ptx(const piece *p) {
  hg_allocator allocator;
  HG_TRY(hg_allocator_resolve(NULL, &allocator));
  hg_array text = {.element_size = 1};
  hg_gpu_info info = {0};
  const hg_ptx_options options = {.capability = CAPABILITY, .variant.threads = p->threads, .name = "kernel"};
  hg_status status = hg_ptx_compile(&allocator, p->program, &options, &text, &info);
  if (status == HG_OK) status = count_text(p, &text, &info, 1, code_read_ptx);
  hg_array_release(&allocator, &text);
  return status;
}

static hg_status count_msl(const piece *p) {
  hg_allocator allocator;
  HG_TRY(hg_allocator_resolve(NULL, &allocator));
  hg_array text = {.element_size = 1}, prelude = {.element_size = 1};
  hg_gpu_info info = {0};
  const hg_msl_options options = {.variant.threads = p->threads, .name = "kernel"};
  hg_status status = hg_msl_prelude(&allocator, &prelude);
  if (status == HG_OK) status = hg_msl_compile(&allocator, p->program, &options, &text, &info);
  if (status == HG_OK && hg_array_append(&allocator, &text, NULL, 1) == NULL) status = hg_fail_memory("a text", 1);
  if (status == HG_OK) status = count_text(p, &text, &info, prelude.count + 1, code_read_msl);
  hg_array_release(&allocator, &text);
  hg_array_release(&allocator, &prelude);
  return status;
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

typedef struct operation {
  const char *name, *inputs, *formula;
  int is_gradient; /* of the sum of the result, by all inputs of floats */
} operation;

static const operation operations[] = {
#define CASE(name, inputs, formula) {name, inputs, formula, 0},
#define GRADIENT(name, inputs, formula) {"gradient of " name, inputs, formula, 1},
#include "cases.def"
#undef CASE
#undef GRADIENT
};

enum { MOST_INPUTS = 8, MOST_NAME = 16 };

typedef struct inputs {
  char name[MOST_INPUTS][MOST_NAME];
  const char *names[MOST_INPUTS];
  hg_value value[MOST_INPUTS], floats[MOST_INPUTS];
  size_t count, float_count;
} inputs;

/* "x f32 512 4096, i i32 100": the text behind the first one. */
static const char *declare_one(hg_computation *c, const char *text, inputs *in) {
  char type[MOST_NAME];
  int used = 0;
  hg_tensor like = {.rank = 0};
  uint64_t shape[HG_MAX_RANK];
  uint32_t rank = 0;
  size_t i = in->count++;
  if (sscanf(text, " %15[a-z0-9_] %15[a-z0-9]%n", in->name[i], type, &used) != 2) return NULL;
  for (text += used; *text == ' ' && rank < HG_MAX_RANK;) {
    char *end = NULL;
    shape[rank++] = strtoull(text, &end, 10);
    text = end;
  }
  for (int t = 0; t < ATLAS_TYPE_COUNT; t++)
    if (strcmp(atlas_type_name((atlas_type)t), type) == 0) like = hg_tensor_of(NULL, (atlas_type)t, rank, shape);
  in->names[i] = in->name[i];
  in->value[i] = hg_computation_input(c, in->name[i], &like);
  if (atlas_kind((atlas_type)like.type) == ATLAS_KIND_FLOAT) in->floats[in->float_count++] = in->value[i];
  return *text == ',' ? text + 1 : *text == '\0' ? text : NULL;
}

static hg_status build(const operation *o, hg_computation *c) {
  inputs in = {.count = 0};
  for (const char *text = o->inputs; *text != '\0';) {
    text = declare_one(c, text, &in);
    if (text == NULL) return hg_fail(HG_INVALID_ARGUMENT, "'%s': no such inputs", o->inputs);
  }
  hg_value result = hg_compute_formula(c, o->formula, in.names, in.value, in.count);
  if (o->is_gradient) {
    hg_value all = hg_compute(c, HG_OP_sum, &result, 1, NULL, 0), gradients[MOST_INPUTS];
    HG_TRY(hg_gradient(c, all, 0, in.floats, in.float_count, gradients));
    for (size_t i = 0; i < in.float_count; i++) HG_TRY(hg_computation_output(c, in.names[i], gradients[i], NULL));
  } else HG_TRY(hg_computation_output(c, "y", result, NULL));
  return hg_computation_status(c);
}

static uint32_t threads_of(const ops_step *step) {
  uint64_t threads =
      step->lanes > 0 ? ATLAS_LINEAR_BLOCK_LANES : (uint64_t)step->block[0] * step->block[1] * step->block[2];
  return threads > ATLAS_LINEAR_BLOCK_LANES ? ATLAS_MAX_BLOCK_LANES : ATLAS_LINEAR_BLOCK_LANES;
}

/* A row of the launch itself, and those of its code; of a contraction that the backend has a kernel for the first. */
static hg_status count_step(piece *p, const ops_step *step, uint32_t number) {
  char launch[64];
  snprintf(launch, sizeof launch, "%u %s", number + 1, step->kind);
  p->launch = launch;
  p->program = step->program;
  p->threads = threads_of(step);
  begin_row(p, "launch");
  print_number("lanes", step->lanes > 0 ? step->lanes
                                        : (uint64_t)step->grid[0] * step->grid[1] * step->grid[2] * step->block[0] *
                                              step->block[1] * step->block[2]);
  print_number("block", step->lanes > 0 ? 0 : (uint64_t)step->block[0] * step->block[1] * step->block[2]);
  print_number("bytes_read", step->bytes_read);
  print_number("bytes_written", step->bytes_written);
  if (step->contraction != NULL) print_number("own_kernel", 1);
  printf("}\n");
  hg_status status = step->contraction != NULL ? HG_OK : p->target->count(p);
  p->launch = "";
  return status;
}

static hg_status count_plan(piece *p, const hg_computation *c) {
  hg_allocator allocator;
  HG_TRY(hg_allocator_resolve(NULL, &allocator));
  ops_plan plan = {.allocator = allocator};
  hg_status status = ops_plan_computation(&allocator, c, 0, p->target->plans_for, &plan);
  for (uint32_t i = 0; i < plan.steps.count && status == HG_OK; i++)
    status = count_step(p, (const ops_step *)plan.steps.data + i, i);
  ops_plan_release(&plan);
  return status;
}

static hg_status count_operation(const operation *o) {
  hg_computation *c = NULL;
  HG_TRY(hg_computation_create(NULL, &c));
  hg_status status = build(o, c);
  for (int t = 0; t < TARGETS && status == HG_OK; t++) {
    piece p = {.of = o->name, .launch = "", .target = &targets[t]};
    status = count_plan(&p, c);
  }
  hg_computation_release(c);
  return status;
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static hg_status count_program(const char *path, const char *text, size_t length) {
  char name[128];
  const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path, *point = strrchr(base, '.');
  snprintf(name, sizeof name, "%.*s", point != NULL ? (int)(point - base) : 127, base);
  atlas_program *program = NULL;
  HG_TRY(atlas_parse(NULL, text, length, path, &program));
  hg_status status = HG_OK;
  for (int t = 0; t < TARGETS && status == HG_OK; t++) {
    const uint32_t *block = program->block;
    piece p = {.of = name, .launch = "", .program = program, .target = &targets[t]};
    int is_large = (uint64_t)block[0] * block[1] * block[2] > ATLAS_LINEAR_BLOCK_LANES;
    p.threads = is_large ? ATLAS_MAX_BLOCK_LANES : ATLAS_LINEAR_BLOCK_LANES;
    status = p.target->count(&p);
  }
  atlas_program_release(program);
  return status;
}

static hg_status count_file(const char *path) {
  static char text[1 << 20];
  FILE *file = fopen(path, "rb");
  if (file == NULL) return hg_fail(HG_IO, "%s cannot be opened", path);
  size_t count = fread(text, 1, sizeof text, file);
  fclose(file);
  return count_program(path, text, count);
}

static int report(hg_status status, const char *what) {
  if (status != HG_OK) fprintf(stderr, "shapes: %s: %s\n", what, hg_last_error());
  return status != HG_OK;
}

int main(int argc, char **argv) {
  int failed = 0;
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
    failed |= report(count_operation(&operations[i]), operations[i].name);
  for (int i = 1; i < argc; i++) failed |= report(count_file(argv[i]), argv[i]);
  return failed;
}
