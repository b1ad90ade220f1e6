/* test_vector_check.c - hg_vector_check and hg_native_check: vector programs that a pass might leave if it were wrong.
 * Each is a right program, which they find nothing in, with one thing changed, which has to be found by its sentence.
 */
#include "native_passes.h"

#include "backend/cpu/native/straight.h"
#include "base/error.h"
#include "vector/lower.h"

typedef struct broken {
  const char *after;    /* the pass; "": before all of them */
  const char *text;
  int (*change)(hg_vector *v, native_build *b); /* 0: there is nothing to change */
  const char *sentence; /* part of it */
} broken;

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static const char loop[] = ".program loop\n.buffer x f32 in\n.buffer y f32 out\n.scalar n u32\nmovi.f32 r1, #0\n"
                           "and.u32 r2, blane, n\nadd.u32 r2, r2, #1\nL:\nldg.f32 r3, [x + r2]\nadd.f32 r1, r1, r3\n"
                           "loop r2, L\nstg.f32 [y + lane], r1\nexit\n";

static const char row[] = ".program row\n.block 64\n.buffer x f32 in\n.buffer y f32 out\n.scalar columns u32\n"
                          "sreg.u32 r0, block.x\nmul.u32 r1, r0, columns\nadd.u32 r2, r1, blane\nldg.f32 r3, [x + r2]\n"
                          "ldg.f32 r4, [x + r2 + #64]\nadd.f32 r3, r3, r4\nreduce.add.f32 r5, r3\nsub.f32 r6, r4, r5\n"
                          "scan.incl.f32 r7, r6\nstg.f32 [y + r2], r7\nexit\n";

static const char rounds[] =
    ".program rounds\n.block 16, 4\n.buffer x f32 in\n.buffer y f32 out\n.scalar columns u32\n"
    ".scalar count u32\nsreg.u32 r0, lane.x\nsreg.u32 r1, lane.y\nmad.u32 r4, r1, columns, r0\n"
    "mov.u32 r9, count\nmovi.f32 r8, #0\nL:\nldg.f32 r10, [x + r4]\nadd.f32 r8, r8, r10\n"
    "bar.sync\nadd.u32 r4, r4, #16\nloop r9, L\nstg.f32 [y + lane], r8\nexit\n";

static const char limited[] = ".program limited\n.block 256\n.buffer x f32 in\n.buffer y f32 inout\n.scalar n u32\n"
                              ".shared s f32 256\nldg.f32 r1, [x + lane]\nsts.f32 [s + blane], r1\nbar.sync\n"
                              "set.lt.u32 p0, blane, n\n@!p0 bra L\nsub.u32 r2, #255, blane\nlds.f32 r3, [s + r2]\n"
                              "mul.f32 r3, r3, r1\nstg.f32 [y + lane], r3\nL:\nexit\n";

/* ---- changes ----------------------------------------------------------------------------------------------------- */

static vector_insn *find(hg_vector *v, uint16_t op) {
  for (uint32_t i = 0; i < v->insns.count; i++)
    if (vector_insn_at(v, i)->op == op) return vector_insn_at(v, i);
  return NULL;
}

static vector_insn *find_jump(hg_vector *v) {
  for (uint32_t i = 0; i < v->insns.count; i++)
    if (vector_is_jump(vector_insn_at(v, i)->op)) return vector_insn_at(v, i);
  return NULL;
}

/* The first instruction that writes a register that is read later on. */
static vector_insn *find_result(hg_vector *v) { return find(v, ATLAS_OP_ldg); }

static uint32_t add_register(hg_vector *v, uint8_t type) {
  const vector_reg reg = {.type = type, .kind = VECTOR_VARIES, .last = (uint32_t)v->insns.count, .across = 1};
  CHECK(hg_array_append(&v->allocator, &v->regs, &reg, 1) != NULL);
  return (uint32_t)v->regs.count - 1;
}

#define CHANGE(name, op, statement)                     \
  static int name(hg_vector *v, native_build *b) {      \
    vector_insn *insn = find(v, op);                    \
    (void)b;                                            \
    if (insn == NULL) return 0;                         \
    statement;                                          \
    return 1;                                           \
  }

CHANGE(lose_end, VECTOR_END, v->insns.count--)
CHANGE(go_on_behind_end, ATLAS_OP_ldg, const vector_insn more = *insn;
       CHECK(hg_array_append(&v->allocator, &v->insns, &more, 1) != NULL))
CHANGE(target_of_none, ATLAS_OP_ldg, insn->target = 0)
CHANGE(no_operation, ATLAS_OP_ldg, insn->op = 0x1ff)
CHANGE(lose_operand, ATLAS_OP_add, insn->s[1] = VECTOR_NONE)
CHANGE(one_operand_more, ATLAS_OP_add, insn->s[2] = insn->s[0])
CHANGE(operand_of_none, ATLAS_OP_add, insn->s[0] = (uint32_t)v->regs.count)
CHANGE(all_lanes_as_value, ATLAS_OP_add, insn->s[0] = VECTOR_ALL)
CHANGE(another_type, ATLAS_OP_add, insn->s[0] = add_register(v, ATLAS_f64))
CHANGE(result_of_another_type, ATLAS_OP_ldg, insn->d = add_register(v, ATLAS_u64))
CHANGE(mask_of_numbers, ATLAS_OP_ldg, insn->mask = add_register(v, ATLAS_u32))
CHANGE(index_of_floats, ATLAS_OP_ldg, insn->s[0] = add_register(v, ATLAS_f32))
CHANGE(lose_result, ATLAS_OP_add, insn->d = VECTOR_NONE)
CHANGE(store_gives, ATLAS_OP_stg, insn->d = insn->s[1])
CHANGE(symbol_of_none, ATLAS_OP_ldg, insn->symbol = 200)
CHANGE(symbol_of_another_kind, ATLAS_OP_ldg, insn->symbol = 2)
CHANGE(begin_late, ATLAS_OP_ldg, vector_reg_at(v, insn->d)->first++)
CHANGE(end_early, ATLAS_OP_ldg, vector_reg_at(v, insn->d)->last--)
CHANGE(lower_guard, NATIVE_GUARD_RANGE, insn->bits--)
CHANGE(lower_span, NATIVE_GUARD_LOOP, insn->s[1] = insn->s[0])
CHANGE(guard_scalar, NATIVE_GUARD_RANGE, insn->symbol = 2)
CHANGE(shift_far, NATIVE_SHIFT, insn->bits = 16)
CHANGE(known_beyond, NATIVE_CONST_LANES, insn->bits = b->known.count)
CHANGE(slice_beyond, ATLAS_OP_ldg, insn->slice = 4)
CHANGE(limit_of_lanes, NATIVE_ACTIVE_LANES, insn->s[0] = find(v, ATLAS_OP_sub)->s[1])

static int jump_into_code(hg_vector *v, native_build *b) {
  vector_insn *jump = find_jump(v);
  (void)b;
  if (jump == NULL) return 0;
  jump->target++;
  return 1;
}

static int write_constant(hg_vector *v, native_build *b) {
  vector_insn *insn = find_result(v);
  (void)b;
  if (insn == NULL) return 0;
  vector_reg_at(v, insn->d)->kind = VECTOR_CONSTANT;
  return 1;
}

/* As where a pass has dropped the only instruction that writes it. */
static int read_unwritten(hg_vector *v, native_build *b) {
  vector_insn *insn = find_result(v);
  (void)b;
  if (insn == NULL) return 0;
  insn->d = add_register(v, insn->type);
  return 1;
}

/* Of the sum that each round of the loop reads. */
static int end_in_loop(hg_vector *v, native_build *b) {
  const vector_insn *add = NULL;
  (void)b;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    vector_insn *insn = vector_insn_at(v, i);
    if (insn->op == ATLAS_OP_add && insn->type == ATLAS_f32) add = insn;
    if (insn->op == VECTOR_CANON) insn->s[0] = find(v, ATLAS_OP_ldg)->d;
  }
  uint32_t r = add->s[add->s[0] == find(v, ATLAS_OP_ldg)->d];
  vector_reg_at(v, find(v, ATLAS_OP_ldg)->d)->first = 0;
  vector_reg_at(v, find(v, ATLAS_OP_ldg)->d)->last = (uint32_t)v->insns.count;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (insn->d == r || insn->s[0] == r || insn->s[1] == r) vector_reg_at(v, r)->last = i;
  }
  return 1;
}

static int begin_in_loop(hg_vector *v, native_build *b) {
  vector_insn *load = find(v, ATLAS_OP_ldg);
  (void)b;
  for (uint32_t k = 0; k < v->insns.count; k++)
    if (vector_insn_at(v, k)->op == ATLAS_OP_stg) vector_insn_at(v, k)->s[1] = load->d;
  vector_reg_at(v, load->d)->last = (uint32_t)v->insns.count;
  return 1;
}

static int forget_across(hg_vector *v, native_build *b) {
  (void)b;
  for (uint32_t r = 0; r < v->regs.count; r++) vector_reg_at(v, r)->across = 0;
  return 1;
}

CHANGE(limit_behind, NATIVE_ACTIVE_LANES, const vector_insn limit = *insn; *insn = insn[1]; insn[1] = limit)

static int mix_lanes(hg_vector *v, native_build *b) {
  (void)b;
  vector_insn *insn = find(v, ATLAS_OP_mul);
  vector_reg_at(v, insn->d)->uniform = NATIVE_BLOCK_UNIFORM;
  return 1;
}

static const broken cases[] = {
    {"", loop, lose_end, "the last instruction is not the end"},
    {"", loop, go_on_behind_end, "instructions follow the end"},
    {"", loop, target_of_none, "what is no jump has a target"},
    {"", loop, jump_into_code, "a jump does not lead to a label"},
    {"", loop, no_operation, "there is no such operation"},
    {"", loop, lose_operand, "an operand is missing"},
    {"", loop, one_operand_more, "there is an operand too many"},
    {"", loop, operand_of_none, "an operand is no register"},
    {"", loop, all_lanes_as_value, "all lanes are no operand here"},
    {"", loop, another_type, "an operand is of another type"},
    {"", loop, result_of_another_type, "the result is of another type"},
    {"", loop, mask_of_numbers, "an operand is of another type"},
    {"", loop, index_of_floats, "an index is no integer"},
    {"", loop, lose_result, "the result is no register"},
    {"", loop, store_gives, "there is a result where none can be"},
    {"", loop, write_constant, "a constant is written"},
    {"", loop, symbol_of_none, "an access names no symbol"},
    {"", loop, symbol_of_another_kind, "an access names a symbol of another kind"},
    {"", loop, read_unwritten, "a register is read that nothing has written before"},
    {"", loop, begin_late, "a live range does not hold an instruction"},
    {"", loop, end_early, "a live range does not hold an instruction"},
    {"", loop, end_in_loop, "a live range ends in a loop whose next round reads the value"},
    {"", loop, begin_in_loop, "a live range begins in a loop that lanes leave one by one"},
    {"", row, forget_across, "a value lives across the block's instruction and is not marked"},
    {"range_guards", row, lower_guard, "an access is not in the range of a comparison before it"},
    {"range_guards", row, guard_scalar, "a comparison is of what is no buffer"},
    {"straight", row, shift_far, "lanes shift by what is no distance between them"},
    {"straight", row, known_beyond, "a constant of the lanes lies beyond the table"},
    {"straight", row, slice_beyond, "an instruction is of a slice that is not there"},
    {"indices", rounds, lower_span, "a load by a sum is not in the range of a comparison before it"},
    {"split", limited, limit_of_lanes, "a region's limit is no value of the block"},
    {"split", limited, limit_behind, "a region's limit does not stand where it begins"},
    {"split", limited, mix_lanes, "a value of the block is computed of values of lanes"},
};

/* ---- all --------------------------------------------------------------------------------------------------------- */

static hg_status copy(const hg_vector *v, hg_vector *out) {
  *out = *v;
  out->insns = (hg_array){.element_size = sizeof(vector_insn)};
  out->regs = (hg_array){.element_size = sizeof(vector_reg)};
  if (hg_array_append(&out->allocator, &out->insns, v->insns.data, v->insns.count) == NULL) return HG_OUT_OF_MEMORY;
  return hg_array_append(&out->allocator, &out->regs, v->regs.data, v->regs.count) != NULL ? HG_OK : HG_OUT_OF_MEMORY;
}

static void check_sentence(const broken *one) {
  if (!check_note(strstr(hg_last_error(), one->sentence) != NULL))
    printf("expected '%s', found '%s'\n", one->sentence, hg_last_error());
}

typedef struct search {
  const broken *one;
  int found;
} search;

/* Passes of several versions have the same name: that it is found after one of them is enough. */
static hg_status break_and_check(void *context, const native_build *build, const hg_vector *v, const char *pass,
                                 int has_ranges) {
  search *s = context;
  native_build b = *build;
  hg_vector changed;
  CHECK_EQ_U64(hg_native_check(build, v, has_ranges), HG_OK);
  if (s->found || strcmp(pass, s->one->after) != 0) return HG_OK;
  CHECK_EQ_U64(copy(v, &changed), HG_OK);
  if (s->one->change(&changed, &b)) {
    s->found = hg_native_check(&b, &changed, has_ranges) != HG_OK;
    if (s->found) check_sentence(s->one);
  }
  hg_vector_release(&changed);
  return HG_OK;
}

static hg_status visit(void *context, const char *version, const native_build *build) {
  (void)context;
  (void)version;
  (void)build;
  return HG_OK;
}

static void check_case(const broken *one) {
  atlas_program *program = parse(one->text);
  ssa_unit unit;
  hg_vector vector = {0}, changed;
  search s = {one, 0};
  const native_visitor visitor = {.visit = visit, .after = break_and_check, .context = &s};
  compile(program, OPTIMISED, &unit);
  CHECK_EQ_U64(hg_vectorise(program, &unit, &vector), HG_OK);
  CHECK_EQ_U64(hg_vector_check(program, &vector, NULL, 1), HG_OK);
  if (*one->after != '\0')
    CHECK_EQ_U64(hg_native_versions(&vector.allocator, &hg_native_avx512, program, &vector, &visitor), HG_OK);
  else {
    CHECK_EQ_U64(copy(&vector, &changed), HG_OK);
    CHECK(one->change(&changed, NULL));
    s.found = hg_vector_check(program, &changed, NULL, 1) != HG_OK;
    if (s.found) check_sentence(one);
    hg_vector_release(&changed);
  }
  if (!check_note(s.found)) printf("not found: %s, in a program after '%s'\n", one->sentence, one->after);
  hg_vector_release(&vector);
  ir_ssa_release(&unit);
  atlas_program_release(program);
}

int main(void) {
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) check_case(&cases[k]);
  return check_report();
}
