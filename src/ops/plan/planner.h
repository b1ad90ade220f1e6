/* planner.h - what the files of the planner share: see plan.c.
 *
 * Circle: plan_boxes plan_storages: an update in place is a cluster that runs after others, and a storage of two
 * values. */
#ifndef HG_OPS_PLANNER_H
#define HG_OPS_PLANNER_H

#include "ops/plan/plan_computation.h"

#include <string.h>

enum { PUT_OUT = 1, UPDATES = 2 /* an input */, CHECKS = 4 /* its indices; nobody reads it */ };
enum { NONE = 0, PLAN_WAYS = 4 /* the kinds of paths by which one walk can reach a node */ };

/* A set of numbers: see plan_sets.c. */
typedef uint32_t plan_set;

typedef struct plan_sets {
  const hg_allocator *allocator;
  hg_array nodes;         /* the nodes of all sets; the first one is the empty set's */
  hg_array buckets;       /* uint32_t: the table of equal nodes */
  hg_array known;         /* the unions that were computed: see plan_sets.c */
  uint32_t levels;        /* levels of inner nodes */
  uint8_t is_out_of_memory; /* 1: memory has run out, for good; sets made since then have no meaning */
} plan_sets;

typedef struct cluster {
  uint8_t kind;         /* cluster_kind */
  ops_shape space;      /* the shape of its elements */
  uint32_t axes;        /* the axes that its reductions fold */
  uint32_t weight;      /* its number of nodes */
  uint8_t updates;      /* 1: one of its nodes updates an input */
  uint8_t is_taken;     /* 1: another cluster has taken it in; it has no nodes */
  uint32_t beside;      /* 1 + the cluster that its first node kept away from: see waits_for_larger */
  uint32_t first_node, last_node; /* 1 + index; 0: it has none. See planner.next_node */
  uint32_t stamp;       /* the last walk that has met it */
  plan_set before;      /* the clusters that must run before it */
  uint32_t first_edge;  /* list of edges to the clusters that wait for it: see plan_waits.c */
} cluster;

/* How often a launch is to compute a node: see plan_places.c. */
typedef struct plan_places {
  uint32_t set, count;      /* the places of the first node that reads it: the set's number, and its size */
  uint32_t last, elsewhere; /* the last other set; the number of places in all others */
  uint8_t is_above;         /* 1: it is needed by the node that would join, and belongs to no cluster */
  uint8_t is_read;          /* 1: such a node reads it */
} plan_places;

typedef enum cluster_kind { MAP, ROWS, CONTRACTION, ALONE } cluster_kind;

/* The state of the planner. Walks over nodes mark them with `epoch`. */
typedef struct planner {
  const hg_computation *c;
  ops_plan *plan;
  uint32_t flags, node_count;
  uint8_t *live, *is_inline;
  uint8_t *boxes;        /* by node: bits: PLAN_BOX: an update that may be done in place; PLAN_BASE: its base;
                            PLAN_STORED: it must lie in a storage */
  uint8_t *ends;         /* by node: bits, PUT_OUT, UPDATES, CHECKS */
  uint32_t *stamp, epoch; /* by node: the last walk that has visited it */
  hg_array stack;        /* uint32_t: of the current walk */
  uint32_t *uses;        /* by node: the number of nodes that do work and read it, directly or through views */
  uint64_t *reads;       /* by node: how many of its elements these read in all */
  uint32_t *first_user,
      *users;            /* by node: the nodes that read it are users[first_user[i]] to users[first_user[i + 1] - 1] */
  uint32_t *cluster_of;  /* by node: 1 + number; NONE: inline */
  uint32_t *next_node;   /* by node: 1 + the next one of its cluster; 0: it is the last */
  uint32_t *place;       /* by node of a cluster that is being split: see plan_split.c; NULL */
  plan_places *places;   /* by node: of the walk that counts places */
  uint32_t *copies;      /* by node: at how many places its cluster computes it; 0: at one */
  uint32_t *storage_of;  /* by node: 1 + number */
  hg_array clusters;     /* cluster */
  plan_sets sets;
  hg_array edges;        /* see plan_waits.c */
  uint32_t first_output; /* the storage of the first output */
  uint32_t *kept;        /* by input: 1 + storage of another input's old value, which this one will hold */
  uint32_t *launch_of;   /* by cluster: the first cluster of its launch */
  uint32_t *next_member; /* by cluster: the next one of its launch, as a cycle; NULL: each cluster is a launch */
  const char *note;      /* the note of the steps that are being written: see ops_step; NULL */
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

hg_status hg_sets_begin(plan_sets *s, const hg_allocator *allocator, uint32_t most); /* for numbers below `most` */
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

/* Walks from nodes backwards to their inputs, in the order of a recursion: graphs may be arbitrarily deep, thread
 * stacks are not. */
static inline void hg_walk_begin(planner *p) {
  p->epoch++;
  p->stack.count = 0;
}
hg_status hg_walk_push(planner *p, uint32_t number);
hg_status hg_walk_into(planner *p, uint32_t index); /* visits the node's inputs next */
int hg_walk_next(planner *p, uint32_t *index);      /* the next node not visited yet; 0: the walk is over */

/* A list of clusters that somebody reads: numbers (uint32_t). */
typedef struct reading {
  hg_array numbers;
} reading;

static inline uint32_t number_at(const reading *r, size_t k) { return ((const uint32_t *)r->numbers.data)[k]; }

/* Numbers sorted by keys: those with key k are sorted[first[k]] up to sorted[first[k + 1]], ascending. */
typedef struct plan_listing {
  uint32_t *first, *sorted; /* `first` begins as zeros, one more than there are keys */
} plan_listing;

/* Sorts the numbers from 0 to `count` by their keys, which are less than `key_count`. */
void hg_plan_sort(const uint32_t *keys, uint32_t count, uint32_t key_count, plan_listing *out);

enum { PLAN_BOX = 1, PLAN_BASE = 2, PLAN_STORED = 4 /* bits of planner.boxes */ };
/* Further values of is_inline: a node that must lie in a storage, while that is found out; one that its launch computes
 * and its readers compute again, if it has no storage. */
enum { PLAN_DEMANDED = 2, PLAN_ANEW = 3 };
hg_status hg_plan_choose_inline(planner *p);
hg_status hg_plan_choose_boxes(planner *p);
/* Adds the clusters that read an update's base: they run before it if it is done in place. */
hg_status hg_plan_read_before(planner *p, uint32_t update, reading *r);
hg_status hg_plan_come_before(planner *p, uint32_t index); /* the node gets a cluster, and so does what it depends on,
                                                              where possible */
hg_status hg_plan_place_boxes(planner *p); /* gives storages to updates in place and to their bases */
hg_status hg_plan_clusters(planner *p);
/* 1: computing what the cluster would have to compute at several places, if a node joins it, costs less than storing
 * and reloading it. */
hg_status hg_plan_is_worth_anew(planner *p, uint32_t index, uint32_t number, int *is_worth);
hg_status hg_plan_note_places(planner *p, uint32_t index, uint32_t number); /* the node joins */
/* Marks nodes that maps and rows which read them from another launch compute again: see plan_anew.c. */
hg_status hg_plan_choose_anew(planner *p);

/* The parts of a cluster that its writer has refused; their launches run one after another in its place. The nodes of
 * each part are neighbours in `nodes`. */
typedef struct plan_parts {
  uint32_t *nodes, *numbers, count; /* nodes, and the clusters that they now belong to */
} plan_parts;
/* Splits the cluster with these nodes, ascending. HG_UNSUPPORTED: it is a single node, perhaps with further results,
 * and has nothing inline. */
hg_status hg_plan_split(planner *p, uint32_t number, const uint32_t *nodes, uint32_t count, plan_parts *out);
/* A cluster comes to wait for others, and with it everything that waits for it. */
hg_status hg_plan_wait_for(planner *p, uint32_t number, const reading *r);
hg_status hg_plan_take_in(planner *p, uint32_t into, uint32_t other); /* merges two clusters, with what they wait for
                                                                         and what waits for them */
/* 1: a third cluster waits for the first, and the last waits for that one. */
hg_status hg_plan_is_between(planner *p, uint32_t first, uint32_t last, int *is_between);
/* A cluster joins a launch: all of the launch's clusters then wait for what one of them waits for. */
hg_status hg_plan_join_launch(planner *p, uint32_t launch, uint32_t number);
hg_status hg_plan_storages(planner *p);
hg_status hg_plan_join(planner *p); /* sets launch_of, once it is known where values lie */
hg_status hg_plan_give_storage(planner *p, uint32_t index); /* gives the node a temporary unless it has a storage */
/* Gives each temporary the lowest offset that no other one occupies while it is in use. */
hg_status hg_plan_workspace(ops_plan *plan);

#endif
