/* table.c - the rows of operations.def: finds one, and reads its columns of names. */
#include "ops/graph/table.h"

#include "base/abi.h"
#include "base/error.h"
#include "ops/graph/syntax.h"

static const ops_row rows[] = {
#define HG_OPERATION(code, id, kind, inputs, arguments, types, formula, gradient, meaning) \
  {code, OPS_KIND_##kind, sizeof(#id) - 1, #id, #kind, inputs, arguments, types, formula, gradient, meaning},
#include "hologram/operations.def"
#undef HG_OPERATION
};
enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

size_t ops_row_count(void) { return ROW_COUNT; }

const ops_row *ops_row_at(size_t index) { return index < ROW_COUNT ? &rows[index] : NULL; }

/* Rows are sorted by code, which test_operations checks. */
const ops_row *ops_row_of(uint32_t op) {
  size_t low = 0, high = ROW_COUNT;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (rows[middle].op == op) return &rows[middle];
    if (rows[middle].op < op) low = middle + 1;
    else high = middle;
  }
  return NULL;
}

const ops_row *ops_row_by_name(const char *name, size_t length) {
  if (length == 0) return NULL;
  for (size_t i = 0; i < ROW_COUNT; i++)
    if (rows[i].name_length == length && rows[i].name[0] == name[0] && memcmp(rows[i].name, name, length) == 0)
      return &rows[i];
  return NULL;
}

static ops_parsed parsed_of(const ops_row *row, int is_gradient) {
  const uint16_t *first = hg_formula_first + 2 * (row - rows) + is_gradient;
  return (ops_parsed){hg_formula_nodes + first[0], (uint32_t)first[1] - first[0], hg_formula_numbers};
}

ops_parsed ops_row_formula(const ops_row *row) { return parsed_of(row, 0); }
ops_parsed ops_row_gradient(const ops_row *row) { return parsed_of(row, 1); }

/* ---- columns ----------------------------------------------------------------------------------------------------- */

int ops_word_is(ops_word word, const char *text) {
  return word.length > 0 && text[0] == word.text[0] && strncmp(word.text, text, word.length) == 0 &&
         text[word.length] == 0;
}

static const char *behind_blanks(const char *at) {
  while (*at == ' ' || *at == ',') at++;
  return at;
}

/* The characters up to one of `ends`, or to the end. A loop, since the texts are shorter than what strcspn prepares. */
static size_t length_until(const char *at, const char *ends) {
  for (size_t length = 0;; length++)
    for (const char *end = ends;; end++) {
      if (at[length] == *end) return length;
      if (*end == '\0') break;
    }
}

static ops_word word_until(const char **at, const char *ends) {
  ops_word word = {*at, length_until(*at, ends)};
  *at += word.length;
  return word;
}

int ops_next_input(const char **at, ops_input_spec *spec) {
  *at = behind_blanks(*at);
  if (**at == '\0') return 0;
  *spec = (ops_input_spec){.name = word_until(at, "?.,")};
  if (**at == '?') spec->is_optional = 1, *at += 1;
  if (**at == '.') spec->is_variadic = 1, *at += strspn(*at, ".");
  return 1;
}

int ops_next_argument(const char **at, ops_argument_spec *spec) {
  *at = behind_blanks(*at);
  if (**at == '\0') return 0;
  spec->name = word_until(at, "=");
  if (**at == '=') *at += 1;
  if (**at == '[') {
    spec->preset = (ops_word){*at, length_until(*at, "]") + 1};
    *at += spec->preset.length;
  } else {
    spec->preset = word_until(at, ",");
  }
  return 1;
}

ops_word ops_types_part(const char *types, size_t index) {
  for (;; index--) {
    size_t length = length_until(types, ";"), blanks = 0;
    while (types[blanks] == ' ') blanks++;
    if (index == 0 || types[length] == '\0') return (ops_word){types + blanks, length - blanks};
    types += length + 1;
  }
}

int ops_choice_of(ops_word preset, ops_word word) {
  int number = 0;
  for (size_t i = 0; i < preset.length; number++) {
    size_t end = i;
    while (end < preset.length && preset.text[end] != '|') end++;
    if (end - i == word.length && memcmp(preset.text + i, word.text, word.length) == 0) return number;
    i = end + 1;
  }
  return -1;
}

int ops_choice_count(ops_word preset) {
  int count = 1;
  for (size_t i = 0; i < preset.length; i++) count += preset.text[i] == '|';
  return count;
}

uint32_t ops_argument_count(const ops_row *row) {
  const char *at = row->arguments;
  ops_argument_spec spec;
  uint32_t count = 0;
  while (ops_next_argument(&at, &spec)) count++;
  return count;
}

/* The results stand behind the last semicolon, commas between them. */
uint32_t ops_output_count(const ops_row *row) {
  const char *last = strrchr(row->formula, ';');
  uint32_t count = 1;
  int depth = 0;
  for (const char *at = last != NULL ? last : row->formula; *at != '\0'; at++) {
    depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
    count += *at == ',' && depth == 0;
  }
  return count;
}

/* ---- the public side --------------------------------------------------------------------------------------------- */

hg_status hg_op_query(size_t index, hg_op_info *info) {
  if (info == NULL) return hg_fail(HG_INVALID_ARGUMENT, "hg_op_query: 'info' is NULL");
  const ops_row *row = ops_row_at(index);
  if (row == NULL) return hg_fail(HG_NOT_FOUND, "hg_op_query: there are %d operations", (int)ROW_COUNT);
  hg_op_info own = {.size = sizeof own,
                    .op = (hg_op)row->op,
                    .name = row->name,
                    .kind = row->kind_name,
                    .inputs = row->inputs,
                    .arguments = row->arguments,
                    .types = row->types,
                    .formula = row->formula,
                    .gradient = row->gradient,
                    .meaning = row->meaning,
                    .output_count = ops_output_count(row)};
  return HG_WRITE(hg_op_info, info, &own);
}

hg_op hg_op_by_name(const char *name) {
  const ops_row *row = name != NULL ? ops_row_by_name(name, strlen(name)) : NULL;
  return row != NULL ? (hg_op)row->op : HG_OP_none;
}
