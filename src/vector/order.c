/* order.c - a topological order in which every loop is contiguous. */
#include "vector/order.h"

#include "base/error.h"

#include <string.h>

typedef struct sorter {
  const ssa_unit *unit;
  const ssa_order *order;
  vector_order *out;
  uint32_t *waits; /* per block: forward edges from blocks that are not placed yet */
  uint32_t *next;  /* per block: the next in its list */
  uint32_t *ready; /* per header, and at [blocks] for the outermost level: the first block that is ready */
} sorter;

static int is_back_edge(const sorter *s, uint32_t from, uint32_t to) { return ssa_dominates(s->order, to, from); }

static uint32_t level_of(const sorter *s, uint32_t block) {
  uint32_t loop = s->out->loop[block] == block ? s->out->parent[block] : s->out->loop[block];
  return loop == SSA_NONE ? (uint32_t)s->unit->blocks.count : loop;
}

static void make_ready(sorter *s, uint32_t block) {
  uint32_t level = level_of(s, block);
  s->next[block] = s->ready[level];
  s->ready[level] = block;
}

static void count_edges(sorter *s) {
  for (uint32_t k = 0; k < s->order->count; k++) {
    const ssa_block *block = ssa_block_at(s->unit, s->order->block[k]);
    for (int e = 0; e < 2; e++)
      if (block->successor[e] != SSA_NONE && !is_back_edge(s, s->order->block[k], block->successor[e]))
        s->waits[block->successor[e]]++;
  }
}

/* Places the block that became ready last first, so that both sides of a branch stay near it. */
static void place_all(sorter *s) {
  vector_order *o = s->out;
  uint32_t outside = (uint32_t)s->unit->blocks.count, level = outside;
  make_ready(s, s->order->block[0]);
  for (;;) {
    uint32_t block = s->ready[level];
    if (block == SSA_NONE) {
      if (level == outside) return;
      o->end[level] = o->count - 1;
      level = o->parent[level] == SSA_NONE ? outside : o->parent[level];
      continue;
    }
    s->ready[level] = s->next[block];
    o->place[block] = o->count;
    o->block[o->count++] = block;
    if (o->loop[block] == block) level = block;
    for (int e = 1; e >= 0; e--) {
      uint32_t to = ssa_block_at(s->unit, block)->successor[e];
      if (to != SSA_NONE && !is_back_edge(s, block, to) && --s->waits[to] == 0) make_ready(s, to);
    }
  }
}

hg_status hg_vector_order_build(const ssa_unit *unit, const ssa_order *order, const ir_loops *loops,
                                vector_order *out) {
  uint64_t n = unit->blocks.count, words = 6 * n + 1;
  *out = (vector_order){.block = hg_allocate(&unit->allocator, words, sizeof(uint32_t))};
  if (out->block == NULL) return hg_fail_memory("the order of vector code", words * sizeof(uint32_t));
  out->place = out->block + n;
  out->loop = loops->loop;
  out->parent = loops->parent;
  out->end = out->place + n;
  sorter s = {.unit = unit, .order = order, .out = out, .next = out->end + n};
  s.ready = s.next + n;
  s.waits = s.ready + n + 1;
  memset(out->place, 0xff, n * sizeof(uint32_t));
  memset(s.ready, 0xff, (n + 1) * sizeof(uint32_t));
  count_edges(&s);
  place_all(&s);
  return HG_OK;
}

void hg_vector_order_release(const ssa_unit *unit, vector_order *out) {
  hg_release(&unit->allocator, out->block);
  *out = (vector_order){0};
}
