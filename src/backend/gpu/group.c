/* group.c - the inside of an access group (gpu_access_group): its runs, and which neighbouring elements form one
 * access. */
#include "backend/gpu/plan_passes.h"
#include "backend/gpu/gpu_tuning.h"

#include "compiler/analysis/aliasing.h"

#include <string.h>

enum {
  MAX_DISPLACEMENT = 1 << 16 /* in elements: fits the offset of an instruction */
};

static int64_t displacement_of(const gpu_plan *g, uint32_t value) { return (int64_t)gpu_insn(g, value)->bits; }

int hg_gpu_may_group(const gpu_plan *g, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  uint32_t flags = gpu_flags(g, value);
  if (!(flags & (ATLAS_LOAD | ATLAS_STORE)) || flags & ATLAS_ATOMIC || insn->mode != ATLAS_ADDRESS_INDEXED ||
      insn->symbol & SSA_LIBRARY)
    return 0;
  uint8_t kind = gpu_symbol_of(g, insn)->kind;
  int64_t displacement = displacement_of(g, value);
  return (kind == ATLAS_SYMBOL_BUFFER || kind == ATLAS_SYMBOL_SHARED) && displacement > -MAX_DISPLACEMENT &&
         displacement < MAX_DISPLACEMENT && gpu_insn(g, gpu_arg(g, value, 0))->op != SSA_CONST;
}

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

static uint32_t neighbours(const gpu_plan *g, const gpu_access_group *group, const gpu_access_run *run,
                           uint32_t first) {
  uint32_t n = 1, end = run->first + (uint32_t)run->count;
  while (first + n < end &&
         displacement_of(g, group->value[first + n]) == displacement_of(g, group->value[first]) + (int64_t)n)
    n++;
  return n;
}

/* Elements of the access that begins at `first`: the width if it is aligned and all its elements are there, else 1. */
static uint32_t access_width(const gpu_plan *g, const gpu_access_group *group, const gpu_access_run *run,
                             uint32_t first) {
  int64_t from_first = displacement_of(g, group->value[first]) - displacement_of(g, group->value[run->first]);
  return run->width > 1 && from_first % run->width == 0 && neighbours(g, group, run, first) >= run->width ? run->width
                                                                                                           : 1;
}

/* How many accesses of the run become part of wide accesses; group->joined says which ones. */
static uint32_t join(const gpu_plan *g, gpu_access_group *group, const gpu_access_run *run) {
  uint32_t joined = 0;
  memset(group->joined + run->first, 0, run->count);
  for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i += group->joined[i]) {
    group->joined[i] = (uint8_t)access_width(g, group, run, i);
    if (group->joined[i] > 1) joined += group->joined[i];
  }
  return joined;
}

/* Finds the greatest width, aligned to the first element, that joins more than half of the run; else 1. */
static void find_width(const gpu_plan *g, gpu_access_group *group, gpu_access_run *run) {
  run->width = (uint8_t)(g->target.vector_bytes / run->element_bytes);
  while (2 * join(g, group, run) <= run->count && run->width > 1)
    run->width = (uint8_t)gpu_lesser_width(run->width, run->element_bytes);
}

/* ---- the group --------------------------------------------------------------------------------------------------- */

static void describe(const gpu_plan *g, gpu_access_group *group, gpu_access_run *run) {
  uint32_t value = group->value[run->first], index = gpu_arg(g, value, 0);
  int64_t least = displacement_of(g, value);
  run->element_bytes = (uint8_t)gpu_bytes(g, value);
  run->is_read_only = g->read_only[hg_location_of(g->program, gpu_insn(g, value))];
  run->is_shared = gpu_symbol_of(g, gpu_insn(g, value))->kind == ATLAS_SYMBOL_SHARED;
  run->checks_least = least < 0 || gpu_is_signed(gpu_insn(g, index)->type);
  for (uint32_t i = run->first; i < run->first + (uint32_t)run->count; i++)
    run->is_checked |= !g->analysis.in_bounds[group->value[i]];
  find_width(g, group, run);
  run->is_aligned = least % run->width == 0 && g->analysis.fact[index].alignment % run->width == 0;
  group->is_tested |= run->is_checked || gpu_may_be_crooked(run);
}

/* 1 if they are worth being a group: they share one test, whatever their indices are. */
static int is_worth(const gpu_access_group *group) {
  uint32_t checked = 0;
  for (uint32_t r = 0; r < group->run_count; r++) {
    const gpu_access_run *run = &group->run[r];
    if (run->width > 1 || (run->is_checked && run->count >= GPU_LEAST_SHARING)) return 1;
    if (run->is_checked) checked += run->count;
  }
  return checked >= GPU_LEAST_SHARING;
}

uint32_t hg_gpu_access_run_of(const gpu_access_group *group, uint32_t value) {
  uint32_t at = 0, run = 0;
  while (group->value[at] != value) at++;
  while (group->run[run].first + (uint32_t)group->run[run].count <= at) run++;
  return run;
}

int hg_gpu_complete_group(const gpu_plan *g, gpu_access_group *group, const uint8_t *run_of) {
  uint32_t filled = 0;
  group->run_count = group->is_tested = 0;
  for (uint32_t r = 0; filled < group->count; r++) {
    gpu_access_run *run = &group->run[group->run_count++];
    *run = (gpu_access_run){.first = (uint8_t)filled};
    for (uint32_t i = 0; i < group->count; i++) {
      if (run_of[i] != r) continue;
      uint32_t at = filled++, value = group->in_order[i];
      for (; at > run->first && displacement_of(g, group->value[at - 1]) > displacement_of(g, value); at--)
        group->value[at] = group->value[at - 1];
      group->value[at] = value;
    }
    run->count = (uint8_t)(filled - run->first);
    describe(g, group, run);
  }
  return is_worth(group);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

/* 1 if no element of the run is below its 32-bit index: then if the run is in bounds, it is for all lesser indices as
 * well. A negative index, read as unsigned, exceeds all others. */
static int grows(const gpu_plan *g, const gpu_access_group *group, const gpu_access_run *run) {
  uint8_t type = gpu_insn(g, gpu_index_of(g, group, run))->type;
  int64_t least = gpu_least_of(g, group, run);
  return atlas_type_bits((atlas_type)type) <= 32 && (gpu_is_signed(type) ? least == 0 : least >= 0);
}

static int are_alike(const gpu_plan *g, const gpu_access_group *group, const gpu_access_run *a,
                     const gpu_access_run *b) {
  return gpu_insn(g, group->value[a->first])->symbol == gpu_insn(g, group->value[b->first])->symbol &&
         gpu_most_of(g, group, a) == gpu_most_of(g, group, b) &&
         gpu_is_signed(gpu_insn(g, gpu_index_of(g, group, a))->type) ==
             gpu_is_signed(gpu_insn(g, gpu_index_of(g, group, b))->type);
}

uint32_t hg_gpu_runs_like(const gpu_plan *g, const gpu_access_group *group, uint32_t r, uint8_t *done, uint32_t *runs) {
  const gpu_access_run *run = &group->run[r];
  uint32_t count = 0;
  for (uint32_t other = r; other < group->run_count; other++) {
    const gpu_access_run *also = &group->run[other];
    int is_it = other == r || (grows(g, group, run) && grows(g, group, also) && are_alike(g, group, run, also));
    if (!also->is_checked || done[other] || !is_it) continue;
    runs[count++] = other;
    done[other] = 1;
  }
  return count;
}
