/* evaluate.c - from nodes to a computation, its executable, and a run.
 *
 * A walk numbers the nodes that are needed in the order in which they are computed and writes what an executable
 * depends on as words. What was run before is found by them: then nothing is built, only tensors are gathered. Results
 * are what is asked for, and what is pending on the way there and still held by an array: reading that later costs
 * nothing.
 *
 * A Python number is part of the program the first time. When the same graph comes with other numbers, it is compiled
 * once more with the numbers as inputs, which then serves whatever they are. */
#include "graph.h"

#include <stdio.h>

void hgpy_list_begin(hgpy_list *l) {
  l->nodes = l->few;
  l->count = 0;
  l->capacity = 64;
}

void hgpy_list_end(hgpy_list *l) {
  if (l->nodes != l->few) PyMem_Free(l->nodes);
}

static bool list_grow(hgpy_list *l) {
  hgpy_node **more = PyMem_Malloc(2 * (size_t)l->capacity * sizeof(hgpy_node *));
  if (more == NULL) return PyErr_NoMemory(), false;
  memcpy(more, l->nodes, l->count * sizeof(hgpy_node *));
  hgpy_list_end(l);
  l->nodes = more;
  l->capacity *= 2;
  return true;
}

bool hgpy_list_add(hgpy_list *l, hgpy_node *node) {
  if (l->count == l->capacity && !list_grow(l)) return false;
  l->nodes[l->count++] = node;
  return true;
}

static void graph_begin(graph *g) {
  hgpy_list_begin(&g->order), hgpy_list_begin(&g->stack), hgpy_list_begin(&g->leaves), hgpy_list_begin(&g->scalars),
      hgpy_list_begin(&g->results);
  g->words = g->few_words;
  g->word_count = 0;
  g->word_capacity = 256;
  g->device = NULL;
  g->is_expanded = g->is_failed = false;
  g->epoch = 0;
  g->pairs = NULL;
  g->pair_count = g->update_count = g->alias_count = 0;
  g->home_of = g->input_of = g->slot_of = g->readers_of = NULL;
}

static void graph_end(graph *g) {
  hgpy_list_end(&g->order), hgpy_list_end(&g->stack), hgpy_list_end(&g->leaves), hgpy_list_end(&g->scalars),
      hgpy_list_end(&g->results);
  if (g->words != g->few_words) PyMem_Free(g->words);
  PyMem_Free(g->home_of); /* and with it what lies behind */
}

uint64_t *hgpy_graph_room(graph *g, uint32_t words) {
  if (g->word_capacity - g->word_count < words) {
    uint32_t capacity = 2 * g->word_capacity + words;
    uint64_t *more = PyMem_Malloc(capacity * sizeof *more);
    if (more == NULL) return (uint64_t *)PyErr_NoMemory();
    memcpy(more, g->words, g->word_count * sizeof *more);
    if (g->words != g->few_words) PyMem_Free(g->words);
    g->words = more;
    g->word_capacity = capacity;
  }
  uint64_t *at = g->words + g->word_count;
  g->word_count += words;
  return at;
}

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

static bool is_leaf(const graph *g, const hgpy_node *node) {
  return node->kind == HGPY_SCALAR || (node->kind == HGPY_DATA && (!g->is_expanded || node->input_count == 0)) ||
         node->input_count == 0;
}

/* What the node was when it was recorded: DATA that keeps its inputs remembers it by what it has. */
static hgpy_kind kind_of(const graph *g, const hgpy_node *node) {
  if (node->kind != HGPY_DATA || !g->is_expanded || node->input_count == 0) return (hgpy_kind)node->kind;
  return node->is_kept == 2 ? HGPY_RESULT : HGPY_CALL;
}

static bool put_leaf(graph *g, hgpy_node *node) {
  const hg_tensor *t = &node->tensor;
  if (node->kind == HGPY_SCALAR) {
    uint64_t *at = hgpy_graph_room(g, 1);
    if (at == NULL) return false;
    *at = HGPY_SCALAR | (uint64_t)t->type << 8 | (uint64_t)node->is_integer << 16;
    return hgpy_list_add(&g->scalars, node);
  }
  uint64_t *at = hgpy_graph_room(g, 1 + 2 * t->rank);
  if (at == NULL) return false;
  *at++ = HGPY_DATA | (uint64_t)t->type << 8 | (uint64_t)t->rank << 16;
  for (uint32_t d = 0; d < t->rank; d++) {
    *at++ = t->shape[d];
    *at++ = (uint64_t)(t->shape[d] > 1 ? t->stride[d] : 0);
  }
  if (!hgpy_list_add(&g->leaves, node)) return false;
  if (g->pair_count > 0) hgpy_note_leaf(g, g->leaves.count - 1);
  return true;
}

static uint32_t words_of(const hgpy_node *node) {
  uint32_t words = 1 + (node->input_count + 1) / 2;
  for (uint32_t i = 0; i < node->argument_count; i++) words += 2 + node->arguments[i].count;
  return words;
}

static bool put_call(graph *g, const hgpy_node *node) {
  uint64_t *at = hgpy_graph_room(g, words_of(node));
  if (at == NULL) return false;
  *at++ = kind_of(g, node) | (uint64_t)node->row << 8 | (uint64_t)node->result << 24 |
          (uint64_t)node->argument_count << 40 | (uint64_t)node->input_count << 44;
  for (uint32_t i = 0; i < node->argument_count; i++) {
    const hg_argument *argument = &node->arguments[i];
    *at++ = argument->count | (uint64_t)argument->has_number << 32;
    memcpy(at++, &argument->number, sizeof *at);
    for (uint32_t k = 0; k < argument->count; k++) *at++ = (uint64_t)argument->integers[k];
  }
  for (uint32_t i = 0; i < node->input_count; i += 2) {
    uint64_t low = node->inputs[i] != NULL ? node->inputs[i]->number : UINT32_MAX;
    uint64_t high = i + 1 < node->input_count && node->inputs[i + 1] != NULL ? node->inputs[i + 1]->number : UINT32_MAX;
    *at++ = low | high << 32;
  }
  return true;
}

static bool is_there(const hgpy_node *node) {
  if (node->kind != HGPY_GONE) return true;
  PyErr_SetString(PyExc_ValueError, "an array is read that was given up to a function of jit(donate=...)");
  return false;
}

static bool put_node(graph *g, hgpy_node *node) {
  if (!is_there(node)) return false;
  if (node->device != NULL && g->device == NULL) g->device = node->device;
  if (node->device != NULL && g->device != node->device) {
    PyErr_SetString(PyExc_ValueError, "arrays of two executors meet in one computation");
    return false;
  }
  node->number = g->order.count;
  bool is_new_leaf = is_leaf(g, node) && (node->kind == HGPY_SCALAR || node->kind == HGPY_DATA);
  bool is_result = node->holders > 0 && (node->kind == HGPY_CALL || node->kind == HGPY_RESULT);
  if (!hgpy_list_add(&g->order, node) || !(is_new_leaf ? put_leaf(g, node) : put_call(g, node))) return false;
  return !is_result || hgpy_list_add(&g->results, node);
}

/* A node is written when all that it reads has a number: it stays on the stack until then. `done` and `done - 1` mark
 * nodes of this walk that have one, and that wait. */
static bool walk(graph *g, hgpy_node *root, uint32_t done) {
  if (!hgpy_list_add(&g->stack, root)) return false;
  while (g->stack.count > 0) {
    hgpy_node *node = g->stack.nodes[g->stack.count - 1];
    if (node->epoch == done) {
      g->stack.count--;
      continue;
    }
    bool waits = false;
    if (node->epoch != done - 1 && !is_leaf(g, node)) {
      node->epoch = done - 1;
      for (uint32_t i = node->input_count; i-- > 0;) {
        hgpy_node *input = node->inputs[i];
        if (input == NULL || input->epoch == done) continue;
        if (!hgpy_list_add(&g->stack, input)) return false;
        waits = true;
      }
    }
    if (waits) continue;
    g->stack.count--;
    if (!put_node(g, node)) return false;
    node->epoch = done;
    for (uint32_t i = 0; i < node->result_count; i++) { /* results of one call are computed together */
      hgpy_node *result = node->results[i];
      if (result != NULL && result->holders > 0 && result->epoch < done - 1 && !hgpy_list_add(&g->stack, result))
        return false;
    }
  }
  return true;
}

static bool has_gradients(const graph *g) {
  for (uint32_t i = 0; i < g->order.count; i++)
    if (g->order.nodes[i]->kind == HGPY_GRADIENT) return true;
  return false;
}

/* Roots are results whoever holds them; `into`: the one root, written to memory that is there. */
static bool put_roots(graph *g, hgpy_node *const *roots, uint32_t count, const hg_tensor *into) {
  for (uint32_t i = 0; i < count; i++) {
    bool is_found = roots[i]->holders > 0 && (roots[i]->kind == HGPY_CALL || roots[i]->kind == HGPY_RESULT);
    if (into == NULL && (is_found || roots[i]->kind == HGPY_DATA)) continue;
    if (!hgpy_list_add(&g->results, roots[i])) return false;
  }
  uint64_t *at = hgpy_graph_room(g, g->results.count + 2 + (into != NULL ? into->rank : 0));
  if (at == NULL) return false;
  *at++ = UINT64_MAX;
  for (uint32_t i = 0; i < g->results.count; i++) *at++ = g->results.nodes[i]->number;
  *at++ = into != NULL;
  for (uint32_t d = 0; into != NULL && d < into->rank; d++)
    *at++ = (uint64_t)(into->shape[d] > 1 ? into->stride[d] : 0);
  return true;
}

uint32_t hgpy_next_epoch(void) {
  static uint32_t epoch;
  if (epoch > UINT32_MAX - 4) epoch = 0;
  return epoch += 2;
}

static bool walk_all(graph *g, hgpy_node *const *roots, uint32_t count) {
  uint32_t epoch = hgpy_next_epoch();
  g->epoch = epoch;
  g->order.count = g->leaves.count = g->scalars.count = g->results.count = g->stack.count = g->word_count = 0;
  for (uint32_t i = 0; i < count; i++)
    if (!walk(g, roots[i], epoch)) return false;
  return true;
}

/* `into`: the one root is the only result, and goes where there is memory of `device`. */
static bool read_graph(graph *g, hgpy_node *const *roots, uint32_t count, const hg_tensor *into, hgpy_device *device) {
  if (!walk_all(g, roots, count)) return false;
  if (has_gradients(g) && !g->is_expanded) {
    g->is_expanded = true;
    if (!walk_all(g, roots, count)) return false;
  }
  if (into != NULL) {
    g->results.count = 0;
    if (g->device == NULL) g->device = device;
    if (g->device == device) return put_roots(g, roots, count, into);
    PyErr_SetString(PyExc_ValueError, "what is computed and the memory for it are on two executors");
    return false;
  }
  if (g->device == NULL) { /* opening it lets other threads run */
    device = hgpy_default_device();
    if (device == NULL || !walk_all(g, roots, count)) return false;
    if (g->device == NULL) g->device = device;
  }
  return put_roots(g, roots, count, into) && hgpy_find_homes(g);
}

/* ---- what is known ----------------------------------------------------------------------------------------------- */

enum { BUCKETS = 1024, MOST_KNOWN = 4096 };

typedef struct known {
  struct known *next;
  uint64_t hash;
  uint32_t word_count, scalar_count;
  uint32_t users;      /* runs of it that are under way */
  bool is_forgotten;   /* and found no more: the last of them releases it */
  hgpy_device *device; /* not held: it forgets its own */
  hg_executable *executable, *general; /* with these numbers; with any */
  uint64_t *scalars;
  uint64_t words[];
} known;

static known *buckets[BUCKETS];
static uint32_t known_count;

static void forget(known *k) {
  k->is_forgotten = true;
  if (k->users > 0) return;
  hg_executable_release(k->executable);
  hg_executable_release(k->general);
  PyMem_Free(k);
}

static void forget_all(const hgpy_device *device) {
  for (uint32_t b = 0; b < BUCKETS; b++) {
    known **at = &buckets[b];
    while (*at != NULL) {
      known *k = *at;
      if (device != NULL && k->device != device) {
        at = &k->next;
        continue;
      }
      *at = k->next;
      known_count--;
      forget(k);
    }
  }
}

void hgpy_forget(const hgpy_device *device) { forget_all(device); }

static known *find_known(const graph *g, uint64_t hash) {
  for (known *k = buckets[hash % BUCKETS]; k != NULL; k = k->next)
    if (k->hash == hash && k->device == g->device && k->word_count == g->word_count &&
        memcmp(k->words, g->words, g->word_count * sizeof *g->words) == 0)
      return k;
  return NULL;
}

static uint64_t bits_of(const hgpy_node *scalar) {
  uint64_t bits;
  memcpy(&bits, &scalar->value, sizeof bits);
  return bits;
}

/* NULL: raised. It keeps the executable, of which it takes a reference. */
static known *keep(const graph *g, uint64_t hash, hg_executable *executable) {
  if (known_count >= MOST_KNOWN) forget_all(NULL);
  size_t bytes = (g->word_count + g->scalars.count) * sizeof(uint64_t);
  known *k = PyMem_Malloc(sizeof *k + bytes);
  if (k == NULL) return (known *)PyErr_NoMemory();
  *k = (known){.hash = hash, .word_count = g->word_count, .scalar_count = g->scalars.count, .device = g->device};
  memcpy(k->words, g->words, g->word_count * sizeof *g->words);
  k->scalars = k->words + g->word_count;
  for (uint32_t i = 0; i < g->scalars.count; i++) k->scalars[i] = bits_of(g->scalars.nodes[i]);
  k->executable = executable;
  k->next = buckets[hash % BUCKETS];
  buckets[hash % BUCKETS] = k;
  known_count++;
  return k;
}

static bool has_its_numbers(const graph *g, const known *k) {
  for (uint32_t i = 0; i < k->scalar_count; i++)
    if (k->scalars[i] != bits_of(g->scalars.nodes[i])) return false;
  return true;
}

/* ---- building ---------------------------------------------------------------------------------------------------- */

static hg_value value_of(const hgpy_node *node, const hg_value *values) {
  return node != NULL ? values[node->number] : 0;
}

static hg_value add_scalar(hg_computation *c, const hgpy_node *node, bool is_general) {
  if (is_general) return hg_computation_input(c, "number", &node->tensor);
  atlas_type type = (atlas_type)node->tensor.type;
  return node->is_integer ? hg_computation_integer(c, type, node->value.integer)
                          : hg_computation_number(c, type, node->value.real);
}

/* All results of a node that has several: they stand from `first` on in `many`. */
static hg_status add_many(const graph *g, hg_computation *c, const hgpy_node *node, const hg_value *values,
                          hg_value *results, uint32_t result_count) {
  hg_value few[64] = {0}, *inputs = few;
  (void)g;
  if (node->input_count > 64) inputs = PyMem_Malloc(node->input_count * sizeof *inputs);
  if (inputs == NULL) return HG_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->input_count; i++) inputs[i] = value_of(node->inputs[i], values);
  hg_status status;
  if (node->kind == HGPY_GRADIENT) {
    results[0] = inputs[0];
    status = hg_gradient(c, inputs[0], inputs[1], inputs + 2, node->input_count - 2, results + 1);
  } else
    status = hg_compute_all(c, hgpy_row_op(node->row), inputs, node->input_count, node->arguments, node->argument_count,
                            results, result_count);
  if (inputs != few) PyMem_Free(inputs);
  return status;
}

static uint32_t results_of(const hgpy_node *node) {
  if (node->kind == HGPY_GRADIENT) return node->input_count - 1;
  hg_op_info info = {.size = sizeof info};
  return hg_op_query(node->row, &info) == HG_OK ? info.output_count : 1;
}

static hg_status add_call(const graph *g, hg_computation *c, const hgpy_node *node, hg_value *values, hg_value **many) {
  hgpy_kind kind = kind_of(g, node);
  uint32_t number = node->number;
  if (kind == HGPY_RESULT) {
    values[number] = many[node->inputs[0]->number][node->result];
    return HG_OK;
  }
  if (kind == HGPY_MANY || kind == HGPY_GRADIENT) {
    uint32_t count = results_of(node);
    many[number] = PyMem_Malloc((count + 1) * sizeof(hg_value));
    if (many[number] == NULL) return HG_OUT_OF_MEMORY;
    return add_many(g, c, node, values, many[number], count);
  }
  return add_many(g, c, node, values, &values[number], 1);
}

/* Leaves that read another's input. One that a gradient must tell from it is that input and -0, which has its bits. */
static hg_status add_aliases(const graph *g, hg_computation *c, hg_value *values) {
  bool *is_apart = PyMem_Calloc(g->leaves.count + 1, sizeof *is_apart);
  if (is_apart == NULL || !hgpy_find_apart(g, is_apart)) return PyMem_Free(is_apart), HG_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < g->leaves.count; i++) {
    if (hgpy_has_input(g, i)) continue;
    const hgpy_node *leaf = g->leaves.nodes[i];
    hg_value input = values[g->leaves.nodes[g->input_of[i]]->number];
    if (is_apart[i]) {
      hg_value zero = hg_computation_number(c, (atlas_type)leaf->tensor.type, -0.0);
      input = hg_compute(c, HG_OP_add, (hg_value[]){input, zero}, 2, NULL, 0);
    }
    values[leaf->number] = input;
  }
  PyMem_Free(is_apart);
  return HG_OK;
}

/* Inputs come in the order of leaves, then numbers, where they are inputs. */
static hg_status add_leaves(const graph *g, hg_computation *c, hg_value *values, bool is_general) {
  for (uint32_t i = 0; i < g->leaves.count; i++) {
    if (!hgpy_has_input(g, i)) continue;
    char name[16];
    snprintf(name, sizeof name, "x%u", (unsigned)i);
    values[g->leaves.nodes[i]->number] = hg_computation_input(c, name, &g->leaves.nodes[i]->tensor);
  }
  for (uint32_t i = 0; i < g->scalars.count; i++)
    values[g->scalars.nodes[i]->number] = add_scalar(c, g->scalars.nodes[i], is_general);
  if (g->alias_count > 0 && add_aliases(g, c, values) != HG_OK) return HG_OUT_OF_MEMORY;
  return hg_computation_status(c);
}

static hg_status add_nodes(const graph *g, hg_computation *c, hg_value *values, hg_value **many, const hg_tensor *into,
                           bool is_general) {
  hg_status status = add_leaves(g, c, values, is_general);
  for (uint32_t i = 0; i < g->order.count && status == HG_OK; i++) {
    const hgpy_node *node = g->order.nodes[i];
    if (values[i] == 0 && many[i] == NULL) status = add_call(g, c, node, values, many);
  }
  for (uint32_t i = 0; i < g->results.count && status == HG_OK; i++) {
    char name[16];
    uint32_t home = hgpy_home_of(g, i);
    hg_value value = values[g->results.nodes[i]->number];
    snprintf(name, sizeof name, "y%u", (unsigned)i);
    status = home == HGPY_NONE ? hg_computation_output(c, name, value, into)
                               : hg_computation_update(c, values[g->leaves.nodes[home]->number], value);
  }
  return status;
}

/* A computation of the graph; NULL: raised. */
static hg_computation *build(const graph *g, const hg_tensor *into, bool is_general) {
  hg_computation *c = NULL;
  hg_value *values = PyMem_Calloc(g->order.count + 1, sizeof *values);
  hg_value **many = PyMem_Calloc(g->order.count + 1, sizeof *many);
  hg_status status = HG_OUT_OF_MEMORY;
  bool has_memory = values != NULL && many != NULL;
  if (has_memory) status = hg_computation_create(NULL, &c);
  if (status == HG_OK) status = add_nodes(g, c, values, many, into, is_general);
  for (uint32_t i = 0; many != NULL && i < g->order.count; i++) PyMem_Free(many[i]);
  PyMem_Free(many);
  PyMem_Free(values);
  if (status == HG_OK) return c;
  if (has_memory) hgpy_raise(status);
  else PyErr_NoMemory();
  hg_computation_release(c);
  return NULL;
}

static hg_executable *compile(const graph *g, const hg_tensor *into, bool is_general) {
  hg_executable *executable = NULL;
  hg_computation *c = build(g, into, is_general);
  if (c == NULL) return NULL;
  hg_executor *executor = g->device->executor;
  hg_status status;
  hgpy_device_retain(g->device);
  HGPY_BEGIN_CALL
  status = hg_compile(executor, c, NULL, &executable);
  hg_computation_release(c);
  HGPY_END_CALL
  bool is_made = hgpy_ok(status);
  hgpy_device_release(g->device);
  return is_made ? executable : NULL;
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

enum { FEW_TENSORS = 24, SMALL_COUNT = 8192, LARGE_WORK = 1 << 22 };

/* What a run needs once the GIL is released: nothing of it can go away. Its executable is the caller's. */
typedef struct run {
  hg_executable *executable;
  hg_tensor *tensors, few[FEW_TENSORS];
  hgpy_storage **storages, *few_storages[FEW_TENSORS];
  uint32_t input_count, output_count, count, storage_count;
  uint64_t element_count; /* of the largest tensor */
  hgpy_device *device;
} run;

static bool run_begin(run *r, const graph *g, bool is_general) {
  r->storage_count = 0;
  r->element_count = 0;
  r->device = hgpy_device_retain(g->device);
  r->input_count = g->leaves.count - g->alias_count + (is_general ? g->scalars.count : 0);
  r->output_count = g->results.count - g->update_count;
  r->count = r->input_count + r->output_count;
  r->tensors = r->few;
  r->storages = r->few_storages;
  if (r->count <= FEW_TENSORS) return true;
  r->tensors = PyMem_Malloc(r->count * sizeof *r->tensors);
  r->storages = PyMem_Malloc(r->count * sizeof(hgpy_storage *));
  if (r->tensors != NULL && r->storages != NULL) return true;
  PyErr_NoMemory();
  return false;
}

static void run_end(run *r) {
  for (uint32_t i = 0; i < r->storage_count; i++) hgpy_storage_release(r->storages[i]);
  if (r->tensors != r->few) PyMem_Free(r->tensors);
  if (r->storages != r->few_storages) PyMem_Free(r->storages);
  hgpy_device_release(r->device);
}

/* Takes the storage. */
static void add_tensor(run *r, const hg_tensor *tensor, hgpy_storage *storage) {
  hg_tensor *to = &r->tensors[r->storage_count];
  *to = *tensor;
  to->buffer = storage->buffer;
  r->storages[r->storage_count++] = storage;
  uint64_t count = hg_tensor_count(tensor);
  if (count > r->element_count) r->element_count = count;
}

/* The numbers of a general executable, in one piece of memory, eight bytes each. */
static bool add_numbers(run *r, const graph *g) {
  if (g->scalars.count == 0) return true;
  hgpy_storage *storage = hgpy_storage_create(g->device, 8 * (uint64_t)g->scalars.count, false);
  bool is_good = storage != NULL;
  for (uint32_t i = 0; is_good && i < g->scalars.count; i++) {
    const hgpy_node *node = g->scalars.nodes[i];
    hg_tensor tensor = {.type = node->tensor.type};
    uint32_t bytes = hgpy_type_bytes(tensor.type);
    tensor.offset = (int64_t)(8 / bytes * i);
    hg_tensor wide = {.type = node->is_integer ? ATLAS_i64 : ATLAS_f64};
    uint64_t bits = bits_of(node);
    is_good = hgpy_ok(hg_buffer_write(storage->buffer, 8 * (uint64_t)i, &bits, 8));
    hgpy_storage *narrow = NULL;
    if (is_good && wide.type != tensor.type) { /* as the computation converts a number: by a cast */
      hg_argument argument = {.count = 1, .integers = {(int64_t)tensor.type}};
      narrow = hgpy_storage_create(g->device, 8, false);
      wide.buffer = storage->buffer;
      wide.offset = (int64_t)i;
      is_good = narrow != NULL;
      hg_tensor to = {.type = tensor.type, .buffer = is_good ? narrow->buffer : NULL};
      if (is_good) is_good = hgpy_ok(hg_apply(HG_OP_cast, &wide, 1, &argument, 1, &to, 1, g->device->stream));
      tensor.offset = 0;
    }
    if (is_good) add_tensor(r, &tensor, narrow != NULL ? narrow : hgpy_storage_retain(storage));
    else hgpy_storage_release(narrow);
  }
  hgpy_storage_release(storage);
  return is_good;
}

static bool add_outputs(run *r, const graph *g, hgpy_storage *into_storage, const hg_tensor *into) {
  if (into != NULL) {
    add_tensor(r, into, hgpy_storage_retain(into_storage));
    return true;
  }
  for (uint32_t i = 0; i < g->results.count; i++) {
    if (hgpy_home_of(g, i) != HGPY_NONE) continue;
    const hg_tensor *like = &g->results.nodes[i]->tensor;
    hg_tensor tensor = hg_tensor_of(NULL, (atlas_type)like->type, like->rank, like->shape);
    hgpy_storage *storage =
        hgpy_storage_create(g->device, hg_tensor_count(&tensor) * hgpy_type_bytes(like->type), false);
    if (storage == NULL) return false;
    add_tensor(r, &tensor, storage);
  }
  return true;
}

/* Elements of all that is computed: from some on it may take longer than somebody waits who wants to end it. */
static bool is_large(const graph *g) {
  uint64_t work = 0;
  for (uint32_t i = 0; i < g->order.count && work < LARGE_WORK; i++)
    work += hg_tensor_count(&g->order.nodes[i]->tensor);
  return work >= LARGE_WORK;
}

static bool launch(const graph *g, run *r) {
  const hg_tensor *outputs = r->tensors + r->input_count;
  bool is_quick =
      r->element_count < SMALL_COUNT && g->order.count < SMALL_COUNT / 8; /* over before another thread begins */
  hg_stream *queue = r->device->stream == NULL && is_large(g) ? hgpy_queue_take(r->device) : NULL;
  hg_stream *stream = queue != NULL ? queue : r->device->stream;
  hg_status status;
  if (is_quick && queue == NULL)
    return hgpy_ok(hg_run(r->executable, r->tensors, r->input_count, outputs, r->output_count, stream, NULL));
  HGPY_BEGIN_CALL
  status = hg_run(r->executable, r->tensors, r->input_count, outputs, r->output_count, stream, NULL);
  HGPY_END_CALL
  return queue != NULL ? hgpy_queue_wait(r->device, queue, status, r->storages, r->count) : hgpy_ok(status);
}

/* A node that was computed reads nothing any more, but for gradients. */
static void become_data(hgpy_node *node, hgpy_storage *storage, const hg_tensor *tensor) {
  if (node->kind == HGPY_DATA) return; /* another thread was faster */
  if (node->is_kept) node->is_kept = node->kind == HGPY_RESULT ? 2 : 1;
  hgpy_leave_call(node);
  node->kind = HGPY_DATA;
  node->storage = hgpy_storage_retain(storage);
  node->tensor = *tensor;
  node->tensor.buffer = NULL;
  if (node->device == NULL) node->device = hgpy_device_retain(storage->device);
  if (node->is_kept) return;
  hgpy_node **inputs = node->inputs, *few[HGPY_FEW];
  uint32_t count = node->input_count;
  memcpy(few, node->few, sizeof few);
  node->input_count = 0;
  node->depth = 0;
  node->inputs = node->few;
  for (uint32_t i = 0; i < count; i++) hgpy_node_release(inputs == node->few ? few[i] : inputs[i]);
  if (inputs != node->few) PyMem_Free(inputs);
  PyMem_Free(node->arguments);
  node->arguments = NULL;
  node->argument_count = 0;
}

/* Another thread may have given up what this one has walked over. */
static bool add_inputs(run *r, const graph *g) {
  for (uint32_t i = 0; i < g->leaves.count; i++)
    if (!is_there(g->leaves.nodes[i])) return false;
  if (!hgpy_can_give_up(g)) return false;
  for (uint32_t i = 0; i < g->leaves.count; i++)
    if (hgpy_has_input(g, i))
      add_tensor(r, &g->leaves.nodes[i]->tensor, hgpy_storage_retain(g->leaves.nodes[i]->storage));
  hgpy_give_up(g);
  return true;
}

static bool run_graph(graph *g, hg_executable *executable, bool is_general, hgpy_storage *storage,
                      const hg_tensor *into) {
  run r;
  bool is_good = run_begin(&r, g, is_general) && add_inputs(&r, g);
  is_good = is_good && (!is_general || add_numbers(&r, g)) && add_outputs(&r, g, storage, into);
  for (uint32_t i = 0; i < g->results.count; i++) hgpy_node_retain(g->results.nodes[i]);
  r.executable = executable;
  is_good = is_good && launch(g, &r);
  uint32_t output = r.input_count;
  for (uint32_t i = 0; i < g->results.count; i++) {
    uint32_t home = hgpy_home_of(g, i), number = home != HGPY_NONE ? g->slot_of[home] : output++;
    if (is_good && into == NULL) become_data(g->results.nodes[i], r.storages[number], &r.tensors[number]);
    hgpy_node_release(g->results.nodes[i]);
  }
  run_end(&r);
  return is_good;
}

static bool run_known(graph *g, known *k, bool is_general, hgpy_storage *storage, const hg_tensor *into) {
  k->users++;
  bool is_good = run_graph(g, is_general ? k->general : k->executable, is_general, storage, into);
  if (--k->users == 0 && k->is_forgotten) forget(k);
  return is_good;
}

static bool compute(graph *g, hgpy_storage *storage, const hg_tensor *into) {
  uint64_t hash = hgpy_hash_words(g->words, g->word_count);
  known *k = find_known(g, hash);
  bool is_new = k == NULL, is_general = !is_new && !has_its_numbers(g, k);
  if (!is_new && (!is_general || k->general != NULL)) return run_known(g, k, is_general, storage, into);
  hg_executable *executable = compile(g, into, is_general);
  if (executable == NULL) return false;
  if (!hgpy_allows_executable(g->device, executable)) return hg_executable_release(executable), false;
  k = find_known(g, hash); /* another thread may have been here meanwhile */
  if (is_new && k == NULL) keep(g, hash, hg_executable_retain(executable));
  else if (is_general && k != NULL && k->general == NULL) k->general = hg_executable_retain(executable);
  bool is_good = !PyErr_Occurred() && run_graph(g, executable, is_general, storage, into);
  hg_executable_release(executable);
  return is_good;
}

/* The nodes of a graph stay while other threads run. */
static bool compute_held(graph *g, hgpy_storage *storage, const hg_tensor *into) {
  for (uint32_t i = 0; i < g->order.count; i++) g->order.nodes[i]->references++;
  bool is_good = compute(g, storage, into);
  for (uint32_t i = 0; i < g->order.count; i++) hgpy_node_release(g->order.nodes[i]);
  return is_good;
}

bool hgpy_evaluate(hgpy_node *const *nodes, uint32_t count) { return hgpy_evaluate_onto(nodes, count, NULL, 0); }

bool hgpy_evaluate_onto(hgpy_node *const *nodes, uint32_t count, const hgpy_pair *pairs, uint32_t pair_count) {
  uint32_t waiting = 0;
  for (uint32_t i = 0; i < count; i++) waiting += nodes[i]->kind != HGPY_DATA;
  if (waiting == 0) return true;
  graph g;
  graph_begin(&g);
  g.pairs = pairs;
  g.pair_count = pair_count;
  bool is_good = read_graph(&g, nodes, count, NULL, NULL) && compute_held(&g, NULL, NULL);
  graph_end(&g);
  return is_good;
}

bool hgpy_evaluate_into(hgpy_node *node, hgpy_storage *storage, const hg_tensor *like) {
  hgpy_node *copy = NULL;
  if (node->kind == HGPY_DATA || node->kind == HGPY_SCALAR) { /* a copy is an operation, too */
    bool was_eager = hgpy_is_eager;
    hgpy_is_eager = false;
    copy = hgpy_same(node);
    hgpy_is_eager = was_eager;
    if (copy == NULL) return false;
    node = copy;
  }
  graph g;
  graph_begin(&g);
  bool is_good = read_graph(&g, &node, 1, like, storage->device) && compute_held(&g, storage, like);
  graph_end(&g);
  hgpy_node_release(copy);
  return is_good;
}

hgpy_node *hgpy_dense(hgpy_node *node, bool is_asked_for) {
  uint64_t stride = 1;
  bool is_dense = true;
  if (!hgpy_evaluate(&node, 1)) return NULL;
  for (uint32_t d = node->tensor.rank; d-- > 0;) {
    if (node->tensor.shape[d] > 1 && (uint64_t)node->tensor.stride[d] != stride) is_dense = false;
    stride *= node->tensor.shape[d];
  }
  if (is_dense || stride == 0) return hgpy_node_retain(node);
  if (!is_asked_for &&
      !hgpy_allows("elements that do not lie in C order would be copied; hologram.array(x) copies them"))
    return NULL;
  hgpy_node *copy = hgpy_same(node);
  if (copy != NULL && hgpy_evaluate(&copy, 1)) return copy;
  hgpy_node_release(copy);
  return NULL;
}

hgpy_node *hgpy_copy(hgpy_node *node) {
  hg_tensor tensor = hg_tensor_of(NULL, (atlas_type)node->tensor.type, node->tensor.rank, node->tensor.shape);
  hgpy_device *device = node->device != NULL ? node->device : hgpy_default_device();
  hgpy_storage *storage =
      device != NULL ? hgpy_storage_create(device, hg_tensor_count(&tensor) * hgpy_type_bytes(tensor.type), false)
                     : NULL;
  if (storage == NULL) return NULL;
  if (hg_tensor_count(&tensor) == 0 || hgpy_evaluate_into(node, storage, &tensor))
    return hgpy_node_data(storage, &tensor);
  hgpy_storage_release(storage);
  return NULL;
}

hgpy_node *hgpy_own(hgpy_node *node) {
  if (!hgpy_evaluate(&node, 1)) return NULL;
  return node->storage->is_foreign ? hgpy_copy(node) : hgpy_node_retain(node);
}

PyObject *hgpy_explain(hgpy_node *node, bool as_json) {
  graph g;
  PyObject *report = NULL;
  char *text = NULL;
  size_t length = 0;
  if (node->kind == HGPY_DATA)
    return PyUnicode_FromString(as_json ? "null" : "computed already: its elements are in memory\n");
  graph_begin(&g);
  if (read_graph(&g, &node, 1, NULL, NULL)) {
    hg_executable *executable = compile(&g, NULL, false);
    if (executable != NULL && hgpy_ok(hg_executable_report(executable, NULL, as_json, &text, &length)))
      report = PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
    atlas_memory_release(NULL, text);
    hg_executable_release(executable);
  }
  graph_end(&g);
  return report;
}
