/* loops.c - loops by walking back from their latches, the inner ones first. */
#include "ir/loops.h"

#include "base/error.h"

#include <string.h>

typedef struct finder {
  const ssa_unit *unit;
  const ssa_order *order;
  ir_loops *out;
  uint32_t *stack;
} finder;

/* The header of the outermost loop found so far around a block, or the block itself. */
static uint32_t outermost(const finder *f, uint32_t block) {
  uint32_t at = f->out->loop[block] == SSA_NONE ? block : f->out->loop[block];
  while (f->out->parent[at] != SSA_NONE) at = f->out->parent[at];
  return at;
}

/* Pushes the predecessors that the block's loop, or else the way to it, comes from. */
static uint32_t push_predecessors(const finder *f, uint32_t block, int latches, uint32_t depth) {
  const hg_array *into = &ssa_block_at(f->unit, block)->predecessors;
  for (size_t i = 0; i < into->count; i++) {
    uint32_t from = ((const uint32_t *)into->data)[i];
    if (f->order->position[from] != SSA_NONE && ssa_dominates(f->order, block, from) == latches)
      f->stack[depth++] = from;
  }
  return depth;
}

/* Inner loops come first: their headers lie later in reverse postorder. */
static void find_loop(const finder *f, uint32_t header) {
  uint32_t depth = push_predecessors(f, header, 1, 0);
  if (depth > 0) f->out->loop[header] = header;
  f->out->count += depth > 0;
  while (depth > 0) {
    uint32_t block = outermost(f, f->stack[--depth]);
    if (block == header) continue;
    if (f->out->loop[block] == block) f->out->parent[block] = header;
    else f->out->loop[block] = header;
    depth = push_predecessors(f, block, 0, depth);
  }
}

hg_status ir_loops_build(const ssa_unit *unit, const ssa_order *order, ir_loops *out) {
  uint64_t n = unit->blocks.count, edges = 0;
  for (uint32_t b = 0; b < n; b++) edges += ssa_block_at(unit, b)->predecessors.count;
  *out = (ir_loops){.loop = hg_allocate_unset(&unit->allocator, 2 * n + edges, sizeof(uint32_t))};
  if (out->loop == NULL) return hg_fail_memory("the loops of a program", (2 * n + edges) * sizeof(uint32_t));
  out->parent = out->loop + n;
  finder f = {unit, order, out, out->parent + n}; /* a block is pushed once an edge into it */
  memset(out->loop, 0xff, 2 * n * sizeof(uint32_t));
  for (uint32_t k = order->count; k-- > 0;) find_loop(&f, order->block[k]);
  return HG_OK;
}

void ir_loops_release(const ssa_unit *unit, ir_loops *loops) {
  hg_release(&unit->allocator, loops->loop);
  *loops = (ir_loops){0};
}
