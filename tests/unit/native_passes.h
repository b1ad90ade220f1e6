/* native_passes.h - how often the passes of machine code fire on a program (src/backend/cpu/native/passes.def). A test
 * of a path of theirs asserts that its program takes it: wherever it does not, other code gives the same results. It
 * needs no processor of the target's kind. */
#ifndef HG_TESTS_NATIVE_PASSES_H
#define HG_TESTS_NATIVE_PASSES_H

#include "compile.h"

#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/targets.h"
#include "vector/check.h"

typedef struct pass_counts {
  uint32_t fired[NATIVE_PASSES]; /* of the versions that the program has */
} pass_counts;

static inline hg_status add_counts(void *context, const char *version, const native_build *build) {
  pass_counts *counts = context;
  (void)version;
  for (int k = 0; k < NATIVE_PASSES; k++) counts->fired[k] += build->fired[k];
  return HG_OK;
}

static inline hg_status check_after_native(void *context, const native_build *build, const hg_vector *v,
                                           const char *pass, int has_ranges) {
  (void)context;
  hg_status status = hg_native_check(build, v, has_ranges);
  if (!check_note(status == HG_OK)) printf("%s, after %s: %s\n", build->target->engine, pass, hg_last_error());
  return HG_OK;
}

static inline void visit_versions(const char *text, const native_target *target, const native_visitor *visitor) {
  atlas_program *program = parse(text);
  ssa_unit unit;
  hg_vector vector = {0};
  compile(program, OPTIMISED, &unit);
  CHECK_EQ_U64(hg_vectorise(program, &unit, &vector), HG_OK);
  CHECK_EQ_U64(hg_vector_check(program, &vector, NULL, 1), HG_OK);
  hg_status status = hg_native_versions(&vector.allocator, target, program, &vector, visitor);
  if (!check_note(status == HG_OK)) printf("%s: %s\n", target->engine, hg_last_error());
  hg_vector_release(&vector);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

static inline pass_counts count_passes(const char *text, const native_target *target) {
  pass_counts counts = {{0}};
  const native_visitor visitor = {.visit = add_counts, .after = check_after_native, .context = &counts};
  visit_versions(text, target, &visitor);
  return counts;
}

/* That a pass fires on a program for AVX-512. */
static inline void check_fires(const char *text, native_pass pass) {
  pass_counts counts = count_passes(text, &hg_native_avx512);
  if (!check_note(counts.fired[pass] > 0)) printf("pass %d does not fire on\n%s", (int)pass, text);
}

#endif
