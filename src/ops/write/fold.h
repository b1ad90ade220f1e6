/* fold.h - code for order F: a sequence folds by halves in chunks of 4096, and the chunks' results fold by F again.
 *
 * The fold of a list is the fold of its even elements with that of its odd ones, so index bits fold from the top. A row
 * is laid out over loads, lanes and neighbours, from the top bit of a chunk's index to the lowest: the loads of a lane
 * fold in its registers, then the lanes of the block, then the neighbours, and chunks last. */
#ifndef HG_OPS_FOLD_H
#define HG_OPS_FOLD_H

#include "ops/write/expression.h"

enum { OPS_CHUNK = 4096 };

/* How values are combined. */
typedef struct ops_fold ops_fold;
struct ops_fold {
  ops_code *code;
  /* to = left op right, `to` may be a register of them */
  void (*combine)(const ops_fold *fold, uint16_t to, atlas_operand left, atlas_operand right);
  atlas_op op, collective; /* add, reduce.add, ...; of an operator that is no instruction there is neither */
  uint8_t type;
  uint8_t is_ordered; /* 0: the result is the same in any order */
  uint64_t identity;  /* the bits of the identity, which may stand for absent values */
};

/* The register of a value. */
typedef uint16_t (*ops_leaf)(void *context, uint32_t number);

/* The fold of `reduce` for values of the type: argmin and argmax fold their values as min and max. */
ops_fold ops_fold_of(ops_code *code, ops_reduce reduce, atlas_type type);

/* left op right. The result is in a register of its own, unless only one value is folded. */
uint16_t ops_fold_two(const ops_fold *fold, uint16_t left, uint16_t right);
/* Folds the leaves first, first + stride, ...: `count` of them, at least 1. */
uint16_t ops_fold_leaves(const ops_fold *fold, uint32_t first, uint32_t stride, uint32_t count, ops_leaf leaf,
                         void *context);
/* The same in the order of contractions: neighbours first, so the left part is the greatest power of two that leaves
 * something for the right one. Leaves are requested in order. */
uint16_t ops_fold_aligned(const ops_fold *fold, uint32_t first, uint32_t count, ops_leaf leaf, void *context);
/* Folds these values. */
uint16_t ops_fold_values(const ops_fold *fold, const uint16_t *values, uint32_t count);
/* The value if the predicate holds, else the identity. */
uint16_t ops_fold_where(const ops_fold *fold, uint32_t predicate, uint16_t value);
/* Folds over the block's lanes. */
uint16_t ops_fold_lanes(const ops_fold *fold, uint16_t value);

/* ---- rows laid over a block ------------------------------------------------------------------------------------ */

/* Where the bits of a column's number are (layouts.def): as many neighbours in a load, lanes, loads, rounds (2^levels),
 * groups of lanes, chunks.
 *
 * Element number k * wide + w of a lane is column k * step + w from the lane's first one on; or, where neighbours are
 * those of results (is_across), column k * step of result w. All but `loads` and the numbers of chunks are powers of
 * two. */
typedef struct ops_layout {
  uint32_t wide, lanes, loads;
  uint32_t step;   /* columns from a load to the next, at most OPS_CHUNK */
  uint32_t levels; /* of the binary counter of a chunk's rounds, which come in bit-reversed order */
  uint32_t groups; /* of lanes that share the columns of their results */
  uint32_t rows;   /* of a block */
  int is_across;
  uint32_t chunks; /* 0, or a power of two: the block has that many times `lanes` lanes, a chunk for each. A lane's
                      number is its number in its chunk times `chunks`, plus the chunk's number, so that it folds in
                      order F */
  uint64_t first_chunk, chunk_blocks; /* of a launch with a block for each chunk of a row, from this one on */
} ops_layout;

static inline uint64_t ops_chunks(uint64_t columns) { return (columns + OPS_CHUNK - 1) / OPS_CHUNK; }

static inline uint32_t ops_column(const ops_layout *layout, uint32_t element) {
  return element / layout->wide * layout->step + (layout->is_across ? 0 : element % layout->wide);
}

enum { OPS_MOST_PARTS = 64 };

/* A lane's columns of a row folded into parts, each of which is to be folded over lanes. */
typedef struct ops_parts {
  uint16_t part[OPS_MOST_PARTS];
  uint32_t count;
} ops_parts;

/* There is a part for each chunk and neighbour; where neighbours fold and order does not matter, a single one. The
 * leaves are the lane's elements; those behind the row's end are the identity. */
void ops_fold_own(const ops_fold *fold, const ops_layout *layout, ops_leaf leaf, void *context, ops_parts *parts);
/* Folds parts that have been folded over lanes. */
uint16_t ops_fold_parts(const ops_fold *fold, const ops_layout *layout, ops_parts *parts);

#endif
