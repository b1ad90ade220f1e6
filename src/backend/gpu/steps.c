/* steps.c - the program for one lane as steps, block by block. */
#include "backend/gpu/plan.h"

#include "compiler/machine_ops.h"

typedef struct step_builder {
  gpu_plan *g;
  gpu_part_kind part;
  hg_array *steps;
  uint8_t pending;     /* skipped accesses whose faults are not noted yet */
  uint32_t group_left; /* accesses of the last group that are still to come */
} step_builder;

static hg_status add(const step_builder *m, gpu_op op, uint32_t value, uint32_t number) {
  return hg_gpu_add_step(m->g, m->steps, (gpu_step){.op = (uint8_t)op, .value = value, .number = number});
}

/* Notes the pending faults, before another instruction may fault or the lane may end. */
static hg_status note_faults(step_builder *m) {
  uint32_t count = m->pending;
  m->pending = 0;
  return count > 0 ? add(m, GPU_NOTE_FAULTS, SSA_NONE, count) : HG_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static hg_status add_access(step_builder *m, uint32_t value) {
  uint32_t flags = gpu_flags(m->g, value);
  gpu_place place = hg_gpu_place(m->g, m->part, value);
  gpu_step step = {.op = flags & ATLAS_LOAD ? GPU_LOAD : flags & ATLAS_STORE ? GPU_STORE : GPU_ATOMIC, .value = value,
                   .number = value};
  if (place.check == GPU_BRANCH || (place.check == GPU_LEAVE_OUT && m->pending == GPU_PENDING)) {
    step.notes = m->pending;
    m->pending = 0;
  }
  if (place.check == GPU_LEAVE_OUT) m->pending++;
  return hg_gpu_add_step(m->g, m->steps, step);
}

/* Where it is tested its accesses one by one are steps of the part, too, behind all blocks: see add_accesses. */
static hg_status add_group(step_builder *m, uint32_t number) {
  const gpu_group *group = gpu_group_at(m->g, number);
  gpu_step step = {.op = GPU_GROUP, .value = group->in_order[0], .number = number};
  if (group->is_tested) {
    step.notes = m->pending;
    m->pending = 0;
  }
  m->group_left = group->count - 1;
  return hg_gpu_add_step(m->g, m->steps, step);
}

static hg_status add_memory(step_builder *m, uint32_t value) {
  gpu_plan *g = m->g;
  gpu_group group;
  if (m->part == GPU_VECTOR_PART && g->access[value] == GPU_VECTOR) {
    int is_load = (gpu_flags(g, value) & ATLAS_LOAD) != 0;
    return add(m, is_load ? GPU_TAKE : GPU_GIVE, value, g->vector_of[value]);
  }
  if (m->group_left > 0) { /* nothing but arithmetic and the group's accesses stands between them */
    m->group_left--;
    return HG_OK;
  }
  if (g->group_of[value] != 0) return add_group(m, g->group_of[value] - 1);
  if (g->is_ordered || !hg_gpu_find_group(g, m->part, value, &group)) return add_access(m, value);
  if (hg_array_append(g->allocator, &g->group, &group, 1) == NULL)
    return hg_fail_memory("the plan of a kernel", g->group.count);
  return add_group(m, (uint32_t)g->group.count - 1);
}

static hg_status add_accesses(step_builder *m, gpu_group *group) {
  group->first_step = (uint32_t)m->steps->count;
  for (uint32_t i = 0; i < group->count; i++) HG_TRY(add_access(m, group->in_order[i]));
  HG_TRY(note_faults(m));
  group->step_count = (uint32_t)m->steps->count - group->first_step;
  return HG_OK;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static hg_status add_block_effect(const step_builder *m, uint32_t value) {
  switch ((machine_block)hg_machine_op(gpu_insn(m->g, value)->op)) {
  case BLOCK_bar_sync: return add(m, GPU_SYNC, SSA_NONE, 0);
  case BLOCK_vote_any:
  case BLOCK_vote_all: return add(m, GPU_VOTE, value, value);
  case BLOCK_pool_alloc: return add(m, GPU_POOL_ALLOCATE, value, value);
  case BLOCK_pool_free: return add(m, GPU_POOL_FREE, value, value);
  case BLOCK_reduce_add:
  case BLOCK_reduce_mul:
  case BLOCK_reduce_min:
  case BLOCK_reduce_max:
  case BLOCK_scan_incl:
  case BLOCK_scan_excl: break;
  }
  return hg_gpu_collective(m->g, value, m->steps);
}

static hg_status add_fence(const step_builder *m, uint32_t value) {
  switch ((machine_order)hg_machine_op(gpu_insn(m->g, value)->op)) {
  case ORDER_mem_fence: return add(m, GPU_FENCE, SSA_NONE, 0);
  case ORDER_mem_fence_grid: break;
  }
  return add(m, GPU_FENCE_GRID, SSA_NONE, 0);
}

static hg_status add_effect(step_builder *m, uint32_t value) {
  uint32_t flags = gpu_flags(m->g, value);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_PURE))) HG_TRY(note_faults(m));
  switch (hg_machine_kind(gpu_insn(m->g, value)->op)) {
  case MACHINE_LOAD:
  case MACHINE_STORE:
  case MACHINE_ATOMIC: return add_memory(m, value);
  case MACHINE_BLOCK: return add_block_effect(m, value);
  case MACHINE_CLASS: return add(m, GPU_CLASS, value, value);
  case MACHINE_ORDER: return add_fence(m, value);
  case MACHINE_PHASE: return add(m, GPU_ADVANCE_PHASE, value, value);
  case MACHINE_ARITH:
  case MACHINE_COMPARE:
  case MACHINE_LOGIC:
  case MACHINE_SELECT:
  case MACHINE_CONVERT:
  case MACHINE_CAST:
  case MACHINE_PLACE: return add(m, GPU_COMPUTE, value, value);
  case MACHINE_NO_KIND: break; /* hg_gpu_plan has asked */
  }
  return HG_OK;
}

/* A rounding that stores do needs no step; a widened or clamped element of a vector load only GPU_TAKE. */
static hg_status add_insn(step_builder *m, uint32_t value) {
  gpu_plan *g = m->g;
  if (m->part == GPU_VECTOR_PART) {
    if (g->is_sunk[value]) return HG_OK;
    const gpu_vector *v = hg_gpu_element_of(g, value);
    if (v != NULL && v->value != value) return add(m, GPU_TAKE, value, (uint32_t)(v - g->vector));
  }
  if (gpu_insn(g, value)->insn != SSA_NONE) HG_TRY(add(m, GPU_INSN, value, value));
  return add_effect(m, value);
}

/* ---- a part ------------------------------------------------------------------------------------------------------ */

static hg_status add_block(step_builder *m, uint32_t block) {
  for (uint32_t e = ssa_block_at(m->g->unit, block)->first_effect; e != SSA_NONE; e = gpu_insn(m->g, e)->next)
    HG_TRY(add_insn(m, e));
  return note_faults(m);
}

hg_status hg_gpu_list_part_steps(gpu_plan *g, gpu_part_kind kind) {
  gpu_part *part = &g->part[kind];
  step_builder m = {.g = g, .part = kind, .steps = &part->steps};
  uint32_t first_group = g->is_ordered ? 0 : (uint32_t)g->group.count;
  part->first = hg_allocate(g->allocator, (uint64_t)g->order.count + 1, sizeof *part->first);
  if (part->first == NULL) return hg_fail_memory("the plan of a kernel", g->order.count);
  for (uint32_t k = 0; k < g->order.count; k++) {
    HG_TRY(add_block(&m, g->order.block[k]));
    part->first[k + 1] = (uint32_t)part->steps.count;
  }
  for (uint32_t i = first_group; i < g->group.count; i++)
    if (gpu_group_at(g, i)->is_tested) HG_TRY(add_accesses(&m, (gpu_group *)g->group.data + i));
  return HG_OK;
}
