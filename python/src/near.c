/* near.c - names that other libraries have and this one lacks: errors that say what to write instead. For arrays, such
 * a name is a descriptor in the type's dict, so that existing names cost nothing. */
#include "hgpy.h"

enum { WHERE_FUNCTION = 1, WHERE_METHOD = 2, WHERE_EITHER = 3, WHERE_ARGUMENT = 4 };

typedef struct near_row {
  int where; /* a set of these */
  const char *name, *what;
} near_row;

static const near_row rows[] = {
#define HGPY_NEAR(where, name, what) {where, #name, what},
#include "near.def"
#undef HGPY_NEAR
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static const near_row *find(int where, const char *name) {
  for (size_t i = 0; i < ROW_COUNT; i++)
    if ((rows[i].where & where) != 0 && strcmp(rows[i].name, name) == 0) return &rows[i];
  return NULL;
}

const char *hgpy_near_argument(const char *name) {
  const near_row *row = find(WHERE_ARGUMENT, name);
  return row != NULL ? row->what : NULL;
}

static PyObject *what_of(int where, PyObject *name) {
  const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
  const near_row *row = text != NULL ? find(where, text) : NULL;
  if (row != NULL) return PyUnicode_FromString(row->what);
  if (PyErr_Occurred()) return NULL;
  Py_RETURN_NONE;
}

/* near(name): what to write in place of hologram.name; None: the name is unknown. */
PyObject *hgpy_near(PyObject *module, PyObject *name) {
  (void)module;
  return what_of(WHERE_FUNCTION, name);
}

/* near_word(name): the same for an argument's name. */
PyObject *hgpy_near_word(PyObject *module, PyObject *name) {
  (void)module;
  return what_of(WHERE_ARGUMENT, name);
}

/* ---- of arrays --------------------------------------------------------------------------------------------------- */

typedef struct absent {
  PyObject_HEAD
  const near_row *row;
} absent;

static PyObject *absent_get(PyObject *self, PyObject *array, PyObject *type) {
  const near_row *row = ((absent *)self)->row;
  (void)array, (void)type;
  return PyErr_Format(PyExc_AttributeError, "an Array has no '%s': %s", row->name, row->what);
}

static PyObject *absent_repr(PyObject *self) {
  return PyUnicode_FromFormat("<not there: %s>", ((absent *)self)->row->what);
}

static PyType_Slot absent_slots[] = {
    {Py_tp_dealloc, hgpy_free_object},
    {Py_tp_descr_get, absent_get},
    {Py_tp_repr, absent_repr},
    {0, NULL},
};

static PyType_Spec absent_spec = {.name = "hologram._core._Absent",
                                  .basicsize = sizeof(absent),
                                  .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                  .slots = absent_slots};

int hgpy_near_add(PyObject *array_type) {
  PyTypeObject *type = (PyTypeObject *)PyType_FromSpec(&absent_spec);
  int status = type != NULL ? 0 : -1;
  for (size_t i = 0; i < ROW_COUNT && status == 0; i++) {
    if ((rows[i].where & WHERE_METHOD) == 0) continue;
    absent *object = PyObject_New(absent, type);
    if (object != NULL) object->row = &rows[i];
    status = object != NULL ? PyObject_SetAttrString(array_type, rows[i].name, (PyObject *)object) : -1;
    Py_XDECREF((PyObject *)object);
  }
  Py_XDECREF((PyObject *)type);
  return status;
}
