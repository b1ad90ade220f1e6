/* rounds.h - a loop that does the same for one value after another, instead of copies of what is done. */
#ifndef HG_COMPILER_ROUNDS_H
#define HG_COMPILER_ROUNDS_H

#include "ir/ssa.h"

enum { HG_MOST_ROUNDS = 16 };

typedef struct hg_rounds {
  ssa_unit *unit;
  uint32_t head, count;
  uint32_t number, is[HG_MOST_ROUNDS]; /* of the round, and whether it is this one: values */
  int failed;                          /* out of memory */
} hg_rounds;

/* The block's first predecessor leads into the loop, and its second one back. */
void hg_begin_rounds(hg_rounds *r, uint32_t head);
/* value[k] in round k, by selections. */
uint32_t hg_given_in_round(hg_rounds *r, const uint32_t *value);
/* What goes from round to round: it begins as the value. */
uint32_t hg_carry_on(hg_rounds *r, uint32_t value);
/* Behind round k it is what that has found; behind the others it stays. */
uint32_t hg_keep_found(hg_rounds *r, uint32_t carried, uint32_t k, uint32_t found);
/* The block ends a round: it goes back, or on to `next`. */
void hg_end_rounds(hg_rounds *r, uint32_t last, uint32_t next);

#endif
