/* origin.c - what launches on a stream keep so that their fault can name an index: the executable, and the inputs that
 * its indices are computed from. Buffers of the library are held until the faults of the launches have been collected.
 * Imported memory belongs to its owner again once its buffer is released: it is only looked up, by its handle. */
#include "ops/run/executable.h"
#include "ops/graph/ops_tuning.h"

typedef struct kept {
  hg_tensor tensor; /* without a buffer if that is not held; of type ATLAS_NONE if it is lost */
  uint64_t handle;  /* of a buffer that is not held; else 0 */
} kept;

typedef struct origin {
  hg_origin head;
  hg_executable *executable; /* pinned */
  uint64_t byte_count;       /* bytes that are held */
  kept inputs[];             /* in the order of ops_guards_inputs */
} origin;

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Copies the elements of imported memory, which nobody can release while the lock is held. */
static hg_status copy_locked(const kept *from, const ops_place *place, hg_buffer *to) {
  hg_executor *executor = to->storage->executor;
  hg_buffer *buffer = hg_handle_find_locked(executor, from->handle);
  uint64_t first = (uint64_t)(from->tensor.offset + place->lowest) * place->element_bytes;
  if (buffer == NULL) return HG_NOT_FOUND;
  return executor->backend->copy_within(executor->device, to->storage->address,
                                        buffer->storage->address + buffer->offset + first, to->byte_count);
}

static int was_written_locked(hg_executor *executor, const kept *input, uint64_t written) {
  const hg_buffer *buffer = input->tensor.buffer;
  if (input->handle != 0) buffer = hg_handle_find_locked(executor, input->handle);
  return buffer != NULL && buffer->storage->written > written;
}

/* An input as it was when the launch was submitted, with a reference to its buffer; of type ATLAS_NONE if that is no
 * longer known. */
static hg_tensor find_input(const origin *o, uint32_t number, uint64_t written) {
  const kept *input = &o->inputs[number];
  const ops_place *place = &o->executable->places[ops_guards_place(o->executable, number)];
  hg_executor *executor = o->executable->executor;
  hg_buffer_desc desc = {.size = sizeof desc, .flags = HG_BUFFER_UNINIT};
  hg_tensor tensor = input->tensor;
  hg_status status = HG_OK;
  if (tensor.type == ATLAS_NONE) return tensor;
  if (input->handle == 0) hg_buffer_retain(tensor.buffer);
  else status = hg_buffer_create(executor, &desc, place->extent * place->element_bytes, &tensor.buffer);
  hg_lock(executor);
  if (was_written_locked(executor, input, written)) status = HG_NOT_FOUND;
  if (status == HG_OK && input->handle != 0) {
    status = copy_locked(input, place, tensor.buffer);
    tensor.offset = -place->lowest;
  }
  hg_unlock(executor);
  if (status != HG_OK) tensor.type = ATLAS_NONE;
  return tensor;
}

static int explain(hg_origin *head, uint64_t written, hg_fault *fault, char *sentence, size_t sentence_bytes) {
  const origin *o = (const origin *)head;
  const hg_allocator *allocator = &o->executable->executor->allocator;
  uint32_t count = ops_guards_input_count(o->executable);
  hg_tensor *tensors = hg_allocate_unset(allocator, count, sizeof *tensors);
  if (tensors == NULL) return 0;
  for (uint32_t i = 0; i < count; i++) tensors[i] = find_input(o, i, written);
  int is_told = ops_explain(o->executable, tensors, fault, sentence, sentence_bytes);
  for (uint32_t i = 0; i < count; i++) hg_buffer_release(tensors[i].buffer);
  hg_release(allocator, tensors);
  return is_told;
}

/* ---- making and releasing ---------------------------------------------------------------------------------------- */

static void release(hg_origin *head) {
  origin *o = (origin *)head;
  hg_executable *e = o->executable;
  hg_executor *executor = e->executor;
  uint32_t count = ops_guards_input_count(e);
  for (uint32_t i = 0; i < count; i++) hg_buffer_release(o->inputs[i].tensor.buffer);
  hg_lock(executor);
  executor->origin_bytes -= o->byte_count;
  o->head.next = e->spare_origins;
  e->spare_origins = &o->head;
  int is_garbage = ops_unpin_locked(e);
  hg_unlock(executor);
  if (is_garbage) ops_executable_destroy(e);
}

void ops_origins_release(const hg_allocator *allocator, hg_origin *spares) {
  while (spares != NULL) {
    hg_origin *spare = spares;
    spares = spare->next;
    hg_release(allocator, spare);
  }
}

/* The bytes of memory that holding the inputs would keep. */
static uint64_t bytes_of(const hg_executable *e, const hg_tensor *inputs) {
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < ops_guards_input_count(e); i++) {
    const hg_buffer *buffer = inputs[ops_guards_place(e, i)].buffer;
    if (buffer != NULL && !buffer->storage->foreign) bytes += buffer->storage->byte_count;
  }
  return bytes;
}

static void hold(kept *input) {
  hg_buffer *buffer = input->tensor.buffer;
  int is_there = input->tensor.type != ATLAS_NONE && buffer != NULL, is_held = is_there && !buffer->storage->foreign;
  input->handle = is_there && !is_held ? hg_buffer_handle(buffer) : 0;
  if (is_there && !is_held && input->handle == 0) input->tensor.type = ATLAS_NONE; /* it is in no memory that can be
                                                                                      looked up */
  if (is_held) hg_buffer_retain(buffer);
  else input->tensor.buffer = NULL;
}

hg_origin *ops_origin_begin_locked(hg_executable *e, const hg_tensor *inputs) {
  hg_executor *executor = e->executor;
  uint64_t byte_count = bytes_of(e, inputs);
  size_t bytes = sizeof(origin) + ops_guards_input_count(e) * sizeof(kept);
  if (byte_count > executor->info.memory_bytes / OPS_ORIGIN_FRACTION - executor->origin_bytes) return NULL;
  origin *o = (origin *)e->spare_origins;
  if (o != NULL) e->spare_origins = o->head.next;
  else o = hg_allocate_unset(&executor->allocator, bytes, 1);
  if (o == NULL) return NULL;
  atomic_init(&o->head.references, 1);
  o->head.next = NULL;
  o->head.explain = explain;
  o->head.release = release;
  o->executable = e;
  o->byte_count = byte_count;
  executor->origin_bytes += byte_count;
  e->pins++;
  return &o->head;
}

void ops_origin_hold(hg_origin *head, const hg_tensor *inputs, const hg_tensor *outputs) {
  origin *o = (origin *)head;
  for (uint32_t i = 0; i < ops_guards_input_count(o->executable); i++) {
    ops_guards_input(o->executable, i, inputs, outputs, &o->inputs[i].tensor);
    hold(&o->inputs[i]);
  }
}
