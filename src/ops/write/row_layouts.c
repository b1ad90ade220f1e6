/* row_layouts.c - which layouts a group that reduces can have, and their sizes: see layouts.def. */
#include "ops/graph/ops_tuning.h"
#include "ops/write/row_group.h"

#include "atlas/tables.h"

#include <string.h>

static int has_places(const row_group *g) {
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (row_is_place(&g->reductions[i])) return 1;
  return 0;
}

/* 1 if a launch may leave parts, for which it has storages enough. */
static int may_have_parts(const row_group *g) {
  uint32_t storages = 0;
  for (uint32_t i = 0; i < g->reduction_count; i++) storages += 1u + (uint32_t)row_is_place(&g->reductions[i]);
  return g->stage_count == 2 && !ops_row_has_full_results(g) && storages <= ROWS_MOST_PARTS;
}

/* ---- rows in registers ------------------------------------------------------------------------------------------- */

/* Bytes of a column that are loaded beyond the first term: all loads are issued before anything is computed, so
 * registers hold them in addition to what is held. */
static uint32_t bytes_beside(const row_group *g) {
  uint32_t bytes = 0, most = 0;
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    if (ops_term_at(&g->terms, id)->kind != TERM_LOAD || !varies_by_column(g, id)) continue;
    uint32_t own = atlas_type_bits((atlas_type)ops_term_at(&g->terms, id)->type) / 8;
    bytes += own;
    if (own > most) most = own;
  }
  return bytes - most;
}

/* 1 if a function is computed for every column. */
static int has_functions(const row_group *g) {
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if (term->kind == TERM_POINTWISE && varies_by_column(g, id) && atlas_op_flags(term->op) & ATLAS_FUNC) return 1;
  }
  return 0;
}

/* Lanes for that many columns of held words: the fastest on an H200 among those that were tried, with 16 to 32 words
 * a lane. A warp needs no barrier; two neighbours need half the exchanges of four; with more than 32 words a lane,
 * registers leave room for few warps. A GPU starts some 1.6 blocks a nanosecond, so a block has enough short rows to
 * make up 1024 columns; if nothing is held, or elements have 16 bits, two neighbours of a short row halve the loads.
 * A lane has rows of up to 16 columns by itself. If memory is not the only limit, since elements are small and a
 * function is computed for each, long rows are faster with half the lanes: softmax of bf16, 2^28 elements, rows of
 * 8192 333 and 308 us, of 16384 365 and 310; of 4096 309 and 315. */
static void shape_for_gpu(const row_group *g, ops_layout *layout) {
  uint64_t words = g->columns * (g->most_held == 0 ? 1 : g->most_held);
  uint64_t beside = g->columns * bytes_beside(g) / 8;
  uint32_t bytes = ops_row_element_bytes(g), wide = bytes == 8 ? 2 : OPS_HELD_WIDE;
  layout->rows = 1;
  layout->lanes = 32;
  uint64_t most =
      bytes <= 2 && g->columns > OPS_CHUNK && has_functions(g) ? OPS_HELD_WORDS_OF_FUNCTIONS : OPS_HELD_WORDS;
  while (layout->lanes < OPS_HELD_LANES && layout->lanes * most < words) layout->lanes *= 2;
  while (layout->lanes < OPS_HELD_LANES_BESIDE && layout->lanes * most < words + beside) layout->lanes *= 2;
  if (layout->lanes == 32 && words > OPS_HELD_WORDS_OF_WARP && bytes >= 4) layout->lanes = 64;
  if (layout->lanes >= OPS_HELD_WIDE_LANES) wide = 2;
  int full = ops_row_has_full_results(g);
  if (!full && bytes <= 2 && g->columns > OPS_HELD_SHORT && layout->lanes < 64) layout->lanes = 64;
  int is_short = !full && g->most_held == 0 && g->columns * bytes <= OPS_HELD_SHORT;
  int is_paired = full && bytes <= 2 && g->columns >= 8 * layout->lanes && g->columns <= OPS_HELD_SHORT;
  if (g->columns <= OPS_HELD_SHORT) wide = is_short || is_paired ? 2 : 1;
  layout->wide = ops_row_neighbours(g, wide);
  uint32_t each = (uint32_t)(g->columns + layout->lanes - 1) / layout->lanes;
  uint32_t most_each = is_paired  ? OPS_HELD_ROWS_PAIRED
                       : full     ? OPS_HELD_ROWS_FULL
                       : is_short ? OPS_HELD_ROWS_SHORT
                                  : OPS_HELD_ROWS;
  while (layout->rows < ROWS_MOST_ROWS && g->columns * layout->rows * 2 * (full ? 4 : bytes) <= OPS_HELD_BLOCK_BYTES &&
         each * layout->rows < most_each)
    layout->rows *= 2;
}

/* Up to four columns a lane become straight-line code, and up to four short rows. In a row with a tail, all of whose
 * vectors have masks, a lane has up to sixteen columns, so that the tail is short; but not if there is no
 * straight-line code anyway, because of its length or of functions of the row's results. Zen 4, us at 512K f32, with
 * four and sixteen: layer norm of rows of 300 214 and 118, of 1000 112 and 98, of 3000 196 and 105; softmax of 300
 * 418 and 242. */
static void shape_for_processor(const row_group *g, ops_layout *layout) {
  uint64_t columns = g->columns, words = g->most_held == 0 ? 1 : g->most_held, loads = OPS_TAIL_COLUMNS / words;
  layout->rows = layout->wide = 1;
  layout->lanes = OPS_PROCESSOR_LEAST_LANES;
  while (layout->lanes < OPS_PROCESSOR_LANES && layout->lanes < columns) layout->lanes *= 2;
  while (layout->lanes < OPS_PROCESSOR_MOST_LANES && columns > OPS_PROCESSOR_COLUMNS * (uint64_t)layout->lanes)
    layout->lanes *= 2;
  while (layout->rows < OPS_PROCESSOR_ROWS && columns * layout->rows <= OPS_PROCESSOR_ROWS_COLUMNS) layout->rows *= 2;
  if (has_functions(g) && (columns > OPS_TAIL_COLUMNS_OF_FUNCTIONS || !ops_row_has_full_results(g))) return;
  while (layout->lanes > OPS_TAIL_LEAST_LANES && columns % layout->lanes != 0 && 2 * columns <= loads * layout->lanes)
    layout->lanes /= 2;
}

/* Each warp has a chunk by itself, 128 columns a lane, and only the chunks' results are exchanged: so few that a block
 * may be spread over several multiprocessors, whose registers hold it together (backend/gpu/warp_transpose.c). At most
 * a quarter of the warps has no chunk; these compute the last chunk for nothing. H200, 2^28 f32, softmax and
 * layer_norm, rows of 65536: 744 and 652 us (32 columns a lane and neighbour: 1199 and 1252); of 131072: 770 and 660
 * (rows_shared.c: 976 and 847); softmax of 98304: 940 (1078), of 40960: 1041 (765). */
static int shape_by_chunks(const row_group *g, ops_layout *layout) {
  enum { WARP = 32 };
  uint64_t count = g->columns / OPS_CHUNK, chunks = OPS_HELD_LEAST_CHUNKS;
  while (chunks < count && chunks < WARP) chunks *= 2;
  if (!g->group->plan->target.spreads_blocks || g->columns % OPS_CHUNK != 0 || count > WARP || 4 * count < 3 * chunks)
    return 0;
  if (g->most_held > 1 || g->terms.space.rank != g->row_rank + 1 || ops_columns_lie_apart(g) || has_places(g)) return 0;
  if (ops_row_has_weights(g)) return 0;
  *layout = (ops_layout){
      .lanes = WARP, .wide = 1, .step = WARP, .loads = OPS_CHUNK / WARP, .rows = 1, .chunks = (uint32_t)chunks};
  return 1;
}

int ops_choose_held(const row_group *g, ops_layout *layout) {
  memset(layout, 0, sizeof *layout);
  if (g->rows > INT32_MAX) return 0;
  if (shape_by_chunks(g, layout)) return 1;
  if (g->columns > OPS_HELD_COLUMNS) return 0;
  if (g->group->plan->for_gpu && g->columns > OPS_HELD_COLUMNS_BESIDE && ops_row_has_weights(g)) return 0;
  uint32_t words = g->most_held == 0 ? 1 : g->most_held;
  if (g->group->plan->for_gpu) shape_for_gpu(g, layout);
  else shape_for_processor(g, layout);
  if (g->columns * words <= (ops_columns_lie_apart(g) ? OPS_HELD_ALONE_APART : OPS_HELD_ALONE))
    *layout = (ops_layout){.lanes = 1, .wide = 1, .rows = 1};
  layout->step = layout->lanes * layout->wide;
  layout->loads = (uint32_t)((g->columns + layout->step - 1) / layout->step);
  return layout->loads * layout->wide * words <= OPS_HELD_LANE_WORDS &&
         ops_chunks(g->columns) * layout->wide <= OPS_MOST_PARTS;
}

/* ---- chunks ------------------------------------------------------------------------------------------------------ */

static ops_layout chunk_layout(const row_group *g) {
  uint32_t wide = g->group->plan->for_gpu ? ops_row_neighbours(g, OPS_LOOP_WIDE) : 1;
  if (ops_row_element_bytes(g) == 8 && wide > 2) wide = 2;
  uint32_t step = OPS_LOOP_LANES * wide;
  return (ops_layout){.lanes = OPS_LOOP_LANES, .wide = wide, .step = step, .loads = OPS_CHUNK / step, .rows = 1};
}

/* A lane has room for one chunk's result. */
int ops_choose_loop(const row_group *g, ops_layout *layout) {
  *layout = chunk_layout(g);
  return g->columns >= OPS_CHUNK + (g->group->plan->for_gpu ? 1 : 0) && ops_chunks(g->columns) <= layout->lanes &&
         g->rows <= INT32_MAX;
}

/* A CPU reads a row that its caches hold again in less time than spilled registers take, if little has to be computed
 * again and the code of a chunk is short. */
int ops_choose_reread(const row_group *g, ops_layout *layout) {
  if (g->group->plan->for_gpu || !ops_choose_loop(g, layout) || has_places(g)) return 0;
  if (g->columns == OPS_CHUNK && g->held_count == 0) return 0; /* a chunk that is read once */
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    int is_folded = g->stage[id] + 1u < g->stage_count && varies_by_column(g, id);
    if (term->kind == TERM_POINTWISE && is_folded && ops_work_of((atlas_op)term->op) > OPS_LOOP_LITTLE_WORK) return 0;
  }
  return 1;
}

int ops_choose_behind(const row_group *g, ops_layout *layout) {
  *layout = chunk_layout(g);
  layout->chunk_blocks = ops_chunks(g->columns);
  return g->rows > 0 && g->columns > OPS_CHUNK && layout->chunk_blocks <= INT32_MAX / g->rows;
}

/* On a CPU an incomplete last chunk may have a launch of its own: code without a branch has the fastest version. */
int ops_choose_parts(const row_group *g, ops_layout *layout) {
  uint64_t whole = g->columns / OPS_CHUNK;
  if (!ops_choose_behind(g, layout) || !may_have_parts(g)) return 0;
  if (!g->group->plan->for_gpu && whole >= OPS_LAST_PART_APART) layout->chunk_blocks = whole;
  return 1;
}

int ops_row_searches_chunk(const row_group *g) {
  return !g->group->plan->for_gpu && g->reduction_count == 1 && row_is_place(&g->reductions[0]) &&
         g->reductions[0].place == 0;
}

/* ---- columns ----------------------------------------------------------------------------------------------------- */

int ops_columns_lie_apart(const row_group *g) {
  if (g->row_rank == 0 || g->terms.space.rank == g->row_rank) return 0;
  uint32_t own = g->row_rank - 1, along = 0, across = 0;
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    int is_of_rows = term->kind == TERM_LOAD && (term->varies & ((1u << g->row_rank) - 1)) != 0;
    if (!is_of_rows || !varies_by_column(g, id)) continue; /* what is the same for all rows lies in a cache */
    along += term->form.factor[own] == 1;
    across += term->form.factor[g->terms.space.rank - 1] == 1;
  }
  return along > across;
}

int ops_choose_columns(const row_group *g, ops_layout *layout) {
  uint64_t chunks = (g->columns + g->chunk - 1) / g->chunk, count = g->columns < g->chunk ? g->columns : g->chunk;
  if (g->rows == 0 || g->rows > INT32_MAX || !ops_columns_lie_apart(g)) return 0;
  if (chunks != 1 && (!may_have_parts(g) || chunks > 65535)) return 0;
  int for_gpu = g->group->plan->for_gpu;
  uint32_t rounded = 1, loads = for_gpu ? OPS_COLUMNS_LOADS_GPU : OPS_COLUMNS_LOADS, own = g->row_rank - 1;
  uint64_t inner = g->terms.space.size[own];
  *layout = (ops_layout){.is_across = 1, .rows = 1, .chunk_blocks = chunks};
  while (rounded < count) rounded *= 2;
  layout->wide = for_gpu ? ops_row_neighbours_along(g, own, OPS_COLUMNS_WIDE) : 1;
  if (for_gpu && (g->stage_count > 2 || ops_row_has_full_results(g))) loads = OPS_COLUMNS_LOADS_LONG;
  while (loads > rounded) loads /= 2;
  layout->groups = for_gpu ? OPS_COLUMNS_GROUPS : 1;
  while (layout->groups > 1 && layout->groups * loads > rounded) layout->groups /= 2;
  layout->lanes = OPS_COLUMNS_BLOCK / layout->groups;
  while (layout->lanes > 1 && (uint64_t)layout->lanes / 2 * layout->wide >= inner) {
    layout->lanes /= 2;
    if (for_gpu && layout->groups < OPS_COLUMNS_MOST_GROUPS && layout->groups * 2 * loads <= rounded)
      layout->groups *= 2;
  }
  while (layout->lanes * layout->groups < OPS_COLUMNS_LEAST_BLOCK) layout->lanes *= 2;
  layout->step = rounded / loads;
  layout->loads = (uint32_t)((count + layout->step - 1) / layout->step);
  while (layout->groups << layout->levels < layout->step) layout->levels++;
  return 1;
}

/* A lane folds elements that are an eighth of the column apart, or so. */
int ops_choose_columns_top(const row_group *g, ops_layout *layout) {
  uint64_t step = 1, chunks = (g->columns + g->chunk - 1) / g->chunk, count = chunks > 1 ? g->chunk : g->columns;
  if (g->group->plan->for_gpu || count <= OPS_TOP_COLUMNS) return 0;
  while (step * OPS_TOP_ELEMENTS < count) step *= 2;
  if (!ops_columns_lie_apart(g) || !may_have_parts(g) || has_places(g)) return 0;
  if (g->terms.space.rank != g->row_rank + 1) return 0;
  *layout = (ops_layout){.lanes = 1, .wide = 1, .step = (uint32_t)step, .rows = 1, .chunk_blocks = chunks};
  layout->loads = (uint32_t)((count + step - 1) / step);
  uint64_t lanes = g->rows * step * chunks;
  return lanes <= INT32_MAX && lanes * OPS_TOP_ELEMENTS * ops_row_element_bytes(g) >= OPS_TOP_BYTES;
}
