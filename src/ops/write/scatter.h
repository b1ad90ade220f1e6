/* scatter.h - what the launches of a scatter share: see scatter.c, scatter_add.c, scatter_counts.c, scatter_extremes.c
 * and scatter_lists.c.
 *
 * Circle: scatter scatter_add scatter_counts scatter_extremes scatter_lists: the first chooses among the ways, which
 * use what it provides. */
#ifndef HG_OPS_SCATTER_H
#define HG_OPS_SCATTER_H

#include "ops/write/expression.h"

enum { CHUNK_BITS = 12, MOST_DEPTH = 4, IS_THERE = 1, IS_MORE = 2 };
enum { COUNTED, BEGUN, LISTED, LEVELS, PART_COUNTED, PART_BEGUN, UNORDERED, CHUNKS, RESULT, MOST_KEPT };

typedef struct scatter {
  const ops_group *group;
  const ops_node *node;
  uint32_t rank, axis, out;  /* out: the result's storage */
  ops_shape from, to;        /* of the sources and of the result */
  uint64_t sources, places;  /* along the axis */
  atlas_type number;         /* the type of source numbers, counted from 1: u32 if it holds all */
  uint32_t depth;            /* levels of chunks in chunks, each with CHUNK_BITS of a number */
  uint32_t key;              /* the coordinates, except the axis, along which the index varies */
  uint64_t columns;          /* the number of places along them together */
  uint32_t kept[MOST_KEPT];  /* temporaries: what is noted; or lists, see scatter_add.c and scatter_lists.c */
  uint32_t part_bits, parts; /* see scatter_lists.c */
  uint64_t windows; /* of a chunk of sources each, in which a whole chunk of a list may begin; 0: nobody looks */
} scatter;

/* One launch. Coordinates: those of the shape, then one for the other number along the axis. */
typedef struct scatter_launch {
  const scatter *s;
  ops_terms terms;
  ops_code code;
  ops_form own[HG_MAX_RANK], other[HG_MAX_RANK]; /* with the axis at its own coordinate, and at the last one */
  term_id base, index, source;                   /* the requested inputs */
} scatter_launch;

enum { OF_BASE = 1, OF_INDEX = 2, OF_SOURCE = 4 }; /* bit i: input i of the node */
enum { ALL_AXES = (1 << OPS_MAX_VARIABLES) - 1 };

typedef struct scatter_work {
  const char *name;
  const ops_shape *shape;
  uint64_t other;         /* the size of the other number's range */
  uint32_t inputs;        /* OF_...: inputs at the current destination or source */
  uint32_t reads, writes; /* bits of temporaries */
  uint64_t lanes;         /* without coordinates; or 0, and then: */
  uint32_t axes;          /* a lane for each element along these */
  int by_rows;            /* 1: in blocks of a row, if an index applies to whole rows */
  void (*write)(scatter_launch *l);
  int (*find_rows)(const scatter_launch *l, hg_rows *out); /* what a device may know of the launch; NULL */
} scatter_work;

hg_status ops_scatter_launch(const scatter *s, const scatter_work *work);
hg_status ops_scatter_keep(scatter *s, uint32_t k, atlas_type type, uint64_t count);
/* Sets the temporaries `kept` (bits) to 0, `count` elements each. */
hg_status ops_scatter_zeros(const scatter *s, uint32_t kept, uint64_t count);
void ops_scatter_emit(scatter_launch *l, atlas_op op, atlas_type type, uint16_t to, atlas_operand a, atlas_operand b);
atlas_operand ops_scatter_scalar(scatter_launch *l, uint64_t value);
uint16_t ops_scatter_number(scatter_launch *l, const ops_form *form);
void ops_scatter_find(scatter_launch *l);
uint16_t ops_scatter_checked(scatter_launch *l, const ops_form *form);
ops_form ops_scatter_target(const scatter_launch *l, const ops_form *index);
uint16_t ops_scatter_own_number(scatter_launch *l); /* the source's number */
/* A destination's number among all, dense; the axis by a coordinate. */
ops_form ops_scatter_dense(const scatter *s, uint32_t axis_coordinate);
ops_form ops_scatter_in_column(const scatter *s, uint64_t size, uint32_t coordinate);
void ops_scatter_load(scatter_launch *l, uint32_t k, uint16_t to, uint16_t at);
void ops_scatter_store(scatter_launch *l, uint32_t k, uint16_t at, uint16_t value);

hg_status ops_scatter_base(const scatter *s); /* the result is the base */

hg_status ops_scatter_add(scatter *s);      /* the launches that add or multiply */
hg_status ops_scatter_extremes(scatter *s); /* those that find the smallest or the largest */
/* Makes lists of each destination's sources, with as many lanes as there are sources. */
hg_status ops_scatter_lists(scatter *s);
/* 1 if sums are the same in any order and no lists are needed; then they are added up by this. */
int ops_scatter_is_counted(const scatter *s);
hg_status ops_scatter_counts(scatter *s);

#endif
