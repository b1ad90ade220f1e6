/* limits.h - how far an access in a loop goes at most, as a number that is known before the loop begins: so that one
 * check there can stand for one in each iteration.
 *
 * In `for (i = lane; i < n; i += block) x[row * m + i]` no index is above row * m + n - 1, whatever n, m and the number
 * of iterations are. With U, the sum of the products + above, as an exact number:
 *
 *   U < extent   the access is in bounds whenever this lane executes it, in this entry into the loop: no check
 *   else         nothing is known, because n may be greater than what is reached: the checks stay
 *
 * U may be below 0: then the lane never executes it. An index that wraps is less than the sum, and no harm. */
#ifndef HG_COMPILER_LIMITS_H
#define HG_COMPILER_LIMITS_H

#include "compiler/analyse.h"

enum { HG_MOST_PRODUCTS = 2 };

typedef struct hg_limit {
  uint32_t count;
  uint32_t product[HG_MOST_PRODUCTS][2]; /* values, the numbers of which are multiplied; the second may be SSA_NONE.
                                            None is negative. Each has 32 bits at most, unless it is the only one */
  int64_t above;                         /* a number of 33 bits, displacement included */
  uint32_t header;                       /* of the outermost loop around the access that all of them are known before */
} hg_limit;

/* 1 and the limit of a load, store or atomic [x + index + displacement] in a loop that is not proven to be in bounds
 * and never goes below element 0. `unit` is scheduled, and as it was when it was analysed; `order` is of its blocks. */
int hg_find_limit(const hg_analysis *analysis, const ssa_unit *unit, const ssa_order *order, uint32_t access,
                  hg_limit *limit);

#endif
