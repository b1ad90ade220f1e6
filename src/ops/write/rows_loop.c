/* rows_loop.c - rows in loops over chunks: a block goes over its row once for each stage. See row_group.h.
 *
 * A round folds a chunk of 4096 columns; the last chunk may need tests. The results of chunks fold last, so lane i
 * keeps that of chunk i, and the fold over the lanes after the loop is order F over them. If order does not matter, a
 * lane folds everything into one value, and nothing is exchanged within the loop. */
#include "ops/write/row_block.h"

/* ---- chunks ---------------------------------------------------------------------------------------------------- */

/* Lane `chunk` keeps the chunk's result. */
static void keep_chunk(row_block *k, uint32_t i, uint16_t result) {
  atlas_builder *b = k->code.builder;
  atlas_operand kept = atlas_reg(k->kept[i][0]);
  if (k->layout.chunk_blocks > 0) { /* each lane: the block has no other one */
    ops_block_move(k, k->kept[i][0], result);
    return;
  }
  atlas_emit(b, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(ROW_IS_FOUND), atlas_reg(ATLAS_REG_BLOCK_LANE),
             atlas_reg(k->chunk));
  atlas_emit(b, ATLAS_OP_sel, (atlas_type)k->fold.type, 4, kept, atlas_pred(ROW_IS_FOUND), atlas_reg(result), kept);
}

static void reduce_chunk(row_block *k) {
  ops_block_fold_own(k, 0);
  ops_block_fold_lanes(k, 0);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    if (ops_block_take(k, i) && k->fold.is_ordered) keep_chunk(k, i, ops_block_folded(k, i));
}

static void store_chunk(row_block *k) {
  for (uint32_t load = 0; load < k->layout.loads; load++) ops_block_store_load(k, load, ROWS_ALL_STAGES, -1);
}

/* The last columns, fewer than a round has. On a GPU the program serves all rows; on a CPU it has exactly these
 * columns. */
static void over_rest(row_block *k, row_writer body, uint64_t columns) {
  ops_layout *layout = &k->layout;
  uint32_t loads = layout->loads;
  int for_gpu = k->g->group->plan->for_gpu;
  k->whole_loads = for_gpu ? 0 : (uint32_t)(columns / layout->step);
  if (!for_gpu) layout->loads = (uint32_t)((columns + layout->step - 1) / layout->step);
  k->column = ops_register(&k->code);
  body(k);
  layout->loads = loads;
}

/* Goes over the whole row, as many columns at a time as the layout has. On a CPU a round's own start is one number for
 * all lanes: the elements of a block are consecutive, and one comparison serves all of its loads. */
static void over_chunks(row_block *k, row_writer body) {
  ops_code *code = &k->code;
  atlas_builder *b = code->builder;
  uint64_t step = (uint64_t)k->layout.step * k->layout.loads, rest = k->g->columns % step;
  int is_apart = !k->g->group->plan->for_gpu;
  uint16_t rounds;
  ops_block_hoist(k);
  uint16_t own = ops_block_first_column(k), start = is_apart ? ops_register(code) : own;
  k->base = is_apart ? ops_register(code) : own;
  k->chunk = ops_register(code);
  if (is_apart) atlas_emit(b, ATLAS_OP_movi, code->index_type, 2, atlas_reg(start), atlas_bits(0));
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(k->chunk), atlas_bits(0));
  uint32_t next = ops_block_begin_loop(k, k->g->columns / step, &rounds);
  k->whole_loads = k->layout.loads;
  if (is_apart) row_index(k, ATLAS_OP_add, k->base, own, atlas_reg(start));
  body(k);
  row_index(k, ATLAS_OP_add, start, start, atlas_bits(step));
  atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(k->chunk), atlas_reg(k->chunk), atlas_bits(1));
  ops_block_end_loop(k, rounds, next);
  if (rest == 0) return;
  if (is_apart) row_index(k, ATLAS_OP_add, k->base, own, atlas_reg(start));
  over_rest(k, body, rest);
}

void ops_write_loop(row_block *k) {
  ops_block_launch(k, k->g->rows, 1, k->layout.lanes, 1);
  ops_block_set_row(k, ops_index_of(&k->code, ATLAS_REG_BLOCK_INDEX));
  uint16_t first = ops_block_first_column(k);
  for (k->stage = 0; k->stage + 1 < k->g->stage_count; k->stage++) {
    ops_block_begin_stage(k, first);
    over_chunks(k, reduce_chunk);
    ops_block_end_stage(k);
  }
  if (!k->g->group->plan->for_gpu) k->layout.loads = OPS_LOOP_STORE_LOADS;
  if (ops_row_has_full_results(k->g)) over_chunks(k, store_chunk);
  ops_block_finish(k, 1);
}

/* ---- a block for each chunk ------------------------------------------------------------------------------------- */

/* The block's number is row * chunks + chunk. On a CPU, where the division takes a fair part of a block's time, a
 * single row has a program of its own. Returns the number of the part. */
static uint16_t begin_part(row_block *k) {
  ops_code *code = &k->code;
  atlas_builder *b = code->builder;
  uint64_t chunks = k->layout.chunk_blocks, first = k->layout.first_chunk, all = ops_chunks(k->g->columns);
  int is_single = k->g->rows == 1 && !k->g->group->plan->for_gpu;
  ops_block_launch(k, k->g->rows * chunks, 1, k->layout.lanes, 1);
  uint16_t block = ops_index_of(code, ATLAS_REG_BLOCK_INDEX), row = ops_register(code), part = ops_register(code);
  k->chunk = ops_register(code);
  k->column = ops_register(code);
  if (first > 0) {
    atlas_emit(b, ATLAS_OP_mov, code->index_type, 2, atlas_reg(row), atlas_reg(block));
    atlas_emit(b, ATLAS_OP_mov, code->index_type, 2, atlas_reg(k->chunk), row_size(k, first));
  } else if (is_single) {
    atlas_emit(b, ATLAS_OP_movi, code->index_type, 2, atlas_reg(row), atlas_bits(0));
    atlas_emit(b, ATLAS_OP_mov, code->index_type, 2, atlas_reg(k->chunk), atlas_reg(block));
  } else {
    row_index(k, ATLAS_OP_div, row, block, row_size(k, chunks));
    row_index(k, ATLAS_OP_rem, k->chunk, block, row_size(k, chunks));
  }
  ops_block_set_row(k, row);
  k->base = ops_block_first_column(k);
  row_mad(k, k->base, k->chunk, OPS_CHUNK, k->base);
  ops_block_hoist(k);
  if (chunks == all || (first == 0 && is_single)) return block;
  atlas_emit(b, ATLAS_OP_mad, code->index_type, 4, atlas_reg(part), atlas_reg(row), row_size(k, all),
             atlas_reg(k->chunk));
  return part;
}

/* The last chunk may be alone, or it may be lacking: then none needs tests. */
void ops_write_parts(row_block *k) {
  uint64_t chunks = k->layout.chunk_blocks, all = ops_chunks(k->g->columns);
  ops_block_add_parts(k, all);
  uint16_t part = begin_part(k);
  ops_block_begin_stage(k, k->base);
  if (chunks == all) ops_block_over_chunk(k, reduce_chunk);
  else if (k->layout.first_chunk == 0) reduce_chunk(k);
  else over_rest(k, reduce_chunk, k->g->columns % OPS_CHUNK);
  for (uint32_t i = 0; i < k->g->reduction_count; i++) {
    ops_block_take(k, i);
    uint16_t all_lanes = k->kept[i][0];
    if (!k->fold.is_ordered) all_lanes = ops_fold_lanes(&k->fold, all_lanes);
    if (row_is_place(k->reduction)) ops_block_place_of(k, i, all_lanes);
    k->kept[i][0] = all_lanes;
  }
  uint32_t done = ops_block_only_first(k);
  ops_block_store_parts(k, part, 1);
  atlas_builder_place(k->code.builder, done);
}

void ops_write_behind(row_block *k) {
  begin_part(k);
  ops_block_over_chunk(k, store_chunk);
}

/* Goes over one chunk of each row. */
void ops_write_search(row_block *k) {
  ops_code *code = &k->code;
  const ops_terms *terms = &k->g->terms;
  term_id number = (term_id)terms->terms.count;
  ops_block_launch(k, k->g->rows, 1, k->layout.lanes, 1);
  ops_block_set_row(k, ops_index_of(code, ATLAS_REG_BLOCK_INDEX));
  k->column = ops_register(code);
  k->chunk = ops_register(code);
  atlas_emit2(code->builder, ATLAS_OP_cvt, code->index_type, (atlas_type)ops_term_at(terms, number)->type,
              atlas_reg(k->chunk), atlas_reg(ops_value(code, number)));
  k->base = ops_block_first_column(k);
  row_mad(k, k->base, k->chunk, OPS_CHUNK, k->base);
  ops_block_hoist(k);
  ops_block_begin_stage(k, k->base);
  ops_block_over_chunk(k, reduce_chunk);
  ops_block_end_stage(k);
  ops_block_finish(k, 1);
}
