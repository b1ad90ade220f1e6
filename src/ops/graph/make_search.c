/* make_search.c - searchsorted: where values would stand among sorted elements, by halving (Knuth, "The Art of Computer
 * Programming", volume 3, 6.2.1), without a branch: a position grows by powers of two, as long as what stands before it
 * comes before the value. */
#include "ops/graph/compute.h"

typedef struct search {
  hg_computation *c;
  value_id sorted, values;
  ops_shape shape; /* of values, and of all that is computed */
  atlas_type index;
  uint64_t size;
  int is_right;
} search;

/* 1 where an element comes before the value; on the right side, where it equals it, too. NaN is the greatest. */
static value_id comes_before(const search *s, value_id element) {
  hg_computation *c = s->c;
  value_id before = ops_binary(c, s->is_right ? ATLAS_OP_set_le : ATLAS_OP_set_lt, element, s->values);
  if (!atlas_is_float((atlas_type)ops_at(c, s->values)->type)) return before;
  value_id is_greatest = ops_binary(c, ATLAS_OP_set_ne, s->values, s->values);
  if (!s->is_right)
    is_greatest = ops_binary(c, ATLAS_OP_pand, is_greatest, ops_binary(c, ATLAS_OP_set_eq, element, element));
  return ops_binary(c, ATLAS_OP_por, before, is_greatest);
}

/* The position, or the one that is `step` further. */
static value_id go_on(const search *s, value_id position, uint64_t step) {
  hg_computation *c = s->c;
  value_id next = ops_binary(c, ATLAS_OP_add, position, ops_full(c, s->index, step, &s->shape));
  value_id last = ops_binary(c, ATLAS_OP_add, position, ops_full(c, s->index, step - 1, &s->shape));
  if (next == 0 || last == 0) return 0;
  value_id element = ops_add(c, &(ops_node){.kind = OPS_GATHER, .type = ops_at(c, s->sorted)->type, .bounds = OPS_CLAMP,
                                            .axis = (uint8_t)(s->shape.rank - 1), .input = {s->sorted, last},
                                            .shape = s->shape});
  if (element == 0) return 0;
  value_id is_there = ops_binary(c, ATLAS_OP_set_le, next, ops_full(c, s->index, s->size, &s->shape));
  value_id goes = ops_binary(c, ATLAS_OP_pand, is_there, comes_before(s, element));
  return ops_pointwise(c, ATLAS_OP_sel, (value_id[]){goes, next, position}, 3);
}

/* Bools are compared as numbers. */
static value_id numbers(hg_computation *c, value_id x) {
  return ops_at(c, x)->type == ATLAS_bool ? ops_cast(c, x, ATLAS_u8) : x;
}

/* x in the order that a sorter says. */
static value_id by_sorter(const ops_request *request, value_id x, value_id sorter) {
  hg_computation *c = request->c;
  ops_shape shape = ops_at(c, x)->shape;
  if (!ops_same_shape(&shape, &ops_at(c, sorter)->shape))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "x is %s, sorter %s: it has a number for each element of x",
                      OPS_TEXT(c, x), OPS_TEXT(c, sorter));
  return ops_add(c, &(ops_node){.kind = OPS_GATHER, .type = ops_at(c, x)->type, .axis = (uint8_t)(shape.rank - 1),
                                .input = {x, sorter}, .shape = shape});
}

value_id ops_make_search(const ops_request *request) {
  hg_computation *c = request->c;
  value_id x = request->inputs[0], values = request->inputs[1];
  ops_shape rows = ops_at(c, x)->shape, given = ops_at(c, values)->shape;
  search s = {.c = c, .shape = given, .is_right = request->arguments[0].integers[0] != 0};
  uint32_t last = rows.rank - 1;
  int is_batch = rows.rank > 1 && rows.rank == given.rank;
  for (uint32_t i = 0; is_batch && i < last; i++) is_batch = rows.size[i] == given.size[i];
  if (rows.rank != 1 && !is_batch)
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "x is %s, values are %s: x has one axis, or all but the last are those of values", OPS_TEXT(c, x),
                      OPS_TEXT(c, values));
  if (rows.rank == 1) s.shape = (ops_shape){.rank = 1, .size = {ops_count(&given)}};
  s.size = rows.size[last];
  s.index = s.size >> 31 == 0 ? ATLAS_i32 : ATLAS_i64;
  if (s.size == 0 || ops_count(&given) == 0) return ops_full(c, ATLAS_i64, 0, &given);
  if (request->inputs[2] != 0) x = by_sorter(request, x, request->inputs[2]);
  if (x == 0) return 0;
  value_id both[2] = {numbers(c, x), numbers(c, values)};
  if (both[0] == 0 || both[1] == 0 || !ops_agree_types(request, both, 2)) return 0;
  s.sorted = both[0];
  s.values = ops_reshape(c, both[1], &s.shape);
  value_id position = ops_full(c, s.index, 0, &s.shape);
  if (s.sorted == 0 || s.values == 0) return 0;
  uint64_t step = 1;
  while (step <= s.size / 2) step *= 2;
  for (; step > 0 && position != 0; step /= 2) position = go_on(&s, position, step);
  return ops_reshape(c, ops_cast(c, position, ATLAS_i64), &given);
}
