/* rows_loop.c - rows in loops over chunks: a block goes over its row once for each stage. See row_group.h.
 *
 * A round folds a chunk of 4096 columns; the last chunk may need tests. The results of chunks fold last, so lane i
 * keeps that of chunk i, and the fold over the lanes after the loop is order F over them. If order does not matter, a
 * lane folds everything into one value, and nothing is exchanged within the loop. */
#include "ops/write/row_block.h"

typedef struct loop_row {
  row_block k;     /* with the layout of a chunk */
  uint16_t own;    /* the lane's first column in the row */
  uint16_t first;  /* the chunk's first column; OPS_NO_REGISTER */
  uint16_t chunk;  /* the chunk's number, u32 */
  int is_part;     /* 1: the block has this chunk only */
} loop_row;

static ops_layout chunk_layout(const row_group *g) {
  ops_layout layout = {.lanes = OPS_LOOP_LANES, .rows = 1,
                       .wide = g->group->plan->for_gpu ? ops_row_neighbours(g, OPS_LOOP_WIDE) : 1};
  if (ops_row_element_bytes(g) == 8 && layout.wide > 2) layout.wide = 2;
  layout.step = layout.lanes * layout.wide;
  layout.loads = OPS_CHUNK / layout.step;
  return layout;
}

static uint64_t chunks_of(const row_group *g) { return (g->columns + OPS_CHUNK - 1) / OPS_CHUNK; }

/* ---- chunks ---------------------------------------------------------------------------------------------------- */

/* Lane `chunk` keeps the chunk's result. */
static void keep_chunk(loop_row *l, uint32_t i, uint16_t result) {
  atlas_builder *b = l->k.code.builder;
  atlas_operand kept = atlas_reg(l->k.kept[i][0]);
  if (l->is_part) ops_block_move(&l->k, l->k.kept[i][0], result);
  else {
    atlas_emit(b, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(ROW_IS_FOUND), atlas_reg(ATLAS_REG_BLOCK_LANE),
               atlas_reg(l->chunk));
    atlas_emit(b, ATLAS_OP_sel, (atlas_type)l->k.fold.type, 4, kept, atlas_pred(ROW_IS_FOUND), atlas_reg(result),
               kept);
  }
}

static void reduce_chunk(row_block *k) {
  ops_block_fold_own(k, 0);
  ops_block_fold_lanes(k, 0);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    if (ops_block_take(k, i) && k->fold.is_ordered) keep_chunk((loop_row *)k, i, ops_block_folded(k, i));
}

static void store_chunk(row_block *k) {
  for (uint32_t load = 0; load < k->layout.loads; load++) ops_block_store_load(k, load, ROWS_ALL_STAGES, -1);
}

/* The lane's first column in a round. On a CPU the round's own start is one number for all lanes: the elements of a
 * block are consecutive, and one comparison serves all of its loads. */
static void begin_round(loop_row *l) {
  if (l->first != OPS_NO_REGISTER) row_index(&l->k, ATLAS_OP_add, l->k.base, l->own, atlas_reg(l->first));
}

/* The last columns, fewer than a round has. On a GPU the program serves all rows; on a CPU it has exactly these
 * columns. */
static void over_rest(loop_row *l, void (*body)(row_block *), uint64_t columns) {
  row_block *k = &l->k;
  ops_layout *layout = &k->layout;
  uint32_t loads = layout->loads;
  int for_gpu = k->g->group->plan->for_gpu;
  k->whole_loads = for_gpu ? 0 : (uint32_t)(columns / layout->step);
  if (!for_gpu) layout->loads = (uint32_t)((columns + layout->step - 1) / layout->step);
  k->column = ops_register(&k->code);
  begin_round(l);
  body(k);
  layout->loads = loads;
}

/* Goes over the whole row, as many columns at a time as the layout has. */
static void over_chunks(loop_row *l, void (*body)(row_block *)) {
  row_block *k = &l->k;
  ops_code *code = &k->code;
  uint64_t step = (uint64_t)k->layout.step * k->layout.loads;
  uint16_t rounds;
  ops_block_hoist(k);
  l->own = k->base = ops_block_first_column(k);
  l->first = OPS_NO_REGISTER;
  l->chunk = ops_register(code);
  if (!k->g->group->plan->for_gpu) {
    l->first = ops_register(code);
    k->base = ops_register(code);
    atlas_emit(code->builder, ATLAS_OP_movi, code->index_type, 2, atlas_reg(l->first), atlas_bits(0));
  }
  uint16_t grows = l->first != OPS_NO_REGISTER ? l->first : k->base;
  atlas_emit(code->builder, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(l->chunk), atlas_bits(0));
  uint32_t next = ops_block_begin_loop(k, k->g->columns / step, &rounds);
  k->whole_loads = k->layout.loads;
  begin_round(l);
  body(k);
  row_index(k, ATLAS_OP_add, grows, grows, atlas_bits(step));
  atlas_emit(code->builder, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(l->chunk), atlas_reg(l->chunk), atlas_bits(1));
  ops_block_end_loop(k, rounds, next);
  if (k->g->columns % step != 0) over_rest(l, body, k->g->columns % step);
}

/* ---- stages ---------------------------------------------------------------------------------------------------- */

/* `first`: the lane's first column. */
static void begin_kept(row_block *k, uint16_t first) {
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    if (ops_block_take(k, i)) ops_block_begin_kept(k, i, 0, first);
}

static void write_rows(row_block *k) {
  loop_row *l = (loop_row *)k;
  k->layout = chunk_layout(k->g);
  ops_block_launch(k, k->g->rows, 1, k->layout.lanes, 1);
  ops_block_set_row(k, ops_index_of(&k->code, ATLAS_REG_BLOCK_INDEX));
  uint16_t first = ops_block_first_column(k);
  for (k->stage = 0; k->stage + 1 < k->g->stage_count; k->stage++) {
    begin_kept(k, first);
    over_chunks(l, reduce_chunk);
    ops_block_end_kept(k);
  }
  if (!k->g->group->plan->for_gpu) k->layout.loads = OPS_LOOP_STORE_LOADS;
  if (ops_row_has_full_results(k->g)) over_chunks(l, store_chunk);
  ops_block_finish(k, 1);
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

/* 1 if there are lanes enough, since a lane has room for one chunk's result. */
int ops_rows_loop_can(const row_group *g) {
  if (g->columns < OPS_CHUNK + (g->group->plan->for_gpu ? 1 : 0)) return 0;
  return chunks_of(g) <= chunk_layout(g).lanes && g->rows <= INT32_MAX;
}

/* 1 if it is faster than holding the row: a CPU reads a row that its caches hold again in less time than spilled
 * registers take, if little has to be computed again and the code of a chunk is short. */
int ops_rows_loop_pays(const row_group *g) {
  if (g->group->plan->for_gpu || !ops_rows_loop_can(g)) return 0;
  if (g->columns == OPS_CHUNK && g->held_count == 0) return 0; /* a chunk that is read once */
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (row_is_place(&g->reductions[i])) return 0;
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    int is_folded = g->stage[id] + 1u < g->stage_count && varies_by_column(g, id);
    if (term->kind == TERM_POINTWISE && is_folded && ops_work_of((atlas_op)term->op) > OPS_LOOP_LITTLE_WORK) return 0;
  }
  return 1;
}

hg_status ops_rows_loop(row_group *g) {
  return ops_block_write(g, &(row_writer){"long_rows", sizeof(loop_row), write_rows}, NULL);
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

uint32_t ops_row_part_storages(const row_group *g) {
  uint32_t storages = 0;
  for (uint32_t i = 0; i < g->reduction_count; i++) storages += 1u + (uint32_t)row_is_place(&g->reductions[i]);
  return storages;
}

int ops_rows_parts_can(const row_group *g) {
  return ops_rows_behind_can(g) && g->stage_count == 2 && !ops_row_has_full_results(g) &&
         ops_row_part_storages(g) <= ROWS_MOST_PARTS;
}

/* The chunks of a launch: all of each row, or, on a CPU, an incomplete last one apart from the others: code without a
 * branch has the fastest version. */
typedef enum row_chunks { ALL_CHUNKS, WHOLE_CHUNKS, LAST_CHUNK } row_chunks;

/* The block's number is row * chunks + chunk. On a CPU, where the division takes a fair part of a block's time, a
 * single row has a program of its own. Returns the number of the part. */
static uint16_t begin_part(loop_row *l, row_chunks which) {
  row_block *k = &l->k;
  ops_code *code = &k->code;
  uint64_t whole = k->g->columns / OPS_CHUNK;
  uint64_t chunks = which == ALL_CHUNKS ? chunks_of(k->g) : which == WHOLE_CHUNKS ? whole : 1;
  k->layout = chunk_layout(k->g);
  ops_block_launch(k, k->g->rows * chunks, 1, k->layout.lanes, 1);
  uint16_t block = ops_index_of(code, ATLAS_REG_BLOCK_INDEX), row = ops_register(code), part = block;
  l->chunk = ops_register(code);
  k->column = ops_register(code);
  k->whole_loads = k->layout.loads;
  if (which == LAST_CHUNK) {
    atlas_emit(code->builder, ATLAS_OP_mov, code->index_type, 2, atlas_reg(row), atlas_reg(block));
    atlas_emit(code->builder, ATLAS_OP_mov, code->index_type, 2, atlas_reg(l->chunk), row_size(k, whole));
  } else if (k->g->rows == 1 && !k->g->group->plan->for_gpu) {
    atlas_emit(code->builder, ATLAS_OP_movi, code->index_type, 2, atlas_reg(row), atlas_bits(0));
    atlas_emit(code->builder, ATLAS_OP_mov, code->index_type, 2, atlas_reg(l->chunk), atlas_reg(block));
  } else {
    row_index(k, ATLAS_OP_div, row, block, row_size(k, chunks));
    row_index(k, ATLAS_OP_rem, l->chunk, block, row_size(k, chunks));
  }
  ops_block_set_row(k, row);
  k->base = ops_block_first_column(k);
  row_mad(k, k->base, l->chunk, OPS_CHUNK, k->base);
  ops_block_hoist(k);
  if (which == ALL_CHUNKS || (which == WHOLE_CHUNKS && k->g->rows == 1)) return part;
  part = ops_register(code);
  atlas_emit(code->builder, ATLAS_OP_mad, code->index_type, 4, atlas_reg(part), atlas_reg(row),
             row_size(k, chunks_of(k->g)), atlas_reg(l->chunk));
  return part;
}

static void write_parts(row_block *k, row_chunks which) {
  loop_row *l = (loop_row *)k;
  l->is_part = 1;
  l->first = OPS_NO_REGISTER;
  ops_block_add_parts(k, chunks_of(k->g));
  uint16_t part = begin_part(l, which);
  begin_kept(k, k->base);
  if (which == ALL_CHUNKS) ops_block_over_chunk(k, l->chunk, reduce_chunk);
  else if (which == WHOLE_CHUNKS) reduce_chunk(k);
  else over_rest(l, reduce_chunk, k->g->columns % OPS_CHUNK);
  for (uint32_t i = 0; i < k->g->reduction_count; i++) {
    ops_block_take(k, i);
    uint16_t all = k->kept[i][0];
    if (!k->fold.is_ordered) all = ops_fold_lanes(&k->fold, all);
    if (row_is_place(k->reduction)) ops_block_place_of(k, i, all);
    k->kept[i][0] = all;
  }
  uint32_t done = ops_block_only_first(k);
  ops_block_store_parts(k, part, 1);
  atlas_builder_place(k->code.builder, done);
}

static void write_all_parts(row_block *k) { write_parts(k, ALL_CHUNKS); }
static void write_whole_parts(row_block *k) { write_parts(k, WHOLE_CHUNKS); }
static void write_last_part(row_block *k) { write_parts(k, LAST_CHUNK); }

hg_status ops_rows_parts(row_group *g, row_parts *parts) {
  const row_writer all = {"parts", sizeof(loop_row), write_all_parts};
  const row_writer whole = {"parts", sizeof(loop_row), write_whole_parts};
  const row_writer last = {"last_part", sizeof(loop_row), write_last_part};
  if (g->group->plan->for_gpu || g->columns % OPS_CHUNK == 0 || g->columns / OPS_CHUNK < OPS_LAST_PART_APART)
    return ops_block_write(g, &all, parts);
  HG_TRY(ops_block_write(g, &whole, parts));
  return ops_block_write(g, &last, parts);
}

/* ---- behind the last reduction ---------------------------------------------------------------------------------- */

int ops_rows_behind_can(const row_group *g) {
  return g->rows > 0 && g->columns > OPS_CHUNK && chunks_of(g) <= INT32_MAX / g->rows;
}

static void write_behind(row_block *k) {
  loop_row *l = (loop_row *)k;
  begin_part(l, ALL_CHUNKS);
  ops_block_over_chunk(k, l->chunk, store_chunk);
}

hg_status ops_rows_behind(row_group *g) {
  return ops_block_write(g, &(row_writer){"behind_rows", sizeof(loop_row), write_behind}, NULL);
}
