/* objects.c - arrays as Python objects: copies, pickles, text, and operands beside NumPy arrays and lists. What is
 * rarely used is written in Python, in hologram/_objects.py, _methods.py and the file of the function. */
#include "hgpy.h"

/* file.function(self, *arguments, **names) */
static PyObject *by_python(const char *file, const char *function, PyObject *self, PyObject *arguments,
                           PyObject *names) {
  PyObject *module = PyImport_ImportModule(file), *own = PyTuple_Pack(1, self);
  PyObject *call = module != NULL ? PyObject_GetAttrString(module, function) : NULL;
  PyObject *all = own != NULL && call != NULL ? PySequence_Concat(own, arguments) : NULL;
  PyObject *result = all != NULL ? PyObject_Call(call, all, names) : NULL;
  Py_XDECREF(module), Py_XDECREF(own), Py_XDECREF(call), Py_XDECREF(all);
  return result;
}

#define IN_PYTHON(file, name)                                                         \
  PyObject *hgpy_array_##name(PyObject *self, PyObject *arguments, PyObject *names) { \
    return by_python("hologram." #file, #name, self, arguments, names);               \
  }
IN_PYTHON(_objects, copied)
IN_PYTHON(_objects, reduced)
IN_PYTHON(_objects, formatted)
IN_PYTHON(_objects, ufunc)
IN_PYTHON(_methods, flatten)
IN_PYTHON(_methods, ravel)
IN_PYTHON(_methods, copy)
IN_PYTHON(_methods, repeat)
IN_PYTHON(_methods, sort)
IN_PYTHON(_methods, argsort)
IN_PYTHON(_methods, cumsum)
IN_PYTHON(_methods, listed)
IN_PYTHON(_products, diagonal)
IN_PYTHON(_products, trace)
IN_PYTHON(_products, diag)
IN_PYTHON(_products, inner)
IN_PYTHON(_products, kron)
IN_PYTHON(_calculus, diff)
IN_PYTHON(_calculus, cov)
IN_PYTHON(_calculus, corrcoef)

static bool is_constant(PyObject *value) {
  PyTypeObject *type = Py_TYPE(value);
  return value == Py_None || type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
         type == &PyUnicode_Type;
}

static bool are_constants(PyObject *value) {
  if (Py_TYPE(value) != &PyTuple_Type) return is_constant(value);
  for (Py_ssize_t i = 0; i < PyTuple_Size(value); i++)
    if (!is_constant(PyTuple_GetItem(value, i))) return false;
  return true;
}

static PyObject *kept_of_each(PyObject *values) {
  bool is_list = PyList_Check(values);
  Py_ssize_t count = is_list ? PyList_Size(values) : PyTuple_Size(values);
  PyObject *all = is_list ? PyList_New(count) : PyTuple_New(count);
  for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
    PyObject *value = is_list ? PyList_GetItem(values, i) : PyTuple_GetItem(values, i);
    PyObject *own = value != NULL ? hgpy_kept(NULL, value) : NULL;
    if (own == NULL || (is_list ? PyList_SetItem(all, i, own) : PyTuple_SetItem(all, i, own)) < 0) Py_CLEAR(all);
  }
  return all;
}

PyObject *hgpy_kept(PyObject *module, PyObject *value) {
  PyObject *own = NULL;
  (void)module;
  if (are_constants(value)) return Py_NewRef(value);
  if (PyList_Check(value) || PyTuple_Check(value)) {
    if (Py_EnterRecursiveCall(" in an argument")) return NULL;
    own = kept_of_each(value);
    Py_LeaveRecursiveCall();
    return own;
  }
  if (!hgpy_is_array(value) && !PyObject_HasAttrString(value, "__array_interface__")) return Py_NewRef(value);
  PyObject *copy = PyImport_ImportModule("copy");
  if (copy != NULL) own = PyObject_CallMethod(copy, "copy", "(O)", value);
  Py_XDECREF(copy);
  return own;
}

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
