/* group_access.c - accesses to consecutive elements with one comparison for the lanes of a group, also under a mask.
 *
 * Which lanes take part is known only when the code runs, and only their indices have to be in bounds. Nearly always
 * those of the other lanes are, too: if all lanes of the group are in bounds, a masked access needs to know no more.
 * Else a slow path looks for the first and the last lane that take part, vector by vector. That needs an index that is
 * right in all lanes (hg_native_find_vector_strides): a lane that does not take part may hold anything elsewhere. */
#include "backend/cpu/x86/x86_memory.h"

#include <stddef.h>

/* ---- vector by vector -------------------------------------------------------------------------------------------- */

/* Stores a vector of indices in the frame, to read its elements by number. */
static int32_t spill_index(x86_emit *e, uint32_t index, uint32_t copy) {
  int32_t at = (int32_t)(offsetof(native_frame, vectors) + hg_x86_scratch(e, 0) * e->vector_bytes);
  for (uint32_t p = 0; p < (hg_x86_is_64(e, index) ? 2u : 1u); p++)
    hg_x86_v(e, X86_vstore, hg_x86_source_reg(e, index, copy, p, hg_x86_scratch(e, 0)), 0,
             x86_at(X86_FRAME, at + (int32_t)(p * e->vector_bytes)));
  return at;
}

/* For the lanes of a mask: rax = the index that lane 0 has or would have; rcx, rdx = those of the highest and the
 * lowest lane. */
static void find_masked_run(x86_emit *e, const x86_access *m, uint32_t copy, unsigned mask, uint32_t none) {
  x86_asm *a = &e->a;
  int is_64 = hg_x86_is_64(e, m->index);
  int32_t at = spill_index(e, m->index, copy);
  if (e->width == 2) hg_x86_k(e, X86_kmovw_to_g, X86_RCX, 0, mask);
  else hg_x86_v(e, X86_vmovmskps, X86_RCX, 0, x86_reg(mask));
  hg_x86_test(a, 0, X86_RCX, X86_RCX);
  hg_x86_jump_if(a, X86_EQUAL, none);
  hg_x86_tzcnt(a, 0, X86_RAX, x86_reg(X86_RCX));
  x86_rm element = x86_indexed(X86_FRAME, X86_RAX, is_64 ? 3 : 2, at);
  int is_signed = atlas_kind((atlas_type)hg_x86_type(e, m->index)) == ATLAS_KIND_SINT;
  if (!is_64 && is_signed) hg_x86_load_sign32(a, X86_RDX, element);
  else hg_x86_load(a, is_64, X86_RDX, element);
  hg_x86_lzcnt(a, 0, X86_RCX, x86_reg(X86_RCX));
  hg_x86_alu_imm(a, X86_XOR, 0, x86_reg(X86_RCX), 31); /* 31 - zeros: the highest lane */
  hg_x86_alu_rm(a, X86_SUB, 1, X86_RCX, x86_reg(X86_RAX));
  hg_x86_alu_rm(a, X86_ADD, 1, X86_RCX, x86_reg(X86_RDX));
  hg_x86_alu_rm(a, X86_SUB, 1, X86_RDX, x86_reg(X86_RAX));
  hg_x86_alu_rm(a, X86_ADD, 1, X86_RAX, x86_reg(X86_RDX)); /* the lowest lane's index; rdx: lane 0's */
  hg_x86_exchange(a, X86_RAX, X86_RDX);
}

/* The same for all lanes, or for the first ones. */
static void find_run(x86_emit *e, const x86_access *m, uint32_t copy) {
  x86_asm *a = &e->a;
  hg_x86_first_index(e, m->index, copy);
  hg_x86_load(a, 1, X86_RDX, x86_reg(X86_RAX));
  if (!e->is_tail) hg_x86_lea(a, X86_RCX, x86_at(X86_RAX, e->lanes - 1));
  else {
    hg_x86_load(a, 1, X86_RCX, x86_at(X86_FRAME, offsetof(native_frame, count)));
    hg_x86_lea(a, X86_RCX, x86_indexed(X86_RAX, X86_RCX, 0, -1));
  }
}

/* rdx, rcx: the lowest and the highest index. A 32-bit index that exceeds every limit may have wrapped. */
static void check_run(x86_emit *e, const x86_access *m, uint32_t slow) {
  x86_asm *a = &e->a;
  if (!x86_is_checked(e)) return;
  x86_rm bound = hg_x86_is_64(e, m->index) ? m->extent : m->limit;
  const unsigned regs[2] = {X86_RDX, X86_RCX};
  for (int k = 0; k < 2; k++) {
    if (m->displacement != 0) hg_x86_alu_imm(a, X86_ADD, 1, x86_reg(regs[k]), (int32_t)m->displacement);
    if (m->displacement > 0 && hg_x86_type(e, m->index) == ATLAS_u64) hg_x86_jump_if(a, X86_CARRY, slow);
    hg_x86_alu_rm(a, X86_CMP, 1, regs[k], bound);
    hg_x86_jump_if(a, X86_ABOVE_EQUAL, slow);
  }
}

/* The same for an index whose highest value decides: a u32 sum below the limit has not wrapped, so the lowest is no
 * higher. Also sets rax to the lowest index without the displacement. */
static int check_end_of_run(x86_emit *e, const x86_access *m, uint32_t copy, uint32_t slow) {
  if (hg_x86_type(e, m->index) != ATLAS_u32 || m->displacement < 0 || e->is_tail) return 0;
  hg_x86_first_index(e, m->index, copy);
  if (!x86_is_checked(e)) return 1;
  hg_x86_lea(&e->a, X86_RCX, x86_at(X86_RAX, (int32_t)m->displacement + e->lanes - 1));
  hg_x86_alu_rm(&e->a, X86_CMP, 1, X86_RCX, m->limit);
  hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, slow);
  return 1;
}

/* Accesses to consecutive elements, copy by copy, each with bounds of its own. */
void hg_x86_access_vectors(x86_emit *e, const x86_access *m, uint32_t first, uint32_t end) {
  int is_plain = e->insn->mask == VECTOR_ALL && !hg_x86_loses_lanes(e), is_masked = e->is_tail || !is_plain;
  for (uint32_t c = first; c < end; c++) {
    uint32_t slow = hg_x86_slow_path(e, c), none = hg_x86_new_label(&e->a);
    if (!is_plain || !check_end_of_run(e, m, c, slow)) {
      if (is_plain) find_run(e, m, c);
      else find_masked_run(e, m, c, (unsigned)hg_x86_mask(e, c, (unsigned)x86_mask_scratch(e)), none);
      check_run(e, m, slow);
    }
    x86_rm at = x86_indexed(hg_x86_base(e), X86_RAX, m->log_bytes, m->offset);
    int mask = is_masked ? hg_x86_mask(e, c, (unsigned)x86_mask_scratch(e)) : -1;
    hg_x86_access_run(e, m, at, c, mask);
    if (is_plain) hg_x86_prefetch_next_round(e, m, hg_x86_base(e), m->index);
    hg_x86_place(&e->a, none);
    hg_x86_slow_back(e);
  }
}

/* ---- a group ----------------------------------------------------------------------------------------------------- */

static int counts_up(x86_emit *e, uint32_t index) {
  if (!e->has_writers) hg_native_find_writers(e->b->vector, e->writer);
  e->has_writers = 1;
  if (!e->has_vector_strides) hg_native_find_vector_strides(e->b, e->writer, e->vector_strides);
  e->has_vector_strides = 1;
  return hg_native_stride_of(e->b, e->vector_strides, index) == VECTOR_STRIDE_1;
}

/* A group is part of a run of lanes where the program is one region: its vectors follow each other. */
int hg_x86_group_access(x86_emit *e, const x86_access *m) {
  uint32_t at_once = e->b->steps.count == 1 ? e->copies : 1;
  int is_plain = e->insn->mask == VECTOR_ALL && !hg_x86_loses_lanes(e);
  if (!x86_is_checked(e) || e->is_tail || e->b->slices > 0 || m->update != 0) return 0;
  if ((is_plain && at_once == 1) || !counts_up(e, m->index)) return 0;
  for (uint32_t c = 0; c < e->copies; c++) {
    uint32_t slow = 0;
    if (c % at_once == 0) {
      slow = hg_x86_slow_path(e, at_once == 1 ? c : X86_ALL_COPIES);
      if (!e->a.no_memory) ((x86_slow *)e->slow.data)[e->slow.count - 1].looks_for_lanes = 1;
      hg_x86_first_bits(e, m->index, c);
      hg_x86_check_number(e, m, X86_RAX, at_once * e->lanes - 1, X86_RCX, slow);
    }
    x86_rm at = x86_indexed(hg_x86_base(e), X86_RAX, m->log_bytes, m->offset);
    at.displacement += (int32_t)(c % at_once * e->lanes * m->bytes);
    hg_x86_access_run(e, m, at, c, is_plain ? -1 : hg_x86_mask(e, c, (unsigned)x86_mask_scratch(e)));
    if (c % at_once == at_once - 1) hg_x86_slow_back(e);
  }
  e->b->group_checks++;
  return 1;
}
