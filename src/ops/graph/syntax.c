/* syntax.c - reads formulas: operators, numbers, names, choices, calls, statements. */
#include "ops/graph/syntax.h"

#include "atlas/number.h"
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
  const hg_allocator *allocator;
  const char *text, *at;
  ops_syntax_list *list;
  ops_syntax_error *error;
  uint32_t depth; /* nesting of parentheses, calls and signs */
  int failed;
} reader;

static void read_expression(reader *r);

/* ---- failing ----------------------------------------------------------------------------------------------------- */

HG_PRINTF(3, 4) static void complain(reader *r, const char *at, const char *format, ...) {
  if (r->failed) return;
  r->failed = 1;
  r->error->status = HG_PARSE;
  r->error->at = (uint32_t)(at - r->text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(r->error->sentence, sizeof r->error->sentence, format, arguments);
  va_end(arguments);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------- */

static uint32_t node_count(const reader *r) { return (uint32_t)r->list->nodes.count; }

static void add(reader *r, ops_syntax_kind kind, uint32_t op, const char *at, uint32_t count, uint32_t size) {
  ops_syntax node = {.kind = (uint32_t)kind & 15,
                     .count = count & 15,
                     .at = (uint32_t)(at - r->text) & OPS_MOST_TEXT,
                     .op = op & OPS_MOST_OP,
                     .size = size & OPS_MOST_NODES};
  if (size > OPS_MOST_NODES) complain(r, at, "a formula has at most %d names, numbers and operators", OPS_MOST_NODES);
  if (r->failed || hg_array_append(r->allocator, &r->list->nodes, &node, 1) != NULL) return;
  r->failed = 1;
  r->error->status = HG_OUT_OF_MEMORY;
}

/* Adds a node over everything added from `first` on. */
static void add_over(reader *r, ops_syntax_kind kind, uint32_t op, const char *at, uint32_t count, uint32_t first) {
  add(r, kind, op, at, count, node_count(r) - first + 1);
}

static void add_number(reader *r, ops_syntax_kind kind, const char *at, uint64_t bits) {
  uint32_t number = (uint32_t)r->list->numbers.count;
  if (r->failed) return;
  if (kind == OPS_SYNTAX_LARGE && bits <= OPS_MOST_NODES) {
    add(r, OPS_SYNTAX_WHOLE, 0, at, 0, (uint32_t)bits);
    return;
  }
  if (hg_array_append(r->allocator, &r->list->numbers, &bits, 1) == NULL) {
    r->failed = 1;
    r->error->status = HG_OUT_OF_MEMORY;
  }
  add(r, kind, 0, at, 0, number);
}

/* ---- characters and words ---------------------------------------------------------------------------------------- */

static void skip_blanks(reader *r) {
  while (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r') r->at++;
}

/* 1, and past it, if it comes next. */
static int take(reader *r, char wanted) {
  skip_blanks(r);
  if (*r->at != wanted) return 0;
  r->at++;
  return 1;
}

/* What comes next, as words for a sentence. */
static const char *next_text(reader *r, char *copy, size_t bytes) {
  skip_blanks(r);
  if (*r->at == '\0') return "its end";
  size_t length = 1;
  while (r->at[length] != '\0' && length < 12 && (r->at[length] & 0x80) == 0 &&
         strchr(" \n,;()", r->at[length]) == NULL)
    length++;
  snprintf(copy, bytes, "'%.*s'", (int)length, r->at);
  return copy;
}

static void expect(reader *r, char wanted) {
  if (r->failed || take(r, wanted)) return;
  complain(r, r->at, "'%c' is expected here, not %s", wanted, next_text(r, (char[32]){0}, 32));
}

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* Of length 0: no name comes next. */
static ops_word take_word(reader *r) {
  skip_blanks(r);
  ops_word word = {r->at, 0};
  if (!is_letter(*r->at)) return word;
  while (is_letter(r->at[word.length]) || is_digit(r->at[word.length])) word.length++;
  r->at += word.length;
  if (word.length > OPS_MOST_OP) complain(r, word.text, "a name is at most %d characters long", OPS_MOST_OP);
  return word;
}

/* 1, and past it, if `name =` comes next. */
static int takes_assignment(reader *r, ops_word *name) {
  const char *before = r->at;
  *name = take_word(r);
  skip_blanks(r);
  if (name->length > 0 && r->at[0] == '=' && r->at[1] != '=') {
    r->at++;
    return 1;
  }
  r->at = before;
  return 0;
}

static void add_name(reader *r, ops_syntax_kind kind, ops_word name) {
  add_over(r, kind, (uint32_t)name.length, name.text, 0, node_count(r));
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

static void read_number(reader *r) {
  const char *begin = r->at, *at = begin;
  int is_real = 0;
  while (is_digit(*at) || *at == '.') is_real |= *at++ == '.';
  if ((*at == 'e' || *at == 'E') && (is_digit(at[1]) || ((at[1] == '-' || at[1] == '+') && is_digit(at[2])))) {
    is_real = 1;
    for (at += 2; is_digit(*at);) at++;
  }
  r->at = at;
  uint64_t bits = 0;
  size_t length = (size_t)(at - begin);
  if (!is_real && atlas_number_parse(ATLAS_i64, begin, length, &bits) == ATLAS_NUMBER_OK)
    add_number(r, OPS_SYNTAX_LARGE, begin, bits);
  else if (atlas_number_parse(ATLAS_f64, begin, length, &bits) == ATLAS_NUMBER_OK)
    add_number(r, OPS_SYNTAX_REAL, begin, bits);
  else complain(r, begin, "'%s' is no number", HG_WORD(begin, length));
}

static int deeper(reader *r) {
  if (++r->depth <= OPS_MAX_DEPTH && !r->failed) return 1;
  complain(r, r->at, "a formula is at most %d parentheses deep", OPS_MAX_DEPTH / 2);
  return 0;
}

static void read_list(reader *r, const char *at) {
  uint32_t first = node_count(r), count = 0;
  if (!take(r, ']')) {
    do {
      const char *item = r->at;
      if (count++ == HG_MAX_RANK) complain(r, item, "a list holds up to %d integers", HG_MAX_RANK);
      read_expression(r);
    } while (!r->failed && take(r, ','));
    expect(r, ']');
  }
  add_over(r, OPS_SYNTAX_LIST, 0, at, count, first);
}

/* Reads the parts between parentheses; returns how many there are. */
static uint32_t read_parts(reader *r) {
  uint32_t count = 0;
  if (take(r, ')')) return 0;
  do {
    if (count++ == OPS_MAX_PARTS) complain(r, r->at, "a call has at most %d parts", OPS_MAX_PARTS);
    ops_word name = {NULL, 0};
    uint32_t begin = node_count(r);
    int is_named = takes_assignment(r, &name);
    if (is_named) add_name(r, OPS_SYNTAX_NAME, name);
    read_expression(r);
    if (is_named) add_over(r, OPS_SYNTAX_PART, 0, name.text, 2, begin);
  } while (!r->failed && take(r, ','));
  expect(r, ')');
  return count;
}

static ops_function find_function(ops_word name) {
  static const char *const names[] = {
#define FUNCTION(name, parts, decide, takes) #name,
#include "ops/graph/functions.def"
#undef FUNCTION
  };
  int i = 0;
  while (i < OPS_FUNCTION_COUNT && !ops_word_is(name, names[i])) i++;
  return (ops_function)i;
}

static void read_call(reader *r, ops_word name) {
  uint32_t first = node_count(r), count = read_parts(r);
  ops_function function = find_function(name);
  const ops_row *row = ops_row_by_name(name.text, name.length);
  if (function != OPS_FUNCTION_COUNT) add_over(r, OPS_SYNTAX_FUNCTION, function, name.text, count, first);
  else if (row != NULL) add_over(r, OPS_SYNTAX_CALL, row->op, name.text, count, first);
  else add_over(r, OPS_SYNTAX_UNKNOWN, (uint32_t)name.length, name.text, count, first);
}

static void read_primary(reader *r) {
  skip_blanks(r);
  const char *at = r->at;
  if (is_digit(*at) || (*at == '.' && is_digit(at[1]))) {
    read_number(r);
  } else if (take(r, '[')) {
    read_list(r, at);
  } else if (take(r, '(')) {
    read_expression(r);
    expect(r, ')');
  } else {
    ops_word word = take_word(r);
    if (word.length == 0) complain(r, r->at, "a value is expected here, not %s", next_text(r, (char[32]){0}, 32));
    else if (take(r, '(')) read_call(r, word);
    else add_name(r, OPS_SYNTAX_NAME, word);
  }
}

static void read_unary(reader *r) {
  skip_blanks(r);
  const char *at = r->at;
  uint32_t first = node_count(r);
  if (!deeper(r)) return;
  if (take(r, '-')) {
    read_unary(r);
    add_over(r, OPS_SYNTAX_NEGATE, 0, at, 1, first);
  } else {
    read_primary(r);
  }
  r->depth--;
}

typedef struct operator_row {
  char text[3];
  uint16_t op;
} operator_row;

static const operator_row comparisons[] = {{"<=", HG_OP_less_equal}, {"<", HG_OP_less},   {">=", HG_OP_greater_equal},
                                           {">", HG_OP_greater},     {"==", HG_OP_equal}, {"!=", HG_OP_not_equal},
                                           {"", HG_OP_none}};
static const operator_row sums[] = {{"+", HG_OP_add}, {"-", HG_OP_sub}, {"", HG_OP_none}};
static const operator_row products[] = {{"*", HG_OP_mul}, {"/", HG_OP_div}, {"", HG_OP_none}};

static hg_op take_operator(reader *r, const operator_row *rows) {
  skip_blanks(r);
  for (; rows->text[0] != '\0'; rows++) {
    if (r->at[0] != rows->text[0] || (rows->text[1] != '\0' && r->at[1] != rows->text[1])) continue;
    r->at += rows->text[1] == '\0' ? 1 : 2;
    return (hg_op)rows->op;
  }
  return HG_OP_none;
}

/* Reads operands and operators from left to right. */
static void read_chain(reader *r, void (*operand)(reader *), const operator_row *rows, int may_go_on) {
  uint32_t first = node_count(r);
  operand(r);
  for (int has_more = 1; has_more && !r->failed; has_more = may_go_on) {
    skip_blanks(r);
    const char *at = r->at;
    hg_op op = take_operator(r, rows);
    if (op == HG_OP_none) return;
    operand(r);
    add_over(r, OPS_SYNTAX_OPERATE, op, at, 2, first);
  }
}

static void read_products(reader *r) { read_chain(r, read_unary, products, 1); }
static void read_sums(reader *r) { read_chain(r, read_products, sums, 1); }

static void read_expression(reader *r) {
  if (!deeper(r)) return;
  skip_blanks(r);
  const char *at = r->at;
  uint32_t first = node_count(r);
  read_chain(r, read_sums, comparisons, 0);
  if (!r->failed && take(r, '?')) {
    read_expression(r);
    expect(r, ':');
    read_expression(r);
    add_over(r, OPS_SYNTAX_CHOOSE, 0, at, 3, first);
  }
  r->depth--;
}

/* ---- statements and results -------------------------------------------------------------------------------------- */

/* Adds a node whose expression follows it. */
static void read_behind(reader *r, ops_syntax_kind kind, uint32_t op, const char *at) {
  uint32_t first = node_count(r);
  add_over(r, kind, op, at, 0, first);
  read_expression(r);
  if (r->failed) return;
  uint32_t size = node_count(r) - first - 1;
  if (size > OPS_MOST_NODES) complain(r, at, "a formula has at most %d names, numbers and operators", OPS_MOST_NODES);
  ((ops_syntax *)r->list->nodes.data)[first].size = size & OPS_MOST_NODES;
}

static void read_result(reader *r) {
  skip_blanks(r);
  read_behind(r, OPS_SYNTAX_RESULT, 0, r->at);
  const char *before = r->at;
  if (r->failed || !ops_word_is(take_word(r), "as")) r->at = r->failed ? r->at : before;
  else add_name(r, OPS_SYNTAX_AS, take_word(r));
}

static void read_all(reader *r) {
  for (uint32_t results = 0; !r->failed;) {
    ops_word name;
    if (takes_assignment(r, &name)) {
      read_behind(r, OPS_SYNTAX_SET, (uint32_t)name.length, name.text);
      expect(r, ';');
      continue;
    }
    if (results++ == OPS_MAX_RESULTS) complain(r, r->at, "a formula has at most %d results", OPS_MAX_RESULTS);
    read_result(r);
    if (r->failed || take(r, ',') || take(r, ';')) continue;
    skip_blanks(r);
    if (*r->at != '\0') complain(r, r->at, "an operator or the end is expected here");
    return;
  }
}

int ops_read_formula(const hg_allocator *allocator, const char *text, ops_syntax_list *list, ops_syntax_error *error) {
  reader r = {.allocator = allocator, .text = text, .at = text, .list = list, .error = error};
  list->nodes.element_size = sizeof(ops_syntax);
  list->numbers.element_size = sizeof(uint64_t);
  if (strlen(text) > OPS_MOST_TEXT) complain(&r, text, "a formula is at most %d characters long", OPS_MOST_TEXT);
  if (!r.failed) read_all(&r);
  return !r.failed;
}

void ops_syntax_release(const hg_allocator *allocator, ops_syntax_list *list) {
  hg_array_release(allocator, &list->nodes);
  hg_array_release(allocator, &list->numbers);
}
