/* columns.h - the state of the writer of columns.c. */
#ifndef HG_OPS_COLUMNS_H
#define HG_OPS_COLUMNS_H

#include "ops/write/row_block.h"

enum { HAS_RESULTS = ROW_OWN_PREDICATE };

/* The layout of a block: lanes with neighbouring results, neighbours in each lane, loads of a batch. */
typedef struct column_block {
  row_block k;
  uint32_t groups, batch, levels;
  uint64_t inner, tiles, chunks;
  uint16_t lane, group;  /* the lane's number in its group, its group; of the index type */
  uint16_t column;       /* the coordinate of its first result */
  uint16_t batch_number; /* u32 */
  uint16_t chunk;        /* if the index is cut into parts; OPS_NO_REGISTER */
  int all_have_results;  /* 1: no lane lies behind the last result */
  uint16_t block_column; /* the block's first result */
  uint16_t shared[ROWS_MOST_REDUCTIONS], shared_places[ROWS_MOST_REDUCTIONS];
} column_block;

/* Chooses the layout, and fills in the members from `groups` to `chunk`, given the group and the coordinate. */
void ops_columns_choose_shape(column_block *c);

#endif
