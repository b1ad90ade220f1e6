/* columns.h - what the writer of columns.c knows of a block. */
#ifndef HG_OPS_COLUMNS_H
#define HG_OPS_COLUMNS_H

#include "ops/write/row_block.h"

enum { HAS_RESULTS = ROW_OWN_PREDICATE, MOST_LEVELS = 12 };

/* Its layout: lanes that have results side by side, neighbours of each, loads of a batch. */
typedef struct column_block {
  row_block k;
  uint32_t groups, batch, levels, step; /* step: elements from load to load */
  uint64_t inner, tiles, chunks;
  uint32_t own;          /* the coordinate that lanes lie along */
  uint16_t lane, group;  /* of the block's lane: its place in its group, its group; index type */
  uint16_t column;       /* its first result's coordinate */
  uint16_t batch_number; /* u32 */
  uint16_t row;          /* first element of the batch; index type */
  uint16_t chunk;        /* of parts; OPS_NO_REGISTER */
  uint16_t element;      /* of the load in hand */
  int all_have_results;  /* no lane stands beyond the last result */
  uint16_t block_column; /* the block's first */
  uint16_t shared[ROWS_MOST_REDUCTIONS], shared_places[ROWS_MOST_REDUCTIONS];
  uint16_t counter[ROWS_MOST_REDUCTIONS][MOST_LEVELS][ROWS_MOST_WIDE]; /* level 0 alone where order does not matter */
} column_block;

/* Fills in the layout and groups to chunks, from the group and the coordinate. */
void ops_columns_choose_shape(column_block *c);

#endif
