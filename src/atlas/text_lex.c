/* text_lex.c - tokens of the text form, and messages with their position. */
#include "atlas/text.h"
#include "base/error.h"

#include <stdio.h>
#include <string.h>

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_word_part(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

static void skip_blanks(text_parser *p) {
  while (p->next < p->end && (*p->next == ' ' || *p->next == '\t' || *p->next == '\r')) p->next++;
  if (p->next < p->end && *p->next == ';') { /* a comment: any bytes up to the end of the line */
    const char *newline = memchr(p->next, '\n', (size_t)(p->end - p->next));
    p->next = newline != NULL ? newline : p->end;
  }
}

/* The signs of exponents belong to a constant: #1e-3, #0x1p+4; in #0x1e the e is a digit. */
static const char *constant_end(const char *next, const char *end) {
  if (next < end && *next == '-') next++;
  int hex = end - next >= 2 && next[0] == '0' && next[1] == 'x';
  for (; next < end; next++) {
    if (is_word_part(*next)) continue;
    char before = next[-1];
    int exponent = before == 'p' || before == 'P' || (!hex && (before == 'e' || before == 'E'));
    if ((*next != '-' && *next != '+') || !exponent) break;
  }
  return next;
}

static text_kind scan(text_parser *p) {
  char first = *p->next++;
  if (is_letter(first) || is_digit(first) || (first == '.' && p->next < p->end && is_letter(*p->next))) {
    while (p->next < p->end && is_word_part(*p->next)) p->next++;
    return is_letter(first) ? TEXT_WORD : is_digit(first) ? TEXT_NUMBER : TEXT_DIRECTIVE;
  }
  if (first != '#') return TEXT_PUNCTUATION;
  p->next = constant_end(p->next, p->end);
  return TEXT_CONSTANT;
}

hg_status atlas_text_advance(text_parser *p) {
  p->past_column = p->token.column + p->token.length;
  skip_blanks(p);
  text_token token = {TEXT_END, p->next, 0, p->line, (uint32_t)(p->next - p->line_start) + 1};
  if (p->next < p->end && *p->next == '\n') {
    token.kind = TEXT_NEWLINE;
    p->line_start = ++p->next;
    p->line++;
  } else if (p->next < p->end) {
    if (*p->next < ' ' || *p->next > '~')
      return atlas_text_fail(p, &token, "byte 0x%02x is not text; outside comments only printable ASCII is",
                             (unsigned)(unsigned char)*p->next);
    token.kind = scan(p);
    token.length = (uint32_t)(p->next - token.text);
  }
  p->token = token;
  return HG_OK;
}

int atlas_text_is(const text_parser *p, char punctuation) {
  return p->token.kind == TEXT_PUNCTUATION && *p->token.text == punctuation;
}

int atlas_text_is_word(const text_token *token, const char *word) {
  return token->kind == TEXT_WORD && strlen(word) == token->length && memcmp(token->text, word, token->length) == 0;
}

hg_status atlas_text_expect(text_parser *p, char punctuation, const char *what) {
  return atlas_text_is(p, punctuation) ? atlas_text_advance(p) : atlas_text_expected(p, what);
}

/* ---- messages ----------------------------------------------------------------------------------------------- */

hg_status atlas_text_fail(const text_parser *p, const text_token *at, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const hg_place place = {.source = p->source, .line = at->line, .column = at->column, .instruction = -1};
  hg_fail_at_v(HG_PARSE, &place, format, arguments);
  va_end(arguments);
  return HG_PARSE;
}

hg_status atlas_text_expected(const text_parser *p, const char *what) {
  const text_token *token = &p->token;
  if (token->kind == TEXT_END) return atlas_text_fail(p, token, "expected %s, found the end of the text", what);
  if (token->kind == TEXT_NEWLINE) return atlas_text_fail(p, token, "expected %s, found the end of the line", what);
  return atlas_text_fail(p, token, "expected %s, found '%s'", what, TEXT_ARG(token));
}

/* ---- suggestions -------------------------------------------------------------------------------------------- */

enum { SUGGEST_LENGTH = 40, FAR = 1000 };

static unsigned least(unsigned a, unsigned b) { return a < b ? a : b; }

/* Letters to insert, delete, change or swap with their neighbour to get from one word to the other. */
static unsigned edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
  unsigned row[3][SUGGEST_LENGTH + 1];
  if (a_length > SUGGEST_LENGTH || b_length > SUGGEST_LENGTH) return FAR;
  for (size_t j = 0; j <= b_length; j++) row[0][j] = (unsigned)j;
  for (size_t i = 1; i <= a_length; i++) {
    unsigned *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];
    now[0] = (unsigned)i;
    for (size_t j = 1; j <= b_length; j++) {
      now[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], now[j - 1]) + 1);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) now[j] = least(now[j], before[j - 2] + 1);
    }
  }
  return row[a_length % 3][b_length];
}

void atlas_text_nearest_offer(text_nearest *nearest, const char *candidate) {
  unsigned distance = edit_distance(nearest->word, nearest->length, candidate, strlen(candidate));
  unsigned near_enough = nearest->length < 2 ? 0 : nearest->length < 5 ? 1 : 2;
  if (distance > near_enough || (nearest->best != NULL && distance >= nearest->distance)) return;
  nearest->best = candidate;
  nearest->distance = distance;
}

const char *atlas_text_hint(const text_nearest *nearest, char text[128]) {
  text[0] = '\0';
  if (nearest->best != NULL) snprintf(text, 128, "; did you mean '%s'?", nearest->best);
  return text;
}

const char *atlas_text_type_hint(const char *word, size_t length, char text[128]) {
  text_nearest nearest = {.word = word, .length = length};
  for (unsigned t = 1; t < ATLAS_TYPE_COUNT; t++) atlas_text_nearest_offer(&nearest, atlas_type_name((atlas_type)t));
  return atlas_text_hint(&nearest, text);
}
