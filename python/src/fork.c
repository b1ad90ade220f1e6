/* fork.c - forks: at a fork, no other thread is in a call of the library.
 *
 * A child has none of its parent's other threads. A lock that one of them held at the fork (such as an executor's, for
 * the length of a computation) stays locked in the child for ever. The forking thread holds the GIL, so calls with the
 * GIL are over; calls without it, and work given to a queue, are counted here. A fork waits for them, and new ones wait
 * for the fork; but not for ever: if a fork did not wait long enough, its child can still use new executors. */
#include "hgpy.h"

enum {
  PAUSE_US = 200,
  MOST_PAUSES = 10000, /* at least two seconds */
};

static uint32_t callers; /* threads in calls */
static uint32_t forks;   /* under way */
/* greater than 1 where a call uses a queue, or a signal handler computes or forks inside a call */
static _Thread_local uint32_t depth;

void hgpy_enter(void) {
  while (depth == 0 && forks > 0) hgpy_pause(PAUSE_US);
  if (depth++ == 0) callers++;
}

void hgpy_leave(void) {
  if (--depth == 0) callers--;
}

static uint32_t others(void) { return callers - (depth > 0); }

static PyObject *before(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  forks++;
  for (uint32_t i = 0; others() > 0 && i < MOST_PAUSES; i++) hgpy_pause(PAUSE_US);
  Py_RETURN_NONE;
}

static PyObject *in_parent(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  forks--;
  Py_RETURN_NONE;
}

static PyObject *in_child(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  if (others() > 0) hgpy_lose_default_device();
  callers -= others();
  forks = 0;
  hgpy_set_main_thread(PyThread_get_thread_ident());
  Py_RETURN_NONE;
}

int hgpy_fork_add(void) {
  static PyMethodDef hooks[] = {{"before", before, METH_NOARGS, NULL},
                                {"after_in_parent", in_parent, METH_NOARGS, NULL},
                                {"after_in_child", in_child, METH_NOARGS, NULL}};
  PyObject *os = PyImport_ImportModule("os"), *none = PyTuple_New(0), *named = PyDict_New(), *done = NULL;
  bool has_fork = os != NULL && PyObject_HasAttrString(os, "register_at_fork");
  PyObject *add = has_fork ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
  bool is_good = os != NULL && none != NULL && named != NULL;
  for (uint32_t i = 0; is_good && i < sizeof hooks / sizeof hooks[0]; i++) {
    PyObject *hook = PyCFunction_New(&hooks[i], NULL);
    is_good = hook != NULL && PyDict_SetItemString(named, hooks[i].ml_name, hook) == 0;
    Py_XDECREF(hook);
  }
  if (is_good && add != NULL) done = PyObject_Call(add, none, named);
  else if (is_good && !has_fork) done = Py_NewRef(Py_None);
  Py_XDECREF(os), Py_XDECREF(add), Py_XDECREF(none), Py_XDECREF(named), Py_XDECREF(done);
  return done != NULL ? 0 : -1;
}
