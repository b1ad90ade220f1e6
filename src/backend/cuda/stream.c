/* stream.c - callers' streams and events, which are the driver's, and the faults of launches on them.
 *
 * A launch on a stream costs the host little more than the driver's launch: it allocates nothing, and makes no other
 * call of the driver, except two for a foreign stream, which its owner may capture into a graph at any time. Each
 * launch has a fault record among those of the stream, and a flag in pinned memory that the kernel sets with it; the
 * runtime reads and resets the record after the launch is done. */
#include "backend/cuda/kernel.h"

#include "base/os.h"

#include <string.h>

enum { FORKED = -1, CAPTURED = -2 }; /* results: the process is a child of fork; another library captures the stream */

/* ---- records of faults ------------------------------------------------------------------------------------------- */

static hg_status open_flags(cuda_device *d, cuda_records *records) {
  void *flags = NULL;
  CUDA_TRY(d, cuMemHostAlloc(&flags, (size_t)records->count * sizeof(uint32_t), CUDA_HOST_PORTABLE | CUDA_HOST_MAPPED),
           "could not pin memory for the faults of launches");
  memset(flags, 0, (size_t)records->count * sizeof(uint32_t));
  hg_status status = hg_cuda_check(d, d->driver.cuMemHostGetDevicePointer_v2(&records->flags_address, flags, 0),
                                   "could not map memory for the faults of launches");
  if (status == HG_OK) records->flags = flags;
  else (void)d->driver.cuMemFreeHost(flags);
  return status;
}

hg_status hg_cuda_fault_records_open_within(cuda_device *d, cuda_records *records, uint64_t count) {
  if (records->flags != NULL) return HG_OK;
  records->count = count;
  hg_gpu_fault *none = hg_allocate(&d->allocator, count, sizeof *none);
  if (none == NULL) return hg_fail_memory("the faults of launches", count * sizeof *none);
  for (uint64_t i = 0; i < count; i++) none[i] = hg_gpu_fault_none();
  hg_status status = HG_OK;
  if (records->faults == NULL)
    status = hg_cuda_allocate_within(d, count * sizeof *none, HG_BACKEND_MIN_ALIGNMENT, &records->faults);
  if (status == HG_OK) status = hg_cuda_copy_in_within(d, records->faults, none, count * sizeof *none);
  if (status == HG_OK) status = open_flags(d, records);
  hg_release(&d->allocator, none);
  return status;
}

void hg_cuda_fault_records_close_within(cuda_device *d, cuda_records *records) {
  if (records->faults != NULL) hg_cuda_free_within(d, records->faults);
  if (records->flags != NULL) (void)d->driver.cuMemFreeHost((void *)(uintptr_t)records->flags);
  *records = (cuda_records){.count = 0};
}

/* A graph has records of its own; its first fault counts. */
static int faulted(void *stream, void *graph, uint64_t number, uint64_t *index) {
  const cuda_records *records = graph != NULL ? graph : stream;
  if (graph == NULL) return records->flags != NULL && records->flags[number % records->count] != 0;
  if (records->flags == NULL) return 0;
  for (*index = 0; *index < records->count; ++*index)
    if (records->flags[*index] != 0) return 1;
  return 0;
}

static hg_status read_record(cuda_device *d, cuda_records *records, uint64_t slot, hg_gpu_fault *record) {
  const hg_gpu_fault none = hg_gpu_fault_none();
  uint8_t *place = records->faults + slot * sizeof none;
  records->flags[slot] = 0;
  HG_TRY(hg_cuda_copy_out_within(d, record, place, sizeof *record));
  return hg_cuda_copy_in_within(d, place, &none, sizeof none);
}

/* All launches of a graph share its records: none may be in flight while one is read and reset. */
static hg_status read_record_of(cuda_device *d, void *stream, cuda_graph *graph, uint64_t number,
                                hg_gpu_fault *record) {
  cuda_records *records = graph != NULL ? &graph->records : &((cuda_stream *)stream)->records;
  if (graph != NULL) CUDA_TRY(d, cuEventSynchronize(graph->done), "the graph could not be waited for");
  return read_record(d, records, number % records->count, record);
}

static hg_status take_fault(void *device, void *stream, void *graph, uint64_t number, const hg_work *work,
                            hg_fault *fault) {
  cuda_device *d = device;
  hg_gpu_fault record = hg_gpu_fault_none();
  int pushed = 0;
  HG_TRY(hg_cuda_enter(d, &pushed));
  hg_status status = read_record_of(d, stream, graph, number, &record);
  hg_cuda_leave(d, pushed);
  if (status == HG_OK) hg_gpu_describe_fault(work->kernel, work->launch, &record, fault);
  return status;
}

/* ---- order ------------------------------------------------------------------------------------------------------- */

static hg_status make_event(cuda_device *d, unsigned flags, void **event) {
  if (*event != NULL) return HG_OK;
  return hg_cuda_check(d, d->driver.cuEventCreate(event, flags), "could not make an event");
}

hg_status hg_cuda_order_within(cuda_device *d, cuda_stream *stream) {
  if (stream->seen == d->own_work) return HG_OK;
  if (d->own_recorded != d->own_work) {
    CUDA_TRY(d, cuEventRecord(d->own_event, d->stream), "could not record an event");
    d->own_recorded = d->own_work;
  }
  CUDA_TRY(d, cuStreamWaitEvent(stream->stream, d->own_event, 0), "could not have a stream wait");
  stream->seen = d->own_work;
  return HG_OK;
}

void hg_cuda_events_close_within(cuda_device *d) {
  void *const events[] = {d->own_event, d->stream_event, d->timer[0], d->timer[1]};
  for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
    if (events[i] != NULL) (void)d->driver.cuEventDestroy_v2(events[i]);
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static hg_status adopt(cuda_device *d, void *foreign) {
  void *context = NULL;
  CUDA_TRY(d, cuStreamGetCtx(foreign, &context), "the foreign stream cannot be used");
  if (context == d->context) return HG_OK;
  return hg_fail(HG_INVALID_ARGUMENT, "the foreign stream belongs to another GPU or context than the executor, which "
                                      "uses the primary context of its GPU");
}

static hg_status open_within(cuda_device *d, void *foreign, cuda_stream *s) {
  HG_TRY(make_event(d, CUDA_EVENT_DISABLE_TIMING, &d->own_event));
  HG_TRY(make_event(d, CUDA_EVENT_DISABLE_TIMING, &d->stream_event));
  s->seen = d->own_work - 1; /* it has not waited yet */
  s->is_foreign = foreign != NULL;
  if (foreign != NULL) {
    s->stream = foreign;
    HG_TRY(adopt(d, foreign));
    return make_event(d, CUDA_EVENT_DISABLE_TIMING, &s->done);
  }
  return hg_cuda_check(d, d->driver.cuStreamCreate(&s->stream, CUDA_STREAM_NON_BLOCKING),
                       "could not make a stream on the GPU");
}

static hg_status open_entered(cuda_device *d, void *foreign, cuda_stream *s) {
  CUDA_RUN(d, open_within(d, foreign, s));
}

static hg_status stream_open(void *device, void *foreign, void **stream) {
  cuda_device *d = device;
  cuda_stream *s = hg_allocate(&d->allocator, 1, sizeof *s);
  if (s == NULL) return hg_fail_memory("a stream", sizeof *s);
  hg_status status = open_entered(d, foreign, s);
  if (status == HG_OK) *stream = s;
  else hg_release(&d->allocator, s);
  return status;
}

/* If the stream could not be waited for, all later work of the device waits for the stream's pending work. */
static void close_within(cuda_device *d, cuda_stream *s) {
  hg_cuda_wait_behind_within(d, d->stream, s);
  d->own_work++;
  hg_cuda_fault_records_close_within(d, &s->records);
  if (s->is_foreign) (void)d->driver.cuEventDestroy_v2(s->done);
  else (void)d->driver.cuStreamDestroy_v2(s->stream);
}

static void stream_close(void *device, void *stream) {
  cuda_device *d = device;
  cuda_stream *s = stream;
  int pushed = 0;
  hg_cuda_leave_home(d, s);
  if (hg_cuda_enter(d, &pushed) == HG_OK) { /* otherwise lost with the context */
    close_within(d, s);
    hg_cuda_leave(d, pushed);
  }
  hg_release(&d->allocator, s);
}

hg_status hg_cuda_submit_within(cuda_device *d, void *stream, const cuda_records *records, const hg_work *work,
                                const uint8_t *table) {
  const cuda_driver *driver = &d->driver;
  size_t bytes = (size_t)work->byte_count;
  switch (work->kind) {
  case HG_WORK_LAUNCH: return hg_cuda_launch_on_within(d, stream, records, work, table);
  case HG_WORK_COPY_IN:
    return hg_cuda_check(d, driver->cuMemcpyHtoDAsync_v2(cuda_address_of(work->to), work->from, bytes, stream),
                         "could not copy to the GPU");
  case HG_WORK_COPY_OUT:
    return hg_cuda_check(d, driver->cuMemcpyDtoHAsync_v2(work->to, cuda_address_of(work->from), bytes, stream),
                         "could not copy from the GPU");
  case HG_WORK_COPY_WITHIN:
    return hg_cuda_check(
        d, driver->cuMemcpyDtoDAsync_v2(cuda_address_of(work->to), cuda_address_of(work->from), bytes, stream),
        "could not copy on the GPU");
  case HG_WORK_FILL: break;
  }
  return hg_cuda_fill_within(d, stream, work->to, work->byte_count, work->pattern, work->pattern_size);
}

/* Work in another library's capture would be replayed with fault records that later launches use, and a wait for the
 * stream would invalidate the capture. */
int hg_cuda_check_capture_within(const cuda_device *d, const cuda_stream *s) {
  int status = 0;
  if (!s->is_foreign) return CUDA_OK;
  int result = d->driver.cuStreamIsCapturing(s->stream, &status);
  return result == CUDA_CAPTURE_IMPLICIT || (result == CUDA_OK && status != 0) ? CAPTURED : result;
}

static hg_status fail_captured(void) {
  return hg_fail(HG_BUSY, "the foreign stream is captured into a graph by another library");
}

static hg_status check_foreign(cuda_device *d, const cuda_stream *s) {
  int result = hg_cuda_check_capture_within(d, s);
  return result == CAPTURED ? fail_captured() : hg_cuda_check(d, result, "the foreign stream cannot be used");
}

hg_status hg_cuda_mark_within(cuda_device *d, const cuda_stream *s) {
  if (!s->is_foreign || d->driver.cuEventRecord(s->done, s->stream) == CUDA_OK) return HG_OK;
  return hg_cuda_check(d, d->driver.cuStreamSynchronize(s->stream), "work of a stream failed");
}

static hg_status stream_admit(void *device, void *stream) {
  const cuda_stream *s = stream;
  if (!s->is_foreign) return HG_OK;
  CUDA_RUN(device, check_foreign(device, s));
}

static hg_status submit_within(cuda_device *d, cuda_stream *s, const hg_work *work) {
  uint8_t *table = NULL;
  if (work->kind == HG_WORK_LAUNCH) {
    HG_TRY(hg_cuda_fault_records_open_within(d, &s->records, HG_STREAM_LAUNCHES));
    HG_TRY(hg_cuda_write_table_within(d, work->kernel, work->launch, &table));
  }
  hg_status status = hg_cuda_order_within(d, s);
  if (status == HG_OK) status = hg_cuda_submit_within(d, s->stream, &s->records, work, table);
  hg_status marked = hg_cuda_mark_within(d, s); /* also after a failure: part of the work may have been submitted */
  if (status == HG_OK) status = marked;
  void *const streams[] = {s};
  if (table != NULL) hg_cuda_free_behind_within(d, table, streams, 1);
  return status;
}

static hg_status stream_submit(void *device, void *stream, const hg_work *work) {
  static const char *const verbs[] = {[HG_WORK_LAUNCH] = "launch",
                                      [HG_WORK_COPY_IN] = "write",
                                      [HG_WORK_COPY_OUT] = "read",
                                      [HG_WORK_COPY_WITHIN] = "copy",
                                      [HG_WORK_FILL] = "fill"};
  int is_launch = work->kind == HG_WORK_LAUNCH;
  if (is_launch) HG_TRY(hg_cuda_check_ready_for_range(device, work->kernel, work->launch));
  CUDA_RUN(device, CUDA_RANGE(device, verbs[work->kind], is_launch ? work->program->name : NULL,
                              is_launch ? work->launch->lanes : work->byte_count,
                              submit_within(device, stream, work)));
}

/* ---- waiting: without the runtime's lock, so the device is not changed ------------------------------------------- */

static int enter_to_wait(cuda_device *d, int *result) {
  *result = FORKED;
  if (d->process != hg_process_id()) return 0;
  *result = d->driver.cuCtxPushCurrent_v2(d->context);
  return *result == CUDA_OK;
}

static int stream_wait(void *device, void *stream) {
  cuda_device *d = device;
  int result = CUDA_OK;
  if (!enter_to_wait(d, &result)) return result;
  result = hg_cuda_check_capture_within(d, stream);
  if (result == CUDA_OK) result = d->driver.cuStreamSynchronize(((const cuda_stream *)stream)->stream);
  hg_cuda_leave(d, 1);
  return result;
}

int hg_cuda_wait_at_last_within(const cuda_device *d, const cuda_stream *s) {
  return s->is_foreign ? d->driver.cuEventSynchronize(s->done) : d->driver.cuStreamSynchronize(s->stream);
}

static int stream_wait_at_last(void *device, void *stream) {
  cuda_device *d = device;
  int result = CUDA_OK;
  if (!enter_to_wait(d, &result)) return result;
  result = hg_cuda_wait_at_last_within(d, stream);
  hg_cuda_leave(d, 1);
  return result;
}

static int stream_query(void *device, void *stream) {
  cuda_device *d = device;
  int result = CUDA_OK;
  if (!enter_to_wait(d, &result)) return result;
  result = hg_cuda_check_capture_within(d, stream);
  if (result == CUDA_OK) result = d->driver.cuStreamQuery(((const cuda_stream *)stream)->stream);
  hg_cuda_leave(d, 1);
  return result;
}

static hg_status stream_outcome(void *device, void *stream, int result) {
  (void)stream;
  if (result == FORKED) return hg_cuda_fail_forked();
  if (result == CAPTURED) return fail_captured();
  if (result == CUDA_NOT_READY) return hg_fail(HG_BUSY, "work of the stream is not done yet");
  return hg_cuda_check(device, result, "work of a stream failed");
}

static hg_status follow_within(cuda_device *d, const cuda_stream *s, const cuda_stream *other) {
  hg_cuda_wait_behind_within(d, s->stream, other);
  return HG_OK;
}

static hg_status stream_follow(void *device, void *stream, void *other) {
  CUDA_RUN(device, follow_within(device, stream, other));
}

static void stream_free(void *device, uint8_t *address, void *const *streams, size_t count) {
  cuda_device *d = device;
  int pushed = 0;
  if (hg_cuda_enter(d, &pushed) != HG_OK) return;
  hg_cuda_free_behind_within(d, address, streams, count);
  hg_cuda_leave(d, pushed);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static hg_status event_open(void *device, int timed, void **event) {
  CUDA_RUN(device, make_event(device, timed ? 0 : CUDA_EVENT_DISABLE_TIMING, event));
}

static void event_close(void *device, void *event) {
  cuda_device *d = device;
  int pushed = 0;
  if (hg_cuda_enter(d, &pushed) != HG_OK) return;
  (void)d->driver.cuEventDestroy_v2(event);
  hg_cuda_leave(d, pushed);
}

static hg_status record_within(cuda_device *d, void *event, cuda_stream *s) {
  HG_TRY(check_foreign(d, s));
  return hg_cuda_check(d, d->driver.cuEventRecord(event, s->stream), "could not record an event");
}

static hg_status event_record(void *device, void *event, void *stream) {
  CUDA_RUN(device, record_within(device, event, stream));
}

static hg_status await_within(cuda_device *d, cuda_stream *s, void *event) {
  HG_TRY(check_foreign(d, s));
  CUDA_TRY(d, cuStreamWaitEvent(s->stream, event, 0), "could not have a stream wait");
  return hg_cuda_mark_within(d, s);
}

static hg_status event_await(void *device, void *stream, void *event) {
  CUDA_RUN(device, await_within(device, stream, event));
}

static hg_event_place event_place(void *device, void *event) {
  (void)device;
  return (hg_event_place){event, 0};
}

static int event_wait(void *device, const hg_event_place *place) {
  cuda_device *d = device;
  int result = CUDA_OK;
  if (!enter_to_wait(d, &result)) return result;
  result = d->driver.cuEventSynchronize(place->where);
  hg_cuda_leave(d, 1);
  return result;
}

static int event_query(void *device, void *event) {
  cuda_device *d = device;
  int result = CUDA_OK;
  if (!enter_to_wait(d, &result)) return result;
  result = d->driver.cuEventQuery(event);
  hg_cuda_leave(d, 1);
  return result;
}

static hg_status elapsed_within(cuda_device *d, void *from, void *to, double *nanoseconds) {
  float milliseconds = 0;
  HG_TRY(stream_outcome(d, NULL, d->driver.cuEventElapsedTime(&milliseconds, from, to)));
  *nanoseconds = (double)milliseconds * 1e6;
  return HG_OK;
}

static hg_status event_elapsed(void *device, void *from, void *to, double *nanoseconds) {
  CUDA_RUN(device, elapsed_within(device, from, to, nanoseconds));
}

/* ---- host memory ------------------------------------------------------------------------------------------------- */

static hg_status pin_within(cuda_device *d, uint64_t byte_count, void **memory) {
  if (byte_count > SIZE_MAX / 2) return hg_fail_memory("page-locked memory", byte_count);
  return hg_cuda_check(d, d->driver.cuMemHostAlloc(memory, (size_t)byte_count + (byte_count == 0), CUDA_HOST_PORTABLE),
                       "could not allocate page-locked memory");
}

static hg_status host_allocate(void *device, uint64_t byte_count, void **memory) {
  CUDA_RUN(device, pin_within(device, byte_count, memory));
}

static void host_free(void *device, void *memory) {
  cuda_device *d = device;
  int pushed = 0;
  if (hg_cuda_enter(d, &pushed) != HG_OK) return;
  (void)d->driver.cuMemFreeHost(memory);
  hg_cuda_leave(d, pushed);
}

const hg_stream_functions hg_cuda_streams = {
    .open = stream_open,
    .close = stream_close,
    .admit = stream_admit,
    .submit = stream_submit,
    .wait = stream_wait,
    .wait_at_last = stream_wait_at_last,
    .query = stream_query,
    .outcome = stream_outcome,
    .faulted = faulted,
    .take_fault = take_fault,
    .event_open = event_open,
    .event_close = event_close,
    .event_record = event_record,
    .event_await = event_await,
    .event_place = event_place,
    .event_wait = event_wait,
    .event_query = event_query,
    .event_elapsed = event_elapsed,
    .graph_open = hg_cuda_graph_open,
    .graph_close = hg_cuda_graph_close,
    .graph_submit = hg_cuda_graph_submit,
    .allocate = hg_cuda_allocate_on,
    .follow = stream_follow,
    .free = stream_free,
    .host_allocate = host_allocate,
    .host_free = host_free,
};
