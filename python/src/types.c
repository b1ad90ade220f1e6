/* types.c - hologram.float32 and the other types: one object each, equal to its name and to NumPy's type of that
 * name. */
#include "hgpy.h"

#include <stdio.h>

typedef struct dtype {
  PyObject_HEAD
  uint32_t type;
} dtype;

typedef struct type_row {
  const char *name, *alias, *format, *kind;
} type_row;

static const type_row rows[ATLAS_TYPE_COUNT] = {
    [ATLAS_i8] = {"int8", "i8", "b", "integer"},       [ATLAS_i16] = {"int16", "i16", "h", "integer"},
    [ATLAS_i32] = {"int32", "i32", "i", "integer"},    [ATLAS_i64] = {"int64", "i64", "q", "integer"},
    [ATLAS_u8] = {"uint8", "u8", "B", "integer"},      [ATLAS_u16] = {"uint16", "u16", "H", "integer"},
    [ATLAS_u32] = {"uint32", "u32", "I", "integer"},   [ATLAS_u64] = {"uint64", "u64", "Q", "integer"},
    [ATLAS_f16] = {"float16", "f16", "e", "float"},    [ATLAS_bf16] = {"bfloat16", "bf16", NULL, "float"},
    [ATLAS_f32] = {"float32", "f32", "f", "float"},    [ATLAS_f64] = {"float64", "f64", "d", "float"},
    [ATLAS_f8e4m3] = {"float8_e4m3fn", "f8e4m3", NULL, "storage"},
    [ATLAS_f8e5m2] = {"float8_e5m2", "f8e5m2", NULL, "storage"},
    [ATLAS_bool] = {"bool", "bool_", "?", "bool"},
};

static PyTypeObject *dtype_type;
static PyObject *objects[ATLAS_TYPE_COUNT];

const char *hgpy_type_name(uint32_t type) {
  return type < ATLAS_TYPE_COUNT && rows[type].name != NULL ? rows[type].name : "no type";
}

const char *hgpy_type_format(uint32_t type) { return type < ATLAS_TYPE_COUNT ? rows[type].format : NULL; }

uint32_t hgpy_type_bytes(uint32_t type) { return atlas_type_bits((atlas_type)type) / 8; }

bool hgpy_type_is_float(uint32_t type) { return type >= ATLAS_f16 && type <= ATLAS_f64; }

bool hgpy_type_is_integer(uint32_t type) { return type >= ATLAS_i8 && type <= ATLAS_u64; }

bool hgpy_is_type(PyObject *object) { return Py_TYPE(object) == dtype_type; }

PyObject *hgpy_type_object(uint32_t type) {
  PyObject *object = type < ATLAS_TYPE_COUNT && objects[type] != NULL ? objects[type] : Py_None;
  return Py_NewRef(object);
}

/* ---- formats of struct ------------------------------------------------------------------------------------------- */

static uint32_t integer_of(bool is_signed, Py_ssize_t bytes) {
  switch (bytes) {
  case 1: return is_signed ? ATLAS_i8 : ATLAS_u8;
  case 2: return is_signed ? ATLAS_i16 : ATLAS_u16;
  case 4: return is_signed ? ATLAS_i32 : ATLAS_u32;
  case 8: return is_signed ? ATLAS_i64 : ATLAS_u64;
  default: return ATLAS_NONE;
  }
}

uint32_t hgpy_type_from_format(const char *format, Py_ssize_t item_bytes) {
  if (format == NULL) return item_bytes == 1 ? ATLAS_u8 : ATLAS_NONE;
  const char *at = format;
  if (*at == '<' || *at == '=' || *at == '@') at++; /* little-endian machines only; '>' is the other order */
  if (at[0] == '\0' || at[1] != '\0') return ATLAS_NONE;
  if (strchr("bhilqn", *at) != NULL) return integer_of(true, item_bytes);
  if (strchr("BHILQN", *at) != NULL) return integer_of(false, item_bytes);
  if (*at == 'e' && item_bytes == 2) return ATLAS_f16;
  if (*at == 'f' && item_bytes == 4) return ATLAS_f32;
  if (*at == 'd' && item_bytes == 8) return ATLAS_f64;
  if (*at == '?' && item_bytes == 1) return ATLAS_bool;
  return ATLAS_NONE;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

/* Most names differ in their first letter, which is compared without a call. */
static bool is_name(const char *name, const char *other) { return name[0] == other[0] && strcmp(name, other) == 0; }

/* NumPy's type codes. */
static uint32_t type_by_code(const char *code) {
  static const struct {
    const char *code;
    uint32_t type;
  } of_numpy[] = {{"f4", ATLAS_f32}, {"f8", ATLAS_f64}, {"f2", ATLAS_f16}, {"i1", ATLAS_i8},  {"i2", ATLAS_i16},
                  {"i4", ATLAS_i32}, {"i8", ATLAS_i64}, {"u1", ATLAS_u8},  {"u2", ATLAS_u16}, {"u4", ATLAS_u32},
                  {"u8", ATLAS_u64}, {"b1", ATLAS_bool}, {"?", ATLAS_bool}, {"e", ATLAS_f16},  {"f", ATLAS_f32},
                  {"d", ATLAS_f64},  {"half", ATLAS_f16}, {"single", ATLAS_f32}, {"double", ATLAS_f64},
                  {"longlong", ATLAS_i64}, {"ulonglong", ATLAS_u64}};
  for (size_t i = 0; i < sizeof of_numpy / sizeof of_numpy[0]; i++)
    if (is_name(of_numpy[i].code, code)) return of_numpy[i].type;
  return ATLAS_NONE;
}

/* i8, u8 and f16 mean 8, 8 and 16 bits, as in the ISA; with a byte order in front they are NumPy's codes. */
static uint32_t type_by_name(const char *name) {
  if (*name == '<' || *name == '=' || *name == '|') return type_by_code(name + 1);
  for (uint32_t t = 1; t < ATLAS_TYPE_COUNT; t++)
    if (rows[t].name != NULL && (is_name(rows[t].name, name) || is_name(rows[t].alias, name))) return t;
  return type_by_code(name);
}

/* By a text attribute: numpy.dtype has `name`, numpy.float32 and ml_dtypes' types `__name__`. */
static uint32_t type_by_attribute(PyObject *object, const char *attribute) {
  PyObject *name = PyObject_GetAttrString(object, attribute);
  uint32_t type = ATLAS_NONE;
  if (name != NULL && PyUnicode_Check(name)) {
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (text != NULL) type = type_by_name(text);
  }
  Py_XDECREF(name);
  PyErr_Clear();
  return type;
}

/* PyTorch's types have no attribute with their name. */
static uint32_t type_of_torch(PyObject *object) {
  static const char prefix[] = "torch.";
  uint32_t type = ATLAS_NONE;
  PyObject *kind = PyType_GetName(Py_TYPE(object)), *text = NULL;
  bool is_candidate = kind != NULL && PyUnicode_CompareWithASCIIString(kind, "dtype") == 0;
  if (is_candidate) text = PyObject_Str(object);
  const char *name = text != NULL ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  if (name != NULL && strncmp(name, prefix, sizeof prefix - 1) == 0) type = type_by_name(name + sizeof prefix - 1);
  Py_XDECREF(kind);
  Py_XDECREF(text);
  PyErr_Clear();
  return type;
}

static uint32_t find_type(PyObject *object) {
  if (hgpy_is_type(object)) return ((dtype *)object)->type;
  if (PyUnicode_Check(object)) {
    const char *text = PyUnicode_AsUTF8AndSize(object, NULL);
    if (text == NULL) PyErr_Clear();
    return text != NULL ? type_by_name(text) : (uint32_t)ATLAS_NONE;
  }
  if (object == (PyObject *)&PyFloat_Type) return ATLAS_f32;
  if (object == (PyObject *)&PyLong_Type) return ATLAS_i64;
  if (object == (PyObject *)&PyBool_Type) return ATLAS_bool;
  uint32_t type = type_by_attribute(object, "name");
  if (type == ATLAS_NONE) type = type_by_attribute(object, "__name__");
  return type != ATLAS_NONE ? type : type_of_torch(object);
}

uint32_t hgpy_type_from(PyObject *object) {
  uint32_t type = find_type(object);
  if (type == ATLAS_NONE)
    PyErr_Format(PyExc_TypeError, "%R is no element type; those are int8 to int64, uint8 to uint64, float16, bfloat16, "
                                  "float32, float64, float8_e4m3fn, float8_e5m2 and bool", object);
  return type;
}

/* ---- the object -------------------------------------------------------------------------------------------------- */

static PyObject *dtype_repr(PyObject *self) {
  return PyUnicode_FromFormat("hologram.%s", hgpy_type_name(((dtype *)self)->type));
}

static PyObject *dtype_str(PyObject *self) { return PyUnicode_FromString(hgpy_type_name(((dtype *)self)->type)); }

static Py_hash_t dtype_hash(PyObject *self) { return (Py_hash_t)((dtype *)self)->type + 96; }

static PyObject *dtype_compare(PyObject *self, PyObject *other, int how) {
  if (how != Py_EQ && how != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  bool is_equal = find_type(other) == ((dtype *)self)->type;
  return PyBool_FromLong(is_equal == (how == Py_EQ));
}

static PyObject *dtype_name(PyObject *self, void *unused) {
  (void)unused;
  return dtype_str(self);
}

static PyObject *dtype_itemsize(PyObject *self, void *unused) {
  (void)unused;
  return PyLong_FromUnsignedLong(hgpy_type_bytes(((dtype *)self)->type));
}

static PyObject *dtype_kind(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(rows[((dtype *)self)->type].kind);
}

/* Makes numpy.dtype(x.dtype) and numpy.zeros(3, dtype=x.dtype) use NumPy's type. */
static PyObject *dtype_numpy(PyObject *self, void *unused) {
  uint32_t type = ((dtype *)self)->type;
  (void)unused;
  if (hgpy_type_format(type) == NULL)
    return PyErr_Format(PyExc_AttributeError, "NumPy has no type %s", hgpy_type_name(type));
  PyObject *numpy = PyImport_ImportModule("numpy");
  PyObject *result = numpy != NULL ? PyObject_CallMethod(numpy, "dtype", "s", hgpy_type_name(type)) : NULL;
  Py_XDECREF(numpy);
  return result;
}

static PyObject *dtype_reduce(PyObject *self, PyObject *unused) {
  (void)unused;
  return dtype_str(self); /* pickle finds hologram._core.float32 by its name */
}

static PyGetSetDef dtype_getset[] = {
    {"name", dtype_name, NULL, "The type's name, as NumPy has it.", NULL},
    {"itemsize", dtype_itemsize, NULL, "Bytes of one element.", NULL},
    {"kind", dtype_kind, NULL, "'integer', 'float', 'bool', or 'storage' of what is loaded, stored and converted only.",
     NULL},
    {"__numpy_dtype__", dtype_numpy, NULL, "NumPy's type of that name.", NULL},
    {"dtype", dtype_numpy, NULL, "The same, where NumPy before 2.4 looks for it.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot dtype_slots[] = {
    {Py_tp_doc, "A type of elements. It equals its name and NumPy's type of that name."},
    {Py_tp_dealloc, hgpy_free_object},
    {Py_tp_repr, dtype_repr},
    {Py_tp_str, dtype_str},
    {Py_tp_hash, dtype_hash},
    {Py_tp_richcompare, dtype_compare},
    {Py_tp_getset, dtype_getset},
    {Py_tp_methods, dtype_methods},
    {0, NULL},
};

static PyType_Spec dtype_spec = {.name = "hologram._core.DType",
                                 .basicsize = sizeof(dtype),
                                 .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                 .slots = dtype_slots};

int hgpy_types_add(PyObject *module) {
  dtype_type = hgpy_add_type(module, &dtype_spec);
  if (dtype_type == NULL) return -1;
  for (uint32_t t = 1; t < ATLAS_TYPE_COUNT; t++) {
    if (rows[t].name == NULL) continue;
    dtype *object = PyObject_New(dtype, dtype_type);
    if (object == NULL) return -1;
    object->type = t;
    objects[t] = (PyObject *)object;
    if (PyModule_AddObjectRef(module, t == ATLAS_bool ? "bool_" : rows[t].name, objects[t]) < 0) return -1;
  }
  return 0;
}
