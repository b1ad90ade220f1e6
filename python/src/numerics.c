/* numerics.c - hg.numerics(): the numerics with which contractions are recorded. They are a variable of contextvars, so
 * each thread and task has its own; a recorded contraction keeps its own, whoever computes it. */
#include "hgpy.h"

static PyObject *set_variable;
PyObject *hgpy_get_numerics;

/* Made at the first use of numerics, because most programs use none. */
static bool make_variable(void) {
  PyObject *module = PyImport_ImportModule("contextvars"), *type = NULL, *made = NULL;
  PyObject *name = Py_BuildValue("(s)", "hologram.numerics"), *named = Py_BuildValue("{s:i}", "default", 0);
  if (module != NULL) type = PyObject_GetAttrString(module, "ContextVar");
  if (type != NULL && name != NULL && named != NULL) made = PyObject_Call(type, name, named);
  PyObject *set = made != NULL ? PyObject_GetAttrString(made, "set") : NULL;
  PyObject *get = made != NULL ? PyObject_GetAttrString(made, "get") : NULL;
  Py_XDECREF(module), Py_XDECREF(type), Py_XDECREF(name), Py_XDECREF(named), Py_XDECREF(made);
  if (set == NULL || get == NULL || hgpy_get_numerics != NULL) {
    Py_XDECREF(set), Py_XDECREF(get);
    return hgpy_get_numerics != NULL; /* another thread has made it */
  }
  set_variable = set;
  hgpy_get_numerics = get;
  return true;
}

int hgpy_ask_numerics(void) {
  PyObject *value = PyObject_CallNoArgs(hgpy_get_numerics);
  long flags = value != NULL ? PyLong_AsLong(value) : -1;
  Py_XDECREF(value);
  return (int)flags;
}

int hgpy_set_numerics(int flags) {
  int before = hgpy_numerics();
  if (before < 0 || before == flags) return before;
  if (hgpy_get_numerics == NULL && !make_variable()) return -1;
  PyObject *number = PyLong_FromLong(flags);
  PyObject *token = number != NULL ? PyObject_CallFunctionObjArgs(set_variable, number, NULL) : NULL;
  Py_XDECREF(number), Py_XDECREF(token);
  return token != NULL ? before : -1;
}

void hgpy_restore_numerics(int flags) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback); /* Python calls fail while an exception is raised */
  (void)hgpy_set_numerics(flags);
  PyErr_Restore(type, value, traceback);
}

bool hgpy_find_vendor(const hgpy_device *device) {
  static bool was_looked_for;
  if (was_looked_for || hgpy_get_numerics == NULL || device->backend != HG_BACKEND_CUDA) return true;
  PyObject *module = PyImport_ImportModule("hologram._vendor"); /* threads that come meanwhile look, too */
  PyObject *done = module != NULL ? PyObject_CallMethod(module, "load", NULL) : NULL;
  was_looked_for = done != NULL;
  Py_XDECREF(module), Py_XDECREF(done);
  return was_looked_for;
}

/* Returns the old flags. */
static PyObject *set_numerics(PyObject *module, PyObject *flags) {
  (void)module;
  long wanted = PyLong_AsLong(flags);
  if (wanted == -1 && PyErr_Occurred()) return NULL;
  if (wanted < 0 || (wanted & ~(long)(HG_NUMERICS_FAST | HG_NUMERICS_TF32)) != 0)
    return PyErr_Format(PyExc_ValueError, "_set_numerics takes HG_NUMERICS_FAST and HG_NUMERICS_TF32, not %ld", wanted);
  int before = hgpy_set_numerics((int)wanted);
  return before < 0 ? NULL : PyLong_FromLong(before);
}

static PyObject *get_numerics(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  int flags = hgpy_numerics();
  return flags < 0 ? NULL : PyLong_FromLong(flags);
}

static PyMethodDef functions[] = {
    {"_set_numerics", set_numerics, METH_O, NULL},
    {"_numerics", get_numerics, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int hgpy_numerics_add(PyObject *module) {
  if (PyModule_AddIntConstant(module, "_NUMERICS_FAST", HG_NUMERICS_FAST) < 0 ||
      PyModule_AddIntConstant(module, "_NUMERICS_TF32", HG_NUMERICS_TF32) < 0)
    return -1;
  return PyModule_AddFunctions(module, functions);
}
