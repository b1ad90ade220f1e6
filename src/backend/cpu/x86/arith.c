/* arith.c - arithmetic: what is one instruction, selection and moves; the rest is in float.c,
 * integer.c and compare.c. What is missing there (some operations of narrow or 64-bit integers, of
 * AVX2) is left to hg_native_help.
 *
 * A NaN may have any payload here: VECTOR_CANON stands wherever that can be seen. */
#include "backend/cpu/x86/x86_arith.h"

/* ---- rows: one instruction --------------------------------------------------------------------------------------- */

enum { NOT_THERE = X86_NOT_THERE, COMMUTES = 1 };

typedef struct binary_row {
  uint16_t op;
  uint16_t f32, f64, i32, i64, u32, u64;
  uint8_t flags;
} binary_row;

static const binary_row binary_rows[] = {
    {ATLAS_OP_add, X86_vaddps, X86_vaddpd, X86_vpaddd, X86_vpaddq, X86_vpaddd, X86_vpaddq, COMMUTES},
    {ATLAS_OP_sub, X86_vsubps, X86_vsubpd, X86_vpsubd, X86_vpsubq, X86_vpsubd, X86_vpsubq, 0},
    {ATLAS_OP_mul, X86_vmulps, X86_vmulpd, X86_vpmulld, X86_vpmullq, X86_vpmulld, X86_vpmullq, COMMUTES},
    {ATLAS_OP_div, X86_vdivps, X86_vdivpd, NOT_THERE, NOT_THERE, NOT_THERE, NOT_THERE, 0},
    {ATLAS_OP_min, NOT_THERE, NOT_THERE, X86_vpminsd, X86_vpminsq, X86_vpminud, X86_vpminuq, COMMUTES},
    {ATLAS_OP_max, NOT_THERE, NOT_THERE, X86_vpmaxsd, X86_vpmaxsq, X86_vpmaxud, X86_vpmaxuq, COMMUTES},
    {VECTOR_LESSER, X86_vminps, X86_vminpd, NOT_THERE, NOT_THERE, NOT_THERE, NOT_THERE, 0}, /* for NaN and for equal */
    {VECTOR_GREATER, X86_vmaxps, X86_vmaxpd, NOT_THERE, NOT_THERE, NOT_THERE, NOT_THERE, 0},/* values: the second */
    {ATLAS_OP_and, NOT_THERE, NOT_THERE, X86_vpandd, X86_vpandq, X86_vpandd, X86_vpandq, COMMUTES},
    {ATLAS_OP_or, NOT_THERE, NOT_THERE, X86_vpord, X86_vporq, X86_vpord, X86_vporq, COMMUTES},
    {ATLAS_OP_xor, NOT_THERE, NOT_THERE, X86_vpxord, X86_vpxorq, X86_vpxord, X86_vpxorq, COMMUTES},
};

static unsigned column(const binary_row *row, uint8_t type) {
  int is_64 = atlas_bytes((atlas_type)type) == 8;
  switch (atlas_kind((atlas_type)type)) {
  case ATLAS_KIND_FLOAT: return type == ATLAS_f32 ? row->f32 : type == ATLAS_f64 ? row->f64 : NOT_THERE;
  case ATLAS_KIND_SINT: return is_64 ? row->i64 : row->i32;
  case ATLAS_KIND_UINT: return is_64 ? row->u64 : row->u32;
  default: return NOT_THERE;
  }
}

static void binary(x86_emit *e, unsigned op, int commutes) {
  const vector_insn *insn = e->insn;
  int is_64 = hg_x86_is_64(e, insn->d);
  X86_EACH(e, c, p) {
    x86_rm a = hg_x86_source(e, insn->s[0], c, p, hg_x86_scratch(e, 0));
    x86_rm b = hg_x86_source(e, insn->s[1], c, p, hg_x86_scratch(e, 1));
    if (commutes && a.is_memory) {
      x86_rm other = a;
      a = b;
      b = other;
    }
    unsigned left = hg_x86_rm_reg(e, a, is_64, hg_x86_scratch(e, 0));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    hg_x86_v(e, op, to, left, b);
    hg_x86_extend(e, insn->type, to);
    hg_x86_done(e, c, p, to);
  }
}

static int binary_op(x86_emit *e) {
  for (size_t i = 0; i < sizeof binary_rows / sizeof binary_rows[0]; i++) {
    const binary_row *row = &binary_rows[i];
    if (row->op != e->insn->op) continue;
    unsigned op = column(row, e->insn->type);
    if (!x86_can_write(e, op)) return 0;
    binary(e, op, row->flags & COMMUTES);
    return 1;
  }
  return 0;
}

/* ---- selection, moves -------------------------------------------------------------------------------------------- */

static void select_op(x86_emit *e) {
  int is_64 = hg_x86_is_64(e, e->insn->d);
  X86_EACH(e, c, p) {
    unsigned mask_scratch = e->width == 2 ? 1 : hg_x86_scratch(e, 2);
    unsigned mask = hg_x86_predicate(e, e->insn->s[0], c, mask_scratch);
    if (is_64) mask = hg_x86_mask_part(e, mask, p, mask_scratch);
    unsigned no = hg_x86_source_reg(e, e->insn->s[2], c, p, hg_x86_scratch(e, 0));
    x86_rm yes = hg_x86_source(e, e->insn->s[1], c, p, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
    if (e->width == 2) hg_x86_vk(e, is_64 ? X86_vpblendmq : X86_vpblendmd, to, no, yes, 0, mask, 0);
    else hg_x86_vi(e, X86_vblendvps, to, no, yes, mask << 4);
    hg_x86_done(e, c, p, to);
  }
}

static void select_predicate(x86_emit *e) {
  for (uint32_t c = 0; c < hg_x86_copies(e, e->insn->d); c++) {
    if (e->width == 2) {
      unsigned p = hg_x86_predicate(e, e->insn->s[0], c, 1);
      hg_x86_k(e, X86_kandnw, 2, p, hg_x86_predicate(e, e->insn->s[2], c, 2));
      hg_x86_k(e, X86_kandw, 1, p, hg_x86_predicate(e, e->insn->s[1], c, 0));
      unsigned to = hg_x86_predicate_result(e, c, 2);
      hg_x86_k(e, X86_korw, to, 1, 2);
      hg_x86_predicate_done(e, c, to);
      continue;
    }
    unsigned p = hg_x86_predicate(e, e->insn->s[0], c, hg_x86_scratch(e, 2));
    unsigned no = hg_x86_predicate(e, e->insn->s[2], c, hg_x86_scratch(e, 0));
    unsigned yes = hg_x86_predicate(e, e->insn->s[1], c, hg_x86_scratch(e, 1));
    unsigned to = hg_x86_predicate_result(e, c, hg_x86_scratch(e, 0));
    hg_x86_vi(e, X86_vblendvps, to, no, x86_reg(yes), p << 4);
    hg_x86_predicate_done(e, c, to);
  }
}

static void move(x86_emit *e) {
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_result(e, c, p, hg_x86_scratch(e, 0)));
    hg_x86_done(e, c, p, from);
  }
}

/* The same bits under another type: only narrow integers are kept otherwise. */
static int bit_cast(x86_emit *e) {
  X86_EACH(e, c, p) {
    unsigned from = hg_x86_source_reg(e, e->insn->s[0], c, p, hg_x86_scratch(e, 0));
    unsigned to = from;
    if (x86_is_narrow(e->insn->type)) {
      to = hg_x86_result(e, c, p, hg_x86_scratch(e, 0));
      unsigned bits = atlas_type_bits((atlas_type)e->insn->type);
      int is_signed = atlas_kind((atlas_type)e->insn->type) == ATLAS_KIND_SINT;
      hg_x86_vi(e, X86_vpslld_imm, 0, to, x86_reg(from), 32 - bits);
      hg_x86_vi(e, is_signed ? X86_vpsrad_imm : X86_vpsrld_imm, 0, to, x86_reg(to), 32 - bits);
    }
    hg_x86_done(e, c, p, to);
  }
  return 1;
}

/* ---- all --------------------------------------------------------------------------------------------------------- */

int hg_x86_arith(x86_emit *e) {
  switch (e->insn->op) {
  case ATLAS_OP_sel:
    if (e->insn->type == SSA_PREDICATE || hg_x86_type(e, e->insn->d) == SSA_PREDICATE) select_predicate(e);
    else select_op(e);
    return 1;
  case VECTOR_MOVE:
  case ATLAS_OP_mov:
  case ATLAS_OP_movi: move(e); return 1;
  case ATLAS_OP_bitcast: return bit_cast(e);
  default: break;
  }
  if (hg_x86_compare(e)) return 1;
  if (e->insn->d == VECTOR_NONE || hg_x86_type(e, e->insn->d) == SSA_PREDICATE) return 0;
  if (hg_x86_is_table_index(e)) {
    move(e);
    return 1;
  }
  if (binary_op(e)) return 1;
  return atlas_is_integer((atlas_type)e->insn->type) ? hg_x86_integer(e) : hg_x86_float(e);
}
