/* buffer.c - hologram.Buffer: n elements on an executor, as the functions of hologram.ops take them. */
#include "hgpy.h"

PyTypeObject *hgpy_buffer_type;

PyObject *hgpy_buffer_of(hgpy_storage *storage, uint32_t type, uint64_t count) {
  hgpy_buffer *buffer = PyObject_New(hgpy_buffer, hgpy_buffer_type);
  if (buffer == NULL) {
    hgpy_storage_release(storage);
    return NULL;
  }
  buffer->storage = storage;
  buffer->type = type;
  buffer->count = count;
  buffer->exports = 0;
  return (PyObject *)buffer;
}

static bool fail_freed(const char *what) {
  PyErr_Format(PyExc_ValueError, "%s was freed", what);
  return false;
}

hgpy_buffer *hgpy_buffer_check(PyObject *object, const char *what) {
  hgpy_buffer *buffer = (hgpy_buffer *)object;
  if (Py_TYPE(object) != hgpy_buffer_type) {
    PyErr_Format(PyExc_TypeError, "%s must be a Buffer, not %R", what, (PyObject *)Py_TYPE(object));
    return NULL;
  }
  if (buffer->storage == NULL) return fail_freed(what), NULL;
  return buffer;
}

hg_tensor hgpy_buffer_tensor(const hgpy_buffer *buffer, uint64_t count) {
  hg_tensor tensor = hg_tensor_of(buffer->storage->buffer, (atlas_type)buffer->type, 1, &count);
  return tensor;
}

static hgpy_buffer *own(PyObject *self) { return hgpy_buffer_check(self, "the buffer"); }

/* ---- in and out -------------------------------------------------------------------------------------------------- */

static bool write_bytes(hgpy_buffer *buffer, const void *bytes, uint64_t byte_count) {
  hgpy_storage *storage = hgpy_storage_retain(buffer->storage);
  hg_status status;
  HGPY_BEGIN_CALL
  status = hg_buffer_write(storage->buffer, 0, bytes, byte_count);
  HGPY_END_CALL
  hgpy_storage_release(storage);
  return hgpy_ok(status);
}

static bool read_bytes(hgpy_buffer *buffer, void *bytes, uint64_t byte_count) {
  hgpy_storage *storage = hgpy_storage_retain(buffer->storage);
  hg_status status = HG_OK;
  bool is_good = hgpy_device_wait(storage->device);
  if (is_good) {
    HGPY_BEGIN_CALL
    status = hg_buffer_read(storage->buffer, 0, bytes, byte_count);
    HGPY_END_CALL
  }
  hgpy_storage_release(storage);
  return is_good && hgpy_ok(status);
}

static bool fits(const hgpy_buffer *buffer, uint64_t byte_count) {
  uint64_t room = buffer->count * hgpy_type_bytes(buffer->type);
  if (byte_count <= room) return true;
  PyErr_Format(PyExc_ValueError, "%llu bytes do not fit into a buffer of %llu elements of %s (%llu bytes)",
               (unsigned long long)byte_count, (unsigned long long)buffer->count, hgpy_type_name(buffer->type),
               (unsigned long long)room);
  return false;
}

/* Writes from any object with the buffer protocol, in C order. `is_typed`: its elements must have the buffer's type. */
static PyObject *write_object(PyObject *self, PyObject *object, bool is_typed) {
  hgpy_buffer *buffer = own(self);
  Py_buffer view;
  if (buffer == NULL || PyObject_GetBuffer(object, &view, PyBUF_RECORDS_RO) < 0) return NULL;
  bool is_good = true;
  uint32_t type = hgpy_type_from_format(view.format, view.itemsize);
  if (is_typed && type != buffer->type && hgpy_type_format(buffer->type) != NULL) {
    PyErr_Format(PyExc_TypeError, "the buffer holds %s, and what is given %s ('%s'); convert it first",
                 hgpy_type_name(buffer->type), hgpy_type_name(type), view.format != NULL ? view.format : "B");
    is_good = false;
  }
  is_good = is_good && fits(buffer, (uint64_t)view.len);
  if (is_good && PyBuffer_IsContiguous(&view, 'C')) is_good = write_bytes(buffer, view.buf, (uint64_t)view.len);
  else if (is_good) {
    void *copy = PyMem_Malloc((size_t)view.len + 1);
    if (copy == NULL) PyErr_NoMemory();
    is_good = copy != NULL && PyBuffer_ToContiguous(copy, &view, view.len, 'C') == 0 &&
              write_bytes(buffer, copy, (uint64_t)view.len);
    PyMem_Free(copy);
  }
  PyBuffer_Release(&view);
  return is_good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *buffer_from_numpy(PyObject *self, PyObject *object) { return write_object(self, object, true); }
static PyObject *buffer_from_bytes(PyObject *self, PyObject *object) { return write_object(self, object, false); }

static PyObject *buffer_to_bytes(PyObject *self, PyObject *unused) {
  hgpy_buffer *buffer = own(self);
  (void)unused;
  if (buffer == NULL) return NULL;
  uint64_t bytes = buffer->count * hgpy_type_bytes(buffer->type);
  PyObject *copy = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)bytes);
  if (copy != NULL && !read_bytes(buffer, PyBytes_AsString(copy), bytes)) Py_CLEAR(copy);
  return copy;
}

/* Copies into numpy.empty(n, dtype). */
static PyObject *buffer_to_numpy(PyObject *self, PyObject *unused) {
  hgpy_buffer *buffer = own(self);
  Py_buffer view;
  (void)unused;
  if (buffer == NULL) return NULL;
  const char *format = hgpy_type_format(buffer->type);
  if (format == NULL)
    return PyErr_Format(PyExc_TypeError, "NumPy has no %s; to_bytes() copies it", hgpy_type_name(buffer->type));
  PyObject *numpy = PyImport_ImportModule("numpy");
  PyObject *copy =
      numpy != NULL ? PyObject_CallMethod(numpy, "empty", "Ks", (unsigned long long)buffer->count, format) : NULL;
  Py_XDECREF(numpy);
  if (copy == NULL || PyObject_GetBuffer(copy, &view, PyBUF_CONTIG) < 0) {
    Py_XDECREF(copy);
    return NULL;
  }
  bool is_good = read_bytes(buffer, view.buf, (uint64_t)view.len);
  PyBuffer_Release(&view);
  if (!is_good) Py_CLEAR(copy);
  return copy;
}

/* An Array that shares the buffer's memory. */
static PyObject *buffer_array(PyObject *self, PyObject *unused) {
  hgpy_buffer *buffer = own(self);
  (void)unused;
  if (buffer == NULL) return NULL;
  hg_tensor tensor = hgpy_buffer_tensor(buffer, buffer->count);
  return hgpy_array_of(hgpy_node_data(hgpy_storage_retain(buffer->storage), &tensor));
}

static PyObject *buffer_to_list(PyObject *self, PyObject *unused) {
  PyObject *array = buffer_array(self, unused);
  PyObject *list = array != NULL ? PyObject_CallMethod(array, "tolist", NULL) : NULL;
  Py_XDECREF(array);
  return list;
}

/* Computes an array or a number into the first elements. */
static bool assign(hgpy_buffer *buffer, hgpy_node *node, uint64_t count) {
  hg_tensor tensor = hgpy_buffer_tensor(buffer, count);
  uint64_t shape[1] = {count};
  hgpy_node *flat = NULL, *cast;
  uint64_t has = hg_tensor_count(&node->tensor);
  if (has != count && has != 1) {
    PyErr_Format(PyExc_ValueError, "%llu elements cannot be put into %llu", (unsigned long long)has,
                 (unsigned long long)count);
    return false;
  }
  if (count == 0) return true;
  if (node->kind == HGPY_SCALAR) flat = hgpy_node_retain(node);
  else flat = hgpy_view_reshape(node, has == 1 && count != 1 ? 0 : 1, shape);
  cast = flat != NULL ? hgpy_cast(flat, buffer->type) : NULL;
  hgpy_node_release(flat);
  flat = cast != NULL && cast->tensor.rank == 0 ? hgpy_view_broadcast(cast, 1, shape) : hgpy_node_retain(cast);
  hgpy_node_release(cast);
  bool is_good = flat != NULL && hgpy_evaluate_into(flat, buffer->storage, &tensor);
  hgpy_node_release(flat);
  return is_good;
}

static PyObject *buffer_fill(PyObject *self, PyObject *value) {
  hgpy_buffer *buffer = own(self);
  hgpy_node *node = buffer != NULL ? hgpy_number_node("fill", value, buffer->type) : NULL;
  bool is_good = node != NULL && assign(buffer, node, buffer->count);
  hgpy_node_release(node);
  return is_good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *buffer_assign(PyObject *self, PyObject *arguments) {
  PyObject *value;
  long long count = -1;
  hgpy_buffer *buffer = own(self);
  if (buffer == NULL || !PyArg_ParseTuple(arguments, "O|L:assign", &value, &count)) return NULL;
  if (count < 0) count = (long long)buffer->count;
  if ((uint64_t)count > buffer->count)
    return PyErr_Format(PyExc_ValueError, "the buffer has %llu elements, not %lld", (unsigned long long)buffer->count,
                        count);
  if (!hgpy_is_array(value)) return PyErr_Format(PyExc_TypeError, "assign takes an Array, not %R", value);
  return assign(buffer, hgpy_array_node(value), (uint64_t)count) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *buffer_copy_from(PyObject *self, PyObject *object) {
  hgpy_buffer *buffer = own(self), *from = hgpy_buffer_check(object, "the source");
  if (buffer == NULL || from == NULL) return NULL;
  if (from->type != buffer->type)
    return PyErr_Format(PyExc_TypeError, "the buffer holds %s, the source %s", hgpy_type_name(buffer->type),
                        hgpy_type_name(from->type));
  uint64_t bytes = from->count * hgpy_type_bytes(from->type);
  if (!fits(buffer, bytes) || !hgpy_device_wait(from->storage->device) || !hgpy_device_wait(buffer->storage->device))
    return NULL;
  hgpy_storage *a = hgpy_storage_retain(buffer->storage), *b = hgpy_storage_retain(from->storage);
  hg_status status;
  HGPY_BEGIN_CALL
  status = hg_buffer_copy(a->buffer, 0, b->buffer, 0, bytes);
  HGPY_END_CALL
  hgpy_storage_release(a);
  hgpy_storage_release(b);
  return hgpy_ok(status) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *buffer_free(PyObject *self, PyObject *unused) {
  hgpy_buffer *buffer = (hgpy_buffer *)self;
  (void)unused;
  if (buffer->exports > 0)
    return PyErr_Format(PyExc_BufferError, "the buffer's memory is in use by %zd views of it; let go of them first",
                        buffer->exports);
  hgpy_storage_release(buffer->storage);
  buffer->storage = NULL;
  Py_RETURN_NONE;
}

/* ---- the object -------------------------------------------------------------------------------------------------- */

static void buffer_dealloc(PyObject *self) {
  hgpy_storage_release(((hgpy_buffer *)self)->storage);
  hgpy_free_object(self);
}

static Py_ssize_t buffer_length(PyObject *self) { return (Py_ssize_t)((hgpy_buffer *)self)->count; }

static int buffer_get_view(PyObject *self, Py_buffer *view, int flags) {
  hgpy_buffer *buffer = own(self);
  view->obj = NULL;
  if (buffer == NULL) return -1;
  hg_tensor tensor = hgpy_buffer_tensor(buffer, buffer->count);
  if (hgpy_fill_view(view, self, buffer->storage, &tensor, buffer->storage->is_read_only, flags) < 0) return -1;
  buffer->exports++;
  return 0;
}

static void buffer_release_view(PyObject *self, Py_buffer *view) {
  ((hgpy_buffer *)self)->exports--;
  hgpy_array_release_buffer(self, view);
}

static PyObject *get_dtype(PyObject *self, void *unused) {
  (void)unused;
  return hgpy_type_object(((hgpy_buffer *)self)->type);
}

static PyObject *get_nbytes(PyObject *self, void *unused) {
  hgpy_buffer *buffer = (hgpy_buffer *)self;
  (void)unused;
  return PyLong_FromUnsignedLongLong(buffer->count * hgpy_type_bytes(buffer->type));
}

static PyObject *get_executor(PyObject *self, void *unused) {
  hgpy_buffer *buffer = own(self);
  (void)unused;
  return buffer != NULL ? hgpy_executor_for(buffer->storage->device) : NULL;
}

static PyObject *get_is_freed(PyObject *self, void *unused) {
  (void)unused;
  return PyBool_FromLong(((hgpy_buffer *)self)->storage == NULL);
}

static PyObject *buffer_repr(PyObject *self) {
  hgpy_buffer *buffer = (hgpy_buffer *)self;
  return PyUnicode_FromFormat("<hologram.Buffer: %llu of %s%s>", (unsigned long long)buffer->count,
                              hgpy_type_name(buffer->type), buffer->storage == NULL ? ", freed" : "");
}

static PyMethodDef buffer_methods[] = {
    {"from_numpy", buffer_from_numpy, METH_O,
     "from_numpy($self, array, /)\n--\n\nCopies an array of the buffer's type in, from the first element on; anything "
     "with the buffer protocol "
     "will do.\nTypeError for elements of another type, ValueError where they do not fit."},
    {"from_memoryview", buffer_from_numpy, METH_O, "from_memoryview($self, view, /)\n--\n\nThe same as from_numpy."},
    {"from_bytes", buffer_from_bytes, METH_O, "from_bytes($self, data, /)\n--\n\nCopies bytes in, whatever they were."},
    {"to_numpy", buffer_to_numpy, METH_NOARGS,
     "to_numpy($self)\n--\n\nA NumPy array with a copy of all elements. numpy.asarray(buffer) shares them on a CPU."},
    {"to_bytes", buffer_to_bytes, METH_NOARGS, "to_bytes($self)\n--\n\nA copy of all bytes."},
    {"to_list", buffer_to_list, METH_NOARGS, "to_list($self)\n--\n\nAll elements as Python numbers."},
    {"tolist", buffer_to_list, METH_NOARGS, "tolist($self)\n--\n\nAll elements as Python numbers."},
    {"array", buffer_array, METH_NOARGS, "array($self)\n--\n\nAn Array that shares the buffer's memory."},
    {"fill", buffer_fill, METH_O,
     "fill($self, value, /)\n--\n\nMakes every element a number, converted to the buffer's type."},
    {"assign", buffer_assign, METH_VARARGS,
     "assign($self, array, n=None, /)\n--\n\nComputes an Array into the first n elements, cast to the buffer's type."},
    {"copy_from", buffer_copy_from, METH_O,
     "copy_from($self, source, /)\n--\n\nCopies another buffer of the same type in, of any executor."},
    {"free", buffer_free, METH_NOARGS,
     "free($self)\n--\n\nGives the memory back now. Whatever uses the buffer afterwards is a ValueError; BufferError "
     "while views of it are alive."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef buffer_getset[] = {
    {"dtype", get_dtype, NULL, "The type of its elements.", NULL},
    {"nbytes", get_nbytes, NULL, "Bytes of its elements.", NULL},
    {"executor", get_executor, NULL, "The executor that it is on.", NULL},
    {"is_freed", get_is_freed, NULL, "Whether free() was called.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc,
     "n elements of one type on an executor: Executor.allocate makes them. On a CPU numpy.asarray(buffer) and "
     "memoryview(buffer) share its memory."},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_repr, buffer_repr},
    {Py_tp_methods, buffer_methods},
    {Py_tp_getset, buffer_getset},
    {Py_sq_length, buffer_length},
    {Py_bf_getbuffer, buffer_get_view},
    {Py_bf_releasebuffer, buffer_release_view},
    {0, NULL},
};

static PyType_Spec buffer_spec = {.name = "hologram.Buffer",
                                  .basicsize = sizeof(hgpy_buffer),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = buffer_slots};

int hgpy_buffer_add(PyObject *module) {
  hgpy_buffer_type = hgpy_add_type(module, &buffer_spec);
  return hgpy_buffer_type != NULL ? 0 : -1;
}
