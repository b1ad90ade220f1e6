/* memory.c - device memory: from a pool of the driver if it has pools (freed memory is reused in stream order, without
 * a wait), else from the driver directly, with freed memory kept as spares.
 *
 * A pool gives memory freed on a stream to allocations on that stream at once; to others only when the free has been
 * reached. So a loop whose work is on one stream and whose allocations are on another maps its memory anew each time:
 * on an H200, results of 1 GiB, each filled and then dropped, took 1,817 to 2,603 us each, of which the fill takes 236,
 * and 236 to 260 us with both on one stream (60 of each).
 *
 * The table of allocations is sorted by address. */
#include "backend/cuda/device.h"
#include "backend/cuda/cuda_tuning.h"

#include <string.h>

enum { DRIVER_ALIGNMENT = 256 }; /* of every address that the driver gives */

/* ---- the table --------------------------------------------------------------------------------------------------- */

static cuda_allocation *allocation_at(const cuda_device *d, size_t index) {
  return (cuda_allocation *)d->allocations.data + index;
}

/* How many allocations begin at or before an address. */
static size_t count_up_to(const cuda_device *d, const uint8_t *address) {
  size_t low = 0, high = d->allocations.count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if ((uintptr_t)allocation_at(d, middle)->address <= (uintptr_t)address) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* The last that begins at or before an address. */
static cuda_allocation *last_up_to(const cuda_device *d, const uint8_t *address) {
  size_t count = count_up_to(d, address);
  return count > 0 ? allocation_at(d, count - 1) : NULL;
}

cuda_allocation *hg_cuda_allocation_of(cuda_device *d, const uint8_t *address) {
  cuda_allocation *found = last_up_to(d, address);
  return found != NULL && (uint64_t)(address - found->address) < found->byte_count ? found : NULL;
}

cuda_allocation *hg_cuda_allocation_at(cuda_device *d, const uint8_t *address) {
  cuda_allocation *found = last_up_to(d, address);
  return found != NULL && found->address == address ? found : NULL;
}

/* The table has room: see hg_cuda_allocate_within. */
static void insert(cuda_device *d, const cuda_allocation *allocation) {
  size_t at = count_up_to(d, allocation->address);
  memmove(allocation_at(d, at + 1), allocation_at(d, at), (d->allocations.count - at) * sizeof *allocation);
  *allocation_at(d, at) = *allocation;
  d->allocations.count++;
  d->in_use += allocation->taken;
}

static void remove_allocation(cuda_device *d, cuda_allocation *allocation) {
  size_t at = (size_t)(allocation - allocation_at(d, 0));
  hg_release(&d->allocator, allocation->mirror_block); /* still mapped if the context was lost */
  d->allocations.count--;
  d->in_use -= allocation->taken;
  memmove(allocation, allocation + 1, (d->allocations.count - at) * sizeof *allocation);
}

/* ---- the driver's memory ----------------------------------------------------------------------------------------- */

static int take_spare(cuda_device *d, uint64_t byte_count, cuda_address *base) {
  int is_found = 0;
  hg_mutex_lock(&d->mutex);
  cuda_spare *spares = d->spares.data;
  for (size_t i = d->spares.count; i-- > 0 && !is_found;) {
    if (spares[i].taken != byte_count) continue;
    *base = spares[i].base;
    d->spare_bytes -= byte_count;
    spares[i] = spares[--d->spares.count];
    is_found = 1;
  }
  hg_mutex_unlock(&d->mutex);
  return is_found;
}

/* 0: there are enough spares. */
static int keep_spare(cuda_device *d, cuda_spare spare) {
  hg_mutex_lock(&d->mutex);
  int is_kept = spare.taken <= d->kept_most && d->spare_bytes <= d->kept_most - spare.taken &&
                hg_array_append(&d->allocator, &d->spares, &spare, 1) != NULL;
  if (is_kept) d->spare_bytes += spare.taken;
  hg_mutex_unlock(&d->mutex);
  return is_kept;
}

static int allocate_driver_memory(cuda_device *d, const cuda_stream *home, uint64_t byte_count, cuda_address *base) {
  void *stream = home != NULL ? home->stream : d->stream;
  if (home == NULL) d->own_work++;
  if (d->pool != NULL) return d->driver.cuMemAllocFromPoolAsync(base, (size_t)byte_count, d->pool, stream);
  if (take_spare(d, byte_count, base)) return CUDA_OK;
  return d->driver.cuMemAlloc_v2(base, (size_t)byte_count);
}

/* Work that uses the memory is ahead of this in `stream`, which is the own stream if there is no pool. */
static void free_driver_memory(cuda_device *d, cuda_address base, uint64_t byte_count, void *stream) {
  if (stream == d->stream) d->own_work++;
  if (d->pool != NULL) (void)d->driver.cuMemFreeAsync(base, stream);
  else if (!keep_spare(d, (cuda_spare){base, byte_count})) (void)d->driver.cuMemFree_v2(base);
}

/* Freed memory is reusable only when the own stream has reached the free, hence the wait. Spares that another thread
 * adds meanwhile stay. */
void hg_cuda_trim_within(cuda_device *d) {
  hg_mutex_lock(&d->mutex);
  hg_array spares = d->spares;
  d->spares = (hg_array){.element_size = sizeof(cuda_spare)};
  d->spare_bytes = 0;
  hg_mutex_unlock(&d->mutex);
  if (d->stream != NULL) (void)d->driver.cuStreamSynchronize(d->stream);
  if (d->pool != NULL) (void)d->driver.cuMemPoolTrimTo(d->pool, 0);
  for (size_t i = 0; i < spares.count; i++) (void)d->driver.cuMemFree_v2(((const cuda_spare *)spares.data)[i].base);
  hg_array_release(&d->allocator, &spares);
}

static hg_status fail_full(cuda_device *d, uint64_t byte_count) {
  size_t bytes_free = 0, bytes_total = 0;
  (void)d->driver.cuMemGetInfo_v2(&bytes_free, &bytes_total);
  return hg_fail(HG_OUT_OF_MEMORY,
                 "a buffer of %llu bytes does not fit into the GPU's memory: %llu of its %llu bytes are free; release "
                 "buffers, or free memory that other programs hold",
                 (unsigned long long)byte_count, (unsigned long long)bytes_free, (unsigned long long)bytes_total);
}

static uint64_t round_up(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

/* Whenever somebody waits, the driver returns what a pool has above a bound, which includes memory in use. So the bound
 * follows the use, in steps, because a call for each allocation would cost too much. */
static void follow_use(cuda_device *d) {
  uint64_t step = d->kept_most / CUDA_USE_STEPS + 1;
  if (d->pool == NULL || (d->in_use >= d->bounded_use && d->in_use - d->bounded_use < 2 * step)) return;
  d->bounded_use = d->in_use - d->in_use % step;
  uint64_t most = d->bounded_use + d->kept_most;
  (void)d->driver.cuMemPoolSetAttribute(d->pool, CUDA_POOL_RELEASE_THRESHOLD, &most);
}

static hg_status allocate_in_order(cuda_device *d, cuda_stream *home, uint64_t byte_count, uint32_t alignment,
                                   uint8_t **address) {
  if (d->pool == NULL) home = NULL;
  if (byte_count > UINT64_MAX / 4 || byte_count > SIZE_MAX / 4) return fail_full(d, byte_count);
  uint64_t taken = byte_count + (alignment > DRIVER_ALIGNMENT ? alignment : 0) + (byte_count == 0);
  if (d->pool == NULL) taken = round_up(taken, taken < CUDA_LARGE_BYTES ? CUDA_SMALL_STEP : CUDA_LARGE_STEP);
  if (hg_array_append(&d->allocator, &d->allocations, NULL, 1) == NULL)
    return hg_fail_memory("the table of allocations", (d->allocations.count + 1) * sizeof(cuda_allocation));
  d->allocations.count--; /* only the room was needed */
  cuda_address base = 0;
  int result = allocate_driver_memory(d, home, taken, &base);
  if (result == CUDA_OUT_OF_MEMORY) {
    hg_cuda_trim_within(d);
    result = allocate_driver_memory(d, home, taken, &base);
  }
  if (result == CUDA_OUT_OF_MEMORY) return fail_full(d, byte_count);
  HG_TRY(hg_cuda_check(d, result, "could not allocate memory on the GPU"));
  *address = (uint8_t *)(uintptr_t)round_up(base, alignment);
  insert(d, &(cuda_allocation){
                .address = *address, .base = base, .byte_count = byte_count, .taken = taken, .home = home});
  follow_use(d);
  return HG_OK;
}

hg_status hg_cuda_allocate_within(cuda_device *d, uint64_t byte_count, uint32_t alignment, uint8_t **address) {
  return allocate_in_order(d, NULL, byte_count, alignment, address);
}

static void free_on(cuda_device *d, uint8_t *address, void *stream) {
  cuda_allocation *allocation = hg_cuda_allocation_at(d, address);
  if (allocation == NULL) return;
  free_driver_memory(d, allocation->base, allocation->taken, stream);
  remove_allocation(d, allocation);
  follow_use(d);
}

void hg_cuda_free_within(cuda_device *d, uint8_t *address) { free_on(d, address, d->stream); }

void hg_cuda_leave_home(cuda_device *d, const cuda_stream *stream) {
  for (size_t i = 0; i < d->allocations.count; i++)
    if (allocation_at(d, i)->home == stream) allocation_at(d, i)->home = NULL;
}

void hg_cuda_wait_behind_within(cuda_device *d, void *stream, const cuda_stream *other) {
  const cuda_driver *driver = &d->driver;
  void *event = other->is_foreign ? other->done : d->stream_event;
  int result = other->is_foreign ? CUDA_OK : driver->cuEventRecord(event, other->stream);
  if (result == CUDA_OK) result = driver->cuStreamWaitEvent(stream, event, 0);
  if (result != CUDA_OK) (void)hg_cuda_wait_at_last_within(d, other);
}

/* The first stream that its owner is not capturing; NULL: all are captured. */
static cuda_stream *first_usable(const cuda_device *d, void *const *streams, size_t count) {
  size_t i = 0;
  while (i < count && hg_cuda_check_capture_within(d, streams[i]) != CUDA_OK) i++;
  return i < count ? streams[i] : NULL;
}

/* With a pool, memory is freed on its home or else on one of the streams, which waits for the others and for the own
 * stream, so that the own stream need not wait. A foreign home that its owner captures now counts as one of the
 * streams, because it may not have reached the allocation yet, behind which it has an event. */
void hg_cuda_free_behind_within(cuda_device *d, uint8_t *address, void *const *streams, size_t count) {
  const cuda_allocation *allocation = hg_cuda_allocation_at(d, address);
  cuda_stream *home = allocation != NULL ? allocation->home : NULL;
  cuda_stream *first = home != NULL && hg_cuda_check_capture_within(d, home) == CUDA_OK ? home : NULL;
  if (first == NULL && d->pool != NULL) first = first_usable(d, streams, count);
  void *stream = first != NULL ? first->stream : d->stream;
  if (first != NULL && hg_cuda_order_within(d, first) != HG_OK) (void)d->driver.cuStreamSynchronize(d->stream);
  for (size_t i = 0; i < count; i++)
    if (streams[i] != first) hg_cuda_wait_behind_within(d, stream, streams[i]);
  free_on(d, address, stream);
  if (first != NULL) (void)hg_cuda_mark_within(d, first);
}

/* ---- the backend's functions ------------------------------------------------------------------------------------- */

static hg_status clear(cuda_device *d, void *stream, uint8_t *address, uint64_t byte_count) {
  return hg_cuda_check(d, d->driver.cuMemsetD8Async(cuda_address_of(address), 0, (size_t)byte_count, stream),
                       "could not clear memory on the GPU");
}

static hg_status allocate(cuda_device *d, cuda_stream *home, uint64_t byte_count, uint32_t alignment, int zeroed,
                          uint8_t **address) {
  HG_TRY(allocate_in_order(d, home, byte_count, alignment, address));
  home = hg_cuda_allocation_at(d, *address)->home;
  hg_status status = zeroed && byte_count > 0 ? clear(d, home != NULL ? home->stream : d->stream, *address, byte_count)
                                              : HG_OK;
  if (status == HG_OK && home != NULL) status = hg_cuda_mark_within(d, home);
  if (status != HG_OK) hg_cuda_free_behind_within(d, *address, NULL, 0);
  return status;
}

hg_status hg_cuda_allocate(void *device, uint64_t byte_count, uint32_t alignment, int zeroed, uint8_t **address) {
  CUDA_RUN(device, allocate(device, NULL, byte_count, alignment, zeroed, address));
}

hg_status hg_cuda_allocate_on(void *device, void *stream, uint64_t byte_count, uint32_t alignment, int zeroed,
                              uint8_t **address) {
  CUDA_RUN(device, allocate(device, stream, byte_count, alignment, zeroed, address));
}

void hg_cuda_free(void *device, uint8_t *address) {
  cuda_device *d = device;
  int pushed = 0;
  if (hg_cuda_enter(d, &pushed) != HG_OK) return; /* lost with the context; a child of fork frees nothing */
  hg_cuda_free_behind_within(d, address, NULL, 0);
  hg_cuda_leave(d, pushed);
}

static void find_memory(cuda_device *d, hg_device_memory *memory) {
  size_t bytes_free = 0, bytes_total = 0;
  uint64_t reserved = 0;
  if (d->driver.cuMemGetInfo_v2(&bytes_free, &bytes_total) == CUDA_OK) {
    memory->free_bytes = bytes_free;
    memory->all_bytes = bytes_total;
  }
  if (d->pool != NULL && d->driver.cuMemPoolGetAttribute != NULL &&
      d->driver.cuMemPoolGetAttribute(d->pool, CUDA_POOL_RESERVED_BYTES, &reserved) == CUDA_OK && reserved > d->in_use)
    memory->kept = reserved - d->in_use;
}

void hg_cuda_memory(void *device, hg_device_memory *memory) {
  cuda_device *d = device;
  int pushed = 0;
  hg_mutex_lock(&d->mutex);
  *memory = (hg_device_memory){.kept = d->spare_bytes, .kept_most = d->kept_most};
  hg_mutex_unlock(&d->mutex);
  if (hg_cuda_enter(d, &pushed) != HG_OK) return;
  find_memory(d, memory);
  hg_cuda_leave(d, pushed);
}

void hg_cuda_trim(void *device) {
  cuda_device *d = device;
  int pushed = 0;
  if (hg_cuda_enter(d, &pushed) != HG_OK) return;
  hg_cuda_trim_within(d);
  hg_cuda_leave(d, pushed);
}

/* ---- the pool ---------------------------------------------------------------------------------------------------- */

static hg_status bound_pool(cuda_device *d) {
  uint64_t most = d->kept_most;
  d->bounded_use = 0;
  hg_status status = hg_cuda_check(d, d->driver.cuMemPoolSetAttribute(d->pool, CUDA_POOL_RELEASE_THRESHOLD, &most),
                                   "could not set up the pool of memory on the GPU");
  follow_use(d);
  return status;
}

static hg_status bound_within(cuda_device *d) { return d->pool != NULL ? bound_pool(d) : HG_OK; }
static hg_status bound(cuda_device *d) { CUDA_RUN(d, bound_within(d)); }

/* Memory above the new bound is returned at the next wait or trim. */
void hg_cuda_keep(void *device, uint64_t byte_count) {
  cuda_device *d = device;
  hg_mutex_lock(&d->mutex);
  d->kept_most = byte_count < UINT64_MAX / 2 ? byte_count : UINT64_MAX / 2;
  int is_over = d->spare_bytes > d->kept_most;
  hg_mutex_unlock(&d->mutex);
  (void)bound(d);
  if (is_over) hg_cuda_trim(d);
}

/* Opens a pool of the device's own, so that its settings affect no other library. It keeps up to an eighth of the GPU's
 * memory in addition to memory in use; the driver returns the rest. */
hg_status hg_cuda_memory_open_within(cuda_device *d) {
  const cuda_driver *driver = &d->driver;
  int pools = 0;
  size_t bytes = 0;
  (void)driver->cuDeviceTotalMem_v2(&bytes, d->ordinal);
  d->kept_most = bytes / CUDA_KEPT_FRACTION;
  if (driver->cuMemPoolCreate == NULL || driver->cuMemPoolDestroy == NULL || driver->cuMemPoolSetAttribute == NULL ||
      driver->cuMemPoolTrimTo == NULL || driver->cuMemAllocFromPoolAsync == NULL || driver->cuMemFreeAsync == NULL ||
      driver->cuDeviceGetAttribute(&pools, CUDA_DEVICE_MEMORY_POOLS, d->ordinal) != CUDA_OK || !pools)
    return HG_OK;
  cuda_pool_properties properties = {.allocation_type = 1, .location_type = 1, .location_id = d->ordinal};
  int result = driver->cuMemPoolCreate(&d->pool, &properties);
  if (result != CUDA_OK) {
    d->pool = NULL;
    return result == CUDA_NOT_SUPPORTED ? HG_OK
                                        : hg_cuda_check(d, result, "could not make a pool of memory on the GPU");
  }
  return bound_pool(d);
}

void hg_cuda_memory_close_within(cuda_device *d) {
  for (size_t i = d->allocations.count; i-- > 0;) hg_cuda_free_within(d, allocation_at(d, i)->address);
  hg_cuda_trim_within(d);
  if (d->pool != NULL) (void)d->driver.cuMemPoolDestroy(d->pool);
}
