/* rare_row.h - a row of branches to the rare cases of functions (join_rare.c), and a loop over them (roll_rare.c). */
#ifndef HG_COMPILER_RARE_ROW_H
#define HG_COMPILER_RARE_ROW_H

#include "compiler/compiler_tuning.h"
#include "ir/ssa.h"

enum {
  RARE_MOST_JOINED = COMPILER_GATHERED
}; /* functions: what their rare sides need is in registers up to the test */

/* A branch with a side that computes little, and another that is rare. */
typedef struct rare_branch {
  uint32_t head, usual, join; /* blocks; usual: between head and join, without effects; or head itself */
  size_t at;                  /* which of the predecessors of `join` the usual one is */
  int side;                   /* of the head's branch that goes to `usual` */
  uint32_t rare[COMPILER_RARE_BLOCKS], rare_count;
} rare_branch;

/* Blocks without a way into the first one and out of the last one, and what each phi of each join is there. */
typedef struct rare_loop {
  uint32_t first, last;
  uint32_t chosen[RARE_MOST_JOINED][COMPILER_RARE_CHOSEN];
} rare_loop;

/* The row's branches and sides once, in a loop that does them for one function after the other. *is_rolled: 0 if they
 * differ in more than what they are given; then nothing has changed. HG_OUT_OF_MEMORY. */
hg_status hg_roll_rare(ssa_unit *unit, const rare_branch *row, uint32_t count, rare_loop *made, int *is_rolled);

#endif
