/* transform.c - values recorded in one way and computed in another: for one example, and computed for all (vmap);
 * behind a fence, and recomputed for gradients (checkpoint), or with the user's gradients (custom_gradient). The
 * library decides how (build.c): hg_vmap, hg_checkpoint, hg_custom_gradient. */
#include "graph.h"

enum { MOST_LEVELS = 32 };

/* ---- lists ------------------------------------------------------------------------------------------------------- */

/* The nodes of lists of Arrays (None: absent), list after list; NULL: raised. */
static hgpy_node **nodes_of(PyObject *const *lists, Py_ssize_t list_count, uint32_t *count) {
  Py_ssize_t total = 0;
  for (Py_ssize_t k = 0; k < list_count; k++) {
    if (!PyList_Check(lists[k])) return (hgpy_node **)PyErr_Format(PyExc_TypeError, "lists of Arrays are expected");
    total += PyList_Size(lists[k]);
  }
  hgpy_node **nodes = PyMem_Malloc(((size_t)total + 1) * sizeof(hgpy_node *));
  if (nodes == NULL) return (hgpy_node **)PyErr_NoMemory();
  *count = 0;
  for (Py_ssize_t k = 0; k < list_count; k++)
    for (Py_ssize_t i = 0; i < PyList_Size(lists[k]); i++) {
      PyObject *array = PyList_GetItem(lists[k], i);
      if (array != Py_None && !hgpy_is_array(array)) {
        PyMem_Free(nodes);
        return (hgpy_node **)PyErr_Format(PyExc_TypeError, "Arrays are expected, not %R", (PyObject *)Py_TYPE(array));
      }
      nodes[(*count)++] = array != Py_None ? hgpy_array_node(array) : NULL;
    }
  return nodes;
}

/* A list of Arrays over the nodes, which it takes. */
static PyObject *list_of(hgpy_node **nodes, uint32_t count) {
  PyObject *list = PyList_New(count);
  for (uint32_t i = 0; i < count; i++) {
    PyObject *array = hgpy_array_of(nodes[i]);
    if (array == NULL) Py_CLEAR(list);
    else if (list == NULL || PyList_SetItem(list, i, array) < 0) Py_CLEAR(list);
  }
  return list;
}

/* Results with the shapes of the first inputs; for a batch, with an axis in front. */
static PyObject *record(hgpy_transform what, hgpy_node *const *inputs, uint32_t count, const hg_argument *argument,
                        uint32_t examples) {
  uint32_t result_count = (uint32_t)argument->integers[0];
  hg_tensor *tensors = PyMem_Malloc((result_count + 1) * sizeof *tensors);
  hgpy_node **results = PyMem_Malloc((result_count + 1) * sizeof(hgpy_node *));
  PyObject *list = NULL;
  bool is_good = tensors != NULL && results != NULL;
  if (!is_good) PyErr_NoMemory();
  for (uint32_t i = 0; is_good && i < result_count; i++) {
    const hg_tensor *own = &inputs[i]->tensor;
    uint64_t shape[HG_MAX_RANK + 1] = {(uint64_t)argument->integers[2]};
    uint32_t more = what == HGPY_VMAP;
    memcpy(shape + more, own->shape, own->rank * sizeof *shape);
    is_good = own->rank + more <= HG_MAX_RANK;
    if (is_good) tensors[i] = hg_tensor_of(NULL, (atlas_type)own->type, own->rank + more, shape);
    else PyErr_Format(PyExc_ValueError, "vmap: arrays have at most %d axes, and each example has as many", HG_MAX_RANK);
  }
  if (is_good && hgpy_record_transform(what, inputs, count, argument, examples, tensors, result_count, results))
    list = list_of(results, result_count);
  PyMem_Free(tensors);
  PyMem_Free(results);
  return list;
}

/* ---- vmap -------------------------------------------------------------------------------------------------------- */

static uint32_t free_level(void) {
  for (uint32_t i = 0; i < MOST_LEVELS; i++)
    if ((hgpy_examples_now >> i & 1) == 0) return UINT32_C(1) << i;
  PyErr_Format(PyExc_ValueError, "vmap: more than %d calls are around each other", MOST_LEVELS);
  return 0;
}

/* begin_map(batches, given, [are_whole]): records for one example of each batch, an element along its first axis.
 * Returns (the trace's number, the examples, new arrays for the function that stand for the examples). are_whole: the
 * examples have the whole shapes, and stand for cotangents. */
PyObject *hgpy_begin_map(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  uint32_t total = 0, level = free_level();
  (void)module;
  if (level == 0) return NULL;
  bool is_whole = count == 3; /* examples with the arrays' own shapes */
  hgpy_node **nodes = nodes_of(values, 1, &total);
  if (nodes == NULL) return NULL;
  bool is_good = true;
  uint32_t made = 0;
  for (; is_good && made < total; made++) {
    hg_tensor like = nodes[made]->tensor;
    like = is_whole ? hg_tensor_of(NULL, (atlas_type)like.type, like.rank, like.shape)
                    : hg_tensor_of(NULL, (atlas_type)like.type, like.rank - 1, like.shape + 1);
    nodes[made] = hgpy_node_example(&like, nodes[made]->device, level);
    is_good = nodes[made] != NULL;
  }
  if (!is_good) {
    while (--made > 0) hgpy_node_release(nodes[made - 1]);
    PyMem_Free(nodes);
    return NULL;
  }
  PyObject *examples = list_of(nodes, total), *twins = examples != NULL ? PyList_New(0) : NULL;
  PyMem_Free(nodes);
  uint64_t id = twins != NULL ? hgpy_begin_own(values[1], level) : 0;
  for (Py_ssize_t i = 0; id != 0 && twins != NULL && i < PyList_Size(examples); i++) {
    PyObject *twin = hgpy_array_twin(PyList_GetItem(examples, i));
    if (twin == NULL || PyList_Append(twins, twin) < 0) Py_CLEAR(twins);
    Py_XDECREF(twin);
  }
  PyObject *number = id != 0 && twins != NULL ? PyLong_FromUnsignedLongLong(id) : NULL;
  PyObject *result = number != NULL ? PyTuple_Pack(3, number, examples, twins) : NULL;
  Py_XDECREF(number), Py_XDECREF(examples), Py_XDECREF(twins);
  return result;
}

/* map(values, examples, batches, count): the values for all examples, along a new first axis. */
PyObject *hgpy_map(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  uint32_t total = 0;
  (void)module;
  if (count != 4) return PyErr_Format(PyExc_TypeError, "map takes three lists of Arrays and a number");
  unsigned long long examples = PyLong_AsUnsignedLongLong(values[3]);
  hgpy_node **nodes = PyErr_Occurred() == NULL ? nodes_of(values, 3, &total) : NULL;
  if (nodes == NULL) return NULL;
  Py_ssize_t value_count = PyList_Size(values[0]), own = PyList_Size(values[1]);
  hg_argument argument = {.count = 3, .integers = {value_count, own, (int64_t)examples}};
  uint32_t level = own > 0 ? nodes[value_count]->examples : 0;
  PyObject *list = record(HGPY_VMAP, nodes, total, &argument, level);
  PyMem_Free(nodes);
  return list;
}

/* ---- fences ------------------------------------------------------------------------------------------------------ */

/* Lists the nodes older than `before` that the values depend on, each once. False: raised. */
static bool find_inputs(hgpy_node *const *values, uint32_t count, uint64_t before, hgpy_list *inputs) {
  hgpy_list waiting;
  hgpy_list_begin(&waiting);
  uint32_t epoch = hgpy_next_epoch();
  bool is_good = true;
  for (uint32_t i = 0; is_good && i < count; i++) is_good = hgpy_list_add(&waiting, values[i]);
  while (is_good && waiting.count > 0) {
    hgpy_node *next = waiting.nodes[--waiting.count];
    if (next->epoch == epoch) continue;
    next->epoch = epoch;
    if (next->made <= before && next->kind != HGPY_SCALAR && next->kind != HGPY_MANY && next->kind != HGPY_GRADIENT &&
        next->kind != HGPY_TRANSFORM) {
      is_good = hgpy_list_add(inputs, next);
      continue;
    }
    for (uint32_t i = 0; is_good && i < next->input_count; i++)
      if (next->inputs[i] != NULL) is_good = hgpy_list_add(&waiting, next->inputs[i]);
  }
  hgpy_list_end(&waiting);
  return is_good;
}

/* checkpoint(values, before): the same values, which gradients recompute from nodes older than number `before`. */
PyObject *hgpy_checkpoint(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  uint32_t total = 0;
  (void)module;
  uint64_t before = count == 2 ? PyLong_AsUnsignedLongLong(values[1]) : 0;
  if (count != 2 || PyErr_Occurred()) return PyErr_Format(PyExc_TypeError, "checkpoint takes a list and a number");
  hgpy_node **nodes = nodes_of(values, 1, &total);
  if (nodes == NULL) return NULL;
  hgpy_list inputs;
  hgpy_list_begin(&inputs);
  PyObject *list = NULL;
  bool is_good = find_inputs(nodes, total, before, &inputs);
  hgpy_node **all = is_good ? PyMem_Malloc((total + inputs.count + 1) * sizeof(hgpy_node *)) : NULL;
  if (is_good && all == NULL) PyErr_NoMemory();
  if (all != NULL) {
    for (uint32_t i = 0; i < total; i++) all[i] = nodes[i];
    for (uint32_t i = 0; i < inputs.count; i++) all[total + i] = inputs.nodes[i];
    hg_argument argument = {.count = 2, .integers = {total, inputs.count}};
    list = record(HGPY_CHECKPOINT, all, total + inputs.count, &argument, 0);
  }
  PyMem_Free(all);
  PyMem_Free(nodes);
  hgpy_list_end(&inputs);
  return list;
}

/* custom_gradient(values, inputs, cotangents, gradients): the same values, whose gradients by the inputs (None: none
 * flows) are computed from the cotangents, which are examples. */
PyObject *hgpy_custom_gradient(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  uint32_t total = 0;
  (void)module;
  if (count != 4) return PyErr_Format(PyExc_TypeError, "custom_gradient takes four lists of Arrays");
  hgpy_node **nodes = nodes_of(values, 4, &total);
  if (nodes == NULL) return NULL;
  Py_ssize_t value_count = PyList_Size(values[0]), own = PyList_Size(values[1]);
  hg_argument argument = {.count = 2, .integers = {value_count, own}};
  uint32_t level = PyList_Size(values[2]) > 0 ? nodes[value_count + own]->examples : 0;
  int depends = hgpy_depends_beside(nodes, (uint32_t)value_count, nodes + value_count, (uint32_t)own, 0);
  if (depends > 0)
    PyErr_SetString(PyExc_ValueError,
                    "custom_gradient: the value is made of an array from outside that a gradient flows through, where "
                    "it would be lost: make it an argument, or take hologram.stop_gradient(x)");
  PyObject *list = depends == 0 ? record(HGPY_CUSTOM, nodes, total, &argument, level) : NULL;
  PyMem_Free(nodes);
  return list;
}

/* count_nodes(): the number of nodes made so far. */
PyObject *hgpy_count_nodes(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyLong_FromUnsignedLongLong(hgpy_nodes_made);
}
