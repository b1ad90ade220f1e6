/* tensors.c - functions of arrays on tensors of another library, by the table of C functions of their type: what is
 * given is borrowed for the call, what comes out is handed over, and for an operation of the table Python is not asked
 * in between. Types are a tuple of one family; results are of the first. */
#include "hgpy.h"

enum { MOST_VALUES = 16 };

/* ---- what is given ----------------------------------------------------------------------------------------------- */

static bool is_one_of(PyObject *object, PyObject *types) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(types); i++)
    if ((PyObject *)Py_TYPE(object) == PyTuple_GetItem(types, i)) return true;
  return false;
}

static PyTypeObject *first_of(PyObject *types) { return (PyTypeObject *)PyTuple_GetItem(types, 0); }

static bool are_types(PyObject *object) {
  return PyTuple_Check(object) && PyTuple_Size(object) > 0 && PyType_Check(PyTuple_GetItem(object, 0));
}

static void drop_all(PyObject **own, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(own[i]);
}

/* ---- what comes out ---------------------------------------------------------------------------------------------- */

static bool are_arrays(PyObject *tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++)
    if (!hgpy_is_array(PyTuple_GetItem(tuple, i))) return false;
  return true;
}

/* As one computation. */
static bool compute_all(PyObject *arrays) {
  Py_ssize_t count = PyTuple_Size(arrays);
  hgpy_node **nodes = PyMem_Malloc((size_t)(count + 1) * sizeof(hgpy_node *));
  if (nodes == NULL) return PyErr_NoMemory(), false;
  for (Py_ssize_t i = 0; i < count; i++) nodes[i] = hgpy_array_node(PyTuple_GetItem(arrays, i));
  bool is_good = hgpy_evaluate(nodes, (uint32_t)count);
  PyMem_Free(nodes);
  return is_good;
}

/* Of an array, or of a tuple of them, which is one computation; it takes the result. */
static PyObject *hand_over(PyObject *result, PyTypeObject *type) {
  PyObject *tensors = NULL;
  if (result != NULL && hgpy_is_array(result)) tensors = hgpy_export_by_table(result, type, true);
  else if (result != NULL && PyTuple_Check(result) && are_arrays(result)) {
    if (compute_all(result)) tensors = PyTuple_New(PyTuple_Size(result));
    for (Py_ssize_t i = 0; tensors != NULL && i < PyTuple_Size(result); i++) {
      PyObject *tensor = hgpy_export_by_table(PyTuple_GetItem(result, i), type, true);
      if (tensor == NULL || PyTuple_SetItem(tensors, i, tensor) < 0) Py_CLEAR(tensors);
    }
  } else if (result != NULL)
    PyErr_Format(PyExc_TypeError, "a function of arrays gives arrays, not %R", (PyObject *)Py_TYPE(result));
  Py_XDECREF(result);
  return tensors;
}

/* ---- a function of Python ---------------------------------------------------------------------------------------- */

/* run_on_tensors(function, tensors, types): what the function makes of arrays over their memory. None: there are none,
 * or one is of no such type, or not memory of the CPU. */
PyObject *hgpy_run_on_tensors(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 3 || !PyTuple_Check(values[1]) || !are_types(values[2]))
    return PyErr_Format(PyExc_TypeError, "run_on_tensors takes a function, a tuple of tensors and one of types");
  Py_ssize_t tensors = PyTuple_Size(values[1]);
  bool are_known = tensors > 0;
  for (Py_ssize_t i = 0; i < tensors; i++)
    are_known = are_known && is_one_of(PyTuple_GetItem(values[1], i), values[2]);
  if (!are_known) Py_RETURN_NONE;
  PyObject *arrays = PyTuple_New(tensors);
  for (Py_ssize_t i = 0; arrays != NULL && i < tensors; i++) {
    PyObject *array = hgpy_borrow_by_table(PyTuple_GetItem(values[1], i), first_of(values[2]));
    if (array == NULL || PyTuple_SetItem(arrays, i, array) < 0) Py_CLEAR(arrays);
  }
  if (arrays == NULL) return PyErr_Occurred() != NULL ? NULL : Py_NewRef(Py_None);
  PyObject *result = hand_over(PyObject_Call(values[0], arrays, NULL), first_of(values[2]));
  Py_DECREF(arrays);
  return result;
}

/* ---- an operation of the table ----------------------------------------------------------------------------------- */

typedef struct on_tensors {
  PyObject_HEAD
  uint32_t row;
  PyObject *types;
  PyObject *is_followed; /* is_followed(): whether gradients are, of tensors that ask for it */
  PyObject *otherwise;   /* takes the same arguments where the call is not for here */
  PyObject *descriptor;  /* the types' requires_grad; NULL: they have several */
  descrgetfunc get;      /* its function, where it is in C, so that no tensor has another; NULL: it is not */
} on_tensors;

static PyTypeObject *on_tensors_type;
static PyObject *requires_grad; /* the name */

/* tensor.requires_grad; where a type has it in C it is not searched for again. */
static PyObject *get_requires_grad(const on_tensors *f, PyObject *tensor) {
  return f->get != NULL ? f->get(f->descriptor, tensor, NULL) : PyObject_GetAttr(tensor, requires_grad);
}

/* -1: raised. */
static int asks_for_gradient(const on_tensors *f, PyObject *tensor) {
  PyObject *asks = get_requires_grad(f, tensor), *follows = NULL;
  int answer = asks != NULL ? asks == Py_True : -1;
  if (answer > 0) {
    follows = PyObject_CallNoArgs(f->is_followed);
    answer = follows != NULL ? follows == Py_True : -1;
  }
  Py_XDECREF(asks), Py_XDECREF(follows);
  return answer;
}

/* 1: tensors without gradients, and what is none; 0: this is no call for here; -1: raised. */
static int can_borrow(const on_tensors *f, PyObject *const *values, Py_ssize_t total) {
  int found = 0;
  for (Py_ssize_t i = 0; i < total; i++) {
    if (!is_one_of(values[i], f->types)) {
      if (PyType_IsSubtype(Py_TYPE(values[i]), first_of(f->types))) return 0; /* what it does is not known */
      continue;
    }
    int asks = asks_for_gradient(f, values[i]);
    if (asks != 0) return asks < 0 ? -1 : 0;
    found = 1;
  }
  return found;
}

/* Arrays in place of tensors, all of them new references. 0: this is no call for here; -1: raised. */
static int borrow_all(const on_tensors *f, PyObject *const *values, Py_ssize_t total, PyObject **own) {
  int can = can_borrow(f, values, total);
  if (can <= 0) return can;
  for (Py_ssize_t i = 0; i < total; i++) {
    bool is_tensor = is_one_of(values[i], f->types);
    own[i] = is_tensor ? hgpy_borrow_by_table(values[i], first_of(f->types)) : Py_NewRef(values[i]);
    if (own[i] != NULL) continue;
    drop_all(own, i);
    return PyErr_Occurred() != NULL ? -1 : 0;
  }
  return 1;
}

static bool names_executor(PyObject *const *values, Py_ssize_t count, PyObject *names) {
  if (count > 0 && hgpy_is_executor(values[0])) return true;
  for (Py_ssize_t i = 0; names != NULL && i < PyTuple_Size(names); i++)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, i), "executor") == 0) return true;
  return false;
}

static PyObject *call_otherwise(const on_tensors *f, PyObject *const *values, Py_ssize_t count, PyObject *names) {
  PyObject *tuple = PyTuple_New(count), *named = NULL, *result = NULL;
  for (Py_ssize_t i = 0; tuple != NULL && i < count; i++)
    if (PyTuple_SetItem(tuple, i, Py_NewRef(values[i])) < 0) Py_CLEAR(tuple);
  bool is_good = tuple != NULL;
  if (is_good && names != NULL) is_good = (named = PyDict_New()) != NULL;
  for (Py_ssize_t i = 0; is_good && names != NULL && i < PyTuple_Size(names); i++)
    is_good = PyDict_SetItem(named, PyTuple_GetItem(names, i), values[count + i]) == 0;
  if (is_good) result = PyObject_Call(f->otherwise, tuple, named);
  Py_XDECREF(tuple), Py_XDECREF(named);
  return result;
}

static PyObject *call(PyObject *self, PyObject *const *values, Py_ssize_t count, PyObject *names) {
  const on_tensors *f = (const on_tensors *)self;
  PyObject *own[MOST_VALUES];
  Py_ssize_t total = count + (names != NULL ? PyTuple_Size(names) : 0);
  bool is_elsewhere = total > MOST_VALUES || names_executor(values, count, names);
  int is_here = is_elsewhere ? 0 : borrow_all(f, values, total, own);
  if (is_here < 0) return NULL;
  if (is_here > 0 && hgpy_row_mixes(f->row, own, count, total)) { /* whose types promote is not ours to say */
    drop_all(own, total);
    is_here = 0;
  }
  if (is_here == 0) return call_otherwise(f, values, count, names);
  PyObject *tensors = hand_over(hgpy_call_row(f->row, own, count, names), first_of(f->types));
  drop_all(own, total);
  return tensors;
}

static void on_tensors_dealloc(PyObject *self) {
  on_tensors *f = (on_tensors *)self;
  Py_DECREF(f->types), Py_DECREF(f->is_followed), Py_DECREF(f->otherwise), Py_XDECREF(f->descriptor);
  hgpy_free_object(self);
}

/* Nothing is raised. */
static PyObject *find_descriptor(PyObject *types) {
  PyObject *found = PyObject_GetAttr(PyTuple_GetItem(types, 0), requires_grad);
  for (Py_ssize_t i = 1; found != NULL && i < PyTuple_Size(types); i++) {
    PyObject *other = PyObject_GetAttr(PyTuple_GetItem(types, i), requires_grad);
    Py_XDECREF(other);
    if (other != found) Py_CLEAR(found);
  }
  PyErr_Clear();
  return found;
}

/* on_tensors(operation, types, is_followed, otherwise): a function of tensors and numbers, with its name and docstring.
 */
PyObject *hgpy_on_tensors(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  static PyMethodDef methods[HGPY_ROW_COUNT];
  (void)module;
  if (count != 4 || !PyUnicode_Check(values[0]) || !are_types(values[1]))
    return PyErr_Format(PyExc_TypeError, "on_tensors takes an operation's name, a tuple of types and two functions");
  const char *name = PyUnicode_AsUTF8AndSize(values[0], NULL);
  int row = name != NULL ? hgpy_row_find(name) : -1;
  if (row < 0) return PyErr_Format(PyExc_AttributeError, "no operation of the table is %R", values[0]);
  on_tensors *f = PyObject_New(on_tensors, on_tensors_type);
  if (f == NULL) return NULL;
  f->row = (uint32_t)row;
  f->types = Py_NewRef(values[1]);
  f->is_followed = Py_NewRef(values[2]);
  f->otherwise = Py_NewRef(values[3]);
  f->descriptor = find_descriptor(values[1]);
  f->get = NULL;
  if (f->descriptor != NULL && Py_TYPE(f->descriptor) == &PyGetSetDescr_Type)
    f->get = (descrgetfunc)PyType_GetSlot(&PyGetSetDescr_Type, Py_tp_descr_get);
  methods[row] = (PyMethodDef){hgpy_row_name(f->row), (PyCFunction)(void *)call, METH_FASTCALL | METH_KEYWORDS,
                               hgpy_row_text(f->row)};
  PyObject *function = PyCFunction_New(&methods[row], (PyObject *)f);
  Py_DECREF(f);
  return function;
}

int hgpy_tensors_add(PyObject *module) {
  static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)on_tensors_dealloc}, {0, NULL}};
  static PyType_Spec spec = {.name = "hologram._core._OnTensors", .basicsize = sizeof(on_tensors),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, .slots = slots};
  requires_grad = PyUnicode_InternFromString("requires_grad");
  on_tensors_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL); /* nobody makes one */
  return requires_grad != NULL && on_tensors_type != NULL ? 0 : -1;
}
