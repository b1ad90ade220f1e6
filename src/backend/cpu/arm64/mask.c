/* mask.c - instructions on predicates, moves, comparisons, jumps on masks. */
#include "atlas/tables.h"
#include "backend/cpu/arm64/emit_neon.h"
#include "compiler/machine_ops.h"

#include <stddef.h>

/* ---- predicates as operands -------------------------------------------------------------------------------------- */

static void write_logic(neon_emit *e, a64_op op) {
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++) {
    unsigned a = hg_neon_predicate(e, e->insn->s[0], c, hg_neon_scratch(e, 0));
    unsigned b = hg_neon_predicate(e, e->insn->s[1], c, hg_neon_scratch(e, 1));
    unsigned d = hg_neon_result_register(e, c, 0);
    hg_a64(&e->a, op, 0, d, a, b);
    hg_neon_set_result(e, c, 0, d);
  }
}

static void write_not(neon_emit *e) {
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++) {
    unsigned a = hg_neon_predicate(e, e->insn->s[0], c, hg_neon_scratch(e, 0)), d = hg_neon_result_register(e, c, 0);
    hg_a64(&e->a, A64_not, 0, d, a, 0);
    hg_neon_set_result(e, c, 0, d);
  }
}

static void move_predicate(neon_emit *e, uint32_t from) {
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++)
    hg_neon_set_result(e, c, 0, hg_neon_predicate(e, from, c, hg_neon_scratch(e, 0)));
}

static void write_move(neon_emit *e) {
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++)
    for (uint32_t p = 0; p < hg_neon_parts(e, e->insn->d); p++)
      hg_neon_set_result(e, c, p, hg_neon_source(e, e->insn->s[0], c, p, hg_neon_scratch(e, 0)));
}

static void write_clear(neon_emit *e) {
  for (uint32_t c = 0; c < hg_neon_copies(e, e->insn->d); c++) {
    unsigned d = hg_neon_result_register(e, c, 0);
    hg_a64_constant(&e->a, A64_64B, d, 0);
    hg_neon_set_result(e, c, 0, d);
  }
}

/* Selects in place of the true value, of the false value, or of the predicate: there is an instruction for each. */
static void select_part(neon_emit *e, unsigned d, unsigned mask, unsigned a, unsigned b) {
  if (d == b) hg_a64(&e->a, A64_bit, 0, d, a, mask);
  else if (d == a) hg_a64(&e->a, A64_bif, 0, d, b, mask);
  else {
    hg_a64_move_vector(&e->a, d, mask);
    hg_a64(&e->a, A64_bsl, 0, d, a, b);
  }
}

int hg_neon_select(neon_emit *e) {
  const vector_insn *insn = e->insn;
  int is_64 = hg_neon_is_64(e, insn->d);
  for (uint32_t c = 0; c < hg_neon_copies(e, insn->d); c++)
    for (uint32_t p = 0; p < hg_neon_parts(e, insn->d); p++) {
      unsigned mask = hg_neon_predicate(e, insn->s[0], c, hg_neon_scratch(e, 0));
      if (is_64) mask = hg_neon_mask_part(e, mask, p, hg_neon_scratch(e, 0));
      unsigned a = hg_neon_source(e, insn->s[1], c, p, hg_neon_scratch(e, 1));
      unsigned b = hg_neon_source(e, insn->s[2], c, p, hg_neon_scratch(e, 2)), d = hg_neon_result_register(e, c, p);
      select_part(e, d, mask, a, b);
      hg_neon_set_result(e, c, p, d);
    }
  return 1;
}

/* ---- comparisons ------------------------------------------------------------------------------------------------- */

typedef enum relation { GREATER, GREATER_EQUAL, EQUAL } relation;

static a64_op relation_op(atlas_type type, relation r) {
  static const a64_op ops[3][3] = {{A64_cmgt, A64_cmge, A64_cmeq},   /* signed */
                                   {A64_cmhi, A64_cmhs, A64_cmeq},   /* unsigned */
                                   {A64_fcmgt, A64_fcmge, A64_fcmeq}};
  switch (atlas_kind(type)) {
  case ATLAS_KIND_SINT: return ops[0][r];
  case ATLAS_KIND_UINT: return ops[1][r];
  default: return ops[2][r];
  }
}

/* d = a op b in the elements of one vector; d may be a or b. */
static void compare_part(neon_emit *e, unsigned d, unsigned a, unsigned b, unsigned size) {
  atlas_type type = (atlas_type)e->insn->type2;
  unsigned scratch = hg_neon_scratch(e, 5);
  switch ((machine_compare)hg_machine_op(e->insn->op)) {
  case COMPARE_set_lt: hg_a64(&e->a, relation_op(type, GREATER), size, d, b, a); break;
  case COMPARE_set_le: hg_a64(&e->a, relation_op(type, GREATER_EQUAL), size, d, b, a); break;
  case COMPARE_set_eq: hg_a64(&e->a, relation_op(type, EQUAL), size, d, a, b); break;
  case COMPARE_set_num:
    hg_a64(&e->a, A64_fcmeq, size, scratch, a, a);
    hg_a64(&e->a, A64_fcmeq, size, d, b, b);
    hg_a64(&e->a, A64_and, 0, d, d, scratch);
    break;
  }
}

int hg_neon_compare(neon_emit *e) {
  const vector_insn *insn = e->insn;
  if (!atlas_is_comparison(insn->op)) return 0;
  if (insn->type2 == ATLAS_f16 || insn->type2 == ATLAS_bf16) return 0;
  unsigned size = atlas_bytes((atlas_type)insn->type2) == 8 ? A64_64B : A64_32B;
  unsigned part_of[2] = {hg_neon_scratch(e, 3), hg_neon_scratch(e, 4)};
  for (uint32_t c = 0; c < hg_neon_copies(e, insn->d); c++) {
    unsigned d = hg_neon_result_register(e, c, 0);
    for (uint32_t p = 0; p < (size == A64_64B ? 2u : 1u); p++) {
      unsigned a = hg_neon_source(e, insn->s[0], c, p, hg_neon_scratch(e, 0));
      unsigned b = hg_neon_source(e, insn->s[1], c, p, hg_neon_scratch(e, 1));
      compare_part(e, size == A64_64B ? part_of[p] : d, a, b, size);
    }
    if (size == A64_64B) hg_a64(&e->a, A64_uzp1, A64_32B, d, part_of[0], part_of[1]);
    hg_neon_set_result(e, c, 0, d);
  }
  return 1;
}

/* ---- does any lane? ---------------------------------------------------------------------------------------------- */

/* s0 & mask of one copy. */
static unsigned tested_lanes(neon_emit *e, uint32_t copy) {
  int mask = hg_neon_mask(e, copy, hg_neon_scratch(e, 0));
  uint32_t source = e->insn->s[0];
  if (source == VECTOR_NONE || source == VECTOR_ALL || source == e->insn->mask)
    return mask >= 0 ? (unsigned)mask : hg_neon_predicate(e, VECTOR_ALL, copy, hg_neon_scratch(e, 0));
  unsigned value = hg_neon_predicate(e, source, copy, hg_neon_scratch(e, 1));
  if (mask < 0) return value;
  hg_a64(&e->a, A64_and, 0, hg_neon_scratch(e, 0), value, (unsigned)mask);
  return hg_neon_scratch(e, 0);
}

void hg_neon_test_any(neon_emit *e) {
  unsigned sum = hg_neon_scratch(e, 2), last = 0;
  for (uint32_t c = 0; c < e->copies; c++) {
    unsigned now = tested_lanes(e, c);
    if (c == 0 && e->copies > 1) hg_a64_move_vector(&e->a, sum, now);
    else if (c > 0) hg_a64(&e->a, A64_orr, 0, sum, sum, now);
    last = e->copies > 1 ? sum : now;
  }
  hg_a64(&e->a, A64_umaxp, A64_32B, sum, last, last);
  hg_a64_extract(&e->a, A64_64B, 0, sum, 0);
}

/* ---- steps and traps --------------------------------------------------------------------------------------------- */

/* Adds one to the step counter of the lanes of the mask, or of all lanes. */
static void count_up(neon_emit *e, uint32_t counter, uint32_t mask) {
  vector_insn add = {.op = ATLAS_OP_add, .type = ATLAS_u32, .flags = VECTOR_KEEP, .d = counter, .mask = mask};
  const vector_insn *step = e->insn;
  unsigned one = hg_neon_scratch(e, 1);
  e->insn = &add;
  hg_a64_constant(&e->a, A64_32B, one, 1);
  for (uint32_t c = 0; c < hg_neon_copies(e, counter); c++) {
    unsigned old = hg_neon_source(e, counter, c, 0, hg_neon_scratch(e, 0)), to = hg_neon_result_register(e, c, 0);
    hg_a64(&e->a, A64_add, A64_32B, to, old, one);
    hg_neon_set_result(e, c, 0, to);
  }
  e->insn = step;
}

/* C counts if lanes may run out of steps. */
static void write_step(neon_emit *e) {
  const vector_insn *insn = e->insn;
  int counts = hg_native_counts_steps(e->b->vector);
  if (counts) {
    uint32_t slow = hg_neon_slow_path(e, NEON_ALL_COPIES);
    hg_a64_memory(&e->a, A64_ldr_x, 0, A64_SP, offsetof(native_frame, steps_left));
    hg_a64_jump_zero(&e->a, 0, slow);
    hg_a64_add_imm(&e->a, 0, 0, -1);
    hg_a64_memory(&e->a, A64_str_x, 0, A64_SP, offsetof(native_frame, steps_left));
    count_up(e, insn->s[insn->mask == VECTOR_ALL], insn->mask);
  }
  if (insn->d != VECTOR_NONE) move_predicate(e, insn->mask);
  if (counts) hg_neon_slow_back(e);
}

static void write_trap(neon_emit *e) {
  uint32_t slow = hg_neon_slow_path(e, NEON_ALL_COPIES);
  hg_neon_test_any(e);
  hg_a64_jump_not_zero(&e->a, 0, slow);
  hg_neon_slow_back(e);
}

int hg_neon_logic(neon_emit *e) {
  switch ((machine_logic)hg_machine_op(e->insn->op)) {
  case LOGIC_pand: write_logic(e, A64_and); break;
  case LOGIC_por: write_logic(e, A64_orr); break;
  case LOGIC_pxor: write_logic(e, A64_eor); break;
  case LOGIC_pnot: write_not(e); break;
  }
  return 1;
}

int hg_neon_masks(neon_emit *e) {
  switch (e->insn->op) {
  case VECTOR_AND: write_logic(e, A64_and); return 1;
  case VECTOR_ANDNOT: write_logic(e, A64_bic); return 1;
  case VECTOR_OR: write_logic(e, A64_orr); return 1;
  case VECTOR_MOVE:
    if (e->insn->type == SSA_PREDICATE) move_predicate(e, e->insn->s[0]);
    else write_move(e);
    return 1;
  case VECTOR_CLEAR: write_clear(e); return 1;
  case VECTOR_STEP: write_step(e); return 1;
  case VECTOR_TRAP: write_trap(e); return 1;
  default: return 0;
  }
}
