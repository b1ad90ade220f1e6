/* simplify.c - rules that make equal programs look equal. Each keeps every bit for every input; what only makes
 * programs faster is for the optimiser, after the hash.
 *
 * On floats, "canon(x)" is x with a NaN made canonical. It is written x * 1, and is x itself where x comes from
 * arithmetic. */
#include "compiler/canon/simplify.h"

#include "atlas/arith.h"
#include "atlas/interp.h"
#include "base/error.h"
#include "compiler/analysis/effects.h"

typedef struct rewriter {
  ssa_unit *unit;
  uint32_t value;
  int *changed;
  hg_status status;
} rewriter;

static ssa_insn *self(const rewriter *r) { return ssa_insn_at(r->unit, r->value); }
static uint32_t arg(const rewriter *r, unsigned i) { return ssa_args_of(r->unit, r->value)[i]; }
static void set_arg(const rewriter *r, unsigned i, uint32_t value) { ssa_args_of(r->unit, r->value)[i] = value; }

int hg_commutes(const ssa_insn *insn) {
  if (insn->op == ATLAS_OP_fma || insn->op == ATLAS_OP_mad) return 1;
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  return info != NULL && (info->flags & ATLAS_COMMUTES) != 0;
}

/* ---- building blocks --------------------------------------------------------------------------------------------- */

static int replace(rewriter *r, uint32_t by) {
  ir_ssa_replace(r->unit, r->value, by);
  *r->changed = 1;
  return 1;
}

static int become_constant(rewriter *r, uint64_t bits) {
  ssa_insn *insn = self(r);
  insn->op = SSA_CONST;
  insn->type2 = 0;
  insn->arg_count = 0;
  insn->bits = bits;
  *r->changed = 1;
  return 1;
}

/* The same value from another operation on (a subset of) its arguments. */
static int become(rewriter *r, uint16_t op, uint32_t arg_count) {
  self(r)->op = op;
  self(r)->arg_count = arg_count;
  *r->changed = 1;
  return 1;
}

static uint32_t new_constant(rewriter *r, uint8_t type, uint64_t bits) {
  ssa_insn constant = {.op = SSA_CONST, .type = type, .bits = bits, .insn = SSA_NONE};
  uint32_t value = ir_ssa_add(r->unit, &constant, 0);
  if (value == SSA_NONE) r->status = hg_fail_memory("a constant of the canonical form", sizeof constant);
  return value;
}

/* A new operation on one or two arguments (b is SSA_NONE for one). */
static uint32_t new_value(rewriter *r, uint16_t op, uint8_t type, uint8_t type2, uint32_t a, uint32_t b) {
  ssa_insn insn = {.op = op, .type = type, .type2 = type2, .insn = self(r)->insn};
  uint32_t count = b == SSA_NONE ? 1 : 2;
  uint32_t value = ir_ssa_add(r->unit, &insn, count);
  if (value == SSA_NONE) {
    r->status = hg_fail_memory("a value of the canonical form", sizeof insn);
    return SSA_NONE;
  }
  ssa_args_of(r->unit, value)[0] = a;
  if (count == 2) ssa_args_of(r->unit, value)[1] = b;
  return value;
}

static int is_constant(const rewriter *r, uint32_t value) { return ssa_insn_at(r->unit, value)->op == SSA_CONST; }

static int is_bits(const rewriter *r, uint32_t value, uint64_t bits) {
  return is_constant(r, value) && ssa_insn_at(r->unit, value)->bits == bits;
}

static uint64_t bits_of(const rewriter *r, uint32_t value) { return ssa_insn_at(r->unit, value)->bits; }

static const ssa_insn *insn_of(const rewriter *r, uint32_t value) { return ssa_insn_at(r->unit, value); }

static uint64_t number(const rewriter *r, double value) { return atlas_round_f64((atlas_type)self(r)->type, value); }

static uint64_t minus_zero(uint8_t type) { return UINT64_C(1) << (atlas_type_bits((atlas_type)type) - 1); }

/* 1 if the value is never a NaN with a payload of its own. */
static int is_canonical(const rewriter *r, uint32_t value) {
  const ssa_insn *insn = insn_of(r, value);
  if (insn->op == SSA_CONST) {
    double x = atlas_to_f64((atlas_type)insn->type, insn->bits);
    return x == x || insn->bits == atlas_canonical_nan((atlas_type)insn->type);
  }
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  return info != NULL && info->flags & ATLAS_PURE && !(info->flags & (ATLAS_BITS | ATLAS_LOAD));
}

/* The value becomes canon(x). */
static int become_canon(rewriter *r, uint32_t x) {
  if (is_canonical(r, x)) return replace(r, x);
  if (self(r)->op == ATLAS_OP_mul && arg(r, 0) == x && is_bits(r, arg(r, 1), number(r, 1.0))) return 0; /* done */
  uint32_t one = new_constant(r, self(r)->type, number(r, 1.0));
  if (one == SSA_NONE) return 0;
  if (self(r)->arg_count < 2) return 0; /* no room for a second argument: left as it is */
  set_arg(r, 0, x);
  set_arg(r, 1, one);
  return become(r, ATLAS_OP_mul, 2);
}

/* ---- folding ----------------------------------------------------------------------------------------------------- */

static int all_constant(const rewriter *r) {
  for (unsigned i = 0; i < self(r)->arg_count; i++)
    if (!is_constant(r, arg(r, i))) return 0;
  return self(r)->arg_count > 0;
}

uint64_t hg_fold(const ssa_insn *insn, uint64_t a, uint64_t b, uint64_t c) {
  atlas_type type = (atlas_type)insn->type;
  switch (insn->op) {
  case ATLAS_OP_cvt: return atlas_convert(type, (atlas_type)insn->type2, a);
  case ATLAS_OP_bitcast: return a;
  case ATLAS_OP_sel: return a ? b : c;
  case ATLAS_OP_pand: return a & b;
  case ATLAS_OP_por: return a | b;
  case ATLAS_OP_pxor: return a ^ b;
  case ATLAS_OP_pnot: return !a;
  default: break;
  }
  if (atlas_is_comparison(insn->op)) return (uint64_t)atlas_compare(insn->op, (atlas_type)insn->type2, a, b);
  if (atlas_op_flags(insn->op) & ATLAS_FUNC) return atlas_function((atlas_op)insn->op, type, a, b);
  return atlas_arith(insn->op, type, a, b, c);
}

static int fold_constants(rewriter *r) {
  const ssa_insn *insn = self(r);
  uint64_t s[3] = {0};
  if (!hg_is_pure(insn) || !all_constant(r)) return 0;
  for (uint32_t i = 0; i < insn->arg_count && i < 3; i++) s[i] = bits_of(r, arg(r, i));
  return become_constant(r, hg_fold(insn, s[0], s[1], s[2]));
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

/* (x + c) + d = x + (c + d), wrapping. */
static int merge_additions(rewriter *r) {
  uint32_t inner = arg(r, 0);
  if (!is_constant(r, arg(r, 1)) || insn_of(r, inner)->op != ATLAS_OP_add) return 0;
  const uint32_t *inner_args = ssa_args_of(r->unit, inner);
  uint32_t x = ir_ssa_resolve(r->unit, inner_args[0]), c = ir_ssa_resolve(r->unit, inner_args[1]);
  if (!is_constant(r, c)) return 0;
  uint64_t sum = (bits_of(r, c) + bits_of(r, arg(r, 1))) & atlas_mask((atlas_type)self(r)->type);
  uint32_t constant = new_constant(r, self(r)->type, sum);
  if (constant == SSA_NONE) return 0;
  set_arg(r, 0, x);
  set_arg(r, 1, constant);
  *r->changed = 1;
  return 1;
}

static int subtract_constant(rewriter *r) {
  uint64_t mask = atlas_mask((atlas_type)self(r)->type);
  uint32_t constant = new_constant(r, self(r)->type, (0 - bits_of(r, arg(r, 1))) & mask);
  if (constant == SSA_NONE) return 0;
  set_arg(r, 1, constant);
  return become(r, ATLAS_OP_add, 2);
}

/* c * d + x is x + (c * d), wrapping. */
static int multiply_constants(rewriter *r) {
  uint64_t product = bits_of(r, arg(r, 0)) * bits_of(r, arg(r, 1)) & atlas_mask((atlas_type)self(r)->type);
  uint32_t constant = new_constant(r, self(r)->type, product);
  if (constant == SSA_NONE) return 0;
  set_arg(r, 0, arg(r, 2));
  set_arg(r, 1, constant);
  return become(r, ATLAS_OP_add, 2);
}

static int integer_rules(rewriter *r) {
  uint8_t type = self(r)->type;
  uint64_t ones = atlas_mask((atlas_type)type);
  uint32_t a = arg(r, 0), b = self(r)->arg_count > 1 ? arg(r, 1) : SSA_NONE;
  switch (self(r)->op) {
  case ATLAS_OP_add: return is_bits(r, b, 0) ? replace(r, a) : merge_additions(r);
  case ATLAS_OP_sub:
    if (a == b) return become_constant(r, 0);
    return is_constant(r, b) ? subtract_constant(r) : 0;
  case ATLAS_OP_mul:
    if (is_bits(r, b, 0)) return replace(r, b);
    return is_bits(r, b, 1) ? replace(r, a) : 0;
  case ATLAS_OP_mulhi: return is_bits(r, b, 0) ? replace(r, b) : 0;
  case ATLAS_OP_div:
    if (is_bits(r, b, 0)) return replace(r, b);
    return is_bits(r, b, 1) ? replace(r, a) : 0;
  case ATLAS_OP_rem:
    if (is_bits(r, b, 1)) return become_constant(r, 0);
    return is_bits(r, b, 0) ? replace(r, a) : 0;
  case ATLAS_OP_mad:
    if (is_constant(r, a) && is_constant(r, b)) return multiply_constants(r);
    if (is_bits(r, arg(r, 2), 0)) return become(r, ATLAS_OP_mul, 2);
    if (is_bits(r, b, 0)) return replace(r, arg(r, 2));
    if (!is_bits(r, b, 1)) return 0;
    set_arg(r, 1, arg(r, 2));
    return become(r, ATLAS_OP_add, 2);
  case ATLAS_OP_and:
    if (is_bits(r, b, 0)) return replace(r, b);
    return a == b || is_bits(r, b, ones) ? replace(r, a) : 0;
  case ATLAS_OP_or:
    if (is_bits(r, b, ones)) return replace(r, b);
    return a == b || is_bits(r, b, 0) ? replace(r, a) : 0;
  case ATLAS_OP_xor:
    if (a == b) return become_constant(r, 0);
    return is_bits(r, b, 0) ? replace(r, a) : 0;
  case ATLAS_OP_shl:
  case ATLAS_OP_shr: return is_bits(r, b, 0) ? replace(r, a) : 0;
  case ATLAS_OP_min:
  case ATLAS_OP_max: return a == b ? replace(r, a) : 0;
  default: return 0;
  }
}

/* Shift counts are taken modulo the width. */
static int reduce_count(rewriter *r) {
  if (self(r)->op != ATLAS_OP_shl && self(r)->op != ATLAS_OP_shr) return 0;
  uint64_t width = atlas_type_bits((atlas_type)self(r)->type);
  if (!is_constant(r, arg(r, 1)) || bits_of(r, arg(r, 1)) < width) return 0;
  uint32_t count = new_constant(r, ATLAS_u32, bits_of(r, arg(r, 1)) % width);
  if (count == SSA_NONE) return 0;
  set_arg(r, 1, count);
  *r->changed = 1;
  return 1;
}

/* ---- floats ------------------------------------------------------------------------------------------------------ */

/* After legalisation a machine may have min and max of f16 and bf16 without other arithmetic of these types. */
static int has_products(const rewriter *r) {
  return !r->unit->narrow_extremes || atlas_type_bits((atlas_type)self(r)->type) != 16;
}

static int float_rules(rewriter *r) {
  uint8_t type = self(r)->type;
  uint64_t one = number(r, 1.0);
  uint32_t a = arg(r, 0), b = self(r)->arg_count > 1 ? arg(r, 1) : SSA_NONE;
  switch (self(r)->op) {
  case ATLAS_OP_add: return is_bits(r, b, minus_zero(type)) ? become_canon(r, a) : 0; /* x + +0 is +0 for x = -0 */
  case ATLAS_OP_sub: return is_bits(r, b, 0) ? become_canon(r, a) : 0;
  case ATLAS_OP_mul:
  case ATLAS_OP_div: return is_bits(r, b, one) ? become_canon(r, a) : 0;
  case ATLAS_OP_mad: return become(r, ATLAS_OP_fma, 3);
  case ATLAS_OP_fma:
    if (is_bits(r, arg(r, 2), minus_zero(type))) return become(r, ATLAS_OP_mul, 2); /* a sum with -0 is the product */
    if (!is_bits(r, b, one)) return 0;
    set_arg(r, 1, arg(r, 2)); /* the product is exact */
    return become(r, ATLAS_OP_add, 2);
  case ATLAS_OP_min:
  case ATLAS_OP_max: return a == b && has_products(r) ? become_canon(r, a) : 0;
  case ATLAS_OP_copysign: return a == b ? replace(r, a) : 0;
  default: return 0;
  }
}

/* relu(x) = max(x, +0); recip(x) = 1 / x: one operation for each function. */
static int float_names(rewriter *r) {
  uint16_t op = self(r)->op;
  if (op != ATLAS_OP_relu && op != ATLAS_OP_recip) return 0;
  uint32_t constant = new_constant(r, self(r)->type, op == ATLAS_OP_relu ? 0 : number(r, 1.0));
  if (constant == SSA_NONE) return 0;
  uint32_t x = arg(r, 0);
  uint32_t by = op == ATLAS_OP_relu ? new_value(r, ATLAS_OP_max, self(r)->type, 0, x, constant)
                                    : new_value(r, ATLAS_OP_div, self(r)->type, 0, constant, x);
  return by == SSA_NONE ? 0 : replace(r, by);
}

/* ---- bits, signs, conversions ------------------------------------------------------------------------------------ */

static uint32_t inner_arg(const rewriter *r, uint32_t value) {
  return ir_ssa_resolve(r->unit, ssa_args_of(r->unit, value)[0]);
}

static int sign_rules(rewriter *r) {
  uint16_t op = self(r)->op, inner = insn_of(r, arg(r, 0))->op;
  if ((op == ATLAS_OP_neg || op == ATLAS_OP_not) && inner == op) return replace(r, inner_arg(r, arg(r, 0)));
  if (op == ATLAS_OP_abs && inner == ATLAS_OP_abs) return replace(r, arg(r, 0));
  if (op == ATLAS_OP_abs && inner == ATLAS_OP_neg) {
    set_arg(r, 0, inner_arg(r, arg(r, 0)));
    *r->changed = 1;
    return 1;
  }
  return 0;
}

static int conversion_rules(rewriter *r) {
  const ssa_insn *insn = self(r);
  uint32_t a = arg(r, 0);
  if (insn->op == ATLAS_OP_cvt)
    return insn->type == insn->type2 && atlas_is_integer((atlas_type)insn->type) ? replace(r, a) : 0;
  if (insn->op != ATLAS_OP_bitcast) return 0;
  if (insn->type == insn->type2) return replace(r, a);
  if (insn_of(r, a)->op != ATLAS_OP_bitcast) return 0;
  self(r)->type2 = insn_of(r, a)->type2;
  set_arg(r, 0, inner_arg(r, a));
  *r->changed = 1;
  return 1;
}

/* r253 and r254 are aliases of coordinates. */
static int special_rules(rewriter *r) {
  ssa_insn *insn = self(r);
  if (insn->bits != ATLAS_REG_BLOCK_INDEX && insn->bits != ATLAS_REG_BLOCK_SIZE) return 0;
  insn->bits = insn->bits == ATLAS_REG_BLOCK_INDEX ? ATLAS_COORD_BLOCK_X : ATLAS_COORD_BLOCK_SIZE_X;
  return become(r, ATLAS_OP_sreg, 0);
}

/* ---- predicates -------------------------------------------------------------------------------------------------- */

static int is_not(const rewriter *r, uint32_t value) { return insn_of(r, value)->op == ATLAS_OP_pnot; }

/* The value becomes `not (a op b)`. */
static int become_not(rewriter *r, uint16_t op, uint32_t a, uint32_t b) {
  uint32_t inner = new_value(r, op, SSA_PREDICATE, self(r)->type2, a, b);
  if (inner == SSA_NONE) return 0;
  set_arg(r, 0, inner);
  self(r)->type2 = 0;
  return become(r, ATLAS_OP_pnot, 1);
}

static int swap_args(rewriter *r, uint16_t op) {
  uint32_t a = arg(r, 0);
  set_arg(r, 0, arg(r, 1));
  set_arg(r, 1, a);
  return become(r, op, 2);
}

/* eq, lt, le (floats only) and num are kept; the others are these with exchanged operands or under a `not`. */
static int set_rules(rewriter *r) {
  uint32_t a = arg(r, 0), b = arg(r, 1);
  int integer = atlas_is_integer((atlas_type)self(r)->type2);
  switch (self(r)->op) {
  case ATLAS_OP_set_gt: return swap_args(r, ATLAS_OP_set_lt);
  case ATLAS_OP_set_ge: return swap_args(r, ATLAS_OP_set_le);
  case ATLAS_OP_set_ne: return become_not(r, ATLAS_OP_set_eq, a, b);
  case ATLAS_OP_set_nan: return become_not(r, ATLAS_OP_set_num, a, b);
  case ATLAS_OP_set_le: return integer ? become_not(r, ATLAS_OP_set_lt, b, a) : 0;
  case ATLAS_OP_set_lt:
    if (a == b) return become_constant(r, 0);
    return atlas_kind((atlas_type)self(r)->type2) == ATLAS_KIND_UINT && is_bits(r, b, 0) ? become_constant(r, 0) : 0;
  case ATLAS_OP_set_eq:
    if (a != b) return 0;
    return integer ? become_constant(r, 1) : become(r, ATLAS_OP_set_num, 2);
  default: return 0;
  }
}

static int predicate_rules(rewriter *r) {
  uint32_t a = arg(r, 0), b = self(r)->arg_count > 1 ? arg(r, 1) : SSA_NONE;
  switch (self(r)->op) {
  case ATLAS_OP_pnot: return is_not(r, a) ? replace(r, inner_arg(r, a)) : 0;
  case ATLAS_OP_pand:
    if (is_bits(r, b, 0)) return replace(r, b);
    return a == b || is_bits(r, b, 1) ? replace(r, a) : 0;
  case ATLAS_OP_por:
    if (is_bits(r, b, 1)) return replace(r, b);
    return a == b || is_bits(r, b, 0) ? replace(r, a) : 0;
  case ATLAS_OP_pxor:
    if (a == b) return become_constant(r, 0);
    if (is_bits(r, b, 0)) return replace(r, a);
    return is_bits(r, b, 1) ? become(r, ATLAS_OP_pnot, 1) : 0;
  default: return 0;
  }
}

static int select_rules(rewriter *r) {
  uint32_t p = arg(r, 0), a = arg(r, 1), b = arg(r, 2);
  if (a == b) return replace(r, a);
  if (is_constant(r, p)) return replace(r, bits_of(r, p) ? a : b);
  if (!is_not(r, p)) return 0;
  set_arg(r, 0, inner_arg(r, p));
  set_arg(r, 1, b);
  set_arg(r, 2, a);
  *r->changed = 1;
  return 1;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void remove_arg(rewriter *r, uint32_t at) {
  for (uint32_t i = at + 1; i < self(r)->arg_count; i++) set_arg(r, i - 1, arg(r, i));
  self(r)->arg_count--;
}

/* Adds a constant operand of a boundary address to the address itself, if it is in range there. */
static int boundary_rules(rewriter *r) {
  static const uint32_t extents[3] = {ATLAS_CLASS_COUNT, ATLAS_CLASS_PAGES, ATLAS_CLASS_PAGE_BYTES};
  ssa_insn *insn = self(r);
  uint32_t at = 0;
  for (unsigned i = 0; i < 3; i++) {
    if (!(insn->phi_registers >> i & 1)) continue;
    const ssa_insn *part = insn_of(r, arg(r, at++));
    if (part->op != SSA_CONST) continue;
    int64_t value = atlas_index_sum((atlas_type)part->type, part->bits, 0);
    if (value < 0 || value >= extents[i]) continue;
    insn->bits |= (uint64_t)value << 16 * i;
    insn->phi_registers = (uint8_t)(insn->phi_registers & ~(1u << i));
    remove_arg(r, --at);
    *r->changed = 1;
  }
  return 0; /* nothing else applies */
}

/* Adds a constant index to the displacement, if the sum is exact. */
static int address_rules(rewriter *r) {
  ssa_insn *insn = self(r);
  if (insn->mode == ATLAS_ADDRESS_PHI) return boundary_rules(r);
  if (insn->mode != ATLAS_ADDRESS_INDEXED || !is_constant(r, arg(r, 0))) return 0;
  const ssa_insn *index = insn_of(r, arg(r, 0));
  int64_t sum = atlas_index_sum((atlas_type)index->type, index->bits, (int64_t)insn->bits);
  if (sum == INT64_MAX || sum == INT64_MIN) return 0;
  remove_arg(r, 0);
  insn->mode = ATLAS_ADDRESS_UNIFORM;
  insn->bits = (uint64_t)sum;
  *r->changed = 1;
  return 1;
}

/* ---- one step ---------------------------------------------------------------------------------------------------- */

/* Puts constants second, so that rules look in one place; of two constant factors of mad or fma, puts 1 second. */
static void constant_last(rewriter *r) {
  if (hg_commutes(self(r)) && is_constant(r, arg(r, 0)) && is_constant(r, arg(r, 1)) && self(r)->arg_count == 3) {
    uint64_t one = atlas_is_integer((atlas_type)self(r)->type) ? 1 : number(r, 1.0);
    if (!is_bits(r, arg(r, 0), one)) return;
    uint32_t first = arg(r, 0);
    set_arg(r, 0, arg(r, 1));
    set_arg(r, 1, first);
    return;
  }
  if (!hg_commutes(self(r)) || !is_constant(r, arg(r, 0)) || is_constant(r, arg(r, 1))) return;
  uint32_t a = arg(r, 0);
  set_arg(r, 0, arg(r, 1));
  set_arg(r, 1, a);
}

static int step(rewriter *r) {
  const ssa_insn *insn = self(r);
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (insn->op == SSA_SPECIAL) return special_rules(r);
  if (info == NULL) return 0;
  if (info->flags & (ATLAS_LOAD | ATLAS_STORE | ATLAS_ATOMIC)) return address_rules(r);
  if (insn->arg_count == 0 || !hg_is_pure(insn)) return 0;
  constant_last(r);
  if (fold_constants(r)) return 1;
  if (insn->op == ATLAS_OP_sel) return select_rules(r);
  if (atlas_is_comparison(insn->op)) return set_rules(r);
  if (insn->type == SSA_PREDICATE) return predicate_rules(r);
  if (insn->op == ATLAS_OP_cvt || insn->op == ATLAS_OP_bitcast) return conversion_rules(r);
  if (sign_rules(r) || reduce_count(r)) return 1;
  return atlas_is_integer((atlas_type)insn->type) ? integer_rules(r) : float_names(r) || float_rules(r);
}

hg_status hg_simplify(ssa_unit *unit, uint32_t value, int *changed) {
  rewriter r = {.unit = unit, .value = value, .changed = changed, .status = HG_OK};
  while (ir_ssa_resolve(unit, value) == value && step(&r) && r.status == HG_OK) {
  }
  return r.status;
}
