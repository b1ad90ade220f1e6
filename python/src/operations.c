/* operations.c - operations as Python functions and, for rows with a first input, methods of arrays: one of each for a
 * row of operations.def. */
#include "rows.h"

#include <stdio.h>

/* ---- types of inputs --------------------------------------------------------------------------------------------- */

bool hgpy_row_same_types(uint32_t number, uint32_t input, uint32_t other) {
  const row *r = &hgpy_rows[number];
  if (r->is_variadic) return true;
  return input < r->input_count && other < r->input_count && r->kinds[input] == r->kinds[other];
}

bool hgpy_row_has_kinds(uint32_t number) {
  const row *r = &hgpy_rows[number];
  for (uint32_t i = 1; i < r->input_count; i++)
    if (r->kinds[i] != r->kinds[0]) return true;
  return false;
}

bool hgpy_row_is_input(uint32_t number, Py_ssize_t place, PyObject *name) {
  const row *r = &hgpy_rows[number];
  if (name == NULL) return r->is_variadic || place < r->input_count;
  uint32_t i = 0;
  while (i < r->input_count && PyUnicode_CompareWithASCIIString(name, r->inputs[i].name) != 0) i++;
  return i < r->input_count;
}

bool hgpy_row_mixes(uint32_t number, const uint32_t *types, Py_ssize_t count, Py_ssize_t total) {
  for (Py_ssize_t i = 0; i < total; i++) {
    if (types[i] == ATLAS_NONE) continue;
    if (number == HGPY_ROW_div && !hgpy_type_is_float(types[i])) return true;
    for (Py_ssize_t k = 0; k < i; k++) {
      if (types[k] == ATLAS_NONE || types[k] == types[i]) continue;
      if (i >= count || hgpy_row_same_types(number, (uint32_t)i, (uint32_t)k)) return true;
    }
  }
  return false;
}

/* ---- inputs ------------------------------------------------------------------------------------------------------ */

typedef struct call {
  const row *r;
  uint32_t number;
  PyObject **inputs, *few_inputs[16];
  hgpy_node **nodes, *few_nodes[16];
  uint32_t input_count, room;
  hg_argument arguments[HGPY_MOST_ARGUMENTS];
  uint32_t argument_count; /* number of arguments given */
  bool is_over_none;       /* axis=(): along no axis */
  uint32_t as_type;        /* for reductions: dtype=, the type in which it is computed; ATLAS_NONE: its own */
} call;

/* How a comparison replaces an int in place `input` that is no float: x < 2^53 + 1 becomes x < 2^53 + 2. */
static hgpy_bound bound_of(const call *c, uint32_t input) {
  switch (c->number) {
  case HGPY_ROW_less:
  case HGPY_ROW_greater_equal: return input == 1 ? HGPY_ABOVE : HGPY_BELOW;
  case HGPY_ROW_less_equal:
  case HGPY_ROW_greater: return input == 1 ? HGPY_BELOW : HGPY_ABOVE;
  case HGPY_ROW_equal:
  case HGPY_ROW_not_equal: return HGPY_SAME;
  default: return HGPY_UNCOMPARED;
  }
}

static uint32_t type_of_several(const call *c, uint32_t input) {
  uint32_t type = ATLAS_NONE;
  for (uint32_t i = 0; i < c->input_count; i++) {
    if (i == input || c->inputs[i] == NULL || !hgpy_is_array(c->inputs[i])) continue;
    if (!hgpy_row_same_types(c->number, input, i)) continue;
    uint32_t next = hgpy_array_node(c->inputs[i])->tensor.type;
    if (type != ATLAS_NONE && next != type) next = (uint32_t)hg_promote_types((atlas_type)type, (atlas_type)next);
    if (next != ATLAS_NONE) type = next; /* else the library reports the error */
  }
  return type;
}

/* The type of the arrays that share one with `input`; ATLAS_NONE: no array. Most rows have two inputs. */
static uint32_t type_of_arrays(const call *c, uint32_t input) {
  if (c->input_count != 2) return type_of_several(c, input);
  PyObject *other = c->inputs[1 - input];
  bool is_beside = other != NULL && hgpy_is_array(other) && hgpy_row_same_types(c->number, input, 1 - input);
  return is_beside ? ((hgpy_array *)other)->node->tensor.type : (uint32_t)ATLAS_NONE;
}

/* The type of a number beside other numbers, without an array. */
static uint32_t type_of_numbers(const call *c, uint32_t input, PyObject *number) {
  bool are_bools = PyBool_Check(number);
  if (hgpy_is_float(number)) return ATLAS_f32;
  for (uint32_t i = 0; i < c->input_count; i++) {
    PyObject *object = c->inputs[i];
    if (object == NULL || !hgpy_is_number(object) || !hgpy_row_same_types(c->number, input, i)) continue;
    if (hgpy_is_float(object)) return ATLAS_f32;
    are_bools = are_bools && PyBool_Check(object);
  }
  return are_bools ? ATLAS_bool : ATLAS_i64;
}

static hgpy_node *node_of_number(const call *c, uint32_t input, PyObject *number) {
  uint32_t type = type_of_arrays(c, input);
  if (hgpy_type_is_float(type) && hgpy_is_float(number)) return hgpy_node_real(type, PyFloat_AsDouble(number));
  if (type == ATLAS_NONE) return hgpy_number_node(c->r->name, number, type_of_numbers(c, input, number));
  hgpy_bound bound = bound_of(c, input);
  return bound == HGPY_UNCOMPARED ? hgpy_operand_node(c->r->name, number, type)
                                  : hgpy_compared_node(c->r->name, number, type, bound);
}

/* A new reference; NULL without an exception: absent. */
static hgpy_node *node_of(const call *c, uint32_t input) {
  PyObject *object = c->inputs[input];
  if (object == NULL || object == Py_None) return NULL;
  if (hgpy_is_array(object)) return hgpy_node_retain(hgpy_array_node(object));
  if (hgpy_is_number(object)) return node_of_number(c, input, object);
  PyObject *number = hgpy_plain_number(object);
  if (number != NULL) {
    hgpy_node *node = node_of_number(c, input, number);
    Py_DECREF(number);
    return node;
  }
  PyErr_Format(PyExc_TypeError, "%s: %s takes an Array or a number, not %R; hologram.asarray() makes an Array of it",
               c->r->name, c->r->inputs[input < c->r->input_count ? input : c->r->input_count - 1u].name,
               (PyObject *)Py_TYPE(object));
  return NULL;
}

/* The type of an input beside arrays of a type. */
static uint32_t own_type(PyObject *object, uint32_t type) {
  if (hgpy_is_array(object)) return hgpy_array_node(object)->tensor.type;
  PyObject *number = hgpy_plain_number(object);
  if (number != NULL && !PyBool_Check(number)) type = hgpy_type_beside(number, type);
  Py_XDECREF(number);
  return type;
}

/* In hg.strict() kinds may not mix; but an int beside floats is no mixture, nor is a bool beside numbers. */
static bool allows_types(const call *c) {
  for (uint32_t i = 0; i < c->input_count; i++) {
    uint32_t type = c->inputs[i] != NULL && c->inputs[i] != Py_None ? type_of_arrays(c, i) : (uint32_t)ATLAS_NONE;
    uint32_t own = type != ATLAS_NONE ? own_type(c->inputs[i], type) : type;
    if (hgpy_kind_rank(own) == hgpy_kind_rank(type)) continue;
    bool is_higher = hgpy_kind_rank(own) > hgpy_kind_rank(type);
    return hgpy_allows("%s: %s and %s would mix; cast one of them, as in x.astype('%s')", c->r->name,
                       hgpy_type_name(type), hgpy_type_name(own), hgpy_type_name(is_higher ? own : type));
  }
  return true;
}

/* ---- calls ------------------------------------------------------------------------------------------------------- */

static PyObject *results_object(hgpy_node **results, int count) {
  if (count < 1) return NULL;
  if (count == 1) return hgpy_array_of(results[0]);
  PyObject *tuple = PyTuple_New(count);
  for (int i = 0; i < count; i++) {
    PyObject *array = hgpy_array_of(results[i]);
    if (array == NULL) Py_CLEAR(tuple);
    else if (tuple == NULL || PyTuple_SetItem(tuple, i, array) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

/* Along no axis: the table has no word for it (its empty list means all axes), so x gets an additional axis. */
static bool take_no_axes(call *c) {
  const hg_tensor *tensor = &c->nodes[0]->tensor;
  uint64_t shape[HG_MAX_RANK];
  if (tensor->rank == HG_MAX_RANK) {
    PyErr_Format(PyExc_NotImplementedError, "%s: along no axis of an array of the highest rank", c->r->name);
    return false;
  }
  memcpy(shape, tensor->shape, sizeof shape);
  shape[tensor->rank] = 1;
  hgpy_node *view = hgpy_view_reshape(c->nodes[0], tensor->rank + 1, shape);
  if (view == NULL) return false;
  hgpy_node_release(c->nodes[0]);
  c->nodes[0] = view;
  for (uint32_t i = 0; i < c->argument_count; i++) {
    if (strcmp(c->r->arguments[i].name, "axis") == 0) c->arguments[i] = (hg_argument){.count = 1, .integers = {-1}};
    if (strcmp(c->r->arguments[i].name, "keepdims") == 0) c->arguments[i] = (hg_argument){.count = 0};
  }
  return true;
}

/* The device of the first array that has one; NULL: none. */
static hgpy_device *device_of_arrays(const call *c) {
  for (uint32_t i = 0; i < c->input_count; i++) {
    PyObject *object = c->inputs[i];
    hgpy_node *node = object != NULL && hgpy_is_array(object) ? hgpy_array_node(object) : NULL;
    if (node != NULL && node->device != NULL) return node->device;
  }
  return NULL;
}

/* Replaces NumPy arrays and lists among the inputs by arrays, which `own` holds; false: raised. */
static bool take_objects(call *c, PyObject **own) {
  for (uint32_t i = 0; i < c->input_count; i++) {
    PyObject *object = c->inputs[i];
    if (object == NULL || object == Py_None || hgpy_is_array(object) || hgpy_is_number(object)) continue;
    PyObject *number = PyList_Check(object) || PyTuple_Check(object) ? NULL : hgpy_plain_number(object);
    Py_XDECREF(number);
    PyObject *array = number == NULL ? hgpy_array_from(object, device_of_arrays(c)) : NULL;
    if (array == NULL && PyErr_Occurred()) return false;
    if (array == NULL) continue;
    if (*own == NULL) *own = PyList_New(0);
    bool is_held = *own != NULL && PyList_Append(*own, array) == 0;
    Py_DECREF(array);
    if (!is_held) return false;
    c->inputs[i] = array;
  }
  return true;
}

/* Replaces *node by its conversion to a type; false: raised. */
static bool become(hgpy_node **node, uint32_t type) {
  if (type == ATLAS_NONE) return true;
  hgpy_node *made = hgpy_cast(*node, type);
  if (made == NULL) return false;
  hgpy_node_release(*node);
  *node = made;
  return true;
}

static PyObject *record_operands(call *c) {
  hgpy_node *results[HGPY_MOST_RESULTS];
  uint32_t made = 0;
  if (hgpy_is_strict && !allows_types(c)) return NULL;
  for (; made < c->input_count; made++) {
    c->nodes[made] = node_of(c, made);
    if (c->nodes[made] == NULL && PyErr_Occurred()) break;
  }
  int count = -1;
  bool is_ready = made == c->input_count && become(&c->nodes[0], c->as_type);
  if (is_ready && c->is_over_none && c->number == HGPY_ROW_flip) results[0] = hgpy_node_retain(c->nodes[0]), count = 1;
  else if (is_ready && (!c->is_over_none || take_no_axes(c)))
    count = hgpy_record_all(c->number, c->nodes, c->input_count, c->arguments, c->argument_count, results);
  while (made-- > 0) hgpy_node_release(c->nodes[made]);
  if (count != 1 || become(&results[0], c->as_type)) return results_object(results, count);
  hgpy_node_release(results[0]);
  return NULL;
}

static PyObject *record(call *c) {
  PyObject *own = NULL;
  PyObject *result = take_objects(c, &own) ? record_operands(c) : NULL;
  Py_XDECREF(own);
  return result;
}

static void call_begin(call *c, uint32_t number) {
  c->r = &hgpy_rows[number];
  c->number = number;
  c->inputs = c->few_inputs;
  c->nodes = c->few_nodes;
  c->input_count = c->argument_count = 0;
  c->room = 16;
  c->is_over_none = false;
  c->as_type = ATLAS_NONE;
}

static void call_end(call *c) {
  if (c->inputs != c->few_inputs) PyMem_Free(c->inputs);
  if (c->nodes != c->few_nodes) PyMem_Free(c->nodes);
}

static bool add_input(call *c, PyObject *object) {
  if (c->input_count == c->room) {
    PyObject **inputs = PyMem_Malloc(2 * c->room * sizeof(PyObject *));
    hgpy_node **nodes = PyMem_Malloc(2 * c->room * sizeof(hgpy_node *));
    if (inputs == NULL || nodes == NULL) {
      PyMem_Free(inputs), PyMem_Free(nodes);
      return PyErr_NoMemory(), false;
    }
    memcpy(inputs, c->inputs, c->input_count * sizeof(PyObject *));
    call_end(c);
    c->inputs = inputs;
    c->nodes = nodes;
    c->room *= 2;
  }
  c->inputs[c->input_count++] = object;
  return true;
}

static bool add_argument(call *c, uint32_t index, PyObject *value) {
  while (c->argument_count <= index) c->arguments[c->argument_count++] = (hg_argument){.count = 0};
  const argument_spec *spec = &c->r->arguments[index];
  hg_argument *argument = &c->arguments[index];
  *argument = (hg_argument){.count = 0};
  if (!hgpy_argument_from(c->r->name, spec, value, argument)) return false;
  bool is_axes = spec->preset == PRESET_LIST && strncmp(spec->choices, "all", 3) == 0 && c->number != HGPY_ROW_permute;
  if (is_axes && value != Py_None) c->is_over_none = argument->count == 0;
  return true;
}

/* The argument's name in the table is accepted, too. */
static const char *other_name(const char *name) {
  static const char *const pairs[][2] = {
      {"axes", "axis"}, {"axis", "axes"}, {"keep", "keepdims"}, {"type", "dtype"}, {"ddof", "correction"},
      {"low", "min"},   {"high", "max"},  {"x1", "a"},          {"x2", "b"},       {"fill_value", "value"}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
    if (strcmp(pairs[i][0], name) == 0) return pairs[i][1];
  return "";
}

static bool set_named(call *c, const char *name, PyObject *value) {
  const row *r = c->r;
  for (uint32_t i = 0; i < r->argument_count; i++)
    if (strcmp(r->arguments[i].name, name) == 0) return add_argument(c, i, value);
  for (uint32_t i = 0; i < r->input_count && !r->is_variadic; i++) {
    if (strcmp(r->inputs[i].name, name) != 0) continue;
    while (c->input_count <= i)
      if (!add_input(c, NULL)) return false;
    if (c->inputs[i] != NULL) return PyErr_Format(PyExc_TypeError, "%s: %s is given twice", r->name, name), false;
    c->inputs[i] = value;
    return true;
  }
  return false;
}

static bool set_of_reduction(call *c, const char *name, PyObject *value) {
  bool is_type = strcmp(name, "dtype") == 0 && hgpy_has_type(c->r);
  if (!hgpy_is_reduction(c->r) || !(is_type || strcmp(name, "out") == 0)) return false;
  if (value == Py_None) return true;
  return is_type && (c->as_type = hgpy_type_from(value)) != ATLAS_NONE;
}

static bool has_word(const row *r, const char *name) {
  for (uint32_t i = 0; i < r->argument_count; i++)
    if (strcmp(r->arguments[i].name, name) == 0) return true;
  for (uint32_t i = 0; i < r->input_count; i++)
    if (strcmp(r->inputs[i].name, name) == 0) return true;
  return false;
}

/* Raises an error that names the right argument, or all of them. */
static void refuse_argument(const row *r, const char *name) {
  char all[256] = "";
  size_t used = 0;
  const char *near = hgpy_near_argument(name);
  if (near != NULL && has_word(r, near)) {
    PyErr_Format(PyExc_TypeError, "%s has no argument '%s': it is %s here", r->name, name, near);
    return;
  }
  if (near != NULL && strchr(near, ' ') != NULL) {
    PyErr_Format(PyExc_TypeError, "%s has no argument '%s': %s", r->name, name, near);
    return;
  }
  for (uint32_t i = 0; i < (uint32_t)r->input_count + r->argument_count && used < sizeof all; i++) {
    const char *word = i < r->input_count ? r->inputs[i].name : r->arguments[i - r->input_count].name;
    used += (size_t)snprintf(all + used, sizeof all - used, i > 0 ? ", %s" : "%s", word);
  }
  PyErr_Format(PyExc_TypeError, "%s has no argument '%s'; it takes %s", r->name, name, all[0] != '\0' ? all : "none");
}

static bool add_named(call *c, PyObject *key, PyObject *value) {
  const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
  if (name == NULL) return false;
  if (set_named(c, name, value)) return true;
  if (PyErr_Occurred()) return false;
  if (set_of_reduction(c, name, value)) return true;
  if (PyErr_Occurred()) return false;
  const char *other = other_name(name);
  if (other[0] != '\0' && set_named(c, other, value)) return true;
  if (!PyErr_Occurred()) refuse_argument(c->r, name);
  return false;
}

static bool add_sequence(call *c, PyObject *sequence, PyObject **kept) {
  *kept = PySequence_Tuple(sequence);
  if (*kept == NULL) return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(*kept); i++)
    if (!add_input(c, PyTuple_GetItem(*kept, i))) return false;
  return true;
}

/* In Python, negative index elements count from the end, as in indexing, unless the call says what they do. */
static void count_from_the_end(call *c) {
  enum { WRAP = 1 };
  uint32_t place = c->r->bounds - 1u;
  while (c->argument_count <= place) c->arguments[c->argument_count++] = (hg_argument){.count = 0};
  if (c->arguments[place].count == 0) c->arguments[place] = (hg_argument){.count = 1, .integers = {WRAP}};
}

/* Inputs, then arguments, by position; then by name. `kept`: a tuple from which inputs are borrowed. */
static bool read_call(call *c, PyObject *self, PyObject *const *values, Py_ssize_t count, PyObject *names,
                      PyObject **kept) {
  const row *r = c->r;
  Py_ssize_t at = 0;
  uint32_t argument = 0;
  if (self != NULL && !add_input(c, self)) return false;
  if (r->is_variadic && at < count && (PyList_Check(values[at]) || PyTuple_Check(values[at])) &&
      !add_sequence(c, values[at++], kept))
    return false;
  for (; at < count; at++) {
    bool is_input =
        r->is_variadic ? *kept == NULL && hgpy_is_array(values[at]) && argument == 0 : c->input_count < r->input_count;
    if (is_input) {
      if (!add_input(c, values[at])) return false;
    } else if (argument >= r->argument_count) {
      PyErr_Format(PyExc_TypeError, "%s takes %d inputs and %d arguments; %zd are given", r->name, (int)r->input_count,
                   (int)r->argument_count, count + (self != NULL));
      return false;
    } else if (!add_argument(c, argument++, values[at])) return false;
  }
  for (Py_ssize_t i = 0; names != NULL && i < PyTuple_Size(names); i++)
    if (!add_named(c, PyTuple_GetItem(names, i), values[count + i])) return false;
  for (uint32_t i = 0; i < r->input_count && !r->is_variadic; i++) {
    if (r->inputs[i].is_optional || (i < c->input_count && c->inputs[i] != NULL && c->inputs[i] != Py_None)) continue;
    PyErr_Format(PyExc_TypeError, "%s: its input '%s' is missing", r->name, r->inputs[i].name);
    return false;
  }
  if (r->bounds > 0) count_from_the_end(c);
  return true;
}

static PyObject *call_row(uint32_t number, PyObject *self, PyObject *const *values, Py_ssize_t count, PyObject *names) {
  call c;
  PyObject *kept = NULL, *result = NULL;
  call_begin(&c, number);
  if (read_call(&c, self, values, count, names, &kept)) result = record(&c);
  Py_XDECREF(kept);
  call_end(&c);
  return result;
}

PyObject *hgpy_call_row(uint32_t number, PyObject *const *values, Py_ssize_t count, PyObject *names) {
  return call_row(number, NULL, values, count, names);
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static bool is_operand(PyObject *object) { return hgpy_is_array(object) || hgpy_is_number(object); }

/* NumPy scalars are numbers; NumPy arrays and lists are copied, because recorded operations read them later. */
static PyObject *binary_with(uint32_t number, PyObject *a, PyObject *b) {
  PyObject *other = is_operand(a) ? b : a, *item = hgpy_plain_number(other), *result = NULL;
  if (item != NULL) {
    result = other == b ? hgpy_binary(number, a, item) : hgpy_binary(number, item, b);
    Py_DECREF(item);
    return result;
  }
  item = hgpy_array_from(other, hgpy_array_node(other == b ? a : b)->device);
  if (item == NULL && PyErr_Occurred()) return NULL;
  if (item != NULL) {
    result = other == b ? hgpy_binary(number, a, item) : hgpy_binary(number, item, b);
    Py_DECREF(item);
    return result;
  }
  PyObject *rank = PyObject_GetAttrString(other, "ndim");
  if (rank == NULL) {
    PyErr_Clear();
    Py_RETURN_NOTIMPLEMENTED;
  }
  bool is_scalar = PyLong_Check(rank) && PyLong_AsLong(rank) == 0;
  Py_DECREF(rank);
  if (!is_scalar) {
    PyErr_Format(PyExc_TypeError, "%s: an Array and %R; hologram.asarray() makes an Array of it",
                 hgpy_rows[number].name, (PyObject *)Py_TYPE(other));
    return NULL;
  }
  item = PyObject_CallMethod(other, "item", NULL);
  if (item != NULL && hgpy_is_number(item))
    result = other == b ? hgpy_binary(number, a, item) : hgpy_binary(number, item, b);
  else if (item != NULL) result = Py_NewRef(Py_NotImplemented);
  Py_XDECREF(item);
  return result;
}

PyObject *hgpy_binary(uint32_t number, PyObject *a, PyObject *b) {
  if (!is_operand(a) || !is_operand(b)) return binary_with(number, a, b);
  call c;
  call_begin(&c, number);
  c.inputs[0] = a;
  c.inputs[1] = b;
  c.input_count = 2;
  return record(&c);
}

PyObject *hgpy_unary(uint32_t number, PyObject *x) {
  hgpy_node *node = hgpy_array_node(x);
  return hgpy_array_of(hgpy_record(number, &node, 1, NULL, 0));
}

/* ---- entry points: one for each row ------------------------------------------------------------------------------ */

#define HG_OPERATION(code, id, kind, inputs, arguments, types, formula, gradient, meaning)                             \
  static PyObject *function_##id(PyObject *module, PyObject *const *values, Py_ssize_t count, PyObject *names) {       \
    (void)module;                                                                                                      \
    return call_row(HGPY_ROW_##id, NULL, values, count, names);                                                        \
  }                                                                                                                    \
  static PyObject *method_##id(PyObject *self, PyObject *const *values, Py_ssize_t count, PyObject *names) {           \
    return call_row(HGPY_ROW_##id, self, values, count, names);                                                        \
  }
#include "hologram/operations.def"
#undef HG_OPERATION

#define FAST(function) ((PyCFunction)(void *)(function))

static PyMethodDef functions[HGPY_ROW_COUNT + 1] = {
#define HG_OPERATION(code, id, kind, inputs, arguments, types, formula, gradient, meaning)                             \
  {#id, FAST(function_##id), METH_FASTCALL | METH_KEYWORDS, NULL},
#include "hologram/operations.def"
#undef HG_OPERATION
    {NULL, NULL, 0, NULL},
};

static const PyMethodDef row_methods[HGPY_ROW_COUNT] = {
#define HG_OPERATION(code, id, kind, inputs, arguments, types, formula, gradient, meaning)                             \
  {#id, FAST(method_##id), METH_FASTCALL | METH_KEYWORDS, NULL},
#include "hologram/operations.def"
#undef HG_OPERATION
};

/* Losses, layers and optimisers are functions only: they do not belong to their first input. */
static bool is_method(uint32_t number) {
  uint32_t code = (uint32_t)hgpy_rows[number].op;
  return hgpy_rows[number].input_count > 0 && !hgpy_rows[number].is_variadic &&
         (code >> 8 < 0x06 || code >> 8 == 0x07 || (code >> 8 >= 0x10 && code >> 8 <= 0x12) ||
          (code > 0x1600 && code < 0x1640) || code == HG_OP_triu || code == HG_OP_tril);
}

uint32_t hgpy_operations_methods(PyMethodDef *methods, uint32_t room) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < HGPY_ROW_COUNT && count + 1 < room; i++) {
    if (!is_method(i)) continue;
    methods[count] = row_methods[i];
    methods[count++].ml_doc = hgpy_rows[i].method_text;
  }
  return count;
}

int hgpy_operations_add(PyObject *module) {
  for (uint32_t i = 0; i < HGPY_ROW_COUNT; i++) functions[i].ml_doc = hgpy_rows[i].text;
  return PyModule_AddFunctions(module, functions);
}
