/* growth.c - how values grow from block to block, and from lane to lane along x and along y of a block: those who ask
 * want to know of the index of an access which lanes reach neighbours (along_y.c), and what is read next (ahead.c).
 *
 * A value grows as its arguments do, so one pass in the program's order finds out. What a phi or a load gives is not
 * known. */
#include "backend/gpu/plan_passes.h"

#include "compiler/analysis/effects.h"

enum { MOST_FACTOR = 1 << 24 };

static const gpu_growth unknown = {.scalar = SSA_NONE};

static gpu_growth by(uint32_t factor) { return (gpu_growth){factor, SSA_NONE, .is_known = 1, .is_exact = 1}; }

static int stays(gpu_growth a) { return a.is_known && a.factor == 0; }

static gpu_growth of_leaf(const gpu_plan *g, const ssa_insn *insn, gpu_axis along) {
  int is_line = g->program->block[1] == 1 && g->program->block[2] == 1;
  if (insn->op != SSA_SPECIAL) return by(0);
  if (insn->bits == ATLAS_REG_LANE) return unknown;
  if (insn->bits != ATLAS_REG_BLOCK_LANE) return by(insn->bits == ATLAS_REG_BLOCK_INDEX && along == GPU_OF_BLOCK);
  return is_line || along == GPU_OF_BLOCK ? by(along == GPU_OF_X) : unknown;
}

static gpu_growth of_coordinate(uint64_t coordinate, gpu_axis along) {
  static const uint8_t grows[] = {ATLAS_COORD_BLOCK_X, ATLAS_COORD_LANE_X, ATLAS_COORD_LANE_Y};
  return coordinate >= ATLAS_COORD_GLOBAL_X ? unknown : by(coordinate == grows[along]);
}

static gpu_growth sum(gpu_growth a, gpu_growth b) {
  if (!a.is_known || !b.is_known) return unknown;
  if (a.factor == 0 || b.factor == 0) return a.factor == 0 ? b : a;
  if (a.scalar != b.scalar || a.factor + b.factor > MOST_FACTOR) return unknown;
  a.factor += b.factor;
  a.is_exact &= b.is_exact;
  return a;
}

static gpu_growth times(gpu_growth a, uint64_t factor) {
  if (!a.is_known || factor > MOST_FACTOR || a.factor * factor > MOST_FACTOR) return unknown;
  a.factor *= (uint32_t)factor;
  return a;
}

/* Of one that stays the same, whichever that is, and one that may grow. */
static gpu_growth product(const gpu_plan *g, const gpu_growth *of, const uint32_t *arg) {
  int grows = stays(of[arg[0]]);
  uint32_t factor = arg[!grows];
  gpu_growth a = of[arg[grows]];
  if (!a.is_known || a.factor == 0) return a;
  if (gpu_insn(g, factor)->op == SSA_CONST) return times(a, gpu_insn(g, factor)->bits);
  if (gpu_insn(g, factor)->op != SSA_SCALAR || a.scalar != SSA_NONE) return unknown;
  a.scalar = factor;
  return a;
}

static gpu_growth shifted(gpu_growth a, const ssa_insn *bits) {
  return bits->op == SSA_CONST && bits->bits < 32 ? times(a, UINT64_C(1) << bits->bits) : unknown;
}

/* Of an index that must not pass the end. */
static gpu_growth least(gpu_growth a, gpu_growth b) {
  if (!stays(a) && !stays(b)) return unknown;
  if (stays(a)) a = b;
  a.is_exact = 0;
  return a;
}

static gpu_growth of_operation(const gpu_plan *g, uint32_t value, const gpu_growth *of) {
  const ssa_insn *insn = gpu_insn(g, value);
  const uint32_t *arg = ssa_args_of(g->unit, value);
  uint32_t staying = 0;
  for (uint32_t i = 0; i < insn->arg_count; i++) staying += (uint32_t)stays(of[arg[i]]);
  if (!(gpu_flags(g, value) & ATLAS_PURE)) return unknown;
  if (staying == insn->arg_count) return by(0);
  switch (insn->op) {
  case ATLAS_OP_cvt: return of[arg[0]];
  case ATLAS_OP_add: return sum(of[arg[0]], of[arg[1]]);
  case ATLAS_OP_mul: return product(g, of, arg);
  case ATLAS_OP_mad: return sum(product(g, of, arg), of[arg[2]]);
  case ATLAS_OP_shl: return shifted(of[arg[0]], gpu_insn(g, arg[1]));
  case ATLAS_OP_min: return least(of[arg[0]], of[arg[1]]);
  default: return unknown;
  }
}

static void find_along(const gpu_plan *g, gpu_axis along, gpu_growth *of) {
  for (uint32_t v = 0; v < g->unit->insns.count; v++)
    of[v] = hg_is_leaf(gpu_insn(g, v)) ? of_leaf(g, gpu_insn(g, v), along) : unknown;
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t v = ssa_block_at(g->unit, g->order.block[k])->first_effect; v != SSA_NONE; v = gpu_insn(g, v)->next)
      of[v] = gpu_insn(g, v)->op == ATLAS_OP_sreg ? of_coordinate(gpu_insn(g, v)->bits, along) : of_operation(g, v, of);
}

hg_status hg_gpu_find_growth(gpu_plan *g) {
  uint64_t values = g->unit->insns.count;
  if (!g->program->observes_block) return HG_OK;
  gpu_growth *all = hg_allocate(g->allocator, GPU_AXES * values, sizeof *all);
  if (all == NULL) return hg_fail_memory("the plan of a kernel", GPU_AXES * values * sizeof *all);
  for (gpu_axis along = GPU_OF_BLOCK; along < GPU_AXES; along++)
    find_along(g, along, g->growth[along] = all + along * values);
  return HG_OK;
}
