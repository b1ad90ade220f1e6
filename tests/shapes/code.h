/* code.h - code of any target as a list of instructions, each with what it does and where it may go on, and the counts
 * of such a list that decide how fast it is.
 *
 * x86.c, arm64.c, ptx.c and msl.c read a target's code; code.c finds its loops and counts. */
#ifndef SHAPES_CODE_H
#define SHAPES_CODE_H

#include <stddef.h>
#include <stdint.h>

typedef enum code_kind {
#define KIND(id) CODE_##id,
#include "kinds.def"
#undef KIND
  CODE_KIND_COUNT
} code_kind;
extern const char *const code_kind_names[CODE_KIND_COUNT];
/* What an instruction does is a set of these. */
#define DOES(id) (1u << CODE_##id)

enum { CODE_MOST_DEPTH = 8 };
#define CODE_NOWHERE UINT32_MAX

typedef struct code_insn {
  uint32_t does;    /* DOES(...) */
  uint32_t target;  /* an instruction that may come next, besides the following one; CODE_NOWHERE */
  uint8_t ends;     /* 1: the following one does not come next */
  uint8_t is_entry; /* 1: it is entered from outside, as the first one is */
} code_insn;

typedef struct code {
  code_insn *insns;
  uint32_t count, capacity;
  uint32_t in_line; /* instructions before this one are in line, the others out of line: loops there are not hot */
} code;

typedef struct code_counts {
  uint32_t of[CODE_KIND_COUNT];
} code_counts;

typedef struct code_shape {
  code_counts hot, straight, all;  /* of the hot loop; of what is in no loop, and in line */
  uint32_t loops, deepest;         /* how many, and how deep they nest */
  uint32_t depth[CODE_MOST_DEPTH]; /* instructions in so many loops */
} code_shape;

void code_begin(code *c);
void code_release(code *c);
code_insn *code_add(code *c, uint32_t does); /* the instruction; valid until the next is added */
void *code_make(size_t count, size_t size);  /* zeroed; without memory the program ends */
/* The items, moved where there is no room behind them; what is new is zero. */
void *code_grow(void *items, size_t size, uint32_t count, uint32_t *capacity);
void code_count(const code *c, code_shape *shape);

/* Readers. 0: they met what they do not know, and said what on stderr. */
typedef struct code_bytes {
  const uint8_t *bytes;
  size_t count;
  const uint32_t *entries; /* bytes that it is entered at, besides the first */
  size_t entry_count;
} code_bytes;
int code_read_x86(const code_bytes *from, code *c);
int code_read_arm64(const code_bytes *from, code *c);
int code_read_ptx(const char *text, code *c, uint32_t *registers); /* 32-bit words of registers that it declares */
int code_read_msl(const char *text, code *c, uint32_t *registers);

#endif
