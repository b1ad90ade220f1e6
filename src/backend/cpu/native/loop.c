/* loop.c - finds the loops over memory that get a quick version.
 *
 * In a loop over the rows of a matrix, an index is often uniform in a group of lanes, or has stride 1 across them, in
 * every round, since each round adds the same in all lanes. The index is usually computed by a quotient or remainder of
 * the lane's number, which seldom proves the stride. So the stride is guessed here and checked when a group enters the
 * loop. The quick version computes such an index as one number. */
#include "backend/cpu/native/loop.h"
#include "backend/cpu/engine/cpu_tuning.h"

#include <string.h>

/* 1 if a register may become a scalar. */
static int may_be_scalar(const native_build *b, uint32_t r) {
  if (r >= b->vector->regs.count) return 0;
  const vector_reg *reg = vector_reg_at(b->vector, r);
  return reg->kind == VECTOR_VARIES && vector_is_wide_integer(reg->type) && b->locations[r].kind != NATIVE_NOWHERE &&
         !b->locations[r].is_uniform;
}

/* ---- strides ----------------------------------------------------------------------------------------------------- */

static int is_constant(const native_build *b, uint32_t r, uint64_t *bits) {
  if (r >= b->vector->regs.count || vector_reg_at(b->vector, r)->kind != VECTOR_CONSTANT) return 0;
  *bits = vector_reg_at(b->vector, r)->bits;
  return 1;
}

/* The stride of a result in the lanes of its mask, given its sources' strides; OTHER if one number cannot stand for
 * it. */
static uint8_t stride_in_mask(const native_build *b, const uint8_t *s, const vector_insn *insn) {
  uint64_t count;
  if (!vector_is_wide_integer(insn->type)) return VECTOR_STRIDE_OTHER;
  if (insn->op == ATLAS_OP_shl)
    return s[0] == VECTOR_STRIDE_0 && is_constant(b, insn->s[1], &count) ? VECTOR_STRIDE_0 : VECTOR_STRIDE_OTHER;
  return vector_stride_of_result(insn->op, insn->type, insn->type2, s);
}

static void find_source_strides(const native_build *b, const uint8_t *strides, const vector_insn *insn, uint8_t s[3]) {
  for (int k = 0; k < 3; k++) s[k] = hg_native_stride_of(b, strides, insn->s[k]);
}

/* The same in all lanes. */
static uint8_t stride_of_result(const native_build *b, const uint8_t *strides, const vector_insn *insn) {
  uint8_t s[3];
  if (insn->mask != VECTOR_ALL || insn->flags & VECTOR_KEEP) return VECTOR_STRIDE_OTHER;
  find_source_strides(b, strides, insn, s);
  return stride_in_mask(b, s, insn);
}

/* The likely stride of a value that is computed before the loop. */
static uint8_t guess_stride(const native_build *b, const uint8_t *strides, const vector_insn *insn) {
  uint8_t s[3];
  uint64_t bits;
  find_source_strides(b, strides, insn, s);
  if (atlas_op_flags(insn->op) & ATLAS_LOAD) /* all lanes load one element, so the result is one number */
    return s[0] == VECTOR_STRIDE_0 ? VECTOR_STRIDE_0 : VECTOR_STRIDE_OTHER;
  switch (insn->op) {
  case ATLAS_OP_sreg:
    return insn->bits == ATLAS_COORD_LANE_X || insn->bits == ATLAS_COORD_GLOBAL_X ? VECTOR_STRIDE_1 : VECTOR_STRIDE_0;
  case ATLAS_OP_div:
  case ATLAS_OP_mulhi: /* a quotient by a constant */
  case ATLAS_OP_shr: return s[0] == VECTOR_STRIDE_OTHER ? VECTOR_STRIDE_OTHER : VECTOR_STRIDE_0;
  case ATLAS_OP_rem: return s[0];
  case ATLAS_OP_and: /* a remainder, or a quotient's low part */
    if (is_constant(b, insn->s[1], &bits) && !(bits & 1) && s[0] == VECTOR_STRIDE_1) return VECTOR_STRIDE_0;
    return vector_stride_sum(s[0], s[1]);
  case ATLAS_OP_or:
  case ATLAS_OP_xor:
  case ATLAS_OP_min:
  case ATLAS_OP_max: return vector_stride_sum(s[0], s[1]);
  case ATLAS_OP_sel: return s[1] == s[2] ? s[1] : VECTOR_STRIDE_OTHER;
  case ATLAS_OP_cvt: return vector_is_wide_integer(insn->type2) ? s[0] : VECTOR_STRIDE_OTHER;
  default: return stride_in_mask(b, s, insn);
  }
}

/* Guesses the strides of all registers that are written before the loop. */
static void guess_strides(const native_build *b, uint32_t head, uint8_t *strides) {
  memset(strides, VECTOR_STRIDE_OTHER, b->vector->regs.count);
  for (uint32_t i = 0; i < head; i++) {
    const vector_insn *insn = vector_insn_at(b->vector, i);
    if (insn->d < b->vector->regs.count && vector_is_wide_integer(insn->type))
      strides[insn->d] = guess_stride(b, strides, insn);
  }
}

static int is_minus_1(const native_build *b, const vector_insn *insn, uint32_t r) {
  uint64_t bits;
  return is_constant(b, r, &bits) && bits == atlas_mask((atlas_type)insn->type);
}

/* 1 if the result probably counts down, such as the index of a reversed axis. */
static int counts_down(const native_build *b, const uint8_t *strides, const vector_insn *insn) {
  const uint8_t zero = VECTOR_STRIDE_0, one = VECTOR_STRIDE_1, back = VECTOR_STRIDE_BACK;
  uint8_t s[3];
  find_source_strides(b, strides, insn, s);
  int is_negated = (s[0] == one && is_minus_1(b, insn, insn->s[1])) || (s[1] == one && is_minus_1(b, insn, insn->s[0]));
  switch (insn->op) {
  case ATLAS_OP_neg: return s[0] == one;
  case ATLAS_OP_add: return (s[0] == back && s[1] == zero) || (s[0] == zero && s[1] == back);
  case ATLAS_OP_sub: return (s[0] == zero && s[1] == one) || (s[0] == back && s[1] == zero);
  case ATLAS_OP_mul: return is_negated;
  case ATLAS_OP_mad: return (is_negated && s[2] == zero) || (s[0] == zero && s[1] == zero && s[2] == back);
  default: return 0;
  }
}

/* 1 if the result probably counts lanes: a place for each of some of them, one behind the other. */
static int counts_lanes(const native_build *b, const uint8_t *strides, const vector_insn *insn) {
  uint8_t s[3];
  find_source_strides(b, strides, insn, s);
  switch (insn->op) {
  case ATLAS_OP_scan_incl:
  case ATLAS_OP_scan_excl: return 1;
  case ATLAS_OP_cvt: return s[0] == VECTOR_STRIDE_PACKED;
  case ATLAS_OP_add:
    return (s[0] == VECTOR_STRIDE_PACKED && s[1] == VECTOR_STRIDE_0) ||
           (s[0] == VECTOR_STRIDE_0 && s[1] == VECTOR_STRIDE_PACKED);
  default: return 0;
  }
}

static uint8_t guess_any(const native_build *b, const uint8_t *strides, const vector_insn *insn) {
  if (counts_down(b, strides, insn)) return VECTOR_STRIDE_BACK;
  return counts_lanes(b, strides, insn) ? (uint8_t)VECTOR_STRIDE_PACKED : guess_stride(b, strides, insn);
}

void hg_native_guess(const native_build *b, uint8_t *strides, uint8_t *guesses) {
  memset(strides, VECTOR_STRIDE_OTHER, b->vector->regs.count);
  for (uint32_t i = 0; i < b->vector->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(b->vector, i);
    guesses[i] = VECTOR_STRIDE_OTHER;
    if (atlas_op_flags(insn->op) & (ATLAS_LOAD | ATLAS_STORE))
      guesses[i] = hg_native_stride_of(b, strides, insn->s[0]);
    if (insn->d < b->vector->regs.count && vector_is_wide_integer(insn->type))
      strides[insn->d] = guess_any(b, strides, insn);
  }
}

/* A live-in register keeps its stride if all its writers in the loop produce that stride; a register defined in the
 * loop has the stride of its definition. */
static void check_strides(const native_build *b, const native_loop *loop, uint8_t *strides) {
  for (int round = 0, changed = 1; changed; round++) {
    changed = 0;
    for (uint32_t i = loop->head + 1; i < loop->end; i++) {
      const vector_insn *insn = vector_insn_at(b->vector, i);
      if (!may_be_scalar(b, insn->d)) continue;
      const vector_reg *reg = vector_reg_at(b->vector, insn->d);
      int can_change = b->locations[insn->d].kind != NATIVE_ROW && reg->last <= loop->end;
      uint8_t now = can_change ? stride_of_result(b, strides, insn) : VECTOR_STRIDE_OTHER;
      if (round == 0 && reg->first == i) strides[insn->d] = now;
      else if (now != strides[insn->d] && strides[insn->d] != VECTOR_STRIDE_OTHER) {
        strides[insn->d] = VECTOR_STRIDE_OTHER;
        changed = 1;
      }
    }
  }
}

/* ---- accesses ---------------------------------------------------------------------------------------------------- */

int hg_native_is_quick(const native_build *b, const vector_insn *insn, uint8_t role, uint8_t stride) {
  uint32_t flags = atlas_op_flags(insn->op);
  const int64_t most = NATIVE_GREATEST_DISPLACEMENT;
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || flags & (ATLAS_SPACE_POOL | ATLAS_SPACE_LOCAL)) return 0;
  if (insn->mode != ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY || insn->flags & VECTOR_LANE) return 0;
  if ((int64_t)insn->bits > most || (int64_t)insn->bits < -most || stride == VECTOR_STRIDE_OTHER) return 0;
  if (!(flags & ATLAS_STORE)) return stride == VECTOR_STRIDE_0 || !b->locations[insn->d].is_uniform;
  int is_masked = !(role & NATIVE_TAKES_ALL) && (insn->mask != VECTOR_ALL || b->vector->loses_lanes);
  return stride == VECTOR_STRIDE_1 && (!is_masked || atlas_bytes((atlas_type)insn->type) >= 4);
}

static int reads_one(const vector_insn *insn) {
  if (insn->type != ATLAS_f32 && insn->type != ATLAS_f64) return 0;
  if (insn->mask != VECTOR_ALL || insn->flags & VECTOR_KEEP) return 0;
  return insn->op == ATLAS_OP_fma || insn->op == ATLAS_OP_add || insn->op == ATLAS_OP_sub || insn->op == ATLAS_OP_mul;
}

int hg_native_keeps_one(const native_build *b, const native_loop *loop, uint32_t i) {
  uint32_t d = vector_insn_at(b->vector, i)->d;
  const vector_reg *reg = vector_reg_at(b->vector, d);
  if (b->locations[d].kind != NATIVE_REGISTERS || b->locations[d].is_uniform) return 0;
  if (reg->first != i || reg->last > loop->end) return 0;
  for (uint32_t k = i + 1; k <= reg->last; k++) {
    const vector_insn *insn = vector_insn_at(b->vector, k);
    int reads = insn->mask == d;
    for (int s = 0; s < 4; s++) reads |= insn->s[s] == d;
    if (insn->d == d || (reads && !reads_one(insn))) return 0;
  }
  return 1;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* The last back edge to the label, if no inner loop is between them. There is one back edge for each way through the
 * loop. */
static int find_end(const hg_vector *v, uint32_t head, uint32_t *end) {
  *end = head;
  for (uint32_t i = head + 1; i < v->insns.count && i <= head + CPU_QUICK_LOOP_INSNS; i++)
    if (vector_is_jump(vector_insn_at(v, i)->op) && vector_insn_at(v, i)->target == head) *end = i;
  for (uint32_t i = head + 1; i <= *end; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    if (hg_is_block_op(insn->op)) return 0;
    if (vector_is_jump(insn->op) && insn->target <= i && insn->target != head) return 0;
  }
  return *end > head;
}

const native_scalar *hg_native_scalar_of(const native_loop *loop, uint32_t reg) {
  for (uint32_t k = 0; k < loop->count; k++)
    if (loop->scalar[k].reg == reg) return &loop->scalar[k];
  return NULL;
}

static int is_written(const native_build *b, const native_loop *loop, uint32_t r) {
  for (uint32_t i = loop->head + 1; i < loop->end; i++)
    if (vector_insn_at(b->vector, i)->d == r) return 1;
  return 0;
}

/* 0 if there are too many. */
static int add_scalar(const native_build *b, const uint8_t *strides, native_loop *loop, uint32_t r) {
  if (!may_be_scalar(b, r) || hg_native_scalar_of(loop, r) != NULL) return 1;
  if (loop->count == NATIVE_MOST_SCALARS) return 0;
  loop->scalar[loop->count++] = (native_scalar){.reg = r, .stride = strides[r],
                                                .enters = vector_reg_at(b->vector, r)->first <= loop->head,
                                                .changes = (uint8_t)is_written(b, loop, r)};
  return 1;
}

/* Adds a value that is the same in all lanes and rounds, while there is room. */
static void add_uniform(const native_build *b, native_loop *loop, uint32_t r) {
  if (r >= b->vector->regs.count || loop->count == NATIVE_MOST_SCALARS) return;
  const vector_reg *reg = vector_reg_at(b->vector, r);
  if (reg->kind != VECTOR_VARIES || !vector_is_wide_integer(reg->type) || !b->locations[r].is_uniform) return;
  if (reg->first > loop->head || hg_native_scalar_of(loop, r) != NULL || is_written(b, loop, r)) return;
  loop->scalar[loop->count++] =
      (native_scalar){.reg = r, .stride = VECTOR_STRIDE_0, .enters = 1, .is_uniform = 1};
}

/* Adds the sources that the scalar is computed from. */
static int add_sources(const native_build *b, const uint8_t *strides, native_loop *loop, uint32_t r) {
  for (uint32_t i = loop->head + 1; i < loop->end; i++) {
    const vector_insn *insn = vector_insn_at(b->vector, i);
    for (int s = 0; s < 3 && insn->d == r; s++)
      if (!add_scalar(b, strides, loop, insn->s[s])) return 0;
  }
  return 1;
}

static void add_uniform_sources(const native_build *b, native_loop *loop) {
  for (uint32_t i = loop->head + 1; i < loop->end; i++) {
    const vector_insn *insn = vector_insn_at(b->vector, i);
    const native_scalar *result = hg_native_scalar_of(loop, insn->d);
    for (int s = 0; s < 3 && result != NULL && result->changes; s++) add_uniform(b, loop, insn->s[s]);
  }
}

/* Adds the indices that say which lanes stay. */
static int add_leaving(const native_build *b, const uint8_t *strides, const uint8_t *roles, native_loop *loop) {
  native_leaving leaving;
  for (uint32_t i = loop->head + 1; i < loop->end; i++) {
    if (!(roles[i] & NATIVE_LEAVES) || !hg_native_leaving(b, strides, i, &leaving)) continue;
    if (!add_scalar(b, strides, loop, leaving.counter) || !add_scalar(b, strides, loop, leaving.limit)) return 0;
  }
  return 1;
}

int hg_native_find_loop(const native_build *b, uint32_t head, uint8_t *strides, uint8_t *roles, native_loop *loop) {
  *loop = (native_loop){.head = head, .lanes = VECTOR_NONE};
  if (!find_end(b->vector, head, &loop->end)) return 0;
  guess_strides(b, head, strides);
  check_strides(b, loop, strides);
  loop->has_all = roles != NULL && hg_native_find_masks(b, loop, strides, roles);
  for (uint32_t i = head + 1; i < loop->end; i++) {
    const vector_insn *insn = vector_insn_at(b->vector, i);
    uint8_t role = loop->has_all ? roles[i] : 0;
    if (!may_be_scalar(b, insn->s[0]) || !hg_native_is_quick(b, insn, role, strides[insn->s[0]])) continue;
    if (!add_scalar(b, strides, loop, insn->s[0])) return 0;
  }
  if (loop->count > 0 && loop->has_all && !add_leaving(b, strides, roles, loop)) return 0;
  for (uint32_t k = 0; k < loop->count; k++)
    if (loop->scalar[k].changes && !add_sources(b, strides, loop, loop->scalar[k].reg)) return 0;
  add_uniform_sources(b, loop);
  return loop->count > 0;
}
