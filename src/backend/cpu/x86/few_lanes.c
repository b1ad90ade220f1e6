/* few_lanes.c - finds the regions that run on few lanes and get code without masks. */
#include "backend/cpu/x86/emit_x86.h"
#include "backend/cpu/engine/cpu_tuning.h"

/* 1 if the instruction, in all lanes, only computes a value in registers or the frame or accesses consecutive 32-bit
 * elements. */
static int is_straight(x86_emit *e, uint32_t i) {
  const vector_insn *insn = vector_insn_at(e->b->vector, i);
  if (hg_native_needs_no_code(e->b->vector, i)) return 1;
  int moves = insn->op == VECTOR_CANON || insn->op == VECTOR_MOVE;
  if (insn->mask != VECTOR_ALL || (!vector_is_primitive(insn->op) && !moves)) return 0;
  if (insn->d != VECTOR_NONE) {
    const native_location *location = native_location_of(e->b, insn->d);
    if (hg_x86_type(e, insn->d) == SSA_PREDICATE || location->kind == NATIVE_ROW || location->parts > 1) return 0;
  }
  if (!vector_is_primitive(insn->op)) return 1;
  unsigned flags = atlas_op_flags(insn->op);
  if (flags & (ATLAS_LOAD | ATLAS_STORE)) {
    e->index = i;
    e->insn = insn;
    return hg_x86_has_base(insn) && !(flags & ATLAS_SPACE_LOCAL) && atlas_bytes((atlas_type)insn->type) == 4 &&
           hg_x86_is_by_tile_lane(e);
  }
  return (flags & ATLAS_PURE) != 0;
}

/* 1 if the region, which runs on its first lanes only, gets code for 16, 8, 4, 2 and 1 lanes without masks: a masked
 * store cannot forward to a load, which then waits until the data is in the cache. */
int hg_x86_gets_exact(x86_emit *e, const native_step *step) {
  if (step->limit == VECTOR_NONE || e->b->vector->loses_lanes || step->end - step->first > CPU_EXACT_INSNS)
    return 0;
  e->region_first = step->first;
  for (uint32_t i = step->first; i < step->end; i++)
    if (!is_straight(e, i)) return 0;
  return 1;
}
