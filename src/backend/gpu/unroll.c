/* unroll.c - unrolls loops over memory: chooses which loops run several iterations at a time, and how many.
 *
 * `for (i = first; i < end; i += step) { ... x[base + i] ... }` becomes
 *
 * `bound = min(end, x's length - base, ...) - (times - 1) * step`,
 *
 * `for (i = first; i < bound and enough steps are left; i += times * step) { times iterations, their loads in front }`,
 *
 * `for (; i < end; i += step) { ... x[base + i], checked ... }`.
 *
 * One comparison serves all accesses of these iterations. It holds only if the program reaches each of them and none of
 * them faults, so faults, the step limit and results are the program's. Only what nothing can observe is reordered:
 * loads of memory that the loop does not write move to the front; all other accesses keep their places, and what may
 * fault keeps its check.
 *
 * A loop qualifies if it is left only at its header, by a comparison of an integer that grows; if it contains no other
 * loop, barrier or collective; and if it loads from a buffer by an unsigned index that grows likewise. */
#include "backend/gpu/unroll.h"
#include "backend/gpu/gpu_tuning.h"

#include "compiler/analysis/aliasing.h"
#include "ir/ssa_walk.h"

#include <string.h>

enum {
  MOST_LOOPS = 32, /* of a program */
};

#define insn_at gpu_unroll_insn
#define arg_of gpu_unroll_arg

/* ---- what is gone over again ------------------------------------------------------------------------------------- */

static int is_same_step(const gpu_unroller *u, uint32_t a, uint32_t b) {
  const ssa_insn *x = insn_at(u, a), *y = insn_at(u, b);
  return a == b || (x->op == SSA_CONST && y->op == SSA_CONST && x->bits == y->bits);
}

static void note_sweep(gpu_unroller *u, uint32_t loop, uint32_t value) {
  uint32_t phi = hg_gpu_root_of(u, arg_of(u, value, 0)), symbol = insn_at(u, value)->symbol;
  uint32_t start = arg_of(u, phi, 1 - hg_gpu_latch_side(u)), step = hg_gpu_step_of(u, phi);
  for (uint32_t i = 0; i < u->passages; i++)
    if (u->passage[i].symbol == symbol && u->passage[i].loop != loop && u->passage[i].start == start &&
        is_same_step(u, u->passage[i].step, step))
      u->g->swept_again[symbol / 64] |= UINT64_C(1) << symbol % 64;
  if (u->passages == GPU_MOST_PASSAGES) return;
  u->passage[u->passages++] = (gpu_passage){.symbol = symbol, .loop = loop, .start = start, .step = step};
}

static void note_sweeps(gpu_unroller *u, uint32_t loop) {
  for (uint32_t i = 0; i < u->loop.block_count; i++)
    for (uint32_t e = ssa_block_at(u->unit, u->loop.block[i])->first_effect; e != SSA_NONE; e = insn_at(u, e)->next)
      if (hg_gpu_is_swept(u, e)) note_sweep(u, loop, e);
}

/* ---- how many iterations ----------------------------------------------------------------------------------------- */

/* As many iterations as bring enough bytes under way, and no more. */
static uint32_t choose_times(const gpu_unroller *u) {
  uint32_t n = GPU_USUAL_TIMES;
  while (n > 1 && n * u->loop.bytes > GPU_MOST_UNDER_WAY) n /= 2;
  while (n < GPU_MOST_TIMES && n * u->loop.bytes < GPU_LEAST_UNDER_WAY &&
         2 * n * u->loop.instructions <= GPU_UNROLL_BUDGET)
    n *= 2;
  return n;
}

/* A loop that loads enough by itself is left alone, with its registers. The largest of 2^28 numbers, where one of the
 * two loops loads eight by clamped indices (H200): 241 us, and 347 when that loop ran four iterations at a time and
 * spilled. */
static hg_status take_loop(gpu_unroller *u) {
  uint64_t words = (uint64_t)GPU_MOST_TIMES * u->values + u->blocks;
  uint32_t times = choose_times(u);
  if (times == 1) return HG_OK;
  if (u->map == NULL) {
    u->map = hg_allocate(u->g->allocator, words, sizeof *u->map);
    if (u->map == NULL) return hg_fail_memory("the loops of a kernel", words * sizeof *u->map);
    memset(u->map, 0xff, words * sizeof *u->map);
    u->copy_of = u->map + (size_t)GPU_MOST_TIMES * u->values;
  }
  hg_gpu_put_in_front(u, times, times < GPU_USUAL_TIMES ? times : GPU_USUAL_TIMES);
  return u->failed ? hg_fail_memory("the loops of a kernel", words * sizeof *u->map) : HG_OK;
}

hg_status hg_gpu_unroll(gpu_plan *g) {
  gpu_unroller u = {.g = g, .unit = g->unit, .values = (uint32_t)g->unit->insns.count,
                    .blocks = (uint32_t)g->unit->blocks.count};
  ir_ssa_resolve_all(g->unit);
  hg_status status = ir_ssa_order_build(g->unit, &g->order);
  if (status == HG_OK) status = ir_loops_build(g->unit, &g->order, &u.loops);
  uint32_t loops = 0;
  hg_alias_groups(g->program, g->unit, u.alias);
  for (uint32_t k = 0; k < g->order.count && status == HG_OK && loops < MOST_LOOPS; k++) {
    if (!hg_gpu_find_loop(&u, g->order.block[k])) continue;
    note_sweeps(&u, loops++);
    status = take_loop(&u);
  }
  hg_release(g->allocator, u.map);
  ir_loops_release(g->unit, &u.loops);
  ir_ssa_order_release(g->unit, &g->order);
  g->order = (ssa_order){.count = 0};
  return status;
}
