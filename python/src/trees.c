/* trees.c - nests of arrays: lists, tuples and dicts of them, as gradients, jit and optimisers take and return. */
#include "hgpy.h"

static bool collect(PyObject *tree, PyObject *into, bool is_strict);

static bool collect_dict(PyObject *tree, PyObject *into, bool is_strict) {
  Py_ssize_t at = 0;
  PyObject *key, *value;
  bool is_good = true;
  while (is_good && PyDict_Next(tree, &at, &key, &value)) is_good = collect(value, into, is_strict);
  return is_good;
}

static bool collect_items(PyObject *tree, PyObject *into, bool is_strict) {
  bool is_list = PyList_Check(tree), is_good = true;
  for (Py_ssize_t i = 0; is_good && i < (is_list ? PyList_Size(tree) : PyTuple_Size(tree)); i++)
    is_good = collect(is_list ? PyList_GetItem(tree, i) : PyTuple_GetItem(tree, i), into, is_strict);
  return is_good;
}

/* Appends the arrays of the nest; other objects are skipped or, if is_strict, raise TypeError. */
static bool collect(PyObject *tree, PyObject *into, bool is_strict) {
  if (hgpy_is_array(tree)) return PyList_Append(into, tree) == 0;
  bool is_dict = PyDict_Check(tree), is_nest = is_dict || PyList_Check(tree) || PyTuple_Check(tree);
  if (!is_nest && is_strict) {
    PyObject *name = PyType_GetName(Py_TYPE(tree));
    if (name != NULL)
      PyErr_Format(PyExc_TypeError, "arrays, or lists, tuples and dicts of them are expected, not %U", name);
    Py_XDECREF(name);
  }
  if (!is_nest) return !is_strict;
  if (Py_EnterRecursiveCall(" in a nest of arrays")) return false;
  bool is_good = is_dict ? collect_dict(tree, into, is_strict) : collect_items(tree, into, is_strict);
  Py_LeaveRecursiveCall();
  return is_good;
}

PyObject *hgpy_arrays_in(PyObject *nest, bool is_strict) {
  PyObject *into = PyList_New(0);
  if (into != NULL && collect(nest, into, is_strict)) return into;
  Py_XDECREF(into);
  return NULL;
}

PyObject *hgpy_arrays_of(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "arrays_of takes a nest, and whether all in it are arrays");
  return hgpy_arrays_in(values[0], values[1] == Py_True);
}

/* Appends for each array of the nest whether a layer keeps statistics in it: it has no floats, or is below a key that
 * begins with running_. */
static bool mark(PyObject *tree, bool is_below, PyObject *into) {
  if (hgpy_is_array(tree)) {
    bool is_kept = is_below || !hgpy_type_is_float(hgpy_array_node(tree)->tensor.type);
    return PyList_Append(into, is_kept ? Py_True : Py_False) == 0;
  }
  bool is_dict = PyDict_Check(tree), is_list = PyList_Check(tree), is_good = true;
  if (!is_dict && !is_list && !PyTuple_Check(tree)) return true;
  if (Py_EnterRecursiveCall(" in a nest of arrays")) return false;
  Py_ssize_t at = 0;
  PyObject *key, *value;
  while (is_good && is_dict && PyDict_Next(tree, &at, &key, &value)) {
    const char *name = PyUnicode_Check(key) ? PyUnicode_AsUTF8AndSize(key, NULL) : "";
    is_good = name != NULL && mark(value, is_below || strncmp(name, "running_", 8) == 0, into);
  }
  for (; is_good && !is_dict && at < (is_list ? PyList_Size(tree) : PyTuple_Size(tree)); at++)
    is_good = mark(is_list ? PyList_GetItem(tree, at) : PyTuple_GetItem(tree, at), is_below, into);
  Py_LeaveRecursiveCall();
  return is_good;
}

PyObject *hgpy_statistics_of(PyObject *module, PyObject *tree) {
  (void)module;
  PyObject *into = PyList_New(0);
  if (into != NULL && mark(tree, false, into)) return into;
  Py_XDECREF(into);
  return NULL;
}

/* Objects nested too deeply for an array are refused elsewhere. */
static bool has_numbers_only(PyObject *tree, int depth) {
  bool is_list = PyList_Check(tree);
  if (!is_list && !PyTuple_Check(tree)) return hgpy_is_number(tree);
  bool is_good = depth <= HG_MAX_RANK;
  for (Py_ssize_t i = 0; is_good && i < (is_list ? PyList_Size(tree) : PyTuple_Size(tree)); i++)
    is_good = has_numbers_only(is_list ? PyList_GetItem(tree, i) : PyTuple_GetItem(tree, i), depth + 1);
  return is_good;
}

PyObject *hgpy_has_numbers_only(PyObject *module, PyObject *tree) {
  (void)module;
  return PyBool_FromLong(has_numbers_only(tree, 0));
}

static PyObject *rebuild(PyObject *tree, PyObject *values);

static PyObject *rebuild_dict(PyObject *tree, PyObject *values) {
  Py_ssize_t at = 0;
  PyObject *key, *value, *made = PyDict_New();
  while (made != NULL && PyDict_Next(tree, &at, &key, &value)) {
    PyObject *part = rebuild(value, values);
    if (part == NULL || PyDict_SetItem(made, key, part) != 0) Py_CLEAR(made);
    Py_XDECREF(part);
  }
  return made;
}

/* A named tuple is called with its fields; other subclasses of list and tuple with a list. */
static PyObject *of_type(PyObject *tree, PyObject *parts) {
  if (PyList_CheckExact(tree)) return Py_NewRef(parts);
  PyObject *type = (PyObject *)Py_TYPE(tree);
  if (PyTuple_Check(tree) && !PyTuple_CheckExact(tree) && PyObject_HasAttrString(tree, "_fields")) {
    PyObject *fields = PyList_AsTuple(parts), *made = fields != NULL ? PyObject_CallObject(type, fields) : NULL;
    Py_XDECREF(fields);
    return made;
  }
  return PyTuple_CheckExact(tree) ? PyList_AsTuple(parts) : PyObject_CallFunctionObjArgs(type, parts, NULL);
}

/* The same nest with the next values in place of its arrays; other objects stay. */
static PyObject *rebuild(PyObject *tree, PyObject *values) {
  if (hgpy_is_array(tree)) {
    PyObject *value = PyIter_Next(values);
    if (value == NULL && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "there are fewer values than arrays");
    return value;
  }
  if (PyDict_Check(tree)) return rebuild_dict(tree, values);
  bool is_list = PyList_Check(tree);
  if (!is_list && !PyTuple_Check(tree)) return Py_NewRef(tree);
  PyObject *parts = PyList_New(0), *made = NULL;
  bool is_good = parts != NULL;
  for (Py_ssize_t i = 0; is_good && i < (is_list ? PyList_Size(tree) : PyTuple_Size(tree)); i++) {
    PyObject *part = rebuild(is_list ? PyList_GetItem(tree, i) : PyTuple_GetItem(tree, i), values);
    is_good = part != NULL && PyList_Append(parts, part) == 0;
    Py_XDECREF(part);
  }
  if (is_good) made = of_type(tree, parts);
  Py_XDECREF(parts);
  return made;
}

PyObject *hgpy_rebuild(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 2 || !PyIter_Check(values[1]))
    return PyErr_Format(PyExc_TypeError, "rebuild takes a nest and an iterator");
  return rebuild(values[0], values[1]);
}

/* The nodes of a list of Arrays, which must not change meanwhile; NULL: raised. */
static hgpy_node **nodes_of(PyObject *list, size_t *count) {
  *count = PyList_Check(list) ? (size_t)PyList_Size(list) : 0;
  hgpy_node **nodes = PyMem_Malloc((*count + 1) * sizeof(hgpy_node *));
  if (nodes == NULL) return (hgpy_node **)PyErr_NoMemory();
  bool is_good = PyList_Check(list);
  for (size_t i = 0; is_good && i < *count; i++) {
    PyObject *array = PyList_GetItem(list, (Py_ssize_t)i);
    is_good = hgpy_is_array(array);
    if (is_good) nodes[i] = hgpy_array_node(array);
  }
  if (is_good) return nodes;
  PyErr_SetString(PyExc_TypeError, "a list of Arrays is expected");
  PyMem_Free(nodes);
  return NULL;
}

PyObject *hgpy_have_one_form(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  size_t a_count = 0, b_count = 0;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "have_one_form takes two lists");
  hgpy_node **a = nodes_of(values[0], &a_count), **b = a != NULL ? nodes_of(values[1], &b_count) : NULL;
  bool is_good = b != NULL, is_same = a_count == b_count;
  for (size_t i = 0; is_good && is_same && i < a_count; i++) {
    const hg_tensor *x = &a[i]->tensor, *y = &b[i]->tensor;
    is_same = x->type == y->type && x->rank == y->rank && memcmp(x->shape, y->shape, x->rank * sizeof *x->shape) == 0;
  }
  PyMem_Free(a);
  PyMem_Free(b);
  return is_good ? PyBool_FromLong(is_same) : NULL;
}

PyObject *hgpy_compute_onto(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  size_t counts[3] = {0};
  hgpy_node **nodes[3] = {NULL};
  if (count != 3) return PyErr_Format(PyExc_TypeError, "compute_onto takes three lists");
  bool is_good = true;
  for (int i = 0; is_good && i < 3; i++) is_good = (nodes[i] = nodes_of(values[i], &counts[i])) != NULL;
  if (is_good && counts[1] != counts[2]) {
    PyErr_SetString(PyExc_ValueError, "as many arrays are given as results take their places");
    is_good = false;
  }
  hgpy_pair *pairs = is_good ? PyMem_Malloc((counts[1] + 1) * sizeof *pairs) : NULL;
  if (is_good && pairs == NULL) PyErr_NoMemory();
  is_good = pairs != NULL;
  for (size_t i = 0; is_good && i < counts[1]; i++) pairs[i] = (hgpy_pair){.given = nodes[1][i], .result = nodes[2][i]};
  size_t held = is_good ? counts[1] : 0; /* what other threads assign meanwhile is other nodes */
  for (size_t i = 0; i < held; i++) hgpy_node_retain(pairs[i].given), hgpy_node_retain(pairs[i].result);
  is_good = is_good && hgpy_evaluate_onto(nodes[0], (uint32_t)counts[0], pairs, (uint32_t)counts[1]);
  for (size_t i = 0; i < held; i++) hgpy_node_release(pairs[i].given), hgpy_node_release(pairs[i].result);
  for (int i = 0; i < 3; i++) PyMem_Free(nodes[i]);
  PyMem_Free(pairs);
  return is_good ? Py_NewRef(Py_None) : NULL;
}
