/* transform.h - changes to a program that must keep its canonical form, and changes that may not. */
#ifndef HG_TESTS_TRANSFORM_H
#define HG_TESTS_TRANSFORM_H

#include "draft.h"

typedef enum transform_kind {
  TRANSFORM_REGISTERS,  /* registers and predicates renamed by a random permutation */
  TRANSFORM_NAMES,      /* program, parameters and labels renamed */
  TRANSFORM_OPERANDS,   /* operands of commutative operations exchanged */
  TRANSFORM_ORDER,      /* independent neighbours exchanged */
  TRANSFORM_DEAD,       /* instructions whose result nobody reads */
  TRANSFORM_DUPLICATES, /* pure instructions and loads done twice */
  TRANSFORM_BRANCHES,   /* branches on the opposite predicate */
  TRANSFORM_BLOCKS,     /* jumps to the next instruction */
  TRANSFORM_LAYOUT,     /* the blocks stand elsewhere */
  TRANSFORM_DETOURS,    /* some branches to a place share a jump on their way */
  TRANSFORM_COUNT
} transform_kind;

const char *transform_name(transform_kind kind);

/* Changes `d`, which is the draft of `program`, in random places. 1 if anything changed. */
int transform(transform_kind kind, rng *r, const atlas_program *program, draft *d);

/* One small change that may change what the program does. 1 if there was something to change. */
int mutate(rng *r, draft *d);

#endif
