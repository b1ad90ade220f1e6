/* arguments.c - arguments of operations: their rows in operations.def, their defaults as Python writes them, and their
 * values from Python objects. */
#include "arguments.h"

#include <float.h>
#include <stdio.h>

/* ---- what the table says ----------------------------------------------------------------------------------------- */

argument_preset hgpy_preset_of(const char *at, size_t length) {
  char word[64];
  snprintf(word, sizeof word, "%.*s", (int)length, at);
  if (word[0] == '[' || strcmp(word, "all") == 0) return PRESET_LIST;
  if (strchr(word, '|') != NULL) return PRESET_CHOICE;
  if (strcmp(word, "end") == 0) return PRESET_INTEGER;
  if (atlas_type_from_name(word) != ATLAS_NONE) return PRESET_TYPE;
  if (strchr(word, '.') != NULL || strstr(word, "inf") != NULL || strcmp(word, "nan") == 0) return PRESET_REAL;
  return PRESET_INTEGER;
}

const char *hgpy_argument_default(const argument_spec *argument, char *text, size_t bytes) {
  if (strcmp(argument->name, "bounds") == 0) return "'wrap'";
  size_t length = strcspn(argument->choices, argument->preset == PRESET_LIST ? "" : ",");
  if (argument->preset == PRESET_LIST) {
    const char *end = argument->choices[0] == '[' ? strchr(argument->choices, ']') : NULL;
    if (end == NULL) return "None";
    length = (size_t)(end - argument->choices) - 1;
    snprintf(text, bytes, "(%.*s%s)", (int)length, argument->choices + 1, length > 0 ? "," : "");
    return text;
  }
  if (argument->preset == PRESET_CHOICE) length = strcspn(argument->choices, "|");
  if (strncmp(argument->choices, "end", 3) == 0 || strncmp(argument->choices, "nan", 3) == 0) return "None";
  if (argument->preset == PRESET_REAL && strstr(argument->choices, "inf") - argument->choices < 2 &&
      strncmp(argument->choices + (argument->choices[0] == '-'), "inf", 3) == 0)
    return "None";
  if (strcmp(argument->name, "keepdims") == 0) return "False";
  if (argument->preset == PRESET_CHOICE) snprintf(text, bytes, "'%.*s'", (int)length, argument->choices);
  else if (argument->preset == PRESET_TYPE) {
    char word[16];
    snprintf(word, sizeof word, "%.*s", (int)length, argument->choices);
    snprintf(text, bytes, "'%s'", hgpy_type_name(atlas_type_from_name(word)));
  } else snprintf(text, bytes, "%.*s", (int)length, argument->choices);
  return text;
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

static bool fail_argument(const char *who, const argument_spec *spec, PyObject *value, const char *wish) {
  if (!PyErr_Occurred() || PyErr_ExceptionMatches(PyExc_TypeError))
    PyErr_Format(PyExc_TypeError, "%s: %s takes %s, not %R", who, spec->name, wish, value);
  return false;
}

/* NumPy's bools count as numbers, but not as indices, unlike Python's. */
static bool integer_from(const char *who, const argument_spec *spec, PyObject *value, const char *wish,
                         hg_argument *to) {
  PyObject *number = PyLong_Check(value) ? NULL : hgpy_plain_number(value);
  to->count = 1;
  to->integers[0] = PyLong_AsLongLong(number != NULL ? number : value);
  Py_XDECREF(number);
  return !(to->integers[0] == -1 && PyErr_Occurred()) || fail_argument(who, spec, value, wish);
}

/* Several axes are a list or tuple. As in NumPy, an array that has axes itself is not accepted. */
static bool list_from(const char *who, const argument_spec *spec, PyObject *value, hg_argument *to) {
  const char *wish = "an int or a sequence of ints";
  bool is_list = PyTuple_Check(value) || PyList_Check(value) || Py_TYPE(value) == &PyRange_Type;
  if (!is_list && strcmp(spec->name, "axis") == 0)
    return integer_from(who, spec, value, "an int or a tuple of ints", to);
  if (hgpy_integers_from(value, to->integers, &to->count)) return true;
  return PyErr_ExceptionMatches(PyExc_TypeError) ? fail_argument(who, spec, value, wish) : false;
}

static bool choice_from(const char *who, const argument_spec *spec, PyObject *value, hg_argument *to) {
  const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
  size_t wanted = text != NULL ? strlen(text) : 0;
  const char *at = spec->choices;
  to->count = 1;
  for (int64_t i = 0; text != NULL; i++) {
    size_t length = strcspn(at, "|,");
    to->integers[0] = i;
    if (length == wanted && memcmp(at, text, length) == 0) return true;
    if (at[length] != '|') break;
    at += length + 1;
  }
  char wish[96];
  snprintf(wish, sizeof wish, "one of %.*s", (int)strcspn(spec->choices, ","), spec->choices);
  PyErr_Format(PyExc_ValueError, "%s: %s takes %s, not %R", who, spec->name, wish, value);
  return false;
}

/* An int stays an int, whatever its size: bounds of integers are exact. */
static bool real_from(const char *who, const argument_spec *spec, PyObject *value, hg_argument *to) {
  if (hgpy_is_array(value) && hgpy_depends(hgpy_array_node(value), 0) != 0) {
    if (!PyErr_Occurred())
      PyErr_Format(PyExc_TypeError,
                   "%s: no gradient flows to %s, which is a number: write it with operations on arrays, or give "
                   "float(%s), which has no gradient",
                   who, spec->name, spec->name);
    return false;
  }
  if (!PyLong_Check(value) || PyBool_Check(value)) {
    to->has_number = 1;
    to->number = PyFloat_AsDouble(value);
    return !(to->number == -1.0 && PyErr_Occurred()) || fail_argument(who, spec, value, "a number");
  }
  int overflow = 0;
  to->count = 1;
  to->integers[0] = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow == 0) return !(to->integers[0] == -1 && PyErr_Occurred());
  to->has_number = 1;
  to->number = PyLong_AsDouble(value);
  if (PyErr_Occurred()) to->number = overflow * DBL_MAX;
  PyErr_Clear();
  if (overflow > 0) to->integers[0] = (int64_t)PyLong_AsUnsignedLongLong(value);
  bool is_beyond = overflow < 0 || PyErr_Occurred();
  PyErr_Clear();
  if (is_beyond && overflow < 0 && to->number >= -0x1p63) to->number = -0x1.0000000000001p63;
  if (is_beyond && overflow > 0 && to->number <= 0x1p64) to->number = 0x1.0000000000001p64;
  return true;
}

/* NumPy scalars only if they are real: a complex one would lose its imaginary part. */
static PyObject *plain_real(PyObject *value) {
  PyObject *number = hgpy_plain_number(value); /* also exact for NumPy ints */
  if (number != NULL) return number;
  PyObject *module = PyImport_ImportModule("hologram._create");
  number = module != NULL ? PyObject_CallMethod(module, "plain", "O", value) : NULL;
  Py_XDECREF(module);
  return number;
}

bool hgpy_argument_from(const char *who, const argument_spec *spec, PyObject *value, hg_argument *to) {
  if (value == Py_None && spec->preset == PRESET_INTEGER && strcmp(spec->name, "axis") == 0) {
    PyErr_Format(PyExc_TypeError, "%s: axis is one axis, not None; of all elements in C order: x.reshape(-1)", who);
    return false;
  }
  if (value == Py_None) return true;
  switch ((argument_preset)spec->preset) {
  case PRESET_LIST: return list_from(who, spec, value, to);
  case PRESET_CHOICE: return choice_from(who, spec, value, to);
  case PRESET_TYPE:
    to->count = 1;
    to->integers[0] = hgpy_type_from(value);
    return to->integers[0] != ATLAS_NONE;
  case PRESET_REAL: {
    PyObject *number = hgpy_is_array(value) ? Py_NewRef(value) : plain_real(value);
    bool is_good = number != NULL ? real_from(who, spec, number, to) : fail_argument(who, spec, value, "a number");
    Py_XDECREF(number);
    return is_good;
  }
  default: return integer_from(who, spec, value, "an int", to);
  }
}
