/* expression.h - code for the values of nodes at a place of an index space.
 *
 * Three steps. Terms: a node at an index becomes a term, whose index in every storage is a form: a sum of multiples of
 * the space's coordinates and a constant. So views cost nothing, and a producer that is read at two places is two
 * terms. Space: neighbouring dimensions are merged if every form steps through both with one stride. Code: each term
 * once, in registers.
 *
 * The writer chooses the space's dimensions: a map has one lane for each element; a row program has a block for some
 * coordinates, and lanes and loops for the rest. It also says which registers hold the coordinates.
 *
 * Circle: expression random_words: which words a random value is made of is a form's value. */
#ifndef HG_OPS_EXPRESSION_H
#define HG_OPS_EXPRESSION_H

#include "ops/write/launch_plan.h"

enum {
  OPS_MAX_VARIABLES = 24, /* coordinates of the space, then quotients and remainders of forms */
  OPS_MAX_TERMS = 1024,
  OPS_MAX_TERM_DEPTH = 64, /* terms within terms: up to 1 KB of stack for each, and threads may have 128 KB */
  OPS_INDEX_LEVELS = 8     /* levels of that depth whose indices share one allocation */
};

/* constant + the sum of factor[i] * variable i */
typedef struct ops_form {
  int64_t constant;
  int64_t factor[OPS_MAX_VARIABLES];
} ops_form;

/* A variable that is not a coordinate: of / size or of % size, where `of` is never negative; or `of` clamped to 0 ..
 * size - 1. */
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
  TERM_GATHER,     /* the same, at form + stride * input 0, which ranges from 0 to extent - 1 */
  TERM_POINTWISE,  /* op of the inputs */
  TERM_RANGE,      /* bool: the form is at least 0 and below the extent */
  TERM_RANDOM,     /* word number `form` of the random sequence given by inputs 0 and 1; of a float type a fraction made
                      of it, and of the next one for f64: bits says which, as ops_node.reduce */
  TERM_BOUND       /* a reduction of the group, in a register of the writer; the form is the element's number in C
                      order */
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
  ops_shape space;  /* as given; after ops_collapse, with merged dimensions */
  ops_derived derived[OPS_MAX_VARIABLES];
  uint32_t variable_count; /* coordinates and derived variables */
  hg_array terms;   /* ops_term, inputs first */
  hg_array seen, seen_at; /* nodes at indices that have become terms; their forms, concatenated */
  uint32_t depth;
  ops_form *indices[OPS_MAX_TERM_DEPTH / OPS_INDEX_LEVELS]; /* by depth: space for an index, for nodes that build one */
} ops_terms;

/* Begins the terms of a group over an index space. Call ops_terms_release in any case. */
void ops_terms_begin(ops_terms *t, const ops_group *group, const ops_shape *space);
void ops_terms_release(ops_terms *t);
/* The node's value at an index, given as a form for each dimension. HG_UNSUPPORTED if there are too many terms or
 * variables. */
hg_status ops_term_of(ops_terms *t, value_id value, const ops_form *index, term_id *out);
/* An element of a storage that belongs to no node: what an earlier step of the writer has left there. */
hg_status ops_load_of(ops_terms *t, uint32_t storage, atlas_type type, const ops_form *form, term_id *out);
/* Makes the storage one that the launch reads, wherever. */
hg_status ops_reads(ops_terms *t, uint32_t storage);
/* The index forms of the space itself: dimension i of the node is coordinate i. */
void ops_identity(const ops_shape *space, ops_form *index);
static inline ops_term *ops_term_at(const ops_terms *t, term_id id) { return (ops_term *)t->terms.data + (id - 1); }

int ops_is_constant(const ops_form *form);
/* The coordinates (bits) along which a form changes, also by way of derived variables. */
uint32_t ops_varies(const ops_terms *t, const ops_form *form);
/* The index in `from` of the element with `index` in `to`; both shapes have the same number of elements. */
hg_status ops_reshaped(ops_terms *t, const ops_shape *from, const ops_shape *to, const ops_form *index, ops_form *out);
/* What was divided, in place of the quotient times the divisor plus the remainder. */
void ops_rejoin(const ops_terms *t, ops_form *form);
int ops_is_dense(const ops_storage *storage); /* in C order */
/* The form of an element's address in a storage, whose lowest element is number 0. */
ops_form ops_address(const ops_storage *storage, const ops_form *index);
/* Merges coordinates j and j + 1 wherever all terms, derived variables and the forms `more` allow it. Dimensions before
 * `boundary` are not merged with those behind it, so that rows stay apart from what is inside them; 0: there is no
 * boundary. *boundary becomes the number of coordinates left before it. */
void ops_collapse(ops_terms *t, ops_form **more, uint32_t more_count, uint32_t *boundary);

/* ---- code -------------------------------------------------------------------------------------------------------- */

enum { OPS_NO_REGISTER = 0xffff };

/* The four words of a counter, in registers. */
typedef struct ops_drawn {
  int is_there;
  term_id input[2];
  ops_form number; /* of the first one */
  uint16_t at, word[4]; /* the register with its number, u64 */
} ops_drawn;

typedef struct ops_code {
  ops_terms *terms;
  ops_step *step;
  atlas_builder *builder;
  atlas_type index_type;              /* of coordinates and addresses: u32, i32 or i64 */
  uint16_t variable[OPS_MAX_VARIABLES]; /* registers of coordinates (the writer's) and of derived variables;
                                           ATLAS_REG_LANE may be coordinate 0 of a one-dimensional space */
  const ops_form *lane_form; /* the lane's number as a form of coordinates, if each lane has one element; NULL */
  int64_t displacement;               /* a constant of the program that the writer adds to coordinate `displaced` */
  uint32_t displaced;
  uint32_t neighbours; /* the register of coordinate `displaced` has multiples of this power of two, and what derived
                          variables are along it is known; 0: nothing is */
  ops_drawn drawn;
  uint64_t is_known, holds; /* by term up to 64: conditions that are known where code is written now, and which hold */
  int is_inside;                      /* 1: whatever is clamped is in its range there */
  uint16_t *registers;                /* by term: the register of its value; OPS_NO_REGISTER */
  uint32_t partials[5], partial_count; /* storages that the launch writes in addition to those of the group's results */
  uint32_t next_register;
  hg_status status;                   /* the first failure: parameters ran out, ... */
} ops_code;

/* Begins a step's program; the access of storages follows from group->results. Parameters get generated names. */
hg_status ops_code_begin(ops_code *code, ops_terms *terms, ops_step *step, const char *name);
/* The same for a new step of the plan, of that kind. */
hg_status ops_code_begin_step(ops_code *code, ops_terms *terms, const char *name, const char *kind);
/* Makes it a launch of that many blocks of lanes. */
void ops_launch_blocks(ops_code *code, uint64_t x, uint64_t y, uint64_t z, uint32_t lanes);
/* Continues in the same program, with nothing computed, after code->terms has changed. */
hg_status ops_code_again(ops_code *code);
/* Ends it: step->program. Releases in any case what begin has allocated. */
hg_status ops_code_end(ops_code *code);
void ops_code_drop(ops_code *code);
/* The same for one that may not have begun (zeroed), and releases its terms. Returns the first failure. */
hg_status ops_code_end_all(ops_code *code, ops_terms *terms, hg_status status);

/* A register that nothing else uses. There are as many as needed (ATLAS_MOST_REGISTERS), since the compiler makes
 * values of them. */
uint16_t ops_register(ops_code *code);
/* The number in a u32 register, in a new register of the index type. `ops_launch_index`: a coordinate of the launch,
 * u32. */
uint16_t ops_index_of(ops_code *code, uint32_t reg);
uint16_t ops_launch_coordinate(ops_code *code, atlas_coord coord);
/* That, and the lane's number in the whole launch, of the index type. */
uint16_t ops_launch_index(ops_code *code, atlas_coord coord);
uint16_t ops_lane_index(ops_code *code);

/* Puts the coordinates below `end` that have no register yet into new registers, i64: those in `axes` (bits) come from
 * a number below `count`, `from` of type `is`, the last one fastest; the others are 0. */
void ops_split(ops_code *code, const ops_shape *shape, uint32_t axes, uint32_t end, uint64_t count, atlas_operand from,
               atlas_type is);

/* Computes coordinates of the space, in registers of the index type, from a number of that type, which is preserved:
 * the coordinates of a list, or first .. end - 1, the last one fastest. */
void ops_split_over(ops_code *code, uint16_t from, const uint32_t *order, uint32_t count);
void ops_split_range(ops_code *code, uint16_t from, uint32_t first, uint32_t end);

/* A scalar parameter with this value (of the index type unless given); equal values share one parameter. */
atlas_operand ops_scalar_of(ops_code *code, atlas_type type, uint64_t bits);
/* The buffer parameter of a storage; one for each storage. */
uint16_t ops_buffer_of(ops_code *code, uint32_t storage);
/* Computes a form into an operand: a register of the index type, which may be a coordinate's. */
atlas_operand ops_form_value(ops_code *code, const ops_form *form);
/* A form is the sum of what is known, its constant and what code->displacement adds, and of multiples of variables: a
 * number that divides these, whatever the variables are (0: there are none); what is known; the rest, as a u64. */
uint64_t ops_unit_of(const ops_code *code, const ops_form *form);
int64_t ops_known_of(const ops_code *code, const ops_form *form);
uint16_t ops_unknown_of(ops_code *code, const ops_form *form);
/* 1 if lanes may have so many neighbours along a coordinate each: a power of two that quotients and remainders of what
 * varies along it divide. */
int ops_neighbours_fit(ops_code *code, uint32_t coordinate, uint32_t neighbours);
/* random_words.c: a TERM_RANDOM. */
void ops_draw(ops_code *code, const ops_term *term, uint16_t to, uint16_t key, uint16_t counter);
/* 1 if the form is lane_form: the access is [x + lane]. */
int ops_is_at_lane(const ops_code *code, const ops_form *form);
/* An address of a storage. */
atlas_operand ops_memory(ops_code *code, uint32_t storage, const ops_form *form);

static inline int ops_is_known(const ops_code *code, term_id id) { return id < 64 && (code->is_known >> id & 1) != 0; }
/* The register with a term's value; computes whatever is needed. A writer that has the value itself (a reduction's
 * result, something left by another phase) sets code->registers[term] = reg. bool values are u32, 0 or 1, in
 * registers. */
uint16_t ops_value(ops_code *code, term_id id);
/* Forgets the registers of all terms and derived variables that vary along these coordinates, so that they are computed
 * again for another place: code->displacement, or the coordinates' registers, may change after it. */
void ops_forget(ops_code *code, uint32_t coordinates);
/* The same for all terms and derived variables: what follows may be reached without the code that computed them. */
void ops_forget_all(ops_code *code);
/* Writes a register (of the term's type) to a storage. */
void ops_store(ops_code *code, uint32_t storage, const ops_form *form, atlas_type type, uint16_t reg);
/* Computes and stores the group's results. A result that updates an input in place is stored after everything that
 * reads old elements has been computed. */
void ops_store_results(ops_code *code, const term_id *roots, const ops_form *places);

/* Branches to the label if the comparison holds; or if it does not. */
enum { OPS_BRANCHES = ATLAS_PREDICATES - 1 }; /* a predicate for them alone */
static inline void ops_branch_if(atlas_builder *b, atlas_op op, atlas_type type, atlas_operand x, atlas_operand y,
                                 uint32_t label) {
  atlas_emit(b, op, type, 3, atlas_pred(OPS_BRANCHES), x, y);
  atlas_emit_branch(b, OPS_BRANCHES, 0, label);
}
static inline void ops_branch_unless(atlas_builder *b, atlas_op op, atlas_type type, atlas_operand x, atlas_operand y,
                                     uint32_t label) {
  atlas_emit(b, op, type, 3, atlas_pred(OPS_BRANCHES), x, y);
  atlas_emit_branch(b, OPS_BRANCHES, 1, label);
}

/* ---- maps over rows in blocks ------------------------------------------------------------------------------------ */

/* On a CPU, what the lanes of a block have in common is computed once, and their elements are known to be consecutive.
 * So if some elements are found by other means than the lane's number, a block has a piece of one row. */
typedef struct ops_row_blocks {
  uint16_t row, column; /* registers of the index type: the row's number in its group, the lane's position in it */
  uint16_t group;       /* the group's number; no register if there is one group */
} ops_row_blocks;

/* The lanes of a block if rows along the space's last coordinate consist of whole blocks; else 0. */
uint32_t ops_row_blocks_lanes(const ops_terms *t, const ops_shape *space);
/* Makes it a launch of such blocks: `groups` of `rows` rows of `size`. */
ops_row_blocks ops_row_blocks_begin(ops_code *code, uint64_t groups, uint64_t rows, uint64_t size, uint32_t lanes);

/* ---- maps in tiles ----------------------------------------------------------------------------------------------- */

/* On a CPU, the only load of a matrix that is transposed, and the coordinate along which it lies; 0: there is none. */
term_id ops_tiled_load(const ops_terms *t, uint32_t *row);
/* Computes and stores the group's results in tiles, into which that load is read. */
void ops_store_tiles(ops_code *code, const term_id *roots, const ops_form *places, term_id load, uint32_t row);

#endif
