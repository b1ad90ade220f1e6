/* row_moves.h - programs that handle whole rows by index: see row_moves.c. */
#ifndef HG_OPS_ROW_MOVES_H
#define HG_OPS_ROW_MOVES_H

#include "ops/write/expression.h"

/* Rows that are added up. Coordinates: those of the result's shape, then the source's number. */
typedef struct ops_added {
  const ops_shape *shape;
  uint32_t axis;
  uint64_t sources;
  term_id base, source;
  uint32_t storage;      /* of the result */
  const ops_form *place; /* the result's address in it */
  uint32_t counted, begun, listed; /* storages */
} ops_added;

/* The index of a scatter, which varies along one coordinate only, and the lists of each destination's sources. */
typedef struct ops_listed {
  term_id index;
  uint32_t axis;
  ops_bounds bounds;
  uint64_t sources, places;
  uint32_t counted, begun, listed; /* storages */
} ops_listed;

/* How many copies of rows write all of a result; 0: more than HG_MOST_COPIES, or it is not copies. */
uint32_t ops_find_copied(const ops_terms *t, term_id root, uint32_t storage, const ops_form *place, hg_rows *out);
/* 1 if the destination receives whole rows or sums of them, or such lists are made; slots are storages until
 * ops_tell_rows. */
int ops_find_taken(const ops_terms *t, term_id root, uint32_t storage, const ops_form *place, hg_rows *out);
int ops_find_listed(const ops_terms *t, const ops_listed *listed, hg_rows *out);
int ops_find_added(const ops_terms *t, const ops_added *added, hg_rows *out);

/* Completes it, and those that follow it, for the step's program once that is written. */
hg_status ops_tell_rows(const ops_plan *plan, const hg_rows *rows, ops_step *step);

#endif
