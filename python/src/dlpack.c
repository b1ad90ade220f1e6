/* dlpack.c - memory that is shared by DLPack, both ways: capsules, and the table of C functions. */
#include "hgpy.h"

#include "plans.h"

/* ---- types and devices ------------------------------------------------------------------------------------------- */

typedef struct type_pair {
  uint8_t code, bits, type;
} type_pair;

/* Frequent types come first. */
static const type_pair pairs[] = {{DL_FLOAT, 32, ATLAS_f32},
                                  {DL_INT, 64, ATLAS_i64},
                                  {DL_FLOAT, 64, ATLAS_f64},
                                  {DL_BOOL, 8, ATLAS_bool},
                                  {DL_BFLOAT, 16, ATLAS_bf16},
                                  {DL_FLOAT, 16, ATLAS_f16},
                                  {DL_INT, 32, ATLAS_i32},
                                  {DL_UINT, 8, ATLAS_u8},
                                  {DL_INT, 8, ATLAS_i8},
                                  {DL_INT, 16, ATLAS_i16},
                                  {DL_UINT, 16, ATLAS_u16},
                                  {DL_UINT, 32, ATLAS_u32},
                                  {DL_UINT, 64, ATLAS_u64},
                                  {DL_FLOAT8_E4M3FN, 8, ATLAS_f8e4m3},
                                  {DL_FLOAT8_E5M2, 8, ATLAS_f8e5m2}};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

static uint32_t type_of_dl(const dl_tensor *t) {
  for (size_t i = 0; i < PAIRS; i++)
    if (pairs[i].code == t->code && pairs[i].bits == t->bits && t->lanes == 1) return pairs[i].type;
  return ATLAS_NONE;
}

static void set_dl_type(dl_tensor *t, uint32_t type) {
  for (size_t i = 0; i < PAIRS; i++)
    if (pairs[i].type == type) t->code = pairs[i].code, t->bits = pairs[i].bits;
  t->lanes = 1;
}

static dl_device dl_device_of(const hgpy_device *device) {
  return (dl_device){.type = device->backend == HG_BACKEND_CUDA    ? DL_CUDA
                             : device->backend == HG_BACKEND_METAL ? DL_METAL
                                                                   : DL_CPU,
                     .number = (int32_t)device->number};
}

static bool is_gpu(dl_device d) { return d.type == DL_CUDA || d.type == DL_CUDA_MANAGED; }

static bool is_host(dl_device d) { return d.type == DL_CPU || d.type == DL_CUDA_HOST; }

/* The executor of that memory, borrowed; NULL: raised. */
static hgpy_device *device_at(dl_device d) {
  if (is_host(d)) return hgpy_device_at(HG_BACKEND_CPU, 0);
  if (is_gpu(d)) return hgpy_device_at(HG_BACKEND_CUDA, (uint32_t)d.number);
  PyErr_Format(PyExc_BufferError, "from_dlpack: memory of DLPack's device type %d cannot be shared", (int)d.type);
  return NULL;
}

/* `device` NULL: any device. */
static bool is_of_device(dl_device place, const hgpy_device *device) {
  if (device == NULL) return is_host(place) || place.type == DL_CUDA;
  return device->backend == HG_BACKEND_CPU ? is_host(place)
                                           : device->backend == HG_BACKEND_CUDA && place.type == DL_CUDA &&
                                                 place.number == (int32_t)device->number;
}

hgpy_device *hgpy_device_beside(dl_device place, hgpy_device *other) {
  return other != NULL && is_of_device(place, other) ? other : device_at(place);
}

/* A pair of ints; false: raised. */
static bool pair_from(PyObject *object, const char *what, long values[2]) {
  if (PyTuple_Check(object) && PyTuple_Size(object) == 2) {
    values[0] = PyLong_AsLong(PyTuple_GetItem(object, 0));
    values[1] = PyErr_Occurred() ? -1 : PyLong_AsLong(PyTuple_GetItem(object, 1));
    return !PyErr_Occurred();
  }
  PyErr_Format(PyExc_TypeError, "%s is a tuple of two ints, not %R", what, object);
  return false;
}

/* ---- inwards ----------------------------------------------------------------------------------------------------- */

static void release_versioned(void *owner) {
  dl_managed_versioned *m = owner;
  if (m->release != NULL) m->release(m);
}

static void release_managed(void *owner) {
  dl_managed *m = owner;
  if (m->release != NULL) m->release(m);
}

static const char *refuse_dl(const dl_tensor *t, uint32_t type, const hgpy_device *device) {
  bool is_there = device->backend == HG_BACKEND_CPU ? is_host(t->device)
                  : device->backend == HG_BACKEND_CUDA
                      ? is_gpu(t->device) && t->device.number == (int32_t)device->number
                      : false;
  if (type == ATLAS_NONE) return "its elements are of no type that arrays have";
  if (t->rank < 0 || t->rank > HG_MAX_RANK) return "it has fewer axes than none, or more than arrays can have";
  if (t->rank > 0 && t->shape == NULL) return "it has axes, and its shape is NULL";
  if (!is_there) return "its memory is not the executor's; give an executor of its device, or copy it there";
  if (t->byte_offset >> 56 != 0 || (t->data == NULL && t->byte_offset > 0) ||
      t->byte_offset > UINTPTR_MAX - (uintptr_t)t->data)
    return "its offset leads beyond any memory";
  return NULL;
}

/* strides NULL: C order. Leaves entries beyond the rank unchanged. */
static void read_layout(const dl_tensor *t, uint32_t type, hg_tensor *tensor) {
  if (t->strides == NULL) {
    *tensor = hg_tensor_of(NULL, (atlas_type)type, (uint32_t)t->rank, (const uint64_t *)t->shape);
    return;
  }
  tensor->buffer = NULL;
  tensor->type = type;
  tensor->rank = (uint32_t)t->rank;
  tensor->offset = 0;
  tensor->reserved[0] = tensor->reserved[1] = 0;
  for (int32_t d = 0; d < t->rank; d++) {
    tensor->shape[d] = (uint64_t)t->shape[d];
    tensor->stride[d] = t->strides[d];
  }
}

static bool tensor_of_dl(const dl_tensor *t, const hgpy_device *device, hg_tensor *tensor) {
  uint32_t type = type_of_dl(t);
  const char *why = refuse_dl(t, type, device);
  if (why != NULL) return PyErr_Format(PyExc_BufferError, "from_dlpack: %s", why), false;
  read_layout(t, type, tensor);
  return true;
}

static hgpy_node *node_of_dl(const dl_tensor *t, hgpy_device *device, bool is_read_only, void *owner,
                             void (*release)(void *)) {
  hg_tensor tensor;
  if (tensor_of_dl(t, device, &tensor)) {
    char *first = t->data != NULL ? (char *)t->data + t->byte_offset : NULL; /* an empty tensor may have no memory */
    return hgpy_node_over(device, first, &tensor, is_read_only, owner, release);
  }
  hgpy_give_back(owner, release);
  return NULL;
}

static hgpy_node *node_of_versioned(dl_managed_versioned *m, hgpy_device *device) {
  if (device == NULL) device = device_at(m->tensor.device);
  if (device != NULL) return node_of_dl(&m->tensor, device, (m->flags & DL_READ_ONLY) != 0, m, release_versioned);
  hgpy_give_back(m, release_versioned);
  return NULL;
}

static hgpy_node *node_of_capsule(PyObject *capsule, hgpy_device *device) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    dl_managed_versioned *m = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    if (m->major != DL_MAJOR)
      return PyErr_Format(PyExc_BufferError, "from_dlpack: version %u of DLPack", m->major), NULL;
    if (PyCapsule_SetName(capsule, "used_dltensor_versioned") < 0) return NULL;
    return node_of_versioned(m, device);
  }
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    dl_managed *m = PyCapsule_GetPointer(capsule, "dltensor");
    if (device == NULL) device = device_at(m->tensor.device);
    if (device == NULL || PyCapsule_SetName(capsule, "used_dltensor") < 0) return NULL;
    return node_of_dl(&m->tensor, device, false, m, release_managed);
  }
  PyErr_SetString(PyExc_TypeError, "from_dlpack: __dlpack__ gave no capsule of DLPack, or one that was used already");
  return NULL;
}

/* Orders this package's work after the work that the object's owner has submitted to its stream, by asking the owner to
 * order that before the driver's default stream. */
static PyObject *call_dlpack(PyObject *method, bool on_gpu, bool is_versioned) {
  PyObject *nothing = PyTuple_New(0), *names = PyDict_New(), *capsule = NULL;
  PyObject *stream = PyLong_FromLong(HGPY_DEFAULT_STREAM), *version = Py_BuildValue("(ii)", DL_MAJOR, DL_MINOR);
  bool is_good = nothing != NULL && names != NULL && stream != NULL && version != NULL;
  if (is_good && on_gpu) is_good = PyDict_SetItemString(names, "stream", stream) == 0;
  if (is_good && is_versioned) is_good = PyDict_SetItemString(names, "max_version", version) == 0;
  if (is_good) capsule = PyObject_Call(method, nothing, names);
  Py_XDECREF(nothing), Py_XDECREF(names), Py_XDECREF(stream), Py_XDECREF(version);
  return capsule;
}

static PyObject *ask_for_capsule(PyObject *object, bool on_gpu) {
  PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
  if (method == NULL) return PyErr_Format(PyExc_TypeError, "from_dlpack: %R has no __dlpack__", object);
  PyObject *capsule = call_dlpack(method, on_gpu, true);
  if (capsule == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) { /* for versions before 1.0 */
    PyErr_Clear();
    capsule = call_dlpack(method, on_gpu, false);
  }
  Py_DECREF(method);
  return capsule;
}

/* The device that the object names; without one, the CPU. False: raised. */
static bool place_of(PyObject *object, dl_device *place) {
  long values[2] = {DL_CPU, 0};
  *place = (dl_device){.type = DL_CPU};
  PyObject *method = PyObject_GetAttrString(object, "__dlpack_device__");
  if (method == NULL) return PyErr_Clear(), true;
  PyObject *pair = PyObject_CallNoArgs(method), *type = NULL;
  Py_DECREF(method);
  if (pair != NULL && (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2))
    PyErr_Format(PyExc_TypeError, "from_dlpack: __dlpack_device__ gave %R, not a pair of numbers", pair);
  else if (pair != NULL) { /* the type may be an enum */
    type = PyNumber_Long(PyTuple_GetItem(pair, 0));
    values[0] = type != NULL ? PyLong_AsLong(type) : -1;
    values[1] = PyErr_Occurred() ? 0 : PyLong_AsLong(PyTuple_GetItem(pair, 1));
  }
  Py_XDECREF(type), Py_XDECREF(pair);
  *place = (dl_device){.type = (int32_t)values[0], .number = (int32_t)values[1]};
  return !PyErr_Occurred();
}

/* A tensor of PyTorch whose memory has its elements with the other sign gives a copy of itself that has them as they
 * are read; others themselves. (One of conjugates is complex, which arrays are not.) */
static PyObject *resolved(PyObject *object) {
  hgpy_family *f = hgpy_family_of(Py_TYPE(object));
  int is_other = f->is_negative != NULL ? hgpy_is_negative(f, object) : f->asks_another;
  if (is_other < 0) return NULL;
  PyObject *method = is_other ? PyObject_GetAttrString(object, "resolve_neg") : NULL;
  if (method == NULL) return PyErr_Clear(), Py_NewRef(object);
  PyObject *plain = PyObject_CallNoArgs(method);
  Py_DECREF(method);
  return plain;
}

static PyObject *from_dlpack(PyObject *object, hgpy_device *device) {
  dl_device place = {.type = DL_CPU};
  bool is_capsule = PyCapsule_CheckExact(object);
  if (!is_capsule && !place_of(object, &place)) return NULL;
  if (!is_capsule && device == NULL) device = device_at(place);
  if (!is_capsule && device == NULL) return NULL;
  PyObject *capsule = is_capsule ? Py_NewRef(object) : ask_for_capsule(object, is_gpu(place));
  if (capsule == NULL) return NULL;
  hgpy_node *node = node_of_capsule(capsule, device);
  Py_DECREF(capsule);
  if (node == NULL || hgpy_order_after(node->device, HGPY_DEFAULT_STREAM)) return hgpy_array_of(node);
  hgpy_node_release(node);
  return NULL;
}

/* By the table of the object's own type. NULL with nothing raised: the object is asked by its methods, which say, too,
 * why something cannot be shared. */
static PyObject *from_table(PyObject *object, hgpy_device *device) {
  const hgpy_family *f = hgpy_family_of(Py_TYPE(object));
  if (!f->is_own_table || f->asks_another || hgpy_requires_grad(f, object) != 0) return PyErr_Clear(), NULL;
  PyObject *array = hgpy_import_by_table(object, device);
  if (array == NULL) PyErr_Clear();
  if (array != Py_None) return array;
  Py_DECREF(array);
  return NULL;
}

PyObject *hgpy_from_dlpack(PyObject *object, hgpy_device *device) {
  PyObject *made = from_table(object, device);
  if (made != NULL) return made;
  PyObject *plain = resolved(object);
  PyObject *array = plain != NULL ? from_dlpack(plain, device) : NULL;
  Py_XDECREF(plain);
  return array;
}

/* ---- outwards ---------------------------------------------------------------------------------------------------- */

/* One object for both kinds of capsule. */
typedef struct package {
  union {
    dl_managed managed;
    dl_managed_versioned versioned;
  } as;
  hgpy_storage *storage;
  uintptr_t behind; /* the consumer's stream; 0: none, or unknown */
  int64_t shape[HG_MAX_RANK], strides[HG_MAX_RANK];
} package;

/* The consumer may release it without the GIL, and before its own work on it is done. */
static void free_package(package *p) {
  if (Py_IsInitialized()) {
    PyGILState_STATE state = PyGILState_Ensure();
    if (p->behind != 0) hgpy_release_after(p->storage->device, p->behind, p->storage);
    else hgpy_storage_release(p->storage);
    PyMem_Free(p);
    PyGILState_Release(state);
  }
}

static void free_managed(dl_managed *self) { free_package(self->context); }
static void free_versioned(dl_managed_versioned *self) { free_package(self->context); }

/* For a capsule without a consumer: nobody has worked on the memory. */
static void drop_package(package *p) {
  p->behind = 0;
  free_package(p);
}

static void drop_capsule(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor"))
    drop_package(((dl_managed *)PyCapsule_GetPointer(capsule, "dltensor"))->context);
  else if (PyCapsule_IsValid(capsule, "dltensor_versioned"))
    drop_package(((dl_managed_versioned *)PyCapsule_GetPointer(capsule, "dltensor_versioned"))->context);
}

static void describe(dl_tensor *t, const hgpy_storage *storage, const hg_tensor *tensor, int64_t *shape,
                     int64_t *strides) {
  void *address = hg_buffer_address(storage->buffer);
  *t = (dl_tensor){.data = hg_tensor_count(tensor) > 0 ? address : NULL,
                   .device = dl_device_of(storage->device),
                   .rank = (int32_t)tensor->rank,
                   .shape = shape,
                   .strides = strides,
                   .byte_offset = (uint64_t)tensor->offset * hgpy_type_bytes(tensor->type)};
  if (t->data == NULL) t->byte_offset = 0;
  set_dl_type(t, tensor->type);
  for (uint32_t d = 0; d < tensor->rank; d++) {
    shape[d] = (int64_t)tensor->shape[d];
    strides[d] = tensor->stride[d];
  }
}

static package *new_package_of(hgpy_storage *storage, const hg_tensor *tensor, bool is_versioned, uint64_t flags,
                               uintptr_t behind) {
  package *p = PyMem_Malloc(sizeof *p);
  if (p == NULL) return (package *)PyErr_NoMemory();
  if (is_versioned)
    p->as.versioned = (dl_managed_versioned){
        .major = DL_MAJOR, .minor = DL_MINOR, .context = p, .release = free_versioned, .flags = flags};
  else p->as.managed = (dl_managed){.context = p, .release = free_managed};
  describe(is_versioned ? &p->as.versioned.tensor : &p->as.managed.tensor, storage, tensor, p->shape, p->strides);
  p->storage = hgpy_storage_retain(storage);
  p->behind = storage->device->stream != NULL ? behind : 0;
  return p;
}

static package *new_package(const hgpy_node *node, bool is_versioned, uint64_t flags, uintptr_t behind) {
  return new_package_of(node->storage, &node->tensor, is_versioned, flags, behind);
}

/* The arguments of __dlpack__. */
typedef struct request {
  long version[2], place[2], stream;
  bool has_place, has_stream;
  int copy; /* -1: not given */
} request;

static bool read_argument(request *r, PyObject *name, PyObject *value) {
  if (value == Py_None) return true;
  if (PyUnicode_CompareWithASCIIString(name, "max_version") == 0) return pair_from(value, "max_version", r->version);
  if (PyUnicode_CompareWithASCIIString(name, "copy") == 0) return (r->copy = PyObject_IsTrue(value)) >= 0;
  if (PyUnicode_CompareWithASCIIString(name, "dl_device") == 0) {
    PyObject *pair = PySequence_Tuple(value);
    r->has_place = pair != NULL && pair_from(pair, "dl_device", r->place);
    Py_XDECREF(pair);
    return r->has_place;
  }
  r->has_stream = true;
  r->stream = PyLong_AsLong(value);
  return !PyErr_Occurred();
}

static bool read_request(request *r, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  static const char *const known[] = {"stream", "max_version", "dl_device", "copy"};
  *r = (request){.copy = -1};
  if (count > 0) return PyErr_SetString(PyExc_TypeError, "__dlpack__ takes its arguments by name"), false;
  for (Py_ssize_t i = 0; names != NULL && i < PyTuple_Size(names); i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    bool is_known = false;
    for (int k = 0; k < 4; k++) is_known = is_known || PyUnicode_CompareWithASCIIString(name, known[k]) == 0;
    if (!is_known) return PyErr_Format(PyExc_TypeError, "__dlpack__ has no argument '%U'", name), false;
    if (!read_argument(r, name, arguments[count + i])) return false;
  }
  return true;
}

/* PyTorch aborts the process on negative strides, so such an array is exported as a copy. */
static bool has_negative_strides(const hg_tensor *tensor) {
  for (uint32_t d = 0; d < tensor->rank; d++)
    if (tensor->stride[d] < 0) return true;
  return false;
}

/* The node, or a copy if it is needed or asked for: a new reference. */
static hgpy_node *node_to_give(hgpy_node *node, request *r) {
  dl_device here = dl_device_of(node->device);
  if (!r->has_place || (r->place[0] == here.type && r->place[1] == here.number)) {
    if (has_negative_strides(&node->tensor) && r->copy != 0) r->copy = 1;
    if (has_negative_strides(&node->tensor) && r->copy == 0)
      return PyErr_Format(PyExc_BufferError,
                          "the array goes backwards along an axis, which not every library can share; copy is False"),
             NULL;
    return r->copy == 1 ? hgpy_copy(node) : hgpy_node_retain(node);
  }
  if (r->place[0] != DL_CPU || r->copy == 0) {
    PyErr_SetString(PyExc_BufferError, r->copy == 0 ? "the array is on another device, and copy is False"
                                                    : "the array is not on the device that is asked for");
    return NULL;
  }
  hgpy_device *host = hgpy_device_at(HG_BACKEND_CPU, 0);
  r->copy = 1;
  return host != NULL ? hgpy_node_on(node, host) : NULL;
}

/* Orders later work of the consumer's stream after the present work of the device's stream. */
static bool hand_over(const hgpy_node *node, const request *r) {
  if (node->device->stream == NULL) {
    if (!r->has_stream || r->stream == -1) return true;
    PyErr_SetString(PyExc_ValueError, "__dlpack__: memory of the CPU has no streams; stream must be None");
    return false;
  }
  if (node->device->backend != HG_BACKEND_CUDA) {
    PyErr_SetString(PyExc_BufferError, "memory of this device cannot be shared yet; numpy() copies it");
    return false;
  }
  if (r->has_stream && r->stream == -1) return true;
  if (r->has_stream && r->stream <= 0) {
    PyErr_SetString(PyExc_ValueError,
                    "__dlpack__: a stream is None, -1, 1 and 2 of CUDA's default streams, or a handle");
    return false;
  }
  return hgpy_order_before(node->device, r->has_stream ? (uintptr_t)r->stream : HGPY_DEFAULT_STREAM);
}

static bool is_expressible(const hgpy_node *node, const request *r) {
  uint32_t type = node->tensor.type;
  bool is_new = type == ATLAS_f8e4m3 || type == ATLAS_f8e5m2;
  if (!is_new || r->version[0] > 1 || (r->version[0] == 1 && r->version[1] >= 1)) return true;
  PyErr_Format(PyExc_BufferError, "DLPack has %s from version 1.1 on, and max_version is older", hgpy_type_name(type));
  return false;
}

PyObject *hgpy_array_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names) {
  request r;
  hgpy_node *node = hgpy_array_node(self);
  if (!read_request(&r, arguments, count, names) || !is_expressible(node, &r)) return NULL;
  if (!hgpy_expose(node, HGPY_AS_MEMORY)) return NULL;
  hgpy_node *given = node_to_give(node, &r);
  bool is_versioned = r.version[0] >= DL_MAJOR;
  uintptr_t behind = !r.has_stream || r.stream == 1 ? HGPY_DEFAULT_STREAM : 0; /* it may outlast the package */
  package *p = NULL;
  if (given != NULL && hand_over(given, &r))
    p = new_package(given, is_versioned, r.copy == 1 ? DL_IS_COPIED : DL_READ_ONLY, behind);
  hgpy_node_release(given);
  if (p == NULL) return NULL;
  PyObject *capsule = PyCapsule_New(&p->as, is_versioned ? "dltensor_versioned" : "dltensor", drop_capsule);
  if (capsule == NULL) free_package(p);
  return capsule;
}

PyObject *hgpy_array_dlpack_device(PyObject *self, PyObject *nothing) {
  hgpy_device *device = hgpy_array_node(self)->device;
  (void)nothing;
  if (device == NULL) device = hgpy_default_device();
  if (device == NULL) return NULL;
  dl_device place = dl_device_of(device);
  return Py_BuildValue("(ii)", (int)place.type, (int)place.number);
}

/* ---- the table of C functions ------------------------------------------------------------------------------------ */

/* This package works on its own stream. The driver's default stream, which is returned, is ordered with it for
 * others. */
static int give_work_stream(int32_t device_type, int32_t number, void **stream) {
  (void)number;
  *stream = device_type == DL_CUDA ? (void *)(uintptr_t)HGPY_DEFAULT_STREAM : NULL;
  return 0;
}

/* The array's value, computed and ordered before the default stream; borrowed. */
static hgpy_node *node_of_object(void *object) {
  if (!hgpy_is_array(object)) return PyErr_Format(PyExc_TypeError, "an Array was expected, not %R", object), NULL;
  hgpy_node *node = hgpy_array_node(object);
  request r = {.copy = -1};
  return hgpy_expose(node, HGPY_AS_MEMORY) && hand_over(node, &r) ? node : NULL;
}

static int export_owned(void *object, dl_managed_versioned **out) {
  hgpy_node *node = node_of_object(object);
  request r = {.copy = -1};
  hgpy_node *given = node != NULL ? node_to_give(node, &r) : NULL;
  uint64_t flags = r.copy == 1 ? DL_IS_COPIED : DL_READ_ONLY;
  package *p = given != NULL ? new_package(given, true, flags, HGPY_DEFAULT_STREAM) : NULL;
  hgpy_node_release(given);
  if (p == NULL) return -1;
  *out = &p->as.versioned;
  return 0;
}

static int export_borrowed(void *object, dl_tensor *out) {
  hgpy_node *node = node_of_object(object);
  if (node == NULL) return -1;
  if (has_negative_strides(&node->tensor)) /* the caller wants an owned tensor */
    return PyErr_SetString(PyExc_BufferError, "an array that goes backwards along an axis is shared by a copy"), -1;
  /* the node's shape has DLPack's layout: sizes are below 2^63 */
  describe(out, node->storage, &node->tensor, (int64_t *)node->tensor.shape, node->tensor.stride);
  return 0;
}

static int import_owned(dl_managed_versioned *tensor, void **object) {
  hgpy_node *node = node_of_versioned(tensor, NULL);
  *object = NULL;
  if (node != NULL && !hgpy_order_after(node->device, HGPY_DEFAULT_STREAM)) {
    hgpy_node_release(node);
    return -1;
  }
  *object = hgpy_array_of(node);
  return *object != NULL ? 0 : -1;
}

static package *allocate(const dl_tensor *like) {
  uint32_t type = type_of_dl(like);
  int64_t lowest;
  uint64_t count;
  if (type == ATLAS_NONE || like->rank < 0 || like->rank > HG_MAX_RANK) {
    PyErr_SetString(PyExc_BufferError, "arrays have no such type or rank");
    return NULL;
  }
  hg_tensor tensor = hg_tensor_of(NULL, (atlas_type)type, (uint32_t)like->rank, (const uint64_t *)like->shape);
  if (!hgpy_ok(hg_tensor_extent(&tensor, &lowest, &count))) return NULL;
  hgpy_device *device = device_at(like->device);
  hgpy_storage *storage = device != NULL ? hgpy_storage_for_work(device, count * hgpy_type_bytes(type)) : NULL;
  hgpy_node *node = storage != NULL ? hgpy_node_data(storage, &tensor) : NULL;
  package *p = NULL;
  if (node != NULL && hgpy_order_before(node->device, HGPY_DEFAULT_STREAM))
    p = new_package(node, true, 0, HGPY_DEFAULT_STREAM);
  hgpy_node_release(node);
  return p;
}

static int allocate_owned(dl_tensor *like, dl_managed_versioned **out, void *context,
                          void (*fail)(void *context, const char *kind, const char *message)) {
  PyGILState_STATE state = PyGILState_Ensure();
  package *p = allocate(like);
  if (p != NULL) *out = &p->as.versioned;
  else PyErr_Clear();
  PyGILState_Release(state);
  if (p == NULL) fail(context, "BufferError", "no memory of that type and shape could be made on that device");
  return p != NULL ? 0 : -1;
}

PyObject *hgpy_dlpack_table(void) {
  static dl_exchange table = {.header = {.major = DL_MAJOR, .minor = DL_MINOR},
                              .allocate = allocate_owned,
                              .export_owned = export_owned,
                              .import_owned = import_owned,
                              .export_borrowed = export_borrowed,
                              .work_stream = give_work_stream};
  return PyCapsule_New(&table, "dlpack_exchange_api", NULL);
}

/* 1 if the elements are stored with the opposite sign, as PyTorch does for parts of complex numbers. -1: raised. */
static int has_other_sign(hgpy_family *f, const dl_tensor *t, PyObject *object) {
  return t->code == DL_FLOAT || t->code == DL_BFLOAT ? hgpy_is_negative(f, object) : 0;
}

bool hgpy_find_work_stream(const dl_exchange *table, dl_device place, uintptr_t *handle) {
  void *stream = NULL;
  *handle = HGPY_DEFAULT_STREAM;
  if (place.type != DL_CUDA || table->work_stream == NULL) return true;
  if (table->work_stream(place.type, place.number, &stream) != 0) return false;
  if (stream != NULL) *handle = (uintptr_t)stream;
  return true;
}

/* Orders its use after the present work of its library's current stream. Takes the node; NULL gives NULL. */
static PyObject *array_behind(hgpy_node *node, const dl_exchange *table, dl_device place) {
  uintptr_t handle;
  if (node == NULL || node->device->stream == NULL) return hgpy_array_of(node);
  if (hgpy_find_work_stream(table, place, &handle) && hgpy_order_after(node->device, handle))
    return hgpy_array_of(node);
  hgpy_node_release(node);
  return NULL;
}

PyObject *hgpy_import_by_table(PyObject *object, hgpy_device *device) {
  hgpy_family *f = hgpy_family_of(Py_TYPE(object));
  const dl_exchange *table = f->table;
  dl_managed_versioned *m = NULL;
  if (table == NULL) Py_RETURN_NONE;
  if (table->export_owned(object, &m) != 0) return NULL;
  dl_device place = m->tensor.device;
  int is_other = has_other_sign(f, &m->tensor, object);
  if (is_other == 0 && is_of_device(place, device))
    return array_behind(node_of_versioned(m, device), table, place);
  hgpy_give_back(m, release_versioned);
  return is_other < 0 ? NULL : Py_NewRef(Py_None);
}

PyObject *hgpy_export_by_table(PyObject *array, PyTypeObject *type, bool is_own) {
  const dl_exchange *table = hgpy_family_of(type)->table;
  hgpy_node *node = hgpy_array_node(array);
  uintptr_t behind;
  void *object = NULL;
  if (table == NULL || table->import_owned == NULL) Py_RETURN_NONE;
  if (!hgpy_expose(node, HGPY_AS_MEMORY)) return NULL;
  if (node->device->backend != HG_BACKEND_CPU && node->device->backend != HG_BACKEND_CUDA) Py_RETURN_NONE;
  if (!hgpy_find_work_stream(table, dl_device_of(node->device), &behind)) return NULL;
  if (has_negative_strides(&node->tensor)) node = hgpy_copy(node);
  else node = is_own ? hgpy_own(node) : hgpy_node_retain(node);
  bool is_good = node != NULL && hgpy_order_before(node->device, behind);
  package *p = is_good ? new_package(node, true, 0, behind) : NULL;
  hgpy_node_release(node);
  return p != NULL && table->import_owned(&p->as.versioned, &object) == 0 ? object : NULL;
}

PyObject *hgpy_export_storage(hgpy_storage *storage, const hg_tensor *tensor, const dl_exchange *table) {
  void *object = NULL;
  package *p = new_package_of(storage, tensor, true, 0, 0);
  return p != NULL && table->import_owned(&p->as.versioned, &object) == 0 ? object : NULL;
}

/* ---- borrowed, by the table -------------------------------------------------------------------------------------- */

PyObject *hgpy_borrow_by_table(PyObject *object, PyTypeObject *type, hgpy_device *other) {
  hgpy_family *f = hgpy_family_of(type);
  const dl_exchange *table = f->table;
  dl_tensor t;
  if (table == NULL || table->export_borrowed == NULL) return NULL;
  if (table->export_borrowed(object, &t) != 0) return PyErr_Clear(), NULL; /* it has no memory of its own */
  int is_other = has_other_sign(f, &t, object);
  hgpy_device *device = is_other == 0 && is_of_device(t.device, NULL) ? hgpy_device_beside(t.device, other) : NULL;
  if (device == NULL) return NULL;
  return array_behind(node_of_dl(&t, device, false, Py_NewRef(object), hgpy_release_object), table, t.device);
}

int hgpy_loan_take(PyObject *object, hgpy_family *f, hgpy_loan *loan) {
  dl_tensor t;
  if (f->table == NULL || f->table->export_borrowed == NULL || f->table->import_owned == NULL) return 0;
  if (f->table->export_borrowed(object, &t) != 0) return PyErr_Clear(), 0; /* it has no memory of its own */
  uint32_t type = type_of_dl(&t);
  bool is_known = type != ATLAS_NONE && t.rank >= 0 && t.rank <= HG_MAX_RANK && t.byte_offset == 0;
  if (!is_known || !(is_host(t.device) || t.device.type == DL_CUDA)) return 0; /* the slower way reports the reason */
  loan->object = object;
  loan->place = t.device;
  loan->first = t.data;
  read_layout(&t, type, &loan->tensor);
  int is_other = has_other_sign(f, &t, object);
  return is_other == 0 ? 1 : is_other < 0 ? -1 : 0;
}
