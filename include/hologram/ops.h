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

/* A view of a buffer's elements: plain data, to be copied and changed at will; it keeps nothing alive. Element
 * (i, j, ...) is number offset + i * stride[0] + j * stride[1] + ... of the buffer. A stride of 0 repeats (broadcasts)
 * elements, a negative one goes backwards. Dimensions beyond the rank are not looked at. */
typedef struct hg_tensor {
  hg_buffer *buffer;
  uint32_t type; /* atlas_type */
  uint32_t rank; /* 0 (one element) to HG_MAX_RANK */
  int64_t offset;
  uint64_t shape[HG_MAX_RANK];
  int64_t stride[HG_MAX_RANK];
  uint64_t reserved[2]; /* 0 */
} hg_tensor;

/* All elements of a shape, the last dimension's side by side (C order), from the buffer's first on. Whatever takes the
 * tensor refuses it where the shape is NULL, of a rank that is not 0. */
HG_API hg_tensor hg_tensor_of(hg_buffer *buffer, atlas_type type, uint32_t rank, const uint64_t *shape);

/* All elements of a shape, which are 0, with a buffer of its own: release out->buffer. After a failure that is NULL. */
HG_API hg_status hg_tensor_create(hg_executor *executor, atlas_type type, uint32_t rank, const uint64_t *shape,
                                  hg_tensor *out);

/* Views of views. They return HG_OK and write *out (which may be the tensor itself), or HG_INVALID_ARGUMENT with a
 * sentence that names shapes and the rule. Axes may be negative: counted from the end. */
HG_API hg_status hg_tensor_permute(const hg_tensor *tensor, const int64_t *axes, hg_tensor *out); /* axes[rank] */
/* start, stop and step as Python has them, already resolved: 0 <= start <= size; step < 0 goes down to above stop. */
HG_API hg_status hg_tensor_slice(const hg_tensor *tensor, int64_t axis, int64_t start, int64_t stop, int64_t step,
                                 hg_tensor *out);
HG_API hg_status hg_tensor_broadcast(const hg_tensor *tensor, uint32_t rank, const uint64_t *shape, hg_tensor *out);
/* HG_UNSUPPORTED where strides cannot say it, and a copy is needed (HG_OP_reshape makes it). */
HG_API hg_status hg_tensor_reshape(const hg_tensor *tensor, uint32_t rank, const uint64_t *shape, hg_tensor *out);
HG_API uint64_t hg_tensor_count(const hg_tensor *tensor); /* elements; 1 of rank 0; UINT64_MAX where there are more */
/* Where a tensor's elements lie in its buffer: from number offset + *lowest on, which is 0 or below, *count of them,
 * both ends inclusive (0: the tensor has no elements). HG_INVALID_ARGUMENT, and *count is 0, where no memory can hold
 * it: a size is below 0 (2^63 or more), there are more than 2^40 elements, or strides lead further than any memory. */
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

/* Tensors by their names, which a .safetensors file has, in the order in which they lie there. */
typedef struct hg_tensors hg_tensors;
HG_API hg_status hg_tensors_load(hg_executor *executor, const char *path, hg_tensors **out);
HG_API size_t hg_tensors_count(const hg_tensors *tensors);
HG_API const char *hg_tensors_name(const hg_tensors *tensors, size_t index);    /* NULL past the last */
HG_API const hg_tensor *hg_tensors_at(const hg_tensors *tensors, size_t index); /* NULL past the last */
HG_API void hg_tensors_release(hg_tensors *tensors); /* and buffers that nobody else has retained */
/* Names are not empty, and each is there once. */
HG_API hg_status hg_tensors_save(const char *const *names, const hg_tensor *tensors, size_t count, const char *path);
/* The same file with metadata, which nothing here depends on: `text_count` keys, each with its text behind it, UTF-8; a
 * key is there once. hg_tensors_text: those of a file that was loaded, by turns as well; NULL past the last. */
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

/* One argument of an operation besides its inputs, in the order of its row. A zeroed one, or none, is the default. */
typedef struct hg_argument {
  uint32_t count;                 /* of integers that are given; 0: the default, where `number` is 0 too */
  uint32_t has_number;            /* 1: `number` is given; with `count` 1 it is an integer beyond i64, whose low 64 bits
                                   * integers[0] has: above 2^64 where no u64 holds it */
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
  const char *formula;   /* over other operations; "" of a primitive */
  const char *gradient;  /* of each input; "": by the formula's own; "none" */
  const char *meaning;
  uint32_t output_count;
  uint32_t reserved;
} hg_op_info;
HG_API hg_status hg_op_query(size_t index, hg_op_info *info);
HG_API hg_op hg_op_by_name(const char *name); /* HG_OP_none: there is none */
/* The type that two become in one operation; ATLAS_NONE: they do not mix. */
HG_API atlas_type hg_promote_types(atlas_type a, atlas_type b);

/* ---- computations ------------------------------------------------------------------------------------------------ */

typedef struct hg_computation hg_computation;

/* A value of a computation; 0 is none. A call that fails gives 0, keeps the sentence as the computation's first error
 * unless it has one, and every later call that is given a 0 it needs gives 0 quietly: so a computation can be written
 * without checking each line. hg_computation_status and hg_compile report the first error. */
typedef uint32_t hg_value;

HG_API hg_status hg_computation_create(const hg_allocator *allocator, hg_computation **out);
HG_API void hg_computation_release(hg_computation *computation);
HG_API hg_status hg_computation_status(hg_computation *computation); /* of the first error; sets hg_last_error */

/* An input of this type, shape and strides; buffer and offset are not looked at. Inputs are numbered as they come. */
HG_API hg_value hg_computation_input(hg_computation *computation, const char *name, const hg_tensor *like);
/* One element (rank 0) with this value, converted to the type as `cvt` does. */
HG_API hg_value hg_computation_number(hg_computation *computation, atlas_type type, double value);
HG_API hg_value hg_computation_integer(hg_computation *computation, atlas_type type, int64_t value);

/* An operation's only result, or its first. Types are promoted (bool < integers < floats, of two kinds the higher one's
 * type, within a kind as in the array API; u64 and a signed type do not mix, and 8-bit floats do with none); shapes
 * broadcast. */
HG_API hg_value hg_compute(hg_computation *computation, hg_op op, const hg_value *inputs, size_t input_count,
                           const hg_argument *arguments, size_t argument_count);
/* All results of an operation that has several. */
HG_API hg_status hg_compute_all(hg_computation *computation, hg_op op, const hg_value *inputs, size_t input_count,
                                const hg_argument *arguments, size_t argument_count, hg_value *results,
                                size_t result_count);
/* A formula of one's own, as in operations.def: "exp(x - max(x, -1))" over the named values. */
HG_API hg_value hg_compute_formula(hg_computation *computation, const char *formula, const char *const *names,
                                   const hg_value *values, size_t count);

/* From now on contractions (products of matrices, in formulas too) are recorded with these numerics, and so are those
 * of their gradients: 0, which is what a computation begins with, or HG_NUMERICS_FAST, or that and HG_NUMERICS_TF32. A
 * fast contraction, with a bias, relu or gelu_tanh that follows it alone, is computed by the vendor's library where the
 * device has one that takes it: sums of f16, bf16 and f32 are f32 as ever, but in any order, and what follows need not
 * be rounded in between, so the bits are other ones, also from device to device. hg_executable_report says which
 * launches are such, and of a fast contraction that is computed canonically, with the canonical bits, why. */
HG_API hg_status hg_computation_numerics(hg_computation *computation, uint32_t numerics);

/* Type, shape and (dense) strides of a value. */
HG_API hg_status hg_computation_describe(hg_computation *computation, hg_value value, hg_tensor *out);

/* The gradient of sum(value * cotangent) by each of `wrt`; cotangent 0: value has one element, and 1. A value that does
 * not depend on one of them gives zeros. */
HG_API hg_status hg_gradient(hg_computation *computation, hg_value value, hg_value cotangent, const hg_value *wrt,
                             size_t count, hg_value *gradients);

/* A value that stands for one of many: `like` is its type and shape. What is made of it hg_vmap makes for all. */
HG_API hg_value hg_computation_example(hg_computation *computation, const hg_tensor *like);
/* In place of each of `values`, which are made of examples: the same of all of `count` examples, with the bits that
 * each has alone. They are the elements of `batches` along an axis in front, and so lie in the results. */
HG_API hg_status hg_vmap(hg_computation *computation, uint64_t count, const hg_value *examples, const hg_value *batches,
                         size_t example_count, hg_value *values, size_t value_count);
/* In place of each of `values` the same value, whose gradient is found by computing all of them once more of the
 * inputs, so that nothing between is kept until then. Inputs are all that they are made of and a gradient may be by. */
HG_API hg_status hg_checkpoint(hg_computation *computation, const hg_value *inputs, size_t input_count,
                               hg_value *values, size_t value_count);
/* In place of each of `values` the same value, whose gradient by each input is that of `gradients` (0: none), which are
 * made of `cotangents`: for each value an example of its type and shape. */
HG_API hg_status hg_custom_gradient(hg_computation *computation, const hg_value *inputs, size_t input_count,
                                    const hg_value *cotangents, const hg_value *gradients, hg_value *values,
                                    size_t value_count);

/* Outputs are numbered as they come. `like`: strides to write it with; NULL: dense. */
HG_API hg_status hg_computation_output(hg_computation *computation, const char *name, hg_value value,
                                       const hg_tensor *like);
/* When the computation is done, the input's tensor holds `value` instead (of the same shape and type). */
HG_API hg_status hg_computation_update(hg_computation *computation, hg_value input, hg_value value);

/* ---- executables ------------------------------------------------------------------------------------------------- */

typedef struct hg_executable hg_executable;

enum {
  HG_NUMERICS_FAST = 1, /* all contractions are fast: see hg_computation_numerics */
  HG_NO_FUSION = 2,     /* each operation by itself: for comparisons */
  HG_STRICT_TYPES = 4,  /* HG_INVALID_ARGUMENT where bools, integers and floats meet in a call of hg_compute */
  HG_NUMERICS_TF32 = 8  /* with HG_NUMERICS_FAST: factors of f32 may be rounded to 11 bits (TF32) */
};

typedef struct hg_compile_desc {
  size_t size;
  uint32_t flags;
  uint32_t reserved; /* 0 */
} hg_compile_desc;

/* desc may be NULL. The computation may be released, or added to, afterwards. Equal computations share an executable
 * while it is in the executor's cache. */
HG_API hg_status hg_compile(hg_executor *executor, hg_computation *computation, const hg_compile_desc *desc,
                            hg_executable **out);
HG_API hg_executable *hg_executable_retain(hg_executable *executable);
HG_API void hg_executable_release(hg_executable *executable);

/* Runs it: tensors in the order of inputs and outputs, of the shapes, types and strides that they were declared with
 * (HG_BINDING names what differs; HG_BUSY: a buffer is mapped). A tensor without elements needs no buffer. An output
 * may be the very same view as an input that is read element by element, and no more after that; any other overlap of
 * what is written is HG_BINDING. On a stream it returns before it has run. Faults as for hg_launch, with the
 * operation and the tensor; of several launches all run, and the report is of the first that faulted. So that a fault
 * on a stream can name an index, buffers that indices are computed from are held until the stream is found to be done,
 * as long as they are together no more than a 64th of the device's memory. A failed allocation of a temporary leaves
 * everything as it was. */
HG_API hg_status hg_run(hg_executable *executable, const hg_tensor *inputs, size_t input_count,
                        const hg_tensor *outputs, size_t output_count, hg_stream *stream, hg_launch_report *report);

/* Compiles what a run would otherwise compile later: a GPU's driver gives the first runs code that it made quickly, and
 * some kernels have other forms for other launches. When this returns all that a run of tensors at multiples of 64
 * bytes needs is compiled in full, and in the kernel cache for other processes; what the driver has not compiled in
 * full stays as it was compiled first. Nothing is launched, and no memory allocated. kernel_count: of how many kernels;
 * may be NULL. hg_executor_desc.ask is asked between kernels. */
HG_API hg_status hg_executable_warm(hg_executable *executable, uint64_t *kernel_count);

/* Which operations became which launch, bytes moved, temporaries, what was not fused and why. Text, or JSON where
 * `json` is 1, which has the hash of each launch's program, too. Release with atlas_memory_release and the same
 * allocator. */
HG_API hg_status hg_executable_report(hg_executable *executable, const hg_allocator *allocator, int json, char **text,
                                      size_t *length);

/* One operation at once, canonically: the cached executable of a computation of it. Outputs must have the result's
 * shape; their executor is that of the buffers. An output may be the very same view as an input, whatever the
 * operation. */
HG_API hg_status hg_apply(hg_op op, const hg_tensor *inputs, size_t input_count, const hg_argument *arguments,
                          size_t argument_count, const hg_tensor *outputs, size_t output_count, hg_stream *stream);
/* Type and shape of the results, from those of the inputs (buffers are not looked at). */
HG_API hg_status hg_apply_shape(hg_op op, const hg_tensor *inputs, size_t input_count, const hg_argument *arguments,
                                size_t argument_count, hg_tensor *outputs, size_t output_count);

/* The executor's executables that are kept for equal computations, least recently used first out. */
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
