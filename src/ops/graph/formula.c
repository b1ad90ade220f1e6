/* formula.c - evaluates expressions: operators, numbers, names, choices. */
#include "ops/graph/formula.h"

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

/* "formula:1:12: " for a user's text; for the table's the operation's name is enough. */
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

static void no_memory(ops_formula *f) {
  ops_failed(f->c, HG_OUT_OF_MEMORY, "no memory to evaluate a formula");
  f->failed = 1;
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

static ops_item item_of_name(ops_formula *f, ops_word word) {
  ops_item item;
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

/* The bits of an integer in a type; 0: the type does not have the number. */
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

/* -1, 0 or 1 if a is below, equal to or above b; 2: one of them is NaN. Integers are compared as integers. */
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

/* An operation on two numbers while the formula is built, in f64. Whole numbers stay whole. */
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
  if (f->failed) return (ops_item){.kind = OPS_ITEM_ABSENT};
  if (a.kind == OPS_ITEM_NUMBER && b.kind == OPS_ITEM_NUMBER) return operate_on_numbers(op, &a, &b);
  return ops_operate(f, at, op, (ops_item[]){a, b}, 2);
}

/* ---- expressions ------------------------------------------------------------------------------------------------- */

/* The last nodes of the operands' expressions. */
static void operands_of(const ops_formula *f, uint32_t at, uint32_t *operands) {
  for (uint32_t i = f->parsed.nodes[at].count, end = at; i-- > 0; end -= ops_syntax_size(&f->parsed.nodes[end - 1]))
    operands[i] = end - 1;
}

static ops_item list_of(ops_formula *f, uint32_t at) {
  ops_item list = {.kind = OPS_ITEM_LIST};
  uint32_t parts[OPS_MAX_PARTS] = {0};
  operands_of(f, at, parts);
  for (uint32_t i = 0; i < f->parsed.nodes[at].count && !f->failed; i++) {
    ops_item item = ops_evaluate(f, parts[i]);
    if (f->failed) break;
    if (item.kind != OPS_ITEM_NUMBER || !item.is_integer)
      return ops_complain(f, ops_begin_of(f, parts[i]), "a list holds up to %d integers", HG_MAX_RANK);
    list.integers[list.count++] = item.integers[0];
  }
  return list;
}

static ops_item negated(ops_formula *f, uint32_t at) {
  ops_item x = ops_evaluate(f, at - 1);
  if (f->failed) return (ops_item){.kind = OPS_ITEM_ABSENT};
  if (x.kind != OPS_ITEM_NUMBER) return ops_operate(f, ops_text_at(f, at), HG_OP_neg, &x, 1);
  return x.is_integer && x.integers[0] > INT64_MIN ? ops_integer_item(-x.integers[0]) : ops_real_item(-x.number);
}

/* Pushes the operators of a sum or a product, from the last to the first; the first has the others behind it. They wait
 * as parts do. Returns where the first operand ends. */
static uint32_t push_operators(ops_formula *f, uint32_t at) {
  for (; f->parsed.nodes[at].kind == OPS_SYNTAX_OPERATE && !f->failed;
       at -= 1 + ops_syntax_size(&f->parsed.nodes[at - 1]))
    if (!hg_array_push(&f->c->allocator, &f->c->operators, at)) no_memory(f);
  return at;
}

static ops_item operated(ops_formula *f, uint32_t at) {
  size_t first = f->c->operators.count;
  uint32_t leftmost = push_operators(f, at);
  ops_item item = {.kind = OPS_ITEM_ABSENT};
  if (!f->failed) item = ops_evaluate(f, leftmost);
  while (f->c->operators.count > first && !f->failed) {
    uint32_t operator = ((const uint32_t *)f->c->operators.data)[--f->c->operators.count];
    ops_item right = ops_evaluate(f, operator - 1);
    item = operate_on_two(f, ops_text_at(f, operator), (hg_op)f->parsed.nodes[operator].op, item, right);
  }
  f->c->operators.count = first;
  return item;
}

static ops_item chosen(ops_formula *f, uint32_t at) {
  uint32_t operands[3] = {0};
  operands_of(f, at, operands);
  ops_item condition = ops_evaluate(f, operands[0]);
  if (f->failed) return condition;
  if (condition.kind != OPS_ITEM_NUMBER)
    return ops_complain(
        f, ops_text_at(f, at),
        "what stands before '?' is decided when the formula is built: a number, not a tensor (see where)");
  return ops_evaluate(f, operands[condition.number != 0 ? 1 : 2]);
}

/* Evaluates the parts of a call. They wait in memory instead of on the thread's stack, which may be small, since calls
 * may be nested. */
static void evaluate_parts(ops_formula *f, uint32_t at) {
  uint32_t operands[OPS_MAX_PARTS] = {0};
  operands_of(f, at, operands);
  for (uint32_t i = 0; i < f->parsed.nodes[at].count && !f->failed; i++) {
    const ops_syntax *node = &f->parsed.nodes[operands[i]];
    uint32_t expression = node->kind == OPS_SYNTAX_PART ? operands[i] - 1 : operands[i];
    ops_part part = {.item = ops_evaluate(f, expression), .at = ops_begin_of(f, expression)};
    if (node->kind == OPS_SYNTAX_PART) part.name = ops_word_at(f, operands[i] + 1 - node->size);
    if (hg_array_append(&f->c->allocator, &f->c->parts, &part, 1) == NULL) no_memory(f);
  }
}

static ops_item called(ops_formula *f, uint32_t at) {
  size_t first = f->c->parts.count;
  evaluate_parts(f, at);
  ops_item result = {.kind = OPS_ITEM_ABSENT};
  const ops_part *parts = f->c->parts.count > first ? (const ops_part *)f->c->parts.data + first : NULL;
  if (!f->failed) result = ops_make_call(f, at, parts, f->parsed.nodes[at].count);
  f->c->parts.count = first;
  return result;
}

ops_item ops_evaluate(ops_formula *f, uint32_t at) {
  const ops_syntax *node = &f->parsed.nodes[at];
  switch ((ops_syntax_kind)node->kind) {
    case OPS_SYNTAX_WHOLE: return ops_integer_item((int64_t)node->size);
    case OPS_SYNTAX_LARGE: return ops_integer_item((int64_t)f->parsed.numbers[node->size]);
    case OPS_SYNTAX_REAL: return ops_real_item(atlas_as_f64(f->parsed.numbers[node->size]));
    case OPS_SYNTAX_NAME: return item_of_name(f, ops_word_at(f, at));
    case OPS_SYNTAX_LIST: return list_of(f, at);
    case OPS_SYNTAX_NEGATE: return negated(f, at);
    case OPS_SYNTAX_OPERATE: return operated(f, at);
    case OPS_SYNTAX_CHOOSE: return chosen(f, at);
    default: return called(f, at);
  }
}
