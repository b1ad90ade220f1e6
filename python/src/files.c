/* files.c - arrays from files and to files: .npy holds one, .safetensors any number by their names. */
#include "hgpy.h"

/* ---- names of files ---------------------------------------------------------------------------------------------- */

typedef enum format { FORMAT_NONE, FORMAT_NPY, FORMAT_SAFETENSORS } format;

static bool ends_in(const char *path, const char *suffix) {
  size_t length = strlen(path), wanted = strlen(suffix);
  return length > wanted && strcmp(path + length - wanted, suffix) == 0;
}

/* `bytes`: a new reference, which holds the path. FORMAT_NONE: raised. */
static format format_of(PyObject *path, PyObject **bytes, const char **text) {
  *bytes = NULL;
  if (!PyUnicode_FSConverter(path, bytes)) return FORMAT_NONE;
  *text = PyBytes_AsString(*bytes);
  if (*text != NULL && ends_in(*text, ".npy")) return FORMAT_NPY;
  if (*text != NULL && ends_in(*text, ".safetensors")) return FORMAT_SAFETENSORS;
  PyErr_Format(PyExc_ValueError, "%R: the name of a file of arrays ends in .npy or .safetensors", path);
  Py_CLEAR(*bytes);
  return FORMAT_NONE;
}

/* ---- loading ----------------------------------------------------------------------------------------------------- */

/* Takes a buffer of the caller's. */
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

static PyObject *load_many(hgpy_device *device, const char *path) {
  hg_tensors *tensors = NULL;
  hg_status status;
  HGPY_BEGIN_CALL
  status = hg_tensors_load(device->executor, path, &tensors);
  HGPY_END_CALL
  PyObject *arrays = hgpy_ok(status) ? PyDict_New() : NULL;
  for (size_t i = 0; arrays != NULL && i < hg_tensors_count(tensors); i++)
    if (!put_array(arrays, device, tensors, i)) Py_CLEAR(arrays);
  hg_tensors_release(tensors);
  return arrays;
}

PyObject *hgpy_load(PyObject *module, PyObject *arguments, PyObject *names) {
  static char *keywords[] = {"", "device", NULL};
  PyObject *path, *executor = Py_None, *bytes, *result = NULL;
  const char *text;
  (void)module;
  if (!PyArg_ParseTupleAndKeywords(arguments, names, "O|$O:load", keywords, &path, &executor)) return NULL;
  format kind = format_of(path, &bytes, &text);
  if (kind == FORMAT_NONE) return NULL;
  hgpy_device *device = executor != Py_None ? hgpy_device_of(executor) : hgpy_default_device();
  if (device != NULL) {
    device = hgpy_device_retain(device);
    result = kind == FORMAT_NPY ? load_one(device, text) : load_many(device, text);
    hgpy_device_release(device);
  }
  Py_DECREF(bytes);
  return result;
}

/* ---- saving ------------------------------------------------------------------------------------------------------ */

/* Arrays whose memory the host reads. */
typedef struct saved {
  size_t count;
  PyObject **names;     /* str; held. NULL: one without a name */
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

/* What is on a GPU is copied first. */
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
  PyObject *copy = PyDict_Copy(value); /* what is not computed yet may run code of Python, which changes it */
  bool is_good = copy != NULL && make_room(s, (size_t)PyDict_Size(copy), true);
  while (is_good && PyDict_Next(copy, &at, &name, &object)) is_good = add_named(s, name, object);
  Py_XDECREF(copy);
  return is_good;
}

static bool save_to(const saved *s, const char *path) {
  hg_status status;
  HGPY_BEGIN_CALL
  status = s->names != NULL ? hg_tensors_save(s->texts, s->tensors, s->count, path)
                            : hg_tensor_save(&s->tensors[0], path);
  HGPY_END_CALL
  return hgpy_ok(status);
}

PyObject *hgpy_save(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  PyObject *bytes;
  const char *path;
  saved s = {.count = 0};
  (void)module;
  if (count != 2)
    return PyErr_Format(PyExc_TypeError, "save takes a path and an array or a dict, not %zd values", count);
  format kind = format_of(values[0], &bytes, &path);
  if (kind == FORMAT_NONE) return NULL;
  bool is_named = PyDict_Check(values[1]), is_saved = false;
  if (is_named != (kind == FORMAT_SAFETENSORS))
    PyErr_Format(PyExc_TypeError,
                 is_named ? "%R: .npy holds one array; a dict of them goes into .safetensors"
                          : "%R: .safetensors holds a dict of names and arrays; one array goes into .npy",
                 values[0]);
  else is_saved = (is_named ? add_all(&s, values[1]) : make_room(&s, 1, false) && add_array(&s, values[1])) &&
                  save_to(&s, path);
  release_saved(&s);
  Py_DECREF(bytes);
  return is_saved ? Py_NewRef(Py_None) : NULL;
}
