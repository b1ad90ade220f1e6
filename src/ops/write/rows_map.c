/* rows_map.c - results behind the last reduction, in a launch of their own, with an element, or a row, for each lane.
 * See row_group.h. */
#include "ops/write/row_block.h"

/* Sets all coordinates, the row's last one last if its neighbours are consecutive. *lane is the lane's number as a form
 * of them: what lies at it is accessed as [x + lane]. */
static void set_coordinates(row_block *k, int full, ops_form *lane) {
  const row_group *g = k->g;
  ops_code *code = &k->code;
  uint32_t order[HG_MAX_RANK], count = 0, rank = full ? g->terms.space.rank : g->row_rank;
  uint32_t last = full && ops_columns_lie_apart(g) ? g->row_rank - 1 : rank - 1;
  for (uint32_t i = 0; i < rank; i++)
    if (i != last) order[count++] = i;
  order[count++] = last;
  int64_t stride = 1;
  for (uint32_t i = count; i-- > 0; stride *= (int64_t)g->terms.space.size[order[i]]) lane->factor[order[i]] = stride;
  code->lane_form = lane;
  ops_split_over(code, ops_lane_index(code), order, count);
}

static void write_lanes(row_block *k, int full) {
  const row_group *g = k->g;
  ops_form lane = {.constant = 0};
  k->code.step->kind = "map";
  ops_block_launch(k, full ? g->rows * g->columns : g->rows, 1, 1, 1);
  if (full ? g->terms.space.rank > 0 : g->row_rank > 0) set_coordinates(k, full, &lane);
  if (!full) ops_block_put_single(k);
  for (uint32_t i = 0; i < g->result_count && full; i++)
    if (g->results[i].is_full) ops_block_put(k, &g->results[i]);
}

void ops_write_elements(row_block *k) { write_lanes(k, 1); }
void ops_write_singles(row_block *k) { write_lanes(k, 0); }
