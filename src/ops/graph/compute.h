/* compute.h - from a call of an operation to nodes: arguments with their defaults, and a maker for each kind of row.
 *
 * Circle: compute formula formula_call formula_row: a row may be a formula, which calls rows. */
#ifndef HG_OPS_COMPUTE_H
#define HG_OPS_COMPUTE_H

#include "ops/graph/infer.h"
#include "ops/graph/syntax.h"
#include "ops/graph/table.h"

enum { OPS_MAX_ARGUMENTS = 8 };

/* What a name in a formula, or an argument of an operation, holds. */
typedef enum ops_item_kind {
  OPS_ITEM_ABSENT,  /* an optional input that was not given; "end" */
  OPS_ITEM_VALUE,   /* value */
  OPS_ITEM_NUMBER,  /* number, and integers[0] if is_integer; it takes the type of the values it meets. See
                       ops_is_unsigned and ops_is_beyond */
  OPS_ITEM_LIST,    /* count integers; is_all: every axis */
  OPS_ITEM_PACK     /* values[count]: an input that may be given several times */
} ops_item_kind;

typedef struct ops_item {
  uint8_t kind; /* ops_item_kind */
  uint8_t is_integer, is_all;
  uint32_t count;
  value_id value;
  const value_id *values;
  double number;
  int64_t integers[HG_MAX_RANK];
} ops_item;

/* A call that has been checked: as many inputs as the row has (0: absent), and all arguments. */
typedef struct ops_request {
  hg_computation *c;
  const ops_row *row;
  const value_id *inputs;
  uint32_t input_count;
  ops_item arguments[OPS_MAX_ARGUMENTS];
  uint32_t depth; /* the number of formulas around it */
  int is_users;   /* 1: the user wrote it, by itself or in a formula */
} ops_request;

int ops_is_value(const hg_computation *c, value_id value);
/* Why these numerics are not possible; NULL: they are. */
const char *ops_check_numerics(uint32_t flags);

/* Fails with "softmax: " and the reason; returns 0. */
value_id ops_refuse(const ops_request *request, hg_status status, const char *format, ...) HG_PRINTF(3, 4);

ops_item ops_integer_item(int64_t value);
ops_item ops_unsigned_item(uint64_t value);
int ops_is_unsigned(const ops_item *number); /* 1: an integer near 2^63 or above: integers[0] has its bits as a u64 */
int ops_is_beyond(const ops_item *number);   /* 1: an integer that no type holds: only its `number` counts */
ops_item ops_real_item(double value);
int ops_holds(atlas_type type, int64_t value); /* an integer type, or bool */
int ops_is_whole(double value); /* an i64 of at most 2^62 */
/* An argument's default. */
ops_item ops_preset(ops_word preset);
int ops_is_real(ops_word preset); /* 1: the argument takes numbers that need not be whole */
/* Converts an item into what `preset` describes, for example a number into a list; 0: that is not possible. */
int ops_fit_argument(ops_word preset, ops_item *item);
/* What the argument should be, as words for a sentence. */
const char *ops_argument_wish(ops_word preset);

/* Checks the inputs of a request whose arguments are set, and makes nodes with up to OPS_MAX_RESULTS values. Returns
 * how many; 0: failed. */
uint32_t ops_call_row(ops_request *request, const value_id *inputs, size_t count, value_id *results);

/* Casts inputs of a lower kind to the type of the others, in place; 0: failed. `own` is what request->inputs points to,
 * or NULL: then a mix is only noted. */
int ops_promote_inputs(ops_request *request, value_id *own);

/* The makers of each kind. */
value_id ops_make_pointwise(const ops_request *request);
value_id ops_make_view(const ops_request *request);
value_id ops_make_reduce(const ops_request *request);
value_id ops_make_scan(const ops_request *request);
value_id ops_make_contract(const ops_request *request);
value_id ops_make_convolution(const ops_request *request);
value_id ops_make_gather(const ops_request *request);
value_id ops_make_random(const ops_request *request);
value_id ops_make_join(const ops_request *request);
value_id ops_make_create(const ops_request *request);
value_id ops_make_factor(const ops_request *request);
value_id ops_make_select(const ops_request *request);
uint32_t ops_make_sort(const ops_request *request, value_id *results);
value_id ops_make_search(const ops_request *request);
uint32_t ops_make_formula(const ops_request *request, value_id *results);

/* A product of two values, by the types that they have. */
typedef struct ops_product {
  value_id a, b;     /* of one type, or both of f16 or bf16 */
  atlas_type type;   /* of the sums */
  atlas_type result; /* what they are rounded to at the end */
} ops_product;

/* Brings a and b to one type and sets the others; 0: refused. */
int ops_settle_product(const ops_request *request, ops_product *p);
/* [batch, m, k] x [batch, k, n]: of nothing zeros. */
value_id ops_product_of(hg_computation *c, const ops_product *p, value_id a, value_id b);

/* The axes of a list argument as bits; 0 and refused if one does not exist or stands twice. */
int ops_axes_of(const ops_request *request, const ops_item *axes, uint32_t rank, uint32_t *bits);
/* One axis of 0 to rank - 1; -1 and refused. */
int ops_axis_of(const ops_request *request, const ops_item *axis, uint32_t rank);
/* A list argument as a shape; 0 and refused if it is none. */
int ops_shape_of(const ops_request *request, const ops_item *sizes, ops_shape *shape);
/* Casts all values to one type and broadcasts them to one shape, in place; 0 and refused if that is not possible. */
int ops_agree_types(const ops_request *request, value_id *values, uint32_t count);
int ops_agree_shapes(const ops_request *request, value_id *values, uint32_t count);
/* An exact comparison of an integer with a float (in either order) of the same shape. */
value_id ops_compare_kinds(hg_computation *c, atlas_op op, value_id a, value_id b);
/* For makers: an operation, by its code, on values of one shape and type. */
value_id ops_binary(hg_computation *c, atlas_op op, value_id a, value_id b);
value_id ops_unary(hg_computation *c, atlas_op op, value_id a);
/* For makers that widen by themselves: the f16 or bf16 value that was widened to this one, or this one. */
value_id ops_before_widening(const hg_computation *c, value_id value);
/* Of two random words the u64 with the first as its high half. */
value_id ops_long_word(hg_computation *c, value_id a, value_id b);
/* A constant of a shape. */
value_id ops_full(hg_computation *c, atlas_type type, uint64_t bits, const ops_shape *shape);

#endif
