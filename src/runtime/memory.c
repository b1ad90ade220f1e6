/* memory.c - storages: device memory, allocated immediately or in the order of a stream, and the cache of freed memory.
 *
 * A stream (the home) may use memory that is allocated in its order at once. Another stream is ordered behind the home
 * when it first uses such memory, and so behind all earlier allocations of the home. So each stream knows up to which
 * allocation it is behind each home, and an event carries this from the stream that records it to the stream that waits
 * for it. Calls without a stream wait for the home as for any stream that uses the memory. */
#include "runtime/runtime.h"

/* ---- the home ---------------------------------------------------------------------------------------------------- */

/* A capturing stream is no home: its work runs at some later time. */
static int can_be_home(hg_stream *stream) {
  return stream != NULL && stream->capture == NULL && stream->index < HG_HOMES &&
         stream->executor->backend->streams->allocate != NULL && hg_stream_admit_locked(stream) == HG_OK;
}

static hg_status allocate_locked(hg_storage *storage, const hg_storage_wish *wish, hg_executor *executor) {
  const hg_backend *backend = executor->backend;
  uint32_t alignment = wish->alignment < HG_BACKEND_MIN_ALIGNMENT ? HG_BACKEND_MIN_ALIGNMENT : wish->alignment;
  int is_zeroed = !(wish->flags & HG_BUFFER_UNINIT);
  hg_stream *home = wish->stream;
  if (!can_be_home(home))
    return backend->allocate(executor->device, storage->byte_count, alignment, is_zeroed, &storage->address);
  HG_TRY(backend->streams->allocate(executor->device, home->device, storage->byte_count, alignment, is_zeroed,
                                    &storage->address));
  storage->born = ++executor->born;
  storage->home = home->index;
  storage->used = hg_stream_bit(home);
  home->given++; /* the host waits for the allocation as for other work on the memory */
  return HG_OK;
}

/* The device has retried after dropping its cache. Memory whose free is queued on streams is there when their work is
 * done. */
static hg_status allocate_at_last_locked(hg_storage *storage, const hg_storage_wish *wish, hg_executor *executor) {
  void **streams = NULL;
  hg_status status = allocate_locked(storage, wish, executor);
  if (status != HG_OUT_OF_MEMORY || hg_busy_streams_locked(executor, UINT64_MAX, &streams) == 0) return status;
  hg_settle_at_last_locked(executor);
  executor->backend->trim(executor->device);
  return allocate_locked(storage, wish, executor);
}

hg_status hg_stream_follow_home_locked(hg_stream *stream, const hg_storage *storage) {
  hg_executor *executor = stream->executor;
  hg_stream *home = ((hg_stream **)executor->streams.data)[storage->home];
  uint64_t *behind = &stream->behind[storage->home];
  if (home == NULL || home->opened >= storage->born) { /* the home is closed: all other work comes after its own */
    *behind = storage->born;
    return HG_OK;
  }
  if (home->finished != home->given)
    HG_TRY(executor->backend->streams->follow(executor->device, stream->device, home->device));
  *behind = executor->born;
  return HG_OK;
}

/* ---- storages ---------------------------------------------------------------------------------------------------- */

static void count_locked(hg_executor *executor, uint64_t byte_count) {
  executor->counts.allocations++;
  executor->counts.allocated_bytes += byte_count;
  executor->in_use += byte_count;
  if (executor->in_use > executor->most_in_use) executor->most_in_use = executor->in_use;
}

hg_status hg_storage_create(hg_executor *executor, uint64_t byte_count, const hg_storage_wish *wish, hg_storage **out) {
  hg_storage *storage = hg_allocate(&executor->allocator, 1, sizeof *storage);
  if (storage == NULL) return hg_fail_memory("a buffer object", sizeof *storage);
  atomic_init(&storage->references, 1);
  storage->byte_count = byte_count;
  hg_lock(executor);
  hg_status status = allocate_at_last_locked(storage, wish, executor);
  if (status == HG_OK) count_locked(executor, byte_count);
  hg_unlock(executor);
  if (status != HG_OK) {
    hg_release(&executor->allocator, storage);
    return status;
  }
  storage->executor = hg_executor_retain(executor);
  *out = storage;
  return HG_OK;
}

/* The free is work of the home: whoever waits for the cached memory waits for it, too. */
static void note_free_locked(hg_executor *executor, const hg_storage *storage) {
  hg_stream *home = storage->born != 0 ? ((hg_stream **)executor->streams.data)[storage->home] : NULL;
  if (home != NULL && home->opened < storage->born) home->given++;
}

/* If streams may have pending work on the memory, it is freed behind that work. */
static void free_locked(hg_executor *executor, hg_storage *storage) {
  void **streams = NULL;
  size_t count = 0;
  if (storage->used != 0) count = hg_busy_streams_locked(executor, storage->used, &streams);
  if (count == 0) executor->backend->free(executor->device, storage->address);
  else executor->backend->streams->free(executor->device, storage->address, streams, count);
  note_free_locked(executor, storage);
  executor->in_use -= storage->byte_count;
}

void hg_storage_release(hg_storage *storage) {
  if (storage == NULL || !hg_unreference(&storage->references)) return;
  hg_executor *executor = storage->executor;
  if (!storage->foreign) {
    hg_lock(executor);
    free_locked(executor, storage);
    hg_unlock(executor);
  }
  hg_release(&executor->allocator, storage);
  hg_executor_release(executor);
}

/* ---- totals ------------------------------------------------------------------------------------------------------ */

hg_status hg_memory_query(hg_executor *executor, hg_memory_info *info) {
  if (executor == NULL || info == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_memory_query: an argument is NULL");
  HG_TRY(HG_CHECK_RESULT(hg_memory_info, info));
  hg_device_memory memory;
  hg_lock(executor);
  executor->backend->memory(executor->device, &memory);
  hg_memory_info result = {.in_use = executor->in_use,
                           .most_in_use = executor->most_in_use,
                           .kept = memory.kept,
                           .kept_most = memory.kept_most,
                           .device_free = memory.free_bytes,
                           .device_bytes = memory.all_bytes};
  hg_unlock(executor);
  return HG_WRITE(hg_memory_info, info, &result);
}

hg_status hg_memory_trim(hg_executor *executor) {
  if (executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_memory_trim: the executor is NULL");
  hg_lock(executor);
  hg_settle_at_last_locked(executor);
  executor->backend->trim(executor->device);
  hg_unlock(executor);
  return HG_OK;
}

hg_status hg_memory_keep(hg_executor *executor, uint64_t byte_count) {
  if (executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_memory_keep: the executor is NULL");
  hg_lock(executor);
  executor->backend->keep(executor->device, byte_count);
  hg_unlock(executor);
  return HG_OK;
}
