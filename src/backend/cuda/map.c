/* map.c - host access to device memory. An allocation with mapped ranges has a mirror in host memory, which is the
 * valid copy of these ranges while they are mapped. Copies and fills of such memory update the device first and the
 * mirror afterwards, so that a mapped buffer behaves as it does on the CPU. */
#include "backend/cuda/device.h"

static cuda_map *map_at(const cuda_device *d, size_t index) { return (cuda_map *)d->maps.data + index; }

static int lies_in(const cuda_allocation *allocation, const cuda_map *map) {
  return map->address >= allocation->address && map->address < allocation->address + allocation->byte_count;
}

static uint8_t *mirror_of(const cuda_allocation *allocation, const uint8_t *address) {
  return allocation->mirror + (address - allocation->address);
}

/* Copies every mapped range of an allocation to the device or from it. */
static hg_status copy_ranges(cuda_device *d, const cuda_allocation *allocation, int to_device) {
  for (size_t i = 0; i < d->maps.count; i++) {
    const cuda_map *map = map_at(d, i);
    if (!lies_in(allocation, map) || map->byte_count == 0) continue;
    uint8_t *host = mirror_of(allocation, map->address);
    HG_TRY(to_device ? hg_cuda_copy_in_within(d, map->address, host, map->byte_count)
                     : hg_cuda_copy_out_within(d, host, map->address, map->byte_count));
  }
  return HG_OK;
}

static hg_status copy_mapped(cuda_device *d, const uint8_t *address, int to_device) {
  if (d->maps.count == 0) return HG_OK;
  const cuda_allocation *allocation = hg_cuda_allocation_of(d, address);
  if (allocation == NULL || allocation->map_count == 0) return HG_OK;
  return copy_ranges(d, allocation, to_device);
}

hg_status hg_cuda_maps_push(cuda_device *d, const uint8_t *address) { return copy_mapped(d, address, 1); }
hg_status hg_cuda_maps_pull(cuda_device *d, const uint8_t *address) { return copy_mapped(d, address, 0); }

static void release_mirror(cuda_device *d, cuda_allocation *allocation) {
  if (allocation->map_count > 0) return;
  hg_release(&d->allocator, allocation->mirror_block);
  allocation->mirror_block = allocation->mirror = NULL;
}

/* Not hg_allocate, which would touch every page of a large allocation for a small range. */
static hg_status make_mirror(cuda_device *d, cuda_allocation *allocation) {
  if (allocation->mirror != NULL) return HG_OK;
  size_t byte_count = (size_t)allocation->byte_count + HG_BACKEND_MAX_ALIGNMENT;
  uint8_t *block = d->allocator.allocate(d->allocator.user, byte_count);
  if (block == NULL) return hg_fail_memory("the host's side of a mapped buffer", byte_count);
  allocation->mirror_block = block;
  allocation->mirror = block + (-(uintptr_t)block & (HG_BACKEND_MAX_ALIGNMENT - 1));
  return HG_OK;
}

/* Copies overlapping mapped ranges to the device first, so that the copy of the new range is valid. */
static hg_status copy_new_range(cuda_device *d, cuda_allocation *allocation, uint8_t *address, uint64_t byte_count) {
  HG_TRY(make_mirror(d, allocation));
  HG_TRY(copy_ranges(d, allocation, 1));
  const cuda_map map = {address, byte_count};
  if (byte_count > 0) HG_TRY(hg_cuda_copy_out_within(d, mirror_of(allocation, address), address, byte_count));
  if (hg_array_append(&d->allocator, &d->maps, &map, 1) == NULL)
    return hg_fail_memory("the table of mapped buffers", (d->maps.count + 1) * sizeof map);
  return HG_OK;
}

static hg_status map_within(cuda_device *d, uint8_t *start, uint64_t offset, uint64_t byte_count, void **memory) {
  cuda_allocation *allocation = hg_cuda_allocation_at(d, start);
  if (allocation == NULL) return hg_fail(HG_INVALID_ARGUMENT, "the memory to map is no allocation of the GPU's");
  hg_status status = copy_new_range(d, allocation, start + offset, byte_count);
  if (status == HG_OK) {
    allocation->map_count++;
    *memory = mirror_of(allocation, start + offset);
  }
  release_mirror(d, allocation);
  return status;
}

/* Unmaps the range even if the copy fails, because the caller no longer uses it. */
static hg_status unmap_within(cuda_device *d, uint8_t *start, uint64_t offset, uint64_t byte_count) {
  cuda_allocation *allocation = hg_cuda_allocation_at(d, start);
  uint8_t *address = start + offset;
  size_t i = 0;
  while (i < d->maps.count && (map_at(d, i)->address != address || map_at(d, i)->byte_count != byte_count)) i++;
  if (allocation == NULL || i == d->maps.count)
    return hg_fail(HG_INVALID_ARGUMENT, "the memory to unmap is not mapped");
  hg_status status = HG_OK;
  if (byte_count > 0) status = hg_cuda_copy_in_within(d, address, mirror_of(allocation, address), byte_count);
  *map_at(d, i) = *map_at(d, --d->maps.count);
  allocation->map_count--;
  release_mirror(d, allocation);
  return status;
}

hg_status hg_cuda_map_memory(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count, void **memory) {
  CUDA_RUN(device, CUDA_RANGE(device, "map", NULL, byte_count,
                              map_within(device, allocation, offset, byte_count, memory)));
}
hg_status hg_cuda_unmap_memory(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count) {
  CUDA_RUN(device, CUDA_RANGE(device, "unmap", NULL, byte_count,
                              unmap_within(device, allocation, offset, byte_count)));
}
