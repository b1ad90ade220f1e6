/* table.h - the rows of operations.def as data, and readers of their columns of names. */
#ifndef HG_OPS_TABLE_H
#define HG_OPS_TABLE_H

#include "hologram/ops.h"

#include <stddef.h>

typedef enum ops_row_kind {
  OPS_KIND_pointwise,
  OPS_KIND_view,
  OPS_KIND_reduce,
  OPS_KIND_contract,
  OPS_KIND_gather,
  OPS_KIND_random,
  OPS_KIND_join,
  OPS_KIND_create,
  OPS_KIND_sort,
  OPS_KIND_scan,
  OPS_KIND_select,
  OPS_KIND_factor,
  OPS_KIND_formula
} ops_row_kind;

typedef struct ops_row {
  uint16_t op;   /* hg_op */
  uint8_t kind;  /* ops_row_kind */
  uint8_t name_length;
  const char *name, *kind_name, *inputs, *arguments, *types, *formula, *gradient, *meaning;
} ops_row;

size_t ops_row_count(void);
const ops_row *ops_row_at(size_t index);
const ops_row *ops_row_of(uint32_t op); /* NULL: no such operation */
const ops_row *ops_row_by_name(const char *name, size_t length);

/* 1: cotangents flow by its gradient column, not through what it is made of; else that column, if any, is of a node. */
static inline int ops_has_rule(const ops_row *row) {
  return (row->kind == OPS_KIND_formula || row->kind == OPS_KIND_contract) && row->gradient[0] != '\0';
}

/* A part of a text. */
typedef struct ops_word {
  const char *text;
  size_t length;
} ops_word;

int ops_word_is(ops_word word, const char *text);

/* One name of the inputs column. */
typedef struct ops_input_spec {
  ops_word name;
  int is_optional, is_variadic;
} ops_input_spec;

/* One name of the arguments column, and the text of its default. */
typedef struct ops_argument_spec {
  ops_word name, preset;
} ops_argument_spec;

/* Reads the next one; 0 at the end. Begin with *at at the column's start. */
int ops_next_input(const char **at, ops_input_spec *spec);
int ops_next_argument(const char **at, ops_argument_spec *spec);

/* The part of a types column that concerns an input: "bool; any" has one for the first and one for the rest. */
ops_word ops_types_part(const char *types, size_t index);

/* The position of a word in a choice "mean|sum|none"; -1: it is not one of them. And how many there are; 1: no
 * choice. */
int ops_choice_of(ops_word preset, ops_word word);
int ops_choice_count(ops_word preset);

uint32_t ops_argument_count(const ops_row *row);
/* How many results a row has: its formula's. */
uint32_t ops_output_count(const ops_row *row);

#endif
