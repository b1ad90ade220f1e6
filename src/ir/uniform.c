/* uniform.c - the uniformity analysis: one worklist of blocks; all levels only rise.
 *
 * A branch is at least as divergent as the control of its block. */
#include "ir/uniform.h"

#include "base/error.h"
#include "ir/control.h"

#include <string.h>

typedef struct analysis {
  const ir_node *nodes;
  const ir_graph *graph;
  ir_effect_of effect_of;
  const void *context;
  ir_uniformity *result;
  uint8_t *dirty;      /* per block: on the worklist */
  uint8_t *levels;     /* per value: the state inside the block at hand */
  ir_control control;  /* its levels are result->control */
  uint32_t cause;      /* the branch whose level is being spread */
  uint32_t first_dirty; /* lowest position that may be dirty */
} analysis;

uint8_t ir_use_level(const ir_effect *effect, const uint8_t *levels) {
  uint8_t level = IR_GRID;
  for (unsigned i = 0; i < effect->use_count; i++)
    if (levels[effect->use[i]] > level) level = levels[effect->use[i]];
  return level;
}

void ir_uniform_step(const ir_effect *effect, uint8_t control, uint8_t *levels) {
  if (effect->def == IR_NO_VALUE) return;
  uint8_t level = effect->least;
  if (!effect->fixed) {
    uint8_t used = ir_use_level(effect, levels);
    if (used > level) level = used;
  }
  levels[effect->def] = control > level ? control : level;
}

static void mark_dirty(analysis *a, uint32_t block) {
  a->dirty[block] = 1;
  if (a->graph->position[block] < a->first_dirty) a->first_dirty = a->graph->position[block];
}

static void control_raised(void *user, uint32_t block) {
  analysis *a = user;
  a->result->cause[block] = a->cause;
  mark_dirty(a, block);
}

static void flow_into(analysis *a, uint32_t successor) {
  if (successor == IR_NONE) return;
  uint32_t n = a->result->value_count;
  uint8_t *entry = a->result->entry + (size_t)successor * n;
  int changed = 0;
  for (uint32_t v = 0; v < n; v++)
    if (a->levels[v] > entry[v]) {
      entry[v] = a->levels[v];
      changed = 1;
    }
  if (changed) mark_dirty(a, successor);
}

static void spread_levels(analysis *a, uint32_t block) {
  const ir_graph *g = a->graph;
  uint32_t n = a->result->value_count;
  uint8_t control = a->result->control[block], branch_level = control;
  a->cause = a->result->cause[block]; /* control that is divergent already: the first cause is the one to name */
  memcpy(a->levels, a->result->entry + (size_t)block * n, n);
  for (uint32_t k = 0; k < g->size[block]; k++) {
    ir_effect effect;
    a->effect_of(a->context, a->nodes[g->first[block] + k].insn, &effect);
    ir_uniform_step(&effect, control, a->levels);
    if (effect.branches) {
      uint8_t level = ir_use_level(&effect, a->levels);
      if (level > branch_level) {
        branch_level = level;
        a->cause = g->first[block] + k;
      }
    }
  }
  flow_into(a, g->next[block]);
  flow_into(a, g->taken[block]);
  ir_control_branch(&a->control, block, branch_level, control_raised, a);
}

hg_status ir_uniformity_build(const hg_allocator *allocator, const ir_node *nodes, const ir_graph *graph,
                              uint32_t value_count, ir_effect_of effect_of, const void *context, ir_uniformity *out) {
  uint32_t n = graph->block_count;
  *out = (ir_uniformity){.value_count = value_count};
  uint64_t word_count = 4 * (uint64_t)n;
  uint64_t byte_count = (uint64_t)n * value_count + 2 * (uint64_t)n + value_count;
  out->memory = hg_allocate(allocator, word_count * sizeof(uint32_t) + byte_count, 1);
  if (out->memory == NULL) return hg_fail_memory("the uniformity analysis", word_count * sizeof(uint32_t) + byte_count);
  uint32_t *words = out->memory;
  uint8_t *bytes = (uint8_t *)(words + word_count);
  analysis a = {.nodes = nodes, .graph = graph, .effect_of = effect_of, .context = context, .result = out};
  out->cause = words + (size_t)3 * n;
  memset(out->cause, 0xff, n * sizeof(uint32_t)); /* IR_NONE */
  out->entry = bytes;
  out->control = bytes + (size_t)n * value_count;
  ir_control_begin(&a.control, graph, words, out->control);
  a.dirty = out->control + n;
  a.levels = a.dirty + n;
  memset(a.dirty, 1, n);
  while (a.first_dirty < n) {
    uint32_t k = a.first_dirty++;
    uint32_t block = graph->order[k];
    if (!a.dirty[block]) continue;
    a.dirty[block] = 0;
    spread_levels(&a, block);
  }
  return HG_OK;
}

void ir_uniformity_release(const hg_allocator *allocator, ir_uniformity *uniformity) {
  hg_release(allocator, uniformity->memory);
  *uniformity = (ir_uniformity){0};
}
