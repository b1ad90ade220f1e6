/* keys.c - keys of numbers, slices, None and ..., which select a view. */
#include "keys.h"

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
  if (PyLong_CheckExact(object)) return add_number(s, tensor, object);
  PyObject *number = PyNumber_Index(object);
  if (number == NULL && !PyErr_ExceptionMatches(PyExc_TypeError)) return false; /* for instance, computing it failed */
  if (number == NULL) {
    PyErr_Format(PyExc_TypeError, "an index is a number, a slice, None, ... or an array of integers or bool, not %R",
                 (PyObject *)Py_TYPE(object));
    return false;
  }
  bool is_good = add_number(s, tensor, number);
  Py_DECREF(number);
  return is_good;
}

/* The number of axes that the parts from `first` on use. */
static uint32_t axes_after(PyObject *parts, Py_ssize_t first, Py_ssize_t count) {
  uint32_t axes = 0;
  for (Py_ssize_t i = first; i < count; i++) axes += PyTuple_GetItem(parts, i) != Py_None;
  return axes;
}

/* A key that is no tuple is its own only part. */
bool hgpy_read_selection(selection *s, const hg_tensor *tensor, PyObject *key) {
  bool has_ellipsis = false, is_tuple = PyTuple_Check(key);
  Py_ssize_t count = is_tuple ? PyTuple_Size(key) : 1;
  s->count = s->axes = 0;
  for (Py_ssize_t i = 0; i < count; i++) {
    PyObject *part = is_tuple ? PyTuple_GetItem(key, i) : key;
    if (part != Py_Ellipsis) {
      if (!add_part(s, tensor, part)) return false;
      continue;
    }
    if (has_ellipsis) return PyErr_SetString(PyExc_IndexError, "an index can have one ... only"), false;
    has_ellipsis = true;
    uint32_t rest = is_tuple ? axes_after(key, i + 1, count) : 0;
    while (s->axes + rest < tensor->rank)
      if (!add_whole(s, tensor)) return false;
  }
  while (s->axes < tensor->rank)
    if (!add_whole(s, tensor)) return false;
  return true;
}

uint64_t hgpy_place_count(const place *p) {
  if (p->is_new || p->step == 1) return p->is_new ? 1 : (uint64_t)(p->stop - p->start);
  return (uint64_t)(p->step > 0 ? (p->stop - p->start + p->step - 1) / p->step
                                : (p->start - p->stop - p->step - 1) / -p->step);
}

/* The view of elements in memory, made in one step; NULL: they are recorded, there are none, or axes are added. */
static hgpy_node *view_at_once(const hgpy_node *node, const selection *s) {
  hg_tensor tensor = node->tensor;
  tensor.rank = 0;
  if (node->kind != HGPY_DATA || hgpy_tracing > 0 || s->count != s->axes) return NULL;
  for (uint32_t i = 0; i < s->count; i++) {
    const place *p = &s->places[i];
    uint64_t count = hgpy_place_count(p);
    int64_t stride = node->tensor.stride[i];
    if (count == 0) return NULL;
    tensor.offset += p->start * stride;
    if (p->is_dropped) continue;
    tensor.shape[tensor.rank] = count;
    tensor.stride[tensor.rank++] = count > 1 ? p->step * stride : stride;
  }
  return hgpy_node_data(hgpy_storage_retain(node->storage), &tensor);
}

hgpy_node *hgpy_select_from(hgpy_node *node, const selection *s) {
  hgpy_node *view = view_at_once(node, s);
  if (view != NULL || PyErr_Occurred() != NULL) return view;
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
