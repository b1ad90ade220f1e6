/* kernel.c - the steps around the program's instructions: which lanes a thread runs, and in what order.
 *
 * In a vector-only kernel each block has a contiguous range of lanes, and the packs of a thread lie a tile apart. The
 * last block also runs the lanes behind the last whole pack, one lane a thread. */
#include "backend/gpu/plan_passes.h"

static hg_status add(gpu_plan *g, gpu_op op, uint32_t number) {
  return hg_gpu_add_step(g, &g->kernel, (gpu_step){.op = (uint8_t)op, .value = SSA_NONE, .number = number});
}

#define ADD(g, ...) GPU_ADD(g, &(g)->kernel, SSA_NONE, __VA_ARGS__)

/* ---- lanes ------------------------------------------------------------------------------------------------------- */

/* The program reads its coordinates in a launch of three dimensions. */
static int asks_for_global(const gpu_plan *g) {
  for (uint32_t v = 0; v < g->unit->insns.count; v++)
    if (gpu_insn(g, v)->op == ATLAS_OP_sreg && gpu_insn(g, v)->bits >= ATLAS_COORD_GLOBAL_X) return 1;
  return 0;
}

static hg_status add_lane(gpu_plan *g, gpu_version_kind version) {
  if (g->version[version].first == NULL) HG_TRY(hg_gpu_list_version_steps(g, version));
  if (!g->info.observes_block && asks_for_global(g)) HG_TRY(add(g, GPU_COORDINATES, 0));
  if (g->memory.clears_local) HG_TRY(add(g, GPU_CLEAR_LOCAL, g->memory.local_bytes));
  return add(g, GPU_BODY, version);
}

/* Runs the lanes of a thread's pack one after another, from the words of the vector loads to those of the vector
 * stores. */
static hg_status add_pack(gpu_plan *g) {
  HG_TRY(ADD(g, GPU_TAKE_APART, GPU_PACK_LANES));
  HG_TRY(add_lane(g, GPU_VECTOR_VERSION));
  return ADD(g, GPU_END_PACK_LANES, GPU_JOIN);
}

/* ---- kernels ----------------------------------------------------------------------------------------------------- */

/* Every access is a vector and in bounds, so nothing is checked. Without a loop, two packs are both loaded first; a
 * loop over packs loads the next pack before it computes with the current one. */
static hg_status vector_kernel(gpu_plan *g) {
  int is_two = g->info.packs == 2 && !g->in_loop_of_packs;
  HG_TRY(ADD(g, GPU_SHARE, GPU_LOAD_PACK));
  if (is_two) HG_TRY(add(g, GPU_LOAD_SECOND, 0));
  if (g->in_loop_of_packs) HG_TRY(ADD(g, GPU_PACKS, GPU_LOAD_NEXT));
  HG_TRY(add_pack(g));
  HG_TRY(add(g, GPU_STORE_PACK, 0));
  if (g->in_loop_of_packs) return ADD(g, GPU_NEXT_PACK, GPU_END_PACKS);
  if (!is_two) return HG_OK;
  HG_TRY(add(g, GPU_IF_SECOND, 0));
  HG_TRY(add_pack(g));
  return ADD(g, GPU_STORE_SECOND, GPU_END_SECOND);
}

/* Lane after lane, with each access checked: for the last tile, and for any tile if a buffer is too short or not
 * aligned to 16 bytes. */
static hg_status checked_lanes(gpu_plan *g) {
  HG_TRY(add(g, GPU_LANES, 0));
  HG_TRY(add_lane(g, GPU_OUTSIDE));
  return add(g, GPU_END_LANES, 0);
}

/* A tile of threads x lanes_per_thread lanes a block. */
static hg_status checked_kernel(gpu_plan *g) {
  HG_TRY(add(g, GPU_TILE, 0));
  if (g->info.lanes_per_thread == 1) return checked_lanes(g);
  HG_TRY(ADD(g, GPU_IF_WHOLE, GPU_LOAD_PACK));
  HG_TRY(add_pack(g));
  HG_TRY(ADD(g, GPU_STORE_PACK, GPU_ELSE));
  HG_TRY(checked_lanes(g));
  return add(g, GPU_END_WHOLE, 0);
}

static hg_status blocks_kernel(gpu_plan *g) {
  HG_TRY(ADD(g, GPU_BLOCK, GPU_START_POOLS));
  return add_lane(g, GPU_OUTSIDE);
}

static hg_status lut_kernel(gpu_plan *g) {
  HG_TRY(add(g, GPU_ENTRIES, 0));
  HG_TRY(add_pack(g));
  return ADD(g, GPU_END_ENTRIES, GPU_SYNC, GPU_LAST_ELEMENTS, GPU_PIECES);
}

hg_status hg_gpu_list_kernel_steps(gpu_plan *g) {
  if (g->info.observes_block) return blocks_kernel(g);
  if (g->info.is_lut) return lut_kernel(g);
  return g->info.vector_only ? vector_kernel(g) : checked_kernel(g);
}
