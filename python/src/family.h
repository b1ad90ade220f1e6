/* family.h - what a type of arrays of others has (family.c). */
#ifndef HGPY_FAMILY_H
#define HGPY_FAMILY_H

#include "hgpy.h" /* first, as Python.h has to be */

#include "dlpack.h"

typedef struct hgpy_family {
  PyTypeObject *type;       /* kept alive; under the GIL */
  const dl_exchange *table; /* NULL: it has none */
  PyObject *is_negative;    /* of PyTorch: whether the memory has the elements with the other sign. NULL: never */
  PyCFunction ask;          /* the same, called without what a call from Python costs. NULL: not known */
  bool asks_another;        /* attributes may be those of another object */
  bool is_own_table;        /* the type's own, not inherited: what is derived from it may mean something else */
  PyObject *requires_grad;  /* of PyTorch: what the type has by that name; NULL: nothing */
  descrgetfunc get;         /* its function, where it is in C, so that no object has another; NULL: it is not */
} hgpy_family;

/* The last few are remembered. Nothing is raised. */
hgpy_family *hgpy_family_of(PyTypeObject *type);
/* Of an object of the family's type, or one derived from it; -1: raised. Python may run, and another family stand at
 * `f` afterwards. */
int hgpy_is_negative(hgpy_family *f, PyObject *object);
/* Whether an object of the type has gradients that it is the leaf of, or part of; -1: raised. */
int hgpy_requires_grad(const hgpy_family *f, PyObject *object);

#endif
