/* keys.h - the selection of a key of numbers, slices, None and ... (keys.c), for x[...] and x[...] = value. */
#ifndef HGPY_KEYS_H
#define HGPY_KEYS_H

#include "hgpy.h"

typedef struct place {
  int64_t start, stop, step; /* of an axis of the array */
  bool is_dropped, is_new;   /* dropped by a number; added by None */
} place;

typedef struct selection {
  place places[2 * HG_MAX_RANK];
  uint32_t count, axes; /* the number of entries; of those that are axes of the array */
} selection;

uint64_t hgpy_place_count(const place *p);
/* False: raised. */
bool hgpy_read_selection(selection *s, const hg_tensor *tensor, PyObject *key);
/* The view of a node: a new reference. */
hgpy_node *hgpy_select_from(hgpy_node *node, const selection *s);
/* 1 if arrays, masks or lists are among its parts, which hologram._index handles (index.c). */
bool hgpy_is_by_places(PyObject *key);
/* After work on a key that was recorded as one computation (index.c): computes the array if everything is eager. Takes
 * it; NULL: raised, or it was NULL. */
PyObject *hgpy_settled(PyObject *array);
/* What is assigned to elements of an array (assign.c), as a node of its type, and then of their shape. NULL: raised. */
hgpy_node *hgpy_value_for(PyObject *self, PyObject *value);
hgpy_node *hgpy_value_fit(hgpy_node *value, uint32_t rank, const uint64_t *shape);

#endif
