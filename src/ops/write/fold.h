/* fold.h - code for order F: a sequence folds by halves in chunks of 4096, and the chunks' results by F again.
 *
 * The fold of a list is the fold of its elements of even number with that of the odd ones: so index bits fold from the
 * top. A row is laid over loads, lanes and neighbours, from the top bit of a chunk's index to the lowest: the loads of
 * a lane fold in its registers, then the lanes of the block, then the neighbours, and at last chunks. */
#ifndef HG_OPS_FOLD_H
#define HG_OPS_FOLD_H

#include "ops/write/expression.h"

enum { OPS_CHUNK = 4096 };

/* How values are put together. */
typedef struct ops_fold {
  ops_code *code;
  atlas_op op, collective; /* add, reduce.add, ... */
  uint8_t type;
  uint8_t is_ordered; /* 0: the answer is the same in any order */
  uint64_t identity;  /* bits that change nothing: what is absent may be given as this */
} ops_fold;

/* The register of a value. */
typedef uint16_t (*ops_leaf)(void *context, uint32_t number);

/* `reduce` of values of the type, in it: argmin and argmax by their values, as min and max. */
ops_fold ops_fold_of(ops_code *code, ops_reduce reduce, atlas_type type);
uint64_t ops_bits_of(atlas_type type, double value); /* of a small integer or 0, inf */

/* left op right. What is folded is in a register that nothing else has, but what is folded of one value. */
uint16_t ops_fold_two(const ops_fold *fold, uint16_t left, uint16_t right);
/* Of the leaves first, first + stride, ..., `count` of them, 1 or more. */
uint16_t ops_fold_leaves(const ops_fold *fold, uint32_t first, uint32_t stride, uint32_t count, ops_leaf leaf,
                         void *context);
/* The same in the order of contractions: neighbours first, so the left half is the greatest power of two that leaves
 * something for the right one. Leaves are asked for in their order. */
uint16_t ops_fold_aligned(const ops_fold *fold, uint32_t first, uint32_t count, ops_leaf leaf, void *context);
/* Of these values. */
uint16_t ops_fold_values(const ops_fold *fold, const uint16_t *values, uint32_t count);
/* The value where the predicate holds, elsewhere what changes nothing. */
uint16_t ops_fold_where(const ops_fold *fold, uint32_t predicate, uint16_t value);
/* Of the block's lanes. */
uint16_t ops_fold_lanes(const ops_fold *fold, uint16_t value);

/* ---- rows laid over a block ------------------------------------------------------------------------------------ */

/* Element number k * wide + w of a lane is column k * (lanes * wide) + lane * wide + w of the row. Lanes, wide powers
 * of two, lanes * wide <= OPS_CHUNK. */
typedef struct ops_layout {
  uint32_t lanes, wide, loads;
  uint32_t rows; /* of a block */
  uint32_t chunks; /* 0, or a power of two: so many times `lanes` lanes, a chunk each. A lane's number is that in its
                      chunk times `chunks` + the chunk's, so that it folds in order F */
} ops_layout;

static inline uint32_t ops_column(const ops_layout *layout, uint32_t element) {
  return element / layout->wide * (layout->lanes * layout->wide) + element % layout->wide;
}

enum { OPS_MOST_PARTS = 64 };

/* What a lane has of a row, as so many parts, each of which is to be folded over lanes. */
typedef struct ops_parts {
  uint16_t part[OPS_MOST_PARTS];
  uint32_t count;
} ops_parts;

/* Parts are chunks times neighbours, or one where order does not matter. The leaves are the lane's elements; those
 * beyond the row's end are the identity. */
void ops_fold_own(const ops_fold *fold, const ops_layout *layout, ops_leaf leaf, void *context, ops_parts *parts);
/* Of parts that have been folded over lanes. */
uint16_t ops_fold_parts(const ops_fold *fold, const ops_layout *layout, ops_parts *parts);

#endif
