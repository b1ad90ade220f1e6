/* row_moves.h - programs that do something to whole rows by number: see row_moves.c. */
#ifndef HG_OPS_ROW_MOVES_H
#define HG_OPS_ROW_MOVES_H

#include "ops/write/expression.h"

/* Rows that are added up. Coordinates: the shape's, of the result; then the source's number. */
typedef struct ops_added {
  const ops_shape *shape;
  uint32_t axis;
  uint64_t sources;
  term_id base, source;
  uint32_t storage;      /* of the result */
  const ops_form *place; /* there */
  uint32_t counted, begun, listed; /* storages */
} ops_added;

/* The index of a scatter, along one coordinate alone, and the lists of the sources of each place. */
typedef struct ops_listed {
  term_id index;
  uint32_t axis;
  ops_bounds bounds;
  uint64_t sources, places;
  uint32_t counted, begun, listed; /* storages */
} ops_listed;

/* 1 if what goes to this place is whole rows, or sums of them, or such lists are made; slots are storages until
 * ops_tell_rows. */
int ops_find_taken(const ops_terms *t, term_id root, uint32_t storage, const ops_form *place, hg_rows *out);
int ops_find_listed(const ops_terms *t, const ops_listed *listed, hg_rows *out);
int ops_find_added(const ops_terms *t, const ops_added *added, hg_rows *out);

/* Of the step's program, when it is written. */
hg_status ops_tell_rows(const ops_plan *plan, const hg_rows *rows, ops_step *step);

#endif
