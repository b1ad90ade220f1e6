/* nans.c - where the bits of a NaN are observable, which bits it may have, and where it must be made canonical. */
#include "backend/gpu/plan_passes.h"

#include "atlas/value.h"
#include "compiler/analysis/effects.h"
#include "compiler/analysis/nan_bits.h"

#include <math.h>

static int is_float(uint8_t type) { return gpu_is_narrow(type) || type == ATLAS_f32 || type == ATLAS_f64; }

static uint8_t nan_of_constant(const ssa_insn *insn) {
  int is_nan = isnan(atlas_to_f64((atlas_type)insn->type, insn->bits));
  return is_nan && insn->bits != atlas_canonical_nan((atlas_type)insn->type) ? GPU_NAN_KEPT : GPU_NAN_CANONICAL;
}

/* A minimum or maximum with a constant turns any NaN into a number. A phi is a move, which keeps the bits. */
static hg_nan_use nan_use(const void *plan, uint32_t value, unsigned arg) {
  const gpu_plan *g = plan;
  int is_max;
  return hg_gpu_is_bound(g, value, &is_max) ? HG_NAN_ALIKE : hg_nan_use_of(gpu_insn(g, value)->op, arg);
}

static int is_loose(uint8_t nan) { return nan == GPU_NAN_POSITIVE || nan == GPU_NAN_LOOSE; }

/* 1 if a phi's NaNs are made canonical on its edges instead of where it is used: it chooses between a number, on the
 * usual path, and a value that may be NaN. */
static int is_exact_on_edges(const gpu_plan *g, uint32_t phi) {
  const ssa_insn *insn = gpu_insn(g, phi);
  const uint32_t *from = ssa_block_at(g->unit, insn->block)->predecessors.data;
  int some = 0;
  for (uint32_t i = 0; i < insn->arg_count; i++) {
    if (ssa_dominates(&g->order, insn->block, from[i])) return 0; /* an edge of a loop, where it would be done in every
                                                                     round */
    some |= hg_comes_as_number(g->unit, phi, i);
  }
  return some && g->bits_used[phi];
}

/* Derived from the arguments: for a phi, select or move the greatest of theirs. */
static uint8_t nan_of(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (!is_float(insn->type)) return GPU_NAN_KEPT;
  if (insn->op == SSA_CONST) return nan_of_constant(insn);
  if (hg_is_never_nan(&g->analysis, value)) return GPU_NAN_CANONICAL;
  if (insn->op == SSA_PHI || insn->op == ATLAS_OP_sel) {
    uint8_t most = GPU_NAN_CANONICAL;
    int on_edges = insn->op == SSA_PHI && is_exact_on_edges(g, value);
    for (uint32_t i = insn->op == ATLAS_OP_sel; i < insn->arg_count; i++) {
      uint8_t nan = g->nan[gpu_arg(g, value, i)];
      if (insn->op == SSA_PHI && hg_comes_as_number(g->unit, value, i)) continue;
      if (nan > most && !(on_edges && is_loose(nan))) most = nan;
    }
    return most;
  }
  if (insn->op == ATLAS_OP_cvt) {
    int is_number = atlas_is_integer((atlas_type)insn->type2) || insn->type2 == ATLAS_bool;
    if (is_number) return GPU_NAN_CANONICAL;
    if (gpu_is_narrow(insn->type)) return hg_gpu_rounds_loosely(g, value) ? GPU_NAN_LOOSE : GPU_NAN_CANONICAL;
    return g->target.exact_nans ? GPU_NAN_CANONICAL : GPU_NAN_LOOSE;
  }
  if (hg_is_leaf(insn) || gpu_flags(g, value) & (ATLAS_BITS | ATLAS_LOAD | ATLAS_BLOCK)) return GPU_NAN_KEPT;
  if (g->target.exact_nans) return GPU_NAN_CANONICAL;
  uint32_t x;
  double size;
  int is_positive = g->target.positive_nan && insn->type == ATLAS_f32 && !hg_gpu_is_clamp(g, value, &x, &size);
  return is_positive ? GPU_NAN_POSITIVE : GPU_NAN_LOOSE;
}

/* 1 if its NaN is made canonical where the bits are seen: two at once in a word of a store. */
int hg_gpu_rounds_loosely(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  return insn->op == ATLAS_OP_cvt && insn->type2 == ATLAS_f32 && gpu_has_pairs(g, insn->type);
}

/* Optimistic: from the least element of the lattice up to the fixed point. */
static void find_nans(gpu_plan *g) {
  for (uint32_t v = 0; v < g->unit->insns.count; v++)
    if (hg_is_leaf(gpu_insn(g, v))) g->nan[v] = nan_of(g, v);
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t k = 0; k < g->order.count; k++) {
      const ssa_block *block = ssa_block_at(g->unit, g->order.block[k]);
      for (int list = 0; list < 2; list++)
        for (uint32_t v = list == 0 ? block->first_phi : block->first_effect; v != SSA_NONE; v = gpu_insn(g, v)->next) {
          uint8_t now = nan_of(g, v);
          if (now == g->nan[v]) continue;
          g->nan[v] = now;
          changed = 1;
        }
    }
  }
}

hg_status hg_gpu_find_nans(gpu_plan *g) {
  HG_TRY(hg_find_nan_blind(g->unit, &g->order, NULL, g->nan_blind));
  hg_find_number_casts(g->unit, &g->order, g->analysis.range, g->nan_blind);
  HG_TRY(hg_find_nan_seen(g->unit, &g->order, g->nan_blind, nan_use, g, g->bits_used));
  find_nans(g);
  return HG_OK;
}

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static int keeps_payload(const gpu_plan *g, uint32_t choice) {
  return g->nan[choice] == GPU_NAN_KEPT && g->bits_used[choice];
}

static int sees_bits(const gpu_plan *g, uint32_t user, uint32_t i) {
  const ssa_insn *insn = gpu_insn(g, user);
  if (insn->op == SSA_PHI)
    return !hg_comes_as_number(g->unit, user, i) && (keeps_payload(g, user) || is_exact_on_edges(g, user));
  switch (insn->op) {
  case ATLAS_OP_sel: return keeps_payload(g, user);
  case ATLAS_OP_bitcast: return !g->nan_blind[user];
  case ATLAS_OP_abs:
  case ATLAS_OP_neg: return g->bits_used[user];
  case ATLAS_OP_copysign: /* of the other number only the sign matters */
    return i == 0 ? g->bits_used[user] : g->nan[gpu_arg(g, user, 1)] != GPU_NAN_POSITIVE;
  case ATLAS_OP_reduce_add:
  case ATLAS_OP_reduce_mul:
  case ATLAS_OP_reduce_min:
  case ATLAS_OP_reduce_max:
  case ATLAS_OP_scan_incl:
  case ATLAS_OP_scan_excl: return 1;
  default: return (gpu_flags(g, user) & ATLAS_STORE) != 0 && i == insn->arg_count - 1u;
  }
}

int hg_gpu_asks_exact(const gpu_plan *g, uint32_t user, uint32_t i) {
  uint8_t nan = g->nan[gpu_arg(g, user, i)];
  return is_loose(nan) && sees_bits(g, user, i);
}
