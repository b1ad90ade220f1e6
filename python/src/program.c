/* program.c - hologram.Program: an Atlas program, verified, with its hash, and run on an executor. */
#include "hgpy.h"

#include <stdio.h>

enum { KERNELS = 4, MOST_BINDINGS = 64 };

typedef struct program {
  PyObject_HEAD
  atlas_program *program;
  struct {
    hgpy_device *device;
    hg_kernel *kernel;
  } kernels[KERNELS]; /* the last ones, by executor */
  uint32_t next;
} program;

static PyTypeObject *program_type;

PyObject *hgpy_program_of(atlas_program *taken) {
  program *made = PyObject_New(program, program_type);
  if (made == NULL) {
    atlas_program_release(taken);
    return NULL;
  }
  made->program = taken;
  memset(made->kernels, 0, sizeof made->kernels);
  made->next = 0;
  return (PyObject *)made;
}

static PyObject *program_from_text(PyObject *text, const char *name) {
  Py_ssize_t length;
  atlas_program *parsed = NULL;
  hg_status status;
  const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
  if (bytes == NULL) return NULL;
  HGPY_BEGIN_CALL
  status = atlas_parse(NULL, bytes, (size_t)length, name, &parsed);
  HGPY_END_CALL
  return hgpy_ok(status) ? hgpy_program_of(parsed) : NULL;
}

static PyObject *program_new(PyTypeObject *type, PyObject *arguments, PyObject *names) {
  static char *known[] = {"source", "name", NULL};
  PyObject *source;
  const char *name = NULL;
  (void)type;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "O|z:Program", known, &source, &name)) return NULL;
  if (PyUnicode_Check(source)) return program_from_text(source, name);
  Py_buffer view;
  atlas_program *decoded = NULL;
  if (PyObject_GetBuffer(source, &view, PyBUF_SIMPLE) < 0) return NULL;
  hg_status status = atlas_decode(NULL, view.buf, (size_t)view.len, &decoded);
  PyBuffer_Release(&view);
  return hgpy_ok(status) ? hgpy_program_of(decoded) : NULL;
}

static void drop_kernel(program *p, uint32_t i) {
  hg_kernel_release(p->kernels[i].kernel);
  hgpy_device_release(p->kernels[i].device);
  p->kernels[i].kernel = NULL;
  p->kernels[i].device = NULL;
}

static void program_dealloc(PyObject *self) {
  program *p = (program *)self;
  for (uint32_t i = 0; i < KERNELS; i++) drop_kernel(p, i);
  atlas_program_release(p->program);
  hgpy_free_object(self);
}

/* A new reference; NULL: raised. */
static hg_kernel *kernel_for(program *p, hgpy_device *device) {
  for (uint32_t i = 0; i < KERNELS; i++)
    if (p->kernels[i].device == device && device != NULL) return hg_kernel_retain(p->kernels[i].kernel);
  hg_kernel *kernel = NULL;
  hg_status status;
  hgpy_device_retain(device);
  HGPY_BEGIN_CALL
  status = hg_kernel_create(device->executor, p->program, &kernel);
  HGPY_END_CALL
  if (!hgpy_ok(status)) {
    hgpy_device_release(device);
    return NULL;
  }
  drop_kernel(p, p->next);
  p->kernels[p->next].device = device;
  p->kernels[p->next].kernel = kernel;
  p->next = (p->next + 1) % KERNELS;
  return hg_kernel_retain(kernel);
}

/* ---- a launch ---------------------------------------------------------------------------------------------------- */

/* What a launch binds and references while it runs. */
typedef struct launch {
  hg_kernel *kernel;
  hgpy_device *device;
  hg_binding bindings[MOST_BINDINGS];
  hg_scalar scalars[MOST_BINDINGS];
  hgpy_storage *storages[MOST_BINDINGS];
  uint32_t binding_count, scalar_count;
} launch;

static bool scalar_bits(PyObject *value, const hg_parameter_info *parameter, uint64_t *bits) {
  uint32_t type = parameter->type;
  int64_t integer = 0;
  *bits = 0;
  if (type == ATLAS_f32 || type == ATLAS_f64) {
    double real = PyFloat_AsDouble(value);
    float single = (float)real;
    if (type == ATLAS_f32) memcpy(bits, &single, sizeof single);
    else memcpy(bits, &real, sizeof real);
  } else if (hgpy_type_is_integer(type) || type == ATLAS_bool) {
    PyObject *number = hgpy_plain_number(value), *whole = PyNumber_Index(number != NULL ? number : value);
    if (whole != NULL && hgpy_integer_as(parameter->name, whole, type, &integer)) *bits = (uint64_t)integer;
    if (hgpy_type_bytes(type) < 8) *bits &= (UINT64_C(1) << (8 * hgpy_type_bytes(type))) - 1;
    Py_XDECREF(number), Py_XDECREF(whole);
  } else
    PyErr_Format(PyExc_TypeError, "parameter '%s' is a scalar of %s, which Python has no number for; use f32",
                 parameter->name, hgpy_type_name(type));
  return !PyErr_Occurred();
}

/* Memory for a buffer parameter: of a Buffer, or of an object with the buffer protocol. A new reference. */
static hgpy_storage *storage_for(launch *l, PyObject *value, const hg_parameter_info *parameter) {
  bool is_written = (parameter->access & ATLAS_OUT) != 0;
  uint32_t type = ATLAS_NONE;
  hgpy_storage *storage = NULL;
  if (Py_TYPE(value) == hgpy_buffer_type) {
    hgpy_buffer *buffer = hgpy_buffer_check(value, parameter->name);
    if (buffer == NULL) return NULL;
    storage = hgpy_storage_retain(buffer->storage);
    type = buffer->type;
  } else {
    hgpy_node *node = hgpy_is_array(value) ? hgpy_dense(hgpy_array_node(value), false)
                                           : hgpy_share(value, l->device, is_written ? 0 : 1);
    if (node == NULL || !hgpy_has_elements(node)) return hgpy_node_release(node), NULL;
    type = node->tensor.type;
    bool is_refused = is_written && (hgpy_is_array(value) || node->storage->is_read_only);
    uint64_t stride = 1, count = hg_tensor_count(&node->tensor);
    for (uint32_t d = node->tensor.rank; d-- > 0; stride *= node->tensor.shape[d])
      if (node->tensor.shape[d] > 1 && (uint64_t)node->tensor.stride[d] != stride && count > 0) is_refused = true;
    if (is_refused || node->tensor.offset != 0)
      PyErr_Format(PyExc_ValueError, "parameter '%s' needs memory in C order%s", parameter->name,
                   is_written ? " that can be written" : "");
    else storage = hgpy_storage_retain(node->storage);
    hgpy_node_release(node);
  }
  if (storage != NULL && parameter->kind == ATLAS_SYMBOL_BUFFER && type != parameter->type) {
    PyErr_Format(PyExc_TypeError, "parameter '%s' is a buffer of %s; what is given holds %s", parameter->name,
                 hgpy_type_name(parameter->type), hgpy_type_name(type));
    hgpy_storage_release(storage);
    return NULL;
  }
  if (storage != NULL && storage->device != l->device) {
    PyErr_Format(PyExc_ValueError, "what is bound to '%s' belongs to another executor", parameter->name);
    hgpy_storage_release(storage);
    return NULL;
  }
  return storage;
}

static bool bind_value(launch *l, const hg_parameter_info *parameter, PyObject *value) {
  if (parameter->kind == ATLAS_SYMBOL_SCALAR) {
    hg_scalar *scalar = &l->scalars[l->scalar_count];
    *scalar = (hg_scalar){.slot = parameter->slot, .type = parameter->type};
    l->scalar_count++;
    return scalar_bits(value, parameter, &scalar->bits);
  }
  hgpy_storage *storage = storage_for(l, value, parameter);
  if (storage == NULL) return false;
  l->storages[l->binding_count] = storage;
  l->bindings[l->binding_count++] = (hg_binding){.slot = parameter->slot, .buffer = storage->buffer};
  return true;
}

/* Every given name must be a parameter; the launch itself reports missing ones. */
static bool bind_all(launch *l, PyObject *values) {
  Py_ssize_t used = 0;
  for (size_t i = 0; l->binding_count < MOST_BINDINGS && l->scalar_count < MOST_BINDINGS; i++) {
    hg_parameter_info parameter = {.size = sizeof parameter};
    hg_status status = hg_kernel_parameter(l->kernel, i, &parameter);
    if (status == HG_NOT_FOUND) break;
    if (!hgpy_ok(status)) return false;
    PyObject *value = PyDict_GetItemString(values, parameter.name);
    if (value == NULL) continue;
    used++;
    if (!bind_value(l, &parameter, value)) return false;
  }
  if (used == PyDict_Size(values)) return true;
  PyErr_SetString(PyExc_TypeError, "a name is given that is no parameter of the program");
  return false;
}

static bool dimensions_from(PyObject *object, uint32_t dimensions[3]) {
  uint64_t sizes[HG_MAX_RANK];
  uint32_t rank;
  if (object == NULL || object == Py_None) return true;
  if (!hgpy_shape_from(object, sizes, &rank)) return false;
  if (rank > 3) return PyErr_SetString(PyExc_ValueError, "a grid or block has up to three dimensions"), false;
  for (uint32_t d = 0; d < rank; d++) dimensions[d] = sizes[d] > UINT32_MAX ? UINT32_MAX : (uint32_t)sizes[d];
  return true;
}

static PyObject *pop(PyObject *values, const char *name) {
  PyObject *value = PyDict_GetItemString(values, name);
  Py_XINCREF(value);
  if (value != NULL) PyDict_DelItemString(values, name);
  return value;
}

static bool number_from(PyObject *object, uint64_t *number) {
  if (object == NULL || object == Py_None) return true;
  *number = PyLong_AsUnsignedLongLong(object);
  return !PyErr_Occurred();
}

static PyObject *report_object(const hg_launch_report *r) {
  return Py_BuildValue("{s:s,s:s,s:K,s:K,s:s}", "backend", r->backend, "engine", r->engine, "lanes",
                       (unsigned long long)r->lanes, "nanoseconds", (unsigned long long)r->nanoseconds, "notes",
                       r->notes);
}

/* As hg_launch, on a queue, measuring the time. */
static bool launch_on(hg_stream *queue, launch *l, hg_launch_desc *desc, hg_launch_report *report) {
  hg_event_desc timed = {.size = sizeof timed, .flags = HG_EVENT_TIMED};
  hg_kernel_info info = {.size = sizeof info};
  hg_event *from = NULL, *to = NULL;
  double nanoseconds = 0;
  hg_status status = hg_event_create(l->device->executor, &timed, &from);
  if (status == HG_OK) status = hg_event_create(l->device->executor, &timed, &to);
  if (status == HG_OK) status = hg_event_record(from, queue);
  if (status == HG_OK && l->device->stream != NULL) status = hg_kernel_query(l->kernel, &info);
  desc->stream = queue;
  HGPY_BEGIN_CALL
  if (status == HG_OK) status = hg_launch(l->kernel, desc, report);
  if (status == HG_OK) status = hg_event_record(to, queue);
  HGPY_END_CALL
  bool is_good = hgpy_queue_wait(l->device, queue, status, l->storages, l->binding_count);
  if (is_good && info.why != NULL) report->notes = info.why; /* on a GPU, notes are about launches without a stream */
  if (is_good && hg_event_elapsed(from, to, &nanoseconds) == HG_OK) report->nanoseconds = (uint64_t)nanoseconds;
  hg_event_release(from);
  hg_event_release(to);
  return is_good;
}

static bool launch_now(launch *l, hg_launch_desc *desc, hg_launch_report *report) {
  hg_status status;
  HGPY_BEGIN_CALL
  status = hg_launch(l->kernel, desc, report);
  HGPY_END_CALL
  return hgpy_ok(status);
}

static PyObject *run(launch *l, hg_launch_desc *desc, PyObject *values) {
  hg_launch_report report = {.size = sizeof report};
  bool is_good = bind_all(l, values) && hgpy_device_wait(l->device);
  if (is_good) {
    desc->size = sizeof *desc;
    desc->bindings = l->bindings;
    desc->binding_count = l->binding_count;
    desc->binding_size = sizeof(hg_binding);
    desc->scalars = l->scalars;
    desc->scalar_count = l->scalar_count;
    desc->scalar_size = sizeof(hg_scalar);
    /* limited steps end it, and only a launch without a queue reports what another engine ran */
    hg_stream *queue = desc->step_limit == 0 ? hgpy_queue_take(l->device) : NULL;
    is_good = queue != NULL ? launch_on(queue, l, desc, &report) : launch_now(l, desc, &report);
  }
  PyObject *result = is_good ? report_object(&report) : NULL; /* its notes live as long as the kernel */
  for (uint32_t i = 0; i < l->binding_count; i++) hgpy_storage_release(l->storages[i]);
  return result;
}

/* run(executor, lanes=None, *, grid=None, block=None, step_limit=0, **parameters) */
static PyObject *program_run(PyObject *self, PyObject *arguments, PyObject *names) {
  PyObject *executor, *lanes = Py_None;
  if (!PyArg_ParseTuple(arguments, "O|O:run", &executor, &lanes)) return NULL;
  PyObject *values = names != NULL ? PyDict_Copy(names) : PyDict_New();
  hgpy_device *device = values != NULL ? hgpy_device_of(executor) : NULL;
  if (device == NULL) {
    Py_XDECREF(values);
    return NULL;
  }
  hg_launch_desc desc = {.size = sizeof desc};
  PyObject *grid = pop(values, "grid"), *block = pop(values, "block"), *limit = pop(values, "step_limit"),
           *named = pop(values, "lanes");
  launch l = {.device = hgpy_device_retain(device)};
  PyObject *result = NULL;
  if (number_from(named != NULL ? named : lanes, &desc.lanes) && number_from(limit, &desc.step_limit) &&
      dimensions_from(grid, desc.grid) && dimensions_from(block, desc.block))
    l.kernel = kernel_for((program *)self, device);
  if (l.kernel != NULL && hgpy_allows_kernel(device, l.kernel)) result = run(&l, &desc, values);
  hg_kernel_release(l.kernel);
  hgpy_device_release(l.device);
  Py_XDECREF(grid), Py_XDECREF(block), Py_XDECREF(limit), Py_XDECREF(named);
  Py_DECREF(values);
  return result;
}

/* ---- what it is -------------------------------------------------------------------------------------------------- */

static PyObject *get_hash(PyObject *self, void *unused) {
  uint8_t digest[ATLAS_HASH_BYTES];
  char text[2 * ATLAS_HASH_BYTES + 1];
  (void)unused;
  if (!hgpy_ok(atlas_program_hash(((program *)self)->program, digest))) return NULL;
  for (int i = 0; i < ATLAS_HASH_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  return PyUnicode_FromString(text);
}

typedef hg_status (*printer)(const hg_allocator *, const atlas_program *, char **, size_t *);

static PyObject *print_by(PyObject *self, printer print) {
  char *text = NULL;
  size_t length = 0;
  if (!hgpy_ok(print(NULL, ((program *)self)->program, &text, &length))) return NULL;
  PyObject *string = PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
  atlas_memory_release(NULL, text);
  return string;
}

static PyObject *get_text(PyObject *self, void *unused) {
  (void)unused;
  return print_by(self, atlas_print);
}

static PyObject *get_canonical(PyObject *self, void *unused) {
  (void)unused;
  return print_by(self, atlas_print_canonical);
}

static PyObject *get_name(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(atlas_program_name(((program *)self)->program));
}

static PyObject *program_encode(PyObject *self, PyObject *unused) {
  void *bytes = NULL;
  size_t length = 0;
  (void)unused;
  if (!hgpy_ok(atlas_encode(NULL, ((program *)self)->program, &bytes, &length))) return NULL;
  PyObject *copy = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)length);
  atlas_memory_release(NULL, bytes);
  return copy;
}

static PyMethodDef program_methods[] = {
    {"run", (PyCFunction)(void *)program_run, METH_VARARGS | METH_KEYWORDS,
     "run($self, executor, lanes=None, *, grid=None, block=None, step_limit=None, **parameters)\n--\n\n"
     "Runs it: so many lanes, or a grid of blocks. Parameters by name: Buffers, or anything with the buffer protocol, "
     "whose memory "
     "is used as it is; numbers for scalars. Returns a report: backend, engine, lanes, nanoseconds, notes.\n"
     "Raises hologram.Fault where it faulted (what it wrote stands), hologram.BindingError where parameters do not "
     "fit."},
    {"encode", program_encode, METH_NOARGS, "encode($self)\n--\n\nThe binary form; Program() reads it."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef program_getset[] = {
    {"hash", get_hash, NULL, "SHA-256 of its canonical form: what the program computes, however it is written.", NULL},
    {"text", get_text, NULL, "The text form.", NULL},
    {"canonical", get_canonical, NULL, "The canonical form in SSA: equal for programs with one hash.", NULL},
    {"name", get_name, NULL, "The program's name.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot program_slots[] = {
    {Py_tp_doc, "Program(source, name=None)\n--\n\nA program of the Atlas ISA, of its text (str) or binary form "
                "(bytes), verified.\n\n"
                "Raises hologram.ParseError or VerifyError with line and column, FormatError."},
    {Py_tp_new, program_new},
    {Py_tp_dealloc, program_dealloc},
    {Py_tp_methods, program_methods},
    {Py_tp_getset, program_getset},
    {0, NULL},
};

static PyType_Spec program_spec = {
    .name = "hologram.Program", .basicsize = sizeof(program), .flags = Py_TPFLAGS_DEFAULT, .slots = program_slots};

int hgpy_program_add(PyObject *module) {
  program_type = hgpy_add_type(module, &program_spec);
  return program_type != NULL ? 0 : -1;
}
