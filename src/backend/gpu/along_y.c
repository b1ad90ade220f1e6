/* along_y.c - blocks whose warps lie along y, and blocks that are spread over several multiprocessors.
 *
 * Which lanes make up a warp is the kernel's business. In a block of X x 32 lanes whose accesses are x * (something) +
 * y, a warp of neighbouring numbers would read X places far apart; one of the 32 lanes of an x reads neighbours. And
 * since lanes fold from the top bit of their number, which is y's, a warp that lies along y folds all of its lanes by
 * itself, and one value a warp is left to exchange. So little that the warps may be on different multiprocessors
 * (a cluster of blocks of the device, which write into each other's shared memory): a block then has the registers of
 * all of them, where 1024 lanes would have 64 each of one. That pays where lanes hold much: rows of 131072 columns, 128
 * a lane (ops/rows_held.c has the figures). Of the parts' threads many must wait for memory side by side: with 128
 * registers, of which softmax spills 21, a multiprocessor has four parts of 128 lanes, and it takes 770 us; with the
 * 168 that the driver takes three, and 1000.
 *
 * Both are for blocks that have nothing else in common: no shared memory, barriers, pools, votes; whose lanes all come
 * to the end; and which are always whole. */
#include "backend/gpu/plan.h"

#include "compiler/schedule.h"

enum {
  UNKNOWN = INT32_MIN,
  MOST_FACTOR = 1 << 24,
  REGISTERS = 128,  /* of a thread, at most: some are spilled, but more warps wait for memory side by side */
  PART_LANES = 128, /* of a part, at least */
  BESIDE_VALUES = 16
};

/* How an index grows along an axis of the block: by value. */
typedef struct growth {
  const gpu_plan *g;
  int32_t *along[2]; /* x, y; UNKNOWN */
} growth;

static int32_t grown(const growth *w, int axis, uint32_t value) {
  const ssa_insn *insn = gpu_insn(w->g, value);
  if (!hg_is_leaf(insn)) return w->along[axis][value];
  int is_of_lane = insn->op == SSA_SPECIAL && (insn->bits == ATLAS_REG_BLOCK_LANE || insn->bits == ATLAS_REG_LANE);
  return is_of_lane ? UNKNOWN : 0;
}

static int32_t in_range(int64_t factor) {
  return factor > MOST_FACTOR || factor < -MOST_FACTOR ? UNKNOWN : (int32_t)factor;
}

static int32_t sum(int32_t a, int32_t b) {
  return a == UNKNOWN || b == UNKNOWN ? UNKNOWN : in_range((int64_t)a + b);
}

static int32_t product(const growth *w, int axis, uint32_t a, uint32_t b) {
  int32_t of[2] = {grown(w, axis, a), grown(w, axis, b)};
  if (of[0] == 0 && of[1] == 0) return 0;
  for (int i = 0; i < 2; i++) {
    const ssa_insn *other = gpu_insn(w->g, i == 0 ? b : a);
    if (of[i] != UNKNOWN && other->op == SSA_CONST && other->bits <= MOST_FACTOR)
      return in_range((int64_t)of[i] * (int64_t)other->bits);
  }
  return UNKNOWN;
}

/* Of what is the same along the axis as long as all arguments are. */
static int32_t of_others(const growth *w, int axis, uint32_t value) {
  for (uint32_t i = 0; i < gpu_insn(w->g, value)->arg_count; i++)
    if (grown(w, axis, gpu_arg(w->g, value, i)) != 0) return UNKNOWN;
  return gpu_flags(w->g, value) & ATLAS_PURE ? 0 : UNKNOWN;
}

static int32_t growth_of(const growth *w, int axis, uint32_t value) {
  const ssa_insn *insn = gpu_insn(w->g, value);
  const uint32_t *arg = ssa_args_of(w->g->unit, value);
  switch (insn->op) {
  case ATLAS_OP_sreg:
    if (insn->bits == ATLAS_COORD_LANE_X || insn->bits == ATLAS_COORD_LANE_Y)
      return insn->bits == (axis == 0 ? ATLAS_COORD_LANE_X : ATLAS_COORD_LANE_Y);
    return insn->bits < ATLAS_COORD_GLOBAL_X ? 0 : UNKNOWN;
  case ATLAS_OP_cvt: return grown(w, axis, arg[0]);
  case ATLAS_OP_add: return sum(grown(w, axis, arg[0]), grown(w, axis, arg[1]));
  case ATLAS_OP_mul: return product(w, axis, arg[0], arg[1]);
  case ATLAS_OP_mad: return sum(product(w, axis, arg[0], arg[1]), grown(w, axis, arg[2]));
  case ATLAS_OP_shl:
    if (gpu_insn(w->g, arg[1])->op != SSA_CONST || gpu_insn(w->g, arg[1])->bits > 24) return UNKNOWN;
    return grown(w, axis, arg[0]) == UNKNOWN
               ? UNKNOWN
               : in_range((int64_t)grown(w, axis, arg[0]) * (INT64_C(1) << gpu_insn(w->g, arg[1])->bits));
  case ATLAS_OP_min: /* of an index that must not pass the end */
    if (grown(w, axis, arg[0]) == 0) return grown(w, axis, arg[1]);
    return grown(w, axis, arg[1]) == 0 ? grown(w, axis, arg[0]) : UNKNOWN;
  default: return of_others(w, axis, value);
  }
}

/* 1 if an instruction is one that lanes do for themselves, or a reduction. */
static int is_alone(const gpu_plan *g, uint32_t value) {
  uint32_t flags = gpu_flags(g, value);
  if (flags & ATLAS_PURE || gpu_is_reduction(gpu_insn(g, value)->op)) return 1;
  return (flags & (ATLAS_LOAD | ATLAS_STORE)) && (flags & (ATLAS_SPACE_GLOBAL | ATLAS_SPACE_CONST)) &&
         gpu_insn(g, value)->mode == ATLAS_ADDRESS_INDEXED;
}

/* 1 if all are, there is a reduction, and accesses that grow by one along y, but none that does along x. */
static int suits(const gpu_plan *g, uint32_t *room) {
  growth w = {g, {(int32_t *)room, (int32_t *)(room + g->unit->insns.count)}};
  int reduces = 0, grows = 0;
  for (uint32_t k = 0; k < g->order.count; k++) {
    const ssa_block *block = ssa_block_at(g->unit, g->order.block[k]);
    for (uint32_t v = block->first_phi; v != SSA_NONE; v = gpu_insn(g, v)->next)
      w.along[0][v] = w.along[1][v] = UNKNOWN;
    for (uint32_t v = block->first_effect; v != SSA_NONE; v = gpu_insn(g, v)->next) {
      if (gpu_insn(g, v)->op < SSA_DELETED && !is_alone(g, v)) return 0;
      for (int axis = 0; axis < 2; axis++) w.along[axis][v] = growth_of(&w, axis, v);
      reduces |= gpu_is_reduction(gpu_insn(g, v)->op);
      if ((gpu_flags(g, v) & (ATLAS_LOAD | ATLAS_STORE)) == 0 || gpu_insn(g, v)->arg_count == 0) continue;
      int32_t x = grown(&w, 0, gpu_arg(g, v, 0)), y = grown(&w, 1, gpu_arg(g, v, 0));
      if (x == 1) return 0;
      grows |= y == 1;
    }
  }
  return reduces && grows;
}

static int has_only_parameters(const atlas_program *program) {
  for (uint32_t s = 0; s < program->symbols.count; s++) {
    uint8_t kind = atlas_symbol_at(program, s)->kind;
    if (kind != ATLAS_SYMBOL_BUFFER && kind != ATLAS_SYMBOL_SCALAR && kind != ATLAS_SYMBOL_CONST) return 0;
  }
  return 1;
}

void hg_gpu_lie_along_y(gpu_plan *g, uint32_t *room) {
  const uint32_t *block = g->program->block, lanes = gpu_block_lanes(g);
  g->info.parts = 1;
  if (g->target.parts == 0 || g->form.flags != 0 || g->can_end || !g->program->observes_block) return;
  if (block[1] != GPU_FOLD_LANES || block[2] != 1 || block[0] < 2 || (block[0] & (block[0] - 1)) != 0) return;
  if (!has_only_parameters(g->program) || !suits(g, room)) return;
  g->is_along_y = 1;
  uint32_t needed = hg_gpu_register_pressure(g, room);
  if (needed + BESIDE_VALUES > REGISTERS) g->most_registers = REGISTERS;
  if (needed * lanes <= g->target.registers) return;
  while (g->info.parts < g->target.parts && lanes / g->info.parts > PART_LANES) g->info.parts *= 2;
}
