/* trace.c - gradients that are being recorded: what they are by, and which arrays belong to the function that is
 * differentiated.
 *
 * An array that was made since a trace began is its function's own, and so is one that was given to it; any other is
 * captured. What is assigned to an own array is part of what is recorded. A captured array lives on behind the trace,
 * so it cannot be given a value that depends on what the gradient is by. */
#include "graph.h"

/* An array that was given to the function: it has its value again when the trace ends. */
typedef struct given {
  PyObject *array;
  hgpy_node *node;
  uint64_t born;
} given;

typedef struct trace {
  struct trace *outer;
  uint64_t id;
  PyObject *leaves; /* a list of Arrays */
  given *given;
  Py_ssize_t given_count;
} trace;

static trace *innermost;
uint64_t hgpy_trace_now;

/* ---- beginning and ending ---------------------------------------------------------------------------------------- */

static void mark(const trace *t, uint64_t id) {
  for (Py_ssize_t i = 0; i < PyList_Size(t->leaves); i++)
    hgpy_array_node(PyList_GetItem(t->leaves, i))->trace = id;
}

static bool are_arrays(PyObject *list) {
  bool is_good = PyList_Check(list);
  for (Py_ssize_t i = 0; is_good && i < PyList_Size(list); i++) is_good = hgpy_is_array(PyList_GetItem(list, i));
  if (!is_good) PyErr_SetString(PyExc_TypeError, "a list of Arrays is expected");
  return is_good;
}

/* begin_trace(leaves, given): what is recorded from now on is for gradients by the leaves, in a function that is given
 * these arrays, too. Returns the trace's number. */
PyObject *hgpy_begin_trace(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  static uint64_t last;
  (void)module;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "begin_trace takes two lists");
  if (!are_arrays(values[0]) || !are_arrays(values[1])) return NULL;
  Py_ssize_t given_count = PyList_Size(values[1]);
  trace *t = PyMem_Malloc(sizeof *t);
  given *list = PyMem_Malloc((size_t)(given_count + 1) * sizeof *list);
  if (t == NULL || list == NULL) {
    PyMem_Free(t);
    PyMem_Free(list);
    return PyErr_NoMemory();
  }
  *t = (trace){.outer = innermost, .id = ++last, .leaves = Py_NewRef(values[0]), .given = list,
               .given_count = given_count};
  for (Py_ssize_t i = 0; i < given_count; i++) {
    hgpy_array *array = (hgpy_array *)PyList_GetItem(values[1], i);
    list[i] =
        (given){.array = Py_NewRef((PyObject *)array), .node = hgpy_node_retain(array->node), .born = array->born};
    array->born = t->id;
  }
  mark(t, t->id);
  innermost = t;
  hgpy_trace_now = t->id;
  hgpy_tracing++;
  return PyLong_FromUnsignedLongLong(t->id);
}

/* An array may be given twice: the first entry has its value as it was. */
static void give_back(given *list, Py_ssize_t count) {
  while (count-- > 0) {
    hgpy_array *array = (hgpy_array *)list[count].array;
    if (array->node != list[count].node) hgpy_array_set(list[count].array, hgpy_node_retain(list[count].node));
    array->born = list[count].born;
    hgpy_node_release(list[count].node);
    Py_DECREF(list[count].array);
  }
  PyMem_Free(list);
}

/* end_trace(number): threads may end theirs in another order than they began them. */
PyObject *hgpy_end_trace(PyObject *module, PyObject *number) {
  uint64_t id = PyLong_AsUnsignedLongLong(number);
  trace **at = &innermost;
  (void)module;
  if (PyErr_Occurred()) return NULL;
  while (*at != NULL && (*at)->id != id) at = &(*at)->outer;
  trace *t = *at;
  if (t == NULL) return PyErr_Format(PyExc_ValueError, "there is no such trace");
  *at = t->outer;
  hgpy_trace_now = innermost != NULL ? innermost->id : 0;
  hgpy_tracing--;
  mark(t, 0);
  give_back(t->given, t->given_count);
  Py_DECREF(t->leaves);
  PyMem_Free(t);
  Py_RETURN_NONE;
}

/* ---- what depends on the leaves ---------------------------------------------------------------------------------- */

/* Gradients flow through it to its inputs. */
static bool passes_on(const hgpy_node *node) {
  bool is_stop = node->input_count > 0 && node->row == HGPY_ROW_stop_gradient;
  if (is_stop && (node->kind == HGPY_CALL || node->kind == HGPY_DATA)) return false;
  if (node->kind == HGPY_MANY || node->kind == HGPY_GRADIENT) return true;
  return hgpy_type_is_float(node->tensor.type);
}

int hgpy_depends(hgpy_node *node, uint64_t after) {
  if (hgpy_trace_now <= after) return 0;
  hgpy_list waiting;
  hgpy_list_begin(&waiting);
  uint32_t epoch = hgpy_next_epoch();
  int result = hgpy_list_add(&waiting, node) ? 0 : -1;
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

bool hgpy_may_assign(PyObject *self, hgpy_node *value) {
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
