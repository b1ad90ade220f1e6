/* event.c - events, and page-locked host memory. */
#include "runtime/runtime.h"

static const hg_stream_functions *functions_of(const hg_executor *executor) { return executor->backend->streams; }

/* ---- events ------------------------------------------------------------------------------------------------------ */

hg_status hg_event_create(hg_executor *executor, const hg_event_desc *desc, hg_event **out) {
  hg_event_desc own;
  if (executor == NULL || out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_event_create: an argument is NULL");
  *out = NULL;
  HG_TRY(HG_READ(hg_event_desc, &own, desc));
  if (own.flags & ~(uint32_t)HG_EVENT_TIMED)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_event_desc.flags 0x%x has a bit that means nothing", (unsigned)own.flags);
  if (own.reserved != 0) return hg_fail(HG_INVALID_ARGUMENT, "hg_event_desc.reserved is %u, not 0", own.reserved);
  hg_event *event = hg_allocate(&executor->allocator, 1, sizeof *event);
  if (event == NULL) return hg_fail_memory("an event", sizeof *event);
  event->timed = (own.flags & HG_EVENT_TIMED) != 0;
  hg_lock(executor);
  hg_status status = functions_of(executor)->event_open(executor->device, event->timed, &event->device);
  hg_unlock(executor);
  if (status != HG_OK) {
    hg_release(&executor->allocator, event);
    return status;
  }
  event->executor = hg_executor_retain(executor);
  *out = event;
  return HG_OK;
}

void hg_event_release(hg_event *event) {
  if (event == NULL) return;
  hg_executor *executor = event->executor;
  hg_lock(executor);
  functions_of(executor)->event_close(executor->device, event->device);
  hg_unlock(executor);
  hg_kernel_release(event->kernel);
  hg_release(&executor->allocator, event);
  hg_executor_release(executor);
}

/* ---- of a compilation -------------------------------------------------------------------------------------------- */

hg_kernel *hg_event_note_kernel_locked(hg_event *event, hg_kernel *kernel) {
  hg_kernel *before = event->kernel;
  event->kernel = kernel;
  event->recorded = 0;
  return before;
}

/* Called without the lock. A failed compilation is no failure of the event. */
static hg_status await_kernel_locked(const hg_event *event) {
  hg_kernel *kernel = hg_kernel_retain(event->kernel);
  hg_executor *executor = event->executor; /* another thread may release the event meanwhile */
  hg_unlock(executor);
  hg_status status = hg_kernel_settle(kernel);
  hg_kernel_release(kernel);
  hg_lock(executor);
  return status;
}

static int is_being_compiled(const hg_event *event) {
  return event->kernel != NULL && atomic_load(&event->kernel->state) == HG_MAKING;
}

/* ---- of a stream ------------------------------------------------------------------------------------------------- */

static hg_status check_pair(const char *caller, const hg_event *event, const hg_stream *stream) {
  if (event == NULL || stream == NULL) return hg_fail(HG_INVALID_ARGUMENT, "%s: an argument is NULL", caller);
  return hg_check_stream("the stream", event->executor, stream);
}

static hg_status fail_capture(void) {
  return hg_fail(HG_BUSY, "the stream captures a graph, which takes no events; end the capture first");
}

hg_status hg_event_record(hg_event *event, hg_stream *stream) {
  HG_TRY(check_pair("hg_event_record", event, stream));
  hg_executor *executor = event->executor;
  hg_lock(executor);
  hg_status status = stream->capture != NULL
                         ? fail_capture()
                         : functions_of(executor)->event_record(executor->device, event->device, stream->device);
  hg_kernel *before = NULL;
  if (status == HG_OK) {
    before = hg_event_note_kernel_locked(event, NULL);
    event->recorded = 1;
    event->index = stream->index;
    event->born = executor->born;
  }
  hg_unlock(executor);
  hg_kernel_release(before);
  return status;
}

hg_status hg_stream_wait_event(hg_stream *stream, hg_event *event) {
  HG_TRY(check_pair("hg_stream_wait_event", event, stream));
  hg_executor *executor = event->executor;
  hg_status status = HG_OK;
  hg_lock(executor);
  int waits = event->recorded;
  if (stream->capture != NULL) status = fail_capture();
  else if (is_being_compiled(event)) status = await_kernel_locked(event);
  else if (event->recorded)
    status = functions_of(executor)->event_await(executor->device, stream->device, event->device);
  if (status == HG_OK && waits) hg_stream_note_behind_locked(stream, event->index, event->born);
  if (status == HG_OK && waits) stream->given++; /* so the stream counts as busy until the event is done */
  hg_unlock(executor);
  return status;
}

hg_status hg_event_wait(hg_event *event) {
  if (event == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_event_wait: the event is NULL");
  hg_executor *executor = event->executor;
  hg_status status = HG_OK;
  hg_lock(executor);
  if (is_being_compiled(event)) {
    status = await_kernel_locked(event);
  } else if (event->recorded) {
    hg_event_place place = functions_of(executor)->event_place(executor->device, event->device);
    hg_unlock(executor);
    int result = functions_of(executor)->event_wait(executor->device, &place);
    hg_lock(executor);
    status = functions_of(executor)->outcome(executor->device, NULL, result);
  }
  hg_unlock(executor);
  return status;
}

hg_status hg_event_query(hg_event *event) {
  if (event == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_event_query: the event is NULL");
  hg_executor *executor = event->executor;
  hg_status status = HG_OK;
  hg_lock(executor);
  if (is_being_compiled(event))
    status = event->kernel->process == hg_process_id() ? hg_fail(HG_BUSY, "the kernel is still being compiled")
                                                       : hg_kernel_settle(event->kernel);
  else if (event->recorded)
    status = functions_of(executor)->outcome(executor->device, NULL,
                                             functions_of(executor)->event_query(executor->device, event->device));
  hg_unlock(executor);
  return status;
}

hg_status hg_event_elapsed(hg_event *from, hg_event *to, double *nanoseconds) {
  if (from == NULL || to == NULL || nanoseconds == NULL)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_event_elapsed: an argument is NULL");
  hg_executor *executor = from->executor;
  if (to->executor != executor)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_event_elapsed: the two events belong to different executors");
  if (!from->timed || !to->timed)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_event_elapsed: the %s event is not timed; create it with HG_EVENT_TIMED",
                   from->timed ? "second" : "first");
  hg_lock(executor);
  hg_status status = HG_OK;
  if (!from->recorded || !to->recorded)
    status = hg_fail(HG_INVALID_ARGUMENT, "hg_event_elapsed: the %s event has not been recorded",
                     from->recorded ? "second" : "first");
  else
    status = functions_of(executor)->event_elapsed(executor->device, from->device, to->device, nanoseconds);
  hg_unlock(executor);
  return status;
}

/* ---- host memory ------------------------------------------------------------------------------------------------- */

hg_status hg_host_allocate(hg_executor *executor, uint64_t byte_count, void **memory) {
  if (executor == NULL || memory == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_host_allocate: an argument is NULL");
  *memory = NULL;
  void *made = NULL;
  hg_lock(executor);
  hg_status status = functions_of(executor)->host_allocate(executor->device, byte_count, &made);
  const hg_host_block block = {made, byte_count};
  if (status == HG_OK && hg_array_append(&executor->allocator, &executor->host_memory, &block, 1) == NULL) {
    functions_of(executor)->host_free(executor->device, made);
    status = hg_fail_memory("the table of host memory", (executor->host_memory.count + 1) * sizeof block);
  }
  hg_unlock(executor);
  if (status != HG_OK) return status;
  hg_executor_retain(executor);
  *memory = made;
  return HG_OK;
}

/* 1 if the memory was in the table. */
static int forget_locked(hg_executor *executor, const void *memory) {
  hg_host_block *blocks = executor->host_memory.data;
  for (size_t i = 0; i < executor->host_memory.count; i++) {
    if (blocks[i].memory != memory) continue;
    blocks[i] = blocks[--executor->host_memory.count];
    return 1;
  }
  return 0;
}

void hg_host_release(hg_executor *executor, void *memory) {
  if (executor == NULL || memory == NULL) return;
  hg_lock(executor);
  hg_settle_at_last_locked(executor);
  int found = forget_locked(executor, memory);
  if (found) functions_of(executor)->host_free(executor->device, memory);
  hg_unlock(executor);
  if (found) hg_executor_release(executor);
}
