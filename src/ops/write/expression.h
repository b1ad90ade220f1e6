/* expression.h - code for the values of nodes at a place of an index space.
 *
 * Three steps. Terms: a node at an index becomes a term, whose index in every storage is a form: a sum of multiples of
 * the space's coordinates and a constant. So views cost nothing, and a producer that is read at two places is two
 * terms. Space: neighbouring dimensions that every form crosses in one stride become one. Code: each term once, in
 * registers.
 *
 * The space's dimensions are the writer's: a map has one lane for each element, a row program a block for some
 * coordinates and lanes and loops for the rest. The writer says which registers hold the coordinates. */
#ifndef HG_OPS_EXPRESSION_H
#define HG_OPS_EXPRESSION_H

#include "ops/write/launch_plan.h"

enum {
  OPS_MAX_VARIABLES = 24, /* coordinates of the space, then quotients and remainders of forms */
  OPS_MAX_TERMS = 1024,
  OPS_MAX_TERM_DEPTH = 64, /* one made of the other: up to 1 KB of stack each, and threads may have 128 KB */
  OPS_INDEX_LEVELS = 8     /* of that depth, whose indices are in one piece of memory */
};

/* constant + the sum of factor[i] * variable i */
typedef struct ops_form {
  int64_t constant;
  int64_t factor[OPS_MAX_VARIABLES];
} ops_form;

/* A variable that is not a coordinate: of / size or of % size, where `of` is never negative; or `of`, but at least 0
 * and below the size. */
typedef enum ops_derived_kind { OPS_QUOTIENT, OPS_REMAINDER, OPS_CLAMPED } ops_derived_kind;
typedef struct ops_derived {
  ops_form of;
  uint64_t size;
  uint8_t kind; /* ops_derived_kind */
} ops_derived;

typedef uint32_t term_id; /* 1 + its number; 0: none */

typedef enum ops_term_kind {
  TERM_CONSTANT,   /* bits */
  TERM_COORDINATE, /* the form's value, i64 */
  TERM_LOAD,       /* the element of a storage at the form */
  TERM_GATHER,     /* the same, at form + stride * input 0, whose range is 0 to extent - 1 */
  TERM_POINTWISE,  /* op of the inputs */
  TERM_RANGE,      /* bool: the form is at least 0 and below the extent */
  TERM_RANDOM,     /* word number `form` of the sequence of inputs 0 and 1 */
  TERM_BOUND       /* a reduction of the group: the writer's register; the form is the element's number in C order */
} ops_term_kind;

typedef struct ops_term {
  uint8_t kind, type, bounds, input_count;
  uint16_t op;
  uint32_t storage; /* LOAD, GATHER */
  value_id value;   /* the node that it stands for */
  term_id input[3];
  uint64_t bits;
  int64_t stride;   /* GATHER */
  uint64_t extent;  /* GATHER, RANGE */
  ops_form form;
  uint32_t varies;  /* bit i: its value changes along coordinate i of the space */
} ops_term;

typedef struct ops_terms {
  const ops_group *group;
  ops_shape space;  /* as given, and after ops_collapse as collapsed */
  ops_derived derived[OPS_MAX_VARIABLES];
  uint32_t variable_count; /* coordinates and derived */
  hg_array terms;   /* ops_term, inputs first */
  hg_array seen, seen_at; /* nodes at indices that have become terms; their forms, one after the other */
  uint32_t depth;
  ops_form *indices[OPS_MAX_TERM_DEPTH / OPS_INDEX_LEVELS]; /* by depth: room for an index, of nodes that make one */
} ops_terms;

/* Of an index space for a group. ops_terms_release in any case. */
void ops_terms_begin(ops_terms *t, const ops_group *group, const ops_shape *space);
void ops_terms_release(ops_terms *t);
/* The node's value at the index that is given by a form a dimension. HG_UNSUPPORTED where there are more terms or
 * variables than fit. */
hg_status ops_term_of(ops_terms *t, value_id value, const ops_form *index, term_id *out);
/* An element of a storage that stands for no node: what an earlier step of the writer has left there. */
hg_status ops_load_of(ops_terms *t, uint32_t storage, atlas_type type, const ops_form *form, term_id *out);
/* Index forms of the space itself: dimension i of the node is coordinate i. */
void ops_identity(const ops_shape *space, ops_form *index);
static inline ops_term *ops_term_at(const ops_terms *t, term_id id) { return (ops_term *)t->terms.data + (id - 1); }

int ops_is_constant(const ops_form *form);
/* The coordinates (bits) that a form changes along, also through derived variables. */
uint32_t ops_varies(const ops_terms *t, const ops_form *form);
/* The index in `from` of the element that has `index` in `to`: shapes of one count. */
hg_status ops_reshaped(ops_terms *t, const ops_shape *from, const ops_shape *to, const ops_form *index, ops_form *out);
int ops_is_dense(const ops_storage *storage); /* in C order */
/* The form of an element of a storage; the storage's lowest element is number 0. */
ops_form ops_address(const ops_storage *storage, const ops_form *index);
/* Merges coordinates j and j + 1 wherever all terms, derived variables and `more` forms allow. Dimensions before and
 * from `boundary` on are not merged with each other: rows and what is inside them stay apart; 0: all may be. Returns
 * how many coordinates are left before it in *boundary. */
void ops_collapse(ops_terms *t, ops_form **more, uint32_t more_count, uint32_t *boundary);

/* ---- code -------------------------------------------------------------------------------------------------------- */

enum { OPS_NO_REGISTER = 0xffff };

typedef struct ops_code {
  ops_terms *terms;
  ops_step *step;
  atlas_builder *builder;
  atlas_type index_type;              /* of coordinates and addresses: u32, i32 or i64 */
  uint16_t variable[OPS_MAX_VARIABLES]; /* registers of coordinates (the writer's) and of derived ones; ATLAS_REG_LANE
                                         may be coordinate 0 of a space of one dimension */
  const ops_form *lane_form; /* the number of the lane as a form of coordinates, where elements are the lanes'; NULL */
  int64_t displacement;               /* added to coordinate `displaced` by the writer, a constant of the program */
  uint32_t displaced;
  uint16_t *registers;                /* by term: where its value is; OPS_NO_REGISTER */
  uint32_t partials[4], partial_count; /* storages that the launch writes besides those of the group's results */
  uint32_t next_register;
  hg_status status;                   /* the first failure: registers or parameters ran out */
} ops_code;

/* Begins a program for a step; `access` of storages is found from group->results. Names of parameters are made up. */
hg_status ops_code_begin(ops_code *code, ops_terms *terms, ops_step *step, const char *name);
/* Goes on in the same program with nothing computed, for what code->terms has become. */
hg_status ops_code_again(ops_code *code);
/* Ends it: step->program. Releases what begin made, whatever happens. */
hg_status ops_code_end(ops_code *code);
void ops_code_drop(ops_code *code);

/* A register that nothing else has. There are as many as are asked for (ATLAS_MOST_REGISTERS): the compiler makes
 * values of them. */
uint16_t ops_register(ops_code *code);
/* A u32 register's number in a register of its own, of the index type. A coordinate of the launch: u32. */
uint16_t ops_index_of(ops_code *code, uint32_t reg);
uint16_t ops_launch_coordinate(ops_code *code, atlas_coord coord);
/* That, and the lane's number in the whole launch, of the index type. */
uint16_t ops_launch_index(ops_code *code, atlas_coord coord);
uint16_t ops_lane_index(ops_code *code);

/* The coordinates below `end` that have no register yet, in registers of their own, i64: those of `axes` (bits) from a
 * number of `count`, `from` of type `is`, the last one fastest; 0 the others. */
void ops_split(ops_code *code, const ops_shape *shape, uint32_t axes, uint32_t end, uint64_t count, atlas_operand from,
               atlas_type is);

/* Coordinates of the space in registers of the index type, from a number of that type, which stays as it is: those of a
 * list, or first .. end - 1, the last one fastest. */
void ops_split_over(ops_code *code, uint16_t from, const uint32_t *order, uint32_t count);
void ops_split_range(ops_code *code, uint16_t from, uint32_t first, uint32_t end);

/* A scalar parameter with this value (of the index type unless said): equal values are one parameter. */
atlas_operand ops_scalar_of(ops_code *code, atlas_type type, uint64_t bits);
/* A buffer parameter for a storage; the same one for the same storage. */
uint16_t ops_buffer_of(ops_code *code, uint32_t storage);
/* Computes a form into an operand: a register of the index type, which may be a coordinate's. */
atlas_operand ops_form_value(ops_code *code, const ops_form *form);
/* An address of a storage. */
atlas_operand ops_memory(ops_code *code, uint32_t storage, const ops_form *form);

/* The value of a term in a register; computes what it needs. To put a value there oneself (a reduction's result, what
 * another phase has left): code->registers[term] = reg. bool values are u32, 0 or 1, in registers. */
uint16_t ops_value(ops_code *code, term_id id);
/* Forgets registers of all terms and derived variables that vary along these coordinates, to compute them anew at
 * another place; code->displacement may then be another one, or the coordinates' registers hold other values. */
void ops_forget(ops_code *code, uint32_t coordinates);
/* The same of all terms and derived variables: what follows may run without what was computed. */
void ops_forget_all(ops_code *code);
/* Writes a register (of the term's type) to a storage. */
void ops_store(ops_code *code, uint32_t storage, const ops_form *form, atlas_type type, uint16_t reg);
/* Computes the group's results and stores them. What updates an input lies over it: it is stored when all that read old
 * elements have been computed. */
void ops_store_results(ops_code *code, const term_id *roots, const ops_form *places);

/* ---- maps over rows in blocks ------------------------------------------------------------------------------------ */

/* On a CPU what a block's lanes have in common is computed once, and that their elements lie side by side is known: so
 * a block has a piece of one row, where not all elements are found by the lane's number alone. */
typedef struct ops_row_blocks {
  uint16_t row, column; /* registers of the index type: the row's number, the lane's place in it */
} ops_row_blocks;

/* Lanes of a block, if rows along the space's last coordinate are made of whole ones; else 0. */
uint32_t ops_row_blocks_lanes(const ops_terms *t, const ops_shape *space);
/* Makes it a launch of such blocks: so many rows of this size. */
ops_row_blocks ops_row_blocks_begin(ops_code *code, uint64_t rows, uint64_t size, uint32_t lanes);

#endif
