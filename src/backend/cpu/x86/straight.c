/* straight.c - regions of few lanes, which get code without masks. */
#include "backend/cpu/x86/emit_x86.h"

/* A value in registers or the frame, or elements of 32 bits of lanes that follow each other, for all lanes. */
static int is_straight(x86_emit *e, uint32_t i) {
  const vector_insn *insn = vector_insn_at(e->b->vector, i);
  if (hg_native_is_nothing(e->b->vector, i)) return 1;
  int moves = insn->op == VECTOR_CANON || insn->op == VECTOR_MOVE;
  if (insn->mask != VECTOR_ALL || (!vector_is_primitive(insn->op) && !moves)) return 0;
  if (insn->d != VECTOR_NONE) {
    const native_home *home = native_home_of(e->b, insn->d);
    if (hg_x86_type(e, insn->d) == SSA_PREDICATE || home->kind == NATIVE_ROW || home->parts > 1) return 0;
  }
  if (!vector_is_primitive(insn->op)) return 1;
  unsigned flags = atlas_op_flags(insn->op);
  if (flags & (ATLAS_LOAD | ATLAS_STORE)) {
    e->index = i;
    e->insn = insn;
    return hg_x86_has_base(insn) && atlas_bytes((atlas_type)insn->type) == 4 && hg_x86_is_by_tile_lane(e);
  }
  return (flags & ATLAS_PURE) != 0;
}

/* 1 if the region, of the first so many lanes, gets code for 16, 8, 4, 2 and 1 of them, without masks: what a masked
 * store has written, a load that follows gets only when it is in the cache. */
int hg_x86_gets_exact(x86_emit *e, const native_step *step) {
  if (step->limit == VECTOR_NONE || e->b->vector->loses_lanes || step->end - step->first > X86_MOST_EXACT_INSNS)
    return 0;
  e->region_first = step->first;
  for (uint32_t i = step->first; i < step->end; i++)
    if (!is_straight(e, i)) return 0;
  return 1;
}
