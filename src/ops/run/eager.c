/* eager.c - runs one operation at once: by the executable of a computation with that operation, and a table of earlier
 * calls, whose key has all that an executable depends on: operation, arguments, and each tensor's type, shape and
 * strides.
 *
 * A call that is found in the table, is a single launch and uses no stream is launched directly, with the executor's
 * lock held as for any launch: only addresses differ from the last such call, and they are checked here. If anything is
 * unusual, hg_run handles it and reports errors.
 *
 * Tensors that are the very same view are one input; a result that is written over an input updates it. */
#include "ops/run/executable.h"
#include "ops/graph/infer.h"
#include "ops/graph/table.h"
#include "base/bytes.h"

enum {
  STACK_TENSORS = 16,      /* of a call that needs no allocation */
  KEY_WORDS = 2,         /* words before those of arguments and tensors */
  TENSOR_WORDS = 1 + 2 * HG_MAX_RANK,
  ARGUMENT_WORDS = 2 + HG_MAX_RANK,
  MOST_ARGUMENTS = 16,
  MOST_TENSORS = 1 << 23,  /* a key numbers tensors with 24 bits */
  STACK_WORDS = KEY_WORDS + MOST_ARGUMENTS * ARGUMENT_WORDS + STACK_TENSORS * TENSOR_WORDS,
  MOST_SYMBOLS = 64      /* of a direct launch */
};

enum { NO_TENSOR = INT32_MAX };

/* The arguments of hg_apply. */
typedef struct call {
  hg_op op;
  const hg_tensor *inputs, *outputs;
  const hg_argument *arguments;
  uint32_t input_count, output_count, argument_count, count; /* count: the number of all tensors */
  hg_stream *stream;
  hg_executor *executor;
  uint32_t cancel_number; /* executor->cancels when the call began */
  uint32_t *same_as;    /* by tensor: the first tensor that is the same view; itself if there is none */
  uintptr_t *addresses; /* by tensor: the address of element 0; 0: it is absent */
  uint32_t *by_address, address_mask; /* for many tensors: a hash table by address: 1 + the number of the first; 0:
                                         free */
  uint64_t *words, hash;
  uint32_t word_count;
} call;

static const hg_tensor *tensor_at(const call *c, uint32_t i) {
  return i < c->input_count ? &c->inputs[i] : &c->outputs[i - c->input_count];
}

/* ---- the key ----------------------------------------------------------------------------------------------------- */

static int is_empty(const hg_tensor *tensor) {
  for (uint32_t d = 0; d < tensor->rank; d++)
    if (tensor->shape[d] == 0) return 1;
  return 0;
}

/* A tensor without a buffer is absent, unless it has no elements and so needs no buffer. */
static int is_absent(const hg_tensor *tensor) {
  return tensor->buffer == NULL && (tensor->type == ATLAS_NONE || !is_empty(tensor));
}

static uintptr_t address_of(const hg_tensor *tensor, uint32_t element_bytes) {
  if (tensor->buffer == NULL) return 0;
  const hg_buffer *buffer = tensor->buffer;
  return (uintptr_t)buffer->storage->address + buffer->offset + (uintptr_t)(uint64_t)tensor->offset * element_bytes;
}

static int is_same_view(const hg_tensor *a, const hg_tensor *b) {
  if (a->type != b->type || a->rank != b->rank || a->buffer->storage != b->buffer->storage) return 0;
  for (uint32_t d = 0; d < a->rank; d++)
    if (a->shape[d] != b->shape[d] || a->stride[d] != b->stride[d]) return 0;
  return 1;
}

static int is_same(const call *c, uint32_t k, uint32_t i) {
  return c->addresses[k] == c->addresses[i] && c->addresses[i] != 0 && is_same_view(tensor_at(c, k), tensor_at(c, i));
}

static uint32_t first_same(const call *c, uint32_t i) {
  if (c->by_address != NULL) {
    uint32_t at = (uint32_t)((uint64_t)c->addresses[i] * UINT64_C(0x9e3779b97f4a7c15) >> 32) & c->address_mask;
    while (c->by_address[at] != 0 && !is_same(c, c->by_address[at] - 1, i)) at = (at + 1) & c->address_mask;
    if (c->by_address[at] == 0) c->by_address[at] = i + 1;
    return c->by_address[at] - 1;
  }
  for (uint32_t k = 0; k < i; k++)
    if (is_same(c, k, i)) return k;
  return i;
}

static uint64_t *put_tensor(call *c, uint32_t i, uint64_t *at) {
  const hg_tensor *tensor = tensor_at(c, i);
  if (is_absent(tensor)) {
    c->addresses[i] = 0;
    c->same_as[i] = NO_TENSOR;
    *at++ = UINT64_MAX;
    return at;
  }
  c->addresses[i] = address_of(tensor, atlas_bytes((atlas_type)tensor->type));
  c->same_as[i] = first_same(c, i);
  *at++ = tensor->type | (uint64_t)tensor->rank << 32 | (uint64_t)c->same_as[i] << 40;
  for (uint32_t d = 0; d < tensor->rank; d++) {
    at[0] = tensor->shape[d];
    at[1] = (uint64_t)tensor->stride[d];
    at += 2;
  }
  return at;
}

static uint64_t *put_argument(const hg_argument *argument, uint64_t *at) {
  *at++ = argument->count | (uint64_t)(argument->has_number != 0) << 32;
  memcpy(at++, &argument->number, sizeof *at);
  uint32_t count = argument->count < HG_MAX_RANK ? argument->count : HG_MAX_RANK;
  for (uint32_t i = 0; i < count; i++) *at++ = (uint64_t)argument->integers[i];
  return at;
}

static void make_key(call *c) {
  uint64_t *at = c->words;
  *at++ = (uint64_t)c->op | (uint64_t)c->argument_count << 32;
  *at++ = (uint64_t)c->input_count | (uint64_t)c->output_count << 32;
  for (uint32_t i = 0; i < c->argument_count; i++) at = put_argument(&c->arguments[i], at);
  for (uint32_t i = 0; i < c->count; i++) at = put_tensor(c, i, at);
  c->word_count = (uint32_t)(at - c->words);
  c->hash = hg_hash_words(c->words, c->word_count);
}

static ops_eager *find_call_locked(const ops_attachment *a, const call *c) {
  for (ops_eager *e = a->calls[c->hash % OPS_BUCKETS]; e != NULL; e = e->next) {
    if (e->hash != c->hash || e->word_count != c->word_count) continue;
    uint32_t i = 0;
    while (i < c->word_count && e->words[i] == c->words[i]) i++;
    if (i == c->word_count) return e;
  }
  return NULL;
}

/* ---- a launch right away ----------------------------------------------------------------------------------------- */

/* The address where a place's elements begin; 0: something is unusual. */
static uintptr_t check_place(const hg_executable *e, const ops_place *place, const hg_tensor *tensor) {
  const hg_buffer *buffer = tensor->buffer;
  if (buffer == NULL) return 0;
  const hg_storage *storage = buffer->storage;
  uint64_t first = (uint64_t)tensor->offset + (uint64_t)place->lowest, bytes = place->element_bytes;
  if (tensor->offset < -place->lowest || first > buffer->byte_count) return 0;
  if (first * bytes + place->extent * bytes > buffer->byte_count || (buffer->offset & (bytes - 1)) != 0) return 0;
  if (storage->executor != e->executor || storage->map_count > 0 || storage->used != 0) return 0;
  return (uintptr_t)storage->address + buffer->offset + first * bytes;
}

static int overlap(const hg_executable *e, const uintptr_t *addresses) {
  for (uint32_t w = 0; w < e->place_count; w++) {
    if (!e->places[w].is_written) continue;
    uintptr_t end = addresses[w] + e->places[w].extent * e->places[w].element_bytes;
    for (uint32_t i = 0; i < e->place_count; i++)
      if (i != w && addresses[w] < addresses[i] + e->places[i].extent * e->places[i].element_bytes &&
          addresses[i] < end)
        return 1;
  }
  return 0;
}

/* HG_UNPREPARED: hg_run has to do it. */
static hg_status launch_locked(const ops_eager *known, const call *c, hg_fault *fault) {
  const hg_executable *e = known->executable;
  const ops_launch *launch = e->launches;
  uintptr_t addresses[STACK_TENSORS];
  atlas_argument arguments[MOST_SYMBOLS];
  for (uint32_t p = 0; p < e->place_count; p++) {
    addresses[p] = check_place(e, &e->places[p], tensor_at(c, known->tensor_of[p]));
    if (addresses[p] == 0) return HG_UNPREPARED;
  }
  if (overlap(e, addresses)) return HG_UNPREPARED;
  memcpy(arguments, known->arguments, launch->kernel->program->symbols.count * sizeof *arguments);
  for (uint32_t b = 0; b < launch->bind_count; b++) {
    const ops_bind *bind = &launch->binds[b];
    arguments[bind->slot].span = (atlas_span){(uint8_t *)addresses[bind->place], bind->byte_count};
  }
  return hg_launch_plain_locked(launch->kernel, &known->shape, arguments, c->cancel_number, fault);
}

/* ---- a call that is known ---------------------------------------------------------------------------------------- */

static hg_status run_known(hg_executable *e, const uint32_t *tensor_of, const call *c) {
  hg_tensor few[STACK_TENSORS],
      *tensors = few;   /* 2.7 KB: zeroing all of them would take longer than setting those needed */
  few[0].buffer = NULL; /* there may be no tensors */
  if (e->place_count > STACK_TENSORS) {
    tensors = hg_allocate_unset(&c->executor->allocator, e->place_count, sizeof *tensors);
    if (tensors == NULL) return hg_fail_memory("the tensors of a call", e->place_count * sizeof *tensors);
  }
  for (uint32_t p = 0; p < e->place_count; p++) tensors[p] = *tensor_at(c, tensor_of[p]);
  hg_status status = ops_run(e, tensors, tensors + e->input_count, c->stream, c->cancel_number, NULL);
  if (tensors != few) hg_release(&c->executor->allocator, tensors);
  return status;
}

HG_RARE static hg_status fail_fault(const ops_eager *known, const call *c, hg_fault *fault) {
  const hg_executable *e = known->executable;
  hg_tensor tensors[STACK_TENSORS]; /* a direct launch has no more */
  char sentence[512];
  for (uint32_t p = 0; p < e->place_count; p++) tensors[p] = *tensor_at(c, known->tensor_of[p]);
  ops_describe_fault(e, e->launches, tensors, tensors + e->input_count, fault, sentence, sizeof sentence);
  hg_log(e->executor, HG_LOG_WARNING, "%s", sentence);
  return ops_fail_fault(fault, sentence);
}

/* 0: there was no such call before. */
static int call_known(const call *c, hg_status *status) {
  hg_executor *executor = c->executor;
  hg_fault fault;
  fault.kind = HG_FAULT_NONE;
  hg_lock(executor);
  ops_attachment *a = executor->attachment;
  ops_eager *known = a != NULL ? find_call_locked(a, c) : NULL;
  if (known == NULL) {
    hg_unlock(executor);
    return 0;
  }
  hg_executable *e = known->executable;
  a->hits++;
  ops_cache_touch_locked(a, e);
  *status = known->is_direct && c->stream == NULL ? launch_locked(known, c, &fault) : HG_UNPREPARED;
  if (*status != HG_UNPREPARED && fault.kind == HG_FAULT_NONE) {
    hg_unlock(executor);
    return 1;
  }
  e->pins++;
  hg_unlock(executor);
  *status = *status == HG_UNPREPARED ? run_known(e, known->tensor_of, c) : fail_fault(known, c, &fault);
  hg_lock(executor);
  int is_garbage = ops_unpin_locked(e);
  hg_unlock(executor);
  if (is_garbage) ops_executable_destroy(e);
  return 1;
}

/* ---- a new call -------------------------------------------------------------------------------------------------- */

/* "x"; for an operation that takes any number of inputs "tensors[3]". */
static void name_input(hg_op op, uint32_t index, char *name, size_t bytes) {
  const ops_row *row = ops_row_of((uint32_t)op);
  const char *at = row != NULL ? row->inputs : "";
  ops_input_spec spec;
  for (uint32_t i = 0; ops_next_input(&at, &spec); i++) {
    if (spec.is_variadic)
      snprintf(name, bytes, "%.*s[%u]", (int)spec.name.length, spec.name.text, (unsigned)(index - i));
    else if (i == index) snprintf(name, bytes, "%.*s", (int)spec.name.length, spec.name.text);
    if (spec.is_variadic || i == index) return;
  }
  snprintf(name, bytes, "%u", (unsigned)index);
}

/* The call as a computation; tensor_of: by place. */
typedef struct made {
  hg_computation *computation;
  hg_value *values;    /* by tensor: inputs, 0: absent; then results */
  uint32_t *tensor_of, place_count;
} made;

static void add_inputs(const call *c, made *m) {
  for (uint32_t i = 0; i < c->input_count; i++) {
    char name[ATLAS_MAX_NAME + 1];
    m->values[i] = 0;
    if (c->same_as[i] == NO_TENSOR) continue;
    if (c->same_as[i] != i) {
      m->values[i] = m->values[c->same_as[i]];
      continue;
    }
    name_input(c->op, i, name, sizeof name);
    m->tensor_of[m->place_count++] = i;
    m->values[i] = hg_computation_input(m->computation, name, &c->inputs[i]);
  }
}

HG_RARE static hg_status fail_output(const call *c, const char *name, const hg_tensor *result,
                                     const hg_tensor *output) {
  ops_shape has = {.rank = output->rank}, is = {.rank = result->rank};
  memcpy(has.size, output->shape, sizeof has.size);
  memcpy(is.size, result->shape, sizeof is.size);
  const char *type = atlas_type_name((atlas_type)(output->type < ATLAS_TYPE_COUNT ? output->type : 0));
  return hg_fail(HG_INVALID_ARGUMENT, "%s: the result is %s%s; output '%s' is %s%s", ops_row_of((uint32_t)c->op)->name,
                 atlas_type_name((atlas_type)result->type), OPS_SHAPE(&is), name, type != NULL ? type : "?",
                 OPS_SHAPE(&has));
}

static hg_status add_output(const call *c, made *m, uint32_t i) {
  const hg_tensor *output = &c->outputs[i];
  uint32_t number = c->input_count + i;
  hg_tensor result;
  char name[16] = "out";
  if (c->output_count > 1) snprintf(name, sizeof name, "out[%u]", (unsigned)i);
  if (c->same_as[number] == NO_TENSOR) return hg_fail(HG_INVALID_ARGUMENT, "hg_apply: output '%s' has no buffer", name);
  HG_TRY(hg_computation_describe(m->computation, m->values[number], &result));
  if (output->type != result.type || output->rank != result.rank ||
      memcmp(output->shape, result.shape, result.rank * sizeof result.shape[0]) != 0)
    return fail_output(c, name, &result, output);
  if (c->same_as[number] < c->input_count)
    return hg_computation_update(m->computation, m->values[c->same_as[number]], m->values[number]);
  m->tensor_of[m->place_count++] = number;
  return hg_computation_output(m->computation, name, m->values[number], output);
}

static hg_status make_computation(const call *c, made *m) {
  HG_TRY(hg_computation_create(&c->executor->allocator, &m->computation));
  add_inputs(c, m);
  HG_TRY(hg_compute_all(m->computation, c->op, m->values, c->input_count, c->arguments, c->argument_count,
                        m->values + c->input_count, c->output_count));
  for (uint32_t i = 0; i < c->output_count; i++) HG_TRY(add_output(c, m, i));
  return HG_OK;
}

/* ---- remembering a call ------------------------------------------------------------------------------------------ */

static int can_be_direct(const hg_executable *e) {
  if (e->launch_count != 1 || e->workspace_bytes > 0 || e->place_count > STACK_TENSORS) return 0;
  for (uint32_t p = 0; p < e->place_count; p++)
    if (e->places[p].extent == 0) return 0;
  const hg_kernel *kernel = e->launches[0].kernel;
  return kernel->program->symbols.count <= MOST_SYMBOLS && hg_launch_is_plain(kernel);
}

static void prepare_direct(ops_eager *known) {
  const ops_launch *launch = known->executable->launches;
  hg_launch_desc desc = {.size = sizeof desc};
  uint64_t lanes = 0;
  ops_set_shape(launch, &desc);
  for (uint32_t s = 0; s < launch->scalar_count; s++) {
    const hg_scalar *scalar = &launch->scalars[s];
    known->arguments[scalar->slot].bits = scalar->bits & atlas_mask((atlas_type)scalar->type);
  }
  known->is_direct = hg_launch_shape(launch->kernel, &desc, &known->shape, &lanes) == HG_OK && lanes > 0;
  known->shape.moved_bytes = launch->moved_bytes;
}

/* A call that cannot be remembered is built again next time. */
static void remember(const call *c, hg_executable *e, const made *m) {
  const hg_allocator *allocator = &c->executor->allocator;
  size_t symbols = can_be_direct(e) ? e->launches[0].kernel->program->symbols.count : 0;
  size_t word_bytes = c->word_count * sizeof(uint64_t), argument_bytes = symbols * sizeof(atlas_argument);
  size_t place_bytes = m->place_count * sizeof *m->tensor_of;
  size_t bytes = sizeof(ops_eager) + word_bytes + argument_bytes + place_bytes;
  ops_eager *known = hg_allocate(allocator, bytes, 1);
  if (known == NULL) return;
  known->executable = e;
  known->hash = c->hash;
  known->word_count = c->word_count;
  memcpy(known->words, c->words, word_bytes);
  known->arguments = (atlas_argument *)(void *)((uint8_t *)known->words + word_bytes);
  known->tensor_of = (uint32_t *)(void *)((uint8_t *)known->arguments + argument_bytes);
  memcpy(known->tensor_of, m->tensor_of, place_bytes);
  if (symbols > 0) prepare_direct(known);
  if (!ops_cache_add_call(c->executor, known, bytes)) hg_release(allocator, known);
}

static hg_status call_made(const call *c, made *m) {
  hg_executable *e = NULL;
  hg_status status = make_computation(c, m);
  if (status == HG_OK) status = ops_compile(c->executor, m->computation, 0, &e);
  hg_computation_release(m->computation);
  if (status != HG_OK) return status;
  remember(c, e, m);
  status = run_known(e, m->tensor_of, c);
  hg_executable_release(e);
  return status;
}

static hg_status call_new(const call *c) {
  const hg_allocator *allocator = &c->executor->allocator;
  hg_value *values = hg_allocate(allocator, 2 * (uint64_t)c->count, sizeof *values);
  if (values == NULL) return hg_fail_memory("a call", c->count);
  made m = {.values = values, .tensor_of = values + c->count};
  hg_status status = call_made(c, &m);
  hg_release(allocator, values);
  return status;
}

/* ---- the public functions ---------------------------------------------------------------------------------------- */

static hg_status check_counts(const char *caller, const hg_tensor *inputs, size_t input_count,
                              const hg_argument *arguments, size_t argument_count, const hg_tensor *outputs,
                              size_t output_count) {
  if ((inputs == NULL && input_count > 0) || (arguments == NULL && argument_count > 0) ||
      (outputs == NULL && output_count > 0))
    return hg_fail(HG_INVALID_ARGUMENT, "%s: an argument is NULL", caller);
  if (input_count > MOST_TENSORS || output_count > MOST_TENSORS)
    return hg_fail(HG_INVALID_ARGUMENT, "%s: %zu inputs and %zu outputs; a call has at most %d of each", caller,
                   input_count, output_count, MOST_TENSORS);
  if (argument_count > MOST_ARGUMENTS)
    return hg_fail(HG_INVALID_ARGUMENT, "%s: %zu arguments; no operation has more than %d", caller, argument_count,
                   MOST_ARGUMENTS);
  for (size_t i = 0; i < input_count + output_count; i++) {
    const hg_tensor *tensor = i < input_count ? &inputs[i] : &outputs[i - input_count];
    if (tensor->rank > HG_MAX_RANK)
      return hg_fail(HG_INVALID_ARGUMENT, "%s: a tensor has rank %u; the highest is %d", caller, (unsigned)tensor->rank,
                     HG_MAX_RANK);
  }
  return HG_OK;
}

static hg_status apply(call *c) {
  hg_status status;
  make_key(c);
  return call_known(c, &status) ? status : call_new(c);
}

/* For many tensors, or large arguments. */
static hg_status apply_many(call *c) {
  const hg_allocator *allocator = &c->executor->allocator;
  uint64_t words = KEY_WORDS + (uint64_t)c->argument_count * ARGUMENT_WORDS + (uint64_t)c->count * TENSOR_WORDS;
  uint64_t places = 64;
  while (places < 2 * (uint64_t)c->count) places *= 2;
  uint64_t *memory = hg_allocate_unset(allocator, words + 2 * (uint64_t)c->count + places / 2, sizeof *memory);
  if (memory == NULL) return hg_fail_memory("a call", words * sizeof *memory);
  c->words = memory;
  c->addresses = (uintptr_t *)(void *)(memory + words);
  c->same_as = (uint32_t *)(memory + words + c->count);
  c->by_address = memset(memory + words + 2 * (uint64_t)c->count, 0, places * sizeof *c->by_address);
  c->address_mask = (uint32_t)places - 1;
  hg_status status = apply(c);
  hg_release(allocator, memory);
  return status;
}

hg_status hg_apply(hg_op op, const hg_tensor *inputs, size_t input_count, const hg_argument *arguments,
                   size_t argument_count, const hg_tensor *outputs, size_t output_count, hg_stream *stream) {
  HG_TRY(check_counts("hg_apply", inputs, input_count, arguments, argument_count, outputs, output_count));
  call c = {.op = op, .inputs = inputs, .outputs = outputs, .arguments = arguments, .stream = stream};
  c.input_count = (uint32_t)input_count;
  c.output_count = (uint32_t)output_count;
  c.argument_count = (uint32_t)argument_count;
  c.count = c.input_count + c.output_count;
  for (uint32_t i = c.count; i-- > 0 && c.executor == NULL;)
    if (tensor_at(&c, i)->buffer != NULL) c.executor = tensor_at(&c, i)->buffer->storage->executor;
  if (c.executor == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_apply: no tensor has a buffer");
  c.cancel_number = atomic_load(&c.executor->cancels);
  if (c.count > STACK_TENSORS) return apply_many(&c);
  uint64_t words[STACK_WORDS];
  uintptr_t addresses[STACK_TENSORS];
  uint32_t same_as[STACK_TENSORS];
  c.words = words;
  c.addresses = addresses;
  c.same_as = same_as;
  return apply(&c);
}

/* Infers from types and shapes alone: a tensor with neither is absent. `values`: room for the inputs (0: absent) and
 * results. */
static hg_status infer(hg_computation *computation, hg_op op, const hg_tensor *inputs, size_t input_count,
                       const hg_argument *arguments, size_t argument_count, hg_tensor *outputs, size_t output_count,
                       hg_value *values) {
  hg_value *results = values + input_count;
  for (size_t i = 0; i < input_count; i++)
    if (inputs[i].type != ATLAS_NONE) values[i] = hg_computation_input(computation, NULL, &inputs[i]);
  HG_TRY(hg_compute_all(computation, op, values, input_count, arguments, argument_count, results, output_count));
  for (size_t i = 0; i < output_count; i++) HG_TRY(hg_computation_describe(computation, results[i], &outputs[i]));
  return HG_OK;
}

hg_status hg_apply_shape(hg_op op, const hg_tensor *inputs, size_t input_count, const hg_argument *arguments,
                         size_t argument_count, hg_tensor *outputs, size_t output_count) {
  HG_TRY(check_counts("hg_apply_shape", inputs, input_count, arguments, argument_count, NULL, 0));
  if ((outputs == NULL && output_count > 0) || output_count > STACK_TENSORS)
    return hg_fail(HG_INVALID_ARGUMENT, "hg_apply_shape: 'outputs' is NULL, or more than any operation has");
  hg_value few[2 * STACK_TENSORS] = {0}, *values = few;
  hg_computation *computation = NULL;
  HG_TRY(hg_computation_create(NULL, &computation));
  if (input_count > STACK_TENSORS)
    values = hg_allocate(&computation->allocator, input_count + output_count, sizeof *values);
  hg_status status = values == NULL ? hg_fail_memory("a call", input_count)
                                    : infer(computation, op, inputs, input_count, arguments, argument_count, outputs,
                                            output_count, values);
  if (values != few) hg_release(&computation->allocator, values);
  hg_computation_release(computation);
  return status;
}
