/* row_block.h - the state of a program that reduces rows while it is written: what is the same for every layout of
 * columns. */
#ifndef HG_OPS_ROW_BLOCK_H
#define HG_OPS_ROW_BLOCK_H

#include "ops/graph/ops_tuning.h"
#include "ops/write/row_group.h"

/* Predicates. Those from ROW_OWN_PREDICATE on belong to the layout. */
enum { ROW_IS_THERE, ROW_IS_FOUND, ROW_IS_NAN, ROW_IS_EQUAL, ROW_IS_IN_FRONT, ROW_IS_STORED, ROW_OWN_PREDICATE };
enum { ROWS_ALL_STAGES = 0xffff, ROWS_MOST_WIDE = OPS_COLUMNS_WIDE, ROWS_MOST_LEVELS = 12, ROWS_MOST_TERMS = 4 };

/* A term that stays in registers from stage to stage. */
typedef struct row_known {
  term_id term;
  uint16_t *registers; /* by element; OPS_NO_REGISTER: it is computed where it is read */
} row_known;

/* A term that is the same in the whole row, and its kind before it became the block's own. */
typedef struct row_term {
  term_id term;
  uint16_t symbol, value[ROWS_MOST_ROWS];
  uint8_t kind;
} row_term;

/* The state of a program while it is written. Registers are of the index type unless said otherwise. */
typedef struct row_block {
  row_group *g;
  ops_code code;
  ops_layout layout;
  row_parts *parts;   /* the parts to be written; NULL */
  uint32_t forgotten; /* coordinates (bits) that differ from element to element: those of columns, and others */
  row_known known[ROWS_MOST_HELD];
  uint32_t known_count;
  uint32_t stage;

  /* The columns of a lane's loads, from `base` on. Those of loads that may reach beyond the row (is_tested:
   * ROW_IS_THERE says that the column exists, or another one is read instead) begin at `tail`; if that is
   * OPS_NO_REGISTER each is put into `column`. */
  uint16_t base, tail, column;
  uint32_t whole_loads; /* loads that need no test */
  int is_tested;

  /* Of a block with several rows, by row: numbers, coordinates, terms. */
  uint16_t number[ROWS_MOST_ROWS], row[ROWS_MOST_ROWS][HG_MAX_RANK];
  row_term row_terms[ROWS_MOST_TERMS];
  uint32_t row_term_count, row_in_hand;

  uint16_t chunk; /* the chunk's number, in a loop u32; OPS_NO_REGISTER: there is one */
  uint16_t round; /* u32: the round's number in the chunk */
  uint32_t across; /* the coordinate along which lanes and neighbours lie, if they have results of their own */
  uint16_t group, lane, result, block_result; /* the lane's group, its number there, its first result, its block's */
  int all_have_results; /* 1: no lane lies behind the last one */
  uint16_t shared[ROWS_MOST_REDUCTIONS], shared_places[ROWS_MOST_REDUCTIONS]; /* symbols: what groups have folded */

  const row_reduction *reduction; /* the current reduction */
  ops_fold fold;                  /* its fold */
  ops_parts own[ROWS_MOST_REDUCTIONS][ROWS_MOST_ROWS];  /* what the lane has folded of a round */
  uint16_t bound[ROWS_MOST_REDUCTIONS][ROWS_MOST_ROWS]; /* results, by row or neighbour; OPS_NO_REGISTER */
  uint16_t kept[ROWS_MOST_REDUCTIONS][ROWS_MOST_WIDE];  /* by neighbour: what the lane has folded so far */
  uint16_t place[ROWS_MOST_REDUCTIONS][ROWS_MOST_WIDE]; /* and its column, if that is wanted */
  uint16_t counter[ROWS_MOST_REDUCTIONS][ROWS_MOST_LEVELS][ROWS_MOST_WIDE]; /* what waits for its other half */
} row_block;

/* ---- indices ----------------------------------------------------------------------------------------------------- */

/* A number as a parameter of the program. */
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
/* Branches to the label if the comparison holds. */
static inline void row_branch(row_block *k, atlas_op op, uint16_t a, atlas_operand b, uint32_t label) {
  ops_branch_if(k->code.builder, op, k->code.index_type, atlas_reg(a), b, label);
}

/* ---- a program --------------------------------------------------------------------------------------------------- */

typedef void (*row_writer)(row_block *k);

/* Writes the program, as a step of its own. Column numbers up to a chunk beyond the row's end fit the index type. */
hg_status ops_block_write(row_group *g, const char *name, const ops_layout *layout, row_writer write, row_parts *parts);

/* The writers: a block has its rows in registers, goes over its row in a loop, with a part of it in shared memory, or
 * has a chunk of it, whose results are parts or are stored, or in which it looks for the row's extreme (the group's
 * last term is the chunk's number). A lane has an element, or a row. Lanes lie across columns, and go over them in
 * rounds, or over their top bits. */
void ops_write_held(row_block *k);
void ops_write_loop(row_block *k);
void ops_write_shared(row_block *k);
void ops_write_parts(row_block *k);
void ops_write_behind(row_block *k);
void ops_write_search(row_block *k);
void ops_write_elements(row_block *k);
void ops_write_singles(row_block *k);
void ops_write_columns(row_block *k);
void ops_write_columns_top(row_block *k);

/* Makes it a launch of that many blocks along x and y, and lanes in each; blocks of one lane become a linear launch. */
void ops_block_launch(row_block *k, uint64_t blocks_x, uint64_t blocks_y, uint32_t lanes_x, uint32_t lanes_y);
/* A shared array, named by a letter and the number of its purpose. */
uint16_t ops_block_shared(row_block *k, char letter, uint32_t i, atlas_type type, uint32_t count);
/* Begins what only the block's first lane does, up to the label. */
uint32_t ops_block_only_first(row_block *k);
/* Writes the body for the block's chunk: the row's last chunk may need tests. */
void ops_block_over_chunk(row_block *k, row_writer body);

/* Computes the row's coordinates from its number, a register of the index type. */
void ops_block_set_row(row_block *k, uint16_t row);
/* The lane's first column in the row: its number times its neighbours. */
uint16_t ops_block_first_column(row_block *k);
/* Sets the coordinates of a lane's element, and is_tested. Elements of several rows are numbered consecutively. */
void ops_block_set_element(row_block *k, uint32_t element);
/* The coordinates, and what has been computed for it, of this row of several, or neighbour. */
void ops_block_set_which_row(row_block *k, uint32_t row);
void ops_block_set_neighbour(row_block *k, uint32_t neighbour);
/* Begins a loop of that many rounds, and ends it. Returns its label; *rounds is a register that counts down. */
uint32_t ops_block_begin_loop(row_block *k, uint64_t count, uint16_t *rounds);
void ops_block_end_loop(row_block *k, uint16_t rounds, uint32_t label);
/* Forgets what differs from element to element. */
void ops_block_forget(row_block *k);
/* Computes in front of a loop over the row what the stage reads and is the same in the whole row. */
void ops_block_hoist(row_block *k);
/* Computes in front of everything what is the same along these coordinates and needs no reduction. */
void ops_block_hoist_all(row_block *k, uint32_t coordinates);

/* A term's value at an element. */
uint16_t ops_block_value(row_block *k, term_id term, uint32_t element);

/* ---- reductions -------------------------------------------------------------------------------------------------- */

/* Makes reduction i the current one; 0: it belongs to another stage. */
int ops_block_take(row_block *k, uint32_t i);
/* to = from, in its type. */
void ops_block_move(row_block *k, uint16_t to, uint16_t from);
/* Folds `count` values in shared memory: at register `at` + first, and then `stride` apart. */
uint16_t ops_block_fold_shared(row_block *k, uint16_t symbol, uint16_t at, uint32_t first, uint32_t stride,
                               uint32_t count);
/* Begins the stage's reductions with nothing folded. `first`: the lane's first column, if a lane's columns come in
 * ascending order; OPS_NO_REGISTER: they come in any order. */
void ops_block_begin_stage(row_block *k, uint16_t first);
/* Folds what the lane has of a round, for each reduction of the stage: keeps it if order does not matter (as does
 * argmax), else leaves it in `own`. `is_held`: the round is the whole row, and everything is left there. */
void ops_block_fold_own(row_block *k, int is_held);
/* Folds what ops_block_fold_own has left over the block's lanes. */
void ops_block_fold_lanes(row_block *k, int is_held);
/* The result of what has been folded over lanes. */
uint16_t ops_block_folded(row_block *k, uint32_t i);
/* For all reductions of the stage: folds what lanes have kept, and makes that the result. */
void ops_block_end_stage(row_block *k);
/* Makes this register the result of row or neighbour `which` for its readers. */
void ops_block_bind(row_block *k, uint32_t i, uint32_t which, uint16_t reg);

/* argmin and argmax: a NaN wins, then the extreme, then the lowest index. */
atlas_type ops_block_place_type(const row_block *k);
/* Keeps a value and its index if it is the better one. `there`: a predicate that must hold, or -1. in_order: indices
 * come in ascending order, and the first value kept is the lane's first. */
void ops_block_keep_place(row_block *k, uint32_t i, uint32_t w, uint16_t value, uint16_t place, int there,
                          int in_order);
/* Sets ROW_IS_FOUND if the value is the extreme, or NaN. */
void ops_block_find_extreme(row_block *k, uint16_t value, uint16_t extreme);
/* The lowest index among lanes whose kept value is the extreme, in the type of the result. */
uint16_t ops_block_place_of(row_block *k, uint32_t i, uint16_t extreme);
void ops_block_end_place(row_block *k, uint16_t place, int over_lanes);

/* Adds storages for parts, with `count` results of each reduction; and stores what lanes have kept. */
void ops_block_add_parts(row_block *k, uint64_t count);
void ops_block_store_parts(row_block *k, uint16_t at, uint32_t wide);

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* Stores full results at a load's neighbours: those of `stage`, or of all with ROWS_ALL_STAGES. `also`: a predicate
 * that must hold, or -1. */
void ops_block_store_load(row_block *k, uint32_t load, uint32_t stage, int also);
/* Stores a result at the current coordinates. */
void ops_block_put(row_block *k, const row_result *result);
/* Stores the results of which a row has one. A result that updates an input in place is stored after everything that
 * reads old elements has been computed. */
void ops_block_put_single(row_block *k);
/* The same at the end of the program. by_one_lane: lane 0 stores them, else all lanes that get here. */
void ops_block_finish(row_block *k, int by_one_lane);

/* 1: the launch's results, or the parts that it leaves, are the extremes of rows of bytes; see row_moves.h. */
int ops_find_extremes(const row_group *g, const ops_layout *layout, const row_parts *parts, hg_rows *out);

#endif
