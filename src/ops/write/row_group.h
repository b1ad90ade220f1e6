/* row_group.h - programs that reduce: what is known of a group, and the ways to write it.
 *
 * A row is what one result of the reductions is made of, whichever axes it lies along. Its elements are columns,
 * numbered in C order over the reduced axes. Terms that vary along columns have a stage: how many reductions, one
 * behind another, come before them. */
#ifndef HG_OPS_ROW_GROUP_H
#define HG_OPS_ROW_GROUP_H

#include "ops/write/fold.h"

enum {
  ROWS_MOST_PARTS = 4, /* storages: see ops_code.partials */
  ROWS_MOST_REDUCTIONS = 12,
  ROWS_MOST_RESULTS = 12,
  ROWS_MOST_STAGES = 12,
  ROWS_MOST_HELD = 32,
  ROWS_MOST_ROWS = 16
};

typedef struct row_reduction {
  value_id value;
  ops_reduce reduce;
  uint8_t type; /* of the input */
  term_id input;
  term_id place;  /* of argmin and argmax over parts: the index of a part's extreme; 0: the column */
  term_id bound;  /* the term by which others read the result; 0: nobody does */
  uint32_t stage; /* of the input */
} row_reduction;

typedef struct row_result {
  value_id value;
  uint32_t storage;
  uint8_t type, is_full; /* is_full: 1: an element for each column, 0: one for the row */
  term_id term;
  uint32_t stage;
  ops_form address;
} row_result;

typedef struct row_between row_between;

typedef struct row_group {
  const ops_group *group;
  ops_terms terms;
  ops_shape full; /* the shape of what is reduced */
  uint32_t axes;
  uint64_t rows, columns;
  uint32_t row_rank; /* coordinates of the space: those of the row, then those of the column */
  row_reduction reductions[ROWS_MOST_REDUCTIONS];
  row_result results[ROWS_MOST_RESULTS];
  uint32_t reduction_count, result_count, stage_count;
  ops_form row_number;
  const row_between *between;              /* of a stage: the storages of its results */
  uint32_t of_whole[ROWS_MOST_REDUCTIONS]; /* of a stage: the numbers of its reductions in `between` */
  uint8_t stage[OPS_MAX_TERMS + 1];        /* by term: the first stage in which it can be computed */
  uint8_t last_use[OPS_MAX_TERMS + 1];     /* by held term: the last stage that reads it */
  term_id held[ROWS_MOST_HELD];   /* terms that vary along columns, are computed in one stage and read in a later one */
  uint32_t held_count, most_held; /* most_held: the most words of a column that are held at once */
} row_group;

/* Fills in everything; call ops_row_group_end in any case. */
hg_status ops_row_group_begin(row_group *g, const ops_group *group);
void ops_row_group_end(row_group *g);
/* The same group, except that its reductions fold the results of parts, `count` of them for a row, which lie in
 * storages. */
typedef struct row_parts {
  uint64_t count;
  int is_across; /* 1: the parts of a row lie apart, and those of neighbouring rows side by side */
  uint32_t values[ROWS_MOST_REDUCTIONS], places[ROWS_MOST_REDUCTIONS]; /* storages, by reduction */
} row_parts;
/* Stages as groups of their own: the reductions of stage `stage` of `whole`, whose results go to the storages of
 * `between`; results of earlier stages are read from there. Behind the last stage: the group's results, without any
 * reduction. */
struct row_between {
  uint32_t storage[ROWS_MOST_REDUCTIONS]; /* by reduction of the whole: one result for each row */
};
hg_status ops_row_group_of_stage(row_group *g, const row_group *whole, uint32_t stage, const row_between *between);
hg_status ops_row_group_of_parts(row_group *g, const row_group *whole, const row_parts *parts);

/* The coordinates of the space (bits) that make up the column. */
static inline uint32_t column_bits(const row_group *g) {
  return ((1u << g->terms.space.rank) - 1) & ~((1u << g->row_rank) - 1);
}
static inline int row_is_place(const row_reduction *r) { return r->reduce == OPS_ARGMIN || r->reduce == OPS_ARGMAX; }
static inline int varies_by_column(const row_group *g, term_id term) {
  return (ops_term_at(&g->terms, term)->varies & column_bits(g)) != 0;
}

int ops_row_has_full_results(const row_group *g);
/* The most neighbours, up to `most`, that every load and store along columns can join, because rows begin at multiples
 * of them. */
uint32_t ops_row_neighbours(const row_group *g, uint32_t most);
/* The bytes of the widest element along columns. */
uint32_t ops_row_element_bytes(const row_group *g);

/* ---- ways ------------------------------------------------------------------------------------------------------ */

/* One block for each row, held in registers; or in loops over chunks, reading the row once for each stage. */
int ops_rows_held_layout(const row_group *g, ops_layout *layout); /* 0: it cannot be held */
hg_status ops_rows_held(row_group *g);
hg_status ops_rows_loop(row_group *g);
int ops_rows_loop_can(const row_group *g);
int ops_rows_loop_pays(const row_group *g); /* 1: it is faster, even if a block could hold the row */
/* The same with a part of the row in shared memory, and the rest read in alternating directions. */
hg_status ops_rows_shared(row_group *g);
int ops_rows_shared_can(const row_group *g);
/* A block for each chunk of each row; its results are the parts. */
uint32_t ops_row_part_storages(const row_group *g);
int ops_rows_parts_can(const row_group *g);
hg_status ops_rows_parts(row_group *g, row_parts *parts);

/* Results behind the last reduction: a block for each chunk of each row, for results with an element for each
 * column. */
int ops_rows_behind_can(const row_group *g);
hg_status ops_rows_behind(row_group *g);
/* The same with an element, or a row, for each lane. */
hg_status ops_rows_map(row_group *g, int full);

/* Lanes along rows, if rows are neighbours in memory; parts->count is 0 if there are no parts. */
int ops_columns_lie_apart(const row_group *g); /* and neighbouring rows side by side */
int ops_columns_can(const row_group *g);
hg_status ops_columns_write(row_group *g, row_parts *parts);
/* The top bits of long columns in a step of their own, on a CPU. */
int ops_columns_top_can(const row_group *g);
hg_status ops_columns_top(row_group *g, row_parts *parts);

#endif
