/* vectors.c - which accesses are vectors, and how many lanes a thread has. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

#include "compiler/analysis/aliasing.h"
#include "compiler/analysis/effects.h"

#include <string.h>

enum {
  TABLE_LANES = 2 /* a thread computes two entries of a table at a time, which are a word */
};

typedef struct planner {
  gpu_plan *g;
  uint32_t group[ATLAS_MAX_SYMBOLS + 2];
  uint8_t has_store[ATLAS_MAX_SYMBOLS + 2]; /* per alias class: 1: the walk has passed a store, so loads are not
                                               hoisted */
  uint8_t plain_load[ATLAS_MAX_SYMBOLS + 2];/* per alias class: 1: it has a load that is no vector */
  uint8_t plain_store[ATLAS_MAX_SYMBOLS + 2];
  uint32_t largest, smallest;               /* bytes of the vector elements */
  uint32_t vectors, others;                 /* accesses that are vectors; accesses to buffers lane by lane */
  uint32_t instructions;
} planner;

/* 1 if the access is [x + lane + #k] with 0 <= k <= INT32_MAX, as the vector version needs it. */
static int is_element(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (insn->mode != ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY || (int64_t)insn->bits < 0 ||
      insn->bits > INT32_MAX)
    return 0;
  const ssa_insn *index = gpu_insn(g, gpu_arg(g, value, 0));
  return index->op == SSA_SPECIAL && index->bits == ATLAS_REG_LANE &&
         atlas_symbol_at(g->program, insn->symbol)->kind == ATLAS_SYMBOL_BUFFER;
}

/* 1 if every lane runs the block exactly once. */
static int is_run_once(const gpu_plan *g, uint32_t block) {
  if (g->in_loop[block] || g->can_end || g->runs_long) return 0;
  for (uint32_t k = 0; k < g->order.count; k++)
    if (ssa_block_at(g->unit, g->order.block[k])->end == SSA_EXIT &&
        !ssa_dominates(&g->order, block, g->order.block[k]))
      return 0;
  return 1;
}

static int is_access(uint32_t flags) { return (flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) != 0; }

/* First walk: a vector load is hoisted to the start, so no store of its alias class may precede it; a vector store is
 * sunk to the end. */
static void plan_access(planner *w, uint32_t value, uint32_t block) {
  gpu_plan *g = w->g;
  const ssa_insn *insn = gpu_insn(g, value);
  uint32_t flags = gpu_flags(g, value);
  w->instructions++;
  if (!is_access(flags)) return;
  uint32_t group = w->group[hg_location_of(g->program, insn)], size = atlas_bytes((atlas_type)insn->type);
  int is_candidate = !(flags & ATLAS_ATOMIC) && is_element(g, value) && is_run_once(g, block) &&
                     insn->bits * size % g->target.vector_bytes == 0;
  if (is_element(g, value) && !(flags & ATLAS_ATOMIC)) g->access[value] = GPU_PLAIN;
  if (flags & ATLAS_LOAD) {
    if (is_candidate && !w->has_store[group]) g->access[value] = GPU_VECTOR;
    else w->plain_load[group] = 1;
    return;
  }
  w->has_store[group] = 1;
  if (is_candidate) g->access[value] = GPU_VECTOR;
  else w->plain_store[group] = 1;
}

/* 1 for an access to a buffer at an index that differs in every lane. */
static int is_by_lane(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  return !(insn->symbol & SSA_LIBRARY) && gpu_symbol_of(g, insn)->kind == ATLAS_SYMBOL_BUFFER &&
         g->analysis.fact[gpu_arg(g, value, 0)].level == IR_LANE;
}

/* Second walk: a store is not sunk past other accesses of its alias class, so the class has vector stores only if all
 * its loads and stores are vectors. Then determines the sizes of the vectors. */
static void confirm_access(planner *w, uint32_t value) {
  gpu_plan *g = w->g;
  const ssa_insn *insn = gpu_insn(g, value);
  uint32_t flags = gpu_flags(g, value);
  if (!is_access(flags)) return;
  if (g->access[value] == GPU_CHECKED) w->others += insn->mode == ATLAS_ADDRESS_INDEXED && is_by_lane(g, value);
  if (g->access[value] != GPU_VECTOR) return;
  uint32_t group = w->group[hg_location_of(g->program, insn)], size = atlas_bytes((atlas_type)insn->type);
  if (flags & ATLAS_STORE && (w->plain_store[group] || w->plain_load[group])) {
    g->access[value] = GPU_PLAIN;
    return;
  }
  w->vectors++;
  if (size > w->largest) w->largest = size;
  if (w->smallest == 0 || size < w->smallest) w->smallest = size;
}

static void walk_effects(planner *w, int confirms) {
  gpu_plan *g = w->g;
  for (uint32_t k = 0; k < g->order.count; k++) {
    uint32_t b = g->order.block[k];
    for (uint32_t e = ssa_block_at(g->unit, b)->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next) {
      if (confirms) confirm_access(w, e);
      else plan_access(w, e, b);
    }
  }
}

/* 1 if fences or atomics order memory against other lanes: then no access moves. */
static int orders_memory(const gpu_plan *g) {
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t e = ssa_block_at(g->unit, g->order.block[k])->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next)
      if (hg_orders_all(gpu_insn(g, e)) || gpu_flags(g, e) & ATLAS_ATOMIC) return 1;
  return 0;
}

static void note_parameter(gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (!is_access(gpu_flags(g, value)) || g->access[value] == GPU_CHECKED) return;
  hg_gpu_parameter *parameter = &g->info.parameter[g->parameter_of[insn->symbol] - 1];
  if ((int64_t)insn->bits + 1 > parameter->reach) parameter->reach = (int64_t)insn->bits + 1;
  if (g->access[value] != GPU_VECTOR) return;
  parameter->vector = 1;
  g->vector_of[value] = g->vector_count++;
}

/* Lanes with near numbers mostly access near elements. If the lanes of a thread are neighbours, an access that is no
 * vector leaves gaps between the threads of a warp: four lanes of f32 touch four times the sectors and lines. So if a
 * thread would have more of these accesses than vectors, its lanes lie as far apart as the block has threads, and no
 * access is a vector. It runs one after the other: if each has many loads on their way, other threads run them. */
static void spread_lanes(planner *w) {
  gpu_plan *g = w->g;
  for (uint32_t v = 0; g->is_spread && v < g->unit->insns.count; v++)
    if (g->access[v] == GPU_VECTOR) g->access[v] = GPU_PLAIN;
}

/* 1 if every access is a vector: then nothing can fault. */
static int is_vector_only(const gpu_plan *g) {
  if (g->can_end || g->runs_long) return 0;
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t e = ssa_block_at(g->unit, g->order.block[k])->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next) {
      const ssa_insn *insn = gpu_insn(g, e);
      if (!hg_is_pure(insn) && !(insn->symbol & SSA_LIBRARY) && g->access[e] != GPU_VECTOR) return 0;
    }
  return 1;
}

/* 1 if other things than vector accesses use the lane's number. */
static int uses_lane(const gpu_plan *g) {
  for (uint32_t v = 0; v < g->unit->insns.count; v++) {
    if (gpu_is_gone(g, v)) continue;
    if (gpu_insn(g, v)->op == ATLAS_OP_sreg) return 1;
    for (uint32_t i = g->access[v] == GPU_VECTOR; i < gpu_insn(g, v)->arg_count; i++) {
      const ssa_insn *arg = gpu_insn(g, gpu_arg(g, v, i));
      if (arg->op == SSA_SPECIAL && arg->bits == ATLAS_REG_LANE) return 1;
    }
  }
  return 0;
}

void hg_gpu_plan_vectors(gpu_plan *g, uint32_t instructions) {
  planner w = {.g = g};
  g->info.lanes_per_thread = 1;
  g->needs_lane = 1;
  if (g->program->observes_block || g->variant.flags & HG_GPU_CHECKED || orders_memory(g)) return;
  hg_alias_groups(g->program, g->unit, w.group);
  walk_effects(&w, 0);
  walk_effects(&w, 1);
  uint32_t lanes = w.largest > 0 ? g->target.vector_bytes / w.largest : 1;
  uint32_t most = g->variant.flags & HG_GPU_LUT ? TABLE_LANES : GPU_VECTOR_LANES;
  while (lanes > most) lanes /= 2;
  while (lanes > 1 && (uint64_t)lanes * w.instructions > GPU_MOST_UNROLLED) lanes /= 2;
  g->is_spread = w.others > w.vectors;
  if (g->is_spread && w.others > GPU_MOST_SPREAD) lanes = 1;
  g->info.lanes_per_thread = lanes;
  if (lanes == 1) {
    g->is_spread = 0;
    memset(g->access, GPU_CHECKED, g->unit->insns.count);
    return;
  }
  spread_lanes(&w);
  for (uint32_t k = 0; k < g->order.count; k++)
    for (uint32_t e = ssa_block_at(g->unit, g->order.block[k])->first_effect; e != SSA_NONE; e = gpu_insn(g, e)->next)
      note_parameter(g, e);
  g->info.vector_only = (uint8_t)is_vector_only(g);
  g->needs_lane = !g->info.vector_only || uses_lane(g);
  g->info.lut_lanes = hg_gpu_lut_lanes(g, instructions);
  g->info.is_lut = g->info.lut_lanes != 0 && g->variant.flags & HG_GPU_LUT;
  if (g->info.vector_only && !g->info.is_lut) g->info.max_threads = GPU_VECTOR_THREADS;
}
