/* straight_known.c - constant folding lane by lane while straight-line code is written (straight.c): of values that
 * follow from the lane's number and constants. */
#include "backend/cpu/native/straight.h"

#include "atlas/arith.h"
#include "atlas/tables.h"

/* ---- known bits -------------------------------------------------------------------------------------------------- */

uint32_t hg_straight_add_bits(straight *w, const uint64_t *bits) {
  uint32_t place = (uint32_t)w->bits.count;
  if (hg_array_append(&w->to->allocator, &w->bits, bits, w->lanes) != NULL) return place;
  w->no_memory = 1;
  return 0;
}

/* VECTOR_ALL comes first. */
void hg_straight_begin_known(straight *w) {
  uint64_t bits[STRAIGHT_MOST_LANES];
  for (uint32_t i = 0; i < w->lanes; i++) bits[i] = 1;
  hg_straight_add_bits(w, bits);
  for (uint32_t r = 0; r < w->from->regs.count; r++) {
    const vector_reg *reg = vector_reg_at(w->from, r);
    int is_lane = hg_native_is_blane(w->from, r);
    if (reg->kind != VECTOR_CONSTANT && !is_lane) continue;
    for (uint32_t slice = 0; slice < w->slices; slice++) {
      for (uint32_t i = 0; i < w->lanes; i++) bits[i] = is_lane ? (uint64_t)slice * w->lanes + i : reg->bits;
      uint32_t known = is_lane || slice == 0 ? hg_straight_add_bits(w, bits) : hg_straight_value(w, r, 0)->known;
      hg_straight_value(w, r, slice)->known = known;
    }
  }
}

const uint64_t *hg_straight_bits(const straight *w, uint32_t r, uint32_t slice) {
  const uint64_t *bits = w->bits.data;
  if (r == VECTOR_ALL) return bits;
  uint32_t known = hg_straight_value(w, r, slice)->known;
  return known == VECTOR_NONE ? NULL : bits + known;
}

straight_mask hg_straight_mask(const straight *w, uint32_t mask, uint32_t slice) {
  uint32_t count = 0;
  if (mask == VECTOR_ALL) return STRAIGHT_ALL;
  const uint64_t *bits = hg_straight_bits(w, mask, slice);
  if (bits == NULL) return STRAIGHT_UNKNOWN;
  for (uint32_t i = 0; i < w->lanes; i++) count += bits[i] != 0;
  return count == 0 ? STRAIGHT_NO_LANE : count == w->lanes ? STRAIGHT_ALL : STRAIGHT_SOME;
}

void hg_straight_set_known(straight *w, uint32_t r, uint32_t as, uint32_t slice) {
  *hg_straight_value(w, r, slice) =
      as == VECTOR_ALL ? (straight_value){VECTOR_NONE, 0} : *hg_straight_value(w, as, slice);
}

static int is_foldable(const vector_insn *insn) {
  switch (insn->op) {
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
  default: return atlas_is_comparison(insn->op) && atlas_is_integer((atlas_type)insn->type2);
  }
}

static uint64_t coordinate_of(const straight *w, uint64_t coordinate, uint32_t lane) {
  const uint32_t *block = w->shape;
  if (coordinate == ATLAS_COORD_LANE_X) return lane % block[0];
  return coordinate == ATLAS_COORD_LANE_Y ? lane / block[0] % block[1] : lane / block[0] / block[1];
}

static uint64_t fold_lane(const vector_insn *insn, uint64_t a, uint64_t b, uint64_t c) {
  switch (insn->op) {
  case VECTOR_CLEAR: return 0;
  case VECTOR_ANDNOT: return a & ~b & 1;
  case VECTOR_OR:
  case ATLAS_OP_por: return a | b;
  case ATLAS_OP_pnot: return !a;
  default: break;
  }
  if (insn->type == SSA_PREDICATE) return (uint64_t)atlas_compare(insn->op, (atlas_type)insn->type2, a, b);
  return atlas_arith(insn->op, (atlas_type)insn->type, a, b, c);
}

/* The most frequent operations, by quick loops. 0: another operation. */
static int fold_often(const vector_insn *insn, uint32_t lanes, const uint64_t *a, const uint64_t *b, uint64_t *bits) {
  int adds = insn->op == ATLAS_OP_add && insn->type == ATLAS_u32;
  int is_less = insn->op == ATLAS_OP_set_lt && insn->type2 == ATLAS_u32;
  if (insn->op == VECTOR_AND || insn->op == ATLAS_OP_pand)
    for (uint32_t i = 0; i < lanes; i++) bits[i] = a[i] & b[i];
  else if (adds)
    for (uint32_t i = 0; i < lanes; i++) bits[i] = (uint32_t)(a[i] + b[i]);
  else if (is_less)
    for (uint32_t i = 0; i < lanes; i++) bits[i] = a[i] < b[i];
  else return 0;
  return 1;
}

/* 1 if all lanes read the same values. */
static int is_alike(const straight *w, const vector_insn *insn) {
  for (int k = 0; k < 3; k++)
    if (insn->s[k] < VECTOR_ALL && !vector_reg_at(w->from, insn->s[k])->uniform) return 0;
  return insn->op != ATLAS_OP_sreg;
}

static void fold_lanes(const straight *w, const vector_insn *insn, uint32_t slice, const uint64_t *const s[3],
                       uint64_t *bits) {
  if (fold_often(insn, w->lanes, s[0], s[1], bits)) return;
  uint32_t count = is_alike(w, insn) ? 1 : w->lanes;
  for (uint32_t i = 0; i < count; i++)
    bits[i] = insn->op == ATLAS_OP_sreg ? coordinate_of(w, insn->bits, slice * w->lanes + i)
                                        : fold_lane(insn, s[0][i], s[1][i], s[2][i]);
  for (uint32_t i = count; i < w->lanes; i++) bits[i] = bits[0];
}

int hg_straight_fold(straight *w, const vector_insn *insn, uint32_t slice) {
  uint64_t bits[STRAIGHT_MOST_LANES];
  const uint64_t *s[3];
  if (!is_foldable(insn)) return 0;
  if (insn->flags & VECTOR_KEEP && hg_straight_mask(w, insn->mask, slice) != STRAIGHT_ALL) return 0;
  for (int k = 0; k < 3; k++) {
    s[k] = hg_straight_bits(w, insn->s[k] == VECTOR_NONE ? VECTOR_ALL : insn->s[k], slice);
    if (s[k] == NULL) return 0;
  }
  fold_lanes(w, insn, slice, s, bits);
  *hg_straight_value(w, insn->d, slice) = (straight_value){VECTOR_NONE, hg_straight_add_bits(w, bits)};
  return 1;
}
