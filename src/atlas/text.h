/* text.h - what the parts of the text form's parser share: tokens (text_lex.c), operands (text_operand.c), statements
 * (text_parse.c). */
#ifndef HG_ATLAS_TEXT_H
#define HG_ATLAS_TEXT_H

#include "atlas/assemble.h"
#include "atlas/program.h"
#include "base/error.h"

typedef enum text_kind {
  TEXT_END, /* of the text */
  TEXT_NEWLINE,
  TEXT_WORD,       /* names, registers, mnemonics with their suffixes: letters, digits, _ and . */
  TEXT_DIRECTIVE,  /* .word */
  TEXT_NUMBER,     /* digits and whatever letters follow them */
  TEXT_CONSTANT,   /* #... */
  TEXT_PUNCTUATION /* any other printable character */
} text_kind;

typedef struct text_token {
  text_kind kind;
  const char *text;
  uint32_t length;
  uint32_t line, column; /* 1-based; columns count bytes */
} text_token;

/* A use of a label by an instruction or an entry; resolved when all labels are known. */
typedef struct text_label_use {
  text_token token;
  uint32_t index; /* of the instruction or entry */
  int8_t slot;    /* operand; -1: an entry */
} text_label_use;

typedef struct text_parser {
  const hg_allocator *allocator;
  const char *source; /* for messages */
  const char *next, *end, *line_start;
  uint32_t line;
  text_token token;     /* the current one */
  uint32_t past_column; /* just past the token before it */
  atlas_program *program;
  atlas_label_index labels;
  hg_array label_uses; /* text_label_use */
  int has_statement, has_block;
} text_parser;

/* ---- text_lex.c ---- */

hg_status atlas_text_advance(text_parser *parser);

/* HG_PARSE with "source:line:column: " in front. */
hg_status atlas_text_fail(const text_parser *parser, const text_token *at, const char *format, ...) HG_PRINTF(3, 4);
/* "expected <what>, found <the current token>" */
hg_status atlas_text_expected(const text_parser *parser, const char *what);

int atlas_text_is(const text_parser *parser, char punctuation);
int atlas_text_is_word(const text_token *token, const char *word);
/* Go past a punctuation character or fail with atlas_text_expected. */
hg_status atlas_text_expect(text_parser *parser, char punctuation, const char *what);

/* A token in a message: %s. */
#define TEXT_ARG(token) HG_WORD((token)->text, (token)->length)

/* The nearest of several candidates to a word that is none of them. */
typedef struct text_nearest {
  const char *word;
  size_t length;
  const char *best;
  unsigned distance;
} text_nearest;

void atlas_text_nearest_offer(text_nearest *nearest, const char *candidate);
/* "; did you mean 'x'?" or "". */
const char *atlas_text_hint(const text_nearest *nearest, char text[128]);
const char *atlas_text_type_hint(const char *word, size_t length, char text[128]);

/* ---- text_operand.c ---- */

/* Parses the operand of `slot` into insn->operand[slot]. The instruction will be number program->insns.count. */
hg_status atlas_text_operand(text_parser *parser, const atlas_op_info *info, atlas_insn *insn, unsigned slot);

/* The number in the current token (a TEXT_NUMBER or TEXT_CONSTANT) as bits of the type; goes past it. */
hg_status atlas_text_constant(text_parser *parser, atlas_type type, uint64_t *bits);

/* p0..p15 in the current token; goes past it. */
hg_status atlas_text_predicate(text_parser *parser, uint8_t *number);

hg_status atlas_text_use_label(text_parser *parser, size_t index, int slot);

#endif
