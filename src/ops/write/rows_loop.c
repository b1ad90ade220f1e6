/* rows_loop.c - rows in loops over chunks: a block goes over its row once for each stage. See row_group.h.
 *
 * A round folds a chunk of 4096 columns and its last chunk is one with tests. The results of chunks fold last, so lane
 * i keeps that of chunk i, and the lanes' fold after the loop is order F over them. Where order does not matter a lane
 * keeps what it has, and nothing is exchanged within the loop. */
#include "ops/write/row_group.h"
#include "ops/graph/ops_tuning.h"

#include "atlas/value.h"

#include <string.h>

typedef struct loop_row {
  row_group *g;
  ops_code code;
  ops_layout layout; /* of a chunk */
  uint16_t base;     /* the lane's first column of the chunk */
  uint16_t own;      /* its first of the row */
  uint16_t first;    /* the chunk's first; OPS_NO_REGISTER */
  uint16_t chunk;    /* its number, u32 */
  uint16_t column;   /* of a load that may reach beyond the row; OPS_NO_REGISTER */
  int tests;         /* this chunk is not a whole one */
  uint32_t whole_loads; /* of such a chunk: loads that need no test all the same */
  int is_part;       /* the block has this chunk alone */
  uint32_t stage;
  const row_reduction *reduction;
  ops_fold fold;
  uint16_t kept[ROWS_MOST_REDUCTIONS];  /* by reduction: what the lane has so far */
  uint16_t place[ROWS_MOST_REDUCTIONS]; /* and its column, where that is asked for */
} loop_row;

static atlas_operand index_scalar(loop_row *l, uint64_t value) {
  return ops_scalar_of(&l->code, l->code.index_type, value);
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

static int is_tested(const loop_row *l, uint32_t element) {
  return l->tests && element / l->layout.wide >= l->whole_loads;
}

static void set_element(loop_row *l, uint32_t element) {
  if (is_tested(l, element)) ops_row_set_tested_column(l->g, &l->code, l->column, l->base, &l->layout, element);
  else ops_row_set_column(l->g, &l->code, l->base, ops_column(&l->layout, element));
}

static ops_held value_at(loop_row *l, term_id term, uint32_t element) {
  set_element(l, element);
  ops_held value = {ops_value(&l->code, term), (uint8_t)varies_by_column(l->g, term)};
  if (value.is_own) l->code.registers[term] = OPS_NO_REGISTER;
  ops_row_forget(l->g, &l->code);
  return value;
}

static ops_held leaf(void *context, uint32_t element) {
  loop_row *l = context;
  ops_held value = value_at(l, l->reduction->input, element);
  return is_tested(l, element) ? ops_fold_where(&l->fold, ROW_IS_THERE, value) : value;
}

/* ---- chunks ---------------------------------------------------------------------------------------------------- */

static int is_of_stage(const loop_row *l, uint32_t i) { return l->g->reductions[i].stage == l->stage; }

static atlas_type place_type(const loop_row *l, const row_reduction *r) {
  return r->place != 0 ? ATLAS_i64 : l->code.index_type;
}

static int64_t beyond_all(atlas_type index) { return index == ATLAS_i64 ? INT64_MAX : INT32_MAX; }

/* What a lane begins with. Columns come in their order, so a lane whose values are all the identity has its first one;
 * the places of parts are not known before they are read. */
static void begin_place(loop_row *l, uint32_t i, uint16_t first) {
  const row_reduction *r = &l->g->reductions[i];
  atlas_type index = place_type(l, r);
  l->place[i] = ops_register(&l->code);
  if (r->place != 0)
    atlas_emit(l->code.builder, ATLAS_OP_movi, index, 2, atlas_reg(l->place[i]),
               atlas_int_const(index, beyond_all(index)));
  else atlas_emit(l->code.builder, ATLAS_OP_mov, index, 2, atlas_reg(l->place[i]), atlas_reg(first));
}

/* The column of an element, or what is stored as the place of a part. */
static ops_held place_at(loop_row *l, const row_reduction *r, uint32_t element) {
  if (r->place != 0) return value_at(l, r->place, element);
  ops_held column = {ops_register(&l->code), 1};
  atlas_emit(l->code.builder, ATLAS_OP_add, l->code.index_type, 3, atlas_reg(column.reg), atlas_reg(l->base),
             atlas_bits(ops_column(&l->layout, element)));
  return column;
}

/* The first of a lane's columns that has the greatest so far: they come in their order. */
static void keep_places(loop_row *l, uint32_t i) {
  enum { IN_FRONT = 3 };
  atlas_builder *b = l->code.builder;
  const row_reduction *r = l->reduction;
  atlas_type type = (atlas_type)r->type, index = place_type(l, r);
  int is_float = atlas_kind(type) == ATLAS_KIND_FLOAT;
  atlas_operand found = atlas_pred(ROW_IS_FOUND), nan = atlas_pred(ROW_IS_NAN), kept = atlas_reg(l->kept[i]);
  atlas_operand at = atlas_reg(l->place[i]), in_front = atlas_pred(IN_FRONT);
  for (uint32_t e = 0; e < l->layout.loads * l->layout.wide; e++) {
    ops_held value = leaf(l, e), place = place_at(l, r, e);
    atlas_op better = r->reduce == OPS_ARGMAX ? ATLAS_OP_set_gt : ATLAS_OP_set_lt;
    atlas_emit(b, better, type, 3, found, atlas_reg(value.reg), kept);
    if (r->place != 0) { /* the identity itself may be what is looked for */
      atlas_emit(b, ATLAS_OP_set_eq, type, 3, nan, atlas_reg(value.reg), kept);
      atlas_emit(b, ATLAS_OP_set_lt, index, 3, in_front, atlas_reg(place.reg), at);
      atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, in_front, in_front, nan);
      atlas_emit(b, ATLAS_OP_por, ATLAS_NONE, 3, found, found, in_front);
    }
    if (is_float) {
      atlas_emit(b, ATLAS_OP_set_nan, type, 3, nan, atlas_reg(value.reg), atlas_reg(value.reg));
      atlas_emit(b, ATLAS_OP_por, ATLAS_NONE, 3, found, found, nan);
      atlas_emit(b, ATLAS_OP_set_num, type, 3, nan, kept, kept);
      atlas_emit(b, ATLAS_OP_pand, ATLAS_NONE, 3, found, found, nan);
    }
    atlas_emit(b, ATLAS_OP_sel, type, 4, kept, found, atlas_reg(value.reg), kept);
    atlas_emit(b, ATLAS_OP_sel, index, 4, at, found, atlas_reg(place.reg), at);
    ops_give_back(&l->code, value);
    ops_give_back(&l->code, place);
  }
}

/* Lane `chunk` keeps the chunk's result. */
static void keep_chunk(loop_row *l, uint32_t i, ops_held result) {
  if (l->is_part) {
    atlas_emit(l->code.builder, ATLAS_OP_mov, (atlas_type)l->g->reductions[i].type, 2, atlas_reg(l->kept[i]),
               atlas_reg(result.reg));
    ops_give_back(&l->code, result);
    return;
  }
  atlas_emit(l->code.builder, ATLAS_OP_set_eq, ATLAS_u32, 3, atlas_pred(ROW_IS_FOUND), atlas_reg(ATLAS_REG_BLOCK_LANE),
             atlas_reg(l->chunk));
  atlas_emit(l->code.builder, ATLAS_OP_sel, (atlas_type)l->g->reductions[i].type, 4, atlas_reg(l->kept[i]),
             atlas_pred(ROW_IS_FOUND), atlas_reg(result.reg), atlas_reg(l->kept[i]));
  ops_give_back(&l->code, result);
}

static void reduce_chunk(void *context) {
  loop_row *l = context;
  row_group *g = l->g;
  struct {
    ops_held part[8];
  } parts[ROWS_MOST_REDUCTIONS];
  memset(parts, 0, sizeof parts);
  ops_fold folds[ROWS_MOST_REDUCTIONS];
  uint32_t wide = l->layout.wide;
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    if (!is_of_stage(l, i)) continue;
    const row_reduction *r = l->reduction = &g->reductions[i];
    l->fold = folds[i] = ops_fold_of(&l->code, r->reduce, (atlas_type)r->type);
    if (row_is_place(r)) keep_places(l, i);
    else if (folds[i].is_ordered)
      for (uint32_t w = 0; w < wide; w++)
        parts[i].part[w] = ops_fold_leaves(&folds[i], w, wide, l->layout.loads, leaf, l);
    else {
      ops_held own = ops_fold_leaves(&folds[i], 0, 1, l->layout.loads * wide, leaf, l), kept = {l->kept[i], 1};
      kept = ops_fold_two(&folds[i], kept, own);
      l->kept[i] = kept.reg;
    }
  }
  for (uint32_t i = 0; i < g->reduction_count; i++)
    for (uint32_t w = 0; is_of_stage(l, i) && folds[i].is_ordered && w < wide; w++)
      parts[i].part[w] = ops_fold_lanes(&folds[i], parts[i].part[w]);
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (is_of_stage(l, i) && folds[i].is_ordered) keep_chunk(l, i, ops_fold_values(&folds[i], parts[i].part, wide));
}

static ops_held result_at(void *context, const row_result *result, uint32_t element) {
  return value_at(context, result->term, element);
}

static void set_element_of(void *context, uint32_t element) { set_element(context, element); }

static void store_chunk(void *context) {
  loop_row *l = context;
  row_storing storing = {l, result_at, set_element_of};
  for (uint32_t load = 0; load < l->layout.loads; load++)
    ops_row_store_load(l->g, &l->code, &storing, load, l->layout.wide, ROWS_ALL_STAGES,
                       is_tested(l, load * l->layout.wide) ? 1 + ROW_IS_THERE : 0);
}

/* The lane's first column of a round. A processor has the round's own in one number for all lanes: the elements of a
 * block lie side by side, and one comparison does for all of its loads. */
static void begin_round(loop_row *l) {
  if (l->first == OPS_NO_REGISTER) return;
  atlas_emit(l->code.builder, ATLAS_OP_add, l->code.index_type, 3, atlas_reg(l->base), atlas_reg(l->own),
             atlas_reg(l->first));
}

/* The last columns, fewer than of a round. A GPU's program is that of all rows; a processor's has what there is. */
static void over_rest(loop_row *l, void (*body)(void *), uint64_t columns) {
  uint32_t loads = l->layout.loads, lanes = l->layout.lanes * l->layout.wide;
  l->tests = 1;
  l->whole_loads = l->g->group->plan->for_gpu ? 0 : (uint32_t)(columns / lanes);
  if (!l->g->group->plan->for_gpu) l->layout.loads = (uint32_t)((columns + lanes - 1) / lanes);
  l->column = ops_register(&l->code);
  begin_round(l);
  body(l);
  ops_register_free(&l->code, l->column);
  l->layout.loads = loads;
}

/* All of the row, so many columns after the other as the layout has. */
static void over_chunks(loop_row *l, void (*body)(void *)) {
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  uint64_t step = (uint64_t)l->layout.lanes * l->layout.wide * l->layout.loads, whole = l->g->columns / step;
  ops_row_hoist(l->g, &l->code, l->stage);
  uint16_t rounds = ops_register(code);
  l->own = l->base = ops_index_of(code, ATLAS_REG_BLOCK_LANE);
  l->first = OPS_NO_REGISTER;
  l->chunk = ops_register(code);
  atlas_emit(b, ATLAS_OP_mul, code->index_type, 3, atlas_reg(l->base), atlas_reg(l->base), atlas_bits(l->layout.wide));
  if (!l->g->group->plan->for_gpu) {
    l->first = ops_register(code);
    l->base = ops_register(code);
    atlas_emit(b, ATLAS_OP_movi, code->index_type, 2, atlas_reg(l->first), atlas_bits(0));
  }
  atlas_operand grows = atlas_reg(l->first != OPS_NO_REGISTER ? l->first : l->base);
  atlas_emit(b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(l->chunk), atlas_bits(0));
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(rounds), ops_scalar_of(code, ATLAS_u32, whole));
  uint32_t next = atlas_builder_label(b, NULL);
  atlas_builder_place(b, next);
  l->tests = 0;
  begin_round(l);
  body(l);
  atlas_emit(b, ATLAS_OP_add, code->index_type, 3, grows, grows, atlas_bits(step));
  atlas_emit(b, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(l->chunk), atlas_reg(l->chunk), atlas_bits(1));
  atlas_emit(b, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(rounds), atlas_label_ref(next));
  if (l->g->columns % step != 0) over_rest(l, body, l->g->columns % step);
  ops_register_free(code, rounds);
  ops_register_free(code, l->chunk);
  ops_register_free(code, l->own);
  if (l->first != OPS_NO_REGISTER) {
    ops_register_free(code, l->first);
    ops_register_free(code, l->base);
  }
}

/* ---- stages ---------------------------------------------------------------------------------------------------- */

/* `first`: the lane's first column. */
static void begin_kept(loop_row *l, uint16_t first) {
  for (uint32_t i = 0; i < l->g->reduction_count; i++) {
    if (!is_of_stage(l, i)) continue;
    const row_reduction *r = &l->g->reductions[i];
    ops_fold fold = ops_fold_of(&l->code, r->reduce, (atlas_type)r->type);
    l->kept[i] = ops_register(&l->code);
    atlas_emit(l->code.builder, ATLAS_OP_movi, (atlas_type)r->type, 2, atlas_reg(l->kept[i]),
               atlas_bits(fold.identity));
    if (row_is_place(r)) begin_place(l, i, first);
  }
}

/* Of lanes that have the greatest, or a NaN, the lowest place; others have one beyond all. */
static uint16_t place_of(loop_row *l, uint32_t i, uint16_t greatest) {
  const row_reduction *r = &l->g->reductions[i];
  atlas_builder *b = l->code.builder;
  atlas_type type = (atlas_type)r->type, index = place_type(l, r);
  atlas_operand found = atlas_pred(ROW_IS_FOUND), nan = atlas_pred(ROW_IS_NAN);
  atlas_emit(b, ATLAS_OP_set_eq, type, 3, found, atlas_reg(l->kept[i]), atlas_reg(greatest));
  if (atlas_kind(type) == ATLAS_KIND_FLOAT) {
    atlas_emit(b, ATLAS_OP_set_nan, type, 3, nan, atlas_reg(l->kept[i]), atlas_reg(l->kept[i]));
    atlas_emit(b, ATLAS_OP_por, ATLAS_NONE, 3, found, found, nan);
  }
  atlas_emit(b, ATLAS_OP_sel, index, 4, atlas_reg(l->place[i]), found, atlas_reg(l->place[i]),
             atlas_int_const(index, beyond_all(index)));
  atlas_emit(b, ATLAS_OP_reduce_min, index, 2, atlas_reg(l->place[i]), atlas_reg(l->place[i]));
  atlas_type result = (atlas_type)ops_at(l->g->group->computation, r->value)->type;
  if (result != index) atlas_emit2(b, ATLAS_OP_cvt, result, index, atlas_reg(l->place[i]), atlas_reg(l->place[i]));
  return l->place[i];
}

static void end_kept(loop_row *l) {
  for (uint32_t i = 0; i < l->g->reduction_count; i++) {
    if (!is_of_stage(l, i)) continue;
    const row_reduction *r = &l->g->reductions[i];
    ops_fold fold = ops_fold_of(&l->code, r->reduce, (atlas_type)r->type);
    ops_held all = ops_fold_lanes(&fold, (ops_held){l->kept[i], (uint8_t)!row_is_place(r)});
    uint16_t result = all.reg;
    if (row_is_place(r)) {
      result = place_of(l, i, all.reg);
      ops_give_back(&l->code, all);
      ops_register_free(&l->code, l->kept[i]);
    }
    if (r->bound != 0) l->code.registers[r->bound] = result;
    else ops_register_free(&l->code, result);
  }
}

static void write_stages(loop_row *l) {
  row_group *g = l->g;
  int stores = 0;
  for (uint32_t i = 0; i < g->result_count; i++) stores |= g->results[i].is_full;
  uint16_t first = ops_index_of(&l->code, ATLAS_REG_BLOCK_LANE);
  atlas_emit(l->code.builder, ATLAS_OP_mul, l->code.index_type, 3, atlas_reg(first), atlas_reg(first),
             atlas_bits(l->layout.wide));
  for (l->stage = 0; l->stage + 1 < g->stage_count; l->stage++) {
    begin_kept(l, first);
    over_chunks(l, reduce_chunk);
    end_kept(l);
  }
  ops_register_free(&l->code, first);
  if (stores && !g->group->plan->for_gpu) l->layout.loads = OPS_LOOP_STORE_LOADS;
  if (stores) over_chunks(l, store_chunk);
  ops_row_finish(g, &l->code, 1);
}

/* ---- the program ----------------------------------------------------------------------------------------------- */

static ops_layout chunk_layout(const row_group *g) {
  ops_layout layout = {.lanes = OPS_LOOP_LANES,
                       .wide = g->group->plan->for_gpu ? ops_row_neighbours(g, OPS_LOOP_WIDE) : 1};
  if (ops_row_element_bytes(g) == 8 && layout.wide > 2) layout.wide = 2;
  layout.loads = OPS_CHUNK / (layout.lanes * layout.wide);
  return layout;
}

/* A lane has room for one chunk's result. */
int ops_rows_loop_can(const row_group *g) {
  uint64_t chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  if (g->columns < OPS_CHUNK + (g->group->plan->for_gpu ? 1 : 0)) return 0;
  return chunks <= chunk_layout(g).lanes && g->rows <= INT32_MAX;
}

/* A processor reads a row that its caches hold again in less time than registers take that a frame stands in for, if
 * little is to be computed again, and a chunk's code is short. */
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

static hg_status begin(loop_row **out, row_group *g, ops_step *step, const char *name) {
  loop_row *l = hg_allocate(&g->group->plan->allocator, 1, sizeof *l);
  if (l == NULL) return hg_fail_memory("a loop over rows", sizeof *l);
  l->g = g;
  l->layout = chunk_layout(g);
  hg_status status = ops_row_code_begin(g, &l->code, step, name);
  if (status != HG_OK) {
    hg_release(&g->group->plan->allocator, l);
    return status;
  }
  atlas_builder_block(l->code.builder, l->layout.lanes, 1, 1);
  *out = l;
  return HG_OK;
}

static hg_status end(loop_row *l, ops_step *step, uint64_t blocks) {
  hg_status status = ops_code_end(&l->code);
  step->grid[0] = (uint32_t)blocks, step->grid[1] = step->grid[2] = 1;
  step->block[0] = l->layout.lanes, step->block[1] = step->block[2] = 1;
  step->kind = "rows";
  hg_release(&l->g->group->plan->allocator, l);
  return status;
}

hg_status ops_rows_loop(row_group *g, ops_step *step) {
  loop_row *l = NULL;
  HG_TRY(begin(&l, g, step, "long_rows"));
  ops_row_coordinates(g, &l->code, ops_index_of(&l->code, ATLAS_REG_BLOCK_INDEX));
  write_stages(l);
  return end(l, step, g->rows);
}

/* ---- parts ----------------------------------------------------------------------------------------------------- */

uint32_t ops_row_part_storages(const row_group *g) {
  uint32_t storages = 0;
  for (uint32_t i = 0; i < g->reduction_count; i++) storages += 1u + (uint32_t)row_is_place(&g->reductions[i]);
  return storages;
}

int ops_rows_parts_can(const row_group *g) {
  uint64_t chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  if (g->rows == 0 || g->stage_count != 2 || g->columns <= OPS_CHUNK || chunks > INT32_MAX / g->rows) return 0;
  for (uint32_t i = 0; i < g->result_count; i++)
    if (g->results[i].is_full) return 0;
  return ops_row_part_storages(g) <= ROWS_MOST_PARTS;
}

hg_status ops_row_add_parts(ops_plan *plan, ops_code *code, uint8_t type, uint64_t count, uint32_t *storage) {
  HG_TRY(ops_add_temporary(plan, type, count, storage));
  code->partials[code->partial_count++] = *storage;
  return HG_OK;
}

/* The block's number is row * chunks + chunk. On a processor, where it takes a fair part of a block's time to divide,
 * one row has a program of its own. */
static uint16_t begin_part(loop_row *l, uint64_t chunks) {
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  uint16_t block = ops_index_of(code, ATLAS_REG_BLOCK_INDEX), row = ops_register(code), chunk = ops_register(code);
  if (l->g->rows == 1 && !l->g->group->plan->for_gpu) {
    atlas_emit(b, ATLAS_OP_movi, code->index_type, 2, atlas_reg(row), atlas_bits(0));
    atlas_emit(b, ATLAS_OP_mov, code->index_type, 2, atlas_reg(chunk), atlas_reg(block));
  } else {
    atlas_emit(b, ATLAS_OP_div, code->index_type, 3, atlas_reg(row), atlas_reg(block), index_scalar(l, chunks));
    atlas_emit(b, ATLAS_OP_rem, code->index_type, 3, atlas_reg(chunk), atlas_reg(block), index_scalar(l, chunks));
  }
  ops_row_coordinates(l->g, code, row);
  l->base = ops_index_of(code, ATLAS_REG_BLOCK_LANE);
  atlas_emit(b, ATLAS_OP_mul, code->index_type, 3, atlas_reg(l->base), atlas_reg(l->base), atlas_bits(l->layout.wide));
  atlas_emit(b, ATLAS_OP_mad, code->index_type, 4, atlas_reg(l->base), atlas_reg(chunk), atlas_bits(OPS_CHUNK),
             atlas_reg(l->base));
  l->chunk = chunk;
  return block;
}

/* The last chunk of a row is one with tests. */
static void over_part(loop_row *l, uint64_t chunks, void (*body)(void *)) {
  ops_code *code = &l->code;
  atlas_builder *b = code->builder;
  if (l->g->columns % OPS_CHUNK == 0) {
    body(l);
    return;
  }
  uint32_t last = atlas_builder_label(b, NULL), done = atlas_builder_label(b, NULL);
  atlas_emit(b, ATLAS_OP_set_eq, code->index_type, 3, atlas_pred(ROW_IS_THERE), atlas_reg(l->chunk),
             index_scalar(l, chunks - 1));
  atlas_emit_branch(b, ROW_IS_THERE, 0, last);
  body(l);
  atlas_emit_branch(b, -1, 0, done);
  atlas_builder_place(b, last);
  l->tests = 1;
  l->column = ops_register(code);
  body(l);
  atlas_builder_place(b, done);
}

static void reduce_part(loop_row *l, uint64_t chunks) {
  ops_row_hoist(l->g, &l->code, l->stage);
  begin_kept(l, l->base);
  over_part(l, chunks, reduce_chunk);
}

static void store_part(loop_row *l, uint32_t storage, uint16_t block, atlas_type type, uint16_t value) {
  atlas_emit(l->code.builder, ATLAS_OP_stg, type, 2, atlas_mem_reg(ops_buffer_of(&l->code, storage), block, 0),
             atlas_reg(value));
}

static void end_part(loop_row *l, uint16_t block, const row_parts *parts) {
  ops_code *code = &l->code;
  row_group *g = l->g;
  ops_held results[ROWS_MOST_REDUCTIONS];
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    row_reduction *r = &g->reductions[i];
    ops_fold fold = ops_fold_of(code, r->reduce, (atlas_type)r->type);
    results[i] = (ops_held){l->kept[i], 0};
    if (!fold.is_ordered) results[i] = ops_fold_lanes(&fold, results[i]);
    if (row_is_place(r)) place_of(l, i, results[i].reg);
  }
  uint32_t done = atlas_builder_label(code->builder, NULL);
  atlas_emit(code->builder, ATLAS_OP_set_ne, ATLAS_u32, 3, atlas_pred(0), atlas_reg(ATLAS_REG_BLOCK_LANE),
             atlas_bits(0));
  atlas_emit_branch(code->builder, 0, 0, done);
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    store_part(l, parts->values[i], block, (atlas_type)g->reductions[i].type, results[i].reg);
    if (row_is_place(&g->reductions[i])) store_part(l, parts->places[i], block, ATLAS_i64, l->place[i]);
  }
  atlas_builder_place(code->builder, done);
}

hg_status ops_rows_parts(row_group *g, ops_step *step, row_parts *parts) {
  loop_row *l = NULL;
  uint64_t chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  HG_TRY(begin(&l, g, step, "parts"));
  l->is_part = 1;
  l->code.partial_count = 0; /* its results are the parts alone */
  parts->count = chunks;
  hg_status status = HG_OK;
  for (uint32_t i = 0; i < g->reduction_count && status == HG_OK; i++) {
    status = ops_row_add_parts(g->group->plan, &l->code, g->reductions[i].type, g->rows * chunks, &parts->values[i]);
    if (status == HG_OK && row_is_place(&g->reductions[i]))
      status = ops_row_add_parts(g->group->plan, &l->code, ATLAS_i64, g->rows * chunks, &parts->places[i]);
  }
  if (l->code.status == HG_OK) l->code.status = status;
  uint16_t block = begin_part(l, chunks);
  reduce_part(l, chunks);
  end_part(l, block, parts);
  return end(l, step, g->rows * chunks);
}

/* ---- behind the last reduction ---------------------------------------------------------------------------------- */

int ops_rows_behind_can(const row_group *g) {
  uint64_t chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  return g->rows > 0 && g->columns > OPS_CHUNK && chunks <= INT32_MAX / g->rows;
}

hg_status ops_rows_behind(row_group *g, ops_step *step) {
  loop_row *l = NULL;
  uint64_t chunks = (g->columns + OPS_CHUNK - 1) / OPS_CHUNK;
  HG_TRY(begin(&l, g, step, "behind_rows"));
  begin_part(l, chunks);
  ops_row_hoist(l->g, &l->code, l->stage);
  over_part(l, chunks, store_chunk);
  return end(l, step, g->rows * chunks);
}
