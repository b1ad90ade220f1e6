/* rows_held.c - a block holds a row in its registers. See row_group.h.
 *
 * A lane has `wide` neighbouring columns in each load of lanes * wide columns, so that a load can have 16 bytes. The
 * last load may reach beyond the row: lanes without columns there read the row's last columns again, so that no branch
 * keeps the loads from being issued together; their values are replaced by the identity and not stored. The sizes of
 * such a tail are scalars: rows with the same number of loads share a program.
 *
 * If a device can spread a block, a long row has a block of many lanes with many columns each.
 *
 * A block has several short rows, whose exchanges run side by side; what is computed once for each row, such as a
 * logarithm or a root, one lane computes for each. A lane has one of the shortest rows by itself. */
#include "ops/write/row_block.h"

#include "atlas/tables.h"

#include <string.h>

enum { NOWHERE = 1 << 30, ROW_EXISTS = ROW_OWN_PREDICATE };

typedef struct held_row {
  row_block k;
  uint16_t number[ROWS_MOST_ROWS]; /* the rows' numbers */
} held_row;

/* ---- reductions ------------------------------------------------------------------------------------------------ */

/* The lowest index in this lane with the value, or of a NaN; NOWHERE or more: there is none. */
static uint16_t place_in_lane(row_block *k, uint16_t value) {
  const row_reduction *r = k->reduction;
  atlas_builder *b = k->code.builder;
  atlas_type index = ops_block_place_type(k);
  uint32_t elements = k->layout.loads * k->layout.wide;
  uint16_t place = ops_register(&k->code);
  atlas_emit(b, ATLAS_OP_movi, index, 2, atlas_reg(place), atlas_bits(r->place != 0 ? INT64_MAX : NOWHERE));
  for (uint32_t e = elements; e-- > 0;) {
    uint32_t element = k->row_in_hand * elements + e;
    ops_block_find_extreme(k, ops_block_value(k, r->input, element), value);
    if (k->is_tested)
      atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(ROW_IS_FOUND), atlas_pred(ROW_IS_FOUND),
                 atlas_pred(ROW_IS_THERE));
    atlas_operand known = atlas_bits(ops_column(&k->layout, e));
    if (r->place != 0) known = atlas_reg(ops_block_value(k, r->place, element));
    atlas_emit(b, ATLAS_OP_sel, index, 4, atlas_reg(place), atlas_pred(ROW_IS_FOUND), known, atlas_reg(place));
  }
  if (r->place != 0 || k->layout.lanes == 1) return place;
  row_mad(k, place, ops_index_of(&k->code, ATLAS_REG_BLOCK_LANE), k->layout.wide, place);
  return place;
}

/* All reductions of the stage: first within lanes, then their exchanges side by side. */
static void reduce_stage(row_block *k) {
  ops_block_fold_own(k, 1);
  ops_block_fold_lanes(k, 1);
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (k->row_in_hand = 0; ops_block_take(k, i) && k->row_in_hand < k->layout.rows; k->row_in_hand++) {
      uint16_t result = ops_block_folded(k, i);
      if (row_is_place(k->reduction)) {
        result = place_in_lane(k, result);
        ops_block_end_place(k, result, k->layout.lanes > 1);
      }
      ops_block_bind(k, i, k->row_in_hand, result);
    }
  ops_block_set_which_row(k, 0);
}

/* ---- what a row has one of -------------------------------------------------------------------------------------- */

enum { IMPOSSIBLE = 1 << 20 };

/* The instructions that compute it from the reductions' results. */
static uint32_t work_of(const row_group *g, term_id id) {
  const ops_term *term = ops_term_at(&g->terms, id);
  if (term->kind == TERM_BOUND || term->varies == 0) return 0;
  if (term->kind != TERM_POINTWISE || term->type == ATLAS_bool) return IMPOSSIBLE;
  uint32_t work = ops_work_of((atlas_op)term->op);
  for (uint32_t i = 0; i < term->input_count; i++) work += work_of(g, term->input[i]);
  return work < IMPOSSIBLE ? work : IMPOSSIBLE;
}

static int is_read_by_columns(const row_group *g, term_id id) {
  for (uint32_t other = 1; other <= g->terms.terms.count; other++) {
    const ops_term *term = ops_term_at(&g->terms, other);
    for (uint32_t i = 0; varies_by_column(g, other) && i < term->input_count; i++)
      if (term->input[i] == id) return 1;
  }
  for (uint32_t i = 0; i < g->result_count; i++)
    if (g->results[i].is_full && g->results[i].term == id) return 1;
  return 0;
}

/* Finds terms of this stage's reductions that are worth an exchange. */
static uint32_t find_row_terms(const row_block *k, row_term *found) {
  const row_group *g = k->g;
  uint32_t rows = k->layout.rows, count = 0;
  if (!g->group->plan->for_gpu || k->layout.lanes < rows || rows < 4) return 0;
  for (uint32_t id = 1; id <= g->terms.terms.count && k->row_term_count + count < ROWS_MOST_TERMS; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if (g->stage[id] != k->stage + 1 || term->varies == 0 || varies_by_column(g, id)) continue;
    uint32_t work = work_of(g, id);
    if (work >= IMPOSSIBLE || work < 8 || !is_read_by_columns(g, id)) continue;
    found[count++] = (row_term){.term = id, .kind = term->kind};
  }
  return count;
}

/* Lane i takes row i's reduction results and computed terms; the lanes behind take row 0's. */
static void take_own_results(row_block *k) {
  ops_code *code = &k->code;
  for (uint32_t i = 0; i < k->g->reduction_count; i++) {
    const row_reduction *r = &k->g->reductions[i];
    if (r->bound == 0 || r->stage > k->stage) continue;
    atlas_type type = (atlas_type)ops_at(k->g->group->computation, r->value)->type;
    uint16_t own = code->registers[r->bound] = ops_register(code);
    atlas_emit(code->builder, ATLAS_OP_mov, type, 2, atlas_reg(own), atlas_reg(k->bound[i][0]));
    for (uint32_t row = 1; row < k->layout.rows; row++) {
      atlas_emit(code->builder, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(ROW_IS_FOUND),
                 atlas_reg(ATLAS_REG_BLOCK_LANE), atlas_bits(row));
      atlas_emit(code->builder, ATLAS_OP_sel, type, 4, atlas_reg(own), atlas_pred(ROW_IS_FOUND),
                 atlas_reg(k->bound[i][row]), atlas_reg(own));
    }
  }
  for (uint32_t i = 0; i < k->row_term_count; i++) {
    const row_term *term = &k->row_terms[i];
    uint16_t reg = code->registers[term->term] = ops_register(code);
    atlas_type type = (atlas_type)ops_term_at(&k->g->terms, term->term)->type;
    atlas_emit(code->builder, ATLAS_OP_lds, type, 2, atlas_reg(reg),
               atlas_mem_reg(term->symbol, ATLAS_REG_BLOCK_LANE, 0));
  }
}

/* Each lane computes the terms for its row; by way of shared memory all lanes get those of all rows. */
static void compute_row_terms(row_block *k) {
  ops_code *code = &k->code;
  row_term *found = &k->row_terms[k->row_term_count];
  uint32_t count = find_row_terms(k, found);
  if (count == 0) return;
  take_own_results(k);
  for (uint32_t i = 0; i < count; i++) {
    atlas_type type = (atlas_type)ops_term_at(&k->g->terms, found[i].term)->type;
    found[i].symbol = ops_block_shared(k, 'w', k->row_term_count + i, type, k->layout.lanes);
    atlas_emit(code->builder, ATLAS_OP_sts, type, 2, atlas_mem_reg(found[i].symbol, ATLAS_REG_BLOCK_LANE, 0),
               atlas_reg(ops_value(code, found[i].term)));
  }
  ops_block_forget(k);
  atlas_emit(code->builder, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  for (uint32_t i = 0; i < count; i++) {
    ops_term *term = ops_term_at(&k->g->terms, found[i].term);
    for (uint32_t row = 0; row < k->layout.rows; row++) {
      found[i].value[row] = ops_register(code);
      atlas_emit(code->builder, ATLAS_OP_lds, (atlas_type)term->type, 2, atlas_reg(found[i].value[row]),
                 atlas_mem(found[i].symbol, row));
    }
    term->kind = TERM_BOUND; /* the block provides the register */
  }
  k->row_term_count += count;
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* A lane whose chunk may lie behind the row needs one test for all of its columns. */
static void store_chunk(row_block *k) {
  atlas_builder *b = k->code.builder;
  uint32_t absent = atlas_builder_label(b, NULL), whole_loads = k->whole_loads;
  if (whole_loads == 0) atlas_emit_branch(b, ROW_IS_THERE, 1, absent);
  k->whole_loads = k->layout.loads;
  for (uint32_t load = 0; load < k->layout.loads; load++) ops_block_store_load(k, load, k->stage, -1);
  k->whole_loads = whole_loads;
  atlas_builder_place(b, absent);
}

/* Stores a row's full results of this stage. The last block may have fewer rows than others. */
static void store_row(held_row *h, uint32_t row) {
  int some = h->k.g->rows % h->k.layout.rows != 0 && row > 0;
  if (some) row_compare(&h->k, ATLAS_OP_set_lt, ROW_EXISTS, h->number[row], row_size(&h->k, h->k.g->rows));
  for (uint32_t load = 0; load < h->k.layout.loads; load++)
    ops_block_store_load(&h->k, row * h->k.layout.loads + load, h->k.stage, some ? ROW_EXISTS : -1);
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

static void begin_rows(held_row *h) {
  row_block *k = &h->k;
  uint32_t rows = k->layout.rows;
  uint16_t first = k->layout.lanes == 1 ? ops_lane_index(&k->code) : ops_index_of(&k->code, ATLAS_REG_BLOCK_INDEX);
  if (rows > 1) row_index(k, ATLAS_OP_mul, first, first, atlas_bits(rows));
  for (uint32_t row = 0; row < rows; row++) {
    uint16_t number = h->number[row] = row == 0 ? first : ops_register(&k->code);
    if (row > 0) row_index(k, ATLAS_OP_add, number, first, atlas_bits(row));
    if (row > 0 && k->g->rows % rows != 0) { /* surplus rows repeat the last row */
      number = ops_register(&k->code);
      row_index(k, ATLAS_OP_min, number, h->number[row], row_size(k, k->g->rows - 1));
    }
    ops_block_set_row(k, number);
    memcpy(k->row[row], k->code.variable, k->g->row_rank * sizeof k->code.variable[0]);
  }
}

/* The lane's first column in the chunk that its x selects. */
static void begin_chunk(row_block *k) {
  uint16_t chunk = ops_launch_index(&k->code, ATLAS_COORD_LANE_X);
  uint64_t chunks = k->g->columns / OPS_CHUNK;
  k->base = k->tail = ops_launch_index(&k->code, ATLAS_COORD_LANE_Y);
  k->whole_loads = k->layout.loads;
  if (chunks < k->layout.chunks) { /* surplus chunks repeat the last one */
    k->whole_loads = 0;
    row_compare(k, ATLAS_OP_set_lt, ROW_IS_THERE, chunk, row_size(k, chunks));
    row_index(k, ATLAS_OP_min, chunk, chunk, row_size(k, chunks - 1));
  }
  row_mad(k, k->base, chunk, OPS_CHUNK, k->base);
}

static void begin_columns(row_block *k) {
  const ops_layout *l = &k->layout;
  k->whole_loads = (uint32_t)(k->g->columns / l->step);
  if (l->lanes == 1) {
    k->base = ops_register(&k->code);
    atlas_emit(k->code.builder, ATLAS_OP_movi, k->code.index_type, 2, atlas_reg(k->base), atlas_bits(0));
    return;
  }
  k->base = ops_block_first_column(k);
  if (k->whole_loads == l->loads) return;
  uint64_t left = k->g->columns - (uint64_t)k->whole_loads * l->step;
  k->tail = ops_register(&k->code);
  row_index(k, ATLAS_OP_min, k->tail, k->base, row_size(k, left - l->wide));
  row_compare(k, ATLAS_OP_set_lt, ROW_IS_THERE, k->base, row_size(k, left));
}

/* Results of which a row has one: lane i stores row i's, all at once. */
static void finish(held_row *h) {
  row_block *k = &h->k;
  uint32_t rows = k->layout.rows, count = 0;
  for (uint32_t i = 0; i < k->g->result_count; i++) count += !k->g->results[i].is_full;
  if (count == 0) return;
  ops_block_set_which_row(k, 0);
  if (rows <= 1) {
    ops_block_finish(k, k->layout.lanes > 1);
    return;
  }
  take_own_results(k);
  uint16_t own = ops_index_of(&k->code, ATLAS_REG_BLOCK_LANE);
  uint32_t done = atlas_builder_label(k->code.builder, NULL);
  row_branch(k, ATLAS_OP_set_ge, own, atlas_bits(rows), done);
  row_index(k, ATLAS_OP_add, own, own, atlas_reg(h->number[0]));
  if (k->g->rows % rows != 0) row_branch(k, ATLAS_OP_set_ge, own, row_size(k, k->g->rows), done);
  ops_block_set_row(k, own);
  ops_block_finish(k, 0);
  atlas_builder_place(k->code.builder, done);
}

static void write_stages(held_row *h) {
  row_block *k = &h->k;
  const row_group *g = k->g;
  for (k->stage = 0; k->stage < g->stage_count; k->stage++) {
    int stores = 0, reduces = 0;
    for (uint32_t i = 0; i < g->result_count; i++) stores |= g->results[i].is_full && g->results[i].stage == k->stage;
    for (uint32_t i = 0; i < g->reduction_count; i++) reduces |= g->reductions[i].stage == k->stage;
    if (reduces) reduce_stage(k);
    if (stores && k->layout.chunks > 0) store_chunk(k);
    else for (uint32_t row = 0; stores && row < k->layout.rows; row++) store_row(h, row);
    if (reduces) compute_row_terms(k);
  }
  finish(h);
}

static void write_rows(row_block *k) {
  held_row *h = (held_row *)k;
  const row_group *g = k->g;
  const ops_layout *layout = &k->layout;
  ops_rows_held_layout(g, &k->layout);
  uint32_t elements = layout->loads * layout->wide * layout->rows, all = (1u << g->terms.space.rank) - 1;
  uint16_t *held = hg_allocate(&g->group->plan->allocator, g->held_count * elements + 1, sizeof *held);
  if (held == NULL) {
    k->code.status = hg_fail_memory("the registers of a row", g->held_count * elements);
    return;
  }
  memset(held, 0xff, g->held_count * elements * sizeof *held);
  ops_block_launch(k, (g->rows + layout->rows - 1) / layout->rows, 1,
                   layout->chunks > 0 ? layout->chunks : layout->lanes, layout->chunks > 0 ? layout->lanes : 1);
  if (layout->rows > 1) k->forgotten = all;
  for (uint32_t i = 0; i < g->held_count; i++)
    k->known[k->known_count++] = (row_known){g->held[i], &held[i * elements]};
  begin_rows(h);
  if (layout->chunks > 0) begin_chunk(k);
  else begin_columns(k);
  if (layout->rows > 1 || layout->chunks > 0) ops_block_hoist_all(k, all);
  write_stages(h);
  for (uint32_t i = 0; i < k->row_term_count; i++)
    ops_term_at(&g->terms, k->row_terms[i].term)->kind = k->row_terms[i].kind;
  hg_release(&g->group->plan->allocator, held);
}

hg_status ops_rows_held(row_group *g) {
  return ops_block_write(g, &(row_writer){"rows", sizeof(held_row), write_rows}, NULL);
}

/* ---- its shape ------------------------------------------------------------------------------------------------- */

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

/* Lanes for that many columns of held words: the fastest on an H200 among those that were tried, with 16 to 32 words a
 * lane. A warp needs no barrier; two neighbours need half the exchanges of four; with more than 32 words a lane,
 * registers leave room for few warps. A GPU starts some 1.6 blocks a nanosecond, so a block has enough short rows to
 * make up 1024 columns; if nothing is held, two neighbours of a short row halve the loads. A lane has rows of up to 16
 * columns by itself. If memory is not the only limit, since elements are small and a function is computed for each,
 * long rows are faster with half the lanes: softmax of bf16, 2^28 elements, rows of 8192 333 and 308 us, of 16384 365
 * and 310; of 4096 309 and 315. */
static void shape_for_gpu(const row_group *g, ops_layout *layout) {
  uint64_t words = g->columns * (g->most_held == 0 ? 1 : g->most_held), beside = g->columns * bytes_beside(g) / 8;
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
  if (g->columns <= OPS_HELD_SHORT) wide = is_short ? 2 : 1;
  layout->wide = ops_row_neighbours(g, wide);
  uint32_t each = (uint32_t)(g->columns + layout->lanes - 1) / layout->lanes;
  while (layout->rows < ROWS_MOST_ROWS && g->columns * layout->rows * 2 * (full ? 4 : bytes) <= OPS_HELD_BLOCK_BYTES &&
         each * layout->rows < (full ? OPS_HELD_ROWS_FULL : is_short ? OPS_HELD_ROWS_SHORT : OPS_HELD_ROWS))
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
  if (g->most_held > 1 || g->terms.space.rank != g->row_rank + 1 || ops_columns_lie_apart(g)) return 0;
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (row_is_place(&g->reductions[i])) return 0;
  *layout = (ops_layout){
      .lanes = WARP, .wide = 1, .step = WARP, .loads = OPS_CHUNK / WARP, .rows = 1, .chunks = (uint32_t)chunks};
  return 1;
}

int ops_rows_held_layout(const row_group *g, ops_layout *layout) {
  memset(layout, 0, sizeof *layout);
  if (g->rows > INT32_MAX) return 0;
  if (shape_by_chunks(g, layout)) return 1;
  if (g->columns > OPS_HELD_COLUMNS) return 0;
  uint32_t words = g->most_held == 0 ? 1 : g->most_held;
  if (g->group->plan->for_gpu) shape_for_gpu(g, layout);
  else shape_for_processor(g, layout);
  if (g->columns * words <= (ops_columns_lie_apart(g) ? OPS_HELD_ALONE_APART : OPS_HELD_ALONE))
    *layout = (ops_layout){.lanes = 1, .wide = 1, .rows = 1};
  layout->step = layout->lanes * layout->wide;
  layout->loads = (uint32_t)((g->columns + layout->step - 1) / layout->step);
  uint64_t chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  return layout->loads * layout->wide * words <= OPS_HELD_LANE_WORDS && chunks * layout->wide <= OPS_MOST_PARTS;
}
