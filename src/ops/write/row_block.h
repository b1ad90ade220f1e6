/* row_block.h - a program that reduces rows, while it is written: what is the same wherever a layout puts columns. */
#ifndef HG_OPS_ROW_BLOCK_H
#define HG_OPS_ROW_BLOCK_H

#include "ops/graph/ops_tuning.h"
#include "ops/write/row_group.h"

/* Predicates. Those from ROW_OWN_PREDICATE on are the writer's. */
enum { ROW_IS_THERE, ROW_IS_FOUND, ROW_IS_NAN, ROW_IS_EQUAL, ROW_IS_IN_FRONT, ROW_IS_STORED, ROW_OWN_PREDICATE };
enum { ROWS_ALL_STAGES = 0xffff, ROWS_MOST_WIDE = OPS_COLUMNS_WIDE };

/* A term that stays in registers from stage to stage. */
typedef struct row_known {
  term_id term;
  uint16_t *registers; /* by element; OPS_NO_REGISTER: it is computed when it is read */
} row_known;

typedef struct row_block row_block;
struct row_block {
  row_group *g;
  ops_code code;
  ops_layout layout;
  /* Makes the coordinates of an element known, and is_tested: whether ROW_IS_THERE says that there is such a column;
   * where there is none the coordinates are those of another one. */
  void (*set_element)(row_block *k, uint32_t element);
  int is_tested;
  int tests;          /* the chunk in hand is not a whole one */
  row_parts *parts;   /* that are to be written; NULL */
  uint32_t forgotten; /* coordinates (bits) that may be others at another element: those of columns, and more */
  row_known known[ROWS_MOST_HELD];
  uint32_t known_count;
  uint32_t stage;
  const row_reduction *reduction; /* in hand */
  ops_fold fold;                  /* its */
  uint16_t bound[ROWS_MOST_REDUCTIONS][ROWS_MOST_ROWS]; /* results, by row or neighbour; OPS_NO_REGISTER */
  uint16_t kept[ROWS_MOST_REDUCTIONS][ROWS_MOST_WIDE];  /* by neighbour: what the lane has so far */
  uint16_t place[ROWS_MOST_REDUCTIONS][ROWS_MOST_WIDE]; /* and its column, where that is asked for */
};

/* ---- indices ----------------------------------------------------------------------------------------------------- */

/* A number that is a parameter of the program. */
static inline atlas_operand row_size(row_block *k, uint64_t value) {
  return ops_scalar_of(&k->code, k->code.index_type, value);
}
static inline void row_index(row_block *k, atlas_op op, uint16_t to, uint16_t a, atlas_operand b) {
  atlas_emit(k->code.builder, op, k->code.index_type, 3, atlas_reg(to), atlas_reg(a), b);
}
static inline void row_mad(row_block *k, uint16_t to, uint16_t a, uint64_t factor, uint16_t b) {
  atlas_emit(k->code.builder, ATLAS_OP_mad, k->code.index_type, 4, atlas_reg(to), atlas_reg(a), atlas_bits(factor),
             atlas_reg(b));
}
static inline void row_compare(row_block *k, atlas_op op, uint32_t predicate, uint16_t a, atlas_operand b) {
  atlas_emit(k->code.builder, op, k->code.index_type, 3, atlas_pred(predicate), atlas_reg(a), b);
}
/* To the label where the comparison holds. */
static inline void row_branch(row_block *k, atlas_op op, uint16_t a, atlas_operand b, uint32_t label) {
  row_compare(k, op, ROW_IS_FOUND, a, b);
  atlas_emit_branch(k->code.builder, ROW_IS_FOUND, 0, label);
}

/* ---- a program --------------------------------------------------------------------------------------------------- */

typedef struct row_writer {
  const char *name;
  size_t size; /* of the writer's own struct, whose first member is a row_block */
  void (*set_element)(row_block *k, uint32_t element);
  void (*write)(row_block *k);
} row_writer;

/* Writes the program, in a step of its own. Numbers of columns up to a chunk beyond the row's end fit the type of
 * indices. */
hg_status ops_block_write(row_group *g, const row_writer *writer, row_parts *parts);
/* A launch of so many blocks along x and y, and lanes of each; of one lane each it is a linear one. */
void ops_block_launch(row_block *k, uint64_t blocks_x, uint64_t blocks_y, uint32_t lanes_x, uint32_t lanes_y);
/* Shared memory, by a letter and the number of what it is for. */
uint16_t ops_block_shared(row_block *k, char letter, uint32_t i, atlas_type type, uint32_t count);
/* What the block's first lane does alone, up to the label. */
uint32_t ops_block_only_first(row_block *k);
/* The body for the chunk of this number: the row's last chunk may be one with tests. */
void ops_block_over_chunk(row_block *k, uint16_t chunk, void (*body)(row_block *k));

/* The row's coordinates, from its number in a register of the index type. */
void ops_block_set_row(row_block *k, uint16_t row);
/* The column's coordinates from column `base` (a register) + displacement. */
void ops_block_set_column(row_block *k, uint16_t base, int64_t displacement);
/* The same in a load that may reach beyond the row: lanes that have nothing in it read the row's last columns.
 * `column`: a register for that. */
void ops_block_set_tested_column(row_block *k, uint16_t column, uint16_t base, uint32_t element);
/* Results of earlier stages are those of this row, or neighbour. */
void ops_block_set_bound(row_block *k, uint32_t which);
/* What is another value at another element is not known any more. */
void ops_block_forget(row_block *k);
/* Computes what the stage reads that is the same in the whole row: in front of a loop over it. */
void ops_block_hoist(row_block *k);
/* Computes what is the same along these coordinates and needs no reduction, in front of everything. */
void ops_block_hoist_all(row_block *k, uint32_t coordinates);

/* A term's value at an element. */
uint16_t ops_block_value(row_block *k, term_id term, uint32_t element);
/* An ops_leaf whose context is a row_block: the input of the reduction in hand, or the identity where there is no such
 * element. */
uint16_t ops_block_leaf(void *context, uint32_t element);

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* Reduction i is in hand; 0: it is of another stage. */
int ops_block_take(row_block *k, uint32_t i);
/* A register that holds the identity of the reduction in hand. */
uint16_t ops_block_identity(row_block *k);
/* to = from, of its type. */
void ops_block_move(row_block *k, uint16_t to, uint16_t from);
/* Of `count` values in shared memory: at register `at` + first, and `stride` more each. */
uint16_t ops_block_fold_shared(row_block *k, uint16_t symbol, uint16_t at, uint32_t first, uint32_t stride,
                               uint32_t count);
/* Nothing has been folded of the reduction in hand. `first`: the lane's first column, where a lane's columns come in
 * their order; OPS_NO_REGISTER: they come in any. */
void ops_block_begin_kept(row_block *k, uint32_t i, uint32_t w, uint16_t first);
/* Where order does not matter: what the lane has so far, and this. */
void ops_block_keep(row_block *k, uint32_t i, uint16_t value);
/* Of all reductions of the stage: what lanes have kept is folded, and is the result. */
void ops_block_end_kept(row_block *k);
/* Others read this register as the result of row or neighbour `which`. */
void ops_block_bind(row_block *k, uint32_t i, uint32_t which, uint16_t reg);

/* argmin and argmax: a NaN wins, then the extreme, then the lowest place. */
atlas_type ops_block_place_type(const row_block *k);
/* Takes a value and its place where it is the better one. `there`: a predicate that must hold, or -1. in_order: places
 * come in their order, and the first one that was kept is the lane's first. */
void ops_block_keep_place(row_block *k, uint32_t i, uint32_t w, uint16_t value, uint16_t place, int there,
                          int in_order);
/* ROW_IS_FOUND: the value is the extreme, or NaN. */
void ops_block_find_extreme(row_block *k, uint16_t value, uint16_t extreme);
/* Of lanes whose kept value is the extreme the lowest place, in the type of the result. */
uint16_t ops_block_place_of(row_block *k, uint32_t i, uint16_t extreme);
void ops_block_end_place(row_block *k, uint16_t place, int over_lanes);

/* Parts: storages for `count` results of each reduction, and the stores of what lanes have kept. */
void ops_block_add_parts(row_block *k, uint64_t count);
void ops_block_store_parts(row_block *k, uint16_t at, uint32_t wide);

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Full results at a load's neighbours: those of `stage`, or of all with ROWS_ALL_STAGES. `also`: a predicate that must
 * hold, or -1. */
void ops_block_store_load(row_block *k, uint32_t load, uint32_t stage, int also);
/* A result at the coordinates that are known. */
void ops_block_put(row_block *k, const row_result *result);
/* Results that a row has one of. What updates an input lies over it: it is stored when all that read old elements have
 * been computed. */
void ops_block_put_single(row_block *k);
/* The same at the end of the program. by_one_lane: lane 0 stores them, else all that get here. */
void ops_block_finish(row_block *k, int by_one_lane);

#endif
