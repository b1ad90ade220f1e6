/* copy.c - copies and fills. Each comes after all work that the device was given before. A copy out of the device waits
 * for it; the others return when the caller's memory is no longer needed. */
#include "backend/cuda/device.h"
#include "backend/cuda/cuda_tuning.h"

#include <string.h>

#define FILL_FAILED "could not fill memory on the GPU"

/* ---- between host and device ------------------------------------------------------------------------------------- */

static int is_pinned(const cuda_device *d, const void *memory) {
  unsigned type = 0;
  return hg_cuda_pointer_attribute(d, CUDA_POINTER_MEMORY_TYPE, cuda_address_of(memory), &type) &&
         type == CUDA_MEMORY_HOST;
}

static hg_status synchronise(cuda_device *d) {
  return hg_cuda_check(d, d->driver.cuStreamSynchronize(d->stream), "a transfer, or a kernel before it, failed");
}

/* The driver's own copy: at the link's speed with pinned memory, slower with any other. */
static hg_status direct_in(cuda_device *d, uint8_t *destination, const void *source, uint64_t byte_count) {
  CUDA_TRY(d, cuMemcpyHtoDAsync_v2(cuda_address_of(destination), source, (size_t)byte_count, d->stream),
           "could not copy to the GPU");
  return synchronise(d);
}

static hg_status direct_out(cuda_device *d, void *destination, const uint8_t *source, uint64_t byte_count) {
  CUDA_TRY(d, cuMemcpyDtoHAsync_v2(destination, cuda_address_of(source), (size_t)byte_count, d->stream),
           "could not copy from the GPU");
  return synchronise(d);
}

hg_status hg_cuda_copy_in_within(cuda_device *d, uint8_t *destination, const void *source, uint64_t byte_count) {
  d->own_work++;
  if (byte_count >= CUDA_DIRECT_BYTES && is_pinned(d, source)) return direct_in(d, destination, source, byte_count);
  hg_status status = hg_cuda_stage_in(d, destination, source, byte_count);
  return status == HG_OUT_OF_MEMORY ? direct_in(d, destination, source, byte_count) : status;
}

hg_status hg_cuda_copy_out_within(cuda_device *d, void *destination, const uint8_t *source, uint64_t byte_count) {
  if (byte_count >= CUDA_DIRECT_BYTES && is_pinned(d, destination))
    return direct_out(d, destination, source, byte_count);
  hg_status status = hg_cuda_stage_out(d, destination, source, byte_count);
  return status == HG_OUT_OF_MEMORY ? direct_out(d, destination, source, byte_count) : status;
}

static hg_status copy_in(cuda_device *d, uint8_t *destination, const void *source, uint64_t byte_count) {
  HG_TRY(hg_cuda_maps_push(d, destination));
  HG_TRY(hg_cuda_copy_in_within(d, destination, source, byte_count));
  return hg_cuda_maps_pull(d, destination);
}

static hg_status copy_out(cuda_device *d, void *destination, const uint8_t *source, uint64_t byte_count) {
  HG_TRY(hg_cuda_maps_push(d, source));
  return hg_cuda_copy_out_within(d, destination, source, byte_count);
}

/* ---- within the device ------------------------------------------------------------------------------------------- */

static hg_status device_copy(cuda_device *d, void *stream, uint8_t *destination, const uint8_t *source,
                             uint64_t byte_count) {
  return hg_cuda_check(d,
                    d->driver.cuMemcpyDtoDAsync_v2(cuda_address_of(destination), cuda_address_of(source),
                                                   (size_t)byte_count, stream),
                    "could not copy on the GPU");
}

/* Copies through scratch memory, a piece at a time, from the end at which nothing is overwritten before it is read. */
static hg_status overlapping_copy(cuda_device *d, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  uint64_t piece = byte_count < CUDA_OVERLAP_BYTES ? byte_count : CUDA_OVERLAP_BYTES;
  int ascending = (uintptr_t)destination < (uintptr_t)source;
  uint8_t *scratch = NULL;
  HG_TRY(hg_cuda_allocate_within(d, piece, 1, &scratch));
  hg_status status = HG_OK;
  for (uint64_t done = 0; done < byte_count && status == HG_OK; done += piece) {
    uint64_t size = byte_count - done < piece ? byte_count - done : piece;
    uint64_t offset = ascending ? done : byte_count - done - size;
    status = device_copy(d, d->stream, scratch, source + offset, size);
    if (status == HG_OK) status = device_copy(d, d->stream, destination + offset, scratch, size);
  }
  hg_cuda_free_within(d, scratch);
  return status;
}

hg_status hg_cuda_move_within(cuda_device *d, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  if (destination == source) return HG_OK;
  d->own_work++;
  HG_TRY(hg_cuda_maps_push(d, source));
  HG_TRY(hg_cuda_maps_push(d, destination));
  uintptr_t to = (uintptr_t)destination, from = (uintptr_t)source;
  if ((to > from ? to - from : from - to) >= byte_count)
    HG_TRY(device_copy(d, d->stream, destination, source, byte_count));
  else HG_TRY(overlapping_copy(d, destination, source, byte_count));
  return hg_cuda_maps_pull(d, destination);
}

/* ---- fills ------------------------------------------------------------------------------------------------------- */

/* The period of a pattern: of 0000 it is 1. */
static size_t period_of(const uint8_t *pattern, size_t size) {
  while (size > 1 && memcmp(pattern, pattern + size / 2, size / 2) == 0) size /= 2;
  return size;
}

static hg_status fill_columns(cuda_device *d, void *stream, cuda_address to, size_t pitch, const uint8_t *unit,
                              size_t unit_bytes, size_t rows) {
  const cuda_driver *driver = &d->driver;
  uint16_t half;
  uint32_t word;
  int result;
  switch (unit_bytes) {
  case 1: result = driver->cuMemsetD2D8Async(to, pitch, unit[0], 1, rows, stream); break;
  case 2:
    memcpy(&half, unit, sizeof half);
    result = driver->cuMemsetD2D16Async(to, pitch, half, 1, rows, stream);
    break;
  default:
    memcpy(&word, unit, sizeof word);
    result = driver->cuMemsetD2D32Async(to, pitch, word, 1, rows, stream);
    break;
  }
  return hg_cuda_check(d, result, FILL_FAILED);
}

/* Any pattern at any address: fills columns of the widest unit that the address allows, then doubles the
 * repetitions. */
static hg_status fill_by_doubling(cuda_device *d, void *stream, uint8_t *destination, uint64_t byte_count,
                                  const uint8_t *pattern, size_t size) {
  cuda_address to = cuda_address_of(destination);
  size_t unit = size < 4 ? size : 4;
  while ((to & (unit - 1)) != 0) unit /= 2;
  uint64_t done = byte_count < CUDA_SEED_BYTES ? byte_count : CUDA_SEED_BYTES;
  for (size_t i = 0; i < size; i += unit)
    HG_TRY(fill_columns(d, stream, to + i, size, pattern + i, unit, (size_t)(done / size)));
  while (done < byte_count) {
    uint64_t more = byte_count - done < done ? byte_count - done : done;
    HG_TRY(device_copy(d, stream, destination + done, destination, more));
    done += more;
  }
  return HG_OK;
}

hg_status hg_cuda_fill_within(cuda_device *d, void *stream, uint8_t *destination, uint64_t byte_count,
                              const void *pattern, size_t size) {
  const cuda_driver *driver = &d->driver;
  cuda_address to = cuda_address_of(destination);
  uint16_t half;
  uint32_t word;
  size = period_of(pattern, size);
  if (size > 4 || (to & (size - 1)) != 0) return fill_by_doubling(d, stream, destination, byte_count, pattern, size);
  switch (size) {
  case 1:
    return hg_cuda_check(d, driver->cuMemsetD8Async(to, *(const uint8_t *)pattern, (size_t)byte_count, stream),
                         FILL_FAILED);
  case 2:
    memcpy(&half, pattern, sizeof half);
    return hg_cuda_check(d, driver->cuMemsetD16Async(to, half, (size_t)(byte_count / 2), stream), FILL_FAILED);
  default:
    memcpy(&word, pattern, sizeof word);
    return hg_cuda_check(d, driver->cuMemsetD32Async(to, word, (size_t)(byte_count / 4), stream), FILL_FAILED);
  }
}

static hg_status fill(cuda_device *d, uint8_t *destination, uint64_t byte_count, const void *pattern, size_t size) {
  if (byte_count == 0) return HG_OK;
  HG_TRY(hg_cuda_maps_push(d, destination));
  d->own_work++;
  HG_TRY(hg_cuda_fill_within(d, d->stream, destination, byte_count, pattern, size));
  return hg_cuda_maps_pull(d, destination);
}

/* ---- the backend's functions ------------------------------------------------------------------------------------- */

hg_status hg_cuda_copy_in(void *device, uint8_t *destination, const void *source, uint64_t byte_count) {
  CUDA_RUN(device, CUDA_RANGE(device, "write", NULL, byte_count, copy_in(device, destination, source, byte_count)));
}
hg_status hg_cuda_copy_out(void *device, void *destination, const uint8_t *source, uint64_t byte_count) {
  CUDA_RUN(device, CUDA_RANGE(device, "read", NULL, byte_count, copy_out(device, destination, source, byte_count)));
}
hg_status hg_cuda_copy_within(void *device, uint8_t *destination, const uint8_t *source, uint64_t byte_count) {
  CUDA_RUN(device, CUDA_RANGE(device, "copy", NULL, byte_count,
                              hg_cuda_move_within(device, destination, source, byte_count)));
}
hg_status hg_cuda_fill(void *device, uint8_t *destination, uint64_t byte_count, const void *pattern,
                       size_t pattern_size) {
  CUDA_RUN(device, CUDA_RANGE(device, "fill", NULL, byte_count,
                              fill(device, destination, byte_count, pattern, pattern_size)));
}
