/* ops.h - computations: operations on tensors, fused, compiled and run anywhere.
 *
 *   uint64_t shape[] = {rows, columns};
 *   hg_tensor x = hg_tensor_of(x_buffer, ATLAS_f32, 2, shape);
 *   hg_tensor y = hg_tensor_of(y_buffer, ATLAS_f32, 2, shape);
 *   hg_argument axis = {1, 0, {-1}, 0};                               // one integer: the last axis
 *   hg_apply(HG_OP_softmax, &x, 1, &axis, 1, &y, 1, NULL);
 *
 * or many operations as one computation, compiled once and run as often as wanted:
 *
 *   hg_computation *c = NULL;
 *   hg_computation_create(NULL, &c);
 *   hg_value a = hg_computation_input(c, "a", &x);
 *   hg_value b = hg_compute(c, HG_OP_exp, &a, 1, NULL, 0);
 *   hg_value factors[] = {a, b};
 *   hg_computation_output(c, "y", hg_compute(c, HG_OP_mul, factors, 2, NULL, 0), NULL);
 *   hg_executable *e = NULL;
 *   hg_compile(executor, c, NULL, &e);               // reports the first error of all that was asked of c
 *   hg_run(e, &x, 1, &y, 1, stream, NULL);
 *
 * Every operation is a row of operations.def: its inputs, arguments, meaning, formula and gradient are in
 * docs/operations.md, which is made of it. Bits: an operation's result is defined element by element, so that a
 * computation has the bits of its operations one by one, on every backend.
 *
 * Threads: a computation belongs to one thread at a time; everything else here may be called by any number at once. A
 * call needs up to 256 KiB of the stack of the thread that makes it. */
#ifndef HOLOGRAM_OPS_H
#define HOLOGRAM_OPS_H

#include "hologram/hologram.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

#define HG_MAX_RANK 8

/* A view of a buffer's elements: plain data, which may be copied and changed; it keeps nothing alive. Element (i, j,
 * ...) is number offset + i * stride[0] + j * stride[1] + ... of the buffer. A stride of 0 repeats (broadcasts)
 * elements, a negative one goes backwards. Dimensions beyond the rank are ignored. */
typedef struct hg_tensor {
  hg_buffer *buffer;
  uint32_t type; /* atlas_type */
  uint32_t rank; /* 0 (one element) to HG_MAX_RANK */
  int64_t offset;
  uint64_t shape[HG_MAX_RANK];
  int64_t stride[HG_MAX_RANK];
  uint64_t reserved[2]; /* 0 */
} hg_tensor;

/* All elements of a shape in C order, from the buffer's first element on. If the shape is NULL and the rank is not 0,
 * whatever takes the tensor refuses it. */
HG_API hg_tensor hg_tensor_of(hg_buffer *buffer, atlas_type type, uint32_t rank, const uint64_t *shape);

/* A tensor of zeros with a buffer of its own: release out->buffer, which is NULL after a failure. */
HG_API hg_status hg_tensor_create(hg_executor *executor, atlas_type type, uint32_t rank, const uint64_t *shape,
                                  hg_tensor *out);

/* Views of views. They return HG_OK and write *out (which may be the tensor itself), or HG_INVALID_ARGUMENT with a
 * sentence that names shapes and the rule. Axes may be negative: counted from the end. */
HG_API hg_status hg_tensor_permute(const hg_tensor *tensor, const int64_t *axes, hg_tensor *out); /* axes[rank] */
/* start, stop and step as in Python, already resolved: 0 <= start <= size; for step < 0 down to above stop. */
HG_API hg_status hg_tensor_slice(const hg_tensor *tensor, int64_t axis, int64_t start, int64_t stop, int64_t step,
                                 hg_tensor *out);
HG_API hg_status hg_tensor_broadcast(const hg_tensor *tensor, uint32_t rank, const uint64_t *shape, hg_tensor *out);
/* HG_UNSUPPORTED if no strides describe the result: HG_OP_reshape makes a copy. */
HG_API hg_status hg_tensor_reshape(const hg_tensor *tensor, uint32_t rank, const uint64_t *shape, hg_tensor *out);
HG_API uint64_t hg_tensor_count(const hg_tensor *tensor); /* elements; 1 for rank 0; UINT64_MAX if there are more */
/* The range of a tensor's elements in its buffer: *count elements from number offset + *lowest on (*lowest <= 0), both
 * ends included; 0: the tensor has no elements. HG_INVALID_ARGUMENT, with *count 0, if no memory can hold it: a size is
 * negative (2^63 or more), there are more than 2^40 elements, or the strides exceed any memory. */
HG_API hg_status hg_tensor_extent(const hg_tensor *tensor, int64_t *lowest, uint64_t *count);

/* ---- files of tensors ---------------------------------------------------------------------------------------------
 * Paths and names of tensors are UTF-8. A file's header is read, and checked against the file's size, before memory of
 * the device is taken: HG_IO where it, or later its elements, cannot be read, HG_FORMAT with a sentence where it is not
 * what it should be, HG_UNSUPPORTED for what no tensor can be (another type, more than 8 dimensions, big-endian data).
 * A file that is written replaces the old one when it is complete, and keeps its permissions. What a link leads to
 * (Windows: the link is replaced), a pipe and a device are written themselves, as by fopen: a pipe without a reader
 * waits for one, and one whose reader is gone raises SIGPIPE.
 *
 *   hg_tensor x, y;
 *   hg_tensor_load(executor, "x.npy", &x);
 *   hg_tensor_create(executor, ATLAS_f32, x.rank, x.shape, &y);
 *   hg_apply(HG_OP_exp, &x, 1, NULL, 0, &y, 1, NULL);
 *   hg_tensor_save(&y, "y.npy");
 *   hg_buffer_release(x.buffer);
 *   hg_buffer_release(y.buffer);
 *
 * NumPy's .npy has one tensor. In Fortran order it is loaded with strides that say so; saved it is in C order, version
 * 1.0. A bf16 is 2 bytes without a type ('<V2'), which is what NumPy has of other packages' bfloat16; 8-bit floats,
 * which it cannot tell apart, are HG_UNSUPPORTED there, and safetensors has them. */
HG_API hg_status hg_tensor_load(hg_executor *executor, const char *path, hg_tensor *out); /* release out->buffer */
HG_API hg_status hg_tensor_save(const hg_tensor *tensor, const char *path);

/* Named tensors, as in a .safetensors file, in the order of the file. */
typedef struct hg_tensors hg_tensors;
HG_API hg_status hg_tensors_load(hg_executor *executor, const char *path, hg_tensors **out);
HG_API size_t hg_tensors_count(const hg_tensors *tensors);
HG_API const char *hg_tensors_name(const hg_tensors *tensors, size_t index);    /* NULL past the last */
HG_API const hg_tensor *hg_tensors_at(const hg_tensors *tensors, size_t index); /* NULL past the last */
HG_API void hg_tensors_release(hg_tensors *tensors); /* and buffers that nobody else has retained */
/* Names must be nonempty and unique. */
HG_API hg_status hg_tensors_save(const char *const *names, const hg_tensor *tensors, size_t count, const char *path);
/* The same with metadata, which nothing here depends on: `text_count` unique keys, each followed by its text, in UTF-8.
 * hg_tensors_text: keys and texts of a loaded file, in turn; NULL past the last. */
HG_API hg_status hg_tensors_save_texts(const char *const *names, const hg_tensor *tensors, size_t count,
                                       const char *const *texts, size_t text_count, const char *path);
HG_API const char *hg_tensors_text(const hg_tensors *tensors, size_t index);

/* ---- operations -------------------------------------------------------------------------------------------------- */

typedef enum hg_op {
  HG_OP_none = 0,
#define HG_OPERATION(code, id, kind, inputs, arguments, types, formula, gradient, meaning) HG_OP_##id = code,
#include "hologram/operations.def"
#undef HG_OPERATION
} hg_op;

/* One argument of an operation, in the order of its row. A zeroed or missing one is the default. */
typedef struct hg_argument {
  uint32_t count;                 /* how many integers are given; 0: the default, if has_number is 0 too */
  uint32_t has_number;            /* 1: `number` is given; with `count` 1 it is an integer beyond i64: integers[0] has
                                     its low 64 bits; above 2^64 if no u64 represents it */
  int64_t integers[HG_MAX_RANK];  /* axes, shapes, pads, flags, choices, types */
  double number;
} hg_argument;

/* A row of the table, by its index from 0: HG_NOT_FOUND past the last. Strings live as long as the library. */
typedef struct hg_op_info {
  size_t size;
  hg_op op;
  const char *name;
  const char *kind;      /* "pointwise", "reduce", "formula", ... */
  const char *inputs;    /* "x, weight?, bias?": ? may be absent (a value of 0, a tensor without buffer) */
  const char *arguments; /* "axes=[-1], eps=0.00001" */
  const char *types;     /* "float" */
  const char *formula;   /* in terms of other operations; "" for a primitive */
  const char *gradient;  /* for each input; "": that of the formula; "none" */
  const char *meaning;
  uint32_t output_count;
  uint32_t reserved;
} hg_op_info;
HG_API hg_status hg_op_query(size_t index, hg_op_info *info);
HG_API hg_op hg_op_by_name(const char *name); /* HG_OP_none: there is none */
/* The type of an operation on two types; ATLAS_NONE: they do not mix. */
HG_API atlas_type hg_promote_types(atlas_type a, atlas_type b);

/* ---- computations ------------------------------------------------------------------------------------------------ */

typedef struct hg_computation hg_computation;

/* A value of a computation; 0 is none. A failing call returns 0 and stores its sentence as the computation's error,
 * unless there is one already; a later call that needs a value and gets 0 returns 0 quietly. So a computation can be
 * written without checking each line; hg_computation_status and hg_compile report the first error. */
typedef uint32_t hg_value;

HG_API hg_status hg_computation_create(const hg_allocator *allocator, hg_computation **out);
HG_API void hg_computation_release(hg_computation *computation);
HG_API hg_status hg_computation_status(hg_computation *computation); /* of the first error; sets hg_last_error */

/* An input of this type, shape and strides; buffer and offset are ignored. Inputs are numbered in order. */
HG_API hg_value hg_computation_input(hg_computation *computation, const char *name, const hg_tensor *like);
/* One element (rank 0) with this value, converted to the type as `cvt` does. */
HG_API hg_value hg_computation_number(hg_computation *computation, atlas_type type, double value);
HG_API hg_value hg_computation_integer(hg_computation *computation, atlas_type type, int64_t value);

/* An operation's only result, or its first. Types are promoted: bool < integers < floats; of two kinds, the type of the
 * higher one; within a kind, as in the array API. u64 does not mix with signed types, 8-bit floats mix with none.
 * Shapes broadcast. */
HG_API hg_value hg_compute(hg_computation *computation, hg_op op, const hg_value *inputs, size_t input_count,
                           const hg_argument *arguments, size_t argument_count);
/* All results of an operation that has several. */
HG_API hg_status hg_compute_all(hg_computation *computation, hg_op op, const hg_value *inputs, size_t input_count,
                                const hg_argument *arguments, size_t argument_count, hg_value *results,
                                size_t result_count);
/* A formula in the language of operations.def: "exp(x - max(x, -1))" over the named values. */
HG_API hg_value hg_compute_formula(hg_computation *computation, const char *formula, const char *const *names,
                                   const hg_value *values, size_t count);

/* Sets the numerics of contractions (matrix products, also in formulas) recorded from now on, and of their gradients:
 * 0, the default; or HG_NUMERICS_FAST, with or without HG_NUMERICS_TF32. A fast contraction, with a bias, relu or
 * gelu_tanh that is its only reader, is computed by the vendor's library if the device has one that accepts it: sums of
 * f16, bf16 and f32 are f32 as always, but in any order, and intermediate results need not be rounded, so the bits
 * differ, also between devices. hg_executable_report says which launches are fast, and why a fast contraction is
 * computed canonically, with the canonical bits. */
HG_API hg_status hg_computation_numerics(hg_computation *computation, uint32_t numerics);

/* Type, shape and (dense) strides of a value. */
HG_API hg_status hg_computation_describe(hg_computation *computation, hg_value value, hg_tensor *out);

/* The gradient of sum(value * cotangent) by each of `wrt`; cotangent 0: the value must have one element, and the
 * cotangent is 1. Zeros for a variable that the value does not depend on. */
HG_API hg_status hg_gradient(hg_computation *computation, hg_value value, hg_value cotangent, const hg_value *wrt,
                             size_t count, hg_value *gradients);

/* A value that stands for one of many, of the type and shape of `like`. hg_vmap computes what depends on it for all of
 * them. */
HG_API hg_value hg_computation_example(hg_computation *computation, const hg_tensor *like);
/* Replaces each of `values`, which depend on examples, by its values for all `count` examples, with the bits that each
 * has alone. The examples are the elements of `batches` along an axis in front; the results have such an axis, too. */
HG_API hg_status hg_vmap(hg_computation *computation, uint64_t count, const hg_value *examples, const hg_value *batches,
                         size_t example_count, hg_value *values, size_t value_count);
/* Replaces each of `values` by the same value, whose gradient recomputes all of them from the inputs, so that nothing
 * in between is kept until then. Inputs are everything that they depend on and a gradient may be by. */
HG_API hg_status hg_checkpoint(hg_computation *computation, const hg_value *inputs, size_t input_count,
                               hg_value *values, size_t value_count);
/* Replaces each of `values` by the same value, whose gradient by each input is that of `gradients` (0: none). These
 * depend on `cotangents`: an example of the type and shape of each value. */
HG_API hg_status hg_custom_gradient(hg_computation *computation, const hg_value *inputs, size_t input_count,
                                    const hg_value *cotangents, const hg_value *gradients, hg_value *values,
                                    size_t value_count);

/* Outputs are numbered in order. `like`: strides of the output; NULL: dense. */
HG_API hg_status hg_computation_output(hg_computation *computation, const char *name, hg_value value,
                                       const hg_tensor *like);
/* After the computation has run, the input's tensor holds `value` (of the same shape and type). */
HG_API hg_status hg_computation_update(hg_computation *computation, hg_value input, hg_value value);

/* ---- executables ------------------------------------------------------------------------------------------------- */

typedef struct hg_executable hg_executable;

enum {
  HG_NUMERICS_FAST = 1, /* all contractions are fast: see hg_computation_numerics */
  HG_NO_FUSION = 2,     /* no fusion, for comparisons */
  HG_STRICT_TYPES = 4,  /* HG_INVALID_ARGUMENT if bools, integers and floats mix in a call of hg_compute */
  HG_NUMERICS_TF32 = 8  /* with HG_NUMERICS_FAST: f32 factors may be rounded to 11 bits (TF32) */
};

typedef struct hg_compile_desc {
  size_t size;
  uint32_t flags;
  uint32_t reserved; /* 0 */
} hg_compile_desc;

/* desc may be NULL. The computation may be released or extended afterwards. Equal computations share an executable
 * while it is in the executor's cache. */
HG_API hg_status hg_compile(hg_executor *executor, hg_computation *computation, const hg_compile_desc *desc,
                            hg_executable **out);
HG_API hg_executable *hg_executable_retain(hg_executable *executable);
HG_API void hg_executable_release(hg_executable *executable);

/* Runs it on tensors in the order of inputs and outputs, with their declared shapes, types and strides (HG_BINDING
 * names what differs; HG_BUSY: a buffer is mapped). A tensor without elements needs no buffer. An output may be the
 * same view as an input that is read element by element, if nothing reads the input later; any other overlap with
 * written memory is HG_BINDING. On a stream it returns before it has run. Faults as for hg_launch, with the operation
 * and the tensor; all launches run, and the report is of the first that faulted. So that a fault on a stream can name
 * an index, buffers from which indices are computed are kept until the stream is known to be done, up to a 64th of the
 * device's memory. If a temporary cannot be allocated, nothing has changed. */
HG_API hg_status hg_run(hg_executable *executable, const hg_tensor *inputs, size_t input_count,
                        const hg_tensor *outputs, size_t output_count, hg_stream *stream, hg_launch_report *report);

/* Compiles what a run would otherwise compile later: a GPU's driver gives the first runs quickly made code, and some
 * kernels have variants for other launches. Afterwards everything that a run needs, with tensors aligned to 64 bytes,
 * is compiled in full, and in the kernel cache for other processes; code that the driver has not compiled in full stays
 * as it was. Launches and allocates nothing. kernel_count: the number of kernels; may be NULL. hg_executor_desc.ask is
 * asked between kernels. */
HG_API hg_status hg_executable_warm(hg_executable *executable, uint64_t *kernel_count);

/* The operations of each launch, bytes moved, temporaries, what was not fused and why. Text, or JSON if `json` is 1,
 * which also has the hash of each launch's program. Release with atlas_memory_release and the same allocator. */
HG_API hg_status hg_executable_report(hg_executable *executable, const hg_allocator *allocator, int json, char **text,
                                      size_t *length);

/* Runs one operation, canonically, by the cached executable of a computation of it. Outputs must have the result's
 * shape; the executor is that of the buffers. An output may be the same view as an input, whatever the operation. */
HG_API hg_status hg_apply(hg_op op, const hg_tensor *inputs, size_t input_count, const hg_argument *arguments,
                          size_t argument_count, const hg_tensor *outputs, size_t output_count, hg_stream *stream);
/* Type and shape of the results, from those of the inputs; buffers are ignored. */
HG_API hg_status hg_apply_shape(hg_op op, const hg_tensor *inputs, size_t input_count, const hg_argument *arguments,
                                size_t argument_count, hg_tensor *outputs, size_t output_count);

/* The executables that the executor keeps for equal computations; the least recently used go first. */
typedef struct hg_executables_info {
  size_t size;
  uint64_t byte_cap, bytes; /* of programs, plans and code */
  uint64_t count, hits, misses, evictions;
} hg_executables_info;
HG_API hg_status hg_executables_query(hg_executor *executor, hg_executables_info *info);
HG_API hg_status hg_executables_limit(hg_executor *executor, uint64_t byte_cap); /* 0: keep none */

#ifdef __cplusplus
}
#endif
#endif
