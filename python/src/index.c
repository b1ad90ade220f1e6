/* index.c - x[...] and x[...] = value: numbers, slices, None and ... are views; an array of integers takes elements
 * along an axis, one of bool asks element by element. */
#include "hgpy.h"

typedef struct place {
  int64_t start, stop, step; /* of an axis of the array */
  bool is_dropped, is_new;   /* by a number; by None */
} place;

typedef struct selection {
  place places[2 * HG_MAX_RANK];
  uint32_t count, axes; /* how many of them are axes of the array */
} selection;

static bool add_place(selection *s, place p) {
  if (s->count == 2 * HG_MAX_RANK) return PyErr_SetString(PyExc_IndexError, "the index has too many parts"), false;
  s->places[s->count++] = p;
  s->axes += !p.is_new;
  return true;
}

static bool add_whole(selection *s, const hg_tensor *tensor) {
  return add_place(s, (place){.stop = (int64_t)tensor->shape[s->axes], .step = 1});
}

static bool add_number(selection *s, const hg_tensor *tensor, PyObject *object) {
  long long size = (long long)tensor->shape[s->axes], index = PyLong_AsLongLong(object);
  if (index == -1 && PyErr_Occurred()) return false;
  if (index < -size || index >= size) {
    PyErr_Format(PyExc_IndexError, "index %lld is out of range of axis %u, which has %lld elements", index,
                 (unsigned)s->axes, size);
    return false;
  }
  if (index < 0) index += size;
  return add_place(s, (place){.start = index, .stop = index + 1, .step = 1, .is_dropped = true});
}

static bool add_slice(selection *s, const hg_tensor *tensor, PyObject *object) {
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(object, &start, &stop, &step) < 0) return false;
  PySlice_AdjustIndices((Py_ssize_t)tensor->shape[s->axes], &start, &stop, step);
  if (step > 0 && stop < start) stop = start;
  if (step < 0 && stop > start) stop = start;
  return add_place(s, (place){.start = start, .stop = stop, .step = step});
}

static bool add_part(selection *s, const hg_tensor *tensor, PyObject *object) {
  if (object == Py_None) return add_place(s, (place){.is_new = true});
  if (s->axes >= tensor->rank) {
    PyErr_Format(PyExc_IndexError, "too many indices: the array has %u axes", (unsigned)tensor->rank);
    return false;
  }
  if (PySlice_Check(object)) return add_slice(s, tensor, object);
  PyObject *number = PyNumber_Index(object);
  if (number == NULL) {
    PyErr_Format(PyExc_TypeError, "an index is a number, a slice, None, ... or an array of integers or bool, not %R",
                 (PyObject *)Py_TYPE(object));
    return false;
  }
  bool is_good = add_number(s, tensor, number);
  Py_DECREF(number);
  return is_good;
}

/* How many axes the parts from `first` on take. */
static uint32_t axes_after(PyObject *parts, Py_ssize_t first) {
  uint32_t axes = 0;
  for (Py_ssize_t i = first; i < PyTuple_Size(parts); i++) axes += PyTuple_GetItem(parts, i) != Py_None;
  return axes;
}

static bool read_parts(selection *s, const hg_tensor *tensor, PyObject *parts) {
  bool has_ellipsis = false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(parts); i++) {
    PyObject *part = PyTuple_GetItem(parts, i);
    if (part != Py_Ellipsis) {
      if (!add_part(s, tensor, part)) return false;
      continue;
    }
    if (has_ellipsis) return PyErr_SetString(PyExc_IndexError, "an index can have one ... only"), false;
    has_ellipsis = true;
    uint32_t rest = axes_after(parts, i + 1);
    while (s->axes + rest < tensor->rank)
      if (!add_whole(s, tensor)) return false;
  }
  while (s->axes < tensor->rank)
    if (!add_whole(s, tensor)) return false;
  return true;
}

static bool read_selection(selection *s, const hg_tensor *tensor, PyObject *key) {
  *s = (selection){.count = 0};
  PyObject *parts = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
  bool is_good = parts != NULL && read_parts(s, tensor, parts);
  Py_XDECREF(parts);
  return is_good;
}

/* The view of a node; a new reference. */
static hgpy_node *select_from(hgpy_node *node, const selection *s) {
  uint64_t shape[2 * HG_MAX_RANK];
  uint32_t rank = 0, axis = 0;
  bool is_reshaped = false;
  hgpy_node *at = hgpy_node_retain(node);
  for (uint32_t i = 0; i < s->count && at != NULL; i++) {
    const place *p = &s->places[i];
    is_reshaped = is_reshaped || p->is_new || p->is_dropped;
    if (p->is_new) {
      shape[rank++] = 1;
      continue;
    }
    if (p->start != 0 || p->step != 1 || p->stop != (int64_t)at->tensor.shape[axis]) {
      hgpy_node *next = hgpy_view_slice(at, axis, p->start, p->stop, p->step);
      hgpy_node_release(at);
      at = next;
    }
    if (at != NULL && !p->is_dropped) shape[rank++] = at->tensor.shape[axis];
    axis++;
  }
  if (at == NULL || !is_reshaped) return at;
  if (rank > HG_MAX_RANK) {
    PyErr_Format(PyExc_IndexError, "the result would have %u axes; the highest rank is %d", (unsigned)rank,
                 HG_MAX_RANK);
    hgpy_node_release(at);
    return NULL;
  }
  hgpy_node *result = hgpy_view_reshape(at, rank, shape);
  hgpy_node_release(at);
  return result;
}

/* ---- by arrays --------------------------------------------------------------------------------------------------- */

/* By hologram._index, which knows how masks become numbers, and several arrays places. */
static PyObject *take_in_python(const char *function, PyObject *self, PyObject *key) {
  PyObject *module = PyImport_ImportModule("hologram._index");
  PyObject *result = module != NULL ? PyObject_CallMethod(module, function, "OO", self, key) : NULL;
  Py_XDECREF(module);
  return result;
}

static bool is_index_array(PyObject *object) {
  return hgpy_is_array(object) &&
         (hgpy_array_node(object)->tensor.rank > 0 || hgpy_array_node(object)->tensor.type == ATLAS_bool);
}

static bool has_arrays(PyObject *parts) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(parts); i++)
    if (is_index_array(PyTuple_GetItem(parts, i))) return true;
  return false;
}

static PyObject *take_by(PyObject *self, PyObject *index) {
  hgpy_node *inputs[2] = {hgpy_array_node(self), hgpy_array_node(index)};
  if (!hgpy_type_is_integer(inputs[1]->tensor.type)) return take_in_python("take_mask", self, index);
  if (inputs[0]->tensor.rank == 0)
    return PyErr_Format(PyExc_IndexError, "an array without axes cannot be indexed by an array");
  bool is_signed = inputs[1]->tensor.type <= ATLAS_i64;
  hg_argument arguments[2] = {{.count = 1, .integers = {0}}, {.count = 1, .integers = {0}}};
  if (!is_signed) return hgpy_array_of(hgpy_record(HGPY_ROW_take, inputs, 2, arguments, 2));
  /* negative numbers count from the end */
  hgpy_node *zero = hgpy_node_integer(inputs[1]->tensor.type, 0);
  hgpy_node *size = hgpy_node_integer(inputs[1]->tensor.type, (int64_t)inputs[0]->tensor.shape[0]);
  hgpy_node *low = zero != NULL ? hgpy_record(HGPY_ROW_less, (hgpy_node *[]){inputs[1], zero}, 2, NULL, 0) : NULL;
  hgpy_node *sum =
      low != NULL && size != NULL ? hgpy_record(HGPY_ROW_add, (hgpy_node *[]){inputs[1], size}, 2, NULL, 0) : NULL;
  hgpy_node *index_node =
      sum != NULL ? hgpy_record(HGPY_ROW_where, (hgpy_node *[]){low, sum, inputs[1]}, 3, NULL, 0) : NULL;
  PyObject *result = NULL;
  if (index_node != NULL) {
    inputs[1] = index_node;
    result = hgpy_array_of(hgpy_record(HGPY_ROW_take, inputs, 2, arguments, 2));
  }
  hgpy_node_release(zero), hgpy_node_release(size), hgpy_node_release(low), hgpy_node_release(sum),
      hgpy_node_release(index_node);
  return result;
}

PyObject *hgpy_get_item(PyObject *self, PyObject *key) {
  selection s;
  if (is_index_array(key)) return take_by(self, key);
  if (PyTuple_Check(key) && has_arrays(key)) return take_in_python("take_places", self, key);
  hgpy_node *node = hgpy_array_node(self);
  if (!read_selection(&s, &node->tensor, key)) return NULL;
  return hgpy_array_of(select_from(node, &s));
}

/* ---- x[...] = value ---------------------------------------------------------------------------------------------- */

/* The memory to write to: the array's own where nobody else can see it, else a copy's, which it has from then on. */
static hgpy_node *own_memory(PyObject *self) {
  hgpy_node *node = hgpy_array_node(self);
  if (!hgpy_evaluate(&node, 1)) return NULL;
  if (node->references == 1 && node->storage->references == 1 && !node->storage->is_foreign) return node;
  if (!hgpy_allows(
          "others see the memory that is assigned to, so all of it would be copied; assign to hologram.array(x)"))
    return NULL;
  hg_tensor tensor = hg_tensor_of(NULL, (atlas_type)node->tensor.type, node->tensor.rank, node->tensor.shape);
  hgpy_storage *storage =
      hgpy_storage_create(node->device, hg_tensor_count(&tensor) * hgpy_type_bytes(tensor.type), false);
  if (storage == NULL) return NULL;
  hgpy_node *copy = hgpy_node_data(storage, &tensor);
  if (copy == NULL || !hgpy_evaluate_into(node, storage, &tensor)) return hgpy_node_release(copy), NULL;
  hgpy_array_set(self, copy);
  return copy;
}

static hgpy_node *value_node(PyObject *value, const hg_tensor *like) {
  if (hgpy_is_array(value)) return hgpy_cast(hgpy_array_node(value), like->type);
  if (PyFloat_Check(value) && hgpy_type_is_float(like->type))
    return hgpy_node_real(like->type, PyFloat_AsDouble(value));
  if (PyLong_Check(value)) {
    long long number = PyLong_AsLongLong(value);
    return number == -1 && PyErr_Occurred() ? NULL : hgpy_node_integer(like->type, number);
  }
  PyErr_Format(PyExc_TypeError, "an array of %s takes an Array or a number of its kind, not %R",
               hgpy_type_name(like->type), value);
  return NULL;
}

static int set_selected(PyObject *self, const selection *s, hgpy_node *value) {
  hgpy_node *node = own_memory(self);
  if (node == NULL) return -1;
  bool was_eager = hgpy_is_eager;
  uint32_t was_tracing = hgpy_tracing;
  hgpy_is_eager = false, hgpy_tracing = 0;
  hgpy_node *target = select_from(node, s), *fit = NULL;
  int result = -1;
  if (target != NULL && target->kind != HGPY_DATA)
    PyErr_SetString(PyExc_NotImplementedError, "this selection cannot be assigned to");
  else if (target != NULL && hg_tensor_count(&target->tensor) == 0) result = 0;
  else if (target != NULL) fit = hgpy_view_broadcast(value, target->tensor.rank, target->tensor.shape);
  if (fit != NULL && hgpy_evaluate_into(fit, target->storage, &target->tensor)) result = 0;
  hgpy_node_release(fit);
  hgpy_node_release(target);
  hgpy_is_eager = was_eager, hgpy_tracing = was_tracing;
  return result;
}

static int set_by_mask(PyObject *self, PyObject *mask, PyObject *value) {
  hgpy_node *old = hgpy_array_node(self), *node = value_node(value, &old->tensor), *result = NULL;
  if (node != NULL) result = hgpy_record(HGPY_ROW_where, (hgpy_node *[]){hgpy_array_node(mask), node, old}, 3, NULL, 0);
  hgpy_node_release(node);
  if (result == NULL) return -1;
  if (result->tensor.rank != old->tensor.rank ||
      memcmp(result->tensor.shape, old->tensor.shape, old->tensor.rank * sizeof(uint64_t)) != 0) {
    PyErr_SetString(PyExc_IndexError, "a mask and the value have the array's shape, or broadcast to it");
    hgpy_node_release(result);
    return -1;
  }
  hgpy_array_set(self, result);
  return 0;
}

int hgpy_set_item(PyObject *self, PyObject *key, PyObject *value) {
  selection s;
  if (value == NULL) return PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted"), -1;
  if (hgpy_is_array(key) && hgpy_array_node(key)->tensor.type == ATLAS_bool) return set_by_mask(self, key, value);
  if (hgpy_is_array(key) && hgpy_array_node(key)->tensor.rank > 0)
    return PyErr_SetString(PyExc_NotImplementedError, "assignment by an array of integers: use scatter()"), -1;
  if (!read_selection(&s, &hgpy_array_node(self)->tensor, key)) return -1;
  hgpy_node *node = value_node(value, &hgpy_array_node(self)->tensor);
  if (node == NULL) return -1;
  /* what the value needs of the array is computed before the array changes */
  bool is_ready = node->kind == HGPY_SCALAR || hgpy_evaluate(&node, 1);
  int result = is_ready ? set_selected(self, &s, node) : -1;
  hgpy_node_release(node);
  return result;
}
