/* graph.h - a graph of nodes as found by a walk (walk.c), its executable (build.c), and the memory donated to it
 * (given.c). */
#ifndef HGPY_GRAPH_H
#define HGPY_GRAPH_H

#include "hgpy.h"

enum { HGPY_NONE = UINT32_MAX };

typedef struct hgpy_list {
  hgpy_node **nodes;
  uint32_t count, capacity;
  hgpy_node *few[64];
} hgpy_list;

/* Inline like the functions below: part of every read. */
static inline void hgpy_list_begin(hgpy_list *l) {
  l->nodes = l->few;
  l->count = 0;
  l->capacity = 64;
}
static inline void hgpy_list_end(hgpy_list *l) {
  if (l->nodes != l->few) PyMem_Free(l->nodes);
}
bool hgpy_list_add(hgpy_list *l, hgpy_node *node); /* false: raised */
/* A number for a walk over nodes. Visited nodes get it, or the one below. */
uint32_t hgpy_next_epoch(void);

typedef struct graph {
  hgpy_list order, stack, leaves, scalars, results;
  hgpy_list shared; /* pending, and perhaps read by something outside of the graph */
  uint64_t *words, few_words[256];
  uint32_t word_count, word_capacity;
  uint32_t epoch; /* marks its nodes */
  hgpy_device *device;
  hgpy_device *held; /* referenced once known: nodes need not hold it, and other threads may close it */
  bool is_expanded; /* walks through computed nodes that keep their inputs */
  bool is_failed;
  const hgpy_pair *pairs;
  uint32_t pair_count;
  uint32_t update_count, alias_count; /* results written to donated memory; leaves that read the input of another */
  uint32_t *home_of;  /* for each result, the leaf in whose place it is written, or NONE. NULL: nothing is donated */
  uint32_t *input_of; /* for each leaf, the leaf whose input it reads: mostly itself */
  uint32_t *slot_of;  /* for each leaf, the number of that input */
  uint32_t *readers_of; /* for each leaf, how many leaves read its input */
} graph;

static inline void hgpy_graph_begin(graph *g) {
  hgpy_list_begin(&g->order), hgpy_list_begin(&g->stack), hgpy_list_begin(&g->leaves), hgpy_list_begin(&g->scalars),
      hgpy_list_begin(&g->results), hgpy_list_begin(&g->shared);
  g->words = g->few_words;
  g->word_count = 0;
  g->word_capacity = 256;
  g->device = g->held = NULL;
  g->is_expanded = g->is_failed = false;
  g->epoch = 0;
  g->pairs = NULL;
  g->pair_count = g->update_count = g->alias_count = 0;
  g->home_of = g->input_of = g->slot_of = g->readers_of = NULL;
}

static inline void hgpy_graph_end(graph *g) {
  hgpy_list_end(&g->order), hgpy_list_end(&g->stack), hgpy_list_end(&g->leaves), hgpy_list_end(&g->scalars),
      hgpy_list_end(&g->results), hgpy_list_end(&g->shared);
  if (g->words != g->few_words) PyMem_Free(g->words);
  PyMem_Free(g->home_of); /* one allocation with the arrays after it */
  if (g->held != NULL) hgpy_device_release(g->held);
}

/* False: donated; raised. */
static inline bool hgpy_is_there(const hgpy_node *node) {
  if (node->kind != HGPY_GONE) return true;
  PyErr_SetString(PyExc_ValueError, "an array is read that was given up to a function of jit(donate=...)");
  return false;
}

uint64_t *hgpy_graph_room(graph *g, uint32_t words);
/* `into`: the single root is the only result, and goes to memory of `device`. False: raised. */
bool hgpy_read_graph(graph *g, hgpy_node *const *roots, uint32_t count, const hg_tensor *into, hgpy_device *device);
/* The kind of the node when it was recorded: DATA that keeps its inputs is recognised by its fields. */
hgpy_kind hgpy_kind_in(const graph *g, const hgpy_node *node);
/* NULL: raised. is_general: numbers are inputs. */
hg_executable *hgpy_compile_graph(const graph *g, const hg_tensor *into, bool is_general);

/* The executable that computes the results from the given leaves on a device, with the index of each result among its
 * outputs and of each input among the leaves. NULL with nothing raised: they depend on something else, or only
 * hgpy_evaluate can run them. */
hg_executable *hgpy_executable_of(const hgpy_device *device, hgpy_node *const *results, uint32_t count,
                                  uint32_t *places, hgpy_node *const *given, uint32_t given_count, uint32_t *input_of,
                                  uint32_t *input_count, bool *is_quick);

/* Notes who reads a leaf's memory; called for each leaf if something is donated. */
void hgpy_note_leaf(const graph *g, uint32_t leaf);
/* Chooses the donated memory of results, and adds it to the key. False: raised. */
bool hgpy_find_homes(graph *g);
/* Sets is_apart[i] for each leaf i that reads another's input, if a gradient's value depends on that other: the
 * gradient is by one of them only, so they must be two values. False: out of memory. */
bool hgpy_find_apart(const graph *g, bool *is_apart);
/* Checks that nobody else has got hold of the donated memory, and donates it before the launch. False: raised. */
bool hgpy_can_give_up(const graph *g);
void hgpy_give_up(const graph *g);

/* In place of a run: compiles the executable in full and makes the results blank, except those with memory. False:
 * raised. */
bool hgpy_warm_graph(const graph *g, hg_executable *executable, bool has_memory);

static inline uint32_t hgpy_home_of(const graph *g, uint32_t result) {
  return g->home_of != NULL ? g->home_of[result] : HGPY_NONE;
}

static inline bool hgpy_has_input(const graph *g, uint32_t leaf) {
  return g->input_of == NULL || g->input_of[leaf] == leaf;
}

#endif
