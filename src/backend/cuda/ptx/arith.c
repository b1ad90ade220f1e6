/* arith.c - instructions without effects: each one rounds to nearest even, flushes no subnormals and approximates
 * nothing. */
#include "backend/cuda/ptx/ptx.h"

#include "atlas/value.h"
#include "compiler/machine_ops.h"


/* One instruction of the type's register. */
static void plain(ptx *p, const char *mnemonic, const char *suffix, ptx_name d, const ptx_name *a, uint32_t count) {
  ptx_name operand[4] = {d};
  for (uint32_t i = 0; i < count && i < 3; i++) operand[i + 1] = a[i];
  hg_ptx_ins(p, hg_ptx_join(mnemonic, suffix).text, operand, count + 1);
}

typedef struct cell {
  void (*write)(ptx *p, uint32_t value, ptx_name d);
  uint32_t types;
  const char *integer, *real; /* of `arithmetic`: what is one instruction */
} cell;

static const cell cells[MACHINE_OP_COUNT];

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static int is_bitwise(uint16_t op) {
  return op == ATLAS_OP_and || op == ATLAS_OP_or || op == ATLAS_OP_xor || op == ATLAS_OP_not;
}

/* The count is taken modulo the width. */
static void shift(ptx *p, uint32_t value, ptx_name d) {
  const ssa_insn *insn = ptx_insn(p, value), *count = ptx_insn(p, ptx_arg(p, value, 1));
  uint32_t mask = atlas_type_bits((atlas_type)insn->type) - 1;
  ptx_name by = hg_ptx_number(count->bits & mask);
  if (count->op != SSA_CONST) {
    by = hg_ptx_new(p, PTX_32);
    PTX(p, "and.b32", by, hg_ptx_register(p, ptx_arg(p, value, 1)), hg_ptx_number(mask));
  }
  ptx_name a = hg_ptx_value(p, ptx_arg(p, value, 0));
  if (insn->op == ATLAS_OP_shl) PTX(p, hg_ptx_class_of(insn->type) == PTX_64 ? "shl.b64" : "shl.b32", d, a, by);
  else PTX(p, hg_ptx_join("shr", hg_ptx_number_suffix(insn->type)).text, d, a, by);
  hg_ptx_normalise(p, insn->type, d);
}

/* The bits of a narrow value without its sign extension. */
static ptx_name low_bits(ptx *p, uint8_t type, ptx_name a) {
  if (!gpu_is_signed(type) || atlas_type_bits((atlas_type)type) >= 32) return a;
  ptx_name d = hg_ptx_new(p, PTX_32);
  PTX(p, "and.b32", d, a, hg_ptx_number(atlas_mask((atlas_type)type)));
  return d;
}

/* popc, clz, ctz, brev. The counts are 32-bit results. */
static void count_bits(ptx *p, uint32_t value, ptx_name d) {
  const ssa_insn *insn = ptx_insn(p, value);
  int is_wide = hg_ptx_class_of(insn->type) == PTX_64;
  uint32_t spare = is_wide ? 0 : 32 - atlas_type_bits((atlas_type)insn->type);
  const char *suffix = is_wide ? ".b64" : ".b32";
  ptx_name a = low_bits(p, insn->type, hg_ptx_in_register(p, ptx_arg(p, value, 0)));
  ptx_name answer = is_wide && insn->op != ATLAS_OP_brev ? hg_ptx_new(p, PTX_32) : d;
  if (insn->op == ATLAS_OP_ctz) {
    ptx_name reversed = hg_ptx_new(p, is_wide ? PTX_64 : PTX_32);
    if (spare > 0) { /* a bit set above the type's last one ends the count */
      ptx_name ended = hg_ptx_new(p, PTX_32);
      PTX(p, "or.b32", ended, a, hg_ptx_number(UINT64_C(1) << (32 - spare)));
      a = ended;
    }
    PTX(p, hg_ptx_join("brev", suffix).text, reversed, a);
    PTX(p, hg_ptx_join("clz", suffix).text, answer, reversed);
  } else {
    const char *mnemonic = insn->op == ATLAS_OP_popc ? "popc" : insn->op == ATLAS_OP_clz ? "clz" : "brev";
    PTX(p, hg_ptx_join(mnemonic, suffix).text, answer, a);
    if (spare > 0 && insn->op == ATLAS_OP_clz) PTX(p, "sub.s32", d, d, hg_ptx_number(spare));
    if (spare > 0 && insn->op == ATLAS_OP_brev)
      PTX(p, gpu_is_signed(insn->type) ? "shr.s32" : "shr.u32", d, d, hg_ptx_number(spare));
  }
  if (is_wide && insn->op != ATLAS_OP_brev) PTX(p, "cvt.u64.u32", d, answer);
  hg_ptx_normalise(p, insn->type, d);
}

/* The instruction knows the signs of the bytes; the sum's bits are the same either way. */
static void dot_product(ptx *p, uint32_t value, ptx_name d) {
  PTX(p, cells[hg_machine_op(ptx_insn(p, value)->op)].integer, d, hg_ptx_in_register(p, ptx_arg(p, value, 0)),
      hg_ptx_in_register(p, ptx_arg(p, value, 1)), hg_ptx_in_register(p, ptx_arg(p, value, 2)));
}

/* The products of narrow factors fit 32 bits. */
static void multiply_high(ptx *p, uint8_t type, ptx_name d, const ptx_name a[2]) {
  uint32_t bits = atlas_type_bits((atlas_type)type);
  if (bits >= 32) {
    plain(p, "mul.hi", hg_ptx_number_suffix(type), d, a, 2);
    return;
  }
  PTX(p, "mul.lo.s32", d, a[0], a[1]);
  PTX(p, gpu_is_signed(type) ? "shr.s32" : "shr.u32", d, d, hg_ptx_number(bits));
}

/* (a > 0) - (a < 0) */
static void integer_sign(ptx *p, uint8_t type, ptx_name d, ptx_name a) {
  const char *suffix = hg_ptx_number_suffix(type);
  int is_wide = hg_ptx_class_of(type) == PTX_64;
  ptx_name is_above = hg_ptx_new(p, PTX_PREDICATE), is_below = hg_ptx_new(p, PTX_PREDICATE), one = hg_ptx_number(1),
           zero = hg_ptx_number(0);
  PTX(p, hg_ptx_join("setp.gt", suffix).text, is_above, a, zero);
  PTX(p, hg_ptx_join("setp.lt", suffix).text, is_below, a, zero);
  PTX(p, is_wide ? "selp.b64" : "selp.b32", d, one, zero, is_above);
  PTX(p, is_wide ? "selp.b64" : "selp.b32", d, hg_ptx_name("-1"), d, is_below);
}

/* Divides by a scalar whose reciprocal is an argument. */
static void divide_by_scalar(ptx *p, uint32_t value, ptx_name d, uint32_t symbol) {
  ptx_class class = hg_ptx_class_of(ptx_insn(p, value)->type);
  int is_quotient = ptx_insn(p, value)->op == ATLAS_OP_div;
  ptx_name other = hg_ptx_new(p, class), reciprocal = hg_ptx_field(p, class, gpu_parameter_offset(p->plan, symbol) + 8);
  hg_ptx_divide(p, class, hg_ptx_in_register(p, ptx_arg(p, value, 0)), hg_ptx_register(p, ptx_arg(p, value, 1)),
                reciprocal, is_quotient ? d : other, is_quotient ? other : d);
}

/* -a as ~a + 1. For compute capability 9.0 and later, ptxas combines max(b, max(c, 0 - a)), and likewise min, into one
 * instruction and loses the minus (seen in 13.0 and in a driver of 580): so no negation may be written as 0 - a. */
static void integer_neg(ptx *p, const char *suffix, ptx_class class, ptx_name d, ptx_name a) {
  PTX(p, hg_ptx_join("not", hg_ptx_bits_suffix(class)).text, d, a);
  PTX(p, hg_ptx_join("add", suffix).text, d, d, hg_ptx_number(1));
}

/* (a ^ s) - s with s = 0 or, for a < 0, -1; abs(MIN) = MIN. max(a, -a) would trigger the bug that integer_neg
 * avoids. */
static void integer_abs(ptx *p, uint8_t type, ptx_name d, ptx_name a) {
  ptx_class class = hg_ptx_class_of(type);
  ptx_name sign = hg_ptx_new(p, class);
  PTX(p, class == PTX_64 ? "shr.s64" : "shr.s32", sign, a, hg_ptx_number(class == PTX_64 ? 63 : 31));
  PTX(p, hg_ptx_join("xor", hg_ptx_bits_suffix(class)).text, d, a, sign);
  PTX(p, hg_ptx_join("sub", hg_ptx_number_suffix(type)).text, d, d, sign);
}

static void integer_op(ptx *p, uint16_t op, uint8_t type, ptx_name d, const ptx_name *a, uint32_t count) {
  const char *mnemonic = cells[hg_machine_op(op)].integer, *suffix = hg_ptx_number_suffix(type);
  ptx_class class = hg_ptx_class_of(type);
  if (op == ATLAS_OP_sign) integer_sign(p, type, d, a[0]);
  else if (op == ATLAS_OP_mulhi) multiply_high(p, type, d, a);
  else if (op == ATLAS_OP_abs) integer_abs(p, type, d, a[0]);
  else if (op == ATLAS_OP_neg) integer_neg(p, suffix, class, d, a[0]);
  else plain(p, mnemonic, is_bitwise(op) ? hg_ptx_bits_suffix(class) : suffix, d, a, count);
  hg_ptx_normalise(p, type, d);
}

/* ---- floating point ---------------------------------------------------------------------------------------------- */

/* PTX orders -0 below +0 and prefers a number to a NaN. min.NaN exists from sm_80 on, but not for f64. */
static void minimum(ptx *p, int is_max, uint8_t type, ptx_name d, ptx_name a, ptx_name b) {
  const char *suffix = hg_ptx_number_suffix(type);
  ptx_class class = hg_ptx_class_of(type);
  if (type != ATLAS_f64 && p->options->capability >= 80) {
    PTX(p, hg_ptx_join(is_max ? "max.NaN" : "min.NaN", suffix).text, d, a, b);
    return;
  }
  ptx_name nan = hg_ptx_new(p, PTX_PREDICATE), number = hg_ptx_new(p, class);
  PTX(p, hg_ptx_join("setp.nan", suffix).text, nan, a, b);
  PTX(p, hg_ptx_join(is_max ? "max" : "min", suffix).text, number, a, b);
  PTX(p, hg_ptx_join("selp", hg_ptx_bits_suffix(class)).text, d,
      hg_ptx_constant(type, atlas_canonical_nan((atlas_type)type)), number, nan);
}

static void float_sign(ptx *p, uint8_t type, ptx_name d, ptx_name a) {
  const char *suffix = hg_ptx_number_suffix(type), *select = type == ATLAS_f64 ? "selp.b64" : "selp.b32";
  int is_f64 = type == ATLAS_f64;
  ptx_name zero = hg_ptx_constant(type, 0), test = hg_ptx_new(p, PTX_PREDICATE);
  ptx_name one = hg_ptx_constant(type, is_f64 ? UINT64_C(0x3ff0000000000000) : 0x3f800000);
  ptx_name minus = hg_ptx_constant(type, is_f64 ? UINT64_C(0xbff0000000000000) : 0xbf800000);
  ptx_name below = hg_ptx_new(p, hg_ptx_class_of(type)), number = hg_ptx_new(p, hg_ptx_class_of(type));
  PTX(p, hg_ptx_join("setp.lt", suffix).text, test, a, zero);
  PTX(p, select, below, minus, zero, test);
  PTX(p, hg_ptx_join("setp.gt", suffix).text, test, a, zero);
  PTX(p, select, number, one, below, test);
  PTX(p, hg_ptx_join("setp.nan", suffix).text, test, a, a);
  PTX(p, select, d, hg_ptx_constant(type, atlas_canonical_nan((atlas_type)type)), number, test);
}

static void float_op(ptx *p, uint16_t op, uint8_t type, ptx_name d, const ptx_name *a, uint32_t count) {
  const char *suffix = hg_ptx_number_suffix(type);
  const char *mnemonic = cells[hg_machine_op(op)].real;
  switch (op) {
  case ATLAS_OP_min: minimum(p, 0, type, d, a[0], a[1]); break;
  case ATLAS_OP_max: minimum(p, 1, type, d, a[0], a[1]); break;
  case ATLAS_OP_sign: float_sign(p, type, d, a[0]); break;
  case ATLAS_OP_floor:
  case ATLAS_OP_ceil:
  case ATLAS_OP_trunc:
  case ATLAS_OP_round: plain(p, mnemonic, hg_ptx_join(suffix, suffix).text, d, a, 1); break;
  default: plain(p, mnemonic, suffix, d, a, count); break;
  }
}

void hg_ptx_combine(ptx *p, uint16_t op, uint8_t type, ptx_name d, ptx_name a, ptx_name b) {
  if (atlas_is_integer((atlas_type)type)) {
    integer_op(p, op, type, d, (const ptx_name[]){a, b}, 2);
  } else if (type == ATLAS_f32 || type == ATLAS_f64) {
    float_op(p, op, type, d, (const ptx_name[]){a, b}, 2);
  } else {
    ptx_name wide = hg_ptx_new(p, PTX_32);
    float_op(p, op, ATLAS_f32, wide, (const ptx_name[]){hg_ptx_to_f32(p, type, a), hg_ptx_to_f32(p, type, b)}, 2);
    hg_ptx_from_f32(p, type, d, wide);
  }
}

/* ---- bits -------------------------------------------------------------------------------------------------------- */

static ptx_name sign_mask(uint8_t type, int inverted) {
  uint64_t mask = atlas_mask((atlas_type)type), sign = UINT64_C(1) << (atlas_type_bits((atlas_type)type) - 1);
  return hg_ptx_number(inverted ? mask ^ sign : sign);
}

/* abs, neg and copysign change only the sign bit. If nothing reads the sign of a NaN, ptxas folds abs and neg into the
 * instructions that read them. */
static void sign_bit(ptx *p, uint32_t value, ptx_name d) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_class class = hg_ptx_class_of(insn->type);
  const char *suffix = hg_ptx_bits_suffix(class);
  int is_wide = insn->type == ATLAS_f32 || insn->type == ATLAS_f64;
  if (insn->op != ATLAS_OP_copysign && !p->plan->bits_used[value] && is_wide) {
    PTX(p, hg_ptx_join(insn->op == ATLAS_OP_neg ? "neg" : "abs", hg_ptx_number_suffix(insn->type)).text, d,
        hg_ptx_value(p, ptx_arg(p, value, 0)));
    return;
  }
  ptx_name a = hg_ptx_argument(p, value, 0);
  if (insn->op == ATLAS_OP_neg) {
    PTX(p, hg_ptx_join("xor", suffix).text, d, a, sign_mask(insn->type, 0));
  } else if (insn->op == ATLAS_OP_abs) {
    PTX(p, hg_ptx_join("and", suffix).text, d, a, sign_mask(insn->type, 1));
  } else {
    ptx_name giver = hg_ptx_argument(p, value, 1);
    if (class == PTX_32) { /* (mask and a) or (not mask and giver) */
      PTX(p, "lop3.b32", d, sign_mask(insn->type, 1), a, giver, hg_ptx_name("0xCA"));
      return;
    }
    ptx_name magnitude = hg_ptx_new(p, class), sign = hg_ptx_new(p, class);
    PTX(p, hg_ptx_join("and", suffix).text, magnitude, a, sign_mask(insn->type, 1));
    PTX(p, hg_ptx_join("and", suffix).text, sign, giver, sign_mask(insn->type, 0));
    PTX(p, hg_ptx_join("or", suffix).text, d, magnitude, sign);
  }
}

/* 16-bit floats lie in 16-bit registers, 16-bit integers do not. */
static void bitcast(ptx *p, uint32_t value, ptx_name d) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_class to = hg_ptx_class_of(insn->type), from = hg_ptx_class_of(insn->type2);
  uint32_t arg = ptx_arg(p, value, 0);
  ptx_name a = hg_ptx_argument(p, value, 0);
  int is_constant = ptx_insn(p, arg)->op == SSA_CONST;
  if (from != to && is_constant) a = hg_ptx_in_register(p, arg);
  if (from == PTX_16 && to == PTX_32) PTX(p, insn->type == ATLAS_i16 ? "cvt.s32.s16" : "cvt.u32.u16", d, a);
  else if (from == PTX_32 && to == PTX_16) PTX(p, "cvt.u16.u32", d, a);
  else PTX(p, hg_ptx_join("mov", hg_ptx_bits_suffix(to)).text, d, a);
  if (to == PTX_32 && from == PTX_32) hg_ptx_normalise(p, insn->type, d);
}

static uint32_t without_casts(const ptx *p, uint32_t value) {
  for (;;) {
    const ssa_insn *insn = ptx_insn(p, value);
    int is_cast = insn->op == ATLAS_OP_bitcast || insn->op == ATLAS_OP_pnot;
    if (!is_cast) return value;
    value = ptx_arg(p, value, 0);
  }
}

/* 1 for an f32 comparison that selects one of the values it compares. ptxas turns it into a minimum or maximum, which
 * loses the payload of a NaN (seen with setp.lt x > -0 ? 0 : x, from sm_80 on). */
static int may_become_minimum(const ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint32_t test = without_casts(p, ptx_arg(p, value, 0));
  int keeps = p->plan->nan[value] == GPU_NAN_KEPT || p->plan->nan[value] == GPU_NAN_CANONICAL;
  int seen = atlas_is_integer((atlas_type)insn->type) || (keeps && p->plan->bits_used[value]);
  if (!seen || hg_ptx_class_of(insn->type) != PTX_32) return 0;
  if (!atlas_is_comparison(ptx_insn(p, test)->op) || ptx_insn(p, test)->type2 != ATLAS_f32) return 0;
  for (unsigned i = 1; i < 3; i++)
    for (unsigned k = 0; k < 2; k++) {
      uint32_t chosen = without_casts(p, ptx_arg(p, value, i));
      if (ptx_insn(p, chosen)->op != SSA_CONST && chosen == without_casts(p, ptx_arg(p, test, k))) return 1;
    }
  return 0;
}

static void select_value(ptx *p, uint32_t value, ptx_name d) {
  ptx_class class = hg_ptx_class_of(ptx_insn(p, value)->type);
  int is_max = 0;
  if (hg_gpu_is_bound(p->plan, value, &is_max)) {
    PTX(p, hg_ptx_join(is_max ? "max" : "min", hg_ptx_number_suffix(ptx_insn(p, value)->type)).text, d,
        hg_ptx_value(p, ptx_arg(p, value, 1)), hg_ptx_value(p, ptx_arg(p, value, 2)));
    return;
  }
  ptx_name yes = hg_ptx_argument(p, value, 1), no = hg_ptx_argument(p, value, 2);
  ptx_name test = hg_ptx_value(p, ptx_arg(p, value, 0));
  if (may_become_minimum(p, value)) { /* bitwise: (mask and yes) or (not mask and no) */
    ptx_name mask = hg_ptx_new(p, PTX_32);
    PTX(p, "selp.b32", mask, hg_ptx_name("-1"), hg_ptx_number(0), test);
    PTX(p, "lop3.b32", d, mask, yes, no, hg_ptx_name("0xCA"));
    return;
  }
  PTX(p, hg_ptx_join("selp", hg_ptx_bits_suffix(class)).text, d, yes, no, test);
}

/* ---- predicates -------------------------------------------------------------------------------------------------- */

/* If a comparison with a constant holds for all numbers of one sign, ptxas forgets about NaNs: it takes 0 <= |x| for
 * true (13.0; also 0 <= x x and -|x| < 1). The opposite comparison, which is true for NaNs, is not affected. */
static int may_hold_for_a_sign(const ptx *p, uint32_t value) {
  uint32_t a = ptx_arg(p, value, 0), b = ptx_arg(p, value, 1);
  const hg_range *of = p->plan->analysis.range;
  uint16_t op = ptx_insn(p, value)->op;
  if (ptx_insn(p, value)->type2 != ATLAS_f32 || (op != ATLAS_OP_set_lt && op != ATLAS_OP_set_le)) return 0;
  if (ptx_insn(p, a)->op == SSA_CONST) {
    return of[b].is_nan && of[a].greatest <= 0 && (of[b].greatest > 0 || of[b].least >= 0);
  }
  return ptx_insn(p, b)->op == SSA_CONST && of[a].is_nan && of[b].least >= 0 &&
         (of[a].least < 0 || of[a].greatest <= 0);
}

static void compare(ptx *p, uint32_t value, ptx_name d) {
  const ssa_insn *insn = ptx_insn(p, value);
  const char *mnemonic = NULL;
  ptx_name a = hg_ptx_value(p, ptx_arg(p, value, 0)), b = hg_ptx_value(p, ptx_arg(p, value, 1));
  if (may_hold_for_a_sign(p, value)) {
    ptx_name opposite = hg_ptx_new(p, PTX_PREDICATE);
    mnemonic = insn->op == ATLAS_OP_set_lt ? "setp.geu.f32" : "setp.gtu.f32";
    hg_ptx_put(p, "\t%s %s|%s, %s, %s;\n", mnemonic, opposite.text, d.text, a.text, b.text);
    return;
  }
  switch ((machine_compare)hg_machine_op(insn->op)) {
  case COMPARE_set_eq: mnemonic = "setp.eq"; break;
  case COMPARE_set_lt: mnemonic = "setp.lt"; break;
  case COMPARE_set_le: mnemonic = "setp.le"; break;
  case COMPARE_set_num: mnemonic = "setp.num"; break;
  }
  PTX(p, hg_ptx_join(mnemonic, hg_ptx_number_suffix(insn->type2)).text, d, a, b);
}

static void combine_predicates(ptx *p, uint32_t value, ptx_name d) {
  ptx_name a = hg_ptx_value(p, ptx_arg(p, value, 0));
  const char *mnemonic = NULL;
  switch ((machine_logic)hg_machine_op(ptx_insn(p, value)->op)) {
  case LOGIC_pand: mnemonic = "and.pred"; break;
  case LOGIC_por: mnemonic = "or.pred"; break;
  case LOGIC_pxor: mnemonic = "xor.pred"; break;
  case LOGIC_pnot: PTX(p, "not.pred", d, a); return;
  }
  PTX(p, mnemonic, d, a, hg_ptx_value(p, ptx_arg(p, value, 1)));
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

/* The minimum or maximum of all halves of several words. */
static void extreme_of_words(ptx *p, uint32_t value, ptx_name d) {
  const ssa_insn *insn = ptx_insn(p, value);
  uint8_t type = ptx_insn(p, ptx_arg(p, value, 0))->type;
  ptx_name op = hg_ptx_join(insn->op == ATLAS_OP_max ? "max.NaN" : "min.NaN", type == ATLAS_f16 ? ".f16x2" : ".bf16x2");
  ptx_name found = {""}, half[2];
  for (uint32_t i = 0; i < insn->arg_count; i += 2) { /* ptxas recognises a word that was taken apart and uses it
                                                         whole */
    ptx_name word = hg_ptx_new(p, PTX_32), next = hg_ptx_new(p, PTX_32);
    for (uint32_t k = 0; k < 2; k++) half[k] = hg_ptx_in_register(p, ptx_arg(p, value, i + k));
    hg_ptx_join_parts(p, type, word, half, 2);
    if (i > 0) PTX(p, op.text, next, found, word);
    found = i > 0 ? next : word;
  }
  hg_ptx_take_apart(p, type, found, half, 2);
  ptx_name low = hg_ptx_to_f32(p, type, half[0]), high = hg_ptx_to_f32(p, type, half[1]);
  PTX(p, insn->op == ATLAS_OP_max ? "max.NaN.f32" : "min.NaN.f32", d, low, high);
}

static void arithmetic(ptx *p, uint32_t value, ptx_name d) {
  const ssa_insn *insn = ptx_insn(p, value);
  if (gpu_is_of_words(insn)) {
    extreme_of_words(p, value, d);
    return;
  }
  uint32_t x;
  double size;
  if (hg_gpu_is_clamp(p->plan, value, &x, &size)) { /* the one with the lesser magnitude, with the sign of x */
    ptx_name bound = hg_ptx_constant(ATLAS_f32, atlas_bits_of_f32((float)size));
    PTX(p, "min.NaN.xorsign.abs.f32", d, hg_ptx_value(p, x), bound);
    return;
  }
  uint32_t divisor = hg_gpu_divisor(p->plan->unit, value);
  if (divisor != SSA_NONE) {
    divide_by_scalar(p, value, d, divisor);
    return;
  }
  int is_narrow = hg_ptx_class_of(insn->type) == PTX_16; /* their operands cannot be constants */
  ptx_name a[3];
  for (uint32_t i = 0; i < insn->arg_count && i < 3; i++)
    a[i] = is_narrow ? hg_ptx_in_register(p, ptx_arg(p, value, i)) : hg_ptx_value(p, ptx_arg(p, value, i));
  if (insn->op == ATLAS_OP_div && insn->type == ATLAS_f32 && p->divides_rarely) {
    hg_ptx_divide_rarely(p, d, hg_ptx_in_register(p, ptx_arg(p, value, 0)), a[1]);
    return;
  }
  if (atlas_is_integer((atlas_type)insn->type)) integer_op(p, insn->op, insn->type, d, a, insn->arg_count);
  else float_op(p, insn->op, insn->type, d, a, insn->arg_count);
}

static void sign_of_number(ptx *p, uint32_t value, ptx_name d) {
  if (atlas_is_integer((atlas_type)ptx_insn(p, value)->type)) arithmetic(p, value, d);
  else sign_bit(p, value, d);
}

#define BOTH(integer, real) arithmetic, SET_INT_REAL, integer, real
#define INTEGER(integer) arithmetic, SET_INT, integer, NULL
#define REAL(real) arithmetic, SET_REAL, NULL, real
#define SEVERAL NULL, NULL /* several instructions: see integer_op, float_op */
#define CELL_add BOTH("add", "add.rn")
#define CELL_sub BOTH("sub", "sub.rn")
#define CELL_mul BOTH("mul.lo", "mul.rn")
#define CELL_mulhi arithmetic, SET_INT, SEVERAL
#define CELL_div BOTH("div", "div.rn")
#define CELL_rem INTEGER("rem")
#define CELL_mad INTEGER("mad.lo")
#define CELL_fma REAL("fma.rn")
#define CELL_min arithmetic, SET_INT_REAL | SET_HALF, "min", NULL
#define CELL_max arithmetic, SET_INT_REAL | SET_HALF, "max", NULL
#define CELL_abs sign_of_number, SET_SIGNED, SEVERAL
#define CELL_neg sign_of_number, SET_NUM, SEVERAL
#define CELL_sign arithmetic, SET_SINT_REAL, SEVERAL
#define CELL_copysign sign_of_number, SET_FLOAT, SEVERAL
#define CELL_dot4_ss dot_product, SET_I32_U32, "dp4a.s32.s32", NULL
#define CELL_dot4_uu dot_product, SET_I32_U32, "dp4a.u32.u32", NULL
#define CELL_dot4_us dot_product, SET_I32_U32, "dp4a.u32.s32", NULL
#define CELL_and INTEGER("and")
#define CELL_or INTEGER("or")
#define CELL_xor INTEGER("xor")
#define CELL_not INTEGER("not")
#define CELL_shl shift, SET_INT, SEVERAL
#define CELL_shr shift, SET_INT, SEVERAL
#define CELL_popc count_bits, SET_INT, SEVERAL
#define CELL_clz count_bits, SET_INT, SEVERAL
#define CELL_ctz count_bits, SET_INT, SEVERAL
#define CELL_brev count_bits, SET_INT, SEVERAL
#define CELL_sqrt REAL("sqrt.rn")
#define CELL_floor REAL("cvt.rmi")
#define CELL_ceil REAL("cvt.rpi")
#define CELL_trunc REAL("cvt.rzi")
#define CELL_round REAL("cvt.rni")

#define ARITH(id, types, narrow) [MACHINE_##id] = {.write = CELL_##id},
static const cell cells[MACHINE_OP_COUNT] = {
#include "compiler/machine_ops.def"
};
#define ARITH(id, types, narrow) MACHINE_HAS_CELL(id, SET_##types | SET_##narrow, CELL_##id)
#include "compiler/machine_ops.def"

void hg_ptx_pure(ptx *p, uint32_t value) {
  const ssa_insn *insn = ptx_insn(p, value);
  ptx_name d = hg_ptx_register(p, value);
  switch (hg_machine_kind(insn->op)) {
  case MACHINE_ARITH: cells[hg_machine_op(insn->op)].write(p, value, d); break;
  case MACHINE_COMPARE: compare(p, value, d); break;
  case MACHINE_LOGIC: combine_predicates(p, value, d); break;
  case MACHINE_SELECT: select_value(p, value, d); break;
  case MACHINE_CONVERT: hg_ptx_convert(p, value); break;
  case MACHINE_CAST: bitcast(p, value, d); break;
  case MACHINE_PLACE: hg_ptx_coordinate(p, value); break;
  default: break; /* has an effect: see flow.c */
  }
}
