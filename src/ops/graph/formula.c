/* formula.c - reads expressions: operators, numbers, names, choices. */
#include "ops/graph/formula.h"

#include "atlas/number.h"
#include "atlas/value.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- failing ----------------------------------------------------------------------------------------------------- */

void ops_wrap_failure(hg_computation *c, const char *prefix) {
  char sentence[sizeof c->sentence];
  snprintf(sentence, sizeof sentence, "%s%s", prefix, c->sentence);
  hg_clip(sentence, strlen(sentence), c->sentence, sizeof c->sentence);
  hg_fail(c->status, "%s", c->sentence);
}

/* "formula:1:12: " of a user's text; of the table's the operation is enough. */
void ops_place_text(const ops_formula *f, const char *at, char *text, size_t bytes) {
  unsigned line = 1, column = 1;
  for (const char *i = f->text; i < at; i++) {
    line += *i == '\n';
    column = *i == '\n' ? 1 : column + 1;
  }
  if (f->row == NULL) snprintf(text, bytes, "formula:%u:%u: ", line, column);
  else snprintf(text, bytes, "formula of %s, column %u: ", f->row->name, column);
}

ops_item ops_complain(ops_formula *f, const char *at, const char *format, ...) {
  ops_item nothing = {.kind = OPS_ITEM_ABSENT};
  if (f->failed) return nothing;
  f->failed = 1;
  if (f->c->status != HG_OK) return nothing;
  char place[HG_WORD_BYTES] = {0}, sentence[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  if (at != NULL) ops_place_text(f, at, place, sizeof place);
  ops_failed(f->c, f->row == NULL ? HG_PARSE : HG_INVALID_ARGUMENT, "%s%s", place, sentence);
  return nothing;
}

/* ---- characters and words ---------------------------------------------------------------------------------------- */

void ops_skip_blanks(ops_formula *f) {
  while (*f->at == ' ' || *f->at == '\n' || *f->at == '\t' || *f->at == '\r') f->at++;
}

int ops_take(ops_formula *f, char wanted) {
  ops_skip_blanks(f);
  if (*f->at != wanted) return 0;
  f->at++;
  return 1;
}

/* What comes next, for a sentence. */
static const char *next_text(ops_formula *f, char *copy, size_t bytes) {
  ops_skip_blanks(f);
  if (*f->at == '\0') return "its end";
  size_t length = 1;
  while (f->at[length] != '\0' && length < 12 && (f->at[length] & 0x80) == 0 &&
         strchr(" \n,;()", f->at[length]) == NULL)
    length++;
  snprintf(copy, bytes, "'%.*s'", (int)length, f->at);
  return copy;
}

void ops_expect(ops_formula *f, char wanted) {
  if (f->failed || ops_take(f, wanted)) return;
  ops_complain(f, f->at, "'%c' is expected here, not %s", wanted, next_text(f, (char[32]){0}, 32));
}

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

ops_word ops_take_word(ops_formula *f) {
  ops_skip_blanks(f);
  ops_word word = {f->at, 0};
  if (!is_letter(*f->at)) return word;
  while (is_letter(f->at[word.length]) || is_digit(f->at[word.length])) word.length++;
  f->at += word.length;
  return word;
}

int ops_takes_assignment(ops_formula *f, ops_word *name) {
  const char *before = f->at;
  *name = ops_take_word(f);
  ops_skip_blanks(f);
  if (name->length > 0 && f->at[0] == '=' && f->at[1] != '=') {
    f->at++;
    return 1;
  }
  f->at = before;
  return 0;
}

/* ---- names ------------------------------------------------------------------------------------------------------- */

ops_name *ops_find_name(ops_formula *f, ops_word word) {
  for (uint32_t i = 0; i < f->name_count; i++)
    if (f->names[i].word.length == word.length && memcmp(f->names[i].word.text, word.text, word.length) == 0)
      return &f->names[i];
  return NULL;
}

void ops_set_name(ops_formula *f, const char *at, ops_word word, ops_item item, atlas_type type) {
  ops_name *name = ops_find_name(f, word);
  if (name == NULL && f->name_count == OPS_MAX_NAMES) {
    ops_complain(f, at, "a formula has at most %d names", OPS_MAX_NAMES);
    return;
  }
  if (name == NULL) name = &f->names[f->name_count++], name->type = type;
  name->word = word;
  name->item = item;
}

ops_item ops_value_item(value_id value) { return (ops_item){.kind = OPS_ITEM_VALUE, .value = value}; }

/* A word of a choice among the arguments of the formula's own row. */
static int choice_word(const ops_formula *f, ops_word word, ops_item *item) {
  const char *at = f->row != NULL ? f->row->arguments : "";
  ops_argument_spec spec;
  while (ops_next_argument(&at, &spec)) {
    int number = ops_choice_count(spec.preset) > 1 ? ops_choice_of(spec.preset, word) : -1;
    if (number < 0) continue;
    *item = ops_integer_item(number);
    return 1;
  }
  return 0;
}

static ops_item read_name(ops_formula *f, ops_word word) {
  ops_item item;
  if (f->skipping > 0) return (ops_item){.kind = OPS_ITEM_ABSENT};
  const ops_name *name = ops_find_name(f, word);
  if (name != NULL) return name->item;
  if (ops_word_is(word, "inf")) return ops_real_item(atlas_as_f64(UINT64_C(0x7ff0000000000000)));
  if (ops_word_is(word, "nan")) return ops_real_item(atlas_as_f64(atlas_canonical_nan(ATLAS_f64)));
  if (ops_word_is(word, "all")) return (ops_item){.kind = OPS_ITEM_LIST, .is_all = 1};
  atlas_type type = atlas_type_lookup_name(word.text, word.length);
  if (type != ATLAS_NONE) return ops_integer_item((int64_t)type);
  if (choice_word(f, word, &item)) return item;
  return ops_complain(f, word.text, "there is no '%s' here", HG_WORD(word.text, word.length));
}

/* ---- numbers ----------------------------------------------------------------------------------------------------- */

static ops_item read_number(ops_formula *f) {
  const char *begin = f->at, *at = begin;
  int is_real = 0;
  while (is_digit(*at) || *at == '.') is_real |= *at++ == '.';
  if ((*at == 'e' || *at == 'E') && (is_digit(at[1]) || ((at[1] == '-' || at[1] == '+') && is_digit(at[2])))) {
    is_real = 1;
    for (at += 2; is_digit(*at);) at++;
  }
  f->at = at;
  uint64_t bits = 0;
  size_t length = (size_t)(at - begin);
  if (!is_real && atlas_number_parse(ATLAS_i64, begin, length, &bits) == ATLAS_NUMBER_OK)
    return ops_integer_item((int64_t)bits);
  if (atlas_number_parse(ATLAS_f64, begin, length, &bits) == ATLAS_NUMBER_OK) return ops_real_item(atlas_as_f64(bits));
  return ops_complain(f, begin, "'%s' is no number", HG_WORD(begin, length));
}

/* The bits of an integer of a type; 0: it has no such number. */
static int whole_bits(const ops_item *item, atlas_type type, uint64_t *bits) {
  if (ops_is_beyond(item) || (!item->is_integer && !ops_is_whole(item->number))) return 0;
  *bits = item->is_integer ? (uint64_t)item->integers[0] : (uint64_t)(int64_t)item->number;
  if (type == ATLAS_u64 && ops_is_unsigned(item)) return 1;
  if ((ops_is_unsigned(item) && *bits > INT64_MAX) || !ops_holds(type, (int64_t)*bits)) return 0;
  *bits = atlas_convert(type, ATLAS_i64, *bits);
  return 1;
}

value_id ops_number_of(ops_formula *f, const char *at, const ops_item *item, atlas_type type) {
  if (atlas_is_float(type) || atlas_kind(type) == ATLAS_KIND_STORAGE) return ops_number(f->c, type, item->number);
  uint64_t bits;
  if (whole_bits(item, type, &bits)) return ops_constant(f->c, type, bits);
  ops_complain(f, at, "%s is no %s, which the number meets here", OPS_NUMBER(item->number), atlas_type_name(type));
  return 0;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

typedef struct operator_row {
  char text[3];
  uint16_t op;
} operator_row;

static const operator_row comparisons[] = {{"<=", HG_OP_less_equal}, {"<", HG_OP_less},   {">=", HG_OP_greater_equal},
                                           {">", HG_OP_greater},     {"==", HG_OP_equal}, {"!=", HG_OP_not_equal},
                                           {"", HG_OP_none}};
static const operator_row sums[] = {{"+", HG_OP_add}, {"-", HG_OP_sub}, {"", HG_OP_none}};
static const operator_row products[] = {{"*", HG_OP_mul}, {"/", HG_OP_div}, {"", HG_OP_none}};

static hg_op take_operator(ops_formula *f, const operator_row *rows) {
  ops_skip_blanks(f);
  for (; rows->text[0] != '\0'; rows++) {
    if (f->at[0] != rows->text[0] || (rows->text[1] != '\0' && f->at[1] != rows->text[1])) continue;
    f->at += rows->text[1] == '\0' ? 1 : 2;
    return (hg_op)rows->op;
  }
  return HG_OP_none;
}

/* -1, 0 or 1 where a is below, equal to or above b; 2: one of them is NaN. Integers are compared as such. */
static int order_of(const ops_item *a, const ops_item *b) {
  int are_exact = a->is_integer && b->is_integer && !ops_is_beyond(a) && !ops_is_beyond(b);
  if (are_exact && ops_is_unsigned(a) && ops_is_unsigned(b)) {
    uint64_t p = (uint64_t)a->integers[0], q = (uint64_t)b->integers[0];
    return (p > q) - (p < q);
  }
  if (are_exact && !ops_is_unsigned(a) && !ops_is_unsigned(b))
    return (a->integers[0] > b->integers[0]) - (a->integers[0] < b->integers[0]);
  double x = a->number, y = b->number;
  return x != x || y != y ? 2 : (x > y) - (x < y);
}

/* Of two numbers when the formula is built, in f64. Whole numbers stay whole. */
static ops_item operate_on_numbers(hg_op op, const ops_item *a, const ops_item *b) {
  double x = a->number, y = b->number, z;
  int order = order_of(a, b);
  switch (op) {
    case HG_OP_add: z = x + y; break;
    case HG_OP_sub: z = x - y; break;
    case HG_OP_mul: z = x * y; break;
    case HG_OP_div: return ops_real_item(x / y);
    case HG_OP_less: return ops_integer_item(order == -1);
    case HG_OP_less_equal: return ops_integer_item(order == -1 || order == 0);
    case HG_OP_greater: return ops_integer_item(order == 1);
    case HG_OP_greater_equal: return ops_integer_item(order == 1 || order == 0);
    case HG_OP_equal: return ops_integer_item(order == 0);
    default: return ops_integer_item(order != 0);
  }
  int is_whole = a->is_integer && b->is_integer && z >= -0x1p53 && z <= 0x1p53;
  return is_whole ? ops_integer_item((int64_t)z) : ops_real_item(z);
}

static ops_item operate_on_two(ops_formula *f, const char *at, hg_op op, ops_item a, ops_item b) {
  if (f->failed || f->skipping > 0) return (ops_item){.kind = OPS_ITEM_ABSENT};
  if (a.kind == OPS_ITEM_NUMBER && b.kind == OPS_ITEM_NUMBER) return operate_on_numbers(op, &a, &b);
  return ops_operate(f, at, op, (ops_item[]){a, b}, 2);
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

static int deeper(ops_formula *f) {
  if (++f->depth <= OPS_MAX_DEPTH && !f->failed) return 1;
  ops_complain(f, f->at, "a formula is at most %d parentheses deep", OPS_MAX_DEPTH / 2);
  return 0;
}

static ops_item read_list(ops_formula *f) {
  ops_item list = {.kind = OPS_ITEM_LIST};
  if (ops_take(f, ']')) return list;
  do {
    const char *at = f->at;
    ops_item item = ops_read_expression(f);
    if (f->failed || f->skipping > 0) continue;
    if (item.kind != OPS_ITEM_NUMBER || !item.is_integer || list.count == HG_MAX_RANK)
      return ops_complain(f, at, "a list holds up to %d integers", HG_MAX_RANK);
    list.integers[list.count++] = item.integers[0];
  } while (!f->failed && ops_take(f, ','));
  ops_expect(f, ']');
  return list;
}

static ops_item read_primary(ops_formula *f) {
  ops_skip_blanks(f);
  if (is_digit(*f->at) || (*f->at == '.' && is_digit(f->at[1]))) return read_number(f);
  if (ops_take(f, '[')) return read_list(f);
  if (ops_take(f, '(')) {
    ops_item inner = ops_read_expression(f);
    ops_expect(f, ')');
    return inner;
  }
  ops_word word = ops_take_word(f);
  if (word.length == 0)
    return ops_complain(f, f->at, "a value is expected here, not %s", next_text(f, (char[32]){0}, 32));
  return ops_take(f, '(') ? ops_read_call(f, word) : read_name(f, word);
}

static ops_item read_unary(ops_formula *f) {
  ops_item result = {.kind = OPS_ITEM_ABSENT};
  ops_skip_blanks(f);
  const char *at = f->at;
  if (!deeper(f)) return result;
  if (ops_take(f, '-')) {
    ops_item x = read_unary(f);
    if (x.kind == OPS_ITEM_NUMBER && x.is_integer && x.integers[0] > INT64_MIN)
      result = ops_integer_item(-x.integers[0]);
    else if (x.kind == OPS_ITEM_NUMBER) result = ops_real_item(-x.number);
    else if (!f->failed && f->skipping == 0) result = ops_operate(f, at, HG_OP_neg, &x, 1);
  } else {
    result = read_primary(f);
  }
  f->depth--;
  return result;
}

static ops_item read_products(ops_formula *f) {
  ops_item left = read_unary(f);
  while (!f->failed) {
    ops_skip_blanks(f);
    const char *at = f->at;
    hg_op op = take_operator(f, products);
    if (op == HG_OP_none) break;
    left = operate_on_two(f, at, op, left, read_unary(f));
  }
  return left;
}

static ops_item read_sums(ops_formula *f) {
  ops_item left = read_products(f);
  while (!f->failed) {
    ops_skip_blanks(f);
    const char *at = f->at;
    hg_op op = take_operator(f, sums);
    if (op == HG_OP_none) break;
    left = operate_on_two(f, at, op, left, read_products(f));
  }
  return left;
}

static ops_item read_comparison(ops_formula *f) {
  ops_item left = read_sums(f);
  ops_skip_blanks(f);
  const char *at = f->at;
  hg_op op = f->failed ? HG_OP_none : take_operator(f, comparisons);
  return op == HG_OP_none ? left : operate_on_two(f, at, op, left, read_sums(f));
}

static ops_item read_branch(ops_formula *f, int is_taken) {
  f->skipping += !is_taken;
  ops_item item = ops_read_expression(f);
  f->skipping -= !is_taken;
  return item;
}

ops_item ops_read_expression(ops_formula *f) {
  ops_item result = {.kind = OPS_ITEM_ABSENT};
  if (!deeper(f)) return result;
  ops_skip_blanks(f);
  const char *at = f->at;
  result = read_comparison(f);
  if (!f->failed && ops_take(f, '?')) {
    if (result.kind != OPS_ITEM_NUMBER && f->skipping == 0)
      ops_complain(f, at,
                   "what stands before '?' is decided when the formula is built: a number, not a tensor (see where)");
    int is_true = f->skipping == 0 && result.number != 0;
    ops_item a = read_branch(f, is_true);
    ops_expect(f, ':');
    ops_item b = read_branch(f, !is_true);
    result = is_true ? a : b;
  }
  f->depth--;
  return result;
}
