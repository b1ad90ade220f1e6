/* factor.h - a program that factors matrices, while it is written: a block for each matrix, which it has in its shared
 * memory, or in a temporary where that is too small. */
#ifndef HG_OPS_FACTOR_H
#define HG_OPS_FACTOR_H

#include "ops/write/expression.h"

/* Predicates. */
enum { FACTOR_IS_MORE, FACTOR_IS_SO, FACTOR_IS_TOO, FACTOR_IS_FINITE, FACTOR_IS_ROTATED };

/* A matrix among the block's numbers: element (i, j) is number first + i * row + j * column. */
typedef struct factor_matrix {
  uint32_t first, row, column;
} factor_matrix;

typedef struct factor {
  const ops_group *group;
  const ops_node *node;
  atlas_type type;
  uint32_t m, n;      /* rows and columns of the input */
  uint32_t lanes;     /* of a block */
  uint32_t numbers;   /* that a block has */
  uint32_t storage;   /* a temporary; 0 where they are in shared memory, else 1 + its number */
  ops_terms terms;
  ops_code code;
  atlas_builder *b;
  term_id input[2];
  ops_form own[HG_MAX_RANK];
  uint16_t memory, base; /* symbol; number of the block's first one, of a temporary */
} factor;

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static inline uint16_t factor_register(factor *f) { return ops_register(&f->code); }

static inline uint16_t factor_emit(factor *f, atlas_op op, atlas_type type, atlas_operand a, atlas_operand b) {
  uint16_t to = factor_register(f);
  atlas_emit(f->b, op, type, 3, atlas_reg(to), a, b);
  return to;
}
/* Integers are u32. */
static inline uint16_t factor_index(factor *f, atlas_op op, uint16_t a, atlas_operand b) {
  return factor_emit(f, op, ATLAS_u32, atlas_reg(a), b);
}
static inline uint16_t factor_float(factor *f, atlas_op op, uint16_t a, uint16_t b) {
  return factor_emit(f, op, f->type, atlas_reg(a), atlas_reg(b));
}
static inline uint16_t factor_unary(factor *f, atlas_op op, uint16_t a) {
  uint16_t to = factor_register(f);
  atlas_emit(f->b, op, f->type, 2, atlas_reg(to), atlas_reg(a));
  return to;
}
/* a * b + c */
static inline uint16_t factor_fma(factor *f, uint16_t a, uint16_t b, uint16_t c) {
  uint16_t to = factor_register(f);
  atlas_emit(f->b, ATLAS_OP_fma, f->type, 4, atlas_reg(to), atlas_reg(a), atlas_reg(b), atlas_reg(c));
  return to;
}
static inline void factor_move(factor *f, atlas_type type, uint16_t to, uint16_t from) {
  atlas_emit(f->b, ATLAS_OP_mov, type, 2, atlas_reg(to), atlas_reg(from));
}
/* What the predicate chooses. */
static inline uint16_t factor_select(factor *f, atlas_type type, uint32_t predicate, uint16_t a, uint16_t b) {
  uint16_t to = factor_register(f);
  atlas_emit(f->b, ATLAS_OP_sel, type, 4, atlas_reg(to), atlas_pred(predicate), atlas_reg(a), atlas_reg(b));
  return to;
}
uint16_t ops_factor_integer(factor *f, uint32_t value);
uint16_t ops_factor_number(factor *f, double value);
static inline void factor_test(factor *f, uint32_t predicate, atlas_op op, atlas_type type, uint16_t a,
                               atlas_operand b) {
  atlas_emit(f->b, op, type, 3, atlas_pred(predicate), atlas_reg(a), b);
}

/* ---- control ----------------------------------------------------------------------------------------------------- */

/* What follows up to ops_factor_again: for i = start, start + step, ... below the end. */
typedef struct factor_loop {
  uint16_t i;
  uint32_t step, top, out;
} factor_loop;

factor_loop ops_factor_for(factor *f, atlas_operand start, atlas_operand end, uint32_t step);
void ops_factor_again(factor *f, const factor_loop *loop);
/* For each of `count` numbers that is this lane's. */
factor_loop ops_factor_for_own(factor *f, uint32_t count);
/* What follows up to the label's place is done where the predicate is `wanted`. */
uint32_t ops_factor_if(factor *f, uint32_t predicate, int wanted);
static inline void factor_end(factor *f, uint32_t label) { atlas_builder_place(f->b, label); }
static inline void factor_barrier(factor *f) { atlas_emit(f->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0); }

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Makes room for another matrix, before ops_factor_begin. */
factor_matrix ops_factor_add_matrix(factor *f, uint32_t rows, uint32_t columns, int rows_are_apart);
uint16_t ops_factor_get(factor *f, const factor_matrix *matrix, uint16_t i, uint16_t j);
void ops_factor_put(factor *f, const factor_matrix *matrix, uint16_t i, uint16_t j, uint16_t value);
/* An element of an input of the block's matrix, and one of its result. */
uint16_t ops_factor_element(factor *f, uint32_t input, uint16_t i, uint16_t j);
void ops_factor_result(factor *f, uint16_t i, uint16_t j, uint16_t value);

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

uint64_t ops_factor_matrices(const factor *f);
/* The terms and the step of a launch of so many lanes; 0: of blocks, whose shape is still to be set. */
hg_status ops_factor_begin_launch(factor *f, const char *name, uint64_t lanes);
/* A launch of a block for each matrix, when all that it has are added; its lanes share `owned` rows or columns. */
hg_status ops_factor_begin(factor *f, const char *name, uint32_t owned);

/* A power of two by which the largest magnitude of what the block's lanes have becomes one of 1 to 2, NaN where that is
 * not finite, 1 where it is 0; FACTOR_IS_FINITE. */
uint16_t ops_factor_scale_of(factor *f, uint16_t magnitude);

hg_status ops_write_factor_eigh(factor *f);
hg_status ops_write_factor_svd(factor *f);

#endif
