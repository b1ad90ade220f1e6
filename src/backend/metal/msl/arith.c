/* arith.c - pure values: an expression each, most often a call of a function of the prelude. */
#include "backend/metal/msl/msl.h"

#include "atlas/value.h"
#include "compiler/machine_ops.h"

#include <string.h>

typedef struct cell {
  void (*write)(msl *m, uint32_t value, const char *text);
  uint32_t types;
  const char *integer, *real; /* for `infix` the operator, for `call` the function's name without its type */
} cell;

static const cell cells[MACHINE_OP_COUNT];

static int is_real(uint8_t type) { return type == ATLAS_f32 || type == ATLAS_f64; }
static uint32_t bits_of(uint8_t type) { return atlas_type_bits((atlas_type)type); }

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static void infix(msl *m, uint32_t value, const char *operator) {
  hg_msl_set(m, value, "%s %s %s", hg_msl_argument(m, value, 0).text, operator, hg_msl_argument(m, value, 1).text);
}

/* name_type(a, b, c) */
static void call(msl *m, uint32_t value, const char *name) {
  const ssa_insn *insn = msl_insn(m, value);
  const char *suffix = hg_msl_suffix(insn->type);
  msl_name a = hg_msl_argument(m, value, 0);
  if (insn->arg_count == 1) hg_msl_set(m, value, "%s_%s(%s)", name, suffix, a.text);
  else if (insn->arg_count == 2)
    hg_msl_set(m, value, "%s_%s(%s, %s)", name, suffix, a.text, hg_msl_argument(m, value, 1).text);
  else
    hg_msl_set(m, value, "%s_%s(%s, %s, %s)", name, suffix, a.text, hg_msl_argument(m, value, 1).text,
               hg_msl_argument(m, value, 2).text);
}

static void multiply_add(msl *m, uint32_t value, const char *text) {
  (void)text;
  hg_msl_set(m, value, "%s * %s + %s", hg_msl_argument(m, value, 0).text, hg_msl_argument(m, value, 1).text,
             hg_msl_argument(m, value, 2).text);
}

/* The products of narrow factors fit 32 bits. */
static void multiply_high(msl *m, uint32_t value, const char *text) {
  uint8_t type = msl_insn(m, value)->type;
  const char *cast = msl_is_wide(type) ? "ulong" : "uint";
  msl_name a = hg_msl_signed(m, msl_arg(m, value, 0)), b = hg_msl_signed(m, msl_arg(m, value, 1));
  (void)text;
  if (bits_of(type) >= 32) hg_msl_set(m, value, "%s(mulhi(%s, %s))", cast, a.text, b.text);
  else hg_msl_set(m, value, "uint(%s * %s >> %u)", a.text, b.text, (unsigned)bits_of(type));
}

static void extreme(msl *m, uint32_t value, const char *name) {
  const char *cast = msl_is_wide(msl_insn(m, value)->type) ? "ulong" : "uint";
  hg_msl_set(m, value, "%s(%s(%s, %s))", cast, name, hg_msl_signed(m, msl_arg(m, value, 0)).text,
             hg_msl_signed(m, msl_arg(m, value, 1)).text);
}

/* The count is taken modulo the width. */
static void shift(msl *m, uint32_t value, const char *operator) {
  const ssa_insn *insn = msl_insn(m, value), *count = msl_insn(m, msl_arg(m, value, 1));
  uint32_t mask = bits_of(insn->type) - 1;
  int is_up = operator[0] == '<';
  msl_name a = is_up ? hg_msl_argument(m, value, 0) : hg_msl_signed(m, msl_arg(m, value, 0));
  msl_name by = count->op == SSA_CONST ? hg_msl_name("%u", (unsigned)(count->bits & mask))
                                       : hg_msl_name("(%s & %u)", hg_msl_argument(m, value, 1).text, (unsigned)mask);
  hg_msl_set(m, value, "%s(%s %s %s)", hg_msl_variable_type(insn->type), a.text, operator, by.text);
}

/* The bits of a narrow value without its sign extension. */
static msl_name low_bits(const msl *m, uint32_t value, uint8_t type) {
  msl_name a = hg_msl_argument(m, value, 0);
  if (!gpu_is_signed(type) || bits_of(type) >= 32) return a;
  return hg_msl_name("(%s & 0x%xu)", a.text, (unsigned)atlas_mask((atlas_type)type));
}

static void count_bits(msl *m, uint32_t value, const char *name) {
  uint8_t type = msl_insn(m, value)->type;
  uint32_t spare = msl_is_wide(type) ? 0 : 32 - bits_of(type);
  msl_name a = low_bits(m, value, type);
  if (strcmp(name, "clz") == 0 && spare > 0) hg_msl_set(m, value, "uint(clz(%s)) - %u", a.text, (unsigned)spare);
  else if (strcmp(name, "ctz") == 0 && spare > 0)
    hg_msl_set(m, value, "uint(ctz(%s | 0x%xu))", a.text, 1u << (32 - spare));
  else if (strcmp(name, "reverse_bits") == 0 && spare > 0)
    hg_msl_set(m, value, "reverse_bits(%s) >> %u", a.text, (unsigned)spare);
  else hg_msl_set(m, value, "%s(%s(%s))", hg_msl_variable_type(type), name, a.text);
}

static void dot_product(msl *m, uint32_t value, const char *signs) {
  hg_msl_set(m, value, "dot4(%s, %s, %s, %s)", hg_msl_argument(m, value, 0).text, hg_msl_argument(m, value, 1).text,
             hg_msl_argument(m, value, 2).text, signs);
}

/* ---- signs ------------------------------------------------------------------------------------------------------- */

static uint64_t sign_of(uint8_t type) { return UINT64_C(1) << (bits_of(type) - 1); }

static void negate(msl *m, uint32_t value, const char *text) {
  uint8_t type = msl_insn(m, value)->type;
  msl_name a = hg_msl_argument(m, value, 0);
  (void)text;
  if (atlas_is_integer((atlas_type)type)) hg_msl_set(m, value, "0 - %s", a.text);
  else hg_msl_set(m, value, "%s ^ %s", a.text, hg_msl_constant(type, sign_of(type)).text);
}

static void magnitude(msl *m, uint32_t value, const char *text) {
  uint8_t type = msl_insn(m, value)->type;
  msl_name a = hg_msl_argument(m, value, 0);
  (void)text;
  if (atlas_is_integer((atlas_type)type))
    hg_msl_set(m, value, "%s < 0 ? 0 - %s : %s", hg_msl_signed(m, msl_arg(m, value, 0)).text, a.text, a.text);
  else hg_msl_set(m, value, "%s & %s", a.text, hg_msl_constant(type, sign_of(type) - 1).text);
}

static void copy_sign(msl *m, uint32_t value, const char *text) {
  uint8_t type = msl_insn(m, value)->type;
  (void)text;
  hg_msl_set(m, value, "(%s & %s) | (%s & %s)", hg_msl_argument(m, value, 0).text,
             hg_msl_constant(type, sign_of(type) - 1).text, hg_msl_argument(m, value, 1).text,
             hg_msl_constant(type, sign_of(type)).text);
}

static void invert(msl *m, uint32_t value, const char *text) {
  (void)text;
  hg_msl_set(m, value, "~%s", hg_msl_argument(m, value, 0).text);
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

#define INT_OR_REAL(integer, real) NULL, SET_INT_REAL, integer, real
#define CELL_add INT_OR_REAL("+", "add")
#define CELL_sub INT_OR_REAL("-", "sub")
#define CELL_mul INT_OR_REAL("*", "mul")
#define CELL_mulhi multiply_high, SET_INT, NULL, NULL
#define CELL_div call, SET_INT_REAL, "div", "div"
#define CELL_rem call, SET_INT, "rem", NULL
#define CELL_mad multiply_add, SET_INT, NULL, NULL
#define CELL_fma call, SET_REAL, NULL, "fma"
#define CELL_min NULL, SET_INT_REAL | SET_HALF, "min", "min"
#define CELL_max NULL, SET_INT_REAL | SET_HALF, "max", "max"
#define CELL_abs magnitude, SET_SIGNED, NULL, NULL
#define CELL_neg negate, SET_NUM, NULL, NULL
#define CELL_sign call, SET_SINT_REAL, "sign", "sign"
#define CELL_copysign copy_sign, SET_FLOAT, NULL, NULL
#define CELL_dot4_ss dot_product, SET_I32_U32, "true, true", NULL
#define CELL_dot4_uu dot_product, SET_I32_U32, "false, false", NULL
#define CELL_dot4_us dot_product, SET_I32_U32, "false, true", NULL
#define CELL_and infix, SET_INT, "&", NULL
#define CELL_or infix, SET_INT, "|", NULL
#define CELL_xor infix, SET_INT, "^", NULL
#define CELL_not invert, SET_INT, NULL, NULL
#define CELL_shl shift, SET_INT, "<<", NULL
#define CELL_shr shift, SET_INT, ">>", NULL
#define CELL_popc count_bits, SET_INT, "popcount", NULL
#define CELL_clz count_bits, SET_INT, "clz", NULL
#define CELL_ctz count_bits, SET_INT, "ctz", NULL
#define CELL_brev count_bits, SET_INT, "reverse_bits", NULL
#define CELL_sqrt call, SET_REAL, NULL, "sqrt"
#define CELL_floor call, SET_REAL, NULL, "floor"
#define CELL_ceil call, SET_REAL, NULL, "ceil"
#define CELL_trunc call, SET_REAL, NULL, "trunc"
#define CELL_round call, SET_REAL, NULL, "round"

#define ARITH(id, types, narrow) [MACHINE_##id] = {CELL_##id},
static const cell cells[MACHINE_OP_COUNT] = {
#include "compiler/machine_ops.def"
};
#define ARITH(id, types, narrow) MACHINE_HAS_CELL(id, SET_##types | SET_##narrow, CELL_##id)
#include "compiler/machine_ops.def"

static void arithmetic(msl *m, uint32_t value) {
  const ssa_insn *insn = msl_insn(m, value);
  const cell *c = &cells[hg_machine_op(insn->op)];
  const char *text = is_real(insn->type) ? c->real : c->integer;
  if (c->write != NULL) c->write(m, value, text);
  else if (is_real(insn->type)) call(m, value, text);
  else if (insn->op == ATLAS_OP_min || insn->op == ATLAS_OP_max) extreme(m, value, text);
  else infix(m, value, text);
}

/* ---- what collectives combine ------------------------------------------------------------------------------------ */

static const char *widened(uint8_t type) { return type == ATLAS_f16 ? "f16_to_f32" : "bf16_to_f32"; }

static void combine_integers(msl *m, uint16_t op, uint8_t type, const char *d, const char *a, const char *b) {
  const char *name = cells[hg_machine_op(op)].integer, *cast = hg_msl_variable_type(type);
  const char *order = !gpu_is_signed(type) ? cast : msl_is_wide(type) ? "long" : "int";
  const char *range = bits_of(type) >= 32 ? "" : type == ATLAS_i8 ? "as_i8" : type == ATLAS_i16 ? "as_i16" :
                      type == ATLAS_u8 ? "as_u8" : "as_u16";
  if (op == ATLAS_OP_min || op == ATLAS_OP_max)
    hg_msl_line(m, "%s = %s(%s(%s(%s), %s(%s)));", d, cast, name, order, a, order, b);
  else hg_msl_line(m, "%s = %s(%s %s %s);", d, range, a, name, b);
}

void hg_msl_combine(msl *m, uint16_t op, uint8_t type, const char *d, const char *a, const char *b) {
  if (atlas_is_integer((atlas_type)type)) combine_integers(m, op, type, d, a, b);
  else if (is_real(type))
    hg_msl_line(m, "%s = %s_%s(%s, %s);", d, cells[hg_machine_op(op)].real, hg_msl_suffix(type), a, b);
  else
    hg_msl_line(m, "%s = f32_to_%s(%s_f32(%s(%s), %s(%s)));", d, type == ATLAS_f16 ? "f16" : "bf16",
                cells[hg_machine_op(op)].real, widened(type), a, widened(type), b);
}

/* ---- predicates, choices, bits ----------------------------------------------------------------------------------- */

static const char *comparison(uint16_t op) {
  switch ((machine_compare)hg_machine_op(op)) {
  case COMPARE_set_eq: return "eq";
  case COMPARE_set_lt: return "lt";
  case COMPARE_set_le: return "le";
  case COMPARE_set_num: break;
  }
  return "num";
}

static void compare(msl *m, uint32_t value) {
  const ssa_insn *insn = msl_insn(m, value);
  uint32_t a = msl_arg(m, value, 0), b = msl_arg(m, value, 1);
  if (is_real(insn->type2))
    hg_msl_set(m, value, "%s_%s(%s, %s)", comparison(insn->op), hg_msl_suffix(insn->type2), hg_msl_value(m, a).text,
               hg_msl_value(m, b).text);
  else
    hg_msl_set(m, value, "%s %s %s", hg_msl_signed(m, a).text, insn->op == ATLAS_OP_set_eq ? "==" : "<",
               hg_msl_signed(m, b).text);
}

static void combine_predicates(msl *m, uint32_t value) {
  switch ((machine_logic)hg_machine_op(msl_insn(m, value)->op)) {
  case LOGIC_pand: infix(m, value, "&&"); break;
  case LOGIC_por: infix(m, value, "||"); break;
  case LOGIC_pxor: infix(m, value, "!="); break;
  case LOGIC_pnot: hg_msl_set(m, value, "!%s", hg_msl_argument(m, value, 0).text); break;
  }
}

/* Brings a narrow integer into its range: the bits of a narrow float may be out of it. */
static void bitcast(msl *m, uint32_t value) {
  uint8_t from = msl_insn(m, value)->type2;
  msl_name a = hg_msl_argument(m, value, 0);
  if (gpu_is_signed(from) && bits_of(from) < 32)
    hg_msl_set(m, value, "%s & 0x%xu", a.text, (unsigned)atlas_mask((atlas_type)from));
  else hg_msl_set(m, value, "%s", a.text);
}

void hg_msl_compute(msl *m, uint32_t value) {
  switch (hg_machine_kind(msl_insn(m, value)->op)) {
  case MACHINE_ARITH: arithmetic(m, value); break;
  case MACHINE_COMPARE: compare(m, value); break;
  case MACHINE_LOGIC: combine_predicates(m, value); break;
  case MACHINE_SELECT:
    hg_msl_set(m, value, "%s ? %s : %s", hg_msl_argument(m, value, 0).text, hg_msl_argument(m, value, 1).text,
               hg_msl_argument(m, value, 2).text);
    break;
  case MACHINE_CONVERT: hg_msl_convert(m, value); break;
  case MACHINE_CAST: bitcast(m, value); break;
  case MACHINE_PLACE: hg_msl_coordinate(m, value); break;
  default: break; /* an effect, which flow.c prints */
  }
}
