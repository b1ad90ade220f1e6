/* control.c - levels propagated along control dependence. Levels only rise, so each climb up the post-dominator tree
 * skips blocks that have the level already. */
#include "ir/control.h"

#include <string.h>

void ir_control_begin(ir_control *c, const ir_graph *graph, uint32_t *words, uint8_t *bytes) {
  size_t n = graph->block_count;
  c->graph = graph;
  c->level = bytes;
  memset(bytes, 0, n);
  for (size_t level = 0; level < IR_LEVELS; level++) {
    c->climb[level] = words + level * n;
    memcpy(c->climb[level], graph->post_dominator, n * sizeof(uint32_t));
  }
}

static void raise_level(ir_control *c, uint32_t block, uint8_t level, ir_control_raised raised, void *user) {
  if (c->level[block] >= level) return;
  c->level[block] = level;
  raised(user, block);
}

/* The nearest block from `block` upwards, itself included, whose level is lower; paths are compressed on the way, so
 * that repeated climbs stay cheap. */
static uint32_t next_below(ir_control *c, uint32_t block, uint8_t level) {
  uint32_t *climb = c->climb[level], none = c->graph->block_count;
  while (block != none && c->level[block] >= level) {
    uint32_t up = climb[block];
    if (up != none && c->level[up] >= level) climb[block] = climb[up];
    block = up;
  }
  return block;
}

/* Raises all blocks that are control dependent on the edge from `block` to `successor`. */
static void spread(ir_control *c, uint32_t block, uint32_t successor, uint8_t level, ir_control_raised raised,
                   void *user) {
  const ir_graph *g = c->graph;
  if (g->doomed[successor]) { /* doomed blocks are not in the post-dominator tree */
    raise_level(c, successor, level, raised, user);
    return;
  }
  uint32_t stop = g->doomed[block] ? g->block_count : g->post_dominator[block];
  for (uint32_t b = next_below(c, successor, level); g->post_depth[b] > g->post_depth[stop];
       b = next_below(c, b, level))
    raise_level(c, b, level, raised, user);
}

void ir_control_branch(ir_control *c, uint32_t block, uint8_t level, ir_control_raised raised, void *user) {
  const ir_graph *g = c->graph;
  uint32_t next = g->next[block], taken = g->taken[block];
  if (level == 0 || next == IR_NONE) return;
  if (taken == IR_NONE) { /* no branch here, but doomed code has the level of the control that leads there */
    if (g->doomed[next]) raise_level(c, next, level, raised, user);
    return;
  }
  /* No block that is not doomed depends on a branch with one doomed side. */
  int decides = g->doomed[block] || (!g->doomed[next] && !g->doomed[taken]);
  if (decides || g->doomed[next]) spread(c, block, next, level, raised, user);
  if (decides || g->doomed[taken]) spread(c, block, taken, level, raised, user);
}
