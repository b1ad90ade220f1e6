/* fuzz_canon.c - any program that verifies has a canonical form, however strange it is: every pass leaves sound SSA, a
 * second round changes nothing, the program's text has the same form, and so has the canonical text, which gives
 * itself; functions expand and optimise. One lane, with which nothing can race, leaves the same memory behind in all
 * these forms as in the reference machine. */
#include "../random/draft.h"
#include "fuzz.h"

#include "compiler/canon/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"
#include "compiler/ssa_interp.h"

static hg_status check_after(void *user, const char *pass, const atlas_program *program, ssa_unit *unit) {
  (void)user;
  (void)pass;
  (void)program;
  PROMISE(ir_ssa_check(unit) == HG_OK);
  return HG_OK;
}

static const hg_pass_hook checking = {check_after, NULL};

static void canonical(const atlas_program *program, ssa_unit *unit, hg_array *bytes) {
  *bytes = (hg_array){.element_size = 1};
  PROMISE(hg_canonicalise(program, &checking, unit) == HG_OK);
  PROMISE(hg_canon_bytes(program, unit, bytes) == HG_OK);
}

static void same(const hg_array *a, const hg_array *b) {
  PROMISE(a->count == b->count && memcmp(a->data, b->data, a->count) == 0);
}

static void check_text(const atlas_program *program, const hg_array *bytes) {
  char *text = NULL;
  size_t length = 0;
  atlas_program *again = NULL;
  ssa_unit unit;
  hg_array other;
  PROMISE(atlas_print(NULL, program, &text, &length) == HG_OK);
  PROMISE(atlas_parse(NULL, text, length, "printed", &again) == HG_OK);
  canonical(again, &unit, &other);
  same(bytes, &other);
  hg_array_release(&unit.allocator, &other);
  ir_ssa_release(&unit);
  atlas_program_release(again);
  atlas_memory_release(NULL, text);
}

/* The canonical text: the same form, and the same text again. */
static void check_canonical_text(const atlas_program *program, const hg_array *bytes) {
  char *text = NULL, *again = NULL;
  size_t length = 0;
  atlas_program *made = NULL, *read = NULL, *remade = NULL;
  hg_status status = atlas_canonicalise(NULL, program, &made);
  PROMISE(status == HG_OK || status == HG_UNSUPPORTED); /* too many registers */
  if (status != HG_OK) return;
  PROMISE(atlas_print(NULL, made, &text, &length) == HG_OK);
  PROMISE(atlas_parse(NULL, text, length, "canonical", &read) == HG_OK);
  check_text(read, bytes);
  PROMISE(atlas_canonicalise(NULL, read, &remade) == HG_OK);
  PROMISE(atlas_print(NULL, remade, &again, NULL) == HG_OK);
  PROMISE(strcmp(text, again) == 0);
  atlas_memory_release(NULL, again);
  atlas_memory_release(NULL, text);
  atlas_program_release(made);
  atlas_program_release(read);
  atlas_program_release(remade);
}

/* ---- one lane ---------------------------------------------------------------------------------------------------- */

enum { BYTES = 200, STEPS = 20 };

typedef struct scene {
  const atlas_program *program;
  const ssa_unit *unit; /* NULL: the reference machine */
  draft d;
  test_launch l;
  outcome reference;
} scene;

static hg_status run_scene(const void *context, atlas_launch *launch) {
  const scene *s = context;
  if (s->unit == NULL) return atlas_interpret(&s->program->allocator, s->program, launch);
  return hg_ssa_interpret(&s->program->allocator, s->program, s->unit, launch);
}

static int is_simple(const atlas_program *program) {
  if (program->symbols.count > DRAFT_SYMBOLS || program->constants.count > DRAFT_CONST_BYTES) return 0;
  for (size_t i = 0; i < program->symbols.count; i++) {
    const atlas_symbol *symbol = atlas_symbol_at(program, i);
    if (symbol->kind == ATLAS_SYMBOL_TABLE && symbol->count > DRAFT_TABLE_ENTRIES) return 0;
  }
  return program->block[0] <= 1 && program->block[1] <= 1 && program->block[2] <= 1;
}

static int uses_boundary(const atlas_program *program) {
  for (size_t i = 0; i < program->insns.count; i++)
    for (size_t k = 0; k < sizeof(((atlas_insn *)0)->operand) / sizeof(atlas_operand); k++) {
      const atlas_operand *operand = &atlas_insn_at(program, i)->operand[k];
      if (operand->kind == ATLAS_OPERAND_MEM && operand->mode == ATLAS_ADDRESS_PHI) return 1;
    }
  return 0;
}

static void open_scene(scene *s, const atlas_program *program) {
  *s = (scene){.program = program};
  draft_from_program(&s->d, program);
  s->l = (test_launch){.lane_count = 1, .step_limit = STEPS, .seed = 1, .uses_boundary = uses_boundary(program)};
  for (int i = 0; i < 3; i++) s->l.grid[i] = s->l.block[i] = 1;
  for (uint32_t i = 0; i < s->d.symbol_count; i++) {
    s->l.bytes[i] = BYTES;
    for (int k = 0; k < DRAFT_TABLE_ENTRIES; k++) s->l.entry_bytes[i][k] = k % 2 ? UINT64_MAX : BYTES;
  }
  test_launch_prepare(&s->l, &s->d);
  PROMISE(test_launch_run(&s->l, &s->d, run_scene, s, &s->reference) == HG_OK);
}

static void close_scene(scene *s) {
  outcome_release(&s->reference);
  test_launch_release(&s->l);
  draft_release(&s->d);
}

static void check_run(scene *s, const ssa_unit *unit) {
  outcome now;
  char text[400];
  s->unit = unit;
  PROMISE(test_launch_run(&s->l, &s->d, run_scene, s, &now) == HG_OK);
  int differs = outcome_differs(&s->l, &s->d, &s->reference, &now, text, sizeof text);
  if (differs) fprintf(stderr, "%s\n", text);
  PROMISE(!differs);
  outcome_release(&now);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static void check_forms(scene *s, const atlas_program *program) {
  ssa_unit unit;
  hg_array bytes, again = {.element_size = 1};
  canonical(program, &unit, &bytes);
  check_text(program, &bytes);
  check_canonical_text(program, &bytes);
  if (s != NULL) check_run(s, &unit);
  PROMISE(hg_canon_passes(program, &unit, &checking) == HG_OK);
  PROMISE(hg_canon_bytes(program, &unit, &again) == HG_OK);
  same(&bytes, &again);
  PROMISE(hg_expand(&unit, NULL) == HG_OK);
  PROMISE(hg_optimise(program, &unit, &checking) == HG_OK);
  PROMISE(ir_ssa_check(&unit) == HG_OK);
  if (s != NULL) check_run(s, &unit);
  hg_array_release(&unit.allocator, &bytes);
  hg_array_release(&unit.allocator, &again);
  ir_ssa_release(&unit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static scene s; /* large */
  atlas_program *program = NULL;
  if (atlas_parse(NULL, (const char *)data, size, "fuzz.atlas", &program) != HG_OK) return 0;
  int runs = !atlas_program_is_library(program) && is_simple(program);
  if (runs) open_scene(&s, program);
  if (!atlas_program_is_library(program)) check_forms(runs ? &s : NULL, program);
  if (runs) close_scene(&s);
  atlas_program_release(program);
  return 0;
}
