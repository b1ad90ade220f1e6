/* bounds.c - minimum, maximum and clamp with constants: patterns that a target may have an instruction for. */
#include "backend/gpu/plan.h"

#include "atlas/tables.h"
#include "atlas/value.h"

int hg_gpu_is_bound(const gpu_plan *g, uint32_t value, int *is_max) {
  uint8_t type = gpu_insn(g, value)->type;
  if (gpu_insn(g, value)->op != ATLAS_OP_sel) return 0;
  uint32_t test = gpu_arg(g, value, 0), x = gpu_arg(g, value, 1), c = gpu_arg(g, value, 2);
  uint16_t op = gpu_insn(g, test)->op;
  if ((type != ATLAS_f32 && type != ATLAS_f64) || (op != ATLAS_OP_set_lt && op != ATLAS_OP_set_le)) return 0;
  if (gpu_insn(g, c)->op != SSA_CONST || gpu_insn(g, test)->type2 != type) return 0;
  double bound = atlas_to_f64((atlas_type)type, gpu_insn(g, c)->bits);
  int is_min = gpu_arg(g, test, 0) == x && gpu_arg(g, test, 1) == c;
  *is_max = gpu_arg(g, test, 0) == c && gpu_arg(g, test, 1) == x;
  return (bound < 0 || bound > 0) && (is_min || *is_max);
}

/* 1 if an argument of min or max is a constant: that in *bound, the other argument in *of. */
static int has_bound(const gpu_plan *g, uint32_t value, double *bound, uint32_t *of) {
  for (uint32_t i = 0; i < 2; i++) {
    const ssa_insn *c = gpu_insn(g, gpu_arg(g, value, i));
    if (c->op != SSA_CONST) continue;
    *bound = atlas_to_f64((atlas_type)c->type, c->bits);
    *of = gpu_arg(g, value, 1 - i);
    return 1;
  }
  return 0;
}

int hg_gpu_is_bounded(const gpu_plan *g, uint32_t value, gpu_bounds *bounds) {
  uint16_t op = gpu_insn(g, value)->op, other = op == ATLAS_OP_min ? ATLAS_OP_max : ATLAS_OP_min;
  double outer, inner;
  uint32_t of;
  if ((op != ATLAS_OP_min && op != ATLAS_OP_max) || gpu_insn(g, value)->type != ATLAS_f32) return 0;
  if (!has_bound(g, value, &outer, &of) || gpu_insn(g, of)->op != other) return 0;
  if (!has_bound(g, of, &inner, &bounds->x)) return 0;
  bounds->low = op == ATLAS_OP_min ? inner : outer;
  bounds->high = op == ATLAS_OP_min ? outer : inner;
  return bounds->low < bounds->high;
}

int hg_gpu_is_clamp(const gpu_plan *g, uint32_t value, uint32_t *x, double *size) {
  gpu_bounds bounds;
  if (!g->target.bounds || !hg_gpu_is_bounded(g, value, &bounds)) return 0;
  *x = bounds.x;
  *size = bounds.high;
  return bounds.low == -bounds.high;
}
