/* tensors.c - functions of arrays on tensors of another library, by the exchange table of their type. Arguments are
 * borrowed for the call, results are handed over, and operations of the table call no Python in between. Types are a
 * tuple of one family; results are of the first. A repeated call is found by its arguments (plans.c): then no arrays
 * are made, and nothing is recorded. */
#include "plans.h"

enum { MOST_VALUES = 16 };

/* ---- arguments --------------------------------------------------------------------------------------------------- */

bool hgpy_is_one_of(PyObject *object, PyObject *types) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(types); i++)
    if ((PyObject *)Py_TYPE(object) == PyTuple_GetItem(types, i)) return true;
  return false;
}

static PyTypeObject *first_of(PyObject *types) { return (PyTypeObject *)PyTuple_GetItem(types, 0); }

bool hgpy_are_types(PyObject *object) {
  return PyTuple_Check(object) && PyTuple_Size(object) > 0 && PyType_Check(PyTuple_GetItem(object, 0));
}

static void drop_all(PyObject **own, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(own[i]);
}

/* ---- results ----------------------------------------------------------------------------------------------------- */

static bool are_arrays(PyObject *tuple) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++)
    if (!hgpy_is_array(PyTuple_GetItem(tuple, i))) return false;
  return true;
}

/* Computes all arrays as one computation. */
static bool compute_all(PyObject *arrays) {
  Py_ssize_t count = PyTuple_Size(arrays);
  hgpy_node **nodes = PyMem_Malloc((size_t)(count + 1) * sizeof(hgpy_node *));
  if (nodes == NULL) return PyErr_NoMemory(), false;
  for (Py_ssize_t i = 0; i < count; i++) nodes[i] = hgpy_array_node(PyTuple_GetItem(arrays, i));
  bool is_good = hgpy_evaluate(nodes, (uint32_t)count);
  PyMem_Free(nodes);
  return is_good;
}

/* Hands over an array, or a tuple of them, which is one computation. Takes the result. */
PyObject *hgpy_hand_over(PyObject *result, PyTypeObject *type) {
  PyObject *tensors = NULL;
  if (result != NULL && hgpy_is_array(result)) tensors = hgpy_export_by_table(result, type, true);
  else if (result != NULL && PyTuple_Check(result) && are_arrays(result)) {
    if (compute_all(result)) tensors = PyTuple_New(PyTuple_Size(result));
    for (Py_ssize_t i = 0; tensors != NULL && i < PyTuple_Size(result); i++) {
      PyObject *tensor = hgpy_export_by_table(PyTuple_GetItem(result, i), type, true);
      if (tensor == NULL || PyTuple_SetItem(tensors, i, tensor) < 0) Py_CLEAR(tensors);
    }
  } else if (result != NULL)
    PyErr_Format(PyExc_TypeError, "a function of arrays gives arrays, not %R", (PyObject *)Py_TYPE(result));
  Py_XDECREF(result);
  return tensors;
}

/* ---- a function of Python ---------------------------------------------------------------------------------------- */

/* run_on_tensors(function, tensors, types): the result of the function on arrays over the tensors' memory. None: there
 * are no tensors, or one has no such type, or is not in memory of the CPU. */
PyObject *hgpy_run_on_tensors(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 3 || !PyTuple_Check(values[1]) || !hgpy_are_types(values[2]))
    return PyErr_Format(PyExc_TypeError, "run_on_tensors takes a function, a tuple of tensors and one of types");
  Py_ssize_t tensors = PyTuple_Size(values[1]);
  bool are_known = tensors > 0;
  for (Py_ssize_t i = 0; i < tensors; i++)
    are_known = are_known && hgpy_is_one_of(PyTuple_GetItem(values[1], i), values[2]);
  if (!are_known) Py_RETURN_NONE;
  PyObject *arrays = PyTuple_New(tensors);
  hgpy_device *device = NULL; /* the device of the first array, which holds it */
  for (Py_ssize_t i = 0; arrays != NULL && i < tensors; i++) {
    PyObject *array = hgpy_borrow_by_table(PyTuple_GetItem(values[1], i), first_of(values[2]), device);
    if (array != NULL && device == NULL) device = hgpy_array_node(array)->device;
    if (array == NULL || PyTuple_SetItem(arrays, i, array) < 0) Py_CLEAR(arrays);
  }
  if (arrays == NULL) return PyErr_Occurred() != NULL ? NULL : Py_NewRef(Py_None);
  PyObject *result = hgpy_hand_over(PyObject_Call(values[0], arrays, NULL), first_of(values[2]));
  Py_DECREF(arrays);
  return result;
}

/* ---- an operation of the table ----------------------------------------------------------------------------------- */

typedef struct on_tensors {
  PyObject_HEAD
  uint32_t row;
  PyObject *types;
  PyObject *is_followed; /* is_followed(): whether gradients are recorded for tensors that ask for them */
  PyObject *follow;      /* follow(self, names, *values): the call as a function of the library, with its gradient */
  PyObject *otherwise;   /* takes the same arguments, for calls that are not made here */
} on_tensors;

static PyTypeObject *on_tensors_type;
static PyObject *name_call, *name_to_save, *name_saved, *name_needs; /* names of attributes */

/* -1: raised. */
static int asks_for_gradient(const on_tensors *f, PyObject *tensor) {
  int answer = hgpy_requires_grad(hgpy_family_of(Py_TYPE(tensor)), tensor);
  if (answer <= 0) return answer;
  PyObject *follows = PyObject_CallNoArgs(f->is_followed);
  answer = follows != NULL ? follows == Py_True : -1;
  Py_XDECREF(follows);
  return answer;
}

/* How a call is made: here, elsewhere, or by follow(). */
typedef enum way { RAISED = -1, ELSEWHERE, HERE, FOLLOWED } way;

static way find_way(const on_tensors *f, PyObject *const *values, Py_ssize_t total) {
  way found = ELSEWHERE;
  for (Py_ssize_t i = 0; i < total; i++) {
    if (!hgpy_is_one_of(values[i], f->types)) {
      if (PyType_IsSubtype(Py_TYPE(values[i]), first_of(f->types))) return ELSEWHERE; /* its behaviour is unknown */
      continue;
    }
    int asks = found != FOLLOWED ? asks_for_gradient(f, values[i]) : 1;
    if (asks < 0) return RAISED;
    found = asks > 0 ? FOLLOWED : HERE;
  }
  return found;
}

/* 0 in modes in which a call does more than compute its arguments. */
bool hgpy_can_plan(void) { return !hgpy_is_eager && !hgpy_is_strict && hgpy_tracing == 0 && !hgpy_is_warming(); }

/* 1: the question for the values and the names of the last of them; 0: there is none; -1: raised. A tensor that is no
 * operand is a number, an axis or the like: the executable depends on its elements. */
static int ask(const on_tensors *f, PyObject *const *values, Py_ssize_t total, PyObject *names, hgpy_question *q) {
  Py_ssize_t count = total - (names != NULL ? PyTuple_Size(names) : 0);
  if (!hgpy_can_plan()) return 0;
  for (Py_ssize_t i = 0; i < total; i++) {
    bool is_tensor = hgpy_is_one_of(values[i], f->types);
    if (is_tensor && !hgpy_row_is_input(f->row, i, i < count ? NULL : PyTuple_GetItem(names, i - count))) return 0;
    int is_good = is_tensor ? hgpy_question_add_tensor(q, values[i], hgpy_family_of(first_of(f->types)))
                            : hgpy_question_add(q, values[i]);
    if (is_good <= 0) return is_good;
  }
  if (names != NULL && !hgpy_question_add_names(q, names)) return 0;
  return q->device != NULL;
}

/* Arrays over the tensors, all new references, on the device, or, if it is NULL, on the first one found. 0: the call is
 * not made here; -1: raised. */
static int borrow_all(const on_tensors *f, PyObject *const *values, Py_ssize_t total, hgpy_device *device,
                      PyObject **own) {
  for (Py_ssize_t i = 0; i < total; i++) {
    bool is_tensor = hgpy_is_one_of(values[i], f->types);
    own[i] = is_tensor ? hgpy_borrow_by_table(values[i], first_of(f->types), device) : Py_NewRef(values[i]);
    if (own[i] != NULL) {
      if (is_tensor && device == NULL) device = hgpy_array_node(own[i])->device;
      continue;
    }
    drop_all(own, i);
    return PyErr_Occurred() != NULL ? -1 : 0;
  }
  return 1;
}

/* The nodes of the values that are tensors. */
static void find_given(const on_tensors *f, PyObject *const *values, Py_ssize_t total, PyObject *const *own,
                       hgpy_node **given) {
  for (Py_ssize_t i = 0; i < total; i++)
    if (hgpy_is_one_of(values[i], f->types)) *given++ = hgpy_array_node(own[i]);
}

static hgpy_plan *make_plan(const hgpy_question *q, hgpy_node *const *given, PyObject *result) {
  hgpy_node *results[HGPY_MOST_RESULTS];
  Py_ssize_t count = PyTuple_Check(result) ? PyTuple_Size(result) : 1;
  if (count > HGPY_MOST_RESULTS || (PyTuple_Check(result) ? !are_arrays(result) : !hgpy_is_array(result))) return NULL;
  for (Py_ssize_t i = 0; i < count; i++)
    results[i] = hgpy_array_node(PyTuple_Check(result) ? PyTuple_GetItem(result, i) : result);
  return hgpy_plan_make(q, given, results, (uint32_t)count);
}

static bool names_executor(PyObject *const *values, Py_ssize_t count, PyObject *names) {
  if (count > 0 && hgpy_is_executor(values[0])) return true;
  for (Py_ssize_t i = 0; names != NULL && i < PyTuple_Size(names); i++)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, i), "executor") == 0) return true;
  return false;
}

static PyObject *call_otherwise(const on_tensors *f, PyObject *const *values, Py_ssize_t count, PyObject *names) {
  PyObject *tuple = PyTuple_New(count), *named = NULL, *result = NULL;
  for (Py_ssize_t i = 0; tuple != NULL && i < count; i++)
    if (PyTuple_SetItem(tuple, i, Py_NewRef(values[i])) < 0) Py_CLEAR(tuple);
  bool is_good = tuple != NULL;
  if (is_good && names != NULL) is_good = (named = PyDict_New()) != NULL;
  for (Py_ssize_t i = 0; is_good && names != NULL && i < PyTuple_Size(names); i++)
    is_good = PyDict_SetItem(named, PyTuple_GetItem(names, i), values[count + i]) == 0;
  if (is_good) result = PyObject_Call(f->otherwise, tuple, named);
  Py_XDECREF(tuple), Py_XDECREF(named);
  return result;
}

/* The results of arrays, as tensors; a new question gets a plan. NULL with nothing raised: the call is not made
 * here. */
static PyObject *record(const on_tensors *f, PyObject *const *values, Py_ssize_t count, PyObject *names,
                        const hgpy_question *q) {
  Py_ssize_t total = count + (names != NULL ? PyTuple_Size(names) : 0);
  PyObject *own[MOST_VALUES], *tensors = NULL;
  hgpy_node *given[MOST_VALUES];
  uint32_t types[MOST_VALUES];
  if (borrow_all(f, values, total, q != NULL ? q->device : NULL, own) <= 0) return NULL;
  for (Py_ssize_t i = 0; i < total; i++)
    types[i] = hgpy_is_array(own[i]) ? hgpy_array_node(own[i])->tensor.type : (uint32_t)ATLAS_NONE;
  bool mixes = hgpy_row_mixes(f->row, types, count, total); /* type promotion is left to the library */
  PyObject *result = mixes ? NULL : hgpy_call_row(f->row, own, count, names);
  if (result != NULL && q != NULL) {
    find_given(f, values, total, own, given);
    hgpy_plan *plan = make_plan(q, given, result);
    if (plan != NULL) tensors = hgpy_plan_run(plan, q, first_of(f->types));
  }
  bool is_open = result != NULL && tensors == NULL && PyErr_Occurred() == NULL;
  if (is_open) tensors = hgpy_hand_over(Py_NewRef(result), first_of(f->types));
  Py_XDECREF(result);
  drop_all(own, total);
  return tensors;
}

static PyObject *call_here(const on_tensors *f, PyObject *const *values, Py_ssize_t count, PyObject *names) {
  Py_ssize_t total = count + (names != NULL ? PyTuple_Size(names) : 0);
  hgpy_question q;
  int numerics = hgpy_numerics();
  hgpy_question_begin(&q, f->row, numerics, 0);
  int is_asked = numerics >= 0 ? ask(f, values, total, names, &q) : -1;
  hgpy_plan *plan = is_asked > 0 ? hgpy_plan_find(&q) : NULL;
  PyObject *result = NULL;
  if (plan != NULL) result = hgpy_plan_run(plan, &q, first_of(f->types));
  else if (is_asked >= 0) result = record(f, values, count, names, is_asked > 0 ? &q : NULL);
  hgpy_question_end(&q);
  return result;
}

/* False: the library converts some of the tensors first, so the gradient is its own. */
static bool may_follow(const on_tensors *f, PyObject *const *values, Py_ssize_t count, Py_ssize_t total,
                       PyObject *names) {
  uint32_t types[MOST_VALUES], loan = 0;
  hgpy_question q;
  hgpy_question_begin(&q, f->row, 0, 0);
  bool is_asked = ask(f, values, total, names, &q) > 0;
  for (Py_ssize_t i = 0; is_asked && i < total; i++)
    types[i] = hgpy_is_one_of(values[i], f->types) ? q.loans[loan++].tensor.type : (uint32_t)ATLAS_NONE;
  hgpy_question_end(&q);
  return is_asked && !hgpy_row_mixes(f->row, types, count, total);
}

/* ---- gradients ---------------------------------------------------------------------------------------------------
 *
 * follow() makes a node of the library's graph, which calls the two functions below. In between its context has the
 * tensors, of which the library knows when one has changed, and `call`: the function, the names of the last values or
 * None, the values, an ellipsis in the place of each tensor, and the numerics. */

/* NULL with nothing raised: the library cannot record the gradient in this way now. */
static PyObject *call_followed(const on_tensors *f, PyObject *const *values, Py_ssize_t total, PyObject *names) {
  PyObject *all = PyTuple_New(total + 2), *result = NULL;
  bool is_good = all != NULL && PyTuple_SetItem(all, 0, Py_NewRef((PyObject *)(uintptr_t)f)) == 0 &&
                 PyTuple_SetItem(all, 1, Py_NewRef(names != NULL ? names : Py_None)) == 0;
  for (Py_ssize_t i = 0; is_good && i < total; i++) {
    PyObject *value = hgpy_is_one_of(values[i], f->types) ? Py_NewRef(values[i]) : hgpy_kept(NULL, values[i]);
    is_good = value != NULL && PyTuple_SetItem(all, i + 2, value) == 0;
  }
  if (is_good) result = PyObject_Call(f->follow, all, NULL);
  Py_XDECREF(all);
  if (result != Py_NotImplemented) return result;
  Py_DECREF(result);
  return NULL;
}

static bool save(PyObject *context, const on_tensors *f, PyObject *names, PyObject *const *values, Py_ssize_t total) {
  Py_ssize_t count = 0, at = 0;
  for (Py_ssize_t i = 0; i < total; i++) count += hgpy_is_one_of(values[i], f->types);
  PyObject *tensors = PyTuple_New(count), *rest = PyTuple_New(total), *made = NULL;
  int numerics = hgpy_numerics();
  bool is_good = tensors != NULL && rest != NULL && numerics >= 0;
  for (Py_ssize_t i = 0; is_good && i < total; i++) {
    bool is_tensor = hgpy_is_one_of(values[i], f->types);
    if (is_tensor) is_good = PyTuple_SetItem(tensors, at++, Py_NewRef(values[i])) == 0;
    is_good = is_good && PyTuple_SetItem(rest, i, Py_NewRef(is_tensor ? Py_Ellipsis : values[i])) == 0;
  }
  if (is_good) made = Py_BuildValue("(OOOi)", (PyObject *)(uintptr_t)f, names, rest, numerics);
  is_good = made != NULL && PyObject_SetAttr(context, name_to_save, tensors) == 0 &&
            PyObject_SetAttr(context, name_call, made) == 0;
  Py_XDECREF(tensors), Py_XDECREF(rest), Py_XDECREF(made);
  return is_good;
}

/* tensors_forward(context, function, names or None, *values): the function's result; gradients are not recorded. */
PyObject *hgpy_tensors_forward(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count < 3 || Py_TYPE(values[1]) != on_tensors_type || count - 3 > MOST_VALUES)
    return PyErr_Format(PyExc_TypeError, "tensors_forward takes a context, a function, names and values");
  const on_tensors *f = (const on_tensors *)values[1];
  PyObject *names = values[2] != Py_None ? values[2] : NULL;
  Py_ssize_t total = count - 3, unnamed = total - (names != NULL ? PyTuple_Size(names) : 0);
  if (!save(values[0], f, values[2], values + 3, total)) return NULL;
  PyObject *result = call_here(f, values + 3, unnamed, names);
  return result != NULL || PyErr_Occurred() ? result : call_otherwise(f, values + 3, unnamed, names);
}

/* The gradient of a saved call. */
typedef struct saved {
  const on_tensors *f;
  PyObject *names, *values[MOST_VALUES + 1]; /* borrowed from the context; the cotangent follows the values */
  Py_ssize_t total;
  uint64_t wanted; /* the values by which the gradient is wanted */
  int numerics;    /* of the call, not those at the time of the gradient */
  hgpy_question q;
} saved;

/* False: nothing to do here, or raised. */
static bool find_saved(saved *s, PyObject *made, PyObject *tensors, PyObject *needs) {
  if (!PyTuple_Check(made) || !PyTuple_Check(tensors) || !PyTuple_Check(needs)) return false;
  PyObject *rest = PyTuple_GetItem(made, 2);
  Py_ssize_t at = 0;
  s->f = (const on_tensors *)PyTuple_GetItem(made, 0);
  s->names = PyTuple_GetItem(made, 1) != Py_None ? PyTuple_GetItem(made, 1) : NULL;
  s->total = PyTuple_Size(rest);
  s->wanted = 0;
  s->numerics = (int)PyLong_AsLong(PyTuple_GetItem(made, 3));
  for (Py_ssize_t i = 0; i < s->total; i++) {
    s->values[i] = PyTuple_GetItem(rest, i);
    if (s->values[i] != Py_Ellipsis) continue;
    s->values[i] = PyTuple_GetItem(tensors, at++);
    if (s->values[i] == NULL || !hgpy_is_one_of(s->values[i], s->f->types)) return false;
    if (PyTuple_GetItem(needs, i + 2) == Py_True) s->wanted |= UINT64_C(1) << i;
  }
  return s->wanted != 0;
}

static bool ask_for_gradient(saved *s) {
  PyObject *cotangent = s->values[s->total];
  hgpy_question_begin(&s->q, s->f->row, s->numerics, s->wanted);
  return hgpy_is_one_of(cotangent, s->f->types) && ask(s->f, s->values, s->total, s->names, &s->q) > 0 &&
         hgpy_question_add_tensor(&s->q, cotangent, hgpy_family_of(first_of(s->f->types))) > 0;
}

/* The function on arrays, not computed: views are recorded, too. */
static PyObject *record_function(const saved *s, PyObject *const *own) {
  hgpy_tracing++;
  PyObject *value =
      hgpy_call_row(s->f->row, own, s->total - (s->names != NULL ? PyTuple_Size(s->names) : 0), s->names);
  hgpy_tracing--;
  return value;
}

/* Records the gradients by the wanted values, after the value itself: their number, or 0: raised. */
static uint32_t record_gradients(const saved *s, PyObject *const *own, hgpy_node **results) {
  hgpy_node *wrt[MOST_VALUES];
  uint32_t count = 0;
  for (Py_ssize_t i = 0; i < s->total; i++)
    if (s->wanted >> i & 1) wrt[count++] = hgpy_array_node(own[i]);
  int before = hgpy_set_numerics(s->numerics);
  PyObject *value = before >= 0 ? record_function(s, own) : NULL;
  bool is_good = value != NULL && hgpy_is_array(value) &&
                 hgpy_record_gradients(hgpy_array_node(value), hgpy_array_node(own[s->total]), wrt, count, 0,
                                       results);
  Py_XDECREF(value); /* a value held by an array would be computed, too */
  if (before >= 0) hgpy_restore_numerics(before);
  return is_good ? count : 0;
}

/* Runs a plan before releasing anything: it belongs to the table, and ends with its device. */
static PyObject *record_and_run(const saved *s) {
  PyObject *own[MOST_VALUES + 1] = {NULL};
  hgpy_node *given[MOST_VALUES + 1], *results[MOST_VALUES + 1] = {NULL};
  if (borrow_all(s->f, s->values, s->total + 1, s->q.device, own) <= 0) return NULL;
  uint32_t count = record_gradients(s, own, results);
  find_given(s->f, s->values, s->total + 1, own, given);
  if (count > 0) hgpy_node_release(results[0]); /* whoever holds the value would have it computed */
  hgpy_plan *plan = count > 0 ? hgpy_plan_make(&s->q, given, results + 1, count) : NULL;
  PyObject *gradients = plan != NULL ? hgpy_plan_run(plan, &s->q, first_of(s->f->types)) : NULL;
  for (uint32_t i = 1; count > 0 && i <= count; i++) hgpy_node_release(results[i]);
  drop_all(own, s->total + 1);
  return gradients;
}

/* Gradients for all arguments of follow(), the first two of which have none. Takes them. */
static PyObject *spread(const saved *s, PyObject *gradients) {
  PyObject *all = PyTuple_New(s->total + 2);
  Py_ssize_t at = 0;
  for (Py_ssize_t i = -2; all != NULL && i < s->total; i++) {
    bool is_wanted = i >= 0 && (s->wanted >> i & 1);
    PyObject *one = !is_wanted ? Py_None : PyTuple_Check(gradients) ? PyTuple_GetItem(gradients, at++) : gradients;
    if (PyTuple_SetItem(all, i + 2, Py_NewRef(one)) < 0) Py_CLEAR(all);
  }
  Py_DECREF(gradients);
  return all;
}

static PyObject *find_gradients(saved *s) {
  bool is_asked = ask_for_gradient(s);
  hgpy_plan *plan = is_asked ? hgpy_plan_find(&s->q) : NULL;
  PyObject *gradients = NULL;
  if (plan != NULL) gradients = hgpy_plan_run(plan, &s->q, first_of(s->f->types));
  else if (is_asked) gradients = record_and_run(s);
  hgpy_question_end(&s->q);
  return gradients != NULL ? spread(s, gradients) : NULL;
}

/* tensors_backward(context, cotangent): the gradients by the arguments of forward; None: they are computed in another
 * way. */
PyObject *hgpy_tensors_backward(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  (void)module;
  if (count != 2) Py_RETURN_NONE; /* there are several results */
  PyObject *made = PyObject_GetAttr(values[0], name_call), *result = NULL;
  PyObject *tensors = made != NULL ? PyObject_GetAttr(values[0], name_saved) : NULL;
  PyObject *needs = tensors != NULL ? PyObject_GetAttr(values[0], name_needs) : NULL;
  saved s;
  if (needs != NULL && find_saved(&s, made, tensors, needs)) {
    s.values[s.total] = values[1];
    result = find_gradients(&s);
  }
  Py_XDECREF(made), Py_XDECREF(tensors), Py_XDECREF(needs);
  return result != NULL || PyErr_Occurred() ? result : Py_NewRef(Py_None);
}

/* ---- the object -------------------------------------------------------------------------------------------------- */

static PyObject *call(PyObject *self, PyObject *const *values, Py_ssize_t count, PyObject *names) {
  const on_tensors *f = (const on_tensors *)self;
  Py_ssize_t total = count + (names != NULL ? PyTuple_Size(names) : 0);
  bool is_elsewhere = total > MOST_VALUES || names_executor(values, count, names);
  way found = is_elsewhere ? ELSEWHERE : find_way(f, values, total);
  PyObject *result = NULL;
  if (found == HERE) result = call_here(f, values, count, names);
  else if (found == FOLLOWED && may_follow(f, values, count, total, names))
    result = call_followed(f, values, total, names);
  if (result != NULL || found == RAISED || PyErr_Occurred()) return result;
  return call_otherwise(f, values, count, names);
}

static void on_tensors_dealloc(PyObject *self) {
  on_tensors *f = (on_tensors *)self;
  Py_DECREF(f->types), Py_DECREF(f->is_followed), Py_DECREF(f->follow), Py_DECREF(f->otherwise);
  hgpy_free_object(self);
}

static PyObject *get_operation(PyObject *self, void *unused) {
  (void)unused;
  return PyUnicode_FromString(hgpy_row_name(((const on_tensors *)self)->row));
}

/* on_tensors(operation, types, is_followed, follow, otherwise): a function of tensors and numbers, with its name and
 * docstring. */
PyObject *hgpy_on_tensors(PyObject *module, PyObject *const *values, Py_ssize_t count) {
  static PyMethodDef methods[HGPY_ROW_COUNT];
  (void)module;
  if (count != 5 || !PyUnicode_Check(values[0]) || !hgpy_are_types(values[1]))
    return PyErr_Format(PyExc_TypeError, "on_tensors takes an operation's name, a tuple of types and three functions");
  const char *name = PyUnicode_AsUTF8AndSize(values[0], NULL);
  int row = name != NULL ? hgpy_row_find(name) : -1;
  if (row < 0) return PyErr_Format(PyExc_AttributeError, "no operation of the table is %R", values[0]);
  on_tensors *f = PyObject_New(on_tensors, on_tensors_type);
  if (f == NULL) return NULL;
  f->row = (uint32_t)row;
  f->types = Py_NewRef(values[1]);
  f->is_followed = Py_NewRef(values[2]);
  f->follow = Py_NewRef(values[3]);
  f->otherwise = Py_NewRef(values[4]);
  methods[row] = (PyMethodDef){hgpy_row_name(f->row), (PyCFunction)(void *)call, METH_FASTCALL | METH_KEYWORDS,
                               hgpy_row_text(f->row)};
  PyObject *function = PyCFunction_New(&methods[row], (PyObject *)f);
  Py_DECREF(f);
  return function;
}

int hgpy_tensors_add(PyObject *module) {
  static PyGetSetDef getset[] = {{"operation", get_operation, NULL, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)on_tensors_dealloc}, {Py_tp_getset, getset}, {0, NULL}};
  static PyType_Spec spec = {.name = "hologram._core._OnTensors", .basicsize = sizeof(on_tensors),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, .slots = slots};
  name_call = PyUnicode_InternFromString("call");
  name_to_save = PyUnicode_InternFromString("to_save");
  name_saved = PyUnicode_InternFromString("saved_tensors");
  name_needs = PyUnicode_InternFromString("needs_input_grad");
  on_tensors_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL); /* not callable from Python */
  bool has_names = name_call != NULL && name_to_save != NULL && name_saved != NULL &&
                   name_needs != NULL;
  return has_names && on_tensors_type != NULL ? 0 : -1;
}
