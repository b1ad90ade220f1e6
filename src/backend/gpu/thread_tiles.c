/* thread_tiles.c - how many packs of lanes a thread handles one after another, and the limit on its registers. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

#include "compiler/analysis/effects.h"

#include <string.h>

/* At its limit, memory gives a thread its 16 bytes in the time of about 100 instructions (H200). A program of lower
 * intensity is bound by memory and fastest with one pack a thread: with several, the blocks in flight lie further apart
 * in memory, which costs bandwidth. Near that intensity two packs are loaded first, without a loop if the body is
 * short; above it more packs, in a loop that loads ahead, amortise a block's start. A call, for example of a division,
 * costs a loop of packs more than the loop gains: gelu with a call on its rare path had 4.14, 3.59, 3.71. */
static uint8_t packs_for(const gpu_plan *g, uint32_t instructions) {
  uint64_t work = (uint64_t)instructions * g->info.lanes_per_thread;
  if (work < (uint64_t)GPU_ONE_PACK_BELOW * g->vector_count) return 1;
  return work <= (uint64_t)GPU_TWO_PACKS_UP_TO * g->vector_count ? 2 : GPU_MOST_PACKS;
}

/* A duplicated body costs compile time in the driver: 33 ms instead of 26 for gelu of f32, whose rare paths are long
 * and which is as fast with a loop. */
static int is_short(const gpu_plan *g) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t e = ssa_block_at(g->unit, g->order.block[k])->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next)
      count++;
  return count * g->info.lanes_per_thread <= GPU_MOST_DUPLICATED;
}

static uint32_t registers_of(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (hg_is_leaf(insn)) return 0;
  if (insn->type == SSA_PREDICATE) return 0;
  return atlas_type_bits((atlas_type)insn->type) == 64 ? 2 : 1;
}

/* How many registers are live behind `value`, the instruction with that number, given that `live` were before it.
 * `last_use`: the number of each value's last use. */
static uint32_t live_after(const gpu_plan *g, uint32_t value, uint32_t number, uint32_t live, uint32_t *last_use) {
  for (uint32_t i = 0; i < gpu_insn(g, value)->arg_count; i++) {
    uint32_t arg = gpu_arg(g, value, i);
    if (last_use[arg] != number) continue;
    live -= registers_of(g, arg);
    last_use[arg] = 0;
  }
  return last_use[value] > number ? live + registers_of(g, value) : live;
}

static void note_last_uses(const gpu_plan *g, uint32_t value, uint32_t number, uint32_t *last_use) {
  for (uint32_t i = 0; i < gpu_insn(g, value)->arg_count; i++) last_use[gpu_arg(g, value, i)] = number;
}

uint32_t hg_gpu_register_pressure(const gpu_plan *g, uint32_t *last_use) {
  uint32_t live = 0, most = 0;
  memset(last_use, 0, g->unit->insns.count * sizeof *last_use);
  for (int sweep = 0; sweep < 2; sweep++) {
    uint32_t number = 0;
    for (uint32_t k = 0; k < g->order.count; k++) {
      const ssa_block *block = ssa_block_at(g->unit, g->order.block[k]);
      for (int list = 0; list < 2; list++)
        for (uint32_t v = list == 0 ? block->first_phi : block->first_effect; v != SSA_NONE; v = gpu_insn(g, v)->next) {
          number++;
          if (sweep == 0) note_last_uses(g, v, number, last_use);
          else live = live_after(g, v, number, live, last_use);
          if (live > most) most = live;
        }
    }
  }
  return most;
}

/* A device's compiler gives a thread all the registers that it can use, which may lower the occupancy. Needed are those
 * of the body and of what is live across it: words of this pack and the next, elements, addresses. The compiler
 * rematerialises a few. `room`: a number for each value. */
static uint32_t most_registers(const gpu_plan *g, uint32_t *room) {
  enum { BASE_REGISTERS = 4, ADDRESS_REGISTERS = 2, REMATERIALISED = 6 }; /* of a thread; of each vector; of a thread */
  const hg_gpu_target *target = &g->target;
  for (uint32_t b = 0; b < g->unit->blocks.count; b++)
    if (g->in_loop[b]) return 0;
  uint32_t needed = hg_gpu_register_pressure(g, room) + BASE_REGISTERS, lanes = g->info.lanes_per_thread;
  for (uint32_t i = 0; i < g->vector_count; i++) {
    const gpu_vector *v = &g->vector[i];
    uint32_t words = lanes * v->element_bytes / 4, copies = v->is_load && g->info.packs > 1 ? 2 : 1;
    needed += ADDRESS_REGISTERS + (v->rounds ? lanes : copies * words);
  }
  needed -= needed < REMATERIALISED ? needed : REMATERIALISED;
  if (target->registers_all != 0 && needed <= target->registers_all) return target->registers_all;
  return target->registers_most != 0 && needed <= target->registers_most ? target->registers_most : 0;
}

void hg_gpu_plan_thread_tiles(gpu_plan *g, uint32_t instructions, uint32_t *room) {
  int is_usual = g->info.vector_only && !g->info.is_lut;
  g->info.packs = is_usual ? packs_for(g, instructions) : 1;
  g->in_loop_of_packs = g->info.packs > 2 || (g->info.packs == 2 && !is_short(g));
  if (is_usual) g->most_registers = most_registers(g, room);
}
