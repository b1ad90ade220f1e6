/* module.c - hologram._core: adds all parts, and functions that belong to none of them. */
#include "hgpy.h"

PyTypeObject *hgpy_add_type(PyObject *module, PyType_Spec *spec) {
  PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
  if (type != NULL && PyModule_AddType(module, type) < 0) Py_CLEAR(type);
  return type;
}

void hgpy_free_object(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* ---- functions --------------------------------------------------------------------------------------------------- */

static hgpy_device *device_or_default(PyObject *executor) {
  return executor != NULL && executor != Py_None ? hgpy_device_of(executor) : hgpy_default_device();
}

/* share(object, executor, may_copy): see asarray in hologram/_create.py */
static PyObject *share(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 3) return PyErr_Format(PyExc_TypeError, "share takes an object, an executor and whether to copy");
  hgpy_device *device = device_or_default(values[1]);
  long may_copy = PyLong_AsLong(values[2]);
  if (device == NULL || PyErr_Occurred()) return NULL;
  return hgpy_array_of(hgpy_share(values[0], device, (int)may_copy));
}

/* asarray(object): the fast path for objects with the buffer protocol; the other paths are in Python. */
static PyObject *asarray(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *names) {
  (void)module;
  if (count == 1 && names == NULL) {
    if (hgpy_is_array(values[0])) return Py_NewRef(values[0]);
    hgpy_device *device = hgpy_default_device();
    if (device == NULL) return NULL;
    if (PyObject_CheckBuffer(values[0])) {
      hgpy_node *node = hgpy_share(values[0], device, 1);
      if (node != NULL) return hgpy_array_of(node);
      if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) return NULL;
      PyErr_Clear();
    }
  }
  PyObject *create = PyImport_ImportModule("hologram._create"), *tuple = NULL, *dictionary = NULL, *result = NULL;
  PyObject *function = create != NULL ? PyObject_GetAttrString(create, "asarray") : NULL;
  if (function != NULL) tuple = PyTuple_New(count);
  for (Py_ssize_t i = 0; tuple != NULL && i < count; i++)
    if (PyTuple_SetItem(tuple, i, Py_NewRef(values[i])) < 0) Py_CLEAR(tuple);
  if (tuple != NULL) dictionary = PyDict_New();
  for (Py_ssize_t i = 0; dictionary != NULL && names != NULL && i < PyTuple_Size(names); i++)
    if (PyDict_SetItem(dictionary, PyTuple_GetItem(names, i), values[count + i]) < 0) Py_CLEAR(dictionary);
  if (dictionary != NULL) result = PyObject_Call(function, tuple, dictionary);
  Py_XDECREF(create), Py_XDECREF(function), Py_XDECREF(tuple), Py_XDECREF(dictionary);
  return result;
}

PyObject *hgpy_asarray(PyObject *object) { return asarray(NULL, &object, 1, NULL); }

static PyObject *import_by_table(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  bool is_given = count > 1 && values[1] != Py_None;
  hgpy_device *device = is_given ? hgpy_device_of(values[1]) : NULL;
  if (count < 1 || count > 2)
    return PyErr_Format(PyExc_TypeError, "import_by_table takes an object and perhaps an executor");
  return is_given && device == NULL ? NULL : hgpy_import_by_table(values[0], device);
}

static PyObject *export_by_table(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  int is_own = count == 3 ? PyObject_IsTrue(values[2]) : -1;
  if (is_own >= 0 && hgpy_is_array(values[0]) && PyType_Check(values[1]))
    return hgpy_export_by_table(values[0], (PyTypeObject *)values[1], is_own != 0);
  return PyErr_Format(PyExc_TypeError, "export_by_table takes an Array, a type, and whether it shares nothing");
}

static PyObject *from_dlpack(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count < 1 || count > 2)
    return PyErr_Format(PyExc_TypeError, "from_dlpack takes an object and perhaps an executor");
  bool is_given = count == 2 && values[1] != Py_None;
  hgpy_device *device = is_given ? hgpy_device_of(values[1]) : NULL;
  return is_given && device == NULL ? NULL : hgpy_from_dlpack(values[0], device);
}

/* scalar(number, dtype) */
static PyObject *scalar(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  uint32_t type = count == 2 ? hgpy_type_from(values[1]) : (uint32_t)ATLAS_NONE;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "scalar takes a number and a type");
  if (type == ATLAS_NONE) return NULL;
  return hgpy_array_of(hgpy_number_node("the number", values[0], type));
}

/* compute(*arrays): computes all of them as one computation. */
static PyObject *compute(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  hgpy_node **nodes = PyMem_Malloc((size_t)(count + 1) * sizeof(hgpy_node *));
  (void)module;
  if (nodes == NULL) return PyErr_NoMemory();
  bool is_good = true;
  for (Py_ssize_t i = 0; is_good && i < count; i++) {
    is_good = hgpy_is_array(values[i]);
    if (is_good) nodes[i] = hgpy_array_node(values[i]);
    else PyErr_Format(PyExc_TypeError, "compute takes Arrays, not %R", (PyObject *)Py_TYPE(values[i]));
  }
  is_good = is_good && hgpy_evaluate(nodes, (uint32_t)count);
  PyMem_Free(nodes);
  return is_good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *report(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 2 || !hgpy_is_array(values[0]))
    return PyErr_Format(PyExc_TypeError, "report takes an Array and whether it is to be JSON");
  return hgpy_explain(hgpy_array_node(values[0]), PyObject_IsTrue(values[1]) == 1);
}

static PyObject *copy(PyObject *module, PyObject *array) {
  (void)module;
  if (!hgpy_is_array(array)) return PyErr_Format(PyExc_TypeError, "copy takes an Array");
  hgpy_node *node = hgpy_array_node(array);
  bool is_plain = node->kind == HGPY_SCALAR || (node->kind == HGPY_DATA && node->input_count == 0 && node->trace == 0);
  if (hgpy_tracing == 0 || is_plain) return hgpy_array_of(hgpy_copy(node));
  return hgpy_array_of(hgpy_same(node)); /* recorded */
}

static PyObject *own(PyObject *module, PyObject *array) {
  (void)module;
  if (!hgpy_is_array(array)) return PyErr_Format(PyExc_TypeError, "own takes an Array");
  return hgpy_array_of(hgpy_own(hgpy_array_node(array)));
}

static PyObject *set_eager(PyObject *module, PyObject *value) {
  bool was = hgpy_is_eager;
  int is_true = PyObject_IsTrue(value);
  (void)module;
  if (is_true < 0) return NULL;
  hgpy_is_eager = is_true != 0;
  return PyBool_FromLong(was);
}

/* gradients(value, cotangent or None, (wrt, ...), [beside, ...]): (value, gradient, ..., beside, ...) */
static PyObject *gradients(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count < 3 || !hgpy_is_array(values[0]) || !(values[1] == Py_None || hgpy_is_array(values[1])) ||
      !PyTuple_Check(values[2]) || (count == 4 && !PyList_Check(values[3])))
    return PyErr_Format(PyExc_TypeError, "gradients takes an Array, a cotangent or None, a tuple and a list of Arrays");
  Py_ssize_t own = PyTuple_Size(values[2]), wanted = own + (count == 4 ? PyList_Size(values[3]) : 0);
  hgpy_node *value = hgpy_array_node(values[0]);
  hgpy_node *cotangent = values[1] == Py_None ? NULL : hgpy_array_node(values[1]);
  if (cotangent == NULL && hg_tensor_count(&value->tensor) != 1)
    return PyErr_Format(PyExc_ValueError, "the gradient is of one number; the value has %llu elements",
                        (unsigned long long)hg_tensor_count(&value->tensor));
  hgpy_node **nodes = PyMem_Malloc((size_t)(2 * wanted + 2) * sizeof(hgpy_node *)), **results = nodes + wanted;
  PyObject *tuple = nodes != NULL ? PyTuple_New(wanted + 1) : PyErr_NoMemory();
  bool is_good = tuple != NULL;
  for (Py_ssize_t i = 0; is_good && i < wanted; i++) {
    PyObject *array = i < own ? PyTuple_GetItem(values[2], i) : PyList_GetItem(values[3], i - own);
    is_good = hgpy_is_array(array);
    if (is_good) nodes[i] = hgpy_array_node(array);
    else PyErr_Format(PyExc_TypeError, "gradients are by Arrays, not %R", array);
  }
  is_good = is_good && hgpy_record_gradients(value, cotangent, nodes, (uint32_t)own, (uint32_t)(wanted - own), results);
  for (Py_ssize_t i = 0; is_good && i <= wanted; i++) {
    PyObject *array = hgpy_array_of(results[i]);
    if (array == NULL || PyTuple_SetItem(tuple, i, array) < 0) Py_CLEAR(tuple);
    if (tuple == NULL) is_good = false;
  }
  PyMem_Free(nodes);
  if (!is_good) Py_CLEAR(tuple);
  return tuple;
}

/* twin(array): another array of the same value, through which gradients flow as through the first; assigning to one
 * does not change the other. */
static PyObject *twin(PyObject *module, PyObject *array) {
  (void)module;
  if (!hgpy_is_array(array)) return PyErr_Format(PyExc_TypeError, "twin takes an Array");
  return hgpy_array_twin(array);
}

/* is_of_examples(array): whether it has a value for each example of vmap. */
static PyObject *is_of_examples(PyObject *module, PyObject *array) {
  (void)module;
  return PyBool_FromLong(hgpy_is_array(array) && hgpy_array_node(array)->examples != 0);
}

static PyObject *is_tracing(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyBool_FromLong(hgpy_tracing > 0);
}

static PyObject *library_version(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyUnicode_FromString(hg_version());
}

#define FAST(function) ((PyCFunction)(void *)(function))

static PyMethodDef functions[] = {
    {"_share", FAST(share), METH_FASTCALL, NULL},
    {"asarray", FAST(asarray), METH_FASTCALL | METH_KEYWORDS,
     "asarray(object, /, dtype=None, *, device=None, copy=None)\n--\n\nAn Array of an object, without a copy where its "
     "memory can be shared.\n\n"
     "object: an Array, a Buffer, whatever has the buffer protocol (a NumPy array), DLPack (a PyTorch tensor), "
     "__arrow_c_array__ (a column of Arrow) or __array__, a number, or lists of numbers. What others write to shared "
     "memory before it is read is seen. copy: True always copies, False never (ValueError)."},
    {"_adopt", FAST(hgpy_adopt), METH_FASTCALL, NULL},
    {"_read_arrow", FAST(hgpy_read_arrow), METH_FASTCALL, NULL},
    {"_from_dlpack", FAST(from_dlpack), METH_FASTCALL, NULL},
    {"_import_by_table", FAST(import_by_table), METH_FASTCALL, NULL},
    {"_export_by_table", FAST(export_by_table), METH_FASTCALL, NULL},
    {"_run_on_tensors", FAST(hgpy_run_on_tensors), METH_FASTCALL, NULL},
    {"_on_tensors", FAST(hgpy_on_tensors), METH_FASTCALL, NULL},
    {"_compiled", FAST(hgpy_compiled), METH_FASTCALL, NULL},
    {"_tensors_forward", FAST(hgpy_tensors_forward), METH_FASTCALL, NULL},
    {"_tensors_backward", FAST(hgpy_tensors_backward), METH_FASTCALL, NULL},
    {"_scalar", FAST(scalar), METH_FASTCALL, NULL},
    {"_value_for", FAST(hgpy_value_of), METH_FASTCALL, NULL},
    {"_is_by_places", hgpy_key_is_by_places, METH_O, NULL},
    {"_settled", hgpy_settle_array, METH_O, NULL},
    {"_fitted", FAST(hgpy_fitted), METH_FASTCALL, NULL},
    {"_row_inputs", hgpy_row_inputs, METH_O, NULL},
    {"_arrays_of", FAST(hgpy_arrays_of), METH_FASTCALL, NULL},
    {"_rebuild", FAST(hgpy_rebuild), METH_FASTCALL, NULL},
    {"_has_numbers_only", hgpy_has_numbers_only, METH_O, NULL},
    {"_statistics_of", hgpy_statistics_of, METH_O, NULL},
    {"_have_one_form", FAST(hgpy_have_one_form), METH_FASTCALL, NULL},
    {"_compute_onto", FAST(hgpy_compute_onto), METH_FASTCALL, NULL},
    {"compute", FAST(compute), METH_FASTCALL, "compute(*arrays)\n--\n\nComputes arrays now, as one computation."},
    {"_load_npy", FAST(hgpy_load_npy), METH_FASTCALL, NULL},
    {"_load_safetensors", FAST(hgpy_load_safetensors), METH_FASTCALL, NULL},
    {"_save_npy", FAST(hgpy_save_npy), METH_FASTCALL, NULL},
    {"_save_safetensors", FAST(hgpy_save_safetensors), METH_FASTCALL, NULL},
    {"_near", hgpy_near, METH_O, NULL},
    {"_near_word", hgpy_near_word, METH_O, NULL},
    {"_report", FAST(report), METH_FASTCALL, NULL},
    {"_copy", copy, METH_O, NULL},
    {"_own", own, METH_O, NULL},
    {"_kept", hgpy_kept, METH_O, NULL},
    {"_set_eager", set_eager, METH_O, NULL},
    {"_begin_trace", FAST(hgpy_begin_trace), METH_FASTCALL, NULL},
    {"_end_trace", hgpy_end_trace, METH_O, NULL},
    {"_begin_map", FAST(hgpy_begin_map), METH_FASTCALL, NULL},
    {"_map", FAST(hgpy_map), METH_FASTCALL, NULL},
    {"_checkpoint", FAST(hgpy_checkpoint), METH_FASTCALL, NULL},
    {"_custom_gradient", FAST(hgpy_custom_gradient), METH_FASTCALL, NULL},
    {"_is_of_examples", is_of_examples, METH_O, NULL},
    {"_count_nodes", hgpy_count_nodes, METH_NOARGS, NULL},
    {"_begin_warm", hgpy_begin_warm, METH_NOARGS, NULL},
    {"_end_warm", hgpy_end_warm, METH_O, NULL},
    {"_blank", FAST(hgpy_blank), METH_FASTCALL, NULL},
    {"_twin", twin, METH_O, NULL},
    {"_gradients", FAST(gradients), METH_FASTCALL, NULL},
    {"_is_tracing", is_tracing, METH_NOARGS, NULL},
    {"_library_version", library_version, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* State of the process (devices, types, nodes) belongs to its main interpreter. */
static int add_all(PyObject *module) {
  static bool is_made;
  if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0 || is_made) {
    PyErr_SetString(PyExc_ImportError, "hologram can be imported once, by the main interpreter of a process");
    return -1;
  }
  is_made = true;
  if (!hgpy_wait_prepare()) return PyErr_NoMemory(), -1;
  if (hgpy_operations_prepare() < 0 || hgpy_fork_add() < 0) return -1;
  if (hgpy_errors_add(module) < 0 || hgpy_strict_add(module) < 0 || hgpy_numerics_add(module) < 0 ||
      hgpy_types_add(module) < 0 || hgpy_executor_add(module) < 0)
    return -1;
  if (hgpy_buffer_add(module) < 0 || hgpy_program_add(module) < 0 || hgpy_array_add(module) < 0) return -1;
  if (hgpy_circuit_add(module) < 0 || hgpy_operations_add(module) < 0) return -1;
  if (hgpy_sdk_add(module) < 0 || hgpy_tensors_add(module) < 0 || hgpy_compiled_add(module) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)add_all},
    {0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "hologram._core", .m_size = 0, .m_slots = slots,
                                 .m_doc = "The library for Python; import hologram instead."};

PyMODINIT_FUNC PyInit__core(void) { return PyModuleDef_Init(&definition); }
