/* rows_held.c - a block holds a row in its registers. See row_group.h.
 *
 * A lane has `wide` neighbouring columns of every lanes * wide, so that a load can be 16 bytes. Of the last load, which
 * may reach beyond the row, lanes that have nothing read the row's last columns once more: no branch keeps the loads
 * from going out together; what they read is replaced by what changes nothing, and is not stored. The sizes of such a
 * tail are scalars: rows that have as many loads share a program.
 *
 * Where a device can spread a block, a long row has a block of many lanes with many columns each.
 *
 * Of short rows a block has several, whose exchanges go side by side; what each has one of, a logarithm or a root, a
 * lane computes for all. Of the shortest a lane has one by itself. */
#include "ops/write/row_group.h"
#include "ops/graph/ops_tuning.h"

#include "atlas/tables.h"
#include "atlas/value.h"

#include <string.h>

enum { NOWHERE = 1 << 30, MOST_ROW_TERMS = 4 };

/* A term that is the same in the whole row, and what it was before it became the writer's own. */
typedef struct row_term {
  term_id term;
  uint16_t symbol, value[ROWS_MOST_ROWS];
  uint8_t kind;
} row_term;

typedef struct held_row {
  row_group *g;
  ops_code code;
  const ops_layout *layout;
  uint32_t whole_loads;                                 /* that need no test */
  uint16_t base, tail;                                  /* the lane's first column, of whole loads and of the last */
  uint16_t *held;                                       /* registers by g->held and element, of all rows */
  uint16_t row[ROWS_MOST_ROWS][HG_MAX_RANK];            /* coordinates, by row of the block */
  uint16_t number[ROWS_MOST_ROWS];                      /* of the row */
  uint16_t bound[ROWS_MOST_REDUCTIONS][ROWS_MOST_ROWS]; /* results, by row; OPS_NO_REGISTER */
  row_term row_terms[MOST_ROW_TERMS];
  uint32_t row_term_count;
  uint32_t stage;
  int is_last_visit; /* what this stage is the last to use need not be held any longer */
  const row_reduction *reduction;
  uint32_t row_in_hand;
  ops_fold fold;
} held_row;

enum { ROW_EXISTS = 3, IS_STORED = 4 };

static uint32_t elements_of(const ops_layout *layout) { return layout->loads * layout->wide; }

/* Elements of all rows are numbered one after the other. */
static uint32_t in_row(const held_row *h, uint32_t element) { return element % elements_of(h->layout); }
static uint32_t row_of(const held_row *h, uint32_t element) { return element / elements_of(h->layout); }

static int is_in_tail(const held_row *h, uint32_t element) {
  return in_row(h, element) / h->layout->wide >= h->whole_loads;
}

/* What is another value in another row is not kept from one to the next where a block has several. */
static uint32_t forgotten(const held_row *h) {
  return h->layout->rows > 1 ? (1u << h->g->terms.space.rank) - 1 : column_bits(h->g);
}

static void set_row(held_row *h, uint32_t row) {
  for (uint32_t i = 0; i < h->g->row_rank; i++) h->code.variable[i] = h->row[row][i];
  for (uint32_t i = 0; i < h->g->reduction_count; i++)
    if (h->g->reductions[i].bound != 0 && h->bound[i][row] != OPS_NO_REGISTER)
      h->code.registers[h->g->reductions[i].bound] = h->bound[i][row];
  for (uint32_t i = 0; i < h->row_term_count; i++)
    h->code.registers[h->row_terms[i].term] = h->row_terms[i].value[row];
}

static void set_element(held_row *h, uint32_t element) {
  set_row(h, row_of(h, element));
  ops_row_set_column(h->g, &h->code, is_in_tail(h, element) ? h->tail : h->base,
                     ops_column(h->layout, in_row(h, element)));
}

static void forget(held_row *h) {
  ops_row_forget(h->g, &h->code);
  if (h->layout->rows > 1) ops_forget(&h->code, forgotten(h));
}

static uint16_t *held_register(held_row *h, uint32_t i, uint32_t element) {
  return &h->held[i * elements_of(h->layout) * h->layout->rows + element];
}

/* A term's value at an element. */
static ops_held value_at(held_row *h, term_id term, uint32_t element) {
  row_group *g = h->g;
  ops_code *code = &h->code;
  const ops_term *t = ops_term_at(&g->terms, term);
  set_element(h, element);
  for (uint32_t i = 0; i < g->held_count; i++)
    if (*held_register(h, i, element) != OPS_NO_REGISTER) code->registers[g->held[i]] = *held_register(h, i, element);
  ops_held result = {ops_value(code, term), t->kind != TERM_BOUND && (t->varies & forgotten(h)) != 0};
  for (uint32_t i = 0; i < g->held_count; i++) {
    term_id id = g->held[i];
    if (code->registers[id] == OPS_NO_REGISTER) continue;
    int is_kept = !h->is_last_visit || g->last_use[id] > h->stage;
    *held_register(h, i, element) = is_kept ? code->registers[id] : OPS_NO_REGISTER;
    if (is_kept) code->registers[id] = OPS_NO_REGISTER;
    if (is_kept && id == term) result.is_own = 0;
  }
  if (result.is_own) code->registers[term] = OPS_NO_REGISTER;
  forget(h);
  return result;
}

/* ---- reductions ------------------------------------------------------------------------------------------------ */

static ops_held leaf(void *context, uint32_t element) {
  held_row *h = context;
  element += h->row_in_hand * elements_of(h->layout);
  ops_held value = value_at(h, h->reduction->input, element);
  return is_in_tail(h, element) ? ops_fold_where(&h->fold, ROW_IS_THERE, value) : value;
}

static int is_float(uint8_t type) { return atlas_kind((atlas_type)type) == ATLAS_KIND_FLOAT; }

/* The lowest place of this lane's that has the value, or is NaN; NOWHERE and more: there is none. */
static uint16_t place_in_lane(held_row *h, uint16_t value) {
  const row_reduction *r = h->reduction;
  atlas_builder *b = h->code.builder;
  atlas_type type = (atlas_type)r->type, index = r->place != 0 ? ATLAS_i64 : h->code.index_type;
  atlas_operand found = atlas_pred(ROW_IS_FOUND), nan = atlas_pred(ROW_IS_NAN);
  uint16_t place = ops_register(&h->code);
  atlas_emit(b, ATLAS_OP_movi, index, 2, atlas_reg(place), atlas_bits(NOWHERE));
  if (r->place != 0) atlas_emit(b, ATLAS_OP_movi, index, 2, atlas_reg(place), atlas_bits(INT64_MAX));
  for (uint32_t k = elements_of(h->layout); k-- > 0;) {
    uint32_t e = h->row_in_hand * elements_of(h->layout) + k;
    ops_held at = value_at(h, r->input, e);
    atlas_emit(b, ATLAS_OP_set_eq, type, 3, found, atlas_reg(at.reg), atlas_reg(value));
    if (is_float(r->type)) {
      atlas_emit(b, ATLAS_OP_set_nan, type, 3, nan, atlas_reg(at.reg), atlas_reg(at.reg));
      atlas_emit(b, ATLAS_OP_por, ATLAS_NONE, 3, found, found, nan);
    }
    if (is_in_tail(h, e)) atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, found, found, atlas_pred(ROW_IS_THERE));
    ops_give_back(&h->code, at);
    ops_held known = r->place != 0 ? value_at(h, r->place, e) : (ops_held){0, 0};
    atlas_operand own = r->place != 0 ? atlas_reg(known.reg) : atlas_bits(ops_column(h->layout, k));
    atlas_emit(b, ATLAS_OP_sel, index, 4, atlas_reg(place), found, own, atlas_reg(place));
    ops_give_back(&h->code, known);
  }
  if (r->place != 0 || h->layout->lanes == 1) return place;
  uint16_t own = ops_index_of(&h->code, ATLAS_REG_BLOCK_LANE);
  atlas_emit(b, ATLAS_OP_mad, index, 4, atlas_reg(place), atlas_reg(own), atlas_bits(h->layout->wide),
             atlas_reg(place));
  ops_register_free(&h->code, own);
  return place;
}

static void bind(held_row *h, uint32_t i, uint32_t row, uint16_t reg) {
  if (h->g->reductions[i].bound != 0) h->bound[i][row] = reg;
  else ops_register_free(&h->code, reg);
}

static int is_of_stage(const held_row *h, uint32_t i) { return h->g->reductions[i].stage == h->stage; }

/* Places: of all reductions of the stage that ask for one, whose extremes are known. */
static void find_places(held_row *h, ops_held (*extremes)[ROWS_MOST_ROWS], int is_last_visit) {
  uint16_t places[ROWS_MOST_REDUCTIONS][ROWS_MOST_ROWS] = {{0}};
  row_group *g = h->g;
  uint32_t last = 0, rows = h->layout->rows;
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (is_of_stage(h, i) && row_is_place(&g->reductions[i])) last = i;
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    h->reduction = &g->reductions[i];
    if (!is_of_stage(h, i) || !row_is_place(h->reduction)) continue;
    h->is_last_visit = is_last_visit && i == last;
    for (h->row_in_hand = 0; h->row_in_hand < rows; h->row_in_hand++) {
      places[i][h->row_in_hand] = place_in_lane(h, extremes[i][h->row_in_hand].reg);
      ops_give_back(&h->code, extremes[i][h->row_in_hand]);
    }
  }
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    const row_reduction *r = &g->reductions[i];
    if (!is_of_stage(h, i) || !row_is_place(r)) continue;
    atlas_type index = r->place != 0 ? ATLAS_i64 : h->code.index_type;
    atlas_type type = (atlas_type)ops_at(g->group->computation, r->value)->type;
    for (uint32_t row = 0; row < rows; row++) {
      atlas_operand reg = atlas_reg(places[i][row]);
      if (h->layout->lanes > 1) atlas_emit(h->code.builder, ATLAS_OP_reduce_min, index, 2, reg, reg);
      if (type != index) atlas_emit2(h->code.builder, ATLAS_OP_cvt, type, index, reg, reg);
      bind(h, i, row, places[i][row]);
    }
  }
}

typedef struct stage_parts {
  ops_parts parts[ROWS_MOST_REDUCTIONS][ROWS_MOST_ROWS];
  ops_fold folds[ROWS_MOST_REDUCTIONS];
  ops_held results[ROWS_MOST_REDUCTIONS][ROWS_MOST_ROWS];
} stage_parts;

/* All reductions of the stage: what lanes have by themselves first, then their exchanges side by side. */
static void reduce_stage(held_row *h, stage_parts *s, int is_last_visit) {
  row_group *g = h->g;
  uint32_t last = 0, rows = h->layout->rows;
  int has_places = 0;
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (is_of_stage(h, i)) last = i, has_places |= row_is_place(&g->reductions[i]);
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    const row_reduction *r = h->reduction = &g->reductions[i];
    if (!is_of_stage(h, i)) continue;
    h->is_last_visit = is_last_visit && i == last && !has_places;
    h->fold = s->folds[i] = ops_fold_of(&h->code, r->reduce, (atlas_type)r->type);
    for (h->row_in_hand = 0; h->row_in_hand < rows; h->row_in_hand++)
      ops_fold_own(&s->folds[i], h->layout, leaf, h, &s->parts[i][h->row_in_hand]);
  }
  for (uint32_t i = 0; i < g->reduction_count; i++)
    for (uint32_t row = 0; is_of_stage(h, i) && h->layout->lanes > 1 && row < rows; row++)
      for (uint32_t p = 0; p < s->parts[i][row].count; p++)
        s->parts[i][row].part[p] = ops_fold_lanes(&s->folds[i], s->parts[i][row].part[p]);
  for (uint32_t i = 0; i < g->reduction_count; i++)
    for (uint32_t row = 0; is_of_stage(h, i) && row < rows; row++) {
      ops_held result = ops_fold_parts(&s->folds[i], h->layout, &s->parts[i][row]);
      if (!row_is_place(&g->reductions[i])) result = ops_own(&s->folds[i], result);
      s->results[i][row] = result;
      if (!row_is_place(&g->reductions[i])) bind(h, i, row, result.reg);
    }
  if (has_places) find_places(h, s->results, is_last_visit);
}

/* ---- what a row has one of -------------------------------------------------------------------------------------- */

enum { IMPOSSIBLE = 1 << 20 };

/* Instructions that make it of the reductions' results. */
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

/* Of this stage's reductions, and worth an exchange. */
static uint32_t find_row_terms(const held_row *h, row_term *found) {
  const row_group *g = h->g;
  uint32_t rows = h->layout->rows, count = 0;
  if (!g->group->plan->for_gpu || h->layout->lanes < rows || rows < 4) return 0;
  for (uint32_t id = 1; id <= g->terms.terms.count && h->row_term_count + count < MOST_ROW_TERMS; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if (g->stage[id] != h->stage + 1 || term->varies == 0 || varies_by_column(g, id)) continue;
    uint32_t work = work_of(g, id);
    if (work >= IMPOSSIBLE || work < 8 || !is_read_by_columns(g, id)) continue;
    found[count++] = (row_term){.term = id, .kind = term->kind};
  }
  return count;
}

/* Lane i has row i's results of reductions, and terms that it has computed; lanes beyond have row 0's. */
static void take_own_results(held_row *h, uint16_t *own) {
  ops_code *code = &h->code;
  for (uint32_t i = 0; i < h->g->reduction_count; i++) {
    const row_reduction *r = &h->g->reductions[i];
    own[i] = OPS_NO_REGISTER;
    if (r->bound == 0 || r->stage > h->stage) continue;
    atlas_type type = (atlas_type)ops_at(h->g->group->computation, r->value)->type;
    own[i] = ops_register(code);
    atlas_emit(code->builder, ATLAS_OP_mov, type, 2, atlas_reg(own[i]), atlas_reg(h->bound[i][0]));
    for (uint32_t row = 1; row < h->layout->rows; row++) {
      atlas_emit(code->builder, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(ROW_IS_FOUND),
                 atlas_reg(ATLAS_REG_BLOCK_LANE), atlas_bits(row));
      atlas_emit(code->builder, ATLAS_OP_sel, type, 4, atlas_reg(own[i]), atlas_pred(ROW_IS_FOUND),
                 atlas_reg(h->bound[i][row]), atlas_reg(own[i]));
    }
    code->registers[r->bound] = own[i];
  }
  for (uint32_t i = 0; i < h->row_term_count; i++) {
    const row_term *term = &h->row_terms[i];
    uint16_t reg = own[h->g->reduction_count + i] = ops_register(code);
    atlas_emit(code->builder, ATLAS_OP_lds, (atlas_type)ops_term_at(&h->g->terms, term->term)->type, 2, atlas_reg(reg),
               atlas_mem_reg(term->symbol, ATLAS_REG_BLOCK_LANE, 0));
    code->registers[term->term] = reg;
  }
}

/* A lane computes them for its row; by way of shared memory all lanes have those of all rows. */
static void compute_row_terms(held_row *h) {
  ops_code *code = &h->code;
  row_term *found = &h->row_terms[h->row_term_count];
  uint32_t count = find_row_terms(h, found);
  if (count == 0) return;
  uint16_t own[ROWS_MOST_REDUCTIONS + MOST_ROW_TERMS];
  memset(own, 0xff, sizeof own);
  take_own_results(h, own);
  for (uint32_t i = 0; i < count; i++) {
    ops_term *term = ops_term_at(&h->g->terms, found[i].term);
    found[i].symbol = atlas_builder_shared(code->builder, (char[]){'w', (char)('a' + h->row_term_count + i), '\0'},
                                           (atlas_type)term->type, h->layout->lanes);
    atlas_emit(code->builder, ATLAS_OP_sts, (atlas_type)term->type, 2,
               atlas_mem_reg(found[i].symbol, ATLAS_REG_BLOCK_LANE, 0), atlas_reg(ops_value(code, found[i].term)));
  }
  forget(h);
  for (uint32_t i = 0; i < h->g->reduction_count + h->row_term_count; i++) ops_register_free(code, own[i]);
  atlas_emit(code->builder, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  for (uint32_t i = 0; i < count; i++) {
    ops_term *term = ops_term_at(&h->g->terms, found[i].term);
    for (uint32_t row = 0; row < h->layout->rows; row++) {
      found[i].value[row] = ops_register(code);
      atlas_emit(code->builder, ATLAS_OP_lds, (atlas_type)term->type, 2, atlas_reg(found[i].value[row]),
                 atlas_mem(found[i].symbol, row));
    }
    term->kind = TERM_BOUND; /* the register is the writer's */
  }
  h->row_term_count += count;
}

/* ---- results --------------------------------------------------------------------------------------------------- */

static ops_held result_at(void *context, const row_result *result, uint32_t element) {
  held_row *h = context;
  const row_group *g = h->g;
  uint32_t last = 0;
  for (uint32_t i = 0; i < g->result_count; i++)
    if (g->results[i].is_full && g->results[i].stage == h->stage) last = i;
  h->is_last_visit = result == &g->results[last];
  return value_at(h, result->term, element);
}

static void set_element_of(void *context, uint32_t element) { set_element(context, element); }

/* Of a lane whose chunk may be none of the row's: one test for all of its columns. */
static void store_chunk(held_row *h) {
  row_storing storing = {h, result_at, set_element_of};
  atlas_builder *b = h->code.builder;
  uint32_t absent = atlas_builder_label(b, NULL);
  if (h->whole_loads == 0) atlas_emit_branch(b, ROW_IS_THERE, 1, absent);
  for (uint32_t load = 0; load < h->layout->loads; load++)
    ops_row_store_load(h->g, &h->code, &storing, load, h->layout->wide, h->stage, 0);
  atlas_builder_place(b, absent);
}

/* A row's full results of this stage. The last block may have fewer rows than others. */
static void store_row(held_row *h, uint32_t row) {
  row_storing storing = {h, result_at, set_element_of};
  atlas_builder *b = h->code.builder;
  int some = h->g->rows % h->layout->rows != 0 && row > 0;
  if (some)
    atlas_emit(b, ATLAS_OP_set_lt, h->code.index_type, 3, atlas_pred(ROW_EXISTS), atlas_reg(h->number[row]),
               ops_scalar_of(&h->code, h->code.index_type, h->g->rows));
  for (uint32_t load = 0; load < h->layout->loads; load++) {
    int tests = load >= h->whole_loads ? 1 + ROW_IS_THERE : 0;
    if (some && tests) {
      atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(IS_STORED), atlas_pred(ROW_EXISTS),
                 atlas_pred(ROW_IS_THERE));
      tests = 1 + IS_STORED;
    } else if (some) tests = 1 + ROW_EXISTS;
    ops_row_store_load(h->g, &h->code, &storing, row * h->layout->loads + load, h->layout->wide, h->stage, tests);
  }
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

static void begin_rows(held_row *h) {
  ops_code *code = &h->code;
  atlas_builder *b = code->builder;
  uint32_t rows = h->layout->rows;
  uint16_t first = ops_register(code);
  if (h->layout->lanes == 1)
    atlas_emit2(b, ATLAS_OP_cvt, code->index_type, ATLAS_u64, atlas_reg(first), atlas_reg(ATLAS_REG_LANE));
  else atlas_emit2(b, ATLAS_OP_cvt, code->index_type, ATLAS_u32, atlas_reg(first), atlas_reg(ATLAS_REG_BLOCK_INDEX));
  if (rows > 1) atlas_emit(b, ATLAS_OP_mul, code->index_type, 3, atlas_reg(first), atlas_reg(first), atlas_bits(rows));
  for (uint32_t row = 0; row < rows; row++) {
    uint16_t number = h->number[row] = row == 0 ? first : ops_register(code);
    if (row > 0) {
      atlas_emit(b, ATLAS_OP_add, code->index_type, 3, atlas_reg(number), atlas_reg(first), atlas_bits(row));
      if (h->g->rows % rows != 0) { /* rows that there are not are the last one once more */
        number = ops_register(code);
        atlas_emit(b, ATLAS_OP_min, code->index_type, 3, atlas_reg(number), atlas_reg(h->number[row]),
                   ops_scalar_of(code, code->index_type, h->g->rows - 1));
      }
    }
    ops_row_coordinates(h->g, code, number);
    memcpy(h->row[row], code->variable, h->g->row_rank * sizeof code->variable[0]);
  }
}

/* The lane's first column in the chunk of its x. */
static void begin_chunk(held_row *h) {
  ops_code *code = &h->code;
  uint16_t x = ops_launch_coordinate(code, ATLAS_COORD_LANE_X), y = ops_launch_coordinate(code, ATLAS_COORD_LANE_Y);
  uint16_t chunk = ops_index_of(code, x);
  uint64_t chunks = h->g->columns / OPS_CHUNK;
  h->base = h->tail = ops_index_of(code, y);
  h->whole_loads = h->layout->loads;
  if (chunks < h->layout->chunks) { /* the last one once more */
    h->whole_loads = 0;
    atlas_emit(code->builder, ATLAS_OP_set_lt, code->index_type, 3, atlas_pred(ROW_IS_THERE), atlas_reg(chunk),
               ops_scalar_of(code, code->index_type, chunks));
    atlas_emit(code->builder, ATLAS_OP_min, code->index_type, 3, atlas_reg(chunk), atlas_reg(chunk),
               ops_scalar_of(code, code->index_type, chunks - 1));
  }
  atlas_emit(code->builder, ATLAS_OP_mad, code->index_type, 4, atlas_reg(h->base), atlas_reg(chunk),
             atlas_bits(OPS_CHUNK), atlas_reg(h->base));
  const uint16_t done[] = {x, y, chunk};
  for (int i = 0; i < 3; i++) ops_register_free(code, done[i]);
}

static void begin_columns(held_row *h) {
  ops_code *code = &h->code;
  atlas_builder *b = code->builder;
  const ops_layout *l = h->layout;
  uint32_t step = l->lanes * l->wide;
  if (l->chunks > 0) {
    begin_chunk(h);
    return;
  }
  h->whole_loads = (uint32_t)(h->g->columns / step);
  if (l->lanes == 1) {
    h->base = ops_register(code);
    atlas_emit(b, ATLAS_OP_movi, code->index_type, 2, atlas_reg(h->base), atlas_bits(0));
    return;
  }
  h->base = ops_index_of(code, ATLAS_REG_BLOCK_LANE);
  if (l->wide > 1)
    atlas_emit(b, ATLAS_OP_mul, code->index_type, 3, atlas_reg(h->base), atlas_reg(h->base), atlas_bits(l->wide));
  if (h->whole_loads == l->loads) return;
  uint64_t left = h->g->columns - (uint64_t)h->whole_loads * step;
  h->tail = ops_register(code);
  atlas_emit(b, ATLAS_OP_min, code->index_type, 3, atlas_reg(h->tail), atlas_reg(h->base),
             ops_scalar_of(code, code->index_type, left - l->wide));
  atlas_emit(b, ATLAS_OP_set_lt, code->index_type, 3, atlas_pred(ROW_IS_THERE), atlas_reg(h->base),
             ops_scalar_of(code, code->index_type, left));
}

/* What a row has one of: lane i has row i's, all at once. */
static void finish(held_row *h) {
  ops_code *code = &h->code;
  atlas_builder *b = code->builder;
  row_group *g = h->g;
  uint32_t rows = h->layout->rows, count = 0;
  for (uint32_t i = 0; i < g->result_count; i++) count += !g->results[i].is_full;
  if (count == 0) return;
  set_row(h, 0);
  if (rows <= 1) {
    ops_row_finish(g, code, h->layout->lanes > 1);
    return;
  }
  uint16_t results[ROWS_MOST_REDUCTIONS + MOST_ROW_TERMS];
  take_own_results(h, results);
  uint16_t own = ops_index_of(code, ATLAS_REG_BLOCK_LANE);
  uint32_t done = atlas_builder_label(b, NULL);
  atlas_emit(b, ATLAS_OP_set_ge, code->index_type, 3, atlas_pred(0), atlas_reg(own), atlas_bits(rows));
  atlas_emit_branch(b, 0, 0, done);
  atlas_emit(b, ATLAS_OP_add, code->index_type, 3, atlas_reg(own), atlas_reg(own), atlas_reg(h->number[0]));
  if (g->rows % rows != 0) {
    atlas_emit(b, ATLAS_OP_set_ge, code->index_type, 3, atlas_pred(0), atlas_reg(own),
               ops_scalar_of(code, code->index_type, g->rows));
    atlas_emit_branch(b, 0, 0, done);
  }
  ops_row_coordinates(g, code, own);
  ops_row_finish(g, code, 0);
  atlas_builder_place(b, done);
}

/* What is the same in all rows is computed in front of branches. */
static void hoist(held_row *h) {
  for (uint32_t id = 1; id <= h->g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&h->g->terms, id);
    if (term->varies == 0 && h->g->stage[id] == 0 && term->kind != TERM_BOUND && term->kind != TERM_CONSTANT)
      ops_value(&h->code, id);
  }
}

static void write_stages(held_row *h, stage_parts *parts) {
  row_group *g = h->g;
  for (h->stage = 0; h->stage < g->stage_count; h->stage++) {
    int stores = 0, reduces = 0;
    for (uint32_t i = 0; i < g->result_count; i++) stores |= g->results[i].is_full && g->results[i].stage == h->stage;
    for (uint32_t i = 0; i < g->reduction_count; i++) reduces |= is_of_stage(h, i);
    if (reduces) reduce_stage(h, parts, !stores);
    if (stores && h->layout->chunks > 0) store_chunk(h);
    else for (uint32_t row = 0; stores && row < h->layout->rows; row++) store_row(h, row);
    if (reduces) compute_row_terms(h);
  }
  finish(h);
}

static hg_status write_program(held_row *h, stage_parts *parts, ops_step *step) {
  const ops_layout *layout = h->layout;
  HG_TRY(ops_row_code_begin(h->g, &h->code, step, "rows"));
  if (layout->chunks > 0) atlas_builder_block(h->code.builder, layout->chunks, layout->lanes, 1);
  else if (layout->lanes > 1) atlas_builder_block(h->code.builder, layout->lanes, 1, 1);
  begin_rows(h);
  begin_columns(h);
  if (layout->rows > 1 || layout->chunks > 0) hoist(h);
  write_stages(h, parts);
  return ops_code_end(&h->code);
}

hg_status ops_rows_held(row_group *g, ops_step *step, const ops_layout *layout) {
  const hg_allocator *allocator = &g->group->plan->allocator;
  held_row *h = hg_allocate(allocator, 1, sizeof *h);
  stage_parts *parts = hg_allocate(allocator, 1, sizeof *parts);
  uint32_t count = g->held_count * elements_of(layout) * layout->rows;
  uint16_t *held = hg_allocate(allocator, count + 1, sizeof *held);
  hg_status status = HG_OK;
  if (h == NULL || parts == NULL || held == NULL) status = hg_fail_memory("the registers of a row", count);
  if (status == HG_OK) {
    h->g = g, h->layout = layout, h->held = held;
    memset(held, 0xff, count * sizeof *held);
    memset(h->bound, 0xff, sizeof h->bound);
    status = write_program(h, parts, step);
    for (uint32_t i = 0; i < h->row_term_count; i++)
      ops_term_at(&g->terms, h->row_terms[i].term)->kind = h->row_terms[i].kind;
  }
  hg_release(allocator, h);
  hg_release(allocator, parts);
  hg_release(allocator, held);
  step->kind = "rows";
  if (layout->lanes == 1) {
    step->lanes = g->rows;
    return status;
  }
  step->grid[0] = (uint32_t)((g->rows + layout->rows - 1) / layout->rows), step->grid[1] = step->grid[2] = 1;
  step->block[0] = layout->lanes, step->block[1] = step->block[2] = 1;
  if (layout->chunks > 0) step->block[0] = layout->chunks, step->block[1] = layout->lanes;
  return status;
}

/* ---- its shape ------------------------------------------------------------------------------------------------- */

/* Bytes of a column that are loaded beside the first: all loads go out before anything is computed, so that registers
 * have them, too, by the side of what is held. */
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

/* 1 if a function is computed of every column. */
static int has_functions(const row_group *g) {
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if (term->kind == TERM_POINTWISE && varies_by_column(g, id) && atlas_op_flags(term->op) & ATLAS_FUNC) return 1;
  }
  return 0;
}

/* Lanes for so many columns of words held: the fastest on an H200 of those that were tried, with 16 to 32 words a lane.
 * A warp needs no barrier; two neighbours have half the exchanges of four; of more than 32 words a lane registers leave
 * room for few warps. A GPU starts some 1.6 blocks a nanosecond: of short rows a block has so many that they make up
 * 1024 columns; where nothing is held, two neighbours of a short row are half the loads. Rows of up to 16 a lane has
 * by itself. Where memory is not all that takes the time, since elements are small and a function is computed of each,
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

/* Up to four columns a lane are straight-line code, and up to four short rows. Of a row with a tail, all of whose
 * vectors have masks, a lane has up to sixteen columns, so that the tail is short; but where there is no straight-line
 * code anyway, for its length or for functions of the row's results. Zen 4, us at 512K f32, with four and sixteen:
 * layer norm of rows of 300 214 and 118, of 1000 112 and 98, of 3000 196 and 105; softmax of 300 418 and 242. */
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

/* A warp has a chunk by itself, 128 columns a lane, and only the chunks' results are exchanged: so few that a block may
 * be spread over several multiprocessors, whose registers hold it together (backend/gpu/along_y.c). Of the warps a
 * quarter at most has none; they compute the last chunk for nothing. H200, 2^28 f32, softmax and layer_norm, rows of
 * 65536: 744 and 652 us (32 columns a lane and neighbour: 1199 and 1252); of 131072: 770 and 660 (rows_shared.c: 976
 * and 847); softmax of 98304: 940 (1078), of 40960: 1041 (765). */
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
      .lanes = WARP, .wide = 1, .loads = OPS_CHUNK / WARP, .rows = 1, .chunks = (uint32_t)chunks};
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
  uint32_t step = layout->lanes * layout->wide;
  layout->loads = (uint32_t)((g->columns + step - 1) / step);
  uint64_t chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  return layout->loads * layout->wide * words <= OPS_HELD_LANE_WORDS && chunks * layout->wide <= OPS_MOST_PARTS;
}
