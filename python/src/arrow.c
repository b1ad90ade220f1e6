/* arrow.c - arrays of Arrow's C data interface, which __arrow_c_array__ returns in two capsules; hologram/_arrow.py
 * interprets them. */
#include "hgpy.h"

/* The layout of the interface, which is fixed. */
typedef struct arrow_schema {
  const char *format, *name, *metadata;
  int64_t flags, child_count;
  struct arrow_schema **children, *dictionary;
  void (*release)(struct arrow_schema *self);
  void *context;
} arrow_schema;

typedef struct arrow_array {
  int64_t length, null_count, offset, buffer_count, child_count;
  const void **buffers;
  struct arrow_array **children, *dictionary;
  void (*release)(struct arrow_array *self);
  void *context;
} arrow_array;

static const char owner_name[] = "hologram.arrow_array";

static void release_array(void *array) {
  arrow_array *own = array;
  if (own->release != NULL) own->release(own);
  PyMem_Free(own);
}

static void release_owner(PyObject *capsule) {
  hgpy_give_back(PyCapsule_GetPointer(capsule, owner_name), release_array);
}

/* Moves the array from its capsule into an object that releases it. */
static PyObject *take_array(arrow_array *array) {
  arrow_array *own = PyMem_Malloc(sizeof *own);
  if (own == NULL) return PyErr_NoMemory();
  *own = (arrow_array){.release = NULL};
  PyObject *owner = PyCapsule_New(own, owner_name, release_owner);
  if (owner == NULL) return PyMem_Free(own), NULL;
  *own = *array;
  array->release = NULL;
  return owner;
}

static const char *refuse(const arrow_schema *schema, const arrow_array *array) {
  if (schema->release == NULL || array->release == NULL) return "it was released, or given to somebody else, already";
  if (schema->format == NULL) return "its format is NULL";
  if (array->length < 0 || array->offset < 0) return "its length or its offset is below 0";
  if (array->buffer_count < 0 || (array->buffer_count > 0 && array->buffers == NULL)) return "its buffers are NULL";
  return NULL;
}

/* read_arrow(schema, array): the owner of the memory, the format, the length, the number of nulls (-1: not counted),
 * the offset, the addresses of the first two buffers and the number of buffers, and whether it has children. */
PyObject *hgpy_read_arrow(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 2 || !PyCapsule_IsValid(values[0], "arrow_schema") || !PyCapsule_IsValid(values[1], "arrow_array"))
    return PyErr_Format(PyExc_TypeError, "__arrow_c_array__ gave no capsules 'arrow_schema' and 'arrow_array'");
  const arrow_schema *schema = PyCapsule_GetPointer(values[0], "arrow_schema");
  arrow_array *array = PyCapsule_GetPointer(values[1], "arrow_array");
  const char *why = refuse(schema, array);
  if (why != NULL) return PyErr_Format(PyExc_BufferError, "an Arrow array that cannot be shared: %s", why);
  const void *buffers[2] = {NULL, NULL};
  for (int64_t i = 0; i < array->buffer_count && i < 2; i++) buffers[i] = array->buffers[i];
  bool has_parts = array->child_count != 0 || array->dictionary != NULL || schema->dictionary != NULL;
  arrow_array told = *array;
  PyObject *owner = take_array(array);
  if (owner == NULL) return NULL;
  return Py_BuildValue("(NsLLLKKLO)", owner, schema->format, (long long)told.length, (long long)told.null_count,
                       (long long)told.offset, (unsigned long long)(uintptr_t)buffers[0],
                       (unsigned long long)(uintptr_t)buffers[1], (long long)told.buffer_count,
                       has_parts ? Py_True : Py_False);
}
