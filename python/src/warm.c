/* warm.c - hologram.warm: calls a function without computing. What it evaluates is compiled in full, and results become
 * blank: DATA with a form but no elements, so that the function continues normally. At the end every node and every
 * array is restored. */
#include "graph.h"

/* A node that became blank, and its former state. */
typedef struct blanked {
  hgpy_node *node, before;
} blanked;

/* An array that was given another value, and its former value. */
typedef struct assigned {
  PyObject *array;
  hgpy_node *node;
} assigned;

typedef struct stack {
  char *items;
  size_t count, capacity;
} stack;

/* A call of hologram.warm. Other threads compute normally meanwhile. */
typedef struct warming {
  struct warming *outer;
  uint64_t id;
  unsigned long thread;
  stack nodes, arrays, executables;
  uint64_t kernel_count;
} warming;

static warming *innermost;
uint32_t hgpy_warming_count;

static warming *current(void) {
  unsigned long thread = PyThread_get_thread_ident();
  warming *w = innermost;
  while (w != NULL && w->thread != thread) w = w->outer;
  return w;
}

bool hgpy_is_warming_here(void) { return current() != NULL; }

/* Room for another entry; NULL: raised. */
static void *push(stack *s, size_t bytes) {
  if (s->count == s->capacity) {
    size_t capacity = 2 * s->capacity + 16;
    char *more = PyMem_Realloc(s->items, capacity * bytes);
    if (more == NULL) return PyErr_NoMemory();
    s->items = more;
    s->capacity = capacity;
  }
  return s->items + bytes * s->count++;
}

/* ---- what a warm call changes ------------------------------------------------------------------------------------ */

/* Turns the node into DATA, as a computation would. */
static bool make_blank(warming *w, hgpy_node *node, hgpy_device *device) {
  if (node->kind == HGPY_DATA) return true;
  hg_tensor dense = hg_tensor_of(NULL, (atlas_type)node->tensor.type, node->tensor.rank, node->tensor.shape);
  hgpy_storage *storage = hgpy_storage_blank(device, hg_tensor_count(&dense) * hgpy_type_bytes(dense.type));
  blanked *b = storage != NULL ? push(&w->nodes, sizeof *b) : NULL;
  if (b == NULL) return hgpy_storage_release(storage), false;
  b->node = hgpy_node_retain(node);
  b->before = *node;
  hgpy_leave_call(node);
  if (node->is_kept) node->is_kept = node->kind == HGPY_RESULT ? 2 : 1;
  node->kind = HGPY_DATA;
  node->storage = storage;
  node->tensor = dense;
  if (node->device == NULL) node->device = hgpy_device_retain(device);
  if (node->is_kept) return true;
  node->input_count = node->argument_count = 0;
  node->depth = 0;
  node->inputs = node->few;
  node->arguments = NULL;
  return true;
}

static void restore(blanked *b) {
  hgpy_node *node = b->node;
  const hgpy_node *before = &b->before;
  hgpy_storage *storage = node->storage;
  if (before->device == NULL) hgpy_device_release(node->device);
  node->kind = before->kind, node->is_kept = before->is_kept;
  node->device = before->device, node->storage = before->storage;
  node->input_count = before->input_count, node->depth = before->depth;
  node->inputs = before->inputs;
  node->arguments = before->arguments, node->argument_count = before->argument_count;
  node->tensor = before->tensor;
  hgpy_storage_release(storage);
  if (node->kind == HGPY_RESULT && node->result < node->inputs[0]->result_count)
    node->inputs[0]->results[node->result] = node;
  hgpy_node_release(node);
}

bool hgpy_warm_note(PyObject *array) {
  warming *w = current();
  assigned *a = w != NULL ? push(&w->arrays, sizeof *a) : NULL;
  if (a != NULL) *a = (assigned){Py_NewRef(array), hgpy_node_retain(hgpy_array_node(array))};
  return w == NULL || a != NULL;
}

/* ---- instead of a run -------------------------------------------------------------------------------------------- */

static bool is_known(const warming *w, const hg_executable *executable) {
  hg_executable *const *known = (hg_executable *const *)(const void *)w->executables.items;
  for (size_t i = 0; i < w->executables.count; i++)
    if (known[i] == executable) return true;
  return false;
}

/* Other threads run meanwhile: the caller references the graph's nodes. */
static bool warm_executable(warming *w, hgpy_device *device, hg_executable *executable) {
  uint64_t kernel_count = 0;
  hg_status status;
  if (is_known(w, executable)) return true;
  hg_executable **known = push(&w->executables, sizeof(hg_executable *));
  if (known == NULL) return false;
  *known = hg_executable_retain(executable);
  hgpy_device_retain(device);
  HGPY_BEGIN_CALL
  status = hg_executable_warm(executable, &kernel_count);
  HGPY_END_CALL
  w->kernel_count += kernel_count;
  bool is_good = hgpy_ok(status);
  hgpy_device_release(device);
  return is_good;
}

bool hgpy_warm_graph(const graph *g, hg_executable *executable, bool has_memory) {
  warming *w = current();
  bool is_good = warm_executable(w, g->device, executable);
  for (uint32_t i = 0; is_good && !has_memory && i < g->results.count; i++)
    is_good = make_blank(w, g->results.nodes[i], g->device);
  return is_good;
}

/* ---- beginning and ending ---------------------------------------------------------------------------------------- */

PyObject *hgpy_begin_warm(PyObject *module, PyObject *unused) {
  static uint64_t last;
  (void)module, (void)unused;
  warming *w = PyMem_Calloc(1, sizeof *w);
  if (w == NULL) return PyErr_NoMemory();
  PyObject *number = PyLong_FromUnsignedLongLong(++last);
  if (number == NULL) return PyMem_Free(w), NULL;
  w->id = last;
  w->thread = PyThread_get_thread_ident();
  w->outer = innermost;
  innermost = w;
  hgpy_warming_count++;
  return number;
}

static void end(warming *w) {
  assigned *arrays = (assigned *)(void *)w->arrays.items;
  blanked *nodes = (blanked *)(void *)w->nodes.items;
  hg_executable **executables = (hg_executable **)(void *)w->executables.items;
  for (size_t i = w->arrays.count; i-- > 0;) {
    hgpy_array_put(arrays[i].array, arrays[i].node);
    Py_DECREF(arrays[i].array);
  }
  for (size_t i = w->nodes.count; i-- > 0;) restore(&nodes[i]);
  for (size_t i = 0; i < w->executables.count; i++) hg_executable_release(executables[i]);
  PyMem_Free(arrays), PyMem_Free(nodes), PyMem_Free(executables);
  PyMem_Free(w);
}

/* end_warm(number): (computations, kernels) that are compiled now. */
PyObject *hgpy_end_warm(PyObject *module, PyObject *number) {
  uint64_t id = PyLong_AsUnsignedLongLong(number);
  (void)module;
  if (PyErr_Occurred()) return NULL;
  warming **at = &innermost;
  while (*at != NULL && (*at)->id != id) at = &(*at)->outer;
  warming *w = *at;
  if (w == NULL) return PyErr_Format(PyExc_ValueError, "there is no such call of warm");
  *at = w->outer;
  hgpy_warming_count--;
  unsigned long long computations = w->executables.count, kernels = w->kernel_count;
  end(w);
  return Py_BuildValue("KK", computations, kernels);
}

/* blank(shape, dtype, executor): an array with a form but no elements. */
PyObject *hgpy_blank(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  uint64_t shape[HG_MAX_RANK];
  uint32_t rank;
  (void)module;
  if (count != 3) return PyErr_Format(PyExc_TypeError, "blank takes a shape, a type and an executor or None");
  if (!hgpy_shape_from(values[0], shape, &rank)) return NULL;
  uint32_t type = hgpy_type_from(values[1]);
  if (type == ATLAS_NONE) return NULL;
  hgpy_device *device = values[2] != Py_None ? hgpy_device_of(values[2]) : hgpy_default_device();
  hg_tensor like = hg_tensor_of(NULL, (atlas_type)type, rank, shape);
  hgpy_storage *storage =
      device != NULL ? hgpy_storage_blank(device, hg_tensor_count(&like) * hgpy_type_bytes(type)) : NULL;
  return storage != NULL ? hgpy_array_of(hgpy_node_data(storage, &like)) : NULL;
}
