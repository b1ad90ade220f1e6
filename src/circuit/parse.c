/* parse.c - the text of a circuit as nodes, from left to right. A group is a pair of nodes, and open groups are linked
 * through theirs: nothing here is nested as deep as the text. */
#include "circuit/parts.h"

#include <string.h>

typedef struct parser {
  circuit_text *text;
  size_t next;
  uint32_t open; /* the NODE_OPEN of the innermost group that is open; 0: the text as a whole */
} parser;

static const struct {
  const char *name, *form;
  uint8_t takes_range;
} generators[] = {
#define GENERATOR(id, name, ranges, form) {name, form, ranges},
#include "circuit/generators.def"
#undef GENERATOR
};

const circuit_operation_row hg_circuit_operations[] = {
#define OPERATION(id, name, generator, op, commutes) {name, CIRCUIT_##generator, commutes, ATLAS_OP_##op},
#include "circuit/generators.def"
#undef OPERATION
};

hg_status hg_circuit_fail(const circuit_text *text, size_t at, const char *format, ...) {
  hg_place place = {.source = text->source, .line = 1, .column = 1, .instruction = -1};
  for (size_t i = 0; i < at; i++) {
    place.column = text->text[i] == '\n' ? 1 : place.column + 1;
    place.line += text->text[i] == '\n';
  }
  va_list arguments;
  va_start(arguments, format);
  hg_fail_at_v(HG_PARSE, &place, format, arguments);
  va_end(arguments);
  return HG_PARSE;
}

static int is_digit(int c) { return c >= '0' && c <= '9'; }
static int is_letter(int c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static int peek_at(const parser *p, size_t ahead) {
  const circuit_text *t = p->text;
  return ahead < t->length - p->next ? (unsigned char)t->text[p->next + ahead] : -1;
}
static int peek(const parser *p) { return peek_at(p, 0); }

static void skip_blanks(parser *p) {
  for (int c = peek(p); c == ' ' || c == '\t' || c == '\r' || c == '\n'; c = peek(p)) p->next++;
}

/* Skips blanks, and goes past the word if it is there. */
static int accept(parser *p, const char *word) {
  size_t length = strlen(word);
  skip_blanks(p);
  if (p->text->length - p->next < length || memcmp(p->text->text + p->next, word, length) != 0) return 0;
  p->next += length;
  return 1;
}

/* How many letters and digits there are from here on. */
static size_t word_length(const parser *p) {
  size_t length = 0;
  while (is_letter(peek_at(p, length)) || is_digit(peek_at(p, length))) length++;
  return length;
}

static int is_word(const parser *p, size_t length, const char *word) {
  return strlen(word) == length && memcmp(word, p->text->text + p->next, length) == 0;
}

static hg_status expected(parser *p, const char *what) {
  skip_blanks(p);
  int c = peek(p);
  if (c < 0) return hg_circuit_fail(p->text, p->next, "expected %s, found the end of the text", what);
  if (c < ' ' || c > '~')
    return hg_circuit_fail(p->text, p->next, "expected %s, found the byte 0x%02x", what, (unsigned)c);
  size_t length = word_length(p);
  return hg_circuit_fail(p->text, p->next, "expected %s, found '%s'", what,
                         HG_WORD(p->text->text + p->next, length > 0 ? length : 1));
}

static hg_status add_node(parser *p, const circuit_node *node) {
  hg_array *nodes = &p->text->nodes;
  if (!hg_array_has_room(p->text->allocator, nodes)) return hg_fail_memory("a circuit", nodes->count * sizeof *node);
  ((circuit_node *)nodes->data)[nodes->count++] = *node;
  return HG_OK;
}

/* An integer with an optional sign, modulo 8, of which 4 is a divisor. */
static hg_status read_exponent(parser *p, uint8_t *exponent) {
  unsigned value = 0;
  skip_blanks(p);
  int negative = peek(p) == '-';
  if (negative || peek(p) == '+') p->next++;
  if (!is_digit(peek(p))) return expected(p, "how far to rotate or twist, a number with or without a sign");
  for (; is_digit(peek(p)); p->next++) value = (value * 10 + (unsigned)(peek(p) - '0')) % 8;
  *exponent = (uint8_t)((negative ? 8 - value : value) % 8);
  return HG_OK;
}

/* A transform that begins with one of these letters, if there is one: *found. */
static hg_status read_turn(parser *p, const char *rotate, const char *twist, circuit_turn *turn, int *found) {
  circuit_turn more = {0};
  *found = 1;
  if (accept(p, rotate)) HG_TRY(read_exponent(p, &more.r));
  else if (accept(p, twist)) HG_TRY(read_exponent(p, &more.t));
  else if (accept(p, "~")) more.mirror = 1;
  else *found = 0;
  *turn = circuit_product(*turn, more);
  return HG_OK;
}

static hg_status read_number(parser *p, const char *what, uint32_t most, uint32_t *number) {
  skip_blanks(p);
  size_t at = p->next;
  uint64_t value = 0;
  if (!is_digit(peek(p))) return expected(p, what);
  for (; is_digit(peek(p)); p->next++)
    if (value <= most) value = value * 10 + (unsigned)(peek(p) - '0');
  *number = (uint32_t)value;
  if (value <= most) return HG_OK;
  return hg_circuit_fail(p->text, at, "there is no class %s: classes are c0 to c%d",
                         HG_WORD(p->text->text + at, p->next - at), CIRCUIT_CLASSES - 1);
}

/* A class, or a temporary of a canonical form where those may stand. */
static hg_status read_place(parser *p, int or_temporary, uint32_t *place) {
  skip_blanks(p);
  int is_temporary = or_temporary && peek(p) == 't' && is_digit(peek_at(p, 1));
  if (!is_temporary && peek(p) != 'c') return expected(p, "a class, c0 to c95");
  p->next++;
  uint32_t most = is_temporary ? CIRCUIT_MOST_STEPS : CIRCUIT_CLASSES - 1;
  HG_TRY(read_number(p, "the number of a class, 0 to 95", most, place));
  if (is_temporary) *place += CIRCUIT_CLASSES;
  return HG_OK;
}

/* What follows `c[`. */
static hg_status read_range(parser *p, circuit_node *node, size_t at) {
  if (!generators[node->generator].takes_range)
    return hg_circuit_fail(p->text, at, "%s takes no range of classes; write %s", generators[node->generator].name,
                           generators[node->generator].form);
  node->is_range = 1;
  HG_TRY(read_number(p, "the first class of the range, 0 to 95", CIRCUIT_CLASSES - 1, &node->a));
  if (!accept(p, "..")) return expected(p, "'..' and the last class of the range");
  HG_TRY(read_number(p, "the last class of the range, 0 to 95", CIRCUIT_CLASSES - 1, &node->b));
  if (!accept(p, "]")) return expected(p, "']' at the end of the range");
  if (node->a <= node->b) return HG_OK;
  return hg_circuit_fail(p->text, at, "the range c[%u..%u] is empty: its first class is above its last", node->a,
                         node->b);
}

/* `[` second operand `,` result `]`; merge may lack it. */
static hg_status read_arguments(parser *p, circuit_node *node) {
  node->has_arguments = (uint8_t)accept(p, "[");
  if (!node->has_arguments && node->generator == CIRCUIT_MERGE) return HG_OK;
  if (!node->has_arguments) return expected(p, "'[' and the second operand");
  HG_TRY(read_place(p, 1, &node->b));
  if (!accept(p, ",")) return expected(p, "',' and the result's class");
  HG_TRY(read_place(p, 1, &node->c));
  return accept(p, "]") ? HG_OK : expected(p, "']'");
}

static hg_status read_target(parser *p, circuit_node *node) {
  int is_copy = node->generator == CIRCUIT_COPY, is_move = is_copy || node->generator == CIRCUIT_SWAP;
  int is_operation = node->generator == CIRCUIT_MERGE || node->generator == CIRCUIT_SPLIT;
  if (!accept(p, "@")) return expected(p, "'@' and a class");
  skip_blanks(p);
  size_t at = p->next;
  if (accept(p, "c[")) HG_TRY(read_range(p, node, at));
  else HG_TRY(read_place(p, is_move || is_operation, &node->a));
  if (is_move && !accept(p, is_copy ? "->" : "<->"))
    return expected(p, is_copy ? "'->' and a class" : "'<->' and a class");
  if (is_move) HG_TRY(read_place(p, 1, &node->b));
  if (is_operation && !node->is_range) HG_TRY(read_arguments(p, node));
  skip_blanks(p);
  if (peek(p) != '[' && peek(p) != '<' && peek(p) != '-') return HG_OK;
  return hg_circuit_fail(p->text, p->next, "'%c' cannot stand here: a %s is written %s", peek(p),
                         generators[node->generator].name, generators[node->generator].form);
}

static hg_status read_variant(parser *p, circuit_node *node) {
  skip_blanks(p);
  size_t length = word_length(p);
  for (int i = 0; i < CIRCUIT_OPERATIONS; i++) {
    if (hg_circuit_operations[i].generator != node->generator || !is_word(p, length, hg_circuit_operations[i].name))
      continue;
    node->operation = (uint8_t)i;
    p->next += length;
    return HG_OK;
  }
  if (node->generator == CIRCUIT_MERGE) return expected(p, "add, mul, min or max");
  if (node->generator == CIRCUIT_SPLIT) return expected(p, "sub or div");
  return hg_circuit_fail(p->text, p->next, "%s has no variants: merge has add, mul, min and max, split has sub and div",
                         generators[node->generator].name);
}

static hg_status read_step(parser *p, circuit_node *node) {
  size_t length = word_length(p), at = p->next;
  if (length == 0) return expected(p, "a generator, '(' or a transform (R+1, T-2, ~)");
  while (node->generator < CIRCUIT_GENERATORS && !is_word(p, length, generators[node->generator].name))
    node->generator++;
  if (node->generator == CIRCUIT_GENERATORS)
    return hg_circuit_fail(p->text, at, "there is no generator '%s': they are mark, copy, swap, merge, split, quote and"
                           " evaluate", HG_WORD(p->text->text + at, length));
  p->next += length;
  node->operation = node->generator == CIRCUIT_SPLIT ? CIRCUIT_SUB : CIRCUIT_ADD;
  if (accept(p, ":")) HG_TRY(read_variant(p, node));
  return read_target(p, node);
}

static circuit_node *node_at(const parser *p, size_t i) { return (circuit_node *)p->text->nodes.data + i; }

/* Prefixes, and a step or `(`. */
static hg_status read_item(parser *p) {
  circuit_node node = {.kind = NODE_STEP};
  int found = 1;
  skip_blanks(p);
  node.at = (uint32_t)p->next;
  while (found) {
    HG_TRY(read_turn(p, "R", "T", &node.turn, &found));
    if (found) accept(p, "@");
  }
  if (accept(p, "(")) {
    node.kind = NODE_OPEN;
    node.a = p->open;
    p->open = (uint32_t)p->text->nodes.count;
    return add_node(p, &node);
  }
  HG_TRY(read_step(p, &node));
  node_at(p, p->open)->b += node.generator == CIRCUIT_QUOTE;
  return add_node(p, &node);
}

static hg_status close_group(parser *p, size_t at) {
  const circuit_node close = {.kind = NODE_CLOSE, .at = (uint32_t)at, .a = p->open};
  p->open = node_at(p, p->open)->a;
  return add_node(p, &close);
}

/* What follows an item: postfixes and the ends of groups, then `.`, `||` or the end of the text. */
static hg_status read_rest(parser *p) {
  circuit_node separator = {.kind = NODE_SEQUENCE};
  for (int found = 1; found;) {
    while (found) HG_TRY(read_turn(p, "^", "v", &node_at(p, p->text->nodes.count - 1)->turn, &found));
    skip_blanks(p);
    separator.at = (uint32_t)p->next;
    found = accept(p, ")");
    if (found && p->open == 0)
      return hg_circuit_fail(p->text, separator.at, "')' closes no group: there is no '(' before it");
    if (found) HG_TRY(close_group(p, separator.at));
  }
  if (accept(p, "||")) separator.kind = NODE_PARALLEL;
  else if (peek(p) < 0 && p->open == 0) return HG_OK;
  else if (peek(p) < 0)
    return hg_circuit_fail(p->text, node_at(p, p->open)->at,
                           "this group has no end: expected ')', found the end of the text");
  else if (!accept(p, "."))
    return expected(p, p->open != 0 ? "'.', '||', ')' or a transform (^1, v1, ~)"
                                    : "'.', '||', a transform (^1, v1, ~) or the end of the text");
  return add_node(p, &separator);
}

hg_status hg_circuit_read(circuit_text *text) {
  parser p = {.text = text};
  const circuit_node whole = {.kind = NODE_OPEN};
  if (text->length >= UINT32_MAX) return hg_circuit_fail(text, 0, "the text of a circuit has less than 4 GiB");
  HG_TRY(add_node(&p, &whole));
  skip_blanks(&p);
  while (peek(&p) >= 0 || p.open != 0 || node_at(&p, text->nodes.count - 1)->kind > NODE_CLOSE) {
    HG_TRY(read_item(&p));
    if (node_at(&p, text->nodes.count - 1)->kind == NODE_STEP) HG_TRY(read_rest(&p));
  }
  return close_group(&p, p.next);
}
