/* guards.h - the range of a value at one place: in a block, or along an edge, which lanes reach only through branches
 * that say something about the value or what it is computed from. And, from that, the ranges of loops' phis. */
#ifndef HG_COMPILER_GUARDS_H
#define HG_COMPILER_GUARDS_H

#include "compiler/analysis/induction.h"

/* A phi of a loop's header that counts the loop's iterations: it starts in a known range, and each back edge adds at
 * least `step` to it, or subtracts it, without wrapping. */
typedef struct hg_counter {
  uint32_t phi; /* SSA_NONE: none is known */
  uint8_t goes_down;
  int64_t first; /* the lowest (goes_down: highest) number that it starts with */
  int64_t step;  /* > 0 */
  uint64_t most; /* the most back edges taken for each entry into the loop */
} hg_counter;

/* Facts about a basic block. */
typedef struct hg_guarded {
  hg_counter counter;   /* of the loop whose header the block is */
  uint64_t most_rounds; /* of that loop: the most back edges for each entry into it; UINT64_MAX: unknown */
  uint32_t condition;   /* the condition of its dominator's branch, if only one side of that leads here; SSA_NONE */
  uint32_t above;       /* the next dominator upwards that has a condition; SSA_NONE */
  uint8_t holds;        /* whether the condition is true here */
} hg_guarded;

typedef struct hg_guards {
  const ssa_unit *unit;
  const ssa_order *order;
  hg_range *of;         /* per value: its range in the whole program */
  hg_guarded *at;       /* per block */
  uint32_t block, side; /* the place: on the edge to the block's successor `side` or, if side is 2, in the block */
  uint32_t work;        /* how many values may still be examined there */
} hg_guards;

/* Fills g->at; the other members must be set. */
void hg_guards_build(hg_guards *g);

/* Goes to a block, or to the edge to its successor `side` (0 or 1). */
static inline void hg_guards_go_to(hg_guards *g, uint32_t block, uint32_t side) {
  g->block = block;
  g->side = side;
}

/* The range of the value there. Empty (low > high): no lane gets there. */
hg_range hg_guards_range(hg_guards *g, uint32_t value);

/* 1 if value + displacement is below the length of the buffer there, whatever that is, because branches on the way have
 * compared it with `len` or with something no greater. It says nothing about whether it is below 0. The displacement is
 * a 32-bit number. */
int hg_guards_is_below_length(hg_guards *g, uint32_t value, int64_t displacement, uint32_t buffer);

/* The range of a phi: the join of its arguments, each along its edge; in a loop, what remains of the whole type if each
 * iteration finds the phi within its bounds and leaves it there. With the last phi of a loop's header it also finds the
 * loop's counter and the phis that have changed by a known step in so many iterations: *changed is set if one of these
 * differs from the one asked for. Sets g->of. */
void hg_guards_find_phi(hg_guards *g, uint32_t phi, int *changed);

#endif
