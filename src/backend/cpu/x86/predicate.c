/* predicate.c - predicates as operands: mask registers with AVX-512, vectors otherwise. */
#include "backend/cpu/x86/x86_predicate.h"

unsigned hg_x86_existing_lanes(x86_emit *e, unsigned scratch) {
  if (x86_is_evex(e)) {
    if (e->is_tail) return X86_TAIL_MASK;
    hg_x86_k(e, X86_kxnorw, scratch, scratch, scratch);
  } else if (e->is_tail) hg_x86_v(e, X86_vload, scratch, 0, hg_x86_tail_mask(e));
  else hg_x86_v(e, X86_vpcmpeqd, scratch, scratch, x86_reg(scratch));
  return scratch;
}

x86_rm hg_x86_mask_row(const x86_emit *e, uint32_t offset, uint32_t copy) {
  return x86_indexed(X86_ROWS, X86_TILE_LANE, 0, (int32_t)(offset + copy * e->lanes));
}

void hg_x86_load_mask_row(x86_emit *e, uint32_t offset, uint32_t copy, unsigned to) {
  x86_rm from = hg_x86_mask_row(e, offset, copy);
  if (x86_is_evex(e)) {
    unsigned vector = hg_x86_scratch(e, 3);
    hg_x86_x(e, X86_vload8, vector, 0, from);
    hg_x86_x(e, X86_vptestmb, to, vector, x86_reg(vector));
    return;
  }
  hg_x86_v(e, X86_vpmovzxbd, to, 0, from);
  hg_x86_vi(e, X86_vpslld_imm, 0, to, x86_reg(to), 31); /* 1 becomes all ones; no other register changes */
  hg_x86_vi(e, X86_vpsrad_imm, 0, to, x86_reg(to), 31);
}

unsigned hg_x86_constant_predicate(x86_emit *e, uint64_t bits, unsigned scratch) {
  if (x86_is_evex(e)) hg_x86_k(e, bits ? X86_kxnorw : X86_kxorw, scratch, scratch, scratch);
  else hg_x86_v(e, bits ? X86_vpcmpeqd : X86_vpxord, scratch, scratch, x86_reg(scratch));
  return scratch;
}

unsigned hg_x86_fetch_predicate(x86_emit *e, const native_location *location, uint32_t copy, unsigned scratch) {
  uint32_t piece = location->copies == 1 ? 0 : copy;
  if (location->kind == NATIVE_REGISTERS) return location->reg[piece];
  if (location->kind == NATIVE_ROW && !location->is_uniform) hg_x86_load_mask_row(e, location->offset, copy, scratch);
  else {
    uint32_t bytes = x86_is_evex(e) ? 8 : e->vector_bytes;
    x86_rm from =
        x86_at(location->kind == NATIVE_ROW ? X86_ROWS : X86_FRAME, (int32_t)(location->offset + piece * bytes));
    if (x86_is_evex(e)) hg_x86_kmem(e, X86_kmovw, scratch, from);
    else hg_x86_v(e, X86_vload, scratch, 0, from);
  }
  return scratch;
}

/* In the tail, masks reg with the lanes that exist: a row, or a run in it, continues with other lanes. */
unsigned hg_x86_and_existing_lanes(x86_emit *e, unsigned reg, unsigned scratch) {
  if (!e->is_tail) return reg;
  if (x86_is_evex(e)) hg_x86_k(e, X86_kandw, scratch, reg, X86_TAIL_MASK);
  else hg_x86_v(e, X86_vpandd, scratch, reg, hg_x86_tail_mask(e));
  return scratch;
}

unsigned hg_x86_predicate(x86_emit *e, uint32_t reg, uint32_t copy, unsigned scratch) {
  uint64_t bits;
  if (reg == VECTOR_ALL && !hg_x86_loses_lanes(e)) return hg_x86_existing_lanes(e, scratch);
  if (reg == VECTOR_ALL)
    return hg_x86_fetch_predicate(e, native_location_of(e->b, x86_all_lanes_register(e)), copy, scratch);
  if (hg_x86_constant_bits(e, reg, &bits)) return hg_x86_constant_predicate(e, bits, scratch);
  return hg_x86_fetch_predicate(e, native_location_of(e->b, reg), copy, scratch);
}

/* The place is where calls of C code save registers; lanes.c uses the first ones as well. No vector crosses a cache
 * line: such stores took up to four times as long on Zen 4. */
x86_rm hg_x86_inside(const x86_emit *e, uint32_t copy) {
  enum { FIRST = 8 };
  if (x86_is_evex(e)) return hg_x86_frame(offsetof(native_frame, predicates) + copy * sizeof(uint64_t));
  return hg_x86_frame(offsetof(native_frame, vectors) + (size_t)(FIRST + copy) * e->vector_bytes);
}

int hg_x86_mask(x86_emit *e, uint32_t copy, unsigned scratch) {
  if (!e->leaves_out) return hg_x86_whole_mask(e, copy, scratch);
  if (x86_is_evex(e)) hg_x86_kmem(e, X86_kmovw, scratch, hg_x86_inside(e, copy));
  else hg_x86_v(e, X86_vload, scratch, 0, hg_x86_inside(e, copy));
  return (int)scratch;
}

int hg_x86_whole_mask(x86_emit *e, uint32_t copy, unsigned scratch) {
  uint32_t mask = e->insn->mask;
  if (mask == VECTOR_ALL && !e->is_tail && !hg_x86_loses_lanes(e)) return -1;
  unsigned reg = hg_x86_predicate(e, mask, copy, scratch);
  return (int)(mask == VECTOR_ALL ? reg : hg_x86_and_existing_lanes(e, reg, scratch));
}

unsigned hg_x86_mask_part(x86_emit *e, unsigned mask, uint32_t part, unsigned scratch) {
  if (x86_is_evex(e)) {
    if (part == 0) return mask;
    x86_vector_insn shift = {.op = X86_kshiftrw, .reg = (uint8_t)scratch, .rm = x86_reg(mask), .immediate = 8};
    hg_x86_vector(&e->a, &shift);
    return scratch;
  }
  if (part == 1) {
    hg_x86_vi(e, X86_vextracti128, mask, 0, x86_reg(scratch), 1);
    mask = scratch;
  }
  hg_x86_v(e, X86_vpmovsxdq, scratch, 0, x86_reg(mask));
  return scratch;
}
