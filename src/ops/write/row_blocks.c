/* row_blocks.c - maps over rows in blocks: what does not vary along a row is computed once for a block. See
 * expression.h. The launch says how many lanes a block has, so that rows of all lengths share a program. */
#include "ops/write/expression.h"
#include "ops/graph/ops_tuning.h"

/* Lanes of a block: as many as divide the row, so that each lane's number still is its element's. 0: there is no such
 * number. */
static uint32_t lanes_for(uint64_t size) {
  for (uint32_t lanes = OPS_ROW_BLOCK_LANES; lanes >= OPS_ROW_BLOCK_LEAST; lanes--)
    if (size % lanes == 0) return lanes;
  return 0;
}

uint32_t ops_row_blocks_lanes(const ops_terms *t, const ops_shape *space) {
  if (t->group->plan->for_gpu || space->rank < 2) return 0;
  uint64_t size = space->size[space->rank - 1];
  return ops_count(space) == 0 || ops_count(space) / size > UINT32_MAX ? 0 : lanes_for(size);
}

ops_row_blocks ops_row_blocks_begin(ops_code *code, uint64_t groups, uint64_t rows, uint64_t size, uint32_t lanes) {
  ops_row_blocks begun = {.row = ops_launch_index(code, ATLAS_COORD_BLOCK_Y),
                         .column = ops_index_of(code, ATLAS_REG_BLOCK_LANE)};
  if (groups > 1) begun.group = ops_launch_index(code, ATLAS_COORD_BLOCK_Z);
  if (size > lanes) {
    uint16_t block = ops_launch_index(code, ATLAS_COORD_BLOCK_X);
    atlas_emit(code->builder, ATLAS_OP_mad, code->index_type, 4, atlas_reg(begun.column), atlas_reg(block),
               ops_scalar_of(code, code->index_type, lanes), atlas_reg(begun.column));
  }
  ops_step *step = code->step;
  step->lanes = 0, step->grid[0] = (uint32_t)(size / lanes), step->grid[1] = (uint32_t)rows;
  step->grid[2] = (uint32_t)groups;
  step->block[0] = lanes, step->block[1] = step->block[2] = 1;
  return begun;
}
