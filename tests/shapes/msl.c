/* msl.c - reads a kernel in the Metal Shading Language as src/backend/metal/msl prints it: a statement a line, a brace
 * at a line's beginning or end. A line is an instruction. */
#include "code.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NESTED = 256 };
typedef enum construct_kind { PLAIN, IF, ELSE, LOOP, ONCE /* do { } while (false) */ } construct_kind;

typedef struct construct {
  construct_kind kind;
  uint32_t head; /* the instruction that opens it */
} construct;

typedef struct reader {
  code *c;
  construct open[MOST_NESTED];
  uint32_t depth;
  uint32_t *leaves; /* by instruction: 1 + the nesting of the construct behind which it leads; 0: it does not */
  uint32_t capacity;
} reader;

static int has(const char *line, const char *what) { return strstr(line, what) != NULL; }
static int begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static uint32_t count_of(const char *line, const char *what) {
  uint32_t count = 0;
  for (const char *at = line; (at = strstr(at, what)) != NULL; at++) count++;
  return count;
}

/* A store is `*(device T *)(...) = ` at the line's beginning. */
static uint32_t what(const char *line) {
  uint32_t does = 0;
  int stores = begins(line, "*(device"), in_shared = begins(line, "*(threadgroup");
  if (stores) does |= DOES(stores);
  if (in_shared || begins(line, "place[") || begins(line, "shared[") || begins(line, "((threadgroup"))
    does |= DOES(shared_stores);
  if (count_of(line, "*(device const") > 0) does |= DOES(loads);
  if (count_of(line, "*(threadgroup") > (uint32_t)in_shared || (has(line, "= place[") && !begins(line, "place[")))
    does |= DOES(shared_loads);
  if (has(line, "atomic_")) does |= DOES(atomics);
  if (has(line, "simd_")) does |= DOES(exchanges);
  if (has(line, "threadgroup_barrier(")) does |= DOES(barriers);
  if (begins(line, "if ") || begins(line, "while ") || begins(line, "for ") || has(line, "break;"))
    does |= DOES(branches);
  return does;
}

static uint32_t add(reader *r, uint32_t does) {
  code_add(r->c, does);
  uint32_t i = r->c->count - 1;
  r->leaves = code_grow(r->leaves, sizeof *r->leaves, i, &r->capacity);
  return i;
}

/* The innermost construct that a break (or, of loops alone, a continue) is about: 1 + its nesting. */
static uint32_t around(const reader *r, int loops_only) {
  for (uint32_t d = r->depth; d-- > 0;) {
    construct_kind kind = r->open[d].kind;
    if (kind == LOOP || (!loops_only && kind == ONCE)) return d + 1;
  }
  return 0;
}

/* The construct at `depth` ends: what leaves it leads to the next instruction. */
static void land(reader *r, uint32_t depth, uint32_t from) {
  for (uint32_t i = from; i < r->c->count; i++) {
    if (r->leaves[i] != depth + 1) continue;
    r->c->insns[i].target = r->c->count;
    r->leaves[i] = 0;
  }
}

static void close_one(reader *r) {
  construct *c = &r->open[--r->depth];
  if (c->kind == LOOP) {
    uint32_t back = add(r, 0);
    r->c->insns[back].target = c->head;
    r->c->insns[back].ends = 1;
  }
  if (c->kind != PLAIN && c->kind != ONCE)
    r->c->insns[c->head].target = r->c->count; /* past it, where it does not hold */
  land(r, r->depth, c->head);
}

static void open_one(reader *r, construct_kind kind, uint32_t head) {
  if (r->depth < MOST_NESTED) r->open[r->depth++] = (construct){kind, head};
}

/* } else {: what has been done leads behind the other part, to which the condition leads. */
static void read_else(reader *r) {
  construct *c = &r->open[r->depth - 1];
  uint32_t skip = add(r, 0);
  r->c->insns[skip].ends = 1;
  r->c->insns[c->head].target = r->c->count;
  c->kind = ELSE;
  c->head = skip;
}

static void read_statement(reader *r, const char *line) {
  uint32_t i = add(r, what(line));
  code_insn *insn = &r->c->insns[i];
  int is_conditional = begins(line, "if ");
  if (has(line, "break;")) {
    r->leaves[i] = around(r, 0);
    insn->ends = !is_conditional;
  } else if (has(line, "continue;")) {
    uint32_t loop = around(r, 1);
    if (loop > 0) insn->target = r->open[loop - 1].head;
    insn->ends = !is_conditional;
  } else if (begins(line, "while ") || begins(line, "for ")) insn->target = i; /* of one line */
  else if (has(line, "return;")) insn->ends = !is_conditional;
}

static void read_line(reader *r, const char *line) {
  size_t length = strlen(line);
  int opens = length > 0 && line[length - 1] == '{', closes = line[0] == '}';
  if (closes && opens && r->depth > 0) {
    read_else(r);
    return;
  }
  if (closes && r->depth > 0) close_one(r);
  if (!opens && !closes && length > 0 && !begins(line, "//")) read_statement(r, line);
  if (!opens) return;
  construct_kind kind = begins(line, "if ") ? IF : begins(line, "do ") ? ONCE : PLAIN;
  if (begins(line, "while ") || begins(line, "for ")) kind = LOOP;
  open_one(r, kind, kind == PLAIN || kind == ONCE ? r->c->count : add(r, what(line)));
}

/* uint v1, v2; of the kernel's values. */
static uint32_t registers_of(const char *line) {
  uint32_t words = begins(line, "ulong v") ? 2 : begins(line, "uint v") ? 1 : 0;
  return has(line, "=") ? 0 : words * (1 + count_of(line, ","));
}

int code_read_msl(const char *text, code *c, uint32_t *registers) {
  reader r = {.c = c};
  char line[4096];
  const char *at = strstr(text, "\nkernel void ");
  *registers = 0;
  at = at != NULL ? strstr(at, ") {\n") : NULL;
  if (at != NULL) at += 4;
  while (at != NULL && *at != '\0' && !begins(at, "}")) {
    size_t length = strcspn(at, "\n"), blanks = strspn(at, " ");
    if (length - blanks >= sizeof line) break;
    memcpy(line, at + blanks, length - blanks);
    line[length - blanks] = '\0';
    *registers += registers_of(line);
    read_line(&r, line);
    at += length + (at[length] == '\n');
  }
  land(&r, 0, 0);
  for (uint32_t i = 0; i < c->count; i++)
    if (c->insns[i].target >= c->count) c->insns[i].target = CODE_NOWHERE;
  free(r.leaves);
  if (at == NULL || !begins(at, "}") || r.depth != 0) fprintf(stderr, "shapes: a text that is no kernel of ours\n");
  return at != NULL && begins(at, "}") && r.depth == 0;
}
