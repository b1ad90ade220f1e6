/* pool.c - pools: regions of one storage, allocated first fit.
 *
 * The metadata is the list of allocated regions in ascending order. The gaps are free, so that neighbouring free ranges
 * need no merging. */
#include "runtime/runtime.h"

#include <string.h>

enum { DEFAULT_ALIGNMENT = 16 };

static hg_pool_region *regions_of(hg_pool *pool) { return pool->regions.data; }

hg_status hg_pool_create(hg_executor *executor, uint64_t byte_count, hg_pool **out) {
  if (executor == NULL || out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_pool_create: an argument is NULL");
  *out = NULL;
  hg_pool *pool = hg_allocate(&executor->allocator, 1, sizeof *pool);
  if (pool == NULL) return hg_fail_memory("a pool object", sizeof *pool);
  pool->regions.element_size = sizeof(hg_pool_region);
  /* aligned as far as any region may ask, so that a region's offset decides about its alignment */
  const hg_storage_wish wish = {.alignment = HG_BACKEND_MAX_ALIGNMENT};
  hg_status status = hg_storage_create(executor, byte_count, &wish, &pool->storage);
  if (status != HG_OK) {
    hg_release(&executor->allocator, pool);
    return status;
  }
  *out = pool;
  return HG_OK;
}

void hg_pool_release(hg_pool *pool) {
  if (pool == NULL) return;
  hg_storage *storage = pool->storage;
  hg_allocator allocator = storage->executor->allocator;
  hg_array_release(&allocator, &pool->regions);
  hg_release(&allocator, pool);
  hg_storage_release(storage);
}

/* Finds the first free range with room; *index is that of the new region in the list. */
static int find_free(hg_pool *pool, uint64_t byte_count, uint64_t alignment, uint64_t *offset, size_t *index) {
  uint64_t pool_size = pool->storage->byte_count, free_from = 0;
  for (size_t i = 0; i <= pool->regions.count; i++) {
    uint64_t free_to = i < pool->regions.count ? regions_of(pool)[i].offset : pool_size;
    uint64_t padding = (0 - free_from) & (alignment - 1);
    if (padding <= free_to - free_from && byte_count <= free_to - free_from - padding) {
      *offset = free_from + padding;
      *index = i;
      return 1;
    }
    if (i < pool->regions.count) free_from = free_to + regions_of(pool)[i].byte_count;
  }
  return 0;
}

static hg_status allocate_locked(hg_pool *pool, uint64_t byte_count, uint64_t alignment, uint64_t *offset) {
  size_t index = 0;
  if (!find_free(pool, byte_count, alignment, offset, &index))
    return hg_fail(
        HG_OUT_OF_MEMORY,
        "no free range of the pool holds %llu bytes at a multiple of %llu: %llu of its %llu bytes are in use",
        (unsigned long long)byte_count, (unsigned long long)alignment, (unsigned long long)pool->used,
        (unsigned long long)pool->storage->byte_count);
  if (hg_array_append(&pool->storage->executor->allocator, &pool->regions, NULL, 1) == NULL)
    return hg_fail_memory("a pool's list of regions", (pool->regions.count + 1) * sizeof(hg_pool_region));
  hg_pool_region *region = regions_of(pool) + index;
  memmove(region + 1, region, (pool->regions.count - 1 - index) * sizeof *region);
  *region = (hg_pool_region){*offset, byte_count};
  pool->used += byte_count;
  return HG_OK;
}

hg_status hg_pool_allocate(hg_pool *pool, uint64_t byte_count, uint64_t alignment, uint64_t *offset) {
  if (pool == NULL || offset == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_pool_allocate: an argument is NULL");
  if (byte_count == 0) return hg_fail(HG_INVALID_ARGUMENT, "a region of a pool has at least 1 byte");
  if (alignment == 0) alignment = DEFAULT_ALIGNMENT;
  if (alignment > HG_BACKEND_MAX_ALIGNMENT || (alignment & (alignment - 1)) != 0)
    return hg_fail(HG_INVALID_ARGUMENT, "a region's alignment must be a power of two up to %d, not %llu",
                   HG_BACKEND_MAX_ALIGNMENT, (unsigned long long)alignment);
  uint64_t found = 0;
  hg_lock(pool->storage->executor);
  hg_status status = allocate_locked(pool, byte_count, alignment, &found);
  hg_unlock(pool->storage->executor);
  if (status == HG_OK) *offset = found;
  return status;
}

/* Index of the region that starts at offset; the number of regions if there is none. */
static size_t find_region(hg_pool *pool, uint64_t offset) {
  size_t low = 0, high = pool->regions.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (regions_of(pool)[middle].offset < offset) low = middle + 1;
    else high = middle;
  }
  return low < pool->regions.count && regions_of(pool)[low].offset == offset ? low : pool->regions.count;
}

hg_status hg_pool_free(hg_pool *pool, uint64_t offset) {
  if (pool == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_pool_free: the pool is NULL");
  hg_status status = HG_OK;
  hg_lock(pool->storage->executor);
  size_t index = find_region(pool, offset);
  if (index < pool->regions.count) {
    hg_pool_region *region = regions_of(pool) + index;
    pool->used -= region->byte_count;
    memmove(region, region + 1, (pool->regions.count - 1 - index) * sizeof *region);
    pool->regions.count--;
  } else {
    status = hg_fail(HG_INVALID_ARGUMENT, "no region of the pool starts at offset %llu", (unsigned long long)offset);
  }
  hg_unlock(pool->storage->executor);
  return status;
}

uint64_t hg_pool_size(const hg_pool *pool) { return pool != NULL ? pool->storage->byte_count : 0; }

uint64_t hg_pool_used(const hg_pool *pool) {
  if (pool == NULL) return 0;
  hg_lock(pool->storage->executor);
  uint64_t used = pool->used;
  hg_unlock(pool->storage->executor);
  return used;
}

hg_status hg_pool_write(hg_pool *pool, uint64_t offset, const void *source, uint64_t byte_count) {
  if (pool == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_pool_write: the pool is NULL");
  HG_TRY(hg_check_range("a pool", pool->storage->byte_count, offset, byte_count));
  return hg_storage_write(pool->storage, offset, source, byte_count, NULL);
}

hg_status hg_pool_read(hg_pool *pool, uint64_t offset, void *destination, uint64_t byte_count) {
  if (pool == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_pool_read: the pool is NULL");
  HG_TRY(hg_check_range("a pool", pool->storage->byte_count, offset, byte_count));
  return hg_storage_read(pool->storage, offset, destination, byte_count, NULL);
}

hg_status hg_pool_buffer(hg_pool *pool, uint64_t offset, uint64_t byte_count, hg_buffer **out) {
  if (pool == NULL || out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_pool_buffer: an argument is NULL");
  *out = NULL;
  HG_TRY(hg_check_range("a pool", pool->storage->byte_count, offset, byte_count));
  return hg_buffer_over(pool->storage, offset, byte_count, out);
}
