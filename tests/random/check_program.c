/* check_program.c - one program against its SSA forms and its relatives. */
#include "check_program.h"

#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/targets.h"
#include "backend/cpu/tile/tile.h"
#include "base/error.h"
#include "base/os.h"
#include "check_ranges.h"
#include "compiler/analysis/effects.h"
#include "compiler/canon/build_ssa.h"
#include "compiler/canon/canon.h"
#include "compiler/canon/passes.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"
#include "compiler/ssa_interp.h"
#include "ir/structure.h"
#include "on_backend.h"
#include "vector/check.h"
#include "vector/vector.h"
#include "vector_interp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MUTANTS = 6, HARDER = 30, CONTENTS = 3 /* of the buffers */, REWRITES = 2 };

typedef struct checker {
  const draft *d;
  const test_launch *l;
  uint64_t seed;
  atlas_program *program;
  outcome reference;
  hg_fault canonical;  /* the fault that the canonical form reports */
  ssa_unit canon;
  hg_array bytes;      /* of the canonical form */
  failure *out;
} checker;

const char *failure_name(const failure *f) {
  static const char *const names[] = {"none",
                                      "does not verify",
                                      "a call failed",
                                      "raw SSA differs",
                                      "canonical form differs",
                                      "expanded form differs",
                                      "optimised form differs",
                                      "an engine differs",
                                      "a pass breaks the SSA form",
                                      "canonical form, passed again, differs",
                                      "not idempotent",
                                      "not equal to itself, rewritten",
                                      "equal to something else",
                                      "the canonical text differs",
                                      "crash or hang"};
  return names[f->kind];
}

uint64_t check_time_ns(void) { return hg_time_ns(); }

static failure_kind fails(checker *c, failure_kind kind, const char *text) {
  c->out->kind = kind;
  snprintf(c->out->text, sizeof c->out->text, "%s", text);
  return kind;
}

/* ---- runs -------------------------------------------------------------------------------------------------------- */

static hg_status run_reference(const void *context, atlas_launch *launch) {
  const atlas_program *program = context;
  return atlas_interpret(&program->allocator, program, launch);
}

typedef struct ssa_run {
  const atlas_program *program;
  const ssa_unit *unit;
} ssa_run;

static hg_status run_ssa(const void *context, atlas_launch *launch) {
  const ssa_run *run = context;
  return hg_ssa_interpret(&run->program->allocator, run->program, run->unit, launch);
}

typedef struct vector_run {
  const atlas_program *program;
  const hg_vector *vector;
} vector_run;

static hg_status run_vector(const void *context, atlas_launch *launch) {
  const vector_run *run = context;
  return vector_interpret(&run->program->allocator, run->program, run->vector, launch);
}

typedef struct tile_run {
  const atlas_program *program;
  const hg_vector *vector;
  cpu_isa isa;
} tile_run;

static hg_status run_tile(const void *context, atlas_launch *launch) {
  const tile_run *run = context;
  hg_tile *tile;
  HG_TRY(hg_tile_compile(&run->program->allocator, run->program, run->vector, run->isa, &tile));
  hg_status status = hg_tile_launch(tile, launch);
  hg_tile_release(tile);
  return status;
}

typedef struct native_run {
  const atlas_program *program;
  const hg_vector *vector;
  const native_target *target;
  const hg_vector *tile; /* what the tile engine runs if machine code leaves a launch to it */
} native_run;

/* What the machine-code engine leaves to the tiles is not its fault. Half of the programs store past the caches. */
static hg_status run_native(const void *context, atlas_launch *launch) {
  const native_run *run = context;
  hg_code_pages pages;
  hg_native *native;
  HG_TRY(hg_code_open(&pages, &run->program->allocator));
  uint64_t stream_bytes = run->program->insns.count % 2 ? 0 : UINT64_MAX;
  hg_status status = hg_native_compile(&pages, run->target, hg_cpu_kernels(hg_cpu_isa_best()), stream_bytes,
                                       run->program, run->vector, &native);
  if (status == HG_OK) {
    status = hg_native_launch(native, launch);
    hg_native_release(native);
  }
  hg_code_close(&pages);
  tile_run tile = {run->program, run->tile, hg_cpu_isa_best()};
  return status == HG_UNSUPPORTED ? run_tile(&tile, launch) : status;
}

static int is_end(hg_fault_kind kind) { return kind == HG_FAULT_TRAP || kind == HG_FAULT_STEP_LIMIT; }

static void describe(const hg_fault *fault, char *text, size_t bytes) {
  snprintf(text, bytes, "fault kind %d in lane %llu at instruction %u", (int)fault->kind,
           (unsigned long long)fault->lane, fault->instruction);
}

static failure_kind fails_by_fault(checker *c, failure_kind kind, const char *name, const hg_fault *expected,
                                   const hg_fault *now) {
  char a[100], b[100], message[300];
  describe(expected, a, sizeof a);
  describe(now, b, sizeof b);
  snprintf(message, sizeof message, "%s: %s, not %s", name, b, a);
  return fails(c, kind, message);
}

/* The instruction that faulted is one that no pass may take away. */
static int stays(const atlas_program *program, const hg_fault *fault) {
  ssa_insn insn = {.op = atlas_insn_at(program, fault->instruction)->op};
  return !hg_is_removable(&insn);
}

/* `exact`: the records are equal. Else `before` is of the program as written: dead loads vanish with their faults and a
 * lane's effects may change places; ends of lanes do neither, and no fault comes from nowhere. */
static int faults_agree(const atlas_program *program, const hg_fault *before, const hg_fault *now, int exact) {
  if (before->kind == HG_FAULT_NONE) return now->kind == HG_FAULT_NONE;
  int same_place = now->kind != HG_FAULT_NONE && now->lane == before->lane;
  if (is_end(before->kind) || exact)
    if (!same_place || now->kind != before->kind || now->code != before->code) return 0;
  if (exact)
    return now->instruction == before->instruction && now->index == before->index && now->extent == before->extent &&
           strcmp(now->buffer, before->buffer) == 0;
  if (stays(program, before)) return same_place;
  return now->kind == HG_FAULT_NONE || now->lane >= before->lane;
}

static failure_kind compare(checker *c, const outcome *run, failure_kind kind) {
  char text[400];
  if (outcome_differs(c->l, c->d, &c->reference, run, text, sizeof text)) return fails(c, kind, text);
  const hg_fault *a = &c->reference.launch.fault, *b = &run->launch.fault;
  if (faults_agree(c->program, a, b, kind == FAILURE_RAW)) return FAILURE_NONE;
  return fails_by_fault(c, kind, "as written", a, b);
}

/* The analysis of the unit, told all of the launch and nothing. */
static failure_kind check_analysis(checker *c, ssa_unit *unit, failure_kind kind) {
  failure_kind found = FAILURE_NONE;
  for (int knows = 0; knows < 2 && found == FAILURE_NONE; knows++) {
    ranges_run run = {c->program, unit, knows};
    outcome result = {0};
    if (test_launch_run(c->l, c->d, check_ranges, &run, &result) != HG_OK) found = fails(c, kind, hg_last_error());
    outcome_release(&result);
  }
  return found;
}

static failure_kind check_unit(checker *c, const ssa_unit *unit, failure_kind kind) {
  ssa_run run = {c->program, unit};
  outcome result;
  hg_status status = test_launch_run(c->l, c->d, run_ssa, &run, &result);
  failure_kind found = status != HG_OK ? fails(c, kind, hg_last_error()) : compare(c, &result, kind);
  if (found == FAILURE_NONE && kind == FAILURE_CANON) c->canonical = result.launch.fault;
  if (found == FAILURE_NONE && (kind == FAILURE_EXPANDED || kind == FAILURE_OPTIMISED) &&
      !faults_agree(c->program, &c->canonical, &result.launch.fault, 1))
    found = fails_by_fault(c, kind, "canonical form", &c->canonical, &result.launch.fault);
  outcome_release(&result);
  return found;
}

/* As the optimised unit, its faults included. */
static hg_backend_id only_backend; /* AUTO: the CPU engines */

/* Metal may refuse a program, by name: atomics of 64 bits, too much shared memory. */
static failure_kind compare_exactly(checker *c, const outcome *expected, hg_status (*run)(const void *, atlas_launch *),
                                    const void *context, const char *name) {
  outcome result = {0};
  char text[400], message[600];
  failure_kind found = FAILURE_NONE;
  hg_status status = test_launch_run(c->l, c->d, run, context, &result);
  if (status != HG_OK) {
    c->out->unsupported = status == HG_UNSUPPORTED && only_backend == HG_BACKEND_METAL;
    if (!c->out->unsupported) found = fails(c, FAILURE_VECTOR, hg_last_error());
  } else if (outcome_differs(c->l, c->d, expected, &result, text, sizeof text)) {
    snprintf(message, sizeof message, "%s: %s", name, text);
    found = fails(c, FAILURE_VECTOR, message);
  } else if (!faults_agree(c->program, &expected->launch.fault, &result.launch.fault, 1)) {
    found = fails_by_fault(c, FAILURE_VECTOR, name, &expected->launch.fault, &result.launch.fault);
  }
  outcome_release(&result);
  return found;
}

static int compiler_only;

void check_compiler_only(void) { compiler_only = 1; }

void check_on_backend(hg_backend_id backend) { only_backend = backend; }

void check_kernels(const draft *d, const test_launch *l) {
  backend_run run = {only_backend, d, l, draft_build(d)};
  outcome result = {0};
  if (run.program != NULL) (void)test_launch_run(l, d, run_on_backend, &run, &result);
  outcome_release(&result);
  atlas_program_release(run.program);
}

static failure_kind check_backend(checker *c, const ssa_unit *unit) {
  ssa_run plain = {c->program, unit};
  backend_run run = {only_backend, c->d, c->l, c->program};
  outcome expected = {0};
  failure_kind found = FAILURE_NONE;
  if (test_launch_run(c->l, c->d, run_ssa, &plain, &expected) != HG_OK)
    found = fails(c, FAILURE_VECTOR, hg_last_error());
  if (found == FAILURE_NONE) found = compare_exactly(c, &expected, run_on_backend, &run, "on the backend");
  outcome_release(&expected);
  return found;
}

static hg_status check_after_native_pass(void *context, const native_build *build, const hg_vector *v, const char *pass,
                                         int has_ranges) {
  (void)context;
  hg_status status = hg_native_check(build, v, has_ranges);
  if (status == HG_OK) return HG_OK;
  return hg_fail(HG_INVALID_ARGUMENT, "%s, after %s: %s", build->target->engine, pass, hg_last_error());
}

static hg_status ignore_version(void *context, const char *version, const native_build *build) {
  (void)context;
  (void)version;
  (void)build;
  return HG_OK;
}

/* What the passes of machine code make of it for each processor, whichever this one is, the checker after every pass.
 */
static failure_kind check_passes(checker *c, const hg_vector *vector) {
  static const native_target *const targets[] = {&hg_native_avx512, &hg_native_avx2, &hg_native_neon};
  const native_visitor visitor = {.visit = ignore_version, .after = check_after_native_pass};
  hg_status status = hg_vector_check(c->program, vector, NULL, 1);
  for (size_t k = 0; k < sizeof targets / sizeof targets[0] && status == HG_OK; k++) {
    status = hg_native_versions(&vector->allocator, targets[k], c->program, vector, &visitor);
    if (status == HG_UNSUPPORTED) status = HG_OK;
  }
  return status == HG_OK ? FAILURE_NONE : fails(c, FAILURE_BROKEN, hg_last_error());
}

/* One lane after the other, where the program may run so. */
static failure_kind check_lanes(checker *c, ssa_unit *unit, const hg_vector *vector, const outcome *expected) {
  hg_vector lanes;
  failure_kind found = FAILURE_NONE;
  const native_target *target = hg_native_lane_target(hg_cpu_isa_best());
  if (target == NULL || !hg_native_may_run_lanes(vector)) return FAILURE_NONE;
  if (hg_vectorise_lane(c->program, unit, &lanes) != HG_OK || hg_vector_check(c->program, &lanes, NULL, 1) != HG_OK)
    found = fails(c, FAILURE_VECTOR, hg_last_error());
  native_run native = {c->program, &lanes, target, vector};
  if (found == FAILURE_NONE) found = compare_exactly(c, expected, run_native, &native, target->engine);
  hg_vector_release(&lanes);
  return found;
}

static failure_kind check_vector(checker *c, ssa_unit *unit) {
  if (only_backend != HG_BACKEND_AUTO) return check_backend(c, unit);
  hg_vector vector;
  ssa_run plain = {c->program, unit};
  vector_run run = {c->program, &vector};
  outcome expected = {0};
  failure_kind found = FAILURE_NONE;
  if (hg_vectorise(c->program, unit, &vector) != HG_OK ||
      test_launch_run(c->l, c->d, run_ssa, &plain, &expected) != HG_OK)
    found = fails(c, FAILURE_VECTOR, hg_last_error());
  if (found == FAILURE_NONE) found = check_passes(c, &vector);
  if (found == FAILURE_NONE) found = compare_exactly(c, &expected, run_vector, &run, "interpreted");
  for (cpu_isa isa = CPU_ISA_BASELINE; isa <= hg_cpu_isa_best() && found == FAILURE_NONE; isa++) {
    tile_run tile = {c->program, &vector, isa};
    found = compare_exactly(c, &expected, run_tile, &tile, hg_cpu_isa_name(isa));
  }
  for (cpu_isa isa = CPU_ISA_BASELINE; isa <= hg_cpu_isa_best() && found == FAILURE_NONE; isa++) {
    native_run native = {c->program, &vector, hg_native_target(isa), &vector};
    if (native.target != NULL) found = compare_exactly(c, &expected, run_native, &native, native.target->engine);
  }
  if (found == FAILURE_NONE) found = check_lanes(c, unit, &vector, &expected);
  outcome_release(&expected);
  hg_vector_release(&vector);
  return found;
}

/* ---- forms ------------------------------------------------------------------------------------------------------- */

static failure_kind check_raw(checker *c) {
  ssa_unit raw;
  ir_ssa_init(&raw, &c->program->allocator);
  failure_kind found = hg_build_ssa(c->program, &raw) != HG_OK ? fails(c, FAILURE_RAW, hg_last_error())
                                                               : check_unit(c, &raw, FAILURE_RAW);
  ir_ssa_release(&raw);
  return found;
}

static char *trace;
static size_t trace_bytes;

void check_trace(char *buffer, size_t bytes) {
  trace = buffer;
  trace_bytes = bytes;
}

static void note(const atlas_program *program) {
  char *text = NULL;
  size_t length = 0;
  if (trace == NULL || atlas_print(NULL, program, &text, &length) != HG_OK) return;
  snprintf(trace, trace_bytes, "%s", text);
  atlas_memory_release(NULL, text);
}

static hg_status canonical_bytes(const atlas_program *program, ssa_unit *unit, hg_array *bytes) {
  *bytes = (hg_array){.element_size = 1};
  note(program);
  HG_TRY(hg_canonicalise(program, NULL, unit));
  return hg_canon_bytes(program, unit, bytes);
}

static int same_bytes(const hg_array *a, const hg_array *b) {
  return a->count == b->count && memcmp(a->data, b->data, a->count) == 0;
}

/* Values are numbered along the lists; passes that change only the order of a list would not show in the bytes. */
static int lists_are_in_order(const ssa_unit *unit) {
  for (uint32_t b = 0; b < unit->blocks.count; b++) {
    uint32_t last = 0;
    const ssa_block *block = ssa_block_at(unit, b);
    for (uint32_t v = block->first_phi; v != SSA_NONE; last = v, v = ssa_insn_at(unit, v)->next)
      if (v < last) return 0;
    for (uint32_t v = block->first_effect; v != SSA_NONE; last = v, v = ssa_insn_at(unit, v)->next)
      if (v < last) return 0;
  }
  return 1;
}

/* Ends the canonical unit: it is passed again in place. */
static failure_kind check_again(checker *c, int run) {
  hg_array again = {.element_size = 1};
  failure_kind found = FAILURE_NONE;
  if (hg_canon_passes(c->program, &c->canon, NULL) != HG_OK || hg_canon_bytes(c->program, &c->canon, &again) != HG_OK)
    found = fails(c, FAILURE_ERROR, hg_last_error());
  else if (!same_bytes(&again, &c->bytes)) found = fails(c, FAILURE_IDEMPOTENCE, "other bytes");
  else if (!lists_are_in_order(&c->canon)) found = fails(c, FAILURE_IDEMPOTENCE, "another order of phis or effects");
  hg_array_release(&c->program->allocator, &again);
  if (found != FAILURE_NONE || !run) return found;
  return check_unit(c, &c->canon, FAILURE_AGAIN);
}

/* ---- expanded and optimised -------------------------------------------------------------------------------------- */

static hg_status check_after_pass(void *user, const char *pass, const atlas_program *program, ssa_unit *unit) {
  (void)user;
  (void)program;
  hg_status status = ir_ssa_check(unit);
  return status == HG_OK ? HG_OK : hg_fail(HG_INVALID_ARGUMENT, "after %s: %s", pass, hg_last_error());
}

static hg_status check_structure(const ssa_unit *unit) {
  ssa_order order;
  hg_array items = {.element_size = sizeof(ir_structure_item)};
  hg_status status = ir_ssa_order_build(unit, &order);
  if (status == HG_OK) status = ir_structure_build(unit, &order, &items);
  if (status == HG_OK) status = ir_structure_check(unit, &order, &items);
  hg_array_release(&unit->allocator, &items);
  ir_ssa_order_release(unit, &order);
  return status;
}

/* The whole way to primitives, the checker after every pass. */
static failure_kind check_compiled(checker *c) {
  const hg_pass_hook hook = {check_after_pass, NULL};
  ssa_unit unit;
  failure_kind found = FAILURE_NONE;
  if (hg_canonicalise(c->program, &hook, &unit) != HG_OK) found = fails(c, FAILURE_BROKEN, hg_last_error());
  if (found == FAILURE_NONE && check_structure(&unit) != HG_OK) found = fails(c, FAILURE_BROKEN, hg_last_error());
  unit.joins_functions = c->program->insns.count % 4 == 0; /* as for GPUs, some of the programs */
  if (found == FAILURE_NONE && hg_expand(&unit, NULL) != HG_OK)
    found = fails(c, FAILURE_BROKEN, hg_last_error());
  if (found == FAILURE_NONE) found = check_unit(c, &unit, FAILURE_EXPANDED);
  if (found == FAILURE_NONE && hg_optimise(c->program, &unit, &hook) != HG_OK)
    found = fails(c, FAILURE_BROKEN, hg_last_error());
  if (found == FAILURE_NONE && ir_ssa_check(&unit) != HG_OK) found = fails(c, FAILURE_BROKEN, hg_last_error());
  if (found == FAILURE_NONE && check_structure(&unit) != HG_OK) found = fails(c, FAILURE_BROKEN, hg_last_error());
  if (found == FAILURE_NONE) found = check_unit(c, &unit, FAILURE_OPTIMISED);
  if (found == FAILURE_NONE) found = check_analysis(c, &unit, FAILURE_OPTIMISED);
  if (found == FAILURE_NONE && !compiler_only) found = check_vector(c, &unit);
  ir_ssa_release(&unit);
  return found;
}

/* ---- relatives --------------------------------------------------------------------------------------------------- */

static void keep_text(checker *c, const atlas_program *program) {
  size_t length = 0;
  free(c->out->other);
  c->out->other = NULL;
  if (atlas_print(NULL, program, &c->out->other, &length) != HG_OK) c->out->other = NULL;
}

static failure_kind compare_same(checker *c, const draft *d, const char *what) {
  atlas_program *program = draft_build(d);
  if (program == NULL) return FAILURE_NONE; /* a register too many */
  ssa_unit unit;
  hg_array bytes;
  failure_kind found = FAILURE_NONE;
  if (canonical_bytes(program, &unit, &bytes) != HG_OK) found = fails(c, FAILURE_ERROR, hg_last_error());
  else if (!same_bytes(&bytes, &c->bytes)) {
    found = fails(c, FAILURE_SAME, what);
    keep_text(c, program);
  }
  hg_array_release(&program->allocator, &bytes);
  ir_ssa_release(&unit);
  atlas_program_release(program);
  return found;
}

static failure_kind check_transform(checker *c, transform_kind kind, uint64_t seed) {
  rng r = {.state = seed ^ (uint64_t)kind << 32};
  draft copy;
  draft_copy(&copy, c->d);
  failure_kind found = FAILURE_NONE;
  c->out->transform = kind;
  if (transform(kind, &r, c->program, &copy)) found = compare_same(c, &copy, transform_name(kind));
  draft_release(&copy);
  return found;
}

/* Several at once; if that fails, each alone, for a plainer report. */
static failure_kind compare_rewritten(checker *c, uint64_t seed) {
  rng r = {.state = seed ^ 0x5a};
  draft copy;
  draft_copy(&copy, c->d);
  c->out->transform = TRANSFORM_COUNT;
  for (int k = TRANSFORM_COUNT; k-- > 0;) {
    atlas_program *now = rng_chance(&r, 60) ? draft_build(&copy) : NULL;
    if (now != NULL) transform((transform_kind)k, &r, now, &copy);
    atlas_program_release(now);
  }
  failure_kind found = compare_same(c, &copy, "several changes");
  draft_release(&copy);
  return found;
}

static failure_kind check_same(checker *c, uint64_t seed) {
  failure_kind found = compare_rewritten(c, seed);
  for (int k = 0; found == FAILURE_SAME && k < TRANSFORM_COUNT; k++)
    for (uint64_t n = 0; n < HARDER; n++)
      if (check_transform(c, (transform_kind)k, seed + n) == FAILURE_SAME) return FAILURE_SAME;
  if (found == FAILURE_SAME) c->out->transform = TRANSFORM_COUNT;
  return found;
}

/* The program as its canonical text, printed and read again. *out is NULL where it takes too many registers. */
static hg_status through_text(const atlas_program *program, char **text, atlas_program **out) {
  atlas_program *canonical = NULL;
  size_t length = 0;
  note(program);
  *text = NULL;
  *out = NULL;
  hg_status status = atlas_canonicalise(NULL, program, &canonical);
  if (status == HG_OK) status = atlas_print(NULL, canonical, text, &length);
  if (status == HG_OK) status = atlas_parse(NULL, *text, length, "canonical", out);
  atlas_program_release(canonical);
  return status == HG_UNSUPPORTED ? HG_OK : status;
}

static failure_kind compare_text(checker *c, const atlas_program *program, const char *text) {
  atlas_program *again = NULL;
  char *text_again = NULL;
  ssa_unit unit;
  hg_array bytes;
  outcome result = {0};
  failure_kind found = FAILURE_NONE;
  if (canonical_bytes(program, &unit, &bytes) != HG_OK || through_text(program, &text_again, &again) != HG_OK ||
      test_launch_run(c->l, c->d, run_reference, program, &result) != HG_OK)
    found = fails(c, FAILURE_TEXT, hg_last_error());
  else if (!same_bytes(&bytes, &c->bytes)) found = fails(c, FAILURE_TEXT, "another canonical form");
  else if (text_again == NULL || strcmp(text, text_again) != 0) found = fails(c, FAILURE_TEXT, "another text");
  else found = compare(c, &result, FAILURE_TEXT);
  outcome_release(&result);
  hg_array_release(&program->allocator, &bytes);
  ir_ssa_release(&unit);
  atlas_memory_release(NULL, text_again);
  atlas_program_release(again);
  return found;
}

static failure_kind check_text(checker *c) {
  atlas_program *program = NULL;
  char *text = NULL;
  failure_kind found = FAILURE_NONE;
  if (through_text(c->program, &text, &program) != HG_OK) found = fails(c, FAILURE_TEXT, hg_last_error());
  else if (program == NULL) c->out->refused = 1;
  else found = compare_text(c, program, text);
  if (found != FAILURE_NONE && program != NULL) keep_text(c, program);
  atlas_memory_release(NULL, text);
  atlas_program_release(program);
  return found;
}

/* Where both runs report the end of a lane, no other fault hides it. */
static int ends_differ(const hg_fault *a, const hg_fault *b) {
  return is_end(a->kind) && is_end(b->kind) && (a->kind != b->kind || a->lane != b->lane || a->code != b->code);
}

static failure_kind compare_other(checker *c, const draft *d, const atlas_program *program) {
  ssa_unit unit;
  hg_array bytes;
  failure_kind found = FAILURE_NONE;
  outcome result = {0};
  char text[400];
  if (canonical_bytes(program, &unit, &bytes) != HG_OK) found = fails(c, FAILURE_ERROR, hg_last_error());
  else if (same_bytes(&bytes, &c->bytes)) {
    if (test_launch_run(c->l, d, run_reference, program, &result) != HG_OK)
      found = fails(c, FAILURE_ERROR, hg_last_error());
    else if (outcome_differs(c->l, d, &c->reference, &result, text, sizeof text)) {
      found = fails(c, FAILURE_OTHER, text);
      keep_text(c, program);
    }
    else if (ends_differ(&c->reference.launch.fault, &result.launch.fault)) {
      found = fails(c, FAILURE_OTHER, "another trap, or in another lane");
      keep_text(c, program);
    }
  }
  outcome_release(&result);
  hg_array_release(&program->allocator, &bytes);
  ir_ssa_release(&unit);
  return found;
}

static failure_kind check_mutants(checker *c, int count) {
  rng r = {.state = c->seed ^ 0xa5};
  for (int n = 0; n < count; n++) {
    draft copy;
    draft_copy(&copy, c->d);
    atlas_program *program = mutate(&r, &copy) ? draft_build(&copy) : NULL;
    failure_kind found = program != NULL ? compare_other(c, &copy, program) : FAILURE_NONE;
    atlas_program_release(program);
    draft_release(&copy);
    if (found != FAILURE_NONE) return found;
  }
  return FAILURE_NONE;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

/* The canonical form once more with other contents of buffers and other scalars. */
static failure_kind check_contents(checker *c, uint64_t number) {
  test_launch other = *c->l;
  checker again = *c;
  again.l = &other;
  other.seed += number;
  other.initial = NULL;
  test_launch_prepare(&other, c->d);
  failure_kind found = FAILURE_NONE;
  if (test_launch_run(&other, c->d, run_reference, c->program, &again.reference) != HG_OK)
    found = fails(c, FAILURE_ERROR, hg_last_error());
  else found = check_unit(&again, &c->canon, FAILURE_CANON);
  outcome_release(&again.reference);
  test_launch_release(&other);
  return found;
}

static failure_kind check_canon(checker *c) {
  failure_kind found = check_unit(c, &c->canon, FAILURE_CANON);
  if (found == FAILURE_NONE) found = check_analysis(c, &c->canon, FAILURE_CANON);
  for (uint64_t n = 1; n < CONTENTS && found == FAILURE_NONE; n++) found = check_contents(c, n);
  return found;
}

static failure_kind check_all(checker *c) {
  failure_kind found = check_raw(c);
  if (found == FAILURE_NONE) found = check_canon(c);
  if (found == FAILURE_NONE) found = check_text(c);
  if (found == FAILURE_NONE) found = check_compiled(c);
  for (uint64_t n = 0; n < REWRITES && found == FAILURE_NONE; n++) found = check_same(c, c->seed + n * 1000003);
  if (found == FAILURE_NONE) found = check_mutants(c, MUTANTS);
  return found != FAILURE_NONE ? found : check_again(c, 1);
}

static failure_kind check_kind(checker *c, const failure *like) {
  failure_kind found = FAILURE_NONE;
  switch (like->kind) {
  case FAILURE_RAW: return check_raw(c);
  case FAILURE_CANON: return check_canon(c);
  case FAILURE_EXPANDED:
  case FAILURE_OPTIMISED:
  case FAILURE_VECTOR:
  case FAILURE_BROKEN:
    found = check_unit(c, &c->canon, FAILURE_CANON); /* for the fault */
    return found == FAILURE_NONE ? check_compiled(c) : found;
  case FAILURE_SAME:
    for (uint64_t n = 0; like->transform == TRANSFORM_COUNT && n < 4 * HARDER && found == FAILURE_NONE; n++)
      found = compare_rewritten(c, c->seed + n % 2 * 1000003 + n / 2);
    if (like->transform == TRANSFORM_COUNT) return found;
    for (uint64_t n = 0; n < HARDER && found == FAILURE_NONE; n++)
      found = check_transform(c, like->transform, c->seed + n);
    return found;
  case FAILURE_OTHER: return check_mutants(c, HARDER * 10);
  case FAILURE_TEXT: return check_text(c);
  case FAILURE_IDEMPOTENCE: return check_again(c, 0);
  case FAILURE_AGAIN: return check_again(c, 1);
  case FAILURE_CRASH: /* of this very program */
    found = check_raw(c);
    if (found == FAILURE_NONE) found = check_canon(c);
  if (found == FAILURE_NONE) found = check_compiled(c);
    return found == FAILURE_NONE ? check_again(c, 1) : found;
  default: return check_all(c);
  }
}

static failure_kind check(const draft *d, const test_launch *l, uint64_t seed, const failure *like, failure *out) {
  checker c = {.d = d, .l = l, .seed = seed, .program = draft_build(d), .out = out};
  if (c.program == NULL) return FAILURE_NOT_VERIFIED;
  failure_kind found;
  if (test_launch_run(l, d, run_reference, c.program, &c.reference) != HG_OK ||
      canonical_bytes(c.program, &c.canon, &c.bytes) != HG_OK)
    found = fails(&c, FAILURE_ERROR, hg_last_error());
  else found = like != NULL ? check_kind(&c, like) : check_all(&c);
  out->faulted = c.reference.launch.fault.kind != HG_FAULT_NONE;
  outcome_release(&c.reference);
  if (c.bytes.element_size != 0) ir_ssa_release(&c.canon);
  hg_array_release(&c.program->allocator, &c.bytes);
  atlas_program_release(c.program);
  return found;
}

failure_kind check_program(const draft *d, const test_launch *l, uint64_t seed, failure *out) {
  return check(d, l, seed, NULL, out);
}

failure_kind check_like(const draft *d, const test_launch *l, uint64_t seed, const failure *like, failure *out) {
  return check(d, l, seed, like, out);
}
