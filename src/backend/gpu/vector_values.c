/* vector_values.c - what vector accesses do with 16-bit elements, two at a time: widening, rounding, clamping. */
#include "backend/gpu/plan_passes.h"

#include "atlas/value.h"
#include "compiler/analysis/aliasing.h"

/* ---- loads ------------------------------------------------------------------------------------------------------- */

/* Counts each value's users, and notes one of them. */
static void find_users(const gpu_plan *g, uint32_t *uses, uint32_t *user) {
  for (uint32_t v = 0; v < g->unit->insns.count; v++) {
    if (gpu_is_gone(g, v)) continue;
    for (uint32_t i = 0; i < gpu_insn(g, v)->arg_count; i++) {
      uses[gpu_arg(g, v, i)]++;
      user[gpu_arg(g, v, i)] = v;
    }
  }
}

/* 1 if the type represents the bound exactly. */
static int is_pair(uint8_t type, double bound, uint32_t *pair) {
  uint64_t bits = atlas_round_f64((atlas_type)type, bound);
  *pair = (uint32_t)(bits << 16 | bits);
  return atlas_to_f64((atlas_type)type, bits) == bound;
}

/* The clamp of v's widened elements if it is their only user and its bounds are exact in the elements' type; SSA_NONE:
 * there is none. */
static uint32_t clamp_of(const gpu_plan *g, gpu_vector *v, const uint32_t *uses, const uint32_t *user) {
  uint8_t type = gpu_insn(g, v->value)->type;
  uint32_t x = v->widened, inner = user[x];
  gpu_bounds bounds;
  if (!g->target.bounds || uses[x] != 1 || uses[inner] != 1) return SSA_NONE;
  if (!hg_gpu_is_bounded(g, user[inner], &bounds) || bounds.x != x) return SSA_NONE;
  return is_pair(type, bounds.low, &v->low) && is_pair(type, bounds.high, &v->high) ? user[inner] : SSA_NONE;
}

/* 16-bit elements whose only user is a conversion to f32 are widened when their words are taken apart. */
static void find_widened(const gpu_plan *g, gpu_vector *v, const uint32_t *uses, const uint32_t *user) {
  v->widened = v->clamped = SSA_NONE;
  if (!v->is_load || !gpu_is_narrow(gpu_insn(g, v->value)->type) || uses[v->value] != 1) return;
  const ssa_insn *by = gpu_insn(g, user[v->value]);
  if (by->op != ATLAS_OP_cvt || by->type != ATLAS_f32) return;
  v->widened = user[v->value];
  v->clamped = clamp_of(g, v, uses, user);
}

const gpu_vector *hg_gpu_element_of(const gpu_plan *g, uint32_t value) {
  gpu_bounds bounds = {.x = value};
  if (g->access[value] == GPU_VECTOR) return &g->vector[g->vector_of[value]];
  if (gpu_insn(g, value)->op != ATLAS_OP_cvt && !hg_gpu_is_bounded(g, value, &bounds)) return NULL;
  if (gpu_insn(g, bounds.x)->op != ATLAS_OP_cvt) return NULL;
  uint32_t load = gpu_arg(g, bounds.x, 0);
  if (g->access[load] != GPU_VECTOR) return NULL;
  const gpu_vector *v = &g->vector[g->vector_of[load]];
  return v->widened == value || v->clamped == value ? v : NULL;
}

/* ---- stores ------------------------------------------------------------------------------------------------------ */

static uint32_t stored_value(const gpu_plan *g, uint32_t store) {
  return gpu_arg(g, store, gpu_insn(g, store)->arg_count - 1u);
}

/* 1 if it is a vector store that performs the rounding of what it stores. */
static int rounds(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (g->access[value] != GPU_VECTOR || !(gpu_flags(g, value) & ATLAS_STORE)) return 0;
  const ssa_insn *stored = gpu_insn(g, stored_value(g, value));
  return gpu_has_pairs(g, insn->type) && stored->op == ATLAS_OP_cvt && stored->type == insn->type &&
         stored->type2 == ATLAS_f32;
}

/* If a clamped value is rounded, the store takes the value before the clamp, since rounding is monotonic: one
 * instruction clamps two rounded elements to the rounded bounds. */
static void find_bound(const gpu_plan *g, gpu_vector *v, uint32_t unrounded) {
  uint32_t x;
  double size;
  v->given = unrounded;
  if (!hg_gpu_is_clamp(g, unrounded, &x, &size)) return;
  uint32_t bits = (uint32_t)atlas_round_f64((atlas_type)gpu_insn(g, v->value)->type, size);
  v->bound = bits << 16 | bits;
  if (bits != 0) v->given = x;
}

static void plan_store(const gpu_plan *g, gpu_vector *v) {
  uint32_t stored = stored_value(g, v->value);
  v->rounds = (uint8_t)rounds(g, v->value);
  v->given = stored;
  if (v->rounds) {
    uint32_t unrounded = gpu_arg(g, stored, 0);
    v->mends = !hg_is_never_nan(&g->analysis, unrounded);
    find_bound(g, v, unrounded);
  } else {
    v->mends = gpu_has_pairs(g, gpu_insn(g, v->value)->type) && g->nan[stored] == GPU_NAN_LOOSE;
    v->gives_exact = !v->mends;
  }
}

/* Finds roundings whose only users are stores that perform them. */
static void find_sunk(gpu_plan *g) {
  for (int look = 1; look >= 0; look--) /* first for operands of such stores, then for those of other users */
    for (uint32_t v = 0; v < g->unit->insns.count; v++) {
      uint32_t count = gpu_insn(g, v)->arg_count;
      int is_rounded = rounds(g, v);
      for (uint32_t i = 0; i < count; i++)
        if ((is_rounded && i == count - 1) == look) g->is_sunk[gpu_arg(g, v, i)] = (uint8_t)look;
    }
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

/* The elements of all lanes have at most 16 bytes: words of 64 bits for 64-bit elements, else of at most 32 bits. */
static gpu_vector vector_at(const gpu_plan *g, uint32_t value) {
  uint32_t size = gpu_bytes(g, value), bytes = size * g->info.lanes_per_thread;
  uint32_t word = size == 8 ? 8 : bytes < 4 ? bytes : 4;
  return (gpu_vector){.value = value,
                      .is_load = (gpu_flags(g, value) & ATLAS_LOAD) != 0,
                      .is_read_only = g->read_only[hg_location_of(g->program, gpu_insn(g, value))],
                      .element_bytes = (uint8_t)size,
                      .word_bytes = (uint8_t)word,
                      .word_count = (uint8_t)(bytes / word),
                      .word_lanes = (uint8_t)(word / size),
                      .given = SSA_NONE,
                      .widened = SSA_NONE,
                      .clamped = SSA_NONE};
}

hg_status hg_gpu_list_vectors(gpu_plan *g, uint32_t *uses, uint32_t *user) {
  find_sunk(g);
  g->vector = hg_allocate(g->allocator, g->vector_count, sizeof *g->vector);
  if (g->vector == NULL) return hg_fail_memory("the plan of a kernel", g->vector_count * sizeof *g->vector);
  if (g->vector_count > 0) find_users(g, uses, user);
  for (uint32_t v = 0; v < g->unit->insns.count && g->vector_count > 0; v++) {
    if (g->access[v] != GPU_VECTOR) continue;
    gpu_vector *vector = &g->vector[g->vector_of[v]];
    *vector = vector_at(g, v);
    if (vector->is_load) find_widened(g, vector, uses, user);
    else plan_store(g, vector);
  }
  return HG_OK;
}
