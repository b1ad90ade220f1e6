/* import.c - buffers over memory that another library, or the executor itself, owns. */
#include "runtime/runtime.h"

/* The storage begins at an aligned address at or before the memory, so that offsets decide about alignment as in any
 * storage. The buffer begins at the memory; the bytes before it are not accessible. */
static hg_status buffer_over(hg_executor *executor, uint8_t *memory, uint64_t byte_count, hg_buffer **out) {
  hg_storage *storage = hg_allocate(&executor->allocator, 1, sizeof *storage);
  if (storage == NULL) return hg_fail_memory("a buffer object", sizeof *storage);
  uint64_t offset = (uintptr_t)memory % HG_BACKEND_MIN_ALIGNMENT;
  atomic_init(&storage->references, 1);
  storage->executor = hg_executor_retain(executor);
  storage->foreign = 1;
  storage->address = memory - offset;
  storage->byte_count = offset + byte_count;
  *out = hg_buffer_first(storage, offset, byte_count);
  return HG_OK;
}

hg_status hg_buffer_import(hg_executor *executor, void *memory, uint64_t byte_count, hg_buffer **out) {
  if (executor == NULL || memory == NULL || out == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_import: an argument is NULL");
  *out = NULL;
  if (byte_count > UINTPTR_MAX - (uintptr_t)memory)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_import: %llu bytes from there on are more than memory has",
                   (unsigned long long)byte_count);
  hg_lock(executor);
  hg_status status = byte_count > 0 ? executor->backend->adopt(executor->device, memory, byte_count) : HG_OK;
  hg_unlock(executor);
  return status == HG_OK ? buffer_over(executor, memory, byte_count, out) : status;
}

hg_status hg_boundary_buffer(hg_executor *executor, uint64_t offset, uint64_t byte_count, hg_buffer **out) {
  if (executor == NULL || out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_boundary_buffer: an argument is NULL");
  *out = NULL;
  HG_TRY(hg_check_range("the boundary pool", ATLAS_BOUNDARY_POOL_BYTES, offset, byte_count));
  uint8_t *address = NULL;
  hg_lock(executor);
  hg_status status = hg_boundary_locked(executor, &address);
  hg_unlock(executor);
  return status == HG_OK ? buffer_over(executor, address + offset, byte_count, out) : status;
}
