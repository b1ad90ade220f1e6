/* assign.c - x[...] = value. */
#include "keys.h"

/* The memory to write to: the array's own where nobody else can see it, else a copy's, which it has from then on. */
static hgpy_node *own_memory(PyObject *self) {
  hgpy_node *node = hgpy_array_node(self);
  if (!hgpy_evaluate(&node, 1)) return NULL;
  if (node->input_count > 0) { /* they are kept for gradients, which would not see what is written */
    node = hgpy_node_data(hgpy_storage_retain(node->storage), &node->tensor);
    if (node == NULL) return NULL;
    hgpy_array_set(self, node);
  }
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

/* The value as what stands in the box: without the axes that the key adds, and with one of one element for each that a
 * number drops. The value's sizes fit these of the selection, counted from the last. */
static hgpy_node *in_box(hgpy_node *value, const selection *s) {
  uint64_t shape[HG_MAX_RANK];
  const hg_tensor *tensor = &value->tensor;
  uint32_t own = tensor->rank, axis = s->axes;
  for (uint32_t i = s->count; i-- > 0;) {
    const place *p = &s->places[i];
    uint64_t size = p->is_dropped || own == 0 ? 1 : tensor->shape[--own];
    if (!p->is_new) shape[--axis] = size;
    else if (size != 1) own = UINT32_MAX; /* one element cannot be many */
    if (own == UINT32_MAX) break;
  }
  bool is_good = own != UINT32_MAX;
  while (is_good && own > 0) is_good = tensor->shape[--own] == 1;
  if (!is_good)
    return (hgpy_node *)PyErr_Format(PyExc_ValueError, "the value has other axes than what is assigned to");
  bool is_same = tensor->rank == s->axes && memcmp(shape, tensor->shape, s->axes * sizeof *shape) == 0;
  return is_same ? hgpy_node_retain(value) : hgpy_view_reshape(value, s->axes, shape);
}

/* As part of what is recorded: the array has another value from then on. */
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
  if (result == NULL) return -1;
  hgpy_array_set(self, result);
  return 0;
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
  hgpy_node *target = hgpy_select_from(node, s), *fit = NULL;
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
  if (!hgpy_read_selection(&s, &hgpy_array_node(self)->tensor, key)) return -1;
  hgpy_node *node = value_node(value, &hgpy_array_node(self)->tensor);
  if (node == NULL) return -1;
  int result = -1;
  if (hgpy_may_assign(self, node)) {
    if (hgpy_is_recorded(self)) result = record_update(self, &s, node);
    /* what the value needs of the array is computed before the array changes */
    else if (node->kind == HGPY_SCALAR || hgpy_evaluate(&node, 1)) result = set_selected(self, &s, node);
  }
  hgpy_node_release(node);
  return result;
}
