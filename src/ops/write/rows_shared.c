/* rows_shared.c - rows that are too long for registers: a block has a part of its row in shared memory, and reads the
 * rest in alternating directions. See row_group.h.
 *
 * Each stage goes over the whole row. The first one reads what lies in shared memory afterwards; each reads the rest in
 * the opposite direction to the stage before, so that it begins with what the device's cache still holds. A
 * multiprocessor has room for one such block, so few rows are in progress at a time. H200, 2048 rows of 131072 f32,
 * compared with a launch for each stage: softmax 966 us (1045), log_softmax 879 (1050), layer_norm 836 (1010), variance
 * 408 (474). Rows up to that length that are whole chunks are held in registers if a block may be spread (rows_held.c).
 *
 * LAYOUT. A warp has a chunk of 4096 columns by itself, so that nothing is exchanged before its end. The block's 32
 * warps have a set of chunks, in eight units of 16 columns a lane. Of the index of a load in its chunk, the top bits
 * are within the unit; the lowest bits number the units, which come in bit-reversed order or in the reverse of that,
 * so that a binary counter folds them. What the lanes have of a set then folds in shared memory, and lane i keeps
 * chunk i. */
#include "ops/write/row_block.h"

enum {
  WARP = 32,
  WARPS = 32,
  LANES = WARP * WARPS,
  LEVELS = 3,
  UNITS = 1 << LEVELS, /* of a chunk: OPS_CHUNK / (WARP * OPS_SHARED_LOADS) */
  SET = WARPS * OPS_CHUNK,
  MOST_LOADS = 2,
  OF_WARP = 8, /* parts of a warp's chunk for each neighbour, after two bits of the lane have folded */
  IS_SHARED = ROW_OWN_PREDICATE,
  IS_EARLY /* and those behind it: by level */
};

/* What is loaded in more than one stage. */
typedef struct shared_load {
  term_id term;
  uint32_t stages; /* bit s: stage s reads it */
  uint16_t symbol;
  uint16_t element[OPS_SHARED_LOADS]; /* registers */
} shared_load;

typedef struct shared_row {
  row_block *k; /* with the layout of a unit */
  shared_load loads[MOST_LOADS];
  uint32_t load_count, shared_units;
  int is_backward;
  uint16_t own;    /* the lane's first column in the row's first unit */
  uint16_t unit, set, turn; /* the unit's number, its set, how many of the set's units came before it */
  uint16_t parts[ROWS_MOST_REDUCTIONS], folded[ROWS_MOST_REDUCTIONS]; /* symbols */
} shared_row;

static int is_read(const shared_load *load, uint32_t stage) { return (load->stages >> stage & 1) != 0; }
static int is_first(const shared_load *load, uint32_t stage) {
  return (load->stages & ((2u << stage) - 1)) == 1u << stage;
}

/* ---- what is shared --------------------------------------------------------------------------------------------- */

static void visit(const row_group *g, uint32_t *stages, term_id id, uint32_t stage) {
  if (!varies_by_column(g, id) || (stages[id] >> stage & 1) != 0) return;
  stages[id] |= 1u << stage;
  const ops_term *term = ops_term_at(&g->terms, id);
  for (uint32_t i = 0; i < term->input_count; i++) visit(g, stages, term->input[i], stage);
}

/* Finds the loads that more than one stage reads: all, or the first few. */
static uint32_t find_loads(const row_group *g, shared_load *loads) {
  uint32_t stages[OPS_MAX_TERMS + 1] = {0}, count = 0, last = g->stage_count - 1;
  for (uint32_t i = 0; i < g->reduction_count; i++) visit(g, stages, g->reductions[i].input, g->reductions[i].stage);
  for (uint32_t i = 0; i < g->result_count; i++)
    if (g->results[i].is_full) visit(g, stages, g->results[i].term, last);
  for (uint32_t id = 1; id <= g->terms.terms.count && count < MOST_LOADS; id++) {
    const ops_term *term = ops_term_at(&g->terms, id);
    if (term->kind != TERM_LOAD || term->type == ATLAS_bool || (stages[id] & (stages[id] - 1)) == 0) continue;
    loads[count++] = (shared_load){.term = id, .stages = stages[id]};
  }
  return count;
}

static uint32_t bytes_of(atlas_type type) { return atlas_type_bits(type) / 8; }

/* The number of units that fit shared memory in addition to what reductions need. */
static uint32_t count_units(const row_group *g, const shared_load *loads, uint32_t load_count) {
  uint64_t unit = 0, beside = OPS_SHARED_COLLECTIVES, most = (g->columns + SET - 1) / SET * UNITS;
  uint32_t wide = ops_row_neighbours(g, OPS_SHARED_WIDE), room = g->group->plan->target.shared_bytes;
  for (uint32_t i = 0; i < load_count; i++)
    unit += (uint64_t)LANES * OPS_SHARED_LOADS * bytes_of((atlas_type)ops_term_at(&g->terms, loads[i].term)->type);
  for (uint32_t i = 0; i < g->reduction_count; i++)
    beside += (uint64_t)(LANES + WARPS * OF_WARP) * wide * bytes_of((atlas_type)g->reductions[i].type);
  if (unit == 0 || room <= beside) return 0;
  return (uint32_t)((room - beside) / unit < most ? (room - beside) / unit : most);
}

int ops_choose_shared(const row_group *g, ops_layout *layout) {
  const ops_target *target = &g->group->plan->target;
  shared_load loads[MOST_LOADS];
  if (!target->for_gpu || g->reduction_count == 0 || g->columns <= OPS_HELD_COLUMNS) return 0;
  if (ops_columns_lie_apart(g) || ops_row_has_weights(g)) return 0;
  if (g->rows < 2 * (uint64_t)target->compute_units || target->compute_units == 0 || g->rows > INT32_MAX) return 0;
  if ((g->columns + OPS_CHUNK - 1) / OPS_CHUNK > LANES || ops_row_element_bytes(g) > 4) return 0;
  for (uint32_t i = 0; i < g->reduction_count; i++)
    if (row_is_place(&g->reductions[i])) return 0;
  if (ops_choose_held(g, layout) || count_units(g, loads, find_loads(g, loads)) == 0) return 0;
  uint32_t wide = ops_row_neighbours(g, OPS_SHARED_WIDE);
  *layout = (ops_layout){.lanes = LANES, .wide = wide, .step = WARP * UNITS * wide, .loads = OPS_SHARED_LOADS / wide,
                         .levels = LEVELS, .rows = 1};
  return 1;
}

/* ---- elements --------------------------------------------------------------------------------------------------- */

static void load_from_memory(shared_row *l, const shared_load *load) {
  ops_code *code = &l->k->code;
  atlas_type type = (atlas_type)ops_term_at(&l->k->g->terms, load->term)->type;
  for (uint32_t e = 0; e < OPS_SHARED_LOADS; e++) {
    ops_block_set_element(l->k, e);
    atlas_emit(code->builder, ATLAS_OP_mov, type, 2, atlas_reg(load->element[e]),
               atlas_reg(ops_value(code, load->term)));
    ops_block_forget(l->k);
  }
}

/* A lane reads only what it has written. `at`: the place of its first element of the unit. */
static void move_shared(shared_row *l, const shared_load *load, atlas_op op, uint16_t at) {
  atlas_type type = (atlas_type)ops_term_at(&l->k->g->terms, load->term)->type;
  uint32_t wide = l->k->layout.wide;
  for (uint32_t e = 0; e < OPS_SHARED_LOADS; e++) {
    atlas_operand memory = atlas_mem_reg(load->symbol, at, (int64_t)(e / wide) * LANES * wide + e % wide);
    atlas_operand element = atlas_reg(load->element[e]);
    if (op == ATLAS_OP_sts) atlas_emit(l->k->code.builder, op, type, 2, memory, element);
    else atlas_emit(l->k->code.builder, op, type, 2, element, memory);
  }
}

/* Brings the unit's elements into registers: the first time from memory, storing them in shared memory as well; later
 * from there. */
static void fetch(shared_row *l) {
  ops_code *code = &l->k->code;
  atlas_builder *b = code->builder;
  uint32_t first = 0, later = 0;
  for (uint32_t i = 0; i < l->load_count; i++) {
    if (!is_read(&l->loads[i], l->k->stage)) continue;
    *(is_first(&l->loads[i], l->k->stage) ? &first : &later) |= 1u << i;
    if (first >> i & 1) load_from_memory(l, &l->loads[i]);
  }
  uint16_t at = ops_index_of(code, ATLAS_REG_BLOCK_LANE);
  row_index(l->k, ATLAS_OP_mul, at, at, atlas_bits(l->k->layout.wide));
  row_mad(l->k, at, l->unit, LANES * OPS_SHARED_LOADS, at);
  atlas_emit(b, ATLAS_OP_set_lt, code->index_type, 3, atlas_pred(IS_SHARED), atlas_reg(l->unit),
             atlas_bits(l->shared_units));
  if (first != 0) {
    uint32_t done = atlas_builder_label(b, NULL);
    atlas_emit_branch(b, IS_SHARED, 1, done);
    for (uint32_t i = 0; i < l->load_count; i++)
      if (first >> i & 1) move_shared(l, &l->loads[i], ATLAS_OP_sts, at);
    atlas_builder_place(b, done);
  }
  if (later != 0) {
    uint32_t shared = atlas_builder_label(b, NULL), done = atlas_builder_label(b, NULL);
    atlas_emit_branch(b, IS_SHARED, 0, shared);
    for (uint32_t i = 0; i < l->load_count; i++)
      if (later >> i & 1) load_from_memory(l, &l->loads[i]);
    atlas_emit_branch(b, -1, 0, done);
    atlas_builder_place(b, shared);
    for (uint32_t i = 0; i < l->load_count; i++)
      if (later >> i & 1) move_shared(l, &l->loads[i], ATLAS_OP_lds, at);
    atlas_builder_place(b, done);
  }
}

/* ---- reductions ------------------------------------------------------------------------------------------------- */

/* A binary counter: at each level the first half waits for the second. Whatever a level holds before its halves are
 * complete is overwritten when they are. */
static void add_unit(row_block *k, uint32_t i) {
  for (uint32_t w = 0; w < k->layout.wide; w++) {
    uint16_t own = k->own[i][0].part[w];
    for (uint32_t level = 0; level < LEVELS; level++) {
      atlas_operand part = atlas_reg(k->counter[i][level][w]);
      uint16_t both = ops_fold_two(&k->fold, k->counter[i][level][w], own);
      atlas_emit(k->code.builder, ATLAS_OP_sel, (atlas_type)k->fold.type, 4, part, atlas_pred(IS_EARLY + level),
                 atlas_reg(own), part);
      own = both;
    }
    k->own[i][0].part[w] = own;
  }
}

static void store_part(row_block *k, uint16_t symbol, uint16_t lane, uint32_t first, uint16_t value) {
  atlas_emit(k->code.builder, ATLAS_OP_sts, (atlas_type)k->fold.type, 2, atlas_mem_reg(symbol, lane, first),
             atlas_reg(value));
}

/* Folds two bits of the lane: one result for each four lanes of a warp with the same neighbour. */
static void fold_fours(shared_row *l, uint32_t i, uint16_t lane) {
  row_block *k = l->k;
  uint32_t done = atlas_builder_label(k->code.builder, NULL);
  row_branch(k, ATLAS_OP_set_ge, lane, atlas_bits(WARPS * OF_WARP * k->layout.wide), done);
  uint16_t from = ops_register(&k->code);
  row_index(k, ATLAS_OP_and, from, lane, atlas_bits(atlas_mask(k->code.index_type) ^ (OF_WARP - 1)));
  row_mad(k, from, from, WARP / OF_WARP - 1, lane);
  uint16_t four = ops_block_fold_shared(k, l->parts[i], from, 0, OF_WARP, WARP / OF_WARP);
  store_part(k, l->folded[i], lane, 0, four);
  atlas_builder_place(k->code.builder, done);
}

/* Folds the remaining bits: afterwards the lanes that keep a chunk's result have it, 32 in the block. */
static void keep_chunks(shared_row *l, uint32_t i, uint16_t lane) {
  row_block *k = l->k;
  uint32_t done = atlas_builder_label(k->code.builder, NULL);
  uint16_t at = ops_register(&k->code);
  row_index(k, ATLAS_OP_div, at, lane, atlas_bits(WARPS));
  row_branch(k, ATLAS_OP_set_ne, at, atlas_reg(l->set), done);
  row_index(k, ATLAS_OP_rem, at, lane, atlas_bits(WARPS));
  row_index(k, ATLAS_OP_mul, at, at, atlas_bits(OF_WARP));
  uint16_t of[OPS_SHARED_WIDE];
  for (uint32_t w = 0; w < k->layout.wide; w++)
    of[w] = ops_block_fold_shared(k, l->folded[i], at, w * (uint32_t)(WARPS * OF_WARP), 1, OF_WARP);
  uint16_t chunk = ops_fold_values(&k->fold, of, k->layout.wide);
  ops_block_move(k, k->kept[i][0], chunk);
  atlas_builder_place(k->code.builder, done);
}

static void store_parts(shared_row *l, uint32_t i, uint16_t lane) {
  for (uint32_t w = 0; w < l->k->layout.wide; w++)
    store_part(l->k, l->parts[i], lane, w * LANES, l->k->own[i][0].part[w]);
}

typedef void reduction_step(shared_row *l, uint32_t i, uint16_t lane);

/* For each ordered reduction of the stage. */
static void each_ordered(shared_row *l, reduction_step *step, uint16_t lane) {
  for (uint32_t i = 0; i < l->k->g->reduction_count; i++)
    if (ops_block_take(l->k, i) && l->k->fold.is_ordered) step(l, i, lane);
}

static void end_set(shared_row *l) {
  row_block *k = l->k;
  atlas_builder *b = k->code.builder;
  uint32_t done = atlas_builder_label(b, NULL);
  row_branch(k, ATLAS_OP_set_ne, l->turn, atlas_bits(UNITS - 1), done);
  uint16_t lane = ops_index_of(&k->code, ATLAS_REG_BLOCK_LANE);
  each_ordered(l, store_parts, lane);
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  each_ordered(l, fold_fours, lane);
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  each_ordered(l, keep_chunks, lane);
  atlas_builder_place(b, done);
}

static void reduce_unit(shared_row *l) {
  row_block *k = l->k;
  int has_ordered = 0;
  ops_block_fold_own(k, 0);
  for (uint32_t i = 0; i < k->g->reduction_count; i++) {
    if (!ops_block_take(k, i) || !k->fold.is_ordered) continue;
    has_ordered = 1;
    add_unit(k, i);
  }
  if (has_ordered) end_set(l);
}

static void store_unit(shared_row *l) {
  for (uint32_t load = 0; load < l->k->layout.loads; load++) ops_block_store_load(l->k, load, ROWS_ALL_STAGES, -1);
}

/* ---- units ------------------------------------------------------------------------------------------------------ */

static void begin_unit(shared_row *l) {
  atlas_builder *b = l->k->code.builder;
  atlas_type type = l->k->code.index_type;
  uint16_t bit = ops_register(&l->k->code);
  row_index(l->k, ATLAS_OP_div, l->set, l->unit, atlas_bits(UNITS));
  row_index(l->k, ATLAS_OP_and, l->turn, l->unit, atlas_bits(UNITS - 1));
  row_mad(l->k, l->k->base, l->set, SET, l->own);
  for (uint32_t level = 0; level < LEVELS; level++) {
    row_index(l->k, ATLAS_OP_div, bit, l->turn, atlas_bits(1u << level));
    row_index(l->k, ATLAS_OP_and, bit, bit, atlas_bits(1));
    row_mad(l->k, l->k->base, bit, (uint64_t)WARP * l->k->layout.wide * (UNITS / 2 >> level), l->k->base);
    atlas_emit(b, l->is_backward ? ATLAS_OP_set_ne : ATLAS_OP_set_eq, type, 3, atlas_pred(IS_EARLY + level),
               atlas_reg(bit), atlas_bits(0));
  }
  if (l->is_backward) row_index(l->k, ATLAS_OP_xor, l->turn, l->turn, atlas_bits(UNITS - 1));
}

static void over_units(shared_row *l, uint64_t first, uint64_t count, int tests, void (*body)(shared_row *)) {
  row_block *k = l->k;
  uint16_t rounds;
  if (count == 0) return;
  k->whole_loads = tests ? 0 : k->layout.loads;
  uint64_t start = l->is_backward ? first + count - 1 : first;
  atlas_emit(k->code.builder, ATLAS_OP_mov, k->code.index_type, 2, atlas_reg(l->unit), row_size(k, start));
  uint32_t next = ops_block_begin_loop(k, count, &rounds);
  begin_unit(l);
  fetch(l);
  body(l);
  row_index(k, l->is_backward ? ATLAS_OP_sub : ATLAS_OP_add, l->unit, l->unit, atlas_bits(1));
  ops_block_end_loop(k, rounds, next);
}

static void over_row(shared_row *l, void (*body)(shared_row *)) {
  uint64_t whole = l->k->g->columns / SET * UNITS, rest = l->k->g->columns % SET == 0 ? 0 : UNITS;
  l->is_backward = l->k->stage % 2 == 0;
  ops_block_hoist(l->k);
  if (l->is_backward) over_units(l, whole, rest, 1, body);
  over_units(l, 0, whole, 0, body);
  if (!l->is_backward) over_units(l, whole, rest, 1, body);
}

/* ---- stages ----------------------------------------------------------------------------------------------------- */

static void begin_block(shared_row *l) {
  row_group *g = l->k->g;
  ops_code *code = &l->k->code;
  uint32_t wide = l->k->layout.wide;
  l->load_count = find_loads(g, l->loads);
  l->shared_units = count_units(g, l->loads, l->load_count);
  ops_block_launch(l->k, g->rows, 1, LANES, 1);
  for (uint32_t i = 0; i < l->load_count; i++) {
    shared_load *load = &l->loads[i];
    atlas_type type = (atlas_type)ops_term_at(&g->terms, load->term)->type;
    load->symbol = ops_block_shared(l->k, 'h', i, type, l->shared_units * LANES * OPS_SHARED_LOADS);
    for (uint32_t e = 0; e < OPS_SHARED_LOADS; e++) load->element[e] = ops_register(code);
    l->k->known[l->k->known_count++] = (row_known){load->term, load->element};
  }
  for (uint32_t i = 0; i < g->reduction_count; i++) {
    atlas_type type = (atlas_type)g->reductions[i].type;
    if (!ops_fold_of(code, g->reductions[i].reduce, type).is_ordered) continue;
    l->parts[i] = ops_block_shared(l->k, 'p', i, type, LANES * wide);
    l->folded[i] = ops_block_shared(l->k, 'q', i, type, WARPS * OF_WARP * wide);
  }
  ops_block_set_row(l->k, ops_index_of(code, ATLAS_REG_BLOCK_INDEX));
  uint16_t lane = ops_index_of(code, ATLAS_REG_BLOCK_LANE), warp = ops_register(code);
  l->own = ops_register(code);
  row_index(l->k, ATLAS_OP_div, warp, lane, atlas_bits(WARP));
  row_index(l->k, ATLAS_OP_rem, lane, lane, atlas_bits(WARP));
  row_index(l->k, ATLAS_OP_mul, l->own, lane, atlas_bits(wide));
  row_mad(l->k, l->own, warp, OPS_CHUNK, l->own);
  l->unit = ops_register(code), l->set = ops_register(code), l->turn = ops_register(code);
  l->k->base = ops_register(code), l->k->column = ops_register(code);
}

void ops_write_shared(row_block *k) {
  shared_row shared = {.k = k}, *l = &shared;
  begin_block(l);
  for (k->stage = 0; k->stage + 1 < k->g->stage_count; k->stage++) {
    ops_block_begin_stage(k, OPS_NO_REGISTER);
    over_row(l, reduce_unit);
    ops_block_end_stage(k);
  }
  if (ops_row_has_full_results(k->g)) over_row(l, store_unit);
  ops_block_finish(k, 1);
}
