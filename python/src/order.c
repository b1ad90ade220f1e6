/* order.c - the order of a GPU's work between this package's stream of a device and the streams of other libraries that
 * share its memory. A foreign stream is given by its driver's handle; 1 is the driver's default stream, 2 the
 * per-thread one. */
#include "hgpy.h"

static hg_status make_mark(hgpy_device *device) {
  return device->mark != NULL ? HG_OK : hg_event_create(device->executor, NULL, &device->mark);
}

/* Cached, because making one calls the driver, and releasing one waits for its work. */
static hg_status find_foreign(hgpy_device *device, uintptr_t handle, hg_stream **stream) {
  hgpy_foreign *places = device->foreign;
  uint32_t at = 0;
  while (at < HGPY_FOREIGN && places[at].handle != handle) at++;
  if (at == HGPY_FOREIGN) {
    hg_stream_desc desc = {.size = sizeof desc, .foreign = (void *)handle};
    hg_stream *made = NULL;
    hg_status status = hg_stream_create(device->executor, &desc, &made);
    if (status != HG_OK) return status;
    at = device->next_foreign++ % HGPY_FOREIGN;
    hg_stream_release(places[at].stream);
    places[at] = (hgpy_foreign){.handle = handle, .stream = made};
  }
  *stream = places[at].stream;
  return HG_OK;
}

hg_stream *hgpy_stream_of_others(hgpy_device *device, uintptr_t handle) {
  hg_stream *theirs = NULL;
  return hgpy_ok(find_foreign(device, handle, &theirs)) ? hg_stream_retain(theirs) : NULL;
}

static hg_status order(hgpy_device *device, uintptr_t handle, bool is_after) {
  hg_stream *theirs = NULL;
  hg_status status = make_mark(device);
  if (status == HG_OK) status = find_foreign(device, handle, &theirs);
  if (status == HG_OK) status = hg_event_record(device->mark, is_after ? theirs : device->stream);
  return status == HG_OK ? hg_stream_wait_event(is_after ? device->stream : theirs, device->mark) : status;
}

bool hgpy_order_after(hgpy_device *device, uintptr_t handle) {
  return device->stream == NULL || hgpy_ok(order(device, handle, true));
}

bool hgpy_order_before(hgpy_device *device, uintptr_t handle) {
  return device->stream == NULL || hgpy_ok(order(device, handle, false));
}

hg_status hgpy_order_behind(hgpy_device *device, hg_stream *stream) {
  if (device->stream == NULL) return HG_OK;
  hg_status status = make_mark(device);
  if (status == HG_OK) status = hg_event_record(device->mark, stream);
  return status == HG_OK ? hg_stream_wait_event(device->stream, device->mark) : status;
}

void hgpy_settle(hgpy_device *device, hg_stream *stream) {
  if (hg_stream_query(stream) != HG_BUSY) return;
  HGPY_BEGIN_CALL
  if (make_mark(device) == HG_OK && hg_event_record(device->mark, stream) == HG_OK) (void)hg_event_wait(device->mark);
  HGPY_END_CALL
}

void hgpy_release_after(hgpy_device *device, uintptr_t handle, hgpy_storage *storage) {
  hg_stream *theirs = NULL;
  if (device->stream == NULL || find_foreign(device, handle, &theirs) != HG_OK) {
    hgpy_storage_release(storage);
    return;
  }
  hg_stream_retain(theirs); /* releases may run Python code, which may find other streams */
  hgpy_release_behind(device, theirs, storage);
  hg_stream_release(theirs);
}

void hgpy_order_end(hgpy_device *device) {
  for (uint32_t i = 0; i < HGPY_FOREIGN; i++) hg_stream_release(device->foreign[i].stream);
  hg_event_release(device->mark);
  hgpy_behind_end(device);
}
