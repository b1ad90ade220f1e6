/* stream.c - streams, events and graphs. One queue does all work of a device in the order of submission. So a stream is
 * its last command buffer, and an event is the command buffer that was last when it was recorded. The GPU does copies
 * and fills, too. If it cannot see the host memory, it copies from a copy of it; copies to such memory are done by the
 * CPU, after earlier work. */
#include "backend/metal/metal_kernel.h"
#include "backend/metal/metal_tuning.h"

#include <stdio.h>

enum { DONE, PENDING, LOST, FORKED }; /* results of functions that return a number */

typedef struct metal_stream {
  metal_id last;         /* guarded by the device's mutex */
  metal_record *records; /* of launch n: n % HG_STREAM_LAUNCHES; NULL: none yet */
} metal_stream;

typedef struct metal_graph {
  const hg_work *work;
  size_t count;
  metal_record *records; /* of launch n of the graph */
  uint64_t launches;
} metal_graph;

typedef struct metal_event {
  metal_id last;         /* guarded by the device's mutex */
} metal_event;

/* ---- records ----------------------------------------------------------------------------------------------------- */

static hg_status open_records(metal_device *d, uint64_t count, metal_record **records) {
  return *records != NULL || count == 0 ? HG_OK : hg_metal_allocate_records_within(d, count, records);
}

static int faulted(void *stream, void *graph, uint64_t number, uint64_t *index) {
  const metal_graph *g = graph;
  const metal_record *records = ((const metal_stream *)stream)->records;
  if (g == NULL) return records != NULL && records[number % HG_STREAM_LAUNCHES].flag != 0;
  for (*index = 0; *index < g->launches; ++*index)
    if (g->records[*index].flag != 0) return 1;
  return 0;
}

/* All launches of a graph share its records, so none may be in flight while a record is read and reset. */
static hg_status take_fault_within(metal_device *d, metal_stream *s, const metal_graph *g, uint64_t number,
                                   const hg_work *work, hg_fault *fault) {
  metal_record *record = g != NULL ? &g->records[number] : &s->records[number % HG_STREAM_LAUNCHES];
  HG_TRY(hg_metal_settle(d));
  hg_metal_take_record(work->kernel, work->launch, record, fault);
  return HG_OK;
}

static hg_status take_fault(void *device, void *stream, void *graph, uint64_t number, const hg_work *work,
                            hg_fault *fault) {
  METAL_RUN(device, take_fault_within(device, stream, graph, number, work, fault));
}

/* ---- streams ----------------------------------------------------------------------------------------------------- */

static hg_status stream_open(void *device, void *foreign, void **stream) {
  metal_device *d = device;
  if (foreign != NULL) return hg_fail(HG_UNSUPPORTED, "the backend 'metal' takes no streams of other libraries");
  HG_TRY(hg_metal_check(d));
  metal_stream *s = hg_allocate(&d->allocator, 1, sizeof *s);
  if (s == NULL) return hg_fail_memory("a stream", sizeof *s);
  *stream = s;
  return HG_OK;
}

static void stream_close(void *device, void *stream) {
  metal_device *d = device;
  metal_stream *s = stream;
  if (d->process == hg_process_id()) {
    if (s->records != NULL) hg_metal_free(d, (uint8_t *)s->records);
    hg_metal_set_last(d, &s->last, NULL);
  }
  hg_release(&d->allocator, s);
}

/* Copies host memory that the GPU cannot see, lets the GPU copy from that, and frees it after the work. 0: no memory
 * for the copy. */
static int write_behind(metal_device *d, metal_stream *s, const hg_work *work, hg_status *status) {
  hg_work own = *work;
  uint8_t *copy = NULL;
  if (work->byte_count > d->most_spare_bytes || hg_metal_allocate_host_within(d, work->byte_count, &copy) != HG_OK)
    return 0;
  memcpy(copy, work->from, (size_t)work->byte_count);
  own.from = copy;
  *status = hg_metal_move_within(d, &own, &s->last);
  hg_metal_free_within(d, copy, NULL);
  return 1;
}

static hg_status submit_within(metal_device *d, metal_stream *s, const hg_work *work) {
  if (work->kind == HG_WORK_LAUNCH) {
    HG_TRY(open_records(d, HG_STREAM_LAUNCHES, &s->records));
    metal_record *record = &s->records[work->number % HG_STREAM_LAUNCHES];
    return hg_metal_launch_within(d, work->kernel, work->launch, record, NULL, &s->last);
  }
  hg_status status = HG_OK;
  if (hg_metal_can_move(d, work)) return hg_metal_move_within(d, work, &s->last);
  if (work->kind == HG_WORK_COPY_IN && !hg_metal_is_idle(d) && write_behind(d, s, work, &status)) return status;
  return hg_metal_copy_within(d, work->to, work->from, work->byte_count);
}

static hg_status stream_submit(void *device, void *stream, const hg_work *work) {
  METAL_RUN(device, submit_within(device, stream, work));
}

static int wait_for_last(metal_device *d, metal_id *last) {
  if (d->process != hg_process_id()) return FORKED;
  void *pool = d->objc.pool_push();
  metal_id commands = hg_metal_take_last(d, last);
  int result = hg_metal_wait_for(d, commands) == HG_OK ? DONE : LOST;
  if (commands != NULL) METAL(&d->objc, release, commands);
  d->objc.pool_pop(pool);
  return result;
}

static int query_last(metal_device *d, metal_id *last) {
  if (d->process != hg_process_id()) return FORKED;
  void *pool = d->objc.pool_push();
  metal_id commands = hg_metal_take_last(d, last);
  int is_pending = commands != NULL && METAL(&d->objc, state, commands) < METAL_COMPLETED;
  if (commands != NULL) METAL(&d->objc, release, commands);
  d->objc.pool_pop(pool);
  return is_pending ? PENDING : wait_for_last(d, last);
}

static int stream_wait(void *device, void *stream) { return wait_for_last(device, &((metal_stream *)stream)->last); }

static int stream_query(void *device, void *stream) { return query_last(device, &((metal_stream *)stream)->last); }

static hg_status stream_outcome(void *device, void *stream, int result) {
  (void)stream;
  if (result == PENDING) return hg_fail(HG_BUSY, "work of the stream is not done yet");
  return hg_metal_check(device);
}

static void stream_free(void *device, uint8_t *address, void *const *streams, size_t count) {
  (void)streams;
  (void)count;
  hg_metal_free(device, address);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static hg_status event_open(void *device, int timed, void **event) {
  metal_device *d = device;
  (void)timed;
  metal_event *e = hg_allocate(&d->allocator, 1, sizeof *e);
  if (e == NULL) return hg_fail_memory("an event", sizeof *e);
  *event = e;
  return HG_OK;
}

static void event_close(void *device, void *event) {
  metal_device *d = device;
  metal_event *e = event;
  if (d->process == hg_process_id()) hg_metal_set_last(d, &e->last, NULL);
  hg_release(&d->allocator, e);
}

/* A timed event is an empty command buffer after the stream's work. */
static hg_status record_within(metal_device *d, metal_event *e, metal_stream *s) {
  metal_encoding empty;
  HG_TRY(hg_metal_begin_within(d, &empty));
  hg_metal_commit_within(d, &empty, &e->last);
  hg_metal_set_last(d, &s->last, e->last); /* so that waiting for the stream waits for its events */
  return HG_OK;
}

static hg_status event_record(void *device, void *event, void *stream) {
  METAL_RUN(device, record_within(device, event, stream));
}

/* The order of the queue suffices. */
static hg_status event_await(void *device, void *stream, void *event) {
  (void)stream;
  (void)event;
  return hg_metal_check(device);
}

static hg_event_place event_place(void *device, void *event) {
  (void)device;
  return (hg_event_place){event, 0};
}

static int event_wait(void *device, const hg_event_place *place) {
  return wait_for_last(device, &((metal_event *)place->where)->last);
}

static int event_query(void *device, void *event) { return query_last(device, &((metal_event *)event)->last); }

/* A command buffer has its times when it is done. */
static hg_status elapsed_within(metal_device *d, metal_event *from, metal_event *to, double *nanoseconds) {
  int reached = query_last(d, &from->last);
  if (reached == DONE) reached = query_last(d, &to->last);
  if (reached != DONE) return stream_outcome(d, NULL, reached);
  *nanoseconds = (METAL(&d->objc, ended, to->last) - METAL(&d->objc, ended, from->last)) * 1e9;
  return HG_OK;
}

static hg_status event_elapsed(void *device, void *from, void *to, double *nanoseconds) {
  METAL_RUN(device, elapsed_within(device, from, to, nanoseconds));
}

/* ---- graphs ------------------------------------------------------------------------------------------------------ */

static hg_status graph_open_within(metal_device *d, const hg_work *work, size_t count, metal_graph *g) {
  *g = (metal_graph){.work = work, .count = count};
  hg_status ready = HG_OK;
  for (size_t i = 0; i < count; i++) { /* asks all kernels, so that all missing variants become wanted */
    if (work[i].kind != HG_WORK_LAUNCH) {
      HG_TRY(hg_metal_open_mover(d));
      continue;
    }
    g->launches++;
    hg_status one = hg_metal_check_ready(d, work[i].kernel, work[i].launch);
    if (ready == HG_OK) ready = one;
  }
  return ready == HG_OK ? open_records(d, g->launches, &g->records) : ready;
}

static hg_status graph_open_in_pool(metal_device *d, const hg_work *work, size_t count, metal_graph *g) {
  METAL_RUN(d, graph_open_within(d, work, count, g));
}

static hg_status graph_open(void *device, const hg_work *work, size_t count, void **graph) {
  metal_device *d = device;
  metal_graph *g = hg_allocate(&d->allocator, 1, sizeof *g);
  if (g == NULL) return hg_fail_memory("a graph", sizeof *g);
  hg_status status = graph_open_in_pool(d, work, count, g);
  if (status == HG_OK) *graph = g;
  else hg_release(&d->allocator, g);
  return status;
}

static void graph_close(void *device, void *graph) {
  metal_device *d = device;
  metal_graph *g = graph;
  if (g->records != NULL) hg_metal_free(d, (uint8_t *)g->records);
  hg_release(&d->allocator, g);
}

/* Consecutive work shares a command buffer; each item follows what the one before wrote. */
static hg_status encode_next(metal_device *d, metal_encoding *e, const metal_graph *g, const hg_work *work) {
  if (e->commands == NULL) HG_TRY(hg_metal_begin_within(d, e));
  else METAL_WITH(&d->objc, barrier, e->encoder, METAL_BUFFERS);
  if (work->kind == HG_WORK_LAUNCH)
    return hg_metal_encode_within(d, e, work->kernel, work->launch, &g->records[work->number], NULL);
  hg_metal_encode_move_within(d, e, work);
  return HG_OK;
}

static hg_status graph_submit_within(metal_device *d, metal_stream *s, const metal_graph *g) {
  metal_encoding e = {NULL, NULL};
  hg_status status = HG_OK;
  for (size_t i = 0; i < g->count && status == HG_OK; i++) {
    if (i % METAL_MOST_ENCODED == 0) hg_metal_commit_within(d, &e, &s->last);
    status = encode_next(d, &e, g, &g->work[i]);
  }
  hg_metal_commit_within(d, &e, &s->last);
  return status;
}

static hg_status graph_submit(void *device, void *stream, void *graph, uint64_t number) {
  (void)number; /* its faults are in its own records */
  METAL_RUN(device, graph_submit_within(device, stream, graph));
}

/* ---- host memory ------------------------------------------------------------------------------------------------- */

static hg_status host_allocate_within(metal_device *d, uint64_t byte_count, void **memory) {
  uint8_t *bytes = NULL;
  if (byte_count > UINT64_MAX / 2) return hg_fail_memory("host memory", byte_count);
  HG_TRY(hg_metal_allocate_host_within(d, byte_count, &bytes));
  *memory = bytes;
  return HG_OK;
}

static hg_status host_allocate(void *device, uint64_t byte_count, void **memory) {
  METAL_RUN(device, host_allocate_within(device, byte_count, memory));
}

static void host_free(void *device, void *memory) { hg_metal_free(device, memory); }

const hg_stream_functions hg_metal_streams = {
    .open = stream_open,
    .close = stream_close,
    .submit = stream_submit,
    .wait = stream_wait,
    .wait_at_last = stream_wait,
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
    .graph_open = graph_open,
    .graph_close = graph_close,
    .graph_submit = graph_submit,
    .free = stream_free,
    .host_allocate = host_allocate,
    .host_free = host_free,
};
