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
static void store_row(row_block *k, uint32_t row) {
  int some = k->g->rows % k->layout.rows != 0 && row > 0;
  if (some) row_compare(k, ATLAS_OP_set_lt, ROW_EXISTS, k->number[row], row_size(k, k->g->rows));
  for (uint32_t load = 0; load < k->layout.loads; load++)
    ops_block_store_load(k, row * k->layout.loads + load, k->stage, some ? ROW_EXISTS : -1);
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

static void begin_rows(row_block *k) {
  uint32_t rows = k->layout.rows;
  uint16_t first = k->layout.lanes == 1 ? ops_lane_index(&k->code) : ops_index_of(&k->code, ATLAS_REG_BLOCK_INDEX);
  if (rows > 1) row_index(k, ATLAS_OP_mul, first, first, atlas_bits(rows));
  for (uint32_t row = 0; row < rows; row++) {
    uint16_t number = k->number[row] = row == 0 ? first : ops_register(&k->code);
    if (row > 0) row_index(k, ATLAS_OP_add, number, first, atlas_bits(row));
    if (row > 0 && k->g->rows % rows != 0) { /* surplus rows repeat the last row */
      number = ops_register(&k->code);
      row_index(k, ATLAS_OP_min, number, k->number[row], row_size(k, k->g->rows - 1));
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
static void finish(row_block *k) {
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
  row_index(k, ATLAS_OP_add, own, own, atlas_reg(k->number[0]));
  if (k->g->rows % rows != 0) row_branch(k, ATLAS_OP_set_ge, own, row_size(k, k->g->rows), done);
  ops_block_set_row(k, own);
  ops_block_finish(k, 0);
  atlas_builder_place(k->code.builder, done);
}

static void write_stages(row_block *k) {
  const row_group *g = k->g;
  for (k->stage = 0; k->stage < g->stage_count; k->stage++) {
    int stores = 0, reduces = 0;
    for (uint32_t i = 0; i < g->result_count; i++) stores |= g->results[i].is_full && g->results[i].stage == k->stage;
    for (uint32_t i = 0; i < g->reduction_count; i++) reduces |= g->reductions[i].stage == k->stage;
    if (reduces) reduce_stage(k);
    if (stores && k->layout.chunks > 0) store_chunk(k);
    else for (uint32_t row = 0; stores && row < k->layout.rows; row++) store_row(k, row);
    if (reduces) compute_row_terms(k);
  }
  finish(k);
}

void ops_write_held(row_block *k) {
  const row_group *g = k->g;
  const ops_layout *layout = &k->layout;
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
  begin_rows(k);
  if (layout->chunks > 0) begin_chunk(k);
  else begin_columns(k);
  if (layout->rows > 1 || layout->chunks > 0) ops_block_hoist_all(k, all);
  write_stages(k);
  for (uint32_t i = 0; i < k->row_term_count; i++)
    ops_term_at(&g->terms, k->row_terms[i].term)->kind = k->row_terms[i].kind;
  hg_release(&g->group->plan->allocator, held);
}
