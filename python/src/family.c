/* family.c - properties of other libraries' array types, determined once for each type. */
#include "family.h"

static bool has_attribute(PyTypeObject *type, const char *name) {
  PyObject *found = PyObject_GetAttrString((PyObject *)type, name);
  Py_XDECREF(found);
  PyErr_Clear();
  return found != NULL;
}

static bool may_ask_another(PyTypeObject *type) {
  PyObject *own = PyObject_GetAttrString((PyObject *)type, "__getattribute__");
  PyObject *plain = PyObject_GetAttrString((PyObject *)&PyBaseObject_Type, "__getattribute__");
  bool is_plain = own != NULL && own == plain;
  Py_XDECREF(own), Py_XDECREF(plain);
  PyErr_Clear();
  return !is_plain || has_attribute(type, "__getattr__");
}

static const dl_exchange *find_table(PyTypeObject *type) {
  PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
  const dl_exchange *table = NULL;
  if (capsule != NULL && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
    table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api"); /* it lives as long as the process */
  Py_XDECREF(capsule);
  PyErr_Clear();
  return table != NULL && table->header.major == DL_MAJOR ? table : NULL;
}

/* Nothing is raised. */
static bool has_itself(PyTypeObject *type, const char *name) {
  PyObject *own = PyObject_GetAttrString((PyObject *)type, "__dict__");
  bool has = own != NULL && PyMapping_HasKeyString(own, name);
  Py_XDECREF(own);
  PyErr_Clear();
  return has;
}

/* Nothing is raised. */
static void find_requires_grad(hgpy_family *f) {
  f->requires_grad = PyObject_GetAttrString((PyObject *)f->type, "requires_grad");
  PyErr_Clear();
  if (f->requires_grad != NULL && Py_TYPE(f->requires_grad) == &PyGetSetDescr_Type)
    f->get = (descrgetfunc)PyType_GetSlot(&PyGetSetDescr_Type, Py_tp_descr_get);
}

hgpy_family *hgpy_family_of(PyTypeObject *type) {
  enum { FAMILIES = 4 };
  static hgpy_family known[FAMILIES];
  static uint32_t next;
  for (int i = 0; i < FAMILIES; i++)
    if (known[i].type == type) return &known[i];
  hgpy_family made = {.type = (PyTypeObject *)Py_NewRef((PyObject *)type), .table = find_table(type),
                      .asks_another = may_ask_another(type)};
  made.is_own_table = made.table != NULL && has_itself(type, "__dlpack_c_exchange_api__");
  made.is_negative = PyObject_GetAttrString((PyObject *)type, "is_neg");
  PyErr_Clear();
  find_requires_grad(&made);
  hgpy_family *at = &known[next++ % FAMILIES], old = *at;
  *at = made;
  Py_XDECREF((PyObject *)old.type), Py_XDECREF(old.is_negative), Py_XDECREF(old.requires_grad);
  return at;
}

/* The C function behind a method without arguments; NULL: there is none. */
static PyCFunction function_of_method(PyObject *object, const char *name) {
  PyObject *method = PyObject_GetAttrString(object, name);
  bool is_in_c = method != NULL && PyCFunction_Check(method) && PyCFunction_GetFlags(method) == METH_NOARGS &&
                 PyCFunction_GetSelf(method) == object;
  PyCFunction function = is_in_c ? PyCFunction_GetFunction(method) : NULL;
  Py_XDECREF(method);
  PyErr_Clear();
  return function;
}

int hgpy_is_negative(hgpy_family *f, PyObject *object) {
  if (f->is_negative == NULL) return 0;
  if (f->ask == NULL && Py_TYPE(object) == f->type) f->ask = function_of_method(object, "is_neg");
  PyObject *asked = Py_NewRef(f->is_negative);
  PyObject *answer = f->ask != NULL ? f->ask(object, NULL) : PyObject_CallFunctionObjArgs(asked, object, NULL);
  int is_true = answer == Py_False ? 0 : answer != NULL ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  Py_DECREF(asked);
  return is_true;
}

int hgpy_requires_grad(const hgpy_family *f, PyObject *object) {
  if (f->requires_grad == NULL) return 0;
  PyObject *answer = f->get != NULL ? f->get(f->requires_grad, object, NULL)
                                    : PyObject_GetAttrString(object, "requires_grad");
  int is_true = answer == Py_True ? 1 : answer != NULL ? 0 : -1;
  Py_XDECREF(answer);
  return is_true;
}
