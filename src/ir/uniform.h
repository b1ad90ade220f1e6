/* uniform.h - uniformity analysis: which values and which control are uniform in the grid, or in the block.
 *
 * The rules are part of the API (docs/uniformity.md): what verifies today verifies tomorrow. They are a forward
 * data-flow over levels: a result is at least as divergent as its operands and as the control that decides whether it
 * is computed; control is at least as divergent as every branch it depends on. */
#ifndef HG_IR_UNIFORM_H
#define HG_IR_UNIFORM_H

#include "ir/graph.h"

typedef enum ir_level {
  IR_GRID = 0,  /* the same in every lane of the grid */
  IR_BLOCK = 1, /* the same in every lane of a block */
  IR_LANE = 2   /* may differ between lanes */
} ir_level;

#define IR_NO_VALUE UINT16_MAX
enum { IR_MAX_USES = 8 };

/* What one node does, in terms of numbered values (registers and predicates alike). */
typedef struct ir_effect {
  uint16_t def; /* IR_NO_VALUE: none */
  uint16_t use[IR_MAX_USES];
  uint8_t use_count;
  uint8_t least;    /* ir_level that the result has whatever its operands are */
  uint8_t fixed;    /* 1: the result has level `least` exactly */
  uint8_t branches; /* 1: a branch, as divergent as its uses (after its def) */
} ir_effect;

typedef void (*ir_effect_of)(const void *context, uint32_t insn, ir_effect *effect);

typedef struct ir_uniformity {
  uint8_t *control; /* per block: level of the control that leads there */
  uint32_t *cause;  /* per block: the branching node that raised it to that level; IR_NONE where nothing did */
  uint8_t *entry;   /* per block, per value: level on entry */
  uint32_t value_count;
  void *memory;
} ir_uniformity;

/* HG_OUT_OF_MEMORY. Release it whatever the result. */
hg_status ir_uniformity_build(const hg_allocator *allocator, const ir_node *nodes, const ir_graph *graph,
                              uint32_t value_count, ir_effect_of effect_of, const void *context, ir_uniformity *out);
void ir_uniformity_release(const hg_allocator *allocator, ir_uniformity *uniformity);

/* The highest level among the uses. */
uint8_t ir_use_level(const ir_effect *effect, const uint8_t *levels);

/* One node: updates levels[], under control of level `control`. */
void ir_uniform_step(const ir_effect *effect, uint8_t control, uint8_t *levels);

#endif
