/* samples.h - a program for each instruction and type, written by the form of its row in ops.def: for the tests of the
 * tables and for bench/ops.c. Values are r0, r1 and r2, loaded from the buffers a, b and c, p0 and p1 the lanes whose
 * number in i is below 5 and 40; the result is stored in o. */
#ifndef HG_TESTS_SAMPLES_H
#define HG_TESTS_SAMPLES_H

#include "atlas/tables.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
  SAMPLE_TEXT_BYTES = 2048,
  SAMPLE_BUFFERS = 7, /* a, b, c of the type, i of u32, d of the second type, o for the result, g for what is stored */
  SAMPLE_SHARED = 96  /* elements of s and l: the numbers in i that address them are below */
};

/* Of the instruction in hand. */
typedef struct sample {
  const atlas_op_info *info;
  atlas_type type, type2; /* ATLAS_NONE where it has none */
  char text[SAMPLE_TEXT_BYTES];
} sample;

static inline void sample_add(sample *s, const char *format, ...) {
  size_t at = strlen(s->text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(s->text + at, sizeof s->text - at, format, arguments);
  va_end(arguments);
}

static inline const char *sample_address(const atlas_op_info *info) {
  if (info->flags & ATLAS_SPACE_SHARED) return "[s + r4]";
  if (info->flags & ATLAS_SPACE_LOCAL) return "[l + r4]";
  if (info->flags & ATLAS_SPACE_CONST) return "[k + #1]";
  if (info->flags & ATLAS_SPACE_POOL) return "[heap + r5]";
  return info->flags & ATLAS_LOAD ? "[a + r4]" : "[g + r4]";
}

/* pool.alloc, pool.free and phase.adv want the same of all lanes. */
static inline int sample_is_uniform(const atlas_op_info *info) {
  return info->flags & ATLAS_GRID || info->operands[info->operands[0] == 'd'] == 'h';
}

static inline void sample_operand(sample *s, char letter, unsigned *sources, unsigned *predicates) {
  static const char *const values[] = {"r0", "r1", "r2"};
  switch (letter) {
  case 'd':
  case 'o': sample_add(s, "r9"); break;
  case 'p': sample_add(s, "p2"); break;
  case 'q': sample_add(s, "p%u", (*predicates)++); break;
  case 's': sample_add(s, "%s", sample_is_uniform(s->info) ? "#0" : values[(*sources)++ % 3]); break;
  case 't': sample_add(s, "r3"); break;
  case 'c': sample_add(s, "r4"); break;
  case 'n': sample_add(s, "#1"); break;
  case 'm': sample_add(s, "%s", sample_address(s->info)); break;
  case 'x': sample_add(s, "global.x"); break;
  case 'b': sample_add(s, "a"); break;
  case 'w': sample_add(s, "[s + #3]"); break;
  case 'k': sample_add(s, "#5"); break;
  default: sample_add(s, "heap"); break; /* h */
  }
}

static inline void sample_declare(sample *s, const char *name, const char *name2) {
  int has_constants = atlas_op_has_type(ATLAS_OP_ldc, s->type);
  s->text[0] = '\0';
  sample_add(s, ".program sample\n.buffer a %s in\n.buffer b %s in\n.buffer c %s in\n.buffer i u32 in\n", name, name,
             name);
  sample_add(s, ".buffer d %s in\n.buffer o %s out\n.buffer g %s inout\n.pool heap\n.shared s %s %u\n", name2,
             s->info->operands[0] == 'p' ? "u32" : name, name, name, (unsigned)SAMPLE_SHARED);
  sample_add(s, ".local l %s %u\n", name, (unsigned)SAMPLE_SHARED);
  if (has_constants) sample_add(s, ".const k %s { #1, #2, #3 }\n", name);
}

/* Loads of what the operands of the form name, and nothing else: a load that could fault stays in a program. */
static inline void sample_load(sample *s, const char *name, const char *name2) {
  const char *form = s->info->operands;
  unsigned sources = 0, has_index = 0, has_address = 0, has_predicates = 0;
  for (const char *letter = form; *letter != '\0'; letter++) {
    sources += *letter == 's' && !sample_is_uniform(s->info);
    has_address |= *letter == 'm' && s->info->flags & ATLAS_SPACE_POOL;
    has_predicates |= *letter == 'q';
    has_index |= *letter == 'c' || (*letter == 'm' && !(s->info->flags & ATLAS_SPACE_CONST));
    if (*letter == 't') sample_add(s, "ldg.%s r3, [d + lane]\n", name2);
  }
  for (unsigned k = 0; k < sources && k < 3; k++) sample_add(s, "ldg.%s r%u, [%c + lane]\n", name, k, "abc"[k]);
  if (has_index || has_predicates) sample_add(s, "ldg.u32 r4, [i + lane]\n");
  if (has_address) sample_add(s, "mul.u32 r6, r4, #16\ncvt.u64.u32 r5, r6\n");
  if (has_predicates) sample_add(s, "set.lt.u32 p0, r4, #5\nset.lt.u32 p1, r4, #40\n");
}

/* Fills in `text` after the rest. */
static inline void sample_write(sample *s) {
  const atlas_op_info *info = s->info;
  const char *name = atlas_type_name(s->type == ATLAS_NONE ? ATLAS_u32 : s->type);
  const char *name2 = atlas_type_name(s->type2 == ATLAS_NONE ? ATLAS_u32 : s->type2);
  unsigned sources = 0, predicates = 0;
  sample_declare(s, name, name2);
  sample_load(s, name, name2);
  sample_add(s, "%s", info->mnemonic);
  if (s->type != ATLAS_NONE) sample_add(s, ".%s", name);
  if (info->flags & ATLAS_SECOND) sample_add(s, ".%s", name2);
  for (size_t k = 0; info->operands[k] != '\0'; k++) {
    sample_add(s, k == 0 ? " " : ", ");
    sample_operand(s, info->operands[k], &sources, &predicates);
  }
  if (info->operands[0] == 'd' || info->operands[0] == 'o') sample_add(s, "\nstg.%s [o + lane], r9", name);
  if (info->op == ATLAS_OP_stl) sample_add(s, "\nldl.%s r9, [l + r4]\nstg.%s [o + lane], r9", name, name);
  if (info->operands[0] == 'p') sample_add(s, "\nsel.u32 r9, p2, #1, #0\nstg.u32 [o + lane], r9");
  sample_add(s, "\nexit\n");
}

/* Calls `try` with the instruction, unless it is a jump, in each type or pair of types. */
static inline void sample_each_type(const atlas_op_info *info, void (*try)(sample *s, void *user), void *user) {
  sample s = {.info = info};
  if (info->flags & ATLAS_JUMP) return;
  if (info->types == 0) try(&s, user);
  for (s.type = ATLAS_i8; s.type < ATLAS_TYPE_COUNT; s.type++) {
    if (!(info->types >> s.type & 1)) continue;
    if (!(info->flags & ATLAS_SECOND)) try(&s, user);
    for (s.type2 = ATLAS_i8; info->flags & ATLAS_SECOND && s.type2 < ATLAS_TYPE_COUNT; s.type2++) {
      int fits = info->op != ATLAS_OP_bitcast || atlas_bytes(s.type) == atlas_bytes(s.type2);
      if (info->types >> s.type2 & 1 && fits) try(&s, user);
    }
    s.type2 = ATLAS_NONE;
  }
}

#endif
