/* planner.h - what the parts of the planner share: see plan.c.
 *
 * Circle: plan_boxes plan_storages: an update in place is a cluster that comes after others, and a
 * storage of two values. */
#ifndef HG_OPS_PLANNER_H
#define HG_OPS_PLANNER_H

#include "ops/plan/plan_computation.h"

#include <string.h>

enum { PUT_OUT = 1, UPDATES = 2 /* an input */, CHECKS = 4 /* its numbers: nobody reads what it gives */ };
enum { NONE = 0, PLAN_WAYS = 4 /* that a node can be reached, of one walk */ };

/* A set of numbers: see plan_sets.c. */
typedef uint32_t plan_set;

typedef struct plan_sets {
  const hg_allocator *allocator;
  hg_array nodes;         /* of all sets; the first one is the empty set's */
  hg_array buckets;       /* uint32_t: the table that finds an equal node */
  hg_array known;         /* unions that were made: see plan_sets.c */
  uint32_t levels;        /* of inner nodes */
  uint8_t is_out_of_memory; /* for good; sets made since then mean nothing */
} plan_sets;

typedef struct cluster {
  uint8_t kind;         /* cluster_kind */
  ops_shape space;      /* of its elements */
  uint32_t axes;        /* that its reductions fold */
  uint32_t weight;      /* nodes */
  uint8_t updates;      /* an input: one of its nodes does */
  uint8_t is_taken;     /* into another cluster: it has no nodes */
  uint32_t beside;      /* 1 + the cluster that its first node kept away from: see waits_for_larger */
  uint32_t first_node, last_node; /* 1 + index; 0: it has none. See planner.next_node */
  uint32_t stamp;       /* the walk that has met it last */
  plan_set before;      /* the clusters that must run before it */
  uint32_t first_edge;  /* to those that wait for it: see plan_waits.c */
} cluster;

/* Of a node that a launch is to compute at several places: see plan_places.c. */
typedef struct plan_places {
  uint32_t set, count;      /* of its places, those of the first one that reads it: its number, and how many */
  uint32_t last, elsewhere; /* the last other set; places of all others */
  uint8_t is_above;         /* of no cluster, for the node that would join */
  uint8_t is_read;          /* by such */
} plan_places;

typedef enum cluster_kind { MAP, ROWS, CONTRACTION, ALONE } cluster_kind;

/* The state of a plan in the making. Walks over nodes mark them with `epoch`. */
typedef struct planner {
  const hg_computation *c;
  ops_plan *plan;
  uint32_t flags, node_count;
  uint8_t *live, *is_inline;
  uint8_t *boxes;        /* by node: bits, PLAN_BOX: an update that may be written where its base lies, and PLAN_BASE */
  uint8_t *ends;         /* by node: bits, PUT_OUT, UPDATES, CHECKS */
  uint32_t *stamp, epoch; /* by node: the walk that has been there last */
  hg_array stack;        /* uint32_t: of the walk in hand */
  uint32_t *uses;        /* by node: how many nodes that do work read it, directly or through views */
  uint64_t *reads;       /* how many of its elements they read in all */
  uint32_t *first_user,
      *users;            /* by node: those that read it are users[first_user[i]] to users[first_user[i + 1] - 1] */
  uint32_t *cluster_of;  /* by node: 1 + number; NONE: inline */
  uint32_t *next_node;   /* by node: 1 + the next one of its cluster; 0: it is the last */
  uint32_t *place;       /* by node, of a cluster that is being split: see plan_split.c; NULL */
  plan_places *places;   /* by node, of the walk that counts them */
  uint32_t *copies;      /* by node: at how many places its cluster computes it; 0: at one */
  uint32_t *storage_of;  /* by node: 1 + number */
  hg_array clusters;     /* cluster */
  plan_sets sets;
  hg_array edges;        /* see plan_waits.c */
  uint32_t first_output; /* storage of the first output */
  uint32_t *kept;        /* by input: 1 + storage of another input's value as it was, which this one will hold */
  uint32_t *launch_of;   /* by cluster: the first one of its launch */
  uint32_t *next_member; /* by cluster: the next one of its launch, round and round; NULL: each is a launch */
  const char *note;      /* of the steps that are being written: see ops_step; NULL */
} planner;

static inline const ops_node *node_at(const planner *p, uint32_t index) {
  return (const ops_node *)p->c->nodes.data + index;
}

static inline int is_virtual(const ops_node *node) { return ops_kind_is(node, OPS_VIRTUAL); }
static inline int is_element_wise(const ops_node *node) { return ops_kind_is(node, OPS_ELEMENT_WISE); }

static inline int is_input(const planner *p, value_id value) { return node_at(p, value - 1)->kind == OPS_INPUT; }

static inline cluster *cluster_at(const planner *p, uint32_t number) {
  return (cluster *)p->clusters.data + number;
}

/* ---- sets and who waits for whom --------------------------------------------------------------------------------- */

hg_status hg_sets_begin(plan_sets *s, const hg_allocator *allocator, uint32_t most); /* of numbers below `most` */
void hg_sets_release(plan_sets *s);
int hg_set_has(const plan_sets *s, plan_set set, uint32_t number);
uint32_t hg_set_count(const plan_sets *s, plan_set set);
plan_set hg_set_with(plan_sets *s, plan_set set, uint32_t number);
plan_set hg_set_without(plan_sets *s, plan_set set, uint32_t number);
plan_set hg_set_union(plan_sets *s, plan_set a, plan_set b);

/* 1: cluster a must run before cluster b. */
static inline int is_before(const planner *p, uint32_t a, uint32_t b) {
  return hg_set_has(&p->sets, cluster_at(p, b)->before, a);
}

/* ---- walks ------------------------------------------------------------------------------------------------------- */

/* From nodes back to what they are made of, in the order of a recursion: graphs are as deep as their users like, and
 * stacks of threads are not. */
static inline void hg_walk_begin(planner *p) {
  p->epoch++;
  p->stack.count = 0;
}
hg_status hg_walk_push(planner *p, uint32_t number);
hg_status hg_walk_into(planner *p, uint32_t index); /* the node's inputs come next */
int hg_walk_next(planner *p, uint32_t *index);      /* the next node that it has not been at; 0: the walk is over */

/* Clusters that somebody reads: numbers (uint32_t). */
typedef struct reading {
  hg_array numbers;
} reading;

static inline uint32_t number_at(const reading *r, size_t k) { return ((const uint32_t *)r->numbers.data)[k]; }

/* Numbers sorted by keys: those of key k are sorted[first[k]] up to sorted[first[k + 1]], ascending. */
typedef struct plan_listing {
  uint32_t *first, *sorted; /* `first` begins with zeros, one more than there are keys */
} plan_listing;

/* Keys of the numbers from 0 to `count`, less than `key_count`. */
void hg_plan_sort(const uint32_t *keys, uint32_t count, uint32_t key_count, plan_listing *out);

enum { PLAN_BOX = 1, PLAN_BASE = 2 /* of such an update */ };
enum { PLAN_DEMANDED = 2 /* is_inline of what must lie in a storage, while that is being found out */ };
hg_status hg_plan_choose_inline(planner *p);
hg_status hg_plan_choose_boxes(planner *p);
/* Adds the clusters that read an update's base: they come before it, if it is written there. */
hg_status hg_plan_read_before(planner *p, uint32_t update, reading *r);
hg_status hg_plan_come_before(planner *p, uint32_t index); /* the node is in a cluster: so does that, where it can */
hg_status hg_plan_place_boxes(planner *p); /* gives storages to those that are, and to their bases */
hg_status hg_plan_clusters(planner *p);
/* 1: what the cluster would have to compute at more places than one for a node that joins it costs less than to write
 * it, and read it in another launch. */
hg_status hg_plan_is_worth_anew(planner *p, uint32_t index, uint32_t number, int *is_worth);
hg_status hg_plan_note_places(planner *p, uint32_t index, uint32_t number); /* it joins */

/* A cluster that its writer has refused as several, whose launches come one after the other in its place. Each has
 * nodes that are neighbours here. */
typedef struct plan_parts {
  uint32_t *nodes, *numbers, count; /* nodes, and the clusters that they belong to now */
} plan_parts;
/* Of the cluster with these nodes, ascending. HG_UNSUPPORTED: it is one node, with its further
 * results, which has nothing inline. */
hg_status hg_plan_split(planner *p, uint32_t number, const uint32_t *nodes, uint32_t count, plan_parts *out);
/* A cluster comes to wait for others, and all that wait for it with it. */
hg_status hg_plan_wait_for(planner *p, uint32_t number, const reading *r);
hg_status hg_plan_take_in(planner *p, uint32_t into, uint32_t other); /* what one waits for, and what waits for one */
/* 1: a third one waits for the first, and the last for it. */
hg_status hg_plan_is_between(planner *p, uint32_t first, uint32_t last, int *is_between);
/* The launch's clusters, of which this one becomes one, wait for what one of them waits for. */
hg_status hg_plan_join_launch(planner *p, uint32_t launch, uint32_t number);
hg_status hg_plan_storages(planner *p);
hg_status hg_plan_join(planner *p); /* launch_of, when it is known what lies where */
hg_status hg_plan_give_storage(planner *p, uint32_t index); /* a temporary, unless the node has a storage */
/* Each temporary lies at the lowest place that no other one takes while it is in use. */
hg_status hg_plan_workspace(ops_plan *plan);

#endif
