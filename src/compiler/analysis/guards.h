/* guards.h - what a value can be at one place: in a block, or along an edge, which lanes reach only through branches
 * that say something about it or about what it is computed from. And so what the phis of a loop can be. */
#ifndef HG_COMPILER_GUARDS_H
#define HG_COMPILER_GUARDS_H

#include "compiler/analysis/induction.h"

/* A phi of a loop's header that counts the loop's iterations: it starts in a known range, and each back edge adds at
 * least `step` to it, or subtracts, without wrapping. */
typedef struct hg_counter {
  uint32_t phi; /* SSA_NONE: none is known */
  uint8_t goes_down;
  int64_t first; /* the lowest (goes_down: highest) number that it starts with */
  int64_t step;  /* > 0 */
  uint64_t most; /* back edges, from each entry into the loop */
} hg_counter;

/* What is known of a block. */
typedef struct hg_guarded {
  hg_counter counter;   /* of the loop whose header it is */
  uint64_t most_rounds; /* of that loop: back edges, from each entry into it; UINT64_MAX: not known */
  uint32_t condition;   /* the branch of its dominator, if only one side of that leads here; SSA_NONE */
  uint32_t above;       /* the next block on the way up through its dominators that has a condition; SSA_NONE */
  uint8_t holds;        /* whether the condition does */
} hg_guarded;

typedef struct hg_guards {
  const ssa_unit *unit;
  const ssa_order *order;
  hg_range *of;         /* per value: of the whole program */
  hg_guarded *at;       /* per block */
  uint32_t block, side; /* where: on the edge to the block's successor, or, if side is 2, in the block */
  uint32_t work;        /* looks that may still be taken there */
} hg_guards;

/* Fills g->at; the other members are set. */
void hg_guards_build(hg_guards *g);

/* Goes to a block, or to the edge to its successor `side` (0 or 1). */
static inline void hg_guards_go_to(hg_guards *g, uint32_t block, uint32_t side) {
  g->block = block;
  g->side = side;
}

/* What the value can be there. Empty (low > high): no lane gets there. */
hg_range hg_guards_range(hg_guards *g, uint32_t value);

/* 1 if value + displacement is below the length of the buffer there, whatever that is, because branches on the way have
 * compared it with `len`, or with what is no greater. Says nothing of whether it is below 0. The displacement is a
 * number of 32 bits. */
int hg_guards_is_below_length(hg_guards *g, uint32_t value, int64_t displacement, uint32_t buffer);

/* What a phi can be: the join of its arguments, each along its edge; in a loop what is left of the whole type if each
 * iteration finds the phi between its bounds and leaves it there. With the last phi of a loop's header, finds the
 * loop's counter and the phis that have changed by a known step in so many iterations: *changed is set when one of
 * these is another than the one asked for. Sets g->of. */
void hg_guards_find_phi(hg_guards *g, uint32_t phi, int *changed);

#endif
