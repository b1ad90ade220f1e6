/* strict.c - hg.strict(): what otherwise happens silently, at a cost or with another type than asked for, becomes an
 * error that says what to write instead. */
#include "hgpy.h"

#include <stdarg.h>

bool hgpy_is_strict;
static PyObject *strict_error;

bool hgpy_allows(const char *format, ...) {
  va_list values;
  if (!hgpy_is_strict) return true;
  va_start(values, format);
  PyErr_FormatV(strict_error, format, values);
  va_end(values);
  return false;
}

/* 1 unless a backend that 'auto' prefers has a device here: it was skipped because it failed. */
bool hgpy_allows_device(const hgpy_device *device) {
  for (size_t i = 0; hgpy_is_strict; i++) {
    hg_backend_info info = {.size = sizeof info};
    if (hg_backend_query(i, &info) != HG_OK || info.id == device->backend) break;
    if (!info.available) continue;
    hg_executor_info own = {.size = sizeof own};
    if (!hgpy_ok(hg_executor_query(device->executor, &own))) return false;
    return hgpy_allows("'auto' is %s here, though there is a device of %s; name the backend (%s)", own.backend_name,
                       info.name, own.selection);
  }
  return true;
}

static bool starts_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

/* On an executor that compiles machine code. */
static bool is_fallback(const hgpy_device *device, const char *engine) {
  hg_executor_info own = {.size = sizeof own};
  return hg_executor_query(device->executor, &own) == HG_OK && starts_with(own.engine, "native") &&
         (starts_with(engine, "tile") || starts_with(engine, "reference"));
}

bool hgpy_allows_kernel(const hgpy_device *device, hg_kernel *kernel) {
  hg_kernel_info info = {.size = sizeof info};
  if (!hgpy_is_strict) return true;
  if (!hgpy_ok(hg_kernel_query(kernel, &info))) return false;
  if (!is_fallback(device, info.engine)) return true;
  return hgpy_allows("program '%s' is left to the engine '%s': %s", info.name, info.engine, info.why);
}

/* Checks the engines of the report. */
bool hgpy_allows_executable(const hgpy_device *device, hg_executable *executable) {
  static const char engine[] = "\"engine\": \"", exact[] = "\"note\": \"bit-exact: fast numerics were asked for, but ";
  char *text = NULL;
  size_t length = 0;
  bool is_good = true;
  if (!hgpy_is_strict) return true;
  if (!hgpy_ok(hg_executable_report(executable, NULL, 1, &text, &length))) return false;
  for (const char *at = text; is_good && (at = strstr(at, engine)) != NULL;) {
    at += sizeof engine - 1;
    if (is_fallback(device, at))
      is_good = hgpy_allows("an operation is left to a slower engine than its executor's; explain() shows which");
  }
  const char *why = is_good ? strstr(text, exact) : NULL;
  if (why != NULL) {
    why += sizeof exact - 1;
    PyObject *words = PyUnicode_FromStringAndSize(why, (Py_ssize_t)strcspn(why, "\""));
    is_good = words != NULL && hgpy_allows("fast numerics were asked for, but %U", words);
    Py_XDECREF(words);
  }
  atlas_memory_release(NULL, text);
  return is_good;
}

/* Checks executables that were compiled before, too. */
static PyObject *set_strict(PyObject *module, PyObject *value) {
  bool was = hgpy_is_strict;
  int is_true = PyObject_IsTrue(value);
  (void)module;
  if (is_true < 0) return NULL;
  hgpy_is_strict = is_true != 0;
  if (hgpy_is_strict && !was) hgpy_forget(NULL);
  return PyBool_FromLong(was);
}

static PyObject *is_strict(PyObject *module, PyObject *unused) {
  (void)module, (void)unused;
  return PyBool_FromLong(hgpy_is_strict);
}

static PyMethodDef functions[] = {
    {"_set_strict", set_strict, METH_O, NULL},
    {"_is_strict", is_strict, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

int hgpy_strict_add(PyObject *module) {
  strict_error = PyErr_NewExceptionWithDoc(
      "hologram.StrictError",
      "Inside hg.strict(): something would have gone on silently with more work than was asked for.", hgpy_error, NULL);
  if (strict_error == NULL || PyModule_AddObjectRef(module, "StrictError", strict_error) < 0) return -1;
  return PyModule_AddFunctions(module, functions);
}
