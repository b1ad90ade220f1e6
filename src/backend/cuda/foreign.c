/* foreign.c - memory that this device did not allocate: pointers of other libraries, and buffers of other GPUs. */
#include "backend/cuda/device.h"

/* ---- pointers of other libraries --------------------------------------------------------------------------------- */

int hg_cuda_pointer_attribute(const cuda_device *d, int attribute, cuda_address address, void *value) {
  return d->driver.cuPointerGetAttributes(1, &attribute, &value, address) == CUDA_OK;
}

static hg_status check_owner(const cuda_device *d, cuda_address address) {
  int ordinal = d->ordinal;
  void *context = NULL;
  if (hg_cuda_pointer_attribute(d, CUDA_POINTER_DEVICE, address, &ordinal) && ordinal != d->ordinal)
    return hg_fail(HG_INVALID_ARGUMENT, "the memory to import is of GPU %d, and this executor's is GPU %d", ordinal,
                   d->ordinal);
  if (hg_cuda_pointer_attribute(d, CUDA_POINTER_CONTEXT, address, &context) && context != NULL && context != d->context)
    return hg_fail(HG_INVALID_ARGUMENT,
                   "the memory to import belongs to a context of its own; only memory of the GPU's "
                   "primary context, which the CUDA runtime uses, can be imported");
  return HG_OK;
}

/* What the driver allocated around an address; memory may lie across several. */
static hg_status find_range(const cuda_device *d, cuda_address address, uint64_t before, cuda_address *end) {
  unsigned type = 0;
  cuda_address start = 0;
  size_t byte_count = 0;
  if (!hg_cuda_pointer_attribute(d, CUDA_POINTER_MEMORY_TYPE, address, &type) || type == 0)
    return before == 0 ? hg_fail(HG_INVALID_ARGUMENT, "the memory to import is not known to the CUDA driver")
                       : hg_fail(HG_INVALID_ARGUMENT, "only the first %llu bytes of the memory to import are the GPU's",
                                 (unsigned long long)before);
  if (type != CUDA_MEMORY_DEVICE)
    return hg_fail(HG_INVALID_ARGUMENT, "the memory to import is the host's, not the GPU's");
  HG_TRY(check_owner(d, address));
  if (!hg_cuda_pointer_attribute(d, CUDA_POINTER_RANGE_START, address, &start) ||
      !hg_cuda_pointer_attribute(d, CUDA_POINTER_RANGE_BYTES, address, &byte_count))
    return hg_fail(HG_INVALID_ARGUMENT, "the CUDA driver does not say how large the memory to import is");
  *end = start + byte_count;
  return HG_OK;
}

static hg_status adopt(cuda_device *d, const uint8_t *memory, uint64_t byte_count) {
  const cuda_address first = cuda_address_of(memory);
  for (cuda_address at = first; at - first < byte_count;) {
    cuda_address end = 0;
    HG_TRY(find_range(d, at, at - first, &end));
    if (end <= at) return hg_fail(HG_DEVICE, "the CUDA driver does not know the end of the memory to import");
    at = end;
  }
  return HG_OK;
}

hg_status hg_cuda_adopt(void *device, const uint8_t *memory, uint64_t byte_count) {
  CUDA_RUN(device, adopt(device, memory, byte_count));
}

/* ---- buffers of other GPUs --------------------------------------------------------------------------------------- */

/* Enables peer access through the link between two GPUs. Without it the driver copies through the host by itself. */
static void enable_peer_access(cuda_device *d, const cuda_device *source) {
  const uint64_t bit = UINT64_C(1) << (source->ordinal & 63);
  const cuda_access access = {.location_type = 1, .location_id = d->ordinal, .flags = 3};
  int can = 0;
  if (d->peers & bit) return;
  d->peers |= bit;
  if (d->driver.cuDeviceCanAccessPeer(&can, d->ordinal, source->ordinal) != CUDA_OK || !can) return;
  (void)d->driver.cuCtxEnablePeerAccess(source->context, 0); /* another library may have done so already */
  if (source->pool != NULL && d->driver.cuMemPoolSetAccess != NULL)
    (void)d->driver.cuMemPoolSetAccess(source->pool, &access, 1);
}

static hg_status synchronise(cuda_device *d) {
  return hg_cuda_check(d, d->driver.cuStreamSynchronize(d->stream), "a transfer, or a kernel before it, failed");
}

static hg_status wait_within(cuda_device *d, const uint8_t *source) {
  HG_TRY(hg_cuda_maps_push(d, source));
  return synchronise(d);
}

static hg_status wait_for_source(cuda_device *d, const uint8_t *source) { CUDA_RUN(d, wait_within(d, source)); }

static hg_status copy_peer(cuda_device *d, uint8_t *destination, const cuda_device *from, const uint8_t *source,
                           uint64_t byte_count) {
  HG_TRY(hg_cuda_maps_push(d, destination));
  enable_peer_access(d, from);
  CUDA_TRY(d, cuMemcpyPeerAsync(cuda_address_of(destination), d->context, cuda_address_of(source), from->context,
                                (size_t)byte_count, d->stream),
           "could not copy from another GPU");
  return hg_cuda_maps_pull(d, destination);
}

/* Two devices may be one GPU. */
static hg_status copy_from(cuda_device *d, uint8_t *destination, const cuda_device *from, const uint8_t *source,
                           uint64_t byte_count) {
  if (from->context == d->context) HG_TRY(hg_cuda_move_within(d, destination, source, byte_count));
  else HG_TRY(copy_peer(d, destination, from, source, byte_count));
  return synchronise(d); /* the source may change after this call */
}

hg_status hg_cuda_copy_from(void *device, uint8_t *destination, void *source_device, const uint8_t *source,
                            uint64_t byte_count) {
  HG_TRY(wait_for_source(source_device, source));
  CUDA_RUN(device, CUDA_RANGE(device, "copy", NULL, byte_count,
                              copy_from(device, destination, source_device, source, byte_count)));
}
