/* compile.h - small programs through the compiler, for the tests that look at what it makes of them. */
#ifndef HG_TESTS_COMPILE_H
#define HG_TESTS_COMPILE_H

#include "check.h"

#include "compiler/canon/canon.h"
#include "compiler/canon/ssa_print.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"

#include <stdlib.h>

static inline atlas_program *parse(const char *text) {
  atlas_program *program = NULL;
  if (!check_note(atlas_parse(NULL, text, strlen(text), "test", &program) == HG_OK)) {
    printf("%s\n%s", hg_last_error(), text);
    exit(check_report());
  }
  return program;
}

static inline hg_status check_after(void *user, const char *pass, const atlas_program *program, ssa_unit *unit) {
  (void)user;
  (void)program;
  hg_status status = ir_ssa_check(unit);
  if (!check_note(status == HG_OK)) printf("after %s: %s\n", pass, hg_last_error());
  return HG_OK;
}

static const hg_pass_hook checking = {check_after, NULL};

typedef enum compile_stage { CANONICAL, EXPANDED, OPTIMISED } compile_stage;

/* The one stage, of a unit that is through the ones before. */
static inline void compile_further(const atlas_program *program, compile_stage stage, ssa_unit *unit) {
  if (stage == CANONICAL) CHECK_EQ_U64(hg_canonicalise(program, &checking, unit), HG_OK);
  if (stage == EXPANDED) CHECK_EQ_U64(hg_expand(unit, NULL), HG_OK);
  if (stage == OPTIMISED) CHECK_EQ_U64(hg_optimise(program, unit, &checking), HG_OK);
  CHECK_EQ_U64(ir_ssa_check(unit), HG_OK);
}

static inline void compile(const atlas_program *program, compile_stage stage, ssa_unit *unit) {
  for (compile_stage each = CANONICAL; each <= stage; each++) compile_further(program, each, unit);
}

/* The code after the declarations, without the numbers' accidents: values are printed as they come. */
static inline char *compiled_text(const char *text, compile_stage stage) {
  atlas_program *program = parse(text);
  ssa_unit unit;
  hg_array printed = {.element_size = 1};
  compile(program, stage, &unit);
  CHECK_EQ_U64(hg_ssa_print(program, &unit, 1, &printed), HG_OK);
  char *copy = calloc(printed.count + 1, 1);
  memcpy(copy, printed.data, printed.count);
  hg_array_release(&unit.allocator, &printed);
  ir_ssa_release(&unit);
  atlas_program_release(program);
  return copy;
}

static inline void check_code(const char *text, compile_stage stage, const char *expected) {
  char *code = compiled_text(text, stage);
  const char *start = strstr(code, "b0:");
  CHECK(start != NULL);
  if (start != NULL) CHECK_STR(start, expected);
  free(code);
}

#define IO ".buffer x f32 in\n.buffer y f32 out\n.buffer i u32 in\n.buffer o u32 out\n"

static inline unsigned count_words(const char *text, const char *word) {
  unsigned count = 0;
  for (; (text = strstr(text, word)) != NULL; text++) count++;
  return count;
}

#endif
