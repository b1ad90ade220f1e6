/* ssa_order.c - depth-first order and dominators of SSA blocks. */
#include "ir/ssa_order.h"

#include "base/error.h"
#include "ir/dominance.h"

#include <string.h>

/* The false side is visited first, so that the true side comes first in reverse postorder. */
static void number_blocks(const ssa_unit *u, ssa_order *o, uint32_t *stack, uint32_t *seen) {
  uint32_t n = (uint32_t)u->blocks.count, depth = 0, place = n;
  memset(o->position, 0xff, n * sizeof(uint32_t));
  memset(seen, 0xff, n * sizeof(uint32_t));
  stack[depth++] = 0;
  seen[0] = 0;
  while (depth > 0) {
    uint32_t block = stack[depth - 1], step = seen[block]++;
    if (step < 2) {
      uint32_t successor = ssa_block_at(u, block)->successor[1 - step];
      if (successor != SSA_NONE && seen[successor] == SSA_NONE) {
        seen[successor] = 0;
        stack[depth++] = successor;
      }
      continue;
    }
    o->block[--place] = block;
    depth--;
  }
  o->count = n - place;
  memmove(o->block, o->block + place, o->count * sizeof(uint32_t));
  for (uint32_t k = 0; k < o->count; k++) o->position[o->block[k]] = k;
}

/* The edges both ways; each array has count + 1 starts before its list. */
static void list_edges(const ssa_unit *u, uint32_t *out, uint32_t *in) {
  uint32_t n = (uint32_t)u->blocks.count, outgoing = 0, incoming = 0, *out_list = out + n + 1, *in_list = in + n + 1;
  for (uint32_t b = 0; b < n; b++) {
    const ssa_block *block = ssa_block_at(u, b);
    out[b] = outgoing;
    in[b] = incoming;
    for (int s = 0; s < 2; s++)
      if (block->successor[s] != SSA_NONE) out_list[outgoing++] = block->successor[s];
    for (size_t i = 0; i < block->predecessors.count; i++)
      in_list[incoming++] = ((const uint32_t *)block->predecessors.data)[i];
  }
  out[n] = outgoing;
  in[n] = incoming;
}

static uint64_t count_predecessors(const ssa_unit *u) {
  uint64_t count = 0;
  for (uint32_t b = 0; b < u->blocks.count; b++) count += ssa_block_at(u, b)->predecessors.count;
  return count;
}

static hg_status find_dominators(const ssa_unit *u, ssa_order *o) {
  uint64_t n = u->blocks.count, words = 2 * (n + 1) + 2 * n + count_predecessors(u) + (IR_DOMINANCE_SCRATCH + 1) * n;
  uint32_t *out = hg_allocate_unset(&u->allocator, words, sizeof *out);
  if (out == NULL) return hg_fail_memory("the order of the program's blocks", words * sizeof *out);
  uint32_t *preorder = out + (n + 1) + 2 * n, *scratch = preorder + n, *in = scratch + IR_DOMINANCE_SCRATCH * n;
  list_edges(u, out, in);
  ir_dominators((uint32_t)n, 0, (ir_edges){out, out + n + 1}, (ir_edges){in, in + n + 1}, scratch, o->dominator,
                preorder);
  hg_release(&u->allocator, out);
  return HG_OK;
}

/* A block is listed twice among the predecessors of a block that is both its successors: first for the true side. */
static void find_edges(const ssa_unit *u, ssa_order *o) {
  memset(o->edge, 0xff, 2 * u->blocks.count * sizeof(uint32_t));
  for (uint32_t k = 0; k < o->count; k++) {
    uint32_t to = o->block[k];
    const hg_array *predecessors = &ssa_block_at(u, to)->predecessors;
    for (uint32_t i = 0; i < predecessors->count; i++) {
      uint32_t from = ((const uint32_t *)predecessors->data)[i];
      int first = ssa_block_at(u, from)->successor[0] == to && o->edge[2 * from] == SSA_NONE;
      o->edge[2 * (size_t)from + (first ? 0 : 1)] = i;
    }
  }
}

/* Subtree sizes are summed backwards and numbers assigned forwards: parents come first in reverse postorder. */
static void number_tree(ssa_order *o, uint32_t *next_child) {
  for (uint32_t k = 0; k < o->count; k++) o->close[o->block[k]] = 1;
  for (uint32_t k = o->count; k-- > 1;) o->close[o->dominator[o->block[k]]] += o->close[o->block[k]];
  for (uint32_t k = 0; k < o->count; k++) {
    uint32_t block = o->block[k], parent = o->dominator[block];
    o->open[block] = k == 0 ? 0 : next_child[parent];
    if (k > 0) next_child[parent] += o->close[block];
    next_child[block] = o->open[block] + 1;
  }
  for (uint32_t k = 0; k < o->count; k++) o->close[o->block[k]] += o->open[o->block[k]];
}

/* `rows` of a word a block each. The first six are what every order has, two of them scratch. */
static hg_status build_order(const ssa_unit *unit, ssa_order *order, uint32_t rows) {
  uint64_t n = unit->blocks.count;
  *order = (ssa_order){.block = hg_allocate_unset(&unit->allocator, rows * n, sizeof(uint32_t))};
  if (order->block == NULL) return hg_fail_memory("the order of the program's blocks", rows * n * sizeof(uint32_t));
  order->position = order->block + n;
  order->edge = order->block + 2 * n;
  number_blocks(unit, order, order->block + 4 * n, order->block + 5 * n);
  find_edges(unit, order);
  return HG_OK;
}

hg_status ir_ssa_order_number(const ssa_unit *unit, ssa_order *order) { return build_order(unit, order, 6); }

hg_status ir_ssa_order_build(const ssa_unit *unit, ssa_order *order) {
  size_t n = unit->blocks.count;
  HG_TRY(build_order(unit, order, 9));
  order->dominator = order->block + 6 * n;
  order->open = order->block + 7 * n;
  order->close = order->block + 8 * n;
  memset(order->open, 0, 2 * n * sizeof(uint32_t)); /* unreachable blocks too */
  HG_TRY(find_dominators(unit, order));
  number_tree(order, order->block + 4 * n);
  return HG_OK;
}

void ir_ssa_order_release(const ssa_unit *unit, ssa_order *order) {
  hg_release(&unit->allocator, order->block);
  *order = (ssa_order){0};
}
