/* between.c - copies between buffers of two executors. */
#include "runtime/runtime.h"

static void lock_both(hg_executor *one, hg_executor *other) {
  int in_order = (uintptr_t)one < (uintptr_t)other;
  hg_lock(in_order ? one : other);
  hg_lock(in_order ? other : one);
}

static hg_status copy_locked(hg_executor *into, uint8_t *destination, hg_executor *out_of, const uint8_t *source,
                             uint64_t byte_count) {
  if (out_of->backend->memory_is_host) return into->backend->copy_in(into->device, destination, source, byte_count);
  if (into->backend->memory_is_host) return out_of->backend->copy_out(out_of->device, destination, source, byte_count);
  if (into->backend == out_of->backend)
    return into->backend->copy_from(into->device, destination, out_of->device, source, byte_count);
  return hg_fail(HG_UNSUPPORTED, "there is no way from the %s backend to the %s backend; go through memory of the host",
                 out_of->row->name, into->row->name);
}

/* Waits for pending work of streams on the memory. */
static hg_status settle_storage(hg_storage *storage) {
  hg_lock(storage->executor);
  hg_status status = hg_settle_locked(storage->executor, &storage->used);
  hg_unlock(storage->executor);
  return status;
}

hg_status hg_copy_between(hg_storage *destination, uint64_t destination_offset, hg_storage *source,
                          uint64_t source_offset, uint64_t byte_count) {
  hg_executor *into = destination->executor, *out_of = source->executor;
  HG_TRY(settle_storage(destination));
  HG_TRY(settle_storage(source));
  lock_both(into, out_of);
  hg_status status = copy_locked(into, destination->address + destination_offset, out_of,
                                 source->address + source_offset, byte_count);
  hg_unlock(into);
  hg_unlock(out_of);
  return status;
}
