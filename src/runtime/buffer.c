/* buffer.c - buffers and views over storages, their copies, and the table of their handles. */
#include "runtime/runtime.h"

#include <string.h>

/* ---- work for a stream ------------------------------------------------------------------------------------------- */

static hg_status submit_locked(hg_stream *stream, hg_work *work, hg_storage *storage, hg_storage *other) {
  if (storage->map_count > 0 || other->map_count > 0)
    return hg_fail(HG_BUSY, "the buffer is mapped; unmap it before a stream is given work for it");
  HG_TRY(hg_stream_admit_locked(stream));
  if (stream->capture != NULL) {
    HG_TRY(hg_graph_keep_locked(stream->capture, storage));
    if (other != storage) HG_TRY(hg_graph_keep_locked(stream->capture, other));
  } else {
    HG_TRY(hg_stream_reach_locked(stream, storage));
    HG_TRY(hg_stream_reach_locked(stream, other));
  }
  storage->used |= hg_stream_bit(stream);
  other->used |= hg_stream_bit(stream);
  if (work->kind != HG_WORK_COPY_OUT) hg_note_write_locked(storage);
  return hg_stream_submit_locked(stream, work, NULL, 0, NULL);
}

/* A copy or fill on a storage, or a copy between two. */
static hg_status submit(hg_stream *stream, hg_work *work, hg_storage *storage, hg_storage *other) {
  HG_TRY(hg_check_stream("the stream", storage->executor, stream));
  hg_lock(storage->executor);
  hg_graph *keeper = stream->capture;
  size_t kept = keeper != NULL ? keeper->storages.count : 0;
  hg_status status = submit_locked(stream, work, storage, other);
  if (status != HG_OK && keeper != NULL) hg_graph_forget_locked(keeper, kept);
  hg_unlock(storage->executor);
  return status;
}

hg_status hg_storage_write(hg_storage *storage, uint64_t offset, const void *source, uint64_t byte_count,
                           hg_stream *stream) {
  if (byte_count == 0) return HG_OK;
  if (source == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "the source of a write of %llu bytes is NULL", (unsigned long long)byte_count);
  hg_executor *executor = storage->executor;
  uint8_t *to = storage->address + offset;
  if (stream != NULL) {
    hg_work work = {.kind = HG_WORK_COPY_IN, .to = to, .from = source, .byte_count = byte_count};
    return submit(stream, &work, storage, storage);
  }
  hg_lock(executor);
  hg_status status = hg_settle_locked(executor, &storage->used);
  if (status == HG_OK) status = executor->backend->copy_in(executor->device, to, source, byte_count);
  hg_unlock(executor);
  return status;
}

hg_status hg_storage_read(hg_storage *storage, uint64_t offset, void *destination, uint64_t byte_count,
                          hg_stream *stream) {
  if (byte_count == 0) return HG_OK;
  if (destination == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "the destination of a read of %llu bytes is NULL",
                   (unsigned long long)byte_count);
  hg_executor *executor = storage->executor;
  const uint8_t *from = storage->address + offset;
  if (stream != NULL) {
    hg_work work = {.kind = HG_WORK_COPY_OUT, .to = destination, .from = from, .byte_count = byte_count};
    return submit(stream, &work, storage, storage);
  }
  hg_lock(executor);
  hg_status status = hg_settle_locked(executor, &storage->used);
  if (status == HG_OK) status = executor->backend->copy_out(executor->device, destination, from, byte_count);
  hg_unlock(executor);
  return status;
}

/* ---- handles ----------------------------------------------------------------------------------------------------- */

static hg_handle_slot *slot_at(hg_executor *executor, uint32_t number) {
  return (hg_handle_slot *)executor->handles.data + number;
}

static hg_status handle_take_locked(hg_executor *executor, hg_buffer *buffer) {
  if (executor->first_free_handle == 0) {
    if (executor->handles.count >= UINT32_MAX - 1) return hg_fail(HG_OUT_OF_MEMORY, "an executor has too many buffers");
    if (hg_array_append(&executor->allocator, &executor->handles, NULL, 1) == NULL)
      return hg_fail_memory("the table of buffers", (executor->handles.count + 1) * sizeof(hg_handle_slot));
    executor->first_free_handle = (uint32_t)executor->handles.count;
  }
  uint32_t number = executor->first_free_handle - 1;
  hg_handle_slot *slot = slot_at(executor, number);
  executor->first_free_handle = slot->next_free;
  slot->buffer = buffer;
  buffer->handle = (uint64_t)slot->generation << 32 | (number + 1u);
  return HG_OK;
}

static void handle_give_back_locked(hg_executor *executor, uint64_t handle) {
  uint32_t number = (uint32_t)handle - 1;
  hg_handle_slot *slot = slot_at(executor, number);
  slot->buffer = NULL;
  slot->generation++;
  slot->next_free = executor->first_free_handle;
  executor->first_free_handle = number + 1;
}

hg_buffer *hg_handle_find_locked(hg_executor *executor, uint64_t handle) {
  uint32_t number = (uint32_t)handle;
  if (number == 0 || number > executor->handles.count) return NULL;
  hg_handle_slot *slot = slot_at(executor, number - 1);
  return slot->generation == (uint32_t)(handle >> 32) ? slot->buffer : NULL;
}

/* ---- buffers ----------------------------------------------------------------------------------------------------- */

static hg_buffer *begin(hg_buffer *buffer, hg_storage *storage, uint64_t offset, uint64_t byte_count) {
  atomic_init(&buffer->references, 1);
  buffer->storage = storage;
  buffer->offset = offset;
  buffer->byte_count = byte_count;
  return buffer;
}

hg_status hg_buffer_over(hg_storage *storage, uint64_t offset, uint64_t byte_count, hg_buffer **out) {
  hg_buffer *buffer = hg_allocate(&storage->executor->allocator, 1, sizeof *buffer);
  if (buffer == NULL) return hg_fail_memory("a buffer object", sizeof *buffer);
  hg_reference(&storage->references);
  *out = begin(buffer, storage, offset, byte_count);
  return HG_OK;
}

hg_buffer *hg_buffer_first(hg_storage *storage, uint64_t offset, uint64_t byte_count) {
  return begin(&storage->first, storage, offset, byte_count);
}

hg_status hg_buffer_create(hg_executor *executor, const hg_buffer_desc *desc, uint64_t byte_count, hg_buffer **out) {
  hg_buffer_desc own;
  if (executor == NULL || out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_create: an argument is NULL");
  *out = NULL;
  HG_TRY(HG_READ(hg_buffer_desc, &own, desc));
  if (own.flags & ~(uint32_t)HG_BUFFER_UNINIT)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_desc.flags 0x%x has a bit that means nothing", (unsigned)own.flags);
  uint32_t alignment = own.alignment;
  if (alignment > HG_BACKEND_MAX_ALIGNMENT || (alignment & (alignment - 1)) != 0)
    return hg_fail(HG_INVALID_ARGUMENT, "a buffer's alignment must be a power of two up to %d, not %u",
                   HG_BACKEND_MAX_ALIGNMENT, (unsigned)alignment);
  if (own.stream != NULL) HG_TRY(hg_check_stream("hg_buffer_desc.stream", executor, own.stream));
  const hg_storage_wish wish = {.alignment = alignment, .flags = own.flags, .stream = own.stream};
  hg_storage *storage = NULL;
  HG_TRY(hg_storage_create(executor, byte_count, &wish, &storage));
  *out = hg_buffer_first(storage, 0, byte_count);
  return HG_OK;
}

hg_status hg_buffer_view(hg_buffer *parent, uint64_t offset, uint64_t byte_count, hg_buffer **out) {
  if (parent == NULL || out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_view: an argument is NULL");
  *out = NULL;
  HG_TRY(hg_check_range("a buffer", parent->byte_count, offset, byte_count));
  return hg_buffer_over(parent->storage, parent->offset + offset, byte_count, out);
}

hg_buffer *hg_buffer_retain(hg_buffer *buffer) {
  if (buffer != NULL) hg_reference(&buffer->references);
  return buffer;
}

static hg_status unmap_locked(hg_buffer *buffer) {
  hg_executor *executor = buffer->storage->executor;
  return executor->backend->unmap(executor->device, buffer->storage->address, buffer->offset, buffer->byte_count);
}

static void end_locked(hg_buffer *buffer) {
  if (buffer->handle != 0) handle_give_back_locked(buffer->storage->executor, buffer->handle);
  buffer->storage->map_count -= buffer->map_count;
  for (; buffer->map_count > 0; buffer->map_count--) /* its maps end with the buffer */
    (void)unmap_locked(buffer);
}

void hg_buffer_release(hg_buffer *buffer) {
  if (buffer == NULL || !hg_unreference(&buffer->references)) return;
  hg_storage *storage = buffer->storage;
  hg_executor *executor = storage->executor;
  if (buffer->handle != 0 || buffer->map_count > 0) {
    hg_lock(executor);
    end_locked(buffer);
    hg_unlock(executor);
  }
  if (buffer != &storage->first) hg_release(&executor->allocator, buffer);
  hg_storage_release(storage); /* last, because it may release the executor */
}

uint64_t hg_buffer_size(const hg_buffer *buffer) { return buffer != NULL ? buffer->byte_count : 0; }

/* Made at the first call: most buffers are never asked for a handle. */
uint64_t hg_buffer_handle(const hg_buffer *buffer) {
  if (buffer == NULL) return 0;
  hg_executor *executor = buffer->storage->executor;
  hg_buffer *own = (hg_buffer *)(uintptr_t)buffer; /* const to its user: nothing that he can see changes */
  hg_lock(executor);
  if (own->handle == 0) (void)handle_take_locked(executor, own);
  uint64_t handle = own->handle;
  hg_unlock(executor);
  return handle;
}

void *hg_buffer_address(const hg_buffer *buffer) {
  return buffer != NULL && buffer->byte_count > 0 ? buffer->storage->address + buffer->offset : NULL;
}

hg_status hg_buffer_write_async(hg_buffer *buffer, uint64_t offset, const void *source, uint64_t byte_count,
                                hg_stream *stream) {
  if (buffer == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_write: the buffer is NULL");
  HG_TRY(hg_check_range("a buffer", buffer->byte_count, offset, byte_count));
  return hg_storage_write(buffer->storage, buffer->offset + offset, source, byte_count, stream);
}

hg_status hg_buffer_write(hg_buffer *buffer, uint64_t offset, const void *source, uint64_t byte_count) {
  return hg_buffer_write_async(buffer, offset, source, byte_count, NULL);
}

hg_status hg_buffer_read_async(hg_buffer *buffer, uint64_t offset, void *destination, uint64_t byte_count,
                               hg_stream *stream) {
  if (buffer == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_read: the buffer is NULL");
  HG_TRY(hg_check_range("a buffer", buffer->byte_count, offset, byte_count));
  return hg_storage_read(buffer->storage, buffer->offset + offset, destination, byte_count, stream);
}

hg_status hg_buffer_read(hg_buffer *buffer, uint64_t offset, void *destination, uint64_t byte_count) {
  return hg_buffer_read_async(buffer, offset, destination, byte_count, NULL);
}

/* A stream has no scratch memory for a copy between overlapping ranges. */
static hg_status submit_copy(hg_stream *stream, hg_work *work, hg_storage *to, hg_storage *from) {
  uintptr_t first = (uintptr_t)work->to, second = (uintptr_t)work->from;
  if ((first > second ? first - second : second - first) < work->byte_count)
    return hg_fail(HG_INVALID_ARGUMENT,
                   "the ranges of a copy of %llu bytes on a stream overlap; copy them without a stream, or in parts",
                   (unsigned long long)work->byte_count);
  return submit(stream, work, to, from);
}

hg_status hg_buffer_copy_async(hg_buffer *destination, uint64_t destination_offset, hg_buffer *source,
                               uint64_t source_offset, uint64_t byte_count, hg_stream *stream) {
  if (destination == NULL || source == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_copy: a buffer is NULL");
  hg_executor *executor = destination->storage->executor;
  HG_TRY(hg_check_range("the destination buffer", destination->byte_count, destination_offset, byte_count));
  HG_TRY(hg_check_range("the source buffer", source->byte_count, source_offset, byte_count));
  if (byte_count == 0) return HG_OK;
  if (source->storage->executor != executor && stream != NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "the two buffers belong to different executors; copy them without a stream");
  if (source->storage->executor != executor)
    return hg_copy_between(destination->storage, destination->offset + destination_offset, source->storage,
                           source->offset + source_offset, byte_count);
  uint8_t *to = destination->storage->address + destination->offset + destination_offset;
  const uint8_t *from = source->storage->address + source->offset + source_offset;
  if (stream != NULL) {
    hg_work work = {.kind = HG_WORK_COPY_WITHIN, .to = to, .from = from, .byte_count = byte_count};
    return submit_copy(stream, &work, destination->storage, source->storage);
  }
  hg_lock(executor);
  hg_status status = hg_settle_locked(executor, &source->storage->used);
  if (status == HG_OK) status = hg_settle_locked(executor, &destination->storage->used);
  if (status == HG_OK) status = executor->backend->copy_within(executor->device, to, from, byte_count);
  hg_unlock(executor);
  return status;
}

hg_status hg_buffer_copy(hg_buffer *destination, uint64_t destination_offset, hg_buffer *source, uint64_t source_offset,
                         uint64_t byte_count) {
  return hg_buffer_copy_async(destination, destination_offset, source, source_offset, byte_count, NULL);
}

static hg_status check_pattern(uint64_t byte_count, size_t pattern_size) {
  if (pattern_size != 1 && pattern_size != 2 && pattern_size != 4 && pattern_size != 8)
    return hg_fail(HG_INVALID_ARGUMENT, "a fill pattern has 1, 2, 4 or 8 bytes, not %zu", pattern_size);
  if (byte_count % pattern_size != 0)
    return hg_fail(HG_INVALID_ARGUMENT, "a fill of %llu bytes is not a multiple of its pattern's %zu",
                   (unsigned long long)byte_count, pattern_size);
  return HG_OK;
}

hg_status hg_buffer_fill_async(hg_buffer *buffer, uint64_t offset, uint64_t byte_count, const void *pattern,
                               size_t pattern_size, hg_stream *stream) {
  if (buffer == NULL || pattern == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_fill: an argument is NULL");
  HG_TRY(check_pattern(byte_count, pattern_size));
  HG_TRY(hg_check_range("a buffer", buffer->byte_count, offset, byte_count));
  if (byte_count == 0) return HG_OK;
  hg_executor *executor = buffer->storage->executor;
  uint8_t *first = buffer->storage->address + buffer->offset + offset;
  if (stream != NULL) {
    hg_work work = {.kind = HG_WORK_FILL, .to = first, .byte_count = byte_count, .pattern_size = pattern_size};
    memcpy(work.pattern, pattern, pattern_size);
    return submit(stream, &work, buffer->storage, buffer->storage);
  }
  hg_lock(executor);
  hg_status status = hg_settle_locked(executor, &buffer->storage->used);
  if (status == HG_OK) status = executor->backend->fill(executor->device, first, byte_count, pattern, pattern_size);
  hg_unlock(executor);
  return status;
}

hg_status hg_buffer_fill(hg_buffer *buffer, uint64_t offset, uint64_t byte_count, const void *pattern,
                         size_t pattern_size) {
  return hg_buffer_fill_async(buffer, offset, byte_count, pattern, pattern_size, NULL);
}

/* ---- mapping ----------------------------------------------------------------------------------------------------- */

hg_status hg_buffer_map(hg_buffer *buffer, void **memory) {
  if (buffer == NULL || memory == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_map: an argument is NULL");
  *memory = NULL;
  hg_storage *storage = buffer->storage;
  hg_executor *executor = storage->executor;
  if (storage->foreign && !executor->backend->memory_is_host)
    return hg_fail(HG_UNSUPPORTED, "imported memory of a GPU cannot be mapped; it is read and written by copies");
  hg_lock(executor);
  hg_status status = hg_settle_locked(executor, &storage->used);
  if (status == HG_OK)
    status = executor->backend->map(executor->device, storage->address, buffer->offset, buffer->byte_count, memory);
  if (status == HG_OK) {
    buffer->map_count++;
    storage->map_count++;
  }
  hg_unlock(executor);
  return status;
}

hg_status hg_buffer_unmap(hg_buffer *buffer) {
  if (buffer == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_unmap: the buffer is NULL");
  hg_storage *storage = buffer->storage;
  hg_executor *executor = storage->executor;
  hg_status status = HG_OK;
  hg_lock(executor);
  if (buffer->map_count == 0) {
    status = hg_fail(HG_INVALID_ARGUMENT, "hg_buffer_unmap: the buffer is not mapped");
  } else {
    status = unmap_locked(buffer);
    buffer->map_count--;
    storage->map_count--;
  }
  hg_unlock(executor);
  return status;
}
