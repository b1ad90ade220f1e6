/* compiled.c - graphs of another library as functions of its tensors (torch.compile).
 *
 * A call is found by its arguments, as that of an operation is (plans.c): by the types, shapes and strides of tensors,
 * and by numbers. Only a new one calls record(), which gets an array in the place of each tensor, and returns the
 * results to compute, how each is to be seen, and a form: what the call returns. */
#include "plans.h"

typedef struct compiled {
  PyObject_HEAD
  uint32_t row; /* a number of its own, behind those of the table */
  PyObject *record, *types;
} compiled;

static PyTypeObject *compiled_type;

static PyTypeObject *type_of(const compiled *f) { return (PyTypeObject *)PyTuple_GetItem(f->types, 0); }

/* ---- results ----------------------------------------------------------------------------------------------------- */

/* A list by the form, a tuple: of a number from 0 on a computed tensor, of -1 - i the argument i, of a tuple its only
 * element. */
static PyObject *fill(PyObject *form, PyObject *computed, PyObject *arguments) {
  Py_ssize_t count = PyTuple_Size(form);
  bool is_one = computed != NULL && !PyTuple_Check(computed);
  PyObject *list = PyList_New(count);
  for (Py_ssize_t i = 0; list != NULL && i < count; i++) {
    PyObject *entry = PyTuple_GetItem(form, i), *value;
    if (PyTuple_Check(entry)) value = PyTuple_GetItem(entry, 0);
    else {
      Py_ssize_t place = PyLong_AsSsize_t(entry);
      value = place < 0 ? PyList_GetItem(arguments, -1 - place) : is_one ? computed : PyTuple_GetItem(computed, place);
    }
    if (value == NULL || PyList_SetItem(list, i, Py_NewRef(value)) < 0) Py_CLEAR(list);
  }
  return list;
}

/* ---- a new call -------------------------------------------------------------------------------------------------- */

/* What record() returned: arrays, a (shape, strides) or None for each, and the form. */
typedef struct recorded {
  PyObject *all; /* owns the others */
  PyObject *arrays, *views, *form;
} recorded;

static bool read_recorded(recorded *r) {
  if (r->all == NULL) return false;
  bool is_good = PyTuple_Check(r->all) && PyTuple_Size(r->all) == 3;
  r->arrays = is_good ? PyTuple_GetItem(r->all, 0) : NULL;
  r->views = is_good ? PyTuple_GetItem(r->all, 1) : NULL;
  r->form = is_good ? PyTuple_GetItem(r->all, 2) : NULL;
  is_good = is_good && PyTuple_Check(r->arrays) && PyTuple_Check(r->views) && PyTuple_Check(r->form) &&
            PyTuple_Size(r->arrays) == PyTuple_Size(r->views);
  for (Py_ssize_t i = 0; is_good && i < PyTuple_Size(r->arrays); i++)
    is_good = hgpy_is_array(PyTuple_GetItem(r->arrays, i));
  if (!is_good) PyErr_SetString(PyExc_TypeError, "record() returns arrays, their views and a form");
  return is_good;
}

/* A list of the arguments with arrays over the tensors. NULL with nothing raised: another library's memory that cannot
 * be lent. */
static PyObject *borrow_all(const compiled *f, PyObject *arguments, hgpy_device *device) {
  PyObject *own = PyList_New(PyList_Size(arguments));
  for (Py_ssize_t i = 0; own != NULL && i < PyList_Size(own); i++) {
    PyObject *value = PyList_GetItem(arguments, i);
    PyObject *array =
        hgpy_is_one_of(value, f->types) ? hgpy_borrow_by_table(value, type_of(f), device) : Py_NewRef(value);
    if (array != NULL && device == NULL && hgpy_is_array(array)) device = hgpy_array_node(array)->device;
    if (array == NULL || PyList_SetItem(own, i, array) < 0) Py_CLEAR(own);
  }
  return own;
}

/* The plan of what was recorded, for the question; NULL: there is none. */
static hgpy_plan *make_plan(const hgpy_question *q, PyObject *own, const recorded *r) {
  uint32_t count = (uint32_t)PyTuple_Size(r->arrays), loan = 0;
  hgpy_node **nodes = PyMem_Malloc((count + q->loan_count + 1) * sizeof(hgpy_node *)), **given = nodes + count;
  hgpy_view *views = PyMem_Calloc(count + 1, sizeof *views);
  bool is_good = nodes != NULL && views != NULL && count > 0;
  for (uint32_t i = 0; is_good && i < count; i++) {
    PyObject *view = PyTuple_GetItem(r->views, (Py_ssize_t)i);
    nodes[i] = hgpy_array_node(PyTuple_GetItem(r->arrays, (Py_ssize_t)i));
    if (PyTuple_Check(view)) views[i] = (hgpy_view){PyTuple_GetItem(view, 0), PyTuple_GetItem(view, 1)};
  }
  for (Py_ssize_t i = 0; is_good && i < PyList_Size(own); i++) {
    PyObject *value = PyList_GetItem(own, i);
    if (hgpy_is_array(value)) given[loan++] = hgpy_array_node(value);
  }
  is_good = is_good && loan == q->loan_count;
  hgpy_plan *plan = is_good ? hgpy_plan_make_with(q, given, nodes, count, views, r->form) : NULL;
  PyMem_Free(nodes), PyMem_Free(views);
  return plan;
}

/* tensor.as_strided(shape, strides) of each that has a view. */
static PyObject *see_all(PyObject *tensors, PyObject *views) {
  Py_ssize_t count = PyTuple_Size(views);
  PyObject *all = tensors != NULL ? PyTuple_New(count) : NULL;
  for (Py_ssize_t i = 0; all != NULL && i < count; i++) {
    PyObject *tensor = PyTuple_GetItem(tensors, i), *view = PyTuple_GetItem(views, i), *method = NULL, *seen;
    if (PyTuple_Check(view)) method = PyObject_GetAttrString(tensor, "as_strided");
    seen = method != NULL ? PyObject_Call(method, view, NULL) : PyErr_Occurred() ? NULL : Py_NewRef(tensor);
    Py_XDECREF(method);
    if (seen == NULL || PyTuple_SetItem(all, i, seen) < 0) Py_CLEAR(all);
  }
  Py_XDECREF(tensors);
  return all;
}

/* NULL with nothing raised: the tensors' memory cannot be lent. */
static PyObject *record(const compiled *f, PyObject *arguments, const hgpy_question *q) {
  PyObject *own = borrow_all(f, arguments, q != NULL ? q->device : NULL), *list = NULL, *computed = NULL;
  if (own == NULL) return NULL;
  recorded r = {.all = PyObject_CallFunctionObjArgs(f->record, own, NULL)};
  if (read_recorded(&r)) {
    hgpy_plan *plan = q != NULL ? make_plan(q, own, &r) : NULL;
    if (plan != NULL) computed = hgpy_plan_run(plan, q, type_of(f));
    if (computed == NULL && PyErr_Occurred() == NULL)
      computed = see_all(hgpy_hand_over(Py_NewRef(r.arrays), type_of(f)), r.views);
    if (computed != NULL) list = fill(r.form, computed, arguments);
  }
  Py_XDECREF(computed), Py_XDECREF(r.all), Py_DECREF(own);
  return list;
}

/* ---- a call ------------------------------------------------------------------------------------------------------ */

/* 1: the question; 0: such a call has none; -1: raised. */
static int ask(const compiled *f, PyObject *arguments, hgpy_question *q) {
  hgpy_family *family = hgpy_family_of(type_of(f));
  Py_ssize_t count = PyList_Size(arguments);
  if (!hgpy_can_plan()) return 0;
  if (!hgpy_question_expect(q, count)) return -1;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *value = PyList_GetItem(arguments, i);
    int is_good = hgpy_is_one_of(value, f->types) ? hgpy_question_add_tensor(q, value, family)
                                                  : hgpy_question_add(q, value);
    if (is_good <= 0) return is_good;
  }
  return q->device != NULL;
}

/* The results; NULL with nothing raised: the tensors' memory cannot be lent. */
static PyObject *find_results(const compiled *f, PyObject *arguments) {
  hgpy_question q;
  hgpy_question_begin(&q, f->row, 0, 0);
  int is_asked = ask(f, arguments, &q);
  hgpy_plan *plan = is_asked > 0 ? hgpy_plan_find(&q) : NULL;
  PyObject *list = NULL;
  if (plan != NULL) {
    PyObject *form = Py_NewRef(hgpy_plan_beside(plan)); /* the plan may be dropped meanwhile */
    PyObject *computed = hgpy_plan_run(plan, &q, type_of(f));
    if (computed != NULL) list = fill(form, computed, arguments);
    Py_XDECREF(computed), Py_DECREF(form);
  }
  if (list == NULL && is_asked >= 0 && PyErr_Occurred() == NULL)
    list = record(f, arguments, is_asked > 0 && plan == NULL ? &q : NULL);
  hgpy_question_end(&q);
  return list;
}

/* A list of results of a list of arguments, which it empties. None: it cannot be made here, and the list stays. */
static PyObject *call(PyObject *self, PyObject *arguments) {
  if (!PyList_Check(arguments)) return PyErr_Format(PyExc_TypeError, "a computation is called with a list");
  PyObject *list = find_results((const compiled *)self, arguments);
  if (list != NULL && PyList_SetSlice(arguments, 0, PyList_Size(arguments), NULL) < 0) Py_CLEAR(list);
  return list != NULL || PyErr_Occurred() ? list : Py_NewRef(Py_None);
}

/* compiled(record, types): a function of a list of tensors and numbers. */
PyObject *hgpy_compiled(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  static PyMethodDef method = {"computation", call, METH_O, NULL};
  static uint32_t last;
  (void)module;
  if (count != 2 || !PyCallable_Check(values[0]) || !hgpy_are_types(values[1]))
    return PyErr_Format(PyExc_TypeError, "compiled takes a function and a tuple of types");
  compiled *f = PyObject_New(compiled, compiled_type);
  if (f == NULL) return NULL;
  f->row = HGPY_ROW_COUNT + last++;
  f->record = Py_NewRef(values[0]);
  f->types = Py_NewRef(values[1]);
  PyObject *function = PyCFunction_New(&method, (PyObject *)f);
  Py_DECREF(f);
  return function;
}

static void compiled_dealloc(PyObject *self) {
  compiled *f = (compiled *)self;
  Py_DECREF(f->record), Py_DECREF(f->types);
  hgpy_free_object(self);
}

int hgpy_compiled_add(PyObject *module) {
  static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)compiled_dealloc}, {0, NULL}};
  static PyType_Spec spec = {.name = "hologram._core._Compiled", .basicsize = sizeof(compiled),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, .slots = slots};
  compiled_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
  return compiled_type != NULL ? 0 : -1;
}
