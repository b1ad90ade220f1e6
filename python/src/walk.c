/* walk.c - walks the nodes of a graph in the order of computation, and makes the graph's key: everything an executable
 * depends on. Results are the requested nodes, and pending nodes on the way that an array still holds: reading those
 * later is free. So are two kinds of nodes that a pending node outside of the graph reads: small ones, since otherwise
 * a counter of steps that is one ahead of them would make a longer graph in each step, to be planned anew; and other
 * results of a call that is computed, since otherwise who reads the loss of a step and then its weights would compute
 * the gradients' forward part twice. */
#include "graph.h"

enum { SMALL_BYTES = 4096 }; /* storing and loading them takes less than a microsecond, planning a graph 20 or more */

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

hgpy_kind hgpy_kind_in(const graph *g, const hgpy_node *node) {
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
  *at++ = hgpy_kind_in(g, node) | (uint64_t)node->numerics << 4 | (uint64_t)node->row << 8 |
          (uint64_t)node->result << 24 | (uint64_t)node->argument_count << 40 | (uint64_t)node->input_count << 44;
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

static bool is_pending(const hgpy_node *node) { return node->kind == HGPY_CALL || node->kind == HGPY_RESULT; }

static bool is_small(const hgpy_node *node) {
  return hg_tensor_count(&node->tensor) <= SMALL_BYTES / hgpy_type_bytes(node->tensor.type);
}

/* A node that is a result, or may be one (add_shared). */
static bool put_result(graph *g, hgpy_node *node) {
  if (node->holders > 0) return hgpy_list_add(&g->results, node);
  bool may_be_shared = node->kind == HGPY_RESULT || (node->references > 1 && is_small(node));
  return !may_be_shared || hgpy_list_add(&g->shared, node);
}

static bool put_node(graph *g, hgpy_node *node) {
  if (!hgpy_is_there(node)) return false;
  if (node->device != NULL && g->device == NULL) g->device = node->device;
  if (node->device != NULL && g->device != node->device) {
    PyErr_SetString(PyExc_ValueError, "arrays of two executors meet in one computation");
    return false;
  }
  node->number = g->order.count;
  bool is_new_leaf = is_leaf(g, node) && (node->kind == HGPY_SCALAR || node->kind == HGPY_DATA);
  if (!hgpy_list_add(&g->order, node) || !(is_new_leaf ? put_leaf(g, node) : put_call(g, node))) return false;
  return !is_pending(node) || node->examples != 0 || put_result(g, node);
}

/* A node is written once everything that it reads has a number; until then it stays on the stack. `done` marks nodes of
 * this walk with a number, `done - 1` waiting ones. */
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
    for (uint32_t i = 0; i < node->result_count; i++) { /* the results of one call are computed together */
      hgpy_node *result = node->results[i];
      if (result != NULL && result->epoch < done - 1 && !hgpy_list_add(&g->stack, result)) return false;
    }
  }
  return true;
}

static bool has_gradients(const graph *g) {
  for (uint32_t i = 0; i < g->order.count; i++)
    if (g->order.nodes[i]->kind == HGPY_GRADIENT) return true;
  return false;
}

/* How many of the graph's nodes read each node; NULL: raised. */
static uint32_t *count_readers(const graph *g) {
  uint32_t *readers = PyMem_Calloc(g->order.count, sizeof *readers);
  if (readers == NULL) return (uint32_t *)PyErr_NoMemory();
  for (uint32_t i = 0; i < g->order.count; i++) {
    const hgpy_node *node = g->order.nodes[i];
    for (uint32_t k = 0; k < node->input_count && !is_leaf(g, node); k++)
      if (node->inputs[k] != NULL) readers[node->inputs[k]->number]++;
  }
  return readers;
}

/* Adds the nodes among them that something else reads, too. Roots become results by themselves. */
static bool add_shared(graph *g, hgpy_node *const *roots, uint32_t count) {
  if (g->shared.count == 0) return true;
  uint32_t *readers = count_readers(g);
  bool is_good = readers != NULL;
  for (uint32_t i = 0; i < count && is_good; i++)
    if (roots[i]->epoch == g->epoch) readers[roots[i]->number] = UINT32_MAX;
  for (uint32_t i = 0; i < g->shared.count && is_good; i++) {
    hgpy_node *node = g->shared.nodes[i];
    if (node->references > readers[node->number]) is_good = hgpy_list_add(&g->results, node);
  }
  PyMem_Free(readers);
  return is_good;
}

/* Roots are results whether arrays hold them or not. `into`: the single root, written to existing memory. */
static bool put_roots(graph *g, hgpy_node *const *roots, uint32_t count, const hg_tensor *into) {
  for (uint32_t i = 0; i < count; i++) {
    bool is_found = roots[i]->holders > 0 && is_pending(roots[i]);
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
  g->order.count = g->leaves.count = g->scalars.count = g->results.count = 0;
  g->shared.count = g->stack.count = g->word_count = 0;
  for (uint32_t i = 0; i < count; i++)
    if (!walk(g, roots[i], epoch)) return false;
  return true;
}

static bool read_graph(graph *g, hgpy_node *const *roots, uint32_t count, const hg_tensor *into, hgpy_device *device) {
  for (uint32_t i = 0; i < count; i++)
    if (!hgpy_is_one(roots[i])) return false;
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
  if (g->device == NULL) { /* opening the device lets other threads run */
    device = hgpy_default_device();
    if (device == NULL || !walk_all(g, roots, count)) return false;
    if (g->device == NULL) g->device = device;
  }
  return add_shared(g, roots, count) && put_roots(g, roots, count, into) && hgpy_find_homes(g);
}

bool hgpy_read_graph(graph *g, hgpy_node *const *roots, uint32_t count, const hg_tensor *into, hgpy_device *device) {
  if (!read_graph(g, roots, count, into, device)) return false;
  g->held = hgpy_device_retain(g->device);
  return true;
}
