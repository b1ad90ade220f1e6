/* dominance.c - semidominators over depth-first numbers, then the nearest common ancestor with the parent in the tree
 * so far: the SNCA algorithm of Georgiadis, "Linear-Time Algorithms for Dominators and Related Problems" (2005). */
#include "ir/dominance.h"

#include <string.h>

#define NONE UINT32_MAX

/* All but `number` are indexed by depth-first number. */
typedef struct search {
  ir_edges out, in;
  uint32_t *at;     /* the node */
  uint32_t *number; /* per node */
  uint32_t *parent, *link, *label, *semi, *idom, *path;
} search;

/* Depth-first numbers in preorder, with parents in the tree. `link` counts the edges seen of each node. */
static uint32_t number_nodes(search *s, uint32_t root) {
  uint32_t count = 0, depth = 0;
  s->at[0] = root;
  s->number[root] = s->parent[0] = count++;
  s->link[0] = s->out.start[root];
  s->path[depth++] = 0;
  while (depth > 0) {
    uint32_t v = s->path[depth - 1], node = s->at[v];
    if (s->link[v] == s->out.start[node + 1]) {
      depth--;
      continue;
    }
    uint32_t next = s->out.list[s->link[v]++];
    if (s->number[next] != NONE) continue;
    s->number[next] = count;
    s->at[count] = next;
    s->parent[count] = v;
    s->link[count] = s->out.start[next];
    s->path[depth++] = count++;
  }
  return count;
}

/* The label of least semidominator on the way from v up to what has been linked, with the way compressed. */
static uint32_t evaluate(const search *s, uint32_t v, uint32_t last_linked) {
  uint32_t depth = 0;
  if (v < last_linked) return s->label[v];
  for (uint32_t x = v; s->link[x] >= last_linked; x = s->link[x]) s->path[depth++] = x;
  while (depth-- > 0) {
    uint32_t x = s->path[depth], above = s->link[x];
    if (s->semi[s->label[above]] < s->semi[s->label[x]]) s->label[x] = s->label[above];
    s->link[x] = s->link[above];
  }
  return s->label[v];
}

static void find_semidominators(const search *s, uint32_t count) {
  for (uint32_t v = 0; v < count; v++) {
    s->link[v] = s->idom[v] = s->parent[v];
    s->label[v] = s->semi[v] = v;
  }
  for (uint32_t v = count; v-- > 1;) {
    uint32_t node = s->at[v];
    for (uint32_t e = s->in.start[node]; e < s->in.start[node + 1]; e++) {
      uint32_t from = s->number[s->in.list[e]];
      if (from == NONE) continue;
      uint32_t best = s->semi[evaluate(s, from, v + 1)];
      if (best < s->semi[v]) s->semi[v] = best;
    }
  }
}

uint32_t ir_dominators(uint32_t count, uint32_t root, ir_edges out, ir_edges in, uint32_t *scratch, uint32_t *dominator,
                       uint32_t *preorder) {
  size_t n = count;
  search s = {.out = out,
              .in = in,
              .at = preorder,
              .number = scratch,
              .parent = scratch + n,
              .link = scratch + 2 * n,
              .label = scratch + 3 * n,
              .semi = scratch + 4 * n,
              .idom = scratch + 5 * n,
              .path = scratch + 6 * n};
  memset(s.number, 0xff, n * sizeof(uint32_t));
  uint32_t reached = number_nodes(&s, root);
  find_semidominators(&s, reached);
  for (uint32_t v = 1; v < reached; v++)
    while (s.idom[v] > s.semi[v]) s.idom[v] = s.idom[s.idom[v]];
  memset(dominator, 0xff, n * sizeof(uint32_t));
  for (uint32_t v = 0; v < reached; v++) dominator[s.at[v]] = s.at[s.idom[v]];
  return reached;
}
