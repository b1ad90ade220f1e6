/* columns_shape.c - decides which reductions have one lane for each result, and the shape of their blocks. See
 * columns.c. */
#include "ops/write/columns.h"

/* The most neighbouring results that loads along `own` can join. */
static uint32_t neighbours(const row_group *g, uint32_t own, uint32_t most) {
  while (most > 1 && g->terms.space.size[own] % most != 0) most /= 2;
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if (term->kind != TERM_LOAD || term->form.factor[own] != 1) continue;
    for (uint32_t i = 0; i < OPS_MAX_VARIABLES; i++)
      while (most > 1 && i != own && term->form.factor[i] % (int64_t)most != 0) most /= 2;
    while (most > 1 && term->form.constant % (int64_t)most != 0) most /= 2;
  }
  return most;
}

void ops_columns_choose_shape(column_block *c) {
  const row_group *g = c->k.g;
  ops_layout *layout = &c->k.layout;
  int for_gpu = g->group->plan->for_gpu;
  uint64_t count = g->columns < OPS_CHUNK ? g->columns : OPS_CHUNK;
  uint32_t rounded = 1;
  while (rounded < count) rounded *= 2;
  c->inner = g->terms.space.size[c->k.across];
  c->chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  layout->wide = for_gpu ? neighbours(g, c->k.across, OPS_COLUMNS_WIDE) : 1;
  c->batch = for_gpu ? OPS_COLUMNS_LOADS_GPU : OPS_COLUMNS_LOADS;
  if (for_gpu && (g->stage_count > 2 || ops_row_has_full_results(g))) c->batch = OPS_COLUMNS_LOADS_LONG;
  while (c->batch > rounded) c->batch /= 2;
  c->groups = for_gpu ? OPS_COLUMNS_GROUPS : 1;
  while (c->groups > 1 && c->groups * c->batch > rounded) c->groups /= 2;
  layout->lanes = OPS_COLUMNS_BLOCK / c->groups;
  while (layout->lanes > 1 && (uint64_t)layout->lanes / 2 * layout->wide >= c->inner) {
    layout->lanes /= 2;
    if (for_gpu && c->groups < OPS_COLUMNS_MOST_GROUPS && c->groups * 2 * c->batch <= rounded) c->groups *= 2;
  }
  while (layout->lanes * c->groups < OPS_COLUMNS_LEAST_BLOCK) layout->lanes *= 2;
  layout->is_across = 1;
  layout->rows = 1;
  layout->step = rounded / c->batch;
  layout->loads = (uint32_t)((count + layout->step - 1) / layout->step);
  c->levels = 0;
  while (c->groups << c->levels < layout->step) c->levels++;
  c->all_have_results = c->inner % ((uint64_t)layout->lanes * layout->wide) == 0;
  c->tiles = (c->inner + (uint64_t)layout->lanes * layout->wide - 1) / ((uint64_t)layout->lanes * layout->wide);
}

int ops_columns_lie_apart(const row_group *g) {
  if (g->row_rank == 0 || g->terms.space.rank == g->row_rank) return 0;
  uint32_t own = g->row_rank - 1, along = 0, across = 0;
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if (term->kind != TERM_LOAD || !varies_by_column(g, id)) continue;
    along += term->form.factor[own] == 1;
    across += term->form.factor[g->terms.space.rank - 1] == 1;
  }
  return along > across;
}

int ops_columns_can(const row_group *g) {
  uint64_t chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  if (g->rows == 0 || g->rows > INT32_MAX || !ops_columns_lie_apart(g)) return 0;
  return chunks == 1 || (g->stage_count == 2 && !ops_row_has_full_results(g) &&
                         ops_row_part_storages(g) <= ROWS_MOST_PARTS && chunks <= 65535);
}
