/* sdk.c - frequent calls of hologram.ops: an element-wise operation of the table on buffers, on a direct path. */
#include "hgpy.h"

enum { MOST_INPUTS = 3 };

/* Describes the first `count` elements; leaves the unused dimensions uninitialised. */
static void set_tensor(hg_tensor *tensor, const hgpy_buffer *buffer, uint64_t count) {
  tensor->buffer = buffer->storage->buffer;
  tensor->type = buffer->type;
  tensor->rank = 1;
  tensor->offset = 0;
  tensor->shape[0] = count;
  tensor->stride[0] = 1;
}

static PyObject *fail_count(const char *name, Py_ssize_t given, uint32_t buffers) {
  return PyErr_Format(PyExc_TypeError,
                      "%s takes an executor, %u buffers and perhaps how many elements; %zd arguments are given", name,
                      (unsigned)buffers, given);
}

static PyObject *fail_length(const char *name, uint64_t count, const hgpy_buffer *buffer, uint32_t i) {
  return PyErr_Format(PyExc_ValueError, "%s: %llu elements are asked for; buffer number %u has %llu", name,
                      (unsigned long long)count, (unsigned)i + 1, (unsigned long long)buffer->count);
}

static PyObject *fail_device(const char *name, uint32_t i) {
  return PyErr_Format(PyExc_ValueError, "%s: buffer number %u belongs to another executor", name, (unsigned)i + 1);
}

enum { SMALL_COUNT = 65536, LARGE_COUNT = 1 << 21 };

static bool apply(hg_op op, PyObject *const *buffers, const hg_tensor *tensors, uint32_t input_count, uint64_t count,
                  hgpy_device *device) {
  hgpy_storage *storages[MOST_INPUTS + 1];
  hg_status status;
  if (count < SMALL_COUNT)
    return hgpy_ok(hg_apply(op, tensors, input_count, NULL, 0, tensors + input_count, 1, device->stream));
  for (uint32_t i = 0; i <= input_count; i++)
    storages[i] = hgpy_storage_retain(((hgpy_buffer *)buffers[i])->storage);
  hgpy_device_retain(device);
  hg_stream *queue = device->stream == NULL && count >= LARGE_COUNT ? hgpy_queue_take(device) : NULL;
  hg_stream *stream = queue != NULL ? queue : device->stream;
  HGPY_BEGIN_CALL
  status = hg_apply(op, tensors, input_count, NULL, 0, tensors + input_count, 1, stream);
  HGPY_END_CALL
  bool is_good =
      queue != NULL ? hgpy_queue_wait(device, queue, status, storages, input_count + 1) : hgpy_ok(status);
  for (uint32_t i = 0; i <= input_count; i++) hgpy_storage_release(storages[i]);
  hgpy_device_release(device);
  return is_good;
}

/* op(executor, inputs..., output, n=None) */
static PyObject *call(uint32_t row, const char *name, uint32_t input_count, PyObject *const *values, Py_ssize_t given) {
  uint32_t buffers = input_count + 1;
  hg_tensor tensors[MOST_INPUTS + 1];
  hgpy_buffer *buffer = NULL;
  long long count = -1;
  if (given != (Py_ssize_t)buffers + 1 && given != (Py_ssize_t)buffers + 2) return fail_count(name, given, buffers);
  hgpy_device *device = hgpy_device_of(values[0]);
  if (device == NULL) return NULL;
  if (given == (Py_ssize_t)buffers + 2 && values[buffers + 1] != Py_None) {
    count = PyLong_AsLongLong(values[buffers + 1]);
    if (count == -1 && PyErr_Occurred()) return NULL;
    if (count < 0) return PyErr_Format(PyExc_ValueError, "%s: %lld elements are asked for", name, count);
  }
  bool is_whole = count < 0;
  for (uint32_t i = 0; i < buffers; i++) {
    buffer = hgpy_buffer_check(values[i + 1], name);
    if (buffer == NULL) return NULL;
    if (buffer->storage->device != device) return fail_device(name, i);
    if (count < 0) count = (long long)buffer->count;
    if (is_whole ? (uint64_t)count != buffer->count : (uint64_t)count > buffer->count)
      return fail_length(name, (uint64_t)count, buffer, i);
    set_tensor(&tensors[i], buffer, (uint64_t)count);
  }
  if (buffer->storage->is_read_only)
    return PyErr_Format(PyExc_ValueError, "%s: the output's memory is read-only", name);
  if (!apply(hgpy_row_op(row), values + 1, tensors, input_count, (uint64_t)count, device)) return NULL;
  Py_RETURN_NONE;
}

#define SDK_ROWS                                                                                                       \
  SDK(vector_add, add, 2, "a, b, c", "c = a + b")                                                                      \
  SDK(vector_sub, sub, 2, "a, b, c", "c = a - b")                                                                      \
  SDK(vector_mul, mul, 2, "a, b, c", "c = a * b")                                                                      \
  SDK(vector_div, div, 2, "a, b, c", "c = a / b")                                                                      \
  SDK(vector_min, minimum, 2, "a, b, c", "c = the smaller of a and b")                                                 \
  SDK(vector_max, maximum, 2, "a, b, c", "c = the larger of a and b")                                                  \
  SDK(vector_abs, abs, 1, "x, y", "y = |x|")                                                                           \
  SDK(vector_neg, neg, 1, "x, y", "y = -x")                                                                            \
  SDK(vector_relu, relu, 1, "x, y", "y = max(x, 0)")                                                                   \
  SDK(vector_sqrt, sqrt, 1, "x, y", "y = the square root of x")                                                        \
  SDK(vector_exp, exp, 1, "x, y", "y = e to the x")                                                                    \
  SDK(vector_log, log, 1, "x, y", "y = log(x)")                                                                        \
  SDK(relu, relu, 1, "x, y", "y = max(x, 0)")                                                                          \
  SDK(sigmoid, sigmoid, 1, "x, y", "y = 1 / (1 + e^-x)")                                                               \
  SDK(tanh, tanh, 1, "x, y", "y = tanh(x)")                                                                            \
  SDK(gelu, gelu, 1, "x, y", "y = x * Phi(x)")                                                                         \
  SDK(mad, mad, 3, "a, b, c, d", "d = a * b + c")

#define SDK(name, row, inputs, signature, meaning)                                                                     \
  static PyObject *sdk_##name(PyObject *module, PyObject *const *values, Py_ssize_t count) {                           \
    (void)module;                                                                                                      \
    return call(HGPY_ROW_##row, #name, inputs, values, count);                                                         \
  }
SDK_ROWS
#undef SDK

static PyMethodDef functions[] = {
#define SDK(name, row, inputs, signature, meaning)                                                                     \
  {#name, (PyCFunction)(void *)sdk_##name, METH_FASTCALL,                                                              \
   #name "(executor, " signature ", n=None, /)\n--\n\n" meaning ", of the first n elements; all where n is None."},
    SDK_ROWS
#undef SDK
    {NULL, NULL, 0, NULL},
};

int hgpy_sdk_add(PyObject *module) {
  PyObject *ops = PyModule_New("hologram._core._ops");
  int status = ops != NULL ? PyModule_AddFunctions(ops, functions) : -1;
  if (status == 0) status = PyModule_AddObjectRef(module, "_ops", ops);
  Py_XDECREF(ops);
  return status;
}
