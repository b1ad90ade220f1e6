/* bounds.c - compares the index of each lane with the limit of the memory that it accesses. */
#include "backend/cpu/x86/x86_memory.h"

int hg_x86_load_limit(x86_emit *e, unsigned to, x86_rm limit, int32_t less) {
  hg_x86_load(&e->a, 0, to, limit);
  if (less > 0) hg_x86_alu_imm(&e->a, X86_SUB, 0, x86_reg(to), less);
  return less > 0;
}

/* The number to compare. A 32-bit sum that wraps exceeds any limit. */
static unsigned compared_index(x86_emit *e, const x86_bound *b, uint32_t copy, uint32_t part) {
  int is_64 = hg_x86_is_64(e, b->index);
  unsigned s1 = hg_x86_scratch(e, 1), index = hg_x86_source_reg(e, b->index, copy, part, s1);
  uint64_t added = is_64 ? (uint64_t)b->added : (uint32_t)b->added;
  if (added == 0) return index;
  hg_x86_v(e, is_64 ? X86_vpaddq : X86_vpaddd, s1, index, hg_x86_constant(e, added, is_64));
  return s1;
}

void hg_x86_compare_evex(x86_emit *e, const x86_bound *b, uint32_t copy, unsigned to, x86_order order) {
  int is_64 = hg_x86_is_64(e, b->index);
  unsigned limit = hg_x86_scratch(e, 3), other = to == 0 ? 2 : 0;
  hg_x86_v(e, is_64 ? X86_vpbroadcastq_g : X86_vpbroadcastd_g, limit, 0, x86_reg(b->limit));
  hg_x86_vi(e, is_64 ? X86_vpcmpuq : X86_vpcmpud, to, compared_index(e, b, copy, 0), x86_reg(limit), order);
  if (!is_64) return;
  hg_x86_vi(e, X86_vpcmpuq, other, compared_index(e, b, copy, 1), x86_reg(limit), order);
  hg_x86_k(e, X86_kunpckbw, to, other, to);
}

/* Sets the sign bits of `to` where the index is out of bounds: since the limit is below 2^31, i is not below it exactly
 * if i or limit - 1 - i has its sign bit set. */
static void compare_part_vex(x86_emit *e, const x86_bound *b, uint32_t copy, uint32_t part, unsigned to) {
  int is_64 = hg_x86_is_64(e, b->index);
  unsigned last = hg_x86_scratch(e, 3), rest = hg_x86_scratch(e, 1), index = compared_index(e, b, copy, part);
  hg_x86_v(e, is_64 ? X86_vpsubq : X86_vpsubd, to, last, x86_reg(index));
  hg_x86_v(e, X86_vpord, to, to, x86_reg(index));
  if (b->low_bits == 0) return;
  hg_x86_v(e, X86_vpandd, rest, index, hg_x86_constant(e, b->low_bits, is_64));
  hg_x86_v(e, is_64 ? X86_vpcmpgtq : X86_vpcmpgtd, rest, rest, hg_x86_constant(e, 0, is_64));
  hg_x86_v(e, X86_vpord, to, to, x86_reg(rest));
}

/* The limit may be 0, so limit - 1 needs 64 bits if the indices have them. */
void hg_x86_compare_vex(x86_emit *e, const x86_bound *b, uint32_t copy) {
  enum { UPPER_HALVES = 0xdd, IN_ORDER = 0xd8 };
  int is_64 = hg_x86_is_64(e, b->index);
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2), last = hg_x86_scratch(e, 3);
  hg_x86_alu_imm(&e->a, X86_SUB, 1, x86_reg(b->limit), 1);
  hg_x86_x(e, is_64 ? X86_vmovq_from_g : X86_vmovd_from_g, last, 0, x86_reg(b->limit));
  hg_x86_v(e, is_64 ? X86_vpbroadcastq_vex : X86_vpbroadcastd, last, 0, x86_reg(last));
  compare_part_vex(e, b, copy, 0, s2);
  if (!is_64) return;
  compare_part_vex(e, b, copy, 1, s0);
  hg_x86_vi(e, X86_vshufps, s2, s2, x86_reg(s0), UPPER_HALVES);
  hg_x86_vi(e, X86_vpermq_imm, s2, 0, x86_reg(s2), IN_ORDER);
}
