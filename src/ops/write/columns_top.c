/* columns_top.c - long columns on a CPU: folds the top bits of their element numbers first, in one pass along memory.
 *
 * Order F begins with elements that are half a column apart, then a quarter. A block that has some columns and goes
 * over their elements in that order (columns.c) reads pieces of a few hundred bytes in each round, which no hardware
 * prefetcher predicts. That is fast for what the caches hold. Anything larger is read in one pass instead, as a map
 * reads several inputs: a lane folds elements that are an eighth of the column apart, and the lanes' results, an eighth
 * as many, are columns again, whose folding continues in the same order. */
#include "ops/write/row_block.h"

/* The number of lanes for a column. */
static uint64_t lanes_of(const row_group *g) {
  uint64_t lanes = 1;
  while (lanes * OPS_TOP_ELEMENTS < g->columns) lanes *= 2;
  return lanes;
}

int ops_columns_top_can(const row_group *g) {
  if (g->group->plan->for_gpu || g->columns <= OPS_TOP_COLUMNS || g->columns > OPS_CHUNK) return 0;
  if (g->columns % lanes_of(g) != 0) return 0;
  if (!ops_columns_lie_apart(g) || g->stage_count != 2 || ops_row_has_full_results(g)) return 0;
  if (g->terms.space.rank != g->row_rank + 1 || g->reduction_count > ROWS_MOST_PARTS) return 0;
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (row_is_place(&g->reductions[i])) return 0;
  uint64_t lanes = g->rows * lanes_of(g);
  return lanes <= INT32_MAX && lanes * OPS_TOP_ELEMENTS * ops_row_element_bytes(g) >= OPS_TOP_BYTES;
}

/* Lanes lie along memory if columns do: then the position in the column comes first, then the row's coordinates. */
static void write_top(row_block *k) {
  const row_group *g = k->g;
  ops_code *code = &k->code;
  uint32_t lanes = (uint32_t)lanes_of(g), order[HG_MAX_RANK + 1] = {g->row_rank};
  ops_form lane = g->row_number;
  lane.factor[g->row_rank] = (int64_t)g->rows;
  k->layout = (ops_layout){.lanes = lanes, .wide = 1, .step = lanes, .loads = (uint32_t)(g->columns / lanes), .rows = 1};
  k->parts->is_across = 1;
  ops_block_launch(k, g->rows * lanes, 1, 1, 1);
  ops_block_add_parts(k, lanes);
  uint16_t at = ops_lane_index(code);
  for (uint32_t i = 0; i < g->row_rank; i++) order[1 + i] = i;
  ops_split_over(code, at, order, 1 + g->row_rank);
  k->whole_loads = k->layout.loads;
  k->base = code->variable[g->row_rank];
  code->lane_form = &lane;
  ops_block_fold_own(k, 1);
  for (uint32_t i = 0; i < g->reduction_count; i++) k->kept[i][0] = k->own[i][0].part[0];
  ops_block_store_parts(k, at, 1);
  code->lane_form = NULL;
}

hg_status ops_columns_top(row_group *g, row_parts *parts) {
  return ops_block_write(g, &(row_writer){"columns_top", sizeof(row_block), write_top}, parts);
}
