/* family.h - properties of an array type of another library (family.c). */
#ifndef HGPY_FAMILY_H
#define HGPY_FAMILY_H

#include "hgpy.h" /* must come first, because it includes Python.h */

#include "dlpack.h"

typedef struct hgpy_family {
  PyTypeObject *type;       /* referenced; guarded by the GIL */
  const dl_exchange *table; /* NULL: it has none */
  PyObject *is_negative;    /* PyTorch: asks whether the elements are stored with the opposite sign. NULL: never */
  PyCFunction ask;          /* the same without the cost of a Python call. NULL: unknown */
  bool asks_another;        /* attributes may come from another object */
  bool is_own_table;        /* defined by the type itself: a derived type may mean something else */
  PyObject *requires_grad;  /* PyTorch: the type's attribute of that name; NULL: none */
  descrgetfunc get;         /* its C getter, which no object can override; NULL: it has none */
} hgpy_family;

/* Caches the last few. Raises nothing. */
hgpy_family *hgpy_family_of(PyTypeObject *type);
/* For an object of the family's type or a derived one; -1: raised. May run Python, after which `f` may hold another
 * family. */
int hgpy_is_negative(hgpy_family *f, PyObject *object);
/* 1 if an object of the type takes part in gradients; -1: raised. */
int hgpy_requires_grad(const hgpy_family *f, PyObject *object);

#endif
