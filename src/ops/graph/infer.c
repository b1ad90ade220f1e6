/* infer.c - promotion, broadcasting, and types and shapes in words. */
#include "ops/graph/infer.h"

#include <stdio.h>

/* ---- in words ---------------------------------------------------------------------------------------------------- */

const char *ops_shape_text(const ops_shape *shape, char *text, size_t bytes) {
  size_t used = (size_t)snprintf(text, bytes, "[");
  for (uint32_t i = 0; i < shape->rank && used < bytes; i++)
    used += (size_t)snprintf(text + used, bytes - used, i == 0 ? "%llu" : ", %llu", (unsigned long long)shape->size[i]);
  if (used < bytes) snprintf(text + used, bytes - used, "]");
  return text;
}

const char *ops_value_text(const hg_computation *c, value_id value, char *text, size_t bytes) {
  const ops_node *node = ops_at(c, value);
  size_t used = (size_t)snprintf(text, bytes, "%s", atlas_type_name((atlas_type)node->type));
  ops_shape_text(&node->shape, text + used, bytes - used);
  return text;
}

/* The decimal point that printf prints depends on the locale, and may be several bytes. */
const char *ops_number_text(double number, char text[OPS_NUMBER_BYTES]) {
  char local[OPS_NUMBER_BYTES];
  size_t used = 0;
  snprintf(local, sizeof local, "%.9g", number);
  for (const char *at = local; *at != '\0'; at++) {
    int is_plain = *at == '+' || *at == '-' || (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z');
    if (is_plain) text[used++] = *at;
    else if (used > 0 && text[used - 1] != '.') text[used++] = '.';
  }
  text[used] = '\0';
  return text;
}

/* ---- types ------------------------------------------------------------------------------------------------------- */

static atlas_type wider(atlas_type a, atlas_type b) { return atlas_bytes(a) >= atlas_bytes(b) ? a : b; }

/* For a signed and an unsigned integer: the smallest signed type that holds both. */
static atlas_type promote_signs(atlas_type sint, atlas_type uint) {
  if (atlas_bytes(sint) > atlas_bytes(uint)) return sint;
  switch (uint) {
    case ATLAS_u8: return ATLAS_i16;
    case ATLAS_u16: return ATLAS_i32;
    case ATLAS_u32: return ATLAS_i64;
    default: return ATLAS_NONE;
  }
}

int ops_kind_rank(atlas_type type) {
  if (type == ATLAS_bool) return 0;
  return atlas_is_integer(type) ? 1 : atlas_is_float(type) ? 2 : 3;
}

atlas_type ops_promote(atlas_type a, atlas_type b) {
  if (a == b) return a;
  int left = ops_kind_rank(a), right = ops_kind_rank(b);
  if (left == 3 || right == 3) return ATLAS_NONE;
  if (left != right) return left > right ? a : b;
  if (left == 2) return atlas_bytes(a) == 2 && atlas_bytes(b) == 2 ? ATLAS_f32 : wider(a, b);
  if (atlas_kind(a) == atlas_kind(b)) return wider(a, b);
  return atlas_kind(a) == ATLAS_KIND_SINT ? promote_signs(a, b) : promote_signs(b, a);
}

atlas_type hg_promote_types(atlas_type a, atlas_type b) {
  return atlas_bytes(a) > 0 && atlas_bytes(b) > 0 ? ops_promote(a, b) : ATLAS_NONE;
}

const char *ops_promote_rule(atlas_type a, atlas_type b) {
  if (ops_kind_rank(a) == 3 || ops_kind_rank(b) == 3) return "8-bit floats are storage only";
  return "no integer type holds both";
}

int ops_type_is_of(atlas_type type, const char *types, size_t length) {
  for (size_t i = 0; i < length;) {
    size_t end = i;
    while (end < length && types[end] != ' ') end++;
    if (end - i == 3 && memcmp(types + i, "any", 3) == 0) return 1;
    if (end - i == 4 && memcmp(types + i, "bool", 4) == 0 && type == ATLAS_bool) return 1;
    int is_number = end - i == 6 && memcmp(types + i, "number", 6) == 0;
    if ((is_number || (end - i == 7 && memcmp(types + i, "integer", 7) == 0)) && atlas_is_integer(type)) return 1;
    if ((is_number || (end - i == 5 && memcmp(types + i, "float", 5) == 0)) && atlas_is_float(type)) return 1;
    i = end + 1;
  }
  return 0;
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

int ops_same_shape(const ops_shape *a, const ops_shape *b) {
  if (a->rank != b->rank) return 0;
  for (uint32_t i = 0; i < a->rank; i++)
    if (a->size[i] != b->size[i]) return 0;
  return 1;
}

int ops_broadcast_shapes(const ops_shape *a, const ops_shape *b, ops_shape *out) {
  const ops_shape *longer = a->rank >= b->rank ? a : b, *shorter = a->rank >= b->rank ? b : a;
  ops_shape result = *longer;
  uint32_t missing = longer->rank - shorter->rank;
  for (uint32_t i = 0; i < shorter->rank; i++) {
    uint64_t own = longer->size[missing + i], other = shorter->size[i];
    if (own != other && own != 1 && other != 1) return 0;
    result.size[missing + i] = own == 1 ? other : own;
  }
  *out = result;
  return 1;
}

int ops_is_countable(const ops_shape *shape) {
  static const int64_t nowhere[HG_MAX_RANK];
  int64_t lowest;
  uint64_t extent;
  return ops_measure(shape->rank, shape->size, nowhere, &lowest, &extent) == NULL;
}

/* Only if an operand is large is the product checked by a division, which takes long. */
static int product_passes(uint64_t a, uint64_t b, uint64_t most, int half_of_its_bits) {
  return (a | b) >> half_of_its_bits != 0 && b != 0 && a > most / b;
}

static const char *measure_any(uint32_t rank, const uint64_t *shape, const int64_t *stride, int64_t *lowest,
                               uint64_t *extent) {
  uint64_t count = 1, beyond = 0, below = 0;
  int is_empty = 0;
  *lowest = 0;
  *extent = 0;
  if (rank > HG_MAX_RANK) return "it has a rank beyond 8";
  for (uint32_t d = 0; d < rank; d++) {
    if (shape[d] > INT64_MAX) return "a size is below 0";
    is_empty |= shape[d] == 0;
  }
  for (uint32_t d = 0; d < rank && !is_empty; d++) {
    uint64_t steps = shape[d] - 1, step = stride[d] < 0 ? 0 - (uint64_t)stride[d] : (uint64_t)stride[d];
    if (product_passes(count, shape[d], OPS_MAX_ELEMENTS, 20)) return "it has more than 2^40 elements";
    if (product_passes(step, steps, OPS_MOST_REACH, 28)) return "its elements lie further apart than in any memory";
    count *= shape[d];
    if (stride[d] < 0) below += step * steps;
    else beyond += step * steps;
  }
  if (below + beyond > OPS_MOST_REACH) return "its elements lie further apart than in any memory";
  *lowest = -(int64_t)below;
  *extent = is_empty ? 0 : below + beyond + 1;
  return NULL;
}

const char *ops_measure(uint32_t rank, const uint64_t *shape, const int64_t *stride, int64_t *lowest,
                        uint64_t *extent) {
  uint64_t all_steps = 0, all_strides = 0, beyond = 0, below = 0;
  if (rank > HG_MAX_RANK) return measure_any(rank, shape, stride, lowest, extent);
  for (uint32_t d = 0; d < rank; d++) {
    uint64_t steps = shape[d] - 1, reach = (uint64_t)stride[d] * steps; /* size 0 gives a huge number of steps */
    all_steps |= steps;
    all_strides |= ops_magnitude(stride[d]);
    if (stride[d] < 0) below += reach;
    else beyond += reach;
  }
  if (!ops_is_small(rank, all_steps, all_strides)) return measure_any(rank, shape, stride, lowest, extent);
  *lowest = (int64_t)below;
  *extent = beyond - below + 1;
  return NULL;
}

int ops_axis(int64_t axis, uint32_t rank) {
  if (axis < 0) axis += (int64_t)rank;
  return axis >= 0 && axis < (int64_t)rank ? (int)axis : -1;
}

int ops_slice_count(uint64_t size, int64_t start, int64_t stop, int64_t step, uint64_t *count) {
  *count = 0;
  if (step == 0 || step == INT64_MIN || size > INT64_MAX) return 0;
  int64_t end = (int64_t)size, stride = step > 0 ? step : -step;
  int is_empty = step > 0 ? stop <= start : stop >= start;
  if (start < (is_empty ? -1 : 0) || start > end || stop < -1 || stop > end) return 0;
  if (is_empty) return 1;
  if (step < 0 && start >= end) return 0;
  int64_t span = step > 0 ? stop - start : start - stop;
  *count = (uint64_t)((span - 1) / stride + 1);
  return 1;
}
