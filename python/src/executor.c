/* executor.c - hologram.Executor: a device and what chose it. */
#include "plans.h"

#include <stdio.h>

typedef struct executor {
  PyObject_HEAD
  hgpy_device *device; /* NULL: closed */
  uintptr_t hash;      /* of the device, also after closing */
} executor;

static PyTypeObject *executor_type;
static hgpy_device *default_device, *all_devices;

/* ---- devices ----------------------------------------------------------------------------------------------------- */

hgpy_device *hgpy_device_retain(hgpy_device *device) {
  if (device != NULL) device->references++;
  return device;
}

static void leave_list(const hgpy_device *device) {
  hgpy_device **at = &all_devices;
  while (*at != NULL && *at != device) at = &(*at)->next;
  if (*at != NULL) *at = device->next;
}

void hgpy_device_release(hgpy_device *device) {
  if (device == NULL) return;
  device->references--;
  if (device->references > 0 && device->references <= device->behind_count) { /* only pending releases refer to it */
    hgpy_release_all_behind(device);
    return;
  }
  if (device->references > 0) return;
  leave_list(device);
  hgpy_forget(device); /* another device may get its address */
  hgpy_plans_forget(device);
  hgpy_storage_forget(device);
  HGPY_BEGIN_CALL /* may wait for work */
  hgpy_order_end(device);
  hg_stream_release(device->stream);
  hg_stream_release(device->queue);
  hg_executor_release(device->executor);
  HGPY_END_CALL
  PyMem_Free(device);
}

static hg_status open_device(const hg_executor_desc *desc, hgpy_device *device) {
  hg_executor_info info = {.size = sizeof info};
  hg_status status = hg_executor_create(desc, &device->executor);
  if (status == HG_OK) status = hg_executor_query(device->executor, &info);
  if (status != HG_OK) return status;
  device->backend = info.backend;
  return info.backend == HG_BACKEND_CPU ? HG_OK : hg_stream_create(device->executor, NULL, &device->stream);
}

static hgpy_device *make_device(hg_backend_id backend, uint32_t number, const char *engine, uint32_t threads) {
  hg_executor_desc desc = {
      .size = sizeof desc, .backend = backend, .device = number, .engine = engine, .ask = hgpy_ask, .threads = threads};
  hgpy_device *device = PyMem_Calloc(1, sizeof *device);
  hg_status status;
  if (device == NULL) return (hgpy_device *)PyErr_NoMemory();
  device->references = 1;
  device->number = number;
  HGPY_BEGIN_CALL
  status = open_device(&desc, device);
  HGPY_END_CALL
  if (hgpy_ok(status) && (backend != HG_BACKEND_AUTO || hgpy_allows_device(device))) {
    device->next = all_devices;
    all_devices = device;
    return device;
  }
  hgpy_device_release(device);
  return NULL;
}

/* A referenced device stays in the list while other threads run. */
bool hgpy_trim_others(const hgpy_device *device) {
  bool any = false;
  for (hgpy_device *other = hgpy_device_retain(all_devices), *next; other != NULL; other = next) {
    if (other != device && other->backend == device->backend && other->number == device->number) {
      any = true;
      HGPY_BEGIN_CALL
      (void)hg_memory_trim(other->executor);
      HGPY_END_CALL
    }
    next = hgpy_device_retain(other->next);
    hgpy_device_release(other);
  }
  return any;
}

hgpy_device *hgpy_default_device(void) {
  if (default_device == NULL) {
    hgpy_device *made = make_device(HG_BACKEND_AUTO, 0, NULL, 0);
    if (default_device == NULL) default_device = made; /* another thread may have made it first */
    else hgpy_device_release(made);
  }
  return default_device;
}

void hgpy_lose_default_device(void) { default_device = NULL; }

hgpy_device *hgpy_device_at(hg_backend_id backend, uint32_t number) {
  enum { MOST = 16 };
  static hgpy_device *others[MOST];
  static uint32_t count;
  hgpy_device *device = hgpy_default_device();
  if (device == NULL || (device->backend == backend && device->number == number)) return device;
  for (uint32_t i = 0; i < count; i++)
    if (others[i]->backend == backend && others[i]->number == number) return others[i];
  device = make_device(backend, number, NULL, 0);
  if (device != NULL && count < MOST) others[count++] = device;
  return device;
}

/* ---- the object -------------------------------------------------------------------------------------------------- */

bool hgpy_is_executor(PyObject *object) { return Py_TYPE(object) == executor_type; }

hgpy_device *hgpy_device_of(PyObject *object) {
  if (!hgpy_is_executor(object)) {
    PyErr_Format(PyExc_TypeError, "an Executor was expected, not %R", object);
    return NULL;
  }
  hgpy_device *device = ((executor *)object)->device;
  if (device == NULL) PyErr_SetString(PyExc_ValueError, "the executor is closed");
  return device;
}

PyObject *hgpy_executor_for(hgpy_device *device) {
  if (device == NULL) return NULL;
  executor *made = PyObject_New(executor, executor_type);
  if (made == NULL) return NULL;
  made->device = hgpy_device_retain(device);
  made->hash = (uintptr_t)device / sizeof(void *);
  return (PyObject *)made;
}

/* 'auto', 'cpu', ... or a BackendType, whose `value` is one of them; -1: raised. */
static int backend_from(PyObject *object) {
  hg_backend_id id = HG_BACKEND_AUTO;
  if (object == NULL || object == Py_None) return HG_BACKEND_AUTO;
  PyObject *name = PyUnicode_Check(object) ? Py_NewRef(object) : PyObject_GetAttrString(object, "value");
  const char *text = name != NULL && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  int found = -1;
  if (text != NULL) found = hgpy_ok(hg_backend_by_name(text, &id)) ? (int)id : -1;
  else PyErr_Format(PyExc_TypeError, "a backend is 'auto', 'cpu', 'cuda', 'metal' or a BackendType, not %R", object);
  Py_XDECREF(name);
  return found;
}

static PyObject *executor_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
  static char *known[] = {"backend", "device", "engine", "threads", NULL};
  PyObject *backend = NULL;
  unsigned int number = 0;
  int threads = 0;
  const char *engine = NULL;
  (void)type;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "|O$Izi:Executor", known, &backend, &number, &engine, &threads))
    return NULL;
  if (threads < 0) return PyErr_Format(PyExc_ValueError, "an executor cannot have %d threads", threads);
  int id = backend_from(backend);
  if (id < 0) return NULL;
  hgpy_device *device = make_device((hg_backend_id)id, number, engine, (uint32_t)threads);
  if (device == NULL) return NULL;
  PyObject *made = hgpy_executor_for(device);
  hgpy_device_release(device);
  return made;
}

static void executor_dealloc(PyObject *self) {
  hgpy_device_release(((executor *)self)->device);
  hgpy_free_object(self);
}

static PyObject *executor_close(PyObject *self, PyObject *unused) {
  executor *e = (executor *)self;
  hgpy_device *device = e->device;
  (void)unused;
  e->device = NULL;
  if (device != NULL) hgpy_forget(device), hgpy_plans_forget(device);
  hgpy_device_release(device);
  Py_RETURN_NONE;
}

static PyObject *executor_enter(PyObject *self, PyObject *unused) {
  (void)unused;
  return hgpy_device_of(self) != NULL ? Py_NewRef(self) : NULL;
}

static PyObject *executor_exit(PyObject *self, PyObject *arguments) {
  (void)arguments;
  return executor_close(self, NULL);
}

static PyObject *executor_synchronize(PyObject *self, PyObject *unused) {
  hgpy_device *device = hgpy_device_of(self);
  (void)unused;
  if (device == NULL || !hgpy_device_wait(device)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *executor_cancel(PyObject *self, PyObject *unused) {
  hgpy_device *device = hgpy_device_of(self);
  (void)unused;
  if (device == NULL || !hgpy_ok(hg_cancel(device->executor))) return NULL;
  Py_RETURN_NONE;
}

static PyObject *executor_allocate(PyObject *self, PyObject *arguments, PyObject *names) {
  static char *known[] = {"n", "dtype", NULL};
  long long count = 0;
  PyObject *type_object = NULL;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "L|O:allocate", known, &count, &type_object)) return NULL;
  hgpy_device *device = hgpy_device_of(self);
  uint32_t type = type_object != NULL && type_object != Py_None ? hgpy_type_from(type_object) : (uint32_t)ATLAS_f32;
  if (device == NULL || type == ATLAS_NONE) return NULL;
  if (count < 0) return PyErr_Format(PyExc_ValueError, "a buffer cannot have %lld elements", count);
  if ((uint64_t)count > UINT64_MAX / 8) return PyErr_NoMemory();
  hgpy_storage *storage = hgpy_storage_create(device, (uint64_t)count * hgpy_type_bytes(type), true);
  return storage != NULL ? hgpy_buffer_of(storage, type, (uint64_t)count) : NULL;
}

/* The first elements of a class of the boundary pool. */
static PyObject *executor_allocate_boundary(PyObject *self, PyObject *arguments, PyObject *names) {
  static char *known[] = {"cls", "width", "height", "dtype", NULL};
  enum { CLASS_BYTES = ATLAS_CLASS_PAGES * ATLAS_CLASS_PAGE_BYTES };
  long long class_index = 0, width = -1, height = 1;
  PyObject *type_object = NULL;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "L|LLO:allocate_boundary", known, &class_index, &width, &height,
                                   &type_object))
    return NULL;
  hgpy_device *device = hgpy_device_of(self);
  uint32_t type = type_object != NULL && type_object != Py_None ? hgpy_type_from(type_object) : (uint32_t)ATLAS_f32;
  if (device == NULL || type == ATLAS_NONE) return NULL;
  if (class_index < 0 || class_index >= ATLAS_CLASS_COUNT)
    return PyErr_Format(PyExc_ValueError, "classes are 0 to %d, not %lld", ATLAS_CLASS_COUNT - 1, class_index);
  long long most = (long long)(CLASS_BYTES / hgpy_type_bytes(type));
  if (width == -1) width = most;
  if (width < 0 || height < 0 || (height > 0 && width > most / height))
    return PyErr_Format(PyExc_ValueError,
                        "a class of the boundary pool has room for %lld elements of %s, not %lld x %lld", most,
                        hgpy_type_name(type), width, height);
  uint64_t count = (uint64_t)(width * height);
  hgpy_storage *storage =
      hgpy_storage_of_boundary(device, (uint64_t)class_index * CLASS_BYTES, count * hgpy_type_bytes(type));
  return storage != NULL ? hgpy_buffer_of(storage, type, count) : NULL;
}

/* ---- its memory -------------------------------------------------------------------------------------------------- */

static PyObject *executor_memory(PyObject *self, void *unused) {
  hgpy_device *device = hgpy_device_of(self);
  hg_memory_info i = {.size = sizeof i};
  (void)unused;
  if (device == NULL || !hgpy_ok(hg_memory_query(device->executor, &i))) return NULL;
  uint64_t small = hgpy_storage_kept_bytes(device); /* the library counts these bytes as used */
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "in_use", (unsigned long long)(i.in_use - small), "most_in_use",
                       (unsigned long long)i.most_in_use, "kept", (unsigned long long)(i.kept + small), "kept_most",
                       (unsigned long long)i.kept_most, "device_free", (unsigned long long)i.device_free,
                       "device_bytes", (unsigned long long)i.device_bytes);
}

static PyObject *executor_trim(PyObject *self, PyObject *unused) {
  hgpy_device *device = hgpy_device_of(self);
  hg_status status;
  (void)unused;
  if (device == NULL) return NULL;
  hgpy_device_retain(device); /* another thread may close the executor */
  hgpy_release_all_behind(device);
  hgpy_storage_forget(device);
  HGPY_BEGIN_CALL
  status = hg_memory_trim(device->executor);
  HGPY_END_CALL
  hgpy_device_release(device);
  if (!hgpy_ok(status)) return NULL;
  Py_RETURN_NONE;
}

static PyObject *executor_keep(PyObject *self, PyObject *object) {
  hgpy_device *device = hgpy_device_of(self);
  if (device == NULL) return NULL;
  unsigned long long byte_count = PyLong_AsUnsignedLongLong(object);
  if (byte_count == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
  if (!hgpy_ok(hg_memory_keep(device->executor, byte_count))) return NULL;
  Py_RETURN_NONE;
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static bool query(PyObject *self, hg_executor_info *info) {
  hgpy_device *device = hgpy_device_of(self);
  *info = (hg_executor_info){.size = sizeof *info};
  return device != NULL && hgpy_ok(hg_executor_query(device->executor, info));
}

static PyObject *executor_backend(PyObject *self, void *unused) {
  hg_executor_info info;
  (void)unused;
  return query(self, &info) ? PyUnicode_FromString(info.backend_name) : NULL;
}

static PyObject *executor_info(PyObject *self, void *unused) {
  hg_executor_info i;
  (void)unused;
  if (!query(self, &i)) return NULL;
  return Py_BuildValue("{s:s,s:s,s:s,s:s,s:I,s:I,s:I,s:K,s:I,s:I}", "backend", i.backend_name, "device", i.device_name,
                       "selection", i.selection, "engine", i.engine, "compute_units", i.compute_units,
                       "max_block_lanes", i.max_block_lanes, "max_shared_bytes", i.max_shared_bytes, "memory_bytes",
                       (unsigned long long)i.memory_bytes, "isa_version", i.isa_version, "numerics_version",
                       i.numerics_version);
}

static PyObject *executor_counts(PyObject *self, void *unused) {
  hgpy_device *device = hgpy_device_of(self);
  hg_counts c = {.size = sizeof c};
  (void)unused;
  if (device == NULL || !hgpy_ok(hg_executor_count(device->executor, &c))) return NULL;
  return Py_BuildValue("{s:K,s:K,s:K,s:K,s:K,s:K}", "launches", (unsigned long long)c.launches, "moved_bytes",
                       (unsigned long long)c.moved_bytes, "plans", (unsigned long long)c.plans, "compilations",
                       (unsigned long long)c.compilations, "allocations", (unsigned long long)c.allocations,
                       "allocated_bytes", (unsigned long long)c.allocated_bytes);
}

static PyObject *executor_repr(PyObject *self) {
  hg_executor_info info;
  if (((executor *)self)->device == NULL) return PyUnicode_FromString("<hologram.Executor, closed>");
  return query(self, &info) ? PyUnicode_FromFormat("<hologram.Executor %s: %s>", info.backend_name, info.device_name)
                            : NULL;
}

/* Executors of one device are equal; a closed one equals only itself. */
static PyObject *executor_compare(PyObject *self, PyObject *other, int how) {
  if (!hgpy_is_executor(other) || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const hgpy_device *device = ((executor *)self)->device;
  bool is_same = self == other || (device != NULL && device == ((executor *)other)->device);
  return PyBool_FromLong(is_same == (how == Py_EQ));
}

static Py_hash_t executor_hash(PyObject *self) { return (Py_hash_t)((executor *)self)->hash; }

static PyMethodDef executor_methods[] = {
    {"allocate", (PyCFunction)(void *)executor_allocate, METH_VARARGS | METH_KEYWORDS,
     "allocate($self, n, dtype='float32')\n--\n\nA buffer of n elements, all zero."},
    {"allocate_boundary", (PyCFunction)(void *)executor_allocate_boundary, METH_VARARGS | METH_KEYWORDS,
     "allocate_boundary($self, cls, width=-1, height=1, dtype='float32')\n--\n\n"
     "The first width * height elements of a class of the executor's boundary pool, as a buffer: programs see the\n"
     "same bytes as [phi cls, page, byte]. width -1: as many as the class's 12,288 bytes hold. The pool begins as\n"
     "zeros, and two buffers of a class are the same memory."},
    {"synchronize", executor_synchronize, METH_NOARGS,
     "synchronize($self)\n--\n\nWaits until all that was given to the device is done; a fault of it is raised here."},
    {"cancel", executor_cancel, METH_NOARGS,
     "cancel($self)\n--\n\nEnds what the device was given before, from any thread: calls under way raise "
     "hologram.Cancelled. On a GPU what\nits driver has been given runs to its end. What is given later runs."},
    {"trim", executor_trim, METH_NOARGS,
     "trim($self)\n--\n\nGives memory that is kept back to the system, when the device is done. That is done, too, "
     "before "
     "OutOfMemory is\nraised."},
    {"keep", executor_keep, METH_O,
     "keep($self, byte_count, /)\n--\n\nHow much freed memory is kept at most for the next arrays, an eighth of the "
     "device's if nobody says."},
    {"close", executor_close, METH_NOARGS,
     "close($self)\n--\n\nGives the device up. What was made on it lives on; the executor itself cannot be used any "
     "more."},
    {"__enter__", executor_enter, METH_NOARGS, NULL},
    {"__exit__", executor_exit, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef executor_getset[] = {
    {"backend", executor_backend, NULL, "The name of the backend that was chosen: 'cpu', 'cuda' or 'metal'.", NULL},
    {"info", executor_info, NULL, "What was chosen, why, and what it can do: a dict.", NULL},
    {"memory", executor_memory, NULL,
     "Bytes: a dict. in_use: of arrays and buffers, most_in_use: at any one time; kept: freed and kept for the next\n"
     "ones, kept_most: no more than that when the device is done; device_free and device_bytes: of the device,\n"
     "whoever uses it, 0 where that is not known.",
     NULL},
    {"counts", executor_counts, NULL,
     "What it has done since it was made, a dict of integers: launches; moved_bytes (read and written by those of\n"
     "operations); plans (computations that no earlier one was equal to); compilations (of programs, those found\n"
     "in the kernel cache too); allocations and allocated_bytes (of device memory). The same calls on one machine\n"
     "give the same counts.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot executor_slots[] = {
    {Py_tp_doc,
     "Executor(backend='auto', *, device=0, engine=None, threads=0)\n--\n\n"
     "A device that runs programs and operations.\n\nbackend: 'auto' (the first of Metal, CUDA and the CPU that "
     "works here), 'cpu', 'cuda', 'metal' or a BackendType. device: which of them. engine: one of the backend's "
     "engines; None: its fastest. threads: of the CPU, the most that a launch uses; 0: as many as it pays to, or "
     "HOLOGRAM_NUM_THREADS\nsays.\nRaises hologram.Unsupported, with a sentence that says why, where there is no "
     "such device."},
    {Py_tp_new, executor_new},
    {Py_tp_dealloc, executor_dealloc},
    {Py_tp_repr, executor_repr},
    {Py_tp_richcompare, executor_compare},
    {Py_tp_hash, executor_hash},
    {Py_tp_methods, executor_methods},
    {Py_tp_getset, executor_getset},
    {0, NULL},
};

static PyType_Spec executor_spec = {.name = "hologram.Executor",
                                    .basicsize = sizeof(executor),
                                    .flags = Py_TPFLAGS_DEFAULT,
                                    .slots = executor_slots};

static PyObject *default_executor(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return hgpy_executor_for(hgpy_default_device());
}

static PyObject *set_default_executor(PyObject *module, PyObject *object) {
  (void)module;
  hgpy_device *device = hgpy_device_of(object), *old = default_device;
  if (device == NULL) return NULL;
  default_device = hgpy_device_retain(device);
  hgpy_device_release(old);
  Py_RETURN_NONE;
}

/* [(name, whether it is available, why not or the device's name)] */
static PyObject *backends(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  PyObject *list = PyList_New(0);
  for (size_t i = 0; list != NULL; i++) {
    hg_backend_info info = {.size = sizeof info};
    hg_status status;
    HGPY_BEGIN_CALL
    status = hg_backend_query(i, &info);
    HGPY_END_CALL
    if (status != HG_OK) break;
    PyObject *row = Py_BuildValue("(sOs)", info.name, info.available ? Py_True : Py_False, info.reason);
    if (row == NULL || PyList_Append(list, row) < 0) Py_CLEAR(list);
    Py_XDECREF(row);
  }
  return list;
}

static PyMethodDef functions[] = {
    {"default_executor", default_executor, METH_NOARGS,
     "default_executor()\n--\n\nThe executor of arrays that are given no other: the best device there is, opened by "
     "the first who asks."},
    {"set_default_executor", set_default_executor, METH_O,
     "set_default_executor(executor, /)\n--\n\nMakes an executor that of arrays that are given no other."},
    {"_backends", backends, METH_NOARGS,
     "backends()\n--\n\nEvery backend as (name, available, the device's name or why there is none)."},
    {NULL, NULL, 0, NULL},
};

int hgpy_executor_add(PyObject *module) {
  executor_type = hgpy_add_type(module, &executor_spec);
  return executor_type != NULL ? PyModule_AddFunctions(module, functions) : -1;
}
