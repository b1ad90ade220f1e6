/* trace.c - gradients being recorded: their variables, and which arrays belong to the differentiated function.
 *
 * Arrays made since a trace began belong to its function, and so do arrays passed to it; all others are captured.
 * Assignments to the function's arrays are recorded. A captured array outlives the trace, so it must not be given a
 * value that depends on the variables. */
#include "graph.h"

/* An array passed to the function: it gets its value back when the trace ends. */
typedef struct given {
  PyObject *array;
  hgpy_node *node;
  uint64_t born;
} given;

typedef struct trace {
  struct trace *outer;
  uint64_t id;
  uint32_t examples; /* its bit */
  PyObject *leaves; /* a tuple of Arrays */
  given *given;
  Py_ssize_t given_count;
} trace;

static trace *innermost;
uint64_t hgpy_trace_now;
uint32_t hgpy_examples_now;

/* ---- beginning and ending ---------------------------------------------------------------------------------------- */

static void mark(const trace *t, uint64_t id) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(t->leaves); i++)
    hgpy_array_node(PyTuple_GetItem(t->leaves, i))->trace = id;
}

/* Another array of the same value, distinct for gradients. Inside a traced function it stays part of the trace: x + -0
 * is x for all numbers. */
static PyObject *alias(PyObject *array) {
  hgpy_node *node = hgpy_array_node(array);
  if (hgpy_tracing > 0 && hgpy_type_is_float(node->tensor.type)) {
    hgpy_node *zero = hgpy_node_real(node->tensor.type, -0.0);
    PyObject *made = NULL;
    if (zero != NULL) made = hgpy_array_of(hgpy_record(HGPY_ROW_add, (hgpy_node *[]){node, zero}, 2, NULL, 0));
    hgpy_node_release(zero);
    return made;
  }
  if (!hgpy_evaluate(&node, 1)) return NULL;
  return hgpy_array_of(hgpy_node_data(hgpy_storage_retain(node->storage), &node->tensor));
}

PyObject *hgpy_array_twin(PyObject *array) { return hgpy_array_of(hgpy_node_retain(hgpy_array_node(array))); }

/* Applies `make` to each array of a list or tuple. */
static PyObject *of_each(PyObject *arrays, PyObject *(*make)(PyObject *array)) {
  bool is_list = PyList_Check(arrays);
  Py_ssize_t count = is_list ? PyList_Size(arrays) : PyTuple_Size(arrays);
  PyObject *all = PyTuple_New(count);
  for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
    PyObject *array = is_list ? PyList_GetItem(arrays, i) : PyTuple_GetItem(arrays, i), *made = NULL;
    if (array != NULL && hgpy_is_array(array)) made = make(array);
    else if (array != NULL) PyErr_SetString(PyExc_TypeError, "gradients are by Arrays");
    if (made == NULL || PyTuple_SetItem(all, i, made) < 0) Py_CLEAR(all);
  }
  return all;
}

/* The trace's number; 0: raised. `given_arrays`: a list of Arrays. */
static uint64_t begin(PyObject *leaves, PyObject *given_arrays, uint32_t examples) {
  static uint64_t last;
  Py_ssize_t given_count = PyList_Size(given_arrays);
  trace *t = PyMem_Malloc(sizeof *t);
  given *list = PyMem_Malloc((size_t)(given_count + 1) * sizeof *list);
  if (t == NULL || list == NULL) {
    PyMem_Free(t);
    PyMem_Free(list);
    return PyErr_NoMemory(), 0;
  }
  *t = (trace){.outer = innermost, .id = ++last, .examples = examples, .leaves = Py_NewRef(leaves), .given = list,
               .given_count = given_count};
  for (Py_ssize_t i = 0; i < given_count; i++) {
    hgpy_array *array = (hgpy_array *)PyList_GetItem(given_arrays, i);
    list[i] =
        (given){.array = Py_NewRef((PyObject *)array), .node = hgpy_node_retain(array->node), .born = array->born};
    array->born = t->id;
  }
  mark(t, t->id);
  innermost = t;
  hgpy_trace_now = t->id;
  hgpy_examples_now |= examples;
  hgpy_tracing++;
  return t->id;
}

/* An array may be passed twice: the first entry has its original value. */
static void give_back(given *list, Py_ssize_t count) {
  while (count-- > 0) {
    hgpy_array *array = (hgpy_array *)list[count].array;
    if (array->node != list[count].node) hgpy_array_put(list[count].array, hgpy_node_retain(list[count].node));
    array->born = list[count].born;
    hgpy_node_release(list[count].node);
    Py_DECREF(list[count].array);
  }
  PyMem_Free(list);
}

/* False: there is no such trace. Threads may end theirs in any order. */
static bool end(uint64_t id) {
  trace **at = &innermost;
  while (*at != NULL && (*at)->id != id) at = &(*at)->outer;
  trace *t = *at;
  if (t == NULL) return false;
  *at = t->outer;
  hgpy_trace_now = innermost != NULL ? innermost->id : 0;
  hgpy_tracing--;
  hgpy_examples_now &= ~t->examples;
  mark(t, 0);
  give_back(t->given, t->given_count);
  Py_DECREF(t->leaves);
  PyMem_Free(t);
  return true;
}

/* begin_trace(by, given): records gradients from now on by the leaves, new arrays of the same values as `by`, in a
 * function that is passed the arrays of a nest, too. Returns (the trace's number, the leaves, new arrays for the
 * function that have the leaves as gradients): a function may assign to its arguments. */
PyObject *hgpy_begin_trace(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 2 || !PyList_Check(values[0]))
    return PyErr_Format(PyExc_TypeError, "begin_trace takes a list of Arrays, and a nest of them");
  PyObject *leaves = of_each(values[0], alias), *result = NULL;
  PyObject *given_arrays = leaves != NULL ? hgpy_arrays_in(values[1], false) : NULL;
  uint64_t id = given_arrays != NULL ? begin(leaves, given_arrays, 0) : 0;
  PyObject *number = id != 0 ? PyLong_FromUnsignedLongLong(id) : NULL;
  PyObject *twins = number != NULL ? of_each(leaves, hgpy_array_twin) : NULL;
  if (twins != NULL) result = PyTuple_Pack(3, number, leaves, twins);
  if (result == NULL && id != 0) end(id);
  Py_XDECREF(leaves), Py_XDECREF(given_arrays), Py_XDECREF(number), Py_XDECREF(twins);
  return result;
}

uint64_t hgpy_begin_own(PyObject *nest, uint32_t examples) {
  PyObject *leaves = PyTuple_New(0), *given_arrays = leaves != NULL ? hgpy_arrays_in(nest, false) : NULL;
  uint64_t id = given_arrays != NULL ? begin(leaves, given_arrays, examples) : 0;
  Py_XDECREF(leaves), Py_XDECREF(given_arrays);
  return id;
}

/* end_trace(number) */
PyObject *hgpy_end_trace(PyObject *module, PyObject *number) {
  uint64_t id = PyLong_AsUnsignedLongLong(number);
  (void)module;
  if (PyErr_Occurred()) return NULL;
  return end(id) ? Py_NewRef(Py_None) : PyErr_Format(PyExc_ValueError, "there is no such trace");
}

/* ---- what depends on the leaves ---------------------------------------------------------------------------------- */

/* 1 if gradients flow through it to its inputs. */
static bool passes_on(const hgpy_node *node) {
  bool is_stop = node->input_count > 0 && node->row == HGPY_ROW_stop_gradient;
  if (is_stop && (node->kind == HGPY_CALL || node->kind == HGPY_DATA)) return false;
  if (node->kind == HGPY_MANY || node->kind == HGPY_GRADIENT || node->kind == HGPY_TRANSFORM) return true;
  return hgpy_type_is_float(node->tensor.type);
}

int hgpy_depends(hgpy_node *node, uint64_t after) { return hgpy_depends_beside(&node, 1, NULL, 0, after); }

int hgpy_depends_beside(hgpy_node *const *nodes, uint32_t count, hgpy_node *const *ends, uint32_t end_count,
                        uint64_t after) {
  if (hgpy_trace_now <= after) return 0;
  hgpy_list waiting;
  hgpy_list_begin(&waiting);
  uint32_t epoch = hgpy_next_epoch();
  int result = 0;
  for (uint32_t i = 0; i < end_count; i++) ends[i]->epoch = epoch;
  for (uint32_t i = 0; result == 0 && i < count; i++) result = hgpy_list_add(&waiting, nodes[i]) ? 0 : -1;
  while (result == 0 && waiting.count > 0) {
    hgpy_node *next = waiting.nodes[--waiting.count];
    if (next->epoch == epoch || !passes_on(next)) continue;
    next->epoch = epoch;
    if (next->trace > after) result = 1;
    for (uint32_t i = 0; result == 0 && i < next->input_count; i++)
      if (next->inputs[i] != NULL && !hgpy_list_add(&waiting, next->inputs[i])) result = -1;
  }
  hgpy_list_end(&waiting);
  return result;
}

/* ---- assignment -------------------------------------------------------------------------------------------------- */

/* An array from outside vmap cannot have a value for each example. */
static bool is_for_all(PyObject *self, const hgpy_node *value) {
  for (const trace *t = innermost; t != NULL && t->id > ((const hgpy_array *)self)->born; t = t->outer)
    if ((t->examples & value->examples) != 0) return false;
  return true;
}

bool hgpy_may_assign(PyObject *self, hgpy_node *value) {
  if (!is_for_all(self, value))
    return PyErr_SetString(PyExc_ValueError,
                           "vmap: a value that is another one for each example is assigned to an array from outside "
                           "the function: return it instead, or make the array inside"),
           false;
  int depends = hgpy_depends(value, ((const hgpy_array *)self)->born);
  if (depends > 0)
    PyErr_SetString(
        PyExc_ValueError,
        "a value that depends on what the gradient is by is assigned to an array from outside the function, "
        "which would keep it: return it instead, make the array inside, or assign hologram.stop_gradient(x)");
  return depends == 0;
}

bool hgpy_is_recorded(PyObject *self) {
  const trace *outermost = innermost;
  while (outermost != NULL && outermost->outer != NULL) outermost = outermost->outer;
  return outermost != NULL && ((const hgpy_array *)self)->born >= outermost->id;
}
