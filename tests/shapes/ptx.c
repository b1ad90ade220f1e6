/* ptx.c - reads PTX text: an instruction a line, labels by name. */
#include "code.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LABELS = 1 << 16 }; /* "$L" and a number */

typedef struct reader {
  code *c;
  uint32_t *label_at,
      *jump_to;      /* by label's number: 1 + the instruction behind it; by instruction: 1 + such a number */
  uint32_t capacity; /* of jump_to */
} reader;

static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

/* Of the opcode, which ends at a space or semicolon: whether it has this word between points. */
static int has_word(const char *opcode, size_t length, const char *word) {
  size_t n = strlen(word);
  for (size_t i = 0; i + n <= length; i++) {
    int ends = i + n == length || opcode[i + n] == '.' || opcode[i + n] == ':';
    if (ends && i > 0 && opcode[i - 1] == '.' && memcmp(opcode + i, word, n) == 0) return 1;
  }
  return 0;
}

static uint32_t memory(const char *opcode, size_t length, int loads) {
  if (has_word(opcode, length, "param") || has_word(opcode, length, "const")) return DOES(constants);
  if (has_word(opcode, length, "local")) return loads ? DOES(reloads) : DOES(spills);
  if (has_word(opcode, length, "shared")) return loads ? DOES(shared_loads) : DOES(shared_stores);
  return loads ? DOES(loads) : DOES(stores);
}

static uint32_t what(const char *opcode, size_t length) {
  if (begins(opcode, "ld.") || begins(opcode, "ldmatrix.")) return memory(opcode, length, 1);
  if (begins(opcode, "st.")) return memory(opcode, length, 0);
  if (begins(opcode, "cp.async.")) return has_word(opcode, length, "global") ? DOES(loads) | DOES(shared_stores) : 0;
  if (begins(opcode, "atom.") || begins(opcode, "red.")) return DOES(atomics);
  if (begins(opcode, "shfl.") || begins(opcode, "vote.") || begins(opcode, "match.")) return DOES(exchanges);
  if (begins(opcode, "bar.") || begins(opcode, "barrier.")) return DOES(barriers);
  if (begins(opcode, "prefetch")) return DOES(prefetches);
  if (begins(opcode, "bra")) return DOES(branches);
  return begins(opcode, "call") ? DOES(calls) : 0;
}

static void read_insn(reader *r, const char *text) {
  int is_conditional = *text == '@';
  if (is_conditional) text = strchr(text, ' ') + 1;
  size_t length = strcspn(text, " ;\n");
  code_insn *insn = code_add(r->c, what(text, length));
  const char *label = strchr(text, '$');
  uint32_t i = r->c->count - 1;
  r->jump_to = code_grow(r->jump_to, sizeof *r->jump_to, i, &r->capacity);
  int jumps = begins(text, "bra"), leaves = begins(text, "ret") || begins(text, "exit");
  if (jumps && label != NULL) r->jump_to[i] = 1 + (uint32_t)strtoul(label + 2, NULL, 10);
  insn->ends = !is_conditional && (jumps || leaves);
  if (!is_conditional && leaves && i + 1 < r->c->in_line) r->c->in_line = i + 1;
}

/* .reg .b32 %r<120>; */
static uint32_t registers_of(const char *text) {
  char type[16];
  unsigned count = 0;
  if (sscanf(text, ".reg .%15[a-z0-9] %%%*[a-z]<%u>", type, &count) != 2 || strcmp(type, "pred") == 0) return 0;
  return strstr(type, "64") != NULL ? 2 * count : count;
}

static void read_line(reader *r, const char *text, uint32_t *registers) {
  while (isspace((unsigned char)*text) && *text != '\n') text++;
  if (begins(text, ".reg")) *registers += registers_of(text);
  if (begins(text, "$L")) {
    unsigned long label = strtoul(text + 2, NULL, 10);
    if (label < MOST_LABELS) r->label_at[label] = r->c->count + 1;
  } else if (*text == '@' || islower((unsigned char)*text)) read_insn(r, text);
}

int code_read_ptx(const char *text, code *c, uint32_t *registers) {
  reader r = {.c = c, .label_at = code_make(MOST_LABELS, sizeof *r.label_at)};
  int is_inside = 0, is_known = 1;
  *registers = 0;
  for (const char *line = text; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
    if (*line == '{') is_inside = 1;
    else if (is_inside) read_line(&r, line, registers);
  }
  for (uint32_t i = 0; i < c->count && is_known; i++) {
    if (r.jump_to[i] == 0) continue;
    uint32_t to = r.jump_to[i] - 1 < MOST_LABELS ? r.label_at[r.jump_to[i] - 1] : 0;
    is_known = to != 0;
    c->insns[i].target = to - 1 < c->count ? to - 1 : CODE_NOWHERE;
  }
  if (!is_known) fprintf(stderr, "shapes: PTX jumps to a label that it does not have\n");
  free(r.label_at);
  free(r.jump_to);
  return is_known;
}
