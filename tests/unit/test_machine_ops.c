/* test_machine_ops.c - machine_ops.def is what it says: of every instruction and type a program is left, behind
 * canonical form and legalisation, with nothing but rows of it, and every row is left by some program; rules and
 * functions are gone by then. Each of these programs runs on the backend under test with the reference machine's bits:
 * on the double of libcuda, that every form of PTX that is printed is one it knows. What no machine has is refused by
 * its name. */
#include "launching.h"
#include "samples.h"

#include "atlas/interp.h"
#include "backend/cuda/ptx/emit_ptx.h"
#include "compiler/canon/canon.h"
#include "compiler/canon/schedule.h"
#include "compiler/expand.h"
#include "compiler/machine_ops.h"
#include "compiler/optimise.h"
#include "compiler/ssa_interp.h"
#include "vector/vector.h"

#include <stdlib.h>

enum { LANES = SAMPLE_SHARED, POOL_BYTES = 4096, BUFFERS = SAMPLE_BUFFERS };

static uint32_t left[MACHINE_OP_COUNT]; /* types that programs were left with */

/* ---- what is left of it ------------------------------------------------------------------------------------------ */

static int is_row(uint16_t op, uint8_t type, int narrow) {
  const machine_row *row = &hg_machine_rows[hg_machine_op(op)];
  uint32_t types = narrow ? row->types | row->narrow : row->types;
  return row->kind != MACHINE_NO_KIND && (types == 0 || types >> type & 1);
}

static uint8_t type_of(const ssa_insn *insn) { return insn->type == SSA_PREDICATE ? insn->type2 : insn->type; }

/* Neither a function nor, of these types, a rule. `expanded`: nothing but rows. */
static void look(const sample *s, const ssa_unit *unit, int expanded) {
  for (uint32_t b = 0; b < unit->blocks.count; b++)
    for (uint32_t e = ssa_block_at(unit, b)->first_effect; e != SSA_NONE; e = ssa_insn_at(unit, e)->next) {
      const ssa_insn *insn = ssa_insn_at(unit, e);
      const atlas_op_info *info = atlas_op_lookup(insn->op);
      int row = is_row(insn->op, type_of(insn), unit->narrow_extremes);
      int is_half = type_of(insn) < ATLAS_TYPE_COUNT && SET_HALF >> type_of(insn) & 1;
      int is_float_of_row = is_half && is_row(insn->op, ATLAS_f32, 0); /* hg_legalise sees to it */
      int ok = row || (!expanded && (info->flags & ATLAS_FUNC || is_float_of_row));
      if (!check_note(ok)) printf("'%s' is left of\n%s", info->mnemonic, s->text);
      if (expanded && row && type_of(insn) < ATLAS_TYPE_COUNT)
        left[hg_machine_op(insn->op)] |= 1u << type_of(insn);
    }
}

static void legalise(const sample *s, const atlas_program *program, int narrow) {
  ssa_unit unit;
  CHECK_EQ_U64(hg_canonicalise(program, NULL, &unit), HG_OK);
  unit.narrow_extremes = (uint8_t)narrow;
  CHECK_EQ_U64(hg_schedule(&unit), HG_OK);
  look(s, &unit, 0);
  hg_unschedule(&unit);
  CHECK_EQ_U64(hg_expand_unplaced(&unit, NULL), HG_OK);
  CHECK_EQ_U64(hg_optimise(program, &unit, NULL), HG_OK);
  CHECK_EQ_U64(hg_check_machine_ops(&unit), HG_OK);
  look(s, &unit, 1);
  ir_ssa_release(&unit);
}

/* ---- on the backend ---------------------------------------------------------------------------------------------- */

typedef struct memory {
  uint8_t of[BUFFERS][LANES * 8];
  uint8_t pool[POOL_BYTES];
} memory;

static const char *const names[BUFFERS] = {"a", "b", "c", "i", "d", "o", "g"};

static void fill(memory *m) {
  uint32_t state = 1;
  memset(m, 0, sizeof *m);
  for (size_t b = 0; b < 5; b++)
    for (size_t k = 0; k < sizeof m->of[b]; k++) m->of[b][k] = (uint8_t)((state = state * 1664525 + 1013904223) >> 24);
  for (uint32_t k = 0; k < LANES; k++) memcpy(m->of[3] + 4 * (size_t)k, &k, 4);
}

static void run_on_reference(const atlas_program *program, memory *m) {
  atlas_argument arguments[ATLAS_MAX_SYMBOLS] = {0};
  static atlas_launch launch;
  launch = (atlas_launch){.lanes = LANES, .arguments = arguments, .step_limit = 100};
  for (size_t b = 0; b < BUFFERS; b++) arguments[b].span = (atlas_span){m->of[b], sizeof m->of[b]};
  arguments[BUFFERS].span = (atlas_span){m->pool, sizeof m->pool};
  CHECK_EQ_U64(atlas_interpret(&program->allocator, program, &launch), HG_OK);
}

static void run_on_backend(const sample *s, memory *m) {
  hg_kernel *kernel = kernel_of(s->text);
  hg_binding bindings[BUFFERS + 1] = {{.name = "heap", .buffer = buffer_of(sizeof m->pool, m->pool)}};
  for (size_t b = 0; b < BUFFERS; b++)
    bindings[b + 1] = (hg_binding){.name = names[b], .buffer = buffer_of(sizeof m->of[b], m->of[b])};
  hg_launch_desc desc = {.size = sizeof desc, .lanes = LANES, .bindings = bindings, .binding_count = BUFFERS + 1};
  hg_status status = kernel == NULL ? HG_UNSUPPORTED : hg_launch(kernel, &desc, NULL);
  if (!check_note(status == HG_OK || status == HG_FAULT)) printf("%s\n%s", hg_last_error(), s->text);
  for (size_t b = 0; b < BUFFERS; b++)
    CHECK_EQ_U64(hg_buffer_read(bindings[b + 1].buffer, 0, m->of[b], sizeof m->of[b]), HG_OK);
  for (size_t b = 0; b <= BUFFERS; b++) hg_buffer_release(bindings[b].buffer);
  hg_kernel_release(kernel);
}

/* Metal has no atomics of 64 bits that give what was there, and says so. */
static int is_refused(const sample *s) {
  return test_backend() == HG_BACKEND_METAL && strncmp(s->info->mnemonic, "atom.", 5) == 0 &&
         atlas_type_bits(s->type) == 64;
}

static void check_is_refused(const sample *s) {
  atlas_program *program = NULL;
  hg_kernel *kernel = NULL;
  char words[80];
  snprintf(words, sizeof words, "Metal has no '%s' of 64 bits", s->info->mnemonic);
  CHECK_EQ_U64(atlas_parse(NULL, s->text, strlen(s->text), "test", &program), HG_OK);
  CHECK_EQ_U64(hg_kernel_create(executor, program, &kernel), HG_UNSUPPORTED);
  if (!check_note(strstr(hg_last_error(), words) != NULL)) printf("%s\n%s", hg_last_error(), s->text);
  atlas_program_release(program);
}

static void try(sample *s, void *user) {
  static memory expected, actual;
  atlas_program *program = NULL;
  (void)user;
  sample_write(s);
  if (!check_note(atlas_parse(NULL, s->text, strlen(s->text), "test", &program) == HG_OK)) {
    printf("%s\n%s", hg_last_error(), s->text);
    return;
  }
  legalise(s, program, 0);
  legalise(s, program, 1);
  if (is_refused(s)) check_is_refused(s);
  else {
    fill(&expected);
    fill(&actual);
    run_on_reference(program, &expected);
    run_on_backend(s, &actual);
    if (!check_note(memcmp(expected.of, actual.of, sizeof expected.of) == 0)) printf("other bits:\n%s", s->text);
  }
  atlas_program_release(program);
}

/* ---- the tables themselves --------------------------------------------------------------------------------------- */

/* A primitive has a row or is control; a function has none; a rule has none of all its types. */
static void test_kinds(const atlas_op_info *info) {
  const machine_row *row = &hg_machine_rows[hg_machine_op(info->op)];
  int has_row = row->kind != MACHINE_NO_KIND, is_prim = (info->flags & ATLAS_PRIM) != 0;
  int is_rule = (info->flags & ATLAS_RULE) != 0, is_function = (info->flags & ATLAS_FUNC) != 0;
  int ok = is_function ? !is_prim && !is_rule : is_prim || is_rule;
  ok &= has_row == (is_prim && !(info->flags & ATLAS_JUMP));
  ok &= ((row->types | row->narrow) & ~info->types) == 0;
  if (has_row) { /* f16 and bf16 are done in f32 */
    uint32_t missing = info->types & ~row->types & ~(uint32_t)SET_HALF;
    ok &= (missing != 0 || (info->types & SET_HALF && !(row->types & SET_REAL))) == is_rule;
  }
  if (!check_note(ok)) printf("'%s': its flags in ops.def and its row in machine_ops.def disagree\n", info->mnemonic);
}

static void test_every_row_is_left(const atlas_op_info *info) {
  const machine_row *row = &hg_machine_rows[hg_machine_op(info->op)];
  uint32_t types = row->types | row->narrow, never = types & ~left[hg_machine_op(info->op)];
  if (!check_note(never == 0)) printf("'%s': no program is left with types %x\n", info->mnemonic, (unsigned)never);
}

/* ---- what no machine has ----------------------------------------------------------------------------------------- */

static const char plain_text[] = ".program plain\n.buffer x f32 in\n.buffer y f32 out\nldg.f32 r0, [x + lane]\n"
                                 "sqrt.f32 r0, r0\nstg.f32 [y + lane], r0\nexit\n";

static void check_refused(uint16_t op, uint8_t type, const char *sentence) {
  atlas_program *program = NULL;
  ssa_unit unit;
  hg_vector vector;
  hg_array text = {.element_size = 1};
  hg_gpu_info info;
  const hg_ptx_options options = {.capability = 90, .name = "plain"};
  CHECK_EQ_U64(atlas_parse(NULL, plain_text, strlen(plain_text), "test", &program), HG_OK);
  CHECK_EQ_U64(hg_canonicalise(program, NULL, &unit), HG_OK);
  CHECK_EQ_U64(hg_expand(&unit, NULL), HG_OK);
  for (uint32_t v = 0; v < unit.insns.count; v++) {
    ssa_insn *insn = ssa_insn_at(&unit, v);
    if (insn->op != ATLAS_OP_sqrt) continue;
    insn->op = op;
    insn->type = type;
  }
  CHECK_EQ_U64(hg_vectorise(program, &unit, &vector), HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(), sentence);
  hg_vector_release(&vector);
  CHECK_EQ_U64(hg_ptx_emit(&program->allocator, program, &unit, &options, &text, &info), HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(), sentence);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

static void check_reference_refuses(void) {
  atlas_program *program = NULL;
  ssa_unit unit;
  uint8_t x[8] = {0}, y[8] = {0};
  const atlas_argument arguments[] = {{.span = {x, sizeof x}}, {.span = {y, sizeof y}}};
  static atlas_launch launch;
  launch = (atlas_launch){.lanes = 2, .arguments = arguments, .step_limit = 100};
  CHECK_EQ_U64(atlas_parse(NULL, plain_text, strlen(plain_text), "test", &program), HG_OK);
  CHECK_EQ_U64(hg_canonicalise(program, NULL, &unit), HG_OK);
  for (uint32_t v = 0; v < unit.insns.count; v++)
    if (ssa_insn_at(&unit, v)->op == ATLAS_OP_sqrt) ssa_insn_at(&unit, v)->op = ATLAS_OP_bra;
  CHECK_EQ_U64(hg_ssa_interpret(&program->allocator, program, &unit, &launch), HG_UNSUPPORTED);
  CHECK_STR(hg_last_error(), "the reference machine has no 'bra'");
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

int main(void) {
  CHECK_EQ_U64(open_test_executor(NULL, &executor), HG_OK);
  for (size_t k = 0; k < atlas_op_count(); k++) {
    const atlas_op_info *info = atlas_op_lookup((uint32_t)atlas_op_at(k));
    test_kinds(info);
    sample_each_type(info, try, NULL);
  }
  for (size_t k = 0; k < atlas_op_count(); k++) test_every_row_is_left(atlas_op_lookup((uint32_t)atlas_op_at(k)));
  check_refused(ATLAS_OP_recip, ATLAS_f32, "no machine has 'recip.f32'");
  check_refused(ATLAS_OP_add, ATLAS_f16, "no machine has 'add.f16'");
  check_refused(0x0fff, ATLAS_f32, "no machine has operation 0x0fff");
  check_reference_refuses();
  hg_executor_release(executor);
  return check_report();
}
