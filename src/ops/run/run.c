/* run.c - runs an executable: all tensors are checked against what was declared and the workspace is allocated before
 * the first launch is made. */
#include "ops/run/executable.h"
#include "ops/graph/ops_tuning.h"

/* A place with its tensor. */
typedef struct given {
  hg_buffer *buffer;
  uint64_t first_byte; /* of the lowest element, relative to the buffer */
  uintptr_t address;   /* of the lowest element */
  uint64_t byte_count;
  uint32_t ordered; /* for many tensors: the place that is next in the order of addresses */
} given;

enum { STACK_PLACES = 16 };

typedef struct run {
  hg_executable *e;
  const hg_tensor *inputs, *outputs;
  hg_stream *stream;
  hg_launch_report *report; /* the caller's; NULL: there is none */
  hg_origin *origin;        /* for a run on a stream of an executable with guards; NULL */
  given *places;
  hg_buffer *workspace, *any; /* any: the buffer of a tensor that has elements */
  hg_fault fault;             /* of the first launch that faulted */
  hg_status status;
  uint32_t cancel_number;       /* executor->cancels when the run began */
  hg_launch_report total;
  char sentence[512];
  given few[STACK_PLACES];
} run;

/* ---- what is wrong with a tensor --------------------------------------------------------------------------------- */

static const char *what_of(const ops_place *place) { return place->is_output ? "output" : "input"; }

/* "f32[2, 3]" */
static const char *type_text(uint32_t type, uint32_t rank, const uint64_t *shape, char *text, size_t bytes) {
  const char *name = type < ATLAS_TYPE_COUNT ? atlas_type_name((atlas_type)type) : NULL;
  size_t used = (size_t)snprintf(text, bytes, "%s[", name != NULL ? name : "?");
  for (uint32_t d = 0; d < rank && d < HG_MAX_RANK && used < bytes; d++)
    used += (size_t)snprintf(text + used, bytes - used, "%s%llu", d > 0 ? ", " : "", (unsigned long long)shape[d]);
  if (used < bytes) snprintf(text + used, bytes - used, "]");
  return text;
}

static const char *strides_text(uint32_t rank, const int64_t *stride, char *text, size_t bytes) {
  size_t used = (size_t)snprintf(text, bytes, "(");
  for (uint32_t d = 0; d < rank && used < bytes; d++)
    used += (size_t)snprintf(text + used, bytes - used, "%s%lld", d > 0 ? ", " : "", (long long)stride[d]);
  if (used < bytes) snprintf(text + used, bytes - used, ")");
  return text;
}

HG_RARE static hg_status fail_shape(const ops_place *place, const hg_tensor *tensor) {
  char has[256], declared[256];
  if (tensor->rank > HG_MAX_RANK)
    return hg_fail(HG_BINDING, "%s '%s' has rank %u; the highest is %d", what_of(place), place->name,
                   (unsigned)tensor->rank, HG_MAX_RANK);
  return hg_fail(HG_BINDING, "%s '%s' is %s; it was declared as %s", what_of(place), place->name,
                 type_text(tensor->type, tensor->rank, tensor->shape, has, sizeof has),
                 type_text(place->type, place->rank, place->shape, declared, sizeof declared));
}

HG_RARE static hg_status fail_strides(const ops_place *place, const hg_tensor *tensor) {
  char has[256], declared[256];
  return hg_fail(HG_BINDING, "%s '%s' has strides %s; it was declared with %s", what_of(place), place->name,
                 strides_text(tensor->rank, tensor->stride, has, sizeof has),
                 strides_text(place->rank, place->stride, declared, sizeof declared));
}

HG_RARE static hg_status fail_bounds(const ops_place *place, const hg_tensor *tensor) {
  uint64_t bytes = tensor->buffer->byte_count;
  return hg_fail(HG_BINDING,
                 "%s '%s' begins at element %lld and reaches from %lld to %lld elements beside it, which is not all in "
                 "its buffer of %llu bytes (%llu of %s)",
                 what_of(place), place->name, (long long)tensor->offset, (long long)place->lowest,
                 (long long)(place->lowest + (int64_t)place->extent - 1), (unsigned long long)bytes,
                 (unsigned long long)(bytes / place->element_bytes), atlas_type_name((atlas_type)place->type));
}

HG_RARE static hg_status fail_alignment(const ops_place *place, const hg_tensor *tensor) {
  return hg_fail(HG_BINDING,
                 "the buffer of %s '%s' starts at byte %llu of its memory; it must be a multiple of %u (%s)",
                 what_of(place), place->name, (unsigned long long)tensor->buffer->offset,
                 (unsigned)place->element_bytes, atlas_type_name((atlas_type)place->type));
}

/* ---- checks ------------------------------------------------------------------------------------------------------ */

static int has_strides(const ops_place *place, const hg_tensor *tensor) {
  for (uint32_t d = 0; d < place->rank; d++)
    if (tensor->stride[d] != place->stride[d] && place->shape[d] > 1) return 0;
  return 1;
}

static hg_status check_tensor(const run *r, const ops_place *place, const hg_tensor *tensor, given *at) {
  if (tensor->type != place->type || tensor->rank != place->rank ||
      memcmp(tensor->shape, place->shape, place->rank * sizeof place->shape[0]) != 0)
    return fail_shape(place, tensor);
  const hg_buffer *buffer = tensor->buffer;
  *at = (given){.buffer = tensor->buffer};
  if (place->extent == 0) return HG_OK; /* without elements, nobody uses the address */
  if (buffer == NULL) return hg_fail(HG_BINDING, "%s '%s' has no buffer", what_of(place), place->name);
  if (!has_strides(place, tensor)) return fail_strides(place, tensor);
  const hg_storage *storage = buffer->storage;
  if (storage->executor != r->e->executor)
    return hg_fail(HG_BINDING, "the buffer of %s '%s' belongs to another executor", what_of(place), place->name);
  uint64_t elements = buffer->byte_count / place->element_bytes;
  /* lowest is between -OPS_MOST_REACH and 0 */
  if (tensor->offset < -place->lowest || (uint64_t)(tensor->offset + place->lowest) > elements ||
      place->extent > elements - (uint64_t)(tensor->offset + place->lowest))
    return fail_bounds(place, tensor);
  if ((buffer->offset & (place->element_bytes - 1u)) != 0) return fail_alignment(place, tensor);
  at->first_byte = (uint64_t)(tensor->offset + place->lowest) * place->element_bytes;
  at->byte_count = place->extent * place->element_bytes;
  at->address = (uintptr_t)storage->address + buffer->offset + at->first_byte;
  return HG_OK;
}

static int is_same_view(const ops_place *a, const given *at_a, const ops_place *b, const given *at_b) {
  if (at_a->address != at_b->address || at_a->byte_count != at_b->byte_count || a->type != b->type ||
      a->rank != b->rank || a->lowest != b->lowest)
    return 0;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->shape[d] != b->shape[d] || (a->shape[d] > 1 && a->stride[d] != b->stride[d])) return 0;
  return 1;
}

HG_RARE static hg_status fail_overlap(const ops_place *written, const ops_place *other, int is_same) {
  const char *rule = "and only the very same view may, of an input that is read element by element";
  if (is_same) rule = "and the other is not read element by element before that; give one of them memory of its own";
  if (other->is_written) rule = "and so is the other; give one of them memory of its own";
  return hg_fail(HG_BINDING, "%s '%s' and %s '%s' %s: '%s' is written, %s", what_of(written), written->name,
                 what_of(other), other->name, is_same ? "are the same view" : "overlap", written->name, rule);
}

static hg_status check_overlap(const run *r, uint32_t written, uint32_t other) {
  const given *a = &r->places[written], *b = &r->places[other];
  if (a->address + a->byte_count <= b->address || b->address + b->byte_count <= a->address) return HG_OK;
  if (a->byte_count == 0 || b->byte_count == 0) return HG_OK;
  const ops_place *to = &r->e->places[written], *from = &r->e->places[other];
  int is_same = is_same_view(to, a, from, b);
  if (is_same && ops_may_share(r->e, written, other)) return HG_OK;
  return fail_overlap(to, from, is_same);
}

static hg_status check_each(const run *r) {
  const hg_executable *e = r->e;
  for (uint32_t w = 0; w < e->place_count; w++) {
    if (!e->places[w].is_written) continue;
    for (uint32_t i = 0; i < e->place_count; i++)
      if (i != w && (i < w || !e->places[i].is_written)) HG_TRY(check_overlap(r, w, i));
  }
  return HG_OK;
}

/* ---- of many tensors --------------------------------------------------------------------------------------------- */

static uintptr_t address_at(const given *places, uint32_t k) { return places[places[k].ordered].address; }

/* Restores the heap below a place: the largest of its descendants moves up. */
static void sift(given *places, uint32_t k, uint32_t count) {
  for (uint32_t next = 2 * k + 1; next < count; k = next, next = 2 * k + 1) {
    next += next + 1 < count && address_at(places, next + 1) > address_at(places, next);
    if (address_at(places, next) <= address_at(places, k)) return;
    uint32_t other = places[k].ordered;
    places[k].ordered = places[next].ordered, places[next].ordered = other;
  }
}

static void sort_by_address(given *places, uint32_t count) {
  for (uint32_t k = 0; k < count; k++) places[k].ordered = k;
  for (uint32_t k = count / 2; k-- > 0;) sift(places, k, count);
  for (uint32_t end = count; end-- > 1;) {
    uint32_t last = places[0].ordered;
    places[0].ordered = places[end].ordered, places[end].ordered = last;
    sift(places, 0, end);
  }
}

static hg_status check_beside_all(const run *r, uint32_t number) {
  const hg_executable *e = r->e;
  for (uint32_t i = 0; i < e->place_count; i++) {
    int is_first = e->places[number].is_written && (i < number || !e->places[i].is_written);
    if (i == number || (!is_first && !e->places[i].is_written)) continue;
    HG_TRY(check_overlap(r, is_first ? number : i, is_first ? i : number));
  }
  return HG_OK;
}

/* In the order of addresses, only a place that begins before an earlier one ends is compared with all others. */
static hg_status check_overlaps(const run *r) {
  const hg_executable *e = r->e;
  uintptr_t end = 0, written_end = 0;
  if (e->place_count <= OPS_PLACES_BY_PAIRS) return check_each(r);
  sort_by_address(r->places, e->place_count);
  for (uint32_t k = 0; k < e->place_count; k++) {
    uint32_t number = r->places[k].ordered;
    const given *own = &r->places[number];
    int is_written = e->places[number].is_written;
    if (own->byte_count == 0) continue;
    if (own->address < written_end || (is_written && own->address < end)) HG_TRY(check_beside_all(r, number));
    uintptr_t own_end = own->address + own->byte_count;
    if (own_end > end) end = own_end;
    if (is_written && own_end > written_end) written_end = own_end;
  }
  return HG_OK;
}

static hg_status check_mapped_locked(const run *r, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const hg_buffer *buffer = r->places[i].buffer;
    if (r->places[i].byte_count > 0 && buffer->storage->map_count > 0)
      return hg_fail(HG_BUSY, "the buffer of %s '%s' is mapped; unmap it before the run", what_of(&r->e->places[i]),
                     r->e->places[i].name);
  }
  return HG_OK;
}

static hg_status check_tensors(run *r, const hg_tensor *inputs, const hg_tensor *outputs) {
  const hg_executable *e = r->e;
  uint32_t count = e->place_count;
  for (uint32_t i = 0; i < count; i++) {
    const hg_tensor *tensor = i < e->input_count ? &inputs[i] : &outputs[i - e->input_count];
    HG_TRY(check_tensor(r, &e->places[i], tensor, &r->places[i]));
    if (r->places[i].byte_count > 0) r->any = r->places[i].buffer;
  }
  HG_TRY(check_overlaps(r));
  hg_lock(e->executor);
  if (e->is_cached) ops_cache_touch_locked(e->executor->attachment, r->e);
  hg_status status = check_mapped_locked(r, count);
  if (status == HG_OK && r->stream != NULL && e->guards != NULL) r->origin = ops_origin_begin_locked(r->e, inputs);
  hg_unlock(e->executor);
  if (r->origin != NULL) ops_origin_hold(r->origin, inputs, outputs);
  return status;
}

/* ---- launches ---------------------------------------------------------------------------------------------------- */

/* A binding of no bytes: it begins behind the last whole element of some buffer, since a count of 0 means the rest of
 * it. */
static hg_binding nothing_of(hg_buffer *buffer, uint32_t slot) {
  uint64_t end = buffer->offset + buffer->byte_count;
  uint64_t rest = end % sizeof(uint64_t) <= buffer->byte_count ? end % sizeof(uint64_t) : buffer->byte_count;
  return (hg_binding){.slot = slot, .buffer = buffer, .offset = buffer->byte_count - rest};
}

static hg_binding binding_of(const run *r, const ops_bind *bind) {
  if (bind->byte_count == 0) return nothing_of(r->any != NULL ? r->any : r->workspace, bind->slot);
  hg_binding binding = {.slot = bind->slot, .byte_count = bind->byte_count};
  if (bind->place == OPS_WORKSPACE) {
    binding.buffer = r->workspace;
    binding.offset = bind->first_byte;
  } else {
    binding.buffer = r->places[bind->place].buffer;
    binding.offset = r->places[bind->place].first_byte;
  }
  return binding;
}

/* The tensor that a fault concerns, by the program's name for it; NULL: none, or a temporary. */
static const ops_place *place_of_fault(const hg_executable *e, const ops_launch *launch, const hg_fault *fault) {
  for (uint32_t b = 0; b < launch->bind_count && fault->buffer[0] != '\0'; b++) {
    const ops_bind *bind = &launch->binds[b];
    const atlas_symbol *symbol = atlas_symbol_at(launch->kernel->program, bind->slot);
    if (bind->place != OPS_WORKSPACE && strcmp(symbol->name, fault->buffer) == 0) return &e->places[bind->place];
  }
  return NULL;
}

static int explain(const hg_executable *e, const hg_tensor *inputs, const hg_tensor *outputs, hg_fault *fault,
                   char *text, size_t text_bytes) {
  const hg_allocator *allocator = &e->executor->allocator;
  uint32_t count = ops_guards_input_count(e);
  hg_tensor *of_indices = hg_allocate_unset(allocator, count, sizeof *of_indices);
  if (of_indices == NULL) return 0;
  for (uint32_t i = 0; i < count; i++) ops_guards_input(e, i, inputs, outputs, &of_indices[i]);
  int is_told = ops_explain(e, of_indices, fault, text, text_bytes);
  hg_release(allocator, of_indices);
  return is_told;
}

/* Programs use their own names for tensors, and special addresses for wrong indices. */
void ops_describe_fault(const hg_executable *e, const ops_launch *launch, const hg_tensor *inputs,
                        const hg_tensor *outputs, hg_fault *fault, char *text, size_t text_bytes) {
  char sentence[256], names[128];
  const ops_place *place = place_of_fault(e, launch, fault);
  if (place != NULL) memcpy(fault->buffer, place->name, sizeof fault->buffer);
  if (fault->kind == HG_FAULT_OUT_OF_BOUNDS && e->guards != NULL) {
    if (explain(e, inputs, outputs, fault, text, text_bytes)) return;
    ops_guards_names(e, names, sizeof names);
    snprintf(text, text_bytes, "%s: an index is out of range", names);
    return;
  }
  hg_fault_describe(launch->kernel->program, fault, sentence, sizeof sentence);
  ops_operations_of(e, launch->step, names, sizeof names);
  snprintf(text, text_bytes, "in %s: %s", names, sentence);
}

/* The first fault counts; what follows it still runs, as on a stream. */
static void note_fault(run *r, const ops_launch *launch, const hg_fault *fault) {
  if (r->status != HG_OK) return;
  r->status = HG_FAULT;
  r->fault = *fault;
  ops_describe_fault(r->e, launch, r->inputs, r->outputs, &r->fault, r->sentence, sizeof r->sentence);
  hg_log(r->e->executor, HG_LOG_WARNING, "%s", r->sentence);
}

static hg_status launch(run *r, const ops_launch *launch) {
  hg_binding bindings[OPS_MAX_BINDINGS];
  for (uint32_t b = 0; b < launch->bind_count; b++) bindings[b] = binding_of(r, &launch->binds[b]);
  hg_launch_desc desc = {.size = sizeof desc,
                         .bindings = bindings,
                         .binding_count = launch->bind_count,
                         .binding_size = sizeof(hg_binding),
                         .scalars = launch->scalars,
                         .scalar_count = launch->scalar_count,
                         .scalar_size = sizeof(hg_scalar),
                         .stream = r->stream};
  ops_set_shape(launch, &desc);
  hg_launch_report report, *to = r->report != NULL ? &report : NULL;
  hg_fault fault;
  report.size = sizeof report;
  hg_status status =
      hg_launch_noting(launch->kernel, &desc, launch->moved_bytes, r->cancel_number, to, r->origin, &fault);
  if (r->report != NULL && (status == HG_OK || status == HG_FAULT)) {
    r->total.lanes += report.lanes;
    r->total.nanoseconds += report.nanoseconds;
    r->total.engine = report.engine;
    if (r->total.notes[0] == '\0') r->total.notes = report.notes;
  }
  if (status != HG_FAULT) return status;
  note_fault(r, launch, &fault);
  return HG_OK;
}

static hg_status run_launches(run *r) {
  hg_executable *e = r->e;
  if (e->workspace_bytes > 0 && e->launch_count > 0) {
    hg_buffer_desc desc = {.size = sizeof desc, .flags = HG_BUFFER_UNINIT, .stream = r->stream};
    HG_TRY(hg_buffer_create(e->executor, &desc, e->workspace_bytes, &r->workspace));
  }
  hg_status status = HG_OK;
  hg_patience patience = {.ask = NULL}; /* a single launch does without the clock, which costs something */
  if (e->launch_count > 1) patience = ops_patience(e);
  patience.cancel_number = r->cancel_number;
  for (uint32_t i = 0; i < e->launch_count && status == HG_OK; i++) {
    status = launch(r, &e->launches[i]);
    if (status == HG_OK && i + 1 < e->launch_count) status = hg_patience_ask(&patience);
  }
  hg_buffer_release(r->workspace); /* it is freed once the work that uses it is done */
  return status;
}

hg_status ops_fail_fault(const hg_fault *fault, const char *sentence) {
  hg_fail(HG_FAULT, "%s", sentence);
  if (fault->has_number) hg_error_has_index(fault->number, fault->axis, fault->length);
  return HG_FAULT;
}

static hg_status give_report(run *r) {
  if (r->report != NULL) {
    r->total.fault = r->fault;
    HG_TRY(HG_WRITE(hg_launch_report, r->report, &r->total));
  }
  return r->status == HG_OK ? HG_OK : ops_fail_fault(&r->fault, r->sentence);
}

static hg_status run_with(run *r, const hg_tensor *inputs, const hg_tensor *outputs) {
  hg_executor *executor = r->e->executor;
  if (r->stream != NULL) HG_TRY(hg_check_stream("the stream of a run", executor, r->stream));
  HG_TRY(check_tensors(r, inputs, outputs));
  if (r->report != NULL)
    r->total = (hg_launch_report){.backend = executor->row->name, .engine = executor->info.engine, .notes = ""};
  hg_status status = run_launches(r);
  hg_origin_release(r->origin);
  return status == HG_OK ? give_report(r) : status;
}

hg_status ops_run(hg_executable *executable, const hg_tensor *inputs, const hg_tensor *outputs, hg_stream *stream,
                  uint32_t cancel_number, hg_launch_report *report) {
  run r;
  r.e = executable;
  r.inputs = inputs;
  r.outputs = outputs;
  r.stream = stream;
  r.report = report;
  r.origin = NULL;
  r.workspace = r.any = NULL;
  r.status = HG_OK;
  r.cancel_number = cancel_number;
  r.fault.kind = HG_FAULT_NONE;
  r.places = r.few;
  if (executable->place_count > STACK_PLACES) {
    r.places = hg_allocate_unset(&executable->executor->allocator, executable->place_count, sizeof *r.places);
    if (r.places == NULL) return hg_fail_memory("a run's tensors", executable->place_count * sizeof *r.places);
  }
  hg_status status = run_with(&r, inputs, outputs);
  if (r.places != r.few) hg_release(&executable->executor->allocator, r.places);
  return status;
}

hg_status hg_run(hg_executable *executable, const hg_tensor *inputs, size_t input_count, const hg_tensor *outputs,
                 size_t output_count, hg_stream *stream, hg_launch_report *report) {
  if (executable == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_run: the executable is NULL");
  uint32_t cancel_number = atomic_load(&executable->executor->cancels);
  HG_TRY(HG_CHECK_RESULT(hg_launch_report, report));
  if (input_count != executable->input_count || output_count != executable->output_count)
    return hg_fail(HG_INVALID_ARGUMENT,
                   "hg_run: %zu inputs and %zu outputs are given; the computation has %u and %u", input_count,
                   output_count, (unsigned)executable->input_count, (unsigned)executable->output_count);
  if ((inputs == NULL && input_count > 0) || (outputs == NULL && output_count > 0))
    return hg_fail(HG_INVALID_ARGUMENT, "hg_run: '%s' is NULL",
                   inputs == NULL && input_count > 0 ? "inputs" : "outputs");
  return ops_run(executable, inputs, outputs, stream, cancel_number, report);
}
