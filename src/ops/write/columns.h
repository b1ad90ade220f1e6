/* columns.h - what the writer of columns.c knows of a block. */
#ifndef HG_OPS_COLUMNS_H
#define HG_OPS_COLUMNS_H

#include "ops/write/row_group.h"
#include "ops/graph/ops_tuning.h"

enum { HAS_RESULTS = 3, MOST_LEVELS = 12 };

typedef struct column_block {
  row_group *g;
  ops_code code;
  uint32_t lanes, wide, groups, batch, loads, levels, step; /* step: elements from load to load */
  uint64_t inner, tiles, chunks;
  uint32_t own;          /* the coordinate that lanes lie along */
  uint16_t lane, group;  /* of the block's lane: its place in its group, its group; index type */
  uint16_t column;       /* its first result's coordinate */
  uint16_t batch_number; /* u32 */
  uint16_t row;          /* first element of the batch; index type */
  uint16_t chunk;        /* of parts; OPS_NO_REGISTER */
  uint16_t element;      /* of the load in hand */
  int tests_all;         /* every load may reach beyond the end, not the last alone */
  int all_have_results;  /* no lane stands beyond the last result */
  uint32_t stage, neighbour;
  const row_reduction *reduction;
  ops_fold fold;
  uint16_t block_column; /* the block's first */
  uint16_t shared[ROWS_MOST_REDUCTIONS], shared_places[ROWS_MOST_REDUCTIONS];
  ops_held results[ROWS_MOST_REDUCTIONS][OPS_COLUMNS_WIDE];
} column_block;

/* Fills in lanes to chunks, from the group and the coordinate. */
void ops_columns_choose_shape(column_block *c);

#endif
