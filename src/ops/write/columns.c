/* columns.c - reductions whose results lie side by side in memory: a lane has some of the results, and goes over the
 * elements of each.
 *
 * A block has `lanes` times `wide` neighbouring results, and several groups of such lanes, which share the elements. Of
 * the index along the reduced axes (up to 4096, a chunk), the top bits select a load of a batch; the bits below number
 * the batches, which come in bit-reversed order, so that a binary counter folds them as they come; the lowest bits
 * select the group, and groups fold last, in shared memory. A longer index is cut into parts of a chunk each, which a
 * second launch folds. */
#include "ops/write/row_block.h"

enum { HAS_RESULTS = ROW_OWN_PREDICATE };

/* The results along the lanes' coordinate, and those of a block. */
static uint64_t results_of(const row_block *k) { return k->g->terms.space.size[k->across]; }
static uint32_t across_of(const row_block *k) { return k->layout.lanes * k->layout.wide; }

/* ---- one stage ------------------------------------------------------------------------------------------------- */

/* Sets the batch's first element: the bits of its number reversed, times the groups, plus the group. */
static void place_batch(row_block *k) {
  ops_code *code = &k->code;
  atlas_builder *b = code->builder;
  uint16_t at = ops_register(code);
  if (k->layout.levels > 0) {
    atlas_emit(b, ATLAS_OP_brev, ATLAS_u32, 2, atlas_reg(at), atlas_reg(k->round));
    atlas_emit(b, ATLAS_OP_shr, ATLAS_u32, 3, atlas_reg(at), atlas_reg(at), atlas_bits(32 - k->layout.levels));
  } else atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(at), atlas_reg(k->round));
  atlas_emit2(b, ATLAS_OP_cvt, code->index_type, ATLAS_u32, atlas_reg(k->base), atlas_reg(at));
  if (k->layout.groups > 1) row_mad(k, k->base, k->base, k->layout.groups, k->group);
  if (k->chunk != OPS_NO_REGISTER) row_mad(k, k->base, k->chunk, k->g->chunk, k->base);
}

/* Folds a batch; reductions in any order continue with the result as the kept value. */
static void fold_batch(row_block *k) {
  place_batch(k);
  ops_block_fold_own(k, 0);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->own[i][0].count; w++)
      ops_block_move(k, k->kept[i][w], k->own[i][0].part[w]);
}

static void keep_sums(row_block *k, uint32_t level) {
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && !row_is_place(k->reduction) && w < k->layout.wide; w++)
      ops_block_move(k, k->counter[i][k->fold.is_ordered ? level : 0][w], k->kept[i][w]);
}

/* Adds a level of the counter: of ordered reductions, or of the others. */
static void add_sums(row_block *k, uint32_t level, int ordered) {
  for (uint32_t i = 0; i < k->g->reduction_count; i++) {
    if (!ops_block_take(k, i) || row_is_place(k->reduction) || k->fold.is_ordered != ordered) continue;
    for (uint32_t w = 0; w < k->layout.wide; w++)
      k->fold.combine(&k->fold, k->kept[i][w], atlas_reg(k->counter[i][level][w]), atlas_reg(k->kept[i][w]));
  }
}

/* Puts the batch into the binary counter. The loop is left with all batches folded when all levels carry. If order does
 * not matter, level 0 has everything so far: it is added first, and kept again wherever the counting ends. */
static void count_batch(row_block *k, uint32_t next) {
  atlas_builder *b = k->code.builder;
  uint32_t counted = atlas_builder_label(b, NULL), folded = atlas_builder_label(b, NULL);
  uint16_t bit = ops_register(&k->code);
  add_sums(k, 0, 0);
  for (uint32_t level = 0; level < k->layout.levels; level++) {
    uint32_t carry = atlas_builder_label(b, NULL);
    atlas_emit(b, ATLAS_OP_and, ATLAS_u32, 3, atlas_reg(bit), atlas_reg(k->round), atlas_bits(1u << level));
    ops_branch_if(b, ATLAS_OP_set_ne, ATLAS_u32, atlas_reg(bit), atlas_bits(0), carry);
    keep_sums(k, level);
    atlas_emit_branch(b, -1, 0, counted);
    atlas_builder_place(b, carry);
    add_sums(k, level, 1);
  }
  atlas_emit_branch(b, -1, 0, folded);
  atlas_builder_place(b, counted);
  atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(k->round), atlas_reg(k->round), atlas_bits(1));
  atlas_emit_branch(b, -1, 0, next);
  atlas_builder_place(b, folded);
}

static void fold_all_batches(row_block *k) {
  atlas_builder *b = k->code.builder;
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(k->round), atlas_bits(0));
  uint32_t next = atlas_builder_label(b, NULL);
  atlas_builder_place(b, next);
  fold_batch(k);
  if (k->layout.levels > 0) count_batch(k, next);
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

/* If there is only one stage and only its results are wanted, each lane continues with one result: so all are folded at
 * once. */
static int spreads(const row_block *k) {
  return !ops_row_has_full_results(k->g) && k->g->stage_count == 2 && k->layout.wide <= k->layout.groups;
}

static void spread(row_block *k, uint16_t own) {
  uint32_t across = across_of(k);
  uint16_t lane = ops_index_of(&k->code, ATLAS_REG_BLOCK_LANE);
  row_index(k, ATLAS_OP_div, k->group, lane, atlas_bits(across));
  row_index(k, ATLAS_OP_rem, own, lane, atlas_bits(across));
  row_index(k, ATLAS_OP_add, k->result, k->block_result, atlas_reg(own));
  row_compare(k, ATLAS_OP_set_lt, HAS_RESULTS, k->result, row_size(k, results_of(k)));
  row_index(k, ATLAS_OP_min, k->result, k->result, row_size(k, results_of(k) - 1));
  k->layout.wide = 1;
}

/* The lane's own group has its place already, unless lanes have moved on to another column. */
static void places_of_groups(row_block *k, uint32_t i, uint32_t w, uint16_t at, uint32_t across) {
  atlas_builder *b = k->code.builder;
  uint16_t value = ops_register(&k->code), place = ops_register(&k->code);
  for (uint32_t group = 0; group < k->layout.groups; group++) {
    int64_t from = (int64_t)group * across + w;
    uint16_t to = group == 0 ? k->kept[i][w] : value, to_place = group == 0 ? k->place[i][w] : place;
    atlas_emit(b, ATLAS_OP_lds, (atlas_type)k->fold.type, 2, atlas_reg(to), atlas_mem_reg(k->shared[i], at, from));
    atlas_emit(b, ATLAS_OP_lds, ops_block_place_type(k), 2, atlas_reg(to_place),
               atlas_mem_reg(k->shared_places[i], at, from));
    if (group > 0) ops_block_keep_place(k, i, w, value, place, -1, 0);
  }
}

static void share(row_block *k, atlas_type type, uint16_t symbol, uint16_t at, uint32_t w, uint16_t value) {
  atlas_emit(k->code.builder, ATLAS_OP_sts, type, 2, atlas_mem_reg(symbol, at, w), atlas_reg(value));
}

/* Folds the groups in shared memory; afterwards every lane has the results of its neighbours, or one of its own. */
static void fold_groups(row_block *k) {
  atlas_builder *b = k->code.builder;
  uint32_t across = across_of(k);
  uint16_t own = ops_register(&k->code), at = ops_register(&k->code);
  row_index(k, ATLAS_OP_mul, own, k->lane, atlas_bits(k->layout.wide));
  row_mad(k, at, k->group, across, own);
  if (k->stage > 0) atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->layout.wide; w++) {
      share(k, (atlas_type)k->fold.type, k->shared[i], at, w, k->kept[i][w]);
      if (row_is_place(k->reduction)) share(k, ops_block_place_type(k), k->shared_places[i], at, w, k->place[i][w]);
    }
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  if (spreads(k)) spread(k, own);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->layout.wide; w++) {
      if (row_is_place(k->reduction)) {
        places_of_groups(k, i, w, own, across);
        continue;
      }
      uint16_t all = ops_block_fold_shared(k, k->shared[i], own, w, across, k->layout.groups);
      ops_block_move(k, k->kept[i][w], all);
    }
}

static void reduce_stage(row_block *k) {
  ops_block_begin_stage(k, OPS_NO_REGISTER);
  if (k->chunk != OPS_NO_REGISTER) ops_block_over_chunk(k, fold_all_batches);
  else fold_all_batches(k);
  if (k->layout.groups > 1) fold_groups(k);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->layout.wide; w++) {
      int is_place = row_is_place(k->reduction);
      if (is_place) ops_block_end_place(k, k->place[i][w], 0);
      k->bound[i][w] = is_place && k->layout.chunk_blocks == 1 ? k->place[i][w] : k->kept[i][w];
    }
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* Stores element after element: batches side by side, in a loop that counts down. */
static void store_full(row_block *k) {
  uint32_t batch = 1;
  uint16_t rounds;
  while (batch < k->layout.loads) batch *= 2;
  uint64_t each = (uint64_t)batch * k->layout.groups;
  int tests = k->g->columns % each != 0, also = k->all_have_results && !tests ? -1 : HAS_RESULTS;
  k->layout.loads = batch;
  k->layout.step = k->layout.groups;
  k->whole_loads = tests ? 0 : batch;
  atlas_emit(k->code.builder, ATLAS_OP_mov, k->code.index_type, 2, atlas_reg(k->base), atlas_reg(k->group));
  uint32_t next = ops_block_begin_loop(k, (k->g->columns + each - 1) / each, &rounds);
  for (uint32_t load = 0; load < batch; load++) ops_block_store_load(k, load, ROWS_ALL_STAGES, also);
  row_index(k, ATLAS_OP_add, k->base, k->base, atlas_bits(each));
  ops_block_end_loop(k, rounds, next);
}

/* Begins what the lanes of the first group that have results do, up to the label. */
static uint32_t begin_single(row_block *k) {
  uint32_t done = atlas_builder_label(k->code.builder, NULL);
  if (!k->all_have_results) atlas_emit_branch(k->code.builder, HAS_RESULTS, 1, done);
  if (k->layout.groups > 1) row_branch(k, ATLAS_OP_set_ne, k->group, atlas_bits(0), done);
  return done;
}

static void store_results(row_block *k) {
  uint32_t full = 0;
  for (uint32_t i = 0; i < k->g->result_count; i++) full += k->g->results[i].is_full;
  if (full > 0) store_full(k);
  if (full == k->g->result_count) return;
  uint32_t done = begin_single(k);
  for (uint32_t w = 0; w < k->layout.wide; w++) {
    ops_block_set_neighbour(k, w);
    ops_block_put_single(k);
    ops_block_forget(k);
  }
  atlas_builder_place(k->code.builder, done);
}

static void store_parts(row_block *k) {
  uint32_t done = begin_single(k);
  k->code.displacement = 0;
  atlas_operand row = ops_form_value(&k->code, &k->g->row_number);
  uint16_t at = ops_register(&k->code);
  atlas_emit(k->code.builder, ATLAS_OP_mad, k->code.index_type, 4, atlas_reg(at), atlas_reg(k->chunk),
             row_size(k, k->g->rows), row);
  ops_block_store_parts(k, at, k->layout.wide);
  atlas_builder_place(k->code.builder, done);
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

static void begin_block(row_block *k) {
  ops_code *code = &k->code;
  const ops_layout *layout = &k->layout;
  uint64_t inner = results_of(k), tiles = (inner + across_of(k) - 1) / across_of(k);
  ops_block_launch(k, tiles * (k->g->rows / inner), layout->chunk_blocks, layout->lanes * layout->groups, 1);
  if (layout->chunk_blocks > 1) ops_block_add_parts(k, layout->chunk_blocks);
  uint16_t block = ops_index_of(code, ATLAS_REG_BLOCK_INDEX), outer = ops_register(code);
  k->lane = ops_index_of(code, ATLAS_REG_BLOCK_LANE);
  k->group = ops_register(code);
  k->result = ops_register(code);
  row_index(k, ATLAS_OP_div, k->group, k->lane, atlas_bits(layout->lanes));
  row_index(k, ATLAS_OP_rem, k->lane, k->lane, atlas_bits(layout->lanes));
  if (k->across > 0) {
    row_index(k, ATLAS_OP_div, outer, block, row_size(k, tiles));
    row_index(k, ATLAS_OP_rem, block, block, row_size(k, tiles));
    ops_split_range(code, outer, 0, k->across);
  }
  k->all_have_results = inner % across_of(k) == 0;
  k->block_result = block;
  row_index(k, ATLAS_OP_mul, block, block, atlas_bits(across_of(k)));
  row_mad(k, k->result, k->lane, layout->wide, block);
  row_compare(k, ATLAS_OP_set_lt, HAS_RESULTS, k->result, row_size(k, inner));
  row_index(k, ATLAS_OP_min, k->result, k->result, row_size(k, inner - layout->wide));
  code->variable[k->across] = k->result;
  k->round = ops_register(code);
  k->base = ops_register(code);
  k->column = ops_register(code);
  if (layout->chunk_blocks > 1) k->chunk = ops_launch_index(code, ATLAS_COORD_BLOCK_Y);
}

static void add_shared(row_block *k) {
  uint32_t count = across_of(k) * k->layout.groups;
  for (uint32_t i = 0; i < k->g->reduction_count && k->layout.groups > 1; i++) {
    ops_block_take(k, i);
    k->shared[i] = ops_block_shared(k, 'p', i, (atlas_type)k->fold.type, count);
    if (row_is_place(k->reduction)) k->shared_places[i] = ops_block_shared(k, 'q', i, ops_block_place_type(k), count);
  }
}

void ops_write_columns(row_block *k) {
  const ops_layout *layout = &k->layout;
  int has_rest = layout->chunk_blocks == 1 && (uint64_t)layout->loads * layout->step != k->g->columns;
  k->whole_loads = layout->loads - (uint32_t)has_rest;
  k->across = k->g->row_rank - 1;
  k->code.step->kind = "columns";
  k->forgotten |= 1u << k->across;
  k->parts->is_across = 1;
  begin_block(k);
  ops_block_hoist_all(k, k->forgotten);
  add_shared(k);
  for (k->stage = 0; k->stage + 1 < k->g->stage_count; k->stage++) reduce_stage(k);
  if (layout->chunk_blocks > 1) store_parts(k);
  else store_results(k);
}

/* ---- top bits -------------------------------------------------------------------------------------------------- */

/* Order F begins with elements that are half a column apart, then a quarter. A block that has some columns and goes
 * over their elements in that order reads pieces of a few hundred bytes in each round, which no hardware prefetcher
 * predicts. That is fast for what the caches hold. On a CPU anything larger is read in one pass instead, as a map reads
 * several inputs: a lane folds elements of a chunk that are `step` apart, and the lanes' results are columns again,
 * whose folding continues in the same order, in chunks of `step`. Lanes lie along memory if columns do: then the
 * position in the column comes first, which is the same in a block of whole rows, then the row's coordinates. */
void ops_write_columns_top(row_block *k) {
  const row_group *g = k->g;
  ops_code *code = &k->code;
  uint32_t order[HG_MAX_RANK + 1] = {g->row_rank};
  ops_form lane = g->row_number;
  lane.factor[g->row_rank] = (int64_t)g->rows;
  uint64_t step = k->layout.step, chunks = k->layout.chunk_blocks, rest = g->columns % (chunks > 1 ? g->chunk : step);
  ops_shape space = {.rank = 2, .size = {step * chunks, g->rows}};
  uint32_t block = ops_row_blocks_lanes(&g->terms, &space);
  k->parts->is_across = 1;
  k->parts->chunk = chunks > 1 ? step : 0;
  k->whole_loads = rest == 0 ? k->layout.loads : chunks > 1 ? 0 : k->layout.loads - 1;
  ops_block_launch(k, g->rows * step * chunks, 1, 1, 1);
  ops_block_add_parts(k, step * chunks);
  uint16_t at = ops_lane_index(code), chunk = ops_register(code);
  for (uint32_t i = 0; i < g->row_rank; i++) order[1 + i] = i;
  if (block != 0) {
    ops_row_blocks begun = ops_row_blocks_begin(code, 1, step * chunks, g->rows, block);
    code->variable[g->row_rank] = begun.row;
    ops_split_range(code, begun.column, 0, g->row_rank);
  } else ops_split_over(code, at, order, 1 + g->row_rank);
  k->base = code->variable[g->row_rank];
  k->column = ops_register(code);
  code->lane_form = chunks > 1 || rest != 0 ? NULL : &lane;
  if (chunks > 1) {
    row_index(k, ATLAS_OP_div, chunk, k->base, atlas_bits(step));
    k->base = ops_register(code);
    row_mad(k, k->base, chunk, g->chunk - step, code->variable[g->row_rank]);
  }
  ops_block_fold_own(k, 1);
  for (uint32_t i = 0; i < g->reduction_count; i++) k->kept[i][0] = k->own[i][0].part[0];
  ops_block_store_parts(k, at, 1);
  code->lane_form = NULL;
}
