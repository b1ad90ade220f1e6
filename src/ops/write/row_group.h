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
  uint32_t between; /* a storage with its result for each row, if stages are groups of their own */
} row_reduction;

typedef struct row_result {
  value_id value;
  uint32_t storage;
  uint8_t type, is_full; /* is_full: 1: an element for each column, 0: one for the row */
  term_id term;
  uint32_t stage;
  ops_form address;
} row_result;

typedef struct row_group {
  const ops_group *group;
  ops_terms terms;
  ops_shape full; /* the shape of what is reduced */
  uint32_t axes;
  uint64_t rows, columns;
  uint64_t chunk; /* columns that order F folds first: OPS_CHUNK, or what is left of that many */
  uint32_t row_rank; /* coordinates of the space: those of the row, then those of the column */
  row_reduction reductions[ROWS_MOST_REDUCTIONS];
  row_result results[ROWS_MOST_RESULTS];
  uint32_t reduction_count, result_count, stage_count;
  ops_form row_number;
  int is_stage; /* 1: its results are those of its reductions, which lie between stages */
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
  uint64_t chunk; /* of them; 0: they are as many as order F folds first */
  int is_across; /* 1: the parts of a row lie apart, and those of neighbouring rows side by side */
  int has_no_places; /* 1: of argmin and argmax, the number of the part is wanted */
  uint32_t values[ROWS_MOST_REDUCTIONS], places[ROWS_MOST_REDUCTIONS]; /* storages, by reduction */
} row_parts;
/* Stages as groups of their own: the reductions of `whole` in stages first to end - 1, whose results lie `between`
 * stages; those of earlier stages are read from there. Up to the last stage: the group's results. */
hg_status ops_row_group_of_stages(row_group *g, const row_group *whole, uint32_t first, uint32_t end);
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
/* The same of loads alone, along any coordinate. */
uint32_t ops_row_neighbours_along(const row_group *g, uint32_t along, uint32_t most);
/* 1 if something is loaded that all rows share. */
int ops_row_has_weights(const row_group *g);
/* The bytes of the widest element along columns. */
uint32_t ops_row_element_bytes(const row_group *g);

int ops_columns_lie_apart(const row_group *g); /* 1: and neighbouring rows side by side in memory */

/* ---- layouts ----------------------------------------------------------------------------------------------------- */

/* What layouts.def says of them: 1 if the group can have it, which is then filled in. */
int ops_choose_held(const row_group *g, ops_layout *layout);
int ops_choose_loop(const row_group *g, ops_layout *layout);
int ops_choose_reread(const row_group *g, ops_layout *layout);
int ops_choose_shared(const row_group *g, ops_layout *layout);
int ops_choose_parts(const row_group *g, ops_layout *layout);
/* 1 if the extremes of chunks are folded first, and the place is looked for in the chunk that has the row's. */
int ops_row_searches_chunk(const row_group *g);
int ops_choose_columns(const row_group *g, ops_layout *layout);
int ops_choose_columns_top(const row_group *g, ops_layout *layout);
/* Of results behind the last reduction, a block for each chunk. */
int ops_choose_behind(const row_group *g, ops_layout *layout);

#endif
