/* factor_direct.c - factors that take one pass over the columns, and triangular systems (Golub and Van Loan, "Matrix
 * Computations", 4th edition: 4.2, 3.4, 5.2, 3.1). */
#include "ops/write/factor.h"

#include <string.h>

static uint16_t as_number(factor *f, uint16_t integer) {
  uint16_t to = factor_register(f);
  atlas_emit2(f->b, ATLAS_OP_cvt, f->type, ATLAS_u32, atlas_reg(to), atlas_reg(integer));
  return to;
}

static factor_loop for_own_from(factor *f, uint16_t first, uint32_t count) {
  uint16_t start = factor_index(f, ATLAS_OP_add, first, atlas_reg(ATLAS_REG_BLOCK_LANE));
  return ops_factor_for(f, atlas_reg(start), atlas_bits(count), f->lanes);
}

/* All elements of the input. */
static void load(factor *f, const factor_matrix *a) {
  int by_rows = a->column == 1;
  factor_loop own = ops_factor_for_own(f, by_rows ? f->n : f->m);
  factor_loop all = ops_factor_for(f, atlas_bits(0), atlas_bits(by_rows ? f->m : f->n), 1);
  uint16_t i = by_rows ? all.i : own.i, j = by_rows ? own.i : all.i;
  ops_factor_put(f, a, i, j, ops_factor_element(f, 0, i, j));
  ops_factor_again(f, &all);
  ops_factor_again(f, &own);
  factor_barrier(f);
}

/* ---- Cholesky ---------------------------------------------------------------------------------------------------- */

/* Column by column: what is left of it when earlier ones are taken off, over the root of what is left of the
 * diagonal, which stays as it is. */
static hg_status write_cholesky(factor *f) {
  factor_matrix a = ops_factor_add_matrix(f, f->n, f->n, 0);
  HG_TRY(ops_factor_begin(f, "cholesky", f->n));
  load(f, &a);
  factor_loop step = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  factor_loop own = for_own_from(f, step.i, f->n);
  uint16_t rest = factor_register(f);
  factor_move(f, f->type, rest, ops_factor_get(f, &a, own.i, step.i));
  factor_loop before = ops_factor_for(f, atlas_bits(0), atlas_reg(step.i), 1);
  uint16_t minus = factor_unary(f, ATLAS_OP_neg, ops_factor_get(f, &a, own.i, before.i));
  factor_move(f, f->type, rest, factor_fma(f, minus, ops_factor_get(f, &a, step.i, before.i), rest));
  ops_factor_again(f, &before);
  ops_factor_put(f, &a, own.i, step.i, rest);
  ops_factor_again(f, &own);
  factor_barrier(f);
  uint16_t root = factor_unary(f, ATLAS_OP_sqrt, ops_factor_get(f, &a, step.i, step.i));
  uint16_t below = factor_index(f, ATLAS_OP_add, step.i, atlas_bits(1));
  own = for_own_from(f, below, f->n);
  ops_factor_put(f, &a, own.i, step.i, factor_float(f, ATLAS_OP_div, ops_factor_get(f, &a, own.i, step.i), root));
  ops_factor_again(f, &own);
  factor_barrier(f);
  ops_factor_again(f, &step);
  own = ops_factor_for_own(f, f->n);
  factor_loop all = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  uint16_t value = ops_factor_get(f, &a, own.i, all.i);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, ATLAS_u32, own.i, atlas_reg(all.i));
  value = factor_select(f, f->type, FACTOR_IS_SO, factor_unary(f, ATLAS_OP_sqrt, value), value);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_lt, ATLAS_u32, own.i, atlas_reg(all.i));
  value = factor_select(f, f->type, FACTOR_IS_SO, ops_factor_number(f, 0), value);
  ops_factor_result(f, own.i, all.i, value);
  ops_factor_again(f, &all);
  ops_factor_again(f, &own);
  return HG_OK;
}

/* ---- LU ---------------------------------------------------------------------------------------------------------- */

/* Rows stay where they are: `place` has the step that a row was the pivot of, -1 before. */
typedef struct lu {
  factor_matrix a, place;
  uint16_t zero; /* u32 */
} lu;

/* The row that is no pivot yet and has the largest magnitude in a column: the first of equal ones. */
static uint16_t find_pivot(factor *f, const lu *w, uint16_t column) {
  uint16_t best = factor_register(f), pivot = factor_register(f);
  factor_move(f, f->type, best, ops_factor_number(f, -1));
  factor_move(f, ATLAS_u32, pivot, w->zero);
  factor_loop rows = ops_factor_for(f, atlas_bits(0), atlas_bits(f->m), 1);
  uint16_t magnitude = factor_unary(f, ATLAS_OP_abs, ops_factor_get(f, &w->a, rows.i, column));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_le, f->type, magnitude, atlas_reg(best));
  factor_test(f, FACTOR_IS_TOO, ATLAS_OP_set_ge, f->type, ops_factor_get(f, &w->place, rows.i, w->zero),
              atlas_reg(ops_factor_number(f, 0)));
  atlas_emit(f->b, ATLAS_OP_por, ATLAS_NONE, 3, atlas_pred(FACTOR_IS_SO), atlas_pred(FACTOR_IS_SO),
             atlas_pred(FACTOR_IS_TOO));
  factor_move(f, f->type, best, factor_select(f, f->type, FACTOR_IS_SO, best, magnitude));
  factor_move(f, ATLAS_u32, pivot, factor_select(f, ATLAS_u32, FACTOR_IS_SO, pivot, rows.i));
  ops_factor_again(f, &rows);
  return pivot;
}

/* Takes multiples of the pivot's row off all that are no pivots yet, and keeps the factors. */
static void eliminate(factor *f, const lu *w, uint16_t step, uint16_t pivot) {
  uint16_t top = ops_factor_get(f, &w->a, pivot, step), next = factor_index(f, ATLAS_OP_add, step, atlas_bits(1));
  factor_loop own = ops_factor_for_own(f, f->m);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, ATLAS_u32, own.i, atlas_reg(pivot));
  uint32_t is_other = ops_factor_if(f, FACTOR_IS_SO, 1);
  ops_factor_put(f, &w->place, own.i, w->zero, as_number(f, step));
  factor_end(f, is_other);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_lt, f->type, ops_factor_get(f, &w->place, own.i, w->zero),
              atlas_reg(ops_factor_number(f, 0)));
  uint32_t is_done = ops_factor_if(f, FACTOR_IS_SO, 1);
  uint16_t element = ops_factor_get(f, &w->a, own.i, step);
  factor_test(f, FACTOR_IS_TOO, ATLAS_OP_set_eq, f->type, top, atlas_reg(ops_factor_number(f, 0)));
  uint16_t share = factor_select(f, f->type, FACTOR_IS_TOO, element, factor_float(f, ATLAS_OP_div, element, top));
  ops_factor_put(f, &w->a, own.i, step, share);
  uint16_t minus = factor_unary(f, ATLAS_OP_neg, share);
  factor_loop columns = ops_factor_for(f, atlas_reg(next), atlas_bits(f->n), 1);
  ops_factor_put(f, &w->a, own.i, columns.i,
                 factor_fma(f, minus, ops_factor_get(f, &w->a, pivot, columns.i),
                            ops_factor_get(f, &w->a, own.i, columns.i)));
  ops_factor_again(f, &columns);
  factor_end(f, is_done);
  ops_factor_again(f, &own);
}

/* Where a row of the result is from: that of a pivot, or behind them those that were none in their order. */
static uint16_t place_of_row(factor *f, const lu *w, uint16_t row, uint32_t steps) {
  uint16_t behind = factor_register(f), own = ops_factor_get(f, &w->place, row, w->zero), place = factor_register(f);
  uint16_t none = ops_factor_number(f, 0);
  factor_move(f, ATLAS_u32, behind, ops_factor_integer(f, steps));
  factor_loop rows = ops_factor_for(f, atlas_bits(0), atlas_reg(row), 1);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_lt, f->type, ops_factor_get(f, &w->place, rows.i, w->zero),
              atlas_reg(none));
  uint16_t more = factor_index(f, ATLAS_OP_add, behind, atlas_bits(1));
  factor_move(f, ATLAS_u32, behind, factor_select(f, ATLAS_u32, FACTOR_IS_SO, more, behind));
  ops_factor_again(f, &rows);
  uint16_t known = factor_register(f);
  atlas_emit2(f->b, ATLAS_OP_cvt, ATLAS_u32, f->type, atlas_reg(known), atlas_reg(own));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_lt, f->type, own, atlas_reg(none));
  factor_move(f, ATLAS_u32, place, factor_select(f, ATLAS_u32, FACTOR_IS_SO, behind, known));
  return place;
}

/* Of an m x n matrix m x (n + 1): both factors, and at last the number of the row that each was. */
static hg_status write_lu(factor *f) {
  uint32_t steps = f->m < f->n ? f->m : f->n;
  lu w = {.a = ops_factor_add_matrix(f, f->m, f->n, 0)};
  w.place = ops_factor_add_matrix(f, f->m, 1, 0);
  HG_TRY(ops_factor_begin(f, "lu", f->m));
  w.zero = ops_factor_integer(f, 0);
  factor_loop own = ops_factor_for_own(f, f->m);
  ops_factor_put(f, &w.place, own.i, w.zero, ops_factor_number(f, -1));
  ops_factor_again(f, &own);
  load(f, &w.a);
  factor_loop step = ops_factor_for(f, atlas_bits(0), atlas_bits(steps), 1);
  uint16_t pivot = find_pivot(f, &w, step.i);
  factor_barrier(f);
  eliminate(f, &w, step.i, pivot);
  factor_barrier(f);
  ops_factor_again(f, &step);
  own = ops_factor_for_own(f, f->m);
  uint16_t place = place_of_row(f, &w, own.i, steps);
  factor_loop all = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  ops_factor_result(f, place, all.i, ops_factor_get(f, &w.a, own.i, all.i));
  ops_factor_again(f, &all);
  ops_factor_result(f, place, ops_factor_integer(f, f->n), as_number(f, own.i));
  ops_factor_again(f, &own);
  return HG_OK;
}

/* ---- QR ---------------------------------------------------------------------------------------------------------- */

/* Reflections I - t v v': v is column k from row k on, times a power of two, but for its first element. */
typedef struct qr {
  factor_matrix a, q;
  factor_matrix scale, first, t, diagonal; /* by step */
  uint16_t zero; /* u32 */
} qr;

/* Reflection k, of column k from row `top` on, by every lane for itself; what others do not know yet is stored by the
 * first one. */
static void find_reflection(factor *f, const qr *w, uint16_t k, uint16_t top, uint16_t of[3]) {
  uint16_t most = factor_register(f), sum = factor_register(f);
  uint16_t below = factor_index(f, ATLAS_OP_add, top, atlas_bits(1)), *scale = &of[0], *first = &of[1], *t = &of[2];
  uint16_t zero = ops_factor_number(f, 0), one = ops_factor_number(f, 1);
  factor_move(f, f->type, most, zero);
  factor_loop rows = ops_factor_for(f, atlas_reg(top), atlas_bits(f->m), 1);
  uint16_t magnitude = factor_unary(f, ATLAS_OP_abs, ops_factor_get(f, &w->a, rows.i, k));
  factor_move(f, f->type, most, factor_float(f, ATLAS_OP_max, most, magnitude));
  ops_factor_again(f, &rows);
  *scale = ops_factor_scale_of(f, most);
  factor_move(f, f->type, sum, zero);
  rows = ops_factor_for(f, atlas_reg(below), atlas_bits(f->m), 1);
  uint16_t part = factor_float(f, ATLAS_OP_mul, ops_factor_get(f, &w->a, rows.i, k), *scale);
  factor_move(f, f->type, sum, factor_fma(f, part, part, sum));
  ops_factor_again(f, &rows);
  uint16_t element = ops_factor_get(f, &w->a, top, k), own = factor_float(f, ATLAS_OP_mul, element, *scale);
  uint16_t norm = factor_unary(f, ATLAS_OP_sqrt, factor_fma(f, own, own, sum));
  uint16_t turned = factor_float(f, ATLAS_OP_copysign, norm, factor_unary(f, ATLAS_OP_neg, own));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, f->type, sum, atlas_reg(zero)); /* nothing to reflect */
  uint16_t size = factor_select(f, f->type, FACTOR_IS_SO, one, factor_float(f, ATLAS_OP_sub, own, turned));
  uint16_t product = factor_float(f, ATLAS_OP_mul, turned, size);
  *first = size;
  *t = factor_select(f, f->type, FACTOR_IS_SO, zero,
                     factor_unary(f, ATLAS_OP_neg, factor_float(f, ATLAS_OP_div, one, product)));
  uint16_t diagonal = factor_select(f, f->type, FACTOR_IS_SO, element,
                                    factor_float(f, ATLAS_OP_div, turned, *scale));
  factor_test(f, FACTOR_IS_TOO, ATLAS_OP_set_eq, ATLAS_u32, ATLAS_REG_BLOCK_LANE, atlas_bits(0));
  uint32_t is_other = ops_factor_if(f, FACTOR_IS_TOO, 1);
  ops_factor_put(f, &w->scale, k, w->zero, *scale);
  ops_factor_put(f, &w->first, k, w->zero, *first);
  ops_factor_put(f, &w->t, k, w->zero, *t);
  ops_factor_put(f, &w->diagonal, k, w->zero, diagonal);
  factor_end(f, is_other);
}

/* Reflects column j of a matrix. */
static void reflect(factor *f, const qr *w, uint16_t k, const factor_matrix *to, uint16_t j, const uint16_t *of) {
  uint16_t scale = of[0], first = of[1], t = of[2], sum = factor_register(f);
  uint16_t below = factor_index(f, ATLAS_OP_add, k, atlas_bits(1)), top = ops_factor_get(f, to, k, j);
  factor_move(f, f->type, sum, factor_float(f, ATLAS_OP_mul, first, top));
  factor_loop rows = ops_factor_for(f, atlas_reg(below), atlas_bits(f->m), 1);
  uint16_t v = factor_float(f, ATLAS_OP_mul, ops_factor_get(f, &w->a, rows.i, k), scale);
  factor_move(f, f->type, sum, factor_fma(f, v, ops_factor_get(f, to, rows.i, j), sum));
  ops_factor_again(f, &rows);
  uint16_t minus = factor_unary(f, ATLAS_OP_neg, factor_float(f, ATLAS_OP_mul, sum, t));
  ops_factor_put(f, to, k, j, factor_fma(f, minus, first, top));
  rows = ops_factor_for(f, atlas_reg(below), atlas_bits(f->m), 1);
  v = factor_float(f, ATLAS_OP_mul, ops_factor_get(f, &w->a, rows.i, k), scale);
  ops_factor_put(f, to, rows.i, j, factor_fma(f, minus, v, ops_factor_get(f, to, rows.i, j)));
  ops_factor_again(f, &rows);
}

/* Columns of the product of the reflections: the last one first. */
static void write_q(factor *f, const qr *w, uint32_t columns, uint32_t steps) {
  factor_loop own = ops_factor_for_own(f, columns);
  factor_loop rows = ops_factor_for(f, atlas_bits(0), atlas_bits(f->m), 1);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, ATLAS_u32, own.i, atlas_reg(rows.i));
  ops_factor_put(f, &w->q, rows.i, own.i,
                 factor_select(f, f->type, FACTOR_IS_SO, ops_factor_number(f, 1), ops_factor_number(f, 0)));
  ops_factor_again(f, &rows);
  factor_loop back = ops_factor_for(f, atlas_bits(0), atlas_bits(steps), 1);
  uint16_t k = factor_index(f, ATLAS_OP_sub, ops_factor_integer(f, steps - 1), atlas_reg(back.i));
  uint16_t of[3] = {ops_factor_get(f, &w->scale, k, w->zero), ops_factor_get(f, &w->first, k, w->zero),
                    ops_factor_get(f, &w->t, k, w->zero)};
  reflect(f, w, k, &w->q, own.i, of);
  ops_factor_again(f, &back);
  rows = ops_factor_for(f, atlas_bits(0), atlas_bits(f->m), 1);
  ops_factor_result(f, rows.i, own.i, ops_factor_get(f, &w->q, rows.i, own.i));
  ops_factor_again(f, &rows);
  ops_factor_again(f, &own);
}

/* Row m + j is column j of R. */
static void write_r(factor *f, const qr *w, uint32_t columns, uint32_t steps) {
  factor_loop own = ops_factor_for_own(f, f->n);
  uint16_t row = factor_index(f, ATLAS_OP_add, own.i, atlas_bits(f->m)), value = factor_register(f);
  factor_loop rows = ops_factor_for(f, atlas_bits(0), atlas_bits(columns), 1);
  factor_move(f, f->type, value, ops_factor_number(f, 0));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_le, ATLAS_u32, rows.i, atlas_reg(own.i));
  uint32_t is_below = ops_factor_if(f, FACTOR_IS_SO, 1);
  factor_move(f, f->type, value, ops_factor_get(f, &w->a, rows.i, own.i));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, ATLAS_u32, rows.i, atlas_reg(own.i));
  uint32_t is_right = ops_factor_if(f, FACTOR_IS_SO, 1);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_lt, ATLAS_u32, rows.i, atlas_bits(steps));
  uint32_t is_last = ops_factor_if(f, FACTOR_IS_SO, 1);
  factor_move(f, f->type, value, ops_factor_get(f, &w->diagonal, rows.i, w->zero));
  factor_end(f, is_last);
  factor_end(f, is_right);
  factor_end(f, is_below);
  ops_factor_result(f, row, rows.i, value);
  ops_factor_again(f, &rows);
  ops_factor_again(f, &own);
}

/* An element of v of reflection k: scale, first, t. */
static uint16_t vector_element(factor *f, const qr *w, uint16_t k, uint16_t top, uint16_t i, const uint16_t of[3]) {
  uint16_t value = factor_float(f, ATLAS_OP_mul, ops_factor_get(f, &w->a, i, k), of[0]);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, ATLAS_u32, i, atlas_reg(top));
  return factor_select(f, f->type, FACTOR_IS_SO, of[1], value);
}

/* Columns v, of which the first `below` elements from the diagonal on are 0 as well, from this row of the result on. */
static void write_vectors(factor *f, const qr *w, uint32_t first_row, uint32_t below) {
  factor_loop own = ops_factor_for_own(f, f->n);
  uint16_t of[3] = {ops_factor_get(f, &w->scale, own.i, w->zero), ops_factor_get(f, &w->first, own.i, w->zero)};
  uint16_t top = factor_index(f, ATLAS_OP_add, own.i, atlas_bits(below));
  factor_loop rows = ops_factor_for(f, atlas_bits(0), atlas_bits(f->m), 1);
  uint16_t value = vector_element(f, w, own.i, top, rows.i, of);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_lt, ATLAS_u32, rows.i, atlas_reg(top));
  value = factor_select(f, f->type, FACTOR_IS_SO, ops_factor_number(f, 0), value);
  ops_factor_result(f, factor_index(f, ATLAS_OP_add, rows.i, atlas_bits(first_row)), own.i, value);
  ops_factor_again(f, &rows);
  ops_factor_again(f, &own);
}

/* A number for each column, as a row of the result; or for the last column an element of the matrix. */
static void write_row(factor *f, const qr *w, const factor_matrix *numbers, uint32_t row, int is_last_from_matrix) {
  factor_loop own = ops_factor_for_own(f, f->n);
  uint16_t value = ops_factor_get(f, numbers, own.i, w->zero);
  if (is_last_from_matrix) {
    factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, ATLAS_u32, own.i, atlas_bits(f->n - 1));
    value = factor_select(f, f->type, FACTOR_IS_SO, ops_factor_get(f, &w->a, own.i, own.i), value);
  }
  ops_factor_result(f, ops_factor_integer(f, row), own.i, value);
  ops_factor_again(f, &own);
}

/* Of an m x n matrix, with q columns of Q, (m + n) x q: Q, and below it R with its axes exchanged; or one row more, and
 * reflections in Q's place. */
static hg_status write_qr(factor *f) {
  uint32_t steps = f->m < f->n ? f->m : f->n, columns = (uint32_t)f->node->shape.size[f->node->shape.rank - 1];
  int is_product = f->node->bits != HG_OP_qr_reflections;
  qr w = {.a = ops_factor_add_matrix(f, f->m, f->n, 1)};
  if (is_product) w.q = ops_factor_add_matrix(f, f->m, columns, 1);
  w.scale = ops_factor_add_matrix(f, steps, 1, 0);
  w.first = ops_factor_add_matrix(f, steps, 1, 0);
  w.t = ops_factor_add_matrix(f, steps, 1, 0);
  w.diagonal = ops_factor_add_matrix(f, steps, 1, 0);
  HG_TRY(ops_factor_begin(f, "qr", columns > f->n ? columns : f->n));
  w.zero = ops_factor_integer(f, 0);
  load(f, &w.a);
  factor_loop step = ops_factor_for(f, atlas_bits(0), atlas_bits(steps), 1);
  uint16_t of[3];
  find_reflection(f, &w, step.i, step.i, of);
  factor_loop own = for_own_from(f, factor_index(f, ATLAS_OP_add, step.i, atlas_bits(1)), f->n);
  reflect(f, &w, step.i, &w.a, own.i, of);
  ops_factor_again(f, &own);
  factor_barrier(f);
  ops_factor_again(f, &step);
  if (is_product)
    write_q(f, &w, columns, steps);
  else
    write_vectors(f, &w, 0, 0), write_row(f, &w, &w.t, f->m + f->n, 0);
  write_r(f, &w, columns, steps);
  return HG_OK;
}

/* ---- tridiagonal matrices ---------------------------------------------------------------------------------------- */

/* What reflections from both sides leave of a symmetric matrix (8.3 of Golub and Van Loan): both triangles. */
typedef struct tridiagonal {
  qr own;
  factor_matrix p; /* what is taken off the matrix is v p' + p v' */
} tridiagonal;

/* The sum of the products of v and column j of a matrix. */
static uint16_t product_with(factor *f, const qr *w, uint16_t k, uint16_t top, const factor_matrix *with, uint16_t j,
                             const uint16_t of[3]) {
  uint16_t sum = factor_register(f);
  factor_move(f, f->type, sum, ops_factor_number(f, 0));
  factor_loop rows = ops_factor_for(f, atlas_reg(top), atlas_bits(f->n), 1);
  factor_move(f, f->type, sum, factor_fma(f, vector_element(f, w, k, top, rows.i, of),
                                          ops_factor_get(f, with, rows.i, j), sum));
  ops_factor_again(f, &rows);
  return sum;
}

static void reflect_both_sides(factor *f, const tridiagonal *w, uint16_t k) {
  uint16_t top = factor_index(f, ATLAS_OP_add, k, atlas_bits(1)), zero = w->own.zero, of[3];
  find_reflection(f, &w->own, k, top, of);
  factor_loop own = for_own_from(f, top, f->n);
  ops_factor_put(f, &w->p, own.i, zero,
                 factor_float(f, ATLAS_OP_mul, product_with(f, &w->own, k, top, &w->own.a, own.i, of), of[2]));
  ops_factor_again(f, &own);
  factor_barrier(f);
  uint16_t half = factor_float(f, ATLAS_OP_mul, of[2], ops_factor_number(f, -0.5));
  half = factor_float(f, ATLAS_OP_mul, product_with(f, &w->own, k, top, &w->p, zero, of), half);
  factor_barrier(f);
  own = for_own_from(f, top, f->n);
  uint16_t v = vector_element(f, &w->own, k, top, own.i, of);
  ops_factor_put(f, &w->p, own.i, zero, factor_fma(f, half, v, ops_factor_get(f, &w->p, own.i, zero)));
  ops_factor_again(f, &own);
  factor_barrier(f);
  own = for_own_from(f, top, f->n);
  uint16_t minus_v = factor_unary(f, ATLAS_OP_neg, vector_element(f, &w->own, k, top, own.i, of));
  uint16_t minus_p = factor_unary(f, ATLAS_OP_neg, ops_factor_get(f, &w->p, own.i, zero));
  factor_loop rows = ops_factor_for(f, atlas_reg(top), atlas_bits(f->n), 1);
  uint16_t value = ops_factor_get(f, &w->own.a, rows.i, own.i);
  value = factor_fma(f, minus_v, ops_factor_get(f, &w->p, rows.i, zero), value);
  value = factor_fma(f, minus_p, vector_element(f, &w->own, k, top, rows.i, of), value);
  ops_factor_put(f, &w->own.a, rows.i, own.i, value);
  ops_factor_again(f, &rows);
  ops_factor_again(f, &own);
  factor_barrier(f);
}

static void begin_reflections(factor *f, qr *w, factor_matrix *p) {
  factor_matrix *of_steps[] = {&w->scale, &w->first, &w->t, &w->diagonal, p};
  w->a = ops_factor_add_matrix(f, f->n, f->n, 1);
  for (uint32_t i = 0; i < 5; i++) *of_steps[i] = ops_factor_add_matrix(f, f->n, 1, 0);
}

/* Of the last column there is none. */
static void clear_last(factor *f, qr *w) {
  uint16_t none = ops_factor_number(f, 0);
  const factor_matrix *of_steps[] = {&w->scale, &w->first, &w->t, &w->diagonal};
  factor_loop own = ops_factor_for_own(f, f->n);
  for (uint32_t i = 0; i < 4; i++) ops_factor_put(f, of_steps[i], own.i, w->zero, none);
  ops_factor_again(f, &own);
}

/* Of an n x n matrix (n + 3) x n: V, and below it rows of the diagonal, of what is beside it, and of t. */
static hg_status write_tridiagonal(factor *f) {
  tridiagonal w;
  memset(&w, 0, sizeof w);
  begin_reflections(f, &w.own, &w.p);
  HG_TRY(ops_factor_begin(f, "tridiagonal", f->n));
  w.own.zero = ops_factor_integer(f, 0);
  clear_last(f, &w.own);
  factor_loop own = ops_factor_for_own(f, f->n);
  factor_loop rows = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  uint16_t low = factor_index(f, ATLAS_OP_max, rows.i, atlas_reg(own.i));
  ops_factor_put(f, &w.own.a, rows.i, own.i,
                 ops_factor_element(f, 0, low, factor_index(f, ATLAS_OP_min, rows.i, atlas_reg(own.i))));
  ops_factor_again(f, &rows);
  ops_factor_again(f, &own);
  factor_barrier(f);
  factor_loop step = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n - 1), 1);
  reflect_both_sides(f, &w, step.i);
  ops_factor_again(f, &step);
  write_vectors(f, &w.own, 0, 1);
  own = ops_factor_for_own(f, f->n);
  ops_factor_result(f, ops_factor_integer(f, f->n), own.i, ops_factor_get(f, &w.own.a, own.i, own.i));
  ops_factor_again(f, &own);
  write_row(f, &w.own, &w.own.diagonal, f->n + 1, 0);
  write_row(f, &w.own, &w.own.t, f->n + 2, 0);
  return HG_OK;
}

/* ---- bidiagonal matrices ----------------------------------------------------------------------------------------- */

/* Reflection k of what `from` has, in it and in `to`, which has the same with axes exchanged. */
static void reflect_in_both(factor *f, const qr *from, const qr *to, const factor_matrix *p, uint16_t k, uint16_t top) {
  uint16_t next = factor_index(f, ATLAS_OP_add, k, atlas_bits(1)), of[3];
  find_reflection(f, from, k, top, of);
  factor_loop own = for_own_from(f, next, f->n);
  ops_factor_put(f, p, own.i, from->zero,
                 factor_float(f, ATLAS_OP_mul, product_with(f, from, k, top, &from->a, own.i, of), of[2]));
  ops_factor_again(f, &own);
  factor_barrier(f);
  for (uint32_t turn = 0; turn < 2; turn++) {
    const factor_matrix *a = turn == 0 ? &from->a : &to->a;
    own = for_own_from(f, turn == 0 ? next : top, f->n);
    factor_loop rows = ops_factor_for(f, atlas_reg(turn == 0 ? top : next), atlas_bits(f->n), 1);
    uint16_t v = vector_element(f, from, k, top, turn == 0 ? rows.i : own.i, of);
    uint16_t with = ops_factor_get(f, p, turn == 0 ? own.i : rows.i, from->zero);
    ops_factor_put(f, a, rows.i, own.i,
                   factor_fma(f, factor_unary(f, ATLAS_OP_neg, v), with, ops_factor_get(f, a, rows.i, own.i)));
    ops_factor_again(f, &rows);
    ops_factor_again(f, &own);
  }
  factor_barrier(f);
}

/* Of an n x n matrix (2 n + 4) x n: reflections from the left, those from the right, and rows of the diagonal, of what
 * stands above it, and of both's t (5.4.8 of Golub and Van Loan). */
static hg_status write_bidiagonal(factor *f) {
  qr left = {.zero = 0}, right = {.zero = 0};
  factor_matrix p, unused;
  begin_reflections(f, &left, &p);
  begin_reflections(f, &right, &unused);
  HG_TRY(ops_factor_begin(f, "bidiagonal", f->n));
  left.zero = right.zero = ops_factor_integer(f, 0);
  clear_last(f, &left);
  clear_last(f, &right);
  factor_loop own = ops_factor_for_own(f, f->n);
  factor_loop rows = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  ops_factor_put(f, &left.a, rows.i, own.i, ops_factor_element(f, 0, rows.i, own.i));
  ops_factor_put(f, &right.a, rows.i, own.i, ops_factor_element(f, 0, own.i, rows.i));
  ops_factor_again(f, &rows);
  ops_factor_again(f, &own);
  factor_barrier(f);
  factor_loop step = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n - 1), 1);
  reflect_in_both(f, &left, &right, &p, step.i, step.i);
  reflect_in_both(f, &right, &left, &p, step.i, factor_index(f, ATLAS_OP_add, step.i, atlas_bits(1)));
  ops_factor_again(f, &step);
  write_vectors(f, &left, 0, 0);
  write_vectors(f, &right, f->n, 1);
  write_row(f, &left, &left.diagonal, 2 * f->n, 1);
  write_row(f, &right, &right.diagonal, 2 * f->n + 1, 0);
  write_row(f, &left, &left.t, 2 * f->n + 2, 0);
  write_row(f, &right, &right.t, 2 * f->n + 3, 0);
  return HG_OK;
}

/* ---- triangular systems ------------------------------------------------------------------------------------------ */

/* a x = b, a lower triangular: a lane has a column of b. */
static hg_status write_solve(factor *f, int has_unit_diagonal) {
  uint32_t rank = f->node->shape.rank, columns = (uint32_t)f->node->shape.size[rank - 1];
  uint64_t count = ops_count(&f->node->shape), matrices = ops_factor_matrices(f);
  factor_matrix x = {.row = columns, .column = 1};
  HG_TRY(ops_add_temporary(f->group->plan, (uint8_t)f->type, count, &f->storage));
  f->storage++;
  HG_TRY(ops_factor_begin_launch(f, "triangular_solve", matrices * columns));
  uint16_t lane = ops_lane_index(&f->code), matrix = factor_register(f), rest = factor_register(f);
  atlas_operand across = ops_scalar_of(&f->code, ATLAS_i64, columns);
  f->base = factor_register(f);
  atlas_emit(f->b, ATLAS_OP_div, ATLAS_i64, 3, atlas_reg(matrix), atlas_reg(lane), across);
  atlas_emit(f->b, ATLAS_OP_rem, ATLAS_i64, 3, atlas_reg(rest), atlas_reg(lane), across);
  atlas_emit(f->b, ATLAS_OP_mul, ATLAS_i64, 3, atlas_reg(f->base), atlas_reg(matrix),
             ops_scalar_of(&f->code, ATLAS_i64, (uint64_t)f->n * columns));
  for (uint32_t i = 0; i < rank; i++) f->code.variable[i] = OPS_NO_REGISTER;
  ops_split(&f->code, &f->node->shape, (1u << (rank - 2)) - 1, rank - 2, matrices, atlas_reg(matrix), ATLAS_i64);
  uint16_t column = factor_register(f), sum = factor_register(f);
  atlas_emit2(f->b, ATLAS_OP_cvt, ATLAS_u32, ATLAS_i64, atlas_reg(column), atlas_reg(rest));
  factor_loop rows = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  factor_move(f, f->type, sum, ops_factor_element(f, 1, rows.i, column));
  factor_loop before = ops_factor_for(f, atlas_bits(0), atlas_reg(rows.i), 1);
  uint16_t minus = factor_unary(f, ATLAS_OP_neg, ops_factor_element(f, 0, rows.i, before.i));
  factor_move(f, f->type, sum, factor_fma(f, minus, ops_factor_get(f, &x, before.i, column), sum));
  ops_factor_again(f, &before);
  if (!has_unit_diagonal)
    factor_move(f, f->type, sum, factor_float(f, ATLAS_OP_div, sum, ops_factor_element(f, 0, rows.i, rows.i)));
  ops_factor_put(f, &x, rows.i, column, sum);
  ops_factor_result(f, rows.i, column, sum);
  ops_factor_again(f, &rows);
  return HG_OK;
}

/* ---- all of them ------------------------------------------------------------------------------------------------- */

static hg_status write_method(factor *f) {
  switch (f->node->bits) {
    case HG_OP_cholesky_lower: return write_cholesky(f);
    case HG_OP_lu: return write_lu(f);
    case HG_OP_tridiagonal: return write_tridiagonal(f);
    case HG_OP_bidiagonal: return write_bidiagonal(f);
    case HG_OP_eigh_packed: return ops_write_factor_eigh(f);
    case HG_OP_svd_rotated: return ops_write_factor_svd(f);
    case HG_OP_lower_solve: return write_solve(f, f->node->reduce != 0);
    default: return write_qr(f);
  }
}

hg_status ops_write_factor(const ops_group *group) {
  factor f;
  memset(&f, 0, sizeof f);
  f.group = group, f.node = ops_at(group->computation, group->results[0]);
  f.type = (atlas_type)f.node->type;
  const ops_shape *shape = &ops_at(group->computation, f.node->input[0])->shape;
  f.m = (uint32_t)shape->size[shape->rank - 2], f.n = (uint32_t)shape->size[shape->rank - 1];
  ops_terms_begin(&f.terms, group, &f.node->shape);
  ops_identity(&f.node->shape, f.own);
  return ops_code_end_all(&f.code, &f.terms, write_method(&f));
}
