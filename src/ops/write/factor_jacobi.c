/* factor_jacobi.c - eigenvalues of symmetric matrices and singular values by rotations in planes (Golub and Van Loan,
 * "Matrix Computations", 4th edition: 8.5 and 8.6.3).
 *
 * A sweep rotates all pairs of columns, in rounds of pairs that share none, as in a tournament. Sweeps end when one has
 * rotated nothing. Numbers are scaled by a power of two first, so that squares neither overflow nor vanish. */
#include "ops/write/factor.h"

enum { MOST_SWEEPS = 40 };

typedef struct jacobi {
  factor *f;
  uint32_t count, pairs; /* of columns, an even number, and of a round */
  uint16_t rotated;      /* u32: 1 where the lane has rotated something in this sweep */
  uint16_t scale, poison; /* poison: NaN where some number is not finite, else 0 */
  uint16_t zero;         /* u32 */
} jacobi;

static double power_of_two(int exponent) {
  double value = 1;
  for (; exponent < 0; exponent++) value *= 0.5;
  return value;
}

/* Of a pair of a round: its columns, the lower one first. */
static void find_pair(jacobi *w, uint16_t round, uint16_t pair, uint16_t *low, uint16_t *high) {
  factor *f = w->f;
  uint16_t around = ops_factor_integer(f, w->count - 1), column[2];
  column[0] = factor_index(f, ATLAS_OP_add, round, atlas_reg(pair));
  column[1] = factor_index(f, ATLAS_OP_sub, factor_index(f, ATLAS_OP_add, round, atlas_reg(around)), atlas_reg(pair));
  for (uint32_t k = 0; k < 2; k++) {
    uint16_t less = factor_index(f, ATLAS_OP_sub, column[k], atlas_reg(around));
    factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_lt, ATLAS_u32, column[k], atlas_reg(around));
    column[k] = factor_select(f, ATLAS_u32, FACTOR_IS_SO, column[k], less);
  }
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, ATLAS_u32, pair, atlas_bits(0)); /* with the one that stays */
  column[0] = factor_select(f, ATLAS_u32, FACTOR_IS_SO, around, column[0]);
  *low = factor_index(f, ATLAS_OP_min, column[0], atlas_reg(column[1]));
  *high = factor_index(f, ATLAS_OP_max, column[0], atlas_reg(column[1]));
}

/* The rotation that makes [[a, g], [g, b]] diagonal: its tangent, at most 1, sine, and sine / (1 + cosine). */
static void find_rotation(factor *f, uint16_t a, uint16_t b, uint16_t g, uint16_t rotation[3]) {
  uint16_t one = ops_factor_number(f, 1), twice = factor_float(f, ATLAS_OP_add, g, g);
  uint16_t ratio = factor_float(f, ATLAS_OP_div, factor_float(f, ATLAS_OP_sub, b, a), twice);
  uint16_t root = factor_unary(f, ATLAS_OP_sqrt, factor_fma(f, ratio, ratio, one));
  uint16_t size = factor_float(f, ATLAS_OP_add, factor_unary(f, ATLAS_OP_abs, ratio), root);
  rotation[0] = factor_float(f, ATLAS_OP_div, factor_float(f, ATLAS_OP_copysign, one, ratio), size);
  root = factor_unary(f, ATLAS_OP_sqrt, factor_fma(f, rotation[0], rotation[0], one));
  rotation[1] = factor_float(f, ATLAS_OP_div, rotation[0], root);
  rotation[2] = factor_float(f, ATLAS_OP_div, rotation[0], factor_float(f, ATLAS_OP_add, one, root));
}

/* p, q = c p - s q, s p + c q, where t = s / (1 + c): what changes is added, so that lengths do not drift. */
static void rotate(factor *f, uint16_t s, uint16_t t, uint16_t *p, uint16_t *q) {
  uint16_t left = factor_fma(f, t, *p, *q);
  uint16_t right = factor_fma(f, factor_unary(f, ATLAS_OP_neg, t), *q, *p);
  *p = factor_fma(f, factor_unary(f, ATLAS_OP_neg, s), left, *p);
  *q = factor_fma(f, s, right, *q);
}

static void rotate_at(factor *f, const factor_matrix *m, uint16_t s, uint16_t t, uint16_t i, uint16_t low,
                      uint16_t high) {
  uint16_t p = ops_factor_get(f, m, i, low), q = ops_factor_get(f, m, i, high);
  rotate(f, s, t, &p, &q);
  ops_factor_put(f, m, i, low, p);
  ops_factor_put(f, m, i, high, q);
}

/* The largest of the lanes' magnitudes becomes 1 to 2, column by column, and v the unit matrix. */
static void scale_all(jacobi *w, const factor_matrix *a, uint32_t rows, const factor_matrix *v, uint16_t most) {
  factor *f = w->f;
  uint16_t all = factor_unary(f, ATLAS_OP_reduce_max, most);
  uint16_t zero = ops_factor_number(f, 0), one = ops_factor_number(f, 1);
  w->scale = ops_factor_scale_of(f, all);
  w->poison = factor_float(f, ATLAS_OP_sub, w->scale, w->scale);
  factor_loop own = ops_factor_for_own(f, w->count);
  factor_loop down = ops_factor_for(f, atlas_bits(0), atlas_bits(rows), 1);
  ops_factor_put(f, a, down.i, own.i, factor_float(f, ATLAS_OP_mul, ops_factor_get(f, a, down.i, own.i), w->scale));
  ops_factor_again(f, &down);
  down = ops_factor_for(f, atlas_bits(0), atlas_bits(w->count), 1);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, ATLAS_u32, own.i, atlas_reg(down.i));
  ops_factor_put(f, v, down.i, own.i, factor_select(f, f->type, FACTOR_IS_SO, one, zero));
  ops_factor_again(f, &down);
  ops_factor_again(f, &own);
  factor_barrier(f);
}

static factor_loop begin_sweep(jacobi *w) {
  factor *f = w->f;
  factor_loop sweep = ops_factor_for(f, atlas_bits(0), atlas_bits(MOST_SWEEPS), 1);
  factor_move(f, ATLAS_u32, w->rotated, w->zero);
  return sweep;
}

static void end_sweep(jacobi *w, const factor_loop *sweep) {
  factor *f = w->f;
  factor_test(f, FACTOR_IS_ROTATED, ATLAS_OP_set_ne, ATLAS_u32, w->rotated, atlas_bits(0));
  atlas_emit(f->b, ATLAS_OP_vote_any, ATLAS_NONE, 2, atlas_pred(FACTOR_IS_ROTATED), atlas_pred(FACTOR_IS_ROTATED));
  atlas_emit_branch(f->b, FACTOR_IS_ROTATED, 1, sweep->out);
  ops_factor_again(f, sweep);
}

/* How many of the keys stand before key j: the greater ones, or the smaller ones, and equal ones in front of it. */
static uint16_t rank_of(jacobi *w, const factor_matrix *keys, int is_diagonal, uint16_t j, atlas_op before) {
  factor *f = w->f;
  uint16_t rank = factor_register(f), own = ops_factor_get(f, keys, j, is_diagonal ? j : w->zero);
  factor_move(f, ATLAS_u32, rank, w->zero);
  factor_loop all = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  uint16_t key = ops_factor_get(f, keys, all.i, is_diagonal ? all.i : w->zero);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, f->type, key, atlas_reg(own));
  factor_test(f, FACTOR_IS_TOO, ATLAS_OP_set_lt, ATLAS_u32, all.i, atlas_reg(j));
  atlas_emit(f->b, ATLAS_OP_pand, ATLAS_NONE, 3, atlas_pred(FACTOR_IS_SO), atlas_pred(FACTOR_IS_SO),
             atlas_pred(FACTOR_IS_TOO));
  factor_test(f, FACTOR_IS_TOO, before, f->type, key, atlas_reg(own));
  atlas_emit(f->b, ATLAS_OP_por, ATLAS_NONE, 3, atlas_pred(FACTOR_IS_SO), atlas_pred(FACTOR_IS_SO),
             atlas_pred(FACTOR_IS_TOO));
  uint16_t more = factor_index(f, ATLAS_OP_add, rank, atlas_bits(1));
  factor_move(f, ATLAS_u32, rank, factor_select(f, ATLAS_u32, FACTOR_IS_SO, more, rank));
  ops_factor_again(f, &all);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_num, f->type, w->poison, atlas_reg(w->poison));
  return factor_select(f, ATLAS_u32, FACTOR_IS_SO, rank, j);
}

static void begin_columns(jacobi *w, factor *f) {
  w->f = f;
  w->count = f->n + (f->n & 1);
  w->pairs = w->count / 2;
}

/* ---- eigenvalues ------------------------------------------------------------------------------------------------- */

typedef struct eigen {
  jacobi own;
  factor_matrix a, v, s, t; /* s, t: by pair of the round */
} eigen;

/* The lower triangle and its image. */
static void load_symmetric(eigen *e, uint16_t most) {
  factor *f = e->own.f;
  factor_loop own = ops_factor_for_own(f, e->own.count);
  factor_loop down = ops_factor_for(f, atlas_bits(0), atlas_bits(e->own.count), 1);
  uint16_t value = factor_register(f), high = factor_index(f, ATLAS_OP_max, own.i, atlas_reg(down.i));
  factor_move(f, f->type, value, ops_factor_number(f, 0));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_lt, ATLAS_u32, high, atlas_bits(f->n));
  uint32_t is_beyond = ops_factor_if(f, FACTOR_IS_SO, 1);
  factor_move(f, f->type, value,
              ops_factor_element(f, 0, high, factor_index(f, ATLAS_OP_min, own.i, atlas_reg(down.i))));
  factor_end(f, is_beyond);
  factor_move(f, f->type, most, factor_float(f, ATLAS_OP_max, most, factor_unary(f, ATLAS_OP_abs, value)));
  ops_factor_put(f, &e->a, down.i, own.i, value);
  ops_factor_again(f, &down);
  ops_factor_again(f, &own);
}

/* Finds the rotations of a round, and rotates what lies in the planes themselves. */
static void begin_round(eigen *e, uint16_t round) {
  factor *f = e->own.f;
  uint16_t low, high, rotation[3], zero = ops_factor_number(f, 0);
  factor_loop own = ops_factor_for_own(f, e->own.pairs);
  find_pair(&e->own, round, own.i, &low, &high);
  uint16_t g = ops_factor_get(f, &e->a, high, low), s = factor_register(f), t = factor_register(f);
  factor_move(f, f->type, s, zero);
  factor_move(f, f->type, t, zero);
  uint16_t least = ops_factor_number(f, power_of_two(f->type == ATLAS_f64 ? -56 : -27));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_gt, f->type, factor_unary(f, ATLAS_OP_abs, g), atlas_reg(least));
  uint32_t is_small = ops_factor_if(f, FACTOR_IS_SO, 1);
  uint16_t a = ops_factor_get(f, &e->a, low, low), b = ops_factor_get(f, &e->a, high, high);
  find_rotation(f, a, b, g, rotation);
  ops_factor_put(f, &e->a, low, low, factor_fma(f, factor_unary(f, ATLAS_OP_neg, rotation[0]), g, a));
  ops_factor_put(f, &e->a, high, high, factor_fma(f, rotation[0], g, b));
  ops_factor_put(f, &e->a, low, high, zero);
  ops_factor_put(f, &e->a, high, low, zero);
  factor_move(f, f->type, s, rotation[1]);
  factor_move(f, f->type, t, rotation[2]);
  factor_move(f, ATLAS_u32, e->own.rotated, ops_factor_integer(f, 1));
  factor_end(f, is_small);
  ops_factor_put(f, &e->s, own.i, e->own.zero, s);
  ops_factor_put(f, &e->t, own.i, e->own.zero, t);
  ops_factor_again(f, &own);
  factor_barrier(f);
}

/* What two planes have in common, on both sides of the diagonal. */
static void rotate_block(eigen *e, const uint16_t row[2], const uint16_t column[2], const uint16_t st[4]) {
  factor *f = e->own.f;
  uint16_t block[2][2];
  for (uint32_t k = 0; k < 4; k++) block[k / 2][k % 2] = ops_factor_get(f, &e->a, row[k / 2], column[k % 2]);
  for (uint32_t k = 0; k < 2; k++) rotate(f, st[0], st[1], &block[0][k], &block[1][k]);
  for (uint32_t k = 0; k < 2; k++) rotate(f, st[2], st[3], &block[k][0], &block[k][1]);
  for (uint32_t k = 0; k < 4; k++) {
    ops_factor_put(f, &e->a, row[k / 2], column[k % 2], block[k / 2][k % 2]);
    ops_factor_put(f, &e->a, column[k % 2], row[k / 2], block[k / 2][k % 2]);
  }
}

static void end_round(eigen *e, uint16_t round) {
  factor *f = e->own.f;
  uint16_t low, high, row[2], column[2], st[4], zero = e->own.zero;
  factor_loop own = ops_factor_for_own(f, e->own.pairs);
  find_pair(&e->own, round, own.i, &row[0], &row[1]);
  st[0] = ops_factor_get(f, &e->s, own.i, zero), st[1] = ops_factor_get(f, &e->t, own.i, zero);
  uint16_t next = factor_index(f, ATLAS_OP_add, own.i, atlas_bits(1));
  factor_loop other = ops_factor_for(f, atlas_reg(next), atlas_bits(e->own.pairs), 1);
  find_pair(&e->own, round, other.i, &column[0], &column[1]);
  st[2] = ops_factor_get(f, &e->s, other.i, zero), st[3] = ops_factor_get(f, &e->t, other.i, zero);
  rotate_block(e, row, column, st);
  ops_factor_again(f, &other);
  ops_factor_again(f, &own);
  own = ops_factor_for_own(f, f->n);
  other = ops_factor_for(f, atlas_bits(0), atlas_bits(e->own.pairs), 1);
  find_pair(&e->own, round, other.i, &low, &high);
  rotate_at(f, &e->v, ops_factor_get(f, &e->s, other.i, zero), ops_factor_get(f, &e->t, other.i, zero), own.i,
            low, high);
  ops_factor_again(f, &other);
  ops_factor_again(f, &own);
  factor_barrier(f);
}

/* Of an n x n matrix (n + 1) x n: eigenvectors as columns, and below them their eigenvalues, which ascend. */
hg_status ops_write_factor_eigh(factor *f) {
  eigen e = {.own = {.rotated = 0}};
  begin_columns(&e.own, f);
  e.a = ops_factor_add_matrix(f, e.own.count, e.own.count, 1);
  e.v = ops_factor_add_matrix(f, e.own.count, e.own.count, 0);
  e.s = ops_factor_add_matrix(f, e.own.pairs, 1, 0);
  e.t = ops_factor_add_matrix(f, e.own.pairs, 1, 0);
  HG_TRY(ops_factor_begin(f, "eigh", f->n));
  uint16_t most = factor_register(f);
  e.own.rotated = factor_register(f), e.own.zero = ops_factor_integer(f, 0);
  factor_move(f, f->type, most, ops_factor_number(f, 0));
  load_symmetric(&e, most);
  scale_all(&e.own, &e.a, e.own.count, &e.v, most);
  factor_loop sweep = begin_sweep(&e.own);
  factor_loop round = ops_factor_for(f, atlas_bits(0), atlas_bits(e.own.count - 1), 1);
  begin_round(&e, round.i);
  end_round(&e, round.i);
  ops_factor_again(f, &round);
  end_sweep(&e.own, &sweep);
  factor_loop own = ops_factor_for_own(f, f->n);
  uint16_t rank = rank_of(&e.own, &e.a, 1, own.i, ATLAS_OP_set_lt);
  uint16_t value = factor_float(f, ATLAS_OP_div, ops_factor_get(f, &e.a, own.i, own.i), e.own.scale);
  ops_factor_result(f, ops_factor_integer(f, f->n), rank, value);
  factor_loop down = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  ops_factor_result(f, down.i, rank, factor_float(f, ATLAS_OP_add, ops_factor_get(f, &e.v, down.i, own.i),
                                                  e.own.poison));
  ops_factor_again(f, &down);
  ops_factor_again(f, &own);
  return HG_OK;
}

/* ---- singular values --------------------------------------------------------------------------------------------- */

typedef struct singular {
  jacobi own;
  factor_matrix a, v, sigma;
} singular;

static void load_columns(singular *s, uint16_t most) {
  factor *f = s->own.f;
  factor_loop own = ops_factor_for_own(f, s->own.count);
  factor_loop down = ops_factor_for(f, atlas_bits(0), atlas_bits(f->m), 1);
  uint16_t value = factor_register(f);
  factor_move(f, f->type, value, ops_factor_number(f, 0));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_lt, ATLAS_u32, own.i, atlas_bits(f->n));
  uint32_t is_beyond = ops_factor_if(f, FACTOR_IS_SO, 1);
  factor_move(f, f->type, value, ops_factor_element(f, 0, down.i, own.i));
  factor_end(f, is_beyond);
  factor_move(f, f->type, most, factor_float(f, ATLAS_OP_max, most, factor_unary(f, ATLAS_OP_abs, value)));
  ops_factor_put(f, &s->a, down.i, own.i, value);
  ops_factor_again(f, &down);
  ops_factor_again(f, &own);
}

/* Squares of two columns, and their product. */
static void find_products(singular *s, uint16_t low, uint16_t high, uint16_t product[3]) {
  factor *f = s->own.f;
  for (uint32_t k = 0; k < 3; k++) {
    product[k] = factor_register(f);
    factor_move(f, f->type, product[k], ops_factor_number(f, 0));
  }
  factor_loop down = ops_factor_for(f, atlas_bits(0), atlas_bits(f->m), 1);
  uint16_t p = ops_factor_get(f, &s->a, down.i, low), q = ops_factor_get(f, &s->a, down.i, high);
  factor_move(f, f->type, product[0], factor_fma(f, p, p, product[0]));
  factor_move(f, f->type, product[1], factor_fma(f, q, q, product[1]));
  factor_move(f, f->type, product[2], factor_fma(f, p, q, product[2]));
  ops_factor_again(f, &down);
}

/* Rounding errors of a product of two columns are below this share of their lengths' product, about. */
static double share_of_errors(const factor *f) {
  double share = power_of_two(f->type == ATLAS_f64 ? -52 : -23);
  for (uint64_t squares = 4; squares < f->m; squares *= 4) share *= 2;
  return share;
}

/* A pair of columns that are not orthogonal becomes one that is. */
static void rotate_pair(singular *s, uint16_t low, uint16_t high) {
  factor *f = s->own.f;
  uint16_t product[3], rotation[3];
  find_products(s, low, high, product);
  uint16_t size = factor_unary(f, ATLAS_OP_abs, product[2]);
  uint16_t lengths = factor_float(f, ATLAS_OP_mul, factor_unary(f, ATLAS_OP_sqrt, product[0]),
                                  factor_unary(f, ATLAS_OP_sqrt, product[1]));
  uint16_t least = ops_factor_number(f, power_of_two(f->type == ATLAS_f64 ? -960 : -110));
  uint16_t errors = factor_float(f, ATLAS_OP_mul, lengths, ops_factor_number(f, share_of_errors(f)));
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_gt, f->type, size,
              atlas_reg(factor_float(f, ATLAS_OP_max, errors, least)));
  uint32_t is_small = ops_factor_if(f, FACTOR_IS_SO, 1);
  find_rotation(f, product[0], product[1], product[2], rotation);
  factor_loop down = ops_factor_for(f, atlas_bits(0), atlas_bits(f->m), 1);
  rotate_at(f, &s->a, rotation[1], rotation[2], down.i, low, high);
  ops_factor_again(f, &down);
  down = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  rotate_at(f, &s->v, rotation[1], rotation[2], down.i, low, high);
  ops_factor_again(f, &down);
  factor_move(f, ATLAS_u32, s->own.rotated, ops_factor_integer(f, 1));
  factor_end(f, is_small);
}

static void find_lengths(singular *s) {
  factor *f = s->own.f;
  factor_loop own = ops_factor_for_own(f, s->own.count);
  uint16_t sum = factor_register(f);
  factor_move(f, f->type, sum, ops_factor_number(f, 0));
  factor_loop down = ops_factor_for(f, atlas_bits(0), atlas_bits(f->m), 1);
  uint16_t value = ops_factor_get(f, &s->a, down.i, own.i);
  factor_move(f, f->type, sum, factor_fma(f, value, value, sum));
  ops_factor_again(f, &down);
  ops_factor_put(f, &s->sigma, own.i, s->own.zero, factor_unary(f, ATLAS_OP_sqrt, sum));
  ops_factor_again(f, &own);
  factor_barrier(f);
}

/* Of an m x n matrix (m + n + 1) x n: U, V, and the singular values, which descend. Where one is 0, so is its column of
 * U. */
hg_status ops_write_factor_svd(factor *f) {
  singular s = {.own = {.rotated = 0}};
  uint16_t low, high;
  begin_columns(&s.own, f);
  s.a = ops_factor_add_matrix(f, f->m, s.own.count, 1);
  s.v = ops_factor_add_matrix(f, s.own.count, s.own.count, 1);
  s.sigma = ops_factor_add_matrix(f, s.own.count, 1, 0);
  HG_TRY(ops_factor_begin(f, "svd", f->n));
  uint16_t most = factor_register(f);
  s.own.rotated = factor_register(f), s.own.zero = ops_factor_integer(f, 0);
  factor_move(f, f->type, most, ops_factor_number(f, 0));
  load_columns(&s, most);
  scale_all(&s.own, &s.a, f->m, &s.v, most);
  factor_loop sweep = begin_sweep(&s.own);
  factor_loop round = ops_factor_for(f, atlas_bits(0), atlas_bits(s.own.count - 1), 1);
  factor_loop own = ops_factor_for_own(f, s.own.pairs);
  find_pair(&s.own, round.i, own.i, &low, &high);
  rotate_pair(&s, low, high);
  ops_factor_again(f, &own);
  factor_barrier(f);
  ops_factor_again(f, &round);
  end_sweep(&s.own, &sweep);
  find_lengths(&s);
  own = ops_factor_for_own(f, f->n);
  uint16_t rank = rank_of(&s.own, &s.sigma, 0, own.i, ATLAS_OP_set_gt), zero = ops_factor_number(f, 0);
  uint16_t length = ops_factor_get(f, &s.sigma, own.i, s.own.zero), by = factor_register(f);
  factor_test(f, FACTOR_IS_SO, ATLAS_OP_set_eq, f->type, length, atlas_reg(zero));
  factor_move(f, f->type, by, factor_select(f, f->type, FACTOR_IS_SO, ops_factor_number(f, 1), length));
  ops_factor_result(f, ops_factor_integer(f, f->m + f->n), rank, factor_float(f, ATLAS_OP_div, length, s.own.scale));
  factor_loop down = ops_factor_for(f, atlas_bits(0), atlas_bits(f->m), 1);
  ops_factor_result(f, down.i, rank, factor_float(f, ATLAS_OP_div, ops_factor_get(f, &s.a, down.i, own.i), by));
  ops_factor_again(f, &down);
  down = ops_factor_for(f, atlas_bits(0), atlas_bits(f->n), 1);
  uint16_t row = factor_index(f, ATLAS_OP_add, down.i, atlas_bits(f->m));
  ops_factor_result(f, row, rank, factor_float(f, ATLAS_OP_add, ops_factor_get(f, &s.v, down.i, own.i), s.own.poison));
  ops_factor_again(f, &down);
  ops_factor_again(f, &own);
  return HG_OK;
}
