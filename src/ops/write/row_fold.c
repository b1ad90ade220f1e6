/* row_fold.c - folds the columns of rows, from the loads of a lane to parts in memory, and finds the places of
 * extremes. See row_block.h. */
#include "ops/write/row_block.h"

#include "atlas/value.h"

/* ---- reductions -------------------------------------------------------------------------------------------------- */

int ops_block_take(row_block *k, uint32_t i) {
  k->reduction = &k->g->reductions[i];
  k->fold = ops_fold_of(&k->code, k->reduction->reduce, (atlas_type)k->reduction->type);
  return k->reduction->stage == k->stage;
}

static int64_t beyond_all(atlas_type index) { return index == ATLAS_i64 ? INT64_MAX : INT32_MAX; }

static uint16_t identity(row_block *k) {
  uint16_t reg = ops_register(&k->code);
  atlas_emit(k->code.builder, ATLAS_OP_movi, (atlas_type)k->fold.type, 2, atlas_reg(reg), atlas_bits(k->fold.identity));
  return reg;
}

void ops_block_move(row_block *k, uint16_t to, uint16_t from) {
  atlas_emit(k->code.builder, ATLAS_OP_mov, (atlas_type)k->fold.type, 2, atlas_reg(to), atlas_reg(from));
}

typedef struct shared_values {
  row_block *k;
  uint16_t symbol, at;
  uint32_t first, stride;
} shared_values;

static uint16_t shared_value(void *context, uint32_t number) {
  const shared_values *v = context;
  uint16_t value = ops_register(&v->k->code);
  atlas_emit(v->k->code.builder, ATLAS_OP_lds, (atlas_type)v->k->fold.type, 2, atlas_reg(value),
             atlas_mem_reg(v->symbol, v->at, v->first + (int64_t)number * v->stride));
  return value;
}

uint16_t ops_block_fold_shared(row_block *k, uint16_t symbol, uint16_t at, uint32_t first, uint32_t stride,
                               uint32_t count) {
  shared_values values = {k, symbol, at, first, stride};
  return ops_fold_leaves(&k->fold, 0, 1, count, shared_value, &values);
}

static void begin_kept(row_block *k, uint32_t i, uint32_t w, uint16_t first) {
  k->kept[i][w] = identity(k);
  if (!row_is_place(k->reduction)) return;
  atlas_type index = ops_block_place_type(k);
  int is_first = first != OPS_NO_REGISTER && k->reduction->place == 0;
  k->place[i][w] = ops_register(&k->code);
  atlas_emit(k->code.builder, ATLAS_OP_mov, index, 2, atlas_reg(k->place[i][w]),
             is_first ? atlas_reg(first) : atlas_int_const(index, beyond_all(index)));
}

/* Across columns what is folded in any order waits, too: in one level, which has everything so far. */
static uint32_t levels_of(const row_block *k) {
  if (row_is_place(k->reduction)) return 0;
  return k->fold.is_ordered ? k->layout.levels : k->layout.is_across && k->layout.levels > 0;
}

void ops_block_begin_stage(row_block *k, uint16_t first) {
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; ops_block_take(k, i) && w < k->layout.wide; w++) {
      if (w == 0 || k->layout.is_across) begin_kept(k, i, w, first);
      for (uint32_t level = 0; level < levels_of(k); level++) k->counter[i][level][w] = identity(k);
    }
}

void ops_block_bind(row_block *k, uint32_t i, uint32_t which, uint16_t reg) {
  term_id bound = k->g->reductions[i].bound;
  if (bound == 0) return;
  k->bound[i][which] = reg;
  if (which == 0) k->code.registers[bound] = reg;
}

void ops_block_end_stage(row_block *k) {
  for (uint32_t i = 0; i < k->g->reduction_count; i++) {
    if (!ops_block_take(k, i)) continue;
    int is_place = row_is_place(k->reduction);
    uint16_t all = ops_fold_lanes(&k->fold, k->kept[i][0]);
    ops_block_bind(k, i, 0, is_place ? ops_block_place_of(k, i, all) : all);
  }
}

/* An ops_leaf: the input of the current reduction in the row in hand, or the identity if there is no such element. */
static uint16_t leaf(void *context, uint32_t element) {
  row_block *k = context;
  uint32_t elements = k->layout.loads * k->layout.wide;
  uint16_t value = ops_block_value(k, k->reduction->input, k->row_in_hand * elements + element);
  return k->is_tested ? ops_fold_where(&k->fold, ROW_IS_THERE, value) : value;
}

/* The column of an element, or the stored index of a part's extreme. */
static uint16_t place_of(row_block *k, uint32_t element) {
  if (k->reduction->place != 0) return ops_block_value(k, k->reduction->place, element);
  if (k->layout.is_across) return k->column;
  uint16_t column = ops_register(&k->code);
  row_index(k, ATLAS_OP_add, column, k->base, atlas_bits(ops_column(&k->layout, element)));
  return column;
}

/* Columns across come in any order, those along in ascending order, with the identity behind the row's end. */
static void keep_places(row_block *k, uint32_t i) {
  int is_across = k->layout.is_across;
  for (uint32_t e = 0; e < k->layout.loads * k->layout.wide; e++) {
    uint16_t place = place_of(k, e), value = is_across ? ops_block_value(k, k->reduction->input, e) : leaf(k, e);
    ops_block_keep_place(k, i, is_across ? e % k->layout.wide : 0, value, place,
                         is_across && k->is_tested ? ROW_IS_THERE : -1, !is_across && k->reduction->place == 0);
  }
}

void ops_block_fold_own(row_block *k, int is_held) {
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (k->row_in_hand = 0; ops_block_take(k, i) && k->row_in_hand < k->layout.rows; k->row_in_hand++) {
      ops_parts *own = &k->own[i][k->row_in_hand];
      own->count = 0;
      if (row_is_place(k->reduction) && !is_held) keep_places(k, i);
      else ops_fold_own(&k->fold, &k->layout, leaf, k, own);
      if (own->count > 0 && !is_held && !k->fold.is_ordered && !k->layout.is_across)
        ops_block_move(k, k->kept[i][0], ops_fold_two(&k->fold, k->kept[i][0], own->part[0]));
    }
  k->row_in_hand = 0;
}

void ops_block_fold_lanes(row_block *k, int is_held) {
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t row = 0; ops_block_take(k, i) && (is_held || k->fold.is_ordered) && row < k->layout.rows; row++)
      for (uint32_t p = 0; k->layout.lanes > 1 && p < k->own[i][row].count; p++)
        k->own[i][row].part[p] = ops_fold_lanes(&k->fold, k->own[i][row].part[p]);
}

uint16_t ops_block_folded(row_block *k, uint32_t i) {
  return ops_fold_parts(&k->fold, &k->layout, &k->own[i][k->row_in_hand]);
}

/* ---- places of extremes ------------------------------------------------------------------------------------------ */

atlas_type ops_block_place_type(const row_block *k) {
  return k->reduction->place != 0 ? ATLAS_i64 : k->code.index_type;
}

static int is_float(const row_block *k) { return atlas_kind((atlas_type)k->reduction->type) == ATLAS_KIND_FLOAT; }

static void test(row_block *k, atlas_op op, atlas_type type, uint32_t predicate, uint16_t a, uint16_t b) {
  atlas_emit(k->code.builder, op, type, 3, atlas_pred(predicate), atlas_reg(a), atlas_reg(b));
}

/* to = to op other, for predicates. */
static void join(row_block *k, atlas_op op, uint32_t to, uint32_t other) {
  atlas_emit(k->code.builder, op, ATLAS_NONE, 3, atlas_pred(to), atlas_pred(to), atlas_pred(other));
}

static void select(row_block *k, atlas_type type, uint16_t to, uint16_t other) {
  atlas_emit(k->code.builder, ATLAS_OP_sel, type, 4, atlas_reg(to), atlas_pred(ROW_IS_FOUND), atlas_reg(other),
             atlas_reg(to));
}

void ops_block_keep_place(row_block *k, uint32_t i, uint32_t w, uint16_t value, uint16_t place, int there,
                          int in_order) {
  atlas_type type = (atlas_type)k->reduction->type, index = ops_block_place_type(k);
  uint16_t kept = k->kept[i][w], at = k->place[i][w];
  test(k, k->reduction->reduce == OPS_ARGMAX ? ATLAS_OP_set_gt : ATLAS_OP_set_lt, type, ROW_IS_FOUND, value, kept);
  if (!in_order) test(k, ATLAS_OP_set_eq, type, ROW_IS_EQUAL, value, kept);
  if (is_float(k)) {
    test(k, ATLAS_OP_set_nan, type, ROW_IS_NAN, value, value);
    join(k, ATLAS_OP_por, ROW_IS_FOUND, ROW_IS_NAN);
    if (!in_order) { /* two NaNs also count as equal */
      test(k, ATLAS_OP_set_nan, type, ROW_IS_IN_FRONT, kept, kept);
      join(k, ATLAS_OP_pand, ROW_IS_NAN, ROW_IS_IN_FRONT);
      join(k, ATLAS_OP_por, ROW_IS_EQUAL, ROW_IS_NAN);
    }
    test(k, ATLAS_OP_set_num, type, ROW_IS_NAN, kept, kept);
    join(k, ATLAS_OP_pand, ROW_IS_FOUND, ROW_IS_NAN);
  }
  if (!in_order) {
    test(k, ATLAS_OP_set_lt, index, ROW_IS_IN_FRONT, place, at);
    join(k, ATLAS_OP_pand, ROW_IS_EQUAL, ROW_IS_IN_FRONT);
    join(k, ATLAS_OP_por, ROW_IS_FOUND, ROW_IS_EQUAL);
  }
  if (there >= 0) join(k, ATLAS_OP_pand, ROW_IS_FOUND, (uint32_t)there);
  select(k, type, kept, value);
  select(k, index, at, place);
}

void ops_block_find_extreme(row_block *k, uint16_t value, uint16_t extreme) {
  atlas_type type = (atlas_type)k->reduction->type;
  test(k, ATLAS_OP_set_eq, type, ROW_IS_FOUND, value, extreme);
  if (!is_float(k)) return;
  test(k, ATLAS_OP_set_nan, type, ROW_IS_NAN, value, value);
  join(k, ATLAS_OP_por, ROW_IS_FOUND, ROW_IS_NAN);
}

void ops_block_end_place(row_block *k, uint16_t place, int over_lanes) {
  atlas_type index = ops_block_place_type(k);
  atlas_type type = (atlas_type)ops_at(k->g->group->computation, k->reduction->value)->type;
  atlas_operand reg = atlas_reg(place);
  if (over_lanes) atlas_emit(k->code.builder, ATLAS_OP_reduce_min, index, 2, reg, reg);
  if (type != index) atlas_emit2(k->code.builder, ATLAS_OP_cvt, type, index, reg, reg);
}

uint16_t ops_block_place_of(row_block *k, uint32_t i, uint16_t extreme) {
  atlas_type index = ops_block_place_type(k);
  atlas_operand place = atlas_reg(k->place[i][0]);
  ops_block_find_extreme(k, k->kept[i][0], extreme);
  atlas_emit(k->code.builder, ATLAS_OP_sel, index, 4, place, atlas_pred(ROW_IS_FOUND), place,
             atlas_int_const(index, beyond_all(index)));
  ops_block_end_place(k, k->place[i][0], 1);
  return k->place[i][0];
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

/* A launch behind another one that has written parts writes to the same storages. */
static hg_status add_storage(row_block *k, uint8_t type, uint64_t count, uint32_t *storage) {
  if (k->parts->count == 0) HG_TRY(ops_add_temporary(k->g->group->plan, type, count, storage));
  k->code.partials[k->code.partial_count++] = *storage;
  return HG_OK;
}

void ops_block_add_parts(row_block *k, uint64_t count) {
  const row_group *g = k->g;
  hg_status status = HG_OK;
  k->code.partial_count = 0; /* its only results are the parts */
  for (uint32_t i = 0; i < g->reduction_count && status == HG_OK; i++) {
    status = add_storage(k, g->reductions[i].type, g->rows * count, &k->parts->values[i]);
    if (status == HG_OK && row_is_place(&g->reductions[i]))
      status = add_storage(k, ATLAS_i64, g->rows * count, &k->parts->places[i]);
  }
  k->parts->count = count;
  if (k->code.status == HG_OK) k->code.status = status;
}

void ops_block_store_parts(row_block *k, uint16_t at, uint32_t wide) {
  ops_code *code = &k->code;
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    for (uint32_t w = 0; w < wide; w++) {
      atlas_emit(code->builder, ATLAS_OP_stg, (atlas_type)k->g->reductions[i].type, 2,
                 atlas_mem_reg(ops_buffer_of(code, k->parts->values[i]), at, w), atlas_reg(k->kept[i][w]));
      if (row_is_place(&k->g->reductions[i]))
        atlas_emit(code->builder, ATLAS_OP_stg, ATLAS_i64, 2,
                   atlas_mem_reg(ops_buffer_of(code, k->parts->places[i]), at, w), atlas_reg(k->place[i][w]));
    }
}
