/* sort.h - the state that the files of sorting share: sort.c (which way), sort_words.c (elements, keys, results),
 * sort_network.c (short rows), sort_digits.c (what a block does with a digit), sort_block.c (rows that a block holds),
 * radix.c (longer rows) and top.c (the first of rows). */
#ifndef HG_OPS_SORT_H
#define HG_OPS_SORT_H

#include "ops/write/expression.h"
#include "ops/graph/ops_tuning.h"

enum { IS_THERE = 0, IS_MORE = 1, IS_SAME = 2 /* predicates */ };

typedef struct sort {
  const ops_group *group;
  const ops_node *node;
  ops_shape shape;
  atlas_type moved;     /* elements in registers and temporaries: their type; of bools u32 */
  uint32_t key_bits, axis;
  int is_reversed;      /* keys are in the reverse order of elements */
  uint64_t size, rows;
  uint32_t values, places; /* 1 + storages of the results; 0: not wanted */
} sort;

static inline int sort_is_wide(const sort *s) { return s->key_bits > 32; }
static inline atlas_type sort_key_type(const sort *s) { return sort_is_wide(s) ? ATLAS_u64 : ATLAS_u32; }

/* One launch. Coordinates: those of the shape. */
typedef struct sort_launch {
  const sort *s;
  ops_terms terms;
  ops_code code;
  atlas_builder *b;
  term_id element;
  ops_form own[HG_MAX_RANK];
  uint16_t row; /* i64 */
} sort_launch;

/* ---- sort_words.c ------------------------------------------------------------------------------------------------ */

/* What is to be sorted, or of what the first are wanted: that node's input. */
sort ops_sort_of(const ops_group *group);
/* Begins a launch that writes the node's results, or the storages of a list that ends with SORT_NONE; it reads those of
 * another one and, if it says so, the node's input. */
#define SORT_NONE UINT32_MAX
hg_status ops_sort_begin(sort_launch *l, const sort *s, int reads_input, const uint32_t *read, const uint32_t *written,
                         const char *name);
/* The element of the row at a column, i64. */
uint16_t ops_sort_element(sort_launch *l, uint16_t column);
/* Its key, an unsigned number of sort_key_type: keys are in the order of elements, or in
 * the reverse one. */
uint16_t ops_sort_key(sort_launch *l, uint16_t element);
/* Stores an element (a register of any number if values are not wanted) and its index, u32, at a column, i64, if
 * IS_THERE says so. */
void ops_sort_put(sort_launch *l, uint16_t element, uint16_t place, uint16_t column);

static inline uint16_t sort_fresh(sort_launch *l) { return ops_register(&l->code); }

static inline void sort_emit(sort_launch *l, atlas_op op, atlas_type type, uint16_t to, uint16_t a, atlas_operand b) {
  atlas_emit(l->b, op, type, 3, atlas_reg(to), atlas_reg(a), b);
}

static inline void sort_convert(sort_launch *l, atlas_type to_type, uint16_t to, atlas_type from_type, uint16_t from) {
  atlas_emit2(l->b, atlas_bytes(to_type) == atlas_bytes(from_type) ? ATLAS_OP_bitcast : ATLAS_OP_cvt, to_type,
              from_type, atlas_reg(to), atlas_reg(from));
}

static inline atlas_operand sort_scalar(sort_launch *l, uint64_t value) {
  return ops_scalar_of(&l->code, ATLAS_i64, value);
}

static inline void sort_barrier(sort_launch *l) { atlas_emit(l->b, ATLAS_OP_bar_sync, ATLAS_NONE, 0); }

/* The u32 number in a new register, i64. */
static inline uint16_t sort_widened(sort_launch *l, uint16_t number) {
  uint16_t wide = sort_fresh(l);
  sort_convert(l, ATLAS_i64, wide, ATLAS_u32, number);
  return wide;
}

/* ---- sort_digits.c ----------------------------------------------------------------------------------------------- */

enum {
  SORT_DIGIT_BITS = 8,
  SORT_DIGITS = 1 << SORT_DIGIT_BITS, /* also the lanes of a block: a lane has a digit's counts */
  SORT_MOST_ROUNDS = 16
};

/* Words that the lanes of a block have at once, in rounds: one of each lane. A word is an element and, if places are
 * wanted, its index in the row. Word number j of the tile is that of lane j % SORT_DIGITS in round j / SORT_DIGITS. */
typedef struct sort_tile {
  sort_launch *l;
  uint32_t rounds;
  uint16_t column[SORT_MOST_ROUNDS];  /* u32: of the word in its row; it is there if that is below the size */
  uint16_t element[SORT_MOST_ROUNDS], place[SORT_MOST_ROUNDS];
  uint16_t digit[SORT_MOST_ROUNDS], rank[SORT_MOST_ROUNDS];
  uint16_t windows, elements, places; /* arrays in shared memory: counts of each round's digits; words */
} sort_tile;

void ops_tile_begin(sort_tile *t, sort_launch *l, uint32_t rounds, int is_ordered);
/* The words' columns, `first` on, u32. */
void ops_tile_columns(sort_tile *t, uint16_t first);
/* IS_THERE: the word of the round is one of the row. */
void ops_tile_is_there(sort_tile *t, uint32_t round);
/* The element's digit from bit `shift` on. */
uint16_t ops_sort_digit(sort_launch *l, uint16_t element, atlas_operand shift);
/* Words that are not there have the greatest digit, and are the last ones. */
void ops_tile_rank(sort_tile *t, atlas_operand shift);
/* The words of each digit get places from `sum` on, which each lane has for its digit, u32; sum becomes the end. */
void ops_tile_follow(sort_tile *t, uint16_t sum);
/* The lane's count of its digit; places are those in the tile, and *before is the first one of the lane's digit. */
uint16_t ops_tile_inside(sort_tile *t, uint16_t *before);
/* Where the word goes, u32, after either; behind a barrier. */
uint16_t ops_tile_target(sort_tile *t, uint32_t round);
/* Exchanges the words: each lane gets those at its numbers in the tile's order. Behind a barrier. */
void ops_tile_order(sort_tile *t);

/* ---- ways to sort ------------------------------------------------------------------------------------------------ */

hg_status ops_write_sort_network(const sort *s, uint32_t row_bits);
hg_status ops_write_sort_block(const sort *s);
hg_status ops_write_radix(const sort *s);

#endif
