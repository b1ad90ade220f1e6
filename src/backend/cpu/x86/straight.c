/* straight.c - writes a block's straight-line code (native/straight.c): it has no loop over groups, no tail, and some
 * instructions that only such code has. */
#include "backend/cpu/x86/x86_convert.h"

#include <string.h>

enum { VECTOR_WORDS = 16 }; /* words of a vector in the pool, aligned so that none crosses a cache line */

static uint32_t vector_in_pool(x86_emit *e, const uint32_t *words) {
  static const uint32_t none = 0;
  const uint32_t *pool = e->pool.words.data;
  for (uint32_t place = 0; place + VECTOR_WORDS <= e->pool.words.count; place += VECTOR_WORDS)
    if (memcmp(pool + place, words, VECTOR_WORDS * sizeof *words) == 0) return place;
  while (e->pool.words.count % VECTOR_WORDS != 0 && !e->a.no_memory)
    if (hg_array_append(&e->a.allocator, &e->pool.words, &none, 1) == NULL) e->a.no_memory = 1;
  uint32_t place = (uint32_t)e->pool.words.count;
  if (hg_array_append(&e->a.allocator, &e->pool.words, words, VECTOR_WORDS) == NULL) e->a.no_memory = 1;
  return place;
}

static int write_known(x86_emit *e) {
  const uint64_t *known = (const uint64_t *)e->b->known.data + e->insn->bits;
  int is_predicate = hg_x86_type(e, e->insn->d) == SSA_PREDICATE;
  uint32_t words[VECTOR_WORDS] = {0}, set = 0;
  for (uint32_t i = 0; i < e->lanes; i++) {
    words[i] = is_predicate ? 0 - (uint32_t)known[i] : (uint32_t)known[i];
    set |= (uint32_t)(known[i] & 1) << i;
  }
  x86_rm from = x86_at(X86_POOL, 0);
  if (is_predicate && e->width == 2) {
    unsigned to = hg_x86_predicate_result(e, 0, 1);
    hg_x86_move_imm(&e->a, X86_RAX, set);
    hg_x86_k(e, X86_kmovw_from_g, to, 0, X86_RAX);
    hg_x86_set_predicate_result(e, 0, to);
    return 1;
  }
  unsigned to = is_predicate ? hg_x86_predicate_result(e, 0, hg_x86_scratch(e, 0))
                             : hg_x86_result_register(e, 0, 0, hg_x86_scratch(e, 0));
  from.displacement = (int32_t)vector_in_pool(e, words) * 4;
  hg_x86_v(e, X86_vload, to, 0, from);
  if (is_predicate) hg_x86_set_predicate_result(e, 0, to);
  else hg_x86_set_result(e, 0, 0, to);
  return 1;
}

static int write_count(x86_emit *e) {
  uint32_t over = hg_x86_new_label(&e->a);
  hg_x86_alu_imm(&e->a, X86_SUB, 1, hg_x86_frame(offsetof(native_frame, steps_left)), 1);
  hg_x86_jump_if(&e->a, X86_ABOVE_EQUAL, over);
  hg_x86_help(e, X86_ALL_COPIES);
  hg_x86_jump(&e->a, e->group_end);
  hg_x86_place(&e->a, over);
  return 1;
}

/* A permutation of the lanes of s0, of 32 bits. */
static int write_permutation(x86_emit *e) {
  uint32_t words[VECTOR_WORDS] = {0};
  for (uint32_t i = 0; i < e->lanes; i++) words[i] = e->insn->bits >> 4 * i & 15;
  x86_rm from = hg_x86_source(e, e->insn->s[0], 0, 0, hg_x86_scratch(e, 2));
  unsigned to = hg_x86_result_register(e, 0, 0, hg_x86_scratch(e, 0)), index = hg_x86_scratch(e, 1);
  hg_x86_v(e, X86_vload, index, 0, x86_at(X86_POOL, (int32_t)vector_in_pool(e, words) * 4));
  hg_x86_v(e, X86_vpermps, to, index, from);
  hg_x86_set_result(e, 0, 0, to);
  return 1;
}

/* ---- shifts of lanes --------------------------------------------------------------------------------------------- */

/* `to` = the last `count` elements, of 32 or 64 bits, of `low`, followed by the first ones of `high`. */
static void align(x86_emit *e, unsigned to, unsigned high, x86_rm low, unsigned count, int is_64) {
  if (e->width == 2) {
    hg_x86_vi(e, is_64 ? X86_valignq : X86_valignd, to, high, low, (is_64 ? 8 : 16) - count);
    return;
  }
  unsigned bytes = is_64 ? 8 * count : 4 * count, s3 = hg_x86_scratch(e, 3);
  unsigned halves = bytes == 16 ? to : s3, first = hg_x86_rm_reg(e, low, is_64, s3);
  hg_x86_vi(e, X86_vperm2i128, halves, first, x86_reg(high), 0x21); /* the upper half of low and the lower half of
                                                                       high */
  if (bytes != 16) hg_x86_vi(e, X86_vpalignr, to, high, x86_reg(halves), 16 - bytes);
}

/* The parts of a 64-bit value follow each other. Both results are computed before one is stored, since they may have
 * the registers of a source. */
static void shift_long(x86_emit *e, unsigned distance) {
  const uint32_t *s = e->insn->s;
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2);
  if (distance == e->lanes / 2u) {
    hg_x86_v(e, X86_vmove, s0, 0, x86_reg(hg_x86_source_reg(e, s[1], 0, 1, s1)));
    hg_x86_v(e, X86_vmove, s2, 0, x86_reg(hg_x86_source_reg(e, s[0], 0, 0, s1)));
  } else {
    unsigned high = hg_x86_source_reg(e, s[0], 0, 1, s1);
    align(e, s2, high, hg_x86_source(e, s[0], 0, 0, s0), distance, 1);
    high = hg_x86_source_reg(e, s[0], 0, 0, s1);
    align(e, s0, high, hg_x86_source(e, s[1], 0, 1, s0), distance, 1);
  }
  hg_x86_set_result(e, 0, 0, s0);
  hg_x86_set_result(e, 0, 1, s2);
}

static int write_shift(x86_emit *e) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), distance = (unsigned)e->insn->bits;
  if (hg_x86_is_64(e, e->insn->d)) {
    shift_long(e, distance);
    return 1;
  }
  unsigned high = hg_x86_source_reg(e, e->insn->s[0], 0, 0, s1);
  x86_rm low = hg_x86_source(e, e->insn->s[1], 0, 0, hg_x86_scratch(e, 2));
  unsigned to = hg_x86_result_register(e, 0, 0, s0);
  align(e, to, high, low, distance, 0);
  hg_x86_set_result(e, 0, 0, to);
  return 1;
}

static int write_rare(x86_emit *e) {
  hg_x86_test_any(e);
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, hg_x86_leave_label(e, NATIVE_IS_RARE));
  return 1;
}

int hg_x86_straight(x86_emit *e) {
  switch (e->insn->op) {
  case NATIVE_COUNT: return write_count(e);
  case NATIVE_GUARD_RANGE: return hg_x86_within(e);
  case NATIVE_TOUCH: return hg_x86_fetch(e);
  case NATIVE_BAIL_IF: return write_rare(e);
  case NATIVE_CONST_LANES: return write_known(e);
  case NATIVE_PERMUTE: return write_permutation(e);
  case NATIVE_SHIFT: return write_shift(e);
  case NATIVE_ROUND: hg_x86_round_to_small(e, (uint8_t)e->insn->bits); return 1;
  case ATLAS_OP_set_ne: return hg_x86_compare(e); /* votes: see straight_collect.c */
  default: return 0;
  }
}
