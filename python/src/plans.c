/* plans.c - calls of operations on tensors of another library, cached by their arguments.
 *
 * A plan is the executable of a call, with the positions of its inputs and results. A call with a plan records nothing:
 * it borrows the tensors' memory, submits the executable to the stream that their library works on, and hands over the
 * results. No memory is owned. On the CPU the work is over when the call returns; on a GPU it is in the library's own
 * stream. So memory that the library frees after the call is reused only behind that stream's work, as with the
 * library's own operations. For the same reason, the library allocates results on a GPU. */
#include "plans.h"

#include "graph.h"

enum { PLANS = 1024, PLACES = 4, FEW_OUTPUTS = HGPY_FEW_LOANS, MOST_DEEP = 2 };

/* The bytes of a loan before and after its first element. */
typedef struct extent {
  int64_t lowest;
  uint64_t byte_count;
} extent;

typedef struct output {
  hg_tensor tensor; /* in C order */
  uint64_t byte_count;
  uint32_t place;   /* index among the executable's outputs */
  uint32_t like;    /* a loan of the same type; HGPY_NONE: there is none */
  PyObject *shape;  /* on a GPU: the shape from which the library makes a tensor; NULL: not made yet */
  PyObject *names;
  bool is_viewed; /* handed over as `view`, whose `strides` are for the library that makes tensors on a GPU */
  hg_tensor view;
  PyObject *view_shape, *view_strides;
} output;

struct hgpy_plan {
  uint32_t users; /* references: the table's, and calls under way */
  uint32_t loan_count, input_count, output_count, word_count;
  uint64_t hash;
  hgpy_device *device; /* not referenced: a device removes its plans */
  hg_executable *executable;
  bool is_quick;  /* finished before another thread would begin */
  bool is_guarded; /* an index may be out of range */
  PyObject *beside;
  uint32_t *input_of; /* for each input of the executable, the loan */
  extent *extents;    /* for each loan */
  output *outputs;
  uint64_t words[];
};

static hgpy_plan *plans[PLANS];

/* ---- questions --------------------------------------------------------------------------------------------------- */

/* The first word of each part. */
enum { OF_LOAN = 1, OF_NONE, OF_BOOL, OF_INTEGER, OF_NUMBER, OF_TEXT, OF_LIST, OF_NAMES };

void hgpy_question_begin(hgpy_question *q, uint32_t row, int numerics, uint64_t gradient) {
  q->row = row;
  q->device = NULL;
  q->loan_count = 0;
  q->loans = q->few_loans;
  q->words = q->few_words;
  q->most_loans = HGPY_FEW_LOANS;
  q->most_words = HGPY_FEW_WORDS;
  q->room = NULL;
  q->words[0] = row | (uint64_t)(unsigned)numerics << 32;
  q->words[1] = gradient;
  q->word_count = 2;
}

bool hgpy_question_expect(hgpy_question *q, Py_ssize_t count) {
  size_t words = 2 + (size_t)count * (2 + 2 * HG_MAX_RANK);
  if (count <= HGPY_FEW_LOANS && words <= HGPY_FEW_WORDS) return true;
  q->room = PyMem_Malloc((size_t)count * sizeof *q->loans + words * sizeof *q->words);
  if (q->room == NULL) return PyErr_NoMemory(), false;
  q->loans = q->room;
  q->most_loans = (uint32_t)count;
  memcpy(q->loans + count, q->words, q->word_count * sizeof *q->words);
  q->words = (uint64_t *)(void *)(q->loans + count);
  q->most_words = (uint32_t)words;
  return true;
}

void hgpy_question_end(hgpy_question *q) {
  hgpy_device_release(q->device);
  PyMem_Free(q->room);
}

static bool put(hgpy_question *q, uint64_t kind, uint64_t word) {
  if (q->word_count + 2 > q->most_words) return false;
  q->words[q->word_count++] = kind;
  q->words[q->word_count++] = word;
  return true;
}

static bool put_text(hgpy_question *q, PyObject *text) {
  Py_ssize_t length = 0;
  const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
  uint64_t room[HGPY_MOST_NAME / 8] = {0};
  if (bytes == NULL) PyErr_Clear();
  if (bytes == NULL || length > HGPY_MOST_NAME) return false;
  memcpy(room, bytes, (size_t)length);
  uint32_t words = ((uint32_t)length + 7) / 8;
  if (!put(q, OF_TEXT, (uint64_t)length) || q->word_count + words > q->most_words) return false;
  memcpy(q->words + q->word_count, room, words * sizeof *room);
  q->word_count += words;
  return true;
}

static bool put_integer(hgpy_question *q, PyObject *value) {
  int is_beyond = 0;
  long long integer = PyLong_AsLongLongAndOverflow(value, &is_beyond);
  return is_beyond == 0 && put(q, OF_INTEGER, (uint64_t)integer);
}

static bool put_number(hgpy_question *q, PyObject *value) {
  double number = PyFloat_AsDouble(value);
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  return put(q, OF_NUMBER, bits);
}

/* Only exact types: a derived type may behave differently the next time. */
static bool put_value(hgpy_question *q, PyObject *value, int depth) {
  if (value == Py_None) return put(q, OF_NONE, 0);
  if (PyBool_Check(value)) return put(q, OF_BOOL, value == Py_True);
  if (Py_TYPE(value) == &PyLong_Type) return put_integer(q, value);
  if (Py_TYPE(value) == &PyFloat_Type) return put_number(q, value);
  if (Py_TYPE(value) == &PyUnicode_Type) return put_text(q, value);
  bool is_tuple = Py_TYPE(value) == &PyTuple_Type, is_list = Py_TYPE(value) == &PyList_Type;
  if (depth == MOST_DEEP || (!is_tuple && !is_list)) return false;
  Py_ssize_t count = is_tuple ? PyTuple_Size(value) : PyList_Size(value);
  if (!put(q, OF_LIST, (uint64_t)count << 1 | is_tuple)) return false;
  for (Py_ssize_t i = 0; i < count; i++)
    if (!put_value(q, is_tuple ? PyTuple_GetItem(value, i) : PyList_GetItem(value, i), depth + 1)) return false;
  return true;
}

bool hgpy_question_add(hgpy_question *q, PyObject *value) { return put_value(q, value, 0); }

bool hgpy_question_add_names(hgpy_question *q, PyObject *names) {
  Py_ssize_t count = PyTuple_Size(names);
  bool is_good = put(q, OF_NAMES, (uint64_t)count);
  for (Py_ssize_t i = 0; is_good && i < count; i++) is_good = put_text(q, PyTuple_GetItem(names, i));
  return is_good;
}

int hgpy_question_add_tensor(hgpy_question *q, PyObject *tensor, hgpy_family *f) {
  if (q->loan_count == q->most_loans) return 0;
  hgpy_loan *loan = &q->loans[q->loan_count];
  int is_lent = hgpy_loan_take(tensor, f, loan);
  if (is_lent <= 0) return is_lent;
  const hg_tensor *t = &loan->tensor;
  hgpy_device *device = hgpy_device_beside(loan->place, q->device);
  if (device == NULL) return -1;
  if (q->device != NULL && q->device != device) return 0;
  if (q->word_count + 2 + 2 * t->rank > q->most_words) return 0;
  if (q->device == NULL) q->device = hgpy_device_retain(device);
  q->loan_count++;
  uint64_t *at = q->words + q->word_count;
  *at++ = OF_LOAN | (uint64_t)t->type << 8 | (uint64_t)t->rank << 16;
  *at++ = (uint64_t)(uintptr_t)device;
  for (uint32_t d = 0; d < t->rank; d++) {
    *at++ = t->shape[d];
    *at++ = (uint64_t)(t->shape[d] > 1 ? t->stride[d] : 0);
  }
  q->word_count += 2 + 2 * t->rank;
  return 1;
}

/* ---- the table --------------------------------------------------------------------------------------------------- */

static void drop(hgpy_plan *plan) {
  if (--plan->users > 0) return;
  hg_executable_release(plan->executable);
  for (uint32_t i = 0; plan->outputs != NULL && i < plan->output_count; i++) {
    Py_XDECREF(plan->outputs[i].shape);
    Py_XDECREF(plan->outputs[i].names);
    Py_XDECREF(plan->outputs[i].view_shape);
    Py_XDECREF(plan->outputs[i].view_strides);
  }
  Py_XDECREF(plan->beside);
  PyMem_Free(plan->outputs); /* one allocation with the arrays after it */
  PyMem_Free(plan);
}

/* Place number k for a hash. */
static hgpy_plan **place_of(uint64_t hash, uint32_t k) { return &plans[(hash + k) % PLANS]; }

hgpy_plan *hgpy_plan_find(const hgpy_question *q) {
  uint64_t hash = hgpy_hash_words(q->words, q->word_count);
  for (uint32_t k = 0; k < PLACES; k++) {
    hgpy_plan *plan = *place_of(hash, k);
    if (plan != NULL && plan->hash == hash && plan->word_count == q->word_count &&
        memcmp(plan->words, q->words, q->word_count * sizeof *q->words) == 0)
      return plan;
  }
  return NULL;
}

PyObject *hgpy_plan_beside(const hgpy_plan *plan) { return plan->beside; }

/* The plan of the same question, or an empty place, or else the first one. */
static hgpy_plan **place_for(const hgpy_plan *plan) {
  hgpy_plan **chosen = NULL;
  for (uint32_t k = 0; k < PLACES; k++) {
    hgpy_plan **place = place_of(plan->hash, k);
    if (*place != NULL && (*place)->hash == plan->hash) return place;
    if (*place == NULL && chosen == NULL) chosen = place;
  }
  return chosen != NULL ? chosen : place_of(plan->hash, 0);
}

void hgpy_plans_forget(const hgpy_device *device) {
  for (uint32_t i = 0; i < PLANS; i++) {
    hgpy_plan *plan = plans[i];
    if (plan == NULL || plan->device != device) continue;
    plans[i] = NULL;
    drop(plan);
  }
}

/* ---- making one -------------------------------------------------------------------------------------------------- */

static bool find_extents(hgpy_plan *plan, const hgpy_question *q) {
  for (uint32_t i = 0; i < q->loan_count; i++) {
    int64_t bytes = hgpy_type_bytes(q->loans[i].tensor.type), lowest;
    uint64_t count;
    if (hg_tensor_extent(&q->loans[i].tensor, &lowest, &count) != HG_OK) return false;
    plan->extents[i] = (extent){.lowest = lowest * bytes, .byte_count = count * (uint64_t)bytes};
  }
  return true;
}

static bool read_view(output *o, const hgpy_view *view) {
  Py_ssize_t rank = PyTuple_Size(view->shape);
  o->view = o->tensor;
  o->view.rank = (uint32_t)rank;
  for (Py_ssize_t d = 0; d < rank; d++) {
    o->view.shape[d] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(view->shape, d));
    o->view.stride[d] = PyLong_AsLongLong(PyTuple_GetItem(view->strides, d));
  }
  o->view_shape = Py_NewRef(view->shape);
  o->view_strides = Py_NewRef(view->strides);
  o->is_viewed = true;
  return PyErr_Occurred() == NULL;
}

static bool set_outputs(hgpy_plan *plan, const hgpy_question *q, hgpy_node *const *results, const hgpy_view *views) {
  for (uint32_t i = 0; i < plan->output_count; i++) {
    const hg_tensor *of = &results[i]->tensor;
    output *to = &plan->outputs[i];
    to->tensor = hg_tensor_of(NULL, (atlas_type)of->type, of->rank, of->shape);
    to->byte_count = hg_tensor_count(&to->tensor) * hgpy_type_bytes(of->type);
    to->like = HGPY_NONE;
    for (uint32_t k = 0; k < q->loan_count && to->like == HGPY_NONE; k++)
      if (q->loans[k].tensor.type == of->type) to->like = k;
    if (views != NULL && views[i].shape != NULL && !read_view(to, &views[i])) return false;
  }
  return true;
}

/* 1 if some input holds integers that index another input. */
static bool is_guarded(const hgpy_question *q) {
  bool has_integers = false;
  for (uint32_t i = 0; i < q->loan_count; i++)
    has_integers = has_integers || hgpy_type_is_integer(q->loans[i].tensor.type);
  return has_integers && (q->row >= HGPY_ROW_COUNT || hgpy_row_has_kinds(q->row));
}

/* The arrays of a plan, as one allocation. False: there is no room. */
static bool make_room(hgpy_plan *plan, uint32_t loans, uint32_t outputs) {
  size_t bytes = outputs * sizeof(output) + loans * (sizeof(extent) + sizeof(uint32_t));
  plan->outputs = PyMem_Calloc(1, bytes + 1);
  if (plan->outputs == NULL) return false;
  plan->extents = (extent *)(void *)(plan->outputs + outputs);
  plan->input_of = (uint32_t *)(void *)(plan->extents + loans);
  plan->loan_count = loans;
  plan->output_count = outputs;
  return true;
}

static void keep(hgpy_plan *plan) {
  hgpy_plan **place = place_for(plan), *old = *place;
  *place = plan;
  if (old != NULL) drop(old);
}

hgpy_plan *hgpy_plan_make_with(const hgpy_question *q, hgpy_node *const *given, hgpy_node *const *results,
                               uint32_t count, const hgpy_view *views, PyObject *beside) {
  hgpy_plan *plan = PyMem_Calloc(1, sizeof *plan + q->word_count * sizeof *q->words);
  uint32_t few[FEW_OUTPUTS], *places = count > FEW_OUTPUTS ? PyMem_Malloc(count * sizeof *places) : few;
  bool is_good = plan != NULL && places != NULL; /* the call is right without a plan */
  if (plan != NULL) plan->users = 1;
  is_good = is_good && make_room(plan, q->loan_count, count);
  if (is_good)
    plan->executable = hgpy_executable_of(q->device, results, count, places, given, q->loan_count, plan->input_of,
                                          &plan->input_count, &plan->is_quick);
  is_good = is_good && plan->executable != NULL && find_extents(plan, q) && set_outputs(plan, q, results, views);
  for (uint32_t i = 0; is_good && i < count; i++) plan->outputs[i].place = places[i];
  if (places != few) PyMem_Free(places);
  if (!is_good) {
    if (plan != NULL) drop(plan);
    return NULL;
  }
  plan->device = q->device;
  plan->hash = hgpy_hash_words(q->words, q->word_count);
  plan->word_count = q->word_count;
  memcpy(plan->words, q->words, q->word_count * sizeof *q->words);
  plan->is_guarded = is_guarded(q);
  plan->beside = Py_XNewRef(beside);
  keep(plan);
  return plan;
}

hgpy_plan *hgpy_plan_make(const hgpy_question *q, hgpy_node *const *given, hgpy_node *const *results, uint32_t count) {
  return hgpy_plan_make_with(q, given, results, count, NULL, NULL);
}

/* ---- running ----------------------------------------------------------------------------------------------------- */

typedef struct run {
  hgpy_plan *plan;
  const hgpy_question *q;
  const dl_exchange *table;
  PyTypeObject *type;
  hgpy_storage **lent, **made; /* storages of loans; of outputs */
  PyObject **tensors;          /* on a GPU: results that the library has made */
  hg_tensor *inputs, *outputs;
  void *room; /* allocated for many; NULL: few suffice */
  hgpy_storage *few_lent[HGPY_FEW_LOANS], *few_made[FEW_OUTPUTS];
  PyObject *few_tensors[FEW_OUTPUTS];
  hg_tensor few_inputs[HGPY_FEW_LOANS], few_outputs[FEW_OUTPUTS];
} run;

static bool make_run_room(run *r, uint32_t loans, uint32_t outputs) {
  r->room = NULL;
  r->lent = r->few_lent, r->made = r->few_made, r->tensors = r->few_tensors;
  r->inputs = r->few_inputs, r->outputs = r->few_outputs;
  if (loans <= HGPY_FEW_LOANS && outputs <= FEW_OUTPUTS) return true;
  size_t pointers = loans + 2 * (size_t)outputs;
  r->room = PyMem_Malloc((loans + outputs) * sizeof(hg_tensor) + pointers * sizeof(void *));
  if (r->room == NULL) return PyErr_NoMemory(), false;
  r->inputs = r->room;
  r->outputs = r->inputs + loans;
  r->lent = (hgpy_storage **)(void *)(r->outputs + outputs);
  r->made = r->lent + loans;
  r->tensors = (PyObject **)(void *)(r->made + outputs);
  return true;
}

/* Leaves the arrays uninitialised: most of their room is unused. */
static bool run_begin(run *r, hgpy_plan *plan, const hgpy_question *q, PyTypeObject *type) {
  if (!make_run_room(r, plan->loan_count, plan->output_count)) return false;
  plan->users++;
  r->plan = plan;
  r->q = q;
  r->table = hgpy_family_of(type)->table;
  r->type = type;
  memset(r->lent, 0, plan->loan_count * sizeof(void *));
  memset(r->made, 0, plan->output_count * sizeof(void *));
  memset(r->tensors, 0, plan->output_count * sizeof(void *));
  return true;
}

/* The buffer of a tensor that is passed twice, to avoid a second one; among the first few. */
static hgpy_storage *find_lent(const run *r, const char *memory, uint64_t byte_count) {
  for (uint32_t i = 0; i < r->plan->loan_count && i < HGPY_FEW_LOANS && r->lent[i] != NULL; i++)
    if (r->lent[i]->memory == memory && r->lent[i]->byte_count == byte_count) return hgpy_storage_retain(r->lent[i]);
  return NULL;
}

/* False, mostly with nothing raised: memory that no such tensor can have. */
static bool lend(run *r, const hgpy_loan *loan, const extent *e, hgpy_storage **storage) {
  char *memory = e->byte_count > 0 ? loan->first + e->lowest : NULL;
  bool is_there = loan->first != NULL || e->byte_count == 0;
  if (!is_there || (uintptr_t)memory % hgpy_type_bytes(loan->tensor.type) != 0) return false;
  *storage = find_lent(r, memory, e->byte_count);
  if (*storage == NULL) *storage = hgpy_storage_lend(r->plan->device, memory, e->byte_count);
  return *storage != NULL;
}

static bool lend_all(run *r) {
  for (uint32_t i = 0; i < r->plan->loan_count; i++)
    if (!lend(r, &r->q->loans[i], &r->plan->extents[i], &r->lent[i])) return false;
  for (uint32_t i = 0; i < r->plan->input_count; i++) {
    uint32_t from = r->plan->input_of[i];
    const hgpy_loan *loan = &r->q->loans[from];
    r->inputs[i] = loan->tensor;
    r->inputs[i].buffer = r->lent[from]->buffer;
    r->inputs[i].offset = -r->plan->extents[from].lowest / (int64_t)hgpy_type_bytes(loan->tensor.type);
  }
  return true;
}

/* The library's type as a keyword; NULL with nothing raised: there is none. */
static PyObject *name_type(PyTypeObject *type, uint32_t of) {
  PyObject *module_name = PyObject_GetAttrString((PyObject *)type, "__module__");
  PyObject *module = module_name != NULL ? PyImport_Import(module_name) : NULL;
  PyObject *word = module != NULL ? PyObject_GetAttrString(module, hgpy_type_name(of)) : NULL;
  PyObject *names = word != NULL ? Py_BuildValue("{s:O}", "dtype", word) : NULL;
  Py_XDECREF(module_name), Py_XDECREF(module), Py_XDECREF(word);
  if (names == NULL) PyErr_Clear();
  return names;
}

/* like.new_empty(shape, dtype=type), on the current stream. */
static PyObject *make_tensor(run *r, output *o) {
  PyObject *like = r->q->loans[o->like != HGPY_NONE ? o->like : 0].object, *tensor = NULL;
  if (o->shape == NULL) o->shape = hgpy_shape_object(o->tensor.rank, o->tensor.shape);
  if (o->shape != NULL && o->like == HGPY_NONE && o->names == NULL) {
    o->names = name_type(r->type, o->tensor.type);
    if (o->names == NULL) return NULL;
  }
  PyObject *method = o->shape != NULL ? PyObject_GetAttrString((PyObject *)r->type, "new_empty") : NULL;
  PyObject *arguments = method != NULL ? Py_BuildValue("(OO)", like, o->shape) : NULL;
  if (arguments != NULL) tensor = PyObject_Call(method, arguments, o->names);
  Py_XDECREF(method), Py_XDECREF(arguments);
  return tensor;
}

/* In some modes, the library may return something other than memory in C order on the device of the loans. */
static bool is_as_asked(const run *r, const output *o, PyObject *tensor, const hgpy_loan *loan) {
  uint64_t stride = 1;
  if (Py_TYPE(tensor) != r->type || loan->tensor.type != o->tensor.type || loan->tensor.rank != o->tensor.rank ||
      loan->place.type != r->q->loans[0].place.type || loan->place.number != r->q->loans[0].place.number)
    return false;
  for (uint32_t d = o->tensor.rank; d-- > 0; stride *= o->tensor.shape[d])
    if (loan->tensor.shape[d] != o->tensor.shape[d] ||
        (o->tensor.shape[d] > 1 && (uint64_t)loan->tensor.stride[d] != stride))
      return false;
  return true;
}

static bool make_on_gpu(run *r, uint32_t number) {
  output *o = &r->plan->outputs[number];
  hgpy_loan loan;
  PyObject *tensor = r->tensors[number] = make_tensor(r, o);
  if (tensor == NULL || hgpy_loan_take(tensor, hgpy_family_of(r->type), &loan) <= 0 ||
      !is_as_asked(r, o, tensor, &loan))
    return false;
  return lend(r, &loan, &(extent){.byte_count = o->byte_count}, &r->made[number]);
}

static bool make_outputs(run *r) {
  for (uint32_t i = 0; i < r->plan->output_count; i++) {
    output *o = &r->plan->outputs[i];
    if (r->plan->device->stream != NULL) {
      if (!make_on_gpu(r, i)) return false;
    } else r->made[i] = hgpy_storage_create(r->plan->device, o->byte_count, false);
    if (r->made[i] == NULL) return false;
    r->outputs[o->place] = o->tensor;
    r->outputs[o->place].buffer = r->made[i]->buffer;
  }
  return true;
}

/* The stream that the library works on now, retained; NULL: CPU, or raised. */
static hg_stream *work_stream(const run *r) {
  uintptr_t handle;
  if (r->plan->device->stream == NULL || !hgpy_find_work_stream(r->table, r->q->loans[0].place, &handle)) return NULL;
  return hgpy_stream_of_others(r->plan->device, handle);
}

static bool launch(run *r) {
  hgpy_plan *plan = r->plan;
  hg_stream *stream = work_stream(r);
  hg_status status;
  bool is_on_gpu = plan->device->stream != NULL, is_good;
  if (is_on_gpu && stream == NULL) return false;
  if (plan->is_quick) {
    status = hg_run(plan->executable, r->inputs, plan->input_count, r->outputs, plan->output_count, stream, NULL);
  } else {
    HGPY_BEGIN_CALL
    status = hg_run(plan->executable, r->inputs, plan->input_count, r->outputs, plan->output_count, stream, NULL);
    HGPY_END_CALL
  }
  is_good = hgpy_ok(status);
  /* this call reports an index out of range, because it has the indices */
  if (is_good && is_on_gpu && plan->is_guarded) is_good = hgpy_stream_wait(stream);
  hg_stream_release(stream);
  return is_good;
}

static PyObject *give(run *r, uint32_t number) {
  const output *o = &r->plan->outputs[number];
  if (r->plan->device->stream == NULL)
    return hgpy_export_storage(r->made[number], o->is_viewed ? &o->view : &o->tensor, r->table);
  PyObject *tensor = r->tensors[number];
  r->tensors[number] = NULL;
  if (!o->is_viewed) return tensor;
  PyObject *method = PyObject_GetAttrString(tensor, "as_strided");
  PyObject *viewed =
      method != NULL ? PyObject_CallFunctionObjArgs(method, o->view_shape, o->view_strides, NULL) : NULL;
  Py_XDECREF(method), Py_DECREF(tensor);
  return viewed;
}

static PyObject *give_all(run *r) {
  if (r->plan->output_count == 1) return give(r, 0);
  PyObject *tuple = PyTuple_New(r->plan->output_count);
  for (uint32_t i = 0; tuple != NULL && i < r->plan->output_count; i++) {
    PyObject *tensor = give(r, i);
    if (tensor == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, tensor) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

/* A buffer in which a fault may be looked up is not cached: it may hold other elements later. */
static void give_back(hgpy_storage *storage, const run *r) {
  if (storage != NULL && r->plan->is_guarded && r->plan->device->stream != NULL) storage->was_queued = true;
  hgpy_storage_release(storage);
}

static void run_end(run *r) {
  for (uint32_t i = 0; i < r->plan->loan_count; i++) give_back(r->lent[i], r);
  for (uint32_t i = 0; i < r->plan->output_count; i++) give_back(r->made[i], r), Py_XDECREF(r->tensors[i]);
  drop(r->plan);
  PyMem_Free(r->room);
}

PyObject *hgpy_plan_run(hgpy_plan *plan, const hgpy_question *q, PyTypeObject *type) {
  run r;
  PyObject *result = NULL;
  if (!run_begin(&r, plan, q, type)) return NULL;
  if (r.table != NULL && lend_all(&r) && make_outputs(&r) && launch(&r)) result = give_all(&r);
  run_end(&r);
  return result;
}
