/* skip.c - which blocks are jumped over together, and where their waiting masks are cleared.
 *
 * Lanes reach a block only through its dominators. So if blocks dominated by one block follow it in the order, and all
 * are masked, the jump over that block can skip all of them. A mask that is cleared at the end of the dominator is
 * empty whenever it is tested, because nothing else leads into the range; a mask whose only writer is the dominator
 * need not even be cleared. All this holds within one iteration of the innermost loop, so all of these blocks must be
 * in the same loop. */
#include "vector/lower.h"

static int is_header(const vector_lowering *l, uint32_t b) { return l->order.loop[b] == b; }

/* The loop around a block; for a loop's header, the loop around that loop. */
static uint32_t loop_around(const vector_lowering *l, uint32_t b) {
  return is_header(l, b) ? l->order.parent[b] : l->order.loop[b];
}

/* The last place of the blocks that are skipped with `b`; it is known for later blocks. A loop counts as one block
 * here. */
static uint32_t last_skipped(const vector_lowering *l, uint32_t b) {
  uint32_t loop = l->order.loop[b], last = loop == SSA_NONE ? l->order.count - 1 : l->order.end[loop];
  if (loop == b) return last;
  uint32_t k = l->order.place[b];
  while (k < last) {
    uint32_t next = l->order.block[k + 1];
    if (l->uniform[next] || !ssa_dominates(&l->dominance, b, next)) break;
    k = l->skip[next];
  }
  return k;
}

/* The block at whose end the mask of `b` is cleared: a dominator in the same loop, not in an inner one. SSA_NONE:
 * none. */
static uint32_t owner_of(const vector_lowering *l, uint32_t b) {
  uint32_t loop = loop_around(l, b), d = b;
  while (d != loop && d != l->dominance.dominator[d]) {
    d = l->dominance.dominator[d];
    if (l->order.loop[d] != loop || is_header(l, d)) continue;
    int owns = l->order.place[b] <= l->skip[d] && (!l->uniform[d] || hg_vector_diverges(l, d));
    return owns ? d : SSA_NONE;
  }
  return SSA_NONE;
}

void hg_vector_find_skips(vector_lowering *l) {
  for (uint32_t k = l->order.count; k-- > 0;) l->skip[l->order.block[k]] = last_skipped(l, l->order.block[k]);
  for (uint32_t k = l->order.count; k-- > 1;) { /* in the blocks' order */
    uint32_t b = l->order.block[k], owner = l->uniform[b] ? SSA_NONE : owner_of(l, b);
    l->owner[b] = owner;
    if (owner == SSA_NONE) continue;
    l->next_owned[b] = l->first_owned[owner];
    l->first_owned[owner] = b;
  }
}
