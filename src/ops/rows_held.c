/* rows_held.c - a block holds a row in its registers. See row_group.h.
 *
 * A lane has `wide` neighbouring columns of every lanes * wide, so that a load can be 16 bytes. Of the last load, which
 * may reach beyond the row, lanes that have nothing read the row's last columns once more: no branch keeps the loads
 * from going out together; what they read is replaced by what changes nothing, and is not stored. The sizes of such a
 * tail are scalars: rows that have as many loads share a program. */
#include "ops/row_group.h"

#include "atlas/value.h"

#include <string.h>

enum { NOWHERE = 1 << 30 };

typedef struct held_row {
  row_group *g;
  ops_code code;
  const ops_layout *layout;
  uint32_t whole_loads; /* that need no test */
  uint16_t base, tail;  /* the lane's first column, of whole loads and of the last */
  uint16_t *held;       /* registers by g->held and element */
  uint32_t stage;
  int is_last_visit; /* what this stage is the last to use need not be held any longer */
  const row_reduction *reduction;
  ops_fold fold;
} held_row;

static uint32_t elements_of(const ops_layout *layout) { return layout->loads * layout->wide; }

static int is_in_tail(const held_row *h, uint32_t element) { return element / h->layout->wide >= h->whole_loads; }

static void set_element(held_row *h, uint32_t element) {
  row_set_column(h->g, &h->code, is_in_tail(h, element) ? h->tail : h->base, ops_column(h->layout, element));
}

static uint16_t *held_register(held_row *h, uint32_t i, uint32_t element) {
  return &h->held[i * elements_of(h->layout) + element];
}

/* A term's value at an element. */
static ops_held value_at(held_row *h, term_id term, uint32_t element) {
  row_group *g = h->g;
  ops_code *code = &h->code;
  set_element(h, element);
  for (uint32_t i = 0; i < g->held_count; i++)
    if (*held_register(h, i, element) != OPS_NO_REGISTER) code->registers[g->held[i]] = *held_register(h, i, element);
  ops_held result = {ops_value(code, term), (uint8_t)varies_by_column(g, term)};
  for (uint32_t i = 0; i < g->held_count; i++) {
    term_id id = g->held[i];
    if (code->registers[id] == OPS_NO_REGISTER) continue;
    int is_kept = !h->is_last_visit || g->last_use[id] > h->stage;
    *held_register(h, i, element) = is_kept ? code->registers[id] : OPS_NO_REGISTER;
    if (is_kept) code->registers[id] = OPS_NO_REGISTER;
    if (is_kept && id == term) result.is_own = 0;
  }
  if (result.is_own) code->registers[term] = OPS_NO_REGISTER;
  row_forget(g, code);
  return result;
}

/* ---- reductions ------------------------------------------------------------------------------------------------ */

static ops_held leaf(void *context, uint32_t element) {
  held_row *h = context;
  ops_held value = value_at(h, h->reduction->input, element);
  if (!is_in_tail(h, element)) return value;
  ops_held there = value.is_own ? value : (ops_held){ops_register(&h->code), 1};
  atlas_emit(h->code.builder, ATLAS_OP_sel, (atlas_type)h->fold.type, 4, atlas_reg(there.reg), atlas_pred(ROW_IS_THERE),
             atlas_reg(value.reg), atlas_bits(h->fold.identity));
  return there;
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
  for (uint32_t e = elements_of(h->layout); e-- > 0;) {
    ops_held at = value_at(h, r->input, e);
    atlas_emit(b, ATLAS_OP_set_eq, type, 3, found, atlas_reg(at.reg), atlas_reg(value));
    if (is_float(r->type)) {
      atlas_emit(b, ATLAS_OP_set_nan, type, 3, nan, atlas_reg(at.reg), atlas_reg(at.reg));
      atlas_emit(b, ATLAS_OP_por, ATLAS_NONE, 3, found, found, nan);
    }
    if (is_in_tail(h, e)) atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, found, found, atlas_pred(ROW_IS_THERE));
    ops_give_back(&h->code, at);
    ops_held known = r->place != 0 ? value_at(h, r->place, e) : (ops_held){0, 0};
    atlas_operand own = r->place != 0 ? atlas_reg(known.reg) : atlas_bits(ops_column(h->layout, e));
    atlas_emit(b, ATLAS_OP_sel, index, 4, atlas_reg(place), found, own, atlas_reg(place));
    ops_give_back(&h->code, known);
  }
  if (r->place != 0) return place;
  uint16_t own = row_index_of(&h->code, ATLAS_REG_BLOCK_LANE);
  atlas_emit(b, ATLAS_OP_mad, index, 4, atlas_reg(place), atlas_reg(own), atlas_bits(h->layout->wide),
             atlas_reg(place));
  ops_register_free(&h->code, own);
  return place;
}

static void bind(held_row *h, const row_reduction *r, uint16_t reg) {
  if (r->bound != 0) h->code.registers[r->bound] = reg;
  else ops_register_free(&h->code, reg);
}

/* Places: of all reductions of the stage that ask for one, whose extremes are known. */
static void find_places(held_row *h, const ops_held *extremes, int is_last_visit) {
  uint16_t places[ROWS_MOST_REDUCTIONS];
  row_group *g = h->g;
  uint32_t last = 0;
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (g->reductions[i].stage == h->stage && row_is_place(&g->reductions[i])) last = i;
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    h->reduction = &g->reductions[i];
    if (h->reduction->stage != h->stage || !row_is_place(h->reduction)) continue;
    h->is_last_visit = is_last_visit && i == last;
    places[i] = place_in_lane(h, extremes[i].reg);
    ops_give_back(&h->code, extremes[i]);
  }
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    const row_reduction *r = &g->reductions[i];
    if (r->stage != h->stage || !row_is_place(r)) continue;
    uint16_t reg = places[i];
    atlas_type index = r->place != 0 ? ATLAS_i64 : h->code.index_type;
    atlas_type type = (atlas_type)ops_at(g->group->computation, r->value)->type;
    atlas_emit(h->code.builder, ATLAS_OP_reduce_min, index, 2, atlas_reg(reg), atlas_reg(reg));
    if (type != index) atlas_emit2(h->code.builder, ATLAS_OP_cvt, type, index, atlas_reg(reg), atlas_reg(reg));
    bind(h, r, reg);
  }
}

/* All reductions of the stage: what lanes have by themselves first, then their exchanges side by side. */
static hg_status reduce_stage(held_row *h, int is_last_visit) {
  row_group *g = h->g;
  ops_parts *parts = hg_allocate(&g->group->plan->allocator, ROWS_MOST_REDUCTIONS, sizeof *parts);
  if (parts == NULL) return hg_fail_memory("a row's reductions", sizeof *parts);
  ops_fold folds[ROWS_MOST_REDUCTIONS];
  ops_held results[ROWS_MOST_REDUCTIONS];
  uint32_t last = 0;
  int has_places = 0;
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (g->reductions[i].stage == h->stage) last = i, has_places |= row_is_place(&g->reductions[i]);
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    const row_reduction *r = h->reduction = &g->reductions[i];
    if (r->stage != h->stage) continue;
    h->is_last_visit = is_last_visit && i == last && !has_places;
    h->fold = folds[i] = ops_fold_of(&h->code, r->reduce, (atlas_type)r->type);
    ops_fold_own(&folds[i], h->layout, leaf, h, &parts[i]);
  }
  for (uint32_t i = 0; i < g->reduction_count; i++)
    for (uint32_t p = 0; g->reductions[i].stage == h->stage && p < parts[i].count; p++)
      parts[i].part[p] = ops_fold_lanes(&folds[i], parts[i].part[p]);
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    const row_reduction *r = &g->reductions[i];
    if (r->stage != h->stage) continue;
    results[i] = ops_fold_parts(&folds[i], h->layout, &parts[i]);
    if (!row_is_place(r)) bind(h, r, results[i].reg);
  }
  if (has_places) find_places(h, results, is_last_visit);
  hg_release(&g->group->plan->allocator, parts);
  return HG_OK;
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

/* ---- the program ----------------------------------------------------------------------------------------------- */

static void begin_columns(held_row *h) {
  ops_code *code = &h->code;
  atlas_builder *b = code->builder;
  const ops_layout *l = h->layout;
  uint32_t step = l->lanes * l->wide;
  h->whole_loads = (uint32_t)(h->g->columns / step);
  h->base = row_index_of(code, ATLAS_REG_BLOCK_LANE);
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

static hg_status write_stages(held_row *h) {
  row_group *g = h->g;
  for (h->stage = 0; h->stage < g->stage_count; h->stage++) {
    int stores = 0, reduces = 0;
    for (uint32_t i = 0; i < g->result_count; i++) stores |= g->results[i].is_full && g->results[i].stage == h->stage;
    for (uint32_t i = 0; i < g->reduction_count; i++) reduces |= g->reductions[i].stage == h->stage;
    if (reduces) HG_TRY(reduce_stage(h, !stores));
    row_storing storing = {h, result_at, set_element_of};
    for (uint32_t load = 0; stores && load < h->layout->loads; load++)
      row_store_load(g, &h->code, &storing, load, h->layout->wide, h->stage, load >= h->whole_loads);
  }
  row_finish(g, &h->code);
  return HG_OK;
}

hg_status rows_held(row_group *g, ops_step *step, const ops_layout *layout) {
  const hg_allocator *allocator = &g->group->plan->allocator;
  held_row h = {.g = g, .layout = layout};
  uint32_t count = g->held_count * elements_of(layout);
  h.held = hg_allocate(allocator, count + 1, sizeof *h.held);
  if (h.held == NULL) return hg_fail_memory("the registers of a row", count * sizeof *h.held);
  memset(h.held, 0xff, count * sizeof *h.held);
  hg_status status = ops_code_begin(&h.code, &g->terms, step, "rows");
  if (status == HG_OK) {
    atlas_builder_block(h.code.builder, layout->lanes, 1, 1);
    row_coordinates(g, &h.code, row_index_of(&h.code, ATLAS_REG_BLOCK_INDEX));
    begin_columns(&h);
    status = write_stages(&h);
    if (status == HG_OK) status = ops_code_end(&h.code);
    else ops_code_drop(&h.code);
  }
  hg_release(allocator, h.held);
  step->grid[0] = (uint32_t)g->rows, step->grid[1] = step->grid[2] = 1;
  step->block[0] = layout->lanes, step->block[1] = step->block[2] = 1;
  step->kind = "rows";
  return status;
}

/* ---- its shape ------------------------------------------------------------------------------------------------- */

/* Lanes for so many columns of words held: the fastest on an H200 of those that were tried. A warp needs no barrier;
 * two neighbours have half the exchanges of four; of more than 32 words a lane registers leave room for few warps. */
static void shape_for_gpu(const row_group *g, uint64_t columns, ops_layout *layout) {
  uint64_t words = columns * (g->most_held == 0 ? 1 : g->most_held);
  uint32_t bytes = row_element_bytes(g), lanes = 32;
  uint32_t most = lanes;
  if (words > 512) most = bytes >= 4 ? 64 : 32;
  if (words > 1024) most = 128;
  if (words > 4096) most = 256;
  if (words > 8192) most = 512;
  if (words > 16384) most = 1024;
  while (lanes < most && lanes < columns) lanes *= 2;
  uint32_t wide = bytes == 8 ? 2 : lanes >= 512 ? 2 : 4;
  while (wide > 1 && (uint64_t)lanes * wide > columns) wide /= 2;
  layout->lanes = lanes;
  layout->wide = row_neighbours(g, wide);
}

static void shape_for_processor(uint64_t columns, ops_layout *layout) {
  layout->lanes = 16;
  while (layout->lanes < 256 && layout->lanes < columns) layout->lanes *= 2;
  while (layout->lanes < 1024 && columns > 16 * (uint64_t)layout->lanes) layout->lanes *= 2;
  layout->wide = 1;
}

int rows_held_layout(const row_group *g, ops_layout *layout) {
  enum { MOST_COLUMNS = 65536, MOST_WORDS = 96 };
  if (g->columns > MOST_COLUMNS || g->rows > INT32_MAX) return 0;
  if (g->group->plan->for_gpu) shape_for_gpu(g, g->columns, layout);
  else shape_for_processor(g->columns, layout);
  uint32_t step = layout->lanes * layout->wide;
  layout->loads = (uint32_t)((g->columns + step - 1) / step);
  uint32_t words = g->most_held == 0 ? 1 : g->most_held;
  uint64_t chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  return layout->loads * layout->wide * words <= MOST_WORDS && chunks * layout->wide <= OPS_MOST_PARTS;
}
