/* index.c - x[...]: numbers, slices, None and ... are views; an array of integers takes elements along an axis, one of
 * bool asks element by element. */
#include "keys.h"

/* By hologram._index, which knows how masks become numbers, and several arrays places. */
static PyObject *take_in_python(const char *function, PyObject *self, PyObject *key) {
  PyObject *module = PyImport_ImportModule("hologram._index");
  PyObject *result = module != NULL ? PyObject_CallMethod(module, function, "OO", self, key) : NULL;
  Py_XDECREF(module);
  return result;
}

static bool is_index_array(PyObject *object) {
  return hgpy_is_array(object) &&
         (hgpy_array_node(object)->tensor.rank > 0 || hgpy_array_node(object)->tensor.type == ATLAS_bool);
}

static bool has_arrays(PyObject *parts) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(parts); i++)
    if (is_index_array(PyTuple_GetItem(parts, i))) return true;
  return false;
}

static PyObject *take_by(PyObject *self, PyObject *index) {
  hgpy_node *inputs[2] = {hgpy_array_node(self), hgpy_array_node(index)};
  if (!hgpy_type_is_integer(inputs[1]->tensor.type)) return take_in_python("take_mask", self, index);
  if (inputs[0]->tensor.rank == 0)
    return PyErr_Format(PyExc_IndexError, "an array without axes cannot be indexed by an array");
  bool is_signed = inputs[1]->tensor.type <= ATLAS_i64;
  hg_argument arguments[2] = {{.count = 1, .integers = {0}}, {.count = 1, .integers = {0}}};
  if (!is_signed) return hgpy_array_of(hgpy_record(HGPY_ROW_take, inputs, 2, arguments, 2));
  /* negative numbers count from the end */
  hgpy_node *zero = hgpy_node_integer(inputs[1]->tensor.type, 0);
  hgpy_node *size = hgpy_node_integer(inputs[1]->tensor.type, (int64_t)inputs[0]->tensor.shape[0]);
  hgpy_node *low = zero != NULL ? hgpy_record(HGPY_ROW_less, (hgpy_node *[]){inputs[1], zero}, 2, NULL, 0) : NULL;
  hgpy_node *sum =
      low != NULL && size != NULL ? hgpy_record(HGPY_ROW_add, (hgpy_node *[]){inputs[1], size}, 2, NULL, 0) : NULL;
  hgpy_node *index_node =
      sum != NULL ? hgpy_record(HGPY_ROW_where, (hgpy_node *[]){low, sum, inputs[1]}, 3, NULL, 0) : NULL;
  PyObject *result = NULL;
  if (index_node != NULL) {
    inputs[1] = index_node;
    result = hgpy_array_of(hgpy_record(HGPY_ROW_take, inputs, 2, arguments, 2));
  }
  hgpy_node_release(zero), hgpy_node_release(size), hgpy_node_release(low), hgpy_node_release(sum),
      hgpy_node_release(index_node);
  return result;
}

PyObject *hgpy_get_item(PyObject *self, PyObject *key) {
  selection s;
  if (is_index_array(key)) return take_by(self, key);
  if (PyTuple_Check(key) && has_arrays(key)) return take_in_python("take_places", self, key);
  hgpy_node *node = hgpy_array_node(self);
  if (!hgpy_read_selection(&s, &node->tensor, key)) return NULL;
  return hgpy_array_of(hgpy_select_from(node, &s));
}
