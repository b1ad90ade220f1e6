/* contraction.c - a contraction as a node, or as several nodes if its tiles could not be numbered in 32 bits. */
#include "ops/graph/infer.h"

enum { AT_BATCH, AT_M, AT_N, AT_K, AXES, WHOLE = AXES };

static uint64_t tiles_of(uint64_t count) {
  enum { SIDE = 32 }; /* rows and columns of the smallest tile */
  return count <= SIDE ? 1 : count / SIDE + (count % SIDE != 0);
}

/* The axis to cut; WHOLE: none. A matrix of the result has at most 2^40 elements, so its tiles fit 32 bits. */
static uint32_t axis_to_cut(const uint64_t sizes[AXES]) {
  uint32_t axis = AXES;
  while (axis-- > 0)
    if (sizes[axis] > INT32_MAX) return axis;
  return sizes[AT_BATCH] > INT32_MAX / tiles_of(sizes[AT_M]) / tiles_of(sizes[AT_N]) ? AT_BATCH : WHOLE;
}

static value_id part(hg_computation *c, value_id value, uint32_t axis, uint64_t start, uint64_t count) {
  ops_shape shape = ops_at(c, value)->shape;
  int64_t low[HG_MAX_RANK] = {0};
  low[axis] = (int64_t)start;
  shape.size[axis] = count;
  return ops_part_of(c, value, low, &shape);
}

/* Cuts along an axis. The axis that products are summed over is cut where order C folds last: at the greatest power of
 * two below its size. */
static value_id contract_in_two(hg_computation *c, value_id a, value_id b, atlas_type type, uint32_t axis,
                                uint64_t size) {
  static const uint8_t of_a[AXES] = {[AT_BATCH] = 0, [AT_M] = 1, [AT_K] = 2};
  static const uint8_t of_b[AXES] = {[AT_BATCH] = 0, [AT_N] = 2, [AT_K] = 1};
  atlas_type sum = axis == AT_K && (type == ATLAS_f16 || type == ATLAS_bf16) ? ATLAS_f32 : type;
  value_id halves[2];
  uint64_t left = 1;
  while (2 * left < size) left *= 2;
  for (uint32_t i = 0; i < 2; i++) {
    uint64_t start = i == 0 ? 0 : left, count = i == 0 ? left : size - left;
    value_id own_a = axis == AT_N ? a : part(c, a, of_a[axis], start, count);
    value_id own_b = axis == AT_M ? b : part(c, b, of_b[axis], start, count);
    if ((halves[i] = ops_contract(c, own_a, own_b, sum)) == 0) return 0;
  }
  return axis == AT_K ? ops_cast(c, ops_pointwise(c, ATLAS_OP_add, halves, 2), type)
                      : ops_concatenate(c, halves[0], halves[1], axis);
}

value_id ops_contract(hg_computation *c, value_id a, value_id b, atlas_type type) {
  if (a == 0 || b == 0) return 0;
  const ops_shape *left = &ops_at(c, a)->shape, *right = &ops_at(c, b)->shape;
  const uint64_t sizes[AXES] = {left->size[0], left->size[1], right->size[2], left->size[2]};
  ops_node node = {.kind = OPS_CONTRACT, .type = (uint8_t)type, .input = {a, b},
                   .shape = {.rank = 3, .size = {sizes[AT_BATCH], sizes[AT_M], sizes[AT_N]}}};
  if (!ops_is_countable(&node.shape))
    return ops_failed(c, HG_INVALID_ARGUMENT, "a product of shape [%llu, %llu, %llu] has more than 2^40 elements",
                      (unsigned long long)sizes[AT_BATCH], (unsigned long long)sizes[AT_M],
                      (unsigned long long)sizes[AT_N]);
  uint32_t axis = axis_to_cut(sizes);
  if (axis != WHOLE) return contract_in_two(c, a, b, type, axis, sizes[axis]);
  node.numerics = ops_numerics_for((atlas_type)ops_at(c, a)->type, c->numerics);
  return ops_add(c, &node);
}
