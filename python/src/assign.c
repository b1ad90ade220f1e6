/* assign.c - x[...] = value: writes to a view. hologram._index handles keys with arrays, masks and lists. */
#include "keys.h"

/* ---- values ------------------------------------------------------------------------------------------------------ */

/* The node of an array or a number; NULL without an exception: it is neither. */
static hgpy_node *plain_value(PyObject *value, uint32_t type) {
  bool is_array = hgpy_is_array(value), is_integer = PyLong_Check(value);
  if (!is_array && !is_integer && !PyFloat_Check(value)) return NULL;
  bool is_real = is_array ? hgpy_type_is_float(hgpy_array_node(value)->tensor.type) : !is_integer;
  if (is_real && (hgpy_type_is_integer(type) || type == ATLAS_bool)) {
    PyErr_Format(PyExc_TypeError,
                 "an array of %s takes no floats: cast the value, value.astype('%s'), or the array, "
                 "x.astype('float32')",
                 hgpy_type_name(type), hgpy_type_name(type));
    return NULL;
  }
  if (is_array) return hgpy_cast(hgpy_array_node(value), type);
  return hgpy_number_node("x[...] = value", value, type);
}

/* Lists, NumPy arrays and scalars are converted in Python. */
hgpy_node *hgpy_value_for(PyObject *self, PyObject *value) {
  uint32_t type = hgpy_array_node(self)->tensor.type;
  hgpy_node *node = plain_value(value, type);
  if (node != NULL || PyErr_Occurred() != NULL) return node;
  PyObject *module = PyImport_ImportModule("hologram._index");
  PyObject *plain = module != NULL ? PyObject_CallMethod(module, "as_value", "OO", self, value) : NULL;
  if (plain != NULL) node = plain_value(plain, type);
  if (plain != NULL && node == NULL && PyErr_Occurred() == NULL)
    PyErr_Format(PyExc_TypeError, "an array takes an array, a number or a list of numbers, not %R",
                 (PyObject *)Py_TYPE(value));
  Py_XDECREF(plain);
  Py_XDECREF(module);
  return node;
}

/* 1 if a value broadcasts to the shape that is assigned to, except for `extra` leading axes of one element; false:
 * raised. */
static bool fits(const hg_tensor *from, uint32_t rank, const uint64_t *shape, uint32_t *extra) {
  *extra = 0;
  while (from->rank - *extra > rank && from->shape[*extra] == 1) ++*extra;
  bool does_fit = from->rank - *extra <= rank;
  for (uint32_t d = *extra; does_fit && d < from->rank; d++)
    does_fit = from->shape[d] == 1 || from->shape[d] == shape[d + rank - from->rank];
  if (does_fit) return true;
  PyObject *given = hgpy_shape_object(from->rank, from->shape), *wanted = hgpy_shape_object(rank, shape);
  if (given != NULL && wanted != NULL)
    PyErr_Format(PyExc_ValueError, "a value of shape %R does not broadcast to the shape %R that is assigned to", given,
                 wanted);
  Py_XDECREF(given);
  Py_XDECREF(wanted);
  return false;
}

/* Broadcasts the value to the shape that is assigned to. As in NumPy, it may have additional leading axes of one
 * element. */
hgpy_node *hgpy_value_fit(hgpy_node *value, uint32_t rank, const uint64_t *shape) {
  const hg_tensor *from = &value->tensor;
  uint32_t extra;
  if (!fits(from, rank, shape, &extra)) return NULL;
  if (from->rank == rank && memcmp(from->shape, shape, rank * sizeof *shape) == 0) return hgpy_node_retain(value);
  hgpy_node *flat = extra > 0 ? hgpy_view_reshape(value, from->rank - extra, from->shape + extra) : NULL;
  hgpy_node *fit = extra > 0 && flat == NULL ? NULL : hgpy_view_broadcast(flat != NULL ? flat : value, rank, shape);
  hgpy_node_release(flat);
  return fit;
}

/* ---- into memory ------------------------------------------------------------------------------------------------- */

/* In a broadcast array several elements are at one address. */
static bool repeats_elements(const hg_tensor *tensor) {
  for (uint32_t d = 0; d < tensor->rank; d++)
    if (tensor->stride[d] == 0 && tensor->shape[d] > 1) return true;
  return false;
}

/* The memory to write to: the array's own if nobody else can see it, else a copy, which becomes the array's. */
static hgpy_node *own_memory(PyObject *self) {
  hgpy_node *node = hgpy_array_node(self);
  if (!hgpy_evaluate(&node, 1)) return NULL;
  if (node->input_count > 0) { /* kept for gradients, which must not see what is written */
    node = hgpy_node_data(hgpy_storage_retain(node->storage), &node->tensor);
    if (node == NULL || !hgpy_array_set(self, node)) return NULL;
  }
  bool is_own = node->references == 1 && node->storage->references == 1 && !node->storage->is_foreign;
  is_own |= hgpy_is_warming(); /* the old value is held */
  if (is_own && !repeats_elements(&node->tensor)) return node;
  if (!hgpy_allows(
          "others see the memory that is assigned to, so all of it would be copied; assign to hologram.array(x)"))
    return NULL;
  hg_tensor tensor = hg_tensor_of(NULL, (atlas_type)node->tensor.type, node->tensor.rank, node->tensor.shape);
  hgpy_storage *storage =
      hgpy_storage_for_result(node->device, hg_tensor_count(&tensor) * hgpy_type_bytes(tensor.type));
  if (storage == NULL) return NULL;
  hgpy_node *copy = hgpy_node_data(storage, &tensor);
  if (copy == NULL || !hgpy_evaluate_into(node, storage, &tensor)) return hgpy_node_release(copy), NULL;
  return hgpy_array_set(self, copy) ? copy : NULL;
}

/* ---- updates in recorded functions ------------------------------------------------------------------------------- */

/* The value in the shape of the selected box: without the axes that the key adds, and with an axis of one element for
 * each axis that a number drops. */
static hgpy_node *in_box(hgpy_node *value, const selection *s) {
  uint64_t shape[2 * HG_MAX_RANK];
  const hg_tensor *tensor = &value->tensor;
  uint32_t rank = 0, extra, own = tensor->rank, axis = s->axes;
  for (uint32_t i = 0; i < s->count; i++)
    if (!s->places[i].is_dropped) shape[rank++] = hgpy_place_count(&s->places[i]);
  if (!fits(tensor, rank, shape, &extra)) return NULL;
  for (uint32_t i = s->count; i-- > 0;) {
    const place *p = &s->places[i];
    uint64_t size = p->is_dropped || own == extra ? 1 : tensor->shape[--own];
    if (!p->is_new) shape[--axis] = size;
  }
  bool is_same = tensor->rank == s->axes && memcmp(shape, tensor->shape, s->axes * sizeof *shape) == 0;
  return is_same ? hgpy_node_retain(value) : hgpy_view_reshape(value, s->axes, shape);
}

/* Gives the array another value. */
static int record_update(PyObject *self, const selection *s, hgpy_node *value) {
  hg_argument lists[3] = {{.count = s->axes}, {.count = s->axes}, {.count = s->axes}};
  uint32_t axis = 0;
  for (uint32_t i = 0; i < s->count; i++) {
    const place *p = &s->places[i];
    if (p->is_new) continue;
    lists[0].integers[axis] = p->start, lists[1].integers[axis] = p->stop, lists[2].integers[axis++] = p->step;
  }
  hgpy_node *part = in_box(value, s), *result = NULL;
  if (part != NULL)
    result = hgpy_record(HGPY_ROW_update, (hgpy_node *[]){hgpy_array_node(self), part}, 2, lists, 3);
  hgpy_node_release(part);
  return result != NULL && hgpy_array_set(self, result) ? 0 : -1;
}

static int set_selected(PyObject *self, const selection *s, hgpy_node *value) {
  hgpy_node *node = own_memory(self);
  if (node == NULL) return -1;
  bool was_eager = hgpy_is_eager;
  uint32_t was_tracing = hgpy_tracing;
  hgpy_is_eager = false, hgpy_tracing = 0;
  hgpy_node *target = hgpy_select_from(node, s), *fit = NULL;
  int result = -1;
  if (target != NULL && target->kind != HGPY_DATA)
    PyErr_SetString(PyExc_NotImplementedError, "this selection cannot be assigned to");
  else if (target != NULL) fit = hgpy_value_fit(value, target->tensor.rank, target->tensor.shape);
  if (fit != NULL && hg_tensor_count(&target->tensor) == 0) result = 0;
  else if (fit != NULL && hgpy_evaluate_into(fit, target->storage, &target->tensor)) result = 0;
  hgpy_node_release(fit);
  hgpy_node_release(target);
  hgpy_is_eager = was_eager, hgpy_tracing = was_tracing;
  return result;
}

static int set_by_places(PyObject *self, PyObject *key, hgpy_node *value) {
  uint32_t was_tracing = hgpy_tracing;
  bool was_eager = hgpy_is_eager;
  if (!hgpy_is_recorded(self)) hgpy_tracing = 0; /* the array outlives the gradient, and must not keep its nodes */
  hgpy_is_eager = false; /* one computation, whose faults know the key */
  PyObject *module = PyImport_ImportModule("hologram._index");
  PyObject *plain = module != NULL ? hgpy_array_of(hgpy_node_retain(value)) : NULL;
  PyObject *made = plain != NULL ? PyObject_CallMethod(module, "put", "OOO", self, key, plain) : NULL;
  Py_XDECREF(plain);
  Py_XDECREF(module);
  hgpy_is_eager = was_eager;
  made = hgpy_settled(made);
  hgpy_tracing = was_tracing;
  if (made == NULL) return -1;
  bool is_good = hgpy_array_set(self, hgpy_node_retain(hgpy_array_node(made)));
  Py_DECREF(made);
  return is_good ? 0 : -1;
}

int hgpy_set_item(PyObject *self, PyObject *key, PyObject *value) {
  selection s;
  if (value == NULL) return PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted"), -1;
  hgpy_node *own = hgpy_node_retain(hgpy_array_node(self)); /* __index__ of a key may assign to the array */
  bool is_by_places = hgpy_is_by_places(key);
  bool is_read = is_by_places || hgpy_read_selection(&s, &own->tensor, key);
  hgpy_node_release(own);
  hgpy_node *node = is_read ? hgpy_value_for(self, value) : NULL;
  if (node == NULL) return -1;
  int result = -1;
  if (!hgpy_may_assign(self, node)) result = -1;
  else if (is_by_places) result = set_by_places(self, key, node);
  else if (hgpy_is_recorded(self)) result = record_update(self, &s, node);
  /* reads what the value needs of the array before the array changes */
  else if (node->kind == HGPY_SCALAR || hgpy_evaluate(&node, 1)) result = set_selected(self, &s, node);
  hgpy_node_release(node);
  return result;
}

/* value_for(x, value): the array that is assigned to elements of x, in its type. */
PyObject *hgpy_value_of(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 2 || !hgpy_is_array(values[0]))
    return PyErr_Format(PyExc_TypeError, "value_for takes an Array and a value");
  return hgpy_array_of(hgpy_value_for(values[0], values[1]));
}

/* fitted(value, shape): the value broadcast to the shape that is assigned to. */
PyObject *hgpy_fitted(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  uint64_t shape[HG_MAX_RANK];
  uint32_t rank;
  (void)module;
  if (count != 2 || !hgpy_is_array(values[0]))
    return PyErr_Format(PyExc_TypeError, "fitted takes an Array and a shape");
  if (!hgpy_shape_from(values[1], shape, &rank)) return NULL;
  return hgpy_array_of(hgpy_value_fit(hgpy_array_node(values[0]), rank, shape));
}
