/* make_sort.c - rows of the kind sort: sorted elements, the first of them, and their old indices. */
#include "ops/graph/compute.h"
#include "ops/graph/ops_tuning.h"

static atlas_type type_of(const hg_computation *c, value_id value) { return (atlas_type)ops_at(c, value)->type; }

/* x in order, and where each element was. */
static int sort_all(hg_computation *c, value_id x, uint32_t axis, int is_descending, value_id *results) {
  ops_shape shape = ops_at(c, x)->shape;
  if (shape.size[axis] < 2 || ops_count(&shape) == 0) {
    results[0] = x, results[1] = ops_full(c, ATLAS_i64, 0, &shape);
  } else {
    results[0] = ops_add(c, &(ops_node){.kind = OPS_SORT, .type = ops_at(c, x)->type, .axis = (uint8_t)axis,
                                        .bits = is_descending != 0, .input = {x}, .shape = shape});
    results[1] = ops_result_of(c, results[0], 1, ATLAS_i64);
  }
  return results[0] != 0 && results[1] != 0;
}

/* The first k in order. Of many that are a large part of a row all are sorted. */
static int select_top(hg_computation *c, value_id x, uint32_t axis, uint64_t k, int is_largest, value_id *results) {
  ops_shape all = ops_at(c, x)->shape, shape = all;
  uint64_t size = all.size[axis];
  shape.size[axis] = k;
  if (ops_count(&shape) == 0) {
    results[0] = ops_full(c, type_of(c, x), 0, &shape), results[1] = ops_full(c, ATLAS_i64, 0, &shape);
  } else if (size < 2 || k > OPS_TOPK_MOST || (size > OPS_TOPK_SHORT && k > size / OPS_TOPK_SHARE)) {
    const int64_t low[HG_MAX_RANK] = {0};
    if (!sort_all(c, x, axis, is_largest, results)) return 0;
    for (int i = 0; i < 2; i++) results[i] = ops_part_of(c, results[i], low, &shape);
  } else {
    results[0] = ops_add(c, &(ops_node){.kind = OPS_TOP, .type = ops_at(c, x)->type, .axis = (uint8_t)axis,
                                        .bits = (uint64_t)is_largest, .input = {x}, .shape = shape});
    results[1] = ops_result_of(c, results[0], 1, ATLAS_i64);
  }
  return results[0] != 0 && results[1] != 0;
}

/* The order of several keys: they are sorted by one after the other, the one that counts most last. */
static value_id order_of(const ops_request *request, uint32_t axis) {
  hg_computation *c = request->c;
  ops_shape shape = ops_at(c, request->inputs[0])->shape;
  value_id places = 0;
  for (uint32_t i = 0; i < request->input_count; i++) {
    if (!ops_same_shape(&ops_at(c, request->inputs[i])->shape, &shape))
      return ops_refuse(request, HG_INVALID_ARGUMENT, "%s and %s: keys have one shape", OPS_TEXT(c, request->inputs[0]),
                        OPS_TEXT(c, request->inputs[i]));
    value_id x = request->inputs[i], results[2];
    if (places != 0)
      x = ops_add(c, &(ops_node){.kind = OPS_GATHER, .type = ops_at(c, x)->type, .bounds = OPS_CLAMP,
                                 .axis = (uint8_t)axis, .input = {x, places}, .shape = shape});
    if (x == 0 || !sort_all(c, x, axis, 0, results)) return 0;
    if (places == 0 || ops_count(&shape) == 0) places = results[1];
    else
      places = ops_add(c, &(ops_node){.kind = OPS_GATHER, .type = ATLAS_i64, .bounds = OPS_CLAMP, .axis = (uint8_t)axis,
                                      .input = {places, results[1]}, .shape = shape});
  }
  return places;
}

/* The first k of top_k, argtop_k. */
static int make_top(const ops_request *request, uint32_t axis, value_id *results) {
  value_id x = request->inputs[0];
  int64_t k = request->arguments[0].integers[0];
  uint64_t size = ops_at(request->c, x)->shape.size[axis];
  if (k >= 0 && (uint64_t)k <= size)
    return select_top(request->c, x, axis, (uint64_t)k, request->arguments[2].integers[0] != 0, results);
  ops_refuse(request, HG_INVALID_ARGUMENT, "k is %lld; it has to lie from 0 to %llu, the elements of %s along axis %u",
             (long long)k, (unsigned long long)size, OPS_TEXT(request->c, x), (unsigned)axis);
  return 0;
}

uint32_t ops_make_sort(const ops_request *request, value_id *results) {
  enum { MOST_BITS = 31 };
  hg_computation *c = request->c;
  hg_op op = (hg_op)request->row->op;
  if (op == HG_OP_searchsorted) return (results[0] = ops_make_search(request)) != 0;
  value_id x = request->inputs[0];
  ops_shape shape = ops_at(c, x)->shape;
  int is_top = op == HG_OP_top_k || op == HG_OP_argtop_k;
  int axis = ops_axis_of(request, &request->arguments[is_top], shape.rank);
  if (axis < 0) return 0;
  if (shape.size[axis] > UINT64_C(1) << MOST_BITS)
    return ops_refuse(request, HG_UNSUPPORTED, "x is %s: along an axis it takes at most 2^%d elements; sort parts",
                      OPS_TEXT(c, x), MOST_BITS);
  if (op == HG_OP_lexsort) return (results[0] = order_of(request, (uint32_t)axis)) != 0;
  if (!(is_top ? make_top(request, (uint32_t)axis, results)
               : sort_all(c, x, (uint32_t)axis, request->arguments[1].integers[0] != 0, results)))
    return 0;
  if (op == HG_OP_sort_with_places || op == HG_OP_top_k) return 2;
  results[0] = results[1];
  return 1;
}
