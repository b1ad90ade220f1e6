/* gather.c - loads and stores with an index of unknown stride: a single access if the lanes of a vector turn out to
 * have one index, or consecutive ones; else gathers and scatters; and lane by lane where there are none: stores with
 * AVX2, and of elements below 32 bits.
 *
 * The lanes of a gather are k2 or, with AVX2, scratch 3, which the gather clears. */
#include "backend/cpu/x86/x86_memory.h"

#include <stddef.h>

/* ---- likely ones ------------------------------------------------------------------------------------------------- */

static x86_rm iota_of(const x86_emit *e) { return x86_at(X86_POOL, (int32_t)(e->pool.iota_place * 4)); }

/* rax = the index of the copy's lane 0. Jumps to `otherwise` unless the other lanes' indices follow from it by the
 * stride. */
static void match_stride(x86_emit *e, const x86_access *m, uint32_t copy, uint8_t stride, uint32_t otherwise) {
  int is_64 = hg_x86_is_64(e, m->index), is_evex = e->width == 2;
  unsigned s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned first = hg_x86_source_reg(e, m->index, copy, 0, s1);
  hg_x86_x(e, is_64 ? X86_vmovq_to_g : X86_vmovd_to_g, first, 0, x86_reg(X86_RAX));
  for (uint32_t p = 0; p < (is_64 ? 2u : 1u); p++) {
    unsigned index = hg_x86_source_reg(e, m->index, copy, p, s1);
    if (stride == VECTOR_STRIDE_1) hg_x86_count_up(e, s2, X86_RAX, p * (e->lanes / 2u), is_64);
    else if (p == 0)
      hg_x86_v(e, !is_64 ? X86_vpbroadcastd : is_evex ? X86_vpbroadcastq : X86_vpbroadcastq_vex, s2, 0, x86_reg(index));
    if (stride == VECTOR_STRIDE_BACK) hg_x86_v(e, X86_vpsubd, s2, s2, iota_of(e));
    if (is_evex) hg_x86_vi(e, is_64 ? X86_vpcmpuq : X86_vpcmpud, 1 - p, index, x86_reg(s2), 0);
    else if (p == 0) hg_x86_v(e, is_64 ? X86_vpcmpeqq : X86_vpcmpeqd, s3, s2, x86_reg(index));
    else {
      hg_x86_v(e, X86_vpcmpeqq, s2, s2, x86_reg(index));
      hg_x86_v(e, X86_vpandd, s3, s3, x86_reg(s2));
    }
  }
  if (is_evex) {
    if (is_64) hg_x86_k(e, X86_kunpckbw, 1, 0, 1);
    hg_x86_k(e, X86_kortestw, 1, 0, 1); /* carry: all ones */
    hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, otherwise);
    return;
  }
  hg_x86_v(e, X86_vmovmskps, X86_RCX, 0, x86_reg(s3));
  hg_x86_alu_imm(&e->a, X86_CMP, 0, x86_reg(X86_RCX), 0xff);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, otherwise);
}

static uint8_t likely_stride(x86_emit *e) {
  if (!e->has_guessed) hg_native_guess(e->b, e->strides, e->guess);
  e->has_guessed = 1;
  return e->guess[e->index];
}

static int takes_part_of_lanes(const x86_emit *e) {
  return e->is_tail || e->insn->mask != VECTOR_ALL || hg_x86_loses_lanes(e);
}

/* 1 if a copy's lanes probably have one index, or consecutive ones; of a load, perhaps in descending order. */
static int is_likely(x86_emit *e, const x86_access *m) {
  uint8_t stride = likely_stride(e);
  if (m->is_local) return 0;
  if (stride == VECTOR_STRIDE_OTHER || stride == VECTOR_STRIDE_PACKED || e->insn->symbol & SSA_LIBRARY) return 0;
  if (hg_x86_is_uniform(e, m->index)) return 0;
  if (atlas_bytes((atlas_type)hg_x86_type(e, m->index)) < 4) return 0;
  if (stride == VECTOR_STRIDE_BACK && (m->is_store || hg_x86_is_64(e, m->index))) return 0;
  if (m->is_store) return stride == VECTOR_STRIDE_1 && (!takes_part_of_lanes(e) || x86_can_mask(e, m));
  return hg_x86_copies(e, e->insn->d) == e->copies;
}

/* Loads a run in reverse: `at` is the element of the copy's last lane. */
static void load_reversed(x86_emit *e, const x86_access *m, x86_rm at, uint32_t copy) {
  uint32_t parts = hg_x86_parts(e, e->insn->d);
  for (uint32_t p = 0; p < parts; p++) {
    unsigned value = hg_x86_scratch(e, 0), order = hg_x86_scratch(e, 2);
    x86_rm from = at;
    from.displacement += (int32_t)((parts - 1 - p) * e->vector_bytes);
    hg_x86_load_elements(e, m->type, value, from, 0);
    if (m->type == ATLAS_bool) hg_x86_v(e, X86_vpminud, value, value, hg_x86_constant(e, 1, 0));
    hg_x86_v(e, X86_vpsubd, order, hg_x86_rm_reg(e, hg_x86_constant(e, e->lanes - 1u, 0), 0, order), iota_of(e));
    if (m->bytes == 8) hg_x86_v(e, X86_vpxord, order, order, hg_x86_constant(e, 1, 0)); /* halves keep their order */
    hg_x86_v(e, X86_vpermps, value, order, x86_reg(value));
    hg_x86_set_result(e, copy, p, value);
  }
}

/* Accesses such a copy. Lanes that take no part do no harm, since all are in bounds. */
static void write_likely(x86_emit *e, const x86_access *m, uint32_t copy, uint32_t otherwise) {
  uint8_t stride = likely_stride(e);
  int is_masked = takes_part_of_lanes(e);
  match_stride(e, m, copy, stride, otherwise);
  if (stride == VECTOR_STRIDE_BACK) {
    hg_x86_alu_imm(&e->a, X86_SUB, 1, x86_reg(X86_RAX), (int32_t)e->lanes - 1);
    hg_x86_jump_if(&e->a, X86_BELOW, otherwise);
  }
  hg_x86_check_number(e, m, X86_RAX, stride ? e->lanes - 1u : 0, X86_RCX, otherwise);
  x86_rm at = x86_indexed(hg_x86_base(e), X86_RAX, m->log_bytes, m->offset);
  if (m->is_store)
    hg_x86_store_run(e, m, at, copy, is_masked ? hg_x86_mask(e, copy, (unsigned)x86_mask_scratch(e)) : -1);
  else if (stride == VECTOR_STRIDE_BACK) load_reversed(e, m, at, copy);
  else if (stride) hg_x86_load_run(e, m, at, copy, -1);
  else {
    unsigned value = hg_x86_scratch(e, 0);
    hg_x86_broadcast_element(e, m, at, value);
    for (uint32_t p = 0; p < hg_x86_parts(e, e->insn->d); p++) hg_x86_set_result(e, copy, p, value);
  }
}

/* ---- gathers and scatters ---------------------------------------------------------------------------------------- */

static unsigned vector_index(x86_emit *e, const x86_access *m, uint32_t copy) {
  return m->is_local ? hg_x86_local_index(e, m->index, copy) : hg_x86_short_index(e, m->index, copy);
}

/* Jumps to `slow` if no index can be in bounds. A positive displacement is subtracted from the limit; a negative index
 * that it would bring in bounds is left to the slow path. */
static x86_bound load_bound(x86_emit *e, const x86_access *m, uint32_t slow) {
  int32_t after = m->displacement > 0 ? (int32_t)m->displacement : 0;
  if (hg_x86_load_limit(e, X86_RAX, m->limit, after)) hg_x86_jump_if(&e->a, X86_BELOW_EQUAL, slow);
  return (x86_bound){.index = m->index, .limit = X86_RAX, .added = m->displacement - after};
}

/* k2 = the lanes of the mask; jumps to `slow` unless all of them are in bounds. */
static void check_evex(x86_emit *e, const x86_access *m, uint32_t copy, uint32_t slow) {
  int mask = hg_x86_mask(e, copy, 1);
  if (!x86_is_checked(e)) {
    if (mask < 0) hg_x86_k(e, X86_kxnorw, 2, 2, 2);
    else hg_x86_k(e, X86_kmovw, 2, 0, (unsigned)mask);
    return;
  }
  x86_bound bound = load_bound(e, m, slow);
  hg_x86_compare_evex(e, &bound, copy, 2, X86_IS_BELOW);
  if (mask < 0) {
    hg_x86_k(e, X86_kortestw, 2, 0, 2); /* carry: all ones */
    hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, slow);
    return;
  }
  hg_x86_k(e, X86_kandnw, 0, 2, (unsigned)mask);
  hg_x86_k(e, X86_kmovw, 2, 0, (unsigned)mask);
  hg_x86_k(e, X86_kortestw, 0, 0, 0);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, slow);
}

static void check_vex(x86_emit *e, const x86_access *m, uint32_t copy, uint32_t slow) {
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2);
  if (!x86_is_checked(e)) return;
  x86_bound bound = load_bound(e, m, slow);
  hg_x86_compare_vex(e, &bound, copy);
  int mask = hg_x86_mask(e, copy, s0);
  if (mask >= 0) hg_x86_v(e, X86_vpandd, s2, s2, x86_reg((unsigned)mask));
  hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(s2));
  hg_x86_test(&e->a, 0, X86_RAX, X86_RAX);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, slow);
}

/* Extracts an index of hg_x86_short_index. It may be negative if it was not compared with a limit, and a displacement
 * makes up for it. */
static void extract_index(x86_emit *e, const x86_access *m, unsigned to, unsigned from) {
  hg_x86_x(e, X86_vmovd_to_g, from, 0, x86_reg(to));
  if (!x86_is_checked(e) && m->displacement > 0) hg_x86_load_sign32(&e->a, to, x86_reg(to));
}

/* Loads a vector whose first lanes end a row and whose other lanes begin the next one, as two runs: one from lane 0's
 * index on, one up to the last lane's. k2: its lanes, which are in bounds. Jumps to `otherwise` if a lane is in neither
 * run or takes no part. */
static void load_two_runs(x86_emit *e, const x86_access *m, uint32_t copy, unsigned base, uint8_t stride,
                     uint32_t otherwise) {
  unsigned index = vector_index(e, m, copy);
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned load = stride ? X86_vload : X86_vpbroadcastd;
  x86_rm last = hg_x86_constant(e, e->lanes - 1u, 0), iota = iota_of(e);
  int32_t back = stride ? -(int32_t)((e->lanes - 1u) * m->bytes) : 0;
  hg_x86_k(e, X86_kortestw, 2, 0, 2);
  hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, otherwise);
  extract_index(e, m, X86_RAX, index);
  hg_x86_v(e, X86_vpermps, s3, hg_x86_rm_reg(e, last, 0, s0), x86_reg(index));
  extract_index(e, m, X86_RCX, s3);
  hg_x86_v(e, X86_vpbroadcastd, s2, 0, x86_reg(index));
  if (stride) {
    hg_x86_v(e, X86_vpaddd, s2, s2, iota);
    hg_x86_v(e, X86_vpaddd, s3, s3, iota);
    hg_x86_v(e, X86_vpsubd, s3, s3, last);
  }
  hg_x86_vi(e, X86_vpcmpud, 1, index, x86_reg(s2), 0);
  hg_x86_vi(e, X86_vpcmpud, 0, index, x86_reg(s3), 0);
  hg_x86_k(e, X86_korw, 0, 0, 1);
  hg_x86_k(e, X86_kortestw, 0, 0, 0);
  hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, otherwise);
  hg_x86_vk(e, load, s0, 0, x86_indexed(base, X86_RAX, m->log_bytes, m->offset), 0, 1, 1);
  hg_x86_k(e, X86_knotw, 1, 0, 1);
  hg_x86_vk(e, load, s0, 0, x86_indexed(base, X86_RCX, m->log_bytes, m->offset + back), 0, 1, 0);
  hg_x86_set_result(e, copy, 0, s0);
}

/* The mask of an AVX2 gather, of 32-bit elements or of a part of 64-bit ones. */
static unsigned write_mask_vex(x86_emit *e, uint32_t copy, int part) {
  unsigned s3 = hg_x86_scratch(e, 3);
  int mask = hg_x86_mask(e, copy, s3);
  if (mask < 0) hg_x86_v(e, X86_vpcmpeqd, s3, s3, x86_reg(s3));
  else if (part >= 0) return hg_x86_mask_part(e, (unsigned)mask, (uint32_t)part, s3);
  else if ((unsigned)mask != s3) hg_x86_v(e, X86_vmove, s3, 0, x86_reg((unsigned)mask));
  return s3;
}

/* to = elements of 32 or 64 bits, 0 in lanes that take no part. */
static void gather_elements(x86_emit *e, unsigned to, x86_rm at, uint32_t copy, int part) {
  int is_64 = part >= 0;
  hg_x86_v(e, X86_vpxord, to, to, x86_reg(to));
  if (e->width == 2) hg_x86_vk(e, is_64 ? X86_vpgatherdq : X86_vpgatherdd, to, 0, at, 0, 2, 0);
  else hg_x86_v(e, is_64 ? X86_vpgatherdq_vex : X86_vpgatherdd_vex, to, write_mask_vex(e, copy, part), at);
}

static void gather_long_evex(x86_emit *e, const x86_access *m, uint32_t copy, unsigned base) {
  unsigned index = vector_index(e, m, copy), s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2);
  x86_rm at = x86_indexed(base, index, m->log_bytes, m->offset);
  hg_x86_vi(e, X86_vextracti64x4, index, 0, x86_reg(s2), 1);
  hg_x86_mask_part(e, 2, 1, 0); /* a gather clears its mask, and storing the result may use k1 */
  gather_elements(e, s0, at, copy, 0);
  hg_x86_set_result(e, copy, 0, s0);
  hg_x86_k(e, X86_kmovw, 2, 0, 0);
  at.index = (uint8_t)s2;
  gather_elements(e, s0, at, copy, 1);
  hg_x86_set_result(e, copy, 1, s0);
}

/* The second part waits in the frame, since storing the first may overwrite an index and change all other scratch
 * registers. */
static void gather_long_vex(x86_emit *e, const x86_access *m, uint32_t copy, unsigned base) {
  unsigned index = vector_index(e, m, copy), s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1);
  unsigned s2 = hg_x86_scratch(e, 2);
  x86_rm at = x86_indexed(base, index, m->log_bytes, m->offset), place = hg_x86_frame(offsetof(native_frame, vectors));
  gather_elements(e, s0, at, copy, 0);
  hg_x86_vi(e, X86_vextracti128, index, 0, x86_reg(s1), 1);
  at.index = (uint8_t)s1;
  gather_elements(e, s2, at, copy, 1);
  int waits = hg_x86_result_register(e, copy, 0, s0) == s0;
  if (waits) hg_x86_v(e, X86_vstore, s2, 0, place);
  hg_x86_set_result(e, copy, 0, s0);
  if (waits) hg_x86_v(e, X86_vload, s0, 0, place);
  hg_x86_set_result(e, copy, 1, waits ? s0 : s2);
}

/* scratch 1 = where elements below 32 bits begin, in bytes from the 4-byte unit that holds the base: below 2^32. */
static void find_bytes(x86_emit *e, const x86_access *m, unsigned index) {
  x86_asm *a = &e->a;
  unsigned s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  hg_x86_alu_imm(a, X86_AND, 0, x86_reg(X86_RCX), 3);
  hg_x86_alu_imm(a, X86_ADD, 0, x86_reg(X86_RCX), m->offset);
  if (e->width == 2) hg_x86_v(e, X86_vpbroadcastd_g, s2, 0, x86_reg(X86_RCX));
  else {
    hg_x86_x(e, X86_vmovd_from_g, s2, 0, x86_reg(X86_RCX));
    hg_x86_v(e, X86_vpbroadcastd, s2, 0, x86_reg(s2));
  }
  if (m->log_bytes > 0) hg_x86_vi(e, X86_vpslld_imm, 0, s1, x86_reg(index), m->log_bytes);
  hg_x86_v(e, X86_vpaddd, s1, m->log_bytes > 0 ? s1 : index, x86_reg(s2));
}

/* Gathers elements of 8 or 16 bits as parts of the 4 bytes at a multiple of 4: no page ends inside these. */
static void gather_short(x86_emit *e, const x86_access *m, uint32_t copy, unsigned base) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  unsigned bits = 8u * m->bytes, index = vector_index(e, m, copy);
  hg_x86_load(&e->a, 1, X86_RCX, x86_reg(base));
  hg_x86_load(&e->a, 1, X86_RAX, x86_reg(base));
  hg_x86_alu_imm(&e->a, X86_AND, 1, x86_reg(X86_RAX), -4);
  find_bytes(e, m, index);
  hg_x86_vi(e, X86_vpsrld_imm, 0, s2, x86_reg(s1), 2);
  gather_elements(e, s0, x86_indexed(X86_RAX, s2, 2, 0), copy, -1);
  hg_x86_vi(e, X86_vpslld_imm, 0, s1, x86_reg(s1), 3);
  hg_x86_v(e, X86_vpandd, s1, s1, hg_x86_constant(e, 24, 0));
  hg_x86_v(e, X86_vpsrlvd, s0, s0, x86_reg(s1));
  if (atlas_kind((atlas_type)m->type) == ATLAS_KIND_SINT) {
    hg_x86_vi(e, X86_vpslld_imm, 0, s0, x86_reg(s0), 32 - bits);
    hg_x86_vi(e, X86_vpsrad_imm, 0, s0, x86_reg(s0), 32 - bits);
  } else hg_x86_v(e, X86_vpandd, s0, s0, hg_x86_constant(e, (UINT64_C(1) << bits) - 1, 0));
  if (m->type == ATLAS_bool) hg_x86_v(e, X86_vpminud, s0, s0, hg_x86_constant(e, 1, 0));
  hg_x86_set_result(e, copy, 0, s0);
}

static void gather(x86_emit *e, const x86_access *m, uint32_t copy, unsigned base) {
  unsigned s0 = hg_x86_scratch(e, 0);
  if (m->bytes < 4) gather_short(e, m, copy, base);
  else if (m->bytes == 8 && e->width == 2) gather_long_evex(e, m, copy, base);
  else if (m->bytes == 8) gather_long_vex(e, m, copy, base);
  else {
    gather_elements(e, s0, x86_indexed(base, vector_index(e, m, copy), m->log_bytes, m->offset), copy, -1);
    hg_x86_set_result(e, copy, 0, s0);
  }
}

/* If several lanes store to one location, the highest comes last, as on the reference machine. */
static void scatter_evex(x86_emit *e, const x86_access *m, uint32_t copy, unsigned base) {
  unsigned index = vector_index(e, m, copy), s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2);
  x86_rm at = x86_indexed(base, index, m->log_bytes, m->offset);
  unsigned value = hg_x86_source_reg(e, m->value, copy, 0, s0);
  if (m->bytes == 4) {
    hg_x86_vk(e, X86_vpscatterdd, value, 0, at, 0, 2, 0);
    return;
  }
  hg_x86_vi(e, X86_vextracti64x4, index, 0, x86_reg(s2), 1);
  hg_x86_mask_part(e, 2, 1, 1);
  hg_x86_vk(e, X86_vpscatterdq, value, 0, at, 0, 2, 0);
  at.index = (uint8_t)s2;
  value = hg_x86_source_reg(e, m->value, copy, 1, s0);
  hg_x86_vk(e, X86_vpscatterdq, value, 0, at, 0, 1, 0);
}

/* k1 = as many low bits as the lanes of a part that k2 has; ecx: how many. */
static void count_lanes(x86_emit *e, uint32_t lanes) {
  hg_x86_k(e, X86_kmovw_to_g, X86_RCX, 0, 2);
  if (lanes < e->lanes) hg_x86_alu_imm(&e->a, X86_AND, 0, x86_reg(X86_RCX), (1 << lanes) - 1);
  hg_x86_popcnt(&e->a, 0, X86_RCX, x86_reg(X86_RCX));
  hg_x86_move_imm(&e->a, X86_RAX, UINT32_MAX);
  hg_x86_bzhi(&e->a, 0, X86_RAX, x86_reg(X86_RAX), X86_RCX);
  hg_x86_k(e, X86_kmovw_from_g, 1, 0, X86_RAX);
}

/* Stores the values of the lanes of k2 side by side, if their indices are consecutive: a scatter takes as long as ten
 * such stores. Jumps to `otherwise` if they are not, with k2 as it was. */
static void store_packed(x86_emit *e, const x86_access *m, uint32_t copy, unsigned base, uint32_t otherwise) {
  enum { ARE_UNEQUAL = 4 };
  unsigned index = vector_index(e, m, copy);
  unsigned s0 = hg_x86_scratch(e, 0), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  uint32_t parts = m->bytes == 8 ? 2 : 1;
  count_lanes(e, e->lanes);
  hg_x86_vk(e, X86_vpcompressd, index, 0, x86_reg(s2), 0, 2, 1);
  hg_x86_v(e, X86_vpbroadcastd, s3, 0, x86_reg(s2));
  hg_x86_v(e, X86_vpaddd, s3, s3, iota_of(e));
  hg_x86_vk(e, X86_vpcmpud, 0, s2, x86_reg(s3), ARE_UNEQUAL, 1, 0);
  hg_x86_k(e, X86_kortestw, 0, 0, 0);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, otherwise);
  for (uint32_t p = 0; p < parts; p++) {
    unsigned value = hg_x86_source_reg(e, m->value, copy, p, s0);
    if (parts == 2) count_lanes(e, e->lanes / 2u);
    hg_x86_vk(e, parts == 2 ? X86_vpcompressq : X86_vpcompressd, value, 0, x86_reg(s3), 0, 2, 1);
    extract_index(e, m, X86_RAX, s2);
    x86_rm at = x86_indexed(base, X86_RAX, m->log_bytes, m->offset);
    hg_x86_vk(e, parts == 2 ? X86_vstore64 : X86_vstore, s3, 0, at, 0, 1, 0);
    if (p + 1 == parts) break;
    hg_x86_alu_rm(&e->a, X86_ADD, 0, X86_RAX, x86_reg(X86_RCX));
    hg_x86_x(e, X86_vmovd_from_g, s2, 0, x86_reg(X86_RAX));
    hg_x86_mask_part(e, 2, 1, 2);
  }
}

/* A gather from a local array. */
static void gather_local(x86_emit *e, const x86_access *m, uint32_t copy) {
  x86_access at = *m;
  at.offset = x86_local_element(e, m->displacement, copy) * m->bytes;
  unsigned base = hg_x86_local_base(e, m->log_bytes);
  if (m->is_store) scatter_evex(e, &at, copy, base);
  else gather(e, &at, copy, base);
}

void hg_x86_gather_lanes(x86_emit *e, const x86_access *m, uint32_t copy) {
  if (e->width == 2) hg_x86_k(e, X86_kmovw, 2, 0, (unsigned)hg_x86_mask(e, copy, 1));
  if (m->is_local) gather_local(e, m, copy);
  else if (m->is_store) scatter_evex(e, m, copy, hg_x86_base(e));
  else gather(e, m, copy, hg_x86_base(e));
}

static void gather_copy(x86_emit *e, const x86_access *m, uint32_t copy, uint32_t slow, uint32_t done) {
  uint8_t stride = likely_stride(e);
  if (e->width == 2) check_evex(e, m, copy, slow);
  else check_vex(e, m, copy, slow);
  if (m->is_local) {
    gather_local(e, m, copy);
    return;
  }
  unsigned base = hg_x86_base(e);
  if (m->is_store && stride == VECTOR_STRIDE_PACKED) {
    uint32_t plain = hg_x86_new_label(&e->a);
    store_packed(e, m, copy, base, plain);
    hg_x86_jump(&e->a, done);
    hg_x86_place(&e->a, plain);
  }
  if (m->is_store) {
    scatter_evex(e, m, copy, base);
    return;
  }
  if (is_likely(e, m) && stride != VECTOR_STRIDE_BACK && m->bytes == 4 && e->width == 2) {
    uint32_t plain = hg_x86_new_label(&e->a);
    load_two_runs(e, m, copy, base, stride, plain);
    hg_x86_jump(&e->a, done);
    hg_x86_place(&e->a, plain);
  }
  gather(e, m, copy, base);
}

/* Accesses without gather or scatter: as a likely run, else lane by lane. */
static int write_likely_or_lanes(x86_emit *e, const x86_access *m) {
  if (!is_likely(e, m)) return 0;
  for (uint32_t c = 0; c < e->copies; c++) {
    uint32_t otherwise = hg_x86_new_label(&e->a), done = hg_x86_new_label(&e->a);
    write_likely(e, m, c, otherwise);
    hg_x86_jump(&e->a, done);
    hg_x86_place(&e->a, otherwise);
    if (!hg_x86_lanes_of(e, c)) hg_x86_help(e, c);
    hg_x86_place(&e->a, done);
  }
  return 1;
}

int hg_x86_gather(x86_emit *e, const x86_access *m) {
  if (m->index == VECTOR_NONE) return 0;
  if (m->is_store && !x86_can_scatter(e, m)) return write_likely_or_lanes(e, m);
  uint32_t copies = m->is_store ? e->copies : hg_x86_copies(e, e->insn->d);
  for (uint32_t c = 0; c < copies; c++) {
    uint32_t slow = hg_x86_slow_path(e, copies < e->copies ? X86_ALL_COPIES : c);
    uint32_t otherwise = hg_x86_new_label(&e->a), done = hg_x86_new_label(&e->a);
    if (is_likely(e, m)) {
      write_likely(e, m, c, otherwise);
      hg_x86_jump(&e->a, done);
    }
    hg_x86_place(&e->a, otherwise);
    gather_copy(e, m, c, slow, done);
    hg_x86_place(&e->a, done);
    hg_x86_slow_back(e);
  }
  return 1;
}
