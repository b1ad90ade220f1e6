/* number.c - numbers of Python and NumPy as elements: which objects are numbers, and which numbers a type can
 * represent. */
#include "hgpy.h"

/* ---- what is a number -------------------------------------------------------------------------------------------- */

/* NumPy's scalars, and those whose item may be an int although they are no numbers. */
enum { SCALAR, DATE, SPAN, SCALAR_TYPES };

/* A NumPy scalar type, once NumPy has been imported. Borrowed. */
static PyTypeObject *scalar_type(int which) {
  static const char *const names[SCALAR_TYPES] = {"generic", "datetime64", "timedelta64"};
  static PyObject *known[SCALAR_TYPES]; /* NumPy is never unloaded */
  if (known[which] != NULL) return (PyTypeObject *)known[which];
  PyObject *modules = PySys_GetObject("modules");
  PyObject *numpy = modules != NULL && PyDict_Check(modules) ? PyDict_GetItemString(modules, "numpy") : NULL;
  if (numpy != NULL) known[which] = PyObject_GetAttrString(numpy, names[which]);
  if (known[which] == NULL) PyErr_Clear(); /* NumPy is still being imported */
  return (PyTypeObject *)known[which];
}

static bool is_scalar(PyObject *object, int which) {
  PyTypeObject *type = scalar_type(which);
  return type != NULL && PyObject_TypeCheck(object, type);
}

bool hgpy_is_scalar(PyObject *object) { return is_scalar(object, SCALAR); }

PyObject *hgpy_plain_number(PyObject *object) {
  if (hgpy_is_number(object)) return Py_NewRef(object);
  if (!is_scalar(object, SCALAR) || is_scalar(object, DATE) || is_scalar(object, SPAN)) return NULL;
  PyObject *item = PyObject_CallMethod(object, "item", NULL);
  if (item == NULL) return PyErr_Clear(), NULL;
  if (!hgpy_is_number(item)) { /* the item of a longdouble is a longdouble */
    Py_DECREF(item);
    item = NULL;
  }
  return item;
}

/* ---- what a type holds ------------------------------------------------------------------------------------------- */

bool hgpy_integer_fits(PyObject *number, uint32_t type, int64_t *value) {
  int overflow = 0;
  long long own = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (type == ATLAS_u64 && overflow > 0) {
    own = (long long)PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) return PyErr_Clear(), false;
    *value = own;
    return true;
  }
  uint32_t bits = 8 * hgpy_type_bytes(type);
  bool is_signed = type >= ATLAS_i8 && type <= ATLAS_i64;
  long long lowest = !is_signed ? 0 : bits < 64 ? -(1LL << (bits - 1)) : INT64_MIN;
  long long highest = bits == 64 ? INT64_MAX : (1LL << (is_signed ? bits - 1 : bits)) - 1;
  if (type == ATLAS_bool) highest = 1;
  *value = own;
  return overflow == 0 && own >= lowest && own <= highest;
}

bool hgpy_integer_as(const char *who, PyObject *number, uint32_t type, int64_t *value) {
  if (hgpy_integer_fits(number, type, value)) return true;
  PyErr_Format(PyExc_OverflowError, "%s: %R is out of range of %s", who, number, hgpy_type_name(type));
  return false;
}

hgpy_node *hgpy_number_node(const char *who, PyObject *object, uint32_t type) {
  PyObject *number = hgpy_plain_number(object);
  hgpy_node *node = NULL;
  int64_t value;
  if (number == NULL) {
    PyErr_Format(PyExc_TypeError, "%s: %R is no number of %s", who, object, hgpy_type_name(type));
  } else if (!hgpy_type_is_integer(type) && type != ATLAS_bool) {
    double real = PyFloat_AsDouble(number);
    if (real != -1.0 || !PyErr_Occurred()) node = hgpy_node_real(type, real);
  } else if (hgpy_is_float(number)) {
    PyErr_Format(PyExc_TypeError, "%s: the float %R is no number of %s; convert it, or cast the array, first", who,
                 number, hgpy_type_name(type));
  } else if (type == ATLAS_bool) {
    int is_true = PyObject_IsTrue(number);
    if (is_true >= 0) node = hgpy_node_integer(type, is_true);
  } else if (hgpy_integer_as(who, number, type, &value)) node = hgpy_node_integer(type, value);
  Py_XDECREF(number);
  return node;
}

/* ---- beside arrays ----------------------------------------------------------------------------------------------- */

uint32_t hgpy_kind_rank(uint32_t type) {
  if (type == ATLAS_bool) return 0;
  return hgpy_type_is_integer(type) ? 1 : hgpy_type_is_float(type) ? 2 : 3;
}

/* A float beside integers and bools makes float32, an int beside bools int64; else the number takes the arrays'
 * type. */
uint32_t hgpy_type_beside(PyObject *number, uint32_t type) {
  if (hgpy_is_float(number)) return hgpy_kind_rank(type) < 2 ? (uint32_t)ATLAS_f32 : type;
  return type == ATLAS_bool && !PyBool_Check(number) ? (uint32_t)ATLAS_i64 : type;
}

hgpy_node *hgpy_operand_node(const char *who, PyObject *number, uint32_t type) {
  if (hgpy_type_is_float(type)) {
    double real = hgpy_is_float(number) ? PyFloat_AsDouble(number) : PyLong_AsDouble(number);
    return real == -1.0 && PyErr_Occurred() ? NULL : hgpy_node_real(type, real);
  }
  return hgpy_number_node(who, number, hgpy_type_beside(number, type));
}

/* ---- exact comparisons ------------------------------------------------------------------------------------------- */

/* The next float64 in a direction, for numbers other than 0 and infinities. */
static double beside(double real, bool is_up) {
  uint64_t bits;
  memcpy(&bits, &real, sizeof bits);
  bits += (real > 0) == is_up ? 1 : UINT64_MAX;
  memcpy(&real, &bits, sizeof bits);
  return real;
}

static bool is_held(uint32_t type, double real) {
  bool is_small = real >= -256.0 && real <= 256.0;
  if (is_small || type == ATLAS_f64) return true;
  if (type == ATLAS_f16) return real >= -2048.0 && real <= 2048.0;
  return type == ATLAS_f32 && real >= -0x1p100 && real <= 0x1p100 && (double)(float)real == real;
}

/* Beside floats, an int that is no float64 becomes one of its two neighbours, between which there is no float64. */
static hgpy_node *node_beside_floats(PyObject *number, uint32_t type, hgpy_bound bound) {
  const double largest = 1.7976931348623157e308;
  PyObject *zero = PyLong_FromLong(0);
  int is_negative = zero != NULL ? PyObject_RichCompareBool(number, zero, Py_LT) : -1;
  Py_XDECREF(zero);
  double real = PyLong_AsDouble(number);
  bool is_beyond = real == -1.0 && PyErr_Occurred(), is_above = is_negative != 0;
  if (is_beyond && !PyErr_ExceptionMatches(PyExc_OverflowError)) return NULL;
  PyErr_Clear();
  if (is_beyond) real = is_negative ? -largest : largest; /* towards 0 */
  else {
    PyObject *rounded = PyFloat_FromDouble(real);
    int is_exact = rounded != NULL ? PyObject_RichCompareBool(rounded, number, Py_EQ) : -1;
    int is_more = rounded != NULL ? PyObject_RichCompareBool(rounded, number, Py_GT) : -1;
    Py_XDECREF(rounded);
    if (is_exact < 0 || is_more < 0) return NULL;
    if (is_exact) return hgpy_node_real(is_held(type, real) ? type : (uint32_t)ATLAS_f64, real);
    is_above = is_more;
  }
  if (bound == HGPY_SAME) return hgpy_node_real(ATLAS_f64, Py_NAN); /* equal to nothing */
  if (is_above != (bound == HGPY_ABOVE)) real = beside(real, bound == HGPY_ABOVE);
  return hgpy_node_real(ATLAS_f64, real);
}

hgpy_node *hgpy_compared_node(const char *who, PyObject *number, uint32_t type, hgpy_bound bound) {
  int64_t value;
  if (hgpy_is_float(number))
    return hgpy_node_real(hgpy_kind_rank(type) < 2 ? (uint32_t)ATLAS_f64 : type, PyFloat_AsDouble(number));
  if (hgpy_type_is_float(type)) return node_beside_floats(number, type, bound);
  if (PyBool_Check(number) || !hgpy_type_is_integer(type)) return hgpy_operand_node(who, number, type);
  if (hgpy_integer_fits(number, type, &value)) return hgpy_node_integer(type, value);
  PyObject *zero = PyLong_FromLong(0); /* beyond every float */
  int is_negative = zero != NULL ? PyObject_RichCompareBool(number, zero, Py_LT) : -1;
  Py_XDECREF(zero);
  return is_negative < 0 ? NULL : hgpy_node_real(ATLAS_f64, is_negative ? -Py_HUGE_VAL : Py_HUGE_VAL);
}
