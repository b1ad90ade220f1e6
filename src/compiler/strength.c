/* strength.c - strength reduction, for the same bits: divisions and products by powers of two become cheaper
 * operations; 0 - a and a * -1 become -a.
 *
 * After the hash. A float divided by 2^k equals its product with 2^-k, because both are the same real number rounded
 * once, as long as 2^-k is a normal number of the type. */
#include "compiler/optimise.h"

#include "atlas/arith.h"
#include "base/error.h"
#include "ir/ssa_walk.h"

static int power_of_two(uint64_t value, uint32_t *exponent) {
  if (value == 0 || (value & (value - 1)) != 0) return 0;
  for (*exponent = 0; value >> *exponent != 1;) (*exponent)++;
  return 1;
}

/* Changes the operation, and makes its second argument a constant. */
static hg_status become(ssa_unit *unit, uint32_t value, uint16_t op, uint8_t type, uint64_t bits, int *changed) {
  ssa_insn constant = {.op = SSA_CONST, .type = type, .bits = bits, .insn = SSA_NONE};
  uint32_t added = ir_ssa_add(unit, &constant, 0);
  if (added == SSA_NONE) return hg_fail_memory("strength reduction", sizeof constant);
  ssa_args_of(unit, value)[1] = added;
  ssa_insn_at(unit, value)->op = op;
  *changed = 1;
  return HG_OK;
}

static void negate(ssa_unit *unit, uint32_t value, uint32_t argument, int *changed) {
  ssa_insn *insn = ssa_insn_at(unit, value);
  ssa_args_of(unit, value)[0] = argument;
  insn->op = ATLAS_OP_neg;
  insn->arg_count = 1;
  *changed = 1;
}

/* 0 - a and a * -1 in integers; constants stand last in a product. */
static void find_negation(ssa_unit *unit, uint32_t value, int *changed) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  const uint32_t *args = ssa_args_of(unit, value);
  const ssa_insn *constant = ssa_insn_at(unit, args[insn->op == ATLAS_OP_mul]);
  if (constant->op != SSA_CONST) return;
  if (insn->op == ATLAS_OP_sub && constant->bits == 0) negate(unit, value, args[1], changed);
  if (insn->op == ATLAS_OP_mul && constant->bits == atlas_mask((atlas_type)insn->type))
    negate(unit, value, args[0], changed);
}

static hg_status reduce_integer(ssa_unit *unit, uint32_t value, uint64_t divisor, int *changed) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  int is_unsigned = atlas_kind((atlas_type)insn->type) == ATLAS_KIND_UINT;
  uint32_t exponent;
  if (!power_of_two(divisor, &exponent) || exponent == 0) return HG_OK;
  switch (insn->op) {
  case ATLAS_OP_mul: return become(unit, value, ATLAS_OP_shl, ATLAS_u32, exponent, changed);
  case ATLAS_OP_div: return is_unsigned ? become(unit, value, ATLAS_OP_shr, ATLAS_u32, exponent, changed) : HG_OK;
  case ATLAS_OP_rem: return is_unsigned ? become(unit, value, ATLAS_OP_and, insn->type, divisor - 1, changed) : HG_OK;
  default: return HG_OK;
  }
}

static uint64_t fraction_mask(atlas_type type) {
  switch (type) {
  case ATLAS_f16: return 0x3ff;
  case ATLAS_bf16: return 0x7f;
  case ATLAS_f32: return 0x7fffff;
  default: return UINT64_C(0xfffffffffffff);
  }
}

/* A normal power of two: no fraction bits, and an exponent field that is neither all zeros nor all ones. */
static int is_normal_power(atlas_type type, uint64_t bits) {
  uint64_t fraction = fraction_mask(type), exponents = atlas_mask(type) >> 1 & ~fraction;
  return (bits & fraction) == 0 && (bits & exponents) != 0 && (bits & exponents) != exponents;
}

static hg_status reduce_float(ssa_unit *unit, uint32_t value, uint64_t divisor, int *changed) {
  const ssa_insn *insn = ssa_insn_at(unit, value);
  atlas_type type = (atlas_type)insn->type;
  if (insn->op != ATLAS_OP_div || !is_normal_power(type, divisor)) return HG_OK;
  uint64_t reciprocal = atlas_arith(ATLAS_OP_recip, type, divisor, 0, 0);
  if (!is_normal_power(type, reciprocal)) return HG_OK;
  return become(unit, value, ATLAS_OP_mul, insn->type, reciprocal, changed);
}

hg_status hg_pass_strength(const atlas_program *program, ssa_unit *unit, int *changed) {
  (void)program;
  ir_ssa_resolve_all(unit);
  for (uint32_t v = 0; v < unit->insns.count; v++) {
    const ssa_insn *insn = ssa_insn_at(unit, v);
    if ((insn->op == ATLAS_OP_sub || insn->op == ATLAS_OP_mul) && atlas_is_integer((atlas_type)insn->type))
      find_negation(unit, v, changed);
    if (insn->op != ATLAS_OP_mul && insn->op != ATLAS_OP_div && insn->op != ATLAS_OP_rem) continue;
    const ssa_insn *second = ssa_insn_at(unit, ssa_args_of(unit, v)[1]);
    if (second->op != SSA_CONST) continue;
    if (atlas_is_integer((atlas_type)insn->type)) HG_TRY(reduce_integer(unit, v, second->bits, changed));
    else HG_TRY(reduce_float(unit, v, second->bits, changed));
  }
  return HG_OK;
}
