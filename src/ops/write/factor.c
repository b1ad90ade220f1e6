/* factor.c - what all programs that factor matrices share: numbers, loops, the block's memory, the launch.
 *
 * A block has a matrix, a lane every `lanes`-th row or column of it. Each number is computed by one lane, as a chain of
 * fma in a fixed order, from what was complete at the last barrier: so bits depend on nothing but the matrix. Where
 * lanes have rows the matrix is stored by columns, and by rows where they have columns: neighbours lie side by side. */
#include "ops/write/factor.h"

#include "atlas/value.h"
#include "ops/graph/ops_tuning.h"

#include <string.h>

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

uint16_t ops_factor_integer(factor *f, uint32_t value) {
  uint16_t to = factor_register(f);
  atlas_emit(f->b, ATLAS_OP_movi, ATLAS_u32, 2, atlas_reg(to), atlas_bits(value));
  return to;
}

uint16_t ops_factor_number(factor *f, double value) {
  uint64_t bits;
  uint16_t to = factor_register(f);
  memcpy(&bits, &value, sizeof bits);
  atlas_emit(f->b, ATLAS_OP_movi, f->type, 2, atlas_reg(to), atlas_bits(atlas_convert(f->type, ATLAS_f64, bits)));
  return to;
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

factor_loop ops_factor_for(factor *f, atlas_operand start, atlas_operand end, uint32_t step) {
  factor_loop loop = {.i = factor_register(f), .step = step};
  loop.top = atlas_builder_label(f->b, NULL);
  loop.out = atlas_builder_label(f->b, NULL);
  atlas_emit(f->b, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(loop.i), start, atlas_bits(0));
  atlas_builder_place(f->b, loop.top);
  factor_test(f, FACTOR_IS_MORE, ATLAS_OP_set_lt, ATLAS_u32, loop.i, end);
  atlas_emit_branch(f->b, FACTOR_IS_MORE, 1, loop.out);
  return loop;
}

void ops_factor_again(factor *f, const factor_loop *loop) {
  atlas_emit(f->b, ATLAS_OP_add, ATLAS_u32, 3, atlas_reg(loop->i), atlas_reg(loop->i), atlas_bits(loop->step));
  atlas_emit_branch(f->b, -1, 0, loop->top);
  atlas_builder_place(f->b, loop->out);
}

factor_loop ops_factor_for_own(factor *f, uint32_t count) {
  return ops_factor_for(f, atlas_reg(ATLAS_REG_BLOCK_LANE), atlas_bits(count), f->lanes);
}

uint32_t ops_factor_if(factor *f, uint32_t predicate, int wanted) {
  uint32_t label = atlas_builder_label(f->b, NULL);
  atlas_emit_branch(f->b, (int)predicate, wanted, label);
  return label;
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

factor_matrix ops_factor_add_matrix(factor *f, uint32_t rows, uint32_t columns, int rows_are_apart) {
  factor_matrix matrix = {.first = f->numbers, .row = 1, .column = rows};
  if (rows_are_apart) matrix.row = columns, matrix.column = 1;
  f->numbers += rows * columns;
  return matrix;
}

static atlas_operand place_of(factor *f, const factor_matrix *matrix, uint16_t i, uint16_t j) {
  uint16_t fast = matrix->row == 1 ? i : j, slow = matrix->row == 1 ? j : i, at = factor_register(f);
  uint32_t stride = matrix->row == 1 ? matrix->column : matrix->row;
  atlas_emit(f->b, ATLAS_OP_mad, ATLAS_u32, 4, atlas_reg(at), atlas_reg(slow), atlas_bits(stride), atlas_reg(fast));
  if (f->storage == 0) return atlas_mem_reg(f->memory, at, matrix->first);
  uint16_t wide = factor_register(f);
  atlas_emit2(f->b, ATLAS_OP_cvt, ATLAS_i64, ATLAS_u32, atlas_reg(wide), atlas_reg(at));
  atlas_emit(f->b, ATLAS_OP_add, ATLAS_i64, 3, atlas_reg(wide), atlas_reg(wide), atlas_reg(f->base));
  return atlas_mem_reg(f->memory, wide, matrix->first);
}

uint16_t ops_factor_get(factor *f, const factor_matrix *matrix, uint16_t i, uint16_t j) {
  atlas_operand place = place_of(f, matrix, i, j);
  uint16_t value = factor_register(f);
  atlas_emit(f->b, f->storage == 0 ? ATLAS_OP_lds : ATLAS_OP_ldg, f->type, 2, atlas_reg(value), place);
  return value;
}

void ops_factor_put(factor *f, const factor_matrix *matrix, uint16_t i, uint16_t j, uint16_t value) {
  atlas_operand place = place_of(f, matrix, i, j);
  atlas_emit(f->b, f->storage == 0 ? ATLAS_OP_sts : ATLAS_OP_stg, f->type, 2, place, atlas_reg(value));
}

/* Coordinates of the last two axes. */
static void set_place(factor *f, uint16_t i, uint16_t j) {
  uint32_t rank = f->terms.space.rank;
  uint16_t *variable = &f->code.variable[rank - 2];
  uint16_t numbers[2] = {i, j};
  for (uint32_t k = 0; k < 2; k++) {
    variable[k] = factor_register(f);
    atlas_emit2(f->b, ATLAS_OP_cvt, ATLAS_i64, ATLAS_u32, atlas_reg(variable[k]), atlas_reg(numbers[k]));
  }
  ops_forget_all(&f->code);
}

uint16_t ops_factor_element(factor *f, uint32_t input, uint16_t i, uint16_t j) {
  uint16_t value = factor_register(f);
  set_place(f, i, j);
  factor_move(f, f->type, value, ops_value(&f->code, f->input[input]));
  ops_forget_all(&f->code);
  return value;
}

void ops_factor_result(factor *f, uint16_t i, uint16_t j, uint16_t value) {
  uint32_t storage = f->group->storage_of[f->group->results[0] - 1] - 1;
  ops_form address = ops_address((const ops_storage *)f->group->plan->storages.data + storage, f->own);
  set_place(f, i, j);
  ops_store(&f->code, storage, &address, f->type, value);
  ops_forget_all(&f->code);
}

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

uint64_t ops_factor_matrices(const factor *f) {
  uint64_t count = 1;
  for (uint32_t i = 0; i + 2 < f->node->shape.rank; i++) count *= f->node->shape.size[i];
  return count;
}

hg_status ops_factor_begin_launch(factor *f, const char *name, uint64_t lanes) {
  for (uint32_t i = 0; i < f->node->input_count; i++)
    HG_TRY(ops_term_of(&f->terms, f->node->input[i], f->own, &f->input[i]));
  if (f->storage != 0) HG_TRY(ops_reads(&f->terms, f->storage - 1));
  HG_TRY(ops_code_begin_step(&f->code, &f->terms, name, "factor"));
  f->b = f->code.builder;
  f->code.index_type = ATLAS_i64;
  f->code.step->lanes = lanes;
  if (f->storage != 0) {
    f->code.partials[f->code.partial_count++] = f->storage - 1;
    f->memory = ops_buffer_of(&f->code, f->storage - 1);
  }
  return HG_OK;
}

hg_status ops_factor_begin(factor *f, const char *name, uint32_t owned) {
  uint32_t rank = f->node->shape.rank;
  uint64_t matrices = ops_factor_matrices(f);
  f->lanes = (owned + OPS_FACTOR_LEAST_LANES - 1) / OPS_FACTOR_LEAST_LANES * OPS_FACTOR_LEAST_LANES;
  if (f->lanes > OPS_FACTOR_MOST_LANES) f->lanes = OPS_FACTOR_MOST_LANES;
  uint32_t most = f->group->plan->target.shared_bytes, beside = OPS_SHARED_COLLECTIVES;
  if (most > OPS_FACTOR_SHARED_BYTES + beside) most = OPS_FACTOR_SHARED_BYTES + beside;
  if ((uint64_t)f->numbers * atlas_bytes(f->type) + beside > most) {
    HG_TRY(ops_add_temporary(f->group->plan, (uint8_t)f->type, matrices * f->numbers, &f->storage));
    f->storage++;
  }
  HG_TRY(ops_factor_begin_launch(f, name, 0));
  ops_launch_blocks(&f->code, matrices, 1, 1, f->lanes);
  uint16_t block = ops_launch_coordinate(&f->code, ATLAS_COORD_BLOCK_X), number = factor_register(f);
  atlas_emit2(f->b, ATLAS_OP_cvt, ATLAS_i64, ATLAS_u32, atlas_reg(number), atlas_reg(block));
  if (f->storage == 0) {
    f->memory = atlas_builder_shared(f->b, "numbers", f->type, f->numbers);
  } else {
    f->base = factor_register(f);
    atlas_emit(f->b, ATLAS_OP_mul, ATLAS_i64, 3, atlas_reg(f->base), atlas_reg(number),
               ops_scalar_of(&f->code, ATLAS_i64, f->numbers));
  }
  for (uint32_t i = 0; i < rank; i++) f->code.variable[i] = OPS_NO_REGISTER;
  ops_split(&f->code, &f->node->shape, (1u << (rank - 2)) - 1, rank - 2, matrices, atlas_reg(number), ATLAS_i64);
  return HG_OK;
}

uint16_t ops_factor_scale_of(factor *f, uint16_t magnitude) {
  atlas_type bits = f->type == ATLAS_f64 ? ATLAS_u64 : ATLAS_u32;
  uint64_t exponents = f->type == ATLAS_f64 ? UINT64_C(0x7ff) << 52 : UINT64_C(0xff) << 23;
  uint64_t twice_one = f->type == ATLAS_f64 ? UINT64_C(0x7fe) << 52 : UINT64_C(0xfe) << 23;
  uint64_t least = f->type == ATLAS_f64 ? UINT64_C(1) << 52 : UINT64_C(1) << 23;
  uint16_t scale = factor_register(f), power = factor_register(f);
  atlas_emit2(f->b, ATLAS_OP_bitcast, bits, f->type, atlas_reg(power), atlas_reg(magnitude));
  power = factor_emit(f, ATLAS_OP_and, bits, atlas_reg(power), atlas_bits(exponents));
  factor_test(f, FACTOR_IS_FINITE, ATLAS_OP_set_ne, bits, power, atlas_bits(exponents));
  power = factor_emit(f, ATLAS_OP_max, bits, atlas_reg(power), atlas_bits(least));
  power = factor_emit(f, ATLAS_OP_min, bits, atlas_reg(power), atlas_bits(twice_one - least));
  uint16_t rest = factor_register(f);
  atlas_emit(f->b, ATLAS_OP_movi, bits, 2, atlas_reg(rest), atlas_bits(twice_one));
  rest = factor_emit(f, ATLAS_OP_sub, bits, atlas_reg(rest), atlas_reg(power));
  atlas_emit2(f->b, ATLAS_OP_bitcast, f->type, bits, atlas_reg(scale), atlas_reg(rest));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, f->type, magnitude, atlas_reg(ops_factor_number(f, 0)));
  scale = factor_select(f, f->type, FACTOR_IS_SO, ops_factor_number(f, 1), scale);
  uint16_t none = factor_float(f, ATLAS_OP_sub, magnitude, magnitude); /* of what is not finite: NaN */
  return factor_select(f, f->type, FACTOR_IS_FINITE, scale, none);
}
