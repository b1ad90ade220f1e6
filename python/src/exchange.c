/* exchange.c - memory shared through the buffer protocol and the array interfaces of NumPy and Numba. */
#include "hgpy.h"

#include <stdio.h>

/* ---- the buffer protocol: exports -------------------------------------------------------------------------------- */

/* What a view of memory needs while it lives. */
typedef struct exported {
  hgpy_storage *storage;
  Py_ssize_t shape[HG_MAX_RANK], strides[HG_MAX_RANK];
} exported;

static bool is_dense(const Py_buffer *view, bool is_c) {
  Py_ssize_t stride = view->itemsize;
  for (int i = 0; i < view->ndim; i++) {
    int d = is_c ? view->ndim - 1 - i : i;
    if (view->shape[d] == 0) return true;
    if (view->shape[d] > 1 && view->strides[d] != stride) return false;
    stride *= view->shape[d];
  }
  return true;
}

static const char *refuse_view(const Py_buffer *view, const hgpy_storage *storage, uint32_t type, bool is_read_only,
                               int flags) {
  if (hgpy_type_format(type) == NULL)
    return "the buffer protocol has no word for its type; use __dlpack__, or cast it to float32";
  if (storage->device->backend != HG_BACKEND_CPU && view->len > 0)
    return "its memory is a GPU's; numpy() and tolist() copy it";
  if (is_read_only && (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) return "an Array is a value: its memory is read-only";
  bool is_c = is_dense(view, true), is_fortran = is_dense(view, false);
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !is_c)
    return "its elements do not lie side by side, and no strides were asked for";
  if ((flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS && !is_c) return "its elements do not lie in C order";
  if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_fortran)
    return "its elements do not lie in Fortran's order";
  if ((flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS && !is_c && !is_fortran)
    return "its elements do not lie side by side";
  return NULL;
}

int hgpy_fill_view(Py_buffer *view, PyObject *object, hgpy_storage *storage, const hg_tensor *tensor, bool is_read_only,
                   int flags) {
  static char nothing[8];
  exported *e = PyMem_Malloc(sizeof *e);
  view->obj = NULL;
  if (e == NULL) return PyErr_NoMemory(), -1;
  Py_ssize_t bytes = (Py_ssize_t)hgpy_type_bytes(tensor->type);
  view->itemsize = bytes;
  view->ndim = (int)tensor->rank;
  view->len = (Py_ssize_t)hg_tensor_count(tensor) * bytes;
  for (uint32_t d = 0; d < tensor->rank; d++) {
    e->shape[d] = (Py_ssize_t)tensor->shape[d];
    e->strides[d] = (Py_ssize_t)tensor->stride[d] * bytes;
  }
  view->shape = e->shape;
  view->strides = e->strides;
  const char *refusal = refuse_view(view, storage, tensor->type, is_read_only, flags);
  if (refusal != NULL) {
    PyMem_Free(e);
    PyErr_SetString(PyExc_BufferError, refusal);
    return -1;
  }
  view->buf = storage->address != NULL ? (char *)storage->address + tensor->offset * bytes : nothing;
  view->readonly = is_read_only;
  view->format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? (char *)(uintptr_t)hgpy_type_format(tensor->type) : NULL;
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES) view->strides = NULL;
  if ((flags & PyBUF_ND) != PyBUF_ND) view->shape = NULL;
  view->suboffsets = NULL;
  e->storage = hgpy_storage_retain(storage);
  view->internal = e;
  view->obj = Py_NewRef(object);
  return 0;
}

int hgpy_array_get_buffer(PyObject *self, Py_buffer *view, int flags) {
  hgpy_node *node = hgpy_array_node(self), *dense = NULL;
  view->obj = NULL;
  if (!hgpy_expose(node, HGPY_AS_MEMORY)) return -1;
  if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS)
    dense = hgpy_dense(node, false);
  else dense = hgpy_node_retain(node);
  if (dense == NULL) return -1;
  int result = hgpy_fill_view(view, self, dense->storage, &dense->tensor, true, flags);
  hgpy_node_release(dense);
  return result;
}

void hgpy_array_release_buffer(PyObject *self, Py_buffer *view) {
  exported *e = view->internal;
  (void)self;
  hgpy_storage_release(e->storage);
  PyMem_Free(e);
}

/* ---- imports ----------------------------------------------------------------------------------------------------- */

/* Computes the range of used bytes from sizes, strides and the first address, whatever protocol described them. Only
 * the exporter can know whether the range is its own. */
static bool find_range(const hg_tensor *tensor, const char *first, char **memory, uint64_t *byte_count) {
  int64_t lowest, bytes = hgpy_type_bytes(tensor->type);
  uint64_t count;
  const char *why = NULL;
  if (hg_tensor_extent(tensor, &lowest, &count) != HG_OK) why = hg_last_error();
  else if ((uintptr_t)first % (uintptr_t)bytes != 0) why = "its first element does not lie at a multiple of its size";
  else if (count > 0 && first == NULL) why = "its elements would lie at address 0";
  else if (count > 0 && (uintptr_t)first <= (uint64_t)(-lowest * bytes)) why = "its strides lead below address 0";
  else if (count > 0 && (uint64_t)((int64_t)count + lowest) * (uint64_t)bytes > UINTPTR_MAX - (uintptr_t)first)
    why = "it reaches beyond the last address";
  if (why != NULL) return PyErr_Format(PyExc_BufferError, "memory that cannot be shared: %s", why), false;
  *memory = count > 0 ? (char *)(uintptr_t)first + lowest * bytes : NULL;
  *byte_count = count * (uint64_t)bytes;
  return true;
}

hgpy_node *hgpy_node_over(hgpy_device *device, void *first, hg_tensor *tensor, bool is_read_only, void *owner,
                          void (*release)(void *)) {
  char *memory;
  uint64_t byte_count;
  if (!find_range(tensor, first, &memory, &byte_count)) {
    hgpy_give_back(owner, release);
    return NULL;
  }
  tensor->offset = byte_count > 0 ? ((char *)first - memory) / (int64_t)hgpy_type_bytes(tensor->type) : 0;
  hgpy_storage *storage = hgpy_storage_import(device, memory, byte_count, owner, release);
  if (storage == NULL) return NULL;
  storage->is_read_only = is_read_only;
  return hgpy_node_data(storage, tensor);
}

static void release_view(void *owner) {
  PyBuffer_Release(owner);
  PyMem_Free(owner);
}

/* A tensor with the view's layout; false: only a copy can be used. */
static bool tensor_of_view(const Py_buffer *view, uint32_t type, hg_tensor *tensor) {
  Py_ssize_t bytes = view->itemsize;
  bool is_whole = (uintptr_t)view->buf % (size_t)bytes == 0;
  if (view->strides == NULL) {
    *tensor = hg_tensor_of(NULL, (atlas_type)type, (uint32_t)view->ndim, (const uint64_t *)view->shape);
    return is_whole;
  }
  *tensor = (hg_tensor){.type = type, .rank = (uint32_t)view->ndim};
  for (int d = 0; d < view->ndim; d++) {
    is_whole = is_whole && view->strides[d] % bytes == 0;
    tensor->shape[d] = (uint64_t)view->shape[d];
    tensor->stride[d] = view->strides[d] / bytes;
  }
  return is_whole;
}

/* A copy in C order. */
static hgpy_node *copy_view(Py_buffer *view, uint32_t type, hgpy_device *device) {
  hg_tensor tensor = hg_tensor_of(NULL, (atlas_type)type, (uint32_t)view->ndim, (const uint64_t *)view->shape);
  int64_t lowest;
  uint64_t count;
  if (hg_tensor_extent(&tensor, &lowest, &count) != HG_OK || count * hgpy_type_bytes(type) != (uint64_t)view->len)
    return PyErr_Format(PyExc_BufferError, "a buffer of %zd bytes whose shape is of another size", view->len), NULL;
  hgpy_storage *storage = hgpy_storage_create(device, (uint64_t)view->len, false);
  if (storage == NULL || view->len == 0) return hgpy_node_data(storage, &tensor);
  bool is_good;
  if (storage->address != NULL) is_good = PyBuffer_ToContiguous(storage->address, view, view->len, 'C') == 0;
  else {
    void *host = PyMem_Malloc((size_t)view->len);
    if (host == NULL) PyErr_NoMemory();
    is_good = host != NULL && PyBuffer_ToContiguous(host, view, view->len, 'C') == 0 &&
              hgpy_ok(hg_buffer_write(storage->buffer, 0, host, (uint64_t)view->len));
    PyMem_Free(host);
  }
  if (is_good) return hgpy_node_data(storage, &tensor);
  hgpy_storage_release(storage);
  return NULL;
}

static hgpy_node *share_view(Py_buffer *view, hgpy_device *device, int may_copy) {
  hg_tensor tensor;
  uint32_t type = hgpy_type_from_format(view->format, view->itemsize);
  hgpy_node *node = NULL;
  if (type == ATLAS_NONE)
    PyErr_Format(PyExc_TypeError, "elements of format '%s' are of no type that arrays have",
                 view->format != NULL ? view->format : "");
  else if (view->ndim > HG_MAX_RANK)
    PyErr_Format(PyExc_ValueError, "%d axes; the highest rank is %d", view->ndim, HG_MAX_RANK);
  else if (may_copy < 2 && device->backend == HG_BACKEND_CPU && tensor_of_view(view, type, &tensor))
    return hgpy_node_over(device, view->buf, &tensor, view->readonly, view, release_view);
  else if (may_copy == 2 ||
           (may_copy == 1 &&
            hgpy_allows("its memory cannot be shared with %s as it lies: array(x) or copy=True copies it",
                        device->backend == HG_BACKEND_CPU ? "arrays" : "a GPU")))
    node = copy_view(view, type, device);
  else if (may_copy == 1) node = NULL;
  else PyErr_SetString(PyExc_ValueError, "its memory cannot be shared as it lies, and copy is False");
  hgpy_give_back(view, release_view);
  return node;
}

/* Refuses NumPy's masked arrays, whose buffers have invalid elements. Caches the last type, because most objects are of
 * the same type. */
static bool has_masked(PyObject *object) {
  static PyObject *plain; /* the last other type, referenced */
  PyObject *type = (PyObject *)Py_TYPE(object);
  if (type == plain) return false;
  PyObject *mask = PyObject_HasAttrString(type, "_baseclass") ? PyObject_GetAttrString(object, "mask") : NULL;
  if (mask == NULL) {
    PyErr_Clear();
    Py_XDECREF(plain);
    plain = Py_NewRef(type);
    return false;
  }
  PyObject *any = PyObject_CallMethod(mask, "any", NULL);
  int is_masked = any != NULL ? PyObject_IsTrue(any) : 0;
  if (is_masked > 0)
    PyErr_SetString(PyExc_ValueError, "elements of a masked array are not there, which arrays have none of: fill them "
                                      "first, as in x.filled(0)");
  Py_DECREF(mask);
  Py_XDECREF(any);
  return is_masked != 0 || PyErr_Occurred();
}

hgpy_node *hgpy_share(PyObject *object, hgpy_device *device, int may_copy) {
  if (has_masked(object)) return NULL;
  Py_buffer *view = PyMem_Malloc(sizeof *view);
  if (view == NULL) return (hgpy_node *)PyErr_NoMemory();
  bool is_view = PyObject_GetBuffer(object, view, PyBUF_RECORDS_RO) == 0;
  /* NumPy's dates and strings export bytes, its numbers an element */
  bool is_number = is_view && (view->itemsize > 1 || view->ndim == 0 || !hgpy_is_scalar(object));
  if (is_number) return share_view(view, device, may_copy);
  if (is_view) {
    PyErr_Format(PyExc_TypeError, "%R is no number that arrays have", object);
    PyBuffer_Release(view);
  }
  PyMem_Free(view);
  return NULL;
}

/* ---- array interfaces: exports ----------------------------------------------------------------------------------- */

/* Users of an interface hold the array, not its memory, and an assignment may give an array other memory. */
typedef struct hgpy_shown {
  struct hgpy_shown *next;
  hgpy_storage *storage;
} hgpy_shown;

static bool show(hgpy_array *array) {
  hgpy_storage *storage = array->node->storage;
  for (hgpy_shown *s = array->shown; s != NULL; s = s->next)
    if (s->storage == storage) return true;
  hgpy_shown *s = PyMem_Malloc(sizeof *s);
  if (s == NULL) return PyErr_NoMemory(), false;
  *s = (hgpy_shown){.next = array->shown, .storage = hgpy_storage_retain(storage)};
  array->shown = s;
  return true;
}

void hgpy_array_hide(hgpy_array *array) {
  while (array->shown != NULL) {
    hgpy_shown *s = array->shown;
    array->shown = s->next;
    hgpy_release_after(s->storage->device, HGPY_DEFAULT_STREAM, s->storage);
    PyMem_Free(s);
  }
}

static PyObject *strides_object(const hg_tensor *tensor) {
  PyObject *tuple = PyTuple_New((Py_ssize_t)tensor->rank);
  for (uint32_t d = 0; tuple != NULL && d < tensor->rank; d++) {
    PyObject *bytes = PyLong_FromLongLong(tensor->stride[d] * hgpy_type_bytes(tensor->type));
    if (bytes == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)d, bytes) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject *describe(const hgpy_node *node, bool is_gpu) {
  const hg_tensor *tensor = &node->tensor;
  uint32_t bytes = hgpy_type_bytes(tensor->type);
  char kind = tensor->type == ATLAS_bool               ? 'b'
              : hgpy_type_is_float(tensor->type)       ? 'f'
              : tensor->type <= ATLAS_i64              ? 'i'
                                                       : 'u';
  char word[8];
  char *address = hg_buffer_address(node->storage->buffer);
  bool is_there = address != NULL && hg_tensor_count(tensor) > 0;
  snprintf(word, sizeof word, "%c%c%u", bytes == 1 ? '|' : '<', kind, (unsigned)bytes);
  void *first = is_there ? address + tensor->offset * (int64_t)bytes : NULL;
  PyObject *result = Py_BuildValue("{s:N,s:s,s:(NO),s:N,s:i}", "shape", hgpy_shape_object(tensor->rank, tensor->shape),
                                   "typestr", word, "data", PyLong_FromVoidPtr(first), Py_True, "strides",
                                   strides_object(tensor), "version", 3);
  PyObject *stream = is_gpu && result != NULL ? PyLong_FromLong(HGPY_DEFAULT_STREAM) : NULL;
  if (is_gpu && (stream == NULL || PyDict_SetItemString(result, "stream", stream) < 0)) Py_CLEAR(result);
  Py_XDECREF(stream);
  return result;
}

PyObject *hgpy_array_interface(PyObject *self, void *of_cuda) {
  hgpy_node *node = hgpy_array_node(self);
  bool is_gpu = of_cuda != NULL;
  hgpy_device *device = node->device != NULL ? node->device : hgpy_default_device();
  if (device == NULL) return NULL;
  if (device->backend != (is_gpu ? HG_BACKEND_CUDA : HG_BACKEND_CPU) || hgpy_type_format(node->tensor.type) == NULL)
    return PyErr_Format(PyExc_AttributeError, "an array of %s on %s has no such interface",
                        hgpy_type_name(node->tensor.type), device->backend == HG_BACKEND_CPU ? "the CPU" : "a GPU");
  if (!hgpy_expose(node, HGPY_AS_MEMORY) || !show((hgpy_array *)self)) return NULL;
  return hgpy_order_before(device, HGPY_DEFAULT_STREAM) ? describe(node, is_gpu) : NULL;
}

/* ---- array interfaces: imports (hologram/_create.py reads them) -------------------------------------------------- */

void hgpy_release_object(void *object) { Py_DECREF((PyObject *)object); }

/* Strides in bytes, or None: C order. */
static bool read_strides(PyObject *object, hg_tensor *tensor) {
  int64_t bytes = hgpy_type_bytes(tensor->type);
  if (object == Py_None) {
    *tensor = hg_tensor_of(NULL, (atlas_type)tensor->type, tensor->rank, tensor->shape);
    return true;
  }
  if (!PyTuple_Check(object) || PyTuple_Size(object) != (Py_ssize_t)tensor->rank)
    return PyErr_SetString(PyExc_ValueError, "an array interface with other strides than sizes"), false;
  for (uint32_t d = 0; d < tensor->rank; d++) {
    long long stride = PyLong_AsLongLong(PyTuple_GetItem(object, (Py_ssize_t)d));
    if (stride == -1 && PyErr_Occurred()) return false;
    if (stride % bytes != 0)
      return PyErr_SetString(PyExc_BufferError, "strides that are no multiple of the size"), false;
    tensor->stride[d] = stride / bytes;
  }
  return true;
}

/* adopt(owner, address, dtype, shape, strides, is read-only, executor or None, CUDA stream or None, is on a GPU) */
PyObject *hgpy_adopt(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 9) return PyErr_Format(PyExc_TypeError, "adopt takes nine arguments");
  bool is_gpu = PyObject_IsTrue(values[8]) == 1;
  hgpy_device *device = values[6] != Py_None ? hgpy_device_of(values[6])
                        : is_gpu             ? hgpy_device_at(HG_BACKEND_CUDA, 0)
                                             : hgpy_device_at(HG_BACKEND_CPU, 0);
  void *first = (void *)(uintptr_t)PyLong_AsUnsignedLongLong(values[1]); /* raises for negative numbers */
  uint32_t type = hgpy_type_from(values[2]);
  hg_tensor tensor = {.type = type};
  if (device == NULL || type == ATLAS_NONE || PyErr_Occurred()) return NULL;
  if (!hgpy_shape_from(values[3], tensor.shape, &tensor.rank) || !read_strides(values[4], &tensor)) return NULL;
  if (device->backend != (is_gpu ? HG_BACKEND_CUDA : HG_BACKEND_CPU))
    return PyErr_Format(PyExc_BufferError, "its memory is not the executor's");
  if (values[7] != Py_None) {
    long long stream = PyLong_AsLongLong(values[7]);
    if (stream <= 0) return PyErr_Format(PyExc_ValueError, "an array interface with no stream of CUDA: %R", values[7]);
    if (!hgpy_order_after(device, (uintptr_t)stream)) return NULL;
  }
  return hgpy_array_of(
      hgpy_node_over(device, first, &tensor, PyObject_IsTrue(values[5]) == 1, Py_NewRef(values[0]),
                     hgpy_release_object));
}
