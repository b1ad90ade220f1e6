/* local.c - loads and stores of local arrays, whose rows hold one element of all lanes of a group side by side. */
#include "backend/cpu/x86/x86_memory.h"

#include <stddef.h>

/* Elements whose store cannot be masked are blended with the old ones: nobody else writes them. */
static void blend_local(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy, unsigned mask) {
  unsigned old = hg_x86_scratch(e, 2);
  unsigned value = hg_x86_source_reg(e, m->value, copy, 0, hg_x86_scratch(e, 0));
  hg_x86_load_elements(e, m->type, old, at, 0);
  hg_x86_vi(e, X86_vblendvps, old, old, x86_reg(value), mask << 4);
  hg_x86_store_elements(e, m->type, at, old, 0, hg_x86_scratch(e, 3));
}

/* All lanes have one index, so their elements are consecutive. `at`: the element of the group's first lane. */
static void local_row(x86_emit *e, const x86_access *m, x86_rm at) {
  int32_t first = at.displacement;
  for (uint32_t c = 0; c < e->copies; c++) {
    at.displacement = first + (int32_t)(hg_x86_first_lane(e, c) * m->bytes);
    int mask = m->is_store ? hg_x86_mask(e, c, (unsigned)x86_mask_scratch(e)) : -1;
    if (!m->is_store) hg_x86_load_run(e, m, at, c, -1);
    else if (mask >= 0 && !x86_can_mask(e, m)) blend_local(e, m, at, c, (unsigned)mask);
    else hg_x86_store_run(e, m, at, c, mask);
  }
}

/* rax = the index, which all lanes share, times the slots. The index of lanes that do not take part may be garbage. */
static void local_row_of_index(x86_emit *e, const x86_access *m) {
  x86_asm *a = &e->a;
  uint32_t slow = hg_x86_slow_path(e, X86_ALL_COPIES);
  int takes_all = e->insn->mask == VECTOR_ALL && !e->b->vector->loses_lanes;
  hg_x86_first_index(e, m->index, 0);
  hg_x86_add_displacement(e, m, slow);
  if (x86_is_checked(e) || !takes_all) {
    hg_x86_alu_rm(a, X86_CMP, 1, X86_RAX, m->extent);
    hg_x86_jump_if(a, X86_ABOVE_EQUAL, slow);
  }
  hg_x86_move_imm(a, X86_RCX, e->b->local_lanes);
  hg_x86_multiply(a, 1, X86_RAX, x86_reg(X86_RCX));
  if (hg_native_has_tile_slots(e->b)) hg_x86_alu_rm(a, X86_ADD, 1, X86_RAX, x86_reg(X86_TILE_LANE));
  local_row(e, m, x86_indexed(hg_x86_base(e), X86_RAX, m->log_bytes, 0));
  hg_x86_slow_back(e);
}

int hg_x86_local(x86_emit *e, const x86_access *m) {
  uint32_t count = atlas_symbol_at(e->b->program, e->insn->symbol)->count;
  int has_tile_slots = hg_native_has_tile_slots(e->b);
  if (m->displacement <= -(int64_t)ATLAS_MAX_LOCAL_BYTES || m->displacement >= ATLAS_MAX_LOCAL_BYTES) return 0;
  if (m->index == VECTOR_NONE) {
    if (m->displacement < 0 || m->displacement >= count) return 0;
    unsigned base = hg_x86_base(e);
    int32_t row = (int32_t)(m->displacement * e->b->local_lanes * m->bytes);
    local_row(e, m, has_tile_slots ? x86_indexed(base, X86_TILE_LANE, m->log_bytes, row) : x86_at(base, row));
    return 1;
  }
  if (!hg_x86_is_uniform(e, m->index)) return hg_x86_gather(e, m);
  local_row_of_index(e, m);
  return 1;
}

void hg_x86_clear_local(x86_emit *e) {
  enum { STORES = 4 }; /* stores per round; there are at least as many vectors, and a multiple of it */
  x86_asm *a = &e->a;
  uint32_t first = 0, again = hg_x86_new_label(a), bytes = e->b->local_bytes * e->b->local_lanes;
  unsigned zero = hg_x86_scratch(e, 0);
  if (bytes == 0 || !e->b->vector->sees_local_zeros || hg_native_has_tile_slots(e->b)) return;
  while (!(e->b->vector->locals[first / 64] >> first % 64 & 1)) first++;
  hg_x86_load(a, 1, X86_RDX, x86_at(X86_CONTEXT, hg_x86_place_offset(first, offsetof(native_place, memory))));
  hg_x86_move_imm(a, X86_RAX, bytes / (STORES * e->vector_bytes));
  hg_x86_v(e, X86_vpxord, zero, zero, x86_reg(zero));
  hg_x86_place(a, again);
  for (int i = 0; i < STORES; i++) hg_x86_v(e, X86_vstore, zero, 0, x86_at(X86_RDX, i * e->vector_bytes));
  hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(X86_RDX), STORES * e->vector_bytes);
  hg_x86_alu_imm(a, X86_SUB, 0, x86_reg(X86_RAX), 1);
  hg_x86_jump_if(a, X86_NOT_EQUAL, again);
}
