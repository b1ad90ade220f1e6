/* make_select.c - rows of the kind select: elements where a mask holds, and what is counted for them. */
#include "ops/graph/compute.h"

/* All elements in C order. */
static value_id as_row(hg_computation *c, value_id value) {
  if (value == 0) return 0;
  ops_shape row = {.rank = 1, .size = {ops_count(&ops_at(c, value)->shape)}};
  return ops_reshape(c, value, &row);
}

/* Zeros around a row. */
static value_id amid(hg_computation *c, value_id row, uint64_t before, uint64_t size) {
  if (row == 0 || ops_at(c, row)->shape.size[0] == size) return row;
  ops_node node = {.kind = OPS_PAD, .type = ops_at(c, row)->type, .shape = {.rank = 1, .size = {size}}};
  node.view.start[0] = (int64_t)before;
  node.input[0] = row;
  node.input[1] = ops_constant(c, (atlas_type)node.type, 0);
  return ops_add(c, &node);
}

static uint64_t parts_of(uint64_t count) { return (count + OPS_SELECT_PART - 1) / OPS_SELECT_PART; }

static value_id ends_of(hg_computation *c, value_id mask) {
  uint64_t count = ops_at(c, mask)->shape.size[0], parts = parts_of(count);
  ops_shape each = {.rank = 2, .size = {parts, OPS_SELECT_PART}}, ends = {.rank = 1, .size = {parts + 1}};
  if (count == 0) return ops_full(c, ATLAS_i64, 0, &ends);
  value_id held = ops_cast(c, ops_reshape(c, amid(c, mask, 0, parts * OPS_SELECT_PART), &each), ATLAS_u32);
  value_id counts = ops_cast(c, ops_reduce_over(c, OPS_SUM, held, 1u << 1, 0), ATLAS_i64);
  return ops_add(c, &(ops_node){.kind = OPS_SCAN, .type = ATLAS_i64, .input_count = 1, .reduce = OPS_SUM,
                                .bits = HG_OP_cumulative_sum, .input = {amid(c, counts, 1, parts + 1)}, .shape = ends});
}

/* A row, with zeros behind its first elements, whose number is the last of the ends. */
static value_id then_zeros(hg_computation *c, value_id row, value_id ends) {
  if (row == 0) return 0;
  ops_shape shape = ops_at(c, row)->shape, one = {.rank = 1, .size = {1}};
  int64_t last[HG_MAX_RANK] = {(int64_t)ops_at(c, ends)->shape.size[0] - 1};
  value_id count = ops_broadcast(c, ops_part_of(c, ends, last, &one), &shape);
  value_id is_there = ops_binary(c, ATLAS_OP_set_lt, ops_coordinate(c, &shape, 0), count);
  value_id sides[3] = {is_there, row, ops_full(c, (atlas_type)ops_at(c, row)->type, 0, &shape)};
  return ops_pointwise(c, ATLAS_OP_sel, sides, 3);
}

static value_id take_where(const ops_request *request) {
  hg_computation *c = request->c;
  value_id pair[2] = {request->inputs[0], request->inputs[1]}, ends = request->inputs[2];
  int64_t asked = request->arguments[0].integers[0];
  if (asked < 0)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "size is %lld; a result has 0 elements or more", (long long)asked);
  if (!ops_agree_shapes(request, pair, 2)) return 0;
  value_id x = as_row(c, pair[0]), mask = as_row(c, pair[1]);
  if (x == 0 || mask == 0) return 0;
  uint64_t size = (uint64_t)asked, count = ops_at(c, mask)->shape.size[0], own = size < count ? size : count;
  ops_shape result = {.rank = 1, .size = {size}};
  atlas_type type = (atlas_type)ops_at(c, x)->type;
  if (!ops_is_countable(&result))
    return ops_refuse(request, HG_INVALID_ARGUMENT, "a result of shape %s has more than 2^40 elements",
                      OPS_SHAPE(&result));
  if (ends != 0 && (ops_at(c, ends)->shape.rank != 1 || ops_at(c, ends)->shape.size[0] != parts_of(count) + 1))
    return ops_refuse(request, HG_INVALID_ARGUMENT,
                      "ends is %s and not what mask_ends makes of a mask of %llu elements", OPS_TEXT(c, ends),
                      (unsigned long long)count);
  if (ends != 0 && size > count)
    return ops_refuse(request, HG_INVALID_ARGUMENT, "size is %llu, and the mask has %llu elements",
                      (unsigned long long)size, (unsigned long long)count);
  if (own == 0) return ops_full(c, type, 0, &result);
  int is_known = ends != 0;
  ends = is_known ? ops_cast(c, ends, ATLAS_i64) : ends_of(c, mask);
  if (ends == 0) return 0;
  value_id made = ops_add(c, &(ops_node){.kind = OPS_SELECT, .type = (uint8_t)type, .bits = HG_OP_take_where,
                                         .reduce = (uint8_t)is_known, .input = {x, mask, ends},
                                         .shape = {.rank = 1, .size = {own}}});
  return amid(c, is_known ? made : then_zeros(c, made, ends), 0, size);
}

value_id ops_make_select(const ops_request *request) {
  hg_computation *c = request->c;
  if (request->row->op == HG_OP_take_where) return take_where(request);
  value_id mask = as_row(c, request->inputs[0]);
  return mask != 0 ? ends_of(c, mask) : 0;
}
