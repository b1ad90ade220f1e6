/* steps.c - the program for one lane as steps, block by block. */
#include "backend/gpu/plan_passes.h"

#include "compiler/analysis/effects.h"
#include "compiler/machine_ops.h"

#include <string.h>

typedef struct step_builder {
  gpu_plan *g;
  gpu_version_kind version;
  hg_array *steps;
  uint8_t pending;     /* skipped accesses whose faults are not noted yet */
  uint8_t must_clear;  /* 1: shared memory has not been cleared yet */
  uint32_t ranks;      /* of the last step of ranks: how many follow */
  uint32_t group;      /* 1 + the number of the last group; 0: there is none */
} step_builder;

static hg_status add(const step_builder *m, gpu_op op, uint32_t value, uint32_t number) {
  return hg_gpu_add_step(m->g, m->steps, (gpu_step){.op = (uint8_t)op, .value = value, .number = number});
}

/* Notes the pending faults before another instruction may fault or the lane may end. */
static hg_status note_faults(step_builder *m) {
  uint32_t count = m->pending;
  m->pending = 0;
  return count > 0 ? add(m, GPU_NOTE_FAULTS, SSA_NONE, count) : HG_OK;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static hg_status add_access(step_builder *m, uint32_t value) {
  uint32_t flags = gpu_flags(m->g, value);
  gpu_place place = hg_gpu_place(m->g, m->version, value);
  gpu_step step = {.op = flags & ATLAS_LOAD ? GPU_LOAD : flags & ATLAS_STORE ? GPU_STORE : GPU_ATOMIC, .value = value,
                   .number = value};
  if (place.check == GPU_BRANCH || (place.check == GPU_LEAVE_OUT && m->pending == GPU_PENDING)) {
    step.notes = m->pending;
    m->pending = 0;
  }
  if (place.check == GPU_LEAVE_OUT) m->pending++;
  return hg_gpu_add_step(m->g, m->steps, step);
}

static hg_status keep_group(step_builder *m, const gpu_access_group *group) {
  gpu_plan *g = m->g;
  if (hg_array_append(g->allocator, &g->group, group, 1) == NULL)
    return hg_fail_memory("the plan of a kernel", g->group.count);
  m->group = (uint32_t)g->group.count;
  return HG_OK;
}

/* If it is tested, its accesses one by one are steps of the version as well, behind all blocks: see add_accesses. */
static hg_status add_group(step_builder *m) {
  const gpu_access_group *group = gpu_group_at(m->g, m->group - 1);
  gpu_step step = {.op = GPU_GROUP, .value = group->in_order[0], .number = m->group - 1};
  if (group->is_tested) {
    step.notes = m->pending;
    m->pending = 0;
  }
  return hg_gpu_add_step(m->g, m->steps, step);
}

/* 1 if the access belongs to the current group, whose accesses stand next to each other: only arithmetic lies between
 * them and, in the vector version, accesses without a check. */
static int is_of_group(const step_builder *m, uint32_t value) {
  const gpu_access_group *group = m->group != 0 ? gpu_group_at(m->g, m->group - 1) : NULL;
  for (uint32_t i = 0; group != NULL && i < group->count; i++)
    if (group->in_order[i] == value) return 1;
  return 0;
}

/* In the vector version a group has only those of its accesses that are checked there too. */
static int find_checked(const gpu_plan *g, const gpu_access_group *whole, gpu_access_group *group) {
  uint8_t run_of[GPU_MAX_GROUP], runs = 0, number[GPU_MAX_RUNS];
  memset(number, 0xff, sizeof number);
  *group = (gpu_access_group){.is_store = whole->is_store};
  for (uint32_t i = 0; i < whole->count; i++) {
    uint32_t value = whole->in_order[i], run = hg_gpu_access_run_of(whole, value);
    if (g->access[value] != GPU_CHECKED) continue;
    if (number[run] == 0xff) number[run] = runs++;
    run_of[group->count] = number[run];
    group->in_order[group->count++] = value;
  }
  return group->count > 1 && hg_gpu_complete_group(g, group, run_of);
}

static hg_status add_memory(step_builder *m, uint32_t value) {
  gpu_plan *g = m->g;
  gpu_access_group group;
  if (m->version == GPU_VECTOR_VERSION && g->access[value] == GPU_VECTOR) {
    int is_load = (gpu_flags(g, value) & ATLAS_LOAD) != 0;
    return add(m, is_load ? GPU_TAKE : GPU_GIVE, value, g->vector_of[value]);
  }
  if (is_of_group(m, value)) return HG_OK;
  uint32_t number = g->group_of[value];
  if (number == 0) return add_access(m, value);
  if (m->version == GPU_OUTSIDE) {
    m->group = number;
    return add_group(m);
  }
  if (g->access[value] != GPU_CHECKED || !find_checked(g, gpu_group_at(g, number - 1), &group))
    return add_access(m, value);
  HG_TRY(keep_group(m, &group));
  return add_group(m);
}

static hg_status add_accesses(step_builder *m, gpu_access_group *group) {
  group->first_step = (uint32_t)m->steps->count;
  for (uint32_t i = 0; i < group->count; i++) HG_TRY(add_access(m, group->in_order[i]));
  HG_TRY(note_faults(m));
  group->step_count = (uint32_t)m->steps->count - group->first_step;
  return HG_OK;
}

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static hg_status add_ranks(step_builder *m, uint32_t value) {
  if (m->ranks == 0) HG_TRY(add(m, GPU_RANK, value, m->ranks = hg_gpu_ranks_at(m->g, value)));
  m->ranks--;
  return HG_OK;
}

static hg_status add_block_effect(step_builder *m, uint32_t value) {
  switch ((machine_block)hg_machine_op(gpu_insn(m->g, value)->op)) {
  case BLOCK_bar_sync: return add(m, GPU_SYNC, SSA_NONE, 0);
  case BLOCK_vote_any:
  case BLOCK_vote_all: return add(m, GPU_VOTE, value, value);
  case BLOCK_rank: return add_ranks(m, value);
  case BLOCK_pool_alloc: return add(m, GPU_POOL_ALLOCATE, value, value);
  case BLOCK_pool_free: return add(m, GPU_POOL_FREE, value, value);
  case BLOCK_reduce_add:
  case BLOCK_reduce_mul:
  case BLOCK_reduce_min:
  case BLOCK_reduce_max:
  case BLOCK_scan_incl:
  case BLOCK_scan_excl: break;
  }
  uint32_t number = m->g->exchange_of[value];
  const gpu_exchange *exchange = gpu_exchange_at(m->g, number);
  return value == exchange->first ? hg_gpu_collective(m->g, number, m->steps) : HG_OK;
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
  case MACHINE_NO_KIND: break; /* hg_gpu_plan has refused these */
  }
  return HG_OK;
}

/* Only loads and stores of global memory do not need cleared shared memory. */
static int needs_shared(const step_builder *m, uint32_t value) {
  const ssa_insn *insn = gpu_insn(m->g, value);
  uint32_t flags = gpu_flags(m->g, value);
  if (hg_is_pure(insn)) return 0;
  if (flags & ATLAS_ATOMIC || !(flags & (ATLAS_LOAD | ATLAS_STORE))) return 1;
  const gpu_access_group *group = m->g->group_of[value] != 0 ? gpu_group_at(m->g, m->g->group_of[value] - 1) : NULL;
  for (uint32_t r = 0; group != NULL && r < group->run_count; r++)
    if (group->run[r].is_shared) return 1;
  return hg_gpu_place(m->g, m->version, value).space == GPU_SHARED;
}

/* Clears shared memory right before it is needed, so that the first loads from global memory are already under way. */
static hg_status clear_shared(step_builder *m) {
  int must = m->must_clear;
  m->must_clear = 0;
  return must ? add(m, GPU_CLEAR_SHARED, SSA_NONE, m->g->memory.zeroed_bytes) : HG_OK;
}

/* A rounding that stores perform needs no step; a widened or clamped element of a vector load needs only GPU_TAKE. */
static hg_status add_insn(step_builder *m, uint32_t value) {
  gpu_plan *g = m->g;
  if (m->version == GPU_VECTOR_VERSION) {
    if (g->is_sunk[value]) return HG_OK;
    const gpu_vector *v = hg_gpu_element_of(g, value);
    if (v != NULL && v->value != value) return add(m, GPU_TAKE, value, (uint32_t)(v - g->vector));
  } else if (g->is_late[value]) {
    return HG_OK;
  }
  if (m->must_clear && needs_shared(m, value)) HG_TRY(clear_shared(m));
  if (gpu_insn(g, value)->insn != SSA_NONE) HG_TRY(add(m, GPU_INSN, value, value));
  return add_effect(m, value);
}

/* ---- a version --------------------------------------------------------------------------------------------------- */

static hg_status add_block(step_builder *m, uint32_t block) {
  for (uint32_t e = ssa_block_at(m->g->unit, block)->first_effect; e != SSA_NONE; e = gpu_insn(m->g, e)->next)
    HG_TRY(add_insn(m, e));
  HG_TRY(clear_shared(m)); /* in the first block at the latest */
  HG_TRY(note_faults(m));
  for (uint32_t i = 0; i < m->g->hoisted.count && m->version == GPU_OUTSIDE; i++)
    if (gpu_hoisted_at(m->g, i)->block == block) HG_TRY(add(m, GPU_HOIST_CHECK, SSA_NONE, i));
  return HG_OK;
}

hg_status hg_gpu_list_version_steps(gpu_plan *g, gpu_version_kind kind) {
  gpu_version *version = &g->version[kind];
  step_builder m = {
      .g = g, .version = kind, .steps = &version->steps,
      .must_clear = g->info.observes_block && g->memory.zeroed_bytes > 0};
  uint32_t first_group = kind == GPU_OUTSIDE ? 0 : (uint32_t)g->group.count;
  version->first = hg_allocate(g->allocator, (uint64_t)g->order.count + 1, sizeof *version->first);
  if (version->first == NULL) return hg_fail_memory("the plan of a kernel", g->order.count);
  for (uint32_t k = 0; k < g->order.count; k++) {
    HG_TRY(add_block(&m, g->order.block[k]));
    version->first[k + 1] = (uint32_t)version->steps.count;
  }
  uint32_t end = kind == GPU_OUTSIDE ? g->groups_outside : (uint32_t)g->group.count;
  for (uint32_t i = first_group; i < end; i++)
    if (gpu_group_at(g, i)->is_tested) HG_TRY(add_accesses(&m, (gpu_access_group *)g->group.data + i));
  return HG_OK;
}
