/* long_rows.c - maps over rows in blocks: what does not vary along a row is computed once for a block. See
 * expression.h. */
#include "ops/expression.h"

enum { SHORTEST = OPS_ROW_LANES / 2, IS_IN_ROW = 15 };

int ops_may_take_long_rows(const ops_terms *t, const ops_shape *space) {
  if (t->group->plan->for_gpu || space->rank < 2 || space->size[space->rank - 1] < SHORTEST) return 0;
  return ops_count(space) / space->size[space->rank - 1] <= UINT32_MAX;
}

static uint16_t as_index(ops_code *code, atlas_operand from) {
  uint16_t to = ops_register(code);
  atlas_emit2(code->builder, ATLAS_OP_cvt, code->index_type, ATLAS_u32, atlas_reg(to), from);
  return to;
}

static uint16_t coordinate(ops_code *code, atlas_coord which) {
  uint16_t narrow = ops_register(code);
  atlas_emit(code->builder, ATLAS_OP_sreg, ATLAS_u32, 2, atlas_reg(narrow), atlas_coordinate(which));
  uint16_t to = as_index(code, atlas_reg(narrow));
  ops_register_free(code, narrow);
  return to;
}

ops_long_rows ops_long_rows_begin(ops_code *code, uint64_t rows, uint64_t size) {
  ops_long_rows begun = {.row = coordinate(code, ATLAS_COORD_BLOCK_Y), .end = UINT32_MAX};
  atlas_builder_block(code->builder, OPS_ROW_LANES, 1, 1);
  begun.column = as_index(code, atlas_reg(ATLAS_REG_BLOCK_LANE));
  if (size > OPS_ROW_LANES) {
    uint16_t block = coordinate(code, ATLAS_COORD_BLOCK_X);
    atlas_emit(code->builder, ATLAS_OP_mad, code->index_type, 4, atlas_reg(begun.column), atlas_reg(block),
               atlas_int_const(code->index_type, OPS_ROW_LANES), atlas_reg(begun.column));
    ops_register_free(code, block);
  }
  if (size % OPS_ROW_LANES != 0) {
    begun.end = atlas_builder_label(code->builder, NULL);
    atlas_emit(code->builder, ATLAS_OP_set_lt, code->index_type, 3, atlas_pred(IS_IN_ROW), atlas_reg(begun.column),
               ops_scalar_of(code, code->index_type, size));
    atlas_emit_branch(code->builder, IS_IN_ROW, 1, begun.end);
  }
  ops_step *step = code->step;
  step->grid[0] = (uint32_t)((size + OPS_ROW_LANES - 1) / OPS_ROW_LANES), step->grid[1] = (uint32_t)rows;
  step->lanes = 0, step->block[0] = OPS_ROW_LANES, step->grid[2] = step->block[1] = step->block[2] = 1;
  return begun;
}

void ops_long_rows_end(ops_code *code, const ops_long_rows *begun) {
  if (begun->end != UINT32_MAX) atlas_builder_place(code->builder, begun->end);
}
