/* uniform.c - the uniformity analysis: one work list over blocks, everything monotone.
 *
 * Control dependence follows Ferrante, Ottenstein, Warren, "The Program Dependence Graph and Its Use in Optimization"
 * (1987): a block depends on a branch when it lies between one of the branch's successors and the branch's immediate
 * post-dominator in the post-dominator tree. A block's level then spreads on through the branches it holds. */
#include "ir/uniform.h"

#include "base/error.h"

#include <string.h>

typedef struct analysis {
  const ir_node *nodes;
  const ir_graph *graph;
  ir_effect_of effect_of;
  const void *context;
  ir_uniformity *result;
  uint8_t *dirty;      /* per block: to be looked at again */
  uint8_t *levels;     /* per value: the state inside the block at hand */
  uint32_t *climb[3];  /* per level and block: the next block up the post-dominator tree that is not at the level yet */
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

static void make_dirty(analysis *a, uint32_t block) {
  a->dirty[block] = 1;
  if (a->graph->position[block] < a->first_dirty) a->first_dirty = a->graph->position[block];
}

static void raise_control(analysis *a, uint32_t block, uint8_t level, uint32_t cause) {
  if (a->result->control[block] >= level) return;
  a->result->control[block] = level;
  a->result->cause[block] = cause;
  make_dirty(a, block);
}

/* The nearest block from `block` upwards, itself included, whose control is below the level; paths are halved on the
 * way, so that repeated climbs stay cheap. */
static uint32_t next_below(analysis *a, uint32_t block, uint8_t level) {
  uint32_t *climb = a->climb[level];
  while (block != a->graph->block_count && a->result->control[block] >= level) {
    uint32_t up = climb[block];
    if (up != a->graph->block_count && a->result->control[up] >= level) climb[block] = climb[up];
    block = up;
  }
  return block;
}

/* All blocks that depend on whether the branch at the end of `block` goes to `successor`. */
static void spread(analysis *a, uint32_t block, uint32_t successor, uint8_t level, uint32_t cause) {
  const ir_graph *g = a->graph;
  if (g->doomed[successor]) { /* on the way to an abort: post-dominance says nothing there */
    raise_control(a, successor, level, cause);
    return;
  }
  uint32_t stop = g->doomed[block] ? g->block_count : g->post_dominator[block];
  uint32_t b = next_below(a, successor, level);
  while (g->post_depth[b] > g->post_depth[stop]) {
    raise_control(a, b, level, cause);
    b = next_below(a, b, level);
  }
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
  if (changed) make_dirty(a, successor);
}

static int is_real_branch(const ir_graph *g, uint32_t block) {
  uint32_t next = g->next[block], taken = g->taken[block];
  if (next == IR_NONE || taken == IR_NONE) return 0;
  return g->doomed[block] || (!g->doomed[next] && !g->doomed[taken]);
}

static void visit(analysis *a, uint32_t block) {
  const ir_graph *g = a->graph;
  uint32_t n = a->result->value_count;
  uint8_t control = a->result->control[block], branch_level = control;
  uint32_t cause = a->result->cause[block]; /* where control differs already, the first reason is the one to name */
  memcpy(a->levels, a->result->entry + (size_t)block * n, n);
  for (uint32_t k = 0; k < g->size[block]; k++) {
    ir_effect effect;
    a->effect_of(a->context, a->nodes[g->first[block] + k].insn, &effect);
    ir_uniform_step(&effect, control, a->levels);
    if (effect.branches) {
      uint8_t level = ir_use_level(&effect, a->levels);
      if (level > branch_level) {
        branch_level = level;
        cause = g->first[block] + k;
      }
    }
  }
  flow_into(a, g->next[block]);
  flow_into(a, g->taken[block]);
  if (branch_level == IR_GRID || g->next[block] == IR_NONE) return;
  if (g->taken[block] == IR_NONE) { /* no decision here, but doomed code inherits its way in */
    if (g->doomed[g->next[block]]) raise_control(a, g->next[block], branch_level, cause);
    return;
  }
  uint32_t successors[2] = {g->next[block], g->taken[block]};
  for (int s = 0; s < 2; s++)
    if (is_real_branch(g, block) || g->doomed[successors[s]]) spread(a, block, successors[s], branch_level, cause);
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
  for (int level = 0; level < 3; level++) {
    a.climb[level] = words + (size_t)level * n;
    memcpy(a.climb[level], graph->post_dominator, n * sizeof(uint32_t));
  }
  out->cause = words + (size_t)3 * n;
  memset(out->cause, 0xff, n * sizeof(uint32_t)); /* IR_NONE */
  out->entry = bytes;
  out->control = bytes + (size_t)n * value_count;
  a.dirty = out->control + n;
  a.levels = a.dirty + n;
  memset(a.dirty, 1, n);
  while (a.first_dirty < n) {
    uint32_t k = a.first_dirty++;
    uint32_t block = graph->order[k];
    if (!a.dirty[block]) continue;
    a.dirty[block] = 0;
    visit(&a, block);
  }
  return HG_OK;
}

void ir_uniformity_release(const hg_allocator *allocator, ir_uniformity *uniformity) {
  hg_release(allocator, uniformity->memory);
  *uniformity = (ir_uniformity){0};
}
