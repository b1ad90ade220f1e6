/* row_block.c - elements, extremes, parts and stores of a program that reduces rows. See row_block.h. */
#include "ops/write/row_block.h"

#include "atlas/insn.h"
#include "atlas/value.h"

#include <string.h>

/* ---- a program --------------------------------------------------------------------------------------------------- */

static hg_status begin_code(row_block *k, const char *name) {
  row_group *g = k->g;
  ops_step *step = ops_new_step(g->group->plan);
  if (step == NULL) return HG_OUT_OF_MEMORY;
  HG_TRY(ops_code_begin(&k->code, &g->terms, step, name));
  step->kind = "rows";
  for (uint32_t i = 0; i < g->result_count && g->between != NULL && g->reduction_count > 0; i++)
    k->code.partials[k->code.partial_count++] = g->results[i].storage;
  if (k->code.index_type == ATLAS_i32 && g->rows * g->columns > INT32_MAX - 2 * OPS_CHUNK)
    k->code.index_type = ATLAS_i64;
  return HG_OK;
}

hg_status ops_block_write(row_group *g, const row_writer *writer, row_parts *parts) {
  const hg_allocator *allocator = &g->group->plan->allocator;
  row_block *k = hg_allocate(allocator, 1, writer->size);
  if (k == NULL) return hg_fail_memory("a program that reduces", writer->size);
  k->g = g;
  k->parts = parts;
  k->tail = k->column = OPS_NO_REGISTER;
  k->forgotten = column_bits(g);
  memset(k->bound, 0xff, sizeof k->bound);
  hg_status status = begin_code(k, writer->name);
  if (status == HG_OK) {
    writer->write(k);
    status = ops_code_end(&k->code);
  }
  hg_release(allocator, k);
  return status;
}

void ops_block_launch(row_block *k, uint64_t blocks_x, uint64_t blocks_y, uint32_t lanes_x, uint32_t lanes_y) {
  ops_step *step = k->code.step;
  if (lanes_x * lanes_y == 1) {
    step->lanes = blocks_x;
    return;
  }
  atlas_builder_block(k->code.builder, lanes_x, lanes_y, 1);
  step->grid[0] = (uint32_t)blocks_x, step->grid[1] = (uint32_t)blocks_y, step->grid[2] = 1;
  step->block[0] = lanes_x, step->block[1] = lanes_y, step->block[2] = 1;
}

uint16_t ops_block_shared(row_block *k, char letter, uint32_t i, atlas_type type, uint32_t count) {
  return atlas_builder_shared(k->code.builder, (char[]){letter, (char)('a' + i), '\0'}, type, count);
}

uint32_t ops_block_only_first(row_block *k) {
  uint32_t done = atlas_builder_label(k->code.builder, NULL);
  atlas_emit(k->code.builder, ATLAS_OP_set_ne, ATLAS_u32, 3, atlas_pred(ROW_IS_FOUND),
             atlas_reg(ATLAS_REG_BLOCK_LANE), atlas_bits(0));
  atlas_emit_branch(k->code.builder, ROW_IS_FOUND, 0, done);
  return done;
}

void ops_block_over_chunk(row_block *k, uint16_t chunk, void (*body)(row_block *k)) {
  atlas_builder *b = k->code.builder;
  if (k->g->columns % OPS_CHUNK == 0) {
    body(k);
    return;
  }
  uint32_t last = atlas_builder_label(b, NULL), done = atlas_builder_label(b, NULL);
  row_branch(k, ATLAS_OP_set_eq, chunk, row_size(k, k->g->columns / OPS_CHUNK), last);
  body(k);
  atlas_emit_branch(b, -1, 0, done);
  atlas_builder_place(b, last);
  k->whole_loads = 0;
  body(k);
  k->whole_loads = k->layout.loads;
  atlas_builder_place(b, done);
}

/* ---- elements ---------------------------------------------------------------------------------------------------- */

void ops_block_set_row(row_block *k, uint16_t row) { ops_split_range(&k->code, row, 0, k->g->row_rank); }

uint16_t ops_block_first_column(row_block *k) {
  uint16_t first = ops_index_of(&k->code, ATLAS_REG_BLOCK_LANE);
  row_index(k, ATLAS_OP_mul, first, first, atlas_bits(k->layout.wide));
  return first;
}

uint32_t ops_block_begin_loop(row_block *k, uint64_t count, uint16_t *rounds) {
  atlas_builder *b = k->code.builder;
  *rounds = ops_register(&k->code);
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(*rounds), ops_scalar_of(&k->code, ATLAS_u32, count));
  uint32_t next = atlas_builder_label(b, NULL);
  atlas_builder_place(b, next);
  return next;
}

void ops_block_end_loop(row_block *k, uint16_t rounds, uint32_t label) {
  atlas_emit(k->code.builder, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(rounds), atlas_label_ref(label));
}

/* Computes the column's coordinates from column `base` (a register) + displacement. */
static void set_column(row_block *k, uint16_t base, int64_t displacement) {
  ops_code *code = &k->code;
  uint32_t rank = k->g->terms.space.rank, first = k->g->row_rank;
  if (rank == first) return; /* there is only a column */
  if (rank == first + 1) {
    code->variable[first] = base;
    code->displaced = first;
    code->displacement = displacement;
    return;
  }
  uint16_t column = ops_register(code);
  row_index(k, ATLAS_OP_add, column, base, atlas_int_const(code->index_type, displacement));
  ops_split_range(code, column, first, rank);
}

/* Makes the results of earlier stages those of this row, or neighbour. */
static void set_bound(row_block *k, uint32_t which) {
  for (uint32_t i = 0; i < k->g->reduction_count; i++)
    if (k->g->reductions[i].bound != 0 && k->bound[i][which] != OPS_NO_REGISTER)
      k->code.registers[k->g->reductions[i].bound] = k->bound[i][which];
}

void ops_block_set_which_row(row_block *k, uint32_t row) {
  memcpy(k->code.variable, k->row[row], k->g->row_rank * sizeof k->code.variable[0]);
  set_bound(k, row);
  for (uint32_t i = 0; i < k->row_term_count; i++)
    k->code.registers[k->row_terms[i].term] = k->row_terms[i].value[row];
}

void ops_block_set_neighbour(row_block *k, uint32_t neighbour) {
  k->code.displaced = k->across;
  k->code.displacement = neighbour;
  set_bound(k, neighbour);
}

/* The column of a load in a register, which may be behind the row's end: then it is the row's last one. */
static void set_column_of_load(row_block *k, uint32_t load) {
  const ops_layout *layout = &k->layout;
  row_index(k, ATLAS_OP_add, k->column, k->base, atlas_bits((uint64_t)load * layout->step));
  if (!k->is_tested) return;
  uint64_t last = k->g->columns - (layout->is_across ? 1 : layout->wide);
  row_compare(k, ATLAS_OP_set_lt, ROW_IS_THERE, k->column, row_size(k, k->g->columns));
  row_index(k, ATLAS_OP_min, k->column, k->column, row_size(k, last));
}

void ops_block_set_element(row_block *k, uint32_t element) {
  const ops_layout *layout = &k->layout;
  uint32_t elements = layout->loads * layout->wide, in_row = element % elements, neighbour = element % layout->wide;
  if (layout->rows > 1) ops_block_set_which_row(k, element / elements);
  k->is_tested = in_row / layout->wide >= k->whole_loads;
  if (layout->is_across || (k->is_tested && k->tail == OPS_NO_REGISTER)) {
    set_column_of_load(k, in_row / layout->wide);
    set_column(k, k->column, layout->is_across ? 0 : neighbour);
  } else set_column(k, k->is_tested ? k->tail : k->base, ops_column(layout, in_row));
  if (layout->is_across) ops_block_set_neighbour(k, neighbour);
}

void ops_block_forget(row_block *k) {
  ops_forget(&k->code, k->forgotten);
}

/* Computes derived variables that do not vary along these coordinates. */
static void hoist_variables(row_block *k, uint32_t coordinates) {
  const ops_terms *t = &k->g->terms;
  for (uint32_t i = t->space.rank; i < t->variable_count; i++) {
    ops_form form = {.constant = 0};
    form.factor[i] = 1;
    if ((ops_varies(t, &t->derived[i].of) & coordinates) == 0) ops_form_value(&k->code, &form);
  }
}

void ops_block_hoist(row_block *k) {
  const row_group *g = k->g;
  hoist_variables(k, column_bits(g));
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    if (!varies_by_column(g, id) || g->stage[id] > k->stage) continue;
    const ops_term *term = ops_term_at(&g->terms, id);
    for (uint32_t i = 0; i < term->input_count; i++)
      if (!varies_by_column(g, term->input[i])) ops_value(&k->code, term->input[i]);
  }
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (g->reductions[i].stage == k->stage && !varies_by_column(g, g->reductions[i].input))
      ops_value(&k->code, g->reductions[i].input);
  for (uint32_t i = 0; i < g->result_count; i++) {
    const row_result *r = &g->results[i];
    if (r->is_full && r->stage <= k->stage && !varies_by_column(g, r->term)) ops_value(&k->code, r->term);
  }
}

void ops_block_hoist_all(row_block *k, uint32_t coordinates) {
  const row_group *g = k->g;
  hoist_variables(k, coordinates);
  for (uint32_t id = 1; id <= g->terms.terms.count; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if ((term->varies & coordinates) == 0 && g->stage[id] == 0 && term->kind != TERM_BOUND) ops_value(&k->code, id);
  }
}

uint16_t ops_block_value(row_block *k, term_id term, uint32_t element) {
  ops_code *code = &k->code;
  ops_block_set_element(k, element);
  for (uint32_t i = 0; i < k->known_count; i++) code->registers[k->known[i].term] = k->known[i].registers[element];
  uint16_t value = ops_value(code, term);
  for (uint32_t i = 0; i < k->known_count; i++) k->known[i].registers[element] = code->registers[k->known[i].term];
  ops_block_forget(k);
  return value;
}

/* ---- reductions -------------------------------------------------------------------------------------------------- */

int ops_block_take(row_block *k, uint32_t i) {
  k->reduction = &k->g->reductions[i];
  k->fold = ops_fold_of(&k->code, k->reduction->reduce, (atlas_type)k->reduction->type);
  return k->reduction->stage == k->stage;
}

static int64_t beyond_all(atlas_type index) { return index == ATLAS_i64 ? INT64_MAX : INT32_MAX; }

uint16_t ops_block_identity(row_block *k) {
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

void ops_block_begin_kept(row_block *k, uint32_t i, uint32_t w, uint16_t first) {
  k->kept[i][w] = ops_block_identity(k);
  if (!row_is_place(k->reduction)) return;
  atlas_type index = ops_block_place_type(k);
  int is_first = first != OPS_NO_REGISTER && k->reduction->place == 0;
  k->place[i][w] = ops_register(&k->code);
  atlas_emit(k->code.builder, ATLAS_OP_mov, index, 2, atlas_reg(k->place[i][w]),
             is_first ? atlas_reg(first) : atlas_int_const(index, beyond_all(index)));
}

void ops_block_bind(row_block *k, uint32_t i, uint32_t which, uint16_t reg) {
  if (k->g->reductions[i].bound != 0) k->bound[i][which] = reg;
}

void ops_block_end_kept(row_block *k) {
  for (uint32_t i = 0; i < k->g->reduction_count; i++) {
    if (!ops_block_take(k, i)) continue;
    int is_place = row_is_place(k->reduction);
    uint16_t all = ops_fold_lanes(&k->fold, k->kept[i][0]);
    ops_block_bind(k, i, 0, is_place ? ops_block_place_of(k, i, all) : all);
  }
  set_bound(k, 0);
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

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* A store in two halves: what may be computed anywhere, and the store itself. */
typedef struct row_store {
  atlas_operand memory;
  uint16_t value;
  uint8_t type;
} row_store;

static row_store begin_store(ops_code *code, const row_result *result, uint16_t value) {
  row_store store = {.value = value, .type = result->type};
  store.memory = ops_memory(code, result->storage, &result->address);
  if (result->type == ATLAS_bool) {
    store.value = ops_register(code);
    atlas_emit2(code->builder, ATLAS_OP_cvt, ATLAS_bool, ATLAS_u32, atlas_reg(store.value), atlas_reg(value));
  }
  return store;
}

static void end_store(ops_code *code, const row_store *store) {
  atlas_emit(code->builder, ATLAS_OP_stg, (atlas_type)store->type, 2, store->memory, atlas_reg(store->value));
}

/* For a later store: if the address is the column's number, that will have changed, so it is copied. */
static void keep_store(row_block *k, row_store *store) {
  ops_code *code = &k->code;
  uint16_t at = atlas_register_of(&store->memory);
  if (store->memory.mode != ATLAS_ADDRESS_INDEXED) return;
  for (uint32_t i = k->g->row_rank; i < k->g->terms.space.rank; i++) {
    if (code->variable[i] != at) continue;
    uint16_t kept = ops_register(code);
    atlas_emit(code->builder, ATLAS_OP_mov, code->index_type, 2, atlas_reg(kept), atlas_reg(at));
    store->memory = atlas_mem_reg(store->memory.symbol, kept, (int64_t)store->memory.bits);
  }
}

static int is_stored(const row_result *r, uint32_t stage) {
  return r->is_full && (r->stage == stage || stage == ROWS_ALL_STAGES);
}

void ops_block_store_load(row_block *k, uint32_t load, uint32_t stage, int also) {
  enum { MOST = ROWS_MOST_WIDE * ROWS_MOST_RESULTS };
  row_store stores[MOST];
  const row_group *g = k->g;
  uint32_t count = 0, wide = k->layout.wide;
  for (uint32_t n = 0; n < wide * g->result_count; n++) {
    uint32_t element = load * wide + n / g->result_count;
    const row_result *r = &g->results[n % g->result_count];
    if (!is_stored(r, stage)) continue;
    uint16_t value = ops_block_value(k, r->term, element);
    ops_block_set_element(k, element);
    stores[count] = begin_store(&k->code, r, value);
    keep_store(k, &stores[count++]);
    ops_block_forget(k);
  }
  uint32_t absent = atlas_builder_label(k->code.builder, NULL), predicate = also >= 0 ? (uint32_t)also : ROW_IS_THERE;
  if (k->is_tested && also >= 0)
    atlas_emit(k->code.builder, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(predicate = ROW_IS_STORED),
               atlas_pred((uint32_t)also), atlas_pred(ROW_IS_THERE));
  if (k->is_tested || also >= 0) atlas_emit_branch(k->code.builder, (int)predicate, 1, absent);
  for (uint32_t i = 0; i < count; i++) end_store(&k->code, &stores[i]);
  atlas_builder_place(k->code.builder, absent);
}

void ops_block_put(row_block *k, const row_result *result) {
  row_store store = begin_store(&k->code, result, ops_value(&k->code, result->term));
  end_store(&k->code, &store);
}

void ops_block_put_single(row_block *k) {
  enum { OTHERS, COMPUTED, STORED, ROUNDS };
  for (int round = OTHERS; round < ROUNDS; round++)
    for (uint32_t i = 0; i < k->g->result_count && k->code.status == HG_OK; i++) {
      const row_result *result = &k->g->results[i];
      if (result->is_full || ops_is_over_input(k->g->group->plan, result->storage) != (round != OTHERS)) continue;
      if (round == COMPUTED) ops_value(&k->code, result->term);
      else ops_block_put(k, result);
    }
}

void ops_block_finish(row_block *k, int by_one_lane) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < k->g->result_count; i++) count += !k->g->results[i].is_full;
  if (count == 0) return;
  uint32_t done = by_one_lane ? ops_block_only_first(k) : 0;
  ops_block_put_single(k);
  if (by_one_lane) atlas_builder_place(k->code.builder, done);
}
