/* tensor.c - views of tensors: the same elements by other shapes and strides. */
#include "ops/graph/infer.h"

static ops_shape shape_of(const hg_tensor *tensor) {
  ops_shape shape = {.rank = tensor->rank};
  memcpy(shape.size, tensor->shape, sizeof shape.size);
  return shape;
}

static int has_offset_in_reach(const hg_tensor *tensor) {
  return (uint64_t)tensor->offset + OPS_MOST_REACH <= 2 * OPS_MOST_REACH;
}

HG_RARE static hg_status fail_to_measure(const char *function, const hg_tensor *tensor, const char *why) {
  if (why == NULL) why = "its offset leads beyond any memory";
  if (tensor->rank > HG_MAX_RANK)
    return hg_fail(HG_INVALID_ARGUMENT, "%s: the tensor has rank %u; the highest is %d", function,
                   (unsigned)tensor->rank, HG_MAX_RANK);
  ops_shape shape = shape_of(tensor);
  return hg_fail(HG_INVALID_ARGUMENT, "%s: there is no tensor of shape %s with these strides: %s", function,
                 OPS_SHAPE(&shape), why);
}

/* Every function here first checks the tensor that it is given, so that no arithmetic on its sizes, strides and offset
 * overflows. For nearly all tensors a quick test suffices; measuring them takes longer than making a view. */
static hg_status check(const char *function, const hg_tensor *tensor, const hg_tensor *out) {
  int64_t lowest;
  uint64_t extent, sizes = 0, strides = 0;
  if (tensor == NULL || out == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "%s: '%s' is NULL", function, tensor == NULL ? "tensor" : "out");
  if (tensor->rank > HG_MAX_RANK) return fail_to_measure(function, tensor, NULL);
  for (uint32_t i = 0; i < tensor->rank; i++) {
    sizes |= tensor->shape[i];
    strides |= ops_magnitude(tensor->stride[i]);
  }
  const char *why = NULL;
  if (!ops_is_small(tensor->rank, sizes, strides))
    why = ops_measure(tensor->rank, tensor->shape, tensor->stride, &lowest, &extent);
  return why == NULL && has_offset_in_reach(tensor) ? HG_OK : fail_to_measure(function, tensor, why);
}

static hg_status check_shape(const char *function, uint32_t rank, const uint64_t *shape) {
  if (shape == NULL && rank > 0) return hg_fail(HG_INVALID_ARGUMENT, "%s: 'shape' is NULL", function);
  if (rank > HG_MAX_RANK)
    return hg_fail(HG_INVALID_ARGUMENT, "%s: rank %u is asked for; the highest is %d", function, (unsigned)rank,
                   HG_MAX_RANK);
  return HG_OK;
}

static void dense_strides(hg_tensor *tensor) {
  uint64_t stride = 1;
  for (uint32_t i = tensor->rank; i-- > 0;) {
    tensor->stride[i] = (int64_t)stride;
    stride *= tensor->shape[i];
  }
}

hg_tensor hg_tensor_of(hg_buffer *buffer, atlas_type type, uint32_t rank, const uint64_t *shape) {
  hg_tensor tensor = {.buffer = buffer, .type = (uint32_t)type, .rank = rank};
  if (shape == NULL && rank > 0) tensor.rank = UINT32_MAX;
  if (tensor.rank > HG_MAX_RANK) return tensor; /* the function that receives it refuses it */
  for (uint32_t i = 0; i < rank; i++) tensor.shape[i] = shape[i];
  dense_strides(&tensor);
  return tensor;
}

/* 0 if any size is 0, however large the others are. */
static uint64_t count_of_many(const hg_tensor *tensor) {
  uint64_t count = 1;
  int is_beyond = 0;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    uint64_t size = tensor->shape[i];
    if (size == 0) return 0;
    is_beyond |= count > UINT64_MAX / size;
    count *= size;
  }
  return is_beyond ? UINT64_MAX : count;
}

uint64_t hg_tensor_count(const hg_tensor *tensor) {
  static const uint8_t bits_of_a_size[HG_MAX_RANK + 1] = {63, 63, 32, 21, 16, 12, 10, 9, 8};
  uint64_t count = 1, all = 0;
  if (tensor->rank == 1) return tensor->shape[0]; /* the most frequent case */
  if (tensor->rank > HG_MAX_RANK) return 0;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    all |= tensor->shape[i];
    count *= tensor->shape[i];
  }
  return all >> bits_of_a_size[tensor->rank] == 0 ? count : count_of_many(tensor);
}

hg_status hg_tensor_extent(const hg_tensor *tensor, int64_t *lowest, uint64_t *count) {
  if (tensor == NULL || lowest == NULL || count == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_extent: '%s' is NULL",
                   tensor == NULL   ? "tensor"
                   : lowest == NULL ? "lowest"
                                    : "count");
  const char *why = ops_measure(tensor->rank, tensor->shape, tensor->stride, lowest, count);
  if (why == NULL && has_offset_in_reach(tensor)) return HG_OK;
  *lowest = 0;
  *count = 0;
  return fail_to_measure("hg_tensor_extent", tensor, why);
}

hg_status hg_tensor_permute(const hg_tensor *tensor, const int64_t *axes, hg_tensor *out) {
  HG_TRY(check("hg_tensor_permute", tensor, out));
  if (axes == NULL && tensor->rank > 0) return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_permute: 'axes' is NULL");
  hg_tensor result = *tensor;
  uint32_t seen = 0;
  for (uint32_t i = 0; i < tensor->rank; i++) {
    int axis = ops_axis(axes[i], tensor->rank);
    if (axis < 0 || (seen >> axis & 1) != 0) {
      ops_shape shape = shape_of(tensor);
      return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_permute: axes[%u] is %lld; every axis of %s must stand there once",
                     (unsigned)i, (long long)axes[i], OPS_SHAPE(&shape));
    }
    seen |= 1u << axis;
    result.shape[i] = tensor->shape[axis];
    result.stride[i] = tensor->stride[axis];
  }
  *out = result;
  return HG_OK;
}

hg_status hg_tensor_slice(const hg_tensor *tensor, int64_t axis, int64_t start, int64_t stop, int64_t step,
                          hg_tensor *out) {
  HG_TRY(check("hg_tensor_slice", tensor, out));
  int at = ops_axis(axis, tensor->rank);
  if (at < 0) {
    ops_shape shape = shape_of(tensor);
    return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_slice: %s has no axis %lld", OPS_SHAPE(&shape), (long long)axis);
  }
  uint64_t count = 0;
  if (!ops_slice_count(tensor->shape[at], start, stop, step, &count))
    return hg_fail(
        HG_INVALID_ARGUMENT,
        "hg_tensor_slice: elements %lld to %lld by %lld of an axis of %llu; steps up need 0 <= start <= stop "
        "<= size, steps down -1 <= stop <= start < size, and 0 is no step",
        (long long)start, (long long)stop, (long long)step, (unsigned long long)tensor->shape[at]);
  hg_tensor result = *tensor;
  if (count > 0) result.offset += start * tensor->stride[at];
  result.shape[at] = count;
  if (count > 1) result.stride[at] = step * tensor->stride[at]; /* otherwise no step is taken */
  *out = result;
  return HG_OK;
}

hg_status hg_tensor_broadcast(const hg_tensor *tensor, uint32_t rank, const uint64_t *shape, hg_tensor *out) {
  HG_TRY(check("hg_tensor_broadcast", tensor, out));
  HG_TRY(check_shape("hg_tensor_broadcast", rank, shape));
  ops_shape own = shape_of(tensor), target = {.rank = rank}, both;
  if (rank > 0) memcpy(target.size, shape, rank * sizeof *shape);
  if (!ops_broadcast_shapes(&own, &target, &both) || !ops_same_shape(&both, &target))
    return hg_fail(HG_INVALID_ARGUMENT,
                   "hg_tensor_broadcast: %s does not broadcast to %s: counted from the last, sizes must be equal or 1",
                   OPS_SHAPE(&own), OPS_SHAPE(&target));
  hg_tensor result = *tensor;
  uint32_t missing = rank - own.rank;
  result.rank = rank;
  for (uint32_t i = 0; i < rank; i++) {
    int is_own = i >= missing && own.size[i - missing] == target.size[i];
    result.stride[i] = is_own ? tensor->stride[i - missing] : 0;
    result.shape[i] = target.size[i];
  }
  *out = result;
  return HG_OK;
}

/* Cuts both shapes into the smallest runs of axes with the same number of elements. Within a run of the old shape, each
 * axis must continue where the next one ends. Axes of one element are ignored. 0: strides cannot express it. */
static int reshape_strides(const hg_tensor *tensor, hg_tensor *result) {
  uint32_t old_end = 0, new_end = 0;
  while (new_end < result->rank) {
    uint32_t old_begin = old_end, new_begin = new_end;
    uint64_t old_count = old_end < tensor->rank ? tensor->shape[old_end++] : 1, new_count = result->shape[new_end++];
    while (old_count != new_count) {
      if (old_count < new_count && old_end < tensor->rank) old_count *= tensor->shape[old_end++];
      else if (new_end < result->rank) new_count *= result->shape[new_end++];
      else return 0; /* not reached if both have the same number of elements */
    }
    int64_t stride = 1, run = 0; /* run: elements of the old axes seen so far in this run, times the innermost stride */
    int seen = 0;
    for (uint32_t i = old_end; i-- > old_begin;) {
      if (tensor->shape[i] == 1) continue;
      if (seen && tensor->stride[i] != run) return 0;
      if (!seen) stride = tensor->stride[i], seen = 1;
      run = tensor->stride[i] * (int64_t)tensor->shape[i];
    }
    for (uint32_t i = new_end; i-- > new_begin;) {
      result->stride[i] = stride;
      stride *= (int64_t)result->shape[i];
    }
  }
  return 1;
}

static hg_status fail_to_reshape(hg_status status, const hg_tensor *tensor, const hg_tensor *result, const char *form) {
  ops_shape own = shape_of(tensor), target = shape_of(result);
  return hg_fail(status, form, OPS_SHAPE(&own), OPS_SHAPE(&target));
}

hg_status hg_tensor_reshape(const hg_tensor *tensor, uint32_t rank, const uint64_t *shape, hg_tensor *out) {
  HG_TRY(check("hg_tensor_reshape", tensor, out));
  HG_TRY(check_shape("hg_tensor_reshape", rank, shape));
  uint64_t count = hg_tensor_count(tensor);
  hg_tensor result = *tensor;
  int has_size_below_0 = 0;
  result.rank = rank;
  for (uint32_t i = 0; i < rank; i++) {
    result.shape[i] = shape[i];
    has_size_below_0 |= shape[i] > INT64_MAX;
  }
  if (has_size_below_0 || hg_tensor_count(&result) != count)
    return fail_to_reshape(HG_INVALID_ARGUMENT, tensor, &result,
                           "hg_tensor_reshape: %s has another number of elements than %s");
  if (count == 0) dense_strides(&result);
  else if (!reshape_strides(tensor, &result))
    return fail_to_reshape(
        HG_UNSUPPORTED, tensor, &result,
        "hg_tensor_reshape: %s with these strides is no view of shape %s: copy it by the operation reshape");
  *out = result;
  return HG_OK;
}
