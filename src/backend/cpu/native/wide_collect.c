/* wide_collect.c - reductions and votes of a block expanded (wide.c): by halves, as the ISA has it, between slices and
 * then between lanes of the first. */
#include "backend/cpu/native/wide.h"
#include "vector/lower.h"

static uint32_t append_combination(wide *w, uint16_t op, uint32_t like, uint32_t a, uint32_t b) {
  const vector_reg reg = *vector_reg_at(w->to, like);
  vector_insn insn = vector_insn_of(op, VECTOR_ALL);
  insn.type = reg.type;
  insn.d = hg_wide_add_register(w, &(vector_reg){.kind = VECTOR_VARIES, .type = reg.type});
  insn.s[0] = a;
  insn.s[1] = b;
  hg_wide_append(w, &insn);
  return insn.d;
}

/* Lane i of the result is lane i + distance, or 0 in all lanes where that is 0. */
static uint32_t shift_lanes(wide *w, uint32_t from, uint32_t distance) {
  uint32_t d = append_combination(w, NATIVE_PERMUTE, from, from, VECTOR_NONE);
  uint64_t lanes = 0;
  for (uint32_t i = 0; i < w->lanes && distance > 0; i++) lanes |= (uint64_t)((i + distance) % w->lanes) << 4 * i;
  if (!w->no_memory) vector_insn_at(w->to, (uint32_t)w->to->insns.count - 1)->bits = lanes;
  return d;
}

/* The reduction in all lanes. `part`: a register of each slice; overwritten. */
static uint32_t reduce_slices(wide *w, uint16_t op, uint32_t *part) {
  uint32_t half = 1;
  while (half < w->slices) half *= 2;
  for (half /= 2; half >= 1; half /= 2)
    for (uint32_t i = 0; i < half && i + half < w->slices; i++)
      part[i] = append_combination(w, op, part[i], part[i], part[i + half]);
  for (half = w->lanes / 2; half >= 1; half /= 2)
    part[0] = append_combination(w, op, part[0], part[0], shift_lanes(w, part[0], half));
  return shift_lanes(w, part[0], 0);
}

/* blane has another value in each slice. */
static uint32_t source_of(wide *w, uint32_t r, uint32_t slice) {
  uint32_t reg = hg_wide_register(w, r, slice);
  if (reg != w->blane) return reg;
  reg = append_combination(w, VECTOR_MOVE, reg, reg, VECTOR_NONE);
  if (!w->no_memory) vector_insn_at(w->to, (uint32_t)w->to->insns.count - 1)->slice = slice;
  return reg;
}

/* A vote is one of numbers: the greatest, or the least. */
static uint32_t vote(wide *w, uint16_t op, uint32_t *part) {
  vector_insn choose = vector_insn_of(ATLAS_OP_sel, VECTOR_ALL), test = vector_insn_of(ATLAS_OP_set_ne, VECTOR_ALL);
  choose.type = test.type2 = ATLAS_u32;
  choose.s[1] = hg_wide_constant(w, ATLAS_u32, 1);
  choose.s[2] = test.s[1] = hg_wide_constant(w, ATLAS_u32, 0);
  for (uint32_t slice = 0; slice < w->slices; slice++) {
    choose.s[0] = part[slice];
    choose.d = part[slice] = hg_wide_add_register(w, &(vector_reg){.kind = VECTOR_VARIES, .type = ATLAS_u32});
    hg_wide_append(w, &choose);
  }
  test.s[0] = reduce_slices(w, op, part);
  test.type = SSA_PREDICATE;
  test.d = hg_wide_add_register(w, &(vector_reg){.kind = VECTOR_VARIES, .type = SSA_PREDICATE});
  hg_wide_append(w, &test);
  return test.d;
}

int hg_wide_expand_collective(wide *w, uint32_t i) {
  static const uint16_t ops[4] = {ATLAS_OP_add, ATLAS_OP_mul, ATLAS_OP_min, ATLAS_OP_max};
  const vector_insn *insn = vector_insn_at(w->from, i);
  uint32_t part[CPU_TILE_LANES] = {0}, result;
  int is_vote = insn->op == ATLAS_OP_vote_any || insn->op == ATLAS_OP_vote_all;
  int is_reduction = insn->op >= ATLAS_OP_reduce_add && insn->op <= ATLAS_OP_reduce_max;
  if (insn->mask != VECTOR_ALL || insn->d == VECTOR_NONE || insn->s[0] >= VECTOR_ALL) return 0;
  if (is_reduction && insn->type != ATLAS_f32 && insn->type != ATLAS_u32 && insn->type != ATLAS_i32) return 0;
  if (!is_vote && !is_reduction) return 0;
  for (uint32_t slice = 0; slice < w->slices; slice++) part[slice] = source_of(w, insn->s[0], slice);
  if (w->no_memory) return 0;
  if (is_vote) result = vote(w, insn->op == ATLAS_OP_vote_any ? ATLAS_OP_max : ATLAS_OP_min, part);
  else result = reduce_slices(w, ops[insn->op - ATLAS_OP_reduce_add], part);
  if (insn->type == ATLAS_f32 && is_reduction)
    result = append_combination(w, VECTOR_CANON, result, result, VECTOR_NONE);
  for (uint32_t slice = 0; slice < w->slices; slice++) hg_wide_set(w, insn->d, slice, result);
  return 1;
}
