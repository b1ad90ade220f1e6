/* group.c - which loads of one lane share a check, and which of those are one access (gpu_group). */
#include "backend/gpu/plan.h"

#include "compiler/aliasing.h"

#include <string.h>

enum {
  MAX_DISPLACEMENT = 1 << 16, /* in elements: fits the offset of an instruction */
  MIN_LOADS = 3               /* that share a check but no access: the check may be two, of the least and the largest
                                 displacement */
};

static int64_t displacement_of(const gpu_plan *g, uint32_t value) { return (int64_t)gpu_insn(g, value)->bits; }

/* ---- which loads ------------------------------------------------------------------------------------------------- */

/* Elements of 8 bits are left alone. */
static int is_candidate(const gpu_plan *g, gpu_part_kind part, uint32_t value) {
  const ssa_insn *insn = gpu_insn(g, value);
  if (!(gpu_flags(g, value) & ATLAS_LOAD) || insn->mode != ATLAS_ADDRESS_INDEXED || insn->symbol & SSA_LIBRARY ||
      gpu_symbol_of(g, insn)->kind != ATLAS_SYMBOL_BUFFER)
    return 0;
  int64_t displacement = displacement_of(g, value);
  int is_checked = part != GPU_VECTOR_PART || g->access[value] == GPU_CHECKED;
  return is_checked && !g->analysis.in_bounds[value] && displacement > -MAX_DISPLACEMENT &&
         displacement < MAX_DISPLACEMENT && gpu_bytes(g, value) > 1 &&
         gpu_insn(g, gpu_arg(g, value, 0))->op != SSA_CONST;
}

static void insert(const gpu_plan *g, gpu_group *group, uint32_t value) {
  uint32_t at = group->count++;
  group->in_order[at] = value;
  for (; at > 0 && displacement_of(g, group->value[at - 1]) > displacement_of(g, value); at--)
    group->value[at] = group->value[at - 1];
  group->value[at] = value;
}

/* The loads from `first` on with nothing but arithmetic between them. */
static void collect(const gpu_plan *g, gpu_part_kind part, uint32_t first, gpu_group *group) {
  const ssa_insn *a = gpu_insn(g, first);
  for (uint32_t e = first; e != SSA_NONE && group->count < GPU_MAX_GROUP; e = gpu_insn(g, e)->next) {
    const ssa_insn *b = gpu_insn(g, e);
    uint32_t flags = gpu_flags(g, e);
    if (flags & ATLAS_PURE && !(flags & (ATLAS_LOAD | ATLAS_BLOCK))) continue;
    if (!is_candidate(g, part, e) || b->symbol != a->symbol || b->type != a->type ||
        gpu_arg(g, e, 0) != gpu_arg(g, first, 0))
      return;
    insert(g, group, e);
  }
}

/* ---- neighbours -------------------------------------------------------------------------------------------------- */

static uint32_t neighbours(const gpu_plan *g, const gpu_group *group, uint32_t first) {
  uint32_t n = 1;
  while (first + n < group->count &&
         displacement_of(g, group->value[first + n]) == displacement_of(g, group->value[first]) + (int64_t)n)
    n++;
  return n;
}

/* Elements of the access that begins with this load: the width where it is aligned and has all its elements, else 1. */
static uint32_t access_width(const gpu_plan *g, const gpu_group *group, uint32_t first) {
  int64_t from_first = displacement_of(g, group->value[first]) - displacement_of(g, group->value[0]);
  return group->width > 1 && from_first % group->width == 0 && neighbours(g, group, first) >= group->width
             ? group->width
             : 1;
}

/* How many loads become part of wide accesses; group->joined says which. */
static uint32_t join(const gpu_plan *g, gpu_group *group) {
  uint32_t joined = 0;
  memset(group->joined, 0, sizeof group->joined);
  for (uint32_t i = 0; i < group->count; i += group->joined[i]) {
    group->joined[i] = (uint8_t)access_width(g, group, i);
    if (group->joined[i] > 1) joined += group->joined[i];
  }
  return joined;
}

/* The greatest width, aligned to the first element, that joins more than half of the loads; else 1. */
static void find_width(const gpu_plan *g, gpu_group *group) {
  group->width = GPU_VECTOR_BYTES / group->element_bytes;
  while (2 * join(g, group) <= group->count && group->width > 1) group->width /= 2;
}

/* ---- the group --------------------------------------------------------------------------------------------------- */

int hg_gpu_find_group(const gpu_plan *g, gpu_part_kind part, uint32_t value, gpu_group *group) {
  *group = (gpu_group){.count = 0};
  if (!is_candidate(g, part, value)) return 0;
  collect(g, part, value, group);
  if (group->count < 2) return 0;
  group->element_bytes = (uint8_t)gpu_bytes(g, value);
  group->is_read_only = g->read_only[hg_location_of(g->program, gpu_insn(g, value))];
  group->checks_least = displacement_of(g, group->value[0]) < 0 ||
                        gpu_is_signed(gpu_insn(g, gpu_arg(g, value, 0))->type);
  find_width(g, group);
  return group->count >= MIN_LOADS || group->width > 1;
}
