/* tensor_create.c - tensors with a buffer of their own. */
#include "base/error.h"
#include "hologram/ops.h"

#include <string.h>

hg_status hg_tensor_create(hg_executor *executor, atlas_type type, uint32_t rank, const uint64_t *shape,
                           hg_tensor *out) {
  if (out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_create: 'out' is NULL");
  memset(out, 0, sizeof *out);
  if (executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_create: the executor is NULL");
  if (type == ATLAS_NONE || type >= ATLAS_TYPE_COUNT)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_create: there is no type with the number %d", (int)type);
  if (rank > HG_MAX_RANK || (shape == NULL && rank > 0))
    return hg_fail(HG_INVALID_ARGUMENT, "hg_tensor_create: a shape of rank %u %s", (unsigned)rank,
                   rank > HG_MAX_RANK ? "has too many sizes; the highest rank is 8" : "is needed, and 'shape' is NULL");
  hg_tensor tensor = hg_tensor_of(NULL, type, rank, shape);
  int64_t lowest;
  uint64_t count;
  HG_TRY(hg_tensor_extent(&tensor, &lowest, &count));
  HG_TRY(hg_buffer_create(executor, NULL, count * (atlas_type_bits(type) / 8), &tensor.buffer));
  *out = tensor;
  return HG_OK;
}
