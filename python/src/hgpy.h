/* hgpy.h - the extension module: what its files share. It uses the public headers of the library and the limited API of
 * CPython 3.11, so that one binary serves every later CPython.
 *
 * An Array refers to a node. A node is an immutable value: elements in memory (DATA), a Python number (SCALAR), or an
 * operation that is recorded but not computed (CALL; RESULT is one of several results of a call). Reading an array
 * computes everything it needs as one computation of ops.h, and turns it into DATA.
 *
 * Threads: everything here runs with the GIL, which is released only around long calls of the library; the caller holds
 * references to everything that these use. So reference counts are plain integers.
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
/* Raises the exception of a status with the library's last sentence. Returns NULL, so that callers can return it. */
PyObject *hgpy_raise(hg_status status);
/* True for HG_OK; raises for any other status. */
bool hgpy_ok(hg_status status);
extern PyObject *hgpy_error; /* hologram.Error */

/* ---- calls without the GIL (fork.c) ------------------------------------------------------------------------------ */

int hgpy_fork_add(void);
/* Called around every library call without the GIL, and around the use of a queue. */
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
/* The type that an object names (a DType, "float32", a NumPy dtype or scalar type); ATLAS_NONE: raised. */
uint32_t hgpy_type_from(PyObject *object);
bool hgpy_is_type(PyObject *object);
const char *hgpy_type_name(uint32_t type);       /* "float32" */
const char *hgpy_type_format(uint32_t type);     /* "f" as in struct; NULL: it has none */
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

/* Shared by an Executor and everything made on it. */
typedef struct hgpy_device {
  uint32_t references;
  struct hgpy_device *next; /* in the list of all devices */
  hg_backend_id backend;
  hg_executor *executor;
  hg_stream *stream; /* on a GPU: takes work, and is waited for when something is read. NULL: CPU */
  uint32_t number;   /* its number among the backend's devices */
  hg_event *mark;    /* order.c: a point in a stream that another stream shall follow; NULL: not made yet */
  hgpy_foreign foreign[HGPY_FOREIGN]; /* the last streams of other libraries */
  uint32_t next_foreign;
  hgpy_behind *behind, *spare_behind; /* pending releases, the oldest first (behind.c) */
  uint32_t behind_count;
  uint64_t behind_bytes;
  hgpy_storage *kept[HGPY_KEPT_LISTS]; /* on the CPU: unused small memory by size (storage.c) */
  uint32_t kept_count;
  hgpy_storage *lent[HGPY_LENT]; /* returned loans of other libraries' memory (storage.c) */
  uint64_t evictions; /* of its executables, seen so far (evaluate.c) */
  hg_stream *queue;  /* for work that is worth an interruptible wait; NULL: not made yet (wait.c) */
} hgpy_device;

int hgpy_executor_add(PyObject *module);
/* The device of arrays without an executor: the best one, opened at the first call. Borrowed; NULL: raised. */
hgpy_device *hgpy_default_device(void);
/* The default device of a backend and number: the overall default if it is that one. */
hgpy_device *hgpy_device_at(hg_backend_id backend, uint32_t number);
/* Returns the cached memory of other executors of the same device to the system. False: there are none. */
bool hgpy_trim_others(const hgpy_device *device);
void hgpy_lose_default_device(void); /* in a child of fork: the next call makes another */
hgpy_device *hgpy_device_retain(hgpy_device *device);
void hgpy_device_release(hgpy_device *device);
/* The device of an Executor object; NULL: raised, because it is none or closed. Borrowed. */
hgpy_device *hgpy_device_of(PyObject *object);
bool hgpy_is_executor(PyObject *object);
/* An Executor object for a device. */
PyObject *hgpy_executor_for(hgpy_device *device);

/* ---- hg.strict() (strict.c) -------------------------------------------------------------------------------------- */

int hgpy_strict_add(PyObject *module);
extern bool hgpy_is_strict;
/* Each is true if strict() is off; false: raised. `format`: what is refused and what to write instead. */
bool hgpy_allows(const char *format, ...);
bool hgpy_allows_device(const hgpy_device *device); /* for devices chosen by 'auto' */
bool hgpy_allows_kernel(const hgpy_device *device, hg_kernel *kernel);
bool hgpy_allows_executable(const hgpy_device *device, hg_executable *executable);

/* ---- hg.numerics() (numerics.c) ---------------------------------------------------------------------------------- */

int hgpy_numerics_add(PyObject *module);
extern PyObject *hgpy_get_numerics; /* NULL: not used yet */
int hgpy_ask_numerics(void);
/* Called before compiling for a device: looks for cuBLASLt once, if numerics() has been used. False: raised. */
bool hgpy_find_vendor(const hgpy_device *device);
/* The numerics of contractions recorded now: HG_NUMERICS_FAST and HG_NUMERICS_TF32. -1: raised. */
static inline int hgpy_numerics(void) { return hgpy_get_numerics == NULL ? 0 : hgpy_ask_numerics(); }
int hgpy_set_numerics(int flags);      /* returns the old flags; -1: raised */
void hgpy_restore_numerics(int flags); /* keeps a raised exception */

/* ---- waiting (wait.c) -------------------------------------------------------------------------------------------- */

bool hgpy_wait_prepare(void);
void hgpy_set_main_thread(unsigned long thread); /* the thread that handles signals */
/* Called during long calls (hg_executor_desc.ask), with or without the GIL. Not 0: a signal handler has raised. */
int hgpy_ask(void *unused);
void hgpy_pause(int64_t microseconds); /* without the GIL; a signal may end it */
/* Waits for the stream's work, and raises its fault or what a signal handler raises; false: raised. */
bool hgpy_stream_wait(hg_stream *stream);
bool hgpy_device_wait(hgpy_device *device);
/* A queue for work that may take long; its user calls hgpy_queue_wait. NULL: use the device's stream, or work in the
 * call. */
hg_stream *hgpy_queue_take(hgpy_device *device);
/* `given` is the status of submitting the work. If the wait is interrupted, the storages are held until the work is
 * over. False: raised. */
bool hgpy_queue_wait(hgpy_device *device, hg_stream *queue, hg_status given, hgpy_storage *const *storages,
                     uint32_t count);

/* ---- order beside streams of other libraries (order.c) ----------------------------------------------------------- */

/* Orders later work of the device after present work of their stream, and the other way round. On the CPU, where work
 * is over when it is handed over, they do nothing. False: raised. */
bool hgpy_order_after(hgpy_device *device, uintptr_t handle);
bool hgpy_order_before(hgpy_device *device, uintptr_t handle);
/* A stream of another library, retained, to work on; NULL: raised. */
hg_stream *hgpy_stream_of_others(hgpy_device *device, uintptr_t handle);
/* Orders later work of the device's own stream after present work of another of its streams. */
hg_status hgpy_order_behind(hgpy_device *device, hg_stream *stream);
/* Waits until a stream of the device has done its present work; its faults are still to be reported. */
void hgpy_settle(hgpy_device *device, hg_stream *stream);
/* Releases a storage that present work of their stream may use. */
void hgpy_release_after(hgpy_device *device, uintptr_t handle, hgpy_storage *storage);
void hgpy_order_end(hgpy_device *device);

/* ---- releases behind work (behind.c) ----------------------------------------------------------------------------- */

/* Releases a storage when a stream has done its present work. */
void hgpy_release_behind(hgpy_device *device, hg_stream *stream, hgpy_storage *storage);
void hgpy_release_reached(hgpy_device *device); /* those whose work has ended */
void hgpy_release_all_behind(hgpy_device *device); /* waits for the work of the others */
void hgpy_behind_end(hgpy_device *device);

/* ---- memory (storage.c) ------------------------------------------------------------------------------------------ */

/* Elements in memory: the library's, or of another owner, to whom `release` returns it. */
struct hgpy_storage {
  uint32_t references;
  bool is_read_only;
  bool is_foreign;
  bool is_blank;   /* without a buffer: hologram.warm computes nothing (warm.c) */
  bool is_lent;    /* made by hgpy_storage_lend */
  bool is_settled; /* of another owner, on a GPU: no work uses it any more */
  bool was_queued; /* a stream's faults may look up its buffer by a handle */
  hgpy_device *device;
  hg_buffer *buffer;
  void *address; /* on the host; NULL: the host cannot access the device's memory */
  uint64_t byte_count;
  const void *memory; /* memory of another owner */
  void *owner;
  void (*release)(void *owner);
  /* Of the last walk with donated memory (given.c): how many leaves of one form are here, NO_FORM: of several; the
   * first of them; the one whose input all of them read, or NONE. */
  uint32_t epoch, leaf_count, first_leaf, home;
  hgpy_storage *next; /* in a list of unused ones */
};

/* New memory; `is_zero`: it reads as zeros. NULL: raised. */
hgpy_storage *hgpy_storage_create(hgpy_device *device, uint64_t byte_count, bool is_zero);
/* New memory, first written by work of the device's stream, in that stream's order. (Memory that the host writes must
 * not wait for that work.) */
hgpy_storage *hgpy_storage_for_work(hgpy_device *device, uint64_t byte_count);
/* A storage without memory, where nothing is computed. NULL: raised. */
hgpy_storage *hgpy_storage_blank(hgpy_device *device, uint64_t byte_count);
/* For a result: new memory, or a blank storage. */
hgpy_storage *hgpy_storage_for_result(hgpy_device *device, uint64_t byte_count);
/* Memory of another owner. Takes `owner`, even if it fails. */
hgpy_storage *hgpy_storage_import(hgpy_device *device, void *memory, uint64_t byte_count, void *owner,
                                  void (*release)(void *owner));
/* The same for the length of a call, whose work, if any, is on the owner's own stream: nobody waits, and nothing is
 * returned. */
hgpy_storage *hgpy_storage_lend(hgpy_device *device, void *memory, uint64_t byte_count);
/* For a buffer of the device's executor; takes it, even if it fails. */
hgpy_storage *hgpy_storage_of(hgpy_device *device, hg_buffer *buffer);
/* A range of the executor's boundary pool. */
hgpy_storage *hgpy_storage_of_boundary(hgpy_device *device, uint64_t offset, uint64_t byte_count);
/* Returns memory to its owner; keeps a raised exception. */
void hgpy_give_back(void *owner, void (*release)(void *owner));
hgpy_storage *hgpy_storage_retain(hgpy_storage *storage);
void hgpy_storage_release(hgpy_storage *storage);
/* Drops a device's cached memory; the number of bytes of cached small memory. */
void hgpy_storage_forget(hgpy_device *device);
uint64_t hgpy_storage_kept_bytes(const hgpy_device *device);

/* ---- nodes (node.c) ---------------------------------------------------------------------------------------------- */

enum { HGPY_FEW = 3, HGPY_MOST_RESULTS = 8, HGPY_MOST_ARGUMENTS = 8, HGPY_MOST_DEPTH = 400 };

/* EXAMPLE: one of many, of the type `row`; TRANSFORM: values for all examples, or behind a fence (transform.c), by its
 * `row`. GONE: former DATA, whose memory was donated and holds a result. */
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
  uint32_t holders;    /* arrays among the references: if there are any, a value is kept when it is computed */
  uint8_t kind;        /* hgpy_kind */
  union {
    uint8_t is_integer; /* SCALAR: 1 for an int, 0 for a float */
    uint8_t numerics;   /* CALL, MANY: numerics of its contractions (hgpy_numerics) */
  };
  uint8_t is_kept;     /* DATA that keeps its inputs for gradients */
  uint8_t argument_count;
  uint16_t row;        /* CALL, MANY: row of the table */
  uint16_t result;     /* RESULT, GRADIENT: its index */
  uint32_t input_count;
  uint32_t depth;
  uint32_t epoch, number; /* of the last walk that visited it */
  uint32_t examples;      /* a bit for each call of vmap under way whose examples it depends on */
  uint64_t made;          /* its number among all nodes */
  uint64_t trace;         /* the trace of which it is a leaf; 0: none */
  union {
    double real;
    int64_t integer;
  } value;
  hgpy_device *device; /* NULL: any */
  hgpy_storage *storage;
  struct hgpy_node **inputs; /* NULL: absent */
  struct hgpy_node *few[HGPY_FEW];
  hg_argument *arguments;
  struct hgpy_node **results; /* MANY, GRADIENT: its live results, not referenced; NULL: released or computed */
  uint32_t result_count;
  struct hgpy_node *next;    /* in a list of nodes to release, or of free nodes */
  hg_tensor tensor;          /* type and shape; for DATA everything but the buffer */
} hgpy_node;

extern uint64_t hgpy_nodes_made;
hgpy_node *hgpy_node_retain(hgpy_node *node);
void hgpy_node_release(hgpy_node *node);
/* DATA over a storage, which it takes. `like`: type, rank, shape, offset, strides. */
hgpy_node *hgpy_node_data(hgpy_storage *storage, const hg_tensor *like);
hgpy_node *hgpy_node_real(uint32_t type, double value);
hgpy_node *hgpy_node_integer(uint32_t type, int64_t value);
/* Records an operation on nodes (borrowed). The results are new references; returns their number, or -1: raised. */
int hgpy_record_all(uint32_t row, hgpy_node *const *inputs, uint32_t input_count, const hg_argument *arguments,
                    uint32_t argument_count, hgpy_node **results);
/* Records an operation with one result. */
hgpy_node *hgpy_record(uint32_t row, hgpy_node *const *inputs, uint32_t input_count, const hg_argument *arguments,
                       uint32_t argument_count);
/* Views. On DATA they are free. */
hgpy_node *hgpy_view_slice(hgpy_node *node, int64_t axis, int64_t start, int64_t stop, int64_t step);
hgpy_node *hgpy_view_reshape(hgpy_node *node, uint32_t rank, const uint64_t *shape);
hgpy_node *hgpy_view_permute(hgpy_node *node, const int64_t *axes);
hgpy_node *hgpy_view_broadcast(hgpy_node *node, uint32_t rank, const uint64_t *shape);
hgpy_node *hgpy_cast(hgpy_node *node, uint32_t type);
hgpy_node *hgpy_same(hgpy_node *node); /* recorded: the result has memory of its own */
/* Tracing for gradients: nodes recorded meanwhile keep their inputs when they are computed. */
extern uint32_t hgpy_tracing;
extern bool hgpy_is_eager;
/* Records the value, its gradients (it has one element, or a cotangent) by the first `count` of `wrt`, and the `beside`
 * nodes that follow in `wrt`: all are computed together, and replace the nodes there. False: raised. */
bool hgpy_record_gradients(hgpy_node *value, hgpy_node *cotangent, hgpy_node *const *wrt, uint32_t count,
                           uint32_t beside, hgpy_node **results);
/* Records a node of several inputs (NULL: absent) with results of these types and shapes, which do not depend on the
 * `examples`. */
bool hgpy_record_transform(hgpy_transform what, hgpy_node *const *inputs, uint32_t count, const hg_argument *argument,
                           uint32_t examples, const hg_tensor *tensors, uint32_t result_count, hgpy_node **results);
hgpy_node *hgpy_node_example(const hg_tensor *like, hgpy_device *device, uint32_t examples);
/* Detaches a result from its call. */
void hgpy_leave_call(hgpy_node *result);

/* ---- traces for gradients (trace.c) ------------------------------------------------------------------------------ */

extern uint64_t hgpy_trace_now; /* the innermost trace; 0: none. Later traces have higher numbers */
PyObject *hgpy_begin_trace(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_end_trace(PyObject *module, PyObject *number);
PyObject *hgpy_array_twin(PyObject *array); /* another Array of the same node */
/* 1: the node depends on leaves of a trace that began after `after`; -1: raised. */
int hgpy_depends(hgpy_node *node, uint64_t after);
/* 1: some of the nodes do, on a path around the `ends`; -1: raised. */
int hgpy_depends_beside(hgpy_node *const *nodes, uint32_t count, hgpy_node *const *ends, uint32_t end_count,
                        uint64_t after);
/* Checks that the array may be given the value. False: raised. */
bool hgpy_may_assign(PyObject *self, hgpy_node *value);
/* 1 if assignments to the array are recorded. */
bool hgpy_is_recorded(PyObject *self);

/* Begins a trace without gradients: arrays made from now on belong to the function, as do those of a nest. Its number;
 * 0: raised. `examples`: its bit. */
uint64_t hgpy_begin_own(PyObject *nest, uint32_t examples);
extern uint32_t hgpy_examples_now; /* bits of all calls of vmap under way */

/* ---- values for many examples, and behind fences (transform.c) --------------------------------------------------- */

PyObject *hgpy_begin_map(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_map(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_checkpoint(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_custom_gradient(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_count_nodes(PyObject *module, PyObject *unused);
/* Checks that a value is the same for all examples. False: raised. */
bool hgpy_is_one(const hgpy_node *node);

/* ---- from arrays to memory (door.c) ------------------------------------------------------------------------------ */

/* Converting to Python numbers drops a gradient; handing out memory that others can read and write must not. */
typedef enum hgpy_purpose { HGPY_AS_NUMBERS, HGPY_AS_MEMORY } hgpy_purpose;
/* Turns a node into DATA whose elements can be read or shared; false: raised. Nothing else does that. */
bool hgpy_expose(hgpy_node *node, hgpy_purpose purpose);

/* Checks that DATA has elements; false: raised. */
bool hgpy_has_elements(const hgpy_node *node);

/* ---- calls that compute nothing (warm.c) ------------------------------------------------------------------------- */

extern uint32_t hgpy_warming_count;
bool hgpy_is_warming_here(void);
/* 1 if this thread is in a call of hologram.warm. */
static inline bool hgpy_is_warming(void) { return hgpy_warming_count > 0 && hgpy_is_warming_here(); }
/* Notes the array's value, which it gets back when the call ends. False: raised. */
bool hgpy_warm_note(PyObject *array);
PyObject *hgpy_begin_warm(PyObject *module, PyObject *unused);
PyObject *hgpy_end_warm(PyObject *module, PyObject *number);
PyObject *hgpy_blank(PyObject *module, PyObject *const *values, Py_ssize_t count);

/* ---- computing (evaluate.c) -------------------------------------------------------------------------------------- */

/* Donated memory: the result may be written in place of the elements of `given`, which nobody can read afterwards. */
typedef struct hgpy_pair {
  hgpy_node *given, *result;
} hgpy_pair;

/* Turns the nodes into DATA; false: raised. */
bool hgpy_evaluate(hgpy_node *const *nodes, uint32_t count);
bool hgpy_evaluate_onto(hgpy_node *const *nodes, uint32_t count, const hgpy_pair *pairs, uint32_t pair_count);
/* Computes a node into existing memory of its shape and type. */
bool hgpy_evaluate_into(hgpy_node *node, hgpy_storage *storage, const hg_tensor *like);
/* The report of the launches that computing a node would take: text, or JSON. A new str. */
PyObject *hgpy_explain(hgpy_node *node, bool as_json);
/* A copy on another device. */
hgpy_node *hgpy_node_on(hgpy_node *node, hgpy_device *device);
/* DATA with memory of its own. */
hgpy_node *hgpy_copy(hgpy_node *node);
/* The node, computed and retained, or a copy if its memory has another owner. */
hgpy_node *hgpy_own(hgpy_node *node);
/* DATA in C order: the node itself, retained, or a copy, which strict() refuses unless it `is_asked_for`. */
hgpy_node *hgpy_dense(hgpy_node *node, bool is_asked_for);
/* Forgets the executables of a device. */
void hgpy_forget(const hgpy_device *device);

/* ---- numbers (number.c) ------------------------------------------------------------------------------------------ */

/* The type is compared first, because the checks of the limited API are calls. */
static inline bool hgpy_is_float(PyObject *object) {
  if (Py_TYPE(object) == &PyFloat_Type) return true;
  return Py_TYPE(object) != &PyLong_Type && Py_TYPE(object) != &PyBool_Type && PyFloat_Check(object);
}
static inline bool hgpy_is_number(PyObject *object) { /* an int (so also a bool) or a float */
  return hgpy_is_float(object) || Py_TYPE(object) == &PyLong_Type || PyLong_Check(object);
}
/* The Python number of a number, NumPy scalars included: a new reference; NULL without an exception: it is no
 * number. */
PyObject *hgpy_plain_number(PyObject *object);
bool hgpy_is_scalar(PyObject *object); /* a NumPy scalar, number or not */
/* 1 if an integer type, or bool, can represent the int; the second function raises OverflowError if not. `value`: its
 * bits. */
bool hgpy_integer_fits(PyObject *number, uint32_t type, int64_t *value);
bool hgpy_integer_as(const char *who, PyObject *number, uint32_t type, int64_t *value);
/* A number, also NumPy's, as a node of a type. NULL: raised OverflowError, or TypeError for other objects and for
 * floats beside integers. `who` begins the sentence. */
hgpy_node *hgpy_number_node(const char *who, PyObject *object, uint32_t type);
uint32_t hgpy_kind_rank(uint32_t type); /* 0 of bool, 1 of integers, 2 of floats, 3 of 8-bit floats */
/* The type of a Python number beside arrays of a type, and the number as a node of it. */
uint32_t hgpy_type_beside(PyObject *number, uint32_t type);
hgpy_node *hgpy_operand_node(const char *who, PyObject *number, uint32_t type);
/* The same in a comparison, which is exact: if no float equals the int, the next one above or below, or none. */
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
/* The array of `input`, which the scalar at `other` takes its type from, must be of the same kind. */
bool hgpy_row_same_types(uint32_t row, uint32_t input, uint32_t other);
/* 1 if the arrays among the inputs, `count` of which are given by position, have several types that must become one, or
 * are integers that are divided. ATLAS_NONE: no array. */
bool hgpy_row_mixes(uint32_t row, const uint32_t *types, Py_ssize_t count, Py_ssize_t total);
/* 1 if the value at that place, or of that name, is an input; others are arguments. */
bool hgpy_row_is_input(uint32_t row, Py_ssize_t place, PyObject *name);
bool hgpy_row_has_kinds(uint32_t row); /* whether its inputs are of several types */
/* row_inputs(name): each input's name, and a number that is the same for inputs of one type. */
PyObject *hgpy_row_inputs(PyObject *module, PyObject *name);
/* The table's methods of arrays, ended by a NULL name; `room` functions fit. */
uint32_t hgpy_operations_methods(PyMethodDef *methods, uint32_t room);
int hgpy_row_find(const char *name);        /* -1: there is none */
const char *hgpy_row_text(uint32_t number); /* its docstring */
/* Inputs, then arguments, as passed by Python. */
PyObject *hgpy_call_row(uint32_t number, PyObject *const *values, Py_ssize_t count, PyObject *names);
/* An operation on two objects, one of them an array; NotImplemented if the other is unknown. */
PyObject *hgpy_binary(uint32_t number, PyObject *a, PyObject *b);
PyObject *hgpy_unary(uint32_t number, PyObject *x);

/* ---- arrays (array.c, index.c, assign.c, exchange.c, dlpack.c) --------------------------------------------------- */

typedef struct hgpy_array {
  PyObject_HEAD
  hgpy_node *node;
  uint64_t born; /* the innermost trace when it was made; 0: none */
  struct hgpy_shown *shown; /* memory whose address was given out: lives as long as the array, and is not written */
  PyObject *weak; /* weak references to it */
} hgpy_array;

extern PyTypeObject *hgpy_array_type;
int hgpy_array_add(PyObject *module);
static inline bool hgpy_is_array(PyObject *object) { return Py_TYPE(object) == hgpy_array_type; }
/* Takes the node, even if it fails; NULL gives NULL. */
PyObject *hgpy_array_of(hgpy_node *node);
hgpy_node *hgpy_array_node(PyObject *array); /* borrowed */
bool hgpy_array_set(PyObject *self, hgpy_node *node); /* takes the node; false: raised, nothing changed */
void hgpy_array_put(PyObject *self, hgpy_node *node); /* the same; not noted by hologram.warm */
/* A shape from Python: an int, or a sequence of ints, none negative; false: raised. */
bool hgpy_shape_from(PyObject *object, uint64_t *shape, uint32_t *rank);
/* Numbers of any sign: axes, or shapes with a size to be inferred. */
bool hgpy_integers_from(PyObject *object, int64_t *numbers, uint32_t *count);
PyObject *hgpy_shape_object(uint32_t rank, const uint64_t *shape);

/* objects.c: methods written in Python, called with a tuple and a dict of arguments. */
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
/* near.c: names of other libraries: their descriptors in the array type; what to write for an argument, or NULL. */
int hgpy_near_add(PyObject *array_type);
const char *hgpy_near_argument(const char *name);
PyObject *hgpy_near(PyObject *module, PyObject *name);
PyObject *hgpy_near_word(PyObject *module, PyObject *name);
/* A new Array from a NumPy array or a list: a copy, because recorded operations read it later; on the default device if
 * NULL. NULL: it is neither, or raised. */
PyObject *hgpy_array_from(PyObject *object, hgpy_device *device);
/* kept(value): an argument as it is now, for later use: copies lists, tuples and arrays. */
PyObject *hgpy_kept(PyObject *module, PyObject *value);

PyObject *hgpy_get_item(PyObject *self, PyObject *key);
int hgpy_set_item(PyObject *self, PyObject *key, PyObject *value);
PyObject *hgpy_value_of(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_key_is_by_places(PyObject *module, PyObject *key);
PyObject *hgpy_settle_array(PyObject *module, PyObject *array);
PyObject *hgpy_fitted(PyObject *module, PyObject *const *values, Py_ssize_t count);

/* A node over an object's own memory, without a copy, by the buffer protocol or DLPack. may_copy: 0 never, 1 if needed,
 * 2 always. NULL: raised. */
hgpy_node *hgpy_share(PyObject *object, hgpy_device *device, int may_copy);
int hgpy_array_get_buffer(PyObject *self, Py_buffer *view, int flags);
void hgpy_array_release_buffer(PyObject *self, Py_buffer *view);
PyObject *hgpy_array_dlpack(PyObject *self, PyObject *const *arguments, Py_ssize_t count, PyObject *names);
PyObject *hgpy_array_dlpack_device(PyObject *self, PyObject *nothing);
PyObject *hgpy_from_dlpack(PyObject *object, hgpy_device *device); /* device NULL: the one where the memory is */
/* By the exchange table of an object's type, ordered after its library's current stream. None: it has no table, or its
 * memory is not the executor's. The result is writable. */
PyObject *hgpy_import_by_table(PyObject *object, hgpy_device *device); /* device NULL: the one where the memory is */
PyObject *hgpy_export_by_table(PyObject *array, PyTypeObject *type, bool is_own); /* is_own: made by hgpy_own */
/* An array over memory of an object of a type's family, for the length of a call: nobody may change the object
 * meanwhile. On the other device, unless that is NULL or lacks such memory. NULL with nothing raised: there is no
 * table, or it cannot be shared. */
PyObject *hgpy_borrow_by_table(PyObject *object, PyTypeObject *type, hgpy_device *other);
PyObject *hgpy_dlpack_table(void); /* a capsule: __dlpack_c_exchange_api__ */
/* A node over memory of another owner: element 0 is at `first`, strides are in elements. Takes the owner, and raises
 * BufferError if no memory can hold such a tensor. */
hgpy_node *hgpy_node_over(hgpy_device *device, void *first, hg_tensor *tensor, bool is_read_only, void *owner,
                          void (*release)(void *));
void hgpy_release_object(void *object); /* for memory owned by a Python object */
/* __array_interface__ and __cuda_array_interface__, and their descriptor. */
PyObject *hgpy_array_interface(PyObject *self, void *of_cuda);
void hgpy_array_hide(hgpy_array *array); /* its addresses are not used any more */
PyObject *hgpy_adopt(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_read_arrow(PyObject *module, PyObject *const *values, Py_ssize_t count); /* arrow.c */
PyObject *hgpy_asarray(PyObject *object); /* hologram.asarray(object) */
PyObject *hgpy_load_npy(PyObject *module, PyObject *const *values, Py_ssize_t count); /* files.c */
PyObject *hgpy_load_safetensors(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_save_npy(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_save_safetensors(PyObject *module, PyObject *const *values, Py_ssize_t count);
/* Fills a view of memory; `view->internal` belongs to the caller. */
int hgpy_fill_view(Py_buffer *view, PyObject *object, hgpy_storage *storage, const hg_tensor *tensor, bool is_read_only,
                   int flags);

/* ---- buffers and programs in the style of SDK 0.1 (buffer.c, program.c, sdk.c) ----------------------------------- */

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
/* The buffer, unless it is none or freed; NULL: raised. */
hgpy_buffer *hgpy_buffer_check(PyObject *object, const char *what);
hg_tensor hgpy_buffer_tensor(const hgpy_buffer *buffer, uint64_t count);
int hgpy_program_add(PyObject *module);
PyObject *hgpy_program_of(atlas_program *taken);
int hgpy_circuit_add(PyObject *module);
int hgpy_sdk_add(PyObject *module);

/* ---- operations on tensors of other libraries (tensors.c) -------------------------------------------------------- */

int hgpy_tensors_add(PyObject *module);
PyObject *hgpy_run_on_tensors(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_tensors_forward(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_tensors_backward(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_on_tensors(PyObject *module, PyObject *const *values, Py_ssize_t count);
int hgpy_compiled_add(PyObject *module); /* graphs of them (compiled.c) */
PyObject *hgpy_compiled(PyObject *module, PyObject *const *values, Py_ssize_t count);

/* ---- nests of arrays (trees.c) ----------------------------------------------------------------------------------- */

/* arrays_of(nest, is_strict): its arrays in order. rebuild(nest, iterator): the nest with the next values in place of
 * its arrays. has_numbers_only(nest): whether it consists of lists and tuples of Python numbers. have_one_form(a, b):
 * whether the arrays of two lists have the same shapes and types. statistics_of(nest): for each array, whether a layer
 * keeps statistics in it: it has no floats, or is below a key that begins with running_. compute_onto(results, given,
 * onto): computes results; those in `onto` may be written in place of the same number of `given` arrays. */
PyObject *hgpy_arrays_in(PyObject *nest, bool is_strict); /* the same: a list */
PyObject *hgpy_arrays_of(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_rebuild(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_has_numbers_only(PyObject *module, PyObject *tree);
PyObject *hgpy_statistics_of(PyObject *module, PyObject *tree);
PyObject *hgpy_have_one_form(PyObject *module, PyObject *const *values, Py_ssize_t count);
PyObject *hgpy_compute_onto(PyObject *module, PyObject *const *values, Py_ssize_t count);

/* ---- helpers ----------------------------------------------------------------------------------------------------- */

PyTypeObject *hgpy_add_type(PyObject *module, PyType_Spec *spec);
/* Frees an object of a heap type. */
void hgpy_free_object(PyObject *self);
uint64_t hgpy_hash_words(const uint64_t *words, size_t count);

#endif
