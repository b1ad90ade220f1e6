/* files.c - loads and saves arrays: .npy holds one, .safetensors any number by name. */
#include "hgpy.h"

/* A new reference, which keeps `path` alive; NULL: raised. */
static PyObject *path_of(PyObject *object, const char **path) {
  PyObject *bytes = NULL;
  if (!PyUnicode_FSConverter(object, &bytes)) return NULL;
  *path = PyBytes_AsString(bytes);
  return bytes;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Takes over the caller's buffer. */
static PyObject *array_over(hgpy_device *device, hg_tensor *tensor) {
  hgpy_storage *storage = hgpy_storage_of(device, tensor->buffer);
  tensor->buffer = NULL;
  return storage != NULL ? hgpy_array_of(hgpy_node_data(storage, tensor)) : NULL;
}

static PyObject *load_one(hgpy_device *device, const char *path) {
  hg_tensor tensor;
  hg_status status;
  HGPY_BEGIN_CALL
  status = hg_tensor_load(device->executor, path, &tensor);
  HGPY_END_CALL
  return hgpy_ok(status) ? array_over(device, &tensor) : NULL;
}

static bool put_array(PyObject *arrays, hgpy_device *device, const hg_tensors *tensors, size_t i) {
  hg_tensor tensor = *hg_tensors_at(tensors, i);
  PyObject *name = PyUnicode_FromString(hg_tensors_name(tensors, i));
  hg_buffer_retain(tensor.buffer);
  PyObject *array = array_over(device, &tensor);
  bool is_put = name != NULL && array != NULL && PyDict_SetItem(arrays, name, array) == 0;
  Py_XDECREF(name);
  Py_XDECREF(array);
  return is_put;
}

static PyObject *texts_of(const hg_tensors *tensors) {
  PyObject *texts = PyDict_New();
  const char *key;
  for (size_t i = 0; texts != NULL && (key = hg_tensors_text(tensors, i)) != NULL; i += 2) {
    PyObject *text = PyUnicode_FromString(hg_tensors_text(tensors, i + 1));
    if (text == NULL || PyDict_SetItemString(texts, key, text) != 0) Py_CLEAR(texts);
    Py_XDECREF(text);
  }
  return texts;
}

/* (arrays by name, texts by key) */
static PyObject *load_many(hgpy_device *device, const char *path) {
  hg_tensors *tensors = NULL;
  hg_status status;
  HGPY_BEGIN_CALL
  status = hg_tensors_load(device->executor, path, &tensors);
  HGPY_END_CALL
  if (!hgpy_ok(status)) return NULL;
  PyObject *arrays = PyDict_New(), *texts = texts_of(tensors), *pair = NULL;
  for (size_t i = 0; arrays != NULL && i < hg_tensors_count(tensors); i++)
    if (!put_array(arrays, device, tensors, i)) Py_CLEAR(arrays);
  if (arrays != NULL && texts != NULL) pair = PyTuple_Pack(2, arrays, texts);
  Py_XDECREF(arrays);
  Py_XDECREF(texts);
  hg_tensors_release(tensors);
  return pair;
}

static PyObject *load(PyObject *const *values, Py_ssize_t count, PyObject *(*of)(hgpy_device *, const char *)) {
  const char *path;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "load takes a path and an executor or None");
  PyObject *bytes = path_of(values[0], &path), *result = NULL;
  if (bytes == NULL) return NULL;
  hgpy_device *device = values[1] != Py_None ? hgpy_device_of(values[1]) : hgpy_default_device();
  if (device != NULL) {
    device = hgpy_device_retain(device);
    result = of(device, path);
    hgpy_device_release(device);
  }
  Py_DECREF(bytes);
  return result;
}

/* load_npy(path, executor or None) */
PyObject *hgpy_load_npy(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  return load(values, count, load_one);
}

/* load_safetensors(path, executor or None): (arrays by name, texts by key) */
PyObject *hgpy_load_safetensors(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  return load(values, count, load_many);
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* Arrays in memory that the host can read. */
typedef struct saved {
  size_t count;
  PyObject **names;     /* str, referenced; NULL: a single array without a name */
  const char **texts;
  hgpy_node **nodes;
  hg_tensor *tensors;
} saved;

static void release_saved(saved *s) {
  for (size_t i = 0; i < s->count; i++) {
    if (s->names != NULL) Py_XDECREF(s->names[i]);
    if (s->nodes[i] != NULL) hgpy_node_release(s->nodes[i]);
  }
  PyMem_Free(s->names);
  PyMem_Free((void *)s->texts);
  PyMem_Free(s->nodes);
  PyMem_Free(s->tensors);
}

static bool make_room(saved *s, size_t room, bool has_names) {
  s->nodes = PyMem_Calloc(room + 1, sizeof(void *));
  s->tensors = PyMem_Calloc(room + 1, sizeof *s->tensors);
  if (has_names) {
    s->names = PyMem_Calloc(room + 1, sizeof(void *));
    s->texts = PyMem_Calloc(room + 1, sizeof *s->texts);
  }
  if (s->nodes != NULL && s->tensors != NULL && (!has_names || (s->names != NULL && s->texts != NULL))) return true;
  PyErr_NoMemory();
  return false;
}

/* Copies arrays from a GPU first. */
static bool add_array(saved *s, PyObject *object) {
  PyObject *array = hgpy_asarray(object);
  if (array == NULL) return false;
  hgpy_node *node = hgpy_node_retain(hgpy_array_node(array));
  Py_DECREF(array);
  if (hgpy_expose(node, HGPY_AS_MEMORY) && node->device != NULL && node->device->stream != NULL) {
    hgpy_device *host = hgpy_device_at(HG_BACKEND_CPU, 0);
    hgpy_node *copy = host != NULL ? hgpy_node_on(node, host) : NULL;
    hgpy_node_release(node);
    if (copy == NULL) return false;
    node = copy;
    (void)hgpy_evaluate(&node, 1);
  }
  size_t i = s->count++;
  s->nodes[i] = node;
  if (PyErr_Occurred()) return false;
  s->tensors[i] = node->tensor;
  s->tensors[i].buffer = node->storage->buffer;
  return true;
}

static bool add_named(saved *s, PyObject *name, PyObject *object) {
  if (!PyUnicode_Check(name)) {
    PyErr_Format(PyExc_TypeError, "save: names of arrays are of type str, not %R", name);
    return false;
  }
  Py_ssize_t length = 0;
  const char *text = PyUnicode_AsUTF8AndSize(name, &length);
  if (text == NULL || !add_array(s, object)) return false;
  if (strlen(text) != (size_t)length) {
    PyErr_Format(PyExc_ValueError, "save: the name %R has a character of code 0", name);
    return false;
  }
  s->names[s->count - 1] = Py_NewRef(name);
  s->texts[s->count - 1] = text;
  return true;
}

static bool add_all(saved *s, PyObject *value) {
  PyObject *name, *object;
  Py_ssize_t at = 0;
  PyObject *copy = PyDict_Copy(value); /* computing pending arrays may run Python code, which may change it */
  bool is_good = copy != NULL && make_room(s, (size_t)PyDict_Size(copy), true);
  while (is_good && PyDict_Next(copy, &at, &name, &object)) is_good = add_named(s, name, object);
  Py_XDECREF(copy);
  return is_good;
}

/* Keys and texts in turn, kept alive by `dict`; NULL: raised. */
static const char **texts_in(PyObject *dict) {
  PyObject *key, *text;
  Py_ssize_t at = 0, i = 0;
  const char **texts = PyMem_Calloc(2 * (size_t)PyDict_Size(dict) + 1, sizeof *texts);
  if (texts == NULL) PyErr_NoMemory();
  while (texts != NULL && PyDict_Next(dict, &at, &key, &text)) {
    texts[i++] = PyUnicode_AsUTF8AndSize(key, NULL);
    texts[i++] = PyUnicode_AsUTF8AndSize(text, NULL);
    if (texts[i - 2] != NULL && texts[i - 1] != NULL) continue;
    PyMem_Free((void *)texts);
    texts = NULL;
  }
  return texts;
}

/* save_npy(path, array) */
PyObject *hgpy_save_npy(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  saved s = {.count = 0};
  const char *path;
  (void)module;
  if (count != 2) return PyErr_Format(PyExc_TypeError, "save_npy takes a path and an array");
  PyObject *bytes = path_of(values[0], &path);
  bool is_good = bytes != NULL && make_room(&s, 1, false) && add_array(&s, values[1]);
  if (is_good) {
    hg_status status;
    HGPY_BEGIN_CALL
    status = hg_tensor_save(&s.tensors[0], path);
    HGPY_END_CALL
    is_good = hgpy_ok(status);
  }
  release_saved(&s);
  Py_XDECREF(bytes);
  return is_good ? Py_NewRef(Py_None) : NULL;
}

/* save_safetensors(path, arrays by name, texts by key) */
PyObject *hgpy_save_safetensors(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  saved s = {.count = 0};
  const char *path, **texts = NULL;
  (void)module;
  if (count != 3 || !PyDict_Check(values[1]) || !PyDict_Check(values[2]))
    return PyErr_Format(PyExc_TypeError, "save_safetensors takes a path, a dict of arrays and a dict of texts");
  PyObject *bytes = path_of(values[0], &path);
  bool is_good = bytes != NULL && add_all(&s, values[1]) && (texts = texts_in(values[2])) != NULL;
  if (is_good) {
    hg_status status;
    HGPY_BEGIN_CALL
    status = hg_tensors_save_texts(s.texts, s.tensors, s.count, texts, (size_t)PyDict_Size(values[2]), path);
    HGPY_END_CALL
    is_good = hgpy_ok(status);
  }
  release_saved(&s);
  PyMem_Free((void *)texts);
  Py_XDECREF(bytes);
  return is_good ? Py_NewRef(Py_None) : NULL;
}
