/* columns.c - reductions whose results lie side by side in memory: a lane has some of the results, and goes over the
 * elements of each.
 *
 * A block has `lanes` times `wide` neighbouring results, and several groups of such lanes, which share the elements. Of
 * the index along the reduced axes (up to 4096, a chunk), the top bits select a load of a batch; the bits below number
 * the batches, which come in bit-reversed order, so that a binary counter folds them as they come; the lowest bits
 * select the group, and groups fold last, in shared memory. A longer index is cut into parts of a chunk each, which a
 * second launch folds. */
#include "ops/write/columns.h"

/* ---- one stage ------------------------------------------------------------------------------------------------- */

/* Sets the batch's first element: the bits of its number reversed, times the groups, plus the group. */
static void place_batch(column_block *c) {
  ops_code *code = &c->k.code;
  atlas_builder *b = code->builder;
  uint16_t at = ops_register(code);
  if (c->levels > 0) {
    atlas_emit(b, ATLAS_OP_brev, ATLAS_u32, 2, atlas_reg(at), atlas_reg(c->batch_number));
    atlas_emit(b, ATLAS_OP_shr, ATLAS_u32, 3, atlas_reg(at), atlas_reg(at), atlas_bits(32 - c->levels));
  } else atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(at), atlas_reg(c->batch_number));
  atlas_emit2(b, ATLAS_OP_cvt, code->index_type, ATLAS_u32, atlas_reg(c->k.base), atlas_reg(at));
  if (c->groups > 1) row_mad(&c->k, c->k.base, c->k.base, c->groups, c->group);
  if (c->chunk != OPS_NO_REGISTER) row_mad(&c->k, c->k.base, c->chunk, OPS_CHUNK, c->k.base);
}

/* Levels of the counter for the current reduction. */
static uint32_t levels_of(const column_block *c) {
  if (row_is_place(c->k.reduction) || c->levels == 0) return 0;
  return c->k.fold.is_ordered ? c->levels : 1;
}

static void begin_stage(column_block *c) {
  row_block *k = &c->k;
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->layout.wide; w++) {
      ops_block_begin_kept(k, i, w, OPS_NO_REGISTER);
      for (uint32_t level = 0; level < levels_of(c); level++) k->counter[i][level][w] = ops_block_identity(k);
    }
}

/* Folds a batch; reductions in any order continue with the result as the kept value. */
static void fold_batch(column_block *c) {
  row_block *k = &c->k;
  place_batch(c);
  ops_block_fold_own(k, 0);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->own[i][0].count; w++)
      ops_block_move(k, k->kept[i][w], k->own[i][0].part[w]);
}

static void keep_sums(column_block *c, uint32_t level) {
  row_block *k = &c->k;
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && !row_is_place(k->reduction) && w < k->layout.wide; w++)
      ops_block_move(k, k->counter[i][k->fold.is_ordered ? level : 0][w], k->kept[i][w]);
}

/* Adds a level of the counter: of ordered reductions, or of the others. */
static void add_sums(column_block *c, uint32_t level, int ordered) {
  row_block *k = &c->k;
  for (uint32_t i = 0; i < k->g->reduction_count; i++) {
    if (!ops_block_take(k, i) || row_is_place(k->reduction) || k->fold.is_ordered != ordered) continue;
    for (uint32_t w = 0; w < k->layout.wide; w++)
      atlas_emit(k->code.builder, k->fold.op, (atlas_type)k->fold.type, 3, atlas_reg(k->kept[i][w]),
                 atlas_reg(k->counter[i][level][w]), atlas_reg(k->kept[i][w]));
  }
}

/* Puts the batch into the binary counter. The loop is left with all batches folded when all levels carry. If order does
 * not matter, level 0 has everything so far: it is added first, and kept again wherever the counting ends. */
static void count_batch(column_block *c, uint32_t next) {
  atlas_builder *b = c->k.code.builder;
  uint32_t counted = atlas_builder_label(b, NULL), folded = atlas_builder_label(b, NULL);
  uint16_t bit = ops_register(&c->k.code);
  add_sums(c, 0, 0);
  for (uint32_t level = 0; level < c->levels; level++) {
    uint32_t carry = atlas_builder_label(b, NULL);
    atlas_emit(b, ATLAS_OP_and, ATLAS_u32, 3, atlas_reg(bit), atlas_reg(c->batch_number), atlas_bits(1u << level));
    atlas_emit(b, ATLAS_OP_set_ne, ATLAS_u32, 3, atlas_pred(ROW_IS_FOUND), atlas_reg(bit), atlas_bits(0));
    atlas_emit_branch(b, ROW_IS_FOUND, 0, carry);
    keep_sums(c, level);
    atlas_emit_branch(b, -1, 0, counted);
    atlas_builder_place(b, carry);
    add_sums(c, level, 1);
  }
  atlas_emit_branch(b, -1, 0, folded);
  atlas_builder_place(b, counted);
  atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(c->batch_number), atlas_reg(c->batch_number), atlas_bits(1));
  atlas_emit_branch(b, -1, 0, next);
  atlas_builder_place(b, folded);
}

static void fold_all_batches(row_block *k) {
  column_block *c = (column_block *)k;
  atlas_builder *b = c->k.code.builder;
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(c->batch_number), atlas_bits(0));
  uint32_t next = atlas_builder_label(b, NULL);
  atlas_builder_place(b, next);
  fold_batch(c);
  if (c->levels > 0) count_batch(c, next);
}

/* ---- groups ---------------------------------------------------------------------------------------------------- */

/* If there is only one stage and only its results are wanted, each lane continues with one result: so all are folded at
 * once. */
static int spreads(const column_block *c) {
  return !ops_row_has_full_results(c->k.g) && c->k.g->stage_count == 2 && c->k.layout.wide <= c->groups;
}

static void spread(column_block *c, uint16_t own) {
  row_block *k = &c->k;
  uint32_t across = k->layout.lanes * k->layout.wide;
  uint16_t lane = ops_index_of(&k->code, ATLAS_REG_BLOCK_LANE);
  row_index(k, ATLAS_OP_div, c->group, lane, atlas_bits(across));
  row_index(k, ATLAS_OP_rem, own, lane, atlas_bits(across));
  row_index(k, ATLAS_OP_add, c->column, c->block_column, atlas_reg(own));
  row_compare(k, ATLAS_OP_set_lt, HAS_RESULTS, c->column, row_size(k, c->inner));
  row_index(k, ATLAS_OP_min, c->column, c->column, row_size(k, c->inner - 1));
  k->layout.wide = 1;
}

/* The lane's own group has its place already, unless lanes have moved on to another column. */
static void places_of_groups(column_block *c, uint32_t i, uint32_t w, uint16_t at, uint32_t across) {
  row_block *k = &c->k;
  atlas_builder *b = k->code.builder;
  uint16_t value = ops_register(&k->code), place = ops_register(&k->code);
  for (uint32_t group = 0; group < c->groups; group++) {
    int64_t from = (int64_t)group * across + w;
    uint16_t to = group == 0 ? k->kept[i][w] : value, to_place = group == 0 ? k->place[i][w] : place;
    atlas_emit(b, ATLAS_OP_lds, (atlas_type)k->fold.type, 2, atlas_reg(to), atlas_mem_reg(c->shared[i], at, from));
    atlas_emit(b, ATLAS_OP_lds, ops_block_place_type(k), 2, atlas_reg(to_place),
               atlas_mem_reg(c->shared_places[i], at, from));
    if (group > 0) ops_block_keep_place(k, i, w, value, place, -1, 0);
  }
}

static void share(row_block *k, atlas_type type, uint16_t symbol, uint16_t at, uint32_t w, uint16_t value) {
  atlas_emit(k->code.builder, ATLAS_OP_sts, type, 2, atlas_mem_reg(symbol, at, w), atlas_reg(value));
}

/* Folds the groups in shared memory; afterwards every lane has the results of its neighbours, or one of its own. */
static void fold_groups(column_block *c) {
  row_block *k = &c->k;
  atlas_builder *b = k->code.builder;
  uint32_t across = k->layout.lanes * k->layout.wide;
  uint16_t own = ops_register(&k->code), at = ops_register(&k->code);
  row_index(k, ATLAS_OP_mul, own, c->lane, atlas_bits(k->layout.wide));
  row_mad(k, at, c->group, across, own);
  if (k->stage > 0) atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->layout.wide; w++) {
      share(k, (atlas_type)k->fold.type, c->shared[i], at, w, k->kept[i][w]);
      if (row_is_place(k->reduction)) share(k, ops_block_place_type(k), c->shared_places[i], at, w, k->place[i][w]);
    }
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  if (spreads(c)) spread(c, own);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->layout.wide; w++) {
      if (row_is_place(k->reduction)) {
        places_of_groups(c, i, w, own, across);
        continue;
      }
      uint16_t all = ops_block_fold_shared(k, c->shared[i], own, w, across, c->groups);
      ops_block_move(k, k->kept[i][w], all);
    }
}

static void reduce_stage(column_block *c) {
  row_block *k = &c->k;
  begin_stage(c);
  if (c->chunk != OPS_NO_REGISTER) ops_block_over_chunk(k, c->chunk, fold_all_batches);
  else fold_all_batches(k);
  if (c->groups > 1) fold_groups(c);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->layout.wide; w++) {
      int is_place = row_is_place(k->reduction);
      if (is_place) ops_block_end_place(k, k->place[i][w], 0);
      k->bound[i][w] = is_place && c->chunks == 1 ? k->place[i][w] : k->kept[i][w];
    }
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* Stores element after element: batches side by side, in a loop that counts down. */
static void store_full(column_block *c) {
  row_block *k = &c->k;
  uint64_t each = (uint64_t)c->batch * c->groups;
  int tests = k->g->columns % each != 0, also = c->all_have_results && !tests ? -1 : HAS_RESULTS;
  uint16_t rounds;
  k->layout.loads = c->batch;
  k->layout.step = c->groups;
  k->whole_loads = tests ? 0 : c->batch;
  atlas_emit(k->code.builder, ATLAS_OP_mov, k->code.index_type, 2, atlas_reg(k->base), atlas_reg(c->group));
  uint32_t next = ops_block_begin_loop(k, (k->g->columns + each - 1) / each, &rounds);
  for (uint32_t load = 0; load < c->batch; load++) ops_block_store_load(k, load, ROWS_ALL_STAGES, also);
  row_index(k, ATLAS_OP_add, k->base, k->base, atlas_bits(each));
  ops_block_end_loop(k, rounds, next);
}

/* Begins what the lanes of the first group that have results do, up to the label. */
static uint32_t begin_single(column_block *c) {
  uint32_t done = atlas_builder_label(c->k.code.builder, NULL);
  if (!c->all_have_results) atlas_emit_branch(c->k.code.builder, HAS_RESULTS, 1, done);
  if (c->groups > 1) row_branch(&c->k, ATLAS_OP_set_ne, c->group, atlas_bits(0), done);
  return done;
}

static void store_results(column_block *c) {
  row_block *k = &c->k;
  uint32_t full = 0;
  for (uint32_t i = 0; i < k->g->result_count; i++) full += k->g->results[i].is_full;
  if (full > 0) store_full(c);
  if (full == k->g->result_count) return;
  uint32_t done = begin_single(c);
  for (uint32_t w = 0; w < k->layout.wide; w++) {
    ops_block_set_neighbour(k, w);
    ops_block_put_single(k);
    ops_block_forget(k);
  }
  atlas_builder_place(k->code.builder, done);
}

static void store_parts(column_block *c) {
  row_block *k = &c->k;
  uint32_t done = begin_single(c);
  k->code.displacement = 0;
  atlas_operand row = ops_form_value(&k->code, &k->g->row_number);
  uint16_t at = ops_register(&k->code);
  atlas_emit(k->code.builder, ATLAS_OP_mad, k->code.index_type, 4, atlas_reg(at), atlas_reg(c->chunk),
             row_size(k, k->g->rows), row);
  ops_block_store_parts(k, at, k->layout.wide);
  atlas_builder_place(k->code.builder, done);
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

static void begin_block(column_block *c) {
  row_block *k = &c->k;
  ops_code *code = &k->code;
  const ops_layout *layout = &k->layout;
  uint16_t block = ops_index_of(code, ATLAS_REG_BLOCK_INDEX), outer = ops_register(code);
  c->lane = ops_index_of(code, ATLAS_REG_BLOCK_LANE);
  c->group = ops_register(code);
  c->column = ops_register(code);
  row_index(k, ATLAS_OP_div, c->group, c->lane, atlas_bits(layout->lanes));
  row_index(k, ATLAS_OP_rem, c->lane, c->lane, atlas_bits(layout->lanes));
  if (c->k.across > 0) {
    row_index(k, ATLAS_OP_div, outer, block, row_size(k, c->tiles));
    row_index(k, ATLAS_OP_rem, block, block, row_size(k, c->tiles));
    ops_split_range(code, outer, 0, c->k.across);
  }
  c->block_column = block;
  row_index(k, ATLAS_OP_mul, block, block, atlas_bits((uint64_t)layout->lanes * layout->wide));
  row_mad(k, c->column, c->lane, layout->wide, block);
  row_compare(k, ATLAS_OP_set_lt, HAS_RESULTS, c->column, row_size(k, c->inner));
  row_index(k, ATLAS_OP_min, c->column, c->column, row_size(k, c->inner - layout->wide));
  code->variable[c->k.across] = c->column;
  c->batch_number = ops_register(code);
  k->base = ops_register(code);
  k->column = ops_register(code);
  c->chunk = c->chunks > 1 ? ops_launch_index(code, ATLAS_COORD_BLOCK_Y) : OPS_NO_REGISTER;
}

static void add_shared(column_block *c) {
  row_block *k = &c->k;
  uint32_t count = k->layout.lanes * k->layout.wide * c->groups;
  for (uint32_t i = 0; i < k->g->reduction_count && c->groups > 1; i++) {
    ops_block_take(k, i);
    c->shared[i] = ops_block_shared(k, 'p', i, (atlas_type)k->fold.type, count);
    if (row_is_place(k->reduction)) c->shared_places[i] = ops_block_shared(k, 'q', i, ops_block_place_type(k), count);
  }
}

static void write_columns(row_block *k) {
  column_block *c = (column_block *)k;
  c->k.across = k->g->row_rank - 1;
  ops_columns_choose_shape(c);
  int has_rest = c->chunks == 1 && (uint64_t)k->layout.loads * k->layout.step != k->g->columns;
  k->whole_loads = k->layout.loads - (uint32_t)has_rest;
  ops_block_launch(k, c->tiles * (k->g->rows / c->inner), c->chunks, k->layout.lanes * c->groups, 1);
  k->code.step->kind = "columns";
  k->forgotten |= 1u << c->k.across;
  k->parts->is_across = 1;
  if (c->chunks > 1) ops_block_add_parts(k, c->chunks);
  begin_block(c);
  ops_block_hoist_all(k, k->forgotten);
  add_shared(c);
  for (k->stage = 0; k->stage + 1 < k->g->stage_count; k->stage++) reduce_stage(c);
  if (c->chunks > 1) store_parts(c);
  else store_results(c);
}

hg_status ops_columns_write(row_group *g, row_parts *parts) {
  return ops_block_write(g, &(row_writer){"columns", sizeof(column_block), write_columns}, parts);
}
