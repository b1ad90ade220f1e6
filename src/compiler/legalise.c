/* legalise.c - replaces operations that no machine has by operations that every machine has, with the same bits.
 *
 * f16 and bf16 arithmetic and comparisons are done in f32 and rounded once: that is their definition. Integer division
 * gets a divisor that no hardware traps on, and a select for the cases that the ISA defines (x / 0 = 0, x rem 0 = x,
 * MIN / -1 = MIN, MIN rem -1 = 0). */
#include "compiler/legalise.h"

#include "atlas/arith.h"
#include "base/error.h"
#include "ir/ssa_walk.h"

static hg_status out_of_memory(void) { return hg_fail_memory("legalisation", sizeof(ssa_insn)); }

typedef struct legaliser {
  ssa_unit *unit;
  uint32_t insn; /* the program's instruction that new values belong to */
  int failed;
} legaliser;

static uint32_t add(legaliser *l, uint16_t op, uint8_t type, uint8_t type2, const uint32_t *args, uint32_t count) {
  ssa_insn made = {.op = op, .type = type, .type2 = type2, .insn = l->insn};
  uint32_t value = l->failed ? SSA_NONE : ir_ssa_add(l->unit, &made, count);
  if (value == SSA_NONE) {
    l->failed = 1;
    return 0;
  }
  for (uint32_t i = 0; i < count; i++) ssa_args_of(l->unit, value)[i] = args[i];
  return value;
}

static uint32_t constant(legaliser *l, uint8_t type, uint64_t bits) {
  uint32_t value = add(l, SSA_CONST, type, 0, NULL, 0);
  if (!l->failed) ssa_insn_at(l->unit, value)->bits = bits;
  return value;
}

/* ---- f16 and bf16 ------------------------------------------------------------------------------------------------ */

static int is_narrow(uint8_t type) { return type == ATLAS_f16 || type == ATLAS_bf16; }

static int is_extreme(uint16_t op) { return op == ATLAS_OP_min || op == ATLAS_OP_max; }

/* 1 for arithmetic whose result is a rounded f32 result. Functions were widened before they were expanded. */
static int is_narrow_arithmetic(const ssa_unit *unit, const ssa_insn *insn) {
  if (unit->narrow_extremes && is_extreme(insn->op)) return 0;
  const atlas_op_info *info = atlas_op_lookup(insn->op);
  if (info == NULL || !is_narrow(insn->type) || insn->type2 != ATLAS_NONE || insn->block != SSA_NONE) return 0;
  return info->flags & ATLAS_PURE && !(info->flags & (ATLAS_BITS | ATLAS_LOAD));
}

static uint32_t widened(legaliser *l, uint8_t from, uint32_t value) {
  return add(l, ATLAS_OP_cvt, ATLAS_f32, from, &value, 1);
}

static hg_status widen_arithmetic(legaliser *l, uint32_t value) {
  uint32_t args[3], count = ssa_insn_at(l->unit, value)->arg_count;
  uint16_t op = ssa_insn_at(l->unit, value)->op;
  uint8_t narrow = ssa_insn_at(l->unit, value)->type;
  for (uint32_t i = 0; i < count; i++) args[i] = widened(l, narrow, ssa_args_of(l->unit, value)[i]);
  uint32_t wide = add(l, op, ATLAS_f32, ATLAS_NONE, args, count);
  if (l->failed) return out_of_memory();
  ssa_insn *insn = ssa_insn_at(l->unit, value);
  insn->op = ATLAS_OP_cvt;
  insn->type2 = ATLAS_f32;
  insn->arg_count = 1;
  ssa_args_of(l->unit, value)[0] = wide;
  return HG_OK;
}

/* Conversions to f32 are exact, so they change no comparison. */
static hg_status widen_comparison(legaliser *l, uint32_t value) {
  uint8_t narrow = ssa_insn_at(l->unit, value)->type2;
  for (uint32_t i = 0; i < 2; i++) {
    uint32_t wide = widened(l, narrow, ssa_args_of(l->unit, value)[i]);
    if (l->failed) return out_of_memory();
    ssa_args_of(l->unit, value)[i] = wide;
  }
  ssa_insn_at(l->unit, value)->type2 = ATLAS_f32;
  return HG_OK;
}

/* ---- integer division -------------------------------------------------------------------------------------------- */

static int is_safe_divisor(const ssa_unit *unit, uint32_t divisor) {
  const ssa_insn *insn = ssa_insn_at(unit, divisor);
  int is_signed = atlas_kind((atlas_type)insn->type) == ATLAS_KIND_SINT;
  return insn->op == SSA_CONST && insn->bits != 0 && !(is_signed && insn->bits == atlas_mask((atlas_type)insn->type));
}

/* value = sel(b is -1, the defined result, sel(b is 0, the defined result, a op (b made safe))) */
static hg_status guard_division(legaliser *l, uint32_t value) {
  uint32_t a = ssa_args_of(l->unit, value)[0], b = ssa_args_of(l->unit, value)[1];
  uint16_t op = ssa_insn_at(l->unit, value)->op;
  uint8_t type = ssa_insn_at(l->unit, value)->type;
  int is_signed = atlas_kind((atlas_type)type) == ATLAS_KIND_SINT, is_div = op == ATLAS_OP_div;
  uint32_t zero = constant(l, type, 0), one = constant(l, type, 1);
  uint32_t by_zero = add(l, ATLAS_OP_set_eq, SSA_PREDICATE, type, (uint32_t[]){b, zero}, 2);
  uint32_t safe = add(l, ATLAS_OP_sel, type, 0, (uint32_t[]){by_zero, one, b}, 3), by_minus = SSA_NONE;
  if (is_signed) {
    by_minus = add(l, ATLAS_OP_set_eq, SSA_PREDICATE, type,
                   (uint32_t[]){b, constant(l, type, atlas_mask((atlas_type)type))}, 2);
    safe = add(l, ATLAS_OP_sel, type, 0, (uint32_t[]){by_minus, one, safe}, 3);
  }
  uint32_t result = add(l, op, type, 0, (uint32_t[]){a, safe}, 2);
  if (is_signed) {
    uint32_t defined = is_div ? add(l, ATLAS_OP_neg, type, 0, &a, 1) : zero;
    result = add(l, ATLAS_OP_sel, type, 0, (uint32_t[]){by_minus, defined, result}, 3);
  }
  if (l->failed) return out_of_memory();
  ssa_insn *insn = ssa_insn_at(l->unit, value);
  uint32_t first = (uint32_t)l->unit->args.count, args[3] = {by_zero, is_div ? zero : a, result};
  if (hg_array_append(&l->unit->allocator, &l->unit->args, args, 3) == NULL) return out_of_memory();
  insn->op = ATLAS_OP_sel;
  insn->args = first;
  insn->arg_count = 3;
  return HG_OK;
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static hg_status legalise(legaliser *l, uint32_t value) {
  const ssa_insn *insn = ssa_insn_at(l->unit, value);
  l->insn = insn->insn;
  if (is_narrow_arithmetic(l->unit, insn)) return widen_arithmetic(l, value);
  if (atlas_is_comparison(insn->op) && is_narrow(insn->type2)) return widen_comparison(l, value);
  int divides = (insn->op == ATLAS_OP_div || insn->op == ATLAS_OP_rem) && atlas_is_integer((atlas_type)insn->type);
  return divides && !is_safe_divisor(l->unit, ssa_args_of(l->unit, value)[1]) ? guard_division(l, value) : HG_OK;
}

hg_status hg_legalise(ssa_unit *unit) {
  legaliser l = {.unit = unit};
  uint32_t count = (uint32_t)unit->insns.count; /* the values that are added are legal already */
  ir_ssa_resolve_all(unit);
  for (uint32_t v = 0; v < count; v++) HG_TRY(legalise(&l, v));
  return HG_OK;
}
