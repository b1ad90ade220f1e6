/* rows.h - a row of operations.def as a Python function (rows.c). */
#ifndef HGPY_ROWS_H
#define HGPY_ROWS_H

#include "arguments.h"

enum { MOST_INPUTS = 8 };

typedef struct input_spec {
  char name[NAME_BYTES];
  bool is_optional;
} input_spec;

typedef struct row {
  hg_op op;
  const char *name;
  input_spec inputs[MOST_INPUTS];
  argument_spec arguments[HGPY_MOST_ARGUMENTS];
  uint8_t input_count, argument_count, kinds[MOST_INPUTS];
  bool is_variadic;
  uint8_t bounds; /* index of the argument of that name, from 1; 0: it has none */
  char *text, *method_text; /* the docstrings */
} row;

extern row hgpy_rows[]; /* written when the module is made, constant afterwards */

/* Reductions also accept what numpy.sum(x) passes: out=None, and most of them dtype=. */
bool hgpy_is_reduction(const row *r);
/* 1 if the result is computed from elements' values, so that dtype= applies; not an index or a truth value. */
bool hgpy_has_type(const row *r);

#endif
