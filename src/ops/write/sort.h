/* sort.h - the state that the files of sorting share: sort.c, radix.c for rows that no block holds, top.c for the
 * first of rows, sort_words.c. */
#ifndef HG_OPS_SORT_H
#define HG_OPS_SORT_H

#include "ops/write/expression.h"
#include "ops/graph/ops_tuning.h"

enum { IS_THERE = 0, IS_MORE = 1, /* predicates */ KEY_BITS = 32 };

typedef struct sort {
  const ops_group *group;
  const ops_node *node;
  ops_shape shape;
  uint32_t axis, row_bits, tile_bits; /* a row has at most 2^row_bits words, a block of the network 2^tile_bits */
  uint64_t size, rows;
  uint32_t values, places; /* 1 + storages of the results; 0: not wanted */
} sort;

/* One launch. Coordinates: those of the shape. */
typedef struct sort_launch {
  const sort *s;
  ops_terms terms;
  ops_code code;
  atlas_builder *b;
  term_id key, value;
  ops_form own[HG_MAX_RANK];
  uint16_t row, column; /* i64: of the current word; at most the last ones */
} sort_launch;

enum { READS_KEYS = 1, WRITES_RESULTS = 2 };

/* sort_words.c. Begins a launch that reads or writes those of the node, and the storages of two lists that end with
 * SORT_NONE. */
#define SORT_NONE UINT32_MAX
hg_status ops_sort_begin(sort_launch *l, const sort *s, uint32_t uses, const uint32_t *read, const uint32_t *written,
                         const char *name);
/* What the node's first input has at the column; as u64, above the column itself. */
uint16_t ops_sort_key(sort_launch *l);
uint16_t ops_sort_word(sort_launch *l);
/* Stores the element at an index of the row, i64, and the index itself, at l->column if IS_THERE says so. An index of a
 * lane that is not there may be any of the row's: what all elements share is computed by all lanes. */
void ops_sort_put(sort_launch *l, uint16_t place);

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

/* radix.c: sorts rows of any length by the digits of their keys. */
hg_status ops_write_radix(const sort *s);

#endif
