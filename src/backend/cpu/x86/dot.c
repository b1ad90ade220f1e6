/* dot.c - dot4: four products of bytes a lane. */
#include "backend/cpu/x86/x86_arith.h"

/* In each byte of a lane. */
enum { BYTES_64 = 0x40404040 };
#define BYTES_128 UINT64_C(0x80808080)
#define LOW_BYTES UINT64_C(0x00ff00ff) /* in each half */

static int is_signed_of_a(const x86_emit *e) { return e->insn->op == ATLAS_OP_dot4_ss; }
static int is_signed_of_b(const x86_emit *e) { return e->insn->op != ATLAS_OP_dot4_uu; }

/* ---- with VNNI ---------------------------------------------------------------------------------------------------
 * VPDPBUSD adds four products of unsigned bytes and signed ones to a sum, and nothing in it saturates. An unsigned byte
 * less 128 is a signed one, and the other way around: both are an exclusive-or of the highest bit. */

/* b's bytes are unsigned too: adds the products of a and b - 128, then twice 64 times a's bytes. */
static void add_unsigned(x86_emit *e, unsigned sum, unsigned a, x86_rm b) {
  unsigned s1 = hg_x86_scratch(e, 1), s3 = hg_x86_scratch(e, 3);
  hg_x86_v(e, X86_vpxord, s3, hg_x86_rm_reg(e, b, 0, s1), hg_x86_constant(e, BYTES_128, 0));
  hg_x86_v(e, X86_vpdpbusd, sum, a, x86_reg(s3));
  for (int i = 0; i < 2; i++) hg_x86_v(e, X86_vpdpbusd, sum, a, hg_x86_constant(e, BYTES_64, 0));
}

/* a's bytes are signed too: adds the products of a + 128 and b, less 128 times b's bytes. */
static void add_signed(x86_emit *e, unsigned sum, unsigned a, x86_rm b) {
  unsigned s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  hg_x86_v(e, X86_vpxord, s3, a, hg_x86_constant(e, BYTES_128, 0));
  hg_x86_v(e, X86_vpdpbusd, sum, s3, b);
  unsigned bytes_128 = hg_x86_rm_reg(e, hg_x86_constant(e, BYTES_128, 0), 0, s2); /* a is not read any more */
  hg_x86_v(e, X86_vpxord, s3, s3, x86_reg(s3));
  hg_x86_v(e, X86_vpdpbusd, s3, bytes_128, b);
  hg_x86_v(e, X86_vpsubd, sum, sum, x86_reg(s3));
}

static void dot_at_once(x86_emit *e, uint32_t c, uint32_t p) {
  unsigned s0 = hg_x86_scratch(e, 0), a = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 2));
  x86_rm b = hg_x86_source(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
  unsigned to = hg_x86_result_register(e, c, p, s0), sum = to;
  if (to == a || (!b.is_memory && to == b.reg)) sum = s0;
  unsigned addend = hg_x86_source_reg(e, e->insn->s[2], c, p, sum);
  if (addend != sum) hg_x86_v(e, X86_vmove, sum, 0, x86_reg(addend));
  if (is_signed_of_a(e)) add_signed(e, sum, a, b);
  else if (!is_signed_of_b(e)) add_unsigned(e, sum, a, b);
  else hg_x86_v(e, X86_vpdpbusd, sum, a, b);
  hg_x86_set_result(e, c, p, sum);
}

/* ---- without -----------------------------------------------------------------------------------------------------
 * Bytes as halves of 16 bits, the even ones and the odd ones: VPMADDWD adds two products of such halves. */

static void even_bytes(x86_emit *e, unsigned to, unsigned from, int is_signed) {
  if (!is_signed) {
    hg_x86_v(e, X86_vpandd, to, from, hg_x86_constant(e, LOW_BYTES, 0));
    return;
  }
  hg_x86_vi(e, X86_vpsllw_imm, 0, to, x86_reg(from), 8);
  hg_x86_vi(e, X86_vpsraw_imm, 0, to, x86_reg(to), 8);
}

static void odd_bytes(x86_emit *e, unsigned to, unsigned from, int is_signed) {
  hg_x86_vi(e, is_signed ? X86_vpsraw_imm : X86_vpsrlw_imm, 0, to, x86_reg(from), 8);
}

static void dot_by_halves(x86_emit *e, uint32_t c, uint32_t p) {
  unsigned s0 = hg_x86_scratch(e, 0), s1 = hg_x86_scratch(e, 1), s2 = hg_x86_scratch(e, 2), s3 = hg_x86_scratch(e, 3);
  unsigned a = hg_x86_source_reg(e, e->insn->s[0], c, p, s0), b = hg_x86_source_reg(e, e->insn->s[1], c, p, s1);
  even_bytes(e, s2, a, is_signed_of_a(e));
  even_bytes(e, s3, b, is_signed_of_b(e));
  hg_x86_v(e, X86_vpmaddwd, s2, s2, x86_reg(s3));
  odd_bytes(e, s0, a, is_signed_of_a(e));
  odd_bytes(e, s1, b, is_signed_of_b(e));
  hg_x86_v(e, X86_vpmaddwd, s0, s0, x86_reg(s1));
  hg_x86_v(e, X86_vpaddd, s0, s0, x86_reg(s2));
  x86_rm addend = hg_x86_source(e, e->insn->s[2], c, p, s1);
  unsigned to = hg_x86_result_register(e, c, p, s0);
  hg_x86_v(e, X86_vpaddd, to, s0, addend);
  hg_x86_set_result(e, c, p, to);
}

int hg_x86_dot(x86_emit *e) {
  X86_EACH(e, c, p) {
    if (e->has_dot) dot_at_once(e, c, p);
    else dot_by_halves(e, c, p);
  }
  return 1;
}
