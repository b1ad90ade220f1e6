/* contract_matvec.c - products of matrices with a vector, or on a GPU with a few, and of vectors. Each element of the
 * matrix is read once, so memory is the limit.
 *
 * A lane has a chain of 256 products for one element of the result, or for four if elements along the result are
 * neighbours in memory, with each of the vectors. Chains are parts of K, which a second step folds. If neighbours lie
 * along K, a block copies 128 rows, 32 columns (whole cache lines) at a time, to shared memory, where its part of the
 * vector is as well, and each lane reads one row; the columns behind the last 32 are read directly. If there are few
 * results, the lanes of a block have neighbouring chains of one of them. */
#include "ops/write/contract_tiles.h"
#include "ops/graph/ops_tuning.h"

enum {
  TILE_PITCH = OPS_MATVEC_TILE + 1,
  LANES_OF_ROW = OPS_MATVEC_TILE / 4,
  FETCHES = OPS_MATVEC_TILE * LANES_OF_ROW / 32, /* loads of four neighbours, by each lane, for a tile */
  MOST_VECTORS = 8,
  P_DONE = 0
};

/* Lanes have elements of the result; the same, and rows come to shared memory; or chains of one element. */
typedef enum matvec_way { BY_COLUMNS, BY_ROWS, BY_CHAINS } matvec_way;

typedef struct matvec {
  contract *c;
  atlas_builder *builder;
  atlas_type index, sum;
  const contract_side *matrix, *vector;
  uint64_t size;                      /* of the result along its axis; BY_CHAINS: the number of chains */
  matvec_way way;
  uint32_t lanes, wide;               /* lanes of a block; elements of a result in a lane */
  uint32_t vectors, rows;             /* how many vectors there are; rows of the matrix that are loaded at a time */
  uint32_t axis, across;              /* AT_M and AT_N: the axis along the result, that over the vectors */
  uint16_t batch, part, first, count; /* registers: of the index type; the first k; the number of k (u32) */
  uint16_t place;                     /* the lane's first element of the result, which may lie behind its end: index
                                         type */
  uint16_t at_matrix[FETCHES], at_vector[MOST_VECTORS];
  atlas_operand step; /* the distance between rows of the matrix: a multiple of `wide` if the program can know that */
  uint16_t sums[4 * MOST_VECTORS], matrix_values[4 * OPS_MATVEC_VALUES];
  uint16_t vector_values[MOST_VECTORS][OPS_MATVEC_VALUES];
  uint16_t result;  /* BY_CHAINS: the number of the block's result in its matrix */
  uint16_t own_row; /* the lane's own row, at its first column behind the last tile */
} matvec;

static void emit3(matvec *t, atlas_op op, atlas_type type, uint16_t to, atlas_operand a, atlas_operand b) {
  atlas_emit(t->builder, op, type, 3, atlas_reg(to), a, b);
}
static void multiply_add(matvec *t, uint16_t to, atlas_operand a, atlas_operand b) {
  atlas_emit(t->builder, ATLAS_OP_mad, t->index, 4, atlas_reg(to), a, b, atlas_reg(to));
}
static uint16_t fresh(matvec *t) { return ops_register(&t->c->code); }
static atlas_operand number(matvec *t, int64_t value) { return ops_scalar_of(&t->c->code, t->index, (uint64_t)value); }
static atlas_operand constant(uint64_t value) { return atlas_int_const(ATLAS_u32, (int64_t)value); }

static void load(matvec *t, const contract_side *side, uint16_t to, uint16_t address, int64_t displacement) {
  uint16_t slot = ops_buffer_of(&t->c->code, side->storage);
  atlas_emit(t->builder, ATLAS_OP_ldg, (atlas_type)side->type, 2, atlas_reg(to),
             atlas_mem_reg(slot, address, displacement));
}

static void widen(matvec *t, const contract_side *side, uint16_t reg) {
  if (side->type == t->sum) return;
  atlas_emit2(t->builder, ATLAS_OP_cvt, t->sum, (atlas_type)side->type, atlas_reg(reg), atlas_reg(reg));
}

static void multiply(matvec *t, uint16_t sum, uint16_t a, uint16_t b) {
  int is_float = t->sum == ATLAS_f32 || t->sum == ATLAS_f64;
  atlas_emit(t->builder, is_float ? ATLAS_OP_fma : ATLAS_OP_mad, t->sum, 4, atlas_reg(sum), atlas_reg(a), atlas_reg(b),
             atlas_reg(sum));
}

/* ---- where ------------------------------------------------------------------------------------------------------- */

/* constant + batch * batch_stride + first k * k_stride */
static uint16_t address_of(matvec *t, const contract_side *side) {
  uint16_t at = fresh(t);
  emit3(t, ATLAS_OP_mul, t->index, at, atlas_reg(t->batch), number(t, side->batch_stride));
  multiply_add(t, at, atlas_reg(t->first), number(t, side->k_stride));
  if (side->constant != 0) emit3(t, ATLAS_OP_add, t->index, at, atlas_reg(at), number(t, side->constant));
  return at;
}

static void begin_places(matvec *t) {
  ops_code *code = &t->c->code;
  uint16_t batch = ops_launch_coordinate(code, ATLAS_COORD_BLOCK_Z);
  uint16_t part = ops_launch_coordinate(code, ATLAS_COORD_BLOCK_Y), first = fresh(t);
  uint16_t block = ops_launch_coordinate(code, ATLAS_COORD_BLOCK_X);
  emit3(t, ATLAS_OP_mul, ATLAS_u32, block, atlas_reg(block), constant(t->lanes));
  emit3(t, ATLAS_OP_add, ATLAS_u32, block, atlas_reg(block), atlas_reg(ATLAS_REG_BLOCK_LANE));
  if (t->way == BY_CHAINS) {
    t->result = ops_index_of(code, part);
    part = fresh(t);
    emit3(t, ATLAS_OP_min, ATLAS_u32, part, atlas_reg(block), ops_scalar_of(code, ATLAS_u32, t->size - 1));
  }
  emit3(t, ATLAS_OP_mul, ATLAS_u32, first, atlas_reg(part), constant(CONTRACT_CHAIN));
  t->count = fresh(t);
  emit3(t, ATLAS_OP_sub, ATLAS_u32, t->count, ops_scalar_of(&t->c->code, ATLAS_u32, t->c->k), atlas_reg(first));
  emit3(t, ATLAS_OP_min, ATLAS_u32, t->count, atlas_reg(t->count), constant(CONTRACT_CHAIN));
  t->batch = ops_index_of(&t->c->code, batch);
  t->part = ops_index_of(&t->c->code, part);
  t->first = ops_index_of(&t->c->code, first);
  if (t->wide > 1) emit3(t, ATLAS_OP_mul, ATLAS_u32, block, atlas_reg(block), constant(t->wide));
  t->place = ops_index_of(&t->c->code, block);
  t->at_vector[0] = address_of(t, t->vector);
  for (uint32_t v = 1; v < t->vectors; v++) {
    t->at_vector[v] = fresh(t);
    emit3(t, ATLAS_OP_add, t->index, t->at_vector[v], atlas_reg(t->at_vector[v - 1]), number(t, t->vector->stride));
  }
}

static void zero_sums(matvec *t) {
  for (uint32_t w = 0; w < t->wide * t->vectors; w++) {
    t->sums[w] = fresh(t);
    atlas_emit(t->builder, ATLAS_OP_movi, t->sum, 2, atlas_reg(t->sums[w]), atlas_bits(0));
  }
}

/* Loads the next `count` values of a side along K. */
static void load_along(matvec *t, const contract_side *side, uint16_t at, const uint16_t *values, uint32_t count) {
  int is_dense = side->k_stride == 1;
  for (uint32_t k = 0; k < count; k++) {
    load(t, side, values[k], at, is_dense ? k : 0);
    if (!is_dense) emit3(t, ATLAS_OP_add, t->index, at, atlas_reg(at), number(t, side->k_stride));
  }
  if (is_dense) emit3(t, ATLAS_OP_add, t->index, at, atlas_reg(at), atlas_int_const(t->index, count));
}

static void load_vector(matvec *t, uint32_t v, uint32_t count) {
  load_along(t, t->vector, t->at_vector[v], t->vector_values[v], count);
}

/* ---- neighbours along the result, or none ----------------------------------------------------------------------- */

static void add_products(matvec *t, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    for (uint32_t w = 0; w < t->wide; w++) load(t, t->matrix, t->matrix_values[4 * k + w], t->at_matrix[0], w);
    emit3(t, ATLAS_OP_add, t->index, t->at_matrix[0], atlas_reg(t->at_matrix[0]), t->step);
  }
  for (uint32_t v = 0; v < t->vectors; v++) load_vector(t, v, count);
  for (uint32_t k = 0; k < count; k++) {
    for (uint32_t v = 0; v < t->vectors; v++) widen(t, t->vector, t->vector_values[v][k]);
    for (uint32_t w = 0; w < t->wide; w++) {
      widen(t, t->matrix, t->matrix_values[4 * k + w]);
      for (uint32_t v = 0; v < t->vectors; v++)
        multiply(t, t->sums[t->wide * v + w], t->matrix_values[4 * k + w], t->vector_values[v][k]);
    }
  }
}

/* ---- few results, which have many chains ------------------------------------------------------------------------- */

/* The products of a lane's chain, whose factors lie along K on both sides. */
static void add_chain(matvec *t, uint32_t count) {
  load_along(t, t->matrix, t->at_matrix[0], t->matrix_values, count);
  load_vector(t, 0, count);
  for (uint32_t k = 0; k < count; k++) {
    widen(t, t->matrix, t->matrix_values[k]);
    widen(t, t->vector, t->vector_values[0][k]);
    multiply(t, t->sums[0], t->matrix_values[k], t->vector_values[0][k]);
  }
}

/* ---- loops over K ------------------------------------------------------------------------------------------------ */

/* Repeats as often as the register `turns`, which is used up, says; possibly never. */
static void repeat_products(matvec *t, uint16_t turns, uint32_t count) {
  uint32_t top = atlas_builder_label(t->builder, NULL), done = atlas_builder_label(t->builder, NULL);
  ops_branch_if(t->builder, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(turns), constant(0), done);
  atlas_builder_place(t->builder, top);
  if (t->way == BY_CHAINS) add_chain(t, count);
  else add_products(t, count);
  atlas_emit(t->builder, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(turns), atlas_label_ref(top));
  atlas_builder_place(t->builder, done);
}

static void sum_chain(matvec *t) {
  uint16_t turns = fresh(t);
  for (uint32_t i = 0; i < 4 * OPS_MATVEC_VALUES; i++) t->matrix_values[i] = fresh(t);
  emit3(t, ATLAS_OP_shr, ATLAS_u32, turns, atlas_reg(t->count), constant((uint64_t)__builtin_ctz(t->rows)));
  repeat_products(t, turns, t->rows);
  if (t->c->k % t->rows == 0) return;
  emit3(t, ATLAS_OP_and, ATLAS_u32, turns, atlas_reg(t->count), constant(t->rows - 1));
  repeat_products(t, turns, 1);
}

static void sum_columns(matvec *t) {
  uint16_t at = fresh(t), step = fresh(t);
  t->step = number(t, t->matrix->k_stride);
  if (t->matrix->k_stride % 4 == 0) {
    emit3(t, ATLAS_OP_shl, t->index, step, number(t, t->matrix->k_stride / 4), constant(2));
    t->step = atlas_reg(step);
  }
  emit3(t, ATLAS_OP_min, t->index, at, atlas_reg(t->place), number(t, (int64_t)(t->size - t->wide)));
  t->at_matrix[0] = address_of(t, t->matrix);
  multiply_add(t, t->at_matrix[0], atlas_reg(at), number(t, t->matrix->stride));
  sum_chain(t);
}

/* The block's result has a row of one side and a column of the other. */
static void sum_result(matvec *t) {
  uint16_t row = fresh(t), column = fresh(t);
  atlas_operand columns = number(t, (int64_t)t->c->n);
  emit3(t, ATLAS_OP_div, t->index, row, atlas_reg(t->result), columns);
  emit3(t, ATLAS_OP_rem, t->index, column, atlas_reg(t->result), columns);
  t->at_matrix[0] = address_of(t, t->matrix);
  multiply_add(t, t->at_matrix[0], atlas_reg(row), number(t, t->matrix->stride));
  multiply_add(t, t->at_vector[0], atlas_reg(column), number(t, t->vector->stride));
  sum_chain(t);
}

/* ---- neighbours along K ------------------------------------------------------------------------------------------ */

/* Loads the lane's share of a tile: four neighbours in some rows. */
static void fetch_tile(matvec *t) {
  for (uint32_t r = 0; r < FETCHES; r++) {
    for (uint32_t i = 0; i < 4; i++) load(t, t->matrix, t->matrix_values[4 * r + i], t->at_matrix[r], i);
    emit3(t, ATLAS_OP_add, t->index, t->at_matrix[r], atlas_reg(t->at_matrix[r]),
          atlas_int_const(t->index, OPS_MATVEC_TILE));
  }
}

/* Rows behind the last repeat the last one. */
static uint16_t address_of_row(matvec *t, uint16_t row, uint16_t base) {
  uint16_t index = ops_index_of(&t->c->code, row), at = fresh(t);
  emit3(t, ATLAS_OP_min, t->index, index, atlas_reg(index), number(t, (int64_t)(t->size - 1)));
  atlas_emit(t->builder, ATLAS_OP_mad, t->index, 4, atlas_reg(at), atlas_reg(index), number(t, t->matrix->stride),
             atlas_reg(base));
  return at;
}

static void begin_rows(matvec *t, uint16_t first_row, uint16_t low) {
  uint16_t base = address_of(t, t->matrix), k = ops_index_of(&t->c->code, low);
  uint16_t row = ops_launch_coordinate(&t->c->code, ATLAS_COORD_BLOCK_X);
  emit3(t, ATLAS_OP_mul, ATLAS_u32, row, atlas_reg(row), constant(OPS_MATVEC_ROW_LANES));
  if (t->c->k % OPS_MATVEC_TILE != 0) {
    uint16_t own = fresh(t), whole = fresh(t);
    emit3(t, ATLAS_OP_add, ATLAS_u32, own, atlas_reg(row), atlas_reg(ATLAS_REG_BLOCK_LANE));
    emit3(t, ATLAS_OP_and, ATLAS_u32, whole, atlas_reg(t->count), constant(2 * CONTRACT_CHAIN - OPS_MATVEC_TILE));
    t->own_row = address_of_row(t, own, base);
    uint16_t index = ops_index_of(&t->c->code, whole);
    emit3(t, ATLAS_OP_add, t->index, t->own_row, atlas_reg(t->own_row), atlas_reg(index));
  }
  emit3(t, ATLAS_OP_add, t->index, base, atlas_reg(base), atlas_reg(k));
  emit3(t, ATLAS_OP_add, ATLAS_u32, row, atlas_reg(row), atlas_reg(first_row));
  for (uint32_t r = 0; r < FETCHES; r++) {
    t->at_matrix[r] = address_of_row(t, row, base);
    emit3(t, ATLAS_OP_add, ATLAS_u32, row, atlas_reg(row), constant(OPS_MATVEC_ROW_LANES / LANES_OF_ROW));
  }
}

static void store_tile(matvec *t, uint16_t tile, uint16_t place) {
  for (uint32_t i = 0; i < 4 * FETCHES; i++) {
    uint16_t value = t->matrix_values[i];
    if (t->matrix->type != t->sum) { /* next to the loop: if there is no next one it remains unchanged */
      value = t->matrix_values[4 * FETCHES + i];
      atlas_emit2(t->builder, ATLAS_OP_cvt, t->sum, (atlas_type)t->matrix->type, atlas_reg(value),
                  atlas_reg(t->matrix_values[i]));
    }
    atlas_emit(
        t->builder, ATLAS_OP_sts, t->sum, 2,
        atlas_mem_reg(tile, place, (int64_t)(i / 4 * (OPS_MATVEC_ROW_LANES / LANES_OF_ROW) * TILE_PITCH + i % 4)),
        atlas_reg(value));
  }
}

/* Stores the chain's part of the vector, which all lanes read; behind its end the last value is repeated. */
static void store_vector(matvec *t, uint16_t shared) {
  uint16_t k = fresh(t), last = fresh(t), value = t->vector_values[0][0];
  emit3(t, ATLAS_OP_sub, ATLAS_u32, last, atlas_reg(t->count), constant(1));
  for (uint32_t first = 0; first < CONTRACT_CHAIN; first += OPS_MATVEC_ROW_LANES) {
    emit3(t, ATLAS_OP_add, ATLAS_u32, k, atlas_reg(ATLAS_REG_BLOCK_LANE), constant(first));
    emit3(t, ATLAS_OP_min, ATLAS_u32, k, atlas_reg(k), atlas_reg(last));
    uint16_t at = ops_index_of(&t->c->code, k);
    atlas_emit(t->builder, ATLAS_OP_mad, t->index, 4, atlas_reg(at), atlas_reg(at), number(t, t->vector->k_stride),
               atlas_reg(t->at_vector[0]));
    load(t, t->vector, value, at, 0);
    widen(t, t->vector, value);
    atlas_emit(t->builder, ATLAS_OP_sts, t->sum, 2, atlas_mem_reg(shared, ATLAS_REG_BLOCK_LANE, first),
               atlas_reg(value));
  }
}

static void sum_tile(matvec *t, uint16_t tile, uint16_t row, uint16_t vector, uint16_t first) {
  for (uint32_t k = 0; k < OPS_MATVEC_TILE; k++) {
    uint16_t a = t->matrix_values[4 * FETCHES + k % OPS_MATVEC_VALUES], b = t->vector_values[0][k % OPS_MATVEC_VALUES];
    atlas_emit(t->builder, ATLAS_OP_lds, t->sum, 2, atlas_reg(a), atlas_mem_reg(tile, row, k));
    atlas_emit(t->builder, ATLAS_OP_lds, t->sum, 2, atlas_reg(b), atlas_mem_reg(vector, first, k));
    multiply(t, t->sums[0], a, b);
  }
  emit3(t, ATLAS_OP_add, ATLAS_u32, first, atlas_reg(first), constant(OPS_MATVEC_TILE));
}

static void sum_tiles(matvec *t, uint16_t turns) {
  atlas_builder *b = t->builder;
  uint16_t tile = atlas_builder_shared(b, "tile", t->sum, OPS_MATVEC_ROW_LANES * TILE_PITCH);
  uint16_t vector = atlas_builder_shared(b, "vector", t->sum, CONTRACT_CHAIN);
  uint16_t first_row = fresh(t), low = fresh(t), place = fresh(t), row = fresh(t), k = fresh(t);
  uint32_t top = atlas_builder_label(b, "top"), last = atlas_builder_label(b, "last");
  uint32_t none = atlas_builder_label(b, "none");
  emit3(t, ATLAS_OP_div, ATLAS_u32, first_row, atlas_reg(ATLAS_REG_BLOCK_LANE), constant(LANES_OF_ROW));
  emit3(t, ATLAS_OP_and, ATLAS_u32, low, atlas_reg(ATLAS_REG_BLOCK_LANE), constant(LANES_OF_ROW - 1));
  emit3(t, ATLAS_OP_shl, ATLAS_u32, low, atlas_reg(low), constant(2));
  atlas_emit(b, ATLAS_OP_mad, ATLAS_u32, 4, atlas_reg(place), atlas_reg(first_row), constant(TILE_PITCH),
             atlas_reg(low));
  emit3(t, ATLAS_OP_mul, ATLAS_u32, row, atlas_reg(ATLAS_REG_BLOCK_LANE), constant(TILE_PITCH));
  begin_rows(t, first_row, low);
  if (t->c->k % CONTRACT_CHAIN != 0) {
    ops_branch_if(b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(turns), constant(0), none);
  }
  fetch_tile(t);
  store_vector(t, vector);
  atlas_emit(b, ATLAS_OP_mov, ATLAS_u32, 2, atlas_reg(k), constant(0));
  atlas_builder_place(b, top);
  store_tile(t, tile, place);
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  ops_branch_if(b, ATLAS_OP_set_eq, ATLAS_u32, atlas_reg(turns), constant(1), last);
  fetch_tile(t);
  atlas_builder_place(b, last);
  sum_tile(t, tile, row, vector, k);
  atlas_emit(b, ATLAS_OP_bar_sync, ATLAS_NONE, 0);
  atlas_emit(b, ATLAS_OP_loop, ATLAS_NONE, 2, atlas_reg(turns), atlas_label_ref(top));
  atlas_builder_place(b, none);
}

static void sum_rows(matvec *t) {
  uint16_t turns = fresh(t);
  for (uint32_t i = 0; i < 4 * OPS_MATVEC_VALUES; i++) t->matrix_values[i] = fresh(t);
  emit3(t, ATLAS_OP_div, ATLAS_u32, turns, atlas_reg(t->count), constant(OPS_MATVEC_TILE));
  sum_tiles(t, turns);
  if (t->c->k % OPS_MATVEC_TILE == 0) return;
  uint16_t whole = fresh(t), index;
  emit3(t, ATLAS_OP_and, ATLAS_u32, turns, atlas_reg(t->count), constant(OPS_MATVEC_TILE - 1));
  emit3(t, ATLAS_OP_sub, ATLAS_u32, whole, atlas_reg(t->count), atlas_reg(turns));
  index = ops_index_of(&t->c->code, whole);
  multiply_add(t, t->at_vector[0], atlas_reg(index), number(t, t->vector->k_stride));
  t->at_matrix[0] = t->own_row;
  t->step = atlas_int_const(t->index, 1);
  repeat_products(t, turns, 1);
}

/* ---- all of it --------------------------------------------------------------------------------------------------- */

static uint16_t next_vector(matvec *t, uint32_t v) {
  uint16_t at = fresh(t);
  atlas_emit(t->builder, ATLAS_OP_mov, t->index, 2, atlas_reg(at), atlas_int_const(t->index, v));
  return at;
}

static void put(matvec *t, const contract_results *results) {
  contract *c = t->c;
  ops_code *code = &c->code;
  ops_form form = {.constant = 0};
  uint32_t beyond = atlas_builder_label(t->builder, "beyond");
  uint16_t zero = fresh(t);
  form.factor[AT_PART] = (int64_t)(c->batch * c->m * c->n);
  form.factor[AT_BATCH] = (int64_t)(c->m * c->n);
  form.factor[t->axis] = t->axis == AT_M ? (int64_t)c->n : 1;
  form.factor[t->across] = t->across == AT_M ? (int64_t)c->n : 1;
  atlas_emit(t->builder, ATLAS_OP_mov, t->index, 2, atlas_reg(zero), atlas_int_const(t->index, 0));
  code->variable[AT_BATCH] = t->batch;
  code->variable[AT_PART] = t->part;
  code->variable[AT_M] = code->variable[AT_N] = zero;
  if (t->way == BY_CHAINS) code->variable[t->across] = t->result;
  else code->variable[t->axis] = t->place;
  code->displaced = t->axis;
  ops_branch_if(t->builder, ATLAS_OP_set_ge, t->index, atlas_reg(t->place), number(t, (int64_t)t->size), beyond);
  for (uint32_t i = 0; i < t->vectors * t->wide; i++) {
    if (i > 0 && i % t->wide == 0) code->variable[t->across] = next_vector(t, i / t->wide);
    code->displacement = i % t->wide;
    if (c->parts > 1) ops_store(code, c->partial, &form, t->sum, t->sums[i]);
    else ops_contract_put(c, results, t->sums[i]);
    ops_forget(code, 1u << t->axis | 1u << t->across);
  }
  code->displacement = 0;
  atlas_builder_place(t->builder, beyond);
}

/* How many vectors a matrix is multiplied by, each of which lies along K. */
static uint64_t vectors_of(const contract *c) { return c->m < c->n ? c->m : c->n; }

/* Several vectors: on a GPU, if a row of the matrix lies along the result, and the sums fit the registers. H200, 8 x
 * 4096 x 4096 f32: 47 us, in tiles 59. */
static int are_few(const contract *c) {
  const contract_side *matrix = c->m < c->n ? &c->b : &c->a;
  uint64_t most = atlas_bytes((atlas_type)c->sum_type) == 8 ? MOST_VECTORS / 2 : MOST_VECTORS;
  if (vectors_of(c) == 1) return 1;
  return c->group->plan->for_gpu && vectors_of(c) <= most && matrix->stride == 1 && matrix->k_stride != 1;
}

static uint64_t chains_of(const contract *c) { return (c->k + CONTRACT_CHAIN - 1) / CONTRACT_CHAIN; }

/* Products of vectors, which in tiles would be computed by few blocks one chain after the other. */
static int are_chains(const contract *c) {
  return c->group->plan->for_gpu && c->m * c->n <= OPS_MATVEC_RESULTS && chains_of(c) >= OPS_MATVEC_CHAINS &&
         c->batch < 65536;
}

int ops_contract_is_matvec(const contract *c) {
  uint64_t chains = chains_of(c);
  if (!contract_is_plain(&c->a) || !contract_is_plain(&c->b)) return 0;
  if (are_chains(c)) return 1;
  return are_few(c) && c->m * c->n >= OPS_MATVEC_LANES * vectors_of(c) &&
         chains <= OPS_CONTRACT_MOST_PARTS * OPS_CONTRACT_MOST_PARTS && c->batch < 65536;
}

/* How the work is laid over lanes, and the sides over axes. */
static void lay_out(matvec *t) {
  contract *c = t->c;
  const ops_plan *plan = c->group->plan;
  int by_chains = are_chains(c), is_across = c->m < c->n && !by_chains;
  t->vectors = by_chains ? 1 : (uint32_t)vectors_of(c);
  t->matrix = is_across ? &c->b : &c->a;
  t->vector = is_across ? &c->a : &c->b;
  t->axis = t->matrix->outer;
  t->across = t->vector->outer;
  t->size = by_chains ? c->parts : is_across ? c->n : c->m;
  t->rows = plan->for_gpu && t->vectors == 1 ? OPS_MATVEC_ROWS_GPU : OPS_MATVEC_ROWS;
  int by_rows = t->matrix->k_stride == 1 && t->matrix->stride != 1 && c->k >= OPS_MATVEC_TILE &&
                t->sum != ATLAS_f64 && t->sum != ATLAS_i64 && t->sum != ATLAS_u64;
  t->way = by_chains ? BY_CHAINS : by_rows ? BY_ROWS : BY_COLUMNS;
  t->wide = t->matrix->stride == 1 && t->size % 4 == 0 && t->way == BY_COLUMNS ? 4 : 1;
  t->lanes = t->way == BY_ROWS ? OPS_MATVEC_ROW_LANES : OPS_MATVEC_LANES;
  uint64_t along_y = by_chains ? c->m * c->n : c->parts;
  uint64_t units = plan->for_gpu ? plan->target.compute_units : 0, lanes = t->size / t->wide * along_y * c->batch;
  while (t->way != BY_ROWS && t->lanes > OPS_MATVEC_LEAST_LANES && lanes / t->lanes < 2 * units) t->lanes /= 2;
  uint64_t along_x = (t->size + t->lanes * t->wide - 1) / (t->lanes * t->wide);
  ops_launch_blocks(&c->code, along_x, along_y, c->batch, t->lanes);
}

hg_status ops_contract_matvec(contract *c, ops_step *step) {
  contract_results results;
  HG_TRY(ops_contract_begin(c, step, "contract_thin", &results));
  matvec t;
  memset(&t, 0, sizeof t);
  t.c = c;
  t.builder = c->code.builder;
  t.index = c->code.index_type;
  t.sum = (atlas_type)c->sum_type;
  lay_out(&t);
  begin_places(&t);
  zero_sums(&t);
  for (uint32_t v = 0; v < t.vectors; v++)
    for (uint32_t k = 0; k < OPS_MATVEC_VALUES; k++) t.vector_values[v][k] = fresh(&t);
  if (t.way == BY_CHAINS) sum_result(&t);
  else if (t.way == BY_ROWS) sum_rows(&t);
  else sum_columns(&t);
  put(&t, &results);
  return ops_code_end(&c->code);
}
