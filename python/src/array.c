/* array.c - hologram.Array: a value with a shape and a type; reading it computes it. */
#include "hgpy.h"

#include <stddef.h>
#include <structmember.h>

PyTypeObject *hgpy_array_type;

hgpy_node *hgpy_array_node(PyObject *array) { return ((hgpy_array *)array)->node; }

PyObject *hgpy_array_of(hgpy_node *node) {
  if (node == NULL) return NULL;
  hgpy_array *array = PyObject_New(hgpy_array, hgpy_array_type);
  if (array == NULL) {
    hgpy_node_release(node);
    return NULL;
  }
  array->node = node;
  array->born = hgpy_trace_now;
  array->shown = NULL;
  array->weak = NULL;
  node->holders++;
  return (PyObject *)array;
}

void hgpy_array_put(PyObject *self, hgpy_node *node) {
  hgpy_array *array = (hgpy_array *)self;
  hgpy_node *old = array->node;
  array->node = node;
  node->holders++;
  old->holders--;
  hgpy_node_release(old);
}

bool hgpy_array_set(PyObject *self, hgpy_node *node) {
  if (hgpy_warming_count > 0 && !hgpy_warm_note(self)) return hgpy_node_release(node), false;
  hgpy_array_put(self, node);
  return true;
}

static void array_dealloc(PyObject *self) {
  if (((hgpy_array *)self)->weak != NULL) PyObject_ClearWeakRefs(self);
  hgpy_node *node = hgpy_array_node(self);
  node->holders--;
  hgpy_node_release(node);
  if (((hgpy_array *)self)->shown != NULL) hgpy_array_hide((hgpy_array *)self);
  hgpy_free_object(self);
}

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

PyObject *hgpy_shape_object(uint32_t rank, const uint64_t *shape) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)rank);
  for (uint32_t d = 0; tuple != NULL && d < rank; d++) {
    PyObject *size = PyLong_FromUnsignedLongLong(shape[d]);
    if (size == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)d, size) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

static bool integer_from(PyObject *object, int64_t *integer) {
  PyObject *number = PyLong_CheckExact(object) ? Py_NewRef(object) : PyNumber_Index(object);
  if (number == NULL) return false;
  *integer = PyLong_AsLongLong(number);
  Py_DECREF(number);
  return *integer != -1 || !PyErr_Occurred();
}

/* As a tuple. Sets, which have no order, and bytes are refused. NULL: raised. */
static PyObject *parts_of(PyObject *object) {
  if (PyTuple_CheckExact(object)) return Py_NewRef(object);
  bool is_list = (PySequence_Check(object) || hgpy_is_array(object)) && !hgpy_is_scalar(object);
  if (!is_list || PyBytes_Check(object) || PyByteArray_Check(object))
    return PyErr_Format(PyExc_TypeError, "%R is no int and no sequence of ints", object);
  return PySequence_Tuple(object);
}

bool hgpy_integers_from(PyObject *object, int64_t *numbers, uint32_t *count) {
  *count = 1;
  if (PyLong_Check(object)) {
    *numbers = PyLong_AsLongLong(object);
    return *numbers != -1 || !PyErr_Occurred();
  }
  PyObject *one = PyTuple_Check(object) || PyList_Check(object) ? NULL : hgpy_plain_number(object);
  if (one != NULL) {
    bool is_good = integer_from(one, numbers);
    Py_DECREF(one);
    return is_good;
  }
  PyObject *parts = parts_of(object);
  if (parts == NULL) return false;
  Py_ssize_t size = PyTuple_Size(parts);
  bool is_good = size <= HG_MAX_RANK;
  if (!is_good) PyErr_Format(PyExc_ValueError, "arrays have at most %d axes, not %zd", HG_MAX_RANK, size);
  for (Py_ssize_t i = 0; is_good && i < size; i++) is_good = integer_from(PyTuple_GetItem(parts, i), &numbers[i]);
  Py_DECREF(parts);
  *count = (uint32_t)size;
  return is_good;
}

bool hgpy_shape_from(PyObject *object, uint64_t *shape, uint32_t *rank) {
  int64_t sizes[HG_MAX_RANK];
  if (!hgpy_integers_from(object, sizes, rank)) return false;
  for (uint32_t d = 0; d < *rank; d++) {
    if (sizes[d] < 0)
      return PyErr_Format(PyExc_ValueError, "a size is at least 0, not %lld", (long long)sizes[d]), false;
    shape[d] = (uint64_t)sizes[d];
  }
  return true;
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static const hg_tensor *tensor_of(PyObject *self) { return &hgpy_array_node(self)->tensor; }

static PyObject *get_shape(PyObject *self, void *unused) {
  (void)unused;
  return hgpy_shape_object(tensor_of(self)->rank, tensor_of(self)->shape);
}

static PyObject *get_dtype(PyObject *self, void *unused) {
  (void)unused;
  return hgpy_type_object(tensor_of(self)->type);
}

static PyObject *get_ndim(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(tensor_of(self)->rank);
}

static PyObject *get_size(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(hg_tensor_count(tensor_of(self)));
}

static PyObject *get_nbytes(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLongLong(hg_tensor_count(tensor_of(self)) * hgpy_type_bytes(tensor_of(self)->type));
}

static PyObject *get_transposed(PyObject *self, void *of_matrices) {
  hgpy_node *node = hgpy_array_node(self);
  uint32_t rank = node->tensor.rank;
  int64_t axes[HG_MAX_RANK];
  if (of_matrices != NULL && rank < 2)
    return PyErr_Format(PyExc_ValueError, "mT transposes matrices; this array has %u dimensions", (unsigned)rank);
  for (uint32_t d = 0; d < rank; d++) axes[d] = of_matrices != NULL ? d : rank - 1 - d;
  if (of_matrices != NULL) axes[rank - 1] = rank - 2, axes[rank - 2] = rank - 1;
  return hgpy_array_of(hgpy_view_permute(node, axes));
}

static PyObject *get_device(PyObject *self, void *unused) {
  hgpy_device *device = hgpy_array_node(self)->device;
  (void)unused;
  return hgpy_executor_for(device != NULL ? device : hgpy_default_device());
}

static PyObject *get_at(PyObject *self, void *unused) {
  (void)unused;
  PyObject *module = PyImport_ImportModule("hologram._at");
  PyObject *made = module != NULL ? PyObject_CallMethod(module, "At", "O", self) : NULL;
  Py_XDECREF(module);
  return made;
}

static PyObject *get_pending(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(hgpy_array_node(self)->kind != HGPY_DATA);
}

static PyGetSetDef array_getset[] = {
    {"shape", get_shape, NULL, "Sizes along each axis: a tuple.", NULL},
    {"dtype", get_dtype, NULL, "The type of its elements.", NULL},
    {"ndim", get_ndim, NULL, "How many axes it has.", NULL},
    {"size", get_size, NULL, "How many elements it has.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of its elements.", NULL},
    {"T", get_transposed, NULL, "Its axes the other way round.", NULL},
    {"mT", get_transposed, NULL, "Its last two axes exchanged.", (void *)"mT"},
    {"device", get_device, NULL, "The executor that it is on.", NULL},
    {"at", get_at, NULL,
     "x.at[key].set(value), add, subtract, multiply, min, max: new arrays, in which an element that is named several "
     "times takes part so often; get().",
     NULL},
    {"__array_interface__", hgpy_array_interface, NULL, "NumPy's description of memory of the CPU.", NULL},
    {"__cuda_array_interface__", hgpy_array_interface, NULL, "Version 3 of Numba's description of memory of a GPU.",
     (void *)"cuda"},
    {"is_pending", get_pending, NULL, "Whether it was asked for and not computed yet.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* The bytes of the only element; false: raised. */
static bool read_element(PyObject *self, uint64_t *bits, uint32_t *type) {
  hgpy_node *node = hgpy_array_node(self), *wide = NULL;
  if (hg_tensor_count(&node->tensor) != 1) {
    PyErr_Format(PyExc_ValueError, "an array of %llu elements is not one number; use any() or all(), or index it",
                 (unsigned long long)hg_tensor_count(&node->tensor));
    return false;
  }
  if (!hgpy_expose(node, HGPY_AS_NUMBERS)) return false;
  bool is_narrow = hgpy_type_is_float(node->tensor.type) && hgpy_type_bytes(node->tensor.type) < 4;
  if (is_narrow || node->tensor.type == ATLAS_f8e4m3 || node->tensor.type == ATLAS_f8e5m2) {
    wide = hgpy_cast(node, ATLAS_f32);
    if (wide == NULL || !hgpy_evaluate(&wide, 1)) return hgpy_node_release(wide), false;
    node = wide;
  }
  uint64_t bytes = hgpy_type_bytes(node->tensor.type), offset = (uint64_t)node->tensor.offset * bytes;
  *bits = 0;
  *type = node->tensor.type;
  bool is_good = true;
  if (node->storage->address != NULL) memcpy(bits, (const char *)node->storage->address + offset, bytes);
  else is_good = hgpy_device_wait(node->device) && hgpy_ok(hg_buffer_read(node->storage->buffer, offset, bits, bytes));
  hgpy_node_release(wide);
  return is_good;
}

static PyObject *number_of(uint64_t bits, uint32_t type) {
  float single;
  double real;
  uint32_t low = (uint32_t)bits;
  memcpy(&single, &low, sizeof single);
  memcpy(&real, &bits, sizeof real);
  switch (type) {
  case ATLAS_f32: return PyFloat_FromDouble((double)single);
  case ATLAS_f64: return PyFloat_FromDouble(real);
  case ATLAS_i8: return PyLong_FromLong((int8_t)bits);
  case ATLAS_i16: return PyLong_FromLong((int16_t)bits);
  case ATLAS_i32: return PyLong_FromLong((int32_t)bits);
  case ATLAS_i64: return PyLong_FromLongLong((int64_t)bits);
  case ATLAS_bool: return PyBool_FromLong(bits != 0);
  default: return PyLong_FromUnsignedLongLong(bits);
  }
}

static PyObject *array_item(PyObject *self, PyObject *unused) {
  uint64_t bits;
  uint32_t type;
  (void)unused;
  return read_element(self, &bits, &type) ? number_of(bits, type) : NULL;
}

static PyObject *array_float(PyObject *self) {
  PyObject *item = array_item(self, NULL);
  PyObject *number = item != NULL ? PyNumber_Float(item) : NULL;
  Py_XDECREF(item);
  return number;
}

static PyObject *array_int(PyObject *self) {
  PyObject *item = array_item(self, NULL);
  PyObject *number = item != NULL ? PyNumber_Long(item) : NULL;
  Py_XDECREF(item);
  return number;
}

static PyObject *array_complex(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *number = array_float(self);
  PyObject *result = number != NULL ? PyComplex_FromDoubles(PyFloat_AsDouble(number), 0.0) : NULL;
  Py_XDECREF(number);
  return result;
}

static PyObject *array_index(PyObject *self) {
  const hg_tensor *tensor = tensor_of(self);
  if (!hgpy_type_is_integer(tensor->type) || tensor->rank != 0)
    return PyErr_Format(PyExc_TypeError, "only an integer array without axes can be an index");
  return array_item(self, NULL);
}

static int array_bool(PyObject *self) {
  PyObject *item = array_item(self, NULL);
  int is_true = item != NULL ? PyObject_IsTrue(item) : -1;
  Py_XDECREF(item);
  return is_true;
}

static Py_ssize_t array_length(PyObject *self) {
  if (tensor_of(self)->rank > 0) return (Py_ssize_t)tensor_of(self)->shape[0];
  PyErr_SetString(PyExc_TypeError, "an array without axes has no length");
  return -1;
}

/* Iteration yields rows until there are no more. */
static PyObject *array_row(PyObject *self, Py_ssize_t index) {
  PyObject *number = PyLong_FromSsize_t(index), *row = number != NULL ? hgpy_get_item(self, number) : NULL;
  Py_XDECREF(number);
  return row;
}

static PyObject *array_iter(PyObject *self) {
  if (hgpy_array_node(self)->tensor.rank > 0) return PySeqIter_New(self);
  return PyErr_Format(PyExc_TypeError, "an array without axes has no rows to go through");
}

/* A NumPy array over a copy or, without NumPy, a memoryview of it. */
static PyObject *view_of_copy(PyObject *numpy, PyObject *copy, const hg_tensor *tensor) {
  PyObject *shape = hgpy_shape_object(tensor->rank, tensor->shape), *flat = NULL, *view = NULL;
  const char *format = hgpy_type_format(tensor->type);
  if (shape != NULL && numpy != NULL) {
    view = PyObject_CallMethod(numpy, "ndarray", "OsO", shape, format, copy);
  } else if (shape != NULL && (flat = PyMemoryView_FromObject(copy)) != NULL) {
    view = PyObject_CallMethod(flat, "cast", "sO", format, shape);
  }
  Py_XDECREF(flat);
  Py_XDECREF(shape);
  return view;
}

/* A memoryview of host memory for types that `struct` knows; else, if asked for, NumPy's array of a copy. */
static PyObject *host_view(PyObject *self, PyObject *numpy, bool is_asked_for) {
  hgpy_node *node = hgpy_array_node(self);
  const hg_tensor *tensor = &node->tensor;
  if (!hgpy_expose(node, HGPY_AS_MEMORY)) return NULL;
  int is_here = node->storage->address != NULL || node->device->backend == HG_BACKEND_CPU;
  if (is_here || hg_tensor_count(tensor) == 0 || hgpy_type_format(tensor->type) == NULL)
    return PyMemoryView_FromObject(self);
  if (!is_asked_for && !hgpy_allows("memory of a GPU would be copied; to_device(executor) of the CPU copies it"))
    return NULL;
  hgpy_node *dense = hgpy_dense(node, true);
  if (dense == NULL) return NULL;
  uint64_t bytes = hg_tensor_count(tensor) * hgpy_type_bytes(tensor->type);
  PyObject *copy = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes), *view = NULL;
  bool is_good =
      copy != NULL && hgpy_device_wait(dense->device) &&
      hgpy_ok(hg_buffer_read(dense->storage->buffer, (uint64_t)dense->tensor.offset * hgpy_type_bytes(tensor->type),
                             PyByteArray_AsString(copy), bytes));
  if (is_good) view = view_of_copy(numpy, copy, tensor);
  Py_XDECREF(copy);
  hgpy_node_release(dense);
  return view;
}

static PyObject *array_tolist(PyObject *self, PyObject *unused) {
  const hg_tensor *tensor = tensor_of(self);
  hgpy_node *node = hgpy_node_retain(hgpy_array_node(self));
  (void)unused;
  if (tensor->rank == 0) return hgpy_node_release(node), array_item(self, NULL);
  if (hgpy_type_format(tensor->type) == NULL || tensor->type == ATLAS_f16) { /* memoryview does not read them */
    hgpy_node *wide = hgpy_cast(node, ATLAS_f32);
    hgpy_node_release(node);
    node = wide;
  }
  PyObject *plain = NULL; /* a second array of the value, through which no gradient flows */
  if (node == hgpy_array_node(self) && hgpy_trace_now == 0) plain = Py_NewRef(self);
  else if (node != NULL && hgpy_expose(node, HGPY_AS_NUMBERS))
    plain = hgpy_array_of(hgpy_node_data(hgpy_storage_retain(node->storage), &node->tensor));
  PyObject *view = plain != NULL ? host_view(plain, NULL, true) : NULL;
  PyObject *list = view != NULL ? PyObject_CallMethod(view, "tolist", NULL) : NULL;
  Py_XDECREF(view);
  Py_XDECREF(plain);
  hgpy_node_release(node);
  return list;
}

static PyObject *array_numpy(PyObject *self, PyObject *unused) {
  (void)unused;
  PyObject *numpy = PyImport_ImportModule("numpy");
  PyObject *view = numpy != NULL ? host_view(self, numpy, false) : NULL;
  PyObject *array = view != NULL ? PyObject_CallMethod(numpy, "asarray", "O", view) : NULL;
  Py_XDECREF(view);
  Py_XDECREF(numpy);
  return array;
}

/* __array__(dtype=None, copy=None): a type that NumPy lacks becomes float32 if another type is asked for. */
static PyObject *array_array(PyObject *self, PyObject *arguments, PyObject *names) {
  static char *known[] = {"dtype", "copy", NULL};
  PyObject *type = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "|OO", known, &type, &copy)) return NULL;
  bool is_foreign = type != Py_None && hgpy_type_format(tensor_of(self)->type) == NULL;
  PyObject *own = is_foreign ? hgpy_array_of(hgpy_cast(hgpy_array_node(self), ATLAS_f32)) : Py_NewRef(self);
  PyObject *array = own != NULL ? array_numpy(own, NULL) : NULL, *result = NULL;
  Py_XDECREF(own);
  if (array == NULL) return NULL;
  if (type == Py_None && copy != Py_True) return array;
  if (type != Py_None) result = PyObject_CallMethod(array, "astype", "O", type);
  else result = PyObject_CallMethod(array, "copy", NULL);
  Py_DECREF(array);
  return result;
}

/* ---- printing (in Python) ---------------------------------------------------------------------------------------- */

static PyObject *format_by(PyObject *self, const char *function) {
  PyObject *module = PyImport_ImportModule("hologram._format");
  PyObject *text = module != NULL ? PyObject_CallMethod(module, function, "O", self) : NULL;
  Py_XDECREF(module);
  return text;
}

static PyObject *array_repr(PyObject *self) { return format_by(self, "array_repr"); }
static PyObject *array_str(PyObject *self) { return format_by(self, "array_str"); }

/* ---- methods ----------------------------------------------------------------------------------------------------- */

static PyObject *array_reshape(PyObject *self, PyObject *arguments) {
  int64_t sizes[HG_MAX_RANK];
  uint64_t shape[HG_MAX_RANK];
  uint32_t rank;
  bool is_one = PyTuple_Size(arguments) == 1;
  if (!hgpy_integers_from(is_one ? PyTuple_GetItem(arguments, 0) : arguments, sizes, &rank)) return NULL;
  hgpy_node *node = hgpy_array_node(self);
  uint64_t known = 1, count = hg_tensor_count(&node->tensor);
  int rest = -1;
  for (uint32_t d = 0; d < rank; d++) {
    shape[d] = (uint64_t)sizes[d];
    if (sizes[d] < -1)
      return PyErr_Format(PyExc_ValueError, "reshape: a size is at least 0, or -1 once, not %lld", (long long)sizes[d]);
    if (sizes[d] >= 0) known *= shape[d];
    else if (rest >= 0) return PyErr_Format(PyExc_ValueError, "reshape: only one size can be -1");
    else rest = (int)d;
  }
  if (rest >= 0 && (known == 0 || count % known != 0))
    return PyErr_Format(PyExc_ValueError, "reshape: %llu elements cannot be shared among %llu",
                        (unsigned long long)count, (unsigned long long)known);
  if (rest >= 0) shape[rest] = count / known;
  return hgpy_array_of(hgpy_view_reshape(node, rank, shape));
}

static PyObject *array_transpose(PyObject *self, PyObject *arguments) {
  int64_t axes[HG_MAX_RANK];
  uint32_t rank;
  Py_ssize_t count = PyTuple_Size(arguments);
  if (count == 0) return get_transposed(self, NULL);
  if (!hgpy_integers_from(count == 1 ? PyTuple_GetItem(arguments, 0) : arguments, axes, &rank)) return NULL;
  if (rank != tensor_of(self)->rank)
    return PyErr_Format(PyExc_ValueError, "transpose: %u axes are given; the array has %u", (unsigned)rank,
                        (unsigned)tensor_of(self)->rank);
  return hgpy_array_of(hgpy_view_permute(hgpy_array_node(self), axes));
}

static PyObject *array_broadcast_to(PyObject *self, PyObject *object) {
  uint64_t shape[HG_MAX_RANK];
  uint32_t rank;
  if (!hgpy_shape_from(object, shape, &rank)) return NULL;
  return hgpy_array_of(hgpy_view_broadcast(hgpy_array_node(self), rank, shape));
}

static PyObject *array_astype(PyObject *self, PyObject *object) {
  uint32_t type = hgpy_type_from(object);
  return type != ATLAS_NONE ? hgpy_array_of(hgpy_cast(hgpy_array_node(self), type)) : NULL;
}

hgpy_node *hgpy_node_on(hgpy_node *node, hgpy_device *device) {
  hgpy_node *dense = hgpy_dense(node, true);
  if (dense == NULL || !hgpy_has_elements(dense)) return hgpy_node_release(dense), NULL;
  hg_tensor tensor = hg_tensor_of(NULL, (atlas_type)dense->tensor.type, dense->tensor.rank, dense->tensor.shape);
  uint64_t bytes = hg_tensor_count(&tensor) * hgpy_type_bytes(tensor.type);
  uint64_t from = (uint64_t)dense->tensor.offset * hgpy_type_bytes(tensor.type);
  hgpy_storage *storage = hgpy_storage_create(device, bytes, false);
  hg_status status = HG_OK;
  bool is_good = storage != NULL && hgpy_device_wait(dense->device);
  if (is_good && bytes > 0) {
    HGPY_BEGIN_CALL
    status = hg_buffer_copy(storage->buffer, 0, dense->storage->buffer, from, bytes);
    HGPY_END_CALL
    is_good = hgpy_ok(status);
  }
  hgpy_node_release(dense);
  if (is_good) return hgpy_node_data(storage, &tensor);
  hgpy_storage_release(storage);
  return NULL;
}

/* to_device(executor, /, *, stream=None): ordered with all work on the copied memory, whatever the stream. */
static PyObject *array_to_device(PyObject *self, PyObject *arguments, PyObject *names) {
  static char *known[] = {"", "stream", NULL};
  PyObject *object, *stream = NULL;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "O|$O:to_device", known, &object, &stream)) return NULL;
  hgpy_device *device = hgpy_device_of(object);
  if (device == NULL) return NULL;
  hgpy_node *node = hgpy_array_node(self);
  if (node->device == device) return Py_NewRef(self);
  return hgpy_expose(node, HGPY_AS_MEMORY) ? hgpy_array_of(hgpy_node_on(node, device)) : NULL;
}

static PyObject *array_compute(PyObject *self, PyObject *unused) {
  hgpy_node *node = hgpy_array_node(self);
  (void)unused;
  return hgpy_evaluate(&node, 1) ? Py_NewRef(self) : NULL;
}

static PyObject *array_namespace(PyObject *self, PyObject *arguments, PyObject *names) {
  (void)self, (void)arguments, (void)names;
  return PyImport_ImportModule("hologram.array_api");
}

#define BY_PYTHON(name) ((PyCFunction)(void *)hgpy_array_##name)

static const PyMethodDef own_methods[] = {
    {"item", array_item, METH_NOARGS,
     "item($self)\n--\n\nThe only element as a Python number; ValueError where there are more."},
    {"tolist", array_tolist, METH_NOARGS, "tolist($self)\n--\n\nIts elements as lists of lists of Python numbers."},
    {"numpy", array_numpy, METH_NOARGS,
     "numpy($self)\n--\n\nA NumPy array of the same memory, read-only, where it is the host's; else a copy."},
    {"reshape", array_reshape, METH_VARARGS,
     "reshape($self, /, *shape)\n--\n\nThe same elements in C order in another shape; one size may be -1: what is "
     "left."},
    {"transpose", array_transpose, METH_VARARGS,
     "transpose($self, /, *axes)\n--\n\nAxes in this order; none given: the other way round."},
    {"broadcast_to", array_broadcast_to, METH_O,
     "broadcast_to($self, shape, /)\n--\n\nRepeated along axes that are missing or have one element."},
    {"astype", array_astype, METH_O, "astype($self, dtype, /)\n--\n\nAs another type; see cast."},
    {"to_device", (PyCFunction)(void *)array_to_device, METH_VARARGS | METH_KEYWORDS,
     "to_device($self, executor, /, *, stream=None)\n--\n\nThe array on another executor: a copy, or itself where "
     "it is there."},
    {"compute", array_compute, METH_NOARGS,
     "compute($self)\n--\n\nComputes it now, if it is pending. Returns the array."},
    {"flatten", BY_PYTHON(flatten), METH_VARARGS | METH_KEYWORDS,
     "flatten($self, start=0, end=-1, /)\n--\n\nThe axes from start to end as one, in C order: x.flatten() has one "
     "axis, x.flatten(1) keeps the first.\n\nIndexError: there is no such axis. The elements are shared, not copied."},
    {"ravel", BY_PYTHON(ravel), METH_VARARGS | METH_KEYWORDS,
     "ravel($self, /)\n--\n\nAll elements in C order, along one axis: x.ravel() is x.reshape(-1)."},
    {"copy", BY_PYTHON(copy), METH_VARARGS | METH_KEYWORDS,
     "copy($self, /)\n--\n\nAn array of the same elements in memory of its own. Gradients flow through it."},
    {"repeat", BY_PYTHON(repeat), METH_VARARGS | METH_KEYWORDS,
     "repeat($self, repeats, /, *, axis=None)\n--\n\nEach element along an axis so many times, as numpy.repeat: "
     "hg.asarray([1, 2]).repeat(2) is 1, 1, 2, 2.\n\nrepeats: an int, or one for each element. axis=None: all elements "
     "in C order. hg.tile(x, 2) is 1, 2, 1, 2, which is what torch.Tensor.repeat gives."},
    {"sort", BY_PYTHON(sort), METH_VARARGS | METH_KEYWORDS,
     "sort($self, axis=-1, *, descending=False, stable=True)\n--\n\nA new array with the elements along an axis in "
     "their order: x = x.sort().\n\nIt is stable always; NaNs come last. axis=None: all elements in C order."},
    {"argsort", BY_PYTHON(argsort), METH_VARARGS | METH_KEYWORDS,
     "argsort($self, axis=-1, *, descending=False, stable=True)\n--\n\nThe numbers (int64) of the elements along an "
     "axis in their order: x[x.argsort()] is x.sort().\n\nIt is stable always; NaNs come last. axis=None: all elements "
     "in C order."},
    {"cumsum", BY_PYTHON(cumsum), METH_VARARGS | METH_KEYWORDS,
     "cumsum($self, axis=None, dtype=None)\n--\n\nSums of the elements up to each one along an axis, as "
     "numpy.cumsum: x.cumsum(0).\n\naxis=None: of all elements in C order. See cumulative_sum for types and order."},
    {"diagonal", BY_PYTHON(diagonal), METH_VARARGS | METH_KEYWORDS,
     "diagonal($self, /, offset=0, axis1=0, axis2=1)\n--\n\nThe diagonal of the matrices along two axes, as a last "
     "axis: x.diagonal(1). See hologram.diagonal."},
    {"trace", BY_PYTHON(trace), METH_VARARGS | METH_KEYWORDS,
     "trace($self, /, offset=0, axis1=0, axis2=1, dtype=None)\n--\n\nThe sum of a diagonal: x.trace(). See "
     "hologram.trace."},
    {"diag", BY_PYTHON(diag), METH_VARARGS | METH_KEYWORDS,
     "diag($self, /, k=0)\n--\n\nOf a matrix a diagonal, of a vector the matrix that has it: x.diag(1). See "
     "hologram.diag."},
    {"inner", BY_PYTHON(inner), METH_VARARGS | METH_KEYWORDS,
     "inner($self, b, /)\n--\n\nSums of products along the last axes: x.inner(y). See hologram.inner."},
    {"kron", BY_PYTHON(kron), METH_VARARGS | METH_KEYWORDS,
     "kron($self, b, /)\n--\n\nKronecker's product: x.kron(y). See hologram.kron."},
    {"diff", BY_PYTHON(diff), METH_VARARGS | METH_KEYWORDS,
     "diff($self, /, n=1, axis=-1, prepend=None, append=None)\n--\n\nDifferences of neighbours along an axis, n "
     "times: x.diff(). See hologram.diff."},
    {"cov", BY_PYTHON(cov), METH_VARARGS | METH_KEYWORDS,
     "cov($self, /, y=None, rowvar=True, bias=False, ddof=None, *, fweights=None, aweights=None)\n--\n\nCovariances "
     "of the variables that are its rows: x.cov(). See hologram.cov."},
    {"corrcoef", BY_PYTHON(corrcoef), METH_VARARGS | METH_KEYWORDS,
     "corrcoef($self, /, y=None, rowvar=True)\n--\n\nCorrelations of the variables that are its rows: x.corrcoef(). "
     "See hologram.corrcoef."},
    {"__dir__", BY_PYTHON(listed), METH_VARARGS | METH_KEYWORDS, "__dir__($self, /)\n--\n\nFor dir()."},
    {"__complex__", array_complex, METH_NOARGS,
     "__complex__($self)\n--\n\nThe only element, for complex()."},
    {"__copy__", BY_PYTHON(copied), METH_VARARGS | METH_KEYWORDS,
     "__copy__($self, /)\n--\n\nA copy."},
    {"__deepcopy__", BY_PYTHON(copied), METH_VARARGS | METH_KEYWORDS,
     "__deepcopy__($self, memo=None, /)\n--\n\nA copy."},
    {"__reduce_ex__", BY_PYTHON(reduced), METH_VARARGS | METH_KEYWORDS,
     "__reduce_ex__($self, protocol, /)\n--\n\nFor pickle."},
    {"__format__", BY_PYTHON(formatted), METH_VARARGS | METH_KEYWORDS,
     "__format__($self, format_spec, /)\n--\n\nOf one element as of its number."},
    {"__array_ufunc__", BY_PYTHON(ufunc), METH_VARARGS | METH_KEYWORDS,
     "__array_ufunc__($self, function, method, /, *inputs, **settings)\n--\n\nNumPy's functions of arrays."},
    {"__array__", (PyCFunction)(void *)array_array, METH_VARARGS | METH_KEYWORDS,
     "__array__($self, dtype=None, copy=None)\n--\n\nFor NumPy."},
    {"__array_namespace__", (PyCFunction)(void *)array_namespace, METH_VARARGS | METH_KEYWORDS,
     "__array_namespace__($self, *, api_version=None)\n--\n\nThe functions of the array API standard: "
     "hologram.array_api."},
    {"__dlpack__", (PyCFunction)(void *)hgpy_array_dlpack, METH_FASTCALL | METH_KEYWORDS,
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\nA capsule that shares its "
     "memory, for from_dlpack functions."},
    {"__dlpack_device__", hgpy_array_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\nDLPack's (device type, device number)."},
};

/* ---- operators --------------------------------------------------------------------------------------------------- */

#define BINARY(name, row)                                                                                              \
  static PyObject *name(PyObject *a, PyObject *b) { return hgpy_binary(HGPY_ROW_##row, a, b); }
#define UNARY(name, row)                                                                                               \
  static PyObject *name(PyObject *x) { return hgpy_unary(HGPY_ROW_##row, x); }

BINARY(array_add, add)
BINARY(array_subtract, sub)
BINARY(array_multiply, mul)
BINARY(array_floor_divide, floor_divide)
BINARY(array_remainder, remainder)
BINARY(array_divmod, divmod)
BINARY(array_and, bitwise_and)
BINARY(array_or, bitwise_or)
BINARY(array_xor, bitwise_xor)
BINARY(array_shift_left, shift_left)
BINARY(array_shift_right, shift_right)
BINARY(array_matmul, matmul)
UNARY(array_negative, neg)
UNARY(array_absolute, abs)
UNARY(array_invert, bitwise_not)

static bool is_integral(PyObject *object) {
  if (hgpy_is_array(object)) return !hgpy_type_is_float(tensor_of(object)->type);
  PyObject *number = hgpy_plain_number(object);
  bool is_whole = number != NULL && PyLong_Check(number);
  Py_XDECREF(number);
  return is_whole;
}

static PyObject *in_float32(PyObject *object) {
  return hgpy_is_array(object) ? hgpy_array_of(hgpy_cast(hgpy_array_node(object), ATLAS_f32)) : Py_NewRef(object);
}

/* The table's `div` of integers and bools rounds towards zero, so these are converted to float32 first. */
static PyObject *array_divide(PyObject *a, PyObject *b) {
  if (!is_integral(a) || !is_integral(b)) return hgpy_binary(HGPY_ROW_div, a, b);
  PyObject *left = in_float32(a), *right = in_float32(b), *result = NULL;
  if (left != NULL && right != NULL) result = hgpy_binary(HGPY_ROW_div, left, right);
  Py_XDECREF(left), Py_XDECREF(right);
  return result;
}

/* x ** 2 is x * x; other integer powers are products, too. */
static PyObject *array_power(PyObject *a, PyObject *b, PyObject *modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  bool is_square = false;
  if (hgpy_is_array(a) && hgpy_is_number(b) && !PyBool_Check(b)) {
    double exponent = PyFloat_AsDouble(b);
    if (exponent == -1.0 && PyErr_Occurred()) PyErr_Clear();
    is_square = exponent == 2.0 && (!hgpy_is_float(b) || hgpy_type_is_float(tensor_of(a)->type));
  }
  if (is_square) return hgpy_unary(HGPY_ROW_square, a);
  if (!is_integral(a) || !is_integral(b)) return hgpy_binary(HGPY_ROW_pow, a, b);
  PyObject *module = PyImport_ImportModule("hologram._elementwise");
  PyObject *result = module != NULL ? PyObject_CallMethod(module, "power_of_integers", "OO", a, b) : NULL;
  Py_XDECREF(module);
  return result;
}

static PyObject *array_positive(PyObject *self) { return hgpy_array_of(hgpy_node_retain(hgpy_array_node(self))); }

static PyObject *array_compare(PyObject *self, PyObject *other, int how) {
  static const uint32_t row_of[] = {
      [Py_LT] = HGPY_ROW_less,      [Py_LE] = HGPY_ROW_less_equal, [Py_EQ] = HGPY_ROW_equal,
      [Py_NE] = HGPY_ROW_not_equal, [Py_GT] = HGPY_ROW_greater,    [Py_GE] = HGPY_ROW_greater_equal};
  return hgpy_binary(row_of[how], self, other);
}

static PyMethodDef methods[HGPY_ROW_COUNT + 48];

static PyMemberDef array_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(hgpy_array, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot array_slots[] = {
    {Py_tp_doc,
     "An n-dimensional array of numbers: a value.\n\nOperations on arrays are recorded, fused and run when an array is "
     "read: printed, converted, exported, or asked to compute(). hologram.array, asarray, zeros and others make "
     "arrays."},
    {Py_tp_dealloc, array_dealloc},
    {Py_tp_repr, array_repr},
    {Py_tp_str, array_str},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_richcompare, array_compare},
    {Py_tp_getset, array_getset},
    {Py_tp_methods, methods},
    {Py_tp_members, array_members},
    {Py_tp_iter, array_iter},
    {Py_sq_item, array_row},
    {Py_mp_length, array_length},
    {Py_mp_subscript, hgpy_get_item},
    {Py_mp_ass_subscript, hgpy_set_item},
    {Py_bf_getbuffer, hgpy_array_get_buffer},
    {Py_bf_releasebuffer, hgpy_array_release_buffer},
    {Py_nb_add, array_add},
    {Py_nb_subtract, array_subtract},
    {Py_nb_multiply, array_multiply},
    {Py_nb_true_divide, array_divide},
    {Py_nb_floor_divide, array_floor_divide},
    {Py_nb_remainder, array_remainder},
    {Py_nb_divmod, array_divmod},
    {Py_nb_power, array_power},
    {Py_nb_matrix_multiply, array_matmul},
    {Py_nb_and, array_and},
    {Py_nb_or, array_or},
    {Py_nb_xor, array_xor},
    {Py_nb_lshift, array_shift_left},
    {Py_nb_rshift, array_shift_right},
    {Py_nb_negative, array_negative},
    {Py_nb_positive, array_positive},
    {Py_nb_absolute, array_absolute},
    {Py_nb_invert, array_invert},
    {Py_nb_bool, array_bool},
    {Py_nb_float, array_float},
    {Py_nb_int, array_int},
    {Py_nb_index, array_index},
    {0, NULL},
};

static PyType_Spec array_spec = {.name = "hologram.Array",
                                 .basicsize = sizeof(hgpy_array),
                                 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 .slots = array_slots};

/* An array's own methods come before those of the table with the same name. */
static void make_methods(void) {
  enum { OWN = sizeof own_methods / sizeof own_methods[0] };
  uint32_t count = hgpy_operations_methods(methods + OWN, (uint32_t)(sizeof methods / sizeof methods[0]) - OWN);
  memcpy(methods, own_methods, sizeof own_methods);
  for (uint32_t i = OWN; i < OWN + count;) {
    bool is_own = false;
    for (uint32_t k = 0; k < OWN; k++) is_own = is_own || strcmp(own_methods[k].ml_name, methods[i].ml_name) == 0;
    if (is_own) methods[i] = methods[OWN + --count];
    else i++;
  }
  methods[OWN + count] = (PyMethodDef){NULL, NULL, 0, NULL};
}

int hgpy_array_add(PyObject *module) {
  make_methods();
  hgpy_array_type = hgpy_add_type(module, &array_spec);
  if (hgpy_array_type == NULL || hgpy_near_add((PyObject *)hgpy_array_type) < 0) return -1;
  PyObject *table = hgpy_dlpack_table();
  int status =
      table != NULL ? PyObject_SetAttrString((PyObject *)hgpy_array_type, "__dlpack_c_exchange_api__", table) : -1;
  Py_XDECREF(table);
  return status;
}
