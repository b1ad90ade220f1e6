/* exchange.c - memory that is shared with others: the buffer protocol and DLPack, both ways. */
#include "hgpy.h"

#include "dlpack.h"

/* ---- the buffer protocol, outwards ------------------------------------------------------------------------------- */

/* What a view of memory needs as long as it lives. */
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
  if (storage->device->backend != HG_BACKEND_CPU) return "its memory is a GPU's; numpy() and tolist() copy it";
  if (hgpy_type_format(type) == NULL)
    return "the buffer protocol has no word for its type; use __dlpack__, or cast it to float32";
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
  if (!hgpy_evaluate(&node, 1)) return -1;
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

/* ---- inwards ----------------------------------------------------------------------------------------------------- */

/* Where the elements of a tensor with these strides lie, relative to the first: in elements. */
static void find_reach(const hg_tensor *tensor, int64_t *lowest, int64_t *highest) {
  *lowest = *highest = 0;
  for (uint32_t d = 0; d < tensor->rank; d++) {
    if (tensor->shape[d] == 0) {
      *lowest = 0, *highest = -1;
      return;
    }
    int64_t reach = tensor->stride[d] * (int64_t)(tensor->shape[d] - 1);
    if (reach < 0) *lowest += reach;
    else *highest += reach;
  }
}

/* A node over memory whose first element is at `first`; it takes the owner. */
static hgpy_node *node_over(hgpy_device *device, void *first, hg_tensor *tensor, bool is_read_only, void *owner,
                            void (*release)(void *)) {
  int64_t lowest, highest, bytes = hgpy_type_bytes(tensor->type);
  find_reach(tensor, &lowest, &highest);
  tensor->offset = -lowest;
  hgpy_storage *storage = hgpy_storage_import(device, (char *)first + lowest * bytes,
                                              (uint64_t)((highest - lowest + 1) * bytes), owner, release);
  if (storage == NULL) return NULL;
  storage->is_read_only = is_read_only;
  return hgpy_node_data(storage, tensor);
}

static void release_view(void *owner) {
  PyBuffer_Release(owner);
  PyMem_Free(owner);
}

/* A tensor as the view lies; false: only a copy of it can be used. */
static bool tensor_of_view(const Py_buffer *view, uint32_t type, hg_tensor *tensor) {
  Py_ssize_t bytes = view->itemsize, stride = bytes;
  *tensor = (hg_tensor){.type = type, .rank = (uint32_t)view->ndim};
  if ((uintptr_t)view->buf % (size_t)bytes != 0) return false;
  for (int d = view->ndim - 1; d >= 0; d--) {
    Py_ssize_t has = view->strides != NULL ? view->strides[d] : stride;
    tensor->shape[d] = view->shape != NULL ? (uint64_t)view->shape[d] : (uint64_t)(view->len / bytes);
    if (has % bytes != 0) return false;
    tensor->stride[d] = has / bytes;
    stride *= (Py_ssize_t)tensor->shape[d];
  }
  return true;
}

/* A copy in C order. */
static hgpy_node *copy_view(Py_buffer *view, uint32_t type, hgpy_device *device) {
  hg_tensor tensor;
  (void)tensor_of_view(view, type, &tensor);
  for (int d = 0; d < view->ndim && view->shape != NULL; d++) tensor.shape[d] = (uint64_t)view->shape[d];
  tensor = hg_tensor_of(NULL, (atlas_type)type, tensor.rank, tensor.shape);
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
    PyErr_Format(PyExc_TypeError, "elements of format '%s' are of no type that arrays have", view->format);
  else if (view->ndim > HG_MAX_RANK)
    PyErr_Format(PyExc_ValueError, "%d axes; the highest rank is %d", view->ndim, HG_MAX_RANK);
  else if (may_copy < 2 && device->backend == HG_BACKEND_CPU && tensor_of_view(view, type, &tensor))
    return node_over(device, view->buf, &tensor, view->readonly, view, release_view);
  else if (may_copy == 2 ||
           (may_copy == 1 &&
            hgpy_allows("its memory cannot be shared with %s as it lies: array(x) or copy=True copies it",
                        device->backend == HG_BACKEND_CPU ? "arrays" : "a GPU")))
    node = copy_view(view, type, device);
  else if (may_copy == 1) node = NULL;
  else PyErr_SetString(PyExc_ValueError, "its memory cannot be shared as it lies, and copy is False");
  release_view(view);
  return node;
}


hgpy_node *hgpy_share(PyObject *object, hgpy_device *device, int may_copy) {
  Py_buffer *view = PyMem_Malloc(sizeof *view);
  if (view == NULL) return (hgpy_node *)PyErr_NoMemory();
  if (PyObject_GetBuffer(object, view, PyBUF_RECORDS_RO) == 0) return share_view(view, device, may_copy);
  PyMem_Free(view);
  return NULL;
}


/* ---- DLPack, inwards --------------------------------------------------------------------------------------------- */

static uint32_t type_of_dl(const dl_tensor *t) {
  static const struct {
    uint8_t code, bits, type;
  } rows[] = {{DL_INT, 8, ATLAS_i8},
              {DL_INT, 16, ATLAS_i16},
              {DL_INT, 32, ATLAS_i32},
              {DL_INT, 64, ATLAS_i64},
              {DL_UINT, 8, ATLAS_u8},
              {DL_UINT, 16, ATLAS_u16},
              {DL_UINT, 32, ATLAS_u32},
              {DL_UINT, 64, ATLAS_u64},
              {DL_FLOAT, 16, ATLAS_f16},
              {DL_FLOAT, 32, ATLAS_f32},
              {DL_FLOAT, 64, ATLAS_f64},
              {DL_BFLOAT, 16, ATLAS_bf16},
              {DL_BOOL, 8, ATLAS_bool},
              {DL_FLOAT8_E4M3FN, 8, ATLAS_f8e4m3},
              {DL_FLOAT8_E5M2, 8, ATLAS_f8e5m2}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (rows[i].code == t->code && rows[i].bits == t->bits && t->lanes == 1) return rows[i].type;
  return ATLAS_NONE;
}

static void release_versioned(void *owner) {
  dl_managed_versioned *m = owner;
  if (m->release != NULL) m->release(m);
}

static void release_managed(void *owner) {
  dl_managed *m = owner;
  if (m->release != NULL) m->release(m);
}

static hgpy_node *node_of_dl(dl_tensor *t, hgpy_device *device, bool is_read_only, void *owner,
                             void (*release)(void *)) {
  bool is_host = t->device.type == DL_CPU || t->device.type == DL_CUDA_HOST;
  bool is_gpu = t->device.type == DL_CUDA || t->device.type == DL_CUDA_MANAGED;
  uint32_t type = type_of_dl(t);
  hg_tensor tensor = {.type = type, .rank = (uint32_t)t->rank};
  const char *why = NULL;
  if (type == ATLAS_NONE) why = "its elements are of no type that arrays have";
  else if (t->rank > HG_MAX_RANK) why = "it has more axes than arrays can have";
  else if (device->backend == HG_BACKEND_CPU ? !is_host : !(is_gpu && device->backend == HG_BACKEND_CUDA))
    why = "its memory is not the executor's; give an executor of its device, or copy it there";
  char *first = (char *)t->data + t->byte_offset;
  if (why == NULL && (uintptr_t)first % hgpy_type_bytes(type) != 0)
    why = "its first element does not lie at a multiple of its size";
  if (why != NULL) {
    PyErr_Format(PyExc_BufferError, "from_dlpack: %s", why);
    release(owner);
    return NULL;
  }
  int64_t stride = 1;
  for (int32_t d = t->rank; d-- > 0;) {
    tensor.shape[d] = (uint64_t)t->shape[d];
    tensor.stride[d] = t->strides != NULL ? t->strides[d] : stride;
    stride *= t->shape[d];
  }
  return node_over(device, first, &tensor, is_read_only, owner, release);
}

static PyObject *ask_for_capsule(PyObject *object) {
  PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
  if (method == NULL) return PyErr_Format(PyExc_TypeError, "from_dlpack: %R has no __dlpack__", object);
  PyObject *nothing = PyTuple_New(0), *names = Py_BuildValue("{s:(ii)}", "max_version", 1, 1), *capsule = NULL;
  if (method != NULL && nothing != NULL && names != NULL) capsule = PyObject_Call(method, nothing, names);
  if (capsule == NULL && method != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) { /* older than 1.0 */
    PyErr_Clear();
    capsule = PyObject_Call(method, nothing, NULL);
  }
  Py_XDECREF(method), Py_XDECREF(nothing), Py_XDECREF(names);
  return capsule;
}

static hgpy_node *node_of_capsule(PyObject *capsule, hgpy_device *device) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    dl_managed_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (m->major != 1) return PyErr_Format(PyExc_BufferError, "from_dlpack: version %u of DLPack", m->major), NULL;
    if (PyCapsule_SetName(capsule, "used_dltensor_versioned") < 0) return NULL;
    return node_of_dl(&m->tensor, device, (m->flags & DL_READ_ONLY) != 0, m, release_versioned);
  }
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    if (PyCapsule_SetName(capsule, "used_dltensor") < 0) return NULL;
    return node_of_dl(&m->tensor, device, false, m, release_managed);
  }
  PyErr_SetString(PyExc_TypeError, "from_dlpack: __dlpack__ gave no capsule of DLPack, or one that was used already");
  return NULL;
}

PyObject *hgpy_from_dlpack(PyObject *object, hgpy_device *device) {
  PyObject *capsule = PyCapsule_CheckExact(object) ? Py_NewRef(object) : ask_for_capsule(object);
  if (capsule == NULL) return NULL;
  hgpy_node *node = node_of_capsule(capsule, device);
  Py_DECREF(capsule);
  return hgpy_array_of(node);
}

/* ---- DLPack, outwards -------------------------------------------------------------------------------------------- */

/* One object for both kinds of capsule. */
typedef struct package {
  union {
    dl_managed managed;
    dl_managed_versioned versioned;
  } as;
  hgpy_storage *storage;
  int64_t shape[HG_MAX_RANK], strides[HG_MAX_RANK];
} package;

/* Whoever releases it may do so without the GIL. */
static void free_package(package *p) {
  if (Py_IsInitialized()) {
    PyGILState_STATE state = PyGILState_Ensure();
    hgpy_storage_release(p->storage);
    PyMem_Free(p);
    PyGILState_Release(state);
  }
}

static void free_managed(dl_managed *self) { free_package(self->context); }
static void free_versioned(dl_managed_versioned *self) { free_package(self->context); }

static void drop_capsule(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor"))
    free_package(((dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->context);
  else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    free_package(((dl_managed_versioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned"))->context);
}

static void set_dl_type(dl_tensor *t, uint32_t type) {
  t->bits = (uint8_t)(8 * hgpy_type_bytes(type));
  t->lanes = 1;
  if (type == ATLAS_bool) t->code = DL_BOOL;
  else if (type == ATLAS_bf16) t->code = DL_BFLOAT;
  else if (type == ATLAS_f8e4m3) t->code = DL_FLOAT8_E4M3FN;
  else if (type == ATLAS_f8e5m2) t->code = DL_FLOAT8_E5M2;
  else t->code = hgpy_type_is_float(type) ? DL_FLOAT : type <= ATLAS_i64 ? DL_INT : DL_UINT;
}

static dl_device device_of(const hgpy_device *device) {
  return (dl_device){.type = device->backend == HG_BACKEND_CUDA    ? DL_CUDA
                             : device->backend == HG_BACKEND_METAL ? DL_METAL
                                                                   : DL_CPU};
}

static PyObject *pack(const hgpy_node *node, bool is_versioned, bool is_copy) {
  package *p = PyMem_Calloc(1, sizeof *p);
  if (p == NULL) return PyErr_NoMemory();
  const hg_tensor *tensor = &node->tensor;
  dl_tensor *t = is_versioned ? &p->as.versioned.tensor : &p->as.managed.tensor;
  t->data = (char *)node->storage->address;
  t->byte_offset = (uint64_t)tensor->offset * hgpy_type_bytes(tensor->type);
  t->device = device_of(node->device);
  t->rank = (int32_t)tensor->rank;
  t->shape = p->shape;
  t->strides = p->strides;
  set_dl_type(t, tensor->type);
  for (uint32_t d = 0; d < tensor->rank; d++) {
    p->shape[d] = (int64_t)tensor->shape[d];
    p->strides[d] = tensor->stride[d];
  }
  if (is_versioned) {
    p->as.versioned = (dl_managed_versioned){.major = 1, .minor = 0, .context = p, .release = free_versioned,
                                             .flags = is_copy ? DL_IS_COPIED : DL_READ_ONLY, .tensor = *t};
  } else {
    p->as.managed.context = p;
    p->as.managed.release = free_managed;
  }
  PyObject *capsule = PyCapsule_New(&p->as, is_versioned ? "dltensor_versioned" : "dltensor", drop_capsule);
  if (capsule != NULL) p->storage = hgpy_storage_retain(node->storage);
  else PyMem_Free(p);
  return capsule;
}

static long version_of(PyObject *object) {
  if (object == NULL || object == Py_None) return 0;
  PyObject *first = PySequence_GetItem(object, 0);
  long major = first != NULL ? PyLong_AsLong(first) : -1;
  Py_XDECREF(first);
  return major;
}

PyObject *hgpy_array_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  PyObject *max_version = NULL, *copy = Py_None, *wanted = Py_None;
  for (Py_ssize_t i = 0; names != NULL && i < PyTuple_Size(names); i++) {
    PyObject *name = PyTuple_GetItem(names, i), *value = arguments[count + i];
    if (PyUnicode_CompareWithASCIIString(name, "max_version") == 0) max_version = value;
    else if (PyUnicode_CompareWithASCIIString(name, "copy") == 0) copy = value;
    else if (PyUnicode_CompareWithASCIIString(name, "dl_device") == 0) wanted = value;
    else if (PyUnicode_CompareWithASCIIString(name, "stream") !=
             0) /* what is handed over is computed: any stream may read it */
      return PyErr_Format(PyExc_TypeError, "__dlpack__ has no argument '%U'", name);
  }
  long major = version_of(max_version);
  hgpy_node *node = hgpy_array_node(self);
  if ((major == -1 && PyErr_Occurred()) || !hgpy_evaluate(&node, 1) || !hgpy_device_wait(node->device)) return NULL;
  if (wanted != Py_None) {
    PyObject *first = PySequence_GetItem(wanted, 0);
    long type = first != NULL ? PyLong_AsLong(first) : -1;
    Py_XDECREF(first);
    if (PyErr_Occurred()) return NULL;
    if (type != device_of(node->device).type)
      return PyErr_Format(PyExc_BufferError, "the array is not on the device that is asked for");
  }
  if (node->storage->address == NULL && node->device->backend != HG_BACKEND_CPU && hg_tensor_count(&node->tensor) > 0)
    return PyErr_Format(PyExc_BufferError, "memory of this device cannot be shared yet; numpy() copies it");
  hgpy_node *given = copy == Py_True ? hgpy_copy(node) : hgpy_node_retain(node);
  if (given == NULL) return NULL;
  PyObject *capsule = pack(given, major >= 1, copy == Py_True);
  hgpy_node_release(given);
  return capsule;
}

PyObject *hgpy_array_dlpack_device(PyObject *self, PyObject *nothing) {
  hgpy_device *device = hgpy_array_node(self)->device;
  (void)nothing;
  if (device == NULL) device = hgpy_default_device();
  if (device == NULL) return NULL;
  return Py_BuildValue("(ii)", (int)device_of(device).type, 0);
}
