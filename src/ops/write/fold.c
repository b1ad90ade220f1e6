/* fold.c - code for order F over registers, lanes and chunks. */
#include "ops/write/fold.h"

#include "atlas/tables.h"

#include <string.h>

/* ---- values ---------------------------------------------------------------------------------------------------- */

static int is_float(atlas_type type) {
  return type == ATLAS_f16 || type == ATLAS_bf16 || type == ATLAS_f32 || type == ATLAS_f64;
}

static int is_signed(atlas_type type) {
  return type == ATLAS_i8 || type == ATLAS_i16 || type == ATLAS_i32 || type == ATLAS_i64;
}

static uint64_t ones(uint32_t bits) { return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1; }

/* Bits of a float type: its exponent's ones, its 1. */
static uint64_t infinity_of(atlas_type type) {
  switch (type) {
  case ATLAS_f16: return 0x7c00;
  case ATLAS_bf16: return 0x7f80;
  case ATLAS_f32: return 0x7f800000;
  default: return UINT64_C(0x7ff0000000000000);
  }
}

static uint64_t one_of(atlas_type type) {
  switch (type) {
  case ATLAS_f16: return 0x3c00;
  case ATLAS_bf16: return 0x3f80;
  case ATLAS_f32: return 0x3f800000;
  case ATLAS_f64: return UINT64_C(0x3ff0000000000000);
  default: return 1;
  }
}

static uint64_t top_bit(atlas_type type) { return UINT64_C(1) << (atlas_type_bits(type) - 1); }

static uint64_t least_of(atlas_type type) {
  if (is_float(type)) return infinity_of(type) | top_bit(type);
  return is_signed(type) ? top_bit(type) : 0;
}

static uint64_t greatest_of(atlas_type type) {
  if (is_float(type)) return infinity_of(type);
  return is_signed(type) ? top_bit(type) - 1 : ones(atlas_type_bits(type));
}

static void emit(const ops_fold *fold, atlas_op op, uint16_t to, atlas_operand a, atlas_operand b) {
  atlas_emit(fold->code->builder, op, (atlas_type)fold->type, 3, atlas_reg(to), a, b);
}

static void by_instruction(const ops_fold *fold, uint16_t to, atlas_operand left, atlas_operand right) {
  emit(fold, fold->op, to, left, right);
}

/* m + log1p(exp(least - m)), m the greater; where the difference is no number (m is infinite, or none) it is m. */
static void by_logsumexp(const ops_fold *fold, uint16_t to, atlas_operand left, atlas_operand right) {
  atlas_builder *b = fold->code->builder;
  atlas_type type = (atlas_type)fold->type;
  uint16_t m = ops_register(fold->code), d = ops_register(fold->code), e = ops_register(fold->code);
  emit(fold, ATLAS_OP_max, m, left, right);
  emit(fold, ATLAS_OP_min, d, left, right);
  emit(fold, ATLAS_OP_sub, d, atlas_reg(d), atlas_reg(m));
  atlas_emit(b, ATLAS_OP_exp, type, 2, atlas_reg(e), atlas_reg(d));
  atlas_emit(b, ATLAS_OP_log1p, type, 2, atlas_reg(e), atlas_reg(e));
  emit(fold, ATLAS_OP_add, e, atlas_reg(m), atlas_reg(e));
  atlas_emit(b, ATLAS_OP_set_num, type, 3, atlas_pred(OPS_BRANCHES), atlas_reg(d), atlas_reg(d));
  atlas_emit(b, ATLAS_OP_sel, type, 4, atlas_reg(to), atlas_pred(OPS_BRANCHES), atlas_reg(e), atlas_reg(m));
}

ops_fold ops_fold_of(ops_code *code, ops_reduce reduce, atlas_type type) {
  ops_fold fold = {.code = code, .combine = by_instruction, .type = (uint8_t)type};
  switch (reduce) {
  case OPS_SUM:
    fold.op = ATLAS_OP_add, fold.collective = ATLAS_OP_reduce_add;
    fold.identity = is_float(type) ? top_bit(type) : 0; /* -0 */
    fold.is_ordered = (uint8_t)is_float(type);
    break;
  case OPS_PRODUCT:
    fold.op = ATLAS_OP_mul, fold.collective = ATLAS_OP_reduce_mul;
    fold.identity = one_of(type);
    fold.is_ordered = (uint8_t)is_float(type);
    break;
  case OPS_MIN:
  case OPS_ARGMIN:
    fold.op = ATLAS_OP_min, fold.collective = ATLAS_OP_reduce_min, fold.identity = greatest_of(type);
    break;
  case OPS_LOGSUMEXP:
    fold.combine = by_logsumexp;
    fold.identity = least_of(type);
    fold.is_ordered = 1;
    break;
  default: fold.op = ATLAS_OP_max, fold.collective = ATLAS_OP_reduce_max, fold.identity = least_of(type);
  }
  return fold;
}

/* ---- registers ------------------------------------------------------------------------------------------------- */

uint16_t ops_fold_two(const ops_fold *fold, uint16_t left, uint16_t right) {
  uint16_t result = ops_register(fold->code);
  fold->combine(fold, result, atlas_reg(left), atlas_reg(right));
  return result;
}

uint16_t ops_fold_leaves(const ops_fold *fold, uint32_t first, uint32_t stride, uint32_t count, ops_leaf leaf,
                         void *context) {
  if (count == 1) return leaf(context, first);
  uint16_t even = ops_fold_leaves(fold, first, 2 * stride, (count + 1) / 2, leaf, context);
  uint16_t odd = ops_fold_leaves(fold, first + stride, 2 * stride, count / 2, leaf, context);
  return ops_fold_two(fold, even, odd);
}

uint16_t ops_fold_aligned(const ops_fold *fold, uint32_t first, uint32_t count, ops_leaf leaf, void *context) {
  if (count == 1) return leaf(context, first);
  uint32_t half = 1;
  while (2 * half < count) half *= 2;
  uint16_t left = ops_fold_aligned(fold, first, half, leaf, context);
  return ops_fold_two(fold, left, ops_fold_aligned(fold, first + half, count - half, leaf, context));
}

static uint16_t nth(void *context, uint32_t number) { return ((const uint16_t *)context)[number]; }

uint16_t ops_fold_values(const ops_fold *fold, const uint16_t *values, uint32_t count) {
  return ops_fold_leaves(fold, 0, 1, count, nth, (void *)(uintptr_t)values);
}

uint16_t ops_fold_where(const ops_fold *fold, uint32_t predicate, uint16_t value) {
  uint16_t there = ops_register(fold->code);
  atlas_emit(fold->code->builder, ATLAS_OP_sel, (atlas_type)fold->type, 4, atlas_reg(there), atlas_pred(predicate),
             atlas_reg(value), atlas_bits(fold->identity));
  return there;
}

uint16_t ops_fold_lanes(const ops_fold *fold, uint16_t value) {
  uint16_t result = ops_register(fold->code);
  atlas_emit(fold->code->builder, fold->collective, (atlas_type)fold->type, 2, atlas_reg(result), atlas_reg(value));
  return result;
}

/* ---- rows laid over a block ------------------------------------------------------------------------------------ */

void ops_fold_own(const ops_fold *fold, const ops_layout *layout, ops_leaf leaf, void *context, ops_parts *parts) {
  parts->count = 0;
  if (!fold->is_ordered && !layout->is_across) {
    parts->part[parts->count++] = ops_fold_leaves(fold, 0, 1, layout->loads * layout->wide, leaf, context);
    return;
  }
  uint32_t loads = OPS_CHUNK / layout->step, wide = layout->wide;
  for (uint32_t first = 0; first < layout->loads; first += loads) {
    uint32_t count = layout->loads - first < loads ? layout->loads - first : loads;
    for (uint32_t w = 0; w < wide; w++)
      parts->part[parts->count++] = ops_fold_leaves(fold, first * wide + w, wide, count, leaf, context);
  }
}

uint16_t ops_fold_parts(const ops_fold *fold, const ops_layout *layout, ops_parts *parts) {
  if (!fold->is_ordered) return parts->part[0];
  uint32_t chunks = parts->count / layout->wide;
  for (uint32_t c = 0; c < chunks; c++)
    parts->part[c] = ops_fold_values(fold, &parts->part[c * layout->wide], layout->wide);
  return ops_fold_values(fold, parts->part, chunks);
}
