/* scan.h - what the files of scans know of a launch. */
#ifndef HG_OPS_SCAN_H
#define HG_OPS_SCAN_H

#include "ops/graph/ops_tuning.h"
#include "ops/write/fold.h"

enum {
  IS_THERE = 0, IS_STORED = 1, /* predicates */
  CHUNK_BITS = 8,
  CHUNK = 1 << CHUNK_BITS,
  STEP = 1 << OPS_SCAN_OWN_BITS, /* elements of a lane that goes across memory, at most */
  MOST_OWN = CHUNK,              /* elements of any lane: fewer than there are registers */
  NO_STORAGE = -1
};
enum { SCANS, SCANS_ON, TOTALS }; /* lines from their beginnings, from what was before; their chunks' totals alone */

typedef struct scan {
  const ops_group *group;
  const ops_node *node;
  ops_shape shape;
  uint32_t axis, result; /* a storage */
  uint64_t lines, inner; /* inner: as many lines as lie side by side */
  atlas_type type; /* in which elements are put together */
  int is_inner;    /* neighbouring elements of a line lie side by side, rather than neighbouring lines */
  int has_chunks;  /* a block's lanes are a chunk's elements, which scan.incl scans */
  int has_columns; /* a lane has a chunk in shared memory */
} scan;

/* Lines of so many elements: the node's input, or the totals of what a storage has of them. */
typedef struct scan_level {
  const scan *s;
  uint64_t size, chunks;
  uint32_t elements;                            /* a storage that is scanned in place; UINT32_MAX: the input */
  uint32_t bits, lane_bits, unit_bits;          /* of a unit's elements, of its lanes, of a block's units */
  uint32_t own;                                 /* elements of a lane */
  uint32_t line_bits;                           /* a line has 2^line_bits units of a block, all of them */
  int is_whole;
  uint64_t units;
} scan_level;

/* One launch. Coordinates: the shape's. */
typedef struct scan_launch {
  const scan *s;
  const scan_level *level;
  uint32_t totals; /* a storage: written, or read: of all chunks before; UINT32_MAX: none */
  ops_terms terms;
  ops_code code;
  atlas_builder *b;
  ops_fold fold;
  term_id value;
  ops_form own[HG_MAX_RANK];
  uint16_t tile;            /* symbol */
  uint16_t at;              /* u32: the lane's element 0 in the tile */
  uint16_t in_unit;         /* u32: the lane's number in its unit */
  uint16_t unit;            /* i64: the unit's number, at most that of the last one */
  uint16_t line, chunk;     /* i64 */
  uint16_t outer, column;   /* i64: of the line: the number in front of the axis, that behind it */
  uint16_t first, left;     /* i64: the lane's element 0 along the axis, elements from there to the line's end */
  uint16_t element[MOST_OWN];
} scan_launch;

static inline uint32_t scan_lanes_of(const scan_level *v) { return 1u << v->lane_bits; }
static inline uint32_t scan_units_of(const scan_level *v) { return 1u << v->unit_bits; }
static inline int scan_has_columns(const scan_level *v) { return v->s->has_columns && v->size > STEP; }
/* The last block has units that there are not. */
static inline int scan_has_rest(const scan_level *v) {
  return ((scan_has_columns(v) ? v->s->inner : v->units) & (scan_units_of(v) - 1)) != 0;
}
/* From element to element in the tile. */
static inline uint32_t scan_step_of(const scan_level *v) { return v->s->is_inner ? 1 : scan_units_of(v); }
static inline int scan_is_ragged(const scan_level *v) {
  uint64_t units = v->is_whole ? UINT64_C(1) << v->line_bits : v->chunks;
  return v->size != (scan_has_columns(v) ? units << v->bits : ((uint64_t)v->own << v->lane_bits) * units);
}

/* There may be no element w of a lane. */
static inline int scan_may_be_absent(const scan_level *v, uint32_t w) {
  int is_known = v->s->has_chunks && v->is_whole;
  return scan_is_ragged(v) && !(is_known && (w + UINT64_C(1)) << v->lane_bits <= v->size);
}

static inline uint16_t scan_fresh(scan_launch *l) { return ops_register(&l->code); }

static inline void scan_emit(scan_launch *l, atlas_op op, atlas_type type, uint16_t to, uint16_t a, atlas_operand b) {
  atlas_emit(l->b, op, type, 3, atlas_reg(to), atlas_reg(a), b);
}

static inline void scan_convert(scan_launch *l, atlas_type to_type, uint16_t to, atlas_type from_type, uint16_t from) {
  atlas_op op = to_type == from_type ? ATLAS_OP_mov : ATLAS_OP_cvt;
  if (op == ATLAS_OP_mov) atlas_emit(l->b, op, to_type, 2, atlas_reg(to), atlas_reg(from));
  else atlas_emit2(l->b, op, to_type, from_type, atlas_reg(to), atlas_reg(from));
}

static inline atlas_operand scan_scalar(scan_launch *l, uint64_t value) {
  return ops_scalar_of(&l->code, ATLAS_i64, value);
}
static inline void scan_barrier(scan_launch *l) { atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0); }

/* value = left op value */
static inline void scan_combine(scan_launch *l, atlas_operand left, uint16_t value) {
  atlas_emit(l->b, l->fold.op, l->s->type, 3, atlas_reg(value), left, atlas_reg(value));
}

static inline atlas_operand scan_identity(const scan_launch *l) { return atlas_bits(l->fold.identity); }

static inline int scan_is_input(const scan_level *v) { return v->elements == (uint32_t)NO_STORAGE; }

/* scan_places.c: the block's shape, where each lane is, the tile; the coordinates of its line; its element w in a
 * register, and its elements where they go. */
void ops_scan_begin_lanes(scan_launch *l);
void ops_scan_begin_columns(scan_launch *l);
void ops_scan_split_line(scan_launch *l);
void ops_scan_read(scan_launch *l, uint32_t w);
void ops_scan_write(scan_launch *l);

/* scan_strides.c: the elements of a unit, or of chunks, by strides; then what came before it, in the block or in
 * memory; or its total alone. All of a launch whose lanes have a chunk each. */
void ops_scan_unit(scan_launch *l);
void ops_scan_chunks(scan_launch *l);
void ops_scan_carry_in_block(scan_launch *l);
void ops_scan_carry_on(scan_launch *l);
void ops_scan_write_total(scan_launch *l);
void ops_scan_columns(scan_launch *l, int what);

#endif
