/* storage.c - memory of arrays and buffers: the library's own, or another owner's, who is asked to keep it. */
#include "hgpy.h"

static hgpy_storage *make_storage(hgpy_device *device, uint64_t byte_count) {
  hgpy_storage *storage = PyMem_Malloc(sizeof *storage);
  if (storage == NULL) return (hgpy_storage *)PyErr_NoMemory();
  *storage = (hgpy_storage){.references = 1, .device = hgpy_device_retain(device), .byte_count = byte_count};
  return storage;
}

static void destroy(hgpy_storage *storage) {
  hg_buffer_release(storage->buffer);
  PyMem_Free(storage);
}

/* ---- cached memory ----------------------------------------------------------------------------------------------- */

/* Results of short computations have few sizes. Allocating and releasing one takes as long as a thousand additions, so
 * the CPU's are cached, up to some megabytes. */
enum { KEPT_BYTES = 65536, MOST_KEPT = 64 };

static hgpy_storage **kept_list(hgpy_device *device, uint64_t byte_count) {
  return &device->kept[byte_count * UINT64_C(0x9e3779b97f4a7c15) >> 60 & (HGPY_KEPT_LISTS - 1)];
}

static hgpy_storage *take_kept(hgpy_device *device, uint64_t byte_count) {
  hgpy_storage **at = kept_list(device, byte_count);
  while (*at != NULL && (*at)->byte_count != byte_count) at = &(*at)->next;
  hgpy_storage *storage = *at;
  if (storage == NULL) return NULL;
  *at = storage->next;
  device->kept_count--;
  storage->references = 1;
  storage->is_read_only = false;
  storage->device = hgpy_device_retain(device);
  return storage;
}

static void forget_kept(hgpy_device *device) {
  for (uint32_t i = 0; i < HGPY_KEPT_LISTS; i++)
    while (device->kept[i] != NULL) {
      hgpy_storage *storage = device->kept[i];
      device->kept[i] = storage->next;
      destroy(storage);
    }
  device->kept_count = 0;
}

/* A cached storage does not reference its device, and ends with it. */
static void keep(hgpy_storage *storage) {
  hgpy_device *device = storage->device;
  if (device->kept_count == MOST_KEPT) forget_kept(device);
  hgpy_storage **list = kept_list(device, storage->byte_count);
  storage->next = *list;
  *list = storage;
  device->kept_count++;
  hgpy_device_release(device);
}

/* The same foreign memory is borrowed repeatedly, as a tensor's is by each operation on it. Making a buffer over it
 * takes as long as the rest of borrowing, so the last ones are cached: each for its own memory, and read by nobody
 * until that memory is borrowed again. (It has no handle by which a program could find it.) */
static hgpy_storage **lent_place(hgpy_device *device, const void *memory, uint64_t byte_count) {
  uint64_t hash = ((uint64_t)(uintptr_t)memory ^ byte_count) * UINT64_C(0x9e3779b97f4a7c15);
  return &device->lent[hash >> 58 & (HGPY_LENT - 1)];
}

static hgpy_storage *take_lent(hgpy_device *device, const void *memory, uint64_t byte_count) {
  hgpy_storage **place = lent_place(device, memory, byte_count), *storage = *place;
  if (storage == NULL || storage->memory != memory || storage->byte_count != byte_count) return NULL;
  *place = NULL;
  storage->references = 1;
  storage->is_read_only = storage->is_lent = false;
  storage->device = hgpy_device_retain(device);
  return storage;
}

static void keep_lent(hgpy_storage *storage) {
  hgpy_storage **place = lent_place(storage->device, storage->memory, storage->byte_count), *old = *place;
  *place = storage;
  if (old != NULL) destroy(old);
}

uint64_t hgpy_storage_kept_bytes(const hgpy_device *device) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < HGPY_KEPT_LISTS; i++)
    for (const hgpy_storage *storage = device->kept[i]; storage != NULL; storage = storage->next)
      sum += storage->byte_count;
  return sum;
}

void hgpy_storage_forget(hgpy_device *device) {
  forget_kept(device);
  for (uint32_t i = 0; i < HGPY_LENT; i++) {
    hgpy_storage *storage = device->lent[i];
    device->lent[i] = NULL;
    if (storage != NULL) destroy(storage);
  }
}

/* ---- making and releasing ---------------------------------------------------------------------------------------- */

enum { LARGE_BYTES = 1 << 20 };

static hg_status create_buffer(hgpy_device *device, const hg_buffer_desc *desc, uint64_t byte_count, hg_buffer **out) {
  hg_status status;
  if (byte_count < LARGE_BYTES) return hg_buffer_create(device->executor, desc, byte_count, out);
  HGPY_BEGIN_CALL
  status = hg_buffer_create(device->executor, desc, byte_count, out);
  HGPY_END_CALL
  return status;
}

static hgpy_storage *create(hgpy_device *device, uint64_t byte_count, bool is_zero, hg_stream *stream) {
  hgpy_release_reached(device);
  hgpy_storage *storage = is_zero ? NULL : take_kept(device, byte_count);
  if (storage != NULL) return storage;
  storage = make_storage(device, byte_count);
  if (storage == NULL) return NULL;
  hg_buffer_desc desc = {.size = sizeof desc, .flags = is_zero ? 0 : HG_BUFFER_UNINIT, .stream = stream};
  hg_status status = create_buffer(device, &desc, byte_count, &storage->buffer);
  if (status == HG_OUT_OF_MEMORY && device->behind != NULL) {
    hgpy_release_all_behind(device);
    status = create_buffer(device, &desc, byte_count, &storage->buffer);
  }
  if (status == HG_OUT_OF_MEMORY && hgpy_trim_others(device))
    status = create_buffer(device, &desc, byte_count, &storage->buffer);
  if (hgpy_ok(status)) {
    if (device->backend == HG_BACKEND_CPU) storage->address = hg_buffer_address(storage->buffer);
    return storage;
  }
  hgpy_storage_release(storage);
  return NULL;
}

hgpy_storage *hgpy_storage_create(hgpy_device *device, uint64_t byte_count, bool is_zero) {
  return create(device, byte_count, is_zero, NULL);
}

hgpy_storage *hgpy_storage_for_work(hgpy_device *device, uint64_t byte_count) {
  return create(device, byte_count, false, device->stream);
}

void hgpy_give_back(void *owner, void (*release)(void *owner)) {
  PyObject *type, *value, *traceback;
  if (!PyErr_Occurred()) {
    release(owner);
    if (PyErr_Occurred()) PyErr_Clear();
    return;
  }
  PyErr_Fetch(&type, &value, &traceback); /* perhaps the reason of the release: owners may run Python code */
  release(owner);
  PyErr_Restore(type, value, traceback);
}

hgpy_storage *hgpy_storage_blank(hgpy_device *device, uint64_t byte_count) {
  hgpy_storage *storage = make_storage(device, byte_count);
  if (storage != NULL) storage->is_blank = true;
  return storage;
}

hgpy_storage *hgpy_storage_for_result(hgpy_device *device, uint64_t byte_count) {
  return hgpy_is_warming() ? hgpy_storage_blank(device, byte_count) : hgpy_storage_for_work(device, byte_count);
}

/* NULL: raised. */
static hgpy_storage *storage_over(hgpy_device *device, void *memory, uint64_t byte_count) {
  static char nothing[8];
  hgpy_storage *storage = take_lent(device, memory, byte_count);
  if (storage != NULL) return storage;
  storage = make_storage(device, byte_count);
  if (storage == NULL) return NULL;
  storage->is_foreign = true;
  storage->memory = memory;
  if (device->backend == HG_BACKEND_CPU) storage->address = memory;
  hg_status status =
      hg_buffer_import(device->executor, byte_count > 0 ? memory : nothing, byte_count, &storage->buffer);
  if (hgpy_ok(status)) return storage;
  hgpy_storage_release(storage);
  return NULL;
}

hgpy_storage *hgpy_storage_import(hgpy_device *device, void *memory, uint64_t byte_count, void *owner,
                                  void (*release)(void *owner)) {
  hgpy_storage *storage = storage_over(device, memory, byte_count);
  if (storage == NULL) {
    hgpy_give_back(owner, release);
    return NULL;
  }
  storage->owner = owner;
  storage->release = release;
  return storage;
}

hgpy_storage *hgpy_storage_lend(hgpy_device *device, void *memory, uint64_t byte_count) {
  hgpy_storage *storage = storage_over(device, memory, byte_count);
  if (storage != NULL) storage->is_lent = true;
  return storage;
}

hgpy_storage *hgpy_storage_of(hgpy_device *device, hg_buffer *buffer) {
  hgpy_storage *storage = make_storage(device, hg_buffer_size(buffer));
  if (storage == NULL) {
    hg_buffer_release(buffer);
    return NULL;
  }
  storage->buffer = buffer;
  if (device->backend == HG_BACKEND_CPU) storage->address = hg_buffer_address(buffer);
  return storage;
}

/* Memory of the executor, which keeps it. */
hgpy_storage *hgpy_storage_of_boundary(hgpy_device *device, uint64_t offset, uint64_t byte_count) {
  hgpy_storage *storage = make_storage(device, byte_count);
  if (storage == NULL) return NULL;
  storage->is_foreign = true;
  if (hgpy_ok(hg_boundary_buffer(device->executor, offset, byte_count, &storage->buffer))) {
    if (device->backend == HG_BACKEND_CPU) storage->address = hg_buffer_address(storage->buffer);
    return storage;
  }
  hgpy_storage_release(storage);
  return NULL;
}

hgpy_storage *hgpy_storage_retain(hgpy_storage *storage) {
  if (storage != NULL) storage->references++;
  return storage;
}

static bool has_work(const hgpy_storage *storage) {
  return storage->is_foreign && !storage->is_lent && !storage->is_settled && storage->device->stream != NULL;
}

void hgpy_storage_release(hgpy_storage *storage) {
  if (storage == NULL || --storage->references > 0) return;
  hgpy_device *device = storage->device;
  if (!storage->is_foreign && storage->address != NULL && storage->byte_count <= KEPT_BYTES) {
    keep(storage);
    return;
  }
  if (has_work(storage)) { /* work that uses foreign memory ends first */
    storage->references = 1;
    storage->is_settled = true;
    if (storage->was_queued) hgpy_settle(device, device->stream);
    hgpy_release_behind(device, device->stream, storage);
    return;
  }
  void *owner = storage->owner;
  void (*release)(void *) = storage->release;
  bool may_come_again = storage->is_lent || (release != NULL && device->backend == HG_BACKEND_CPU);
  storage->owner = NULL;
  storage->release = NULL;
  if (may_come_again && storage->buffer != NULL && !storage->was_queued) keep_lent(storage);
  else destroy(storage);
  if (release != NULL) hgpy_give_back(owner, release);
  hgpy_device_release(device);
}
