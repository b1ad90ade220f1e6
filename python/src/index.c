/* index.c - x[...]: numbers, slices, None and ... make views; an array of integers takes rows; hologram._index handles
 * other arrays, masks and lists. */
#include "keys.h"

/* ---- keys with arrays -------------------------------------------------------------------------------------------- */

/* 1 if a part of a key is an array, a mask or a list, rather than a number, slice, None or ... */
static bool is_places(PyObject *part) {
  if (PyLong_CheckExact(part) || PySlice_Check(part) || part == Py_None || part == Py_Ellipsis) return false;
  if (hgpy_is_array(part))
    return hgpy_array_node(part)->tensor.rank > 0 || hgpy_array_node(part)->tensor.type == ATLAS_bool ||
           hgpy_array_node(part)->examples != 0;
  if (PyBool_Check(part) || PyList_Check(part) || PyTuple_Check(part)) return true;
  if (PyLong_Check(part)) return false;
  PyObject *rank = PyObject_GetAttrString(part, "ndim"), *number = NULL;
  PyErr_Clear();
  bool is_one = rank == NULL || (PyLong_Check(rank) && PyLong_AsLong(rank) == 0); /* a 0-d array of NumPy or PyTorch */
  if (is_one) number = PyNumber_Index(part);
  bool is_number = number != NULL;
  PyErr_Clear();
  Py_XDECREF(rank);
  Py_XDECREF(number);
  return !is_number;
}

bool hgpy_is_by_places(PyObject *key) {
  if (!PyTuple_Check(key)) return is_places(key);
  for (Py_ssize_t i = 0; i < PyTuple_Size(key); i++)
    if (is_places(PyTuple_GetItem(key, i))) return true;
  return false;
}

PyObject *hgpy_key_is_by_places(PyObject *module, PyObject *key) {
  (void)module;
  return PyBool_FromLong(hgpy_is_by_places(key));
}

/* ---- a key's work as one computation ----------------------------------------------------------------------------- */

/* Computes the array if everything is eager: it was recorded with eagerness off. Takes the array; NULL: raised, or it
 * was NULL. */
PyObject *hgpy_settled(PyObject *array) {
  if (array == NULL || !hgpy_is_eager || hgpy_tracing > 0) return array;
  hgpy_node *node = hgpy_array_node(array);
  if (hgpy_evaluate(&node, 1)) return array;
  Py_DECREF(array);
  return NULL;
}

PyObject *hgpy_settle_array(PyObject *module, PyObject *array) {
  (void)module;
  if (!hgpy_is_array(array)) return PyErr_Format(PyExc_TypeError, "settled takes an Array");
  return hgpy_settled(Py_NewRef(array));
}

/* ---- x[...] ------------------------------------------------------------------------------------------------------ */

static PyObject *take_in_python(PyObject *self, PyObject *key) {
  PyObject *module = PyImport_ImportModule("hologram._index");
  bool was_eager = hgpy_is_eager;
  hgpy_is_eager = false; /* one computation, whose faults know the key */
  PyObject *result = module != NULL ? PyObject_CallMethod(module, "take", "OO", self, key) : NULL;
  hgpy_is_eager = was_eager;
  Py_XDECREF(module);
  return hgpy_settled(result);
}

/* Takes rows along the first axis; negative numbers count from the end. */
static PyObject *take_by(PyObject *self, PyObject *index) {
  enum { WRAP = 1 };
  hgpy_node *inputs[2] = {hgpy_array_node(self), hgpy_array_node(index)};
  hg_argument arguments[2] = {{.count = 1, .integers = {0}}, {.count = 1, .integers = {WRAP}}};
  return hgpy_array_of(hgpy_record(HGPY_ROW_take, inputs, 2, arguments, 2));
}

static bool is_index_of_rows(PyObject *self, PyObject *key) {
  const hg_tensor *tensor = &hgpy_array_node(self)->tensor;
  return hgpy_is_array(key) && hgpy_type_is_integer(hgpy_array_node(key)->tensor.type) &&
         hgpy_array_node(key)->tensor.rank > 0 && tensor->rank > 0 && tensor->rank < HG_MAX_RANK &&
         tensor->shape[0] > 0;
}

PyObject *hgpy_get_item(PyObject *self, PyObject *key) {
  selection s;
  if (is_index_of_rows(self, key)) return take_by(self, key);
  if (hgpy_is_by_places(key)) return take_in_python(self, key);
  hgpy_node *node = hgpy_node_retain(hgpy_array_node(self)); /* __index__ of a key may assign to the array */
  PyObject *result =
      hgpy_read_selection(&s, &node->tensor, key) ? hgpy_array_of(hgpy_select_from(node, &s)) : NULL;
  hgpy_node_release(node);
  return result;
}
