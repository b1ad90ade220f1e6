/* graph.c - graphs: captures the work on a stream of its own, all at once, into a graph of the driver. The graph's
 * fault records and tables are made before, so that only the work itself is captured. */
#include "backend/cuda/kernel.h"

static uint8_t **table_of(const cuda_graph *graph, const hg_work *work) {
  return (uint8_t **)graph->tables.data + work->number;
}

/* ---- capture ----------------------------------------------------------------------------------------------------- */

static hg_status capture_work(cuda_device *d, void *stream, const cuda_graph *graph, const hg_work *work,
                              size_t count) {
  for (size_t i = 0; i < count; i++) {
    const uint8_t *table = work[i].kind == HG_WORK_LAUNCH ? *table_of(graph, &work[i]) : NULL;
    HG_TRY(hg_cuda_submit_within(d, stream, &graph->records, &work[i], table));
  }
  return HG_OK;
}

/* Ends a capture that has begun even after a failure. */
static hg_status capture_on(cuda_device *d, void *stream, cuda_graph *graph, const hg_work *work, size_t count) {
  void *captured = NULL;
  CUDA_TRY(d, cuStreamBeginCapture_v2(stream, CUDA_CAPTURE_RELAXED), "the driver did not capture a graph");
  hg_status status = capture_work(d, stream, graph, work, count);
  int result = d->driver.cuStreamEndCapture(stream, &captured);
  if (status == HG_OK) status = hg_cuda_check(d, result, "the driver did not capture a graph");
  if (status == HG_OK)
    status = hg_cuda_check(d, d->driver.cuGraphInstantiateWithFlags(&graph->executable, captured, 0),
                           "the driver did not make a graph ready");
  if (captured != NULL) (void)d->driver.cuGraphDestroy(captured);
  return status;
}

static hg_status capture(cuda_device *d, cuda_graph *graph, const hg_work *work, size_t count) {
  void *stream = NULL;
  CUDA_TRY(d, cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING), "could not make a stream on the GPU");
  hg_status status = capture_on(d, stream, graph, work, count);
  (void)d->driver.cuStreamDestroy_v2(stream);
  return status;
}

/* ---- records and tables ------------------------------------------------------------------------------------------ */

/* Asks all kernels, so that all missing variants become wanted. A graph keeps the code that it is made with. */
static hg_status check_ready(cuda_device *d, const hg_work *work, size_t count) {
  hg_status status = HG_OK;
  for (size_t i = 0; i < count; i++) {
    hg_status one = work[i].kind == HG_WORK_LAUNCH ? hg_cuda_check_final(d, work[i].kernel, work[i].launch) : HG_OK;
    if (status == HG_OK) status = one;
  }
  return status;
}

/* Makes the records, and each launch's table. */
static hg_status make_records(cuda_device *d, cuda_graph *graph, const hg_work *work, size_t count) {
  uint64_t launches = 0;
  for (size_t i = 0; i < count; i++) launches += work[i].kind == HG_WORK_LAUNCH;
  if (launches == 0) return HG_OK;
  HG_TRY(hg_cuda_fault_records_open_within(d, &graph->records, launches));
  if (hg_array_append(&d->allocator, &graph->tables, NULL, (size_t)launches) == NULL)
    return hg_fail_memory("the tables of a graph", launches * sizeof(uint8_t *));
  for (size_t i = 0; i < count; i++) {
    if (work[i].kind != HG_WORK_LAUNCH) continue;
    HG_TRY(hg_cuda_write_table_within(d, work[i].kernel, work[i].launch, table_of(graph, &work[i])));
  }
  return HG_OK;
}

static void release_within(cuda_device *d, cuda_graph *graph) {
  uint8_t **tables = graph->tables.data;
  if (graph->executable != NULL) (void)d->driver.cuGraphExecDestroy(graph->executable);
  if (graph->done != NULL) (void)d->driver.cuEventDestroy_v2(graph->done);
  for (size_t i = 0; i < graph->tables.count; i++)
    if (tables[i] != NULL) hg_cuda_free_within(d, tables[i]);
  hg_cuda_fault_records_close_within(d, &graph->records);
}

static hg_status open_within(cuda_device *d, cuda_graph *graph, const hg_work *work, size_t count) {
  if (d->driver.cuGraphInstantiateWithFlags == NULL)
    return hg_fail(HG_UNSUPPORTED, "the NVIDIA driver is too old for graphs: it is for CUDA %d.%d; install one for "
                                   "CUDA 11.4 or later",
                   d->driver.version / 1000, d->driver.version % 1000 / 10);
  int result = d->driver.cuEventCreate(&graph->done, CUDA_EVENT_DISABLE_TIMING);
  hg_status status = hg_cuda_check(d, result, "could not make an event");
  if (status == HG_OK) status = make_records(d, graph, work, count);
  if (status == HG_OK) status = capture(d, graph, work, count);
  if (status != HG_OK) release_within(d, graph);
  return status;
}

static hg_status open_entered(cuda_device *d, cuda_graph *graph, const hg_work *work, size_t count) {
  CUDA_RUN(d, CUDA_RANGE(d, "make graph", NULL, 0, open_within(d, graph, work, count)));
}

static void release(cuda_device *d, cuda_graph *graph) {
  hg_array_release(&d->allocator, &graph->tables);
  hg_release(&d->allocator, graph);
}

/* ---- the backend's functions ------------------------------------------------------------------------------------- */

hg_status hg_cuda_graph_open(void *device, const hg_work *work, size_t count, void **graph) {
  cuda_device *d = device;
  HG_TRY(check_ready(d, work, count));
  cuda_graph *made = hg_allocate(&d->allocator, 1, sizeof *made);
  if (made == NULL) return hg_fail_memory("a graph", sizeof *made);
  made->tables.element_size = sizeof(uint8_t *);
  hg_status status = open_entered(d, made, work, count);
  if (status == HG_OK) *graph = made;
  else release(d, made);
  return status;
}

void hg_cuda_graph_close(void *device, void *graph) {
  cuda_device *d = device;
  int pushed = 0;
  if (hg_cuda_enter(d, &pushed) == HG_OK) { /* otherwise lost with the context */
    release_within(d, graph);
    hg_cuda_leave(d, pushed);
  }
  release(d, graph);
}

static hg_status submit_within(cuda_device *d, cuda_stream *stream, const cuda_graph *graph) {
  HG_TRY(hg_cuda_order_within(d, stream));
  CUDA_TRY(d, cuGraphLaunch(graph->executable, stream->stream), "the graph could not be launched");
  HG_TRY(hg_cuda_mark_within(d, stream));
  return hg_cuda_check(d, d->driver.cuEventRecord(graph->done, stream->stream), "could not record an event");
}

hg_status hg_cuda_graph_submit(void *device, void *stream, void *graph, uint64_t number) {
  (void)number; /* its faults are in its own records */
  CUDA_RUN(device, CUDA_RANGE(device, "replay graph", NULL, 0, submit_within(device, stream, graph)));
}
