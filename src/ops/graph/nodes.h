/* nodes.h - computations as graphs of primitives. A formula of the table is expanded when it is called; equal nodes are
 * one node; nodes are in topological order: a node's inputs have lower numbers. */
#ifndef HG_OPS_NODES_H
#define HG_OPS_NODES_H

#include "base/error.h"
#include "base/memory.h"
#include "hologram/ops.h"

/* A value of the graph: 1 + index of its node; 0: none. The same numbers as hg_value. */
typedef hg_value value_id;

typedef struct ops_shape {
  uint32_t rank;
  uint64_t size[HG_MAX_RANK];
} ops_shape;

typedef enum ops_kind {
#define OPS_NODE_KIND(id, ...) OPS_##id,
#include "ops/graph/kinds.def"
#undef OPS_NODE_KIND
  OPS_NODE_KINDS
} ops_kind;

enum {
  OPS_ANY = 255,        /* inputs */
  OPS_SELECT_PART = 256 /* elements of a mask that are counted together: mask_ends tells of them */
};
#define OPS_FENCE (UINT32_C(1) << 31) /* ops_node.axes */

/* What the planner needs to know of a kind of node. */
enum {
  OPS_VIRTUAL = 1,        /* no work: it is computed wherever it is read */
  OPS_ELEMENT_WISE = 2,   /* each element is an expression of elements of its inputs, */
  OPS_MOVES = 4,          /* not only of those with the same index */
  OPS_AROUND = 8,         /* along each axis it tests whether the element is within a smaller input */
  OPS_FOLD = 16,          /* a launch has folds of one kind only, and an element of the result is available only to its
                             own row or place */
  OPS_IN_MEMORY = 32,     /* a launch writes it in any case, so updates may be written over it */
  OPS_BY_NUMBER = 64,     /* input 1 holds indices along `axis`, which may be out of range: `bounds` */
  OPS_TAKES = 128,        /* of input 0, which lies in a storage */
  OPS_SHAPE_FOLLOWS = 256, /* its shape follows from its inputs', or it has none */
  OPS_OF_ANOTHER = 512     /* a further result of its input, written by the input's launch */
};

/* Which lists of ops_node.view a kind uses; whether its `axis`, its `axes`. */
enum { OPS_AXES = 1, OPS_STEPS = 2, OPS_STARTS = 4, OPS_ALONG = 8, OPS_OVER = 16 };

/* A row of kinds.def. */
typedef struct ops_kind_row {
  const char *name;
  uint8_t inputs, results, work, passes, has;
  uint16_t is;
} ops_kind_row;

/* LOGSUMEXP: of scans alone. */
typedef enum ops_reduce {
  OPS_SUM, OPS_PRODUCT, OPS_MIN, OPS_MAX, OPS_ARGMIN, OPS_ARGMAX, OPS_LOGSUMEXP
} ops_reduce;
/* A fraction of random bits, the first 24 of a word (f64: 53 of two) as a number b in units u of its last place: b u,
 * in [0, 1); (b + 1) u, in (0, 1]; the odd one of b u and (b + 1) u, in (0, 1). */
typedef enum ops_fraction { OPS_BELOW_ONE, OPS_ABOVE_ZERO, OPS_INSIDE } ops_fraction;
/* What an index out of range does: faults; counts from the end if negative (else faults); or is moved to the
 * nearest. */
typedef enum ops_bounds { OPS_FAULT, OPS_WRAP, OPS_CLAMP } ops_bounds;

/* The index of the input's element: along input dimension d it is start[d] + the sum of step[j] * (output index j) over
 * the output dimensions j with axis[j] == d. axis[j] -1: repeated along j. All indices are within the input's shape. */
typedef struct ops_view {
  int16_t axis[HG_MAX_RANK];
  int64_t step[HG_MAX_RANK];
  int64_t start[HG_MAX_RANK];
} ops_view;

typedef struct ops_node {
  uint8_t kind; /* ops_kind */
  uint8_t type; /* atlas_type; for POINTWISE the result's (the operands' may differ: comparisons, cvt, select) */
  uint8_t input_count; /* as in kinds.def; for POINTWISE the maker decides */
  uint8_t reduce; /* ops_reduce; for SCATTER: 1 + ops_reduce, 0: the last one stays; for UPDATE: 1: see ops_is_fresh;
                   * for FACTOR: 1: the diagonal is taken as 1; for RANDOM an ops_fraction; for SELECT: 1: a
                   * result that is too long is a fault */
  uint16_t op;    /* atlas_op for POINTWISE: a comparison; pand, por, pxor, pnot on bool; sel (bool, a, b); cvt; ... */
  union {
    uint8_t bounds;   /* ops_bounds for GATHER, SCATTER */
    uint8_t numerics; /* for CONTRACT: HG_NUMERICS_FAST, HG_NUMERICS_TF32; 0: canonical */
  };
  uint8_t axis;
  uint32_t axes;  /* bits, for REDUCE; for RESHAPE see ops_is_named; for RANDOM, as axis, see kinds.def */
  uint32_t index; /* for INPUT; for RESULT its number, from 1 on; for GATHER, SCATTER vmap's axes in front; for SCAN
                   * 1: from the end to the beginning */
  value_id input[3];
  uint64_t bits;  /* for CONSTANT; for RESHAPE see ops_is_named; for FACTOR, SCAN, SELECT an hg_op */
  ops_shape shape;
  ops_view view; /* for kinds that use its lists */
} ops_node;

/* A call of an operation of the table, in a formula or by the user, for gradients and reports. Inputs are as given. */
typedef struct ops_call {
  uint16_t op; /* hg_op */
  uint8_t input_count, result_count;
  uint8_t numerics; /* of its contractions */
  uint32_t depth; /* the number of formulas around it; 0: the user called it */
  value_id inputs[8], results[8];
  uint32_t first_argument;       /* in hg_computation.arguments, which has as many for the call as its row */
  uint32_t first_node, end_node; /* nodes (by index) that were added for it */
} ops_call;

typedef struct ops_input {
  char name[ATLAS_MAX_NAME + 1];
  hg_tensor like;    /* type, shape, strides */
  value_id value;
  value_id update;   /* what its tensor holds at the end; 0: it is only read */
} ops_input;

typedef struct ops_output {
  char name[ATLAS_MAX_NAME + 1];
  hg_tensor like;
  value_id value;
} ops_output;

/* Values whose gradients fence.c finds: others read them through fences, RESHAPE nodes that no other is equal to. Its
 * lists lie one behind the other in hg_computation.fenced: inputs, values, their fences; of a custom one the values'
 * cotangents and the inputs' gradients (0: none). A fence of no values only tells nodes apart. */
typedef struct ops_fence {
  uint32_t first, input_count, value_count;
  uint32_t is_custom;
} ops_fence;

struct hg_computation {
  hg_allocator allocator; /* the arena's: of everything but the computation and its arena, which are one block */
  hg_arena arena;
  hg_array nodes;   /* ops_node */
  hg_array calls;   /* ops_call, ascending by end_node */
  hg_array arguments; /* ops_item of compute.h: of the calls */
  hg_array inputs;  /* ops_input */
  hg_array outputs; /* ops_output */
  hg_array buckets; /* uint32_t: the hash table of nodes */
  hg_array parts, operators; /* ops_part of formula.h, uint32_t: of calls and sums that are being evaluated */
  hg_array fences;  /* ops_fence: number i is that of nodes whose `bits` are i + 1 */
  hg_array fenced;  /* value_id: their lists */
  hg_array checks;  /* value_id: gathers whose indices are checked even if nobody reads their values */
  uint8_t numerics; /* of contractions to come: see ops_node */
  hg_status status;
  char sentence[512];
  char mix[512]; /* the first call whose inputs are of several kinds; "": there is none */
};

static inline const ops_node *ops_at(const hg_computation *c, value_id value) {
  return (const ops_node *)c->nodes.data + (value - 1);
}

extern const ops_kind_row ops_kinds[OPS_NODE_KINDS]; /* by ops_kind */

static inline const ops_kind_row *ops_kind_of(const ops_node *node) { return &ops_kinds[node->kind]; }
static inline int ops_kind_is(const ops_node *node, uint32_t is) { return (ops_kinds[node->kind].is & is) != 0; }

static inline uint64_t ops_count(const ops_shape *shape) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < shape->rank; i++) count *= shape->size[i];
  return count;
}

/* Adds a node, or finds the equal one. It checks nothing: the caller provides right types and shapes. 0, and the error
 * kept, if memory is short. */
value_id ops_add(hg_computation *c, const ops_node *node);

/* Result `index`, from 1 on, of a node with several results; it has the first result's shape. The kind's row says how
 * many there are. */
value_id ops_result_of(hg_computation *c, value_id first, uint32_t index, atlas_type type);

/* The node whose launch writes the value, which may be one of several results. */
static inline value_id ops_first_result(const hg_computation *c, value_id value) {
  return ops_kind_is(ops_at(c, value), OPS_OF_ANOTHER) ? ops_at(c, value)->input[0] : value;
}

/* 1: a reshape to its input's own shape, which says that the numbers are of elements along the one axis in `axes`,
 * `bits` of them. */
static inline int ops_is_named(const ops_node *node) {
  return node->kind == OPS_RESHAPE && node->axes != 0 && node->axes != OPS_FENCE;
}
/* The same as its input, and equal to no other: `bits` is 1 + the number of its fence, `index` which of its values.
 * What is made of it is made when input 1 is there, if it has one. */
static inline int ops_is_fence(const ops_node *node) { return node->kind == OPS_RESHAPE && node->axes == OPS_FENCE; }
value_id ops_add_fence(hg_computation *c, value_id value, value_id after, uint32_t id, uint32_t index);
static inline const ops_fence *ops_fence_at(const hg_computation *c, uint32_t id) {
  return (const ops_fence *)c->fences.data + (id - 1);
}
static inline const value_id *ops_fenced(const hg_computation *c, const ops_fence *fence) {
  return (const value_id *)c->fenced.data + fence->first;
}
static inline uint32_t ops_fence_room(const ops_fence *fence) {
  uint32_t own = fence->input_count + 2 * fence->value_count;
  return fence->is_custom ? own + fence->value_count + fence->input_count : own;
}
/* 1: an UPDATE in what is assembled from such: its box was empty before, and nothing is visible of what the first one
 * began with. */
static inline int ops_is_fresh(const ops_node *node) { return node->kind == OPS_UPDATE && node->reduce != 0; }
/* 1: the first of them, whose box is all that exists. */
static inline int ops_is_blank(const hg_computation *c, const ops_node *node) {
  return ops_is_fresh(node) && ops_kind_is(ops_at(c, node->input[0]), OPS_VIRTUAL);
}
/* 1: its indices may be out of range. */
static inline int ops_is_guarded(const ops_node *node) {
  return ops_kind_is(node, OPS_BY_NUMBER) && node->bounds != OPS_CLAMP;
}

/* What a gather takes from: its input 0 or, if that only repeats the elements of another value, that value. */
value_id ops_taken_from(const hg_computation *c, const ops_node *gather);

/* The user's call that a node was added for; NULL: there is none. */
const ops_call *ops_call_of(const hg_computation *c, value_id value);

/* Short forms. Each returns 0 if an input is 0. The shapes of pointwise operands must be equal. */
value_id ops_constant(hg_computation *c, atlas_type type, uint64_t bits);          /* rank 0 */
value_id ops_number(hg_computation *c, atlas_type type, double value);             /* rank 0, rounded to the type */
value_id ops_coordinate(hg_computation *c, const ops_shape *shape, uint32_t axis); /* i64 */
value_id ops_pointwise(hg_computation *c, atlas_op op, const value_id *inputs, uint32_t count);
value_id ops_cast(hg_computation *c, value_id value, atlas_type type);             /* the value itself if it has the
                                                                                      type */
value_id ops_view_of(hg_computation *c, value_id value, const ops_view *view, const ops_shape *shape);
value_id ops_broadcast(hg_computation *c, value_id value, const ops_shape *shape); /* by the array API's rule */
value_id ops_permute(hg_computation *c, value_id value, const uint32_t *axes);
value_id ops_reshape(hg_computation *c, value_id value, const ops_shape *shape);
value_id ops_reduce_over(hg_computation *c, ops_reduce reduce, value_id value, uint32_t axes, int keep);
value_id ops_concatenate(hg_computation *c, value_id a, value_id b, uint32_t axis);
/* [B,M,K] x [B,K,N], with the computation's numerics. */
value_id ops_contract(hg_computation *c, value_id a, value_id b, atlas_type type);
/* Those flags that have a meaning for a contraction of factors of this type: only f32 has TF32. */
uint8_t ops_numerics_for(atlas_type type, uint32_t numerics);
/* x with the source, of the same rank, at box->start + box->step * j along each axis; steps >= 1, all within x's
 * shape. */
value_id ops_update_of(hg_computation *c, value_id x, value_id source, const ops_view *box);
/* The view of the elements of such a box. */
ops_view ops_box_view(const ops_view *box, uint32_t rank);
/* The elements of a box of such a shape that begins at `low`, an index along each axis. */
value_id ops_part_of(hg_computation *c, value_id value, const int64_t *low, const ops_shape *shape);
/* A SCATTER node; refused if its launches could not number the sources along an axis. */
value_id ops_scatter(hg_computation *c, const ops_node *node);
hg_op ops_scatter_op(const ops_node *node); /* the row of the table that such a node is made for */

/* Keeps the first error of a computation, with its sentence for hg_last_error; returns 0. */
value_id ops_failed(hg_computation *c, hg_status status, const char *format, ...) HG_PRINTF(3, 4);

/* An estimate of the instructions for one element of a pointwise operation. */
uint32_t ops_work_of(atlas_op op);

#endif
