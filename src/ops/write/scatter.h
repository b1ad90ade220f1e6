/* scatter.h - what the launches of a scatter share: see scatter.c, scatter_add.c, scatter_lists.c.
 *
 * Circle: scatter scatter_add scatter_lists: the first chooses among the ways, which are made of what it offers. */
#ifndef HG_OPS_SCATTER_H
#define HG_OPS_SCATTER_H

#include "ops/write/expression.h"

enum { CHUNK_BITS = 12, MOST_DEPTH = 4, IS_THERE = 1, IS_MORE = 2 };
enum { COUNTED, BEGUN, LISTED, LEVELS, PART_COUNTED, PART_BEGUN, UNORDERED, MOST_KEPT };

typedef struct scatter {
  const ops_group *group;
  const ops_node *node;
  uint32_t rank, axis, out;  /* out: the result's storage */
  ops_shape from, to;        /* of the sources and of the result */
  uint64_t sources, places;  /* along the axis */
  atlas_type number;         /* of sources, counted from 1: u32 where that has all */
  uint32_t depth;            /* of chunks in chunks: CHUNK_BITS of a number each */
  uint32_t key;              /* coordinates, but the axis, that the index varies along */
  uint64_t columns;          /* how many of them together */
  uint32_t kept[MOST_KEPT];  /* temporaries: what is noted; or lists, see scatter_add.c and scatter_lists.c */
  uint32_t part_bits, parts; /* see scatter_lists.c */
} scatter;

/* One launch. Coordinates: the shape's, then one for the other number along the axis. */
typedef struct scatter_launch {
  const scatter *s;
  ops_terms terms;
  ops_code code;
  ops_form own[HG_MAX_RANK], other[HG_MAX_RANK]; /* the axis by its own coordinate, by the last one */
} scatter_launch;

hg_status ops_scatter_begin(scatter_launch *l, const scatter *s, const ops_shape *shape, uint64_t other);
hg_status ops_scatter_keep(const scatter *s, atlas_type type, uint64_t count, uint32_t *storage);
hg_status ops_scatter_open(scatter_launch *l, uint32_t storage, int is_read);
hg_status ops_scatter_code(scatter_launch *l, const char *name);
void ops_scatter_writes(scatter_launch *l, uint32_t storage);
void ops_scatter_emit(scatter_launch *l, atlas_op op, atlas_type type, uint16_t to, atlas_operand a, atlas_operand b);
atlas_operand ops_scatter_scalar(scatter_launch *l, uint64_t value);
void ops_scatter_split(scatter_launch *l, const ops_shape *shape, uint32_t axes);
void ops_scatter_split_all(scatter_launch *l, const ops_shape *shape);
uint16_t ops_scatter_number(scatter_launch *l, const ops_form *form);
void ops_scatter_find(scatter_launch *l, term_id index);
uint16_t ops_scatter_checked(scatter_launch *l, const ops_form *form);
void ops_scatter_end(scatter_launch *l, hg_status *status, uint64_t lanes);
ops_form ops_scatter_in_column(const scatter *s, uint64_t size, uint32_t coordinate);
void ops_scatter_load(scatter_launch *l, uint32_t k, uint16_t to, uint16_t at);
void ops_scatter_store(scatter_launch *l, uint32_t k, uint16_t at, uint16_t value);

hg_status ops_scatter_base(const scatter *s); /* the result is the base */

hg_status ops_scatter_add(scatter *s); /* launches that add */
/* Lists of the sources of each place, made by as many lanes as there are sources. */
hg_status ops_scatter_lists(scatter *s);

#endif
