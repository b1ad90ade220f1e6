/* graph.c - basic blocks and dominance.
 *
 * Dominators: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm" (2001). */
#include "ir/graph.h"

#include "base/error.h"

/* All arrays of the graph and the scratch of its construction come from one allocation. */
typedef struct layout {
  uint32_t *cursor;
} layout;

static uint32_t *take(layout *l, size_t count) {
  uint32_t *array = l->cursor;
  l->cursor += count;
  return array;
}

/* Marks in leader[i] whether node i starts a block. */
static uint32_t find_leaders(const ir_node *nodes, uint32_t count, uint32_t *leader) {
  for (uint32_t i = 0; i < count; i++) leader[i] = i == 0;
  for (uint32_t i = 0; i < count; i++) {
    const ir_node *node = &nodes[i];
    int ends_block = node->taken != IR_NONE || node->next != i + 1;
    if (node->taken != IR_NONE) leader[node->taken] = 1;
    if (ends_block && node->next != IR_NONE) leader[node->next] = 1;
    if (ends_block && i + 1 < count) leader[i + 1] = 1;
  }
  uint32_t blocks = 0;
  for (uint32_t i = 0; i < count; i++) blocks += leader[i];
  return blocks;
}

static void cut_blocks(ir_graph *g, const ir_node *nodes, uint32_t count, uint32_t *block_of) {
  uint32_t block = 0;
  for (uint32_t i = 0; i < count; i++) { /* block_of holds the leader marks on entry */
    if (block_of[i]) {
      g->first[block] = i;
      g->size[block++] = 0;
    }
    g->size[block - 1]++;
    block_of[i] = block - 1;
  }
  for (uint32_t b = 0; b < g->block_count; b++) {
    const ir_node *last = &nodes[g->first[b] + g->size[b] - 1];
    g->next[b] = last->next == IR_NONE ? IR_NONE : block_of[last->next];
    g->taken[b] = last->taken == IR_NONE ? IR_NONE : block_of[last->taken];
    if (g->taken[b] == g->next[b]) g->taken[b] = IR_NONE; /* a branch to the next instruction decides nothing */
    if (g->next[b] == IR_NONE) {
      g->next[b] = g->taken[b];
      g->taken[b] = IR_NONE;
    }
  }
}

static void list_predecessors(ir_graph *g) {
  uint32_t n = g->block_count;
  for (uint32_t b = 0; b <= n; b++) g->predecessor_start[b] = 0;
  for (uint32_t b = 0; b < n; b++) {
    if (g->next[b] != IR_NONE) g->predecessor_start[g->next[b]]++;
    if (g->taken[b] != IR_NONE) g->predecessor_start[g->taken[b]]++;
  }
  uint32_t total = 0;
  for (uint32_t b = 0; b <= n; b++) { /* to the end of each list; filling moves it back to the start */
    total += g->predecessor_start[b];
    g->predecessor_start[b] = total;
  }
  for (uint32_t b = n; b-- > 0;) {
    if (g->next[b] != IR_NONE) g->predecessors[--g->predecessor_start[g->next[b]]] = b;
    if (g->taken[b] != IR_NONE) g->predecessors[--g->predecessor_start[g->taken[b]]] = b;
  }
}

/* Depth-first search without recursion; `stack` holds blocks, `state` how many successors have been seen. */
static void number_blocks(ir_graph *g, uint32_t *stack, uint32_t *state) {
  uint32_t n = g->block_count, depth = 0, place = n;
  for (uint32_t b = 0; b < n; b++) state[b] = IR_NONE;
  stack[depth++] = 0;
  state[0] = 0;
  while (depth > 0) {
    uint32_t b = stack[depth - 1];
    uint32_t seen = state[b]++;
    if (seen < 2) {
      uint32_t successor = seen == 0 ? g->next[b] : g->taken[b];
      if (successor != IR_NONE && state[successor] == IR_NONE) {
        state[successor] = 0;
        stack[depth++] = successor;
      }
      continue;
    }
    g->order[--place] = b;
    g->position[b] = place;
    depth--;
  }
}

static uint32_t common_dominator(const uint32_t *dominator, const uint32_t *position, uint32_t a, uint32_t b) {
  while (a != b) {
    while (position[a] > position[b]) a = dominator[a];
    while (position[b] > position[a]) b = dominator[b];
  }
  return a;
}

static void find_dominators(ir_graph *g) {
  for (uint32_t b = 0; b < g->block_count; b++) g->dominator[b] = IR_NONE;
  g->dominator[0] = 0;
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t k = 1; k < g->block_count; k++) {
      uint32_t b = g->order[k], dominator = IR_NONE;
      for (uint32_t e = g->predecessor_start[b]; e < g->predecessor_start[b + 1]; e++) {
        uint32_t p = g->predecessors[e];
        if (g->dominator[p] == IR_NONE) continue;
        dominator = dominator == IR_NONE ? p : common_dominator(g->dominator, g->position, dominator, p);
      }
      if (dominator != g->dominator[b]) {
        g->dominator[b] = dominator;
        changed = 1;
      }
    }
  }
}

/* Intervals of a walk over the dominator tree: a dominates b when open[a] <= open[b] and close[b] <= close[a].
 * Parents come before children in reverse postorder, so subtree sizes are summed backwards and numbers dealt forwards.
 */
static void number_dominator_tree(const ir_graph *g, uint32_t *open, uint32_t *close, uint32_t *next_child) {
  uint32_t n = g->block_count;
  for (uint32_t b = 0; b < n; b++) close[b] = 1;
  for (uint32_t k = n; k-- > 1;) close[g->dominator[g->order[k]]] += close[g->order[k]];
  for (uint32_t k = 0; k < n; k++) {
    uint32_t b = g->order[k], parent = g->dominator[b];
    open[b] = k == 0 ? 0 : next_child[parent];
    if (k > 0) next_child[parent] += close[b];
    next_child[b] = open[b] + 1;
  }
  for (uint32_t b = 0; b < n; b++) close[b] += open[b];
}

static void mark_back_edges(ir_graph *g, ir_node *nodes, uint32_t *open, uint32_t *close, uint32_t *scratch) {
  number_dominator_tree(g, open, close, scratch);
  g->irreducible_node = IR_NONE;
  for (uint32_t b = 0; b < g->block_count; b++) {
    uint32_t last = g->first[b] + g->size[b] - 1;
    ir_node *node = &nodes[last];
    uint32_t successors[2] = {g->next[b], g->taken[b]};
    for (int s = 0; s < 2; s++) {
      uint32_t target = successors[s];
      if (target == IR_NONE) continue;
      int dominates = open[target] <= open[b] && close[b] <= close[target];
      if (dominates) {
        if (node->next == g->first[target]) node->flags |= IR_NODE_BACK_NEXT;
        if (node->taken == g->first[target]) node->flags |= IR_NODE_BACK_TAKEN;
      } else if (g->position[target] <= g->position[b] && g->irreducible_node == IR_NONE) {
        g->irreducible_node = last;
      }
    }
  }
}

/* A block is doomed when an abort ends it or all its successors are doomed. */
static void find_doomed(ir_graph *g, const ir_node *nodes, uint32_t *stack, uint32_t *alive_successors) {
  uint32_t n = g->block_count, depth = 0;
  for (uint32_t b = 0; b < n; b++) {
    alive_successors[b] = (g->next[b] != IR_NONE) + (uint32_t)(g->taken[b] != IR_NONE);
    g->doomed[b] = (nodes[g->first[b] + g->size[b] - 1].flags & IR_NODE_ABORT) != 0;
    if (g->doomed[b]) stack[depth++] = b;
  }
  while (depth > 0) {
    uint32_t b = stack[--depth];
    for (uint32_t e = g->predecessor_start[b]; e < g->predecessor_start[b + 1]; e++) {
      uint32_t p = g->predecessors[e];
      if (--alive_successors[p] == 0) {
        g->doomed[p] = 1;
        stack[depth++] = p;
      }
    }
  }
}

/* Postorder of the reversed graph from the virtual exit, ignoring doomed blocks. Where code never ends, a block of it
 * is tied to the exit: the one latest in reverse postorder that nothing else reaches. Returns how many blocks it
 * numbered. */
static uint32_t order_reversed(const ir_graph *g, uint32_t *order, uint32_t *position, uint8_t *tied, uint32_t *stack,
                               uint32_t *state) {
  uint32_t n = g->block_count, count = 0;
  for (uint32_t b = 0; b < n; b++) {
    position[b] = IR_NONE;
    state[b] = IR_NONE;
    tied[b] = 0;
  }
  for (int endless = 0; endless < 2; endless++)
    for (uint32_t k = n; k-- > 0;) {
      uint32_t root = g->order[k];
      if (g->doomed[root] || state[root] != IR_NONE) continue;
      if (!endless && g->next[root] != IR_NONE) continue; /* first the real ends */
      tied[root] = 1;
      uint32_t depth = 0;
      stack[depth++] = root;
      state[root] = g->predecessor_start[root];
      while (depth > 0) {
        uint32_t b = stack[depth - 1];
        if (state[b] < g->predecessor_start[b + 1]) {
          uint32_t p = g->predecessors[state[b]++];
          if (!g->doomed[p] && state[p] == IR_NONE) {
            state[p] = g->predecessor_start[p];
            stack[depth++] = p;
          }
          continue;
        }
        position[b] = count;
        order[count++] = b;
        depth--;
      }
    }
  return count;
}

static uint32_t common_post_dominator(const ir_graph *g, const uint32_t *position, uint32_t a, uint32_t b) {
  while (a != b) { /* positions are postorder numbers: an ancestor's is higher, the virtual exit's highest */
    while (position[a] < position[b]) a = g->post_dominator[a];
    while (position[b] < position[a]) b = g->post_dominator[b];
  }
  return a;
}

static uint32_t meet_post(const ir_graph *g, const uint32_t *position, uint32_t so_far, uint32_t successor) {
  if (successor == IR_NONE) return so_far;
  if (successor < g->block_count && (g->doomed[successor] || g->post_dominator[successor] == IR_NONE)) return so_far;
  return so_far == IR_NONE ? successor : common_post_dominator(g, position, so_far, successor);
}

static void find_post_dominators(ir_graph *g, uint32_t *order, uint32_t *position, uint8_t *tied, uint32_t *stack,
                                 uint32_t *state) {
  uint32_t n = g->block_count, exit_block = n;
  uint32_t count = order_reversed(g, order, position, tied, stack, state);
  position[exit_block] = n;
  for (uint32_t b = 0; b < n; b++) g->post_dominator[b] = g->doomed[b] ? exit_block : IR_NONE;
  for (int changed = 1; changed;) {
    changed = 0;
    for (uint32_t k = count; k-- > 0;) {
      uint32_t b = order[k];
      uint32_t found = tied[b] ? exit_block : IR_NONE;
      found = meet_post(g, position, found, g->next[b]);
      found = meet_post(g, position, found, g->taken[b]);
      if (found != g->post_dominator[b]) {
        g->post_dominator[b] = found;
        changed = 1;
      }
    }
  }
  g->post_depth[exit_block] = 0;
  for (uint32_t b = 0; b < n; b++) g->post_depth[b] = 1;
  for (uint32_t k = count; k-- > 0;) g->post_depth[order[k]] = g->post_depth[g->post_dominator[order[k]]] + 1;
}

hg_status ir_graph_build(const hg_allocator *allocator, ir_node *nodes, uint32_t count, ir_graph *g) {
  *g = (ir_graph){.irreducible_node = IR_NONE};
  uint32_t *block_of = hg_allocate(allocator, count, sizeof *block_of);
  if (block_of == NULL) return hg_fail_memory("the control-flow graph", (uint64_t)count * sizeof *block_of);
  uint32_t n = find_leaders(nodes, count, block_of);
  g->block_count = n;
  uint64_t words = 17 * ((uint64_t)n + 1); /* what is taken below, with room to spare */
  g->memory = hg_allocate(allocator, words, sizeof(uint32_t));
  if (g->memory == NULL) {
    hg_release(allocator, block_of);
    return hg_fail_memory("the control-flow graph", words * sizeof(uint32_t));
  }
  layout l = {g->memory};
  g->first = take(&l, n);
  g->size = take(&l, n);
  g->next = take(&l, n);
  g->taken = take(&l, n);
  g->predecessor_start = take(&l, (size_t)n + 1);
  g->predecessors = take(&l, (size_t)2 * n);
  g->order = take(&l, n);
  g->position = take(&l, n);
  g->dominator = take(&l, n);
  g->post_dominator = take(&l, n);
  g->post_depth = take(&l, (size_t)n + 1);
  uint32_t *scratch[4] = {take(&l, n), take(&l, n), take(&l, (size_t)n + 1), take(&l, n)};
  g->doomed = (uint8_t *)take(&l, n);
  uint8_t *tied = g->doomed + n;

  cut_blocks(g, nodes, count, block_of);
  hg_release(allocator, block_of);
  list_predecessors(g);
  number_blocks(g, scratch[0], scratch[1]);
  find_dominators(g);
  mark_back_edges(g, nodes, scratch[0], scratch[1], scratch[3]);
  if (g->irreducible_node != IR_NONE) return HG_OK;
  find_doomed(g, nodes, scratch[0], scratch[1]);
  find_post_dominators(g, scratch[3], scratch[2], tied, scratch[0], scratch[1]);
  return HG_OK;
}

void ir_graph_release(const hg_allocator *allocator, ir_graph *graph) {
  hg_release(allocator, graph->memory);
  *graph = (ir_graph){.irreducible_node = IR_NONE};
}
