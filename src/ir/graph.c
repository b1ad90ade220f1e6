/* graph.c - basic blocks, their order, dominators and post-dominators. */
#include "ir/graph.h"

#include "base/error.h"
#include "ir/dominance.h"

/* All arrays of the graph and the scratch of its construction come from one allocation. */
typedef struct layout {
  uint32_t *cursor;
} layout;

static uint32_t *carve(layout *l, size_t count) {
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

/* Intervals of a walk over the dominator tree: a dominates b when open[a] <= open[b] and close[b] <= close[a].
 * Parents come before children in reverse postorder, so subtree sizes are summed backwards and numbers assigned
 * forwards. */
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

/* Ties a block to the virtual exit: from all that lead to it there is a way to an end. */
static void tie(const ir_graph *g, uint32_t root, uint8_t *tied, uint32_t *stack, uint32_t *seen) {
  uint32_t depth = 0;
  tied[root] = 1;
  seen[root] = 1;
  stack[depth++] = root;
  while (depth > 0) {
    uint32_t b = stack[--depth];
    for (uint32_t e = g->predecessor_start[b]; e < g->predecessor_start[b + 1]; e++) {
      uint32_t p = g->predecessors[e];
      if (g->doomed[p] || seen[p]) continue;
      seen[p] = 1;
      stack[depth++] = p;
    }
  }
}

/* The blocks that lead to no end, in the order in which a depth-first search against the edges leaves them: from the
 * last one, and from the last one of any that are left together with all they lead to, there is a way back from
 * wherever one gets (Kosaraju, Sharir 1981). `state`: the next edge to look at. */
static uint32_t list_endless(const ir_graph *g, const uint32_t *seen, uint32_t *stack, uint32_t *state, uint32_t *out) {
  uint32_t n = g->block_count, count = 0;
  for (uint32_t b = 0; b < n; b++) state[b] = IR_NONE;
  for (uint32_t root = 0; root < n; root++) {
    uint32_t depth = 0;
    if (g->doomed[root] || seen[root] || state[root] != IR_NONE) continue;
    state[root] = g->predecessor_start[root];
    stack[depth++] = root;
    while (depth > 0) {
      uint32_t b = stack[depth - 1];
      if (state[b] == g->predecessor_start[b + 1]) {
        out[count++] = b;
        depth--;
        continue;
      }
      uint32_t p = g->predecessors[state[b]++];
      if (g->doomed[p] || seen[p] || state[p] != IR_NONE) continue;
      state[p] = g->predecessor_start[p];
      stack[depth++] = p;
    }
  }
  return count;
}

/* The latest block in reverse postorder that a block of an endless loop leads to. */
static uint32_t latest_of_loop(const ir_graph *g, uint32_t block, uint32_t *stack, uint32_t *state) {
  uint32_t depth = 0, latest = block;
  state[block] = IR_NONE; /* been there */
  stack[depth++] = block;
  while (depth > 0) {
    uint32_t b = stack[--depth];
    const uint32_t successors[2] = {g->next[b], g->taken[b]};
    if (g->position[b] > g->position[latest]) latest = b;
    for (int s = 0; s < 2; s++) {
      uint32_t to = successors[s];
      if (to == IR_NONE || g->doomed[to] || state[to] == IR_NONE) continue;
      state[to] = IR_NONE;
      stack[depth++] = to;
    }
  }
  return latest;
}

/* Marks the blocks that get an edge to the virtual exit: all ends of the program, and for each endless loop that leads
 * to no other the latest of its blocks in reverse postorder. Doomed blocks are left out. */
static void tie_ends(const ir_graph *g, uint8_t *tied, uint32_t *const scratch[4]) {
  uint32_t n = g->block_count, *stack = scratch[0], *seen = scratch[1], *state = scratch[2], *endless = scratch[3];
  for (uint32_t b = 0; b < n; b++) seen[b] = tied[b] = 0;
  for (uint32_t b = 0; b < n; b++)
    if (!g->doomed[b] && !seen[b] && g->next[b] == IR_NONE) tie(g, b, tied, stack, seen);
  for (uint32_t k = list_endless(g, seen, stack, state, endless); k-- > 0;)
    if (!seen[endless[k]]) tie(g, latest_of_loop(g, endless[k], stack, state), tied, stack, seen);
}

/* The edges out of each block; n + 1 starts before the list. */
static void list_successors(const ir_graph *g, uint32_t *out) {
  uint32_t n = g->block_count, count = 0, *list = out + n + 1;
  for (uint32_t b = 0; b < n; b++) {
    out[b] = count;
    if (g->next[b] != IR_NONE) list[count++] = g->next[b];
    if (g->taken[b] != IR_NONE) list[count++] = g->taken[b];
  }
  out[n] = count;
}

/* The reversed graph, with the virtual exit as its root and without doomed blocks: `back` has its edges, `forth` the
 * same edges in their original direction. */
static void list_reversed(const ir_graph *g, const uint8_t *tied, uint32_t *back, uint32_t *forth) {
  uint32_t n = g->block_count, backward = 0, forward = 0, *back_list = back + n + 2, *forth_list = forth + n + 2;
  for (uint32_t b = 0; b < n; b++) {
    back[b] = backward;
    forth[b] = forward;
    if (g->doomed[b]) continue;
    for (uint32_t e = g->predecessor_start[b]; e < g->predecessor_start[b + 1]; e++)
      if (!g->doomed[g->predecessors[e]]) back_list[backward++] = g->predecessors[e];
    const uint32_t successors[2] = {g->next[b], g->taken[b]};
    for (int s = 0; s < 2; s++)
      if (successors[s] != IR_NONE && !g->doomed[successors[s]]) forth_list[forward++] = successors[s];
    if (tied[b]) forth_list[forward++] = n;
  }
  back[n] = backward;
  forth[n] = forth[n + 1] = forward;
  for (uint32_t b = 0; b < n; b++)
    if (tied[b]) back_list[backward++] = b;
  back[n + 1] = backward;
}

static hg_status find_dominators(const hg_allocator *allocator, ir_graph *g) {
  uint64_t n = g->block_count, words = 3 * n + 1 + (IR_DOMINANCE_SCRATCH + 1) * n;
  uint32_t *out = hg_allocate(allocator, words, sizeof *out);
  if (out == NULL) return hg_fail_memory("the control-flow graph", words * sizeof *out);
  list_successors(g, out);
  uint32_t *preorder = out + 3 * n + 1;
  ir_dominators(g->block_count, 0, (ir_edges){out, out + n + 1}, (ir_edges){g->predecessor_start, g->predecessors},
                preorder + n, g->dominator, preorder);
  hg_release(allocator, out);
  return HG_OK;
}

static hg_status find_post_dominators(const hg_allocator *allocator, ir_graph *g, const uint8_t *tied) {
  uint64_t n = g->block_count, nodes = n + 1, edges = nodes + 1 + 3 * n; /* two edges a block, and one to the exit */
  uint64_t words = 2 * edges + (IR_DOMINANCE_SCRATCH + 2) * nodes;
  uint32_t *back = hg_allocate(allocator, words, sizeof *back);
  if (back == NULL) return hg_fail_memory("the control-flow graph", words * sizeof *back);
  uint32_t *forth = back + edges, *dominator = forth + edges, *preorder = dominator + nodes,
           exit_block = g->block_count;
  list_reversed(g, tied, back, forth);
  uint32_t reached = ir_dominators((uint32_t)nodes, exit_block, (ir_edges){back, back + nodes + 1},
                                   (ir_edges){forth, forth + nodes + 1}, preorder + nodes, dominator, preorder);
  for (uint32_t b = 0; b < n; b++) {
    g->post_dominator[b] = dominator[b] == IR_NONE ? exit_block : dominator[b]; /* doomed blocks are not reached */
    g->post_depth[b] = 1;
  }
  g->post_depth[exit_block] = 0;
  for (uint32_t k = 1; k < reached; k++) g->post_depth[preorder[k]] = g->post_depth[g->post_dominator[preorder[k]]] + 1;
  hg_release(allocator, back);
  return HG_OK;
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
  g->first = carve(&l, n);
  g->size = carve(&l, n);
  g->next = carve(&l, n);
  g->taken = carve(&l, n);
  g->predecessor_start = carve(&l, (size_t)n + 1);
  g->predecessors = carve(&l, (size_t)2 * n);
  g->order = carve(&l, n);
  g->position = carve(&l, n);
  g->dominator = carve(&l, n);
  g->post_dominator = carve(&l, n);
  g->post_depth = carve(&l, (size_t)n + 1);
  uint32_t *scratch[4] = {carve(&l, n), carve(&l, n), carve(&l, (size_t)n + 1), carve(&l, n)};
  g->doomed = (uint8_t *)carve(&l, n);
  uint8_t *tied = g->doomed + n;

  cut_blocks(g, nodes, count, block_of);
  hg_release(allocator, block_of);
  list_predecessors(g);
  number_blocks(g, scratch[0], scratch[1]);
  HG_TRY(find_dominators(allocator, g));
  mark_back_edges(g, nodes, scratch[0], scratch[1], scratch[3]);
  if (g->irreducible_node != IR_NONE) return HG_OK;
  find_doomed(g, nodes, scratch[0], scratch[1]);
  tie_ends(g, tied, scratch);
  return find_post_dominators(allocator, g, tied);
}

void ir_graph_release(const hg_allocator *allocator, ir_graph *graph) {
  hg_release(allocator, graph->memory);
  *graph = (ir_graph){.irreducible_node = IR_NONE};
}
