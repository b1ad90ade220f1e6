/* graph.c - graphs: work that is recorded while a stream captures, with copies of all arguments, and submitted to the
 * device as a whole by each launch of the graph. */
#include "runtime/runtime.h"

static hg_work *work_of(const hg_graph *graph) { return graph->work.data; }
static hg_captured_launch *launches_of(const hg_graph *graph) { return graph->launches.data; }

/* ---- what a graph keeps ------------------------------------------------------------------------------------------ */

hg_status hg_graph_keep_locked(hg_graph *graph, hg_storage *storage) {
  const hg_allocator *allocator = &graph->executor->allocator;
  if (hg_array_append(allocator, &graph->storages, &storage, 1) == NULL)
    return hg_fail_memory("a graph's list of buffers", (graph->storages.count + 1) * graph->storages.element_size);
  hg_reference(&storage->references);
  return HG_OK;
}

/* The caller of the failed call holds references to the memory, so none of these is the last. */
void hg_graph_forget_locked(hg_graph *graph, size_t storage_count) {
  while (graph->storages.count > storage_count)
    (void)hg_unreference(&((hg_storage **)graph->storages.data)[--graph->storages.count]->references);
}

static int is_host_memory(const hg_executor *executor, const uint8_t *first, uint64_t byte_count) {
  const hg_host_block *blocks = executor->host_memory.data;
  for (size_t i = 0; i < executor->host_memory.count; i++) {
    uintptr_t offset = (uintptr_t)first -
                       (uintptr_t)blocks[i].memory; /* memory before the block wraps beyond its end */
    if (offset <= blocks[i].byte_count && byte_count <= blocks[i].byte_count - offset) return 1;
  }
  return 0;
}

static hg_status check_host(const hg_executor *executor, const hg_work *work) {
  const uint8_t *host = work->kind == HG_WORK_COPY_IN ? work->from : work->kind == HG_WORK_COPY_OUT ? work->to : NULL;
  if (host == NULL || is_host_memory(executor, host, work->byte_count)) return HG_OK;
  return hg_fail(HG_UNSUPPORTED, "a graph copies to and from memory of hg_host_allocate only, because other memory "
                                 "cannot be copied without the caller");
}

static hg_status add_launch(hg_graph *graph, const hg_work *work, hg_kernel *kernel, uint64_t lanes) {
  const hg_allocator *allocator = &graph->executor->allocator;
  hg_captured_launch launch = {
      .work = graph->work.count - 1,
      .flight = {.kernel = kernel, .lanes = lanes, .step_limit = work->launch->step_limit}};
  launch.room = hg_allocate(allocator, hg_work_room(work), 1);
  if (launch.room == NULL) return hg_fail_memory("a launch of a graph", hg_work_room(work));
  if (hg_array_append(allocator, &graph->launches, &launch, 1) == NULL) {
    hg_release(allocator, launch.room);
    return hg_fail_memory("the launches of a graph", (graph->launches.count + 1) * sizeof launch);
  }
  hg_work *copy = &work_of(graph)[launch.work];
  hg_work_copy(copy, work, launch.room);
  copy->number = graph->launches.count - 1;
  hg_reference(&kernel->references);
  if (work->launch->boundary != NULL) graph->uses_boundary = 1;
  return HG_OK;
}

hg_status hg_graph_add_locked(hg_graph *graph, const hg_work *work, hg_kernel *kernel, uint64_t lanes) {
  HG_TRY(check_host(graph->executor, work));
  if (hg_array_append(&graph->executor->allocator, &graph->work, work, 1) == NULL)
    return hg_fail_memory("the work of a graph", (graph->work.count + 1) * sizeof *work);
  if (kernel == NULL) return HG_OK;
  hg_status status = add_launch(graph, work, kernel, lanes);
  if (status != HG_OK) graph->work.count--;
  return status;
}

void hg_graph_destroy(hg_graph *graph) {
  hg_executor *executor = graph->executor;
  const hg_allocator allocator = executor->allocator;
  if (graph->device != NULL) {
    hg_lock(executor);
    executor->backend->streams->graph_close(executor->device, graph->device);
    hg_unlock(executor);
  }
  for (size_t i = 0; i < graph->launches.count; i++) {
    hg_kernel_release(launches_of(graph)[i].flight.kernel);
    hg_release(&allocator, launches_of(graph)[i].room);
  }
  for (size_t i = 0; i < graph->storages.count; i++) hg_storage_release(((hg_storage **)graph->storages.data)[i]);
  hg_array_release(&allocator, &graph->work);
  hg_array_release(&allocator, &graph->launches);
  hg_array_release(&allocator, &graph->storages);
  hg_release(&allocator, graph);
  hg_executor_release(executor);
}

void hg_graph_release(hg_graph *graph) {
  if (graph != NULL && hg_unreference(&graph->references)) hg_graph_destroy(graph);
}

/* ---- capture and launch ------------------------------------------------------------------------------------------ */

hg_status hg_capture_begin(hg_stream *stream) {
  if (stream == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_capture_begin: the stream is NULL");
  hg_executor *executor = stream->executor;
  hg_graph *graph = hg_allocate(&executor->allocator, 1, sizeof *graph);
  if (graph == NULL) return hg_fail_memory("a graph", sizeof *graph);
  atomic_init(&graph->references, 1);
  graph->executor = hg_executor_retain(executor);
  graph->work.element_size = sizeof(hg_work);
  graph->launches.element_size = sizeof(hg_captured_launch);
  graph->storages.element_size = sizeof(hg_storage *);
  hg_lock(executor);
  int captures = stream->capture != NULL;
  if (!captures) stream->capture = graph;
  hg_unlock(executor);
  if (!captures) return HG_OK;
  hg_graph_release(graph);
  return hg_fail(HG_BUSY, "hg_capture_begin: the stream captures a graph already; end that capture first");
}

static hg_status open_locked(hg_graph *graph) {
  hg_executor *executor = graph->executor;
  return executor->backend->streams->graph_open(executor->device, work_of(graph), graph->work.count, &graph->device);
}

static hg_status prepare_locked(hg_graph *graph) {
  hg_status status = HG_OK;
  for (size_t i = 0; i < graph->launches.count && status == HG_OK; i++)
    status = hg_kernel_prepare_locked(launches_of(graph)[i].flight.kernel);
  return status;
}

/* No other thread has the graph yet. */
static hg_status instantiate_locked(hg_graph *graph) {
  hg_status status = open_locked(graph);
  while (status == HG_UNPREPARED) {
    HG_TRY(prepare_locked(graph));
    status = open_locked(graph);
  }
  return status;
}

hg_status hg_capture_end(hg_stream *stream, hg_graph **out) {
  if (out != NULL) *out = NULL;
  if (stream == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_capture_end: the stream is NULL");
  hg_executor *executor = stream->executor;
  hg_lock(executor);
  hg_graph *graph = stream->capture;
  stream->capture = NULL;
  hg_status status = HG_OK;
  if (graph == NULL)
    status = hg_fail(HG_INVALID_ARGUMENT, "hg_capture_end: the stream captures nothing; hg_capture_begin comes first");
  else if (out == NULL)
    status = hg_fail(HG_INVALID_ARGUMENT, "hg_capture_end: there is no place for the graph, which is given up");
  else if (graph->work.count > 0)
    status = instantiate_locked(graph);
  hg_unlock(executor);
  if (status == HG_OK) *out = graph;
  else hg_graph_release(graph);
  return status;
}

static hg_status launch_locked(hg_graph *graph, hg_stream *stream) {
  hg_executor *executor = graph->executor;
  if (stream->capture != NULL)
    return hg_fail(HG_BUSY, "hg_graph_launch: the stream captures a graph, which takes no other graphs");
  if (graph->device == NULL) return HG_OK; /* it is empty */
  HG_TRY(hg_stream_room_locked(stream));
  hg_storage **storages = graph->storages.data;
  for (size_t i = 0; i < graph->storages.count; i++)
    if (storages[i]->map_count > 0)
      return hg_fail(HG_BUSY, "hg_graph_launch: a buffer of the graph is mapped; unmap it before the launch");
  for (size_t i = 0; i < graph->storages.count; i++) HG_TRY(hg_stream_reach_locked(stream, storages[i]));
  HG_TRY(executor->backend->streams->graph_submit(executor->device, stream->device, graph->device, stream->launched));
  executor->written++;
  executor->counts.launches += graph->launches.count;
  executor->counts.moved_bytes += graph->moved_bytes;
  stream->given++;
  hg_reference(&graph->references);
  stream->flights[stream->launched++ % HG_STREAM_LAUNCHES] = (hg_flight){.graph = graph};
  for (size_t i = 0; i < graph->storages.count; i++) {
    storages[i]->used |= hg_stream_bit(stream);
    storages[i]->written = executor->written;
  }
  if (graph->uses_boundary) executor->boundary_used |= hg_stream_bit(stream);
  return HG_OK;
}

hg_status hg_graph_launch(hg_graph *graph, hg_stream *stream) {
  if (graph == NULL || stream == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_graph_launch: an argument is NULL");
  HG_TRY(hg_check_stream("hg_graph_launch: the stream", graph->executor, stream));
  hg_lock(graph->executor);
  hg_status status = launch_locked(graph, stream);
  hg_unlock(graph->executor);
  return status;
}
