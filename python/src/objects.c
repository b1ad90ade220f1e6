/* objects.c - arrays as ordinary objects of Python: copies, pickles, text, and beside NumPy's arrays and lists. What is
 * seldom asked for is written in Python, in hologram/_objects.py. */
#include "hgpy.h"

/* function(self, *arguments, **names) */
static PyObject *by_python(const char *function, PyObject *self, PyObject *arguments, PyObject *names) {
  PyObject *module = PyImport_ImportModule("hologram._objects"), *own = PyTuple_Pack(1, self);
  PyObject *call = module != NULL ? PyObject_GetAttrString(module, function) : NULL;
  PyObject *all = own != NULL && call != NULL ? PySequence_Concat(own, arguments) : NULL;
  PyObject *result = all != NULL ? PyObject_Call(call, all, names) : NULL;
  Py_XDECREF(module), Py_XDECREF(own), Py_XDECREF(call), Py_XDECREF(all);
  return result;
}

#define IN_PYTHON(name)                                                           \
  PyObject *hgpy_array_##name(PyObject *self, PyObject *arguments, PyObject *names) { \
    return by_python(#name, self, arguments, names);                              \
  }
IN_PYTHON(copied)
IN_PYTHON(reduced)
IN_PYTHON(formatted)
IN_PYTHON(ufunc)

PyObject *hgpy_array_from(PyObject *object, hgpy_device *device) {
  bool is_list = PyList_Check(object) || PyTuple_Check(object);
  if (!is_list && !PyObject_HasAttrString(object, "__array_interface__")) return NULL;
  PyObject *executor = device != NULL ? hgpy_executor_for(device) : Py_NewRef(Py_None);
  PyObject *names = executor != NULL ? Py_BuildValue("{s:N}", "device", executor) : NULL;
  PyObject *module = names != NULL ? PyImport_ImportModule("hologram._create") : NULL, *array = NULL;
  PyObject *function = module != NULL ? PyObject_GetAttrString(module, "array") : NULL;
  PyObject *values = function != NULL ? PyTuple_Pack(1, object) : NULL;
  if (values != NULL) array = PyObject_Call(function, values, names);
  Py_XDECREF(names), Py_XDECREF(module), Py_XDECREF(function), Py_XDECREF(values);
  return array;
}
