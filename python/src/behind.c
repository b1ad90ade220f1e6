/* behind.c - releases storages that a GPU's stream may still use. Each is released once an event recorded behind that
 * work is reached, which is tested now and then. Nobody waits unless much memory is pending. */
#include "hgpy.h"

/* The bounds of pending releases: other users of the device may need the memory, and cannot ask for it here. */
enum { MOST_BEHIND = 64, MOST_BYTES = 256 << 20 };

/* A pending release, or a spare entry. */
struct hgpy_behind {
  hgpy_behind *next;
  hg_event *event;
  hgpy_storage *storage; /* holds a reference to the device */
};

static hgpy_behind *take_spare(hgpy_device *device) {
  hgpy_behind *b = device->spare_behind;
  if (b != NULL) return device->spare_behind = b->next, b;
  b = PyMem_Calloc(1, sizeof *b);
  if (b == NULL || hg_event_create(device->executor, NULL, &b->event) == HG_OK) return b;
  PyMem_Free(b);
  return NULL;
}

static void append(hgpy_device *device, hgpy_behind *b) {
  hgpy_behind **end = &device->behind;
  while (*end != NULL) end = &(*end)->next;
  b->next = NULL;
  *end = b;
  device->behind_count++;
  device->behind_bytes += b->storage->byte_count;
}

/* The caller holds the device. */
static void release_first(hgpy_device *device) {
  hgpy_behind *b = device->behind;
  hgpy_storage *storage = b->storage;
  device->behind = b->next;
  device->behind_count--;
  device->behind_bytes -= storage->byte_count;
  b->storage = NULL;
  b->next = device->spare_behind;
  device->spare_behind = b;
  hgpy_storage_release(storage); /* may run Python */
}

/* False: another thread has released it meanwhile. */
static bool wait_for_first(hgpy_device *device) {
  hgpy_behind *b = device->behind;
  HGPY_BEGIN_CALL
  (void)hg_event_wait(b->event);
  HGPY_END_CALL
  return device->behind == b && hg_event_query(b->event) != HG_BUSY; /* it may be pending again */
}

void hgpy_release_reached(hgpy_device *device) {
  if (device->behind == NULL) return;
  hgpy_device_retain(device);
  while (device->behind != NULL && hg_event_query(device->behind->event) != HG_BUSY) release_first(device);
  hgpy_device_release(device);
}

void hgpy_release_all_behind(hgpy_device *device) {
  hgpy_device_retain(device);
  while (device->behind != NULL)
    if (wait_for_first(device)) release_first(device);
  hgpy_device_release(device);
}

void hgpy_release_behind(hgpy_device *device, hg_stream *stream, hgpy_storage *storage) {
  hgpy_release_reached(device);
  bool is_busy = hg_stream_query(stream) == HG_BUSY;
  hgpy_behind *b = is_busy ? take_spare(device) : NULL;
  if (b != NULL && hg_event_record(b->event, stream) == HG_OK) {
    b->storage = storage;
    append(device, b);
    hgpy_device_retain(device);
    while (device->behind_count > MOST_BEHIND || device->behind_bytes > MOST_BYTES)
      if (wait_for_first(device)) release_first(device);
    hgpy_device_release(device);
    return;
  }
  if (b != NULL) {
    b->next = device->spare_behind;
    device->spare_behind = b;
  }
  if (is_busy) hgpy_settle(device, stream);
  hgpy_storage_release(storage);
}

void hgpy_behind_end(hgpy_device *device) {
  while (device->spare_behind != NULL) {
    hgpy_behind *b = device->spare_behind;
    device->spare_behind = b->next;
    hg_event_release(b->event);
    PyMem_Free(b);
  }
}
