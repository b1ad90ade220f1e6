/* storage.c - memory of arrays and buffers: the library's own, or somebody else's, who is asked to keep it. */
#include "hgpy.h"

/* On the CPU a buffer's memory is the host's and stays where it is as long as the buffer lives. */
static void find_address(hgpy_storage *storage) {
  if (storage->device->backend != HG_BACKEND_CPU || storage->byte_count == 0) return;
  if (hg_buffer_map(storage->buffer, &storage->address) == HG_OK) (void)hg_buffer_unmap(storage->buffer);
}

static hgpy_storage *make_storage(hgpy_device *device, uint64_t byte_count) {
  hgpy_storage *storage = PyMem_Malloc(sizeof *storage);
  if (storage == NULL) return (hgpy_storage *)PyErr_NoMemory();
  *storage = (hgpy_storage){.references = 1, .device = hgpy_device_retain(device), .byte_count = byte_count};
  return storage;
}

enum { LARGE_BYTES = 1 << 20 };

hgpy_storage *hgpy_storage_create(hgpy_device *device, uint64_t byte_count, bool is_zero) {
  hgpy_storage *storage = make_storage(device, byte_count);
  if (storage == NULL) return NULL;
  hg_buffer_desc desc = {.size = sizeof desc, .flags = is_zero ? 0 : HG_BUFFER_UNINIT};
  hg_status status;
  if (byte_count < LARGE_BYTES) {
    status = hg_buffer_create(device->executor, &desc, byte_count, &storage->buffer);
  } else {
    Py_BEGIN_ALLOW_THREADS
    status = hg_buffer_create(device->executor, &desc, byte_count, &storage->buffer);
    Py_END_ALLOW_THREADS
  }
  if (hgpy_ok(status)) {
    find_address(storage);
    return storage;
  }
  hgpy_storage_release(storage);
  return NULL;
}

hgpy_storage *hgpy_storage_import(hgpy_device *device, void *memory, uint64_t byte_count, void *owner,
                                  void (*release)(void *owner)) {
  hgpy_storage *storage = make_storage(device, byte_count);
  if (storage == NULL) {
    release(owner);
    return NULL;
  }
  storage->owner = owner;
  storage->release = release;
  storage->is_foreign = true;
  if (device->backend == HG_BACKEND_CPU) storage->address = memory;
  static char nothing[8];
  hg_status status =
      hg_buffer_import(device->executor, byte_count > 0 ? memory : nothing, byte_count, &storage->buffer);
  if (hgpy_ok(status)) return storage;
  hgpy_storage_release(storage);
  return NULL;
}

hgpy_storage *hgpy_storage_retain(hgpy_storage *storage) {
  if (storage != NULL) storage->references++;
  return storage;
}

void hgpy_storage_release(hgpy_storage *storage) {
  if (storage == NULL || --storage->references > 0) return;
  if (storage->is_foreign) hgpy_settle_own(storage->device); /* what uses others' memory comes to its end first */
  hg_buffer_release(storage->buffer);
  if (storage->release != NULL) storage->release(storage->owner);
  hgpy_device_release(storage->device);
  PyMem_Free(storage);
}
