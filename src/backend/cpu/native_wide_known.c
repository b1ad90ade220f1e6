/* native_wide_known.c - what is known of each lane while a block is written out (native_wide.c): what follows from its
 * number and constants is computed here. */
#include "backend/cpu/native_wide.h"

#include "atlas/arith.h"
#include "atlas/tables.h"

/* ---- known bits -------------------------------------------------------------------------------------------------- */

int hg_wide_is_known(const wide *w, uint32_t r, uint32_t slice) {
  if (r == VECTOR_ALL) return 1;
  const vector_reg *reg = vector_reg_at(w->from, r);
  if (reg->kind == VECTOR_VARIES) return hg_wide_value(w, r, slice)->known != VECTOR_NONE;
  return reg->kind == VECTOR_CONSTANT || (reg->kind == VECTOR_SPECIAL && reg->bits == ATLAS_REG_BLOCK_LANE);
}

uint64_t hg_wide_bits(const wide *w, uint32_t r, uint32_t slice, uint32_t lane) {
  if (r == VECTOR_ALL) return 1;
  const vector_reg *reg = vector_reg_at(w->from, r);
  if (reg->kind == VECTOR_VARIES) return ((const uint64_t *)w->bits.data)[hg_wide_value(w, r, slice)->known + lane];
  return reg->kind == VECTOR_CONSTANT ? reg->bits : (uint64_t)slice * w->lanes + lane;
}

wide_mask hg_wide_mask(const wide *w, uint32_t mask, uint32_t slice) {
  uint32_t count = 0;
  if (mask == VECTOR_ALL) return WIDE_ALL;
  if (!hg_wide_is_known(w, mask, slice)) return WIDE_UNKNOWN;
  for (uint32_t i = 0; i < w->lanes; i++) count += hg_wide_bits(w, mask, slice, i) != 0;
  return count == 0 ? WIDE_NO_LANE : count == w->lanes ? WIDE_ALL : WIDE_SOME;
}

static int is_foldable(const vector_insn *insn) {
  switch (insn->op) {
  case VECTOR_MOVE:
  case VECTOR_CLEAR:
  case VECTOR_AND:
  case VECTOR_ANDNOT:
  case VECTOR_OR:
  case ATLAS_OP_pand:
  case ATLAS_OP_por:
  case ATLAS_OP_pnot: return 1;
  case ATLAS_OP_add:
  case ATLAS_OP_sub:
  case ATLAS_OP_mul:
  case ATLAS_OP_mad:
  case ATLAS_OP_min:
  case ATLAS_OP_max:
  case ATLAS_OP_and:
  case ATLAS_OP_or:
  case ATLAS_OP_xor:
  case ATLAS_OP_not:
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: return atlas_is_integer((atlas_type)insn->type);
  case ATLAS_OP_sreg: return insn->bits <= ATLAS_COORD_LANE_Z;
  default: return insn->op >= 0x100 && atlas_is_comparison(insn->op) && atlas_is_integer((atlas_type)insn->type2);
  }
}

static uint64_t coordinate_of(const wide *w, uint64_t coordinate, uint32_t lane) {
  const uint32_t *block = w->program->block;
  if (coordinate == ATLAS_COORD_LANE_X) return lane % block[0];
  return coordinate == ATLAS_COORD_LANE_Y ? lane / block[0] % block[1] : lane / block[0] / block[1];
}

static uint64_t fold_lane(const wide *w, const vector_insn *insn, uint32_t at, const uint64_t *s) {
  switch (insn->op) {
  case VECTOR_MOVE: return s[0];
  case VECTOR_CLEAR: return 0;
  case VECTOR_AND:
  case ATLAS_OP_pand: return s[0] & s[1];
  case VECTOR_ANDNOT: return s[0] & ~s[1] & 1;
  case VECTOR_OR:
  case ATLAS_OP_por: return s[0] | s[1];
  case ATLAS_OP_pnot: return !s[0];
  case ATLAS_OP_sreg: return coordinate_of(w, insn->bits, at);
  case ATLAS_OP_add:
    if (insn->type == ATLAS_u32) return (uint32_t)(s[0] + s[1]);
    break;
  case ATLAS_OP_set_lt:
    if (insn->type2 == ATLAS_u32) return s[0] < s[1];
    break;
  default: break;
  }
  if (insn->type == SSA_PREDICATE || atlas_is_comparison(insn->op))
    return (uint64_t)atlas_compare(insn->op, (atlas_type)insn->type2, s[0], s[1]);
  return atlas_arith(insn->op, (atlas_type)insn->type, s[0], s[1], s[2]);
}

/* Where lanes do not differ, one is enough. */
static uint32_t fold_lanes(const wide *w, const vector_insn *insn, uint32_t slice, uint64_t *bits) {
  uint64_t s[3] = {0};
  int is_alike = insn->op != ATLAS_OP_sreg, is_constant[3] = {1, 1, 1};
  for (int k = 0; k < 3; k++) {
    if (insn->s[k] == VECTOR_NONE) continue;
    is_constant[k] = insn->s[k] == VECTOR_ALL || vector_reg_at(w->from, insn->s[k])->kind == VECTOR_CONSTANT;
    is_alike &= is_constant[k] || vector_reg_at(w->from, insn->s[k])->uniform;
    s[k] = hg_wide_bits(w, insn->s[k], slice, 0);
  }
  for (uint32_t i = 0; i < (is_alike ? 1 : w->lanes); i++) {
    for (int k = 0; k < 3; k++)
      if (!is_constant[k]) s[k] = hg_wide_bits(w, insn->s[k], slice, i);
    bits[i] = fold_lane(w, insn, slice * w->lanes + i, s);
  }
  for (uint32_t i = 1; i < w->lanes && is_alike; i++) bits[i] = bits[0];
  return (uint32_t)w->bits.count;
}

int hg_wide_fold(wide *w, const vector_insn *insn, uint32_t slice) {
  uint64_t bits[NATIVE_MOST_LANES];
  if (!is_foldable(insn)) return 0;
  if ((insn->flags & VECTOR_KEEP || insn->op == VECTOR_MOVE) && hg_wide_mask(w, insn->mask, slice) != WIDE_ALL)
    return 0;
  for (int k = 0; k < 3; k++)
    if (insn->s[k] != VECTOR_NONE && !hg_wide_is_known(w, insn->s[k], slice)) return 0;
  *hg_wide_value(w, insn->d, slice) = (wide_value){VECTOR_NONE, fold_lanes(w, insn, slice, bits)};
  if (hg_array_append(&w->to->allocator, &w->bits, bits, w->lanes) == NULL) w->no_memory = 1;
  return 1;
}
