/* errors.c - an exception for each status, with the library's sentence: hologram.Error and its subclasses. Each also
 * derives from the built-in exception of the same meaning, so that `except IndexError` works. */
#include "hgpy.h"

#include <stdio.h>

PyObject *hgpy_error;

typedef struct error_row {
  const char *name;      /* NULL: hologram.Error itself */
  PyObject **and_also;   /* the built-in */
  const char *meaning;
} error_row;

enum { STATUS_COUNT = 15 };

static PyObject *exceptions[STATUS_COUNT], *index_fault;

static const error_row *row_of(hg_status status) {
  static error_row rows[STATUS_COUNT];
  rows[HG_INVALID_ARGUMENT] = (error_row){"InvalidArgument", &PyExc_ValueError, "An argument is not valid."};
  rows[HG_OUT_OF_MEMORY] = (error_row){"OutOfMemory", &PyExc_MemoryError, "Memory could not be allocated."};
  rows[HG_PARSE] = (error_row){"ParseError", &PyExc_ValueError, "A program's text is not valid: see line and column."};
  rows[HG_FORMAT] =
      (error_row){"FormatError", &PyExc_ValueError, "A binary program, or a file of arrays, is not valid."};
  rows[HG_VERIFY] = (error_row){"VerifyError", &PyExc_ValueError, "A program does not verify: see line."};
  rows[HG_NOT_FOUND] = (error_row){"NotFound", &PyExc_LookupError, "There is no such name, file or device."};
  rows[HG_UNSUPPORTED] =
      (error_row){"Unsupported", &PyExc_NotImplementedError, "Not supported by this build or device."};
  rows[HG_OUT_OF_RANGE] = (error_row){"OutOfRange", &PyExc_IndexError, "An offset, size or index is out of range."};
  rows[HG_BINDING] = (error_row){"BindingError", &PyExc_ValueError, "What is bound does not fit the program."};
  rows[HG_FAULT] = (error_row){"Fault", &PyExc_RuntimeError, "A program faulted; the sentence says where."};
  rows[HG_IO] = (error_row){"FileError", &PyExc_OSError, "A file could not be read or written."};
  rows[HG_BUSY] = (error_row){"Busy", &PyExc_RuntimeError, "The object is in use."};
  rows[HG_DEVICE] = (error_row){"DeviceError", &PyExc_RuntimeError, "The device or its driver failed."};
  rows[HG_CANCELLED] = (error_row){"Cancelled", &PyExc_RuntimeError, "Executor.cancel has ended it."};
  return (unsigned)status < STATUS_COUNT ? &rows[status] : &rows[HG_OK];
}

static PyObject *make_exception(const error_row *row, PyObject *base) {
  char name[64];
  snprintf(name, sizeof name, "hologram.%s", row->name);
  PyObject *bases = PyTuple_Pack(2, base, *row->and_also);
  if (bases == NULL) return NULL;
  PyObject *made = PyErr_NewExceptionWithDoc(name, row->meaning, bases, NULL);
  Py_DECREF(bases);
  return made;
}

int hgpy_errors_add(PyObject *module) {
  hgpy_error = PyErr_NewExceptionWithDoc("hologram.Error",
                                         "Whatever the library reports: a sentence that says what was given, what was "
                                         "expected and where.\n\n`status` is the name of its status; `line` and "
                                         "`column` count from 1 where it is about a program's text, else they are 0.",
                                         NULL, NULL);
  if (hgpy_error == NULL || PyModule_AddObjectRef(module, "Error", hgpy_error) < 0) return -1;
  for (int i = 1; i < STATUS_COUNT; i++) {
    const error_row *row = row_of((hg_status)i);
    exceptions[i] = make_exception(row, hgpy_error);
    if (exceptions[i] == NULL || PyModule_AddObjectRef(module, row->name, exceptions[i]) < 0) return -1;
  }
  const error_row of_index = {
      "IndexFault", &PyExc_IndexError,
      "An index in an array was out of range.\n\n`index` is the first such one as it was "
      "given, `axis` the axis that it is an index of, and `length` how many elements that has."};
  index_fault = make_exception(&of_index, exceptions[HG_FAULT]);
  return index_fault != NULL ? PyModule_AddObjectRef(module, of_index.name, index_fault) : -1;
}

static void set_attribute(PyObject *error, const char *name, PyObject *value) {
  if (value == NULL || PyObject_SetAttrString(error, name, value) < 0) PyErr_Clear();
  Py_XDECREF(value);
}

/* Removes the C function's name from the start: in Python it has another name. */
static const char *words_of(const char *sentence) {
  size_t length = strspn(sentence, "abcdefghijklmnopqrstuvwxyz_0123456789");
  bool names_function = strncmp(sentence, "hg_", 3) == 0 && strncmp(sentence + length, ": ", 2) == 0;
  return names_function ? sentence + length + 2 : sentence;
}

/* A sentence may contain a path that is not UTF-8, or a truncated name. */
static PyObject *make_error(PyObject *type, const char *words) {
  PyObject *text = PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "replace");
  PyObject *error = text != NULL ? PyObject_CallFunctionObjArgs(type, text, NULL) : NULL;
  Py_XDECREF(text);
  return error;
}

PyObject *hgpy_raise(hg_status status) {
  if (status == HG_CANCELLED && PyErr_Occurred()) return NULL; /* a signal handler has raised in hgpy_ask */
  hg_error_info info = {.size = sizeof info};
  const char *sentence = hg_last_error();
  PyObject *type = status > HG_OK && (int)status < STATUS_COUNT ? exceptions[status] : hgpy_error;
  bool has_info = hg_last_error_info(&info) == HG_OK && info.status == status;
  if (sentence[0] == '\0') sentence = hg_status_sentence(status);
  bool is_of_index = has_info && status == HG_FAULT && info.has_number != 0;
  if (is_of_index) type = index_fault;
  PyObject *error = make_error(type, words_of(sentence));
  if (error == NULL) return NULL;
  if (is_of_index) {
    set_attribute(error, "index", PyLong_FromLongLong(info.number));
    set_attribute(error, "axis", PyLong_FromUnsignedLong(info.axis));
    set_attribute(error, "length", PyLong_FromUnsignedLongLong(info.length));
  }
  set_attribute(error, "status", PyUnicode_FromString(hg_status_name(status)));
  set_attribute(error, "line", PyLong_FromUnsignedLong(has_info ? info.line : 0));
  set_attribute(error, "column", PyLong_FromUnsignedLong(has_info ? info.column : 0));
  PyErr_SetObject(type, error);
  Py_DECREF(error);
  return NULL;
}

bool hgpy_ok(hg_status status) {
  if (status == HG_OK) return true;
  hgpy_raise(status);
  return false;
}
