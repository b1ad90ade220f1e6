/* packs.c - how many packs of lanes a thread has, one after the other, and with how many registers. */
#include "backend/gpu/plan.h"

#include "compiler/schedule.h"

#include <string.h>

enum {
  ONE_BELOW = 64,      /* instructions of a thread's pack for each vector: below, one pack; up to the next, two; then */
  TWO_UP_TO = 104,     /* MANY. Their measure is packs_for's comment */
  MANY = 8,
  MAX_COPIED = 288,    /* instructions in all copies of a body where each is made once more for a second pack */
  SPARE = 6
};

/* Memory at its limit gives a thread its 16 bytes in the time of about 100 instructions (H200). Short programs wait for
 * nothing else, and do best with a pack a thread: with several the blocks at work are further apart in memory, which
 * likes that less. Near the balance two are loaded at once, if short without a loop; above it more of them, in a loop
 * that loads ahead, share the cost of a start. TB/s with 1, 2, 8 of f32: add (1 instruction) 4.37, 4.36, 4.27; exp (29)
 * 4.23, 4.23, 4.13; gelu_tanh (37) 4.07, 4.22, 4.13; of f16: exp (17) 4.21, 4.20, 4.07; log (21) 3.93, 4.21, 4.09;
 * others of 24 3.82, 4.19, 4.08, of 27 3.43, 3.76, 4.04. A call, as a division makes, costs a loop of packs more
 * than it brings: gelu with one on its rare way had 4.14, 3.59, 3.71. */
static uint8_t packs_for(const gpu_plan *g, uint32_t way) {
  uint64_t work = (uint64_t)way * g->info.lanes_per_thread;
  return work < (uint64_t)ONE_BELOW * g->vector_count ? 1 : work <= (uint64_t)TWO_UP_TO * g->vector_count ? 2 : MANY;
}

/* A second copy of the body costs the driver's compiler its time: 6 ms more for gelu of f32, whose rare ways are long,
 * and which a loop serves as well. */
static int is_short(const gpu_plan *g) {
  uint32_t count = 0;
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t e = ssa_block_at(g->unit, g->order.block[k])->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next)
      count++;
  return count * g->info.lanes_per_thread <= MAX_COPIED;
}

static uint32_t registers_of(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (hg_is_leaf(insn)) return 0;
  if (insn->type == SSA_PREDICATE) return 0;
  return atlas_type_bits((atlas_type)insn->type) == 64 ? 2 : 1;
}

/* The registers in use beside `value`'s before and after it; `last`: where each is asked for last. */
static uint32_t alive_after(const gpu_plan *g, uint32_t value, uint32_t number, uint32_t alive, uint32_t *last) {
  for (uint32_t i = 0; i < gpu_insn(g, value)->arg_count; i++) {
    uint32_t arg = gpu_arg(g, value, i);
    if (last[arg] != number) continue;
    alive -= registers_of(g, arg);
    last[arg] = 0;
  }
  return last[value] > number ? alive + registers_of(g, value) : alive;
}

static void note_last(const gpu_plan *g, uint32_t value, uint32_t number, uint32_t *last) {
  for (uint32_t i = 0; i < gpu_insn(g, value)->arg_count; i++) last[gpu_arg(g, value, i)] = number;
}

/* About how many registers a copy of a body without loops has in use at most. `last`: room for a number each value. */
static uint32_t most_alive(const gpu_plan *g, uint32_t *last) {
  uint32_t alive = 0, most = 0;
  memset(last, 0, g->unit->insns.count * sizeof *last);
  for (int sweep = 0; sweep < 2; sweep++) {
    uint32_t number = 0;
    for (uint32_t k = 0; k < g->order.count; k++) {
      const ssa_block *block = ssa_block_at(g->unit, g->order.block[k]);
      for (int list = 0; list < 2; list++)
        for (uint32_t v = list == 0 ? block->first_phi : block->first_effect; v != SSA_NONE; v = gpu_insn(g, v)->next) {
          number++;
          if (sweep == 0) note_last(g, v, number, last);
          else alive = alive_after(g, v, number, alive, last);
          if (alive > most) most = alive;
        }
    }
  }
  return most;
}

/* A device's compiler gives a thread all the registers that it can use, and then a multiprocessor has too few threads
 * to be kept busy. What is needed is the body's and what waits beside it: words of this pack and the next, elements,
 * addresses. Up to SPARE of them can be had again when they are asked for. `room`: a number each value. */
static uint32_t most_registers(const gpu_plan *g, uint32_t *room) {
  const hg_gpu_target *target = &g->target;
  for (uint32_t b = 0; b < g->unit->blocks.count; b++)
    if (g->in_loop[b]) return 0;
  uint32_t needed = most_alive(g, room) + 4, lanes = g->info.lanes_per_thread;
  for (uint32_t i = 0; i < g->vector_count; i++) {
    const gpu_vector *v = &g->vector[i];
    uint32_t words = lanes * v->element_bytes / 4, copies = v->is_load && g->info.packs > 1 ? 2 : 1;
    needed += 2 + (v->rounds ? lanes : copies * words);
  }
  needed -= needed < SPARE ? needed : SPARE;
  if (target->registers_all != 0 && needed <= target->registers_all) return target->registers_all;
  return target->registers_most != 0 && needed <= target->registers_most ? target->registers_most : 0;
}

void hg_gpu_plan_packs(gpu_plan *g, uint32_t way, uint32_t *room) {
  int is_usual = g->info.vector_only && !g->info.is_table;
  g->info.packs = is_usual ? packs_for(g, way) : 1;
  g->in_loop_of_packs = g->info.packs > 2 || (g->info.packs == 2 && !is_short(g));
  if (is_usual) g->most_registers = most_registers(g, room);
}
