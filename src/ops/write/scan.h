/* scan.h - the state that the files of scans share. */
#ifndef HG_OPS_SCAN_H
#define HG_OPS_SCAN_H

#include "ops/graph/ops_tuning.h"
#include "ops/write/fold.h"

enum {
  IS_THERE = 0, IS_STORED = 1, IS_BEGUN = 2, /* predicates */
  CHUNK_BITS = 8,
  CHUNK = 1 << CHUNK_BITS,
  STEP = 1 << OPS_SCAN_OWN_BITS, /* the most elements of a lane that goes across memory */
  MOST_OWN = CHUNK,              /* the most elements of any lane: fewer than there are registers */
  NO_STORAGE = -1
};
enum { SCANS, SCANS_ON, TOTALS }; /* lines from their beginning; from what came before; only their chunks' totals */

typedef struct scan {
  const ops_group *group;
  const ops_node *node;
  ops_shape shape;
  uint32_t axis, result; /* a storage */
  uint64_t lines, inner; /* inner: the number of lines that lie side by side */
  atlas_type type; /* in which elements are combined */
  int is_inner;    /* 1: neighbouring elements of a line are neighbours in memory, 0: neighbouring lines are */
  int has_chunks;  /* 1: a block's lanes are a chunk's elements, which scan.incl scans */
  int has_columns; /* 1: a lane has a chunk in shared memory */
  int has_segments; /* 1: input 1 says how many elements of its segment are before each */
} scan;

/* Lines of elements: the node's input, or the totals of the lines of another level. */
typedef struct scan_level {
  const scan *s;
  uint64_t size, chunks;
  uint32_t elements;                            /* a storage that is scanned in place; UINT32_MAX: the input */
  uint32_t places;                              /* a storage: of each element how many of its segment are before it */
  uint32_t bits, lane_bits, unit_bits;          /* log2 of a unit's elements, of its lanes, of a block's units */
  uint32_t own;                                 /* elements of a lane */
  uint32_t line_bits;                           /* a line has 2^line_bits units, all in one block */
  int is_whole;
  uint64_t units;
} scan_level;

/* One launch. Coordinates: those of the shape. */
typedef struct scan_launch {
  const scan *s;
  const scan_level *level;
  uint32_t totals; /* a storage: the totals that are written, or read: of all chunks before; UINT32_MAX: none */
  uint32_t total_places; /* a storage: of each total that is written */
  ops_terms terms;
  ops_code code;
  atlas_builder *b;
  ops_fold fold;
  term_id value, place;
  ops_form own[HG_MAX_RANK];
  uint16_t tile;            /* symbol */
  uint16_t at;              /* u32: the position of the lane's element 0 in the tile */
  uint16_t in_unit;         /* u32: the lane's number in its unit */
  uint16_t unit;            /* i64: the unit's number, at most the last unit's */
  uint16_t line, chunk;     /* i64 */
  uint16_t outer, column;   /* i64: of the line: its number along the axes in front of the scanned one, and along those
                               behind */
  uint16_t first, left;     /* i64: the lane's element 0 along the axis, the elements from there to the line's end */
  uint16_t turned, back;    /* of lanes that read backwards (scan_is_turned): a symbol; i64: see ops_scan_turn */
  uint16_t element[MOST_OWN], before[MOST_OWN]; /* before: i64, elements of its segment in front of each */
} scan_launch;

static inline uint32_t scan_lanes_of(const scan_level *v) { return 1u << v->lane_bits; }
static inline uint32_t scan_units_of(const scan_level *v) { return 1u << v->unit_bits; }
static inline int scan_has_columns(const scan_level *v) { return v->s->has_columns && v->size > STEP; }
/* 1 if the last block lacks units. */
static inline int scan_has_rest(const scan_level *v) {
  return ((scan_has_columns(v) ? v->s->inner : v->units) & (scan_units_of(v) - 1)) != 0;
}
/* The distance between elements in the tile. */
static inline uint32_t scan_step_of(const scan_level *v) { return v->s->is_inner ? 1 : scan_units_of(v); }
static inline int scan_is_ragged(const scan_level *v) {
  uint64_t units = v->is_whole ? UINT64_C(1) << v->line_bits : v->chunks;
  return v->size != (scan_has_columns(v) ? units << v->bits : ((uint64_t)v->own << v->lane_bits) * units);
}

/* 1 if a lane may lack element w. */
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
  l->fold.combine(&l->fold, value, left, atlas_reg(value));
}

/* The same of the lane's element w, unless fewer elements of its segment are before it than `least` (i64). */
static inline void scan_combine_at(scan_launch *l, atlas_operand left, uint32_t w, atlas_operand least) {
  if (!l->s->has_segments) {
    scan_combine(l, left, l->element[w]);
    return;
  }
  uint16_t both = scan_fresh(l);
  l->fold.combine(&l->fold, both, left, atlas_reg(l->element[w]));
  atlas_emit(l->b, ATLAS_OP_set_lt, ATLAS_i64, 3, atlas_pred(IS_BEGUN), atlas_reg(l->before[w]), least);
  atlas_emit(l->b, ATLAS_OP_sel, l->s->type, 4, atlas_reg(l->element[w]), atlas_pred(IS_BEGUN),
             atlas_reg(l->element[w]), atlas_reg(both));
}

static inline atlas_operand scan_number(int64_t value) { return atlas_int_const(ATLAS_i64, value); }

static inline atlas_operand scan_identity(const scan_launch *l) { return atlas_bits(l->fold.identity); }

static inline int scan_is_input(const scan_level *v) { return v->elements == (uint32_t)NO_STORAGE; }

/* 1 if lanes read and write what lies the other way round in memory, and exchange it: of a line from its end on a
 * processor, which accesses neighbours at once if they ascend. */
static inline int scan_is_turned(const scan_level *v) {
  return scan_is_input(v) && v->s->node->index != 0 && v->s->is_inner && !v->s->group->plan->for_gpu &&
         !v->s->has_segments;
}

/* scan_places.c: the shape of the block, the position of each lane, the tile; the coordinates of its line; its element
 * w in a register; and storing its elements. */
void ops_scan_begin_lanes(scan_launch *l);
void ops_scan_begin_columns(scan_launch *l);
void ops_scan_split_line(scan_launch *l);
void ops_scan_read(scan_launch *l, uint32_t w);
void ops_scan_turn(scan_launch *l);
void ops_scan_write(scan_launch *l);

/* scan_strides.c: scans the elements of a unit, or of chunks, by strides; then adds what came before, in the block or
 * in memory; or computes only the total. Also everything of a launch whose lanes have a chunk each. */
void ops_scan_unit(scan_launch *l);
void ops_scan_chunks(scan_launch *l);
void ops_scan_carry_in_block(scan_launch *l);
void ops_scan_carry_on(scan_launch *l);
void ops_scan_write_total(scan_launch *l);
void ops_scan_columns(scan_launch *l, int what);

#endif
