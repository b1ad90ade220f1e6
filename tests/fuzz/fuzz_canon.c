/* fuzz_canon.c - any program that verifies has a canonical form, however strange it is: every pass leaves sound SSA, a
 * second round changes nothing, the program's text has the same form, and functions expand and optimise. */
#include "fuzz.h"

#include "compiler/canon.h"
#include "compiler/expand.h"
#include "compiler/optimise.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  atlas_program *program = NULL;
  ssa_unit unit;
  hg_array bytes, again = {.element_size = 1};
  if (atlas_parse(NULL, (const char *)data, size, "fuzz.atlas", &program) != HG_OK) return 0;
  if (!atlas_program_is_library(program)) {
    canonical(program, &unit, &bytes);
    check_text(program, &bytes);
    PROMISE(hg_canon_passes(program, &unit, &checking) == HG_OK);
    PROMISE(hg_canon_bytes(program, &unit, &again) == HG_OK);
    same(&bytes, &again);
    PROMISE(hg_expand(&unit, NULL) == HG_OK);
    PROMISE(hg_optimise(program, &unit, &checking) == HG_OK);
    PROMISE(ir_ssa_check(&unit) == HG_OK);
    hg_array_release(&unit.allocator, &bytes);
    hg_array_release(&unit.allocator, &again);
    ir_ssa_release(&unit);
  }
  atlas_program_release(program);
  return 0;
}
