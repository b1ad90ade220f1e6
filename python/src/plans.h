/* plans.h - repeated calls of operations on tensors of another library (plans.c). */
#ifndef HGPY_PLANS_H
#define HGPY_PLANS_H

#include "family.h"

enum { HGPY_FEW_LOANS = 16, HGPY_FEW_WORDS = 192, HGPY_MOST_NAME = 64 };

/* A tensor that is used for the length of a call, and not owned. */
typedef struct hgpy_loan {
  PyObject *object; /* borrowed */
  dl_device place;
  char *first;      /* element 0 */
  hg_tensor tensor; /* without a buffer or an offset */
} hgpy_loan;

/* The key of a call: an operation, or its gradient, and everything else that the executable depends on. */
typedef struct hgpy_question {
  uint32_t row;        /* from HGPY_ROW_COUNT on: a graph of another library */
  hgpy_device *device; /* the device of all loans, referenced; NULL: no loans yet */
  uint32_t loan_count, word_count, most_loans, most_words;
  hgpy_loan *loans;
  uint64_t *words;
  void *room; /* allocated for many loans; NULL: few suffice */
  hgpy_loan few_loans[HGPY_FEW_LOANS];
  uint64_t few_words[HGPY_FEW_WORDS];
} hgpy_question;

/* A result of a graph as the other library expects it: the elements that a computation writes in C order, with other
 * axes. */
typedef struct hgpy_view {
  PyObject *shape, *strides; /* tuples, borrowed; NULL: as it is computed */
} hgpy_view;

typedef struct hgpy_plan hgpy_plan;

/* For an object of the family's type or a derived one. 1; 0: it cannot be lent; -1: raised. (dlpack.c) */
int hgpy_loan_take(PyObject *object, hgpy_family *f, hgpy_loan *loan);
/* Borrowed: `other` if that memory is its, whatever the default executor is now; else the default device of such
 * memory. NULL: raised. (dlpack.c) */
hgpy_device *hgpy_device_beside(dl_device place, hgpy_device *other);
/* The handle of the stream on which a table's library works at a place now. False: raised. (dlpack.c) */
bool hgpy_find_work_stream(const dl_exchange *table, dl_device place, uintptr_t *handle);
/* A storage's memory as an object of the table's type, which then owns it. NULL: raised. (dlpack.c) */
PyObject *hgpy_export_storage(hgpy_storage *storage, const hg_tensor *tensor, const dl_exchange *table);

/* `gradient`: the set of inputs by which the gradient is; 0: the operation itself. */
void hgpy_question_begin(hgpy_question *q, uint32_t row, int numerics, uint64_t gradient);
/* Room for so many values, each a tensor. False: raised. */
bool hgpy_question_expect(hgpy_question *q, Py_ssize_t count);
void hgpy_question_end(hgpy_question *q);
/* False: a call with that value has no plan. Raises nothing. */
bool hgpy_question_add(hgpy_question *q, PyObject *value);
bool hgpy_question_add_names(hgpy_question *q, PyObject *names); /* names of the last values */
/* A tensor of a type of the family. 1: it is a loan; 0: a call with it has no plan; -1: raised. */
int hgpy_question_add_tensor(hgpy_question *q, PyObject *tensor, hgpy_family *f);

/* Makes a plan for a question: results[i] depends on nodes over loans, given[i] is over loan i. NULL: there is none, or
 * raised. */
hgpy_plan *hgpy_plan_make(const hgpy_question *q, hgpy_node *const *given, hgpy_node *const *results, uint32_t count);
/* The same with a view of each result, and an object that the plan keeps. */
hgpy_plan *hgpy_plan_make_with(const hgpy_question *q, hgpy_node *const *given, hgpy_node *const *results,
                               uint32_t count, const hgpy_view *views, PyObject *beside);
PyObject *hgpy_plan_beside(const hgpy_plan *plan); /* borrowed; NULL: none */
hgpy_plan *hgpy_plan_find(const hgpy_question *q); /* NULL: there is none; raises nothing */
/* A tensor of the type, or a tuple of them. NULL with nothing raised: the call must be made in another way. */
PyObject *hgpy_plan_run(hgpy_plan *plan, const hgpy_question *q, PyTypeObject *type);
/* Whether an object's type is one of a tuple of types, of which there is one at least; whether an object is such a
 * tuple. (tensors.c) */
bool hgpy_is_one_of(PyObject *object, PyObject *types);
bool hgpy_are_types(PyObject *object);
/* False in modes in which a call does more than compute its arguments. (tensors.c) */
bool hgpy_can_plan(void);
/* Hands over an array, or a tuple of them, which is one computation. Takes the result. (tensors.c) */
PyObject *hgpy_hand_over(PyObject *result, PyTypeObject *type);
void hgpy_plans_forget(const hgpy_device *device); /* those of the device */

#endif
