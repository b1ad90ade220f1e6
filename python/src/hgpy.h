/* hgpy.h - the extension module: what its files share. It stands on the public headers of the library and on the
 * limited API of CPython 3.11, so that one binary serves every later CPython.
 *
 * An Array holds a node. A node is a value that never changes: elements in memory (DATA), a Python number (SCALAR), or
 * an operation that was asked for and not done yet (CALL; RESULT is one of several results of a call). Reading an array
 * computes all that it needs as one computation of ops.h and makes DATA of it.
 *
 * Threads: everything here is used with the GIL held, which is released only around calls of the library that may take
 * long; what those need is held by references of the caller's own. References are plain counts for that reason.
 *
 * Names: global ones begin with hgpy_. */
#ifndef HGPY_H
#define HGPY_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
/* Python's functions take offsets and text as char *. */
#include "hologram/classes.h"
#include "hologram/ops.h"

#include <stdbool.h>
#include <string.h>

/* ---- errors (errors.c) ------------------------------------------------------------------------------------------- */

int hgpy_errors_add(PyObject *module);
/* The exception of a status with the library's last sentence; NULL, so that callers can return it. */
PyObject *hgpy_raise(hg_status status);
/* True where the status is HG_OK; raises otherwise. */
bool hgpy_ok(hg_status status);
extern PyObject *hgpy_error; /* hologram.Error */

/* ---- calls without the GIL (fork.c) ------------------------------------------------------------------------------ */

int hgpy_fork_add(void);
/* Around every call of the library that is made without the GIL, and around the use of a queue. */
void hgpy_enter(void);
void hgpy_leave(void);
#define HGPY_BEGIN_CALL \
  hgpy_enter();         \
  Py_BEGIN_ALLOW_THREADS
#define HGPY_END_CALL \
  Py_END_ALLOW_THREADS \
  hgpy_leave();

/* ---- types (types.c) --------------------------------------------------------------------------------------------- */

int hgpy_types_add(PyObject *module);
PyObject *hgpy_type_object(uint32_t type); /* a new reference to hologram.float32, ... */
/* The type that an object names (a DType, "float32", a NumPy dtype or scalar type); ATLAS_NONE and an exception. */
uint32_t hgpy_type_from(PyObject *object);
bool hgpy_is_type(PyObject *object);
const char *hgpy_type_name(uint32_t type);       /* "float32" */
const char *hgpy_type_format(uint32_t type);     /* "f" as struct has it; NULL: it has none */
uint32_t hgpy_type_from_format(const char *format, Py_ssize_t item_bytes); /* ATLAS_NONE: no such type */
uint32_t hgpy_type_bytes(uint32_t type);
bool hgpy_type_is_float(uint32_t type);
bool hgpy_type_is_integer(uint32_t type);

/* ---- devices (executor.c) ---------------------------------------------------------------------------------------- */

typedef struct hgpy_storage hgpy_storage;

enum { HGPY_FOREIGN = 8, HGPY_DEFAULT_STREAM = 1, HGPY_KEPT_LISTS = 16, HGPY_LENT = 64 };

typedef struct hgpy_foreign {
  uintptr_t handle; /* 0: none */
  hg_stream *stream;
} hgpy_foreign;

typedef struct hgpy_behind hgpy_behind;

/* What an Executor and all that is made on it share. */
typedef struct hgpy_device {
  uint32_t references;
  struct hgpy_device *next; /* in the list of all */
  hg_backend_id backend;
  hg_executor *executor;
  hg_stream *stream; /* of a GPU: work is given to it and waited for when something is read. NULL: the CPU's */
  uint32_t number;   /* which of the backend's devices */
  hg_event *mark;    /* order.c: a place in a stream that another is to come after; NULL: none so far */
  hgpy_foreign foreign[HGPY_FOREIGN]; /* streams of other libraries, the last ones */
  uint32_t next_foreign;
  hgpy_behind *behind, *spare_behind; /* memory that is let go behind work; the oldest first (behind.c) */
  uint32_t behind_count;
  uint64_t behind_bytes;
  hgpy_storage *kept[HGPY_KEPT_LISTS]; /* of the CPU: small memory that nobody uses, by size (storage.c) */
  uint32_t kept_count;
  hgpy_storage *lent[HGPY_LENT]; /* over memory of others that was given back (storage.c) */
  hg_stream *queue;  /* for what is worth a wait that can be interrupted; NULL: none so far (wait.c) */
} hgpy_device;

int hgpy_executor_add(PyObject *module);
/* The device of arrays that say none: the best there is, opened when it is first asked for. Borrowed; NULL: raised. */
hgpy_device *hgpy_default_device(void);
/* Likewise, of a backend and its number: the default one, where it is that. */
hgpy_device *hgpy_device_at(hg_backend_id backend, uint32_t number);
/* Gives back the memory that other executors of the same device keep. False: there are none. */
bool hgpy_trim_others(const hgpy_device *device);
void hgpy_lose_default_device(void); /* another is made when one is asked for; in a child of fork */
hgpy_device *hgpy_device_retain(hgpy_device *device);
void hgpy_device_release(hgpy_device *device);
/* Of an Executor object; NULL and raised: it is none, or closed. Borrowed. */
hgpy_device *hgpy_device_of(PyObject *object);
bool hgpy_is_executor(PyObject *object);
/* An Executor object for a device. */
PyObject *hgpy_executor_for(hgpy_device *device);

/* ---- hg.strict() (strict.c) -------------------------------------------------------------------------------------- */

int hgpy_strict_add(PyObject *module);
extern bool hgpy_is_strict;
/* Each is true where strict() is off; false: raised. What is refused, and what to write instead: */
bool hgpy_allows(const char *format, ...);
bool hgpy_allows_device(const hgpy_device *device); /* that 'auto' has chosen */
bool hgpy_allows_kernel(const hgpy_device *device, hg_kernel *kernel);
bool hgpy_allows_executable(const hgpy_device *device, hg_executable *executable);

/* ---- hg.numerics() (numerics.c) ---------------------------------------------------------------------------------- */

int hgpy_numerics_add(PyObject *module);
extern PyObject *hgpy_get_numerics; /* NULL: nobody has asked for any */
int hgpy_ask_numerics(void);
/* Before something is compiled for a device: cuBLASLt is looked for once, if anybody has asked for numerics. False:
 * raised. */
bool hgpy_find_vendor(const hgpy_device *device);
/* With which numerics a contraction is recorded now: of HG_NUMERICS_FAST and HG_NUMERICS_TF32. -1: raised. */
static inline int hgpy_numerics(void) { return hgpy_get_numerics == NULL ? 0 : hgpy_ask_numerics(); }
int hgpy_set_numerics(int flags);      /* what they were; -1: raised */
void hgpy_restore_numerics(int flags); /* what is raised stays raised */

/* ---- waiting (wait.c) -------------------------------------------------------------------------------------------- */

bool hgpy_wait_prepare(void);
void hgpy_set_main_thread(unsigned long thread); /* whose the signals are */
/* Of calls that take long (hg_executor_desc.ask): with or without the GIL. Not 0: raised, what a handler did. */
int hgpy_ask(void *unused);
void hgpy_pause(int64_t microseconds); /* without the GIL; a signal may end it */
/* Waits for what a stream was given, and raises its fault, or what a signal's handler does; false: raised. */
bool hgpy_stream_wait(hg_stream *stream);
bool hgpy_device_wait(hgpy_device *device);
/* A queue for work that may take long; whoever takes one calls hgpy_queue_wait. NULL: give the work to the device's
 * stream, or do it in the call. */
hg_stream *hgpy_queue_take(hgpy_device *device);
/* `given` is the status of giving the work. Where the wait is interrupted the storages are held until the work is over;
 * false: raised. */
bool hgpy_queue_wait(hgpy_device *device, hg_stream *queue, hg_status given, hgpy_storage *const *storages,
                     uint32_t count);

/* ---- order beside streams of other libraries (order.c) ----------------------------------------------------------- */

/* What a device is given from now on comes after what their stream was given, or the other way round. Of the CPU, where
 * all is over when it is handed over, they do nothing. False: raised. */
bool hgpy_order_after(hgpy_device *device, uintptr_t handle);
bool hgpy_order_before(hgpy_device *device, uintptr_t handle);
/* Their stream, retained, to work on; NULL: raised. */
hg_stream *hgpy_stream_of_others(hgpy_device *device, uintptr_t handle);
/* What a device's own stream is given from now on comes after what another of its streams was given. */
hg_status hgpy_order_behind(hgpy_device *device, hg_stream *stream);
/* Waits until a stream of the device has done what it was given; faults stay to be told of. */
void hgpy_settle(hgpy_device *device, hg_stream *stream);
/* Releases a storage that work given to their stream so far may use. */
void hgpy_release_after(hgpy_device *device, uintptr_t handle, hgpy_storage *storage);
void hgpy_order_end(hgpy_device *device);

/* ---- memory that is let go behind work (behind.c) ---------------------------------------------------------------- */

/* Releases a storage when a stream has done what it was given so far. */
void hgpy_release_behind(hgpy_device *device, hg_stream *stream, hgpy_storage *storage);
void hgpy_release_reached(hgpy_device *device); /* what work has come to its end behind by now */
void hgpy_release_all_behind(hgpy_device *device); /* waits for the rest */
void hgpy_behind_end(hgpy_device *device);

/* ---- memory (storage.c) ------------------------------------------------------------------------------------------ */

/* Elements in memory: the library's, or somebody else's, which `release` gives back with `owner`. */
struct hgpy_storage {
  uint32_t references;
  bool is_read_only;
  bool is_foreign;
  bool is_blank;   /* it has no buffer: hologram.warm computes nothing (warm.c) */
  bool is_lent;    /* by hgpy_storage_lend */
  bool is_settled; /* of somebody else's on a GPU: no work uses it any more */
  bool was_queued; /* a stream's faults may look for its buffer by a handle as long as there is one */
  hgpy_device *device;
  hg_buffer *buffer;
  void *address; /* on the host; NULL: the device's memory is not the host's */
  uint64_t byte_count;
  const void *memory; /* of somebody else's: where it is */
  void *owner;
  void (*release)(void *owner);
  /* Of the last walk that memory was given up to (given.c): how many leaves of one form are here, NO_FORM: of several;
   * the first of them; the one whose input all of them read, or NONE. */
  uint32_t epoch, leaf_count, first_leaf, home;
  hgpy_storage *next; /* in a list of kept ones */
};

/* New memory; `is_zero`: it reads as zeros. NULL: raised. */
hgpy_storage *hgpy_storage_create(hgpy_device *device, uint64_t byte_count, bool is_zero);
/* New memory that work of the device's stream writes first: in that stream's order. What the host writes to is not to
 * wait for that work. */
hgpy_storage *hgpy_storage_for_work(hgpy_device *device, uint64_t byte_count);
/* What is there instead of memory where nothing is computed. NULL: raised. */
hgpy_storage *hgpy_storage_blank(hgpy_device *device, uint64_t byte_count);
/* For what is computed: new memory, or nothing but that. */
hgpy_storage *hgpy_storage_for_result(hgpy_device *device, uint64_t byte_count);
/* Memory of somebody else's. It takes `owner`, also where it fails. */
hgpy_storage *hgpy_storage_import(hgpy_device *device, void *memory, uint64_t byte_count, void *owner,
                                  void (*release)(void *owner));
/* The same for as long as a call lasts, whose work is on the owner's own stream, if on any: nobody waits for it, and
 * nothing is given back. */
hgpy_storage *hgpy_storage_lend(hgpy_device *device, void *memory, uint64_t byte_count);
/* Of a buffer of the device's executor, which it takes, also where it fails. */
hgpy_storage *hgpy_storage_of(hgpy_device *device, hg_buffer *buffer);
/* A range of the executor's boundary pool. */
hgpy_storage *hgpy_storage_of_boundary(hgpy_device *device, uint64_t offset, uint64_t byte_count);
/* What was taken is given back to its owner; the exception of a refusal stays as it is. */
void hgpy_give_back(void *owner, void (*release)(void *owner));
hgpy_storage *hgpy_storage_retain(hgpy_storage *storage);
void hgpy_storage_release(hgpy_storage *storage);
/* Gives back what a device keeps; and how many bytes of small memory that nobody uses it keeps. */
void hgpy_storage_forget(hgpy_device *device);
uint64_t hgpy_storage_kept_bytes(const hgpy_device *device);

/* ---- nodes (node.c) ---------------------------------------------------------------------------------------------- */

enum { HGPY_FEW = 3, HGPY_MOST_RESULTS = 8, HGPY_MOST_ARGUMENTS = 8, HGPY_MOST_DEPTH = 400 };

/* EXAMPLE: it stands for one of many, of the type `row`; TRANSFORM: values for all of them, or behind a fence
 * (transform.c), which its `row` says. GONE: it was DATA, and its memory holds the result of a computation that it was
 * given up to. */
typedef enum hgpy_kind {
  HGPY_DATA,
  HGPY_SCALAR,
  HGPY_CALL,
  HGPY_MANY,
  HGPY_RESULT,
  HGPY_GRADIENT,
  HGPY_GONE,
  HGPY_EXAMPLE,
  HGPY_TRANSFORM
} hgpy_kind;

typedef enum hgpy_transform { HGPY_VMAP, HGPY_CHECKPOINT, HGPY_CUSTOM } hgpy_transform;

typedef struct hgpy_node {
  uint32_t references;
  uint32_t holders;    /* arrays among them: what somebody may still ask for is kept when it is computed */
  uint8_t kind;        /* hgpy_kind */
  union {
    uint8_t is_integer; /* SCALAR: which of the two it is */
    uint8_t numerics;   /* CALL, MANY: of its contractions (hgpy_numerics) */
  };
  uint8_t is_kept;     /* DATA that keeps its inputs, for gradients */
  uint8_t argument_count;
  uint16_t row;        /* CALL, MANY: of the table */
  uint16_t result;     /* RESULT, GRADIENT: which */
  uint32_t input_count;
  uint32_t depth;
  uint32_t epoch, number; /* of the last walk that came by */
  uint32_t examples;      /* it is made of: bits, of the calls of vmap that are under way around each other */
  uint64_t made;          /* its number among all nodes */
  uint64_t trace;         /* of which it is a leaf; 0: of none */
  union {
    double real;
    int64_t integer;
  } value;
  hgpy_device *device; /* NULL: any */
  hgpy_storage *storage;
  struct hgpy_node **inputs; /* NULL: absent */
  struct hgpy_node *few[HGPY_FEW];
  hg_argument *arguments;
  struct hgpy_node **results; /* MANY, GRADIENT: its results that live, not held; NULL: gone, or computed */
  uint32_t result_count;
  struct hgpy_node *next;    /* in a list of what is to be released, or of free ones */
  hg_tensor tensor;          /* type and shape; of DATA all of it but the buffer */
} hgpy_node;

extern uint64_t hgpy_nodes_made;
hgpy_node *hgpy_node_retain(hgpy_node *node);
void hgpy_node_release(hgpy_node *node);
/* DATA over a storage, which it takes. `like`: type, rank, shape, offset, strides. */
hgpy_node *hgpy_node_data(hgpy_storage *storage, const hg_tensor *like);
hgpy_node *hgpy_node_real(uint32_t type, double value);
hgpy_node *hgpy_node_integer(uint32_t type, int64_t value);
/* An operation on nodes (borrowed), recorded. The results are new references; their number, or -1 and raised. */
int hgpy_record_all(uint32_t row, hgpy_node *const *inputs, uint32_t input_count, const hg_argument *arguments,
                    uint32_t argument_count, hgpy_node **results);
/* Of an operation with one result. */
hgpy_node *hgpy_record(uint32_t row, hgpy_node *const *inputs, uint32_t input_count, const hg_argument *arguments,
                       uint32_t argument_count);
/* Views: of DATA they cost nothing. */
hgpy_node *hgpy_view_slice(hgpy_node *node, int64_t axis, int64_t start, int64_t stop, int64_t step);
hgpy_node *hgpy_view_reshape(hgpy_node *node, uint32_t rank, const uint64_t *shape);
hgpy_node *hgpy_view_permute(hgpy_node *node, const int64_t *axes);
hgpy_node *hgpy_view_broadcast(hgpy_node *node, uint32_t rank, const uint64_t *shape);
hgpy_node *hgpy_cast(hgpy_node *node, uint32_t type);
hgpy_node *hgpy_same(hgpy_node *node); /* recorded: when it is computed it has memory of its own */
/* Tracing for gradients: what is recorded meanwhile keeps its inputs when it is computed. */
extern uint32_t hgpy_tracing;
extern bool hgpy_is_eager;
/* The value itself, its gradients (it has one element, or a cotangent) by the first `count` of `wrt`, and the `beside`
 * nodes that follow there, themselves: all of them are computed together; false: raised. */
bool hgpy_record_gradients(hgpy_node *value, hgpy_node *cotangent, hgpy_node *const *wrt, uint32_t count,
                           uint32_t beside, hgpy_node **results);
/* A node of several inputs (NULL: absent) and results of these types and shapes; `examples`: bits that the results are
 * free of. */
bool hgpy_record_transform(hgpy_transform what, hgpy_node *const *inputs, uint32_t count, const hg_argument *argument,
                           uint32_t examples, const hg_tensor *tensors, uint32_t result_count, hgpy_node **results);
hgpy_node *hgpy_node_example(const hg_tensor *like, hgpy_device *device, uint32_t examples);
/* A result that its call need not know any more. */
void hgpy_leave_call(hgpy_node *result);

/* ---- gradients that are being recorded (trace.c) ----------------------------------------------------------------- */

extern uint64_t hgpy_trace_now; /* the innermost trace; 0: there is none. Later ones have higher numbers */
PyObject *hgpy_begin_trace(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_end_trace(PyObject *module, PyObject *number);
PyObject *hgpy_array_twin(PyObject *array); /* another Array of the same node */
/* 1: a gradient by the leaves of a trace that began after `after` flows to the node; -1: raised. */
int hgpy_depends(hgpy_node *node, uint64_t after);
/* The same of several, in another way than through the ends. */
int hgpy_depends_beside(hgpy_node *const *nodes, uint32_t count, hgpy_node *const *ends, uint32_t end_count,
                        uint64_t after);
/* Whether the array may be given the value: false: raised. */
bool hgpy_may_assign(PyObject *self, hgpy_node *value);
/* Whether what is assigned to the array is part of what is recorded. */
bool hgpy_is_recorded(PyObject *self);

/* A trace without gradients: arrays that are made from now on are a function's own, as are those of a nest. Its number;
 * 0: raised. `examples`: the bit of those that it has. */
uint64_t hgpy_begin_own(PyObject *nest, uint32_t examples);
extern uint32_t hgpy_examples_now; /* of all calls of vmap that are under way */

/* ---- values for many examples, and behind fences (transform.c) --------------------------------------------------- */

PyObject *hgpy_begin_map(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_map(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_checkpoint(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_custom_gradient(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_count_nodes(PyObject *module, PyObject *unused);
/* Whether a value is the same for all examples: false: raised. */
bool hgpy_is_one(const hgpy_node *node);

/* ---- from arrays to memory (door.c) ------------------------------------------------------------------------------ */

/* Python numbers drop a gradient; memory that others read and may write must not. */
typedef enum hgpy_purpose { HGPY_AS_NUMBERS, HGPY_AS_MEMORY } hgpy_purpose;
/* Makes DATA of a node whose elements are to be read or shared from now on; false: raised. Nothing else does that. */
bool hgpy_expose(hgpy_node *node, hgpy_purpose purpose);

/* Of DATA: whether it has elements; false: raised. */
bool hgpy_has_elements(const hgpy_node *node);

/* ---- calls that compute nothing (warm.c) ------------------------------------------------------------------------- */

extern uint32_t hgpy_warming_count;
bool hgpy_is_warming_here(void);
/* Whether this thread is in a call of hologram.warm. */
static inline bool hgpy_is_warming(void) { return hgpy_warming_count > 0 && hgpy_is_warming_here(); }
/* The array has its value again when the call ends; false: raised. */
bool hgpy_warm_note(PyObject *array);
PyObject *hgpy_begin_warm(PyObject *module, PyObject *unused);
PyObject *hgpy_end_warm(PyObject *module, PyObject *number);
PyObject *hgpy_blank(PyObject *module, PyObject *const *values, Py_ssize_t count);

/* ---- computing (evaluate.c) -------------------------------------------------------------------------------------- */

/* Memory that is given up: the result may be written where the elements of `given` are, which nobody can read then. */
typedef struct hgpy_pair {
  hgpy_node *given, *result;
} hgpy_pair;

/* Makes DATA of the nodes; false: raised. */
bool hgpy_evaluate(hgpy_node *const *nodes, uint32_t count);
bool hgpy_evaluate_onto(hgpy_node *const *nodes, uint32_t count, const hgpy_pair *pairs, uint32_t pair_count);
/* Computes a node into memory that is there: of its shape and type. */
bool hgpy_evaluate_into(hgpy_node *node, hgpy_storage *storage, const hg_tensor *like);
/* The report of what computing a node would launch: text, or JSON. A new str. */
PyObject *hgpy_explain(hgpy_node *node, bool as_json);
/* A copy on another device. */
hgpy_node *hgpy_node_on(hgpy_node *node, hgpy_device *device);
/* DATA with memory of its own. */
hgpy_node *hgpy_copy(hgpy_node *node);
/* The node, computed and retained, or a copy of one whose memory is somebody else's. */
hgpy_node *hgpy_own(hgpy_node *node);
/* DATA whose elements lie side by side in C order: the node itself, retained, or a copy, which strict() refuses but
 * where one `is_asked_for`. */
hgpy_node *hgpy_dense(hgpy_node *node, bool is_asked_for);
/* Forgets the executables of a device. */
void hgpy_forget(const hgpy_device *device);

/* ---- numbers (number.c) ------------------------------------------------------------------------------------------ */

/* What most numbers are is seen by their type; the limited API's checks are calls. */
static inline bool hgpy_is_float(PyObject *object) {
  if (Py_TYPE(object) == &PyFloat_Type) return true;
  return Py_TYPE(object) != &PyLong_Type && Py_TYPE(object) != &PyBool_Type && PyFloat_Check(object);
}
static inline bool hgpy_is_number(PyObject *object) { /* an int (so a bool, too) or a float */
  return hgpy_is_float(object) || Py_TYPE(object) == &PyLong_Type || PyLong_Check(object);
}
/* Python's number of a number, NumPy's scalars among them: a new reference; NULL without an exception: it is none. */
PyObject *hgpy_plain_number(PyObject *object);
bool hgpy_is_scalar(PyObject *object); /* NumPy's, of numbers or not */
/* Whether an integer type, or bool, holds the int; the second raises OverflowError where not. `value`: its bits. */
bool hgpy_integer_fits(PyObject *number, uint32_t type, int64_t *value);
bool hgpy_integer_as(const char *who, PyObject *number, uint32_t type, int64_t *value);
/* A number, NumPy's too, as one of a type. NULL: OverflowError, or TypeError of what is none, and of floats where the
 * type has integers. `who` begins the sentence. */
hgpy_node *hgpy_number_node(const char *who, PyObject *object, uint32_t type);
uint32_t hgpy_kind_rank(uint32_t type); /* 0 of bool, 1 of integers, 2 of floats, 3 of 8-bit floats */
/* The type of a number of Python beside arrays of a type, and the number as one of it. */
uint32_t hgpy_type_beside(PyObject *number, uint32_t type);
hgpy_node *hgpy_operand_node(const char *who, PyObject *number, uint32_t type);
/* The same in a comparison, which is exact: where no float is the int, the nearest above or below, or none. */
typedef enum hgpy_bound { HGPY_ABOVE, HGPY_BELOW, HGPY_SAME, HGPY_UNCOMPARED } hgpy_bound;
hgpy_node *hgpy_compared_node(const char *who, PyObject *number, uint32_t type, hgpy_bound bound);

/* ---- operations (operations.c, rows.c) --------------------------------------------------------------------------- */

enum {
  HGPY_ROW_FIRST = -1,
#define HG_OPERATION(code, id, kind, inputs, arguments, types, formula, gradient, meaning) HGPY_ROW_##id,
#include "hologram/operations.def"
#undef HG_OPERATION
  HGPY_ROW_COUNT
};

int hgpy_operations_prepare(void);
int hgpy_operations_add(PyObject *module);
hg_op hgpy_row_op(uint32_t number);
const char *hgpy_row_name(uint32_t number);
/* The input whose array the scalar in place `input` takes its type from must have the same words. */
bool hgpy_row_same_types(uint32_t row, uint32_t input, uint32_t other);
/* Whether arrays among an operation's inputs, of which `count` are given by position, are of several types that must
 * become one; or of integers that are divided. ATLAS_NONE: of no array. */
bool hgpy_row_mixes(uint32_t row, const uint32_t *types, Py_ssize_t count, Py_ssize_t total);
/* Whether the value at that place, or of that name where it has one, is an input; others are arguments. */
bool hgpy_row_is_input(uint32_t row, Py_ssize_t place, PyObject *name);
bool hgpy_row_has_kinds(uint32_t row); /* whether its inputs are of several types */
/* row_inputs(name): each input's name, and a number that inputs of one type share. */
PyObject *hgpy_row_inputs(PyObject *module, PyObject *name);
/* The table's methods of arrays, ended by a NULL name; `room` functions fit. */
uint32_t hgpy_operations_methods(PyMethodDef *methods, uint32_t room);
int hgpy_row_find(const char *name);        /* -1: there is none */
const char *hgpy_row_text(uint32_t number); /* its docstring */
/* Inputs, then arguments, as Python gives them. */
PyObject *hgpy_call_row(uint32_t number, PyObject *const *values, Py_ssize_t count, PyObject *names);
/* An operation on two objects, one of them an array: NotImplemented where the other is nothing it knows. */
PyObject *hgpy_binary(uint32_t number, PyObject *a, PyObject *b);
PyObject *hgpy_unary(uint32_t number, PyObject *x);

/* ---- arrays (array.c, index.c, assign.c, exchange.c, dlpack.c) --------------------------------------------------- */

typedef struct hgpy_array {
  PyObject_HEAD
  hgpy_node *node;
  uint64_t born; /* the innermost trace when it was made; 0: there was none */
  struct hgpy_shown *shown; /* memory whose address was given out: kept as long as the array, and not written to */
  PyObject *weak; /* references to it */
} hgpy_array;

extern PyTypeObject *hgpy_array_type;
int hgpy_array_add(PyObject *module);
static inline bool hgpy_is_array(PyObject *object) { return Py_TYPE(object) == hgpy_array_type; }
/* Takes the node, also where it fails; NULL gives NULL. */
PyObject *hgpy_array_of(hgpy_node *node);
hgpy_node *hgpy_array_node(PyObject *array); /* borrowed */
bool hgpy_array_set(PyObject *self, hgpy_node *node); /* takes the node; false: raised, and nothing is changed */
void hgpy_array_put(PyObject *self, hgpy_node *node); /* the same, where a call of hologram.warm does not count */
/* A shape of Python: an int, or a sequence of ints, none below 0; false: raised. */
bool hgpy_shape_from(PyObject *object, uint64_t *shape, uint32_t *rank);
/* Such numbers of any sign: axes, and shapes of which a size is to be found out. */
bool hgpy_integers_from(PyObject *object, int64_t *numbers, uint32_t *count);
PyObject *hgpy_shape_object(uint32_t rank, const uint64_t *shape);

/* objects.c: methods that are written in Python, with a tuple and a dict of arguments. */
PyObject *hgpy_array_copied(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_reduced(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_formatted(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_ufunc(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_flatten(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_ravel(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_copy(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_repeat(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_sort(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_argsort(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_cumsum(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_diagonal(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_trace(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_diag(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_inner(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_kron(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_diff(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_cov(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_corrcoef(PyObject *self, PyObject *arguments, PyObject *names);
PyObject *hgpy_array_listed(PyObject *self, PyObject *arguments, PyObject *names);
/* near.c: names of other libraries: their objects in the type of arrays; what an argument is here, or NULL. */
int hgpy_near_add(PyObject *array_type);
const char *hgpy_near_argument(const char *name);
PyObject *hgpy_near(PyObject *module, PyObject *name);
PyObject *hgpy_near_word(PyObject *module, PyObject *name);
/* A new Array of one of NumPy's arrays or a list: a copy, since what is recorded is read later; on the default device
 * where that is NULL. NULL: it is neither, or raised. */
PyObject *hgpy_array_from(PyObject *object, hgpy_device *device);
/* kept(value): an argument of a call as it is now, for what is done later: of lists, tuples and arrays a copy. */
PyObject *hgpy_kept(PyObject *module, PyObject *value);

PyObject *hgpy_get_item(PyObject *self, PyObject *key);
int hgpy_set_item(PyObject *self, PyObject *key, PyObject *value);
PyObject *hgpy_value_of(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_key_is_by_places(PyObject *module, PyObject *key);
PyObject *hgpy_settle_array(PyObject *module, PyObject *array);
PyObject *hgpy_fitted(PyObject *module, PyObject *const *values, Py_ssize_t count);

/* What Python may hand over: a node over an object's own memory, without a copy, where it has the buffer protocol or
 * DLPack. may_copy: 0 never, 1 where it must be, 2 always. NULL: raised. */
hgpy_node *hgpy_share(PyObject *object, hgpy_device *device, int may_copy);
int hgpy_array_get_buffer(PyObject *self, Py_buffer *view, int flags);
void hgpy_array_release_buffer(PyObject *self, Py_buffer *view);
PyObject *hgpy_array_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
PyObject *hgpy_array_dlpack_device(PyObject *self, PyObject *nothing);
PyObject *hgpy_from_dlpack(PyObject *object, hgpy_device *device); /* NULL: the one where it is */
/* By the table of C functions of an object's type, in order with its library's current stream; None: it has none, or
 * the memory is not the executor's. What comes out can be written. */
PyObject *hgpy_import_by_table(PyObject *object, hgpy_device *device); /* NULL: the one where it is */
PyObject *hgpy_export_by_table(PyObject *array, PyTypeObject *type, bool is_own); /* is_own: of hgpy_own(array) */
/* An array over memory of an object of a type's family, for as long as a call lasts: nobody may change what the object
 * is meanwhile. On the other device, unless that is NULL or has no such memory. NULL with nothing raised: there is no
 * table, or it cannot be shared. */
PyObject *hgpy_borrow_by_table(PyObject *object, PyTypeObject *type, hgpy_device *other);
PyObject *hgpy_dlpack_table(void); /* a capsule: __dlpack_c_exchange_api__ */
/* A node over memory of others: element 0 is at `first`, strides are in elements. It takes the owner, and raises a
 * BufferError where no memory can hold such a tensor. */
hgpy_node *hgpy_node_over(hgpy_device *device, void *first, hg_tensor *tensor, bool is_read_only, void *owner,
                          void (*release)(void *));
void hgpy_release_object(void *object); /* of memory whose owner is an object of Python */
/* __array_interface__ and __cuda_array_interface__, and what has them. */
PyObject *hgpy_array_interface(PyObject *self, void *of_cuda);
void hgpy_array_hide(hgpy_array *array); /* its addresses are used no more */
PyObject *hgpy_adopt(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_read_arrow(PyObject *module, PyObject *const *values, Py_ssize_t count); /* arrow.c */
PyObject *hgpy_asarray(PyObject *object); /* hologram.asarray(object) */
PyObject *hgpy_load_npy(PyObject *module, PyObject *const *values, Py_ssize_t count); /* files.c */
PyObject *hgpy_load_safetensors(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_save_npy(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_save_safetensors(PyObject *module, PyObject *const *values, Py_ssize_t count);
/* Fills a view of memory; `view->internal` is the caller's. */
int hgpy_fill_view(Py_buffer *view, PyObject *object, hgpy_storage *storage, const hg_tensor *tensor, bool is_read_only,
                   int flags);

/* ---- buffers and programs of SDK 0.1's kind (buffer.c, program.c, sdk.c) ----------------------------------------- */

typedef struct hgpy_buffer {
  PyObject_HEAD
  hgpy_storage *storage; /* NULL: freed */
  uint32_t type;
  uint64_t count;
  Py_ssize_t exports;
} hgpy_buffer;

extern PyTypeObject *hgpy_buffer_type;
int hgpy_buffer_add(PyObject *module);
PyObject *hgpy_buffer_of(hgpy_storage *storage, uint32_t type, uint64_t count); /* takes the storage */
/* The buffer, if it is one and not freed; NULL: raised. */
hgpy_buffer *hgpy_buffer_check(PyObject *object, const char *what);
hg_tensor hgpy_buffer_tensor(const hgpy_buffer *buffer, uint64_t count);
int hgpy_program_add(PyObject *module);
int hgpy_sdk_add(PyObject *module);

/* ---- operations on tensors of other libraries (tensors.c) -------------------------------------------------------- */

int hgpy_tensors_add(PyObject *module);
PyObject *hgpy_run_on_tensors(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_tensors_forward(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_tensors_backward(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_on_tensors(PyObject *module, PyObject *const *values, Py_ssize_t count);

/* ---- nests of arrays (trees.c) ----------------------------------------------------------------------------------- */

/* arrays_of(nest, is_strict): the arrays in it, in order. rebuild(nest, iterator): the same with the next values in
 * place of its arrays. has_numbers_only(nest): whether it is of lists and tuples of Python's numbers. have_one_form(a,
 * b): whether the arrays of two lists have the same shapes and types. statistics_of(nest): of each array whether it is
 * statistics that a layer keeps, which have no floats or lie below a key that begins with running_.
 * compute_onto(results, given, onto): computes results; onto, some of them, may be written where as many given are. */
PyObject *hgpy_arrays_in(PyObject *nest, bool is_strict); /* the same: a list */
PyObject *hgpy_arrays_of(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_rebuild(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_has_numbers_only(PyObject *module, PyObject *tree);
PyObject *hgpy_statistics_of(PyObject *module, PyObject *tree);
PyObject *hgpy_have_one_form(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_compute_onto(PyObject *module, PyObject *const *values, Py_ssize_t count);

/* ---- small things ------------------------------------------------------------------------------------------------ */

PyTypeObject *hgpy_add_type(PyObject *module, PyType_Spec *spec);
/* Frees an object of a heap type. */
void hgpy_free_object(PyObject *self);
uint64_t hgpy_hash_words(const uint64_t *words, size_t count);

#endif
