/* lane_values.c - what a value is in each lane of a block: whether it is the same in all of them, and indices that can
 * be computed from the lane's number and constants. */
#include "backend/cpu/native/vector_passes.h"
#include "backend/cpu/native/loop.h"

#include "atlas/arith.h"

enum { MOST_NODES = 64 }; /* nodes of an expression; a shared one counts each time it is used */

typedef struct evaluation {
  const native_build *b;
  const uint32_t *writer;
  uint64_t lane;
  uint32_t nodes;
} evaluation;

void hg_native_find_writers(const hg_vector *v, uint32_t *writer) {
  for (uint32_t r = 0; r < v->regs.count; r++) writer[r] = VECTOR_NONE;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    uint32_t d = vector_insn_at(v, i)->d;
    if (d < v->regs.count) writer[d] = writer[d] == VECTOR_NONE ? i : VECTOR_ALL;
    for (int k = 0; k < 4 && vector_insn_at(v, i)->op == VECTOR_STEP; k++) { /* it counts in its sources, which it
                                                                                writes */
      uint32_t s = vector_insn_at(v, i)->s[k];
      if (s < v->regs.count) writer[s] = VECTOR_ALL;
    }
  }
}

/* ---- alike ------------------------------------------------------------------------------------------------------- */

static int makes_alike(const hg_vector *v, const uint8_t *alike, const vector_insn *insn) {
  if (insn->op >= ATLAS_OP_reduce_add && insn->op <= ATLAS_OP_reduce_max) return insn->mask == VECTOR_ALL;
  int is_pure = vector_is_primitive(insn->op) ? (atlas_op_flags(insn->op) & ATLAS_PURE) != 0
                                              : insn->op == VECTOR_CANON || insn->op == VECTOR_MOVE;
  if (!is_pure || insn->mask != VECTOR_ALL || insn->op == ATLAS_OP_sreg) return 0;
  for (int k = 0; k < 4; k++)
    if (!hg_native_is_alike(v, insn->s[k], alike)) return 0;
  return 1;
}

void hg_native_find_alike(const hg_vector *v, uint8_t *alike) {
  for (uint32_t r = 0; r < v->regs.count; r++) alike[r] = vector_reg_at(v, r)->kind == VECTOR_VARIES;
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t i = 0; i < v->insns.count; i++) {
      const vector_insn *insn = vector_insn_at(v, i);
      for (int k = 0; k < 4 && insn->op == VECTOR_STEP; k++) /* it counts in its sources, which it writes */
        if (insn->s[k] < VECTOR_ALL) alike[insn->s[k]] = 0;
      if (insn->d >= VECTOR_ALL || !alike[insn->d] || vector_reg_at(v, insn->d)->uniform) continue;
      if (makes_alike(v, alike, insn)) continue;
      alike[insn->d] = 0;
      changed = 1;
    }
  }
}

/* ---- indices ----------------------------------------------------------------------------------------------------- */

static int is_foldable(const vector_insn *insn) {
  switch (insn->op) {
  case VECTOR_MOVE: return 1;
  case ATLAS_OP_sreg: return insn->bits <= ATLAS_COORD_LANE_Z;
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_mul:
  case ATLAS_OP_mad:
  case ATLAS_OP_and:
  case ATLAS_OP_or:
  case ATLAS_OP_xor:
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: return atlas_is_integer((atlas_type)insn->type);
  default: return 0;
  }
}

static uint64_t coordinate_of(const evaluation *e, uint64_t coordinate) {
  const uint32_t *block = e->b->program->block;
  if (coordinate == ATLAS_COORD_LANE_X) return e->lane % block[0];
  return coordinate == ATLAS_COORD_LANE_Y ? e->lane / block[0] % block[1] : e->lane / block[0] / block[1];
}

/* 1 if the value in the lane is known. */
static int evaluate(evaluation *e, uint32_t r, uint64_t *value) {
  uint64_t s[3] = {0};
  if (r >= e->b->vector->regs.count || ++e->nodes > MOST_NODES) return 0;
  const vector_reg *reg = vector_reg_at(e->b->vector, r);
  *value = reg->kind == VECTOR_SPECIAL ? e->lane : reg->bits;
  if (reg->kind == VECTOR_CONSTANT) return 1;
  if (reg->kind == VECTOR_SPECIAL) return reg->bits == ATLAS_REG_BLOCK_LANE;
  if (reg->kind != VECTOR_VARIES || e->writer[r] >= VECTOR_ALL) return 0;
  const vector_insn *insn = vector_insn_at(e->b->vector, e->writer[r]);
  if (insn->mask != VECTOR_ALL || !is_foldable(insn)) return 0;
  for (int k = 0; k < 3; k++)
    if (insn->s[k] != VECTOR_NONE && !evaluate(e, insn->s[k], &s[k])) return 0;
  if (insn->op == ATLAS_OP_sreg) *value = coordinate_of(e, insn->bits);
  else if (insn->op == VECTOR_MOVE) *value = s[0];
  else *value = atlas_arith(insn->op, (atlas_type)insn->type, s[0], s[1], s[2]);
  return 1;
}

int hg_native_find_pattern(const native_build *b, const uint32_t *writer, uint32_t r, native_pattern *window) {
  const uint32_t *block = b->program->block, lanes = b->target->lanes;
  evaluation e = {.b = b, .writer = writer};
  uint64_t first = 0, value, size = (uint64_t)block[0] * block[1] * block[2];
  window->highest = 0;
  if (size == 0 || block[0] % lanes != 0 || vector_reg_at(b->vector, r)->type != ATLAS_u32) return 0;
  for (; e.lane < size; e.lane++) {
    uint32_t l = (uint32_t)(e.lane % lanes);
    e.nodes = 0;
    if (!evaluate(&e, r, &value)) return 0;
    if (l == 0) first = value;
    if (value < first || value - first >= lanes) return 0;
    if (e.lane < lanes) window->place[l] = (uint32_t)(value - first);
    else if (window->place[l] != value - first) return 0;
    if (value > window->highest) window->highest = value;
  }
  return 1;
}

/* ---- strides of whole vectors ------------------------------------------------------------------------------------ */

/* Machine code computes sums and products in all lanes of a vector, whatever the mask, so a register that one such
 * instruction writes has in all of them what its sources have. A move, and what keeps lanes outside the mask, has
 * not. */
void hg_native_find_vector_strides(const native_build *b, const uint32_t *writer, uint8_t *strides) {
  const hg_vector *v = b->vector;
  for (uint32_t r = 0; r < v->regs.count; r++) strides[r] = VECTOR_STRIDE_OTHER;
  for (uint32_t i = 0; i < v->insns.count; i++) {
    const vector_insn *insn = vector_insn_at(v, i);
    uint8_t s[3];
    if (insn->d >= v->regs.count || writer[insn->d] != i || insn->flags & VECTOR_KEEP || insn->op == VECTOR_MOVE)
      continue;
    if (!vector_is_wide_integer(insn->type)) continue;
    for (int k = 0; k < 3; k++) s[k] = hg_native_stride_of(b, strides, insn->s[k]);
    int along_x = insn->bits == ATLAS_COORD_LANE_X || insn->bits == ATLAS_COORD_GLOBAL_X;
    if (insn->op == ATLAS_OP_sreg) strides[insn->d] = along_x ? VECTOR_STRIDE_1 : VECTOR_STRIDE_0;
    else strides[insn->d] = vector_stride_of_result(insn->op, insn->type, insn->type2, s);
  }
}
