/* memory.c - buffers of shared memory, which the CPU accesses directly, and buffers that wrap memory from elsewhere. */
#include "backend/metal/metal_device.h"

enum { PAGE_BYTES = 16384 }; /* pages of Apple silicon; a multiple of other pages */

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static metal_allocation *allocation_at(const metal_device *d, size_t i) {
  return (metal_allocation *)d->allocations.data + i;
}

/* How many allocations begin at this address or below. */
static size_t count_up_to(const metal_device *d, const uint8_t *memory) {
  size_t low = 0, high = d->allocations.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (allocation_at(d, middle)->memory <= memory) low = middle + 1;
    else high = middle;
  }
  return low;
}

static metal_allocation *find(const metal_device *d, const uint8_t *memory) {
  size_t count = count_up_to(d, memory);
  metal_allocation *a = count > 0 ? allocation_at(d, count - 1) : NULL;
  return a != NULL && memory < a->memory + a->byte_count ? a : NULL;
}

static hg_status keep(metal_device *d, const metal_allocation *a) {
  size_t at = count_up_to(d, a->memory), count = d->allocations.count;
  if (hg_array_append(&d->allocator, &d->allocations, NULL, 1) == NULL)
    return hg_fail_memory("the list of buffers", (count + 1) * sizeof *a);
  memmove(allocation_at(d, at) + 1, allocation_at(d, at), (count - at) * sizeof *a);
  *allocation_at(d, at) = *a;
  return HG_OK;
}

static void take_out(metal_device *d, metal_allocation *a) {
  size_t behind = d->allocations.count - (size_t)(a - allocation_at(d, 0)) - 1;
  memmove(a, a + 1, behind * sizeof *a);
  d->allocations.count--;
}

static void drop(metal_device *d, metal_allocation *a) {
  METAL(&d->objc, release, a->buffer);
  take_out(d, a);
}

/* ---- allocation -------------------------------------------------------------------------------------------------- */

static metal_id new_buffer(metal_device *d, uint64_t *length, uint32_t options) {
  metal_id buffer = hg_metal_take_spare_within(d, length, options);
  if (buffer == NULL) buffer = METAL_WITH(&d->objc, buffer, d->device, (metal_unsigned)*length, options);
  if (buffer == NULL && hg_metal_trim_within(d))
    buffer = METAL_WITH(&d->objc, buffer, d->device, (metal_unsigned)*length, options);
  return buffer;
}

/* The addresses of the memory for the CPU and for the GPU are both aligned; it fails if only one can be. */
static hg_status make(metal_device *d, uint64_t byte_count, uint32_t alignment, uint32_t options, metal_allocation *a) {
  uint64_t length = byte_count + (byte_count == 0) + alignment - 1;
  *a = (metal_allocation){.byte_count = byte_count + (byte_count == 0), .options = options};
  a->buffer = new_buffer(d, &length, options);
  if (a->buffer == NULL)
    return hg_fail(HG_OUT_OF_MEMORY, "Metal has no buffer of %llu bytes", (unsigned long long)length);
  a->length = length;
  uint8_t *memory = METAL(&d->objc, contents, a->buffer);
  uint64_t skipped = (0 - (uint64_t)(uintptr_t)memory) & (alignment - 1);
  a->memory = memory + skipped;
  a->address = METAL(&d->objc, gpu_address, a->buffer) + skipped;
  if ((a->address & (alignment - 1)) == 0) return HG_OK;
  METAL(&d->objc, release, a->buffer);
  return hg_fail(HG_DEVICE, "Metal's buffers lie at other alignments for the GPU than for the CPU");
}

static hg_status allocate(metal_device *d, uint64_t byte_count, uint32_t alignment, uint32_t options,
                          uint8_t **memory) {
  metal_allocation a;
  if (byte_count > UINT64_MAX / 2) return hg_fail_memory("a buffer", byte_count);
  HG_TRY(make(d, byte_count, alignment, options, &a));
  hg_status status = keep(d, &a);
  if (status == HG_OK) *memory = a.memory;
  else METAL(&d->objc, release, a.buffer);
  return status;
}

hg_status hg_metal_allocate_within(metal_device *d, uint64_t byte_count, uint32_t alignment, int zeroed,
                                   uint8_t **memory) {
  HG_TRY(allocate(d, byte_count, alignment, METAL_SHARED_MEMORY, memory));
  if (zeroed) memset(*memory, 0, (size_t)byte_count);
  return HG_OK;
}

hg_status hg_metal_allocate_records_within(metal_device *d, uint64_t count, metal_record **records) {
  uint8_t *memory = NULL;
  HG_TRY(allocate(d, count * sizeof **records, HG_BACKEND_MIN_ALIGNMENT, METAL_UNTRACKED, &memory));
  *records = (metal_record *)(void *)memory;
  for (uint64_t i = 0; i < count; i++) (*records)[i] = (metal_record){.fault = hg_gpu_fault_none()};
  return HG_OK;
}

hg_status hg_metal_allocate_host_within(metal_device *d, uint64_t byte_count, uint8_t **memory) {
  return allocate(d, byte_count, HG_BACKEND_MIN_ALIGNMENT, METAL_TRACKED, memory);
}

int hg_metal_is_own(const metal_device *d, const uint8_t *memory, uint64_t byte_count) {
  const metal_allocation *a = find(d, memory);
  return a != NULL && !a->is_wrapped && byte_count <= a->byte_count - (uint64_t)(memory - a->memory);
}

void hg_metal_free_within(metal_device *d, uint8_t *memory, metal_id commands) {
  metal_allocation *a = find(d, memory);
  if (a == NULL) return;
  if (a->is_wrapped) { /* the memory's owner may have reused it */
    (void)hg_metal_settle(d);
    drop(d, a);
    return;
  }
  const metal_spare spare = {a->buffer, a->length, a->options, commands != NULL ? commands : d->last};
  take_out(d, a);
  hg_metal_keep_spare_within(d, &spare);
}

void hg_metal_memory_close(metal_device *d) {
  while (d->allocations.count > 0) drop(d, allocation_at(d, d->allocations.count - 1));
  (void)hg_metal_trim_within(d);
  hg_array_release(&d->allocator, &d->spares);
}

hg_status hg_metal_allocate(void *device, uint64_t byte_count, uint32_t alignment, int zeroed, uint8_t **memory) {
  METAL_RUN(device, hg_metal_allocate_within(device, byte_count, alignment, zeroed, memory));
}

void hg_metal_free(void *device, uint8_t *memory) {
  metal_device *d = device;
  if (d->process != hg_process_id()) return;
  void *pool = d->objc.pool_push();
  hg_metal_free_within(d, memory, NULL);
  d->objc.pool_pop(pool);
}

void hg_metal_memory(void *device, hg_device_memory *memory) {
  const metal_device *d = device;
  *memory = (hg_device_memory){.kept = d->spare_bytes, .kept_most = d->most_spare_bytes};
}

void hg_metal_keep(void *device, uint64_t byte_count) {
  metal_device *d = device;
  d->most_spare_bytes = byte_count;
  if (d->spare_bytes > byte_count) hg_metal_trim(d);
}

void hg_metal_trim(void *device) {
  metal_device *d = device;
  if (d->process != hg_process_id()) return;
  void *pool = d->objc.pool_push();
  (void)hg_metal_trim_within(d);
  d->objc.pool_pop(pool);
}

uint64_t hg_metal_gpu_address(metal_device *d, metal_id encoder, const uint8_t *memory) {
  const metal_allocation *a = memory != NULL ? find(d, memory) : NULL;
  if (a == NULL) return 0;
  METAL_WITH(&d->objc, use, encoder, a->buffer, METAL_READ_WRITE);
  return a->address + (uint64_t)(memory - a->memory);
}

/* ---- memory of others -------------------------------------------------------------------------------------------- */

/* Wraps the whole pages around the range and around older wrappers that overlap it, because these may be of other
 * memory by now. */
static hg_status wrap(metal_device *d, const uint8_t *memory, uint64_t byte_count) {
  uint64_t skipped = (uint64_t)(uintptr_t)memory & (PAGE_BYTES - 1);
  uint64_t length = (skipped + byte_count + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
  metal_allocation a = {.memory = (uint8_t *)(uintptr_t)memory - skipped, .byte_count = length, .is_wrapped = 1};
  HG_TRY(hg_metal_settle(d));
  for (size_t i = d->allocations.count; i-- > 0;) {
    metal_allocation *other = allocation_at(d, i);
    if (!other->is_wrapped || other->memory + other->byte_count <= a.memory || a.memory + length <= other->memory)
      continue;
    if (other->memory < a.memory) {
      length += (uint64_t)(a.memory - other->memory);
      a.memory = other->memory;
    }
    if (other->memory + other->byte_count > a.memory + length)
      length = (uint64_t)(other->memory + other->byte_count - a.memory);
    drop(d, other);
  }
  a.byte_count = length;
  a.buffer = METAL_WITH(&d->objc, wrap, d->device, a.memory, (metal_unsigned)length, METAL_SHARED_MEMORY, NULL);
  if (a.buffer == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "Metal cannot use this memory in place: %llu bytes in whole pages of %d",
                   (unsigned long long)length, PAGE_BYTES);
  a.address = METAL(&d->objc, gpu_address, a.buffer);
  hg_status status = keep(d, &a);
  if (status != HG_OK) METAL(&d->objc, release, a.buffer);
  return status;
}

static hg_status adopt_within(metal_device *d, const uint8_t *memory, uint64_t byte_count) {
  const metal_allocation *a = find(d, memory);
  return a != NULL && !a->is_wrapped ? HG_OK : wrap(d, memory, byte_count);
}

hg_status hg_metal_adopt(void *device, const uint8_t *memory, uint64_t byte_count) {
  METAL_RUN(device, adopt_within(device, memory, byte_count));
}

/* ---- copies and fills by the CPU, after the GPU is done ---------------------------------------------------------- */

static hg_status move_within(metal_device *d, void *destination, const void *source, uint64_t byte_count) {
  HG_TRY(hg_metal_settle(d));
  memmove(destination, source, (size_t)byte_count);
  return HG_OK;
}

hg_status hg_metal_copy_in(void *device, uint8_t *destination, const void *source, uint64_t byte_count) {
  METAL_RUN(device, move_within(device, destination, source, byte_count));
}

hg_status hg_metal_copy_out(void *device, void *destination, const uint8_t *source, uint64_t byte_count) {
  METAL_RUN(device, move_within(device, destination, source, byte_count));
}

hg_status hg_metal_copy_within(void *device, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  METAL_RUN(device, move_within(device, destination, source, byte_count));
}

static hg_status fill_within(metal_device *d, uint8_t *destination, uint64_t byte_count, const void *pattern,
                             size_t pattern_size) {
  HG_TRY(hg_metal_settle(d));
  for (uint64_t i = 0; i < byte_count; i += pattern_size) memcpy(destination + i, pattern, pattern_size);
  return HG_OK;
}

hg_status hg_metal_fill(void *device, uint8_t *destination, uint64_t byte_count, const void *pattern,
                        size_t pattern_size) {
  METAL_RUN(device, fill_within(device, destination, byte_count, pattern, pattern_size));
}

hg_status hg_metal_map(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count, void **memory) {
  (void)byte_count;
  *memory = allocation + offset;
  METAL_RUN(device, hg_metal_settle(device));
}

hg_status hg_metal_unmap(void *device, uint8_t *allocation, uint64_t offset, uint64_t byte_count) {
  (void)allocation;
  (void)offset;
  (void)byte_count;
  return hg_metal_check(device);
}
