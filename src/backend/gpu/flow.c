/* flow.c - control flow: loops and their step counts, the shortest path through a program, edges. */
#include "backend/gpu/plan_passes.h"

#include "compiler/analysis/trips.h"

#include <string.h>

/* ---- loops ------------------------------------------------------------------------------------------------------- */

/* With more steps, the lanes of a thread, which run one after another, would keep it busy for long, and accesses that
 * neighbouring lanes make in one round would be far apart in time. */
enum { MOST_STEPS_IN_TURN = 65536 };

void hg_gpu_find_loops(gpu_plan *g) {
  for (uint32_t k = 0; k < g->order.count; k++)
    g->in_loop[g->order.block[k]] = g->analysis.loops.loop[g->order.block[k]] != SSA_NONE;
  memset(g->steps_at_once, 1, g->unit->blocks.count);
  for (size_t i = 0; i < g->unrolled.count; i++) {
    const gpu_unrolled *loop = (const gpu_unrolled *)g->unrolled.data + i;
    if (g->steps_at_once[loop->header] < loop->times) g->steps_at_once[loop->header] = (uint8_t)loop->times;
  }
  uint64_t steps = hg_most_steps(&g->analysis, g->unit, &g->order, g->steps_at_once);
  g->counts_steps = steps == UINT64_MAX || (steps > 0 && g->variant.flags & HG_GPU_COUNT_STEPS);
  g->info.steps = g->counts_steps ? UINT64_MAX : steps;
  g->runs_long = steps > MOST_STEPS_IN_TURN;
}

/* ---- the shortest path ------------------------------------------------------------------------------------------- */

/* In instructions: a look-up in a constant table takes one more for its address, a bitcast none. */
static uint32_t cost_of(const gpu_plan *g, uint32_t value) {
  return gpu_flags(g, value) & ATLAS_SPACE_CONST ? 2 : gpu_insn(g, value)->op != ATLAS_OP_bitcast;
}

/* The cost of the common case: the rare sides of library functions lie on longer paths. */
uint32_t hg_gpu_shortest_path(const gpu_plan *g, uint32_t *length) {
  uint32_t least = UINT32_MAX;
  for (uint32_t k = 0; k < g->order.count; k++) {
    uint32_t b = g->order.block[k], before = k == 0 ? 0 : UINT32_MAX;
    const ssa_block *block = ssa_block_at(g->unit, b);
    for (size_t i = 0; i < block->predecessors.count; i++) {
      uint32_t from = ((const uint32_t *)block->predecessors.data)[i];
      if (g->order.position[from] < k && length[from] < before) before = length[from];
    }
    length[b] = before;
    for (uint32_t e = block->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next) length[b] += cost_of(g, e);
    if (block->end == SSA_EXIT && length[b] < least) least = length[b];
  }
  return least;
}

/* ---- edges ------------------------------------------------------------------------------------------------------- */

/* Loops of the function library count no steps. */
static int closes_loop(const gpu_plan *g, uint32_t header, uint32_t from) {
  return ssa_dominates(&g->order, header, from) && !ssa_block_at(g->unit, header)->library;
}

static int is_phi_of(const gpu_plan *g, uint32_t value, uint32_t block) {
  const ssa_insn *insn = gpu_insn(g, value);
  return insn->op == SSA_PHI && insn->block == block;
}

static uint32_t steps_of(const gpu_plan *g, uint32_t header, uint32_t from, uint32_t operand) {
  if (!g->counts_steps || !closes_loop(g, header, from)) return 0;
  for (size_t i = 0; i < g->unrolled.count; i++) {
    const gpu_unrolled *loop = (const gpu_unrolled *)g->unrolled.data + i;
    if (loop->header == header && loop->operand == operand) return loop->times;
  }
  return 1;
}

uint32_t hg_gpu_asks_steps(const gpu_plan *g, uint32_t block) {
  return g->counts_steps && g->steps_at_once[block] > 1 ? g->steps_at_once[block] : 0;
}

gpu_edge hg_gpu_edge(const gpu_plan *g, uint32_t from, int side) {
  gpu_edge edge = {.target = ssa_block_at(g->unit, from)->successor[side],
                   .side = g->order.edge[2 * from + (uint32_t)side]};
  uint32_t first = ssa_block_at(g->unit, edge.target)->first_phi;
  edge.has_phis = first != SSA_NONE;
  edge.takes_steps = steps_of(g, edge.target, from, edge.side);
  for (uint32_t phi = first; phi != SSA_NONE; phi = gpu_insn(g, phi)->next) {
    uint32_t value = gpu_arg(g, phi, edge.side);
    edge.crosses |= value != phi && is_phi_of(g, value, edge.target);
  }
  return edge;
}
