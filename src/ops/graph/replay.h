/* replay.h - nodes that are made once more, of other inputs: as they are (replay.c), or for many examples (vmap.c). */
#ifndef HG_OPS_REPLAY_H
#define HG_OPS_REPLAY_H

#include "ops/graph/compute.h"

typedef struct ops_replay {
  hg_computation *c;
  value_id last;    /* nodes up to here are made again where they depend on what has become something else */
  value_id *of;     /* by value: what it has become; 0: it stays */
  uint32_t *before; /* by value: how many nodes there were when it had its turn */
  const uint8_t *is_again; /* by value: 1 of those that are; NULL: all */
  uint64_t count;   /* of examples */
  int is_batch;     /* it is for many examples: `make` is not NULL */
  /* The node of what its inputs have become, one of which has; NULL: as it is. */
  value_id (*make)(const struct ops_replay *r, const ops_node *node);
} ops_replay;

/* 0: no memory, which the computation knows. Between the two `of` is set for what becomes something else. */
int ops_replay_begin(ops_replay *r, hg_computation *c, value_id last);
void ops_replay_run(ops_replay *r);
void ops_replay_end(ops_replay *r);

/* What a value has become, of a batch for each example: repeated, where it stays. */
value_id ops_became(const ops_replay *r, value_id value);
value_id ops_for_each(const ops_replay *r, value_id value);
/* The shape with an axis of all examples in front; 0 and refused: there is none. */
int ops_batch_shape(const ops_replay *r, const ops_shape *shape, ops_shape *out);

#endif
