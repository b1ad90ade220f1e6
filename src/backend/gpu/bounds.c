/* bounds.c - recognises minimum, maximum and clamp with constants, for which a target may have an instruction. */
#include "backend/gpu/plan.h"

#include "atlas/value.h"
#include "compiler/clamp.h"

int hg_gpu_is_bound(const gpu_plan *g, uint32_t value, int *is_max) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (insn->op != ATLAS_OP_sel || (insn->type != ATLAS_f32 && insn->type != ATLAS_f64)) return 0;
  uint32_t by = gpu_arg(g, value, 0), constant = gpu_arg(g, value, 2);
  const ssa_insn *test = gpu_insn(g, by), *bound = gpu_insn(g, constant);
  if (test->arg_count != 2 || test->type2 != insn->type || bound->op != SSA_CONST) return 0;
  hg_choice choice = hg_choice_of(test->op, gpu_arg(g, by, 0), gpu_arg(g, by, 1), gpu_arg(g, value, 1), constant);
  *is_max = choice == HG_CHOICE_GREATER;
  return choice != HG_CHOICE_OTHER && hg_is_bound(insn->type, bound->bits);
}

/* 1 if an argument of min or max is a constant: *bound is the constant, *of the other argument. */
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
