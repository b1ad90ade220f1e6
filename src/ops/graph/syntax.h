/* syntax.h - a formula as it was read, before anything is known of its inputs: a list of nodes, operands before what is
 * made of them. Rows of operations.def are read when Hologram is built (tools/formulas.c), users' formulas at run time;
 * formula.h makes values of both. */
#ifndef HG_OPS_SYNTAX_H
#define HG_OPS_SYNTAX_H

#include "base/memory.h"
#include "ops/graph/table.h"

enum { OPS_MAX_PARTS = 12, OPS_MAX_DEPTH = 64, OPS_MAX_RESULTS = 8 };

typedef enum ops_syntax_kind {
  OPS_SYNTAX_WHOLE, /* size */
  OPS_SYNTAX_LARGE, /* numbers[size], an i64 */
  OPS_SYNTAX_REAL,  /* numbers[size], an f64 */
  OPS_SYNTAX_NAME,  /* op: its length */
  OPS_SYNTAX_LIST,
  OPS_SYNTAX_NEGATE,
  OPS_SYNTAX_OPERATE,  /* op: hg_op, on two operands */
  OPS_SYNTAX_CHOOSE,   /* the condition, then what it gives if true, and if false */
  OPS_SYNTAX_FUNCTION, /* op: ops_function; its parts */
  OPS_SYNTAX_CALL,     /* op: hg_op; its parts */
  OPS_SYNTAX_UNKNOWN,  /* a call of an unknown name. op: the length of the name */
  OPS_SYNTAX_PART,     /* in a call: an expression behind its name */
  OPS_SYNTAX_SET,      /* the next `size` nodes get the name `at`. op: its length */
  OPS_SYNTAX_RESULT,   /* the next `size` nodes are a result, which begins at `at` */
  OPS_SYNTAX_AS        /* behind a result: the name whose type it takes. op: its length */
} ops_syntax_kind;

enum { OPS_MOST_TEXT = (1 << 24) - 1, OPS_MOST_NODES = (1 << 18) - 1, OPS_MOST_OP = (1 << 14) - 1 };

/* Small, since the table's nodes are part of the library. */
typedef struct ops_syntax {
  uint32_t kind : 4, count : 4; /* ops_syntax_kind; operands */
  uint32_t at : 24;             /* position in the text that a complaint points to */
  uint32_t op : 14;
  uint32_t size : 18; /* the number of nodes in the expression, operands and itself; for numbers see above */
} ops_syntax;

/* The functions that are decided when a formula is built. */
typedef enum ops_function {
#define FUNCTION(name, parts, decide, takes) OPS_FUNCTION_##name,
#include "ops/graph/functions.def"
#undef FUNCTION
  OPS_FUNCTION_COUNT
} ops_function;

typedef struct ops_parsed {
  const ops_syntax *nodes;
  uint32_t count;
  const uint64_t *numbers;
} ops_parsed;

static inline uint32_t ops_syntax_size(const ops_syntax *node) {
  return node->kind <= OPS_SYNTAX_REAL ? 1 : node->size;
}

/* What has been read, to be released; further texts may append numbers and nodes. */
typedef struct ops_syntax_list {
  hg_array nodes, numbers; /* ops_syntax, uint64_t */
} ops_syntax_list;

/* Why a text is no formula: HG_PARSE, or HG_OUT_OF_MEMORY. */
typedef struct ops_syntax_error {
  hg_status status;
  uint32_t at;
  char sentence[160];
} ops_syntax_error;

/* Reads a formula up to the end of the text; 0 and the error if it is none. */
int ops_read_formula(const hg_allocator *allocator, const char *text, ops_syntax_list *list, ops_syntax_error *error);
void ops_syntax_release(const hg_allocator *allocator, ops_syntax_list *list);

/* The formula and the gradient of a row of the table, if it has them. */
ops_parsed ops_row_formula(const ops_row *row);
ops_parsed ops_row_gradient(const ops_row *row);

/* Written by tools/formulas.c: where each row's nodes begin, for its formula and for its gradient. */
extern const ops_syntax hg_formula_nodes[];
extern const uint64_t hg_formula_numbers[];
extern const uint16_t hg_formula_first[];

#endif
