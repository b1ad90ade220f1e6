/* affine.c - computes slopes in one pass over a unit, and splits sums into terms. The slope of a phi or a load is
 * unknown. */
#include "compiler/analysis/affine.h"

#include "atlas/tables.h"

enum { MOST_FACTOR = 1 << 24 };

static const hg_slope unknown = {.by = SSA_NONE};

static hg_slope exactly(uint32_t factor) { return (hg_slope){factor, SSA_NONE, HG_EXACT}; }

static int stays(hg_slope a) { return a.certainty != HG_UNKNOWN && a.factor == 0; }

static hg_slope at_most(hg_slope a, uint8_t certainty) {
  if (a.certainty > certainty) a.certainty = certainty;
  return a;
}

/* ---- where a lane is --------------------------------------------------------------------------------------------- */

static hg_slope of_leaf(const ssa_insn *insn, const uint32_t block[3], hg_axis along) {
  int is_line = block[1] == 1 && block[2] == 1, by_block = along == HG_ALONG_BLOCKS;
  if (insn->op != SSA_SPECIAL) return exactly(0);
  if (insn->bits == ATLAS_REG_LANE) return unknown;
  if (insn->bits != ATLAS_REG_BLOCK_LANE) return exactly(insn->bits == ATLAS_REG_BLOCK_INDEX && by_block);
  return is_line || by_block ? exactly(along == HG_ALONG_X) : unknown;
}

static hg_slope of_coordinate(uint64_t coordinate, hg_axis along) {
  static const uint8_t grows[] = {ATLAS_COORD_BLOCK_X, ATLAS_COORD_LANE_X, ATLAS_COORD_LANE_Y};
  return coordinate >= ATLAS_COORD_GLOBAL_X ? unknown : exactly(coordinate == grows[along]);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static hg_slope sum(hg_slope a, hg_slope b) {
  if (a.certainty == HG_UNKNOWN || b.certainty == HG_UNKNOWN) return unknown;
  if (a.factor == 0 || b.factor == 0) return a.factor == 0 ? b : a;
  if (a.by != b.by || a.factor + b.factor > MOST_FACTOR) return unknown;
  a.factor += b.factor;
  return at_most(a, b.certainty);
}

static hg_slope times(hg_slope a, uint64_t factor) {
  if (a.certainty == HG_UNKNOWN || factor > MOST_FACTOR || a.factor * factor > MOST_FACTOR) return unknown;
  a.factor *= (uint32_t)factor;
  return a;
}

/* Product of an invariant and a growing value, in either order. */
static hg_slope product(const ssa_unit *unit, const hg_slope *of, const uint32_t *arg) {
  int grows = stays(of[arg[0]]);
  const ssa_insn *factor = ssa_insn_at(unit, arg[!grows]);
  hg_slope a = of[arg[grows]];
  if (stays(a)) return a;
  if (factor->op == SSA_CONST) return times(a, factor->bits);
  if (factor->op != SSA_SCALAR || a.by != SSA_NONE) return unknown;
  a.by = arg[!grows];
  return a;
}

static hg_slope shifted(hg_slope a, const ssa_insn *bits) {
  return bits->op == SSA_CONST && bits->bits < 32 ? times(a, UINT64_C(1) << bits->bits) : unknown;
}

static hg_slope converted(hg_slope a, const ssa_insn *insn) {
  if (!atlas_is_integer((atlas_type)insn->type) || !atlas_is_integer((atlas_type)insn->type2)) return unknown;
  return atlas_bytes((atlas_type)insn->type) > atlas_bytes((atlas_type)insn->type2) ? at_most(a, HG_LIKELY) : a;
}

/* Minimum of an index and a bound that it must not pass. */
static hg_slope least(hg_slope a, hg_slope b) {
  if (!stays(a) && !stays(b)) return unknown;
  return at_most(stays(a) ? b : a, HG_CLAMPED);
}

static hg_slope of_operation(const ssa_unit *unit, const hg_slope *of, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  const uint32_t *arg = ssa_args_of(unit, value);
  uint32_t staying = 0;
  if (!(atlas_op_flags(insn->op) & ATLAS_PURE)) return unknown;
  for (uint32_t i = 0; i < insn->arg_count; i++) staying += (uint32_t)stays(of[arg[i]]);
  if (staying == insn->arg_count) return exactly(0);
  switch (insn->op) {
  case ATLAS_OP_cvt: return converted(of[arg[0]], insn);
  case ATLAS_OP_add: return sum(of[arg[0]], of[arg[1]]);
  case ATLAS_OP_mul: return product(unit, of, arg);
  case ATLAS_OP_mad: return sum(product(unit, of, arg), of[arg[2]]);
  case ATLAS_OP_shl: return shifted(of[arg[0]], ssa_insn_at(unit, arg[1]));
  case ATLAS_OP_min: return least(of[arg[0]], of[arg[1]]);
  default: return unknown;
  }
}

void hg_find_slopes(const ssa_unit *unit, const ssa_order *order, const uint32_t block[3], hg_axis along,
                    hg_slope *of) {
  for (uint32_t v = 0; v < unit->insns.count; v++)
    of[v] = hg_is_leaf(ssa_insn_at(unit, v)) ? of_leaf(ssa_insn_at(unit, v), block, along) : unknown;
  for (uint32_t k = 0; k < order->count; k++)
    for (uint32_t v = ssa_block_at(unit, order->block[k])->first_effect; v != SSA_NONE; v = ssa_insn_at(unit, v)->next)
      of[v] = ssa_insn_at(unit, v)->op == ATLAS_OP_sreg ? of_coordinate(ssa_insn_at(unit, v)->bits, along)
                                                        : of_operation(unit, of, v);
}

/* ---- terms ------------------------------------------------------------------------------------------------------- */

uint32_t hg_take_terms(const ssa_unit *unit, uint32_t sum, int (*is_term)(const void *context, uint32_t value),
                       const void *context, hg_terms *terms) {
  for (*terms = (hg_terms){.count = 0}; terms->count + terms->products < HG_MOST_TERMS;) {
    const ssa_insn *insn = ssa_insn_at(unit, sum);
    const uint32_t *arg = ssa_args_of(unit, sum);
    int is_product = insn->op == ATLAS_OP_mad;
    if ((insn->op != ATLAS_OP_add && !is_product) || !atlas_is_integer((atlas_type)insn->type)) break;
    int first = is_term(context, arg[0]), second = is_term(context, arg[1]);
    if (is_product ? !first || !second : !first && !second) break;
    if (is_product) terms->products++;
    else terms->value[terms->count++] = arg[!first];
    sum = arg[is_product ? 2 : first];
  }
  return sum;
}
