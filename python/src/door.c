/* door.c - the one way from an array to memory of the host, or of others. */
#include "hgpy.h"

bool hgpy_expose(hgpy_node *node, hgpy_purpose purpose) {
  int depends = purpose == HGPY_AS_MEMORY ? hgpy_depends(node, 0) : 0;
  if (depends > 0)
    PyErr_SetString(PyExc_TypeError,
                    "the memory of an array that a gradient flows through would be given to others, where the gradient "
                    "is lost: hologram.stop_gradient(x) says that it may be");
  return depends == 0 && hgpy_evaluate(&node, 1);
}
