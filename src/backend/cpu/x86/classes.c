/* classes.c - instructions of the 96 classes: 24 h2 + 8 d + l, as in src/atlas/class96.c. A vector with a lane whose
 * operand is out of range goes to C code, which reports the fault. */
#include "backend/cpu/x86/x86_predicate.h"

#include "backend/cpu/x86/x86_arith.h"

enum { PER_H2 = 24, PER_D = 8, NOT_LESS = 5 };

static x86_rm number(x86_emit *e, uint32_t value) { return hg_x86_constant(e, value, 0); }

static unsigned source(x86_emit *e, int which, uint32_t copy, unsigned scratch) {
  return hg_x86_source_reg(e, e->insn->s[which], copy, 0, hg_x86_scratch(e, scratch));
}

/* Jumps to `slow` if a lane that takes part has a source that is not below its limit. Preserves scratch 0. */
static void check(x86_emit *e, uint32_t copy, const x86_rm *limits, int count, uint32_t slow) {
  unsigned found = e->width == 2 ? 2 : hg_x86_scratch(e, 2), other = hg_x86_scratch(e, 3);
  for (int k = 0; k < count; k++) {
    unsigned from = source(e, k, copy, 1);
    if (e->width == 2) {
      hg_x86_vi(e, X86_vpcmpud, k == 0 ? 2 : 0, from, limits[k], NOT_LESS);
      if (k > 0) hg_x86_k(e, X86_korw, 2, 2, 0);
    } else { /* a source is not below the limit if it is the larger of both */
      unsigned to = k == 0 ? found : other;
      hg_x86_v(e, X86_vpmaxud, to, from, limits[k]);
      hg_x86_v(e, X86_vpcmpeqd, to, to, x86_reg(from));
      if (k > 0) hg_x86_v(e, X86_vpord, found, found, x86_reg(other));
    }
  }
  int mask = hg_x86_mask(e, copy, e->width == 2 ? 1 : hg_x86_scratch(e, 1));
  if (e->width == 2) hg_x86_k(e, mask < 0 ? X86_kortestw : X86_ktestw, 2, 0, mask < 0 ? 2 : (unsigned)mask);
  else {
    if (mask >= 0) hg_x86_v(e, X86_vpandd, found, found, x86_reg((unsigned)mask));
    hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg(found));
    hg_x86_test(&e->a, 0, X86_RAX, X86_RAX);
  }
  hg_x86_jump_if(&e->a, X86_NOT_EQUAL, slow);
}

/* to = from modulo n, for from < 2 n: subtracting n from a smaller number wraps to a larger one. */
static void modulo(x86_emit *e, unsigned to, unsigned from, uint32_t n) {
  hg_x86_v(e, X86_vpsubd, to, from, number(e, n));
  hg_x86_v(e, X86_vpminud, to, to, x86_reg(from));
}

/* h2 ^ 2: adds or subtracts 48, whichever gives a class. */
static void mirror(x86_emit *e, uint32_t c) {
  unsigned s2 = hg_x86_scratch(e, 2), from = source(e, 0, c, 1);
  hg_x86_v(e, X86_vpaddd, s2, from, number(e, 2 * PER_H2));
  unsigned to = hg_x86_result_register(e, c, 0, hg_x86_scratch(e, 0));
  hg_x86_v(e, X86_vpsubd, to, from, number(e, 2 * PER_H2));
  hg_x86_v(e, X86_vpminud, to, to, x86_reg(s2));
  hg_x86_set_result(e, c, 0, to);
}

static void unity_test(x86_emit *e, uint32_t c) {
  unsigned s2 = hg_x86_scratch(e, 2);
  modulo(e, s2, source(e, 0, c, 1), 2 * PER_H2);
  unsigned to = hg_x86_predicate_result(e, c, e->width == 2 ? 2 : hg_x86_scratch(e, 0));
  if (e->width == 2) hg_x86_v(e, X86_vptestnmd, to, s2, x86_reg(s2));
  else hg_x86_v(e, X86_vpcmpeqd, to, s2, number(e, 0));
  hg_x86_set_predicate_result(e, c, to);
}

/* scratch 3 = 8 d + l; scratch 2 = that plus 24 times the lower bit of h2. */
static void split(x86_emit *e, uint32_t c) {
  modulo(e, hg_x86_scratch(e, 2), source(e, 0, c, 1), 2 * PER_H2);
  modulo(e, hg_x86_scratch(e, 3), hg_x86_scratch(e, 2), PER_H2);
}

/* to = 6 where d is 0, else 5. */
static void count_neighbours(x86_emit *e, unsigned to, uint32_t c) {
  split(e, c);
  hg_x86_v(e, X86_vpsubd, to, hg_x86_scratch(e, 3), number(e, PER_D));
  hg_x86_vi(e, X86_vpsrld_imm, 0, to, x86_reg(to), 31);
  hg_x86_v(e, X86_vpaddd, to, to, number(e, 5));
}

static void neighbour_count(x86_emit *e, uint32_t c) {
  unsigned to = hg_x86_result_register(e, c, 0, hg_x86_scratch(e, 0));
  count_neighbours(e, to, c);
  hg_x86_set_result(e, c, 0, to);
}

/* scratch 0 = scratch 2 in lanes whose neighbour has a number above `least`. */
static void take_above(x86_emit *e, uint32_t c, uint32_t least) {
  enum { GREATER = 6 };
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), from = source(e, 1, c, 1);
  if (e->width == 2) {
    hg_x86_vi(e, X86_vpcmpud, 1, from, number(e, least), GREATER);
    hg_x86_vk(e, X86_vmove, s0, 0, x86_reg(s2), 0, 1, 0);
  } else {
    hg_x86_v(e, X86_vpcmpgtd, s1, from, number(e, least));
    hg_x86_vi(e, X86_vblendvps, s0, s0, x86_reg(s2), s1 << 4);
  }
}

/* Adds to a class: neighbours 0 to 2 change a bit of l, neighbour 3 the lower bit of h2, and from 4 on d becomes 1 or
 * 2, or 0 again. */
static void neighbour(x86_emit *e, uint32_t c) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  split(e, c);
  hg_x86_v(e, X86_vpsubd, s2, s2, number(e, PER_H2));
  hg_x86_vi(e, X86_vpsrad_imm, 0, s2, x86_reg(s2), 31);
  hg_x86_v(e, X86_vpandd, s2, s2, number(e, 2 * PER_H2));
  hg_x86_v(e, X86_vpsubd, s2, s2, number(e, PER_H2)); /* 24 below 24, else -24 */
  unsigned one = hg_x86_rm_reg(e, number(e, 1), 0, s0);
  hg_x86_v(e, X86_vpsllvd, s0, one, x86_reg(source(e, 1, c, 1)));
  unsigned from = source(e, 0, c, 1);
  hg_x86_v(e, X86_vpxord, s0, s0, x86_reg(from));
  hg_x86_v(e, X86_vpsubd, s0, s0, x86_reg(from));
  take_above(e, c, 2);
  hg_x86_v(e, X86_vpsubd, s2, s3, number(e, PER_D));
  hg_x86_vi(e, X86_vpsrad_imm, 0, s2, x86_reg(s2), 31); /* all ones where d is 0 */
  hg_x86_v(e, X86_vpandd, s3, s3, number(e, 3 * PER_D)); /* 8 d */
  hg_x86_vi(e, X86_vpslld_imm, 0, s1, x86_reg(source(e, 1, c, 1)), 3);
  hg_x86_v(e, X86_vpsubd, s1, s1, number(e, 3 * PER_D));
  hg_x86_v(e, X86_vpandd, s2, s2, x86_reg(s1));
  hg_x86_v(e, X86_vpsubd, s2, s2, x86_reg(s3));
  take_above(e, c, 3);
  hg_x86_v(e, X86_vpaddd, s0, s0, x86_reg(source(e, 0, c, 1)));
  hg_x86_set_result(e, c, 0, s0);
}

/* (class * pages + page) * bytes + byte, below 2^21. */
static void boundary(x86_emit *e, uint32_t c) {
  unsigned s0 = hg_x86_scratch(e, 0);
  for (uint32_t p = 0; p < hg_x86_parts(e, e->insn->d); p++) {
    hg_x86_v(e, X86_vpmulld, s0, source(e, 0, c, 0), number(e, ATLAS_CLASS_PAGES));
    hg_x86_v(e, X86_vpaddd, s0, s0, x86_reg(source(e, 1, c, 1)));
    hg_x86_vi(e, X86_vpslld_imm, 0, s0, x86_reg(s0), 8);
    hg_x86_v(e, X86_vpaddd, s0, s0, x86_reg(source(e, 2, c, 1)));
    if (p == 1) hg_x86_vi(e, e->width == 2 ? X86_vextracti64x4 : X86_vextracti128, s0, 0, x86_reg(s0), 1);
    hg_x86_v(e, X86_vpmovzxdq, s0, 0, x86_reg(s0));
    hg_x86_set_result(e, c, p, s0);
  }
}

/* Adds to the worker's counters lane by lane: rax has the lanes that are left, rcx a lane and then its class, rbx its
 * value. */
static void accumulate(x86_emit *e, uint32_t c) {
  x86_asm *a = &e->a;
  size_t classes = offsetof(native_frame, vectors), values = classes + e->vector_bytes;
  uint32_t next = hg_x86_new_label(a), none = hg_x86_new_label(a);
  hg_x86_v(e, X86_vstore, source(e, 0, c, 1), 0, hg_x86_frame(classes));
  for (uint32_t p = 0; p < 2; p++)
    hg_x86_v(e, X86_vstore, hg_x86_source_reg(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1)), 0,
             hg_x86_frame(values + p * e->vector_bytes));
  int mask = hg_x86_mask(e, c, e->width == 2 ? 1 : hg_x86_scratch(e, 1));
  if (mask < 0) hg_x86_move_imm(a, X86_RAX, (UINT32_C(1) << e->lanes) - 1);
  else if (e->width == 2) hg_x86_k(e, X86_kmovw_to_g, X86_RAX, 0, (unsigned)mask);
  else hg_x86_v(e, X86_vmovmskps, X86_RAX, 0, x86_reg((unsigned)mask));
  hg_x86_test(a, 0, X86_RAX, X86_RAX);
  hg_x86_jump_if(a, X86_EQUAL, none);
  hg_x86_store(a, 1, hg_x86_frame(offsetof(native_frame, lane)), X86_LANE);
  hg_x86_load(a, 1, X86_RDX, x86_at(X86_CONTEXT, offsetof(native_context, worker)));
  hg_x86_place(a, next);
  hg_x86_tzcnt(a, 0, X86_RCX, x86_reg(X86_RAX));
  hg_x86_load(a, 1, X86_RBX, x86_indexed(X86_FRAME, X86_RCX, 3, (int32_t)values));
  hg_x86_load(a, 0, X86_RCX, x86_indexed(X86_FRAME, X86_RCX, 2, (int32_t)classes));
  hg_x86_alu_store(a, X86_ADD, 1, x86_indexed(X86_RDX, X86_RCX, 3, offsetof(cpu_worker, resonance)), X86_RBX);
  hg_x86_blsr(a, 0, X86_RAX, x86_reg(X86_RAX));
  hg_x86_jump_if(a, X86_NOT_EQUAL, next);
  hg_x86_load(a, 1, X86_LANE, hg_x86_frame(offsetof(native_frame, lane)));
  hg_x86_place(a, none);
}

int hg_x86_class(x86_emit *e) {
  static_assert(ATLAS_CLASS_PAGE_BYTES == 1 << 8, "boundary shifts");
  machine_class op = (machine_class)hg_machine_op(e->insn->op);
  x86_rm limits[3] = {number(e, ATLAS_CLASS_COUNT)};
  int count = 1;
  if (op != CLASS_res_accum && native_location_of(e->b, e->insn->d)->is_uniform) return 0;
  for (uint32_t c = 0; c < e->copies; c++) {
    uint32_t slow = hg_x86_slow_path(e, c);
    if (op == CLASS_bound_map) {
      limits[1] = number(e, ATLAS_CLASS_PAGES);
      limits[2] = number(e, ATLAS_CLASS_PAGE_BYTES);
      count = 3;
    } else if (op == CLASS_nbr_get) {
      count_neighbours(e, hg_x86_scratch(e, 0), c);
      limits[1] = x86_reg(hg_x86_scratch(e, 0));
      count = 2;
    }
    check(e, c, limits, count, slow);
    switch (op) {
    case CLASS_mirror: mirror(e, c); break;
    case CLASS_unity_test: unity_test(e, c); break;
    case CLASS_nbr_count: neighbour_count(e, c); break;
    case CLASS_nbr_get: neighbour(e, c); break;
    case CLASS_res_accum: accumulate(e, c); break;
    case CLASS_bound_map: boundary(e, c); break;
    }
    hg_x86_slow_back(e);
  }
  return 1;
}
