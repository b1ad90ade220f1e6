/* formula.h - turns formulas, as syntax.h has read them, into nodes.
 *
 * formula.c evaluates expressions; formula_call.c calls operations and the functions that are decided when a formula is
 * built; formula_row.c gives a formula its names and takes its results. (compute.h names their circle.) */
#ifndef HG_OPS_FORMULA_H
#define HG_OPS_FORMULA_H

#include "ops/graph/compute.h"
#include "ops/graph/syntax.h"

enum { OPS_MAX_NAMES = 40, OPS_MAX_NESTING = 16 };

typedef struct ops_name {
  ops_word word;
  ops_item item;
  atlas_type type; /* of an input, before f16 and bf16 were widened; ATLAS_NONE for other names */
} ops_name;

/* An argument of a call. */
typedef struct ops_part {
  ops_item item;
  ops_word name; /* of length 0: it is given by position */
  const char *at;
} ops_part;

typedef struct ops_formula {
  hg_computation *c;
  const ops_row *row; /* the row whose formula it is; NULL: a user's formula */
  const char *text;
  ops_parsed parsed;  /* the formula as it was read */
  atlas_type type;    /* of numbers that meet no value */
  atlas_type promoted; /* what the float inputs promote to; ATLAS_NONE: there are none */
  atlas_type rounded; /* the type that f32 results are rounded to, once; ATLAS_NONE: they are not rounded */
  ops_name names[OPS_MAX_NAMES];
  uint32_t name_count;
  uint32_t nesting;   /* the number of formulas around it */
  int is_wide;        /* 1: results are not rounded */
  int failed;
  hg_array packs;     /* value_id *, released at the end */
} ops_formula;

/* Evaluates the expression that ends in this node. */
ops_item ops_evaluate(ops_formula *f, uint32_t at);
/* Evaluates a call whose parts have been evaluated. The parts are valid until the next evaluation. */
ops_item ops_make_call(ops_formula *f, uint32_t at, const ops_part *first, uint32_t count);
/* Calls an operation of the table on items; + is add. */
ops_item ops_operate(ops_formula *f, const char *at, hg_op op, const ops_item *items, uint32_t count);

/* Where an expression begins. */
static inline const char *ops_begin_of(const ops_formula *f, uint32_t at) {
  while (f->parsed.nodes[at].kind == OPS_SYNTAX_OPERATE) at -= 1 + ops_syntax_size(&f->parsed.nodes[at - 1]);
  return f->text + f->parsed.nodes[at].at;
}

/* The text that a complaint about a node points to; the word of a node that has one. */
static inline const char *ops_text_at(const ops_formula *f, uint32_t at) { return f->text + f->parsed.nodes[at].at; }
static inline ops_word ops_word_at(const ops_formula *f, uint32_t at) {
  return (ops_word){ops_text_at(f, at), f->parsed.nodes[at].op};
}

/* Notes the first failure, with line and column of a user's formula, and returns an absent item. at NULL: what was
 * given does not fit, and no place in the formula is at fault. */
ops_item ops_complain(ops_formula *f, const char *at, const char *format, ...) HG_PRINTF(3, 4);
/* "formula:1:12: " for a user's formula; for the table's, the name of the row. */
void ops_place_text(const ops_formula *f, const char *at, char *text, size_t bytes);
/* Puts a prefix before the computation's sentence when an operation of the formula has failed. */
void ops_wrap_failure(hg_computation *c, const char *prefix);

/* A name of the formula; NULL: there is none. */
ops_name *ops_find_name(ops_formula *f, ops_word word);
void ops_set_name(ops_formula *f, const char *at, ops_word word, ops_item item, atlas_type type);
ops_item ops_value_item(value_id value);
/* A number as a constant of a type; 0 and a complaint if the type does not have it. */
value_id ops_number_of(ops_formula *f, const char *at, const ops_item *item, atlas_type type);

/* Begins with the names of the inputs; the types of those that are widened decide about rounding. */
void ops_formula_begin(ops_formula *f, hg_computation *c, const char *text);
void ops_formula_input(ops_formula *f, ops_word name, value_id value, int widens);
/* Evaluates f->parsed: statements and results, of which those with a bit in `wanted` are built. Returns how many
 * results there are; 0: failed. Releases what the formula holds. */
uint32_t ops_formula_finish(ops_formula *f, uint32_t wanted, value_id *results);
/* The same of its text. */
uint32_t ops_formula_read(ops_formula *f, uint32_t wanted, value_id *results);

#endif
