/* row_block.c - a program that reduces rows: its launch, elements and stores. See row_block.h. */
#include "ops/write/row_block.h"

#include "atlas/insn.h"
#include "atlas/value.h"

#include <string.h>

/* ---- a program --------------------------------------------------------------------------------------------------- */

static hg_status begin_code(row_block *k, const char *name) {
  row_group *g = k->g;
  HG_TRY(ops_code_begin_step(&k->code, &g->terms, name, "rows"));
  for (uint32_t i = 0; i < g->result_count && g->is_stage; i++)
    k->code.partials[k->code.partial_count++] = g->results[i].storage;
  if (k->code.index_type == ATLAS_i32 && g->rows * g->columns > INT32_MAX - 2 * OPS_CHUNK)
    k->code.index_type = ATLAS_i64;
  return HG_OK;
}

hg_status ops_block_write(row_group *g, const char *name, const ops_layout *layout, row_writer write,
                          row_parts *parts) {
  const hg_allocator *allocator = &g->group->plan->allocator;
  row_block *k = hg_allocate(allocator, 1, sizeof *k);
  if (k == NULL) return hg_fail_memory("a program that reduces", sizeof *k);
  k->g = g;
  k->layout = *layout;
  k->whole_loads = layout->loads;
  k->parts = parts;
  k->tail = k->column = k->chunk = OPS_NO_REGISTER;
  k->forgotten = column_bits(g);
  memset(k->bound, 0xff, sizeof k->bound);
  hg_status status = begin_code(k, name);
  if (status == HG_OK) {
    write(k);
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
  ops_branch_if(k->code.builder, ATLAS_OP_set_ne, ATLAS_u32, atlas_reg(ATLAS_REG_BLOCK_LANE), atlas_bits(0), done);
  return done;
}

void ops_block_over_chunk(row_block *k, row_writer body) {
  atlas_builder *b = k->code.builder;
  if (k->g->columns % k->g->chunk == 0) {
    body(k);
    return;
  }
  uint32_t last = atlas_builder_label(b, NULL), done = atlas_builder_label(b, NULL);
  row_branch(k, ATLAS_OP_set_eq, k->chunk, row_size(k, k->g->columns / k->g->chunk), last);
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
