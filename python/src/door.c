/* door.c - the only way from an array to memory that the host or other libraries can read. */
#include "hgpy.h"

bool hgpy_has_elements(const hgpy_node *node) {
  if (node->storage == NULL || !node->storage->is_blank) return true;
  PyErr_SetString(PyExc_ValueError,
                  "hologram.warm computes nothing, so this array has no elements: a function that is warmed cannot "
                  "read what it computes, nor can anybody afterwards; warm its parts, or call it once instead");
  return false;
}

bool hgpy_is_one(const hgpy_node *node) {
  if (node->examples == 0) return true;
  PyErr_SetString(PyExc_ValueError,
                  "a value is read that is another one for each example of vmap, or the cotangent of a custom_gradient "
                  "(float(x), `if x > 0`, x[mask] and whatever has a size that depends on values read): "
                  "hologram.where(condition, a, b) chooses for each element");
  return false;
}

bool hgpy_expose(hgpy_node *node, hgpy_purpose purpose) {
  if (!hgpy_is_one(node)) return false;
  int depends = purpose == HGPY_AS_MEMORY ? hgpy_depends(node, 0) : 0;
  if (depends > 0)
    PyErr_SetString(PyExc_TypeError,
                    "the memory of an array that a gradient flows through would be given to others, where the gradient "
                    "is lost: hologram.stop_gradient(x) says that it may be");
  return depends == 0 && hgpy_evaluate(&node, 1) && hgpy_has_elements(node);
}
