/* node.c - nodes of the lazy graph: their memory, views, and recording operations. */
#include "hgpy.h"

uint32_t hgpy_tracing;
uint64_t hgpy_nodes_made;
bool hgpy_is_eager;

/* ---- memory of nodes --------------------------------------------------------------------------------------------- */

enum { MOST_FREE = 1024 };

static hgpy_node *free_nodes;
static uint32_t free_count;

/* All fields but the tensor and `few` are zero. */
static hgpy_node *new_node(hgpy_kind kind) {
  hgpy_node *node = free_nodes;
  if (node != NULL) {
    free_nodes = node->next;
    free_count--;
  } else {
    node = PyMem_Malloc(sizeof *node);
    if (node == NULL) return (hgpy_node *)PyErr_NoMemory();
  }
  memset(node, 0, offsetof(hgpy_node, few));
  node->arguments = NULL;
  node->results = NULL;
  node->result_count = 0;
  node->next = NULL;
  node->references = 1;
  node->kind = (uint8_t)kind;
  node->made = ++hgpy_nodes_made;
  return node;
}

hgpy_node *hgpy_node_retain(hgpy_node *node) {
  if (node != NULL) node->references++;
  return node;
}

void hgpy_leave_call(hgpy_node *result) {
  if (result->input_count == 0 || result->inputs[0] == NULL) return;
  hgpy_node *call = result->inputs[0];
  if (result->result < call->result_count && call->results[result->result] == result)
    call->results[result->result] = NULL;
}

static void free_node(hgpy_node *node) {
  hgpy_leave_call(node);
  PyMem_Free(node->results);
  if (node->inputs != node->few) PyMem_Free(node->inputs);
  PyMem_Free(node->arguments);
  hgpy_storage_release(node->storage);
  hgpy_device_release(node->device);
  if (free_count >= MOST_FREE) {
    PyMem_Free(node);
    return;
  }
  node->next = free_nodes;
  free_nodes = node;
  free_count++;
}

/* A list instead of recursion, because a graph may be deep. */
void hgpy_node_release(hgpy_node *node) {
  if (node == NULL || --node->references > 0) return;
  node->next = NULL;
  while (node != NULL) {
    hgpy_node *rest = node->next;
    for (uint32_t i = 0; i < node->input_count; i++) {
      hgpy_node *input = node->inputs[i];
      if (input == NULL || --input->references > 0) continue;
      input->next = rest;
      rest = input;
    }
    free_node(node);
    node = rest;
  }
}

hgpy_node *hgpy_node_data(hgpy_storage *storage, const hg_tensor *like) {
  hgpy_node *node = storage != NULL ? new_node(HGPY_DATA) : NULL;
  if (node == NULL) {
    hgpy_storage_release(storage);
    return NULL;
  }
  node->storage = storage;
  node->device = hgpy_device_retain(storage->device);
  node->tensor = *like;
  node->tensor.buffer = NULL;
  return node;
}

static hgpy_node *new_scalar(uint32_t type) {
  hgpy_node *node = new_node(HGPY_SCALAR);
  if (node == NULL) return NULL;
  node->tensor.buffer = NULL;
  node->tensor.type = type;
  node->tensor.rank = 0;
  return node;
}

hgpy_node *hgpy_node_real(uint32_t type, double value) {
  hgpy_node *node = new_scalar(type);
  if (node != NULL) node->value.real = value;
  return node;
}

hgpy_node *hgpy_node_integer(uint32_t type, int64_t value) {
  hgpy_node *node = new_scalar(type);
  if (node == NULL) return NULL;
  node->is_integer = 1;
  node->value.integer = value;
  return node;
}

/* ---- types and shapes of results --------------------------------------------------------------------------------- */

/* A call's results depend on the operation, its arguments, and the inputs' types and shapes. The library determines
 * them; the last answers are cached, some 300 bytes each: about two for each graph that evaluate.c knows. With 512,
 * three operations of a graph among 2,000 others, and the run, took 4.3 us; with these 3.6. */
enum { ANSWERS = 8192, MOST_WORDS = 96 };

typedef struct answer {
  uint64_t hash;
  uint64_t *words;
  uint32_t word_count, result_count;
  hg_tensor results[];
} answer;

static answer *answers[ANSWERS];

static uint64_t *put_argument(uint64_t *at, const hg_argument *argument) {
  *at++ = argument->count | (uint64_t)argument->has_number << 32;
  memcpy(at++, &argument->number, sizeof *at);
  for (uint32_t i = 0; i < argument->count && i < HG_MAX_RANK; i++) *at++ = (uint64_t)argument->integers[i];
  return at;
}

/* Most words of a tensor or argument. */
enum { MOST_OF_ONE = HG_MAX_RANK + 2 };

/* 0: the question does not fit. */
static uint32_t write_question(uint64_t *words, uint32_t row, hgpy_node *const *inputs, uint32_t input_count,
                               const hg_argument *arguments, uint32_t argument_count) {
  uint64_t *at = words;
  *at++ = row | (uint64_t)input_count << 32 | (uint64_t)argument_count << 48;
  for (uint32_t i = 0; i < argument_count; i++) {
    if (at - words + MOST_OF_ONE > MOST_WORDS) return 0;
    at = put_argument(at, &arguments[i]);
  }
  for (uint32_t i = 0; i < input_count; i++) {
    const hg_tensor *tensor = inputs[i] != NULL ? &inputs[i]->tensor : NULL;
    if (at - words + MOST_OF_ONE > MOST_WORDS) return 0;
    *at++ = tensor != NULL ? tensor->type | (uint64_t)tensor->rank << 32 : UINT64_MAX;
    for (uint32_t d = 0; tensor != NULL && d < tensor->rank; d++) *at++ = tensor->shape[d];
  }
  return (uint32_t)(at - words);
}

/* The same as hg_hash_words of src/base/bytes.h, which this package cannot include: it uses the public headers only. */
uint64_t hgpy_hash_words(const uint64_t *words, size_t count) {
  uint64_t even = count, odd = 0;
  for (size_t i = 0; i + 1 < count; i += 2) {
    even = (even ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15);
    odd = (odd ^ words[i + 1]) * UINT64_C(0xd6e8feb86659fd93);
    even ^= even >> 32;
    odd ^= odd >> 32;
  }
  if (count % 2 != 0) even = (even ^ words[count - 1]) * UINT64_C(0x9e3779b97f4a7c15);
  even ^= odd * UINT64_C(0xff51afd7ed558ccd);
  return even ^ even >> 29;
}

static bool is_answer(const answer *known, uint64_t hash, const uint64_t *words, uint32_t word_count) {
  return known != NULL && known->hash == hash && known->word_count == word_count &&
         memcmp(known->words, words, word_count * sizeof *words) == 0;
}

/* Not cached if memory is short. */
static void keep_answer(answer **slot, uint64_t hash, const uint64_t *words, uint32_t word_count,
                        const hg_tensor *results, uint32_t result_count) {
  size_t result_bytes = result_count * sizeof *results, word_bytes = word_count * sizeof *words;
  answer *made = PyMem_Malloc(sizeof *made + result_bytes + word_bytes);
  if (made == NULL) return;
  made->hash = hash;
  made->word_count = word_count;
  made->result_count = result_count;
  memcpy(made->results, results, result_bytes);
  made->words = (uint64_t *)(void *)((char *)made->results + result_bytes);
  memcpy(made->words, words, word_bytes);
  PyMem_Free(*slot);
  *slot = made;
}

/* Asks the library. The number of results is the row's. */
static int ask(uint32_t row, hgpy_node *const *inputs, uint32_t input_count, const hg_argument *arguments,
               uint32_t argument_count, hg_tensor *results, uint32_t result_count) {
  hg_tensor few[16], *tensors = few;
  if (input_count > 16) {
    tensors = PyMem_Malloc(input_count * sizeof *tensors);
    if (tensors == NULL) return PyErr_NoMemory(), -1;
  }
  for (uint32_t i = 0; i < input_count; i++) {
    if (inputs[i] == NULL) tensors[i] = (hg_tensor){.buffer = NULL};
    else
      tensors[i] =
          hg_tensor_of(NULL, (atlas_type)inputs[i]->tensor.type, inputs[i]->tensor.rank, inputs[i]->tensor.shape);
  }
  hg_status status =
      hg_apply_shape(hgpy_row_op(row), tensors, input_count, arguments, argument_count, results, result_count);
  if (tensors != few) PyMem_Free(tensors);
  return hgpy_ok(status) ? (int)result_count : -1;
}

static uint32_t results_of_row(uint32_t row) {
  static uint8_t counts[HGPY_ROW_COUNT];
  if (counts[row] == 0) {
    hg_op_info info = {.size = sizeof info};
    counts[row] = 1;
    if (hg_op_query(row, &info) == HG_OK && info.output_count > 0) counts[row] = (uint8_t)info.output_count;
  }
  return counts[row];
}

/* Points *results at a cached answer, valid until the next call, or at `room`. */
static int find_results(uint32_t row, hgpy_node *const *inputs, uint32_t input_count, const hg_argument *arguments,
                        uint32_t argument_count, hg_tensor *room, const hg_tensor **results) {
  uint64_t words[MOST_WORDS], hash = 0;
  uint32_t word_count = write_question(words, row, inputs, input_count, arguments, argument_count);
  answer **slot = NULL;
  if (word_count > 0) {
    hash = hgpy_hash_words(words, word_count);
    slot = &answers[hash % ANSWERS];
    if (is_answer(*slot, hash, words, word_count)) {
      *results = (*slot)->results;
      return (int)(*slot)->result_count;
    }
  }
  int count = ask(row, inputs, input_count, arguments, argument_count, room, results_of_row(row));
  if (count > 0 && slot != NULL) keep_answer(slot, hash, words, word_count, room, (uint32_t)count);
  *results = room;
  return count;
}

/* ---- recording --------------------------------------------------------------------------------------------------- */

/* The common device of the inputs; false: there are several. */
static bool agree_on_device(uint32_t row, hgpy_node *const *inputs, uint32_t input_count, hgpy_device **device) {
  *device = NULL;
  for (uint32_t i = 0; i < input_count; i++) {
    hgpy_device *other = inputs[i] != NULL ? inputs[i]->device : NULL;
    if (other == NULL || other == *device) continue;
    if (*device != NULL) {
      PyErr_Format(PyExc_ValueError, "%s: its inputs are on two executors; move one of them with to_device()",
                   hgpy_row_name(row));
      return false;
    }
    *device = other;
  }
  return true;
}

static bool take_inputs(hgpy_node *node, hgpy_node *const *inputs, uint32_t count) {
  node->inputs = node->few;
  if (count > HGPY_FEW) {
    node->inputs = PyMem_Malloc(count * sizeof(hgpy_node *));
    if (node->inputs == NULL) return PyErr_NoMemory(), false;
  }
  for (uint32_t i = 0; i < count; i++) {
    node->inputs[i] = hgpy_node_retain(inputs[i]);
    if (inputs[i] != NULL && inputs[i]->depth >= node->depth) node->depth = inputs[i]->depth + 1;
    if (inputs[i] != NULL) node->examples |= inputs[i]->examples;
  }
  node->input_count = count;
  return true;
}

static bool take_arguments(hgpy_node *node, const hg_argument *arguments, uint32_t count) {
  while (count > 0 && arguments[count - 1].count == 0 && !arguments[count - 1].has_number) count--; /* defaults */
  if (count == 0) return true;
  node->arguments = PyMem_Malloc(count * sizeof *arguments);
  if (node->arguments == NULL) return PyErr_NoMemory(), false;
  memcpy(node->arguments, arguments, count * sizeof *arguments);
  node->argument_count = (uint8_t)count;
  return true;
}

static hgpy_node *new_call(hgpy_kind kind, uint32_t row, hgpy_node *const *inputs, uint32_t input_count,
                           const hg_argument *arguments, uint32_t argument_count) {
  hgpy_device *device;
  int numerics = hgpy_numerics();
  if (numerics < 0 || !agree_on_device(row, inputs, input_count, &device)) return NULL;
  hgpy_node *node = new_node(kind);
  if (node == NULL) return NULL;
  node->row = (uint16_t)row;
  node->numerics = (uint8_t)numerics;
  node->device = hgpy_device_retain(device);
  if (take_inputs(node, inputs, input_count) && take_arguments(node, arguments, argument_count)) {
    node->is_kept = hgpy_tracing > 0;
    return node;
  }
  hgpy_node_release(node);
  return NULL;
}

/* One of several results of a node. */
static hgpy_node *new_result(hgpy_node *of, uint32_t number, const hg_tensor *tensor) {
  hgpy_node *node = new_node(HGPY_RESULT);
  if (node == NULL) return NULL;
  node->device = hgpy_device_retain(of->device);
  node->result = (uint16_t)number;
  node->is_kept = hgpy_tracing > 0;
  node->tensor = *tensor;
  node->tensor.buffer = NULL;
  (void)take_inputs(node, &of, 1);
  of->results[number] = node;
  return node;
}

static bool make_results(hgpy_node *of, const hg_tensor *tensors, uint32_t count, hgpy_node **results) {
  of->results = PyMem_Calloc(count, sizeof(hgpy_node *));
  if (of->results == NULL) return PyErr_NoMemory(), false;
  of->result_count = count;
  for (uint32_t i = 0; i < count; i++) {
    results[i] = new_result(of, i, &tensors[i]);
    if (results[i] != NULL) continue;
    while (i-- > 0) hgpy_node_release(results[i]);
    return false;
  }
  return true;
}

/* Computes nodes that are deep enough, or eager. */
static bool settle(hgpy_node *const *nodes, uint32_t count) {
  if (!hgpy_is_eager && nodes[0]->depth < HGPY_MOST_DEPTH) return true;
  if (hgpy_tracing > 0) return true;
  return hgpy_evaluate(nodes, count);
}

int hgpy_record_all(uint32_t row, hgpy_node *const *inputs, uint32_t input_count, const hg_argument *arguments,
                    uint32_t argument_count, hgpy_node **results) {
  hg_tensor room[HGPY_MOST_RESULTS];
  const hg_tensor *tensors;
  int count = find_results(row, inputs, input_count, arguments, argument_count, room, &tensors);
  if (count < 1) return -1;
  hgpy_node *call = new_call(count == 1 ? HGPY_CALL : HGPY_MANY, row, inputs, input_count, arguments, argument_count);
  if (call == NULL) return -1;
  if (count == 1) {
    call->tensor = tensors[0];
    results[0] = call;
  } else {
    call->tensor = (hg_tensor){.buffer = NULL};
    bool is_made = make_results(call, tensors, (uint32_t)count, results);
    hgpy_node_release(call);
    if (!is_made) return -1;
  }
  if (settle(results, (uint32_t)count)) return count;
  for (int i = 0; i < count; i++) hgpy_node_release(results[i]);
  return -1;
}

hgpy_node *hgpy_record(uint32_t row, hgpy_node *const *inputs, uint32_t input_count, const hg_argument *arguments,
                       uint32_t argument_count) {
  hgpy_node *results[HGPY_MOST_RESULTS];
  int count = hgpy_record_all(row, inputs, input_count, arguments, argument_count, results);
  for (int i = 1; i < count; i++) hgpy_node_release(results[i]);
  return count > 0 ? results[0] : NULL;
}

/* The inputs of the node of which value and gradients are results: the value, its cotangent or none, the variables, the
 * values computed beside. Its argument is the number of the latter. */
bool hgpy_record_gradients(hgpy_node *value, hgpy_node *cotangent, hgpy_node *const *wrt, uint32_t count,
                           uint32_t beside, hgpy_node **results) {
  hgpy_node **inputs = PyMem_Malloc((count + beside + 2) * sizeof(hgpy_node *));
  hg_tensor *tensors = PyMem_Malloc((count + beside + 1) * sizeof *tensors);
  hg_argument besides = {.count = beside > 0, .integers = {(int64_t)beside}};
  bool is_made = inputs != NULL && tensors != NULL;
  if (!is_made) PyErr_NoMemory();
  for (uint32_t i = 0; is_made && i < count + beside; i++) {
    inputs[i + 2] = wrt[i];
    tensors[i + 1] = wrt[i]->tensor;
  }
  if (is_made) tensors[0] = value->tensor;
  hgpy_node *all = NULL;
  if (is_made) {
    inputs[0] = value;
    inputs[1] = cotangent;
    all = new_call(HGPY_GRADIENT, HGPY_ROW_add, inputs, count + beside + 2, &besides, 1);
    if (all != NULL) all->tensor = (hg_tensor){.buffer = NULL}; /* only its results have types and shapes */
  }
  is_made = all != NULL && make_results(all, tensors, count + beside + 1, results);
  hgpy_node_release(all);
  PyMem_Free(inputs);
  PyMem_Free(tensors);
  return is_made;
}

bool hgpy_record_transform(hgpy_transform what, hgpy_node *const *inputs, uint32_t count, const hg_argument *argument,
                           uint32_t examples, const hg_tensor *tensors, uint32_t result_count, hgpy_node **results) {
  hgpy_node *all = new_call(HGPY_TRANSFORM, HGPY_ROW_add, inputs, count, argument, 1);
  if (all == NULL) return false;
  all->row = (uint16_t)what;
  all->examples &= ~examples;
  all->tensor = (hg_tensor){.buffer = NULL};
  bool is_made = make_results(all, tensors, result_count, results);
  hgpy_node_release(all);
  return is_made;
}

hgpy_node *hgpy_node_example(const hg_tensor *like, hgpy_device *device, uint32_t examples) {
  hgpy_node *node = new_node(HGPY_EXAMPLE);
  if (node == NULL) return NULL;
  node->row = (uint16_t)like->type;
  node->examples = examples;
  node->device = hgpy_device_retain(device);
  node->tensor = *like;
  node->tensor.buffer = NULL;
  hg_argument shape = {.count = like->rank, .has_number = true};
  for (uint32_t d = 0; d < like->rank; d++) shape.integers[d] = (int64_t)like->shape[d];
  if (take_arguments(node, &shape, 1)) return node;
  hgpy_node_release(node);
  return NULL;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

static hg_argument integers_argument(uint32_t count, const int64_t *integers) {
  hg_argument argument = {.count = count};
  memcpy(argument.integers, integers, count * sizeof *integers);
  return argument;
}

static hg_argument shape_argument(uint32_t rank, const uint64_t *shape) {
  hg_argument argument = {.count = rank};
  for (uint32_t d = 0; d < rank; d++) argument.integers[d] = (int64_t)shape[d];
  return argument;
}

/* DATA over the same memory. */
static hgpy_node *view_of(hgpy_node *node, const hg_tensor *tensor) {
  return hgpy_node_data(hgpy_storage_retain(node->storage), tensor);
}

static bool can_view(const hgpy_node *node) { return node->kind == HGPY_DATA && hgpy_tracing == 0; }

hgpy_node *hgpy_view_slice(hgpy_node *node, int64_t axis, int64_t start, int64_t stop, int64_t step) {
  hg_tensor tensor;
  if (can_view(node)) {
    if (!hgpy_ok(hg_tensor_slice(&node->tensor, axis, start, stop, step, &tensor))) return NULL;
    return view_of(node, &tensor);
  }
  hg_argument arguments[4] = {integers_argument(1, &axis), integers_argument(1, &start), integers_argument(1, &stop),
                              integers_argument(1, &step)};
  return hgpy_record(HGPY_ROW_slice, &node, 1, arguments, 4);
}

hgpy_node *hgpy_view_reshape(hgpy_node *node, uint32_t rank, const uint64_t *shape) {
  hg_tensor tensor;
  if (can_view(node) && hg_tensor_reshape(&node->tensor, rank, shape, &tensor) == HG_OK) return view_of(node, &tensor);
  hg_argument argument = shape_argument(rank, shape);
  return hgpy_record(HGPY_ROW_reshape, &node, 1, &argument, 1);
}

hgpy_node *hgpy_view_permute(hgpy_node *node, const int64_t *axes) {
  hg_tensor tensor;
  if (can_view(node)) {
    if (!hgpy_ok(hg_tensor_permute(&node->tensor, axes, &tensor))) return NULL;
    return view_of(node, &tensor);
  }
  hg_argument argument = integers_argument(node->tensor.rank, axes);
  return hgpy_record(HGPY_ROW_permute, &node, 1, &argument, 1);
}

hgpy_node *hgpy_view_broadcast(hgpy_node *node, uint32_t rank, const uint64_t *shape) {
  hg_tensor tensor;
  if (can_view(node)) {
    if (!hgpy_ok(hg_tensor_broadcast(&node->tensor, rank, shape, &tensor))) return NULL;
    return view_of(node, &tensor);
  }
  hg_argument argument = shape_argument(rank, shape);
  return hgpy_record(HGPY_ROW_broadcast, &node, 1, &argument, 1);
}

hgpy_node *hgpy_same(hgpy_node *node) {
  hg_argument argument = shape_argument(node->tensor.rank, node->tensor.shape);
  return hgpy_record(HGPY_ROW_broadcast, &node, 1, &argument, 1);
}

hgpy_node *hgpy_cast(hgpy_node *node, uint32_t type) {
  int64_t code = (int64_t)type;
  hg_argument argument = integers_argument(1, &code);
  if (node->tensor.type == type) return hgpy_node_retain(node);
  return hgpy_record(HGPY_ROW_cast, &node, 1, &argument, 1);
}
