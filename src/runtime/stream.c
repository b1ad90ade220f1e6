/* stream.c - streams: submitting work, waiting for it, and collecting the faults of launches.
 *
 * A launch of a stream holds a reference to its kernel or graph until its fault has been collected, because the fault's
 * sentence needs the program; and one to its origin, which is asked about a fault without the lock. It holds no
 * reference to memory: each storage has the set of streams that may have pending work on it. Other uses of the memory
 * wait for these streams first (hg_settle_locked); a release frees the memory behind their work. */
#include "runtime/runtime.h"

#include "atlas/program.h"

#include <stdio.h>
#include <string.h>

static const hg_stream_functions *functions_of(const hg_executor *executor) { return executor->backend->streams; }

static hg_stream *stream_at(const hg_executor *executor, size_t index) {
  return ((hg_stream **)executor->streams.data)[index];
}

hg_status hg_check_stream(const char *what, const hg_executor *executor, const hg_stream *stream) {
  if (stream->executor == executor) return HG_OK;
  return hg_fail(HG_INVALID_ARGUMENT, "%s belongs to another executor", what);
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

/* Unreferenced objects, destroyed when the lock is released. */
typedef struct garbage {
  hg_kernel *kernels;
  hg_graph *graphs;
  hg_origin *origins;
} garbage;

static void sweep(garbage *g) {
  while (g->kernels != NULL) {
    hg_kernel *kernel = g->kernels;
    g->kernels = kernel->next;
    hg_kernel_destroy(kernel);
  }
  while (g->graphs != NULL) {
    hg_graph *graph = g->graphs;
    g->graphs = graph->next;
    hg_graph_destroy(graph);
  }
  while (g->origins != NULL) {
    hg_origin *origin = g->origins;
    g->origins = origin->next;
    origin->release(origin);
  }
}

static void drop_origin(hg_origin *origin, garbage *g) {
  if (origin == NULL || !hg_unreference(&origin->references)) return;
  origin->next = g->origins;
  g->origins = origin;
}

static void release_flight_locked(hg_flight *flight, garbage *g) {
  hg_kernel *kernel = flight->kernel;
  hg_graph *graph = flight->graph;
  drop_origin(flight->origin, g);
  if (kernel != NULL && hg_unreference(&kernel->references)) {
    kernel->next = g->kernels;
    g->kernels = kernel;
  }
  if (graph != NULL && hg_unreference(&graph->references)) {
    graph->next = g->graphs;
    g->graphs = graph;
  }
  *flight = (hg_flight){.kernel = NULL};
}

/* Only what the device knows: which index was out of range, the origin can tell. */
static void describe_fault(hg_stream *stream, const hg_kernel *kernel, const hg_fault *fault) {
  char sentence[256];
  hg_fault_describe(kernel->program, fault, sentence, sizeof sentence);
  if (kernel->by_index[0] != '\0' && fault->kind == HG_FAULT_OUT_OF_BOUNDS)
    snprintf(stream->sentence, sizeof stream->sentence, "%s: an index is out of range", kernel->by_index);
  else if (kernel->operations[0] != '\0')
    snprintf(stream->sentence, sizeof stream->sentence, "in %s: %s", kernel->operations, sentence);
  else memcpy(stream->sentence, sentence, sizeof sentence);
}

int hg_stream_note_fault_locked(hg_stream *stream, const hg_kernel *kernel, const hg_fault *fault, uint64_t lanes) {
  if (stream->report.fault.kind != HG_FAULT_NONE || stream->failure != HG_OK) return 0; /* only the first counts */
  stream->report = (hg_launch_report){.fault = *fault,
                                      .lanes = lanes,
                                      .backend = stream->executor->row->name,
                                      .engine = kernel->compiled.engine,
                                      .notes = ""}; /* the kernel's notes may be gone before a wait reports them */
  stream->fault_count++;
  describe_fault(stream, kernel, fault);
  return 1;
}

static void note_failure_locked(hg_stream *stream, hg_status status) {
  if (status == HG_OK || stream->failure != HG_OK) return;
  stream->failure = status;
  hg_clip(hg_last_error(), strlen(hg_last_error()), stream->sentence, sizeof stream->sentence);
}

/* Notes the fault of a launch, if it had one. 1 if there may be another: a graph can have several. */
static int take_fault_locked(hg_stream *stream, const hg_flight *flight, uint64_t number) {
  hg_executor *executor = stream->executor;
  const hg_stream_functions *f = functions_of(executor);
  void *graph = flight->graph != NULL ? flight->graph->device : NULL;
  uint64_t index = 0, written = flight->written;
  if (!f->faulted(stream->device, graph, number, &index)) return 0;
  hg_fault fault = {.kind = HG_FAULT_NONE};
  if (flight->graph != NULL) {
    number = index;
    flight = &((const hg_captured_launch *)flight->graph->launches.data)[index].flight;
  }
  const atlas_launch launch = {.step_limit = flight->step_limit};
  const hg_work work = {.kernel = flight->kernel->compiled.kernel,
                        .program = flight->kernel->program,
                        .launch = &launch};
  hg_status status = f->take_fault(executor->device, stream->device, graph, number, &work, &fault);
  note_failure_locked(stream, status);
  if (status != HG_OK) return 0;
  if (fault.kind != HG_FAULT_NONE && hg_stream_note_fault_locked(stream, flight->kernel, &fault, flight->lanes) &&
      flight->origin != NULL && stream->origin == NULL) {
    hg_reference(&flight->origin->references);
    stream->origin = flight->origin;
    stream->origin_written = written;
  }
  return graph != NULL;
}

/* Asks the origin of the launch that faulted, without the lock, before anybody changes memory that this call has waited
 * for. */
static void explain_locked(hg_stream *stream) {
  hg_origin *origin = stream->origin;
  if (origin == NULL) return;
  hg_fault fault = stream->report.fault;
  uint64_t count = stream->fault_count, written = stream->origin_written;
  char sentence[sizeof stream->sentence];
  stream->origin = NULL;
  hg_unlock(stream->executor);
  int is_told = origin->explain(origin, written, &fault, sentence, sizeof sentence);
  hg_origin_release(origin);
  hg_lock(stream->executor);
  if (!is_told || stream->failure != HG_OK) return;
  if (stream->fault_count != count || stream->report.fault.kind == HG_FAULT_NONE) return; /* by another wait */
  stream->report.fault = fault;
  memcpy(stream->sentence, sentence, sizeof sentence);
}

/* Launches below `end` are done or, if are_lost, given up: then the device is not asked for their faults. */
static void collect_locked(hg_stream *stream, uint64_t end, int are_lost, garbage *g) {
  for (; stream->collected < end; stream->collected++) {
    hg_flight *flight = &stream->flights[stream->collected % HG_STREAM_LAUNCHES];
    while (!are_lost && take_fault_locked(stream, flight, stream->collected)) continue;
    release_flight_locked(flight, g);
  }
}

/* ---- waiting ----------------------------------------------------------------------------------------------------- */

/* Takes the result of a wait or query for the work that the stream had when it began; on success that work is done. */
static hg_status note_result_locked(hg_stream *stream, int result, uint64_t given, uint64_t launched, garbage *g) {
  hg_executor *executor = stream->executor;
  hg_status status = functions_of(executor)->outcome(executor->device, stream->device, result);
  if (status != HG_BUSY) note_failure_locked(stream, status); /* the backend reports a failure only once */
  if (result != 0) return status;
  if (stream->finished < given) stream->finished = given;
  collect_locked(stream, launched, 0, g);
  return status;
}

typedef int wait_function(void *device, void *stream);

/* Waits with the lock released. */
static hg_status drain_locked(hg_stream *stream, wait_function *wait, garbage *g) {
  hg_executor *executor = stream->executor;
  uint64_t given = stream->given, launched = stream->launched;
  hg_unlock(executor);
  int result = wait(executor->device, stream->device);
  hg_lock(executor);
  return note_result_locked(stream, result, given, launched, g);
}

static hg_status settle(hg_stream *stream, wait_function *wait) {
  garbage g = {.kernels = NULL};
  hg_lock(stream->executor);
  hg_status status = drain_locked(stream, wait, &g);
  if (status == HG_OK) explain_locked(stream);
  if (status == HG_OK && stream->failure != HG_OK) status = hg_fail(stream->failure, "%s", stream->sentence);
  hg_unlock(stream->executor);
  sweep(&g);
  return status;
}

hg_status hg_stream_settle(hg_stream *stream) { return settle(stream, functions_of(stream->executor)->wait); }

/* Without the lock; another thread may release the stream meanwhile. */
static hg_status settle_locked(hg_stream *stream, wait_function *wait) {
  hg_executor *executor = stream->executor;
  hg_reference(&stream->references);
  hg_unlock(executor);
  hg_status status = settle(stream, wait);
  hg_stream_release(stream);
  hg_lock(executor);
  return status;
}

/* The stream at that index, if it is in the set and has pending work. */
static hg_stream *busy_at(const hg_executor *executor, hg_stream_set set, size_t index) {
  hg_stream *stream = stream_at(executor, index);
  return stream != NULL && (set & hg_stream_bit(stream)) != 0 && stream->finished != stream->given ? stream : NULL;
}

/* The same, but also if its work failed and no wait has reported that, or its fault has not been explained. */
static hg_stream *unsettled_at(const hg_executor *executor, hg_stream_set set, size_t index) {
  hg_stream *stream = stream_at(executor, index);
  if (stream == NULL || (set & hg_stream_bit(stream)) == 0) return NULL;
  int is_settled = stream->finished == stream->given && stream->failure == HG_OK && stream->origin == NULL;
  return is_settled ? NULL : stream;
}

hg_status hg_settle_busy_locked(hg_executor *executor, hg_stream_set *used) {
  hg_stream_set wanted = *used, left = 0;
  hg_status status = HG_OK;
  for (size_t i = 0; i < executor->streams.count && status == HG_OK; i++) {
    hg_stream *stream = unsettled_at(executor, wanted, i);
    if (stream != NULL) status = settle_locked(stream, functions_of(executor)->wait);
  }
  for (size_t i = 0; i < executor->streams.count; i++)
    if (unsettled_at(executor, wanted, i) != NULL) left |= hg_stream_bit(stream_at(executor, i));
  *used &= ~wanted | left;
  return status;
}

void hg_settle_at_last_locked(hg_executor *executor) {
  for (size_t i = 0; i < executor->streams.count; i++) {
    hg_stream *stream = busy_at(executor, UINT64_MAX, i);
    if (stream != NULL) (void)settle_locked(stream, functions_of(executor)->wait_at_last);
  }
}

size_t hg_busy_streams_locked(hg_executor *executor, hg_stream_set used, void ***devices) {
  void **list = *devices = executor->busy_streams.data;
  size_t count = 0;
  for (size_t i = 0; i < executor->streams.count; i++)
    if (busy_at(executor, used, i) != NULL) list[count++] = stream_at(executor, i)->device;
  return count;
}

/* ---- submitting -------------------------------------------------------------------------------------------------- */

static int is_full(const hg_stream *stream) {
  return stream->capture == NULL && stream->launched - stream->collected == HG_STREAM_LAUNCHES;
}

hg_status hg_stream_admit_locked(hg_stream *stream) {
  const hg_stream_functions *f = functions_of(stream->executor);
  if (stream->capture != NULL || f->admit == NULL) return HG_OK;
  return f->admit(stream->executor->device, stream->device);
}

/* As hg_stream_query. */
static hg_status query_locked(hg_stream *stream, garbage *g) {
  hg_executor *executor = stream->executor;
  int result = functions_of(executor)->query(executor->device, stream->device);
  return note_result_locked(stream, result, stream->given, stream->launched, g);
}

/* A caller that wants to be asked must not be stuck in the driver. */
static hg_status ask_for_room_locked(hg_stream *stream) {
  hg_patience patience = hg_executor_patience(stream->executor);
  uint64_t begun = hg_time_ns();
  while (is_full(stream)) {
    garbage g = {.kernels = NULL};
    HG_TRY(hg_stream_admit_locked(stream));
    hg_status status = query_locked(stream, &g);
    hg_unlock(stream->executor);
    sweep(&g);
    if (status == HG_BUSY) status = hg_patience_sleep(&patience, begun);
    hg_lock(stream->executor);
    if (status == HG_CANCELLED || (status != HG_OK && is_full(stream))) return status;
  }
  return HG_OK;
}

hg_status hg_stream_room_locked(hg_stream *stream) {
  HG_TRY(hg_stream_admit_locked(stream));
  if (is_full(stream) && stream->executor->ask != NULL) return ask_for_room_locked(stream);
  while (is_full(stream)) {
    garbage g = {.kernels = NULL};
    hg_status status = drain_locked(stream, functions_of(stream->executor)->wait, &g);
    int is_stuck = status != HG_OK && is_full(stream);
    hg_unlock(stream->executor);
    sweep(&g);
    hg_lock(stream->executor);
    if (is_stuck) return status;
  }
  return HG_OK;
}

hg_status hg_stream_submit_locked(hg_stream *stream, hg_work *work, hg_kernel *kernel, uint64_t lanes,
                                  hg_origin *origin) {
  hg_executor *executor = stream->executor;
  if (stream->capture != NULL) return hg_graph_add_locked(stream->capture, work, kernel, lanes);
  work->number = stream->launched;
  HG_TRY(functions_of(executor)->submit(executor->device, stream->device, work));
  stream->given++;
  if (kernel == NULL) return HG_OK;
  hg_reference(&kernel->references);
  if (origin != NULL) hg_reference(&origin->references);
  stream->flights[stream->launched++ % HG_STREAM_LAUNCHES] = (hg_flight){.kernel = kernel,
                                                                         .origin = origin,
                                                                         .lanes = lanes,
                                                                         .step_limit = work->launch->step_limit,
                                                                         .written = executor->written};
  return HG_OK;
}

/* ---- the public functions ---------------------------------------------------------------------------------------- */

/* A free index in the table, and capacity to list all streams. */
static hg_status find_index_locked(hg_executor *executor, uint32_t *index) {
  size_t count = executor->streams.count, i = 0;
  while (i < count && stream_at(executor, i) != NULL) i++;
  *index = (uint32_t)i;
  if (i < count) return HG_OK;
  if (hg_array_append(&executor->allocator, &executor->busy_streams, NULL, 1) == NULL ||
      hg_array_append(&executor->allocator, &executor->streams, NULL, 1) == NULL)
    return hg_fail_memory("the table of streams", (count + 1) * sizeof(hg_stream *));
  return HG_OK;
}

static hg_status open_locked(hg_executor *executor, hg_stream *stream, void *foreign) {
  HG_TRY(find_index_locked(executor, &stream->index));
  HG_TRY(functions_of(executor)->open(executor->device, foreign, &stream->device));
  stream->opened = executor->born;
  hg_stream_note_behind_locked(stream, stream->index, UINT64_MAX);
  ((hg_stream **)executor->streams.data)[stream->index] = stream;
  return HG_OK;
}

hg_status hg_stream_create(hg_executor *executor, const hg_stream_desc *desc, hg_stream **out) {
  hg_stream_desc own;
  if (executor == NULL || out == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_stream_create: an argument is NULL");
  *out = NULL;
  HG_TRY(HG_READ(hg_stream_desc, &own, desc));
  if (own.flags != 0)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_stream_desc.flags 0x%x has a bit that means nothing", (unsigned)own.flags);
  hg_stream *stream = hg_allocate(&executor->allocator, 1, sizeof *stream);
  if (stream == NULL) return hg_fail_memory("a stream", sizeof *stream);
  atomic_init(&stream->references, 1);
  stream->executor = executor;
  hg_lock(executor);
  hg_status status = open_locked(executor, stream, own.foreign);
  hg_unlock(executor);
  if (status == HG_OK) *out = stream;
  else hg_release(&executor->allocator, stream);
  if (status == HG_OK) hg_executor_retain(executor);
  return status;
}

hg_stream *hg_stream_retain(hg_stream *stream) {
  if (stream != NULL) hg_reference(&stream->references);
  return stream;
}

/* The stream stays in the table until its work is done, for calls that wait for memory that the work uses. Work that
 * not even wait_at_last can wait for is lost. */
void hg_stream_release(hg_stream *stream) {
  if (stream == NULL) return;
  hg_executor *executor = stream->executor;
  garbage g = {.kernels = NULL};
  hg_lock(executor);
  if (atomic_load(&stream->references) == 1) (void)drain_locked(stream, functions_of(executor)->wait_at_last, &g);
  int is_last = hg_unreference(&stream->references); /* a waiting thread may hold another reference */
  if (is_last) {
    collect_locked(stream, stream->launched, 1, &g);
    drop_origin(stream->origin, &g);
    ((hg_stream **)executor->streams.data)[stream->index] = NULL;
    functions_of(executor)->close(executor->device, stream->device);
  }
  hg_unlock(executor);
  sweep(&g);
  if (!is_last) return;
  hg_graph_release(stream->capture);
  hg_release(&executor->allocator, stream);
  hg_executor_release(executor);
}

/* What failed since the last wait. */
typedef struct trouble {
  hg_status failure;
  hg_launch_report report;
  char sentence[sizeof((hg_stream *)NULL)->sentence];
} trouble;

static void take_trouble_locked(hg_stream *stream, trouble *t, garbage *g) {
  t->failure = stream->failure;
  t->report = stream->report;
  memcpy(t->sentence, stream->sentence, sizeof t->sentence);
  stream->failure = HG_OK;
  stream->report = (hg_launch_report){.size = 0};
  drop_origin(stream->origin, g);
  stream->origin = NULL;
}

static hg_status report_trouble(hg_stream *stream, const trouble *t, hg_launch_report *report) {
  if (report != NULL) {
    hg_launch_report result = t->report;
    if (result.fault.kind == HG_FAULT_NONE) { /* not the fault of a single launch */
      result.backend = stream->executor->row->name;
      result.engine = stream->executor->info.engine;
      result.notes = "";
    }
    HG_TRY(HG_WRITE(hg_launch_report, report, &result));
  }
  if (t->failure != HG_OK) return hg_fail(t->failure, "%s", t->sentence);
  if (t->report.fault.kind == HG_FAULT_NONE) return HG_OK;
  hg_log(stream->executor, HG_LOG_WARNING, "a launch of a stream faulted: %s", t->sentence);
  hg_fail(HG_FAULT, "%s", t->sentence);
  const hg_fault *fault = &t->report.fault;
  if (fault->has_number) hg_error_has_index(fault->number, fault->axis, fault->length);
  return HG_FAULT;
}

hg_status hg_stream_wait(hg_stream *stream, hg_launch_report *report) {
  if (stream == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_stream_wait: the stream is NULL");
  HG_TRY(HG_CHECK_RESULT(hg_launch_report, report));
  trouble t = {.failure = HG_OK};
  garbage g = {.kernels = NULL};
  hg_lock(stream->executor);
  hg_status status =
      stream->capture == NULL
          ? drain_locked(stream, functions_of(stream->executor)->wait, &g)
          : hg_fail(HG_BUSY, "the stream captures a graph; end the capture before you wait for it");
  if (status == HG_OK) explain_locked(stream);
  if (status != HG_BUSY) take_trouble_locked(stream, &t, &g);
  hg_unlock(stream->executor);
  sweep(&g);
  return status != HG_BUSY ? report_trouble(stream, &t, report) : status;
}

hg_status hg_stream_query(hg_stream *stream) {
  if (stream == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_stream_query: the stream is NULL");
  garbage g = {.kernels = NULL};
  hg_lock(stream->executor);
  hg_status status = query_locked(stream, &g);
  if (status == HG_OK) explain_locked(stream);
  hg_unlock(stream->executor);
  sweep(&g);
  return status;
}
