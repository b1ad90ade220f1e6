/* block_levels.c - the levels of control dependence (ir/control.h) for the blocks of a unit. */
#include "compiler/analysis/block_levels.h"

#include "base/error.h"

#include <string.h>

hg_status hg_control_build(const ssa_unit *unit, const ssa_order *order, hg_control *c) {
  const hg_allocator *allocator = &unit->allocator;
  uint32_t n = order->count;
  c->nodes = hg_allocate(allocator, n, sizeof *c->nodes);
  c->group_of = hg_allocate(allocator, 4 * (uint64_t)n, sizeof(uint32_t) + 1);
  if (c->nodes == NULL || c->group_of == NULL)
    return hg_fail_memory("the control analysis", (uint64_t)n * sizeof *c->nodes);
  for (uint32_t k = 0; k < n; k++) {
    const ssa_block *block = ssa_block_at(unit, order->block[k]);
    c->nodes[k] =
        (ir_node){.insn = k, .next = IR_NONE, .taken = IR_NONE, .flags = block->end == SSA_TRAP ? IR_NODE_ABORT : 0};
    if (block->successor[0] != SSA_NONE) c->nodes[k].next = order->position[block->successor[0]];
    if (block->successor[1] != SSA_NONE) c->nodes[k].taken = order->position[block->successor[1]];
  }
  HG_TRY(ir_graph_build(allocator, c->nodes, n, &c->graph));
  for (uint32_t g = 0; g < c->graph.block_count; g++)
    for (uint32_t i = 0; i < c->graph.size[g]; i++) c->group_of[c->graph.first[g] + i] = g;
  ir_control_begin(&c->control, &c->graph, c->group_of + n, (uint8_t *)(c->group_of + 4 * (size_t)n));
  return HG_OK;
}

static void note_raised(void *user, uint32_t group) {
  (void)group;
  *(int *)user = 1;
}

int hg_control_spread(hg_control *c, const ssa_unit *unit, const ssa_order *order, const hg_fact *fact,
                      uint8_t *control) {
  int raised = 0;
  for (uint32_t k = 0; k < order->count; k++) {
    const ssa_block *block = ssa_block_at(unit, order->block[k]);
    uint32_t group = c->group_of[k];
    uint8_t level = c->control.level[group];
    if (k + 1 < c->graph.first[group] + c->graph.size[group]) continue; /* only the last block of a group decides */
    if (block->end == SSA_BRANCH && fact[block->condition].level > level) level = fact[block->condition].level;
    ir_control_branch(&c->control, group, level, note_raised, &raised);
  }
  for (uint32_t k = 0; k < order->count; k++) control[order->block[k]] = c->control.level[c->group_of[k]];
  return raised;
}

void hg_control_set_divergent(hg_control *c) {
  uint8_t begin = c->control.level[c->group_of[0]];
  memset(c->control.level, IR_LANE, c->graph.block_count);
  c->control.level[c->group_of[0]] = begin; /* all lanes begin together */
}

void hg_control_release(const ssa_unit *unit, hg_control *c) {
  ir_graph_release(&unit->allocator, &c->graph);
  hg_release(&unit->allocator, c->nodes);
  hg_release(&unit->allocator, c->group_of);
}
