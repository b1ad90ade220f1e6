/* coordinates.c - computes the coordinates of a space from a number in it. */
#include "ops/write/expression.h"

void ops_split(ops_code *code, const ops_shape *shape, uint32_t axes, uint32_t end, uint64_t count, atlas_operand from,
               atlas_type is) {
  atlas_builder *b = code->builder;
  atlas_type type = count <= UINT32_MAX ? ATLAS_u32 : ATLAS_u64;
  uint16_t rest = ops_register(code), part = ops_register(code);
  atlas_emit2(b, atlas_bytes(type) == atlas_bytes(is) ? ATLAS_OP_bitcast : ATLAS_OP_cvt, type, is, atlas_reg(rest),
              from);
  for (uint32_t i = end; i-- > 0;) {
    if (code->variable[i] != OPS_NO_REGISTER) continue;
    uint16_t own = code->variable[i] = ops_register(code);
    if ((axes >> i & 1) == 0) {
      atlas_emit(b, ATLAS_OP_movi, ATLAS_i64, 2, atlas_reg(own), atlas_int_const(ATLAS_i64, 0));
      continue;
    }
    int is_first = (axes & ((1u << i) - 1)) == 0;
    atlas_operand size = ops_scalar_of(code, type, shape->size[i]);
    if (!is_first) atlas_emit(b, ATLAS_OP_rem, type, 3, atlas_reg(part), atlas_reg(rest), size);
    if (!is_first) atlas_emit(b, ATLAS_OP_div, type, 3, atlas_reg(rest), atlas_reg(rest), size);
    atlas_emit2(b, type == ATLAS_u64 ? ATLAS_OP_bitcast : ATLAS_OP_cvt, ATLAS_i64, type, atlas_reg(own),
                atlas_reg(is_first ? rest : part));
  }
}

void ops_split_over(ops_code *code, uint16_t from, const uint32_t *order, uint32_t count) {
  uint16_t rest = from;
  for (uint32_t i = count; i-- > 1;) {
    atlas_operand size = ops_scalar_of(code, code->index_type, code->terms->space.size[order[i]]);
    uint16_t own = ops_register(code), quotient = ops_register(code);
    atlas_emit(code->builder, ATLAS_OP_rem, code->index_type, 3, atlas_reg(own), atlas_reg(rest), size);
    atlas_emit(code->builder, ATLAS_OP_div, code->index_type, 3, atlas_reg(quotient), atlas_reg(rest), size);
    code->variable[order[i]] = own;
    rest = quotient;
  }
  if (count > 0) code->variable[order[0]] = rest;
}

void ops_split_range(ops_code *code, uint16_t from, uint32_t first, uint32_t end) {
  uint32_t order[HG_MAX_RANK], count = 0;
  for (uint32_t i = first; i < end; i++) order[count++] = i;
  ops_split_over(code, from, order, count);
}
