/* warp_transpose.c - blocks whose warps lie along y, and blocks that are spread over several multiprocessors.
 *
 * The kernel is free to choose which lanes make up a warp. In a block of X x 32 lanes whose accesses are x *
 * (something) + y, a warp of neighbouring numbers would read X distant places; a warp of the 32 lanes with one x reads
 * neighbours. And since lanes fold from the top bit of their number, which belongs to y, a warp along y folds all of
 * its lanes by itself, which leaves one value a warp to exchange. That is so little that the warps may run on different
 * multiprocessors (a cluster of device blocks, which write into each other's shared memory). A block then has the
 * registers of all of them, where 1024 lanes on one would have 64 each. That pays if lanes hold much: rows of 131072
 * columns, 128 a lane (ops/write/layouts.def has the figures). Many threads of the sub-blocks have to wait for memory
 * side by side: GPU_SPREAD_REGISTERS, tuning.def.
 *
 * Both are for blocks that have nothing else in common (no shared memory, barriers, pools, votes), whose lanes all
 * reach the end, and which are always whole. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

/* 1 if an instruction is a reduction or concerns its own lane only. */
static int is_alone(const gpu_plan *g, uint32_t value) {
  uint32_t flags = gpu_flags(g, value);
  if (flags & ATLAS_PURE || gpu_is_reduction(gpu_insn(g, value)->op)) return 1;
  return (flags & (ATLAS_LOAD | ATLAS_STORE)) && (flags & (ATLAS_SPACE_GLOBAL | ATLAS_SPACE_CONST)) &&
         gpu_insn(g, value)->mode == ATLAS_ADDRESS_INDEXED;
}

/* 1 if all instructions are of that kind, and there is a reduction. */
static int only_reduces(const gpu_plan *g) {
  int reduces = 0;
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t v = ssa_block_at(g->unit, g->order.block[k])->first_effect; v != SSA_NONE; v = gpu_insn(g, v)->next) {
      if (gpu_insn(g, v)->op < SSA_DELETED && !is_alone(g, v)) return 0;
      reduces |= gpu_is_reduction(gpu_insn(g, v)->op);
    }
  return reduces;
}

/* 1 if an access grows by one along an axis. */
static int has_neighbours(const gpu_plan *g, hg_axis along) {
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t v = ssa_block_at(g->unit, g->order.block[k])->first_effect; v != SSA_NONE; v = gpu_insn(g, v)->next) {
      if ((gpu_flags(g, v) & (ATLAS_LOAD | ATLAS_STORE)) == 0 || gpu_insn(g, v)->arg_count == 0) continue;
      hg_slope slope = g->slope[along][gpu_arg(g, v, 0)];
      if (slope.certainty != HG_UNKNOWN && slope.factor == 1 && slope.by == SSA_NONE) return 1;
    }
  return 0;
}

static int has_only_parameters(const atlas_program *program) {
  for (uint32_t s = 0; s < program->symbols.count; s++) {
    uint8_t kind = atlas_symbol_at(program, s)->kind;
    if (kind != ATLAS_SYMBOL_BUFFER && kind != ATLAS_SYMBOL_SCALAR && kind != ATLAS_SYMBOL_CONST) return 0;
  }
  return 1;
}

void hg_gpu_transpose_warps(gpu_plan *g, uint32_t *room) {
  const uint32_t *block = g->program->block, lanes = gpu_block_lanes(g);
  g->info.sub_blocks = 1;
  if (g->target.sub_blocks == 0 || g->variant.flags != 0 || g->can_end || !g->program->observes_block) return;
  if (block[1] != GPU_FOLD_LANES || block[2] != 1 || block[0] < 2 || (block[0] & (block[0] - 1)) != 0) return;
  if (!has_only_parameters(g->program) || !only_reduces(g)) return;
  if (has_neighbours(g, HG_ALONG_X) || !has_neighbours(g, HG_ALONG_Y)) return;
  g->is_transposed = 1;
  uint32_t needed = hg_gpu_register_pressure(g, room);
  if (needed + GPU_SPREAD_BESIDE_VALUES > GPU_SPREAD_REGISTERS) g->most_registers = GPU_SPREAD_REGISTERS;
  if (needed * lanes <= g->target.registers) return;
  while (g->info.sub_blocks < g->target.sub_blocks &&
         lanes / g->info.sub_blocks > GPU_SPREAD_SUB_BLOCK_LANES) g->info.sub_blocks *= 2;
}
