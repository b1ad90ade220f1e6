/* infer.h - types and shapes of results: promotion, broadcasting as the array API has it, and their errors. */
#ifndef HG_OPS_INFER_H
#define HG_OPS_INFER_H

#include "atlas/tables.h"
#include "ops/graph/nodes.h"

#include <stddef.h>

/* The most elements of a tensor: a launch has fewer than 2^40 lanes. */
#define OPS_MAX_ELEMENTS (UINT64_C(1) << 40)

/* The greatest distance between elements of a tensor: no machine has that many addresses. */
#define OPS_MOST_REACH (UINT64_C(1) << 56)

enum { OPS_TEXT_BYTES = 224, OPS_NUMBER_BYTES = 40 };

/* "f32[2, 3]"; returns the text. */
const char *ops_shape_text(const ops_shape *shape, char *text, size_t bytes);
const char *ops_value_text(const hg_computation *c, value_id value, char *text, size_t bytes);
/* "0.5", in every locale; returns the text. */
const char *ops_number_text(double number, char text[OPS_NUMBER_BYTES]);
#define OPS_NUMBER(number) ops_number_text(number, (char[OPS_NUMBER_BYTES]){0})
#define OPS_TEXT(c, value) ops_value_text(c, value, (char[OPS_TEXT_BYTES]){0}, OPS_TEXT_BYTES)
#define OPS_SHAPE(shape) ops_shape_text(shape, (char[OPS_TEXT_BYTES]){0}, OPS_TEXT_BYTES)

/* 0 for bool, 1 for integers, 2 for floats, 3 for 8-bit floats, which do not mix with others. */
int ops_kind_rank(atlas_type type);
/* The type that both are promoted to in one operation: of two kinds, the higher one's; ATLAS_NONE: they do not mix. */
atlas_type ops_promote(atlas_type a, atlas_type b);
/* Why they do not mix and what to do, as words for a sentence. */
const char *ops_promote_rule(atlas_type a, atlas_type b);

/* The shape that both broadcast to; 0: they do not fit. */
int ops_broadcast_shapes(const ops_shape *a, const ops_shape *b, ops_shape *out);
int ops_same_shape(const ops_shape *a, const ops_shape *b);

/* 1 if there are at most OPS_MAX_ELEMENTS elements and no size is negative (2^63 or more). */
int ops_is_countable(const ops_shape *shape);

/* The extent of a tensor's elements: the lowest one relative to element 0 (0 or below), and the number of elements from
 * there to the last, both inclusive (0: the tensor has none). Returns NULL, or why no memory can hold it. */
const char *ops_measure(uint32_t rank, const uint64_t *shape, const int64_t *stride, int64_t *lowest,
                        uint64_t *extent);

/* 1 if no product can overflow: at most 2^40 elements, and eight reaches of 2^48. `sizes`: all sizes, or all steps
 * along an axis, or-ed together; `strides`: ops_magnitude of all strides, or-ed. */
static inline int ops_is_small(uint32_t rank, uint64_t sizes, uint64_t strides) {
  static const uint8_t bits_of_a_size[HG_MAX_RANK + 1] = {20, 20, 20, 13, 10, 8, 6, 5, 5};
  return (sizes >> bits_of_a_size[rank] | strides >> 28) == 0;
}
static inline uint64_t ops_magnitude(int64_t stride) { return (uint64_t)(stride < 0 ? ~stride : stride); }

/* An axis counted from either end as 0 to rank - 1; -1: there is no such axis. */
int ops_axis(int64_t axis, uint32_t rank);

/* The number of elements of a slice; 0: it does not lie within an axis of that size (the rule is hg_tensor_slice's). */
int ops_slice_count(uint64_t size, int64_t start, int64_t stop, int64_t step, uint64_t *count);

/* 1 if a word of a types column ("number bool", `length` bytes) includes the type's kind. */
int ops_type_is_of(atlas_type type, const char *types, size_t length);

#endif
