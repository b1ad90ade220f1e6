/* circuit.c - hologram.circuit: circuits over the 96 classes. */
#include "hgpy.h"

#include "hologram/circuit.h"

#include <stdio.h>

typedef struct circuit {
  PyObject_HEAD
  hg_circuit *circuit;
  PyObject *program; /* made when it is first asked for */
  bool is_published; /* the published identities are applied to its text */
} circuit;

static PyTypeObject *circuit_type;

static hg_circuit *of(PyObject *self) { return ((circuit *)self)->circuit; }

/* Takes the library's circuit over. */
static PyObject *circuit_object(hg_circuit *made, bool is_published) {
  circuit *object = PyObject_New(circuit, circuit_type);
  if (object == NULL) return hg_circuit_release(made), NULL;
  object->circuit = made;
  object->program = NULL;
  object->is_published = is_published;
  return (PyObject *)object;
}

static PyObject *new_circuit(PyObject *module, PyObject *arguments, PyObject *names) {
  static char *known[] = {"text", "rules", NULL};
  Py_ssize_t length;
  PyObject *text;
  const char *rules = NULL;
  hg_circuit *made = NULL;
  hg_status status;
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "U|$z:circuit", known, &text, &rules)) return NULL;
  if (rules != NULL && strcmp(rules, "published") != 0)
    return PyErr_Format(PyExc_ValueError, "rules is None or 'published', not '%s'", rules);
  const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
  if (bytes == NULL) return NULL;
  HGPY_BEGIN_CALL
  status = hg_circuit_parse(NULL, bytes, (size_t)length, NULL, &made);
  HGPY_END_CALL
  return hgpy_ok(status) ? circuit_object(made, rules != NULL) : NULL;
}

static void circuit_dealloc(PyObject *self) {
  hg_circuit_release(of(self));
  Py_XDECREF(((circuit *)self)->program);
  hgpy_free_object(self);
}

static PyObject *circuit_inverse(PyObject *self, PyObject *unused) {
  hg_circuit *made = NULL;
  (void)unused;
  return hgpy_ok(hg_circuit_inverse(of(self), &made)) ? circuit_object(made, ((circuit *)self)->is_published) : NULL;
}

/* ---- texts ------------------------------------------------------------------------------------------------------- */

static PyObject *string_of(hg_status status, char *text, size_t length) {
  if (!hgpy_ok(status)) return NULL;
  PyObject *string = PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
  atlas_memory_release(NULL, text);
  return string;
}

static PyObject *get_canonical(PyObject *self, void *unused) {
  char *text = NULL;
  size_t length = 0;
  (void)unused;
  hg_status status = hg_circuit_canonical(NULL, of(self), &text, &length);
  return string_of(status, text, length);
}

static PyObject *get_text(PyObject *self, void *unused) {
  char *text = NULL;
  size_t length = 0;
  (void)unused;
  hg_status status = hg_circuit_steps(NULL, of(self), &text, &length);
  PyObject *string = string_of(status, text, length);
  if (string == NULL || !((circuit *)self)->is_published) return string;
  PyObject *module = PyImport_ImportModule("hologram._published");
  PyObject *changed = module != NULL ? PyObject_CallMethod(module, "apply", "O", string) : NULL;
  Py_DECREF(string);
  Py_XDECREF(module);
  return changed;
}

/* Lines "name = term" as a dict. */
static PyObject *get_terms(PyObject *self, void *unused) {
  char *text = NULL;
  (void)unused;
  if (!hgpy_ok(hg_circuit_terms(NULL, of(self), &text, NULL))) return NULL;
  PyObject *terms = PyDict_New();
  for (char *line = text; terms != NULL && *line != '\0';) {
    char *end = strchr(line, '\n'), *equals = strstr(line, " = ");
    *end = *equals = '\0';
    PyObject *term = PyUnicode_FromString(equals + 3);
    if (term == NULL || PyDict_SetItemString(terms, line, term) < 0) Py_CLEAR(terms);
    Py_XDECREF(term);
    line = end + 1;
  }
  atlas_memory_release(NULL, text);
  return terms;
}

static PyObject *get_hash(PyObject *self, void *unused) {
  uint8_t digest[HG_CIRCUIT_HASH_BYTES];
  char text[2 * HG_CIRCUIT_HASH_BYTES + 1];
  (void)unused;
  hg_circuit_hash(of(self), digest);
  for (int i = 0; i < HG_CIRCUIT_HASH_BYTES; i++) snprintf(text + 2 * i, 3, "%02x", digest[i]);
  return PyUnicode_FromString(text);
}

static PyObject *get_report(PyObject *self, void *unused) {
  hg_circuit_report r = {.size = sizeof r};
  hg_circuit_law law = {.size = sizeof law};
  (void)unused;
  if (!hgpy_ok(hg_circuit_query(of(self), &r))) return NULL;
  PyObject *laws = PyDict_New();
  for (size_t i = 0; laws != NULL && hg_circuit_law_query(of(self), i, &law) == HG_OK; i++) {
    PyObject *count = law.count > 0 ? PyLong_FromUnsignedLongLong(law.count) : NULL;
    if (law.count > 0 && (count == NULL || PyDict_SetItemString(laws, law.name, count) < 0)) Py_CLEAR(laws);
    Py_XDECREF(count);
  }
  if (laws == NULL) return NULL;
  return Py_BuildValue("{s:K,s:K,s:K,s:I,s:I,s:I,s:I,s:N}", "steps", (unsigned long long)r.steps, "canonical_steps",
                       (unsigned long long)r.canonical_steps, "operations", (unsigned long long)r.operations, "changed",
                       r.changed, "temporaries", r.temporaries, "components", r.components, "lanes", r.lanes, "laws",
                       laws);
}

/* ---- programs ---------------------------------------------------------------------------------------------------- */

static PyObject *get_program(PyObject *self, void *unused) {
  circuit *c = (circuit *)self;
  atlas_program *program = NULL;
  hg_status status;
  (void)unused;
  if (c->program == NULL) {
    HGPY_BEGIN_CALL
    status = hg_circuit_compile(NULL, c->circuit, &program);
    HGPY_END_CALL
    PyObject *made = hgpy_ok(status) ? hgpy_program_of(program) : NULL;
    if (c->program == NULL) c->program = made; /* unless another thread was quicker */
    else Py_XDECREF(made);
  }
  return Py_XNewRef(c->program);
}

/* The boundary pool of the executor, in elements of the program's buffer: those are larger without arithmetic. */
static PyObject *pool_of(hgpy_device *device, uint64_t operations) {
  uint32_t type = operations > 0 ? ATLAS_f32 : ATLAS_u64;
  hgpy_storage *storage = hgpy_storage_of_boundary(device, 0, ATLAS_BOUNDARY_POOL_BYTES);
  return storage != NULL ? hgpy_buffer_of(storage, type, ATLAS_BOUNDARY_POOL_BYTES / hgpy_type_bytes(type)) : NULL;
}

static PyObject *circuit_run(PyObject *self, PyObject *executor) {
  hg_circuit_report r = {.size = sizeof r};
  hgpy_device *device = hgpy_device_of(executor);
  if (device == NULL || !hgpy_ok(hg_circuit_query(of(self), &r))) return NULL;
  PyObject *program = get_program(self, NULL), *pool = program != NULL ? pool_of(device, r.operations) : NULL;
  PyObject *run = pool != NULL ? PyObject_GetAttrString(program, "run") : NULL;
  PyObject *given = run != NULL ? Py_BuildValue("(OI)", executor, r.lanes) : NULL;
  PyObject *named = given != NULL ? Py_BuildValue("{s:O}", "pool", pool) : NULL;
  PyObject *report = named != NULL ? PyObject_Call(run, given, named) : NULL;
  Py_XDECREF(program), Py_XDECREF(pool), Py_XDECREF(run), Py_XDECREF(given), Py_XDECREF(named);
  return report;
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

static PyObject *circuit_repr(PyObject *self) {
  PyObject *text = get_canonical(self, NULL);
  PyObject *repr = text != NULL ? PyUnicode_FromFormat("<hologram.Circuit %.200R>", text) : NULL;
  Py_XDECREF(text);
  return repr;
}

/* Circuits with one canonical form are equal. */
static PyObject *circuit_compare(PyObject *self, PyObject *other, int how) {
  if (Py_TYPE(other) != circuit_type || (how != Py_EQ && how != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  uint8_t a[HG_CIRCUIT_HASH_BYTES], b[HG_CIRCUIT_HASH_BYTES];
  hg_circuit_hash(of(self), a);
  hg_circuit_hash(of(other), b);
  return PyBool_FromLong((memcmp(a, b, sizeof a) == 0) == (how == Py_EQ));
}

static Py_hash_t circuit_hash(PyObject *self) {
  uint8_t digest[HG_CIRCUIT_HASH_BYTES];
  Py_hash_t hash;
  hg_circuit_hash(of(self), digest);
  memcpy(&hash, digest, sizeof hash);
  return hash != -1 ? hash : -2;
}

static PyMethodDef circuit_methods[] = {
    {"run", circuit_run, METH_O,
     "run($self, executor, /)\n--\n\n"
     "Runs it on the executor's boundary pool, which Executor.allocate_boundary reads and writes. Returns a report as\n"
     "Program.run does."},
    {"inverse", circuit_inverse, METH_NOARGS,
     "inverse($self)\n--\n\n"
     "The circuit that undoes this one, read off its canonical form. Raises hologram.Unsupported if a content is lost\n"
     "or computed: only mark, swap, and copies that lose nothing can be undone."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef circuit_getset[] = {
    {"text", get_text, NULL, "What was written, without groups, ranges, quotes and transforms.", NULL},
    {"canonical", get_canonical, NULL, "The canonical form as a circuit: one text for all that compute the same terms.",
     NULL},
    {"terms", get_terms, NULL,
     "The canonical form as a dict over what the classes held before: from a class that changes ('c05'), or a term\n"
     "that is used elsewhere ('v0'), to a term ('add(c01, c02^0x0a)').",
     NULL},
    {"hash", get_hash, NULL, "SHA-256 of the canonical form.", NULL},
    {"report", get_report, NULL,
     "Counts: a dict. steps as written and canonical_steps, operations, changed classes, temporaries, components and\n"
     "lanes of the launch; laws: a dict of those that applied and how often.",
     NULL},
    {"program", get_program, NULL,
     "The Program: report['lanes'] lanes, its buffer `pool` bound to the boundary pool's 1,179,648 bytes.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot circuit_slots[] = {
    {Py_tp_doc, "A circuit over the 96 classes; hologram.circuit makes them. Equal if their canonical forms are."},
    {Py_tp_dealloc, circuit_dealloc},
    {Py_tp_repr, circuit_repr},
    {Py_tp_richcompare, circuit_compare},
    {Py_tp_hash, circuit_hash},
    {Py_tp_methods, circuit_methods},
    {Py_tp_getset, circuit_getset},
    {0, NULL},
};

static PyType_Spec circuit_spec = {.name = "hologram.Circuit",
                                   .basicsize = sizeof(circuit),
                                   .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                   .slots = circuit_slots};

static PyMethodDef functions[] = {
    {"circuit", (PyCFunction)(void *)new_circuit, METH_VARARGS | METH_KEYWORDS,
     "circuit(text, *, rules=None)\n--\n\n"
     "A circuit over the 96 classes of the boundary pool (docs/circuits.md), in canonical form. The rightmost step "
     "runs\nfirst. rules: 'published' applies the published gate identities to Circuit.text, and to nothing that "
     "runs: they\n"
     "do not hold for bytes.\nRaises hologram.ParseError with line and column.\n\n"
     "    circuit = hologram.circuit('swap@c10<->c11 . mark@c10')\n"
     "    circuit.run(hologram.Executor())"},
    {NULL, NULL, 0, NULL},
};

int hgpy_circuit_add(PyObject *module) {
  circuit_type = hgpy_add_type(module, &circuit_spec);
  return circuit_type != NULL ? PyModule_AddFunctions(module, functions) : -1;
}
